#!/usr/bin/python3
"""Programs' own suites of tests, as their makers wrote them (`tests/programs`): what fails here and not on a real MariaDB is what
docs/programs.md lists, with the reason.

    programs.py            a sample, here only: nothing fails but what is listed
    programs.py --whole    all, here and on MariaDB; what is listed and does not fail is an error, too (`make test-programs`)
    --only django          one of them
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from omnibus import ROOT, MariaDB, Omnibus, Scratch, connect, expect

PROGRAMS = ROOT / "tests/programs"
# What is run: in the sample, and beside it in the whole form.
DJANGO = ["introspection", "constraints", "expressions_window"], ["backends", "schema", "migrations", "migrations2", "queries"]
SUITE = "test/dialect/test_suite.py"
SQLALCHEMY = [f"{SUITE}::{name}" for name in ("JSONTest", "QuotedNameArgumentTest", "RowCountTest", "ReturningTest", "UuidTest")], \
    [SUITE, "test/dialect/mysql"]


def run(command, folder, paths, socket):
    """What it says."""
    env = dict(os.environ, PROGRAMS_SOCKET=socket, PYTHONPATH=os.pathsep.join(map(str, paths)), PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run(["/usr/bin/python3", "-W", "ignore", *command], cwd=folder, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace")


def django(installed, socket, whole):
    """The names of tests that failed, and how many there were."""
    labels = DJANGO[0] + (DJANGO[1] if whole else [])
    said = run(["runtests.py", "--settings=django_settings", "--parallel=1", "--noinput", *labels], installed / "django/tests",
               [installed / "django", installed / "python", PROGRAMS], socket)
    count = re.search(r"^Ran (\d+) tests", said, re.M)
    expect(count, f"Django's suite did not end:\n{said[-3000:]}")
    return {name for name in re.findall(r"^(?:FAIL|ERROR): \w+ \(([\w.]+)\)", said, re.M)}, int(count[1])


def sqlalchemy(installed, socket, whole):
    """As `django`. Where a test's variants fail, its name stands once."""
    files = SQLALCHEMY[1] if whole else SQLALCHEMY[0]
    said = run(["-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "--maxfail=100000", "--dburi",
                f"mysql+pymysql://root@localhost/test?unix_socket={socket}", *files], installed / "sqlalchemy",
               [installed / "sqlalchemy/lib", installed / "python"], socket)
    end = re.search(r"^=+ (.*) in [\d.]+s", said, re.M)
    expect(end, f"SQLAlchemy's suite did not end:\n{said[-3000:]}")
    failed = {re.sub(r"_(mysql|mariadb)\+pymysql_[\d_]+", "", name) for name in re.findall(r"^(?:FAILED|ERROR) \S*?::(\w.*?)(?:\[| - |$)", said, re.M)}
    failed = {re.sub(r"_(mysql|mariadb)\+pymysql_[\d_]+", "", name).replace("::", ".") for name in failed}
    return failed, sum(int(n) for n, kind in re.findall(r"(\d+) (\w+)", end[1]) if kind in ("passed", "failed", "error", "errors"))


def listed(program):
    """The names in docs/programs.md."""
    text = (ROOT / "docs/programs.md").read_text()
    section = re.search(rf"^## {program}$(.*?)(?=^## |\Z)", text, re.M | re.S | re.I)
    expect(section, f"docs/programs.md has no section {program}")
    return set(re.findall(r"`([\w.]+)`", "".join(re.findall(r"^\| (`.*?) \|", section[1], re.M))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", choices=["django", "sqlalchemy"])
    chosen = parser.parse_args()
    installed = pathlib.Path(subprocess.run([PROGRAMS / "install"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())
    with Scratch("omnibus-programs-") as directory:
        server, peer = Omnibus(directory, "--sync-binlog=0"), None
        server.start()
        if chosen.whole:
            peer = MariaDB(directory, "--innodb-flush-log-at-trx-commit=0", "--character-set-server=utf8mb4")
            peer.start()
        for one in filter(None, [server, peer]):
            with connect(one).cursor() as cursor:
                for name in ("test", "test_schema"):
                    cursor.execute(f"CREATE DATABASE IF NOT EXISTS {name}")
        for program in (django, sqlalchemy):
            name, started = program.__name__, time.monotonic()
            if chosen.only not in (None, name):
                continue
            known = listed(name)
            failed, count = program(installed, server.socket, chosen.whole)
            shared = program(installed, peer.socket, True)[0] if peer else set()
            new = failed - shared - known
            expect(not new, f"{name}: fails here and is not listed: {sorted(new)}")
            if chosen.whole:
                expect(known <= failed - shared, f"{name}: listed, and does not fail: {sorted(known - (failed - shared))}")
            print(f"{name}: {count} tests, {len(failed)} fail here, {len(failed & shared)} of them on MariaDB too"
                  if peer else f"{name}: {count} tests of the sample, {len(failed)} fail as listed", f"({round(time.monotonic() - started)} s)", flush=True)


if __name__ == "__main__":
    main()
