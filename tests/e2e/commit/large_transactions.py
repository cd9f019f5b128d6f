#!/usr/bin/python3
"""Large transactions: their events go to a file that becomes a log file. Data and log are right after a clean stop and
after a crash, other tools read the log, and neither a rollback nor a crash leaves files behind.

Ring: all.
"""

import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import (PATIENCE_S, MariaDB, Omnibus, Scratch, binary, client,  # noqa: E402
                     connect, error_code, expect, replay, wait_for)

THRESHOLD = 1 << 20
# What a replay may need beside what an idle server has: its writes up to 32 MiB, what the engines keep, buffers.
REPLAY_MIB = 160


def spill_files(server):
    return [path.name for path in (server.datadir / "#binlog_cache_files").glob("*")]


def status(server, name):
    return int(client(server, f"SHOW GLOBAL STATUS LIKE '{name}'").split()[1])


def sums(server, tables=("big", "copy", "small")):
    """What is in the tables, told by every kind of read."""
    return [client(server, f"SELECT COUNT(*), SUM(CRC32(v)), MIN(id), MAX(id) FROM d.{t}; SELECT COUNT(*) FROM d.{t} "
                           f"WHERE k BETWEEN 100 AND 300; SELECT v FROM d.{t} ORDER BY id DESC LIMIT 3") for t in tables]


def fill(server):
    """A table of 8192 rows of 400 bytes; filling its last part makes transactions of more than a megabyte."""
    client(server, """
        CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE d;
        CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, k INT, v VARCHAR(500), KEY (k));
        CREATE TABLE copy LIKE big; CREATE TABLE small LIKE big;
        INSERT INTO big (k, v) VALUES (1, REPEAT('x', 380));""")
    for n in range(13):
        client(server, f"INSERT INTO d.big (k, v) SELECT k + {1 << n}, CONCAT(REPEAT('y', 380), id) FROM d.big")


def one_life(server):
    """Every way a transaction gets large; gives how many of them were committed."""
    fill(server)
    large = 1  # the last 4096 rows of 400 bytes or so
    expect(status(server, "Binlog_large_commits") == large, f"filling: {status(server, 'Binlog_large_commits')}")
    client(server, "INSERT INTO d.copy SELECT * FROM d.big")
    client(server, "UPDATE d.copy SET v = CONCAT(v, '!'), k = k + 1 WHERE id % 2 = 0")
    client(server, "DELETE FROM d.copy WHERE id % 3 = 0")
    large += 3
    db = connect(server, autocommit=False, database="d")
    with db.cursor() as cursor:
        cursor.execute("INSERT INTO small (k, v) VALUES (0, 'before')")
        cursor.execute("SAVEPOINT early")
        cursor.execute("INSERT INTO small (k, v) SELECT k, v FROM big WHERE id <= 4000")
        expect(len(spill_files(server)) == 1, "the open transaction has its file")
        cursor.execute("SAVEPOINT late")
        cursor.execute("INSERT INTO small (k, v) SELECT k, 'rolled back' FROM big WHERE id <= 3000")
        cursor.execute("ROLLBACK TO late")
        cursor.execute("UPDATE small SET v = CONCAT('changed', k) WHERE k < 500")
        # A statement that fails half way leaves nothing of it.
        code = error_code(lambda: cursor.execute("INSERT INTO small SELECT id + 3000, k, 'dup' FROM big ORDER BY id"))
        expect(code == 1062, f"duplicate key: {code}")
        db.commit()
        large += 1
        # Below the threshold again after a rollback into what was small: right whichever way it goes.
        cursor.execute("INSERT INTO small (k, v) VALUES (7000, 'kept')")
        cursor.execute("SAVEPOINT early")
        cursor.execute("INSERT INTO small (k, v) SELECT k, v FROM big")
        cursor.execute("ROLLBACK TO early")
        db.commit()
        large += 1
        before = status(server, "Binlog_large_commits")
        cursor.execute("DELETE FROM big")
        db.rollback()
        expect(status(server, "Binlog_large_commits") == before, "a rollback commits nothing")
    expect(spill_files(server) == [], f"files left behind: {spill_files(server)}")
    db.close()
    # A session that goes away.
    db = connect(server, autocommit=False, database="d")
    with db.cursor() as cursor:
        cursor.execute("UPDATE big SET v = 'never'")
    db.close()
    # Two at once, with small ones beside them.
    two_at_once(server)
    large += 2
    client(server, "SET sql_log_bin = 0; INSERT INTO d.small (k, v) SELECT k, 'private' FROM d.big WHERE id < 50;"
                   "DELETE FROM d.small WHERE v = 'private'; SET sql_log_bin = 1; ALTER TABLE d.big ADD COLUMN w INT, ALGORITHM=COPY")
    large += 1  # ALTER wrote every row anew
    expect(status(server, "Binlog_large_commits") == large, f"{status(server, 'Binlog_large_commits')}, not {large}")
    expect(status(server, "Binlog_cache_disk_use") >= large, "they count as spilled")
    # That of the session that went away goes when the server has seen it.
    wait_for(lambda: spill_files(server) == [], lambda: f"files left behind: {spill_files(server)}")


def two_at_once(server):
    failures = []

    def run(table, first):
        try:
            db = connect(server, autocommit=True, database="d")
            with db.cursor() as cursor:
                if first is None:
                    for n in range(200):
                        cursor.execute("INSERT INTO small (k, v) VALUES (%s, 'meanwhile')", (9000 + n,))
                else:
                    cursor.execute(f"INSERT INTO {table} (id, k, v) SELECT id + {first}, k, v FROM big")
            db.close()
        except Exception as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=run, args=args)
               for args in (("copy", 100000), ("copy", 200000), ("small", None), ("small", None))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, f"two at once: {failures}")


def stops_and_crashes(directory):
    server = Omnibus(directory, f"--binlog-large-commit-threshold={THRESHOLD}", "--max-binlog-size=4M")
    peer = MariaDB(directory, "--skip-log-bin")
    server.start()
    peer.start()
    try:
        expect(client(server, "SELECT @@global.binlog_large_commit_threshold").strip() == str(THRESHOLD), "the variable")
        one_life(server)
        expected = sums(server)
        # Right after a commit: nothing of it is in the engine's files yet.
        client(server, "INSERT INTO d.copy (id, k, v) SELECT id + 300000, k, v FROM d.big")
        server.kill()
        server.start()
        after = sums(server)
        expect(after[0] == expected[0] and after[2] == expected[2], "the data after a crash")
        expect(client(server, "SELECT COUNT(*) FROM d.copy WHERE id > 300000").strip() == "8192", "the last transaction")
        # In the middle of one.
        db = connect(server, autocommit=False, database="d")
        with db.cursor() as cursor:
            cursor.execute("DELETE FROM copy WHERE id > 100")
            expect(len(spill_files(server)) == 1, "the open transaction has its file")
            server.kill()
        server.start()
        expect(spill_files(server) == [], "the start removes what the crash left")
        expect(sums(server) == after, "nothing of a transaction that was not committed")
        server.stop()
        for path in server.binlogs():
            read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", "-vv", path],
                                  capture_output=True, text=True, errors="replace")
            expect(read.returncode == 0 and "ERROR" not in read.stderr, f"{path}: {read.stderr}")
        run = subprocess.run([binary(), "binlog", *server.binlogs()], capture_output=True, text=True)
        expect(run.returncode == 0, f"omnibus binlog: {run.stderr}")
        replay(server, peer)
        server.start()
        expect(sums(server) == after, "the data after a clean stop")
        theirs = sums(peer)
        expect(theirs == after, f"a replay into MariaDB:\n{theirs}\nnot\n{after}")
        administration(server)
    finally:
        server.stop()
        peer.stop()


def administration(server):
    """The log of large transactions under SHOW, PURGE and RESET."""
    db = connect(server, autocommit=True, database="d")
    with db.cursor() as cursor:
        cursor.execute("SELECT @@global.gtid_executed")
        before = int(cursor.fetchone()[0].rsplit("-", 1)[1])
        cursor.execute("INSERT INTO copy (id, k, v) SELECT id + 400000, k, v FROM big")
        cursor.execute("INSERT INTO small (k, v) VALUES (1, 'behind it')")
        cursor.execute("SELECT @@global.gtid_executed")
        expect(int(cursor.fetchone()[0].rsplit("-", 1)[1]) == before + 2, "each has its GTID")
        # The second transaction went into the same file, or into the next one if that was full. A full file is followed by
        # the next one after its last commit was acknowledged; an empty one is not.
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SHOW BINARY LOGS")
        logs = [row[0] for row in cursor.fetchall()]
        for name in logs[-3:]:
            cursor.execute(f"SHOW BINLOG EVENTS IN '{name}'")
            events = cursor.fetchall()
            if any("GTID" in row[2].upper() and f":{before + 1}'" in row[5] for row in events):
                break
        else:
            raise SystemExit(f"FAIL: no file has transaction {before + 1}: {logs}")
        positions = [(row[1], row[4]) for row in events]
        expect(all(end == start for (_, end), (start, _) in zip(positions, positions[1:])), "events without a gap")
        expect(sum(row[2] == "Xid" for row in events) >= 1, "the transaction is whole in its file")
        cursor.execute(f"PURGE BINARY LOGS TO '{logs[-1]}'")
        cursor.execute("SHOW BINARY LOGS")
        expect([row[0] for row in cursor.fetchall()] == logs[-1:], "purged")
        cursor.execute("RESET BINARY LOGS AND GTIDS")
        cursor.execute("INSERT INTO copy (id, k, v) SELECT id + 500000, k, v FROM big")
        cursor.execute("SELECT @@global.gtid_executed")
        expect(cursor.fetchone()[0].endswith(":1"), "GTIDs count from 1 again")
        expected = sums(server)
    db.close()
    server.kill()
    server.start()
    expect(sums(server) == expected, "the data after a reset and a crash")


def checksums(directory):
    """The log's checksum algorithm changes while a large transaction is open: its events are copied instead."""
    server = Omnibus(directory, f"--binlog-large-commit-threshold={THRESHOLD}")
    server.start()
    try:
        fill(server)
        db = connect(server, autocommit=False, database="d")
        with db.cursor() as cursor:
            cursor.execute("INSERT INTO copy SELECT * FROM big")
            client(server, "SET GLOBAL binlog_checksum = NONE")
            before = status(server, "Binlog_large_commits")
            db.commit()
            expect(status(server, "Binlog_large_commits") == before, "copied")
            cursor.execute("INSERT INTO small SELECT * FROM big")
            db.commit()
            expect(status(server, "Binlog_large_commits") == before + 1, "and the next one is not")
            client(server, "SET GLOBAL binlog_large_commit_threshold = 0")
            cursor.execute("DELETE FROM small")
            db.commit()
            expect(status(server, "Binlog_large_commits") == before + 1, "0 is never")
        expected = sums(server)
        server.kill()
        server.start()
        expect(sums(server) == expected, "the data after a crash")
        server.stop()
        for path in server.binlogs():
            read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", path],
                                  capture_output=True, text=True, errors="replace")
            expect(read.returncode == 0 and "ERROR" not in read.stderr, f"{path}: {read.stderr}")
    finally:
        server.stop()


class Batches(threading.Thread):
    """Commits batches of rows until the server dies, and notes which ones were acknowledged."""

    def __init__(self, server, number, rows):
        super().__init__()
        self.server, self.number, self.rows, self.acknowledged = server, number, rows, []

    def run(self):
        try:
            db = connect(self.server, autocommit=True, database="d", read_timeout=PATIENCE_S)
            with db.cursor() as cursor:
                for n in range(100000):
                    batch = self.number * 1000000 + n
                    cursor.execute(f"INSERT INTO batches (batch, v) SELECT {batch}, v FROM source LIMIT {self.rows}")
                    self.acknowledged.append((batch, self.rows))
        except Exception:  # the kill, or what it leads to
            pass


def kills(directory):
    """Killed while large and small transactions commit: each is whole or absent, and there if it was acknowledged."""
    server = Omnibus(directory, f"--binlog-large-commit-threshold={THRESHOLD}", "--max-binlog-size=8M",
                     "--lsm-memtable-size=8M")
    server.start()
    seed = seeds.of_this_run()
    choice = random.Random(seed)
    acknowledged = {}
    try:
        client(server, """CREATE DATABASE d; USE d; CREATE TABLE source (v VARCHAR(2000));
            CREATE TABLE batches (id INT PRIMARY KEY AUTO_INCREMENT, batch INT, v VARCHAR(2000), KEY (batch));
            INSERT INTO source VALUES (REPEAT('x', 1900));""" + "INSERT INTO source SELECT v FROM source;" * 10)
        promoted = 0
        for life in range(6):
            workers = [Batches(server, life * 10 + n, rows) for n, rows in enumerate((1000, 700, 5, 1))]
            for worker in workers:
                worker.start()
            wait_for(lambda: status(server, "Binlog_large_commits") > 0, "no large transaction is committed")
            time.sleep(choice.uniform(0, 1.2))
            promoted += status(server, "Binlog_large_commits")
            server.kill()
            for worker in workers:
                worker.join()
                acknowledged.update(worker.acknowledged)
            server.start()
            found = client(server, "SELECT batch, COUNT(*), COUNT(DISTINCT id) FROM d.batches GROUP BY batch")
            found = {int(batch): (int(rows), int(ids)) for batch, rows, ids in
                     (line.split() for line in found.splitlines())}
            whole = {n: rows for n, rows in enumerate((1000, 700, 5, 1))}
            for batch, (rows, ids) in found.items():
                expect(rows == ids == whole[batch // 1000000 % 10], f"seed {seed}: batch {batch} has {rows} rows")
            lost = [batch for batch in acknowledged if batch not in found]
            expect(not lost, f"seed {seed}, life {life}: acknowledged and lost: {lost}")
            expect(len(found) <= len(acknowledged) + 4 * (life + 1), f"seed {seed}: more than was asked for")
            expect(spill_files(server) == [], f"seed {seed}: files left behind: {spill_files(server)}")
        expect(promoted > 3, f"large transactions in all lives: {promoted}")
    finally:
        server.stop()


def peak(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) << 10


def replay_in_bounded_memory(directory):
    """A start that has one transaction of 240 MB to replay needs no more than a part of it in memory, for rows in either engine."""
    server = Omnibus(directory, "--sync-binlog=0", "--skip-networking", "--lsm-memtable-size=16M", "--lsm-block-cache-size=16M",
                     "--btree-cache-size=16M")
    server.start()
    client(server, "CREATE DATABASE d; CREATE TABLE d.source (k INT, v VARCHAR(9000)) CHARACTER SET latin1;"
                   + "".join(f"CREATE TABLE d.{engine} (id INT PRIMARY KEY AUTO_INCREMENT, k INT, v VARCHAR(9000), KEY (k))"
                             f" ENGINE={engine} CHARACTER SET latin1;" for engine in ("lsm", "btree"))
                   + "INSERT INTO d.source VALUES " + ", ".join(["(FLOOR(RAND() * 10000), REPEAT(MD5(RAND()), 250))"] * 200))
    server.stop()
    server.start()
    idle = peak(server)
    for engine in ("lsm", "btree"):
        server.stop()
        # As if nothing had been made persistent since.
        for name in ("lsm", "btree"):
            shutil.copytree(server.datadir / name, pathlib.Path(directory) / "before" / name)
        server.start()
        client(server, "SET autocommit = 0; " + f"INSERT INTO d.{engine} (k, v) SELECT k, v FROM d.source;" * 150 + "COMMIT")
        written = client(server, f"SELECT COUNT(*), SUM(CRC32(v)), SUM(k) FROM d.{engine}")
        server.kill()
        for name in ("lsm", "btree"):
            shutil.rmtree(server.datadir / name)
            (pathlib.Path(directory) / "before" / name).rename(server.datadir / name)
        server.start()
        needed = (peak(server) - idle) >> 20
        expect(client(server, f"SELECT COUNT(*), SUM(CRC32(v)), SUM(k) FROM d.{engine}") == written, f"{engine}: replayed")
        print(f"{engine}: {needed} MiB more than an idle start")
        expect(needed < REPLAY_MIB, f"{engine}: the replay of 240 MB needed {needed} MiB")
    server.stop()


def main():
    for test in (stops_and_crashes, checksums, kills, replay_in_bounded_memory):
        with Scratch() as directory:
            test(directory)
        print(f"ok: {test.__name__}")


if __name__ == "__main__":
    main()
