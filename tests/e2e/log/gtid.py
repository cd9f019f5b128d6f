#!/usr/bin/python3
"""Global transaction ids from outside, of both dialects (GTID-1, GTID-2).

MySQL's: functions over sets, gtid_next with what it skips and refuses, gtid_purged, waiting for a set, an id in the OK
packet. MariaDB's: what mariadb-binlog says of the log in strict mode, numbers by domain, a MariaDB server that replays the
log with the same ids, and its output replayed here. A restart changes nothing of what was executed.

Ring: gate.
"""

import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import (PATIENCE_S, MariaDB, Omnibus, Scratch, Session, binary,  # noqa: E402
                     client, expect, finished_binlogs, log_gtids, wait_for)

OTHER = "11111111-2222-3333-4444-555555555555"


class GtidSession(Session):
    """One that compares sets whatever their order."""

    def is_value(self, sql, expected):
        got = self.value(sql)
        if isinstance(got, str) and ":" in got and isinstance(expected, str):
            # Sets are in the order of uuids, and the server's own is another each time.
            got, expected = sorted(got.split(",")), sorted(expected.split(","))
        expect(got == expected, f"{sql}: {got!r} instead of {expected!r}")


def functions(s):
    """What a MySQL 8.4 server answers."""
    a, b = "3E11FA47-71CA-11E1-9E33-C80AA9429562", "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    for sql, expected in [
        (f"GTID_SUBSET('{a}:23', '{a}:21-57')", 1),
        (f"GTID_SUBSET('{a}:23-25', '{a}:23-25')", 1),
        (f"GTID_SUBSET('{a}:20-25', '{a}:23-25')", 0),
        (f"GTID_SUBSET('', '{a}:1')", 1),
        ("GTID_SUBSET(NULL, '')", None),
        (f"GTID_SUBTRACT('{a}:21-57', '{a}:21')", f"{b}:22-57"),
        (f"GTID_SUBTRACT('{a}:21-57', '{a}:20-25')", f"{b}:26-57"),
        (f"GTID_SUBTRACT('{a}:21-57', '{a}:23-24')", f"{b}:21-22:25-57"),
        (f"GTID_SUBTRACT('{a}:21-57', '{a}:21-57')", ""),
        ("GTID_SUBTRACT('', NULL)", None),
    ]:
        s.is_value(f"SELECT {sql}", expected)
    s.fails("SELECT GTID_SUBSET('nonsense', '')", 1772)
    s.fails("SELECT GTID_SUBSET('')", 1582)
    s.fails("SELECT @@gtid_binlog_pos", 1193)


def given_ids(s, server):
    own = s.value("SELECT @@server_uuid")
    s.run("CREATE DATABASE g", "CREATE TABLE g.t (id INT PRIMARY KEY, v INT)")
    s.is_value("SELECT @@gtid_executed", f"{own}:1-2")
    s.run(f"SET gtid_next = '{OTHER}:7'")
    s.is_value("SELECT @@gtid_owned", f"{OTHER}:7")
    s.run("SELECT 1", "INSERT INTO g.t VALUES (1, 1)")
    s.fails("INSERT INTO g.t VALUES (2, 2)", 1837)
    s.run(f"SET gtid_next = '{OTHER}:8'", "BEGIN", "COMMIT")
    s.fails("DELETE FROM g.t", 1837)
    s.run(f"SET gtid_next = '{OTHER}:9'", "BEGIN", "INSERT INTO g.t VALUES (3, 3)", "COMMIT")
    s.run(f"SET gtid_next = '{OTHER}:10'", "UPDATE g.t SET v = 0 WHERE id = 99")
    s.run(f"SET gtid_next = '{OTHER}:11'", "ALTER TABLE g.t ADD COLUMN w INT")
    # Skipped: the transaction is over already.
    s.run(f"SET gtid_next = '{OTHER}:7'", "BEGIN", "INSERT INTO g.t (id) VALUES (4)", "COMMIT")
    s.run(f"SET gtid_next = '{OTHER}:7'", "INSERT INTO g.t (id) VALUES (4)")
    s.fails("INSERT INTO g.t (id) VALUES (4)", 1837)
    s.run("SET gtid_next = AUTOMATIC", "INSERT INTO g.t (id) VALUES (5)")
    s.is_value("SELECT @@gtid_executed", f"{OTHER}:7-11,{own}:1-3")
    s.is_value("SELECT GROUP_CONCAT(id ORDER BY id) FROM g.t", "1,3,5")
    # Given back by ROLLBACK, and by the end of a session.
    s.run(f"SET gtid_next = '{OTHER}:20'", "BEGIN", "INSERT INTO g.t (id) VALUES (6)", "ROLLBACK")
    s.fails("INSERT INTO g.t (id) VALUES (6)", 1837)
    s.is_value("SELECT @@gtid_owned", "")
    s.run("SET gtid_next = 'AUTOMATIC'", "BEGIN")
    s.fails(f"SET gtid_next = '{OTHER}:21'", 1766)
    s.run("COMMIT")
    s.fails("SET gtid_next = 'nonsense:1'", 1774)
    s.fails("SET gtid_next = 'ANONYMOUS'", 1782)
    s.run(f"SET gtid_next = '{OTHER}:21'", "BEGIN", "INSERT INTO g.t (id) VALUES (7)")
    s.fails("CREATE TABLE g.no (a INT)", 1778)
    s.fails(f"SET gtid_next = '{OTHER}:22'", 1766)
    s.run("ROLLBACK", "SET gtid_next = 'AUTOMATIC'")
    # Prepared statements obey as well.
    with s.db.cursor() as cursor:
        cursor.execute(f"SET gtid_next = '{OTHER}:12'")
        cursor.execute("PREPARE p FROM 'INSERT INTO g.t (id) VALUES (8)'")
        cursor.execute("EXECUTE p")
    s.run("SET gtid_next = 'AUTOMATIC'")
    # A session's own tables commit nothing, and alone they are a transaction as others.
    s.run(f"SET gtid_next = '{OTHER}:13'", "BEGIN", "INSERT INTO g.t (id) VALUES (9)", "CREATE TEMPORARY TABLE g.own (a INT)",
          "INSERT INTO g.own VALUES (1)", "DROP TEMPORARY TABLE g.own", "COMMIT", f"SET gtid_next = '{OTHER}:14'",
          "CREATE TEMPORARY TABLE g.own (a INT)")
    s.fails("DROP TEMPORARY TABLE g.own", 1837)
    s.run("SET gtid_next = 'AUTOMATIC'", "DROP TEMPORARY TABLE g.own")
    s.is_value("SELECT @@gtid_executed", f"{OTHER}:7-14,{own}:1-3")


def two_sessions(s, server):
    """The second waits for the first, then skips."""
    first, second = GtidSession(server), GtidSession(server)
    first.run(f"SET gtid_next = '{OTHER}:30'", "BEGIN", "INSERT INTO g.t (id) VALUES (30)")
    waiting = threading.Thread(target=lambda: second.run(
        f"SET gtid_next = '{OTHER}:30'", "INSERT INTO g.t (id) VALUES (31)"))
    waiting.start()
    wait_for(lambda: any("gtid_next" in str(row[7]) for row in s("SHOW PROCESSLIST") if row[0] == second.db.thread_id()),
             lambda: f"the second session does not wait: {s('SHOW PROCESSLIST')}")
    expect(waiting.is_alive(), "the second session did not wait")
    first.run("COMMIT")
    waiting.join(PATIENCE_S)
    expect(not waiting.is_alive(), "the second session waits on")
    s.is_value("SELECT COUNT(*) FROM g.t WHERE id IN (30, 31)", 1)
    first.db.close()
    second.db.close()


def waiting(s, server):
    other = GtidSession(server)
    started = time.monotonic()
    other.is_value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{OTHER}:40', 0.2)", 1)
    expect(time.monotonic() - started > 0.15, "a timeout of a fifth of a second")
    other.fails(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{OTHER}:40', -1)", 1210)
    result = []
    waits = [threading.Thread(target=lambda: result.append(
        GtidSession(server).value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{OTHER}:40')"))) for _ in range(40)]
    for one in waits:
        one.start()
    # Waiting holds no thread: others go on.
    for n in range(20):
        s.run(f"INSERT INTO g.t (id) VALUES ({100 + n})")
    expect(not result, "it waits")
    s.run(f"SET gtid_next = '{OTHER}:40'", "BEGIN", "COMMIT", "SET gtid_next = AUTOMATIC")
    for one in waits:
        one.join(PATIENCE_S)
    expect(result == [0] * 40, f"{result}")


def purged(s):
    before = s.value("SELECT @@gtid_executed")
    s.run(f"SET GLOBAL gtid_purged = '+{OTHER}:100-110'")
    s.is_value("SELECT @@gtid_purged", f"{OTHER}:100-110")
    s.fails(f"SET GLOBAL gtid_purged = '+{OTHER}:110-120'", 3546)
    s.fails(f"SET GLOBAL gtid_purged = '{OTHER}:100-109'", 3546)
    s.fails("SET GLOBAL gtid_purged = 'x'", 1772)
    s.run(f"SET GLOBAL gtid_purged = '{OTHER}:100-110:115'")
    parts = [part + ":100-110:115" if part.startswith(OTHER) else part for part in before.split(",")]
    s.is_value("SELECT @@gtid_executed", ",".join(parts))
    # As dumps of MySQL servers have it.
    s.run(f"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{OTHER}:200-205'")
    return s.value("SELECT @@gtid_executed"), s.value("SELECT @@gtid_purged")


def tracked(server):
    """session_track_gtids=OWN_GTID: the OK packet of a commit says its id, and others say none."""
    session_track = 1 << 23
    s = GtidSession(server, client_flag=session_track)
    own = s.value("SELECT @@server_uuid")

    def said(sql):
        s(sql)
        return own.encode() in (s.cursor._result.message or b"")

    expect(not said("INSERT INTO g.t (id) VALUES (900)"), "an id without being asked")
    s.run("SET session_track_gtids = OWN_GTID")
    expect(said("INSERT INTO g.t (id) VALUES (901)"), "no id with the OK of a commit")
    s.run("SET session_track_gtids = ALL_GTIDS")
    expect(said("INSERT INTO g.t (id) VALUES (902)") and OTHER.encode() in s.cursor._result.message, "not all ids")
    expect(not said("SET @a = 1") and not said("UPDATE g.t SET v = 1 WHERE id = 99999"), "an id of nothing")
    s.db.close()


def mysql_dialect(directory):
    server = Omnibus(directory)
    server.start()
    try:
        s = GtidSession(server)
        functions(s)
        given_ids(s, server)
        two_sessions(s, server)
        waiting(s, server)
        tracked(server)
        executed, gone = purged(s)
        server.kill()
        server.start()
        s = GtidSession(server)
        s.is_value("SELECT @@gtid_executed", executed)
        s.is_value("SELECT @@gtid_purged", gone)
        ids = log_gtids(finished_binlogs(server))
        expect(len(ids) == len(set(ids)), "an id is in the log twice (GTID-1)")
        s.run("RESET BINARY LOGS AND GTIDS")
        s.is_value("SELECT @@gtid_executed", "")
        s.is_value("SELECT @@gtid_purged", "")
        other = Omnibus(directory, "--dialect=mariadb")
        server.stop()
        try:
            other.start()
            expect(False, "the data directory is of the other dialect")
        except RuntimeError as error:
            expect("--dialect=mysql" in str(error), str(error))
    finally:
        server.stop()

def modes(directory):
    """gtid_mode from OFF to ON and back: what has an id, what is refused, and who follows (MySQL's numbers)."""
    server = Omnibus(directory, "--gtid-mode=OFF", "--enforce-gtid-consistency=OFF", "--server-id=5")
    server.start()
    try:
        s = GtidSession(server)
        own = s.value("SELECT @@server_uuid")
        mode = "SET GLOBAL gtid_mode = "
        s.run("CREATE DATABASE g", "CREATE TABLE g.t (id INT PRIMARY KEY)", "INSERT INTO g.t VALUES (1)",
              "CREATE USER repl IDENTIFIED WITH mysql_native_password BY 'p'", "GRANT ALL ON *.* TO repl")
        s.is_value("SELECT @@gtid_executed", "")
        s.fails(f"SET gtid_next = '{OTHER}:1'", 1781)
        s.fails(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{OTHER}:1')", 3062)
        s.fails("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_AUTO_POSITION=1", 1777)
        for far in ["ON", "ON_PERMISSIVE"]:
            s.fails(mode + far, 1788)
        s.run(mode + "OFF_PERMISSIVE", "INSERT INTO g.t VALUES (2)",
              f"SET gtid_next = '{OTHER}:1'", "INSERT INTO g.t VALUES (3)", "SET gtid_next = AUTOMATIC")
        s.is_value("SELECT @@gtid_executed", f"{OTHER}:1")
        s.run(mode + "ON_PERMISSIVE", "INSERT INTO g.t VALUES (4)",
              "SET gtid_next = 'ANONYMOUS'", "INSERT INTO g.t VALUES (5)", "BEGIN", "INSERT INTO g.t VALUES (6)",
              "CREATE TABLE g.u (a INT)")
        s.is_value("SELECT @@gtid_executed", f"{OTHER}:1,{own}:1")
        s.fails(mode + "ON", 3111)
        s.run("SET GLOBAL enforce_gtid_consistency = ON")
        s.fails(mode + "ON", 3111)
        expect(s("SHOW STATUS LIKE 'Ongoing_anonymous_transaction_count'")[0][1] == "1", "one session is anonymous")
        s.run("SET gtid_next = 'AUTOMATIC'", mode + "ON", "INSERT INTO g.t VALUES (7)")
        s.fails("SET gtid_next = ANONYMOUS", 1782)
        s.fails("SET GLOBAL enforce_gtid_consistency = WARN", 1779)
        s.is_value("SELECT @@gtid_executed", f"{OTHER}:1,{own}:1-2")
        followers(directory, server, s)
        s.run(mode + "ON_PERMISSIVE", mode + "OFF_PERMISSIVE")
        s.run(f"SET gtid_next = '{OTHER}:9'", "BEGIN", "INSERT INTO g.t VALUES (8)")
        GtidSession(server).fails(mode + "OFF", 3111)
        s.run("COMMIT", "SET gtid_next = AUTOMATIC", mode + "OFF", "INSERT INTO g.t VALUES (9)")
        executed, rows = s.value("SELECT @@gtid_executed"), s("SELECT * FROM g.t")
        server.kill()
        server.start()
        s = GtidSession(server)
        s.is_value("SELECT @@gtid_executed", executed)
        expect(s("SELECT * FROM g.t") == rows and len(rows) == 9, "rows after kill -9")
        files = finished_binlogs(server)
        expect(log_gtids(files) == [f"{OTHER}:1", *(f"{own}:{n}" for n in range(1, 5)), f"{OTHER}:9"],
               f"{log_gtids(files)}")
        read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", *files],
                              capture_output=True, text=True)
        expect(read.returncode == 0 and "ERROR" not in read.stderr, f"mariadb-binlog: {read.stderr}")
        shown = subprocess.run([binary(), "binlog", *files], capture_output=True, text=True).stdout
        expect(shown.count("Anonymous_Gtid") == 10, f"omnibus binlog:\n{shown}")
    finally:
        server.stop()

def tags(directory):
    """Ids with tags, ids of what is not logged, accounts under given ids; after kill -9, and on replicas."""
    server = Omnibus(directory, "--server-id=5")
    server.start()
    try:
        s = GtidSession(server)
        own = s.value("SELECT @@server_uuid")
        s.run("CREATE DATABASE g", "CREATE TABLE g.t (id INT PRIMARY KEY)",
              "CREATE USER repl IDENTIFIED WITH mysql_native_password BY 'p'", "GRANT ALL ON *.* TO repl",
              "SET gtid_next = 'AUTOMATIC:Blue'", "INSERT INTO g.t VALUES (1)", "INSERT INTO g.t VALUES (2)")
        s.is_value("SELECT @@gtid_next", "AUTOMATIC:blue")
        for wrong in ["AUTOMATIC:1x", f"{OTHER}:a-b:1", f"{OTHER}:a:b:1"]:
            s.fails(f"SET gtid_next = '{wrong}'", 1774)
        s.run(f"SET gtid_next = '{OTHER}:red:5'", "INSERT INTO g.t VALUES (3)")
        # Spent: accounts are no exception.
        for sql in ["INSERT INTO g.t VALUES (9)", "CREATE USER x", "GRANT ALL ON *.* TO repl", "DROP USER repl",
                    "SET PASSWORD FOR repl = 'x'"]:
            s.fails(sql, 1837)
        s.run(f"SET gtid_next = '{OTHER}:6'", "CREATE USER y IDENTIFIED WITH mysql_native_password BY 'p'")
        s.fails("CREATE USER z", 1837)
        s.run(f"SET gtid_next = '{OTHER}:6'", "CREATE USER z")
        s.fails("DROP USER y", 1837)
        s.is_value("SELECT GROUP_CONCAT(user) FROM mysql.user WHERE user IN ('x', 'y', 'z')", "y")
        s.run(f"SET gtid_next = '{OTHER}:7'", "CREATE USER IF NOT EXISTS y", f"SET gtid_next = '{OTHER}:8'", "BEGIN")
        s.fails("CREATE USER z", 1778)
        s.run("ROLLBACK", "SET gtid_next = AUTOMATIC", "SET sql_log_bin = 0",
              f"SET gtid_next = '{OTHER}:9'", "INSERT INTO g.t VALUES (4)",
              f"SET gtid_next = '{OTHER}:10'", "BEGIN", "COMMIT",
              f"SET gtid_next = '{OTHER}:11'", "CREATE TABLE g.u (a INT)")
        s.fails("DROP TABLE g.u", 1837)
        s.run(f"SET gtid_next = '{OTHER}:9'", "INSERT INTO g.t VALUES (99)", "SET gtid_next = AUTOMATIC",
              "INSERT INTO g.t VALUES (98)", "SET sql_log_bin = 1", "INSERT INTO g.t VALUES (5)")
        executed = f"{OTHER}:6-7:9-11:red:5,{own}:1-5:blue:1-2"
        for _ in range(2):
            s.is_value("SELECT @@gtid_executed", executed)
            s.is_value("SELECT @@gtid_purged", f"{OTHER}:9-11")
            s.is_value("SELECT GROUP_CONCAT(id ORDER BY id) FROM g.t", "1,2,3,4,5,98")
            server.kill()
            server.start()
            s = GtidSession(server)
        s.is_value(f"SELECT GTID_SUBTRACT(@@gtid_executed, '{own}:blue:2:1,{OTHER}:1-100')", f"{OTHER}:red:5,{own}:1-5")
        s.is_value(f"SELECT GTID_SUBSET('{OTHER}:RED:5', @@gtid_executed)", 1)
        s.is_value(f"SELECT GTID_SUBSET('{OTHER}:5', @@gtid_executed)", 0)
        expect((OTHER, 9, 11, "") in s("SELECT * FROM mysql.gtid_executed") and
               (own, 1, 2, "blue") in s("SELECT * FROM mysql.gtid_executed"), f"{s('SELECT * FROM mysql.gtid_executed')}")
        s.fails("SELECT * FROM mysql.gtid_slave_pos", 1146)
        files = finished_binlogs(server)
        read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", *files],
                              capture_output=True, text=True)
        expect(read.returncode == 0 and "ERROR" not in read.stderr, f"mariadb-binlog: {read.stderr}")
        shown = subprocess.run([binary(), "binlog", f"--include-gtids={own}:blue:2", *files],
                               capture_output=True, text=True).stdout
        expect(f"{own}:blue:2," in shown and ":1," not in shown, f"omnibus binlog:\n{shown}")
        for options in [[], ["--log-replica-updates=OFF"]]:
            replica_with_tags(directory / f"replica{len(options)}", options, server, executed)
    finally:
        server.stop()


def replica_with_tags(directory, options, server, executed):
    """By GTID, twice: what it has when it comes back has tags. By position: MariaDB."""
    directory.mkdir()
    source = GtidSession(server)
    replica, peer = Omnibus(directory, "--server-id=6", *options), None
    replica.start()
    change = f"HOST='127.0.0.1', MASTER_PORT={server.port}, MASTER_USER='repl', MASTER_PASSWORD='p'"
    try:
        r = GtidSession(replica)
        r.run(f"CHANGE MASTER TO MASTER_{change}, MASTER_AUTO_POSITION=1", "START REPLICA")
        until("what the source cannot send", lambda: channel_error(r), 1236)
        r.run("STOP REPLICA", f"SET GLOBAL gtid_purged = '+{OTHER}:9-11'", "START REPLICA")
        until("tagged ids on the replica", lambda: sorted(r.value("SELECT @@gtid_executed").split(",")),
              sorted(source.value("SELECT @@gtid_executed").split(",")))
        r.is_value("SELECT GROUP_CONCAT(id ORDER BY id) FROM g.t", "1,2,3,5")
        replica.kill()
        replica.start()
        r = GtidSession(replica)
        source.run("SET gtid_next = 'AUTOMATIC:green'", "INSERT INTO g.t VALUES (50)", "DELETE FROM g.t WHERE id = 50",
                   "SET gtid_next = AUTOMATIC")
        until("tagged ids after kill -9", lambda: sorted(r.value("SELECT @@gtid_executed").split(",")),
              sorted(source.value("SELECT @@gtid_executed").split(",")))
        if not options:
            ids = log_gtids(finished_binlogs(replica))
            expect(len(ids) == len(set(ids)), "an id is in the log twice (GTID-1)")
            peer = MariaDB(directory, "--server-id=9")
            peer.start()
            client(peer, f"CHANGE MASTER TO MASTER_{change}, MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4, "
                         "MASTER_USE_GTID=no; START SLAVE")
            until("rows of a MariaDB replica of tagged ids",
                  lambda: client(peer, "SELECT id FROM g.t ORDER BY id", check=False).stdout.split(), [b"1", b"2", b"3", b"5"])
    finally:
        if peer:
            peer.stop()
        replica.stop()



def channel(s):
    status = s("SHOW REPLICA STATUS")
    return dict(zip([column[0] for column in s.cursor.description], status[0]))


def channel_error(s):
    line = channel(s)
    return int(line["Last_IO_Errno"]) or int(line["Last_SQL_Errno"])


def until(what, question, expected):
    wait_for(lambda: question() == expected, lambda: f"{what}: {question()!r} instead of {expected!r}")


def followers(directory, server, source):
    """Its log from the start, with anonymous transactions and others: to MariaDB, and to ours in two modes."""
    count = "SELECT COUNT(*) FROM g.t"
    wanted = source.value(count)
    peer = MariaDB(directory, "--server-id=9", "--log-bin=peer")
    peer.start()
    change = f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={server.port}, MASTER_USER='repl', " \
             "MASTER_PASSWORD='p', MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4"
    replica = Omnibus(directory / "replica", "--server-id=6")
    (directory / "replica").mkdir()
    replica.start()
    try:
        client(peer, f"{change}, MASTER_USE_GTID=no; START SLAVE")
        until("rows of a MariaDB replica", lambda: client(peer, count, check=False).stdout.split(), [b"%d" % wanted])
        r = GtidSession(replica)
        own = r.value("SELECT @@server_uuid")
        r.run(change, "START REPLICA")
        until("an anonymous transaction under ON", lambda: channel_error(r), 3114)
        line = channel(r)
        expect((line["Last_IO_Errno"], line["Last_SQL_Errno"], line["Replica_SQL_Running"]) == (3114, 0, "Yes"),
               f"it is the receiver that does not take it: {line}")
        r.fails("SET GLOBAL sql_replica_skip_counter = 1", 1858)
        r.run("STOP REPLICA")
        r.fails("START REPLICA UNTIL SQL_BEFORE_GTIDS = 'bad'", 1772)
        r.fails("START REPLICA UNTIL SQL_AFTER_GTIDS = '1-2'", 1772)
        r.fails("CHANGE REPLICATION SOURCE TO ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL, "
                "SOURCE_AUTO_POSITION = 1", 4014)
        r.run("CHANGE REPLICATION SOURCE TO ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL")
        r.fails("SET GLOBAL gtid_mode = ON_PERMISSIVE", 3111)
        # A channel of transactions without GTIDs has no other way to leave one out.
        r.run("SET GLOBAL sql_replica_skip_counter = 1", "SET GLOBAL sql_replica_skip_counter = 0", "START REPLICA")
        rows = lambda: len(client(replica, "SELECT id FROM g.t", check=False).stdout.split())
        until("rows of a replica that assigns", rows, wanted)
        theirs = source.value("SELECT @@gtid_executed").split(",")
        r.is_value("SELECT @@gtid_executed", ",".join([*theirs, f"{own}:1-9"]))
        r.run("STOP REPLICA", "RESET REPLICA ALL", "DROP DATABASE g", "DROP USER repl", "RESET BINARY LOGS AND GTIDS",
              change + ", ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = '22222222-2222-3333-4444-555555555555'",
              "START REPLICA")
        until("rows of a replica that assigns a uuid", rows, wanted)
        r.is_value("SELECT @@gtid_executed", ",".join([*theirs, "22222222-2222-3333-4444-555555555555:1-9"]))
        r.run("STOP REPLICA", "RESET REPLICA ALL", "DROP DATABASE g", "DROP USER repl", "RESET BINARY LOGS AND GTIDS",
              "SET GLOBAL gtid_mode = ON_PERMISSIVE", change, "START REPLICA")
        until("rows of a permissive replica", rows, wanted)
        r.is_value("SELECT @@gtid_executed", ",".join(theirs))
        # By GTID: what the source has of anonymous ones cannot be asked for.
        r.run("STOP REPLICA", "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1", "START REPLICA")
        source.run("INSERT INTO g.t VALUES (100)")
        until("rows by GTID", rows, wanted + 1)
        source.run("SET GLOBAL gtid_mode = ON_PERMISSIVE")
        r.run("STOP REPLICA", "START REPLICA")
        until("a source that is not ON", lambda: channel_error(r), 1593)
        source.run("SET GLOBAL gtid_mode = ON", "DELETE FROM g.t WHERE id = 100")
    finally:
        peer.stop()
        replica.stop()


def mariadb_dialect(directory):
    server = Omnibus(directory, "--dialect=mariadb", "--server-id=3")
    server.start()
    peer = MariaDB(directory, "--log-bin=peer", "--server-id=9")
    peer.start()
    try:
        s = GtidSession(server)
        expect("MariaDB" in s.value("SELECT VERSION()") and "MariaDB" in s.db.server_version, "the version")
        s.fails("SELECT @@gtid_executed", 1193)
        s.fails("SELECT * FROM mysql.gtid_executed", 1146)
        s.run("SET GLOBAL gtid_slave_pos = '0-1-7,3-9-2'")
        expect(s("SELECT domain_id, server_id, seq_no FROM mysql.gtid_slave_pos") == ((0, 1, 7), (3, 9, 2)), "slave_pos")
        s.run("SET GLOBAL gtid_slave_pos = ''", "SET binlog_rows_query_log_events = 1",
              "CREATE DATABASE g", "CREATE TABLE g.t (id INT PRIMARY KEY, v INT)", "INSERT INTO g.t VALUES (1, 1)")
        s.is_value("SELECT @@last_gtid", "0-3-3")
        s.run("SET gtid_domain_id = 5", "BEGIN", "INSERT INTO g.t VALUES (2, 2)", "UPDATE g.t SET v = 3", "COMMIT")
        s.run("SET gtid_domain_id = 0", "SET server_id = 77", "SET gtid_seq_no = 50", "INSERT INTO g.t VALUES (3, 3)",
              "SET server_id = 3", "INSERT INTO g.t VALUES (4, 4)")
        s.is_value("SELECT @@gtid_seq_no", 0)
        s.is_value("SELECT @@gtid_binlog_pos", "0-3-51,5-3-1")
        s.is_value("SELECT @@gtid_binlog_state", "0-77-50,0-3-51,5-3-1")
        s.run("BEGIN")
        s.fails("SET gtid_seq_no = 60", 1953)
        s.run("COMMIT", "SET GLOBAL gtid_strict_mode = 1", "SET gtid_seq_no = 20")
        s.fails("INSERT INTO g.t VALUES (5, 5)", 1950)
        # Nothing of it is left, its locks neither.
        GtidSession(server).run("SET innodb_lock_wait_timeout = 2", "INSERT INTO g.t VALUES (5, 5)")
        s.run("SET gtid_seq_no = 0", "SET GLOBAL gtid_strict_mode = 0")
        s.fails("SET GLOBAL gtid_binlog_state = '0-1-1'", 1956)
        s.run("XA START 'x'", "INSERT INTO g.t VALUES (6, 6)", "XA END 'x'", "XA PREPARE 'x'", "XA COMMIT 'x'")
        s.run("XA START 'y'", "INSERT INTO g.t VALUES (7, 7)", "XA END 'y'", "XA COMMIT 'y' ONE PHASE")
        place = s("SHOW MASTER STATUS")[0]
        s.is_value(f"SELECT BINLOG_GTID_POS('{place[0]}', {place[1]})", s.value("SELECT @@gtid_binlog_pos"))
        s.is_value("SELECT BINLOG_GTID_POS('nosuch', 4)", None)
        # A dump tells a new replica where it stands.
        dump = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", "--gtid",
                               "--single-transaction", "--master-data", "g"], capture_output=True, text=True)
        place = f"SET GLOBAL gtid_slave_pos='{s.value('SELECT @@gtid_binlog_pos')}';"
        expect(place in dump.stdout, f"no {place} in the dump: {dump.stderr}")
        s.run("CREATE TABLE g.u (a INT)", "DROP TABLE g.u")
        expected = s.value("SELECT @@gtid_binlog_pos")
        files = finished_binlogs(server)
        read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", "--gtid-strict-mode", "-vv",
                               *files], capture_output=True, text=True)
        expect(read.returncode == 0 and "ERROR" not in read.stderr, f"mariadb-binlog: {read.stderr}")
        for text in ["GTID 0-3-51 cid=", "GTID 5-3-1", "Annotate_rows", "Gtid list", "ddl", "XA START X'78'"]:
            expect(text in read.stdout, f"mariadb-binlog says nothing of {text}:\n{read.stdout[:6000]}")
        # Its output, in a MariaDB server: the same rows under the same ids.
        applied = subprocess.run(["mariadb", "--no-defaults", f"--socket={peer.socket}", "-uroot", "--binary-mode"],
                                 input=read.stdout, capture_output=True, text=True)
        expect(applied.returncode == 0, f"MariaDB refused it: {applied.stderr}")
        rows = "SELECT * FROM g.t ORDER BY id"
        expect(client(server, rows) == client(peer, rows), f"MariaDB has {client(peer, rows)} of {client(server, rows)}")
        there = client(peer, "SELECT @@gtid_binlog_pos").strip()
        expect(there == expected, f"MariaDB has {there}, not {expected}")
        # And here again, from MariaDB's own log.
        second = Omnibus(directory / "second", "--dialect=mariadb", "--server-id=4")
        (directory / "second").mkdir()
        second.start()
        try:
            back = subprocess.run(["mariadb-binlog", "--no-defaults",
                                   *sorted(str(p) for p in peer.datadir.glob("peer.0*"))], capture_output=True, text=True)
            run = subprocess.run(["mariadb", "--no-defaults", f"--socket={second.socket}", "-uroot", "--binary-mode"],
                                 input=back.stdout, capture_output=True, text=True)
            expect(run.returncode == 0, f"refused here: {run.stderr}")
            expect(client(second, rows) == client(server, rows), "rows that came back")
            here = GtidSession(second).value("SELECT @@gtid_binlog_pos")
            expect(here == expected, f"{here}, not {expected}")
        finally:
            second.stop()
        server.kill()
        server.start()
        s = GtidSession(server)
        s.is_value("SELECT @@gtid_binlog_pos", expected)
        ids = log_gtids(finished_binlogs(server))
        expect(len(ids) == len(set(ids)), "an id is in the log twice (GTID-1)")
        s.run("RESET MASTER", "SET GLOBAL gtid_binlog_state = '0-1-100,7-2-3'", "CREATE TABLE g.v (a INT)")
        s.is_value("SELECT @@gtid_binlog_pos", "0-3-101,7-2-3")
    finally:
        peer.stop()
        server.stop()


def main():
    for test in [globals()[name] for name in sys.argv[1:]] or [mysql_dialect, modes, tags, mariadb_dialect]:
        with Scratch("omnibus-gtid-") as directory:
            test(pathlib.Path(directory))
    print("gtid: ids of both dialects. 4 passed, 0 failed")


if __name__ == "__main__":
    main()
