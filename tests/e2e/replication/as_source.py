#!/usr/bin/env python3
"""The server as the source of a replication stream: what a client is sent, byte for byte, and how a stream ends.

Raw COM_BINLOG_DUMP over PyMySQL connections, and MariaDB as a replica.

Ring: gate.
"""

import pathlib
import socket
import struct
import sys
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
from omnibus import PATIENCE_S, MariaDB, Omnibus, Scratch, client, connect, error_code, expect, wait_for  # noqa: E402

ROTATE, FORMAT, HEARTBEAT, IGNORABLE, HEARTBEAT_V2 = 4, 15, 27, 28, 41


def send(connection, command, payload):
    body = bytes([command]) + payload
    connection._next_seq_id = 0
    connection._write_bytes(struct.pack("<I", len(body))[:3] + b"\0" + body)
    connection._next_seq_id = 1


class Dump:
    """One COM_BINLOG_DUMP."""

    def __init__(self, server, file="", position=4, flags=0, server_id=77, variables="@source_binlog_checksum='CRC32'",
                 user="root", register=False, timeout=PATIENCE_S):
        self.connection = connect(server, user=user, autocommit=True, read_timeout=timeout)
        if variables:
            self.connection.query(f"SET {variables}")
        if register:
            send(self.connection, 0x15, struct.pack("<I", server_id) + b"\4host\4user\0" + struct.pack("<HII", 3307, 0, 0))
            self.connection._read_ok_packet()
        send(self.connection, 0x12, struct.pack("<IHI", position, flags, server_id) + file.encode())

    def packet(self):
        """The next event, or None at an EOF."""
        data = self.connection._read_packet().get_all_data()
        if data[0] == 0xFE and len(data) < 9:
            return None
        expect(data[0] == 0, f"a packet that starts with {data[0]}")
        return data[1:]

    def events(self):
        while (event := self.packet()) is not None:
            yield event

    def until(self, wanted):
        """Reads up to an event of this type."""
        for event in self.events():
            if event[4] == wanted:
                return event
        raise SystemExit(f"FAIL: no event of type {wanted}")

    def error(self):
        """The error that the stream ends with."""
        try:
            for _ in self.events():
                pass
        except pymysql.err.MySQLError as error:
            return error.args
        return (0, "")

    def close(self):
        self.connection._force_close()


def header(event):
    return dict(zip(("timestamp", "type", "server_id", "size", "end", "flags"), struct.unpack("<IBIIIH", event[:19])))


def in_file(data):
    """The events of a log file: offset and bytes."""
    at = 4
    while at < len(data) and data[at:at + 19].strip(b"\0"):
        size = struct.unpack("<I", data[at + 9:at + 13])[0]
        yield at, data[at:at + size]
        at += size


def is_private(event):
    return event[4] == IGNORABLE and event[19:23] == b"OMNI"


def plain_format(event):
    """FORMAT_DESCRIPTION without the flag that says the file is open, which its checksum does not cover."""
    return event[:17] + bytes([event[17] & ~1]) + event[18:]


def rotate(event):
    h = header(event)
    expect(h["type"] == ROTATE and h["flags"] & 0x20 and h["timestamp"] == 0 and h["end"] == 0, f"a made-up ROTATE: {h}")
    return event


def fill(server):
    client(server, """
        CREATE DATABASE d; USE d;
        CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100)); CREATE TABLE h (v INT);
        INSERT INTO t VALUES (1,'a'),(2,'b'); INSERT INTO h VALUES (1),(2);
        UPDATE t SET v='c' WHERE id=1; FLUSH BINARY LOGS;
        BEGIN; INSERT INTO t VALUES (3,'x'); DELETE FROM t WHERE id=2; COMMIT; FLUSH BINARY LOGS;
        INSERT INTO t VALUES (4,REPEAT('y',90));
    """)


def check_bytes(server, rest=0):
    """What is not private is sent as it is in the files, in order, with each file announced; also to a client that is slow."""
    for checksums in (True, False):
        value = "CRC32" if checksums else "NONE"
        dump = Dump(server, flags=1, variables=f"@source_binlog_checksum='{value}'")
        time.sleep(rest)
        sent = list(dump.events())
        at = 0
        for name in server.binlogs():
            data = pathlib.Path(name).read_bytes()
            event = rotate(sent[at])
            body = event[19:-4] if checksums else event[19:]
            expect(body == struct.pack("<Q", 4) + pathlib.Path(name).name.encode(), f"the file's name: {body}")
            if checksums:
                expect(zlib.crc32(event[:-4]) == struct.unpack("<I", event[-4:])[0], "a ROTATE's checksum")
            at += 1
            for offset, event in in_file(data):
                if is_private(event):
                    continue
                got = sent[at]
                if event[4] == FORMAT:
                    expect(zlib.crc32(got[:-4]) == struct.unpack("<I", got[-4:])[0], "a format's checksum")
                    expect(got[-5] == int(checksums), "the algorithm that it announces")
                    if checksums:
                        expect(plain_format(event) == got, f"{name} at {offset}: the format description differs")
                elif checksums:
                    expect(event == got, f"{name} at {offset}: {event} was sent as {got}")
                else:
                    expect(event[:9] + struct.pack("<I", len(event) - 4) + event[13:-4] == got, f"{name} at {offset}")
                at += 1
        expect(at == len(sent), f"{len(sent) - at} events too many were sent")


def check_middle(server):
    """A stream that starts behind a file's first event."""
    name = server.binlogs()[0]
    offsets = [offset for offset, event in in_file(pathlib.Path(name).read_bytes()) if not is_private(event)]
    start = offsets[len(offsets) // 2]
    sent = list(Dump(server, file=pathlib.Path(name).name, position=start, flags=1).events())
    expect(struct.unpack("<Q", rotate(sent[0])[19:27])[0] == start, "the ROTATE says where the stream starts")
    expect(header(sent[1])["type"] == FORMAT and header(sent[1])["end"] == 0, "a format description without a position")
    expect(sent[1][71:75] == b"\0\0\0\0", "and without a creation time, which would drop temporary tables")
    expect(header(sent[2])["end"] - header(sent[2])["size"] == start, "then the event that was asked for")


def check_long(server):
    """Events that are sent in pieces, and in several frames."""
    client(server, "CREATE TABLE d.long (v LONGTEXT)")
    file, position = client(server, "SHOW BINARY LOG STATUS").split("\t")[:2]
    follower = Dump(server, file=file, position=int(position))
    follower.until(FORMAT)
    for length in (20_000, 300_000, 5_000_000, 17_000_000, 100):
        client(server, f"INSERT INTO d.long VALUES (REPEAT('l',{length}))")
    written = [event for offset, event in in_file((server.datadir / file).read_bytes())
               if offset >= int(position) and not is_private(event)]
    expect(len(written) >= 15 and all(follower.packet() == event for event in written), "what a follower gets")
    follower.close()
    check_bytes(server, rest=0.3)
    client(server, "FLUSH BINARY LOGS")
    check_bytes(server)


def check_unacknowledged(server):
    """A semi-synchronous replica has what it has acknowledged, however large: one that says nothing has nothing."""
    file, position = client(server, "SHOW BINARY LOG STATUS").split("\t")[:2]
    silent = Dump(server, file=file, position=int(position), variables="@source_binlog_checksum='CRC32', @rpl_semi_sync_slave=1")
    silent.connection._read_packet()
    client(server, "SET GLOBAL rpl_semi_sync_source_timeout=1000, GLOBAL rpl_semi_sync_source_enabled=ON")
    started = time.monotonic()
    client(server, "INSERT INTO d.long VALUES (REPEAT('u',300000))")
    expect(time.monotonic() - started > 0.9, "a commit was acknowledged by nobody")
    client(server, "SET GLOBAL rpl_semi_sync_source_enabled=OFF")
    silent.close()


def check_filled(server):
    """A MySQL replica adds lengths up: what it is not sent is filled with something of the same length."""
    sent = Dump(server, flags=1, variables="@source_binlog_checksum='CRC32', @replica_uuid=UUID()").events()
    position = 0
    for event in sent:
        expect(not is_private(event), "a private event was sent")
        h = header(event)
        if h["flags"] & 0x20:
            position = struct.unpack("<Q", event[19:27])[0]
        else:
            position += h["size"]
            expect(h["end"] == position, f"{h} ends at {position}")


def check_errors(server):
    """Each ends the stream with 1236 and says why, or is refused before it begins."""
    def refusal(**request):
        dump = Dump(server, **request)
        code, text = dump.error()
        expect(code == 1236, f"{request}: {code} {text}")
        dump.close()
        return text

    last = pathlib.Path(server.binlogs()[-1]).name
    expect("Could not find first log file name" in refusal(file="binlog.000099"), "a file that is not there")
    expect("Could not find first log file name" in refusal(file="../../etc/passwd"), "a name that is no log file's")
    expect("position < 4" in refusal(position=0), "a position inside the magic number")
    expect("position > file size" in refusal(file=last, position=1 << 30), "a position behind the end")
    expect("bogus data" in refusal(position=5), "a position inside an event")
    expect("checksum" in refusal(variables=""), "a client that knows no checksums")
    client(server, "CREATE USER nobody@localhost")
    dump = Dump(server, user="nobody")
    expect(dump.error()[0] == 1227, "no REPLICATION SLAVE privilege")
    connection = connect(server)
    send(connection, 0x12, b"\4\0")
    expect(error_code(connection._read_packet) == 1835, "a request that is cut")


def gtid_set(text):
    """A set as COM_BINLOG_DUMP_GTID has it."""
    parts = [part.split(":") for part in text.split(",") if part]
    data = struct.pack("<Q", len(parts))
    for uuid, *intervals in parts:
        data += bytes.fromhex(uuid.replace("-", "")) + struct.pack("<Q", len(intervals))
        for interval in intervals:
            first, _, last = interval.partition("-")
            data += struct.pack("<QQ", int(first), int(last or first) + 1)
    return data


class GtidDump(Dump):
    """One COM_BINLOG_DUMP_GTID, to the end of the log."""

    def __init__(self, server, executed, claim=None):
        self.connection = connect(server, autocommit=True, read_timeout=PATIENCE_S)
        self.connection.query("SET @source_binlog_checksum='CRC32', @replica_uuid=UUID()")
        data = gtid_set(executed)
        send(self.connection, 0x1E, struct.pack("<HIIQI", 5, 79, 0, 4, claim or len(data)) + data)


def numbers(dump):
    return [struct.unpack("<Q", event[36:44])[0] for event in dump.events() if event[4] == 33]


def check_gtids(server):
    """MySQL's dialect: what the client has is left out; what it cannot get, or should not have, is named."""
    executed = client(server, "SELECT @@gtid_executed").strip()
    uuid, _, last = executed.partition(":1-")
    last = int(last)
    expect(numbers(GtidDump(server, "")) == list(range(1, last + 1)), "everything to a client that has nothing")
    got = numbers(GtidDump(server, f"{uuid}:1-3:5"))
    expect(got == [4, *range(6, last + 1)], f"what a client lacks: {got}")
    position = 0
    for event in GtidDump(server, f"{uuid}:1-{last - 1}").events():
        h = header(event)
        position = struct.unpack("<Q", event[19:27])[0] if h["flags"] & 0x20 else max(position, h["end"])
    expect(position == int(client(server, "SHOW BINARY LOG STATUS").split("\t")[1]), f"the stream ends at {position}")
    expect(numbers(GtidDump(server, executed)) == [], "nothing to a client that has all")
    code, text = GtidDump(server, f"{uuid}:1-{last + 5}").error()
    expect(code == 1236 and f"{uuid}:{last + 1}-{last + 5}" in text, f"a client that is ahead: {code} {text}")
    expect(GtidDump(server, executed, claim=1 << 30).error()[0] == 1835, "a set that claims to be longer than it is")
    second = pathlib.Path(server.binlogs()[1]).name
    client(server, f"PURGE BINARY LOGS TO '{second}'")
    purged = client(server, "SELECT @@gtid_purged").strip()
    code, text = GtidDump(server, f"{uuid}:1").error()
    expect(code == 1236 and purged.replace(":1-", ":2-") in text, f"what was purged: {purged} {code} {text}")
    first = int(purged.rpartition("-")[2]) + 1
    expect(numbers(GtidDump(server, purged)) == list(range(first, last + 1)), "what is left")


def check_waiting(server):
    """What is committed later arrives, silence is broken by heartbeats, and every way to end ends it promptly."""
    last = pathlib.Path(server.binlogs()[-1]).name
    position = int(client(server, "SHOW BINARY LOG STATUS").split("\t")[1])
    beats = "@source_binlog_checksum='CRC32', @master_heartbeat_period=200000000"
    dump = Dump(server, file=last, position=position, variables=beats, register=True)
    for _ in range(3):
        beat = dump.until(HEARTBEAT)
        expect(beat[19:-4] == last.encode() and header(beat)["end"] == position, f"a heartbeat's place: {header(beat)}")
    client(server, "INSERT INTO d.t VALUES (100,'later')")
    expect(b"later" in dump.until(30), "a row committed while the dump waits")
    version2 = Dump(server, file=last, position=position, flags=2, server_id=78, variables=beats)
    expect(last.encode() in version2.until(HEARTBEAT_V2), "a heartbeat of the second version")
    expect(client(server, "SHOW REPLICAS").split("\t")[:3] == ["77", "host", "3307"], client(server, "SHOW REPLICAS"))
    expect(client(server, "SHOW SLAVE HOSTS").startswith("77\thost"), "the old name of the same")

    def listed():
        lines = client(server, "SHOW PROCESSLIST").splitlines()
        return [line.split("\t") for line in lines if "Binlog Dump" in line]

    wait_for(lambda: len(listed()) == 2 and "waiting for more updates" in listed()[0][6], lambda: f"SHOW PROCESSLIST: {listed()}")
    # A third with the first one's identity ends the first; KILL ends the second; a vanished client ends the third.
    again = Dump(server, file=last, position=position, server_id=77)
    code, text = dump.error()
    expect(code == 1236 and "same server_uuid/server_id" in text, f"{code} {text}")
    wait_for(lambda: client(server, "SHOW REPLICAS") == "", "a replica that left is listed")
    client(server, f"KILL {version2.connection.thread_id()}")
    expect(version2.error()[0] == 2013, "KILL ends the connection, which a client mends by itself")
    again.until(30)
    again.connection._sock.shutdown(socket.SHUT_RDWR)
    wait_for(lambda: not listed(), lambda: f"dumps are left: {listed()}")


def counter(server, name):
    return int(client(server, f"SHOW GLOBAL STATUS LIKE '{name}'").split("\t")[1])


def check_shared(server):
    """Many followers of the log's end read it once."""
    last = log_names(server)[-1]
    position = int(client(server, "SHOW BINARY LOG STATUS").split("\t")[1])
    followers = [Dump(server, file=last, position=position, server_id=1000 + n) for n in range(50)]
    for follower in followers:
        follower.until(FORMAT)
    client(server, "INSERT INTO d.t VALUES (1999,'first')")
    for follower in followers:
        follower.until(16)
    own, shared = counter(server, "Binlog_dump_file_reads"), counter(server, "Binlog_dump_tail_reads")
    client(server, "; ".join(f"INSERT INTO d.t VALUES ({n},'shared')" for n in range(2000, 2100)))
    for follower in followers:
        rows = 0
        while rows < 100:
            rows += b"shared" in follower.packet()
    expect(counter(server, "Binlog_dump_file_reads") == own, "followers read files")
    expect(counter(server, "Binlog_dump_tail_reads") - shared <= 120, "the tail was read more than once")
    for follower in followers:
        follower.close()


def check_stuck(server):
    """A client that does not read cannot keep KILL or the server waiting."""
    client(server, "CREATE TABLE d.big (v LONGTEXT); INSERT INTO d.big VALUES (REPEAT('z',8000000)),(REPEAT('z',8000000))")
    stuck = Dump(server)
    stuck.packet()
    client(server, f"KILL {stuck.connection.thread_id()}")
    ends = ("Binlog Dump", "Killed")
    wait_for(lambda: not any(word in client(server, "SHOW PROCESSLIST") for word in ends), "KILL waits for a client that does not read")


def log_names(server):
    return [line.split("\t")[0] for line in client(server, "SHOW BINARY LOGS").splitlines()]


def check_purge(server):
    """PURGE-1: files that a dump still reads stay."""
    names = log_names(server)
    reading = Dump(server, file=names[1])
    # The client reads nothing; the dump is in some file from the second on until the end.
    reading.packet()
    done = client(server, f"PURGE BINARY LOGS TO '{names[1]}'", check=False)
    expect(done.returncode == 0, f"no one reads the first file: {done.stderr}")
    expect(log_names(server)[0] == names[1], "the first file is gone")
    gone = Dump(server, file=names[0])
    expect("Could not find first log file name" in gone.error()[1], "a purged file")
    reading.close()


def check_shutdown(server):
    waiting = Dump(server)
    waiting.until(FORMAT)
    started = time.monotonic()
    server.stop()
    expect(time.monotonic() - started < 45, "a dump keeps the server from stopping")


def check_damage(server):
    """A damaged file: what is before the damage is sent. Then the error says where it is, if the source looks: always at
    lengths, at checksums with source_verify_checksum=ON and for a client that is not sent them. Else the client sees it."""
    client(server, "FLUSH BINARY LOGS")
    name = log_names(server)[0]
    server.stop()
    path = server.datadir / name
    whole = path.read_bytes()
    events = [offset for offset, event in in_file(whole) if not is_private(event)]
    at = events[len(events) // 2]

    def spoil(place):
        data = bytearray(whole)
        data[place] ^= 1
        path.write_bytes(data)

    def is_named(checksum):
        dump, seen = Dump(server, file=name, variables=f"@source_binlog_checksum='{checksum}'"), []
        try:
            for event in dump.events():
                seen.append(header(event)["end"])
            code, text = 0, ""
        except pymysql.err.MySQLError as error:
            code, text = error.args
        expect(code == 1236 and f"'{name}' at {at}" in text, f"{code} {text} instead of {name} at {at}")
        expect(max(seen) <= at and len(seen) >= len(events) // 2, f"{len(seen)} events before the damage")

    spoil(at + 20)
    server.start()
    sent = Dump(server, file=name, flags=1).events()
    wrong = [header(event) for event in sent if zlib.crc32(event[:-4]) != struct.unpack("<I", event[-4:])[0]]
    expect([h["end"] - h["size"] for h in wrong] == [at], f"the client is left to see a wrong checksum at {at}: {wrong}")
    is_named("NONE")
    client(server, "SET GLOBAL source_verify_checksum=ON")
    is_named("CRC32")
    client(server, "SET GLOBAL source_verify_checksum=OFF")
    spoil(at + 10)
    is_named("CRC32")
    path.write_bytes(whole)


def check_mariadb(directory):
    """A MariaDB replica by file and position, rows and definitions."""
    source = Omnibus(directory, "--server-id=1")
    source.start()
    replica = MariaDB(directory, "--server-id=2", "--log-bin=off", "--slave-net-timeout=10")
    replica.start()
    try:
        client(source, "CREATE USER r@'%' IDENTIFIED WITH mysql_native_password BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO r@'%'")
        client(replica, f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, MASTER_USER='r', "
                        "MASTER_PASSWORD='secret', MASTER_USE_GTID=no, MASTER_HEARTBEAT_PERIOD=0.5; START SLAVE")
        fill(source)
        file, position = client(source, "SHOW BINARY LOG STATUS").split("\t")[:2]
        caught_up(replica, file, position)
        for table in ("t", "h"):
            query = f"SELECT * FROM d.{table} ORDER BY 1"
            expect(client(source, query) == client(replica, query), f"d.{table} differs")
        # Heartbeats fit what the replica counts itself.
        time.sleep(1.2)
        expect("Yes\tYes" in status(replica, "Slave_IO_Running", "Slave_SQL_Running"), "the replica runs on")
        source.stop()
        source.start()
        client(source, "INSERT INTO d.t VALUES (900,'after a restart')")
        file, position = client(source, "SHOW BINARY LOG STATUS").split("\t")[:2]
        client(replica, "STOP SLAVE; START SLAVE")
        caught_up(replica, file, position)
        expect("after a restart" in client(replica, "SELECT * FROM d.t"), "the row after a restart")
    finally:
        replica.stop()
        source.stop()


def check_mariadb_gtid(directory):
    """A MariaDB replica by MariaDB's GTIDs: from nothing, from where it was, and from a place that is gone."""
    source = Omnibus(directory, "--server-id=1", "--dialect=mariadb")
    source.start()
    replica = MariaDB(directory, "--server-id=2", "--slave-net-timeout=10")
    replica.start()
    try:
        client(source, "CREATE USER r@'%' IDENTIFIED WITH mysql_native_password BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO r@'%'")
        client(replica, f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, MASTER_USER='r', "
                        "MASTER_PASSWORD='secret', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1; START SLAVE")
        fill(source)

        def follow():
            position = client(source, "SELECT @@gtid_binlog_pos").strip()
            done = client(replica, f"SELECT MASTER_GTID_WAIT('{position}', {PATIENCE_S})").strip()
            wrong = status(replica, "Last_IO_Error", "Last_SQL_Error", "Using_Gtid", "Gtid_IO_Pos")
            expect(done == "0", f"the replica did not come to {position}: {wrong}")
            for table in ("t", "h"):
                query = f"SELECT * FROM d.{table} ORDER BY 1"
                expect(client(source, query) == client(replica, query), f"d.{table} differs")

        follow()
        expect(status(replica, "Using_Gtid") == "Slave_Pos", f"Using_Gtid: {status(replica, 'Using_Gtid')}")
        client(replica, "STOP SLAVE")
        client(source, "INSERT INTO d.t VALUES (500,'while it was away'); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (501,'x')")
        client(replica, "START SLAVE")
        follow()
        # Until: the first of two transactions.
        client(replica, "STOP SLAVE")
        client(source, "INSERT INTO d.t VALUES (502,'wanted')")
        until = client(source, "SELECT @@gtid_binlog_pos").strip()
        client(source, "INSERT INTO d.t VALUES (503,'not yet')")
        client(replica, f"START SLAVE UNTIL master_gtid_pos='{until}'")
        wait_for(lambda: status(replica, "Slave_IO_Running", "Slave_SQL_Running") == "No\tNo",
                 lambda: f"UNTIL: {status(replica, 'Slave_IO_Running', 'Slave_SQL_Running', 'Last_IO_Error')}")
        rows = client(replica, "SELECT id FROM d.t WHERE id > 501").split()
        expect(rows == ["502"], f"UNTIL: {rows}")
        # Purged: a replica that is too far behind is told.
        last = pathlib.Path(source.binlogs()[-1]).name
        client(source, f"FLUSH BINARY LOGS; PURGE BINARY LOGS TO '{last}'")
        client(replica, "SET GLOBAL gtid_slave_pos='0-1-1'; START SLAVE")
        wait_for(lambda: "1236" in status(replica, "Last_IO_Errno"), "a purged position goes unnoticed")
    finally:
        replica.stop()
        source.stop()


def status(replica, *columns):
    text = client(replica, "SHOW SLAVE STATUS\\G", "--column-names")
    lines = dict(line.strip().partition(": ")[::2] for line in text.splitlines())
    return "\t".join(lines.get(column, "") for column in columns)


def caught_up(replica, file, position):
    done = client(replica, f"SELECT MASTER_POS_WAIT('{file}', {position}, {PATIENCE_S})").strip()
    wrong = status(replica, "Last_IO_Error", "Last_SQL_Error", "Master_Log_File", "Read_Master_Log_Pos")
    expect(done not in ("-1", "NULL"), f"the replica did not come to {file} {position}: {wrong}")


def main():
    with Scratch() as directory:
        server = Omnibus(directory)
        server.start()
        try:
            fill(server)
            check_bytes(server)
            check_middle(server)
            check_filled(server)
            check_errors(server)
            check_waiting(server)
            check_shared(server)
            check_stuck(server)
            check_long(server)
            check_unacknowledged(server)
            check_gtids(server)
            check_purge(server)
            check_shutdown(server)
            server.start()
            check_damage(server)
        finally:
            server.stop()
    with Scratch() as directory:
        check_mariadb(directory)
    with Scratch() as directory:
        check_mariadb_gtid(directory)
    print("replication source: ok")


main()
