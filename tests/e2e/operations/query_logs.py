#!/usr/bin/python3
"""The slow query log and the general log: what is in them, files and tables, rotation, passwords, a disk that is full; read by
pt-query-digest, mysqldumpslow and mariadb-dumpslow as their own.

Ring: all.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import real_peers  # noqa: E402
from omnibus import Omnibus, Scratch, Session, client, expect, wait_for  # noqa: E402

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


def entries(path):
    """Entries of a slow log: their figures and their text."""
    found = []
    for part in pathlib.Path(path).read_text().split("# Time: ")[1:]:
        head = re.match(rf"{STAMP}\n# User@Host: (.*)  Id: +(\d+)\n# Query_time: (\d+\.\d{{6}})  Lock_time: (\d+\.\d{{6}}) "
                        r"Rows_sent: (\d+)  Rows_examined: (\d+)\n", part)
        expect(head, f"the head of an entry: {part[:300]!r}")
        found.append((head[1], float(head[3]), float(head[4]), int(head[5]), int(head[6]), part[head.end():]))
    return found


def matching(path, word):
    return [entry for entry in entries(path) if word in entry[5]]


def what_is_slow(server, slow):
    """long_query_time to the microsecond, rows, lock waits, what uses no index, what is examined too little."""
    a, b = Session(server), Session(server)
    a.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)", "USE d")
    a.run("INSERT INTO t VALUES " + ",".join(f"({n},{n})" for n in range(100)))
    a.run("SELECT SLEEP(0.02) AS before_it_is_on")
    a.run("SET GLOBAL slow_query_log=ON", "SET long_query_time=0.01")
    expect(a("SELECT @@long_query_time")[0][0] == 0.01, "fractions of a second")
    a.run("SELECT SLEEP(0.02) AS slow_one", "SELECT 1 AS quick_one")
    # A session that was there before SET GLOBAL has its own time.
    a.run("SET GLOBAL long_query_time=0")
    b.run("SELECT 1 AS other_session")
    c = Session(server, database="d")
    c.run("SELECT v FROM t WHERE v > 89 AND 'examined'='examined'", "SELECT v FROM t WHERE id = 7 AND 'by key'='by key'")
    before = int(client(server, "SHOW GLOBAL STATUS LIKE 'Slow_queries'").split()[1])
    c.run("SELECT 1")
    counted = int(client(server, "SHOW GLOBAL STATUS LIKE 'Slow_queries'").split()[1]) - before
    expect(counted >= 1, f"Slow_queries: {counted} more")
    b.run("BEGIN", "UPDATE d.t SET v = 0 WHERE id = 1")
    import threading
    waiter = threading.Thread(target=lambda: c.run("UPDATE t SET v = v + 1 WHERE id = 1"))
    waiter.start()
    wait_for(lambda: "waiting for a lock" in client(server, "SHOW PROCESSLIST"), "a lock wait")
    b.run("SELECT SLEEP(0.05)", "COMMIT")
    waiter.join()
    with c.db.cursor() as cursor:
        cursor.execute("SET GLOBAL long_query_time=10")
    a.run("FLUSH SLOW LOGS")
    expect(not matching(slow, "before_it_is_on") and not matching(slow, "quick_one"), "nothing that is not slow")
    expect(not matching(slow, "other_session"), "a session keeps its long_query_time")
    [(who, took, _, sent, examined, text)] = matching(slow, "slow_one")
    expect(who == "root[root] @ localhost []" and took >= 0.02 and (sent, examined) == (1, 0), f"{who} {took} {sent} {examined}")
    expect(re.fullmatch(r"use d;\nSET timestamp=\d+;\nSELECT SLEEP\(0\.02\) AS slow_one;\n", text), repr(text))
    [(_, _, _, sent, examined, _)] = matching(slow, "'examined'='examined'")
    expect((sent, examined) == (10, 100), f"{sent} of {examined} rows")
    [(_, _, _, sent, examined, _)] = matching(slow, "by key")
    expect((sent, examined) == (1, 1), f"{sent} of {examined} rows")
    [(_, took, lock, *_)] = matching(slow, "UPDATE t SET v = v + 1")
    expect(0.05 <= lock <= took, f"waited {lock} s of {took}")

    a.run("SET GLOBAL log_queries_not_using_indexes=ON", "SET long_query_time=10")
    a.run("SELECT MAX(v) AS whole FROM t", "SELECT v AS one FROM t WHERE id = 1")
    a.run("SET min_examined_row_limit=101", "SELECT MAX(v) AS too_few FROM t", "SET GLOBAL log_queries_not_using_indexes=OFF")
    a.run("SET min_examined_row_limit=0, long_query_time=0", "ALTER TABLE t ADD COLUMN w INT", "FLUSH SLOW LOGS")
    expect(len(matching(slow, "AS whole")) == 1 and not matching(slow, "AS one"), "what uses no index")
    expect(not matching(slow, "too_few"), "min_examined_row_limit")
    expect(not matching(slow, "ALTER TABLE t ADD"), "administration is not logged")
    a.run("SET GLOBAL log_slow_admin_statements=ON", "ALTER TABLE t DROP COLUMN w", "FLUSH SLOW LOGS")
    expect(len(matching(slow, "ALTER TABLE t DROP")) == 1, "unless it is asked for")
    # Prepared statements with their values, each statement of a text by itself.
    client(server, "SET long_query_time=0; PREPARE p FROM 'SELECT ? AS prepared'; SET @x = 'its value'; EXECUTE p USING @x")
    a.run("FLUSH SLOW LOGS")
    expect(matching(slow, "EXECUTE p USING @x;"), "a text's statements one by one")
    for one in (a, b, c):
        one.close()


def tools(slow):
    """What reads a MySQL's slow log reads this one."""
    run = subprocess.run(["pt-query-digest", "--limit=100%", "--no-version-check", str(slow)], capture_output=True, text=True)
    expect(run.returncode == 0, f"pt-query-digest: {run.stderr}")
    expect("SELECT SLEEP(0.02) AS slow_one" in run.stdout and "# Databases    d" in run.stdout, f"pt-query-digest: {run.stdout[:3000]}")
    run = subprocess.run(["perl", real_peers.root_with("mysql", "usr/bin/mysqldumpslow") / "usr/bin/mysqldumpslow", str(slow)], capture_output=True, text=True)
    expect(re.search(r"^Count: 1  Time=0\.0\ds \(0s\)  Lock=0\.00s \(0s\)  Rows=1\.0 \(1\), root\[root\]@localhost\n"
                     r"  SELECT SLEEP\(N\.N\) AS slow_one\n", run.stdout, re.M), f"mysqldumpslow: {run.stdout} {run.stderr}")


def mariadb_tools(directory):
    """MariaDB's reader of slow logs knows its own heads, which a server of its dialect writes."""
    server = Omnibus(directory, "--dialect=mariadb", "--slow-query-log=ON")
    server.start()
    client(server, "SET long_query_time=0.01; SELECT SLEEP(0.02) AS slow_one; SELECT 1; FLUSH SLOW LOGS", "--database=mysql")
    slow = server.datadir / client(server, "SELECT @@slow_query_log_file").strip()
    run = subprocess.run(["mariadb-dumpslow", str(slow)], capture_output=True, text=True)
    expect(re.search(r"^Count: 1  Time=0\.0\ds \(0s\)  Lock=0\.00s \(0s\)  Rows_sent=1\.0 \(1\), .*, root\[root\]@localhost\n"
                     r"  SELECT SLEEP\(N\.N\) AS slow_one\n", run.stdout, re.M), f"mariadb-dumpslow: {run.stdout} {run.stderr}")
    server.stop()


def general(server, log):
    """Every command, before it runs; what fails to parse too; no password, none of a session with sql_log_off."""
    a = Session(server)
    a.run("SET GLOBAL general_log=ON")
    client(server, "SELECT 'through the client'; SELECT 2", "--database=d")
    client(server, "SELEC nonsense", check=False)
    client(server, "CREATE USER u IDENTIFIED BY 'geheim-1'")
    client(server, "SELECT 'refused'", user="nobody", check=False)
    forged = "2026-11-26T00:00:00.000000Z\t    9 Query\tDROP TABLE forged"
    a.run(f"SELECT 1, -- \n'a' AS b,\r\n/*\n{forged}\n*/ 2")
    a.run("SET sql_log_off=ON", "SELECT 'not me'", "SET GLOBAL general_log=OFF", "FLUSH GENERAL LOGS")
    text = log.read_text()
    lines = re.findall(rf"^{STAMP}\t *(\d+) ([A-Z][A-Za-z ]*)\t(.*)$", text, re.M)
    said = [(command, argument) for _, command, argument in lines]
    expect(any(command == "Connect" and re.fullmatch("root@localhost on d using (Socket|SSL/TLS)", argument) for command, argument in said),
           f"a login: {said}")
    expect(("Connect", "Access denied for user 'nobody'@'localhost' (using password: NO)") in said, f"a refused login: {said}")
    for argument in ("SELECT 'through the client'", "SELECT 2", "SELEC nonsense"):
        expect(("Query", argument) in said, f"{argument}: {said}")
    expect(any(command == "Quit" for command, _ in said), f"the end: {said}")
    expect(any("CREATE USER u" in argument for _, argument in said) and "geheim" not in text, "an account without its password")
    expect("not me" not in text, "sql_log_off")
    expect(("Query", f"SELECT 1, -- \\n'a' AS b,\\r\\n/*\\n{forged}\\n*/ 2") in said, "a statement of several lines is one of the log")
    expect(not any(line.startswith(forged) for line in text.splitlines()), "an entry that nobody made")
    expect("started with:" in text.splitlines()[0], "the head of the file")
    a.close()


def tables(server, slow):
    """log_output=TABLE: rows in mysql.slow_log and mysql.general_log, none in the binary log or the files."""
    a = Session(server)
    size, executed = slow.stat().st_size, a.value("SELECT @@gtid_executed")
    a.run("SET GLOBAL log_output='TABLE', general_log=ON", "SET long_query_time=0", "SELECT SLEEP(0.01) AS in_a_table", "DO 1")
    a.run("SET GLOBAL general_log=OFF", "SET long_query_time=10", "FLUSH SLOW LOGS")
    rows = a("SELECT user_host, query_time >= '00:00:00.01', rows_sent, CONVERT(sql_text USING utf8mb4), start_time > NOW() - INTERVAL 1 HOUR"
             " FROM mysql.slow_log WHERE sql_text LIKE '%in\\_a\\_table'")
    expect(rows == (("root[root] @ localhost []", 1, 1, "SELECT SLEEP(0.01) AS in_a_table", 1),), rows)
    rows = a("SELECT command_type, CONVERT(argument USING utf8mb4) FROM mysql.general_log WHERE argument = 'DO 1'")
    expect(rows == (("Query", "DO 1"),), rows)
    expect(a.value("SELECT @@gtid_executed") == executed, "log rows are nobody's transactions")
    a.run("TRUNCATE mysql.general_log", "SET GLOBAL log_output='FILE'")
    expect(slow.stat().st_size - size < 1000, "nothing but a head went to the file")
    a.fails("SET GLOBAL log_output='ELSEWHERE'", 1231)
    a.close()


def rotation(server, slow):
    """A renamed file is left for a new one at FLUSH SLOW LOGS and SIGHUP; paths that are no logs are refused."""
    a = Session(server)
    a.run("SET long_query_time=0", "SELECT 'before the rename'")
    moved = slow.rename(slow.with_suffix(".1"))
    a.run("SELECT 'into the old one'", "FLUSH SLOW LOGS", "SELECT 'into the new one'", "FLUSH SLOW LOGS")
    expect(matching(moved, "into the old one") and not matching(moved, "into the new one"), "FLUSH SLOW LOGS")
    expect(matching(slow, "into the new one") and not matching(slow, "before the rename"), "the new file")
    moved = slow.rename(slow.with_suffix(".2"))
    os.kill(server.process.pid, signal.SIGHUP)
    wait_for(slow.exists, "a new file after SIGHUP")
    a.run("SELECT 'after the signal'", "FLUSH SLOW LOGS")
    expect(matching(slow, "after the signal"), "SIGHUP")
    active = pathlib.Path(server.binlogs()[-1]).name
    for path in (active, "/dev/null", "no/such/folder.log", "mysqld-auto.cnf", "../my.cnf"):
        a.fails(f"SET GLOBAL slow_query_log_file='{path}'", 1231)
    a.run("SET GLOBAL slow_query_log_file='other.log'", "SELECT 'elsewhere'", "SET GLOBAL slow_query_log_file=DEFAULT")
    expect(matching(server.datadir / "other.log", "elsewhere"), "another file")
    expect(a.value("SELECT @@slow_query_log_file") == slow.name, "its own name again")
    a.close()


def full_disk(directory):
    """A disk that takes nothing: statements go on, lost entries are counted and said."""
    mount = pathlib.Path(directory) / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(mount)], capture_output=True).returncode:
        print("query_logs: no file system may be mounted here; a full disk is not tried")
        return
    try:
        server = Omnibus(pathlib.Path(directory) / "full", f"--slow-query-log-file={mount}/slow.log", "--slow-query-log=ON", "--long-query-time=0")
        server.directory.mkdir()
        server.start()
        a = Session(server)
        for n in range(100):
            a.run(f"SELECT '{n} {'x' * 2000}'")
        a.run("FLUSH SLOW LOGS")
        lost = int(client(server, "SHOW GLOBAL STATUS LIKE 'Omnibus_query_log_lost'").split()[1])
        expect(lost > 10, f"{lost} entries lost")
        expect("entries of the query logs are lost" in server.log_tail(100), "the error log says it")
        expect(not (mount / "slow.log").read_bytes().rstrip().endswith(b"x"), "no half entry")
        a.close()
        server.stop()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def options(directory):
    """From the start, by options; a file that can't be opened switches the log off and lets the server start."""
    server = Omnibus(directory, "--general-log=ON", "--general-log-file=g.log", "--slow-query-log=ON", "--slow-query-log-file=/no/such/slow.log")
    server.start()
    client(server, "SELECT 'from the start'; FLUSH GENERAL LOGS")
    expect("from the start" in (server.datadir / "g.log").read_text(), "the general log of an option")
    expect(client(server, "SELECT @@slow_query_log").strip() == "0", "a log that can't be is off")
    expect("slow_query_log is switched off" in server.log_tail(100), "and the error log says so")
    client(server, "SELECT 'the last words'")
    server.stop()
    expect("the last words" in (server.datadir / "g.log").read_text(), "what was queued is written at the end")


def main():
    with Scratch("omnibus-query-logs-") as directory:
        directory = pathlib.Path(directory)
        (directory / "options").mkdir()
        options(directory / "options")
        (directory / "mariadb").mkdir()
        mariadb_tools(directory / "mariadb")
        (directory / "main").mkdir()
        server = Omnibus(directory / "main")
        server.start()
        slow, log = (server.datadir / client(server, f"SELECT @@{name}").strip() for name in ("slow_query_log_file", "general_log_file"))
        what_is_slow(server, slow)
        tools(slow)
        general(server, log)
        tables(server, slow)
        rotation(server, slow)
        server.stop()
        full_disk(directory)
    print("query_logs: ok")


if __name__ == "__main__":
    main()
