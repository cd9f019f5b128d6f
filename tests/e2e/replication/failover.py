#!/usr/bin/env python3
"""docs/use/failover.sh: the source is killed under load, one of two semi-synchronous replicas takes over with nothing acknowledged lost, and the old source comes
back as a replica, without the transactions that nobody was told of.

Ring: all.
"""

import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import binary, client, connect, expect, wait_for  # noqa: E402
from peers import PASSWORD, USER, OmnibusPeer, create_user, expect_equal, query, replicate, run_chosen, status, wait_caught_up  # noqa: E402

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "use" / "failover.sh"
WRITERS = 8


def server(directory, number):
    made = OmnibusPeer(f"{directory}/{number}", number, "--rpl-semi-sync-replica-enabled=ON", "--rpl-semi-sync-source-timeout=600000")
    made.start()
    create_user(made)
    client(made, "SET sql_log_bin = 0; CREATE USER admin@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO admin@'127.0.0.1' WITH GRANT OPTION")
    return made


def place(made):
    return f"127.0.0.1:{made.port}"


def failover(directory, *words, fails=False):
    """Runs the script as its user does; what it prints, or what it fails with."""
    options = pathlib.Path(directory) / "admin.cnf"
    options.write_text("[client]\nuser=admin\npassword=secret\n")
    environment = {"PATH": "/usr/bin:/bin", "CLIENT": f"mariadb --defaults-file={options}", "OMNIBUS": binary(), "REPL_USER": USER,
                   "REPL_PASSWORD": PASSWORD}
    done = subprocess.run([SCRIPT, *words], env=environment, capture_output=True, text=True, timeout=120)
    expect((done.returncode != 0) == fails, f"failover.sh {words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


class Load:
    """Sessions that insert, and know what was acknowledged."""

    def __init__(self, source, first):
        self.acknowledged = [[] for _ in range(WRITERS)]
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.write, args=(source, writer, first)) for writer in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, source, writer, number):
        import pymysql
        try:
            with connect(source, autocommit=True, database="d").cursor() as cursor:
                while not self.ended.is_set():
                    number += 1
                    cursor.execute(f"INSERT INTO t VALUES ({number * WRITERS + writer}, {number})")
                    self.acknowledged[writer].append(number * WRITERS + writer)
                    cursor.execute(f"UPDATE counter SET n = n + 1 WHERE id = {writer}")
        except pymysql.err.Error:
            # The server is gone: that is the test.
            pass

    def count(self):
        return sum(map(len, self.acknowledged))

    def join(self):
        for thread in self.threads:
            thread.join()
        return {number for numbers in self.acknowledged for number in numbers}


def rows(made):
    return {int(row["id"]) for row in query(made, "SELECT id FROM d.t")}


def executed(made):
    return query(made, "SELECT @@GLOBAL.gtid_executed AS e")[0]["e"]


def takes_over_and_comes_back(directory):
    first, *replicas = servers = [server(directory, number) for number in (1, 2, 3)]
    # The set-up of docs/use/failover.md.
    client(first, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT); CREATE TABLE d.counter (id INT PRIMARY KEY, n INT) ENGINE=BTREE;"
                  "INSERT INTO d.counter SELECT seq, 0 FROM JSON_TABLE('[0,1,2,3,4,5,6,7]', '$[*]' COLUMNS (seq INT PATH '$')) AS s;"
                  "SET PERSIST rpl_semi_sync_source_enabled = ON")
    for replica in replicas:
        replicate(replica, first, gtid=True)
        client(replica, "SET PERSIST super_read_only = ON")
        wait_caught_up(replica, first)
    load = Load(first, 0)
    wait_for(lambda: load.count() > 500, "the load goes on")
    # Both are cut off while commits wait for them: these are in the source's log, and in no other.
    for replica in replicas:
        client(replica, "STOP REPLICA IO_THREAD")
    waiting = lambda: int(client(first, "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_source_wait_sessions'").split()[1])
    wait_for(lambda: waiting() == WRITERS, "all writers wait for a replica")
    # A replica may still have got what these wait for, but not what begins now.
    late = Load(first, 500_000)
    wait_for(lambda: waiting() == 2 * WRITERS, "others wait behind them")
    first.kill()
    expect(not late.join(), "nobody was told")
    acknowledged = load.join()

    promoted = failover(directory, "promote", *map(place, replicas)).split()[-1]
    source = next(replica for replica in replicas if place(replica) == promoted)
    other = next(replica for replica in replicas if replica is not source)
    missing = acknowledged - rows(source)
    expect(not missing, f"{len(missing)} acknowledged rows are lost, {sorted(missing)[:3]} among them")
    wait_for(lambda: status(other)["Slave_IO_Running"] == "Yes", "the other replica follows")
    expect(client(source, "SELECT @@super_read_only, @@rpl_semi_sync_source_enabled").split() == ["0", "1"], "it takes writes, and waits for replicas")
    load = Load(source, 1_000_000)
    wait_for(lambda: load.count() > 200, "the load goes on at the new source")

    first.start()
    tail = query(first, f"SELECT GTID_SUBTRACT('{executed(first)}', '{executed(source)}') AS t")[0]["t"]
    expect(tail, "the old source has what it told nobody of")
    expect(rows(first) - acknowledged - rows(source), "and its rows")
    refusal = failover(directory, "rejoin", place(first), promoted, fails=True)
    expect(tail.replace("\n", "") in refusal and "--flashback" in refusal, f"it names what there is too much: {refusal}")
    told = failover(directory, "rejoin", place(first), promoted, "--flashback")
    expect(f"taken back: {tail}" in told, told)
    load.ended.set()
    later = load.join()
    for replica in (first, other):
        wait_caught_up(replica, source)
        expect_equal(source, replica, ["d"], least_rows=700)
    expect(executed(first) == executed(source), f"{executed(first)} and {executed(source)}")
    expect(later | acknowledged <= rows(first), "the old source has all that was acknowledged, before and after")
    expect(client(first, "INSERT INTO d.t VALUES (-1, 0)", check=False) is not None and -1 not in rows(first), "and takes no writes")

    # The way back: the old source is the furthest once more.
    source.kill()
    failover(directory, "promote", place(first), place(other))
    client(other if client(first, "SELECT @@super_read_only").strip() == "1" else first, "INSERT INTO d.t VALUES (-2, 0)")
    for made in servers:
        made.stop()


if __name__ == "__main__":
    run_chosen("failover", [takes_over_and_comes_back])
