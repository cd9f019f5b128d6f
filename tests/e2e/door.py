#!/usr/bin/python3
"""What the server makes and touches on disk, and who gets a place among its connections."""

import os
import pathlib
import socket
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pymysql  # noqa: E402

from omnibus import Omnibus, Scratch, binary, client, connect, error_code, expect, free_port, wait_for  # noqa: E402


def tree(directory):
    """Every name below a directory, with what tells that it was changed."""
    found = {}
    for path in sorted(directory.rglob("*")):
        about = path.lstat()
        found[str(path)] = (stat.S_IFMT(about.st_mode), about.st_ino, about.st_size, about.st_mtime_ns)
    return found


def refused(directory, *options):
    """A start that ends with an error changes nothing outside of the data directory, and makes none."""
    before = tree(directory)
    run = subprocess.run([binary(), "serve", "--port", "0", *options], capture_output=True, text=True, timeout=60)
    expect(run.returncode == 1, f"{options}: started, or crashed: {run.returncode} {run.stderr}")
    after = tree(directory)
    expect(after == before, f"{options}: left behind {set(after.items()) ^ set(before.items())}")
    return run.stderr


def refused_starts(directory):
    data = ["--datadir", str(directory / "new")]
    precious = directory / "precious"
    precious.write_text("12\n")
    sock = str(directory / "s")
    expect("not a socket" in refused(directory, *data, "--socket", str(precious)), "a file in the place of the socket")
    os.symlink(precious, sock)
    refused(directory, *data, "--socket", sock)
    os.unlink(sock)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sock)
    listener.listen()
    expect("listening there" in refused(directory, *data, "--socket", sock), "a socket in use")
    listener.close()
    os.unlink(sock)
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    port = str(taken.getsockname()[1])
    for name in ("port", "admin-port"):
        words = ["--bind-address=127.0.0.1", "--admin-address=127.0.0.1"]
        expect("can't listen" in refused(directory, *data, "--socket", sock, *words, f"--{name}={port}"), f"{name} in use")
    taken.close()
    for option in ("--tmpdir=/nowhere", "--secure-file-priv=/nowhere", "--log-error=/nowhere/x", "--socket=/nowhere/x", "--ssl-cert=x"):
        refused(directory, *data, "--socket", sock, option)
    foreign = directory / "foreign"
    foreign.mkdir()
    (foreign / "ibdata1").touch()
    refused(directory, "--datadir", str(foreign), "--socket", sock)
    expect(precious.read_text() == "12\n", "the file is as it was")


def links_beside_the_socket(directory):
    """The lock file beside the socket is no way to write somewhere else."""
    server = Omnibus(directory)
    precious = directory / "precious"
    precious.write_text("12\n")
    lock = pathlib.Path(server.socket + ".lock")
    for link in (os.symlink, os.link):
        link(precious, lock)
        try:
            server.start()
        except RuntimeError:
            pass
        expect(not server.runs() and precious.read_text() == "12\n", f"{link.__name__}: started, or wrote there")
        lock.unlink()
    server.start()
    expect(lock.read_text().strip() == str(server.process.pid), "the lock file names the process")
    server.kill()
    expect(lock.exists() and pathlib.Path(server.socket).exists(), "a crash leaves both")
    server.start()
    server.stop()
    expect(not lock.exists() and not pathlib.Path(server.socket).exists(), "a stop takes both away")


def modes(directory):
    """Nobody but owner and group reads what the server makes: files, folders, log, backup."""
    old = os.umask(0)
    try:
        server = Omnibus(directory, "--log-error=error.log", f"--tmpdir={directory}")
        server.start()
        client(server, "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); CREATE TABLE d.b (a INT PRIMARY KEY) ENGINE=BTREE; "
                       f"INSERT INTO d.t VALUES (1); INSERT INTO d.b VALUES (1); FLUSH LOGS; BACKUP TO '{directory}/backup'")
        server.stop()
    finally:
        os.umask(old)
    for top in (server.datadir, directory / "backup"):
        for path in [top, *top.rglob("*")]:
            mode = stat.S_IMODE(path.lstat().st_mode)
            allowed = 0o750 if path.is_dir() else 0o640
            expect(mode & ~allowed == 0, f"{path}: {mode:o}")
    for name in ("server-key.pem", "ca-key.pem"):
        expect(stat.S_IMODE((server.datadir / name).stat().st_mode) == 0o600, name)
    expect((server.datadir / "error.log").stat().st_size > 0, "the log is there")


def backups(directory):
    """BACKUP TO goes where `secure_file_priv` says, if it says something."""
    files = directory / "files"
    files.mkdir()
    server = Omnibus(directory, f"--secure-file-priv={files}")
    server.start()
    root = connect(server)
    os.symlink(directory, files / "out")
    for path in (directory / "b", files / "out" / "b", files / ".." / "b", server.datadir / "b"):
        code = error_code(lambda: root.cursor().execute(f"BACKUP TO '{path}'"))  # noqa: B023
        expect(code == 1290 and not path.exists(), f"{path}: {code}")
    root.cursor().execute(f"BACKUP TO '{files}/b'")
    client(server, "CREATE USER weak@localhost; GRANT RELOAD ON *.* TO weak@localhost")
    weak = connect(server, user="weak").cursor()
    expect(error_code(lambda: weak.execute(f"BACKUP TO '{files}/c'")) == 1227, "RELOAD is not BACKUP_ADMIN")
    server.stop()


# Calls that make, change or remove a name, or open a file to be written.
CHANGES = "open,openat,openat2,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,truncate,chmod,fchmodat,chown,fchownat,utimensat,bind"


def nothing_else_is_touched(directory):
    """A server's whole life changes files in its data directory and the socket's, and nowhere else."""
    home, data, temporary = directory / "home", directory / "data", directory / "tmp"
    home.mkdir()
    temporary.mkdir()
    trace = directory / "trace"
    server = Omnibus(directory, f"--tmpdir={temporary}")
    words = [binary(), "serve", "--datadir", str(data), "--socket", server.socket, "--port", str(server.port), f"--tmpdir={temporary}"]
    run = subprocess.Popen(["strace", "-f", "-qq", "-y", "-s", "4096", "-e", f"trace={CHANGES}", "-o", str(trace), *words],
                           cwd=home, env=dict(os.environ, HOME=str(home)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    expect(b"ready" in run.stdout.readline(), "it does not start")
    client(server, "CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (1); CREATE USER u@localhost; FLUSH LOGS; SHUTDOWN")
    expect(run.wait(60) == 0, "it does not stop")
    allowed = [str(data), server.socket, str(temporary), "/dev/"]
    seen = 0
    for line in trace.read_text(errors="replace").splitlines():
        call = line.split(None, 1)[1]
        reads = call.startswith("open") and not any(flag in call for flag in ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"))
        if reads or call.startswith("<...") or " = -1 " in call or (call.startswith("bind") and "AF_UNIX" not in call):
            continue
        # The names are between quotes; one that is relative belongs to the directory that -y shows before it.
        names = call.split('"')[1::2]
        before = call.split('"')[0]
        folder = before.split("<", 1)[1].split(">", 1)[0] if "<" in before else str(home)
        for name in names:
            path = os.path.normpath(os.path.join(folder, name))
            seen += 1
            expect(any(path.startswith(start) for start in allowed), f"touched {path}: {line}")
    expect(seen > 20, f"the trace shows only {seen} changes")
    expect(list(home.iterdir()) == [], "something is where it was started")


def silent(server, count, host="127.0.0.1", port=None):
    return [socket.create_connection((host, port or server.port)) for _ in range(count)]


def half_open_connections(directory):
    """Connections that say nothing take places from each other, and from nobody who logs in."""
    admin_port = free_port()
    server = Omnibus(directory, "--max-connections=5", "--back-log=20", "--connect-timeout=60", "--admin-address=127.0.0.1",
                     f"--admin-port={admin_port}")
    server.start()
    client(server, "CREATE USER u@'%'; CREATE USER admin@'%'; GRANT SERVICE_CONNECTION_ADMIN ON *.* TO admin@'%'")
    held = silent(server, 30)
    refusals = [s for s in held if s.recv(5)[4:] == b"\xff"]
    expect(len(refusals) == 20, f"10 of an address are let in: {30 - len(refusals)}")
    expect(error_code(lambda: tcp(server, "u")) == 1040, "the same address has no more")
    client(server, "DO 1")
    other = silent(server, 11, "127.0.0.1", admin_port)
    tcp(server, "u", bind_address="127.0.0.9").close()
    for s in (*other, *held):
        s.close()
    wait_for(lambda: error_code(lambda: tcp(server, "u").close()) == 0, "the places come back")
    # Every place taken, the administrator's too: there is a door of their own.
    users = [tcp(server, "u") for _ in range(5)]
    root = connect(server)
    expect(error_code(lambda: connect(server)) == 1040 == error_code(lambda: tcp(server, "u")), "no place is left")
    expect(error_code(lambda: tcp(server, "u", port=admin_port)) == 1227, "it is not anybody's")
    admins = [tcp(server, "admin", port=admin_port) for _ in range(7)]
    admins[0].cursor().execute("SELECT 1")
    for db in (*users, *admins, root):
        db.close()
    server.stop()


def tcp(server, user, **more):
    return pymysql.connect(**({"host": "127.0.0.1", "port": server.port, "user": user, "connect_timeout": 60} | more))


def main():
    tests = [refused_starts, links_beside_the_socket, modes, backups, nothing_else_is_touched, half_open_connections]
    for test in tests:
        with Scratch("omnibus-door-") as directory:
            test(pathlib.Path(directory))
        print(f"door: {test.__name__} ok", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
