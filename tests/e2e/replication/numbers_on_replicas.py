#!/usr/bin/python3
"""Numbers that sessions of a source make under locks, behind a replica with several appliers, in both dialects and both engines, through kills of
either side: a reader of the replica sees each lock's work whole and in order (APPLY-1, SNAP-3), AUTO_INCREMENT goes on there where the
source was, and who gets a lock by name at the source finds on the replica what was done under it before.

Ring: all.
"""

import pathlib
import random
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
import seeds  # noqa: E402
from omnibus import Scratch, Session, expect  # noqa: E402
from peers import OmnibusPeer, create_user, expect_equal, replicate, wait_caught_up  # noqa: E402

SECONDS = 4
GONE = {2003, 2006, 2013, 1053, 1927}
# One child of parent 1 more: numbered under the parent's lock, in a table of the other engine.
NUMBER = ["BEGIN", "SELECT id FROM x.p WHERE id = {parent} FOR UPDATE", "SELECT COUNT(*) INTO @n FROM x.c WHERE pid = {parent}",
          "INSERT INTO x.c (pid, num) VALUES ({parent}, @n)", "UPDATE x.p SET n = n + 1 WHERE id = {parent}", "{end}"]
NAMED = ["SELECT GET_LOCK('named', 5)", "SELECT COUNT(*) INTO @n FROM x.named", "INSERT INTO x.named (num) VALUES (@n)", "SELECT RELEASE_LOCK('named')"]


def until(over, server, work, rng):
    session = None
    while not over.is_set():
        try:
            session = session or Session(server)
            work(session, rng)
        except pymysql.MySQLError as error:
            if error.args[0] in GONE:
                session = None
                time.sleep(0.05)
                continue
            expect(error.args[0] in {1205, 1213}, f"{error}")
            session("ROLLBACK")


def write(session, rng):
    parent, end = rng.randrange(1, 3), rng.choice(["COMMIT"] * 4 + ["ROLLBACK"])
    session("SET TRANSACTION ISOLATION LEVEL " + rng.choice(["READ COMMITTED", "REPEATABLE READ"]))
    session.run(*(text.format(parent=parent, end=end) for text in NUMBER))
    if rng.random() < 0.3:
        session.run(*NAMED)


def look(session, rng):
    """What one snapshot of the replica has: each parent's count and its children's numbers without a gap."""
    session("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    for parent in (1, 2):
        counted = session.value(f"SELECT n FROM x.p WHERE id = {parent}")
        found = session(f"SELECT COUNT(*), COUNT(DISTINCT num), COALESCE(MAX(num) + 1, 0) FROM x.c WHERE pid = {parent}")[0]
        expect(found == (counted,) * 3, f"parent {parent} says {counted}, its children {found}")
    found = session("SELECT COUNT(*), COUNT(DISTINCT num), COALESCE(MAX(num) + 1, 0) FROM x.named")[0]
    expect(len(set(found)) == 1, f"numbers under a lock by name: {found}")
    session("ROLLBACK")


def lock_by_name(source, replica):
    """What was done under a lock by name is in the positions that the next holder is told, and so on a replica that has reached them."""
    first, second, there = Session(source), Session(source), Session(replica)
    for turn in range(30):
        first.run("SELECT GET_LOCK('turn', 5)", f"INSERT INTO x.turns VALUES ({turn})", "SELECT RELEASE_LOCK('turn')")
        expect(second.value("SELECT GET_LOCK('turn', 5)") == 1, "the lock")
        done = second.value("SELECT @@GLOBAL.gtid_executed")
        expect(there.value(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{done}', 20)") == 0, "the replica does not come to where the source is")
        expect(there.value("SELECT COUNT(*) FROM x.turns") == turn + 1, f"turn {turn} is not on the replica")
        second("SELECT RELEASE_LOCK('turn')")


def numbers_go_on(source, replica):
    """The next number of the replica, as a source, is above all that the old one gave to what it has committed."""
    session, there = Session(source), Session(replica)
    for engine in ("LSM", "BTREE"):
        table = f"x.auto_{engine}"
        session.run(f"CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE={engine}", f"INSERT INTO {table} (v) VALUES (1), (2), (3)",
                    "BEGIN", f"INSERT INTO {table} (v) VALUES (4), (5)", "ROLLBACK", f"INSERT INTO {table} (v) VALUES (6)", f"DELETE FROM {table} WHERE v = 6")
        given = session.value("SELECT LAST_INSERT_ID()")
        wait_caught_up(replica, source)
        replica.kill()
        replica.start()
        there = Session(replica)
        there(f"INSERT INTO {table} (v) VALUES (7)")
        own = there.value("SELECT LAST_INSERT_ID()")
        expect(own > given, f"{table}: {own} on the replica, {given} was given by its source")
        there.run(f"DELETE FROM {table} WHERE v = 7")


def follow(directory, dialect, rng):
    options = [f"--dialect={dialect}", "--replica-parallel-workers=4", "--lsm-memtable-size=1M"]
    source, replica = (OmnibusPeer(directory / f"{dialect}{number}", number, *options) for number in (1, 2))
    for server in (source, replica):
        server.start()
    create_user(source)
    session = Session(source)
    session.run("CREATE DATABASE x", "CREATE TABLE x.p (id INT PRIMARY KEY, n INT) ENGINE=LSM", "INSERT INTO x.p VALUES (1, 0), (2, 0)",
                "CREATE TABLE x.c (id INT AUTO_INCREMENT PRIMARY KEY, pid INT, num INT, UNIQUE (pid, num)) ENGINE=BTREE",
                "CREATE TABLE x.named (id INT AUTO_INCREMENT PRIMARY KEY, num INT UNIQUE) ENGINE=LSM", "CREATE TABLE x.turns (id INT PRIMARY KEY)")
    replicate(replica, source, gtid=True if dialect == "mysql" else "slave_pos")
    wait_caught_up(replica, source)
    if dialect == "mysql":
        lock_by_name(source, replica)
    over = threading.Event()
    tasks = [(source, write)] * 4 + [(replica, look)] * 2
    threads = [threading.Thread(target=until, args=(over, server, work, random.Random(rng.random())), daemon=True) for server, work in tasks]
    for thread in threads:
        thread.start()
    for victim in (replica, source, replica):
        time.sleep(SECONDS / 3)
        victim.kill()
        victim.start()
    time.sleep(SECONDS / 3)
    over.set()
    for thread in threads:
        thread.join()
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["x"], least_rows=100)
    made = Session(source).value("SELECT COUNT(*) FROM x.c")
    numbers_go_on(source, replica)
    for server in (source, replica):
        server.stop()
    return made


def main():
    rng = random.Random(seeds.of_this_run())
    with Scratch("omnibus-numbers-") as directory:
        for dialect in ("mysql", "mariadb"):
            print(f"{dialect} ok: {follow(pathlib.Path(directory), dialect, rng)} numbers", flush=True)


if __name__ == "__main__":
    main()
