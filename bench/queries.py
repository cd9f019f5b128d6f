#!/usr/bin/python3
"""CPU of the server per query, beside other servers (bench/other_servers.py): sysbench's reads, the 22 queries of TPC-H, and what the planner's
constants say a row costs (crates/sql/src/plan/cost/price.rs).

The CPU is the server process's own, by its clock, so that a busy machine matters little. Tables and queries of TPC-H are those
of crates/sql/testdata/explain_tpch.test, at another scale, or with the rows of files that the benchmark's own generator has made
(`--tables DIRECTORY`: lineitem.tsv and so on, tab-separated). Each query runs until it has used enough CPU to be measured, at
most so many times, and its cheapest run counts; the answers of all servers are compared. A query that takes longer than LIMIT_S
is given up and said so. Ratios are to the better peer; at the end are the totals of TPC-H and the geometric mean of its ratios.

Usage: queries.py [--scale 20] [--tables DIRECTORY] [--only REGEX] [--peers mariadb,newer-mariadb,mysql] [--output FILE]
"""

import argparse
import math
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
from pymysql.err import OperationalError  # noqa: E402

TPCH = ROOT / "crates/sql/testdata/explain_tpch.test"
# Its tables; a nation's region is there before it.
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
# CPU seconds that make a measurement, and wall seconds that end it.
ENOUGH_S, PATIENCE_S = 0.3, 20
# Seconds that a query may take.
LIMIT_S = 30
ROWS = 100_000


def tpch(scale, tables):
    """The statements that make the database, of rows in files if there is a directory, and the queries."""
    lines = [line[2:].rstrip("\n") for line in TPCH.open() if line.startswith("> ")]
    make = [re.sub(r"/\*scale\*/\d+", str(scale), line) for line in lines if not line.startswith(("EXPLAIN", "USE"))]
    if tables:
        make = [line for line in make if not re.match(r"INSERT INTO (%s) " % "|".join(TABLES), line)]
        make += [f"LOAD DATA LOCAL INFILE '{(tables / name).resolve()}.tsv' INTO TABLE {name}" for name in TABLES]
        make.append(f"ANALYZE TABLE {', '.join(TABLES)}")
    return make, [(f"tpch_q{at}", line.removeprefix("EXPLAIN ")) for at, line in
                  enumerate((line for line in lines if line.startswith("EXPLAIN")), 1)]


def sysbench():
    """A table like sysbench's, and its reads."""
    make = ["CREATE TABLE sbtest (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k (k))",
            f"INSERT INTO sbtest SELECT n + 1, n * 7919 % {ROWS}, REPEAT(n % 10, 119), REPEAT(n % 7, 59) FROM "
            "(SELECT a.d + 10 * b.d + 100 * c.d + 1000 * d.d + 10000 * e.d AS n FROM digits a, digits b, digits c, digits d, digits e) q",
            "ANALYZE TABLE sbtest"]
    ranges = " OR ".join(f"k BETWEEN {at} AND {at + 5}" for at in range(500, 95_000, 9_500))
    points = ", ".join(str(at) for at in range(500, 95_000, 9_500))
    return make, [
        ("point", "SELECT c FROM sbtest WHERE id = 4711"),
        ("simple_range", "SELECT c FROM sbtest WHERE id BETWEEN 4711 AND 4810"),
        ("sum_range", "SELECT SUM(k) FROM sbtest WHERE id BETWEEN 4711 AND 4810"),
        ("order_range", "SELECT c FROM sbtest WHERE id BETWEEN 4711 AND 4810 ORDER BY c"),
        ("distinct_range", "SELECT DISTINCT c FROM sbtest WHERE id BETWEEN 4711 AND 4810 ORDER BY c"),
        ("random_ranges", f"SELECT count(k) FROM sbtest WHERE {ranges}"),
        ("random_points", f"SELECT id, k, c, pad FROM sbtest WHERE k IN ({points})"),
        ("union", "SELECT id FROM sbtest WHERE k = 4711 OR id = 815"),
        ("constant_row", "SELECT COUNT(*) FROM sbtest IGNORE INDEX (k) WHERE pad <> ''"),
        ("constant_lookup", "SELECT COUNT(pad) FROM sbtest FORCE INDEX (k) WHERE k >= 0 AND pad <> ''"),
        ("constant_hash", "SELECT COUNT(*) FROM sbtest a IGNORE INDEX (PRIMARY, k) JOIN sbtest b IGNORE INDEX (PRIMARY, k) ON b.k = a.id"),
    ]


# MariaDB hashes joins only if it is told to: without an index it compares every pair of rows.
PEER_SETTINGS = {"constant_hash": "SET join_cache_level = 4"}
OPTIONS = {"omnibus": ["--skip-networking", "--sync-binlog=0", "--local-infile=ON"]}
PEER_OPTIONS = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=1G", "--local-infile=ON"]


def cpu(server):
    """Seconds that a process has used: Linux has a clock for each, by this number."""
    return time.clock_gettime((~server.process.pid << 3) | 2)


def measure(server, cursor, sql):
    """Microseconds of CPU of the cheapest run, and the answer; nothing of a query that is given up."""
    try:
        cursor.execute(sql)
    except OperationalError as error:
        # 1969 and 3024: how either says that time is up.
        if error.args[0] not in (1969, 3024):
            raise
        return None, []
    answer = sorted(map(str, cursor.fetchall()))
    begun, used, runs = time.monotonic(), cpu(server), []
    while cpu(server) - used < ENOUGH_S and time.monotonic() - begun < PATIENCE_S:
        before = cpu(server)
        cursor.execute(sql)
        cursor.fetchall()
        runs.append(cpu(server) - before)
    return min(runs) * 1e6, answer


class Subject:
    """A server, its session, and what each query of TPC-H has cost it."""

    def __init__(self, name, directory):
        self.name, home, self.tpch = name, pathlib.Path(directory) / name, {}
        home.mkdir()
        if name == "omnibus":
            self.server = Omnibus(home, *OPTIONS[name])
            self.server.start()
        else:
            self.server = other_servers.start(name, home, *PEER_OPTIONS)
        self.cursor = connect(self.server, autocommit=True, local_infile=True).cursor()
        self.is_mariadb = "mariadb" in name

    def prepare(self, make):
        # MariaDB's limit is one of all statements, and a load takes its time.
        limit = "SET max_statement_time = {0}" if self.is_mariadb else "SET max_execution_time = {0}000"
        for sql in (limit.format(0), "CREATE DATABASE IF NOT EXISTS bench", "USE bench", *make, limit.format(LIMIT_S)):
            self.cursor.execute(sql)
            self.cursor.fetchall()

    def measure(self, name, sql):
        if self.is_mariadb:
            self.cursor.execute(PEER_SETTINGS.get(name, "SET join_cache_level = DEFAULT"))
        us, answer = measure(self.server, self.cursor, sql)
        if name.startswith("tpch_"):
            self.tpch[name] = us
        return us, answer


def table(subjects, queries):
    """The lines of the table, printed as they come."""
    def say(line):
        print(line, flush=True)
        lines.append(line)
    lines = []
    say("| query | " + " | ".join(f"{title(subject.name)} us" for subject in subjects) + " | ratio |")
    say("| --- |" + " --- |" * (len(subjects) + 1))
    for name, sql in queries:
        results = [subject.measure(name, sql) for subject in subjects]
        counts = {len(answer) for us, answer in results if us is not None}
        differs = f" (numbers of rows: {counts})" if len(counts) > 1 else ""
        took = " | ".join(f"over {LIMIT_S} s" if us is None else f"{us:,.0f}" for us, _ in results)
        say(f"| {name}{differs} | {took} | {ratio([us for us, _ in results])} |")
    asked = [name for name, _ in queries if name.startswith("tpch_")]
    costs = [[subject.tpch[name] for subject in subjects] for name in asked]
    if costs and all(us is not None for row in costs for us in row):
        sums = [sum(column) for column in zip(*costs)]
        say(f"| all of TPC-H | {' | '.join(f'{one:,.0f}' for one in sums)} | {ratio(sums)} |")
        if len(subjects) > 1:
            mean = math.exp(sum(math.log(row[0] / min(row[1:])) for row in costs) / len(costs))
            print(f"geometric mean of the ratios {mean:.2f}, the worst {max(row[0] / min(row[1:]) for row in costs):.2f}")
    return lines


def title(name):
    return "Omnibus" if name == "omnibus" else other_servers.version(name)


def ratio(costs):
    others = [us for us in costs[1:] if us is not None]
    return f"**{costs[0] / min(others):.2f}**" if costs[0] is not None and others else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--tables", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default="mariadb,newer-mariadb,mysql", help="servers to compare with, as far as they are there")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        try:
            subjects = [Subject(name, directory) for name in ("omnibus", *filter(other_servers.is_there, filter(None, options.peers.split(","))))]
            queries = []
            for make, asked in (tpch(options.scale, options.tables), sysbench()):
                for subject in subjects:
                    subject.prepare(make)
                queries += [(name, sql) for name, sql in asked if re.search(options.only, name)]
            lines = table(subjects, queries)
            for subject in subjects:
                subject.server.stop()
        finally:
            other_servers.unmount(directory)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
