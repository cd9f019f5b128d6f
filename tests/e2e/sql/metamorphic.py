#!/usr/bin/python3
"""Checks of queries that need no other server, in the manner of SQLancer: what must be equal however a query is put.

    metamorphic.py [QUERIES] [--seed N]     3,000 queries unless said

- Partitioning: rows with a condition, with its negation and where it is NULL are together all rows; so are their counts, sums,
  extremes, distinct values and groups.
- Pushing down: as many rows meet a condition in WHERE, where an index may answer it, as rows of the whole table for which
  the same expression in the select list is true.
- Plans: the same rows with indexes ignored, joined in the order written, over derived and common tables, locked at READ COMMITTED
  and at REPEATABLE READ; prepared, with values in place of literals; what ORDER BY .. LIMIT takes, and groups.
- Rewriting: IN as EXISTS; an outer join as an inner one and what it leaves out; as many rows changed as selected.

Every other database is looked at by a transaction that has changed some of its rows.

Ring: gate.
"""

import argparse
import pathlib
import random
import re
import sys
import time
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql
import seeds  # noqa: E402
from omnibus import Omnibus, Scratch, connect, expect
from queries import COLUMNS, TABLES, Maker

QUERIES = 3000
# Sums of these do not depend on the order of rows.
EXACT = "abudqyz"
LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|(?<![\w.])\d+(?:\.\d+)?(?:e\d+)?(?![\w.])")


def plain(row):
    """A zero has no sign."""
    return tuple(b"0" if value == b"-0" or value == "-0" else value for value in row)


class Checker:
    def __init__(self, cursor, maker):
        self.cursor, self.maker, self.asked, self.refused, self.changing = cursor, maker, 0, 0, False
        self.pick = maker.random.choice

    def rows(self, sql):
        self.asked += 1
        self.cursor.execute(sql)
        return [plain(row) for row in self.cursor.fetchall()]

    def bag(self, sql):
        return Counter(self.rows(sql))

    def same(self, what, one, other, *texts):
        if one != other:
            one, other = Counter(one), Counter(other)
            expect(False, f"{what}\n  " + "\n  ".join(texts) + f"\n  only in the first: {str(one - other)[:500]}\n  "
                   f"only in the second: {str(other - one)[:500]}")

    def parts(self, source, condition):
        return [f"{source} WHERE {condition}", f"{source} WHERE NOT ({condition})", f"{source} WHERE ({condition}) IS NULL"]

    def source(self, most=3):
        factors, aliases = self.maker.source(most)
        return self.maker.render(factors), aliases

    def exact(self, aliases):
        return self.maker.column(aliases, self.pick([name for name in self.maker.columns if name in EXACT]))

    def partition(self):
        tables, aliases = self.source()
        condition, columns = self.maker.condition(aliases), ", ".join(f"{alias}.*" for alias in aliases)
        parts = self.parts(f"SELECT {columns} FROM {tables}", condition)
        together = sum((self.bag(part) for part in parts), Counter())
        self.same("partitions", self.bag(f"SELECT {columns} FROM {tables}"), together, *parts)
        union = self.bag(" UNION ALL ".join(parts))
        self.same("UNION ALL of partitions", together, union, *parts)

    def partition_aggregate(self):
        tables, aliases = self.source()
        condition, value = self.maker.condition(aliases), self.exact(aliases)
        kind = self.pick(["COUNT", "SUM", "MIN", "MAX"])
        whole = f"SELECT {kind}({value}) FROM {tables}"
        parts = self.parts(f"SELECT {kind}({value}) AS v FROM {tables}", condition)
        over = "SUM" if kind == "COUNT" else kind
        split = f"SELECT {over}(v) FROM ({' UNION ALL '.join(parts)}) p"
        self.same("aggregate", self.bag(whole), self.bag(split), whole, split)

    def partition_distinct(self):
        tables, aliases = self.source()
        condition, value = self.maker.condition(aliases), self.exact(aliases)
        whole = f"SELECT DISTINCT {value} FROM {tables}"
        parts = self.parts(f"SELECT {value} FROM {tables}", condition)
        self.same("DISTINCT", self.bag(whole), self.bag(" UNION ".join(parts)), whole, *parts)
        grouped = f"SELECT {value} FROM {tables} GROUP BY {value}"
        self.same("GROUP BY", self.bag(whole), self.bag(grouped), whole, grouped)

    def push_down(self):
        factors, aliases = self.maker.source()
        tables = self.maker.render(factors)
        condition = self.maker.condition(aliases)
        fast = f"SELECT COUNT(*) FROM {self.maker.render(factors, 'force')} WHERE {condition}"
        slow = f"SELECT COUNT(*) FROM (SELECT ({condition}) IS TRUE AS met FROM {tables}) q WHERE met"
        self.same("pushed down", self.bag(fast), self.bag(slow), fast, slow)
        having = f"SELECT COUNT(*) FROM (SELECT ({condition}) IS TRUE AS met FROM {tables} HAVING met) q"
        self.same("HAVING", self.bag(fast), self.bag(having), fast, having)

    def plans(self):
        factors, aliases = self.maker.source()
        condition = self.maker.condition(aliases)
        covered = self.pick([[], [self.pick(self.maker.columns)], ["id", "c"]])
        columns = ", ".join(f"{alias}.{name}" for alias in aliases for name in covered) or "1"
        common = "WITH " + ", ".join(f"common_{name} AS (SELECT * FROM {name})" for name in TABLES) + " "
        text = {how: f"SELECT {columns} FROM {self.maker.render(factors, how)} WHERE {condition}" for how in ("plain", "ignore", "force", "derived", "common")}
        query = text["plain"]
        answer = self.bag(query)
        others = [text["ignore"], text["force"], f"{text['force']} FOR SHARE", text["derived"], common + text["common"], query.replace("SELECT", "SELECT STRAIGHT_JOIN", 1),
                  f"{query} ORDER BY {aliases[0]}.c, {aliases[-1]}.a DESC", f"{query} FOR UPDATE", f"{query} FOR SHARE"]
        for other in others:
            self.same("another plan", answer, self.bag(other), query, other)

    def ordered(self):
        """Which rows LIMIT takes; of texts that are equal any may come first."""
        factors, aliases = self.maker.source()
        condition = self.maker.condition(aliases, 2)
        names = [name for name in self.maker.columns if COLUMNS[name][1] != "text"]
        keys = [self.maker.column(aliases[:self.pick([1, 3])], self.pick(names)) for _ in range(self.pick([1, 1, 2, 3]))]
        order = ", ".join(f"{key}{self.pick(['', ' DESC'])}" for key in keys)
        limit, skip = self.pick([1, 2, 5, 1000]), self.pick([0, 0, 1, 3])
        query = f"SELECT {', '.join(keys)} FROM {{}} WHERE {condition} ORDER BY {order}"
        fast = query.format(self.maker.render(factors, self.pick(["plain", "force"]))) + f" LIMIT {limit} OFFSET {skip}"
        slow = query.format(self.maker.render(factors, "derived"))
        wanted, got = self.rows(slow)[skip:skip + limit], self.rows(fast)
        expect(wanted == got, f"ORDER BY\n  {fast}\n  {slow}\n  wanted {wanted}\n  got    {got}")

    def grouped(self):
        factors, aliases = self.maker.source(2)
        condition = self.maker.condition(aliases, 2)
        keys = [self.maker.column(aliases[:self.pick([1, 3])]) for _ in range(self.pick([1, 1, 2]))]
        kind = self.pick(["COUNT({})", "SUM({})", "MIN({})", "COUNT(DISTINCT {})"]).format(self.exact(aliases))
        query = f"SELECT COUNT(*), {kind}, SUM({aliases[-1]}.id) FROM {{}} WHERE {condition} GROUP BY {', '.join(keys)}"
        fast, slow = (query.format(self.maker.render(factors, how)) for how in (self.pick(["plain", "force"]), "derived"))
        self.same("groups", self.bag(fast), self.bag(slow), fast, slow)
        ordered = f"{fast} ORDER BY {keys[0]} DESC"
        self.same("groups in order", self.bag(ordered), self.bag(slow), ordered, slow)

    def as_exists(self):
        tables, aliases = self.source()
        name, table = self.pick(self.maker.columns), self.pick(TABLES)
        column, condition = self.maker.column(aliases, self.pick([name, None])), self.maker.condition(["s", *aliases], 1)
        start = f"SELECT COUNT(*) FROM {tables} WHERE"
        one = f"{start} {column} IN (SELECT s.{name} FROM {table} s WHERE {condition})"
        other = f"{start} EXISTS (SELECT 1 FROM {table} s WHERE {column} = s.{name} AND ({condition}))"
        self.same("IN as EXISTS", self.bag(one), self.bag(other), one, other)
        # NOT IN: no member equal, and no comparison NULL.
        one = f"{start} {column} NOT IN (SELECT s.{name} FROM {table} s WHERE {condition})"
        other = f"{start} NOT EXISTS (SELECT 1 FROM {table} s WHERE ({condition}) AND ({column} = s.{name}) IS NOT FALSE)"
        self.same("NOT IN as NOT EXISTS", self.bag(one), self.bag(other), one, other)

    def outer(self):
        """LEFT JOIN as JOIN and the rows without a partner; RIGHT JOIN as LEFT JOIN; NATURAL and USING as ON."""
        one, other, name = self.pick(TABLES), self.pick(TABLES), self.pick(self.maker.columns)
        on = f"x0.{name} = x1.{self.pick([name, self.pick(self.maker.columns)])} AND {self.maker.condition(['x0', 'x1'], 1)}"
        where = self.maker.condition(["x0"], 2)
        left = f"SELECT x0.*, x1.* FROM {one} x0 LEFT JOIN {other} x1 ON {on} WHERE {where}"
        nulls = ", ".join(["NULL"] * (len(self.maker.columns) + 1))
        split = (f"SELECT x0.*, x1.* FROM {one} x0 JOIN {other} x1 ON {on} WHERE {where} UNION ALL "
                 f"SELECT x0.*, {nulls} FROM {one} x0 WHERE ({where}) AND NOT EXISTS (SELECT 1 FROM {other} x1 WHERE {on})")
        answer = self.bag(left)
        self.same("LEFT JOIN", answer, self.bag(split), left, split)
        right = f"SELECT x0.*, x1.* FROM {other} x1 RIGHT JOIN {one} x0 ON {on} WHERE {where}"
        self.same("RIGHT JOIN", answer, self.bag(right), left, right)
        names = self.maker.random.sample(self.maker.columns, self.pick([1, 2, 3]))
        equal = " AND ".join(f"x0.{name} = x1.{name}" for name in names)
        for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN"):
            using = f"SELECT x0.id, x1.id FROM {one} x0 {kind} {other} x1 USING ({', '.join(names)}) WHERE {where}"
            written = f"SELECT x0.id, x1.id FROM {one} x0 {kind} {other} x1 ON {equal} WHERE {where}"
            self.same("USING", self.bag(using), self.bag(written), using, written)
            few = ", ".join(names)
            natural = f"SELECT {few} FROM (SELECT {few} FROM {one}) x0 NATURAL {kind} (SELECT {few} FROM {other}) x1"
            both = f"SELECT {', '.join(('x1.' if kind[0] == 'R' else 'x0.') + name for name in names)} FROM {one} x0 {kind} {other} x1 ON {equal}"
            self.same("NATURAL", self.bag(natural), self.bag(both), natural, both)

    def prepared(self):
        """Literals as parameters; the plan is made for other values than it is used with."""
        tables, aliases = self.source()
        query = f"SELECT COUNT(*), SUM({aliases[0]}.id) FROM {tables} WHERE {self.maker.condition(aliases, 2)}"
        head, _, where = query.rpartition(" WHERE ")
        values = LITERAL.findall(where)
        if not values or "LIMIT" in where or "TIMESTAMP'" in where or "x'" in where or "b'" in where or "DATE'" in where or "TIME'" in where:
            return
        text = f"{head} WHERE {LITERAL.sub('?', where)}"
        answer = self.bag(query)
        self.cursor.execute("PREPARE p FROM '" + text.replace("\\", "\\\\").replace("'", "''") + "'")
        for given in (["NULL"] * len(values), [self.pick(["1", "'a'", "1.5", value]) for value in values], values):
            for at, value in enumerate(given):
                self.cursor.execute(f"SET @p{at} = {value}")
            execute = "EXECUTE p USING " + ", ".join(f"@p{at}" for at in range(len(given)))
            got = self.bag(execute)
        self.same("prepared", answer, got, query, text, str(values))

    def changed(self):
        """As many rows are deleted and updated as meet the condition."""
        if self.changing:
            return
        one, other, name = self.pick(TABLES), self.pick(TABLES), self.pick(self.maker.columns)
        condition = self.maker.condition([one], 2).replace(f"{one}.", "")
        count = f"SELECT COUNT(*) FROM {one} WHERE {condition}"
        (wanted,), = self.rows(count)
        joined = f"{one} x0 JOIN {other} x1 ON x0.{name} = x1.{name} WHERE {self.maker.condition(['x0', 'x1'], 2)}"
        pairs = f"SELECT COUNT(*) FROM {one} x0 WHERE EXISTS (SELECT 1 FROM {other} x1 WHERE x0.{name} = x1.{name} AND ({joined.partition(' WHERE ')[2]}))"
        (partners,), = self.rows(pairs)
        for number, texts in ((wanted, [f"DELETE FROM {one} WHERE {condition}", f"UPDATE {one} SET id = id + 500 WHERE {condition} ORDER BY id DESC"]),
                              (partners, [f"DELETE x0 FROM {joined}", f"UPDATE {joined.replace(' WHERE ', ' SET x0.id = x0.id + 500 WHERE ', 1)}"])):
            for text in texts:
                self.asked += 1
                self.cursor.execute("BEGIN")
                try:
                    self.cursor.execute(text)
                    got = self.cursor.rowcount
                except pymysql.err.MySQLError as error:
                    if error.args[0] != 1093:
                        raise
                    # A changed table is not read by a subquery of its change.
                    expect(re.search(rf"\(SELECT .* FROM {one}\b", text), f"{text}\n  {error}")
                    self.refused += 1
                    continue
                finally:
                    self.cursor.execute("ROLLBACK")
                expect(int(number) == got, f"changed rows\n  {count}\n  {pairs}\n  {text}\n  wanted {number}, got {got}")

    def change(self):
        """A transaction with changes of its own, at one of the levels that lock differently."""
        pick = self.pick
        self.cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {pick(['READ COMMITTED', 'REPEATABLE READ'])}")
        if pick([True, False]):
            return
        self.changing = True
        self.cursor.execute("BEGIN")
        for _ in range(6):
            table, name, column = pick(TABLES), pick(self.maker.columns), pick(self.maker.columns)
            value = self.maker.stored(name, False)
            condition = f"{column} {pick(['=', '<', '>='])} {self.maker.value(column)} OR id = {self.maker.random.randrange(40)}"
            self.cursor.execute(pick([f"UPDATE IGNORE {table} SET {name} = {value} WHERE {condition}",
                                      f"DELETE FROM {table} WHERE id = {self.maker.random.randrange(40)} OR {name} = {value}",
                                      f"INSERT IGNORE INTO {table} SELECT id + 1000, {', '.join(self.maker.columns)} FROM {pick(TABLES)} LIMIT 3"]))

    def run(self, queries):
        self.change()
        checks = (self.partition, self.partition_aggregate, self.partition_distinct, self.push_down, self.plans, self.ordered,
                  self.grouped, self.as_exists, self.outer, self.prepared, self.changed)
        while self.asked < queries:
            try:
                self.pick(checks)()
            except pymysql.err.MySQLError as error:
                # Arithmetic may overflow, collations conflict, texts be no dates: of what the generator makes, by chance.
                expect(error.args[0] in (1690, 1267, 1062, 1525), f"{self.cursor._executed}\n  {error}")
                self.refused += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("queries", nargs="?", type=int, default=QUERIES)
    seeds.add_to(parser)
    options = parser.parse_args()
    queries, seed = options.queries, options.seed
    print(f"seed {seed}", flush=True)
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking", "--sync-binlog=0")
        server.start()
        begun, asked, refused, round_number = time.monotonic(), 0, 0, 0
        while asked < queries:
            maker = Maker(seed * 1000 + round_number)
            cursor = connect(server, autocommit=True, conv={}).cursor()
            engine = "LSM" if round_number % 2 == 0 else "BTREE"
            zone = maker.random.choice(["+00:00", "Europe/Berlin"])
            for sql in ("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "USE d", "SET sql_mode = ''", f"SET default_storage_engine = {engine}",
                        f"SET time_zone = '{zone}'", *maker.tables(), *[f"ANALYZE TABLE {name}" for name in TABLES[:maker.random.randrange(4)]]):
                cursor.execute(sql)
            checker = Checker(cursor, maker)
            checker.run(min(queries - asked, 500))
            asked, refused, round_number = asked + checker.asked, refused + checker.refused, round_number + 1
            cursor.connection.close()
        print(f"{asked} queries, {refused} refused, {time.monotonic() - begun:.1f} s")
        server.stop()


if __name__ == "__main__":
    main()
