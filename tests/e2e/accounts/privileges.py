#!/usr/bin/python3
"""Who may do what: every kind of statement without a right, with all rights on another database, with exactly the rights
that it needs, and with each of these left out; however the statement comes (ACCESS-1). The same with rights on tables, views and routines.

Ring: gate.
"""

import pathlib
import re
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from pymysql.constants import CLIENT, COMMAND  # noqa: E402

from omnibus import MariaDB, Omnibus, Scratch, client, connect, error_code, expect  # noqa: E402

DENIED = {1044, 1045, 1095, 1142, 1143, 1227, 1370, 1401, 1410}
# The statement, and what it needs: a right on a database, or a global one (upper case, no place). `{files}` is a directory.
STATEMENTS = [
    ("SELECT * FROM app.t", ["SELECT ON app.*"]),
    ("SELECT * FROM app.t FOR SHARE", ["SELECT ON app.*"]),
    ("SELECT * FROM app.t FOR UPDATE", ["SELECT ON app.*", "UPDATE ON app.*"]),
    ("SELECT * FROM app.t FOR UPDATE", ["SELECT ON app.*", "LOCK TABLES ON app.*"]),
    ("SELECT 1 INTO OUTFILE '{files}/out'", ["FILE ON *.*"]),
    ("LOAD DATA INFILE '{files}/in' INTO TABLE app.t", ["FILE ON *.*", "INSERT ON app.*"]),
    ("INSERT INTO app.t VALUES (7, 7)", ["INSERT ON app.*"]),
    ("REPLACE INTO app.t VALUES (7, 7)", ["INSERT ON app.*", "DELETE ON app.*"]),
    ("INSERT INTO app.t SELECT id + 10, v FROM app.u", ["INSERT ON app.*", "SELECT ON app.*"]),
    ("REPLACE INTO app.t SELECT id + 10, v FROM app.u", ["INSERT ON app.*", "DELETE ON app.*", "SELECT ON app.*"]),
    ("INSERT INTO app.t VALUES (1, 1) ON DUPLICATE KEY UPDATE v = 3", ["INSERT ON app.*", "UPDATE ON app.*"]),
    ("UPDATE app.t SET v = 2", ["UPDATE ON app.*"]),
    ("UPDATE app.t SET v = v + 1", ["UPDATE ON app.*", "SELECT ON app.*"]),
    ("DELETE FROM app.t", ["DELETE ON app.*"]),
    ("DELETE FROM app.t WHERE id = 1", ["DELETE ON app.*", "SELECT ON app.*"]),
    ("UPDATE app.t JOIN app.u USING (id) SET t.v = u.v", ["UPDATE ON app.*", "SELECT ON app.*"]),
    ("DELETE app.t FROM app.t JOIN app.u USING (id)", ["DELETE ON app.*", "SELECT ON app.*"]),
    ("DO (SELECT MAX(id) FROM app.t)", ["SELECT ON app.*"]),
    ("CREATE DATABASE app2", ["CREATE ON app2.*"]),
    ("ALTER DATABASE app CHARACTER SET utf8mb4", ["ALTER ON app.*"]),
    ("DROP DATABASE app", ["DROP ON app.*"]),
    ("CREATE TABLE app.n (a INT)", ["CREATE ON app.*"]),
    ("CREATE TABLE app.n LIKE app.t", ["CREATE ON app.*", "SELECT ON app.*"]),
    ("CREATE TABLE app.n SELECT * FROM app.t", ["CREATE ON app.*", "INSERT ON app.*", "SELECT ON app.*"]),
    ("CREATE OR REPLACE TABLE app.t (a INT)", ["CREATE ON app.*", "DROP ON app.*"]),
    ("CREATE TEMPORARY TABLE app.n (a INT)", ["CREATE TEMPORARY TABLES ON app.*"]),
    ("ALTER TABLE app.t ADD w INT", ["ALTER ON app.*", "CREATE ON app.*", "INSERT ON app.*"]),
    ("ALTER TABLE app.t RENAME app.n", ["ALTER ON app.*", "CREATE ON app.*", "INSERT ON app.*", "DROP ON app.*"]),
    ("DROP TABLE app.t", ["DROP ON app.*"]),
    ("CREATE INDEX i ON app.t (v)", ["INDEX ON app.*"]),
    ("DROP INDEX v ON app.t", ["INDEX ON app.*"]),
    ("TRUNCATE TABLE app.t", ["DROP ON app.*"]),
    ("RENAME TABLE app.t TO app.n", ["ALTER ON app.*", "DROP ON app.*", "CREATE ON app.*", "INSERT ON app.*"]),
    ("SELECT * FROM app.w", ["SELECT ON app.*"]),
    ("SELECT * FROM app.s", ["SELECT ON app.*"]),
    ("CREATE VIEW app.n AS SELECT 1", ["CREATE VIEW ON app.*"]),
    ("CREATE VIEW app.n AS SELECT * FROM app.t", ["CREATE VIEW ON app.*", "SELECT ON app.*"]),
    ("CREATE OR REPLACE VIEW app.w AS SELECT 1", ["CREATE VIEW ON app.*", "DROP ON app.*"]),
    ("ALTER DEFINER = CURRENT_USER VIEW app.w AS SELECT 1", ["CREATE VIEW ON app.*", "DROP ON app.*"]),
    ("CREATE DEFINER = other@localhost VIEW app.n AS SELECT 1", ["CREATE VIEW ON app.*", "SET_ANY_DEFINER ON *.*"]),
    ("CREATE DEFINER = nobody@localhost VIEW app.n AS SELECT 1", ["CREATE VIEW ON app.*", "ALLOW_NONEXISTENT_DEFINER ON *.*"]),
    ("CREATE DEFINER = root@localhost VIEW app.n AS SELECT 1", ["CREATE VIEW ON app.*", "SET_ANY_DEFINER ON *.*", "SYSTEM_USER ON *.*"]),
    ("DROP VIEW app.w", ["DROP ON app.*"]),
    ("RENAME TABLE app.w TO app.n", ["ALTER ON app.*", "DROP ON app.*", "CREATE ON app.*", "INSERT ON app.*"]),
    ("SHOW CREATE VIEW app.w", ["SELECT ON app.*", "SHOW VIEW ON app.*"]),
    ("SHOW CREATE TABLE app.w", ["SELECT ON app.*", "SHOW VIEW ON app.*"]),
    ("LOCK TABLES app.w READ", ["LOCK TABLES ON app.*", "SELECT ON app.*"]),
    ("LOCK TABLES app.t READ", ["LOCK TABLES ON app.*", "SELECT ON app.*"]),
    ("ANALYZE TABLE app.t", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("OPTIMIZE TABLE app.t", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("REPAIR TABLE app.t", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("CHECK TABLE app.t", ["SELECT ON app.*"]),
    ("HANDLER app.t OPEN", ["SELECT ON app.*"]),
    ("CHECKSUM TABLE app.t", ["SELECT ON app.*"]),
    ("CREATE PROCEDURE app.made() DO 1", ["CREATE ROUTINE ON app.*"]),
    ("CREATE FUNCTION app.made() RETURNS INT NO SQL RETURN 1", ["CREATE ROUTINE ON app.*"]),
    ("ALTER PROCEDURE app.p COMMENT 'x'", ["ALTER ROUTINE ON app.*"]),
    ("ALTER FUNCTION app.f COMMENT 'x'", ["ALTER ROUTINE ON app.*"]),
    ("DROP PROCEDURE app.p", ["ALTER ROUTINE ON app.*"]),
    ("DROP FUNCTION app.f", ["ALTER ROUTINE ON app.*"]),
    ("CREATE TRIGGER app.g BEFORE INSERT ON app.t FOR EACH ROW SET @a = 1", ["TRIGGER ON app.*"]),
    ("DROP TRIGGER app.h", ["TRIGGER ON app.*"]),
    ("CREATE EVENT app.made ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1", ["EVENT ON app.*"]),
    ("ALTER EVENT app.e COMMENT 'x'", ["EVENT ON app.*"]),
    ("SHOW CREATE EVENT app.e", ["EVENT ON app.*"]),
    ("DROP EVENT app.e", ["EVENT ON app.*"]),
    ("CALL app.p()", ["EXECUTE ON app.*"]),
    ("SELECT app.f()", ["EXECUTE ON app.*"]),
    ("USE app", ["INSERT ON app.*"]),
    ("DESCRIBE app.t", ["INSERT ON app.*"]),
    ("EXPLAIN SELECT * FROM app.t", ["SELECT ON app.*"]),
    ("SHOW TABLES FROM app", ["INSERT ON app.*"]),
    ("SHOW INDEX FROM app.t", ["INSERT ON app.*"]),
    ("SHOW CREATE TABLE app.t", ["INSERT ON app.*"]),
    ("SHOW CREATE DATABASE app", ["INSERT ON app.*"]),
    ("SHOW TABLE STATUS FROM app", ["INSERT ON app.*"]),
    ("SHOW TRIGGERS FROM app", ["TRIGGER ON app.*"]),
    ("SHOW EVENTS FROM app", ["EVENT ON app.*"]),
    ("SHOW BINARY LOGS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW BINARY LOG STATUS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW REPLICA STATUS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW BINLOG EVENTS", ["REPLICATION SLAVE ON *.*"]),
    ("SHOW RELAYLOG EVENTS", ["REPLICATION SLAVE ON *.*"]),
    ("SHOW REPLICAS", ["REPLICATION SLAVE ON *.*"]),
    ("SHOW ENGINE innodb STATUS", ["PROCESS ON *.*"]),
    ("SHOW GRANTS FOR root@localhost", ["SELECT ON mysql.*"]),
    ("SHOW CREATE USER root@localhost", ["SELECT ON mysql.*"]),
    ("SHOW FULL COLUMNS FROM app.t", ["INSERT ON app.*"]),
    ("SHOW EXTENDED KEYS FROM app.t", ["INSERT ON app.*"]),
    ("SHOW FULL TABLES FROM app", ["INSERT ON app.*"]),
    ("DESCRIBE app.t v", ["INSERT ON app.*"]),
    ("SHOW ENGINE innodb MUTEX", ["PROCESS ON *.*"]),
    ("SHOW ENGINE performance_schema STATUS", ["PROCESS ON *.*"]),
    ("SHOW INDEX_STATISTICS", ["PROCESS ON *.*"]),
    ("SHOW USER_STATISTICS", ["PROCESS ON *.*"]),
    ("SHOW MASTER STATUS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW MASTER LOGS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW SLAVE STATUS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW ALL SLAVES STATUS", ["REPLICATION CLIENT ON *.*"]),
    ("SHOW SLAVE HOSTS", ["REPLICATION SLAVE ON *.*"]),
    ("SHOW BINLOG EVENTS IN 'binlog.000001'", ["REPLICATION SLAVE ON *.*"]),
    ("SELECT * FROM information_schema.INNODB_TRX", ["PROCESS ON *.*"]),
    ("SELECT * FROM information_schema.OMNIBUS_OLD_VERSIONS", ["PROCESS ON *.*"]),
    ("SELECT 1 FROM information_schema.innodb_metrics LIMIT 1", ["PROCESS ON *.*"]),
    ("SELECT * FROM information_schema.INNODB_TABLES", ["PROCESS ON *.*"]),
    ("SELECT * FROM performance_schema.data_locks", ["SELECT ON performance_schema.*"]),
    ("SELECT * FROM performance_schema.events_statements_summary_by_digest", ["SELECT ON performance_schema.*"]),
    ("UPDATE performance_schema.setup_consumers SET ENABLED = 'YES'", ["UPDATE ON performance_schema.*"]),
    ("UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'wait/%'", ["UPDATE ON performance_schema.*", "SELECT ON performance_schema.*"]),
    ("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest", ["DROP ON performance_schema.*"]),
    ("EXPLAIN UPDATE app.t SET v = 2", ["UPDATE ON app.*"]),
    ("EXPLAIN DELETE FROM app.t", ["DELETE ON app.*"]),
    ("EXPLAIN INSERT INTO app.t VALUES (7, 7)", ["INSERT ON app.*"]),
    ("EXPLAIN ANALYZE SELECT * FROM app.t", ["SELECT ON app.*"]),
    ("TABLE app.t", ["SELECT ON app.*"]),
    ("WITH c AS (SELECT * FROM app.t) SELECT * FROM c", ["SELECT ON app.*"]),
    ("SET @a = (SELECT MAX(id) FROM app.t)", ["SELECT ON app.*"]),
    ("CHECK TABLE app.t EXTENDED", ["SELECT ON app.*"]),
    ("CHECK TABLE app.t FOR UPGRADE", ["SELECT ON app.*"]),
    ("CHECKSUM TABLE app.t EXTENDED", ["SELECT ON app.*"]),
    ("OPTIMIZE LOCAL TABLE app.t", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("REPAIR TABLE app.t QUICK EXTENDED", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("ANALYZE TABLE app.t UPDATE HISTOGRAM ON v", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("ANALYZE TABLE app.t DROP HISTOGRAM ON v", ["SELECT ON app.*", "INSERT ON app.*"]),
    ("FLUSH TABLES", ["FLUSH_TABLES ON *.*"]),
    ("FLUSH TABLES app.t", ["FLUSH_TABLES ON *.*"]),
    ("FLUSH TABLES app.t FOR EXPORT", ["FLUSH_TABLES ON *.*", "LOCK TABLES ON app.*", "SELECT ON app.*"]),
    ("FLUSH BINARY LOGS", ["RELOAD ON *.*"]),
    ("FLUSH ENGINE LOGS", ["RELOAD ON *.*"]),
    ("FLUSH ERROR LOGS", ["RELOAD ON *.*"]),
    ("FLUSH GENERAL LOGS", ["RELOAD ON *.*"]),
    ("FLUSH SLOW LOGS", ["RELOAD ON *.*"]),
    ("FLUSH RELAY LOGS", ["RELOAD ON *.*"]),
    ("FLUSH HOSTS", ["RELOAD ON *.*"]),
    ("FLUSH USER_RESOURCES", ["FLUSH_USER_RESOURCES ON *.*"]),
    ("FLUSH OPTIMIZER_COSTS", ["FLUSH_OPTIMIZER_COSTS ON *.*"]),
    ("FLUSH STATUS, TABLE_STATISTICS, INDEX_STATISTICS, USER_STATISTICS, CLIENT_STATISTICS", ["RELOAD ON *.*"]),
    ("RESET QUERY CACHE", ["RELOAD ON *.*"]),
    ("RESET PERSIST", ["SYSTEM_VARIABLES_ADMIN ON *.*"]),
    ("SET PERSIST long_query_time = 10", ["SYSTEM_VARIABLES_ADMIN ON *.*"]),
    ("ALTER INSTANCE ROTATE BINLOG MASTER KEY", ["BINLOG_ENCRYPTION_ADMIN ON *.*"]),
    ("ALTER INSTANCE ROTATE INNODB MASTER KEY", ["ENCRYPTION_KEY_ADMIN ON *.*"]),
    ("PURGE BINARY LOGS BEFORE '2000-01-01'", ["BINLOG_ADMIN ON *.*"]),
    ("KILL QUERY {other}", ["CONNECTION_ADMIN ON *.*"]),
    ("GRANT SELECT (id) ON app.t TO other@localhost", ["SELECT ON app.*", "GRANT OPTION ON app.*"]),
    ("GRANT EXECUTE ON PROCEDURE app.p TO other@localhost", ["EXECUTE ON app.*", "GRANT OPTION ON app.*"]),
    ("XA RECOVER", ["XA_RECOVER_ADMIN ON *.*"]),
    ("LOCK INSTANCE FOR BACKUP", ["BACKUP_ADMIN ON *.*"]),
    ("UNLOCK INSTANCE", ["BACKUP_ADMIN ON *.*"]),
    ("BACKUP TO '{files}/backup'", ["BACKUP_ADMIN ON *.*"]),
    ("FLUSH TABLES WITH READ LOCK", ["RELOAD ON *.*"]),
    ("FLUSH TABLES WITH READ LOCK", ["FLUSH_TABLES ON *.*"]),
    ("FLUSH TABLES app.t WITH READ LOCK", ["FLUSH_TABLES ON *.*", "LOCK TABLES ON app.*", "SELECT ON app.*"]),
    ("FLUSH LOGS", ["RELOAD ON *.*"]),
    ("FLUSH PRIVILEGES", ["FLUSH_PRIVILEGES ON *.*"]),
    ("FLUSH STATUS", ["FLUSH_STATUS ON *.*"]),
    ("FLUSH STATUS, BINARY LOGS", ["RELOAD ON *.*"]),
    ("RESET BINARY LOGS AND GTIDS", ["RELOAD ON *.*"]),
    ("RESET REPLICA", ["RELOAD ON *.*"]),
    ("PURGE BINARY LOGS TO 'binlog.000001'", ["BINLOG_ADMIN ON *.*"]),
    ("CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'h'", ["REPLICATION_SLAVE_ADMIN ON *.*"]),
    ("CHANGE REPLICATION FILTER REPLICATE_DO_DB = (app)", ["REPLICATION_SLAVE_ADMIN ON *.*"]),
    ("START REPLICA", ["REPLICATION_SLAVE_ADMIN ON *.*"]),
    ("STOP REPLICA", ["REPLICATION_SLAVE_ADMIN ON *.*"]),
    ("BINLOG 'AAAA'", ["BINLOG_ADMIN ON *.*"]),
    ("BINLOG 'AAAA'", ["REPLICATION_APPLIER ON *.*"]),
    ("SHUTDOWN", None),
    ("RESTART", None),
    ("KILL {root}", None),
    ("KILL {other}", ["CONNECTION_ADMIN ON *.*"]),
    ("SET GLOBAL long_query_time = 10", ["SYSTEM_VARIABLES_ADMIN ON *.*"]),
    ("SET sql_log_bin = 1", ["SESSION_VARIABLES_ADMIN ON *.*"]),
    ("SET PASSWORD FOR other@localhost = ''", ["CREATE USER ON *.*"]),
    ("CREATE USER made@localhost", ["CREATE USER ON *.*"]),
    ("ALTER USER other@localhost ACCOUNT UNLOCK", ["CREATE USER ON *.*"]),
    ("RENAME USER other@localhost TO made@localhost", ["CREATE USER ON *.*"]),
    ("DROP USER other@localhost", ["CREATE USER ON *.*"]),
    ("GRANT SELECT ON app.* TO other@localhost", ["SELECT ON app.*", "GRANT OPTION ON app.*"]),
    ("CREATE ROLE made", ["CREATE ROLE ON *.*"]),
    ("SET DEFAULT ROLE NONE TO other@localhost", ["CREATE USER ON *.*"]),
    ("DROP ROLE made", ["DROP ROLE ON *.*"]),
    ("REVOKE ALL PRIVILEGES, GRANT OPTION FROM other@localhost", ["CREATE USER ON *.*"]),
]
# The rest of what parses is anybody's: transactions, SHOW of what everybody may see, variables of the session, help.
FREE = ["BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT s", "UNLOCK TABLES", "SET @a = 1", "SET autocommit = 1", "SHOW PROCESSLIST",
        "SHOW GRANTS", "SHOW VARIABLES LIKE 'x'", "SHOW STATUS LIKE 'x'", "SHOW DATABASES", "SHOW WARNINGS", "SHOW ENGINES",
        "XA START 'a'", "XA END 'a'", "XA ROLLBACK 'a'", "XA START 'b'", "XA END 'b'", "XA PREPARE 'b'", "XA COMMIT 'b'", "DO 1", "SELECT 1", "GET DIAGNOSTICS @a = NUMBER",
        "ROLLBACK TO s", "RELEASE SAVEPOINT s", "PREPARE p FROM 'DO 1'", "EXECUTE p", "DEALLOCATE PREPARE p", "HELP 'x'", "SET ROLE NONE",
        "SHOW AUTHORS", "SHOW CHARACTER SET", "SHOW COLLATION", "SHOW CONTRIBUTORS", "SHOW ERRORS", "SHOW LOCALES", "SHOW OPEN TABLES",
        "SHOW PLUGINS", "SHOW PRIVILEGES", "SHOW PROFILE", "SHOW PROFILES", "SHOW EXPLAIN FOR 0", "SHOW FUNCTION STATUS", "SHOW PROCEDURE STATUS", "SHOW PACKAGE STATUS"]
# There are none of these things, whoever asks: an error that says so, or that the thing is not there, for everybody.
NOTHING = ["CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", "SHOW CREATE FUNCTION app.f", "SHOW CREATE PROCEDURE app.p", "SIGNAL SQLSTATE '45000'", "RESIGNAL",
           "HANDLER t READ FIRST", "HANDLER t CLOSE", "CACHE INDEX app.t IN hot", "LOAD INDEX INTO CACHE app.t", "INSTALL PLUGIN x SONAME 'x'", "IMPORT TABLE FROM 'x'",
           "CLONE LOCAL DATA DIRECTORY 'x'", "SHOW CREATE TRIGGER app.g", "SHOW FUNCTION CODE app.f", "SHOW PROCEDURE CODE app.p"]


class Account:
    """One connection of an account, and the ways to run a statement over it."""

    def __init__(self, server, user="worker"):
        self.db = connect(server, user=user, autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS)

    def run(self, sql):
        with self.db.cursor() as cursor:
            cursor.execute(sql)
            while cursor.nextset():
                pass

    def binary(self, sql):
        self.db._execute_command(COMMAND.COM_STMT_PREPARE, sql)
        ok = self.db._read_packet()
        id = struct.unpack("<I", ok.get_all_data()[1:5])[0]
        columns, params = struct.unpack("<HH", ok.get_all_data()[5:9])
        for count in (params, columns):
            for _ in range(count + bool(count)):
                self.db._read_packet()
        self.db._execute_command(COMMAND.COM_STMT_EXECUTE, struct.pack("<IBI", id, 0, 1))
        if self.db._read_packet().get_all_data()[:1] != b"\0":
            # Rows: not read to their end, so the connection is of no more use.
            self.db.close()

    def end(self):
        """Closes it; the kinds of statements that it has run, as the server counts them."""
        if not self.db.open:
            return set()
        with self.db.cursor() as cursor:
            cursor.execute("SHOW STATUS LIKE 'Com\\_%'")
            counts = dict(cursor.fetchall())
        self.db.close()
        return {name for name, count in counts.items() if int(count) > 0}

    def codes(self, sql, ways):
        quoted = sql.replace("\\", "\\\\").replace("'", "\\'")
        steps = {
            "text": lambda: self.run(sql),
            "second of two": lambda: self.run(f"DO 0; {sql}"),
            "SET STATEMENT": lambda: self.run(f"SET STATEMENT lock_wait_timeout = 5 FOR {sql}"),
            "EXECUTE IMMEDIATE": lambda: self.run(f"EXECUTE IMMEDIATE '{quoted}'"),
            "EXECUTE IMMEDIATE of an expression": lambda: self.run(f"EXECUTE IMMEDIATE CONCAT('', '{quoted}')"),
            "EXECUTE": lambda: self.run(f"PREPARE s FROM '{quoted}'; EXECUTE s"),
            "COM_STMT_EXECUTE": lambda: self.binary(sql),
        }
        return {way: error_code(steps[way]) for way in steps if way in ways}


EVERY_WAY = ["text", "second of two", "SET STATEMENT", "EXECUTE IMMEDIATE", "EXECUTE IMMEDIATE of an expression", "EXECUTE", "COM_STMT_EXECUTE"]
# 1295: not to be prepared; 1235: not one of those that the SQL layer runs.
NOT_RUN = {1295, 1235}


def prepare(server, root, files, rights):
    """Everything anew, and a connection of an account with these rights."""
    for sql in ["UNLOCK TABLES", *(f"DROP DATABASE IF EXISTS {name}" for name in ("app", "app2", "apart")), "CREATE DATABASE app", "CREATE DATABASE apart",
                "CREATE TABLE app.t (id INT PRIMARY KEY, v INT, KEY v (v))", "CREATE TABLE app.u LIKE app.t", "CREATE TABLE app.beside LIKE app.t",
                *(f"CREATE TABLE apart.{name} LIKE app.t" for name in "tuwsn"),
                "CREATE VIEW app.w AS SELECT * FROM app.t", "CREATE SQL SECURITY INVOKER VIEW app.s AS SELECT * FROM app.t", "INSERT INTO app.t VALUES (1, 1)",
                *(f"CREATE PROCEDURE {name}() DO 1" for name in ("app.p", "app.beside", "apart.p")), "CREATE EVENT app.e ON SCHEDULE EVERY 1 DAY DISABLE DO DO 1",
                "CREATE TRIGGER app.h AFTER DELETE ON app.u FOR EACH ROW SET @a = 1",
                *(f"CREATE FUNCTION {name}() RETURNS INT NO SQL RETURN 1" for name in ("app.f", "app.beside", "apart.f")),
                "DROP USER IF EXISTS worker@localhost, made@localhost", "CREATE USER IF NOT EXISTS other@localhost", "CREATE USER worker@localhost",
                *(f"GRANT {right} TO worker@localhost" for right in rights)]:
        root.execute(sql)
    (files / "in").write_text("5\t5\n")
    (files / "out").unlink(missing_ok=True)
    return Account(server)


def matrix(server, files):
    root = connect(server, autocommit=True).cursor()
    root.execute("CREATE USER other@localhost")
    other = connect(server, user="other")

    root.execute("CREATE DATABASE other")
    nobody, elsewhere, kinds = [], ["ALL ON other.*"], set()
    for statement, needs in STATEMENTS:
        sql = statement.format(files=files, root=root.connection.thread_id(), other=other.thread_id())
        without = [[right for right in needs or [] if right != left_out] for left_out in needs or []]
        for rights in [nobody, elsewhere, *(rights for rights in without if rights)]:
            account = prepare(server, root, files, rights)
            for way, code in account.codes(sql, EVERY_WAY).items():
                expect(code in DENIED or (code in NOT_RUN and way != "text"),
                       f"{sql} as {way} with {rights or 'no right'}: {code}, not denied")
            kinds |= account.end()
        if needs:
            account = prepare(server, root, files, needs)
            code = account.codes(sql, ["text"])["text"]
            expect(code not in DENIED, f"{sql} with {needs}: denied with {code}")
            account.db.close()
    account = prepare(server, root, files, nobody)
    for sql in FREE:
        expect(account.codes(sql, ["text"])["text"] not in DENIED, f"{sql} is not anybody's")
    for sql in NOTHING:
        expect(account.codes(sql, ["text"])["text"] != 0, f"{sql} does something")
    kinds |= account.end()
    # `SHOW STATUS` has a counter for every kind of statement that the parser knows: each has a line above.
    counters = {row[0] for row in root_rows(root, "SHOW STATUS LIKE 'Com\\_%'")}
    expect(len(counters) > 100, f"{len(counters)} kinds of statements")
    # Commands of the protocol and the empty text are no statements.
    forgotten = counters - kinds - {"Com_empty_query", "Com_admin_commands", "Com_stmt_close", "Com_stmt_fetch", "Com_stmt_reprepare", "Com_stmt_reset",
                                     "Com_stmt_send_long_data"}
    expect(forgotten == set(), f"kinds of statements that the matrix lacks: {sorted(forgotten)}")


# What can be granted on a table or a view. The rest is a database's, a routine's, or everybody's.
ON_TABLES = {"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "INDEX", "ALTER", "CREATE VIEW", "SHOW VIEW", "TRIGGER"}
ON_ROUTINES = {"EXECUTE", "ALTER ROUTINE"}
# The table that a trigger is of, which its name does not say; a view of its definer's asks for nothing of what is underneath.
HIDDEN = {"DROP TRIGGER app.h": ["u"], "SELECT * FROM app.s": ["s", "t"]}
ROUTINE = re.compile(r"app\.([pf])\b")


def narrowed(sql, needs, place, routine):
    """The same rights where they are the narrowest: on the objects that the statement names, or on others."""
    tables = HIDDEN.get(sql) or sorted(set(re.findall(r"(?:app\.|DELETE )([a-z]\w*)", sql)) & {"t", "u", "w", "s", "n"})
    found = []
    for need in needs:
        privilege, _, level = need.rpartition(" ON ")
        if level == "app.*" and privilege in ON_TABLES and tables:
            found += [f"{privilege}{', CREATE' if privilege != 'CREATE' else ''} ON {place.format(table)}" if table == "n" else f"{privilege} ON {place.format(table)}"
                      for table in tables]
        elif level == "app.*" and privilege in ON_ROUTINES:
            kind = "PROCEDURE" if ROUTINE.search(sql)[1] == "p" else "FUNCTION"
            found.append(f"{privilege} ON {kind} {routine.format(ROUTINE.search(sql)[1])}")
        else:
            found.append(need)
    return found


def levels(server, files):
    """Rights on a table, a view or a routine are enough where they are on those that a statement names, and nothing where they are on others."""
    root = connect(server, autocommit=True).cursor()
    tried = 0
    for sql, needs in STATEMENTS:
        exact = narrowed(sql, needs or [], "app.{}", "app.{}")
        if exact == needs or needs is None:
            continue
        tried += 1
        sql = sql.format(files=files)
        beside = narrowed(sql, needs, "app.beside", "app.beside")
        elsewhere = narrowed(sql, needs, "apart.{}", "apart.{}")
        for rights in (beside, elsewhere):
            account = prepare(server, root, files, rights)
            for way, code in account.codes(sql, ["text", "EXECUTE", "COM_STMT_EXECUTE"]).items():
                expect(code in DENIED or code in NOT_RUN and way != "text", f"{sql} as {way} with {rights}: {code}, not denied")
            account.end()
        account = prepare(server, root, files, exact)
        code = account.codes(sql, ["text"])["text"]
        expect(code not in DENIED, f"{sql} with {exact}: denied with {code}")
        account.db.close()
    expect(tried > 40, f"only {tried} statements ask for rights on tables and routines")


def root_rows(cursor, sql):
    cursor.execute(sql)
    return cursor.fetchall()


def codes_of(db, statements):
    return [error_code(lambda: db.cursor().execute(sql)) for sql in statements]  # noqa: B023


def account(server, name, *rights):
    client(server, f"CREATE USER {name}@localhost; " + "; ".join(f"GRANT {right} TO {name}@localhost" for right in rights))
    return connect(server, user=name, autocommit=True)


def giving_away(server, _):
    """GRANT OPTION on some databases gives away nothing on others, whatever the pattern."""
    db = account(server, "giver", "ALL ON `a_`.* ", "USAGE ON *.*")
    client(server, "GRANT SELECT ON `a_`.* TO giver@localhost WITH GRANT OPTION; CREATE USER taker@localhost")
    wider = ["`a%`", "`%`", "a", "`_`", "`a_%`", "abc", "`__`"]
    found = codes_of(db, [f"GRANT SELECT ON {pattern}.* TO taker@localhost" for pattern in wider])
    expect(found == [1044] * len(wider), f"wider: {dict(zip(wider, found))}")
    expect(codes_of(db, [f"GRANT SELECT ON {p}.* TO taker@localhost" for p in ("ab", "`a_`", "`a\\_`")]) == [0] * 3, "not wider")
    expect(codes_of(db, ["GRANT RELOAD ON *.* TO taker@localhost", "GRANT SELECT ON *.* TO taker@localhost"]) == [1045] * 2, "global")
    db.close()


def definers_stay(server, _):
    """Nobody makes what others made act in their names who may not name them; what ALTER leaves alone stays theirs."""
    client(server, "CREATE DATABASE def; CREATE TABLE def.t (id INT); CREATE PROCEDURE def.p() SQL SECURITY INVOKER SELECT CURRENT_USER();"
                   "CREATE FUNCTION def.f() RETURNS VARCHAR(100) DETERMINISTIC SQL SECURITY INVOKER RETURN CURRENT_USER();"
                   "CREATE VIEW def.v AS SELECT CURRENT_USER() AS who; CREATE SQL SECURITY INVOKER VIEW def.i AS SELECT CURRENT_USER() AS who;"
                   "CREATE EVENT def.e ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO SELECT 1")
    heir = account(server, "heir", "ALL ON def.*")
    refused = ["ALTER PROCEDURE def.p SQL SECURITY DEFINER", "ALTER FUNCTION def.f COMMENT 'x' SQL SECURITY DEFINER",
               "ALTER VIEW def.v AS SELECT CURRENT_USER() AS who, 1 AS mine", "ALTER SQL SECURITY DEFINER VIEW def.i AS SELECT CURRENT_USER() AS who"]
    expect(codes_of(heir, refused) == [1227] * len(refused), f"of root: {dict(zip(refused, codes_of(heir, refused)))}")
    expect(codes_of(heir, ["ALTER PROCEDURE def.p COMMENT 'x'", "ALTER PROCEDURE def.p SQL SECURITY INVOKER"]) == [0, 0], "what gives nothing")
    expect(root_rows(heir.cursor(), "CALL def.p()") == (("heir@localhost",),), "it acts for who calls it")
    taken = ["ALTER DEFINER = CURRENT_USER VIEW def.v AS SELECT CURRENT_USER() AS who", "ALTER EVENT def.e COMMENT 'x'",
             "CREATE PROCEDURE def.own() SQL SECURITY INVOKER SELECT 1", "ALTER PROCEDURE def.own SQL SECURITY DEFINER"]
    expect(codes_of(heir, taken) == [0] * len(taken), f"taken over: {codes_of(heir, taken)}")
    root = connect(server, autocommit=True)
    expect(codes_of(root, ["ALTER VIEW def.v AS SELECT 2 AS who", "ALTER PROCEDURE def.own COMMENT 'y'"]) == [0, 0], "an administrator")
    owners = root_rows(root.cursor(), "SELECT definer FROM information_schema.views WHERE table_schema = 'def' AND table_name = 'v'"
                                      " UNION ALL SELECT definer FROM information_schema.events WHERE event_schema = 'def'"
                                      " UNION ALL SELECT definer FROM information_schema.routines WHERE routine_name = 'own'")
    expect(owners == (("heir@localhost",),) * 3, f"what root alters does not become root's: {owners}")
    client(server, "GRANT SET_ANY_DEFINER, SYSTEM_USER ON *.* TO heir@localhost")
    expect(codes_of(heir, refused) == [0] * len(refused), "who may name others")
    client(server, "DROP DATABASE def; DROP USER heir@localhost")
    heir.close()
    root.close()


def bodies(server, _):
    """What a program does is shown to its definer and to those who may read all; that it is there, to who may use it."""
    client(server, "CREATE DATABASE bod; CREATE TABLE bod.t (id INT); CREATE PROCEDURE bod.p(secret INT) SELECT 'geheim';"
                   "CREATE FUNCTION bod.f() RETURNS INT DETERMINISTIC RETURN LENGTH('geheim');"
                   "CREATE TRIGGER bod.tr BEFORE INSERT ON bod.t FOR EACH ROW SET @a = 'geheim'")
    routines = "SELECT routine_name, routine_definition LIKE '%geheim%' FROM information_schema.routines WHERE routine_schema = 'bod'"
    parameters = "SELECT COUNT(*) FROM information_schema.parameters WHERE specific_schema = 'bod' AND parameter_name = 'secret'"
    triggers = "SELECT action_statement FROM information_schema.triggers WHERE trigger_schema = 'bod'"
    for name, rights, listed, shown, fires in (
            ("reader", ["SELECT ON bod.*"], 0, None, 0), ("user", ["EXECUTE ON bod.*"], 2, None, 0), ("one", ["EXECUTE ON PROCEDURE bod.p"], 1, None, 0),
            ("maker", ["CREATE ROUTINE ON bod.*", "ALTER ROUTINE ON bod.*"], 2, None, 0), ("trigger", ["TRIGGER ON bod.t"], 0, None, 1),
            ("auditor", ["SHOW_ROUTINE ON *.*"], 2, 1, 0), ("all", ["SELECT ON *.*"], 2, 1, 0)):
        db = account(server, f"b_{name}", *rights)
        found = root_rows(db.cursor(), routines)
        expect(len(found) == listed and all(row[1] == shown for row in found), f"{name}: ROUTINES says {found}")
        expect(root_rows(db.cursor(), parameters) == ((min(listed, 1),),), f"{name}: PARAMETERS")
        for routine, _ in found:
            kind = "PROCEDURE" if routine == "p" else "FUNCTION"
            text = root_rows(db.cursor(), f"SHOW CREATE {kind} bod.{routine}")[0][2]
            expect((text is None) if shown is None else "geheim" in text, f"{name}: SHOW CREATE {kind} says {text}")
        expect(len(root_rows(db.cursor(), triggers)) == fires, f"{name}: TRIGGERS")
        found = codes_of(db, ["SHOW CREATE TRIGGER bod.tr"])
        expect(found == [0 if fires else 1360], f"{name}: SHOW CREATE TRIGGER: {found}")
        db.close()
        client(server, f"DROP USER b_{name}@localhost")
    client(server, "DROP DATABASE bod")


def rights_that_are_gone(server, _):
    """A connection that is open follows REVOKE at its next command, whichever that is."""
    everything = "ALL ON *.*"
    for command, argument, denied in [(8, b"", 1227), (7, b"\x01", 1227), (13, b"", 1227), (12, b"ROOT", 1095), (4, b"user\0", 1142)]:
        db = account(server, "fallen", everything)
        db.cursor().execute("USE mysql")
        root = connect(server)
        if argument == b"ROOT":
            argument = struct.pack("<I", root.thread_id())
        client(server, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM fallen@localhost")

        def run(db=db, command=command, argument=argument):
            db._execute_command(command, argument)
            db._read_packet()

        code = error_code(run)
        expect(code == denied, f"command {command} with rights that were revoked: {code}")
        expect(server.runs(), "the server was shut down")
        client(server, "DROP USER fallen@localhost")
        root.close()
        db.close()


def administrators(server, _):
    """The right to make accounts is not the one to take over the server."""
    clerk = account(server, "clerk", "CREATE USER ON *.*", "CONNECTION_ADMIN ON *.*", "SELECT ON *.*")
    client(server, "GRANT SELECT ON *.* TO clerk@localhost WITH GRANT OPTION")
    root = connect(server)
    statements = ["ALTER USER root@localhost IDENTIFIED BY 'mine'", "SET PASSWORD FOR root@localhost = 'mine'", "DROP USER root@localhost",
                  "RENAME USER root@localhost TO mine@localhost", "CREATE OR REPLACE USER root@localhost IDENTIFIED BY 'mine'",
                  "REVOKE ALL PRIVILEGES, GRANT OPTION FROM root@localhost", "REVOKE SELECT ON *.* FROM root@localhost",
                  "GRANT SELECT ON *.* TO root@localhost", f"KILL {root.thread_id()}"]
    found = codes_of(clerk, statements)
    expect(found == [1227] * len(statements), f"of root: {dict(zip(statements, found))}")
    expect(codes_of(clerk, ["GRANT SYSTEM_USER ON *.* TO clerk@localhost", "GRANT ALL ON *.* TO clerk@localhost"]) == [1045] * 2, "made himself one")
    expect(codes_of(clerk, ["CREATE USER plain@localhost", "ALTER USER plain@localhost IDENTIFIED BY 'x'", "DROP USER plain@localhost"])
           == [0] * 3, "his own business")
    root.ping(reconnect=False)
    root.close()
    clerk.close()


def system_tables(server, _):
    """Accounts are changed by statements about accounts and by nothing else, whoever asks."""
    root = connect(server)
    statements = {
        "TRUNCATE mysql.user": 1142, "DELETE FROM mysql.user": 1142, "UPDATE mysql.user SET Privileges = 'SUPER'": 1142,
        "INSERT INTO mysql.db (User) VALUES ('x')": 1142, "REPLACE INTO mysql.db (User) VALUES ('x')": 1142, "DROP TABLE mysql.user": 1142,
        "ALTER TABLE mysql.user ADD x INT": 1142, "CREATE INDEX x ON mysql.user (plugin)": 1142,
        "RENAME TABLE mysql.user TO mysql.gone": 1142, "CREATE OR REPLACE TABLE mysql.user (a INT)": 1142, "DROP DATABASE mysql": 1044,
        # In a join it is what other servers have there, made up as it is read.
        "DELETE mysql.user FROM mysql.user JOIN mysql.db": 1288, "UPDATE mysql.user, mysql.db SET user.plugin = ''": 1288,
        "TRUNCATE mysql.replica_channel": 1142, "LOCK TABLES mysql.user WRITE": 0, "UNLOCK TABLES": 0, "SELECT * FROM mysql.user": 0,
        "CREATE TABLE mysql.heartbeat (a INT)": 0, "INSERT INTO mysql.heartbeat VALUES (1)": 0, "DROP TABLE mysql.heartbeat": 0,
    }
    found = codes_of(root, statements)
    wrong = {sql: code for (sql, expected), code in zip(statements.items(), found) if code != expected}
    expect(not wrong, f"system tables: {wrong}")
    root.cursor().execute("FLUSH PRIVILEGES")
    connect(server).close()
    tables = client(server, "SHOW TABLES FROM mysql").split()
    expect(tables == ["general_log", "slow_log"], f"a dump would have {tables}")
    root.close()


def setup(server, _):
    """Monitors may say what performance_schema is to collect; nothing else of it can be written."""
    root = connect(server, autocommit=True)
    statements = {
        "UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' WHERE NAME LIKE 'events_statements%'": 0,
        "UPDATE performance_schema.setup_instruments SET enabled = 'YES', timed = 'YES'": 0, "USE performance_schema": 0,
        "UPDATE setup_instruments SET ENABLED = 'NO' LIMIT 1": 0, "UPDATE setup_consumers SET absent = 1": 1054, "UPDATE threads SET INSTRUMENTED = 'NO'": 1044,
        "INSERT INTO setup_consumers VALUES ('x', 'YES')": 1044, "DELETE FROM setup_actors": 1044, "UPDATE global_status SET VARIABLE_VALUE = 1": 1044,
        "UPDATE information_schema.TABLES SET TABLE_NAME = 'x'": 1044,
    }
    found = codes_of(root, statements)
    wrong = {sql: code for (sql, expected), code in zip(statements.items(), found) if code != expected}
    expect(not wrong, f"performance_schema: {wrong}")
    root.close()
    weak = account(server, "weak", "SELECT ON *.*")
    names = ["INNODB_TRX", "innodb_metrics", "INNODB_CMP", "INNODB_BUFFER_PAGE", "INNODB_TABLES", "INNODB_TABLESPACES", "INNODB_FT_DEFAULT_STOPWORD"]
    found = codes_of(weak, [f"SELECT COUNT(*) FROM information_schema.{name}" for name in names])
    expect(found == [1227] * 6 + [0], f"InnoDB's own tables: {dict(zip(names, found))}")
    client(server, "CREATE DATABASE own; CREATE VIEW own.transactions AS SELECT trx_id FROM information_schema.INNODB_TRX; "
           "CREATE SQL SECURITY INVOKER VIEW own.invoked AS SELECT trx_id FROM information_schema.INNODB_TRX")
    found = codes_of(weak, ["SELECT * FROM own.transactions", "SELECT * FROM own.invoked", "DESCRIBE information_schema.INNODB_TRX"])
    expect(found == [0, 1227, 0], f"views over them: {found}")
    weak.close()


# The dynamic privileges of MySQL 9.7, those of its components left out.
DYNAMIC = """
ALLOW_NONEXISTENT_DEFINER APPLICATION_PASSWORD_ADMIN AUDIT_ABORT_EXEMPT AUDIT_ADMIN AUTHENTICATION_POLICY_ADMIN BACKUP_ADMIN BINLOG_ADMIN
BINLOG_ENCRYPTION_ADMIN CLONE_ADMIN CONNECTION_ADMIN CREATE_SPATIAL_REFERENCE_SYSTEM ENCRYPTION_KEY_ADMIN FIREWALL_EXEMPT FLUSH_OPTIMIZER_COSTS
FLUSH_PRIVILEGES FLUSH_STATUS FLUSH_TABLES FLUSH_USER_RESOURCES GROUP_REPLICATION_ADMIN GROUP_REPLICATION_STREAM INNODB_REDO_LOG_ARCHIVE
INNODB_REDO_LOG_ENABLE MANAGE_DATA_MASKING_POLICY OPTIMIZE_LOCAL_TABLE PASSWORDLESS_USER_ADMIN PERSIST_RO_VARIABLES_ADMIN REPLICATION_APPLIER
REPLICATION_SLAVE_ADMIN RESOURCE_GROUP_ADMIN RESOURCE_GROUP_USER ROLE_ADMIN SENSITIVE_VARIABLES_OBSERVER SERVICE_CONNECTION_ADMIN
SESSION_VARIABLES_ADMIN SET_ANY_DEFINER SHOW_ROUTINE SYSTEM_USER SYSTEM_VARIABLES_ADMIN TABLE_ENCRYPTION_ADMIN TELEMETRY_LOG_ADMIN
TRANSACTION_GTID_TAG XA_RECOVER_ADMIN
"""


def every_name(server, _):
    """Every privilege of MySQL 9.7 can be given, is shown, and taken back: a replica follows whatever its source grants."""
    db = account(server, "named")
    for name in DYNAMIC.split():
        client(server, f"GRANT {name} ON *.* TO named@localhost")
    shown = client(server, "SHOW GRANTS FOR named@localhost")
    missing = [name for name in DYNAMIC.split() if name not in shown]
    expect(not missing, f"given and not shown: {missing}")
    client(server, f"REVOKE {', '.join(DYNAMIC.split())} ON *.* FROM named@localhost")
    expect(client(server, "SHOW GRANTS FOR named@localhost").count("\n") == 1, "taken back")
    # On tables that are made up as they are read, too.
    for table in ("mysql.tables_priv", "mysql.role_edges", "mysql.gtid_executed", "mysql.user", "performance_schema.replication_applier_status",
                  "performance_schema.events_statements_summary_by_digest", "performance_schema.data_lock_waits"):
        client(server, f"GRANT SELECT ON {table} TO named@localhost")
        expect(codes_of(db, [f"SELECT * FROM {table}"]) == [0], f"{table} with the right to read it")
        client(server, f"REVOKE SELECT ON {table} FROM named@localhost")
        expect(codes_of(db, [f"SELECT * FROM {table}"]) == [1142], f"{table} without")
    expect(codes_of(connect(server), ["GRANT SELECT ON mysql.absent TO named@localhost", "GRANT ABSENT ON *.* TO named@localhost"]) == [1146, 3619], "what there is not")
    db.close()


# What reaches beyond a session, as MySQL restricts it: what printed logs set is also for who may replay one.
OF_LOGS = "gtid_next immediate_server_version original_commit_timestamp original_server_version pseudo_replica_mode pseudo_slave_mode"
RESTRICTED = """
binlog_direct_non_transactional_updates binlog_format binlog_row_image binlog_row_value_options binlog_rows_query_log_events binlog_transaction_compression
binlog_transaction_compression_level_zstd bulk_insert_buffer_size character_set_database character_set_filesystem collation_database default_table_encryption
explicit_defaults_for_timestamp internal_tmp_mem_storage_engine pseudo_thread_id rbr_exec_mode sql_generate_invisible_primary_key
sql_log_bin sql_log_off sql_require_primary_key xa_detach_on_prepare
"""


def variables(server, files):
    """Variables whose effect goes beyond the session are not anybody's, however they are set; nor are those of the server."""
    weak = account(server, "weak_setter")
    for right, allowed in ((None, ""), ("REPLICATION_APPLIER", OF_LOGS), ("SESSION_VARIABLES_ADMIN", OF_LOGS + RESTRICTED), ("SYSTEM_VARIABLES_ADMIN", OF_LOGS + RESTRICTED)):
        if right:
            client(server, f"GRANT {right} ON *.* TO weak_setter@localhost")
        for name in (OF_LOGS + RESTRICTED).split():
            own = 0 if name in allowed.split() else 1227
            found = codes_of(weak, [f"SET @@session.{name} = @@session.{name}", f"EXECUTE IMMEDIATE 'SET {name} = DEFAULT'"])
            expect(found == [own, own], f"{name} with {right or 'no right'}: {found}")
        if right:
            client(server, f"REVOKE {right} ON *.* FROM weak_setter@localhost")
    client(server, "GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO weak_setter@localhost")
    for sql, right in (("SET GLOBAL mandatory_roles = ''", "ROLE_ADMIN"), ("SET GLOBAL offline_mode = OFF", "CONNECTION_ADMIN"),
                       ("SET GLOBAL default_table_encryption = OFF", "TABLE_ENCRYPTION_ADMIN"), ("SET PERSIST_ONLY back_log = 50", "PERSIST_RO_VARIABLES_ADMIN")):
        before = codes_of(weak, [sql])
        client(server, f"GRANT {right} ON *.* TO weak_setter@localhost")
        expect((before, codes_of(weak, [sql])) == ([1227], [0]), f"{sql} without and with {right}")
    client(server, "RESET PERSIST back_log")
    weak.close()


def settable(server):
    """What an account may set for its session, with no right and with each of MariaDB's on the log."""
    client(server, "CREATE USER setter@localhost")
    found = {}
    names = [row[0] for row in root_rows(connect(server).cursor(), "SHOW SESSION VARIABLES")]
    for right in (None, "BINLOG ADMIN", "BINLOG REPLAY", "SUPER"):
        if right:
            client(server, f"GRANT {right} ON *.* TO setter@localhost")
        db = connect(server, user="setter")
        denied = codes_of(db, [f"SET @@session.{name} = @@session.{name}" for name in names])
        found |= {(name, right): code == 1227 for name, code in zip(names, denied)}
        if right:
            client(server, f"REVOKE {right} ON *.* FROM setter@localhost")
        db.close()
    return found


def variables_of_mariadb(_, files):
    """In its dialect a session may set what it may set there."""
    directory = files / "setters"
    directory.mkdir()
    ours, theirs = Omnibus(directory, "--dialect=mariadb"), MariaDB(directory)
    ours.start()
    theirs.start()
    here, there = settable(ours), settable(theirs)
    both = here.keys() & there.keys()
    expect(sum(there[key] for key in both) > 15 and len(both) > 600, f"{len(both)} are the same")
    differ = [(name, right, here[name, right]) for name, right in sorted(both, key=str) if here[name, right] != there[name, right]]
    # There they cannot be set for a session at all.
    differ = [each for each in differ if each[0] != "max_allowed_packet"]
    expect(differ == [], f"name, right, denied here: {differ}")
    ours.stop()
    theirs.stop()


def branches(server, _):
    """A prepared XA branch is its account's, and theirs who may see the names of all."""
    owner, other = account(server, "owner", "ALL ON xa.*"), account(server, "stranger", "ALL ON xa.*")
    client(server, "CREATE DATABASE xa; CREATE TABLE xa.t (a INT PRIMARY KEY)")
    for name in "bcd":
        found = codes_of(owner, [f"XA START '{name}'", f"INSERT INTO xa.t VALUES ({ord(name)})", f"XA END '{name}'", f"XA PREPARE '{name}'"])
        expect(found == [0] * 4, f"prepared: {found}")
    expect(codes_of(other, ["XA COMMIT 'b'", "XA ROLLBACK 'b'", "XA COMMIT 'absent'"]) == [1227, 1227, 1397], "somebody else's")
    owner.close()
    again = connect(server, user="owner")
    expect(codes_of(again, ["XA COMMIT 'b'"]) == [0], "another session of the account")
    expect(codes_of(connect(server), ["XA ROLLBACK 'c'"]) == [0], "an administrator")
    server.stop()
    server.start()
    expect(codes_of(connect(server, user="owner"), ["XA COMMIT 'd'"]) == [1227], "after a restart nobody knows whose it was")
    expect(codes_of(connect(server), ["XA COMMIT 'd'"]) == [0], "an administrator does")


def programs_know_what_definers_know(server, _):
    """The server's own tables show a program what its definer may know, whoever runs it: a trigger tells its maker nothing of an administrator's."""
    client(server, "CREATE DATABASE mine; CREATE DATABASE theirs; CREATE TABLE theirs.secret (a INT PRIMARY KEY); CREATE VIEW theirs.view_of_it AS SELECT 1 AS x;"
                   "CREATE TABLE mine.t (a INT); CREATE TABLE mine.loot (place VARCHAR(64), found LONGTEXT); CREATE USER hidden@localhost COMMENT 'of nobody';"
                   "SET GLOBAL log_bin_trust_function_creators = ON")
    maker = account(server, "maker", "ALL ON mine.*")
    seen = {"schemata": "schema_name", "tables": "CONCAT(table_schema, '.', table_name)", "columns": "table_schema", "statistics": "table_schema", "views": "table_schema",
            "processlist": "CONCAT(user, ': ', info)", "user_privileges": "grantee", "user_attributes": "user"}
    body = "".join(f"INSERT INTO mine.loot SELECT '{table}', {column} FROM information_schema.{table}; " for table, column in seen.items())
    body += "INSERT INTO mine.loot SELECT 'threads', processlist_user FROM performance_schema.threads; "
    cursor = maker.cursor()
    cursor.execute(f"CREATE TRIGGER mine.tells AFTER INSERT ON mine.t FOR EACH ROW BEGIN {body} END")
    client(server, "INSERT INTO mine.t VALUES (1) /* theirs */")
    cursor.execute("SELECT place, found FROM mine.loot WHERE found REGEXP 'theirs|secret|root|hidden'")
    told = cursor.fetchall()
    expect(told == (), f"a trigger that root fires tells its maker: {told}")
    cursor.execute("SELECT DISTINCT place FROM mine.loot WHERE found LIKE '%mine%' OR found LIKE '%maker%'")
    expect(len(cursor.fetchall()) >= 5, "and what its maker may know")
    # The other way round it knows what its definer knows, and the session is itself again behind it.
    client(server, "CREATE PROCEDURE mine.looks() SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'theirs'")
    count = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'theirs'"
    for sql, expected in ((count, 0), ("CALL mine.looks()", 2), (count, 0)):
        cursor.execute(sql)
        expect(cursor.fetchone() == (expected,), f"{sql}: not {expected}")
    for table in ("events_statements_summary_by_digest", "data_locks"):
        client(server, f"DROP PROCEDURE IF EXISTS mine.digs; CREATE PROCEDURE mine.digs() SELECT COUNT(*) FROM performance_schema.{table}")
        expect(codes_of(maker, ["CALL mine.digs()", f"SELECT COUNT(*) FROM performance_schema.{table}"]) == [0, 1142], f"{table} in a program of root's, and without")
    maker.close()


def main():
    tests = [matrix, levels, giving_away, definers_stay, bodies, rights_that_are_gone, administrators, system_tables, setup, every_name, programs_know_what_definers_know, variables, variables_of_mariadb, branches]
    with Scratch("omnibus-privileges-") as name:
        directory = pathlib.Path(name)
        files = directory / "files"
        files.mkdir()
        server = Omnibus(directory, f"--secure-file-priv={files}")
        server.start()
        try:
            for test in tests:
                test(server, files)
                print(f"privileges: {test.__name__} ok", flush=True)
        finally:
            server.stop()
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
