#!/usr/bin/python3
"""Early lock release never shows a client a value that a crash takes back (COMMIT-2).

With `release_locks_early` the next writer of a row reads a version whose log record is still on its way. Its reply must
not leave before that is durable. Here every device write is delayed by 5 ms before it happens, clients fight for one
row and write down every value that a reply told them, the server is killed with SIGKILL in the middle, and after the
restart the row must be at least as far as anybody ever saw it. Readers without locks look too, and so do readers of a
row that was deleted.

Usage: early_release.py [--rounds 6] [--seed N]

Ring: gate.
"""

import argparse
import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import pymysql  # noqa: E402

from device import preload  # noqa: E402
import seeds  # noqa: E402
from omnibus import PATIENCE_S, Omnibus, Scratch, client, connect, expect  # noqa: E402

LOOK = {
    # Changes nothing, and still answers by what it found under the lock.
    "lock": "SELECT n FROM hot WHERE id = 1 FOR UPDATE",
    "read": "SELECT n FROM hot WHERE id = 1",
}


class Client(threading.Thread):
    def __init__(self, server, kind):
        super().__init__()
        self.server, self.kind = server, kind
        self.seen, self.generation, self.replies, self.error = 0, 0, 0, None

    def run(self):
        try:
            db = connect(self.server, database="t", autocommit=True)
            with db.cursor() as cursor:
                while True:
                    self.step(cursor)
                    self.replies += 1
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError) as error:
            if error.args and error.args[0] not in (2003, 2006, 2013, 0, 1053, 1213):
                self.error = error
        except Exception as error:
            self.error = error

    def step(self, cursor):
        if self.kind == "update":
            cursor.execute("UPDATE hot SET n = n + 1 WHERE id = 1")
        elif self.kind == "churn":
            self.churn(cursor)
        elif self.kind == "absent":
            self.absent(cursor)
        else:
            cursor.execute(LOOK[self.kind])
            self.seen = max(self.seen, cursor.fetchone()[0])

    def churn(self, cursor):
        """A row of one generation comes and goes; its deletion counts up row 2 in the same transaction."""
        cursor.execute("SELECT n FROM hot WHERE id = 2")
        (last,) = cursor.fetchone()
        cursor.execute("INSERT INTO gone VALUES (1, %s) ON DUPLICATE KEY UPDATE generation = %s", (last + 1, last + 1))
        cursor.execute("BEGIN")
        cursor.execute("DELETE FROM gone WHERE id = 1")
        cursor.execute("UPDATE hot SET n = n + 1 WHERE id = 2")
        cursor.execute("COMMIT")

    def absent(self, cursor):
        """A row that is not there carries no number; who saw it go must still not see it come back."""
        cursor.execute("SELECT generation FROM gone WHERE id = 1 FOR UPDATE")
        row = cursor.fetchone()
        if row:
            self.generation = row[0]
        else:
            self.seen = max(self.seen, self.generation)


def one_round(server, chance):
    before = int(client(server, "SELECT n FROM t.hot WHERE id = 1"))
    kinds = ["update"] * 12 + ["lock"] * 4 + ["read"] * 2 + ["churn", "absent", "absent"]
    threads = [Client(server, kind) for kind in kinds]
    for thread in threads:
        thread.start()
    # Somewhere in the middle of the load: after so many replies, however fast the machine is.
    enough, deadline = chance.randint(50, 400), time.monotonic() + PATIENCE_S
    while sum(thread.replies for thread in threads if thread.kind == "update") < enough:
        expect(time.monotonic() < deadline, "no load")
        time.sleep(chance.uniform(0, 0.02))
    server.kill()
    for thread in threads:
        thread.join()
        expect(thread.error is None, f"{thread.kind}: {thread.error!r}")
    server.start()
    value = int(client(server, "SELECT n FROM t.hot WHERE id = 1"))
    acknowledged = sum(thread.replies for thread in threads if thread.kind == "update")
    expect(value >= before + acknowledged, f"{acknowledged} updates acknowledged after {before}, the row says {value}")
    gone = int(client(server, "SELECT n FROM t.hot WHERE id = 2"))
    for thread in threads:
        now = gone if thread.kind == "absent" else value
        expect(thread.seen <= now, f"{thread.kind}: a client saw {thread.seen}, after the crash it is {now}")
    return acknowledged, sum(thread.replies for thread in threads)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=6)
    seeds.add_to(options)
    options = options.parse_args()
    chance = random.Random(options.seed)
    print(f"seed {options.seed}")
    with Scratch("omnibus-early-") as directory:
        directory = pathlib.Path(directory)
        env = {"LD_PRELOAD": str(preload("slow_sync", directory)), "SLOW_SYNC_US": "5000", "SLOW_SYNC_BEFORE": "1"}
        for early in (1, 0):
            own = directory / f"early{early}"
            own.mkdir()
            server = Omnibus(own, f"--release-locks-early={early}", env=env)
            server.start()
            client(server, "CREATE DATABASE t; CREATE TABLE t.hot (id INT PRIMARY KEY, n BIGINT);"
                           "INSERT INTO t.hot VALUES (1, 0), (2, 0); CREATE TABLE t.gone (id INT PRIMARY KEY, generation BIGINT)")
            for n in range(options.rounds if early else 1):
                acknowledged, replies = one_round(server, chance)
                print(f"release_locks_early={early} round {n + 1}: {acknowledged} updates acknowledged, {replies} replies")
            server.stop()
    print("ok")


if __name__ == "__main__":
    main()
