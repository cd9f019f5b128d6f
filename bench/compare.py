#!/usr/bin/python3
"""Compares Omnibus with other servers: commits per second, the same clients, the same durability, in alternation.

The others are Debian's MariaDB, and where `scripts/peers` has made them (and this runs as root) `newer-mariadb` and `mysql`. A workload
with `:text` sends texts; the others are prepared once. All servers but one sync every commit (sync_binlog=1, and innodb_flush_log_at_trx_commit=1),
log in row format with checksums, and sit on the same file system; clients use a unix socket. For each workload and number
of connections the servers take turns, several rounds; medians are printed with the ratio of the medians. Syncs are
counted, and in the second part made slower, by a library that this script builds (tests/tools/slow_sync.c).

`one-sync-mariadb` is MariaDB with sync_binlog=0: not as durable as the others, but the best that a server which syncs once for each group
of commits, in InnoDB's log, can give.

Two machines (clients on another) commit as much as the server's processors allow: `trx per second of server CPU` tells that.

Beside them runs `omnibus bench responder`, which answers by a durable write and nothing else: the limit of the machine. It
keeps no rows, so it takes part where clients only write one.

Usage: compare.py [--seconds 5] [--rounds 3] [--workloads oltp_insert,...] [--connections 1,8,...] [--slow-us 0,1000]
                  [--peers mariadb,newer-mariadb,one-sync-mariadb,mysql] [--output docs/use/benchmarks.md]
"""

import argparse
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
import other_servers  # noqa: E402
from device import preload  # noqa: E402
from omnibus import Omnibus, binary  # noqa: E402

SYSBENCH = ["oltp_update_index", "oltp_update_index:text", "oltp_insert", "oltp_write_only", "oltp_read_write", "oltp_point_select", "oltp_point_select:text"]
# Of them those that the responder can answer.
LIMITED = {"oltp_update_index", "oltp_update_non_index", "oltp_insert", "oltp_delete"}
TABLES, ROWS = 4, 20000
BOTH = ["--log-bin", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1", "--binlog-format=ROW", "--max-connections=2000",
        "--innodb-buffer-pool-size=1G", "--back-log=1000", "--binlog-checksum=CRC32", "--max-binlog-size=1G",
        "--table-open-cache=4000", "--open-files-limit=65535", "--max-prepared-stmt-count=1048576"]
MARIADB = [*BOTH, "--innodb-log-file-size=1G"]
MYSQL = [*BOTH, "--innodb-redo-log-capacity=2G"]
OMNIBUS = ["--sync-binlog=1", "--max-connections=2000", "--max-binlog-size=1G"]


def cpu_s(server):
    """The processor time that a server has taken, in seconds."""
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def clients_cpu_s():
    """The processor time of all that has ended of what this script ran: of the clients, while the servers run on."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        if self.name == "omnibus":
            server = Omnibus(own, *OMNIBUS, env=env)
            server.start()
        else:
            server = other_servers.start(self.name, own, *(MYSQL if self.name == "mysql" else MARIADB), env=env)
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
        script, _, protocol = workload.partition(":")
        return subprocess.run(
            ["sysbench", script, f"--db-ps-mode={'disable' if protocol == 'text' else 'auto'}", f"--mysql-socket={self.server.socket}", "--mysql-user=root", f"--tables={TABLES}",
             f"--table-size={ROWS}", f"--threads={threads}", f"--time={seconds}", "--percentile=95", "--rand-type=uniform",
             "--mysql-ignore-errors=1213,1205,1020,1062", command], capture_output=True, text=True)

    def measure(self, workload, threads, seconds):
        before, clients = self.counters(), clients_cpu_s()
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
        result["clients"] = (clients_cpu_s() - clients) / max(1, result["count"])
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
    limit = samples.pop("responder", None)
    every = list(samples.values())
    tps = [median(server, "tps") for server in every]
    spread = lambda s: f"{min(x['tps'] for x in s):,.0f}-{max(x['tps'] for x in s):,.0f}"  # noqa: E731
    each = lambda key, form, scale=1: " / ".join(format(median(s, key) * scale, form) for s in every)  # noqa: E731
    per_cpu = " / ".join(f"{1 / max(median(s, 'cpu'), 1e-9):,.0f}" for s in every)
    return [workload, str(threads), " / ".join(f"{one:,.0f}" for one in tps), " / ".join(f"**{tps[0] / one:.2f}**" for one in tps[1:]), per_cpu,
            f"{tps[0] / median(limit, 'tps'):.0%}" if limit else "", " / ".join(map(spread, every)), each("p95", ".2f"),
            each("cpu", ".0f", 1e6), each("clients", ".0f", 1e6), each("switches", ".2f"), each("syncs", ".3f"), each("group", ".1f"), each("bytes", ",.0f")]


HEAD = ["workload", "connections", "tps", "ratio", "trx per second of server CPU", "of the limit", "min-max tps", "p95 ms", "server CPU us per trx",
        "client CPU us per trx", "context switches per trx", "syncs per trx", "trx per sync", "bytes written per trx"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", default=",".join([*SYSBENCH, "mysqlslap_insert"]))
    parser.add_argument("--connections", default="1,8,32,128,512")
    parser.add_argument("--slow-us", default="0,1000", help="added to each sync, microseconds; one table each")
    parser.add_argument("--peers", default=",".join(other_servers.NAMES), help="servers to compare with, as far as they are there")
    parser.add_argument("--output", help="also write the tables to this file")
    args = parser.parse_args()
    args.servers = ["omnibus", *filter(other_servers.is_there, args.peers.split(","))]
    lines = [f"{build()}, then {', '.join(map(other_servers.version, args.servers[1:]))}; {args.rounds} rounds of {args.seconds} s in alternation, medians; {TABLES} tables "
             f"of {ROWS} rows; clients on the same {len_cores()} cores ({machine()}).", ""]
    print(lines[0], flush=True)
    for slow_us in (int(us) for us in args.slow_us.split(",")):
        lines += part(slow_us, args)
    if args.output:
        pathlib.Path(args.output).write_text("\n".join(lines) + "\n")


def build():
    """The program and the profile that it was built with, which is its folder's name."""
    program = pathlib.Path(binary()).resolve()
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return f"{said.strip()} ({'packages, `make dist`' if program.parent.name == 'dist' else f'build `{program.parent.name}`'})"


def machine():
    model = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return f"{model[1] if model else platform.machine()}, Linux {platform.release()}"


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
        for name in args.servers:
            subjects.append(Subject(name, directory, library, slow_us))
        subjects.append(Responder("responder", directory, library, slow_us))
        for workload in args.workloads.split(","):
            for subject in subjects:
                subject.fresh_tables()
            taking_part = subjects if workload.partition(":")[0] in LIMITED else subjects[:-1]
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
        other_servers.unmount(directory)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
