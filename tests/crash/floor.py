#!/usr/bin/python3
"""No reply tells of what a crash takes back: rows, OK, error or definition (SESSION-1, COMMIT-2).

One session's change is on its way to a device that takes its time before it writes: its place in the commit order is there,
its locks are gone, its definitions are everybody's. Others ask in every way that could tell of it. At the first reply that
does, the server is killed with SIGKILL; after the restart what was told must hold. Whatever does not wait answers first.

The other half: what tells of nothing of the kind is answered at once, and a table lock is granted only when what was written
under the one before is there for plain reads.

Usage: floor.py [--delay-ms 400] [--only NAME]

Ring: gate.
"""

import argparse
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pymysql  # noqa: E402

from device import SlowDevice  # noqa: E402
from omnibus import PATIENCE_S, Omnibus, Scratch, connect, error_code, expect, wait_for  # noqa: E402

COM_INIT_DB, COM_FIELD_LIST, COM_STMT_PREPARE = 2, 4, 22
GONE = (0, 2003, 2006, 2013, 1053)


def run(db, sql):
    with db.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def code(function):
    """What it fails with, or 0. A server that is gone is no answer."""
    try:
        function()
    except pymysql.err.MySQLError as error:
        if error.args[0] in GONE:
            raise
        return error.args[0]
    return 0


def gives(sql, rows):
    """Told if the statement's rows are these, or pass this."""
    return sql, lambda db: (rows(run(db, sql)) if callable(rows) else run(db, sql) == rows)


def fails(sql, number, before=()):
    """Told if the statement fails with this code. `before` was run before the change."""
    return sql, lambda db: code(lambda: run(db, sql)) == number, before


def works(sql, before=()):
    return sql, lambda db: code(lambda: run(db, sql)) == 0, before


def command(name, number, data, wanted=0):
    """Told if this command, which is no statement, ends so."""
    def ask(db):
        def go():
            db._execute_command(number, data)
            db._read_packet()
        got = code(go)
        if number != COM_INIT_DB and got == 0:
            # The rest of the reply is not read.
            db._force_close()
        return got == wanted
    return name, ask


def connecting(server, database, wanted):
    return f"a connection to {database}", lambda _: code(lambda: connect(server, database=database).close()) == wanted


def big_rows(db):
    """The first rows of many megabytes: told by the first that comes, long before the last."""
    cursor = db.cursor(pymysql.cursors.SSCursor)
    try:
        cursor.execute("SELECT n, pad FROM big WHERE id <= 40 FOR UPDATE")
        return cursor.fetchone()[0] == 7
    finally:
        # The rest is not read.
        if cursor._result:
            cursor._result.unbuffered_active = False
        cursor.connection = None
        db._force_close()


def in_file(server):
    """Told if the value is in the file, before the statement has ended or after."""
    path = server.directory / "told.txt"

    def ask(db):
        ended = []
        sql = f"SELECT n INTO OUTFILE '{path}' FROM filed WHERE id = 1 FOR UPDATE"
        writing = threading.Thread(target=lambda: ended.append(code_or_gone(lambda: run(db, sql))), daemon=True)
        writing.start()
        while not ended:
            if path.exists() and path.read_bytes() == b"7\n":
                return True
        expect(ended[0] in (0, None), f"INTO OUTFILE: {ended[0]}")
        if ended[0] is None:
            raise ConnectionError
        return path.read_bytes() == b"7\n"
    return "INTO OUTFILE", ask


def code_or_gone(function):
    """What it fails with, 0, or nothing if the server is gone."""
    try:
        return code(function)
    except (pymysql.err.MySQLError, OSError):
        return None


def cases(server):
    """Name, statements before, the change, who asks, and whether the change is there after a restart."""
    big = ["CREATE TABLE big (id INT PRIMARY KEY, n INT, pad LONGTEXT)",
           "INSERT INTO big VALUES (1, 0, REPEAT('x', 300000))",
           *[f"INSERT INTO big SELECT id + {n}, 0, pad FROM big WHERE id <= {n}" for n in (1, 2, 4, 8, 16, 32)]]
    rows = ["CREATE TABLE r (id INT PRIMARY KEY, u INT UNIQUE, n TINYINT)",
            "INSERT INTO r VALUES (1, 1, 1), (2, 2, 126), (3, 3, 3), (4, 4, 4), (50, 50, 50)"]
    yield ("rows", rows + big,
           ["BEGIN", "INSERT INTO r VALUES (10, 10, 10)", "UPDATE r SET n = 127 WHERE id = 2", "DELETE FROM r WHERE id = 50",
            "INSERT INTO r VALUES (60, 60, 60)", "UPDATE big SET n = 7 WHERE id = 1", "COMMIT"],
           [fails("INSERT INTO r VALUES (10, 11, 1)", 1062),
            fails("INSERT INTO r VALUES (11, 10, 1)", 1062),
            fails("UPDATE r SET id = 10 WHERE id = 3", 1062),
            fails("UPDATE r SET u = 10 WHERE id = 4", 1062),
            fails("UPDATE r SET n = n + 1 WHERE id = 2", 1264),
            fails("SELECT n INTO @x FROM r WHERE id >= 59 OR u = 10 FOR UPDATE", 1172),
            gives("SELECT n FROM r WHERE id = 50 FOR UPDATE", ()),
            gives("SELECT n FROM r WHERE id = 60 LOCK IN SHARE MODE", ((60,),)),
            works("INSERT IGNORE INTO r VALUES (60, 60, 60)"),
            works("INSERT INTO r VALUES (50, 50, 50)", ["BEGIN"]),
            ("rows of many megabytes", big_rows)],
           lambda db: run(db, "SELECT COUNT(*) FROM r WHERE id IN (10, 60)") == ((2,),))
    yield ("create table", [], ["CREATE TABLE made (id INT PRIMARY KEY)"],
           [gives("SHOW TABLES LIKE 'made'", (("made",),)),
            gives("SHOW CREATE TABLE made", lambda rows: len(rows) == 1),
            gives("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'made'", ((1,),)),
            gives("SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'made'", ((1,),)),
            gives("SELECT * FROM made", ()),
            gives("EXPLAIN SELECT * FROM made", lambda rows: len(rows) == 1),
            gives("DESCRIBE made", lambda rows: len(rows) == 1),
            works("CREATE TABLE IF NOT EXISTS made (id INT PRIMARY KEY)"),
            fails("CREATE TABLE made (id INT PRIMARY KEY)", 1050),
            fails("SELECT nothing FROM made", 1054),
            works("PREPARE p FROM 'SELECT * FROM made'"),
            works("SET @n = (SELECT COUNT(*) FROM made)"),
            works("INSERT INTO made VALUES (1)", ["BEGIN"]),
            command("COM_STMT_PREPARE", COM_STMT_PREPARE, "SELECT * FROM made"),
            command("COM_FIELD_LIST", COM_FIELD_LIST, "made\0")],
           lambda db: error_code(lambda: run(db, "SELECT * FROM made")) == 0)
    yield ("drop table", ["CREATE TABLE dropped (id INT PRIMARY KEY)"], ["DROP TABLE dropped"],
           [fails("SELECT * FROM dropped", 1146),
            fails("DROP TABLE dropped", 1051),
            works("DROP TABLE IF EXISTS dropped"),
            fails("SHOW CREATE TABLE dropped", 1146),
            gives("SHOW TABLES LIKE 'dropped'", ()),
            gives("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 'dropped'", ((0,),)),
            command("COM_STMT_PREPARE", COM_STMT_PREPARE, "SELECT * FROM dropped", 1146),
            command("COM_FIELD_LIST", COM_FIELD_LIST, "dropped\0", 1146)],
           lambda db: error_code(lambda: run(db, "SELECT * FROM dropped")) == 1146)
    yield ("create database", [], ["CREATE DATABASE own"],
           [fails("CREATE DATABASE own", 1007),
            works("CREATE DATABASE IF NOT EXISTS own"),
            works("USE own"),
            gives("SHOW DATABASES LIKE 'own'", (("own",),)),
            gives("SHOW CREATE DATABASE own", lambda rows: len(rows) == 1),
            command("COM_INIT_DB", COM_INIT_DB, "own"),
            connecting(server, "own", 0)],
           lambda db: error_code(lambda: run(db, "USE own")) == 0)
    yield ("drop database", ["CREATE DATABASE left_over"], ["DROP DATABASE left_over"],
           [fails("DROP DATABASE left_over", 1008),
            works("DROP DATABASE IF EXISTS left_over"),
            fails("USE left_over", 1049),
            command("COM_INIT_DB", COM_INIT_DB, "left_over", 1049),
            connecting(server, "left_over", 1049)],
           lambda db: error_code(lambda: run(db, "USE left_over")) == 1049)
    yield ("truncate", ["CREATE TABLE cut (id INT PRIMARY KEY)", "INSERT INTO cut VALUES (1)"], ["TRUNCATE TABLE cut"],
           [works("INSERT INTO cut VALUES (1)", ["BEGIN"]),
            fails("SELECT * FROM cut", 1412, ["START TRANSACTION WITH CONSISTENT SNAPSHOT"]),
            gives("SELECT * FROM cut FOR UPDATE", ())],
           lambda db: run(db, "SELECT * FROM cut") == ())
    yield ("check", ["CREATE TABLE checked (id INT PRIMARY KEY, n INT)", "INSERT INTO checked VALUES (1, 1)"], ["UPDATE checked SET n = -5"],
           [fails("ALTER TABLE checked ADD CHECK (n > 0)", 3819)], lambda db: run(db, "SELECT n FROM checked") == ((-5,),))
    yield ("file", ["CREATE TABLE filed (id INT PRIMARY KEY, n INT)", "INSERT INTO filed VALUES (1, 1)"], ["UPDATE filed SET n = 7"],
           [in_file(server)], lambda db: run(db, "SELECT n FROM filed") == ((7,),))
    yield ("xa commit", ["CREATE TABLE x (id INT PRIMARY KEY)"] + [f"XA {what} 'b'" for what in ("START", "END", "PREPARE")],
           ["XA COMMIT 'b'"],
           [gives("XA RECOVER", ()), fails("XA COMMIT 'b'", 1397), fails("XA ROLLBACK 'b'", 1397)],
           lambda db: run(db, "XA RECOVER") == ())


class Asking(threading.Thread):
    """Asks until a reply tells of the change, or the server is gone."""

    def __init__(self, server, name, ask, before=()):
        super().__init__(daemon=True)
        self.name, self.ask, self.replies, self.error = name, ask, 0, None
        self.told = threading.Event()
        self.db = connect(server, database="t", autocommit=True)
        for sql in before:
            run(self.db, sql)

    def run(self):
        try:
            while not self.ask(self.db):
                self.replies += 1
            self.told.set()
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError, OSError) as error:
            if error.args and error.args[0] not in GONE and not isinstance(error, OSError):
                self.error = error
        except Exception as error:
            self.error = error


def change(db, statements, failed):
    try:
        for sql in statements:
            run(db, sql)
    except Exception as error:
        failed.append(error)


def one(server, device, name, before, statements, asking, holds):
    with connect(server, database="t", autocommit=True) as db:
        for sql in before:
            run(db, sql)
    threads = [Asking(server, *who) for who in asking]
    changer, admin = connect(server, database="t", autocommit=True), connect(server)
    failed, writes = [], device.syncs()
    device.is_slow(True)
    changing = threading.Thread(target=change, args=(changer, statements, failed), daemon=True)
    changing.start()
    # Engines sync, too: those who ask before the change has its locks find what is there without it, and may keep it from being made.
    about = f"SELECT STATE, INFO FROM information_schema.PROCESSLIST WHERE ID = {changer.thread_id()}"

    def is_written():
        expect(changing.is_alive(), f"{name}: the change was over before it was seen to be written: {failed}")
        state, sql = run(admin, about)[0]
        defines = statements[-1].split()[0] in ("CREATE", "DROP", "TRUNCATE")
        return device.syncs() > writes and (sql == statements[-1] if defines else state == "waiting for handler commit")
    wait_for(is_written, f"{name}: the change was never written", every=0.001)
    # Tells of nothing, and waits for nothing.
    run(admin, "SELECT @@version")
    run(admin, "SHOW GLOBAL STATUS LIKE 'Uptime'")
    alive = changing.is_alive()
    for thread in threads:
        thread.start()
    first = wait_for(lambda: [thread for thread in threads if thread.told.is_set()], f"{name}: nobody was told", every=0.001)
    server.kill()
    device.is_slow(False)
    for thread in threads:
        thread.join(PATIENCE_S)
        expect(not thread.is_alive() and thread.error is None, f"{name}: {thread.name}: {thread.error!r}")
    changing.join(PATIENCE_S)
    server.start()
    told = ", ".join(thread.name for thread in first)
    with connect(server, database="t") as db:
        expect(holds(db), f"{name}: told and gone after the crash: {told}")
    expect(alive, f"{name}: the change was over before anybody asked")
    print(f"{name}: {len(asking)} ways to ask, first told: {told[:100]}", flush=True)


def table_locks(server, device):
    """What was written under the lock before is there for a plain read under this one."""
    with connect(server, database="t", autocommit=True) as db:
        run(db, "CREATE TABLE counter (n INT)")
        run(db, "INSERT INTO counter VALUES (0)")
    device.is_slow(True)
    count, failures = [0], []

    def work(grant, adds):
        try:
            with connect(server, database="t", autocommit=True) as db:
                for _ in range(4):
                    at_least = count[0]
                    if grant:
                        run(db, grant)
                        before = run(db, "SELECT n FROM counter")[0][0]
                    if adds:
                        # A plain UPDATE lets go of the table as soon as it has its place.
                        run(db, f"UPDATE counter SET n = {before + 1 if grant else 'n + 1'}")
                        count[0] += 1
                    elif before < at_least or run(db, "SELECT n FROM counter")[0][0] != before:
                        failures.append(f"{grant}: {before} while {at_least} were acknowledged, or it changed under the lock")
                    if grant:
                        run(db, "UNLOCK TABLES")
        except Exception as error:
            failures.append(f"{grant}: {error!r}")
    grants = [("LOCK TABLES counter WRITE", True), (None, True)] * 2
    grants += [("LOCK TABLES counter READ", False), ("FLUSH TABLES counter WITH READ LOCK", False)]
    threads = [threading.Thread(target=work, args=grant) for grant in grants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, failures)
    with connect(server, database="t") as db:
        got = run(db, "SELECT n FROM counter")[0][0]
    expect(got == count[0] == 16, f"{count[0]} increments acknowledged, value {got}")
    print("table locks: every increment counts")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--delay-ms", type=int, default=400)
    options.add_argument("--only")
    options = options.parse_args()
    with Scratch("omnibus-floor-") as directory:
        directory = pathlib.Path(directory)
        device = SlowDevice(directory, options.delay_ms * 1000, before=True)
        server = Omnibus(directory, f"--secure-file-priv={directory}", env=device.env)
        server.start()
        with connect(server) as db:
            run(db, "CREATE DATABASE t")
        begun = time.monotonic()
        for case in cases(server):
            if options.only in (None, case[0]):
                one(server, device, *case)
        if options.only in (None, "table locks"):
            table_locks(server, device)
        server.kill()
        print(f"ok, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
