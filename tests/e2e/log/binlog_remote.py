#!/usr/bin/python3
"""`omnibus binlog` as people use mysqlbinlog: a server's log from afar, copied byte for byte or followed, from Omnibus and from
MariaDB; renamed databases, and changes taken back (--flashback).

Ring: all.
"""

import filecmp
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import workload  # noqa: E402
from omnibus import Scratch, binary, client, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, PASSWORD, USER, contents, create_user, query, wait_for  # noqa: E402

SECRET = dict(os.environ, MYSQL_PWD=PASSWORD)


def binlog(*words, env=None, check=True):
    run = subprocess.run([binary(), "binlog", *map(str, words)], capture_output=True, env=env or SECRET)
    if check:
        expect(run.returncode == 0, f"{words}: {run.stderr.decode(errors='replace')}")
    return run


def remote(server):
    return ["-R", "-h127.0.0.1", f"-P{server.port}", f"-u{USER}", "--get-server-public-key"]


def names(server):
    return [row["Log_name"] for row in query(server, "SHOW BINARY LOGS")]


def pipe(server, sql):
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--binary-mode"], input=sql, capture_output=True)
    expect(run.returncode == 0, f"piping: {run.stderr.decode(errors='replace')[:2000]}")


def fill(server, seed):
    """Rows, statements, definitions, in several files; what only recovery reads, too."""
    workload.run(server, workload.Workload(seed), 60)
    client(server, "CREATE DATABASE x; CREATE TABLE x.t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(50));"
                   "SET binlog_format = STATEMENT; INSERT INTO x.t (v) VALUES ('text'), (RAND()); SET binlog_format = ROW;"
                   "SET sql_log_bin = 0; CREATE TABLE x.hidden (a INT); INSERT INTO x.hidden VALUES (1); SET sql_log_bin = 1;"
                   "FLUSH BINARY LOGS; INSERT INTO x.t (v) SELECT REPEAT('y', 40) FROM x.t; DELETE FROM x.t WHERE id = 1")
    client(server, "SET GLOBAL binlog_checksum = NONE; INSERT INTO x.t (v) VALUES ('no sums'); SET GLOBAL binlog_checksum = CRC32;"
                   "INSERT INTO x.t (v) VALUES ('sums'); FLUSH BINARY LOGS; INSERT INTO x.t (v) VALUES ('open')")


def copies(server, folder):
    """Closed files are copied byte for byte; the open one up to its end."""
    folder.mkdir()
    create_user(server)
    if isinstance(server, OmnibusPeer):
        first = names(server)[0]
        refused = binlog(*remote(server), "--raw", "-r", f"{folder}/", first, env=dict(SECRET, MYSQL_PWD="wrong"), check=False)
        expect(refused.returncode == 1 and b"1045" in refused.stderr, f"a wrong password: {refused.stderr}")
    files = names(server)
    binlog(*remote(server), "--raw", "--to-last-log", "-r", f"{folder}/", files[0])
    for name in files[:-1]:
        expect(filecmp.cmp(server.datadir / name, folder / name, shallow=False), f"{name} of {server.datadir} was copied otherwise")
    copied = (folder / files[-1]).read_bytes()
    original = (server.datadir / files[-1]).read_bytes()[:len(copied)]
    # The flag that says that a file is in use is the server's own affair, and so is the checksum over it.
    differing = [at for at, (a, b) in enumerate(zip(copied, original)) if a != b]
    expect(len(copied) > 200 and all(at < 300 for at in differing) and len(differing) <= 5, f"the open file differs at {differing[:9]}")
    # One of several, by its name; over the socket.
    binlog("-R", "-S", server.socket, "-uroot", "--raw", "-r", f"{folder}/one-", files[1], env=dict(SECRET, MYSQL_PWD=""))
    expect(filecmp.cmp(server.datadir / files[1], folder / f"one-{files[1]}", shallow=False), "one file over the socket")
    expect(not (folder / f"one-{files[2]}").exists(), "and no other")
    return files


def same_as_files(server, files):
    """What is printed of a server is what is printed of its files."""
    def lines(run):
        seen = [json.loads(line) for line in run.stdout.splitlines()]
        return [line for line in seen if line["type"] in ("statement", "rows", "commit")]

    paths = [server.datadir / name for name in files[:-1]]
    here = lines(binlog("--json", *paths))
    there = lines(binlog(*remote(server), "--json", *files[:-1]))
    expect(here == there and len(here) > 60, f"{len(here)} lines of files, {len(there)} from afar")
    listing = binlog(*remote(server), "-v", files[0]).stdout
    expect(b"Query" in listing and b"###" in listing, f"a list: {listing[:300]}")
    gone = binlog(*remote(server), "binlog.999999", check=False)
    expect(gone.returncode == 1 and b"1236" in gone.stderr, f"a file that is not there: {gone.stderr}")


def followed(server, folder):
    """--stop-never sees what comes, through a rotation."""
    last = names(server)[-1]
    reader = subprocess.Popen([binary(), "binlog", *remote(server), "--stop-never", "--connection-server-id=77", "--json", last],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=SECRET)
    raw = subprocess.Popen([binary(), "binlog", *remote(server), "--raw", "--stop-never", "--stop-never-slave-server-id=78",
                            "-r", f"{folder}/live-", last], stderr=subprocess.DEVNULL, env=SECRET)
    try:
        client(server, "INSERT INTO x.t (v) VALUES ('later'); FLUSH BINARY LOGS; INSERT INTO x.t (v) VALUES ('behind')")
        wanted = ["later", "behind"]
        for line in reader.stdout:
            if wanted[0].encode() in line:
                wanted.pop(0)
                if not wanted:
                    break
        expect(not wanted, f"never came: {wanted}")
        copy, original = folder / f"live-{last}", server.datadir / last
        wait_for(lambda: copy.exists() and filecmp.cmp(copy, original, shallow=False), "the copy that follows is complete")
        wait_for(lambda: len(names(server)) > 1 and (folder / f"live-{names(server)[-1]}").exists(), "the next file's copy")
        # The server goes away and comes back: they go on where they were, and say so.
        server.kill()
        line = reader.stderr.readline().decode()
        expect("trying again every second, from" in line, f"what is told: {line}")
        server.start()
        client(server, "INSERT INTO x.t (v) VALUES ('again'), ('once'); FLUSH BINARY LOGS")
        last = names(server)[-2]
        found = []
        for line in reader.stdout:
            found += [word for word in ("later", "behind", "again", "once") if f'"{word}"'.encode() in line]
            if "once" in found:
                break
        expect(found in (["again", "once"],), f"each once: {found}")
        copy, original = folder / f"live-{last}", server.datadir / last
        wait_for(lambda: copy.exists() and filecmp.cmp(copy, original, shallow=False), "the copy goes on")
    finally:
        for process in (reader, raw):
            process.kill()
            process.wait()


def afar(directory, make):
    server = make(f"{directory}/server", 1)
    folder = pathlib.Path(directory)
    server.start()
    try:
        fill(server, 5)
        files = copies(server, folder / "copies")
        same_as_files(server, files)
        followed(server, folder / "copies")
    finally:
        server.stop()


def whole_files_need_a_privilege(directory):
    """What only recovery reads has changes that were kept out of the log."""
    server = OmnibusPeer(directory, 1)
    server.start()
    try:
        client(server, f"CREATE USER weak IDENTIFIED WITH mysql_native_password BY '{PASSWORD}'; GRANT REPLICATION SLAVE ON *.* TO weak")
        words = ["-R", f"-P{server.port}", "-uweak", "--ssl-mode=DISABLED"]
        refused = binlog(*words, "--raw", "-r", f"{directory}/", names(server)[0], check=False)
        expect(refused.returncode == 1 and b"1227" in refused.stderr, f"a copy without the privilege: {refused.stderr}")
        expect(b"CREATE USER" in binlog(*words, "--sql", names(server)[0]).stdout, "printing needs REPLICATION SLAVE only")
        expect(b"CREATE USER" in binlog(*words[:-1], "--ssl-mode=required", names(server)[0]).stdout, "over TLS")
    finally:
        server.stop()


def other_forms(directory):
    """Options of the SQL, each with what it is for."""
    server, other = OmnibusPeer(f"{directory}/server", 1), OmnibusPeer(f"{directory}/other", 2)
    for one in (server, other):
        one.start()
    try:
        client(server, "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(20)); USE a; INSERT INTO t VALUES (1, 'one');"
                       "SET binlog_format = STATEMENT; INSERT INTO t VALUES (2, 'two'); CREATE TABLE later (v INT); FLUSH LOGS")
        file = server.datadir / names(server)[0]
        client(other, "CREATE DATABASE b; CREATE TABLE b.t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO b.t VALUES (1, 'there')")
        printed = binlog("--skip-gtids", "--idempotent", "--disable-log-bin", "--set-charset=utf8mb4", "--rewrite-db=a->b", "-d", "b", file).stdout
        before = query(other, "SELECT @@gtid_executed")
        # Its own text names the database that the table was made in.
        pipe(other, printed.replace(b"CREATE TABLE a.t", b"CREATE TABLE IF NOT EXISTS b.t"))
        expect(client(other, "SELECT * FROM b.t ORDER BY 1; SHOW TABLES FROM b").split() == ["1", "one", "2", "two", "later", "t"], "renamed")
        expect(query(other, "SELECT @@gtid_executed") == before, "--disable-log-bin")
        plain = binlog("--base64-output=decode-rows", "-v", file).stdout
        expect(b"BINLOG '" not in plain and b"### INSERT INTO `a`.`t`" in plain, "decode-rows")
        never = binlog("--base64-output=never", file, check=False)
        expect(never.returncode == 1 and b"--base64-output=auto" in never.stderr, f"never: {never.stderr}")
        short = binlog("--short-form", file).stdout
        expect(b"INSERT INTO t VALUES (2" in short and b"BINLOG '" not in short and b"# at" not in short, "short form")
        expect(b"|" in binlog("--hexdump", file).stdout and b"# Columns of `a`.`t`" in binlog("--print-table-metadata", file).stdout, "remarks")
        events = binlog(file).stdout.splitlines()
        expect(binlog("-o", "3", file).stdout.splitlines()[1:] == events[4:], "--offset")
        unknown = binlog("--no-such-option", file, check=False)
        expect(unknown.returncode == 2 and b"--no-such-option" in unknown.stderr, f"an unknown option: {unknown.stderr}")
        into = pathlib.Path(directory) / "out.sql"
        binlog("--sql", "-r", into, file)
        expect(b"INSERT INTO t VALUES (2" in into.read_bytes(), "--result-file")
    finally:
        for one in (server, other):
            one.stop()


def changes_are_taken_back(directory):
    """--flashback: both servers' logs, of all types, on the server that they are from."""
    for make in (OmnibusPeer, MariaPeer):
        server = make(f"{directory}/{make.__name__}", 1)
        server.start()
        try:
            stream = workload.Workload(9)
            workload.run(server, stream, 40)
            client(server, "CREATE DATABASE f; CREATE TABLE f.t (id INT PRIMARY KEY, v VARCHAR(20), w BLOB); CREATE TABLE f.n (v INT, w TEXT);"
                           "INSERT INTO f.t VALUES (1, 'one', NULL), (2, 'two', 'x'), (3, NULL, ''); INSERT INTO f.n VALUES (1, 'a'), (1, 'a'), (2, NULL)")
            client(server, "FLUSH BINARY LOGS")
            before = contents(server)
            client(server, "DELETE FROM f.t WHERE id = 2; UPDATE f.t SET v = CONCAT(COALESCE(v, ''), '!'), id = id + 10; INSERT INTO f.t VALUES (2, 'new', 'n');"
                           "BEGIN; DELETE FROM f.n LIMIT 2; UPDATE f.t SET w = 'changed'; INSERT INTO f.n SELECT id, v FROM f.t; COMMIT; DELETE FROM f.t")
            client(server, "FLUSH BINARY LOGS")
            expect(contents(server) != before, "there is something to take back")
            file = server.datadir / names(server)[-2]
            pipe(server, binlog("--flashback", file).stdout)
            expect(contents(server) == before, f"{make.__name__}: all changes are taken back")
            client(server, "CREATE TABLE f.later (v INT); FLUSH BINARY LOGS")
            refused = binlog("--flashback", server.datadir / names(server)[-2], check=False)
            expect(refused.returncode == 1 and b"cannot be taken back: CREATE TABLE" in refused.stderr, f"a definition: {refused.stderr}")
        finally:
            server.stop()


def main():
    for make in (OmnibusPeer, MariaPeer):
        with Scratch("omnibus-remote-") as directory:
            afar(directory, make)
        print(f"afar, {make.__name__}: ok", flush=True)
    for test in (whole_files_need_a_privilege, other_forms, changes_are_taken_back):
        with Scratch("omnibus-remote-") as directory:
            test(directory)
        print(f"{test.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
