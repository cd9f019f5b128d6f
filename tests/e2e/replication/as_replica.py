#!/usr/bin/python3
"""Omnibus as a replica: of a MariaDB and of itself; statements, positions, errors, filters, kill -9 of either side.

Ring: gate.
"""

import json
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Scratch, Session, error_code, expect  # noqa: E402
from peers import (PASSWORD, USER, MariaPeer, OmnibusPeer, brief, create_user, expect_equal, log_position, query,  # noqa: E402
                   replicate, restart, status, wait_caught_up, wait_for)

TABLES = """CREATE DATABASE a|CREATE DATABASE b
CREATE TABLE a.t (id INT AUTO_INCREMENT PRIMARY KEY, n BIGINT, s VARCHAR(50), UNIQUE KEY (s)) ENGINE=InnoDB
CREATE TABLE a.k (n INT, s VARCHAR(40), id INT PRIMARY KEY AUTO_INCREMENT) ENGINE=InnoDB"""


def fill(server, first, count):
    for n in range(first, first + count):
        query(server, "INSERT INTO a.t (id, n, s) VALUES (%s, %s, %s)", n, n * 7, f"row {n}")
    query(server, f"UPDATE a.t SET n = n + 1 WHERE id % 3 = 0 AND id >= {first}")
    query(server, f"DELETE FROM a.t WHERE id % 7 = 0 AND id >= {first}")
    query(server, "INSERT INTO a.k (n, s) VALUES (%s, 'x'), (%s, 'y')", first, first)
    query(server, "UPDATE a.k SET s = 'changed' WHERE n = %s LIMIT 1", first)
    query(server, "REPLACE INTO b.t VALUES (%s, '2020-01-02 03:04:05', 1.5)", first)


def tables(server):
    for line in TABLES.splitlines():
        for statement in line.split("|"):
            query(server, statement)
    query(server, "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP NULL, d DECIMAL(20,5)) ENGINE=InnoDB", database="b")


def basics(folder, source):
    """From the first file, restarts and kills of both sides in the middle: APPLY-1, no transaction twice, none left out."""
    create_user(source)
    tables(source)
    replica = OmnibusPeer(folder / "replica", 2)
    replica.start()
    expect(error_code(lambda: query(replica, "START REPLICA")) == 1200, "START REPLICA without a source")
    replicate(replica, source)
    fill(source, 1, 50)
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["a", "b"], least_rows=40)
    wait_for(lambda: status(replica)["Seconds_Behind_Master"] == 0, lambda: f"idle and caught up: {brief(status(replica))}")
    row = status(replica)
    expect(row["Slave_IO_Running"] == "Yes" and row["Slave_SQL_Running"] == "Yes", brief(row))
    expect(row["Master_Server_Id"] == 1 and row["Master_Host"] == "127.0.0.1", str(row))

    done = threading.Event()
    written = []

    def write():
        n = 1000
        while not done.is_set():
            try:
                query(source, "INSERT INTO a.t (id, n, s) VALUES (%s, 0, %s)", n, f"w {n}")
                query(source, "UPDATE a.t SET n = n + 1 WHERE id = 1")
                written.append(n)
            except Exception:  # noqa: BLE001  the source is being restarted
                done.wait(0.05)
            n += 1

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for _ in range(3):
        start = len(written)
        wait_for(lambda: len(written) > start + 60, "the writer does not write")
        restart(replica, kill=True)
    start = len(written)
    restart(source, kill=True)
    wait_for(lambda: len(written) > start + 60, "the writer does not write")
    done.set()
    writer.join()
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["a", "b"])
    restart(replica)
    wait_caught_up(replica, source)
    return replica


def control(source, replica):
    """STOP, UNTIL, skip counter, delay, RESET, and what is refused."""
    session = Session(replica)
    # Allows another order and asks for none.
    session("SET GLOBAL replica_preserve_commit_order = OFF")
    for statement, note in (("START REPLICA", 3083), ("STOP REPLICA", 0), ("STOP REPLICA", 3084)):
        session(statement)
        expect([row[1] for row in session("SHOW WARNINGS")] == ([note] if note else []), f"{statement}: {session('SHOW WARNINGS')}")
    session.close()
    row = status(replica)
    expect(row["Slave_IO_Running"] == "No" and row["Slave_SQL_Running"] == "No", brief(row))
    expect(row["Seconds_Behind_Master"] is None, "lag without threads is not known")
    query(source, "INSERT INTO a.t (id, s) VALUES (100001, 'before')")
    file, position = log_position(source)
    query(source, "INSERT INTO a.t (id, s) VALUES (100002, 'after')")
    query(replica, f"START REPLICA UNTIL SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={position}")
    wait_for(lambda: status(replica)["Slave_SQL_Running"] == "No", lambda: brief(status(replica)))
    ids = [row["id"] for row in query(replica, "SELECT id FROM a.t WHERE id > 100000")]
    expect(ids == [100001], f"UNTIL: {ids}")
    expect(error_code(lambda: query(replica, "CHANGE REPLICATION SOURCE TO SOURCE_PORT=1")) == 3021, "with a running receiver")

    query(replica, "SET GLOBAL sql_replica_skip_counter = 1")
    query(replica, "START REPLICA SQL_THREAD")
    query(source, "INSERT INTO a.t (id, s) VALUES (100003, 'not skipped')")
    wait_caught_up(replica, source)
    ids = [row["id"] for row in query(replica, "SELECT id FROM a.t WHERE id > 100000")]
    expect(ids == [100001, 100003], f"skip counter: {ids}")
    query(source, "DELETE FROM a.t WHERE id = 100002")
    wait_for(lambda: status(replica)["Last_SQL_Errno"] == 1032, lambda: brief(status(replica)))
    row = status(replica)
    expect("at source log binlog." in row["Last_SQL_Error"] and row["Last_SQL_Error_Timestamp"], str(row))
    query(replica, "SET SESSION sql_log_bin = 0")
    query(replica, "INSERT INTO a.t (id, s) VALUES (100002, 'after')")
    query(replica, "START REPLICA")
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["a", "b"])

    query(replica, "STOP REPLICA SQL_THREAD")
    query(replica, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600")
    query(replica, "START REPLICA SQL_THREAD")
    query(source, "INSERT INTO a.t (id, s) VALUES (100004, 'late')")
    wait_for(lambda: status(replica)["SQL_Remaining_Delay"] is not None, "SOURCE_DELAY does not delay")
    expect(query(replica, "SELECT id FROM a.t WHERE id = 100004") == [], "applied too early")
    query(replica, "STOP REPLICA SQL_THREAD")
    query(replica, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 1")
    query(replica, "START REPLICA SQL_THREAD")
    wait_caught_up(replica, source)
    query(replica, "STOP REPLICA SQL_THREAD")
    query(replica, "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0")
    query(replica, "START REPLICA SQL_THREAD")


def threads(replica):
    """What SHOW PROCESSLIST has of replication: states by what the thread is, and ids."""
    rows = [row for row in query(replica, "SHOW PROCESSLIST") if row["User"] == "system user"]
    receivers = [row for row in rows if row["Command"] in ("Connect", "Slave_IO")]
    workers = [row for row in rows if row["State"] == "Waiting for an event from Coordinator"]
    coordinators = [row for row in rows if row not in receivers and row not in workers]
    return receivers, coordinators, workers


def administration(source, replica):
    """The threads as lines that KILL ends, and performance_schema's tables, by name, joined and filtered."""
    def idle():
        receivers, coordinators, workers = threads(replica)
        return ([row["State"] for row in receivers] == ["Waiting for source to send event"] and len(workers) == 4
                and [row["State"] for row in coordinators] == ["Replica has read all relay log; waiting for more updates"])

    query(source, "INSERT INTO a.t (id, s) VALUES (150001, 'seen')")
    wait_caught_up(replica, source)
    wait_for(idle, lambda: str(query(replica, "SHOW PROCESSLIST")))
    expect(error_code(lambda: query(replica, "KILL 4000000000")) == 1094, "KILL of nobody")
    for which in range(3):
        query(source, "INSERT INTO a.t (s) VALUES (UUID())")
        kind = threads(replica)[which][0]
        query(replica, f"KILL {kind['Id']}")
        stopped = "Slave_IO_Running" if which == 0 else "Slave_SQL_Running"
        wait_for(lambda: status(replica)[stopped] == "No", lambda: f"{kind} is killed: {brief(status(replica))}")
        row = status(replica)
        expect(row["Last_SQL_Errno"] == 0 and row["Last_IO_Errno"] == 0, brief(row))
        wait_for(lambda: kind["Id"] not in [row["Id"] for row in query(replica, "SHOW PROCESSLIST")], "a killed thread is listed")
        query(replica, "START REPLICA")
        wait_caught_up(replica, source)
        wait_for(idle, lambda: str(query(replica, "SHOW PROCESSLIST")))
    query(source, "INSERT INTO a.t (s) VALUES (UUID())")
    wait_caught_up(replica, source)
    last = query(source, "SELECT @@gtid_binlog_pos AS p")[0]["p"]
    joined = ("SELECT c.HOST, c.PORT, s.SERVICE_STATE, s.LAST_QUEUED_TRANSACTION, w.WORKER_ID, w.THREAD_ID, "
                "w.LAST_APPLIED_TRANSACTION_END_APPLY_TIMESTAMP > NOW(6) - INTERVAL 5 MINUTE AS late, p.STATE "
                "FROM performance_schema.replication_connection_configuration c "
                "JOIN performance_schema.replication_connection_status s USING (CHANNEL_NAME) "
                "JOIN performance_schema.replication_applier_status_by_worker w ON w.CHANNEL_NAME = c.CHANNEL_NAME "
                "JOIN information_schema.PROCESSLIST p ON p.ID = w.THREAD_ID "
                "WHERE s.SERVICE_STATE = 'ON' AND w.LAST_APPLIED_TRANSACTION = %s")
    # A worker says that it is done after the position says so. Times are in the session's zone, whatever the server's is.
    row = wait_for(lambda: query(replica, joined, last, init_command="SET time_zone = '+09:30'"), f"no worker has applied {last}")
    expect(len(row) == 1 and row[0]["LAST_QUEUED_TRANSACTION"] == last and row[0]["late"] == 1
           and row[0]["PORT"] == source.port, f"{last}: {row}")

    def coordinator():
        row = query(replica, "SELECT * FROM performance_schema.replication_applier_status_by_coordinator")[0]
        return row["SERVICE_STATE"], row["LAST_PROCESSED_TRANSACTION"], row["PROCESSING_TRANSACTION"]
    wait_for(lambda: coordinator() == ("ON", last, ""), lambda: str(coordinator()))
    row = query(replica, "SELECT * FROM performance_schema.log_status")[0]
    place = json.loads(row["LOCAL"])
    expect((place["binary_log_file"], place["binary_log_position"]) == log_position(replica), str(row))
    described = query(replica, "SELECT COLUMN_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'performance_schema' "
                      "AND TABLE_NAME = 'replication_connection_status' AND COLUMN_NAME IN ('SERVICE_STATE', 'LAST_ERROR_TIMESTAMP')")
    expect([row["COLUMN_TYPE"] for row in described] == ["enum('ON','OFF','CONNECTING')", "timestamp(6)"], str(described))
    expect("replication_applier_filters" in [row["Tables_in_performance_schema"] for row in
                                             query(replica, "SHOW TABLES", database="performance_schema")], "SHOW TABLES")
    query(replica, "CREATE USER nobody")
    expect(error_code(lambda: query(replica, "SELECT * FROM performance_schema.replication_connection_status",
                                    user="nobody")) == 1142, "who may read it")
    query(replica, "GRANT SELECT ON performance_schema.* TO nobody")
    expect(len(query(replica, "SELECT * FROM performance_schema.replication_applier_status", user="nobody")) == 1, "a monitor")
    query(replica, "DROP USER nobody")
    query(replica, "DELETE FROM a.t WHERE id = 150001")
    query(source, "DELETE FROM a.t WHERE id = 150001")
    wait_for(lambda: status(replica)["Last_SQL_Errno"] == 1032, lambda: brief(status(replica)))
    row = query(replica, "SELECT LAST_ERROR_NUMBER AS n, LAST_ERROR_MESSAGE AS m, APPLYING_TRANSACTION AS t "
                "FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_TIMESTAMP > 0")
    last = query(source, "SELECT @@gtid_binlog_pos AS p")[0]["p"]
    expect(len(row) == 1 and row[0]["n"] == 1032 and row[0]["m"] == status(replica)["Last_SQL_Error"] and row[0]["t"] == last, str(row))
    query(replica, "SET GLOBAL sql_replica_skip_counter = 1")
    query(replica, "START REPLICA")
    wait_caught_up(replica, source)


def conversions(source, replica):
    """A column that is wider here, from a source whose log does not say what is unsigned: refused, allowed, and applied."""
    query(source, "CREATE TABLE a.w (a INT UNSIGNED PRIMARY KEY, s VARCHAR(5)) ENGINE=InnoDB")
    wait_caught_up(replica, source)
    query(replica, "ALTER TABLE a.w MODIFY a BIGINT UNSIGNED, MODIFY s VARCHAR(50)")
    expect(error_code(lambda: query(replica, "SET GLOBAL replica_type_conversions = 'ALL'")) == 1231, "no such conversion")
    for allowed in ("", "ALL_NON_LOSSY"):
        query(replica, "STOP REPLICA")
        query(replica, f"SET GLOBAL slave_type_conversions = '{allowed}'")
        query(replica, "START REPLICA")
        if not allowed:
            query(source, "INSERT INTO a.w VALUES (4000000000, 'x')")
            wait_for(lambda: status(replica)["Last_SQL_Errno"] == 1677, lambda: brief(status(replica)))
            told = "Column 0 of table 'a.w' cannot be converted from type 'int' to type 'bigint unsigned'"
            expect(told in status(replica)["Last_SQL_Error"], brief(status(replica)))
    wait_caught_up(replica, source)
    expect(query(replica, "SELECT * FROM a.w") == [{"a": 4000000000, "s": "x"}], str(query(replica, "SELECT * FROM a.w")))
    query(source, "DROP TABLE a.w")
    wait_caught_up(replica, source)


def read_only(source, replica):
    """The appliers may write where nobody else may."""
    query(replica, "SET GLOBAL super_read_only = ON")
    query(source, "INSERT INTO a.t (id, s) VALUES (200001, 'read only')")
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["a"])
    query(replica, "SET GLOBAL read_only = OFF")


def connection_errors(source, replica):
    """A wrong password is told and tried again; it works once it is right."""
    query(replica, "STOP REPLICA")
    query(replica, "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='wrong', SOURCE_CONNECT_RETRY=1")
    query(replica, "START REPLICA")
    wait_for(lambda: status(replica)["Last_IO_Errno"] == 1045, lambda: brief(status(replica)))
    row = status(replica)
    expect(row["Slave_IO_Running"] == "Connecting" and "wrong" not in row["Last_IO_Error"], brief(row))
    query(replica, "STOP REPLICA")
    query(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='{PASSWORD}'")
    query(replica, "START REPLICA")
    query(source, "INSERT INTO a.t (id, s) VALUES (300001, 'again')")
    wait_caught_up(replica, source)
    for text in (replica.directory / "server.log", *map(pathlib.Path, replica.binlogs())):
        expect(PASSWORD.encode() not in text.read_bytes(), f"the password is in {text}")
    expect((replica.datadir / "replica_passwords").stat().st_mode & 0o77 == 0, "only the server may read passwords")
    query(replica, "STOP REPLICA")
    query(replica, "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.999999', SOURCE_LOG_POS=4")
    query(replica, "START REPLICA")
    wait_for(lambda: status(replica)["Slave_IO_Running"] == "No", lambda: brief(status(replica)))
    expect(status(replica)["Last_IO_Errno"] == 1236, brief(status(replica)))


def filters(folder, source):
    """do, ignore, wild and rewrite, by option and by statement; the position goes on over what is left out."""
    replica = OmnibusPeer(folder / "filtered", 3, "--replicate-ignore-table=a.k", "--replicate-rewrite-db=b->c")
    replica.start()
    query(replica, "CREATE DATABASE c")
    replicate(replica, source)
    wait_for(lambda: status(replica)["Last_SQL_Errno"] or status(replica)["Seconds_Behind_Master"] == 0, lambda: brief(status(replica)))
    row = status(replica)
    expect(row["Replicate_Ignore_Table"] == "a.k" and row["Replicate_Rewrite_DB"] == "(b,c)", str(row))
    wait_caught_up(replica, source)
    expect(query(replica, "SHOW TABLES FROM a") == [{"Tables_in_a": "t"}], str(query(replica, "SHOW TABLES FROM a")))
    expect(len(query(replica, "SELECT * FROM c.t")) > 0, "rows of b.t are in c.t")
    expect(error_code(lambda: query(replica, "CHANGE REPLICATION FILTER REPLICATE_DO_DB=(x)")) == 3085, "while it runs")
    query(replica, "STOP REPLICA SQL_THREAD")
    query(replica, "CHANGE REPLICATION FILTER REPLICATE_DO_DB=(a), REPLICATE_WILD_IGNORE_TABLE=('a.k%', 'mysql.%'), "
                   "REPLICATE_REWRITE_DB=(), REPLICATE_IGNORE_TABLE=()")
    query(replica, "START REPLICA SQL_THREAD")
    query(source, "INSERT INTO b.t VALUES (400001, NULL, 0)")
    query(source, "INSERT INTO a.k (n, s) VALUES (1, 'z')")
    query(source, "INSERT INTO a.t (id, s) VALUES (400001, 'kept')")
    wait_caught_up(replica, source)
    expect(query(replica, "SELECT id FROM a.t WHERE id = 400001") != [], "a.t is replicated")
    expect(query(replica, "SELECT id FROM c.t WHERE id = 400001") == [], "b is not")
    # Texts: an alias is not a table, the first table that a rule names decides, and accounts are in mysql.user.
    session = Session(source)
    session.run("USE a", "SET SESSION binlog_format = STATEMENT", "DELETE kx FROM t kx WHERE kx.id = 400001",
                "CREATE TABLE z (a INT)", "CREATE TABLE k9 (a INT)", "DROP TABLE z, k9", "CREATE USER filtered", "DROP USER filtered",
                "CREATE USER filtered")
    session.close()
    wait_caught_up(replica, source)
    expect(query(replica, "SELECT id FROM a.t WHERE id = 400001") == [], "a row that is deleted by an alias")
    expect([row["Tables_in_a"] for row in query(replica, "SHOW TABLES FROM a")] == ["t", "z"], "a statement that names an ignored table")
    expect(query(replica, "SELECT User FROM mysql.user WHERE User = 'filtered'") == [], "an account")
    query(source, "DROP USER filtered")
    rules = query(replica, "SELECT FILTER_NAME AS name, FILTER_RULE AS rule, CONFIGURED_BY AS who, COUNTER AS n FROM "
                  "performance_schema.replication_applier_filters ORDER BY FILTER_NAME")
    expect([(row["name"], row["rule"], row["who"]) for row in rules]
           == [("REPLICATE_DO_DB", "a", "CHANGE_REPLICATION_FILTER"), ("REPLICATE_WILD_IGNORE_TABLE", "a.k%,mysql.%", "CHANGE_REPLICATION_FILTER")]
           and rules[0]["n"] > 0 and rules[1]["n"] > 0, str(rules))
    query(replica, "STOP REPLICA")
    query(replica, "RESET REPLICA ALL")
    expect(status(replica) == {}, "RESET REPLICA ALL leaves nothing")
    replica.stop()


def main():
    with Scratch("omnibus-replica-") as name:
        folder = pathlib.Path(name)
        source = MariaPeer(folder / "source", 1)
        source.start()
        replica = basics(folder, source)
        control(source, replica)
        administration(source, replica)
        conversions(source, replica)
        read_only(source, replica)
        filters(folder, source)
        connection_errors(source, replica)
        replica.stop()
        source.stop()
    print("replica: ok")


if __name__ == "__main__":
    main()
