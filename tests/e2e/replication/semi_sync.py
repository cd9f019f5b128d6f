#!/usr/bin/env python3
"""Semi-synchronous replication with MariaDB and with Omnibus as the replica: what is acknowledged is there, commits wait for no one for ever, and
wait again once a replica has caught up.

Ring: gate.
"""

import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, expect, wait_for  # noqa: E402
from peers import OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402


def figure(server, name):
    return client(server, f"SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_{name}'").split("\t")[1].strip()


def timed(server, sql):
    started = time.monotonic()
    client(server, sql)
    return time.monotonic() - started


def received(replica):
    """The position that the replica has received."""
    lines = client(replica, "SHOW SLAVE STATUS\\G", "--column-names").splitlines()
    return dict(line.strip().partition(": ")[::2] for line in lines)


def names(source, dialect):
    """MySQL's dialect lists the new names only; who asks for an old one by its whole name gets it, as MariaDB's replicas do."""
    def listed(what):
        return {line.split("\t")[0].lower() for line in client(source, what).splitlines()}
    for kind in ("VARIABLES", "STATUS"):
        families = {name.split("_")[3] for name in listed(f"SHOW GLOBAL {kind} LIKE 'rpl\\_semi\\_sync\\_%'")}
        both = {"source", "replica"} | ({"master", "slave"} if dialect == "mariadb" else set())
        expect(families == both, f"{dialect} lists {families} in SHOW {kind}")
    for what, old in (("VARIABLES LIKE 'rpl_semi_sync_master_enabled'", "rpl_semi_sync_master_enabled"),
                      ("GLOBAL VARIABLES WHERE Variable_name = 'RPL_semi_sync_slave_enabled'", "rpl_semi_sync_slave_enabled"),
                      ("STATUS LIKE 'Rpl\\_semi\\_sync\\_slave\\_status'", "rpl_semi_sync_slave_status"),
                      ("STATUS WHERE Variable_name IN ('x', 'Rpl_semi_sync_master_clients')", "rpl_semi_sync_master_clients")):
        expect(listed("SHOW " + what) == {old}, f"{dialect}: SHOW {what}: {listed('SHOW ' + what)}")
    both = listed("SHOW VARIABLES WHERE Variable_name IN ('rpl_semi_sync_master_enabled','rpl_semi_sync_source_enabled')")
    expect(len(both) == 2, f"{dialect}: both by name: {both}")
    expect(client(source, "SHOW STATUS LIKE 'Rpl_semi_sync_replica_status'").split()[1] == "OFF", "it follows nobody")


def run(directory, dialect, using):
    source = Omnibus(directory, "--server-id=1", f"--dialect={dialect}")
    source.start()
    replica = MariaDB(directory, "--server-id=2", "--rpl-semi-sync-slave-enabled=1", "--slave-net-timeout=10")
    replica.start()
    try:
        client(source, "CREATE USER r@'%' IDENTIFIED WITH mysql_native_password BY 'secret'; GRANT REPLICATION SLAVE ON *.* TO r@'%';"
                       "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT); INSERT INTO d.t VALUES (0,0);"
                       "SET GLOBAL rpl_semi_sync_master_timeout=1500, GLOBAL rpl_semi_sync_source_enabled=ON")
        expect(figure(source, "status") == "ON", "switched on")
        names(source, dialect)
        # Nobody acknowledges: one timeout, then commits go on without.
        took = timed(source, "INSERT INTO d.t VALUES (1,1)")
        expect(took > 1.3, f"the timeout: {took}")
        expect(figure(source, "status") == "OFF" and figure(source, "no_times") == "1", "switched off")
        client(source, "INSERT INTO d.t VALUES (2,2)")
        expect(figure(source, "no_times") == "1", "no more waiting")
        expect(int(figure(source, "no_tx")) == 2, f"no_tx: {figure(source, 'no_tx')}")
        # From here on whoever waits waits for what must come.
        client(source, "SET GLOBAL rpl_semi_sync_source_timeout=600000")
        # A replica catches up: commits wait for it again, and not long.
        client(replica, f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, MASTER_USER='r', "
                        f"MASTER_PASSWORD='secret', MASTER_USE_GTID={using}, MASTER_CONNECT_RETRY=1; START SLAVE")
        wait_for(lambda: figure(source, "status") == "ON", lambda: f"a replica that catches up: {received(replica)}")
        expect(figure(source, "clients") == "1", "one client")
        for n in range(10, 60):
            client(source, f"INSERT INTO d.t VALUES ({n},{n})")
        expect(int(figure(source, "yes_tx")) == 50, f"yes_tx: {figure(source, 'yes_tx')}")
        expect(int(figure(source, "net_waits")) > 0, "acknowledgements are counted")
        # Several sessions at once, and a rotation among them.
        def insert(first):
            connection = connect(source, autocommit=True)
            for n in range(first, first + 50):
                connection.query(f"INSERT INTO d.t VALUES ({n},1)")
        threads = [threading.Thread(target=insert, args=(1000 * n,)) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        client(source, "FLUSH BINARY LOGS")
        for thread in threads:
            thread.join()
        wait_for(lambda: figure(source, "wait_sessions") == "0", "sessions wait on")
        expect(figure(source, "status") == "ON", "still on")
        # AFTER_SYNC: what the replica does not have, nobody sees. Its receiver is stopped with no one to notice.
        replica_rows = lambda: client(replica, "SELECT COUNT(*) FROM d.t").strip()
        wait_for(lambda: replica_rows() == client(source, "SELECT COUNT(*) FROM d.t").strip(), "the replica applies all")
        client(replica, "STOP SLAVE IO_THREAD")
        waiting = threading.Thread(target=client, args=(source, "INSERT INTO d.t VALUES (70000,1)"))
        waiting.start()
        wait_for(lambda: figure(source, "wait_sessions") == "1", "no commit waits")
        expect(client(source, "SELECT * FROM d.t WHERE id=70000") == "", "AFTER_SYNC: nobody sees what no replica has")
        client(replica, "START SLAVE IO_THREAD")
        waiting.join()
        expect(figure(source, "no_times") == "1", "the replica came back in time")
        expect(client(source, "SELECT v FROM d.t WHERE id=70000") == "1\n", "and then all see it")
        # AFTER_COMMIT: seen by all, told to the session later.
        client(source, "SET GLOBAL rpl_semi_sync_source_wait_point=AFTER_COMMIT")
        client(replica, "STOP SLAVE IO_THREAD")
        waiting = threading.Thread(target=client, args=(source, "INSERT INTO d.t VALUES (70001,1)"))
        waiting.start()
        wait_for(lambda: client(source, "SELECT v FROM d.t WHERE id=70001") == "1\n", "AFTER_COMMIT shows it")
        expect(waiting.is_alive(), "its session waits")
        # Switching off lets it go; so does a shutdown.
        client(source, "SET GLOBAL rpl_semi_sync_source_enabled=OFF")
        waiting.join()
        client(source, "SET GLOBAL rpl_semi_sync_source_enabled=ON")
        waiting = threading.Thread(target=client, args=(source, "INSERT INTO d.t VALUES (70002,1)"), kwargs={"check": False})
        waiting.start()
        wait_for(lambda: figure(source, "wait_sessions") == "1", "no commit waits")
        started = time.monotonic()
        source.stop()
        expect(time.monotonic() - started < 45, "a waiting commit keeps the server from stopping")
        waiting.join()
        source.start()
        expect(client(source, "SELECT v FROM d.t WHERE id=70002") == "1\n", "it was in the log")
    finally:
        replica.stop()
        source.stop()


def stays_on(directory):
    """A replica of ours that applies by the batch keeps it on, whatever the load, and has it on again after a kill -9 of either."""
    source = OmnibusPeer(f"{directory}/source", 1, "--rpl-semi-sync-source-enabled=ON", "--rpl-semi-sync-source-timeout=20000",
                         "--rpl-semi-sync-source-wait-no-replica=OFF")
    replica = OmnibusPeer(f"{directory}/replica", 2, "--rpl-semi-sync-replica-enabled=ON", "--replica-parallel-workers=4")
    source.start()
    replica.start()
    create_user(source)
    client(source, "SET sql_log_bin = 0; CREATE DATABASE d")
    client(replica, "SET sql_log_bin = 0; CREATE DATABASE d")
    client(source, "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    replicate(replica, source, gtid=True)

    def insert(first):
        cursor = connect(source, autocommit=True).cursor()
        for n in range(first, first + 100):
            cursor.execute(f"INSERT INTO d.t VALUES ({n}, 1)")

    def load(start):
        wait_for(lambda: figure(source, "status") == "ON", lambda: f"a replica that has caught up: {client(source, SHOW)}")
        before = figure(source, "no_times")
        threads = [threading.Thread(target=insert, args=(start + 1000 * n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect((figure(source, "status"), figure(source, "no_times")) == ("ON", before),
               f"semi-sync went off though the replica follows: {client(source, SHOW)}")

    load(10_000)
    client(source, "FLUSH BINARY LOGS")
    load(20_000)
    replica.kill()
    replica.start()
    load(30_000)
    source.kill()
    source.start()
    load(40_000)
    expect(client(source, "SELECT COUNT(*) FROM d.t") == "3200\n", "rows that were acknowledged")
    wait_caught_up(replica, source)
    expect(client(replica, "SELECT COUNT(*) FROM d.t") == "3200\n", "rows on the replica")
    replica.stop()
    source.stop()


SHOW = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source%'"


def main():
    with Scratch() as directory:
        stays_on(directory)
    for dialect, using in (("mysql", "no"), ("mariadb", "slave_pos")):
        with Scratch() as directory:
            run(directory, dialect, using)
    print("semi-synchronous replication: ok")


main()
