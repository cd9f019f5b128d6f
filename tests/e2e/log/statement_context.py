#!/usr/bin/python3
"""Everything that a statement depends on, one item at a time: executed under binlog_format=STATEMENT here and on MariaDB, and
done again by a replica (either way), by our SQL and `mariadb-binlog`'s, and by way of JSON lines. All must have the data that
the origin has. What no data shows (times, flags) is looked for in the JSON lines. Then what a session has beside BINLOG.

Ring: all.
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Scratch, Session, binary, client, expect, finished_binlogs  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, log_position, replicate, table_contents, wait_caught_up  # noqa: E402

BOTH, OURS, MARIA = ("ours", "maria"), ("ours",), ("maria",)

# Item of context, where it is executed, the connection's character set, statements; `!`: fails with 1062.
ITEMS = [
    ("query text", BOTH, "utf8mb4", ["CREATE TABLE text (v TEXT)", "INSERT INTO text VALUES ('it''s ü €\\n\\0\\'')"]),
    ("default database", BOTH, "utf8mb4", ["CREATE DATABASE other", "CREATE TABLE other.here (v INT)", "USE other",
                                           "INSERT INTO here VALUES (1)", "USE c", "INSERT INTO other.here VALUES (2)"]),
    ("sql_mode", BOTH, "utf8mb4", ["CREATE TABLE mode (v VARCHAR(4), n INT)", "SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",
                                   "INSERT INTO \"mode\" VALUES ('a' || 'b', 1)", "SET sql_mode = ''",
                                   "INSERT INTO mode VALUES ('too long', '7x')", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'",
                                   "INSERT INTO mode VALUES ('\\n', 2)"]),
    ("autocommit", BOTH, "utf8mb4", ["CREATE TABLE auto (v INT)", "SET autocommit = 0", "INSERT INTO auto VALUES (1)",
                                     "COMMIT", "INSERT INTO auto VALUES (2)", "ROLLBACK"]),
    ("client's character set", BOTH, "latin1", ["CREATE TABLE latin (v VARCHAR(20) CHARACTER SET utf8mb4)",
                                                "INSERT INTO latin VALUES ('ä'), (CONCAT('ö', CHAR_LENGTH('öö')))"]),
    ("names in latin1", BOTH, "latin1", ["CREATE TABLE grün (größe INT COMMENT 'ö', e ENUM('ä','x') DEFAULT 'ä', UNIQUE KEY ü (größe))",
                                         "INSERT INTO `grün` (größe) VALUES (1), (2)", "SET @o = 5",
                                         "INSERT INTO grün SELECT s.größe, 'x' FROM grün s ON DUPLICATE KEY UPDATE größe = s.größe + @o",
                                         "ALTER TABLE grün ADD neü VARCHAR(20) DEFAULT 'öé'"]),
    ("literals", BOTH, "latin1", ["CREATE TABLE lits (v VARCHAR(40), w VARCHAR(40))",
                                  "INSERT INTO lits VALUES (HEX('ä'), COLLATION('ä')), (HEX(_latin1'ä'), HEX(_binary'ä'))",
                                  "SET collation_connection = utf8mb4_unicode_ci",
                                  "INSERT INTO lits VALUES (HEX('ä'), COLLATION('ä')), (HEX(_latin1'ä'), HEX(_binary'ä'))",
                                  "SET NAMES utf8mb4", "SET character_set_connection = latin1",
                                  "INSERT INTO lits VALUES (HEX('ä'), COLLATION('ä'))"]),
    ("connection's collation", BOTH, "utf8mb4", ["CREATE TABLE conn (v INT)", "SET collation_connection = utf8mb4_bin",
                                                 "INSERT INTO conn VALUES ('a' = 'A')", "SET collation_connection = utf8mb4_general_ci",
                                                 "INSERT INTO conn VALUES ('a' = 'A')"]),
    ("server's collation", BOTH, "utf8mb4", ["SET collation_server = latin1_swedish_ci", "CREATE DATABASE swedish",
                                             "CREATE TABLE swedish.t (v VARCHAR(9))", "INSERT INTO swedish.t VALUES ('å')"]),
    ("checks", BOTH, "utf8mb4", ["CREATE TABLE checks (v INT)", "SET foreign_key_checks = 0, unique_checks = 0",
                                 "INSERT INTO checks VALUES (@@foreign_key_checks * 2 + @@unique_checks)"]),
    ("checks of rows", BOTH, "utf8mb4", ["CREATE TABLE checked (v INT, CHECK (v < 10))", "SET check_constraint_checks = 0",
                                         "INSERT INTO checked VALUES (20), (@@check_constraint_checks)", "ALTER TABLE checked ADD CHECK (v > 100)",
                                         "SET check_constraint_checks = 1", "CREATE TABLE after (v INT, CHECK (v < 10))", "INSERT INTO after VALUES (@@check_constraint_checks)"]),
    ("auto_increment", BOTH, "utf8mb4", ["CREATE TABLE tens (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
                                         "SET auto_increment_increment = 10, auto_increment_offset = 3",
                                         "INSERT INTO tens (v) VALUES (1), (2), (3)"]),
    ("time zone", BOTH, "utf8mb4", ["CREATE TABLE zone (v DATETIME, w DATETIME, t TIMESTAMP NULL)", "SET time_zone = '+05:30'",
                                    "SET timestamp = 1700000000", "INSERT INTO zone VALUES (NOW(), FROM_UNIXTIME(0), '2020-01-01')"]),
    ("named time zone", BOTH, "utf8mb4", ["CREATE TABLE named (v DATETIME, w BIGINT, t TIMESTAMP NULL)", "SET time_zone = 'Europe/Berlin'",
                                          "SET timestamp = 1700000000", "INSERT INTO named VALUES (NOW(), UNIX_TIMESTAMP('2024-10-27 02:30:00'), "
                                          "'2024-10-27 02:30:00'), (FROM_UNIXTIME(1711846800), UNIX_TIMESTAMP('2024-03-31 02:30:00'), NOW())",
                                          "SET timestamp = 1720000000, sql_mode = ''",
                                          "INSERT INTO named VALUES (NOW(), @@time_zone = 'Europe/Berlin', '2024-03-31 02:30:00.7')"]),
    ("lc_time_names", BOTH, "utf8mb4", ["CREATE TABLE names (v VARCHAR(40) CHARACTER SET utf8mb4)", "SET lc_time_names = 'de_DE'",
                                        "INSERT INTO names VALUES (DATE_FORMAT('2024-03-02', '%M %b %W %a')), (MONTHNAME('2024-05-01'))",
                                        "SET lc_time_names = 'ru_RU'", "INSERT INTO names VALUES (DAYNAME('2024-03-02'))"]),
    ("lc_time_names in latin1", BOTH, "latin1", ["CREATE TABLE lnames (v VARCHAR(40))", "SET lc_time_names = 'de_AT'",
                                                 "INSERT INTO lnames VALUES (MONTHNAME('2024-01-02')), (DATE_FORMAT('2024-03-02', 'ü%M'))"]),
    ("sql_auto_is_null", BOTH, "utf8mb4", ["CREATE TABLE odbc (id INT AUTO_INCREMENT PRIMARY KEY, v INT)", "SET sql_auto_is_null = 1",
                                           "INSERT INTO odbc (v) VALUES (1), (2)", "UPDATE odbc SET v = 10 WHERE id IS NULL",
                                           "UPDATE odbc SET v = 20 WHERE id IS NULL", "INSERT INTO odbc (v) VALUES (3)",
                                           "DELETE FROM odbc WHERE id IS NULL", "UPDATE odbc SET v = v + 1"]),
    ("error code", MARIA, "utf8mb4", ["CREATE TABLE half (id INT PRIMARY KEY) ENGINE=MyISAM",
                                      "!INSERT INTO half VALUES (1), (2), (1), (3)", "INSERT INTO half VALUES (5)"]),
    ("connection's id", BOTH, "utf8mb4", ["CREATE TABLE conn_id (v BIGINT)", "INSERT INTO conn_id VALUES (CONNECTION_ID())"]),
    ("LAST_INSERT_ID and INSERT_ID", BOTH, "utf8mb4", ["CREATE TABLE ids (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
                                                       "INSERT INTO ids (v) VALUES (1), (2)", "INSERT INTO ids (v) VALUES (LAST_INSERT_ID())",
                                                       "SET insert_id = 70", "INSERT INTO ids (v) VALUES (3)"]),
    ("RAND seeds", BOTH, "utf8mb4", ["CREATE TABLE rnd (v DOUBLE)", "INSERT INTO rnd VALUES (RAND()), (RAND())"]),
    ("user variables", BOTH, "utf8mb4", ["CREATE TABLE vars (a VARCHAR(30), b DOUBLE, c BIGINT UNSIGNED, d DECIMAL(20,5), e INT)",
                                         "SET @s = _latin1 X'E4' COLLATE latin1_bin, @r = 1e-3, @u = 18446744073709551615, "
                                         "@d = -1.50, @n = NULL", "INSERT INTO vars VALUES (@s, @r, @u, @d, @n)",
                                         "INSERT INTO vars VALUES (COLLATION(@s), -@r, 0, @d * 2, @s = 'Ä')"]),
    ("LOAD DATA", BOTH, "utf8mb4", ["CREATE DATABASE files CHARACTER SET latin1", "USE files",
                                    "CREATE TABLE loaded (v VARCHAR(20) CHARACTER SET utf8mb4, w INT)",
                                    "LOAD DATA LOCAL INFILE '{file}' INTO TABLE loaded FIELDS TERMINATED BY ',' (v, @w) SET w = @w + 1"]),
    ("execution time", BOTH, "utf8mb4", ["CREATE TABLE slow (v INT)", "INSERT INTO slow VALUES (SLEEP(1.1))"]),
    ("tables of an UPDATE", BOTH, "utf8mb4", ["CREATE TABLE up1 (id INT PRIMARY KEY, v INT)", "CREATE TABLE up2 (id INT PRIMARY KEY, v INT)",
                                              "INSERT INTO up1 VALUES (1, 1)", "INSERT INTO up2 VALUES (1, 5)",
                                              "UPDATE up1 JOIN up2 USING (id) SET up2.v = up2.v + up1.v"]),
    ("temporary tables", BOTH, "utf8mb4", ["CREATE TABLE kept (v INT)", "CREATE TEMPORARY TABLE tmp (v INT)", "INSERT INTO tmp VALUES (4), (5)",
                                           "INSERT INTO kept SELECT v FROM tmp", "DROP TEMPORARY TABLE tmp"]),
    ("microseconds", MARIA, "utf8mb4", ["CREATE TABLE micro (v DATETIME(6))", "INSERT INTO micro VALUES (NOW(6))"]),
    ("utf8mb4's collation", OURS, "utf8mb4", ["SET default_collation_for_utf8mb4 = 'utf8mb4_0900_ai_ci'", "CREATE TABLE words (v VARCHAR(9)) "
                                              "CHARACTER SET utf8mb4", "INSERT INTO words VALUES ('ß')"]),
]

# What is only in the log: a part of a statement's text, and what its line of JSON must have.
FACTS = [
    # It was off. A MySQL replica that is told so stops at the next transaction, and no peer says it.
    ("INSERT INTO auto VALUES (1)", lambda line: line["autocommit"] is True),
    ("INSERT INTO slow", lambda line: line["exec_time_s"] >= 1),
    ("UPDATE up1 JOIN", lambda line: line["updated_tables"] == 2),
    ("INSERT INTO checks", lambda line: line["foreign_key_checks"] is False and line["unique_checks"] is False),
    ("UPDATE odbc SET v = 10", lambda line: line["sql_auto_is_null"] is True and line["last_insert_id"] == 1),
    ("MONTHNAME('2024-05-01')", lambda line: line["lc_time_names"] == 4),
    ("INSERT INTO conn_id", lambda line: line["thread_id"] > 0),
    ("LOAD DATA", lambda line: "file" in line),
]


def run_items(server, kind, file):
    client(server, "CREATE DATABASE c CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    for name, where, charset, statements in ITEMS:
        if kind not in where:
            continue
        session = Session(server, database="c", charset=charset, local_infile=True)
        session("SET binlog_format = STATEMENT")
        for sql in statements:
            if sql.startswith("!"):
                session.fails(sql[1:], 1062)
                continue
            try:
                session(sql.replace("{file}", str(file)))
            except Exception as error:
                raise SystemExit(f"FAIL: {kind}, {name}: {sql}: {error}") from error
        session.close()


def contents(server):
    """Every row of every table, and what kind of tables they are."""
    out = {}
    for database in ("c", "other", "swedish", "files"):
        for table in client(server, f"SHOW TABLES FROM {database}").split():
            out[f"{database}.{table}"] = table_contents(server, database, table)
    out["collations"] = client(server, "SELECT SCHEMA_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA "
                                       "WHERE SCHEMA_NAME IN ('swedish', 'files') ORDER BY 1")
    out["columns"] = client(server, "SELECT TABLE_NAME, COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS "
                                    "WHERE TABLE_SCHEMA IN ('c', 'swedish') AND COLLATION_NAME IS NOT NULL ORDER BY 1, 2")
    return out


def compare(origin, other, how):
    expect(len(origin) > 20, f"only {len(origin)} tables")
    for name, rows in origin.items():
        expect(other.get(name) == rows, f"{how}: {name} is\n{other.get(name)}\nand at the origin\n{rows}")


def piped(reader, server, how):
    """What a command prints, executed by a server."""
    printed = subprocess.run(reader, capture_output=True)
    expect(printed.returncode == 0, f"{how}: {printed.stderr.decode(errors='replace')}")
    command = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--binary-mode", "--local-infile=1", "--force"]
    done = subprocess.run(command, input=printed.stdout, capture_output=True)
    # What failed where it was born fails here.
    errors = [line for line in done.stderr.decode(errors="replace").splitlines() if line.startswith("ERROR")]
    complaints = [line for line in errors if not line.startswith("ERROR 1062")]
    expect(not complaints, f"{how}: {complaints[:3]}")


def every_item(directory, kind):
    """From one origin by every way."""
    folder = pathlib.Path(directory)
    file = folder / "rows.csv"
    file.write_bytes("ä,1\nö,2\n".encode("latin1"))
    make = OmnibusPeer if kind == "ours" else MariaPeer
    origin = make(folder / "origin", 1, "--local-infile=1")
    names = ("replica", "sql", "json") if kind == "ours" else ("replica", "printed", "sql", "json")
    targets = {name: OmnibusPeer(folder / name, n + 10, "--local-infile=1") for n, name in enumerate(names)}
    servers = [origin, *targets.values()]
    for server in servers:
        server.start()
    if kind == "maria":
        # Ours reads the same files by itself.
        zone = subprocess.run(["mariadb-tzinfo-to-sql", "/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"], capture_output=True, text=True)
        client(origin, f"SET sql_log_bin = 0; USE mysql; {zone.stdout}")
    try:
        create_user(origin)
        replicate(targets["replica"], origin, log_position(origin))
        run_items(origin, kind, file)
        wanted = contents(origin)
        wait_caught_up(targets["replica"], origin)
        if kind == "ours":
            files = finished_binlogs(origin)
        else:
            client(origin, "FLUSH BINARY LOGS")
            files = sorted(str(path) for path in origin.datadir.glob("binlog.[0-9]*"))[:-1]
        lines = subprocess.run([binary(), "binlog", "--json", *files], capture_output=True)
        (folder / "lines").write_bytes(lines.stdout)
        for name in ("load-sql", "load-json", "load-printed"):
            (folder / name).mkdir()
        piped([binary(), "binlog", "--sql", "--skip-gtids", "--local-load", str(folder / "load-sql"), *files], targets["sql"], "our SQL")
        piped([binary(), "replay", "--local-load", str(folder / "load-json"), str(folder / "lines")], targets["json"], "JSON")
        if "printed" in targets:
            piped(["mariadb-binlog", "--no-defaults", f"--local-load={folder}/load-printed", *files], targets["printed"], "mariadb-binlog")
        for how, target in targets.items():
            found = contents(target)
            if how != "replica" and kind == "maria":
                # A session cannot be told that what a failed statement did before is to stay.
                found["c.half"] = wanted["c.half"]
            compare(wanted, found, f"{kind} by {how}")
        statements = [line for line in map(json.loads, lines.stdout.splitlines()) if line["type"] == "statement"]
        for part, right in FACTS:
            found = [line for line in statements if isinstance(line["sql"], str) and part in line["sql"]]
            expect(found and right(found[0]), f"{kind}: the line of {part!r}: {found}")
        if kind == "maria":
            failed = next(line for line in statements if str(line["sql"]).startswith("INSERT INTO half"))
            expect(failed["error_code"] == 1062, f"the error's code: {failed}")
            expect(any(line.get("temporary_tables") for line in statements), "statements of temporary tables say so")
    finally:
        for server in reversed(servers):
            server.stop()


STATE = ("SELECT @@sql_mode, @@autocommit, @@foreign_key_checks, @@unique_checks, @@sql_auto_is_null, @@lc_time_names, @@time_zone, "
         "@@character_set_client, @@collation_connection, @@auto_increment_increment, @@auto_increment_offset, @@timestamp, "
         "DATE_FORMAT('2024-03-02', '%M'), LAST_INSERT_ID(), DATABASE(), CONNECTION_ID(), @kept")


def binlog_leaves_no_trace(directory):
    """What a session has set is as it was behind BINLOG, also behind one that fails."""
    server = OmnibusPeer(directory, 1)
    server.start()
    try:
        client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9));"
                       "SET foreign_key_checks = 0, unique_checks = 0, timestamp = 1000; INSERT INTO d.t VALUES (1, 'x')")
        printed = subprocess.run([binary(), "binlog", "--sql", *finished_binlogs(server)], capture_output=True, text=True).stdout
        events = [part.split("'")[0] for part in printed.split("BINLOG '")[1:]]
        session = Session(server, database="d")
        session.run("CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO made VALUES (NULL), (NULL)",
                    "SET sql_mode = 'ANSI_QUOTES', sql_auto_is_null = 1, lc_time_names = 'fr_FR', time_zone = '+03:00', timestamp = 12345, "
                    "auto_increment_increment = 5, auto_increment_offset = 2, collation_connection = utf8mb4_bin, @kept = 'here'")
        before = session(STATE)
        for event in events[:-1]:
            session(f"BINLOG '{event}'")
        session.fails(f"BINLOG '{events[-1]}'", 1062)
        session("DELETE FROM t")
        session(f"BINLOG '{events[-1]}'")
        expect(session("SELECT * FROM t") == ((1, "x"),), "BINLOG did its work")
        expect(session(STATE) == before, f"before BINLOG {before}, behind it {session(STATE)}")
    finally:
        server.stop()


def main():
    for kind in ("ours", "maria"):
        with Scratch("omnibus-context-") as directory:
            every_item(directory, kind)
        print(f"every_item, {kind}: ok", flush=True)
    with Scratch("omnibus-context-") as directory:
        binlog_leaves_no_trace(directory)
    print("binlog_leaves_no_trace: ok", flush=True)


if __name__ == "__main__":
    main()
