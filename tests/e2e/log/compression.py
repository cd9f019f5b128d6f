#!/usr/bin/python3
"""binlog_transaction_compression: MySQL's TRANSACTION_PAYLOAD events, which zstd itself reads, recovery replays, replicas of ours apply, tools
print; what stays as it is; a MariaDB replica is told.

Ring: all.
"""

import pathlib
import re
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, binary, client, expect, finished_binlogs  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, replicate, status, wait_caught_up, wait_for  # noqa: E402

QUERY, GTID, PAYLOAD, XID, TABLE_MAP, WRITE_ROWS, IGNORABLE = 2, 33, 40, 16, 19, 30, 28
ON = "--binlog-transaction-compression=ON"


def events(data, checksums=True):
    """(type, body) of each event."""
    at, found = 0, []
    while at + 19 <= len(data) and data[at + 4]:
        size = struct.unpack_from("<I", data, at + 9)[0]
        found.append((data[at + 4], data[at + 19:at + size - (4 if checksums else 0)]))
        at += size
    return found


def of_log(server):
    return [event for path in finished_binlogs(server) for event in events(pathlib.Path(path).read_bytes()[4:])]


def unpacked(body):
    """The events in a payload, by zstd's own program."""
    at, fields = 0, {}

    def number():
        nonlocal at
        first = body[at]
        more = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
        value = int.from_bytes(body[at + 1:at + 1 + more], "little") if more else first
        at += 1 + more
        return value
    while (field := number()) != 0:
        number()
        fields[field] = number()
    expect(fields[2] == 0 and fields[1] == len(body) - at, f"its fields: {fields}")
    plain = subprocess.run(["zstd", "-dcq"], input=body[at:], capture_output=True, check=True).stdout
    expect(len(plain) == fields[3], f"{len(plain)} bytes instead of {fields[3]}")
    return events(plain, checksums=False)


def fill(server):
    session = Session(server, database="d")
    session.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(200), n INT) ENGINE=LSM", "CREATE TABLE b (id INT PRIMARY KEY, v LONGTEXT) ENGINE=BTREE",
                "CREATE TABLE r (v VARBINARY(1000))", "FLUSH BINARY LOGS")
    for n in range(40):
        session.run("BEGIN")
        session.run("INSERT INTO t VALUES " + ",".join(f"({n * 100 + k}, '{'compress me ' * 8}{k}', {k})" for k in range(100)))
        session.run(f"UPDATE t SET n = n + 1 WHERE id % 7 = 3 AND id >= {n * 100}", f"DELETE FROM t WHERE id = {n * 100 + 5}",
                    f"INSERT INTO b VALUES ({n}, REPEAT('both engines ', 50))", "COMMIT")
    session.run("INSERT INTO r VALUES (RANDOM_BYTES(1000))")
    # Longer than the cache in memory; longer than what is compressed on a session's own thread.
    session.run("INSERT INTO b SELECT id + 1000, REPEAT(v, 20) FROM t WHERE id < 3000")
    session.close()


def shape(server):
    """Rows are compressed, and nothing else; what is inside is what would be there."""
    found = of_log(server)
    payloads = [body for kind, body in found if kind == PAYLOAD]
    expect(len(payloads) >= 41, f"{len(payloads)} payloads in {[kind for kind, _ in found]}")
    kinds = [kind for kind, _ in unpacked(payloads[0])]
    expect(kinds[0] == QUERY and kinds[-1] == XID and {TABLE_MAP, WRITE_ROWS} <= set(kinds), kinds)
    for body in payloads:
        unpacked(body)
    expect(any(b"CREATE TABLE t" in body for kind, body in found if kind == QUERY), "definitions are as ever")
    expect(any(kind == XID for kind, _ in found), "what does not become shorter is as ever")
    row = Session(server)("SELECT TRANSACTION_COUNTER, COMPRESSED_BYTES_COUNTER, UNCOMPRESSED_BYTES_COUNTER, COMPRESSION_PERCENTAGE"
                          " FROM performance_schema.binary_log_transaction_compression_stats WHERE COMPRESSION_TYPE = 'ZSTD'")[0]
    expect(row[0] == len(payloads) and row[1] * 5 < row[2] and row[3] > 80, row)


def switches(server):
    """By session; not in statement format; a transaction that is too large for it is the log's as it is."""
    session = Session(server, database="d")
    before = len([1 for kind, _ in of_log(server) if kind == PAYLOAD])
    session.run("SET SESSION binlog_transaction_compression=OFF", "INSERT INTO t VALUES (1000001, REPEAT('x', 200), 0)")
    session.run("SET SESSION binlog_transaction_compression=ON, binlog_format=STATEMENT", "INSERT INTO t VALUES (1000002, REPEAT('x', 200), 0)")
    expect(len([1 for kind, _ in of_log(server) if kind == PAYLOAD]) == before, "neither is compressed")
    session.run("SET SESSION binlog_format=ROW", "SET GLOBAL binlog_large_commit_threshold=10485760")
    session.run("INSERT INTO b SELECT id + 100000, REPEAT(v, 60) FROM b")
    session.close()


def levels(server):
    """The level is a session's, and makes a difference."""
    session = Session(server, database="d")

    def size(level):
        session.run(f"SET SESSION binlog_transaction_compression_level_zstd={level}",
                    "INSERT INTO b SELECT id + 200000, CONCAT('word ', id * 7919 % 1000, ' and ', id, ' behind ', id DIV 7) FROM t WHERE id < 3000")
        session.run("DELETE FROM b WHERE id >= 200000")
        return len([body for kind, body in of_log(server) if kind == PAYLOAD][-2])

    low, high = size(1), size(22)
    expect(high < low * 0.95, f"{high} bytes at level 22, {low} at level 1")
    session.close()


def printed(server):
    """By tools: the statements and rows of a compressed transaction."""
    [path] = [path for path in finished_binlogs(server) if PAYLOAD in {kind for kind, _ in events(pathlib.Path(path).read_bytes()[4:])}][:1]
    out = subprocess.run([binary(), "binlog", "--sql", "-v", path], capture_output=True, text=True, check=True).stdout
    expect(out.count("BINLOG '") > 40 and "Delete_rows" in out and "Update_rows" in out, out[:2000])
    rows = client(server, f"SHOW BINLOG EVENTS IN '{pathlib.Path(path).name}'")
    expect(re.search(r"Transaction_payload\t.*compression='ZSTD', decompressed_size=\d+ bytes", rows), rows[:3000])
    flashback = subprocess.run([binary(), "binlog", "--flashback", path], capture_output=True, text=True)
    expect(flashback.returncode == 0 and "BINLOG" in flashback.stdout, f"flashback: {flashback.stderr[:500]}")


def recovered(server):
    """After a kill the log alone brings it back."""
    def sums():
        return client(server, "SELECT COUNT(*), SUM(id), SUM(n), SUM(CRC32(v)) FROM d.t; SELECT COUNT(*), SUM(id), SUM(CRC32(v)) FROM d.b")
    before = sums()
    for _ in range(2):
        server.kill()
        server.start()
        expect(sums() == before, "after a kill")


def of_a_mariadb(directory, source):
    replica = MariaPeer(directory / "mariadb", 3)
    replica.start()
    replicate(replica, source)
    row = wait_for(lambda: (row := status(replica)) and int(row["Last_IO_Errno"]) and row, "an error")
    expect("compressed transaction" in row["Last_IO_Error"] and int(row["Last_IO_Errno"]) == 1236, row["Last_IO_Error"])
    replica.stop()


def main():
    with Scratch("omnibus-compression-") as directory:
        directory = pathlib.Path(directory)
        source, replica = OmnibusPeer(directory / "source", 1, ON), OmnibusPeer(directory / "replica", 2)
        source.start()
        replica.start()
        create_user(source)
        client(source, "CREATE DATABASE d")
        replicate(replica, source)
        fill(source)
        shape(source)
        switches(source)
        levels(source)
        printed(source)
        recovered(source)
        wait_caught_up(replica, source)
        expect_equal(source, replica, least_rows=4000)
        of_a_mariadb(directory, source)
        source.stop()
        replica.stop()
        # A server of MariaDB's dialect writes events that MariaDB reads.
        other = Omnibus(directory / "other", "--dialect=mariadb", ON)
        other.directory.mkdir()
        other.start()
        client(other, "CREATE DATABASE d; CREATE TABLE d.t (v TEXT); INSERT INTO d.t VALUES (REPEAT('x', 1000))")
        expect(b"1193" in client(other, "SELECT @@binlog_transaction_compression", check=False).stderr, "no such variable there")
        expect(PAYLOAD not in {kind for kind, _ in of_log(other)}, "and no such event")
        other.stop()
    print("compression: ok")


if __name__ == "__main__":
    main()
