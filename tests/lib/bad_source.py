"""A source that lies: as much of a MySQL source as a replica talks to, over a log that a test makes up and spoils."""

import socketserver
import struct
import threading
import zlib

from omnibus import expect, free_port
from peers import brief, query, status, wait_for

UUID = "11111111-2222-3333-4444-555555555555"
OTHER_UUID = "99999999-2222-3333-4444-555555555555"
FILE = b"bad.000001"
QUERY, ROTATE, FORMAT, XID, TABLE_MAP, WRITE_ROWS, INCIDENT, HEARTBEAT = 2, 4, 15, 16, 19, 30, 26, 27


class Log:
    """Events of a made-up log: well formed, until a test spoils one."""

    def __init__(self):
        self.position = 4
        self.events = []
        lengths = bytearray(42)
        for kind, size in ((2, 13), (4, 8), (15, 99), (19, 8), (26, 2), (30, 10), (31, 10), (32, 10), (39, 10)):
            lengths[kind - 1] = size
        body = struct.pack("<H50sIB", 4, b"8.0.36-bad", 0, 19) + bytes(lengths) + b"\x01"
        self.add(FORMAT, body)

    def add(self, kind, body, log_pos=None, size=None, spoil=None):
        total = 19 + len(body) + 4
        self.position += total
        end = self.position if log_pos is None else log_pos
        event = struct.pack("<IBIIIH", 1700000000, kind, 1, total if size is None else size, end, 0) + body
        event += struct.pack("<I", zlib.crc32(event))
        self.events.append(spoil(event) if spoil else event)
        return self

    def query(self, sql, database=b"d", **more):
        body = struct.pack("<IIBHH", 1, 0, len(database), 0, 0) + database + b"\0" + sql.encode()
        return self.add(QUERY, body, **more)

    def begin(self):
        return self.query("BEGIN")

    def xid(self, **more):
        return self.add(XID, struct.pack("<Q", 7), **more)

    def table(self, name=b"t", number=77, **more):
        body = struct.pack("<Q", number)[:6] + struct.pack("<H", 1) + b"\x01d\0" + bytes([len(name)]) + name + b"\0"
        return self.add(TABLE_MAP, body + b"\x01\x03\0\0", **more)

    def rows(self, *values, number=77, **more):
        body = struct.pack("<Q", number)[:6] + struct.pack("<HH", 1, 2) + b"\x01\xff"
        return self.add(WRITE_ROWS, body + b"".join(b"\xfe" + struct.pack("<i", value) for value in values), **more)

    def insert(self, value):
        return self.begin().table().rows(value).xid()


class Source(socketserver.ThreadingTCPServer):
    """As much of a MySQL source as a replica talks to."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self):
        self.port = free_port()
        super().__init__(("127.0.0.1", self.port), Session)
        self.log, self.answers, self.after, self.raw = Log(), {}, "wait", []
        self.ended = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Session(socketserver.BaseRequestHandler):
    def packet(self, payload, number=None):
        self.number = (self.number + 1) % 256 if number is None else number
        self.request.sendall(struct.pack("<I", len(payload))[:3] + bytes([self.number]) + payload)

    def read(self):
        head = self.exactly(4)
        self.number = head[3]
        return self.exactly(int.from_bytes(head[:3], "little"))

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.request.recv(count - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def handle(self):
        try:
            self.talk()
        except (ConnectionError, OSError):
            pass

    def talk(self):
        greeting = b"\x0a8.0.36-bad\0" + struct.pack("<I", 9) + b"12345678\0" + struct.pack("<H", 0xA20F) + b"\x2d\x02\0"
        greeting += struct.pack("<H", 0x000F | 0x0008) + b"\x15" + bytes(10) + b"123456789012\0mysql_native_password\0"
        self.packet(greeting, 0)
        self.read()
        self.packet(b"\0\0\0\x02\0\0\0")
        while True:
            command = self.read()
            if command[0] == 3:
                self.answer(command[1:].decode())
            elif command[0] == 0x15:
                self.packet(b"\0\0\0\x02\0\0\0")
            elif command[0] in (0x12, 0x1E):
                self.dump(struct.unpack("<I", command[1:5])[0] if command[0] == 0x12 else 4)
                return
            else:
                return

    def answer(self, sql):
        known = {"UNIX_TIMESTAMP": "1700000000", "SERVER_ID": "1", "binlog_checksum": "CRC32", "GTID_MODE": "OFF",
                 "SERVER_UUID": UUID} | self.server.answers
        if sql.startswith("SET"):
            return self.packet(b"\0\0\0\x02\0\0\0")
        value = next((value for name, value in known.items() if name in sql), None)
        text = lambda s: bytes([len(s)]) + s  # noqa: E731
        self.packet(b"\x01")
        self.packet(text(b"def") + b"\0\0\0" + text(b"v") + b"\0" + b"\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0")
        self.packet(b"\xfe\0\0\x02\0")
        if value is not None:
            self.packet(text(value.encode()))
        self.packet(b"\xfe\0\0\x02\0")

    def dump(self, start):
        body = struct.pack("<Q", start) + FILE
        event = struct.pack("<IBIIIH", 0, ROTATE, 1, 19 + len(body) + 4, 0, 0x20) + body
        self.packet(b"\0" + event + struct.pack("<I", zlib.crc32(event)))
        at = 4
        for event in list(self.server.log.events):
            end = at + len(event)
            if at < start and event[4:5] == bytes([FORMAT]):
                # As sources do it: it is not from there.
                event = event[:13] + bytes(4) + event[17:-4]
                event += struct.pack("<I", zlib.crc32(event))
                at = start
            if at >= start:
                self.packet(b"\0" + event)
            at = end
        for raw in self.server.raw:
            self.request.sendall(raw)
        if self.server.after == "wait":
            self.server.ended.wait()


def values(replica):
    return sorted(row["v"] for row in query(replica, "SELECT v FROM d.t"))


def restart(replica, source, position):
    query(replica, "STOP REPLICA")
    query(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, SOURCE_USER='r',"
                   " ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL,"
                   f" SOURCE_PASSWORD='p', SOURCE_LOG_FILE='{FILE.decode()}', SOURCE_LOG_POS={position},"
                   " SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=3")
    query(replica, "START REPLICA")


def wait_error(replica, kind, codes):
    def found():
        row = status(replica)
        return row if int(row[f"Last_{kind}_Errno"]) != 0 and row[f"Slave_{kind}_Running"] == "No" else None
    row = wait_for(found, lambda: f"no {kind} error: {brief(status(replica))}")
    expect(int(row[f"Last_{kind}_Errno"]) in codes, f"{codes} expected: {brief(row)}")
    return row
