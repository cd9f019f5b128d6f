#!/usr/bin/python3
"""The changes of a session's state that OK packets tell to clients which ask for them, as MySQL tells them; the text of an INSERT with `sql_warnings`;
connections that end with RELEASE.

Asked of a real MySQL 9.7: `tracked_state.py SOCKET` asks it (or any other server) again.

Ring: gate.
"""

import pathlib
import sys

import pymysql
import pymysql.constants

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, expect  # noqa: E402

SESSION_TRACK = 1 << 23
CHARSETS = "character_set_client", "character_set_connection", "character_set_results"
VARIABLE, SCHEMA = 0, 1


def names(charset):
    return [(name, charset) for name in CHARSETS]


# A statement, and what its OK tells.
TOLD = [
    ("SET NAMES latin1", names("latin1")),
    ("SET NAMES utf8mb4", names("utf8mb4")),
    ("SET autocommit = 0", [("autocommit", "OFF")]),
    ("SET autocommit = 1", [("autocommit", "ON")]),
    ("SET time_zone = '+01:00'", [("time_zone", "+01:00")]),
    ("SET sql_mode = ''", []),
    ("SET @a = 1", []),
    ("SET character_set_results = NULL", [("character_set_results", "")]),
    ("SET character_set_results = utf8mb4", [("character_set_results", "utf8mb4")]),
    ("SET collation_connection = latin1_swedish_ci", []),
    ("SET CHARACTER SET utf8mb4", names("utf8mb4")),
    ("USE mysql", ["mysql"]),
    ("USE mysql", ["mysql"]),
    ("SET session_track_schema = OFF", []),
    ("USE mysql", []),
    ("SET session_track_schema = ON", []),
    ("CREATE DATABASE tracked", []),
    ("USE tracked", ["tracked"]),
    ("DROP DATABASE tracked", [""]),
    ("SET session_track_system_variables = 'sql_mode, sql_notes'", []),
    ("SET sql_mode = 'ANSI_QUOTES', sql_notes = 0, time_zone = 'SYSTEM', sql_mode = 'STRICT_ALL_TABLES'",
     [("sql_mode", "STRICT_ALL_TABLES"), ("sql_notes", "OFF")]),
    ("SET GLOBAL sql_notes = 1", []),
    ("SET SESSION sql_notes = DEFAULT", [("sql_notes", "ON")]),
    ("SET session_track_system_variables = 'session_track_system_variables'", [("session_track_system_variables",) * 2]),
    ("SET session_track_system_variables = ''", []),
    ("SET sql_notes = 1", []),
    ("SET session_track_system_variables = DEFAULT", []),
    ("DO 1", []),
    ("SET time_zone = DEFAULT", [("time_zone", "SYSTEM")]),
]


def parts(data):
    """Strings with a length of one byte each."""
    while data:
        yield data[1:1 + data[0]]
        data = data[1 + data[0]:]


def changes(message):
    """The members of the block behind the OK's text, which is empty here."""
    found, rest = [], message[2:]
    while rest:
        kind, data = rest[0], list(parts(rest[2:2 + rest[1]]))
        rest = rest[2 + rest[1]:]
        texts = tuple(text.decode() for text in data)
        found.append(texts if kind == VARIABLE else texts[0] if kind == SCHEMA else (kind, data))
    return found


class Client:
    def __init__(self, socket, flags):
        self.db = pymysql.connect(unix_socket=socket, user="root", client_flag=flags, charset="utf8mb4")
        self.cursor = self.db.cursor()

    def message(self, sql):
        """What the OK says behind its numbers."""
        self.cursor.execute(sql)
        return self.cursor._result.message or b""


def told(socket):
    tracks, silent = Client(socket, SESSION_TRACK), Client(socket, 0)
    for sql, expected in TOLD:
        got = changes(tracks.message(sql))
        expect(sorted(got, key=str) == sorted(expected, key=str), f"{sql}: {got} instead of {expected}")
        if sql.startswith("SET"):
            expect(silent.message(sql) == b"", f"{sql}: tells a client that did not ask")


def warnings(socket):
    client = Client(socket, 0)
    for sql in ("CREATE DATABASE IF NOT EXISTS tracked", "CREATE TABLE tracked.t (id INT PRIMARY KEY, v TINYINT)", "SET sql_mode = ''"):
        client.message(sql)
    one = b"Records: 1  Duplicates: 0  Warnings: 1"
    expect(client.message("INSERT INTO tracked.t VALUES (1, 1000)") == b"", "a text without sql_warnings")
    client.message("SET sql_warnings = 1")
    for sql, expected in [
        ("INSERT INTO tracked.t VALUES (2, 1000)", one),
        ("INSERT INTO tracked.t VALUES (3, 1)", b""),
        ("INSERT INTO tracked.t SET id = 4, v = 1000", one),
        ("INSERT INTO tracked.t VALUES (4, 1) ON DUPLICATE KEY UPDATE v = 1001", one),
    ]:
        got = client.message(sql)
        expect(got.endswith(expected) and bool(got) == bool(expected), f"{sql}: {got}")
    client.message("DROP DATABASE tracked")


def releases(socket):
    """COMMIT and ROLLBACK RELEASE, and those under `completion_type`, are answered, and end the connection."""
    for statements in (["COMMIT RELEASE"], ["BEGIN", "ROLLBACK RELEASE"], ["SET completion_type = 'RELEASE'", "COMMIT"], ["SELECT 1; COMMIT RELEASE"]):
        client = pymysql.connect(unix_socket=socket, user="root", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS)
        cursor = client.cursor()
        for statement in statements:
            cursor.execute(statement)
            while cursor.nextset():
                pass
        try:
            cursor.execute("DO 1")
            expect(False, f"{statements}: the connection is there")
        except pymysql.err.OperationalError as error:
            expect(error.args[0] in (2006, 2013), f"{statements}: {error}")
    client = pymysql.connect(unix_socket=socket, user="root")
    for statement in ("SET completion_type = 'RELEASE'", "COMMIT NO RELEASE", "ROLLBACK NO RELEASE", "DO 1"):
        client.cursor().execute(statement)
    client.close()


def main():
    if len(sys.argv) > 1:
        told(sys.argv[1])
        warnings(sys.argv[1])
        releases(sys.argv[1])
        return
    with Scratch() as scratch:
        server = Omnibus(scratch, "--skip-networking", "--sync-binlog=0")
        server.start()
        try:
            told(server.socket)
            warnings(server.socket)
            releases(server.socket)
        finally:
            server.stop()
    print("tracked state: ok")


if __name__ == "__main__":
    main()
