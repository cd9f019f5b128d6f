#!/usr/bin/python3
"""`omnibus bench protocols`, `bench wakeup`: JSON that says what each protocol must do, natively and with slower syncs.
`bench responder` answers sysbench, each commit behind a write that is counted.

Ring: all.
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "lib"), str(ROOT / "bench")]
from compare import Responder  # noqa: E402
from device import preload  # noqa: E402
from omnibus import Scratch, binary  # noqa: E402


def bench(*arguments):
    run = subprocess.run([binary(), "bench", *arguments], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"FAIL: bench {arguments}:\n{run.stdout}{run.stderr}")
    return run.stdout


def main():
    with Scratch("omnibus-protocol-bench-") as name:
        library = preload("slow_sync", name)
        lines = bench("protocols", "--dir", name, "--json", "--connections", "1", "--rounds", "1", "--seconds", "0.1",
                      "--slow-us", "0,5000", "--preload", str(library)).splitlines()
        native, slow = (json.loads(line) for line in lines)
        for part in (native, slow):
            syncs = {row["protocol"]: row["syncs_per_commit"] for row in part["rows"]}
            # Once a second what was left unsynced is synced, which a slow machine meets.
            assert syncs.pop("none") < 0.1, syncs
            assert syncs == {"serialized": 3, "group": 2, "group-redo": 2, "one-sync": 1}, syncs
            for row in part["rows"]:
                assert row["log_bytes_over_events"] <= 1.15, row
        # Every sync takes its 5 ms, so a transaction waits that long for each of its own.
        for row in slow["rows"]:
            assert row["p50_us"] >= row["syncs_per_commit"] * 5000, row
        left = [path.name for path in pathlib.Path(name).iterdir() if path != library]
        assert not left, f"left behind: {left}"
        refused = subprocess.run([binary(), "bench", "protocols", "--dir", name, "--slow-us", "1"], capture_output=True)
        assert refused.returncode == 1 and b"--preload" in refused.stderr, refused
    ways = json.loads(bench("wakeup", "--waiters", "50", "--rounds", "1", "--json"))["ways"]
    assert len(ways) == 3 and all(way["all_ms"] > 0 for way in ways), ways
    limited = responder()
    print(f"ok: {len(native['rows'])} protocols, natively and slowed; 3 ways of waking; {limited} commits of a responder")


def responder():
    with Scratch("omnibus-responder-") as name:
        directory = pathlib.Path(name)
        subject = Responder("responder", directory, preload("slow_sync", directory), 0)
        subject.fresh_tables()
        alone, together = subject.measure("oltp_update_index", 1, 1), subject.measure("oltp_insert", 16, 1)
        # A lone client's commits share no write; the clients of many do.
        assert 1 <= alone["syncs"] < 1.1 and together["group"] > 1.5, (alone, together)
        subject.server.stop()
        left = {path.name for path in (directory / "responder").iterdir()}
        assert not left, f"left behind: {left}"
        return alone["count"] + together["count"]


if __name__ == "__main__":
    main()
