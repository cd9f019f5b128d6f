#!/usr/bin/python3
"""Power cuts under load: records all that a server does to its files, builds what a power cut at some moment may leave, and
starts a server on it (COMMIT-3, ENGINE-1, RECOVER-2, RECOVER-3).

A run of load, with kills in between, is recorded once (tests/tools/record_io.c). Images are built from the record at seeded
moments (tests/lib/recorded.py), in start-ups and recoveries as well as under load. Every fourth image is cut a second time, in
the recovery from the first cut. What must be there is decided by requests and replies alone:
  - every acknowledged transaction is there, and at most the one in flight per client besides, whole or absent, in both engines;
  - a client's transactions are there in their order, without a hole;
  - a prepared XA branch is listed until it is ended, and then committed or gone, in both engines (RECOVER-1);
  - an acknowledged CREATE, ALTER, TRUNCATE and DROP has happened, and its rows are whole;
  - every index agrees with its table; CHECK TABLE says OK;
  - with `--sync` other than 1, what was acknowledged may be lost, but only the newest of it: of two transactions of which one was
    acknowledged before the other was asked for, the second is never there without the first. What a restart found, and what
    a stop left, is never lost; with `--sync N` no more than N groups are;
  - the server serves: it takes a transaction, and has it after another kill.

Usage: images.py [--images 50] [--sync 1] [--seed N] [--seconds 4] [--encrypted] [--only N] [--keep] [-- SERVER OPTIONS]
A failure prints the command that repeats its image from the recording that was kept.

Ring: gate.
"""

import argparse
import pathlib
import pickle
import random
import shutil
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pymysql  # noqa: E402

from device import preload  # noqa: E402
import seeds  # noqa: E402
from omnibus import Omnibus, client, connect, expect, wait_for  # noqa: E402
from recorded import CHANGES, Disk, Trace, settle  # noqa: E402

CLIENTS = 4
# Small, so that a few seconds see rotations, flushes, compactions and purges.
OPTIONS = ["--max-binlog-size=1048576", "--lsm-memtable-size=1048576", "--btree-cache-size=1048576",
           "--binlog-large-commit-threshold=1048576"]
# Who commits at the same time: the clients, the definer, the brancher.
SESSIONS = CLIENTS + 2
TABLE = ("(client INT, n INT, v VARBINARY(60000), k INT, PRIMARY KEY (client, n), KEY (k))")


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def starts_sync_names(records, data):
    """RECOVER-3: no start takes names away before it has synced the folders whose names say what is of use."""
    synced = set()
    for record in records:
        if record.kind not in CHANGES:
            continue
        # The ids of each process begin anew; what a kill left in doubt is recorded last, with the id that it began with.
        if record.id == 1:
            synced = set()
        path = pathlib.Path(record.path)
        if record.kind == b"S":
            synced.add(path)
        needed = [path.parent, data / "lsm/tree"] if path.parent == data / "lsm/tree/tables" else [path.parent]
        # What has its name only once it is whole is of no use under another.
        if record.kind == b"U" and path.suffix not in (".new", ".tmp") and path.parent in (data, data / "lsm", data / "lsm/tree", data / "lsm/tree/tables"):
            missing = [str(folder) for folder in needed if folder not in synced]
            expect(not missing, f"RECOVER-3: {path} goes before {missing} is synced")


class Client(threading.Thread):
    """Transaction n writes row n in a table of each engine, and n as the client's count in both."""

    def __init__(self, server, number, history, seed):
        super().__init__()
        self.server, self.number, self.history = server, number, history
        self.random = random.Random(seed)

    def run(self):
        try:
            with connect(self.server, database="d", autocommit=False) as db, db.cursor() as cursor:
                while True:
                    n = len(self.history) + 1
                    large = self.random.random() < 0.01
                    size = 50_000 if large else self.random.choice([10, 100, 3000])
                    entry = [now(), None]
                    self.history.append(entry)
                    for table in ("lsm", "btree"):
                        values = f"({self.number}, {n}, REPEAT('x', {size}), {n % 7})"
                        cursor.execute(f"INSERT INTO {table} VALUES {values}")
                        cursor.execute(f"UPDATE {table}_count SET n = {n} WHERE client = {self.number}")
                        if n % 5 == 0 and n > 10:
                            cursor.execute(f"UPDATE {table} SET k = k + 100, v = 'y' WHERE client = {self.number} AND n = {n - 9}")
                    db.commit()
                    entry[1] = now()
        except (pymysql.err.MySQLError, OSError):
            pass  # Killed.


class Definer(threading.Thread):
    """Step after step, each known to have happened once it is acknowledged; a table's rows are whole or gone."""

    def __init__(self, server, history, seed):
        super().__init__()
        self.server, self.history, self.random = server, history, random.Random(seed)

    def run(self):
        try:
            with connect(self.server, database="d", autocommit=True) as db, db.cursor() as cursor:
                while True:
                    number = len(self.history) // 6
                    engine = ["LSM", "BTREE"][number % 2]
                    rows = ",".join(f"({n}, REPEAT('z', 500))" for n in range(40))
                    end = "TRUNCATE" if number % 3 == 0 else "DROP"
                    for what, sql in [
                        ("create", f"CREATE TABLE x{number} (a INT PRIMARY KEY, b VARCHAR(600)) ENGINE={engine}"),
                        ("fill", f"INSERT INTO x{number} VALUES {rows}"),
                        ("alter", f"ALTER TABLE x{number} ADD KEY (b(20))"),
                        ("flush", "FLUSH BINARY LOGS"),
                        ("purge", "PURGE BINARY LOGS BEFORE NOW()"),
                        ("end", f"{end} TABLE x{number}"),
                    ]:
                        entry = [number, what, end, now(), None]
                        self.history.append(entry)
                        cursor.execute(sql)
                        entry[4] = now()
        except (pymysql.err.MySQLError, OSError):
            # What was under way may have happened or not; the next table is another one.
            while len(self.history) % 6:
                self.history.append([self.history[-1][0], "nothing", "", now(), None])


class Brancher(threading.Thread):
    """XA branches with a row in a table of each engine: two of five are committed, one is rolled back, the others stay prepared."""

    ENDS = ("COMMIT", "ROLLBACK", None, "COMMIT", None)

    def __init__(self, server, history):
        super().__init__()
        self.server, self.history = server, history

    def run(self):
        try:
            while True:
                number = len(self.history)
                end = self.ENDS[number % len(self.ENDS)]
                # Asked to prepare, prepared, asked to end, ended.
                entry = [end, None, None, None, None]
                self.history.append(entry)
                # A session that leaves a branch to others goes.
                with connect(self.server, database="d", autocommit=True) as db, db.cursor() as cursor:
                    cursor.execute(f"XA START 'b{number}'")
                    for table in ("lsm", "btree"):
                        cursor.execute(f"INSERT INTO {table}_branch VALUES ({number})")
                    cursor.execute(f"XA END 'b{number}'")
                    entry[1] = now()
                    cursor.execute(f"XA PREPARE 'b{number}'")
                    entry[2] = now()
                    if end:
                        entry[3] = now()
                        cursor.execute(f"XA {end} 'b{number}'")
                        entry[4] = now()
        except (pymysql.err.MySQLError, OSError):
            pass  # Killed.


def recording(directory, library, root, trace, options):
    env = {"LD_PRELOAD": str(library), "RECORD_IO_ROOT": str(root), "RECORD_IO_TRACE": str(trace)}
    return Omnibus(directory, *options, env=env)


def record(directory, library, options, seconds, seed):
    """Runs the load; gives what was asked and answered."""
    folder = directory / "run"
    folder.mkdir()
    # `settled`: when a server had started, or had stopped, so that all there is stays.
    history = {"clients": [[] for _ in range(CLIENTS)], "definer": [], "branches": [], "ready": None, "settled": []}
    server = recording(folder, library, folder / "data", directory / "trace", options)
    rng = random.Random(seed)
    for life in range(3):
        begun = now()
        server.start()
        history["settled"].append((begun, now()))
        if life == 0:
            client(server, "CREATE DATABASE d; USE d;" + "".join(
                f"CREATE TABLE {t}_branch (b INT PRIMARY KEY) ENGINE={t}; CREATE TABLE {t} {TABLE} ENGINE={t}; CREATE TABLE {t}_count (client INT PRIMARY KEY, n INT) ENGINE={t};"
                f"INSERT INTO {t}_count VALUES " + ",".join(f"({n}, 0)" for n in range(CLIENTS)) + ";" for t in ("lsm", "btree")))
            history["ready"] = now()
        else:
            # What was in flight at the kill is known now.
            found = dict(ask(server, "SELECT client, MAX(n) FROM d.lsm GROUP BY client"))
            for number, done in enumerate(history["clients"]):
                del done[found.get(number, 0):]
                if done:
                    done[-1][1] = done[-1][1] or now()
        threads = [Client(server, n, history["clients"][n], f"{seed} {life} {n}") for n in range(CLIENTS)]
        threads.append(Definer(server, history["definer"], seed))
        threads.append(Brancher(server, history["branches"]))
        for thread in threads:
            thread.start()
        time.sleep(seconds / 3 * rng.uniform(0.7, 1.3))
        if life < 2:
            server.kill()
        else:
            begun = now()
            server.stop()
            history["settled"].append((begun, now()))
        settle(directory / "trace", folder / "data")
        starts_sync_names(Trace(directory / "trace").records, folder / "data")
        for thread in threads:
            thread.join()
    return history


def ask(server, sql):
    """Rows, over one connection for each life of a server."""
    if getattr(server, "asking", None) is None or server.asked != server.process.pid:
        server.asking, server.asked = connect(server, autocommit=True), server.process.pid
    with server.asking.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def names(server, sql):
    return [row[0] for row in ask(server, sql)]


def promised(server, history, at, sync, tables):
    """Until when everything that was acknowledged must be there: with `sync` other than 1 until the newest thing that is there was
    asked for."""
    if sync == 1:
        return at
    times = [begun for begun, done in history["settled"] if done <= at]
    found = dict(ask(server, "SELECT client, MAX(n) FROM d.lsm GROUP BY client"))
    times += [done[found[number] - 1][0] for number, done in enumerate(history["clients"]) if number in found]
    listed, ended = {row[3].decode() for row in ask(server, "XA RECOVER")}, set(names(server, "SELECT b FROM d.lsm_branch"))
    for number, (_, asked, _, asked_to_end, _) in enumerate(history["branches"]):
        times += [asked] if f"b{number}" in listed else [asked_to_end] if number in ended else []
    times += [entry[3] for entry in history["definer"] if entry[1] == "create" and f"x{entry[0]}" in tables]
    known = max(time for time in times if time is not None)
    lost = sum(entry[1] is not None and entry[1] <= at for number, done in enumerate(history["clients"]) for entry in done[found.get(number, 0):])
    history["lost"] = max(history.get("lost", 0), lost)
    expect(sync == 0 or lost <= sync * SESSIONS, f"{lost} acknowledged transactions are lost with sync_binlog={sync}")
    return known


def check(server, history, at, sync):
    """What the server has must be what it said until `at`, and was to keep."""
    tables = names(server, "SHOW TABLES FROM d") if "d" in names(server, "SHOW DATABASES") else []
    if at < history["ready"]:
        return
    if sync != 1 and not ("btree_count" in tables and ask(server, "SELECT COUNT(*) FROM d.btree_count")[0][0]):
        expect(not any(done <= at for _, done in history["settled"][1:]), "everything is lost")
        return
    known = promised(server, history, at, sync, tables)
    for number, done in enumerate(history["clients"]):
        sent = sum(entry[0] <= at for entry in done)
        acknowledged = sum(entry[1] is not None and entry[1] <= known for entry in done)
        counts = []
        for table in ("lsm", "btree"):
            where = f"WHERE client = {number}"
            rows, highest, n = ask(server, f"SELECT COUNT(*), IFNULL(MAX(n), 0), (SELECT n FROM d.{table}_count {where}) FROM d.{table} {where}")[0]
            expect(rows == highest == n, f"client {number} in {table}: {rows} rows to {highest}, but it counted {n}")
            expect(acknowledged <= n <= sent, f"client {number} in {table}: {n} transactions of {acknowledged} acknowledged and {sent} sent")
            late = [m - 9 for m in range(11, n + 1) if m % 5 == 0]
            changed = ask(server, f"SELECT COUNT(*) FROM d.{table} {where} AND k >= 100")[0][0]
            expect(changed == len(late), f"client {number} in {table}: {changed} rows changed of {len(late)}")
            counts.append(n)
        expect(counts[0] == counts[1], f"client {number}: {counts} transactions in the two engines")
    for table in ("lsm", "btree"):
        by_index = ask(server, f"SELECT k, COUNT(*) FROM d.{table} FORCE INDEX (k) WHERE k >= 0 GROUP BY k ORDER BY k")
        by_rows = ask(server, f"SELECT k, COUNT(*) FROM d.{table} FORCE INDEX (PRIMARY) GROUP BY k ORDER BY k")
        expect(by_index == by_rows, f"{table}: the index differs from the rows:\n{by_index}\n{by_rows}")
    check_branches(server, history["branches"], at, known)
    check_definitions(server, history["definer"], at, known, tables)
    for row in ask(server, "CHECK TABLE " + ", ".join(f"d.{table}" for table in tables)) if tables else []:
        expect(row[-1] == "OK", row)


def check_branches(server, history, at, known):
    """RECOVER-1: a prepared branch is listed until it is ended, and its rows are seen in both engines once it is committed."""
    listed = {row[3].decode() for row in ask(server, "XA RECOVER")}
    rows = [set(names(server, f"SELECT b FROM d.{table}_branch")) for table in ("lsm", "btree")]
    expect(rows[0] == rows[1], f"branches have rows in one engine only: {rows[0] ^ rows[1]}")
    found = {name: "listed" for name in listed} | {f"b{number}": "listed and there" if f"b{number}" in listed else "there" for number in rows[0]}
    for number, (end, *times) in enumerate(history):
        limits = (at, known, at, known)
        asked, prepared, asked_to_end, ended = (time is not None and time <= limit for time, limit in zip(times, limits))
        outcome = "there" if end == "COMMIT" else "gone"
        if ended:
            allowed = {outcome}
        elif prepared:
            allowed = {"listed"} | ({outcome} if asked_to_end else set())
        else:
            allowed = {"gone"} | ({"listed"} if asked else set()) | ({outcome} if asked_to_end else set())
        is_now = found.pop(f"b{number}", "gone")
        expect(is_now in allowed, f"branch b{number} ({end}) is {is_now}, and should be {allowed}; {times} at {at}")
    expect(not found, f"branches that nobody asked for: {found}")


def check_definitions(server, history, at, known, tables):
    for number in {entry[0] for entry in history}:
        there = f"x{number}" in tables
        finished, created, filled = (history_state(history, number, what, at, known) for what in ("end", "create", "fill"))
        drop = any(entry[0] == number and entry[2] == "DROP" for entry in history)
        if created == "done" and (finished == "no" or not drop):
            expect(there, f"table x{number} is gone")
        if created == "no" or (drop and finished == "done"):
            expect(not there, f"table x{number} is there")
        if there:
            rows = ask(server, f"SELECT COUNT(*) FROM d.x{number}")[0][0]
            # While it is there, its DROP has not happened.
            if filled == "done" and (finished == "no" or drop):
                expect(rows == 40, f"table x{number} has {rows} of 40 rows")
            if finished == "done":
                expect(rows == 0, f"table x{number} has {rows} rows after its TRUNCATE")
            expect(rows in (0, 40), f"table x{number} has {rows} rows")


def history_state(history, number, what, at, known):
    for entry in history:
        if entry[0] == number and entry[1] == what:
            return "done" if entry[4] is not None and entry[4] <= known else "sent" if entry[3] <= at else "no"
    return "no"


def verify(folder, options, history, at, sync):
    server = Omnibus(folder, *options)
    try:
        server.start()
        check(server, history, at, sync)
        if at >= history["ready"] and "d" in names(server, "SHOW DATABASES"):
            client(server, "SET GLOBAL sync_binlog = 1; CREATE TABLE d.after_cut (a INT PRIMARY KEY); INSERT INTO d.after_cut VALUES (1);"
                           "CREATE TABLE d.after_cut_too (a INT PRIMARY KEY) ENGINE=BTREE; INSERT INTO d.after_cut_too VALUES (1)")
            server.kill()
            server.start()
            expect(ask(server, "SELECT * FROM d.after_cut JOIN d.after_cut_too USING (a)") == ((1,),), "rows from after the cut")
            check(server, history, at, sync)
    finally:
        # One that failed and goes on would write into the next image, which has the same path.
        server.kill()


def second_cut(directory, library, image, options, rng):
    """Starts on the image, and cuts that as well."""
    folder, again = directory / "recovery", directory / "again"
    for path in (folder, again):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    shutil.copytree(image / "data", folder / "data")
    trace = folder / "trace"
    server = recording(folder, library, folder / "data", trace, options)
    disk = Disk(folder / "data", base=True)
    server.start()
    server.kill()
    settle(trace, folder / "data", disk)
    records = Trace(trace).records
    for r in records[:rng.randint(0, len(records))]:
        disk.play(r)
    return again, disk.write(again / "data", rng)


def cut(disk, directory, library, options, rng, number, kinds):
    """Builds an image, and says in `kinds` which."""
    image = directory / "image"
    shutil.rmtree(image, ignore_errors=True)
    image.mkdir()
    kinds.append(disk.write(image / "data", rng))
    if number % 4 == 3:
        kinds.append("cut again in the recovery")
        image, kind = second_cut(directory, library, image, options, rng)
        kinds.append(kind)
    return image


def run(arguments, directory):
    options = [*OPTIONS, f"--sync-binlog={arguments.sync}", *arguments.options]
    if arguments.encrypted:
        # The keyring is on another disk.
        options += ["--default-table-encryption=ON", f"--keyring-file-data={directory / 'keyring'}"]
    library = preload("record_io", directory)
    if arguments.recording:
        history = pickle.loads((directory / "history").read_bytes())
    else:
        history = record(directory, library, options, arguments.seconds, arguments.seed)
        (directory / "history").write_bytes(pickle.dumps(history))
    records = Trace(directory / "trace").records
    moments = random.Random(arguments.seed)
    points = sorted(moments.randint(1, len(records)) for _ in range(arguments.images))
    disk, played, failed = Disk(directory / "run" / "data"), 0, 0
    for number, point in enumerate(points):
        for r in records[played:point]:
            disk.play(r)
        played = point
        if arguments.only is not None and number != arguments.only:
            continue
        rng, kinds = random.Random(f"{arguments.seed} {number}"), []
        try:
            image = cut(disk, directory, library, options, rng, number, kinds)
            verify(image, options, history, records[point - 1].time, arguments.sync)
        except (SystemExit, RuntimeError, pymysql.err.MySQLError) as error:
            failed += 1
            print(f"image {number} at record {point} of {len(records)} ({'; '.join(kinds)}): {error}", file=sys.stderr)
            print(f"again: tests/crash/images.py --recording {directory} --seed {arguments.seed} --images {arguments.images} --sync {arguments.sync} "
                  f"--only {number} {'--encrypted ' * arguments.encrypted}-- {' '.join(arguments.options)}", file=sys.stderr, flush=True)
    if failed:
        print(f"images: {failed} of {len(points)} failed", file=sys.stderr)
        return False
    total = sum(len(done) for done in history["clients"])
    print(f"images: {len(points)} power cuts in {len(records)} records of {total} transactions, sync_binlog={arguments.sync}, at most {history.get('lost', 0)} lost, seed {arguments.seed}: ok", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=50)
    seeds.add_to(parser)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--sync", type=int, default=1, help="sync_binlog")
    parser.add_argument("--encrypted", action="store_true", help="encrypted tables and logs")
    parser.add_argument("--only", type=int)
    parser.add_argument("--recording", type=pathlib.Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    directory = (arguments.recording or pathlib.Path(tempfile.mkdtemp(prefix="omnibus-images-"))).resolve()
    passed = run(arguments, directory)
    if passed and not arguments.keep and not arguments.recording:
        shutil.rmtree(directory)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
