"""Generated statements for `tests/e2e/sql/mysql_calls.py`: every function and operator, with arguments of any type, in any place of a statement.

Unlike `expressions`, arguments need not be what a function wants: what a text, a bit field or a document is as a date is half of what there is to get wrong.
"""

import random
import re
from dataclasses import dataclass

from omnibus import ROOT

TABLE = "w"
# The columns by name: type, and values, edges first of all.
COLUMNS = {
    "t1": ("TINYINT", ["0", "1", "-128", "127", "NULL"]),
    "u4": ("INT UNSIGNED", ["0", "3", "4294967295", "20240229", "NULL"]),
    "g8": ("BIGINT", ["0", "-9223372036854775808", "9223372036854775807", "20231231235959", "-1", "7", "NULL"]),
    "h8": ("BIGINT UNSIGNED", ["0", "18446744073709551615", "9223372036854775808", "2", "12", "NULL"]),
    "d3": ("DECIMAL(10,3)", ["0.000", "1.500", "-2.345", "9999999.999", "0.005", "NULL"]),
    "q30": ("DECIMAL(65,30)", ["0", "1.000000000000000000000000000001", "-99999999999999999999999999999999999.999999999999999999999999999999", "123.456", "NULL"]),
    "f4": ("FLOAT", ["0", "1.5", "-0.1", "3.4e38", "1e-10", "NULL"]),
    "r8": ("DOUBLE", ["0", "0.1", "-2.5", "1.7976931348623157e308", "1e19", "-1e-300", "NULL"]),
    "v20": ("VARCHAR(20) COLLATE utf8mb4_general_ci", ["''", "'a'", "'B'", "'12'", "'1.5x'", "'2024-02-29'", "'ä b'", "'a,b'", "'12:34:56.789'", "'[1, \"a\"]'", "NULL"]),
    "a20": ("VARCHAR(20) COLLATE utf8mb4_0900_ai_ci", ["''", "'A'", "'ab '", "'-7'", "'1e3'", "'20240229123456'", "'ß'", "'null'", "NULL"]),
    "b20": ("VARCHAR(20) COLLATE utf8mb4_bin", ["''", "'a'", "'B'", "'0x1f'", "'1999-12-31 23:59:59.999999'", "'{\"a\": 1}'", "NULL"]),
    "l20": ("VARCHAR(20) CHARACTER SET latin1", ["''", "'a'", "'é'", "'3'", "'23:59'", "NULL"]),
    "c8": ("CHAR(8) COLLATE utf8mb4_general_ci", ["''", "'a'", "'abc'", "'007'", "'1.'", "NULL"]),
    "x0": ("TEXT COLLATE utf8mb4_general_ci", ["''", "'text'", "'9999999999999999999'", "'2000-1-1'", "NULL"]),
    "k20": ("VARBINARY(20)", ["''", "'a'", "x'00ff'", "'41'", "'2001-02-03'", "NULL"]),
    "z6": ("BINARY(6)", ["''", "'abc'", "'123456'", "NULL"]),
    "o0": ("BLOB", ["''", "x'ff00'", "'12'", "NULL"]),
    "e1": ("DATE", ["'2024-02-29'", "'0000-00-00'", "'1999-12-31'", "'9999-12-31'", "'2024-00-10'", "'1970-01-01'", "NULL"]),
    "m0": ("DATETIME", ["'2024-02-29 23:59:59'", "'0000-00-00'", "'1000-01-01'", "'9999-12-31 23:59:59'", "NULL"]),
    "m6": ("DATETIME(6)", ["'2023-12-31 23:59:59.999999'", "'2000-01-01 00:00:00.5'", "'1970-01-01 00:00:01.000001'", "NULL"]),
    "p3": ("TIMESTAMP(3) NULL", ["'2024-02-29 12:00:00.125'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999'", "NULL"]),
    "i0": ("TIME", ["'00:00:00'", "'12:34:56'", "'-838:59:59'", "'838:59:59'", "'-00:00:01'", "NULL"]),
    "i6": ("TIME(6)", ["'00:00:00.000001'", "'23:59:59.999999'", "'-01:30:00.5'", "'100:00:01.25'", "NULL"]),
    "y4": ("YEAR", ["2024", "1901", "2155", "0", "NULL"]),
    "n1": ("ENUM('a','b','B2','','1')", ["'a'", "'b'", "'B2'", "''", "'1'", "NULL"]),
    "s1": ("SET('a','b','c','1')", ["'a'", "'a,c'", "'1'", "''", "'a,b,c,1'", "NULL"]),
    "b9": ("BIT(9)", ["b'0'", "b'101'", "b'111111111'", "b'1100001'", "NULL"]),
    "b64": ("BIT(64)", ["0", "18446744073709551615", "49", "NULL"]),
    "j0": ("JSON", ["'null'", "'true'", "'1'", "'-1.5'", "'18446744073709551615'", "'\"a\"'", "'\"2024-02-29\"'", "'[1, \"b\", null]'", "'{\"a\": {\"b\": [1, 2]}}'", "'[]'", "NULL"]),
    "j1": ("JSON", ["CAST(DATE'2024-02-29' AS JSON)", "CAST(TIME'12:34:56' AS JSON)", "JSON_EXTRACT(JSON_ARRAY(x'6162'), '$[0]')", "CAST(1.50 AS JSON)", "CAST(TIMESTAMP'2024-02-29 01:02:03.4' AS JSON)", "'1e100'", "'\"12\"'", "'false'", "NULL"]),
}
LITERALS = [
    "0", "1", "-1", "2", "3", "10", "127", "-9223372036854775808", "18446744073709551615", "99999999999999999999", "1.5", "-0.5", "0.00", "123456789.987654321", "1e0", "-2.5e10", "1e300",
    "''", "'a'", "'B'", "'abc'", "'12'", "'1.5x'", "' 3'", "'2024-02-29'", "'2024-02-29 12:34:56'", "'12:34:56'", "'-1:2:3.4'", "'$.a'", "'$[0]'", "'[1,2]'", "'{\"a\":1}'", "'\"a\"'", "'ä'", "'%Y-%m'",
    "'a' COLLATE utf8mb4_bin", "_latin1'e'", "_binary'ab'", "x'41'", "x'ff00'", "0x3132", "b'101'", "NULL", "TRUE", "FALSE", "DATE'2024-02-29'", "TIME'12:34:56'", "TIME'-01:00:00.5'", "TIMESTAMP'2024-02-29 12:34:56'",
    "TIMESTAMP'1999-12-31 23:59:59.999'", "20240229", "240229", "123456", "CAST('[1]' AS JSON)", "CAST(1 AS JSON)", "CAST('\"a\"' AS JSON)", "CAST(7 AS UNSIGNED)", "CAST(3 AS YEAR)", "JSON_ARRAY(1, 'a')",
]
# What a call is in SQL where it is no name with arguments in parentheses; `{}` is an argument of any type, `{=a|b}` one of these words.
FORMS = [
    *(f"({{}} {operator} {{}})" for operator in ("+", "-", "*", "/", "DIV", "%", "&", "|", "^", "<<", ">>", "=", "<>", "<", "<=", ">", ">=", "<=>", "AND", "OR", "XOR", "LIKE", "NOT LIKE", "REGEXP")),
    "(- {})", "(NOT {})", "(~ {})", "(! {})", "({} IS NULL)", "({} IS NOT NULL)", "({} IS TRUE)", "({} IS NOT FALSE)", "({} IS UNKNOWN)", "({} BETWEEN {} AND {})", "({} NOT BETWEEN {} AND {})",
    "({} IN ({}, {}))", "({} NOT IN ({}, {}, {}))", "({} IN ({}))", "(({}, {}) = ({}, {}))", "(({}, {}) < ({}, {}))", "(({}, {}) IN (({}, {}), ({}, {})))", "({} MEMBER OF ({}))", "({} SOUNDS LIKE {})",
    "CASE {} WHEN {} THEN {} ELSE {} END", "CASE WHEN {} THEN {} WHEN {} THEN {} END", "CASE {} WHEN {} THEN {} WHEN {} THEN {} END",
    *(f"CAST({{}} AS {of})" for of in ("SIGNED", "UNSIGNED", "CHAR", "CHAR(3)", "BINARY", "BINARY(4)", "DATE", "DATETIME", "DATETIME(3)", "TIME", "TIME(2)", "YEAR", "DECIMAL", "DECIMAL(10,2)", "DECIMAL(65,30)", "FLOAT", "DOUBLE", "REAL", "JSON", "NCHAR(5)",
                                      "CHAR CHARACTER SET latin1")),
    "CONVERT({} USING latin1)", "CONVERT({} USING utf8mb4)", "CONVERT({} USING binary)", "CONVERT({} USING ascii)", "({} COLLATE utf8mb4_bin)", "({} COLLATE utf8mb4_0900_ai_ci)", "BINARY {}",
    "EXTRACT({=YEAR|MONTH|DAY|HOUR|MINUTE|SECOND|MICROSECOND|WEEK|QUARTER|YEAR_MONTH|DAY_HOUR|DAY_SECOND|DAY_MICROSECOND|HOUR_SECOND|MINUTE_MICROSECOND} FROM {})",
    "DATE_ADD({}, INTERVAL {} {=DAY|MONTH|YEAR|HOUR|SECOND|MICROSECOND|WEEK|QUARTER|DAY_SECOND|YEAR_MONTH|HOUR_MINUTE|SECOND_MICROSECOND})",
    "DATE_SUB({}, INTERVAL {} {=DAY|MONTH|MINUTE|DAY_HOUR|MINUTE_SECOND})", "({} + INTERVAL {} {=DAY|SECOND})", "({} - INTERVAL {=1|2.5|'3'|'1:1'} {=DAY|MINUTE|HOUR_MINUTE})",
    "TIMESTAMPADD({=DAY|MONTH|SECOND|MICROSECOND|QUARTER}, {}, {})", "TIMESTAMPDIFF({=DAY|MONTH|YEAR|SECOND|MICROSECOND|WEEK}, {}, {})",
    "TRIM({})", "TRIM(LEADING {} FROM {})", "TRIM(BOTH {} FROM {})", "TRIM(TRAILING {} FROM {})", "LOCATE({}, {})", "POSITION({} IN {})", "SUBSTRING({} FROM {} FOR {})", "SUBSTRING({}, {=1|2|-2|0})", "SUBSTRING({}, {=1|-3}, {=0|1|2})",
    "DATE_FORMAT({}, {='%Y-%m-%d'|'%H:%i:%s.%f'|'%W %M %e %j'|'%U %u %V %v %X %x'|'%a %b %D %y %p %r'|'%T %l %k %c'})", "TIME_FORMAT({}, {='%H:%i:%s.%f'|'%k %l %p'|'%r %T'|'%Y %d'})",
    "STR_TO_DATE({}, {='%Y-%m-%d'|'%H:%i:%s'|'%Y-%m-%d %H:%i:%s.%f'|'%d.%m.%y'|'%j %Y'})", "STR_TO_DATE({='2024-02-30'|'12:34'|'01,5,2013'|'abc'|'9'}, {='%Y-%m-%d'|'%h:%i'|'%d,%m,%Y'|'%m'|'%s'})",
    "GET_FORMAT({=DATE|TIME|DATETIME}, {='USA'|'ISO'|'EUR'|'x'})", "CHAR({} USING utf8mb4)", "CHAR({}, {})", "WEIGHT_STRING({} AS CHAR(3))", "WEIGHT_STRING({} AS BINARY(4))", "FROM_UNIXTIME({=0|1700000000|1.5|'2'|-1|1e9})",
    "FROM_UNIXTIME({}, '%Y %H:%i:%s')", "CONVERT_TZ({}, {='+00:00'|NULL}, {='+05:30'|'-12:00'|'x'})", "PERIOD_ADD({=202401|9912|7001|199912}, {})", "PERIOD_DIFF({=202401|9912}, {=199801|9801})",
    "MAKE_SET({}, {}, {}, {})", "EXPORT_SET({}, 'Y', 'N', ',', {=4|9|64})", "ELT({=1|2|3|0}, {}, {})", "INTERVAL({}, {=-1|0}, {=1|5}, {=10|100})", "FIELD({}, {}, {})", "CONV({}, {=10|16|2|36|-10}, {=2|16|10|-10|36})",
    "ROUND({}, {=0|1|2|-1|-2|30|NULL})", "TRUNCATE({}, {=0|1|2|-1|30})", "FORMAT({}, {=0|2|5|-1})", "LPAD({}, {=0|3|10|-1}, {})", "RPAD({}, {=0|3|10}, {='-+'|''|'ä'})", "REPEAT({}, {=0|1|3|-1})", "LEFT({}, {=0|1|3|-1})", "RIGHT({}, {=0|1|3})",
    "INSERT({}, {=0|1|2|9|-1}, {=0|1|100|-1}, {})", "SUBSTRING_INDEX({}, {=','|'a'|''|'1'}, {=1|-1|2|0})", "REGEXP_LIKE({}, {='a'|'^[a-b]'|'[0-9]+'|'.'})", "REGEXP_INSTR({}, {='a'|'[0-9]+'})", "REGEXP_SUBSTR({}, {='[a-z]'|'[0-9]+'})",
    "REGEXP_REPLACE({}, {='a'|'[0-9]'}, {})", "SHA2({}, {=224|256|512|0|1})", "JSON_EXTRACT({}, {='$'|'$.a'|'$[0]'|'$.*'|'$[last]'|'$**.b'})", "JSON_UNQUOTE(JSON_EXTRACT({}, '$.a'))", "JSON_VALUE({}, '$.a' RETURNING {=SIGNED|CHAR(5)|DECIMAL(5,2)|DATE})",
    "JSON_VALUE({}, {='$'|'$[0]'})", "JSON_SET({}, '$.a', {})", "JSON_INSERT({}, '$[1]', {})", "JSON_REPLACE({}, '$[0]', {})", "JSON_REMOVE({}, '$[0]')", "JSON_ARRAY_APPEND({}, '$', {})", "JSON_ARRAY_INSERT({}, '$[0]', {})", "JSON_OBJECT({}, {})",
    "JSON_CONTAINS({}, {})", "JSON_CONTAINS({}, {}, '$.a')", "JSON_CONTAINS_PATH({}, {='one'|'all'}, '$.a', '$[0]')", "JSON_SEARCH({}, {='one'|'all'}, {='a'|'%'|'b'})", "JSON_KEYS({})", "JSON_LENGTH({}, '$.a')", "JSON_MERGE_PATCH({}, {})", "JSON_MERGE_PRESERVE({}, {})",
    "UNIX_TIMESTAMP({})", "WEEK({}, {=0|1|2|3|5|7})", "YEARWEEK({}, {=0|3|6})", "INET6_NTOA(INET6_ATON({}))", "ADDTIME({}, {})", "MAKEDATE({}, {})", "SEC_TO_TIME({})", "NULLIF({}, {})", "IFNULL({}, {})", "COALESCE({}, {}, {})", "GREATEST({}, {})", "LEAST({}, {}, {})", "IF({}, {}, {})",
]
# Of these no two runs, or no two servers, give the same; or they want what no argument is; or they are above in their own form.
NOT_CALLED = {
    "AES_DECRYPT", "BENCHMARK", "COMPRESS", "CONNECTION_ID", "CURRENT_ROLE", "CURRENT_USER", "DATABASE", "FOUND_ROWS", "GET_LOCK", "GROUPING", "IS_FREE_LOCK", "IS_USED_LOCK", "LAST_INSERT_ID", "MEMBER_OF", "MYSQL_QUERY_ATTRIBUTE_STRING", "NAME_CONST",
    "PS_CURRENT_THREAD_ID", "PS_THREAD_ID", "RAND", "RANDOM_BYTES", "RELEASE_ALL_LOCKS", "RELEASE_LOCK", "ROW_COUNT", "SCHEMA", "SESSION_USER", "SLEEP", "SYSDATE", "SYSTEM_USER", "USER", "UUID", "UUID_SHORT", "VERSION", "EXTRACTVALUE", "UPDATEXML",
    "TIMESTAMPADD", "TIMESTAMPDIFF", "GET_FORMAT", "POSITION", "TRIM", "JSON_VALUE", "REGEXP_INSTR", "REGEXP_LIKE", "REGEXP_REPLACE", "REGEXP_SUBSTR", "JSON_SCHEMA_VALID", "JSON_SCHEMA_VALIDATION_REPORT", "REPEAT", "SPACE", "RPAD", "LPAD", "INTERVAL",
    "JSON_STORAGE_SIZE", "JSON_STORAGE_FREE", "WEIGHT_STRING", "STATEMENT_DIGEST", "STATEMENT_DIGEST_TEXT", "FORMAT_BYTES", "FORMAT_PICO_TIME", "UTC_TIME", "UTC_TIMESTAMP", "CURTIME", "CURRENT_TIMESTAMP", "NOW", "CURDATE", "UTC_DATE", "ENCODE", "CHAR", "BINLOG_GTID_POS", "MASTER_GTID_WAIT",
    "GTID_SUBSET", "GTID_SUBTRACT", "WAIT_FOR_EXECUTED_GTID_SET", "LOAD_FILE", "JSON_MERGE",
}
AGGREGATES = ["COUNT({})", "COUNT(DISTINCT {})", "MIN({})", "MAX({})", "SUM({})", "AVG({})", "SUM(DISTINCT {})", "BIT_AND({})", "BIT_OR({})", "BIT_XOR({})", "GROUP_CONCAT({} ORDER BY id)", "GROUP_CONCAT(DISTINCT {} ORDER BY 1)", "STD({})", "VAR_SAMP({})",
              "JSON_ARRAYAGG({})", "JSON_OBJECTAGG(id, {})"]
TARGETS = ["INT", "BIGINT UNSIGNED", "DECIMAL(8,2)", "DOUBLE", "VARCHAR(10)", "CHAR(3)", "VARBINARY(5)", "DATE", "DATETIME", "DATETIME(3)", "TIME", "TIME(2)", "YEAR", "ENUM('a','b','1')", "SET('a','b','c')", "BIT(8)", "JSON", "TINYINT", "TEXT"]


def forms():
    """Every form of a call: those above, and each function of the program's own tables with as few and as many arguments as it takes."""
    found = list(FORMS)
    for file in sorted((ROOT / "crates/sql/src/expr/functions").glob("*.rs")):
        for name, least, most in re.findall(r'Def::\w+\(\s*"(\w+)",\s*(\d+),\s*(\d+|MANY)', file.read_text()):
            if name in NOT_CALLED or name.startswith("FORMAT_"):
                continue
            most = int(least) + 2 if most == "MANY" else int(most)
            found += [f"{name}({', '.join(['{}'] * count)})" for count in range(int(least), min(most, 4) + 1)]
    return list(dict.fromkeys(found))


@dataclass
class Case:
    """Statements that are run one after another, the form of the call that they are about, and what its arguments are."""

    place: str
    form: str
    arguments: list
    statements: list
    # Answers of these statements are sorted before they are compared.
    unordered: bool = False

    def text(self):
        return "; ".join(self.statements)


def fill(form, arguments):
    """A form with its arguments."""
    left = iter(arguments)
    return re.sub(r"\{[^{}]*\}", lambda _: next(left), form)


def holes(form):
    return re.findall(r"\{([^{}]*)\}", form)


class Generator:
    """Cases from a seed."""

    def __init__(self, seed, only=None):
        self.r = random.Random(seed)
        self.forms = [form for form in forms() if not only or re.search(only, form)]
        self.at = 0

    def setup(self):
        """The table of all types, and its rows."""
        yield "SET sql_mode = ''"
        yield f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, tick INT NOT NULL DEFAULT 0, {', '.join(f'{name} {of}' for name, (of, _) in COLUMNS.items())})"
        for row in range(11):
            yield f"INSERT INTO {TABLE} VALUES ({row}, 0, {', '.join(values[row % len(values)] if row < 5 else self.r.choice(values) for _, values in COLUMNS.values())})"
        yield "SET sql_mode = DEFAULT"

    def argument(self, hole=""):
        if hole.startswith("="):
            return self.r.choice(hole[1:].split("|"))
        return self.r.choice(list(COLUMNS)) if self.r.random() < .6 else self.r.choice(LITERALS)

    def call(self):
        form = self.forms[self.at % len(self.forms)]
        self.at += 1
        return form, [self.argument(hole) for hole in holes(form)]

    def case(self, place=None):
        form, arguments = self.call()
        place = place or self.r.choices(list(PLACES), [weight for weight, _ in PLACES.values()])[0]
        return self.made(place, form, arguments, self.r.random())

    def made(self, place, form, arguments, lot):
        """A case; with the same lot it is the same, whatever its arguments are."""
        statements, unordered = PLACES[place][1](fill(form, arguments), random.Random(lot))
        return Case(place, form, arguments, statements, unordered)


def other(r):
    return r.choice(list(COLUMNS)) if r.random() < .7 else r.choice(LITERALS)


def select(call, r):
    return [f"SELECT id, {call} AS x FROM {TABLE} ORDER BY id"], False


def where(call, r):
    return [f"SELECT id FROM {TABLE} WHERE {call} ORDER BY id"], False


def compare(call, r):
    return [f"SELECT id, {call} {r.choice(['=', '<', '>=', '<=>', '<>'])} {other(r)} AS x FROM {TABLE} ORDER BY id"], False


def member(call, r):
    return [f"SELECT id, {call} IN ({other(r)}, {other(r)}) AS x FROM {TABLE} ORDER BY id"], False


def group(call, r):
    return [f"SELECT COUNT(*), MIN(id) AS a FROM {TABLE} GROUP BY {call} ORDER BY a"], False


def distinct(call, r):
    return [f"SELECT COUNT(DISTINCT {call}) FROM {TABLE}", f"SELECT COUNT(*) FROM (SELECT DISTINCT {call} AS x FROM {TABLE}) d"], False


def order(call, r):
    return [f"SELECT id FROM {TABLE} ORDER BY {call} {r.choice(['', 'DESC'])}, id"], False


def union(call, r):
    return [f"SELECT {call} AS x FROM {TABLE} WHERE id < 6 UNION ALL SELECT {other(r)} FROM {TABLE} WHERE id > 5"], True


def derived(call, r):
    return [f"SELECT id, x FROM (SELECT id, {call} AS x FROM {TABLE} LIMIT 100) d ORDER BY id"], False


def aggregate(call, r):
    return [f"SELECT {fill(r.choice(AGGREGATES), [call])} AS x FROM {TABLE}"], False


def grouped(call, r):
    return [f"SELECT tick, {fill(r.choice(AGGREGATES), [call])} AS x FROM {TABLE} GROUP BY tick"], False


def window(call, r):
    function = r.choice(["FIRST_VALUE({})", "LAG({})", "MAX({})", "SUM({})", "NTH_VALUE({}, 2)", "LEAD({}, 1, 0)"])
    return [f"SELECT id, {fill(function, [call])} OVER (ORDER BY id) AS x FROM {TABLE} ORDER BY id"], False


def subquery(call, r):
    return [f"SELECT id, {other(r)} = (SELECT {call} FROM {TABLE} WHERE id = {r.randrange(5)}) AS x FROM {TABLE} ORDER BY id"], False


def semi_join(call, r):
    return [f"SELECT id FROM {TABLE} a WHERE {r.choice(list(COLUMNS))} IN (SELECT {call} FROM {TABLE}) ORDER BY id"], False


def cast(call, r):
    return [f"SELECT id, CAST({call} AS {r.choice(['SIGNED', 'UNSIGNED', 'CHAR', 'DATE', 'DATETIME(6)', 'TIME(6)', 'DECIMAL(20,4)', 'DOUBLE', 'JSON', 'BINARY'])}) AS x FROM {TABLE} ORDER BY id"], False


def update(call, r):
    return ["BEGIN", f"UPDATE {TABLE} SET tick = tick + 1 WHERE {call}", f"SELECT id, tick FROM {TABLE} ORDER BY id", "ROLLBACK"], False


def delete(call, r):
    return ["BEGIN", f"DELETE FROM {TABLE} WHERE {call}", f"SELECT id FROM {TABLE} ORDER BY id", "ROLLBACK"], False


def assigned(call, r):
    name, ignore = r.choice(list(COLUMNS)), r.choice(["", "IGNORE "])
    return ["BEGIN", f"UPDATE {ignore}{TABLE} SET {name} = {call} WHERE id < 5", f"SELECT id, {name} FROM {TABLE} ORDER BY id", "ROLLBACK"], False


def insert(call, r):
    ignore = r.choice(["", "IGNORE "])
    return ["DROP TABLE IF EXISTS x1", f"CREATE TABLE x1 (id INT, x {r.choice(TARGETS)})", f"INSERT {ignore}INTO x1 SELECT id, {call} FROM {TABLE}", "SELECT id, x FROM x1 ORDER BY id"], False


def created(call, r):
    columns = "SELECT COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'x2' ORDER BY ORDINAL_POSITION"
    return ["DROP TABLE IF EXISTS x2", f"CREATE TABLE x2 AS SELECT id, {call} AS x FROM {TABLE}", columns, "SELECT id, x FROM x2 ORDER BY id"], False


def generated(call, r):
    of, kind, name = r.choice(TARGETS), r.choice(["VIRTUAL", "STORED"]), ", ".join(f"{name} {of}" for name, (of, _) in COLUMNS.items())
    return ["DROP TABLE IF EXISTS x3", f"CREATE TABLE x3 (id INT PRIMARY KEY, {name}, x {of} AS ({call}) {kind})",
            f"INSERT IGNORE INTO x3 (id, {', '.join(COLUMNS)}) SELECT id, {', '.join(COLUMNS)} FROM {TABLE}", "SELECT id, x FROM x3 ORDER BY id"], False


def checked(call, r):
    name = ", ".join(f"{name} {of}" for name, (of, _) in COLUMNS.items())
    return ["DROP TABLE IF EXISTS x4", f"CREATE TABLE x4 (id INT PRIMARY KEY, {name}, CHECK ({call}))",
            *(f"INSERT INTO x4 SELECT id, {', '.join(COLUMNS)} FROM {TABLE} WHERE id = {at}" for at in r.sample(range(11), 3)), "SELECT id FROM x4 ORDER BY id"], False


def functional(call, r):
    name = ", ".join(f"{name} {of}" for name, (of, _) in COLUMNS.items())
    return ["DROP TABLE IF EXISTS x5", f"CREATE TABLE x5 (id INT PRIMARY KEY, {name}, KEY k (({call})))", f"INSERT IGNORE INTO x5 SELECT id, {', '.join(COLUMNS)} FROM {TABLE}",
            f"SELECT id FROM x5 FORCE INDEX (k) WHERE {call} {r.choice(['=', '<', '>'])} {r.choice(LITERALS)} ORDER BY id"], False


def trigger(call, r):
    name = ", ".join(f"{name} {of}" for name, (of, _) in COLUMNS.items())
    inside = re.sub(r"(?<![\w'$.\"])(" + "|".join(COLUMNS) + r")(?![\w'\"])", r"NEW.\1", call)
    return ["DROP TABLE IF EXISTS x6", f"CREATE TABLE x6 (id INT PRIMARY KEY, {name}, x {r.choice(TARGETS)})", f"CREATE TRIGGER x6t BEFORE INSERT ON x6 FOR EACH ROW SET NEW.x = {inside}",
            *(f"INSERT INTO x6 (id, {', '.join(COLUMNS)}) SELECT id, {', '.join(COLUMNS)} FROM {TABLE} WHERE id = {at}" for at in r.sample(range(11), 3)), "SELECT id, x FROM x6 ORDER BY id"], False


def variable(call, r):
    at = r.randrange(11)
    return [f"SET @x = (SELECT {call} FROM {TABLE} WHERE id = {at})", "SELECT @x", f"SELECT @x + 0, CONCAT(@x), @x = {other(r)} FROM {TABLE} WHERE id = {at}"], False


def routine(call, r):
    of = r.choice(TARGETS)
    return ["DROP PROCEDURE IF EXISTS xp", f"CREATE PROCEDURE xp(n INT) BEGIN DECLARE x {of} DEFAULT (SELECT {call} FROM {TABLE} WHERE id = n); SELECT x; SET x = (SELECT {call} FROM {TABLE} WHERE id = n + 1); SELECT x, x = {r.choice(LITERALS)}; END",
            f"CALL xp({r.randrange(10)})"], False


def prepared(call, r):
    literal = r.choice(LITERALS)
    text = f"SELECT id, {call} = ? AS x, COALESCE({call}, ?) AS y FROM {TABLE} ORDER BY id".replace("'", "''")
    return [f"PREPARE q FROM '{text}'", f"SET @p = {literal}", "EXECUTE q USING @p, @p", f"SET @p = {r.choice(LITERALS)}", "EXECUTE q USING @p, @p"], False


PLACES = {
    "select": (30, select), "where": (6, where), "compare": (8, compare), "member": (5, member), "group": (4, group), "distinct": (4, distinct), "order": (5, order), "union": (5, union), "derived": (4, derived), "aggregate": (6, aggregate), "grouped": (2, grouped),
    "window": (4, window), "subquery": (4, subquery), "semi_join": (4, semi_join), "cast": (6, cast), "update": (4, update), "delete": (3, delete), "assigned": (5, assigned), "insert": (6, insert), "created": (5, created), "generated": (3, generated), "checked": (3, checked),
    "functional": (3, functional), "trigger": (2, trigger), "variable": (4, variable), "routine": (2, routine), "prepared": (4, prepared),
}
