#!/usr/bin/python3
"""Garbage from the network, wrong options, a broken disk: a clear error each time, nothing lost, and the server lives.

Ring: gate.
"""

import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402

import seeds  # noqa: E402
from omnibus import PATIENCE_S, ROOT, Omnibus, Scratch, binary, client, connect, error_code, expect, wait_for  # noqa: E402

SEED = seeds.of_this_run()


def raw(server):
    s = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
    return s


def packet(payload, seq):
    return struct.pack("<I", len(payload))[:3] + bytes([seq]) + payload


def read_all(s):
    """What the server says before it closes, or within two seconds."""
    s.settimeout(2)
    data = b""
    try:
        while chunk := s.recv(65536):
            data += chunk
    except (socket.timeout, ConnectionError):
        pass
    s.close()
    return data


def alive(server):
    expect(client(server, "SELECT 1") == "1\n", "the server answers")
    expect(server.process.poll() is None, "the server lives")


def garbage_before_login(server):
    rng = random.Random(f"before login {SEED}")
    for n in range(200):
        s = raw(server)
        try:
            if n % 2:
                s.recv(4096)
            kind = n % 5
            if kind == 0:
                s.sendall(rng.randbytes(rng.randrange(1, 500)))
            elif kind == 1:
                s.sendall(packet(rng.randbytes(rng.randrange(0, 200)), 1))
            elif kind == 2:
                s.sendall(packet(rng.randbytes(64), rng.randrange(256)))
            elif kind == 3:
                s.sendall(b"\xff\xff\xff\x01" + bytes(1000))
            else:
                s.sendall(b"\x10\x00\x00\x01")
        except ConnectionError:
            pass
        s.close()
    alive(server)


def garbage_after_login(server):
    rng = random.Random(f"after login {SEED}")
    for n in range(300):
        db = connect(server)
        sock = db._sock
        try:
            # 8 is COM_SHUTDOWN, which is root's right: no garbage.
            command = n % 40 if n % 40 != 8 else 40 + n % 200
            sock.sendall(packet(bytes([command]) + rng.randbytes(rng.randrange(0, 60)), 0))
            if n % 3 == 0:
                sock.sendall(packet(bytes([0x17]) + struct.pack("<I", rng.randrange(3)) + rng.randbytes(rng.randrange(40)), 0))
            if n % 7 == 0:
                sock.sendall(packet(b"\x03SELECT 1", 9))  # out of order
            sock.settimeout(0.05)
            try:
                sock.recv(65536)
            except (socket.timeout, ConnectionError):
                pass
        except ConnectionError:
            pass
        db._force_close()
    alive(server)


def broken_prepared_statements(server):
    db = connect(server)
    sock = db._sock
    rng = random.Random(f"prepared {SEED}")
    for _ in range(200):
        sock.sendall(packet(b"\x16SELECT ? + ?, CONCAT(?, 'x')", 0))
        head = sock.recv(65536)
        if len(head) < 9 or head[4] != 0:
            break
        statement = head[5:9]
        body = b"\x17" + statement + b"\0\1\0\0\0" + rng.randbytes(rng.randrange(0, 40))
        sock.sendall(packet(body, 0))
        if not sock.recv(65536):
            break
    db._force_close()
    # A statement that is there has no cursor, which is another error than one that is not.
    db = connect(server)
    db._sock.sendall(packet(b"\x16SELECT 1", 0))
    statement = db._sock.recv(65536)[5:9]
    for number, expected in ((statement, 1421), (b"\xff\xff\0\0", 1243)):
        db._sock.sendall(packet(b"\x1c" + number + b"\1\0\0\0", 0))
        code = struct.unpack_from("<H", db._sock.recv(65536), 5)[0]
        expect(code == expected, f"COM_STMT_FETCH of {number}: {code}")
    db._force_close()
    alive(server)


def large_packets(server):
    db = connect(server, autocommit=True, max_allowed_packet=1 << 30)
    with db.cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS big")
        cursor.execute("CREATE TABLE big.t (id INT PRIMARY KEY, v LONGBLOB)")
        for n, size in enumerate((0xFFFFFF - 40, 0xFFFFFF - 30, 0xFFFFFF, 20 << 20, 40 << 20)):
            cursor.execute("INSERT INTO big.t VALUES (%s, REPEAT('x', 10))", (n,))
            cursor.execute("UPDATE big.t SET v = '" + "y" * size + "' WHERE id = %s" % n)
            cursor.execute("SELECT v FROM big.t WHERE id = %s", (n,))
            expect(cursor.fetchone()[0] == b"y" * size, f"{size} bytes come back")
    db.close()
    code = error_code(lambda: client_packet(server, 70 << 20))
    expect(code in (1153, 2006, 2013), f"past max_allowed_packet: {code}")
    alive(server)


def client_packet(server, size):
    db = connect(server, max_allowed_packet=1 << 30)
    with db.cursor() as cursor:
        cursor.execute("SELECT LENGTH('" + "x" * size + "')")


def too_many_connections(directory):
    server = Omnibus(directory, "--max-connections=5")
    server.start()
    try:
        # One more place is kept for an administrator; after that it is full.
        held = [connect(server) for _ in range(6)]
        code = error_code(lambda: tcp_as(server, "root"))
        expect(code == 1040, f"too many connections: {code}")
        for db in held:
            db.close()
        # A place is free once the server has seen that the client is gone.
        wait_for(lambda: error_code(lambda: tcp_as(server, "root")) != 1040, "no place becomes free")
        alive(server)
    finally:
        server.stop()


def tcp_as(server, user):
    pymysql.connect(host="127.0.0.1", port=server.port, user=user, connect_timeout=PATIENCE_S).close()


def idle_connections_are_cheap(directory):
    server = Omnibus(directory, "--max-connections=1100")
    server.start()
    try:
        def resident():
            status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
            return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
        warm = [connect(server) for _ in range(10)]
        before = resident()
        held = [connect(server) for _ in range(1000)]
        for db in held:
            with db.cursor() as cursor:
                cursor.execute("SELECT 1")
        grown = (resident() - before) / 1024
        expect(grown < 100, f"1,000 idle connections cost {grown:.0f} MB")
        print(f"bad_input: 1,000 idle connections cost {grown:.1f} MB")
        for db in [*held, *warm]:
            db.close()
    finally:
        server.stop()


def refuse(directory, *options, env=None):
    run = subprocess.run([binary(), "serve", "--datadir", str(directory), "--port", "0", *options], capture_output=True,
                         text=True, timeout=PATIENCE_S, env=dict(os.environ, **(env or {})))
    expect(run.returncode != 0, f"{options} must be refused")
    text = run.stdout + run.stderr
    expect("panicked" not in text, text)
    return text


def wrong_starts(directory):
    directory = pathlib.Path(directory)
    text = refuse(directory / "a", "--no-such-option=1")
    expect("no-such-option" in text or "no_such_option" in text, f"names the option: {text}")
    text = refuse(directory / "a", "--sync-binlog=many")
    expect("sync" in text, f"names the option: {text}")
    server = Omnibus(directory)
    server.start()
    text = refuse(server.datadir, "--socket", str(directory / "other.sock"))
    expect(str(server.process.pid) in text or "another" in text, f"a second server is told why: {text}")
    alive(server)
    server.stop()
    readonly = directory / "readonly"
    readonly.mkdir()
    readonly.chmod(0o500)
    if os.geteuid() != 0:
        text = refuse(readonly / "data")
        expect("denied" in text or "read-only" in text.lower(), f"read-only directory: {text}")
    markers = [path for path in server.datadir.iterdir() if "format" in path.name or "version" in path.name]
    expect(len(markers) == 1, f"one format marker in the data directory: {markers}")
    original = markers[0].read_text()
    digits = "".join(c for c in original if c.isdigit()) or "1"
    markers[0].write_text(original.replace(digits[:1], "99", 1))
    text = refuse(server.datadir, "--socket", server.socket)
    expect("newer" in text or "version" in text or "format" in text, f"a newer format is named: {text}")
    markers[0].write_text(original)
    server.start()
    alive(server)
    server.stop()


def build(name, directory):
    library = pathlib.Path(directory) / f"{name}.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests/tools" / f"{name}.c", "-ldl"], check=True)
    return library


def broken_disk(directory, failure):
    """Nothing acknowledged is lost, whatever the disk does; and the server ends or refuses with a clear error."""
    switch = pathlib.Path(directory) / "switch"
    switch.write_text("")
    env = {"LD_PRELOAD": str(build("fail_io", directory)), "FAIL_IO_SWITCH": str(switch)}
    server = Omnibus(directory, env=env)
    server.start()
    client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(2000))")
    db = connect(server, autocommit=True, database="d")
    acknowledged, code = [], 0
    with db.cursor() as cursor:
        for n in range(3000):
            if n == 200:
                switch.write_text(failure)
            code = error_code(lambda: cursor.execute("INSERT INTO t VALUES (%s, REPEAT('x', 2000))", (n,)))
            if code:
                break
            acknowledged.append(n)
    expect(code != 0, f"{failure}: commits fail once the disk does ({len(acknowledged)} went through)")
    db._force_close()
    switch.write_text("")
    if server.process.poll() is None:
        server.kill()
    server.start()
    found = {int(line) for line in client(server, "SELECT id FROM d.t").split()}
    expect(set(acknowledged) <= found, f"{failure}: acknowledged rows are gone: {set(acknowledged) - found}")
    expect(len(found) <= len(acknowledged) + 1, f"{failure}: more rows than were sent")
    expect("panicked" not in server.log_tail(10000), f"{failure}: a panic in the log")
    client(server, "INSERT INTO d.t VALUES (100000, 'y')")
    server.stop()


def full_disk(directory):
    """Commits wait for space and go on; reads do not wait; a shutdown does not either. Nothing acknowledged is lost."""
    switch = pathlib.Path(directory) / "switch"
    switch.write_text("")
    env = {"LD_PRELOAD": str(build("fail_io", directory)), "FAIL_IO_SWITCH": str(switch)}
    server = Omnibus(directory, env=env)
    server.start()
    client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(2000));"
                   "CREATE TABLE d.b (id INT PRIMARY KEY, v VARCHAR(2000)) ENGINE=BTREE")
    acknowledged, codes = [], []

    def insert():
        with connect(server, autocommit=True, database="d").cursor() as cursor:
            for n in range(100000):
                table = "tb"[n % 2]
                code = error_code(lambda: cursor.execute(f"INSERT INTO {table} VALUES ({n}, REPEAT('x', 2000))"))
                if code:
                    codes.append(code)
                    return
                acknowledged.append(n)

    def until(condition, what):
        deadline = time.monotonic() + 60
        while not condition():
            expect(server.process.poll() is None, f"full disk, {what}: the server ended\n{server.log_tail()}")
            expect(time.monotonic() < deadline, f"full disk: {what} takes too long\n{server.log_tail()}")
            time.sleep(0.02)

    def said(words):
        return server.log_tail(10000).count(words)

    writer = threading.Thread(target=insert, daemon=True)
    writer.start()
    for turn in (1, 2):
        goal = len(acknowledged) + 1000
        until(lambda: len(acknowledged) >= goal, "inserting")
        switch.write_text("ENOSPC write data/binlog.0")
        until(lambda: said("the disk is full: can not write") == turn, "noticing")
        expect(int(client(server, "SELECT COUNT(*) FROM d.t")) > 0, "reads go on")
        expect(not codes, f"nobody gets an error: {codes}")
        if turn == 1:
            switch.write_text("")
            until(lambda: said("there is space on the disk again") == 1, "going on")
    server.process.send_signal(signal.SIGTERM)
    expect(server.process.wait(60) not in (0, -6, -11), "a log that could not be ended well is a failure")
    writer.join()
    switch.write_text("")
    expect("panicked" not in server.log_tail(10000), f"a panic in the log:\n{server.log_tail()}")
    server.start()
    found = {int(line) for line in client(server, "SELECT id FROM d.t UNION ALL SELECT id FROM d.b").split()}
    expect(set(acknowledged) <= found, f"acknowledged rows are gone: {sorted(set(acknowledged) - found)[:9]}")
    expect(len(found) <= len(acknowledged) + 1, "more rows than were sent")
    server.stop()


def main():
    passed = 0
    with Scratch("omnibus-bad-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            for test in (garbage_before_login, garbage_after_login, broken_prepared_statements, large_packets):
                test(server)
                expect("panicked" not in server.log_tail(10000), f"{test.__name__}: a panic in the log")
                print(f"bad_input: {test.__name__} ok", flush=True)
                passed += 1
        finally:
            server.stop()
    whole = [(too_many_connections,), (idle_connections_are_cheap,), (wrong_starts,), (full_disk,),
             (broken_disk, "EIO")]
    for test, *args in whole:
        with Scratch("omnibus-bad-") as directory:
            test(directory, *args)
        print(f"bad_input: {test.__name__} {' '.join(args)} ok", flush=True)
        passed += 1
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
