#!/usr/bin/python3
"""Indexes over expressions: found by queries and tools, unique, right after kills, in row events that do not have them, on replicas.

Ring: all.
"""

import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import Session, binary, client, error_code, expect  # noqa: E402
from peers import OmnibusPeer, create_user, expect_equal, replicate, restart, run_chosen, wait_caught_up  # noqa: E402

TABLE = """CREATE TABLE {} (id INT PRIMARY KEY, name VARCHAR(40), a INT, b INT, made DATETIME, doc JSON,
    KEY low ((LOWER(name))), UNIQUE KEY total ((a + b)), KEY ((YEAR(made)) DESC, id), KEY kind ((CAST(doc->>'$.kind' AS CHAR(10))))) ENGINE={}"""


def one(directory, *options):
    server = OmnibusPeer(f"{directory}/one", 1, *options)
    server.start()
    db = Session(server)
    db("CREATE DATABASE test")
    db("USE test")
    return server, db


def definitions(directory):
    """What tools see of them: no column, the expression, a definition that can be run again, dumps too."""
    server, db = one(directory)
    db(TABLE.format("t", "LSM"))
    db("INSERT INTO t VALUES (1, 'Ann', 1, 2, '2024-05-06', '{\"kind\": \"x\"}'), (2, 'BOB', 5, 6, '2025-01-01', NULL)")
    text = db("SHOW CREATE TABLE t")[0][1]
    for part in ("KEY `low` ((lower(`name`)))", "UNIQUE KEY `total` (((`a` + `b`)))", "KEY `functional_index` ((year(`made`)) DESC,`id`)"):
        expect(part in text, f"{part}: {text}")
    expect("hidden" not in text, text)
    expect(len(db("SELECT * FROM t")[0]) == 6 and len(db("SHOW COLUMNS FROM t")) == 6, "columns")
    expect(db.value("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE table_name = 't'") == 6, "COLUMNS")
    shown = db("SELECT column_name, expression FROM information_schema.STATISTICS WHERE table_name = 't' AND index_name = 'low'")
    expect(shown == ((None, "lower(`name`)"),), shown)
    expect("hidden" not in repr(db("SHOW INDEX FROM t")), "SHOW INDEX")
    db("CREATE DATABASE other")
    db(f"CREATE TABLE other.t {text[text.index('('):]}")
    expect(db("SHOW CREATE TABLE other.t")[0][1] == text, "the text makes the same table")
    dump = pathlib.Path(directory, "dump.sql")
    with dump.open("wb") as file:
        subprocess.run(["mariadb-dump", f"--socket={server.socket}", "-uroot", "test", "t"], stdout=file, check=True)
    db("CREATE DATABASE again")
    with dump.open("rb") as file:
        client(server, None, "again", stdin=file)
    expect(db("SHOW CREATE TABLE again.t")[0][1] == text and db("SELECT * FROM again.t") == db("SELECT * FROM t"), "a dump")
    db("CREATE TABLE u LIKE t")
    expect(db("SHOW CREATE TABLE u")[0][1] == text.replace("`t`", "`u`"), "LIKE")
    db.fails("SELECT `!hidden!low!0!0` FROM t", 1054)
    db.fails("INSERT INTO t (id, `!hidden!low!0!0`) VALUES (9, 'x')", 1054)
    for sql, code in {
        "CREATE INDEX x ON t ((name))": 3762, "CREATE INDEX x ON t ((RAND()))": 3758, "CREATE INDEX x ON t ((nobody + 1))": 1054, "CREATE INDEX x ON t ((doc->'$.a'))": 3753,
        "CREATE INDEX x ON t ((doc->>'$.a'))": 3757, "CREATE TABLE x (a INT, PRIMARY KEY ((a + 1)))": 3756, "CREATE INDEX x ON t ((@a + a))": 3758,
        "CREATE TABLE x (a INT AUTO_INCREMENT PRIMARY KEY, KEY ((a + 1)))": 3754, "ALTER TABLE t DROP COLUMN name": 3837, "ALTER TABLE t RENAME COLUMN a TO c": 3837,
        "INSERT INTO t (id, a, b) VALUES (3, 2, 1)": 1062, "CREATE INDEX low ON t ((a * 2))": 1061,
    }.items():
        db.fails(sql, code)


def found(directory):
    """The planner uses them where the expression stands."""
    server, db = one(directory)
    db(TABLE.format("t", "LSM"))
    db("SET cte_max_recursion_depth = 5000")
    db("""INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        SELECT i, CONCAT('Name', i), i, i, '2000-01-01' + INTERVAL i DAY, JSON_OBJECT('kind', i % 100) FROM n""")
    db("ANALYZE TABLE t")
    for key, sql in {
        "low": "SELECT id FROM t WHERE LOWER(name) = 'name77'", "total": "SELECT id FROM t WHERE a + b = 154", "kind": "SELECT id FROM t WHERE CAST(doc->>'$.kind' AS CHAR(10)) = '7'",
        "functional_index": "SELECT id FROM t WHERE YEAR(made) = 2001 LIMIT 1",
    }.items():
        plan = db(f"EXPLAIN {sql}")[0]
        expect(key in plan, f"{sql}: {plan}")
        expect(db(sql) == db(sql.replace("FROM t", f"FROM t IGNORE INDEX ({key})")), sql)
    expect("low" in db("EXPLAIN UPDATE t SET a = a WHERE LOWER(name) = 'name5'")[0], "UPDATE")
    expect("total" in db("EXPLAIN DELETE FROM t WHERE a + b BETWEEN 4 AND 6")[0], "DELETE")
    expect("total" in db("EXPLAIN SELECT id FROM t ORDER BY a + b LIMIT 3")[0], "ORDER BY")
    tree = db.value("EXPLAIN FORMAT=TREE SELECT id FROM t WHERE LOWER(name) = 'name5'")
    expect("using low (lower(`name`)=" in tree and "hidden" not in tree, tree)


def changes(directory):
    """Rows change, the table too, servers are killed, replicas of both formats follow."""
    rng = random.Random(seeds.of_this_run())
    source, db = one(directory, f"--binlog-format={rng.choice(['ROW', 'STATEMENT', 'MIXED'])}", f"--binlog-row-image={rng.choice(['FULL', 'MINIMAL'])}")
    replica = OmnibusPeer(f"{directory}/two", 2)
    replica.start()
    create_user(source)
    for table, engine in (("t", "LSM"), ("u", "BTREE")):
        db(TABLE.format(table, engine))
    replicate(replica, source)

    def change(sql):
        error_code(lambda: db(sql), {1062})

    for step in range(12):
        for table in ("t", "u"):
            for _ in range(12):
                id, n = rng.randrange(60), rng.randrange(1000)
                change(rng.choice([
                    f"INSERT INTO {table} (id, name, a, b, made, doc) VALUES ({id}, 'Name{n}', {n}, {id}, '20{n % 90 + 10}-01-01', JSON_OBJECT('kind', {n % 7}))",
                    f"REPLACE INTO {table} (id, name, a, b) VALUES ({id}, 'R{n}', {n}, 1)", f"UPDATE {table} SET name = 'U{n}', a = a + 1 WHERE id = {id}",
                    f"UPDATE {table} SET id = id + 100 WHERE id = {id}", f"DELETE FROM {table} WHERE id = {id}", f"UPDATE {table} SET b = NULL WHERE id BETWEEN {id} AND {id + 3}",
                ]))
        if step == 4:
            db("ALTER TABLE t ADD COLUMN more INT DEFAULT 5")
            db("ALTER TABLE t RENAME INDEX low TO lower_name, MODIFY name VARCHAR(80)")
            db("ALTER TABLE u DROP INDEX low, DROP COLUMN name, ADD COLUMN name VARCHAR(30) DEFAULT 'Some'")
            db("CREATE INDEX low ON u ((LOWER(name)), b)")
        if step == 6:
            db.run("XA START 'x'", "UPDATE t SET a = a + 100000", "XA END 'x'", "XA PREPARE 'x'")
            restart(source, kill=True)
            db = Session(source, database="test")
            db("XA COMMIT 'x'")
        if step % 3 == 2:
            restart(source, kill=True)
            db = Session(source, database="test")
        for table in ("t", "u"):
            expect(db(f"CHECK TABLE {table}")[0][3] == "OK", table)
            index = "lower_name" if table == "t" and step >= 4 else "low"
            mine = sorted(db(f"SELECT id, LOWER(name) FROM {table} FORCE INDEX ({index}) WHERE LOWER(name) >= ''"))
            expect(mine == sorted(row for row in db(f"SELECT id, LOWER(name) FROM {table} IGNORE INDEX ({index})") if row[1] is not None), f"{table}: {mine}")
    wait_caught_up(replica, source)
    expect_equal(source, replica)
    other = Session(replica, database="test")
    expect([row[3] for row in other("CHECK TABLE t, u")] == ["OK", "OK"], "the replica's tables")
    db("CREATE TABLE plain (id INT PRIMARY KEY, v VARCHAR(9), KEY ((UPPER(v))))")
    db("SET SESSION binlog_format = ROW")
    db("FLUSH BINARY LOGS")
    db("INSERT INTO plain VALUES (1, 'x')")
    said = subprocess.run([binary(), "binlog", "-v", source.binlogs()[-1]], capture_output=True, text=True, check=True).stdout
    expect("@2='x'" in said and "@3" not in said, said)


if __name__ == "__main__":
    run_chosen("functional_indexes", [definitions, found, changes])
