#!/usr/bin/python3
"""Statements and what MySQL answers, on both engines: where programs written for MySQL would be wrong in silence with another answer. All files run
twice, so that what is kept of a text for its next run (the statement cache) is held to the same answers.

    mysql_answers.py                     every golden script in testdata/mysql, against the answers that are recorded
    mysql_answers.py --peer              and against a real MySQL, which `scripts/peers` has (needs root)
    mysql_answers.py --update FILE..     writes what that MySQL answers into the files
    FILE..                               these

The format is that of testdata/differential/README.md; after a line `---- mariadb` is what we answer where it is another on purpose.

Ring: gate.
"""

import argparse
import pathlib
import re
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import golden
import real_peers
from omnibus import ROOT, Omnibus, Scratch, client, expect

FOLDER = ROOT / "testdata/mysql"
# Warnings without which nothing is wrong: a document as a truth value (3986), documents sorted (1235), EXPLAIN's query in other words (1003), what MySQL calls deprecated (3135 among them: modes without each other).
ONLY_MYSQL = re.compile(r" ?!(3986|1003|1235|1287|1681|3135|4095)(x\d+)?(?=[ :;|!]|$)")


def answers(socket, engine, files):
    """What one server says to each file. MySQL is asked as ours is: what `golden` sets for MariaDB alone is not for it."""
    runner = golden.Runner(types.SimpleNamespace(socket=socket), engine)
    return {path: runner.run_file(records) for path, (records, _) in files.items()}


def check(name, files, got):
    failed = 0
    for path, (records, _) in files.items():
        for at, record in enumerate(records):
            ours = name != "MySQL"
            expected = record.peer if record.peer and ours else record.expected
            if ours:
                expected = [ONLY_MYSQL.sub("", line) for line in expected]
            if expected != got[path][at]:
                failed += 1
                print(f"{path.name}:{record.line}: {name}: {' '.join(record.text)[:300]}")
                print(f"    expected {expected[:12]}\n    got      {got[path][at][:12]}")
    return failed


def cache_hits(server):
    return int(client(server, "SHOW GLOBAL STATUS LIKE 'Omnibus_statement_cache_hits'").split()[1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--update", action="store_true")
    options = parser.parse_args()
    files = {path: golden.read(path) for path in options.files or sorted(FOLDER.glob("*.test"))}
    expect(files, "no golden scripts")
    failed = 0
    if options.peer or options.update:
        got = answers(real_peers.started("mysql"), "InnoDB", files)
        if options.update:
            for path, (records, comments) in files.items():
                for record, lines in zip(records, got[path]):
                    record.expected = lines
                golden.write(path, records, comments)
        failed += check("MySQL", files, got)
    with Scratch() as scratch:
        folder = pathlib.Path(scratch)
        for engine in ("LSM", "BTREE"):
            (folder / engine).mkdir()
            server = Omnibus(folder / engine, "--skip-networking", "--sync-binlog=0")
            server.start()
            failed += check(engine, files, answers(server.socket, engine, files))
            hits = cache_hits(server)
            failed += check(f"{engine} again", files, answers(server.socket, engine, files))
            expect(options.files or cache_hits(server) > hits + len(files), f"the second run hits the cache {cache_hits(server) - hits} times")
            server.stop()
    expect(not failed, f"{failed} answers are not as expected")


if __name__ == "__main__":
    main()
