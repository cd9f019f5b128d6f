#!/usr/bin/python3
"""Statements, mixed and rows to replicas: ours and a MariaDB follow one source and have the same data at the end.

Ring: all.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "log"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import workload  # noqa: E402
from binlog_formats import FORMATS, SAFE, TABLES, UNSAFE, prepared  # noqa: E402
from omnibus import Scratch, client, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, log_position, query, replicate, restart, wait_caught_up  # noqa: E402


def follow(directory, dialect):
    """Every kind of context in each format, then generated workloads of several connections at once."""
    source = OmnibusPeer(f"{directory}/source", 1, f"--dialect={dialect}")
    ours = OmnibusPeer(f"{directory}/ours", 2, f"--dialect={dialect}")
    theirs = MariaPeer(f"{directory}/theirs", 3)
    servers = (source, ours, theirs)
    for server in servers:
        server.start()
    try:
        create_user(source)
        position = log_position(source)
        for replica in (ours, theirs):
            replicate(replica, source, position)
        for form in FORMATS:
            client(source, TABLES.format(db=f"f_{form}"))
            unsafe = "" if form == "STATEMENT" else UNSAFE
            client(source, f"USE f_{form}; SET binlog_format = {form}; {SAFE} {unsafe}")
            prepared(source, form)
        for replica in (ours, theirs):
            wait_caught_up(replica, source)
            expect_equal(source, replica, least_rows=60)
        for form in ("STATEMENT", "MIXED"):
            query(source, f"SET GLOBAL binlog_format = {form}")
            failures = []

            def stream(seed):
                try:
                    workload.run(source, workload.Workload(seed, deterministic=form == "STATEMENT"), 120)
                except Exception as error:  # reported by the main thread
                    failures.append(error)

            seeds = (11, 12, 13) if form == "STATEMENT" else (21, 22, 23)
            threads = [threading.Thread(target=stream, args=(seed,)) for seed in seeds]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            expect(not failures, f"the workload itself failed: {failures}")
            for replica in (ours, theirs):
                wait_caught_up(replica, source)
                expect_equal(source, replica, least_rows=100)
        # Both rebuild what statements did: the source from its log, the replica from its own.
        for server in (source, ours):
            restart(server, kill=True)
        expect_equal(source, theirs, least_rows=100)
        wait_caught_up(ours, source)
        expect_equal(source, ours, least_rows=100)
    finally:
        for server in reversed(servers):
            server.stop()


def main():
    for dialect in ("mysql", "mariadb"):
        with Scratch("omnibus-formats-") as directory:
            follow(directory, dialect)
        print(f"follow, {dialect} dialect: ok", flush=True)


if __name__ == "__main__":
    main()
