#!/usr/bin/python3
"""Foreign keys.

The same statements run here and on MariaDB and must give the same results and error codes: every action, several columns, chains,
references of a table to itself, NULLs, collations, IGNORE, REPLACE, ON DUPLICATE KEY, definitions in every order. Where MySQL's codes
differ from MariaDB's, ours are MySQL's. Then what is about sessions and logs: no race leaves an orphan at any level of isolation,
a kill -9 finds children and parents as one, and replicas of ours and of MariaDB, and replicas here of MariaDB, stay equal.

Ring: gate.
"""

import functools
import pathlib
import random
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import MariaDB, Omnibus, Scratch, connect, expect, wait_for  # noqa: E402
from peers import wait_caught_up  # noqa: E402
from twins import fresh, is_error, logged, replicas, run, same  # noqa: E402

# MySQL's code where MariaDB has another.
MYSQL = {("DROP TABLE p", 1451): 3730, ("DROP TABLE q, cc", 1451): 0, ("DROP DATABASE other", 1451): 3730}
# MariaDB says only that a foreign key is incorrectly formed; and 1025 or 1832 where a definition breaks one.
VAGUE = {1005: (1822, 1824, 3734, 3780, 1826, 6125, 1239, 1830, 1215), 121: (1826,), 150: (1824, 1822, 3780),
         1553: (1553, 1828, 1829), 1829: (1829,), 1828: (1828,), 1832: (3780,), 1833: (3780,), 1072: (1072, 3734), 1025: (3780, 1826), 1022: (1826,), 1901: (1215,)}

SCRIPTS = {
    "restrict": """
        CREATE TABLE p (id INT PRIMARY KEY, v INT)
        CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))
        INSERT INTO c VALUES (1, 1)
        INSERT INTO p VALUES (1, 1), (2, 2), (3, 3)
        INSERT INTO c VALUES (1, 1), (2, 1), (3, 2), (4, NULL)
        INSERT INTO c VALUES (5, 9)
        INSERT INTO c VALUES (5, 3), (6, 9)
        SELECT * FROM c ORDER BY id
        DELETE FROM p WHERE id = 1
        DELETE FROM p WHERE id = 3
        UPDATE p SET id = 10 WHERE id = 1
        UPDATE p SET v = 7 WHERE id = 1
        UPDATE p SET id = id WHERE id = 1
        UPDATE c SET p = 5 WHERE id = 1
        UPDATE c SET p = 2 WHERE id = 1
        UPDATE c SET p = NULL WHERE id = 2
        DELETE FROM p WHERE id = 1
        SELECT * FROM p ORDER BY id
        SELECT * FROM c ORDER BY id
        DELETE FROM p
        DELETE FROM c
        DELETE FROM p
        SELECT COUNT(*) FROM p""",
    "cascade and set null": """
        CREATE TABLE p (id INT PRIMARY KEY, v INT)
        CREATE TABLE c (id INT PRIMARY KEY, p INT, v INT, KEY (p), CONSTRAINT c1 FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)
        CREATE TABLE n (id INT PRIMARY KEY, p INT, CONSTRAINT n1 FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE SET NULL)
        CREATE TABLE g (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE)
        INSERT INTO p VALUES (1, 1), (2, 2), (3, 3), (4, 4)
        INSERT INTO c VALUES (1, 1, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0)
        INSERT INTO n VALUES (1, 1), (2, 2), (3, 3), (4, NULL)
        INSERT INTO g VALUES (1, 1), (2, 2), (3, 3), (4, 1)
        UPDATE p SET id = 10 WHERE id = 1
        SELECT * FROM c ORDER BY id
        SELECT * FROM n ORDER BY id
        DELETE FROM p WHERE id = 2
        SELECT * FROM c ORDER BY id
        SELECT * FROM n ORDER BY id
        SELECT * FROM g ORDER BY id
        DELETE FROM p WHERE id = 10
        SELECT * FROM g ORDER BY id
        UPDATE p SET id = id + 100 ORDER BY id DESC
        SELECT * FROM c ORDER BY id
        BEGIN
        DELETE FROM p
        SELECT COUNT(*) FROM c
        ROLLBACK
        SELECT COUNT(*) FROM c
        BEGIN
        SAVEPOINT s
        DELETE FROM p WHERE id = 103
        SELECT * FROM c
        ROLLBACK TO s
        COMMIT
        SELECT * FROM c
        REPLACE INTO p VALUES (103, 5)
        SELECT * FROM c
        INSERT INTO c VALUES (9, 103, 9)
        INSERT INTO p VALUES (103, 6) ON DUPLICATE KEY UPDATE id = 104
        SELECT * FROM c
        INSERT INTO c VALUES (9, 103, 9) ON DUPLICATE KEY UPDATE p = 55
        SELECT * FROM c""",
    "ignore": """
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))
        INSERT INTO p VALUES (1), (2), (3)
        INSERT IGNORE INTO c VALUES (1, 1), (2, 7), (3, 2)
        SELECT * FROM c ORDER BY id
        UPDATE IGNORE c SET p = p + 1
        SELECT * FROM c ORDER BY id
        DELETE IGNORE FROM p
        SELECT * FROM p ORDER BY id
        UPDATE IGNORE p SET id = id + 10
        SELECT * FROM p ORDER BY id""",
    "itself": """
        CREATE TABLE t (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE)
        INSERT INTO t VALUES (1, 1)
        INSERT INTO t VALUES (2, 1), (3, 2), (4, 3), (5, 4)
        INSERT INTO t VALUES (6, 7)
        INSERT INTO t VALUES (6, NULL), (7, 6)
        DELETE FROM t WHERE id = 3
        SELECT * FROM t ORDER BY id
        DELETE FROM t WHERE id = 1
        SELECT * FROM t ORDER BY id
        DELETE FROM t
        SELECT * FROM t ORDER BY id
        CREATE TABLE u (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES u (id) ON UPDATE CASCADE)
        INSERT INTO u VALUES (1, NULL), (2, 1)
        UPDATE u SET id = 9 WHERE id = 1
        UPDATE u SET id = 9 WHERE id = 2
        SELECT * FROM u ORDER BY id
        CREATE TABLE r (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES r (id))
        INSERT INTO r VALUES (1, 1), (2, 1)
        DELETE FROM r WHERE id = 1
        DELETE FROM r WHERE id = 2
        DELETE FROM r WHERE id = 1
        SELECT * FROM r""",
    "several columns": """
        CREATE TABLE p (a INT, b VARCHAR(10), c INT, PRIMARY KEY (a, b), UNIQUE KEY bc (b, c)) COLLATE utf8mb4_general_ci
        CREATE TABLE k (id INT PRIMARY KEY, a INT, b VARCHAR(10), c INT, CONSTRAINT f1 FOREIGN KEY (a, b) REFERENCES p (a, b) ON UPDATE CASCADE ON DELETE SET NULL, CONSTRAINT f2 FOREIGN KEY (b, c) REFERENCES p (b, c)) COLLATE utf8mb4_general_ci
        INSERT INTO p VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3)
        INSERT INTO k VALUES (1, 1, 'X', NULL), (2, 1, NULL, 7), (3, 2, 'x', 3), (4, 1, 'z', NULL)
        INSERT INTO k VALUES (1, 1, 'X', NULL), (2, 1, NULL, 7), (3, 2, 'x', 3)
        SELECT * FROM k ORDER BY id
        UPDATE p SET a = 5 WHERE c = 1
        SELECT * FROM k ORDER BY id
        UPDATE p SET b = 'q' WHERE c = 1
        SELECT * FROM k ORDER BY id
        UPDATE p SET b = 'w' WHERE c = 3
        DELETE FROM p WHERE c = 1
        SELECT * FROM k ORDER BY id""",
    "checks off": """
        SET foreign_key_checks = 0
        CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)
        INSERT INTO c VALUES (1, 1), (2, 2)
        SET foreign_key_checks = 1
        INSERT INTO c VALUES (3, 1)
        CREATE TABLE p (id INT PRIMARY KEY)
        INSERT INTO c VALUES (3, 1)
        INSERT INTO p VALUES (1), (5)
        INSERT INTO c VALUES (3, 1), (5, 5)
        DELETE FROM p WHERE id = 5
        SELECT * FROM c ORDER BY id
        SET foreign_key_checks = 0
        DELETE FROM p
        SELECT * FROM c ORDER BY id
        DROP TABLE p
        SET foreign_key_checks = 1
        UPDATE c SET p = p + 1 WHERE id = 1
        UPDATE c SET id = 11 WHERE id = 1
        DELETE FROM c WHERE id = 2
        SELECT * FROM c ORDER BY id""",
    "definitions": """
        CREATE TABLE p (id INT PRIMARY KEY, v INT, u INT, UNIQUE KEY (u))
        CREATE TABLE bad (a INT, FOREIGN KEY (a) REFERENCES nosuch (id))
        CREATE TABLE bad (a INT, FOREIGN KEY (a) REFERENCES p (nosuch))
        CREATE TABLE bad (a BIGINT, FOREIGN KEY (a) REFERENCES p (id))
        CREATE TABLE bad (a INT, FOREIGN KEY (a) REFERENCES p (v))
        CREATE TABLE bad (a INT, FOREIGN KEY (b) REFERENCES p (id))
        CREATE TABLE bad (a INT, b INT, FOREIGN KEY (a, b) REFERENCES p (id))
        CREATE TABLE bad (a INT NOT NULL, FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET NULL)
        CREATE TABLE c (id INT PRIMARY KEY, a INT, b INT)
        INSERT INTO p VALUES (1, 1, 1), (2, 2, 2)
        INSERT INTO c VALUES (1, 1, 1), (2, 2, 7)
        ALTER TABLE c ADD CONSTRAINT f1 FOREIGN KEY (a) REFERENCES p (id)
        ALTER TABLE c ADD CONSTRAINT f2 FOREIGN KEY (b) REFERENCES p (u)
        UPDATE c SET b = 2 WHERE id = 2
        ALTER TABLE c ADD CONSTRAINT f2 FOREIGN KEY (b) REFERENCES p (u) ON DELETE CASCADE
        ALTER TABLE c ADD CONSTRAINT f2 FOREIGN KEY (b) REFERENCES p (u)
        CREATE TABLE d (a INT, CONSTRAINT f1 FOREIGN KEY (a) REFERENCES p (id))
        ALTER TABLE c DROP INDEX f1
        ALTER TABLE p DROP INDEX u
        ALTER TABLE p DROP COLUMN u
        ALTER TABLE c DROP COLUMN a
        ALTER TABLE c MODIFY a BIGINT
        ALTER TABLE p MODIFY id BIGINT
        DROP TABLE p
        ALTER TABLE c DROP FOREIGN KEY nosuch
        ALTER TABLE p RENAME COLUMN id TO pid
        DELETE FROM p WHERE pid = 1
        RENAME TABLE p TO q
        DELETE FROM q WHERE pid = 1
        INSERT INTO c VALUES (7, 77, 1)
        ALTER TABLE c RENAME COLUMN a TO aa
        INSERT INTO c VALUES (7, 77, 1)
        ALTER TABLE c RENAME TO cc
        INSERT INTO cc VALUES (7, 77, 1)
        ALTER TABLE cc DROP FOREIGN KEY f1
        INSERT INTO cc VALUES (7, 77, 1)
        DELETE FROM q WHERE u = 1
        SELECT * FROM cc ORDER BY id
        DROP TABLE q, cc
        CREATE DATABASE other
        CREATE TABLE other.p (id INT PRIMARY KEY)
        CREATE TABLE far (a INT, FOREIGN KEY (a) REFERENCES other.p (id))
        INSERT INTO far VALUES (1)
        INSERT INTO other.p VALUES (1)
        INSERT INTO far VALUES (1)
        DROP DATABASE other
        DROP TABLE far
        DROP DATABASE other
        CREATE TEMPORARY TABLE t (a INT, FOREIGN KEY (a) REFERENCES t (a))""",
    "truncate and like": """
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))
        INSERT INTO p VALUES (1)
        INSERT INTO c VALUES (1)
        TRUNCATE p
        TRUNCATE c
        CREATE TABLE l LIKE c
        INSERT INTO l VALUES (9)
        INSERT INTO c VALUES (9)
        CREATE TABLE s SELECT * FROM c
        INSERT INTO s VALUES (9)
        SET foreign_key_checks = 0
        TRUNCATE p
        SET foreign_key_checks = 1
        INSERT INTO c VALUES (1)""",
    "several tables": """
        CREATE TABLE p (id INT PRIMARY KEY, v INT)
        CREATE TABLE c (id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)
        INSERT INTO p VALUES (1, 1), (2, 2)
        INSERT INTO c VALUES (1, 1, 1), (2, 2, 2)
        DELETE p, c FROM p JOIN c ON c.p = p.id WHERE p.id = 1
        SELECT * FROM c
        UPDATE p JOIN c ON c.p = p.id SET p.v = 9, c.v = 8
        SELECT * FROM c
        SELECT * FROM p
        UPDATE p JOIN c ON c.p = p.id SET p.id = 5, c.v = 7
        SELECT * FROM c
        LOCK TABLES c WRITE
        INSERT INTO c VALUES (3, 5, 5)
        INSERT INTO c VALUES (4, 6, 6)
        UNLOCK TABLES
        LOCK TABLES p WRITE
        DELETE FROM p WHERE id = 5
        UNLOCK TABLES
        SELECT * FROM c""",
    "unique children": """
        CREATE TABLE p (id INT PRIMARY KEY)
        CREATE TABLE c (p INT, UNIQUE KEY (p), FOREIGN KEY (p) REFERENCES p (id) ON UPDATE CASCADE)
        INSERT INTO p VALUES (1), (2)
        INSERT INTO c VALUES (1), (2)
        UPDATE p SET id = 3 WHERE id = 1
        SELECT * FROM c ORDER BY p
        CREATE TABLE s (id VARCHAR(20) PRIMARY KEY) COLLATE utf8mb4_general_ci
        CREATE TABLE d (s VARCHAR(5), FOREIGN KEY (s) REFERENCES s (id) ON UPDATE CASCADE) COLLATE utf8mb4_general_ci
        INSERT INTO s VALUES ('abc'), ('ABCDEFGH')
        INSERT INTO d VALUES ('ABC')
        UPDATE s SET id = 'aBc' WHERE id = 'abc'
        SELECT * FROM d
        UPDATE s SET id = 'much too long' WHERE id = 'abc'
        SELECT * FROM d""",
}


def allowed(sql, there):
    """Our codes for one of MariaDB's."""
    return VAGUE.get(there, ()) + (MYSQL.get((sql, there), there),)


def shown(server):
    """What programs read: SHOW CREATE, information_schema, the texts of errors; and it is all there after a restart."""
    import pymysql
    c = connect(server, autocommit=True)
    fresh(c)
    run(c, "CREATE TABLE p (a INT, b INT, PRIMARY KEY (a, b))")
    run(c, "CREATE TABLE c (id INT PRIMARY KEY, x INT, y INT, FOREIGN KEY (x, y) REFERENCES p (a, b) ON DELETE CASCADE ON UPDATE SET NULL)")
    line = "CONSTRAINT `c_ibfk_1` FOREIGN KEY (`x`, `y`) REFERENCES `p` (`a`, `b`) ON DELETE CASCADE ON UPDATE SET NULL"

    def look():
        cursor = connect(server, database="test", autocommit=True).cursor()
        cursor.execute("SHOW CREATE TABLE c")
        text = cursor.fetchone()[1]
        expect(f"  KEY `x` (`x`,`y`),\n  {line}\n)" in text, text)
        cursor.execute("SELECT CONSTRAINT_NAME, UNIQUE_CONSTRAINT_NAME, MATCH_OPTION, UPDATE_RULE, DELETE_RULE, TABLE_NAME, REFERENCED_TABLE_NAME"
                       " FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'test'")
        rows = cursor.fetchall()
        expect(rows == (("c_ibfk_1", "PRIMARY", "NONE", "SET NULL", "CASCADE", "c", "p"),), rows)
        cursor.execute("SELECT CONSTRAINT_NAME, COLUMN_NAME, ORDINAL_POSITION, POSITION_IN_UNIQUE_CONSTRAINT, REFERENCED_TABLE_SCHEMA,"
                       " REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE"
                       " WHERE TABLE_SCHEMA = 'test' AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY 3")
        rows = cursor.fetchall()
        expect(rows == (("c_ibfk_1", "x", 1, 1, "test", "p", "a"), ("c_ibfk_1", "y", 2, 2, "test", "p", "b")), rows)
        cursor.execute("SELECT CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_TYPE = 'FOREIGN KEY'")
        rows = cursor.fetchall()
        expect(rows == (("c_ibfk_1",),), rows)
        try:
            cursor.execute("INSERT INTO c VALUES (1, 2, 3)")
            raise AssertionError("no error")
        except pymysql.err.IntegrityError as error:
            expect(error.args == (1452, f"Cannot add or update a child row: a foreign key constraint fails (`test`.`c`, {line})"), error)

    look()
    server.stop()
    server.start()
    look()
    c = connect(server, database="test", autocommit=True)
    run(c, "INSERT INTO p VALUES (1, 1)")
    run(c, "INSERT INTO c VALUES (1, 1, 1)")
    expect(run(c, "DELETE FROM p") == 1 and run(c, "SELECT COUNT(*) FROM c") == ((0,),), "no cascade after a restart")
    run(c, "RENAME TABLE c TO d")
    expect("`d_ibfk_1`" in run(c, "SHOW CREATE TABLE d")[0][1], "a generated name follows its table")
    # The right to refer to a table.
    run(c, "CREATE USER fk@localhost IDENTIFIED BY 'x'")
    run(c, "CREATE DATABASE other")
    run(c, "GRANT ALL ON other.* TO fk@localhost")
    user = connect(server, user="fk", password="x", database="other", autocommit=True)
    sql = "CREATE TABLE c (a INT, b INT, FOREIGN KEY (a, b) REFERENCES test.p (a, b))"
    expect(run(user, sql) == 1142, f"without the right: {run(user, sql)}")
    run(c, "GRANT REFERENCES ON test.* TO fk@localhost")
    expect(run(user, sql) == 0, f"with it: {run(user, sql)}")


def own_indexes(server):
    """The index that a foreign key got for itself goes when a statement makes another that will do; one that somebody made stays."""
    c = connect(server, autocommit=True)
    fresh(c)

    def keys(table):
        return sorted({row[2] for row in run(c, f"SHOW INDEX FROM {table}")} - {"PRIMARY"})

    run(c, "CREATE TABLE p (id INT PRIMARY KEY)")
    for number, (more, then, left) in enumerate((
        ("", "ADD INDEX i (a, b)", ["i"]), ("", "ADD UNIQUE u (a)", ["u"]), ("", "ADD INDEX i (b, a)", ["fk{}", "i"]), (", KEY fk{} (a)", "ADD INDEX i (a)", ["fk{}", "i"]),
        ("", "RENAME INDEX fk{} TO mine, ADD INDEX i (a)", ["i", "mine"]), ("", "ADD INDEX i (a), DROP INDEX fk{}", ["i"]), ("", "DROP FOREIGN KEY fk{}", ["fk{}"]),
    )):
        run(c, f"CREATE TABLE t{number} (id INT PRIMARY KEY, a INT, b INT{more.format(number)}, CONSTRAINT fk{number} FOREIGN KEY (a) REFERENCES p (id))")
        expect(keys(f"t{number}") == [f"fk{number}"], f"{more}: {keys(f't{number}')}")
        if number == 1:
            # The catalog keeps which are which.
            server.kill()
            server.start()
            c = connect(server, database="test", autocommit=True)
        expect("FOREIGN KEY */" not in run(c, f"SHOW CREATE TABLE t{number}")[0][1], "it is shown")
        expect(run(c, f"ALTER TABLE t{number} {then.format(number)}") == 0, then)
        expect(keys(f"t{number}") == [name.format(number) for name in left], f"{then}: {keys(f't{number}')}")
        run(c, "INSERT INTO p VALUES (1)")
        expect(run(c, f"INSERT INTO t{number} VALUES (1, 7, 1)") == (1 if "DROP FOREIGN" in then else 1452), "the key is asked")
        run(c, f"CHECK TABLE t{number}")
    run(c, "CREATE TABLE alike LIKE t2")
    run(c, "ALTER TABLE alike ADD INDEX j (a)")
    expect(keys("alike") == ["fk2", "i", "j"], keys("alike"))


def no_orphans(server, level, seed):
    """Parents come and go, children too: what is acknowledged fits together at the end, and nothing waits for ever."""
    setup = connect(server, autocommit=True)
    fresh(setup)
    for sql in ("CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE)",
                "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
                "CREATE TABLE k (id INT AUTO_INCREMENT PRIMARY KEY, u INT, FOREIGN KEY (u) REFERENCES p (u) ON DELETE CASCADE ON UPDATE CASCADE)",
                "CREATE TABLE n (id INT AUTO_INCREMENT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)"):
        expect(run(setup, sql) == 0, sql)
    odd, codes = [], {}

    def work(number):
        chance = random.Random(seed + number)
        c = connect(server, database="test", autocommit=True)
        run(c, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        run(c, "SET innodb_lock_wait_timeout = 3")
        for _ in range(150):
            n = chance.randrange(6)
            sql = chance.choice([f"INSERT INTO p VALUES ({n}, {n})", f"DELETE FROM p WHERE id = {n}", f"INSERT INTO c (p) VALUES ({n})",
                                 f"INSERT INTO k (u) VALUES ({n})", f"INSERT INTO n (p) VALUES ({n})", f"DELETE FROM c WHERE p = {n} LIMIT 2",
                                 f"UPDATE p SET u = {chance.randrange(6)} WHERE id = {n}", f"UPDATE n SET p = {chance.randrange(6)} WHERE p = {n}",
                                 f"REPLACE INTO p VALUES ({n}, {n})"])
            result = run(c, sql)
            if is_error(result):
                codes[result] = codes.get(result, 0) + 1
                if result not in (1062, 1451, 1452, 1213, 1205, 1761):
                    odd.append((sql, result))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not odd, f"{level}: {odd[:3]}")
    orphans(setup, level)
    expect(codes.get(1451) and codes.get(1452), f"{level}: nothing was refused: {codes}")


def orphans(connection, what):
    for sql in ("SELECT * FROM c WHERE p IS NOT NULL AND p NOT IN (SELECT id FROM p)",
                "SELECT * FROM k WHERE u IS NOT NULL AND u NOT IN (SELECT u FROM p WHERE u IS NOT NULL)",
                "SELECT * FROM n WHERE p IS NOT NULL AND p NOT IN (SELECT id FROM p)"):
        found = run(connection, sql)
        expect(found == (), f"{what}: orphans: {sql}: {found}")


def contents(connection):
    return [run(connection, f"SELECT * FROM test.{table} ORDER BY 1") for table in ("p", "c", "k", "n")]


def killed(server, seed):
    """kill -9 in the middle: what recovery makes of the log fits together."""
    stop = threading.Event()

    def work(number):
        c, chance = connect(server, database="test", autocommit=True), random.Random(seed + number)
        try:
            while not stop.is_set():
                n = chance.randrange(50)
                for sql in (f"INSERT INTO p VALUES ({n}, {n})", f"INSERT INTO k (u) VALUES ({n})", f"INSERT INTO n (p) VALUES ({n})",
                            f"UPDATE p SET u = {n + 100} WHERE u = {n}", f"DELETE FROM p WHERE id = {chance.randrange(50)}"):
                    run(c, sql)
        except Exception:  # noqa: BLE001
            pass

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    c = connect(server, autocommit=True)
    wait_for(lambda: run(c, "SELECT COUNT(*) FROM test.k")[0][0] > 30, "no rows")
    server.kill()
    stop.set()
    for thread in threads:
        thread.join()
    server.start()
    orphans(connect(server, database="test", autocommit=True), "after kill -9")


LOAD = ["INSERT INTO p VALUES (1, 1), (2, 2), (3, 3), (4, 4)", "INSERT INTO c (p) VALUES (1), (NULL), (4)",
        "INSERT INTO k (u) VALUES (1), (2), (3), (2)", "INSERT INTO n (p) VALUES (1), (2), (3)", "UPDATE p SET u = u + 10 WHERE id IN (2, 3)",
        "DELETE FROM p WHERE id = 3", "REPLACE INTO p VALUES (2, 2)", "SET foreign_key_checks = 0", "DELETE FROM p WHERE id = 4",
        "SET foreign_key_checks = 1", "UPDATE p SET u = 50 WHERE id = 1"]


def tables(connection):
    fresh(connection)
    for sql in ("CREATE TABLE p (id INT PRIMARY KEY, u INT UNIQUE)",
                "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id))",
                "CREATE TABLE k (id INT AUTO_INCREMENT PRIMARY KEY, u INT, FOREIGN KEY (u) REFERENCES p (u) ON DELETE CASCADE ON UPDATE CASCADE)",
                "CREATE TABLE n (id INT AUTO_INCREMENT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL)"):
        expect(run(connection, sql) == 0, sql)


def many_at_once(seed, ours, chained, theirs):
    """What depends on what is in the log's order, also where appliers work side by side."""
    no_orphans(ours, "REPEATABLE READ", seed)
    wanted = contents(connect(ours, autocommit=True))
    for replica in (chained, theirs):
        wait_caught_up(replica, ours)
        expect(contents(connect(replica, autocommit=True)) == wanted, f"after many at once: {type(replica).__name__}")


def main():
    seed = seeds.of_this_run()
    with Scratch("omnibus-fk-") as name:
        directory = pathlib.Path(name)
        (directory / "m").mkdir()
        server = Omnibus(directory)
        mariadb = MariaDB(directory / "m")
        server.start()
        mariadb.start()
        same(connect(server, autocommit=True), connect(mariadb, autocommit=True), SCRIPTS, allowed)
        shown(server)
        own_indexes(server)
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            no_orphans(server, level, seed)
        killed(server, seed)
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, mariadb, format, tables, LOAD, contents)
        # A replica of MariaDB has a log without the rows of cascades; its own cascades find nothing left to do.
        replicas(directory, tables, LOAD, contents, functools.partial(many_at_once, seed))
        server.stop()
        mariadb.stop()
    print("ok")


if __name__ == "__main__":
    main()
