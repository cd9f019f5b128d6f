#!/usr/bin/python3
"""Both network drivers: io_uring where the kernel has it, epoll where a start asks for it or a container forbids the other.

With each of them: clients that commit at once get their own answers in order, also when they send many statements before they read; one
that does not read holds up nobody else, goes by KILL and by `net_write_timeout`, and gets all of its replies if it reads after all; clients
that vanish with their replies unread do no harm; TLS, compression and packets of 20 MB pass as they are, and connections that wait for their
client slow nobody. `auto` falls back where the system call is forbidden, `io_uring` is then
refused, and status variables say which one is used and how many replies left together.

Ring: gate.
"""

import ctypes
import pathlib
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, binary, client, connect, expect, wait_for  # noqa: E402

CLIENTS, COMMITS, IDLE = 24, 60, 1000
ROOM = (f"--max-connections={IDLE + 100}", "--max-allowed-packet=64M")
IO_URING_SETUP = 425


def forbid():
    """Makes io_uring_setup fail with EPERM in this process, as containers do: a filter of four instructions."""
    code = [(0x20, 0, 0, 0), (0x15, 0, 1, IO_URING_SETUP), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
    program = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are.
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    # PR_SET_NO_NEW_PRIVS, then PR_SET_SECCOMP with SECCOMP_MODE_FILTER.
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(filter_)), 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class Contained(Omnibus):
    def launch(self, command, **more):
        super().launch(command, preexec_fn=forbid, **more)


def status(session, name):
    return session(f"SHOW GLOBAL STATUS LIKE '{name}'")[0][1]


class Raw:
    """A connection whose packets the test sends and reads itself."""

    def __init__(self, server):
        self.connection = connect(server, autocommit=True)
        self.id = self.connection.thread_id()
        self.socket = self.connection._sock
        self.socket.settimeout(60)

    def vanish(self):
        self.connection._force_close()
        self.socket.close()

    def send(self, *texts):
        body = b"".join((len(text) + 1).to_bytes(3, "little") + b"\0\3" + text.encode() for text in texts)
        self.socket.sendall(body)

    def flood(self, text):
        """Sends a statement until the server takes no more; how many were sent whole. Ends with a torn one, if any."""
        packet = (len(text) + 1).to_bytes(3, "little") + b"\0\3" + text.encode()
        self.socket.settimeout(0.5)
        sent = 0
        try:
            while sent < 100 << 20:
                sent += self.socket.send(packet[sent % len(packet):] + packet * 200)
        except OSError:
            pass
        self.socket.settimeout(60)
        return sent, packet

    def exactly(self, count):
        data = bytearray()
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("closed")
            data += more
        return bytes(data)

    def packet(self):
        head = self.exactly(4)
        return self.exactly(int.from_bytes(head[:3], "little"))

    def value(self):
        """The only value of the next result."""
        self.packet(), self.packet()
        first = self.packet()
        row = self.packet() if first[0] == 0xFE else first
        end = self.packet()
        expect(end[0] == 0xFE, f"the end of a result: {end!r}")
        return row[1:].decode()


def commits(server):
    """Everybody commits at once, and sees what they changed themselves."""
    def work(n):
        session = Session(server)
        for k in range(COMMITS):
            session(f"INSERT INTO d.t VALUES ({n * COMMITS + k}, {n})")
            expect(session.value(f"SELECT COUNT(*) FROM d.t WHERE b = {n}") == k + 1, "its own rows")
        session.close()
    threads = [threading.Thread(target=work, args=(n,)) for n in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def pipelined(server):
    raw = Raw(server)
    raw.send(*(f"SELECT {n} + 1" for n in range(3000)))
    expect([raw.value() for _ in range(3000)] == [str(n + 1) for n in range(3000)], "answers in the order of the questions")
    raw.connection.close()


def slow_reader(server, session):
    raw = Raw(server)
    sent, packet = raw.flood("SELECT 'as good as any other'")
    expect(session.value("SELECT 1") == 1, "others are answered")
    whole, torn = divmod(sent, len(packet))
    for _ in range(whole):
        expect(raw.value() == "as good as any other", "a reply that was left unread for long")
    raw.socket.sendall(packet[torn:] if torn else packet)
    expect(raw.value() == "as good as any other", "and the last one")
    raw.connection.close()


def is_gone(session, raw):
    return lambda: session.value(f"SELECT COUNT(*) FROM information_schema.processlist WHERE id = {raw.id}") == 0


def killed(server, session):
    raw = Raw(server)
    raw.flood("SELECT 'to nobody'")
    session(f"KILL {raw.id}")
    wait_for(is_gone(session, raw), lambda: "KILL does not end who does not read", timeout=20)
    raw.vanish()


def timed_out(server, session):
    raw = Raw(server)
    raw.send("SET net_write_timeout = 1")
    raw.packet()
    raw.flood("SELECT 'to nobody'")
    began = time.monotonic()
    wait_for(is_gone(session, raw), lambda: "net_write_timeout does not end who does not read", timeout=20)
    expect(time.monotonic() - began < 15, "in its time")
    raw.vanish()


def other_ways(server, session):
    """TLS, compression, both, and texts and rows of more than one packet, whose replies leave by themselves, beside those that leave together."""
    for number, options in enumerate((["--ssl", "--skip-ssl-verify-server-cert"], ["--compress"], ["--compress", "--ssl", "--skip-ssl-verify-server-cert"])):
        sql = "; ".join(f"INSERT INTO d.t VALUES ({2_000_000 + number * 100 + k}, -1); SELECT {k}, REPEAT('y', {k * 1000})" for k in range(100))
        rows = [line.split("\t") for line in client(server, sql, *options).splitlines()]
        expect([(int(k), text) for k, text in rows] == [(k, "y" * k * 1000) for k in range(100)], f"answers with {options}")
        expect(session.value("SELECT COUNT(*) FROM d.t WHERE b = -1") == 100 * (number + 1), "their commits")
    with connect(server, max_allowed_packet=64 << 20).cursor() as cursor:
        text = "0123456789abcdef" * (20 << 16)
        cursor.execute(f"SELECT 1, '{text}', 2")
        expect(cursor.fetchall() == ((1, text, 2),), "a text and a row of 20 MB")


def idle(server, session):
    waiting = [connect(server) for _ in range(IDLE)]
    expect(int(status(session, "Threads_connected")) > IDLE, "they are there")
    commits(server)
    for connection in waiting[::50]:
        connection.ping(reconnect=False)
    for connection in waiting:
        connection._force_close()


def vanish(server, session):
    before = session.value("SELECT COUNT(*) FROM d.t")
    for n in range(40):
        raw = Raw(server)
        raw.send(f"INSERT INTO d.t VALUES ({1_000_000 + n}, 0)", "SELECT SLEEP(0.01)", "SELECT 2")
        if n % 2:
            raw.packet()
        raw.vanish()
    wait_for(lambda: session.value("SELECT COUNT(*) FROM d.t") >= before + 20, lambda: "their commits", timeout=20)
    wait_for(lambda: session.value("SELECT COUNT(*) FROM information_schema.processlist WHERE command <> 'Daemon'") == 1,
             lambda: "connections that have gone stay", timeout=20)


def check(server, name):
    server.start()
    session = Session(server)
    expect(session.value("SELECT @@network_driver") == name, f"the driver is {session.value('SELECT @@network_driver')}, not {name}")
    expect(status(session, "Omnibus_network_driver") == name, "as the status says")
    session.run("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY, b INT, KEY (b))")
    commits(server)
    together, calls = (int(status(session, f"Omnibus_network_gathered_{what}")) for what in ("replies", "sends"))
    if name == "io_uring":
        expect(together >= 2 * calls > 0, f"{together} replies left together in {calls} calls")
    else:
        expect(together == calls == 0, "every reply leaves by itself")
    pipelined(server)
    slow_reader(server, session)
    other_ways(server, session)
    session("DELETE FROM d.t WHERE b >= 0")
    idle(server, session)
    killed(server, session)
    timed_out(server, session)
    vanish(server, session)
    session.close()
    server.stop()
    return together, calls


def has_ring():
    fd = ctypes.CDLL(None).syscall(IO_URING_SETUP, 4, ctypes.create_string_buffer(120))
    return fd >= 0


def main():
    with Scratch("omnibus-network-") as name:
        folder = pathlib.Path(name)
        for part in ("ring", "epoll", "contained"):
            (folder / part).mkdir()
        told = "no io_uring on this machine"
        if has_ring():
            together, calls = check(Omnibus(folder / "ring", "--network-driver=io_uring", *ROOM), "io_uring")
            told = f"{together / calls:.1f} replies in a call"
        check(Omnibus(folder / "epoll", "--network-driver=epoll", *ROOM), "epoll")
        check(Contained(folder / "contained", *ROOM), "epoll")
        command = [binary(), "serve", "--datadir", str(folder / "none"), "--port", "0", "--network-driver=io_uring"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=forbid)
        expect(run.returncode == 1 and "network_driver" in run.stderr, f"io_uring where it is forbidden: {run.returncode} {run.stderr}")
        expect(not (folder / "none").exists(), "a start that is refused makes no files")
    print(f"ok: both drivers answer alike; {told}; auto falls back")


if __name__ == "__main__":
    main()
