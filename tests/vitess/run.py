#!/usr/bin/python3
"""Vitess on Omnibus: two shards with semi-synchronous replicas and VTOrc, and what Vitess does with them under load.

`make vitess`; ARGS="--only reshard,planned" for some, --list for their names, --keep to keep the folder with all logs.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from omnibus import expect  # noqa: E402
from scenarios import KEYSPACE, SCENARIOS, SHARDS  # noqa: E402
from topology import Cluster, adopt_orphans, end_all  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAMES", help="some of the scenarios, with commas")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--keep", action="store_true", help="keep the folder, whatever happens")
    return parser.parse_args()


def programs():
    made = subprocess.run([str(HERE / "install")], stdout=subprocess.PIPE, text=True)
    expect(made.returncode == 0, "tests/vitess/install failed")
    return pathlib.Path(made.stdout.strip())


def main():
    wanted = arguments()
    if wanted.list:
        for name, scenario in SCENARIOS.items():
            print(f"{name:<12}{scenario.__doc__}")
        return
    names = wanted.only.split(",") if wanted.only else list(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    expect(not unknown, f"no scenario {unknown}; there are {', '.join(SCENARIOS)}")
    folder = tempfile.mkdtemp(prefix="omnibus-vitess-")
    adopt_orphans()
    holds = False
    try:
        begun = time.monotonic()
        cluster = Cluster(folder, programs())
        cluster.start({KEYSPACE: SHARDS})
        print(f"cluster: {len(cluster.tablets)} tablets in {len(SHARDS)} shards [{time.monotonic() - begun:.0f} s]", flush=True)
        for name in names:
            begun = time.monotonic()
            print(f"{name}: {SCENARIOS[name](cluster)} [{time.monotonic() - begun:.0f} s]", flush=True)
        holds = True
    finally:
        end_all()
        if holds and not wanted.keep:
            shutil.rmtree(folder)
        else:
            print(f"logs are in {folder}", file=sys.stderr)


if __name__ == "__main__":
    main()
