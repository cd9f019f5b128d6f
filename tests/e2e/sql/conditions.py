#!/usr/bin/python3
"""What @@warning_count and @@error_count tell of the statement before, wherever they are asked for; and notes of DROP .. IF EXISTS.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import connect, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, run_chosen  # noqa: E402

SETUP = ["CREATE DATABASE d", "USE d", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (7)",
         "CREATE PROCEDURE p() BEGIN DO 1/0; SET @a = @@warning_count; SELECT 1/0, 2/0 INTO @x, @y; SELECT @@warning_count + 0 INTO @b; END",
         "PREPARE counted FROM 'SELECT @@warning_count'"]
TWO = "SELECT 1/0, 2/0"
COUNTED = [
    ([TWO, "SET @a = @@warning_count"], "SELECT @a", 2),
    ([TWO, "SET @a = @@warning_count + 1"], "SELECT @a", 3),
    ([TWO, "SET @a = @@warning_count, @b = @@warning_count + 0, @c = 1/0"], "SELECT CONCAT(@a, @b)", "22"),
    ([TWO, "SET @c = 1/0, @d = 2/0, @e = 3/0"], "SELECT @@warning_count", 3),
    (["SELECT missing FROM t", "SET @a = @@error_count"], "SELECT @a", 1),
    (["SELECT 1 FROM", "SET @a = CONCAT(@@error_count)"], "SELECT @a", "1"),
    (["SET max_sort_length = 1", "SET @a = @@warning_count"], "SELECT @a", 1),
    (["SET nosuch = 1", "SET @a = @@error_count"], "SELECT @a", 1),
    ([TWO], "SELECT @@warning_count + 1", 3),
    ([TWO], "SELECT @@WARNING_COUNT", 2),
    ([TWO], "EXECUTE counted", 2),
    ([TWO, "SELECT @@warning_count INTO @a"], "SELECT @a", 2),
    ([TWO], "SELECT @@warning_count FROM t", 0),
    ([TWO, "UPDATE t SET a = @@warning_count"], "SELECT a FROM t", 0),
    (["CALL p()"], "SELECT CONCAT(@a, @b)", "12"),
]
DROPS = {
    "DROP TABLE IF EXISTS q1, q2": ["Note 1051 Unknown table 'd.q1,d.q2'"],
    "DROP TEMPORARY TABLE IF EXISTS q1, q2": ["Note 1051 Unknown table 'd.q1,d.q2'"],
    "DROP VIEW IF EXISTS q1, q2": ["Note 4092 Unknown VIEW: 'd.q1,d.q2'"],
    "DROP TABLE IF EXISTS q1": ["Note 1051 Unknown table 'd.q1'"],
}


def run(cursor, sql):
    try:
        cursor.execute(sql)
        rows = cursor.fetchall()
        while cursor.nextset():
            pass
        return rows
    except Exception as error:
        return error.args[0]


def value(text):
    return int(text) if isinstance(text, int) else str(text)


def answers(server):
    cursor = connect(server, autocommit=True).cursor()
    for sql in SETUP:
        cursor.execute(sql)
    for before, asked, expected in COUNTED:
        for sql in before:
            run(cursor, sql)
        found = run(cursor, asked)
        expect(found and value(found[0][0]) == expected, f"{server.name}: {before}, {asked}: {found} instead of {expected}")
    return cursor


def notes(cursor, sql):
    cursor.execute(sql)
    cursor.execute("SHOW WARNINGS")
    return [" ".join(map(str, line)) for line in cursor.fetchall()]


def both_dialects(directory):
    """MariaDB, and ours of its dialect, in the same words; then MySQL's."""
    theirs, ours = MariaPeer(f"{directory}/theirs", 1), OmnibusPeer(f"{directory}/ours", 2, "--dialect=mariadb")
    for server in (theirs, ours):
        server.start()
        server.name = type(server).__name__
        cursor = answers(server)
        for sql, expected in DROPS.items():
            found = notes(cursor, sql)
            expect(found == expected, f"{server.name}: {sql}: {found}")
        server.stop()
    mysql = OmnibusPeer(f"{directory}/mysql", 3)
    mysql.start()
    mysql.name = "the mysql dialect"
    cursor = answers(mysql)
    for sql in DROPS:
        found = notes(cursor, sql)
        expected = [f"Note 1051 Unknown table 'd.{name}'" for name in ("q1", "q2") if name in sql]
        expect(found == expected, f"{mysql.name}: {sql}: {found}")
    mysql.stop()


LONG = [
    "CREATE DATABASE d", "USE d", "CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1), (2), (3)",
    # The most characters that the item may have, of the most bytes.
    "SET @words = REPEAT('\U0001f600', 128)",
    """CREATE PROCEDURE p(again INT)
BEGIN
    DECLARE EXIT HANDLER FOR SQLEXCEPTION
    BEGIN
        GET STACKED DIAGNOSTICS @number = NUMBER;
        GET STACKED DIAGNOSTICS CONDITION 1 @table = TABLE_NAME;
        IF again THEN RESIGNAL; END IF;
    END;
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = @words, TABLE_NAME = 'told';
END"""]


def long_messages(directory):
    """A condition whose message is kept in part is one condition nevertheless."""
    server = OmnibusPeer(directory, 1)
    server.start()
    cursor = connect(server, autocommit=True).cursor()
    for sql in LONG:
        cursor.execute(sql)
    shown = lambda: [(row[0], row[1]) for row in run(cursor, "SHOW WARNINGS")]  # noqa: E731
    run(cursor, "SELECT a / 0, UUID_TO_BIN(CONCAT(a, REPEAT('x', 600))) FROM t")
    expect(shown() == [("Warning", 1365), ("Error", 1411)], f"{shown()}: an error and the warnings before it")
    run(cursor, "CALL p(FALSE)")
    expect(run(cursor, "SELECT @number, @table") == ((1, "told"),), "what a handler sees")
    expect(shown() == [], f"{shown()}: nothing is left of what was handled")
    expect(run(cursor, "CALL p(TRUE)") == 1644 and shown() == [("Error", 1644)], f"{shown()}: what is raised again")
    run(cursor, "SET @words = CONCAT(@words, 'x')")
    expect(run(cursor, "CALL p(TRUE)") == 1648 and shown() == [("Error", 1648)], f"{shown()}: an item that is too long")
    run(cursor, "SELECT COUNT(*) FROM t WHERE a = REPEAT('x', 600)")
    expect(shown() == [("Warning", 1292)], f"{shown()}: a constant that is no number")
    server.stop()


if __name__ == "__main__":
    run_chosen("conditions", [both_dialects, long_messages])
