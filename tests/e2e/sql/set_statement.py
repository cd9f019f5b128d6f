#!/usr/bin/python3
"""MariaDB's SET STATEMENT .. FOR: what it gives and leaves behind, compared with MariaDB's; its log, and that of a MariaDB source.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import client, connect, error_code, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, into_both_dialects, query, run_chosen, wait_caught_up  # noqa: E402

SETUP = "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(40))"
STATEMENTS = [
    "SET STATEMENT sql_mode = '' FOR INSERT INTO t VALUES (1, REPEAT('x', 50))", "SELECT @@sql_mode = ''",
    "SET STATEMENT div_precision_increment = 10, lock_wait_timeout = 1 + 1 FOR SELECT 1 / 3, @@lock_wait_timeout", "SELECT 1 / 3, @@lock_wait_timeout = 2",
    "SET STATEMENT timestamp = 1 FOR SELECT UNIX_TIMESTAMP()", "SELECT UNIX_TIMESTAMP() > 1000",
    "SET STATEMENT max_statement_time = 0.3 FOR SELECT SLEEP(60)", "SELECT @@max_statement_time",
    "SET STATEMENT lock_wait_timeout = 7 FOR SELECT * FROM missing", "SELECT @@lock_wait_timeout = 7",
    "SET STATEMENT lock_wait_timeout = 7 FOR SET STATEMENT sql_select_limit = 1 FOR SELECT @@sql_select_limit",
    "SET STATEMENT lock_wait_timeout = 5, lock_wait_timeout = 6 FOR SELECT @@lock_wait_timeout", "SELECT @@lock_wait_timeout IN (5, 6)",
    "SET STATEMENT lock_wait_timeout = 5 FOR SET @a = @@lock_wait_timeout", "SELECT @a", "SET STATEMENT sql_mode = DEFAULT FOR SELECT 1",
    "SET STATEMENT foreign_key_checks = OFF FOR CREATE TABLE made (a INT)", "SELECT @@foreign_key_checks", "SET STATEMENT lock_wait_timeout = 5 FOR DROP TABLE made",
    "SET STATEMENT collation_connection = latin1_swedish_ci FOR SELECT COLLATION('a')", "SELECT COLLATION('a') = 'latin1_swedish_ci'",
    "SET STATEMENT autocommit = 0 FOR SELECT 1", "SET STATEMENT character_set_client = latin1 FOR SELECT 1", "SET STATEMENT skip_replication = 1 FOR SELECT 1",
    "SET STATEMENT nosuch = 1 FOR SELECT 1", "SET STATEMENT read_only = 1 FOR SELECT 1", "SET STATEMENT version = 1 FOR SELECT 1",
    "SET STATEMENT sql_mode = 'nosuch' FOR SELECT 1", "SET STATEMENT sql_mode = ''", "SET STATEMENT FOR SELECT 1", "SET STATEMENT SESSION sql_mode = '' FOR SELECT 1",
    "SET STATEMENT lock_wait_timeout = 5 FOR PREPARE p FROM 'SELECT ?'", "SET @x = 7", "SET STATEMENT lock_wait_timeout = 5 FOR EXECUTE p USING @x",
]


def answers(server):
    cursor = connect(server, database="d", autocommit=True).cursor()
    found = {}
    for sql in STATEMENTS:
        rows = []

        def run(sql=sql, rows=rows):
            cursor.execute(sql)
            rows.extend(cursor.fetchall())

        found[sql] = (error_code(run), [[str(value) for value in row] for row in rows])
    return found


def answered(directory):
    theirs = MariaPeer(f"{directory}/theirs", 1)
    theirs.start()
    client(theirs, SETUP)
    expected = answers(theirs)
    theirs.stop()
    ours = OmnibusPeer(f"{directory}/ours", 2, "--dialect=mariadb", "--binlog-format=STATEMENT")
    ours.start()
    client(ours, SETUP)
    for sql, found in answers(ours).items():
        expect(found == expected[sql], f"{sql}: {found} instead of {expected[sql]}")
    # The statement is logged as if it stood alone: other servers need not know the form.
    log = client(ours, "SHOW BINLOG EVENTS")
    expect("CREATE TABLE made" in log and "INSERT INTO t VALUES" in log and "SET STATEMENT" not in log, log)
    ours.stop()


def replicated(directory):
    """A MariaDB that logs texts as they were written, into both dialects, and through `omnibus binlog`'s SQL."""
    source, replicas = into_both_dialects(directory, "--binlog-format=STATEMENT")
    client(source, f"{SETUP}; USE d; SET STATEMENT sql_mode = '', max_statement_time = 10 FOR INSERT INTO t VALUES (1, REPEAT('x', 50));"
                   "SET STATEMENT div_precision_increment = 12 FOR INSERT INTO t VALUES (2, CONCAT(1 / 3));"
                   "SET STATEMENT group_concat_max_len = 5, sql_mode = '' FOR INSERT INTO t SELECT 3, GROUP_CONCAT(b) FROM t WHERE a < 3;"
                   "SET STATEMENT lock_wait_timeout = 5 FOR ALTER TABLE t ADD c INT DEFAULT 5;"
                   "SET STATEMENT auto_increment_increment = 7, sort_buffer_size = 100000 FOR UPDATE t SET c = 6 WHERE a = 1 ORDER BY a;"
                   "SET STATEMENT lock_wait_timeout = 5 FOR CREATE TABLE other (a INT); BEGIN; SET STATEMENT lock_wait_timeout = 5 FOR INSERT INTO other VALUES (1);"
                   "INSERT INTO other VALUES (2); COMMIT; SET STATEMENT lock_wait_timeout = 5 FOR CREATE USER made@localhost IDENTIFIED BY 'x'; SET STATEMENT lock_wait_timeout = 5 FOR GRANT SELECT ON d.* TO made@localhost; "
                   "SET STATEMENT lock_wait_timeout = 5 FOR DROP USER made@localhost; FLUSH BINARY LOGS")
    for replica in replicas:
        wait_caught_up(replica, source)
        for table in ("t", "other"):
            same(query(source, f"SELECT * FROM d.{table}"), query(replica, f"SELECT * FROM d.{table}"), f"{replica.directory.name}: {table}")
        replica.stop()
    source.stop()


def same(expected, found, what):
    expect(expected == found, f"{what}: {found} instead of {expected}")


if __name__ == "__main__":
    run_chosen("set_statement", [answered, replicated])
