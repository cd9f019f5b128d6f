"""Starts and stops an Omnibus server, and a private MariaDB, for the tests and benchmarks written in Python.

Servers listen on a unix socket in a directory of their own, and on a port of 127.0.0.1 that is theirs. Needs Debian's
mariadb-server, mariadb-client and python3-pymysql (`scripts/install-test-tools`).

However a script ends, its servers end with it, and before their directory goes (`Scratch`): what it failed with is the
last that it says. What fails in a thread fails the script.
"""

import atexit
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[2]
# For what comes at once on an idle machine: reached only by what never comes, however busy the machine is.
PATIENCE_S = 300


def binary() -> str:
    """The server under test: $OMNIBUS, or the release build."""
    return os.environ.get("OMNIBUS", str(ROOT / "target" / "release" / "omnibus"))


def free_port() -> int:
    """A port that is this script's own until it ends, also while nobody listens there.

    It is none of those that the system takes for outgoing connections: such a one may be gone between two lives of a
    server, and a replica that keeps trying to reach its stopped source can even meet itself there. Scripts that run at
    the same time see by a lock, a name that goes with its process, what is taken.
    """
    outgoing = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = list(range(10_000, outgoing if outgoing > 12_000 else 60_000))
    random.SystemRandom().shuffle(ports)
    for port in ports:
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0omnibus-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("", port))
        except OSError:
            lock.close()
            continue
        PORT_LOCKS.append(lock)
        return port
    raise SystemExit("FAIL: no port is free")


PORT_LOCKS = []
STARTED = []
THREAD_FAILURES = []


class Server:
    """A process that serves from a directory; may be killed and started again."""

    log_name = ""

    def __init__(self, directory, options, env):
        self.directory = pathlib.Path(directory)
        self.options = list(options)
        self.env = dict(os.environ, **(env or {}))
        self.process = None

    def launch(self, command, **more):
        with open(self.directory / self.log_name, "ab") as log:
            self.process = subprocess.Popen(command, stderr=log, env=self.env, **({"stdout": log} | more))
        if self not in STARTED:
            STARTED.append(self)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self, timeout=PATIENCE_S):
        if not self.runs():
            return
        self.process.terminate()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise SystemExit(f"FAIL: the server in {self.directory} does not stop:\n{self.log_tail()}") from None

    def log_tail(self, lines=20):
        text = (self.directory / self.log_name).read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])


class Omnibus(Server):
    """One server on one data directory."""

    log_name = "server.log"
    # Options that only the first place is right for.
    first = ()

    def __init__(self, directory, *options, env=None):
        super().__init__(directory, options, env)
        self.datadir = self.directory / "data"
        self.socket = str(self.directory / "s.sock")
        self.port = free_port()

    def start(self, timeout=PATIENCE_S):
        command = [binary(), "serve", *self.first, "--datadir", str(self.datadir), "--socket", self.socket]
        # Scripts copy data directories: a reserve for a full disk is for those that fill one.
        command += ["--loose-binlog-reserve-size=0", "--port", str(self.port), *self.options]
        started = time.monotonic()
        self.launch(command, stdout=subprocess.PIPE)
        said = b""
        while b"ready for connections" not in said:
            left = started + timeout - time.monotonic()
            readable, _, _ = select.select([self.process.stdout], [], [], max(left, 0))
            more = os.read(self.process.stdout.fileno(), 4096) if readable else b""
            if not more:
                if left <= 0:
                    self.kill()
                self.process.wait()
                raise RuntimeError(f"server did not start; see {self.directory}/server.log:\n{self.log_tail()}")
            said += more
        return time.monotonic() - started

    def binlogs(self):
        return sorted(str(path) for path in self.datadir.glob("binlog.[0-9]*"))


class MariaDB(Server):
    """A private MariaDB server from Debian's packages.

    Its temporary files are its own: one that starts deletes those of all others that have the same directory for them.
    """

    log_name = "mariadb.log"
    program = ("mariadbd", "--no-defaults")
    installer = ("mariadb-install-db", "--no-defaults")

    def __init__(self, directory, *options, env=None):
        super().__init__(directory, options, env)
        self.env["TMPDIR"] = str(self.directory / "mariadb-tmp")
        self.datadir = self.directory / "mariadb"
        self.socket = str(self.directory / "m.sock")

    def start(self, timeout=PATIENCE_S):
        pathlib.Path(self.env["TMPDIR"]).mkdir(exist_ok=True)
        if not self.datadir.exists():
            install_mariadb(self.datadir, self.env["TMPDIR"], self.installer)
        self.launch([*self.program, f"--datadir={self.datadir}", f"--socket={self.socket}",
                     "--user=root", "--skip-networking", *self.options])
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.runs():
            ping = subprocess.run(["mariadb-admin", "--no-defaults", f"--socket={self.socket}", "-uroot", "ping"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if ping.returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"MariaDB did not start; see {self.directory}/mariadb.log:\n{self.log_tail()}")


def install_mariadb(datadir, temporary, installer=MariaDB.installer):
    made = subprocess.run(
        [*installer, f"--datadir={datadir}", "--user=root",
         "--auth-root-authentication-method=normal", "--skip-test-db"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, TMPDIR=str(temporary)))
    expect(made.returncode == 0, f"mariadb-install-db: {made.stdout[:1500]}")


class Scratch(tempfile.TemporaryDirectory):
    """A temporary directory for servers. Those that still run when it goes are killed first; after a failure the end of
    what each of them logged is printed, since it goes as well."""

    def __init__(self, prefix="omnibus-"):
        super().__init__(prefix=prefix, ignore_cleanup_errors=True)

    def __exit__(self, kind, *_):
        if kind is not None:
            # What threads say from here on is that their servers are gone.
            threading.excepthook = lambda _: None
            for server in self.servers():
                print(f"-- the end of {server.directory}/{server.log_name}:\n{server.log_tail(12)}", file=sys.stderr)
        self.cleanup()

    def servers(self):
        return [server for server in STARTED if server.directory.is_relative_to(self.name)]

    def cleanup(self):
        end(self.servers())
        super().cleanup()


def end(servers):
    for server in servers:
        if server.runs():
            server.kill()


def children():
    """The processes that this one has started and that still run."""
    found = set()
    for task in pathlib.Path("/proc/self/task").glob("*/children"):
        try:
            found.update(map(int, task.read_text().split()))
        except OSError:
            pass  # The thread is gone.
    return found


@atexit.register
def leave_nothing_behind():
    end(STARTED)
    for process in children():
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if THREAD_FAILURES and threading.excepthook is failed_in_thread:
        sys.stdout.flush()
        print(THREAD_FAILURES[0], file=sys.stderr, flush=True)
        os._exit(1)


def terminated(number, frame):
    where = "".join(traceback.format_stack(frame)[-4:])
    raise SystemExit(f"FAIL: {signal.Signals(number).name} while at\n{where}")


def failed_in_thread(failure):
    """Python forgets what a thread raises, and is silent about SystemExit, which is what `expect` raises."""
    text = str(failure.exc_value).removeprefix("FAIL: ")
    if failure.exc_type is not SystemExit:
        text = "".join(traceback.format_exception(failure.exc_type, failure.exc_value, failure.exc_traceback))
    name = failure.thread.name if failure.thread else "a thread"
    THREAD_FAILURES.append(f"FAIL: in {name}: {text}")
    print(THREAD_FAILURES[-1], file=sys.stderr, flush=True)


threading.excepthook = failed_in_thread
signal.signal(signal.SIGTERM, terminated)


def expect(condition, message):
    """Ends the test with a message unless the condition holds."""
    if not condition:
        raise SystemExit(f"FAIL: {message}")


def wait_for(condition, what, timeout=PATIENCE_S, every=0.02):
    """Polls until the condition holds and gives what it gave; fails with what `what()` says at the deadline."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        expect(time.monotonic() < deadline, f"after {timeout} s: {what() if callable(what) else what}")
        time.sleep(every)


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
    more.setdefault("connect_timeout", PATIENCE_S)
    return pymysql.connect(unix_socket=server.socket, **more)


def error_code(function, but=None):
    """The MySQL error code that `function` fails with, or 0. With `but`, it may fail with these codes only."""
    import pymysql
    try:
        function()
    except pymysql.err.MySQLError as error:
        if but is not None and error.args[0] not in but:
            raise
        return error.args[0]
    return 0


def finished_binlogs(server):
    """The server's whole log, in files that are not written any more: the one in use ends in preallocated zeros."""
    if not server.runs():
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
