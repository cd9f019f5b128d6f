#!/usr/bin/python3
"""Promises that meet: temporary tables in XA branches and kills; savepoints, cascades and triggers at READ COMMITTED; SKIP LOCKED and unique
keys over both engines; definitions, open transactions and kills; TRUNCATE, foreign keys and snapshots; AUTO_INCREMENT, rollbacks and kills.

Usage: crossings.py [PART ..] [--seed N] [--seconds N]: the parts named, all unless said.

Ring: all.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
import seeds  # noqa: E402
from omnibus import Omnibus, Scratch, Session, error_code, expect  # noqa: E402

ENGINES = ("LSM", "BTREE")
# Whoever runs beside others is refused a duplicate, a wait, a deadlock, a parent that is missing or has children, a savepoint that went
# with its transaction, a definition that has changed.
REFUSED = {1062, 1205, 1213, 1305, 1412, 1451, 1452, 3572}
GONE = {2003, 2006, 2013, 1053, 1927}


def restarted(server):
    server.kill()
    server.start()
    return Session(server)


def whole(session, *tables):
    for table in tables:
        said = session(f"CHECK TABLE {table} EXTENDED")
        expect(said[-1][-1] == "OK", f"CHECK TABLE {table}: {said}")


def branches_and_temporary_tables(server, rng, seconds):
    """A branch that has changed temporary tables, too, is kept by a kill without them, and locks what it has changed until it ends."""
    root = Session(server)
    for engine in ENGINES:
        root.run(f"CREATE TABLE x.{engine} (id INT PRIMARY KEY, v INT, KEY (v)) ENGINE={engine}",
                 f"INSERT INTO x.{engine} VALUES " + ", ".join(f"({at}, {at})" for at in range(40)))
    rows = {engine: {at: at for at in range(40)} for engine in ENGINES}
    until, turns = time.monotonic() + seconds, 0
    while time.monotonic() < until or turns < 4:
        turns += 1
        session, branch = Session(server), {engine: dict(has) for engine, has in rows.items()}
        session("CREATE TEMPORARY TABLE x.own (id INT PRIMARY KEY, v INT)")
        # A temporary table of the same name hides the other one.
        hidden = rng.choice([None, *ENGINES])
        prepared = refused = False
        session(f"XA START 'b{turns}'")
        for step in range(rng.randrange(2, 12)):
            engine, at = rng.choice(ENGINES), rng.randrange(80)
            if step == 3 and hidden:
                refused = error_code(lambda: session("INSERT INTO x.own VALUES (1, 1)")) or refused  # noqa: B023
            if at in branch[engine] and rng.random() < 0.5:
                session(f"DELETE FROM x.{engine} WHERE id = {at}")
                del branch[engine][at]
            else:
                session(f"REPLACE INTO x.{engine} VALUES ({at}, {turns})")
                branch[engine][at] = turns
        session(f"XA END 'b{turns}'")
        if rng.random() < 0.8:
            code = error_code(lambda: session(f"XA PREPARE 'b{turns}'"))  # noqa: B023
            prepared = code == 0
        session = restarted(server)
        expect(len(session("XA RECOVER")) == int(prepared), f"turn {turns}: prepared {prepared}, refused {refused}: {session('XA RECOVER')}")
        expect(error_code(lambda: session("SELECT * FROM x.own"), but={1146}) == 1146, "a temporary table outlives its server")  # noqa: B023
        if prepared:
            session("SET innodb_lock_wait_timeout = 1")
            changed = [(engine, at) for engine in ENGINES for at in range(80) if rows[engine].get(at) != branch[engine].get(at)]
            if changed:
                engine, at = rng.choice(changed)
                session.fails(f"REPLACE INTO x.{engine} VALUES ({at}, -1)", 1205)
            session("CREATE TEMPORARY TABLE x.own (id INT)")
            if rng.random() < 0.7:
                session(f"XA COMMIT 'b{turns}'")
                rows = branch
            else:
                session(f"XA ROLLBACK 'b{turns}'")
            if rng.random() < 0.5:
                session = restarted(server)
        for engine in ENGINES:
            found = dict(session(f"SELECT id, v FROM x.{engine}"))
            expect(found == rows[engine], f"turn {turns}, {engine}: {found}\n{rows[engine]}")
        whole(session, *(f"x.{engine}" for engine in ENGINES))
    return f"{turns} branches"


class Workers:
    """Sessions that each do something again and again until they are told to end, or the server is gone."""

    def __init__(self, server, rng, count, work):
        self.server, self.work, self.over, self.turns = server, work, threading.Event(), [0] * count
        self.threads = [threading.Thread(target=self.run, args=(at, random.Random(rng.random())), daemon=True) for at in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, at, rng):
        session = None
        while not self.over.is_set():
            try:
                if session is None:
                    session = Session(self.server)
                    session("SET innodb_lock_wait_timeout = 2, lock_wait_timeout = 2")
                self.work(session, rng, at)
                self.turns[at] += 1
            except pymysql.MySQLError as error:
                if error.args[0] in GONE:
                    return
                expect(error.args[0] in REFUSED, f"{error}")
                try:
                    session("ROLLBACK")
                except pymysql.MySQLError:
                    return

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        return sum(self.turns)


def savepoints_cascades_triggers(server, rng, seconds):
    """What triggers count and keys cascade is right after every mixture of savepoints, statements that fail and waits at READ COMMITTED."""
    root = Session(server)
    for engine in ENGINES:
        root.run(f"CREATE TABLE x.p (id INT PRIMARY KEY, n INT, u INT UNIQUE) ENGINE={engine}",
                 "CREATE TABLE x.c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, up INT, u INT UNIQUE, KEY (pid), FOREIGN KEY (pid) REFERENCES x.p (id)"
                 f" ON DELETE CASCADE ON UPDATE CASCADE, FOREIGN KEY (up) REFERENCES x.c (id) ON DELETE CASCADE) ENGINE={engine}",
                 f"CREATE TABLE x.born (id INT PRIMARY KEY) ENGINE={engine}", f"CREATE TABLE x.died (id INT PRIMARY KEY) ENGINE={engine}",
                 "CREATE TRIGGER x.cb AFTER INSERT ON x.c FOR EACH ROW BEGIN INSERT INTO x.born VALUES (NEW.id); "
                 "UPDATE x.p SET n = n + 1 WHERE id = NEW.pid; END",
                 "CREATE TRIGGER x.cd BEFORE DELETE ON x.c FOR EACH ROW INSERT INTO x.died VALUES (OLD.id)",
                 "INSERT INTO x.p VALUES " + ", ".join(f"({at}, 0, {at})" for at in range(8)))
        committed = [[] for _ in range(6)]

        def work(session, rng, at):
            session.run("SET TRANSACTION ISOLATION LEVEL " + rng.choice(["READ COMMITTED"] * 3 + ["REPEATABLE READ"]), "BEGIN")
            born, marks = [], []
            for _ in range(rng.randrange(1, 7)):
                parent = rng.randrange(8)
                kind = rng.randrange(9)
                try:
                    if kind < 3:
                        up = rng.choice(["NULL", f"(SELECT id FROM (SELECT MAX(id) AS id FROM x.c WHERE pid = {parent}) m)"])
                        session(f"INSERT INTO x.c (pid, up, u) VALUES ({parent}, {up}, {rng.choice(['NULL', rng.randrange(30)])})")
                        born.append(session.value("SELECT LAST_INSERT_ID()"))
                    elif kind == 3:
                        session(f"DELETE FROM x.p WHERE id = {parent}")
                        session(f"INSERT INTO x.p VALUES ({parent}, 0, {parent})")
                    elif kind == 4:
                        session(f"UPDATE x.p SET id = id + {rng.choice([0, 8])}, u = {rng.randrange(12)} WHERE id = {parent}")
                        session(f"UPDATE x.p SET id = {parent} WHERE id = {parent} + 8")
                    elif kind == 5:
                        session(f"DELETE FROM x.c WHERE pid = {parent} ORDER BY id LIMIT 2")
                    elif kind == 6:
                        session(f"UPDATE x.c SET u = {rng.randrange(30)} WHERE pid = {parent} LIMIT 1")
                    elif kind == 7:
                        marks.append(len(born))
                        session(f"SAVEPOINT s{len(marks)}")
                    elif marks:
                        session(f"ROLLBACK TO s{len(marks)}")
                        del born[marks.pop():]
                except pymysql.MySQLError as error:
                    # The statement is undone; 1213 undoes all of it.
                    if error.args[0] not in REFUSED - {1213, 1205}:
                        raise
            if rng.random() < 0.8:
                session("COMMIT")
                committed[at].extend(born)
            else:
                session("ROLLBACK")

        workers = Workers(server, rng, len(committed), work)
        time.sleep(seconds)
        turns = workers.end()
        if engine == "LSM":
            root = restarted(server)
        whole(root, "x.p", "x.c", "x.born", "x.died")
        ids = lambda table: {row[0] for row in root(f"SELECT id FROM x.{table}")}  # noqa: E731
        there, was_born, died = ids("c"), ids("born"), ids("died")
        wanted = {number for numbers in committed for number in numbers}
        expect(wanted == was_born, f"{engine}: born and not committed {sorted(was_born - wanted)[:9]}, committed and not born {sorted(wanted - was_born)[:9]}")
        expect(there <= was_born and not there & died, f"{engine}: never born {there - was_born}, died and there {there & died}")
        for index in ("PRIMARY", "pid", "u"):
            found = root(f"SELECT COUNT(*) FROM x.c FORCE INDEX ({index}) WHERE {'u' if index == 'u' else 'id'} IS NOT NULL")
            alone = root(f"SELECT COUNT({'u' if index == 'u' else 'id'}) FROM x.c IGNORE INDEX (pid, u)")
            expect(found == alone, f"{engine}, index {index}: {found}, {alone}")
        orphans = root("SELECT COUNT(*) FROM x.c LEFT JOIN x.p ON p.id = c.pid LEFT JOIN x.c u ON u.id = c.up WHERE (c.pid IS NOT NULL AND p.id IS NULL)"
                       " OR (c.up IS NOT NULL AND u.id IS NULL)")
        expect(orphans == ((0,),), f"{engine}: {orphans[0][0]} orphans")
        root.run("DROP TABLE x.c, x.p, x.born, x.died")
    return f"{turns} transactions"


def jobs_of_two_engines(server, rng, seconds):
    """Each job of two queues is taken once, whoever skips what others have locked, and its unique token is nobody else's."""
    root = Session(server)
    for engine in ENGINES:
        root.run(f"CREATE TABLE x.q{engine} (id INT PRIMARY KEY, state INT, token INT UNIQUE, KEY (state, id)) ENGINE={engine}",
                 f"INSERT INTO x.q{engine} VALUES " + ", ".join(f"({at}, 0, {at})" for at in range(3000)),
                 f"CREATE TABLE x.done{engine} (id INT PRIMARY KEY, token INT UNIQUE) ENGINE={engine}")
    done = [[] for _ in range(6)]

    def work(session, rng, at):
        session.run("SET TRANSACTION ISOLATION LEVEL " + rng.choice(["READ COMMITTED", "REPEATABLE READ"]), "BEGIN")
        taken = []
        for engine in rng.sample(ENGINES, 2):
            by = rng.choice(["id", "token", "token DESC"])
            found = session(f"SELECT id, token FROM x.q{engine} WHERE state = 0 ORDER BY {by} LIMIT {rng.choice([1, 1, 2])} FOR UPDATE SKIP LOCKED")
            for number, _ in found:
                token = rng.randrange(100_000, 130_000)
                session.run(f"UPDATE x.q{engine} SET state = 1, token = {token} WHERE id = {number}",
                            f"INSERT INTO x.done{engine} VALUES ({number}, {token})")
                taken.append((engine, number, token))
        if rng.random() < 0.8:
            session("COMMIT")
            done[at].extend(taken)
        else:
            session("ROLLBACK")

    workers = Workers(server, rng, len(done), work)
    time.sleep(seconds)
    turns = workers.end()
    root = restarted(server)
    for engine in ENGINES:
        told = sorted((number, token) for ours in done for of, number, token in ours if of == engine)
        expect(len({number for number, _ in told}) == len(told), f"{engine}: a job was done twice")
        for table, where in ((f"x.done{engine}", ""), (f"x.q{engine}", " WHERE state = 1")):
            for index in ("PRIMARY", "token"):
                found = sorted(root(f"SELECT id, token FROM {table} FORCE INDEX ({index}){where}"))
                expect(found == told, f"{engine}, {table} by {index}: {len(found)} are there, {len(told)} were told")
        whole(root, f"x.done{engine}", f"x.q{engine}")
    return f"{turns} transactions, {sum(map(len, done))} jobs"


ALTERS = ["ADD COLUMN e{n} INT DEFAULT {n}", "ADD COLUMN e{n} VARCHAR(20) NOT NULL DEFAULT 'x' FIRST", "ADD INDEX i{n} (v)", "ADD UNIQUE INDEX i{n} (u, v)",
          "MODIFY v BIGINT NOT NULL", "MODIFY v INT NOT NULL", "DROP INDEX {index}", "DROP COLUMN {column}", "ENGINE = {engine}", "ADD INDEX i{n} ((v + u))",
          "DROP PRIMARY KEY, ADD PRIMARY KEY (id, u)", "DROP PRIMARY KEY, ADD PRIMARY KEY (id)", "FORCE", "COMMENT = 'c{n}'", "RENAME COLUMN v TO w", "RENAME COLUMN w TO v"]


def definitions_and_kills(server, rng, seconds):
    """A kill finds transactions open, a prepared branch and a definition under way: the definition is there or not, every acknowledged row is, no
    other, and the branch keeps definitions from its table until it ends."""
    until, turns, made = time.monotonic() + 2 * seconds, 0, 0
    while time.monotonic() < until or turns < 6:
        turns += 1
        root, engine = Session(server), rng.choice(ENGINES)
        root.run(f"CREATE TABLE x.t (id INT PRIMARY KEY, u INT, v INT NOT NULL, KEY iu (u)) ENGINE={engine}",
                 "INSERT INTO x.t VALUES " + ", ".join(f"({at}, {at}, 1)" for at in range(-500, 0)))
        told, maybe = [{} for _ in range(3)], [None] * 3
        branch = rng.random() < 0.4
        if branch:
            holder = Session(server)
            holder.run("XA START 'h'", "UPDATE x.t SET v = 77 WHERE id = -500", "INSERT INTO x.t VALUES (-1000, 5, 77)", "XA END 'h'", "XA PREPARE 'h'")

        def work(session, rng, at, told=told, maybe=maybe):
            first = (len(told[at]) + 1) * 10 + at
            session("BEGIN")
            name = "w" if session("SHOW COLUMNS FROM x.t LIKE 'w'") else "v"
            try:
                session(f"INSERT INTO x.t (id, u, {name}) VALUES ({first}, {first}, {at})")
            except pymysql.MySQLError as error:
                if error.args[0] not in {1054, 1364, 1062}:
                    raise
                session("ROLLBACK")
                return
            maybe[at] = first
            session("COMMIT")
            told[at][first] = at

        workers = Workers(server, rng, 3, work)
        changer = Session(server)
        changer("SET lock_wait_timeout = 1, foreign_key_checks = 0")
        acknowledged = []

        def change(changer=changer, acknowledged=acknowledged, rng=random.Random(rng.random())):
            for n in range(1000):
                indexes = [row[2] for row in changer("SHOW INDEX FROM x.t") if row[2] != "PRIMARY"] or ["iu"]
                columns = [row[0] for row in changer("SHOW COLUMNS FROM x.t") if row[0].startswith("e")] or ["e"]
                how = rng.choice(["", "", ", ALGORITHM=COPY", ", ALGORITHM=INPLACE"])
                text = rng.choice(ALTERS).format(n=n, index=rng.choice(indexes), column=rng.choice(columns), engine=rng.choice(ENGINES))
                try:
                    changer(f"ALTER TABLE x.t {text}{how}")
                    acknowledged.append(text)
                except pymysql.MySQLError as error:
                    if error.args[0] in GONE:
                        return

        thread = threading.Thread(target=lambda: error_code(change, but=GONE), daemon=True)
        thread.start()
        time.sleep(rng.uniform(0.1, 0.8))
        shown = None
        server.kill()
        workers.end()
        thread.join()
        made += len(acknowledged)
        expect(not (branch and acknowledged), f"turn {turns}: {acknowledged} beside a prepared branch")
        server.start()
        session = Session(server)
        session("SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
        whole(session, "x.t")
        name = "w" if session("SHOW COLUMNS FROM x.t LIKE 'w'") else "v"
        found = dict(session(f"SELECT id, {name} FROM x.t WHERE id > 0"))
        wanted = {number: at for one in told for number, at in one.items()}
        lost, extra = wanted.keys() - found.keys(), found.keys() - wanted.keys() - set(maybe)
        expect(not lost and not extra, f"turn {turns}: lost {sorted(lost)[:9]}, never told {sorted(extra)[:9]}, after {acknowledged[-3:]}")
        for index in {row[2] for row in session("SHOW INDEX FROM x.t")}:
            count = session.value(f"SELECT COUNT(*) FROM x.t FORCE INDEX (`{index}`) WHERE u >= -10000")
            expect(count == session.value("SELECT COUNT(*) FROM x.t"), f"turn {turns}: index {index} has {count}, after {acknowledged[-3:]}")
        if branch:
            for text in ("ALTER TABLE x.t ADD COLUMN late INT", "TRUNCATE TABLE x.t", "DROP TABLE x.t", "ALTER TABLE x.t RENAME TO x.t2", "CREATE INDEX late ON x.t (v)"):
                session.fails(text, 1205)
            end = rng.choice(["COMMIT", "ROLLBACK"])
            session(f"XA {end} 'h'")
            shown = session("SELECT id, v FROM x.t WHERE id IN (-500, -1000) ORDER BY id")
            expect(shown == (((-1000, 77), (-500, 77)) if end == "COMMIT" else ((-500, 1),)), f"turn {turns}: {end} of the branch: {shown}")
            session("ALTER TABLE x.t ADD COLUMN late INT")
            whole(session, "x.t")
        session("DROP TABLE x.t")
    return f"{turns} kills, {made} definitions"


def emptied_tables(server, rng, seconds):
    """TRUNCATE beside keys, open transactions and snapshots: no reader sees half of it, no row is there that refers to nothing."""
    root = Session(server)
    for engine in ENGINES:
        root.run(f"CREATE TABLE x.p (id INT PRIMARY KEY) ENGINE={engine}",
                 f"CREATE TABLE x.c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, FOREIGN KEY (pid) REFERENCES x.p (id)) ENGINE={engine}",
                 f"CREATE TABLE x.other (id INT PRIMARY KEY) ENGINE={engine}", "INSERT INTO x.p VALUES (1), (2), (3)", "INSERT INTO x.other VALUES (1)")
        root.fails("TRUNCATE TABLE x.p", 1701)
        reader = Session(server)
        root("INSERT INTO x.c (pid) VALUES (1), (2)")
        reader.run("BEGIN", "SELECT * FROM x.other")
        root("TRUNCATE TABLE x.c")
        expect(error_code(lambda: reader("SELECT * FROM x.c")) == 1412, "a snapshot from before a TRUNCATE reads the table")  # noqa: B023
        reader.run("ROLLBACK", "BEGIN", "SELECT * FROM x.c")
        root("SET lock_wait_timeout = 1")
        root.fails("TRUNCATE TABLE x.c", 1205)
        reader("ROLLBACK")

        def work(session, rng, at):
            kind = rng.randrange(10)
            if at == 0 and kind < 4:
                session("TRUNCATE TABLE x.c")
            elif at == 1 and kind < 3:
                session("DELETE FROM x.p WHERE id = 3")
                session("INSERT INTO x.p VALUES (3)")
            elif kind < 8:
                session.run("BEGIN", f"INSERT INTO x.c (pid) VALUES ({rng.randrange(1, 4)})", f"INSERT INTO x.c (pid) VALUES ({rng.randrange(1, 4)})",
                            rng.choice(["COMMIT", "COMMIT", "ROLLBACK"]))
            else:
                session.run("BEGIN", "SELECT * FROM x.other")
                first = session("SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM x.c")
                again = session("SELECT COUNT(*), COUNT(DISTINCT id), MAX(id) FROM x.c")
                expect(first == again and first[0][0] % 2 == 0, f"a snapshot reads {first}, then {again}")
                session("COMMIT")

        workers = Workers(server, rng, 5, work)
        time.sleep(seconds / 2)
        turns = workers.end()
        root = restarted(server)
        whole(root, "x.p", "x.c")
        expect(root("SELECT COUNT(*) FROM x.c LEFT JOIN x.p ON p.id = pid WHERE p.id IS NULL") == ((0,),), "a child without its parent")
        root("DROP TABLE x.c, x.p, x.other")
    return f"{turns} transactions"


def numbers_and_kills(server, rng, seconds):
    """AUTO_INCREMENT gives no number again that a client was told is in the table, or was in it, whatever was rolled back, deleted or killed."""
    root, told = Session(server), {engine: set() for engine in ENGINES}
    for engine in ENGINES:
        root(f"CREATE TABLE x.a{engine} (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE={engine}")
    until, turns = time.monotonic() + seconds, 0
    lock = threading.Lock()
    while time.monotonic() < until or turns < 3:
        turns += 1

        def work(session, rng, at):
            engine = rng.choice(ENGINES)
            session("BEGIN")
            count = rng.choice([1, 1, 3])
            session(f"INSERT INTO x.a{engine} (v) VALUES " + ", ".join(["(1)"] * count))
            first = session.value("SELECT LAST_INSERT_ID()")
            numbers = set(range(first, first + count))
            if rng.random() < 0.3:
                session("ROLLBACK")
                return
            if rng.random() < 0.3:
                session(f"DELETE FROM x.a{engine} WHERE id = (SELECT id FROM (SELECT MAX(id) AS id FROM x.a{engine}) m)")
            session("COMMIT")
            with lock:
                expect(not numbers & told[engine], f"{engine}: {sorted(numbers & told[engine])} were given twice")
                told[engine] |= numbers

        workers = Workers(server, rng, 4, work)
        time.sleep(rng.uniform(0.2, 0.6))
        if rng.random() < 0.7:
            server.kill()
            workers.end()
        else:
            workers.end()
            server.stop()
        server.start()
    return f"{turns} restarts, {sum(map(len, told.values()))} numbers"


PARTS = (branches_and_temporary_tables, savepoints_cascades_triggers, jobs_of_two_engines, definitions_and_kills, emptied_tables, numbers_and_kills)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--seconds", type=float, default=5)
    seeds.add_to(parser)
    options = parser.parse_args()
    for part in PARTS:
        if options.parts and part.__name__ not in options.parts:
            continue
        with Scratch("omnibus-crossings-") as directory:
            server = Omnibus(directory, "--lsm-memtable-size=1M")
            server.start()
            Session(server)("CREATE DATABASE x")
            said = part(server, random.Random(options.seed), options.seconds)
            server.stop()
        print(f"{part.__name__} ok: {said}", flush=True)


if __name__ == "__main__":
    main()
