#!/usr/bin/python3
"""How fast a server starts that has to replay its log: after `kill -9`, with `--megabytes` of log behind the last checkpoint.

The engines' folders are put back to how they were before the rows came, as if nothing had been made persistent since: the most
that a crash can leave to do. The log is one transaction or many small ones; the table has a secondary index or none. Printed for
each: the size of the log, seconds until the server is ready, megabytes of log a second, the server's CPU seconds, and its peak
memory over that of a start with nothing to replay.

Usage: restart.py [--megabytes 200] [--row-bytes 1000] [--engines LSM,BTREE] [--shapes one,many] [--index]
                  [--keep FOLDER]
"""

import argparse
import os
import pathlib
import re
import shutil
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
from omnibus import Omnibus, Scratch, client, connect, expect  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
ENGINES = ("lsm", "btree")
# Transactions of the shape `many`: rows each.
ROWS_EACH = 4


def cpu(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def peak_mb(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000


def folders(server, place):
    return [(server.datadir / name, place / name) for name in ENGINES]


def fill(server, engine, shape, args):
    """Writes so many megabytes of events."""
    db = connect(server, autocommit=False, database="d")
    cursor = db.cursor()
    each = 200 if shape == "one" else ROWS_EACH
    if shape == "one":
        values = ",".join([f"(0, REPEAT(MD5(RAND()), {args.row_bytes // 32}))"] * each)
        cursor.execute(f"INSERT INTO source (k, v) VALUES {values}")
        db.commit()
        for _ in range(args.megabytes * 1_000_000 // args.row_bytes // each):
            cursor.execute("INSERT INTO t (k, v) SELECT CRC32(RAND()), v FROM source")
        db.commit()
        return
    # All of them in one packet at a time: what a client takes is not measured.
    db = connect(server, autocommit=True, database="d", client_flag=1 << 16)
    cursor = db.cursor()
    left = args.megabytes * 1_000_000 // args.row_bytes // each
    values = ",".join([f"(CRC32(RAND()), '{'v' * args.row_bytes}')"] * each)
    while left > 0:
        cursor.execute(";".join([f"INSERT INTO t (k, v) VALUES {values}"] * min(left, 500)))
        while cursor.nextset():
            pass
        left -= 500


def measure(engine, shape, args, directory):
    server = Omnibus(directory, "--sync-binlog=0", "--max-binlog-size=1G", "--skip-networking")
    server.start()
    index = ", KEY k (k)" if args.index else ""
    client(server, f"CREATE DATABASE d; CREATE TABLE d.source (k INT UNSIGNED, v VARCHAR(9000)) CHARACTER SET latin1;"
                   f"CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, k INT UNSIGNED, v VARCHAR(9000){index}) "
                   f"ENGINE={engine} CHARACTER SET latin1")
    server.stop()
    server.start()
    idle = peak_mb(server)
    server.stop()
    before = directory / "before"
    for folder, copy in folders(server, before):
        shutil.copytree(folder, copy)
    server.start()
    fill(server, engine, shape, args)
    rows = client(server, "SELECT COUNT(*), SUM(k) FROM d.t")
    client(server, "FLUSH BINARY LOGS")
    server.kill()
    # The last file is empty, and preallocated.
    log = sum(pathlib.Path(path).stat().st_size for path in server.binlogs()[:-1]) / 1e6
    for folder, copy in folders(server, before):
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
    if args.keep:
        shutil.copytree(server.datadir, args.keep / f"{engine}-{shape}", dirs_exist_ok=True)
    begun = time.monotonic()
    server.start()
    took, used, peak = time.monotonic() - begun, cpu(server), peak_mb(server)
    expect(client(server, "SELECT COUNT(*), SUM(k) FROM d.t") == rows, "rows are not what they were")
    print(f"| {engine} | {shape} | {log:,.0f} | {took:.1f} | {log / took:,.0f} | {used:.1f} | {log / used:,.0f} "
          f"| {peak - idle:,.0f} |", flush=True)
    server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--row-bytes", type=int, default=1000)
    parser.add_argument("--engines", default="LSM,BTREE")
    parser.add_argument("--shapes", default="one,many")
    parser.add_argument("--index", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for data directories to replay again")
    args = parser.parse_args()
    print(f"rows of {args.row_bytes} bytes, {'a' if args.index else 'no'} secondary index\n"
          "| engine | transactions | log MB | s | MB/s | CPU s | MB per CPU s | MB of memory more |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    for engine in args.engines.split(","):
        for shape in args.shapes.split(","):
            with Scratch() as directory:
                measure(engine, shape, args, pathlib.Path(directory))


if __name__ == "__main__":
    main()
