#!/usr/bin/python3
"""Privileges on tables, columns and routines: who may do what, as a MariaDB with the same grants says, and how they are told, kept,
taken back and replayed.

Ring: gate.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, error_code, expect  # noqa: E402

SCHEMA = """
CREATE DATABASE app; CREATE DATABASE other;
CREATE TABLE app.t (id INT PRIMARY KEY, a INT, b INT, secret INT); CREATE TABLE app.u LIKE app.t; CREATE TABLE other.t LIKE app.t;
INSERT INTO app.t VALUES (1, 10, 100, 1000), (2, 20, 200, 2000); INSERT INTO app.u SELECT * FROM app.t; INSERT INTO other.t SELECT * FROM app.t;
CREATE VIEW app.v AS SELECT id, a AS x, secret AS hidden FROM app.t; CREATE SQL SECURITY INVOKER VIEW app.i AS SELECT id, a FROM app.t;
CREATE PROCEDURE app.p() SELECT 1; CREATE PROCEDURE app.q() SELECT 2; CREATE FUNCTION app.f() RETURNS INT NO SQL RETURN 3;
CREATE FUNCTION app.p() RETURNS INT NO SQL RETURN 4
"""

# What an account has, and what each of the statements below gives with it is what it gives on the other server.
HELD = [
    [],
    ["SELECT ON app.t"],
    ["SELECT (id, a) ON app.t"],
    ["SELECT (id, a), UPDATE (a) ON app.t"],
    ["SELECT (id, a), INSERT (id, a), UPDATE (a) ON app.t", "SELECT (b) ON app.u"],
    ["INSERT ON app.t"],
    ["INSERT (id, a, b, secret) ON app.t"],
    ["UPDATE (a) ON app.t"],
    ["DELETE ON app.t"],
    ["DELETE, SELECT (id) ON app.t"],
    ["INSERT, SELECT, DELETE ON app.t", "SELECT ON app.u"],
    ["SELECT (id, x), UPDATE (x) ON app.v"],
    ["SELECT ON app.v", "INSERT (id, x) ON app.v", "DELETE ON app.v"],
    ["SELECT ON app.i"],
    ["SELECT ON app.i", "SELECT (id, a) ON app.t"],
    ["SELECT ON app.i", "SELECT (id) ON app.t"],
    ["ALL ON app.t"],
    ["ALL ON app.u", "SELECT (a) ON app.t"],
    ["DROP, CREATE, ALTER ON app.t"],
    ["ALTER, CREATE, INSERT, DROP ON app.t", "CREATE, INSERT ON app.n"],
    ["INDEX ON app.t"],
    ["CREATE ON app.n"],
    ["CREATE, INSERT, SELECT ON app.n", "SELECT (id) ON app.t"],
    ["REFERENCES (id) ON app.t", "CREATE ON app.n"],
    ["CREATE VIEW, CREATE ON app.n", "SELECT (id) ON app.t"],
    ["SHOW VIEW, SELECT ON app.v"],
    ["TRIGGER ON app.t"],
    ["EXECUTE ON PROCEDURE app.p"],
    ["EXECUTE ON FUNCTION app.p"],
    ["EXECUTE ON FUNCTION app.f"],
    ["ALTER ROUTINE ON PROCEDURE app.q"],
    ["SELECT ON app.t", "UPDATE ON app.u"],
    ["SELECT ON app.*", "UPDATE (a) ON app.t"],
    ["SELECT ON *.*", "UPDATE (a, b) ON app.t"],
]

STATEMENTS = [
    "SELECT * FROM app.t ORDER BY id", "SELECT id, a FROM app.t ORDER BY id", "SELECT a FROM app.t WHERE secret = 1000", "SELECT COUNT(*) FROM app.t",
    "SELECT 1 FROM app.t", "SELECT app.t.* FROM app.t", "SELECT id FROM app.t ORDER BY secret", "SELECT id FROM app.t GROUP BY id HAVING MAX(secret) > 1 ORDER BY id",
    "SELECT x.id FROM app.t x JOIN app.t y USING (id) ORDER BY 1",
    "SELECT (SELECT MAX(secret) FROM app.t)", "SELECT * FROM (SELECT id FROM app.t) d ORDER BY 1",
    "WITH c AS (SELECT a FROM app.t) SELECT * FROM c ORDER BY 1", "SELECT b FROM app.u ORDER BY 1", "SELECT id FROM other.t", "SELECT id FROM app.absent",
    "SELECT u.b FROM app.u WHERE EXISTS (SELECT 1 FROM app.t WHERE t.id = 1) ORDER BY 1",
    "SELECT * FROM app.v ORDER BY id", "SELECT x FROM app.v ORDER BY 1", "SELECT hidden FROM app.v ORDER BY 1", "SELECT * FROM app.i ORDER BY 1", "SELECT id FROM app.i ORDER BY 1",
    "INSERT INTO app.t VALUES (3, 3, 3, 3)", "INSERT INTO app.t (id, a) VALUES (3, 3)", "INSERT INTO app.t (id, secret) VALUES (3, 3)", "INSERT INTO app.t SET id = 3, a = 3",
    "INSERT INTO app.t (id, a) SELECT id + 5, a FROM app.t", "INSERT INTO app.t (id) SELECT b FROM app.u", 
    "INSERT INTO app.t (id, a) VALUES (1, 3) ON DUPLICATE KEY UPDATE b = 5",
    "REPLACE INTO app.t (id, a) VALUES (1, 3)", "INSERT INTO app.v (id, x) VALUES (3, 3)", "INSERT INTO app.v (id, hidden) VALUES (3, 3)",
    "UPDATE app.t SET a = 5", "UPDATE app.t SET a = 5 WHERE id = 1", "UPDATE app.t SET a = a + 1", "UPDATE app.t SET a = secret", "UPDATE app.t SET b = 5", "UPDATE app.t SET a = 1, secret = 2",
    "UPDATE app.t SET a = 5 WHERE secret = 1", "UPDATE app.t SET a = 5 ORDER BY secret", "UPDATE app.v SET x = 5", "UPDATE app.v SET hidden = 5", "UPDATE app.v SET x = 5 WHERE id = 1",
    "DELETE FROM app.t", "DELETE FROM app.t WHERE id = 1", "DELETE FROM app.t WHERE secret = 1", "DELETE FROM app.v",
    "DELETE app.t FROM app.t JOIN app.u WHERE t.id = u.id", "UPDATE app.t JOIN app.u ON t.id = u.id SET t.a = 1", "UPDATE app.t JOIN app.u ON t.id = u.id SET u.a = t.a",
    "TRUNCATE app.t", "DROP TABLE app.t", "ALTER TABLE app.t ADD c INT", "ALTER TABLE app.t RENAME TO app.n", "RENAME TABLE app.t TO app.n", "CREATE INDEX x ON app.t (a)",
    "CREATE TABLE app.n (id INT)", "CREATE TABLE app.n AS SELECT id FROM app.t", "CREATE TABLE app.n LIKE app.t", "CREATE VIEW app.n AS SELECT id FROM app.t", "CREATE VIEW app.n AS SELECT secret FROM app.t",
    "CREATE TABLE app.n (id INT, FOREIGN KEY (id) REFERENCES app.t (id))", "CREATE TRIGGER app.g BEFORE INSERT ON app.t FOR EACH ROW SET @a = 1", "LOCK TABLES app.t READ",
    "CALL app.p()", "CALL app.q()", "SELECT app.f()", "SELECT app.p()", "DROP PROCEDURE app.q", "DROP PROCEDURE app.p", "ALTER PROCEDURE app.q COMMENT 'x'", "CREATE PROCEDURE app.n() SELECT 1",
    "SHOW CREATE TABLE app.t", "SHOW CREATE VIEW app.v", "SHOW TABLES FROM app", "SHOW DATABASES LIKE 'app'", "USE app", "SHOW INDEX FROM app.t",
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'app' ORDER BY 1",
    "SELECT table_name, privilege_type, is_grantable FROM information_schema.table_privileges WHERE table_schema = 'app' AND privilege_type <> 'DELETE HISTORY' ORDER BY 1, 2",
    "SELECT table_name, column_name, privilege_type FROM information_schema.column_privileges WHERE table_schema = 'app' ORDER BY 1, 2, 3",
    "SELECT table_name, column_name, privileges FROM information_schema.columns WHERE table_schema = 'app' ORDER BY 1, ordinal_position", "SHOW COLUMNS FROM app.t", "DESCRIBE app.t secret",
    "GRANT SELECT ON app.t TO other@localhost", "REVOKE SELECT ON app.t FROM other@localhost",
]


def setup(db, rights):
    with db.cursor() as cursor:
        for sql in ["UNLOCK TABLES", "DROP DATABASE IF EXISTS app", "DROP DATABASE IF EXISTS other", "DROP USER IF EXISTS worker@localhost, other@localhost",
                    *SCHEMA.strip().split(";"), "CREATE USER worker@localhost", "CREATE USER other@localhost",
                    *(f"GRANT {right} TO worker@localhost" for right in rights)]:
            cursor.execute(sql)


def outcome(connection, sql):
    """Rows, or the error; in a transaction that is taken back."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(sql)
            rows = cursor.fetchall()
            while cursor.nextset():
                pass
            cursor.execute("ROLLBACK")
            return rows if sql.startswith(("SELECT", "WITH", "CALL")) else len(rows) if sql.startswith(("SHOW COLUMNS", "DESCRIBE")) else "done"
    except Exception as error:
        connection.rollback()
        return error.args[0]


CHANGES = ("TRUNCATE", "DROP", "ALTER", "RENAME", "CREATE", "LOCK", "GRANT", "REVOKE")


def all_of(server, roots):
    """Outcome of each statement with each set of rights."""
    found = {}
    root = roots
    for rights in HELD:
        setup(root, rights)
        worker = connect(server, user="worker")
        for sql in STATEMENTS:
            result = outcome(worker, sql)
            found[tuple(rights), sql] = result
            if sql.startswith(CHANGES) and not isinstance(result, int):
                worker.close()
                setup(root, rights)
                worker = connect(server, user="worker")
        worker.close()
    return found


# Where MySQL asks for more than MariaDB does: what a statement asks for, and has here.
STRICTER = ("ALTER TABLE app.t ADD", "CREATE TABLE app.n LIKE", "CREATE TABLE app.n (id INT, FOREIGN")
DENIED = {1044, 1045, 1142, 1143, 1227, 1356, 1370, 1449}


def matrix(ours, theirs):
    one, other = (all_of(server, connect(server, autocommit=True)) for server in (ours, theirs))
    # Where both say no, the code is the same unless one of them says so at another of several objects.
    same = lambda a, b: a == b or (isinstance(a, int) and isinstance(b, int) and a in DENIED and b in DENIED)  # noqa: E731
    stricter = lambda key: key[1].startswith(STRICTER) and one[key] in DENIED  # noqa: E731
    wrong = {key: (one[key], other[key]) for key in one if not same(one[key], other[key]) and not stricter(key)}
    exact = sum(one[key] == other[key] for key in one)
    print(f"{len(one)} outcomes, {exact} alike to the code")
    for key, pair in list(wrong.items())[:60]:
        print(key, pair)
    expect(not wrong, f"{len(wrong)} of {len(one)} differ")


def in_order(line):
    """MariaDB lists columns in no order."""
    return re.sub(r"\((.*?)\)", lambda found: "(" + ", ".join(sorted(found[1].split(", "))) + ")", line.replace(", DELETE HISTORY", ""))


REVOKED = ["SELECT ON app.t", "SELECT (id) ON app.t", "UPDATE ON app.t", "EXECUTE ON PROCEDURE app.p", "ALL ON app.t", "GRANT OPTION ON app.t"]


def told(ours, theirs):
    """SHOW GRANTS, after grants and after each piece that is taken back, and what is wrong with a grant; a crash loses nothing."""
    def lines(server):
        found = []
        root = connect(server, autocommit=True)
        for rights in HELD + [["SELECT, INSERT (a) ON app.t", "ALL ON app.u", "EXECUTE, ALTER ROUTINE ON FUNCTION app.f"]]:
            setup(root, rights)
            with root.cursor() as cursor:
                for taken in [None, *REVOKED]:
                    code = taken and error_code(lambda: cursor.execute(f"REVOKE {taken} FROM worker@localhost"))  # noqa: B023
                    cursor.execute("SHOW GRANTS FOR worker@localhost")
                    found.append((rights, taken, code, sorted(in_order(row[0]) for row in cursor.fetchall())))
        wrong = ["GRANT SELECT ON app.absent TO worker@localhost", "GRANT SELECT (absent) ON app.t TO worker@localhost", "GRANT EXECUTE ON PROCEDURE app.absent TO worker@localhost",
                 "GRANT EXECUTE ON app.t TO worker@localhost", "GRANT SELECT ON PROCEDURE app.p TO worker@localhost", "GRANT SELECT (a) ON app.* TO worker@localhost",
                 "REVOKE SELECT ON app.u FROM worker@localhost", "REVOKE EXECUTE ON FUNCTION app.p FROM worker@localhost", "GRANT SELECT ON t TO worker@localhost"]
        setup(root, [])
        found.append([(sql, error_code(lambda: root.cursor().execute(sql))) for sql in wrong])  # noqa: B023
        with root.cursor() as cursor:
            for sql in ["GRANT SELECT (a), INSERT ON app.t TO worker@localhost WITH GRANT OPTION", "GRANT EXECUTE ON PROCEDURE app.p TO worker@localhost"]:
                cursor.execute(sql)
        worker = connect(server, user="worker", autocommit=True)
        given = ["GRANT INSERT ON app.t TO other@localhost", "GRANT SELECT (a) ON app.t TO other@localhost", "GRANT SELECT (b) ON app.t TO other@localhost",
                 "GRANT SELECT ON app.t TO other@localhost", "GRANT UPDATE ON app.t TO other@localhost", "GRANT EXECUTE ON PROCEDURE app.p TO other@localhost"]
        found.append([(sql, error_code(lambda: worker.cursor().execute(sql)) != 0) for sql in given])  # noqa: B023
        worker.close()
        return found

    for one, other in zip(lines(ours), lines(theirs)):
        expect(one == other, f"told:\n{one}\n{other}")
    grants = lambda: [client(ours, f"SHOW GRANTS FOR {user}@localhost") for user in ("worker", "other")]  # noqa: E731
    before = grants()
    ours.kill()
    ours.start()
    expect(grants() == before and "EXECUTE ON PROCEDURE" in before[0], f"after a crash: {grants()}")
    client(ours, "RENAME USER worker@localhost TO moved@localhost; DROP USER other@localhost; CREATE USER other@localhost")
    expect(client(ours, "SHOW GRANTS FOR moved@localhost") == before[0].replace("worker", "moved"), "renamed")
    expect(client(ours, "SHOW GRANTS FOR other@localhost").count("\n") == 1, "dropped, and made again")


def main():
    tests = [matrix, told]
    with Scratch("omnibus-grants-") as name:
        directory = pathlib.Path(name)
        ours = Omnibus(directory, "--dialect=mariadb")
        theirs = MariaDB(directory)
        ours.start()
        theirs.start()
        for test in tests:
            test(ours, theirs)
            print(f"grants: {test.__name__} ok", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
