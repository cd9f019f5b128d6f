#!/usr/bin/python3
"""What replication costs and carries: Omnibus against Debian's MariaDB, the same clients, in alternation. Prints Markdown.

- dump: MB/s that a server sends of its log to a client that throws it away (tests/tools/dump_client.c), once with the log
  in the page cache and once without, for a log of small transactions and one of large ones;
- source: transactions per second of oltp_update_index with 0, 1 and 8 such clients connected;
- replica: a pair of servers of each kind; the source takes oltp_update_index at its full speed while the replica follows.
  How far the replica got by the end of the load, how long it took for the rest, and how fast it applies a log that is
  waiting for it.

Everything is on one machine: source, replica and load share its cores. With --pin the replica has a core of its own, and
source and load another, as if it were elsewhere: then the last column is what the source does alone on that core. Usage:
replication.py [--parts dump,source,replica] [--seconds 5] [--rounds 3] [--threads 8] [--transactions 100000] [--pin]
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from omnibus import expect  # noqa: E402
from peers import (MariaPeer, OmnibusPeer, create_user, first_log, log_position, query, replicate, status, sysbench,  # noqa: E402
                   sysbench_tps, wait_caught_up)

TABLES, ROWS = 4, 20000
DURABLE = ["--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--sync-relay-log-info=10000"]
# Ours has no annotations in the log by default, and a client that does not ask is not sent them.
MARIADB = [*DURABLE, "--binlog-annotate-row-events=OFF", "--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M",
           "--max-binlog-size=1G", "--max-connections=500"]
OMNIBUS = ["--sync-binlog=1", "--max-binlog-size=1G", "--max-connections=500"]
KINDS = {"Omnibus": (OmnibusPeer, OMNIBUS), "MariaDB": (MariaPeer, MARIADB)}
# MariaDB applies with one thread unless told otherwise; both columns are shown.
REPLICAS = {"Omnibus": ("Omnibus", []), "MariaDB": ("MariaDB", []),
            "MariaDB, 4 threads": ("MariaDB", ["--slave-parallel-threads=4", "--slave-parallel-mode=optimistic"])}


def make(name, directory, number, *more):
    kind, options = KINDS[name]
    server = kind(directory / f"{name[:3]}{number}", number, *options, *more)
    server.start()
    return server


def build_client(directory):
    program = directory / "dump_client"
    subprocess.run(["cc", "-O2", "-o", program, ROOT / "tests" / "tools" / "dump_client.c"], check=True)
    return program


def binlogs(server):
    return [path for path in server.datadir.glob("binlog.[0-9]*") if path.suffix[1:].isdigit()]


def forget_pages(server):
    """Takes the log out of the page cache."""
    for path in binlogs(server):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def dump_once(program, server, place):
    run = subprocess.run([program, server.socket, "900", place[0], str(place[1])], capture_output=True, text=True)
    expect(run.returncode == 0, f"dump_client: {run.stderr}")
    sent, events, micros = map(int, run.stdout.split())
    return sent, events, sent / micros  # bytes a microsecond are MB a second


def dump_part(args, directory, program):
    print("### Dump: MB/s of the log to a client that discards\n")
    print("| log | page cache | Omnibus MB/s | MariaDB MB/s | ratio | events/s (O / M) | min-max MB/s (O / M) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    servers = {name: make(name, directory, n + 1) for n, name in enumerate(KINDS)}
    try:
        for log in ("small transactions", "large transactions"):
            places = {}
            for name, server in servers.items():
                places[name] = fill(server, log, args)
            for cache in ("hot", "cold"):
                seen = {name: [] for name in servers}
                for _ in range(args.rounds):
                    for name, server in servers.items():
                        if cache == "cold":
                            forget_pages(server)
                        else:
                            dump_once(program, server, places[name])
                        seen[name].append(dump_once(program, server, places[name]))
                rate = {name: statistics.median(r for _, _, r in runs) for name, runs in seen.items()}
                each = {name: statistics.median(e / (s / r) for s, e, r in runs) * 1e6 for name, runs in seen.items()}
                spread = " / ".join(f"{min(r for _, _, r in seen[n]):,.0f}-{max(r for _, _, r in seen[n]):,.0f}" for n in servers)
                size = seen["Omnibus"][0][0] / 1e6
                print(f"| {log}, {size:.0f} MB | {cache} | {rate['Omnibus']:,.0f} | {rate['MariaDB']:,.0f} |"
                      f" **{rate['Omnibus'] / rate['MariaDB']:.2f}** | {each['Omnibus']:,.0f} / {each['MariaDB']:,.0f} | {spread} |", flush=True)
    finally:
        for server in servers.values():
            server.stop()
    print()


def fill(server, log, args):
    """Writes the log to be read; returns where it begins."""
    if log == "small transactions":
        sysbench(server, "oltp_update_index", "prepare", tables=TABLES, rows=ROWS)
        query(server, "FLUSH BINARY LOGS")
        place = log_position(server)
        sysbench_tps(sysbench(server, "oltp_update_index", "run", tables=TABLES, rows=ROWS, threads=args.threads, seconds=0,
                              events=args.transactions))
    else:
        query(server, "CREATE DATABASE big")
        query(server, "CREATE TABLE big.t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)")
        query(server, "FLUSH BINARY LOGS")
        place = log_position(server)
        for _ in range(max(4, args.transactions // 1000)):
            query(server, "INSERT INTO big.t (v) VALUES (REPEAT('x', 1000000)), (REPEAT('y', 1000000))")
    query(server, "FLUSH BINARY LOGS")
    return place[0], 4


def source_part(args, directory, program):
    print("### Source: oltp_update_index with replicas connected that discard what they get\n")
    print("| replicas | Omnibus tps | MariaDB tps | ratio | Omnibus, part of 0 replicas | MariaDB, part of 0 replicas |")
    print("| --- | --- | --- | --- | --- | --- |")
    servers = {name: make(name, directory, n + 11) for n, name in enumerate(KINDS)}
    tps = {}
    try:
        for server in servers.values():
            sysbench(server, "oltp_update_index", "prepare", tables=TABLES, rows=ROWS)
        for _ in range(args.rounds):
            for replicas in (0, 1, 8):
                for name, server in servers.items():
                    tps.setdefault((name, replicas), []).append(load_with(program, server, replicas, args))
        for replicas in (0, 1, 8):
            ours, theirs = (statistics.median(tps[name, replicas]) for name in KINDS)
            alone = [statistics.median(tps[name, 0]) for name in KINDS]
            print(f"| {replicas} | {ours:,.0f} | {theirs:,.0f} | **{ours / theirs:.2f}** | {ours / alone[0]:.0%} | {theirs / alone[1]:.0%} |")
    finally:
        for server in servers.values():
            server.stop()
    print()


def load_with(program, server, replicas, args):
    name, position = log_position(server)
    clients = [subprocess.Popen([program, server.socket, str(900 + n), name, str(position), "follow"]) for n in range(replicas)]
    try:
        return sysbench_tps(sysbench(server, "oltp_update_index", "run", tables=TABLES, rows=ROWS, threads=args.threads,
                                     seconds=args.seconds))
    finally:
        for client in clients:
            expect(client.poll() is None, "a client lost its connection")
            client.kill()
            client.wait()


def replica_part(args, directory):
    print("### Replica: a source under oltp_update_index at full speed, and its replica\n")
    print("| pair | source tps | left over at the end | seconds to catch up | applied per second while behind | source tps without replica |")
    print("| --- | --- | --- | --- | --- | --- |")
    seen = {}
    for round_number in range(args.rounds):
        for label, (name, more) in REPLICAS.items():
            place = directory / f"pair{round_number}{label[:9]}".replace(" ", "").replace(",", "")
            place.mkdir()
            seen.setdefault(label, []).append(measure_pair(name, more, place, args))
            shutil.rmtree(place)
    for label, rounds in seen.items():
        alone, tps, behind, catch_up, waiting = (statistics.median(column) for column in zip(*rounds))
        print(f"| {label} | {tps:,.0f} | {behind:.0%} | {catch_up:.2f} | {waiting:,.0f} | {alone:,.0f} |", flush=True)
    print()


def measure_pair(name, more, place, args):
    source, replica = make(name, place, 21), make(name, place, 22, *more)

    def load():
        return sysbench(source, "oltp_update_index", "run", tables=TABLES, rows=ROWS, threads=args.threads, seconds=args.seconds)

    try:
        if args.pin:
            for server, core in ((source, 0), (replica, 1)):
                run = ["taskset", "--all-tasks", "--cpu-list", "--pid", str(core), str(server.process.pid)]
                subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
        create_user(source)
        sysbench(source, "oltp_update_index", "prepare", tables=TABLES, rows=ROWS)
        replicate(replica, source, position=(first_log(source), 4))
        wait_caught_up(replica, source)
        # With the replica stopped, then what it does with all that waits for it.
        query(replica, "STOP SLAVE")
        alone = sysbench_tps(load())
        started = time.monotonic()
        query(replica, "START SLAVE")
        wait_caught_up(replica, source, timeout=600)
        waiting = alone * args.seconds / (time.monotonic() - started)
        start = log_position(source)
        tps = sysbench_tps(load())
        end, row = log_position(source), status(replica)
        started = time.monotonic()
        wait_caught_up(replica, source, timeout=600)
        catch_up = time.monotonic() - started
        at = int(row["Exec_Master_Log_Pos"]) if row["Relay_Master_Log_File"] == end[0] else start[1]
        return alone, tps, max(0, end[1] - at) / max(1, end[1] - start[1]), catch_up, waiting
    finally:
        replica.stop()
        source.stop()


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", default="dump,source,replica")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--transactions", type=int, default=100_000)
    parser.add_argument("--dir", help="where the servers' files go; the temporary directory by default")
    parser.add_argument("--pin", action="store_true", help="the replica on core 1, all else on core 0")
    args = parser.parse_args()
    if args.pin:
        os.sched_setaffinity(0, {0})
    with tempfile.TemporaryDirectory(prefix="omnibus-bench-", dir=args.dir) as temporary:
        directory = pathlib.Path(temporary)
        program = build_client(directory)
        parts = args.parts.split(",")
        if "dump" in parts:
            dump_part(args, directory, program)
        if "source" in parts:
            source_part(args, directory, program)
        if "replica" in parts:
            replica_part(args, directory)


if __name__ == "__main__":
    main()
