#!/usr/bin/python3
"""Encrypted tables and temporary files: a stolen disk shows nothing, whatever the server was doing, and nothing is lost by it.

With `default_table_encryption=ON` no row is found in any file of the data directory and of `tmpdir`, those without a name included
(by way of /proc): under load on both engines, with large rows, sorts and groups that spill, temporary tables, LOAD DATA LOCAL, large
transactions, prepared branches, ALTER, new master keys, and kill -9. The switch goes on, off and on again over data that is there, and
what is in clear text is counted and goes. A backup starts elsewhere with the keyring. A missing, old or wrong keyring stops a start
with the file and the key named, and changes nothing; `omnibus check` reads all of it.

Ring: all.
"""

import hashlib
import json
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, binary, connect, expect, wait_for  # noqa: E402

SECRET = b"SECRETSECRET"
ON, OFF = "--default-table-encryption=ON", "--default-table-encryption=OFF"
KEY = "encryption.key"


def omnibus(*arguments, ok=True):
    run = subprocess.run([binary(), *map(str, arguments)], capture_output=True)
    expect((run.returncode == 0) == ok, f"omnibus {arguments}: {run.returncode} {run.stdout[-500:]}{run.stderr[-500:]}")
    return (run.stdout + run.stderr).decode(errors="replace")


def showing(server):
    """The files in which rows are found: of the data directory, and whatever else the server has open."""
    paths = [path for path in server.datadir.rglob("*") if path.is_file()]
    if server.runs():
        for path in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
            try:
                target = str(path.readlink())
            except OSError:
                continue
            # Not sockets, and not the client's files.
            if target.startswith("/") and not target.startswith(("/dev/", "/proc/")):
                paths.append(path)
    found = []
    for path in paths:
        try:
            if SECRET in path.read_bytes():
                found.append(f"{path} ({path.readlink()})" if path.is_symlink() else str(path))
        except OSError:
            pass
    return found


def nothing_shows(server, when):
    expect(not showing(server), f"{when}: rows in clear text: {showing(server)}")


def unnamed(server):
    """Open files without a name."""
    found = []
    for path in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            if str(path.readlink()).endswith(" (deleted)"):
                found.append(path)
        except OSError:
            pass
    return found


def counts(server):
    return {name: int(value) for name, value in Session(server)("SHOW STATUS LIKE 'Encryption\\_%'")}


def digest(server):
    session = Session(server)
    return [session(f"SELECT COUNT(*), SUM(CRC32(note)) FROM e.{table}") for table in ("lsm", "btree")]


def fill(session, rows=200):
    """Rows on both engines, large ones among them, and an index over the text."""
    session("CREATE DATABASE IF NOT EXISTS e")
    for table, engine in (("lsm", "InnoDB"), ("btree", "BTREE")):
        session(f"CREATE TABLE e.{table} (n INT PRIMARY KEY, note LONGTEXT, k VARCHAR(40), KEY (k)) ENGINE={engine}")
        for at in range(0, rows, 100):
            values = ",".join(f"({n}, CONCAT({n}, REPEAT('SECRETSECRET', {1 + n % 60})), 'SECRETSECRET-{n}')" for n in range(at, at + 100))
            session(f"INSERT INTO e.{table} VALUES {values}")
        session(f"INSERT INTO e.{table} VALUES (100000, REPEAT('SECRETSECRET{table}', 20000), 'SECRETSECRET')")


def temporary_files(server, session):
    """What statements keep in files: each is looked at while it is there."""
    seen = []
    stop = threading.Event()

    def look():
        while not stop.is_set():
            for path in unnamed(server):
                try:
                    content = path.read_bytes()
                except OSError:
                    continue
                seen.append(len(content))
                expect(SECRET not in content, "a temporary file is in clear text")
            time.sleep(0.02)

    looker = threading.Thread(target=look)
    looker.start()
    session.run("SET SESSION sort_buffer_size = 32768", "SET SESSION tmp_table_size = 16384", "SET SESSION max_heap_table_size = 16384",
                "SET SESSION join_buffer_size = 16384")
    for number in range(2):
        session("SELECT n, note, k FROM e.lsm WHERE n < 100000 ORDER BY note DESC, n")
        session("SELECT note, k, COUNT(*) FROM e.btree WHERE n < 100000 GROUP BY note, k")
        session("SELECT a.note FROM e.lsm a JOIN e.btree b ON a.k = b.k AND a.n < 100000")
        session(f"CREATE TEMPORARY TABLE e.temporary_{number} AS SELECT * FROM e.lsm WHERE n < 100000")
        session(f"UPDATE e.temporary_{number} SET note = CONCAT(note, 'x')")
        session("BEGIN")
        session("UPDATE e.lsm SET note = CONCAT(note, 'x') WHERE n < 100000")
        session("UPDATE e.btree SET note = CONCAT(note, 'x') WHERE n < 100000")
        nothing_shows(server, "in a large transaction")
        session("ROLLBACK")
    stop.set()
    looker.join()
    expect(seen and max(seen) > 50_000, f"hardly anything was in temporary files: {len(seen)} looks, {max(seen or [0])} bytes")


def load_data(server, scratch):
    path = scratch / "rows.txt"
    path.write_text("".join(f"{n}\t{'SECRETSECRET' * 10}\tSECRETSECRET-{n}\n" for n in range(200_000, 220_000)))
    found, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            found.extend(file for file in unnamed(server) if SECRET in file.read_bytes())
            time.sleep(0.01)

    looker = threading.Thread(target=look)
    looker.start()
    db = connect(server, local_infile=True, autocommit=True)
    with db.cursor() as cursor:
        cursor.execute(f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE e.lsm")
        cursor.execute("DELETE FROM e.lsm WHERE n >= 200000 AND n < 220000")
    stop.set()
    looker.join()
    expect(not found, "the file of LOAD DATA LOCAL is kept in clear text")
    path.unlink()


def in_the_files(scratch):
    keyring, temporary = scratch / "keys", scratch / "tmp"
    temporary.mkdir()
    server = Omnibus(scratch / "files", f"--keyring-file-data={keyring}", ON, f"--tmpdir={temporary}", "--lsm-memtable-size=1048576",
                     "--binlog-large-commit-threshold=300000", "--local-infile=ON", "--max-binlog-size=1000000")
    server.directory.mkdir()
    server.start()
    session = Session(server)
    expect(session("SELECT @@default_table_encryption, @@binlog_encryption, @@innodb_redo_log_encrypt") == ((1, 1, 1),), "the switch is for all")
    fill(session)
    session("FLUSH TABLES")
    nothing_shows(server, "after the first rows")
    session("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_USER='SECRETSECRET', SOURCE_PASSWORD='SECRETSECRET'")
    passwords = server.datadir / "replica_passwords"
    expect(SECRET.hex().encode() not in passwords.read_bytes(), "a source's password is in clear text")
    expect(passwords.stat().st_mode & 0o77 == 0, "only the server may read passwords")
    temporary_files(server, session)
    load_data(server, scratch)
    session.run("ALTER TABLE e.lsm ADD COLUMN more VARCHAR(30) DEFAULT 'SECRETSECRET', ALGORITHM=COPY", "ALTER TABLE e.btree ADD INDEX (k, n)",
                "ANALYZE TABLE e.lsm UPDATE HISTOGRAM ON k", "CREATE TABLE e.small (SECRETSECRET INT COMMENT 'SECRETSECRET') ENCRYPTION='Y'",
                "ALTER TABLE e.small ENGINE=BTREE, ENCRYPTION='Y'", "CREATE DATABASE SECRETSECRET ENCRYPTION='Y'")
    # Prepared branches are in the engines' own files.
    session.run("XA START 'a'", "INSERT INTO e.lsm VALUES (900001, REPEAT('SECRETSECRET', 100), 'SECRETSECRET', 'SECRETSECRET')",
                "INSERT INTO e.btree VALUES (900001, REPEAT('SECRETSECRET', 100), 'SECRETSECRET')", "XA END 'a'", "XA PREPARE 'a'")
    nothing_shows(server, "with a prepared branch")
    before = digest(server)
    server.kill()
    nothing_shows(server, "after a kill")
    server.start()
    expect(digest(server) == before, "rows are lost by a kill")
    session = Session(server)
    session.run("XA COMMIT 'a'")
    expect(counts(server)["Encryption_plain_files"] == 0 and counts(server)["Encryption_files"] > 2, f"{counts(server)}")
    expect(session.value("SELECT DISTINCT ENCRYPTION FROM information_schema.INNODB_TABLESPACES") == "Y", "INNODB_TABLESPACES")
    expect("ENCRYPTION='Y'" in session("SHOW CREATE DATABASE e")[0][1], "SHOW CREATE DATABASE")
    session.fails("SET GLOBAL default_table_encryption = OFF", 1238)
    # Another master key: one small file, and the keys of before stay for backups.
    old = (server.datadir / KEY).read_bytes()
    backup = scratch / "backup"
    session(f"BACKUP TO '{backup}'")
    raw = {path: hashlib.sha256(path.read_bytes()).digest() for path in (server.datadir / "lsm/tree/tables").iterdir()}
    session("ALTER INSTANCE ROTATE INNODB MASTER KEY")
    expect((server.datadir / KEY).read_bytes() != old, "the table key is under the old master key")
    same = [path for path, was in raw.items() if path.exists() and hashlib.sha256(path.read_bytes()).digest() != was]
    expect(not same, f"tables were written anew: {same}")
    names = [element["data_id"] for element in json.loads(keyring.read_text())["elements"]]
    expect(sum(name.startswith("INNODBKey-") for name in names) == 2, f"{names}")
    server.kill()
    server.start()
    before = digest(server)
    server.stop()
    nothing_shows(server, "after a stop")
    omnibus("check", "--datadir", server.datadir, f"--keyring-file-data={keyring}")
    said = omnibus("check", "--datadir", server.datadir, ok=False)
    expect("is encrypted with the key" in said, f"check without a keyring: {said}")
    return server, keyring, backup, before


def restored(scratch, keyring, backup, before):
    """A backup of before the last master key, elsewhere, with the keyring."""
    server = Omnibus(scratch / "restored", f"--keyring-file-data={keyring}")
    server.directory.mkdir()
    nothing = [path for path in backup.rglob("*") if path.is_file() and SECRET in path.read_bytes()]
    expect(not nothing, f"the backup shows rows: {nothing}")
    omnibus("check", backup, f"--keyring-file-data={keyring}")
    said = omnibus("restore", "--from", backup, "--datadir", server.datadir)
    expect("--keyring-file-data" in said, f"restore does not say what a start needs: {said}")
    server.start()
    expect(digest(server) == before, f"the backup has other rows: {digest(server)} {before}")
    Session(server).run("INSERT INTO e.btree VALUES (1000000, 'SECRETSECRET', 'SECRETSECRET')", "ALTER INSTANCE ROTATE INNODB MASTER KEY")
    server.stop()
    nothing_shows(server, "where it was restored")


def refusals(server, keyring, scratch):
    """What stops a start, and that it changes nothing."""
    options = list(server.options)

    def contents():
        files = [path for path in server.datadir.rglob("*") if path.is_file() and path.name != "omnibus.lock"]
        return {path: hashlib.sha256(path.read_bytes()).digest() for path in files}

    def beginnings():
        """With their forms; the B-tree's library writes into its header whenever it opens the file."""
        return {path: path.read_bytes()[:16] if path.parent.name == "btree" else digest for path, digest in contents().items()}

    def refused(what, keys, *words, switch=ON, contents=contents):
        server.options = [option for option in options if not option.startswith("--keyring") and option != ON]
        server.options += [switch] * (switch is not None)
        server.options += [f"--keyring-file-data={keys}"] * (keys is not None)
        before = contents()
        try:
            server.start()
        except RuntimeError as error:
            expect(all(word in str(error) for word in words), f"{what}: {error}")
        else:
            expect(False, f"{what}: it starts")
        expect(contents() == before, f"{what}: {set(contents().items()) ^ set(before.items())} changed")

    refused("no keyring", None, "binlog.0", "MySQLReplicationKey_", "--keyring-file-data")
    refused("an empty keyring", scratch / "empty-keys", "binlog.0", "MySQLReplicationKey_", "not in the keyring")
    for kept, *words in (("INNODBKey-", "binlog.0", "MySQLReplicationKey_"), ("MySQLReplicationKey_", KEY, "INNODBKey-")):
        part, text = scratch / f"keys-{kept}", json.loads(keyring.read_text())
        text["elements"] = [element for element in text["elements"] if element["data_id"].startswith(kept)]
        part.write_text(json.dumps(text))
        part.chmod(0o600)
        # A start with OFF would write the B-tree's file anew in clear text.
        for switch in (ON, OFF, None):
            refused(f"{kept} only, {switch}", part, *words, "not in the keyring", switch=switch)
    other, text = scratch / "other-keys", json.loads(keyring.read_text())
    for element in text["elements"]:
        if element["data_id"].startswith("INNODBKey-"):
            element.update(data="0A" * 32, extension=[])
    other.write_text(json.dumps(text))
    other.chmod(0o600)
    refused("another key of that name", other, KEY, "is not the one")
    key = server.datadir / KEY
    whole = key.read_bytes()
    key.write_bytes(whole[:-20] + b"x" + whole[-19:])
    expect(KEY in omnibus("check", "--datadir", server.datadir, f"--keyring-file-data={keyring}", ok=False), "check of a damaged key file")
    refused("a damaged key file", keyring, KEY, "damaged")
    key.unlink()
    refused("a lost key file", keyring, KEY, "missing")
    key.write_bytes(whole)
    table = next((server.datadir / "lsm/tree/tables").iterdir())
    content = table.read_bytes()
    table.write_bytes(content[:30] + bytes([content[30] ^ 1]) + content[31:])
    refused("a damaged header", keyring, str(table), "header is damaged")
    table.write_bytes(content[:2000])
    refused("a header that is cut short", keyring, str(table), "cut short")
    table.write_bytes(content)
    # Found when the engines are open: the B-tree's file has not been written anew yet.
    log = pathlib.Path(server.binlogs()[-1])
    content = log.read_bytes()
    log.write_bytes(content[:530] + bytes(byte ^ 1 for byte in content[530:560]) + content[560:])
    refused("a damaged log", keyring, log.name, switch=OFF, contents=beginnings)
    log.write_bytes(content)
    server.options = options
    server.start()
    server.stop()


def on_and_off(scratch):
    """The switch over data that is there. What is in clear text is counted, and goes."""
    keyring = scratch / "keys-switch"
    server = Omnibus(scratch / "switch", "--lsm-memtable-size=1048576")
    server.directory.mkdir()
    server.start()
    session = Session(server)
    session.fails("ALTER INSTANCE ROTATE INNODB MASTER KEY", 3185)
    session("CREATE DATABASE e")
    session.fails("CREATE TABLE e.t (i INT) ENCRYPTION='Y'", 3185)
    session.fails("CREATE TABLE e.t (i INT) ENCRYPTION='X'", 3184)
    session.fails("CREATE DATABASE f ENCRYPTION='Y'", 3185)
    session.fails("SET GLOBAL default_table_encryption = ON", 1238)
    fill(session)
    session("BACKUP TO '%s'" % (scratch / "plain-backup"))
    expect(counts(server)["Encryption_files"] == 0 and counts(server)["Encryption_plain_bytes"] > 10_000, f"{counts(server)}")
    before = digest(server)
    server.stop()
    expect(len(showing(server)) >= 3, f"without encryption rows show: {showing(server)}")
    server.options += [f"--keyring-file-data={keyring}", ON]
    server.start()
    expect(digest(server) == before, "ON loses rows")

    def tables_show():
        return [path for path in showing(server) if "/lsm/" in path or "/btree/" in path]

    wait_for(lambda: not tables_show(), "old tables being written anew")
    wait_for(lambda: counts(server)["Encryption_plain_files"] == 0, f"none in clear text: {counts(server)}", every=1)
    Session(server)("PURGE BINARY LOGS BEFORE NOW()")
    server.kill()
    # An option that is forgotten decrypts nothing, and what follows is encrypted.
    server.options.remove(ON)
    server.start()
    expect(Session(server)("SELECT @@default_table_encryption, @@binlog_encryption, @@innodb_redo_log_encrypt") == ((1, 1, 1),), "it stays on")
    expect(digest(server) == before, "a forgotten option loses rows")
    Session(server).run("INSERT INTO e.lsm VALUES (300000, 'SECRETSECRET', 'SECRETSECRET')", "FLUSH TABLES", "DELETE FROM e.lsm WHERE n = 300000")
    expect(counts(server)["Encryption_plain_files"] == 0 and not tables_show(), f"{counts(server)} {tables_show()}")
    server.kill()
    server.options.append(OFF)
    server.start()
    expect(digest(server) == before, "OFF loses rows")
    wait_for(lambda: counts(server)["Encryption_files"] == 0, f"none encrypted: {counts(server)}", every=1)
    server.stop()
    omnibus("check", "--datadir", server.datadir, f"--keyring-file-data={keyring}")
    server.options.remove(OFF)
    server.start()
    expect(Session(server).value("SELECT @@default_table_encryption") == 0, "nothing is encrypted any more, and stays so")
    server.stop()
    server.options.append(ON)
    server.start()
    wait_for(lambda: not tables_show(), "old tables being written anew")
    expect(digest(server) == before, "ON again loses rows")
    server.stop()
    # Without a place for the keyring nothing begins.
    server = Omnibus(scratch / "none", ON)
    server.directory.mkdir()
    try:
        server.start()
    except RuntimeError as error:
        expect("needs keyring_file_data" in str(error), f"{error}")
    else:
        expect(False, "it starts without a keyring")
    read_only = scratch / "nowhere" / "keys"
    server.options.append(f"--keyring-file-data={read_only}")
    try:
        server.start()
    except RuntimeError as error:
        expect(str(read_only) in str(error), f"{error}")
    else:
        expect(False, "it starts with a keyring that cannot be written")


def killed(scratch, rounds):
    """Load on both engines, definitions, new master keys; and then kill -9."""
    keyring = scratch / "keys-killed"
    server = Omnibus(scratch / "killed", f"--keyring-file-data={keyring}", ON, "--lsm-memtable-size=1048576", "--binlog-large-commit-threshold=100000",
                     "--max-binlog-size=500000")
    server.directory.mkdir()
    server.start()
    Session(server).run("CREATE DATABASE e", *(f"CREATE TABLE e.{table} (n INT PRIMARY KEY, note LONGTEXT, k VARCHAR(40)) ENGINE={engine}"
                                               for table, engine in (("lsm", "InnoDB"), ("btree", "BTREE"))))
    numbers, acknowledged, lock = iter(range(10**9)), {"lsm": [], "btree": []}, threading.Lock()

    def write(seed):
        choose = random.Random(seed)
        try:
            db = connect(server, autocommit=True)
            with db.cursor() as cursor:
                while True:
                    with lock:
                        n = next(numbers)
                    table = choose.choice(("lsm", "btree"))
                    cursor.execute(f"INSERT INTO e.{table} VALUES (%s, REPEAT('SECRETSECRET', %s), 'SECRETSECRET')", (n, choose.choice((1, 10, 1000, 12000))))
                    acknowledged[table].append(n)
        except Exception:  # The server is killed.
            pass

    def administer(seed):
        choose = random.Random(seed)
        try:
            session = Session(server)
            while True:
                session(choose.choice(("ALTER INSTANCE ROTATE INNODB MASTER KEY", "ALTER INSTANCE ROTATE BINLOG MASTER KEY", "FLUSH BINARY LOGS",
                                       "ALTER TABLE e.lsm ADD INDEX (k), ALGORITHM=COPY", "ALTER TABLE e.lsm DROP INDEX k",
                                       "ALTER TABLE e.btree ADD INDEX (k)", "ALTER TABLE e.btree DROP INDEX k")))
        except Exception as error:
            # An index that is there, or not.
            if getattr(error, "args", [0])[0] in (1061, 1091, 1205, 1213):
                administer(seed + 1000)

    for number in range(rounds):
        threads = [threading.Thread(target=write, args=(f"{number} {n}",)) for n in range(3)]
        threads.append(threading.Thread(target=administer, args=(number,)))
        [thread.start() for thread in threads]
        threads[0].join(random.Random(number).uniform(0.5, 3))
        nothing_shows(server, f"round {number}, under load")
        server.kill()
        [thread.join() for thread in threads]
        nothing_shows(server, f"round {number}")
        server.start()
        for table in acknowledged:
            there = {row[0] for row in Session(server)(f"SELECT n FROM e.{table}")}
            expect(set(acknowledged[table]) <= there, f"{table}: lost: {sorted(set(acknowledged[table]) - there)[:10]}")
    server.stop()
    omnibus("check", "--datadir", server.datadir, f"--keyring-file-data={keyring}")
    print(f"{rounds} kills, {sum(map(len, acknowledged.values()))} transactions", flush=True)


def main():
    with Scratch() as folder:
        scratch = pathlib.Path(folder)
        server, keyring, backup, before = in_the_files(scratch)
        print("files", flush=True)
        restored(scratch, keyring, backup, before)
        refusals(server, keyring, scratch)
        print("refusals", flush=True)
        on_and_off(scratch)
        print("switch", flush=True)
        killed(scratch, 6)
        shutil.rmtree(scratch / "killed")
    print("ok")


if __name__ == "__main__":
    main()
