"""Connections that make a server keep things: statements, parameters, packets in part, and what watches how much it has."""

import pathlib
import socket
import struct
import threading
import time

from omnibus import Session, connect, error_code, expect

MIB = 1 << 20
CAPACITY_EXCEEDED = 3170
# Statements of several seconds are killed, and end well before this on a busy machine.
STUCK_S = 60
PREPARE, EXECUTE, LONG_DATA, CLOSE = 22, 23, 24, 25


def resident(process, name="VmRSS"):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


class Watch(threading.Thread):
    """Another session, which must be answered all the time, and the most that the server ever had. Ends a server that takes the
    machine's memory."""

    def __init__(self, server, most):
        super().__init__(name="another session", daemon=True)
        self.server, self.most, self.over, self.answers, self.peak = server, most, threading.Event(), 0, 0
        self.session = Session(server)
        # The connection that runs something, and since when: nobody runs longer than some seconds.
        self.busy = None

    def run(self):
        killed = None
        while not self.over.wait(0.01):
            busy = self.busy
            if busy and time.monotonic() - busy[1] > 5 and killed is not busy:
                error_code(lambda: self.session(f"KILL QUERY {busy[0]}"), but={1094})  # noqa: B023
                killed = busy
            if busy and time.monotonic() - busy[1] > STUCK_S:
                self.server.kill()
                raise SystemExit(f"FAIL: a statement goes on {STUCK_S - 5} s after KILL")
            self.peak = max(self.peak, resident(self.server.process))
            if self.peak > 3 * self.most:
                self.server.kill()
                raise SystemExit(f"FAIL: the server has {self.peak // MIB} MiB")
            expect(self.session.value("SELECT id + 1 FROM d.point WHERE id = 7") == 8, "a point select beside the hungry ones")
            self.answers += 1

    def end(self):
        self.over.set()
        self.join()
        expect(self.answers > 0, "another session went on")


class Hungry(Session):
    """A session with prepared statements of the binary protocol. Errors of memory are answers."""

    def __init__(self, server, **more):
        super().__init__(server, **more)
        self.statements = []

    def refused(self, sql):
        """Whether memory was refused; every other error is one."""
        return error_code(lambda: self(sql), but={CAPACITY_EXCEEDED}) == CAPACITY_EXCEEDED

    def command(self, number, payload):
        # The library takes commands for text, and the head of a packet for its own.
        self.db._execute_command(number, payload)

    def prepare(self, sql):
        """The number of a statement."""
        self.command(PREPARE, sql if isinstance(sql, bytes) else sql.encode())
        head = self.db._read_packet()._data
        number, columns, params = struct.unpack_from("<IHH", head, 1)
        for count in (params, columns):
            for _ in range(count + (1 if count else 0)):
                self.db._read_packet()
        self.statements.append((number, params))
        return number

    def long_data(self, number, param, data):
        self.command(LONG_DATA, struct.pack("<IH", number, param) + data)

    def execute_long(self, number, params):
        """Runs a statement all of whose parameters have come as long data. Its rows are left unread."""
        nulls = bytes((params + 7) // 8)
        self.command(EXECUTE, struct.pack("<IBI", number, 0, 1) + nulls + b"\1" + b"\xfc\0" * params)
        return self.db._read_packet()

    def close_statement(self, number):
        self.command(CLOSE, struct.pack("<I", number))


class Half:
    """A connection that has sent a part of a packet and says no more."""

    def __init__(self, server, said, length, compressed=False, **more):
        self.db = connect(server, compress=False, **more)
        head = struct.pack("<I", length)[:3] + b"\0"
        self.error = None
        try:
            self.db._sock.settimeout(30)
            self.db._sock.sendall(head + b"\3" + b"x" * (said - 1))
        except OSError as error:
            self.error = error

    def was_refused(self):
        """Whether the server has said something, which can be a refusal only."""
        self.db._sock.setblocking(False)
        try:
            return self.error is not None or len(self.db._sock.recv(4096, socket.MSG_PEEK)) >= 0
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self):
        self.db._force_close()
