"""Starts and stops an Omnibus server, and a private MariaDB, for the tests and benchmarks written in Python.

Servers listen on a unix socket in a directory of their own, and on a free port of 127.0.0.1. Needs Debian's
mariadb-server, mariadb-client and python3-pymysql (`scripts/install-test-tools`).
"""

import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def binary() -> str:
    """The server under test: $OMNIBUS, or the release build."""
    return os.environ.get("OMNIBUS", str(ROOT / "target" / "release" / "omnibus"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Omnibus:
    """One server on one data directory; may be killed and started again."""

    def __init__(self, directory, *options, env=None):
        self.directory = pathlib.Path(directory)
        self.datadir = self.directory / "data"
        self.socket = str(self.directory / "s.sock")
        self.port = free_port()
        self.options = list(options)
        self.env = dict(os.environ, **(env or {}))
        self.process = None

    def start(self, timeout=120):
        log = open(self.directory / "server.log", "ab")
        command = [binary(), "serve", "--datadir", str(self.datadir), "--socket", self.socket]
        command += ["--port", str(self.port), *self.options]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=self.env, text=True
        )
        started = time.monotonic()
        while True:
            line = self.process.stdout.readline()
            if "ready for connections" in line:
                return time.monotonic() - started
            if line == "" or time.monotonic() - started > timeout:
                raise RuntimeError(f"server did not start; see {self.directory}/server.log:\n{self.log_tail()}")

    def log_tail(self, lines=20):
        text = (self.directory / "server.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, timeout=60):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout)

    def binlogs(self):
        return sorted(str(path) for path in self.datadir.glob("binlog.[0-9]*"))


class MariaDB:
    """A private MariaDB server from Debian's packages."""

    def __init__(self, directory, *options, env=None):
        self.directory = pathlib.Path(directory)
        self.datadir = self.directory / "mariadb"
        self.socket = str(self.directory / "m.sock")
        self.options = list(options)
        self.env = dict(os.environ, **(env or {}))
        self.process = None

    def start(self, timeout=60):
        if not self.datadir.exists():
            subprocess.run(
                ["mariadb-install-db", "--no-defaults", f"--datadir={self.datadir}", "--user=root",
                 "--auth-root-authentication-method=normal", "--skip-test-db"],
                check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        log = open(self.directory / "mariadb.log", "ab")
        command = ["mariadbd", "--no-defaults", f"--datadir={self.datadir}", f"--socket={self.socket}",
                   "--user=root", "--skip-networking", *self.options]
        self.process = subprocess.Popen(command, stdout=log, stderr=log, env=self.env)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ping = subprocess.run(["mariadb-admin", "--no-defaults", f"--socket={self.socket}", "-uroot", "ping"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if ping.returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"MariaDB did not start; see {self.directory}/mariadb.log")

    def stop(self, timeout=60):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout)
