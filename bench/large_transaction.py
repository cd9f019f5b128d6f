#!/usr/bin/python3
"""How long others wait while one large transaction commits, and what that takes on disk.

Small committers insert one row at a time and note how long each commit takes. Meanwhile one session makes a transaction of
`--megabytes` and commits it. Printed for each server: commits a second and the longest waits before, while the
statement runs, and during COMMIT; how long COMMIT took; and the size of the log and of the whole data directory before,
at its largest, and after.

Servers: Omnibus, Omnibus with binlog_large_commit_threshold=0 (events are copied into the log), MariaDB as Debian has it.

Usage: large_transaction.py [--megabytes 1024] [--row-bytes 1000] [--committers 4]
                            [--servers omnibus,copying,mariadb]
"""

import argparse
import pathlib
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
from omnibus import MariaDB, Omnibus, client, connect  # noqa: E402

MARIADB = ["--log-bin", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--binlog-format=ROW",
           "--innodb-buffer-pool-size=2G", "--innodb-log-file-size=4G", "--binlog-checksum=CRC32",
           "--max-binlog-size=1G"]
OMNIBUS = ["--sync-binlog=1", "--max-binlog-size=1G"]
PHASES = ["before", "statement", "commit", "after"]


def make(name, directory):
    if name == "mariadb":
        return MariaDB(directory, *MARIADB)
    options = [*OMNIBUS, "--binlog-large-commit-threshold=0"] if name == "copying" else OMNIBUS
    return Omnibus(directory, *options)


def megabytes(server, pattern):
    total = 0
    for path in server.datadir.glob(pattern):
        try:
            total += path.stat().st_blocks * 512 if path.is_file() else 0
        except OSError:
            pass
    return total / 1e6


class Watch:
    """The small committers' waits by phase, and the disk."""

    def __init__(self, server):
        self.server, self.phase, self.stop = server, 0, False
        self.waits = [[] for _ in PHASES]
        self.seconds = [0.0] * len(PHASES)
        self.peak = {"log": 0.0, "all": 0.0}
        self.threads = []

    def sizes(self):
        return {"log": megabytes(self.server, "*bin*"), "all": megabytes(self.server, "**/*"),
                "spilled": megabytes(self.server, "#binlog_cache_files/*")}

    def committer(self, number):
        db = connect(self.server, autocommit=True, database="d")
        with db.cursor() as cursor:
            while not self.stop:
                phase, started = self.phase, time.perf_counter()
                cursor.execute(f"INSERT INTO s{number} (v) VALUES ('some small row')")
                took = time.perf_counter() - started
                # A wait belongs to every phase that it was in.
                for p in range(phase, self.phase + 1):
                    self.waits[p].append(took)

    def disk(self):
        while not self.stop:
            sizes = self.sizes()
            self.peak = {name: max(self.peak[name], sizes[name]) for name in self.peak}
            time.sleep(0.25)

    def start(self, committers):
        self.threads = [threading.Thread(target=self.committer, args=(n,)) for n in range(committers)]
        self.threads.append(threading.Thread(target=self.disk))
        for thread in self.threads:
            thread.start()

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join()

    def during(self, phase, work):
        self.phase, started = phase, time.perf_counter()
        work()
        self.seconds[phase] = time.perf_counter() - started


def measure(name, args, directory):
    server = make(name, directory)
    server.start()
    try:
        client(server, "CREATE DATABASE d; CREATE TABLE d.big (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(9000)) "
                       "CHARACTER SET latin1; CREATE TABLE d.source LIKE d.big;"
                       + "".join(f"CREATE TABLE d.s{n} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40));"
                                 for n in range(args.committers)))
        # Eight megabytes a statement.
        rows = 8_000_000 // args.row_bytes
        with connect(server, autocommit=True).cursor() as cursor:
            values = ",".join([f"(REPEAT(UUID(), {args.row_bytes // 36}))"] * rows)
            cursor.execute(f"INSERT INTO d.source (v) VALUES {values}")
        watch = Watch(server)
        before = watch.sizes()
        watch.start(args.committers)
        db = connect(server, autocommit=False, database="d", read_timeout=3600)
        with db.cursor() as cursor:
            watch.during(0, lambda: time.sleep(3))

            def statement():
                for _ in range(args.megabytes // 8):
                    cursor.execute("INSERT INTO big (v) SELECT v FROM source")

            watch.during(1, statement)
            held = watch.sizes()
            watch.during(2, db.commit)
            right_after = watch.sizes()
            watch.during(3, lambda: time.sleep(5))
        watch.end()
        after = watch.sizes()
        report(name, watch, before, held, right_after, after)
        return max(watch.waits[2] or [0])
    finally:
        server.stop(600)


def report(name, watch, before, held, right_after, after):
    print(f"\n{name}: COMMIT took {watch.seconds[2] * 1e3:.0f} ms, the statements {watch.seconds[1]:.1f} s")
    print(f"  {'small commits':<16}{'number/s':>10}{'median ms':>11}{'p99 ms':>9}{'p99.9 ms':>10}{'max ms':>9}")
    for phase, waits, seconds in zip(PHASES, watch.waits, watch.seconds):
        waits = sorted(waits)
        if waits and seconds:
            at = [waits[min(len(waits) - 1, int(len(waits) * q))] * 1e3 for q in (0.5, 0.99, 0.999)]
            print(f"  {phase:<16}{len(waits) / seconds:>10.0f}{at[0]:>11.2f}{at[1]:>9.2f}{at[2]:>10.2f}"
                  f"{waits[-1] * 1e3:>9.2f}")
    print(f"  {'megabytes':<16}{'before':>10}{'open':>11}{'committed':>11}{'peak':>9}{'after 5 s':>11}")
    for what in ("log", "all"):
        print(f"  {what:<16}{before[what]:>10.0f}{held[what]:>11.0f}{right_after[what]:>11.0f}{watch.peak[what]:>9.0f}"
              f"{after[what]:>11.0f}")
    print(f"  {'spilled':<16}{before['spilled']:>10.0f}{held['spilled']:>11.0f}{right_after['spilled']:>11.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--row-bytes", type=int, default=1000)
    parser.add_argument("--committers", type=int, default=4)
    parser.add_argument("--servers", default="omnibus,copying,mariadb")
    args = parser.parse_args()
    print(f"one transaction of {args.megabytes} MB in rows of {args.row_bytes} bytes, {args.committers} small committers")
    for name in args.servers.split(","):
        with tempfile.TemporaryDirectory() as directory:
            measure(name, args, pathlib.Path(directory))


if __name__ == "__main__":
    main()
