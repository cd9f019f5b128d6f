"""Generated statements for `tests/e2e/sql/differential.py --generate`: joins, subqueries, grouping, set operations, types, collations,
NULLs, and changes of rows, all from a seed.

Operands have matching types, but for the conversions that MySQL and MariaDB agree on: where they differ is for golden scripts.
"""

import random
import re
import unicodedata

import expressions

ENUM = ["'a'", "'b'", "'c'"]
VALUES = {
    "int": ["0", "1", "2", "3", "-1", "7", "100", "2147483647", "NULL"],
    "dec": ["0.00", "1.00", "1.50", "-2.25", "3.10", "99.99", "NULL"],
    "text": ["''", "'a'", "'A'", "'b'", "'ab'", "'B '", "'ä'", "'1'", "'10'", "'z'", "NULL"],
    "date": ["'2024-02-29'", "'2024-01-01'", "'2023-12-31'", "'2000-01-01'", "NULL"],
}
COLUMNS = {"i": "int", "j": "int", "b": "int", "d": "dec", "v": "text", "w": "text", "l": "text", "t": "date", "m": "date"}
TYPES = {"i": "INT", "j": "INT", "b": "BIGINT", "d": "DECIMAL(8,2)", "v": "VARCHAR(10)", "w": "VARCHAR(10) COLLATE utf8mb4_bin",
         "l": "VARCHAR(10) CHARACTER SET latin1", "t": "DATE", "m": "DATETIME"}
TABLES = ("t1", "t2", "t3")


class Generator:
    """Statements over three tables whose columns are alike."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.aliases, self.serial = [], 0
        self.wide = expressions.Expressions(self.r)

    def setup(self):
        yield from expressions.setup(self.r)
        for table in TABLES:
            keys = "".join(f", {self.r.choice(['KEY', 'KEY', 'INDEX'])} k{at} ({', '.join(self.r.sample(list(COLUMNS), self.r.randint(1, 2)))})"
                           for at in range(self.r.randint(0, 4)))
            columns = ", ".join(f"{name} {TYPES[name]}" for name in COLUMNS)
            yield f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns}{keys})"
            rows = ", ".join(f"({at}, {', '.join(self.r.choice(VALUES[kind]) for kind in COLUMNS.values())})"
                             for at in range(self.r.choice([0, 3, 12, 30])))
            if rows:
                yield f"INSERT INTO {table} VALUES {rows}"

    def column(self, kind):
        name = self.r.choice([name for name, of in COLUMNS.items() if of == kind])
        return f"{self.r.choice(self.aliases)}.{name}"

    def value(self, kind, depth=2):
        """An expression of a kind."""
        r = self.r
        if depth <= 0 or r.random() < .35:
            if self.aliases and r.random() < .7:
                return self.column(kind)
            text = r.choice([text for text in VALUES[kind] if text.isascii()])
            if text == "NULL":
                # Arithmetic with a bare NULL is of doubles here, of decimals in MariaDB.
                return {"int": "CAST(NULL AS SIGNED)", "dec": "CAST(NULL AS DECIMAL(8,2))"}.get(kind, text)
            return f"DATE{text}" if kind == "date" else text
        sub = lambda of=kind: self.value(of, depth - 1)
        common = [lambda: f"COALESCE({sub()}, {sub()})", lambda: f"IF({self.condition(depth - 1)}, {sub()}, {sub()})",
                  lambda: f"CASE WHEN {self.condition(depth - 1)} THEN {sub()} ELSE {sub()} END", lambda: f"NULLIF({sub()}, {sub()})"]
        own = {
            "int": [lambda: f"({sub()} + {r.randint(0, 9)})", lambda: f"({sub()} % {r.randint(2, 7)})", lambda: f"ABS({sub()})",
                    lambda: f"SIGN({sub('dec')})", lambda: f"CHAR_LENGTH({sub('text')})", lambda: f"YEAR({sub('date')})",
                    lambda: f"DATEDIFF({sub('date')}, {sub('date')})", lambda: f"({sub()} DIV {r.randint(2, 9)})", lambda: f"-({sub()})",
                    lambda: f"LOCATE({sub('text')}, {sub('text')})", lambda: f"GREATEST({sub()}, {sub()})", lambda: f"({sub()} IS NULL)"],
            "dec": [lambda: f"({sub()} + {sub()})", lambda: f"({sub()} * 1.5)", lambda: f"ROUND({sub()} * 1.00, 1)", lambda: f"({sub()} - {sub('int')})",
                    lambda: f"TRUNCATE({sub()}, 0)", lambda: f"LEAST({sub()}, {sub()})"],
            "text": [lambda: f"CONCAT({sub()}, {sub()})", lambda: f"UPPER({sub()})", lambda: f"LOWER({sub()})", lambda: f"LEFT({sub()}, 1)",
                     lambda: f"TRIM({sub()})", lambda: f"REPLACE({sub()}, 'a', 'xx')", lambda: f"REVERSE({sub()})", lambda: f"LPAD({sub()}, 4, '-')",
                     lambda: f"CONCAT({sub('int')})", lambda: f"SUBSTRING({sub()}, 2)"],
            "date": [lambda: f"DATE({sub()})", lambda: f"LAST_DAY({sub()})", lambda: f"CAST({sub()} AS DATE)"],
        }[kind]
        return r.choice(own * 2 + common)()

    def kind(self):
        return self.r.choice(["int", "int", "dec", "text", "text", "date"])

    def condition(self, depth=2):
        r = self.r
        if depth > 0 and r.random() < .4:
            sub = lambda: self.condition(depth - 1)
            return r.choice([lambda: f"({sub()} AND {sub()})", lambda: f"({sub()} OR {sub()})", lambda: f"NOT ({sub()})",
                             lambda: f"({sub()} XOR {sub()})", lambda: f"({sub()}) IS {r.choice(['', 'NOT '])}{r.choice(['TRUE', 'FALSE', 'UNKNOWN'])}"])()
        kind = self.kind()
        one, two, three = (self.value(kind, depth - 1) for _ in range(3))
        pick = r.random()
        if pick < .5:
            return f"{one} {r.choice(['=', '<>', '<', '<=', '>', '>=', '<=>'])} {two}"
        if pick < .6:
            return f"{one} {r.choice(['', 'NOT '])}IN ({two}, {three})"
        if pick < .7:
            return f"{one} {r.choice(['', 'NOT '])}BETWEEN {two} AND {three}"
        if pick < .8:
            return f"{one} IS {r.choice(['', 'NOT '])}NULL"
        if pick < .86:
            return f"{self.value('text', depth - 1)} {r.choice(['', 'NOT '])}LIKE {r.choice(['%a%', 'a%', '_', '%', 'A_'])!r}"
        if self.aliases and depth > 0:
            return self.subquery_condition(kind, one)
        return f"{one} = {two}"

    def alias(self):
        self.serial += 1
        return f"x{self.serial}"

    def inner(self, kind):
        """A subquery of one column, which may read the query around it."""
        outer, alias = self.aliases, self.alias()
        table = self.r.choice(TABLES)
        self.aliases = [alias]
        wanted = self.value(kind, 1)
        self.aliases = [alias, *outer] if self.r.random() < .5 else [alias]
        where = self.condition(1)
        self.aliases = outer
        return wanted, f"FROM {table} {alias} WHERE {where}"

    def subquery_condition(self, kind, one):
        wanted, rest = self.inner(kind)
        quantified = f"{one} {self.r.choice(['=', '<', '>='])} {self.r.choice(['ANY', 'ALL'])} (SELECT {wanted} {rest})"
        # MariaDB loses the NULLs and the collation of a quantified subquery inside of another.
        if " ANY (" in rest or " ALL (" in rest or " ANY (" in one or " ALL (" in one:
            quantified = f"{one} IN (SELECT {wanted} {rest})"
        return self.r.choice([f"{one} {self.r.choice(['', 'NOT '])}IN (SELECT {wanted} {rest})", f"{self.r.choice(['', 'NOT '])}EXISTS (SELECT 1 {rest})",
                              quantified,
                              f"{one} {self.r.choice(['=', '<', '>'])} (SELECT {self.r.choice(['MAX', 'MIN'])}({wanted}) {rest})"])

    def tables(self):
        aliases = [self.alias() for _ in range(self.r.choice([1, 1, 1, 2, 2, 3]))]
        text = f"{self.r.choice(TABLES)} {aliases[0]}"
        for at, alias in enumerate(aliases[1:], 1):
            self.aliases = aliases[:at + 1]
            kind = self.r.choice(["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN"])
            column = self.r.choice(list(COLUMNS))
            on = self.r.choice([f"{aliases[at - 1]}.{column} = {alias}.{column}", f"{aliases[at - 1]}.id = {alias}.i", self.condition(1)])
            text += f" {kind} {self.r.choice(TABLES)} {alias}" + ("" if kind == "CROSS JOIN" else f" ON {on}")
        self.aliases = aliases
        return text

    def select(self, kinds):
        r, source = self.r, self.tables()
        where = f" WHERE {self.condition()}" if r.random() < .8 else ""
        if r.random() < .3:
            keys = [self.value(kind, 1) for kind in kinds]
            text = f"SELECT {', '.join(f'{key} c{at}' for at, key in enumerate(keys))} FROM {source}{where} GROUP BY {', '.join(f'c{at}' for at in range(len(keys)))}"
            having = f" HAVING {r.choice(['COUNT(*) > 1', 'MAX(' + self.value('int', 1) + ') > 1', 'COUNT(DISTINCT ' + self.value('text', 1) + ') = 1'])}"
            return text + (having if r.random() < .5 else "")
        columns = ", ".join(f"{self.value(kind)} c{at}" for at, kind in enumerate(kinds))
        return f"SELECT {r.choice(['', '', 'DISTINCT '])}{columns} FROM {source}{where}"

    def aggregates(self):
        source = self.tables()
        parts = [f"{self.r.choice(['COUNT', 'MIN', 'MAX', 'SUM', 'COUNT(DISTINCT', 'SUM(DISTINCT'])}({self.value('int', 1)})" for _ in range(2)]
        parts = [part.replace("(DISTINCT(", "(DISTINCT ") for part in parts]
        return f"SELECT COUNT(*), {', '.join(parts)}, AVG({self.value('dec', 1)}), MIN({self.value('date', 1)}) FROM {source} WHERE {self.condition()}"

    def statement(self):
        r = self.r
        self.aliases, self.serial = [], 0
        if r.random() < .3:
            return self.wide.statement()
        pick = r.random()
        if pick < .08:
            table = r.choice(TABLES)
            self.aliases = [table]
            name, kind = r.choice([item for item in COLUMNS.items() if item[1] in ("int", "dec", "date")])
            return r.choice([f"UPDATE {table} SET {name} = {r.choice(VALUES[kind])} WHERE {self.condition()}",
                             f"DELETE FROM {table} WHERE {self.condition()} ORDER BY id LIMIT 2"])
        if pick < .2:
            return self.aggregates()
        kinds = [self.kind() for _ in range(r.randint(1, 3))]
        if pick < .35:
            operation = r.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
            return f"{self.select(kinds)} {operation} {self.select(kinds)}"
        return self.select(kinds)


COLLATIONS = (1267, 1270, 1271)
MERGES = ("GROUP BY", "DISTINCT", "UNION", "EXCEPT", "INTERSECT")


def folded(value):
    """Text as far as collations tell it apart: which of equal ones stands for a group is open."""
    if not isinstance(value, bytes):
        return value
    text = unicodedata.normalize("NFD", value.decode("utf-8", "replace")).lower().rstrip()
    return "".join(letter for letter in text if not unicodedata.combining(letter))


def rows_of(sql, outcome):
    """What two servers must agree on, whatever the order of rows; of failures that there is one."""
    kind, *rest = outcome
    if kind != "rows":
        return kind, (rest[0] if kind == "ok" else "")
    fold = folded if any(word in sql for word in MERGES) else lambda value: value
    return kind, sorted(repr(tuple(map(fold, row))) for row in rest[1])


def here(statement):
    """A pair has what the peer is asked instead."""
    return statement if isinstance(statement, str) else statement[0]


def outcomes(runner, several):
    return [runner.outcome(here(each) if runner.engine or isinstance(each, str) else each[1]) for each in several]


def unmixed(sql, outcomes):
    """MariaDB refused to mix collations because it does not take what a function gives for ASCII."""
    return any(outcome[0] == "error" and outcome[1] in COLLATIONS for outcome in outcomes) and expressions.ASCII.search(sql)


# MySQL 9.7 compares an integer with a list of DOUBLE constants as integers, has modes of its own for weeks with a negative one, takes '2'
# for a member's number where an index of an ENUM is read, and cuts what REPLACE makes longer in a temporary table. CHAR(.. USING utf8mb4)
# has its own default collation. Of equal texts GREATEST and LEAST give either.
ODD = re.compile(r"IN \([^()]*\de|WEEK\(.*, -\d\)|\be (=|<=>|IN) |REPLACE\(|USING utf8mb4|(GREATEST|LEAST)\([^()]*SPACE")


def excused(peer, sql, outcomes):
    """Whether a difference is the peer's own."""
    if peer == "MariaDB":
        return unmixed(sql, outcomes)
    # 9.7 has MD5 and SHA1 in a component only, 8.4 as we do.
    return ODD.search(sql) or any(outcome[:2] == ("error", 1305) for outcome in outcomes)


def shown(answer, answers):
    """What of an answer is not in all of them."""
    for at, (kind, rest) in enumerate(answer):
        if any(other[at] != (kind, rest) for other in answers.values()):
            if kind != "rows":
                return f"statement {at}: {kind} {rest}"
            others = [other[at][1] for other in answers.values() if other[at][0] == "rows"]
            return f"statement {at}: {[row for row in rest if not all(row in other for other in others)]}"[:600]
    return "the same"


def compare(runners, number, seed):
    """Runs statements against all runners, the peer's last; prints what differs. How many differ."""
    generator, failed = Generator(seed), 0
    peer = list(runners)[-1]
    for runner in runners.values():
        runner.session("").execute("DROP DATABASE IF EXISTS golden")
        runner.close()
    # MariaDB does not see that an expression of GROUP BY is one.
    setup = ["SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'", *generator.setup()]
    for sql in setup:
        for runner in runners.values():
            runner.outcome(sql)
    for _ in range(number):
        made = generator.statement()
        several = [made] if isinstance(made, str) else made
        raw = {name: outcomes(runner, several) for name, runner in runners.items()}
        answers = {name: [rows_of(here(sql), outcome) for sql, outcome in zip(several, each)] for name, each in raw.items()}
        sql = ";\n".join(map(here, several))
        if any(answer != answers[peer] for answer in answers.values()) and not excused(peer, sql, raw[peer]):
            failed += 1
            if failed == 1:
                print(*setup, sep=";\n", end=";\n")
            print(f"{sql};", *(f"  {name}: {shown(answer, answers)}" for name, answer in answers.items()), sep="\n", flush=True)
    for runner in runners.values():
        # The peer may be others' as well.
        runner.session("").execute("DROP DATABASE golden")
        runner.close()
    return failed
