#!/usr/bin/python3
"""Semi-synchronous commits between servers of ours, each killed again and again under the load of eight connections.

What a client was told is on the replica whatever dies, the source for good included; and the source waits for the replica again
as soon as it has caught up, also while commits go on.

Ring: all.
"""

import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402

from omnibus import client, connect, expect, wait_for  # noqa: E402
from peers import OmnibusPeer, create_user, replicate, run_chosen, wait_caught_up  # noqa: E402

CONNECTIONS, KILLS = 8, 5
FOREVER_MS = 3_600_000


def figure(server, name):
    return client(server, f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_{name}'").split("\t")[1].strip()


class Load:
    """Connections that insert rows and remember which of them they were told of."""

    def __init__(self, server):
        self.server, self.told, self.over = server, set(), threading.Event()
        self.threads = [threading.Thread(target=self.work, args=(number,)) for number in range(CONNECTIONS)]
        for thread in self.threads:
            thread.start()

    def work(self, number):
        at = number
        db = None
        while not self.over.is_set():
            at += CONNECTIONS
            try:
                if db is None:
                    db = connect(self.server, autocommit=True)
                db.cursor().execute("INSERT INTO d.t VALUES (%s)", (at,))
                self.told.add(at)
            except pymysql.err.MySQLError:
                # Killed: nobody was told of this row.
                db = None
                self.over.wait(0.05)

    def grows(self, by=200):
        """Until so many more rows are there."""
        wanted = len(self.told) + by
        wait_for(lambda: len(self.told) >= wanted, lambda: f"no rows come: {len(self.told)}", 60)

    def end(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


def rows(server):
    return {int(line) for line in client(server, "SELECT id FROM d.t").split()}


def pair(directory, timeout_ms, dialect="mysql"):
    source = OmnibusPeer(f"{directory}/source", 1, f"--dialect={dialect}", f"--rpl-semi-sync-source-timeout={timeout_ms}")
    replica = OmnibusPeer(f"{directory}/replica", 2, f"--dialect={dialect}", "--rpl-semi-sync-replica-enabled=ON", "--replica-parallel-workers=4")
    source.start()
    replica.start()
    for server in (source, replica):
        client(server, "SET sql_log_bin = 0; CREATE DATABASE d")
    create_user(source)
    client(source, "CREATE TABLE d.t (id INT PRIMARY KEY)")
    replicate(replica, source, gtid=True if dialect == "mysql" else "slave_pos")
    wait_caught_up(replica, source)
    client(source, "SET PERSIST rpl_semi_sync_source_enabled = ON")
    return source, replica


def on_within_a_second(source, when):
    """A replica that has caught up is waited for."""
    started = time.monotonic()
    wait_for(lambda: figure(source, "status") == "ON", lambda: f"off, {when}")
    took = time.monotonic() - started
    # A second, and what a busy machine takes to ask.
    expect(took < 3, f"on {took:.1f} s after the replica had caught up, {when}")


def told_mysql(directory):
    nothing_told_is_missing(directory, "mysql")


def told_mariadb(directory):
    nothing_told_is_missing(directory, "mariadb")


def nothing_told_is_missing(directory, dialect):
    """Commits that wait as long as it takes: whichever dies under load, the replica has every row that a client was told of."""
    source, replica = pair(directory, FOREVER_MS, dialect)
    load = Load(source)
    try:
        load.grows()
        for number in range(KILLS):
            replica.kill()
            replica.start()
            load.grows()
            expect(figure(source, "no_times") == "0", f"a commit did not wait for its replica, kill {number} of it")
        for number in range(KILLS):
            # Told before it died: what comes later is of the next life.
            source.kill()
            told = set(load.told)
            wait_for(lambda: told <= rows(replica), lambda: f"kill {number}: {len(told - rows(replica))} of {len(told)} rows are not on the replica")  # noqa: B023
            source.start()
            load.grows()
        # Both at once, and the source never comes back.
        source.kill()
        replica.kill()
        told = set(load.told)
        replica.start()
        missing = told - rows(replica)
        expect(not missing, f"both killed: {len(missing)} of {len(told)} rows are not on the replica")
        source.start()
        load.grows()
        load.end()
        wait_caught_up(replica, source)
        on_within_a_second(source, "at the end")
        expect(rows(replica) == rows(source) and load.told <= rows(source), "the replica has what the source has")
    finally:
        load.end()
        replica.stop()
        source.stop()


def on_again(directory):
    """Commits that wait for a moment only: off while the replica is away, on once it is back, under load and without."""
    source, replica = pair(directory, 300)
    load = Load(source)
    try:
        load.grows()
        for number in range(KILLS):
            replica.kill()
            wait_for(lambda: figure(source, "status") == "OFF", "nobody acknowledges")
            load.grows()
            replica.start()
            wait_for(lambda: figure(source, "status") == "ON", lambda: f"off though the replica follows, kill {number}")  # noqa: B023
            load.grows()
        load.end()
        wait_caught_up(replica, source)
        on_within_a_second(source, "without load")
        for number in range(KILLS):
            source.kill()
            source.start()
            wait_caught_up(replica, source)
            on_within_a_second(source, f"the source was killed, {number}")
        expect(rows(replica) == rows(source), "the replica has what the source has")
    finally:
        load.end()
        replica.stop()
        source.stop()


if __name__ == "__main__":
    run_chosen("semi_sync_kills", [told_mysql, told_mariadb, on_again])
