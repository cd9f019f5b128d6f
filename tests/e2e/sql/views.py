#!/usr/bin/python3
"""Views beyond what they answer, which testdata/differential compares: whose rights they have, that they survive, travel and go into dumps.

Rights: a view has its definer's, or with SQL SECURITY INVOKER its user's, wherever it is read or changed through. Dumps go from
MariaDB here and back, and the definitions in them are the same. A kill -9 finds every view that was answered for. Our log in each
format is MariaDB's script, and replicas in both directions stay equal.

Ring: gate.
"""

import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, error_code, expect, wait_for  # noqa: E402
from peers import query, wait_caught_up  # noqa: E402
from twins import fresh, is_error, logged, replicas, run  # noqa: E402

TABLES = ["CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c INT)", "CREATE TABLE u (a INT, x INT)",
          "CREATE VIEW v (p, q) AS SELECT a, b FROM t WHERE c < 100 WITH CHECK OPTION",
          "CREATE ALGORITHM=MERGE SQL SECURITY INVOKER VIEW w AS SELECT v.*, u.x, 'ü' AS s FROM v LEFT JOIN u ON u.a = v.p"]
LOAD = ["INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 300)", "INSERT INTO u VALUES (1, 10), (1, 11)", "UPDATE v SET q = CONCAT(q, '!')",
        "INSERT INTO u SELECT p + 100, p FROM v", "UPDATE w SET x = x + 1 WHERE p = 1", "DELETE FROM v WHERE p = 2", "CREATE TABLE made AS SELECT p, s FROM w",
        "CREATE OR REPLACE VIEW v (p, q) AS SELECT a, CONCAT(b, c) FROM t", "INSERT INTO u SELECT p, 7 FROM v WHERE q LIKE 'three%'",
        "ALTER VIEW w AS SELECT COUNT(*) AS n FROM u", "INSERT INTO u SELECT n, n FROM w", "RENAME TABLE v TO r", "CREATE VIEW gone AS SELECT * FROM r",
        "DROP VIEW gone", "DROP VIEW IF EXISTS never", "INSERT INTO u SELECT p, 8 FROM r", "CREATE VIEW `q``w` AS WITH z AS (SELECT a FROM t) SELECT * FROM z"]


def tables(connection):
    fresh(connection)
    for sql in TABLES:
        expect(run(connection, sql) == 0, sql)


def contents(connection):
    """Rows of tables and views, and which views there are."""
    rows = [run(connection, f"SELECT * FROM test.{name} ORDER BY 1, 2") for name in ("t", "u", "made", "r")]
    rows += [run(connection, f"SELECT * FROM test.{name}") for name in ("w", "`q``w`")]
    return rows + [run(connection, "SELECT TABLE_NAME, CHECK_OPTION, DEFINER, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'test' ORDER BY 1")]


# What is run with which rights on what; the last column says what must come of it.
RIGHTS = [
    # (statement, rights of the user, rights of the definer, code)
    ("SELECT * FROM d.v", ["SELECT ON view"], ["SELECT"], 0),
    ("SELECT * FROM d.v", [], ["SELECT"], 1142),
    ("SELECT * FROM d.v", ["SELECT ON view"], [], 1356),
    ("SELECT * FROM base.t", ["SELECT ON view"], ["SELECT"], 1142),
    ("SELECT * FROM d.i", ["SELECT ON view"], ["SELECT"], 1356),
    ("SELECT * FROM d.i", ["SELECT ON view", "SELECT ON table"], [], 0),
    ("SELECT * FROM d.over", ["SELECT ON view"], ["SELECT"], 0),
    ("SELECT * FROM d.overi", ["SELECT ON view"], ["SELECT"], 0),
    ("INSERT INTO d.v VALUES (5, 5)", ["INSERT ON view"], ["SELECT", "INSERT"], 0),
    ("INSERT INTO d.v VALUES (5, 5)", ["SELECT ON view"], ["SELECT", "INSERT"], 1142),
    ("INSERT INTO d.v VALUES (5, 5)", ["INSERT ON view"], ["SELECT"], 1356),
    ("INSERT INTO d.i VALUES (5, 5)", ["INSERT ON view", "INSERT ON table", "SELECT ON table"], [], 0),
    ("INSERT INTO d.i VALUES (5, 5)", ["INSERT ON view", "SELECT ON table"], ["SELECT", "INSERT"], 1356),
    ("INSERT INTO d.v VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2", ["INSERT ON view"], ["SELECT", "INSERT", "UPDATE"], 1142),
    ("INSERT INTO d.v VALUES (1, 1) ON DUPLICATE KEY UPDATE b = 2", ["INSERT ON view", "UPDATE ON view"], ["SELECT", "INSERT", "UPDATE"], 0),
    ("UPDATE d.v SET b = 3", ["UPDATE ON view"], ["SELECT", "UPDATE"], 0),
    ("UPDATE d.v SET b = 3", ["UPDATE ON view"], ["SELECT"], 1356),
    ("UPDATE d.v SET b = b + 1", ["UPDATE ON view"], ["SELECT", "UPDATE"], 1143),
    ("UPDATE d.over SET b = 3", ["UPDATE ON view"], ["SELECT", "UPDATE"], 0),
    ("DELETE FROM d.v", ["DELETE ON view"], ["SELECT", "DELETE"], 0),
    ("DELETE FROM d.v", ["DELETE ON view"], ["SELECT"], 1356),
    ("UPDATE d.v JOIN d.mine ON mine.a = v.a SET v.b = 1", ["UPDATE ON view", "SELECT ON view"], ["SELECT", "UPDATE"], 0),
    ("UPDATE d.v JOIN d.mine ON mine.a = v.a SET v.b = 1", ["UPDATE ON view", "SELECT ON view"], ["SELECT"], 1356),
    ("DELETE d.v FROM d.v JOIN d.mine ON mine.a = v.a", ["DELETE ON view", "SELECT ON view"], ["SELECT"], 1356),
    ("EXPLAIN SELECT * FROM d.v", ["SELECT ON view"], ["SELECT"], 1345),
    ("EXPLAIN SELECT * FROM d.v", ["SELECT ON view", "SHOW VIEW ON view", "SELECT ON table"], ["SELECT"], 0),
    ("SHOW CREATE VIEW d.v", ["SELECT ON view"], ["SELECT"], 1142),
    ("SHOW CREATE VIEW d.v", ["SELECT ON view", "SHOW VIEW ON view"], ["SELECT"], 0),
    ("DESCRIBE d.v", ["SELECT ON view"], ["SELECT"], 0),
]


def rights(server):
    root = connect(server, autocommit=True)
    for sql in ("CREATE DATABASE d", "CREATE DATABASE base", "CREATE TABLE base.t (a INT PRIMARY KEY, b INT)", "CREATE TABLE d.mine (a INT PRIMARY KEY, b INT)",
                "INSERT INTO base.t VALUES (1, 1), (2, 2)", "INSERT INTO d.mine VALUES (1, 1)", "CREATE USER definer@localhost", "GRANT SELECT ON base.* TO definer@localhost",
                "CREATE DEFINER = definer@localhost VIEW d.v AS SELECT a, b FROM base.t", "CREATE DEFINER = definer@localhost SQL SECURITY INVOKER VIEW d.i AS SELECT a, b FROM base.t",
                # A view over others: inside, its own definer is who uses them.
                "CREATE DEFINER = root@localhost VIEW d.over AS SELECT a, b FROM d.v", "CREATE DEFINER = root@localhost VIEW d.overi AS SELECT a, b FROM d.i"):
        expect(not is_error(run(root, sql)), sql)
    for statement, user, definer, code in RIGHTS:
        for sql in ("DROP USER IF EXISTS worker@localhost", "CREATE USER worker@localhost", "REVOKE ALL PRIVILEGES, GRANT OPTION FROM definer@localhost",
                    *(f"GRANT {right.replace('ON view', 'ON d.*').replace('ON table', 'ON base.*')} TO worker@localhost" for right in user),
                    *(f"GRANT {right} ON base.* TO definer@localhost" for right in definer)):
            expect(not is_error(run(root, sql)), sql)
        c = connect(server, user="worker", autocommit=True)
        c.begin()
        found = error_code(lambda: c.cursor().execute(statement))  # noqa: B023
        expect(found == code, f"{statement} by {user}, defined by {definer}: {found} and not {code}")
        c.close()
    # The definer's rights as they are now, also for a plan that is kept.
    run(root, "GRANT SELECT ON d.* TO worker@localhost")
    run(root, "GRANT SELECT ON base.* TO definer@localhost")
    c = connect(server, user="worker", autocommit=True)
    run(c, "PREPARE s FROM 'SELECT COUNT(*) FROM d.v'")
    expect(run(c, "EXECUTE s") == ((2,),), "prepared")
    run(root, "REVOKE SELECT ON base.* FROM definer@localhost")
    expect(run(c, "EXECUTE s") == 1356, "a right that is gone")
    expect(run(root, "SELECT CURRENT_USER()") == (("root@localhost",),), "root")
    run(root, "CREATE DEFINER = definer@localhost VIEW d.me AS SELECT CURRENT_USER() AS c, USER() AS u")
    expect(run(c, "SELECT * FROM d.me") == (("definer@localhost", "worker@localhost"),), run(c, "SELECT * FROM d.me"))
    run(root, "DROP USER definer@localhost")
    expect(run(root, "SELECT * FROM d.v") == 1449, "a definer that is gone")
    expect(run(c, "SELECT * FROM d.v") == 1045, "nobody's business")
    expect(run(root, "SHOW CREATE VIEW d.v")[0][0] == "v", "it is shown all the same")
    expect(run(root, "DROP DATABASE d") == 6, "its views go along")
    run(root, "DROP DATABASE base")


SCHEMA = """
CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop;
CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(30), price DECIMAL(8,2), made DATE);
CREATE TABLE sale (id INT PRIMARY KEY, item INT, n INT, KEY (item));
INSERT INTO item VALUES (1, 'nut', 0.5, '2024-01-01'), (2, 'bölt', 1.25, '2024-05-06'), (3, 'o''ring', 3, NULL);
INSERT INTO sale VALUES (1, 1, 10), (2, 1, 5), (3, 2, 4);
CREATE VIEW z_cheap AS SELECT * FROM item WHERE price < 2 WITH LOCAL CHECK OPTION;
CREATE VIEW a_sums (what, total) AS SELECT name, SUM(n * price) FROM z_cheap JOIN sale ON item = z_cheap.id GROUP BY name HAVING SUM(n) > 0 ORDER BY name;
CREATE SQL SECURITY INVOKER VIEW b_names AS SELECT UPPER(name) u, CASE WHEN made IS NULL THEN 'never' ELSE DATE_FORMAT(made, '%Y/%m') END m, id IN (1, 3) AS odd FROM item;
CREATE VIEW c_union AS SELECT id FROM item UNION ALL SELECT n FROM sale ORDER BY id LIMIT 4;
CREATE ALGORITHM=TEMPTABLE VIEW d_left AS SELECT i.id, s.n FROM item i LEFT JOIN sale s ON s.item = i.id AND s.n > 4 WHERE NOT EXISTS (SELECT 1 FROM sale x WHERE x.id = i.id + 100);
CREATE VIEW e_using AS SELECT * FROM item JOIN (SELECT id, COUNT(*) c FROM sale GROUP BY id) d USING (id);
CREATE VIEW f_cte AS WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i, name FROM n LEFT JOIN item ON id = i;
"""
VIEWS = ["a_sums", "b_names", "c_union", "d_left", "e_using", "f_cte", "z_cheap"]


def dump(server, program, *options):
    command = [program, f"--socket={server.socket}", "--user=root", *options, "--databases", "shop"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def shop(server):
    """What a dump must carry: rows of the views, and their definitions as far as servers write them alike."""
    c = connect(server, autocommit=True, database="shop", charset="utf8mb4")
    rows = {name: sorted(run(c, f"SELECT * FROM {name}"), key=str) for name in VIEWS}
    kinds = run(c, "SELECT TABLE_NAME, CHECK_OPTION, IS_UPDATABLE, DEFINER, SECURITY_TYPE FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME <> 'f_cte' ORDER BY 1")
    return rows, kinds


def definitions(server):
    c = connect(server, autocommit=True, database="shop", charset="utf8mb4")
    return [run(c, f"SHOW CREATE VIEW {name}")[0] for name in VIEWS]


def dumps(server, mariadb):
    """From MariaDB here, from here to MariaDB, and here again: rows, kinds, and our own text of every definition."""
    client(mariadb, SCHEMA, "--default-character-set=utf8mb4")
    for program in ("mariadb-dump", "mysqldump"):
        client(server, dump(mariadb, program), "--default-character-set=utf8mb4")
        expect(shop(server) == shop(mariadb), f"{program}, from MariaDB:\n{shop(mariadb)}\n{shop(server)}")
        mine = definitions(server)
        text = dump(server, program)
        expect("Table structure for table `a_sums`" not in text and "temporary" in text.lower(), "views stand in as usual until the end")
        client(mariadb, "DROP DATABASE shop")
        client(mariadb, text, "--default-character-set=utf8mb4")
        expect(shop(mariadb) == shop(server), f"{program}, from here:\n{shop(server)}\n{shop(mariadb)}")
        client(server, "DROP DATABASE shop")
        client(server, text, "--default-character-set=utf8mb4")
        expect(definitions(server) == mine, f"{program}, here again:\n{mine}\n{definitions(server)}")
        client(server, "DROP DATABASE shop")
    # What we show is what we read: in whatever database, under whatever sql_mode.
    client(server, SCHEMA, "--default-character-set=utf8mb4")
    c = connect(server, autocommit=True, charset="utf8mb4")
    for name in VIEWS:
        run(c, "USE mysql")
        before = run(c, f"SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = '{name}'")
        text = run(c, f"SHOW CREATE VIEW shop.{name}")[0][1]
        run(c, f"DROP VIEW shop.{name}")
        expect(run(c, text) == 0, text)
        expect(run(c, f"SELECT VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_NAME = '{name}'") == before, text)
    run(c, "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'")
    run(c, "CREATE VIEW shop.\"modes\" AS SELECT \"name\" || '!' AS x FROM shop.\"item\" WHERE id = 1")
    run(c, "SET sql_mode = DEFAULT")
    expect(run(c, "SELECT * FROM shop.modes") == (("nut!",),), run(c, "SHOW CREATE VIEW shop.modes"))
    latin = connect(server, autocommit=True, database="shop", charset="latin1")
    expect(run(latin, "CREATE VIEW umlaut AS SELECT 'ä' AS ä, _latin1'ö' AS o") == 0, "latin1")
    expect(run(c, "SELECT ä, o FROM shop.umlaut") == (("ä", "ö"),), run(c, "SHOW CREATE VIEW shop.umlaut"))
    run(c, "DROP DATABASE shop")
    run(connect(mariadb, autocommit=True), "DROP DATABASE shop")


def killed(server):
    """kill -9 while views come and go: what was answered for is there, what was taken away is not."""
    for engine in ("LSM", "BTREE"):
        c = connect(server, autocommit=True)
        fresh(c)
        run(c, f"SET default_storage_engine = {engine}")
        run(c, "CREATE TABLE t (a INT PRIMARY KEY, b INT)")
        run(c, "INSERT INTO t VALUES (1, 1), (2, 2)")
        made, dropped, stop = {}, set(), threading.Event()

        def work(number):
            db = connect(server, database="test", autocommit=True)
            try:
                for n in range(10_000):
                    name = f"v{number}_{n}"
                    run(db, f"CREATE VIEW {name} AS SELECT a + {n} AS a FROM t")
                    made[name] = n  # noqa: B023
                    if n % 3 == 2:
                        run(db, f"CREATE OR REPLACE VIEW {name} AS SELECT a + {n + 1000} AS a FROM t WHERE b > 0")
                        made[name] = n + 1000  # noqa: B023
                    if n % 4 == 3:
                        before = f"v{number}_{n - 1}"
                        made.pop(before)  # noqa: B023
                        run(db, f"DROP VIEW {before}")
                        dropped.add(before)  # noqa: B023
                    if stop.is_set():  # noqa: B023
                        return
            except Exception:  # noqa: BLE001
                pass

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: len(dropped) > 6, "no views")  # noqa: B023
        finally:
            server.kill()
            stop.set()
            for thread in threads:
                thread.join()
        server.start()
        c = connect(server, autocommit=True, database="test")
        there = {name for name, in run(c, "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'test'")}
        expect(set(made) <= there and not dropped & there, f"{set(made) - there} are gone, {dropped & there} are back")
        for name in sorted(made):
            found = run(c, f"SELECT MIN(a) FROM {name}")
            # The last statement of a thread may or may not have been done.
            expect(found in (((made[name] + 1,),), ((made[name] + 1001,),)), f"{name}: {found}")
        expect(run(c, "CREATE TABLE after_it (a INT)") == 0 and run(c, f"CREATE TABLE {sorted(made)[0]} (a INT)") == 1050, "one name space")


def plans(server):
    """The planner sees a view's tables: their indexes are used, outer joins are what they were, nothing is materialised."""
    c = connect(server, autocommit=True)
    fresh(c)
    run(c, "CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY (b))")
    run(c, "INSERT INTO t SELECT * FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, i % 50 FROM n) x")
    run(c, "CREATE VIEW v AS SELECT a + 0 AS z, a, b FROM t WHERE b < 40")
    run(c, "CREATE VIEW w AS SELECT a, b FROM v WHERE a > 3")
    run(c, "CREATE VIEW g AS SELECT b, COUNT(*) n FROM t GROUP BY b")

    def explained(sql):
        return [(row["table"], row["type"], row["key"]) for row in query(server, f"EXPLAIN {sql}", database="test")]

    expect(explained("SELECT * FROM w WHERE a = 7") == [("t", "const", "PRIMARY")], explained("SELECT * FROM w WHERE a = 7"))
    expect(explained("SELECT * FROM w WHERE b = 7") == [("t", "ref", "b")], explained("SELECT * FROM w WHERE b = 7"))
    expect(explained("UPDATE w SET b = 1 WHERE a = 7")[0][2] == "PRIMARY", explained("UPDATE w SET b = 1 WHERE a = 7"))
    joined = explained("SELECT * FROM t JOIN w ON w.a = t.b WHERE t.a = 9")
    expect([row[1:] for row in joined] == [("const", "PRIMARY"), ("const", "PRIMARY")] or joined[1][2] == "PRIMARY", joined)
    grouped = query(server, "EXPLAIN SELECT * FROM g WHERE b = 7", database="test")
    expect([row["select_type"] for row in grouped] == ["PRIMARY", "DERIVED"], grouped)
    expect(run(c, "SELECT * FROM w WHERE a = 7") == ((7, 7),), "a row")


def limits(server):
    """Long chains, wide views and circles end in errors and not in the server."""
    c = connect(server, autocommit=True)
    fresh(c)
    run(c, "CREATE TABLE t (a INT)")
    run(c, "CREATE VIEW v0 AS SELECT a FROM t")
    depth = 0
    for n in range(1, 200):
        code = run(c, f"CREATE VIEW v{n} AS SELECT a FROM v{n - 1}")
        if is_error(code):
            expect(code in (1436, 3170), code)
            break
        depth = n
    expect(depth >= 50, f"only {depth} views on top of each other")
    expect(run(c, f"SELECT COUNT(*) FROM v{depth}") in (((0,),), 1436), "the top one")
    expect(run(c, "CREATE OR REPLACE VIEW v0 AS SELECT a FROM v20") == 1146, "a circle")
    for sql in ("CREATE TABLE r (a INT)", "CREATE VIEW one AS SELECT a FROM r", "CREATE VIEW two AS SELECT a FROM one", "DROP TABLE r", "RENAME TABLE two TO r"):
        expect(run(c, sql) == 0, sql)
    expect(run(c, "SELECT * FROM r") == 1462, "a circle by renaming")
    expect(run(c, "INSERT INTO one VALUES (1)") == 1462, "a circle")
    expect(run(c, "CREATE VIEW many AS SELECT " + ", ".join(f"{n} AS c{n}" for n in range(3000))) in (0, 1117), "many columns")
    # Each gets a name of its own, in a time that is not the cube of their number.
    expect(run(c, "CREATE VIEW alike AS SELECT " + ", ".join(["1"] * 3000)) == 0, "many columns that are called alike")
    names = run(c, "SELECT COUNT(DISTINCT COLUMN_NAME) FROM information_schema.COLUMNS WHERE TABLE_NAME = 'alike'")
    expect(names == ((3000,),), f"names of them: {names}")
    expect(not is_error(run(c, "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'test'")), "circles are passed over")
    expect(server.runs(), "the server is there")


def meta(server, mariadb):
    """What drivers read of a view's columns."""
    def described(server):
        c = connect(server, autocommit=True)
        fresh(c)
        run(c, "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(7), KEY (b))")
        run(c, "CREATE VIEW v AS SELECT a AS x, b, a + 1 AS y FROM t")
        run(c, "CREATE VIEW w AS SELECT b, x FROM v")
        found = []
        for sql in ("SELECT x, b FROM v", "SELECT z.x FROM v AS z", "SELECT * FROM w", "SELECT w.x, v.x FROM w JOIN v USING (b)"):
            cursor = c.cursor()
            cursor.execute(sql)
            found.append([(f.name, f.org_name, f.table_name, f.org_table, f.db) for f in cursor._result.fields])
        return found

    expect(described(server) == described(mariadb), f"\n{described(mariadb)}\n{described(server)}")


def more(ours, chained, theirs):
    """A view that another server made without us knowing its definer, and one that its source calls invalid."""
    c = connect(ours, autocommit=True)
    run(c, "SET binlog_format = STATEMENT")
    run(c, "CREATE DEFINER = nobody@nowhere VIEW test.strange AS SELECT 1 AS a")
    run(c, "ALTER DEFINER = root@localhost VIEW test.strange AS SELECT 2 AS a")
    run(c, "CREATE TABLE test.gone (a INT)")
    run(c, "CREATE VIEW test.later AS SELECT a FROM test.gone")
    run(c, "DROP TABLE test.gone")
    run(c, "DROP VIEW test.later")
    for replica in (chained, theirs):
        wait_caught_up(replica, ours)
        expect(run(connect(replica, autocommit=True), "SELECT * FROM test.strange") == ((2,),), "replaced")
    # The log has the definer and the whole name, whatever was written.
    text = "".join(str(row) for row in run(c, "SHOW BINLOG EVENTS"))
    expect(re.search(r"ALTER ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `test`.`strange` AS SELECT 2 AS a", text), text[-500:])


def main():
    with Scratch("omnibus-views-") as name:
        directory = pathlib.Path(name)
        (directory / "m").mkdir()
        server, mariadb = Omnibus(directory), MariaDB(directory / "m", "--character-set-server=utf8mb4")
        server.start()
        mariadb.start()
        rights(server)
        plans(server)
        limits(server)
        meta(server, mariadb)
        dumps(server, mariadb)
        killed(server)
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, mariadb, format, tables, LOAD, contents)
        replicas(directory, tables, LOAD, contents, more)
        server.stop()
        mariadb.stop()
    print("ok")


if __name__ == "__main__":
    main()
