#!/usr/bin/python3
"""`column IN (SELECT ..)` and EXISTS answer as MariaDB does over generated rows, however they are read: through an index of the outer
table by what the subquery gives, by asking each row, or by making a set of what a correlated subquery asks after some rows.

Rows have NULLs, values that the other side cannot hold, texts under other collations, keys of several columns and prefixes.
Changes are compared by the tables that they leave. That an index is used where it is worth it, and that no more rows are read and locked
than it leads to, is looked at by itself.

Ring: gate.
"""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
import seeds  # noqa: E402
from omnibus import MariaDB, Omnibus, Scratch, connect, expect  # noqa: E402

OUTER_ROWS, INNER_ROWS = 2000, 40
COLUMNS = """id INT PRIMARY KEY, i INT, u BIGINT UNSIGNED, de DECIMAL(8, 2), f DOUBLE, d DATE, dt DATETIME(3), ts TIMESTAMP NULL, t TIME, y YEAR,
    ci VARCHAR(20) COLLATE utf8mb4_general_ci, bin VARCHAR(20) COLLATE utf8mb4_bin, lat VARCHAR(20) CHARACTER SET latin1, raw VARBINARY(20),
    e ENUM('b', 'a', 'c'), r FLOAT, b BIT(6)"""
KEYS = """KEY (i), KEY (u), KEY (de), KEY (f), KEY (d), KEY (dt), KEY (ts), KEY (t), KEY (y), KEY (ci), KEY (bin), KEY (lat), KEY (raw), KEY (e), KEY (r),
    KEY (b), KEY pair (d, i), KEY beginning (ci(2), u)"""
NAMES = "id i u de f d dt ts t y ci bin lat raw e r b".split()
# What is compared with what: each a pair of columns whose comparison both servers have.
PAIRS = [(name, name) for name in NAMES] + [
    ("i", "u"), ("i", "de"), ("i", "f"), ("i", "id"), ("id", "i"), ("u", "i"), ("u", "de"), ("de", "i"), ("de", "f"), ("f", "i"), ("f", "de"), ("d", "dt"), ("dt", "d"),
    ("ts", "dt"), ("dt", "ts"), ("ci", "bin"), ("bin", "ci"), ("ci", "lat"), ("lat", "ci"), ("y", "i"), ("i", "y"), ("ci", "e"), ("e", "ci"), ("r", "f"), ("f", "r"),
    ("i", "b"), ("d", "ts")]

# Which rows of the other table.
SOME = ["n.id < 5", "n.id = 3", "n.id % 2 = 1", "n.i > 100", "n.ci LIKE 'a%'", "n.d IS NOT NULL", "TRUE"]


def value(pick, name, row):
    """A literal; few different ones, so that there are equal ones on both sides."""
    if name == "id":
        return row
    if pick(range(9)) == 0:
        return "NULL"
    n = pick(range(-20, 300))
    text = pick(["a", "A", "ä", "b", "B ", "b", "ab", "aB", "abc", "ABCDE", "", "zz"]) + pick(["", str(n % 7)])
    return {
        "i": n, "u": abs(n), "de": f"{n}.{pick(['00', '50', '25'])}", "f": pick([n, n + 0.5, n / 4]), "r": pick([n, n + 0.5, n / 10]), "d": f"'2024-01-01' + INTERVAL {n} DAY",
        "dt": f"'2024-01-01' + INTERVAL {n} DAY + INTERVAL {pick([0, 0, 1])} HOUR", "ts": f"'2024-01-01' + INTERVAL {n} DAY + INTERVAL {pick([0, 0, 1])} HOUR",
        "t": f"SEC_TO_TIME({n})", "y": 2000 + abs(n) % 40, "ci": f"'{text}'", "bin": f"'{text}'", "lat": f"'{text}'", "raw": f"'{text}'", "e": f"'{pick('abc')}'", "b": abs(n) % 64}[name]


def fill(cursors, pick, engine):
    """The same rows on both sides. `o` is what is read, `n` a few rows behind IN, `none` has no rows."""
    rows = {}
    for table, count in (("o", OUTER_ROWS), ("n", INNER_ROWS), ("none", 0)):
        rows[table] = [f"({', '.join(str(value(pick, name, row)) for name in NAMES)})" for row in range(count)]
    for cursor, clause in cursors:
        cursor.execute("DROP DATABASE IF EXISTS test")
        cursor.execute("CREATE DATABASE test CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        cursor.execute("USE test")
        for table, lines in rows.items():
            cursor.execute(f"CREATE TABLE {table} ({COLUMNS}, {KEYS}) {clause.format(engine=engine)}")
            if lines:
                cursor.execute(f"INSERT INTO {table} VALUES {', '.join(lines)}")
            cursor.execute(f"ANALYZE TABLE {table}")


def subquery(pick, columns):
    """What stands behind IN."""
    listed = ", ".join(columns)
    some = pick(SOME)
    # Which of the texts that are equal under one collation stands for them is another question where another one compares.
    texts = any(column in ("n.ci", "n.bin", "n.lat") for column in columns)
    plain = f"SELECT {listed} FROM n WHERE {some}"
    # MariaDB loses a condition of a grouped subquery that it pushes another one into.
    grouped = f"SELECT {listed} FROM (SELECT {listed} FROM n WHERE {some} GROUP BY {listed} HAVING COUNT(*) > 0) n"
    return pick([
        plain, plain if texts else f"SELECT DISTINCT {listed} FROM n WHERE {some}", f"SELECT {listed} FROM none",
        plain if texts else grouped, plain if texts else f"SELECT {listed} FROM n WHERE {some} UNION SELECT {listed} FROM n WHERE id = 7",
        f"SELECT {listed} FROM (SELECT * FROM n WHERE {some} LIMIT 100) n", f"SELECT {listed} FROM n WHERE {some} AND n.i IN (SELECT i FROM o WHERE o.id < 500)",
        f"SELECT {listed} FROM o n WHERE {some}"])


def condition(pick):
    """A condition on `o` with a subquery, alone or beside others."""
    def one(pairs, verbs):
        left = ", ".join(f"o.{outer}" for outer, _ in pairs)
        left = left if len(pairs) == 1 else f"({left})"
        return f"{left} {pick(verbs)} ({subquery(pick, [f'n.{inner}' for _, inner in pairs])})"

    def positive():
        pairs = [pick(PAIRS) for _ in range(pick([1, 1, 1, 2, 3]))]
        if len(pairs) > 1 and pick([True, False]):
            pairs[:2] = [("d", "d"), ("i", "i")]
        return one(pairs, ["IN", "IN", "= ANY"] if len(pairs) == 1 else ["IN"])

    def denied():
        # With NULLs, MariaDB's answers depend on its plan where types differ, columns are several or texts, or rows are grouped.
        same = pick(["id", "i", "u", "de", "d", "dt"])
        text = f"o.{same} {pick(['IN', 'NOT IN'])} (SELECT n.{same} FROM n WHERE {pick(SOME)})"
        return pick(["{}", "NOT ({})", "({}) IS NULL"]).format(text)

    def exists():
        pairs = [pick(PAIRS) for _ in range(pick([1, 1, 2]))]
        equal = " AND ".join(pick([f"n.{inner} = o.{outer}", f"o.{outer} = n.{inner}"]) for outer, inner in pairs)
        rows = pick(["n", "n", "o n", "n LEFT JOIN none ON none.id = n.id", "(SELECT * FROM n WHERE id < 30) n"])
        more = pick(SOME + ["n.id < o.id"])
        return f"{pick(['', '', 'NOT '])}EXISTS (SELECT {pick(['*', '1', 'n.i'])} FROM {rows} WHERE {equal} AND {more})"

    if pick([True, False, False]):
        first = exists()
        return pick([first, first, f"{first} AND o.id > 50", f"{first} AND {positive()}", f"{first} OR o.i = 7", f"({first}) IS FALSE"])
    first = positive()
    return pick([first, first, first, f"{first} AND o.id > 50", f"{first} AND o.d = '2024-03-01'", f"{first} OR o.i = 7", f"{first} AND {positive()}",
                 f"{first} OR {positive()}", f"{first} AND {denied()}", denied()])


def run(cursor, sql):
    """The rows in some order, or the number of the error."""
    try:
        cursor.execute(sql)
    except pymysql.err.MySQLError as error:
        return error.args[0]
    return sorted(map(repr, cursor.fetchall()))


def statement(pick):
    """A statement, and whether it changes `o`."""
    where = condition(pick)
    return pick([
        (f"SELECT o.id FROM o WHERE {where}", False), (f"SELECT o.id FROM o WHERE {where}", False), (f"SELECT COUNT(*), SUM(o.id) FROM o WHERE {where}", False),
        (f"SELECT o.id, p.id FROM o JOIN n p ON p.i = o.i WHERE {where}", False), (f"SELECT p.id, o.id FROM n p LEFT JOIN o ON o.i = p.id AND {where}", False),
        (f"SELECT o.i, COUNT(*) FROM o WHERE {where} GROUP BY o.i", False), (f"SELECT o.id FROM o WHERE {where} ORDER BY o.id LIMIT 5", False),
        (f"SELECT o.i, o.id FROM o WHERE {where} ORDER BY o.i DESC, o.id LIMIT 7", False), (f"SELECT o.id FROM o WHERE {where} FOR UPDATE", False),
        (f"UPDATE o SET r = r + 1 WHERE {where}", True), (f"DELETE FROM o WHERE {where}", True), (f"UPDATE o JOIN n p ON p.id = o.id SET o.r = 0 WHERE {where}", True)])


def answers(ours, theirs, pick, times):
    """Generated statements, compared."""
    different, used = [], 0
    for _ in range(times):
        sql, changes = statement(pick)
        if changes:
            if "FROM o" in sql.split("WHERE", 1)[1]:
                # Who may read the table that a statement changes is another question.
                continue
            results = []
            for cursor in (ours, theirs):
                cursor.execute("BEGIN")
                found = run(cursor, sql)
                cursor.execute("SELECT id, r FROM o ORDER BY id")
                results.append((found, cursor.fetchall()))
                cursor.execute("ROLLBACK")
        else:
            results = [run(cursor, sql) for cursor in (ours, theirs)]
            if isinstance(results[0], list):
                ours.execute(f"EXPLAIN {sql}")
                used += any(row[2] == "o" and row[4] == "range" for row in ours.fetchall())
        if results[0] != results[1]:
            different.append(f"{sql}\n  here    {str(results[0])[:300]}\n  MariaDB {str(results[1])[:300]}")
    expect(not different, f"{len(different)} of {times} differ:\n" + "\n".join(different[:5]))
    expect(used > times // 10, f"only {used} of {times} read ranges")


def reads(cursor, sql, key, most):
    """A statement is planned to read no more rows than it must, through a key."""
    cursor.execute(f"EXPLAIN {sql}")
    row = next(row for row in cursor.fetchall() if row[2] == "o")
    expect((row[4], row[6]) == ("range", key), f"{sql}: {row}")
    expect(int(row[9]) <= most, f"{sql}: {row}")


def paths(cursor):
    """Where an index is used, and where it would be wrong."""
    reads(cursor, "SELECT * FROM o WHERE i IN (SELECT id FROM n WHERE id < 5)", "i", 60)
    reads(cursor, "SELECT * FROM o WHERE id IN (SELECT i FROM n WHERE id < 5)", "PRIMARY", 60)
    reads(cursor, "SELECT * FROM o WHERE (d, i) IN (SELECT d, i FROM n WHERE id < 5)", "pair", 60)
    reads(cursor, "SELECT * FROM o WHERE ci IN (SELECT ci FROM n WHERE id < 2)", "ci", 400)
    reads(cursor, "SELECT * FROM o WHERE EXISTS (SELECT * FROM n WHERE n.id = o.i AND n.id < 5)", "i", 60)
    for wrong in ("ci IN (SELECT bin FROM n WHERE id < 2)", "i NOT IN (SELECT id FROM n WHERE id < 5)", "f IN (SELECT ci FROM n WHERE id < 5)",
                  "i IN (SELECT n.i FROM n WHERE n.id = o.id)", "NOT i IN (SELECT id FROM n WHERE id < 5)"):
        cursor.execute(f"EXPLAIN SELECT * FROM o WHERE {wrong}")
        rows = [row for row in cursor.fetchall() if row[2] == "o"]
        expect(rows[0][4] == "ALL", f"{wrong}: {rows}")


def locks(server):
    """A change locks what the subquery leads to, and nothing else."""
    one, other = connect(server, database="test"), connect(server, database="test")
    changer, cursor = one.cursor(), other.cursor()
    changer.execute("BEGIN")
    changer.execute("UPDATE o SET r = 1 WHERE id IN (SELECT id FROM n WHERE id < 3)")
    cursor.execute("SET innodb_lock_wait_timeout = 1")
    cursor.execute("BEGIN")
    expect(cursor.execute("UPDATE o SET r = 2 WHERE id = 1000") == 1, "another row")
    try:
        cursor.execute("UPDATE o SET r = 2 WHERE id = 2")
        expect(False, "a row of the change was not locked")
    except pymysql.err.OperationalError as error:
        expect(error.args[0] == 1205, error)
    one.rollback()
    other.rollback()


def turned_back(server):
    """A kept plan looks up what the subquery gives each time, and reads the table once that is too much."""
    cursor = connect(server, database="test").cursor()
    cursor.execute("CREATE TABLE big (id INT PRIMARY KEY, g INT, KEY (g))")
    cursor.execute("INSERT INTO big WITH RECURSIVE k (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM k WHERE i < 999) SELECT i, i DIV 10 FROM k")
    cursor.execute("CREATE TABLE few (g INT)")
    cursor.execute("INSERT INTO few VALUES (3), (5), (5), (NULL)")
    cursor.execute("ANALYZE TABLE big, few")
    cursor.execute("PREPARE s FROM 'SELECT COUNT(*), SUM(id) FROM big WHERE g IN (SELECT g FROM few)'")
    for more, expected in (("", 20), ("SELECT g + 1 FROM big WHERE g < 98", 980), ("SELECT 0", 990)):
        if more:
            cursor.execute(f"INSERT INTO few {more}")
        cursor.execute("EXECUTE s")
        expect(cursor.fetchone()[0] == expected, f"{more}: {expected}")
    # In the order of the index, too.
    cursor.execute("SELECT g, id FROM big FORCE INDEX (g) WHERE g IN (SELECT g FROM few) ORDER BY g DESC, id DESC LIMIT 3")
    expect(cursor.fetchall() == ((98, 989), (98, 988), (98, 987)), "order")
    cursor.execute("SELECT g, id FROM big WHERE g IN (SELECT g FROM few) ORDER BY g, id LIMIT 2")
    expect(cursor.fetchall() == ((0, 0), (0, 1)), "order")


def volatile(server):
    """What may be another value each time is evaluated for each row, wherever it stands in the subquery."""
    cursor = connect(server, database="test", autocommit=True).cursor()
    for sql in ["SET GLOBAL log_bin_trust_function_creators = 1", "CREATE TABLE calls (id INT AUTO_INCREMENT PRIMARY KEY)",
                "CREATE FUNCTION noted (n INT) RETURNS INT BEGIN INSERT INTO calls VALUES (NULL); RETURN n; END",
                "CREATE TABLE rows60 (id INT PRIMARY KEY, g INT)", f"INSERT INTO rows60 VALUES {', '.join(f'({n}, {n % 3})' for n in range(60))}",
                "CREATE TABLE three (g INT PRIMARY KEY)", "INSERT INTO three VALUES (0), (1), (2)"]:
        cursor.execute(sql)
    cursor.execute("SELECT COUNT(DISTINCT x) FROM (SELECT (SELECT MAX(RAND()) FROM three WHERE three.g = rows60.g) AS x FROM rows60) AS d")
    expect(cursor.fetchone() == (60,), "RAND in an aggregate")
    for what in ["SELECT MAX(noted(three.g)) FROM three WHERE three.g = rows60.g",
                 "SELECT GROUP_CONCAT(three.g ORDER BY noted(three.g)) FROM three WHERE three.g = rows60.g",
                 "SELECT COUNT(*) FROM three WHERE three.g = rows60.g GROUP BY noted(three.g)",
                 "SELECT three.g FROM three WHERE three.g = rows60.g ORDER BY noted(three.g) LIMIT 1",
                 "SELECT three.g FROM three LEFT JOIN three AS t ON noted(t.g) = three.g AND t.g = three.g WHERE three.g = rows60.g"]:
        cursor.execute("DELETE FROM calls")
        cursor.execute(f"SELECT COUNT(x) FROM (SELECT ({what}) AS x FROM rows60) AS d")
        cursor.execute("SELECT COUNT(*) FROM calls")
        expect(cursor.fetchone() == (60,), f"calls of {what}")


RECURSIVE = [
    "SELECT i + 1 AS i FROM n", "SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3 UNION ALL SELECT 5",
    "SELECT 1 AS i UNION ALL SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 3",
    "SELECT 1 AS i UNION SELECT 10 UNION SELECT i + 1 FROM n WHERE i < 3 UNION SELECT i + 2 FROM n WHERE i < 4",
    "SELECT 1 AS i UNION ALL SELECT COUNT(*) FROM n",
    "SELECT 1 AS i UNION ALL SELECT ROW_NUMBER() OVER (ORDER BY i) FROM n", "SELECT 1 AS i UNION ALL SELECT 2 FROM t LEFT JOIN n ON n.i = t.id",
    "SELECT 1 AS i UNION ALL SELECT 2 FROM n RIGHT JOIN t ON n.i = t.id", "SELECT 1 AS i UNION ALL SELECT n.i + 1 FROM n LEFT JOIN t ON n.i = t.id WHERE n.i < 3",
    "SELECT 1 AS i UNION ALL SELECT a.i + b.i FROM n a, n b WHERE a.i < 3",
    "SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < (SELECT MAX(i) FROM n)",
]


def recursive(ours, theirs):
    """In MariaDB's dialect recursive tables are what they are there, and are refused for what they are there."""
    for cursor in (ours, theirs):
        for sql in ("CREATE DATABASE rec", "USE rec", "CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1), (2)"):
            cursor.execute(sql)
    for query in RECURSIVE:
        found = [run(cursor, f"WITH RECURSIVE n AS ({query}) SELECT i FROM n") for cursor in (ours, theirs)]
        expect(found[0] == found[1], f"{query}: here {str(found[0])[:300]}, MariaDB {str(found[1])[:300]}")


def main():
    seed = seeds.of_this_run()
    with Scratch() as scratch:
        servers = []
        for name, kind in (("ours", Omnibus), ("theirs", MariaDB)):
            home = pathlib.Path(scratch) / name
            home.mkdir()
            server = kind(home)
            server.start()
            servers.append(server)
        for number, engine in enumerate(("InnoDB", "BTREE")):
            pick = random.Random(seed + number).choice
            cursors = [connect(server, autocommit=True).cursor() for server in servers]
            for cursor in cursors:
                cursor.execute("SET NAMES utf8mb4")
                cursor.execute("SET sql_mode = ''")
                cursor.execute("SET time_zone = '+00:00'")
            # The most plain of its ways: with others its answers about texts of two collations depend on the plan.
            cursors[1].execute("SET optimizer_switch = 'semijoin=off,materialization=off,in_to_exists=on,subquery_cache=off'")
            fill(list(zip(cursors, ("ENGINE={engine}", "ENGINE=InnoDB"))), pick, engine)
            answers(*cursors, pick, 600)
            paths(cursors[0])
        home = pathlib.Path(scratch) / "dialect"
        home.mkdir()
        servers.append(Omnibus(home, "--dialect=mariadb"))
        servers[-1].start()
        recursive(connect(servers[-1]).cursor(), connect(servers[1]).cursor())
        locks(servers[0])
        turned_back(servers[0])
        volatile(servers[0])
        for server in servers:
            server.stop()
    print("ok")


if __name__ == "__main__":
    main()
