#!/usr/bin/python3
"""Compares Omnibus with Debian's MariaDB: commits per second, the same clients, the same durability, in alternation.

Both servers sync every commit (MariaDB: sync_binlog=1, innodb_flush_log_at_trx_commit=1; Omnibus: sync_binlog=1), log
in row format with checksums, and sit on the same file system; clients use a unix socket. For each workload and number
of connections the servers take turns, several rounds; medians are printed with the ratio of the medians. Syncs are
counted, and in the second part made slower, by a library that this script builds (tests/tools/slow_sync.c).

Beside them runs `omnibus bench responder`, which answers by a durable write and nothing else: the limit of the machine. It
keeps no rows, so it takes part where clients only write one.

Usage: compare.py [--seconds 5] [--rounds 3] [--workloads oltp_insert,...] [--connections 1,8,...] [--slow-us 0,1000]
                  [--output docs/use/benchmarks.md]
"""

import argparse
import os
import pathlib
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from device import preload  # noqa: E402
from omnibus import MariaDB, Omnibus, binary  # noqa: E402

SYSBENCH = ["oltp_update_index", "oltp_insert", "oltp_write_only", "oltp_read_write", "oltp_point_select"]
# Of them those that the responder can answer.
LIMITED = {"oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete"}
TABLES, ROWS = 4, 20000
MARIADB = ["--log-bin", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--binlog-format=ROW",
           "--max-connections=2000", "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=1G", "--back-log=1000",
           "--binlog-checksum=CRC32", "--max-binlog-size=1G", "--table-open-cache=4000", "--open-files-limit=65535",
           "--max-prepared-stmt-count=1048576"]
OMNIBUS = ["--sync-binlog=1", "--max-connections=2000", "--max-binlog-size=1G"]


def cpu_s(server):
    """The processor time that a server has taken, in seconds."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Subject:
    """A server under measurement, with its counters."""

    def __init__(self, name, directory, preload, slow_us):
        self.name, self.slow, self.counter = name, slow_us > 0, directory / f"{name}.syncs"
        self.counter.write_bytes(bytes(8))
        env = {"LD_PRELOAD": str(preload), "SLOW_SYNC_US": str(slow_us), "SYNC_COUNT_FILE": str(self.counter)}
        own = directory / name
        own.mkdir()
        self.server = self.start(own, env)

    def start(self, own, env):
        server = MariaDB(own, *MARIADB, env=env) if self.name == "mariadb" else Omnibus(own, *OMNIBUS, env=env)
        server.start()
        run = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "-e", "CREATE DATABASE sbtest"]
        subprocess.run(run, check=True)
        return server

    def counters(self):
        pid, cpu = self.server.process.pid, cpu_s(self.server)
        switches = {}
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            try:
                found = re.findall(r"ctxt_switches:\s+(\d+)", status.read_text())
                switches[status.parent.name] = sum(int(n) for n in found)
            except OSError:
                pass
        written = int(re.search(r"^write_bytes: (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text(), re.M)[1])
        return {"cpu": cpu, "switches": switches, "bytes": written,
                "syncs": struct.unpack("<Q", self.counter.read_bytes())[0]}

    def sysbench(self, workload, threads, seconds, command):
        return subprocess.run(
            ["sysbench", workload, f"--mysql-socket={self.server.socket}", "--mysql-user=root", f"--tables={TABLES}",
             f"--table-size={ROWS}", f"--threads={threads}", f"--time={seconds}", "--percentile=95", "--rand-type=uniform",
             "--mysql-ignore-errors=1213,1205,1020,1062", command], capture_output=True, text=True)

    def measure(self, workload, threads, seconds):
        before = self.counters()
        if workload == "mysqlslap_insert":
            result = self.mysqlslap(threads, seconds)
        else:
            run = self.sysbench(workload, threads, seconds, "run")
            found = re.search(r"transactions:\s+(\d+)\s+\(([\d.]+) per sec", run.stdout)
            if not found:
                raise SystemExit(f"sysbench {workload} on {self.name} failed:\n{run.stdout[-800:]}{run.stderr[-800:]}")
            p95 = float(re.search(r"95th percentile:\s+([\d.]+)", run.stdout)[1])
            result = {"count": int(found[1]), "tps": float(found[2]), "p95": p95}
        after = self.counters()
        # By thread: one that ended in between took its count with it.
        earlier, later = before.pop("switches"), after.pop("switches")
        moved = sum(count - earlier.get(thread, 0) for thread, count in later.items())
        result["switches"] = moved / max(1, result["count"])
        for key in before:
            result[key] = (after[key] - before[key]) / max(1, result["count"])
        result["group"] = 1 / result["syncs"] if result["syncs"] else 0
        return result

    def mysqlslap(self, threads, seconds):
        # A fixed amount of work; the number of queries is chosen to take about the time asked for. Without TLS, which
        # Debian's MariaDB does not offer: with it this client reads the system's certificates for every connection.
        queries = max(2000, seconds * (1500 if self.slow else 10000))
        run = subprocess.run(
            ["mariadb-slap", "--no-defaults", "--skip-ssl", f"--socket={self.server.socket}", "-uroot", "--auto-generate-sql",
             "--auto-generate-sql-load-type=write", f"--concurrency={threads}", f"--number-of-queries={queries}"],
            capture_output=True, text=True)
        found = re.search(r"Average number of seconds to run all queries: ([\d.]+)", run.stdout)
        if run.returncode != 0 or not found:
            raise SystemExit(f"mysqlslap on {self.name} failed:\n{run.stdout}{run.stderr}")
        took = max(float(found[1]), 0.001)
        return {"count": queries, "tps": queries / took, "p95": float("nan")}

    def fresh_tables(self):
        self.sysbench("oltp_common", 2, 0, "cleanup")
        made = self.sysbench("oltp_write_only", 2, 0, "prepare")
        if made.returncode != 0:
            raise SystemExit(f"sysbench prepare on {self.name} failed:\n{made.stdout}{made.stderr}")


class Responder(Subject):
    """The limit: has no tables."""

    class Server:
        def __init__(self, own, env):
            self.socket = own / "responder.sock"
            command = [binary(), "bench", "responder", "--socket", self.socket, "--dir", own]
            self.process = subprocess.Popen(command, env=dict(os.environ, **env), stdout=subprocess.PIPE, text=True)
            if "ready for connections" not in self.process.stdout.readline():
                raise SystemExit("the responder did not start")

        def stop(self):
            self.process.send_signal(signal.SIGINT)
            if self.process.wait() != 0:
                raise SystemExit("the responder failed")

    def start(self, own, env):
        return Responder.Server(own, env)

    def fresh_tables(self):
        pass


def median(samples, key):
    return statistics.median(sample[key] for sample in samples)


def cell(subjects, workload, threads, args):
    samples = {subject.name: [] for subject in subjects}
    for n in range(args.rounds):
        # Alternate who goes first, so that a drift of the machine hits both.
        for subject in subjects if n % 2 == 0 else reversed(subjects):
            samples[subject.name].append(subject.measure(workload, threads, args.seconds))
    return samples


def row(workload, threads, samples):
    ours, theirs = samples["omnibus"], samples["mariadb"]
    ratio = median(ours, "tps") / median(theirs, "tps")
    spread = lambda s: f"{min(x['tps'] for x in s):,.0f}-{max(x['tps'] for x in s):,.0f}"  # noqa: E731
    pair = lambda key, form, scale=1: "{} / {}".format(  # noqa: E731
        *(format(median(s, key) * scale, form) for s in (ours, theirs)))
    limit = f"{median(ours, 'tps') / median(samples['responder'], 'tps'):.0%}" if "responder" in samples else ""
    return [workload, str(threads), f"{median(ours, 'tps'):,.0f}", f"{median(theirs, 'tps'):,.0f}", f"**{ratio:.2f}**", limit,
            f"{spread(ours)} / {spread(theirs)}", pair("p95", ".2f"), pair("cpu", ".0f", 1e6), pair("switches", ".2f"),
            pair("syncs", ".3f"), pair("group", ".1f"), pair("bytes", ",.0f")]


HEAD = ["workload", "connections", "Omnibus tps", "MariaDB tps", "ratio", "of the limit", "min-max tps (O / M)", "p95 ms (O / M)",
        "server CPU us per trx", "context switches per trx", "syncs per trx", "trx per sync", "bytes written per trx"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", default=",".join([*SYSBENCH, "mysqlslap_insert"]))
    parser.add_argument("--connections", default="1,8,32,128,512")
    parser.add_argument("--slow-us", default="0,1000", help="added to each sync, microseconds; one table each")
    parser.add_argument("--output", help="also write the tables to this file")
    args = parser.parse_args()
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True).stdout.split("Ver ")[1].split()[0]
    lines = [f"Omnibus ({pathlib.Path(binary()).name}) and MariaDB {version}; {args.rounds} rounds of {args.seconds} s in "
             f"alternation, medians; {TABLES} tables of {ROWS} rows; clients on the same {len_cores()} cores.", ""]
    for slow_us in (int(us) for us in args.slow_us.split(",")):
        lines += part(slow_us, args)
    if args.output:
        pathlib.Path(args.output).write_text("\n".join(lines) + "\n")


def len_cores():
    return len(os.sched_getaffinity(0))


def part(slow_us, args):
    title = "### Syncs as the device does them" if slow_us == 0 else f"### Every sync {slow_us / 1000:g} ms slower"
    lines = [title, "", "| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    print("\n".join(lines), flush=True)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-bench-"))
    subjects = []
    try:
        library = preload("slow_sync", directory)
        subjects = [Subject(name, directory, library, slow_us) for name in ("omnibus", "mariadb")]
        subjects.append(Responder("responder", directory, library, slow_us))
        for workload in args.workloads.split(","):
            for subject in subjects:
                subject.fresh_tables()
            taking_part = subjects if workload in LIMITED else subjects[:2]
            for threads in (int(n) for n in args.connections.split(",")):
                if workload == "mysqlslap_insert":
                    threads = {8: 20, 32: 50}.get(threads, threads)
                    if threads > 50:
                        continue
                lines.append("| " + " | ".join(row(workload, threads, cell(taking_part, workload, threads, args))) + " |")
                print(lines[-1], flush=True)
        for subject in subjects:
            subject.server.stop()
        return [*lines, ""]
    finally:
        for subject in subjects:
            if subject.server.process.poll() is None:
                subject.server.process.kill()
                subject.server.process.wait()
        time.sleep(0.2)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
