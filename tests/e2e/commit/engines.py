#!/usr/bin/env python3
"""Two storage engines in one server: the same statements on both, transactions that span them, and both after kill -9.

The two engines share one log and one commit order, so what is checked throughout is that no snapshot, no crash and no
restart ever shows a transaction in one of them and not in the other.

Ring: gate.
"""

import pathlib
import random
import shutil
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import Omnibus, Scratch, client, connect, error_code, expect, wait_for  # noqa: E402

ENGINES = ("InnoDB", "BTREE")
ACCOUNTS = 20
EACH = 1000


def rows(server, sql):
    return [line.split("\t") for line in client(server, sql).splitlines()]


def same_statements(server):
    """One script on a table of each engine gives the same answers."""
    answers = []
    for engine in ENGINES:
        t = f"test.same_{engine.lower()}"
        connection = connect(server, autocommit=True)
        cursor = connection.cursor()
        seen = []

        def run(sql, *args):
            cursor.execute(sql, args or None)
            seen.append(cursor.fetchall())

        run(f"CREATE TABLE {t} (id INT AUTO_INCREMENT PRIMARY KEY, k INT, u VARCHAR(20) UNIQUE, v TEXT, KEY (k)) ENGINE={engine}")
        for n in range(300):
            run(f"INSERT INTO {t} (k, u, v) VALUES (%s, %s, %s)", n % 17, f"u{n}", "x" * (n % 50))
        run(f"UPDATE {t} SET k = k + 100, v = CONCAT(v, 'y') WHERE id BETWEEN 50 AND 120")
        run(f"DELETE FROM {t} WHERE k = 3 OR id > 290")
        for attempt in (f"INSERT INTO {t} (u) VALUES ('u7')", f"UPDATE {t} SET u = 'u8' WHERE u = 'u9'"):
            seen.append(error_code(lambda: cursor.execute(attempt)))
        run(f"SELECT id, k, u, LENGTH(v) FROM {t} ORDER BY id")
        run(f"SELECT id FROM {t} WHERE k BETWEEN 4 AND 7 ORDER BY k, id")
        run(f"SELECT id, k FROM {t} WHERE k > 100 ORDER BY k DESC, id DESC LIMIT 20")
        run(f"SELECT k, COUNT(*), MAX(id) FROM {t} GROUP BY k ORDER BY k")
        run(f"SELECT * FROM {t} WHERE u = 'u77'")
        run(f"ALTER TABLE {t} ADD INDEX both_of (k, u)")
        run(f"SELECT u FROM {t} FORCE INDEX (both_of) WHERE k = 5 AND u > 'u1' ORDER BY u")
        run(f"ALTER TABLE {t} ADD COLUMN extra INT NOT NULL DEFAULT 7")
        run(f"SELECT SUM(extra), COUNT(*) FROM {t}")
        run("BEGIN")
        run(f"DELETE FROM {t}")
        run(f"SELECT COUNT(*) FROM {t}")
        run("ROLLBACK")
        run(f"SELECT COUNT(*), SUM(id) FROM {t}")
        run(f"TRUNCATE TABLE {t}")
        run(f"INSERT INTO {t} (k) VALUES (1)")
        run(f"SELECT id, k FROM {t}")
        answers.append(seen)
        connection.close()
    for number, (one, other) in enumerate(zip(*answers)):
        expect(one == other, f"statement {number} of the script: InnoDB says {one}, BTREE says {other}")


def what_is_shown(server):
    names = rows(server, "SHOW ENGINES")
    expect([(row[0], row[1]) for row in names] == [("InnoDB", "DEFAULT"), ("BTREE", "YES")], f"SHOW ENGINES: {names}")
    client(server, "CREATE TABLE test.b (id INT PRIMARY KEY) ENGINE=btree")
    expect("ENGINE=BTREE" in client(server, "SHOW CREATE TABLE test.b"), "SHOW CREATE TABLE does not name the engine")
    expect(rows(server, "SHOW TABLE STATUS FROM test LIKE 'b'")[0][1] == "BTREE", "SHOW TABLE STATUS")
    client(server, "CREATE TABLE test.like_b LIKE test.b")
    engine = "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = "
    expect(client(server, engine + "'like_b'") == "BTREE\n", "CREATE TABLE LIKE did not keep the engine")
    connection = connect(server)
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE test.inno (id INT PRIMARY KEY) ENGINE=MyISAM")
    cursor.execute("SHOW WARNINGS")
    expect(cursor.fetchall()[0][1] == 1266, "ENGINE=MyISAM without a note")
    expect(error_code(lambda: cursor.execute("CREATE TABLE test.no (id INT) ENGINE=nothing")) == 1286, "unknown engine")
    expect(error_code(lambda: cursor.execute("SET default_storage_engine = nothing")) == 1286, "unknown default")
    cursor.execute("SET default_storage_engine = BTREE")
    cursor.execute("CREATE TABLE test.by_default (id INT PRIMARY KEY)")
    expect(client(server, engine + "'by_default'") == "BTREE\n", "default_storage_engine was not used")
    expect(client(server, engine + "'inno'") == "InnoDB\n", "MyISAM is not the default engine")
    # What dumps and logs say means the same engine whatever the default is; older versions wrote LSM.
    for number, (text, kept) in enumerate((("ENGINE=InnoDB", "InnoDB"), ("/*!999999 ENGINE=LSM */", "InnoDB"), ("ENGINE=omnibus", "InnoDB"),
                                           ("/*!999999 ENGINE=BTREE */", "BTREE"), ("ENGINE=MEMORY", "BTREE"))):
        cursor.execute(f"CREATE TABLE test.said (id INT PRIMARY KEY) {text}")
        cursor.execute("SHOW CREATE TABLE test.said")
        made = cursor.fetchone()[1].replace("`said`", f"test.again_{number}")
        cursor.execute(made)
        expect(client(server, f"{engine}'said'") == f"{kept}\n" == client(server, f"{engine}'again_{number}'"), f"{text} made {made}")
        expect((") ENGINE=InnoDB DEFAULT" if kept == "InnoDB" else ") /*!999999 ENGINE=BTREE */ DEFAULT") in made, made)
        cursor.execute("DROP TABLE test.said")
    for name, known in (("lsm", "InnoDB"), ("MyISAM", "InnoDB"), ("innodb", "InnoDB"), ("btree", "BTREE")):
        cursor.execute(f"SET default_storage_engine = {name}")
        cursor.execute("SELECT @@default_storage_engine")
        expect(cursor.fetchone() == (known,), f"default_storage_engine={name}")
    cursor.execute("SELECT ENGINE FROM information_schema.ENGINES WHERE SUPPORT = 'DEFAULT'")
    expect(cursor.fetchall() == (("BTREE",),), "information_schema.ENGINES does not follow the session's default")
    connection.close()


def changing_engine(server):
    client(server, """CREATE TABLE test.moved (id INT PRIMARY KEY, v VARCHAR(20), KEY (v)) ENGINE=InnoDB;
        INSERT INTO test.moved VALUES (1, 'a'), (2, 'b'), (3, 'c')""")
    for engine in ("BTREE", "InnoDB", "BTREE"):
        client(server, f"ALTER TABLE test.moved ENGINE={engine}; INSERT INTO test.moved SELECT MAX(id) + 1, 'n' FROM test.moved")
        expect(f"ENGINE={engine}" in client(server, "SHOW CREATE TABLE test.moved"), f"ALTER TABLE to {engine}")
        expect(len(rows(server, "SELECT * FROM test.moved FORCE INDEX (v) WHERE v = 'n'")) > 0, "its index is empty")
    found = client(server, "SELECT GROUP_CONCAT(id ORDER BY id) FROM test.moved")
    expect(found == "1,2,3,4,5,6\n", f"rows after three changes of engine: {found}")


def spanning(server):
    """A transaction in both engines is rolled back in both, to a savepoint and as a whole."""
    client(server, """CREATE TABLE test.one (id INT PRIMARY KEY, v INT) ENGINE=InnoDB;
        CREATE TABLE test.two (id INT PRIMARY KEY, v INT) ENGINE=BTREE;
        BEGIN; INSERT INTO test.one VALUES (1, 1); INSERT INTO test.two VALUES (1, 1); SAVEPOINT s;
        INSERT INTO test.one VALUES (2, 2); INSERT INTO test.two VALUES (2, 2); ROLLBACK TO s; COMMIT;
        BEGIN; UPDATE test.one SET v = 9; UPDATE test.two SET v = 9; ROLLBACK""")
    both = client(server, "SELECT * FROM test.one JOIN test.two USING (id)")
    expect(both == "1\t1\t1\n", f"a transaction in both engines: {both}")


def transfers(server, seconds, seed):
    """Money moves between the engines under load; every consistent snapshot has all of it."""
    values = ",".join(f"({n}, {EACH})" for n in range(ACCOUNTS))
    for engine in ENGINES:
        client(server, f"""CREATE TABLE IF NOT EXISTS test.money_{engine} (id INT PRIMARY KEY, amount INT) ENGINE={engine};
            INSERT IGNORE INTO test.money_{engine} VALUES {values}""")
    stop, problems, counts = threading.Event(), [], {"moves": 0, "looks": 0}

    def move(number):
        rng = random.Random(seed + number)
        try:
            connection = connect(server)
            cursor = connection.cursor()
            while not stop.is_set():
                giver, taker = rng.sample(ENGINES, 2)
                amount, one, two = rng.randrange(1, 9), rng.randrange(ACCOUNTS), rng.randrange(ACCOUNTS)

                def give():
                    cursor.execute(f"UPDATE test.money_{giver} SET amount = amount - %s WHERE id = %s", (amount, one))
                    cursor.execute(f"UPDATE test.money_{taker} SET amount = amount + %s WHERE id = %s", (amount, two))
                    connection.commit()

                if error_code(give, but=(1213, 1205)):
                    connection.rollback()
                else:
                    counts["moves"] += 1
        except Exception as error:  # the server may be killed under it
            problems.append(error) if not stop.is_set() else None

    def look(number):
        rng = random.Random(seed + number)
        try:
            connection = connect(server)
            while not stop.is_set():
                compare(connection, rng)
        except Exception as error:
            problems.append(error) if not stop.is_set() else None

    def compare(connection, rng):
        with connection.cursor() as cursor:
            cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            sums = []
            for engine in rng.sample(ENGINES, 2):
                cursor.execute(f"SELECT SUM(amount) FROM test.money_{engine}")
                sums.append(cursor.fetchone()[0])
            connection.commit()
        if sum(sums) != 2 * ACCOUNTS * EACH:
            problems.append(f"a snapshot saw {sums}")
        counts["looks"] += 1

    threads = [threading.Thread(target=move, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=look, args=(n,)) for n in range(4, 6)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    wait_for(lambda: problems or counts["moves"] > 20 and counts["looks"] > 5, lambda: f"too little happens: {counts}")
    return stop, threads, problems, counts


def finish(stop, threads, problems, counts):
    stop.set()
    for thread in threads:
        thread.join()
    expect(not problems, f"{problems[:3]}")


def total(server):
    sums = [int(client(server, f"SELECT SUM(amount) FROM test.money_{engine}")) for engine in ENGINES]
    expect(sum(sums) == 2 * ACCOUNTS * EACH, f"the sums are {sums}")


def definitions_and_crash(server, round_number):
    """Tables of both engines come and go, with rows, right before a crash; replay needs each definition as of then."""
    n = round_number
    client(server, f"""CREATE TABLE test.gone_{n} (id INT PRIMARY KEY, v INT) ENGINE=BTREE;
        INSERT INTO test.gone_{n} VALUES (1, 1), (2, 2);
        CREATE TABLE test.kept_{n} (id INT PRIMARY KEY, v INT) ENGINE=BTREE;
        INSERT INTO test.kept_{n} VALUES (1, 1), (2, 2);
        ALTER TABLE test.kept_{n} ADD COLUMN w INT DEFAULT 5, ADD INDEX (v);
        SET binlog_row_image = MINIMAL;
        UPDATE test.kept_{n} SET v = 10 WHERE id = 1;
        DELETE FROM test.kept_{n} WHERE id = 2;
        DROP TABLE test.gone_{n};
        CREATE TABLE test.hidden_{n} (v INT) ENGINE=BTREE;
        INSERT INTO test.hidden_{n} VALUES (1), (2), (3);
        DELETE FROM test.hidden_{n} WHERE v = 2""")


def definitions_survived(server, round_number):
    n = round_number
    kept = client(server, f"SELECT * FROM test.kept_{n}; SELECT id FROM test.kept_{n} FORCE INDEX (v) WHERE v = 10")
    expect(kept == "1\t10\t5\n1\n", f"round {n}: {kept}")
    hidden = client(server, f"SELECT v FROM test.hidden_{n} ORDER BY v")
    expect(hidden == "1\n3\n", f"round {n}: {hidden}")
    expect(client(server, f"SHOW TABLES FROM test LIKE 'gone_{n}'") == "", f"round {n}: a dropped table is back")


def main():
    seed = seeds.of_this_run()
    with Scratch("omnibus-engines-") as directory:
        # A small memtable: the engines persist at different times, so recovery finds them at different numbers.
        server = Omnibus(directory, "--lsm-memtable-size=1M", "--max-binlog-size=4M")
        server.start()
        try:
            client(server, "CREATE DATABASE IF NOT EXISTS test")
            what_is_shown(server)
            same_statements(server)
            changing_engine(server)
            spanning(server)
            finish(*transfers(server, 2, seed))
            for number in range(3):
                state = transfers(server, 1, seed)
                definitions_and_crash(server, number)
                state[0].set()
                server.kill()
                finish(*state)
                server.start()
                total(server)
                for earlier in range(number + 1):
                    definitions_survived(server, earlier)
                if number == 1:
                    # The default engine goes far ahead of the idle other one.
                    client(server, "CREATE TABLE IF NOT EXISTS test.pad (id INT AUTO_INCREMENT PRIMARY KEY, v TEXT) ENGINE=InnoDB")
                    connection = connect(server, autocommit=True)
                    for _ in range(60):
                        connection.cursor().execute("INSERT INTO test.pad (v) VALUES (REPEAT('x', 60000))")
                    connection.close()
            before = client(server, "SELECT * FROM test.moved ORDER BY id; SELECT * FROM test.one; SELECT * FROM test.two")
            server.stop()
            server.start()
            after = client(server, "SELECT * FROM test.moved ORDER BY id; SELECT * FROM test.one; SELECT * FROM test.two")
            expect(before == after, "an orderly restart changed something")
            total(server)
            server.stop()
            server.options.append("--default-storage-engine=BTREE")
            server.start()
            client(server, "CREATE TABLE test.by_option (id INT PRIMARY KEY)")
            expect("ENGINE=BTREE" in client(server, "SHOW CREATE TABLE test.by_option"), "--default-storage-engine")
            server.stop()
            # A lost engine is not an empty one.
            (server.datadir / "btree").rename(server.datadir / "elsewhere")
            try:
                server.start()
                expect(False, "the server started without the files of an engine that has tables")
            except RuntimeError as error:
                expect("files are missing" in str(error), f"an unclear refusal: {error}")
            shutil.rmtree(server.datadir / "btree", ignore_errors=True)
            (server.datadir / "elsewhere").rename(server.datadir / "btree")
            server.start()
            total(server)
        finally:
            server.kill()
    print("engines: ok")


if __name__ == "__main__":
    main()
