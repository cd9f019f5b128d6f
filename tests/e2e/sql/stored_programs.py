#!/usr/bin/python3
"""Stored procedures and functions.

The same statements run here and on MariaDB and must give the same result sets, errors and warnings. Then the binary protocol, rights,
KILL, what a kill -9 leaves, our log as MariaDB's script, and replicas in both directions.

Ring: gate.
"""

import pathlib
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, connect, expect, wait_for  # noqa: E402
import twins  # noqa: E402
from twins import fresh, is_error, logged, replicas, run  # noqa: E402

SCRIPTS = {
    "variables": """
        CREATE PROCEDURE p(IN a INT, OUT b INT, INOUT c VARCHAR(10)) BEGIN DECLARE x, y INT DEFAULT a + 1; SET b = x * y, c = CONCAT(c, '!'); SELECT a, b, c, x; END
        SET @b = 5, @c = 'q'
        CALL p(2, @b, @c)
        SELECT @b, @c
        CALL p(2, 3, @c)
        CALL p(2, @b)
        CALL p('x', @b, @c)
        CALL p(3000000000, @b, @c)
        CALL p(NULL, @b, @c)
        SELECT @b, @c
        SET @c = '1234567890'
        CALL p(1, @b, @c)
        CALL nothing()
        CALL other.p(1)
        CREATE PROCEDURE p() SELECT 1
        CREATE PROCEDURE IF NOT EXISTS p() SELECT 1
        DROP PROCEDURE q
        DROP PROCEDURE IF EXISTS q
        DROP PROCEDURE p
        CALL p(1, @b, @c)
        CREATE PROCEDURE p(a INT) BEGIN DECLARE a INT DEFAULT 7; SELECT a; BEGIN DECLARE a CHAR(3) DEFAULT 'in'; SELECT a; END; SELECT a; END
        CALL p(1)
        CREATE PROCEDURE q() BEGIN DECLARE d DATE DEFAULT '2024-02-30'; SELECT d; END
        CALL q()
        CREATE PROCEDURE r() BEGIN DECLARE a TINYINT; SET a = 200; SELECT a; END
        CALL r()
        SET sql_mode = ''
        CREATE PROCEDURE s() BEGIN DECLARE a TINYINT; SET a = 200; SELECT a, @@sql_mode; END
        SET sql_mode = DEFAULT
        CALL s()
        CREATE PROCEDURE t() BEGIN DECLARE e ENUM('a','b') DEFAULT 'b'; DECLARE s SET('x','y') DEFAULT 'x,y'; DECLARE t TIME DEFAULT '10:00:01'; DECLARE n DECIMAL(5,2) DEFAULT 1.239; DECLARE f DOUBLE DEFAULT 1e3; DECLARE y YEAR DEFAULT 2020; SELECT e, s, t, n, f, y, e + 0; END
        CALL t()
    """,
    "commits": """
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE VIEW v AS SELECT 1; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN DROP VIEW v; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE TABLE t (a INT); RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE TEMPORARY TABLE t (a INT); RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN ALTER TABLE t ADD b INT; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN DROP TEMPORARY TABLE IF EXISTS t; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE INDEX i ON t (a); RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN TRUNCATE t; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN RENAME TABLE t TO u; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE DATABASE d; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE USER u; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN GRANT SELECT ON *.* TO u; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE ROLE r; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN DROP EVENT e; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN START TRANSACTION; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN COMMIT; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN ROLLBACK; RETURN 1; END
        DROP FUNCTION IF EXISTS f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN ANALYZE TABLE t; RETURN 1; END
        DROP FUNCTION IF EXISTS f
    """,
    "commits of called procedures": """
        CREATE PROCEDURE p() SET @a = 1
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CALL p(); RETURN 1; END
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() CREATE VIEW v AS SELECT 1
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() DROP VIEW v
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() ALTER EVENT e DISABLE
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() DROP EVENT e
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() CREATE TABLE t (a INT)
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() CREATE USER u
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() GRANT SELECT ON *.* TO u
        SELECT f()
        DROP PROCEDURE p
        CREATE PROCEDURE p() COMMIT
        SELECT f()
        DROP FUNCTION f
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1; RETURN 1; END
    """,
    "settings": """
        CREATE TABLE t (a INT)
        CREATE FUNCTION f(n INT) RETURNS INT DETERMINISTIC BEGIN SET SESSION group_concat_max_len = n; SET @@session.max_error_count = n DIV 100; RETURN @@group_concat_max_len; END
        SELECT f(2000)
        SELECT @@group_concat_max_len, @@max_error_count
        CREATE TRIGGER b BEFORE INSERT ON t FOR EACH ROW SET SESSION div_precision_increment = NEW.a
        INSERT INTO t VALUES (6)
        SELECT @@div_precision_increment, 1 / 3
        INSERT INTO t VALUES (6), (7)
        SELECT @@div_precision_increment, 1 / 3
        SET div_precision_increment = DEFAULT
        CREATE FUNCTION q() RETURNS INT DETERMINISTIC BEGIN SET sql_mode = ''; RETURN 1; END
        SELECT q()
        SELECT @@sql_mode <> ''
        CREATE FUNCTION g(n INT) RETURNS INT DETERMINISTIC BEGIN SET GLOBAL max_error_count = n; RETURN n; END
        SELECT g(99)
        SELECT @@global.max_error_count
        SET GLOBAL max_error_count = 64
        CREATE FUNCTION d() RETURNS INT DETERMINISTIC BEGIN SET SESSION group_concat_max_len = 'x'; RETURN 1; END
        SELECT d()
        CREATE FUNCTION e() RETURNS INT DETERMINISTIC BEGIN SET SESSION sql_log_bin = 0; RETURN 1; END
        SELECT e()
        CREATE FUNCTION h() RETURNS INT DETERMINISTIC BEGIN SET SESSION binlog_format = 'ROW'; RETURN 1; END
        SELECT h()
        SET group_concat_max_len = DEFAULT, max_error_count = DEFAULT
    """,
    "control": """
        CREATE PROCEDURE p(n INT) BEGIN IF n = 1 THEN SELECT 'one'; ELSEIF n IS NULL THEN SELECT 'null'; ELSE SELECT 'other'; END IF; END
        CALL p(1)
        CALL p(NULL)
        CALL p(5)
        CREATE PROCEDURE c(n INT) CASE n WHEN 1 THEN SELECT 'one'; WHEN 2 THEN SELECT 'two'; END CASE
        CALL c(1)
        CALL c(2)
        CALL c(3)
        CREATE PROCEDURE d(n INT) BEGIN CASE WHEN n < 0 THEN SELECT 'negative'; ELSE BEGIN END; END CASE; SELECT 'end'; END
        CALL d(-1)
        CALL d(1)
        CREATE PROCEDURE l(n INT) BEGIN DECLARE i INT DEFAULT 0; DECLARE s TEXT DEFAULT ''; a: LOOP SET i = i + 1; IF i > n THEN LEAVE a; END IF; IF i % 2 THEN ITERATE a; END IF; SET s = CONCAT(s, i, ','); END LOOP a; SELECT s; END
        CALL l(9)
        CREATE PROCEDURE w(n INT) BEGIN DECLARE s TEXT DEFAULT ''; WHILE n > 0 DO SET s = CONCAT(s, n), n = n - 1; END WHILE; REPEAT SET n = n + 3; UNTIL n > 7 END REPEAT; SELECT s, n; END
        CALL w(4)
        CREATE PROCEDURE o() a: BEGIN b: BEGIN IF 1 THEN LEAVE a; END IF; SELECT 'no'; END; SELECT 'never'; END
        CALL o()
        CREATE PROCEDURE nested() BEGIN DECLARE i, j INT DEFAULT 0; DECLARE n INT DEFAULT 0; x: WHILE i < 5 DO SET i = i + 1, j = 0; WHILE TRUE DO SET j = j + 1, n = n + 1; IF j > i THEN ITERATE x; END IF; END WHILE; END WHILE; SELECT i, j, n; END
        CALL nested()
    """,
    "handlers": """
        CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(5))
        INSERT INTO t VALUES (1, 'x'), (2, 'y')
        CREATE PROCEDURE p() BEGIN DECLARE CONTINUE HANDLER FOR 1062 SET @seen = 'duplicate'; INSERT INTO t VALUES (1, 'z'); SELECT 'after'; END
        CALL p()
        SELECT @seen
        CREATE PROCEDURE e() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 'caught'; INSERT INTO t VALUES (1, 'z'); SELECT 'never'; END
        CALL e()
        CREATE PROCEDURE inner_e() INSERT INTO t VALUES (1, 'q')
        CREATE PROCEDURE outer_e() BEGIN DECLARE EXIT HANDLER FOR SQLSTATE '23000' SELECT 'outer'; CALL inner_e(); END
        CALL outer_e()
        CALL inner_e()
        CREATE PROCEDURE nf() BEGIN DECLARE x INT DEFAULT 9; DECLARE CONTINUE HANDLER FOR NOT FOUND SET x = -1; SELECT a INTO x FROM t WHERE a = 100; SELECT x; SELECT a INTO x FROM t WHERE a = 2; SELECT x; END
        CALL nf()
        CREATE PROCEDURE many() BEGIN DECLARE x INT; SELECT a INTO x FROM t; END
        CALL many()
        CREATE PROCEDURE specific() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 'general'; DECLARE EXIT HANDLER FOR SQLSTATE '23000' SELECT 'state'; DECLARE EXIT HANDLER FOR 1062 SELECT 'code'; INSERT INTO t VALUES (1, 'z'); END
        CALL specific()
        CREATE PROCEDURE warn() BEGIN DECLARE w INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR SQLWARNING SET w = w + 1; SET @x = CAST('12abc' AS SIGNED); SELECT w; SELECT 1 / 0; SELECT w; END
        CALL warn()
        CREATE PROCEDURE inside() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO t VALUES (1, 'again'); END; INSERT INTO t VALUES (1, 'z'); END
        CALL inside()
        CREATE PROCEDURE levels() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SELECT 'outer'; BEGIN DECLARE CONTINUE HANDLER FOR 1146 SELECT 'inner'; SELECT * FROM nowhere; INSERT INTO t VALUES (1, 'z'); SELECT 'going on'; END; SELECT 'end'; END
        CALL levels()
        CREATE PROCEDURE cond() BEGIN DECLARE gone CONDITION FOR 1146; DECLARE EXIT HANDLER FOR gone SELECT 'gone'; SELECT * FROM nowhere; END
        CALL cond()
        CREATE PROCEDURE bad_if() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SELECT 'caught'; IF (SELECT a FROM t) THEN SELECT 'yes'; ELSE SELECT 'no'; END IF; SELECT 'end'; END
        CALL bad_if()
        SELECT * FROM t
    """,
    "signals": """
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'mine', MYSQL_ERRNO = 1234
        SIGNAL SQLSTATE '45000'
        SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'a warning', MYSQL_ERRNO = 1111
        SIGNAL SQLSTATE '02000'
        SIGNAL SQLSTATE '23000' SET TABLE_NAME = 't', COLUMN_NAME = 'c', SCHEMA_NAME = 's', CONSTRAINT_NAME = 'k', CURSOR_NAME = 'u', CLASS_ORIGIN = 'o'
        GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT
        SELECT @n, @r
        SIGNAL SQLSTATE '23000' SET TABLE_NAME = 't', COLUMN_NAME = 'c', SCHEMA_NAME = 's', CONSTRAINT_NAME = 'k', CURSOR_NAME = 'u', CLASS_ORIGIN = 'o'
        GET DIAGNOSTICS CONDITION 1 @a = TABLE_NAME, @b = COLUMN_NAME, @c = SCHEMA_NAME, @d = CONSTRAINT_NAME, @e = CURSOR_NAME, @f = CLASS_ORIGIN, @g = MESSAGE_TEXT, @h = MYSQL_ERRNO, @i = RETURNED_SQLSTATE
        SELECT @a, @b, @c, @d, @e, @f, @g, @h, @i
        SELECT * FROM nowhere
        GET DIAGNOSTICS CONDITION 1 @g = MESSAGE_TEXT, @h = MYSQL_ERRNO, @i = RETURNED_SQLSTATE
        SELECT @g, @h, @i
        RESIGNAL
        SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 0
        SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = NULL
        CREATE PROCEDURE p(n INT) BEGIN DECLARE c CONDITION FOR SQLSTATE '45001'; IF n = 1 THEN SIGNAL c; ELSEIF n = 2 THEN SIGNAL c SET MESSAGE_TEXT = 'two'; END IF; SELECT 'fine'; END
        CALL p(1)
        CALL p(2)
        CALL p(3)
        CREATE PROCEDURE r(n INT) BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT; IF n = 1 THEN RESIGNAL; ELSEIF n = 2 THEN RESIGNAL SET MESSAGE_TEXT = 'changed'; ELSEIF n = 3 THEN RESIGNAL SQLSTATE '45002' SET MYSQL_ERRNO = 77; END IF; END; CALL p(2); END
        CALL r(1)
        CALL r(2)
        CALL r(3)
        CALL r(4)
        SELECT @m
    """,
    "cursors": """
        CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(5))
        INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')
        CREATE PROCEDURE p() BEGIN DECLARE done INT DEFAULT 0; DECLARE x INT; DECLARE y VARCHAR(5); DECLARE s TEXT DEFAULT ''; DECLARE c CURSOR FOR SELECT a, b FROM t ORDER BY a DESC; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; l: LOOP FETCH c INTO x, y; IF done THEN LEAVE l; END IF; SET s = CONCAT(s, x, y, ' '); DELETE FROM t WHERE a = x; END LOOP; CLOSE c; SELECT s; END
        CALL p()
        SELECT COUNT(*) FROM t
        CREATE PROCEDURE twice() BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN c; OPEN c; END
        CALL twice()
        CREATE PROCEDURE closed() BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT 1; FETCH c INTO x; END
        CALL closed()
        CREATE PROCEDURE unopened() BEGIN DECLARE c CURSOR FOR SELECT 1; CLOSE c; END
        CALL unopened()
        CREATE PROCEDURE few() BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT 1, 2; OPEN c; FETCH c INTO x; END
        CALL few()
        CREATE PROCEDURE over() BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT 1; OPEN c; FETCH c INTO x; FETCH c INTO x; END
        CALL over()
        CREATE PROCEDURE again() BEGIN DECLARE i INT DEFAULT 0; DECLARE x INT; WHILE i < 3 DO BEGIN DECLARE c CURSOR FOR SELECT i * 10; OPEN c; FETCH c INTO x; END; SET i = i + 1; END WHILE; SELECT x; END
        CALL again()
        CREATE PROCEDURE two() BEGIN DECLARE x, y INT; DECLARE c CURSOR FOR SELECT 1 UNION SELECT 2; DECLARE d CURSOR FOR SELECT 5; OPEN c; OPEN d; FETCH c INTO x; FETCH d INTO y; FETCH c INTO x; CLOSE d; CLOSE c; SELECT x, y; END
        CALL two()
    """,
    "statements": """
        CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(20))
        CREATE PROCEDURE p(v VARCHAR(20), n INT) BEGIN INSERT INTO t (b) VALUES (v), (CONCAT(v, n)); UPDATE t SET b = UPPER(b) WHERE a = n; SELECT ROW_COUNT(); SELECT LAST_INSERT_ID(); SELECT * FROM t ORDER BY a LIMIT n; DELETE FROM t WHERE b = v; END
        CALL p('v', 1)
        CALL p('w', 2)
        SELECT * FROM t
        CREATE PROCEDURE trx() BEGIN START TRANSACTION; INSERT INTO t (b) VALUES ('rolled back'); ROLLBACK; START TRANSACTION; INSERT INTO t (b) VALUES ('kept'); SAVEPOINT s; INSERT INTO t (b) VALUES ('to savepoint'); ROLLBACK TO s; COMMIT; END
        CALL trx()
        SELECT b FROM t
        CREATE PROCEDURE ddl() BEGIN CREATE TABLE u (x INT); INSERT INTO u VALUES (4); ALTER TABLE u ADD y INT DEFAULT 2; SELECT * FROM u; DROP TABLE u; CREATE TEMPORARY TABLE tt (a INT); INSERT INTO tt VALUES (1); SELECT * FROM tt; DROP TEMPORARY TABLE tt; END
        CALL ddl()
        CALL ddl()
        CREATE PROCEDURE dyn(s TEXT) BEGIN SET @s = s; PREPARE st FROM @s; EXECUTE st; DEALLOCATE PREPARE st; END
        CALL dyn('SELECT 5 + 6')
        CALL dyn('SET @q = 12')
        SELECT @q
        CALL dyn('SELECT * FROM nowhere')
        CREATE PROCEDURE vars() BEGIN DECLARE n INT DEFAULT 100000; SET SESSION sort_buffer_size = n; SELECT @@sort_buffer_size; SET @@sql_select_limit = 1, @a = 3; SELECT 1 UNION SELECT 2; SET sql_select_limit = DEFAULT; END
        CALL vars()
        SELECT @a
        CREATE PROCEDURE shows() BEGIN SHOW TABLES; SHOW COUNT(*) ERRORS; END
        CALL shows()
        CREATE PROCEDURE rec(n INT) BEGIN IF n > 0 THEN CALL rec(n - 1); END IF; SELECT n; END
        CALL rec(0)
        CALL rec(1)
        SET max_sp_recursion_depth = 3
        CALL rec(3)
        CALL rec(5)
        SET max_sp_recursion_depth = 0
        CREATE PROCEDURE outs(OUT a INT) SET a = 5
        CREATE PROCEDURE callouts() BEGIN DECLARE v INT; CALL outs(v); SELECT v; CALL outs(@w); SELECT @w; END
        CALL callouts()
        CREATE PROCEDURE badouts() CALL outs(5)
        CALL badouts()
        PREPARE st FROM 'CALL outs(?)'
        SET @z = 1
        EXECUTE st USING @z
        SELECT @z
        CREATE PROCEDURE use_it() USE mysql
        CREATE PROCEDURE lock_it() LOCK TABLES t READ
        CREATE PROCEDURE make_it() CREATE PROCEDURE x() SELECT 1
        CREATE PROCEDURE load_it() LOAD DATA INFILE 'x' INTO TABLE t
        CREATE PROCEDURE drop_it() DROP PROCEDURE p
    """,
    "functions": """
        CREATE FUNCTION f(a INT) RETURNS INT DETERMINISTIC RETURN a * 2
        SELECT f(4), f(NULL), f('7') + 1
        SELECT f(1, 2)
        SELECT g(1)
        SELECT test.f(3), other.f(3)
        CREATE TABLE t (a INT PRIMARY KEY, b INT)
        INSERT INTO t VALUES (1, f(1)), (2, f(2)), (3, f(3))
        SELECT a, f(b) FROM t WHERE f(a) > 2 ORDER BY f(a) DESC
        UPDATE t SET b = f(b) WHERE a = f(1)
        SELECT * FROM t
        CREATE FUNCTION n() RETURNS INT NO SQL BEGIN DECLARE x INT DEFAULT 1; IF x = 2 THEN RETURN x; END IF; END
        SELECT n()
        CREATE FUNCTION cnt(lo INT) RETURNS INT READS SQL DATA BEGIN DECLARE x INT; SELECT COUNT(*) INTO x FROM t WHERE a >= lo; RETURN x; END
        SELECT cnt(2), cnt(0)
        SELECT a, cnt(a) FROM t
        CREATE FUNCTION ins(n INT) RETURNS INT MODIFIES SQL DATA DETERMINISTIC BEGIN INSERT INTO t VALUES (n, -n); RETURN LAST_INSERT_ID(); END
        SELECT ins(10)
        SELECT ins(10)
        SELECT ins(a + 100) FROM t
        SELECT COUNT(*) FROM t
        CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, x INT)
        CREATE FUNCTION logged(x INT) RETURNS INT DETERMINISTIC BEGIN INSERT INTO log (x) VALUES (x); IF x > 3 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too large'; END IF; RETURN x; END
        SELECT logged(1), logged(2)
        SELECT logged(3), logged(4)
        SELECT * FROM log
        UPDATE t SET b = logged(a)
        SELECT x FROM log
        DO logged(2)
        SET @v = logged(3)
        SELECT @v, COUNT(*) FROM log
        CREATE FUNCTION bad() RETURNS INT DETERMINISTIC BEGIN SELECT 1; RETURN 1; END
        CREATE FUNCTION bad() RETURNS INT DETERMINISTIC BEGIN COMMIT; RETURN 1; END
        CREATE FUNCTION bad() RETURNS INT DETERMINISTIC BEGIN CREATE TABLE x (a INT); RETURN 1; END
        CREATE FUNCTION bad() RETURNS INT DETERMINISTIC BEGIN PREPARE s FROM 'SELECT 1'; RETURN 1; END
        CREATE FUNCTION bad() RETURNS INT DETERMINISTIC BEGIN FLUSH TABLES; RETURN 1; END
        CREATE FUNCTION rec(n INT) RETURNS INT DETERMINISTIC RETURN IF(n > 0, rec(n - 1), 0)
        SELECT rec(2)
        CREATE FUNCTION handled(n INT) RETURNS VARCHAR(20) DETERMINISTIC BEGIN DECLARE EXIT HANDLER FOR 1062 RETURN 'duplicate'; INSERT INTO t VALUES (n, 0); RETURN 'inserted'; END
        SELECT handled(1), handled(77), handled(77)
        SELECT COUNT(*) FROM t
        CREATE FUNCTION str(s VARCHAR(10)) RETURNS VARCHAR(5) DETERMINISTIC RETURN CONCAT(s, s)
        SELECT str('ab'), str('abcdef')
        SELECT str('abcdefghijkl')
        CREATE FUNCTION viaproc(n INT) RETURNS INT DETERMINISTIC BEGIN DECLARE r INT; CALL half(n, r); RETURN r; END
        CREATE PROCEDURE half(n INT, OUT r INT) SET r = n DIV 2
        SELECT viaproc(9)
        CREATE PROCEDURE rows_out() SELECT 1
        CREATE FUNCTION viarows() RETURNS INT DETERMINISTIC BEGIN CALL rows_out(); RETURN 1; END
        SELECT viarows()
        CREATE PROCEDURE commits() COMMIT
        CREATE FUNCTION viacommit() RETURNS INT DETERMINISTIC BEGIN CALL commits(); RETURN 1; END
        SELECT viacommit()
        CREATE FUNCTION nowf() RETURNS DATETIME(6) NO SQL RETURN NOW(6)
        SELECT nowf() = NOW(6), SLEEP(0.01), nowf() = NOW(6)
        DROP FUNCTION f
        SELECT f(1)
        DROP FUNCTION f
        DROP FUNCTION IF EXISTS f
    """,
}


def everything(connection, sql):
    """All result sets, or what came before an error; then the conditions."""
    import pymysql
    cursor, results = connection.cursor(), []
    try:
        cursor.execute(sql)
        while True:
            if cursor.description is not None:
                results.append(([column[0] for column in cursor.description], cursor.fetchall()))
            else:
                results.append(cursor.rowcount if not sql.startswith("CALL") else "OK")
            if not cursor.nextset():
                break
    except pymysql.err.MySQLError as error:
        if error.args[0] in (0, 2006, 2013):
            raise
        results.append(error.args[0])
    warnings = run(connection, "SHOW WARNINGS")
    # 4094 says where in a program an error was.
    return results, [(level, code) for level, code, _ in warnings if code != 4094]


def differences(ours, theirs, scripts):
    found = []
    for name, script in scripts.items():
        fresh(ours)
        fresh(theirs)
        before = everything(theirs, "DO 1")[1]
        for sql in (line.strip() for line in script.strip().splitlines()):
            here, there = everything(ours, sql), everything(theirs, sql)
            # What a statement without tables leaves of the conditions before it is each server's own.
            left = set(here[1]) <= set(there[1]) and (bool(here[1]) or there[1] == before or sql.startswith("CALL"))
            if here[0] != there[0] or here[1] != there[1] and not left:
                found.append(f"{name}: {sql}\n  here    {here}\n  MariaDB {there}")
            before = there[1]
    return found


LOAD = """
    CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(30), c DATETIME, d DECIMAL(8,3))
    CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, x VARCHAR(30))
    CREATE PROCEDURE fill(lo INT, hi INT, v VARCHAR(10) CHARSET utf8mb4) BEGIN DECLARE i INT DEFAULT lo; DECLARE at DATETIME DEFAULT '2024-01-02 03:04:05'; DECLARE n DECIMAL(8,3); WHILE i < hi DO SET n = i / 8; INSERT INTO t VALUES (i, CONCAT(v, i), at, n); SET i = i + 1; END WHILE; UPDATE t SET b = CONCAT(b, v) WHERE a = lo; DELETE FROM t WHERE a = hi - 1; END
    CALL fill(0, 5, 'x')
    CALL fill(10, 15, 'it''s \u00e9')
    CREATE FUNCTION noted(x INT) RETURNS INT MODIFIES SQL DATA DETERMINISTIC BEGIN INSERT INTO log (x) VALUES (CONCAT('n', x)); RETURN x + 1; END
    INSERT INTO t (a, b) VALUES (noted(20), 'f'), (noted(30), 'g')
    SELECT noted(50)
    DO noted(60)
    UPDATE t SET a = a + 100 WHERE a = 21
    CREATE PROCEDURE trx(fails INT) BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; INSERT INTO log (x) VALUES ('failed'); END; START TRANSACTION; INSERT INTO t (a) VALUES (200 + fails); IF fails THEN INSERT INTO t (a) VALUES (0); END IF; COMMIT; END
    CALL trx(0)
    CALL trx(1)
    ALTER PROCEDURE trx COMMENT 'changed' SQL SECURITY INVOKER
    CREATE PROCEDURE gone() SELECT 1
    DROP PROCEDURE gone
    CREATE PROCEDURE other() BEGIN CREATE TABLE IF NOT EXISTS made (a INT PRIMARY KEY); INSERT INTO made VALUES (1); END
    CALL other()
"""
LOAD = [line.strip() for line in LOAD.encode().decode("unicode_escape").strip().splitlines()]


def tables(c):
    fresh(c)


def contents(c):
    found = [run(c, f"SELECT * FROM test.{table} ORDER BY 1") for table in ("t", "log", "made")]
    programs = run(c, "SHOW PROCEDURE STATUS WHERE db = 'test'")
    names = sorted(row[1] for row in programs) if not is_error(programs) else programs
    return found, names


def show(server):
    """What SHOW CREATE shows makes the same program again."""
    c = connect(server, autocommit=True)
    fresh(c)
    body = "BEGIN DECLARE x INT DEFAULT a; SELECT x, 'it''s', `a`; END"
    run(c, f"CREATE PROCEDURE p(IN a INT, OUT b VARCHAR(10)) NO SQL SQL SECURITY INVOKER COMMENT 'it''s' {body}")
    run(c, "CREATE FUNCTION f(a INT) RETURNS VARCHAR(10) CHARSET utf8mb4 DETERMINISTIC RETURN a")
    wanted = f"CREATE DEFINER=`root`@`localhost` PROCEDURE `p`(IN a INT, OUT b VARCHAR(10))\n    NO SQL\n    SQL SECURITY INVOKER\n    COMMENT 'it''s'\n{body}"
    for name, kind in (("p", "PROCEDURE"), ("f", "FUNCTION")):
        before = run(c, f"SHOW CREATE {kind} {name}")[0]
        run(c, f"DROP {kind} {name}")
        expect(run(c, before[2]) == 0, before[2])
        after = run(c, f"SHOW CREATE {kind} {name}")[0]
        expect(before == after, f"{before}\n{after}")
        if name == "p":
            expect(after[2] == wanted, f"{after[2]}\n{wanted}")
    expect(run(c, "CREATE FUNCTION g() RETURNS INT RETURN 1") == 1418, "1418")
    run(c, "SET GLOBAL log_bin_trust_function_creators = 1")
    expect(run(c, "CREATE FUNCTION g() RETURNS INT RETURN 1") == 0, "log_bin_trust_function_creators")
    run(c, "CREATE PROCEDURE s() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN GET STACKED DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT, @o = CLASS_ORIGIN; END; SELECT * FROM nowhere; END")
    run(c, "CALL s()")
    expect(run(c, "SELECT @m, @o") == (("Table 'test.nowhere' doesn't exist", "ISO 9075"),), run(c, "SELECT @m, @o"))


def rights(server):
    root = connect(server, autocommit=True)
    fresh(root)
    for sql in ("CREATE TABLE t (a INT)", "INSERT INTO t VALUES (4)", "CREATE DATABASE IF NOT EXISTS mine",
                "CREATE PROCEDURE fetches() SELECT a, CURRENT_USER() FROM t",
                "CREATE PROCEDURE invoked() SQL SECURITY INVOKER SELECT a FROM t",
                "CREATE FUNCTION f() RETURNS INT READS SQL DATA BEGIN DECLARE x INT; SELECT a INTO x FROM t; RETURN x; END",
                "CREATE PROCEDURE sets() SET GLOBAL max_connections = @@max_connections",
                "CREATE USER u@localhost", "GRANT EXECUTE ON test.* TO u@localhost", "GRANT ALL ON mine.* TO u@localhost", "CREATE USER v@localhost",
                "CREATE DEFINER=nobody@localhost PROCEDURE gone() SELECT 1"):
        expect(not is_error(run(root, sql)), sql)
    u, v = connect(server, user="u", autocommit=True), connect(server, user="v", autocommit=True)
    expect(run(u, "CALL test.fetches()") == ((4, "root@localhost"),), "as its definer")
    for c, sql, code in ((u, "SELECT * FROM test.t", 1142), (u, "CALL test.invoked()", 1142), (u, "DROP PROCEDURE test.fetches", 1370),
                         (u, "CREATE PROCEDURE test.x() SELECT 1", 1044), (v, "CALL test.fetches()", 1370), (v, "SELECT test.f()", 1370),
                         (u, "CREATE DEFINER=root@localhost PROCEDURE mine.x() SELECT 1", 1227), (root, "CALL test.gone()", 1449),
                         (v, "SHOW CREATE PROCEDURE test.fetches", 1305), (u, "SET GLOBAL max_connections = 5", 1227)):
        got = run(c, sql)
        expect(got == code, f"{sql}: {got}")
    expect(run(u, "SELECT test.f()") == ((4,),), "a function as its definer")
    expect(not is_error(run(u, "CALL test.sets()")), "SET as its definer")
    expect(run(u, "SET GLOBAL max_connections = 5") == 1227, "and nothing of it stays")
    expect(run(u, "CREATE PROCEDURE mine.x() SELECT CURRENT_USER()") == 0, "own")
    expect(run(root, "CALL mine.x()") == (("u@localhost",),), "another's")
    rights_that_change(root, u)
    run(root, "DROP DATABASE mine")
    run(root, "DROP USER u@localhost, v@localhost")


def rights_that_change(root, u):
    """A session that has run a procedure before, and has its plans, follows what its definers lose; plans made with the rights of one are not
    run with those of another."""
    reads = "BEGIN DECLARE x INT; DECLARE c CURSOR FOR SELECT a FROM test.t; OPEN c; FETCH c INTO x; CLOSE c; SELECT x; END"
    for sql in ("CREATE USER rich@localhost", "CREATE USER poor@localhost", "GRANT SELECT, EXECUTE ON test.* TO rich@localhost", "GRANT EXECUTE ON test.* TO poor@localhost",
                "CREATE DEFINER=rich@localhost PROCEDURE plain() SELECT a FROM test.t", f"CREATE DEFINER=rich@localhost PROCEDURE fetched() {reads}",
                "CREATE DEFINER=rich@localhost PROCEDURE through() CALL test.invoked()", "CREATE DEFINER=poor@localhost PROCEDURE poorly() CALL test.invoked()"):
        expect(not is_error(run(root, sql)), sql)
    for again in range(2):
        for sql, found in (("CALL test.plain()", ((4,),)), ("CALL test.fetched()", ((4,),)), ("CALL test.through()", ((4,),)), ("CALL test.poorly()", 1142), ("CALL test.invoked()", 1142)):
            expect(run(u, sql) == found, f"{sql}: {run(u, sql)}")
    run(root, "REVOKE SELECT ON test.* FROM rich@localhost")
    for sql in ("CALL test.plain()", "CALL test.fetched()", "CALL test.through()"):
        expect(run(u, sql) == 1142, f"{sql} with a right that the definer has no more: {run(u, sql)}")
    run(root, "GRANT SELECT ON test.t TO poor@localhost")
    expect(run(u, "CALL test.poorly()") == ((4,),), "a right that the definer has got")
    run(root, "DROP USER rich@localhost, poor@localhost")
    expect(run(u, "CALL test.plain()") == 1449, "its definer is gone, whoever asks")


def kill(server):
    root = connect(server, autocommit=True)
    fresh(root)
    run(root, "CREATE PROCEDURE forever() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET @x = 1; LOOP SET @n = @n + 1; END LOOP; END")
    run(root, "CREATE FUNCTION ever() RETURNS INT NO SQL BEGIN LOOP SET @n = @n + 1; END LOOP; RETURN 1; END")
    for sql in ("CALL test.forever()", "SELECT test.ever()"):
        c = connect(server, autocommit=True)
        run(c, "SET @n = 0")
        number, got = run(c, "SELECT CONNECTION_ID()")[0][0], []
        thread = threading.Thread(target=lambda: got.append(run(c, sql)))
        thread.start()
        wait_for(lambda: run(root, f"SELECT 1 FROM information_schema.processlist WHERE id = {number} AND info LIKE '%ever()'"), sql)
        run(root, f"KILL QUERY {number}")
        thread.join(30)
        expect(got == [1317], f"{sql}: {got}")
    run(root, "CREATE PROCEDURE much() BEGIN DECLARE s LONGTEXT DEFAULT REPEAT('x', 1000000); DECLARE c CURSOR FOR SELECT REPEAT('y', 1000000) FROM information_schema.collations; OPEN c; CLOSE c; END")
    run(root, "SET connection_memory_limit = 4000000")
    got = run(root, "CALL much()")
    expect(got in (3170, 4082), f"memory: {got}")


def killed(directory):
    (directory / "k").mkdir()
    server = Omnibus(directory / "k")
    c = twins.killed(server, LOAD, contents)
    run(c, "USE test")
    run(c, "CALL fill(300, 303, 'k')")
    expect(run(c, "SELECT COUNT(*) FROM t WHERE a >= 300") == ((2,),), "it runs")
    server.stop()


def binary(server):
    """CALL over the binary protocol: result sets, then one row of OUT parameters, then OK."""
    c = connect(server, autocommit=True)
    fresh(c)
    run(c, "CREATE PROCEDURE p(IN a INT, OUT b INT, INOUT d INT) BEGIN SET b = a + 1, d = d * 2; SELECT a; SHOW COUNT(*) WARNINGS; END")
    c._execute_command(0x16, "CALL p(?, ?, ?)")
    number, columns, params = struct.unpack("<IHH", c._read_packet().get_all_data()[1:9])
    expect((columns, params) == (0, 3), (columns, params))
    for _ in range(4):
        c._read_packet()
    c._execute_command(0x17, struct.pack("<IBI", number, 0, 1) + b"\0\1" + b"\x08\0" * 3 + struct.pack("<qqq", 5, 0, 21))
    results = []
    while (head := c._read_packet().get_all_data())[0] != 0:
        for _ in range(head[0] + 1):
            c._read_packet()
        rows = []
        while (row := c._read_packet().get_all_data())[0] != 0xFE:
            rows.append(row)
        results.append((rows, struct.unpack("<H", row[3:5])[0] & (8 | 4096)))
    values = [struct.unpack(f"<{(len(rows[0]) - 2) // 4}i", rows[0][2:]) for rows, _ in results]
    expect([status for _, status in results] == [8, 8, 8 | 4096], results)
    expect(values[0] == (5,) and values[2] == (6, 42), results)
    expect(run(c, "SELECT 1") == ((1,),), "the connection goes on")


def main():
    with Scratch("omnibus-programs-") as name:
        directory = pathlib.Path(name)
        (directory / "m").mkdir()
        server, peer = Omnibus(directory), MariaDB(directory / "m")
        for each in (server, peer):
            each.start()
        ours, theirs = connect(server, autocommit=True), connect(peer, autocommit=True)
        found = differences(ours, theirs, SCRIPTS)
        expect(not found, "\n".join(found))
        for test in (show, rights, kill, binary):
            test(server)
        killed(directory)
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, peer, format, tables, LOAD, contents)
        replicas(directory, tables, LOAD, contents, lambda *_: None)
        server.stop()
        peer.stop()
    print("ok")


if __name__ == "__main__":
    main()
