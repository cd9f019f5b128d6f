#!/usr/bin/python3
"""What a change of the log file costs the commits around it: latency of single-row inserts across rotations.

Omnibus without and with prepared files, and Debian's MariaDB, all syncing every commit. Clients are processes with a
connection each over a unix socket; each notes how long every commit took. One run without rotations, one with FLUSH
BINARY LOGS every --every seconds, one where files are full after --full-size. Prints Markdown.

Usage: rotation.py [--clients 8] [--seconds 20] [--every 1] [--file-size 1G] [--full-size 16M] [--rounds 1]
"""

import argparse
import multiprocessing
import pathlib
import shutil
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from omnibus import MariaDB, Omnibus, connect  # noqa: E402

MARIADB = ["--log-bin", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--binlog-format=ROW",
           "--innodb-log-file-size=1G"]
SUBJECTS = {
    "Omnibus, binlog_preallocate=1": (Omnibus, ["--binlog-preallocate=1"]),
    "Omnibus, binlog_preallocate=0": (Omnibus, ["--binlog-preallocate=0"]),
    "MariaDB": (MariaDB, MARIADB),
}
TEXT = "x" * 120
PREPARE_TIMEOUT_S = 120


class Place:
    """What a client process needs to connect."""

    def __init__(self, server):
        self.socket = server.socket


def client(place, number, seconds, gate, results):
    db = connect(place, autocommit=True, database="bench")
    cursor = db.cursor()
    times, key = [], number << 32
    gate.wait()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.perf_counter_ns()
        cursor.execute("INSERT INTO t VALUES (%s, %s)", (key, TEXT))
        times.append(time.perf_counter_ns() - started)
        key += 1
    results.put(times)


def load(server, args, every):
    """All latencies in nanoseconds, and how many rotations there were."""
    db = connect(server, autocommit=True)
    cursor = db.cursor()
    cursor.execute("DROP TABLE IF EXISTS bench.t")
    cursor.execute("CREATE TABLE bench.t (id BIGINT PRIMARY KEY, v VARCHAR(200))")
    before = files(cursor)
    gate, results = multiprocessing.Barrier(args.clients + 1), multiprocessing.Queue()
    place = Place(server)
    clients = [multiprocessing.Process(target=client, args=(place, n, args.seconds, gate, results))
               for n in range(args.clients)]
    for process in clients:
        process.start()
    gate.wait()
    end = time.monotonic() + args.seconds
    while every and time.monotonic() + every < end:
        time.sleep(every)
        cursor.execute("FLUSH BINARY LOGS")
    times = sorted(time_ for _ in clients for time_ in results.get())
    for process in clients:
        process.join()
    return times, files(cursor) - before


def files(cursor):
    """The number of the newest log file."""
    cursor.execute("SHOW BINARY LOGS")
    return int(cursor.fetchall()[-1][0].rsplit(".", 1)[1])


def wait_for_prepared(server):
    """With binlog_preallocate=1 the first file is prepared in the background after a start."""
    pool = server.datadir / "pre-allocated-binlog"
    deadline = time.monotonic() + PREPARE_TIMEOUT_S
    while not list(pool.glob("empty.*")) and time.monotonic() < deadline:
        time.sleep(0.1)


def measure(name, size, every, args):
    kind, options = SUBJECTS[name]
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-rotation-", dir=args.dir))
    server = kind(directory, *options, f"--max-binlog-size={size}")
    try:
        server.start()
        connect(server).cursor().execute("CREATE DATABASE bench")
        if "binlog_preallocate=1" in name:
            wait_for_prepared(server)
        return load(server, args, every)
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def row(name, times, rotations, args):
    at = lambda part: f"{times[min(len(times) - 1, int(len(times) * part))] / 1e6:.2f}"  # noqa: E731
    rate = len(times) / args.seconds / args.rounds
    cells = [name, f"{rate:,.0f}", str(rotations), at(0.5), at(0.99), at(0.999), f"{times[-1] / 1e6:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between forced rotations")
    parser.add_argument("--file-size", default="1G", help="max_binlog_size of the first two runs")
    parser.add_argument("--full-size", default="16M", help="max_binlog_size of the run where files fill up")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--dir", help="where the data directories go")
    args = parser.parse_args()
    print(f"{args.clients} clients, {args.rounds} x {args.seconds} s each; commit latency in milliseconds.\n", flush=True)
    runs = [(f"no rotation, files of {args.file_size}", args.file_size, 0),
            (f"FLUSH BINARY LOGS every {args.every:g} s, files of {args.file_size}", args.file_size, args.every),
            (f"files full after {args.full_size}", args.full_size, 0)]
    for title, size, every in runs:
        print(f"### {title[0].upper()}{title[1:]}\n\n| server | commits per s | rotations | p50 | p99 | p99.9 | max |\n"
              "| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
        for name in SUBJECTS:
            samples = [measure(name, size, every, args) for _ in range(args.rounds)]
            times = sorted(time_ for sample, _ in samples for time_ in sample)
            print(row(name, times, sum(count for _, count in samples), args), flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
