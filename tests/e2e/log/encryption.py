#!/usr/bin/python3
"""Encrypted logs: what is in the files, who can read them, and what a kill at any moment leaves.

The form is MySQL 8's. A decoder of a few lines, on another library's AES, makes plain files of them that MariaDB's program reads. No
row is found in any file of the log, the transactions' own files included. Replicas of both kinds, `omnibus binlog`, `omnibus check`,
backups and the archive work as ever. Keys are changed, and encryption turned on and off, under load and kill -9. A missing or
wrong keyring and damaged headers stop a start with a text that says what it is, and change nothing.

Ring: all.
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import real_peers  # noqa: E402
from omnibus import (ROOT, Omnibus, Scratch, Session, binary, client, connect, expect, finished_binlogs)  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402

SECRET = b"SECRETSECRET"
FRONT = 512


def keys_of(keyring):
    """The keys in a file of the form of MySQL's component."""
    return {element["data_id"]: element["data"] for element in json.loads(pathlib.Path(keyring).read_text())["elements"]}


def decrypt(path, keyring):
    """The file in clear text, and the name of its master key."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    raw = pathlib.Path(path).read_bytes()
    expect(raw[:5] == b"\xfdbin\x01", f"{path} begins with {raw[:5]}")
    fields, at = {}, 5
    while raw[at]:
        kind = raw[at]
        size = {2: 32, 3: 16}.get(kind) or raw[at + 1]
        at += 2 if kind == 1 else 1
        fields[kind], at = raw[at:at + size], at + size
    name = fields[1].decode()
    master = Cipher(algorithms.AES(bytes.fromhex(keys_of(keyring)[name])), modes.CBC(fields[3])).decryptor()
    digest = hashlib.sha512(master.update(fields[2])).digest()
    stream = Cipher(algorithms.AES(digest[:32]), modes.CTR(digest[32:40] + bytes(8))).decryptor()
    return stream.update(raw[FRONT:]), name


def encrypted(server):
    return {row[0]: row[2] for row in Session(server)("SHOW BINARY LOGS")}


def no_secret(server, *folders):
    """In no file of the log, whatever it is called; the engines' files are not encrypted."""
    for folder in (server.datadir, *folders):
        for path in pathlib.Path(folder).rglob("*"):
            inside = path.relative_to(folder).parts[0]
            if path.is_file() and inside not in ("lsm", "btree"):
                expect(SECRET not in path.read_bytes(), f"{path} holds rows in clear text")


def rows(server):
    return Session(server)("SELECT n, LENGTH(note) FROM e.t ORDER BY n")


def omnibus(*arguments, ok=True):
    run = subprocess.run([binary(), *map(str, arguments)], capture_output=True)
    expect((run.returncode == 0) == ok, f"omnibus {arguments}: {run.returncode} {run.stdout[-500:]}{run.stderr[-500:]}")
    return (run.stdout + run.stderr).decode(errors="replace")


def shown(program, *arguments):
    """The rows that a peer's program shows of a file, or of what the server sends of it."""
    run = subprocess.run([*program, "--no-defaults", "--verbose", "--base64-output=DECODE-ROWS", *map(str, arguments)], capture_output=True)
    expect(run.returncode == 0, f"{program} {arguments}: {run.stderr[-300:]}")
    return [line.split(b" /*")[0] for line in run.stdout.splitlines() if line.startswith(b"###")]


def mysqlbinlog(*arguments):
    """MySQL's own program, from its root; it is in the same network."""
    return shown([*real_peers.inside(real_peers.root_with("mysql", "usr/bin/mysqlbinlog")), "mysqlbinlog"], *arguments)


def in_the_files(scratch, method):
    """Everything but crashes, under one way of writing."""
    keyring, temporary = scratch / f"keys-{method}", scratch / f"tmp-{method}"
    temporary.mkdir()
    (scratch / method).mkdir()
    server = Omnibus(scratch / method, f"--keyring-file-data={keyring}", "--binlog-encryption=ON", f"--binlog-flush-method={method}",
                     f"--tmpdir={temporary}", "--binlog-large-commit-threshold=200000", "--max-binlog-size=300000", "--binlog-cache-size=4096")
    server.start()
    session = Session(server)
    # Not only rows: names, statements, and texts of accounts and programs.
    session.run("CREATE DATABASE e", "CREATE TABLE e.t (n INT PRIMARY KEY, note LONGTEXT)", "CREATE TABLE e.SECRETSECRET (SECRETSECRET INT) COMMENT 'SECRETSECRET'",
                "CREATE USER SECRETSECRET@localhost", "CREATE PROCEDURE e.p() SELECT 'SECRETSECRET'", "CREATE TEMPORARY TABLE e.SECRETSECRET2 (a INT)",
                "SET SESSION binlog_format = STATEMENT", "INSERT INTO e.SECRETSECRET VALUES (LENGTH('SECRETSECRET'))", "SET SESSION binlog_format = ROW",
                "SET SESSION binlog_rows_query_log_events = ON", "INSERT INTO e.SECRETSECRET VALUES (LENGTH('SECRETSECRET'))", "DROP TEMPORARY TABLE e.SECRETSECRET2",
                "ANALYZE TABLE e.t UPDATE HISTOGRAM ON note", "ALTER TABLE e.SECRETSECRET ADD COLUMN SECRETSECRET_2 INT", "FLUSH BINARY LOGS")
    for n in range(60):
        session(f"INSERT INTO e.t VALUES ({n}, REPEAT('SECRET', {1 + n * n}))")
    # In a spilled cache, in a file that becomes a log file, and in neither yet.
    session("BEGIN")
    for n in range(100, 108):
        session(f"INSERT INTO e.t VALUES ({n}, REPEAT('SECRET', 3000))")
        no_secret(server, temporary)
    spilled = [path for path in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir() if str(temporary) in str(path.readlink())]
    expect(spilled, "nothing was spilled")
    expect(all(SECRET not in path.read_bytes() for path in spilled), "a spilled transaction is in clear text")
    for n in range(108, 160):
        session(f"INSERT INTO e.t VALUES ({n}, REPEAT('SECRET', 3000))")
    files = list((server.datadir / "#binlog_cache_files").iterdir())
    expect(files, "no large transaction")
    no_secret(server, temporary)
    session("COMMIT")
    expect(session.value("SHOW STATUS LIKE 'Binlog_large_commits'") and
           session("SHOW STATUS LIKE 'Binlog_large_commits'")[0][1] == "1", "the large transaction was copied")
    session("INSERT INTO e.t VALUES (200, 'SECRETSECRET')")
    no_secret(server, temporary)
    expect(set(encrypted(server).values()) == {"Yes"}, f"{encrypted(server)}")
    events = session("SHOW BINLOG EVENTS")
    expect([event[1] for event in events[:2]] == [4, events[0][4]], f"positions: {events[:2]}")

    files = finished_binlogs(server)
    for path in files:
        plain, _ = decrypt(path, keyring)
        copy = scratch / "plain"
        copy.write_bytes(plain)
        read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", str(copy)], capture_output=True)
        expect(read.returncode == 0 and b"ROLLBACK" in read.stdout, f"{path}: {read.stderr[-300:]}")
        expect(omnibus("binlog", copy) == omnibus("binlog", f"--keyring-file-data={keyring}", path), f"{path} is read differently")
        remote = ("--read-from-remote-server", "--host=127.0.0.1", f"--port={server.port}", "--user=root", pathlib.Path(path).name)
        if os.geteuid() == 0:
            expect(mysqlbinlog(*remote) == shown(["mariadb-binlog"], copy), f"{path} is sent differently to mysqlbinlog")
    said = omnibus("binlog", files[0], ok=False)
    expect("--keyring-file-data" in said, f"without a keyring: {said}")

    # Another master key, beside a backup that shares the files.
    backup = scratch / f"backup-{method}"
    session(f"BACKUP TO '{backup}'")
    shutil.copy(keyring, scratch / "old-keys")
    bodies = {path: pathlib.Path(path).read_bytes()[FRONT:] for path in files}
    session("ALTER INSTANCE ROTATE BINLOG MASTER KEY")
    expect(len(keys_of(keyring)) == 1, "old keys are kept")
    for path in files:
        expect(decrypt(path, keyring)[1].endswith("_2"), f"{path} has the old key")
        expect(pathlib.Path(path).read_bytes()[FRONT:] == bodies[path], f"{path} is another file")
    omnibus("check", f"--keyring-file-data={scratch / 'old-keys'}", backup)

    # Off, on, off: files are what they were.
    session.run("SET GLOBAL binlog_encryption = OFF", "INSERT INTO e.t VALUES (300, 'plain')")
    expect(list(encrypted(server).values())[-1] == "No", "OFF begins a file in clear text")
    session.fails("ALTER INSTANCE ROTATE BINLOG MASTER KEY", 3805)
    session.run("SET GLOBAL binlog_encryption = ON", "INSERT INTO e.t VALUES (301, 'SECRETSECRET')")
    expect(list(encrypted(server).values())[-2:] == ["No", "Yes"], f"{encrypted(server)}")
    before = rows(server)
    server.kill()
    server.options.append("--binlog-rotate-encryption-master-key-at-startup=ON")
    server.start()
    expect(rows(server) == before, "rows are lost by a kill")
    expect([name[-2:] for name in keys_of(keyring)] == ["_3"], f"{list(keys_of(keyring))}")
    server.stop()
    omnibus("check", "--datadir", server.datadir, f"--keyring-file-data={keyring}")
    said = omnibus("check", "--datadir", server.datadir, ok=False)
    expect("--keyring-file-data" in said, f"check without a keyring: {said}")
    return server, keyring, backup


def of_a_mysql(scratch):
    """A MySQL's own encrypted log and keyring are read; a server of ours that shares the keyring leaves that MySQL's keys in it, its other elements too."""
    folder, keyring = ROOT / "testdata/binlog/mysql-9.7-encrypted", scratch / "mysqls-keys"
    shutil.copy(folder / "keyring", keyring)
    keyring.chmod(0o600)
    before = json.loads(keyring.read_text())["elements"]

    def read():
        said = omnibus("binlog", "-v", f"--keyring-file-data={keyring}", *sorted(folder.glob("binlog.*")))
        expect(all(f"@2='{name}'" in said for name in ("tea", "coffee", "milk")), said)

    read()
    server = Omnibus(scratch / "beside", f"--keyring-file-data={keyring}", "--binlog-encryption=ON")
    server.directory.mkdir()
    server.start()
    Session(server)("ALTER INSTANCE ROTATE BINLOG MASTER KEY")
    server.stop()
    after = json.loads(keyring.read_text())["elements"]
    expect(len(after) == 4 and all(any(dict(one, extension=[]) == element for one in after) for element in before), f"{before} became {after}")
    read()
    # Each key that was written here has a checksum.
    keyring.write_text(keyring.read_text().replace('"data":"DB28', '"data":"DB29'))
    expect("damaged" in omnibus("binlog", f"--keyring-file-data={keyring}", folder / "binlog.000001", ok=False), "a changed key")


def refusals(server, keyring, backup, scratch):
    """What stops a start, and that it changes nothing."""
    options = list(server.options)

    def refused(what, *words):
        contents = {path: path.read_bytes() for path in server.datadir.glob("binlog.*")}
        try:
            server.start()
        except RuntimeError as error:
            expect(all(word in str(error) for word in words), f"{what}: {error}")
        else:
            expect(False, f"{what}: it starts")
        expect(contents == {path: path.read_bytes() for path in server.datadir.glob("binlog.*")}, f"{what}: the log was changed")

    def keyring_is(path, *more):
        server.options = [option for option in options if not option.startswith(("--keyring", "--binlog-encr"))]
        server.options += [f"--keyring-file-data={path}"] * (path is not None) + list(more)

    keyring_is(None)
    refused("no keyring", "is encrypted with the key", "--keyring-file-data")
    keyring_is(None, "--binlog-encryption=ON")
    refused("ON without a keyring", "needs keyring_file_data")
    keyring_is(scratch / "nowhere" / "keys", "--binlog-encryption=ON")
    refused("no such folder", "nowhere")
    keyring_is(scratch / "old-keys")
    refused("an old keyring", "not in the keyring")
    wrong, text = scratch / "wrong", keyring.read_bytes()
    shutil.copy(keyring, wrong)
    wrong.write_bytes(text.replace(b'"data":"', b'"data":"0', 1))
    keyring_is(wrong)
    refused("a damaged keyring", "damaged")
    wrong.chmod(0o644)
    refused("a readable keyring", "chmod 600")
    keyring_is(keyring)
    last = max(server.datadir.glob("binlog.[0-9]*"))
    whole = last.read_bytes()
    for at in (7, 40, 70, 105):
        last.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
        refused(f"a flipped bit at {at}", last.name)
    last.write_bytes(whole)
    server.start()
    session = Session(server)
    expect(list(encrypted(server).values())[-1] == "No", "OFF is not OFF")
    server.stop()
    # The keyring of then brings the backup back.
    restored = Omnibus(scratch / "restored", f"--keyring-file-data={scratch / 'old-keys'}")
    restored.directory.mkdir()
    omnibus("restore", "--from", backup, "--datadir", restored.datadir)
    restored.start()
    expect(len(rows(restored)) == 121, f"{len(rows(restored))} rows")
    Session(restored).fails("SET GLOBAL binlog_encryption = 7", 1231)
    restored.stop()
    bare = Omnibus(scratch / "bare")
    bare.directory.mkdir()
    bare.start()
    Session(bare).fails("SET GLOBAL binlog_encryption = ON", 3794)
    session = Session(bare)
    session.run("CREATE USER some@localhost", "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO some@localhost")
    some = Session(bare, user="some")
    some.fails("SET GLOBAL binlog_encryption = OFF", 1227)
    some.fails("ALTER INSTANCE ROTATE BINLOG MASTER KEY", 1227)
    bare.stop()


def killed(scratch, rounds):
    """Keys change, files rotate, large transactions become files, encryption goes off and on; and then kill -9. Replicas of both kinds follow."""
    keyring = scratch / "keys-killed"
    source = OmnibusPeer(scratch / "source", 1, f"--keyring-file-data={keyring}", "--binlog-encryption=ON", "--max-binlog-size=100000",
                         "--binlog-large-commit-threshold=50000", "--binlog-expire-logs-seconds=0")
    source.start()
    Session(source).run("CREATE DATABASE e", "CREATE TABLE e.t (n INT PRIMARY KEY, note LONGTEXT)")
    create_user(source)
    hidden = OmnibusPeer(scratch / "hidden", 4, f"--keyring-file-data={scratch / 'keys-hidden'}", "--binlog-encryption=ON")
    replicas = [MariaPeer(scratch / "maria", 2), OmnibusPeer(scratch / "replica", 3), hidden]
    for replica in replicas:
        replica.start()
        # A source that starts again on a busy machine takes its time.
        replicate(replica, source, **({"RETRY_COUNT": 10_000} if isinstance(replica, OmnibusPeer) else {}))
    numbers, acknowledged = iter(range(10**9)), []
    lock = threading.Lock()

    def write(seed):
        choose = random.Random(seed)
        try:
            db = connect(source, autocommit=True)
            with db.cursor() as cursor:
                while True:
                    with lock:
                        n = next(numbers)
                    cursor.execute("INSERT INTO e.t VALUES (%s, REPEAT('SECRET', %s))", (n, choose.choice((1, 10, 1000, 12000))))
                    acknowledged.append(n)
        except Exception:  # The server is killed.
            pass

    def administer(seed):
        choose = random.Random(seed)
        try:
            session = Session(source)
            while True:
                session(choose.choice(("ALTER INSTANCE ROTATE BINLOG MASTER KEY", "FLUSH BINARY LOGS")))
        except Exception:
            pass

    for number in range(rounds):
        threads = [threading.Thread(target=write, args=(f"{number} {n}",)) for n in range(3)]
        threads.append(threading.Thread(target=administer, args=(number,)))
        [thread.start() for thread in threads]
        threads[0].join(random.Random(number).uniform(0.2, 1.2))
        source.kill()
        [thread.join() for thread in threads]
        source.start()
        there = {row[0] for row in rows(source)}
        expect(set(acknowledged) <= there, f"lost: {sorted(set(acknowledged) - there)[:10]}")
        expect(len(keys_of(keyring)) == 1, f"round {number}: old keys stay")
        no_secret(source)
    for replica in replicas:
        wait_caught_up(replica, source)
        expect(rows(replica) == rows(source), f"{type(replica).__name__} has other rows")
    no_secret(hidden)
    print(f"{rounds} kills, {len(acknowledged)} transactions, {len(source.binlogs())} files", flush=True)
    for path in finished_binlogs(source):
        decrypt(path, keyring)


def main():
    with Scratch() as folder:
        scratch = pathlib.Path(folder)
        for method in ("fdatasync", "O_DSYNC", "auto"):
            server, keyring, backup = in_the_files(scratch, method)
        refusals(server, keyring, backup, scratch)
        of_a_mysql(scratch)
        killed(scratch, 6)
    print("ok")


if __name__ == "__main__":
    main()
