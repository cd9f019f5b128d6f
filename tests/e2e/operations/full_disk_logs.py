#!/usr/bin/python3
"""A disk that the server's own logs have filled (SPACE-1, SPACE-2, COMMIT-4): it says so wherever somebody looks, reads go on, KILL ends
what is not decided yet, PURGE BINARY LOGS makes room by itself, also after a kill -9 and a start on the full disk, and everything
acknowledged is there. Both engines as below; with `--seed N` one of many kinds of disk, writer, file and moment of the kill instead, which `make hunt` draws.

    full_disk_logs.py [LSM|BTREE] [--seed N]

Ring: gate.
"""

import dataclasses
import http.client
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, client, connect, error_code, expect, free_port, wait_for  # noqa: E402
from small_disk import MIB, Disk, allowed  # noqa: E402

import pymysql  # noqa: E402

ENGINES = ("LSM", "BTREE")
SAID, OVER = "the disk is full: can not write", "there is space on the disk again"
WAITS = "waiting for disk space"


@dataclasses.dataclass
class Kind:
    """What is filled, by whom; sizes are bytes."""

    engine: str
    disk: int = 64 * MIB
    log: int = 2 * MIB
    memtable: int = MIB
    cache: int = MIB
    writers: int = 3
    value: int = 60000
    # Seconds between the full disk and the kill.
    kill_after: float = 0

    @classmethod
    def drawn(cls, rng):
        return cls(rng.choice(ENGINES), rng.randrange(80, 140) * MIB, rng.choice((1, 2, 4, 8)) * MIB, rng.choice((1, 2, 8)) * MIB, rng.choice((1, 4)) * MIB,
                   rng.randrange(1, 9), rng.choice((500, 5000, 60000, 300000)), rng.choice((0, 0.1, 1.5)))


class Writer(threading.Thread):
    """Changes one row again and again; `done` is the last value that was acknowledged."""

    def __init__(self, server, row, done, size):
        super().__init__(daemon=True)
        self.size, self.server, self.row, self.done, self.ended, self.failed = size, server, row, done, threading.Event(), None

    def run(self):
        try:
            with connect(self.server, autocommit=True).cursor() as cursor:
                while not self.ended.is_set():
                    n = self.done + 1
                    cursor.execute(f"UPDATE d.t SET n = {n}, v = REPEAT(CHAR(97 + {n} % 26), {self.size}) WHERE id = {self.row}")
                    self.done = n
        except pymysql.Error as error:
            self.failed = error


class Waiter(threading.Thread):
    """One statement that waits for room."""

    def __init__(self, server, sql):
        super().__init__(daemon=True)
        self.connection, self.sql, self.code = connect(server, autocommit=True), sql, None
        self.number = self.connection.thread_id()
        self.start()

    def run(self):
        with self.connection.cursor() as cursor:
            self.code = error_code(lambda: cursor.execute(self.sql))

    def waits(self, states):
        """False if it has ended because there was room after all."""
        wait_for(lambda: self.code is not None or states().get(self.number) == WAITS, lambda: f"{self.sql} does not wait: {states()}", timeout=60)
        expect(self.code in (None, 0), f"{self.sql} failed: {self.code}")
        return self.code is None

    def is_killed(self, server, had_room):
        client(server, f"KILL QUERY {self.number}", check=False)
        self.join(60)
        expect(self.code == 1317 or self.code == 0 and had_room(), f"{self.sql}: KILL QUERY gave {self.code}")


class World:
    """A server on a small disk that writers fill with logs."""

    def __init__(self, directory, disk, kind):
        self.port, self.kind, engine = free_port(), kind, kind.engine
        self.server = Omnibus(directory, f"--max-binlog-size={kind.log}", f"--lsm-memtable-size={kind.memtable}", "--binlog-reserve-size=32M",
                              f"--btree-cache-size={kind.cache}", f"--http-address={self.port}", f"--tmpdir={directory}")
        self.server.datadir = disk.path / "data"
        self.server.start()
        client(self.server, f"CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT, v LONGTEXT) ENGINE={engine}")
        client(self.server, f"CREATE TABLE d.other (id INT PRIMARY KEY) ENGINE={engine}")
        for row in range(kind.writers):
            client(self.server, f"INSERT INTO d.t VALUES ({row}, 0, '')")
        self.done = [0] * kind.writers
        wait_for(lambda: int(self.status("Disk_reserve_bytes")) > 0, "there is no reserve", timeout=60)

    def status(self, name):
        return client(self.server, f"SHOW GLOBAL STATUS LIKE '{name}'").split("\t")[1].strip()

    def states(self):
        lines = [line.split("\t") for line in client(self.server, "SHOW PROCESSLIST").splitlines()]
        return {int(line[0]): line[6] for line in lines}

    def healthz(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def said(self, what):
        return self.server.log_tail(10000).count(what)

    def files(self):
        return [line.split()[0] for line in client(self.server, "SHOW BINARY LOGS").splitlines()]

    def fill(self):
        """Writes until nothing goes on."""
        self.writers = [Writer(self.server, row, done, self.kind.value) for row, done in enumerate(self.done)]
        for writer in self.writers:
            writer.start()
        self.stands()

    def stands(self):
        """Waits until all writers wait for room, which the log has looked for in vain more than once: a compaction may leave some."""
        seen = []

        def stands():
            full = list(self.states().values()).count(WAITS) >= self.kind.writers and self.status("Disk_full") == "ON"
            seen.append([writer.done for writer in self.writers] if full else None)
            return len(seen) > 3 and full and seen[-4:] == seen[-1:] * 4
        wait_for(stands, lambda: f"it is not full\n{self.server.log_tail()}", timeout=120, every=0.5)

    def waiter(self, sql):
        """Gives a statement that waits for room. One that finds some is asked again, with another number, when there is none again."""
        for attempt in range(10):
            times = int(self.status("Disk_full_times"))
            waiter = Waiter(self.server, sql.format(attempt))
            if waiter.waits(self.states):
                return waiter
            self.stands()
            expect(int(self.status("Disk_full_times")) > times, f"{sql}: ended on a full disk\n{self.server.log_tail()}")
        raise SystemExit(f"{sql}: found room ten times\n{self.server.log_tail()}")

    def purge(self):
        # Counted while they stand: they fill what is freed in a fifth of a second.
        self.goals = [writer.done + 3 for writer in self.writers]
        before = self.files()
        with connect(self.server, autocommit=True).cursor() as cursor:
            code = error_code(lambda: cursor.execute(f"PURGE BINARY LOGS TO '{before[-1]}'"))
        expect(code == 0, f"PURGE on a full disk: {code}\n{self.server.log_tail()}")
        expect(self.files()[0] == before[-1], f"PURGE left {self.files()} of {before}")

    def goes_on(self):
        wait_for(lambda: all(writer.done >= goal for writer, goal in zip(self.writers, self.goals)) or any(w.failed for w in self.writers),
                 lambda: f"commits wait for ever\n{self.server.log_tail()}", timeout=60)
        for writer in self.writers:
            writer.ended.set()
        # They may have filled it once more before they were told to end.
        deadline = time.monotonic() + 120
        while any(writer.is_alive() for writer in self.writers):
            expect(time.monotonic() < deadline, f"commits wait for ever\n{self.server.log_tail()}")
            if self.status("Disk_full") == "ON":
                self.purge()
            for writer in self.writers:
                writer.join(0.5)
        for writer in self.writers:
            expect(not writer.failed, f"a commit failed: {writer.failed}\n{self.server.log_tail()}")
        self.done = [writer.done for writer in self.writers]

    def check(self, under_way):
        """COMMIT-3: what was acknowledged is there, and what was under way as a whole or not at all."""
        rows = client(self.server, "SELECT id, n, CHAR(97 + n % 26) = LEFT(v, 1) OR n = 0, LENGTH(v) FROM d.t ORDER BY id")
        for row, line in enumerate(rows.splitlines()):
            number, n, right, length = map(int, line.split("\t"))
            expect(number == row and right and length in (0, self.kind.value), f"half of a row: {line}")
            expect(n in (self.done[row], self.done[row] + under_way), f"row {row} is {n}, acknowledged is {self.done[row]}")
            self.done[row] = n
        expect(len(rows.splitlines()) == self.kind.writers, f"rows that nobody was told of: {rows}")


def reads_and_kills(world):
    """SPACE-1, COMMIT-4: what sessions see of the full disk, and what KILL ends."""
    server = world.server
    for writer in world.writers:
        expect(not writer.failed, f"{writer.failed}")
    waiting = [state for state in world.states().values() if state == WAITS]
    expect(len(waiting) == world.kind.writers, f"who waits: {world.states()}")
    status, text = world.healthz()
    expect(status == 503 and "disk is full" in text and str(server.datadir) in text, f"/healthz: {status} {text}")
    expect(world.status("Disk_full_reason") != "", "no reason")
    # It may end and begin again while the last bytes are used up; each beginning is said.
    said, times = world.said(SAID), int(world.status("Disk_full_times"))
    expect(said in (times, times + 1) and times >= 1, f"it is said {said} times of {times}\n{server.log_tail()}")
    times = int(world.status("Disk_full_times"))
    waiters = [world.waiter(sql) for sql in ("INSERT INTO d.other VALUES ({})", "ALTER TABLE d.t ADD c{} INT", "DROP TABLE IF EXISTS d.other")]
    with connect(server, autocommit=True).cursor() as cursor:
        cursor.execute("SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
        started = time.monotonic()
        cursor.execute("SELECT id, n FROM d.t")
        expect(len(cursor.fetchall()) == world.kind.writers and time.monotonic() - started < 30, "reads do not go on")
    for waiter in waiters:
        waiter.is_killed(server, lambda: int(world.status("Disk_full_times")) > times)


def filled_by_logs(directory, kind):
    with Disk(directory / "disk", kind.disk) as disk:
        world = World(directory, disk, kind)
        world.fill()
        reads_and_kills(world)
        # Twice, so that the second purge has no more than what the first one left it: they fill the disk within moments.
        world.purge()
        world.stands()
        world.purge()
        world.goes_on()
        expect(world.said(OVER) >= 1, "nobody says that it is over")
        wait_for(lambda: world.healthz()[0] == 200, "/healthz says that it is full", timeout=60)
        world.check(under_way=0)
        # Killed while it is full, started on the full disk.
        world.fill()
        time.sleep(kind.kill_after)
        world.server.kill()
        for writer in world.writers:
            writer.join(60)
        world.done = [writer.done for writer in world.writers]
        expect(disk.free() < MIB, f"{disk.free()} bytes are free")
        world.server.start(timeout=60)
        world.check(under_way=1)
        world.fill()
        world.purge()
        world.goes_on()
        world.server.kill()
        world.server.start(timeout=60)
        world.check(under_way=0)
        expect("panicked" not in world.server.log_tail(10000), f"a panic\n{world.server.log_tail()}")
        world.server.kill()


def main():
    if not allowed():
        print("full_disk_logs: not run, mounting is not allowed here")
        return
    kinds = [Kind(engine) for engine in ENGINES if not sys.argv[1:] or engine in sys.argv[1:]]
    if "--seed" in sys.argv:
        kinds = [Kind.drawn(random.Random(int(sys.argv[sys.argv.index("--seed") + 1])))]
    for kind in kinds:
        started = time.monotonic()
        with Scratch("omnibus-full-") as name:
            filled_by_logs(pathlib.Path(name), kind)
        print(f"full_disk_logs: {kind} ok, {time.monotonic() - started:.0f} s", flush=True)


main()
