#!/usr/bin/python3
"""Events of a source that are small and stand for gigabytes: compressed transactions of MySQL, compressed events of MariaDB.

The replica stays, takes no more memory than it may, names what is wrong, and goes on when the source is another;
`replica_max_allowed_packet` bounds what comes and what it stands for (WIRE-1).

Ring: all.
"""

import pathlib
import struct
import sys
import threading
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from bad_source import FILE, QUERY, TABLE_MAP, WRITE_ROWS, Log, Source, restart, values, wait_error  # noqa: E402
from omnibus import Scratch, expect  # noqa: E402
from peers import OmnibusPeer, brief, query, status, wait_for  # noqa: E402

PAYLOAD, ROWS_QUERY = 40, 29
MARIADB_QUERY_COMPRESSED, MARIADB_WRITE_ROWS_COMPRESSED = 165, 169
MIB = 1 << 20
# Beside the memory of an idle server; an event at the limit is there twice when it is applied.
LIMIT_MIB = 256
BLOCK = 128 << 10


def zstd(*parts):
    """A zstd frame (RFC 8878): bytes as they are, and (byte, count) as blocks of one byte that is repeated."""
    blocks = []
    for part in parts:
        if isinstance(part, bytes):
            blocks += [(len(part[at:at + BLOCK]) << 3, part[at:at + BLOCK]) for at in range(0, len(part), BLOCK)]
        else:
            byte, count = part
            blocks += [(min(BLOCK, count - at) << 3 | 2, byte) for at in range(0, count, BLOCK)]
    # Not a single segment: a window of 1 MiB.
    out = struct.pack("<IBB", 0xFD2FB528, 0, 10 << 3)
    for number, (head, data) in enumerate(blocks):
        out += struct.pack("<I", head | (number == len(blocks) - 1))[:3] + data
    return out


def inner(kind, body, more=0):
    """An event inside of a payload, without a checksum; `more` bytes follow elsewhere."""
    return struct.pack("<IBIIIH", 1700000000, kind, 1, 19 + len(body) + more, 0, 0) + body


def payload(log, *parts):
    """BEGIN and what it holds, as one compressed event behind its GTID."""
    data = zstd(*parts)
    gtid = bytes([0]) + bytes(16) + struct.pack("<QBQQ", 0, 2, 0, 1) + bytes(7)
    log.add(34, gtid)
    field = lambda kind, value: bytes([kind, len(value)]) + value  # noqa: E731
    number = lambda n: bytes([n]) if n < 251 else b"\xfd" + struct.pack("<I", n)[:3]  # noqa: E731
    return log.add(PAYLOAD, field(2, number(0)) + field(1, number(len(data))) + b"\0" + data)


BEGIN = inner(QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0BEGIN")
TABLE = struct.pack("<Q", 77)[:6] + struct.pack("<H", 1) + b"\x01d\0\x01t\0" + b"\x01\x03\0\0"
BLOBS = struct.pack("<Q", 78)[:6] + struct.pack("<H", 1) + b"\x01d\0\x01b\0" + b"\x02\x03\xfc\x01\x04\x02"
XID = inner(16, struct.pack("<Q", 7))


def row(value):
    return struct.pack("<Q", 77)[:6] + struct.pack("<HH", 1, 2) + b"\x01\xff\xfe" + struct.pack("<i", value)


def one_long_event(log):
    """One statement of 2 GB."""
    return payload(log, BEGIN, inner(QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0", 2040 * MIB), (b" ", 2040 * MIB), XID)


def promised(log):
    """A length that is allowed, of which nothing comes."""
    return payload(log, BEGIN, inner(QUERY, b"", 1000 * MIB))


def at_the_limit(log):
    """One statement that is as long as events may be, where less is allowed."""
    return payload(log, BEGIN, inner(QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0", 1000 * MIB), (b" ", 1000 * MIB), XID)


def rows_without_end(log, count=255):
    """2 GB of rows in one transaction."""
    parts = [BEGIN]
    for number in range(count):
        parts += [inner(TABLE_MAP, BLOBS), inner(WRITE_ROWS, struct.pack("<Q", 78)[:6] + struct.pack("<HH", 1, 2) + b"\x02\xff\xfc"
                                                 + struct.pack("<iI", number, 8 * MIB), 8 * MIB), (b"x", 8 * MIB)]
    return payload(log, *parts, XID)


def repeated(count):
    """MariaDB's block: a zlib stream of zeros."""
    packer = zlib.compressobj(9)
    out = b"".join(packer.compress(bytes(MIB)) for _ in range(count // MIB)) + packer.flush()
    return b"\x84" + struct.pack(">I", count) + out


def mariadb_rows(log):
    """Rows of a gigabyte, of no sense."""
    log.begin().table()
    return log.add(MARIADB_WRITE_ROWS_COMPRESSED, row(0)[:10] + b"\x01\xff" + repeated(1000 * MIB)).xid()


def mariadb_query(log):
    return log.add(MARIADB_QUERY_COMPRESSED, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0" + repeated(1000 * MIB))


def mariadb_lie(log):
    """A block that says that it is short."""
    return log.add(MARIADB_QUERY_COMPRESSED, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"d\0\x84" + struct.pack(">I", 100) + repeated(1000 * MIB)[5:])


def peak_mib(replica):
    for line in pathlib.Path(f"/proc/{replica.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) >> 10


def forget_peak(replica):
    pathlib.Path(f"/proc/{replica.process.pid}/clear_refs").write_text("5")


def bombs(replica, source):
    idle = peak_mib(replica)
    tests = [(one_long_event, {1594}, "replica_max_allowed_packet"), (promised, {1594}, ""), (at_the_limit, {1594}, "replica_max_allowed_packet"),
             (rows_without_end, {1197}, "max_binlog_cache_size"), (mariadb_rows, {1594}, "replica_max_allowed_packet"), (mariadb_query, {1594}, "replica_max_allowed_packet"),
             (mariadb_lie, {1594}, "compressed block")]
    for bomb, codes, named in tests:
        query(replica, "DELETE FROM d.t")
        source.log = Log().insert(1)
        good = source.log.position
        bomb(source.log)
        size = source.log.position - good
        # Of 16 MB, but for the one that promises what it may.
        query(replica, f"SET GLOBAL replica_max_allowed_packet = {(1024 if bomb is promised else 16) * MIB}")
        forget_peak(replica)
        restart(replica, source, 4)
        found = wait_error(replica, "SQL", codes)
        message = found["Last_SQL_Error"]
        expect(named in message and FILE.decode() in message, f"{bomb.__name__}: {message}")
        expect(int(found["Exec_Master_Log_Pos"]) == good and values(replica) == [1], f"{bomb.__name__}: {brief(found)} {values(replica)}")
        used = peak_mib(replica) - idle
        expect(used < LIMIT_MIB, f"{bomb.__name__}: {size} bytes took {used} MiB")
        query(replica, "STOP REPLICA")
        source.log = Log().insert(1).insert(2)
        query(replica, "START REPLICA")
        wait_for(lambda: values(replica) == [1, 2], lambda: f"{bomb.__name__}, mended: {values(replica)} {brief(status(replica))}")  # noqa: B023
        print(f"replica_bombs: {bomb.__name__}: {size} bytes, {max(used, 0)} MiB: {message[:150]}", flush=True)


def much_that_is_nothing(replica, source):
    """A compressed transaction of half a gigabyte that is remarks and one row is applied, and takes no memory."""
    query(replica, "DELETE FROM d.t")
    parts = [BEGIN] + [inner(ROWS_QUERY, b"\0", 8 * MIB), (b"-", 8 * MIB)] * 64
    source.log = payload(Log(), *parts, inner(TABLE_MAP, TABLE), inner(WRITE_ROWS, row(5)), XID).insert(6)
    forget_peak(replica)
    idle = peak_mib(replica)
    restart(replica, source, 4)
    wait_for(lambda: values(replica) == [5, 6], lambda: f"{values(replica)} {brief(status(replica))}")
    expect(peak_mib(replica) - idle < LIMIT_MIB, f"{peak_mib(replica) - idle} MiB")


def rows_in_files(name):
    """384 MiB of rows that no limit forbids is applied, and read, and takes no more memory than any other transaction."""
    replica = OmnibusPeer(pathlib.Path(name) / "files", 3, f"--global-connection-memory-limit={64 * MIB}", "--lsm-block-cache-size=16M",
                          "--btree-cache-size=16M")
    replica.start()
    query(replica, "CREATE DATABASE d")
    query(replica, "CREATE TABLE d.t (v INT PRIMARY KEY)")
    source = Source()
    for engine in ("BTREE", "LSM"):
        query(replica, f"CREATE TABLE d.b (id INT PRIMARY KEY, v LONGBLOB) ENGINE={engine}")
        forget_peak(replica)
        idle = peak_mib(replica)
        source.log = rows_without_end(Log(), 48).insert(1)
        restart(replica, source, 4)
        wait_for(lambda: values(replica) == [1], lambda: f"{values(replica)} {brief(status(replica))}")
        expect(query(replica, "SELECT COUNT(*) n, SUM(LENGTH(v)) s, MAX(v = REPEAT('x', 8388608)) x FROM d.b") == [{"n": 48, "s": 384 * MIB, "x": 1}],
               "the rows")
        expect(query(replica, "SELECT id FROM d.b FORCE INDEX (PRIMARY) WHERE LENGTH(v) > 1 ORDER BY id DESC LIMIT 1") == [{"id": 47}], "the last row")
        used = peak_mib(replica) - idle
        expect(used < LIMIT_MIB, f"{engine}: {source.log.position} bytes that stand for 384 MiB took {used} MiB")
        print(f"replica_bombs: 384 MiB of rows, {engine}: {used} MiB", flush=True)
        query(replica, "STOP REPLICA")
        query(replica, "DROP TABLE d.b")
        query(replica, "DELETE FROM d.t")
    replica.stop()


def received(replica, source):
    """What comes is bounded while it comes; a new value needs no STOP REPLICA."""
    query(replica, f"SET GLOBAL replica_max_allowed_packet = {MIB}")
    query(replica, "DELETE FROM d.t")
    source.log = Log().insert(1)
    good = source.log.position
    source.log.query("DO 1 -- " + "x" * 2 * MIB).insert(2)
    restart(replica, source, 4)
    found = wait_error(replica, "IO", {1153})
    expect("replica_max_allowed_packet" in found["Last_IO_Error"], found["Last_IO_Error"])
    # The row is seen before the position that stands behind it.
    wait_for(lambda: values(replica) == [1] and int(status(replica)["Exec_Master_Log_Pos"]) == good,
             lambda: f"it stops in front of {good}: {values(replica)} {brief(status(replica))}")
    query(replica, f"SET GLOBAL replica_max_allowed_packet = {4 * MIB}")
    query(replica, "START REPLICA")
    wait_for(lambda: values(replica) == [1, 2], lambda: f"{values(replica)} {brief(status(replica))}")
    # A receiver that runs and waits for more.
    query(replica, "DELETE FROM d.t")
    source.ended, source.log = threading.Event(), Log().insert(3)
    restart(replica, source, 4)
    wait_for(lambda: values(replica) == [3], lambda: f"{values(replica)} {brief(status(replica))}")
    query(replica, f"SET GLOBAL replica_max_allowed_packet = {MIB}")
    source.log.query("DO 1 -- " + "x" * 2 * MIB)
    source.ended.set()
    wait_error(replica, "IO", {1153})


def main():
    with Scratch("omnibus-bombs-") as name:
        # Rows beyond the memory limit go to files, as far as the log's limit lets them.
        limits = (f"--global-connection-memory-limit={64 * MIB}", f"--max-binlog-cache-size={64 * MIB}")
        replica = OmnibusPeer(pathlib.Path(name) / "replica", 2, *limits)
        replica.start()
        query(replica, "CREATE DATABASE d")
        query(replica, "CREATE TABLE d.t (v INT PRIMARY KEY)")
        query(replica, "CREATE TABLE d.b (id INT PRIMARY KEY, v LONGBLOB)")
        source = Source()
        bombs(replica, source)
        much_that_is_nothing(replica, source)
        received(replica, source)
        expect(replica.process.poll() is None, "the server is there")
        expect("panicked" not in replica.log_tail(100000), "a panic in the log")
        replica.stop()
        rows_in_files(name)
    print("replica_bombs: ok")


if __name__ == "__main__":
    main()
