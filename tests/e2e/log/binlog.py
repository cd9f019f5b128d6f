#!/usr/bin/python3
"""The log as other tools see it: every row image, metadata and checksum setting, replayed into MariaDB; our own reader.

Ring: gate.
"""

import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, binary, client, connect, expect, replay  # noqa: E402

SETTINGS = [(image, metadata, checksum) for image in ("FULL", "MINIMAL", "NOBLOB")
            for metadata, checksum in (("MINIMAL", "CRC32"), ("FULL", "NONE"))]


def changes(server, name):
    """Every kind of change on a table with a primary key, one with only a unique key, and one with none."""
    sql = f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE {name};"
    for table, key in (("p", "PRIMARY KEY (a)"), ("u", "UNIQUE KEY (a)"), ("n", "KEY (a)")):
        sql += f"""
            CREATE TABLE {table} (a INT NOT NULL, b VARCHAR(40), c BLOB, d DECIMAL(10,3), e ENUM('x','y'), {key});
            INSERT INTO {table} VALUES (1,'one',0x0001,1.5,'x'),(2,'two',NULL,NULL,'y'),(3,NULL,'ccc',3,NULL);
            UPDATE {table} SET b = CONCAT(b, '!') WHERE a < 3;
            UPDATE {table} SET c = 'changed', a = a + 100 WHERE a = 3;
            UPDATE {table} SET d = d + 1 WHERE a >= 1 ORDER BY a LIMIT 2;
            DELETE FROM {table} WHERE a = 2;
            REPLACE INTO {table} VALUES (1,'uno','z',9,'y');"""
    sql += """
        BEGIN; INSERT INTO p VALUES (50,'fifty',NULL,0,'x'); SAVEPOINT s; DELETE FROM p; ROLLBACK TO s; COMMIT;
        BEGIN; DELETE FROM u; ROLLBACK;
        CREATE TABLE gone (a INT); DROP TABLE gone; CREATE TABLE t2 LIKE p; INSERT INTO t2 SELECT * FROM p;
        TRUNCATE TABLE t2; CREATE INDEX by_b ON p (b); ALTER TABLE p DROP INDEX by_b;"""
    client(server, sql)


def contents(server, name):
    tables = client(server, f"SHOW TABLES FROM {name}").split()
    return {table: client(server, f"SELECT * FROM {name}.{table} ORDER BY a, b") for table in tables}


def every_setting_replays(directory):
    server, peer = Omnibus(directory), MariaDB(directory, "--skip-log-bin")
    server.start()
    peer.start()
    try:
        for n, (image, metadata, checksum) in enumerate(SETTINGS):
            client(server, f"SET GLOBAL binlog_row_image = {image}; SET GLOBAL binlog_row_metadata = {metadata};"
                           f"SET GLOBAL binlog_checksum = {checksum}; SET GLOBAL binlog_rows_query_log_events = {n % 2}")
            client(server, "FLUSH BINARY LOGS")
            changes(server, f"d{n}")
        server.stop()
        for path in server.binlogs():
            read = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", "-vv", path],
                                  capture_output=True, text=True, errors="replace")
            expect(read.returncode == 0 and "ERROR" not in read.stderr, f"{path}: {read.stderr}")
        replay(server, peer)
        server.start()
        for n, setting in enumerate(SETTINGS):
            ours, theirs = contents(server, f"d{n}"), contents(peer, f"d{n}")
            expect(ours == theirs and len(ours) == 4, f"{setting}: {ours} here, {theirs} after the replay")
        # After a crash the server itself replays what MINIMAL images left out.
        server.kill()
        server.start()
        for n, setting in enumerate(SETTINGS):
            expect(contents(server, f"d{n}") == contents(peer, f"d{n}"), f"{setting} after a crash")
    finally:
        server.stop()
        peer.stop()


def our_reader(directory):
    server = Omnibus(directory)
    server.start()
    try:
        changes(server, "d")
        live = server.binlogs()[-1]
        run = subprocess.run([binary(), "binlog", live], capture_output=True, text=True)
        expect(run.returncode == 0, f"omnibus binlog on the active file: {run.stderr}")
        server.stop()
        files = server.binlogs()
        text = subprocess.run([binary(), "binlog", "-v", *files], capture_output=True, text=True)
        expect(text.returncode == 0 and "one" in text.stdout, f"omnibus binlog -v: {text.stdout[-500:]}{text.stderr}")
        lines = subprocess.run([binary(), "binlog", "--json", *files], capture_output=True, text=True)
        changes_seen = [json.loads(line) for line in lines.stdout.splitlines()]
        expect(lines.returncode == 0 and len(changes_seen) > 50, "omnibus binlog --json: one object a line")
        one = next(c for c in changes_seen if c["type"] == "rows" and c["table"] == "p" and c["kind"] == "insert")
        expect(one["rows"][0]["after"] == {"@1": 1, "@2": "one", "@3": {"base64": "AAE="}, "@4": "1.500", "@5": 1},
               f"a row as JSON: {one['rows'][0]}")
        data = bytearray(pathlib.Path(files[0]).read_bytes())
        data[len(data) // 2] ^= 0x55
        damaged = pathlib.Path(directory) / "damaged.000001"
        damaged.write_bytes(data)
        run = subprocess.run([binary(), "binlog", str(damaged)], capture_output=True, text=True)
        expect(run.returncode == 1 and "panicked" not in run.stderr, f"damage ends with 1: {run.stderr}")
        expect(any(c.isdigit() for c in run.stderr) and len(run.stdout.splitlines()) > 3, f"good events, then the offset: {run.stderr}")
    finally:
        server.stop()


def file_in_use(directory):
    """Standard tools print every event of the file in use, and read it to an end in the ways that docs/use/log-files.md names."""
    server = Omnibus(directory)
    server.start()
    client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20)); INSERT INTO d.t VALUES (1, 'the last')")
    path = client(server, "SHOW MASTER STATUS").split("\t")[0]

    def read(*words):
        run = subprocess.run(["mariadb-binlog", "--no-defaults", "-v", *words], capture_output=True, text=True)
        expect("the last" in run.stdout, f"{words}: {run.stdout[-500:]}{run.stderr}")
        return run.returncode, run.stderr

    read(str(server.datadir / path))
    run = subprocess.run([binary(), "binlog", "-v", str(server.datadir / path)], capture_output=True, text=True)
    expect(run.returncode == 0 and not run.stderr and "the last" in run.stdout, f"omnibus binlog: {run.stderr}")
    client(server, "FLUSH BINARY LOGS")
    expect(read(str(server.datadir / path)) == (0, ""), "a file that is full")
    server.stop()


def databases_that_come_again(directory):
    """`--sql` names the default database again after it was dropped and made anew: whoever replays it has none then."""
    server = Omnibus(directory, "--binlog-format=STATEMENT")
    again = pathlib.Path(directory) / "again"
    again.mkdir()
    other = Omnibus(again)
    server.start()
    other.start()
    client(server, "CREATE DATABASE d; USE d; CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (1); DROP DATABASE d; CREATE DATABASE d; USE d; "
                   "CREATE TABLE t (id INT PRIMARY KEY); INSERT INTO t VALUES (2); CREATE DATABASE e; DROP DATABASE e; INSERT INTO t VALUES (3)")
    client(server, "FLUSH BINARY LOGS")
    text = subprocess.run([binary(), "binlog", "--sql", "--skip-gtids", server.binlogs()[0]], capture_output=True, text=True)
    expect(text.returncode == 0, text.stderr)
    replayed = subprocess.run(["mariadb", "--no-defaults", f"--socket={other.socket}", "-uroot"], input=text.stdout, capture_output=True, text=True)
    expect(replayed.returncode == 0, replayed.stderr)
    expect(client(other, "SELECT * FROM d.t") == "2\n3\n", "rows after the replay")
    server.stop()
    other.stop()


def limits(directory):
    server = Omnibus(directory, "--binlog-cache-size=4096", "--max-binlog-cache-size=1M", "--max-binlog-size=1M")
    server.start()
    try:
        db = connect(server, autocommit=False)
        with db.cursor() as cursor:
            cursor.execute("CREATE DATABASE m")
            cursor.execute("CREATE TABLE m.t (id INT PRIMARY KEY, v VARCHAR(5000))")
            code = 0
            for n in range(1000):
                try:
                    cursor.execute("INSERT INTO m.t VALUES (%s, REPEAT('x', 5000))", (n,))
                except Exception as error:  # the code is what is tested
                    code = error.args[0]
                    break
            expect(code == 1197, f"past max_binlog_cache_size: {code}")
            db.rollback()
            for n in range(400):
                cursor.execute("INSERT INTO m.t VALUES (%s, REPEAT('x', 5000))", (n,))
                db.commit()
            cursor.execute("SELECT COUNT(*) FROM m.t")
            expect(cursor.fetchone() == (400,), "everything after the failure is there, nothing of it")
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Binlog_cache_disk_use'")
            expect(int(cursor.fetchone()[1]) > 0, "the cache spilled")
            cursor.execute("SHOW BINARY LOGS")
            logs = cursor.fetchall()
            expect(len(logs) >= 3, f"rotated at max_binlog_size: {logs}")
            # A full file is followed by the next one after its last commit was acknowledged; an empty one is not.
            cursor.execute("FLUSH BINARY LOGS")
            cursor.execute("SHOW BINARY LOGS")
            logs = cursor.fetchall()
            cursor.execute("SHOW MASTER STATUS")
            expect(cursor.fetchone()[0] == logs[-1][0], "the last file is the active one")
    finally:
        server.stop()


def main():
    tests = [every_setting_replays, our_reader, file_in_use, databases_that_come_again, limits]
    for test in tests:
        with Scratch("omnibus-binlog-") as directory:
            test(directory)
        print(f"binlog: {test.__name__} ok", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
