#!/usr/bin/python3
"""`omnibus import` from Debian's MariaDB while others write, into both dialects: copied, compared, followed, cut over.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from imports import Mover, Writers, fill, target  # noqa: E402
from omnibus import client, expect  # noqa: E402
from peers import MariaPeer, expect_equal, run_chosen  # noqa: E402

ROWS = 3000


def moved(directory, dialect, *options):
    source = MariaPeer(f"{directory}/source", 1)
    source.start()
    fill(source, ROWS)
    into = target(directory, 2, dialect)
    mover = Mover(source, into)
    writers = Writers(source)
    said = mover.run("--until-caught-up", *options)
    expect(" 0 differences" in said and "follows the source" in said, said)
    mover.run("--check-only", *options)
    client(into, "SET sql_log_bin = 0; UPDATE shop.orders SET total = total + 1 WHERE id = 1")
    said = mover.run("--check-only", *options, code=4)
    expect("shop.orders: (id) after" in said and "different: 1 ((1))" in said and "1 differences" in said, said)
    client(into, "SET sql_log_bin = 0; UPDATE shop.orders SET total = total - 1 WHERE id = 1")
    writers.stop()
    said = mover.run("--cut-over", "--set-read-only", *options)
    expect("cut over in" in said, said)
    if not options:
        expect_equal(source, into, ["shop", "types"], least_rows=2 * ROWS)
    expect(not client(into, "SHOW REPLICA STATUS").strip(), "the channel is left")
    source.stop()
    into.stop()


def into_its_dialect(directory):
    moved(directory, "mariadb")


def into_the_other_dialect(directory):
    """Without what only MariaDB has: its own types and sequences are named, and can be left out."""
    moved(directory, "mysql", "--skip-refused", "--exclude", "types.fixed", "shop.numbers")


if __name__ == "__main__":
    run_chosen("import_mariadb", [into_its_dialect, into_the_other_dialect])
