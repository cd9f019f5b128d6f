#!/usr/bin/python3
"""mydumper and myloader, as Debian ships them, with several threads while others write: from here into a MariaDB, and from there into an
empty server here, where everything is as it was: rows of all types, keys, views, triggers, routines, events.

Ring: all.
"""

import pathlib
import re
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, client, connect, expect, free_port  # noqa: E402

TABLES = """CREATE DATABASE shop CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci; USE shop;
CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT, m MEDIUMINT, b BIGINT, bu BIGINT UNSIGNED,
  d DECIMAL(30,10), f FLOAT, g DOUBLE, bits BIT(12), y YEAR, da DATE, ti TIME(3), dt DATETIME(6), ts TIMESTAMP(6) NULL, c CHAR(5), v VARCHAR(50), bi BINARY(4),
  vb VARBINARY(40), tx TEXT, lt LONGTEXT, bl BLOB, lb LONGBLOB, e ENUM('a','b''c','ü'), st SET('x','y','z'), latin VARCHAR(20) CHARACTER SET latin1,
  bin VARCHAR(20) COLLATE utf8mb4_bin, KEY (v, e), UNIQUE KEY odd (b, s), KEY part (tx(10)));
CREATE TABLE parents (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL DEFAULT 'it''s', price DECIMAL(8,2) DEFAULT 1.5 CHECK (price < 1000)) COMMENT='with ''quotes'' ☃';
CREATE TABLE children (id BIGINT AUTO_INCREMENT PRIMARY KEY, parent INT, n INT, twice INT GENERATED ALWAYS AS (n * 2) STORED, thrice INT AS (n * 3) VIRTUAL,
  KEY (twice), CONSTRAINT of_parent FOREIGN KEY (parent) REFERENCES parents (id) ON DELETE CASCADE ON UPDATE SET NULL);
CREATE TABLE `odd names` (`a b` INT, `select` VARCHAR(5), `ü` INT) ENGINE=BTREE;
CREATE TABLE nothing (id INT PRIMARY KEY) ENGINE=BTREE;
CREATE TABLE audit (what VARCHAR(20), n INT);
CREATE VIEW totals AS SELECT p.id, p.name, COUNT(c.id) AS count, SUM(c.twice) AS sum FROM parents p LEFT JOIN children c ON c.parent = p.id GROUP BY p.id, p.name;
CREATE VIEW a_first AS SELECT * FROM totals WHERE count > 0;
CREATE SQL SECURITY INVOKER VIEW checked AS SELECT id, n FROM children WHERE n > 0 WITH CHECK OPTION"""
PROGRAMS = ("CREATE TRIGGER shop.before_child BEFORE INSERT ON shop.children FOR EACH ROW BEGIN IF NEW.n IS NULL THEN SET NEW.n = 7; END IF; END",
            "CREATE TRIGGER shop.after_child AFTER UPDATE ON shop.children FOR EACH ROW INSERT INTO audit VALUES ('it''s; ☃', NEW.n - OLD.n)",
            "CREATE PROCEDURE shop.add_child(IN p INT, OUT total INT) COMMENT 'adds' BEGIN INSERT INTO children (parent) VALUES (p); SELECT COUNT(*) INTO total FROM children; END",
            "CREATE FUNCTION shop.twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
            "CREATE EVENT shop.at_night ON SCHEDULE EVERY 1 DAY STARTS '2037-01-01 03:00:00' ON COMPLETION PRESERVE DISABLE COMMENT 'c' DO DELETE FROM audit WHERE n = 0")
SHOWN = ("kinds", "parents", "children", "`odd names`", "nothing", "audit", "totals", "a_first", "checked")


def fill(server):
    client(server, TABLES)
    cursor = connect(server, autocommit=True, database="shop", charset="utf8mb4").cursor()
    for sql in PROGRAMS:
        cursor.execute(sql)
    kinds = "INSERT INTO kinds VALUES (" + ",".join(["%s"] * 28) + ")"
    cursor.execute(kinds, (1, -128, 255, -32768, 8388607, -2**63, 2**64 - 1, "-12345678901234567890.0123456789", 1.5, -1e300, b"\x0a\xbc", 2155, "9999-12-31",
                           "-838:59:59.000", "2020-02-29 01:02:03.456789", "2038-01-19 03:14:07.999999", "ab", "it's \\ \n\r\t\x1a \" ☃🚂", b"\x00\xff'\\", bytes(range(40)),
                           "text", "long " * 50000, bytes(range(256)), bytes(range(256)) * 2000, "b'c", "x,z", "é€", "Case"))
    cursor.execute(kinds, (2, *[None] * 27))
    cursor.execute("SET sql_mode = ''")
    cursor.execute("INSERT INTO kinds (id, t, d, da, dt, ts, c, v, e, st, bi) VALUES (3, 0, 0, '0000-00-00', '2024-00-10', '1970-01-01 00:00:01', '', '', 'ü', '', '')")
    for at in range(5, 3000):
        cursor.execute("INSERT INTO kinds (id, b, s, v, tx) VALUES (%s, %s, %s, %s, %s)", (at, at * 1000, at % 7, f"v{at}", f"{at} " * (at % 90)))
    cursor.execute("INSERT INTO parents VALUES (1, 'one', 2.5), (2, 'two', NULL), (3, 'three', 0)")
    cursor.execute("INSERT INTO children (parent, n) VALUES (1, 5), (1, NULL), (2, -3), (NULL, 4)")
    cursor.execute("UPDATE children SET n = n + 1 WHERE parent = 1")
    cursor.execute("INSERT INTO `odd names` VALUES (1, 'a', 2), (NULL, NULL, NULL), (1, 'a', 2)")


def run(program, server, *options):
    done = subprocess.run([program, "--host=127.0.0.1", f"--port={server.port}", "--user=program", "--password=secret", "--threads=3", "--verbose=2", *options],
                          capture_output=True, text=True)
    said = done.stdout + done.stderr
    wrong = [line for line in said.splitlines() if re.search(r"CRITICAL|ERROR|Error", line)]
    expect(done.returncode == 0 and not wrong, f"{program}: {done.returncode}: {said[-2000:]}")


def dump(server, folder):
    run("mydumper", server, f"--outputdir={folder}", "--database=shop", "--triggers", "--routines", "--events", "--rows=500", "--trx-consistency-only")


def load(server, folder):
    run("myloader", server, f"--directory={folder}", "--queries-per-transaction=200", "--overwrite-tables")


def contents(server):
    """What clients read: rows in the order of all columns."""
    found = {}
    for name in SHOWN:
        columns = client(server, f"SHOW COLUMNS FROM shop.{name}").splitlines()
        names = [line.split("\t")[0] for line in columns]
        order = ", ".join(f"`{one}`" for one in names)
        found[name] = client(server, f"SELECT {', '.join(f'HEX(`{one}`)' for one in names)} FROM shop.{name} ORDER BY {order}")
    return found


def definitions(server):
    """As this server shows them."""
    found = {}
    for name in SHOWN:
        text = client(server, f"SHOW CREATE TABLE shop.{name}", "--raw")
        # mydumper writes AUTO_INCREMENT, and the values that were taken meanwhile are not these.
        found[name] = re.sub(r" AUTO_INCREMENT=\d+", "", text)
    for kind, name in (("TRIGGER", "before_child"), ("TRIGGER", "after_child"), ("PROCEDURE", "add_child"), ("FUNCTION", "twice"), ("EVENT", "at_night")):
        text = client(server, f"SHOW CREATE {kind} shop.{name}", "--raw")
        found[name] = text.split("\t", 3)[2 if kind != "EVENT" else 3].split("\tutf8")[0]
    return found


def compare(one, other, what):
    for name, value in one.items():
        expect(value == other[name], f"{what}: {name}:\n{value[:1500]}\n--- and\n{other[name][:1500]}")


def serve(server, port=None):
    server.start()
    if port:
        server.port = port
    client(server, "CREATE USER program@'127.0.0.1' IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO program@'127.0.0.1' WITH GRANT OPTION")
    return server


def main():
    with Scratch("omnibus-mydumper-") as scratch:
        folders = [pathlib.Path(scratch, name) for name in ("one", "peer", "two", "dump", "back")]
        for folder in folders:
            folder.mkdir()
        port = free_port()
        ours = serve(Omnibus(folders[0]))
        peer = serve(MariaDB(folders[1], "--skip-networking=0", "--bind-address=127.0.0.1", f"--port={port}", "--character-set-server=utf8mb4"), port)
        fill(ours)
        before = contents(ours), definitions(ours)
        stop = threading.Event()

        def write():
            """Rows of children go from one parent to the next: none is ever missing."""
            connection = connect(ours, autocommit=False)
            cursor = connection.cursor()
            while not stop.is_set():
                cursor.execute("INSERT INTO shop.audit VALUES ('pair', 1)")
                cursor.execute("INSERT INTO shop.`odd names` VALUES (9, 'pair', 1)")
                connection.commit()
        writer = threading.Thread(target=write)
        writer.start()
        dump(ours, folders[3] / "beside")
        stop.set()
        writer.join()
        client(ours, "DELETE FROM shop.audit WHERE what = 'pair'; DELETE FROM shop.`odd names` WHERE `select` = 'pair'")
        dump(ours, folders[3] / "still")
        load(peer, folders[3] / "beside")
        pairs = client(peer, "SELECT (SELECT COUNT(*) FROM shop.audit WHERE what = 'pair'), (SELECT COUNT(*) FROM shop.`odd names` WHERE `select` = 'pair')").split()
        expect(pairs[0] == pairs[1], f"a dump of two moments: {pairs}")
        client(peer, "DROP DATABASE shop")
        load(peer, folders[3] / "still")
        compare(before[0], contents(peer), "rows in MariaDB")
        dump(peer, folders[4])
        for name, source, default in (("here", folders[3] / "still", "BTREE"), ("from MariaDB", folders[4], "InnoDB")):
            (folders[2] / default).mkdir()
            fresh = serve(Omnibus(folders[2] / default, f"--default-storage-engine={default}"))
            load(fresh, source)
            compare(before[0], contents(fresh), f"rows {name}")
            if default == "BTREE":
                compare(before[1], definitions(fresh), "definitions")
            client(fresh, "USE shop; CALL add_child(2, @n); UPDATE children SET n = 1 WHERE parent = 2 AND n = 7")
            expect(client(fresh, "SELECT @n IS NULL, shop.twice(21), (SELECT COUNT(*) FROM shop.audit WHERE n = -6)") == "1\t42\t1\n", "programs do not work")
            fresh.stop()
        print("mydumper: ok")


if __name__ == "__main__":
    main()
