#!/usr/bin/python3
"""`omnibus import` from servers that are older than those to be had here: a MySQL 9.7 behind a proxy that is a MySQL 5.7, or 8.0, and Debian's MariaDB behind one that is a
10.6. The proxy has the older version's name, refuses the statements, variables, columns and functions that came later with the error that an older server gives, and says
definitions, accounts and names of character sets in the older form. Copied, compared, followed, cut over. Needs root.

Ring: all.
"""

import pathlib
import re
import socket
import struct
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from imports import Mover, newer_mysql, target  # noqa: E402
from omnibus import client, expect  # noqa: E402
from peers import MariaPeer, run_chosen  # noqa: E402
from proxy import framed, read_packet  # noqa: E402

COM_QUERY = 3
# Capabilities that an older server, or one without a certificate, does not offer: TLS, attributes of queries.
NEWER_CAPABILITIES = 1 << 11 | 1 << 27

# Statements that later versions have, by the version that brought them, with the error of those before.
MYSQL_LATER = [
    ((8, 2), 1064, r"SHOW BINARY LOG STATUS"), ((8, 0), 1064, r"SHOW REPLICA STATUS|\bOVER *\(|^WITH |CREATE ROLE|SET DEFAULT ROLE|SKIP LOCKED|RESOURCE_GROUP"),
    ((8, 0), 1193, r"binlog_expire_logs_seconds|log_replica_updates|information_schema_stats_expiry|print_identified_with_as_hex|sql_require_primary_key|@@(GLOBAL\.)?replica_"),
    ((8, 0), 1109, r"CHECK_CONSTRAINTS|COLUMN_STATISTICS|role_edges|default_roles"), ((8, 0), 1305, r"REGEXP_REPLACE|JSON_TABLE|BIN_TO_UUID|ROLES_GRAPHML"),
    ((8, 0), 1054, r"STATISTICS.*\bEXPRESSION\b|SRS_ID"), ((99, 0), 1193, r"max_statement_time|check_constraint_checks"),
]
MARIADB_LATER = [((99, 0), 1064, r"SHOW BINARY LOG STATUS|SHOW_ROUTINE|SHOW CREATE ROUTINE"), ((99, 0), 1193, r"log_replica_updates|server_uuid|information_schema_stats_expiry|max_execution_time"),
                 ((10, 10), 1193, r"slave_parallel_workers_|utf8mb4_uca1400"), ((10, 7), 1305, r"\bSFORMAT|NATURAL_SORT_KEY")]
# Statements of older versions in the words of the one behind.
MYSQL_WORDS = [(r"SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"), (r"SHOW SLAVE STATUS", "SHOW REPLICA STATUS"), (r"@@GLOBAL\.expire_logs_days", "10"),
               (r"@@GLOBAL\.log_slave_updates", "@@GLOBAL.log_replica_updates"), (r"\bmaster_heartbeat_period", "source_heartbeat_period")]
MYSQL_57_FORMS = [
    (r"\bCHARACTER_SET_NAME\b", "REPLACE(CHARACTER_SET_NAME, 'utf8mb3', 'utf8')"), (r"\bCOLLATION_NAME\b", "REPLACE(COLLATION_NAME, 'utf8mb3', 'utf8')"),
    (r"\bCOLUMN_TYPE\b", "IF(COLUMN_TYPE = 'int', 'int(11)', COLUMN_TYPE)"),
    (r"^SHOW CREATE TABLE `old`\.`words`$", """SELECT 'words', 'CREATE TABLE `words` (\n  `id` int(11) NOT NULL AUTO_INCREMENT,\n  `w` varchar(30) CHARACTER SET utf8 COLLATE utf8_bin NOT NULL,\n"""
     """  `l` varchar(30) DEFAULT NULL,\n  `at` datetime NOT NULL DEFAULT ''2000-01-01 00:00:00'',\n  PRIMARY KEY (`id`),\n  KEY `w` (`w`(10))\n) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=latin1'"""),
    (r"^SHOW CREATE DATABASE `old`$", "SELECT 'old', 'CREATE DATABASE `old` /*!40100 DEFAULT CHARACTER SET latin1 */'"),
    (r"^SHOW CREATE USER `app`@`%`$", """SELECT "CREATE USER 'app'@'%' IDENTIFIED WITH 'mysql_native_password' AS '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19' REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK\""""),
]

SETUP = """
CREATE DATABASE old DEFAULT CHARACTER SET latin1; USE old;
CREATE TABLE words (id INT AUTO_INCREMENT PRIMARY KEY, w VARCHAR(30) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin NOT NULL, l VARCHAR(30), at DATETIME NOT NULL DEFAULT '2000-01-01', KEY (w(10))) DEFAULT CHARSET=latin1;
CREATE TABLE child (id INT PRIMARY KEY, p INT, n BIGINT AS (id * 2) STORED, doc JSON, FOREIGN KEY (p) REFERENCES words (id) ON DELETE CASCADE) DEFAULT CHARSET=latin1;
INSERT INTO words (w, l) VALUES ('é', 'ü'), ('b', NULL), ('c', 'x'); INSERT INTO child (id, p, doc) VALUES (1, 1, '{"a": 1}'), (2, 2, NULL);
CREATE VIEW latest AS SELECT MAX(id) AS id FROM words;
CREATE TRIGGER bare BEFORE INSERT ON words FOR EACH ROW SET NEW.l = COALESCE(NEW.l, 'none');
CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN n * 2;
CREATE USER app@'%' IDENTIFIED BY 'password'; GRANT SELECT, INSERT ON old.* TO app@'%';
CREATE USER mover@'%' IDENTIFIED BY 'mover-secret';
GRANT SELECT, SHOW VIEW, TRIGGER, EVENT, RELOAD, PROCESS, LOCK TABLES, REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO mover@'%'
"""


class Aged:
    """A server with an older version's name and manners, in front of a newer one."""

    def __init__(self, server, version, later, words):
        self.behind, self.version, self.words = server.port, version, words
        number = tuple(map(int, version.split(".")[:2]))
        self.refused = [(code, re.compile(pattern, re.I)) for since, code, pattern in later if number < since]
        self.asked, self.denied = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client_end, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client_end,), daemon=True).start()

    def serve(self, client_end):
        with client_end, socket.create_connection(("127.0.0.1", self.behind)) as server_end:
            try:
                greeting = read_packet(server_end)
                client_end.sendall(framed(self.greeting(greeting[4:]), greeting[3]))
                threading.Thread(target=copy, args=(server_end, client_end), daemon=True).start()
                while True:
                    packet = read_packet(client_end)
                    if packet[3] == 0 and packet[4:5] == bytes([COM_QUERY]):
                        packet = self.query(packet[5:].decode("utf8", "surrogateescape"), client_end)
                    if packet:
                        server_end.sendall(packet)
            except OSError:
                pass
            for end in (client_end, server_end):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def greeting(self, payload):
        end = payload.index(0)
        # Behind the version: a thread's number, eight bytes of challenge, a zero; then the lower capabilities, and the upper ones three bytes later.
        rest = bytearray(payload[end + 1:])
        for at, bits in ((13, NEWER_CAPABILITIES & 0xFFFF), (18, NEWER_CAPABILITIES >> 16)):
            known, = struct.unpack_from("<H", rest, at)
            struct.pack_into("<H", rest, at, known & ~bits)
        return payload[:1] + self.version.encode() + b"\0" + bytes(rest)

    def query(self, sql, client_end):
        """What goes to the server in its place; nothing if it is refused here."""
        self.asked.append(sql)
        for code, pattern in self.refused:
            if pattern.search(sql):
                self.denied.append((code, sql))
                state = {1064: b"42000", 1109: b"42S02", 1054: b"42S22", 1305: b"42000"}.get(code, b"HY000")
                client_end.sendall(framed(b"\xff" + struct.pack("<H", code) + b"#" + state + b"not in this version", 1))
                return None
        sql = re.sub(r"\bVERSION\(\)|@@(GLOBAL\.)?version\b", f"'{self.version}'", sql, flags=re.I)
        for pattern, words in self.words:
            sql = re.sub(pattern, lambda _, words=words: words, sql, flags=re.I)
        return framed(bytes([COM_QUERY]) + sql.encode("utf8", "surrogateescape"), 0)


def copy(from_end, to_end):
    try:
        while data := from_end.recv(1 << 16):
            to_end.sendall(data)
    except OSError:
        pass
    try:
        to_end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def moved(directory, source, aged, dialect, refused):
    client(source, SETUP)
    client(source, "GRANT READ_ONLY ADMIN ON *.* TO mover@'%'" if dialect == "mariadb" else "GRANT SHOW_ROUTINE, SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN ON *.* TO mover@'%'")
    into = target(directory, 2, dialect)
    mover = Mover(aged, into)
    mover.words[3] += "/?get-server-public-key=1"
    said = mover.run("--plan")
    expect(aged.version.removeprefix("5.5.5-") in said, said)
    said = mover.run("--until-caught-up")
    expect(" 0 differences" in said and "follows the source" in said, said)
    client(source, "INSERT INTO old.words (w) VALUES ('later'); UPDATE old.child SET p = 3 WHERE id = 2; DELETE FROM old.words WHERE id = 1")
    said = mover.run("--cut-over", "--set-read-only")
    expect("cut over in" in said, said)
    words = client(into, "SELECT id, w, l FROM old.words ORDER BY id; SELECT id, p, n FROM old.child; SELECT old.twice(id) FROM old.latest")
    expect(words.split() == "2 b NULL 3 c x 4 later none 2 3 4 8".split(), words)
    shown = client(into, "SHOW CREATE TABLE old.words")
    expect("CHARACTER SET utf8mb3 COLLATE utf8mb3_bin" in shown and "latin1" in shown, shown)
    expect("GRANT SELECT, INSERT ON `old`.* TO" in client(into, "SHOW GRANTS FOR app@'%'"), "the account's rights")
    expect(client(into, "SELECT CURRENT_USER()", "--password=password", user="app").strip() == "app@%", "the account's password")
    denied = " ".join(sql for _, sql in aged.denied)
    expect(all(word in denied for word in refused), f"it asked for nothing of {refused}: {aged.denied}")
    into.stop()
    source.stop()


def mysql_57(directory):
    source = newer_mysql()
    source.start()
    moved(directory, source, Aged(source, "5.7.44-log", MYSQL_LATER, MYSQL_WORDS + MYSQL_57_FORMS), "mysql",
          ["SHOW BINARY LOG STATUS", "binlog_expire_logs_seconds"])


def mysql_80(directory):
    source = newer_mysql()
    source.start()
    moved(directory, source, Aged(source, "8.0.36", MYSQL_LATER, MYSQL_WORDS), "mysql", ["SHOW BINARY LOG STATUS"])


def mariadb_106(directory):
    source = MariaPeer(f"{directory}/source", 1)
    source.start()
    moved(directory, source, Aged(source, "5.5.5-10.6.18-MariaDB-log", MARIADB_LATER, []), "mariadb", ["SHOW BINARY LOG STATUS"])


if __name__ == "__main__":
    run_chosen("import_older", [mysql_57, mysql_80, mariadb_106])
