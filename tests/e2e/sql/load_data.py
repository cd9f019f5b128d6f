#!/usr/bin/python3
"""LOAD DATA INFILE, LOAD DATA LOCAL INFILE, SELECT .. INTO OUTFILE.

The same files are loaded by the same statements here and by MariaDB: tables, warnings, errors and the reply's text must
be equal, in strict mode and without it, from the server's file and from the client's. Then what only concerns this
server: who may read which file, what a client that breaks off leaves, waiting for a lock in the middle, a file larger
than what is kept in memory, mariadb-import, and that the log reproduces the rows.

Ring: gate.
"""

import os
import pathlib
import re
import sys
import subprocess
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import (PATIENCE_S, MariaDB, Omnibus, Scratch, client, connect,  # noqa: E402
                     error_code, expect, replay, wait_for)

STRICT = "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
ABC = "a INT NOT NULL PRIMARY KEY, b VARCHAR(10), c INT DEFAULT 7"

# name, columns, file, clauses between INTO TABLE t and the end; %s in front of INTO: REPLACE or IGNORE
CASES = [
    ("defaults", ABC, b"1\tone\t10\n2\ttwo\t20\n3\t\\N\t\\N\n", ""),
    ("no newline at the end", ABC, b"1\tone\t10\n2\ttwo\t20", ""),
    ("empty file", ABC, b"", ""),
    ("empty lines", ABC, b"1\tone\t1\n\n2\ttwo\t2\n\n", ""),
    ("escapes", "a INT PRIMARY KEY, b VARBINARY(40)", b"1\tx\\ty\\nz\\0\\Z\\\\\\'\\q\\b\\r.\n2\t\\N\n3\tN\n4\t\\\\N\n", ""),
    ("csv", ABC, b'1,"o,""ne",10\r\n2,"NULL",NULL\r\n3,NULL,\r\n4,"x\r\ny",5\r\n',
     "FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'"),
    ("csv optional", ABC, b'1,"one",10\n2,two,"20"\n3,"th\\"r",3\n4,a"b,4\n5,"c"d",5\n6,"",6\n',
     "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'"),
    ("csv unclosed", ABC, b'1,"one,10\n2,two,20\n', "FIELDS TERMINATED BY ',' ENCLOSED BY '\"'"),
    ("quote is escape", ABC, b'1,"fie""ld1",1\n2,"\\n",2\n3,NULL,3\n',
     "FIELDS TERMINATED BY ',' ENCLOSED BY '\"' ESCAPED BY '\"'"),
    ("no escape", ABC, b"1\ta\\tb\t3\n2\t\\N\t4\n", "FIELDS ESCAPED BY ''"),
    ("starting by", ABC, b"xxx1\tone\t10\nsomething xxx2\ttwo\t20\nnothing\t3\t3\nxxxxxx4\tf\t4\n",
     "LINES STARTING BY 'xxx'"),
    ("long separators", ABC, b"1<->one<-<->10||\n2<->two|<->20||", "FIELDS TERMINATED BY '<->' LINES TERMINATED BY '||'"),
    ("fields end lines too", ABC, b"1,one,10,2,two,20,3", "FIELDS TERMINATED BY ',' LINES TERMINATED BY ','"),
    ("skip lines", ABC, b"a\tb\tc\nx\n1\tone\t1\n", "IGNORE 2 LINES"),
    ("skip more than there is", ABC, b"1\tone\t1\n", "IGNORE 5 ROWS"),
    ("columns", ABC, b"one\t1\ntwo\t2\n", "(b, a)"),
    ("variables", ABC, b"1\tone\t5\n2\ttwo\t6\n3\t\\N\t7\n", "(a, @x, @y) SET b = CONCAT(UPPER(@x), '!'), c = @y * 10"),
    ("set of a column", ABC, b"1\tone\n2\ttwo\n", "(a, b) SET c = a + 100, b = CONCAT(b, c)"),
    ("set default", ABC, b"1\tone\t3\n", "(a, b, @z) SET c = DEFAULT"),
    ("set null", ABC, b"1\tone\n2\ttwo\n", "(@p, b) SET a = NULL"),
    ("unused variable", ABC, b"1\tx\tone\n", "(a, @d, b)"),
    ("missing variable", ABC, b"1\n2\tx\n", "(a, @d) SET b = @d"),
    ("set subquery", ABC, b"1\tone\n2\ttwo\n", "(a, b) SET c = (SELECT 40 + 2)"),
    ("too few", ABC, b"1\tone\t1\n2\n3\tthree\n", ""),
    ("too few, many types", "a INT NOT NULL PRIMARY KEY, b INT NOT NULL DEFAULT 3, c VARCHAR(5) NOT NULL DEFAULT 'x', d DATE,"
     " e DECIMAL(5,2) NOT NULL, f INT DEFAULT 9, g SET('a','b') NOT NULL", b"1\n2\t2\ty\t2020-01-01\n", ""),
    ("too many", ABC, b"1\tone\t1\textra\n2\ttwo\t2\t\n3\tthree\t3\n4\tf\t4\tx\ty\n", ""),
    ("bad integer", ABC, b"1\tone\tx\n2x\ttwo\t2\n\tthree\t3\n", ""),
    ("out of range", "a TINYINT PRIMARY KEY, b TINYINT UNSIGNED", b"1\t255\n2\t256\n3\t-1\n", ""),
    ("too long", ABC, "1\tabcdefghijkl\t1\n2\tabc          \t2\n3\täöüäöüäöüä\t3\n4\täöüäöüäöüäö\t4\n".encode(), ""),
    ("dates", "a INT PRIMARY KEY, d DATE, t DATETIME, s TIME", b"1\t2020-02-30\t2020-01-01 10:00:00\t10:11:12\n"
     b"2\t\t\t\n3\t2020-02-28\tx\t-1:2:3\n", ""),
    ("null to not null", "a INT NOT NULL, b INT NOT NULL, c VARCHAR(3) NOT NULL", b"1\t\\N\tx\n2\t2\t\\N\n", ""),
    ("null to timestamp", "a INT PRIMARY KEY, t TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00'", b"1\t2021-01-01\n", ""),
    ("duplicates", ABC, b"1\tone\t1\n1\tuno\t2\n2\ttwo\t2\n1\tun\t3\n", ""),
    ("duplicates in a second key", "a INT PRIMARY KEY, b VARCHAR(5) UNIQUE", b"1\tx\n2\tx\n1\ty\n3\ty\n", ""),
    ("generated values", "a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(5)", b"\\N\tx\n0\ty\n7\tz\n\\N\tw\n", ""),
    ("generated, not in the file", "a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(5)", b"x\ny\nz\n", "(b)"),
    ("enum and set", "a ENUM('x','y'), b SET('p','q'), c BIT(4), d YEAR", b"x\tp,q\t\x05\t2020\ny\tq\t\t70\n2\t3\t\x10\t99\nz\tr\t\x01\t1\n", ""),
    ("numbers", "a FLOAT, b DOUBLE, c DECIMAL(6,2)", b"1.5\t1e3\t1234.567\n-0.25\t-1e-3\t99999\n2\t1x\t\n", ""),
    ("blobs", "a INT PRIMARY KEY, b BLOB, c TEXT", b"1\t\x01\xff\x80\tabc\n2\t\t\n", "(a, b, c)"),
    ("binary file", "a INT PRIMARY KEY, b VARCHAR(10)", "1\tä\n".encode(), "CHARACTER SET binary"),
    ("latin1 file", "a INT PRIMARY KEY, b VARCHAR(10)", "1\tä€\n".encode("cp1252"), "CHARACTER SET latin1"),
    ("latin1 variable", "a INT PRIMARY KEY, b VARCHAR(10)", "1\tä\n".encode("latin1"), "CHARACTER SET latin1 (a, @b) SET b = UPPER(@b)"),
    ("fixed rows", "a INT(3), b CHAR(4), c INT(2)", "123abcd45\n  1x      7\n99\n  1yy  9 zz\n".encode(),
     "CHARACTER SET latin1 FIELDS TERMINATED BY '' ENCLOSED BY ''"),
    ("a thousand rows", ABC, b"".join(b"%d\trow %d\t%d\n" % (n, n % 100, n) for n in range(1000)), ""),
    ("wrong separator", ABC, b"1\n", "FIELDS ENCLOSED BY 'ab'"),
    ("unknown column", ABC, b"1\n", "(a, nope)"),
]


def run(connection, sql):
    """What a statement answers: error code and message or affected, text, last id; then its warnings."""
    import pymysql
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
        result = connection._result
        answer = (result.affected_rows, (result.message or b"").decode(), result.insert_id)
    except pymysql.err.MySQLError as error:
        answer = error.args
    cursor.execute("SHOW WARNINGS")
    return answer, cursor.fetchall()


def rows(connection, columns):
    cursor = connection.cursor()
    cursor.execute("SELECT * FROM t ORDER BY 1, 2")
    return cursor.fetchall()


def same(path, ours, theirs):
    """Every case, both modes, both places, every way to treat duplicates."""
    failures = []
    for name, columns, content, clauses in CASES:
        path.write_bytes(content)
        path.chmod(0o644)
        for mode in (STRICT, ""):
            for local in ("", "LOCAL "):
                for duplicates in ("", "IGNORE ", "REPLACE "):
                    if mode == "" and duplicates == "IGNORE ":
                        continue
                    seen = []
                    for connection in (ours, theirs):
                        cursor = connection.cursor()
                        cursor.execute(f"SET sql_mode = '{mode}', time_zone = '+00:00', @d = NULL, @x = NULL, @z = NULL")
                        cursor.execute("DROP TABLE IF EXISTS t")
                        cursor.execute(f"CREATE TABLE t ({columns}) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
                        sql = f"LOAD DATA {local}INFILE '{path}' {duplicates}INTO TABLE t {clauses}"
                        answer, warnings = run(connection, sql)
                        seen.append((answer, warnings, rows(connection, columns)))
                    if normal(seen[0]) != normal(seen[1]):
                        failures.append(f"{name} [{mode[:6]}] {local}{duplicates}: {clauses}\n  here   {seen[0]}\n  MariaDB {seen[1]}")
    expect(not failures, f"{len(failures)} differ:\n" + "\n".join(failures))


def normal(seen):
    """Without what may differ: MariaDB names a key by itself, MySQL with its table, and words some errors otherwise."""
    answer, warnings, found = seen

    def text(message):
        if not isinstance(message, str):
            return message
        return message.replace("for key 't.", "for key '").replace("`test`.`t`.", "").replace("`", "'")

    failed = isinstance(answer[0], int) and len(answer) == 2
    answer = tuple(text(part) for part in answer)
    if failed:
        # MariaDB goes on to the end of the line, and repeats itself.
        return answer[0], found

    def warning(level, code, message):
        # What is no double is that in MySQL 9.
        double = code == 1366 and re.fullmatch("Incorrect (?:DOUBLE|FLOAT) value: .* (for column .*)", message, re.DOTALL)
        return (level, 1265, f"Data truncated {double[1]}") if double else (level, code, text(message))

    return answer, tuple(warning(*each) for each in warnings), found


def main():
    with Scratch() as place:
        files = pathlib.Path(place) / "files"
        files.mkdir()
        os.chmod(place, 0o755)
        server = Omnibus(place, f"--secure-file-priv={files}", "--local-infile=ON")
        peer = MariaDB(place, "--local-infile=ON")
        server.start()
        peer.start()
        try:
            for one in (server, peer):
                client(one, "CREATE DATABASE IF NOT EXISTS test CHARACTER SET utf8mb4")
            ours = connect(server, database="test", local_infile=1, charset="utf8mb4", autocommit=True)
            theirs = connect(peer, database="test", local_infile=1, charset="utf8mb4", autocommit=True)
            same(files / "data.txt", ours, theirs)
            who_may(server, files)
            load_file(server, peer, files)
            local_rules(server, files)
            transactions(server, files)
            waits(server, files)
            large(server, files)
            tools(server, files)
            outfiles(server, files, ours, theirs)
            client(server, "DROP DATABASE test; CREATE DATABASE test")
            ours = connect(server, database="test", local_infile=1, charset="utf8mb4", autocommit=True)
            logged(server, peer, ours, files)
            statements(server, peer, files)
            # Without the option nothing may be read; with none, anything but the data directory.
            for option, expected in (("NULL", 1290), ("", 0)):
                server.stop()
                server.options[0] = f"--secure-file-priv={option}"
                server.start()
                outside = pathlib.Path(place) / "outside.txt"
                outside.write_bytes(b"5\n")
                again = connect(server, database="test", autocommit=True).cursor()
                again.execute("CREATE TABLE IF NOT EXISTS one (a INT)")
                code = error_code(lambda: again.execute(f"LOAD DATA INFILE '{outside}' INTO TABLE one"))
                expect(code == expected, f"secure_file_priv={option}: {code}")
                code = error_code(lambda: again.execute(f"LOAD DATA INFILE '{server.datadir}/auto.cnf' INTO TABLE one"))
                expect(code == 1290, f"the data directory was read with secure_file_priv={option}: {code}")
            relative(server, again)
        finally:
            server.stop()
            peer.stop()
    print("load_data: ok")


def relative(server, cursor):
    """Names that are relative: in the default database's folder, or where they say, below a folder of their own. `secure_file_priv` is empty."""
    cursor.execute("CREATE DATABASE IF NOT EXISTS `a-b c`")
    cursor.execute("CREATE OR REPLACE TABLE two (a INT)")
    cursor.execute("SELECT 7 INTO OUTFILE 'mine'")
    for name in ("mine", "test/mine", "./test/mine"):
        cursor.execute(f"LOAD DATA INFILE '{name}' INTO TABLE two")
    cursor.execute("SELECT COUNT(*), MIN(a), LOAD_FILE('test/mine'), LOAD_FILE('mine') FROM two")
    expect(cursor.fetchall() == ((3, 7, b"7\n", None),), "relative names")
    expect((server.datadir / "files/test/mine").read_text() == "7\n", "where they are")
    cursor.execute("USE `a-b c`")
    cursor.execute("SELECT 8 INTO DUMPFILE 'its'")
    expect((server.datadir / "files/a-b@0020c/its").read_text() == "8", "a database with a space")
    for name, wanted in (("mine", (13, 29)), ("../auto.cnf", (13, 29)), ("test/../../auto.cnf", (1290,)), ("./", (1290,))):
        code = error_code(lambda: cursor.execute(f"LOAD DATA INFILE '{name}' INTO TABLE test.two"))  # noqa: B023
        expect(code in wanted, f"LOAD DATA INFILE '{name}': {code}")
    for name, wanted in (("its", 1086), ("test/../../new", 1290), ("deep/er/new", 1290)):
        code = error_code(lambda: cursor.execute(f"SELECT 1 INTO OUTFILE '{name}'"))  # noqa: B023
        expect(code == wanted, f"INTO OUTFILE '{name}': {code}")


def who_may(server, files):
    (files / "p.txt").write_bytes(b"1\n")
    client(server, "CREATE USER bob IDENTIFIED BY 'x'; GRANT SELECT, INSERT, CREATE ON test.* TO bob; CREATE TABLE test.p (a INT)")
    bob = connect(server, user="bob", password="x", database="test", local_infile=1, autocommit=True)
    load = f"INFILE '{files}/p.txt' INTO TABLE p"
    code = error_code(lambda: bob.cursor().execute(f"LOAD DATA {load}"))
    expect(code == 1045, f"without FILE: {code}")
    bob.cursor().execute(f"LOAD DATA LOCAL {load}")
    code = error_code(lambda: bob.cursor().execute(f"LOAD DATA LOCAL INFILE '{files}/p.txt' REPLACE INTO TABLE p"))
    expect(code == 1142, f"REPLACE without DELETE: {code}")
    client(server, "GRANT FILE ON *.* TO bob")
    bob.cursor().execute(f"LOAD DATA {load}")
    for outside, expected in (("/etc/hostname", 1290), (f"{files}/../x", 1290), ("x", 1290), (f"{files}/none", 13), (f"{files}", 1085)):
        code = error_code(lambda: bob.cursor().execute(f"LOAD DATA INFILE '{outside}' INTO TABLE p"))
        expect(code == expected, f"{outside}: {code}")
    code = error_code(lambda: bob.cursor().execute(f"PREPARE s FROM \"LOAD DATA {load.replace(chr(39), chr(39) * 2)}\""))
    expect(code in (1064, 1295), f"prepared: {code}")


def load_file(server, peer, files):
    """LOAD_FILE here and on MariaDB, and who gets NULL."""
    (files / "bytes").write_bytes(bytes(range(256)) * 5)
    (files / "long").write_bytes(b"x" * 2_000_000)
    os.mkfifo(files / "fifo")
    os.symlink("/etc/hostname", files / "link")
    os.chmod(files / "bytes", 0o644)
    seen = []
    for one in (server, peer):
        cursor = connect(one, database="test", autocommit=True).cursor()
        cursor.execute(f"SELECT LOAD_FILE('{files}/bytes'), LOAD_FILE(NULL), LOAD_FILE('{files}/none'), LENGTH(LOAD_FILE('{files}/bytes')) + 1")
        seen.append(cursor.fetchall())
    expect(seen[0] == seen[1] and seen[0][0][0] == bytes(range(256)) * 5, f"LOAD_FILE: {seen}")
    session = connect(server, database="test", autocommit=True).cursor()

    def value(sql, cursor=session):
        cursor.execute(sql)
        return cursor.fetchall()[0][0]

    for name in (f"{files}/fifo", f"{files}/link", f"{files}", "/etc/hostname", f"{files}/../x", f"{server.datadir}/auto.cnf", "x", "\\0"):
        found = value(f"SELECT LOAD_FILE('{name}')")
        expect(found is None, f"{name}: {found!r}")
    session.execute("CREATE TABLE lf (name VARCHAR(200), body LONGBLOB)")
    session.execute(f"INSERT INTO lf (name) VALUES ('{files}/bytes'), ('{files}/none')")
    session.execute("UPDATE lf SET body = LOAD_FILE(name)")
    expect(value("SELECT GROUP_CONCAT(IFNULL(LENGTH(body), 'none') ORDER BY name) FROM lf") == "1280,none", "LOAD_FILE of each row")
    # Of a file that is longer than a packet there is a warning.
    client(server, "SET GLOBAL max_allowed_packet = 1048576")
    small = connect(server, database="test", autocommit=True).cursor()
    expect(value(f"SELECT LOAD_FILE('{files}/long')", small) is None, "a file longer than max_allowed_packet")
    expect(value("SHOW COUNT(*) WARNINGS", small) == 1, "no warning of a long file")
    client(server, "SET GLOBAL max_allowed_packet = DEFAULT")
    expect(value(f"SELECT LENGTH(LOAD_FILE('{files}/long'))") == 2_000_000, "a long file")
    # FILE is asked of who the call acts for: a view's definer.
    client(server, "CREATE USER eve IDENTIFIED BY 'x'; GRANT SELECT ON test.* TO eve;"
                   f"CREATE VIEW test.lv AS SELECT LENGTH(LOAD_FILE('{files}/bytes')) AS n; CREATE SQL SECURITY INVOKER VIEW test.li AS SELECT LENGTH(LOAD_FILE('{files}/bytes')) AS n")
    eve = connect(server, user="eve", password="x", database="test", autocommit=True).cursor()
    found = [value(sql, eve) for sql in (f"SELECT LOAD_FILE('{files}/bytes')", "SELECT n FROM li", "SELECT n FROM lv")]
    expect(found == [None, None, 1280], f"without FILE: {found}")
    client(server, "GRANT FILE ON *.* TO eve")
    expect(value(f"SELECT LENGTH(LOAD_FILE('{files}/bytes'))", eve) == 1280, "with FILE")
    client(server, "DROP VIEW test.lv, test.li; DROP TABLE test.lf; DROP USER eve")


def local_rules(server, files):
    (files / "l.txt").write_bytes(b"1\n2\n")
    sql = f"LOAD DATA LOCAL INFILE '{files}/l.txt' INTO TABLE p"
    closed = connect(server, database="test", autocommit=True)
    code = error_code(lambda: closed.cursor().execute(sql))
    expect(code == 3948, f"a client that sends no files: {code}")
    session = connect(server, database="test", local_infile=1, autocommit=True)
    client(server, "SET GLOBAL local_infile = 0")
    code = error_code(lambda: session.cursor().execute(sql))
    expect(code == 3948, f"local_infile=0: {code}")
    client(server, "SET GLOBAL local_infile = 1")
    session.cursor().execute(sql)
    # No request goes out for a statement that cannot succeed: the client would have to open the file.
    code = error_code(lambda: session.cursor().execute("LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE nope"))
    expect(code == 1146, f"a table that is not there: {code}")
    # A file that the client does not have: it answers with nothing, and the connection goes on.
    code = error_code(lambda: session.cursor().execute("LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE p"))
    expect(code != 0, "a file that is not there was loaded")
    cursor = session.cursor()
    cursor.execute("SELECT 1")
    expect(cursor.fetchall() == ((1,),), "the connection is out of step")
    # An error that shows at the end of the file.
    client(server, "CREATE TABLE test.u (a INT PRIMARY KEY, b INT)")
    (files / "l.txt").write_bytes(b"".join(b"%d\t%d\n" % (n, n) for n in range(100_000)) + b"x\ty\n")
    cursor.execute("SET sql_mode = 'STRICT_TRANS_TABLES'")
    code = error_code(lambda: cursor.execute(sql.replace("INTO TABLE p", "REPLACE INTO TABLE u")))
    expect(code == 1366, f"an error in the last line: {code}")
    cursor.execute("SELECT COUNT(*) FROM u")
    expect(cursor.fetchall() == ((0,),), "rows of a failed statement stayed")
    # In a multi-statement, replies before it arrive in order.
    (files / "l.txt").write_bytes(b"1\t2\n")
    found = client(server, f"SELECT 'before'; LOAD DATA LOCAL INFILE '{files}/l.txt' INTO TABLE test.u; SELECT a, b FROM test.u",
                   "--local-infile=1", "--delimiter=;")
    expect(found == "before\n1\t2\n", found)
    # KILL QUERY while the file comes: the rest is read and thrown away, and the connection goes on.
    import pymysql
    victim = connect(server, database="test", local_infile=1, autocommit=True)
    victim._execute_command(3, b"LOAD DATA LOCAL INFILE 'x' INTO TABLE u")
    victim._read_packet(pymysql.connections.MysqlPacket)
    victim.write_packet(b"8\t8\n")
    state = f"SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {victim.thread_id()}"
    wait_for(lambda: "reading file" in client(server, state), "SHOW PROCESSLIST does not tell of the file")
    client(server, f"KILL QUERY {victim.thread_id()}")
    victim.write_packet(b"9\t9\n")
    victim.write_packet(b"")
    code = error_code(lambda: victim._read_packet(pymysql.connections.MysqlPacket))
    expect(code == 1317, f"KILL QUERY while the file comes: {code}")
    expect(run(victim, "SELECT COUNT(*) FROM u WHERE a IN (8, 9)")[0][0] == 1, "the connection is out of step")
    expect(client(server, "SELECT COUNT(*) FROM test.u WHERE a IN (8, 9)") == "0\n", "a killed statement loaded rows")
    # The client goes away in the middle.
    broken = connect(server, database="test", local_infile=1, autocommit=True)
    broken._execute_command(3, f"LOAD DATA LOCAL INFILE 'x' INTO TABLE u".encode())
    broken._read_packet(pymysql.connections.MysqlPacket)
    broken.write_packet(b"7\t7\n")
    broken._force_close()
    gone = f"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {broken.thread_id()}"
    wait_for(lambda: client(server, gone) == "0\n", "a client that went away is still there")
    expect(client(server, "SELECT COUNT(*) FROM test.u WHERE a = 7") == "0\n", "half a file was loaded")


def transactions(server, files):
    (files / "t.txt").write_bytes(b"10\t1\n11\t1\n")
    session = connect(server, database="test", autocommit=False)
    cursor = session.cursor()
    cursor.execute(f"LOAD DATA INFILE '{files}/t.txt' INTO TABLE u")
    expect(client(server, "SELECT COUNT(*) FROM test.u WHERE a >= 10") == "0\n", "seen before the commit")
    session.rollback()
    cursor.execute("SELECT COUNT(*) FROM u WHERE a >= 10")
    expect(cursor.fetchall() == ((0,),), "a rollback left rows")
    session.commit()


def waits(server, files):
    """A statement that waits for a row lock reads its file again from the start."""
    client(server, "CREATE TABLE test.w (a INT PRIMARY KEY, b INT); INSERT INTO test.w VALUES (50, 0)")
    (files / "w.txt").write_bytes(b"".join(b"%d\t1\n" % n for n in range(100)))
    for local in ("", "LOCAL "):
        holder = connect(server, database="test", autocommit=False)
        holder.cursor().execute("UPDATE w SET b = 5 WHERE a = 50")
        loader = connect(server, database="test", local_infile=1, autocommit=True)
        done = []
        thread = threading.Thread(target=lambda: done.append(
            loader.cursor().execute(f"LOAD DATA {local}INFILE '{files}/w.txt' REPLACE INTO TABLE w")))
        thread.start()
        wait_for(lambda: "waiting for a lock" in client(server, "SELECT STATE FROM information_schema.PROCESSLIST"), "the load does not wait")
        holder.commit()
        thread.join(PATIENCE_S)
        expect(len(done) == 1, "the load did not go on")
        expect(client(server, "SELECT COUNT(*), SUM(b) FROM test.w") == "100\t100\n", "other rows than the file's")


def large(server, files):
    """Far more than is kept in memory, sent by the client."""
    path = files / "large.txt"
    with open(path, "wb") as out:
        for n in range(60_000):
            out.write(b"%d\t%s\n" % (n, b"x" * 180))
    client(server, "CREATE TABLE test.big (a INT PRIMARY KEY, b VARCHAR(200))")
    client(server, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE test.big", "--local-infile=1")
    found = client(server, "SELECT COUNT(*), SUM(a), MIN(LENGTH(b)) FROM test.big")
    expect(found == f"60000\t{sum(range(60_000))}\t180\n", found)


def tools(server, files):
    (files / "u.txt").write_bytes(b"21,1\n22,2\n")
    run = subprocess.run(["mariadb-import", "--no-defaults", f"--socket={server.socket}", "-uroot", "--local",
                          "--fields-terminated-by=,", "test", str(files / "u.txt")], capture_output=True, text=True)
    expect(run.returncode == 0 and "Records: 2  Deleted: 0  Skipped: 0  Warnings: 0" in run.stdout, f"{run}")
    expect(client(server, "SELECT a, b FROM test.u WHERE a > 20 ORDER BY a") == "21\t1\n22\t2\n", "mariadb-import loaded otherwise")


OUTFILES = ["", "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"'", "FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n'",
            "FIELDS ESCAPED BY '' TERMINATED BY '|'", "LINES STARTING BY '>> '", "FIELDS TERMINATED BY 'n'",
            "FIELDS TERMINATED BY ';;' LINES TERMINATED BY '##\\n'", "FIELDS ENCLOSED BY '\"' ESCAPED BY '\"'", "CHARACTER SET latin1"]


def outfiles(server, files, ours, theirs):
    """What INTO OUTFILE writes: the same bytes as MariaDB, and LOAD DATA reads them back."""
    columns = ("a INT PRIMARY KEY, b VARCHAR(40), c DOUBLE, d DECIMAL(8,2), e DATE, f DATETIME(3), g VARBINARY(20), h ENUM('x','y'),"
               " i TIMESTAMP NULL, j BIT(12), k YEAR, l SET('p','q')")
    rows = ["(1, 'plain', 1.5, 12.34, '2020-01-02', '2020-01-02 03:04:05.678', 0x000102, 'x', '2020-06-01 12:00:00', 5, 2020, 'p,q')",
            r"(2, 'tab\t nl\n bs\\ q\" c, n1 | #', -0.001, -1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            "(3, 'äöü €', 1e20, 0, '0001-01-01', '9999-12-31 23:59:59', '', 'y', NULL, 4095, 1999, '')", "(4, '', 0, 0, NULL, NULL, 'NULL', 'x', NULL, 0, 2000, 'q')",
            "(5, 'NULL', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"]
    failures = []
    for connection in (ours, theirs):
        cursor = connection.cursor()
        cursor.execute("SET sql_mode = '', time_zone = '+02:00'")
        for name in ("o", "back"):
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
            cursor.execute(f"CREATE TABLE {name} ({columns}) DEFAULT CHARSET=utf8mb4")
        cursor.execute("INSERT INTO o VALUES " + ",".join(rows))
    for clauses in OUTFILES:
        written = []
        for connection in (ours, theirs):
            path = files / "out.txt"
            path.unlink(missing_ok=True)
            answer, _ = run(connection, f"SELECT * FROM o ORDER BY a INTO OUTFILE '{path}' {clauses}")
            written.append((answer[0], path.read_bytes()))
        if written[0] != written[1]:
            failures.append(f"{clauses}\n  here    {written[0]}\n  MariaDB {written[1]}")
            continue
        path.chmod(0o644)
        # What MySQL writes with these it cannot read either.
        if "ESCAPED BY '" in clauses or "latin1" in clauses or "'n'" in clauses:
            continue
        cursor = ours.cursor()
        cursor.execute("TRUNCATE back")
        cursor.execute(f"LOAD DATA INFILE '{path}' INTO TABLE back CHARACTER SET utf8mb4 {clauses} (a,b,c,d,e,f,g,h,i,@j,k,l) SET j = CAST(CONV(HEX(@j), 16, 10) AS UNSIGNED)")
        cursor.execute("SELECT COUNT(*) FROM o JOIN back USING (a) WHERE o.b <=> back.b AND o.c <=> back.c AND o.d <=> back.d AND o.e <=> back.e"
                       " AND o.f <=> back.f AND o.g <=> back.g AND o.h <=> back.h AND o.i <=> back.i AND o.j <=> back.j AND o.k <=> back.k AND o.l <=> back.l")
        found = cursor.fetchone()[0]
        if found != 5:
            cursor.execute("SELECT * FROM back")
            failures.append(f"{clauses}: {found} of 5 rows came back: {cursor.fetchall()}")
    expect(not failures, "INTO OUTFILE:\n" + "\n".join(failures))
    cursor = ours.cursor()
    code = error_code(lambda: cursor.execute(f"SELECT 1 INTO OUTFILE '{files}/out.txt'"))
    expect(code == 1086, f"an existing file: {code}")
    code = error_code(lambda: cursor.execute(f"SELECT 1 INTO OUTFILE '{server.datadir}/x'"))
    expect(code == 1290, f"into the data directory: {code}")
    cursor.execute(f"SELECT g FROM o WHERE a = 1 INTO DUMPFILE '{files}/dump.bin'")
    expect((files / "dump.bin").read_bytes() == b"\0\1\2", "INTO DUMPFILE")
    code = error_code(lambda: cursor.execute(f"SELECT g FROM o INTO DUMPFILE '{files}/dump2.bin'"))
    expect(code == 1172 and not (files / "dump2.bin").exists(), f"two rows INTO DUMPFILE: {code}")
    bob = connect(server, user="bob", password="x", database="test")
    client(server, "REVOKE FILE ON *.* FROM bob")
    code = error_code(lambda: bob.cursor().execute(f"SELECT 1 INTO OUTFILE '{files}/bob.txt'"))
    expect(code == 1045, f"without FILE: {code}")
    client(server, "GRANT FILE ON *.* TO bob")
    # A dump of data files, and back.
    tab = files / "tab"
    tab.mkdir()
    dump = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", f"--tab={tab}", "test", "o"],
                          capture_output=True, text=True)
    expect(dump.returncode == 0, dump.stderr)
    expect((tab / "o.txt").read_bytes().count(b"\n") == 6 and "CREATE TABLE `o`" in (tab / "o.sql").read_text(), "--tab")


def logged(server, peer, ours, files):
    """Rows as usual in the log."""
    (files / "r.txt").write_bytes(b"".join(b"%d\tv%d\n" % (n, n) for n in range(500)))
    client(peer, "DROP DATABASE test")
    cursor = ours.cursor()
    cursor.execute("CREATE TABLE r (a INT PRIMARY KEY, b VARCHAR(10))")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{files}/r.txt' INTO TABLE r (a, b) SET a = a + 1")
    client(server, "DROP USER bob")
    last = server.binlogs()[-1]
    client(server, "FLUSH LOGS")
    reader = subprocess.run(["mariadb-binlog", "--no-defaults", "-v", last], capture_output=True, text=True, errors="replace")
    expect(reader.stdout.count("### INSERT INTO `test`.`r`") == 500, "the log does not have the rows")


def statements(server, peer, files):
    """binlog_format=STATEMENT: the file is in the log, and a MariaDB that is given the log has the same tables."""
    tables = {"a": "id INT PRIMARY KEY, b VARCHAR(200)", "c": "id INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(20), c INT", "e": "id INT"}
    client(server, "FLUSH LOGS")
    before = len(server.binlogs())
    client(server, "CREATE DATABASE st CHARACTER SET latin1")
    for name, columns in tables.items():
        client(server, f"CREATE TABLE st.{name} ({columns}) CHARACTER SET utf8mb4")
    (files / "s1.txt").write_bytes(b"".join(b"%d\trow %d %s\n" % (n, n, b"y" * 150) for n in range(3000)))
    (files / "s2.txt").write_bytes(b"".join(b"%d\tnew %d\n" % (n, n) for n in range(2990, 3010)))
    (files / "s3.csv").write_bytes('"x""\xe4,1",5\r\n"z",NULL\r\n'.encode("latin1"))
    (files / "s4.txt").write_bytes(b"")
    session = connect(server, database="st", local_infile=1, autocommit=True, charset="utf8mb4")
    cursor = session.cursor()
    cursor.execute("SET SESSION binlog_format = STATEMENT, @add = 10")
    cursor.execute(f"LOAD DATA INFILE '{files}/s1.txt' INTO TABLE a")
    cursor.execute(f"load data low_priority local infile '{files}/s2.txt' into table st.a")
    cursor.execute(f"LOAD DATA INFILE '{files}/s2.txt' REPLACE INTO TABLE a /* again */ (id, @b) SET b = CONCAT(@b, '!')")
    cursor.execute("SET INSERT_ID = 40")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{files}/s3.csv' INTO TABLE c FIELDS TERMINATED BY ',' ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' (b, @n)"
                   " SET c = @n + @add")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{files}/s4.txt' INTO TABLE e")
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO e VALUES (1)")
    cursor.execute("SAVEPOINT s")
    cursor.execute(f"LOAD DATA INFILE '{files}/s2.txt' INTO TABLE e (id, @x)")
    cursor.execute("ROLLBACK TO s")
    code = error_code(lambda: cursor.execute(f"LOAD DATA INFILE '{files}/s2.txt' INTO TABLE a"))
    expect(code == 1062, f"a duplicate: {code}")
    cursor.execute("COMMIT")
    cursor.execute("SET SESSION binlog_format = MIXED")
    cursor.execute(f"LOAD DATA INFILE '{files}/s4.txt' INTO TABLE e")
    (files / "s5.txt").write_bytes(b"100\n101\n")
    cursor.execute(f"LOAD DATA INFILE '{files}/s5.txt' INTO TABLE e")
    client(server, "FLUSH LOGS")
    logs = server.binlogs()[before - 1:-1]
    listing = subprocess.run(["mariadb-binlog", "--no-defaults", f"--local-load={files}", *logs], capture_output=True)
    expect(listing.returncode == 0, listing.stderr.decode())
    expect(listing.stdout.count(b" LOCAL INFILE ") == 4, f"{listing.stdout.count(b' LOCAL INFILE ')} statements in the log")
    client(peer, "DROP DATABASE IF EXISTS st")
    applied = subprocess.run(["mariadb", "--no-defaults", f"--socket={peer.socket}", "-uroot", "--local-infile=1", "--binary-mode"],
                             input=listing.stdout, capture_output=True)
    expect(applied.returncode == 0, applied.stderr.decode())
    for name in tables:
        query = f"SELECT * FROM st.{name} ORDER BY 1"
        here, there = client(server, query), client(peer, query)
        expect(here == there, f"st.{name}: {len(here.splitlines())} rows here, {len(there.splitlines())} there\n{here[:300]}\n{there[:300]}")
    # Recovery executes no SQL.
    server.kill()
    server.start()
    expect(client(server, "SELECT COUNT(*) FROM st.a") == "3010\n", "rows were lost")
    expect(client(server, "SELECT COUNT(*) FROM st.e") == "3\n", "rows were lost")


if __name__ == "__main__":
    main()
