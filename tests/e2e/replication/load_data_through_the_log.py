#!/usr/bin/python3
"""LOAD DATA and temporary tables through replication, in all three formats: from MariaDB to ours, and from ours to both.

Two sessions of the source use temporary tables of the same name at once, one of them hides a stored table, and a
replica is killed while they exist.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Scratch, connect, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, log_position, query, replicate, restart, wait_caught_up  # noqa: E402

FORMATS = ("ROW", "STATEMENT", "MIXED")


def files(folder):
    (folder / "a.txt").write_bytes(b"".join(b"%d\trow %d %s\n" % (n, n, b"z" * 200) for n in range(1500)))
    (folder / "b.csv").write_bytes('"x""y",5\r\n"ä,ö",NULL\r\n'.encode())
    (folder / "again.txt").write_bytes(b"".join(b"%d\tagain\n" % n for n in range(1490, 1510)))


def load(source, form, folder):
    db = f"load_{form}"
    query(source, f"CREATE DATABASE {db}")
    query(source, "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(300)) ENGINE=InnoDB", database=db)
    query(source, "CREATE TABLE c (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(20), n INT) ENGINE=InnoDB", database=db)
    session = connect(source, database=db, local_infile=1, autocommit=True, charset="utf8mb4")
    cursor = session.cursor()
    cursor.execute(f"SET SESSION binlog_format = {form}, @plus = 7")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{folder}/a.txt' INTO TABLE t")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{folder}/again.txt' INTO TABLE {db}.t")
    cursor.execute("BEGIN")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{folder}/again.txt' REPLACE INTO TABLE t (id, @s) SET s = CONCAT(@s, '!', @plus)")
    cursor.execute("DELETE FROM t WHERE id < 10")
    cursor.execute("COMMIT")
    cursor.execute(f"LOAD DATA LOCAL INFILE '{folder}/b.csv' INTO TABLE c FIELDS TERMINATED BY ',' ENCLOSED BY '\"'"
                   " LINES TERMINATED BY '\\r\\n' (s, n)")


def temporary(source, form, between):
    """Two sessions in turns; `between` happens while their tables exist."""
    db = f"tmp_{form}"
    query(source, f"CREATE DATABASE {db}")
    query(source, "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(30)) ENGINE=InnoDB", database=db)
    query(source, "CREATE TABLE hidden (id INT PRIMARY KEY, s VARCHAR(30)) ENGINE=InnoDB", database=db)
    query(source, "INSERT INTO hidden VALUES (1, 'stored')", database=db)
    cursors = []
    for number in (1, 2):
        cursor = connect(source, database=db, autocommit=True).cursor()
        cursor.execute(f"SET SESSION binlog_format = {form}")
        cursor.execute("CREATE TEMPORARY TABLE w (id INT PRIMARY KEY, s VARCHAR(30)) ENGINE=InnoDB")
        cursor.execute("INSERT INTO w VALUES (%s, 'w'), (%s, 'w')", (number * 10, number * 10 + 1))
        cursors.append(cursor)
    cursors[0].execute("CREATE TEMPORARY TABLE hidden (id INT, s VARCHAR(30)) ENGINE=InnoDB")
    cursors[0].execute("INSERT INTO hidden VALUES (77, 'temporary')")
    for number, cursor in enumerate(cursors, 1):
        cursor.execute("INSERT INTO t SELECT id, CONCAT(s, %s) FROM w", (number,))
        cursor.execute("UPDATE w SET s = 'changed' WHERE id % 10 = 0")
    between()
    for number, cursor in enumerate(cursors, 1):
        cursor.execute("BEGIN")
        cursor.execute("INSERT INTO t SELECT id + 100, s FROM w")
        cursor.execute("INSERT INTO w VALUES (%s, 'rolled back')", (number * 10 + 5,))
        cursor.execute("ROLLBACK")
        cursor.execute("UPDATE t JOIN w USING (id) SET t.s = CONCAT(t.s, w.s)")
        cursor.execute("INSERT INTO t SELECT id + 1000, s FROM hidden")
    cursors[0].execute("DROP TEMPORARY TABLE w, hidden")
    cursors[0].execute("INSERT INTO hidden VALUES (2, 'after')")
    for cursor in cursors:
        cursor.connection.close()


def follow(folder, source, replicas, kills):
    for server in (source, *replicas):
        server.start()
    try:
        create_user(source)
        query(source, "SET GLOBAL local_infile = 1")
        for replica in replicas:
            replicate(replica, source, log_position(source))

        def between():
            for replica in replicas:
                wait_caught_up(replica, source)
            if kills:
                restart(replicas[0], kill=True)

        for form in FORMATS:
            load(source, form, folder)
            temporary(source, form, between)
            for replica in replicas:
                wait_caught_up(replica, source)
                expect_equal(source, replica, [f"load_{form}", f"tmp_{form}"], least_rows=1500)
    finally:
        for server in (source, *replicas):
            server.stop()


def main():
    with Scratch() as place:
        folder = pathlib.Path(place)
        files(folder)
        follow(folder, OmnibusPeer(folder / "one", 1), [OmnibusPeer(folder / "two", 2), MariaPeer(folder / "three", 3)], True)
        # A source that logs temporary tables as statements has none any more for a replica that was restarted.
        follow(folder, MariaPeer(folder / "four", 1), [OmnibusPeer(folder / "five", 2)], False)
    print("replication_load: ok")


if __name__ == "__main__":
    main()
