#!/usr/bin/python3
"""Online schema change by gh-ost and pt-online-schema-change, unmodified, while many sessions write.

Every transaction of a writer changes the table and, by the same statement, a table beside it that nobody alters. At the end the two have the
same rows: none slipped into the old table while they changed places, and none was lost on the way through the log or the triggers.

Ring: all.
"""

import pathlib
import random
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, client, connect, error_code, expect, wait_for  # noqa: E402
from peers import OmnibusPeer, create_user, expect_equal, query, replicate, run_chosen, wait_caught_up  # noqa: E402

ROWS, WRITERS = 3000, 6
COLUMNS = """id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, v BIGINT NOT NULL, name VARCHAR(40) CHARACTER SET latin1, note TEXT,
    price DECIMAL(12,4), seen DATETIME(3), at TIMESTAMP NULL, state ENUM('new','old') NOT NULL DEFAULT 'new', data VARBINARY(20), doc JSON, KEY k (k)"""
ALTER = "ADD COLUMN added INT NOT NULL DEFAULT 7, ADD INDEX v (v), MODIFY name VARCHAR(90) CHARACTER SET utf8mb4, DROP COLUMN state"
ACCOUNT = "CREATE USER dba@'%' IDENTIFIED WITH mysql_native_password BY 'p'; GRANT ALL ON *.* TO dba@'%'"
# Deadlock, lock wait timeout, an id that is taken.
AGAIN = {1213, 1205, 1062}


def fill(server):
    client(server, f"{ACCOUNT}; CREATE DATABASE shop; CREATE TABLE shop.item ({COLUMNS}); CREATE TABLE shop.mirror ({COLUMNS})")
    cursor = connect(server, database="shop", autocommit=True).cursor()
    cursor.execute(f"SET cte_max_recursion_depth = {ROWS}")
    cursor.execute(f"""INSERT INTO item (k, v, name, note, price, seen, at, data, doc)
        WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS})
        SELECT i % 50, i, CONCAT('ä', i), REPEAT('x', i % 300), i / 7, '2024-02-29 12:00:00.125', '2024-03-31 01:30:00', x'00ff0a27', JSON_OBJECT('i', i) FROM n""")
    cursor.execute("INSERT INTO mirror SELECT * FROM item")


class Writers:
    """Sessions that write until they are told to stop."""

    def __init__(self, server, seed):
        self.server, self.stop, self.transactions = server, threading.Event(), 0
        self.threads = [threading.Thread(target=self.write, args=(random.Random(seed * 100 + n), n)) for n in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def statements(self, rng, number):
        """What is done to both tables, in which nothing depends on who else writes."""
        id, other = rng.randrange(1, ROWS), rng.randrange(1, ROWS)
        # Every writer inserts ids of its own.
        new = 1_000_000 + number + WRITERS * rng.randrange(2000)
        text = "".join(rng.choice("aäß'\\€ ") for _ in range(rng.randrange(9))).replace("\\", "\\\\").replace("'", "''")
        return rng.choice([
            f"INSERT IGNORE INTO {{}} (id, k, v, name) VALUES ({new}, {other % 50}, {other}, '{text}')",
            f"REPLACE INTO {{}} (id, k, v, note, doc) VALUES ({new}, {other % 50}, {other}, '{text}', '[{other}]')",
            f"INSERT INTO {{}} (id, k, v) VALUES ({id}, 1, 1) ON DUPLICATE KEY UPDATE v = v + 1, price = price + 0.5",
            f"UPDATE {{}} SET v = v + {other}, data = x'{other:08x}' WHERE id = {id}",
            f"UPDATE {{}} SET k = k + 1, seen = '2025-01-01 00:00:00.5' WHERE id BETWEEN {id} AND {id + 5}",
            f"UPDATE {{}} SET id = id + 10000000 WHERE id = {new}",
            f"UPDATE {{}} SET name = '{text}', note = NULL, at = '2025-06-01 00:00:00' WHERE id = {id}",
            f"DELETE FROM {{}} WHERE id = {rng.choice([new, id])}",
            f"DELETE FROM {{}} WHERE id BETWEEN {id} AND {id + 2}",
        ])

    def write(self, rng, number):
        db = connect(self.server, database="shop", charset="utf8mb4")
        # A tool that reads the log applies one transaction at a time: writers that never rest stay ahead of it for ever.
        while not self.stop.wait(0.03):
            batch = [self.statements(rng, number) for _ in range(rng.randrange(1, 4))]

            def transaction(db=db, batch=batch):
                with db.cursor() as cursor:
                    for sql in batch:
                        for table in ("item", "mirror"):
                            cursor.execute(sql.format(table))
                db.commit()

            if error_code(transaction, AGAIN):
                db.rollback()
            else:
                self.transactions += 1
        db.close()

    def end(self, least):
        wait_for(lambda: self.transactions >= least or self.failed(), "the writers write")
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def failed(self):
        return not all(thread.is_alive() for thread in self.threads)


def rows(server, table):
    return query(server, f"SELECT id, k, v, HEX(CONVERT(name USING utf8mb4)) AS n, HEX(note) AS o, price, seen, at, HEX(data) AS d, CAST(doc AS CHAR) AS j FROM shop.{table} ORDER BY id")


def check(server):
    """Both tables have the same rows, and what was altered has its new shape."""
    mine, theirs = rows(server, "item"), rows(server, "mirror")
    differ = [(a, b) for a, b in zip(mine, theirs) if a != b][:2]
    expect(mine == theirs, f"{len(mine)} rows, and {len(theirs)} in the mirror: {differ}")
    expect(len(mine) > ROWS / 2, f"only {len(mine)} rows are left to compare")
    columns = {row["Field"]: row["Type"] for row in query(server, "SHOW COLUMNS FROM shop.item")}
    expect("state" not in columns and columns["name"] == "varchar(90)" and "added" in columns, f"the shape: {columns}")
    expect(query(server, "SELECT COUNT(*) AS n FROM shop.item WHERE added <> 7")[0]["n"] == 0, "the new column")
    left = {next(iter(row.values())) for row in query(server, "SHOW TABLES FROM shop")} - {"item", "mirror"}
    expect(left == set(), f"what the tool left: {left}")
    expect(query(server, "SHOW TRIGGERS FROM shop") == [], "triggers are left")


def run(command, writers, directory):
    """Runs a tool to its end, and the writers a little longer; what it said."""
    path = pathlib.Path(directory) / "said"
    with path.open("wb") as out:
        tool = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        wait_for(lambda: tool.poll() is not None or writers.failed(), lambda: f"{command[0]} does not end:\n{path.read_text(errors='replace')[-3000:]}")
    said = path.read_text(errors="replace")
    expect(tool.poll() == 0, f"{command[0]}: {tool.returncode}\n{said[-3000:]}")
    writers.end(writers.transactions + 200)
    return said


def gh_ost(server, *options):
    programs = subprocess.run([ROOT / "tests/clients/install"], capture_output=True, text=True, check=True).stdout.strip()
    return [f"{programs}/go/gh-ost", "--user=dba", "--password=p", "--host=127.0.0.1", f"--port={server.port}", "--database=shop", "--table=item",
            f"--alter={ALTER}", "--chunk-size=100", "--dml-batch-size=100", "--max-load=Threads_running=100", "--exact-rowcount", "--ok-to-drop-table", "--execute",
            f"--serve-socket-file={server.directory}/gh-ost.sock", *options]


def pair(directory):
    """A source that is filled, and a replica that follows it."""
    source, replica = OmnibusPeer(f"{directory}/s", 1), OmnibusPeer(f"{directory}/r", 2, "--report-host=127.0.0.1")
    for server in (source, replica):
        server.start()
    create_user(source)
    replicate(replica, source, gtid=True)
    fill(source)
    wait_caught_up(replica, source)
    return source, replica


def check_pair(source, replica):
    check(source)
    wait_caught_up(replica, source)
    expect_equal(source, replica, least_rows=ROWS)
    for server in (replica, source):
        server.stop()


def by_gh_ost(directory):
    """gh-ost reads the server's own log and changes the tables' places by LOCK TABLES and a RENAME that waits."""
    server = OmnibusPeer(f"{directory}/s", 1)
    server.start()
    fill(server)
    writers = Writers(server, 1)
    run(gh_ost(server, "--allow-on-master"), writers, directory)
    check(server)
    server.stop()


def by_gh_ost_from_a_replica(directory):
    """gh-ost reads a replica's log, and finds the source from there."""
    source, replica = pair(directory)
    writers = Writers(source, 2)
    run(gh_ost(replica), writers, directory)
    check_pair(source, replica)


def by_triggers(directory):
    """pt-online-schema-change, with a replica that it finds and waits for. The table is copied in pieces, since it is known to be long."""
    source, replica = pair(directory)
    writers = Writers(source, 3)
    said = run(["pt-online-schema-change", "--no-version-check", f"--alter={ALTER}", "--execute", "--chunk-size=200", "--statistics",
                "--max-load=Threads_running=100", "--critical-load=Threads_running=200", f"h=127.0.0.1,P={source.port},u=dba,p=p,D=shop,t=item"], writers, directory)
    expect(int(re.search(r"# INSERT +(\d+)", said)[1]) > 3, f"in one piece: {said}")
    expect("Found 1 slaves" in said, f"the replica is not found: {said}")
    check_pair(source, replica)


if __name__ == "__main__":
    run_chosen("schema_change", [by_gh_ost, by_gh_ost_from_a_replica, by_triggers])
