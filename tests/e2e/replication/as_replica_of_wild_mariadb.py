#!/usr/bin/python3
"""Ours as a replica of MariaDB at its wildest: a workload of what applications do and servers refuse, in each format, for two
replicas at once (one worker by position, several by GTID); statements that replicas have stumbled over; and a proxy that
spoils what the source sends. With --soak=N it goes on for N rounds with other seeds.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import wild  # noqa: E402
from omnibus import Session, connect, error_code, expect  # noqa: E402
from peers import (MariaPeer, OmnibusPeer, brief, create_user, databases, expect_equal, log_position, query, replicate,  # noqa: E402
                   run_chosen, status, stopped, wait_caught_up, wait_for)
from proxy import Proxy, Vandal  # noqa: E402

ROUNDS = next((int(word.split("=")[1]) for word in sys.argv if word.startswith("--soak=")), 1)
SOURCE = ["--local-infile=1", "--secure-file-priv="]
FORMS = ("ROW", "STATEMENT", "MIXED")


def start(directory, *servers):
    for server in servers:
        server.start()
        create_user(server)
    return servers


def end(source, *replicas):
    for replica in replicas:
        expect(replica.process.poll() is None and "panicked" not in replica.log_tail(10**6), f"{replica.directory} is not well")
        replica.stop()
    source.stop()


def workload(directory):
    """Two replicas have what the source has, whatever it did and failed to do; from the middle of its files, too."""
    source, one, two = start(directory, MariaPeer(f"{directory}/source", 1, *SOURCE),
                             OmnibusPeer(f"{directory}/one", 2, "--replica-parallel-workers=1"),
                             OmnibusPeer(f"{directory}/two", 3, "--dialect=mariadb", "--replica-parallel-workers=8"))
    replicate(one, source)
    replicate(two, source, gtid="slave_pos")
    for seed in range(3 * ROUNDS):
        form = FORMS[seed % 3]
        query(source, f"SET GLOBAL binlog_checksum = {'NONE' if seed % 3 == 1 else 'CRC32'}")
        query(source, f"SET GLOBAL log_bin_compress = {seed % 2}")
        query(source, f"SET GLOBAL binlog_row_metadata = {('NO_LOG', 'FULL', 'MINIMAL')[seed % 3]}")
        wild.run(source, wild.Wild(seed, form, directory), 120)
        # A dump from the middle of a file without checksums begins with an event whose own checksum is wrong.
        for replica in (one, two):
            wait_caught_up(replica, source)
            query(replica, "STOP REPLICA")
            query(replica, "START REPLICA")
        query(source, f"INSERT INTO x{seed}.par VALUES (-1, -1)")
        for replica in (one, two):
            wait_caught_up(replica, source)
            expect_equal(source, replica, [name for name in databases(source) if name.startswith(f"x{seed}")], least_rows=20)
        for name in databases(source):
            query(source, f"DROP DATABASE {name}")
    end(source, one, two)


PARTICULAR = [
    # A DROP that found one of its tables missing dropped the other, and the log has no error.
    "CREATE TABLE d.gone (a INT)", "DROP TABLE d.gone, d.never",
    "CREATE OR REPLACE DATABASE e", "CREATE TABLE e.t (a INT)", "CREATE OR REPLACE DATABASE e CHARACTER SET latin1",
    # What was done before the error stays where there are no transactions.
    "CREATE TABLE d.isam (id INT PRIMARY KEY, v INT) ENGINE=MyISAM", "INSERT INTO d.isam VALUES (5, 0)",
    "SET SESSION binlog_format = STATEMENT", "INSERT INTO d.isam VALUES (3, 1), (4, 1), (5, 1), (6, 1)",
    "UPDATE d.isam SET id = id + 1 WHERE id <> 4 ORDER BY id DESC", "SET SESSION binlog_format = ROW",
    # A column without a default and without a value, from a source that is not strict.
    "SET sql_mode = ''", "CREATE TABLE d.lax (id INT PRIMARY KEY, d DATE NOT NULL, v VARCHAR(5) NOT NULL, e ENUM('x') NOT NULL)",
    "SET binlog_row_image = MINIMAL", "INSERT INTO d.lax (id) VALUES (1), (2)", "SET sql_mode = DEFAULT",
    # A new default character set is for new columns.
    "CREATE TABLE d.cs (a VARCHAR(9), b CHAR(3) CHARACTER SET ascii)", "INSERT INTO d.cs VALUES ('äß', 'x')",
    "ALTER TABLE d.cs DEFAULT CHARACTER SET latin1", "ALTER TABLE d.cs ADD COLUMN c VARCHAR(9)", "INSERT INTO d.cs VALUES ('漢', 'y', 'ä')",
    # JSON is text there, in the order in which it was written, and its definition has a check.
    "CREATE TABLE d.json (id INT PRIMARY KEY, j JSON)", """INSERT INTO d.json VALUES (1, '{"b": 1,   "a": [1, 2]}')""",
    "CREATE TABLE d.json2 AS SELECT * FROM d.json", "CREATE TABLE d.json3 LIKE d.json", "INSERT INTO d.json3 SELECT * FROM d.json",
    """UPDATE d.json SET j = JSON_SET(j, '$.c', 3)""",
    # A name in quotes is one only under its sql_mode.
    "SET sql_mode = 'ANSI_QUOTES'", 'BEGIN', 'SAVEPOINT "a b"', 'INSERT INTO "d"."lax" ("id", "d", "v", "e") VALUES (3, NOW(), \'v\', \'x\')',
    'SAVEPOINT "c"', 'DELETE FROM d.lax', 'ROLLBACK TO SAVEPOINT "c"', "COMMIT", "SET sql_mode = DEFAULT",
]


def particular(directory):
    source, one, two = start(directory, MariaPeer(f"{directory}/source", 1), OmnibusPeer(f"{directory}/one", 2),
                             OmnibusPeer(f"{directory}/two", 3, "--dialect=mariadb"))
    replicate(one, source)
    replicate(two, source, gtid="slave_pos")
    session = Session(source, charset="utf8mb4")
    session("CREATE DATABASE d CHARACTER SET utf8mb4")
    for statement in PARTICULAR:
        error_code(lambda: session(statement))  # noqa: B023
    for replica in (one, two):
        wait_caught_up(replica, source)
        expect_equal(source, replica, ["d", "e"], least_rows=11)
    # What cannot be done here stops with the statement's name, and is left out by a user who says so.
    session("CREATE TABLE d.shape1 (p POINT)")
    session("INSERT INTO d.lax VALUES (9, NOW(), 'after', 'x')")
    for replica in (one, two):
        row = wait_for(lambda: stopped(status(replica)) and status(replica), lambda: brief(status(replica)))  # noqa: B023
        expect(int(row["Last_SQL_Errno"]) == 1235 and "shape1" in row["Last_SQL_Error"], row["Last_SQL_Error"])
        query(replica, "SET GLOBAL sql_replica_skip_counter = 1")
        query(replica, "START REPLICA")
        wait_caught_up(replica, source)
        expect(query(replica, "SELECT COUNT(*) AS n FROM d.lax WHERE id = 9")[0]["n"] == 1, "behind what was left out")
    end(source, one, two)


def spoiled(directory):
    """One packet of each dump is spoiled. What is applied ends between two transactions, and all is well with the next dump."""
    source, replica = start(directory, MariaPeer(f"{directory}/source", 1), OmnibusPeer(f"{directory}/one", 2))
    session = Session(source)
    session.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(300))", "CREATE TABLE d.u (n INT)")
    begin, states = log_position(source), [state(source)]
    for n in range(8):
        session.run(f"SET SESSION binlog_format = {FORMS[n % 2]}", f"SET @v = {n}", "BEGIN",
                    f"INSERT INTO d.t VALUES ({n}, REPEAT('x', {30 * n})), (100 + {n}, @v)",
                    f"UPDATE d.t SET v = CONCAT(v, {n}) WHERE id >= {n - 1}", f"INSERT INTO d.u VALUES ({n % 2})", "COMMIT")
        states.append(state(source))
    target = log_position(source)
    proxy = Proxy(source.port)
    seen = []
    proxy.spoil = lambda number, packet: seen.append(number) or [packet]
    query(replica, "SET GLOBAL replica_net_timeout = 3")

    def over():
        row = status(replica)
        return stopped(row) or (row["Relay_Master_Log_File"], int(row["Exec_Master_Log_Pos"])) >= target

    for seed in range(-1, 25 * ROUNDS):
        query(replica, "STOP REPLICA")
        query(replica, "RESET REPLICA ALL")
        query(replica, "DROP DATABASE IF EXISTS d")
        for statement in ("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(300))", "CREATE TABLE d.u (n INT)"):
            query(replica, statement)
        if seed >= 0:
            proxy.spoil = Vandal(seed, len(seen))
        query(replica, f"SET GLOBAL replica_parallel_workers = {1 + 3 * (seed % 2)}")
        replicate(replica, proxy, begin, RETRY_COUNT=50, HEARTBEAT_PERIOD=1)
        what = f"{seed}: {getattr(proxy.spoil, 'way', '')} at {getattr(proxy.spoil, 'at', '')}"
        wait_for(over, lambda: f"{what}: {brief(status(replica))}")  # noqa: B023
        error = stopped(status(replica))
        expect(state(replica) in states, f"{what}: half a transaction was applied; {error}")
        proxy.spoil = None
        if error:
            query(replica, "STOP REPLICA")
            query(replica, "START REPLICA")
            wait_for(over, lambda: f"{what} and then: {brief(status(replica))}")  # noqa: B023
        expect(state(replica) == states[-1], f"{what}, mended, {error}: {stopped(status(replica))}")
    proxy.close()
    end(source, replica)


def state(server):
    """Both tables at one moment: what a replica has received it goes on applying after the receiver has stopped."""
    with connect(server) as db, db.cursor() as cursor:
        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        tables = []
        for ordered in ("d.t ORDER BY id", "d.u ORDER BY n"):
            cursor.execute(f"SELECT * FROM {ordered}")
            tables.append(cursor.fetchall())
        return tables


if __name__ == "__main__":
    run_chosen("as_replica_of_wild_mariadb", [workload, particular, spoiled])
