#!/usr/bin/python3
"""The client protocol: compression, query attributes, and character sets of what travels.

Compressed by real clients (mariadb, mariadb-dump, a MariaDB replica that acknowledges) and by a client of ours over zlib and
zstd, Facebook's own library. Frames that lie or stand for much end a connection and cost little.

Ring: gate.
"""

import ctypes
import ctypes.util
import os
import pathlib
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import peers  # noqa: E402
from omnibus import Omnibus, Scratch, client, connect, error_code, expect  # noqa: E402

import pymysql  # noqa: E402
from pymysql.constants import CLIENT, COMMAND, FIELD_TYPE  # noqa: E402

MIB = 1 << 20
COMPRESS, ZSTD, ATTRIBUTES = 1 << 5, 1 << 26, 1 << 27
LEVEL = 7


class Zlib:
    flag, name = COMPRESS, "zlib"
    pack, unpack = staticmethod(zlib.compress), staticmethod(lambda data, size: zlib.decompress(data))


class Zstd:
    flag, name = ZSTD, "zstd"
    library = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
    for function in (library.ZSTD_compressBound, library.ZSTD_compress, library.ZSTD_decompress):
        function.restype = ctypes.c_size_t

    @classmethod
    def call(cls, function, size, data, *more):
        out = ctypes.create_string_buffer(size)
        count = function(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)), *more)
        expect(not cls.library.ZSTD_isError(ctypes.c_size_t(count)), "zstd")
        return out.raw[:count]

    @classmethod
    def pack(cls, data):
        size = cls.library.ZSTD_compressBound(ctypes.c_size_t(len(data)))
        return cls.call(cls.library.ZSTD_compress, size, data, ctypes.c_int(LEVEL))

    @classmethod
    def unpack(cls, data, size):
        return cls.call(cls.library.ZSTD_decompress, size, data)


class Frames:
    """A socket's place in PyMySQL: frames on one side, packets on the other."""

    def __init__(self, sock, algorithm):
        self.sock, self.algorithm, self.number, self.buffer = sock, algorithm, 0, b""
        self.came = self.stood_for = 0

    def sendall(self, data):
        if data[3] == 0 and not self.within:
            self.number = 0
            self.within = data[5:].startswith(b"LOAD DATA LOCAL")
        elif data == b"\0\0\0" + data[3:4]:
            self.within = False
        for at in range(0, len(data), 0xFFFFFF):
            piece = data[at:at + 0xFFFFFF]
            packed = self.algorithm.pack(piece) if len(piece) >= 50 else piece
            self.frame(packed, len(piece) if len(piece) >= 50 else 0)

    # A file is on its way, whose packets begin to count anew by themselves.
    within = False

    def frame(self, packed, size):
        self.sock.sendall(len(packed).to_bytes(3, "little") + bytes([self.number]) + size.to_bytes(3, "little") + packed)
        self.number = (self.number + 1) % 256

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            try:
                more = self.sock.recv(count - len(data))
            except ConnectionResetError:
                # What the server had not read when it closed.
                more = b""
            if not more:
                return b""
            data += more
        return bytes(data)

    def read(self, count):
        while len(self.buffer) < count:
            head = self.exactly(7)
            if not head:
                return b""
            expect(head[3] == self.number, f"frame {head[3]} instead of {self.number}")
            self.number = (self.number + 1) % 256
            payload, size = self.exactly(int.from_bytes(head[:3], "little")), int.from_bytes(head[4:], "little")
            self.buffer += self.algorithm.unpack(payload, size) if size else payload
            self.came += 7 + len(payload)
            self.stood_for += size or len(payload)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def settimeout(self, *_):
        pass

    def shutdown(self, how):
        self.sock.shutdown(how)

    def close(self):
        self.sock.close()


class Compressed(pymysql.connections.Connection):
    """A PyMySQL connection that compresses."""

    def __init__(self, server, algorithm, level=LEVEL, **more):
        self.algorithm, self.level = algorithm, level
        super().__init__(unix_socket=server.socket, user="root", autocommit=True, local_infile=True,
                         client_flag=algorithm.flag | CLIENT.MULTI_STATEMENTS, **more)

    def write_packet(self, payload):
        if self.level is not None and self.algorithm is Zstd and not isinstance(self._sock, Frames):
            payload, self.level = payload + bytes([self.level]), None
        super().write_packet(payload)

    def _request_authentication(self):
        super()._request_authentication()
        self._rfile = self._sock = Frames(self._sock, self.algorithm)


def ask(db, statement, *values):
    with db.cursor() as cursor:
        cursor.execute(statement, values or None)
        return cursor.fetchall()


def all_sizes(server, algorithm):
    db = Compressed(server, algorithm, max_allowed_packet=64 * MIB)
    lines = dict(ask(db, "SHOW SESSION STATUS LIKE 'Compression%'"))
    level = "6" if algorithm is Zlib else str(LEVEL)
    expect(lines == {"Compression": "ON", "Compression_algorithm": algorithm.name, "Compression_level": level}, lines)
    for size in (0, 1, 49, 50, 51, 1000, 200_000, 17 * MIB, 30 * MIB):
        text = ("some words and no more " * (size // 23 + 1))[:size]
        expect(ask(db, "SELECT LENGTH(%s), MD5(%s)", text, text)[0][0] == size, f"{size} there")
        expect(ask(db, f"SELECT REPEAT('x', {size})")[0][0] == "x" * size, f"{size} back")
    expect(db._sock.came < db._sock.stood_for / 5, f"{db._sock.came} bytes for {db._sock.stood_for}")
    noise = os.urandom(MIB).hex()
    expect(ask(db, "SELECT %s", noise)[0][0] == noise, "noise")
    rows = ask(db, "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT a.i, b.i, REPEAT('y', 40) FROM n a, n b")
    expect(len(rows) == 810_000, "a result that is sent as it comes")
    expect(error_code(lambda: ask(db, "SELECT * FROM c.nothing")) == 1146, "an error")
    with db.cursor() as cursor:
        cursor.execute("SELECT 1; SELECT REPEAT('z', 100000); SELECT nothing")
        expect(cursor.fetchall() == ((1,),) and cursor.nextset() and len(cursor.fetchall()[0][0]) == 100_000, "results")
        expect(error_code(cursor.nextset) == 1054, "the last of them")
    db.ping(reconnect=False)
    db.close()


def limits_change(server, admin, algorithm):
    """A frame that comes may take what the session may have now, not what it might when it logged in."""
    ask(admin, "SET GLOBAL connection_memory_limit = 4194304")
    db = Compressed(server, algorithm, max_allowed_packet=64 * MIB)
    ask(admin, "SET GLOBAL connection_memory_limit = DEFAULT")
    ask(db, "SET SESSION connection_memory_limit = DEFAULT")
    noise = os.urandom(4 * MIB).hex()
    expect(ask(db, f"SELECT LENGTH('{noise}')")[0][0] == len(noise), "a packet that needs more than the limit at login")
    db.close()


def local_file(server, algorithm, directory):
    path = pathlib.Path(directory, "rows.txt")
    path.write_text("".join(f"{n}\ttext of the row {n}\n" for n in range(50_000)))
    db = Compressed(server, algorithm)
    ask(db, "CREATE OR REPLACE TABLE c.l (id INT PRIMARY KEY, v VARCHAR(40))")
    ask(db, f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE c.l")
    expect(ask(db, "SELECT COUNT(*), MAX(v) FROM c.l") == ((50_000, "text of the row 9999"),), "rows of a client's file")
    db.close()


def what_is_allowed(server, admin):
    ask(admin, "SET GLOBAL protocol_compression_algorithms = 'zlib'")
    expect(error_code(lambda: Compressed(server, Zstd)) == 3922, "zstd is not allowed")
    expect(error_code(lambda: connect(server)) == 3922, "nor a plain connection")
    expect(ask(Compressed(server, Zlib), "SELECT 1") == ((1,),), "zlib is")
    ask(admin, "SET GLOBAL protocol_compression_algorithms = 'uncompressed,ZSTD'")
    expect(error_code(lambda: Compressed(server, Zlib)) == 3922, "zlib is not allowed")
    expect(ask(Compressed(server, Zstd), "SELECT 1") == ((1,),), "zstd is")
    for wrong in ("", "lz4", "zlib,lz4"):
        code = error_code(lambda: ask(admin, "SET GLOBAL protocol_compression_algorithms = %s", wrong))
        expect(code == 1231, f"{wrong!r} is no list of algorithms: {code}")
    ask(admin, "SET GLOBAL protocol_compression_algorithms = DEFAULT")
    for level in (0, 23):
        expect(error_code(lambda: Compressed(server, Zstd, level=level)) == 3923, f"level {level}")


def resident(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def bad_frames(server, admin, algorithm):
    def answer(packed, size, number=0):
        """The code of the error that a frame ends the connection with."""
        db = Compressed(server, algorithm)
        frames = db._sock
        frames.number = number
        frames.frame(packed, size)
        head = frames.exactly(7)
        expect(head, "an answer")
        payload = frames.exactly(int.from_bytes(head[:3], "little"))
        packet = algorithm.unpack(payload, int.from_bytes(head[4:], "little")) if head[4:] != bytes(3) else payload
        expect(packet[4] == 0xFF and not frames.exactly(1), "an error, and the end")
        return struct.unpack("<H", packet[5:7])[0]

    good = algorithm.pack(b"x" * 1000)
    expect(answer(b"no frame of anything" * 5, 1000) == 1157, "no frame")
    expect(answer(good, 999) == 1157 and answer(good, 1001) == 1157, "another length")
    expect(answer(good[:-5], 1000) == 1157, "cut short")
    expect(answer(good, 1000, number=3) == 1156, "out of order")
    # A command of 16 MiB and more in a few kilobytes, against the limit of packets.
    head = b"\xff\xff\xff\0"
    bomb = algorithm.pack(head + b"\3SELECT" + bytes(0xFFFFFF - len(head) - 7))
    expect(len(bomb) < 40_000, "a bomb is small")
    ask(admin, "SET GLOBAL max_allowed_packet = 1048576")
    before = resident(server)
    for _ in range(20):
        expect(answer(bomb, 0xFFFFFF) == 1153, "a packet past the limit")
    expect(resident(server) - before < 40 * MIB, "what it stands for is not kept")
    ask(admin, "SET GLOBAL max_allowed_packet = DEFAULT")


class Attributed(pymysql.connections.Connection):
    """A PyMySQL connection whose every text may have attributes."""

    def __init__(self, server):
        super().__init__(unix_socket=server.socket, user="root", client_flag=ATTRIBUTES, autocommit=True)

    def _execute_command(self, command, sql):
        if command == COMMAND.COM_QUERY and isinstance(sql, str):
            sql = b"\0\1" + sql.encode()
        super()._execute_command(command, sql)


def attributes(server):
    db = Attributed(server)

    def query(statement, *pairs):
        body = struct.pack("<BB", len(pairs), 1)
        if pairs:
            body += sum(1 << n for n, (_, value) in enumerate(pairs) if value is None).to_bytes((len(pairs) + 7) // 8, "little")
            body += b"\1"
            for name, value in pairs:
                kind = FIELD_TYPE.LONGLONG if isinstance(value, int) else FIELD_TYPE.VAR_STRING
                body += struct.pack("<HB", kind, len(name)) + name.encode()
            for _, value in pairs:
                if isinstance(value, int):
                    body += struct.pack("<q", value)
                elif value is not None:
                    body += bytes([len(value.encode())]) + value.encode()
        db._execute_command(COMMAND.COM_QUERY, body + statement.encode())
        return db._read_query_result() and db._result.rows

    get = "mysql_query_attribute_string"
    expect(query(f"SELECT {get}('trace'), {get}('n'), {get}('none'), {get}('other')",
                 ("trace", "päth"), ("n", -5), ("none", None)) == (("päth", "-5", None, None),), "attributes")
    expect(query(f"SELECT {get}('trace')") == ((None,),), "they are one statement's")
    query("CREATE OR REPLACE TABLE c.a (v VARCHAR(10))")
    query(f"INSERT INTO c.a VALUES ({get}('v'))", ("v", "kept"))
    expect(query("SELECT v FROM c.a") == (("kept",),), "in a change")
    expect(error_code(lambda: query(f"SELECT {get}()")) == 1582, "an argument is missing")


def character_sets(server):
    db = connect(server, charset="latin1", autocommit=True)
    ask(db, "CREATE OR REPLACE TABLE c.s (id INT, v VARCHAR(20) CHARACTER SET utf8mb4, b VARBINARY(20))")
    for statement in ("SET NAMES latin1", "SET NAMES latin1, collation_connection = utf8mb4_general_ci"):
        ask(db, statement)
        ask(db, "DELETE FROM c.s")
        db._execute_command(COMMAND.COM_STMT_PREPARE, "INSERT INTO c.s VALUES (?, ?, ?)")
        id, columns, params = struct.unpack("<IHH", db._read_packet().get_all_data()[1:9])
        for _ in range(params + 1):
            db._read_packet()
        kinds = b"".join(struct.pack("<H", kind) for kind in (FIELD_TYPE.LONGLONG, FIELD_TYPE.VAR_STRING, FIELD_TYPE.BLOB))
        body = struct.pack("<IBI", id, 0, 1) + b"\0\1" + kinds + struct.pack("<q", 1) + b"\2\xe4\xf6" + b"\2\xe4\xf6"
        db._execute_command(COMMAND.COM_STMT_EXECUTE, body)
        expect(db._read_packet().is_ok_packet(), statement)
        expect(ask(db, "SELECT HEX(v), HEX(b) FROM c.s") == (("C3A4C3B6", "E4F6"),), f"{statement}: text and bytes")
    ask(db, "SET NAMES latin1")

    # PyMySQL reads every message as UTF-8.
    def message(statement):
        db._execute_command(COMMAND.COM_QUERY, statement)
        return db._sock.recv(1000)

    expect(b"Table 'c.n\xf6' doesn't exist" in message("SELECT * FROM c.`nö`".encode("latin1")), "an error in latin1")
    ask(db, "SET character_set_client = utf8mb4")
    data = message("SELECT * FROM c.`öд😀`".encode())
    expect(rb"Table 'c." + b"\xf6" + rb"\0434\+01F600' doesn't exist" in data, data)
    message(b"SET NAMES utf8mb4")
    expect("Table 'c.öд😀' doesn't exist".encode() in message("SELECT * FROM c.`öд😀`".encode()), "as it is")


def told_warnings(server):
    """A reply says how many conditions are its own statement's; who shows those of the one before is not told of them again."""
    db = connect(server, autocommit=True)
    cursor = db.cursor()
    for statement, told in (("SELECT 1/0", 1), ("SELECT @@warning_count", 0), ("SHOW WARNINGS", 0), ("SELECT @@warning_count", 0), ("SELECT 2", 0),
                            ("SELECT @@warning_count", 0)):
        cursor.execute(statement)
        expect(cursor._result.warning_count == told, f"{statement}: {cursor._result.warning_count}")
        if statement == "SHOW WARNINGS":
            expect([row[1] for row in cursor.fetchall()] == [1365], "what is shown")
    db.close()


def real_clients(server):
    compressed = ["--compress"]
    show = "SHOW STATUS LIKE 'Compression'"
    expect(client(server, show, *compressed).split() == ["Compression", "ON"], "mariadb --compress")
    expect(client(server, show).split() == ["Compression", "OFF"], "mariadb")
    client(server, "CREATE OR REPLACE TABLE c.d (id INT PRIMARY KEY, v TEXT)", *compressed)
    values = ",".join(f"({n}, REPEAT('text ', {n % 97}))" for n in range(2000))
    client(server, f"INSERT INTO c.d VALUES {values}", *compressed)
    dump = ["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", "--skip-dump-date", "c", "d"]
    plain, small = (subprocess.run([*dump, *more], capture_output=True, check=True).stdout for more in ([], compressed))
    expect(plain == small and len(plain) > 400_000, "a dump is the same")


def replica_compresses(directory):
    source = peers.OmnibusPeer(f"{directory}/source", 1, "--dialect=mariadb")
    replica = peers.MariaPeer(f"{directory}/replica", 2, "--slave-compressed-protocol=ON")
    for server in (source, replica):
        server.start()
        peers.create_user(server)
    peers.query(source, "SET GLOBAL rpl_semi_sync_master_enabled = ON")
    peers.query(source, "SET GLOBAL rpl_semi_sync_master_timeout = 60000")
    peers.query(replica, "SET GLOBAL rpl_semi_sync_slave_enabled = ON")
    peers.replicate(replica, source)
    peers.query(source, "CREATE DATABASE c")
    peers.query(source, "CREATE TABLE c.t (id INT PRIMARY KEY, v LONGTEXT)")
    for n in range(30):
        peers.query(source, f"INSERT INTO c.t VALUES ({n}, REPEAT('v', {n * 1000}))")
    peers.query(source, "INSERT INTO c.t SELECT id + 100, REPEAT('long', 500000) FROM c.t LIMIT 5")
    peers.wait_caught_up(replica, source)
    peers.expect_equal(source, replica)
    acknowledged = peers.query(source, "SHOW STATUS LIKE 'Rpl_semi_sync_master_yes_tx'")
    expect(int(acknowledged[0]["Value"]) >= 30, acknowledged)


def main():
    with Scratch() as directory:
        server = Omnibus(directory, "--local-infile=ON")
        server.start()
        admin = connect(server, autocommit=True)
        ask(admin, "CREATE DATABASE c")
        for algorithm in (Zlib, Zstd):
            all_sizes(server, algorithm)
            limits_change(server, admin, algorithm)
            local_file(server, algorithm, directory)
            bad_frames(server, admin, algorithm)
        what_is_allowed(server, admin)
        attributes(server)
        character_sets(server)
        told_warnings(server)
        real_clients(server)
        replica_compresses(directory)
    print("client protocol: fine")


if __name__ == "__main__":
    main()
