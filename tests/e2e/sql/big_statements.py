#!/usr/bin/python3
"""Statements with many tables, many rows, or nested deeply: each answers rightly or with a clear error, and the server lives.

Ring: all.
"""

import sys
import pathlib
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
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


def reruns(session):
    """A statement with many rows begins where it may not block and moves: what its first try did is gone."""
    rows = 6000
    session.run("CREATE TABLE many (id INT PRIMARY KEY AUTO_INCREMENT, x BIGINT)",
                f"SET cte_max_recursion_depth = {rows}",
                f"INSERT INTO many (x) WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {rows}) SELECT 0 FROM r",
                "SET @n = 0", "UPDATE many SET x = (@n := @n + 1) ORDER BY id")
    expect(session("SELECT COUNT(*), MIN(x), MAX(x), SUM(x = id), @n FROM many") == ((rows, 1, rows, rows, rows),), "numbered rows")
    session("SET @n = 0")
    numbered = session("SELECT @n := @n + 1 FROM many ORDER BY id")
    expect([int(row[0]) for row in numbered] == list(range(1, rows + 1)) and session.value("SELECT @n") == rows, "SELECT numbers")
    session.run("SET @n = 0", "INSERT INTO many (x) SELECT @n := @n + 1 FROM many")
    expect(session.value("SELECT @n") == rows, "INSERT .. SELECT numbers")
    session.run("SET rand_seed1 = 3, rand_seed2 = 4")
    one = session("SELECT RAND() FROM many LIMIT 3")
    session.run("SET rand_seed1 = 3, rand_seed2 = 4")
    expect(session("SELECT RAND() FROM many")[:3] == one, "RAND() begins anew")
    session("UPDATE many SET x = LAST_INSERT_ID(LAST_INSERT_ID() + 1)")
    first = session.value("SELECT MIN(x) FROM many")
    expect(session("SELECT MAX(x) - MIN(x) + 1 = COUNT(*), LAST_INSERT_ID() - MIN(x) + 1 = COUNT(*) FROM many") == ((1, 1),), first)
    session("SELECT x + CONCAT(x, 'a') FROM many LIMIT 5000")
    expect(session.value("SHOW COUNT(*) WARNINGS") == 5000, session.value("SHOW COUNT(*) WARNINGS"))


def with_in_front(session):
    """WITH before UPDATE and DELETE, which MariaDB does not know."""
    session.run("CREATE TABLE w (id INT PRIMARY KEY, x INT)", "INSERT INTO w VALUES (1, 1), (2, 2), (3, 3)",
                "WITH c AS (SELECT MAX(x) AS m FROM w) UPDATE w SET x = x + (SELECT m FROM c) WHERE id < 3",
                "WITH c AS (SELECT id, x * 10 AS y FROM w WHERE id = 3) UPDATE w JOIN c ON c.id = w.id SET w.x = c.y",
                "WITH c AS (SELECT 2 AS k) DELETE FROM w WHERE id IN (SELECT k FROM c)")
    expect(session("SELECT * FROM w ORDER BY id") == ((1, 4), (3, 30)), session("SELECT * FROM w ORDER BY id"))
    session("WITH c AS (SELECT 3 AS k) DELETE w FROM w JOIN c ON c.k = w.id")
    expect(session("SELECT * FROM w ORDER BY id") == ((1, 4),), "DELETE with WITH")


def limits(session):
    session.run("SET cte_max_recursion_depth = 10")
    recursive = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < {}) SELECT MAX(n) FROM r"
    expect(session.value(recursive.format(10)) == 10, "a recursion within the depth")
    session.fails(recursive.format(50), 3636)
    session.run("SET cte_max_recursion_depth = DEFAULT", "SET max_execution_time = 100")
    session.fails("SELECT COUNT(*) FROM many a, many b, many c", 3024)
    session.fails("SELECT SLEEP(30) + COUNT(*) FROM a", 3024)
    # Functions that compare long strings over and over.
    text, needle = "REPEAT('a', 900000)", "CONCAT(REPEAT('a', 400000), 'b')"
    for call in (f"LOCATE({needle}, {text})", f"SUBSTRING_INDEX({text}, {needle}, 1)", f"REPLACE({text}, {needle}, '')", f"{text} LIKE CONCAT('%', {needle})"):
        session.fails(f"SELECT LENGTH({call})", 3024)
    session.run("SET max_execution_time = 0")
    expect(session.value("SELECT SLEEP(0.2)") == 0, "no limit")


def wide(session):
    """Tables of a thousand columns: what looks at all of them for each of them does so once."""
    columns = ", ".join(f"c{n} INT" for n in range(1000))
    session.run(f"CREATE TABLE wide ({columns})", f"INSERT INTO wide VALUES ({', '.join(['1'] * 1000)})")
    for kind in ("NATURAL JOIN", "NATURAL LEFT JOIN"):
        joined = " ".join(f"{kind} wide t{n}" for n in range(1, 20))
        took = timed(lambda: expect(session.value(f"SELECT COUNT(*) FROM wide t0 {joined}") == 1, f"{kind} of 20 tables"))
        expect(took < 60, f"{kind} of 20 tables of 1,000 columns takes {took:.1f} s")
    took = timed(lambda: session("ALTER TABLE wide " + ", ".join(f"DROP COLUMN c{n}" for n in range(900))))
    expect(took < 20, f"900 columns go in {took:.1f} s")
    names = ", ".join(f"c{n}" for n in range(900, 1000))
    expect(session(f"SELECT {names} FROM wide") == ((1,) * 100,), "columns that are left")
    body = "BEGIN " + "SET NEW.x = NEW.x + 1; " * 200 + "END"
    for n in range(100):
        session.run(f"CREATE TABLE triggered{n} (x INT)", f"CREATE TRIGGER t{n} BEFORE INSERT ON triggered{n} FOR EACH ROW {body}")
    took = timed(lambda: session.run(*(f"INSERT INTO b (id, x) VALUES ({n + 10}, {'+'.join(['1'] * (n + 1))})" for n in range(50))))
    session.run("DELETE FROM b WHERE id > 9", "INSERT INTO triggered7 VALUES (1)")
    expect(session.value("SELECT x FROM triggered7") == 201, "its trigger")
    print(f"  50 rows beside 100 triggers of other tables: {took:.2f} s", flush=True)


def timed(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def main():
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking")
        server.start()
        session = Session(server)
        session.run("CREATE DATABASE d", "USE d", "CREATE TABLE a (id INT PRIMARY KEY, x INT)",
                    "CREATE TABLE b (id INT PRIMARY KEY, x INT)", "INSERT INTO a VALUES (1, 1), (2, 2)",
                    "INSERT INTO b VALUES (1, 1), (2, 2)")
        for part in (many_tables, common_tables, lateral, reruns, with_in_front, limits, deep, wide):
            part(session)
            print(f"{part.__name__} ok", flush=True)
        session.close()
        server.stop()


if __name__ == "__main__":
    main()
