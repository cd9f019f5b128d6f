#!/usr/bin/python3
"""What CREATE USER and ALTER USER say besides passwords and rights: it acts, is shown, and reaches replicas; the rest is refused.

Ring: all.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
from pymysql.constants import CLIENT  # noqa: E402

from omnibus import Omnibus, Scratch, client, connect, error_code, expect, wait_for  # noqa: E402

EXPIRED_PASSWORDS = 1 << 22


def tcp(server, user, password="", **more):
    return pymysql.connect(host="127.0.0.1", port=server.port, user=user, password=password, autocommit=True, **more)


def code(db, sql):
    return error_code(lambda: db.cursor().execute(sql))


def login(server, *args, **more):
    return error_code(lambda: tcp(server, *args, **more).close())


def expired_passwords(server):
    client(server, "CREATE USER old@'%' IDENTIFIED WITH mysql_native_password BY 'old' PASSWORD EXPIRE")
    expect(login(server, "old", "old") == 1862, "a client that could not change it is let go")
    expect(login(server, "old", "x") == 1045, "and told nothing before it has proved who it is")
    db = tcp(server, "old", "old", client_flag=EXPIRED_PASSWORDS | CLIENT.MULTI_STATEMENTS)
    for sql in ("SELECT 1", "SHOW DATABASES", "EXECUTE IMMEDIATE 'SELECT 1'", "DO 1", "BEGIN", "ALTER USER root@localhost IDENTIFIED BY 'x'"):
        expect(code(db, sql) in (1820, 1227), f"{sql}: {code(db, sql)}")
    expect(error_code(lambda: db.select_db("mysql")) == 1820, "a command")
    expect(code(db, "SET @a = 1") == 0 and code(db, "ALTER USER old@'%' IDENTIFIED BY 'new'") == 0, "what leads out")
    expect(code(db, "SELECT 1") == 0, "it may go on")
    expect(login(server, "old", "new") == 0, "and come back")
    client(server, "ALTER USER old@'%' PASSWORD EXPIRE INTERVAL 3 DAY")
    expect(login(server, "old", "new") == 0 and code(db, "SELECT 1") == 0, "three days are not over")
    expect("INTERVAL 3 DAY" in client(server, "SHOW CREATE USER old@'%'"), "shown")
    client(server, "ALTER USER old@'%' PASSWORD EXPIRE")
    expect(code(db, "SELECT 1") == 0, "connections that are open go on")


def wrong_passwords(server):
    client(server, "CREATE USER locks@'%' IDENTIFIED WITH mysql_native_password BY 'p' FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3")
    def rounds():
        return [login(server, "locks", password) for password in ("x", "p", "x", "x", "p")]
    expect(rounds() == [1045, 0, 1045, 3955, 3955], "two wrong ones in a row lock it")
    client(server, "ALTER USER locks@'%' ACCOUNT UNLOCK")
    expect(rounds() == [1045, 0, 1045, 3955, 3955], "unlocked, and again")
    client(server, "FLUSH PRIVILEGES")
    expect(login(server, "locks", "p") == 0, "FLUSH PRIVILEGES begins anew")
    server.kill()
    server.start()
    expect(rounds() == [1045, 0, 1045, 3955, 3955], "the rule survives a crash")


def limits(server):
    client(server, "CREATE USER few@'%' WITH MAX_USER_CONNECTIONS 2 MAX_QUERIES_PER_HOUR 5 MAX_UPDATES_PER_HOUR 2; CREATE DATABASE few;"
                   "CREATE TABLE few.t (a INT PRIMARY KEY); GRANT ALL ON few.* TO few@'%'; CREATE USER many@'%'")
    held = [tcp(server, "few", init_command=None) for _ in range(2)]
    expect(login(server, "few") == 1226, "a third connection")
    db = held[0]
    client(server, "FLUSH USER_RESOURCES")
    found = [code(db, sql) for sql in ("INSERT INTO few.t VALUES (1)", "INSERT INTO few.t VALUES (2)", "INSERT INTO few.t VALUES (3)", "DO 1")]
    expect(found == [0, 0, 1226, 0], f"updates: {found}")
    expect([code(db, "DO 1") for _ in range(2)] == [0, 1226], "questions")
    client(server, "ALTER USER few@'%' WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 1")
    expect(code(db, "DO 1") == 0, "the limit is gone")
    held.pop().close()
    # The server sees an end a little later.
    wait_for(lambda: client(server, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'few'") == "1\n", "a closed connection counts")
    expect([login(server, "few") for _ in range(2)] == [0, 1226], "connections an hour")
    client(server, "SET GLOBAL max_user_connections = 1")
    one = tcp(server, "many")
    expect(login(server, "many") == 1203, "max_user_connections")
    one.close()
    client(server, "SET GLOBAL max_user_connections = 0")


def offline(server):
    db = tcp(server, "many")
    client(server, "SET GLOBAL offline_mode = ON")
    expect(code(db, "DO 1") in (2006, 2013, 1927), "who is there is let go")
    expect(login(server, "many") == 3032, "nobody comes")
    connect(server).close()
    client(server, "SET GLOBAL offline_mode = OFF")
    expect(login(server, "many") == 0, "on again")


def current_password(server):
    client(server, "CREATE USER own@'%' IDENTIFIED WITH mysql_native_password BY 'one'")
    db = tcp(server, "own", "one")
    found = [code(db, sql) for sql in ("ALTER USER own@'%' IDENTIFIED BY 'two' REPLACE 'x'", "SET PASSWORD = 'two' REPLACE 'x'",
                                       "SET PASSWORD = 'two' REPLACE 'one'", "ALTER USER USER() IDENTIFIED BY 'three' REPLACE 'two'")]
    expect(found == [3891, 3891, 0, 0], f"REPLACE: {found}")
    expect(code(connect(server), "ALTER USER own@'%' IDENTIFIED BY 'x' REPLACE 'three'") == 3893, "of somebody else's")


def refused(server):
    root = connect(server)
    failed = code(root, "CREATE USER not_made@localhost WITH MAX_STATEMENT_TIME 3")
    expect(failed == 1235, f"MAX_STATEMENT_TIME: {failed}")
    placeholders = [code(root, f"EXECUTE IMMEDIATE CONCAT('DO ?', REPEAT(',?', {more}))") for more in (65_534, 65_535)]
    expect(placeholders == [1210, 1390], f"a count of two bytes: {placeholders}")


def two_passwords(server):
    """RETAIN CURRENT PASSWORD: both are good, over every plugin, after a crash, and on whoever runs the log; until the old one is discarded."""
    for plugin in ("mysql_native_password", "caching_sha2_password"):
        client(server, f"CREATE USER twin@'%' IDENTIFIED WITH {plugin} BY 'one'; ALTER USER twin@'%' IDENTIFIED BY 'two' RETAIN CURRENT PASSWORD")
        # Twice each: the first login fills the cache that the second is answered from.
        good = [("one", 0), ("two", 0), ("one", 0), ("two", 0), ("three", 1045), ("", 1045)]
        found = [(password, login(server, "twin", password)) for password, _ in good]
        expect(found == good, f"{plugin}: {found}")
        own = tcp(server, "twin", "one")
        expect(code(own, "SET PASSWORD = 'three' RETAIN CURRENT PASSWORD") == 1227 == code(own, "ALTER USER USER() DISCARD OLD PASSWORD"), "one's own asks for a right")
        client(server, "GRANT APPLICATION_PASSWORD_ADMIN ON *.* TO twin@'%'")
        expect(code(own, "SET PASSWORD = 'three' RETAIN CURRENT PASSWORD") == 0, "with the right")
        expect([login(server, "twin", p) for p in ("one", "two", "three")] == [1045, 0, 0], "the one before is the second")
        expect(code(own, "SET PASSWORD = 'four'") == 0, "without RETAIN the second stays")
        server.kill()
        server.start()
        expect([login(server, "twin", p) for p in ("two", "three", "four")] == [0, 1045, 0], "and is kept over a crash")
        root = connect(server)
        other = next(name for name in ("mysql_native_password", "caching_sha2_password") if name != plugin)
        failed = [code(root, sql) for sql in (f"ALTER USER twin@'%' IDENTIFIED WITH {other} BY 'x' RETAIN CURRENT PASSWORD", "ALTER USER twin@'%' IDENTIFIED BY '' RETAIN CURRENT PASSWORD")]
        expect(failed == [3894, 3895], f"what cannot be retained: {failed}")
        expect(code(root, "ALTER USER twin@'%' DISCARD OLD PASSWORD") == 0, "DISCARD")
        expect([login(server, "twin", p) for p in ("two", "four")] == [1045, 0], "discarded")
        client(server, "ALTER USER twin@'%' IDENTIFIED BY 'five' RETAIN CURRENT PASSWORD; ALTER USER twin@'%' IDENTIFIED BY ''")
        expect([login(server, "twin", p) for p in ("four", "five", "")] == [1045, 1045, 0], "an empty password ends both")
        expect(code(root, "ALTER USER twin@'%' IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD") == 3878, "an empty one is not retained")
        with root.cursor() as cursor:
            texts = []
            cursor.execute("SHOW BINARY LOGS")
            for name, *_ in cursor.fetchall():
                cursor.execute(f"SHOW BINLOG EVENTS IN '{name}'")
                for text in (str(row[5]) for row in cursor.fetchall() if "twin" in str(row[5])):
                    texts = [] if "DROP USER" in text else [*texts, text]
        # The log makes the same account again, also when it had two.
        expect(any("DISCARD OLD PASSWORD" in text for text in texts) and any("RETAIN CURRENT PASSWORD" in text for text in texts), f"the log has neither: {texts}")
        for count in range(1, len(texts) + 1):
            if "DISCARD" in texts[count - 1] and plugin in "".join(texts[:count]):
                upto = [text.split("; ", 1)[-1] for text in texts[:count]]
                client(server, "DROP USER twin@'%'")
                for text in upto[:-1]:
                    expect(code(root, text) == 0, text)
                expect([login(server, "twin", p) for p in ("two", "four")] == [0, 0], "two on whoever runs the log")
                expect(code(root, upto[-1]) == 0 and login(server, "twin", "two") == 1045, "and one")
        client(server, "DROP USER twin@'%'")


def notes(server):
    """ATTRIBUTE and COMMENT are kept, merged, shown, and in the log."""
    client(server, "CREATE USER noted@localhost ATTRIBUTE '{\"a\": 1, \"b\": \"it''s\"}' ; ALTER USER noted@localhost COMMENT 'hello';"
                   "ALTER USER noted@localhost ATTRIBUTE '{\"a\": null}'")
    shown = client(server, "SELECT ATTRIBUTE FROM information_schema.USER_ATTRIBUTES WHERE USER = 'noted'").strip()
    expect(shown == '{"b": "it\'s", "comment": "hello"}', f"USER_ATTRIBUTES: {shown}")
    root = connect(server)
    expect(code(root, "ALTER USER noted@localhost ATTRIBUTE '[1]'") == 3140, "no object")
    log = ""
    with root.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        for name, *_ in cursor.fetchall():
            cursor.execute(f"SHOW BINLOG EVENTS IN '{name}'")
            log += "\n".join(str(row[5]) for row in cursor.fetchall())
    for text in ("ATTRIBUTE '{\"a\": 1", "COMMENT 'hello'", "FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME 3", "MAX_USER_CONNECTIONS 2", "PASSWORD EXPIRE"):
        expect(text in log, f"not in the log: {text}")
    # A password that nobody spoke of would be one more in the history of a replica.
    expect(re.search("CREATE USER 'noted'@'localhost' IDENTIFIED WITH", log), "the new account's is in the log")
    expect(not re.search("ALTER USER 'noted'@'localhost' IDENTIFIED", log), "ALTER USER of an attribute says no password")
    weak = tcp(server, "many")
    with weak.cursor() as cursor:
        cursor.execute("SELECT USER FROM information_schema.USER_ATTRIBUTES")
        expect(cursor.fetchall() == (("many",),), "others' are not shown")
    shown = client(server, "SHOW CREATE USER noted@localhost")
    client(server, f"DROP USER noted@localhost; {shown}")
    expect(client(server, "SHOW CREATE USER noted@localhost") == shown, "what is shown makes the same account")


def skip_grant_tables(server):
    """The way back in, for whoever has the machine."""
    client(server, "ALTER USER root@localhost IDENTIFIED BY 'forgotten'")
    expect(error_code(lambda: connect(server)) == 1045, "the password is gone")
    server.stop()
    server.options.append("--skip-grant-tables")
    server.start()
    expect(error_code(lambda: tcp(server, "root")) == 2003, "nobody comes over the network")
    db = connect(server, user="anybody", password="any", autocommit=True)
    expect(code(db, "ALTER USER root@localhost IDENTIFIED BY ''") == 1290, "there are no accounts yet")
    found = [code(db, sql) for sql in ("SELECT * FROM mysql.user", "FLUSH PRIVILEGES", "ALTER USER root@localhost IDENTIFIED BY ''")]
    expect(found == [0, 0, 0], f"the way back: {found}")
    expect(error_code(lambda: connect(server, user="anybody", password="any")) == 1045, "accounts are asked for again")
    connect(server).close()
    server.options.pop()
    server.stop()
    server.start()
    connect(server).close()


def main():
    tests = [expired_passwords, wrong_passwords, limits, offline, current_password, refused, two_passwords, notes, skip_grant_tables]
    with Scratch("omnibus-account-options-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            for test in tests:
                test(server)
                print(f"account_options: {test.__name__} ok", flush=True)
        finally:
            server.stop()
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
