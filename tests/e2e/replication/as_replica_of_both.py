#!/usr/bin/python3
"""Ours as a replica: of MariaDB in every log format and by GTID, of itself by GTID, in a chain of three and in a ring of two; under
generated workloads with all types and DDL and under sysbench, with kill -9 of either side. Tables are equal at the end.

Ring: all.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import workload  # noqa: E402
from omnibus import expect  # noqa: E402
from peers import (MariaPeer, OmnibusPeer, create_user, expect_equal, query, replicate, restart, run_chosen, status, sysbench,  # noqa: E402
                   sysbench_tps, wait_caught_up, wait_for)


class Group:
    """Servers that are started together and stopped together."""

    def __init__(self, *servers):
        self.servers = servers

    def __enter__(self):
        for server in self.servers:
            server.start()
            create_user(server)
        return self.servers

    def __exit__(self, *_):
        for server in self.servers:
            server.stop()


def streams(server, seeds, count, **options):
    """Runs a generated workload of each seed at once."""
    failures = []

    def one(seed):
        try:
            workload.run(server, workload.Workload(seed, **options), count)
        except Exception as error:  # reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=one, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(not failures, f"the workload itself failed: {str(failures)[:2000]}")


def equal(source, replica, least_rows, chosen=None):
    wait_caught_up(replica, source)
    expect_equal(source, replica, chosen, least_rows=least_rows)


def crash_both(source, replica, prepared=True):
    """Load on the source while each side is stopped and killed in mid-stream."""
    if prepared:
        sysbench(source, "oltp_write_only", "prepare")
    for side, kill in ((replica, True), (source, True), (replica, False), (source, False)):
        before = applied(replica)
        load = sysbench(source, "oltp_write_only", "run", seconds=2)
        wait_for(lambda: applied(replica) > before, lambda: f"the replica does not move under load: {status(replica)}")
        restart(side, kill)
        if side is source:
            load.kill()
            load.communicate()
        else:
            sysbench_tps(load)
        equal(source, replica, 4000, ["sbtest"])


def applied(replica):
    row = status(replica)
    return row["Relay_Master_Log_File"], int(row["Exec_Master_Log_Pos"])


def of_mariadb(directory):
    """Rows, statements and both mixed, by file and position."""
    with Group(MariaPeer(f"{directory}/theirs", 1), OmnibusPeer(f"{directory}/ours", 2)) as (source, replica):
        replicate(replica, source)
        for n, form in enumerate(("ROW", "STATEMENT", "MIXED")):
            query(source, f"SET GLOBAL binlog_format = {form}")
            streams(source, (10 * n + 1, 10 * n + 2), 100, deterministic=form == "STATEMENT")
            query(source, "FLUSH BINARY LOGS")
            equal(source, replica, 100)
            restart(replica, kill=True)
            streams(source, (10 * n + 3,), 50, deterministic=form == "STATEMENT")
            equal(source, replica, 100)


def of_mariadb_with_crashes(directory):
    with Group(MariaPeer(f"{directory}/theirs", 1), OmnibusPeer(f"{directory}/ours", 2)) as (source, replica):
        replicate(replica, source)
        crash_both(source, replica)


def of_mariadb_by_gtid(directory):
    """A data directory of MariaDB's dialect, from the source's first transaction on."""
    with Group(MariaPeer(f"{directory}/theirs", 1), OmnibusPeer(f"{directory}/ours", 2, "--dialect=mariadb")) as (source, replica):
        replicate(replica, source, gtid="slave_pos")
        streams(source, (1, 2), 100, deterministic=False)
        equal(source, replica, 100)
        crash_both(source, replica)
        here = query(replica, "SELECT @@GLOBAL.gtid_slave_pos AS pos")[0]["pos"]
        there = query(source, "SELECT @@GLOBAL.gtid_binlog_pos AS pos")[0]["pos"]
        expect(here and here == there, f"gtid_slave_pos {here}, the source is at {there}")
        equal(source, replica, 4000)


def of_ourselves_by_gtid(directory):
    """Two of ours; then the replica has the source's own ids."""
    with Group(OmnibusPeer(f"{directory}/one", 1), OmnibusPeer(f"{directory}/two", 2)) as (source, replica):
        replicate(replica, source, gtid=True)
        for n, form in enumerate(("ROW", "STATEMENT", "MIXED")):
            query(source, f"SET GLOBAL binlog_format = {form}")
            streams(source, (10 * n + 1, 10 * n + 2), 100, deterministic=form == "STATEMENT")
            equal(source, replica, 100)
        query(source, "SET GLOBAL binlog_format = ROW")
        crash_both(source, replica)
        ids = [query(server, "SELECT @@GLOBAL.gtid_executed AS ids")[0]["ids"].replace("\n", "") for server in (source, replica)]
        expect(ids[0] and ids[0] == ids[1], f"gtid_executed: {ids}")
        until_after(source, replica)


def until_after(source, replica):
    """However much has been received, applying ends behind the last of the transactions that were asked for."""
    query(replica, "STOP REPLICA")
    query(source, "CREATE DATABASE u")
    query(source, "CREATE TABLE u.t (n INT)")
    for n in range(30):
        query(source, f"INSERT INTO u.t VALUES ({n})")
    ids = query(source, "SELECT @@GLOBAL.gtid_executed AS ids")[0]["ids"]
    uuid, last = ids.split(":")[0], int(ids.rsplit("-", 1)[1])
    query(replica, "START REPLICA IO_THREAD")
    query(replica, f"START REPLICA SQL_THREAD UNTIL SQL_AFTER_GTIDS = '{uuid}:{last - 20}'")
    wait_for(lambda: status(replica)["Slave_SQL_Running"] == "No", lambda: f"{status(replica)}")
    rows = query(replica, "SELECT COUNT(*) AS n FROM u.t")[0]["n"]
    expect(rows == 10, f"UNTIL SQL_AFTER_GTIDS: {rows} rows instead of 10")
    query(replica, "START REPLICA")
    equal(source, replica, 30, ["u"])


def chain_of_three(directory):
    """MariaDB -> ours -> MariaDB: what we apply is in our log, for everybody who follows us."""
    with Group(MariaPeer(f"{directory}/first", 1), OmnibusPeer(f"{directory}/second", 2),
               MariaPeer(f"{directory}/third", 3)) as (first, second, third):
        replicate(second, first)
        replicate(third, second)
        streams(first, (1, 2), 150, deterministic=False)
        wait_caught_up(second, first)
        equal(second, third, 100)
        restart(second, kill=True)
        query(first, "SET GLOBAL binlog_format = STATEMENT")
        streams(first, (3,), 100)
        wait_caught_up(second, first)
        equal(second, third, 100)
        expect_equal(first, third, least_rows=100)


def ring_of_two(directory):
    """Each follows the other: both have both's changes, and no change goes round."""
    with Group(OmnibusPeer(f"{directory}/one", 1, "--auto-increment-increment=2", "--auto-increment-offset=1"),
               OmnibusPeer(f"{directory}/two", 2, "--auto-increment-increment=2", "--auto-increment-offset=2")) as (one, two):
        replicate(one, two, gtid=True)
        replicate(two, one, gtid=True)
        query(one, "CREATE DATABASE ring")
        query(one, "CREATE TABLE ring.t (id INT AUTO_INCREMENT PRIMARY KEY, who INT)")
        wait_caught_up(two, one)
        for n in range(20):
            query(one, f"INSERT INTO ring.t (who) VALUES ({n})")
            query(two, f"INSERT INTO ring.t (who) VALUES ({1000 + n})")
        streams(one, (1,), 80)
        streams(two, (2,), 80)
        for _ in range(2):
            wait_caught_up(one, two)
            wait_caught_up(two, one)
        expect_equal(one, two, least_rows=100)
        expect(query(one, "SELECT COUNT(*) AS n FROM ring.t")[0]["n"] == 40, "each row is there once")


if __name__ == "__main__":
    run_chosen("as_replica_of_both", [
        of_mariadb, of_mariadb_with_crashes, of_mariadb_by_gtid,
        of_ourselves_by_gtid, chain_of_three, ring_of_two])
