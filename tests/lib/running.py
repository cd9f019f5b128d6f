"""Runs commands side by side: each with a time limit, a folder of its own for temporary files, and its output kept. Nothing of them stays when
they have ended, unless they failed: then their files do.
"""

import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclasses.dataclass
class Job:
    command: list
    budget_s: int
    env: dict = dataclasses.field(default_factory=dict)

    def name(self):
        return " ".join([*(f"{key}={value}" for key, value in self.env.items()), *self.command])


@dataclasses.dataclass
class Result:
    job: Job
    status: int
    seconds: int
    said: str
    # Its files, if it failed and left some.
    folder: pathlib.Path | None

    def name(self):
        return self.job.name()


class Running:
    """A job that has been started."""

    def __init__(self, job):
        self.job, self.started = job, time.monotonic()
        self.output = tempfile.TemporaryFile()
        # What it leaves there goes with it, unless it fails. As in any folder for temporary files other accounts write there, too.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-"))
        self.folder.chmod(0o1777)
        limit = ["timeout", "--foreground", "--kill-after=60", str(job.budget_s)]
        # In a process group of its own, so that what it leaves ends with it.
        self.process = subprocess.Popen([*limit, *job.command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=self.output,
                                        stderr=subprocess.STDOUT, start_new_session=True, env={**os.environ, "TMPDIR": str(self.folder), **job.env})

    def seconds(self):
        return round(time.monotonic() - self.started)

    def ended(self):
        if self.process.poll() is None:
            return None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.output.seek(0)
        said = self.output.read().decode(errors="replace")
        kept = self.process.returncode != 0 and any(self.folder.iterdir())
        if not kept:
            shutil.rmtree(self.folder, ignore_errors=True)
        return Result(self.job, self.process.returncode, self.seconds(), said, self.folder if kept else None)

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
                self.process.wait(60)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        shutil.rmtree(self.folder, ignore_errors=True)


def run(jobs, at_once):
    """Runs all of them, so many at once, and gives the result of each as it ends. `jobs` may make them when they are asked for."""
    waiting, running, more = iter(jobs), [], True
    try:
        while more or running:
            while more and len(running) < at_once:
                job = next(waiting, None)
                more = job is not None
                if more:
                    running.append(Running(job))
            time.sleep(0.1)
            for test in list(running):
                if result := test.ended():
                    running.remove(test)
                    yield result
    finally:
        for test in running:
            test.stop()
