#!/usr/bin/python3
"""Statements with many tables, and statements nested deeply: each answers rightly or with a clear error, and the server lives."""

import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from omnibus import Omnibus, Scratch, Session, expect

STACK_OVERRUN = 1436
TOO_MANY_TABLES = 1116


def many_tables(session):
    joined = "SELECT a.id FROM a JOIN b ON a.id = b.id LEFT JOIN a c ON c.id = b.id"
    for parts in (1, 33, 200):
        rows = session(" UNION ALL ".join([joined] * parts))
        expect(sorted(rows) == sorted([(1,), (2,)] * parts), f"{parts} joins: {len(rows)} rows")
    aliases = [f"a a{n}" for n in range(61)]
    equal = " AND ".join(f"a0.id = a{n}.id" for n in range(1, 61))
    expect(session.value(f"SELECT COUNT(*) FROM {', '.join(aliases)} WHERE {equal}") == 2, "61 tables")
    session.fails(f"SELECT 1 FROM {', '.join(aliases)}, b", TOO_MANY_TABLES)
    outer = session(" UNION ALL ".join(
        f"SELECT (SELECT b.x FROM b WHERE b.id = a.id AND a.x = b.x) + {n} FROM a WHERE a.id = 2" for n in range(90)))
    expect(sorted(outer) == [(2 + n,) for n in range(90)], "correlated subqueries in far slots")


def common_tables(session):
    """Each is planned and run once, however often it is named."""
    links = ", ".join(["t0 AS (SELECT 1 AS x)"]
                      + [f"t{n} AS (SELECT p.x + q.x AS x FROM t{n - 1} p JOIN t{n - 1} q ON p.x = q.x)" for n in range(1, 31)])
    expect(session.value(f"WITH {links} SELECT x FROM t30") == 2**30, "self-joins of common table expressions")
    expect(session("WITH c AS (SELECT RAND() AS r) SELECT p.r = q.r FROM c p, c q") == ((1,),), "one result for both names")
    correlated = "SELECT id, (WITH c AS (SELECT a.id + 1 AS y) SELECT y + z FROM (SELECT y AS z FROM c) d JOIN c) FROM a ORDER BY id"
    expect(session(correlated) == ((1, 4), (2, 6)), "a common table expression that reads the query around")


def chain(links):
    return ", ".join(["t0 AS (SELECT 1 AS x)"] + [f"t{n} AS (SELECT x + 1 AS x FROM t{n - 1})" for n in range(1, links)])


def deep(session):
    expect(session.value(f"WITH {chain(60)} SELECT x FROM t59") == 60, "60 links")
    session.fails(f"WITH {chain(9000)} SELECT x FROM t8999", STACK_OVERRUN)
    from_the_bottom = ", ".join(f"(SELECT x FROM t{n})" for n in range(0, 9000, 10))
    session.fails(f"WITH {chain(9000)} SELECT {from_the_bottom}", STACK_OVERRUN)
    for depth in (60, 140, 5000):
        for text in ("SELECT " + "(" * depth + "1" + ")" * depth,
                     "SELECT " + "(SELECT " * depth + "1" + ")" * depth,
                     "SELECT " + "+".join(["1"] * depth),
                     "SELECT " + "NOT " * depth + "1",
                     "SELECT " + "ABS(" * depth + "1" + ")" * depth,
                     "SELECT 1 FROM " + "(SELECT * FROM " * depth + "a" + "".join(f") d{n}" for n in range(depth)),
                     "SELECT 1 FROM a WHERE " + "EXISTS (SELECT 1 FROM a WHERE " * depth + "1" + ")" * depth):
            try:
                session(text)
            except Exception as error:
                expect(depth > 60 and error.args[0] in (1064, STACK_OVERRUN), f"{depth} levels of {text[:40]}: {error}")
    expect(session.value("SELECT COUNT(*) FROM a") == 2, "the server lives")


def lateral(session):
    cases = {
        "SELECT id, y FROM a, LATERAL (SELECT a.x + 1 AS y) d ORDER BY id": ((1, 2), (2, 3)),
        "SELECT id, y FROM a JOIN LATERAL (SELECT a.x + 1 AS y) d ON TRUE ORDER BY id": ((1, 2), (2, 3)),
        "SELECT a.id, y FROM a LEFT JOIN LATERAL (SELECT b.x AS y FROM b WHERE b.id > a.id) d ON TRUE ORDER BY 1":
            ((1, 2), (2, None)),
        "SELECT a.id, z FROM a, LATERAL (SELECT SUM(b.x) s FROM b WHERE b.id >= a.id) d, LATERAL (SELECT d.s + a.id AS z) e"
        " ORDER BY 1": ((1, 4), (2, 4)),
        "SELECT j, i FROM b, a, LATERAL (SELECT a.id i, b.id j) d WHERE b.id = 1 ORDER BY i": ((1, 1), (1, 2)),
    }
    for sql, expected in cases.items():
        got = session(sql)
        expect(got == expected, f"{sql}: {got}")


def main():
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking")
        server.start()
        session = Session(server)
        session.run("CREATE DATABASE d", "USE d", "CREATE TABLE a (id INT PRIMARY KEY, x INT)",
                    "CREATE TABLE b (id INT PRIMARY KEY, x INT)", "INSERT INTO a VALUES (1, 1), (2, 2)",
                    "INSERT INTO b VALUES (1, 1), (2, 2)")
        for part in (many_tables, common_tables, lateral, deep):
            part(session)
            print(f"{part.__name__} ok", flush=True)
        session.close()
        server.stop()


if __name__ == "__main__":
    main()
