"""A generated workload that Omnibus and MariaDB both take: every type with its edge values, tables with and without keys,
large rows, transactions with savepoints and rollbacks, several databases and character sets, and DDL in between.

The same seed gives the same statements. `Workload.steps(n)` yields lists of statements, each one transaction or one DDL
statement; every statement succeeds on both servers and leaves equal tables there. With `deterministic=False` there are
also statements whose outcome is known only where they ran (UUID(), LIMIT without an order, NOW()).
"""

import random

from omnibus import connect

# name of the kind: (definition, edge values as SQL literals, generator of other values)
TEXTS = ["''", "'abc'", "'trail  '", "'äöü€'", "'😀'", "'it''s'", "'\\\\ back'", "'a\\nb\\0c'"]
TYPES = {
    "i8": ("TINYINT", ["-128", "0", "127"], lambda r: r.randint(-128, 127)),
    "u8": ("TINYINT UNSIGNED", ["0", "255"], lambda r: r.randint(0, 255)),
    "i16": ("SMALLINT", ["-32768", "0", "32767"], lambda r: r.randint(-32768, 32767)),
    "u16": ("SMALLINT UNSIGNED", ["0", "65535"], lambda r: r.randint(0, 65535)),
    "i24": ("MEDIUMINT", ["-8388608", "-1", "8388607"], lambda r: r.randint(-8388608, 8388607)),
    "u24": ("MEDIUMINT UNSIGNED", ["0", "16777215"], lambda r: r.randint(0, 16777215)),
    "i32": ("INT", ["-2147483648", "2147483647"], lambda r: r.randint(-2**31, 2**31 - 1)),
    "u32": ("INT UNSIGNED", ["0", "4294967295"], lambda r: r.randint(0, 2**32 - 1)),
    "i64": ("BIGINT", ["-9223372036854775808", "9223372036854775807"], lambda r: r.randint(-2**63, 2**63 - 1)),
    "u64": ("BIGINT UNSIGNED", ["0", "18446744073709551615"], lambda r: r.randint(0, 2**64 - 1)),
    "f32": ("FLOAT", ["-1.5", "0", "3.25", "1e10"], lambda r: r.randint(-1000, 1000) / 8),
    "f64": ("DOUBLE", ["-1.5e300", "0", "0.1", "3.141592653589793"], lambda r: r.randint(-10**9, 10**9) / 1024),
    "d1": ("DECIMAL(10,2)", ["-99999999.99", "-0.01", "0", "12345678.90"], lambda r: f"{r.randint(-10**9, 10**9) / 100:.2f}"),
    "d2": ("DECIMAL(65,30)", ["-12345678901234567890123456789012345.678901234567890123456789012345", "0.1"],
           lambda r: f"{r.randint(-10**30, 10**30)}.{r.randint(0, 10**29):030d}"),
    "b1": ("BIT(1)", ["b'0'", "b'1'"], lambda r: f"b'{r.randint(0, 1)}'"),
    "b17": ("BIT(17)", ["b'10101010101010101'", "0"], lambda r: f"b'{r.randint(0, 2**17 - 1):b}'"),
    "b64": ("BIT(64)", ["b'" + "1" * 64 + "'", "1"], lambda r: f"b'{r.randint(0, 2**64 - 1):b}'"),
    "yr": ("YEAR", ["1901", "2155", "0"], lambda r: r.randint(1901, 2155)),
    "dt": ("DATE", ["'1000-01-01'", "'9999-12-31'"], lambda r: f"'{r.randint(1000, 9999)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}'"),
    "tm": ("TIME", ["'-838:59:59'", "'00:00:00'", "'-00:00:01'", "'838:59:59'"],
           lambda r: f"'{r.choice(['', '-'])}{r.randint(0, 838)}:{r.randint(0, 59):02d}:{r.randint(0, 59):02d}'"),
    "tm6": ("TIME(6)", ["'-12:34:56.789012'", "'12:34:56.7'"],
            lambda r: f"'{r.randint(0, 800)}:{r.randint(0, 59):02d}:{r.randint(0, 59):02d}.{r.randint(0, 999999):06d}'"),
    "dm": ("DATETIME", ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'"], lambda r: f"'{clock(r)}'"),
    "dm3": ("DATETIME(3)", ["'2026-11-21 20:00:01.234'", "'2026-11-21 20:00:01'"], lambda r: f"'{clock(r)}.{r.randint(0, 999):03d}'"),
    "dm6": ("DATETIME(6)", ["'2026-11-21 20:00:01.000001'"], lambda r: f"'{clock(r)}.{r.randint(0, 999999):06d}'"),
    "ts": ("TIMESTAMP NULL", ["'1970-01-02 00:00:00'", "'2037-12-31 23:59:59'"], lambda r: f"'{clock(r)}'"),
    "ts6": ("TIMESTAMP(6) NULL", ["'2026-11-21 20:00:01.123456'"], lambda r: f"'{clock(r)}.{r.randint(0, 999999):06d}'"),
    "ch": ("CHAR(10)", TEXTS, lambda r: text(r, 10)),
    "ch255": ("CHAR(255)", ["REPEAT('x', 255)", "''"], lambda r: text(r, 80)),
    "vc": ("VARCHAR(20)", TEXTS, lambda r: text(r, 20)),
    "vc300": ("VARCHAR(300)", ["REPEAT('ä', 300)", "''"], lambda r: text(r, 300)),
    "l1": ("VARCHAR(12) CHARACTER SET latin1", ["'äöü'", "''", "'x'"], lambda r: latin(r, 12)),
    "cl1": ("CHAR(12) CHARACTER SET latin1", ["'ÄÖÜ'", "''"], lambda r: latin(r, 12)),
    "vb": ("VARBINARY(40)", ["''", "0x00ff00", "'ab  '"], lambda r: blob(r, 40)),
    "bn": ("BINARY(6)", ["''", "0x00ff", "'ab'", "0xff00ff000000"], lambda r: blob(r, 6)),
    "tt": ("TINYTEXT", ["''", "REPEAT('t', 255)"], lambda r: text(r, 60)),
    "tx": ("TEXT", ["''", "REPEAT('text ', 1000)"], lambda r: text(r, 2000)),
    "mt": ("MEDIUMTEXT", ["REPEAT('m', 70000)"], lambda r: text(r, 200)),
    "lt": ("LONGTEXT CHARACTER SET latin1", ["REPEAT('é', 3000)"], lambda r: latin(r, 200)),
    "tb": ("TINYBLOB", ["''", "0x0001ff"], lambda r: blob(r, 255)),
    "bl": ("BLOB", ["REPEAT(0x00ff, 1000)", "''"], lambda r: blob(r, 3000)),
    "mb": ("MEDIUMBLOB", ["REPEAT(0x00ff, 40000)"], lambda r: blob(r, 300)),
    "lb": ("LONGBLOB", ["REPEAT(0xfe01, 100)"], lambda r: blob(r, 300)),
    "en": ("ENUM('a','b','ö')", ["'a'", "'ö'", "2"], lambda r: r.randint(1, 3)),
    "st": ("SET('a','b','c','d','e','f','g','h','ö')", ["''", "'a,c'", "'ö'", "511"], lambda r: r.randint(0, 511)),
}


def clock(r):
    return (f"{r.randint(1971, 2036)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d} "
            f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}:{r.randint(0, 59):02d}")


def text(r, most):
    return "'" + "".join(r.choice("abc xyz'\\0ä€ß漢😀").replace("'", "''").replace("\\", "\\\\")
                         for _ in range(r.randint(0, most))) + "'"


def latin(r, most):
    return "'" + "".join(r.choice("abcxyz àéîõü") for _ in range(r.randint(0, most))) + "'"


def blob(r, most):
    data = r.randbytes(r.randint(0, most))
    return "0x" + data.hex() if data else "''"


def value(r, kind, nulls=0.1):
    """A literal for a column of this kind: an edge value in every third case."""
    if r.random() < nulls:
        return "NULL"
    _, edges, generate = TYPES[kind]
    return r.choice(edges) if r.random() < 0.33 else str(generate(r))


def typed_columns(kinds=None):
    return ", ".join(f"{name} {TYPES[name][0]}" for name in kinds or TYPES)


class Workload:
    """Statements of one generated stream. Streams of different seeds use different databases and may run at once."""

    def __init__(self, seed, deterministic=True, ddl=True):
        self.r, self.deterministic, self.with_ddl = random.Random(seed), deterministic, ddl
        self.db, self.db2 = f"w{seed}", f"w{seed}_latin"
        self.serial = 0       # of rows
        self.tables = 0       # of tables made on the way
        self.extra = []       # the tables made on the way that are there now
        self.added = {}       # table: columns added

    def setup(self):
        """The first statements: databases and the lasting tables."""
        yield [f"CREATE DATABASE {self.db} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"]
        yield [f"CREATE DATABASE {self.db2} CHARACTER SET latin1 COLLATE latin1_swedish_ci"]
        yield [f"CREATE TABLE {self.db}.types (id INT PRIMARY KEY, {typed_columns()})"]
        yield [f"CREATE TABLE {self.db}.keyless ({typed_columns()})"]
        yield [f"CREATE TABLE {self.db}.composite (a INT NOT NULL, b VARCHAR(20) NOT NULL, c DATETIME(3) NOT NULL,"
               " v INT, w VARCHAR(100), PRIMARY KEY (b, a, c), KEY by_v (v))"]
        yield [f"CREATE TABLE {self.db}.onlyunique (a BIGINT UNSIGNED, b VARBINARY(40), v TEXT, UNIQUE KEY (a), KEY by_b (b))"]
        yield [f"CREATE TABLE {self.db}.notes (id INT AUTO_INCREMENT PRIMARY KEY, at TIMESTAMP NULL, v VARCHAR(200), n INT)"]
        yield [f"CREATE TABLE {self.db2}.names (id INT PRIMARY KEY, v VARCHAR(100), u VARCHAR(100) CHARACTER SET utf8mb4,"
               " UNIQUE KEY by_id (id, v))"]

    def steps(self, count):
        """`count` transactions and DDL statements."""
        kinds = [(self.types, 20), (self.keyless, 10), (self.composite, 15), (self.onlyunique, 10), (self.notes, 15),
                 (self.names, 10), (self.savepoints, 6), (self.rollback, 4), (self.several, 8), (self.large, 2),
                 (self.dense, 3)]
        if self.with_ddl:
            kinds += [(self.ddl, 10)]
        makers, weights = zip(*kinds)
        for _ in range(count):
            yield self.r.choices(makers, weights)[0]()

    def id(self):
        self.serial += 1
        return self.serial

    def some_id(self):
        return self.r.randint(1, self.serial) if self.serial else -1

    def row(self):
        return ", ".join(value(self.r, kind) for kind in TYPES)

    def sets(self, most=4):
        kinds = self.r.sample(list(TYPES), self.r.randint(1, most))
        return ", ".join(f"{kind} = {value(self.r, kind)}" for kind in kinds)

    def types(self):
        table = f"{self.db}.types"
        low = self.some_id()
        return [self.r.choice([
            lambda: f"INSERT INTO {table} VALUES ({self.id()}, {self.row()})",
            lambda: f"INSERT INTO {table} VALUES " + ", ".join(f"({self.id()}, {self.row()})" for _ in range(3)),
            lambda: f"UPDATE {table} SET {self.sets()} WHERE id = {low}",
            lambda: f"UPDATE {table} SET {self.sets(2)} WHERE id BETWEEN {low} AND {low + 20}",
            lambda: f"REPLACE INTO {table} VALUES ({low}, {self.row()})",
            lambda: f"UPDATE {table} SET id = {self.id()} WHERE id = {low}",
            lambda: f"DELETE FROM {table} WHERE id BETWEEN {low} AND {low + 1}",
        ])()]

    def keyless(self):
        table = f"{self.db}.keyless"
        pick = f"i8 = {self.r.randint(-3, 3)}"
        return [self.r.choice([
            lambda: f"INSERT INTO {table} (i8, i32, vc, f64) VALUES ({self.r.randint(-3, 3)}, 7, 'twin', 0.5), (1, 7, 'twin', 0.5)",
            lambda: f"INSERT INTO {table} VALUES ({self.row()})",
            lambda: f"UPDATE {table} SET {self.sets(2)} WHERE {pick}",
            lambda: f"DELETE FROM {table} WHERE {pick} AND vc = 'twin'",
            lambda: f"UPDATE {table} SET i32 = COALESCE(i32, 0) DIV 2 + 1 WHERE {pick} AND vc = 'twin'",
        ])()]

    def composite(self):
        table = f"{self.db}.composite"
        a, b = self.r.randint(0, 50), text(self.r, 3)
        return [self.r.choice([
            lambda: f"INSERT INTO {table} VALUES ({a}, {b}, '{clock(self.r)}.{self.r.randint(0, 999):03d}', {a}, NULL)"
                    f" ON DUPLICATE KEY UPDATE v = {a} + 1",
            lambda: f"INSERT IGNORE INTO {table} (a, b, c, v) VALUES ({a}, 'same', '2026-01-01', 1), ({a + 1}, 'same', '2026-01-01', 2)"
            if not self.deterministic else f"REPLACE INTO {table} (a, b, c, v) VALUES ({a}, 'same', '2026-01-01', 1)",
            lambda: f"UPDATE {table} SET v = v + 1, w = CONCAT(COALESCE(w, ''), 'x') WHERE v BETWEEN {a} AND {a + 2} AND CHAR_LENGTH(COALESCE(w, '')) < 90",
            lambda: f"DELETE FROM {table} WHERE a = {a} AND b <> 'same'",
            lambda: f"DELETE FROM {table} WHERE v < {a} ORDER BY b, a, c LIMIT 2",
        ])()]

    def onlyunique(self):
        table = f"{self.db}.onlyunique"
        a = self.r.randint(0, 40)
        return [self.r.choice([
            lambda: f"REPLACE INTO {table} VALUES ({a}, {blob(self.r, 40)}, {text(self.r, 300)})",
            lambda: f"INSERT INTO {table} VALUES (NULL, {blob(self.r, 3)}, 'no key')",
            lambda: f"UPDATE {table} SET v = {text(self.r, 30)} WHERE a BETWEEN {a} AND {a + 3}",
            lambda: f"UPDATE {table} SET b = {blob(self.r, 40)} WHERE a IS NULL AND v = 'no key' AND LENGTH(b) < {self.r.randint(0, 3)}",
            lambda: f"DELETE FROM {table} WHERE a = {a}",
        ])()]

    def notes(self):
        table = f"{self.db}.notes"
        return self.r.choice([
            lambda: [f"INSERT INTO {table} (v, n) VALUES ({text(self.r, 50)}, {self.some_id()}), ('second', 0), (NULL, NULL)"],
            lambda: [f"SET time_zone = '{self.r.choice(['+00:00', '+05:30', '-08:00'])}'",
                     f"INSERT INTO {table} (at, v) VALUES ('{clock(self.r)}', 'zoned')", "SET time_zone = '+00:00'"],
            lambda: [f"INSERT INTO {table} (v, n) VALUES ('first', 1)", f"INSERT INTO {table} (v, n) VALUES ('after', LAST_INSERT_ID())"],
            lambda: [f"SET @x = {self.some_id()}", f"SET @y = {text(self.r, 20)}", f"INSERT INTO {table} (v, n) VALUES (@y, @x)"],
            lambda: [f"INSERT INTO {table} (at, n) SELECT at, n + 1 FROM {table} WHERE v = 'zoned' AND n IS NULL ORDER BY id LIMIT 3"]
            if not self.deterministic else [f"UPDATE {table} SET n = id + 1 WHERE v = 'zoned'"],
            lambda: [f"INSERT INTO {table} (at, v, n) VALUES (NOW(), RAND(), RAND() * 1000)"],
            lambda: [f"UPDATE {table} SET v = UUID() WHERE n = {self.some_id()}"]
            if not self.deterministic else [f"DELETE FROM {table} WHERE n = {self.some_id()}"],
        ])()

    def names(self):
        table = f"{self.db2}.names"
        key = self.some_id()
        return self.r.choice([
            lambda: [f"INSERT INTO {table} VALUES ({self.id()}, {latin(self.r, 60)}, {text(self.r, 60)})"],
            lambda: [f"UPDATE {table} SET v = {latin(self.r, 60)}, u = {text(self.r, 60)} WHERE id BETWEEN {key} AND {key + 5}"],
            lambda: [f"USE {self.db2}", f"INSERT INTO names VALUES ({self.id()}, UPPER({latin(self.r, 60)}), LOWER({latin(self.r, 60)}))"],
            lambda: ["SET NAMES latin1", f"REPLACE INTO {table} VALUES ({key}, {latin(self.r, 40)}, {latin(self.r, 20)})", "SET NAMES utf8mb4"],
            lambda: [f"DELETE FROM {table} WHERE id < {key} ORDER BY id LIMIT 1"],
        ])()

    def savepoints(self):
        return ["BEGIN", *self.types(), "SAVEPOINT one", *self.composite(), *self.types(), "SAVEPOINT two", *self.keyless(),
                "ROLLBACK TO SAVEPOINT one", *self.onlyunique(), "RELEASE SAVEPOINT one", "COMMIT"]

    def rollback(self):
        return ["BEGIN", *self.types(), *self.composite(), "ROLLBACK"]

    def several(self):
        """One transaction over tables of both databases."""
        parts = [self.types, self.composite, self.onlyunique, self.names, self.keyless]
        return ["BEGIN", *(statement for part in self.r.sample(parts, 3) for statement in part()), "COMMIT"]

    def large(self):
        size = self.r.choice([100_000, 1_000_000])
        byte = self.r.choice("abcdef")
        return [f"INSERT INTO {self.db}.types (id, lb, mt) VALUES ({self.id()}, REPEAT('{byte}', {size}), REPEAT('ä', 20000))"]

    def dense(self):
        """One statement that changes many rows."""
        self.serial += 200
        low = self.serial - 199
        rows = ", ".join(f"({low + n}, {self.r.randint(-9, 9)}, {text(self.r, 10)})" for n in range(200))
        return ["BEGIN", f"INSERT INTO {self.db}.types (id, i32, vc) VALUES {rows}",
                f"UPDATE {self.db}.types SET i64 = i32, vc = NULL WHERE id BETWEEN {low} AND {low + 199}",
                f"DELETE FROM {self.db}.types WHERE id BETWEEN {low + 10} AND {low + 199}", "COMMIT"]

    def ddl(self):
        if len(self.extra) < 2:
            return self.new_table()
        name = self.r.choice(self.extra)
        return self.r.choice([self.new_table, self.drop_table, self.rename_table, lambda: self.alter(name),
                              lambda: self.alter(name), lambda: self.fill(name), lambda: [f"TRUNCATE TABLE {name}"],
                              lambda: [f"CREATE INDEX i{self.id()} ON {name} (v, n)"], self.table_like])()

    def new_table(self):
        self.tables += 1
        name = f"{self.db}.extra{self.tables}"
        self.extra.append(name)
        self.added[name] = []
        key = self.r.choice(["PRIMARY KEY (id)", "UNIQUE KEY (id)", "KEY (id)"])
        return [f"CREATE TABLE {name} (id INT NOT NULL, v VARCHAR(50), n BIGINT DEFAULT 5, {key})", *self.fill(name)]

    def fill(self, name):
        rows = ", ".join(f"({self.id()}, {text(self.r, 20)})" for _ in range(5))
        return [f"INSERT INTO {name} (id, v) VALUES {rows}"]

    def table_like(self):
        self.tables += 1
        like, name = self.r.choice(self.extra), f"{self.db}.extra{self.tables}"
        self.extra.append(name)
        self.added[name] = list(self.added[like])
        return [f"CREATE TABLE {name} LIKE {like}", f"INSERT INTO {name} SELECT * FROM {like}"]

    def drop_table(self):
        name = self.extra.pop(self.r.randrange(len(self.extra)))
        del self.added[name]
        return [f"DROP TABLE {name}"]

    def rename_table(self):
        self.tables += 1
        at = self.r.randrange(len(self.extra))
        old, new = self.extra[at], f"{self.db}.extra{self.tables}"
        self.extra[at] = new
        self.added[new] = self.added.pop(old)
        return [f"RENAME TABLE {old} TO {new}"]

    def alter(self, name):
        if self.added[name] and self.r.random() < 0.4:
            column = self.added[name].pop()
            return [f"ALTER TABLE {name} DROP COLUMN {column}"]
        kind = self.r.choice(list(TYPES))
        column = f"c{self.id()}"
        self.added[name].append(column)
        where = self.r.choice(["", " FIRST", " AFTER id"])
        return [f"ALTER TABLE {name} ADD COLUMN {column} {TYPES[kind][0]}{where}",
                f"UPDATE {name} SET {column} = {value(self.r, kind)}"]


def run(server, workload, count, setup=True, on_step=None):
    """Runs a workload over one connection; `on_step(n)` is called after each transaction. Returns the statements run."""
    db = connect(server, autocommit=True, charset="utf8mb4")
    done = 0
    try:
        with db.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            steps = [*(workload.setup() if setup else ()), *workload.steps(count)]
            for number, step in enumerate(steps):
                for statement in step:
                    try:
                        cursor.execute(statement)
                    except Exception as error:
                        raise RuntimeError(f"{error} in {statement[:2000]}") from error
                    done += 1
                if on_step:
                    on_step(number)
    finally:
        db.close()
    return done
