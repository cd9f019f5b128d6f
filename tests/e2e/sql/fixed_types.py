#!/usr/bin/python3
"""MariaDB's UUID, INET4 and INET6: the same statements here and on a real MariaDB, and replication of them in both directions.

What a server says of a bad value is compared by its code and, without the names around the column, by its text.

Ring: all.
"""

import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, binary, client, connect, expect  # noqa: E402
from peers import expect_equal, query, restart, run_chosen, there_and_back, wait_caught_up  # noqa: E402

TABLE = """CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, u UUID, a INET4, b INET6, n UUID NOT NULL DEFAULT '00112233445566778899AABBCCDDEEFF',
    m INET6 NOT NULL DEFAULT '0:0::0', k INET4 DEFAULT x'7f000001', KEY u (u), KEY a (a), UNIQUE KEY b (b, id), KEY n (n))"""
ROWS = """INSERT INTO t (u, a, b) VALUES ('00112233-4455-6677-8899-AABBCCDDEEFF', '1.2.3.4', '::1'), ('6d1a-00001111-1222-b333-444455556666', '255.255.255.255', '2001:DB8::0001'),
    ('6d1a000011111222b333444455556667', '0.0.0.0', '::1.2.3.4'), (x'6d1a000011111222b333444455556668', x'01020305', x'00000000000000000000ffff01020304'),
    (NULL, NULL, NULL), ('01890000-0000-7000-8000-000000000000', '127.0.0.1', '::ffff:1.2.3.4'), ('ffffffff-ffff-ffff-ffff-ffffffffffff', '10.0.0.0', '::'),
    ('01890000-0000-1000-0000-000000000000', '127.0.0.1', 'fe80:0:0:1::0'), ('02890000-0000-1000-8000-000000000000', '9.0.0.1', 'fe80:0:0:1:0:0:0:2'),
    ('02890000-0000-4000-8000-000000000000', '09.0.000.1', '1:0:2:0:0:3:4:5'), ('02890000-0000-7000-8000-000000000000', '9.0.0.1', '1:2:3:4:5:6:7:0')"""
ONE = "CAST('::1' AS INET6)"
STATEMENTS = f"""
SELECT * FROM t ORDER BY u, id
SELECT * FROM t ORDER BY a DESC, id
SELECT * FROM t ORDER BY b, id
SELECT id, HEX(u), HEX(a), HEX(b), LENGTH(u), CONCAT(u, 'x'), CAST(u AS CHAR), HEX(CAST(u AS BINARY)), HEX(BINARY b), MD5(a), SUBSTR(u, 1, 4), UPPER(u) FROM t ORDER BY id
SELECT JSON_OBJECT('a', u), JSON_ARRAY(a, b), INET_ATON(a), INET6_ATON(b), u LIKE '6d%', a REGEXP '^1', u <=> NULL, u IS NULL, IF(a, 1, 2), a XOR 1, a IS TRUE FROM t ORDER BY id
SELECT MAX(u), MIN(u), MAX(a), MIN(b), COUNT(DISTINCT u), COUNT(a), GROUP_CONCAT(u ORDER BY u), GROUP_CONCAT(DISTINCT a ORDER BY a) FROM t
SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY a
SELECT id FROM t WHERE u = '00112233445566778899aabbccddeeff'
SELECT id FROM t WHERE u = x'00112233445566778899aabbccddeeff'
SELECT id FROM t WHERE u > '6d1a000011111222b333444455556667' ORDER BY id
SELECT id FROM t WHERE u BETWEEN '00112233-4455-6677-8899-AABBCCDDEEFF' AND '6d1a000011111222b333444455556667' ORDER BY id
SELECT id FROM t WHERE b IN ('0::1', '2001:db8::1', '::ffff:0102:0304') ORDER BY id
SELECT id FROM t WHERE b IN ('::1', 'bad')
SELECT id FROM t WHERE a = '1.2.3.4 '
SELECT id FROM t WHERE u = 'bad'
SELECT x.id, y.id FROM t x JOIN t y ON x.u = CONCAT(y.u) ORDER BY x.id
SELECT x.id, y.id FROM t x JOIN t y ON x.a = y.a AND x.id < y.id ORDER BY x.id
SELECT id, LEAST(u, 'ffffffffffffffffffffffffffffffff'), GREATEST(b, '2::'), COALESCE(u, '{'1' * 32}'), IFNULL(a, '8.8.8.8'), NULLIF(b, '0::1'), IF(id < 3, a, '7.7.7.7') FROM t ORDER BY id
SELECT CASE u WHEN '00112233445566778899aabbccddeeff' THEN 'yes' ELSE 'no' END FROM t WHERE id = 1
SET @v = {ONE}
SELECT CONCAT(@v), @v = '::1'
SELECT COALESCE(b, 'x') FROM t WHERE id IN (1, 5) ORDER BY id
SELECT b FROM t UNION SELECT CONCAT('::', id) FROM t ORDER BY 1
SELECT {ONE} = '0::1', {ONE} < '::2', {ONE} COLLATE utf8mb4_bin, CAST({ONE} AS CHAR(2)), HEX(CAST({ONE} AS BINARY(20))), {ONE} AND 1, NOT {ONE}
SELECT CAST('x' AS INET6), CAST(x'01020304' AS INET4), CAST('1.2.3.4' AS INET6), CAST(CAST('::ffff:1.2.3.4' AS INET6) AS INET4), CONVERT('1.2.3.4', INET4), CAST(5 AS UUID), CAST(NULL AS UUID)
SELECT {ONE} = 1
SELECT u = b FROM t
SELECT {ONE} IN ('::1', 1)
SELECT {ONE} + 1
SELECT 2.5 * a FROM t
SELECT -a FROM t
SELECT ~a FROM t
SELECT a & 1 FROM t
SELECT SUM(a) FROM t
SELECT ABS(u) FROM t
SELECT ROUND(b, 1) FROM t
SELECT POW(2, a) FROM t
SELECT SQRT(a) FROM t
SELECT YEAR(u) FROM t
SELECT DATEDIFF(NOW(), b) FROM t
SELECT SEC_TO_TIME(a) FROM t
SELECT MAKETIME(1, u, 1) FROM t
SELECT TRUNCATE(u, 1) FROM t
SELECT ADDTIME(u, 1) FROM t
SELECT MOD(1, b) FROM t
SELECT BIT_COUNT(u) FROM t
SELECT CAST(u AS SIGNED) FROM t
SELECT CAST(u AS DATE) FROM t
SELECT IF(1, u, b) FROM t
SELECT COALESCE(a, 1) FROM t
SELECT u FROM t UNION SELECT 1
INSERT INTO t (u) VALUES ('bad')
INSERT INTO t (a) VALUES ('256.1.1.1')
INSERT INTO t (b) VALUES ('1.2.3.4')
INSERT INTO t (u) VALUES (1)
INSERT INTO t (a) VALUES (1.5)
INSERT INTO t (n) VALUES (NULL)
INSERT INTO t (u, a, b, n) VALUES ('00000000-0000-8000-8000-000000000000', NULL, NULL, NULL)
UPDATE t SET a = b WHERE id = 1
INSERT IGNORE INTO t (id, u, n) VALUES (50, 'bad', 'worse')
SELECT * FROM t WHERE id = 50
SET sql_mode = ''
INSERT INTO t (id, a, m) VALUES (51, 'bad', 'bad')
SELECT * FROM t WHERE id = 51
SET sql_mode = DEFAULT
INSERT INTO t (id, u, b) VALUES (60, '23456789-abcd-1234-9876-123456789abc', '::'), (61, '23456789-abcd-1234-9876-123456789abd', CONCAT('::', 61))
SELECT LENGTH(u), b FROM t WHERE id >= 60 ORDER BY id
UPDATE t SET b = '::abcd', a = '5.0.0.0' WHERE b = '0:0::61'
SELECT a, b FROM t WHERE b = '::abcd'
DELETE FROM t WHERE a > '200.0.0.0'
INSERT INTO t (id, b) VALUES (61, '::') ON DUPLICATE KEY UPDATE b = VALUES(b)
SELECT id, b FROM t WHERE id = 61
CREATE TABLE s (v VARCHAR(50), e ENUM('::1', '::2'), w VARBINARY(16), x BLOB, y TEXT, i INT)
INSERT INTO s (v, e, w, x, y) SELECT b, b, b, b, b FROM t WHERE id = 1
SELECT * FROM s
SELECT v FROM s WHERE v = {ONE}
INSERT INTO s (i) VALUES ({ONE})
INSERT INTO t (id, b, u) SELECT 70, v, '{'2' * 32}' FROM s
SELECT b, u FROM t WHERE id = 70
CREATE TABLE c AS SELECT u, a, COALESCE(b, '::') AS b FROM t
SELECT * FROM c ORDER BY u, a, b
ALTER TABLE t MODIFY u CHAR(36), MODIFY a VARCHAR(15), MODIFY b VARCHAR(39)
SELECT u, a, b FROM t ORDER BY id
ALTER TABLE s MODIFY w INET6, MODIFY y INET6, DROP x
SELECT w, y FROM s
ALTER TABLE s MODIFY w BINARY(16), MODIFY y VARBINARY(20)
SELECT HEX(w), HEX(y) FROM s
INSERT INTO t (u) VALUES (UUID())
SELECT LENGTH(u) FROM t ORDER BY id DESC LIMIT 1
DELETE FROM t WHERE id > 70
ALTER TABLE t MODIFY u UUID, MODIFY a INET4, MODIFY b INET6 FIRST
SELECT u, a, b FROM t ORDER BY id
ALTER TABLE t MODIFY u INET6
ALTER TABLE t ADD g UUID DEFAULT 'bad'
ALTER TABLE t ADD g INET4 DEFAULT 5
ALTER TABLE t ADD KEY (u(4))
ALTER TABLE t ADD g INET6 AS (CAST(CONCAT('::', a) AS INET6)) STORED, ADD KEY (g)
SELECT id, g FROM t WHERE g = '::127.0.0.1' ORDER BY id
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_MAXIMUM_LENGTH, CHARACTER_SET_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_NAME = 'c' ORDER BY 1
CHECKSUM TABLE c
""".strip().splitlines()
NAMED = re.compile(r"column (`\w+`\.)*[`'](\w+)[`']|assignment of (`\w+`\.)*`(\w+)`")


def answer(cursor, sql):
    """Rows with what a client is told of their columns, affected rows, warnings; or the error."""
    import pymysql
    plain = lambda text: NAMED.sub(lambda found: f"of {found[2] or found[4]}", text)  # noqa: E731
    try:
        affected = cursor.execute(sql)
    except pymysql.err.MySQLError as error:
        return error.args[0], plain(str(error.args[1]))
    rows, fields = cursor.fetchall(), []
    for field in cursor._result.fields if cursor.description else ():
        if field.type_code == 254 and field.length in (60, 144, 156):
            fields.append((field.name, field.type_code, field.charsetnr, field.length, field.flags & ~0x5081))
    cursor.execute("SHOW WARNINGS")
    # MariaDB warns of a bad value that it had to convert twice, once as of a type; a bad constant once or for each row.
    warnings = {(code, plain(text)) for _, code, text in cursor.fetchall()}
    twice = {code for code, _ in warnings if code == 4078}
    return rows, fields, affected, {pair for pair in warnings if not twice or pair[0] == 4078}


def statements(directory):
    """Each statement answers the same, whatever the engine."""
    servers = [MariaDB(directory, "--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--skip-log-bin"),
               *(Omnibus(f"{directory}/{engine}", "--dialect=mariadb", f"--default-storage-engine={engine}") for engine in ("LSM", "BTREE"))]
    for server in servers[1:]:
        pathlib.Path(server.directory).mkdir()
    cursors = []
    for server in servers:
        server.start()
        cursors.append(connect(server, charset="utf8mb4", autocommit=True).cursor())
        for sql in ("CREATE DATABASE d", "USE d", TABLE, ROWS):
            cursors[-1].execute(sql)
    for sql in STATEMENTS:
        theirs, *ours = [answer(cursor, sql) for cursor in cursors]
        for mine in ours:
            unlike = [pair for pair in zip(mine, theirs) if pair[0] != pair[1]]
            expect(mine == theirs, f"{sql}: here and on MariaDB\n" + "\n".join(f"  {mine}\n  {theirs}" for mine, theirs in unlike))
    # Random values, in the order of an index and without one, as MariaDB has them.
    chance = random.Random(7)
    texts = [bytes(chance.choice((0, 0, 0x10, 0x7f, 0x80, 0xff, chance.randrange(256))) for _ in range(16)) for _ in range(2000)]
    for cursor in cursors:
        cursor.execute("CREATE TABLE r (id INT PRIMARY KEY, u UUID, b INET6, a INET4, KEY (u), KEY (b), KEY (a))")
        for at in range(0, len(texts), 500):
            cursor.execute("INSERT IGNORE INTO r VALUES " + ", ".join(f"({at + n}, '{v.hex()}', x'{v.hex()}', x'{v[:4].hex()}')" for n, v in enumerate(texts[at:at + 500])))
    for column in "uba":
        for sql in (f"SELECT id, {column} FROM r FORCE INDEX ({column}) WHERE {column} IS NOT NULL ORDER BY {column}, id",
                    f"SELECT id, CONCAT({column}) FROM r IGNORE INDEX ({column}) ORDER BY {column}, id",
                    f"SELECT COUNT(*) FROM r x JOIN r y USING ({column})", f"SELECT {column}, COUNT(*) FROM r GROUP BY {column} ORDER BY {column}"):
            found = []
            for cursor in cursors:
                cursor.execute(sql)
                found.append(cursor.fetchall())
            expect(found[0] == found[1] == found[2], f"{sql}: {[pair for pair in zip(*found) if len(set(pair)) > 1][:2]}")
    restart(servers[1], kill=True)
    expect(query(servers[1], "SELECT COUNT(*) AS n FROM d.r WHERE u IS NOT NULL")[0]["n"] > 1000, "rows are there after a crash")
    for server in servers:
        server.stop()


def both_ways(directory):
    """From MariaDB to ours of either dialect, from ours to MariaDB; statements, rows with and without a key, MINIMAL images, FULL metadata."""
    theirs, mysql, maria, back = there_and_back(directory)
    client(theirs, f"CREATE DATABASE d; USE d; {TABLE}; {ROWS}; CREATE TABLE l LIKE t; INSERT INTO l SELECT * FROM t; CREATE TABLE w (u UUID, a INET4, b INET6)")
    for number, settings in enumerate(("binlog_format = ROW", "binlog_format = STATEMENT", "binlog_format = ROW, binlog_row_image = MINIMAL")):
        client(theirs, f"""USE d; SET {settings}; INSERT INTO w SELECT u, a, b FROM t; UPDATE w SET a = '10.0.0.0', b = '::' WHERE a = '9.0.0.1';
            UPDATE t SET b = '::{number}' WHERE u = '00112233445566778899aabbccddeeff';
            DELETE FROM w WHERE u = '6d1a000011111222b333444455556667' OR b = '::1'; INSERT INTO t (u, b) VALUES (CAST('{str(number) * 32}' AS UUID), '::ff{number}')""")
    client(theirs, "SET GLOBAL binlog_row_metadata = FULL; USE d; INSERT INTO w VALUES ('01000000000070000000000000000000', '1.0.0.0', '1::'); DELETE FROM t WHERE a = '9.0.0.1'")
    for replica in (mysql, maria):
        wait_caught_up(replica, theirs)
        expect_equal(theirs, replica, least_rows=40)
    wait_caught_up(back, maria)
    expect_equal(theirs, back, least_rows=40)
    # Ours as a source, and the files of both, event by event.
    client(maria, f"CREATE DATABASE own; USE own; {TABLE}; {ROWS}; UPDATE t SET u = '{'3' * 32}' WHERE a = '127.0.0.1'; ALTER TABLE t ADD x INET6 DEFAULT '::1'; DELETE FROM t WHERE b = '::'")
    wait_caught_up(back, maria)
    expect_equal(maria, back, least_rows=50)
    # A table with such columns is altered in the dialect that has no name for them, too; a new one is refused there.
    client(mysql, "STOP REPLICA; ALTER TABLE d.w ADD i INT, ADD KEY (u); INSERT INTO d.w (u, i) VALUES ('ffffffffffffffffffffffffffffffff', 1)")
    refused = client(mysql, "CREATE TABLE d.x (u UUID)", check=False).stderr.decode()
    expect("1235" in refused and "UUID" in refused, refused)
    restart(mysql, kill=True)
    expect(query(mysql, "SELECT i FROM d.w WHERE u = 'ffffffff-ffff-ffff-ffff-ffffffffffff' AND i = 1") == [{"i": 1}], "found by the new index")
    for server in (theirs, back, mysql, maria):
        server.stop()


if __name__ == "__main__":
    run_chosen("fixed_types", [statements, both_ways])
