#!/usr/bin/python3
"""performance_schema as tools ask it: statements by digest, threads, what they run, who waits for whose lock. EXPLAIN of another connection.

Ring: gate.
"""

import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, client, expect, wait_for  # noqa: E402

BY_DIGEST = "performance_schema.events_statements_summary_by_digest"

SYS_VIEWS = """version statement_analysis x$statement_analysis statements_with_errors_or_warnings statements_with_full_table_scans
    x$statements_with_full_table_scans processlist x$processlist session x$session innodb_lock_waits schema_index_statistics schema_unused_indexes
    schema_table_statistics schema_tables_with_full_table_scans schema_redundant_indexes user_summary host_summary
    schema_table_lock_waits io_global_by_file_by_bytes x$io_global_by_file_by_bytes io_global_by_file_by_latency x$io_global_by_file_by_latency
    io_global_by_wait_by_bytes x$io_global_by_wait_by_bytes waits_global_by_latency x$waits_global_by_latency memory_by_user_by_current_bytes
    x$user_summary x$host_summary x$memory_by_user_by_current_bytes memory_by_host_by_current_bytes memory_by_thread_by_current_bytes memory_global_by_current_bytes memory_global_total""".split()


def digests(server):
    """Statements that differ in literals are one row, with the sums of what they did."""
    a = Session(server)
    a.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "USE d", f"TRUNCATE {BY_DIGEST}")
    a.run("INSERT INTO t VALUES (1,1),(2,2),(3,3)", "INSERT INTO t VALUES (4,4),(5,5)")
    for n in range(1, 6):
        a.run(f"SELECT v FROM t WHERE id = {n}")
    a.run("select V  from `t` where ID = 99 -- the same")
    a.run("SELECT v FROM t WHERE v IN (1, 2, 3)")
    a.fails("INSERT INTO t VALUES (1,1)", 1062)
    a.run("SELECT SLEEP(0.03)")
    columns = "SCHEMA_NAME, COUNT_STAR, SUM_ERRORS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_NO_INDEX_USED"
    rows = {row[0]: row[1:] for row in a(f"SELECT DIGEST_TEXT, {columns} FROM {BY_DIGEST}")}
    expect(rows["INSERT INTO `t` VALUES (...) /* , ... */"] == ("d", 2, 0, 5, 0, 0, 0), rows)
    expect(rows["INSERT INTO `t` VALUES (...)"][:3] == ("d", 1, 1), rows)
    expect(rows["SELECT `v` FROM `t` WHERE `id` = ?"] == ("d", 6, 0, 0, 5, 5, 0), rows)
    expect(rows["SELECT `v` FROM `t` WHERE `v` IN (...)"] == ("d", 1, 0, 0, 3, 5, 1), rows)
    slept = a(f"SELECT SUM_TIMER_WAIT, MAX_TIMER_WAIT, QUANTILE_95, QUERY_SAMPLE_TEXT, LENGTH(DIGEST), FIRST_SEEN > NOW() - INTERVAL 1 HOUR"
              f" FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE 'SELECT %SLEEP%'")
    expect(len(slept) == 1 and 30e9 <= slept[0][0] < 60e12 and slept[0][0] == slept[0][1], slept)
    expect(slept[0][2] <= slept[0][1] and slept[0][3:] == ("SELECT SLEEP(0.03)", 64, 1), slept)
    same = a(f"SELECT DIGEST = STATEMENT_DIGEST('select v from t where id = 7'), DIGEST_TEXT = STATEMENT_DIGEST_TEXT('select v from t where id = 7')"
             f" FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE '%`id` = ?'")
    expect(same == ((1, 1),) and a.value("SELECT STATEMENT_DIGEST(NULL)") is None, same)
    a.fails("SELECT STATEMENT_DIGEST('SELECT FROM')", 3676)
    a.fails("SELECT STATEMENT_DIGEST_TEXT('')", 3676)
    client(server, "CREATE USER u IDENTIFIED BY 'geheim'")
    expect("geheim" not in client(server, f"SELECT * FROM {BY_DIGEST}"), "a password in a sample")
    expect(not any("geheim" in row[0] for row in a(f"SELECT IFNULL(DIGEST_TEXT, '') FROM {BY_DIGEST}")), "a password in a digest")
    out = client(server, f"SELECT 1 FROM {BY_DIGEST}", "--password=geheim", user="u", check=False)
    expect("1142" in out.stderr.decode(), out.stderr)
    a.run(f"TRUNCATE {BY_DIGEST}")
    expect(a.value(f"SELECT COUNT(*) FROM {BY_DIGEST}") <= 1, "TRUNCATE")
    a.close()


def prepared(server):
    """COM_STMT_EXECUTE is counted as its text is, under the default database of then."""
    command = ["sysbench", "oltp_point_select", f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=d", "--tables=1",
               "--table-size=100", "--threads=4", "--events=400", "--time=0"]
    for step in ("prepare", "run"):
        run = subprocess.run([*command, step], capture_output=True, text=True)
        expect(run.returncode == 0, run.stdout + run.stderr)
    count, sent = client(server, f"SELECT COUNT_STAR, SUM_ROWS_SENT FROM {BY_DIGEST} WHERE DIGEST_TEXT = 'SELECT `c` FROM `sbtest1` WHERE `id` = ?'").split()
    expect((count, sent) == ("400", "400"), f"{count} of 400 by four connections, {sent} rows")


def usage(server):
    """Rows read and changed by table and by index, and what `sys` makes of it."""
    a = Session(server)
    a.run("CREATE DATABASE us", "USE us", "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT, KEY by_v (v), KEY by_w (w), KEY by_v_w (v, w))")
    a.run("INSERT INTO t VALUES (1,1,1),(2,2,2),(3,3,3),(4,4,4)", "UPDATE t SET w = 9 WHERE id = 1", "DELETE FROM t WHERE id = 4")
    a("SELECT * FROM t FORCE INDEX (by_v) WHERE v = 2")
    a("SELECT * FROM t WHERE w + 0 = 3")
    a("SELECT * FROM t WHERE id = 2")
    table = a("SELECT COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE FROM performance_schema.table_io_waits_summary_by_table WHERE OBJECT_SCHEMA = 'us'")
    expect(list(table) == [(7, 4, 1, 1)], table)
    by_index = a("SELECT IFNULL(INDEX_NAME, '-'), COUNT_FETCH, COUNT_INSERT, COUNT_UPDATE, COUNT_DELETE"
                 " FROM performance_schema.table_io_waits_summary_by_index_usage WHERE OBJECT_SCHEMA = 'us' ORDER BY 1")
    expect(list(by_index) == [("-", 3, 4, 0, 0), ("by_v", 1, 0, 0, 0), ("by_v_w", 0, 0, 0, 0), ("by_w", 0, 0, 0, 0), ("PRIMARY", 3, 0, 1, 1)], by_index)
    unused = a("SELECT index_name FROM sys.schema_unused_indexes WHERE object_schema = 'us' ORDER BY 1")
    expect([row[0] for row in unused] == ["by_v_w", "by_w"], unused)
    redundant = a("SELECT redundant_index_name, dominant_index_name FROM sys.schema_redundant_indexes WHERE table_schema = 'us'")
    expect(list(redundant) == [("by_v", "by_v_w")], redundant)
    for view in SYS_VIEWS:
        a(f"SELECT * FROM sys.{view}")
    a.run("USE sys")
    expect(a.value("SELECT sys_version FROM version") == "2.1.2", "sys.version")
    expect(a.value("SELECT exec_count FROM x$statement_analysis WHERE query LIKE 'SELECT * FROM `t` WHERE `id` = ?'") == 1, "digests in sys")
    a.run("DROP DATABASE us")
    a.close()


def locks(server):
    a, b = Session(server, database="d"), Session(server, database="d")
    mine, theirs = a.value("SELECT CONNECTION_ID()"), b.value("SELECT CONNECTION_ID()")
    a.run("BEGIN", "UPDATE t SET v = 9 WHERE id = 1")
    waiter = threading.Thread(target=lambda: b.run("UPDATE t SET v = 8 WHERE id = 1"))
    waiter.start()
    rows = wait_for(lambda: a("SELECT REQUESTING_THREAD_ID, BLOCKING_THREAD_ID FROM performance_schema.data_lock_waits"), "a lock wait")
    expect(rows == ((theirs, mine),), rows)
    rows = a("SELECT THREAD_ID, OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, LOCK_TYPE, LOCK_STATUS FROM performance_schema.data_locks WHERE LOCK_TYPE = 'RECORD' ORDER BY LOCK_STATUS")
    expect(rows == ((mine, "d", "t", "PRIMARY", "RECORD", "GRANTED"), (theirs, "d", "t", "PRIMARY", "RECORD", "WAITING")), rows)
    rows = a("SELECT t.PROCESSLIST_ID, c.SQL_TEXT, c.DIGEST_TEXT, t.PROCESSLIST_STATE FROM performance_schema.threads t"
             " JOIN performance_schema.events_statements_current c USING (THREAD_ID) WHERE c.SQL_TEXT LIKE 'UPDATE%'")
    expect(rows == ((theirs, "UPDATE t SET v = 8 WHERE id = 1", "UPDATE `t` SET `v` = ? WHERE `id` = ?", "waiting for a lock"),), rows)
    a.run("COMMIT")
    waiter.join()
    lock = a.value(f"SELECT SUM_LOCK_TIME FROM {BY_DIGEST} WHERE DIGEST_TEXT LIKE 'UPDATE `t`%'")
    expect(lock > 0, f"time in lock waits: {lock}")
    a.close()
    b.close()


def table_locks(server):
    """Who holds and who wants a table, by metadata_locks and by sys; all tables under FLUSH TABLES WITH READ LOCK."""
    a, b, c = Session(server, database="d"), Session(server, database="d"), Session(server)
    mine, theirs = a.value("SELECT CONNECTION_ID()"), b.value("SELECT CONNECTION_ID()")
    wanted = "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_STATUS, OWNER_THREAD_ID FROM performance_schema.metadata_locks ORDER BY LOCK_STATUS"
    expect(c(wanted) == (), "nobody has a table")
    a.run("BEGIN", "UPDATE t SET v = 9 WHERE id = 1")
    expect(c(wanted) == (("TABLE", "d", "t", "SHARED_WRITE", "GRANTED", mine),), c(wanted))
    waiter = threading.Thread(target=lambda: b.run("ALTER TABLE t ADD COLUMN extra INT"))
    waiter.start()
    rows = wait_for(lambda: c("SELECT object_name, waiting_pid, waiting_query, waiting_lock_type, blocking_pid, blocking_lock_type, sql_kill_blocking_connection"
                              " FROM sys.schema_table_lock_waits"), "a table lock wait")
    expect(rows == (("t", theirs, "ALTER TABLE t ADD COLUMN extra INT", "EXCLUSIVE", mine, "SHARED_WRITE", f"KILL {mine}"),), rows)
    rows = c(f"SELECT EVENT_NAME FROM performance_schema.events_stages_current WHERE THREAD_ID = {theirs}")
    expect(rows == (("stage/sql/Waiting for table metadata lock",),), rows)
    a.run("COMMIT")
    waiter.join()
    a.run("ALTER TABLE t DROP COLUMN extra", "FLUSH TABLES WITH READ LOCK")
    expect(c(wanted) == (("GLOBAL", None, None, "SHARED", "GRANTED", mine),), c(wanted))
    a.run("UNLOCK TABLES")
    for session in (a, b, c):
        session.close()


def resources(server):
    """What is read from and written to files, and the memory of who has much."""
    a, b = Session(server, database="d"), Session(server)
    written = "SELECT SUM_NUMBER_OF_BYTES_WRITE, COUNT_WRITE, COUNT_MISC, SUM_TIMER_WAIT FROM performance_schema.file_summary_by_instance WHERE FILE_NAME = %r"
    path = server.binlogs()[-1]
    before = a(written % path)[0]
    a.run(f"INSERT INTO t VALUES (100, LENGTH('{'x' * 50_000}'))", "CREATE TABLE big (v LONGTEXT)", f"INSERT INTO big VALUES ('{'x' * 50_000}')")
    after = a(written % path)[0]
    expect(after[0] - before[0] >= 50_000 and after[1] > before[1] and after[3] > before[3], f"{before} {after}")
    of_log = a("SELECT SUM_NUMBER_OF_BYTES_WRITE FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME = 'wait/io/file/sql/binlog'")[0][0]
    expect(of_log >= after[0], f"{of_log} of all log files, {after[0]} of the last one")
    a.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS", f"PURGE BINARY LOGS TO '{pathlib.Path(server.binlogs()[-1]).name}'")
    listed = {row[0] for row in a("SELECT FILE_NAME FROM performance_schema.file_summary_by_instance WHERE EVENT_NAME = 'wait/io/file/sql/binlog'")}
    expect(listed == set(server.binlogs()), f"what is there is listed: {listed} and {server.binlogs()}")
    hold = "memory_summary_by_account_by_event_name WHERE USER = 'root' AND HOST = 'localhost'"
    held = f"SELECT CURRENT_NUMBER_OF_BYTES_USED FROM performance_schema.{hold}"
    quiet = b.value(held)
    a.run("SET @kept = REPEAT('x', 3000000)")
    expect(b.value(held) - quiet >= 3_000_000, f"{b.value(held)} after {quiet}")
    a.run("CREATE USER counted")
    for n in range(3):
        one = Session(server, user="counted")
        one.run("SELECT 1", "SELECT SLEEP(0.02)")
        one.close() if n < 2 else None
    summary = "SELECT statements, statement_latency >= 60000000000, current_connections, total_connections, unique_hosts FROM sys.`x$user_summary` WHERE user = 'counted'"
    wait_for(lambda: a(summary)[0][2] == 1, "connections that are closed")
    expect(a(summary)[0][1:] == (1, 1, 3, 1) and a(summary)[0][0] >= 6, a(summary))
    one.close()
    mine = a.value("SELECT CONNECTION_ID()")
    of_thread = b.value(f"SELECT CURRENT_NUMBER_OF_BYTES_USED FROM performance_schema.memory_summary_by_thread_by_event_name WHERE THREAD_ID = {mine}")
    expect(of_thread >= 3_000_000, f"{of_thread} of the thread")
    expect(int(client(server, "SELECT total_allocated FROM sys.`x$memory_global_total`").strip()) >= of_thread, "all of it")
    a.close()
    b.close()


def explained(server):
    """EXPLAIN FOR CONNECTION: the plan of a statement that waits, in the database of who runs it."""
    a, b, c = Session(server, database="d"), Session(server, database="d"), Session(server)
    number = b.value("SELECT CONNECTION_ID()")
    expect(c(f"EXPLAIN FOR CONNECTION {number}") == (), "nothing runs")
    a.run("BEGIN", "UPDATE t SET v = 9 WHERE id = 1")
    waiting = threading.Thread(target=lambda: b.run("UPDATE t SET v = v + 1 WHERE id = 1"))
    waiting.start()
    wait_for(lambda: c.value(f"SELECT state FROM information_schema.PROCESSLIST WHERE id = {number}") == "waiting for a lock", "it waits")
    row = c(f"EXPLAIN FOR CONNECTION {number}")[0]
    expect(row[1:3] == ("UPDATE", "t") and "PRIMARY" in row, row)
    expect("Update t" in c.value(f"EXPLAIN FORMAT=TREE FOR CONNECTION {number}"), "as a tree")
    c.run("SET explain_format = 'tree'")
    expect("Update t" in c.value(f"EXPLAIN FOR CONNECTION {number}"), "explain_format")
    expect(c("EXPLAIN FORMAT=TRADITIONAL SELECT 1")[0][1] == "SIMPLE", "a format is named")
    client(server, "CREATE USER watcher; GRANT SELECT ON d.* TO watcher")
    out = client(server, f"EXPLAIN FOR CONNECTION {number}", user="watcher", check=False)
    expect("1094" in out.stderr.decode(), out.stderr)
    c.fails("EXPLAIN FOR CONNECTION 999999", 1094)
    c.fails(f"EXPLAIN FOR CONNECTION {c.value('SELECT CONNECTION_ID()')}", 3012)
    a.run("ROLLBACK")
    waiting.join()
    for session in (a, b, c):
        session.close()


def attributes(server):
    """What clients say of themselves, of one's own account's connections and of all."""
    client(server, "CREATE USER IF NOT EXISTS watcher; GRANT SELECT ON d.* TO watcher")
    own, other = Session(server), Session(server, user="watcher")
    number = own.value("SELECT CONNECTION_ID()")
    found = dict(own(f"SELECT ATTR_NAME, ATTR_VALUE FROM performance_schema.session_connect_attrs WHERE PROCESSLIST_ID = {number} ORDER BY ORDINAL_POSITION"))
    expect(found["_client_name"] == "pymysql" and found["_pid"] == str(os.getpid()), found)
    seen = {row[0] for row in other("SELECT PROCESSLIST_ID FROM performance_schema.session_account_connect_attrs")}
    expect(seen == {other.value("SELECT CONNECTION_ID()")}, f"of others' accounts: {seen}")
    other.fails("SELECT * FROM performance_schema.session_connect_attrs", 1142)
    expect({row[0] for row in own("SELECT PROCESSLIST_ID FROM performance_schema.session_account_connect_attrs")} == {number}, "of the own account")
    for session in (own, other):
        session.close()
    expect(int(client(server, "SELECT COUNT(*) FROM performance_schema.session_connect_attrs WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE LIKE '%mysql'")) == 1, "of the client's program")


def bounded(directory):
    """What does not fit is one row; OFF counts nothing."""
    server = Omnibus(directory / "small", "--performance-schema-digests-size=10", "--performance-schema-session-connect-attrs-size=30")
    server.directory.mkdir()
    server.start()
    client(server, "; ".join(f"SELECT 1 AS a{n}" for n in range(50)))
    rows = client(server, f"SELECT COUNT(*), SUM(DIGEST IS NULL), MAX(IF(DIGEST IS NULL, COUNT_STAR, 0)) >= 40 FROM {BY_DIGEST}").split()
    expect(rows == ["11", "1", "1"], rows)
    expect(client(server, "SELECT SUM(LENGTH(ATTR_NAME) + LENGTH(ATTR_VALUE)) BETWEEN 1 AND 30 FROM performance_schema.session_connect_attrs").strip() == "1", "attributes")
    lost = client(server, "SHOW GLOBAL STATUS LIKE 'Performance_schema_digest_lost'").split()
    expect(int(lost[1]) >= 40, lost)
    server.stop()
    server.options = ["--performance-schema=OFF"]
    server.start()
    expect(client(server, f"SELECT COUNT(*) FROM {BY_DIGEST}").strip() == "0", "OFF")
    expect(client(server, "SELECT COUNT(*) FROM performance_schema.file_summary_by_instance").strip() == "0", "OFF counts no files")
    server.stop()


def main():
    with Scratch("omnibus-monitoring-") as directory:
        directory = pathlib.Path(directory)
        server = Omnibus(directory)
        server.start()
        digests(server)
        prepared(server)
        locks(server)
        table_locks(server)
        resources(server)
        explained(server)
        attributes(server)
        usage(server)
        server.stop()
        bounded(directory)
    print("monitoring: ok")


if __name__ == "__main__":
    main()
