#!/usr/bin/python3
"""Histograms of columns: what they say, what the planner makes of them, who keeps them, and what is in the log for replicas of either kind.

Ring: all.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Session, expect, wait_for  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, query, replicate, restart, run_chosen, wait_caught_up  # noqa: E402

ENGINES = ("LSM", "BTREE")
COLUMNS = """id INT PRIMARY KEY, u INT UNIQUE, a INT, n BIGINT UNSIGNED, s VARCHAR(60) COLLATE utf8mb4_general_ci, bin VARBINARY(9), d DATE, t TIME(3), dt DATETIME,
    ts TIMESTAMP NULL, e ENUM('x', 'y', 'z'), st SET('p', 'q'), price DECIMAL(10, 2), f DOUBLE, r FLOAT, y YEAR, b BIT(5), j JSON, txt TEXT"""
ROWS = """i, i, IF(i <= 900, 1, i), IF(i % 4, i % 10, NULL), CONCAT('text', i % 7), UNHEX(HEX(i % 3)), '2024-01-01' + INTERVAL i DAY, SEC_TO_TIME(i), '2024-01-01' + INTERVAL i HOUR,
    '2024-01-01', 1 + i % 3, 1 + i % 3, i / 3, i * 1.5, i / 4, 2000 + i % 5, i % 32, '{}', REPEAT('é', 50)"""
KINDS = {
    "a": "int", "n": "uint", "s": "string", "bin": "string", "d": "date", "t": "time", "dt": "datetime", "ts": "datetime", "e": "enum", "st": "set", "price": "decimal",
    "f": "double", "r": "double", "y": "uint", "b": "uint", "txt": "string",
}


def fill(session, table, engine):
    session(f"CREATE TABLE {table} ({COLUMNS}) ENGINE={engine}")
    session(f"INSERT INTO {table} WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT {ROWS} FROM n")


def histograms(server, table):
    rows = query(server, "SELECT COLUMN_NAME AS c, HISTOGRAM AS h FROM information_schema.COLUMN_STATISTICS WHERE SCHEMA_NAME = 'test' AND TABLE_NAME = %s", table)
    return {row["c"]: json.loads(row["h"]) for row in rows}


def without_time(found):
    return {name: {**document, "last-updated": ""} for name, document in found.items()}


def filtered(server, table, condition):
    return float(query(server, f"EXPLAIN FORMAT=TRADITIONAL SELECT * FROM test.{table} WHERE {condition}")[0]["filtered"])


def shapes(server, table):
    """What the statement says and the documents have, column by column."""
    rows = query(server, f"ANALYZE TABLE test.{table} UPDATE HISTOGRAM ON {', '.join(KINDS)}, j, u, missing WITH 16 BUCKETS")
    said = {row["Msg_text"] for row in rows}
    expect({row["Op"] for row in rows} == {"histogram"} and {row["Table"] for row in rows} == {f"test.{table}"}, rows)
    expected = {f"Histogram statistics created for column '{name}'." for name in KINDS} | {
        "The column 'j' has an unsupported data type.", "The column 'u' is covered by a single-part unique index.", "The column 'missing' does not exist."}
    expect(said == expected, said ^ expected)
    found = histograms(server, table)
    expect({name: document["data-type"] for name, document in found.items()} == KINDS, found)
    for name, document in found.items():
        expect(list(document) == ["buckets", "data-type", "auto-update", "null-values", "collation-id", "last-updated", "sampling-rate", "histogram-type", "number-of-buckets-specified"], document)
        ends = [bucket[1 if document["histogram-type"] == "singleton" else 2] for bucket in document["buckets"]]
        expect(len(ends) <= 16 and ends == sorted(ends) and abs(ends[-1] + document["null-values"] - 1) < 1e-9, f"{name}: {document}")
    expect(found["e"]["buckets"] == [[1, 0.333], [2, 0.667], [3, 1.0]] and found["e"]["histogram-type"] == "singleton", found["e"])
    expect(found["s"]["buckets"][0][0] == "base64:type254:dGV4dDA=" and found["s"]["collation-id"] == 45, found["s"])
    expect(found["a"]["buckets"][0] == [1, 1, 0.9, 1] and found["a"]["histogram-type"] == "equi-height", found["a"])
    expect(found["n"]["null-values"] == 0.25, found["n"])
    return found


def planned(server, table):
    for condition, low, high in (
        ("a = 1", 90, 90), ("a = 950", 0, 0.2), ("a <> 1", 9, 11), ("a = 5000", 0, 0.1), ("a > 1000", 0, 0.1), ("a IN (1, 950)", 89, 91), ("s = 'TEXT3'", 14, 15), ("s IS NULL", 0, 0.1),
        ("n IS NULL", 25, 25), ("n IS NOT NULL", 75, 75), ("n NOT IN (1, 2)", 50, 65), ("d < '2024-04-10'", 8, 12), ("d BETWEEN '2024-04-10' AND '2024-07-19'", 8, 12),
        ("price >= 300", 8, 12), ("e = 'x'", 33, 34), ("ts = '2024-01-01'", 100, 100), ("e = 'x' AND y = 2003", 6, 7), ("NOT (a = 1)", 9, 11), ("f <= 75", 3, 7),
    ):
        share = filtered(server, table, condition)
        expect(low <= share <= high, f"{table}: {condition} leaves {share} of a hundred, not {low} to {high}")


def statements(directory):
    server = OmnibusPeer(f"{directory}/server", 1)
    server.start()
    session = Session(server)
    session("CREATE DATABASE test")
    session.close()
    for engine in ENGINES:
        session = Session(server, database="test")
        fill(session, engine, engine)
        before = filtered(server, engine, "a = 1")
        found = shapes(server, engine)
        expect(before != filtered(server, engine, "a = 1"), "a prepared estimate stayed")
        planned(server, engine)
        restart(server, kill=True)
        session = Session(server, database="test")
        expect(histograms(server, engine) == found, f"{engine}: others behind a crash")
        planned(server, engine)
        follow_definitions(session, server, engine)
    refused(server)
    given(server)
    bounded(server)
    server.stop()


def follow_definitions(session, server, table):
    session(f"ALTER TABLE {table} DROP COLUMN f, RENAME COLUMN d TO day, MODIFY y INT, ADD COLUMN f DOUBLE")
    left = set(KINDS) - {"f", "d", "y"}
    expect(set(histograms(server, table)) == left, histograms(server, table).keys())
    session(f"ALTER TABLE {table} FORCE, ADD INDEX (price)")
    session(f"RENAME TABLE {table} TO other")
    expect(set(histograms(server, "other")) == left, "histograms of a renamed table")
    said = query(server, "ANALYZE TABLE test.other DROP HISTOGRAM ON a, f")
    expect([row["Msg_text"] for row in said] == ["Histogram statistics removed for column 'a'.", "No histogram statistics found for column 'f'."], said)
    restart(server, kill=True)
    expect(set(histograms(server, "other")) == left - {"a"}, "histograms of a renamed table behind a crash")
    again = Session(server, database="test")
    again("CREATE TABLE alike LIKE other")
    expect(not histograms(server, "alike"), "LIKE takes histograms along")
    again("DROP TABLE other, alike")
    expect(query(server, "SELECT COUNT(*) AS n FROM information_schema.COLUMN_STATISTICS")[0]["n"] == 0, "histograms of a dropped table")
    again.close()


def refused(server):
    session = Session(server, database="test")
    session("CREATE TABLE one (id INT PRIMARY KEY, a INT)")
    session("CREATE VIEW seen AS SELECT * FROM one")
    session("CREATE TEMPORARY TABLE passing (a INT)")
    for sql, code in (("one UPDATE HISTOGRAM ON a, A", 1060), ("one UPDATE HISTOGRAM ON a WITH 0 BUCKETS", 1690), ("one UPDATE HISTOGRAM ON a WITH 1025 BUCKETS", 1690), ("one UPDATE HISTOGRAM", 1064)):
        session.fails(f"ANALYZE TABLE {sql}", code)
    for sql, text in (
        ("one, one UPDATE HISTOGRAM ON a", "Only one table can be specified while modifying histogram statistics."), ("seen UPDATE HISTOGRAM ON a", "Cannot create histogram statistics for a view."),
        ("passing UPDATE HISTOGRAM ON a", "Cannot create histogram statistics for a temporary table."), ("nowhere UPDATE HISTOGRAM ON a", "Table 'test.nowhere' doesn't exist"),
        ("one UPDATE HISTOGRAM ON a USING DATA '{}'", "Unable to build histogram statistics for column 'a' in table 'test'.'one'"),
        ("one UPDATE HISTOGRAM ON a USING DATA 'x'", "Invalid JSON text in argument 1 to function UPDATE HISTOGRAM: \"Invalid value.\" at position 0."), ("one UPDATE HISTOGRAM ON id", "The column 'id' is covered by a single-part unique index."),
    ):
        said = session(f"ANALYZE TABLE {sql}")
        expect(said[0][2:] == ("Error", text), f"{sql}: {said}")
    session("CREATE USER reader@'%', writer@'%'")
    session("GRANT SELECT ON test.* TO reader@'%'")
    session("GRANT SELECT, INSERT ON test.* TO writer@'%'")
    reader, writer = (Session(server, user=user, database="test") for user in ("reader", "writer"))
    reader.fails("ANALYZE TABLE one UPDATE HISTOGRAM ON a", 1142)
    session("SET GLOBAL read_only = ON")
    expect(writer("ANALYZE TABLE one UPDATE HISTOGRAM ON a")[0][2:] == ("Error", "The server is in read-only mode."), "read_only")
    expect(writer("ANALYZE TABLE one")[0][3] == "OK", "read_only")
    session("SET GLOBAL read_only = OFF")
    reader.close()
    writer.close()
    session("BEGIN")
    session("INSERT INTO one VALUES (1, 1)")
    session("ANALYZE TABLE one UPDATE HISTOGRAM ON a")
    session("ROLLBACK")
    expect(session.value("SELECT COUNT(*) FROM one") == 1, "it commits what is open")
    session.close()


def given(server):
    session = Session(server, database="test")
    document = {
        "buckets": [[1, 0.5], [7, 0.9]], "data-type": "int", "null-values": 0.1, "collation-id": 8, "last-updated": "2026-01-02 03:04:05.000000", "sampling-rate": 1.0,
        "histogram-type": "singleton", "number-of-buckets-specified": 100, "auto-update": False,
    }
    said = session(f"ANALYZE TABLE one UPDATE HISTOGRAM ON a USING DATA '{json.dumps(document)}'")
    expect(said[0][3] == "Histogram statistics created for column 'a'.", said)
    expect(histograms(server, "one")["a"] == document, histograms(server, "one"))
    expect(filtered(server, "one", "a = 7") == 40, "a given histogram")
    text = dict(document, **{"data-type": "string", "buckets": [["base64:type254:YWI=", 0.25]], "null-values": 0.75})
    session("CREATE TABLE words (w VARCHAR(10))")
    session(f"ANALYZE TABLE words UPDATE HISTOGRAM ON w USING DATA '{json.dumps(text)}'")
    expect(filtered(server, "words", "w = 'AB'") == 25, "a given histogram of text")
    for bad in ({"buckets": [[7, 0.5], [1, 0.9]]}, {"buckets": [[1, 0.9], [7, 0.5]]}, {"buckets": [[1, 2.0]]}, {"data-type": "uint"}, {"histogram-type": "other"}, {"null-values": -1}, {"buckets": [["x"]]}):
        said = session(f"ANALYZE TABLE one UPDATE HISTOGRAM ON a USING DATA '{json.dumps({**document, **bad})}'")
        expect(said[0][3].startswith("Unable to build histogram statistics"), f"{bad}: {said}")
    # AUTO UPDATE: ANALYZE TABLE makes it anew.
    session("ANALYZE TABLE one UPDATE HISTOGRAM ON a WITH 4 BUCKETS AUTO UPDATE")
    session("INSERT INTO one VALUES (2, 5), (3, 5)")
    session("ANALYZE TABLE one")
    expect(histograms(server, "one")["a"]["buckets"] == [[1, 1 / 3], [5, 1.0]], histograms(server, "one"))
    session.close()


def bounded(server):
    """Of more values than may be held a part is taken."""
    session = Session(server, database="test")
    session("CREATE TABLE many (id INT PRIMARY KEY, a INT)")
    session("SET cte_max_recursion_depth = 1000000, histogram_generation_max_mem_size = 1000000")
    session("INSERT INTO many WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40000) SELECT i, i FROM n")
    session("ANALYZE TABLE many UPDATE HISTOGRAM ON a")
    found = histograms(server, "many")["a"]
    expect(0.05 < found["sampling-rate"] < 0.6 and len(found["buckets"]) <= 100, found["sampling-rate"])
    share = filtered(server, "many", "a < 10000")
    expect(23 < share < 27, share)
    session.close()


def replicas(directory):
    """In every format: a replica makes its own, one of the other kind analyses the table."""
    source = OmnibusPeer(f"{directory}/source", 1)
    replica, maria = OmnibusPeer(f"{directory}/replica", 2), MariaPeer(f"{directory}/maria", 3)
    for server in (source, replica, maria):
        server.start()
    create_user(source)
    replicate(replica, source, gtid=True)
    replicate(maria, source)
    for number, binlog_format in enumerate(("ROW", "STATEMENT", "MIXED")):
        session = Session(source)
        session("CREATE DATABASE IF NOT EXISTS test")
        session("USE test")
        session(f"SET binlog_format = {binlog_format}")
        session(f"CREATE TABLE t{number} (id INT PRIMARY KEY, a INT, s VARCHAR(10))")
        session(f"INSERT INTO t{number} VALUES (1, 1, 'a'), (2, 1, 'b'), (3, 2, NULL)")
        session(f"ANALYZE TABLE t{number} UPDATE HISTOGRAM ON a, s")
        session(f"ANALYZE LOCAL TABLE t{number} DROP HISTOGRAM ON a")
        session(f"ANALYZE TABLE t{number}")
        session(f"INSERT INTO t{number} VALUES (4, 1, 'a')")
        for server in (replica, maria):
            wait_caught_up(server, source)
        here, there = histograms(source, f"t{number}"), without_time(histograms(replica, f"t{number}"))
        expect(set(here) == {"s"} and set(there) == {"a", "s"}, f"{binlog_format}: {here} {there}")
        expect(without_time(here)["s"] == there["s"], f"{binlog_format}: {here} {there}")
        session.close()
    restart(replica, kill=True)
    wait_for(lambda: set(histograms(replica, "t0")) == {"a", "s"}, "the replica's histograms behind a crash")
    own = query(source, "SELECT @@gtid_executed AS g")[0]["g"]
    expect(query(replica, "SELECT @@gtid_executed AS g")[0]["g"] == own, "the replica has other GTIDs")
    for server in (replica, maria, source):
        server.stop()


if __name__ == "__main__":
    run_chosen("histograms", [statements, replicas])
