#!/usr/bin/python3
"""Histories of transactions at each level of isolation, on both engines, with and without early release of locks, some of them cut
off by kill -9; checked for what the level forbids and for lost acknowledgements (`histories`), beside invariants of single
statements (COMMIT-3, SNAP-1, SNAP-2).

Usage: isolation_histories.py [--seconds 1] [--seed N] [--only "LEVEL ENGINE EARLY"]; the seed is printed. `make histories` is the
long form. The checker itself is tried on histories that are wrong.

Ring: gate.
"""

import argparse
import itertools
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402

import seeds  # noqa: E402
from histories import LEVELS, History, Transaction  # noqa: E402
from omnibus import Omnibus, Scratch, connect, expect, wait_for  # noqa: E402

CLIENTS, LISTS, SETS, REGISTERS, ACCOUNTS, BALANCE = 8, 5, 4, 3, 12, 100
# Transactions of a history at least.
LEAST = 40
# What is locked before something else is read, and what is taken back before the end.
GUARDS = {
    "row": ["SELECT n FROM guards WHERE id = 1 FOR UPDATE"],
    "changed": ["UPDATE guards SET n = n + 1 WHERE id = 2"],
    "index": ["SELECT n FROM guards WHERE code = 3 FOR UPDATE"],
    "rows": ["SELECT n FROM guards WHERE id BETWEEN 4 AND 5 FOR UPDATE"],
    "unique": ["INSERT INTO guards VALUES (-CONNECTION_ID(), 100, 0)"],
    "new row": ["INSERT INTO guards VALUES (100, NULL, 0)"],
    "name": [],
}
UNGUARDS = {
    "unique": ["DELETE FROM guards WHERE code = 100"],
    "new row": ["DELETE FROM guards WHERE id = 100"],
}
GONE = (2003, 2006, 2013, 0, 1053)


class Client(threading.Thread):
    """Runs random transactions until the time is over or the server is gone."""

    def __init__(self, run, nth):
        super().__init__()
        self.shared, self.nth, self.random = run, nth, random.Random(f"{run.seed} {nth}")
        self.values = itertools.count(nth + 1, CLIENTS)
        self.db = connect(run.server, database="h", autocommit=True)
        self.ask(f"SET SESSION TRANSACTION ISOLATION LEVEL {run.level}")
        self.start()

    def ask(self, sql):
        with self.db.cursor() as cursor:
            cursor.execute(sql)
            self.affected = cursor.rowcount
            return cursor.fetchall()

    def run(self):
        kinds = [self.history] * 6 + [self.bank, self.next_number, self.not_exists, self.all_rows] + [self.guarded] * 3
        try:
            while self.shared.killed or self.shared.goes_on():
                trx = self.random.choice(kinds)
                try:
                    trx()
                except pymysql.err.MySQLError as error:
                    if error.args[0] not in (1213, 1205):
                        raise
                    self.ask("ROLLBACK")
                    self.shared.refused += 1
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError) as error:
            expect(not error.args or error.args[0] in GONE, f"{error}")
            expect(self.shared.killed, f"the server is gone: {error}")

    def history(self):
        trx = Transaction(time.monotonic())
        self.shared.history.append(trx)
        try:
            self.ask("BEGIN")
            for _ in range(self.random.randint(1, 4)):
                self.random.choice([self.append, self.read, self.read, self.add, self.find, self.write, self.look])(trx)
            end = self.random.choices(["COMMIT", "ROLLBACK"], [9, 1])[0]
            if end == "ROLLBACK":
                trx.status = "failed"
            self.ask(end)
        except pymysql.err.MySQLError as error:
            if error.args[0] in (1213, 1205):
                trx.status = "failed"
            raise
        trx.ended = time.monotonic()
        if end == "COMMIT":
            trx.status = "ok"

    def append(self, trx):
        key, value = self.random.randrange(LISTS), next(self.values)
        trx.ops.append(("append", f"list {key}", value))
        self.ask(f"INSERT INTO lists VALUES ({key}, 1, '{value}') "
                 f"ON DUPLICATE KEY UPDATE version = version + 1, items = CONCAT(items, ' {value}')")

    def read(self, trx):
        key = self.random.randrange(LISTS)
        path = self.random.choice(["WHERE id = {}", "FORCE INDEX (version) WHERE version > 0 AND id = {}"]).format(key)
        rows = self.ask(f"SELECT items FROM lists {path}")
        expect(len(rows) <= 1, f"a row more than once: {rows}")
        trx.ops.append(("read", f"list {key}", [int(item) for row in rows for item in row[0].split()]))

    def add(self, trx):
        key, value = self.random.randrange(SETS), next(self.values)
        trx.ops.append(("add", f"set {key}", value))
        self.ask(f"INSERT INTO sets (member, kind) VALUES ({value}, {key})")

    def find(self, trx):
        key = self.random.randrange(SETS)
        rows = self.ask(f"SELECT member FROM sets FORCE INDEX (kind) WHERE kind = {key}")
        trx.ops.append(("find", f"set {key}", [row[0] for row in rows]))

    def write(self, trx):
        """A register that is read under its lock first, so that its versions are a list."""
        key, value = self.random.randrange(REGISTERS), next(self.values)
        before = self.ask(f"SELECT value FROM registers WHERE id = {key} FOR UPDATE")[0][0]
        self.ask(f"UPDATE registers SET value = {value} WHERE id = {key}")
        trx.ops.append(("append", f"register {key}", value))
        self.shared.before[key, value] = before

    def look(self, trx):
        key = self.random.randrange(REGISTERS)
        trx.ops.append(("look", f"register {key}", self.ask(f"SELECT value FROM registers WHERE id = {key}")[0][0]))

    def bank(self):
        """Money moves; whoever only looks sees it all, by whatever index, and each account once even among own changes."""
        one, two = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randint(1, 20)
        self.ask("BEGIN")
        for _ in range(2):
            self.sees_all("SELECT COUNT(*), SUM(balance) FROM accounts")
            self.sees_all("SELECT COUNT(*), SUM(balance) FROM accounts FORCE INDEX (balance) WHERE balance > -100000")
        self.ask(f"UPDATE accounts SET balance = balance - {amount} WHERE id = {one}")
        self.ask(f"UPDATE accounts SET balance = balance + {amount} WHERE id = {two}")
        count = self.ask("SELECT COUNT(*), COUNT(DISTINCT id) FROM accounts FORCE INDEX (balance) WHERE balance > -100000")
        expect(count == ((ACCOUNTS, ACCOUNTS),), f"accounts beside own changes: {count}")
        self.ask(self.random.choice(["COMMIT", "COMMIT", "ROLLBACK"]))

    def sees_all(self, sql):
        rows = self.ask(sql)
        expect(rows == ((ACCOUNTS, ACCOUNTS * BALANCE),), f"{self.shared.level}: {sql}: {rows}")

    def next_number(self):
        self.ask("INSERT INTO numbers (n) SELECT MAX(n) + 1 FROM numbers")

    def not_exists(self):
        pair, side = self.random.randrange(self.shared.pairs, self.shared.pairs + 4), self.random.randrange(2)
        self.shared.pairs += self.random.random() < 0.2
        self.ask(f"INSERT INTO pairs (pair, side) SELECT {pair}, {side} FROM DUAL "
                 f"WHERE NOT EXISTS (SELECT 1 FROM pairs WHERE pair = {pair} AND side = {1 - side})")

    def guarded(self):
        """One thing is locked, and another read without locks: the count of rows that were written under the lock, which the next
        one's number is (SNAP-3). Rows that somebody was told of are among them."""
        guard = self.random.choice(sorted(GUARDS))
        if guard == "name":
            self.ask("DO GET_LOCK('guard', 60)")
        try:
            told = self.shared.told[guard]
            before = self.ask("SELECT COUNT(*) FROM numbered WHERE guard = 'row'")[0][0] if self.random.random() < 0.2 else 0
            self.ask("BEGIN")
            for lock in GUARDS[guard]:
                self.ask(lock)
            count = self.ask(f"SELECT COUNT(*) FROM numbered WHERE guard = '{guard}'")[0][0]
            expect(count >= told, f"{self.shared.level}: {count} rows behind {guard}, where {told} were told of")
            again = self.ask("SELECT COUNT(*) FROM numbered WHERE guard = 'row'")[0][0]
            expect(again >= before, f"{self.shared.level}: {again} rows, and {before} before")
            self.ask(f"INSERT INTO numbered (guard, n) VALUES ('{guard}', {count})")
            for undo in UNGUARDS.get(guard, []):
                self.ask(undo)
            self.ask("COMMIT")
            self.shared.told[guard] = max(self.shared.told[guard], count + 1)
        finally:
            if guard == "name":
                self.ask("DO RELEASE_LOCK('guard')")

    def all_rows(self):
        """A change by an index in which every row is, wherever others move it."""
        self.ask("UPDATE accounts FORCE INDEX (balance) SET touched = touched + 1 WHERE balance > -100000")
        expect(self.affected == ACCOUNTS, f"{self.shared.level}: {self.affected} of {ACCOUNTS} accounts were changed")


class Run:
    """One history on one server."""

    def __init__(self, server, level, engine, early, seed, seconds, kill):
        self.server, self.level, self.seed, self.killed = server, level, seed, kill
        self.history, self.before, self.refused, self.pairs = [], {}, 0, 0
        self.told = dict.fromkeys(GUARDS, 0)
        db = connect(server, autocommit=True)
        self.cursor = db.cursor()
        tables = ["lists (id INT PRIMARY KEY, version INT, items TEXT, KEY (version))",
                  "sets (member INT PRIMARY KEY, kind INT, KEY (kind))", "registers (id INT PRIMARY KEY, value INT)",
                  "accounts (id INT PRIMARY KEY, balance INT, touched INT DEFAULT 0, KEY (balance))",
                  "numbers (id INT AUTO_INCREMENT PRIMARY KEY, n INT, KEY (n))",
                  "pairs (id INT AUTO_INCREMENT PRIMARY KEY, pair INT, side INT, KEY (pair, side))",
                  "guards (id INT PRIMARY KEY, code INT UNIQUE, n INT)",
                  "numbered (id INT AUTO_INCREMENT PRIMARY KEY, guard VARCHAR(9), n INT, KEY (guard))"]
        for sql in [f"SET GLOBAL release_locks_early = {early}", "DROP DATABASE IF EXISTS h", "CREATE DATABASE h", "USE h",
                    *(f"CREATE TABLE {table} ENGINE = {engine}" for table in tables), "INSERT INTO numbers (n) VALUES (1)",
                    "INSERT INTO guards VALUES (1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0), (5, 5, 0)",
                    f"INSERT INTO registers VALUES {', '.join(f'({n}, 0)' for n in range(REGISTERS))}",
                    f"INSERT INTO accounts VALUES {', '.join(f'({n}, {BALANCE}, 0)' for n in range(ACCOUNTS))}"]:
            self.cursor.execute(sql)
        self.until = time.monotonic() + seconds
        clients = [Client(self, nth) for nth in range(CLIENTS)]
        if kill:
            wait_for(lambda: not self.goes_on(), "transactions")
            server.kill()
        for client in clients:
            client.join()
        if kill:
            server.start()
            self.cursor = connect(server, database="h", autocommit=True).cursor()
        self.check()

    def goes_on(self):
        """Until the time is over, and on a busy machine until something has been done."""
        return time.monotonic() < self.until or len(self.history) < LEAST

    def ask(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall()

    def check(self):
        lists = {f"list {key}": [int(item) for item in items.split()] for key, items in self.ask("SELECT id, items FROM lists")}
        sets = {}
        for key, member in self.ask("SELECT kind, member FROM sets"):
            sets.setdefault(f"set {key}", []).append(member)
        for key, value in self.ask("SELECT id, value FROM registers"):
            versions = lists[f"register {key}"] = self.versions(key, value)
            for trx in self.history:
                for at, (kind, name, seen) in enumerate(trx.ops):
                    if kind == "look" and name == f"register {key}":
                        trx.ops[at] = ("read", name, self.versions(key, seen))
        problems = History(self.history, lists, sets).check(self.level)
        total = self.ask("SELECT COUNT(*), SUM(balance) FROM accounts")
        if total != ((ACCOUNTS, ACCOUNTS * BALANCE),):
            problems.append(f"accounts: {total}")
        twice = self.ask("SELECT n, COUNT(*) FROM numbers GROUP BY n HAVING COUNT(*) > 1")
        both = self.ask("SELECT pair FROM pairs GROUP BY pair HAVING COUNT(DISTINCT side) > 1")
        problems += [f"{count} numbers behind {guard}, {distinct} different ones, from 0 to {last}" for guard, count, distinct, last in
                     self.ask("SELECT guard, COUNT(*), COUNT(DISTINCT n), MAX(n) FROM numbered GROUP BY guard")
                     if not count == distinct == last + 1]
        problems += [f"lost behind {guard}: {told} were told of" for guard, told in self.told.items()
                     if self.ask(f"SELECT COUNT(*) FROM numbered WHERE guard = '{guard}'")[0][0] < told]
        if self.level in ("REPEATABLE READ", "SERIALIZABLE"):
            problems += [f"MAX(n) + 1 twice: {row}" for row in twice] + [f"both sides exist: {row}" for row in both]
        expect(not problems, f"{len(problems)} problems, the first: " + "\n".join(problems[:3]))

    def versions(self, key, value):
        """What a register has been, up to a value."""
        found = []
        while value:
            found.append(value)
            value = self.before.get((key, value), 0)
        return found[::-1]


def mutants():
    """Wrong histories, which the checker must find wrong at the right levels only."""
    def trx(ops, status="ok", begun=0, ended=1):
        made = Transaction(begun)
        made.ops, made.status, made.ended = ops, status, ended
        return made

    append, read = (lambda key, value: ("append", key, value)), (lambda key, *values: ("read", key, list(values)))
    cases = {
        "lost": (0, [trx([append("x", 1)])], {}, {}),
        "G0": (0, [trx([append("x", 1), append("y", 1)]), trx([append("x", 2), append("y", 2)])], {"x": [1, 2], "y": [2, 1]}, {}),
        "G1a": (0, [trx([append("x", 1)], "failed"), trx([read("x", 1)])], {"x": []}, {}),
        "G1b": (0, [trx([append("x", 1), append("x", 2)]), trx([read("x", 1)])], {"x": [1, 2]}, {}),
        "G1c": (0, [trx([append("x", 1), read("y", 1)]), trx([append("y", 1), read("x", 1)])], {"x": [1], "y": [1]}, {}),
        "read skew": (2, [trx([append("x", 1), append("y", 1)]), trx([read("x"), read("y", 1)])], {"x": [1], "y": [1]}, {}),
        "lost update": (3, [trx([read("x"), append("x", 1)]), trx([read("x"), append("x", 2)])], {"x": [1, 2]}, {}),
        "write skew": (3, [trx([read("x"), append("y", 1)]), trx([read("y"), append("x", 1)])], {"x": [1], "y": [1]}, {}),
        "phantoms": (3, [trx([("find", "s", []), ("add", "r", 1)]), trx([("find", "r", []), ("add", "s", 1)])], {},
                     {"s": [1], "r": [1]}),
        "a stale read": (3, [trx([append("x", 1)]), trx([read("x")], begun=2, ended=3)], {"x": [1]}, {}),
    }
    for name, (least, transactions, lists, sets) in cases.items():
        for rank, level in enumerate(LEVELS):
            problems = History(transactions, lists, sets).check(level)
            expect(bool(problems) == (rank >= least), f"the checker at {level} about {name}: {problems}")
    print(f"histories: {len(cases)} wrong histories are found wrong", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.8)
    seeds.add_to(parser)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    mutants()
    print(f"histories: --seed {options.seed}", flush=True)
    with Scratch("omnibus-histories-") as directory:
        server = Omnibus(directory, "--innodb-lock-wait-timeout=5")
        server.start()
        for nth, (level, engine, early) in enumerate(itertools.product(LEVELS, ["LSM", "BTREE"], ["ON", "OFF"])):
            name = f"{level} {engine} {early}"
            if options.only not in name:
                continue
            # One of each four is cut off, so that every level is.
            kill = nth % 4 == LEVELS.index(level)
            run = Run(server, level, engine, early, f"{options.seed} {nth}", options.seconds, kill)
            done = sum(trx.status == "ok" for trx in run.history)
            expect(done > LEAST / 4, f"{name}: only {done} transactions")
            print(f"histories: {name}{', killed' if kill else ''}: {done} transactions, {run.refused} refused", flush=True)
        server.stop()
    print("histories: passed")


if __name__ == "__main__":
    main()
