#!/usr/bin/python3
"""What a result says of its columns holds: no value is longer than announced, none is NULL in a column that is NOT NULL, fractions
and decimals have the digits that are announced, and text is text. CREATE TABLE .. SELECT makes columns that keep every value.

Expressions over columns of every type, with the largest, the least and plain values. Clients allocate by these numbers.

Ring: gate.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
from omnibus import Omnibus, Scratch, connect, expect  # noqa: E402

COLUMNS = """ti TINYINT, si SMALLINT UNSIGNED, mi MEDIUMINT, i INT, iu INT UNSIGNED, b BIGINT NOT NULL, bu BIGINT UNSIGNED, d DECIMAL(10,3),
    d0 DECIMAL(5,0), du DECIMAL(8,2) UNSIGNED, dd DECIMAL(3,3), f FLOAT, db DOUBLE, bt BIT(12), dt DATE, tm TIME, t3 TIME(3), m DATETIME,
    m6 DATETIME(6), ts TIMESTAMP(2) NULL, y YEAR, ch CHAR(5), vc VARCHAR(20), vl VARCHAR(10) CHARACTER SET latin1, bn BINARY(4),
    vb VARBINARY(9), tx TEXT, tt TINYTEXT, lt LONGTEXT, bl BLOB, en ENUM('a','bbb','ö'), st SET('a','bb','ö'), js JSON"""
NAMES = [column.split()[0] for column in COLUMNS.split(", ") if column.split()[0].islower()]
ROWS = ["""127, 65535, 8388607, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 9999999.999, 99999, 999999.99, 0.999,
        3.40282e38, -1.7976931348623157e300, b'111111111111', '9999-12-31', '-838:59:59', '-838:59:59.000', '9999-12-31 23:59:59',
        '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07.99', 2155, 'ääääß', REPEAT('€', 20), REPEAT('ÿ', 10), x'ffffffff', REPEAT(x'ff', 9),
        REPEAT('𝄞', 1000), REPEAT('𝄞', 63), REPEAT('y', 2000), REPEAT(x'ff', 1000), 'bbb', 'a,bb,ö', '{"a": [1, null]}'""",
        """-128, 0, -8388608, -2147483648, 0, -9223372036854775808, 0, -9999999.999, -99999, 0, -0.999, -1.17549e-38, -2.5e-300, 0, '1000-01-01',
        '838:59:59', '838:59:59.000', '1000-01-01', '1000-01-01', '1970-01-01 00:00:01.00', 0, '', '', '', '', '', '', '', '', '', 'ö', '', '[]'""",
        """1, 1, 1, 1, 1, 1, 1, 1.5, 1, 1.5, 0.5, 0.333, 0.1, 1, '2024-01-01', '10:00:00', '10:00:00.5', '2024-01-01', '2024-01-01', '2024-01-01',
        1999, '1', '1', '1', '1', '1', '1', '1', '1', '1', 'a', 'a', '1'"""]
OVER = ["{}", "-{}", "{} + 1", "{} * 2", "{} / 3", "{} DIV 2", "{} % 3", "ABS({})", "CEIL({})", "CONCAT({})", "CONCAT({}, {})", "HEX({})", "IFNULL({}, 1)",
        "IFNULL({}, 'x')", "COALESCE({}, {})", "MAX({})", "SUM({})", "AVG({})", "CAST({} AS CHAR)", "CAST({} AS SIGNED)", "IF(1, {}, NULL)", "UPPER({})",
        "LEFT({}, 3)", "REPEAT({}, 3)", "{} | 1", "BIT_AND({})", "GREATEST({}, {})", "LENGTH({})", "TRIM({})", "NULLIF({}, 1)", "{} IS NULL", "{} = 1",
        "CASE WHEN 1 THEN {} END", "(SELECT {})", "CONCAT_WS('--', {}, {}, {})", "REPLACE({}, 'a', 'ääää')", "QUOTE({})", "SOUNDEX({})", "STRCMP({}, 'a')",
        "MAKE_SET(3, {}, 'ää')", "SUBSTRING_INDEX({}, 'b', 1)", "INSERT({}, 1, 1, 'äää')", "LPAD({}, 30, 'é')", "TO_DAYS({})", "TO_SECONDS({})",
        "DATEDIFF({}, {})", "YEARWEEK({})", "TIME_TO_SEC({})", "TIMESTAMPDIFF(DAY, {}, NOW())", "DATE({})", "TIME({})", "ADDTIME({}, '1:00')",
        "DATE_FORMAT({}, '%W %M %f')", "LEAST({}, '1')", "MINUTE({})", "LAST_DAY({})", "UNIX_TIMESTAMP({})", "FROM_DAYS({})", "JSON_QUOTE({})",
        "JSON_ARRAY({})", "INET_ATON({})", "CRC32({})", "MD5({})", "TO_BASE64({})", "CONV({}, 10, 2)", "ROUND({})", "FORMAT({}, 2)", "FORMAT({}, 30, 'en_IN')", "FIELD({}, 'a')", "ORD({})"]
DECIMAL, TEMPORAL, REAL, BINARY, NOT_NULL = (0, 246), (7, 11, 12), (4, 5), 63, 1


def wrong_with(field, value):
    """What an announced column does not say of its value."""
    if value is None:
        return "NULL in a NOT NULL column" if field.flags & NOT_NULL else None
    if len(value) > field.length and field.type_code not in REAL:
        return f"{len(value)} bytes, {field.length} announced"
    digits = len(value.partition(b".")[2])
    if field.type_code in DECIMAL + TEMPORAL and digits != field.scale:
        return f"{digits} decimals, {field.scale} announced"
    if field.charsetnr != BINARY:
        try:
            value.decode("utf-8")
        except UnicodeDecodeError:
            return "bytes in a column of text"
    return None


def main():
    with Scratch("omnibus-announced-") as directory:
        server = Omnibus(directory, "--sync-binlog=0")
        server.start()
        db = connect(server, autocommit=True, conv={}, charset="utf8mb4", use_unicode=False)
        cursor = db.cursor()

        def code_of(sql):
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError as error:
                return error.args
            return None

        for sql in ("SET sql_mode = 'STRICT_TRANS_TABLES'", "CREATE DATABASE announced", "USE announced", f"CREATE TABLE c ({COLUMNS})",
                    *(f"INSERT INTO c VALUES ({row})" for row in ROWS)):
            expect(not code_of(sql), f"{sql}: {code_of(sql)}")
        wrong, asked = [], 0
        for name in NAMES:
            for over in OVER:
                for where in ("b > 1", "b < 0", "b = 1"):
                    query = f"SELECT {over.replace('{}', name)} AS x FROM c WHERE {where}"
                    if code_of(query):
                        continue
                    asked += 1
                    warned, field, rows = cursor._result.warning_count, cursor._result.fields[0], cursor.fetchall()
                    wrong += [f"{query}: {what} ({row[0][:40] if row[0] else row[0]})" for row in rows if (what := wrong_with(field, row[0]))]
                    # What warns may be refused in strict mode; a DOUBLE as text may be longer than MySQL makes columns.
                    if warned or name in ("f", "db"):
                        continue
                    refused = code_of("DROP TEMPORARY TABLE IF EXISTS made") or code_of(f"CREATE TEMPORARY TABLE made AS {query}") or code_of("SELECT x FROM made")
                    if refused or cursor.fetchall() != rows:
                        wrong.append(f"{query}: a column of it is {refused or 'not the same'}")
        server.stop()
        expect(asked > 5000, f"{asked} expressions answered")
        expect(not wrong, f"{len(wrong)} of {asked}:\n" + "\n".join(wrong[:40]))
        print(f"{asked} expressions keep what they announce")


if __name__ == "__main__":
    main()
