#!/usr/bin/python3
"""The command blocks of the pages that need nothing besides clients: README.md, backup, failover and replication. `pages.py`
runs those of all pages.

Ring: gate.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pages  # noqa: E402

FIRST = ["README.md", "backup.md", "failover.md", "replication.md"]


def main():
    pages.listed_blocks_exist()
    for page in pages.PAGES:
        if page.name in FIRST:
            began = time.monotonic()
            ran, listed = pages.run_page(page)
            print(f"{page}: {ran} blocks run, {listed} listed, {time.monotonic() - began:.1f} s", flush=True)
    print("ok: the first pages run as they are printed")


if __name__ == "__main__":
    main()
