#!/usr/bin/python3
"""CHECKSUM TABLE gives the number that MariaDB gives for the same rows in columns of the same types.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from column_types import TYPES  # noqa: E402
from omnibus import connect, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, run_chosen  # noqa: E402

INTS = [f"c{n} INT" for n in range(9)]
# Columns, and rows.
TABLES = [
    ("a INT", ["(1)", "(NULL)"]), ("a INT) ROW_FORMAT=DYNAMIC -- ", ["(1)"]), ("a INT NOT NULL", ["(1)", "(1)"]), (", ".join(INTS), [f"({', '.join('NULL' if n % 2 else str(n) for n in range(9))})", f"({', '.join(['NULL'] * 9)})"]),
    (", ".join(INTS[:7]), ["(1, NULL, 3, NULL, 5, 6, 7)"]), (", ".join(["v VARCHAR(3)", *INTS[:7]]), ["('a', NULL, 3, NULL, 5, 6, 7, 8)"]),
    ("a CHAR(10), b CHAR(10) CHARACTER SET latin1, c BINARY(4), d VARBINARY(10), e BLOB", ["('ä', 'ä', x'0102', x'00', x'ff00')", "('', '', '', '', '')"]),
    ("a ENUM('x', 'y') NOT NULL, b SET('p', 'q') NOT NULL, c ENUM('x') NULL", ["('y', 'p,q', NULL)"]),
    ("a TIME(3), b DATETIME(6), c TIMESTAMP(2) NULL, d TIME, e TIMESTAMP NULL, y YEAR, f DATE", ["('-10:11:12.5', '2020-01-02 03:04:05.123456', '2020-01-02 03:04:05.12', '838:59:59', '2001-01-01 00:00:01', 1999, '2020-02-29')"]),
    ("a BIT(1), b BIT(64), c BIT(9)", ["(1, 18446744073709551615, 257)", "(0, NULL, 0)"]),
    ("a TINYINT UNSIGNED, b SMALLINT, c MEDIUMINT, d BIGINT UNSIGNED, e DECIMAL(65,30), f FLOAT, g DOUBLE", ["(255, -1, -2, 18446744073709551615, -1.5, 3.14, 0.1)"]),
    ("a TINYTEXT, b MEDIUMBLOB, c LONGTEXT CHARACTER SET latin1", ["('x', x'00', 'é')", "(NULL, NULL, NULL)"]), ("a LONGTEXT", ["(REPEAT('ü', 100000))", "('')"]),
    ("a VARCHAR(300), b CHAR(0), c CHAR(1) NOT NULL", ["(REPEAT('ü', 200), '', '')", "(NULL, NULL, 'x')"]), ("a INT PRIMARY KEY, b INT, KEY (b)", ["(3, NULL)", "(1, 2)", "(2, 3)"]), ("a INT", []),
    ("a INT, b INT AS (a + 1) VIRTUAL, c INT AS (a + 2) STORED", ["(1, DEFAULT, DEFAULT)", "(NULL, DEFAULT, DEFAULT)"]), ("a VARCHAR(10), b VARCHAR(20) AS (CONCAT(a, 'x')) VIRTUAL", ["('q', DEFAULT)"]),
    ("a INT NOT NULL, b INT AS (a + 1) VIRTUAL", ["(1, DEFAULT)"]), ("a INT, v INT AS (a + 1) VIRTUAL, d INT", ["(1, DEFAULT, 3)"]), ("a INT PRIMARY KEY, b VARCHAR(5) AS (a + 1) VIRTUAL, KEY (b)", ["(1, DEFAULT)"]),
    *((f"a {kind}", [f"({value})" for value in [*values, "NULL"]]) for kind, values, _ in TYPES),
    *((f"a {kind}, v VARCHAR(5) NOT NULL", [f"({value}, 'x')" for value in [*values, "NULL"]]) for kind, values, _ in TYPES),
]


def sums(server, kinds):
    cursor = connect(server, autocommit=True, charset="utf8mb4").cursor()
    for sql in ("SET time_zone = '+00:00', sql_mode = ''", "DROP DATABASE IF EXISTS d", "CREATE DATABASE d CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE d"):
        cursor.execute(sql)
    found = {}
    for kind in kinds:
        for number, (columns, rows) in enumerate(TABLES):
            cursor.execute(f"CREATE {kind} TABLE t{number} ({columns})")
            for row in rows:
                cursor.execute(f"INSERT INTO t{number} VALUES {row}")
            cursor.execute(f"CHECKSUM TABLE t{number}")
            found[kind, columns] = cursor.fetchall()
            if kind:
                cursor.execute(f"DROP TEMPORARY TABLE t{number}")
    return found


def checksums(directory):
    theirs = MariaPeer(f"{directory}/theirs", 1)
    theirs.start()
    expected = sums(theirs, [""])
    theirs.stop()
    for number, dialect in enumerate(("mysql", "mariadb"), 2):
        ours = OmnibusPeer(f"{directory}/{dialect}", number, f"--dialect={dialect}")
        ours.start()
        for (kind, columns), found in sums(ours, ["TEMPORARY", ""]).items():
            # MySQL's JSON is another type than MariaDB's.
            if not (dialect == "mysql" and " JSON" in columns):
                expect(found == expected["", columns], f"{dialect}: {kind} TABLE ({columns}): {found} instead of {expected['', columns]}")
        ours.stop()


if __name__ == "__main__":
    run_chosen("checksum_table", [checksums])
