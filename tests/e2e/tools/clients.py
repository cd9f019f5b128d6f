#!/usr/bin/python3
"""The command-line clients, unmodified, in their default settings: mariadb, mysqladmin; and a restart as a user sees it.

Ring: gate.
"""

import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import PATIENCE_S, Omnibus, Scratch, client, connect, error_code, expect  # noqa: E402


def admin(server, *command):
    run = subprocess.run(["mysqladmin", "--no-defaults", f"--socket={server.socket}", "-uroot", *command],
                         capture_output=True, text=True, timeout=PATIENCE_S)
    expect(run.returncode == 0, f"mysqladmin {command}: {run.stderr}")
    return run.stdout


def mysqladmin(server):
    expect("mysqld is alive" in admin(server, "ping"), "ping")
    status = admin(server, "status")
    expect("Uptime:" in status and "Threads:" in status and "Questions:" in status, f"status: {status}")
    expect("root" in admin(server, "processlist"), "processlist")
    expect("sync_binlog" in admin(server, "variables"), "variables")
    expect("Binlog_group_commits" in admin(server, "extended-status"), "extended-status")
    admin(server, "create", "made")
    expect("made" in client(server, "SHOW DATABASES"), "create")
    admin(server, "-f", "drop", "made")


def interactive(server):
    """A session as typed: default settings, tables and columns read for completion."""
    script = """
CREATE DATABASE shop;
USE shop
CREATE TABLE item (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL, price DECIMAL(8,2) DEFAULT 1.50);
INSERT INTO item (name) VALUES ('tea'), ('coffee');
SELECT * FROM item;
SHOW TABLES; DESCRIBE item; SHOW CREATE TABLE item; SHOW INDEX FROM item;
UPDATE item SET price = price * 2 WHERE name = 'tea';
SELECT name, price FROM item ORDER BY price DESC;
status
SHOW WARNINGS;
"""
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--table"], input=script,
                         capture_output=True, text=True)
    expect(run.returncode == 0, f"the session failed: {run.stderr}")
    for text in ("| tea ", "3.00", "Server version:", "AUTO_INCREMENT", "varchar(50)"):
        expect(text in run.stdout, f"{text!r} in the session's output:\n{run.stdout}")


def errors_have_their_numbers(server):
    db = connect(server, autocommit=True)
    cases = {"SELEC 1": 1064, "SELECT * FROM nowhere": 1046, "SELECT * FROM shop.nothing": 1146, "SELECT * FROM information_schema.nothing": 1109,
             "SELECT nothing FROM shop.item": 1054, "USE nowhere": 1049, "CREATE DATABASE shop": 1007,
             "DROP DATABASE nowhere": 1008, "CREATE TABLE shop.item (a INT)": 1050, "DROP TABLE shop.nothing": 1051,
             "INSERT INTO shop.item (id, name) VALUES (1, 'x')": 1062, "INSERT INTO shop.item (name) VALUES (NULL)": 1048,
             "INSERT INTO shop.item VALUES (1)": 1136, "INSERT INTO shop.item (price) VALUES (1)": 1364,
             "INSERT INTO shop.item (name, price) VALUES ('x', 99999999)": 1264,
             "INSERT INTO shop.item (name) VALUES (REPEAT('x', 51))": 1406, "SELECT NO_SUCH_FUNCTION(1)": (1305, 1630),
             "SET no_such_variable = 1": 1193, "SET GLOBAL version = 'x'": 1238, "SET SESSION sync_binlog = 0": 1229,
             "SET GLOBAL sync_binlog = 'x'": 1232, "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')": 1235,
             "CREATE VIEW shop.v AS SELECT @a": 1351, "KILL 99999999": 1094, "": 1065}
    for sql, code in cases.items():
        def go():
            with db.cursor() as cursor:
                cursor.execute(sql)
        got = error_code(go)
        expect(got in (code if isinstance(code, tuple) else (code,)), f"{sql!r}: error {got} instead of {code}")


def transactions(server):
    db = connect(server, autocommit=False, database="shop")

    def run(sql):
        with db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
    run("CREATE TABLE s (id INT PRIMARY KEY, v INT)")
    run("INSERT INTO s VALUES (1, 1)")
    run("SAVEPOINT a")
    run("INSERT INTO s VALUES (2, 2)")
    run("SAVEPOINT b")
    run("UPDATE s SET v = 10")
    run("ROLLBACK TO b")
    expect(run("SELECT * FROM s ORDER BY id") == ((1, 1), (2, 2)), "back to b")
    run("ROLLBACK TO a")
    expect(run("SELECT * FROM s") == ((1, 1),), "back to a")
    expect(error_code(lambda: run("ROLLBACK TO b")) == 1305, "b is gone")
    run("COMMIT")
    run("INSERT INTO s VALUES (3, 3)")
    expect(error_code(lambda: run("INSERT INTO s VALUES (4, 4), (3, 3)")) == 1062, "duplicate")
    expect(run("SELECT id FROM s ORDER BY id") == ((1,), (3,)), "a failed statement leaves nothing")
    run("ROLLBACK")
    expect(run("SELECT id FROM s") == ((1,),), "rolled back")
    run("INSERT INTO s VALUES (5, 5)")
    run("CREATE TABLE s2 (a INT)")
    run("ROLLBACK")
    expect(run("SELECT id FROM s ORDER BY id") == ((1,), (5,)), "DDL commits first")
    run("START TRANSACTION READ ONLY")
    expect(error_code(lambda: run("INSERT INTO s VALUES (6, 6)")) == 1792, "read only")
    run("COMMIT")
    run("REPLACE INTO s VALUES (5, 50), (6, 60)")
    run("INSERT INTO s VALUES (6, 1) ON DUPLICATE KEY UPDATE v = v + VALUES(v)")
    run("INSERT IGNORE INTO s VALUES (6, 1), (7, 7)")
    run("COMMIT")
    expect(run("SELECT * FROM s ORDER BY id") == ((1, 1), (5, 50), (6, 61), (7, 7)), "REPLACE, ON DUPLICATE, IGNORE")
    run("CREATE TABLE clock (at TIMESTAMP)")
    run("SET time_zone = '+05:30'")
    run("INSERT INTO clock VALUES ('2024-01-01 10:00:00')")
    (at, text, unix), = run("SELECT at, CONCAT(at), UNIX_TIMESTAMP(at) FROM clock")
    expect((str(at), text, unix) == ("2024-01-01 10:00:00", "2024-01-01 10:00:00", 1704083400), "a TIMESTAMP in the session's zone")


def auto_increment_never_reissues(server):
    client(server, "CREATE TABLE shop.a (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)")
    client(server, "INSERT INTO shop.a (v) VALUES (1), (2), (3)")
    client(server, "DELETE FROM shop.a WHERE id >= 2")
    for stop in (server.stop, server.kill):
        stop()
        server.start()
        last = int(client(server, "INSERT INTO shop.a (v) VALUES (9); SELECT LAST_INSERT_ID()"))
        expect(last > 3, f"id {last} was given out before")
        client(server, f"DELETE FROM shop.a WHERE id = {last}")
        again = int(client(server, "INSERT INTO shop.a (v) VALUES (9); SELECT LAST_INSERT_ID()"))
        expect(again > last, f"id {again} after {last}")
        client(server, f"DELETE FROM shop.a WHERE id = {again}")


def clean_restart_is_fast(server):
    client(server, "CREATE TABLE shop.f (id INT PRIMARY KEY, v CHAR(100))")
    for first in range(0, 20000, 2000):
        values = ",".join(f"({n},'x')" for n in range(first, first + 2000))
        client(server, f"INSERT INTO shop.f VALUES {values}")
    server.stop()
    seconds = server.start()
    expect(client(server, "SELECT COUNT(*) FROM shop.f") == "20000\n", "everything is there")
    print(f"clients: started on a cleanly stopped directory in {seconds * 1000:.0f} ms")


def shutdown(server):
    admin(server, "shutdown")
    expect(server.process.wait(PATIENCE_S) == 0, "mysqladmin shutdown ends the server with 0")
    server.start()
    run = client(server, "SHUTDOWN", check=False)
    expect(run.returncode == 0 and server.process.wait(PATIENCE_S) == 0, "SHUTDOWN ends the server with 0")
    server.start()


def main():
    tests = [mysqladmin, interactive, errors_have_their_numbers, transactions, auto_increment_never_reissues,
             clean_restart_is_fast, shutdown]
    with Scratch("omnibus-clients-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            for test in tests:
                started = time.monotonic()
                test(server)
                print(f"clients: {test.__name__} ok ({time.monotonic() - started:.1f} s)", flush=True)
        finally:
            server.stop()
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
