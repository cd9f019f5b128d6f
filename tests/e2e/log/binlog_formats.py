#!/usr/bin/python3
"""binlog_format: the same workload logged as rows, statements and a mixture gives the same data in MariaDB, which
replays each log with mariadb-binlog, and here after a crash; unsafe statements; what the variable allows.

Ring: gate.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import (MariaDB, Omnibus, Scratch, binary, client, connect,  # noqa: E402
                     error_code, expect, finished_binlogs, replay)

FORMATS = ("ROW", "STATEMENT", "MIXED")

TABLES = """
    CREATE DATABASE {db} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE {db};
    CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100), n DOUBLE, d DECIMAL(20,6), at DATETIME(6),
        ts TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, b VARBINARY(100), UNIQUE KEY (v, id));
    CREATE TABLE plain (k INT, v VARCHAR(100));
    CREATE TABLE pairs (a INT PRIMARY KEY, b VARCHAR(40), KEY (b));"""

# What is safe as statements, in every way that context matters.
SAFE = """
    INSERT INTO t (v) VALUES ('one'), ('two'), ('three');
    INSERT INTO t (v, n) VALUES (CONCAT('last ', LAST_INSERT_ID()), RAND()), ('again', RAND());
    INSERT INTO t (id, v) VALUES (NULL, 'a'), (50, 'given'), (NULL, 'behind it');
    SET auto_increment_increment = 10, auto_increment_offset = 3;
    INSERT INTO t (v) VALUES ('by tens'), ('by tens'); SET auto_increment_increment = 1, auto_increment_offset = 1;
    SET insert_id = 200; INSERT INTO t (v) VALUES ('from 200'), ('201');
    SET timestamp = 1234567890; INSERT INTO t (v, at, ts) VALUES ('then', NOW(), NOW()); SET timestamp = DEFAULT;
    SET time_zone = '+05:30'; INSERT INTO t (v, at) VALUES ('there', NOW()); SET time_zone = '+00:00';
    INSERT INTO t (v, ts) VALUES ('utc', '2020-02-02 02:02:02');
    SET @s = 'it''s ü', @n = -7, @big = 18446744073709551615, @dec = 123.4500, @f = 1e-3, @bin = X'00FF27', @gone = NULL;
    INSERT INTO t (v, n, d, b) VALUES (@s, @f, @dec, @bin), (@n, @big, @n, @s), (@gone, @never_set, @dec + 1, NULL);
    INSERT INTO plain SELECT id, v FROM t WHERE id > 3;
    UPDATE t SET v = CONCAT(v, '!'), d = COALESCE(d, 0) + 1 WHERE id < 5;
    UPDATE t, plain SET t.n = plain.k WHERE t.id = plain.k AND t.id > 6;
    DELETE FROM plain WHERE k = 50;
    DELETE FROM t WHERE id = 200; REPLACE INTO pairs VALUES (1, 'x'), (2, 'y'), (1, 'z');
    REPLACE INTO pairs VALUES (2, 'y');
    INSERT INTO pairs VALUES (1, 'dup') ON DUPLICATE KEY UPDATE b = CONCAT(b, VALUES(b));
    INSERT IGNORE INTO pairs VALUES (1, 'ignored'), (3, 'new');
    UPDATE pairs SET b = 'limited' ORDER BY a LIMIT 1;
    SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES'; INSERT INTO "plain" VALUES (900, 'back\\slash'); SET sql_mode = DEFAULT;
    SET sql_mode = ''; INSERT INTO pairs VALUES (4, REPEAT('long', 20)); SET sql_mode = DEFAULT;
    BEGIN; INSERT INTO pairs VALUES (10, 'kept'); SAVEPOINT s; INSERT INTO pairs VALUES (11, 'undone'); DELETE FROM t;
    ROLLBACK TO s; UPDATE pairs SET b = 'kept too' WHERE a = 10; COMMIT;
    BEGIN; DELETE FROM pairs; ROLLBACK;
    BEGIN; INSERT INTO plain VALUES (901, 'm'), (902, 'm'); UPDATE plain SET v = 'mm' WHERE k = 901; COMMIT;
    SET autocommit = 0; INSERT INTO plain VALUES (903, 'off'); COMMIT; SET autocommit = 1; INSERT INTO plain VALUES (905, 'on');
    XA START 'b'; INSERT INTO plain VALUES (904, 'xa'); UPDATE pairs SET b = 'xa' WHERE a = 2; XA END 'b';
    XA PREPARE 'b'; XA COMMIT 'b';
    CREATE TABLE made (PRIMARY KEY (a)) SELECT a, b FROM pairs; INSERT INTO made SELECT a + 100, b FROM pairs;"""

# What only rows tell rightly.
UNSAFE = """
    INSERT INTO plain VALUES (1000, UUID()), (1001, UUID_SHORT());
    INSERT INTO plain VALUES (1002, CONNECTION_ID() * 0), (1003, @@version), (1004, USER()), (1005, CURRENT_USER());
    UPDATE plain SET v = RAND() WHERE k > 900;
    INSERT INTO t (v) SELECT b FROM pairs;
    DELETE FROM plain WHERE k < 20 LIMIT 1;
    INSERT INTO plain VALUES (1006, SYSDATE(6)), (1007, ROW_COUNT());
    SET @x = 0; UPDATE pairs SET b = (@x := @x + 1);"""

COMPARE = ("SELECT id, v, n, d, at, UNIX_TIMESTAMP(ts), HEX(b) FROM {db}.t ORDER BY id",
           "SELECT * FROM {db}.plain ORDER BY k, v", "SELECT * FROM {db}.pairs ORDER BY a",
           "SELECT * FROM {db}.made ORDER BY a", "SELECT * FROM {db}.loaded ORDER BY id",
           "SELECT * FROM {db}.prepared ORDER BY id")


def prepared(server, form):
    """Prepared statements are logged with their values, exactly."""
    db = connect(server, database=f"f_{form}")
    with db.cursor() as cursor:
        cursor.execute("CREATE TABLE prepared (id INT PRIMARY KEY, v VARCHAR(60), b BLOB, n DOUBLE, d DECIMAL(30,10))")
        cursor.execute(f"SET binlog_format = {form}")
        cursor.execute("PREPARE s FROM 'INSERT INTO prepared /* ? */ VALUES (?, ?, ?, ?, ?)'")
        for id, values in enumerate(("'it''s \\\\ \\n', X'00FF5C27', 0.1e0, 0.1", "'ü€😀', 'text', -1e300, -99999999999999999999.5",
                                     "NULL, NULL, NULL, NULL", "'', '', 0, 12345")):
            cursor.execute(f"SET @id = {id}")
            for n, value in enumerate(eval_list(values)):
                cursor.execute(f"SET @p{n} = {value}")
            cursor.execute("EXECUTE s USING @id, @p0, @p1, @p2, @p3")
        db.commit()
    db.close()


def loaded(server, form, directory):
    """LOAD DATA brings its file along where the log has its text."""
    rows = pathlib.Path(directory) / "rows.csv"
    rows.write_text("".join(f'{n},"row {n} ü",\\N\n' for n in range(3000)) + '2999,"again",x\n')
    sql = f"""USE f_{form}; SET binlog_format = {form};
        CREATE TABLE loaded (id INT PRIMARY KEY, v VARCHAR(40), w VARCHAR(40), at DATETIME);
        LOAD DATA LOCAL INFILE '{rows}' REPLACE INTO TABLE loaded CHARACTER SET utf8mb4 FIELDS TERMINATED BY ','
            OPTIONALLY ENCLOSED BY '"' (id, v, @w) SET w = CONCAT(@w, 'w'), at = NOW();"""
    client(server, sql, "--local-infile=1")
    if form == "STATEMENT":
        warned = client(server, f"USE f_{form}; SET binlog_format = STATEMENT; LOAD DATA LOCAL INFILE '{rows}' REPLACE INTO TABLE "
                                "loaded FIELDS TERMINATED BY ',' (id, v, w); SHOW WARNINGS", "--local-infile=1")
        expect("1592" in warned, f"LOAD DATA is unsafe as text: {warned[:300]}")


def eval_list(values):
    out, depth, item = [], False, ""
    for c in values:
        if c == "'":
            depth = not depth
        if c == "," and not depth:
            out.append(item)
            item = ""
        else:
            item += c
    return [*out, item]


def replay_sql(server, target, *options):
    """As `replay`, with our own reader's SQL."""
    reader = subprocess.Popen([binary(), "binlog", "--sql", *options, *finished_binlogs(server)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    applied = subprocess.run(["mariadb", "--no-defaults", f"--socket={target.socket}", "-uroot", "--binary-mode",
                              "--local-infile=1"], stdin=reader.stdout, capture_output=True, text=True)
    complaints = reader.stderr.read().decode(errors="replace")
    expect(applied.returncode == 0, f"the SQL was refused: {applied.stderr[-3000:]}")
    expect(reader.wait() == 0, f"omnibus binlog --sql: {complaints}")


def query_events(server):
    text = "".join(subprocess.run(["mariadb-binlog", "--no-defaults", path], capture_output=True, text=True,
                                  errors="replace").stdout for path in finished_binlogs(server))
    return text


def same_data_in_every_format(directory, dialect="mysql"):
    server, peer = Omnibus(directory, f"--dialect={dialect}", "--local-infile=1"), MariaDB(directory, "--skip-log-bin")
    server.start()
    peer.start()
    try:
        for form in FORMATS:
            db = f"f_{form}"
            client(server, TABLES.format(db=db))
            unsafe = "" if form == "STATEMENT" else UNSAFE
            # MySQL's way to log a fraction of the time is one that MariaDB does not read.
            fraction = "INSERT INTO t (v, at) VALUES ('fraction', NOW(6));" if dialect == "mariadb" else ""
            client(server, f"USE {db}; SET binlog_format = {form}; {SAFE} {unsafe} {fraction}")
            prepared(server, form)
            loaded(server, form, directory)
        replay(server, peer)
        ours = {}
        for form in FORMATS:
            for select in COMPARE:
                sql = select.format(db=f"f_{form}")
                ours[sql] = client(server, sql)
                theirs = client(peer, sql)
                expect(ours[sql] == theirs and ours[sql], f"{form}: {sql}\nhere:\n{ours[sql]}\nafter the replay:\n{theirs}")
        # Our own reader's SQL gives the same, there and here.
        for form in FORMATS:
            client(peer, f"DROP DATABASE f_{form}")
        second = Omnibus(pathlib.Path(directory) / "second", "--local-infile=1")
        second.directory.mkdir()
        second.start()
        try:
            for target in (peer, second):
                replay_sql(server, target, *(["--skip-gtids", "-v"] if target is second or dialect == "mariadb" else []))
                for sql, rows in ours.items():
                    found = client(target, sql)
                    expect(found == rows, f"{sql} after our SQL:\n{found}\nhere:\n{rows}")
        finally:
            second.stop()
        log = query_events(server)
        for part in ("INSERT INTO t (v, n, d, b) VALUES (@s, @f, @dec, @bin)", "@@RAND_SEED1", "SET LAST_INSERT_ID=",
                     "SET INSERT_ID=", "_utf8mb4 X'69742773", " LOCAL INFILE ",
                     # A row that is there already may be another one elsewhere.
                     "REPLACE INTO pairs VALUES (2, 'y')"):
            expect(part in log, f"{part!r} is in the log as text")
        expect("ROLLBACK TO" not in log and "undone" not in log.split("f_STATEMENT", 1)[1].split("f_MIXED")[0],
               "what was rolled back is not logged")
        # The server itself rebuilds statements' changes without executing them.
        server.kill()
        server.start()
        for sql, rows in ours.items():
            expect(client(server, sql) == rows, f"after a crash: {sql}")
        server.kill()
    finally:
        server.stop()
        peer.stop()


def same_data_in_mariadb_s_dialect(directory):
    same_data_in_every_format(directory, "mariadb")


def notes_and_errors(directory):
    server = Omnibus(directory)
    server.start()
    try:
        client(server, "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b VARCHAR(64), UNIQUE KEY (b))")
        client(server, "CREATE TABLE d.auto (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
        db = connect(server, database="d", autocommit=True)
        with db.cursor() as cursor:
            def warnings(sql, form="STATEMENT"):
                cursor.execute(f"SET binlog_format = {form}")
                cursor.execute(sql)
                cursor.execute("SHOW WARNINGS")
                return [row for row in cursor.fetchall() if row[1] == 1592]

            for sql in ("INSERT INTO t VALUES (1, UUID())", "INSERT INTO t VALUES (2, @@hostname)",
                        "UPDATE t SET b = 'x' LIMIT 1", "DELETE FROM t LIMIT 1", "INSERT INTO auto (v) SELECT a FROM t",
                        "INSERT INTO t VALUES (9, 'q') ON DUPLICATE KEY UPDATE b = 'r'", "UPDATE t SET b = RAND()",
                        "REPLACE INTO t SELECT a, b FROM t", "INSERT IGNORE INTO t SELECT a, b FROM t",
                        "UPDATE IGNORE t SET b = 'same'", "INSERT INTO t VALUES (10, SLEEP(0))",
                        "INSERT INTO t SELECT 20 + COUNT(*), 'i' FROM information_schema.TABLES LIMIT 1"):
                found = warnings(sql)
                expect(found and found[0][0] == "Note" and found[0][2].startswith("Unsafe statement written to the binary log"),
                       f"{sql}: {found}")
            for sql in ("INSERT INTO t VALUES (31, 'safe')", "UPDATE t SET b = 'w' WHERE a = 31", "DELETE FROM t WHERE a > 30",
                        "INSERT INTO t VALUES (32, RAND())", "INSERT INTO t VALUES (33, NOW()), (34, @@session.time_zone)",
                        "INSERT INTO auto VALUES (NULL, LAST_INSERT_ID())", "DELETE FROM t ORDER BY a LIMIT 1"):
                found = warnings(sql)
                expect(not found, f"{sql}: {found}")
            expect(not warnings("INSERT INTO t VALUES (40, UUID())", "MIXED"), "MIXED says nothing, and logs rows")
            cursor.execute("SET binlog_format = STATEMENT")
            cursor.execute("SET SESSION transaction_isolation = 'READ-COMMITTED'")
            expect(error_code(lambda: cursor.execute("INSERT INTO t VALUES (50, 'x')")) == 1665, "READ COMMITTED has rows only")
            cursor.execute("SET binlog_format = MIXED")
            cursor.execute("INSERT INTO t VALUES (50, 'rows')")
            cursor.execute("SET SESSION transaction_isolation = 'REPEATABLE-READ'")
            cursor.execute("BEGIN")
            expect(error_code(lambda: cursor.execute("SET binlog_format = ROW")) == 1679, "not inside a transaction")
            cursor.execute("ROLLBACK")
            cursor.execute("SET GLOBAL binlog_format = 'STATEMENT'")
            expect(error_code(lambda: cursor.execute("SET binlog_format = 'OTHER'")) == 1231, "a format that does not exist")
        with connect(server).cursor() as cursor:
            cursor.execute("SELECT @@session.binlog_format, @@global.binlog_format")
            expect(cursor.fetchone() == ("STATEMENT", "STATEMENT"), "new sessions take the server's format")
        client(server, "SET sql_log_bin = 0; CREATE USER unlogged; SET sql_log_bin = 1; CREATE USER nobody; GRANT ALL ON d.* TO nobody")
        log = query_events(server)
        expect("nobody" in log and "unlogged" not in log, "sql_log_bin=0 keeps account statements out of the log, too")
        refused = client(server, "SET binlog_format = ROW", user="nobody", check=False)
        expect(b"1227" in refused.stderr, f"the session's format needs a privilege: {refused.stderr}")
    finally:
        server.stop()


def reads_are_locked(directory):
    """A statement that reads other rows keeps them as they are until it commits, so that replay finds them so."""
    server = Omnibus(directory)
    server.start()
    try:
        client(server, "CREATE DATABASE d; CREATE TABLE d.a (k INT PRIMARY KEY); CREATE TABLE d.b (k INT PRIMARY KEY);"
                       "INSERT INTO d.a VALUES (1), (2)")
        one, two = connect(server, database="d"), connect(server, database="d")
        with one.cursor() as first, two.cursor() as second:
            first.execute("SET binlog_format = STATEMENT")
            second.execute("SET innodb_lock_wait_timeout = 1")
            first.execute("INSERT INTO b SELECT k FROM a")
            expect(error_code(lambda: second.execute("UPDATE a SET k = 5 WHERE k = 1")) == 1205, "a row that was read")
            expect(error_code(lambda: second.execute("INSERT INTO a VALUES (3)")) == 1205, "a gap that was read")
            one.commit()
            # As InnoDB: logged as rows as well, but not at READ COMMITTED, where replay needs no more than the rows.
            first.execute("SET binlog_format = ROW")
            first.execute("INSERT INTO b SELECT k + 10 FROM a")
            expect(error_code(lambda: second.execute("INSERT INTO a VALUES (3)")) == 1205, "a gap that was read, under ROW")
            one.commit()
            first.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            first.execute("INSERT INTO b SELECT k + 20 FROM a")
            second.execute("INSERT INTO a VALUES (3)")
    finally:
        server.stop()


def prepared_branches_survive(directory):
    """An XA branch of statements is prepared over a crash, and finished over another."""
    server = Omnibus(directory)
    server.start()
    try:
        client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20))")
        client(server, "USE d; SET binlog_format = STATEMENT; INSERT INTO t (v) VALUES ('before'); XA START 'keep';"
                       "INSERT INTO t (v) VALUES ('kept'); UPDATE t SET v = 'changed' WHERE id = 1; XA END 'keep'; XA PREPARE 'keep'")
        client(server, "USE d; SET binlog_format = STATEMENT; XA START 'drop'; INSERT INTO t VALUES (9, 'dropped'); XA END 'drop';"
                       "XA PREPARE 'drop'")
        server.kill()
        server.start()
        expect(sorted(client(server, "XA RECOVER").split()[3::4]) == ["drop", "keep"], client(server, "XA RECOVER"))
        expect(client(server, "SELECT v FROM d.t").split() == ["before"], "nothing of a prepared branch is to be seen")
        client(server, "XA COMMIT 'keep'; XA ROLLBACK 'drop'")
        server.kill()
        server.start()
        expect(client(server, "SELECT v FROM d.t").split() == ["changed", "kept"], "the branch's changes, both of them")
    finally:
        server.stop()


def changes_are_followed(directory):
    """The example program sees the changes of a live server's data directory, through rotation and a restart."""
    program = pathlib.Path(binary()).with_name("change-stream")
    expect(program.exists(), f"{program} is there: cargo build --bin change-stream")
    server = Omnibus(directory, "--binlog-row-metadata=FULL")
    server.start()
    reader = None
    try:
        client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE d.other (a INT)")
        reader = subprocess.Popen([program, "d.t", "--follow", str(server.datadir)], stdout=subprocess.PIPE, text=True)

        def until(part):
            for line in reader.stdout:
                if part in line:
                    return line
            return expect(False, f"the stream ended before {part!r}")

        client(server, "INSERT INTO d.t VALUES (1, 'one'); INSERT INTO d.other VALUES (1)")
        until('write after {id=1, v="one"}')
        client(server, "FLUSH LOGS; UPDATE d.t SET v = 'two'")
        until('update before {id=1, v="one"} after {id=1, v="two"}')
        place = until("commit").split("up to ")[1].strip()
        server.stop()
        server.start()
        client(server, "DELETE FROM d.t")
        until('delete before {id=1, v="two"}')
        again = subprocess.Popen([program, "d.t", "--follow", str(server.datadir), "--from", place],
                                 stdout=subprocess.PIPE, text=True)
        first = again.stdout.readline()
        again.kill()
        again.wait()
        expect(first.startswith("delete"), f"goes on where it was: {first}")
    finally:
        if reader is not None:
            reader.kill()
            reader.wait()
        server.stop()


def main():
    for test in (same_data_in_every_format, same_data_in_mariadb_s_dialect, notes_and_errors, reads_are_locked,
                 prepared_branches_survive, changes_are_followed):
        with Scratch("omnibus-formats-") as directory:
            test(directory)
        print(f"{test.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
