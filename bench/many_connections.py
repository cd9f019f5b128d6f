#!/usr/bin/python3
"""Many connections of which few work: latencies of a server that holds thousands of idle ones, beside MariaDB that holds none.

`--idle` connections have logged in and do nothing, while sysbench commits one update at a time from `--working` others. MariaDB has
only these. Both sync every commit. Printed: transactions a second, median and 99th percentile of a commit's latency, and the
servers' memory.

Usage: many_connections.py [--idle 9800] [--working 200] [--seconds 5] [--rounds 3]
"""

import argparse
import pathlib
import re
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
from compare import MARIADB, OMNIBUS, ROWS, TABLES  # noqa: E402
from omnibus import MariaDB, Omnibus  # noqa: E402

# HandshakeResponse41 of root without a password: PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH; utf8mb4.
LOGIN = (0x00088200).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + bytes([45]) + bytes(23) + b"root\0\0mysql_native_password\0"


def packet(connection):
    head = b""
    while len(head) < 4:
        head += connection.recv(4 - len(head))
    size, body = int.from_bytes(head[:3], "little"), b""
    while len(body) < size:
        body += connection.recv(size - len(body))
    return body


def log_in(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    packet(connection)
    connection.sendall(len(LOGIN).to_bytes(3, "little") + bytes([1]) + LOGIN)
    answer = packet(connection)
    if answer[0] == 0xFE:
        # Another plug-in: no password in this one either.
        connection.sendall(bytes([0, 0, 0, 3]))
        answer = packet(connection)
    if answer[0] != 0:
        raise SystemExit(f"a login failed: {answer[3:]!r}")
    return connection


def sysbench(server, command, *more):
    run = ["sysbench", "oltp_update_index", f"--mysql-socket={server.socket}", "--mysql-user=root", f"--tables={TABLES}",
           f"--table-size={ROWS}", "--rand-type=uniform", *more, command]
    done = subprocess.run(run, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"sysbench failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def measure(server, args):
    latencies, tps = [], 0.0
    for percentile in (50, 99):
        out = sysbench(server, "run", f"--threads={args.working}", f"--time={args.seconds}", f"--percentile={percentile}")
        tps = float(re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", out)[1])
        latencies.append(float(re.search(rf"{percentile}th percentile:\s+([\d.]+)", out)[1]))
    memory = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1]) / 1024
    return tps, *latencies, memory


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--idle", type=int, default=9800)
    parser.add_argument("--working", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 2 * args.idle:
        print(f"this process may open {hard} files", file=sys.stderr)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-bench-"))
    for name in ("omnibus", "mariadb"):
        (directory / name).mkdir()
    limit = f"--max-connections={args.idle + args.working + 10}"
    subjects = {"Omnibus": Omnibus(directory / "omnibus", *OMNIBUS[:1], limit), "MariaDB": MariaDB(directory / "mariadb", *MARIADB)}
    connections = {"Omnibus": args.idle, "MariaDB": 0}
    seen, idle = {}, []
    try:
        for server in subjects.values():
            server.start()
            run = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "-e", "CREATE DATABASE sbtest"]
            subprocess.run(run, check=True)
            sysbench(server, "prepare")
        idle = [log_in(subjects["Omnibus"].socket) for _ in range(args.idle)]
        for _ in range(args.rounds):
            for name, server in subjects.items():
                seen.setdefault(name, []).append(measure(server, args))
        print("| server | idle | working | tps | p50 ms | p99 ms | memory MB |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, rounds in seen.items():
            tps, median, high, memory = (statistics.median(column) for column in zip(*rounds))
            print(f"| {name} | {connections[name]:,} | {args.working} | {tps:,.0f} | {median:.2f} | {high:.2f} | {memory:,.0f} |")
    finally:
        for connection in idle:
            connection.close()
        for server in subjects.values():
            server.stop()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
