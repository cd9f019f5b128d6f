#!/usr/bin/python3
"""File systems that are really full, small ones of our own: the statement that needs the space fails, commits wait for it, and
nothing else notices. When there is space again all goes on, and after a kill -9 everything acknowledged is there.

Ring: all.
"""

import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, client, connect, error_code, expect, wait_for  # noqa: E402
from peers import (OmnibusPeer, brief, create_user, expect_equal, query, replicate, status,  # noqa: E402
                   wait_caught_up)

ENGINES = ("LSM", "BTREE")
# "Disk full" and "The table is full".
FULL = (1021, 1114)
MIB = 1 << 20
ROWS = 3000
# A write or a name of the log.
FULL_SAID = "the disk is full: can not"


class Disk:
    """A file system of so many bytes."""

    def __init__(self, path, size):
        self.path, self.ballast = pathlib.Path(path), pathlib.Path(path) / "ballast"
        self.path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(self.path)], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.path)], check=True)

    def free(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_frsize

    def fill(self, left=0):
        """Leaves so many bytes, or none."""
        with open(self.ballast, "wb", buffering=0) as file:
            try:
                while (size := min(self.free() - left, MIB)) > 0:
                    file.write(bytes(size))
            except OSError:
                pass

    def clear(self):
        self.ballast.unlink()


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
    server = Omnibus(directory, "--max-binlog-size=1M", "--lsm-memtable-size=1M", "--btree-cache-size=1M", "--local-infile=ON",
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
                refused(server, sql)
                # As much as was left is free again, so commits need not wait.
                writer = Writer(server)
                writer.start()
                writer.goes_on()
                disk.clear()
                writer.check()
                client(server, f"DELETE FROM d.small_LSM; DELETE FROM d.small_BTREE; CHECK TABLE d.{engine}")
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
    """PURGE BINARY LOGS is what makes room: it waits for none. What recovery needs stays, and it says so."""
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
        # 1378: the engines could not persist the newest ones. 1377: there is no room for the list of what goes.
        expect(code in (0, 1377, 1378), f"PURGE on a full disk: {code}\n{server.log_tail()}")
        gone = set(before) - set(files())
        print(f"full_disk: PURGE gave {code} and made {len(gone)} of {len(before)} files go", flush=True)
        expect(gone or code, "it did nothing, and did not say so")
        if not gone:
            disk.clear()
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
        copy = OmnibusPeer(directory / "replica", 2, "--max-binlog-size=1M", "--lsm-memtable-size=1M", "--btree-cache-size=1M")
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
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        print("full_disk: not run, mounting is not allowed here")
        return
    for test in (statements, commits_wait, purge_of_persisted, purge_of_what_is_needed, other_disks, replica):
        if sys.argv[1:] and test.__name__ not in sys.argv[1:]:
            continue
        with Scratch("omnibus-full-") as name:
            test(pathlib.Path(name))
        print(f"full_disk: {test.__name__} ok", flush=True)


main()
