"""Where tests that draw lots get their seed: the same one each time, as tests/seeds.txt has it, so that a gate is closed by a fault and not by
a draw. `make hunt` gives others by `--seed`, which each of them takes.
"""

import argparse
import pathlib
import sys

SEEDS = pathlib.Path(__file__).resolve().parents[1] / "seeds.txt"


def fixed(name):
    """The seed that is written down for a test: its path below `tests`, without `.py`."""
    for line in SEEDS.read_text().splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    raise SystemExit(f"FAIL: {SEEDS} has no seed for {name}")


def own_name():
    """The name of the script that runs."""
    return str(pathlib.Path(sys.argv[0]).resolve().relative_to(SEEDS.parent).with_suffix(""))


def add_to(parser: argparse.ArgumentParser):
    """Adds `--seed N`."""
    parser.add_argument("--seed", type=int, default=fixed(own_name()), help="of all that is drawn (default: %(default)s, as tests/seeds.txt has it)")


def of_this_run() -> int:
    """The seed of a script whose other arguments are its own affair; says it, and takes it off the arguments."""
    if "--seed" in sys.argv:
        at = sys.argv.index("--seed")
        seed = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
        OWN.append(seed)
    seed = OWN[-1] if OWN else fixed(own_name())
    print(f"seed {seed}", flush=True)
    return seed


OWN = []
