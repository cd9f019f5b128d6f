#!/usr/bin/python3
"""What changes of many rows cost, beside other servers (bench/other_servers.py): CPU and peak memory of the server, and sizes on disk.

One table like TPC-H's lineitem with three secondary indexes, `--rows` of it in a file: LOAD DATA, a fourth index, UPDATE of a third of
the rows (a column without an index, and one with), INSERT ... SELECT of all, ALTER that copies, DELETE of a third, each one statement. CPU
is the server's own, from /proc, with what it does behind the statement until it is quiet; memory the most it had resident during the
statement. Sizes are of the data directory without logs, when it is quiet. With `--memory 1G` each server runs in a memory cgroup of so many
bytes (needs root), of which the page cache is a part: what does not fit in is killed, and said.

Usage: bulk.py [--rows 600000] [--servers omnibus,newer-mariadb,mysql] [--only REGEX] [--memory SIZE] [--output FILE] [--option --engine=..]
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
import other_servers  # noqa: E402
from omnibus import Omnibus, connect  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")
TICK_S = 1 / TICK
# The server is quiet when it has used no more than this in so many seconds.
QUIET_S, QUIET_FOR_S, PATIENCE_S = 0.03, 2, 60

TABLE = """CREATE TABLE {} (l_orderkey INT NOT NULL, l_partkey INT NOT NULL, l_suppkey INT NOT NULL, l_linenumber INT NOT NULL,
 l_quantity DECIMAL(15,2) NOT NULL, l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL,
 l_tax DECIMAL(15,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL,
 l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, l_shipmode CHAR(10) NOT NULL,
 l_comment VARCHAR(44) NOT NULL, PRIMARY KEY (l_orderkey, l_linenumber), KEY l_part (l_partkey, l_suppkey),
 KEY l_supp (l_suppkey), KEY l_ship (l_shipdate))"""

STEPS = [
    ("load", "LOAD DATA INFILE '{file}' INTO TABLE lineitem"),
    ("add_index", "ALTER TABLE lineitem ADD INDEX l_receipt (l_receiptdate)"),
    ("insert_select", "INSERT INTO copied SELECT * FROM lineitem"),
    ("update_third", "UPDATE lineitem SET l_tax = l_tax + 0.01 WHERE l_orderkey % 3 = 0"),
    ("update_third_indexed", "UPDATE lineitem SET l_shipdate = l_shipdate + INTERVAL 1 DAY WHERE l_orderkey % 3 = 1"),
    ("alter_copy", "ALTER TABLE copied ADD COLUMN l_more INT NOT NULL DEFAULT 7, ALGORITHM=COPY"),
    ("delete_third", "DELETE FROM lineitem WHERE l_orderkey % 3 = 0"),
]


def write_rows(path, rows):
    with open(path, "w") as out:
        for n in range(rows):
            order, line = n // 4 * 4 + 1, n % 4 + 1
            days = n * 7919 % 2500
            date = [f"{1992 + at // 360}-{1 + at // 30 % 12:02}-{1 + at % 28:02}" for at in (days, days + 30, days + 9)]
            part = 1 + (order * 31 + line * 7919) % 20_000
            out.write("\t".join(map(str, (
                order, part, 1 + (part + line * 250) % 1000, line, 1 + n * 13 % 50, 900 + n * 7919 % 10_000_000 / 100,
                n % 11 / 100, n % 9 / 100, "ARNN"[n % 4], "FO"[n % 2], *date,
                ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")[n % 4],
                ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK")[n % 5], "carefully final deposits " + str(n * 7919 % 1_000_003)))) + "\n")


def stat(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def peak_mb(server):
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1]) / 1024


def settle(server):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        before = stat(server)
        time.sleep(QUIET_FOR_S)
        if stat(server) - before <= QUIET_S:
            return


def data_mb(server):
    """Blocks on disk of all that is no log."""
    total = 0
    for path in server.datadir.rglob("*"):
        name = str(path.relative_to(server.datadir))
        if path.is_file() and not re.search(r"bin\.|binlog|ib_logfile|undo|ibtmp|aria_log", name):
            total += path.stat().st_blocks * 512
    return total / 1e6


class Cgroup:
    """A memory cgroup of version 1 or 2 that a process is put into; nothing if `size` is none."""

    def __init__(self, name, size):
        self.folder = None
        if size:
            base = pathlib.Path("/sys/fs/cgroup")
            first = (base / "memory").is_dir()
            self.folder = (base / "memory" if first else base) / f"omnibus-bulk-{os.getpid()}-{name}"
            self.folder.mkdir()
            (self.folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(size)

    def take(self, pid):
        if self.folder:
            (self.folder / "cgroup.procs").write_text(str(pid))

    def remove(self):
        if self.folder:
            self.folder.rmdir()


class Measured:
    """One server: its steps, each with CPU of the statement, CPU with what came behind it, peak MB and MB of data."""

    def __init__(self, name, home, options):
        self.name, self.steps, self.cgroup = name, {}, Cgroup(name, options.memory)
        if name == "omnibus":
            self.server = Omnibus(home, "--sync-binlog=0", "--secure-file-priv=", *options.option)
            self.server.start()
        else:
            self.server = other_servers.start(name, home, "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--log-bin", "--binlog-format=ROW",
                                      "--innodb-buffer-pool-size=512M")
        self.cgroup.take(self.server.process.pid)

    def run(self, file, only):
        server, cursor = self.server, connect(self.server, autocommit=True).cursor()
        for sql in ("CREATE DATABASE bench", "USE bench", TABLE.format("lineitem"), TABLE.format("copied")):
            cursor.execute(sql)
        for step, sql in STEPS:
            if not re.search(only, step):
                continue
            settle(server)
            pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
            before, begun = stat(server), time.monotonic()
            rows = cursor.execute(sql.format(file=file))
            cpu, took, peak = stat(server) - before, time.monotonic() - begun, peak_mb(server)
            settle(server)
            self.steps[step] = (cpu, stat(server) - before, peak, data_mb(server))
            print(self.name, step, rows, f"cpu {cpu:.2f} with background {stat(server) - before:.2f}s, took {took:.1f}, peak {peak:,.0f} MB, data {data_mb(server):,.0f} MB", flush=True)
        server.stop()
        self.cgroup.remove()


def table(all_measured):
    lines = ["Each cell: " + " / ".join("Omnibus" if one.name == "omnibus" else other_servers.version(one.name) for one in all_measured) + ".", "",
             "| statement | CPU s | ratio to the best | with background s | ratio to the best | peak MB | data MB behind it |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for step, _ in STEPS:
        found = [one.steps.get(step) for one in all_measured]
        if all(found):
            cells = [" / ".join(format(one[at], form) for one in found) for at, form in enumerate((".2f", ".2f", ",.0f", ",.0f"))]
            ratios = [f"**{found[0][at] / max(min(one[at] for one in found[1:]), TICK_S):.2f}**" if found[1:] else "" for at in (0, 1)]
            lines.append(f"| {step} | {cells[0]} | {ratios[0]} | {cells[1]} | {ratios[1]} | {cells[2]} | {cells[3]} |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--servers", default="omnibus,newer-mariadb,mysql", help="as far as they are there")
    parser.add_argument("--only", default="")
    parser.add_argument("--memory", help="a limit for each server, as the kernel's files take it: 1G")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    done = []
    with tempfile.TemporaryDirectory(prefix="bulk-") as directory:
        file = pathlib.Path(directory) / "rows"
        write_rows(file, options.rows)
        os.chmod(directory, 0o755)
        try:
            for name in options.servers.split(","):
                if name != "omnibus" and not other_servers.is_there(name):
                    continue
                home = pathlib.Path(directory) / name
                home.mkdir()
                done.append(Measured(name, home, options))
                done[-1].run(file, options.only)
        finally:
            other_servers.unmount(directory)
    lines = table(done)
    print("\n".join(lines))
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
