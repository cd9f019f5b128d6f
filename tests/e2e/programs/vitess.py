#!/usr/bin/python3
"""A sample of `make vitess`: Vitess, unpatched, on two shards with semi-synchronous replicas serves, changes a primary by command, and loses one to
kill -9 and makes another by EmergencyReparentShard, under a load whose every acknowledged row must be there once.

Ring: all.
"""

import os
import pathlib
import sys

SCENARIOS = "schema,planned,emergency"

if __name__ == "__main__":
    run = pathlib.Path(__file__).resolve().parents[2] / "vitess/run.py"
    os.execv(sys.executable, [sys.executable, "-u", str(run), "--only", SCENARIOS])
