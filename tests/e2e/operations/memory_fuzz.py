#!/usr/bin/python3
"""Statements and packets that ask for memory wherever there is some to be had, from a seed: the server stays below its limit and
answers others.

    memory_fuzz.py [--seed N] [--seconds S]

MEMORY-1. A run does the same for the same seed. What it does last is printed when it fails, with the command that does it again.

Ring: all.
"""

import argparse
import pathlib
import random
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql
import seeds
from hunger import MIB, Half, Hungry, Watch
from omnibus import Omnibus, Scratch, Session, error_code, expect

LIMIT = 64 * MIB
# What the process may have: rows of megabytes on their way to files and back are there several times.
CEILING = 512 * MIB
SESSIONS = 6

# Functions of texts: how many arguments, and what makes a call of them. `{}` are expressions, `#` is a number, `^` a size.
TEXTS = ["CONCAT({}, {})", "CONCAT_WS({}, {}, {})", "REPEAT({}, #)", "SPACE(^)", "LPAD({}, ^, {})", "RPAD({}, ^, {})", "HEX({})",
         "UNHEX({})", "UPPER({})", "LOWER({})", "REVERSE({})", "REPLACE({}, 'x', {})", "INSERT({}, #, #, {})", "QUOTE({})",
         "TO_BASE64({})", "FROM_BASE64({})", "COMPRESS({})", "UNCOMPRESS({})", "AES_ENCRYPT({}, {})", "AES_DECRYPT({}, {})",
         "SUBSTRING({}, #)", "LEFT({}, ^)", "RIGHT({}, ^)", "TRIM({})", "SUBSTRING_INDEX({}, 'x', #)", "ELT(#, {}, {}, {})",
         "MAKE_SET(#, {}, {}, {})", "EXPORT_SET(#, {}, {}, {}, #)", "REGEXP_REPLACE({}, 'x', {})", "REGEXP_SUBSTR({}, 'x+')",
         "REGEXP_REPLACE({}, '(x)\\\\1', {})", "EXTRACTVALUE({}, '//*')", "UPDATEXML({}, '/', {})",
         "WEIGHT_STRING({})", "CONVERT({} USING latin1)", "CONVERT({} USING utf8mb4)", "CAST({} AS BINARY)", "CAST({} AS CHAR)",
         "IF(#, {}, {})", "IFNULL({}, {})", "COALESCE({}, {})", "GREATEST({}, {})", "LEAST({}, {})", "NULLIF({}, {})",
         "CASE # WHEN # THEN {} ELSE {} END", "SOUNDEX({})", "JSON_QUOTE({})", "JSON_UNQUOTE({})", "JSON_UNQUOTE({json})",
         "JSON_PRETTY({json})", "CONCAT({json}, {json})", "CAST({json} AS CHAR)", "(SELECT {})", "(SELECT MAX({}) FROM n)",
         "(SELECT GROUP_CONCAT({}) FROM n)", "(SELECT GROUP_CONCAT({} ORDER BY {} SEPARATOR 'x') FROM n)", "STATEMENT_DIGEST_TEXT({})",
         "MD5({})", "SHA2({}, 256)", "FORMAT(#, #)", "CHAR(#, #, #)", "@a", "@b", "@c", "(@a := {})", "RANDOM_BYTES(#)", "BIN(#)",
         "DATE_FORMAT(NOW(), {})", "INET6_NTOA({})", "'{}'", "VALUES_OF"]
DOCUMENTS = ["JSON_ARRAY({}, {})", "JSON_ARRAY({json}, {json}, {json})", "JSON_OBJECT({}, {json})", "JSON_OBJECT('a', {json}, 'b', {})",
             "JSON_EXTRACT({json}, '$', '$', '$')", "JSON_EXTRACT({json}, '$**[0]')", "JSON_EXTRACT({json}, '$[*]', '$.*')",
             "JSON_SET({json}, '$[0]', {json})", "JSON_INSERT({json}, '$[#]', {})", "JSON_REPLACE({json}, '$.a', {json})",
             "JSON_REMOVE({json}, '$[0]')", "JSON_ARRAY_APPEND({json}, '$', {json})", "JSON_ARRAY_INSERT({json}, '$[0]', {json})",
             "JSON_MERGE_PRESERVE({json}, {json})", "JSON_MERGE_PATCH({json}, {json})", "JSON_KEYS({json})", "CAST({doctext} AS JSON)",
             "JSON_SEARCH({json}, 'all', '%')", "(SELECT JSON_ARRAYAGG({json}) FROM n)", "(SELECT JSON_OBJECTAGG(id, {json}) FROM n)",
             "(SELECT JSON_ARRAYAGG({}) FROM n)"]
DOCUMENT_TEXTS = ["CONCAT('[', REPEAT('1,', ^), '1]')", "CONCAT('[', REPEAT('[1],', ^), '1]')", "CONCAT('[', REPEAT('{\"a\":1},', ^), '1]')",
                  "CONCAT('[', REPEAT('\"\",', ^), '1]')", "CONCAT(REPEAT('[', 90), REPEAT('1,', ^), '1', REPEAT(']', 90))",
                  "CONCAT('\"', REPEAT('x', ^), '\"')"]


class Maker:
    """Expressions from a source of chance."""

    def __init__(self, chance):
        self.chance = chance

    def size(self):
        return int(2 ** self.chance.uniform(0, 24))

    def text(self, depth):
        if depth <= 0 or self.chance.random() < 0.1:
            return self.chance.choice(["'x'", "'{}'", "@a", "@b", "SPACE({})", "REPEAT('x', {})", "REPEAT('ä', {})"]).format(self.size())
        form = self.chance.choice(TEXTS)
        return "SPACE(1)" if form in ("'{}'", "VALUES_OF") else self.fill(form, depth)

    def document(self, depth):
        if depth <= 0 or self.chance.random() < 0.2:
            return f"CAST({self.fill(self.chance.choice(DOCUMENT_TEXTS), 0)} AS JSON)"
        return self.fill(self.chance.choice(DOCUMENTS), depth)

    def fill(self, form, depth):
        out = []
        at = 0
        while at < len(form):
            rest = form[at:]
            if rest.startswith("{json}"):
                out.append(self.document(depth - 1))
                at += 6
            elif rest.startswith("{doctext}"):
                out.append(self.fill(self.chance.choice(DOCUMENT_TEXTS), 0))
                at += 9
            elif rest.startswith("{}"):
                out.append(self.text(depth - 1))
                at += 2
            elif rest[0] == "#":
                out.append(str(self.chance.choice([0, 1, 2, 3, 7, 100, 5000, -1])))
                at += 1
            elif rest[0] == "^":
                out.append(str(self.size()))
                at += 1
            else:
                out.append(rest[0])
                at += 1
        return "".join(out)

    def shape(self):
        """A query of queries that read each other several times, so that there are many ways from the last to the first."""
        count = self.chance.randint(1, 40)
        common = [f"c0 AS (SELECT id AS x FROM n WHERE id < {self.chance.choice([1, 3])})"]
        for at in range(1, count):
            below, other = (f"c{max(0, at - self.chance.choice([1, 1, 1, 2, 5]))}" for _ in range(2))
            common.append(f"c{at} AS (" + self.chance.choice([
                f"SELECT a.x FROM {below} a JOIN {other} b ON a.x = b.x", f"SELECT a.x FROM {below} a LEFT JOIN {other} b USING (x) WHERE b.x IS NOT NULL",
                f"SELECT x FROM {below} UNION SELECT x FROM {other}", f"SELECT x FROM {below} WHERE x IN (SELECT x FROM {other})",
                f"SELECT x FROM {below} a WHERE EXISTS (SELECT 1 FROM {other} b WHERE b.x = a.x)", f"SELECT MAX(x) AS x FROM {below} GROUP BY (SELECT MIN(x) FROM {other})",
                f"SELECT (SELECT MAX(x) FROM {other} b WHERE b.x <= a.x) AS x FROM {below} a", f"SELECT x FROM {below} ORDER BY (SELECT MAX(x) FROM {other}) LIMIT 2",
                f"SELECT SUM(x) OVER (ORDER BY x) - (SELECT MIN(x) FROM {other}) AS x FROM {below}"]) + ")")
        last = f"c{count - 1}"
        return f"WITH {', '.join(common)} " + self.chance.choice([
            f"SELECT x FROM {last}", f"SELECT * FROM {last} a NATURAL JOIN {last} b", f"SELECT id FROM n WHERE id IN (SELECT x FROM {last})",
            f"SELECT id FROM n WHERE EXISTS (SELECT 1 FROM {last} WHERE x = id)"])

    def any(self):
        depth = self.chance.randint(0, 4)
        return self.text(depth) if self.chance.random() < 0.6 else self.document(depth)

    def several(self, most):
        """The same thing many times, or many things."""
        count = int(2 ** self.chance.uniform(0, most))
        if self.chance.random() < 0.5:
            return ", ".join([self.any()] * count)
        return ", ".join(self.any() for _ in range(min(count, 40)))


class Run:
    """What a run has: sessions, connections that sent halves, and what it did last."""

    def __init__(self, server, chance, watch):
        self.server, self.chance, self.make, self.watch = server, chance, Maker(chance), watch
        self.sessions = [self.session() for _ in range(SESSIONS)]
        self.halves, self.done, self.counts = [], [], {}
        self.acts = [self.select, self.select, self.select, self.over_rows, self.shapes, self.shapes, self.variables, self.written, self.long_text, self.prepare_by_name,
                     self.prepare, self.long_data, self.half, self.locks, self.savepoints, self.temporary, self.messages, self.forget,
                     self.unread]

    def session(self):
        # What functions make of bytes is not always text of the announced character set, which the client would refuse to read.
        session = Hungry(self.server, user="hungry", database="own", max_allowed_packet=64 * MIB, use_unicode=False, conv={})
        session("SET group_concat_max_len = 4294967295, cte_max_recursion_depth = 100000, max_execution_time = 5000")
        return session

    def step(self):
        at = self.chance.randrange(len(self.sessions))
        act = self.chance.choice(self.acts)
        self.counts[act.__name__] = self.counts.get(act.__name__, 0) + 1
        self.watch.busy = (self.sessions[at].db.thread_id(), time.monotonic())
        try:
            self.code = 0
            act(self.sessions[at])
        except (OSError, IndexError, AttributeError, struct.error, pymysql.err.InterfaceError):
            self.code = 2013  # What a reply that ended early, or none, looks like to the library.
        except pymysql.err.OperationalError as error:
            expect(error.args[0] in (2006, 2013), f"{act.__name__}: {error}")
            self.code = 2013
        self.watch.busy = None
        expect(self.server.runs(), "the server is gone")
        if self.code in (0, 2006, 2013, 1153, 3170) and not self.alive(self.sessions[at]):
            self.sessions[at].db._force_close()
            self.sessions[at] = self.session()

    @staticmethod
    def alive(session):
        try:
            session.db.ping(reconnect=False)
            return True
        except Exception:  # noqa: BLE001 whatever it is, the connection is done with
            return False

    def ask(self, session, sql):
        self.done.append(sql if isinstance(sql, str) else repr(sql))
        self.done = self.done[-12:]
        self.code = error_code(lambda: session(sql))

    def select(self, session):
        self.ask(session, "SELECT LENGTH(" + self.make.any() + ")" if self.chance.random() < 0.5 else "SELECT " + self.make.several(8))

    def over_rows(self, session):
        e, f = self.make.any(), self.make.any()
        self.ask(session, self.chance.choice([
            f"SELECT COUNT(*) FROM (SELECT {e} AS a FROM n ORDER BY a LIMIT 5) t", f"SELECT DISTINCT LENGTH({e}), LEFT({f}, 9) FROM n",
            f"SELECT LENGTH(MAX({e})) FROM n GROUP BY LEFT({f}, 5000)", f"SELECT COUNT(*) FROM n WHERE {e} IN (SELECT {f} FROM n)",
            f"SELECT LENGTH({e}) FROM n UNION SELECT LENGTH({f}) FROM n", f"SELECT COUNT(*) FROM n a JOIN n b ON {e} = {f}",
            f"SELECT LENGTH(LAG({e}) OVER (ORDER BY id)) FROM n", f"WITH RECURSIVE r AS (SELECT 1 AS n, {e} AS t UNION ALL SELECT n + 1, t FROM r"
            " WHERE n < 300) SELECT COUNT(*), SUM(LENGTH(t)) FROM r", f"SELECT LENGTH({e}) FROM n WHERE {f} LIKE '%x%'",
            f"SELECT COUNT(*) FROM JSON_TABLE({self.make.document(2)}, '$[*]' COLUMNS (a TEXT PATH '$')) t",
            f"SELECT COUNT(DISTINCT {e}) FROM n"]))

    def shapes(self, session):
        query = self.make.shape()
        self.ask(session, self.chance.choice(["", "", "EXPLAIN ", "EXPLAIN FORMAT=TREE ", "EXPLAIN FORMAT=JSON ", "EXPLAIN ANALYZE ", "CREATE OR REPLACE VIEW v AS ",
                                              "CREATE TEMPORARY TABLE IF NOT EXISTS xs AS ", "INSERT INTO t (a) "]) + query)
        if self.chance.random() < 0.3:
            self.ask(session, self.chance.choice(["SELECT * FROM v a NATURAL JOIN v b", "EXPLAIN SELECT * FROM v a NATURAL JOIN v b", "SHOW CREATE VIEW v", "DESC v",
                                                  "CHECKSUM TABLE v", "CREATE OR REPLACE VIEW w AS SELECT a.* FROM v a JOIN v b", "SELECT COUNT(*) FROM w"]))

    def variables(self, session):
        name = self.chance.choice(["@a", "@b", "@c"] + [f"@v{n}" for n in range(20)])
        self.ask(session, f"SET {name} = {self.make.any()}")

    def written(self, session):
        self.ask(session, self.chance.choice([
            f"INSERT INTO t (a) VALUES ({self.make.any()})", f"INSERT INTO t (a) SELECT {self.make.any()} FROM n",
            f"UPDATE t SET a = {self.make.any()} LIMIT 3", "DELETE FROM t", "ROLLBACK", "START TRANSACTION"]))

    def long_text(self, session):
        count = int(2 ** self.chance.uniform(4, 20))
        self.ask(session, self.chance.choice([
            "SELECT 1 IN (" + ",".join(["1"] * count) + ")", "DO " + ",".join(["'a'"] * count), "DO 1" + "+1" * min(count, 900),
            "INSERT INTO t (a) VALUES " + ",".join(["(1)"] * count), "DO '" + "x" * (16 * count) + "'",
            "SELECT " + ",".join(["id"] * min(count, 4000)) + " FROM n", "SELECT a.id FROM " + " JOIN ".join(f"n a{n}" for n in range(min(count, 60))),
            "DO 1 /*" + "x" * count + "*/", "SELECT /*+ " + "MRR(a) " * count + "*/ 1", ";".join(["DO 1"] * min(count, 2000)),
            "WITH " + ",".join(f"c{n} AS (SELECT 1)" for n in range(min(count, 3000))) + " SELECT 1",
            "SELECT CASE " + "WHEN 1 THEN 2 " * count + "END", "DO 1 OR " + " OR ".join(["(1 AND 0)"] * count)]))

    def prepare_by_name(self, session):
        count = int(2 ** self.chance.uniform(0, 18))
        self.ask(session, f"SET @text = CONCAT('SELECT LENGTH(''', REPEAT('x', {count}), ''')', REPEAT(', 1', {min(count, 20000)}))")
        self.ask(session, f"PREPARE s{self.chance.randrange(1000)} FROM @text")
        self.ask(session, f"EXECUTE s{self.chance.randrange(10)}")

    def prepare(self, session):
        count = int(2 ** self.chance.uniform(0, 22))
        text = "SELECT LENGTH('" + "x" * count + "')" + ", ?" * self.chance.choice([0, 1, 100, 1000])
        self.done.append(f"COM_STMT_PREPARE of {len(text)} bytes")
        self.code = error_code(lambda: session.prepare(text))

    def long_data(self, session):
        if not session.statements:
            self.code = error_code(lambda: session.prepare("SELECT LENGTH(?), LENGTH(?)"))
        if not session.statements:
            return
        number, params = self.chance.choice(session.statements)
        size, times = int(2 ** self.chance.uniform(0, 22)), self.chance.randint(1, 20)
        self.done.append(f"{times} times COM_STMT_SEND_LONG_DATA of {size} bytes")
        for _ in range(times):
            session.long_data(number, self.chance.randrange(params + 1), b"x" * size)

    def half(self, _):
        if len(self.halves) > 40:
            for half in self.halves:
                half.close()
            self.halves = []
        said = int(2 ** self.chance.uniform(10, 23.9))
        self.done.append(f"{said} bytes of a packet")
        self.halves.append(Half(self.server, said, 0xFFFFFF, user="hungry"))

    def locks(self, session):
        first, count = self.chance.randrange(10**6), self.chance.choice([1, 100, 3000])
        self.ask(session, "DO " + ", ".join(f"GET_LOCK('{n}', 0)" for n in range(first, first + count)))

    def savepoints(self, session):
        self.ask(session, "START TRANSACTION")
        for n in range(self.chance.choice([1, 300])):
            self.ask(session, f"SAVEPOINT s{n}")

    def temporary(self, session):
        columns = ", ".join(f"c{n} TEXT" for n in range(self.chance.choice([1, 50, 1000])))
        self.ask(session, f"CREATE TEMPORARY TABLE x{self.chance.randrange(10**6)} ({columns})")

    def messages(self, session):
        self.ask(session, f"SELECT {', '.join([f'CAST({self.make.text(1)} AS DATE)'] * 200)}")
        self.ask(session, "SHOW WARNINGS")

    def forget(self, session):
        if self.chance.random() < 0.3:
            self.done.append("a connection ends")
            session.db._force_close()
            self.code = 2013
        else:
            self.ask(session, self.chance.choice(["DO RELEASE_ALL_LOCKS()", "ROLLBACK", "SET @a = 1, @b = 2, @c = 3"]))

    def unread(self, session):
        """A reply that nobody reads, until the connection ends."""
        self.done.append("a reply that is not read")
        session.db._execute_command(3, "SELECT " + ", ".join([f"REPEAT('x', {self.make.size() // 4})"] * 8) + " FROM n")
        self.halves.append(Unread(session.db))
        self.sessions[self.sessions.index(session)] = self.session()


class Unread:
    def __init__(self, db):
        self.db = db

    def close(self):
        self.db._force_close()


def main():
    parser = argparse.ArgumentParser()
    seeds.add_to(parser)
    parser.add_argument("--seconds", type=float, default=20)
    given = parser.parse_args()
    again = f"tests/e2e/operations/memory_fuzz.py --seed {given.seed} --seconds {given.seconds:g}"
    print(f"seed {given.seed}; again by: {again}", flush=True)
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking", f"--global-connection-memory-limit={LIMIT}", "--sync-binlog=0",
                         "--lsm-memtable-size=8M", "--lsm-block-cache-size=16M", "--max-allowed-packet=64M", "--max-connections=400")
        server.start()
        root = Session(server)
        root.run("CREATE DATABASE d", "CREATE DATABASE own", "CREATE TABLE d.point (id INT PRIMARY KEY)", "INSERT INTO d.point VALUES (7)",
                 "CREATE TABLE own.n (id INT PRIMARY KEY)", "INSERT INTO own.n VALUES " + ", ".join(f"({n})" for n in range(40)),
                 "CREATE TABLE own.t (id INT AUTO_INCREMENT PRIMARY KEY, a LONGTEXT)",
                 "CREATE USER hungry@localhost", "GRANT ALL ON own.* TO hungry@localhost")
        watch = Watch(server, CEILING)
        watch.start()
        run = Run(server, random.Random(given.seed), watch)
        until = time.monotonic() + given.seconds
        steps = 0
        while time.monotonic() < until:
            before = watch.peak
            try:
                run.step()
                expect(watch.peak < CEILING, f"the server had {watch.peak // MIB} MiB, {before // MIB} before")
            except SystemExit as failure:
                did = "\n".join(f"  {sql[:600]}{' ..' if len(sql) > 600 else ''}" for sql in run.done)
                raise SystemExit(f"{failure}\nafter {steps} steps, the last of which are\n{did}\nagain by: {again}") from None
            steps += 1
        watch.end()
        server.stop()
        print(f"memory_fuzz ok: {steps} steps, {watch.peak // MIB} MiB at most, {watch.answers} answers beside them; {run.counts}")


if __name__ == "__main__":
    main()
