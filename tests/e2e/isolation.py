#!/usr/bin/python3
"""Isolation levels and table locks: scripts of several sessions answer, wait and fail as MariaDB's do.

What a transaction has written hides every other version of those rows from it, and no other rows (SNAP-2).

The scripts are in testdata/isolation; `isolation.py NAME...` runs those whose name contains one of the words.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from omnibus import ROOT, Omnibus, Scratch, expect  # noqa: E402
from peers import MariaPeer  # noqa: E402
from sessions import Script, compare, parse  # noqa: E402


def main():
    words = sys.argv[1:]
    with Scratch("omnibus-isolation-") as directory:
        ours, theirs = Omnibus(directory), MariaPeer(pathlib.Path(directory) / "maria", 2)
        ours.start()
        theirs.start()
        failed, count = [], 0
        for path in sorted((ROOT / "testdata/isolation").glob("*.txt")):
            for name, script in parse(path.read_text()).items():
                if words and not any(word in f"{path.stem} {name}" for word in words):
                    continue
                differences = compare(script, Script(ours, "isolation"), Script(theirs, "isolation"))
                print(f"isolation: {path.stem}: {name}: {'differs' if differences else 'ok'}", flush=True)
                failed += [f"{path.stem}: {name}: {difference}" for difference in differences]
                count += 1
        ours.stop()
        theirs.stop()
        expect(not failed, f"{len(failed)} answers differ\n" + "\n".join(failed))
        print(f"{count} scripts passed, 0 failed")


if __name__ == "__main__":
    main()
