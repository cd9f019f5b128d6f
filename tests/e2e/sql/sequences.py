#!/usr/bin/python3
"""MariaDB's sequences: the same statements here and there, dumps, replication in both directions, and no number twice after kill -9.

Ring: all.
"""

import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, client, connect, expect  # noqa: E402
from peers import OmnibusPeer, expect_equal, query, restart, run_chosen, there_and_back, wait_caught_up, wait_for  # noqa: E402

STATEMENTS = """
CREATE SEQUENCE s
SHOW CREATE SEQUENCE s
SELECT * FROM s
CREATE SEQUENCE t START WITH 100 INCREMENT BY 10 MINVALUE 5 MAXVALUE = 1000 CACHE 5 CYCLE
SHOW CREATE SEQUENCE t
SELECT NEXTVAL(t), LASTVAL(t), NEXT VALUE FOR t, PREVIOUS VALUE FOR t, LASTVAL(s)
SELECT * FROM t
SELECT SETVAL(t, 50), NEXTVAL(t)
SELECT SETVAL(t, 900), NEXTVAL(t)
SELECT SETVAL(t, 990, 0), NEXTVAL(t)
SELECT NEXTVAL(t), NEXTVAL(t)
SELECT * FROM t
SELECT SETVAL(t, 200, 1, 3)
SELECT * FROM t
SELECT NEXTVAL(t)
CREATE SEQUENCE u INCREMENT BY -1 NOCACHE
SELECT NEXTVAL(u), NEXTVAL(u)
SHOW CREATE SEQUENCE u
SELECT * FROM u
CREATE SEQUENCE w MAXVALUE 3 NOCACHE NOCYCLE NO MINVALUE COMMENT='hi'
SHOW CREATE SEQUENCE w
SELECT NEXTVAL(w), NEXTVAL(w), NEXTVAL(w)
SELECT NEXTVAL(w)
SELECT * FROM w
CREATE TABLE d (id INT DEFAULT NEXTVAL(s) PRIMARY KEY, v INT)
INSERT INTO d (v) VALUES (1), (2), (3)
INSERT INTO d VALUES (DEFAULT, 4)
SELECT * FROM d
ALTER SEQUENCE s RESTART 100
SELECT NEXTVAL(s)
ALTER SEQUENCE s RESTART
SELECT NEXTVAL(s), LASTVAL(s)
ALTER SEQUENCE s INCREMENT BY 5 MAXVALUE 500
SHOW CREATE SEQUENCE s
SELECT NEXTVAL(s)
ALTER SEQUENCE IF EXISTS zz RESTART
ALTER SEQUENCE zz RESTART
DROP SEQUENCE IF EXISTS zz
DROP SEQUENCE zz
DROP SEQUENCE d
SHOW FULL TABLES
CREATE SEQUENCE IF NOT EXISTS s
CREATE SEQUENCE s
CREATE OR REPLACE SEQUENCE s START 7
SELECT NEXTVAL(s)
SELECT NEXTVAL(d)
SELECT NEXTVAL(nope)
SELECT NEXTVAL(d.nope)
UPDATE s SET next_not_cached_value = 5
DELETE FROM s
TRUNCATE s
RENAME TABLE s TO s2
SELECT SETVAL(s2, 2000), NEXTVAL(s2)
LOCK TABLES s2 READ
SELECT NEXTVAL(s2)
UNLOCK TABLES
LOCK TABLES s2 WRITE
SELECT NEXTVAL(s2)
UNLOCK TABLES
CREATE SEQUENCE a1 START 5 MINVALUE 10
CREATE SEQUENCE a2 MINVALUE 10 MAXVALUE 5
CREATE SEQUENCE a3 CACHE 0
SELECT NEXTVAL(a3), NEXTVAL(a3)
SELECT * FROM a3
START TRANSACTION
SELECT NEXTVAL(s2)
ROLLBACK
SELECT NEXTVAL(s2)
SELECT NEXTVAL(s2) FROM (SELECT 1 UNION SELECT 2) x
START TRANSACTION READ ONLY
SELECT NEXTVAL(s2)
ROLLBACK
CREATE TABLE e (a INT, b BIGINT NOT NULL DEFAULT NEXT VALUE FOR d.s2)
INSERT INTO e (a) SELECT v FROM d
SELECT * FROM e
SELECT SUM(NEXTVAL(a3)), MAX(NEXTVAL(a3)) FROM e
ALTER TABLE e ALTER b SET DEFAULT (NEXTVAL(a3))
INSERT INTO e (a) VALUES (9)
SELECT * FROM e ORDER BY b, a
PREPARE p FROM 'SELECT NEXTVAL(s2)'
EXECUTE p
EXECUTE p
DROP SEQUENCE s2
EXECUTE p
CREATE SEQUENCE s2
EXECUTE p
SELECT LASTVAL(s2)
SET auto_increment_increment = 10
SET auto_increment_increment = 1
DROP TABLE a3
DROP SEQUENCE s2, t, u
SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' ORDER BY 1
""".strip().splitlines()
# Of engines, display widths of integers and the texts of places.
UNLIKE = re.compile(r"ENGINE=\w+|/\*!999999 ENGINE=\w+ \*/| in '[\w ]+'")


def answer(cursor, sql):
    import pymysql
    try:
        cursor.execute(sql)
    except pymysql.err.MySQLError as error:
        return error.args[0], UNLIKE.sub("", str(error.args[1])).rstrip(".")
    return [tuple(UNLIKE.sub("", value) if isinstance(value, str) else value for value in row) for row in cursor.fetchall()]


def statements(directory):
    servers = [MariaDB(directory, "--character-set-server=utf8mb4", "--log-bin", "--binlog-format=ROW"), Omnibus(directory, "--dialect=mariadb")]
    cursors = []
    for server in servers:
        server.start()
        cursors.append(connect(server, charset="utf8mb4", autocommit=True).cursor())
        for sql in ("CREATE DATABASE d", "USE d"):
            cursors[-1].execute(sql)
    for sql in STATEMENTS:
        theirs, mine = [answer(cursor, sql) for cursor in cursors]
        expect(mine == theirs, f"{sql}\n  here:    {mine}\n  MariaDB: {theirs}")
    refused = client(servers[1], "CREATE TABLE d.x (a INT) SEQUENCE=1", check=False).stderr.decode()
    expect("1235" in refused, refused)
    client(servers[1], "CREATE USER low; GRANT SELECT ON d.* TO low; CREATE SEQUENCE d.mine")
    refused = client(servers[1], "SELECT NEXTVAL(d.mine)", user="low", check=False).stderr.decode()
    expect("1142" in refused and "INSERT" in refused, refused)
    expect(client(servers[1], "SELECT LASTVAL(d.mine)", user="low") == "NULL\n", "LASTVAL asks for SELECT only")
    for server in servers:
        server.stop()


def dump(server, target):
    # A MariaDB refuses its own dump where a key's default is a number and the table is locked (1100).
    options = ["--skip-add-locks"] if isinstance(target, MariaDB) else []
    run = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", *options, "d"], capture_output=True)
    expect(run.returncode == 0, run.stderr.decode())
    return run.stdout


def load(server, text):
    client(server, "DROP DATABASE IF EXISTS d; CREATE DATABASE d")
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "d"], input=text, capture_output=True)
    expect(run.returncode == 0, run.stderr.decode())


FILL = """CREATE DATABASE d; USE d; CREATE SEQUENCE s CACHE 3; CREATE SEQUENCE t START 50 INCREMENT -5 MINVALUE 10 MAXVALUE 50 CYCLE NOCACHE;
    CREATE TABLE c (id BIGINT PRIMARY KEY DEFAULT NEXTVAL(s), v INT); CREATE TABLE e (id INT AUTO_INCREMENT PRIMARY KEY, v INT DEFAULT NEXTVAL(t))"""
USE = """USE d; INSERT INTO c () VALUES (), (), (), (), (); SELECT NEXTVAL(t); BEGIN; INSERT INTO c (v) VALUES (1), (2), (3), (4); ROLLBACK; SELECT SETVAL(s, 100);
    INSERT INTO e () VALUES (), (), (); ALTER SEQUENCE t INCREMENT -1; INSERT INTO c () VALUES (), (); INSERT INTO e (id) VALUES (NULL)"""


def dumps(directory):
    """There, here, there; here, there, here: what a dump loads goes on where the other stopped."""
    for first, second, third in ((MariaDB, Omnibus, MariaDB), (Omnibus, MariaDB, Omnibus)):
        servers = []
        for number, kind in enumerate((first, second, third)):
            place = pathlib.Path(directory) / f"{first.__name__}{number}"
            place.mkdir()
            servers.append(kind(place, *(["--dialect=mariadb"] if kind is Omnibus else ["--skip-log-bin"])))
            servers[-1].start()
        client(servers[0], FILL)
        client(servers[0], USE)
        for source, target in zip(servers, servers[1:]):
            load(target, dump(source, target))
        found = [client(server, "SELECT * FROM d.s; SELECT * FROM d.t; SELECT * FROM d.c; SELECT * FROM d.e") for server in servers]
        expect(found[0] == found[1] == found[2], f"after dumps: {found}")
        told = [client(server, "INSERT INTO d.c () VALUES (); SELECT MAX(id) FROM d.c") for server in servers[1:]]
        expect(told[0] == told[1], told)
        for server in servers:
            server.stop()


def both_ways(directory):
    """MariaDB to ours of both dialects, ours to MariaDB; then the replica takes over and gives no number again."""
    theirs, mysql, maria, back = there_and_back(directory)
    client(theirs, FILL)
    for _ in range(3):
        client(theirs, USE)
    for replica in (mysql, maria):
        wait_caught_up(replica, theirs)
        expect_equal(theirs, replica, least_rows=10)
    client(maria, "STOP REPLICA; " + FILL.replace("d;", "own;").replace("CREATE DATABASE d", "CREATE DATABASE own"))
    for _ in range(3):
        client(maria, USE.replace("USE d", "USE own"))
    client(maria, USE)
    wait_caught_up(back, maria)
    expect_equal(maria, back, least_rows=30)
    given = int(query(maria, "SELECT MAX(id) AS n FROM d.c")[0]["n"])
    client(back, "STOP SLAVE; SET GLOBAL read_only = 0")
    expect(int(client(back, "SELECT NEXTVAL(d.s)")) > given, "the replica that takes over goes on behind")
    client(mysql, "STOP REPLICA")
    before = int(query(theirs, "SELECT MAX(id) AS n FROM d.c")[0]["n"])
    expect(int(client(mysql, "SELECT NEXTVAL(d.s)")) > before, "also in the dialect that cannot make one")
    refused = client(mysql, "CREATE SEQUENCE d.no", check=False).stderr.decode()
    expect("1235" in refused, refused)
    for server in (theirs, back, mysql, maria):
        server.stop()


def killed(directory):
    """Eight sessions take numbers while the server is killed, again and again: all that was told differs, in rows and to clients."""
    import pymysql
    server = OmnibusPeer(f"{directory}/k", 1, "--dialect=mariadb")
    server.start()
    client(server, "CREATE DATABASE d; USE d; CREATE SEQUENCE s CACHE 7; CREATE TABLE c (id BIGINT PRIMARY KEY DEFAULT NEXTVAL(s), v INT)")
    told, lock, failures = [], threading.Lock(), []

    def take(number):
        try:
            db = connect(server, autocommit=True)
            while True:
                with db.cursor() as cursor:
                    if number % 2:
                        cursor.execute("SELECT NEXTVAL(d.s)")
                        mine = [row[0] for row in cursor.fetchall()]
                    else:
                        cursor.execute("INSERT INTO d.c (v) VALUES (1), (2), (3)")
                        cursor.execute("SELECT LASTVAL(d.s)")
                        mine = [row[0] for row in cursor.fetchall()]
                with lock:
                    told.extend(mine)
        except pymysql.err.IntegrityError as error:
            failures.append(str(error))
        except (pymysql.err.MySQLError, OSError):
            pass

    for _ in range(4):
        threads = [threading.Thread(target=take, args=(number,)) for number in range(8)]
        enough = len(told) + 300
        for thread in threads:
            thread.start()
        wait_for(lambda: len(told) >= enough, "numbers")
        restart(server, kill=True)
        for thread in threads:
            thread.join()
        expect(not failures, failures)
        expect(len(set(told)) == len(told), f"{len(told) - len(set(told))} of {len(told)} numbers were told twice")
    rows = query(server, "SELECT MAX(id) AS n FROM d.c")[0]["n"]
    expect(int(client(server, "SELECT NEXTVAL(d.s)")) > max(max(told), rows), "what comes is behind all that was")
    server.stop()


if __name__ == "__main__":
    run_chosen("sequences", [statements, dumps, both_ways, killed])
