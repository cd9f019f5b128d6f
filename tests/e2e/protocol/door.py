#!/usr/bin/python3
"""What the server makes and touches on disk, and who gets a place among its connections.

Ring: all.
"""

import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
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
    (directory / "elsewhere").mkdir()
    os.symlink(directory / "elsewhere", files / "link")
    code = error_code(lambda: root.cursor().execute(f"BACKUP TO '{files}/link'"))
    expect(code == 1105 and not any((directory / "elsewhere").iterdir()), f"a link to an empty folder: {code}")
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


def packet(stream):
    """One packet of the protocol: its number and what is in it."""
    def exactly(count):
        data = b""
        while len(data) < count:
            more = stream.recv(count - len(data))
            expect(more, "the server hangs up in the middle of a packet")
            data += more
        return data

    head = exactly(4)
    return head[3], exactly(int.from_bytes(head[:3], "little"))


def login(server, user, plugin):
    """The exchange of a login with a wrong password, packet by packet, as anybody sees it: first bytes, lengths, errors without the name."""
    seen = []
    with socket.create_connection(("127.0.0.1", server.port)) as stream:
        packet(stream)
        # PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH.
        proof = bytes(range(1, 33 if plugin == "caching_sha2_password" else 21))
        answer = (0x200 | 0x8000 | 0x80000).to_bytes(4, "little") + (1 << 24).to_bytes(4, "little") + bytes([45]) + bytes(23)
        answer += user.encode() + b"\0" + bytes([len(proof)]) + proof + plugin.encode() + b"\0"
        number = 0
        while True:
            number += 1
            stream.sendall(len(answer).to_bytes(3, "little") + bytes([number]) + answer)
            number, said = packet(stream)
            if said[:1] == b"\xff":
                seen.append(said.replace(user.encode(), b"<user>"))
                return seen
            # A public key is one whose length tells nothing; a nonce differs each time.
            seen.append((said[:1], said[1:].split(b"\0")[0] if said[:1] == b"\xfe" else said[:2], len(said)))
            if said[:1] == b"\xfe":
                answer = bytes(range(1, 33 if b"caching" in said else 21))
            elif said == b"\x01\x04":
                # Full authentication: ask for the key, then send something that is no password.
                answer = b"\x02"
            else:
                answer = bytes(256)


def names_cannot_be_told_apart(directory):
    """AUTH-1: the bytes of a refused login are the same for names that are accounts and names that are none."""
    server = Omnibus(directory)
    server.start()
    client(server, "CREATE USER known@'%' IDENTIFIED BY 'p'; CREATE USER locked@'%' IDENTIFIED BY 'p' ACCOUNT LOCK; CREATE USER elsewhere@'10.1.2.3' IDENTIFIED BY 'p'; "
                   "CREATE USER tls@'%' IDENTIFIED BY 'p' REQUIRE SSL; CREATE USER limited@'%' IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 1")
    for plugin in ("caching_sha2_password", "mysql_native_password", "dialog"):
        expected = login(server, "nobody", plugin)
        expect(b"Access denied for user '<user>'@" in expected[-1], f"{expected}")
        for user in ("known", "locked", "elsewhere", "tls", "limited", "other", "a" * 32, "known "):
            found = login(server, user, plugin)
            expect(found == expected, f"{plugin}: {user}: {found} instead of {expected}")
    server.stop()


def no_root_again(directory):
    """Whoever drops every account, or the last administrator, finds no root without a password after a restart; there is a way back."""
    server = Omnibus(directory)
    server.start()
    client(server, "CREATE USER only@localhost; DROP USER root@localhost")
    only = connect(server, user="only")
    server.stop()
    server.start()
    expect(error_code(lambda: connect(server)) == 1045, "root is there again")
    only = connect(server, user="only").cursor()
    expect(error_code(lambda: only.execute("DROP USER only@localhost")) == 1227, "anybody drops accounts")
    server.stop()
    server.options = ["--skip-grant-tables"]
    server.start()
    client(server, "FLUSH PRIVILEGES; DROP USER only@localhost")
    server.stop()
    server.options = []
    server.start()
    for user in ("root", "only", ""):
        expect(error_code(lambda: connect(server, user=user)) in (1045, 1130), f"{user} is let in")  # noqa: B023
    server.stop()
    server.options = ["--skip-grant-tables"]
    server.start()
    client(server, "FLUSH PRIVILEGES; CREATE USER root@localhost IDENTIFIED BY 'p'; GRANT ALL ON *.* TO root@localhost WITH GRANT OPTION")
    server.stop()
    server.options = []
    server.start()
    connect(server, password="p").close()
    server.stop()


def refused_directories(directory):
    """A start that is refused for the directory's format or dialect leaves it as it was."""
    server = Omnibus(directory)
    server.start()
    server.stop()
    for path in server.datadir.glob("omnibus.lock"):
        path.unlink()
    expect("dialect" in refused(directory, "--datadir", str(server.datadir), "--socket", server.socket, "--dialect=mariadb"), "another dialect")
    (server.datadir / "omnibus.format").write_text("99\n")
    expect("newer" in refused(directory, "--datadir", str(server.datadir), "--socket", server.socket), "a newer format")
    # A volume that is not mounted, or a mistyped name: nobody gets an empty server without passwords in its place.
    said = refused(directory, "--datadir", str(directory / "volume/deep/data"), "--socket", server.socket)
    expect(f"there is no folder {directory}/volume/deep" in said, said)
    if os.geteuid() == 0:
        somebody_elses_directory(directory)


def somebody_elses_directory(directory):
    """Who may not read the data directory is told which one it is, and who he is."""
    os.chmod(directory, 0o755)
    mine = directory / "mine"
    mine.mkdir(mode=0o700)
    program = directory / "omnibus"
    shutil.copy(binary(), program)
    program.chmod(0o755)
    run = subprocess.run([program, "serve", "--port", "0", "--socket", "", "--datadir", str(mine)], user="nobody", group="nogroup",
                         capture_output=True, text=True, timeout=60)
    expect(run.returncode == 1 and str(mine) in run.stderr and "root's" in run.stderr and "nobody" in run.stderr, run.stderr)
    program.unlink()


def passwords_of_before(directory):
    """Current passwords given are in no log or list."""
    server = Omnibus(directory)
    server.start()
    root = connect(server, autocommit=True).cursor()
    root.execute("CREATE USER own@localhost IDENTIFIED BY 'zauberwort'")
    own = connect(server, user="own", password="zauberwort", autocommit=True).cursor()
    own.execute("ALTER USER USER() IDENTIFIED BY 'simsalabim' REPLACE 'zauberwort'")
    own.execute("SET PASSWORD = 'abrakadabra' REPLACE 'simsalabim'")
    root.execute("FLUSH LOGS")
    server.stop()
    for path in [directory / "server.log", *server.datadir.glob("binlog.0*")]:
        data = path.read_bytes()
        for word in (b"zauberwort", b"simsalabim", b"abrakadabra"):
            expect(word not in data, f"{word} is in {path.name}")


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


def nobody_is_known(server):
    client(server, "RENAME USER root@localhost TO root@'10.9.9.9', weak@localhost TO weak@'10.9.9.9'")
    connect(server)


def the_product_is_the_dialects(directory):
    """Who is not let in, and who makes a mistake, is told of a server of the dialect's name."""
    for dialect, name in (("mysql", "MySQL server"), ("mariadb", "MariaDB server")):
        (directory / dialect).mkdir()
        server = Omnibus(directory / dialect, f"--dialect={dialect}", "--read-only=ON")
        server.start()
        client(server, "CREATE USER weak@localhost; GRANT ALL ON d.* TO weak@localhost")
        weak = connect(server, user="weak").cursor()
        for code, mistake in ((1064, lambda: weak.execute("SELEC")), (1290, lambda: weak.execute("CREATE DATABASE d")), (1130, lambda: nobody_is_known(server))):  # noqa: B023
            try:
                mistake()
                expect(False, f"{code} did not come")
            except pymysql.err.MySQLError as error:
                expect(error.args[0] == code and name in error.args[1], f"{dialect}: {error}")
        server.stop()


def main():
    tests = [the_product_is_the_dialects, refused_starts, refused_directories, no_root_again, passwords_of_before, names_cannot_be_told_apart, links_beside_the_socket, modes, backups, nothing_else_is_touched, half_open_connections]
    for test in tests:
        with Scratch("omnibus-door-") as directory:
            test(pathlib.Path(directory))
        print(f"door: {test.__name__} ok", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
