#!/usr/bin/python3
"""One hot row: many connections update the same row, each in a transaction of its own, with syncs made slower.

Row locks that are held until the commit is durable let one transaction through per sync; locks released as soon as the
transaction has its place in the log (release_locks_early=1, the default) let a whole group through. Three servers take
turns: Omnibus with release_locks_early=0 and =1, and MariaDB, all syncing every commit. The client is sysbench; the row's
counter is checked at the end against the number of updates.

Usage: hot_row.py [--seconds 5] [--rounds 3] [--connections 64] [--slow-us 1000] [--output FILE]
"""

import argparse
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
from compare import MARIADB, OMNIBUS  # noqa: E402
from device import preload  # noqa: E402
from omnibus import MariaDB, Omnibus  # noqa: E402

SUBJECTS = [("Omnibus, release_locks_early=0", Omnibus, [*OMNIBUS, "--release-locks-early=0"]),
            ("Omnibus, release_locks_early=1", Omnibus, [*OMNIBUS, "--release-locks-early=1"]),
            ("MariaDB", MariaDB, MARIADB)]
CLIENT = """
function thread_init() connection = sysbench.sql.driver():connect() end
function event() connection:query("UPDATE t SET n = n + 1 WHERE id = 1") end
"""


class Subject:
    """A server with one row, and how often it was updated."""

    def __init__(self, name, kind, options, directory, env):
        self.name, self.done, self.rates, self.p95 = name, 0, [], []
        directory.mkdir()
        self.server = kind(directory, *options, env=env)
        self.server.start()
        self.sql("CREATE DATABASE hot; CREATE TABLE hot.t (id INT PRIMARY KEY, n INT NOT NULL) ENGINE=InnoDB;"
                 "INSERT INTO hot.t VALUES (1, 0)")

    def sql(self, text):
        run = ["mariadb", "--no-defaults", f"--socket={self.server.socket}", "-uroot", "-BN", "-e", text]
        return subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip()

    def measure(self, script, connections, seconds):
        run = subprocess.run(
            ["sysbench", str(script), f"--mysql-socket={self.server.socket}", "--mysql-user=root", "--mysql-db=hot",
             f"--threads={connections}", f"--time={seconds}", "run"], capture_output=True, text=True)
        found = re.search(r"queries:\s+(\d+)\s+\(([\d.]+) per sec", run.stdout)
        latency = re.search(r"95th percentile:\s+([\d.]+)", run.stdout)
        if run.returncode != 0 or not found or not latency:
            raise SystemExit(f"sysbench on {self.name} failed:\n{run.stdout}{run.stderr}")
        self.done += int(found[1])
        self.rates.append(float(found[2]))
        self.p95.append(float(latency[1]))

    def check(self):
        found = int(self.sql("SELECT n FROM hot.t WHERE id = 1"))
        if found != self.done:
            raise SystemExit(f"{self.name}: {self.done} updates were acknowledged, the row has {found}")


def table(subjects, args):
    base = statistics.median(subjects[0].rates)
    lines = [f"One row, {args.connections} connections, every sync {args.slow_us / 1000:g} ms slower; {args.rounds} rounds of "
             f"{args.seconds} s in alternation, medians.", "",
             "| server | updates/s | min-max | over the first | p95 ms |", "|---|---:|---:|---:|---:|"]
    for subject in subjects:
        middle = statistics.median(subject.rates)
        lines.append(f"| {subject.name} | {middle:,.0f} | {min(subject.rates):,.0f}-{max(subject.rates):,.0f} | "
                     f"{middle / base:.2f} | {statistics.median(subject.p95):.1f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--slow-us", type=int, default=1000, help="added to each sync, microseconds")
    parser.add_argument("--output", help="also write the table to this file")
    args = parser.parse_args()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-hot-row-"))
    subjects = []
    try:
        env = {"LD_PRELOAD": str(preload("slow_sync", directory)), "SLOW_SYNC_US": str(args.slow_us)}
        script = directory / "hot_row.lua"
        script.write_text(CLIENT)
        for n, (name, kind, options) in enumerate(SUBJECTS):
            subjects.append(Subject(name, kind, options, directory / str(n), env))
        for n in range(args.rounds):
            # Alternate who goes first, so that a drift of the machine hits all.
            for subject in subjects if n % 2 == 0 else reversed(subjects):
                subject.measure(script, args.connections, args.seconds)
        for subject in subjects:
            subject.check()
        text = table(subjects, args)
        print(text)
        if args.output:
            pathlib.Path(args.output).write_text(text + "\n")
        for subject in subjects:
            subject.server.stop()
    finally:
        for subject in subjects:
            if subject.server.process.poll() is None:
                subject.server.process.kill()
                subject.server.process.wait()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
