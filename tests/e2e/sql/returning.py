#!/usr/bin/python3
"""RETURNING, in MariaDB's dialect.

The same statements run here and on MariaDB and must give the same rows, errors and warnings, with both engines. Then prepared statements, programs,
rights, and our log as MariaDB's script.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, connect, expect  # noqa: E402
from twins import fresh, is_error, logged, run, same  # noqa: E402

SCRIPTS = {
    "inserted": """
        CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(10) DEFAULT 'dflt', g INT AS (a * 2) STORED, ts TIMESTAMP NULL DEFAULT '2024-01-01 00:00:00', hidden INT INVISIBLE DEFAULT 5)
        INSERT INTO t (a) VALUES (1), (2) RETURNING *
        INSERT INTO t (a, b) VALUES (3, 'x') RETURNING id, a + 1 AS plus, UPPER(b), g, ts, hidden
        INSERT INTO t SET a = 4 RETURNING t.*, test.t.a
        INSERT INTO t (a) SELECT a + 10 FROM t RETURNING id > 0, a, g
        INSERT INTO t (a) SELECT a FROM t WHERE FALSE RETURNING a
        INSERT INTO t (a, b) VALUES (1, 'one'), (50, 'fifty') ON DUPLICATE KEY UPDATE b = CONCAT(VALUES(b), '!'), a = a + 100 RETURNING a, b, g
        INSERT INTO t (a, b) VALUES (101, 'one!') ON DUPLICATE KEY UPDATE b = b RETURNING a, b
        INSERT IGNORE INTO t (a) VALUES (2), (60) RETURNING a
        INSERT INTO t (a) VALUES (70), (2) RETURNING a
        SELECT COUNT(*) FROM t
        REPLACE INTO t (a, b) VALUES (2, 'r'), (80, 's') RETURNING a, b, g
        REPLACE INTO t SET a = 2, b = 'again' RETURNING b
        INSERT INTO t (a) VALUES (90) RETURNING COUNT(*)
        INSERT INTO t (a) VALUES (90) RETURNING nothing
        INSERT INTO t (a) VALUES (90) RETURNING u.*
        INSERT INTO t (a) VALUES (90) RETURNING (SELECT 7), LAST_INSERT_ID() > 0
        SET time_zone = '+05:00'
        INSERT INTO t (a) VALUES (91) RETURNING ts
        SET time_zone = DEFAULT
        CREATE TRIGGER bi BEFORE INSERT ON t FOR EACH ROW SET NEW.b = CONCAT('<', NEW.b, '>')
        CREATE TRIGGER bu BEFORE UPDATE ON t FOR EACH ROW SET NEW.b = CONCAT('[', NEW.b, ']')
        INSERT INTO t (a, b) VALUES (92, 'tr') RETURNING b
        INSERT INTO t (a, b) VALUES (92, 'tr') ON DUPLICATE KEY UPDATE b = 'up' RETURNING b
    """,
    "deleted": """
        CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10), ts TIMESTAMP NULL)
        INSERT INTO t VALUES (1, 'x', '2024-01-01'), (2, 'y', NULL), (3, 'z', NULL), (4, 'w', NULL)
        DELETE FROM t WHERE a = 1 RETURNING *
        DELETE FROM t WHERE a = 1 RETURNING *
        DELETE FROM t ORDER BY a DESC LIMIT 1 RETURNING a, CONCAT(b, b) AS twice
        DELETE FROM t RETURNING SUM(a)
        CREATE TABLE u (a INT)
        INSERT INTO u VALUES (3)
        DELETE t FROM t JOIN u ON t.a = u.a RETURNING t.a
        START TRANSACTION
        DELETE FROM t RETURNING a
        ROLLBACK
        SELECT * FROM t
        CREATE PROCEDURE p() BEGIN INSERT INTO t VALUES (7, 'p', NULL) RETURNING a; END
        CALL p()
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN DELETE FROM t RETURNING a; RETURN 1; END
        CREATE TRIGGER tr AFTER INSERT ON u FOR EACH ROW DELETE FROM t RETURNING a
        CREATE VIEW v AS SELECT a AS n, b AS s FROM t
        INSERT INTO v VALUES (8, 'v') RETURNING n, s
        DELETE FROM v WHERE n = 8 RETURNING *
        SELECT * FROM t ORDER BY a
    """,
}

LOAD = ["CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(10))", "INSERT INTO t VALUES (1, 'x'), (2, 'y') RETURNING a",
        "REPLACE INTO t VALUES (1, 'z') RETURNING b", "DELETE FROM t WHERE a = 2 RETURNING *"]


def contents(c):
    return run(c, "SELECT * FROM test.t ORDER BY a")


def allowed(sql, theirs):
    # MariaDB's code; MySQL's.
    return {1221: (1221, 1235)}.get(theirs, (theirs,))


def prepared(server):
    root = connect(server, autocommit=True)
    fresh(root)
    run(root, "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
    run(root, "PREPARE s FROM 'INSERT INTO t (a) VALUES (?), (?) RETURNING id, a'")
    run(root, "SET @x = 5, @y = 6")
    expect(run(root, "EXECUTE s USING @x, @y") == ((1, 5), (2, 6)), "prepared")
    expect(run(root, "EXECUTE s USING @y, @x") == ((3, 6), (4, 5)), "again")
    for sql in ("CREATE USER u@localhost", "GRANT INSERT, DELETE ON test.* TO u@localhost"):
        expect(not is_error(run(root, sql)), sql)
    u = connect(server, user="u", autocommit=True)
    expect(is_error(run(u, "INSERT INTO test.t (a) VALUES (1) RETURNING a")), "what is given back is read")
    expect(run(u, "INSERT INTO test.t (a) VALUES (1)") == 1, "without")
    run(root, "DROP USER u@localhost")


def main():
    with Scratch("omnibus-returning-") as name:
        directory = pathlib.Path(name)
        for part in ("m", "mysql"):
            (directory / part).mkdir()
        server, peer, other = Omnibus(directory, "--dialect=mariadb"), MariaDB(directory / "m"), Omnibus(directory / "mysql")
        for each in (server, peer, other):
            each.start()
        same(connect(server, autocommit=True), connect(peer, autocommit=True), SCRIPTS, allowed)
        prepared(server)
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, peer, format, fresh, LOAD, contents)
        c = connect(other, autocommit=True)
        fresh(c)
        run(c, "CREATE TABLE t (a INT)")
        expect(run(c, "INSERT INTO t VALUES (1) RETURNING a") == 1235, "only in its dialect")
        for each in (server, peer, other):
            each.stop()
    print("ok")


if __name__ == "__main__":
    main()
