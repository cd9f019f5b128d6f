#!/usr/bin/python3
"""Checks of queries that need no other server, in the manner of SQLancer: what must be equal however a query is put.

    metamorphic.py [QUERIES] [SEED]     3,000 queries unless said; the seed is printed

- Partitioning: rows with a condition, with its negation and where it is NULL are together all rows; so are their counts, sums,
  extremes, distinct values and groups.
- Pushing down: as many rows meet a condition in WHERE, where an index may answer it, as rows of the whole table for which
  the same expression in the select list is true.
- Plans: the same rows with indexes ignored, joined in the order written, over a derived table and over a common table
  expression, locked at READ COMMITTED and at REPEATABLE READ.

Every other database is looked at by a transaction that has changed some of its rows.
"""

import pathlib
import random
import sys
import time
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pymysql
from omnibus import Omnibus, Scratch, connect, expect

QUERIES = 3000
TABLES = ("t0", "t1", "t2")
COLUMNS = {"a": "INT", "b": "BIGINT", "c": "VARCHAR(10)", "d": "DECIMAL(8,2)", "e": "DATE", "f": "DOUBLE"}
KEYS = (["KEY (a)", "UNIQUE KEY (b)", "KEY (c, a)", "KEY (e)"], ["PRIMARY KEY (id)", "KEY (a, b)", "KEY (c(2))", "KEY (d DESC)"],
        ["PRIMARY KEY (a, id)", "KEY (b)", "KEY (f, c)", "UNIQUE KEY (id, c)"])


class Maker:
    """Random tables and expressions."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def value(self, column):
        pick = self.random.choice
        if self.random.random() < 0.15:
            return "NULL"
        return {"a": lambda: str(pick([-3, -1, 0, 1, 2, 3, 7, 100])), "b": lambda: str(self.random.randrange(-20, 60)),
                "c": lambda: pick(["''", "'a'", "'A'", "'ab'", "'b'", "'1'", "'10x'", "'é'", "' a'", "'zz'"]),
                "d": lambda: pick(["0", "0.5", "1", "1.50", "-2.25", "99.99", "7"]),
                "e": lambda: pick(["'2024-01-01'", "'2024-02-29'", "'1999-12-31'", "'2024-01-02'"]),
                "f": lambda: pick(["0", "1e0", "-0.5", "1.5", "3", "1e10"])}[column]()

    def tables(self):
        for name, keys in zip(TABLES, KEYS):
            columns = ", ".join(f"{column} {kind}{' NOT NULL DEFAULT 5' if name == 't2' and column == 'a' else ''}"
                                for column, kind in COLUMNS.items())
            yield f"CREATE TABLE {name} (id INT NOT NULL, {columns}, {', '.join(keys)})"
            for at in range(self.random.randrange(15, 40)):
                values = [self.value(column) for column in COLUMNS]
                if name == "t2" and values[0] == "NULL":
                    values[0] = "5"
                yield f"INSERT IGNORE INTO {name} VALUES ({at}, {', '.join(values)})"

    def column(self, aliases, kind=None):
        return f"{self.random.choice(aliases)}.{kind or self.random.choice(list(COLUMNS))}"

    def number(self, aliases, depth):
        choice = self.random.randrange(9 if depth > 0 else 3)
        if choice < 2:
            return self.column(aliases, self.random.choice("abdf"))
        if choice == 2:
            return self.value(self.random.choice("abdf"))
        one, other = self.number(aliases, depth - 1), self.number(aliases, depth - 1)
        return [f"({one} + {other})", f"({one} - {other})", f"(-{one})", f"ABS({one})", f"IFNULL({one}, {other})",
                f"CASE WHEN {self.condition(aliases, depth - 1)} THEN {one} ELSE {other} END"][choice - 3]

    def condition(self, aliases, depth=3):
        pick, nested = self.random.choice, depth > 0
        choice = self.random.randrange(16 if nested else 9)
        if choice == 9 or choice == 10:
            return f"({self.condition(aliases, depth - 1)} AND {self.condition(aliases, depth - 1)})"
        if choice == 11 or choice == 12:
            return f"({self.condition(aliases, depth - 1)} OR {self.condition(aliases, depth - 1)})"
        if choice == 13:
            return f"(NOT {self.condition(aliases, depth - 1)})"
        if choice == 14:
            return f"({self.condition(aliases, depth - 1)}) IS {pick(['', 'NOT '])}{pick(['TRUE', 'FALSE', 'NULL'])}"
        if choice == 15:
            return self.subquery(aliases, depth - 1)
        kind = pick(list(COLUMNS))
        column, value, other = self.column(aliases, kind), self.value(kind), self.value(kind)
        return [f"{column} {pick(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {value}",
                f"{column} {pick(['=', '<', '>=', '<=>'])} {self.column(aliases, kind)}",
                f"{column} {pick(['', 'NOT '])}BETWEEN {value} AND {other}",
                f"{column} {pick(['', 'NOT '])}IN ({value}, {other}, {self.value(kind)})",
                f"{column} IS {pick(['', 'NOT '])}NULL",
                f"{self.column(aliases, 'c')} {pick(['', 'NOT '])}LIKE {pick(['%s', '%s', '%s']) % pick(['NULL', chr(39) + 'a%' + chr(39), chr(39) + '_' + chr(39), chr(39) + '%b' + chr(39)])}",
                f"{self.number(aliases, depth)} {pick(['=', '<', '>', '<=', '<>'])} {self.number(aliases, depth)}",
                f"({column}, {self.column(aliases, 'a')}) = ({value}, {self.value('a')})",
                f"{column} = {value} OR {column} = {other}"][choice]

    def subquery(self, aliases, depth):
        kind = self.random.choice("abc")
        inner = f"SELECT s.{kind} FROM {self.random.choice(TABLES)} s WHERE {self.condition(['s', *aliases], min(depth, 1))}"
        return self.random.choice([f"{self.column(aliases, kind)} IN ({inner})", f"{self.column(aliases, kind)} NOT IN ({inner})",
                                   f"EXISTS ({inner})", f"{self.column(aliases, kind)} >= ALL ({inner})",
                                   f"{self.column(aliases, kind)} = ANY ({inner})"])

    def source(self):
        """FROM, and the aliases in it."""
        pick = self.random.choice
        names = [pick(TABLES) for _ in range(self.random.choice([1, 1, 2, 2, 3]))]
        text, aliases = f"{names[0]} x0", ["x0"]
        for at, name in enumerate(names[1:], 1):
            aliases.append(f"x{at}")
            join = pick(["JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN"])
            text += f" {join} {name} x{at}"
            if join != "CROSS JOIN":
                kind = pick("abce")
                text += f" ON x{at}.{kind} = x{self.random.randrange(at)}.{kind}"
                if self.random.random() < 0.4:
                    text += f" AND {self.condition(aliases, 1)}"
        return text, aliases


class Checker:
    def __init__(self, cursor, maker):
        self.cursor, self.maker, self.asked, self.refused = cursor, maker, 0, 0

    def rows(self, sql):
        self.asked += 1
        self.cursor.execute(sql)
        return self.cursor.fetchall()

    def bag(self, sql):
        return Counter(self.rows(sql))

    def same(self, what, one, other, *texts):
        expect(one == other, f"{what}\n  " + "\n  ".join(texts) + f"\n  only in the first: {str(one - other)[:500]}\n  "
               f"only in the second: {str(other - one)[:500]}")

    def parts(self, source, condition):
        return [f"{source} WHERE {condition}", f"{source} WHERE NOT ({condition})", f"{source} WHERE ({condition}) IS NULL"]

    def partition(self):
        tables, aliases = self.maker.source()
        condition, columns = self.maker.condition(aliases), ", ".join(f"{alias}.*" for alias in aliases)
        parts = self.parts(f"SELECT {columns} FROM {tables}", condition)
        together = sum((self.bag(part) for part in parts), Counter())
        self.same("partitions", self.bag(f"SELECT {columns} FROM {tables}"), together, *parts)
        union = self.bag(" UNION ALL ".join(parts))
        self.same("UNION ALL of partitions", together, union, *parts)

    def partition_aggregate(self):
        tables, aliases = self.maker.source()
        condition, value = self.maker.condition(aliases), self.maker.column(aliases, self.maker.random.choice("abd"))
        kind = self.maker.random.choice(["COUNT", "SUM", "MIN", "MAX"])
        whole = f"SELECT {kind}({value}) FROM {tables}"
        parts = self.parts(f"SELECT {kind}({value}) AS v FROM {tables}", condition)
        over = "SUM" if kind == "COUNT" else kind
        split = f"SELECT {over}(v) FROM ({' UNION ALL '.join(parts)}) p"
        self.same("aggregate", self.bag(whole), self.bag(split), whole, split)

    def partition_distinct(self):
        tables, aliases = self.maker.source()
        condition, value = self.maker.condition(aliases), self.maker.column(aliases, self.maker.random.choice("abde"))
        whole = f"SELECT DISTINCT {value} FROM {tables}"
        parts = self.parts(f"SELECT {value} FROM {tables}", condition)
        self.same("DISTINCT", self.bag(whole), self.bag(" UNION ".join(parts)), whole, *parts)
        grouped = f"SELECT {value} FROM {tables} GROUP BY {value}"
        self.same("GROUP BY", self.bag(whole), self.bag(grouped), whole, grouped)

    def push_down(self):
        tables, aliases = self.maker.source()
        condition = self.maker.condition(aliases)
        fast = f"SELECT COUNT(*) FROM {tables} WHERE {condition}"
        slow = f"SELECT COUNT(*) FROM (SELECT ({condition}) IS TRUE AS met FROM {tables}) q WHERE met"
        self.same("pushed down", self.bag(fast), self.bag(slow), fast, slow)
        having = f"SELECT COUNT(*) FROM (SELECT ({condition}) IS TRUE AS met FROM {tables} HAVING met) q"
        self.same("HAVING", self.bag(fast), self.bag(having), fast, having)

    def plans(self):
        tables, aliases = self.maker.source()
        condition, columns = self.maker.condition(aliases), ", ".join(f"{alias}.id, {alias}.c" for alias in aliases)
        query = f"SELECT {columns} FROM {tables} WHERE {condition}"
        answer = self.bag(query)
        straight = query.replace("SELECT", "SELECT STRAIGHT_JOIN", 1)
        plain = query
        for name in TABLES:
            hidden = {"t0": "a, b, c, e", "t1": "`PRIMARY`, a, c, d", "t2": "`PRIMARY`, b, f, id"}[name]
            for alias in aliases:
                plain = plain.replace(f"{name} {alias}", f"{name} {alias} IGNORE INDEX ({hidden})")
        derived, common = query, query
        for name in TABLES:
            for alias in aliases:
                derived = derived.replace(f"{name} {alias} ", f"(SELECT * FROM {name}) {alias} ")
                common = common.replace(f"{name} {alias} ", f"common_{name} {alias} ")
        common = "WITH " + ", ".join(f"common_{name} AS (SELECT * FROM {name})" for name in TABLES) + " " + common
        ordered = f"{query} ORDER BY {aliases[0]}.c, {aliases[-1]}.a DESC"
        for other in (straight, plain, derived, common, ordered, f"{query} FOR UPDATE", f"{query} FOR SHARE"):
            self.same("another plan", answer, self.bag(other), query, other)

    def change(self):
        """A transaction with changes of its own, at one of the levels that lock differently."""
        pick = self.maker.random.choice
        self.cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {pick(['READ COMMITTED', 'REPEATABLE READ'])}")
        if pick([True, False]):
            return
        self.cursor.execute("BEGIN")
        for _ in range(6):
            table, kind = pick(TABLES), pick("bcdef")
            condition = f"{pick('abcdef')} {pick(['=', '<', '>='])} {self.maker.value(kind)} OR id = {self.maker.random.randrange(40)}"
            self.cursor.execute(pick([f"UPDATE IGNORE {table} SET {kind} = {self.maker.value(kind)} WHERE {condition}",
                                      f"DELETE FROM {table} WHERE id = {self.maker.random.randrange(40)} OR {kind} = {self.maker.value(kind)}",
                                      f"INSERT IGNORE INTO {table} SELECT id + 1000, a + 1, b + 1, c, d, e, f FROM {table} LIMIT 3"]))

    def run(self, queries):
        self.change()
        checks = (self.partition, self.partition_aggregate, self.partition_distinct, self.push_down, self.plans)
        while self.asked < queries:
            try:
                self.maker.random.choice(checks)()
            except pymysql.err.MySQLError as error:
                # Arithmetic may overflow, a subquery have too many rows: of what the generator makes, by chance.
                expect(error.args[0] in (1690, 1242, 1267), f"{self.cursor._executed}\n  {error}")
                self.refused += 1


def main():
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else QUERIES
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}", flush=True)
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking", "--sync-binlog=0")
        server.start()
        begun, asked, refused, round_number = time.monotonic(), 0, 0, 0
        while asked < queries:
            maker = Maker(seed * 1000 + round_number)
            cursor = connect(server, autocommit=True, conv={}).cursor()
            engine = "LSM" if round_number % 2 == 0 else "BTREE"
            for sql in ("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "USE d", f"SET default_storage_engine = {engine}", *maker.tables()):
                cursor.execute(sql)
            checker = Checker(cursor, maker)
            checker.run(min(queries - asked, 1000))
            asked, refused, round_number = asked + checker.asked, refused + checker.refused, round_number + 1
            cursor.connection.close()
        print(f"{asked} queries, {refused} refused, {time.monotonic() - begun:.1f} s")
        server.stop()


if __name__ == "__main__":
    main()
