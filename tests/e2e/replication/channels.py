#!/usr/bin/python3
"""Several sources of one replica, a ring of two, semi-synchronous replicas, transactions in each other's way, large ones,
and a replica without a log of what it applies.

Ring: all.
"""

import pathlib
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Scratch, connect, error_code, expect  # noqa: E402
from peers import (MariaPeer, OmnibusPeer, PASSWORD, USER, brief, create_user, expect_equal, log_position, query,  # noqa: E402
                   replicate, restart, status, wait_caught_up, wait_for)
from proxy import STALL, Proxy  # noqa: E402


def start_all(*servers):
    for server in servers:
        server.start()
        create_user(server)


def several_sources(maria, own, replica):
    """Each channel has its threads, its position and its errors."""
    query(maria, "CREATE DATABASE m")
    query(maria, "CREATE TABLE m.t (a INT PRIMARY KEY, b INT)")
    query(own, "CREATE DATABASE o")
    query(own, "CREATE TABLE o.t (a INT PRIMARY KEY, b INT)")
    replicate(replica, maria, channel="from_maria")
    replicate(replica, own, gtid=True, channel="from_own", HEARTBEAT_PERIOD=0.2)
    for n in range(20):
        query(maria, f"INSERT INTO m.t VALUES ({n}, 0)")
        query(own, f"INSERT INTO o.t VALUES ({n}, 0)")
    wait_caught_up(replica, maria, channel="from_maria")
    wait_caught_up(replica, own, channel="from_own")
    expect_equal(maria, replica, ["m"], least_rows=20)
    expect_equal(own, replica, ["o"], least_rows=20)
    expect(len(query(replica, "SHOW REPLICA STATUS")) == 2, "a row for each channel")
    query(replica, "DELETE FROM m.t WHERE a = 3")
    query(maria, "UPDATE m.t SET b = 1 WHERE a = 3")
    wait_for(lambda: status(replica, "from_maria")["Last_SQL_Errno"] == 1032, lambda: brief(status(replica, "from_maria")))
    query(own, "UPDATE o.t SET b = 7")
    wait_caught_up(replica, own, channel="from_own")
    expect_equal(own, replica, ["o"])
    query(replica, "INSERT INTO m.t VALUES (3, 0)")
    query(replica, "START REPLICA FOR CHANNEL 'from_maria'")
    wait_caught_up(replica, maria, channel="from_maria")
    expect_equal(maria, replica, ["m"])
    restart(replica)
    query(own, "UPDATE o.t SET b = 8")
    wait_caught_up(replica, own, channel="from_own")
    query(replica, "STOP REPLICA")
    query(replica, "RESET REPLICA ALL FOR CHANNEL 'from_own'")
    expect([row["Channel_Name"] for row in query(replica, "SHOW REPLICA STATUS")] == ["from_maria"], "one channel is left")


def in_each_others_way(maria, replica):
    """REPLICA-1 with hot rows, unique values that change places, a table without keys, and a session here that holds locks."""
    query(maria, "CREATE TABLE m.hot (a INT PRIMARY KEY, n INT, u INT, UNIQUE KEY (u))")
    query(maria, "CREATE TABLE m.bare (n INT, s VARCHAR(20))")
    query(maria, "INSERT INTO m.hot VALUES (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4)")
    query(maria, "INSERT INTO m.bare VALUES (1, 'a'), (2, 'b'), (2, 'b')")
    wait_caught_up(replica, maria)

    def write(seed):
        db = connect(maria, autocommit=False)
        with db.cursor() as cursor:
            for n in range(150):
                try:
                    cursor.execute("UPDATE m.hot SET n = n + 1 WHERE a = %s", ((n * seed) % 4 + 1,))
                    if n % 5 == seed % 5:
                        cursor.execute("DELETE FROM m.hot WHERE a = %s", (n % 4 + 1,))
                        cursor.execute("INSERT INTO m.hot VALUES (%s, %s, %s)", (n % 4 + 1, n, (n + seed) % 4 + 1))
                    if n % 7 == 0:
                        cursor.execute("UPDATE m.bare SET s = %s WHERE n = %s", (f"{seed}-{n}", n % 3))
                    db.commit()
                except Exception:  # noqa: BLE001  deadlocks and duplicates are what this is for
                    db.rollback()
        db.close()

    threads = [threading.Thread(target=write, args=(seed,), daemon=True) for seed in (1, 2, 3, 5)]
    for thread in threads:
        thread.start()
    holder = connect(replica, autocommit=False)
    with holder.cursor() as cursor:
        cursor.execute("SELECT * FROM m.hot WHERE a = 1 FOR UPDATE")
        for thread in threads:
            thread.join()
        target = log_position(maria)
        # An applier that waits for a lock does not hold STOP REPLICA up, and is no error.
        began = time.monotonic()
        query(replica, "STOP REPLICA")
        expect(time.monotonic() - began < 45, "STOP REPLICA waits for a lock wait of 50 seconds to time out")
        expect(status(replica)["Last_SQL_Errno"] == 0, brief(status(replica)))
        query(replica, "START REPLICA")
        holder.rollback()
    holder.close()
    wait_caught_up(replica, maria)
    expect(log_position(maria) == target, "nobody writes any more")
    expect_equal(maria, replica, ["m"])


def large(maria, replica):
    """A transaction larger than what is kept in memory, cut by a kill of either side, comes once."""
    query(maria, "CREATE TABLE m.big (a INT AUTO_INCREMENT PRIMARY KEY, b MEDIUMBLOB)")
    db = connect(maria, autocommit=False)
    with db.cursor() as cursor:
        for n in range(30):
            cursor.execute("INSERT INTO m.big (b) VALUES (REPEAT(%s, 1000000))", (chr(65 + n % 26),))
        db.commit()
    query(maria, "INSERT INTO m.big (b) VALUES ('last')")
    restart(replica, kill=True)
    wait_caught_up(replica, maria)
    expect_equal(maria, replica, ["m"])


def logins(own, replica):
    """caching_sha2_password: refused where the password could be read, inside TLS, and under the source's RSA key."""
    query(own, "CREATE USER sha2@'%' IDENTIFIED WITH caching_sha2_password BY 'a long secret'")
    query(own, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO sha2@'%'")
    name, position = log_position(own)
    common = (f"SOURCE_HOST='127.0.0.1', SOURCE_PORT={own.port}, SOURCE_USER='sha2', SOURCE_PASSWORD='a long secret', "
              f"SOURCE_CONNECT_RETRY=1, SOURCE_LOG_FILE='{name}', SOURCE_LOG_POS={position}")

    def attempt(options, condition):
        query(replica, f"CHANGE REPLICATION SOURCE TO {common}, {options} FOR CHANNEL 'login'")
        query(replica, "START REPLICA IO_THREAD FOR CHANNEL 'login'")
        wait_for(lambda: condition(status(replica, "login")), lambda: f"{options}: {brief(status(replica, 'login'))}")
        query(replica, "STOP REPLICA FOR CHANNEL 'login'")
        query(own, "FLUSH PRIVILEGES")

    def connected(row):
        return row["Slave_IO_Running"] == "Yes"
    attempt("SOURCE_SSL=0", lambda row: row["Last_IO_Errno"] == 2061 and "GET_SOURCE_PUBLIC_KEY" in row["Last_IO_Error"])
    attempt("GET_SOURCE_PUBLIC_KEY=1", connected)
    attempt("GET_SOURCE_PUBLIC_KEY=0, SOURCE_SSL=1", connected)
    ca = own.datadir / "ca.pem"
    attempt(f"SOURCE_SSL=1, SOURCE_SSL_CA='{ca}'", connected)
    attempt(f"SOURCE_HOST='localhost', SOURCE_SSL=1, SOURCE_SSL_CA='{ca}', SOURCE_SSL_VERIFY_SERVER_CERT=1", connected)
    attempt(f"SOURCE_SSL_VERIFY_SERVER_CERT=1, SOURCE_SSL_CA='{replica.datadir / 'ca.pem'}'",
            lambda row: row["Last_IO_Errno"] == 2026)
    # What the settings say is what is done, or an error.
    tls12 = "SOURCE_TLS_VERSION='TLSv1.2', SOURCE_SSL_VERIFY_SERVER_CERT=0"
    attempt(f"{tls12}, SOURCE_SSL_CIPHER='AES128-SHA:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256', "
            f"SOURCE_SSL_CA='{ca}'", connected)
    attempt(f"{tls12}, SOURCE_SSL_CIPHER='', SOURCE_SSL_CA='', SOURCE_SSL_CAPATH='{own.datadir / 'nowhere'}'",
            lambda row: row["Last_IO_Errno"] == 2026 and "nowhere" in row["Last_IO_Error"])
    attempt("SOURCE_SSL_CAPATH='', SOURCE_SSL_VERIFY_SERVER_CERT=1",
            lambda row: row["Last_IO_Errno"] == 2026 and "needs SOURCE_SSL_CA" in row["Last_IO_Error"])
    attempt(f"SOURCE_SSL_VERIFY_SERVER_CERT=0, SOURCE_SSL_CERT='{own.datadir / 'server-cert.pem'}'",
            lambda row: row["Last_IO_Errno"] == 2026 and "SOURCE_SSL_KEY" in row["Last_IO_Error"])
    for refused, code in (("SOURCE_TLS_VERSION='TLSv1.1'", 1210), ("SOURCE_SSL_CIPHER='AES128-SHA'", 1210),
                          ("SOURCE_TLS_CIPHERSUITES='x'", 1210), ("SOURCE_COMPRESSION_ALGORITHMS='lz4'", 3922)):
        got = error_code(lambda: query(replica, f"CHANGE REPLICATION SOURCE TO {refused} FOR CHANNEL 'login'"))  # noqa: B023
        expect(got == code, f"{refused}: {got}")
    attempt("SOURCE_BIND='192.0.2.1', SOURCE_SSL_CERT=''",
            lambda row: row["Last_IO_Errno"] == 2003 and "SOURCE_BIND: 192.0.2.1" in row["Last_IO_Error"])
    expect(status(replica, "login")["Master_Bind"] == "192.0.2.1", "SOURCE_BIND as it is shown")
    query(replica, "RESET REPLICA ALL FOR CHANNEL 'login'")


def stalls(own, replica):
    """A source that falls silent: while it is connected to, greets, and in the middle of an event. STOP REPLICA never waits."""
    query(replica, "STOP REPLICA")
    proxy = Proxy(own.port)
    name, position = log_position(own)
    change = (f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, SOURCE_USER='{USER}', "
              f"SOURCE_PASSWORD='{PASSWORD}', SOURCE_LOG_FILE='{name}', SOURCE_LOG_POS={position}, "
              "SOURCE_BIND='127.0.0.9', SOURCE_CONNECT_RETRY=1 FOR CHANNEL 'stalls'")

    def stop():
        began = time.monotonic()
        query(replica, "STOP REPLICA FOR CHANNEL 'stalls'")
        took = time.monotonic() - began
        expect(took < 8, f"STOP REPLICA took {took:.1f} s: {brief(status(replica, 'stalls'))}")

    fakes = [socket.create_server(("127.0.0.1", 0), backlog=0) for _ in range(2)]
    silent, full = (fake.getsockname()[1] for fake in fakes)
    # Nobody else gets into its queue.
    queue = [socket.socket() for _ in range(8)]
    for one in queue:
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", full))
    for port in (silent, full):
        query(replica, change % port)
        query(replica, "START REPLICA FOR CHANNEL 'stalls'")
        if port == silent:
            connection, (host, _) = fakes[0].accept()
            expect(host == "127.0.0.9", f"SOURCE_BIND: {host}")
        wait_for(lambda: status(replica, "stalls")["Slave_IO_Running"] == "Connecting", "it does not connect")
        stop()
    connection.close()
    for one in (*fakes, *queue):
        one.close()
    # Half of an event in the middle of a transaction.
    proxy.spoil = lambda n, packet: [packet[:len(packet) // 2], STALL] if packet[9:10] == b"\x1e" else [packet]
    query(replica, "SET GLOBAL replica_net_timeout = 2")
    query(replica, change % proxy.port)
    query(replica, "START REPLICA FOR CHANNEL 'stalls'")
    query(own, "CREATE DATABASE st")
    query(own, "CREATE TABLE st.t (id INT PRIMARY KEY)")
    query(own, "INSERT INTO st.t VALUES (1), (2)")
    # It notices by itself, and asks again.
    wait_for(lambda: proxy.dumps >= 2, lambda: f"no second dump: {brief(status(replica, 'stalls'))}", timeout=120)
    stop()
    expect(query(replica, "SELECT COUNT(*) AS n FROM st.t")[0]["n"] == 0, "half a transaction")
    proxy.spoil = None
    query(replica, "START REPLICA FOR CHANNEL 'stalls'")
    wait_caught_up(replica, own, channel="stalls")
    expect_equal(own, replica, ["st"], least_rows=2)
    query(replica, "SET GLOBAL replica_net_timeout = 60")
    query(replica, "STOP REPLICA FOR CHANNEL 'stalls'")
    query(replica, "RESET REPLICA ALL FOR CHANNEL 'stalls'")
    query(replica, "START REPLICA")
    proxy.close()


def table_with_its_rows(maria, own, replica):
    """CREATE TABLE ... SELECT is one transaction with one GTID, here and where it is applied; an error leaves nothing of it."""
    def executed(server):
        return query(server, "SELECT GTID_SUBTRACT(@@gtid_executed, '') AS g")[0]["g"].replace("\n", "")
    query(replica, "STOP REPLICA")
    query(replica, "RESET REPLICA ALL")
    replicate(replica, own, gtid=True, HEARTBEAT_PERIOD=0.2)
    query(own, "CREATE TABLE o.numbers (n INT)")
    query(own, "INSERT INTO o.numbers VALUES (1), (2), (3), (4)")
    before = executed(own)
    name, position = log_position(own)
    query(own, "CREATE TABLE o.made (PRIMARY KEY (n)) SELECT n, n * 2 AS twice FROM o.numbers WHERE n < 4")
    new = query(own, f"SELECT GTID_SUBTRACT(@@gtid_executed, '{before}') AS g")[0]["g"]
    expect(new.partition(":")[2].isdigit(), f"one GTID: {new}")
    events = [row["Event_type"] for row in query(own, f"SHOW BINLOG EVENTS IN '{name}' FROM {position}")]
    expect(events.pop(0) == "Ignorable", "the head of the group, which nobody is sent")
    events = [kind for kind in events if kind != "Ignorable"]
    expect(events == ["Gtid", "Query", "Query", "Table_map", "Write_rows", "Xid"], str(events))
    code = error_code(lambda: query(own, "CREATE TABLE o.twice (PRIMARY KEY (n)) SELECT 1 AS n FROM o.numbers"))
    expect(code == 1062 and query(own, "SHOW TABLES FROM o LIKE 'twice'") == [], f"a table without its rows: {code}")
    wait_caught_up(replica, own)
    expect_equal(own, replica, ["o"])
    expect(query(replica, f"SELECT GTID_SUBSET('{new}', @@gtid_executed) AS g")[0]["g"] == 1, "it has its source's GTID")
    # A large one, and one that is rolled back by a kill of the server while it runs.
    query(own, "INSERT INTO o.numbers SELECT a.n + b.n * 10 + c.n * 100 + d.n * 1000 FROM o.numbers a, o.numbers b, o.numbers c, o.numbers d")
    query(own, "CREATE TABLE o.large (PRIMARY KEY (id), KEY (n)) ENGINE=BTREE SELECT a.n * 1000000 + b.n * 100 + c.n AS id, c.n AS n "
               "FROM o.numbers a JOIN o.numbers b JOIN (SELECT n FROM o.numbers WHERE n < 5) c WHERE a.n < 5 OR a.n > 4400")
    running = threading.Thread(target=error_code, args=(lambda: query(
        own, "CREATE TABLE o.never SELECT a.n, b.n AS m FROM o.numbers a, o.numbers b, o.numbers c"),))
    running.start()
    wait_for(lambda: any("o.never" in (row["Info"] or "") for row in query(own, "SHOW PROCESSLIST")), "it does not run")
    restart(own, kill=True)
    running.join()
    expect(query(own, "SHOW TABLES FROM o LIKE 'never'") == [], "a table of a transaction that was not committed")
    restart(replica, kill=True)
    wait_caught_up(replica, own)
    expect_equal(own, replica, ["o"], least_rows=1000)
    # From MariaDB, which logs it so, too.
    query(maria, "CREATE DATABASE c")
    query(maria, "CREATE TABLE c.numbers SELECT 1 AS n UNION SELECT 2")
    replicate(replica, maria, position=log_position(maria), channel="ctas")
    query(replica, "CREATE DATABASE c")
    before = executed(replica)
    query(maria, "CREATE TABLE c.copy (n INT PRIMARY KEY) ENGINE=InnoDB SELECT 5 AS n UNION SELECT 6")
    query(maria, "CREATE OR REPLACE TABLE c.copy (n INT PRIMARY KEY) ENGINE=InnoDB SELECT 7 AS n")
    wait_caught_up(replica, maria, channel="ctas")
    expect([row["n"] for row in query(replica, "SELECT n FROM c.copy")] == [7], "the rows of MariaDB's")
    new = query(replica, f"SELECT GTID_SUBTRACT(@@gtid_executed, '{before}') AS g")[0]["g"]
    first, last = new.partition(":")[2].split("-")
    expect(int(last) - int(first) == 1, f"two transactions: {new}")
    query(replica, "STOP REPLICA")
    query(replica, "RESET REPLICA ALL FOR CHANNEL 'ctas'")
    query(replica, "RESET REPLICA ALL FOR CHANNEL ''")


def marked(maria, own, other):
    """skip_replication: what is marked is left out here, or not even sent, in both directions; a filter decides, and nothing else."""
    def write(server, first):
        db = connect(server, autocommit=True)
        with db.cursor() as cursor:
            for n in (0, 1):
                cursor.execute(f"SET SESSION skip_replication = {n}")
                cursor.execute(f"INSERT INTO m.marked VALUES ({first + n})")
        db.close()

    def follow_under_rule(replica, source, first, rule, kept):
        query(replica, "STOP SLAVE")
        query(replica, f"SET GLOBAL replicate_events_marked_for_skip = {rule}")
        query(replica, "START SLAVE")
        write(source, first)
        query(source, f"INSERT INTO m.marked VALUES ({first + 2})")
        wait_for(lambda: query(replica, f"SELECT a FROM m.marked WHERE a = {first + 2}"), lambda: brief(status(replica)))
        got = [row["a"] for row in query(replica, f"SELECT a FROM m.marked WHERE a >= {first}")]
        expect(got == kept, f"rows from {first} on under {rule}: {got}")

    query(maria, "CREATE TABLE m.marked (a INT PRIMARY KEY)")
    wait_caught_up(own, maria)
    follow_under_rule(own, maria, 10, "FILTER_ON_SLAVE", [10, 12])
    follow_under_rule(own, maria, 20, "FILTER_ON_MASTER", [20, 22])
    follow_under_rule(own, maria, 30, "REPLICATE", [30, 31, 32])
    query(other, "STOP SLAVE")
    query(other, "TRUNCATE TABLE m.marked")
    replicate(other, own, position=log_position(own), start=False, USE_GTID="no")
    follow_under_rule(other, own, 40, "FILTER_ON_SLAVE", [40, 42])
    follow_under_rule(other, own, 50, "FILTER_ON_MASTER", [50, 52])
    query(other, "STOP SLAVE")
    query(maria, "DROP TABLE m.marked")
    wait_caught_up(own, maria)


def shown_as_mariadb_does(folder, maria):
    """In MariaDB's dialect the columns that MariaDB's own replica has, in its order; MASTER_POS_WAIT; a backup that goes on."""
    own = OmnibusPeer(folder / "shown", 14, "--dialect=mariadb")
    other = MariaPeer(folder / "other", 15)
    start_all(own, other)
    for server in (own, other):
        replicate(server, maria, gtid="slave_pos" if server is own else True)
    wait_caught_up(own, maria)
    wait_caught_up(other, maria)

    def columns(server, statement):
        db = connect(server)
        with db.cursor() as cursor:
            cursor.execute(statement)
            return [column[0] for column in cursor.description]
    for statement in ("SHOW SLAVE STATUS", "SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW MASTER STATUS",
                      "SHOW BINARY LOGS", "SHOW SLAVE HOSTS"):
        wanted, got = columns(other, statement), columns(own, statement)
        expect(wanted == got, f"{statement}: MariaDB has {wanted}, we have {got}")

    def states(server):
        rows = [row for row in query(server, "SHOW PROCESSLIST") if row["User"] == "system user"]
        return {(row["Command"], row["State"]) for row in rows if row["Command"] in ("Slave_IO", "Slave_SQL")}
    wait_for(lambda: states(own) == states(other), lambda: f"{states(own)} {states(other)}")
    row, theirs = query(own, "SHOW ALL SLAVES STATUS")[0], query(other, "SHOW ALL SLAVES STATUS")[0]
    for name in ("Gtid_IO_Pos", "Gtid_Slave_Pos", "Using_Gtid", "Slave_SQL_Running_State", "Slave_IO_State"):
        expect(sorted(row[name].split(",")) == sorted(theirs[name].split(",")), f"{name}: {row[name]} and {theirs[name]}")
    expect(row["Slave_DDL_Groups"] > 0 and row["Slave_Transactional_Groups"] > 0, str(row))
    # Behind where both are: so many events, which are MariaDB's GTID, annotation, table, rows and end.
    wait_caught_up(own, maria)
    name, position = log_position(maria)
    answers = []
    waiting = [threading.Thread(target=lambda server=server, position=position + 1: answers.append(query(
        server, f"SELECT MASTER_POS_WAIT('{name}', {position}, 300) AS w")[0]["w"])) for server in (own, own)]
    for thread in waiting:
        thread.start()
    # From then on events count.
    state = "Waiting for the slave SQL thread to advance position"
    wait_for(lambda: sum(row["State"] == state for row in query(own, "SHOW PROCESSLIST")) == 2, "nobody waits")
    query(maria, "UPDATE m.t SET b = b + 1")
    for thread in waiting:
        thread.join()
    expect(answers == [5, 5], f"events that were waited for: {answers}")
    name, position = log_position(maria)
    wait_caught_up(own, maria)
    expect(query(own, f"SELECT MASTER_POS_WAIT('{name}', {position}, 300) AS w")[0]["w"] == 0, brief(status(own)))
    expect_equal(maria, own, ["m"])
    expect(query(own, f"SELECT MASTER_POS_WAIT('{name}', {position + 1}, 0.1) AS w")[0]["w"] == -1, "beyond the end")
    expect(query(own, f"SELECT SOURCE_POS_WAIT('{name}', 4, 1, 'none') AS w")[0]["w"] is None, "no such channel")
    marked(maria, own, other)
    query(own, f"BACKUP TO '{folder / 'backup'}'")
    expect((folder / "backup" / "replica_passwords").stat().st_mode & 0o77 == 0, "only the server may read passwords")
    own.stop()
    copy = OmnibusPeer(folder / "copy", 14, "--dialect=mariadb")
    copy.datadir = folder / "backup"
    copy.start()
    query(maria, "UPDATE m.t SET b = b + 1")
    wait_caught_up(copy, maria)
    expect_equal(maria, copy, ["m"])
    copy.stop()
    other.stop()


def semi_sync(folder, source, names):
    """The source waits for the replica, which answers when a transaction is safe."""
    on, count = names
    replica = OmnibusPeer(folder / f"semi-{source.server_id}", 9, "--rpl-semi-sync-replica-enabled=ON")
    replica.start()
    query(source, f"SET GLOBAL {on}_timeout = 600000")
    query(source, f"SET GLOBAL {on}_enabled = ON")
    replicate(replica, source, position=log_position(source), HEARTBEAT_PERIOD=0.2)

    def clients():
        return int(query(source, f"SHOW STATUS LIKE '{count}_clients'")[0]["Value"])
    wait_for(lambda: clients() == 1, lambda: f"{clients()} semi-synchronous replicas; {brief(status(replica))}")
    expect(query(replica, "SHOW STATUS LIKE 'Rpl_semi_sync_replica_status'")[0]["Value"] == "ON", "the replica says that it answers")
    query(source, "CREATE DATABASE s")
    query(source, "CREATE TABLE s.t (a INT PRIMARY KEY)")
    for n in range(10):
        query(source, f"INSERT INTO s.t VALUES ({n})")
    yes = int(query(source, f"SHOW STATUS LIKE '{count}_yes_tx'")[0]["Value"])
    expect(yes >= 10, f"{yes} transactions were acknowledged")
    wait_caught_up(replica, source)
    expect(len(query(replica, "SELECT * FROM s.t")) == 10, "what was acknowledged is applied")
    replica.stop()
    query(source, f"SET GLOBAL {on}_enabled = OFF")


def ring(folder):
    """Two servers that replicate from each other: everything everywhere once."""
    one, two = OmnibusPeer(folder / "ring1", 21), OmnibusPeer(folder / "ring2", 22)
    for server in (one, two):
        server.start()
    create_user(one)
    create_user(two)
    replicate(two, one, gtid=True, HEARTBEAT_PERIOD=0.2)
    replicate(one, two, gtid=True, HEARTBEAT_PERIOD=0.2)
    query(one, "CREATE DATABASE r")
    query(one, "CREATE TABLE r.t (a INT PRIMARY KEY, b INT)")
    wait_for(lambda: query(two, "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'r'"), "no table")
    for n in range(30):
        query(one, f"INSERT INTO r.t VALUES ({2 * n}, 1)")
        query(two, f"INSERT INTO r.t VALUES ({2 * n + 1}, 2)")
    for server in (one, two):
        wait_for(lambda: len(query(server, "SELECT * FROM r.t")) == 60, lambda: brief(status(server)))  # noqa: B023
    restart(one, kill=True)
    query(two, "UPDATE r.t SET b = 3 WHERE a < 10")
    wait_for(lambda: len(query(one, "SELECT * FROM r.t WHERE b = 3")) == 10, lambda: brief(status(one)))
    expect_equal(one, two, ["r"], least_rows=60)

    def executed(server):
        return sorted(query(server, "SELECT @@gtid_executed AS g")[0]["g"].replace("\n", "").split(","))
    wait_for(lambda: executed(one) == executed(two), lambda: f"{executed(one)} {executed(two)}")
    one.stop()
    two.stop()


def unlogged(folder, maria, own):
    """log_replica_updates=OFF: nothing in the log, and still neither lost nor twice after a kill."""
    replica = OmnibusPeer(folder / "unlogged", 10, "--log-replica-updates=OFF")
    replica.start()
    replicate(replica, maria)
    wait_caught_up(replica, maria)
    executed = query(replica, "SELECT @@gtid_executed AS g")[0]["g"]
    query(maria, "UPDATE m.t SET b = b + 1")
    wait_caught_up(replica, maria)
    expect(query(replica, "SELECT @@gtid_executed AS g")[0]["g"] == executed, "what is applied is not logged")
    restart(replica, kill=True)
    query(maria, "UPDATE m.t SET b = b + 1")
    wait_caught_up(replica, maria)
    expect_equal(maria, replica, ["m"])
    # By GTID, which the log does not tell then: counters show what is done twice.
    query(own, "CREATE DATABASE IF NOT EXISTS u")
    query(own, "CREATE TABLE u.t (a INT PRIMARY KEY, n INT)")
    query(own, "INSERT INTO u.t VALUES (1, 0)")
    replicate(replica, own, gtid=True, channel="own", HEARTBEAT_PERIOD=0.2)
    for _ in range(2):
        query(own, "UPDATE u.t SET n = n + 1")
        query(own, "INSERT INTO u.t SELECT MAX(a) + 1, 0 FROM u.t")
        wait_caught_up(replica, own, channel="own")
        restart(replica, kill=True)
    wait_caught_up(replica, own, channel="own")
    expect_equal(own, replica, ["u"])
    replica.stop()


def domains(folder, maria):
    """MariaDB's domains: UNTIL stops each at its place, and what was behind that in the stream is not lost."""
    replica = OmnibusPeer(folder / "domains", 11)
    replica.start()
    query(maria, "CREATE DATABASE dom")
    query(maria, "CREATE TABLE dom.t (d INT, n INT, PRIMARY KEY (d, n))")
    replicate(replica, maria, start=False)
    query(replica, "CHANGE MASTER TO MASTER_USE_GTID = slave_pos")
    query(replica, "START SLAVE")
    wait_caught_up(replica, maria)
    query(replica, "STOP SLAVE")
    db = connect(maria, autocommit=True)
    with db.cursor() as cursor:
        for domain, n in ((0, 1), (5, 1), (0, 2), (0, 3), (5, 2), (5, 3)):
            cursor.execute(f"SET gtid_domain_id = {domain}")
            cursor.execute(f"INSERT INTO dom.t VALUES ({domain}, {n})")
            if (domain, n) in ((0, 2), (5, 2)):
                cursor.execute("SELECT @@last_gtid")
                until = cursor.fetchone()[0] if domain == 0 else f"{until},{cursor.fetchone()[0]}"
    db.close()
    query(replica, f"START SLAVE UNTIL master_gtid_pos = '{until}'")
    wait_for(lambda: status(replica)["Slave_SQL_Running"] == "No", lambda: brief(status(replica)))
    found = [(row["d"], row["n"]) for row in query(replica, "SELECT d, n FROM dom.t ORDER BY d, n")]
    expect(found == [(0, 1), (0, 2), (5, 1), (5, 2)], f"{until}: {found}")
    expect(query(replica, "SELECT @@gtid_slave_pos AS g")[0]["g"] == until, f"{until}: {brief(status(replica))}")
    query(replica, "STOP SLAVE")
    query(replica, "START SLAVE")
    wait_caught_up(replica, maria)
    expect_equal(maria, replica, ["dom"], least_rows=6)
    replica.stop()


def main():
    with Scratch("omnibus-channels-") as name:
        folder = pathlib.Path(name)
        maria, own = MariaPeer(folder / "maria", 1), OmnibusPeer(folder / "own", 2)
        replica = OmnibusPeer(folder / "replica", 3)
        start_all(maria, own)
        replica.start()
        several_sources(maria, own, replica)
        logins(own, replica)
        stalls(own, replica)
        in_each_others_way(maria, replica)
        large(maria, replica)
        unlogged(folder, maria, own)
        domains(folder, maria)
        table_with_its_rows(maria, own, replica)
        shown_as_mariadb_does(folder, maria)
        semi_sync(folder, maria, ("rpl_semi_sync_master", "Rpl_semi_sync_master"))
        semi_sync(folder, own, ("rpl_semi_sync_source", "Rpl_semi_sync_source"))
        for server in (replica, own, maria):
            server.stop()
        ring(folder)
    print("replica_channels: ok")


if __name__ == "__main__":
    main()
