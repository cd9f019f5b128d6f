#!/usr/bin/python3
"""Kills the server with SIGKILL again and again under load; nothing acknowledged may be lost (COMMIT-3).

Load: sysbench oltp_write_only, and ledger clients that move money between accounts and write down every commit that
the server acknowledged. After each kill and restart:
  - every acknowledged ledger entry is there; at most one more per client (the one in flight when the server died);
  - nothing is half applied: each account's balance is the sum of its ledger entries, and all balances sum to zero;
  - every secondary index agrees with its table;
  - mariadb-binlog reads every closed log file and verifies its checksums;
  - no global transaction id is missing or twice, given ones too, and the server knows them all (GTID-1, GTID-2).
At the end the whole log, from its first file, is replayed by `mariadb-binlog | mariadb` into an empty MariaDB server,
and every table must be equal there, row by row (RECOVER-2, seen by an independent decoder and server).

Usage: kill9.py [--rounds 25] [--seed N] [--keep] [--mixed] [-- SERVER OPTIONS]

Ring: gate.
"""

import argparse
import hashlib
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pymysql  # noqa: E402

import seeds  # noqa: E402
from omnibus import PATIENCE_S, MariaDB, Omnibus, connect, expect, log_gtids, replay, wait_for  # noqa: E402

CLIENTS = 8
# So many of them give their transactions ids, as a replica does.
GIVEN = 2
# And these commit without any, with --gtid-mode=ON_PERMISSIVE.
ANONYMOUS = (2, 3)
ACCOUNTS = 10
TABLES = 2
ROWS = 1000


class Ledger(threading.Thread):
    """One client: transfers until the server dies; `acknowledged` is what the server confirmed."""

    def __init__(self, server, client, first, seed):
        super().__init__()
        self.server, self.client, self.next = server, client, first
        self.random = random.Random(seed)
        self.acknowledged = first - 1
        self.error = None

    def run(self):
        try:
            db = connect(self.server, database="ledger", autocommit=False)
            with db.cursor() as cursor:
                if self.server.permissive and self.client in ANONYMOUS:
                    cursor.execute("SET gtid_next = 'ANONYMOUS'")
                while True:
                    self.transfer(db, cursor)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError) as error:
            if error.args and error.args[0] not in (2003, 2006, 2013, 0, 1053):
                self.error = error
        except Exception as error:  # anything else is a finding, not an end of the load
            self.error = error

    def give_id(self, cursor):
        """The transaction that follows has an id of another server's, one for each of this client's transactions."""
        number = (self.next + 1) // 2
        if self.server.mariadb:
            cursor.execute(f"SET gtid_domain_id = {10 + self.client}, server_id = {100 + self.client}")
            cursor.execute(f"SET gtid_seq_no = {number}")
        else:
            # One of them with a tag.
            tag = ":tag" if self.client else ""
            cursor.execute(f"SET gtid_next = '{self.client:08}-0000-0000-0000-000000000000{tag}:{number}'")

    def transfer(self, db, cursor):
        source, target = sorted(self.random.sample(range(ACCOUNTS), 2))
        amount = self.random.randint(-100, 100)
        note = "x" * self.random.randint(0, 300)
        if self.client < GIVEN:
            self.give_id(cursor)
        cursor.execute("UPDATE account SET balance = balance - %s WHERE id = %s", (amount, source))
        cursor.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (amount, target))
        cursor.execute("INSERT INTO entry VALUES (%s, %s, %s, %s, %s)", (self.client, self.next, source, -amount, note))
        cursor.execute("INSERT INTO entry VALUES (%s, %s, %s, %s, %s)",
                       (self.client, self.next + 1, target, amount, note))
        db.commit()
        self.next += 2
        self.acknowledged = self.next - 1


def query(server, sql):
    db = connect(server)
    try:
        with db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()
    finally:
        db.close()


def sysbench(server, *command, **more):
    return subprocess.Popen(
        ["sysbench", "oltp_write_only", f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=sbtest",
         f"--tables={TABLES}", f"--table-size={ROWS}", "--threads=8", "--time=60", *command],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)


def prepare(server, mixed):
    db = connect(server)
    with db.cursor() as cursor:
        cursor.execute("CREATE DATABASE ledger")
        cursor.execute("CREATE DATABASE sbtest")
        if mixed:
            # The accounts in one engine, their entries and the rest in the other.
            cursor.execute("SET default_storage_engine = 'LSM'")
        cursor.execute("CREATE TABLE ledger.account (id INT PRIMARY KEY, balance BIGINT NOT NULL)")
        if mixed:
            cursor.execute("SET default_storage_engine = 'BTREE'")
        cursor.execute("CREATE TABLE ledger.entry (client INT, seq BIGINT, account INT NOT NULL, amount INT NOT NULL,"
                       " note VARCHAR(300), PRIMARY KEY (client, seq), KEY by_account (account, amount))")
        cursor.execute("INSERT INTO ledger.account VALUES " + ",".join(f"({n}, 0)" for n in range(ACCOUNTS)))
    db.commit()
    db.close()
    if sysbench(server, "prepare").wait() != 0:
        raise SystemExit("FAIL: sysbench prepare")


def check(server, acknowledged):
    """Compares the server with what clients were told; returns the next sequence number of each client."""
    following = {}
    for client in range(CLIENTS):
        seqs = [row[0] for row in query(server, f"SELECT seq FROM ledger.entry WHERE client={client} ORDER BY seq")]
        expect(seqs == list(range(1, len(seqs) + 1)), f"client {client}: entries have holes: {len(seqs)} entries")
        expect(len(seqs) >= acknowledged.get(client, 0),
               f"client {client}: {acknowledged.get(client)} entries acknowledged, {len(seqs)} found (COMMIT-3)")
        expect(len(seqs) <= acknowledged.get(client, 0) + 2, f"client {client}: more than one transaction in flight")
        expect(len(seqs) % 2 == 0, f"client {client}: a transfer is half there (COMMIT-3)")
        following[client] = len(seqs) + 1
    balances = dict(query(server, "SELECT id, balance FROM ledger.account"))
    sums = dict(query(server, "SELECT account, SUM(amount) FROM ledger.entry GROUP BY account"))
    for account in range(ACCOUNTS):
        expect(balances[account] == int(sums.get(account) or 0),
               f"account {account}: balance {balances[account]} but entries sum to {sums.get(account)}")
    by_index = query(server, "SELECT COUNT(*) FROM ledger.entry FORCE INDEX (by_account) WHERE account >= 0")
    expect(by_index == query(server, "SELECT COUNT(*) FROM ledger.entry"), "index by_account disagrees with its table")
    for n in range(1, TABLES + 1):
        walk = query(server, f"SELECT COUNT(*), SUM(k) FROM sbtest.sbtest{n}")
        index = query(server, f"SELECT COUNT(*), SUM(k) FROM sbtest.sbtest{n} FORCE INDEX (k_{n}) WHERE k >= 0")
        expect(walk == index, f"index k_{n} disagrees with sbtest{n}: {walk} {index}")
    return following


def check_binlogs(server):
    closed = server.binlogs()[:-1]
    for path in closed:
        read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", path],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        expect(read.returncode == 0 and "ERROR" not in read.stderr, f"mariadb-binlog {path}: {read.stderr}")


def check_gtids(server):
    """No id is missing or twice in the log, and the server knows them all (GTID-1, GTID-2)."""
    ids = log_gtids(server.binlogs())
    sources = {}
    for gtid in ids:
        source, number = gtid.replace(":", " ").rsplit("-" if ":" not in gtid else " ", 1)
        sources.setdefault(source, []).append(int(number))
    expect(len(sources) == 1 + GIVEN, f"ids of {sorted(sources)}")
    for source, numbers in sources.items():
        expect(numbers == list(range(1, len(numbers) + 1)), f"ids of {source} have holes or doubles (GTID-2)")
    variable = "gtid_binlog_pos" if server.mariadb else "gtid_executed"
    known = query(server, f"SELECT @@{variable}")[0][0]
    if server.mariadb:
        there = sorted(f"{source}-{len(numbers)}" for source, numbers in sources.items())
    else:
        there = sorted(f"{source.replace(' ', ':')}:1{f'-{len(n)}' if len(n) > 1 else ''}" for source, n in sources.items())
    expect(sorted(known.split(",")) == there, f"{variable} is {known}, the log has {there}")


def contents(server):
    """A digest of every row of every table, by table."""
    digests = {}
    tables = [("ledger", "account", "id"), ("ledger", "entry", "client, seq")]
    tables += [("sbtest", f"sbtest{n}", "id") for n in range(1, TABLES + 1)]
    for schema, table, key in tables:
        rows = query(server, f"SELECT * FROM {schema}.{table} ORDER BY {key}")
        digests[f"{schema}.{table}"] = (len(rows), hashlib.sha256(repr(rows).encode()).hexdigest())
    return digests


def replay_into_mariadb(server, directory):
    peer = MariaDB(directory, "--skip-log-bin")
    peer.start()
    try:
        replay(server, peer)
        ours, theirs = contents(server), contents(peer)
        for table, digest in ours.items():
            expect(digest == theirs[table], f"{table}: {digest} here, {theirs[table]} after the replay")
    finally:
        peer.stop()


def round_of_load(server, following, rng):
    clients = [Ledger(server, n, following.get(n, 1), rng.random()) for n in range(CLIENTS)]
    load = sysbench(server, "--mysql-ignore-errors=all", "run")
    for client in clients:
        client.start()
    # However slow the machine is, each has done something.
    wait_for(lambda: all(client.error or client.acknowledged >= following.get(client.client, 1) for client in clients), "no load")
    time.sleep(rng.uniform(0, 1.8))
    server.kill()
    load.kill()
    load.wait()
    for client in clients:
        client.join(PATIENCE_S)
        expect(not client.is_alive() and client.error is None, f"client {client.client}: {client.error!r}")
    return {client.client: client.acknowledged for client in clients}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25, help="kills in a row (default 25)")
    seeds.add_to(parser)
    parser.add_argument("--mixed", action="store_true", help="tables of both engines in each transfer")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    parser.add_argument("options", nargs="*", help="options for the server, after --")
    args = parser.parse_args()
    print(f"kill9: seed {args.seed}", flush=True)
    rng = random.Random(args.seed)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-kill9-"))
    # Small files and memtables, so that kills also hit rotation, flushes and compaction.
    server = Omnibus(directory, "--max-binlog-size=4M", "--lsm-memtable-size=2M",
                     *(["--default-storage-engine=BTREE"] if args.mixed else []), *args.options)
    server.mariadb = "--dialect=mariadb" in args.options
    server.permissive = "--gtid-mode=ON_PERMISSIVE" in args.options
    passed = False
    try:
        server.start()
        prepare(server, args.mixed)
        following = {}
        for n in range(1, args.rounds + 1):
            acknowledged = round_of_load(server, following, rng)
            seconds = server.start()
            following = check(server, acknowledged)
            check_binlogs(server)
            check_gtids(server)
            total = sum(acknowledged.values()) // 2
            print(f"kill9: round {n:2}: {total} transfers acknowledged in all, restarted in {seconds:.2f} s", flush=True)
        server.stop()
        check_binlogs(server)
        server.start()
        replay_into_mariadb(server, directory)
        server.stop()
        passed = True
        print(f"kill9: {args.rounds} kills, nothing lost, replay equal. 1 passed, 0 failed", flush=True)
    finally:
        if server.runs():
            server.kill()
        if passed and not args.keep:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"kill9: files kept in {directory}", flush=True)


if __name__ == "__main__":
    main()
