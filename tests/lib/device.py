"""Libraries of tests/tools that a server is started under (LD_PRELOAD), and a device that they make slower."""

import pathlib
import subprocess

from omnibus import ROOT


def preload(name, directory):
    """Compiles tests/tools/<name>.c; returns the library's path in `directory`."""
    library = pathlib.Path(directory) / f"{name}.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests" / "tools" / f"{name}.c", "-ldl", "-lpthread"], check=True)
    return library


class SlowDevice:
    """A device that can be made slower while the server runs: each sync takes `us` microseconds longer. It counts them, too.

    With `before`, the time passes before a write reaches the file, so that a killed server loses what was on its way.
    """

    def __init__(self, directory, us, before=False):
        self.us = us
        directory = pathlib.Path(directory)
        self.delay, self.count = directory / "delay", directory / "count"
        for file in (self.delay, self.count):
            file.write_bytes(bytes(8))
        self.env = {"LD_PRELOAD": str(preload("slow_sync", directory)), "SLOW_SYNC_US_FILE": str(self.delay), "SYNC_COUNT_FILE": str(self.count)}
        if before:
            self.env["SLOW_SYNC_BEFORE"] = "1"

    def is_slow(self, slow):
        """Says whether syncs take longer from now on."""
        # In place: the server has it mapped.
        with open(self.delay, "r+b") as file:
            file.write((self.us if slow else 0).to_bytes(8, "little"))

    def syncs(self):
        """The number of syncs so far."""
        return int.from_bytes(self.count.read_bytes(), "little")
