#!/usr/bin/python3
"""Every function and operator with arguments of every type in every place of a statement, here and on the real MySQL that `scripts/peers` has (needs root).

    mysql_calls.py [--cases N] [--seed S]    what is compared: rows, families of columns' types, and errors
    --only REGEX                             forms of calls that have this in them
    --place NAME                             only this place
    --warnings                               codes of warnings too
    --metadata                               lengths, decimals, flags and character sets of columns too

A difference is made smaller before it is told: rows that are equal go, and arguments become simpler while it stays. Those that are on purpose, and
those that are known, are in tests/lib/calls_that_differ.txt with their reasons.

Ring: all.
"""

import argparse
import collections
import pathlib
import re
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import calls
import golden
import pymysql
import real_peers
import seeds
from omnibus import Omnibus, Scratch, connect, expect

ALLOWED = pathlib.Path(__file__).resolve().parents[2] / "lib/calls_that_differ.txt"
TEXT_TYPES = {253: "text", 254: "text", 249: "text", 250: "text", 251: "text", 252: "text"}
FLAGS = {1: "not null", 32: "unsigned", 64: "zerofill", 256: "enum", 2048: "set"}
SIMPLER = ["1", "'a'", "NULL", "0"]


class Side:
    """One of the two servers: a connection, and what it answers."""

    def __init__(self, socket, options):
        self.db = connect(types.SimpleNamespace(socket=socket), autocommit=True, conv={}, charset="utf8mb4", use_unicode=False)
        self.cursor, self.metadata = self.db.cursor(), options.metadata
        self.warnings = options.warnings
        for sql in ("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, time_zone = '+00:00', timestamp = 1700000000", "DROP DATABASE IF EXISTS calls",
                    "CREATE DATABASE calls COLLATE utf8mb4_general_ci", "USE calls"):
            self.cursor.execute(sql)

    def answer(self, sql, unordered=False):
        """What a statement gives, as a dictionary of what is compared."""
        try:
            self.cursor.execute(sql)
            result, rows = self.cursor._result, self.cursor.fetchall() if self.cursor.description else None
            while self.cursor.nextset():
                pass
        except pymysql.err.MySQLError as error:
            if error.args[0] in (0, 2006, 2013):
                raise
            return {"error": error.args[0]}
        out = {}
        if result.warning_count and self.warnings:
            self.cursor.execute("SHOW WARNINGS")
            codes = {int(row[1]) for row in self.cursor.fetchall()} - {1681, 1287}
            if codes:
                out["warnings"] = sorted(codes)
        if rows is None:
            return out | {"affected": self.cursor.rowcount if not result.warning_count else 0}
        rows = [tuple(shown(value, column) for value, column in zip(row, result.fields)) for row in rows]
        out["rows"] = sorted(rows, key=repr) if unordered else rows
        out["types"] = [TEXT_TYPES.get(column.type_code, golden.LETTERS.get(column.type_code) or str(column.type_code)) for column in result.fields]
        if self.metadata:
            out["codes"] = [column.type_code for column in result.fields]
            out["lengths"] = [column.length for column in result.fields]
            out["decimals"] = [column.scale for column in result.fields]
            out["flags"] = ["+".join(name for bit, name in FLAGS.items() if column.flags & bit) for column in result.fields]
        out["charsets"] = [column.charsetnr == golden.BINARY for column in result.fields]
        return out

    def answers(self, case):
        return [self.answer(sql, case.unordered) for sql in case.statements]


def shown(value, column):
    """A value; of a double, what does not hang on the last digits of a library's functions."""
    if value is not None and column.type_code in (4, 5):
        try:
            return b"%s" % (f"{float(value):.{5 if column.type_code == 4 else 13}g}".encode())
        except ValueError:
            return value
    return value


def difference(ours, theirs):
    """Whether two lists of answers differ, and in what: the worst first."""
    kinds = set()
    for one, other in zip(ours, theirs):
        if "error" in one or "error" in other:
            if one.get("error") != other.get("error"):
                kinds.add("error" if "error" in one and "error" in other else "refused" if "error" in one else "accepted")
            continue
        for kind in sorted(one.keys() | other.keys()):
            if one.get(kind) != other.get(kind):
                # Where all values are NULL nobody reads them by their type.
                kinds.add(kind)
    for kind in ("refused", "accepted", "rows", "error", "affected", "warnings", "types", "codes", "charsets", "flags", "decimals", "lengths"):
        if kind in kinds:
            return kind
    return None


class Hunt:
    """Both servers, the generator, and what was found."""

    def __init__(self, sides, generator, place):
        self.sides, self.generator, self.place = sides, generator, place
        self.allowed = [line.split("\t")[:2] for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
        self.found, self.passed = [], collections.Counter()

    def ask(self, case):
        ours, theirs = (side.answers(case) for side in self.sides)
        return difference(ours, theirs), ours, theirs

    def run(self, count):
        for _ in range(count):
            lot = self.generator.r.random()
            form, arguments = self.generator.call()
            place = self.place or self.generator.r.choices(list(calls.PLACES), [weight for weight, _ in calls.PLACES.values()])[0]
            case = self.generator.made(place, form, arguments, lot)
            kind, ours, theirs = self.ask(case)
            if not kind:
                continue
            case, kind, ours, theirs = self.smaller(case, lot, kind, ours, theirs)
            reason = self.reason(kind, case)
            if reason:
                self.passed[reason] += 1
            else:
                self.found.append((kind, case))
                tell(kind, case, ours, theirs)

    def reason(self, kind, case):
        for kinds, pattern in self.allowed:
            if (kinds == "*" or kind in kinds.split(",")) and re.search(pattern, f"{case.place}: {case.form}: {case.text()}"):
                return pattern
        return None

    def smaller(self, case, lot, kind, ours, theirs):
        """The plainest place and the simplest arguments with a difference of the same kind."""
        best = case, kind, ours, theirs
        tries = [(place, case.arguments) for place in ("select",) if place != case.place]
        for place, arguments in tries:
            plain = self.generator.made(place, case.form, arguments, lot)
            now, *answers = self.ask(plain)
            if now == kind:
                best = plain, now, *answers
                break
        for at, hole in enumerate(calls.holes(case.form)):
            for simple in SIMPLER if not hole.startswith("=") else []:
                case = best[0]
                if case.arguments[at] in SIMPLER:
                    break
                tried = self.generator.made(case.place, case.form, [*case.arguments[:at], simple, *case.arguments[at + 1:]], lot)
                now, *answers = self.ask(tried)
                if now == kind:
                    best = tried, now, *answers
                    break
        return best


def tell(kind, case, ours, theirs):
    """Says what differs: of rows only those."""
    print(f"{kind}: {case.place}: {case.form}: {case.text()[-700:]}")
    for one, other in zip(ours, theirs):
        if one == other:
            continue
        if one.get("rows") != other.get("rows") and "rows" in one and "rows" in other:
            pairs = [(a, b) for a, b in zip(one["rows"], other["rows"]) if a != b]
            print(f"    {len(one['rows'])} and {len(other['rows'])} rows; ours, MySQL's: {pairs[:3]}")
        for what in sorted(one.keys() | other.keys()):
            if one.get(what) != other.get(what) and what != "rows":
                print(f"    {what}: ours {one.get(what)}, MySQL's {other.get(what)}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=800)
    parser.add_argument("--only")
    parser.add_argument("--place", choices=calls.PLACES)
    parser.add_argument("--metadata", action="store_true")
    parser.add_argument("--warnings", action="store_true")
    seeds.add_to(parser)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with Scratch() as scratch:
        server = Omnibus(pathlib.Path(scratch), "--skip-networking", "--sync-binlog=0")
        server.start()
        generator = calls.Generator(options.seed, options.only)
        sides = [Side(socket, options) for socket in (server.socket, real_peers.started("mysql"))]
        for sql in generator.setup():
            for side in sides:
                side.cursor.execute(sql)
        hunt = Hunt(sides, generator, options.place)
        hunt.run(options.cases)
        sides[1].cursor.execute("DROP DATABASE calls")
        server.stop()
    print("known:", dict(hunt.passed.most_common()))
    print("found:", dict(collections.Counter(f"{kind} {case.form}" for kind, case in hunt.found).most_common()))
    expect(not hunt.found, f"{len(hunt.found)} of {options.cases} differ")


if __name__ == "__main__":
    main()
