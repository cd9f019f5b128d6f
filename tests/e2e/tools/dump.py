#!/usr/bin/python3
"""mariadb-dump --single-transaction --master-data, as Debian ships it, while others write.

The dump holds no lock, is one snapshot, and names the very position of it: restored into an empty server it is equal
to what it was, and with the log from that position on it becomes equal to the live server. The log is rolled forward with
mariadb-binlog --start-position, in an Omnibus and in a MariaDB server.

Ring: gate.
"""

import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, error_code, expect, finished_binlogs, wait_for  # noqa: E402

ACCOUNTS = 20
CONTENTS = ("SELECT id, balance, note FROM bank.account ORDER BY id", "SELECT id, account, amount FROM bank.entry ORDER BY id",
            "SELECT HEX(b), d, e, f, t FROM bank.kinds ORDER BY f")


def fill(server):
    cursor = connect(server, autocommit=True).cursor()
    for sql in (
        "CREATE DATABASE bank CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
        "CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL, note VARCHAR(50), KEY (note))",
        "CREATE TABLE bank.entry (id BIGINT AUTO_INCREMENT PRIMARY KEY, account INT, amount INT, KEY (account))",
        "CREATE TABLE bank.kinds (b BLOB, d DATETIME(3), e ENUM('a','b'), f DECIMAL(20,5), t TEXT)",
        "INSERT INTO bank.kinds VALUES (x'00ff2700', '2020-02-29 01:02:03.456', 'b', 1.5, 'it''s \\\\ \\n ü'), "
        "(NULL, NULL, NULL, 2, NULL)",
    ):
        cursor.execute(sql)
    for n in range(ACCOUNTS):
        cursor.execute("INSERT INTO bank.account VALUES (%s, 0, %s)", (n, f"note {n}"))


class Writer(threading.Thread):
    """Moves money between accounts, in transactions of several statements, until it is told to stop."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.stop, self.count, self.error = server, number, threading.Event(), 0, None

    def run(self):
        try:
            db = connect(self.server, autocommit=False)
            while not self.stop.is_set():
                if error_code(lambda: self.transaction(db), but=(1213, 1205)):
                    db.rollback()
        except Exception as error:  # a finding
            self.error = error

    def transaction(self, db):
        n = self.count * 7 + self.number
        one, other = sorted(((n % ACCOUNTS), (n * 3 + 1) % ACCOUNTS))
        with db.cursor() as cursor:
            for account, amount in ((one, n % 100), (other, -(n % 100))):
                cursor.execute("UPDATE bank.account SET balance = balance + %s, note = %s WHERE id = %s",
                               (amount, f"{self.number}:{n}", account))
                cursor.execute("INSERT INTO bank.entry (account, amount) VALUES (%s, %s)", (account, amount))
            if self.count % 10 == 9:
                cursor.execute("DELETE FROM bank.entry WHERE account = %s AND amount = 0 LIMIT 5", (one,))
        db.commit()
        self.count += 1


def contents(server):
    return [client(server, sql) for sql in CONTENTS]


def dump(server, *options, how="--single-transaction"):
    run = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot",
                          how, "--master-data=2", *options], capture_output=True)
    expect(run.returncode == 0 and not run.stderr, f"mariadb-dump {options}: {run.stderr.decode(errors='replace')}")
    return run.stdout


def restore(server, text):
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--binary-mode"],
                         input=text, capture_output=True)
    expect(run.returncode == 0, f"the dump was refused: {run.stderr.decode(errors='replace')[-2000:]}")


def position_of(text):
    found = re.search(rb"MASTER_LOG_FILE='([^']+)', MASTER_LOG_POS=(\d+)", text)
    expect(found, "the dump names no position")
    return found[1].decode(), int(found[2])


def roll_forward(server, peer, file, position):
    """Everything from the position on, into the peer."""
    files = [path for path in finished_binlogs(server) if pathlib.Path(path).name >= file]
    reader = subprocess.run(["mariadb-binlog", "--no-defaults", f"--start-position={position}", *files],
                            capture_output=True)
    expect(reader.returncode == 0, f"mariadb-binlog: {reader.stderr.decode(errors='replace')}")
    restore(peer, reader.stdout)


def snapshot_status(server):
    """The status variables are those of the session's snapshot as long as it lasts."""
    db = connect(server, autocommit=True)
    cursor = db.cursor()

    def status():
        cursor.execute("SHOW STATUS LIKE 'Binlog_snapshot_%'")
        return dict(cursor.fetchall())

    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    first = status()
    expect(first["Binlog_snapshot_gtid_executed"], f"no GTIDs in {first}")
    expect(first["Binlog_snapshot_gtid"] == first["Binlog_snapshot_gtid_executed"], f"two names for one set: {first}")
    client(server, "INSERT INTO bank.entry (account, amount) VALUES (0, 1); FLUSH BINARY LOGS;"
                   "DELETE FROM bank.entry WHERE account = 0 AND amount = 1")
    expect(status() == first, f"the snapshot's position moved: {first}, then {status()}")
    cursor.execute("COMMIT")
    later = status()
    for name in ("Binlog_snapshot_file", "Binlog_snapshot_gtid_executed"):
        expect(later[name] != first[name], f"{name} is still the snapshot's after its end")


def under_read_lock(server, directory):
    """--flush-logs and --lock-all-tables stop the writers for a moment with FLUSH TABLES WITH READ LOCK."""
    writers = [Writer(server, number) for number in range(3)]
    for writer in writers:
        writer.start()
    texts = []
    for options, how in ((["--flush-logs"], "--single-transaction"), (["--flush-logs"], "--lock-all-tables")):
        counts = [writer.count for writer in writers]
        wait_for(lambda: all(writer.count > count or not writer.is_alive() for writer, count in zip(writers, counts)), "writers stand still")  # noqa: B023
        texts.append(dump(server, *options, "--databases", "bank", how=how))
    for writer in writers:
        writer.stop.set()
    for writer in writers:
        writer.join()
        expect(writer.error is None, f"a writer failed beside the dump: {writer.error}")
    live = contents(server)
    (directory / "locked").mkdir()
    fresh = Omnibus(directory / "locked")
    fresh.start()
    try:
        for text in texts:
            client(fresh, "DROP DATABASE IF EXISTS bank")
            restore(fresh, text)
            one = client(fresh, "SELECT SUM(balance), (SELECT SUM(amount) FROM bank.entry) FROM bank.account")
            expect(one == "0\t0\n", f"the dump is not of one moment: {one}")
            roll_forward(server, fresh, *position_of(text))
            expect(contents(fresh) == live, "the dump and the log from its position on are not the live server")
    finally:
        fresh.stop()


def under_load(server, directory):
    writers = [Writer(server, number) for number in range(3)]
    for writer in writers:
        writer.start()
    wait_for(lambda: all(writer.count >= 50 or not writer.is_alive() for writer in writers), "writers stand still")
    text = dump(server, "--databases", "bank")
    at_dump = sum(writer.count for writer in writers)
    wait_for(lambda: sum(writer.count for writer in writers) >= at_dump + 100 or not all(writer.is_alive() for writer in writers), "writers stand still")
    for writer in writers:
        writer.stop.set()
    for writer in writers:
        writer.join()
        expect(writer.error is None, f"a writer failed beside the dump: {writer.error}")
    live = contents(server)
    fresh = Omnibus(directory / "fresh")
    peer = MariaDB(directory)
    (directory / "fresh").mkdir()
    fresh.start()
    peer.start()
    try:
        restore(fresh, text)
        one = client(fresh, "SELECT SUM(balance), (SELECT SUM(amount) FROM bank.entry) FROM bank.account")
        expect(one == "0\t0\n", f"the dump is not one snapshot: {one}")
        restore(peer, text)
        expect(contents(peer) == contents(fresh), "the dump means something else to MariaDB")
        expect(contents(peer) != live, "nothing was written after the dump")
        for other in (peer, fresh):
            roll_forward(server, other, *position_of(text))
            expect(contents(other) == live, f"the dump and the log from its position on are not the live server: {other}")
        fresh.kill()
        fresh.start()
        expect(contents(fresh) == live, "what was rolled forward is gone after a kill")
    finally:
        fresh.stop()
        peer.stop()


def refused_events(server):
    """BINLOG with what does not fit says so, and changes nothing."""
    # In a file of their own.
    client(server, "FLUSH BINARY LOGS; CREATE TABLE bank.narrow (id INT PRIMARY KEY, v INT); INSERT INTO bank.narrow VALUES (1, 1)")
    first = finished_binlogs(server)[-1]
    reader = subprocess.run(["mariadb-binlog", "--no-defaults", first], capture_output=True, text=True)
    statements = re.findall(r"BINLOG '\n([^']*)'", reader.stdout)
    expect(len(statements) == 2, "the log has other events than expected")
    format_description, insert = (re.sub(r"\s", "", text) for text in statements)
    fresh = connect(server, autocommit=True).cursor()

    def code(text, cursor=fresh):
        return error_code(lambda: cursor.execute(f"BINLOG '{text}'"))

    expect(code(insert) == 1609, "rows without a format description were taken")
    expect(code(format_description) == 0, "a format description was refused")
    expect(code(insert) == 1062, "a row that is there was inserted again")
    expect(code("AAAA*") == 1575 and code("QUJD") == 1064, "nonsense was taken")
    fresh.execute("DELETE FROM bank.narrow")
    fresh.execute("ALTER TABLE bank.narrow MODIFY v TINYINT")
    expect(code(insert) == 1677, "rows that a narrower type could cut were taken")
    fresh.execute("ALTER TABLE bank.narrow MODIFY v DATE")
    expect(code(insert) == 1677, "rows of another type were taken")
    fresh.execute("ALTER TABLE bank.narrow MODIFY v BIGINT")
    expect(code(insert) == 0, "rows that a wider type holds were refused")
    fresh.execute("SELECT id, v FROM bank.narrow")
    expect(fresh.fetchall() == ((1, 1),), "the row is not there")
    fresh.execute("CREATE USER nobody@localhost")
    other = connect(server, user="nobody").cursor()
    expect(code(format_description, other) == 1227, "BINLOG without the privilege")
    fresh.execute("DROP TABLE bank.narrow")


def everything(server, directory):
    """--all-databases, with the system schema, into another server; and further options."""
    text = dump(server, "--all-databases", "--hex-blob", "--routines", "--triggers", "--events")
    (directory / "all").mkdir()
    other = Omnibus(directory / "all")
    other.start()
    try:
        restore(other, text)
        expect(contents(other) == contents(server), "restored with all databases, the tables differ")
        client(other, "FLUSH PRIVILEGES")
        other.stop()
        other.start()
        expect(contents(other) == contents(server), "after a restart the restored tables differ")
    finally:
        other.stop()
    dump(server, "bank", "--no-data", "--skip-opt", "--compact")
    dump(server, "bank", "account", "--where=id < 5", "--complete-insert", "--replace")


def main():
    with Scratch("omnibus-dump-") as name:
        directory = pathlib.Path(name)
        server = Omnibus(directory, "--max-binlog-size=256K")
        server.start()
        try:
            fill(server)
            snapshot_status(server)
            under_load(server, directory)
            under_read_lock(server, directory)
            refused_events(server)
            everything(server, directory)
        finally:
            server.stop()
    print("dump: 5 passed, 0 failed")


main()
