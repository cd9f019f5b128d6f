#!/usr/bin/env python3
"""Damage in files: `omnibus check` and `omnibus restore` find it in every file of a backup, a running server goes on, and looking
changes nothing.

Ring: all.
"""

import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import Omnibus, Scratch, binary, client, connect, error_code, expect, wait_for  # noqa: E402

import pymysql  # noqa: E402

SEED = seeds.of_this_run()
ROWS = 400
ENGINES = ("LSM", "BTREE")


def fill(server):
    client(server, "CREATE DATABASE test")
    for engine in ENGINES:
        client(server, f"CREATE TABLE test.{engine} (id INT PRIMARY KEY, k INT, v VARCHAR(600), KEY (k)) ENGINE={engine}")
        values = ",".join(f"({n}, {n}, REPEAT(CHAR(97 + {n} % 26), 600))" for n in range(ROWS))
        client(server, f"INSERT INTO test.{engine} VALUES {values}")


def sums(directory):
    return {path.relative_to(directory): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in sorted(directory.rglob("*")) if path.is_file()}


def check(directory):
    run = subprocess.run([binary(), "check", str(directory)], capture_output=True, text=True, timeout=60)
    expect("panicked" not in run.stderr, f"check panicked: {run.stderr}")
    return run.returncode, run.stdout + run.stderr


def damaged(path, how, chance, part=1):
    bytes_ = bytearray(path.read_bytes())
    # Not in the zeros that a log file or the B-tree's file ends with.
    used = len(bytes_.rstrip(b"\0")) or len(bytes_)
    at = chance.randrange(max(used // part, 1))
    if how == "bit":
        bytes_[at] ^= 1 << chance.randrange(8)
    else:
        at = at // 4096 * 4096
        bytes_[at:at + 4096] = bytes(len(bytes_[at:at + 4096]))
    path.unlink()
    path.write_bytes(bytes_)


def check_changes_nothing(directory):
    """After a stop, and after a kill with work under way."""
    server = Omnibus(directory)
    server.start()
    fill(server)
    with connect(server, autocommit=True).cursor() as cursor:
        for n in range(100):
            cursor.execute(f"INSERT INTO test.BTREE VALUES ({1000 + n}, 1, 'v')")
    server.kill()
    for _ in range(2):
        before = sums(server.datadir)
        _, text = check(server.datadir)
        expect(sums(server.datadir) == before, f"check changed a file:\n{text}")
        expect("DAMAGED" not in text, f"check found damage:\n{text}")
        server.start()
        server.stop()
    code, text = check(server.datadir)
    expect(code == 0, f"a stopped server's directory is not whole:\n{text}")


def damage_in_a_backup(directory):
    server = Omnibus(directory / "server")
    server.start()
    fill(server)
    backup = directory / "backup"
    client(server, f"BACKUP TO '{backup}'")
    server.stop()
    code, text = check(backup)
    expect(code == 0 and "backup" in text, f"a whole backup: {text}")
    chance, files = random.Random(f"backup {SEED}"), [path for path in sorted(backup.rglob("*")) if path.is_file() and path.stat().st_size]
    for number, path in enumerate(files):
        kept = path.read_bytes()
        for how in HOWS:
            hurt(path, how, chance)
            code, text = check(backup)
            # Without its list it is a data directory like others.
            is_other = (path.name, how) == ("omnibus.backup", "removed")
            expect(code != 0 or is_other, f"check finds nothing in {path.name}, {how}: {text}")
            run = subprocess.run([binary(), "restore", "--from", str(backup), "--datadir", str(directory / f"r{number}")],
                                 capture_output=True, text=True)
            expect(run.returncode != 0, f"restore takes a damaged {path.name}, {how}")
            expect(path.name in run.stderr or "not a backup" in run.stderr, f"restore does not name {path.name}, {how}: {run.stderr}")
            path.unlink(missing_ok=True)
            path.write_bytes(kept)
    code, text = check(backup)
    expect(code == 0, f"the backup is whole again: {text}")


def a_running_server_goes_on(directory):
    """A write that needs a damaged page of the B-tree's file: what comes after it is refused, and nothing else."""
    server = Omnibus(directory, "--btree-cache-size=1048576")
    server.start()
    fill(server)
    server.stop()
    path = server.datadir / "btree" / "data.redb"
    content = bytearray(path.read_bytes())
    # Entries of the index on k: its space is the table's second.
    space = max(range(1, 200), key=lambda n: content.count((0x40000000 + n).to_bytes(4, "big")))
    at, pages = 0, set()
    while (at := content.find((0x40000000 + space).to_bytes(4, "big"), at + 1)) >= 0:
        pages.add(at // 4096)
    for page in pages:
        content[page * 4096 + 2000] ^= 1
    path.write_bytes(content)
    try:
        server.start()
    except RuntimeError:
        expect("data.redb" in server.log_tail(200), f"refused without a name\n{server.log_tail()}")
        return
    db = connect(server, autocommit=True, database="test")
    with db.cursor() as cursor:
        for n in range(20):
            error_code(lambda: cursor.execute(f"UPDATE BTREE SET k = k + 1000 WHERE id = {n * 20}"))  # noqa: B023
            error_code(lambda: cursor.execute(f"INSERT INTO BTREE VALUES ({5000 + n}, {n}, 'v')"))  # noqa: B023
        client(server, "INSERT INTO test.LSM VALUES (9000, 1, 'v')")
        wait_for(lambda: error_code(lambda: cursor.execute("INSERT INTO BTREE SELECT MAX(id) + 1, 1, 'v' FROM LSM")),
                 "a refusal")
        expect(client(server, "SELECT COUNT(*) FROM test.LSM").strip() == str(ROWS + 1), "the other engine goes on")
        client(server, "INSERT INTO test.LSM VALUES (9001, 1, 'v')")
    expect("panicked" not in server.log_tail(1000), f"a panic\n{server.log_tail()}")
    server.kill()


# What has a checksum, and decides who a server is and how it is set; and what is before its value.
SEALED = {"omnibus.format": b"", "auto.cnf": b"uuid=", "mysqld-auto.cnf": b'"Value":', "replica_passwords": b" ", "ca.pem": b"-\n", "ca-key.pem": b"-\n",
          "server-cert.pem": b"-\n", "server-key.pem": b"-\n"}
HOWS = ("bit", "block", "cut", "emptied", "removed")


def hurt(path, how, chance, part=1):
    """As `damaged`, in the first of so many parts; or without its second half, its bytes, or at all; or another number."""
    if how == "number":
        value = bytearray(path.read_bytes())
        at = value.index(SEALED[path.name]) + len(SEALED[path.name])
        value[next(n for n in range(at, len(value)) if chr(value[n]).isdigit())] ^= 1
        return path.write_bytes(value)
    if how in ("bit", "block"):
        return damaged(path, how, chance, part)
    size = path.stat().st_size
    path.unlink()
    if how != "removed":
        path.write_bytes(b"")
        os.truncate(path, size // 2 if how == "cut" else 0)
    return None


def rows_of(server, table):
    """The table's rows, or the error that names the damage."""
    try:
        with connect(server, database="test").cursor() as cursor:
            cursor.execute(f"SELECT id, v FROM {table} ORDER BY id")
            return cursor.fetchall(), None
    except pymysql.err.MySQLError as error:
        return None, str(error)


def begin(directory, options):
    """A server whose logs and tables are several files."""
    server = Omnibus(directory / "server", "--lsm-memtable-size=1M", "--max-binlog-size=1M", "--btree-cache-size=1M", *options)
    server.start()
    client(server, "CREATE DATABASE test")
    for engine in ENGINES:
        client(server, f"CREATE TABLE test.{engine} (id INT PRIMARY KEY, v VARCHAR(600)) ENGINE={engine}")
    for first in range(0, 4000, 500):
        for engine in ENGINES:
            client(server, f"INSERT INTO test.{engine} VALUES " + ",".join(
                f"({n}, REPEAT(CHAR(97 + {n} % 26), 400))" for n in range(first, first + 500)))
    return server


def recover_from(origin, kinds, place, look):
    """Starts on a copy of the files of `origin` for each of `kinds` and each way to damage it. The last log file is hurt in its first
    half: where nothing is behind it, it may never have been acknowledged (log_errors.py)."""
    settings = "SELECT @@server_uuid, @@GLOBAL.max_connections, @@gtid_executed"
    is_set = client(origin, settings)
    wanted = {engine: rows_of(origin, engine)[0] for engine in ENGINES}
    origin.kill()
    chance, told = random.Random(f"recovery {SEED}"), {}
    server = Omnibus(place, *origin.options)
    for path in kinds():
        for how in (*HOWS, *(["number"] if path.name in SEALED else [])):
            last = path.name == max(log.name for log in origin.datadir.glob("binlog.0*"))
            if last and how == "cut":
                continue
            shutil.copytree(origin.datadir, place / "data")
            hurt(place / "data" / path, how, chance, 2 if last else 1)
            what = f"{path}, {how}"
            try:
                server.start()
            except RuntimeError:
                text = server.log_tail(5)
                told[what] = "refused"
                expect(path.name in text or path.parts[0] in text, f"{what}: refused without naming it\n{text}")
            else:
                told[what] = "whole"
                expect(how != "number", f"{what}: it starts with it")
                if how != "removed" or not path.name.endswith("auto.cnf"):
                    expect(client(server, settings) == is_set, f"{what}: it is another server now: {client(server, settings)}")
                for engine in ENGINES:
                    found, error = rows_of(server, engine)
                    if error is None:
                        expect(found == wanted[engine], f"{what}: {engine} has {len(found)} rows of {len(wanted[engine])}, or others\n{server.log_tail()}")
                        continue
                    told[what] = "an error"
                    expect(path.name in error, f"{what}: an error that does not name it: {error}")
                    with connect(server, database="test").cursor() as cursor:
                        cursor.execute(f"CHECK TABLE {engine}")
                        expect(any("OK" not in row[3] for row in cursor.fetchall()), f"{what}: CHECK TABLE finds nothing")
                    code, text = check(server.datadir)
                    expect(code != 0, f"{what}: omnibus check finds nothing\n{text}")
                look(server, what)
                server.kill()
            expect("panicked" not in server.log_tail(1000), f"{what}: a panic\n{server.log_tail(1000)}")
            if told[what] == "refused" and path.name in SEALED:
                _, text = check(server.datadir)
                expect("DAMAGED" in text and path.name in text, f"{what}: omnibus check does not name it\n{text}")
            shutil.rmtree(place)
            place.mkdir()
    outcomes = {outcome: list(told.values()).count(outcome) for outcome in ("whole", "refused", "an error")}
    print("damaged_files: {} whole, {} refused, {} with an error that names the file".format(*outcomes.values()))
    return outcomes


def damage_at_a_start(directory):
    """Every kind of file, damaged in every way, before a start that recovers: all that was acknowledged is there, or the start
    or whoever reads it is refused in words that name the file. Never fewer rows, never a panic."""
    origin = begin(directory, [])

    def kinds():
        files = sorted(path.relative_to(origin.datadir) for path in origin.datadir.rglob("*") if path.is_file())
        logs = [path for path in files if path.name.startswith("binlog.0")]
        tables = [path for path in files if path.parent.name == "tables"]
        return [path for path in files if path not in logs[1:-1] and path not in tables[1:] and path.name != "omnibus.lock"]

    outcomes = recover_from(origin, kinds, directory / "copy", lambda server, what: None)
    expect(all(outcomes.values()), f"one kind of outcome never comes: {outcomes}")


def damage_beside_the_log(directory):
    """The same of files that only some settings have: redo logs of transactions in two phases, files of large transactions, kept
    settings, while a branch is prepared. What it is to do when it is ended is there as well."""
    origin = begin(directory, ["--commit-protocol=group-redo", "--binlog-large-commit-threshold=100000"])
    client(origin, "SET PERSIST max_connections = 77; CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='secret'")
    client(origin, "XA START 'a'; " + "".join(f"INSERT INTO test.{engine} VALUES (20000, 'xa'); " for engine in ENGINES)
           + "XA END 'a'; XA PREPARE 'a'")
    open_one = connect(origin, autocommit=False)
    open_one.cursor().execute("INSERT INTO test.LSM VALUES " + ",".join(f"({n}, REPEAT('x', 400))" for n in range(30000, 30500)))

    def kinds():
        names = ("redo", "#binlog_cache_files", *SEALED, "binlog.index", "pre-allocated-binlog", "applied", "v")
        found = [path.relative_to(origin.datadir) for path in sorted(origin.datadir.rglob("*")) if path.is_file()]
        some = [path for path in found if any(part.startswith(names) for part in path.parts)]
        expect(sum("redo" in path.parts for path in some) == 2 and any("large" in path.name for path in some), some)
        logs = [path for path in found if path.name.startswith("binlog.0")]
        return some + [logs[len(logs) // 2], logs[-1]]

    def look(server, what):
        if what.startswith("mysqld-auto.cnf"):
            return
        expect("a" in client(server, "XA RECOVER").split(), f"{what}: the branch is gone")
        client(server, "XA COMMIT 'a'")
        for engine in ENGINES:
            found = client(server, f"SELECT v FROM test.{engine} WHERE id = 20000").strip()
            expect(found == "xa", f"{what}: the branch left no row in {engine}: {found}")

    recover_from(origin, kinds, directory / "copy", look)


def main():
    tests = (check_changes_nothing, damage_in_a_backup, a_running_server_goes_on, damage_at_a_start,
             damage_beside_the_log)
    wanted = sys.argv[1:]
    for test in tests:
        if not wanted or test.__name__ in wanted:
            with Scratch("omnibus-damage-") as name:
                (pathlib.Path(name) / "server").mkdir()
                test(pathlib.Path(name))
                print(f"damaged_files: {test.__name__} passed", flush=True)


main()
