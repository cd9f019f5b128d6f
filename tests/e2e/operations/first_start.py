#!/usr/bin/python3
"""A first start that is killed, or meets an error, at any of its operations on files: the next start works.

    first_start.py [--all | --points N]     the first one on each new file, and all others, or N of them (default 16)

Ring: gate.
"""

import argparse
import pathlib
import random
import re
import shutil
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from device import preload  # noqa: E402
from omnibus import Omnibus, Scratch, client, expect  # noqa: E402
from recorded import CHANGES, Trace  # noqa: E402


class FirstStart:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory).resolve()
        self.library = preload("record_io", self.directory)
        self.trace = self.directory / "trace"

    def server(self, **env):
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        root = str(self.directory / "data")
        return Omnibus(self.directory, "--max-binlog-size=1048576",
                       env={"LD_PRELOAD": str(self.library), "RECORD_IO_ROOT": root, **env})

    def watched(self):
        """How many operations a start has until it serves, and what the files are called that it makes, up to the first digit."""
        server = self.server(RECORD_IO_TRACE=str(self.trace))
        server.start()
        server.kill()
        records = [record for record in Trace(self.trace).records if record.kind in CHANGES]
        root = self.directory / "data"
        made = {str(pathlib.Path(record.path).relative_to(root)) for record in records if record.kind == b"O"}
        return len(records), sorted({re.split(r"\d|(?<=/\.tmp)", name)[0] for name in made})

    def empty(self, name):
        """It has its name, and nothing is in it."""
        self.point(1, "KILL", RECORD_IO_NAME=name)

    def point(self, at, how, **env):
        server = self.server(RECORD_IO_AT=str(at), RECORD_IO_HOW=how, **env)
        at = f"{at} {env}"
        try:
            server.start()
            # Background work is not in the same order each time, and some errors are no reason to stop.
            server.kill()
        except RuntimeError:
            text = server.log_tail()
            died = server.process.returncode
            expect(died == -signal.SIGKILL if how == "KILL" else died > 0, f"{how} at {at}: it ended with {died}\n{text}")
            expect("panicked" not in text, f"{how} at {at}: a panic\n{text}")
        again = Omnibus(self.directory, "--max-binlog-size=1048576")
        try:
            again.start()
        except RuntimeError as error:
            expect(False, f"a start after {how} at operation {at} of the first one: {error}")
        client(again, "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); CREATE TABLE d.b (a INT PRIMARY KEY) ENGINE=BTREE;"
                      "INSERT INTO d.t VALUES (1); INSERT INTO d.b VALUES (2)")
        again.kill()
        again.start()
        expect(client(again, "SELECT a FROM d.t UNION ALL SELECT a FROM d.b") == "1\n2\n", f"{how} at {at}: rows are gone")
        again.kill()


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--all", action="store_true")
    arguments.add_argument("--points", type=int, default=16)
    seeds.add_to(arguments)
    arguments = arguments.parse_args()
    with Scratch("omnibus-first-") as directory:
        test = FirstStart(directory)
        last, made = test.watched()
        expect(len(made) > 15, made)
        for name in made:
            test.empty(name)
        points = [(at, how) for at in range(1, last + 1) for how in ("KILL", "EIO", "ENOSPC")]
        if not arguments.all:
            points = sorted(random.Random(arguments.seed).sample(points, arguments.points))
        for at, how in points:
            test.point(at, how)
        print(f"first_start: {len(made)} new files, {len(points)} points of {last} operations ok")


if __name__ == "__main__":
    main()
