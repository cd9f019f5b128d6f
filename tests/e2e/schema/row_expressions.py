#!/usr/bin/python3
"""What a table's definition says of each row: CHECK, generated columns, DEFAULT (..).

The same statements run here and on MariaDB and must give the same results; error codes are MySQL's. Then what is about logs: a
kill -9 finds rows whose generated columns fit, our log in each format is MariaDB's script, and replicas in both directions stay
equal, one whose table has a generated column that the source's has not among them.

Ring: gate.
"""

import pathlib
import random
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import MariaDB, Omnibus, Scratch, connect, expect, wait_for  # noqa: E402
from peers import wait_caught_up  # noqa: E402
from twins import fresh, is_error, logged, replicas, run, same  # noqa: E402

# MySQL's codes for MariaDB's.
CODES = {1970: (3815,), 4025: (3819,), 1901: (3763, 3814, 3109, 3818, 3765, 3816, 3102), 1906: (3105,), 4029: (3107, 3767), 1054: (1054, 3820, 3108, 3959, 3766),
         1091: (3821, 1091, 3940), 1826: (3822,), 1903: (3106,), 1221: (1221,), 1905: (3104,), 1907: (3105,)}

SCRIPTS = {
    "checks": """
        CREATE TABLE t (id INT PRIMARY KEY, a INT CHECK (a > 0), b INT DEFAULT 3, c VARCHAR(10), CONSTRAINT ab CHECK (a <> b), CHECK (c IN ('x', 'y') OR c LIKE 'z%'))
        INSERT INTO t VALUES (1, 1, 2, 'x'), (2, NULL, NULL, NULL), (3, 5, 4, 'zebra')
        INSERT INTO t VALUES (4, 0, 2, 'x')
        INSERT INTO t VALUES (4, 2, 2, 'x')
        INSERT INTO t VALUES (4, 1, 2, 'q')
        INSERT INTO t (id, a) VALUES (4, 3)
        INSERT INTO t (id, a) VALUES (4, 4), (5, -1)
        INSERT INTO t (id, a) VALUES (1, 9) ON DUPLICATE KEY UPDATE a = -a
        INSERT INTO t (id, a) VALUES (1, -9) ON DUPLICATE KEY UPDATE a = 6
        INSERT INTO t (id, a) VALUES (1, 9) ON DUPLICATE KEY UPDATE a = a + 6
        REPLACE INTO t (id, a) VALUES (1, 0)
        REPLACE INTO t (id, a) VALUES (1, 8)
        UPDATE t SET a = a - 5
        UPDATE t SET a = 4 WHERE id = 3
        UPDATE t SET b = a WHERE id = 3
        UPDATE t SET a = a + 1, b = a
        UPDATE t x, t y SET x.a = -1 WHERE x.id = y.id
        INSERT INTO t SELECT id + 10, -a, b, c FROM t
        INSERT INTO t SELECT id + 10, a, b, c FROM t
        SELECT * FROM t ORDER BY id
        ALTER TABLE t ADD CONSTRAINT big CHECK (a < 5)
        ALTER TABLE t ADD CONSTRAINT big CHECK (a < 500)
        ALTER TABLE t ADD CONSTRAINT big CHECK (a < 600)
        INSERT INTO t (id, a) VALUES (30, 501)
        ALTER TABLE t DROP CONSTRAINT big
        ALTER TABLE t DROP CONSTRAINT big
        INSERT INTO t (id, a) VALUES (30, 501)
        ALTER TABLE t ADD d INT DEFAULT 7, ADD CHECK (d < 8)
        INSERT INTO t (id, a, d) VALUES (31, 1, 9)
        ALTER TABLE t RENAME TO u
        INSERT INTO u (id, a, d) VALUES (31, 1, 9)
        CREATE TABLE l LIKE u
        INSERT INTO l (id, a, d) VALUES (31, 1, 9)
        INSERT INTO l SELECT * FROM u
        SELECT COUNT(*) FROM l
        CREATE TEMPORARY TABLE tt (a INT CHECK (a > 0))
        INSERT INTO tt VALUES (0)
        INSERT INTO tt VALUES (1)
        ALTER TABLE tt ADD CHECK (a > 5)
        SELECT * FROM tt""",
    "checks that are refused": """
        CREATE TABLE t (a INT, CHECK (x > 0))
        CREATE TABLE t (a INT, CHECK (NOW() > 0))
        CREATE TABLE t (a INT, CHECK ((SELECT 1) > 0))
        CREATE TABLE t (a INT, CONSTRAINT c CHECK (a > 0), CONSTRAINT c CHECK (a > 1))
        CREATE TABLE t (a INT, b INT, CHECK (a > b))
        ALTER TABLE t DROP COLUMN a
        ALTER TABLE t DROP COLUMN nope
        ALTER TABLE t DROP CONSTRAINT nope""",
    "generated columns": """
        CREATE TABLE t (id INT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL, s INT GENERATED ALWAYS AS (v * 2) STORED, n VARCHAR(10) AS (CONCAT('n', a)) STORED, KEY (v), UNIQUE (s), KEY (n, a))
        INSERT INTO t (id, a) VALUES (1, 1), (2, 2), (3, NULL), (4, -7)
        SELECT * FROM t ORDER BY id
        INSERT INTO t VALUES (5, 5, 6, 12, 'n5')
        INSERT INTO t VALUES (5, 5, DEFAULT, DEFAULT, DEFAULT)
        INSERT INTO t (id, v) VALUES (6, 1)
        SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'
        INSERT INTO t VALUES (7, 7, 1, 2, 'x')
        INSERT INTO t SELECT 8, 8, 'a', 'b', 'c'
        SET sql_mode = DEFAULT
        INSERT INTO t (id, a) VALUES (6, 5)
        INSERT INTO t (id, a) VALUES (1, 20) ON DUPLICATE KEY UPDATE a = VALUES(a) + v
        REPLACE INTO t (id, a) VALUES (9, 2)
        UPDATE t SET a = a + 1 ORDER BY id DESC
        UPDATE t SET v = 4
        UPDATE t SET v = DEFAULT, a = 50 WHERE id = 5
        SELECT * FROM t ORDER BY id
        SELECT id FROM t WHERE v = 51
        SELECT id FROM t WHERE s = 102 OR n = 'n50'
        SELECT id FROM t FORCE INDEX (n) WHERE n LIKE 'n%' ORDER BY n, a
        DELETE FROM t WHERE v < 0
        INSERT INTO t SELECT * FROM t
        INSERT INTO t (id, a) SELECT id + 100, a + 100 FROM t
        SELECT SUM(v), SUM(s), COUNT(n) FROM t
        ALTER TABLE t ADD w INT AS (v + s) STORED, ADD INDEX (w)
        SELECT * FROM t ORDER BY id
        ALTER TABLE t MODIFY w INT AS (v - s) STORED
        SELECT id, w FROM t ORDER BY w
        ALTER TABLE t DROP COLUMN a
        ALTER TABLE t DROP COLUMN w, ADD z INT
        BEGIN
        UPDATE t SET a = 7 WHERE id = 9
        SELECT v, s, n FROM t WHERE id = 9
        ROLLBACK
        SELECT v, s, n FROM t WHERE id = 9
        CREATE TABLE c AS SELECT * FROM t
        SELECT * FROM c ORDER BY id
        CREATE TEMPORARY TABLE x (a INT, b INT AS (a * a) STORED)
        INSERT INTO x (a) VALUES (3), (4)
        UPDATE x SET a = 5 WHERE b = 9
        SELECT * FROM x""",
    "generated columns that are refused": """
        CREATE TABLE t (a INT, b INT AS (NOW()) STORED)
        CREATE TABLE t (a INT, b INT AS (c) STORED, c INT AS (a) STORED)
        CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b INT AS (a) STORED)
        CREATE TABLE t (a INT, b INT AS (x) STORED)
        CREATE TABLE t (a INT, b INT AS ((SELECT 1)) STORED)
        CREATE TABLE t (a INT, b VARCHAR(2) AS (REPEAT('a', a)) STORED)
        INSERT INTO t (a) VALUES (3)
        INSERT INTO t (a) VALUES (2)
        UPDATE t SET a = 3
        SELECT * FROM t
        CREATE TABLE d (a INT, b INT AS (10 / a) STORED)
        INSERT INTO d (a) VALUES (0)
        INSERT INTO d (a) VALUES (5)
        SELECT * FROM d""",
    "defaults": """
        CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT (1 + 1), b VARCHAR(20) DEFAULT (CONCAT('x', id)), c INT DEFAULT (a * 10), d DATE DEFAULT ('2024-01-01' + INTERVAL 1 DAY), e TEXT DEFAULT ('long'), g INT AS (c + 1) STORED)
        INSERT INTO t (id) VALUES (1), (2)
        INSERT INTO t (id, a) VALUES (3, 7)
        INSERT INTO t VALUES (4, DEFAULT, DEFAULT, 5, DEFAULT, DEFAULT, DEFAULT)
        INSERT INTO t (id, b) SELECT id + 10, 'q' FROM t
        SELECT * FROM t ORDER BY id
        UPDATE t SET b = DEFAULT, a = 3, c = DEFAULT
        SELECT * FROM t ORDER BY id
        INSERT INTO t (id) VALUES (1) ON DUPLICATE KEY UPDATE c = DEFAULT, b = 'dup'
        REPLACE INTO t (id, a) VALUES (2, 9)
        SELECT * FROM t ORDER BY id
        ALTER TABLE t ADD h INT DEFAULT (id * 3)
        ALTER TABLE t ALTER a SET DEFAULT 8
        INSERT INTO t (id) VALUES (20)
        SELECT * FROM t ORDER BY id
        CREATE TABLE n (a INT NOT NULL DEFAULT (NULL), b INT)
        INSERT INTO n (b) VALUES (1)
        CREATE TABLE r (a INT DEFAULT (b + 1), b INT DEFAULT (a + 1))""",
}


def allowed(_, there):
    return (*CODES.get(there, ()), there)


def shown(server):
    """A definition is what it says: read back, it is the same; and what is left of it in information_schema."""
    c = connect(server, autocommit=True)
    fresh(c)
    run(c, """CREATE TABLE t1 (CHECK (c1 <> c2), c1 INT CHECK (c1 > 10), c2 INT CONSTRAINT c2_positive CHECK (c2 > 0), c3 INT CHECK (c3 < 100),
              CONSTRAINT c1_nonzero CHECK (c1 <> 0), CHECK (c1 > c3), n VARCHAR(9) CHARACTER SET latin1 DEFAULT (CONCAT('é', c1)),
              g VARCHAR(20) AS (CONCAT(`n`, _latin1 x'e4', 'ß')) VIRTUAL NOT NULL COMMENT 'made', CONSTRAINT off CHECK (c2 < 5) NOT ENFORCED)""")
    text = run(c, "SHOW CREATE TABLE t1")[0][1]
    # The example of MySQL's manual: unnamed checks are numbered as they are written.
    for part in ("CONSTRAINT `t1_chk_1` CHECK ((`c1` <> `c2`))", "CONSTRAINT `t1_chk_2` CHECK ((`c1` > 10))", "CONSTRAINT `t1_chk_3` CHECK ((`c3` < 100))",
                 "CONSTRAINT `t1_chk_4` CHECK ((`c1` > `c3`))", "CONSTRAINT `off` CHECK ((`c2` < 5)) /*!80016 NOT ENFORCED */",
                 "DEFAULT (concat(_utf8mb4'é',`c1`))", "GENERATED ALWAYS AS (concat(`n`,_latin1 x'e4',_utf8mb4'ß')) VIRTUAL NOT NULL COMMENT 'made'"):
        expect(part in text, f"{part}\n{text}")
    run(c, "DROP TABLE t1")
    expect(run(c, text) == 0, text)
    expect(run(c, "SHOW CREATE TABLE t1")[0][1] == text, text)
    # Whatever the character set of the session that writes.
    latin = connect(server, autocommit=True, database="test", charset="latin1")
    expect(run(latin, "INSERT INTO t1 (c1, c2, c3) VALUES (11, 6, 1)") == 1, "latin1")
    expect(run(c, "SELECT n, g FROM t1") == (("é11", "é11äß"),), run(c, "SELECT n, g FROM t1"))
    checks = run(c, "SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS ORDER BY 1")
    expect(checks[0] == ("c1_nonzero", "(`c1` <> 0)") and len(checks) == 7, checks)
    enforced = run(c, "SELECT ENFORCED FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_NAME = 'off' AND CONSTRAINT_TYPE = 'CHECK'")
    expect(enforced == (("NO",),), enforced)
    column = run(c, "SELECT EXTRA, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE COLUMN_NAME = 'g'")
    expect(column == (("VIRTUAL GENERATED", "concat(`n`,_latin1 x\\'e4\\',_utf8mb4\\'ß\\')"),), column)
    for sql, code in (("ALTER TABLE t1 RENAME COLUMN n TO m", 3108), ("ALTER TABLE t1 RENAME COLUMN c2 TO m", 3959), ("ALTER TABLE t1 DROP CHECK nope", 3821),
                      ("ALTER TABLE t1 DROP c3", 3959), ("ALTER TABLE t1 DROP CHECK t1_chk_4, DROP c3", 0), ("ALTER TABLE t1 ALTER CHECK off ENFORCED", 3819),
                      ("CREATE TABLE k (a INT AS (1) VIRTUAL PRIMARY KEY)", 3106), ("CREATE TABLE k (a INT AS (@x))", 3765), ("CREATE TABLE k (a INT DEFAULT (@x))", 3772),
                      ("CREATE TABLE k (a INT DEFAULT (SLEEP(1)))", 3770), ("CREATE TABLE k (a INT AS (1) DEFAULT 3)", 1221),
                      ("CREATE TABLE p (a INT PRIMARY KEY)", 0), ("CREATE TABLE k (a INT, CHECK (a > 0), FOREIGN KEY (a) REFERENCES p (a) ON DELETE SET NULL)", 3823),
                      ("CREATE TABLE k (a INT, b INT AS (a) STORED, FOREIGN KEY (a) REFERENCES p (a) ON UPDATE CASCADE)", 1215),
                      ("SELECT DEFAULT(n) FROM t1", 3773)):
        found = run(c, sql)
        expect(found == code or code == 0 and not is_error(found), f"{sql}: {found}")


def load_data(server, directory):
    """LOAD DATA: a file of SELECT * has a field for a generated column, which is passed over."""
    c = connect(server, autocommit=True, local_infile=True)
    fresh(c)
    run(c, "SET GLOBAL local_infile = 1")
    run(c, "CREATE TABLE t (a INT CHECK (a < 100), v INT AS (a * 2) STORED, b VARCHAR(9) DEFAULT (CONCAT('b', a)))")
    file = directory / "rows.txt"
    file.write_text("1\t99\tx\n2\t\\N\ty\n")
    expect(run(c, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t") == 2, "loaded")
    file.write_text("3\n100\n4\n")
    expect(run(c, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t (a)") == 2, "one is refused: LOCAL passes over it")
    expect(run(c, f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t (a, v)") == 3105, "named")
    found = run(c, "SELECT * FROM t ORDER BY a")
    expect(found == ((1, 2, "x"), (2, 4, "y"), (3, 6, "b3"), (4, 8, "b4")), found)


TABLES = ["CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, v INT AS (a + 1) VIRTUAL, s VARCHAR(40) AS (CONCAT('s', a, '/', v)) STORED,"
          " d INT DEFAULT (a * 3), KEY (v), KEY (s), CHECK (a < 1000))",
          "CREATE TABLE h (a INT, s INT AS (a * 2) STORED)"]
LOAD = ["INSERT INTO t (a) VALUES (1), (2), (3)", "INSERT INTO h (a) VALUES (1), (1), (2)", "UPDATE t SET a = a + 10 WHERE id < 3",
        "INSERT INTO t (id, a) VALUES (1, 50) ON DUPLICATE KEY UPDATE a = VALUES(a), d = DEFAULT", "UPDATE h SET a = 5 WHERE s = 4 LIMIT 1", "DELETE FROM t WHERE v = 4",
        "REPLACE INTO t (id, a) VALUES (2, 77)", "ALTER TABLE t ADD w INT AS (d - a) STORED", "INSERT INTO t (a) VALUES (5)", "DELETE FROM h WHERE a = 1 LIMIT 1",
        "ALTER TABLE t ADD CONSTRAINT small CHECK (w < 500)", "INSERT INTO t (a, d) VALUES (6, 60)"]


def tables(connection):
    fresh(connection)
    for sql in TABLES:
        expect(run(connection, sql) == 0, sql)


def contents(connection):
    return [run(connection, f"SELECT * FROM test.{table} ORDER BY 1, 2") for table in ("t", "h")]


def killed(server, seed):
    """kill -9 in the middle: each row is as its definition says."""
    stop = threading.Event()

    def work(n):
        c, chance = connect(server, database="test", autocommit=True), random.Random(seed + n)
        try:
            while not stop.is_set():
                n, m = chance.randrange(900), chance.randrange(900)
                for sql in (f"INSERT INTO t (a) VALUES ({n})", f"UPDATE t SET a = a + 1 WHERE v = {n} AND a < 950", f"DELETE FROM t WHERE s = 's{m}/{m + 1}'"):
                    run(c, sql)
        except Exception:  # noqa: BLE001
            pass

    c = connect(server, autocommit=True)
    for engine in ("LSM", "BTREE"):
        run(c, f"SET default_storage_engine = {engine}")
        tables(c)
        stop.clear()
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        try:
            wait_for(lambda: run(c, "SELECT COUNT(*) FROM test.t")[0][0] > 50, "no rows")
        finally:
            server.kill()
            stop.set()
            for thread in threads:
                thread.join()
        server.start()
        c = connect(server, autocommit=True)
        wrong = "SELECT * FROM test.t WHERE v <> a + 1 OR s <> CONCAT('s', a, '/', a + 1) OR a >= 1000 OR NOT (v <=> a + 1)"
        expect(run(c, wrong) == (), run(c, wrong))
        for column in ("v", "s"):
            through = run(c, f"SELECT COUNT(*) FROM test.t FORCE INDEX ({column}) WHERE {column} IS NOT NULL")
            expect(through == run(c, "SELECT COUNT(*) FROM test.t"), column)


def more_than_its_source(ours, chained, _):
    """A replica whose table has columns that its source's has not."""
    connection = connect(ours, autocommit=True)
    run(connection, "SET binlog_format = ROW")
    run(connection, "CREATE TABLE test.more (id INT PRIMARY KEY, a INT)")
    wait_caught_up(chained, ours)
    replica = connect(chained, autocommit=True)
    run(replica, "ALTER TABLE test.more ADD g INT AS (a * 2) STORED, ADD d INT DEFAULT (a + 5)")
    for sql in ("INSERT INTO test.more VALUES (1, 1), (2, 2)", "UPDATE test.more SET a = 10 WHERE id = 1"):
        expect(not is_error(run(connection, sql)), sql)
    wait_caught_up(chained, ours)
    found = run(replica, "SELECT * FROM test.more ORDER BY id")
    expect(found == ((1, 10, 20, 6), (2, 2, 4, 7)), found)


def main():
    seed = seeds.of_this_run()
    with Scratch("omnibus-expressions-") as name:
        directory = pathlib.Path(name)
        (directory / "m").mkdir()
        server, mariadb = Omnibus(directory), MariaDB(directory / "m")
        server.start()
        mariadb.start()
        same(connect(server, autocommit=True), connect(mariadb, autocommit=True), SCRIPTS, allowed)
        shown(server)
        load_data(server, directory)
        killed(server, seed)
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, mariadb, format, tables, LOAD, contents)
        replicas(directory, tables, LOAD, contents, more_than_its_source)
        server.stop()
        mariadb.stop()
    print("ok")


if __name__ == "__main__":
    main()
