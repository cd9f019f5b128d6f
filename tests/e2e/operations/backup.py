#!/usr/bin/python3
"""BACKUP TO, while others write: the copy starts, and is the server as it was at the position that the statement told.

Told independently: every transaction of the load writes its own row, and transfers that keep a sum. The copy's rows
are those whose log positions are before the backup's, which is checked by rolling forward: the copy's log is the
beginning of the source's, byte for byte, and stops at that position.

Ring: gate.
"""

import pathlib
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from device import preload  # noqa: E402
from omnibus import Omnibus, Scratch, binary, client, connect, error_code, expect, wait_for  # noqa: E402

ENGINES = ("InnoDB", "BTREE")
ACCOUNTS = 16


def engines(server):
    known = client(server, "SELECT ENGINE FROM information_schema.ENGINES").split()
    return [name for name in ENGINES if name in known]


def fill(server):
    client(server, "CREATE DATABASE b")
    for name in engines(server):
        client(server, f"CREATE TABLE b.account_{name} (id INT PRIMARY KEY, balance BIGINT NOT NULL) ENGINE={name};"
                       f"CREATE TABLE b.entry_{name} (client INT, n INT, note VARCHAR(300), PRIMARY KEY (client, n)) "
                       f"ENGINE={name}")
        for n in range(ACCOUNTS):
            client(server, f"INSERT INTO b.account_{name} VALUES ({n}, 0)")


class Writer(threading.Thread):
    """Each transaction writes one entry to every engine and moves money in each."""

    def __init__(self, server, number, names):
        super().__init__()
        self.server, self.number, self.names = server, number, names
        self.stop, self.done, self.error = threading.Event(), 0, None

    def run(self):
        try:
            db = connect(self.server, autocommit=False)
            while not self.stop.is_set():
                if error_code(lambda: self.transaction(db), but=(1213, 1205)):
                    db.rollback()
        except Exception as error:  # a finding
            self.error = error

    def transaction(self, db):
        n = self.done + 1
        with db.cursor() as cursor:
            for name in self.names:
                one, other = sorted(((n * 5 + self.number) % ACCOUNTS, (n * 3 + self.number + 1) % ACCOUNTS))
                cursor.execute(f"INSERT INTO b.entry_{name} VALUES (%s, %s, REPEAT('x', 200))", (self.number, n))
                cursor.execute(f"UPDATE b.account_{name} SET balance = balance + %s WHERE id = %s", (n, one))
                cursor.execute(f"UPDATE b.account_{name} SET balance = balance - %s WHERE id = %s", (n, other))
        db.commit()
        self.done = n


def load(server, count=4):
    names = engines(server)
    writers = [Writer(server, number, names) for number in range(count)]
    for writer in writers:
        writer.start()
    return writers


def go_on(writers, more):
    goals = [writer.done + more for writer in writers]
    wait_for(lambda: all(writer.done >= goal or not writer.is_alive() for writer, goal in zip(writers, goals)), "writers stand still")


def finish(writers):
    for writer in writers:
        writer.stop.set()
    for writer in writers:
        writer.join()
        expect(writer.error is None, f"a writer failed beside the backup: {writer.error}")


def backup(server, path):
    cursor = connect(server, autocommit=True).cursor()
    cursor.execute(f"BACKUP TO '{path}'")
    return cursor.fetchone()


def check_copy(server, least, most):
    """One prefix of the commits, the same in every engine."""
    states = []
    for name in engines(server):
        counts = client(server, f"SELECT client, COUNT(*), MAX(n) FROM b.entry_{name} GROUP BY client ORDER BY client")
        rows = [tuple(map(int, line.split("\t"))) for line in counts.splitlines()]
        for number, count, last in rows:
            expect(count == last, f"client {number} has {count} entries up to {last} in {name}")
            expect(least[number] <= last <= most[number],
                   f"client {number} has {last}, not between {least[number]} and {most[number]}")
        expect(client(server, f"SELECT SUM(balance) FROM b.account_{name}") == "0\n", f"half a transaction in {name}")
        states.append(rows)
    expect(all(state == states[0] for state in states), f"engines differ: {states}")
    return states[0]


def open_copy(directory, path, restored):
    """A server on a copy: the backup itself, or what `omnibus restore` makes of it."""
    directory.mkdir()
    copy = Omnibus(directory)
    if restored:
        run = subprocess.run([binary(), "restore", "--from", str(path), "--datadir", str(copy.datadir)],
                             capture_output=True, text=True)
        expect(run.returncode == 0, f"restore: {run.stderr}")
        return copy, run.stdout
    copy.datadir = path
    return copy, ""


def log_is_a_prefix(source, path, file, position):
    copied = sorted(path.glob("binlog.[0-9]*"))
    expect(copied[-1].name == file and copied[-1].stat().st_size == position, f"the copy's log ends elsewhere: {copied}")
    for log in copied:
        original = (source.datadir / log.name)
        if original.exists():
            mine, theirs = log.read_bytes(), original.read_bytes()
            # The header of the file in use says so.
            expect(theirs[30:].startswith(mine[30:]), f"{log.name} is not the beginning of the source's")


def under_load(directory):
    server = Omnibus(directory, "--lsm-memtable-size=1M", "--max-binlog-size=512K")
    server.start()
    try:
        fill(server)
        writers = load(server)
        go_on(writers, 100)
        taken = []
        for number in range(2):
            path = directory / f"backup{number}"
            least = [writer.done for writer in writers]
            file, position, gtids, size = backup(server, path)
            most = [writer.done + 1 for writer in writers]
            expect(size > 0 and gtids, f"the statement told {size} bytes, {gtids}")
            taken.append((path, file, position, gtids, least, most))
            go_on(writers, 30)
        finish(writers)
        for number, (path, file, position, gtids, least, most) in enumerate(taken):
            log_is_a_prefix(server, path, file, position)
            for restored in (True, False):
                copy, told = open_copy(directory / f"copy{number}{restored}", path, restored)
                expect(not restored or f"position {file}:{position}" in told, f"restore told {told}")
                copy.start()
                try:
                    executed = client(copy, "SELECT @@GLOBAL.gtid_executed").strip()
                    expect(executed == gtids.replace("\n", ""), f"the copy executed {executed}, not {gtids}")
                    state = check_copy(copy, least, most)
                    # It is a server like any other.
                    client(copy, "INSERT INTO b.entry_InnoDB VALUES (99, 1, 'new')")
                    copy.kill()
                    copy.start()
                    client(copy, "DELETE FROM b.entry_InnoDB WHERE client = 99")
                    expect(check_copy(copy, least, most) == state, "the copy lost something in a crash")
                finally:
                    copy.stop()
        # Nothing that the copies did reached the source.
        expect(client(server, "SELECT COUNT(*) FROM b.entry_InnoDB WHERE client = 99") == "0\n", "a copy changed the source")
        server.kill()
        server.start()
        check_copy(server, [writer.done for writer in writers], [writer.done for writer in writers])
        # The directory has been a server's since: it is not the backup any more.
        run = subprocess.run([binary(), "restore", "--from", str(taken[0][0]), "--datadir", str(directory / "late")],
                             capture_output=True, text=True)
        expect(run.returncode != 0 and "the backup was made with" in run.stderr, f"restore: {run.stderr}")
    finally:
        server.stop()


def refusals(directory):
    server = Omnibus(directory)
    server.start()
    try:
        root = connect(server, autocommit=True).cursor()
        full = directory / "full"
        full.mkdir()
        (full / "file").write_text("x")
        for path in ("relative", full, server.datadir / "inside", directory / "no" / "parent"):
            code = error_code(lambda: root.execute(f"BACKUP TO '{path}'"))
            expect(code == 1105, f"BACKUP TO '{path}': {code}")
        expect((full / "file").read_text() == "x", "a refused backup removed something")
        root.execute("CREATE USER u@localhost")
        user = connect(server, user="u").cursor()
        code = error_code(lambda: user.execute(f"BACKUP TO '{directory / 'u'}'"))
        expect(code == 1227 and not (directory / "u").exists(), f"a user without the privilege: {code}")
        root.execute("GRANT BACKUP_ADMIN ON *.* TO u@localhost")
        (directory / "u").mkdir()
        user.execute(f"BACKUP TO '{directory / 'u'}'")
    finally:
        server.stop()


def killed_in_the_middle(directory):
    """SIGKILL at some moment of a backup: the source is whole, and the copy is whole or refused."""
    server = Omnibus(directory, "--lsm-memtable-size=1M")
    server.start()
    outcomes = {True: 0, False: 0}
    try:
        fill(server)
        writers = load(server, 2)
        go_on(writers, 300)
        finish(writers)
        done = [writer.done for writer in writers]
        # A backup syncs each of its files. Slow syncs make it last long enough for all of these moments to be within it.
        server.env |= {"LD_PRELOAD": str(preload("slow_sync", directory)), "SLOW_SYNC_US": "100000"}
        server.stop()
        server.start()
        for number in range(6):
            path = directory / f"b{number}"
            thread = threading.Thread(target=lambda: error_code(lambda: backup(server, path)))
            thread.start()
            wait_for(lambda: path.exists() or not thread.is_alive(), "no backup begins", every=0.001)  # noqa: B023
            time.sleep(number * 0.1)
            server.kill()
            thread.join()
            whole = not (path / "omnibus.backup.incomplete").exists()
            outcomes[whole] += 1
            (directory / f"c{number}").mkdir()
            copy = Omnibus(directory / f"c{number}")
            copy.datadir = path
            try:
                copy.start()
                expect(whole, "a server opened a backup that was not finished")
                check_copy(copy, done, done)
            except RuntimeError:
                expect(not whole, f"a whole backup was refused: {copy.log_tail()}")
                expect("not finished" in copy.log_tail(), f"refused for another reason: {copy.log_tail()}")
            finally:
                copy.stop()
            server.start()
            check_copy(server, done, done)
        expect(not (server.datadir / "lsm" / "backup-in-progress").exists(), "a crashed backup left its links")
        expect(outcomes[False] > 0, "no backup was cut short")
    finally:
        server.stop()


def purged(directory):
    """The source purges what a backup holds, which has the same files by other names: nothing of it changes."""
    server = Omnibus(directory, "--max-binlog-size=64M")
    server.start()
    try:
        fill(server)
        client(server, "CREATE TABLE b.long (id INT PRIMARY KEY, t LONGTEXT)")
        # More than what the space of a deleted file is given back by at once.
        for number in range(10):
            client(server, f"INSERT INTO b.long VALUES ({number}, REPEAT('{number}', 1000000))")
        client(server, "FLUSH BINARY LOGS")
        writers = load(server, 2)
        go_on(writers, 30)
        finish(writers)
        done = [writer.done for writer in writers]
        path = directory / "backup"
        backup(server, path)
        linked = [log for log in path.glob("binlog.[0-9]*") if log.stat().st_nlink > 1]
        held = {log: log.read_bytes() for log in linked}
        expect(any(len(log) > 8 << 20 for log in held.values()), f"the backup holds {linked}")
        client(server, "FLUSH BINARY LOGS")
        active = client(server, "SHOW BINARY LOGS").splitlines()[-1].split("\t")[0]
        client(server, f"PURGE BINARY LOGS TO '{active}'")
        wait_for(lambda: all(log.stat().st_nlink == 1 for log in linked), "purged files are still there")
        # Space is given back after the names are gone.
        server.stop()
        expect(all(log.read_bytes() == content for log, content in held.items()), "a purge changed a backup")
        copy, _ = open_copy(directory / "copy", path, True)
        copy.start()
        try:
            check_copy(copy, done, done)
            sizes = client(copy, "SELECT COUNT(*), SUM(LENGTH(t)) FROM b.long").split()
            expect(sizes == ["10", "10000000"], f"the copy has {sizes}")
        finally:
            copy.stop()
    finally:
        server.stop()


def no_account_comes_back(directory):
    """The last account is dropped while a backup is on its way, so that the copy has none: it is as closed as its source."""
    server = Omnibus(directory)
    server.start()
    client(server, "CREATE DATABASE b; CREATE TABLE b.t (n INT PRIMARY KEY);"
                   "SET GLOBAL rpl_semi_sync_source_timeout=300000; SET GLOBAL rpl_semi_sync_source_enabled=1")
    path, threads = directory / "backup", []
    cursors = [connect(server, autocommit=True).cursor() for _ in range(4)]

    def held(cursor, sql):
        threads.append(threading.Thread(target=cursor.execute, args=(sql,)))
        threads[-1].start()

    def in_commit():
        cursors[3].execute("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_wait_sessions'")
        return int(cursors[3].fetchone()[1])
    # No replica acknowledges, so a commit is numbered and not published: the backup waits for it.
    held(cursors[0], "INSERT INTO b.t VALUES (1)")
    wait_for(lambda: in_commit() == 1, "no commit waits")
    held(cursors[1], f"BACKUP TO '{path}'")
    wait_for(path.exists, "no backup begins")
    held(cursors[2], "DROP USER root@localhost")
    wait_for(lambda: in_commit() == 2, "no account goes")
    cursors[3].execute("SET GLOBAL rpl_semi_sync_source_enabled=0")
    for thread in threads:
        thread.join()
    server.stop()
    for restored in (True, False):
        copy, _ = open_copy(directory / f"copy{restored}", path, restored)
        for opened in (copy, server):
            opened.start()
            expect(error_code(lambda: connect(opened)) == 1130, f"somebody may log in, restored: {restored}")  # noqa: B023
            opened.stop()


def ended(directory):
    """A backup ends with its statement, by KILL and when its client goes, and nothing of it is left."""
    server = Omnibus(directory)
    server.start()
    client(server, "CREATE DATABASE b; CREATE TABLE b.t (n INT PRIMARY KEY);"
                   "SET GLOBAL rpl_semi_sync_source_timeout=300000; SET GLOBAL rpl_semi_sync_source_enabled=1")
    admin = connect(server, autocommit=True).cursor()

    def in_commit():
        admin.execute("SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_wait_sessions'")
        return int(admin.fetchone()[1])
    # No replica acknowledges, so a backup that has copied the engines' files waits for the commit.
    waits = connect(server, autocommit=True)
    waits._execute_command(3, "INSERT INTO b.t VALUES (1)")
    wait_for(lambda: in_commit() == 1, "no commit waits")
    for number, how in enumerate(("QUERY", "CONNECTION", None)):
        path, db = directory / f"backup{number}", connect(server, autocommit=True)
        db._execute_command(3, f"BACKUP TO '{path}'")
        wait_for(path.exists, "no backup begins")
        begun = time.monotonic()
        if how:
            admin.execute(f"KILL {how} {db.thread_id()}")
        else:
            db._force_close()
        wait_for(lambda: not path.exists(), f"a backup goes on after KILL {how}", timeout=10)  # noqa: B023
        if how == "QUERY":
            code = error_code(db._read_query_result)
            expect(code == 1317, f"BACKUP TO that was killed: {code}")
        print(f"  {how or 'client gone'}: {time.monotonic() - begun:.1f} s", flush=True)
    admin.execute("SET GLOBAL rpl_semi_sync_source_enabled=0")
    waits._read_query_result()
    backup(server, directory / "another")
    server.stop()


def kept_settings(directory):
    """What SET PERSIST has kept holds in the copy, as it is, in both of its forms."""
    server = Omnibus(directory)
    server.start()
    client(server, "SET PERSIST long_query_time = 7; SET PERSIST_ONLY binlog_preallocate = 0; SET PERSIST super_read_only = ON")
    client(server, f"BACKUP TO '{directory / 'backup'}'")
    client(server, "SET PERSIST long_query_time = 8")
    server.stop()
    file = "mysqld-auto.cnf"
    expect(stat.S_IMODE((directory / "backup" / file).stat().st_mode) == stat.S_IMODE((server.datadir / file).stat().st_mode), "rights")
    for restored in (True, False):
        copy, _ = open_copy(directory / f"copy{restored}", directory / "backup", restored)
        copy.start()
        said = client(copy, "SELECT @@long_query_time, @@binlog_preallocate, @@super_read_only").split()
        expect([float(word) for word in said] == [7, 0, 1], f"restored: {restored}: {said}")
        copy.stop()


def main():
    tests = (under_load, refusals, killed_in_the_middle, purged, no_account_comes_back, ended, kept_settings)
    for test in tests:
        with Scratch("omnibus-backup-") as name:
            test(pathlib.Path(name))
    print(f"backup: {len(tests)} passed, 0 failed")


main()
