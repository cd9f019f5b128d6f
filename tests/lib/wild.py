"""A wilder workload than workload.py: statements that a MariaDB source may well refuse, and what applications do around
them. Settings of sessions, zero dates, engines without transactions, temporary tables, XA, LOAD DATA, several-table
changes, statements that fail half-way, triggers, sequences of generated values.

Statements that fail are no failure: what counts is that a replica of the server has the same rows afterwards.
"""

import pathlib
import random

from omnibus import connect
from workload import TYPES, blob, clock, text, typed_columns, value

ZERO = ["'0000-00-00'", "'2020-00-00'", "'2020-02-00'", "'0000-00-00 00:00:00'", "0", "'0001-01-01'"]
COLLATIONS = ["utf8mb4 COLLATE utf8mb4_bin", "utf8mb4 COLLATE utf8mb4_unicode_ci", "utf8mb3", "latin1", "latin1 COLLATE latin1_bin",
              "ascii", "utf8mb4"]


class Wild:
    """Statements of one stream, in a database of its own. `form` is the format they run under."""

    def __init__(self, seed, form="ROW", files="/tmp", rows_only=False, theirs=True):
        self.r, self.form, self.files, self.theirs = random.Random(seed), form, pathlib.Path(files), theirs
        self.db, self.db2 = f"x{seed}", f"x{seed}b"
        self.serial = 0
        self.seed = seed
        # Engines without transactions leave behind what a failed statement did; as statements only they themselves can repeat that.
        self.loose = form != "STATEMENT" and theirs
        self.files_made = 0

    def setup(self):
        d, engines = self.db, ["InnoDB", "MyISAM", "Aria"]
        yield f"CREATE DATABASE {d} CHARACTER SET utf8mb4"
        yield f"CREATE DATABASE {self.db2} CHARACTER SET latin1"
        yield f"CREATE TABLE {d}.types (id INT PRIMARY KEY, {typed_columns()})"
        yield f"CREATE TABLE {d}.nokey ({typed_columns()})"
        yield f"CREATE TABLE {d}.uniq (a INT, b VARCHAR(20), c DECIMAL(20,5), v INT, UNIQUE KEY (a), UNIQUE KEY (b, c))"
        yield f"CREATE TABLE {d}.dup (a INT, b VARCHAR(10), c DATETIME(6))"
        yield f"CREATE TABLE {d}.auto (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, v INT, w VARCHAR(300), at TIMESTAMP(6) NULL)"
        yield f"CREATE TABLE {d}.stamp (id INT PRIMARY KEY, v INT, at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, dt DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6))"
        yield f"CREATE TABLE {d}.dates (id INT AUTO_INCREMENT PRIMARY KEY, d DATE, t DATETIME(3), s TIMESTAMP NULL, y YEAR, d2 DATE NOT NULL)"
        yield f"CREATE TABLE {d}.par (id INT PRIMARY KEY, v INT, KEY (v))"
        yield f"CREATE TABLE {d}.chi (id INT PRIMARY KEY, p INT, v VARCHAR(40), KEY (p))"
        yield f"CREATE TABLE {self.db2}.other (id INT PRIMARY KEY, v VARCHAR(100), w INT)"
        yield f"CREATE TABLE {d}.pre (b BLOB, t TEXT, v INT, PRIMARY KEY (b(20)), UNIQUE KEY (t(10), v))"
        yield f"CREATE TABLE {d}.big (id INT PRIMARY KEY, a LONGBLOB, b MEDIUMTEXT, n INT)"
        yield f"CREATE TABLE {d}.json (id INT PRIMARY KEY, j JSON, v INT)"
        yield f"CREATE TABLE {d}.floats (f FLOAT, d DOUBLE, n DECIMAL(65,30), v INT, KEY (f), KEY (d))"
        yield f"CREATE TABLE {d}.dkey (k DATETIME(6), e ENUM('x','y','z'), s SET('p','q','r'), b BIT(20), v INT, PRIMARY KEY (k, e, s, b))"
        for n, collation in enumerate(COLLATIONS):
            yield f"CREATE TABLE {d}.c{n} (k VARCHAR(30) CHARACTER SET {collation}, f CHAR(10) CHARACTER SET {collation}, v INT, PRIMARY KEY (k), KEY (f))"
        if self.loose:
            for engine in engines:
                yield f"CREATE TABLE {d}.e_{engine} (id INT AUTO_INCREMENT PRIMARY KEY, v INT, w VARCHAR(50), UNIQUE KEY (v)) ENGINE={engine}"

    def steps(self, count):
        names = [name for name in dir(self) if name.startswith("do_")]
        weights = [3 if name in ("do_types", "do_nokey", "do_several", "do_ddl") else 1 for name in names]
        for _ in range(count):
            step = getattr(self, self.r.choices(names, weights)[0])()
            if self.r.random() < 0.25:
                before, after = self.settings()
                step = [*before, *step, *after]
            yield step

    def settings(self):
        r = self.r
        return r.choice([
            lambda: (["SET sql_mode = ''"], ["SET sql_mode = DEFAULT"]),
            # MariaDB logs LOAD DATA as a text that cannot be read without backslashes.
            lambda: ([f"SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT{',NO_BACKSLASH_ESCAPES' if self.form == 'ROW' else ''}'"], ["SET sql_mode = DEFAULT"]),
            lambda: (["SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,PAD_CHAR_TO_FULL_LENGTH'"], ["SET sql_mode = DEFAULT"]),
            lambda: ([f"SET binlog_row_image = {r.choice(['MINIMAL', 'NOBLOB', 'FULL', 'MINIMAL'])}"], []),
            lambda: ([f"SET time_zone = '{r.choice(['+02:00', '-11:30', '+00:00'])}'"], ["SET time_zone = '+00:00'"]),
            lambda: ([f"SET timestamp = {r.randint(10**8, 2 * 10**9)}.{r.randint(0, 999999):06d}"], ["SET timestamp = DEFAULT"]),
            lambda: (["SET auto_increment_increment = 7, auto_increment_offset = 3"], ["SET auto_increment_increment = 1, auto_increment_offset = 1"]),
            lambda: (["SET foreign_key_checks = 0"], ["SET foreign_key_checks = 1"]),
            lambda: ([f"SET NAMES {r.choice(['latin1', 'binary'])}"], ["SET NAMES utf8mb4"]),
            lambda: (["SET autocommit = 0"], [r.choice(["COMMIT", "ROLLBACK", "COMMIT"]), "SET autocommit = 1"]),
            lambda: (["SET collation_connection = utf8mb4_bin"], ["SET NAMES utf8mb4"]),
            lambda: ([f"SET insert_id = {self.id() + 1000000}"], []),
            lambda: ([f"SET rand_seed1 = {r.randint(1, 10**6)}, rand_seed2 = {r.randint(1, 10**6)}"], []),
            lambda: ([f"SET binlog_annotate_row_events = {r.randint(0, 1)}"] if self.theirs else [], []),
            lambda: ([f"SET lc_time_names = '{r.choice(['de_DE', 'fr_FR', 'en_US'])}'"] if self.theirs else [], ["SET lc_time_names = 'en_US'"]),
            lambda: (["SET tx_isolation = 'SERIALIZABLE'"], ["SET tx_isolation = 'REPEATABLE-READ'"]),
            lambda: (["SET sql_mode = 'ALLOW_INVALID_DATES,TRADITIONAL'"], ["SET sql_mode = DEFAULT"]),
            lambda: ([f"USE {self.db2}"], [f"USE {self.db}"]),
        ])()

    def id(self):
        self.serial += 1
        return self.serial

    def some(self):
        return self.r.randint(1, max(self.serial, 1))

    def row(self):
        return ", ".join(value(self.r, kind) for kind in TYPES)

    def do_types(self):
        kinds = self.r.sample(list(TYPES), 3)
        sets = ", ".join(f"{kind} = {value(self.r, kind)}" for kind in kinds)
        low, t = self.some(), f"{self.db}.types"
        return [self.r.choice([
            f"INSERT INTO {t} VALUES ({self.id()}, {self.row()}), ({self.id()}, {self.row()})",
            f"UPDATE {t} SET {sets} WHERE id BETWEEN {low} AND {low + 30}",
            f"DELETE FROM {t} WHERE id = {low}",
            f"REPLACE INTO {t} VALUES ({low}, {self.row()})",
            f"INSERT INTO {t} (id, {kinds[0]}) SELECT id + 100000, {kinds[0]} FROM {t} WHERE id < 1000 AND id > {low} ON DUPLICATE KEY UPDATE {kinds[0]} = VALUES({kinds[0]})",
            f"INSERT IGNORE INTO {t} (id, i8, u8, vc, dt) VALUES ({self.some()}, 300, -1, REPEAT('long', 40), '2020-02-31')",
            f"UPDATE IGNORE {t} SET id = id + 1 WHERE id > {low}",
            f"UPDATE {t} SET id = id + 100000 WHERE id BETWEEN {low} AND {low + 2} ORDER BY id DESC",
            f"UPDATE {t} SET vc = UPPER(vc), tx = CONCAT(COALESCE(tx, ''), 'x'), lb = REVERSE(lb), i64 = u32 - i32, f64 = f32 / 3, d1 = d1 / 7 WHERE id > {low}",
        ])]

    def do_nokey(self):
        t, n = f"{self.db}.nokey", self.r.randint(-3, 3)
        kinds = self.r.sample(list(TYPES), 2)
        return [self.r.choice([
            f"INSERT INTO {t} (i8, vc, f32, dm6) VALUES ({n}, 'a', 0.1, NOW(6)), ({n}, 'a', 0.1, NOW(6)), ({n}, 'a', 0.1, NOW(6))",
            f"INSERT INTO {t} VALUES ({self.row()}), ({self.row()})",
            f"UPDATE {t} SET {kinds[0]} = {value(self.r, kinds[0])} WHERE i8 = {n}" + self.limit(2),
            f"DELETE FROM {t} WHERE i8 = {n}" + self.limit(1),
            f"UPDATE {t} SET i8 = -i8 WHERE i8 > -120",
            f"DELETE FROM {t} WHERE {kinds[0]} IS NULL" + self.limit(3),
            f"INSERT INTO {t} SELECT * FROM {t} WHERE i8 = {n}" + self.limit(5, " ORDER BY i32, f64"),
        ])]

    def limit(self, n, order=""):
        # Which rows a LIMIT takes is not the same everywhere.
        return f"{order} LIMIT {n}" if self.form != "STATEMENT" else ""

    def do_uniq(self):
        t, a = f"{self.db}.uniq", self.r.choice(["NULL", self.r.randint(0, 20)])
        b = self.r.choice(["NULL", text(self.r, 1)])
        return [self.r.choice([
            f"INSERT INTO {t} VALUES ({a}, {b}, {self.r.randint(0, 5)}, 1)",
            f"INSERT INTO {t} VALUES (NULL, NULL, NULL, 1), (NULL, NULL, NULL, 1)",
            f"REPLACE INTO {t} VALUES ({a}, {b}, {self.r.randint(0, 5)}, 2)",
            f"UPDATE {t} SET v = v + 1 WHERE a IS NULL" + self.limit(3),
            f"UPDATE {t} SET a = NULL WHERE a = {a}",
            f"UPDATE {t} SET a = {self.r.randint(0, 20)}, c = 0.00001 WHERE a = {a}",
            f"DELETE FROM {t} WHERE a IS NULL AND b IS NULL" + self.limit(1),
            f"DELETE FROM {t} WHERE v > 3 AND a <= {a}",
        ])]

    def do_dup(self):
        t = f"{self.db}.dup"
        return [self.r.choice([
            f"INSERT INTO {t} VALUES (1, 'x', NULL), (1, 'x', NULL), (2, 'y', '2020-01-01 00:00:00.000001')",
            f"INSERT INTO {t} SELECT a, b, c FROM {t}" + self.limit(4, " ORDER BY a, b, c"),
            f"DELETE FROM {t} WHERE a = 1" + self.limit(1),
            f"UPDATE {t} SET a = a + 1 WHERE b = 'x' AND a < 100" + self.limit(2),
            f"UPDATE {t} SET b = 'x'",
            f"DELETE FROM {t} WHERE a > 3",
        ])]

    def do_auto(self):
        t = f"{self.db}.auto"
        return self.r.choice([
            [f"INSERT INTO {t} (v) VALUES (1), (2), (3)", f"INSERT INTO {t} (v) VALUES (LAST_INSERT_ID())", f"UPDATE {t} SET v = LAST_INSERT_ID() WHERE id = LAST_INSERT_ID()"],
            [f"INSERT INTO {t} (id, v) VALUES (NULL, 4), (0, 5)"],
            [f"INSERT INTO {t} (id, v) VALUES ({self.r.randint(1, 5000)}, 4)"],
            [f"INSERT INTO {t} (v, w, at) VALUES (RAND() * 100, UUID(), NOW(6)), (RAND() * 100, UUID(), SYSDATE(6))"] if self.form != "STATEMENT" else [f"INSERT INTO {t} (v, at) VALUES (RAND() * 100, NOW(6))"],
            ["SET @a = 5, @b = 'text ä', @c = NULL, @d = 1.5, @e = 0xff00, @f = 18446744073709551615, @g = -1e10, @h = _latin1'\xe4'",
             f"INSERT INTO {t} (v, w) VALUES (@a, @b), (@c, @d), (1, HEX(@e)), (2, @f), (3, @g), (4, @h), (5, @nothing)"],
            [f"INSERT INTO {t} (v, w) SELECT id, LEFT(w, 3) FROM {t} ORDER BY id LIMIT 3"] if self.form != "STATEMENT" else [f"DELETE FROM {t} WHERE id < 3"],
            [f"UPDATE {t} SET v = RAND(id) * 10 WHERE id BETWEEN 1 AND 10"],
            [f"UPDATE {t} SET w = CONCAT(USER(), @@hostname), v = CONNECTION_ID()"] if self.form != "STATEMENT" else [f"UPDATE {t} SET v = CONNECTION_ID()"],
            ["SELECT LAST_INSERT_ID(777)", f"INSERT INTO {t} (v, w) VALUES (LAST_INSERT_ID(), DATE_FORMAT(NOW(), '%Y-%m-%d %M %W'))"],
            [f"ALTER TABLE {t} AUTO_INCREMENT = {self.r.randint(1, 9000)}"],
            [f"INSERT INTO {t} (v) VALUES (1)", f"DELETE FROM {t} WHERE id > 20", f"INSERT INTO {t} (v) VALUES (LAST_INSERT_ID() + 1)"],
            [f"TRUNCATE {t}"],
            [f"INSERT IGNORE INTO {t} (id, v) VALUES (5, 5), (6, 6), (NULL, 7)"],
            ["BEGIN", f"INSERT INTO {t} (v) VALUES (1)", "ROLLBACK", f"INSERT INTO {t} (v) VALUES (2)"],
            [f"PREPARE s FROM 'INSERT INTO {t} (v, w) VALUES (?, ?)'", "SET @p = 12, @q = 'pre''pared'", "EXECUTE s USING @p, @q", "DEALLOCATE PREPARE s"],
            [f"EXECUTE IMMEDIATE 'UPDATE {t} SET v = v + ? WHERE id < ?' USING 1, 5"] if self.theirs else [],
        ])

    def do_stamp(self):
        t = f"{self.db}.stamp"
        return [self.r.choice([
            f"INSERT INTO {t} (id, v) VALUES ({self.id()}, 1), ({self.id()}, 2)",
            f"UPDATE {t} SET v = v + 1 WHERE id < {self.some()}",
            f"UPDATE {t} SET v = v WHERE id > {self.some()}",
            f"REPLACE INTO {t} (id, v) VALUES ({self.some()}, 9)",
            f"INSERT INTO {t} (id, v) VALUES ({self.some()}, 3) ON DUPLICATE KEY UPDATE v = v + 10",
            f"UPDATE {t} SET at = '{clock(self.r)}', v = 0 WHERE id = {self.some()}",
        ])]

    def do_dates(self):
        t, z = f"{self.db}.dates", lambda: self.r.choice(ZERO)
        return ["SET sql_mode = ''", self.r.choice([
            f"INSERT INTO {t} (d, t, s, y, d2) VALUES ({z()}, {z()}, {z()}, 0, {z()}), (NULL, {z()}, NULL, 2020, '2020-02-29')",
            f"INSERT INTO {t} (d) VALUES ({z()})",
            f"INSERT INTO {t} (d, d2) VALUES ('2021-02-31', 'nonsense')",
            f"UPDATE {t} SET d2 = d, t = {z()} WHERE id % 3 = 0",
            f"UPDATE {t} SET d = d + INTERVAL 1 DAY, y = y + 1 WHERE id % 5 = 0",
            f"DELETE FROM {t} WHERE d = '0000-00-00' AND id % 7 = 0",
            f"ALTER TABLE {t} ADD COLUMN n{self.id()} DATE NOT NULL",
        ]), "SET sql_mode = DEFAULT"]

    def do_several(self):
        """Changes of several tables at once."""
        d, a = self.db, self.r.randint(1, 30)
        return [self.r.choice([
            f"INSERT IGNORE INTO {d}.par VALUES ({a}, {a % 5}), ({a + 1}, {a % 3})",
            f"INSERT IGNORE INTO {d}.chi VALUES ({a}, {a % 7}, 'c'), ({a + 50}, {a % 4}, 'd')",
            f"UPDATE {d}.par, {d}.chi SET par.v = par.v + 1, chi.v = CONCAT('u', par.id) WHERE par.id = chi.p AND par.id < {a}",
            f"UPDATE {d}.par LEFT JOIN {d}.chi ON chi.p = par.id SET par.v = -1 WHERE chi.id IS NULL",
            f"DELETE par, chi FROM {d}.par JOIN {d}.chi ON par.id = chi.p WHERE par.id = {a}",
            f"DELETE FROM c USING {d}.chi AS c LEFT JOIN {d}.par AS p ON p.id = c.p WHERE p.id IS NULL AND c.id < {a}",
            f"INSERT INTO {d}.par SELECT id + 40, p FROM {d}.chi WHERE id < 40 ON DUPLICATE KEY UPDATE par.v = par.v + VALUES(v)",
            f"REPLACE INTO {self.db2}.other SELECT id, CONCAT('é', v), id FROM {d}.chi",
            f"UPDATE {self.db2}.other o, {d}.par p SET o.w = p.v, p.v = o.w WHERE o.id = p.id",
            f"UPDATE {d}.par SET v = (SELECT COUNT(*) FROM {d}.chi WHERE chi.p = par.id)",
            f"DELETE FROM {d}.par WHERE id IN (SELECT p FROM {d}.chi WHERE v LIKE 'u%')",
            f"UPDATE {d}.par SET id = id + 1000 WHERE id < 10",
        ])]

    def do_text(self):
        n = self.r.randrange(len(COLLATIONS))
        t, word = f"{self.db}.c{n}", self.r.choice(["'a'", "'A'", "'a '", "'b'", "'ß'", "'ss'", "'é'", "'E'", "'z  '", "''"])
        return [self.r.choice([
            f"INSERT IGNORE INTO {t} VALUES ({word}, {word}, 1), (CONCAT({word}, 'x'), 'k', 2)",
            f"UPDATE {t} SET f = CONCAT({word}, v), v = v + 1 WHERE k = {word}",
            f"UPDATE IGNORE {t} SET k = UPPER(k)",
            f"DELETE FROM {t} WHERE k = {word}",
            f"DELETE FROM {t} WHERE f LIKE CONCAT({word}, '%')",
            f"REPLACE INTO {t} VALUES ({word}, 'rep', 3)",
            f"UPDATE {t} SET k = {word} WHERE f = 'k'" + self.limit(1),
        ])]

    def do_prefix(self):
        t = f"{self.db}.pre"
        return [self.r.choice([
            f"INSERT IGNORE INTO {t} VALUES ({blob(self.r, 50)}, {text(self.r, 30)}, {self.r.randint(0, 3)})",
            f"REPLACE INTO {t} VALUES (REPEAT('k', {self.r.randint(1, 40)}), REPEAT('v', {self.r.randint(1, 20)}), 1)",
            f"UPDATE {t} SET v = v + 1, t = CONCAT(t, 'z') WHERE LENGTH(b) > {self.r.randint(0, 40)}",
            f"DELETE FROM {t} WHERE v > 2",
        ])]

    def do_big(self):
        t, size = f"{self.db}.big", self.r.choice([255, 256, 65535, 65536, 200000, 1200000])
        return [self.r.choice([
            f"INSERT INTO {t} VALUES ({self.id()}, REPEAT(CHAR({self.r.randint(0, 255)}), {size}), REPEAT('ä', {size // 2}), 1)",
            f"UPDATE {t} SET n = n + 1",
            f"UPDATE {t} SET a = CONCAT(a, 'tail') WHERE id < {self.some()}",
            f"DELETE FROM {t} WHERE id < {self.some()}",
        ])]

    def do_json(self):
        t = f"{self.db}.json"
        return [self.r.choice([
            f"""INSERT INTO {t} VALUES ({self.id()}, '{{"a": [1, 2.5, "ä", null, true], "b": {{}}}}', 1), ({self.id()}, '[]', 2), ({self.id()}, NULL, 3)""",
            f"""INSERT INTO {t} VALUES ({self.id()}, JSON_OBJECT('k', 'v', 'n', 5), 1)""",
            f"UPDATE {t} SET v = v + 1 WHERE id < {self.some()}",
            f"UPDATE {t} SET j = JSON_SET(j, '$.a', 'new') WHERE id = {self.some()}",
            f"DELETE FROM {t} WHERE id = {self.some()}",
        ])]

    def do_floats(self):
        t, r = f"{self.db}.floats", self.r
        return [r.choice([
            f"INSERT INTO {t} VALUES ({r.random() * 10**r.randint(-30, 30)}, {r.random() * 10**r.randint(-300, 300)}, {r.random()}, 1), (0.1, 0.1, 0.1, 2), (-0.0, -0.0, -0.0, 3)",
            f"UPDATE {t} SET f = f * 3, d = d / 7, n = n * 1.1 WHERE ABS(f) < 1e20 AND ABS(d) < 1e200 AND n < 1e20",
            f"UPDATE {t} SET v = v + 1 WHERE f < 0.5",
            f"DELETE FROM {t} WHERE v > 4",
        ])]

    def do_dkey(self):
        t, r = f"{self.db}.dkey", self.r
        key = f"'{clock(r)}.{r.randint(0, 999999):06d}', {r.randint(1, 3)}, {r.randint(0, 7)}, {r.randint(0, 2**20 - 1)}"
        return [r.choice([
            f"INSERT IGNORE INTO {t} VALUES ({key}, 1), ({key}, 2)",
            f"UPDATE {t} SET v = v + 1, s = 'p,r' WHERE e = 'y'",
            f"UPDATE IGNORE {t} SET b = b + 1, k = k + INTERVAL 1 MICROSECOND",
            f"DELETE FROM {t} WHERE FIND_IN_SET('q', s) AND e <> 'x'",
        ])]

    def do_transaction(self):
        parts = [self.do_types, self.do_nokey, self.do_uniq, self.do_auto, self.do_several, self.do_text, self.do_floats, self.do_dkey]
        if self.loose:
            parts.append(self.do_engines)
        inside = [statement for part in self.r.sample(parts, 4) for statement in part() if not self.ends_transaction(statement)]
        at = self.r.randint(0, len(inside))
        body = [*inside[:at], "SAVEPOINT `s p`", *inside[at:], self.r.choice(["ROLLBACK TO `s p`", "RELEASE SAVEPOINT `s p`", "SAVEPOINT two"]),
                *self.do_stamp()]
        return ["BEGIN", *body, self.r.choice(["COMMIT", "COMMIT", "ROLLBACK", "COMMIT AND CHAIN", "ROLLBACK"]), "COMMIT"]

    @staticmethod
    def ends_transaction(statement):
        return statement.split()[0] in ("ALTER", "TRUNCATE", "CREATE", "DROP", "RENAME", "BEGIN", "ROLLBACK", "COMMIT")

    def do_engines(self):
        """Transactional and other tables, and statements that fail half-way."""
        if not self.loose:
            return []
        d, engine, n = self.db, self.r.choice(["InnoDB", "MyISAM", "Aria"]), self.r.randint(0, 30)
        t = f"{d}.e_{engine}"
        return [self.r.choice([
            f"INSERT INTO {t} (v, w) VALUES ({n}, 'one'), ({n + 1}, 'two'), ({n + 2}, 'three')",
            f"INSERT INTO {t} (v) VALUES ({self.id() + 100}), ({n})",
            f"UPDATE {t} SET v = v + 1 WHERE v > {n} ORDER BY v",
            f"UPDATE {t} SET w = 'w' WHERE v < {n}",
            f"DELETE FROM {t} WHERE v > {n} AND v < 100",
            f"INSERT INTO {t} (v) SELECT v FROM {d}.e_InnoDB",
            f"REPLACE INTO {t} (v, w) VALUES ({n}, 'rep')",
        ])]

    def do_temporary(self):
        d = self.db
        name = self.r.choice(["tmp1", "tmp2", "auto"])
        rows = f"INSERT INTO {d}.chi SELECT id + {self.id() + 10000}, id, v FROM {d}.{name} WHERE id < 3"
        return [f"CREATE TEMPORARY TABLE {d}.{name} (id INT PRIMARY KEY, v VARCHAR(20))",
                f"INSERT INTO {d}.{name} VALUES (1, 'one'), (2, 'two'), (3, UUID())" if self.form != "STATEMENT" else f"INSERT INTO {d}.{name} VALUES (1, 'one'), (2, 'two')",
                rows, self.r.choice([f"UPDATE {d}.{name} SET v = 'new'", f"ALTER TABLE {d}.{name} ADD x INT", f"CREATE TEMPORARY TABLE {d}.tmp3 AS SELECT * FROM {d}.{name}"]),
                "BEGIN", f"DELETE FROM {d}.{name} WHERE id = 1", f"UPDATE {d}.par SET v = 5 WHERE id = 3", self.r.choice(["COMMIT", "ROLLBACK"]),
                f"DROP TEMPORARY TABLE {d}.{name}", f"DROP TEMPORARY TABLE IF EXISTS {d}.tmp3"]

    def do_xa(self):
        x = f"'x{self.seed}_{self.id()}'"
        inside = [s for s in [*self.do_types(), *self.do_uniq(), *self.do_several()]]
        return [f"XA START {x}", *inside, f"XA END {x}", *self.r.choice([
            [f"XA PREPARE {x}", f"XA COMMIT {x}"], [f"XA COMMIT {x} ONE PHASE"], [f"XA PREPARE {x}", f"XA ROLLBACK {x}"], [f"XA ROLLBACK {x}"]])]

    def do_load(self):
        self.files_made += 1
        path = self.files / f"wild-{self.seed}-{self.files_made}.txt"
        lines = [f"{self.id() + 20000}\tvalue {n} \\N\t{n}" for n in range(self.r.choice([1, 5, 20]))]
        path.write_text("\n".join(lines) + "\n")
        local = self.r.choice(["", "LOCAL "])
        return [self.r.choice([
            f"LOAD DATA {local}INFILE '{path}' INTO TABLE {self.db2}.other (id, v, w)",
            f"LOAD DATA {local}INFILE '{path}' IGNORE INTO TABLE {self.db2}.other CHARACTER SET utf8mb4 (id, v, @n) SET w = @n * 2",
            f"LOAD DATA {local}INFILE '{path}' REPLACE INTO TABLE {self.db2}.other FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '\\n' IGNORE 1 LINES (id, v, w)",
        ])]

    def do_ddl(self):
        d, n = self.db, self.r.randint(1, 4)
        t, c = f"{d}.t{n}", f"c{self.r.randint(1, 5)}"
        kind = TYPES[self.r.choice(list(TYPES))][0]
        return self.r.choice([
            [f"CREATE TABLE {t} (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(30) DEFAULT 'dö' COMMENT 'it''s', u INT UNSIGNED ZEROFILL, KEY (v)) COMMENT='x' ROW_FORMAT=DYNAMIC"],
            [f"CREATE OR REPLACE TABLE {t} (id INT, v INT, KEY (id))"] if self.theirs else [],
            [f"CREATE TABLE IF NOT EXISTS {t} LIKE {d}.types"],
            [f"CREATE TABLE {t} AS SELECT * FROM {d}.par"],
            [f"CREATE TABLE {t} (id INT PRIMARY KEY) SELECT id, v AS x, p + 0.5 AS h FROM {d}.chi"],
            [f"CREATE TABLE IF NOT EXISTS {t} SELECT 1 AS id, 'a' AS v, NOW() AS n"],
            [f"DROP TABLE {t}"], [f"DROP TABLE IF EXISTS {t}, {d}.nothere"], [f"DROP TABLE {t}, {d}.nothere"],
            [f"RENAME TABLE {t} TO {d}.t{n + 1}"], [f"RENAME TABLE {t} TO {self.db2}.t{n}, {self.db2}.t{n} TO {t}"],
            [f"RENAME TABLE {d}.t1 TO {d}.tx, {d}.t2 TO {d}.t1, {d}.tx TO {d}.t2"],
            [f"ALTER TABLE {t} ADD COLUMN {c} {kind}", f"UPDATE {t} SET {c} = NULL"], [f"ALTER TABLE {t} ADD COLUMN IF NOT EXISTS {c} INT DEFAULT 7 AFTER id"],
            [f"ALTER TABLE {t} DROP COLUMN {c}"], [f"ALTER TABLE {t} DROP COLUMN IF EXISTS {c}"], [f"ALTER TABLE {t} CHANGE v v2 VARCHAR(60)"],
            [f"ALTER TABLE {t} CHANGE v2 v VARCHAR(50) CHARACTER SET latin1 NOT NULL FIRST"], [f"ALTER TABLE {t} ADD PRIMARY KEY (id)"], [f"ALTER TABLE {t} DROP PRIMARY KEY"],
            [f"ALTER TABLE {t} ADD UNIQUE KEY u1 (v(5))", f"ALTER TABLE {t} DROP KEY u1"], [f"ALTER TABLE {t} ADD INDEX IF NOT EXISTS i2 (id)"], [f"ALTER TABLE {t} DROP INDEX IF EXISTS i2"],
            [f"ALTER TABLE {t} RENAME COLUMN v TO vv"], [f"ALTER TABLE {t} RENAME COLUMN vv TO v"], [f"ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'new'"], [f"ALTER TABLE {t} ALTER v DROP DEFAULT"],
            [f"ALTER TABLE {t} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"], [f"ALTER TABLE {t} DEFAULT CHARACTER SET latin1"], [f"ALTER TABLE {t} COMMENT = 'new'"],
            [f"ALTER TABLE {t} ENGINE = InnoDB"], [f"ALTER TABLE {t} RENAME TO {d}.t{n + 1}"], [f"ALTER TABLE {t} ORDER BY id"], [f"ALTER TABLE {t} FORCE"],
            [f"ALTER TABLE {t} ADD COLUMN x1 INT, ADD COLUMN x2 TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), ADD KEY kx (x1, x2), DROP COLUMN x1"],
            [f"ALTER TABLE {t} ADD COLUMN (y1 INT, y2 VARCHAR(5))"], [f"ALTER TABLE {t} DISABLE KEYS"], [f"ALTER TABLE {t} AUTO_INCREMENT = 77"],
            [f"CREATE INDEX ix ON {t} (id)"], [f"CREATE UNIQUE INDEX IF NOT EXISTS ix2 ON {t} (id, v(3))"], [f"DROP INDEX ix ON {t}"], [f"DROP INDEX IF EXISTS ix2 ON {t}"],
            [f"TRUNCATE TABLE {t}"], [f"INSERT INTO {t} (id) VALUES ({self.id()}), ({self.id()})"], [f"INSERT INTO {t} (v) VALUES ('x'), ('y')"], [f"INSERT INTO {t} (v) VALUES (5)", f"UPDATE {t} SET v = 6"],
            [f"DELETE FROM {t}"], [f"UPDATE {t} SET id = id + 1"], [f"ANALYZE TABLE {t}", f"OPTIMIZE TABLE {t}", f"CHECK TABLE {t}"], ["FLUSH TABLES"],
            [f"CREATE DATABASE {d}c", f"CREATE TABLE {d}c.t (id INT)", f"INSERT INTO {d}c.t VALUES (1)", f"DROP DATABASE {d}c"],
            [f"CREATE DATABASE IF NOT EXISTS {d}", f"ALTER DATABASE {self.db2} CHARACTER SET latin1 COLLATE latin1_bin", f"DROP DATABASE IF EXISTS {d}nothere"],
            [f"CREATE OR REPLACE DATABASE {d}d"] if self.theirs else [],
            [f"LOCK TABLES {d}.par WRITE, {d}.chi READ", f"UPDATE {d}.par SET v = v + 1", "UNLOCK TABLES"],
        ])


def run(server, workload, count, options=(), on_refused=None):
    """Runs a workload over one connection, whatever the server says; the number of statements done and refused."""
    db = connect(server, autocommit=True, charset="utf8mb4", local_infile=True)
    done, refused = 0, 0
    try:
        with db.cursor() as cursor:
            for statement in [*options, "SET time_zone = '+00:00'", f"SET SESSION binlog_format = {workload.form}"]:
                cursor.execute(statement)
            for statement in workload.setup():
                cursor.execute(statement)
            cursor.execute(f"USE {workload.db}")
            for step in workload.steps(count):
                for statement in step:
                    try:
                        cursor.execute(statement)
                        done += 1
                    except Exception as error:  # the source's own affair
                        refused += 1
                        if on_refused:
                            on_refused(statement, error)
            cursor.execute("ROLLBACK")
    finally:
        db.close()
    return done, refused
