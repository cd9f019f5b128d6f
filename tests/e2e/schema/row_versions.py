#!/usr/bin/python3
"""ALTER TABLE that leaves rows as they are: whatever the order of changes of columns, rows and indexes, the table is the same as its
twin, whose rows every ALTER copies. Across kills, in both engines, with a MariaDB replica that reads the rows' events.

Ring: all.
"""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import Session, error_code, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, replicate, restart, run_chosen, wait_caught_up  # noqa: E402

# Types with a value that a row may get and a default.
TYPES = [
    ("INT", "-5", "7"), ("BIGINT UNSIGNED", "18446744073709551615", "1"), ("VARCHAR(20)", "'text'", "'a default'"),
    ("VARCHAR(300) CHARACTER SET latin1", "'\u00e4'", "''"), ("CHAR(7)", "'c '", "'x'"), ("TEXT", "REPEAT('long', 200)", None),
    ("BLOB", "x'00ff'", None), ("DECIMAL(12,4)", "12.5", "-1.25"), ("DOUBLE", "1e100", "0.5"), ("DATETIME(3)", "'2024-02-29 12:00:00.125'", "'2000-01-01'"),
    ("TIMESTAMP NULL", "'2024-03-31 01:30:00'", "'2001-01-01'"), ("ENUM('a','b','c')", "'c'", "'b'"), ("SET('x','y')", "'x,y'", "'y'"),
    ("BIT(9)", "b'101'", "b'1'"), ("TIME(2)", "'-01:02:03.5'", "'00:00:01'"), ("YEAR", "2024", "1999"), ("JSON", "'[1]'", None), ("VARBINARY(9)", "x'00'", "'v'"),
]


class Twins:
    """A table and its twin, and what both have."""

    def __init__(self, server, types, rng, name, key, engine):
        self.types = types
        self.server, self.rng, self.name, self.number = server, rng, name, 0
        self.columns, self.indexes, self.copies = {}, {}, 0
        self.connect()
        for table in (name, f"{name}_twin"):
            self.db(f"CREATE TABLE test.{table} (id INT NOT NULL, {key} first INT) ENGINE={engine}")
        self.change()

    def connect(self):
        self.db = Session(self.server, database="test")

    def both(self, sql):
        codes = {error_code(lambda table=table: self.db(sql.format(table))) for table in (self.name, f"{self.name}_twin")}
        expect(len(codes) == 1, f"{sql}: {codes}")
        return codes.pop()

    def new_column(self):
        self.number += 1
        kind, value, default = self.rng.choice(self.types)
        column = f"c{self.number}"
        self.columns[column] = value
        clause = self.rng.choice(["", "NOT NULL"]) if "NULL" not in kind and kind != "JSON" else ""
        if default and self.rng.random() < 0.6:
            clause += f" DEFAULT {default}"
        elif kind.startswith("DATETIME"):
            clause = ""
        where = self.rng.choice(["", "", "FIRST", "AFTER id", "AFTER first"])
        return f"ADD COLUMN {column} {kind} {clause} {where}"

    def alter(self):
        """Nothing of this needs a copy."""
        rng = self.rng
        clauses = [self.new_column() for _ in range(rng.randrange(1, 3))]
        kept = [column for column in self.columns if f"c{self.number}" != column and f"c{self.number - 1}" != column]
        if kept and rng.random() < 0.5:
            gone = rng.choice(kept)
            clauses.append(f"DROP COLUMN {gone}")
            del self.columns[gone]
            self.indexes = {index: column for index, column in self.indexes.items() if column != gone}
            kept.remove(gone)
        if kept and rng.random() < 0.3:
            old, new = rng.choice(kept), f"r{self.number}"
            clauses.append(f"RENAME COLUMN {old} TO {new}")
            self.columns[new] = self.columns.pop(old)
            self.indexes = {index: new if column == old else column for index, column in self.indexes.items()}
        text = ", ".join(clauses)
        # Without ALGORITHM=INSTANT, which MariaDB does not have for all of it.
        self.db(f"ALTER TABLE {self.name} {text}")
        self.db(f"ALTER TABLE {self.name}_twin {text}, ALGORITHM=COPY")

    def index(self):
        plain = [c for c, value in self.columns.items() if not value.startswith(("REPEAT", "x'00ff'", "'[1]'"))]
        if self.indexes and self.rng.random() < 0.4:
            gone = self.rng.choice(list(self.indexes))
            del self.indexes[gone]
            self.both(f"ALTER TABLE {{}} DROP INDEX {gone}")
        elif plain:
            self.number += 1
            column = self.rng.choice(plain)
            self.indexes[f"i{self.number}"] = column
            self.both(f"CREATE INDEX i{self.number} ON {{}} ({column}, first)")

    def change(self):
        rng = self.rng
        for _ in range(rng.randrange(3, 9)):
            id = rng.randrange(40)
            some = rng.sample(list(self.columns), min(len(self.columns), rng.randrange(4)))
            values = {column: self.columns[column] for column in some}
            where = rng.choice([f"id = {id}", f"id BETWEEN {id} AND {id + 4}", f"first > {id * 2}"])
            self.both(rng.choice([
                f"REPLACE INTO {{}} ({', '.join(['id', 'first', *values])}) VALUES ({', '.join([str(id), str(id * 3), *values.values()])})",
                f"INSERT IGNORE INTO {{}} ({', '.join(['id', 'first', *values])}) VALUES ({', '.join([str(id), 'NULL', *values.values()])})",
                f"UPDATE {{}} SET first = first + 1{''.join(f', {c} = {v}' for c, v in values.items())} WHERE {where}",
                f"UPDATE {{}} SET id = id + 100, first = id WHERE id = {id}",
                f"DELETE FROM {{}} WHERE id = {id}",
            ]))

    def compare(self):
        queries = ["SELECT * FROM {}", "SELECT first, COUNT(*) FROM {} GROUP BY first ORDER BY first"]
        queries += [f"SELECT {c}, first, id FROM {{}} FORCE INDEX ({i}) WHERE {c} = {self.columns[c]} OR {c} IS NULL ORDER BY id, first" for i, c in self.indexes.items()]
        queries += [f"SELECT HEX({c}), id FROM {{}} WHERE first > 5 ORDER BY id, first" for c in list(self.columns)[:3]]
        for sql in queries:
            mine, twins = (sorted(self.db(sql.format(table)), key=repr) for table in (self.name, f"{self.name}_twin"))
            expect(mine == twins, f"{sql}:\n{mine}\n{twins}")
        checked = self.db(f"CHECK TABLE {self.name}, {self.name}_twin")
        expect([row[3] for row in checked] == ["OK", "OK"], checked)


def twins(directory, replica, types, seed=None, rounds=10):
    """With kills, and a replica."""
    rng = random.Random(seeds.of_this_run())
    source = OmnibusPeer(f"{directory}/one", 1, f"--binlog-row-image={rng.choice(['FULL', 'MINIMAL', 'NOBLOB'])}")
    for server in (source, replica):
        server.start()
    create_user(source)
    Session(source)("CREATE DATABASE test")
    keys = {"a": ("PRIMARY KEY (id),", "LSM"), "b": ("PRIMARY KEY (id),", "BTREE"), "c": ("UNIQUE KEY (id),", "LSM"), "d": ("KEY (id),", "BTREE")}
    tables = [Twins(source, types, rng, name, *key) for name, key in keys.items()]
    replicate(replica, source)
    for _ in range(rounds):
        for table in tables:
            for step in rng.choices([table.alter, table.change, table.index], [3, 4, 1], k=4):
                step()
        if rng.random() < 0.5:
            restart(source, kill=rng.random() < 0.7)
            for table in tables:
                table.connect()
        for table in tables:
            table.compare()
    wait_caught_up(replica, source)
    expect_equal(source, replica, least_rows=10)


def followed_by_mariadb(directory):
    """Its columns are MariaDB's: all but JSON."""
    twins(directory, MariaPeer(f"{directory}/two", 2), [kind for kind in TYPES if kind[0] != "JSON"])


def followed(directory):
    """By a server of this kind, which has versions, too."""
    twins(directory, OmnibusPeer(f"{directory}/two", 2), TYPES)


def old_snapshots(directory):
    """A snapshot from before the statement reads rows of its time under the new definition, and of both forms."""
    server = OmnibusPeer(f"{directory}/one", 1)
    server.start()
    db, old = Session(server), Session(server)
    db("CREATE DATABASE test")
    db("CREATE TABLE test.t (id INT PRIMARY KEY, gone INT, v VARCHAR(9))")
    db("INSERT INTO test.t VALUES (1, 1, 'one'), (2, 2, 'two')")
    old("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    db("ALTER TABLE test.t DROP COLUMN gone, ADD COLUMN n INT DEFAULT 5, ALGORITHM=INSTANT")
    db("UPDATE test.t SET n = 6 WHERE id = 1")
    db("INSERT INTO test.t VALUES (3, 'three', 7)")
    expect(old("SELECT * FROM test.t") == ((1, "one", 5), (2, "two", 5)), "an old snapshot")
    expect(db("SELECT * FROM test.t") == ((1, "one", 6), (2, "two", 5), (3, "three", 7)), "the newest rows")


def limits(directory):
    """How often it goes, and what does not go at all."""
    server = OmnibusPeer(f"{directory}/one", 1)
    server.start()
    db = Session(server)
    db("CREATE DATABASE test")
    db("USE test")
    db("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    db("INSERT INTO t VALUES (1, 2)")
    for n in range(64):
        db(f"ALTER TABLE t ADD c{n} INT DEFAULT {n}, ALGORITHM=INSTANT")
    db.fails("ALTER TABLE t ADD more INT, ALGORITHM=INSTANT", 4092)
    db("ALTER TABLE t ADD more INT DEFAULT 64")
    db("ALTER TABLE t DROP v, ALGORITHM=INSTANT")
    expect(db("SELECT * FROM t") == ((1, *range(65)),), "all values are there")
    for clauses, code in {
        "ADD KEY (c1), ALGORITHM=INSTANT": 1845, "MODIFY c1 BIGINT, ALGORITHM=INSTANT": 1845, "MODIFY c1 BIGINT, ALGORITHM=INPLACE": 1845,
        "ADD s INT AS (id + 1), ALGORITHM=INSTANT": 1845, "ADD CHECK (c1 > 0), ALGORITHM=INSTANT": 1845, "ADD u CHAR(36) DEFAULT (UUID()), ALGORITHM=INSTANT": 1845,
        "ADD CHECK (c1 > 0), LOCK=NONE": 1846, "ADD CHECK (c1 > 0), ALGORITHM=INPLACE, LOCK=SHARED": 1846, "MODIFY c1 BIGINT, LOCK=NONE": 1846,
        "ADD x INT, ALGORITHM=INSTANT, LOCK=NONE": 1221, "ADD x INT, ALGORITHM=FAST": 1800, "ADD x INT, LOCK=SOME": 1801,
        "DROP id, ALGORITHM=INSTANT": 1845,
    }.items():
        db.fails(f"ALTER TABLE t {clauses}", code)
    db.fails("CREATE INDEX c1 ON t (c1) ALGORITHM=INSTANT", 1845)
    for clauses in ("ADD x INT, LOCK=NONE", "RENAME COLUMN x TO y, ALGORITHM=INSTANT", "ALTER y SET DEFAULT 3, ALGORITHM=INSTANT", "MODIFY y INT FIRST, ALGORITHM=INSTANT",
                    "ADD KEY k (c1), ALGORITHM=INPLACE, LOCK=EXCLUSIVE", "RENAME KEY k TO l, ALGORITHM=INSTANT", "DROP KEY l, ALGORITHM=INSTANT", "MODIFY c1 BIGINT, ALGORITHM=COPY",
                    "ADD e ENUM('a') DEFAULT 'a', ALGORITHM=INSTANT", "MODIFY e ENUM('a','b') DEFAULT 'a', ALGORITHM=INSTANT", "COMMENT 'c', ALGORITHM=INSTANT"):
        db(f"ALTER TABLE t {clauses}")
    db("INSERT INTO t (id, e) VALUES (2, 'b')")
    expect(db("SELECT id, e, y, c1 FROM t") == ((1, "a", None, 1), (2, "b", None, None)), db("SELECT id, e, y, c1 FROM t"))
    db("CREATE TEMPORARY TABLE own (id INT)")
    db.fails("ALTER TABLE own ADD x INT, ALGORITHM=INSTANT", 1845)
    db("ALTER TABLE own ADD x INT, LOCK=NONE")


if __name__ == "__main__":
    run_chosen("row_versions", [followed_by_mariadb, followed, old_snapshots, limits])
