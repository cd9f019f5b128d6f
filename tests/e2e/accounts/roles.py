#!/usr/bin/python3
"""Roles: what they give, in force or not, how they are given, taken and told, as a MariaDB says and as MySQL's manual says; through the log,
a crash, and a dump of all accounts that loads here and there.

Ring: gate.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402

# Who runs a statement; what it gives is what it gives on the other server. A number is an error.
STORY = """
root: CREATE DATABASE app; CREATE TABLE app.t (id INT PRIMARY KEY, a INT); INSERT INTO app.t VALUES (1, 10); CREATE PROCEDURE app.p() SELECT 5
root: CREATE USER ann@localhost; CREATE USER bob@localhost; CREATE ROLE reader; CREATE ROLE writer; CREATE ROLE IF NOT EXISTS writer; CREATE ROLE top
root: CREATE ROLE reader
root: GRANT SELECT ON app.* TO reader
root: GRANT INSERT (id), UPDATE ON app.t TO writer
root: GRANT EXECUTE ON PROCEDURE app.p TO top
root: GRANT reader TO ann@localhost
root: GRANT absent TO ann@localhost
root: GRANT reader TO top
root: GRANT top TO reader
root: GRANT top TO top
root: GRANT writer TO bob@localhost WITH ADMIN OPTION
ann: SELECT CURRENT_ROLE()
ann: SELECT * FROM app.t
ann: SET ROLE writer
ann: SET ROLE reader
ann: SELECT CURRENT_ROLE()
ann: SELECT * FROM app.t
ann: USE app
ann: INSERT INTO app.t VALUES (2, 2)
ann: SHOW GRANTS
ann: SET ROLE NONE
ann: SELECT * FROM app.t
ann: GRANT reader TO bob@localhost
bob: GRANT writer TO ann@localhost
bob: GRANT reader TO ann@localhost
ann: SET ROLE writer
ann: INSERT INTO app.t (id) VALUES (3)
ann: INSERT INTO app.t (id, a) VALUES (4, 4)
ann: UPDATE app.t SET a = 3
ann: SELECT a FROM app.t
root: REVOKE UPDATE ON app.t FROM writer
ann: UPDATE app.t SET a = 4
root: REVOKE writer FROM ann@localhost
root: REVOKE writer FROM ann@localhost
root: GRANT top TO ann@localhost
ann: SET ROLE top
ann: CALL app.p()
ann: SELECT id FROM app.t ORDER BY id
root: SHOW GRANTS FOR ann@localhost
root: SHOW GRANTS FOR bob@localhost
root: SHOW GRANTS FOR top
root: SHOW GRANTS FOR reader
ann: SET DEFAULT ROLE writer
ann: SET DEFAULT ROLE reader
ann: SET DEFAULT ROLE reader FOR bob@localhost
root: SET DEFAULT ROLE top FOR ann@localhost
root: SHOW GRANTS FOR ann@localhost
ann+: SELECT CURRENT_ROLE()
ann: CALL app.p()
ann: EXECUTE IMMEDIATE 'SET ROLE NONE'
ann: CALL app.p()
root: SET DEFAULT ROLE NONE FOR ann@localhost
ann+: SELECT CURRENT_ROLE()
root: REVOKE ADMIN OPTION FOR writer FROM bob@localhost
bob: GRANT writer TO ann@localhost
root: SHOW GRANTS FOR bob@localhost
bob: CREATE ROLE mine
bob: DROP ROLE reader
root: GRANT CREATE USER ON *.* TO bob@localhost
bob+: CREATE ROLE mine
bob: GRANT mine TO ann@localhost
root: SHOW GRANTS FOR bob@localhost
root: SELECT User, Role, Admin_option FROM mysql.roles_mapping WHERE User <> 'root' ORDER BY 1, 2
root: SELECT User, is_role FROM mysql.user WHERE User IN ('ann', 'bob', 'top', 'mine') ORDER BY 1
ann: SELECT * FROM mysql.roles_mapping
root: DROP ROLE top
root: DROP ROLE top
root: DROP ROLE IF EXISTS top
root: SHOW GRANTS FOR ann@localhost
ann+: SET ROLE top
root: DROP USER bob@localhost
root: DROP ROLE mine
root: SELECT User, Role FROM mysql.roles_mapping WHERE User <> 'root' ORDER BY 1, 2
"""


# Roles as definers of views, routines and triggers.
DEFINERS = """
root: CREATE DATABASE sec; CREATE TABLE sec.t (id INT PRIMARY KEY); INSERT INTO sec.t VALUES (7); CREATE ROLE keeper; GRANT SELECT ON sec.* TO keeper
root: CREATE DATABASE desk; CREATE TABLE desk.t (id INT PRIMARY KEY, v INT); CREATE USER eve@localhost; GRANT SELECT, INSERT, EXECUTE, CREATE VIEW, CREATE ROUTINE, TRIGGER ON desk.* TO eve@localhost
root: CREATE DEFINER = keeper VIEW desk.w AS SELECT * FROM sec.t
root: CREATE DEFINER = keeper PROCEDURE desk.p() SELECT id FROM sec.t
root: CREATE DEFINER = keeper PROCEDURE desk.i() SQL SECURITY INVOKER SELECT id FROM sec.t
root: CREATE DEFINER = keeper FUNCTION desk.f() RETURNS INT READS SQL DATA RETURN (SELECT MAX(id) FROM sec.t)
root: CREATE DEFINER = keeper TRIGGER desk.g BEFORE INSERT ON desk.t FOR EACH ROW SET NEW.v = (SELECT MAX(id) FROM sec.t)
eve: SELECT * FROM sec.t
eve: SELECT * FROM desk.w
eve: CALL desk.i()
eve: INSERT INTO desk.t (id) VALUES (1)
root: GRANT SELECT, INSERT, UPDATE, EXECUTE, TRIGGER ON desk.* TO keeper
eve: CALL desk.p()
eve: SELECT desk.f()
eve: INSERT INTO desk.t (id) VALUES (1)
eve: SELECT * FROM desk.t
eve: CREATE DEFINER = keeper VIEW desk.x AS SELECT 1
eve: CREATE DEFINER = keeper PROCEDURE desk.x() SELECT 1
eve: CREATE DEFINER = keeper TRIGGER desk.x BEFORE INSERT ON desk.t FOR EACH ROW SET @a = 1
eve: SET ROLE keeper
root: REVOKE SELECT ON sec.* FROM keeper
eve: SELECT * FROM desk.w
eve: CALL desk.p()
eve: SELECT desk.f()
eve: INSERT INTO desk.t (id) VALUES (2)
root: GRANT SELECT ON sec.* TO keeper
eve: CALL desk.p()
eve: SELECT desk.f()
root: DROP ROLE keeper
eve: SELECT * FROM desk.w
eve: CALL desk.p()
eve: CALL desk.i()
eve: SELECT desk.f()
eve: INSERT INTO desk.t (id) VALUES (3)
eve: SELECT * FROM desk.t
"""

# CURRENT_ROLE in the place of an account or a role.
CURRENT = """
root: CREATE DATABASE own; CREATE TABLE own.t (id INT PRIMARY KEY); INSERT INTO own.t VALUES (7); CREATE ROLE maker; CREATE ROLE helper; CREATE USER may@localhost; CREATE USER joe@localhost
root: GRANT SELECT, CREATE VIEW, CREATE ROUTINE, EXECUTE, EVENT ON own.* TO maker; GRANT maker TO may@localhost; GRANT SELECT, EXECUTE ON own.* TO joe@localhost
root: CREATE DEFINER = CURRENT_ROLE VIEW own.v AS SELECT 1
root: CREATE DEFINER = CURRENT_ROLE() PROCEDURE own.p() SELECT 1
root: CREATE DEFINER = CURRENT_ROLE FUNCTION own.f() RETURNS INT NO SQL RETURN 1
root: CREATE DEFINER = CURRENT_ROLE TRIGGER own.g BEFORE INSERT ON own.t FOR EACH ROW SET @a = 1
root: CREATE DEFINER = CURRENT_ROLE EVENT own.e ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1
root: GRANT SELECT ON own.* TO CURRENT_ROLE
root: GRANT helper TO CURRENT_ROLE
root: GRANT CURRENT_ROLE TO joe@localhost
root: REVOKE SELECT ON own.* FROM CURRENT_ROLE
root: REVOKE helper FROM CURRENT_ROLE()
root: SHOW GRANTS FOR CURRENT_ROLE
root: CREATE ROLE extra WITH ADMIN CURRENT_ROLE
root: DROP ROLE CURRENT_ROLE
root: DROP USER CURRENT_ROLE
root: SET DEFAULT ROLE maker FOR CURRENT_ROLE
root: SET PASSWORD FOR CURRENT_ROLE = PASSWORD('x')
root: RENAME USER CURRENT_ROLE TO x
root: SHOW CREATE USER CURRENT_ROLE
root: SET ROLE CURRENT_ROLE
root: GRANT PROXY ON CURRENT_ROLE TO joe@localhost
root: SELECT CURRENT_ROLE, CURRENT_ROLE()
may: SET ROLE maker
may: SELECT CURRENT_ROLE, current_role ( ) IS NULL
may: SHOW GRANTS FOR CURRENT_ROLE
may: SHOW GRANTS FOR CURRENT_ROLE()
may: CREATE DEFINER = CURRENT_ROLE VIEW own.v AS SELECT CURRENT_USER(), CURRENT_ROLE(), USER(), id FROM own.t
may: CREATE DEFINER = CURRENT_ROLE() PROCEDURE own.p() SELECT CURRENT_USER(), CURRENT_ROLE(), USER(), id FROM own.t
may: CREATE DEFINER = CURRENT_ROLE FUNCTION own.f() RETURNS INT READS SQL DATA RETURN (SELECT MAX(id) FROM own.t)
may: CREATE DEFINER = CURRENT_ROLE EVENT own.e ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1
may: CREATE DEFINER = maker VIEW own.w AS SELECT 1
may: CREATE DEFINER = helper VIEW own.x AS SELECT 1
root: CREATE VIEW own.y AS SELECT CURRENT_USER(), CURRENT_ROLE()
may: SELECT * FROM own.y
root: CREATE DEFINER = CURRENT_ROLE TRIGGER own.g BEFORE INSERT ON own.t FOR EACH ROW SET @a = 1
root: REVOKE maker FROM may@localhost; REVOKE SELECT ON own.* FROM joe@localhost; GRANT SELECT ON own.v TO joe@localhost
joe: SELECT * FROM own.v
joe: CALL own.p()
joe: SELECT own.f()
root: SELECT TABLE_NAME, DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'own' ORDER BY 1
root: SELECT ROUTINE_NAME, DEFINER FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 'own' ORDER BY 1
root: SELECT EVENT_NAME, DEFINER FROM information_schema.EVENTS WHERE EVENT_SCHEMA = 'own'
root: SET ROLE maker
root: GRANT UPDATE ON own.t TO CURRENT_ROLE
root: GRANT helper TO CURRENT_ROLE()
root: SHOW GRANTS FOR CURRENT_ROLE
root: REVOKE UPDATE ON own.t FROM CURRENT_ROLE
root: REVOKE helper FROM CURRENT_ROLE
root: GRANT CURRENT_ROLE TO joe@localhost
root: GRANT maker TO CURRENT_ROLE
root: CREATE ROLE extra WITH ADMIN CURRENT_ROLE
root: SHOW GRANTS FOR maker
root: SHOW GRANTS FOR joe@localhost
root: DROP ROLE extra
root: REVOKE ALL PRIVILEGES, GRANT OPTION FROM CURRENT_ROLE
root: SHOW GRANTS FOR maker
joe: SELECT * FROM own.v
root: DROP ROLE CURRENT_ROLE
joe: CALL own.p()
"""


class Tellers:
    """The connections of a story's people."""

    def __init__(self, server):
        self.server, self.open = server, {}

    def outcome(self, who, sql):
        if who.endswith("+") and who[:-1] in self.open:
            self.open.pop(who[:-1]).close()
        who = who.rstrip("+")
        if who not in self.open:
            self.open[who] = connect(self.server, user=who, autocommit=True)
        try:
            rows = ()
            for part in sql.split("; "):
                with self.open[who].cursor() as cursor:
                    cursor.execute(part)
                    rows = cursor.fetchall()
                    while cursor.nextset():
                        pass
            return sorted(row[0].replace(" WITH GRANT OPTION", "") for row in rows) if sql.startswith("SHOW GRANTS") else rows
        except Exception as error:
            return error.args[0]

    def close(self):
        for connection in self.open.values():
            connection.close()


DENIED = {1044, 1045, 1142, 1143, 1227, 1370}


def story(ours, theirs):
    """Each line of the story, here and there."""
    told(ours, theirs, STORY)


def definers(ours, theirs):
    """What a role made is what the role may do, while there is one, whoever uses it."""
    told(ours, theirs, DEFINERS)


def current(ours, theirs):
    """CURRENT_ROLE is the role in force, where an account or a role is named; without one it is refused."""
    told(ours, theirs, CURRENT)
    shown = client(ours, "SHOW CREATE VIEW own.v; SHOW CREATE EVENT own.e; SHOW CREATE FUNCTION own.f")
    expect(shown.count("DEFINER=`maker` ") == 3, shown)
    ours.kill()
    ours.start()
    expect(client(ours, "SHOW CREATE VIEW own.v; SHOW CREATE EVENT own.e; SHOW CREATE FUNCTION own.f") == shown, "after a crash")


def told(ours, theirs, lines):
    one, other = Tellers(ours), Tellers(theirs)
    wrong = []
    for line in lines.strip().split("\n"):
        who, sql = line.split(": ", 1)
        a, b = one.outcome(who, sql), other.outcome(who, sql)
        if a != b and not (a in list(DENIED) and b in list(DENIED)):
            wrong.append(f"{line}\n    ours {a}\n    theirs {b}")
    one.close()
    other.close()
    expect(not wrong, "\n".join(wrong))


MYSQL = [
    ("root", "CREATE DATABASE app; CREATE TABLE app.t (id INT PRIMARY KEY); CREATE USER ann@localhost; CREATE ROLE r, s, 'q'@'h'", ()),
    ("root", "GRANT SELECT ON app.* TO r; GRANT INSERT ON app.t TO s; GRANT r, s TO ann@localhost; GRANT ROLE_ADMIN ON *.* TO 'q'@'h'", ()),
    # Only MariaDB knows it: a name without parentheses is an account's.
    ("root", "GRANT SELECT ON app.* TO CURRENT_ROLE()", 1064),
    ("root", "CREATE DEFINER = CURRENT_ROLE() VIEW app.v AS SELECT 1", 1064),
    ("root", "SHOW GRANTS FOR CURRENT_ROLE()", 1064),
    ("root", "SHOW GRANTS FOR CURRENT_ROLE", 1141),
    ("root", "SELECT CURRENT_ROLE", 1054),
    ("root", "GRANT r TO r", 4027),
    ("root", "GRANT r TO s; GRANT s TO r", 4027),
    ("root", "REVOKE r FROM s; GRANT absent TO ann@localhost", 3523),
    ("root", "GRANT r TO absent", 3523),
    ("ann", "SELECT CURRENT_ROLE()", (("NONE",),)),
    ("ann", "SET ROLE 'q'@'h'", 3530),
    ("ann", "SET ROLE ALL EXCEPT s; SELECT CURRENT_ROLE()", (("`r`@`%`",),)),
    ("ann", "SET ROLE ALL; SELECT COUNT(*) FROM app.t", ((0,),)),
    ("ann", "INSERT INTO app.t VALUES (1)", ()),
    ("ann", "SELECT ROLE_NAME, IS_DEFAULT, IS_MANDATORY FROM information_schema.ENABLED_ROLES ORDER BY 1", (("r", "NO", "NO"), ("s", "NO", "NO"))),
    ("ann", "SELECT TABLE_NAME, PRIVILEGE_TYPE FROM information_schema.ROLE_TABLE_GRANTS", (("t", "Insert"),)),
    ("ann", "SHOW GRANTS", ["GRANT INSERT ON `app`.`t` TO `ann`@`localhost`", "GRANT SELECT ON `app`.* TO `ann`@`localhost`", "GRANT USAGE ON *.* TO `ann`@`localhost`",
                            "GRANT `r`@`%`,`s`@`%` TO `ann`@`localhost`"]),
    ("root", "SHOW GRANTS FOR ann@localhost", ["GRANT USAGE ON *.* TO `ann`@`localhost`", "GRANT `r`@`%`,`s`@`%` TO `ann`@`localhost`"]),
    ("root", "SHOW GRANTS FOR ann@localhost USING r", ["GRANT SELECT ON `app`.* TO `ann`@`localhost`", "GRANT USAGE ON *.* TO `ann`@`localhost`",
                                                       "GRANT `r`@`%`,`s`@`%` TO `ann`@`localhost`"]),
    ("root", "SHOW GRANTS FOR ann@localhost USING 'q'@'h'", 3530),
    ("root", "SET DEFAULT ROLE r TO ann@localhost", ()),
    ("ann+", "SELECT CURRENT_ROLE()", (("`r`@`%`",),)),
    ("ann", "SET ROLE NONE; SET ROLE DEFAULT; SELECT COUNT(*) FROM app.t", ((1,),)),
    ("root", "ALTER USER ann@localhost DEFAULT ROLE ALL; SELECT DEFAULT_ROLE_USER FROM mysql.default_roles ORDER BY 1", (("r",), ("s",))),
    ("root", "ALTER USER ann@localhost DEFAULT ROLE NONE; SET GLOBAL activate_all_roles_on_login = ON", ()),
    ("ann+", "SELECT CURRENT_ROLE()", (("`r`@`%`,`s`@`%`",),)),
    ("root", "SET GLOBAL activate_all_roles_on_login = OFF; SET GLOBAL mandatory_roles = 'q@h'", ()),
    ("ann+", "SET ROLE q@h; SELECT CURRENT_ROLE()", (("`q`@`h`",),)),
    ("ann", "SELECT IS_MANDATORY FROM information_schema.APPLICABLE_ROLES WHERE ROLE_NAME = 'q'", (("YES",),)),
    ("ann", "CREATE TABLE app.x (a INT)", 1142),
    ("root", "DROP ROLE q@h", 3628),
    ("root", "SET GLOBAL mandatory_roles = ''", ()),
    ("root", "CREATE USER cat@localhost DEFAULT ROLE r; SHOW CREATE USER cat@localhost", None),
    ("cat", "SELECT CURRENT_ROLE()", (("`r`@`%`",),)),
    ("cat", "SELECT COUNT(*) FROM app.t", ((1,),)),
    ("cat", "GRANT r TO ann@localhost", 1227),
    ("root", "GRANT r TO cat@localhost WITH ADMIN OPTION; SELECT TO_USER, WITH_ADMIN_OPTION FROM mysql.role_edges WHERE FROM_USER = 'r' ORDER BY 1", (("ann", "N"), ("cat", "Y"))),
    ("cat", "GRANT r TO ann@localhost", ()),
    ("cat", "SELECT ROLE_NAME FROM information_schema.ADMINISTRABLE_ROLE_AUTHORIZATIONS", (("r",),)),
    ("root", "RENAME USER r TO reader; SHOW GRANTS FOR cat@localhost", ["GRANT USAGE ON *.* TO `cat`@`localhost`", "GRANT `reader`@`%` TO `cat`@`localhost` WITH ADMIN OPTION"]),
    ("root", "DROP ROLE reader; SHOW GRANTS FOR cat@localhost", ["GRANT USAGE ON *.* TO `cat`@`localhost`"]),
    ("root", "SELECT User, account_locked, password_expired FROM mysql.user WHERE User = 's'", (("s", "Y", "Y"),)),
]


def as_mysql(directory):
    """What MySQL has and MariaDB has not: several roles at once, mandatory ones, SHOW GRANTS USING; a crash loses nothing."""
    server = Omnibus(directory)
    server.start()
    tellers = Tellers(server)
    for who, sql, expected in MYSQL:
        *before, last = sql.split("; ")
        for part in before:
            done = tellers.outcome(who, part)
            expect(not isinstance(done, int), f"{who}: {part}: {done}")
            who = who.rstrip("+")
        found = tellers.outcome(who, last)
        expect(expected is None or found == expected, f"{who}: {last}: {found}, not {expected}")
    expect(tellers.outcome("root", "SET ROLE s") == 3530, "root has it not")
    tellers.close()
    shown = client(server, "SHOW GRANTS FOR ann@localhost; SHOW GRANTS FOR s; SELECT * FROM mysql.role_edges")
    server.kill()
    server.start()
    expect(client(server, "SHOW GRANTS FOR ann@localhost; SHOW GRANTS FOR s; SELECT * FROM mysql.role_edges") == shown, "after a crash")
    code = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-us", "-e", "SELECT 1"], capture_output=True)
    expect(b"locked" in code.stderr, f"a role logged in: {code}")
    server.stop()


SHOWN = "SHOW GRANTS FOR ann@localhost; SHOW GRANTS FOR bob@localhost; SHOW GRANTS FOR reader; SHOW GRANTS FOR top"


def made(server):
    """Accounts with roles and rights of every level."""
    client(server, "CREATE DATABASE app; CREATE TABLE app.t (id INT PRIMARY KEY, a INT); CREATE PROCEDURE app.p() SELECT 5; "
           "CREATE USER ann@localhost IDENTIFIED WITH mysql_native_password; CREATE USER bob@localhost IDENTIFIED WITH mysql_native_password; "
           "CREATE ROLE reader; CREATE ROLE top; GRANT SELECT ON app.* TO reader; "
           "GRANT UPDATE (a), DELETE ON app.t TO reader; GRANT EXECUTE ON PROCEDURE app.p TO top; GRANT reader TO top; GRANT top TO ann@localhost; "
           "GRANT reader TO bob@localhost WITH ADMIN OPTION; SET DEFAULT ROLE top FOR ann@localhost; GRANT INSERT (id) ON app.t TO bob@localhost")


def dumped(ours, theirs, directory):
    """`mariadb-dump --system=users`: from here to a MariaDB and back, and from there to here."""
    def reset(server):
        client(server, "DROP DATABASE IF EXISTS app; DROP USER IF EXISTS ann@localhost, bob@localhost; DROP ROLE IF EXISTS reader, writer, top, mine")

    reset(ours)
    made(ours)
    told = client(ours, SHOWN)
    for source, target in [(ours, theirs), (theirs, ours), (ours, ours)]:
        text = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={source.socket}", "-uroot", "--system=users", "--insert-ignore"], capture_output=True)
        expect(text.returncode == 0, f"{text.stderr.decode()}")
        reset(target)
        file = directory / "dump.sql"
        client(target, "CREATE DATABASE app; CREATE TABLE app.t (id INT PRIMARY KEY, a INT); CREATE PROCEDURE app.p() SELECT 5")
        file.write_bytes(text.stdout)
        with file.open("rb") as stdin:
            loaded = client(target, None, "--force", check=False, stdin=stdin)
        found = client(target, SHOWN)
        expect(sorted(found.splitlines()) == sorted(told.splitlines()), f"{source} to {target}:\n{found}\n{told}\n{loaded.stderr.decode()}")


def replicated(directory):
    """A MariaDB, and another Omnibus, have the same accounts and roles."""
    source = OmnibusPeer(directory / "source", 1, "--dialect=mariadb")
    replicas = [OmnibusPeer(directory / "second", 2, "--dialect=mariadb"), MariaPeer(directory / "third", 3)]
    source.start()
    create_user(source)
    for replica in replicas:
        replica.start()
        replicate(replica, source)
    made(source)
    client(source, "REVOKE DELETE ON app.t FROM reader")
    client(source, "GRANT reader TO root@localhost; SET ROLE reader; GRANT CREATE VIEW ON app.* TO CURRENT_ROLE; REVOKE UPDATE (a) ON app.t FROM CURRENT_ROLE(); "
           "CREATE DEFINER = CURRENT_ROLE VIEW app.v AS SELECT id FROM app.t")
    shown = f"{SHOWN}; SELECT DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = 'app'"
    told = sorted(client(source, shown).splitlines())
    expect("reader@" in told and any("CREATE VIEW" in line for line in told), told)
    for replica in replicas:
        wait_caught_up(replica, source)
        found = sorted(client(replica, shown).splitlines())
        expect(found == told, f"{replica}:\n" + "\n".join(found) + "\n" + "\n".join(told))


def main():
    with Scratch("omnibus-roles-") as name:
        directory = pathlib.Path(name)
        (directory / "mysql").mkdir()
        ours, theirs = Omnibus(directory, "--dialect=mariadb"), MariaDB(directory)
        ours.start()
        theirs.start()
        tests = {"story": lambda: story(ours, theirs), "definers": lambda: definers(ours, theirs), "current": lambda: current(ours, theirs),
                 "dumped": lambda: dumped(ours, theirs, directory), "as_mysql": lambda: as_mysql(directory / "mysql"),
                 "replicated": lambda: replicated(directory)}
        for test, run in tests.items():
            if sys.argv[1:] and test not in sys.argv[1:]:
                continue
            run()
            print(f"roles: {test} ok", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
