#!/usr/bin/python3
"""The audit log: logins, definitions, statements about accounts; the lines of MariaDB's own plugin for the same sessions, or JSON; rotation,
passwords, whose statements, what procedures and prepared statements define, a file that can't be written.

Ring: all.
"""

import itertools
import json
import os
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, Session, client, expect, wait_for  # noqa: E402

LINE = re.compile(r"(\d{8} \d\d:\d\d:\d\d),([^,]*),([^,]*),([^,]*),(\d+),(\d+),([A-Z_]+),([^,]*),(.*),(\d+)")
DEFINITIONS = r"""CREATE DATABASE d
CREATE TABLE d.t (id INT PRIMARY KEY,
    name VARCHAR(20) DEFAULT 'it''s \\ here')
ALTER TABLE d.t ADD COLUMN v INT
CREATE INDEX v ON d.t (v)
CREATE TABLE d.t (id INT)
CREATE OR REPLACE VIEW d.w AS SELECT * FROM d.t
DROP VIEW d.w
RENAME TABLE d.t TO d.u
TRUNCATE TABLE d.u
DROP TABLE d.u, d.nothing
DROP DATABASE d""".split("\n")
ACCOUNTS = """CREATE USER u IDENTIFIED BY 'geheim'
GRANT SELECT ON *.* TO u
REVOKE SELECT ON *.* FROM u
RENAME USER u TO v
DROP USER v
DROP USER nobody""".split("\n")
OTHERS = """SELECT 1
SET @x = 1
DO 1""".split("\n")


def joined(statements):
    """A line that begins with a space belongs to the one before."""
    found = []
    for line in statements:
        if line.startswith(" "):
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


def lines(path):
    """What is in the file, field by field, without what differs from run to run."""
    found = []
    for line in pathlib.Path(path).read_text().splitlines():
        match = LINE.fullmatch(line)
        expect(match, f"no line of an audit log: {line!r}")
        stamp, host, user, client_host, connection, query, operation, database, text, code = match.groups()
        expect(host == os.uname().nodename, f"the server's name: {host}")
        found.append((user, client_host, operation, database, text, int(code)))
    return found


def run_all(server, statements, *options, user="root"):
    for sql in statements:
        client(server, sql, *options, user=user, check=False)


def as_mariadb(directory):
    """The same sessions, the same lines."""
    events = "CONNECT,QUERY_DDL,QUERY_DCL"
    (directory / "peer").mkdir()
    peer = MariaDB(directory / "peer", "--plugin-load-add=server_audit", f"--server-audit-events={events}", "--server-audit-logging=ON")
    ours = Omnibus(directory / "ours", "--dialect=mariadb", f"--server-audit-events={events}", "--server-audit-logging=ON")
    ours.directory.mkdir()
    written = []
    for server in (peer, ours):
        server.start()
        path = server.datadir / "server_audit.log"
        client(server, "SELECT 'the start'", "--database=mysql")
        run_all(server, joined(DEFINITIONS) + ACCOUNTS + OTHERS)
        client(server, "SELECT 1", user="stranger", check=False)
        client(server, "SELECT 1", "--database=nowhere", check=False)
        client(server, "SET GLOBAL server_audit_logging=OFF")
        client(server, "DROP USER nobody", check=False)
        found = lines(path)
        # Before the first login of this script there are those that wait for the server to start.
        first = next(n for n, line in enumerate(found) if line[2:4] == ("CONNECT", "mysql"))
        # Which database a statement's line names depends in MariaDB on what it opened first.
        written.append([line if line[2] != "QUERY" else (*line[:3], "", *line[4:]) for line in found[first:]])
        server.stop()
    theirs, own = written
    for a, b in itertools.zip_longest(theirs, own):
        expect(a == b, f"theirs: {a}\nours:   {b}")
    expect(own[-1][4] == "'SET GLOBAL server_audit_logging=OFF'", f"who switched it off: {own[-1]}")
    print(f"audit: {len(theirs)} lines as MariaDB's")


def settled(server):
    """What was queued is in the file."""
    client(server, "FLUSH SLOW LOGS")


def texts(server, path):
    settled(server)
    found = [line[4][1:-1] for line in lines(path) if line[2] == "QUERY"]
    # Always there.
    return [text for text in found if not text.startswith("SET GLOBAL server_audit_")]


def begin(server, path):
    settled(server)
    path.write_text("")
    client(server, "FLUSH LOGS")


def whose(server, path):
    """Events and users; what a session may set that is not an administrator."""
    client(server, "SET GLOBAL server_audit_logging=ON, server_audit_events='QUERY_DML_NO_SELECT'; CREATE DATABASE d; CREATE TABLE d.t (id INT)"
                   "; CREATE USER a IDENTIFIED BY ''; CREATE USER b IDENTIFIED BY ''; GRANT ALL ON d.* TO a, b")
    client(server, "INSERT INTO d.t VALUES (1); SELECT * FROM d.t; SHOW TABLES FROM d; DELETE FROM d.t")
    expect(texts(server, path) == ["INSERT INTO d.t VALUES (1)", "DELETE FROM d.t"], texts(server, path))
    begin(server, path)
    client(server, "SET GLOBAL server_audit_events='QUERY,CONNECT', server_audit_excl_users='root, b'")
    client(server, "SELECT 'root'")
    for user in ("a", "b"):
        client(server, f"SELECT 'by {user}'", user=user)
    client(server, "SELEC nonsense", user="a", check=False)
    found = texts(server, path)
    expect([text for text in found if "by" in text] == [r"SELECT \'by a\'"], found)
    expect("SELEC nonsense" in found and "root" not in "".join(found), found)
    connected = {line[0] for line in lines(path) if line[2] == "CONNECT"}
    expect(connected == {"root", "a", "b"}, f"logins are everybody's: {connected}")
    client(server, "SET GLOBAL server_audit_incl_users='b', server_audit_events='QUERY'")
    begin(server, path)
    for user in ("root", "a", "b"):
        client(server, f"SELECT 'now by {user}'", user=user)
    expect(texts(server, path) == [r"SELECT \'now by b\'"], texts(server, path))
    client(server, "SET GLOBAL server_audit_incl_users='', server_audit_excl_users=''")
    expect(b"1227" in client(server, "SET GLOBAL server_audit_logging=OFF", user="a", check=False).stderr, "an account without rights")
    client(server, "CREATE USER c IDENTIFIED BY ''; GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO c")
    expect(b"AUDIT_ADMIN" in client(server, "SET GLOBAL server_audit_logging=OFF", user="c", check=False).stderr, "variables are not enough")
    expect(b"1231" in client(server, "SET GLOBAL server_audit_events='TABLE'", check=False).stderr, "an event that is not here")


def inside(server, path):
    """A definition is there with its own text, however it came: in a procedure, by EXECUTE, prepared, in an event; and once."""
    client(server, "SET GLOBAL server_audit_events='QUERY_DDL,QUERY_DCL'")
    session = Session(server)
    session.run("CREATE PROCEDURE d.p() BEGIN CREATE TABLE d.in_p (id INT); CREATE VIEW d.v AS SELECT 1; CREATE USER in_p IDENTIFIED BY 'geheim'; END")
    session.close()
    begin(server, path)
    client(server, "CALL d.p()")
    client(server, "PREPARE s FROM 'CREATE TABLE d.in_s (id INT)'; EXECUTE s; EXECUTE IMMEDIATE 'DROP TABLE d.in_s'")
    client(server, "DROP TABLE d.in_p")
    client(server, "DROP TABLE d.in_p", check=False)
    client(server, "ALTER USER in_p IDENTIFIED BY 'geheim'; SET PASSWORD FOR in_p = 'geheim'")
    found = texts(server, path)
    expect(found[:5] == ["CREATE TABLE d.in_p (id INT)", "CREATE VIEW d.v AS SELECT 1", r"CREATE USER in_p IDENTIFIED BY *****",
                         "CREATE TABLE d.in_s (id INT)", "DROP TABLE d.in_s"], found)
    expect(found[5:7] == ["DROP TABLE d.in_p"] * 2 and [line[5] for line in lines(path)][5:7] == [0, 1051], lines(path))
    expect(len(found) == 9 and "geheim" not in path.read_text(), found)
    begin(server, path)
    client(server, "SET GLOBAL event_scheduler=ON; CREATE EVENT d.e ON SCHEDULE AT NOW() DO CREATE TABLE d.in_e (id INT)")
    wait_for(lambda: "CREATE TABLE d.in_e (id INT)" in texts(server, path), "what an event defines")
    connected = [line for line in lines(path) if line[2] == "DISCONNECT"]
    expect(not connected, f"an event does not log in: {connected}")


def prepared(server, path):
    """Parameters of prepared statements are in the text; the text is cut where the limit says."""
    client(server, "SET GLOBAL server_audit_events='QUERY_DML', server_audit_query_log_limit=30")
    begin(server, path)
    client(server, "EXECUTE IMMEDIATE 'SELECT ?' USING 17; SELECT '0123456789012345678901234567890123456789'")
    found = texts(server, path)
    expect(found[-1] == r"SELECT \'0123456789012345678901", found)
    client(server, "SET GLOBAL server_audit_query_log_limit=DEFAULT")


def as_json(server, path):
    client(server, "SET GLOBAL server_audit_events='CONNECT,QUERY_DDL'")
    begin(server, path)
    client(server, "SET GLOBAL server_audit_output_type='json'")
    client(server, "CREATE TABLE j (\n`a\"b` INT)", "--database=d")
    settled(server)
    found = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    [query] = [line for line in found if line["operation"] == "QUERY" and "server_audit" not in line["object"]]
    expect((query["object"], query["database"], query["retcode"], query["username"], query["host"]) ==
           ("CREATE TABLE j (\n`a\"b` INT)", "d", 0, "root", "localhost"), query)
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", query["timestamp"]), query)
    mine = [line["operation"] for line in found if line["connectionid"] == query["connectionid"]]
    expect(mine == ["CONNECT", "QUERY", "DISCONNECT"], mine)
    client(server, "SET GLOBAL server_audit_output_type='file'")


def rotation(server, path):
    """By size, by the variable, by who renames the file; what a path may be."""
    client(server, "SET GLOBAL server_audit_events='QUERY_DDL', server_audit_file_rotate_size=400, server_audit_file_rotations=3")
    begin(server, path)
    session = Session(server)
    for n in range(30):
        session.run(f"CREATE TABLE d.r{n} (id INT)")
    settled(server)
    kept = sorted(file.name for file in path.parent.glob("server_audit.log*"))
    expect(kept == ["server_audit.log", *(f"server_audit.log.{n}" for n in (1, 2, 3))], kept)
    settled(server)
    last = [line for name in ("server_audit.log.3", "server_audit.log.2", "server_audit.log.1", "server_audit.log") for line in lines(path.parent / name)]
    expect([line[4] for line in last] == [f"'CREATE TABLE d.r{n} (id INT)'" for n in range(30 - len(last), 30)], last)
    session.run("SET GLOBAL server_audit_file_rotate_size=DEFAULT", "SET GLOBAL server_audit_file_rotate_now=ON")
    expect(texts(server, path) == [] and session.value("SELECT @@server_audit_file_rotate_now") == 0, "rotate_now")
    moved = path.rename(path.with_suffix(".moved"))
    session.run("CREATE TABLE d.before_signal (id INT)")
    os.kill(server.process.pid, signal.SIGHUP)
    wait_for(path.exists, "a new file after SIGHUP")
    session.run("CREATE TABLE d.after_signal (id INT)")
    expect("after_signal" in texts(server, path)[0] and "before_signal" in moved.read_text(), "SIGHUP")
    for bad in ("mysqld-auto.cnf", "/dev/null", "no/such/folder.log"):
        session.fails(f"SET GLOBAL server_audit_file_path='{bad}'", 1231)
    folder = server.directory / "elsewhere"
    folder.mkdir()
    session.run(f"SET GLOBAL server_audit_file_path='{folder}'", "CREATE TABLE d.elsewhere (id INT)")
    expect(texts(server, folder / "server_audit.log") == ["CREATE TABLE d.elsewhere (id INT)"], "a folder")
    status = dict(session("SHOW GLOBAL STATUS LIKE 'Server_audit%'"))
    expect(status == {"Server_audit_active": "ON", "Server_audit_current_log": str(folder / "server_audit.log"),
                      "Server_audit_last_error": "", "Server_audit_writes_failed": "0"}, status)
    session.run("SET GLOBAL server_audit_logging=OFF")
    expect("SET GLOBAL server_audit_logging=OFF" in (folder / "server_audit.log").read_text(), "who switched it off")
    expect(dict(session("SHOW GLOBAL STATUS LIKE 'Server_audit%'"))["Server_audit_active"] == "OFF", "off")
    session.close()


def main():
    with Scratch("omnibus-audit-") as directory:
        directory = pathlib.Path(directory)
        as_mariadb(directory)
        (directory / "main").mkdir()
        server = Omnibus(directory / "main")
        server.start()
        path = server.datadir / "server_audit.log"
        whose(server, path)
        inside(server, path)
        prepared(server, path)
        as_json(server, path)
        rotation(server, path)
        server.stop()
        # A file that can't be opened switches it off and lets the server start.
        server.options = ["--server-audit-logging=ON", "--server-audit-file-path=/no/such/audit.log"]
        server.start()
        expect(client(server, "SELECT @@server_audit_logging").strip() == "0", "a log that can't be is off")
        expect("server_audit_logging is switched off" in server.log_tail(100), "and the error log says so")
        server.stop()
    print("audit: ok")


if __name__ == "__main__":
    main()
