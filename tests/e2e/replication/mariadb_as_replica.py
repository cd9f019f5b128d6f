#!/usr/bin/python3
"""MariaDB as a replica of ours: every type, DDL, concurrent load, restarts and kill -9 of both sides; tables equal at the end.

Ring: gate.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import workload  # noqa: E402
from omnibus import expect  # noqa: E402
from peers import (MariaPeer, OmnibusPeer, create_user, expect_equal, log_position, query, replicate, restart, run_chosen, status,  # noqa: E402
                   sysbench, sysbench_tps, wait_caught_up, wait_for)


class Pair:
    """Ours and a MariaDB that follows it."""

    def __init__(self, directory, ours=(), theirs=()):
        self.source = OmnibusPeer(f"{directory}/ours", 1, *ours)
        self.replica = MariaPeer(f"{directory}/theirs", 2, *theirs)

    def __enter__(self):
        self.source.start()
        self.replica.start()
        create_user(self.source)
        return self

    def __exit__(self, *_):
        self.replica.stop()
        self.source.stop()

    def equal(self, least_rows):
        wait_caught_up(self.replica, self.source)
        return expect_equal(self.source, self.replica, least_rows=least_rows)


def generated_workloads(directory):
    """Three streams at once with DDL, through rotations and restarts; then what a later replica sees from the first file on."""
    with Pair(directory) as pair:
        replicate(pair.replica, pair.source)
        failures = []

        def stream(seed):
            try:
                workload.run(pair.source, workload.Workload(seed, deterministic=False), 200)
            except Exception as error:  # reported by the main thread
                failures.append(error)

        threads = [threading.Thread(target=stream, args=(seed,)) for seed in (1, 2, 3)]
        for thread in threads:
            thread.start()
        query(pair.source, "FLUSH BINARY LOGS")
        for thread in threads:
            thread.join()
        expect(not failures, f"the workload itself failed: {failures}")
        pair.equal(least_rows=300)
        for kill in (False, True):
            restart(pair.source, kill)
            workload.run(pair.source, workload.Workload(10 + kill, deterministic=False), 100)
            pair.equal(least_rows=400)
        late = MariaPeer(f"{directory}/late", 3)
        late.start()
        try:
            replicate(late, pair.source)
            wait_caught_up(late, pair.source)
            expect_equal(pair.source, late, least_rows=400)
        finally:
            late.stop()


def by_gtid(directory):
    """A data directory of MariaDB's dialect: rows, statements and both mixed, and kill -9 of both sides in mid-stream."""
    with Pair(directory, ours=["--dialect=mariadb"]) as pair:
        replicate(pair.replica, pair.source, gtid=True)
        for n, form in enumerate(("ROW", "STATEMENT", "MIXED")):
            query(pair.source, f"SET GLOBAL binlog_format = {form}")
            workload.run(pair.source, workload.Workload(50 + n, deterministic=form == "STATEMENT"), 150)
            query(pair.source, "FLUSH BINARY LOGS")
            pair.equal(least_rows=100)
        query(pair.source, "SET GLOBAL binlog_format = ROW")
        crashes(pair)
        there = status(pair.replica)["Gtid_IO_Pos"]
        here = query(pair.source, "SELECT @@GLOBAL.gtid_binlog_pos AS pos")[0]["pos"]
        expect(here and here == there, f"gtid_binlog_pos {here}, the replica has {there}")


def statement_formats(directory):
    """STATEMENT and MIXED, whose context must be all there."""
    with Pair(directory) as pair:
        replicate(pair.replica, pair.source)
        for n, form in enumerate(("STATEMENT", "MIXED")):
            query(pair.source, f"SET GLOBAL binlog_format = {form}")
            workload.run(pair.source, workload.Workload(60 + n, deterministic=form == "STATEMENT"), 200)
            pair.equal(least_rows=100)
            restart(pair.source, kill=True)
            query(pair.source, f"SET GLOBAL binlog_format = {form}")
            workload.run(pair.source, workload.Workload(70 + n, deterministic=form == "STATEMENT"), 100)
            pair.equal(least_rows=100)


def images_metadata_checksums(directory):
    """Each row image, metadata and checksum setting, changed while the replica follows."""
    with Pair(directory) as pair:
        replicate(pair.replica, pair.source)
        seed = 20
        for image in ("MINIMAL", "NOBLOB", "FULL"):
            for metadata, checksum in (("FULL", "NONE"), ("MINIMAL", "CRC32")):
                seed += 1
                query(pair.source, f"SET GLOBAL binlog_row_image = {image}")
                query(pair.source, f"SET GLOBAL binlog_row_metadata = {metadata}")
                query(pair.source, f"SET GLOBAL binlog_checksum = {checksum}")
                query(pair.source, f"SET GLOBAL binlog_rows_query_log_events = {seed % 2}")
                workload.run(pair.source, workload.Workload(seed, deterministic=False), 60)
        pair.equal(least_rows=200)


def load_and_crashes(directory):
    """sysbench from several connections while either side is stopped and killed in mid-stream."""
    # A killed MariaDB that follows by file and position may run a transaction again: its own way to bear that is IDEMPOTENT.
    with Pair(directory, theirs=["--slave-exec-mode=IDEMPOTENT"]) as pair:
        replicate(pair.replica, pair.source)
        crashes(pair)


def crashes(pair):
    sysbench(pair.source, "oltp_write_only", "prepare")
    for side, kill in (("replica", True), ("source", True), ("replica", False), ("source", False)):
        before = log_position(pair.source)
        load = sysbench(pair.source, "oltp_write_only", "run", seconds=2)
        wait_for(lambda: progressed(pair, before), "the replica does not move under load")
        restart(getattr(pair, side), kill)
        if side == "source":
            load.kill()
            load.communicate()
        else:
            sysbench_tps(load)
        pair.equal(least_rows=4000)


def progressed(pair, before):
    row = status(pair.replica)
    return row and (row["Relay_Master_Log_File"], int(row["Exec_Master_Log_Pos"])) > before


def what_operators_see(directory):
    """Both sides' status while it runs, and the error when what the replica needs has been purged."""
    with Pair(directory) as pair:
        workload.run(pair.source, workload.Workload(40), 20)
        query(pair.source, "FLUSH BINARY LOGS")
        name, offset = log_position(pair.source)
        query(pair.source, f"PURGE BINARY LOGS TO '{name}'")
        replicate(pair.replica, pair.source, position=("binlog.000001", 4))
        wait_for(lambda: int(status(pair.replica)["Last_IO_Errno"]) == 1236, lambda: f"no error 1236: {status(pair.replica)}")
        query(pair.replica, "STOP SLAVE")
        query(pair.replica, "RESET SLAVE ALL")
        wait_for(lambda: query(pair.source, "SHOW REPLICAS") == [], "a replica that is gone is listed")
        for database in query(pair.source, "SHOW DATABASES LIKE 'w40%'"):
            query(pair.source, f"DROP DATABASE {next(iter(database.values()))}")
        replicate(pair.replica, pair.source, position=log_position(pair.source))
        wait_for(lambda: len(query(pair.source, "SHOW REPLICAS")) == 1, "the replica is not listed at the source")
        listed = query(pair.source, "SHOW REPLICAS")[0]
        expect(int(listed["Server_Id"]) == 2, f"SHOW REPLICAS: {listed}")

        def dumps():
            return [row for row in query(pair.source, "SHOW PROCESSLIST") if "Dump" in str(row["Command"])]
        wait_for(lambda: len(dumps()) == 1, lambda: f"SHOW PROCESSLIST: {dumps()}")
        query(pair.source, "CREATE DATABASE seen")
        query(pair.source, "CREATE TABLE seen.t (id INT PRIMARY KEY)")
        # A killed dump thread ends the connection; the replica comes back by itself.
        query(pair.source, f"KILL {dumps()[0]['Id']}")
        query(pair.source, "INSERT INTO seen.t VALUES (1)")
        pair.equal(least_rows=1)


if __name__ == "__main__":
    run_chosen("mariadb_as_replica", [
        generated_workloads, statement_formats, by_gtid,
        images_metadata_checksums, load_and_crashes, what_operators_see])
