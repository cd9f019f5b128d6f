"""Writers that know what was acknowledged, and the comparison with what is there afterwards.

Each row is inserted once, under an identifier that is never used again, and some are updated. An answer that did not come leaves open
whether it happened: such a row may be there or not, but nothing may be there twice, and nothing that was acknowledged may miss.
"""

import collections
import threading
import time

from omnibus import expect

TABLE = "CREATE TABLE {name} (id BIGINT NOT NULL PRIMARY KEY, version INT NOT NULL, body VARCHAR(100) NOT NULL, KEY (body))"
CHECKSUM = "SELECT COUNT(*), BIT_XOR(CRC32(CONCAT_WS('#', id, version, body))) FROM {schema}.{name}"
# Rows that a writer may have.
RANGE = 1_000_000_000


def body(number):
    return f"row {number} " + "x" * (number % 80)


class Load:
    """Some connections through vtgate that insert and update rows of a table, until stopped."""

    def __init__(self, cluster, keyspace, table, writers=3):
        self.cluster, self.keyspace, self.table = cluster, keyspace, table
        self.acknowledged, self.tried = {}, {}
        self.errors = collections.Counter()
        self.pauses = [0.0] * writers
        self.stopping = threading.Event()
        self.counts = [0] * writers
        self.threads = [threading.Thread(target=self.write, args=(number,), name=f"writer {number}") for number in range(writers)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def write(self, writer):
        import pymysql
        connection, number, last = None, (writer + 1) * RANGE, time.monotonic()
        while not self.stopping.is_set():
            number += 1
            try:
                if connection is None:
                    connection = self.cluster.gate(self.keyspace)
                with connection.cursor() as cursor:
                    self.tried[number] = 1
                    cursor.execute(f"INSERT INTO {self.table} (id, version, body) VALUES (%s, 1, %s)", (number, body(number)))
                    self.acknowledged[number] = 1
                    if number % 4 == 0:
                        self.tried[number] = 2
                        cursor.execute(f"UPDATE {self.table} SET version = version + 1 WHERE id = %s", (number,))
                        self.acknowledged[number] = 2
            except (pymysql.err.MySQLError, OSError) as error:
                self.errors[str(error.args[-1])[:150]] += 1
                if connection is not None:
                    connection.close()
                connection = None
                # Not to spin where nobody listens.
                self.stopping.wait(0.2)
                continue
            now = time.monotonic()
            self.pauses[writer], last = max(self.pauses[writer], now - last), now
            self.counts[writer] += 1
            self.stopping.wait(0.005)

    def more(self, rows=50):
        """Waits until each writer has got that many more answers."""
        goals = [count + rows for count in self.counts]
        self.cluster.until(lambda: all(count >= goal for count, goal in zip(self.counts, goals)),
                           lambda: f"more rows: writers have {self.counts}, want {goals}, had errors {dict(self.errors)}; they", 240)

    def check(self, tablets, before=()):
        """What the servers of the table's shards have, each row in one of them, is what was acknowledged. `before` was there."""
        found = collections.Counter()
        versions = {}
        for tablet in tablets:
            for number, version, text in tablet.query(f"SELECT id, version, body FROM vt_{tablet.keyspace}.{self.table}"):
                found[number] += 1
                versions[number] = version
                expect(text == body(number), f"row {number} has {text!r}")
        twice = [number for number, count in found.items() if count > 1]
        expect(not twice, f"{len(twice)} rows are there twice, such as {twice[:5]}")
        lost = [number for number, version in self.acknowledged.items() if versions.get(number, 0) < version]
        expect(not lost, f"{len(lost)} of {len(self.acknowledged)} acknowledged rows or updates are lost, such as {lost[:5]}")
        missing = [number for number in before if number not in versions]
        expect(not missing, f"{len(missing)} rows of before are lost, such as {missing[:5]}")
        invented = [number for number, version in versions.items() if number not in before and self.tried.get(number, 0) < version]
        expect(not invented, f"{len(invented)} rows that nobody wrote, such as {invented[:5]}")
        return f"{len(self.acknowledged)} acknowledged rows, longest pause {max(self.pauses):.1f} s, {sum(self.errors.values())} errors"


def fill(cluster, keyspace, table, rows):
    """Rows that are there before any load."""
    connection = cluster.gate(keyspace)
    with connection.cursor() as cursor:
        for first in range(1, rows + 1, 500):
            values = ", ".join(f"({number}, 1, '{body(number)}')" for number in range(first, min(first + 500, rows + 1)))
            cursor.execute(f"INSERT INTO {table} (id, version, body) VALUES {values}")
    connection.close()
    return range(1, rows + 1)


def caught_up(replica, primary, table):
    """Whether they have the same rows. A table may not have come yet."""
    import pymysql
    try:
        return checksum([replica], table) == checksum([primary], table)
    except pymysql.err.ProgrammingError:
        return False


def checksum(tablets, table):
    """Number of rows, and a sum that does not depend on where they are."""
    rows, total = 0, 0
    for tablet in tablets:
        (count, one), = tablet.query(CHECKSUM.format(schema=f"vt_{tablet.keyspace}", name=table))
        rows, total = rows + count, total ^ one
    return rows, total
