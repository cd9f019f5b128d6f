"""Sources for tests of `omnibus import`: the newer servers that `scripts/peers` has, with a log, and data of every kind that is moved."""

import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import threading

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e" / "tools"))
import peers_matrix  # noqa: E402
import real_peers  # noqa: E402
from omnibus import Server, binary, client, connect, expect, free_port, wait_for  # noqa: E402
from peers import OmnibusPeer  # noqa: E402

ACCOUNT, PASSWORD = "mover", "mover-secret"


class Newer(Server):
    """A server of `scripts/peers` in a data directory of its own, with a log and a port."""

    log_name = "server.log"
    number = 0

    def __init__(self, name, program, installer, *options):
        Newer.number += 1
        self.root = real_peers.root_with(name, f"usr/sbin/{program[0]}")
        self.inside = f"/var/lib/import-{os.getpid()}-{Newer.number}"
        super().__init__(f"{self.root}{self.inside}", options, None)
        self.name, self.program, self.installer = name, program, installer
        self.socket, self.port = f"{self.directory}/socket", free_port()
        self.datadir = self.directory / "data"
        atexit.register(self.remove)

    def start(self):
        if not self.datadir.exists():
            self.directory.mkdir(parents=True)
            made = subprocess.run([*real_peers.inside(self.root), *self.installer, "--user=root", f"--datadir={self.inside}/data"], capture_output=True, text=True)
            expect(made.returncode == 0, f"{self.installer}: {made.stdout[-500:]}{made.stderr[-500:]}")
        self.launch([*real_peers.inside(self.root), *self.program, "--user=root", f"--datadir={self.inside}/data", f"--socket={self.inside}/socket", f"--port={self.port}",
                     "--bind-address=127.0.0.1", "--server-id=77", f"--log-bin={self.inside}/data/binlog", "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0",
                     "--innodb-buffer-pool-size=64M", *self.options])
        def answers():
            expect(self.runs(), f"{self.name} did not start: {self.log_tail()}")
            return client(self, "SELECT 1", check=False).returncode == 0
        wait_for(answers, f"{self.name} does not answer")

    def remove(self):
        """Its directory is none that goes with the script's."""
        if self.runs():
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def newer_mysql(*options):
    return Newer("mysql", ("mysqld", "--no-defaults", "--mysqlx=OFF", "--secure-file-priv="), ("mysqld", "--no-defaults", "--initialize-insecure"), *options)


def newer_mariadb(*options):
    return Newer("mariadb", ("mariadbd", "--no-defaults", "--binlog-format=ROW"),
                 ("mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--force"), *options)


def is_mariadb(server):
    return "MariaDB" in client(server, "SELECT VERSION()")


SHOP = """
CREATE DATABASE shop; USE shop;
CREATE TABLE customer (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, name VARCHAR(100) CHARACTER SET utf8mb4 NOT NULL, mail VARCHAR(100) CHARACTER SET latin1 UNIQUE,
  born DATE, seen TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP);
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer BIGINT UNSIGNED, total DECIMAL(12,2), note JSON,
  FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE item (orders INT, n SMALLINT, what VARCHAR(50), price DOUBLE, twice DOUBLE AS (price * 2) STORED, half DOUBLE AS (price / 2) VIRTUAL,
  PRIMARY KEY (orders, n), KEY (what(10)), CHECK (n > 0));
CREATE TABLE words (w VARCHAR(30) CHARACTER SET utf8mb4, lang CHAR(2) CHARACTER SET latin1, b VARBINARY(16), n INT, PRIMARY KEY (w, lang, b));
CREATE TABLE notes (at DATETIME(6), what TEXT);
CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, who VARCHAR(100));
CREATE TABLE large (id INT PRIMARY KEY, b LONGBLOB);
CREATE TABLE swaps (id INT PRIMARY KEY, u INT UNIQUE, x INT);
CREATE TABLE `odd, name` (`a b` INT PRIMARY KEY, `select` INT);
CREATE FUNCTION double_it(x DECIMAL(20,2)) RETURNS DECIMAL(20,2) DETERMINISTIC RETURN x * 2;
CREATE VIEW totals AS SELECT customer, SUM(total) AS t FROM orders GROUP BY customer;
CREATE VIEW a_best AS SELECT c.name, t.t, shop.double_it(t.t) AS d FROM totals t JOIN customer c ON c.id = t.customer;
CREATE TRIGGER aud AFTER INSERT ON orders FOR EACH ROW INSERT INTO audit (who) VALUES (NEW.customer);
CREATE PROCEDURE add_one(IN c INT) INSERT INTO orders (customer, total) VALUES (c, 1);
CREATE EVENT tidy ON SCHEDULE EVERY 1 HOUR DO DELETE FROM audit WHERE id < 0;
INSERT INTO customer (name, mail) VALUES ('é😀', 'x@y'), ('b', NULL);
INSERT INTO orders (customer, total, note) VALUES (1, 5.50, '{"a": [1, 2.5, 1e-12]}'), (2, 1, NULL);
INSERT INTO item (orders, n, what, price) VALUES (1, 1, 'tea', 2.5), (1, 2, 'x', 0.1), (1, 3, 'y', 2.2250738585072014e-308), (1, 4, 'z', -1.8093891105195534e-11);
INSERT INTO words VALUES ('é', 'fr', x'00ff', 1), ('😀', 'xx', x'', 2), ('a', 'b', x'61', 3);
INSERT INTO notes VALUES (NOW(6), 'a'), (NOW(6), 'a'), (NOW(6), NULL);
INSERT INTO large VALUES (1, REPEAT('x', 16 << 20)), (2, REPEAT(x'00275c0a', 1 << 20)), (3, '');
INSERT INTO `odd, name` VALUES (1, 2);
CREATE USER app@'%' IDENTIFIED BY 'app-secret'; GRANT SELECT, INSERT ON shop.* TO app@'%';
CREATE ROLE reader; GRANT SELECT ON shop.* TO reader; GRANT reader TO app@'%';
CREATE USER mover@'%' IDENTIFIED BY 'mover-secret';
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, PROCESS, LOCK TABLES, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO mover@'%'
"""


def fill(server, rows):
    """Every column type, and a shop with all that a server has besides; some tables with so many rows."""
    mariadb = is_mariadb(server)
    peers_matrix.fill(server, "mariadb" if mariadb else "mysql")
    client(server, SHOP, "--max-allowed-packet=64M")
    # As docs/use/migrate.md says, and what --set-read-only takes.
    client(server, "SET DEFAULT ROLE reader FOR app@'%'; CREATE SEQUENCE shop.numbers; SELECT NEXT VALUE FOR shop.numbers; GRANT READ_ONLY ADMIN ON *.* TO mover@'%'"
           if mariadb else "SET DEFAULT ROLE reader TO app@'%'; GRANT SHOW_ROUTINE, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO mover@'%'")
    depth = "SET SESSION max_recursive_iterations = 10000000" if mariadb else "SET SESSION cte_max_recursion_depth = 10000000"
    many = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
    client(server, f"USE shop; {depth}; INSERT INTO item (orders, n, what, price) {many} SELECT 10 + i DIV 7, 1 + i % 7, LEFT(SHA2(i, 256), 30), RAND(3) FROM n;"
                   f"INSERT INTO words {many} SELECT CONCAT(LEFT(SHA2(i, 256), 20), 'é'), 'en', UNHEX(LEFT(SHA2(i, 256), 32)), i FROM n;"
                   f"INSERT INTO swaps {many} SELECT i, i, 0 FROM n WHERE i <= 500; INSERT INTO customer (name, mail) {many} SELECT i, CONCAT(i, '@x') FROM n WHERE i < 300")
    client(server, "ANALYZE TABLE shop.item, shop.words, shop.customer")


class Writers:
    """Sessions that change rows of the shop all the time: rows come and go, keys and unique values move, parents take children along."""

    statements = [
        "INSERT INTO customer (name, mail) VALUES (LEFT(SHA2(RAND(), 256), 30), CONCAT(UUID(), '@y'))", "DELETE FROM customer WHERE id > 2 ORDER BY RAND() LIMIT 1",
        "INSERT INTO orders (customer, total, note) SELECT id, RAND() * 100, '{\"x\": 1.5}' FROM customer ORDER BY RAND() LIMIT 2",
        "UPDATE customer SET id = id + 100000 WHERE id > 2 AND id < 100000 ORDER BY RAND() LIMIT 1",
        "UPDATE item SET price = RAND(), orders = orders + 1000000 WHERE orders BETWEEN 10 AND 900000 ORDER BY orders, n LIMIT 1",
        "DELETE FROM item WHERE orders > 10 LIMIT 2", "INSERT INTO item (orders, n, what, price) VALUES (FLOOR(RAND() * 1000000), 1 + FLOOR(RAND() * 30000), LEFT(SHA2(RAND(), 256), 30), RAND()) ON DUPLICATE KEY UPDATE price = 1",
        "UPDATE words SET w = CONCAT(LEFT(w, 20), CHAR(65 + RAND() * 26 USING utf8mb4)), n = n + 1 WHERE lang = 'en' LIMIT 1",
        "INSERT INTO notes VALUES (NOW(6), LEFT(SHA2(RAND(), 256), 30))", "DELETE FROM notes LIMIT 1", "UPDATE large SET b = REPEAT('y', 1000 + RAND() * 10000) WHERE id = 3",
        "UPDATE swaps SET x = x + 1 WHERE id < 20",
        "START TRANSACTION; SELECT u INTO @u FROM swaps WHERE id = 7 FOR UPDATE; UPDATE swaps SET u = NULL WHERE id = 7; UPDATE swaps SET u = -u WHERE id = 8; UPDATE swaps SET u = @u WHERE id = 9; "
        "UPDATE swaps SET u = 8 WHERE id = 7; UPDATE swaps SET u = 9 WHERE id = 8; COMMIT",
    ]

    def __init__(self, server, count=3):
        self.ended, self.done = threading.Event(), [0] * count
        self.threads = [threading.Thread(target=self.write, args=(server, number), daemon=True) for number in range(count)]
        for thread in self.threads:
            thread.start()

    def write(self, server, number):
        import random
        import time

        import pymysql
        chosen = random.Random(number)
        db = connect(server, autocommit=True, database="shop", client_flag=pymysql.constants.CLIENT.MULTI_STATEMENTS, charset="utf8mb4")
        with db.cursor() as cursor:
            while not self.ended.is_set():
                try:
                    cursor.execute(chosen.choice(self.statements))
                    while cursor.nextset():
                        pass
                    self.done[number] += 1
                except pymysql.err.MySQLError as error:
                    # Deadlocks and duplicates are a part of such a life; MariaDB tells a deadlock over the next number as 1467.
                    expect(error.args[0] in (1062, 1213, 1205, 1020, 1048, 1467), f"a writer: {error}")
                    db.rollback()
                time.sleep(0.002)
        db.close()

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()
        expect(min(self.done) > 0, f"the writers wrote: {self.done}")


class Mover:
    """The command, from one source into one target."""

    def __init__(self, source, target):
        self.words = [binary(), "import", "--from", f"mysql://{ACCOUNT}@127.0.0.1:{source.port}", "--to", f"mysql://root@?socket={target.socket}", "--chunk=64"]
        self.environment = dict(os.environ, OMNIBUS_FROM_PASSWORD=PASSWORD)

    def start(self, *options):
        return subprocess.Popen([*self.words, *options], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, *options, code=0):
        done = subprocess.run([*self.words, *options], env=self.environment, capture_output=True, text=True, timeout=600)
        expect(done.returncode == code, f"import {options}: {done.returncode} and not {code}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr


def target(directory, number, dialect, *options):
    made = OmnibusPeer(f"{directory}/target{number}", number, f"--dialect={dialect}", *options)
    made.start()
    return made
