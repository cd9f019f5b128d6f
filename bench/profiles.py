#!/usr/bin/python3
"""Compares two builds of the server, in alternation: commits a second and the server's CPU for each, both syncs on.

Usage: profiles.py ONE OTHER [--rounds 5] [--seconds 5] [--connections 1,32,128] [--workloads oltp_update_index,oltp_point_select]
`make build && make dist && bench/profiles.py target/release/omnibus target/dist/omnibus` is what docs/internals/building.md shows.
"""

import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
from compare import cpu_s  # noqa: E402
from omnibus import Omnibus, Scratch, client  # noqa: E402


def sysbench(server, workload, threads, *arguments):
    done = subprocess.run(["sysbench", workload, "--db-driver=mysql", f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=sbtest",
                           "--tables=4", "--table-size=20000", f"--threads={threads}", *arguments], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def measure(server, workload, threads, seconds):
    before = cpu_s(server)
    said = sysbench(server, workload, threads, f"--time={seconds}", "run")
    number = int(re.search(r"transactions: +(\d+)", said)[1])
    return number / seconds, (cpu_s(server) - before) * 1e6 / number


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs=2, metavar="PROGRAM")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", default="1,32,128")
    parser.add_argument("--workloads", default="oltp_update_index,oltp_point_select")
    options = parser.parse_args()
    with Scratch() as directory:
        servers = []
        for at, program in enumerate(options.programs):
            own = pathlib.Path(directory) / str(at)
            own.mkdir()
            os.environ["OMNIBUS"] = str(pathlib.Path(program).resolve())
            servers.append(Omnibus(own, "--max-connections=1000"))
            servers[-1].start()
            client(servers[-1], "CREATE DATABASE sbtest")
            sysbench(servers[-1], "oltp_read_write", 2, "prepare")
        print("| workload | connections | one, a second | other, a second | other/one | CPU us, one | CPU us, other | other/one |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for workload in options.workloads.split(","):
            for threads in map(int, options.connections.split(",")):
                figures = [[], []]
                for turn in range(options.rounds):
                    for at in (0, 1) if turn % 2 == 0 else (1, 0):
                        figures[at].append(measure(servers[at], workload, threads, options.seconds))
                (one, one_cpu), (other, other_cpu) = ([statistics.median(column) for column in zip(*rounds)] for rounds in figures)
                print(f"| {workload} | {threads} | {one:,.0f} | {other:,.0f} | {other / one:.2f} | {one_cpu:.1f} | {other_cpu:.1f} | {other_cpu / one_cpu:.2f} |", flush=True)
        for server in servers:
            server.stop()


if __name__ == "__main__":
    main()
