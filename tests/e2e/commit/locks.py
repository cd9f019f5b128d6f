#!/usr/bin/python3
"""Row locks as a client sees them: waits, timeouts, deadlocks, ranges, KILL, and who is waiting.

Ring: gate.
"""

import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import PATIENCE_S, Omnibus, Scratch, connect, error_code, expect, wait_for  # noqa: E402


def run(db, sql):
    with db.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


class Later(threading.Thread):
    """A statement in the background."""

    def __init__(self, db, sql):
        super().__init__()
        self.db, self.sql, self.rows, self.code = db, sql, None, None
        self.start()

    def run(self):
        def go():
            self.rows = run(self.db, self.sql)
        self.code = error_code(go)

    def done(self):
        self.join(PATIENCE_S)
        expect(not self.is_alive(), f"still waiting: {self.sql}")
        return self.code


class Sessions:
    def __init__(self, server):
        self.server = server
        self.admin = connect(server, autocommit=True)

    def open(self, isolation="REPEATABLE READ"):
        db = connect(self.server, database="l", autocommit=False)
        run(db, f"SET SESSION TRANSACTION ISOLATION LEVEL {isolation}")
        return db

    def waiting(self, db):
        """Whether the processlist shows this session's statement waiting for a lock."""
        rows = run(self.admin, "SHOW FULL PROCESSLIST")
        return any(row[0] == db.thread_id() and "lock" in str(row[6]).lower() for row in rows)

    def reset(self):
        run(self.admin, "DROP TABLE IF EXISTS l.t")
        run(self.admin, "CREATE TABLE l.t (id INT PRIMARY KEY, k INT, u INT UNIQUE, KEY (k))")
        run(self.admin, "INSERT INTO l.t VALUES (10,1,10),(20,2,20),(30,3,30),(40,4,40)")


def blocked_then_sees_the_new_value(s):
    a, b = s.open(), s.open()
    run(b, "SELECT * FROM t")  # b's snapshot is older than a's update
    run(a, "UPDATE t SET k = k + 10 WHERE id = 10")
    later = Later(b, "UPDATE t SET k = k + 100 WHERE id = 10")
    wait_for(lambda: s.waiting(b), "the second update waits")
    run(a, "COMMIT")
    expect(later.done() == 0, "the second update goes on")
    got = run(b, "SELECT k FROM t WHERE id = 10")
    expect(got == ((111,),), f"it updated the latest version: {got}")
    run(b, "COMMIT")


def snapshot_is_stable(s):
    a, b = s.open(), s.open()
    before = run(a, "SELECT COUNT(*), SUM(k) FROM t")
    run(b, "INSERT INTO t VALUES (50, 5, 50)")
    run(b, "COMMIT")
    expect(run(a, "SELECT COUNT(*), SUM(k) FROM t") == before, "REPEATABLE READ repeats")
    expect(run(a, "SELECT COUNT(*) FROM t FOR UPDATE") == ((5,),), "a locking read sees the latest")
    run(a, "COMMIT")
    c = s.open("READ COMMITTED")
    first = run(c, "SELECT COUNT(*) FROM t")
    run(b, "INSERT INTO t VALUES (60, 6, 60)")
    run(b, "COMMIT")
    expect(run(c, "SELECT COUNT(*) FROM t")[0][0] == first[0][0] + 1, "READ COMMITTED sees commits")


def times_out(s):
    a, b = s.open(), s.open()
    run(a, "UPDATE t SET k = 0 WHERE id = 10")
    run(b, "SET innodb_lock_wait_timeout = 1")
    run(b, "UPDATE t SET k = 7 WHERE id = 40")
    expect(error_code(lambda: run(b, "UPDATE t SET k = 1 WHERE id = 10")) == 1205, "1205 after a second")
    expect(run(b, "SELECT k FROM t WHERE id = 40") == ((7,),), "only the statement is rolled back")
    run(a, "ROLLBACK")
    run(b, "ROLLBACK")


def deadlock_has_a_victim_at_once(s):
    a, b = s.open(), s.open()
    run(a, "UPDATE t SET k = 0 WHERE id = 10")
    run(b, "UPDATE t SET k = 0 WHERE id = 20")
    later = Later(a, "UPDATE t SET k = 0 WHERE id = 20")
    wait_for(lambda: s.waiting(a), "a waits")
    started = time.monotonic()
    code = error_code(lambda: run(b, "UPDATE t SET k = 0 WHERE id = 10"))
    if code == 0:
        expect(later.done() == 1213, "one of the two is the victim")
    else:
        expect(code == 1213 and later.done() == 0, f"1213 for one, success for the other: {code} {later.code}")
    expect(time.monotonic() - started < 45, "found at once, not by a timeout of 50 seconds")
    run(a, "ROLLBACK")
    run(b, "ROLLBACK")


def the_victim_of_a_deadlock_has_changed_least(s):
    a, b = s.open(), s.open()
    run(a, "UPDATE t SET k = k + 1 WHERE id IN (10, 30, 40)")
    run(b, "UPDATE t SET k = k + 1 WHERE id = 20")
    later = Later(b, "UPDATE t SET k = k + 1 WHERE id = 10")
    wait_for(lambda: s.waiting(b), "b waits")
    expect(error_code(lambda: run(a, "UPDATE t SET k = k + 1 WHERE id = 20")) == 0, "three rows outweigh one, though theirs asked last")
    expect(later.done() == 1213, f"who waited is the victim: {later.code}")
    run(a, "ROLLBACK")
    run(b, "ROLLBACK")


def range_locks_keep_phantoms_out(s):
    a, b = s.open(), s.open()
    run(a, "SELECT * FROM t WHERE id BETWEEN 15 AND 35 FOR UPDATE")
    later = Later(b, "INSERT INTO t VALUES (25, 9, 25)")
    wait_for(lambda: s.waiting(b), "the insert into the range waits")
    run(a, "ROLLBACK")
    expect(later.done() == 0, "and goes on")
    run(b, "ROLLBACK")
    run(a, "SELECT * FROM t WHERE k >= 3 FOR UPDATE")
    later = Later(b, "INSERT INTO t VALUES (26, 9, 26)")
    wait_for(lambda: s.waiting(b), "also through a secondary index")
    run(a, "ROLLBACK")
    expect(later.done() == 0, "and goes on")
    run(b, "ROLLBACK")
    c, d = s.open("READ COMMITTED"), s.open("READ COMMITTED")
    run(c, "SELECT * FROM t WHERE id BETWEEN 15 AND 35 FOR UPDATE")
    run(d, "INSERT INTO t VALUES (27, 9, 27)")
    run(d, "ROLLBACK")
    run(c, "ROLLBACK")


def unique_keys_wait_for_the_other_insert(s):
    a, b = s.open(), s.open()
    run(a, "INSERT INTO t VALUES (70, 1, 77)")
    later = Later(b, "INSERT INTO t VALUES (71, 1, 77)")
    wait_for(lambda: s.waiting(b), "the duplicate waits for the first")
    run(a, "COMMIT")
    expect(later.done() == 1062, "and is a duplicate when it commits")
    run(b, "ROLLBACK")
    run(a, "INSERT INTO t VALUES (72, 1, 78)")
    later = Later(b, "INSERT INTO t VALUES (73, 1, 78)")
    wait_for(lambda: s.waiting(b), "the duplicate waits again")
    run(a, "ROLLBACK")
    expect(later.done() == 0, "and goes in when the first rolls back")
    run(b, "ROLLBACK")


def kill_ends_a_wait(s):
    a, b = s.open(), s.open()
    run(a, "UPDATE t SET k = 0 WHERE id = 10")
    later = Later(b, "UPDATE t SET k = 1 WHERE id = 10")
    wait_for(lambda: s.waiting(b), "b waits")
    run(s.admin, f"KILL QUERY {b.thread_id()}")
    expect(later.done() == 1317, f"KILL QUERY interrupts the wait: {later.code}")
    expect(run(b, "SELECT 1") == ((1,),), "the connection lives")
    later = Later(b, "UPDATE t SET k = 1 WHERE id = 10")
    wait_for(lambda: s.waiting(b), "b waits again")
    run(s.admin, f"KILL {b.thread_id()}")
    expect(later.done() in (1317, 2013, 2006), f"KILL ends the connection: {later.code}")
    run(a, "ROLLBACK")
    run(s.admin, "UPDATE l.t SET k = 1 WHERE id = 10")


def ddl_waits_for_open_transactions(s):
    a, b = s.open(), s.open()
    run(a, "SELECT * FROM t WHERE id = 10")
    later = Later(b, "DROP TABLE t")
    wait_for(lambda: s.waiting(b), "DROP TABLE waits for the reader's metadata lock")
    run(a, "COMMIT")
    expect(later.done() == 0, "and goes on")


def each_kind_has_its_timeout(s):
    """innodb_lock_wait_timeout is for rows, lock_wait_timeout for definitions; NOWAIT and SKIP LOCKED are for rows alone."""
    a, b, c = s.open(), s.open(), s.open()
    run(a, "SELECT * FROM t WHERE id = 10 FOR UPDATE")
    alter = Later(b, "ALTER TABLE t ADD COLUMN x INT")
    wait_for(lambda: s.waiting(b), "ALTER TABLE waits for the reader")
    run(c, "SET innodb_lock_wait_timeout = 1")
    for sql in ("SELECT * FROM t", "SELECT * FROM t WHERE id = 20 FOR UPDATE NOWAIT", "SELECT * FROM t FOR UPDATE SKIP LOCKED",
                "INSERT INTO t (id) VALUES (50)"):
        run(c, "SET lock_wait_timeout = 1")
        started = time.monotonic()
        expect(error_code(lambda: run(c, sql)) == 1205, f"{sql} behind ALTER TABLE ends by lock_wait_timeout")  # noqa: B023
        expect(time.monotonic() - started > 0.9, f"{sql} has waited for a second")
    run(c, "SET lock_wait_timeout = DEFAULT")
    later = Later(c, "SELECT COUNT(*) FROM t")
    wait_for(lambda: s.waiting(c), "SELECT waits behind ALTER TABLE")
    time.sleep(2.5)
    expect(later.is_alive(), f"innodb_lock_wait_timeout is not for definitions: {later.code}")
    run(a, "COMMIT")
    expect((alter.done(), later.done()) == (0, 0), f"both go on: {alter.code} {later.code}")
    run(c, "COMMIT")
    run(a, "SELECT * FROM t WHERE id = 10 FOR UPDATE")
    run(c, "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 3")
    expect(error_code(lambda: run(c, "SELECT * FROM t WHERE id = 10 FOR UPDATE NOWAIT")) == 3572, "NOWAIT")
    expect(len(run(c, "SELECT * FROM t FOR UPDATE SKIP LOCKED")) == 3, "SKIP LOCKED")
    started = time.monotonic()
    expect(error_code(lambda: run(c, "UPDATE t SET k = 1 WHERE id = 10")) == 1205, "a row")
    expect(time.monotonic() - started > 2.5, "by its own timeout")
    run(a, "ROLLBACK")
    run(c, "ROLLBACK")


def hot_row_keeps_every_update(s):
    def work():
        db = s.open()
        for _ in range(50):
            while error_code(lambda: (run(db, "UPDATE t SET k = k + 1 WHERE id = 30"), run(db, "COMMIT")), but=(1213, 1205)):
                run(db, "ROLLBACK")
    before = run(s.admin, "SELECT k FROM l.t WHERE id = 30")[0][0]
    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        expect(not thread.is_alive(), "an update does not end")
    after = run(s.admin, "SELECT k FROM l.t WHERE id = 30")[0][0]
    expect(after == before + 16 * 50, f"lost updates: {before} + 800 became {after}")


def flush_with_read_lock_stops_writers(s):
    """Open writers end, new ones wait, and the log stands still until UNLOCK TABLES; as backup tools rely on it."""
    writer, locker = s.open(), s.open()
    run(writer, "UPDATE t SET k = 5 WHERE id = 10")
    lock = Later(locker, "FLUSH TABLES WITH READ LOCK")
    new = s.open()
    # The gate is closed when new writers wait; until then a statement finds no row and is over.
    def stopped():
        attempt = connect(s.server, database="l", autocommit=True)
        run(attempt, "SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
        code = error_code(lambda: run(attempt, "UPDATE t SET k = k WHERE id = 987654"))
        attempt.close()
        return code == 1205
    wait_for(stopped, "new writers are stopped")
    expect(lock.is_alive(), "it waits for the open writer")
    run(writer, "UPDATE t SET k = 6 WHERE id = 30")
    run(writer, "COMMIT")
    expect(lock.done() == 0, f"granted: {lock.code}")
    position = run(locker, "SHOW BINARY LOG STATUS")[0][:2]
    waiting = Later(new, "INSERT INTO t (id, k) VALUES (700, 1)")
    wait_for(lambda: s.waiting(new), "a new writer waits")
    definition = s.open()
    ddl = Later(definition, "CREATE TABLE l.during (id INT)")
    wait_for(lambda: s.waiting(definition), "a definition waits")
    run(locker, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    expect(run(locker, "SELECT k FROM t WHERE id IN (10, 30) ORDER BY id") == ((5,), (6,)), "what was committed is there")
    run(locker, "COMMIT")
    for sql in ["DELETE FROM t", "CREATE TABLE l.own (id INT)", "DROP TABLE t"]:
        code = error_code(lambda: run(locker, sql))
        expect(code == 1223, f"{sql}: {code}")
    expect(waiting.is_alive() and ddl.is_alive(), "still locked after the transaction")
    expect(run(locker, "SHOW BINARY LOG STATUS")[0][:2] == position, "the log stood still")
    run(locker, "UNLOCK TABLES")
    expect((waiting.done(), ddl.done()) == (0, 0), f"go on: {waiting.code} {ddl.code}")
    run(new, "COMMIT")
    run(s.admin, "DROP TABLE l.during")
    # A session that ends gives the lock back, and one that is killed while it waits never had it.
    run(locker, "FLUSH TABLES WITH READ LOCK")
    locker.close()
    run(s.admin, "UPDATE l.t SET k = 7 WHERE id = 10")
    run(writer, "UPDATE t SET k = 8 WHERE id = 10")
    other = s.open()
    lock = Later(other, "FLUSH TABLES WITH READ LOCK")
    wait_for(stopped, "new writers are stopped again")
    run(s.admin, f"KILL QUERY {other.thread_id()}")
    expect(lock.done() == 1317, f"killed: {lock.code}")
    run(s.admin, "UPDATE l.t SET k = 9 WHERE id = 30")
    run(writer, "ROLLBACK")


def backups_stop_definitions(s):
    """LOCK INSTANCE FOR BACKUP: several at once; definitions, accounts and PURGE of others wait for all of them, rows do not."""
    one, two, other = s.open(), s.open(), s.open()
    run(one, "LOCK INSTANCE FOR BACKUP")
    run(one, "LOCK INSTANCE FOR BACKUP")
    waiting = [Later(other, "CREATE TABLE l.later (a INT)"), Later(s.open(), "CREATE USER later"),
               Later(s.open(), "PURGE BINARY LOGS BEFORE '2000-01-01'")]
    wait_for(lambda: sum("later" in str(row[7]) for row in run(s.admin, "SHOW FULL PROCESSLIST")) == 2, "they wait")
    run(two, "LOCK INSTANCE FOR BACKUP")
    run(two, "INSERT INTO l.t VALUES (70, 1, 70)")
    run(two, "COMMIT")
    run(two, "CREATE TEMPORARY TABLE l.mine (a INT)")
    hurried = s.open()
    run(hurried, "SET lock_wait_timeout = 1")
    expect(error_code(lambda: run(hurried, "DROP TABLE l.t")) == 1205, "lock_wait_timeout")
    run(one, "UNLOCK INSTANCE")
    expect(all(later.is_alive() for later in waiting), "another session still has it")
    # The session's end is an UNLOCK, too.
    two.close()
    for later in waiting:
        expect(later.done() == 0, f"{later.sql}: {later.code}")
    run(one, "LOCK INSTANCE FOR BACKUP")
    run(one, "DROP TABLE l.later")
    run(one, "DROP USER later")
    run(one, "UNLOCK INSTANCE")
    run(s.admin, "CREATE USER weak")
    weak = connect(s.server, user="weak")
    expect(error_code(lambda: run(weak, "LOCK INSTANCE FOR BACKUP")) == 1227, "it needs BACKUP_ADMIN")
    run(s.admin, "DROP USER weak")


def locks_by_name(s):
    a, b = s.open(), s.open()
    one = lambda db, sql: run(db, f"SELECT {sql}")[0][0]  # noqa: E731
    expect(one(a, "GET_LOCK('Job', 0)") == 1 and one(a, "GET_LOCK('jOB', 0)") == 1, "taken twice")
    expect(one(b, "GET_LOCK('job', 0)") == 0, "somebody else has it")
    expect(one(b, "IS_USED_LOCK('job')") == a.thread_id() and one(b, "IS_FREE_LOCK('job')") == 0, "who has it")
    expect(one(b, "RELEASE_LOCK('job')") == 0 and one(b, "RELEASE_LOCK('other')") is None, "not one's own")
    run(a, "ROLLBACK")
    waiting = Later(b, "SELECT GET_LOCK('job', -1)")
    expect(one(a, "RELEASE_LOCK('job')") == 1, "once")
    expect(waiting.is_alive(), "taken twice, given back once")
    expect(one(a, "RELEASE_LOCK('job')") == 1, "twice")
    expect(waiting.done() == 0 and waiting.rows == ((1,),), f"granted: {waiting.rows}")
    # A cycle over two names has a victim at once.
    expect(one(a, "IS_FREE_LOCK(CONCAT('inner', GET_LOCK('outer', 0)))") == 1, "a call inside of a call")
    expect(one(a, "GET_LOCK(CONCAT('inner', RELEASE_LOCK('outer')), IS_FREE_LOCK('outer'))") == 1, "calls inside of one that takes a lock")
    expect(one(a, "RELEASE_LOCK(IF(IS_USED_LOCK('inner1') = CONNECTION_ID(), 'inner1', 'none'))") == 1, "inside of one that gives it back")
    expect(one(a, "GET_LOCK('second', 5)") == 1, "a second lock beside none")
    both = {a: Later(a, "SELECT GET_LOCK('job', -1)"), b: Later(b, "SELECT GET_LOCK('second', -1)")}
    wait_for(lambda: not all(later.is_alive() for later in both.values()), "one victim at once")
    victim = a if not both[a].is_alive() else b
    other = b if victim is a else a
    expect(both[victim].done() == 3058, f"the victim: {both[victim].code}")
    expect(both[other].is_alive(), "the victim keeps what it had")
    expect(one(victim, "RELEASE_ALL_LOCKS()") == 1, "its own lock")
    expect(both[other].done() == 0, f"the other one goes on: {both[other].code}")
    waiting = Later(victim, "SELECT GET_LOCK('job', 1000)")
    def killed():
        run(s.admin, f"KILL QUERY {waiting.db.thread_id()}")
        return not waiting.is_alive()
    wait_for(killed, "KILL QUERY ends the wait")
    expect(waiting.done() == 1317, f"killed: {waiting.code}")
    for bad in ["''", "NULL", "REPEAT('x', 65)"]:
        expect(error_code(lambda: one(a, f"GET_LOCK({bad}, 0)")) == 3057, bad)
    a.close()
    b.close()
    wait_for(lambda: one(s.admin, "IS_FREE_LOCK('job') + IS_FREE_LOCK('second')") == 2, "the end of a session gives them back")


def create_select_waits_for_rows(s):
    """For rows it waits as other statements do, not as definitions wait for tables."""
    a, b = s.open(), s.open()
    run(a, "CREATE TABLE l.source (id INT PRIMARY KEY)")
    run(a, "INSERT INTO l.source VALUES (1)")
    run(a, "COMMIT")
    run(a, "DELETE FROM l.source")
    run(b, "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 30")
    begun = time.monotonic()
    code = error_code(lambda: run(b, "CREATE TABLE l.made SELECT * FROM l.source"))
    expect(code == 1205 and time.monotonic() - begun < 15, f"error {code} after {time.monotonic() - begun:.1f} s")
    run(a, "ROLLBACK")


TESTS = [blocked_then_sees_the_new_value, snapshot_is_stable, times_out, deadlock_has_a_victim_at_once,
         the_victim_of_a_deadlock_has_changed_least,
         each_kind_has_its_timeout, range_locks_keep_phantoms_out, unique_keys_wait_for_the_other_insert, kill_ends_a_wait,
         hot_row_keeps_every_update, ddl_waits_for_open_transactions, flush_with_read_lock_stops_writers,
         backups_stop_definitions, locks_by_name, create_select_waits_for_rows]


def main():
    with Scratch("omnibus-locks-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            sessions = Sessions(server)
            run(sessions.admin, "CREATE DATABASE l")
            for test in TESTS:
                sessions.reset()
                test(sessions)
                print(f"locks: {test.__name__} ok", flush=True)
        finally:
            server.stop()
    print(f"{len(TESTS)} passed, 0 failed")


if __name__ == "__main__":
    main()
