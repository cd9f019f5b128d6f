#!/usr/bin/python3
"""Whoever is given a lock sees, in every snapshot taken after that, what its former holders committed (SNAP-3).

Locks go before what was committed under them is durable. Here every sync of the device takes a while: one session commits, and
before it is told so another one gets its lock and reads another table without locks. Nothing that the first one committed may
be missing there: for every kind of lock, handed over or found free, through chains of locks, at all levels, in both engines.

Usage: snapshots_behind_locks.py [WORD]: the cases whose name contains the word.

Ring: gate.
"""

import itertools
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
from device import SlowDevice  # noqa: E402
from omnibus import Omnibus, Scratch, Session, expect  # noqa: E402

SLOW_US = 200_000
RC, RR, ALL = ["READ COMMITTED"], ["REPEATABLE READ"], ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
COUNT = "SELECT COUNT(*) FROM seen"
ONE, TWO = "SELECT id FROM p WHERE id = 1 FOR UPDATE", "SELECT id FROM p WHERE id = 2 FOR UPDATE"
RANGE = "SELECT id FROM f WHERE id BETWEEN 120 AND 130 FOR UPDATE"

# A name, levels, what the first session does before its COMMIT, and what the others do one after the other, each until it has
# ended its transaction; the last one's last answer counts. A tuple is run again until it succeeds.
CASES = [
    ("row", ALL, [ONE], [["BEGIN", ONE]]),
    ("row of before", ALL, [ONE], [[ONE]]),
    ("shared after exclusive", ALL, [ONE], [["BEGIN", "SELECT id FROM p WHERE id = 1 LOCK IN SHARE MODE"]]),
    ("exclusive after shared", ALL, ["SELECT id FROM p WHERE id = 1 LOCK IN SHARE MODE"], [["BEGIN", ONE]]),
    ("found free", ALL, [ONE], [["BEGIN", (ONE + " NOWAIT",)]]),
    ("skipped while it was locked", ALL, [ONE], [["BEGIN", (ONE + " SKIP LOCKED",)]]),
    ("next statement", RC, [ONE], [["BEGIN", COUNT, ONE]]),
    ("update", ALL, ["UPDATE p SET n = n + 1 WHERE id = 1"], [["BEGIN", "UPDATE p SET n = n + 1 WHERE id = 1"]]),
    ("deleted row", ALL, ["DELETE FROM p WHERE id = 3"], [["BEGIN", "DELETE FROM p WHERE id = 3"]]),
    ("absent row", RR, ["SELECT id FROM p WHERE id = 77 FOR UPDATE"], [["BEGIN", "INSERT INTO p VALUES (77, 77, 0)"]]),
    ("insert into a range", RR, [RANGE], [["BEGIN", "INSERT INTO f VALUES (125)"]]),
    ("range around an insert", RR, ["INSERT INTO f VALUES (125)", "DELETE FROM f WHERE id = 125"], [["BEGIN", RANGE]]),
    ("range of a deletion", RR, ["DELETE FROM f WHERE id = 122"], [["BEGIN", RANGE]]),
    ("unique key", ALL, ["INSERT INTO p VALUES (50, 500, 0)", "DELETE FROM p WHERE id = 50"],
     [["BEGIN", "INSERT INTO p VALUES (51, 500, 0)"]]),
    ("parent of a child", ALL, ["INSERT INTO c (pid) VALUES (1)"], [["BEGIN", ONE]]),
    ("child of a parent", ALL, [ONE], [["BEGIN", "INSERT INTO c (pid) VALUES (1)"]]),
    ("many rows", ALL, ["UPDATE many SET n = 1 WHERE id <= 2500"], [["BEGIN", "SELECT n FROM many WHERE id = 2400 FOR UPDATE"]]),
    ("LOCK TABLES", ALL, ["UPDATE p SET n = 7 WHERE id = 1"], [["LOCK TABLES p WRITE, seen READ"]]),
    ("definition of a table that was read", ALL, ["SELECT id FROM e"], [["ALTER TABLE e COMMENT = 'another'"]]),
    ("definition of a table that was changed", ALL, ["UPDATE p SET n = 7 WHERE id = 1"], [["ALTER TABLE p COMMENT = 'another'"]]),
    ("emptied table", ALL, ["SELECT id FROM e"], [["TRUNCATE TABLE e"]]),
    ("renamed table", ALL, ["SELECT id FROM e"], [["RENAME TABLE e TO e2, e2 TO e"]]),
    ("all tables", ALL, ["UPDATE p SET n = 7 WHERE id = 1"], [["FLUSH TABLES WITH READ LOCK"]]),
    ("all tables, then a snapshot", RR, [ONE], [["FLUSH TABLES WITH READ LOCK", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "UNLOCK TABLES"]]),
    ("chain of rows", ALL, [ONE], [["BEGIN", ONE, TWO, "ROLLBACK"], ["BEGIN", TWO]]),
    ("chain through a commit", ALL, [ONE], [["BEGIN", ONE, TWO, "COMMIT"], ["BEGIN", TWO]]),
    ("chain through a lock by name", ALL, [ONE],
     [["DO GET_LOCK('x', 60)", "BEGIN", ONE, "ROLLBACK", "DO RELEASE_LOCK('x')"], ["DO GET_LOCK('x', 60)"]]),
    ("consistent snapshot", RR, [ONE],
     [["DO GET_LOCK('x', 60)", "BEGIN", ONE, "ROLLBACK", "DO RELEASE_LOCK('x')"],
      ["DO GET_LOCK('x', 60)", "START TRANSACTION WITH CONSISTENT SNAPSHOT"]]),
    ("procedure", ALL, [ONE], [["BEGIN", "CALL locks_and_counts(@n)", "SELECT @n"]]),
    ("procedure over a range", RR, ["DELETE FROM f WHERE id = 122"], [["BEGIN", "CALL scans_and_counts(@n)", "SELECT @n"]]),
]
SETUP = [
    "DROP DATABASE IF EXISTS snap", "CREATE DATABASE snap", "USE snap", "SET default_storage_engine = {engine}",
    "CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE, n INT)",
    "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES p (id))",
    "CREATE TABLE f (id INT PRIMARY KEY)", "CREATE TABLE e (id INT PRIMARY KEY)", "CREATE TABLE many (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE seen (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    "INSERT INTO many VALUES " + ", ".join(f"({n}, 0)" for n in range(1, 3001)),
    "CREATE PROCEDURE locks_and_counts(OUT n INT) BEGIN DECLARE x INT; SELECT id INTO x FROM p WHERE id = 1 FOR UPDATE; "
    "SELECT COUNT(*) INTO n FROM seen; END",
    "CREATE PROCEDURE scans_and_counts(OUT n INT) BEGIN DECLARE x INT; SELECT COUNT(*) INTO x FROM f WHERE id BETWEEN 120 AND 130 "
    "FOR UPDATE; SELECT COUNT(*) INTO n FROM seen; END",
]
RESET = ["DELETE FROM c", "DELETE FROM p", "DELETE FROM f", "DELETE FROM seen", "INSERT INTO p VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0)",
         "INSERT INTO f VALUES (100), (122), (200)"]


def ask(session, step):
    if isinstance(step, str):
        return session(step)
    while True:
        try:
            rows = session(*step)
        except pymysql.err.MySQLError as error:
            expect(error.args[0] in (1205, 3572), f"{step}: {error}")
            continue
        if rows:
            return rows


class First(threading.Thread):
    """Commits what the first session did, and knows when it was told."""

    def __init__(self, session, sql):
        super().__init__()
        self.session, self.sql, self.told = session, sql, None
        self.start()

    def run(self):
        self.session(self.sql)
        self.told = time.monotonic()


class Bench:
    def __init__(self, server, device, engine):
        self.server, self.device, self.engine, self.early = server, device, engine, 0
        self.setup = Session(server)
        self.setup.run(*(sql.format(engine=engine) for sql in SETUP))

    def session(self, level):
        session = Session(self.server, database="snap")
        session(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        return session

    def case(self, name, level, before, others, commit="COMMIT", begin="BEGIN"):
        self.setup.run(*RESET)
        first = self.session(level)
        first.run(begin, *before, "INSERT INTO seen (n) VALUES (1)")
        if commit != "COMMIT":
            first.run("XA END 'x'", "XA PREPARE 'x'")
        self.device.is_slow(True)
        # Who leads a group itself would keep everybody waiting: the device is known to be slow from now on.
        self.setup("INSERT INTO f VALUES (1)")
        committing, answers = First(first, commit), []
        for nth, steps in enumerate(others):
            session = self.session(level)
            for step in steps:
                answers = ask(session, step)
            locked = time.monotonic()
            if nth == len(others) - 1 and not str(steps[-1]).startswith("SELECT @"):
                answers = session(COUNT)
            session.close()
        committing.join()
        self.device.is_slow(False)
        self.early += locked < committing.told
        first.close()
        expect(answers == ((1,),), f"{name} at {level} in {self.engine}: behind the lock {answers} rows are seen of 1")

    def own_commit(self):
        """A transaction that begins by ending the one before has its rows in its snapshot."""
        self.setup.run(*RESET)
        self.device.is_slow(True)
        session = self.session("REPEATABLE READ")
        session.run("BEGIN", "INSERT INTO seen (n) VALUES (1)", "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        expect(session.value(COUNT) == 1, f"{self.engine}: the snapshot misses the session's own commit")
        self.device.is_slow(False)


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    with Scratch("omnibus-snap-") as directory:
        directory = pathlib.Path(directory)
        device = SlowDevice(directory, SLOW_US)
        server = Omnibus(directory, env=device.env)
        server.start()
        for engine, early in itertools.product(["LSM", "BTREE"], ["ON", "OFF"]):
            bench = Bench(server, device, engine)
            bench.setup(f"SET GLOBAL release_locks_early = {early}")
            done = 0
            for name, levels, before, others in CASES:
                # Without early release one level says it all.
                for level in levels if early == "ON" else levels[:1]:
                    if word in name:
                        bench.case(name, level, before, others)
                        done += 1
            if word in "xa":
                bench.case("xa", "REPEATABLE READ", [ONE], [["BEGIN", ONE]], "XA COMMIT 'x'", "XA START 'x'")
            if word in "own commit":
                bench.own_commit()
            print(f"snapshots behind locks: {engine}, release_locks_early={early}: {done} cases, {bench.early} with the lock "
                  "before the commit was told", flush=True)
            expect(early == "OFF" or bench.early >= done // 2, "hardly a lock was given early: nothing was tested")
        server.stop()
    print("snapshots behind locks: ok")


if __name__ == "__main__":
    main()
