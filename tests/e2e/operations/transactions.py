#!/usr/bin/python3
"""Open transactions and deadlocks are seen: INNODB_TRX, events_transactions_*, data_locks, INNODB_LOCK_WAITS, SHOW ENGINE INNODB STATUS and sys say of the same sessions
what a real MySQL and a real MariaDB say (recorded), who holds old versions is told, a deadlock is in the status and in the log, who may not see it is refused; prepared branches behind a kill, a replica's appliers,
three hundred sessions at once.

    transactions.py             against what is recorded in testdata/transactions
    transactions.py --update    asks the servers of `scripts/peers` anew (needs root), and writes what they answer

Ring: gate.
"""

import argparse
import pathlib
import re
import sys
import threading
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import real_peers  # noqa: E402
from peers import OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402
from omnibus import ROOT, Omnibus, Scratch, Session, expect, wait_for  # noqa: E402

FOLDER = ROOT / "testdata/transactions"
TRX = """trx_mysql_thread_id, trx_state, trx_query, trx_operation_state, trx_requested_lock_id IS NOT NULL, trx_wait_started IS NOT NULL, trx_tables_in_use,
    trx_tables_locked, trx_lock_structs, trx_rows_locked, trx_rows_modified, trx_weight, trx_isolation_level, trx_unique_checks, trx_foreign_key_checks,
    trx_is_read_only, trx_autocommit_non_locking, ABS(TIMESTAMPDIFF(SECOND, trx_started, NOW())) < 60"""
EVENTS = "STATE, ACCESS_MODE, ISOLATION_LEVEL, AUTOCOMMIT, END_EVENT_ID IS NOT NULL, EVENT_NAME, TIMER_WAIT > 0"


class Watched:
    """Sessions a, b, c, d of a server, one that looks, and what it saw."""

    def __init__(self, server, mysql, peer=False):
        self.server, self.mysql, self.peer, self.lines, self.threads = server, mysql, peer, [], []
        self.look = Session(server)
        self.look.run("DROP DATABASE IF EXISTS see_trx", "CREATE DATABASE see_trx")
        self.look.run("CREATE TABLE see_trx.t (a INT PRIMARY KEY, b INT, KEY (b)) ENGINE=InnoDB", "INSERT INTO see_trx.t VALUES (1,1),(2,2),(3,3)",
                      "CREATE TABLE see_trx.p (a INT PRIMARY KEY) ENGINE=InnoDB", "INSERT INTO see_trx.p VALUES (1),(2),(3),(4)")
        self.sessions = {name: Session(server, database="see_trx") for name in "abcd"}
        self.names = {session.db.thread_id(): name for name, session in self.sessions.items()}

    def __getattr__(self, name):
        return self.__dict__["sessions"][name]

    def background(self, name, sql):
        """A statement that waits, or runs long."""
        def run():
            try:
                self.sessions[name](sql)
            except Exception as error:
                self.lines.append(f"  {name} fails: {error.args[0]}")
        thread = threading.Thread(target=run)
        thread.start()
        self.threads.append(thread)

    def join(self):
        for thread in self.threads:
            thread.join()
        self.threads = []

    def trx(self, title, count=None):
        """INNODB_TRX, by session."""
        def rows():
            return self.look(f"SELECT {TRX} FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id <> CONNECTION_ID()")
        # InnoDB keeps what it told for a tenth of a second after the last question.
        time.sleep(0.15 if self.peer else 0)
        if count is not None:
            wait_for(lambda: len(rows()) == count, lambda: f"{count} transactions: {title}: {rows()}", timeout=10, every=0.2 if self.peer else 0.02)
        self.note(title, rows())

    def note(self, title, rows, connections=1):
        """The first columns are connections."""
        def line(row):
            names = [self.names.get(value, value) for value in row[:connections]]
            return "  " + " | ".join("NULL" if value is None else str(value) for value in [*names, *row[connections:]])
        self.lines.append(f"# {title}")
        self.lines.extend(sorted(map(line, rows)))

    def changed(self, title, rows):
        """Until a's transaction has changed so many rows."""
        asked = f"SELECT trx_rows_modified FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id = {self.sessions['a'].db.thread_id()}"
        wait_for(lambda: self.look.value(asked) == rows, lambda: f"{title}: {self.look.value(asked)} instead of {rows}", timeout=10, every=0.2)

    def waits(self):
        """Until b waits for a row."""
        wait_for(lambda: self.look("SELECT 1 FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'"), "a lock wait", every=0.2 if self.peer else 0.02)

    def events(self, title):
        if self.mysql:
            rows = self.look(f"SELECT t.PROCESSLIST_ID, {EVENTS} FROM performance_schema.events_transactions_current e JOIN performance_schema.threads t USING (THREAD_ID)"
                             f" WHERE t.PROCESSLIST_ID IN ({', '.join(map(str, self.names))})")
            self.note(title, rows)

    def data_locks(self):
        """data_locks, with a next-key lock as the two that it is here: of the row, and of the gaps of the index."""
        found = set()
        for row in self.look(
                "SELECT t.PROCESSLIST_ID, l.ENGINE, l.OBJECT_SCHEMA, l.OBJECT_NAME, l.INDEX_NAME, l.LOCK_TYPE, l.LOCK_MODE, l.LOCK_STATUS, l.LOCK_DATA"
                " FROM performance_schema.data_locks l JOIN performance_schema.threads t USING (THREAD_ID) WHERE l.OBJECT_SCHEMA = 'see_trx'"):
            mode, data = row[6], row[8]
            if row[5] == "RECORD" and mode in ("S", "X"):
                found.add((*row[:6], f"{mode},GAP", row[7], None))
                mode = f"{mode},REC_NOT_GAP"
            if data != "supremum pseudo-record":
                found.add((*row[:6], mode, row[7], data))
        return found

    def locks(self):
        if self.mysql:
            self.note("data_locks", self.data_locks())
            self.note("data_lock_waits", self.look(
                "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, r.trx_requested_lock_id = w.REQUESTING_ENGINE_LOCK_ID, COUNT(l.ENGINE_LOCK_ID)"
                " FROM performance_schema.data_lock_waits w JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID"
                " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID"
                " JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID = w.BLOCKING_ENGINE_LOCK_ID GROUP BY 1, 2, 3"), 2)
            self.note("sys.innodb_lock_waits", self.look(
                "SELECT waiting_pid, blocking_pid, locked_table, locked_index, locked_type, waiting_query, blocking_query, waiting_lock_mode,"
                " IF(blocking_lock_mode IN ('S', 'X'), CONCAT(blocking_lock_mode, ',REC_NOT_GAP'), blocking_lock_mode),"
                " waiting_trx_rows_locked, blocking_trx_rows_modified, wait_age_secs < 60 FROM sys.innodb_lock_waits"), 2)
            self.note("sys.session", self.look(
                "SELECT conn_id, db, command, current_statement, trx_state, trx_autocommit FROM sys.session WHERE conn_id IN"
                f" ({', '.join(map(str, self.names))})"))
            return
        self.note("INNODB_LOCKS", self.look(
            "SELECT t.trx_mysql_thread_id, l.lock_mode, l.lock_type, l.lock_table, l.lock_index, l.lock_data FROM information_schema.INNODB_LOCKS l"
            " JOIN information_schema.INNODB_TRX t ON t.trx_id = l.lock_trx_id"))
        self.note("INNODB_LOCK_WAITS", self.look(
            "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id, r.trx_requested_lock_id = w.requested_lock_id, COUNT(l.lock_id)"
            " FROM information_schema.INNODB_LOCK_WAITS w JOIN information_schema.INNODB_TRX r ON r.trx_id = w.requesting_trx_id"
            " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.blocking_trx_id JOIN information_schema.INNODB_LOCKS l ON l.lock_id = w.blocking_lock_id GROUP BY 1, 2, 3"), 2)

    def status(self, title):
        """The lines of SHOW ENGINE INNODB STATUS that are about transactions, with numbers as N."""
        kind, name, text = self.look("SHOW ENGINE INNODB STATUS")[0]
        kept = [f"Type {kind}, Name '{name}'"]
        date = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d "
        expect(re.search(rf"^{date}\w+ INNODB MONITOR OUTPUT$", text, re.M), f"no time: {text[:200]}")
        expect(re.search(rf"^LATEST DETECTED DEADLOCK\n-+\n{date}\w+$", text, re.M) or "DEADLOCK" not in text, f"no time of the deadlock: {text[:600]}")
        for line in text.splitlines():
            line = re.sub(r"\bMySQL thread id (\d+)|\bMariaDB thread id (\d+)", lambda m: f"thread {self.names.get(int(m[1] or m[2]), '?')}", line)
            if re.match(r"(---TRANSACTION|TRANSACTION) \d+, ACTIVE|LOCK WAIT|\*\*\* |thread [abcd],|update |LATEST|END OF|RECORD LOCKS|------- TRX HAS", line):
                line = re.sub(r"handle \w+", "handle N", line)
                line = re.sub(r"(TRANSACTION|ACTIVE|\(PREPARED\)|WAITING|space id|page no|n bits|trx id|heap size|query id|Type) \d+", r"\1 N", line)
                # How a server names its states is its own, and so is how many bytes a lock takes.
                line = re.sub(r"(thread \w, .* localhost root).*", r"\1", line)
                kept.append(line.rstrip())
        self.lines.append(f"# {title}")
        self.lines.extend("  " + line for line in kept if "not started" not in line)

    def close(self):
        for session in [*self.sessions.values(), self.look]:
            session.close()


def deadlock(w):
    """b and d each have what the other wants."""
    w.b.run("BEGIN", "UPDATE p SET a = 11 WHERE a = 1")
    w.b.run("ROLLBACK")
    w.b.run("BEGIN", "SELECT * FROM p WHERE a = 1 FOR UPDATE")
    w.d.run("BEGIN", "SELECT * FROM p WHERE a = 2 FOR UPDATE")
    w.background("b", "update p set a = a where a = 2")
    w.waits()
    w.background("d", "update p set a = a where a = 1")
    w.join()


def shared(w):
    """a shares the rows of a range, and b wants one of them; c shares a single one, and locks one of another table."""
    w.a.run("BEGIN", "SELECT * FROM p LOCK IN SHARE MODE")
    w.c.run("BEGIN", "SELECT * FROM p WHERE a = 3 LOCK IN SHARE MODE", "SELECT * FROM t", "SELECT * FROM t WHERE a = 1 FOR UPDATE")
    w.background("b", "update p set a = a where a = 2")
    w.waits()
    w.locks()
    w.a.run("ROLLBACK")
    w.join()
    w.c.run("ROLLBACK")


def scenario(server, mysql, peer=False):
    """What is seen of four sessions."""
    w = Watched(server, mysql, peer)
    w.a.run("BEGIN")
    w.trx("BEGIN alone")
    w.events("BEGIN alone, by events")
    w.a.run("SELECT * FROM p WHERE a = 1")
    w.trx("it has read", 1)
    w.a.run("SELECT * FROM p WHERE a = 2 FOR UPDATE")
    w.trx("it has locked a row", 1)
    w.a.run("INSERT INTO p VALUES (20)", "SAVEPOINT s", "INSERT INTO p VALUES (21), (22)")
    w.changed("three rows", 3)
    w.a.run("ROLLBACK TO s")
    w.changed("two of them undone", 1)
    w.a.fails("INSERT INTO p VALUES (23), (24), (1)", 1062)
    w.changed("a statement that failed", 1)
    w.a.run("ROLLBACK")

    w.a.run("BEGIN", "SELECT * FROM p WHERE a = 1 FOR UPDATE")
    w.b.run("SET autocommit = 0", "SET unique_checks = 0, foreign_key_checks = 0, transaction_isolation = 'READ-COMMITTED'" if mysql else
            "SET unique_checks = 0, foreign_key_checks = 0, tx_isolation = 'READ-COMMITTED'")
    w.background("b", "update p set a = a where a = 1")
    w.waits()
    w.background("c", "select sleep(1.5) from p limit 1")
    w.d.run("START TRANSACTION READ ONLY", "SELECT * FROM p")
    w.trx("a locks, b waits, c reads by itself, d is READ ONLY", 4)
    w.events("the same by events")
    w.locks()
    w.a.run("COMMIT")
    w.join()
    w.b.run("ROLLBACK", "SET autocommit = 1", "SET SESSION transaction_isolation = DEFAULT, unique_checks = 1, foreign_key_checks = 1" if mysql else
            "SET SESSION tx_isolation = DEFAULT, unique_checks = 1, foreign_key_checks = 1")
    w.d.run("COMMIT")
    w.trx("all have ended", 0)
    w.events("all have ended, by events")
    if mysql:
        w.note("the last of a and b", [row for name in "ab" for row in w.look(
            f"SELECT t.PROCESSLIST_ID, {EVENTS} FROM performance_schema.events_transactions_history e JOIN performance_schema.threads t USING (THREAD_ID)"
            f" WHERE t.PROCESSLIST_ID = {w.sessions[name].db.thread_id()} ORDER BY e.EVENT_ID DESC LIMIT 1")])
    shared(w)
    deadlock(w)
    if mysql:
        # A MariaDB says of each what it conflicts with, instead of what it holds.
        w.status("after a deadlock")
    w.b.run("ROLLBACK")
    w.d.run("ROLLBACK")
    if mysql:
        # A MariaDB keeps a prepared branch with its session.
        w.c.run("XA START 'see'", "SELECT * FROM p WHERE a = 3 FOR UPDATE", "DELETE FROM p WHERE a = 4", "XA END 'see'", "XA PREPARE 'see'")
        w.trx("prepared", 1)
        w.c.close()
        w.sessions["c"] = Session(server, database="see_trx")
        w.trx("prepared, and its session is gone", 1)
        w.look.run("XA ROLLBACK 'see'")
    w.trx("rolled back", 0)
    lines = list(w.lines)
    return w, lines


def recorded(dialect):
    return (FOLDER / f"{dialect}.txt").read_text().splitlines()


def update():
    for name in ("mysql", "mariadb"):
        w, lines = scenario(types.SimpleNamespace(socket=real_peers.started(name)), name == "mysql", True)
        w.look.run("DROP DATABASE see_trx")
        w.close()
        (FOLDER / f"{name}.txt").write_text("\n".join(lines) + "\n")


def compare(dialect, lines):
    wanted = recorded(dialect)
    wrong = [f"- {want}\n+ {got}" for want, got in zip(wanted, lines) if want != got]
    expect(len(wanted) == len(lines) and not wrong, f"{dialect}: {len(wanted)} lines recorded, {len(lines)} now\n" + "\n".join(wrong) +
           "\n--- all:\n" + "\n".join(lines))


def status_of(session):
    return session("SHOW ENGINE INNODB STATUS")[0][2]


def old_versions(w):
    """One transaction keeps old versions: who, for how long, how many others have committed since."""
    w.a.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    mine = w.a.db.thread_id()
    for n in range(5):
        w.b.run(f"REPLACE INTO t VALUES (1, {n})")
    values = dict(w.look("SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Omnibus_oldest_snapshot%' OR Variable_name = 'Innodb_history_list_length'"))
    expect(values["Omnibus_oldest_snapshot_connection"] == str(mine) and int(values["Innodb_history_list_length"]) >= 5, values)
    rows = w.look("SELECT CONNECTION_ID, USER, SINCE <= NOW(), SECONDS < 60, COMMITS_BEHIND, QUERY, KEPT_BYTES, KEPT_FILES FROM information_schema.OMNIBUS_OLD_VERSIONS")
    expect(rows[0][:4] == (mine, "root", 1, 1) and rows[0][4] >= 5 and rows[0][5] is None, rows)
    # Five rows, in memory.
    expect(50 < rows[0][6] < 100000 and rows[0][7] == 0 and 50 < int(values["Omnibus_oldest_snapshot_bytes"]) < 100000, (rows, values))
    text = status_of(w.look)
    told = re.search(r"Oldest read view: (?:MySQL|MariaDB) thread id (\d+), for (\d+) sec; (\d+) transactions", text)
    expect(told and int(told[1]) == mine and int(told[2]) < 60 and int(told[3]) >= 5, text)
    expect(f"History list length {told[3]}\n" in text, text)
    expect(re.search(r"^Kept for it: about [1-9]\d+ bytes, 0 files$", text, re.M), text)
    w.a.run("COMMIT")
    values = dict(w.look("SHOW GLOBAL STATUS LIKE 'Omnibus_oldest_snapshot%'"))
    expect(values["Omnibus_oldest_snapshot_connection"] == "0", values)
    rows = w.look("SELECT CONNECTION_ID FROM information_schema.OMNIBUS_OLD_VERSIONS")
    expect((mine,) not in rows, rows)


# Lines by which mysqld_exporter, innotop and pt-mysql-summary know the status, in their sections.
KNOWN = {
    "FILE I/O": [r"(\d+) OS file reads, (\d+) OS file writes, (\d+) OS fsyncs", r"\d+\.\d\d reads/s, \d+ avg bytes/read, \d+\.\d\d writes/s, \d+\.\d\d fsyncs/s"],
    "LOG": [r"Log sequence number +(\d+)", r"Log flushed up to +(\d+)", r"Last checkpoint at +\d+"],
    "BUFFER POOL AND MEMORY": [r"Total large memory allocated (\d+)", r"Dictionary memory allocated (\d+)", r"Buffer pool size +(\d+)", r"Modified db pages +(\d+)"],
    "ROW OPERATIONS": [r"\d+ queries inside InnoDB, \d+ queries in queue", r"(\d+) read views open inside InnoDB", r"Process ID=(\d+), Main thread ID=\d+, state: \w+",
                       r"Number of rows inserted (\d+), updated (\d+), deleted \d+, read (\d+)", r"\d+\.\d\d inserts/s, \d+\.\d\d updates/s, \d+\.\d\d deletes/s, \d+\.\d\d reads/s"],
}


def known_lines(w):
    """The sections that tools read are there, with figures that are true."""
    def sections():
        parts = re.split(r"^-+\n([A-Z/ ]+)\n-+\n", status_of(w.look), flags=re.M)
        return dict(zip(parts[1::2], parts[2::2]))
    w.a.run("CREATE TABLE counted (a INT PRIMARY KEY)", "INSERT INTO counted VALUES (1), (2), (3)")
    before = sections()
    w.a.run("INSERT INTO counted VALUES (4), (5)", "UPDATE counted SET a = 9 WHERE a = 5")
    found = sections()
    for section, lines in KNOWN.items():
        for line in lines:
            match = re.search(f"^{line}$", found[section], re.M)
            expect(match and all(int(number) > 0 for number in match.groups() if "views" not in line), f"{section}: {line}: {found[section]}")
    number = [int(re.search(r"rows inserted (\d+), updated", text["ROW OPERATIONS"])[1]) for text in (before, found)]
    expect(number[1] - number[0] == 2, number)
    w.a.run("DROP TABLE counted")


def log_of(server):
    return (server.directory / server.log_name).read_text(errors="replace")


def deadlocks_in_log(w, server):
    """Off, a deadlock is in the status alone; on, in the log too, and no password with it."""
    expect("deadlock detected" not in log_of(server), "innodb_print_all_deadlocks is off")
    w.look.run("SET GLOBAL innodb_print_all_deadlocks = ON")
    deadlock(w)
    wait_for(lambda: "WE ROLL BACK TRANSACTION" in log_of(server), "the deadlock in the log")
    log = log_of(server)
    expect(all(f"update p set a = a where a = {n}" in log for n in (1, 2)), log)
    w.b.run("ROLLBACK")
    w.d.run("ROLLBACK")
    w.look.run("SET GLOBAL innodb_print_all_deadlocks = OFF")


def prepared_after_kill(w, server):
    """A prepared branch is nobody's, and still there after a kill, with its rows locked."""
    w.c.run("XA START 'kept'", "INSERT INTO p VALUES (50), (51)", "XA END 'kept'", "XA PREPARE 'kept'")
    w.close()
    server.kill()
    server.start()
    look = Session(server)
    rows = look("SELECT trx_mysql_thread_id, trx_state, trx_rows_locked, trx_query FROM information_schema.INNODB_TRX")
    expect(rows == ((0, "RUNNING", 2, None),), rows)
    locks = look("SELECT THREAD_ID, LOCK_MODE, LOCK_STATUS, LOCK_DATA FROM performance_schema.data_locks WHERE LOCK_TYPE = 'RECORD' ORDER BY LOCK_DATA")
    expect(locks == ((None, "X,REC_NOT_GAP", "GRANTED", "50"), (None, "X,REC_NOT_GAP", "GRANTED", "51")), locks)
    waiter = Session(server, database="see_trx")
    thread = threading.Thread(target=lambda: waiter.run("INSERT INTO p VALUES (50)"))
    thread.start()
    found = wait_for(lambda: look("SELECT waiting_pid, blocking_pid, blocking_lock_mode FROM sys.innodb_lock_waits"), "a wait for the branch")
    expect(found == ((waiter.db.thread_id(), 0, "X,REC_NOT_GAP"),), found)
    expect("ACTIVE (PREPARED)" in status_of(look), "the status")
    look.run("XA ROLLBACK 'kept'")
    thread.join()
    expect(look("SELECT * FROM information_schema.INNODB_TRX") == (), "it is over")
    waiter.close()
    look.close()


def keys_of_text(w):
    """A key that is text is read out of its row."""
    w.look.run("CREATE TABLE see_trx.named (a VARCHAR(20), b INT, c INT, PRIMARY KEY (a, b))", "INSERT INTO see_trx.named VALUES ('it''s', 7, 0)")
    w.a.run("BEGIN", "UPDATE named SET c = 1 WHERE a = 'it''s' AND b = 7", "INSERT INTO named VALUES ('new', 8, 0)")
    rows = w.look("SELECT LOCK_DATA FROM performance_schema.data_locks WHERE OBJECT_NAME = 'named' AND LOCK_TYPE = 'RECORD' ORDER BY LOCK_DATA")
    expect(rows == (("'it''s', 7",), ("?, 8",)), rows)
    w.a.run("ROLLBACK", "DROP TABLE named")


def foreign_key_error(w):
    w.look.run("CREATE TABLE see_trx.child (p INT, CONSTRAINT only_parents FOREIGN KEY (p) REFERENCES p (a))")
    w.a.fails("INSERT INTO child VALUES (99)", 1452)
    text = status_of(w.look)
    section = text.partition("LATEST FOREIGN KEY ERROR")[2].partition("LATEST DETECTED DEADLOCK")[0]
    expect("INSERT INTO child VALUES (99)" in section and "only_parents" in section and f"thread id {w.a.db.thread_id()}" in section, text)
    w.a.run("DROP TABLE child")


def rights(server):
    """PROCESS for the list of transactions and the status; what performance_schema has asks for its own."""
    root = Session(server)
    root.run("CREATE USER seer", "GRANT SELECT ON see_trx.* TO seer")
    seer = Session(server, user="seer")
    wanted = {"SELECT COUNT(*) FROM information_schema.INNODB_TRX": 1227, "SHOW ENGINE INNODB STATUS": 1227,
              "SELECT COUNT(*) FROM performance_schema.events_transactions_current": 1142, "SELECT COUNT(*) FROM performance_schema.data_locks": 1142,
              "SELECT COUNT(*) FROM performance_schema.events_transactions_history": 1142, "SELECT COUNT(*) FROM information_schema.INNODB_LOCK_WAITS": 1109}
    for sql, code in wanted.items():
        seer.fails(sql, code)
    root.run("GRANT PROCESS ON *.* TO seer")
    seer.run("SELECT COUNT(*) FROM information_schema.INNODB_TRX", "SHOW ENGINE INNODB STATUS")
    seer.close()
    root.close()


def appliers(directory):
    """The transaction that a replica's applier has open is told of as any, and who is in its way."""
    source, replica = (OmnibusPeer(pathlib.Path(directory) / name, number) for name, number in (("source", 1), ("replica", 2)))
    source.start()
    replica.start()
    create_user(source)
    replicate(replica, source)
    there, here, look = Session(source), Session(replica), Session(replica)
    there.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "INSERT INTO d.t VALUES (1, 1)")
    wait_caught_up(replica, source)
    here.run("BEGIN", "SELECT * FROM d.t FOR UPDATE")
    there.run("UPDATE d.t SET v = 2")
    asked = ("SELECT p.USER, b.trx_mysql_thread_id, r.trx_state FROM performance_schema.data_lock_waits w"
             " JOIN information_schema.INNODB_TRX r ON r.trx_id = w.REQUESTING_ENGINE_TRANSACTION_ID"
             " JOIN information_schema.INNODB_TRX b ON b.trx_id = w.BLOCKING_ENGINE_TRANSACTION_ID"
             " JOIN information_schema.PROCESSLIST p ON p.ID = r.trx_mysql_thread_id")
    rows = wait_for(lambda: look(asked), "the applier's wait")
    expect(rows == (("system user", here.db.thread_id(), "LOCK WAIT"),), rows)
    here.run("COMMIT")
    wait_caught_up(replica, source)
    expect(look("SELECT * FROM information_schema.INNODB_TRX") == (), "all have ended")
    for session in (there, here, look):
        session.close()
    for server in (replica, source):
        server.stop()


def many(server):
    """Hundreds of open transactions: all are told of, while others commit."""
    root, writer, done, count = Session(server, database="see_trx"), Session(server, database="see_trx"), threading.Event(), [0]
    root.run("SET GLOBAL max_connections = 500")
    sessions = [Session(server, database="see_trx") for _ in range(300)]
    for n, session in enumerate(sessions):
        session.run("BEGIN", f"INSERT INTO p VALUES ({1000 + n})")

    def write():
        while not done.is_set():
            writer.run("REPLACE INTO t VALUES (2, 2)")
            count[0] += 1
    thread = threading.Thread(target=write)
    thread.start()
    wait_for(lambda: count[0], "a commit")
    try:
        begun, before = time.monotonic(), count[0]
        found = root.value("SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_rows_modified = 1 AND trx_rows_locked >= 1 AND trx_query IS NULL")
        locks = root.value("SELECT COUNT(*) FROM performance_schema.data_locks WHERE LOCK_TYPE = 'RECORD' AND LOCK_DATA >= 1000")
        expect((found, locks) == (300, 300), (found, locks))
        expect(status_of(root).count("---TRANSACTION") >= 300, "transactions of the status")
        took = time.monotonic() - begun
        expect(took < 10, f"{took:.1f} s")
        wait_for(lambda: count[0] > before, "commits go on")
    finally:
        done.set()
        thread.join()
    for session in [*sessions, root, writer]:
        session.close()


def test():
    with Scratch() as scratch:
        for dialect in ("mysql", "mariadb"):
            folder = pathlib.Path(scratch) / dialect
            folder.mkdir()
            server = Omnibus(folder, f"--dialect={dialect}")
            server.start()
            w, lines = scenario(server, dialect == "mysql")
            compare(dialect, lines)
            if dialect == "mysql":
                old_versions(w)
                known_lines(w)
                deadlocks_in_log(w, server)
                foreign_key_error(w)
                keys_of_text(w)
                rights(server)
                many(server)
                prepared_after_kill(w, server)
            else:
                expect("MariaDB thread id" in status_of(w.look), "the deadlock's sessions, in MariaDB's words")
                w.close()
            server.stop()
        appliers(scratch)
    print("transactions: as MySQL and MariaDB tell of them; old versions, deadlocks in the log, rights, three hundred at once")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--update", action="store_true")
    if parser.parse_args().update:
        update()
    else:
        test()
