"""Golden scripts: statements with what they answer, in the manner of sqllogictest. The format is in testdata/differential/README.md.

Reads and writes the files, runs one against a server. Who compares is `tests/e2e/sql/differential.py`.
"""

import itertools
import re
from dataclasses import dataclass, field

import pymysql
from omnibus import connect

RULE, PEER = "----", "---- mariadb"
MODE = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
INTEGERS = (1, 2, 3, 8, 9)
LETTERS = {0: "n", 246: "n", 4: "f", 5: "d", 6: "N", 7: "S", 12: "S", 10: "D", 14: "D", 11: "T", 13: "Y", 16: "B", 245: "s"}
UNSIGNED, BINARY = 32, 63
LONGEST = 500
# Conditions that have another code in MariaDB, and one that only it has (integers that change their sign in CAST).
SAME_CODE, ONLY_PEER = {1916: 1292, 3020: 1365}, 1105
# MySQL always rounds fractions of seconds. MariaDB keeps a subquery's answers by collation, whatever it does with the text.
LIKE_MYSQL = "SET sql_mode = CONCAT(@@sql_mode, ',TIME_ROUND_FRACTIONAL'), optimizer_switch = 'subquery_cache=off'"
# MySQL's default collation is another one than ours.
LIKE_OURS = "SET default_collation_for_utf8mb4 = utf8mb4_general_ci, collation_connection = utf8mb4_general_ci, collation_database = utf8mb4_general_ci"


@dataclass
class Record:
    """One statement, or a matrix of them, and what is expected: a list of lines."""

    line: int
    directives: dict
    text: list
    expected: list = field(default_factory=list)
    peer: list = field(default_factory=list)
    comments: list = field(default_factory=list)

    @property
    def is_matrix(self):
        return "matrix" in self.directives

    def parts(self):
        """Of a matrix: its statements, and its axes by name."""
        statements, axes = [], {}
        for line in self.text:
            axis = re.match(r"\{(\w+)\}: (.*)", line)
            if axis:
                axes[axis[1]] = [value.strip() for value in axis[2].split(" | ")]
            else:
                statements.append(line)
        return statements, axes


def read(path):
    """The records of a file, and the comment lines at its end."""
    records, comments = [], []
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        if not lines[at] or lines[at].startswith("#"):
            comments.append(lines[at])
            at += 1
            continue
        record = Record(at + 1, {}, [], comments=comments)
        records.append(record)
        comments, block = [], record.text
        while at < len(lines) and lines[at]:
            line = lines[at]
            if line in (RULE, PEER):
                block = record.expected if line == RULE else record.peer
            elif block is record.text and line.startswith("@") and not re.match(r"@\w+ ?:=", line):
                name, _, value = line[1:].partition(" ")
                record.directives[name] = value
            else:
                block.append(line)
            at += 1
    return records, comments


def write(path, records, comments):
    """The reverse of `read`."""
    out = []
    for record in records:
        out += record.comments
        out += [f"@{name} {value}".rstrip() for name, value in record.directives.items()]
        out += [*record.text, RULE, *record.expected]
        if record.peer:
            out += [PEER, *record.peer]
    path.write_text("\n".join([*out, *comments]) + "\n")


def shown(value):
    """A value as one word of a line."""
    if value is None:
        return "NULL"
    text = value.decode("utf-8", "surrogateescape")
    if text in ("", "NULL"):
        return f"'{text}'"
    if len(text) > LONGEST:
        text = f"{text[:40]}..({len(text)})"
    return re.sub("[\x00-\x1f\x7f|~\\\\\ud800-\udfff]", lambda found: f"\\x{ord(found[0]) & 255:02x}", text)


def letter(column):
    """The family of a result column's type."""
    if column.type_code in INTEGERS:
        return "u" if column.flags & UNSIGNED else "i"
    return LETTERS.get(column.type_code) or ("b" if column.charsetnr == BINARY else "s")


class Runner:
    """Runs scripts against one server. `engine`: where tables go; None for a peer, which `like` makes as much like ours as it can be."""

    def __init__(self, server, engine=None, like=LIKE_MYSQL):
        self.server, self.engine, self.like, self.sessions, self.count = server, engine, like, {}, 0

    def session(self, name):
        if name not in self.sessions:
            db = connect(self.server, autocommit=True, conv={}, charset="utf8mb4", use_unicode=False, init_command=f"SET sql_mode='{MODE}'")
            cursor = db.cursor()
            cursor.execute("SET NAMES utf8mb4, time_zone = '+00:00', timestamp = 1700000000, default_storage_engine = " + (self.engine or "InnoDB"))
            cursor.execute("CREATE DATABASE IF NOT EXISTS golden COLLATE utf8mb4_general_ci")
            cursor.execute("USE golden")
            if not self.engine:
                cursor.execute(self.like)
            self.sessions[name] = cursor
        return self.sessions[name]

    def close(self):
        for cursor in self.sessions.values():
            cursor.connection.close() if cursor.connection.open else None
        self.sessions = {}

    def run_file(self, records):
        """What each record answers, as lines. The database is empty at the start."""
        self.session("").execute("DROP DATABASE IF EXISTS golden")
        self.close()
        answers = [self.matrix(record) if record.is_matrix else self.lines(record) for record in records]
        self.close()
        return answers

    def outcome(self, sql, name=""):
        """('error', code) or ('ok', affected, warnings) or ('rows', letters, rows, warnings)."""
        self.count += 1
        cursor = self.session(name)
        try:
            cursor.execute(sql)
            result = cursor._result
            rows = cursor.fetchall() if cursor.description else None
            warnings = self.warnings(cursor) if result.warning_count else ""
            if not self.engine and sql.startswith("SET sql_mode"):
                cursor.execute(self.like)
            if rows is None:
                return "ok", cursor.rowcount, warnings
            nulls = [bool(rows) and all(row[at] is None for row in rows) for at in range(len(result.fields))]
            return "rows", ["N" if null else letter(column) for column, null in zip(result.fields, nulls)], rows, warnings
        except pymysql.err.MySQLError as error:
            if not cursor.connection.open or error.args[0] in (0, 2006, 2013):
                self.sessions.pop(name).connection.close() if cursor.connection.open else self.sessions.pop(name)
            return "error", error.args[0]

    def warnings(self, cursor):
        other = cursor.connection.cursor()
        other.execute("SHOW WARNINGS")
        codes = [int(row[1]) for row in other.fetchall()]
        codes = sorted(SAME_CODE.get(code, code) for code in codes if code != ONLY_PEER)
        counts = [(code, len(list(group))) for code, group in itertools.groupby(codes)]
        return "".join(f" !{code}" + (f"x{number}" if number > 1 and not cursor.description else "") for code, number in counts)

    def lines(self, record):
        kind, *rest = self.outcome("\n".join(record.text), record.directives.get("session", ""))
        if kind == "error":
            return [f"error {rest[0]}"]
        if kind == "ok":
            return [f"ok {rest[0]}{rest[1]}"]
        letters, rows, warnings = rest
        made = ["\t".join(map(shown, row)) for row in rows]
        return [" ".join(letters) + warnings, *(sorted(made) if "sort" in record.directives else made)]

    def cell(self, statements):
        parts = []
        for sql in statements:
            kind, *rest = self.outcome(sql.removeprefix("- "))
            if sql.startswith("- ") and kind != "error":
                continue
            if kind == "error":
                parts.append(f"E{rest[0]}")
            elif kind == "ok":
                parts.append(f"#{rest[0]}{rest[1].replace(' ', '')}")
            else:
                letters, rows, warnings = rest
                rows = "/".join(",".join(map(shown, row)) for row in rows)
                parts.append(f"{rows}:{''.join(letters)}{warnings.replace(' ', '')}")
        return "; ".join(parts)

    def matrix(self, record):
        """A line for each combination of all axes but the last, with a cell for each value of the last."""
        statements, axes = record.parts()
        *leading, last = axes
        out = []
        for values in itertools.product(*(axes[name] for name in leading)):
            cells = []
            for value in axes[last]:
                filled = []
                for sql in statements:
                    for name, text in [*zip(leading, values), (last, value)]:
                        sql = sql.replace("{" + name + "}", text)
                    filled.append(sql)
                cells.append(self.cell(filled))
            out.append(" & ".join(values) + " => " + " | ".join(cells))
        return out
