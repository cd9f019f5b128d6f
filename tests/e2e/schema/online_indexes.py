#!/usr/bin/python3
"""Indexes that are built while others write: on both engines, with a server that is killed meanwhile, and with a replica beside it.

CHECK TABLE compares every index with its table in one snapshot, so that it may look while writers write. What a definition lets others do is
seen by the ones that it waits for: a build that waits for a transaction which began after it has let that one in.

Ring: all.
"""

import concurrent.futures
import contextlib
import pathlib
import random
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
from omnibus import Session, connect, error_code, expect, wait_for  # noqa: E402
from peers import OmnibusPeer, create_user, expect_equal, replicate, run_chosen, wait_caught_up  # noqa: E402

ENGINES = ("LSM", "BTREE")
ROWS, WRITERS = 4000, 4
METADATA = "Waiting for table metadata lock"
# What a writer may meet: an id or value that is taken, a parent that is missing, a deadlock, a lock wait timeout.
KNOWN = {1062, 1452, 1451, 1213, 1205}
# What is built, and which indexes that makes. Of tables with a key, and without one.
BUILDS = [
    ("FORCE", ""), ("ENGINE=other, ADD INDEX i (k, u)", "i"), ("MODIFY u BIGINT NOT NULL, ADD UNIQUE j (u)", "j"), ("ADD PRIMARY KEY (u)", "PRIMARY"),
    ("ADD INDEX a (k)", "a"), ("ADD INDEX b (note(7), k DESC)", "b"), ("ADD UNIQUE c (u)", "c"), ("ADD UNIQUE d (u, k), ADD INDEX e (v, note(3))", "d,e"),
    ("ADD COLUMN more INT NOT NULL DEFAULT 4, ADD INDEX f (more, k), ALGORITHM=INPLACE", "f"), ("ADD UNIQUE g (v)", "g"), ("ADD INDEX h (note), LOCK=SHARED", "h"),
]


def numbers(session, table, rows=ROWS, width=60):
    """Rows that no two of have the same u, and few the same v."""
    session("SET cte_max_recursion_depth = 1000000")
    session(f"""INSERT INTO {table} (id, p, k, u, v, note) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})
        SELECT i, i % 20 + 1, i % 97, i, i DIV 2, CONCAT(i * 7919 % 10007, REPEAT('ä', i % {width})) FROM n""")


def fill(server):
    session = Session(server)
    session("CREATE DATABASE test")
    for engine in ENGINES:
        session(f"CREATE TABLE test.parent_{engine} (id INT PRIMARY KEY, w INT) ENGINE={engine}")
        session(f"INSERT INTO test.parent_{engine} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i, i FROM n")
        for name, key in (("t", "id INT PRIMARY KEY"), ("h", "id INT")):
            session(f"""CREATE TABLE test.{name}_{engine} ({key}, p INT, k INT, u BIGINT, v INT, note VARCHAR(100),
                FOREIGN KEY (p) REFERENCES parent_{engine} (id) ON DELETE SET NULL ON UPDATE CASCADE) ENGINE={engine}""")
            numbers(session, f"test.{name}_{engine}")
    session.close()


class Writers:
    """Sessions that write all tables until they are told to stop, or lose their server."""

    def __init__(self, server, seed, dies=False):
        self.server, self.dies, self.stop, self.done, self.wrong = server, dies, threading.Event(), 0, None
        self.threads = [threading.Thread(target=self.run, args=(random.Random(seed * 100 + n), n)) for n in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def statement(self, rng, number):
        engine = rng.choice(ENGINES)
        table, id, k = f"test.{rng.choice('th')}_{engine}", rng.randrange(1, ROWS), rng.randrange(97)
        # No two writers make the same: u stays unique.
        new = (rng.randrange(1 << 40) * WRITERS + number) + ROWS
        small, note = new % 100_000 + ROWS, rng.choice(["", "é", "ö" * 90]) + str(k)
        return rng.choice([
            f"INSERT INTO {table} (id, p, k, u, v, note) VALUES ({small}, {k % 40 + 1}, {k}, {new}, {small}, '{note}')",
            f"INSERT IGNORE INTO {table} (id, k, u, v) VALUES ({id}, NULL, {new}, NULL), ({small}, 1, {new + (1 << 60)}, 4)",
            f"REPLACE INTO {table} (id, p, k, u) VALUES ({id}, NULL, {k}, {new})",
            f"INSERT INTO {table} (id, u) VALUES ({id}, {new}) ON DUPLICATE KEY UPDATE k = k + 1, u = {new}",
            f"UPDATE {table} SET k = k + 1, note = '{note}' WHERE id BETWEEN {id} AND {id + 4}",
            f"UPDATE {table} SET u = {new}, v = NULL WHERE id = {id} LIMIT 1",
            f"UPDATE {table} SET id = {small} WHERE id = {id} LIMIT 1",
            f"DELETE FROM {table} WHERE id BETWEEN {id} AND {id + 1}",
            f"UPDATE test.parent_{engine} SET id = {k + 100} WHERE id = {k % 40 + 1}",
            f"DELETE FROM test.parent_{engine} WHERE id = {k + 100}",
            f"INSERT IGNORE INTO test.parent_{engine} VALUES ({k % 40 + 1}, 1)",
        ])

    def run(self, rng, number):
        try:
            db = connect(self.server)
            while not self.stop.is_set():
                with db.cursor() as cursor:
                    for _ in range(rng.randrange(1, 5)):
                        error_code(lambda: cursor.execute(self.statement(rng, number)), KNOWN)
                        if rng.random() < 0.1:
                            cursor.execute(rng.choice(["SAVEPOINT s", "ROLLBACK"]))
                (db.commit if rng.random() < 0.8 else db.rollback)()
                self.done += 1
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError) as error:
            if not self.dies:
                self.wrong = error

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        expect(self.wrong is None, f"a writer: {self.wrong}")


def check(session, tables=None):
    """Every index is what its table says. The names of all indexes, by table."""
    found = {}
    for table in tables or [f"{name}_{engine}" for name in ("t", "h", "parent") for engine in ENGINES]:
        answer = session(f"CHECK TABLE test.{table}")
        expect([row[2:] for row in answer] == [("status", "OK")], f"CHECK TABLE {table}: {answer}")
        found[table] = sorted({row[2] for row in session(f"SHOW INDEX FROM test.{table}")} - {"p", "PRIMARY" if table[0] != "h" else ""})
    return found


def build(session, rng, kept):
    """One build, and later its end."""
    kind = rng.choice("th")
    table = f"{kind}_{rng.choice(ENGINES)}"
    names = kept.setdefault(table, set())
    clauses, made = rng.choice([build for build in BUILDS if kind == "h" or "PRIMARY" not in build[0]])
    engine = "BTREE" if "InnoDB" in session(f"SHOW CREATE TABLE test.{table}")[0][1].splitlines()[-1] else "InnoDB"
    if names:
        drop = ", ".join(f"DROP INDEX `{name}`" for name in sorted(names))
        more = ", DROP COLUMN more" if "f" in names else ""
        session(f"ALTER TABLE test.{table} {drop}{more}")
        names.clear()
    clauses = clauses.replace("other", engine)
    code = error_code(lambda: session(f"ALTER TABLE test.{table} {clauses}{'' if 'LOCK' in clauses else ', LOCK=NONE'}"), {1062})
    expect(not code or "UNIQUE g" in clauses, f"{clauses}: {code}")
    if not code:
        names.update(filter(None, made.split(",")))
    expect(check(session, [table])[table] == sorted(names), f"{clauses}: {check(session, [table])}, not {names}")


def under_load(directory):
    """Builds one after the other while many write, and what the replica makes of it."""
    source, replica = OmnibusPeer(f"{directory}/s", 1), OmnibusPeer(f"{directory}/r", 2)
    for server in (source, replica):
        server.start()
    create_user(source)
    fill(source)
    replicate(replica, source, gtid=True)
    writers, session, kept, rng = Writers(source, 1), Session(source), {}, random.Random(7)
    for n in range(16):
        before = writers.done
        build(session, rng, kept)
        wait_for(lambda: writers.done > before + 5 or writers.wrong, "writers go on")
    writers.end()
    check(session)
    wait_caught_up(replica, source)
    check(Session(replica))
    expect_equal(source, replica, least_rows=ROWS)
    for server in (replica, source):
        server.stop()


def killed(directory):
    """A server that is killed at any place of a build: afterwards an index is there and right, or was never there."""
    server = OmnibusPeer(f"{directory}/one", 1, "--lsm-memtable-size=1M")
    server.start()
    fill(server)
    rng = random.Random(11)
    for n in range(8):
        writers, session, kept = Writers(server, n + 2, dies=True), Session(server), {}
        for table, names in check(session).items():
            kept[table] = set(names)
        timer = threading.Timer(0.1 + rng.random() * 1.5, server.kill)
        timer.start()
        try:
            while True:
                build(session, rng, kept)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
            expect(error.args[0] in (0, 2006, 2013), f"a build: {error}")
        timer.join()
        writers.end()
        server.start()
        check(Session(server))
    server.stop()


def long_table(server, engine):
    session = Session(server)
    session.run("CREATE DATABASE IF NOT EXISTS test", f"CREATE TABLE test.long_{engine} (id INT PRIMARY KEY, p INT, k INT, u INT, v INT, note VARCHAR(300)) ENGINE={engine}")
    numbers(session, f"test.long_{engine}", 20_000, 200)
    return session, f"test.long_{engine}"


@contextlib.contextmanager
def threads(server):
    """Threads for statements, which a failure does not wait for."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        try:
            yield pool
        except BaseException:
            server.kill()
            raise


class Running:
    """A statement that runs beside the test."""

    def __init__(self, session, sql, pool):
        self.session, self.sql = session, sql
        self.id, self.look = session.value("SELECT CONNECTION_ID()"), Session(session.server)
        self.result = pool.submit(lambda: error_code(lambda: self.session(sql)))

    def state(self):
        return next((row[6] or "" for row in self.look("SHOW PROCESSLIST") if row[0] == self.id), "")

    def waits(self, state=METADATA):
        wait_for(lambda: self.state() == state or self.result.done(), lambda: f"{self.sql}: {self.state()}")
        expect(not self.result.done(), f"{self.sql} did not wait: {self.result.result() if self.result.done() else ''}")
        return self

    def ends(self, code=0):
        got = self.result.result(timeout=120)
        expect(got == code, f"{self.sql}: {got} instead of {code}")


class Beside:
    """Statements beside a definition of one table."""

    def __init__(self, server, engine, pool):
        self.server, self.engine, self.pool, self.table = server, engine, pool, f"test.long_{engine}"
        self.holder, self.other, self.third = self.session(), self.session(), self.session()

    def session(self):
        session = Session(self.server)
        session.server = self.server
        return session

    def let_in(self, definition, *statements, before=None, settings=()):
        """Runs a definition of the table, and a transaction that begins behind it and is let in before it ends: it waits for that.

        All wait for a transaction that has the table; when that ends, the definition is first. `before` waits, too, and before them.
        """
        self.holder.run("BEGIN", f"SELECT 1 FROM {self.table} LIMIT 1")
        session = self.session()
        session.run(*settings)
        running = Running(session, definition, self.pool).waits()
        if before:
            before = Running(self.session(), before, self.pool).waits()
        self.other("BEGIN")
        first = Running(self.other, statements[0], self.pool).waits()
        self.holder("COMMIT")
        first.ends()
        self.other.run(*statements[1:])
        return (running.waits(), before) if before else running.waits()

    def indexes(self):
        return check(self.third, [f"long_{self.engine}"])[f"long_{self.engine}"]


def others_go_on(directory):
    """Who may do what while an index is built, and how a build ends before its time."""
    server = OmnibusPeer(f"{directory}/one", 1)
    server.start()
    with threads(server) as pool:
        for engine in ENGINES:
            long_table(server, engine)
            beside(Beside(server, engine, pool), directory)
    server.stop()


def beside(on, directory):
    table, other, third = on.table, on.other, on.third
    add, drop = f"ALTER TABLE {table} ADD UNIQUE u (u), ADD INDEX k (k), ALGORITHM=INPLACE, LOCK=NONE", f"ALTER TABLE {table} DROP INDEX u, DROP INDEX k"
    running = on.let_in(add, f"INSERT INTO {table} (id, k, u) VALUES (-1, 5, -1)")
    # Who comes now waits behind it, as for any definition, and finds the index.
    late = Running(on.holder, f"INSERT INTO {table} (id, u) VALUES (-2, -1)", on.pool).waits()
    other("COMMIT")
    running.ends()
    late.ends(1062)
    expect(third(f"SELECT id FROM {table} FORCE INDEX (u) WHERE u = -1") == ((-1,),), "the row that was let in")
    expect(on.indexes() == ["k", "u"], on.indexes())
    third(drop)

    # A duplicate that a writer makes meanwhile ends the build; values that change places do not.
    running = on.let_in(add, f"INSERT INTO {table} (id, u) VALUES (-3, 77)")
    other("COMMIT")
    running.ends(1062)
    third(f"DELETE FROM {table} WHERE id = -3")
    running = on.let_in(add, f"UPDATE {table} SET u = IF(u = 5, 6, 5) WHERE u IN (5, 6)")
    other("COMMIT")
    running.ends()
    third(drop)

    # KILL, and a lock wait timeout at the end.
    running = on.let_in(add, f"DELETE FROM {table} WHERE id = 9")
    third(f"KILL QUERY {running.id}")
    running.ends(1317)
    other("COMMIT")
    running = on.let_in(add, f"DELETE FROM {table} WHERE id = 10", settings=["SET lock_wait_timeout = 1"])
    running.ends(1205)
    other("ROLLBACK")
    expect(on.indexes() == [], f"left of builds that failed: {on.indexes()}")

    # Another definition waits for the build, and keeps nobody from writing.
    running, second = on.let_in(add, f"UPDATE {table} SET v = 1 WHERE id = 11", before=f"ALTER TABLE {table} ADD INDEX v (v)")
    other("COMMIT")
    running.ends()
    second.ends()
    expect(on.indexes() == ["k", "u", "v"], on.indexes())
    third(f"{drop}, DROP INDEX v")
    running, second = on.let_in(add, f"UPDATE {table} SET v = 1 WHERE id = 12", before=f"DROP TABLE {table}")
    second.waits()
    third(f"KILL QUERY {second.id}")
    second.ends(1317)
    other("COMMIT")
    running.ends()
    third(drop)

    # An XA branch that is prepared while the index is built and committed later.
    xa = f"'{on.engine}'"
    on.holder.run("BEGIN", f"SELECT 1 FROM {table} LIMIT 1")
    running = Running(on.session(), add, on.pool).waits()
    third(f"XA START {xa}")
    inside = Running(third, f"UPDATE {table} SET k = -7 WHERE id < 50 AND id > 12", on.pool).waits()
    on.holder("COMMIT")
    inside.ends()
    third.run(f"XA END {xa}", f"XA PREPARE {xa}")
    running.waits()
    third(f"XA COMMIT {xa}")
    running.ends()
    expect(on.indexes() == ["k", "u"], on.indexes())
    third(drop)

    # Rows that are written anew beside writers: also where each gets another key, and NULL is refused.
    running = on.let_in(f"ALTER TABLE {table} FORCE, ALGORITHM=INPLACE, LOCK=NONE", f"UPDATE {table} SET k = -8 WHERE id < 30", f"UPDATE {table} SET id = -9 WHERE id = 60")
    other("COMMIT")
    running.ends()
    expect(third(f"SELECT COUNT(*), MIN(id) FROM {table} WHERE k = -8 OR id = -9") == ((third.value(f"SELECT COUNT(*) FROM {table} WHERE id < 30 AND k = -8") + 1, -9),), "what was let in")
    keyless = f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (u), LOCK=NONE"
    running = on.let_in(keyless, f"INSERT INTO {table} (id, u) VALUES (-10, -10)", f"UPDATE {table} SET u = IF(u = 100, 101, 100) WHERE u IN (100, 101)")
    other("COMMIT")
    running.ends()
    expect(third.value(f"SELECT id FROM {table} WHERE u = 101") == 100, "the row that changed its key")
    running = on.let_in(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id), LOCK=NONE", f"INSERT INTO {table} (id, u) VALUES (-10, -11)")
    other("COMMIT")
    running.ends(1062)
    third(f"DELETE FROM {table} WHERE u = -11")
    running = on.let_in(f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (id), MODIFY u INT, LOCK=NONE", f"DELETE FROM {table} WHERE u = -10")
    other("COMMIT")
    running.ends()
    third(f"UPDATE {table} SET p = 0 WHERE p IS NULL")
    running = on.let_in(f"ALTER TABLE {table} MODIFY p INT NOT NULL, LOCK=NONE", f"INSERT INTO {table} (id, p) VALUES (-12, NULL)")
    other("COMMIT")
    running.ends(1138)
    third(f"DELETE FROM {table} WHERE id = -12")
    third.fails(f"ALTER TABLE {table} DROP PRIMARY KEY, LOCK=NONE", 1846)
    expect(on.indexes() == [], on.indexes())

    # Readers go on beside a copy, writers do not.
    running = on.let_in(f"ALTER TABLE {table} MODIFY v BIGINT, LOCK=SHARED", f"SELECT COUNT(*) FROM {table}")
    late = Running(third, f"UPDATE {table} SET v = 2 WHERE id = 13", on.pool).waits()
    other("COMMIT")
    running.ends()
    late.ends()
    third.fails(f"ALTER TABLE {table} MODIFY v INT, LOCK=NONE", 1846)
    # A reader that wants to write waits for the copy, which waits for the reader: the definition goes on.
    running = on.let_in(f"ALTER TABLE {table} MODIFY v INT", f"SELECT COUNT(*) FROM {table}")
    other.fails(f"UPDATE {table} SET v = 3 WHERE id = 13", 1213)
    running.ends()

    # The global read lock does not wait for it; it waits for the lock.
    on.holder.run("BEGIN", f"SELECT 1 FROM {table} LIMIT 1")
    running = Running(on.session(), add, on.pool).waits()
    lock = Running(other, "FLUSH TABLES WITH READ LOCK", on.pool)
    wait_for(lambda: error_code(lambda: third(f"KILL QUERY {third.value('SELECT CONNECTION_ID()')}"), {1317}) == 1317, "KILL")
    on.holder("COMMIT")
    lock.ends()
    running.waits("Waiting for global read lock")
    position = other("SHOW MASTER STATUS")
    expect(on.holder.value(f"SELECT COUNT(*) FROM {table}") > 1000 and other("SHOW MASTER STATUS") == position, "the log moved under the read lock")
    other("UNLOCK TABLES")
    running.ends()
    third(drop)

    # A backup of the middle of it has no index, and no part of one.
    running = on.let_in(add, f"UPDATE {table} SET k = k + 1 WHERE id < 50")
    copy = OmnibusPeer(f"{directory}/{on.engine}", 2)
    third(f"BACKUP TO '{copy.datadir}'")
    other("COMMIT")
    running.ends()
    expect(on.indexes() == ["k", "u"], on.indexes())
    copy.start()
    expect(check(Session(copy), [f"long_{on.engine}"]) == {f"long_{on.engine}": []}, "the backup")
    copy.stop()
    third(drop)
    # Locked by the session itself, the table stays locked.
    third.run(f"LOCK TABLES {table} WRITE", add, "UNLOCK TABLES")
    expect(on.indexes() == ["k", "u"], on.indexes())


def progress(directory):
    """A long build, or copy, says how far it is: looked at again and again until one was met."""
    server = OmnibusPeer(f"{directory}/one", 1)
    server.start()
    session, table = long_table(server, "LSM")
    session.server = server
    session(f"ANALYZE TABLE {table}")
    other = Session(server)
    with threads(server) as pool:
        for clauses, end, state, event in (("ADD INDEX k (k)", "DROP INDEX k", "altering table (", "stage/innodb/alter table"), ("FORCE", "COMMENT 'x'", "copy to tmp table (", "stage/sql/copy to tmp table")):
            states, stages = set(), []
            while not (any(0 < n < 100 for n in states) and any(0 < done <= all for done, all in stages)):
                running = Running(session, f"ALTER TABLE {table} {clauses}", pool)
                while not running.result.done():
                    shown = running.state()
                    if shown.startswith(state):
                        states.add(int(shown.removeprefix(state).removesuffix("%)")))
                    stages += [row[1:] for row in other("SELECT EVENT_NAME, WORK_COMPLETED, WORK_ESTIMATED FROM performance_schema.events_stages_current") if row[0].startswith(event)]
                running.ends()
                session(f"ALTER TABLE {table} {end}")
            expect(max(states) <= 100, f"{clauses}: {states}")
    expect(other("SELECT * FROM performance_schema.events_stages_current WHERE WORK_ESTIMATED > 0") == (), "nothing is left of it")
    server.stop()


if __name__ == "__main__":
    run_chosen("online_indexes", [others_go_on, progress, under_load, killed])
