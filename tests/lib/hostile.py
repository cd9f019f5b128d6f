"""A generated workload of statements that may fail: sessions change tables and definitions that they share, with errors,
deadlocks, statements in parts, settings, temporary tables and files. Whoever follows the log must hold the same at the end.

Beside `workload`, whose statements all succeed and belong to one session. Kept out, because other servers differ there by
themselves: dropping a column of a composite key (MariaDB refuses it), text that the client's character set does not have,
comparing latin1 columns with other text as a logged statement, numbers of ENUM and SET through ALTER TABLE.
"""

import random
import threading
import time

import pymysql
from omnibus import connect, expect
from workload import TYPES, text, value

ZERO = {"dt": "'0000-00-00'", "dm": "'0000-00-00 00:00:00'", "dm3": "'2020-00-10 00:00:00'", "dm6": "'2021-11-00 01:02:03.5'"}
MODES = ["DEFAULT", "''", "'STRICT_ALL_TABLES'", "'ANSI_QUOTES,STRICT_TRANS_TABLES'", "'NO_BACKSLASH_ESCAPES'",
         "'NO_AUTO_VALUE_ON_ZERO'", "'PIPES_AS_CONCAT'", "'ALLOW_INVALID_DATES'"]
LONG = ("tt", "tx", "mt", "lt", "tb", "bl", "mb", "lb", "ch255", "vc300")
KEYS = [kind for kind in TYPES if kind not in (*LONG, "f32", "f64")]
PREFIXED = ("tx", "bl", "vc300", "lt", "mb", "vb", "vc", "l1")
WIDER = {"i8": ["i16", "i32", "i64"], "u8": ["u16", "i32", "u64"], "i16": ["i32"], "u16": ["u32"], "i32": ["i64"], "u32": ["u64", "i64"],
         "vc": ["vc300", "tx", "lt"], "vc300": ["tx", "mt"], "ch": ["vc", "vc300"], "tt": ["tx", "mt"], "tb": ["bl", "lb"],
         "vb": ["bl", "tb"], "bl": ["mb"], "dm": ["dm3", "dm6"], "dm3": ["dm6"], "ts": ["ts6"], "tm": ["tm6"], "l1": ["vc", "tx"],
         "dt": ["dm", "dm6"]}
LOST = (0, 2003, 2006, 2013)
INTERNAL = (1105, 1815)   # no statement may meet these


class Hostile:
    """What the sessions do next. `texts`: statements may be in the log as text."""

    def __init__(self, seed, folder, texts=False):
        self.r, self.folder, self.texts = random.Random(seed), folder, texts
        self.tables, self.serial = {}, 0   # tables: {name: {column: kind}}, as far as is known
        self.altered = None                # (table, its columns, should the ALTER TABLE succeed)

    def setup(self):
        yield "CREATE DATABASE ha"
        yield f"CREATE DATABASE hb CHARACTER SET {'utf8mb4' if self.texts else 'latin1'}"
        for _ in range(6):
            yield from self.create()

    def step(self):
        self.altered = None
        kinds = {self.change: 40, self.transaction: 12, self.alter: 8, self.define: 6, self.setting: 6, self.prepared: 3,
                 self.temporary: 3, self.load: 3, self.branch: 3, self.large: 1}
        return list(self.r.choices(list(kinds), list(kinds.values()))[0]())

    def number(self):
        self.serial += 1
        return self.serial

    def table(self):
        return self.r.choice(list(self.tables))

    def columns(self, table):
        return self.tables.get(table) or {"gone": "i8"}

    def value(self, kind):
        return ZERO[kind] if kind in ZERO and self.r.random() < .1 else value(self.r, kind)

    def where(self, table, alias=""):
        column, kind = self.r.choice(list(self.columns(table).items()))
        one, other, column = self.value(kind), self.value(kind), alias + column
        return self.r.choice([f"{column} = {one}", f"{column} IS NULL", f"{column} > {one}", f"{column} IN ({one}, {other})",
                              f"NOT {column} <=> {one}", f"{column} BETWEEN {one} AND {other}", f"{column} <> {one}"])

    def definition(self, kind):
        r, words = self.r, TYPES[kind][0]
        if r.random() < .25 and "NULL" not in words:
            words += " NOT NULL"
        if r.random() < .2 and kind in KEYS and kind not in ("en", "st"):
            words += " DEFAULT " + value(r, kind, 0 if "NOT NULL" in words else .1)
        elif kind in ("ts", "dm") and r.random() < .3:
            words += " DEFAULT CURRENT_TIMESTAMP" + r.choice(["", " ON UPDATE CURRENT_TIMESTAMP"])
        return words + (" COMMENT 'it''s ä'" if r.random() < .1 else "")

    def create(self):
        r, name = self.r, f"{self.r.choice(['ha', 'hb'])}.t{self.number()}"
        columns = {f"c{at}": kind for at, kind in enumerate(r.sample(list(TYPES), r.randint(1, 9)))}
        parts = [f"`{column}` {self.definition(kind)}" for column, kind in columns.items()]
        keys = [column for column in columns if columns[column] in KEYS]
        style = r.choice(["auto", "auto", "pk", "none", "unique", "composite"]) if keys else "auto"
        if style == "auto":
            parts.insert(r.randint(0, 1), "id INT UNSIGNED NOT NULL AUTO_INCREMENT" + r.choice([" PRIMARY KEY", " UNIQUE", ", KEY (id)"]))
        elif style == "composite":
            parts.append(f"PRIMARY KEY ({', '.join(r.sample(keys, min(len(keys), 3)))})")
        elif style != "none":
            parts.append(f"{'PRIMARY' if style == 'pk' else 'UNIQUE'} KEY ({r.choice(keys)})")
        for at in range(r.randint(0, 2)):
            column = r.choice(list(columns))
            if columns[column] in PREFIXED:
                parts.append(f"KEY k{at} ({column}({r.randint(1, 9)}))")
            elif columns[column] in KEYS:
                parts.append(f"{r.choice(['KEY', 'INDEX', 'UNIQUE'])} k{at} ({column}{r.choice(['', ' DESC'])})")
        if style == "auto":
            columns["id"] = "u32"
        self.tables[name] = columns
        latin = "" if self.texts else " CHARACTER SET latin1"
        tail = r.choice(["", latin, " COLLATE=utf8mb4_bin", " COMMENT='x''y'", " ENGINE=InnoDB", " AUTO_INCREMENT=1000"])
        yield f"CREATE TABLE {r.choice(['', 'IF NOT EXISTS '])}{name} ({', '.join(parts)}){tail}"
        yield from self.insert(name)

    def insert(self, table=None):
        r, table = self.r, table or self.table()
        columns = self.columns(table)
        chosen = [column for column in columns if column != "id" or r.random() < .15] or list(columns)
        if r.random() < .3:
            chosen = r.sample(chosen, r.randint(1, len(chosen)))
        rows = ", ".join("(" + ", ".join(self.value(columns[column]) if r.random() > .05 else "DEFAULT" for column in chosen) + ")"
                         for _ in range(r.randint(1, 6)))
        verb = r.choice(["INSERT", "INSERT", "INSERT IGNORE", "REPLACE"])
        column = r.choice(list(columns))
        more = f" ON DUPLICATE KEY UPDATE {column} = VALUES({column})" if verb == "INSERT" and r.random() < .25 else ""
        yield f"{verb} INTO {table} ({', '.join(chosen)}) VALUES {rows}{more}"

    def update(self):
        r, table = self.r, self.table()
        columns = self.columns(table)
        sets = ", ".join(f"{column} = {self.value(columns[column])}" for column in r.sample(list(columns), min(len(columns), 2)))
        tail = r.choice(["", "", "", " LIMIT 3", f" ORDER BY {r.choice(list(columns))} LIMIT 2"])
        yield f"UPDATE {r.choice(['', '', '', 'IGNORE '])}{table} SET {sets} WHERE {self.where(table)}{tail}"

    def delete(self):
        table = self.table()
        yield f"DELETE FROM {table} WHERE {self.where(table)}{self.r.choice(['', '', f' LIMIT {self.r.randint(1, 5)}'])}"

    def several(self):
        r, one, two = self.r, self.table(), self.table()
        x, y, z = r.choice(list(self.columns(one))), r.choice(list(self.columns(two))), r.choice(list(self.columns(one)))
        yield r.choice([f"UPDATE {one} p JOIN {two} q ON p.{x} = q.{y} SET p.{z} = NULL, q.{y} = DEFAULT",
                        f"UPDATE {one} p LEFT JOIN {two} q ON p.{x} = q.{y} SET p.{x} = p.{z} WHERE q.{y} IS NULL",
                        f"DELETE p, q FROM {one} p JOIN {two} q ON p.{x} = q.{y}",
                        f"DELETE FROM p USING {one} p JOIN {two} q ON p.{x} = q.{y}",
                        f"DELETE p FROM {one} p WHERE p.{x} IN (SELECT {y} FROM {two} WHERE {self.where(two)})"])

    def insert_select(self):
        r, one = self.r, self.table()
        two = r.choice([one, self.table()])
        same = [column for column in self.columns(one) if column in self.columns(two) and column != "id"]
        if same:
            names = ", ".join(same)
            yield (f"{r.choice(['INSERT', 'REPLACE', 'INSERT IGNORE'])} INTO {one} ({names}) SELECT {names} FROM {two}"
                   f" WHERE {self.where(two)}{r.choice(['', ' LIMIT 5', f' ORDER BY {same[0]}'])}")

    def function(self):
        r, table = self.r, self.table()
        column = r.choice(list(self.columns(table)))
        made = r.choice(["NOW()", "CURDATE()", "UTC_TIMESTAMP()", "@u", "LAST_INSERT_ID()", "UPPER('äöß')", "CONCAT('a', 5, 1.50)",
                         "RAND() * 10", "CAST('12abc' AS SIGNED)", "1/3", "SHA1('x')", "UUID()", "USER()", "SYSDATE()",
                         "CONNECTION_ID()", "@@server_id", "1/0"])
        yield r.choice([f"UPDATE {table} SET {column} = {made} WHERE {self.where(table)}", f"INSERT INTO {table} ({column}) VALUES ({made})"])

    def change(self):
        yield from self.r.choice([self.insert, self.insert, self.update, self.delete, self.several, self.insert_select, self.function])()

    def transaction(self):
        r = self.r
        yield r.choice(["BEGIN", "START TRANSACTION", "SET autocommit = 0"])
        for _ in range(r.randint(1, 6)):
            yield from ([f"SAVEPOINT s{r.randint(0, 2)}"] if r.random() < .2 else [f"ROLLBACK TO s{r.randint(0, 2)}"] if r.random() < .15 else [])
            yield from self.change()
        yield r.choice(["COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN"])
        yield from ("COMMIT", "SET autocommit = 1")

    def alter(self):
        r, table = self.r, self.table()
        columns, parts, taken = dict(self.columns(table)), [], set()
        for _ in range(r.choice([1, 1, 1, 2, 3])):
            column = r.choice(list(self.columns(table)))
            kind, new = self.columns(table)[column], f"n{self.number()}"
            what = r.choice(["add", "add", "drop", "modify", "change", "rename", "index", "default", "key", "comment", "gone"])
            if what == "add":
                columns[new] = r.choice(list(TYPES))
                parts.append(f"ADD {new} {self.definition(columns[new])}{r.choice(['', ' FIRST'])}")
            elif what == "index":
                parts.append(f"ADD {r.choice(['INDEX', 'UNIQUE'])} x{new} ({column}{'' if kind in KEYS else '(9)'})")
            elif what == "key":
                parts.append(r.choice(["DROP PRIMARY KEY", f"ADD PRIMARY KEY ({column})", "DROP INDEX k0"]))
            elif what == "comment":
                parts.append(f"COMMENT = '{new}', AUTO_INCREMENT = {r.randint(1, 5000)}")
            elif what == "gone":
                parts.append(f"DROP COLUMN {new}")
            elif column in taken or column not in columns or kind in ("en", "st") and what in ("modify", "change"):
                continue
            elif what == "drop" and column[0] == "n" and len(columns) > 1:
                del columns[column]
                parts.append(f"DROP COLUMN {column}")
            elif what == "modify":
                columns[column] = r.choice([kind, *WIDER.get(kind, [])])
                parts.append(f"MODIFY {column} {TYPES[columns[column]][0]}{r.choice(['', ' FIRST'])}")
            elif what in ("change", "rename"):
                columns[new] = columns.pop(column) if what == "rename" else r.choice([columns.pop(column), *WIDER.get(kind, [])])
                parts.append(f"RENAME COLUMN {column} TO {new}" if what == "rename" else f"CHANGE {column} {new} {TYPES[columns[new]][0]}")
            elif what == "default":
                parts.append(f"ALTER COLUMN {column} {r.choice(['DROP DEFAULT', f'SET DEFAULT {value(r, kind)}'])}")
            taken.add(column)
        if parts:
            self.altered = (table, columns)
            yield f"ALTER TABLE {table} {', '.join(parts)}"

    def define(self):
        r, table, new = self.r, self.table(), f"{self.r.choice(['ha', 'hb'])}.t{self.number()}"
        what = r.choice(["create", "drop", "rename", "swap", "truncate", "like", "select", "index", "database"])
        if what == "create" or what == "drop" and len(self.tables) < 6:
            yield from self.create()
        elif what == "drop":
            del self.tables[table]
            yield r.choice([f"DROP TABLE {table}", f"DROP TABLE IF EXISTS {table}, ha.nothing", f"DROP TABLE ha.nothing, {table}"])
        elif what == "rename":
            self.tables[new] = self.tables.pop(table)
            yield r.choice([f"RENAME TABLE {table} TO {new}", f"ALTER TABLE {table} RENAME TO {new}"])
        elif what == "swap" and (other := self.table()) != table:
            self.tables[table], self.tables[other] = self.tables[other], self.tables[table]
            yield f"RENAME TABLE {table} TO ha.swap, {other} TO {table}, ha.swap TO {other}"
        elif what == "truncate":
            yield f"TRUNCATE {table}"
        elif what in ("like", "select"):
            self.tables[new] = dict(self.columns(table))
            yield f"CREATE TABLE {new} " + (f"LIKE {table}" if what == "like" else f"SELECT * FROM {table} WHERE {self.where(table)}")
        elif what == "index":
            column, kind = r.choice(list(self.columns(table).items()))
            yield f"CREATE {r.choice(['', 'UNIQUE '])}INDEX i{self.serial} ON {table} ({column}{'' if kind in KEYS else '(5)'})"
        else:
            yield from ("CREATE DATABASE IF NOT EXISTS hc", "CREATE TABLE hc.x (a INT)", "INSERT INTO hc.x VALUES (1)", "DROP DATABASE IF EXISTS hc")

    def setting(self):
        r = self.r
        yield r.choice([f"SET sql_mode = {r.choice(MODES)}", f"SET time_zone = '{r.choice(['+00:00', '+05:30', '-08:00', 'SYSTEM'])}'",
                        f"SET auto_increment_increment = {r.randint(1, 5)}, auto_increment_offset = {r.randint(1, 5)}",
                        f"SET timestamp = {r.choice(['DEFAULT', '1000000000.25', '1700000000'])}", f"USE {r.choice(['ha', 'hb'])}",
                        f"SET @u = {r.choice([repr('x'), '5', '1.5', '0x00ff', 'NULL'])}", f"SET insert_id = {r.randint(1, 10**6)}",
                        f"SET SESSION TRANSACTION ISOLATION LEVEL {r.choice(['REPEATABLE READ', 'READ COMMITTED', 'SERIALIZABLE'])}"])

    def prepared(self):
        for statement in [*self.insert(), *self.update()]:
            quoted = statement.replace("\\", "\\\\").replace("'", "''")
            yield from (f"PREPARE s FROM '{quoted}'", "EXECUTE s", "DEALLOCATE PREPARE s")

    def temporary(self):
        table, name = self.table(), f"ha.w{self.number()}"
        same = ", ".join(column for column in self.columns(table) if column != "id")
        yield f"CREATE TEMPORARY TABLE {name} AS SELECT * FROM {table} WHERE {self.where(table)}"
        if same:
            yield f"INSERT IGNORE INTO {table} ({same}) SELECT {same} FROM {name}"
        yield f"DROP TEMPORARY TABLE {name}"

    def load(self):
        table, path = self.table(), f"{self.folder}/load{self.number()}.txt"
        chosen = list(self.columns(table))[:3]
        with open(path, "w") as file:
            for _ in range(self.r.randint(0, 8)):
                file.write("\t".join(self.r.choice(["1", "2020-01-02", "\\N", "ä", "", "-7", "1.5"]) for _ in chosen) + "\n")
        yield f"LOAD DATA LOCAL INFILE '{path}' {self.r.choice(['', 'REPLACE ', 'IGNORE '])}INTO TABLE {table} ({', '.join(chosen)})"

    def branch(self):
        name, end = f"'x{self.number()}'", self.r.choice(["COMMIT", "ROLLBACK"])
        yield f"XA START {name}"
        for _ in range(self.r.randint(0, 3)):
            yield from self.change()
        yield f"XA END {name}"
        yield from [f"XA COMMIT {name} ONE PHASE"] if self.r.random() < .3 else [f"XA PREPARE {name}", f"XA {end} {name}"]
        yield f"XA ROLLBACK {name}"

    def large(self):
        yield "CREATE TABLE IF NOT EXISTS ha.large (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB, s VARCHAR(100))"
        yield f"INSERT INTO ha.large (b, s) VALUES (REPEAT('a', {self.r.choice([10_000, 300_000, 3_000_000])}), {text(self.r, 20)}), ('', '')"
        yield f"UPDATE ha.large SET s = 'changed' WHERE id % 7 = {self.r.randint(0, 6)}"


class Sessions:
    """Runs a plan's setup, then `steps` of it in each of some sessions, while the server may go and come back."""

    def __init__(self, server, plan, sessions, steps):
        self.server, self.plan, self.lock = server, plan, threading.Lock()
        self.done, self.errors, self.failure = 0, {}, None
        cursor = self.connect()
        for statement in plan.setup():
            self.execute(cursor, statement, None)
        self.threads = [threading.Thread(target=self.session, args=(steps,)) for _ in range(sessions)]
        for thread in self.threads:
            thread.start()

    def connect(self):
        cursor = connect(self.server, autocommit=True, charset="utf8mb4", local_infile=1).cursor()
        cursor.execute("SET innodb_lock_wait_timeout = 3, lock_wait_timeout = 5")
        return cursor

    def execute(self, cursor, statement, altered):
        try:
            cursor.execute(statement)
        except pymysql.err.MySQLError as error:
            code = error.args[0]
            if code in LOST:
                raise
            with self.lock:
                self.errors[code] = self.errors.get(code, 0) + 1
                if code in INTERNAL:
                    self.failure = f"{error} in {statement[:1000]}"
            return
        with self.lock:
            self.done += 1
            if altered and statement.startswith("ALTER TABLE") and altered[0] in self.plan.tables:
                self.plan.tables[altered[0]] = altered[1]

    def session(self, steps):
        cursor, deadline = None, time.monotonic() + 600
        while steps and time.monotonic() < deadline:
            steps -= 1
            with self.lock:
                statements, altered = self.plan.step(), self.plan.altered
            try:
                cursor = cursor or self.connect()
                for statement in statements:
                    self.execute(cursor, statement, altered)
            except (pymysql.err.MySQLError, OSError, AttributeError):
                cursor = None
                time.sleep(0.05)

    def running(self):
        return any(thread.is_alive() for thread in self.threads)

    def finish(self):
        """How many statements succeeded, and how often each error was met."""
        for thread in self.threads:
            thread.join()
        expect(self.failure is None, self.failure)
        return self.done, dict(sorted(self.errors.items()))
