"""Random tables of many types, and queries over them, for `tests/e2e/sql/metamorphic.py`: text that any server would take.

A table of a query is a `Factor`: the same query can be rendered with its indexes ignored or forced, or over derived and common tables.
"""

import random
from dataclasses import dataclass

TABLES = ("t0", "t1", "t2")
# Name, definition, family, values.
NUMBERS = ["0", "1", "2", "3", "7", "-1", "-3", "100"]
COLUMNS = {
    "a": ("INT", "number", NUMBERS), "b": ("BIGINT", "number", [*NUMBERS, "20", "45", "9007199254740993", "9007199254740992"]),
    "u": ("BIGINT UNSIGNED", "number", ["0", "1", "2", "7", "18446744073709551615", "9223372036854775808"]),
    "d": ("DECIMAL(8,2)", "number", ["0", "0.5", "1", "1.50", "-2.25", "99.99", "7"]),
    "q": ("DECIMAL(20,0)", "number", ["0", "1", "-3", "9007199254740993", "9007199254740992"]),
    "f": ("DOUBLE", "number", ["0", "1e0", "-0.5e0", "1.5", "3", "1e10", "-0e0", "9007199254740992"]),
    "r": ("FLOAT", "number", ["0", "0.1", "1", "1.5", "-3", "16777217"]),
    "y": ("YEAR", "year", ["2024", "1999", "2001", "0", "2155"]),
    "z": ("BIT(9)", "bit", ["0", "1", "3", "5", "7", "511"]),
    "c": ("VARCHAR(10)", "text", ["''", "'a'", "'A'", "'ab'", "'b'", "'1'", "'10x'", "'é'", "' a'", "'zz'", "'a '", "'a b'", "'2024-01-01'"]),
    "v": ("VARCHAR(10) COLLATE utf8mb4_unicode_ci", "text", ["''", "'a'", "'Á'", "'ab'", "'ss'", "'ß'", "'ßa'", "'1'", "'a '", "'a\\tb'", "'o'"]),
    "w": ("VARCHAR(10) COLLATE utf8mb4_uca1400_as_cs", "text", ["''", "'a'", "'A'", "'á'", "'áa'", "'ab'", "'Ab'", "'1'", "'a '", "'é'"]),
    "x": ("TEXT COLLATE utf8mb4_bin", "text", ["''", "'a'", "'A'", "'ab'", "'ab '", "'b'", "'1.5'", "'-3'"]),
    "l": ("VARCHAR(10) CHARACTER SET latin1", "text", ["''", "'a'", "'A'", "'é'", "'e'", "'ab'", "'7'", "'a '"]),
    "o": ("CHAR(4)", "text", ["''", "'a'", "'A'", "'ab'", "'abcd'", "'1'", "'é'"]),
    "k": ("VARBINARY(6)", "bytes", ["''", "'a'", "'A'", "'ab'", "'a '", "x'00'", "'1'"]),
    "n": ("ENUM('b','a','','B2','10')", "text", ["'a'", "'b'", "'B2'", "''", "'10'"]),
    "s": ("SET('c','a','b')", "text", ["'a'", "'a,b'", "'c'", "''", "'c,a,b'"]),
    "e": ("DATE", "time", ["'2024-01-01'", "'2024-02-29'", "'1999-12-31'", "'2024-01-02'", "'2001-01-01'"]),
    "m": ("DATETIME(1)", "time", ["'2024-01-01'", "'2024-01-01 12:00:00'", "'2024-01-01 12:00:00.5'", "'1999-12-31 23:59:59.9'"]),
    "p": ("TIMESTAMP(1) NULL", "time", ["'2024-01-01'", "'2024-01-01 12:00:00'", "'2024-10-27 02:30:00'", "'2024-10-27 03:30:00'"]),
    "h": ("TIME(1)", "time", ["'00:00:00'", "'12:00:00'", "'-01:30:00'", "'100:00:01.5'", "'23:59:59'"]),
}
FAMILIES = sorted({family for _, family, _ in COLUMNS.values()})
# Values of other shapes, that columns of any type are compared with.
STRANGE = ["1.5", "'1'", "'01'", "'1x'", "''", "'abc'", "0.1", "1e0", "x'61'", "b'101'", "TRUE", "20240101", "DATE'2024-01-01'",
           "TIMESTAMP'2024-01-01 12:00:00.05'", "TIME'12:00:00'", "'2024-01-01 00:00:00.05'", "'12:00'", "99", "1999", "-1", "1e30", "18446744073709551616"]



@dataclass
class Factor:
    """One member of FROM. `inner` is the text of a derived table; `on` stands behind the join, USING among it."""

    join: str
    table: str
    alias: str
    inner: str
    on: str


class Maker:
    """Random tables and expressions."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.columns, self.keys = [], {}

    # Tables

    def tables(self):
        r = self.random
        self.columns = ["a", "c", *r.sample([name for name in COLUMNS if name not in "ac"], 6)]
        for table in TABLES:
            self.keys[table] = self.indexes()
            # IS NULL is true of the zero date in a NOT NULL column: in WHERE only.
            required = r.choice([None, None, *(name for name in self.columns if COLUMNS[name][1] != "time")])
            columns = [f"{name} {COLUMNS[name][0]}" for name in self.columns]
            if required:
                columns[self.columns.index(required)] += " NOT NULL"
            yield f"CREATE TABLE {table} (id INT NOT NULL, {', '.join(columns + self.keys[table])})"
            for at in range(r.randrange(12, 40)):
                values = ", ".join(self.stored(name, name == required) for name in self.columns)
                yield f"INSERT IGNORE INTO {table} VALUES ({at}, {values})"

    def stored(self, name, required):
        if not required and self.random.random() < .15:
            return "NULL"
        return self.random.choice(COLUMNS[name][2])

    def indexes(self):
        r, made = self.random, []
        primary = r.choice(["", "PRIMARY KEY (id)", "PRIMARY KEY (id)", "UNIQUE KEY k (id)", "KEY k (id)"])
        for at in range(r.randrange(2, 6)):
            parts = [self.part(name) for name in r.sample([*self.columns, "id"], r.choice([1, 1, 2, 2, 3]))]
            unique = r.random() < .15
            made.append(f"{'UNIQUE ' if unique else ''}KEY k{at} ({', '.join(parts)})")
        return [primary, *made] if primary else made

    def part(self, name):
        r = self.random
        prefix = ""
        if name == "x" or name in ("c", "v", "w", "l", "o", "k") and r.random() < .4:
            prefix = f"({r.choice([1, 2, 3])})"
        return f"{name}{prefix}{r.choice(['', '', ' DESC'])}"

    def index_names(self, table):
        names = ["`PRIMARY`" if key.startswith("PRIMARY") else key.split("KEY ")[1].split(" ")[0] for key in self.keys[table]]
        return names

    # Values and expressions

    def value(self, name):
        r = self.random
        if r.random() < .1:
            return "NULL"
        if r.random() < .2:
            return r.choice(STRANGE)
        return r.choice(COLUMNS[name][2]) if name in COLUMNS else str(r.randrange(40))

    def column(self, aliases, name=None):
        return f"{self.random.choice(aliases)}.{name or self.random.choice([*self.columns, 'id'])}"

    def like(self, name, aliases):
        """Another column to compare with: mostly of the same name."""
        return self.column(aliases, name if self.random.random() < .6 else None)

    def number(self, aliases, depth):
        numbers = [name for name in self.columns if COLUMNS[name][1] in ("number", "bit", "year")]
        choice = self.random.randrange(9 if depth > 0 else 3)
        if choice < 2:
            return self.column(aliases, self.random.choice(numbers))
        if choice == 2:
            return self.random.choice(NUMBERS)
        one, other = self.number(aliases, depth - 1), self.number(aliases, depth - 1)
        return [f"({one} + {other})", f"({one} % {other})", f"(-{one})", f"ABS({one})", f"IFNULL({one}, {other})",
                f"CASE WHEN {self.condition(aliases, depth - 1)} THEN {one} ELSE {other} END"][choice - 3]

    def condition(self, aliases, depth=3):
        r, nested = self.random, depth > 0
        pick = r.choice
        choice = r.randrange(20 if nested else 12)
        if choice in (12, 13, 14):
            return f"({self.condition(aliases, depth - 1)} AND {self.condition(aliases, depth - 1)})"
        if choice in (15, 16):
            return f"({self.condition(aliases, depth - 1)} OR {self.condition(aliases, depth - 1)})"
        if choice == 17:
            return f"(NOT {self.condition(aliases, depth - 1)})"
        if choice == 18:
            return f"({self.condition(aliases, depth - 1)}) IS {pick(['', 'NOT '])}{pick(['TRUE', 'FALSE', 'NULL'])}"
        if choice == 19:
            return self.subquery(aliases, depth - 1)
        name = pick([*self.columns, "id"])
        column, value, other = self.column(aliases, name), self.value(name), self.value(name)
        return [f"{column} {pick(['=', '=', '<>', '<', '<=', '>', '>=', '<=>'])} {value}",
                f"{column} {pick(['=', '=', '<', '>=', '<=>'])} {self.like(name, aliases)}",
                f"{column} {pick(['', 'NOT '])}BETWEEN {value} AND {other}",
                f"{column} {pick(['', 'NOT '])}IN ({value}, {other}, {self.value(name)})",
                f"{column} IS {pick(['', 'NOT '])}NULL",
                f"{column} {pick(['', 'NOT '])}LIKE {self.pattern()}",
                f"{self.number(aliases, depth)} {pick(['=', '<', '>', '<=', '<>'])} {self.number(aliases, depth)}",
                f"({column}, {self.column(aliases, 'a')}) {pick(['=', '=', '<', '>='])} ({value}, {self.value('a')})",
                f"({column} = {value} OR {column} = {other})",
                f"({column} = {value} AND {self.column(aliases, name)} = {value})",
                f"({column} = {self.column(aliases, name)} AND {self.column(aliases, name)} = {value})",
                f"{value} {pick(['=', '<', '>='])} {column}"][choice]

    def pattern(self):
        return self.random.choice(["NULL", "'a%'", "'_'", "'%b'", "'A%'", "'a %'", "'ab'", "'a_'", "'s%'", "'ß%'", "'á%'", "'1%'", "''", "'2024%'", "'a\\\\%'", "'é%'"])

    def subquery(self, aliases, depth):
        r, pick = self.random, self.random.choice
        name = pick([*self.columns, "id"])
        column = self.column(aliases, name)
        around = ["s", *aliases] if r.random() < .6 else ["s"]
        inner = f"SELECT s.{name} FROM {pick(TABLES)} s WHERE {self.condition(around, min(depth, 1))}"
        return pick([f"{column} IN ({inner})", f"{column} NOT IN ({inner})", f"EXISTS ({inner})", f"NOT EXISTS ({inner})", f"{column} >= ALL ({inner})",
                     f"{column} = ANY ({inner})", f"({column}, {self.column(aliases, 'a')}) IN ({inner.replace(f's.{name}', f's.{name}, s.a', 1)})",
                     f"{column} {pick(['=', '<'])} ({inner} ORDER BY s.id, s.{name} LIMIT 1)"])

    # FROM

    def source(self, most=3):
        """Factors, and the aliases that conditions may use."""
        r, pick = self.random, self.random.choice
        factors, aliases = [], []
        for at in range(r.choice([1, 1, 2, 2, 3][:most + 2])):
            alias, table, inner = f"x{at}", pick(TABLES), ""
            join = "" if at == 0 else pick(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "CROSS JOIN", "STRAIGHT_JOIN", ","])
            if r.random() < .15:
                other = f" UNION ALL SELECT * FROM {pick(TABLES)} WHERE id < 5" if r.random() < .5 else ""
                inner = f"(SELECT * FROM {table} i WHERE {self.condition(['i'], 1)}{other})"
            elif at > 0 and join in ("JOIN", "LEFT JOIN", ",") and r.random() < .1:
                inner = f"LATERAL (SELECT * FROM {table} i WHERE {self.condition(['i', *aliases], 1)})"
            aliases.append(alias)
            on = ""
            if join not in ("", "CROSS JOIN", ","):
                name = pick([*self.columns, "id"])
                on = f" ON {alias}.{name} {pick(['=', '=', '=', '<=>'])} {self.like(name, aliases[:-1])}"
                if r.random() < .5:
                    on += f" AND {self.condition(aliases, 1)}"
            factors.append(Factor(join, table, alias, inner, on))
            # A comma binds less than JOIN: what follows would not see what stands before.
            if join == ",":
                factors[-1].join, factors[-1].on = "CROSS JOIN", ""
        return factors, aliases

    def render(self, factors, how="plain"):
        """FROM: `plain`, `ignore` (all indexes), `force` (some), `derived` or `common` tables in place of stored ones."""
        text = ""
        for factor in factors:
            stored = {"plain": factor.table, "common": f"common_{factor.table}", "derived": f"(SELECT * FROM {factor.table})"}.get(how, factor.table)
            names = self.index_names(factor.table)
            hint = f" IGNORE INDEX ({', '.join(names)})" if how == "ignore" and not factor.inner else ""
            if how == "force" and not factor.inner:
                hint = f" FORCE INDEX ({', '.join(self.random.sample(names, self.random.choice([1, 1, len(names)])))})"
            text += f" {factor.join} {factor.inner or stored} {factor.alias}{hint}{factor.on}"
        return text.strip()
