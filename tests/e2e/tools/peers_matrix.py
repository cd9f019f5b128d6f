#!/usr/bin/python3
"""Every column type through the dump and log programs, between here and MariaDB, and back, byte for byte.

Dumps (plain, with --hex-blob, with --tab) and logs (`mariadb-binlog | mariadb`, `omnibus binlog --sql`), in both dialects, by Debian's programs;
`newer_mariadb.py` does so with newer ones.

Ring: gate.
"""

import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "sql"))
from column_types import TYPES  # noqa: E402
from omnibus import binary, client, expect, finished_binlogs  # noqa: E402
from peers import MariaPeer, OmnibusPeer, run_chosen  # noqa: E402

# Without a byte that a line or a field ends with: MariaDB's OUTFILE does not escape those of BIT.
BITS = [(f"BIT({n})", ["0", str(2**n - 1), f"b'1{'0' * (n - 1)}'"]) for n in range(1, 65)]
TEXTS = [(f"{kind} CHARACTER SET {charset}", values)
         for kind in ("CHAR(20)", "VARCHAR(20)", "TEXT", "ENUM('a','b')", "SET('a','b')")
         for charset, values in (("utf8mb4", ["'a'", "'b'"]), ("utf8mb3", ["'a'", "'b'"]), ("latin1", ["'b'", "'a'"]), ("ascii", ["'a'", "'b'"]))]
LETTERS = [("VARCHAR(20) CHARACTER SET latin1", ["'äöü€ÿ'", "'it''s \\\\ \\n \\t \\r \\0 \\Z'"]), ("VARCHAR(20) CHARACTER SET utf8mb3", ["'äöü€中'", "'\\\"x\\\"'"]),
           ("VARCHAR(20)", ["'😀'", "''"]), ("VARBINARY(20)", ["x'00275c0a0d091aff'", "''"]), ("BLOB", ["x'c328a0a1fffe00'", "'NULL'", "'\\\\N'"]),
           ("DECIMAL(65,30)", ["99999999999999999999999999999999999.999999999999999999999999999999", "-0.000000000000000000000000000001"]),
           ("DOUBLE", ["1.7976931348623157e308", "2.2250738585072014e-308", "-0e0", "0.1"]), ("FLOAT", ["3.40282e38", "1.17549e-38", "0.1"]),
           ("TIME(6)", ["'-838:59:59.000000'", "'00:00:00.000001'"]), ("DATE", ["'0000-00-00'", "'2024-02-29'"])]
# What only MariaDB and its dialect have. Not with --tab: text in character set binary is none of these to MariaDB.
FIXED = [("UUID", ["'01890000000070008000000000000000'", "'00112233445516778899aabbccddeeff'"]), ("INET4", ["'10.0.0.0'", "'255.255.255.255'"]),
         ("INET6", ["'::'", "'2001:db8::1'", "'1:2:3:4:5:6:7:0'"]), ("UUID NOT NULL DEFAULT '11112222-3333-4444-5555-666677778888'", ["x'00112233445516778899aabbccddee00'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"])]
TABLES = {"types": [(kind, values) for kind, values, _ in TYPES], "bits": BITS, "texts": TEXTS, "letters": LETTERS}


def fill(server, dialect):
    """A table for each group of types, and changes of its rows; a NULL and every value of every column."""
    text = ["SET NAMES utf8mb4; SET time_zone = '+00:00'; SET sql_mode = 'NO_ZERO_IN_DATE'",
            "CREATE DATABASE types DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", "USE types"]
    for name, columns in (TABLES | ({"fixed": FIXED} if dialect == "mariadb" else {})).items():
        wide = ", ".join(f"c{number} {kind}" for number, (kind, _) in enumerate(columns))
        most = max(len(values) for _, values in columns)
        rows = ", ".join(f"({row}, {', '.join((values + ['NULL'])[row % (len(values) + 1)] for _, values in columns)})" for row in range(most + 1))
        text += [f"CREATE TABLE {name} (id INT PRIMARY KEY, {wide}) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", f"INSERT INTO {name} VALUES {rows}",
                 f"INSERT INTO {name} SELECT id + 100, {', '.join(f'c{number}' for number in range(len(columns)))} FROM {name}",
                 f"UPDATE {name} SET id = id + 10 WHERE id > 101", f"DELETE FROM {name} WHERE id = 100"]
    client(server, ";\n".join(text), "--binary-mode")


def dump(server, *options):
    run = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={server.socket}", "-uroot", "--order-by-primary", *options, "types"], capture_output=True)
    expect(run.returncode == 0, f"mariadb-dump {options}: {run.stderr.decode(errors='replace')}")
    return run.stdout


def rows(server, dialect):
    """Every row of every table, exactly, but for the sign of a zero, which the mysql dialect shows and MariaDB does not."""
    text = dump(server, "--no-create-info", "--compact", "--skip-extended-insert", "--hex-blob")
    return re.sub(rb"(?<=[(,])-0(?=[,)])", b"0", text) if dialect == "mysql" else text


def definitions_of(server):
    """The definitions of all tables. MariaDB forgets that a column named the collation that its table has anyway; here it is kept, as in MySQL."""
    return dump(server, "--no-data", "--compact").replace(b" CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", b"")


def same(one, other, what):
    mine, theirs = one.splitlines(), other.splitlines()
    differ = [(a, b) for a, b in zip(mine, theirs) if a != b]
    expect(mine == theirs, f"{what}: {len(mine)} and {len(theirs)} rows; {[(a[:200], b[:200]) for a, b in differ[:2]]}")


def load(server, text, *options):
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--binary-mode", *options], input=text, capture_output=True)
    expect(run.returncode == 0, f"refused: {run.stderr.decode(errors='replace')[-800:]}")


def carry(source, target, how, directory):
    """Takes the database from one server to the other."""
    client(target, "DROP DATABASE IF EXISTS types; CREATE DATABASE types DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    if how != "--tab":
        return load(target, dump(source, *how.split()), "types")
    folder = pathlib.Path(directory) / "tab"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    dump(source, f"--tab={folder}", "--default-character-set=binary")
    for path in sorted(folder.glob("*.sql")):
        load(target, path.read_bytes(), "types")
        file = path.with_suffix(".txt")
        load(target, f"SET time_zone='+00:00', sql_mode=''; LOAD DATA INFILE '{file}' INTO TABLE {path.stem} CHARACTER SET binary".encode(), "types")


def servers(directory, dialect):
    ours = [OmnibusPeer(f"{directory}/{dialect}{n}", n, f"--dialect={dialect}", f"--secure-file-priv={directory}") for n in (1, 2)]
    theirs = [MariaPeer(f"{directory}/m{dialect}{n}", n + 2) for n in (1, 2)]
    for server in (*ours, *theirs):
        server.start()
    return ours, theirs


def through_dumps(directory, dialect):
    ours, theirs = servers(directory, dialect)
    for first, second, third in ((ours[0], theirs[0], ours[1]), (theirs[0], ours[1], theirs[1])):
        client(first, "DROP DATABASE IF EXISTS types")
        fill(first, dialect)
        for how in ("--complete-insert", "--hex-blob", "--tab"):
            if how == "--tab":
                client(first, "DROP TABLE IF EXISTS types.fixed")
            expected, definitions = rows(first, dialect), definitions_of(first)
            carry(first, second, how, directory)
            same(rows(second, dialect), expected, f"{dialect}: {how}, one way")
            carry(second, third, how, directory)
            same(rows(third, dialect), expected, f"{dialect}: {how}, there and back")
            same(definitions_of(third), definitions, f"{dialect}: {how}, definitions there and back")
    for server in (*ours, *theirs):
        server.stop()


def logs_of(server, program):
    files = finished_binlogs(server) if isinstance(server, OmnibusPeer) else sorted(str(path) for path in server.datadir.glob("binlog.0*"))
    run = subprocess.run([*program, *files], capture_output=True)
    expect(run.returncode == 0, f"{program}: {run.stderr.decode(errors='replace')}")
    return run.stdout


def through_logs(directory, dialect):
    ours, theirs = servers(directory, dialect)
    for source in (ours[0], theirs[0]):
        fill(source, dialect)
        expected = rows(source, dialect)
        for program in (["mariadb-binlog", "--no-defaults"], [binary(), "binlog", "--sql", "--skip-gtids"]):
            text = logs_of(source, program)
            for target in (ours[1], theirs[1]):
                client(target, "DROP DATABASE IF EXISTS types")
                load(target, text)
                same(rows(target, dialect), expected, f"{dialect}: {program[0]} from {source.log_name} into {target.log_name}")
    for server in (*ours, *theirs):
        server.stop()


def dumps_mysql(directory):
    through_dumps(directory, "mysql")


def dumps_mariadb(directory):
    through_dumps(directory, "mariadb")


def logs_mysql(directory):
    through_logs(directory, "mysql")


def logs_mariadb(directory):
    through_logs(directory, "mariadb")


if __name__ == "__main__":
    run_chosen("peers_matrix", [dumps_mysql, dumps_mariadb, logs_mysql, logs_mariadb])
