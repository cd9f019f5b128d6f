#!/usr/bin/python3
"""MEMORY-1: what a client without privileges can make the server keep: each is refused, or costs what the limit allows, while others go on.

The server has a limit of 64 MiB on all of it; each of these would take many times as much.

Ring: gate.
"""

import itertools
import pathlib
import struct
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql
from hunger import CAPACITY_EXCEEDED, EXECUTE, MIB, STUCK_S, Half, Hungry, Watch
from omnibus import Omnibus, Scratch, Session, error_code, expect, wait_for

LIMIT = 64 * MIB
# What the process may have at most: the limit, engines, log, what the allocator has not given back.
CEILING = 320 * MIB


# Prepares long statements that are right and wrong by turns.
AGAIN = """CREATE PROCEDURE own.again(times INT)
BEGIN
    DECLARE CONTINUE HANDLER FOR 1054 SET @wrong = @wrong + 1;
    SET @list = REPEAT(', 1', 1000), @wrong = 0;
    WHILE times > 0 DO
        SET @text = CONCAT('SELECT 1 IN (0', @list, ') INTO @found'), times = times - 1;
        PREPARE one FROM @text;
        EXECUTE one;
        DEALLOCATE PREPARE one;
        SET @text = CONCAT('SELECT wrong IN (0', @list, ') FROM own.t');
        PREPARE one FROM @text;
    END WHILE;
END"""


def hungry(server, **more):
    return Hungry(server, user="hungry", database="own", **more)


def refuses_all(session, *statements):
    for sql in statements:
        expect(session.refused(sql), f"{sql[:150]}: was not refused")
        yield sql[:50]


def settled(server):
    """Who is gone holds nothing."""
    session = Session(server)
    held = lambda: int(session("SHOW GLOBAL STATUS LIKE 'Global_connection_memory'")[0][1])  # noqa: E731
    wait_for(lambda: held() < MIB, lambda: f"{held()} bytes are held by nobody", timeout=30)
    session.close()


def documents(server):
    session = hungry(server)
    text, small = "REPEAT('x', 8000000)", "REPEAT('x', 4000)"
    nested = "JSON_ARRAY(" * 60 + text + f", {text})" * 60
    session("SET @doc = CONCAT('[', REPEAT('[1],', 50000), '1]')")
    session(f"SET @flat = JSON_ARRAY({', '.join([text] * 2)})")
    yield from refuses_all(
        session,
        f"SELECT LENGTH(JSON_ARRAY({', '.join([text] * 150)}))",
        f"SELECT LENGTH(JSON_OBJECT({', '.join(f'{n}, {text}' for n in range(150))}))",
        f"SELECT LENGTH(JSON_OBJECT({', '.join(f'CONCAT({n}, {small}), 1' for n in range(30000))}))",
        f"SELECT LENGTH({nested})",
        f"SELECT LENGTH(JSON_ARRAY({', '.join([small] * 20000)}))",
        f"SELECT LENGTH(JSON_EXTRACT(@doc, {', '.join(['$'] * 500)}))".replace("$", "'$'"),
        "SELECT JSON_LENGTH(CONCAT('[', REPEAT('[1],', 4000000), '1]'))",
        "SELECT JSON_VALID(CONCAT('[', REPEAT('{},', 4000000), '1]'))",
        f"SELECT LENGTH(JSON_MERGE_PRESERVE({', '.join(['@doc'] * 500)}))",
        f"SELECT LENGTH(JSON_ARRAY({', '.join(['@doc'] * 20)}, {', '.join(['CAST(@doc AS JSON)'] * 200)}))",
        "SELECT LENGTH(JSON_PRETTY(CONCAT(REPEAT('[', 99), REPEAT('1,', 1000000), '1', REPEAT(']', 99))))",
        "SELECT COUNT(*) FROM JSON_TABLE(CONCAT('[', REPEAT('[1],', 4000000), '1]'), '$[*]' COLUMNS (a INT PATH '$')) t")
    expect(session("SELECT JSON_LENGTH(@doc), JSON_LENGTH(@flat)") == ((50001, 2),), "documents that fit")
    session.close()


def rows(server):
    session = hungry(server)
    yield from refuses_all(
        session,
        "SELECT " + ", ".join(["REPEAT('x', 8000000)"] * 60),
        "SELECT " + ", ".join(["REPEAT('x', 200000)"] * 2000),
        "SELECT " + ", ".join(["REPEAT('x', 20000)"] * 4000),
        f"SELECT LENGTH(CONCAT({', '.join(['REPEAT(1, 2000)'] * 50000)}))",
        f"SELECT LENGTH(CONCAT({', '.join(['SPACE(8000000)'] * 60)}))",
        f"SELECT GREATEST({', '.join(['SPACE(800000)'] * 600)})",
        f"SELECT LENGTH(EXPORT_SET(-1, SPACE(800000), SPACE(800000), SPACE(100000), 64))",
        "SELECT LENGTH(HEX(HEX(HEX(SPACE(8000000)))))",
        "SELECT LENGTH(REPLACE(SPACE(100000), ' ', SPACE(1000)))",
        "SELECT LENGTH(REGEXP_REPLACE(SPACE(30000), ' ', SPACE(2000)))",
        "SELECT LENGTH(LPAD('', 60000000, 'xy'))",
        "SELECT LENGTH(UNCOMPRESS(COMPRESS(SPACE(40000000))))")
    session.close()


def long_texts(server):
    """Trees are larger than their texts."""
    session = hungry(server)
    yield from refuses_all(
        session,
        "SELECT 1 IN (" + "1," * 1000000 + "1)",
        "SELECT " + "-" .join(["1"] * 100) + " FROM DUAL WHERE 1 IN (" + "1+1," * 500000 + "1)",
        "DO " + ",".join(["'a'"] * 1000000),
        "SELECT STATEMENT_DIGEST_TEXT(CONCAT('DO 1', REPEAT(',1', 4000000)))",
        "INSERT INTO own.t VALUES " + ",".join(["(1)"] * 1000000))
    expect(session.value("SELECT LENGTH('" + "x" * 8_000_000 + "')") == 8_000_000, "one long word")
    for n in range(200):
        session("DO " + ",".join(["'a'"] * 500) + f", {n}")
        session("DO " + ",".join(["'a'"] * 500) + f", {n}")
    yield "texts that are kept"
    held = int(session("SHOW GLOBAL STATUS LIKE 'Global_connection_memory'")[0][1])
    expect(held < MIB, f"{held} bytes are held by who has run statements and runs none")
    session.close()


def long_data(server):
    session = hungry(server)
    piece = b"x" * MIB
    number = session.prepare("SELECT LENGTH(?), LENGTH(?)")
    for param in (0, 1):
        for _ in range(300):
            session.long_data(number, param, piece)
    expect(error_code(lambda: session.execute_long(number, 2)) == CAPACITY_EXCEEDED, "600 MB of parameters")
    yield "long data of one statement"
    for number in [session.prepare("SELECT LENGTH(?)") for _ in range(200)]:
        for _ in range(3):
            session.long_data(number, 0, piece)
    expect(error_code(lambda: session.execute_long(number, 1)) == CAPACITY_EXCEEDED, "the last of 200 statements")
    session.close()
    settled(server)
    yield "long data of many statements"
    session = hungry(server)
    number = session.prepare("SELECT LENGTH(?)")
    for _ in range(20):
        for _ in range(8):
            session.long_data(number, 0, piece)
        session.execute_long(number, 1)
        # A column, its end, a row, and theirs.
        expect(8 * MIB == int.from_bytes([session.db._read_packet()._data for _ in range(4)][2][2:6], "little"), "its length")
    yield "long data that is used"
    session.close()


def prepared(server):
    text = "SELECT LENGTH('" + "x" * (4 * MIB) + "')"
    session = hungry(server)
    kept = 0
    while kept < 60 and error_code(lambda: session.prepare(text), but={CAPACITY_EXCEEDED}) == 0:
        kept += 1
    expect(4 <= kept < 16, f"{kept} texts of 4 MB fit")
    yield "prepared by the protocol"
    for number, _ in session.statements[:4]:
        session.close_statement(number)
    session.prepare(text)
    session.close()
    settled(server)
    session = hungry(server)
    session(f"SET @text = '{text.replace(chr(39), chr(39) * 2)}'")
    kept = 0
    while kept < 60 and not session.refused(f"PREPARE s{kept} FROM @text"):
        kept += 1
    expect(4 <= kept < 16, f"{kept} texts of 4 MB fit")
    yield "prepared by name"
    for n in range(4):
        session(f"DEALLOCATE PREPARE s{n}")
    session("PREPARE s0 FROM @text")
    expect(session.value("SELECT @@max_prepared_stmt_count") == 16382, "max_prepared_stmt_count")
    session.close()
    settled(server)
    session = hungry(server)
    many = "SELECT " + ", ".join("?" * 200)
    kept = 0
    while kept < 10000 and error_code(lambda: session.prepare(many), but={CAPACITY_EXCEEDED}) == 0:
        kept += 1
        yield "many small ones"
    expect(100 < kept < 1000, f"{kept} statements of 200 parameters fit 64 MiB")
    session.close()
    session = hungry(server)
    # One after the other, each a MiB, and half of them with an error.
    expect(not session.refused("CALL own.again(200)"), "a procedure that prepares 400 statements and keeps none")
    yield "prepared by a procedure"
    session.close()


def halves(server):
    connections = [Half(server, 12 * MIB, 0xFFFFFF, user="hungry") for _ in range(60)]
    refused = lambda: sum(half.was_refused() for half in connections)  # noqa: E731
    expect(refused() > 30, f"{refused()} of 60 packets of 12 MB were refused")
    yield "halves of packets"
    for half in connections:
        half.close()
    settled(server)
    session = hungry(server)
    expect(session.value(f"SELECT LENGTH('{'x' * 8_000_000}')") == 8_000_000, "a whole packet")
    session.close()


def locks(server):
    session = hungry(server)
    took = []
    for first in range(0, 16000, 2000):
        begun = time.monotonic()
        session("DO " + ", ".join(f"GET_LOCK('lock number {n}', 0)" for n in range(first, first + 2000)))
        took.append(time.monotonic() - begun)
        yield "user locks"
    print(f"  2,000 user locks: {took[0]:.3f} s at first, {took[-1]:.3f} s at 16,000", flush=True)
    # Looking through all of them would make it eight times as long.
    expect(min(took[-4:]) < 4 * min(took[:4]), f"2,000 locks by name take {took}")
    for first in range(16000, 400000, 2000):
        if session.refused("DO " + ", ".join(f"GET_LOCK('lock number {n}', 0)" for n in range(first, first + 2000))):
            break
        yield "user locks"
    else:
        expect(False, "400,000 locks by name fit 64 MiB")
    expect(session.value("SELECT RELEASE_ALL_LOCKS()") > 16000, "locks by name")
    expect(session.value("SELECT GET_LOCK('one more', 0)") == 1, "after all went")
    session.close()


def savepoints(server):
    """As many as a limit of a session holds, each at once."""
    root = Session(server)
    root(f"SET GLOBAL connection_memory_limit = {8 * MIB}")
    session = hungry(server)
    root("SET GLOBAL connection_memory_limit = DEFAULT")
    root.close()
    session("START TRANSACTION")
    made = next(n for n in itertools.count() if session.refused(f"SAVEPOINT `{n:0>60}`"))
    expect(10_000 < made < 8 * MIB // 60, f"{made} savepoints fit 8 MiB")
    yield "savepoints"
    session(f"ROLLBACK TO SAVEPOINT `{made // 2:0>60}`")
    session.fails(f"RELEASE SAVEPOINT `{made // 2 + 1:0>60}`", 1305)
    again = next(n for n in itertools.count() if session.refused(f"SAVEPOINT `again {n:0>54}`"))
    expect(abs(again - made // 2) < 1000, f"{again} of {made} fit again")
    session(f"SAVEPOINT `{0:0>60}`")
    session.fails("ROLLBACK TO SAVEPOINT nosuch", 1305)
    session("ROLLBACK")
    session.fails(f"RELEASE SAVEPOINT `{0:0>60}`", 1305)
    session.close()


def other_things(server):
    session = hungry(server)
    session("SET SESSION sql_mode = ''")
    # A message that has the value which it complains of.
    session("SELECT " + ", ".join(["DATE(CONCAT('2001-01-01 ', REPEAT('x', 50000)))"] * 300))
    yield "messages"
    columns = ", ".join(f"c{n} INT" for n in range(1000))
    for n in range(400):
        if session.refused(f"CREATE TEMPORARY TABLE t{n} ({columns})"):
            break
        yield "temporary tables"
    else:
        expect(False, "400 temporary tables of 1,000 columns fit 64 MiB")
    expect(n > 3, f"{n} temporary tables of 1,000 columns")
    session.close()
    # A connection that has nothing to do keeps no text.
    idle = [hungry(server) for _ in range(30)]
    for session in idle:
        session.refused("DO '" + "x" * (12 * MIB) + "'")
        yield "idle ones"
    for session in idle:
        session.close()


def functions(server):
    """What is read or made is many times as long as the text that says so."""
    session = hungry(server, use_unicode=False, conv={})
    yield from refuses_all(
        session,
        "SELECT EXTRACTVALUE('<a/>', CONCAT(REPEAT('a/', 6000000), 'a'))",
        "SELECT EXTRACTVALUE('<a/>', CONCAT('a', REPEAT('[1]', 5000000)))",
        "SELECT LENGTH(WEIGHT_STRING(REPEAT('\ufdfa', 2000000) COLLATE utf8mb4_0900_ai_ci))",
        "SELECT LENGTH(WEIGHT_STRING(REPEAT('\ufdfa', 2000000) COLLATE utf8mb4_0900_as_cs))",
        "SELECT LENGTH(DATE_FORMAT(NOW(), REPEAT('%W', 9000000)))",
        "SELECT LENGTH(DATE_FORMAT(NOW(), REPEAT('%r', 9000000)))",
        "SELECT GREATEST(" + ", ".join(["CAST('a' AS BINARY(60000000))"] * 16) + ")",
        "SELECT GTID_SUBSET(CONCAT('3E11FA47-71CA-11E1-9E33-C80AA9429562:1', REPEAT(':3', 9000000)), '')")
    # No path has so many steps, whatever memory there is.
    for path in ("REPEAT('.a', 8000000)", "REPEAT('[1]', 6000000)"):
        session.fails(f"SELECT JSON_EXTRACT('[]', CONCAT('$', {path}))", 3143)
        yield "paths"
    # Each schema that a dependency names looked at a copy of the object.
    session("SET @doc = CONCAT('{\"a\":[1', REPEAT(',1', 200000), ']}')")
    session.fails("SELECT JSON_SCHEMA_VALID('{\"dependencies\":{\"a\":{\"$ref\":\"#\"}}}', @doc)", 3157)
    yield "dependencies"
    session.close()


def attributes(server):
    """Query attributes have a type and no more; bound with a statement they stay."""
    count = 2_000_000
    head = struct.pack("<BI", 0xFD, count)[:4]
    bound = bytes((count + 7) // 8 - 1) + b"\xff\1" + b"\6\0\0" * count
    for last in (False, True):
        db = Attributed(unix_socket=server.socket, user="hungry", max_allowed_packet=64 * MIB)
        session = Hungry.__new__(Hungry)
        session.db, session.statements, db.plain = db, [], False
        if last:
            number = session.prepare("SELECT 1")
            session.command(EXECUTE, struct.pack("<IBI", number, 8, 1) + head + bound)
        else:
            session.command(3, head + b"\1" + bound + b"DO 1")
        code = error_code(session.db._read_packet)
        expect(code == CAPACITY_EXCEEDED, f"{count} attributes: {code}")
        db._force_close()
        yield "query attributes"


class Attributed(pymysql.connections.Connection):
    """A client of the protocol with query attributes: each text has some, or says that there are none."""

    plain = True

    def __init__(self, **more):
        super().__init__(client_flag=1 << 27, **more)

    def _execute_command(self, command, sql):
        if command == 3 and self.plain:
            sql = b"\0\1" + (sql.encode() if isinstance(sql, str) else sql)
        super()._execute_command(command, sql)


def catalog(server):
    """Rows of the server's own tables are as long as what accounts have defined."""
    session = hungry(server)
    labels = ",".join(f"'{n:04d}{'x' * 240}'" for n in range(200))
    for n in range(8):
        session(f"CREATE TABLE own.wide{n} ({', '.join(f'c{at} ENUM({labels})' for at in range(20))})")
    tables = " JOIN ".join(f"information_schema.columns c{n}" for n in range(8))
    yield from refuses_all(session, f"SELECT COUNT(*) FROM {tables} WHERE c1.ordinal_position + c2.ordinal_position + c3.ordinal_position < 0")
    expect(len(session("SHOW FULL COLUMNS FROM own.wide7")) == 20, "those of one table")
    locks = ", ".join(f"own.wide0 AS a{n:0>40} READ" for n in range(3000))
    before = session.value("SELECT 1")
    expect(before == 1 and not session.refused(f"LOCK TABLES {locks}"), "many names of a table")
    held = Session(server)
    kept = int(held("SHOW GLOBAL STATUS LIKE 'Global_connection_memory'")[0][1])
    expect(kept > 3000 * 100, f"{kept} bytes are counted while 3,000 tables are locked")
    session("UNLOCK TABLES")
    for n in range(8):
        session(f"DROP TABLE own.wide{n}")
    session.close()
    held.close()


def definitions(server):
    """Definitions are the server's: those that fit are there and used, one more is refused, and statements have their half of the limit."""
    session, status = hungry(server), Session(server)
    held = lambda: int(status("SHOW GLOBAL STATUS LIKE 'Omnibus_definition_memory'")[0][1])  # noqa: E731
    before = held()
    wide = ", ".join(f"c{n} INT DEFAULT ({n} + {n}) COMMENT '{'x' * 20}'" for n in range(1000))
    for n in range(100):
        if session.refused(f"CREATE TABLE own.wide{n} (id INT, {wide})"):
            break
        yield "wide tables"
    expect(10 < n < 99, f"{n} tables of 1,000 columns fit a half of 64 MiB")
    expect(held() < LIMIT // 2 + MIB, f"definitions hold {held()} bytes")
    said = status("SELECT current_number_of_bytes_used FROM performance_schema.memory_summary_global_by_event_name"
                  " WHERE event_name = 'memory/sql/definitions'")
    expect(said == ((held(),),), f"performance_schema says {said}, the status {held()}")
    sums = ", ".join(["c1"] * 30000)
    view = f"CREATE VIEW own.sums AS SELECT CONCAT({sums}) AS a FROM own.wide0"
    more = ", ".join(f"ADD CHECK (c1 NOT IN ({', '.join(['1'] * 2000)}))" for n in range(60))
    yield from refuses_all(session, view, f"ALTER TABLE own.wide1 {more}", f"CREATE PROCEDURE own.long() BEGIN {'SET @a = 1; ' * 200000} END")
    session("INSERT INTO own.wide0 (id) VALUES (1)")
    expect(session("SELECT id, c7 FROM own.wide0") == ((1, 14),), "a table that is there")
    expect(session.value(f"SELECT LENGTH(REPEAT('x', {16 * MIB}))") == 16 * MIB, "statements have a half")
    session("ALTER TABLE own.wide0 DROP COLUMN c8")
    for at in range(n):
        session(f"DROP TABLE own.wide{at}")
    expect(held() == before, f"definitions hold {held()} bytes, {before} before")
    yield "dropped"
    session(view.replace("wide0", "t").replace("c1", "id"))
    session("DROP VIEW own.sums")
    yield "a large view"
    session.close()
    status.close()


def called(server):
    """What a session keeps of the programs that it has called goes where there is no room for more."""
    session = hungry(server)
    for n in range(80):
        session(f"CREATE PROCEDURE own.called{n}() BEGIN IF @never THEN {'SET @a = 1; ' * 1500} END IF; END")
    for n in range(80):
        session(f"CALL own.called{n}()")
        yield "procedures"
    session("DROP PROCEDURE own.called0")
    for n in range(1, 80):
        session(f"DROP PROCEDURE own.called{n}")
    session.close()


def names(server):
    """Names that stand for expressions whose names stand for others: a short text is one that no memory holds, or no stack."""
    session = hungry(server)
    session("CREATE TABLE own.n (a BIGINT)")
    session("CREATE VIEW own.n0 AS SELECT a FROM own.n")
    for level in range(1, 40):
        if session.refused(f"CREATE VIEW own.n{level} AS SELECT a + a AS a FROM own.n{level - 1}"):
            break
        yield "views of sums"
    expect(10 < level < 30, f"{level} levels of sums fit 64 MiB")
    for at in range(level):
        session(f"DROP VIEW own.n{at}")
    session("CREATE VIEW own.n0 AS SELECT a FROM own.n")
    deep = "".join([" + 1"] * 300)
    for level in range(1, 60):
        if error_code(lambda: session(f"CREATE VIEW own.n{level} AS SELECT a{deep} AS a FROM own.n{level - 1}"), but={1436, CAPACITY_EXCEEDED}):  # noqa: B023
            break
        yield "views of long sums"
    expect(error_code(lambda: session("SELECT 1"), but=set()) == 0, "the session goes on")
    copies = "SELECT CONCAT(" + ", ".join(["a"] * 3000) + ") AS b FROM own.n ORDER BY CONCAT(" + ", ".join(["b"] * 3000) + ")"
    yield from refuses_all(session, copies)
    yield "an alias many times"
    session("DROP TABLE own.n")
    for at in range(level):
        session(f"DROP VIEW own.n{at}")
    session.close()


def branches(server):
    """Prepared branches are nobody's, and count."""
    root = Session(server)
    root(f"SET GLOBAL global_connection_memory_limit = {MIB}")
    session = hungry(server)
    session("CREATE TABLE own.b (id INT PRIMARY KEY)")
    for count in range(10_000):
        session.run(f"XA START 'b{count}'", f"INSERT INTO own.b VALUES ({count})", f"XA END 'b{count}'")
        if session.refused(f"XA PREPARE 'b{count}'"):
            break
        yield "prepared branches"
    expect(100 < count < 1000, f"{count} prepared branches fit 1 MiB")
    session(f"XA ROLLBACK 'b{count}'")
    yield "a branch that was not prepared"
    root(f"SET GLOBAL global_connection_memory_limit = {LIMIT}")
    root.close()
    session.close()
    other = hungry(server)
    held = int(other("SHOW GLOBAL STATUS LIKE 'Global_connection_memory'")[0][1])
    expect(held > count * 1024, f"{held} bytes are counted for {count} branches of a session that has gone")
    for at in range(count):
        other(f"XA {'COMMIT' if at % 2 else 'ROLLBACK'} 'b{at}'")
    expect(other.value("SELECT COUNT(*) FROM own.b") == count // 2, "what was committed")
    other("DROP TABLE own.b")
    other.close()


def transactions(server):
    """What open transactions hold counts from its first pages on, and the last row of a statement with them: there may be thousands."""
    root = Session(server)
    held = lambda: int(root("SHOW GLOBAL STATUS LIKE 'Global_connection_memory'")[0][1])  # noqa: E731
    root.run("CREATE TABLE own.open (id INT PRIMARY KEY, v LONGTEXT)", "CREATE TABLE own.long (v LONGTEXT)",
             "INSERT INTO own.long VALUES (REPEAT('x', 200000))")
    opened = [hungry(server) for _ in range(50)]
    idle = held()
    for at, session in enumerate(opened):
        session.run("BEGIN", f"INSERT INTO own.open SELECT {at}, v FROM own.long")
        yield "one row each"
    expect(held() - idle > 50 * 200_000, f"{held() - idle} bytes are counted for 50 open transactions of 200 KB")
    for session in opened:
        session("ROLLBACK")
    expect(held() < idle + MIB, f"{held() - idle} bytes are counted behind 50 rollbacks")
    for session in opened:
        session("BEGIN")
        for at in range(20):
            session(f"INSERT INTO own.open SELECT CONNECTION_ID() * 100 + {at}, LEFT(v, 2000) FROM own.long")
        yield "twenty rows each"
    expect(held() - idle > 50 * 40_000, f"{held() - idle} bytes are counted for 50 open transactions of 40 KB")
    for session in opened:
        session.close()
    wait_for(lambda: held() < idle - 49 * 16384, lambda: f"{held()} bytes are counted when all have gone, {idle} when they did nothing")
    root("DROP TABLE own.open, own.long")
    root.close()


def others(server):
    """Who holds less goes on below and beyond the limit, and the largest gives way: its statement, and no other."""
    largest, smaller = hungry(server), [hungry(server) for _ in range(2)]
    for n in range(4):
        largest(f"SET @held{n} = REPEAT('x', {12 * MIB})")
    ended = []
    counting = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 999) SELECT COUNT(*) FROM n a, n b, n c WHERE a.i + b.i + c.i < 0"
    thread = threading.Thread(target=lambda: ended.append(error_code(lambda: largest(counting))))
    thread.start()
    look = Session(server)
    wait_for(lambda: look.value("SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'WITH RECURSIVE%'"), "the count does not run")
    for n, session in enumerate(smaller):
        expect(not session.refused(f"SET @held = REPEAT('y', {4 * MIB})"), f"session {n} was refused what another holds")
        yield "a smaller one"
    # Until there is no room at all, which the count may not wait for.
    for n in range(20):
        if smaller[0].refused(f"SET @more{n} = REPEAT('y', {MIB})"):
            break
    thread.join(STUCK_S)
    expect(ended == [CAPACITY_EXCEEDED], f"the statement of the session that holds most: {ended}")
    expect(largest.refused(f"SET @more = REPEAT('x', {MIB})"), "the largest grows")
    yield "the largest"
    largest.close()
    # The server ends who has gone when it comes to it.
    wait_for(lambda: not smaller[0].refused(f"SET @more = REPEAT('x', {16 * MIB})"), "there is no room although the largest has gone")
    for session in (look, *smaller):
        session.close()


def run(parts):
    """Some parts one after the other, on a server of their own."""
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking", f"--global-connection-memory-limit={LIMIT}", "--sync-binlog=0",
                         "--lsm-memtable-size=8M", "--lsm-block-cache-size=16M", "--max-allowed-packet=64M", "--max-connections=400")
        server.start()
        root = Session(server)
        root.run("CREATE DATABASE d", "CREATE DATABASE own", "CREATE TABLE d.point (id INT PRIMARY KEY)", "INSERT INTO d.point VALUES (7)",
                 "CREATE TABLE own.t (id INT)", AGAIN, "CREATE USER hungry@localhost", "GRANT ALL ON own.* TO hungry@localhost")
        watch = Watch(server, CEILING)
        watch.start()
        for part in parts:
            for what in part(server):
                expect(watch.peak < CEILING, f"{part.__name__}, {what}: the server had {watch.peak // MIB} MiB")
            settled(server)
            print(f"{part.__name__} ok, {watch.peak // MIB} MiB at most", flush=True)
        watch.end()
        root.close()
        server.stop()


def main():
    named = lambda parts: [part for part in parts if not sys.argv[1:] or part.__name__ in sys.argv[1:]]  # noqa: E731
    # Definitions take from the limit what statements of others would have.
    for parts in ((documents, rows, long_texts, long_data, prepared, halves, locks, savepoints, other_things, functions, attributes, called, names, transactions, others), (catalog,), (definitions,), (branches,)):
        if named(parts):
            run(named(parts))


if __name__ == "__main__":
    main()
