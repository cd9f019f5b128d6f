#!/usr/bin/python3
"""A collation of a source that is not known here stops the replica with error 1273 and nothing of it is applied: rows under
another collation would have other unique keys and another order. Named by a definition, by the session of a statement, and as
the default of a database. Once the statement is left out, the replica goes on.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Scratch, expect, wait_for  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, query, replicate, status, wait_caught_up  # noqa: E402

UNKNOWN = [
    ("a column", ["CREATE TABLE c.a (v VARCHAR(9) COLLATE utf8mb4_myanmar_ci UNIQUE)"]),
    ("a table", ["CREATE TABLE c.b (v VARCHAR(9) UNIQUE) COLLATE utf8mb4_thai_520_w2"]),
    ("an added column", ["ALTER TABLE c.t ADD v VARCHAR(9) COLLATE latin2_hungarian_ci"]),
    ("a database", ["CREATE DATABASE d COLLATE utf8mb3_myanmar_ci"]),
    ("a statement's session", ["SET SESSION binlog_format = 'STATEMENT'", "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_nopad_ci",
                               "INSERT INTO c.t (n) SELECT 'ı' = 'i'"]),
]


def unknown(source, replica, what, statements):
    import pymysql
    db = pymysql.connect(unix_socket=source.socket, user="root", autocommit=True)
    for sql in statements:
        db.cursor().execute(sql)
    # What comes behind it waits, too.
    db.cursor().execute("SET NAMES utf8mb4")
    db.cursor().execute("INSERT INTO c.t (n) VALUES (100)")
    before = query(replica, "SELECT COUNT(*) AS n FROM c.t")[0]["n"]
    wait_for(lambda: status(replica)["Slave_SQL_Running"] == "No", lambda: f"{what}: {status(replica)}")
    row = status(replica)
    expect(int(row["Last_SQL_Errno"]) == 1273, f"{what}: {row['Last_SQL_Errno']} {row['Last_SQL_Error']}")
    expect(query(replica, "SELECT COUNT(*) AS n FROM c.t")[0]["n"] == before, f"{what}: something was applied")
    query(replica, "SET GLOBAL sql_replica_skip_counter = 1")
    query(replica, "START REPLICA")
    wait_caught_up(replica, source)
    expect(query(replica, "SELECT COUNT(*) AS n FROM c.t")[0]["n"] == before + 1, f"{what}: what comes behind is not applied")
    print(f"collations: {what}: ok", flush=True)


def main():
    with Scratch() as scratch:
        folder = pathlib.Path(scratch)
        for name in ("source", "replica"):
            (folder / name).mkdir()
        source, replica = MariaPeer(folder / "source", 1), OmnibusPeer(folder / "replica", 2)
        for server in (source, replica):
            server.start()
        create_user(source)
        query(source, "CREATE DATABASE c")
        query(source, "CREATE TABLE c.t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
        replicate(replica, source)
        wait_caught_up(replica, source)
        for what, statements in UNKNOWN:
            unknown(source, replica, what, statements)
        replica.stop()
        source.stop()


if __name__ == "__main__":
    main()
