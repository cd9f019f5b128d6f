#!/usr/bin/python3
"""Change-stream clients in four languages read our log as replicas do, and miss nothing.

Each client of tests/clients follows the server from the start of its log, by position and by GTID, while a workload with
every type runs, through rotations, a restart and a kill -9, and must print every row of every transaction, in order, once.
What is expected is found by reading the tables before and after each statement. `--source mariadb` runs the same against
MariaDB (by position), which tells a fault of this test from one of the server.

Ring: all.
"""

import argparse
import datetime
import decimal
import json
import os
import pathlib
import random
import subprocess
import sys
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import workload  # noqa: E402
from omnibus import PATIENCE_S, ROOT, Scratch, connect, expect  # noqa: E402
from peers import PASSWORD, USER, MariaPeer, OmnibusPeer, create_user, first_log, query, wait_for  # noqa: E402

CLIENTS = ("python", "go", "java", "node")
EPOCH = datetime.datetime(1970, 1, 1)
JSONS = ["'{\"b\": [1, 2.5, null, true], \"a\": \"ä\"}'", "'[]'", "'{}'", "'\"text\"'", "'-5'", "'[1e100, {\"k\": {}}]'"]


class Column:
    """How the values of one column, as any client shows them, become comparable."""

    def __init__(self, name, kind):
        self.name, self.kind = name, kind.lower()
        self.base = self.kind.split("(")[0].split()[0]

    def chosen(self):
        """The expression that reads the value."""
        if self.base in ("char", "varchar", "enum", "set", "json") or self.base.endswith("text"):
            return f"HEX(CONVERT({self.name} USING utf8mb4))"
        if self.is_bytes():
            return f"HEX({self.name})"
        return f"{self.name} + 0" if self.base == "year" else self.name

    def stored(self, value):
        """What SELECT gave, comparable."""
        if value is None:
            return None
        value = value.decode() if isinstance(value, bytes) else value
        if "HEX" in self.chosen():
            data = bytes.fromhex(value.zfill(len(value) + len(value) % 2))
            value = data if self.is_bytes() else data.decode()
        return self.same(value)

    def streamed(self, value):
        """What a client printed, comparable."""
        if value is None:
            return None
        if isinstance(value, dict):
            (form, value), = value.items()
            if form == "json":
                return value
            if form == "hex":
                value = bytes.fromhex(value)
                if not self.is_bytes():
                    value = value.decode("cp1252" if "latin1" in self.kind else "utf-8")
            elif self.is_bytes():
                value = value.encode()  # the python library says nothing in bytes as nothing in text
        return self.same(value)

    def is_bytes(self):
        return self.base.endswith("binary") or self.base.endswith("blob") or self.base == "bit"

    def options(self):
        return [option.strip("'") for option in self.kind.split("(", 1)[1].rsplit(")", 1)[0].split(",")]

    def same(self, value):
        if self.base.endswith("int"):
            bits = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}[self.base]
            return int(value) % 2**bits if "unsigned" in self.kind else int(value)
        if self.base in ("float", "double"):
            return float(value)
        if self.base == "decimal":
            return decimal.Decimal(value)
        if self.base == "bit":
            return int.from_bytes(value, "big") if isinstance(value, bytes) else int(value) % 2**64
        if self.base == "year":
            return int(value) % 1900
        if self.base == "enum":
            return self.options()[int(value) - 1] if value.isdigit() else value
        if self.base == "set":
            return self.members(value)
        if self.base == "json":
            return json.loads(value)
        if self.base == "binary":
            return value.ljust(int(self.options()[0]), b"\0")
        if self.base in ("date", "datetime", "timestamp", "time"):
            return self.moment(value)
        return value

    def members(self, value):
        if isinstance(value, str) and value.isdigit():
            return {option for n, option in enumerate(self.options()) if int(value) >> n & 1}
        return set(filter(None, value.split(","))) if isinstance(value, str) else set(value)

    def moment(self, value):
        """Microseconds as a number (the java client), or text with any number of digits behind the point."""
        if value.lstrip("-").isdigit():
            if self.base == "time":
                return int(value)
            value = str(EPOCH + datetime.timedelta(microseconds=int(value)))
        if self.base == "time":
            hours, minutes, seconds = value.lstrip("-").split(":")
            micros = (int(hours) * 60 + int(minutes)) * 60_000_000 + int(decimal.Decimal(seconds) * 1_000_000)
            return -micros if value.startswith("-") else micros
        day, _, clock = value.partition(" ")
        return f"{day} {(clock or '00:00:00').ljust(8) + ('' if '.' in clock else '.')}".ljust(26, "0")


class Journal:
    """Runs statements on the source and notes what rows each of them changed."""

    def __init__(self, source, seed, with_json):
        self.source, self.r = source, random.Random(seed)
        kinds = {name: definition for name, (definition, _, _) in workload.TYPES.items()}
        self.kinds = list(kinds)
        self.columns = [Column("serial", "BIGINT"), Column("id", "INT"), *(Column(*pair) for pair in kinds.items())]
        if with_json:
            self.columns.append(Column("js", "JSON"))
        self.chosen = ", ".join(column.chosen() for column in self.columns)
        self.with_json, self.serial, self.groups, self.pending = with_json, 0, [], None
        self.connect()

    def connect(self):
        self.db = connect(self.source, autocommit=True, charset="utf8mb4", conv={}, init_command="SET time_zone = '+00:00'")
        self.cursor = self.db.cursor()

    def create(self):
        definition = ", ".join(f"{column.name} {column.kind}" for column in self.columns[1:])
        for table, key in (("keyed", "PRIMARY KEY (id)"), ("keyless", "KEY (serial)")):
            self.cursor.execute(f"CREATE TABLE cdc.{table} (serial BIGINT NOT NULL, {definition}, {key})")

    def rows(self, table, serials):
        self.cursor.execute(f"SELECT {self.chosen} FROM cdc.{table} WHERE serial BETWEEN {serials[0]} AND {serials[1]}")
        return {row[0]: [column.stored(value) for column, value in zip(self.columns, row)] for row in self.cursor.fetchall()}

    def change(self, table, serials, statement):
        """Runs a statement that changes no rows but those between two serial numbers."""
        before = self.rows(table, serials)
        self.cursor.execute(statement)
        after = self.rows(table, serials)
        group = [(table, before.get(key), after.get(key)) for key in before | after if before.get(key) != after.get(key)]
        if group:
            (self.groups if self.pending is None else self.pending).append(group)

    def values(self):
        self.serial += 1
        row = [str(self.serial), str(self.serial), *(workload.value(self.r, kind) for kind in self.kinds)]
        return "(" + ", ".join(row + ([self.r.choice(JSONS)] if self.with_json else [])) + ")"

    def one(self):
        table = self.r.choice(["keyed", "keyless"])
        low, new = self.r.randint(1, self.serial + 1), self.serial + 1
        kind = self.r.choice(self.kinds)
        self.change(table, *self.r.choice([
            lambda: ((new, new), f"INSERT INTO cdc.{table} VALUES {self.values()}"),
            lambda: ((new, new + 2), f"INSERT INTO cdc.{table} VALUES {self.values()}, {self.values()}, {self.values()}"),
            lambda: ((low, low + 9), f"UPDATE cdc.{table} SET {kind} = {workload.value(self.r, kind)}"
                                     f" WHERE serial BETWEEN {low} AND {low + 9}"),
            lambda: ((low, low + 1), f"DELETE FROM cdc.{table} WHERE serial BETWEEN {low} AND {low + 1}"),
            lambda: ((low, low), f"UPDATE cdc.{table} SET id = id + 1000000 WHERE serial = {low}"),
        ])())

    def edges(self):
        """A row for each edge value of each type."""
        for kind, (_, values, _) in workload.TYPES.items():
            for value in values:
                self.serial += 1
                row = f"({self.serial}, {self.serial}, {value})"
                self.change("keyed", (self.serial, self.serial), f"INSERT INTO cdc.keyed (serial, id, {kind}) VALUES {row}")

    def transaction(self, end="COMMIT"):
        self.pending = []
        self.cursor.execute("BEGIN")
        self.one()
        kept = len(self.pending)
        self.cursor.execute("SAVEPOINT s")
        self.one()
        self.cursor.execute("ROLLBACK TO SAVEPOINT s")
        del self.pending[kept:]
        self.one()
        self.cursor.execute(end)
        self.groups += self.pending if end == "COMMIT" else []
        self.pending = None

    def work(self, count):
        for n in range(count):
            self.one()
            if n % 7 == 0:
                self.transaction("ROLLBACK" if n % 3 == 1 else "COMMIT")


def start_clients(names, source, directory, by_gtid):
    install = subprocess.run([ROOT / "tests" / "clients" / "install"], check=True, capture_output=True, text=True)
    built = pathlib.Path(install.stdout.strip())
    commands = {"python": ["/usr/bin/python3", str(ROOT / "tests" / "clients" / "python" / "client.py")],
                "go": [str(built / "go" / "client")], "node": ["node", str(built / "node" / "client.mjs")],
                "java": ["java", "-Xmx256m", "-cp", f"{built}/java:{built}/java/*", "Client"]}
    env = dict(os.environ, PYTHONPATH=str(built / "python"), TZ="UTC", PYTHONDONTWRITEBYTECODE="1",
               FLAVOR="mariadb" if isinstance(source, MariaPeer) else "mysql")
    started = {}
    for n, name in enumerate(names):
        out, log = open(f"{directory}/{name}.json", "wb"), open(f"{directory}/{name}.log", "wb")
        arguments = [str(source.port), USER, PASSWORD, str(1000 + n), first_log(source), "4"]
        arguments += ["gtid"] if by_gtid else []
        started[name] = subprocess.Popen([*commands[name], *arguments], stdout=out, stderr=log, env=env)
    return started


def faulty(client, column, value):
    """Whether the library itself is wrong about this value, whoever the server is."""
    if client == "python":
        return column.base == "time" and value < 0 and value % 1_000_000 != 0 or value == set()
    if client == "java":
        return column.base == "time" and value < 0 or column.base.startswith("date") and value < "1583"
    return False


def equal(client, journal, stored, received):
    """Whether two images of a row agree, as far as the client's library is right."""
    if stored is None or received is None:
        return stored is received
    return all(a == b or a is not None and faulty(client, column, a)
               for column, a, b in zip(journal.columns, stored, received, strict=True))


def streamed(journal, row):
    return row and [column.streamed(value) for column, value in zip(journal.columns, row, strict=True)]


def compare(name, journal, directory):
    """Every expected row is in the client's output, in the order of the statements, and nothing else is."""
    lines = [json.loads(line) for line in open(f"{directory}/{name}.json")]
    lines = [line for line in lines if line["table"] in ("keyed", "keyless")]
    at = 0
    for number, group in enumerate(journal.groups):
        got = lines[at:at + len(group)]
        at += len(group)
        found = [(line["table"], streamed(journal, line["before"]), streamed(journal, line["after"])) for line in got]
        for change in group:
            table, *images = change
            same = any(table == other and all(equal(name, journal, *pair) for pair in zip(images, others))
                       for other, *others in found)
            expect(same, f"{name}: statement {number}: {explain(journal, change, found)}")
    expect(len(lines) == at, f"{name}: {len(lines)} rows instead of {at}")
    return at


def explain(journal, change, found):
    table, before, after = change
    serial = (before or after)[0]
    for other_table, *images in found:
        if (other_table, (images[0] or images[1] or [None])[0]) == (table, serial):
            pairs = [(f"{column.name} {column.kind}", a[n], b[n]) for a, b in zip((before, after), images) if a and b
                     for n, column in enumerate(journal.columns) if a[n] != b[n]]
            return f"{table} row {serial}: (column, stored, received): {str(pairs)[:1500]}"
    return f"{table} row {serial} is missing; received {str(found)[:500]}"


def every_row_arrives(directory, kind, metadata, names, by_gtid):
    source = kind(f"{directory}/source", 1, f"--binlog-row-metadata={metadata}")
    source.start()
    clients = {}
    try:
        create_user(source)
        query(source, "CREATE DATABASE cdc CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        journal = Journal(source, metadata, with_json=kind is OmnibusPeer)
        journal.create()
        clients = start_clients(names, source, directory, by_gtid)
        journal.edges()
        journal.cursor.execute("FLUSH BINARY LOGS")
        journal.work(30)
        for kill in (False, True):
            source.kill() if kill else source.stop()
            source.start()
            journal.connect()
            journal.work(30)
            journal.cursor.execute("FLUSH BINARY LOGS")
        journal.work(10)
        journal.cursor.execute("CREATE TABLE cdc.marker (id INT PRIMARY KEY)")
        journal.cursor.execute("INSERT INTO cdc.marker VALUES (1)")

        def log(name):
            return pathlib.Path(f"{directory}/{name}.log").read_text(errors="replace")[-1500:]

        for name, client in clients.items():
            wait_for(lambda: client.poll() is not None, lambda: f"{name} did not see the end: {log(name)}", PATIENCE_S)
            expect(client.returncode == 0, f"{name} ended with {client.returncode}: {log(name)}")
        for name in clients:
            count = compare(name, journal, directory)
            print(f"cdc_clients: {name} received all {count} rows, metadata {metadata}, by {'GTID' if by_gtid else 'position'}", flush=True)
    finally:
        for client in clients.values():
            client.kill()
        source.stop()


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", choices=["omnibus", "mariadb"], default="omnibus")
    parser.add_argument("--clients", default=",".join(CLIENTS))
    parser.add_argument("--keep", help="a directory for what the clients printed")
    args = parser.parse_args()
    kind = MariaPeer if args.source == "mariadb" else OmnibusPeer
    names, passed = args.clients.split(","), 0
    for metadata in ("FULL", "MINIMAL"):
        with Scratch("omnibus-cdc-") as temporary:
            directory = temporary
            if args.keep:
                directory = f"{args.keep}/{metadata}"
                pathlib.Path(directory).mkdir(parents=True)
            # Without names in the log, the python library has neither them nor what ENUM and SET mean.
            chosen = [name for name in names if name != "python" or metadata == "FULL"]
            by_gtid = metadata == "MINIMAL" and kind is OmnibusPeer
            every_row_arrives(directory, kind, metadata, chosen, by_gtid)
            passed += len(chosen)
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
