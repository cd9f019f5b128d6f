#!/usr/bin/python3
"""Temporary tables.

The same statements run here and on MariaDB and must give the same results and error codes: definitions, rows,
shadowing, transactions, savepoints, indexes, ALTER. Then what is about sessions: others do not see the tables, they
go with the session, COM_RESET_CONNECTION and COM_CHANGE_USER, plans of one session follow its tables; and the log has
no trace of them, but has what was written from them.

Ring: gate.
"""

import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, error_code, expect, finished_binlogs  # noqa: E402

SCRIPTS = {
    "create, use, drop": """
        CREATE TEMPORARY TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20), KEY (b))
        INSERT INTO t (b) VALUES ('x'), ('y'), ('z')
        SELECT LAST_INSERT_ID()
        SELECT * FROM t WHERE b = 'y'
        SELECT * FROM t ORDER BY a DESC
        UPDATE t SET b = CONCAT(b, '!') WHERE a >= 2
        DELETE FROM t WHERE a = 1
        SELECT a, b FROM t ORDER BY b
        REPLACE INTO t VALUES (2, 'again')
        INSERT INTO t VALUES (2, 'dup')
        INSERT IGNORE INTO t VALUES (2, 'dup')
        INSERT INTO t VALUES (2, 'dup') ON DUPLICATE KEY UPDATE b = CONCAT(b, '+', VALUES(b))
        SELECT * FROM t ORDER BY a
        SELECT x.a, y.a FROM t x JOIN t y ON x.a < y.a
        SELECT COUNT(*), MAX(b) FROM t WHERE a IN (SELECT a FROM t)
        CREATE TEMPORARY TABLE t (a INT)
        CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT)
        DROP TEMPORARY TABLE t
        SELECT * FROM t
        DROP TEMPORARY TABLE t
        DROP TEMPORARY TABLE IF EXISTS t""",
    "shadowing": """
        CREATE TABLE s (a INT)
        INSERT INTO s VALUES (1), (2)
        SELECT * FROM s
        CREATE TEMPORARY TABLE s (b VARCHAR(5))
        SELECT * FROM s
        INSERT INTO s VALUES ('tmp')
        SELECT * FROM s
        DESCRIBE s
        DROP TABLE s
        SELECT * FROM s ORDER BY a
        CREATE TEMPORARY TABLE s SELECT a * 10 AS a FROM s
        SELECT * FROM s ORDER BY a
        DROP TEMPORARY TABLE s
        DROP TEMPORARY TABLE s
        SELECT COUNT(*) FROM s
        DROP TABLE s
        SELECT * FROM s""",
    "like and select": """
        CREATE TABLE base (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(10) NOT NULL DEFAULT 'd', UNIQUE KEY (b))
        INSERT INTO base (b) VALUES ('one'), ('two')
        CREATE TEMPORARY TABLE l LIKE base
        INSERT INTO l (b) VALUES ('q')
        INSERT INTO l (b) VALUES ('q')
        INSERT INTO l SELECT a + 10, CONCAT(b, '2') FROM base
        SELECT * FROM l ORDER BY a
        CREATE TEMPORARY TABLE m (c INT DEFAULT 5) SELECT b, a FROM base
        SELECT * FROM m ORDER BY a
        SHOW COLUMNS FROM m
        CREATE TEMPORARY TABLE n (PRIMARY KEY (b)) AS SELECT 'same' AS b FROM base
        SELECT * FROM n
        INSERT INTO base (b) SELECT b FROM l WHERE a > 10
        SELECT * FROM base ORDER BY a
        UPDATE base JOIN l ON base.b = l.b SET base.b = CONCAT('u', l.b), l.b = 'm'  WHERE l.a = 11
        DELETE base FROM base JOIN l ON base.b = l.b
        SELECT * FROM base ORDER BY a
        SELECT * FROM l ORDER BY a
        DROP TABLE base, l, m""",
    "transactions": """
        CREATE TEMPORARY TABLE t (a INT PRIMARY KEY, b INT) ENGINE=InnoDB
        BEGIN
        INSERT INTO t VALUES (1, 1), (2, 2)
        SAVEPOINT one
        UPDATE t SET b = 20 WHERE a = 2
        INSERT INTO t VALUES (3, 3)
        SELECT * FROM t ORDER BY a
        ROLLBACK TO one
        SELECT * FROM t ORDER BY a
        ROLLBACK
        SELECT * FROM t
        BEGIN
        INSERT INTO t VALUES (5, 5)
        COMMIT
        ROLLBACK
        SELECT * FROM t
        INSERT INTO t VALUES (6, 6), (5, 1)
        SELECT * FROM t
        BEGIN
        INSERT INTO t VALUES (7, 7)
        CREATE TEMPORARY TABLE u (a INT) ENGINE=InnoDB
        INSERT INTO u VALUES (1)
        DROP TEMPORARY TABLE u
        CREATE TEMPORARY TABLE u (a INT) ENGINE=InnoDB
        INSERT INTO u VALUES (2)
        ROLLBACK
        SELECT * FROM t
        SELECT * FROM u
        SET autocommit = 0
        DELETE FROM t
        ROLLBACK
        SELECT * FROM t
        SET autocommit = 1
        START TRANSACTION READ ONLY
        INSERT INTO t VALUES (9, 9)
        CREATE TEMPORARY TABLE v (a INT)
        COMMIT
        SELECT * FROM t ORDER BY a""",
    "definitions": """
        CREATE TEMPORARY TABLE t (a INT NOT NULL, b VARCHAR(10), c DATE)
        INSERT INTO t VALUES (3, 'c', '2020-01-01'), (1, 'a', NULL), (2, 'b', '2021-01-01')
        ALTER TABLE t ADD PRIMARY KEY (a), ADD COLUMN d INT NOT NULL DEFAULT 7 AFTER a
        SELECT * FROM t
        SHOW COLUMNS FROM t
        ALTER TABLE t MODIFY b VARCHAR(20) NOT NULL, DROP COLUMN c
        CREATE UNIQUE INDEX bi ON t (b)
        INSERT INTO t VALUES (4, 4, 'a')
        SELECT a FROM t WHERE b = 'b'
        DROP INDEX bi ON t
        INSERT INTO t VALUES (4, 4, 'a')
        ALTER TABLE t ADD UNIQUE (b)
        SELECT COUNT(*) FROM t
        ALTER TABLE t RENAME TO r
        SELECT * FROM t
        SELECT * FROM r ORDER BY a
        TRUNCATE TABLE r
        SELECT COUNT(*) FROM r
        INSERT INTO r VALUES (1, 1, 'q')
        SELECT * FROM r
        ALTER TABLE r AUTO_INCREMENT = 50, MODIFY a INT AUTO_INCREMENT
        INSERT INTO r (d, b) VALUES (0, 'n')
        SELECT * FROM r ORDER BY a
        TRUNCATE r
        INSERT INTO r (d, b) VALUES (0, 'n')
        SELECT * FROM r
        DROP TABLE r""",
    "stored tables beside them": """
        CREATE TEMPORARY TABLE t (a INT)
        INSERT INTO t VALUES (1), (2)
        CREATE TABLE t SELECT a * 100 AS x FROM t
        SELECT * FROM t ORDER BY 1
        DROP TEMPORARY TABLE t
        SELECT * FROM t ORDER BY 1
        CREATE TEMPORARY TABLE l (k INT PRIMARY KEY, v VARCHAR(5))
        INSERT INTO l VALUES (1, 'x')
        CREATE TABLE m LIKE l
        INSERT INTO m SELECT * FROM l
        SELECT * FROM m
        LOCK TABLES m READ
        SELECT * FROM m
        INSERT INTO l VALUES (2, 'y')
        SELECT COUNT(*) FROM l
        UNLOCK TABLES
        PREPARE p FROM 'INSERT INTO l VALUES (?, ?)'
        SET @k = 3, @v = 'z'
        EXECUTE p USING @k, @v
        EXECUTE p USING @k, @v
        SELECT * FROM l ORDER BY k
        UPDATE l, m SET l.v = 'u', m.v = 'w' WHERE l.k = m.k
        SELECT * FROM l JOIN m USING (k)
        DELETE l, m FROM l JOIN m USING (k)
        SELECT (SELECT COUNT(*) FROM l), (SELECT COUNT(*) FROM m)
        CREATE OR REPLACE TEMPORARY TABLE l (z INT)
        SELECT * FROM l
        DROP TABLE l, m, t
        DROP TABLE IF EXISTS l""",
    "no key, ranges, order": """
        CREATE TEMPORARY TABLE h (a INT, b CHAR(4), INDEX (a DESC), INDEX (b, a))
        INSERT INTO h VALUES (1, 'x'), (2, 'x'), (3, 'y'), (NULL, 'z'), (2, 'x')
        SELECT * FROM h WHERE a BETWEEN 2 AND 3 ORDER BY a, b
        SELECT * FROM h WHERE b = 'x' ORDER BY a DESC LIMIT 2
        SELECT DISTINCT a FROM h ORDER BY a DESC
        DELETE FROM h WHERE a = 2 LIMIT 1
        SELECT b, COUNT(*) FROM h GROUP BY b ORDER BY b
        UPDATE h SET a = a + 1 ORDER BY a DESC
        SELECT * FROM h ORDER BY a, b
        SELECT * FROM h WHERE a > (SELECT MIN(a) FROM h) ORDER BY a FOR UPDATE""",
    "a plan follows its name": """
        CREATE TABLE p (a INT)
        INSERT INTO p VALUES (1)
        SELECT a FROM p
        SELECT a FROM p
        SELECT a FROM p
        PREPARE q FROM 'SELECT a FROM p'
        EXECUTE q
        CREATE TEMPORARY TABLE p (a VARCHAR(5))
        SELECT a FROM p
        EXECUTE q
        INSERT INTO p VALUES ('tmp')
        EXECUTE q
        SELECT a FROM p
        DROP TEMPORARY TABLE p
        SELECT a FROM p
        EXECUTE q
        DROP TABLE p""",
}


def run(connection, sql):
    import pymysql
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
    except pymysql.err.MySQLError as error:
        return error.args[0]
    if cursor.description is None:
        return cursor.rowcount
    rows = cursor.fetchall()
    if "COLUMNS" in sql or "DESCRIBE" in sql:
        # MariaDB shows widths that MySQL 8 does not.
        return [(row[0], row[2], row[3]) for row in rows]
    return rows


def same(ours, theirs):
    failures = []
    for name, script in SCRIPTS.items():
        for connection in (ours, theirs):
            run(connection, "DROP DATABASE IF EXISTS test")
            run(connection, "CREATE DATABASE test")
            run(connection, "USE test")
        for line in script.strip().splitlines():
            sql = line.strip()
            here, there = run(ours, sql), run(theirs, sql)
            if here != there:
                failures.append(f"{name}: {sql}\n  here    {here}\n  MariaDB {there}")
    expect(not failures, "\n".join(failures))


def sessions(server):
    import pymysql
    client(server, "DROP DATABASE IF EXISTS test; CREATE DATABASE test; CREATE TABLE test.t (a INT)")
    one = connect(server, database="test", autocommit=True)
    two = connect(server, database="test", autocommit=True)
    run(one, "CREATE TEMPORARY TABLE t (x INT)")
    run(one, "CREATE TEMPORARY TABLE only_here (x INT)")
    run(one, "INSERT INTO t VALUES (1)")
    expect(run(two, "SELECT * FROM t") == (), "another session sees the rows")
    expect(run(two, "SELECT * FROM only_here") == 1146, "another session sees the table")
    expect(run(two, "INSERT INTO t (a) VALUES (9)") == 1, "another session cannot use the stored table")
    expect(run(one, "SHOW TABLES") == (("t",),), f"SHOW TABLES: {run(one, 'SHOW TABLES')}")
    expect("CREATE TEMPORARY TABLE `only_here`" in run(one, "SHOW CREATE TABLE only_here")[0][1], "SHOW CREATE TABLE")
    for statement in ("CHECK TABLE only_here", "ANALYZE TABLE only_here", "OPTIMIZE TABLE only_here"):
        expect(run(one, statement)[0][3] == "OK", f"{statement}: {run(one, statement)}")
    sums = [run(one, "CHECKSUM TABLE only_here")[0][1]]
    run(one, "INSERT INTO only_here VALUES (5)")
    sums.append(run(one, "CHECKSUM TABLE only_here")[0][1])
    expect(sums[0] == 0 != sums[1], f"CHECKSUM TABLE: {sums}")
    # A definition by another session does not touch it.
    run(two, "ALTER TABLE t ADD COLUMN c INT")
    expect(run(one, "SELECT x FROM t") == ((1,),), "an ALTER elsewhere changed the temporary table")
    run(two, "DROP TABLE t")
    expect(run(one, "SELECT x FROM t") == ((1,),), "a DROP elsewhere changed the temporary table")
    # COM_RESET_CONNECTION and COM_CHANGE_USER.
    one._execute_command(0x1F, b"")
    one._read_packet(pymysql.connections.MysqlPacket)
    expect(run(one, "SELECT * FROM only_here") == 1146, "it outlived COM_RESET_CONNECTION")
    # The privilege is the database's, and its owner needs no other.
    client(server, "CREATE USER bob; GRANT CREATE TEMPORARY TABLES ON test.* TO bob; CREATE DATABASE other")
    bob = connect(server, user="bob", database="test", autocommit=True)
    for sql, expected in (("CREATE TEMPORARY TABLE b (a INT PRIMARY KEY)", 0), ("INSERT INTO b VALUES (1)", 1),
                          ("UPDATE b SET a = 2", 1), ("SELECT a FROM b", ((2,),)), ("ALTER TABLE b ADD c INT", 1),
                          ("DROP TEMPORARY TABLE b", 0), ("CREATE TABLE b (a INT)", 1142),
                          ("CREATE TEMPORARY TABLE other.b (a INT)", 1044)):
        expect(run(bob, sql) == expected, f"bob: {sql}: {run(bob, sql)}")
    # read_only holds nobody back from them.
    client(server, "SET GLOBAL read_only = 1")
    for sql, expected in (("CREATE TEMPORARY TABLE b (a INT)", 0), ("INSERT INTO b VALUES (1)", 1), ("DROP TEMPORARY TABLE b", 0),
                          ("CREATE TABLE b (a INT)", (1290, 1142))):
        got = run(bob, sql)
        expect(got == expected or (isinstance(expected, tuple) and got in expected), f"read_only: {sql}: {got}")
    client(server, "SET GLOBAL read_only = 0")
    # A bound on their size.
    client(server, "SET GLOBAL temptable_max_ram = 4194304")
    full = connect(server, database="test", autocommit=True)
    run(full, "CREATE TEMPORARY TABLE f (a LONGBLOB)")
    run(full, "INSERT INTO f VALUES (REPEAT('x', 1000000))")
    codes = [run(full, "INSERT INTO f SELECT * FROM f") for _ in range(5)]
    expect(codes[-1] == 1114, f"no bound: {codes}")
    run(full, "TRUNCATE f")
    expect(run(full, "INSERT INTO f VALUES ('x')") == 1, "what was truncated still counts")
    client(server, "SET GLOBAL temptable_max_ram = DEFAULT")


def at_once(server):
    """Many sessions, one name."""
    failed = []

    def work(number):
        connection = connect(server, database="test", autocommit=True)
        for turn in range(30):
            run(connection, "CREATE TEMPORARY TABLE same (a INT PRIMARY KEY, b INT)")
            run(connection, f"INSERT INTO same VALUES {','.join(f'({n}, {number})' for n in range(turn + 1))}")
            got = run(connection, "SELECT COUNT(*), MIN(b), MAX(b) FROM same")
            if got != ((turn + 1, number, number),):
                failed.append(got)
            run(connection, "DROP TABLE same")
        connection.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failed, f"{failed[:3]}")


def the_log(server):
    client(server, "FLUSH LOGS")
    before = len(server.binlogs())
    client(server, "CREATE TABLE test.logged (a INT, b VARCHAR(30))")
    client(server, "USE test; CREATE TEMPORARY TABLE secret (a INT, b VARCHAR(30)); INSERT INTO secret VALUES (1, 'never in the log');"
           "UPDATE secret SET b = 'neither is this'; BEGIN; INSERT INTO secret VALUES (2, 'nor this'); INSERT INTO logged VALUES (5, 'five');"
           "INSERT INTO logged SELECT a, 'from there' FROM secret; COMMIT; ALTER TABLE secret ADD c INT; DROP TEMPORARY TABLE secret")
    files = finished_binlogs(server)[before - 1:]
    text = subprocess.run(["mariadb-binlog", "--no-defaults", "-v", *files], capture_output=True, text=True).stdout
    expect(text.count("### INSERT INTO `test`.`logged`") == 3, text)
    expect("secret" not in text and "never" not in text, "the log tells of a temporary table")
    # Nothing comes back.
    server.kill()
    server.start()
    expect(client(server, "SELECT COUNT(*) FROM test.logged") == "3\n", "rows were lost")


def main():
    with Scratch() as place:
        server, peer = Omnibus(place), MariaDB(place)
        server.start()
        peer.start()
        try:
            client(server, "CREATE DATABASE IF NOT EXISTS test")
            same(connect(server, autocommit=True), connect(peer, autocommit=True))
            sessions(server)
            at_once(server)
            the_log(server)
        finally:
            server.stop()
            peer.stop()
    print("temporary_tables: ok")


if __name__ == "__main__":
    main()
