"""The real MySQL and MariaDB that `scripts/peers` makes and starts (needs root), by its names `mysql` and `mariadb`."""

import pathlib
import subprocess

from omnibus import ROOT

SCRIPT = ROOT / "scripts" / "peers"


def socket(name):
    """Where that server listens, if it runs."""
    return subprocess.run([SCRIPT, name, "socket"], check=True, capture_output=True, text=True).stdout.strip()


def started(name):
    """The socket of that server, which runs now."""
    subprocess.run([SCRIPT, name, "start"], check=True)
    return socket(name)


def root(name):
    """The folder that the server sees as `/`. It need not be there."""
    return pathlib.Path(socket(name)).parents[3]


def root_with(name, program):
    """The same, with that program in it."""
    folder = root(name)
    if not (folder / program).exists():
        for verb in ("start", "stop"):
            subprocess.run([SCRIPT, name, verb], check=True)
    return folder


def inside(folder):
    """The words in front of a command that runs in that root, where a test's own folder for temporary files is not."""
    return ["env", "--unset=TMPDIR", "chroot", str(folder)]
