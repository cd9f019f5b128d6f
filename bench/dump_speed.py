#!/usr/bin/env python3
"""How fast a server sends its log to a client that throws it away: Omnibus and MariaDB, two shapes of log, from a warm and a
cold page cache. Prints a Markdown table.

    bench/dump_speed.py [--mib 200] [--runs 3]
"""

import argparse
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
from omnibus import MariaDB, Omnibus, client, connect, expect  # noqa: E402


def fill_rows(server, mib):
    """Transactions of a thousand rows of about 130 bytes."""
    client(server, "CREATE DATABASE r; CREATE TABLE r.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(120))")
    cursor = connect(server, autocommit=True).cursor()
    for _ in range((mib << 20) // 130_000):
        cursor.execute("INSERT INTO r.t (v) VALUES " + ",".join(["(REPEAT('x',120))"] * 1000))
    client(server, "FLUSH BINARY LOGS")


def fill_commits(server, mib):
    """Transactions of one small row."""
    client(server, "CREATE DATABASE c; CREATE TABLE c.t (id INT PRIMARY KEY, v INT)")
    per = 250
    count = (mib << 20) // per // 1600 * 1600
    from concurrent.futures import ThreadPoolExecutor

    def some(first):
        connection = connect(server, autocommit=True, client_flag=1 << 16)
        cursor = connection.cursor()
        for at in range(first, first + count // 8, 200):
            cursor.execute(";".join(f"INSERT INTO c.t VALUES ({n},1)" for n in range(at, at + 200)))
            while cursor.nextset():
                pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(some, range(0, count, count // 8)))
    client(server, "FLUSH BINARY LOGS")


def dump(server, first):
    """MiB/s of one non-blocking dump, and how many bytes it was."""
    connection = connect(server, autocommit=True)
    connection.query("SET @master_binlog_checksum='CRC32', @source_binlog_checksum='CRC32', @mariadb_slave_capability=4")
    body = b"\x12" + struct.pack("<IHI", 4, 1, 4242) + first.encode()
    connection._sock.sendall(struct.pack("<I", len(body))[:3] + b"\0" + body)
    buffer, total, started = bytearray(1 << 20), 0, time.perf_counter()
    while (got := connection._sock.recv_into(buffer)) > 0:
        total += got
        if got < 64 and buffer[:got].endswith(b"\x00\x00") and buffer[:got][-5:-4] == b"\xfe":
            break
    took = time.perf_counter() - started
    connection._force_close()
    return total / took / (1 << 20), total


def evict(server):
    for path in pathlib.Path(server.datadir).glob("binlog.0*"):
        subprocess.run(["dd", f"if={path}", "iflag=nocache", "count=0"], stderr=subprocess.DEVNULL, check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=200)
    parser.add_argument("--commits-mib", type=int, default=24)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    print("| log | page cache | Omnibus MiB/s | MariaDB MiB/s | ratio |\n| --- | --- | ---: | ---: | ---: |")
    for shape, fill, mib in (("large row events", fill_rows, args.mib), ("one-row transactions", fill_commits, args.commits_mib)):
        found = {}
        for name in ("Omnibus", "MariaDB"):
            with tempfile.TemporaryDirectory() as directory:
                if name == "Omnibus":
                    server = Omnibus(directory, "--max-binlog-size=268435456", "--sync-binlog=0")
                else:
                    server = MariaDB(directory, "--log-bin=binlog", "--binlog-format=ROW", "--binlog-checksum=CRC32",
                                     "--max-binlog-size=268435456", "--innodb-flush-log-at-trx-commit=0", "--server-id=1")
                server.start()
                try:
                    fill(server, mib)
                    first = client(server, "SHOW BINARY LOGS").split("\t")[0]
                    for cache in ("warm", "cold"):
                        speeds = []
                        for _ in range(args.runs):
                            if cache == "cold":
                                evict(server)
                            speed, total = dump(server, first)
                            expect(total > mib * (1 << 20) * 0.5, f"{name}: only {total} bytes came")
                            speeds.append(speed)
                        found[name, cache] = max(speeds)
                finally:
                    server.stop()
        for cache in ("warm", "cold"):
            ours, theirs = found["Omnibus", cache], found["MariaDB", cache]
            print(f"| {shape} | {cache} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} |", flush=True)


main()
