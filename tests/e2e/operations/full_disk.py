#!/usr/bin/python3
"""File systems that are really full, small ones of our own: the statement that needs the space fails, commits wait for it, and
nothing else notices. When there is space again all goes on, and after a kill -9 everything acknowledged is there.

Ring: all.
"""

import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, binary, client, connect, error_code, expect, wait_for  # noqa: E402
from peers import (OmnibusPeer, brief, create_user, expect_equal, query, replicate, status,  # noqa: E402
                   wait_caught_up)
from small_disk import MIB, Disk, allowed  # noqa: E402

ENGINES = ("LSM", "BTREE")
# "Disk full" and "The table is full".
FULL = (1021, 1114)
ROWS = 3000
# A write or a name of the log.
FULL_SAID = "the disk is full: can not"


class Writer(threading.Thread):
    """Small commits to both engines, one after the other; none may fail."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.done, self.ended, self.failed = server, 0, threading.Event(), 0

    def run(self):
        with connect(self.server, autocommit=True).cursor() as cursor:
            while not self.ended.is_set() and not self.failed:
                n = self.done + 1
                self.failed = error_code(lambda: cursor.execute(f"INSERT INTO d.small_{ENGINES[n % 2]} VALUES ({n}, REPEAT('x', 300))"))  # noqa: B023
                self.done += not self.failed

    def goes_on(self):
        goal = self.done + 20
        wait_for(lambda: self.done >= goal or self.failed, lambda: f"commits wait for ever\n{self.server.log_tail()}", timeout=120)
        expect(not self.failed, f"a commit beside the full disk failed: {self.failed}\n{self.server.log_tail()}")

    def check(self):
        self.ended.set()
        self.join()
        expect(not self.failed, f"a commit beside the full disk failed: {self.failed}")

    def rows(self, server):
        text = client(server, "SELECT id FROM d.small_LSM UNION ALL SELECT id FROM d.small_BTREE")
        return sorted(int(line) for line in text.split())


def start(directory, disk, *options):
    server = Omnibus(directory, "--max-binlog-size=1M", "--lsm-memtable-size=1M", "--binlog-reserve-size=32M", "--btree-cache-size=1M", "--local-infile=ON",
                     f"--tmpdir={directory}", *options)
    server.datadir = disk.path / "data"
    server.start()
    client(server, "CREATE DATABASE d")
    for engine in ENGINES:
        client(server, f"CREATE TABLE d.small_{engine} (id INT PRIMARY KEY, v VARCHAR(300)) ENGINE={engine};"
                       f"CREATE TABLE d.{engine} (id INT PRIMARY KEY, k INT, v VARCHAR(600)) ENGINE={engine}")
        for first in range(0, ROWS, 1000):
            values = ",".join(f"({n}, {n * 7 % ROWS}, REPEAT(CHAR(97 + {n} % 26), 500))" for n in range(first, first + 1000))
            client(server, f"INSERT INTO d.{engine} VALUES {values}")
    return server


def refused(server, sql, codes=FULL):
    with connect(server, autocommit=True, local_infile=True, database="d").cursor() as cursor:
        code = error_code(lambda: cursor.execute(sql))
    expect(code in codes, f"{sql[:80]}: error {code} on a full disk\n{server.log_tail()}")
    return code


def statements(directory):
    """What needs more space than there is in the data directory fails as one, and gives back what it had taken."""
    rows = directory / "rows"
    rows.write_text("".join(f"{n}\t{n}\t{'y' * 500}\n" for n in range(100000, 112000)))
    with Disk(directory / "disk", 64 * MIB) as disk:
        server = start(directory, disk, "--binlog-large-commit-threshold=1M")
        for engine in ENGINES:
            load = f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE {engine}"
            for sql in (load, f"ALTER TABLE {engine} ADD COLUMN c VARCHAR(100) NOT NULL DEFAULT '{'c' * 90}' FIRST, ALGORITHM=COPY",
                        f"ALTER TABLE {engine} ADD INDEX (v, k)", f"CREATE TABLE copy_{engine} AS SELECT * FROM {engine}"):
                disk.fill(left=MIB)
                # A B-tree's file has pages that the refused ones before gave back, and an index may fit those.
                fits = engine == "BTREE" and "ADD INDEX" in sql
                code = refused(server, sql, (0, *FULL) if fits else FULL)
                # As much as was left is free again, so commits need not wait.
                writer = Writer(server)
                writer.start()
                writer.goes_on()
                disk.clear()
                writer.check()
                client(server, f"DELETE FROM d.small_LSM; DELETE FROM d.small_BTREE")
                expect(client(server, f"CHECK TABLE d.{engine}").split()[-1] == "OK", "a table is damaged")
                if code == 0:
                    client(server, f"DROP INDEX v ON d.{engine}")
                count = client(server, f"SELECT COUNT(*), SUM(k), COUNT(DISTINCT k) FROM d.{engine}").split()
                expect(count == [str(ROWS), str(ROWS * (ROWS - 1) // 2), str(ROWS)], f"after {sql[:60]}: {count}")
            client(server, f"ALTER TABLE d.{engine} ADD INDEX (v, k)")
            expect(client(server, f"SHOW TABLES FROM d LIKE 'copy%'") == "", "half a table is left")
        server.kill()
        server.start()
        for engine in ENGINES:
            expect(client(server, f"SELECT COUNT(*) FROM d.{engine}").strip() == str(ROWS), f"rows of {engine} after a kill")
        expect("panicked" not in server.log_tail(10000), f"a panic\n{server.log_tail()}")
        server.kill()


def commits_wait(directory):
    """Nothing is left: commits of both engines wait until there is space, reads do not, and no engine gives up."""
    with Disk(directory / "disk", 64 * MIB) as disk:
        server = start(directory, disk)
        writer = Writer(server)
        writer.start()
        for _ in range(2):
            writer.goes_on()
            said = server.log_tail(10000).count(FULL_SAID)
            disk.fill()
            wait_for(lambda: server.log_tail(10000).count(FULL_SAID) > said, "nobody notices", timeout=120)  # noqa: B023
            for engine in ENGINES:
                expect(client(server, f"SELECT COUNT(*) FROM d.{engine}").strip() == str(ROWS), f"{engine} is not read")
            disk.clear()
            wait_for(lambda: "OFF" in client(server, "SHOW GLOBAL STATUS LIKE 'Disk_full'"), "it stays full", timeout=60)
        writer.goes_on()
        disk.fill()
        wait_for(lambda: server.log_tail(10000).count(FULL_SAID) > said + 1, "nobody notices", timeout=120)
        server.kill()
        writer.join()
        disk.clear()
        server.start()
        found = writer.rows(server)
        expect(found in (list(range(1, writer.done + 1)), list(range(1, writer.done + 2))),
               f"{writer.done} acknowledged, {len(found)} there, the last {found[-3:]}")
        expect("panicked" not in server.log_tail(10000), f"a panic\n{server.log_tail()}")
        server.kill()


def purge(directory, persisted):
    """PURGE BINARY LOGS is what makes room (SPACE-2), whatever the engines have to write for it."""
    with Disk(directory / "disk", 64 * MIB) as disk:
        server = start(directory, disk)

        def files():
            return [line.split()[0] for line in client(server, "SHOW BINARY LOGS").splitlines()]

        def more(name):
            with connect(server, autocommit=True).cursor() as cursor:
                for n in range(3):
                    cursor.execute(f"CREATE TABLE d.{name}_{n} AS SELECT * FROM d.LSM")
                    cursor.execute("FLUSH BINARY LOGS")
        more("first")
        if persisted:
            # The engines persist for this what they have.
            client(server, f"PURGE BINARY LOGS TO '{files()[2]}'")
        more("second")
        before = files()
        writer = Writer(server)
        writer.start()
        writer.goes_on()
        disk.fill()
        wait_for(lambda: FULL_SAID in server.log_tail(10000), "nobody notices", timeout=120)
        with connect(server, autocommit=True).cursor() as cursor:
            code = error_code(lambda: cursor.execute(f"PURGE BINARY LOGS TO '{before[-1]}'"))
        expect(code == 0 and files()[0] == before[-1], f"PURGE on a full disk: {code}, {files()} are left\n{server.log_tail()}")
        writer.goes_on()
        writer.check()
        server.kill()
        disk.ballast.unlink(missing_ok=True)
        server.start()
        expect(writer.rows(server) == list(range(1, writer.done + 1)), "acknowledged rows are gone")
        server.kill()


def purge_of_persisted(directory):
    purge(directory, persisted=True)


def purge_of_what_is_needed(directory):
    purge(directory, persisted=False)


def rows_fill_it(directory):
    """Rows that do not compress, until neither the log nor an engine has room; killed while it is full, and started on it."""
    with Disk(directory / "disk", 96 * MIB) as disk:
        server = start(directory, disk)
        for engine in ENGINES:
            client(server, f"CREATE TABLE d.noise_{engine} (id INT PRIMARY KEY, v VARBINARY(60000)) ENGINE={engine}")
        done = dict.fromkeys(ENGINES, 0)

        def insert(engine):
            with connect(server, autocommit=True).cursor() as cursor:
                piece = ",".join(["RANDOM_BYTES(1000)"] * 50)

                def one():
                    cursor.execute(f"INSERT INTO d.noise_{engine} VALUES ({done[engine] + 1}, CONCAT({piece}))")
                while not error_code(one, but=(2013,)):
                    done[engine] += 1

        def fill():
            threads = [threading.Thread(target=insert, args=(engine,), daemon=True) for engine in ENGINES]
            for thread in threads:
                thread.start()
            before = None

            def stands():
                nonlocal before
                now, last = dict(done), before
                before = now
                return now == last and "ON" in client(server, "SHOW GLOBAL STATUS LIKE 'Disk_full'")
            wait_for(stands, lambda: f"it is not full\n{server.log_tail()}", timeout=120, every=1)
            return threads

        def check():
            for engine in ENGINES:
                found = client(server, f"SELECT COUNT(*), MIN(id), MAX(id), MIN(LENGTH(v)) FROM d.noise_{engine}").split()
                count = int(found[0])
                expect(count in (done[engine], done[engine] + 1) and found[1:] == ["1", str(count), "50000"],
                       f"{engine}: {done[engine]} acknowledged, found {found}")
                done[engine] = count
        threads = fill()
        check()
        server.kill()
        for thread in threads:
            thread.join(60)
        # Not even what the start tries the disk with finds room.
        disk.fill()
        server.start(timeout=120)
        check()
        disk.clear()
        # Tables have the room: a purge gives what logs have, and no more.
        files = [line.split()[0] for line in client(server, "SHOW BINARY LOGS").splitlines()]
        client(server, f"PURGE BINARY LOGS TO '{files[-1]}'")
        client(server, "CREATE TABLE d.after (id INT); INSERT INTO d.after VALUES (1)")
        server.kill()
        server.start(timeout=120)
        check()
        expect(client(server, "SELECT id FROM d.after").strip() == "1", "a row after the purge is gone")
        server.kill()


def temporary_tables(directory):
    """What a session keeps for itself does not fit into tmpdir: its statement fails, and nobody else notices."""
    with Disk(directory / "disk", 64 * MIB) as disk, Disk(directory / "other", 4 * MIB) as other:
        server = start(directory, disk, "--tmp-table-size=16384", f"--tmpdir={other.path}")
        writer = Writer(server)
        writer.start()
        other.fill()
        for engine in ENGINES:
            refused(server, f"SELECT v, COUNT(*) FROM (SELECT DISTINCT CONCAT(v, id) AS v FROM {engine}) AS t GROUP BY v ORDER BY v LIMIT 2000, 1")
            with connect(server, autocommit=True, database="d").cursor() as cursor:
                cursor.execute(f"CREATE TEMPORARY TABLE mine (id INT PRIMARY KEY, v VARCHAR(600)) ENGINE={engine}")
                code = error_code(lambda: cursor.execute(f"INSERT INTO mine SELECT id, v FROM {engine}"))  # noqa: B023
                expect(code in (0, *FULL), f"a temporary table: {code}")
                cursor.execute("SELECT COUNT(*) FROM mine")
                expect(cursor.fetchone()[0] == (0 if code else ROWS), "half of a statement is left in a temporary table")
        writer.goes_on()
        writer.check()
        server.kill()


def archive(directory):
    """An archive on a full disk, which may end; the server notices nothing, and with room it goes on where it was."""
    if b"built without" in subprocess.run([binary(), "archive", "--list"], capture_output=True).stderr:
        print("full_disk: archive not run, the program was built without it")
        return
    with Disk(directory / "disk", 64 * MIB) as disk, Disk(directory / "other", 24 * MIB) as other:
        server = start(directory, disk)
        other.fill()
        target = f"file://{other.path}/archive"
        command = [binary(), "archive", "--to", target, "--socket", server.socket, "-u", "root", "--piece-seconds=0.2"]
        with open(directory / "archive.log", "wb") as log:
            first = subprocess.Popen(command, stderr=log, stdout=log)
            writer = Writer(server)
            writer.start()
            writer.goes_on()
            time.sleep(3)
            if first.poll() is None:
                first.kill()
            first.wait()
            other.clear()
            second = subprocess.Popen(command, stderr=log, stdout=log)
        writer.goes_on()
        writer.check()
        wait_for(lambda: list(other.path.rglob("archive/log/*")), lambda: (directory / "archive.log").read_text()[-2000:], timeout=60)
        expect(second.poll() is None, f"the archive ends: {(directory / 'archive.log').read_text()[-2000:]}")
        second.kill()
        second.wait()
        server.kill()


def other_disks(directory):
    """A backup's disk, and that of temporary files."""
    with Disk(directory / "disk", 64 * MIB) as disk, Disk(directory / "other", 4 * MIB) as other:
        server = start(directory, disk, "--sort-buffer-size=32768", "--tmp-table-size=1024", f"--tmpdir={other.path}")
        writer = Writer(server)
        writer.start()
        for target in (other.path / "backup", other.path / "again"):
            with connect(server, autocommit=True).cursor() as cursor:
                code = error_code(lambda: cursor.execute(f"BACKUP TO '{target}'"))  # noqa: B023
            expect(code == 1105 and "No space left" in server.log_tail(), f"BACKUP TO a full disk: {code}\n{server.log_tail()}")
            expect(list(other.path.iterdir()) == [], f"a backup that failed leaves {list(other.path.rglob('*'))}")
        for engine in ENGINES:
            # Sorted in memory that is too small, in files for which there is no room either.
            sort = f"SELECT CONCAT(v, id) AS s FROM {engine} ORDER BY s DESC LIMIT 2000, 1"
            other.fill()
            refused(server, sort)
            other.clear()
            with connect(server, database="d").cursor() as cursor:
                cursor.execute("SET sort_buffer_size = 16777216")
                cursor.execute(sort)
                expect(len(cursor.fetchall()) == 1, "the same with room")
        rows = directory / "rows"
        rows.write_text("".join(f"{n}\t{n}\t{'y' * 500}\n" for n in range(100000, 112000)))
        for engine in ENGINES:
            refused(server, f"LOAD DATA LOCAL INFILE '{rows}' INTO TABLE {engine}")
        expect(list(other.path.iterdir()) == [], f"temporary files are left: {list(other.path.iterdir())}")
        writer.goes_on()
        writer.check()
        server.kill()
        server.start()
        expect(writer.rows(server) == list(range(1, writer.done + 1)), "acknowledged rows are gone")
        server.kill()


def replica(directory):
    """A replica on a full disk waits, says so, and goes on; its source notices nothing."""
    source = OmnibusPeer(directory / "source", 1)
    source.start()
    create_user(source)
    with Disk(directory / "disk", 64 * MIB) as disk:
        copy = OmnibusPeer(directory / "replica", 2, "--max-binlog-size=1M", "--lsm-memtable-size=1M", "--binlog-reserve-size=32M", "--btree-cache-size=1M")
        copy.datadir = disk.path / "data"
        copy.start()
        replicate(copy, source, gtid=True)
        query(source, "CREATE DATABASE d")
        for engine in ENGINES:
            query(source, f"CREATE TABLE d.{engine} (id INT PRIMARY KEY, v VARCHAR(600)) ENGINE={engine}")
        number = 0

        def insert(count):
            nonlocal number
            with connect(source, autocommit=True).cursor() as cursor:
                for _ in range(count):
                    number += 1
                    cursor.execute(f"INSERT INTO d.{ENGINES[number % 2]} VALUES ({number}, REPEAT('r', 500))")
        insert(200)
        wait_caught_up(copy, source)
        for kill in (False, True):
            said = copy.log_tail(10000).count(FULL_SAID)
            disk.fill()
            # The log is filled with zeros ahead: more than that has to come.
            insert(4000)
            wait_for(lambda: copy.log_tail(10000).count(FULL_SAID) > said, "nobody notices", timeout=120)  # noqa: B023
            row = status(copy)
            expect(row["Slave_SQL_Running"] == "Yes" and int(row["Last_SQL_Errno"]) == 0, f"it waits: {brief(row)}")
            if kill:
                copy.kill()
            disk.clear()
            if kill:
                copy.start()
            wait_caught_up(copy, source)
            expect_equal(source, copy, ["d"], least_rows=number)
        expect("panicked" not in copy.log_tail(10000), f"a panic\n{copy.log_tail()}")
        copy.kill()
    source.stop()


def main():
    if not allowed():
        print("full_disk: not run, mounting is not allowed here")
        return
    tests = (statements, commits_wait, purge_of_persisted, purge_of_what_is_needed, rows_fill_it, temporary_tables, archive,
             other_disks, replica)
    for test in tests:
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        with Scratch("omnibus-full-") as name:
            test(pathlib.Path(name))
        print(f"full_disk: {test.__name__} ok", flush=True)


main()
