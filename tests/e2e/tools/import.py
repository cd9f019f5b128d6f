#!/usr/bin/python3
"""`omnibus import` from a real MySQL and MariaDB of the newest kind (`scripts/peers`, needs root) while others write: everything is there and equal,
also after kills of the command and of the target in the middle (IMPORT-1); planted differences are found and named; cut-over, and the way back.

Ring: all.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from imports import Mover, Writers, fill, newer_mariadb, newer_mysql, target  # noqa: E402
from omnibus import Session, client, expect, wait_for  # noqa: E402
from peers import run_chosen  # noqa: E402

ROWS = 15_000


def number(server, sql):
    return int(client(server, sql).strip() or 0)


def what_is_refused_is_named(source, into):
    """A plan names what is in the way and leaves nothing behind; neither does an import that is refused."""
    mover = Mover(source, into)
    client(source, "CREATE DATABASE odd; CREATE TABLE odd.place (id INT PRIMARY KEY, p POINT NOT NULL); CREATE TABLE odd.old (id INT) ENGINE=MyISAM; "
                   "CREATE TABLE odd.fine (id INT PRIMARY KEY)")
    for options in (["--plan"], ["--until-caught-up"]):
        said = mover.run(*options, code=3)
        expect("odd.place" in said and "odd.old" in said and "ENGINE=MyISAM" in said and "odd.fine" not in said, said)
        found = client(into, "SHOW DATABASES").split()
        expect("shop" not in found and not any(name.startswith("omnibus_import") for name in found), f"left behind: {found}")
    mover.run("--plan", "--exclude", "odd.place", "odd.old")
    (own,), = Session(into)("SELECT @@GLOBAL.server_id")
    client(into, f"SET GLOBAL server_id = {number(source, 'SELECT @@GLOBAL.server_id')}")
    said = mover.run("--plan", "--exclude", "odd.place", "odd.old", code=3)
    expect("the same server_id, 77:" in said, said)
    client(into, f"SET GLOBAL server_id = {own}")
    # Without a right to stop writers, and with a wrong password.
    client(source, "CREATE USER poor@'%' IDENTIFIED BY 'mover-secret'; GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO poor@'%'")
    mover.words[3] = mover.words[3].replace("mover@", "poor@")
    said = mover.run("--databases", "odd", "--exclude", "odd.place", "odd.old", "--no-follow", "--no-accounts", code=3)
    expect("GRANT RELOAD" in said, said)
    mover.environment["OMNIBUS_FROM_PASSWORD"] = "wrong"
    said = mover.run("--plan", code=1)
    expect("password" in said and "wrong" not in said, said)
    client(source, "DROP DATABASE odd; DROP USER poor@'%'")
    client(into, "DROP DATABASE IF EXISTS omnibus_import; DROP DATABASE IF EXISTS odd")


def still_running(command):
    if command.poll() is not None:
        raise SystemExit(f"FAIL: it ended by itself: {command.communicate()}")


def killed_and_resumed(source, into, mover):
    """The command is killed when some tables are done, and what is left is copied by the next one; then the target is."""
    def count(sql):
        found = client(into, sql, check=False)
        return int(found.stdout.strip() or 0) if found.returncode == 0 and found.stdout.strip() != b"NULL" else 0

    def done():
        return count("SELECT COUNT(*) FROM omnibus_import.done")

    def batches():
        return count("SELECT SUM(batches) FROM omnibus_import.worker")
    running = mover.start("--until-caught-up", "--threads", "2")
    wait_for(lambda: running.poll() is not None or batches() > 3, "no batch is done")
    still_running(running)
    into.kill()
    time.sleep(0.5)
    into.start()
    wait_for(lambda: running.poll() is not None or done() >= 2, "no table is done")
    still_running(running)
    running.kill()
    running.wait()
    left = done()
    said = mover.run("--until-caught-up", "--threads", "2")
    expect(" 0 differences" in said and "follows the source" in said, f"after two kills: {said}")
    expect("tables are there already" in said, f"the second run began anew, with {left} tables done: {said}")


def planted_differences(source, into, mover):
    """What is changed at the target behind its source's back is found, with its keys, and what is equal is not named."""
    mover.run("--check-only")
    client(into, "SET sql_log_bin = 0, foreign_key_checks = 0; UPDATE shop.item SET price = price + 1e-9 WHERE orders = 1 AND n = 1; "
                 "DELETE FROM shop.words WHERE lang = 'fr'; INSERT INTO shop.customer (id, name) VALUES (99999999, 'nobody'); DROP VIEW shop.a_best; "
                 "ALTER TABLE shop.swaps ALTER x SET DEFAULT 5; ALTER TABLE shop.swaps ADD CONSTRAINT planted CHECK (id > -5)")
    said = mover.run("--check-only", code=4)
    for part in ("shop.item: (orders, n) after", "different: 1 ((1, 1))", "missing in the target: 1 (('é', 'fr', x'00ff'))", "only in the target: 1 ((99999999))", "view shop.a_best: not in the target",
                 "table shop.swaps: only in the source: `x` int", "table shop.swaps: only in the target: `x` int", "table shop.swaps: only in the target: CONSTRAINT `planted` CHECK"):
        expect(part in said, f"'{part}' is not in {said}")
    expect("7 differences" in said and "shop.orders:" not in said, said)
    client(into, "SET sql_log_bin = 0, foreign_key_checks = 0; UPDATE shop.item SET price = 2.5 WHERE orders = 1 AND n = 1; "
                 "INSERT INTO shop.words VALUES ('é', 'fr', x'00ff', 1); "
                 "ALTER TABLE shop.swaps ALTER x SET DEFAULT NULL; ALTER TABLE shop.swaps DROP CONSTRAINT planted; DELETE FROM shop.customer WHERE id = 99999999; "
                 "USE shop; CREATE VIEW a_best AS SELECT c.name, t.t, shop.double_it(t.t) AS d FROM totals t JOIN customer c ON c.id = t.customer")
    mover.run("--check-only")


def moved(directory, source, dialect):
    source.start()
    fill(source, ROWS)
    into = target(directory, 101, dialect)
    what_is_refused_is_named(source, into)
    mover = Mover(source, into)
    writers = Writers(source)
    killed_and_resumed(source, into, mover)
    said = mover.run("--until-caught-up")
    expect("finished before" in said, said)
    planted_differences(source, into, mover)
    # Not read-only yet; then definitions while it follows.
    expect("read-only" in mover.run("--cut-over", code=3), "the source is not read-only")
    writers.stop()
    client(source, "USE shop; ALTER TABLE notes ADD more INT DEFAULT 5; CREATE TABLE late (id INT PRIMARY KEY); INSERT INTO late VALUES (1); CREATE USER late@'%' IDENTIFIED BY 'x'")
    said = mover.run("--cut-over", "--set-read-only")
    expect("cut over in" in said and " 0 differences" in said, said)
    after(source, into, said)
    way_back(source, into, said)
    source.remove()
    into.stop()


def after(source, into, said):
    """The target stands alone: no channel, no state, events enabled, accounts as they were, counters behind all rows."""
    expect(not client(into, "SHOW REPLICA STATUS").strip() and "omnibus_import" not in client(into, "SHOW DATABASES"), "something is left")
    expect(client(into, "SELECT STATUS FROM information_schema.EVENTS").split() == ["ENABLED"], "the event")
    expect(client(into, "SELECT * FROM shop.late").strip() == "1" and "late" in client(into, "SELECT User FROM mysql.user"), "what came last")
    import pymysql
    with pymysql.connect(host="127.0.0.1", port=into.port, user="app", password="app-secret") as db, db.cursor() as cursor:
        # Without autocommit, and more than one: the old source follows these.
        for _ in range(2):
            cursor.execute("INSERT INTO shop.audit (who) VALUES ('app')")
            db.commit()
        cursor.execute("SHOW GRANTS")
        expect(any("reader" in grant for grant, in cursor.fetchall()), "the role")
    most = number(source, "SELECT MAX(id) FROM shop.orders")
    client(into, "CALL shop.add_one(1)")
    expect(number(into, "SELECT MAX(id) FROM shop.orders") > most, "the next order's number")


def way_back(source, into, said):
    """The old source follows the target as its replica, by the statement that the cut-over printed."""
    plugin = "mysql_native_password" if source.name == "mariadb" else "caching_sha2_password"
    client(into, f"CREATE USER repl@'%' IDENTIFIED WITH {plugin} BY 'r'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'")
    statement = next(line.strip() for line in said.splitlines() if line.strip().startswith("CHANGE "))
    old = source.name == "mariadb"
    word = "MASTER" if old else "SOURCE"
    statement = statement.replace(f"{word}_HOST='127.0.0.1', {word}_PORT=3306", f"{word}_HOST='127.0.0.1', {word}_PORT={into.port}")
    statement = statement.replace("_USER='..'", "_USER='repl'").replace("_PASSWORD='..'", "_PASSWORD='r'")
    if old:
        statement += ", MASTER_SSL_VERIFY_SERVER_CERT=0"
    client(source, f"{statement}; START {'SLAVE' if old else 'REPLICA'}")
    client(into, "INSERT INTO shop.late VALUES (2); UPDATE shop.item SET price = 7 WHERE orders = 1")

    def there():
        state = client(source, "SHOW SLAVE STATUS" if old else "SHOW REPLICA STATUS", "--vertical")
        expect("_SQL_Running: No" not in state, f"the way back: {state}")
        return client(source, "SELECT COUNT(*) FROM shop.late").strip() == "2"
    wait_for(there, lambda: client(source, "SHOW SLAVE STATUS" if old else "SHOW REPLICA STATUS", "--vertical"), 60)
    for table, key in (("late", "id"), ("item", "orders, n"), ("orders", "id"), ("audit", "id")):
        mine, theirs = (client(server, f"SELECT * FROM shop.{table} ORDER BY {key}") for server in (into, source))
        expect(mine == theirs, f"{table} differs on the way back")


def from_mysql(directory):
    moved(directory, newer_mysql("--gtid-mode=ON", "--enforce-gtid-consistency=ON"), "mysql")


def from_mysql_without_gtids(directory):
    moved(directory, newer_mysql(), "mysql")


def from_mariadb(directory):
    moved(directory, newer_mariadb(), "mariadb")


if __name__ == "__main__":
    run_chosen("import", [from_mysql, from_mariadb, from_mysql_without_gtids])
