#!/usr/bin/python3
"""Statements that collect more than the server may keep: each answers rightly, from temporary files, or fails cleanly, within a
bound of memory, while another session goes on.

Ring: gate.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, error_code, expect, wait_for

MIB = 1 << 20
LIMIT = 40 * MIB
# What the process may have at most: the limit, engines, log, buffers on their way. Each bomb alone would need more.
CEILING = 250 * MIB
CAPACITY_EXCEEDED, TRANS_CACHE_FULL, RECORD_FILE_FULL = 3170, 1197, 1114

# 16,000 rows of 8 kB, none of them stored.
WIDE = "(SELECT a.id * 1000 + b.id AS id, b.id AS small, CONCAT(a.id, '-', b.id, REPEAT(_binary 'x', 8000)) AS pad FROM n a, n b" \
       " WHERE a.id < 16) w"
EXPECTED = (16_000, sum(8001 + len(str(a)) + len(str(b)) for a in range(16) for b in range(1000)))


def resident(process, name="VmHWM"):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    return 0


class Watch(threading.Thread):
    """Another session, which must be answered all the time; ends a server that takes the machine's memory."""

    def __init__(self, server):
        super().__init__(name="another session")
        self.server, self.over, self.answers = server, threading.Event(), 0
        self.session = Session(server)
        self.session("USE d")

    def run(self):
        while not self.over.wait(0.05):
            now = resident(self.server.process, "VmRSS")
            if now > 2 * CEILING:
                self.server.kill()
                raise SystemExit(f"FAIL: the server has {now // MIB} MiB")
            expect(self.session.value("SELECT small FROM point WHERE id = 7") == 7, "a point select beside the bombs")
            self.answers += 1


SPILLS = {
    "sort": (f"SELECT COUNT(*), SUM(LENGTH(pad)) FROM (SELECT pad FROM {WIDE} ORDER BY small DESC, id LIMIT 99999999) s", EXPECTED),
    "sort, in order": (f"SELECT id FROM (SELECT id, pad FROM {WIDE} ORDER BY small DESC, pad LIMIT 12000, 1) s", (249,)),
    "the best": (f"SELECT COUNT(*), MIN(id) FROM (SELECT id, pad FROM {WIDE} ORDER BY id DESC LIMIT 9999) s", (9999, 6001)),
    "distinct": (f"SELECT COUNT(*), SUM(LENGTH(pad)) FROM (SELECT DISTINCT pad FROM {WIDE}) s", EXPECTED),
    "group": (f"SELECT COUNT(*), SUM(l) FROM (SELECT pad, LENGTH(MAX(pad)) AS l FROM {WIDE} GROUP BY pad) s", EXPECTED),
    "union": (f"SELECT COUNT(*), SUM(LENGTH(pad)) FROM (SELECT pad FROM {WIDE} UNION SELECT pad FROM {WIDE}) s", EXPECTED),
    "except": (f"SELECT COUNT(*) FROM (SELECT pad FROM {WIDE} EXCEPT SELECT pad FROM {WIDE} WHERE small < 10) s", (15_840,)),
    "common table": (f"WITH c AS (SELECT id, pad FROM {WIDE}) SELECT COUNT(*), SUM(LENGTH(p.pad)) FROM c p JOIN c q ON p.id = q.id",
                     EXPECTED),
    "json table": ("SELECT COUNT(*), SUM(LENGTH(p)) FROM JSON_TABLE(CONCAT(REPEAT('[', 80), REPEAT(']', 80)), '$**[0]' COLUMNS (NESTED PATH '$**[0]'"
                   f" COLUMNS (NESTED PATH '$**[0]' COLUMNS (p TEXT PATH '$.x' DEFAULT '\"{'p' * 3000}\"' ON EMPTY)))) j", (79_158, 79_079 * 3000)),
    "count distinct": (f"SELECT COUNT(DISTINCT pad) FROM {WIDE}", (16_000,)),
    "window": (f"SELECT SUM(LENGTH(a)), SUM(b), SUM(c) FROM (SELECT LAG(pad, 0) OVER (ORDER BY id DESC) AS a, "
               f"ROW_NUMBER() OVER (PARTITION BY small % 2 ORDER BY pad, id) AS b, COUNT(*) OVER () AS c FROM {WIDE}) x",
               (EXPECTED[1], 64_008_000, 256_000_000)),
    "the shown part of a group": (f"SELECT LENGTH(GROUP_CONCAT(pad ORDER BY id)) FROM {WIDE}", (1024,)),
}


def spilled(session):
    for name, (sql, expected) in SPILLS.items():
        try:
            rows = session(sql)
        except Exception as error:
            expect(False, f"{name}: {error}")
        expect(rows == (expected,), f"{name}: {str(rows)[:300]}")
        yield name
    counted = dict(session("SHOW STATUS WHERE Variable_name IN ('Created_tmp_disk_tables', 'Sort_merge_passes', 'Created_tmp_files')"))
    expect(all(int(counted[name]) > 1 for name in counted) and len(counted) == 3, f"counters: {counted}")


def refused(session):
    session("SET group_concat_max_len = 4294967295")
    for sql in (f"SELECT JSON_ARRAYAGG(pad) FROM {WIDE}",
                f"SELECT JSON_OBJECTAGG(id, pad) FROM {WIDE}",
                f"SELECT LENGTH(GROUP_CONCAT(pad)) FROM {WIDE}",
                f"SELECT 'y' IN (SELECT pad FROM {WIDE})",
                f"SELECT small % 2, COUNT(DISTINCT pad) FROM {WIDE} GROUP BY small % 2",
                "SELECT " + ", ".join(f"REPEAT('{n % 10}', 16000000)" for n in range(60)),
                f"SELECT LENGTH(CONCAT({', '.join(['REPEAT(pad, 100000000)'] * 3)})) FROM {WIDE}"):
        try:
            rows = session(sql)
            expect(rows[-1] == (None,), f"{sql[:80]}: {str(rows)[:80]}")
        except Exception as error:
            expect(error.args[0] == CAPACITY_EXCEEDED, f"{sql[:80]}: {error}")
        yield sql[:30]
    session("SET group_concat_max_len = DEFAULT")


def variables(session):
    """They are kept until the session ends or they are set to something small."""
    for n in range(40):
        try:
            session(f"SET @v{n} = REPEAT('x', 4000000)")
        except Exception as error:
            expect(error.args[0] == CAPACITY_EXCEEDED and n > 5, f"variable {n}: {error}")
            break
    else:
        expect(False, "160 MB of variables")
    session("SET " + ", ".join(f"@v{m} = 1" for m in range(n)))
    session("SET @v0 = REPEAT('x', 4000000)")
    yield "variables"


def written(session):
    session("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, small INT, pad LONGBLOB)")
    session.fails(f"INSERT INTO t SELECT id, small, pad FROM {WIDE}", RECORD_FILE_FULL)
    expect(session.value("SELECT COUNT(*) FROM t") == 0, "nothing of it is left")
    session("DROP TABLE t")
    yield "a temporary table"
    session("CREATE TABLE big (id INT PRIMARY KEY, small INT, pad LONGBLOB)")
    session(f"INSERT INTO big SELECT id, small, pad FROM {WIDE}")
    expect(session("SELECT COUNT(*), SUM(LENGTH(pad)) FROM big") == (EXPECTED,), "all of it is there")
    yield "a transaction"
    session("SET sql_log_bin = 0")
    # Its writes, or the text that it makes when they have taken all.
    code = error_code(lambda: session("UPDATE big SET pad = CONCAT(pad, 'y')"))
    expect(code in (TRANS_CACHE_FULL, CAPACITY_EXCEEDED), f"error {code}")
    expect(session("SELECT COUNT(*), SUM(LENGTH(pad)) FROM big") == (EXPECTED,), "nothing of it is left")
    session.run("SET sql_log_bin = 1", "TRUNCATE TABLE big")
    yield "a transaction that is not logged"
    for part in range(4):
        session(f"INSERT INTO big SELECT id, small, LEFT(pad, 200) FROM {WIDE} WHERE small % 4 = {part}")
    yield "in parts"
    session("UPDATE big SET small = small + 1")
    yield "an update of all rows"
    session("DELETE FROM big ORDER BY pad DESC")
    expect(session.cursor.rowcount == 16_000, "rows deleted")
    yield "a delete in order"
    session("DROP TABLE big")


def merged(session):
    """A merge of rows that compress well has no more of them in memory than one of rows that do not."""
    disk_bytes = lambda: int(session("SHOW GLOBAL STATUS LIKE 'Lsm_disk_bytes'")[0][1])  # noqa: E731
    session("CREATE TABLE merged (id INT PRIMARY KEY, pad LONGBLOB) ENGINE=LSM")
    # All over the table's range, so that all of it is merged.
    for part in range(8):
        session(f"INSERT INTO merged SELECT id * 8 + {part}, pad FROM {WIDE} WHERE small % 2 = 0")
    # As written it has eight times 64 MB; what is merged is compressed.
    wait_for(lambda: disk_bytes() < 200 * MIB, lambda: f"{disk_bytes()} bytes are not merged")
    expect(session.value("SELECT COUNT(*) FROM merged") == 64_000, "all of it is there")
    yield "a merge"
    session("DROP TABLE merged")


def merged_large(session):
    """Seventy rows of a merge are in memory as their blocks are: large ones are compressed before they reach a block."""
    compactions = lambda: int(session("SHOW GLOBAL STATUS LIKE 'Lsm_compactions'")[0][1])  # noqa: E731
    session("CREATE TABLE large (id INT PRIMARY KEY, pad LONGBLOB) ENGINE=LSM")
    before = compactions()
    # All over the table's range, so that all of it is merged.
    for n in range(120):
        session(f"INSERT INTO large VALUES ({n * 37 % 120}, REPEAT('x', 8000000))")
    wait_for(lambda: compactions() > before, "no merge")
    expect(session("SELECT COUNT(*), SUM(LENGTH(pad)) FROM large") == ((120, 960_000_000),), "all of it is there")
    yield "a merge of large rows"
    session("DROP TABLE large")


def main():
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking", f"--global-connection-memory-limit={LIMIT}", "--sync-binlog=0",
                         "--lsm-memtable-size=8M", "--lsm-block-cache-size=16M")
        server.start()
        session = Session(server)
        session.run("CREATE DATABASE d", "USE d", "CREATE TABLE n (id INT PRIMARY KEY)",
                    "SET cte_max_recursion_depth = 5000", "CREATE TABLE point (id INT PRIMARY KEY, small INT)",
                    "INSERT INTO n WITH RECURSIVE r AS (SELECT 0 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 999) SELECT n FROM r",
                    "INSERT INTO point SELECT id, id FROM n")
        watch = Watch(server)
        watch.start()
        names = sys.argv[1:]
        for part in (spilled, refused, variables, written, merged, merged_large):
            if names and part.__name__ not in names:
                continue
            for what in part(session):
                now = resident(server.process)
                # A merge of 512 MB comes on top of what the statements before have left, and memtables with rows of 8 MB on top of both.
                most = {merged: 400 * MIB, merged_large: 450 * MIB}.get(part, CEILING)
                expect(now < most, f"{what}: the server had {now // MIB} MiB")
            print(f"{part.__name__} ok, {resident(server.process) // MIB} MiB at most", flush=True)
        watch.over.set()
        watch.join()
        expect(watch.answers > 0, "another session went on")
        session.close()
        server.stop()


if __name__ == "__main__":
    main()
