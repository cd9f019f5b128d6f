#!/usr/bin/python3
"""A source that lies: corrupt, cut and impossible events, wrong checksums, equal ids, a changing uuid, a source that is
gone. The replica stops with the right error and place, applies nothing in part, and goes on when the cause is mended.

Ring: all.
"""

import json
import pathlib
import struct
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from bad_source import FILE, INCIDENT, OTHER_UUID, TABLE_MAP, WRITE_ROWS, Log, Source, restart, values, wait_error  # noqa: E402
from omnibus import Scratch, binary, expect, free_port  # noqa: E402
from peers import OmnibusPeer, brief, query, status, wait_for  # noqa: E402

SPOILED = [
    # What is wrong, whose thread sees it, the codes that tell it, and the spoiled middle of a transaction.
    ("a wrong checksum", "IO", {1744}, lambda log: log.rows(2, spoil=lambda e: e[:-1] + bytes([e[-1] ^ 1]))),
    ("a changed byte", "IO", {1744}, lambda log: log.rows(2, spoil=lambda e: e[:25] + bytes([e[25] ^ 255]) + e[26:])),
    ("an event that is cut", "IO", {1595, 1744}, lambda log: log.rows(2, spoil=lambda e: e[:30])),
    ("less than a header", "IO", {1595}, lambda log: log.rows(2, spoil=lambda e: e[:7])),
    ("an event without bytes", "IO", {1595}, lambda log: log.rows(2, spoil=lambda e: b"")),
    ("a size of 4 GB", "IO", {1595}, lambda log: log.rows(2, size=0xFFFFFFF0)),
    ("a size of 3", "IO", {1595}, lambda log: log.rows(2, size=3)),
    ("rows of no table", "SQL", {1594}, lambda log: log.rows(2, number=5)),
    ("rows that are cut", "SQL", {1594}, lambda log: log.add(WRITE_ROWS, struct.pack("<Q", 77)[:6] + b"\1\0\2\0\1\xff\xfe\1")),
    ("a table map with a wild column count", "SQL", {1594},
     lambda log: log.add(TABLE_MAP, struct.pack("<Q", 77)[:6] + b"\1\0\1d\0\1t\0\xfd\xff\xff\xff")),
    ("a missing table", "SQL", {1146}, lambda log: log.table(b"gone", 78).rows(2, number=78)),
    ("an event type nobody knows", "SQL", {1594}, lambda log: log.add(99, b"what")),
    ("an incident", "SQL", {1590}, lambda log: log.add(INCIDENT, struct.pack("<HB", 1, 4) + b"lost")),
    ("a statement that fails", "SQL", {1146}, lambda log: log.query("INSERT INTO nowhere VALUES (1)")),
    ("a duplicate", "SQL", {1062}, lambda log: log.rows(1)),
    ("a definition behind rows", "SQL", {1778}, lambda log: log.query("CREATE TABLE d.torn (a INT)")),
    ("an account behind rows", "SQL", {1778}, lambda log: log.query("GRANT SELECT ON d.* TO torn@x")),
]


def spoiled(replica, source):
    for name, kind, codes, spoil in SPOILED:
        query(replica, "DELETE FROM d.t")
        log = Log().insert(1)
        good = log.position
        spoil(log.begin().table().rows(3))
        log.xid().insert(4)
        source.log = log
        restart(replica, source, 4)
        row = wait_error(replica, kind, codes)
        wait_for(lambda: values(replica) == [1], lambda: f"{name}: {values(replica)}")  # noqa: B023
        expect(int(row["Exec_Master_Log_Pos"]) <= good, f"{name}: {brief(row)}")
        message = row[f"Last_{kind}_Error"]
        expect(FILE.decode() in message, f"{name}: no place in '{message}'")
        source.log = Log().insert(1).insert(3).insert(4)
        if kind == "SQL":
            query(replica, "STOP REPLICA")
        query(replica, "START REPLICA")
        wait_for(lambda: values(replica) == [1, 3, 4], lambda: f"{name}, mended: {values(replica)} {brief(status(replica))}")  # noqa: B023


def two_definitions(replica, source):
    """In one transaction: neither is done, because the first would be committed without the second."""
    query(replica, "DELETE FROM d.t")
    source.log = Log().insert(1).begin().query("CREATE TABLE d.one (a INT)").query("CREATE TABLE d.other (a INT)").xid()
    restart(replica, source, 4)
    wait_error(replica, "SQL", {1778})
    tables = [row["Tables_in_d"] for row in query(replica, "SHOW TABLES FROM d")]
    expect("one" not in tables and "other" not in tables and values(replica) == [1], f"half of a transaction: {tables}")


def not_the_protocol(replica, source):
    """Bytes that are no packets, and a source that goes away in the middle of a transaction."""
    query(replica, "DELETE FROM d.t")
    source.log = Log().insert(1).begin().table().rows(2)
    source.after = "close"
    restart(replica, source, 4)
    wait_for(lambda: values(replica) == [1], lambda: str(values(replica)))
    source.log, source.after = Log().insert(1).insert(2), "wait"
    wait_for(lambda: values(replica) == [1, 2], lambda: f"{values(replica)} {brief(status(replica))}")
    source.raw = [b"\x05\0\0\x63\x77hello"]
    restart(replica, source, 4)
    query(replica, "STOP REPLICA SQL_THREAD")
    wait_error(replica, "IO", {2027})
    source.raw = []


def identity(replica, source):
    for answers, code in (({"SERVER_ID": "2"}, 1593), ({"SERVER_UUID": query(replica, "SELECT @@server_uuid AS u")[0]["u"]}, 1593),
                          ({"binlog_checksum": "MD5"}, 1593)):
        source.answers = answers
        query(replica, "DELETE FROM d.t")
        restart(replica, source, 4)
        wait_error(replica, "IO", {code})
    source.answers, source.log = {}, Log().insert(5)
    source.after = "wait"
    query(replica, "START REPLICA")
    wait_for(lambda: values(replica) == [5], lambda: f"{values(replica)} {brief(status(replica))}")
    # Another server behind the same address.
    source.answers = {"SERVER_UUID": OTHER_UUID}
    source.ended.set()
    row = wait_error(replica, "IO", {1593})
    expect(OTHER_UUID in row["Last_IO_Error"], row["Last_IO_Error"])
    source.ended = threading.Event()
    query(replica, "START REPLICA")
    source.log.insert(6)
    source.ended.set()
    source.ended = threading.Event()
    wait_for(lambda: values(replica) == [5, 6], lambda: f"{values(replica)} {brief(status(replica))}")


def skipped_incident(replica, source):
    """Between transactions, where sources write it: the replica stops in front of it, and goes on behind it if it is told to."""
    query(replica, "DELETE FROM d.t")
    log = Log().insert(1)
    before = log.position
    source.log = log.add(INCIDENT, struct.pack("<HB", 1, 11) + b"lost events").insert(2)
    restart(replica, source, 4)
    row = wait_error(replica, "SQL", {1590})
    expect("LOST_EVENTS" in row["Last_SQL_Error"] and "lost events" in row["Last_SQL_Error"], row["Last_SQL_Error"])
    expect(values(replica) == [1] and int(row["Exec_Master_Log_Pos"]) == before, f"stops in front of it: {brief(row)}")
    query(replica, "START REPLICA")
    wait_error(replica, "SQL", {1590})
    query(replica, "STOP REPLICA")
    query(replica, "SET GLOBAL sql_replica_skip_counter = 1")
    query(replica, "START REPLICA")
    wait_for(lambda: values(replica) == [1, 2], lambda: f"behind the incident: {values(replica)} {brief(status(replica))}")


PARTIAL_UPDATE_ROWS = 39
REPLACE, INSERT, REMOVE = 0, 1, 2
SEVEN, LIST = b"\x05\x07\x00", b"\x02\x01\x00\x07\x00\x04\x01\x00"  # 7, and [true], as MySQL stores them


def diff(op, path, value=b""):
    return bytes([op, len(path)]) + path + (bytes([len(value)]) + value if value else b"")


def partial_log(*diffs, document=None):
    """An update of d.j as a source with binlog_row_value_options=PARTIAL_JSON logs it: of the document only what changed."""
    number = struct.pack("<Q", 78)[:6]
    log = Log().begin().add(TABLE_MAP, number + struct.pack("<H", 1) + b"\x01d\0\x01j\0" + b"\x03\x03\xf5\xf5\x02\x04\x04\x06")
    columns = b"\x01" if document is None else b"\x03"
    before = b"\x00" + struct.pack("<i", 1) + (struct.pack("<I", len(document)) + document if document else b"")
    changes = b"".join(diffs)
    # Of two JSON columns the first one is partial.
    after = b"\x01\x01" + b"\x00" + struct.pack("<I", len(changes)) + changes
    log.add(PARTIAL_UPDATE_ROWS, number + struct.pack("<HH", 1, 2) + b"\x03" + columns + b"\x02" + before + after)
    return log.xid()


def partial_json(replica, source):
    """MySQL's partial updates: applied, refused where the document is another, and printed."""
    query(replica, "CREATE TABLE d.j (id INT PRIMARY KEY, doc JSON, other JSON)")
    query(replica, """INSERT INTO d.j VALUES (1, '{"a": 1, "b": [1, 2], "c": "x"}', '[]')""")
    changes = diff(REPLACE, b"$.a", SEVEN), diff(INSERT, b"$.b[1]", LIST), diff(INSERT, b"$.d", SEVEN), diff(REMOVE, b"$.c")
    source.log = partial_log(*changes)
    restart(replica, source, 4)
    wanted = {"a": 7, "b": [1, [True], 2], "d": 7}

    def document():
        return json.loads(query(replica, "SELECT doc FROM d.j")[0]["doc"])

    wait_for(lambda: document() == wanted, lambda: f"{document()} {brief(status(replica))}")
    # The same again finds nothing to remove.
    source.log = partial_log(diff(REMOVE, b"$.c"))
    restart(replica, source, 4)
    row = wait_error(replica, "SQL", {3648})
    expect("j" in row["Last_SQL_Error"] and "doc" in row["Last_SQL_Error"], row["Last_SQL_Error"])
    expect(document() == wanted, "nothing of it is applied")
    source.log = partial_log(b"\x09\x01$")
    restart(replica, source, 4)
    wait_error(replica, "SQL", {3649, 1594})
    query(replica, "STOP REPLICA")

    def printed(log, *options):
        path = pathlib.Path(replica.directory) / "partial.000001"
        path.write_bytes(b"\xfebin" + b"".join(log.events))
        run = subprocess.run([binary(), "binlog", *options, path], capture_output=True, text=True)
        expect(run.returncode == 0, f"{options}: {run.stderr}")
        return run.stdout

    calls = "JSON_REMOVE(JSON_INSERT(JSON_ARRAY_INSERT(JSON_REPLACE(@2, '$.a', 7), '$.b[1]', CAST('[true]' AS JSON)), '$.d', 7), '$.c')"
    expect(f"###   @2={calls}\n" in printed(partial_log(*changes), "-v"), printed(partial_log(*changes), "-v"))
    lines = printed(partial_log(*changes), "--json")
    rows = next(line for line in map(json.loads, lines.splitlines()) if line["type"] == "rows")
    expect(rows["rows"][0]["after"]["@2"]["json_diffs"][3] == {"op": "remove", "path": "$.c"}, f"as JSON: {rows['rows']}")
    # With the document before the change the line has it whole, so that anyone can read it.
    small = b"\x00\x01\x00\x0c\x00\x0b\x00\x01\x00\x05\x01\x00a"
    whole = printed(partial_log(diff(REPLACE, b"$.a", SEVEN), document=small), "--json")
    rows = next(line for line in map(json.loads, whole.splitlines()) if line["type"] == "rows")
    expect(rows["rows"] == [{"before": {"@1": 1, "@2": {"json": {"a": 1}}}, "after": {"@2": {"json": {"a": 7}}}}], f"whole: {rows['rows']}")
    # By way of lines and by way of SQL they do the same.
    replayed = subprocess.run([binary(), "replay"], input=lines, capture_output=True, text=True)
    expect(replayed.returncode == 0, replayed.stderr)
    for sql in (replayed.stdout, printed(partial_log(*changes), "--sql", "--skip-gtids")):
        query(replica, """REPLACE INTO d.j VALUES (1, '{"a": 1, "b": [1, 2], "c": "x"}', '[]')""")
        done = subprocess.run(["mariadb", "--no-defaults", f"--socket={replica.socket}", "-uroot"], input=sql, capture_output=True, text=True)
        expect(done.returncode == 0 and document() == wanted, f"{document()} {done.stderr}")


def gone(replica, source):
    query(replica, "STOP REPLICA")
    query(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_PORT={free_port()}, SOURCE_RETRY_COUNT=2")
    query(replica, "START REPLICA")
    row = wait_error(replica, "IO", {2003})
    expect("2/2" in row["Last_IO_Error"] and "127.0.0.1" in row["Last_IO_Error"], row["Last_IO_Error"])


def main():
    with Scratch("omnibus-bad-source-") as name:
        replica = OmnibusPeer(pathlib.Path(name) / "replica", 2)
        replica.start()
        query(replica, "CREATE DATABASE d")
        query(replica, "CREATE TABLE d.t (v INT PRIMARY KEY)")
        source = Source()
        spoiled(replica, source)
        skipped_incident(replica, source)
        partial_json(replica, source)
        two_definitions(replica, source)
        not_the_protocol(replica, source)
        identity(replica, source)
        gone(replica, source)
        expect(replica.process.poll() is None, "the server is there")
        expect("panicked" not in replica.log_tail(100000), "a panic in the log")
        replica.stop()
    print("source_that_lies: ok")


if __name__ == "__main__":
    main()
