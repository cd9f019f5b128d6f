#!/usr/bin/python3
"""Isolation levels and table locks: scripts of several sessions answer, wait and fail as MariaDB's do, in both engines.

What a transaction has written hides every other version of those rows from it, and no other rows (SNAP-2). The lock of a row that does
not match any more goes only if nothing else stands on it (LOCK-4).

And reads without locks beside definitions never fail for their snapshot's sake.

The scripts are in testdata/isolation; `isolation.py NAME...` runs those whose name contains one of the words.

Ring: gate.
"""

import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from pymysql.constants import CLIENT  # noqa: E402
from omnibus import ROOT, Omnibus, Scratch, connect, error_code, expect, wait_for  # noqa: E402
from peers import MariaPeer  # noqa: E402
from sessions import Script, compare, parse  # noqa: E402


DEFINITIONS = ["ALTER TABLE t ADD INDEX (n)", "ALTER TABLE t DROP INDEX n", "TRUNCATE TABLE t", "INSERT INTO t VALUES (1, 1)",
               "ALTER TABLE t ADD COLUMN c INT", "ALTER TABLE t DROP COLUMN c", "CREATE TABLE o (id INT)", "DROP TABLE o",
               "RENAME TABLE t TO moved", "RENAME TABLE moved TO t"]
READS = ["SELECT * FROM t", "SELECT n FROM t WHERE id = 1", "SELECT 1 UNION ALL SELECT id FROM t", "SELECT * FROM o",
         "SELECT COUNT(*) FROM t a, t b", "BEGIN", "SELECT * FROM t", "COMMIT"]


def beside_definitions(server, rounds=12):
    """What is defined is seen by the next statement of anybody, whether it is published yet or not."""
    db = connect(server, autocommit=True)
    run = lambda db, sql: db.cursor().execute(sql)  # noqa: E731
    for sql in ["DROP DATABASE IF EXISTS isolation", "CREATE DATABASE isolation", "USE isolation",
                "CREATE TABLE t (id INT PRIMARY KEY, n INT)"]:
        run(db, sql)
    done, answers = threading.Event(), []

    def read(level):
        reader = connect(server, database="isolation", autocommit=True)
        run(reader, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        while not done.is_set():
            for sql in READS:
                answers.append((sql, error_code(lambda: run(reader, sql))))

    readers = [threading.Thread(target=read, args=(level,)) for level in ("READ COMMITTED", "REPEATABLE READ")]
    for reader in readers:
        reader.start()
    try:
        for _ in range(rounds):
            for sql in DEFINITIONS:
                run(db, sql)
    finally:
        done.set()
    for reader in readers:
        reader.join()
    wrong = {answer for answer in answers if answer[1] not in (0, 1146)}
    expect(not wrong, f"{len(answers)} reads beside definitions, wrong among them: {wrong}")
    expect(any(not code for _, code in answers), "no read found a table")
    print(f"isolation: {len(answers)} reads beside {rounds * len(DEFINITIONS)} definitions: ok", flush=True)


class Inserter(threading.Thread):
    """Inserts rows into t, whatever table that is, until it is told to stop."""

    def __init__(self, server, nth):
        super().__init__()
        self.db, self.nth, self.stopped, self.done = connect(server, database="isolation", autocommit=True), nth, False, []
        self.start()

    def run(self):
        while not self.stopped:
            row = len(self.done) * 100 + self.nth
            self.db.cursor().execute(f"INSERT INTO t (id) VALUES ({row})")
            self.done.append(row)


def cut_over(server, rounds=8):
    """The cut-over of gh-ost and Vitess: under LOCK TABLES, with a waiting RENAME, the lock's holder drops the sentry and
    unlocks. The RENAME goes first then, and not one insert gets into the old table."""
    holder, renamer = (connect(server, autocommit=True, client_flag=CLIENT.MULTI_STATEMENTS) for _ in range(2))

    def ask(sql, db=holder):
        with db.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    for sql in ["DROP DATABASE IF EXISTS isolation", "CREATE DATABASE isolation", "USE isolation"]:
        ask(sql)
    ask("USE isolation", renamer)
    ask("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    inserters, old = [Inserter(server, nth) for nth in range(6)], []
    for nth in range(rounds):
        ask("CREATE TABLE s (id INT)")
        ask("CREATE TABLE g (id BIGINT PRIMARY KEY, ghost INT)")
        before = sum(len(inserter.done) for inserter in inserters)
        wait_for(lambda: sum(len(inserter.done) for inserter in inserters) > before + 20, "rows are inserted")
        ask(["LOCK TABLES t WRITE, s WRITE", "LOCK TABLES s WRITE, t WRITE"][nth % 2])
        rename = threading.Thread(target=ask, args=("RENAME TABLE t TO s, g TO t", renamer))
        rename.start()
        watcher = Script(server, "isolation")
        wait_for(lambda: watcher.waits_of(renamer), "the RENAME waits")
        watcher.admin.close()
        rows = ask("SELECT COUNT(*) FROM t")
        ask("DROP TABLE s; UNLOCK TABLES")
        rename.join()
        expect(ask("SELECT COUNT(*) FROM s") == rows, f"{rows} rows under the lock, in the old table {ask('SELECT COUNT(*) FROM s')}")
        old += [row[0] for row in ask("SELECT id FROM s")]
        ask("DROP TABLE s")
    for inserter in inserters:
        inserter.stopped = True
        inserter.join()
    found = sorted(old + [row[0] for row in ask("SELECT id FROM t")])
    expect(found == sorted(row for inserter in inserters for row in inserter.done), "rows that were acknowledged are there, once")
    print(f"isolation: {rounds} cut-overs under {len(found)} inserts: ok", flush=True)


def main():
    words = sys.argv[1:]
    with Scratch("omnibus-isolation-") as directory:
        ours, theirs = Omnibus(directory), MariaPeer(pathlib.Path(directory) / "maria", 2)
        (pathlib.Path(directory) / "late").mkdir()
        # Here a lock's next owner finds all in its snapshot, whatever else the server does.
        late = Omnibus(pathlib.Path(directory) / "late", "--release-locks-early=0")
        ours.start()
        late.start()
        theirs.start()
        failed, count = [], 0
        for path in sorted((ROOT / "testdata/isolation").glob("*.txt")):
            for name, script in parse(path.read_text()).items():
                if words and not any(word in f"{path.stem} {name}" for word in words):
                    continue
                scripts = [Script(ours, "isolation", engine) for engine in ("LSM", "BTREE")]
                if path.stem == "read_committed":
                    scripts.append(Script(late, "isolation", "LSM"))
                differences = compare(script, scripts, Script(theirs, "isolation"))
                print(f"isolation: {path.stem}: {name}: {'differs' if differences else 'ok'}", flush=True)
                failed += [f"{path.stem}: {name}: {difference}" for difference in differences]
                count += 1
        for test in (beside_definitions, cut_over):
            if not words or test.__name__ in words:
                test(ours)
        ours.stop()
        late.stop()
        theirs.stop()
        expect(not failed, f"{len(failed)} answers differ\n" + "\n".join(failed))
        print(f"{count} scripts passed, 0 failed")


if __name__ == "__main__":
    main()
