#!/usr/bin/python3
"""Logs that newer servers wrote (MySQL 9.7, MariaDB 11.8), printed in every form, applied here, and compared with what their server held afterwards.

Among them: compressed transactions and events, PARTIAL_JSON, tagged GTIDs, MINIMAL images, changes of the checksum, `end_log_pos` of 0 inside
transactions, ALTER in two phases, uca1400 connections, a second domain. What is not here stops with its name, and nothing else does.

Ring: all.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, binary, client, expect  # noqa: E402
from peers import OmnibusPeer, run_chosen  # noqa: E402

FIXTURES = ROOT / "testdata/binlog"
# Views, sequences, system versioning and types of MariaDB; then that what they would have made is not there.
MISSING, GONE = {"1235"}, {"1146", "1054"}


def run_sql(server, text, *options):
    """Executes a script to its end; what it failed with, each (code, text)."""
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--binary-mode", "--force", *options], input=text, capture_output=True)
    return re.findall(r"ERROR (\d+) \(\w+\) at line \d+: (.*)", run.stderr.decode(errors="replace"))


def printed(path, form):
    run = subprocess.run([binary(), "binlog", *form, str(path)], capture_output=True)
    expect(run.returncode == 0 and not run.stderr, f"{path.name} {form}: {run.stderr.decode(errors='replace')}")
    return run.stdout


def check_errors(errors, what):
    others = [error for error in errors if error[0] not in MISSING | GONE]
    expect(others == [], f"{what}: {others[:3]}")


def rows(server, table):
    run = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", "--compact", "--skip-extended-insert", "--order-by-primary",
                          "--hex-blob", "fx", table], capture_output=True)
    expect(run.returncode == 0, run.stderr.decode())
    return run.stdout.decode()


def applied(directory, kind, dialect):
    """The tables after the logs are those of `after.sql`, also what cascades changed, which MySQL logs and MariaDB does not."""
    ours, after = (OmnibusPeer(f"{directory}/{name}", 1, f"--dialect={dialect}", "--ignore-unsupported-constraints=ON") for name in ("logs", "after"))
    ours.start()
    after.start()
    for path in sorted((FIXTURES / kind).glob("bin.0*")):
        for form in ([], ["-v"], ["--json"]):
            printed(path, form)
        check_errors(run_sql(ours, printed(path, ["--sql"])), path.name)
    client(after, "CREATE DATABASE fx")
    check_errors(run_sql(after, (FIXTURES / kind / "after.sql").read_bytes(), "fx"), "after.sql")
    tables = [set(client(server, "SHOW TABLES FROM fx").split()) for server in (ours, after)]
    both = sorted(tables[0] & tables[1])
    expect(len(both) >= 4 and {"types", "child"} <= set(both), f"tables of both: {tables}")
    for table in both:
        mine, theirs = rows(ours, table), rows(after, table)
        expect(mine == theirs, f"{kind}: {table} is {mine[-600:]} instead of {theirs[-600:]}")
    found = client(ours, "SELECT @@global.gtid_executed" if dialect == "mysql" else "SELECT @@global.gtid_binlog_pos")
    ours.stop()
    after.stop()
    return found


def mysql(directory):
    found = applied(directory, "mysql-9.7", "mysql")
    expect("356fe524-e66d-11f1-ba15-02fc00000001:1-18:20-46:blue:1-2" in found, f"GTIDs, those with tags too: {found}")


def mariadb(directory):
    found = applied(directory, "mariadb-11.8", "mariadb")
    expect("," in found, f"positions of two domains: {found}")


if __name__ == "__main__":
    run_chosen("foreign_logs", [mysql, mariadb])
