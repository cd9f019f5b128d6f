#!/usr/bin/python3
"""What drivers, exporters and migration tools read of a server before they do anything.

Every table of information_schema and performance_schema that MySQL has answers, though most have no rows here; what there is not
is an error. KEYWORDS, PLUGINS and the tables of privileges say what is true.

Ring: gate.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, Omnibus, Scratch, connect, error_code, expect  # noqa: E402
from peers import query  # noqa: E402
from twins import run  # noqa: E402

ONLY_MARIADB = ("information_schema.INNODB_LOCKS", "information_schema.INNODB_LOCK_WAITS")
EMPTY = ROOT / "crates/sql/src/information_schema/empty.txt"
# What exporters poll.
POLLED = ["information_schema.INNODB_METRICS", "information_schema.INNODB_TRX", "information_schema.INNODB_CMP", "information_schema.INNODB_TABLESPACES",
          "information_schema.INNODB_BUFFER_POOL_STATS", "performance_schema.events_statements_summary_by_digest", "performance_schema.file_summary_by_instance",
          "performance_schema.table_io_waits_summary_by_table", "performance_schema.table_io_waits_summary_by_index_usage", "performance_schema.data_locks",
          "performance_schema.setup_consumers", "performance_schema.threads", "performance_schema.memory_summary_global_by_event_name",
          "information_schema.ROUTINES", "information_schema.PARAMETERS", "information_schema.TRIGGERS", "information_schema.EVENTS", "information_schema.FILES"]


def tables(server):
    c = connect(server, autocommit=True)
    lines = [line for line in EMPTY.read_text().splitlines() if not line.startswith("#")]
    expect(len(lines) > 150, f"{len(lines)} tables")
    listed = {(row["TABLE_SCHEMA"], row["TABLE_NAME"]) for row in query(server, "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES")}
    for line in lines:
        name, columns = line.split(": ")
        if name in ONLY_MARIADB:
            expect(run(c, f"SELECT * FROM {name}") == 1109 and tuple(name.split(".")) not in listed, name)
            continue
        wanted = {column.split()[0] for column in columns.split(", ")}
        cursor = c.cursor()
        cursor.execute(f"SELECT * FROM {name}")
        expect(wanted <= {column[0] for column in cursor.description}, name)
        expect(tuple(name.split(".")) in listed, f"{name} is not in TABLES")
    for name in POLLED:
        expect(isinstance(run(c, f"SELECT * FROM {name}"), tuple), name)
    consumers = {row["NAME"]: row["ENABLED"] for row in query(server, "SELECT NAME, ENABLED FROM performance_schema.setup_consumers")}
    expect(len(consumers) == 16 and consumers["events_statements_current"] == "YES" and consumers["events_waits_current"] == "NO", consumers)
    expect(run(c, "SELECT * FROM information_schema.nothing") == 1109 and run(c, "SELECT * FROM performance_schema.nothing") == 1146, "what is not there")
    described = {(row["COLUMN_NAME"], row["DATA_TYPE"]) for row in query(server, "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS "
                 "WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'PARAMETERS'")}
    expect(("DTD_IDENTIFIER", "longtext") in described and ("ORDINAL_POSITION", "bigint") in described, described)


def sizes(server):
    """Of tables that no query has read, also behind a kill: the rows that there are, times what one takes. Both engines."""
    root = connect(server, autocommit=True)
    counted, width = 1000, 700
    for engine in ("InnoDB", "BTREE"):
        for sql in (f"CREATE TABLE test.full_{engine} (id INT PRIMARY KEY, other INT, note VARCHAR(2000), KEY (other)) ENGINE={engine}",
                    f"CREATE TABLE test.none_{engine} (id INT PRIMARY KEY) ENGINE={engine}",
                    f"INSERT INTO test.full_{engine} WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < {counted}) SELECT n, n, REPEAT('x', {width}) FROM r"):
            root.cursor().execute(sql)
    for turn in ("new", "killed"):
        root = connect(server, autocommit=True)
        for engine in ("InnoDB", "BTREE"):
            asked = f"SELECT TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'test' AND TABLE_NAME = '%s_{engine}'"
            (rows, data, indexes), = run(root, asked % "full")
            expect(rows == counted and counted * width < data < counted * (width + 60) and 16384 <= indexes < counted * 40, f"{turn} {engine}: {rows} rows, {data}, {indexes}")
            expect(run(root, asked % "none") == ((0, 16384, 0),), f"{turn}: an empty table of {engine}")
            space = run(root, f"SELECT FILE_SIZE, t.N_COLS FROM information_schema.INNODB_TABLESPACES s JOIN information_schema.INNODB_TABLES t USING (SPACE) WHERE s.NAME = 'test/full_{engine}'")
            expect(space == ((data + indexes, 6),), f"{turn} {engine}: {space}")
        if turn == "new":
            server.kill()
            server.start()


def words(server):
    reserved = {row["WORD"]: row["RESERVED"] for row in query(server, "SELECT * FROM information_schema.KEYWORDS")}
    expect(len(reserved) > 700 and reserved["SELECT"] == 1 and reserved["ENGINE"] == 0, len(reserved))
    # A word that is said to be reserved is no name, another one is.
    c = connect(server, autocommit=True)
    for word, is_reserved in list(reserved.items())[::7]:
        code = error_code(lambda: c.cursor().execute(f"SELECT 1 FROM (SELECT 1 AS a) {word}"))  # noqa: B023
        expect(code == 0 or is_reserved or word in ("RETURNING",), f"{word}: {code}")
        expect(not is_reserved or error_code(lambda: c.cursor().execute(f"CREATE TABLE test.{'x'} ({word} INT)")) == 1064, word)  # noqa: B023


def parts(server):
    plugins = {row["PLUGIN_NAME"]: row["PLUGIN_TYPE"] for row in query(server, "SELECT * FROM information_schema.PLUGINS")}
    expect(plugins.get("caching_sha2_password") == "AUTHENTICATION" and plugins.get("InnoDB") == "STORAGE ENGINE", plugins)
    shown = query(server, "SHOW PLUGINS")
    expect({row["Name"] for row in shown} == set(plugins) and set(shown[0]) == {"Name", "Status", "Type", "Library", "License"}, shown)


def privileges(server):
    root = connect(server, autocommit=True)
    for sql in ("CREATE DATABASE app", "CREATE USER worker@localhost", "GRANT SELECT, INSERT ON app.* TO worker@localhost WITH GRANT OPTION",
                "GRANT RELOAD ON *.* TO worker@localhost", "CREATE USER idle@localhost"):
        expect(run(root, sql) in (0, 1), sql)
    rows = run(root, "SELECT * FROM information_schema.SCHEMA_PRIVILEGES WHERE TABLE_SCHEMA = 'app' ORDER BY PRIVILEGE_TYPE")
    expect(rows == (("'worker'@'localhost'", "def", "app", "INSERT", "YES"), ("'worker'@'localhost'", "def", "app", "SELECT", "YES")), rows)
    users = "SELECT PRIVILEGE_TYPE, IS_GRANTABLE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = '{}'"
    expect(run(root, users.format("''worker''@''localhost''")) == (("RELOAD", "NO"),), "of a user")
    expect(run(root, users.format("''idle''@''localhost''")) == (("USAGE", "NO"),), "of a user without any")
    mine = run(connect(server, user="worker", autocommit=True), "SELECT DISTINCT GRANTEE FROM information_schema.USER_PRIVILEGES")
    expect(mine == (("'worker'@'localhost'",),), mine)
    for table in ("TABLE_PRIVILEGES", "COLUMN_PRIVILEGES"):
        expect(run(root, f"SELECT * FROM information_schema.{table} WHERE TABLE_SCHEMA = 'app'") == (), table)


def main():
    with Scratch("omnibus-metadata-") as name:
        server = Omnibus(pathlib.Path(name))
        server.start()
        client = connect(server, autocommit=True)
        run(client, "CREATE DATABASE test")
        tables(server)
        sizes(server)
        words(server)
        parts(server)
        privileges(server)
        server.stop()
    print("ok")


if __name__ == "__main__":
    main()
