#!/usr/bin/python3
"""Triggers.

The same statements run here and on MariaDB and must give the same results, errors and warnings, with both engines. Then rights, dumps,
what a kill -9 leaves, our log as MariaDB's script, and replicas in both directions.

Ring: gate.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, connect, expect  # noqa: E402
import twins  # noqa: E402
from twins import fresh, is_error, loaded, logged, replicas, run, same  # noqa: E402

LOG = "CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, x VARCHAR(100))"
SCRIPTS = {
    "each event": f"""
        CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20), c INT DEFAULT 5)
        {LOG}
        CREATE TRIGGER bi BEFORE INSERT ON t FOR EACH ROW INSERT INTO log (x) VALUES (CONCAT('bi ', NEW.a, ' ', IFNULL(NEW.b, '-'), NEW.c))
        CREATE TRIGGER ai AFTER INSERT ON t FOR EACH ROW INSERT INTO log (x) VALUES (CONCAT('ai ', NEW.a))
        CREATE TRIGGER bu BEFORE UPDATE ON t FOR EACH ROW BEGIN INSERT INTO log (x) VALUES (CONCAT('bu ', OLD.a, ' ', OLD.b, '>', NEW.b)); SET NEW.c = OLD.c + 1; END
        CREATE TRIGGER au AFTER UPDATE ON t FOR EACH ROW INSERT INTO log (x) VALUES (CONCAT('au ', OLD.c, '>', NEW.c))
        CREATE TRIGGER bd BEFORE DELETE ON t FOR EACH ROW INSERT INTO log (x) VALUES (CONCAT('bd ', OLD.a))
        CREATE TRIGGER ad AFTER DELETE ON t FOR EACH ROW INSERT INTO log (x) VALUES (CONCAT('ad ', OLD.a))
        CREATE TRIGGER ad AFTER DELETE ON t FOR EACH ROW SET @x = 1
        INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)
        INSERT INTO t (a) VALUES (3)
        INSERT INTO t VALUES (1, 'again', 1)
        UPDATE t SET b = UPPER(b) WHERE a < 3
        UPDATE t SET b = b WHERE a = 1
        INSERT INTO t VALUES (1, 'dup', 9) ON DUPLICATE KEY UPDATE b = 'updated'
        REPLACE INTO t VALUES (2, 'replaced', 0)
        REPLACE INTO t VALUES (2, 'replaced', 0)
        REPLACE INTO t VALUES (7, 'new', 0)
        INSERT IGNORE INTO t VALUES (1, 'ignored', 1), (8, 'kept', 1)
        INSERT INTO t SELECT a + 100, b, c FROM t WHERE a = 1
        DELETE FROM t WHERE a > 6
        UPDATE t x JOIN t y ON x.a = y.a SET x.b = 'joined' WHERE y.a = 3
        DELETE x FROM t x JOIN t y ON x.a = y.a WHERE y.a = 3
        SELECT * FROM t ORDER BY a
        SELECT x FROM log ORDER BY n
        TRUNCATE t
        SELECT COUNT(*) FROM log
        DROP TRIGGER bi
        DROP TRIGGER bi
        DROP TRIGGER IF EXISTS bi
        INSERT INTO t VALUES (50, 'x', 1)
        SELECT x FROM log ORDER BY n DESC LIMIT 1
    """,
    "NEW": """
        CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(5) NOT NULL, c TIMESTAMP NULL, d DECIMAL(5,2), e ENUM('x','y'), g DECIMAL(6,2) AS (d + 1) STORED, CHECK (d < 100))
        CREATE TRIGGER bi BEFORE INSERT ON t FOR EACH ROW BEGIN SET @id = NEW.a; IF NEW.b = '' THEN SET NEW.b = 'empty'; END IF; SET NEW.d = NEW.d * 2, NEW.e = 'y'; END
        INSERT INTO t (b, c, d) VALUES ('', '2024-06-01 12:00:00', 1.5)
        SELECT *, @id FROM t
        INSERT INTO t (b, d) VALUES ('x', 60)
        INSERT INTO t (b, d) VALUES ('x', 600)
        INSERT INTO t (a, b, d) VALUES (10, 'ten', 1), (NULL, 'next', 2)
        SELECT * FROM t ORDER BY a
        SET time_zone = '+05:00'
        CREATE TRIGGER bu BEFORE UPDATE ON t FOR EACH ROW SET NEW.c = NEW.c + INTERVAL 1 HOUR, @was = OLD.c
        UPDATE t SET b = 'later' WHERE a = 1
        SELECT c, @was FROM t WHERE a = 1
        SET time_zone = DEFAULT
        CREATE TRIGGER long_one BEFORE UPDATE ON t FOR EACH ROW FOLLOWS bu SET NEW.b = 'much too long'
        UPDATE t SET d = 3 WHERE a = 1
        SHOW COLUMNS FROM t LIKE 'b'
        DROP TRIGGER long_one
        CREATE TRIGGER wrong BEFORE INSERT ON t FOR EACH ROW SET NEW.nothing = 1
        CREATE TRIGGER wrong AFTER INSERT ON t FOR EACH ROW SET NEW.b = 1
        CREATE TRIGGER wrong BEFORE DELETE ON t FOR EACH ROW SET @x = NEW.b
        CREATE TRIGGER wrong BEFORE INSERT ON nowhere FOR EACH ROW SET @x = NEW.b
        CREATE TRIGGER wrong BEFORE INSERT ON t FOR EACH ROW SELECT 1
        CREATE TRIGGER wrong BEFORE INSERT ON t FOR EACH ROW COMMIT
        CREATE TRIGGER nulls BEFORE UPDATE ON t FOR EACH ROW FOLLOWS bu IF NEW.b IS NULL THEN SET NEW.b = 'was'; END IF
        UPDATE t SET b = NULL WHERE a = 1
        SELECT b FROM t WHERE a = 1
    """,
    "order": f"""
        CREATE TABLE t (a INT)
        {LOG}
        CREATE TRIGGER t1 BEFORE INSERT ON t FOR EACH ROW INSERT INTO log (x) VALUES ('1')
        CREATE TRIGGER t2 BEFORE INSERT ON t FOR EACH ROW INSERT INTO log (x) VALUES ('2')
        CREATE TRIGGER t3 BEFORE INSERT ON t FOR EACH ROW PRECEDES t1 INSERT INTO log (x) VALUES ('3')
        CREATE TRIGGER t4 BEFORE INSERT ON t FOR EACH ROW FOLLOWS t3 INSERT INTO log (x) VALUES ('4')
        INSERT INTO t VALUES (1)
        SELECT GROUP_CONCAT(x ORDER BY n) FROM log
        SELECT trigger_name, event_manipulation, event_object_table, action_order, action_timing, action_statement FROM information_schema.triggers WHERE trigger_schema = 'test' ORDER BY 4
        DROP TRIGGER t3
        INSERT INTO t VALUES (1)
        SELECT GROUP_CONCAT(x ORDER BY n) FROM log
    """,
    "errors": f"""
        CREATE TABLE t (a INT PRIMARY KEY)
        CREATE TABLE u (a INT PRIMARY KEY)
        {LOG}
        CREATE TRIGGER bad BEFORE INSERT ON t FOR EACH ROW IF NEW.a < 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'negative'; END IF
        INSERT INTO t VALUES (1), (-1), (2)
        SELECT * FROM t
        CREATE TRIGGER own AFTER INSERT ON t FOR EACH ROW UPDATE t SET a = a + 1
        INSERT INTO t VALUES (1)
        SELECT * FROM t
        DROP TRIGGER own
        CREATE TRIGGER to_u AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (NEW.a)
        CREATE TRIGGER to_log AFTER INSERT ON u FOR EACH ROW INSERT INTO log (x) VALUES (NEW.a)
        INSERT INTO t VALUES (1), (2)
        INSERT INTO u VALUES (5)
        INSERT INTO t VALUES (3), (5), (6)
        SELECT * FROM t
        SELECT * FROM u ORDER BY a
        SELECT x FROM log
        CREATE TRIGGER back AFTER INSERT ON log FOR EACH ROW INSERT INTO t VALUES (NEW.n + 100)
        INSERT INTO t VALUES (3)
        DROP TRIGGER back
        START TRANSACTION
        INSERT INTO t VALUES (30)
        ROLLBACK
        SELECT COUNT(*) FROM u
        CREATE TRIGGER handled BEFORE DELETE ON t FOR EACH ROW BEGIN DECLARE CONTINUE HANDLER FOR 1062 SET @h = 1; INSERT INTO u VALUES (5); INSERT INTO log (x) VALUES ('deleting'); END
        DELETE FROM t WHERE a = 1
        SELECT @h
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN INSERT INTO t VALUES (77); RETURN 1; END
        SELECT f()
        SELECT x FROM log ORDER BY n DESC LIMIT 1
        CREATE PROCEDURE p(x INT) INSERT INTO log (x) VALUES (CONCAT('p', x))
        CREATE TRIGGER calls AFTER DELETE ON t FOR EACH ROW CALL p(OLD.a)
        DELETE FROM t WHERE a = 77
        SELECT x FROM log ORDER BY n DESC LIMIT 1
        SELECT LAST_INSERT_ID()
        INSERT INTO log (x) VALUES ('last')
        SELECT LAST_INSERT_ID() = (SELECT MAX(n) FROM log)
        INSERT INTO t VALUES (78)
        SELECT LAST_INSERT_ID() = (SELECT MAX(n) FROM log), ROW_COUNT()
    """,
    "definitions": f"""
        CREATE TABLE t (a INT PRIMARY KEY, b INT)
        {LOG}
        CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log (x) VALUES (NEW.a)
        RENAME TABLE t TO r
        INSERT INTO r VALUES (1, 1)
        SELECT x FROM log
        CREATE DATABASE other
        RENAME TABLE r TO other.r
        ALTER TABLE r ADD c INT, DROP b
        INSERT INTO r VALUES (2, 2)
        SELECT x FROM log
        ALTER TABLE r RENAME TO t
        INSERT INTO t VALUES (3, 3)
        SELECT x FROM log
        SELECT trigger_name, event_object_table FROM information_schema.triggers WHERE trigger_schema = 'test'
        DROP TABLE t
        SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = 'test'
        CREATE TABLE t (a INT PRIMARY KEY)
        INSERT INTO t VALUES (1)
        CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW SET @a = NEW.a
        ALTER TABLE t CHANGE a z INT
        INSERT INTO t VALUES (4)
        CREATE TEMPORARY TABLE tt (a INT)
        CREATE TRIGGER temp AFTER INSERT ON tt FOR EACH ROW SET @a = NEW.a
        CREATE TABLE parent (a INT PRIMARY KEY)
        CREATE TABLE child (a INT, FOREIGN KEY (a) REFERENCES parent (a) ON DELETE CASCADE)
        CREATE TRIGGER gone AFTER DELETE ON child FOR EACH ROW INSERT INTO log (x) VALUES ('child')
        INSERT INTO parent VALUES (1), (2)
        INSERT INTO child VALUES (1), (2)
        DELETE FROM parent WHERE a = 1
        DELETE FROM child WHERE a = 2
        SELECT x FROM log
    """,
}

LOAD = """
    CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(30), c DATETIME)
    CREATE TABLE sums (k INT PRIMARY KEY, n INT NOT NULL)
    CREATE TABLE history (a INT, what VARCHAR(10), b VARCHAR(30))
    INSERT INTO sums VALUES (0, 0), (1, 0)
    CREATE TRIGGER bi BEFORE INSERT ON t FOR EACH ROW SET NEW.b = CONCAT(NEW.b, '!'), NEW.c = '2024-01-01'
    CREATE TRIGGER ai AFTER INSERT ON t FOR EACH ROW BEGIN UPDATE sums SET n = n + 1 WHERE k = NEW.a % 2; INSERT INTO history VALUES (NEW.a, 'in', NEW.b); END
    CREATE TRIGGER first BEFORE INSERT ON t FOR EACH ROW PRECEDES bi SET NEW.b = UPPER(NEW.b)
    CREATE TRIGGER au AFTER UPDATE ON t FOR EACH ROW INSERT INTO history VALUES (OLD.a, 'up', NEW.b)
    CREATE TRIGGER bd BEFORE DELETE ON t FOR EACH ROW UPDATE sums SET n = n - 1 WHERE k = OLD.a % 2
    INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, 'z')
    UPDATE t SET b = CONCAT(b, a) WHERE a > 1
    DELETE FROM t WHERE a = 2
    INSERT INTO t (a, b) VALUES (3, 'dup') ON DUPLICATE KEY UPDATE b = 'changed'
    REPLACE INTO t (a, b) VALUES (1, 'replaced')
    RENAME TABLE t TO u
    INSERT INTO u (a, b) VALUES (9, 'renamed')
    DROP TRIGGER au
    UPDATE u SET b = 'silent'
    CREATE TRIGGER later AFTER UPDATE ON u FOR EACH ROW INSERT INTO history VALUES (OLD.a, 'later', OLD.b)
    UPDATE u SET b = 'loud' WHERE a = 3
"""
LOAD = [line.strip() for line in LOAD.strip().splitlines()]


def allowed(sql, theirs):
    # MariaDB's codes; MySQL's.
    return {4031: (3011,), 4025: (3819,)}.get(theirs, (theirs,))


def contents(c):
    found = [run(c, f"SELECT * FROM test.{table} ORDER BY 1, 2, 3") for table in ("u", "history")]
    triggers = "SELECT trigger_name, event_manipulation, action_timing, action_order, event_object_table FROM information_schema.triggers WHERE trigger_schema = 'test' ORDER BY 1"
    return found, run(c, "SELECT * FROM test.sums ORDER BY k"), run(c, triggers)


def rights(server):
    root = connect(server, autocommit=True)
    fresh(root)
    for sql in ("CREATE TABLE t (a INT)", "CREATE TABLE log (x VARCHAR(50))", "CREATE USER u@localhost", "GRANT INSERT, SELECT ON test.* TO u@localhost",
                "CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES (CURRENT_USER())"):
        expect(not is_error(run(root, sql)), sql)
    u = connect(server, user="u", autocommit=True)
    for sql in ("CREATE TRIGGER test.mine BEFORE INSERT ON test.t FOR EACH ROW SET @a = 1", "DROP TRIGGER test.tr"):
        expect(run(u, sql) == 1142, sql)
    expect(run(u, "INSERT INTO test.t VALUES (1)") == 1, "in its definer's name")
    expect(run(root, "SELECT * FROM log") == (("root@localhost",),), run(root, "SELECT * FROM log"))
    run(root, "GRANT TRIGGER ON test.* TO u@localhost")
    expect(run(u, "CREATE TRIGGER test.mine BEFORE INSERT ON test.t FOR EACH ROW SET @a = 1") == 0, "with the right")
    run(root, "REVOKE TRIGGER ON test.* FROM u@localhost")
    expect(run(root, "INSERT INTO test.t VALUES (2)") == 1142, "its definer has lost the right")
    run(root, "DROP USER u@localhost")
    expect(run(root, "INSERT INTO test.t VALUES (2)") == 1449, "its definer is gone")
    run(root, "DROP TRIGGER test.mine")


def killed(directory, engine):
    (directory / engine).mkdir()
    server = Omnibus(directory / engine, "--default-storage-engine", engine)
    c = twins.killed(server, LOAD, contents)
    expect(run(c, "INSERT INTO test.u (a, b) VALUES (50, 'k')") == 1, "a row")
    expect(run(c, "SELECT b FROM test.u WHERE a = 50") == (("K!",),), "it fires")
    server.stop()


def dumped(server, peer):
    """A dump has triggers and, if asked, routines: there and here and there again."""
    theirs = connect(peer, autocommit=True)
    fresh(theirs)
    loaded(theirs, LOAD)
    run(theirs, "CREATE PROCEDURE p(IN a INT) COMMENT 'x' BEGIN SELECT a; END")
    run(theirs, "CREATE FUNCTION f(a INT) RETURNS VARCHAR(5) CHARSET utf8mb4 DETERMINISTIC RETURN a")
    for c in twins.dumped(server, peer, "--routines", contents):
        expect(run(c, "CALL test.p(4)") == ((4,),) and run(c, "SELECT test.f(5)") == (("5",),), "routines")


def main():
    with Scratch("omnibus-triggers-") as name:
        directory = pathlib.Path(name)
        (directory / "m").mkdir()
        server, peer = Omnibus(directory), MariaDB(directory / "m")
        for each in (server, peer):
            each.start()
        same(connect(server, autocommit=True), connect(peer, autocommit=True), SCRIPTS, allowed)
        rights(server)
        dumped(server, peer)
        for engine in ("LSM", "BTREE"):
            killed(directory, engine)
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, peer, format, fresh, LOAD, contents)
        replicas(directory, fresh, LOAD, contents, lambda *_: None)
        server.stop()
        peer.stop()
    print("ok")


if __name__ == "__main__":
    main()
