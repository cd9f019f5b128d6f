#!/usr/bin/python3
"""A short run of what most servers do, for `scripts/dist` to learn from: sysbench's reads and writes, prepared and as text, in one server.

Usage: training.py [--seconds 6]
"""

import argparse
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "lib"))
from omnibus import Omnibus, Scratch, client  # noqa: E402

SCRIPTS = ["oltp_update_index", "oltp_insert", "oltp_write_only", "oltp_read_write", "oltp_point_select"]


def sysbench(server, script, *arguments):
    subprocess.run(["sysbench", script, "--db-driver=mysql", f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=sbtest",
                    "--tables=4", "--table-size=10000", *arguments], check=True, stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=6)
    seconds = parser.parse_args().seconds
    with Scratch() as directory:
        server = Omnibus(directory, "--max-binlog-size=64M")
        server.start()
        client(server, "CREATE DATABASE sbtest")
        sysbench(server, "oltp_read_write", "prepare")
        for script in SCRIPTS:
            for prepared in ("auto", "disable"):
                sysbench(server, script, f"--time={seconds}", "--threads=16", f"--db-ps-mode={prepared}", "run")
        server.stop()


if __name__ == "__main__":
    main()
