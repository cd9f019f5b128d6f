#!/usr/bin/python3
"""Dumps of all databases by other servers load here, their system tables passed over with warnings; what MySQL's dump program asks is answered.

Accounts are never written by SQL (ACCESS-1): a dump's rows of `mysql.user` make none and change none, and outside of a dump
the same statements are errors.

Ring: all.
"""

import re
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, client, connect, error_code, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, run_chosen  # noqa: E402

DUMPS = ROOT / "testdata/dumps"
ACCOUNTS = "SELECT User, Host, authentication_string FROM mysql.user ORDER BY 1, 2; SHOW GRANTS FOR root@localhost"


def load(server, path):
    """Loads a dump; its warnings, each (code, text)."""
    with open(path, "rb") as text:
        run = client(server, None, "--show-warnings", stdin=text, check=False)
    expect(run.returncode == 0, f"{path}: {run.stderr.decode(errors='replace')}")
    said = run.stdout.decode(errors="replace") + run.stderr.decode(errors="replace")
    return re.findall(r"Warning \(Code (\d+)\): (.*)", said)


def check_loaded(server, path, before, tables):
    warnings = load(server, path)
    expect(client(server, ACCOUNTS) == before, f"{path}: the dump has changed accounts")
    client(server, "FLUSH PRIVILEGES")
    expect(client(server, ACCOUNTS) == before, f"{path}: the dump has changed accounts")
    foreign = [warning for warning in warnings if warning[0] != "3554"]
    expect(foreign == [], f"{path}: other warnings: {foreign}")
    named = {re.search(r"'mysql\.?(\w*)'", text)[1] for _, text in warnings}
    expect(tables <= named, f"{path}: no warning names {tables - named}")


def mysql(directory):
    """A dump in the form of MySQL 8 and 9."""
    server = OmnibusPeer(f"{directory}/s", 1)
    server.start()
    before = client(server, ACCOUNTS)
    check_loaded(server, DUMPS / "mysql-9-all.sql", before, {"", "user", "db", "engine_cost", "global_grants", "time_zone_name"})
    expect(client(server, "SELECT * FROM shop.user") == "1\tpen\n2\tink\n", "a user's table has not arrived")
    expect(client(server, "SHOW TABLES FROM mysql") == "general_log\nslow_log\n", "the dump has made system tables")
    executed = client(server, "SELECT @@gtid_executed")
    expect("0b7a3a0c-61f4-11f0-9e1d-0242ac110002:1-57" in executed, f"GTIDs of the dump: {executed}")
    # Outside of a dump, and without the rights, the same is an error.
    cursor = connect(server, database="mysql", autocommit=True).cursor()
    for sql in ("INSERT INTO user VALUES (1)", "DROP TABLE db", "CREATE TABLE IF NOT EXISTS user (a INT)"):
        expect(error_code(lambda: cursor.execute(sql)) == 1142, f"taken: {sql}")  # noqa: B023
    client(server, "CREATE USER weak@localhost; GRANT SELECT ON *.* TO weak@localhost")
    weak = connect(server, user="weak", autocommit=True).cursor()
    weak.execute("SET unique_checks = 0, foreign_key_checks = 0")
    for sql in ("INSERT INTO mysql.user VALUES (1)", "INSERT INTO mysql.proc VALUES (1)", "DROP TABLE IF EXISTS mysql.db"):
        expect(error_code(lambda: weak.execute(sql)) in (1142, 1146), f"taken of nobody: {sql}")  # noqa: B023
    server.stop()


def mariadb(directory):
    """Real dumps of a MariaDB, into both dialects."""
    theirs = MariaPeer(f"{directory}/t", 1)
    theirs.start()
    client(theirs, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(9)); INSERT INTO shop.t VALUES (1, 'x'); "
                   "CREATE USER evil@localhost; GRANT ALL ON *.* TO evil@localhost")
    path = pathlib.Path(directory) / "all.sql"
    for number, options in enumerate(((), ("--add-drop-database",), ("--compact",))):
        run = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={theirs.socket}", "-uroot", "--all-databases", *options],
                             capture_output=True)
        expect(run.returncode == 0, run.stderr.decode())
        path.write_bytes(run.stdout)
        for dialect in ("mysql", "mariadb"):
            server = OmnibusPeer(f"{directory}/{dialect}{number}", 2, f"--dialect={dialect}")
            server.start()
            check_loaded(server, path, client(server, ACCOUNTS), {"global_priv", "user", "db", "proc", "time_zone"})
            expect(client(server, "SELECT * FROM shop.t") == "1\tx\n", "a user's table has not arrived")
            server.stop()
    theirs.stop()


def everything_of_mariadb(directory):
    """`--system=all`: accounts, roles and their rights as statements, servers, statistics. What is not here is passed over with warnings."""
    theirs = MariaPeer(f"{directory}/t", 1)
    theirs.start()
    client(theirs, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY); INSERT INTO shop.t VALUES (1); CREATE USER app@localhost IDENTIFIED BY 'p'; "
                   "CREATE ROLE reader; GRANT SELECT ON shop.* TO reader; GRANT reader TO app@localhost; GRANT INSERT ON mysql.proc TO app@localhost; "
                   "CREATE SERVER elsewhere FOREIGN DATA WRAPPER mysql OPTIONS (HOST '127.0.0.1'); ANALYZE TABLE shop.t PERSISTENT FOR ALL")
    path = pathlib.Path(directory) / "all.sql"
    run = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={theirs.socket}", "-uroot", "--all-databases", "--system=all", "--insert-ignore"], capture_output=True)
    expect(run.returncode == 0 and not run.stderr, run.stderr.decode())
    path.write_bytes(run.stdout)
    theirs.stop()
    for dialect in ("mysql", "mariadb"):
        server = OmnibusPeer(f"{directory}/{dialect}", 2, f"--dialect={dialect}")
        server.start()
        with path.open("rb") as text:
            loaded = client(server, None, "--show-warnings", stdin=text, check=False)
        expect(loaded.returncode == 0, f"{dialect}: {loaded.stderr.decode()}")
        for name in ("mysql.servers", "mysql.global_priv", "mysql.proc", "mysql.time_zone", "mysql.table_stats"):
            expect(f"Access to system table '{name}' is rejected" in loaded.stdout.decode() + loaded.stderr.decode(), f"{dialect}: no warning names {name}")
        found = connect(server, user="app", password="p", autocommit=True).cursor()
        found.execute("SET ROLE reader")
        found.execute("SELECT * FROM shop.t")
        expect(found.fetchall() == ((1,),), "the role's rights have not come")
        # Outside of a dump both are errors.
        for sql, code in (("CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", 1235),
                          ("GRANT SELECT ON mysql.proc TO app@localhost", 1146)):
            got = error_code(lambda: connect(server).cursor().execute(sql))  # noqa: B023
            expect(got == code, f"{sql}: {got}")
        server.stop()


def zones(directory):
    """`--system=timezones,stats`: whoever loads our zones tells the same times; a dump of all databases has none of it."""
    ours, theirs = OmnibusPeer(f"{directory}/o", 1), MariaPeer(f"{directory}/t", 2)
    ours.start()
    theirs.start()
    dump = ["mariadb-dump", "--no-defaults", f"--socket={ours.socket}", "-uroot"]
    run = subprocess.run([*dump, "--system=timezones,stats"], capture_output=True)
    expect(run.returncode == 0 and not run.stderr, run.stderr.decode())
    path = pathlib.Path(directory) / "zones.sql"
    path.write_bytes(run.stdout)
    load(theirs, path)
    # It keeps what it knew of a zone until it is started again.
    theirs.stop()
    theirs.start()
    cursors = [connect(server).cursor() for server in (ours, theirs)]
    cursors[0].execute("SELECT Name FROM mysql.time_zone_name")
    names = [name for name, in cursors[0].fetchall()]
    expect(len(names) > 300, f"only {len(names)} zones")
    times = [1, 86_400, *range(60_000_000, 2**31, 140_000_000)]
    for name in names:
        told = []
        for cursor in cursors:
            cursor.execute(f"SET time_zone = '{name}'")
            cursor.execute("SELECT " + ", ".join(f"FROM_UNIXTIME({time})" for time in times))
            told.append(cursor.fetchone())
        expect(told[0] == told[1], f"{name}: {told}")
    everything = subprocess.run([*dump, "--all-databases"], capture_output=True, check=True).stdout
    expect(b"time_zone_name" not in everything and b"innodb_table_stats" not in everything, "a dump of all databases has them")
    # Tablespaces are asked for with the mode in force, which may forbid what they are grouped by.
    subprocess.run([*dump, "--compatible=ansi", "--all-databases"], capture_output=True, check=True)
    ours.stop()
    theirs.stop()


def accounts(directory):
    """What SHOW CREATE USER and SHOW GRANTS print in MariaDB's dialect makes the same account there, and all of it here."""
    ours, again = (OmnibusPeer(f"{directory}/a{number}", number, "--dialect=mariadb") for number in (1, 2))
    theirs = MariaPeer(f"{directory}/t", 3)
    for server in (ours, again, theirs):
        server.start()
    client(ours, """CREATE USER a@localhost IDENTIFIED BY 'secret'; GRANT SELECT, RELOAD, REPLICATION CLIENT, BINLOG_ADMIN, BACKUP_ADMIN ON *.* TO a@localhost WITH GRANT OPTION;
        GRANT INSERT, UPDATE ON `d_`.* TO a@localhost; CREATE USER b@'%' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 2 ACCOUNT LOCK PASSWORD EXPIRE NEVER;
        CREATE USER c@'10.%' FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2; GRANT ALL ON *.* TO c@'10.%'; GRANT ALL ON d.* TO b@'%' WITH GRANT OPTION""")
    who = ("a@localhost", "b@'%'", "c@'10.%'")

    def shown(server, user):
        return [client(server, f"SHOW {what} {user}", "--raw").rstrip().split("\n") for what in ("CREATE USER", "GRANTS FOR")]

    def plain(lines):
        kept = [re.sub(r" */\*!999999.*?\*/", "", line) for line in lines]
        return [line for line in kept if line]

    for user in who:
        (make,), grants = shown(ours, user)
        for server in (again, theirs):
            client(server, make)
            for line in grants:
                client(server, line, "--comments")
        expect(shown(again, user) == [[make], grants], f"{user} here again: {shown(again, user)}, was {[[make], grants]}")
        expect(shown(theirs, user) == [plain([make]), plain(grants)], f"{user} there: {shown(theirs, user)}, was {[plain([make]), plain(grants)]}")
    refused = client(again, "GRANT SELECT ON *.* TO a@localhost IDENTIFIED BY 'other'", check=False).stderr.decode()
    expect("1235" in refused, f"GRANT changes no password: {refused}")
    for server in (ours, again, theirs):
        server.stop()


def questions(directory):
    """What `mysqldump` and `mysqladmin` of MySQL ask has an answer, without options."""
    server = OmnibusPeer(f"{directory}/q", 1)
    server.start()
    client(server, "CREATE DATABASE shop; CREATE TABLE shop.user (id INT PRIMARY KEY, name VARCHAR(20)); INSERT INTO shop.user VALUES (1, 'pen')")
    cursor = connect(server, autocommit=True).cursor()
    for line in (DUMPS / "mysql-9-questions.sql").read_text().splitlines():
        try:
            cursor.execute(line)
        except Exception as error:
            expect(False, f"{line}: {error}")
    for command in ("flush-hosts", "flush-all-status", "flush-all-statistics", "flush-table-statistics", "flush-status", "flush-logs", "refresh", "reload"):
        run = subprocess.run(["mariadb-admin", "--no-defaults", f"--socket={server.socket}", "-uroot", command], capture_output=True)
        expect(run.returncode == 0, run.stderr.decode())
    client(server, "CREATE USER weak@localhost")
    weak = connect(server, user="weak").cursor()
    expect(error_code(lambda: weak.execute("TRUNCATE performance_schema.host_cache")) == 1142, "anybody empties the cache of hosts")
    server.stop()


def settings(directory):
    """Every variable that dumps and printed logs set can be set, in the dialect that they are for."""
    for dialect in ("mysql", "mariadb"):
        server = OmnibusPeer(f"{directory}/{dialect}", 1, f"--dialect={dialect}")
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        for line in (DUMPS / f"{dialect}-settings.sql").read_text().splitlines():
            try:
                cursor.execute(line)
            except Exception as error:
                expect(False, f"{dialect}: {line}: {error}")
        if dialect == "mariadb":
            bounded_statements(server)
        server.stop()


def bounded_statements(server):
    """MariaDB's `max_statement_time` ends any statement, with its error."""
    client(server, "CREATE DATABASE b; CREATE TABLE b.t (id INT PRIMARY KEY, v INT); INSERT INTO b.t VALUES (1, 1)")
    holder, waiter = connect(server), connect(server, autocommit=True).cursor()
    holder.cursor().execute("UPDATE b.t SET v = 2")
    waiter.execute("SET max_statement_time = 0.2")
    for sql in ("UPDATE b.t SET v = 3", "SELECT * FROM b.t FOR UPDATE", "DO SLEEP(100)"):
        code = error_code(lambda: waiter.execute(sql))  # noqa: B023
        expect(code == 1969, f"{sql}: {code}")
    waiter.execute("SET max_statement_time = 0")
    holder.rollback()
    waiter.execute("UPDATE b.t SET v = 3")


if __name__ == "__main__":
    run_chosen("foreign_dumps", [mysql, mariadb, everything_of_mariadb, zones, accounts, questions, settings])
