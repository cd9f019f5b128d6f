#!/usr/bin/python3
"""MariaDB's tables of numbers (`seq_1_to_500`): the answers of a MariaDB, little memory, and statements of a MariaDB source.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import client, connect, error_code, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, into_both_dialects, query, run_chosen, wait_caught_up  # noqa: E402

STATEMENTS = [
    "SELECT * FROM seq_1_to_3", "SELECT * FROM seq_5_to_1_step_2", "SELECT * FROM seq_10_to_1_step_4", "SELECT * FROM sq.seq_10_to_10", "SELECT * FROM seq_01_to_03",
    "SELECT * FROM seq_1_to_10_step_3 ORDER BY seq DESC", "SELECT COUNT(*), SUM(seq), MAX(seq) FROM seq_0_to_20000", "SELECT a.seq, b.seq FROM seq_1_to_9 a JOIN seq_5_to_12 b USING (seq) WHERE a.seq > 6",
    "SELECT * FROM seq_1_to_3 AS x WHERE x.seq > 1 FOR UPDATE", "SELECT x.seq FROM t LEFT JOIN seq_1_to_2 x ON x.seq = t.a ORDER BY t.a", "SELECT * FROM SEQ_1_to_2", "SELECT * FROM seq_1_to_3_",
    "INSERT INTO t SELECT seq + 10 FROM seq_1_to_5 WHERE seq % 2", "SELECT * FROM t ORDER BY a", "DELETE t FROM t JOIN seq_11_to_11 s ON s.seq = t.a",
    "UPDATE t JOIN seq_1_to_3 s ON t.a = s.seq SET t.a = t.a + 100", "SELECT * FROM t ORDER BY a", "SELECT table_name FROM information_schema.tables WHERE table_schema = 'sq'",
    "SELECT seq FROM seq_1_to_1000000000000 LIMIT 2",
]
REFUSED = ["INSERT INTO seq_1_to_3 VALUES (5)", "DELETE FROM seq_1_to_3", "UPDATE seq_1_to_3 SET seq = 4", "TRUNCATE seq_1_to_3"]
SETUP = "CREATE DATABASE sq; CREATE TABLE sq.t (a BIGINT PRIMARY KEY); INSERT INTO sq.t VALUES (1), (2), (3)"


def answers(server):
    cursor = connect(server, database="sq", autocommit=True).cursor()
    found = []
    for sql in STATEMENTS:
        rows = []

        def run(sql=sql, rows=rows):
            cursor.execute(sql)
            rows.extend(cursor.fetchall())

        found.append((sql, error_code(run), rows))
    return found, [error_code(lambda: cursor.execute(sql)) != 0 for sql in REFUSED]  # noqa: B023


def answered(directory):
    theirs, ours = MariaPeer(f"{directory}/theirs", 1), OmnibusPeer(f"{directory}/ours", 2, "--dialect=mariadb")
    found = []
    for server in (theirs, ours):
        server.start()
        client(server, SETUP)
        found.append(answers(server))
    expect(all(found[0][1]), "MariaDB changes numbers")
    expect(found[1][1] == found[0][1], f"numbers can be changed: {found[1][1]}")
    for expected, answer in zip(found[0][0], found[1][0]):
        expect(answer == expected, f"{answer} instead of {expected}")
    cursor = connect(ours, database="sq").cursor()
    cursor.execute("SET max_statement_time = 0.5")
    expect(error_code(lambda: cursor.execute("SELECT COUNT(*) FROM seq_1_to_1000000000000000")) == 1969, "it counts on")
    # A stored table of the name comes first; who may not read the database may not read its numbers.
    client(theirs, "DROP DATABASE sq")
    cursor.execute("SET max_statement_time = 0")
    cursor.execute("CREATE TABLE seq_1_to_2 (v INT)")
    cursor.execute("SELECT * FROM seq_1_to_2")
    expect(cursor.fetchall() == (), "the stored table is hidden")
    client(ours, "CREATE USER weak@localhost")
    weak = connect(ours, user="weak").cursor()
    expect(error_code(lambda: weak.execute("SELECT * FROM sq.seq_1_to_3")) == 1142, "anybody reads it")
    for server in (theirs, ours):
        server.stop()


def replicated(directory):
    source, replicas = into_both_dialects(directory, "--binlog-format=MIXED")
    client(source, f"{SETUP}; INSERT INTO sq.t SELECT seq + 10 FROM sq.seq_1_to_500; CREATE TABLE sq.u AS SELECT seq FROM sq.seq_7_to_1_step_3; FLUSH BINARY LOGS")
    for replica in replicas:
        wait_caught_up(replica, source)
        for table, column in (("t", "a"), ("u", "seq")):
            sql = f"SELECT * FROM sq.{table} ORDER BY {column}"
            expect(query(replica, sql) == query(source, sql), f"{replica.directory.name}: {table} differs")
        replica.stop()
    source.stop()


if __name__ == "__main__":
    run_chosen("number_tables", [answered, replicated])
