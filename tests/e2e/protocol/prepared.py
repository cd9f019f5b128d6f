#!/usr/bin/python3
"""Prepared statements of the binary protocol across DDL: prepared again in silence, in and out of transactions. And texts that differ in their values
only, which run as one prepared statement: nobody may see that.

PyMySQL prepares nothing on the server, so its connection is used for packets only.

Ring: gate.
"""

import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, connect, error_code, expect  # noqa: E402

PREPARE, EXECUTE, CLOSE = 0x16, 0x17, 0x19


class Prepared:
    def __init__(self, db, sql):
        self.db = db
        db._execute_command(PREPARE, sql)
        self.id, columns, self.params = struct.unpack("<IHH", db._read_packet().get_all_data()[1:9])
        for count in (self.params, columns):
            for _ in range(count + (count > 0)):
                db._read_packet()

    def run(self, *params):
        """The first column of each row, an INT; or None for a statement without rows. Parameters are BIGINT or NULL."""
        body = struct.pack("<IBI", self.id, 0, 1)
        if params:
            nulls = sum(1 << n for n, value in enumerate(params) if value is None)
            body += nulls.to_bytes((len(params) + 7) // 8, "little") + b"\1" + b"\x08\0" * len(params)
            body += b"".join(struct.pack("<q", value) for value in params if value is not None)
        self.db._execute_command(EXECUTE, body)
        head = self.db._read_packet().get_all_data()
        if head[0] == 0:
            return None
        for _ in range(head[0] + 1):
            self.db._read_packet()
        rows = []
        while (row := self.db._read_packet().get_all_data())[0] != 0xFE:
            start = 1 + (head[0] + 7 + 2) // 8
            rows.append(None if row[1] & 4 else struct.unpack("<i", row[start:start + 4])[0])
        return rows


def sql(db, *statements):
    with db.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall()


def tables_change_under_statements(server):
    admin, user = connect(server, autocommit=True), connect(server, autocommit=True, database="p")
    sql(admin, "CREATE TABLE p.t (id INT PRIMARY KEY, v INT)", "INSERT INTO p.t VALUES (1, 10), (2, NULL)")
    read, write = Prepared(user, "SELECT v FROM p.t WHERE id = ?"), Prepared(user, "UPDATE t SET v = v + ? WHERE id = 1")
    expect(read.run(1) == [10] and write.run(1) is None and read.run(1) == [11], "as prepared")
    expect(read.run(2) == [None] and read.run(None) == [], "NULL in rows and parameters")
    for ddl in (["DROP TABLE p.t", "CREATE TABLE p.t (id INT PRIMARY KEY, x INT, v INT)", "INSERT INTO p.t VALUES (1, 2, 3)"],
                ["ALTER TABLE p.t ADD COLUMN z INT FIRST"], ["CREATE INDEX i ON p.t (v)"], ["DROP INDEX i ON p.t"],
                ["DROP TABLE p.t", "CREATE TABLE p.t (v INT, id BIGINT, KEY (id))", "INSERT INTO p.t VALUES (7, 1)"],
                ["RENAME TABLE p.t TO p.old", "CREATE TABLE p.t LIKE p.old", "INSERT INTO p.t SELECT * FROM p.old"]):
        sql(admin, *ddl)
        before = read.run(1)[0]
        expect(write.run(5) is None and read.run(1) == [before + 5], f"after {ddl}")
    sql(admin, "DROP TABLE p.t")
    expect(error_code(lambda: read.run(1)) == 1146, "without a table")
    sql(admin, "CREATE TABLE p.t (id INT PRIMARY KEY)")
    expect(error_code(lambda: read.run(1)) == 1054, "without its column")
    sql(admin, "DROP TABLE p.t", "CREATE TABLE p.t (id INT PRIMARY KEY, v INT)", "INSERT INTO p.t VALUES (1, 1)")
    expect(read.run(1) == [1], "and with both again")


def snapshots_older_than_a_table_say_so(server):
    admin, user = connect(server, autocommit=True), connect(server, database="p")
    read = Prepared(user, "SELECT v FROM p.t WHERE id = 1")
    sql(admin, "CREATE TABLE p.o (id INT PRIMARY KEY)")
    sql(user, "SELECT * FROM p.o")
    sql(admin, "DROP TABLE p.t", "CREATE TABLE p.t (id INT PRIMARY KEY, v INT)", "INSERT INTO p.t VALUES (1, 2)")
    expect(error_code(read.run) == 1412, "the table is not in the snapshot")
    user.rollback()
    expect(read.run() == [2], "but in the next one")
    user.rollback()


def statements_are_counted_and_forgotten(server):
    db = connect(server)
    ids = [Prepared(db, f"SELECT {n} FROM dual") for n in range(100)]
    count = dict(sql(db, "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'"))
    expect(int(count["Prepared_stmt_count"]) >= 100, f"counted: {count}")
    db._execute_command(CLOSE, struct.pack("<I", ids[0].id))
    expect(error_code(ids[0].run) == 1243, "a closed one is unknown")


def a_server_made_read_only_takes_no_prepared_change(server):
    admin = connect(server, autocommit=True)
    sql(admin, "CREATE TABLE p.w (id INT PRIMARY KEY)", "CREATE USER writer", "GRANT ALL ON p.* TO writer")
    user = connect(server, user="writer", autocommit=True, database="p")
    insert, lock = Prepared(user, "INSERT INTO w VALUES (?)"), Prepared(user, "SELECT id FROM w WHERE id = ? FOR UPDATE")
    sql(user, "INSERT INTO w VALUES (1)", "PREPARE named FROM 'DELETE FROM w WHERE id = 1'", "CREATE PROCEDURE adds(n INT) INSERT INTO w VALUES (n)", "CALL adds(2)")
    expect(insert.run(3) is None and lock.run(3) == [3], "writes")
    sql(admin, "SET GLOBAL read_only = ON")
    for change in (lambda: insert.run(4), lambda: lock.run(3), lambda: sql(user, "EXECUTE named"), lambda: sql(user, "INSERT INTO w VALUES (1)"), lambda: sql(user, "CALL adds(4)")):
        expect(error_code(change) == 1290, "a change of a server that is read-only")
    expect(sql(user, "SELECT id FROM w WHERE id = 3 FOR SHARE") == ((3,),), "a lock that is shared is no change")
    sql(admin, "SET GLOBAL read_only = OFF")
    expect(insert.run(5) is None and sql(user, "SELECT id FROM w ORDER BY id") == ((1,), (2,), (3,), (5,)), "and writes again")


def texts_are_prepared_unseen(server):
    """What a text alone has stays its own: its errors, warnings, names, places in logs and lists."""
    user = connect(server, autocommit=True, database="p")
    hits = lambda: int(sql(user, "SHOW SESSION STATUS LIKE 'Omnibus_statement_cache_hits'")[0][1])  # noqa: E731
    sql(user, "CREATE TABLE x (id INT PRIMARY KEY, k INT, s VARCHAR(5) COLLATE utf8mb4_bin, d DECIMAL(6, 2), KEY (k))")
    before = hits()
    for n in range(1, 6):
        sql(user, f"INSERT INTO x (id, k, s, d) VALUES ({n}, -{n}, 'r{n}', {n}.25)")
    expect(sql(user, "SELECT * FROM x WHERE id = 3") == ((3, -3, "r3", 3.25),), "the values are the text's")
    expect(hits() - before >= 6, f"{hits() - before} of 6 texts had a statement")
    for word, rows in [("r2", 1), ("R2", 0), ("r2 ", 1), ("it\\'s", 0), ("ü", 0)]:
        expect(len(sql(user, f"SELECT id FROM x WHERE s = '{word}'")) == rows, word)
    for text, code in [("INSERT INTO x VALUES (3, 0, 'a', 0.00)", 1062), ("INSERT INTO x VALUES (9, 0, 'longer', 0.00)", 1406),
                       ("INSERT INTO x VALUES (9, 99999999999, 'a', 0.00)", 1264), ("UPDATE x SET nothing = 1 WHERE id = 1", 1054)]:
        expect(error_code(lambda: sql(user, text)) == code, text)  # noqa: B023
        expect(error_code(lambda: sql(user, text)) == code, f"{text}, again")  # noqa: B023
    for n in ("17", "18"):
        expect(sql(user, f"SELECT id FROM x WHERE id = '{n}x'", "SHOW WARNINGS") == (("Warning", 1292, f"Truncated incorrect DOUBLE value: '{n}x'"),), n)
    with user.cursor() as cursor:
        for n in (1, 2):
            cursor.execute(f"SELECT id + {n}, k FROM x WHERE id = {n}")
            expect([column[0] for column in cursor.description] == [f"id + {n}", "k"], cursor.description)
    # A number that is one of another kind, or of none, has its own statement.
    for value, found in [("2", 1), ("2.0", 1), ("'2'", 1), ("2e0", 1), ("-2", 0), ("x'32'", 0), ("9223372036854775808", 0), ("NULL", 0)]:
        expect(len(sql(user, f"SELECT id FROM x WHERE id = {value}")) == found, value)
    sql(user, "ALTER TABLE x ADD COLUMN z INT DEFAULT 7 FIRST")
    expect(sql(user, "SELECT * FROM x WHERE id = 3") == ((7, 3, -3, "r3", 3.25),), "a definition changes")
    sql(user, "SET binlog_format = STATEMENT", "FLUSH BINARY LOGS")
    for n in (1, 2):
        sql(user, f" /* {n} */ UPDATE x SET k = {n}0 WHERE id = {n} /* end */ ;")
    log = sql(user, "SHOW MASTER STATUS")[0][0]
    logged = [row[5] for row in sql(user, f"SHOW BINLOG EVENTS IN '{log}'") if "UPDATE x" in row[5]]
    expect(logged == [f"use `p`; /* {n} */ UPDATE x SET k = {n}0 WHERE id = {n} /* end */" for n in (1, 2)], logged)
    digest = "UPDATE `x` SET `k` = ? WHERE `id` = ?"
    counted = sql(user, f"SELECT SUM(count_star) FROM performance_schema.events_statements_summary_by_digest WHERE digest_text = '{digest}'")
    expect(counted == ((2,),), f"counted by their digest: {counted}")
    # Where a constant means more than its value, texts run as they are written.
    sql(user, "CREATE TABLE y (id INT PRIMARY KEY, e ENUM('new', 'done'), d DATETIME, f DOUBLE, KEY (e), KEY (d), KEY k ((IF(f = 1, id, NULL))))",
        "INSERT INTO y VALUES (1, 'new', 20200101, 1), (2, 'done', 20200102, 2), (3, 'new', 20200103, 3)", "SET sql_safe_updates = 1")
    for _ in range(3):
        for condition, found in [("d = 20200102", 1), ("d = '2020-01-02'", 1), ("d = '20200102000000'", 1), ("e = 'new'", 2), ("f = '2'", 1), ("id = '2'", 1),
                                 ("id = 2.0", 1), ("id = 2.5", 0), ("IF(f = 1, id, NULL) = 1", 1), ("id BETWEEN 2 AND 3", 2), ("id IN (1, 3, 5)", 2), ("id = 1 AND e = 'done'", 0)]:
            expect(len(sql(user, f"SELECT id FROM y WHERE {condition}")) == found, condition)
            if "f =" not in condition or "IF" in condition:
                expect(error_code(lambda: sql(user, f"UPDATE y SET f = f WHERE {condition}")) == 0, f"a key finds {condition}")  # noqa: B023
        expect(sql(user, "SELECT id FROM y WHERE f = 'abc'", "SELECT @@warning_count") == ((1,),), "one warning for a constant that is no number")
    sql(user, "SET sql_safe_updates = 0")
    # One session's statement is nobody's right.
    sql(user, "CREATE USER reader", "GRANT SELECT ON p.x TO reader", "SELECT k FROM x WHERE id = 4")
    other = connect(server, user="reader", database="p", autocommit=True)
    sql(other, "SELECT k FROM x WHERE id = 4", "SELECT k FROM x WHERE id = 5")
    sql(user, "REVOKE SELECT ON p.x FROM reader")
    expect(error_code(lambda: sql(other, "SELECT k FROM x WHERE id = 5")) == 1142, "a right that was taken")


def main():
    tests = [tables_change_under_statements, snapshots_older_than_a_table_say_so, statements_are_counted_and_forgotten, a_server_made_read_only_takes_no_prepared_change, texts_are_prepared_unseen]
    with Scratch("omnibus-prepared-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            sql(connect(server), "CREATE DATABASE p")
            for test in tests:
                test(server)
                print(f"prepared: {test.__name__} ok", flush=True)
        finally:
            server.stop()
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
