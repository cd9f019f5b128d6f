#!/usr/bin/python3
"""Programs' own suites of tests, as their makers wrote them (`tests/programs`): what fails here and not on a real MariaDB is what
docs/use/programs.md lists, with the reason.

    programs.py            a sample, here only: nothing fails but what is listed
    programs.py --whole    all, here and on MariaDB; what is listed and does not fail is an error, too (`make test-programs`)
    --only Django          one of them

Ring: all.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, MariaDB, Omnibus, Scratch, client, expect, free_port
from suites import LARGE, PROGRAMS, SUITES


def listed(program):
    """The names in docs/use/programs.md."""
    text = (ROOT / "docs/use/programs.md").read_text()
    section = re.search(rf"^## {program}$(.*?)(?=^## |\Z)", text, re.M | re.S | re.I)
    expect(section, f"docs/use/programs.md has no section {program}")
    return set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.*?`) \|", section[1], re.M))))


def install(whole):
    """Where things are, by language."""
    said = subprocess.run([PROGRAMS / "install", *(["--whole"] if whole else [])], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {language: pathlib.Path(folder) for language, folder in map(str.split, said.splitlines())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--only", choices=sorted(SUITES))
    chosen = parser.parse_args()
    installed, wrong = install(chosen.whole), []
    with Scratch("omnibus-programs-") as directory:
        server, peer = Omnibus(directory, "--sync-binlog=0", "--local-infile=1"), None
        if chosen.whole:
            peer = MariaDB(directory, "--innodb-flush-log-at-trx-commit=0", "--character-set-server=utf8mb4", "--skip-networking=0",
                           "--bind-address=127.0.0.1", f"--port={(port := free_port())}")
            peer.port = port
        for one in filter(None, [server, peer]):
            one.start()
            # For drivers that have no unix sockets.
            client(one, "CREATE USER program@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO program@'127.0.0.1' WITH GRANT OPTION")
        for name, suite in SUITES.items():
            if chosen.only not in (None, name) or name in LARGE and not chosen.whole:
                continue
            started, known = time.monotonic(), listed(name)
            failed, count = suite(installed, server, chosen.whole)
            shared = suite(installed, peer, True)[0] if peer else set()
            if new := failed - shared - known:
                wrong.append(f"{name}: fails here and is not listed: {sorted(new)}")
            if chosen.whole and (gone := known - (failed - shared)):
                wrong.append(f"{name}: listed, and does not fail: {sorted(gone)}")
            print(f"{name}: {count} tests, {len(failed)} fail here, {len(failed & shared)} of them on MariaDB too, {len(shared - failed)} there only"
                  if peer else f"{name}: {count} tests of the sample, {len(failed)} fail as listed", f"({round(time.monotonic() - started)} s)", flush=True)
    expect(not wrong, "\n".join(wrong))


if __name__ == "__main__":
    main()
