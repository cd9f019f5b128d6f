#!/usr/bin/python3
"""Accounts, privileges, authentication and TLS, with the clients that people use.

Ring: gate.
"""

import pathlib
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402

from omnibus import PATIENCE_S, Omnibus, Scratch, client, connect, error_code, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, log_position, replicate, status, wait_caught_up, wait_for  # noqa: E402

PASSWORD = "correct horse 'battery' \"staple\""


def tcp(server, user, password, **more):
    return pymysql.connect(host="127.0.0.1", port=server.port, user=user, password=password, connect_timeout=PATIENCE_S, **more)


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def logins(server):
    client(server, f"CREATE USER sha@'127.0.0.1' IDENTIFIED BY {quoted(PASSWORD)}")
    client(server, f"CREATE USER native@'%' IDENTIFIED WITH mysql_native_password BY {quoted(PASSWORD)}")
    client(server, f"CREATE USER secure@'%' IDENTIFIED BY {quoted(PASSWORD)} REQUIRE SSL")
    context = {"ssl": {"ca": None, "check_hostname": False, "verify_mode": "none"}}
    for user in ("sha", "native"):
        for options in ({"ssl_disabled": True}, context):
            db = tcp(server, user, PASSWORD, **options)
            with db.cursor() as cursor:
                cursor.execute("SELECT CURRENT_USER()")
                expect(cursor.fetchone()[0].startswith(user + "@"), f"{user} is who it says")
            db.close()
        expect(error_code(lambda: tcp(server, user, "wrong")) == 1045, f"{user}: wrong password")
        expect(error_code(lambda: tcp(server, user, "")) == 1045, f"{user}: empty password")
    expect(error_code(lambda: tcp(server, "nobody", "x")) == 1045, "unknown users get the same error")
    expect(error_code(lambda: tcp(server, "secure", PASSWORD, ssl_disabled=True)) == 1045, "REQUIRE SSL without TLS")
    db = tcp(server, "secure", PASSWORD, **context)
    with db.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        expect(cursor.fetchone()[1] != "", "the connection is encrypted")
    db.close()


def privileges(server):
    root = connect(server, autocommit=True)

    def admin(sql):
        with root.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    admin("CREATE DATABASE app")
    admin("CREATE DATABASE other")
    admin("CREATE TABLE app.t (id INT PRIMARY KEY)")
    admin("CREATE TABLE other.t (id INT PRIMARY KEY)")
    admin("CREATE USER worker@'%' IDENTIFIED BY 'w'")
    user = tcp(server, "worker", "w", autocommit=True)

    def code(sql):
        def go():
            with user.cursor() as cursor:
                cursor.execute(sql)
        return error_code(go)

    denied = {"SELECT * FROM app.t": 1142, "INSERT INTO app.t VALUES (1)": 1142, "UPDATE app.t SET id = 2": 1142,
              "DELETE FROM app.t": 1142, "CREATE TABLE app.x (a INT)": 1142, "DROP TABLE app.t": 1142,
              "TRUNCATE TABLE app.t": 1142, "CREATE INDEX i ON app.t (id)": 1142, "CREATE DATABASE mine": 1044,
              "DROP DATABASE app": 1044, "USE app": 1044, "CREATE USER x": 1227, "SET GLOBAL sync_binlog = 0": 1227,
              "FLUSH LOGS": 1227, "SHUTDOWN": 1227, "SHOW BINARY LOGS": 1227, "SELECT * FROM mysql.user": 1142,
              "GRANT SELECT ON app.* TO worker@'%'": 1044}
    for sql, expected in denied.items():
        expect(code(sql) == expected, f"{sql}: {code(sql)} instead of {expected}")
    admin("GRANT SELECT, INSERT ON app.* TO worker@'%'")
    expect(code("SELECT * FROM app.t") == 0 and code("INSERT INTO app.t VALUES (1)") == 0, "granted at once")
    expect(code("DELETE FROM app.t WHERE id = 1") == 1142 and code("SELECT * FROM other.t") == 1142, "and no more")
    expect(code("INSERT INTO app.t SELECT id + 1 FROM other.t") == 1142, "both tables are checked")
    admin("GRANT UPDATE, DELETE ON app.* TO worker@'%'")
    reads = ["INSERT INTO app.t VALUES ((SELECT id FROM other.t LIMIT 1))", "REPLACE INTO app.t SELECT id FROM other.t",
             "INSERT INTO app.t VALUES (1) ON DUPLICATE KEY UPDATE id = (SELECT MAX(id) FROM other.t)",
             "UPDATE app.t SET id = (SELECT MAX(id) FROM other.t)", "DELETE FROM app.t WHERE id IN (SELECT id FROM other.t)",
             "DELETE app.t FROM app.t JOIN other.t b ON app.t.id = b.id", "UPDATE app.t a JOIN other.t b ON a.id = b.id SET a.id = 5",
             "CREATE TABLE app.copy SELECT * FROM other.t", "DO (SELECT 1 FROM other.t)", "SET @a = (SELECT id FROM other.t)",
             "WITH x AS (SELECT * FROM other.t) SELECT * FROM x", "SELECT 1 UNION SELECT id FROM other.t",
             "SELECT EXISTS (SELECT 1 FROM other.t)", "EXPLAIN SELECT * FROM other.t", "TABLE other.t", "DESCRIBE other.t",
             "SHOW CREATE TABLE other.t", "SHOW INDEX FROM other.t", "SELECT * FROM other.absent", "LOCK TABLES other.t READ"]
    for sql in reads:
        expect(code(sql) == 1142, f"{sql}: {code(sql)} instead of 1142")
    expect(code("SHOW TABLES FROM other") == 1044, "tables of other databases are nobody's business")
    with user.cursor() as cursor:
        cursor.execute("SELECT DISTINCT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT LIKE '%schema'")
        expect(cursor.fetchall() == (("app",),), "information_schema shows what the account has rights on")
        cursor.execute("SELECT DISTINCT TABLE_SCHEMA FROM information_schema.COLUMNS WHERE TABLE_SCHEMA NOT LIKE '%schema'")
        expect(cursor.fetchall() == (("app",),), "and the columns of that")
        cursor.execute("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'other'")
        expect(cursor.fetchall() == ((0,),), "and no columns of other tables")
        cursor.execute("SHOW DATABASES")
        expect([row[0] for row in cursor.fetchall() if not row[0].endswith("_schema")] == ["app"], "nor databases")
        cursor.execute("PREPARE s FROM 'SELECT * FROM app.t'")
    admin("REVOKE SELECT ON app.* FROM worker@'%'")
    expect(code("EXECUTE s") == 1142, "a prepared statement loses its rights with its account")
    for sql in ["UPDATE app.t SET id = id + 1", "UPDATE app.t SET id = 1 WHERE id = 1", "DELETE FROM app.t ORDER BY id LIMIT 1",
                "DELETE FROM app.t WHERE id = 1"]:
        expect(code(sql) == 1143, f"{sql} reads a column: {code(sql)} instead of 1143")
    expect(code("DELETE FROM app.t") == 0, "a statement that reads no column needs no SELECT")
    admin("REVOKE UPDATE, DELETE ON app.* FROM worker@'%'")
    admin("GRANT SELECT ON app.* TO worker@'%'")
    expect(code("EXECUTE s") == 0, "and has them again")
    grants = "\n".join(row[0] for row in admin("SHOW GRANTS FOR worker@'%'"))
    expect("SELECT, INSERT ON `app`.*" in grants and "USAGE ON *.*" in grants, f"SHOW GRANTS: {grants}")
    admin("REVOKE INSERT ON app.* FROM worker@'%'")
    expect(code("INSERT INTO app.t VALUES (9)") == 1142, "revoked at once")
    admin("ALTER USER worker@'%' IDENTIFIED BY 'new'")
    expect(error_code(lambda: tcp(server, "worker", "w")) == 1045, "the old password is gone")
    tcp(server, "worker", "new").close()
    admin("SET PASSWORD FOR worker@'%' = 'newer'")
    tcp(server, "worker", "newer").close()
    admin("DROP USER worker@'%'")
    expect(error_code(lambda: tcp(server, "worker", "newer")) == 1045, "dropped")
    expect(error_code(lambda: admin("DROP USER worker@'%'")) == 1396, "dropping it again is 1396")


def survives_a_crash(server):
    server.kill()
    server.start()
    tcp(server, "sha", PASSWORD).close()
    tcp(server, "native", PASSWORD).close()


def no_password_in_any_log(server):
    client(server, f"SET PASSWORD FOR native@'%' = {quoted(PASSWORD)}")
    client(server, "FLUSH LOGS")
    # Stopped: while it runs, files come and go.
    server.stop()
    for path in [*server.datadir.rglob("*"), pathlib.Path(server.directory) / "server.log"]:
        if path.is_file():
            expect(b"battery" not in path.read_bytes(), f"the password is in {path.name}")
    server.start()


def in_the_session_s_own_transaction(server):
    """What a session sets for its statements holds for those about accounts."""
    db = connect(server, autocommit=True)
    cursor = db.cursor()

    def status():
        cursor.execute("SHOW BINARY LOG STATUS")
        return cursor.fetchone()

    cursor.execute("SET sql_log_bin = 0")
    before = status()[4]
    cursor.execute("CREATE USER quiet@localhost")
    cursor.execute("GRANT SELECT ON shop.* TO quiet@localhost")
    cursor.execute("SET PASSWORD FOR quiet@localhost = 'x'")
    expect(status()[4] == before, f"no GTID without logging: {before}, then {status()}")
    cursor.execute("SET sql_log_bin = 1, gtid_next = '11111111-2222-3333-4444-555555555555:7'")
    cursor.execute("DROP USER quiet@localhost")
    expect("11111111-2222-3333-4444-555555555555:7" in status()[4], f"its own GTID: {status()}")
    cursor.execute("SET gtid_next = AUTOMATIC")
    db.close()


def root_only_from_here(server):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Sends nothing: the kernel says which address it would send from.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return
        address = probe.getsockname()[0]
    if not address.startswith("127."):
        code = error_code(lambda: pymysql.connect(host=address, port=server.port, user="root", connect_timeout=5))
        expect(code in (2003, 1130, 1045), f"root from {address} got {code}")


def killed_while_idle(server):
    """Its next statement meets an error that no statement asked for: the connection is lost, not out of step."""
    db, admin = connect(server), connect(server)
    id = db.thread_id()
    with admin.cursor() as cursor:
        cursor.execute(f"KILL {id}")
    with db.cursor() as cursor:
        expect(error_code(lambda: cursor.execute("SELECT 1")) in (2006, 2013), "a killed connection is a lost one")


def from_mariadb(directory):
    """A replica of MariaDB follows its accounts; what it does not have stops it, unless it is to be left out."""
    maria = MariaPeer(f"{directory}/maria", 1)
    replica = OmnibusPeer(f"{directory}/replica", 2, "--replica-skip-errors=1235,1410")
    strict = OmnibusPeer(f"{directory}/strict", 3)
    for server in (maria, replica, strict):
        server.start()
    try:
        create_user(maria)
        for server in (replica, strict):
            replicate(server, maria, log_position(maria))
        client(maria, """CREATE DATABASE shop; CREATE USER ann@'%' IDENTIFIED BY 'first', bob@'%' IDENTIFIED BY 'b', gone@'%';
            GRANT SELECT, INSERT ON shop.* TO ann@'%'; GRANT ALL PRIVILEGES ON *.* TO bob@'%'; REVOKE DELETE ON *.* FROM bob@'%';
            SET PASSWORD FOR ann@'%' = PASSWORD('second'); ALTER USER bob@'%' IDENTIFIED BY 'changed'; RENAME USER gone@'%' TO went@'%';
            DROP USER went@'%'; CREATE TABLE shop.t (v INT); INSERT INTO shop.t VALUES (1)""")
        for server in (replica, strict):
            wait_caught_up(server, maria)
            for user, password, old in (("ann", "second", "first"), ("bob", "changed", "b")):
                expect(error_code(lambda: tcp(server, user, old)) == 1045, f"{user}'s old password")  # noqa: B023
                db = tcp(server, user, password)
                with db.cursor() as cursor:
                    cursor.execute("SELECT v FROM shop.t")
                    expect(cursor.fetchone() == (1,), f"{user} reads")
                    denied = error_code(lambda: cursor.execute("DELETE FROM shop.t"))  # noqa: B023
                    expect(denied == 1142, f"{user} deletes: {denied}")
                db.close()
            expect(error_code(lambda: tcp(server, "gone", "")) == 1045 == error_code(lambda: tcp(server, "went", "")), "dropped")  # noqa: B023
        client(maria, "CREATE ROLE reader; GRANT SELECT ON shop.* TO reader; GRANT reader TO ann; SET DEFAULT ROLE reader FOR ann; INSERT INTO shop.t VALUES (2)")
        for server in (replica, strict):
            wait_caught_up(server, maria)
            expect("GRANT `reader`@`%` TO `ann`@`%`" in client(server, "SHOW GRANTS FOR ann"), "roles follow")
            expect("DEFAULT ROLE `reader`@`%`" in client(server, "SHOW CREATE USER ann"), "and which is in force")
        client(maria, "GRANT PROXY ON bob TO ann; ALTER USER ann WITH MAX_STATEMENT_TIME 5; INSERT INTO shop.t VALUES (3)")
        wait_caught_up(replica, maria)
        expect(client(replica, "SELECT COUNT(*) FROM shop.t").strip() == "3", "what is not here is left out")
        expect("GRANT PROXY ON `bob`@`%` TO `ann`@`%`" in client(replica, "SHOW GRANTS FOR ann"), "proxies follow")
        wait_for(lambda: int(status(strict)["Last_SQL_Errno"]) == 1235, lambda: f"it stops the other: {status(strict)}")
        expect("MAX_STATEMENT_TIME" in status(strict)["Last_SQL_Error"], f"and says so: {status(strict)['Last_SQL_Error']}")
    finally:
        for server in (replica, strict, maria):
            server.stop()


def main():
    tests = [killed_while_idle, logins, privileges, survives_a_crash, no_password_in_any_log,
             in_the_session_s_own_transaction, root_only_from_here]
    with Scratch("omnibus-accounts-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            for test in tests:
                test(server)
                print(f"accounts: {test.__name__} ok", flush=True)
        finally:
            server.stop()
    with Scratch("omnibus-accounts-") as directory:
        from_mariadb(directory)
    print("accounts: from_mariadb ok", flush=True)
    print(f"{len(tests) + 1} passed, 0 failed")


if __name__ == "__main__":
    main()
