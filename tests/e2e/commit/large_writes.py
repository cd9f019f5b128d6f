#!/usr/bin/python3
"""Transactions larger than what the server may keep: LOAD DATA, INSERT .. SELECT, UPDATE, DELETE and many small statements, in each
engine, in both at once, and as XA branches. Their writes go to files in tmpdir; what they read of their own, savepoints, unique keys,
ROLLBACK, COMMIT and kill -9 are as ever, and the server's memory stays within a bound.

Usage: large_writes.py [--megabytes 16] [--limit 24] [--ceiling 340] [--only PART], MiB: of rows a transaction, of the limit, of the process

Ring: all.
"""

import argparse
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, expect  # noqa: E402

MIB = 1 << 20
PAD = 1000
DUPLICATE, LOCK_WAIT_TIMEOUT = 1062, 1205
COLUMNS = "id INT PRIMARY KEY, k INT NOT NULL, u INT NOT NULL, pad VARCHAR(1200) NOT NULL, UNIQUE KEY (u), KEY (k)"


def resident(server, name="VmHWM"):
    for line in pathlib.Path(f"/proc/{server.process.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


class Rows:
    """What a table should have: (k, u, the beginning of pad) by id."""

    def __init__(self, count):
        self.count = count
        self.rows = {}

    @staticmethod
    def new(n):
        return n * 7919 % 10_007, n * 31 + 5, f"row {n} "

    def sums(self):
        values = self.rows.items()
        return (len(self.rows), sum(n for n, _ in values), sum(row[0] for _, row in values), sum(row[1] for _, row in values),
                sum(zlib.crc32((row[2] + "x" * PAD).encode()) for _, row in values))


def check(session, table, rows, what):
    """By the primary key, by both others, and some rows by themselves."""
    one = session(f"SELECT COUNT(*), SUM(id), SUM(k), SUM(u), SUM(CRC32(pad)) FROM {table}")[0]
    expect(tuple(int(value or 0) for value in one) == rows.sums(), f"{what}: {one} instead of {rows.sums()}")
    low = sum(1 for row in rows.rows.values() if row[0] < 300)
    expect(session.value(f"SELECT COUNT(*) FROM {table} FORCE INDEX (k) WHERE k < 300") == low, f"{what}: by k")
    for n in (1, 2, 3, rows.count // 2, rows.count // 2 + 1, rows.count):
        row = rows.rows.get(n)
        expect(session(f"SELECT k, u, LEFT(pad, 12) FROM {table} WHERE id = {n}") == (((*row[:2], (row[2] + "x" * 12)[:12]),) if row else ()),
               f"{what}: row {n}")
        if row:
            expect(session(f"SELECT id FROM {table} WHERE u = {row[1]}") == ((n,),), f"{what}: by u of row {n}")
    last = sorted(rows.rows)[-3:][::-1]
    expect(session(f"SELECT id FROM {table} ORDER BY id DESC LIMIT 3") == tuple((n,) for n in last), f"{what}: the last")


def write_file(path, rows):
    with open(path, "w") as out:
        for n in range(1, rows.count + 1):
            k, u, text = Rows.new(n)
            out.write(f"{n}\t{k}\t{u}\t{text}{'x' * PAD}\n")


def update(session, table, rows, where, of):
    session(f"UPDATE {table} SET k = k + 1, u = -u, pad = CONCAT('new ', pad) WHERE {where}")
    for n in [n for n in rows.rows if of(n)]:
        k, u, text = rows.rows[n]
        rows.rows[n] = (k + 1, -u, "new " + text)


def delete(session, table, rows, where, of):
    session(f"DELETE FROM {table} WHERE {where}")
    for n in [n for n in rows.rows if of(n)]:
        del rows.rows[n]


def load(session, table, rows, file):
    session(f"LOAD DATA INFILE '{file}' INTO TABLE {table}")
    rows.rows = {n: Rows.new(n) for n in range(1, rows.count + 1)}


def copy(rows):
    other = Rows(rows.count)
    other.rows = dict(rows.rows)
    return other


def within(session, rows, file):
    """One transaction that does everything, and its end."""
    session("BEGIN")
    load(session, "t", rows, file)
    yield "LOAD in a transaction"
    check(session, "t", rows, "own rows")
    session.fails("INSERT INTO t VALUES (7, 1, -1, 'x')", DUPLICATE)
    session.fails(f"INSERT INTO t VALUES (-7, 1, {rows.rows[7][1]}, 'x')", DUPLICATE)
    session("SAVEPOINT s")
    before = copy(rows)
    update(session, "t", rows, "id % 3 = 0", lambda n: n % 3 == 0)
    yield "UPDATE of own rows"
    check(session, "t", rows, "own updates")
    # Fails half way: nothing of it is left.
    session.fails("UPDATE t SET u = IF(id < 5, 1, u + 1000000000), k = 0 ORDER BY id DESC", DUPLICATE)
    check(session, "t", rows, "a statement undone")
    delete(session, "t", rows, "id % 5 = 1", lambda n: n % 5 == 1)
    yield "DELETE of own rows"
    check(session, "t", rows, "own deletions")
    session("ROLLBACK TO s")
    check(session, "t", before, "back at the savepoint")
    delete(session, "t", before, "id % 2 = 0", lambda n: n % 2 == 0)
    check(session, "t", before, "on from the savepoint")
    yield "ROLLBACK TO SAVEPOINT"
    return before


def transactions(server, session, rows, file, engine):
    session.run("DROP TABLE IF EXISTS t, copied", f"CREATE TABLE t ({COLUMNS}) ENGINE={engine}", f"CREATE TABLE copied ({COLUMNS}) ENGINE={engine}")
    yield from within(session, rows, file)
    session("ROLLBACK")
    expect(session.value("SELECT COUNT(*) FROM t") == 0, "ROLLBACK left rows")
    yield "ROLLBACK"
    end = yield from within(session, rows, file)
    session("COMMIT")
    check(session, "t", end, "after COMMIT")
    yield "COMMIT"
    session("TRUNCATE TABLE t")
    load(session, "t", rows, file)
    check(session, "t", rows, "LOAD")
    yield "LOAD"
    session("INSERT INTO copied SELECT * FROM t")
    copied = copy(rows)
    yield "INSERT .. SELECT"
    update(session, "copied", copied, "id % 3 > 0", lambda n: n % 3 > 0)
    yield "UPDATE"
    check(session, "copied", copied, "UPDATE")
    delete(session, "copied", copied, "id % 3 = 1", lambda n: n % 3 == 1)
    yield "DELETE"
    # What was committed survives at once, what was not is gone.
    session("BEGIN")
    session("DELETE FROM t WHERE id % 2 = 0")
    server.kill()
    server.start()
    session.db = None
    session.__init__(server, database="d")
    check(session, "copied", copied, "after kill -9")
    check(session, "t", rows, "after kill -9, an open transaction")
    expect(session("CHECK TABLE t, copied") == tuple((f"d.{t}", "check", "status", "OK") for t in ("t", "copied")), "CHECK TABLE")
    yield "kill -9"


def small_statements(server, session, rows, _, engine):
    session.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({COLUMNS}) ENGINE={engine}", "BEGIN")
    rows.rows = {}
    for n in range(1, rows.count // 2 + 1):
        k, u, text = Rows.new(n)
        session(f"INSERT INTO t VALUES ({n}, {k}, {u}, '{text}{'x' * PAD}')")
        rows.rows[n] = (k, u, text)
        if n % 500 == 0:
            update(session, "t", rows, f"id = {n // 2}", lambda m: m == n // 2)
            delete(session, "t", rows, f"u = {rows.rows[n // 3][1]}", lambda m: m == n // 3)
        if n % 900 == 0:
            session.fails(f"INSERT INTO t VALUES ({n - 800}, 0, {-n}, '')", DUPLICATE)
    check(session, "t", rows, "small statements")
    yield "small statements"
    session("COMMIT")
    check(session, "t", rows, "small statements, committed")
    yield "their COMMIT"


def both(server, session, rows, file, _):
    session.run("DROP TABLE IF EXISTS a, b", f"CREATE TABLE a ({COLUMNS}) ENGINE=LSM", f"CREATE TABLE b ({COLUMNS}) ENGINE=BTREE", "BEGIN")
    load(session, "a", rows, file)
    session("INSERT INTO b SELECT * FROM a")
    other = copy(rows)
    update(session, "b", other, "id % 7 = 0", lambda n: n % 7 == 0)
    check(session, "b", other, "both engines, own")
    session("COMMIT")
    check(session, "a", rows, "both engines")
    check(session, "b", other, "both engines")
    yield "both engines"
    server.kill()
    server.start()
    session.__init__(server, database="d")
    check(session, "a", rows, "both engines after kill -9")
    check(session, "b", other, "both engines after kill -9")
    yield "both engines, kill -9"


def branches(server, session, rows, file, engine):
    session.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t ({COLUMNS}) ENGINE={engine}", "XA START 'x'")
    load(session, "t", rows, file)
    session.run("XA END 'x'", "XA PREPARE 'x'")
    yield "XA PREPARE"
    server.kill()
    server.start()
    session.__init__(server, database="d")
    session("XA COMMIT 'x'")
    check(session, "t", rows, "XA COMMIT")
    yield "XA COMMIT"


def as_text(server, session, rows, file, engine):
    session.run("DROP TABLE IF EXISTS t, copied", f"CREATE TABLE t ({COLUMNS}) ENGINE={engine}", f"CREATE TABLE copied ({COLUMNS}) ENGINE={engine}")
    load(session, "t", rows, file)
    session.run("SET SESSION binlog_format = STATEMENT", "INSERT INTO copied SELECT * FROM t")
    update(session, "copied", rows, "id % 4 = 0", lambda n: n % 4 == 0)
    server.kill()
    server.start()
    session.__init__(server, database="d")
    check(session, "copied", rows, "logged as text, after kill -9")
    yield "logged as text"


def locks_of_all(server, session):
    """Where even the locks do not fit, a transaction locks all that is in its indexes: others wait for it, and nobody else."""
    session("SET GLOBAL global_connection_memory_limit = 2097152")
    one, other = Session(server, database="d"), Session(server, database="d")
    count = one.value("SELECT COUNT(*) FROM t")
    other("SET innodb_lock_wait_timeout = 1")
    one.run("BEGIN", "UPDATE t SET k = k + 1 WHERE id > 1")
    expect(one.cursor.rowcount == count - 1, "rows updated")
    other.fails("UPDATE t SET k = 0 WHERE id = 1", LOCK_WAIT_TIMEOUT)
    other.fails("INSERT INTO t VALUES (-1, 0, -1, '')", LOCK_WAIT_TIMEOUT)
    expect(other.value("SELECT COUNT(*) FROM t WHERE k < 10000000") == count, "readers go on")
    other("UPDATE copied SET k = 7 WHERE id = 1")
    one("COMMIT")
    other.run("UPDATE t SET k = 0 WHERE id = 1", "DELETE FROM t WHERE id = 1")
    one.close()
    other.close()
    print("locks of all ok", flush=True)


def wide_rows(server, session, _rows, _file, engine):
    """Rows of which a batch has no room for many are found through an index as others: none is left out, none comes twice."""
    session.run("DROP TABLE IF EXISTS t", f"CREATE TABLE t (id INT PRIMARY KEY, k INT, v LONGBLOB, KEY (k)) ENGINE={engine}")
    size = lambda n: 100_000 if n % 3 else 10  # noqa: E731
    for first in range(0, 120, 20):
        values = ", ".join(f"({n}, {n * 37 % 120}, REPEAT('x', {size(n)}))" for n in range(first, first + 20))
        session(f"INSERT INTO t VALUES {values}")
    wanted = tuple((k, n, size(n)) for k, n in sorted((n * 37 % 120, n) for n in range(120)))
    for lock in ("", "FOR UPDATE", "FOR SHARE"):
        for order, expected in (("", wanted), ("DESC", wanted[::-1])):
            found = session(f"SELECT k, id, LENGTH(v) FROM t FORCE INDEX (k) WHERE k >= 0 ORDER BY k {order} {lock}")
            expect(found == expected, f"{engine} {order} {lock}: {len(found)} rows")
    yield "wide rows"
    session("BEGIN")
    session("UPDATE t FORCE INDEX (k) SET v = CONCAT(v, 'y') WHERE k BETWEEN 10 AND 110")
    changed = session("SELECT id FROM t FORCE INDEX (k) WHERE k >= 0 AND RIGHT(v, 1) = 'y' ORDER BY k DESC")
    expect(changed == tuple((n,) for k, n, _ in wanted[::-1] if 10 <= k <= 110), f"{engine}: {len(changed)} own rows")
    session("COMMIT")
    session("DELETE FROM t WHERE k < 60")
    expect(session.value("SELECT COUNT(*) FROM t") == 60, "after DELETE")
    yield "wide rows changed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--limit", type=int, default=24)
    parser.add_argument("--ceiling", type=int, default=340)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    with Scratch() as directory:
        tmp = pathlib.Path(directory) / "tmp"
        tmp.mkdir()
        file = pathlib.Path(directory) / "rows"
        rows = Rows(options.megabytes * MIB // (PAD + 40))
        write_file(file, rows)
        server = Omnibus(directory, "--skip-networking", f"--global-connection-memory-limit={options.limit}M", "--tmp-table-size=1M",
                         "--sync-binlog=0", "--lsm-memtable-size=8M", "--lsm-block-cache-size=16M", "--btree-cache-size=16M",
                         "--secure-file-priv=", f"--tmpdir={tmp}")
        server.start()
        session = Session(server)
        session.run("CREATE DATABASE d", "USE d")
        for part in (transactions, small_statements, both, branches, as_text, wide_rows):
            if options.only not in part.__name__:
                continue
            for engine in ("LSM", "BTREE")[:1 if part is both else 2]:
                for what in part(server, session, rows, file, engine):
                    now = resident(server)
                    expect(now < options.ceiling * MIB, f"{engine}, {what}: the server had {now // MIB} MiB")
                    print(f"{engine}: {what} ok, {now // MIB} MiB at most", flush=True)
        expect(not list(tmp.iterdir()), "files are left in tmpdir")
        if options.only in ("", "locks"):
            session.run("DROP TABLE IF EXISTS t, copied", f"CREATE TABLE t ({COLUMNS})", f"CREATE TABLE copied ({COLUMNS})")
            load(session, "t", rows, file)
            session("INSERT INTO copied SELECT * FROM t WHERE id < 10")
            locks_of_all(server, session)
        server.stop()


if __name__ == "__main__":
    main()
