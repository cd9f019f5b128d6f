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


def expect(condition, message):
    """Ends the test with a message unless the condition holds."""
    if not condition:
        raise SystemExit(f"FAIL: {message}")


def client(server, sql, *options, user="root", check=True, stdin=None):
    """Runs the mariadb command-line client; returns its standard output, tab-separated."""
    command = ["mariadb", "--no-defaults", f"--socket={server.socket}", f"-u{user}", "--default-character-set=utf8mb4",
               "--batch", "--skip-column-names", *options]
    if sql is not None:
        command += ["-e", sql]
    run = subprocess.run(command, capture_output=True, stdin=stdin)
    if check:
        expect(run.returncode == 0, f"{sql}: {run.stderr.decode(errors='replace')}")
        return run.stdout.decode("utf-8", errors="surrogateescape")
    return run


def connect(server, **more):
    """A PyMySQL connection over the unix socket."""
    import pymysql
    more.setdefault("user", "root")
    return pymysql.connect(unix_socket=server.socket, **more)


def error_code(function):
    """The MySQL error code that `function` fails with, or 0."""
    import pymysql
    try:
        function()
    except pymysql.err.MySQLError as error:
        return error.args[0]
    return 0


def finished_binlogs(server):
    """The server's whole log, in files that are not written any more: the one in use ends in preallocated zeros."""
    if server.process is None or server.process.poll() is not None:
        return server.binlogs()
    client(server, "FLUSH LOGS")
    return server.binlogs()[:-1]


def tagged_gtid(body):
    """What MySQL's serialization library has written in a GTID_TAGGED event."""
    import uuid
    at = 0

    def number():
        nonlocal at
        more = next(n for n in range(9) if not body[at] >> n & 1)
        value = int.from_bytes(body[at:at + 1 + more], "little") >> (more + 1)
        at += 1 + more
        return value

    version, size, _ = number(), number(), number()
    expect(version == 1 and size <= len(body), f"a tagged GTID of version {version} and {size} bytes")
    flags, _, ident, source = number(), number(), number(), [number() for _ in range(16)]
    field, gno, tag = number(), number() >> 1, number()
    expect((flags, ident, field, tag) == (0, 1, 2, 3), "fields of a tagged GTID")
    length = number()
    return f"{uuid.UUID(bytes=bytes(source))}:{body[at:at + length].decode()}:{gno}"


def log_gtids(paths):
    """The global transaction ids in log files, in order: 'uuid:n', 'uuid:tag:n' or 'domain-server-n'."""
    import uuid
    found = []
    for path in paths:
        data = pathlib.Path(path).read_bytes()
        at = 4
        while at + 19 <= len(data):
            kind, server_id = data[at + 4], int.from_bytes(data[at + 5:at + 9], "little")
            size = int.from_bytes(data[at + 9:at + 13], "little")
            if size < 19 or at + size > len(data):
                break
            body = data[at + 19:at + size]
            if kind == 33:
                found.append(f"{uuid.UUID(bytes=body[1:17])}:{int.from_bytes(body[17:25], 'little')}")
            elif kind == 42:
                found.append(tagged_gtid(body))
            elif kind == 162:
                sequence, domain = int.from_bytes(body[:8], "little"), int.from_bytes(body[8:12], "little")
                found.append(f"{domain}-{server_id}-{sequence}")
            at += size
    return found


def replay(server, peer, *options):
    """Pipes the server's whole log through mariadb-binlog into another server."""
    reader = subprocess.Popen(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", *options,
                               *finished_binlogs(server)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    applied = subprocess.Popen(["mariadb", "--no-defaults", f"--socket={peer.socket}", "-uroot", "--binary-mode"],
                               stdin=reader.stdout, stderr=subprocess.PIPE, text=True)
    # With its own end open here, the reader would wait for ever after a statement that is refused.
    reader.stdout.close()
    refusal = applied.communicate()[1]
    complaints = reader.stderr.read().decode(errors="replace")
    reader.wait()
    expect(applied.returncode == 0, f"the replay was refused: {refusal[-3000:]}")
    expect(reader.returncode == 0, f"mariadb-binlog failed on the log: {complaints[-2000:]}")


class Session:
    """One connection, and what its statements answer."""

    def __init__(self, server, **more):
        self.db = connect(server, autocommit=True, **more)
        self.cursor = self.db.cursor()

    def __call__(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall()

    def run(self, *statements):
        for sql in statements:
            self(sql)

    def value(self, sql):
        return self(sql)[0][0]

    def fails(self, sql, code):
        got = error_code(lambda: self(sql))
        expect(got == code, f"{sql}: error {got} instead of {code}")

    def close(self):
        self.db.close()
