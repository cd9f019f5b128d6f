#!/usr/bin/python3
"""`omnibus archive` and `omnibus restore --until`: what was committed is in the archive, and any point of it comes back.

Told independently: one session writes numbered rows, one transaction each, in both engines, and notes after each what the
server calls that place: GTID, position, time. Others write beside it, so that groups have several transactions. A server on
what was restored as of a place has exactly the rows up to it. The store is a folder, and a real S3 server; archiver, server and
store are killed at any moment. The log may be encrypted and its transactions compressed: what is archived is in clear text.

Ring: all.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import (Omnibus, Scratch, Session, binary, client, connect, error_code, expect,  # noqa: E402
                     wait_for)
from peers import OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402
from stores import S3  # noqa: E402

TABLES = ("LSM", "BTREE")


def fill(server):
    client(server, "CREATE DATABASE a")
    for engine in TABLES:
        client(server, f"CREATE TABLE a.n_{engine} (n INT PRIMARY KEY, note VARCHAR(100)) ENGINE={engine};"
                       f"CREATE TABLE a.load_{engine} (c INT, n INT, note VARCHAR(2000), PRIMARY KEY (c, n)) ENGINE={engine}")


class Numbers:
    """Numbered transactions, and what is known of each."""

    def __init__(self, server, mariadb=False):
        self.server, self.mariadb, self.places = server, mariadb, []
        self.session = Session(server)

    def again(self):
        self.session = Session(self.server)

    def one(self):
        n = len(self.places) + 1
        self.session("BEGIN")
        for engine in TABLES:
            self.session(f"INSERT INTO a.n_{engine} VALUES ({n}, 'number {n}')")
        self.session("COMMIT")
        gtid = self.session.value("SELECT @@last_gtid") if self.mariadb else None
        time_us = self.session.value("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)")
        self.places.append({"n": n, "us": time_us, "gtid": gtid})

    def many(self, count):
        for _ in range(count):
            self.one()


class Load(threading.Thread):
    """Transactions beside them."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.stop, self.n = server, number, threading.Event(), 0

    def run(self):
        db = connect(self.server, autocommit=False)
        with db.cursor() as cursor:
            while not self.stop.is_set():
                self.n += 1
                for engine in TABLES:
                    cursor.execute(f"INSERT INTO a.load_{engine} VALUES (%s, %s, REPEAT('x', %s))", (self.number, self.n, self.n % 1500))
                db.commit()
                time.sleep(0.002)


class Archiver:
    """`omnibus archive`, which may be killed and started again."""

    def __init__(self, server, url, *options, env=None, backup=True):
        self.server, self.url, self.env, self.process = server, url, env, None
        self.log = server.directory / "archiver.log"
        self.command = [binary(), "archive", "--to", url, "--socket", server.socket, "-u", "root", "--json", "--piece-seconds=0.2"]
        self.command += ["--backup-in", str(server.directory)] if backup else []
        self.command += options

    def start(self):
        self.out = open(self.log, "ab")
        self.process = subprocess.Popen(self.command, stdout=self.out, stderr=self.out, env=self.env)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def once(self):
        run = subprocess.run([*self.command, "--once"], capture_output=True, text=True, env=self.env)
        return run.returncode, run.stdout, run.stderr

    def lines(self, kind):
        found = []
        for line in self.log.read_text().splitlines():
            if line.startswith("{") and json.loads(line)["type"] == kind:
                found.append(json.loads(line))
        return found

    def listing(self):
        run = subprocess.run([binary(), "archive", "--to", self.url, "--list", "--json"], capture_output=True, text=True, env=self.env)
        expect(run.returncode == 0, f"--list: {run.stderr}")
        return json.loads(run.stdout)

    def has_all(self):
        """Whether the archive's log ends where the server's does."""
        file, position = client(self.server, "SHOW BINARY LOG STATUS" if "mariadb" not in " ".join(self.server.options) else "SHOW MASTER STATUS").split("\t")[:2]
        shipped = [line for line in self.lines("shipped") + self.lines("checked") if line["file"] == file]
        return bool(shipped) and max(line["position"] for line in shipped) >= int(position)

    def wait(self):
        def state():
            expect(self.process.poll() is None, f"the archiver ended: {self.log.read_text()[-2000:]}")
            return self.has_all()
        wait_for(state, lambda: f"the archive does not get on: {self.log.read_text()[-2000:]}", every=0.2)


def restore(archiver, name, until=None, *options):
    """A server on what was restored, and what the program said."""
    folder = archiver.server.directory / name
    folder.mkdir()
    copy = Omnibus(folder, *options, *[option for option in archiver.server.options if "dialect" in option])
    more = ["--until", until] if until else []
    run = subprocess.run([binary(), "restore", "--from", archiver.url, "--datadir", str(copy.datadir), "--json", *more],
                         capture_output=True, text=True, env=archiver.env)
    expect(run.returncode == 0, f"restore --until {until}: {run.stderr}")
    return copy, json.loads(run.stdout.splitlines()[-1])


def refused(archiver, name, until=None):
    folder = archiver.server.directory / name
    run = subprocess.run([binary(), "restore", "--from", archiver.url, "--datadir", str(folder), *(["--until", until] if until else [])],
                         capture_output=True, text=True, env=archiver.env)
    expect(run.returncode == 1, f"restore --until {until} succeeded: {run.stdout}")
    return run.stderr


def numbers_are(copy, expected):
    """Started, it has the rows 1 to `expected` in both engines, and the load's without a hole, the same in both."""
    copy.start()
    try:
        for engine in TABLES:
            found = client(copy, f"SELECT COUNT(*), COALESCE(MAX(n), 0) FROM a.n_{engine}").split()
            expect(found == [str(expected)] * 2, f"{engine} has {found} numbers, not {expected}")
            holes = client(copy, f"SELECT c, COUNT(*), MAX(n) FROM a.load_{engine} GROUP BY c HAVING COUNT(*) <> MAX(n)")
            expect(holes == "", f"the load has holes in {engine}: {holes}")
        sums = [client(copy, f"SELECT c, COUNT(*) FROM a.load_{engine} GROUP BY c ORDER BY c") for engine in TABLES]
        expect(sums[0] == sums[1], f"the engines differ: {sums}")
        return client(copy, "SELECT @@GLOBAL.gtid_executed").strip() if "dialect" not in " ".join(copy.options) else None
    finally:
        copy.stop()


def same_rows(server, copy):
    """Both have the same tables."""
    copy.start()
    try:
        for engine in TABLES:
            for table in ("n", "load"):
                sums = [client(one, f"CHECKSUM TABLE a.{table}_{engine}") for one in (server, copy)]
                expect(sums[0] == sums[1], f"{table}_{engine}: {sums}")
        sets = [client(one, "SELECT @@GLOBAL.gtid_executed") for one in (server, copy)]
        expect(sets[0] == sets[1], f"gtid_executed: {sets}")
    finally:
        copy.stop()


def log_is_the_servers(server, copy, last):
    """Finished files are the server's, byte for byte."""
    there = {pathlib.Path(path).name: path for path in server.binlogs()}
    for path in copy.binlogs():
        name = pathlib.Path(path).name
        if name >= last:
            break
        mine_bytes = pathlib.Path(path).read_bytes()
        theirs = pathlib.Path(there[name]).read_bytes()
        expect(theirs == mine_bytes, f"{name} is another one: {len(theirs)} and {len(mine_bytes)} bytes")


def gtid_of(server, n):
    """The GTID of number n, by the log itself."""
    keyring = [option for option in server.options if "keyring" in option]
    out = subprocess.run([binary(), "binlog", *keyring, "--json", *server.binlogs()], capture_output=True, text=True).stdout
    gtid = None
    for line in map(json.loads, out.splitlines()):
        if line["type"] == "begin":
            gtid = line["gtid"]
        elif line["type"] == "rows" and line.get("table") == "n_LSM" and any(
                row["after"].get("@1", row["after"].get("n")) == n for row in line["rows"]):
            return gtid, line
    raise SystemExit(f"FAIL: number {n} is not in the log")


def any_point_comes_back(directory):
    """GTID, time and position, in the middle of groups, over several files, with kills of archiver and server."""
    server = Omnibus(directory, "--max-binlog-size=256K", "--lsm-memtable-size=1M", "--binlog-group-commit-sync-delay=3000")
    server.start()
    fill(server)
    archiver = Archiver(server, f"file://{directory}/archive", "--backup-every=2")
    archiver.start()
    numbers = Numbers(server)
    wait_for(lambda: archiver.log.exists() and archiver.lines("backup"), lambda: f"no base backup: {archiver.log.read_text()}")
    marks = []
    for round_number in range(3):
        load = [Load(server, round_number * 10 + number) for number in range(4)]
        for thread in load:
            thread.start()
        numbers.many(15)
        archiver.kill()
        numbers.many(10)
        archiver.start()
        numbers.many(5)
        at = numbers.session("SHOW BINARY LOG STATUS")[0]
        marks.append((len(numbers.places), f"{at[0]}:{at[1]}"))
        for thread in load:
            thread.stop.set()
            thread.join()
        if round_number == 1:
            client(server, "SET SESSION binlog_format=STATEMENT; CREATE TABLE a.ddl (i INT); INSERT INTO a.ddl VALUES (1); FLUSH LOGS")
            archiver.wait()
            server.kill()
            server.start()
            numbers.again()
    archiver.wait()
    wait_for(lambda: len(archiver.lines("backup")) > 1, "no second base backup")
    archiver.kill()
    copy, done = restore(archiver, "newest")
    same_rows(server, copy)
    log_is_the_servers(server, copy, done["file"])
    executed = client(server, "SELECT @@GLOBAL.gtid_executed").strip()
    expect(done["gtid_executed"] == executed, f"restore told {done}, the server executed {executed}")
    backups = archiver.listing()["backups"]
    expect(len(backups) >= 2, f"one base backup only: {backups}")
    first_n = 1 + len([place for place in numbers.places if place["us"] <= backups[0]["taken_us"]])
    for n in sorted({first_n + 1, first_n + 17, 33, 47, 61, len(numbers.places)}):
        gtid, _ = gtid_of(server, n)
        copy, done = restore(archiver, f"gtid{n}", gtid)
        mine = numbers_are(copy, n)
        expect(mine == done["gtid_executed"], f"restore told {done}, the copy executed {mine}")
    for n in (first_n + 5, 40, 70):
        copy, done = restore(archiver, f"time{n}", utc(numbers.places[n - 1]["us"]))
        numbers_are(copy, n)
    for number, (n, place) in enumerate(marks):
        copy, done = restore(archiver, f"position{number}", place)
        numbers_are(copy, n)
    # A restored server is a server, and its log is another one from there on.
    copy.start()
    client(copy, "INSERT INTO a.ddl VALUES (2)")
    run = subprocess.run([*archiver.command[:4], "--socket", copy.socket, "-u", "root", "--once"], capture_output=True, text=True)
    expect(run.returncode == 1 and "archive it to another place" in run.stderr, f"archived over the original: {run.stderr}")
    copy.stop()
    later = refused(archiver, "later", gtid.rsplit(":", 1)[0] + ":999999")
    expect("is not in it" in later, later)
    early = refused(archiver, "early", "2020-01-01 00:00:00")
    expect("does not reach back" in early, early)
    damage(archiver, gtid)
    server.stop()


def utc(us):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(us // 1_000_000)) + f".{us % 1_000_000:06}"


def damage(archiver, gtid):
    """What is damaged or missing is named, and no data directory is made."""
    root = pathlib.Path(archiver.url.removeprefix("file://"))
    newest = archiver.listing()["backups"][-1]
    pieces = sorted((root / "log" / newest["file"]).iterdir())
    whole = pieces[-1].read_bytes()
    pieces[-1].write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    said = refused(archiver, "damaged")
    expect(pieces[-1].name in said and "checksum" in said, said)
    pieces[-1].write_bytes(whole)
    files = sorted(path for path in (root / "backups" / newest["id"]).rglob("*") if path.is_file())
    held = files[-1].read_bytes()
    files[-1].write_bytes(held[:-1])
    said = refused(archiver, "damaged2")
    expect(files[-1].name in said, said)
    expect("not finished" in start_fails(archiver.server.directory / "damaged2"), "a server opened what was not restored")
    files[-1].write_bytes(held)
    # The log of the first backup runs through all files: one that is gone is a gap.
    files = [path.name for path in sorted((root / "log").iterdir()) if path.is_dir()]
    gone = files[-2]
    (root / "log" / gone).rename(root / "gone")
    said = refused(archiver, "gap", archiver.listing()["log"][-1]["file"] + ":100000000")
    expect("gap" in said or "is not in it" in said, said)
    (root / "gone").rename(root / "log" / gone)


def start_fails(datadir):
    run = subprocess.run([binary(), "serve", "--datadir", str(datadir), "--socket", str(datadir) + ".sock", "--skip-networking"],
                         capture_output=True, text=True, timeout=60)
    return run.stdout + run.stderr


def s3_with_kills(directory):
    """A real S3 server. Server, archiver and store are killed; what was acknowledged longer ago than a piece is there."""
    store = S3(directory / "s3")
    store.start()
    server = Omnibus(directory, "--max-binlog-size=256K", "--lsm-memtable-size=1M")
    server.start()
    fill(server)
    archiver = Archiver(server, f"s3://{store.bucket}/one/two", "--backup-every=5", env=store.variables())
    archiver.start()
    numbers = Numbers(server)
    wait_for(lambda: archiver.lines("backup"), lambda: f"no base backup: {archiver.log.read_text()}")
    for round_number in range(3):
        load = [Load(server, round_number * 10 + number) for number in range(3)]
        for thread in load:
            thread.start()
        numbers.many(10)
        store.kill()
        numbers.many(20)
        wait_for(lambda: archiver.process.poll() is not None or archiver.lines("trouble"), "nobody notices that the store is gone")
        expect(archiver.process.poll() is None, f"the archiver gave up: {archiver.log.read_text()[-2000:]}")
        store.start()
        numbers.many(5)
        archiver.kill()
        for thread in load:
            thread.stop.set()
            thread.join()
        server.kill()
        server.start()
        archiver.start()
        numbers.again()
    archiver.wait()
    # All three at once, while it writes: no more is lost than what the archiver had not said.
    load = Load(server, 99)
    load.start()
    numbers.many(20)
    archiver.wait()
    known = len(numbers.places)
    load.stop.set()
    load.join()
    for process in (server, archiver, store):
        process.kill()
    store.start()
    copy, done = restore(archiver, "all")
    copy.start()
    found = int(client(copy, "SELECT COUNT(*) FROM a.n_LSM"))
    copy.stop()
    expect(found == known, f"{found} of {known} numbers are in the archive")
    server.start()
    archiver.start()
    archiver.wait()
    archiver.kill()
    copy, done = restore(archiver, "again")
    same_rows(server, copy)
    gtid, _ = gtid_of(server, 30)
    copy, done = restore(archiver, "gtid", gtid)
    numbers_are(copy, 30)
    server.stop()
    store.kill()


def mariadb_dialect(directory):
    """GTIDs of the other dialect."""
    server = Omnibus(directory, "--dialect=mariadb", "--max-binlog-size=128K", "--binlog-group-commit-sync-delay=3000")
    server.start()
    fill(server)
    archiver = Archiver(server, f"file://{directory}/archive")
    code, _, said = archiver.once()
    expect(code == 0, said)
    numbers = Numbers(server, mariadb=True)
    load = [Load(server, number) for number in range(3)]
    for thread in load:
        thread.start()
    numbers.many(40)
    for thread in load:
        thread.stop.set()
        thread.join()
    code, _, said = archiver.once()
    expect(code == 0, said)
    for n in (3, 21, 40):
        copy, done = restore(archiver, f"gtid{n}", numbers.places[n - 1]["gtid"])
        numbers_are(copy, n)
    server.stop()


def of_a_replica_through_a_failover(directory):
    """The archive of a replica goes on when its source dies and another one takes over: one log, with the transactions of both by their own GTIDs."""
    first, other, replica = servers = [OmnibusPeer(directory / str(number), number, "--max-binlog-size=128K", "--binlog-transaction-compression=ON")
                                       for number in (1, 2, 3)]
    for server in servers:
        server.start()
        create_user(server)
    for follower in (other, replica):
        replicate(follower, first, gtid=True)
    fill(first)
    archiver = Archiver(replica, f"file://{directory}/archive")
    archiver.start()
    wait_for(lambda: archiver.log.exists() and archiver.lines("backup"), lambda: f"no base backup: {archiver.log.read_text()}")
    numbers = Numbers(first)
    numbers.many(20)
    for follower in (other, replica):
        wait_caught_up(follower, first)
    first.kill()
    client(other, "STOP REPLICA; RESET REPLICA ALL")
    client(replica, "STOP REPLICA")
    replicate(replica, other, gtid=True)
    numbers.server = other
    numbers.again()
    numbers.many(20)
    wait_caught_up(replica, other)
    archiver.wait()
    uuids = [client(other, f"SELECT SUBSTRING_INDEX('{gtid_of(replica, n)[0]}', ':', 1)").strip() for n in (20, 21)]
    expect(uuids == [(server.datadir / "auto.cnf").read_text().split("server-uuid=")[1].split()[0] for server in (first, other)], f"GTIDs of {uuids}")
    first.start()
    client(first, "SET GLOBAL super_read_only = ON")
    replicate(first, other, gtid=True)
    numbers.many(5)
    wait_caught_up(replica, other)
    archiver.wait()
    for n in (20, 21, 33, 45):
        copy, done = restore(archiver, f"number{n}", gtid_of(replica, n)[0], "--skip-replica-start")
        expect(numbers_are(copy, n) == done["gtid_executed"], f"number {n}: {done}")
    copy, _ = restore(archiver, "newest", None, "--skip-replica-start")
    same_rows(other, copy)
    expect(not archiver.lines("trouble"), f"{archiver.lines('trouble')}")
    archiver.kill()
    for server in servers:
        server.stop()


def encrypted_and_compressed(directory):
    """Clear text in the archive; a base backup's own log files need the keyring of then. Keys change, encryption goes off and on."""
    keyring, of_then = directory / "keyring", directory / "keyring-of-then"
    server = Omnibus(directory, f"--keyring-file-data={keyring}", "--binlog-encryption=ON", "--binlog-transaction-compression=ON",
                     "--max-binlog-size=256K", "--lsm-memtable-size=1M", "--binlog-large-commit-threshold=100000")
    server.start()
    fill(server)
    archiver = Archiver(server, f"file://{directory}/archive")
    archiver.start()
    wait_for(lambda: archiver.log.exists() and archiver.lines("backup"), lambda: f"no base backup: {archiver.log.read_text()}")
    shutil.copy(keyring, of_then)
    numbers, marks, places = Numbers(server), [], []
    for change in ("ALTER INSTANCE ROTATE BINLOG MASTER KEY", "SET GLOBAL binlog_encryption = OFF", "SET GLOBAL binlog_encryption = ON"):
        load = [Load(server, len(marks) * 10 + number) for number in range(3)]
        for thread in load:
            thread.start()
        numbers.many(10)
        archiver.kill()
        client(server, change)
        numbers.many(10)
        # One that becomes a log file of its own.
        client(server, f"INSERT INTO a.load_LSM SELECT 1000 + n, 1, REPEAT('y', 2000) FROM a.n_LSM; INSERT INTO a.load_BTREE SELECT * FROM a.load_LSM WHERE c >= 1000;"
                       f"DELETE FROM a.load_LSM WHERE c >= 1000; DELETE FROM a.load_BTREE WHERE c >= 1000")
        archiver.start()
        numbers.many(5)
        at = numbers.session("SHOW BINARY LOG STATUS")[0]
        places.append((len(numbers.places), f"{at[0]}:{at[1]}"))
        marks.append(len(numbers.places))
        for thread in load:
            thread.stop.set()
            thread.join()
        archiver.wait()
        server.kill()
        server.start()
        numbers.again()
    archiver.wait()
    archiver.kill()
    states = {row[2] for row in numbers.session("SHOW BINARY LOGS")}
    expect(states == {"Yes", "No"}, f"files are encrypted: {states}")
    keys = f"--keyring-file-data={of_then}"
    copy, done = restore(archiver, "newest", None, keys)
    same_rows(server, copy)
    for n in (7, marks[0] - 5, marks[1] - 5, marks[2]):
        gtid, _ = gtid_of(server, n)
        copy, done = restore(archiver, f"gtid{n}", gtid, keys)
        mine = numbers_are(copy, n)
        expect(mine == done["gtid_executed"], f"restore told {done}, the copy executed {mine}")
    n = marks[1] + 3
    copy, done = restore(archiver, f"time{n}", utc(numbers.places[n - 1]["us"]), keys)
    numbers_are(copy, n)
    for number, (n, place) in enumerate(places):
        copy, done = restore(archiver, f"position{number}", place, keys)
        numbers_are(copy, n)
    for piece in (directory / "archive" / "log").rglob("0000000000000000-*"):
        expect(piece.read_bytes()[:4] == b"\xfebin", f"{piece} is encrypted")
    server.stop()


def purges_and_resets(directory):
    """A server that has no more what comes next, or another log."""
    server = Omnibus(directory)
    server.start()
    fill(server)
    root = Session(server)
    bare = Archiver(server, f"file://{directory}/archive", backup=False)
    code, _, said = bare.once()
    expect(code == 0, said)
    said = refused(bare, "nothing")
    expect("has no base backup" in said, said)
    # While it follows, what it has not read yet is not purged, however often somebody asks (warning 1867).
    archiver = Archiver(server, f"file://{directory}/archive")
    archiver.start()
    archiver.wait()
    load = Load(server, 1)
    load.start()
    for _ in range(20):
        root("FLUSH BINARY LOGS")
        root(f"PURGE BINARY LOGS TO '{root('SHOW BINARY LOGS')[-1][0]}'")
    load.stop.set()
    load.join()
    root("INSERT INTO a.n_LSM VALUES (1, 'x')")
    archiver.wait()
    archiver.kill()
    copy, _ = restore(archiver, "purged")
    same_rows(server, copy)
    # Gone, it holds nothing back: without a new base backup there would be a gap.
    root.run("FLUSH BINARY LOGS", "INSERT INTO a.n_LSM VALUES (2, 'x')", "FLUSH BINARY LOGS")
    newest = root("SHOW BINARY LOGS")[-1][0]
    wait_for(lambda: not root("SHOW PROCESSLIST") or "Binlog Dump" not in str(root("SHOW PROCESSLIST")), "the dump stays")
    root(f"PURGE BINARY LOGS TO '{newest}'")
    expect(len(root("SHOW BINARY LOGS")) == 1, "the dump still holds files")
    code, _, said = bare.once()
    expect(code == 1 and "Begin again with a base backup" in said, said)
    root("INSERT INTO a.n_LSM VALUES (3, 'x')")
    code, told, said = archiver.once()
    expect(code == 0 and '"type":"backup"' in told, told + said)
    copy, _ = restore(archiver, "newest")
    copy.start()
    expect(client(copy, "SELECT COUNT(*) FROM a.n_LSM") == "3\n", "rows of behind the gap are missing")
    copy.stop()
    root("RESET BINARY LOGS AND GTIDS")
    root("INSERT INTO a.n_LSM VALUES (4, 'x')")
    code, _, said = archiver.once()
    expect(code == 1 and "The log was reset" in said, f"a log that was reset: {said}")
    other = Omnibus(directory / "other")
    other.directory.mkdir()
    other.start()
    run = subprocess.run([*archiver.command[:4], "--socket", other.socket, "-u", "root", "--once"], capture_output=True, text=True)
    expect(run.returncode == 1 and "is the archive of server" in run.stderr, run.stderr)
    other.stop()
    server.stop()


def old_things_go(directory):
    """Retention keeps what the last days need, and nothing else."""
    server = Omnibus(directory)
    server.start()
    fill(server)
    root = Session(server)
    archiver = Archiver(server, f"file://{directory}/archive", "--backup-every=0.01", "--keep-days=0.00001")
    for number in range(4):
        root.run(f"INSERT INTO a.n_LSM VALUES ({number}, 'x')", "FLUSH BINARY LOGS")
        time.sleep(1)
        code, told, said = archiver.once()
        expect(code == 0, told + said)
    there = archiver.listing()
    expect(1 <= len(there["backups"]) <= 2, f"backups: {there['backups']}")
    expect(there["log"][0]["file"] == there["backups"][0]["file"], f"{there}")
    copy, _ = restore(archiver, "newest")
    copy.start()
    expect(client(copy, "SELECT COUNT(*) FROM a.n_LSM") == "4\n", "rows are missing")
    copy.stop()
    # A backup that was cut short is nobody's.
    folder = directory / "archive/backups/20200101T000000.000000Z/lsm"
    folder.mkdir(parents=True)
    (folder / "x").write_text("x")
    expect(len(archiver.listing()["backups"]) == len(there["backups"]), "half a backup is listed")
    code, told, said = archiver.once()
    expect(code == 0 and not (folder / "x").exists(), "what a killed one left stays")
    server.stop()


def addresses(directory):
    """What is read is not made, what is written has its folder above it, and no user and password are told."""
    def said(*args):
        run = subprocess.run([binary(), *args], capture_output=True, text=True, timeout=60)
        expect(run.returncode == 1, f"{args}: {run}")
        return run.stdout + run.stderr
    missing = f"file://{directory}/mistyped"
    expect("there is no such folder" in said("archive", "--list", "--to", missing), "--list of nothing")
    expect("there is no such folder" in said("restore", "--from", missing, "--datadir", f"{directory}/new"), "restore of nothing")
    said("archive", "--once", "--to", f"file://{directory}/volume/deep/archive", "--socket", f"{directory}/none.sock")
    expect(list(directory.iterdir()) == [], f"something was made: {list(directory.iterdir())}")
    for url in ("http://carl:geheim@host/bucket", "s3://carl:geheim@bucket/prefix", "https://carl:ge/heim@host", "file://carl:geheim@host/x"):
        text = said("archive", "--list", "--to", url) + said("restore", "--from", url, "--datadir", f"{directory}/new")
        expect("heim" not in text and "carl" not in text, f"{url}: {text}")
    os.environ.update(AWS_ENDPOINT_URL="http://carl:geheim@127.0.0.1:1", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y")
    text = said("archive", "--list", "--to", "s3://bucket/prefix")
    expect("geheim" not in text and "carl" not in text, text)


def main():
    wanted = sys.argv[1:]
    tests = (addresses, any_point_comes_back, s3_with_kills, mariadb_dialect, of_a_replica_through_a_failover, encrypted_and_compressed,
             purges_and_resets, old_things_go)
    tests = [test for test in tests if not wanted or test.__name__ in wanted]
    for test in tests:
        with Scratch("omnibus-archive-") as name:
            began = time.monotonic()
            test(pathlib.Path(name))
            print(f"{test.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"archive: {len(tests)} passed, 0 failed")


main()
