#!/usr/bin/python3
"""XA from outside: which statement may follow which, and that a prepared branch outlives everything but its end.

A branch that was prepared must be there after its client is gone, after SIGKILL, and after the log files with its row
events are purged; its locks are held all the time; any session may finish it. The log must be readable by
mariadb-binlog, and replaying it in a MariaDB server must give the same tables.

Ring: gate.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, Session, client, error_code, expect, finished_binlogs, replay  # noqa: E402

NOTA, INVAL, RMFAIL, OUTSIDE, RMERR, DUPID, RBDEADLOCK = 1397, 1398, 1399, 1400, 1401, 1440, 1614


def recover(session):
    """What is prepared, as hexadecimal names."""
    return sorted(row[3] for row in session("XA RECOVER CONVERT XID"))


def tables(session):
    session.run(
        "CREATE DATABASE x",
        "CREATE TABLE x.t (id INT PRIMARY KEY, v INT, u INT, UNIQUE (u), KEY (v))",
        "CREATE TABLE x.h (v VARCHAR(20))",
        "CREATE TABLE x.a (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
        "INSERT INTO x.t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
        "INSERT INTO x.h VALUES ('before')",
        "INSERT INTO x.a (v) VALUES (1), (2), (3)",
    )


CONTENTS = ("SELECT id, v, u FROM x.t ORDER BY id", "SELECT v FROM x.t FORCE INDEX (v) ORDER BY v",
            "SELECT v FROM x.h ORDER BY v", "SELECT id, v FROM x.a ORDER BY id")


def contents(session):
    return [session(sql) for sql in CONTENTS]


def states(server):
    one, two = Session(server), Session(server)
    # Nothing there.
    for sql in ("XA END 'a'", "XA PREPARE 'a'"):
        one.fails(sql, RMFAIL)
    for sql in ("XA COMMIT 'a'", "XA ROLLBACK 'a'", "XA COMMIT 'a' ONE PHASE"):
        one.fails(sql, NOTA)
    one.fails("XA START 'a' JOIN", INVAL)
    one.fails("XA START 'a' RESUME", INVAL)
    one.fails("XA START '" + "g" * 65 + "'", 1064)
    one.fails("XA START", 1064)
    # Work outside.
    one("BEGIN")
    one.fails("XA START 'a'", OUTSIDE)
    one("ROLLBACK")
    one("LOCK TABLES x.t READ")
    one.fails("XA START 'a'", OUTSIDE)
    one("UNLOCK TABLES")
    # ACTIVE.
    one("XA START 'a', 'b', 7")
    one.fails("XA START 'other'", RMFAIL)
    two.fails("XA START 'a', 'b', 7", DUPID)
    two.fails("XA COMMIT 'a', 'b', 7", NOTA)
    for sql in ("BEGIN", "COMMIT", "ROLLBACK", "CREATE TABLE x.n (i INT)", "LOCK TABLES x.t READ", "DROP TABLE x.t",
                "XA PREPARE 'a','b',7", "XA COMMIT 'a','b',7", "XA ROLLBACK 'a','b',7", "TRUNCATE x.t"):
        one.fails(sql, RMFAIL)
    one.fails("XA END 'a'", NOTA)
    one.fails("XA END 'a','b',7 SUSPEND", INVAL)
    one.run("INSERT INTO x.t VALUES (10, 10, 10)", "SAVEPOINT s", "INSERT INTO x.t VALUES (11, 11, 11)",
            "ROLLBACK TO s", "XA END 'a','b',7")
    # IDLE.
    for sql in ("SELECT * FROM x.t", "INSERT INTO x.t VALUES (12, 12, 12)", "COMMIT", "XA END 'a','b',7",
                "XA COMMIT 'a','b',7", "XA START 'n'"):
        one.fails(sql, RMFAIL)
    one.fails("XA PREPARE 'a'", NOTA)
    one("XA START 'a','b',7 RESUME")
    expect(one("SELECT COUNT(*) FROM x.t") == ((4,),), "a branch does not see its own row")
    expect(two("SELECT COUNT(*) FROM x.t") == ((3,),), "a branch is seen before its commit")
    one.run("XA END 'a','b',7", "XA COMMIT 'a','b',7 ONE PHASE")
    expect(two("SELECT COUNT(*) FROM x.t") == ((4,),), "the commit in one phase is not seen")
    one.fails("XA COMMIT 'a','b',7", NOTA)
    # Rolled back before it was prepared; by hand, and by going away.
    one.run("XA START 'r'", "DELETE FROM x.t WHERE id = 10", "XA END 'r'", "XA ROLLBACK 'r'")
    three = Session(server)
    three.run("XA START 'gone'", "DELETE FROM x.t WHERE id = 10", "XA END 'gone'")
    three.close()
    one("DELETE FROM x.t WHERE id = 10")
    # Prepared: the session is free, and the name is not.
    one.run("XA START 'p'", "INSERT INTO x.t VALUES (20, 20, 20)", "XA END 'p'", "XA PREPARE 'p'")
    one("SELECT 1")
    two.fails("XA START 'p'", DUPID)
    two.fails("XA COMMIT 'p' ONE PHASE", INVAL)
    expect(one("XA RECOVER") == ((1, 1, 0, b"p"),), f"XA RECOVER: {one('XA RECOVER')}")
    one("BEGIN")
    one.fails("XA COMMIT 'p'", RMFAIL)
    one("ROLLBACK")
    one("XA ROLLBACK 'p'")
    expect(one("XA RECOVER") == (), "a finished branch is listed")
    expect(one("SELECT COUNT(*) FROM x.t") == ((3,),), "a branch that was rolled back left something")
    one.fails("PREPARE s FROM 'XA RECOVER'", 1295)
    # The privilege.
    one.run("CREATE USER u@localhost", "GRANT ALL ON x.* TO u@localhost")
    user = Session(server, user="u")
    user.fails("XA RECOVER", RMERR)
    user.run("XA START 'u'", "XA END 'u'", "XA COMMIT 'u' ONE PHASE")
    one("GRANT XA_RECOVER_ADMIN ON *.* TO u@localhost")
    user("XA RECOVER")


def deadlock(server):
    one, two = Session(server), Session(server)
    import threading
    one.run("XA START 'd1'", "UPDATE x.t SET v = v + 1 WHERE id = 1")
    two.run("XA START 'd2'", "UPDATE x.t SET v = v + 1 WHERE id = 2")
    codes = {}

    def cross(session, name, row):
        codes[name] = error_code(lambda: session(f"UPDATE x.t SET v = v + 1 WHERE id = {row}"))

    threads = [threading.Thread(target=cross, args=args) for args in ((one, "d1", 2), (two, "d2", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(sorted(codes.values()) == [0, 1213], f"a deadlock ended with {codes}")
    victim, other = ("d1", "d2") if codes["d1"] else ("d2", "d1")
    sessions = {"d1": one, "d2": two}
    sessions[victim].fails("SELECT * FROM x.t", RMFAIL)
    sessions[victim].fails(f"XA END '{victim}'", RBDEADLOCK)
    sessions[victim].fails(f"XA PREPARE '{victim}'", RMFAIL)
    sessions[victim](f"XA ROLLBACK '{victim}'")
    sessions[other].run(f"XA END '{other}'", f"XA ROLLBACK '{other}'")


def prepare_all(session, name):
    """A branch with every kind of change, that is prepared."""
    session.run(f"XA START '{name}'", "UPDATE x.t SET v = 77 WHERE id = 1", "DELETE FROM x.t WHERE id = 2",
                "INSERT INTO x.t VALUES (30, 30, 30)", f"INSERT INTO x.h VALUES ('{name}')",
                "INSERT INTO x.a (v) VALUES (40)", "DELETE FROM x.a WHERE id = 3", f"XA END '{name}'",
                f"XA PREPARE '{name}'")


def read_only(server):
    """A read-only server takes neither end of a prepared branch: both are written to its log."""
    session = Session(server)
    session.run("XA START 'r'", "UPDATE x.t SET v = v + 1 WHERE id = 1", "XA END 'r'", "XA PREPARE 'r'",
                "SET GLOBAL super_read_only = 1")
    session.fails("XA COMMIT 'r'", 1290)
    session.fails("XA ROLLBACK 'r'", 1290)
    session.run("SET GLOBAL super_read_only = 0, GLOBAL read_only = 0", "XA ROLLBACK 'r'")
    session.close()


def locked(server):
    """Whatever a prepared branch changed is locked, and nothing else."""
    session = Session(server)
    session("SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
    session.fails("UPDATE x.t SET v = 0 WHERE id = 1", 1205)
    session.fails("SELECT * FROM x.t WHERE id = 2 FOR SHARE", 1205)
    session.fails("INSERT INTO x.t VALUES (30, 0, 0)", 1205)
    session.fails("INSERT INTO x.t VALUES (31, 0, 2)", 1205)
    session.fails("INSERT INTO x.t VALUES (31, 0, 30)", 1205)
    session.fails("SELECT * FROM x.t WHERE id BETWEEN 25 AND 35 FOR UPDATE", 1205)
    session.fails("ALTER TABLE x.t ADD COLUMN c INT", 1205)
    session.fails("DROP TABLE x.h", 1205)
    session.run("UPDATE x.t SET v = 33 WHERE id = 3", "INSERT INTO x.t VALUES (4, 4, 4)",
                "UPDATE x.t SET v = 3 WHERE id = 3", "DELETE FROM x.t WHERE id = 4")
    session.close()


AFTER = [((1, 77, 1), (3, 3, 3), (30, 30, 30)), ((3,), (30,), (77,)), (("before",), ("m",)), ((1, 1), (2, 2), (4, 40))]


def survives(server, finish, purge):
    """Prepare, vanish, kill, start; the branch is there and holds its locks; then finish it, kill, start."""
    session = Session(server)
    start = before = contents(session)
    prepare_all(session, "m")
    session.close()
    locked(server)
    if purge:
        session = Session(server)
        session.run("FLUSH BINARY LOGS", "INSERT INTO x.h VALUES ('later')", "FLUSH BINARY LOGS")
        server.stop()  # A checkpoint: recovery does not need the older files.
        server.start()
        session = Session(server)
        files = [row[0] for row in session("SHOW BINARY LOGS")]
        before = contents(session)
        session(f"PURGE BINARY LOGS TO '{files[-1]}'")
        expect(len(session("SHOW BINARY LOGS")) == 1, "the files were not purged")
        session.close()
    for _ in range(2):
        server.kill()
        server.start()
    session = Session(server)
    expect(recover(session) == ["0x6D"], f"after a kill XA RECOVER says {recover(session)}")
    expect(contents(session) == before, "a prepared branch is seen after a kill")
    locked(server)
    # Neither its row's hidden id nor its AUTO_INCREMENT value is given out again.
    session.run("INSERT INTO x.h VALUES ('next')", "INSERT INTO x.a (v) VALUES (50)")
    session.fails("XA START 'm'", DUPID)
    session(f"XA {finish} 'm'")
    session.fails(f"XA {finish} 'm'", NOTA)
    server.kill()
    server.start()
    session = Session(server)
    expect(recover(session) == [], "a finished branch is back after a kill")
    session.run("DELETE FROM x.h WHERE v = 'next'", "DELETE FROM x.a WHERE v = 50")
    session("DELETE FROM x.h WHERE v = 'later'")
    want = AFTER if finish == "COMMIT" else start
    expect(contents(session) == want, f"after XA {finish}: {contents(session)}")
    session("UPDATE x.t SET v = 1, u = 1 WHERE id = 1")
    session.run("DELETE FROM x.t WHERE id = 30", "REPLACE INTO x.t VALUES (1, 1, 1), (2, 2, 2)",
                "DELETE FROM x.h WHERE v = 'm'", "DELETE FROM x.a WHERE id > 2", "INSERT INTO x.a VALUES (3, 3)")


def unlogged_and_empty(server):
    """Branches without row events: nothing changed, or sql_log_bin=0."""
    session = Session(server)
    session.run("XA START 'empty'", "XA END 'empty'", "XA PREPARE 'empty'", "SET sql_log_bin = 0", "XA START 'quiet'",
                "INSERT INTO x.t VALUES (50, 50, 50)", "XA END 'quiet'", "XA PREPARE 'quiet'")
    server.kill()
    server.start()
    session = Session(server)
    expect(recover(session) == ["0x656D707479", "0x7175696574"], f"XA RECOVER says {recover(session)}")
    session.run("XA COMMIT 'empty'", "SET sql_log_bin = 0", "XA COMMIT 'quiet'")
    server.kill()
    server.start()
    session = Session(server)
    expect(recover(session) == [], "a finished branch is back after a kill")
    expect(session("SELECT v FROM x.t WHERE id = 50") == ((50,),), "a branch with sql_log_bin=0 is lost")
    session.run("SET sql_log_bin = 0", "DELETE FROM x.t WHERE id = 50")


def log_and_replay(server, directory):
    """What the log says of a branch, and that a MariaDB server comes to the same."""
    session = Session(server)
    file, position = session("SHOW BINARY LOG STATUS")[0][:2]
    prepare_all(session, "m")
    session("XA COMMIT 'm'")
    session.run("XA START 'r'", "DELETE FROM x.t", "XA END 'r'", "XA PREPARE 'r'", "XA ROLLBACK 'r'")
    events = session(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
    kept = [(row[2], row[5]) for row in events if row[2] in ("Query", "XA_prepare")]
    name, other = "X'6d',X'',1", "X'72',X'',1"
    want = [("Query", f"XA START {name}"), ("Query", f"XA END {name}"), ("XA_prepare", f"XA PREPARE {name}"),
            ("Query", f"XA COMMIT {name}"), ("Query", f"XA START {other}"), ("Query", f"XA END {other}"),
            ("XA_prepare", f"XA PREPARE {other}"), ("Query", f"XA ROLLBACK {other}")]
    expect([info.split("; ")[-1] for _, info in kept] == [info for _, info in want], f"the log says {kept}")
    gtids = sum(1 for row in events if row[2] == "Gtid")
    expect(gtids == 4, f"{gtids} groups in the log instead of 4")
    text = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", "-v",
                           *finished_binlogs(server)], capture_output=True, text=True, errors="replace")
    expect(text.returncode == 0 and "ERROR" not in text.stderr, f"mariadb-binlog: {text.stderr}")
    for sql in (f"XA START {name}", f"XA END {name}", f"XA PREPARE {name}", f"XA COMMIT {name}"):
        expect(sql in text.stdout, f"mariadb-binlog does not show {sql}")
    peer = MariaDB(directory)
    peer.start()
    try:
        replay(server, peer)
        for sql in CONTENTS:
            ours, theirs = client(server, sql), client(peer, sql)
            expect(ours == theirs, f"{sql}: {ours!r} here, {theirs!r} replayed")
    finally:
        peer.stop()


def one_phase(server):
    """In the log a transaction like any other: MariaDB's servers and tools know no other form of it. Also a large one,
    which is in a file before it is known how it ends."""
    session = Session(server)
    for key, more in ((60, 0), (61, 3000)):
        file, position = session("SHOW BINARY LOG STATUS")[0][:2]
        session.run("XA START 'one', 'phase', 3", f"INSERT INTO x.t VALUES ({key}, {key}, {key})")
        if more:
            session("INSERT INTO x.t VALUES " + ",".join(f"({n}, {n}, {n})" for n in range(1000, 1000 + more)))
            session("DELETE FROM x.t WHERE id >= 1000")
        session.run("XA END 'one', 'phase', 3", "XA COMMIT 'one', 'phase', 3 ONE PHASE")
        events = [row[2:] for row in session(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}") if row[2] in ("Query", "Xid")]
        expect([event[0] for event in events] == ["Query", "Xid"] and events[0][3].endswith("BEGIN"), f"the log says {events}")
    server.kill()
    server.start()
    session = Session(server)
    expect(session("SELECT v FROM x.t WHERE id IN (60, 61)") == ((60,), (61,)), "a commit in one phase is lost")
    session("DELETE FROM x.t WHERE id IN (60, 61)")


def large(server):
    """A branch of many rows: its record goes through many memtables."""
    session = Session(server)
    session.run("CREATE TABLE x.big (id INT PRIMARY KEY, v VARCHAR(200))", "XA START 'big'")
    for first in range(0, 20000, 1000):
        session("INSERT INTO x.big VALUES " + ",".join(f"({n}, REPEAT('v', 200))" for n in range(first, first + 1000)))
    session.run("XA END 'big'", "XA PREPARE 'big'")
    server.kill()
    server.start()
    session = Session(server)
    session("XA COMMIT 'big'")
    expect(session("SELECT COUNT(*), SUM(id) FROM x.big") == ((20000, 199990000),), "a large branch is not whole")
    session("DROP TABLE x.big")


def engines_apart(server):
    """A branch in two engines, of which a crash finds one far ahead of the other."""
    session = Session(server)
    session.run("CREATE DATABASE x", "CREATE TABLE x.l (id INT PRIMARY KEY, v INT) ENGINE=LSM",
                "CREATE TABLE x.b (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE=BTREE",
                "CREATE TABLE x.f (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT) ENGINE=LSM",
                "INSERT INTO x.l VALUES (1, 1)", "INSERT INTO x.b VALUES (1, 1), (2, 2)")
    rows = [((1, 1),), ((1, 1), (2, 2))]

    def crash():
        filling = Session(server)
        # More than the LSM engine keeps in memory: it persists itself past what the other one has.
        for _ in range(30):
            filling("INSERT INTO x.f (v) VALUES " + ",".join(["(REPEAT('f', 2000))"] * 100))
        server.kill()
        server.start()
        return Session(server)

    for finish in ("ROLLBACK", "COMMIT"):
        session.run("XA START 'e'", "INSERT INTO x.l VALUES (2, 2)", "UPDATE x.b SET v = 9 WHERE id = 1",
                    "DELETE FROM x.b WHERE id = 2", "INSERT INTO x.b VALUES (3, 3)", "XA END 'e'", "XA PREPARE 'e'")
        session = crash()
        expect(recover(session) == ["0x65"], f"XA RECOVER says {recover(session)}")
        session("SET innodb_lock_wait_timeout = 1")
        session.fails("UPDATE x.b SET v = 0 WHERE id = 1", 1205)
        session.fails("INSERT INTO x.l VALUES (2, 0)", 1205)
        session(f"XA {finish} 'e'")
        session = crash()
        expect(recover(session) == [], "a finished branch is back after a kill")
        if finish == "COMMIT":
            rows = [((1, 1), (2, 2)), ((1, 9), (3, 3))]
        found = [session("SELECT id, v FROM x.l ORDER BY id"), session("SELECT id, v FROM x.b ORDER BY id")]
        expect(found == rows, f"after {finish} and a kill: {found}")
        expect(session("SELECT COUNT(*) FROM x.b FORCE INDEX (v) WHERE v > 0") == ((2,),), "an index disagrees")


def parents(server, engine):
    """What the rows of a prepared branch refer to stays there, also after a restart of either kind."""
    session = Session(server)
    session.run("DROP DATABASE IF EXISTS x", "CREATE DATABASE x",
                f"CREATE TABLE x.p (id INT PRIMARY KEY, u INT, UNIQUE (u)) ENGINE={engine}",
                "CREATE TABLE x.c (id INT PRIMARY KEY, pid INT, pu INT, FOREIGN KEY (pid) REFERENCES x.p (id), FOREIGN KEY (pu) "
                f"REFERENCES x.p (u)) ENGINE={engine}",
                "INSERT INTO x.p VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)", "INSERT INTO x.c VALUES (1, 1, NULL), (2, NULL, NULL)",
                "XA START 'f'", "INSERT INTO x.c VALUES (3, 2, NULL)", "UPDATE x.c SET pid = 3 WHERE id = 1",
                "UPDATE x.c SET pu = 4 WHERE id = 2", "XA END 'f'", "XA PREPARE 'f'")
    for end in (server.kill, server.stop):
        end()
        server.start()
        session = Session(server)
        session("SET innodb_lock_wait_timeout = 1")
        for row in (2, 3, 4):
            session.fails(f"DELETE FROM x.p WHERE id = {row}", 1205)
        session("UPDATE x.p SET u = 6 WHERE id = 5")
    session("XA COMMIT 'f'")
    for row in (2, 3, 4):
        session.fails(f"DELETE FROM x.p WHERE id = {row}", 1451)
    session.run("DELETE FROM x.p WHERE id IN (1, 5)")
    unchecked(server)


def unchecked(server):
    """A branch that did not check what it refers to does not keep the server from starting: what another branch has brought or what
    is missing stays unlocked, what is there is locked."""
    session = Session(server)
    session.run("INSERT INTO x.p VALUES (6, 6)",
                "XA START 'g'", "INSERT INTO x.p VALUES (10, 10)", "XA END 'g'", "XA PREPARE 'g'", "SET foreign_key_checks = 0",
                "XA START 'h'", "INSERT INTO x.c VALUES (9, 10, 10), (10, 11, 11), (11, 6, NULL)", "XA END 'h'", "XA PREPARE 'h'")
    for end in (server.kill, server.stop):
        end()
        server.start()
        session = Session(server)
        expect(recover(session) == ["0x67", "0x68"], f"XA RECOVER says {recover(session)}")
        session("SET innodb_lock_wait_timeout = 1")
        session.fails("DELETE FROM x.p WHERE id = 6", 1205)
        session.run("INSERT INTO x.p VALUES (11, 11)", "SET foreign_key_checks = 0", "DELETE FROM x.p WHERE id = 11")
    session.run("XA COMMIT 'h'", "XA COMMIT 'g'", "SET foreign_key_checks = 1")
    for row in (6, 10):
        session.fails(f"DELETE FROM x.p WHERE id = {row}", 1451)


def main():
    with Scratch("omnibus-xa-") as directory:
        server = Omnibus(directory, "--lsm-memtable-size=1M", "--binlog-large-commit-threshold=1M")
        server.start()
        try:
            tables(Session(server))
            log_and_replay(server, directory)
            one_phase(server)
            session = Session(server)
            session.run("DELETE FROM x.t", "INSERT INTO x.t VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
                        "DELETE FROM x.h WHERE v <> 'before'", "DELETE FROM x.a WHERE id > 2",
                        "INSERT INTO x.a VALUES (3, 3)")
            states(server)
            deadlock(server)
            read_only(server)
            large(server)
            unlogged_and_empty(server)
            server.stop()
        finally:
            server.stop()
    with Scratch("omnibus-xa-") as directory:
        server = Omnibus(directory, "--lsm-memtable-size=1M")
        server.start()
        try:
            engines_apart(server)
            parents(server, "LSM")
            parents(server, "BTREE")
        finally:
            server.stop()
    for finish in ("COMMIT", "ROLLBACK"):
        for purge in (False, True):
            with Scratch("omnibus-xa-") as directory:
                server = Omnibus(directory)
                server.start()
                try:
                    tables(Session(server))
                    survives(server, finish, purge)
                finally:
                    server.stop()
    print("xa: 13 passed, 0 failed")


main()
