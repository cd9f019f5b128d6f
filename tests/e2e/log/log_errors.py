#!/usr/bin/python3
"""A log on a device that fails, at every step, and log files that were damaged, deleted or put there by somebody.

First part: a preloaded library fails one kind of file operation while the server runs, under both values of
binlog_error_action. ABORT_SERVER must stop with a failure; IGNORE_ERROR must refuse writes and go on reading until a
restart. After a restart without the library every acknowledged row is there (COMMIT-3), at most the one refused
row besides, and mariadb-binlog reads every file.

Second part: a stopped or killed server's files are changed. The next start either says clearly what is wrong and
changes nothing, or knows what to do and loses nothing that was acknowledged.

Ring: all.
"""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from device import preload  # noqa: E402
from omnibus import PATIENCE_S, Omnibus, Scratch, binary, connect, error_code, expect, wait_for  # noqa: E402

import pymysql  # noqa: E402

ACTIONS = ("ABORT_SERVER", "IGNORE_ERROR")
METHODS = ("O_DIRECT_DSYNC", "fdatasync")


class Failing:
    """A server under the library, one row after the other in table `t`, and what was acknowledged."""

    def __init__(self, directory, *options):
        self.directory = pathlib.Path(directory)
        self.switch = self.directory / "switch"
        self.server = Omnibus(directory, *options)
        self.preload = {"LD_PRELOAD": str(preload("fail_io", self.directory)), "FAIL_IO_SWITCH": str(self.switch)}
        self.acknowledged = 0
        self.refused = set()
        self.newest_refused = None

    def start(self, preloaded):
        self.switch.write_text("")
        self.newest_refused = None
        plain = {key: value for key, value in self.server.env.items() if key not in self.preload}
        self.server.env = dict(plain, **(self.preload if preloaded else {}))
        self.server.start()
        self.cursor = connect(self.server, autocommit=True).cursor()

    def create(self):
        self.cursor.execute("CREATE DATABASE a")
        self.cursor.execute("CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(1000))")
        self.insert(20)

    def insert(self, count):
        """Inserts rows; gives the error code of the first that is refused, or 0."""
        for _ in range(count):
            n = self.acknowledged + 1
            while n in self.refused:
                n += 1
            code = error_code(lambda n=n: self.cursor.execute("INSERT INTO a.t VALUES (%s, REPEAT('v', 500))", (n,)))
            if code:
                self.refused.add(n)
                self.newest_refused = self.newest_refused or n
                return code
            self.acknowledged = n
        return 0

    def fail(self, what):
        self.switch.write_text(what)

    def ids(self):
        self.cursor.execute("SELECT id FROM a.t ORDER BY id")
        return [row[0] for row in self.cursor.fetchall()]

    def check_rows(self, where):
        """Every acknowledged row is there; a refused one may be."""
        found = set(self.ids())
        wanted = set(range(1, self.acknowledged + 1)) - self.refused
        missing = wanted - found
        expect(not missing, f"{where}: acknowledged rows are missing: {sorted(missing)[:10]} (COMMIT-3)")
        expect(found - wanted <= self.refused, f"{where}: rows that nobody inserted: {sorted(found - wanted)[:10]}")

    def after_failure(self, action, where):
        """What the action promises, then a start without the library."""
        if action == "ABORT_SERVER":
            code = self.server.process.wait(PATIENCE_S)
            expect(code not in (0, -6, -11), f"{where}: ABORT_SERVER ends with an error, not {code}")
        else:
            self.fail("")
            expect(self.server.process.poll() is None, f"{where}: IGNORE_ERROR keeps the server:\n{self.server.log_tail()}")
            self.cursor = connect(self.server, autocommit=True).cursor()
            self.check_rows(f"{where}, reading on")
            expect(self.newest_refused not in self.ids(), f"{where}: a refused row is not shown")
            code = self.insert(1)
            expect(code != 0, f"{where}: writes are refused until a restart although the device is well again")
            self.server.kill()
        self.start(preloaded=False)
        self.check_rows(f"{where}, after a restart")
        expect(self.insert(3) == 0, f"{where}: writes work again")
        check_with_mariadb(self.server)
        self.server.stop()


def check_with_mariadb(server):
    logs = [path for path in server.binlogs() if path.rsplit(".", 1)[1].isdigit()]
    for path in logs[:-1]:
        run = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", path], capture_output=True,
                             text=True, errors="replace")
        expect(run.returncode == 0 and "ERROR" not in run.stderr, f"mariadb-binlog {path}: {run.stderr[-500:]}")


def next_name(failing):
    failing.cursor.execute("SHOW BINARY LOG STATUS")
    name = failing.cursor.fetchone()[0]
    return f"{name.rsplit('.')[0]}.{int(name.rsplit('.')[1]) + 1:06d}"


def failures(directory):
    for action in ACTIONS:
        for method in METHODS:
            place = pathlib.Path(directory) / f"{action}-{method}"
            place.mkdir()
            failing = Failing(place, f"--binlog-error-action={action}", f"--binlog-flush-method={method}",
                              "--binlog-preallocate=0")
            failing.start(preloaded=True)
            failing.create()
            failing.server.stop()
            # A full disk is waited for: bad_input.py.
            for what in ("EIO write data/binlog.0", "EIO short data/binlog.0", "EIO sync data/binlog.0"):
                where = f"{action}, {method}, {what}"
                failing.start(preloaded=True)
                expect(failing.insert(5) == 0, f"{where}: the device is well")
                failing.fail(what)
                expect(failing.insert(1) != 0, f"{where}: the insert is refused")
                failing.after_failure(action, where)
            rotations = [f"EIO open {{next}}", "EIO sync {next}", "EIO write binlog.index", "EIO sync binlog.index",
                         "EIO rename data/binlog.index"]
            for what in rotations if method == METHODS[0] else rotations[:2]:
                failing.start(preloaded=True)
                what = what.format(next=next_name(failing))
                where = f"{action}, {method}, rotation, {what}"
                expect(failing.insert(5) == 0, where)
                failing.fail(what)
                code = error_code(lambda: failing.cursor.execute("FLUSH BINARY LOGS"))
                expect(code != 0, f"{where}: FLUSH BINARY LOGS says that it failed")
                failing.after_failure(action, where)


def prepared_file_cannot_be_taken(directory):
    for action in ACTIONS:
        place = pathlib.Path(directory) / action
        place.mkdir()
        failing = Failing(place, f"--binlog-error-action={action}", "--binlog-preallocate=0")
        failing.start(preloaded=True)
        failing.create()
        pool = failing.server.datadir / "pre-allocated-binlog"
        subprocess.run([binary(), "alloc", "--end-suffix=2", "--binlog-size=1M", f"--binlog-name={pool}/empty"],
                       check=True, stdout=subprocess.DEVNULL)
        what = f"EIO rename {next_name(failing)}"
        failing.fail(what)
        code = error_code(lambda: failing.cursor.execute("FLUSH BINARY LOGS"))
        expect(code != 0, "FLUSH BINARY LOGS says that it failed")
        failing.after_failure(action, f"{action}, {what}")


def purge_and_preparation_fail_softly(directory):
    """Neither loses anything or stops anybody, whatever binlog_error_action says."""
    failing = Failing(directory, "--max-binlog-size=1M", "--binlog-error-action=ABORT_SERVER")
    failing.start(preloaded=True)
    failing.create()
    for _ in range(3):
        expect(failing.insert(10) == 0, "rows")
        failing.cursor.execute("FLUSH BINARY LOGS")
    failing.cursor.execute("SHOW BINARY LOGS")
    names = [row[0] for row in failing.cursor.fetchall()]
    failing.fail("EIO rename data/binlog.index")
    code = error_code(lambda: failing.cursor.execute(f"PURGE BINARY LOGS TO '{names[1]}'"))
    expect(code != 0, "a purge that can not replace the index says so")
    failing.fail("")
    failing.cursor.execute("SHOW BINARY LOGS")
    expect([row[0] for row in failing.cursor.fetchall()] == names, "and has purged nothing")
    expect(all((failing.server.datadir / name).exists() for name in names), "nor deleted anything")
    failing.fail(f"EIO unlink data/{names[0]}")
    failing.cursor.execute(f"PURGE BINARY LOGS TO '{names[2]}'")
    failing.cursor.execute("SHOW BINARY LOGS")
    expect([row[0] for row in failing.cursor.fetchall()] == names[2:], "a file that can not be deleted leaves the index")
    expect(failing.insert(5) == 0, "and stops nobody")
    failing.fail("ENOSPC write pre-allocated-binlog")
    failing.cursor.execute("FLUSH BINARY LOGS")
    failing.cursor.execute("FLUSH BINARY LOGS")
    expect(failing.insert(50) == 0, "without space for prepared files the active file grows")
    failing.fail("ENOSPC fallocate pre-allocated-binlog")
    failing.cursor.execute("FLUSH BINARY LOGS")
    expect(failing.insert(50) == 0, "nor does it take reserved space")
    pool = failing.server.datadir / "pre-allocated-binlog"
    failing.server.kill()
    expect(all(path.stat().st_size >= 1 << 20 for path in pool.glob("empty.*")), "no half prepared file is left")
    failing.start(preloaded=False)
    failing.check_rows("after a purge and a preparation that failed")
    wait_for(lambda: not (failing.server.datadir / names[0]).exists(), "the next start deletes what a purge could not")
    failing.server.stop()


def alloc_on_a_full_disk(directory):
    failing = Failing(directory)
    pool = pathlib.Path(directory) / "pool"
    command = [binary(), "alloc", "--start-suffix=1", "--end-suffix=3", "--binlog-size=2M", f"--binlog-name={pool}/empty"]
    for what in ("ENOSPC fallocate pool", "ENOSPC write pool", "ENOSPC short pool", "EIO sync pool"):
        failing.switch.write_text(what)
        run = subprocess.run(command, env=failing.server.env | failing.preload, capture_output=True, text=True)
        expect(run.returncode != 0 and "pool" in run.stderr, f"alloc, {what}: {run.returncode} {run.stderr}")
        expect(run.stdout == "" and list(pool.iterdir()) == [], f"alloc, {what}: leaves {list(pool.iterdir())}")
    failing.switch.write_text("")
    (pool / "empty.000002").write_text("mine")
    run = subprocess.run(command, capture_output=True, text=True)
    expect(run.returncode != 0 and "empty.000002 exists" in run.stderr, f"alloc: {run.stderr}")
    expect(sorted(path.name for path in pool.iterdir()) == ["empty.000001", "empty.000002"], "nothing behind it")
    expect((pool / "empty.000001").read_bytes() == bytes(2 << 20), "zeros")
    expect((pool / "empty.000002").read_text() == "mine", "never overwritten")


def flush_method_falls_back(directory):
    """Where the file system does not take O_DIRECT, the next method serves, and the log says why."""
    failing = Failing(directory, "--max-binlog-size=1M")
    failing.switch.write_text("EINVAL direct")
    failing.server.env |= failing.preload
    failing.server.start()
    failing.cursor = connect(failing.server, autocommit=True).cursor()
    failing.create()
    failing.cursor.execute("SELECT @@GLOBAL.binlog_flush_method")
    expect(failing.cursor.fetchone()[0] == "O_DSYNC", "the variable shows what is in use")
    text = failing.server.log_tail(200)
    expect("does not take this binlog_flush_method" in text and "Invalid argument" in text, f"a reason is logged: {text}")
    failing.cursor.execute("FLUSH BINARY LOGS")
    expect(failing.insert(20) == 0, "files are prepared without it too")
    failing.server.kill()
    failing.start(preloaded=False)
    failing.check_rows("after a kill")
    failing.server.stop()


class Files:
    """A data directory of a killed server with four log files, to be changed and started again and again."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.origin = self.directory / "origin"
        self.origin.mkdir()
        server = Omnibus(self.origin, "--lsm-memtable-size=64M")
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        cursor.execute("CREATE DATABASE a")
        cursor.execute("CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(1000))")
        for n in range(1, 41):
            cursor.execute("INSERT INTO a.t VALUES (%s, REPEAT('v', 200))", (n,))
            if n % 10 == 0 and n < 40:
                cursor.execute("FLUSH BINARY LOGS")
        server.kill()
        self.names = [pathlib.Path(path).name for path in server.binlogs()]
        self.count = 0

    def copy(self):
        self.count += 1
        place = self.directory / str(self.count)
        place.mkdir()
        shutil.copytree(self.origin / "data", place / "data")
        return Omnibus(place)

    def refused(self, change, *words, options=()):
        """The start fails with all of `words` in its message, and changes no log file."""
        server = self.copy()
        server.options += options
        change(server.datadir)
        before = {path: path.read_bytes() for path in server.datadir.glob("binlog.*")}
        try:
            server.start()
        except RuntimeError:
            text = server.log_tail(3)
            for word in words:
                expect(word in text, f"{word!r} in the message: {text}")
            after = {path: path.read_bytes() for path in server.datadir.glob("binlog.*")}
            expect(before == after, f"{words}: a start that is refused changes nothing")
            shutil.rmtree(server.directory)
            return
        server.kill()
        raise SystemExit(f"FAIL: a start that should say {words}: {server.log_tail()}")

    def works(self, change, rows=40, words=(), options=()):
        server = self.copy()
        server.options += options
        change(server.datadir)
        server.start()
        try:
            cursor = connect(server, autocommit=True).cursor()
            cursor.execute("SELECT id FROM a.t ORDER BY id")
            found = [row[0] for row in cursor.fetchall()]
            expect(found == list(range(1, rows + 1)), f"{rows} rows, not {len(found)}")
            cursor.execute("INSERT INTO a.t VALUES (1000, 'new')")
            text = server.log_tail(200)
            for word in words:
                expect(word in text, f"{word!r} in the log: {text}")
            check_with_mariadb(server)
        finally:
            server.stop()
        shutil.rmtree(server.directory)


def events(path):
    """Offsets and names of a file's events, as `omnibus binlog` sees them."""
    run = subprocess.run([binary(), "binlog", str(path)], capture_output=True, text=True)
    lines = [line.split() for line in run.stdout.splitlines()[1:]]
    return [(int(line[0]), line[1]) for line in lines if line and line[0].isdigit()], run


def ends(path):
    """Where each of a file's events ends."""
    run = subprocess.run([binary(), "binlog", str(path)], capture_output=True, text=True)
    lines = [line.split() for line in run.stdout.splitlines()[1:]]
    return [int(line[3]) for line in lines if line and line[0].isdigit()]


def groups(listed):
    """Where the group of each transaction begins: a lone client has a group to itself each time."""
    return [before for (before, _), (_, name) in zip(listed, listed[1:]) if name == "Gtid"]


def edit(name, action):
    return lambda data: action(data / name)


def flip(path, at):
    bytes_ = bytearray(path.read_bytes())
    bytes_[at] ^= 0x10
    path.write_bytes(bytes_)


def cut(path, size):
    with open(path, "r+b") as file:
        file.truncate(size)


def changed_files(directory):
    files = Files(directory)
    first, second, third, last = files.names[:4]
    expect(len(files.names) == 4, f"four files: {files.names}")
    listed, _ = events(files.origin / "data" / last)
    starts = groups(listed)
    # A filler may follow; the last commit is what counts.
    end = ends(files.origin / "data" / last)[max(n for n, (_, name) in enumerate(listed) if name == "Xid")]
    earlier, _ = events(files.origin / "data" / second)
    second_starts = groups(earlier)

    files.works(lambda data: None)
    # The index.
    files.works(lambda data: (data / "binlog.index").unlink(), words=["no index file"])
    files.refused(edit("binlog.index", lambda p: p.write_text("rubbish\n")), "line 1", "rubbish")
    files.refused(edit("binlog.index", lambda p: p.write_bytes(bytes(range(256)))), "binlog.index")
    files.refused(edit("binlog.index", lambda p: p.write_text(f"./{first}\n./{third}\n./{last}\n")), first, third)
    files.refused(edit("binlog.index", lambda p: p.write_text(f"./{first}\n./{second}\n./{third}\n")), last, "not named")
    # Files that are gone, with and without an index that knows of them.
    for name in files.names:
        files.refused(edit(name, lambda p: p.unlink()), name, "does not exist")
    files.refused(lambda data: ((data / "binlog.index").unlink(), (data / second).unlink()), first, third)
    # Files that lost their end, or bytes in the middle.
    files.refused(edit(second, lambda p: cut(p, second_starts[5])), second, "damaged", "ends otherwise")
    files.refused(edit(second, lambda p: cut(p, second_starts[5] + 90)), "damaged")
    files.refused(edit(second, lambda p: flip(p, second_starts[5] + 90)), "damaged", str(second_starts[5]))
    for size in (0, 4):
        files.refused(edit(last, lambda p: cut(p, size)), last, "damaged")  # noqa: B023
    files.refused(edit(last, lambda p: flip(p, starts[4] + 90)), last, f"offset {starts[4]}", "truncate-damaged")
    files.works(edit(last, lambda p: flip(p, starts[4] + 90)), rows=34, words=["giving up everything"],
                options=["--binlog-truncate-damaged-tail=ON"])
    # What a crash may leave: nothing behind it says that it was durable.
    files.works(edit(last, lambda p: cut(p, end - 2)), rows=39, words=["torn tail"])
    files.works(edit(last, lambda p: flip(p, starts[-1] + 90)), rows=39, words=["torn tail"])
    # Files that are none of ours.
    files.works(edit("notes.txt", lambda p: p.write_text("hello")))
    files.works(edit("binlog.old", lambda p: p.write_text("hello")))
    files.works(edit("binlog.000099x", lambda p: p.write_text("hello")))
    files.works(edit("binlog.index.tmp", lambda p: p.write_text("half an ind")))
    foreign = lambda data: shutil.copy(data / second, data / "binlog.000005")  # noqa: E731
    files.refused(foreign, "binlog.000005", "not named by the index")

    def prepared(data):
        pool = data / "pre-allocated-binlog"
        shutil.rmtree(pool, ignore_errors=True)
        pool.mkdir()
        shutil.copy(data / second, pool / "empty.000001")
        (pool / "notes").write_text("hello")
    files.works(prepared, words=["left alone"])


def reading(directory):
    """`omnibus binlog` on a live, a crashed and a damaged file; mariadb-binlog gets every good event as well."""
    server = Omnibus(directory)
    server.start()
    cursor = connect(server, autocommit=True).cursor()
    cursor.execute("CREATE DATABASE a")
    cursor.execute("CREATE TABLE a.t (id INT PRIMARY KEY)")
    for n in range(20):
        cursor.execute("INSERT INTO a.t VALUES (%s)", (n,))
    path = pathlib.Path(server.binlogs()[0])
    live, run = events(path)
    expect(run.returncode == 0, f"a live file ends cleanly: {run.returncode} {run.stderr}")
    expect(sum(name == "Xid" for _, name in live) >= 20, "all of it is shown")
    server.kill()
    crashed, run = events(path)
    expect(run.returncode == 0 and crashed == live, f"a crashed file: {run.returncode} {run.stderr}")
    peer = subprocess.run(["mariadb-binlog", "--no-defaults", "-v", str(path)], capture_output=True, text=True,
                          errors="replace")
    expect(peer.stdout.count("### INSERT INTO") >= 20, "mariadb-binlog shows every row of a crashed file")
    end = ends(path)[-1]
    with open(path, "r+b") as file:
        file.seek(end)
        file.write(b"garbage" * 20)
    damaged, run = events(path)
    expect(damaged == live, "every good event before garbage")
    complaint = run.stderr.strip().splitlines()
    expect(run.returncode != 0 and len(complaint) == 1 and str(end) in complaint[0], f"one message: {run.stderr}")


def main():
    tests = [alloc_on_a_full_disk, failures, prepared_file_cannot_be_taken, purge_and_preparation_fail_softly,
             flush_method_falls_back, changed_files, reading]
    chosen = [test for test in tests if not sys.argv[1:] or test.__name__ in sys.argv[1:]]
    for test in chosen:
        with Scratch("omnibus-log-errors-") as directory:
            test(directory)
        print(f"log_errors: {test.__name__} ok", flush=True)
    print(f"{len(chosen)} passed, 0 failed")


if __name__ == "__main__":
    main()
