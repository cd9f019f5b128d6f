#!/usr/bin/python3
"""No statement freezes the server: beside statements that would run for hours others log in, read and KILL at once, and each of
them ends at once for KILL QUERY, KILL CONNECTION, max_execution_time and SIGTERM, wherever it spends its time.

Ring: gate.
"""

import contextlib
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, connect, error_code, expect, wait_for  # noqa: E402
import pymysql  # noqa: E402

ROWS = 4000
# Statements at once: many more than processors. A thousand act the same, after a minute of logins.
CROWD = 120
# What others wait for at most, beside what the machine itself makes them wait (`Probe.calm`): the statements run for hours, and a tenth of a
# second is what is seen on an idle machine.
PATIENCE_S = 3.0
# When a statement must have ended; 0.1 s where nothing else runs.
END_S = 10.0


def run(db, sql):
    with db.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def many(count, text, between=", "):
    return between.join(text.format(n=n) for n in range(count))


def long_text(piece, count):
    """A text that is computed for each row, so that no plan has it as a constant."""
    return f"REPEAT('{piece}', {count} + a.k * 0)"


# Statements that take hours. `t` has some thousand rows.
READS = {
    "cross join": "SELECT COUNT(*) FROM t a, t b, t c",
    "join by expressions": "SELECT COUNT(*) FROM t a JOIN t b ON a.k + b.k = -1 JOIN t c ON c.k = b.k + 7",
    "outer joins": "SELECT COUNT(*) FROM t a LEFT JOIN t b ON a.k + b.k > 0 LEFT JOIN t c ON b.k + c.k > 0",
    "derived tables": f"SELECT COUNT(*) FROM {many(41, '(SELECT * FROM t) d{n}')}",
    "hash of derived tables": "SELECT COUNT(*) FROM (SELECT 1 x FROM t) a JOIN (SELECT 1 x FROM t) b ON a.x = b.x"
                              " JOIN (SELECT 1 x FROM t) c ON b.x = c.x",
    "scan without a match": "SELECT COUNT(*) FROM t a, t b WHERE (SELECT MAX(c.id) FROM t c WHERE c.k + b.k = -1) = 1",
    "index scans": "SELECT COUNT(*) FROM t a JOIN t b ON b.k > a.k JOIN t c ON c.k > b.k AND CONCAT(a.s, b.s, c.s) = ''",
    "sort": "SELECT a.id FROM t a, t b ORDER BY a.k + b.k, a.s, b.s",
    "sort with a limit": "SELECT a.id FROM t a, t b, t c ORDER BY a.k + b.k LIMIT 10",
    "groups": "SELECT a.id, b.id, COUNT(*) FROM t a, t b GROUP BY a.id, b.id",
    "few groups": "SELECT a.k % 7, SUM(b.k), STD(c.k) FROM t a, t b, t c GROUP BY a.k % 7",
    "distinct aggregate": "SELECT COUNT(DISTINCT a.id, b.id) FROM t a, t b",
    "group_concat": "SELECT LENGTH(GROUP_CONCAT(a.s, b.s ORDER BY b.k)) FROM t a, t b",
    "distinct": "SELECT DISTINCT a.id, b.id FROM t a, t b LIMIT 100000000, 1",
    "having": "SELECT a.id FROM t a, t b, t c HAVING a.id < 0",
    "union": "SELECT a.id, b.id FROM t a, t b UNION SELECT b.id, a.id FROM t a, t b",
    "except": "SELECT a.id, b.id FROM t a, t b EXCEPT SELECT b.id, a.id FROM t a, t b",
    "all": f"SELECT COUNT(*) FROM t a, t b WHERE a.id + b.id < ALL (SELECT id + {10 * ROWS} FROM t)",
    "not in rows": "SELECT COUNT(*) FROM t a, t b WHERE (a.id, b.id) NOT IN (SELECT id, NULLIF(k, k) FROM t)",
    "recursion": "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r",
    "wide recursion": "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r, t WHERE n < 4) SELECT COUNT(*) FROM r",
    "in list": f"SELECT COUNT(*) FROM t a, t b WHERE a.id + b.id IN ({many(100_000, '-{n}')})",
    "nested expression": f"SELECT COUNT(*) FROM t a, t b WHERE {'(' * 60}a.id{' + b.id)' * 60} = -1",
    "benchmark": "SELECT BENCHMARK(1000000000000, MD5('x'))",
    "long benchmark": "SELECT BENCHMARK(1000000000000, REPEAT('x', 100000))",
    "locate": f"SELECT COUNT(*) FROM t a WHERE LOCATE(CONCAT({long_text('a', 200_000)}, 'b'), {long_text('a', 4_000_000)}) > 0",
    "replace": f"SELECT COUNT(*) FROM t a WHERE LENGTH(REPLACE({long_text('ab', 2_000_000)}, 'ba', 'c')) = 1",
    "substring_index": "SELECT COUNT(*) FROM t a WHERE SUBSTRING_INDEX(" + long_text("a", 4_000_000)
                       + f", CONCAT({long_text('a', 200_000)}, 'b'), 2) = ''",
    "like": f"SELECT COUNT(*) FROM t a WHERE {long_text('a', 100_000)} LIKE CONCAT(REPEAT('%a_', 20000), 'b')",
    "regexp": f"SELECT COUNT(*) FROM t a WHERE {long_text('ab', 1_000_000)} REGEXP '(a|b|ab)*[ac]{{1,200}}c$'",
    "large regexp": f"SELECT COUNT(*) FROM t a WHERE {long_text('ab', 1_000_000)} REGEXP '([a-z]{{0,80}}x?){{60}}y'",
    "regexp_replace": f"SELECT COUNT(*) FROM t a WHERE REGEXP_REPLACE({long_text('ab', 1_000_000)}, '([a-z]{{1,3}}b)', '$1') = ''",
    "regexp that goes back": "SELECT COUNT(*) FROM t a, t b WHERE REPEAT('ab', 30 + a.k * b.k * 0) REGEXP '(.*)(.*)\\\\1\\\\2c$'",
    "regexp of rows": "SELECT COUNT(*) FROM t a, t b WHERE a.s REGEXP CONCAT('(', b.k, '|[a-f]{1,200}){1,9}z')",
    "json path": "SELECT COUNT(*) FROM t a WHERE JSON_EXTRACT(CONCAT(" + long_text("[", 90) + ",'1'," + long_text("]", 90)
                 + "), '$**[*]**[*]**[*]**[*]**[*]**.x') = 1",
    "json contains": f"SELECT COUNT(*) FROM t a WHERE JSON_CONTAINS(CONCAT('[', {long_text('1,', 30_000)}, '1]'),"
                     f" CONCAT('[', {long_text('2,', 30_000)}, '2]'))",
    "gtids": "SELECT COUNT(*) FROM t a WHERE GTID_SUBSET(CONCAT('3E11FA47-71CA-11E1-9E33-C80AA9429562', "
             + long_text(":1-5:7", 5_000) + "), '')",
    "information_schema": "SELECT COUNT(*) FROM information_schema.columns a, information_schema.columns b,"
                          " information_schema.columns c, information_schema.columns d",
    "explained": "SELECT COUNT(*) FROM " + many(61, "t t{n}") + " WHERE " + many(60, "t{n}.k + t60.k = t{n}.id", " AND "),
}
WRITES = {
    "insert select": "INSERT INTO sink (id, s) SELECT a.id * 100000 + b.id, b.s FROM t a, t b",
    "insert select nothing": "INSERT INTO sink (id) SELECT a.id FROM t a, t b, t c WHERE a.k + b.k + c.k < 0",
    "create select": "CREATE TABLE made SELECT a.id x, b.id y FROM t a, t b",
    "update": "UPDATE t SET s = 'x' WHERE k + (SELECT COUNT(*) FROM (SELECT a.id FROM t a, t b, t c) d) = -1",
    "delete": "DELETE FROM t WHERE (SELECT COUNT(*) FROM (SELECT * FROM t) a, (SELECT * FROM t) b WHERE a.k + b.k = t.k) < 0",
    "several tables": "UPDATE t a, t b, t c SET a.s = 'x' WHERE a.k + b.k + c.k = -1",
    "do": "DO BENCHMARK(1000000000000, MD5('x'))",
    "set": "SET @a = (SELECT COUNT(*) FROM t a, t b, t c)",
    "set variable": "SET max_error_count = (SELECT COUNT(*) FROM t a, t b, t c)",
    "outfile": "SELECT a.s FROM t a, t b, t c INTO OUTFILE '{dir}/out.txt'",
    "load data": "LOAD DATA INFILE '{dir}/big.txt' INTO TABLE sink (s) SET id = k + BENCHMARK(100000, MD5(s))",
    "alter": "ALTER TABLE big ADD INDEX (s, k)",
    "copy": "ALTER TABLE big ENGINE=BTREE",
    "check": "CHECK TABLE big EXTENDED",
    "checksum": "CHECKSUM TABLE big",
}
# Stored programs whose steps are short, and which handle whatever goes wrong. `p_*` are procedures, `f_*` functions.
GUARD = "DECLARE CONTINUE HANDLER FOR SQLEXCEPTION, SQLWARNING, NOT FOUND BEGIN END;"
BODIES = {
    "signal": "LOOP SIGNAL SQLSTATE '45000'; END LOOP",
    "interruption signalled": "LOOP SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317; END LOOP",
    "select that fails": "LOOP SELECT 1 FROM no_such_table; END LOOP",
    "select of a row": "LOOP SELECT id INTO @x FROM t WHERE id = 7; END LOOP",
    "insert that fails": "LOOP INSERT INTO t (id) VALUES (7); END LOOP",
    "handler that signals": "DECLARE EXIT HANDLER FOR SQLSTATE '45001' BEGIN END; LOOP BEGIN DECLARE CONTINUE HANDLER FOR 1146"
                            " SIGNAL SQLSTATE '45000'; SELECT 1 FROM no_such_table; END; END LOOP",
    "sleep": "LOOP DO SLEEP(0.001); END LOOP",
    "lock by name": "LOOP DO GET_LOCK('mine', 0); DO RELEASE_LOCK('mine'); END LOOP",
    "nothing": "LOOP BEGIN END; END LOOP",
    "set": "LOOP SET @x = 1; END LOOP",
}
PROCEDURES = BODIES | {
    "prepare": "LOOP PREPARE s FROM 'SELECT 1'; END LOOP",
    "execute": "PREPARE s FROM 'SELECT id INTO @x FROM t WHERE id = 7'; LOOP EXECUTE s; END LOOP",
    "execute what fails": "LOOP EXECUTE no_such_statement; END LOOP",
    "execute immediate": "LOOP EXECUTE IMMEDIATE 'SELECT 1 FROM no_such_table'; END LOOP",
    "call by text": "LOOP EXECUTE IMMEDIATE 'CALL nothing()'; END LOOP",
    "variable": "LOOP SET SESSION sort_buffer_size = 300000; END LOOP",
    "kill": "LOOP KILL QUERY 4000000000; END LOOP",
    "show": "LOOP SHOW CREATE TABLE no_such_table; END LOOP",
    "begin and commit": "LOOP START TRANSACTION; COMMIT; END LOOP",
    "call": "LOOP CALL nothing(); END LOOP",
    "recursion": "SET max_sp_recursion_depth = 100; LOOP CALL p_recursion(); END LOOP",
    "cursor": "DECLARE c CURSOR FOR SELECT id FROM t; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION, NOT FOUND BEGIN END;"
              " LOOP OPEN c; CLOSE c; END LOOP",
    "cursor that is closed": "DECLARE v INT; DECLARE c CURSOR FOR SELECT id FROM t;"
                             " DECLARE CONTINUE HANDLER FOR SQLEXCEPTION, NOT FOUND BEGIN END; LOOP FETCH c INTO v; END LOOP",
}
# What ends by itself, at last; until then it is no different from the others.
FINITE = ["alter", "copy", "check", "checksum"]


class Running:
    """A statement that has been sent."""

    def __init__(self, server, sql, *before):
        self.db = connect(server, database="l", autocommit=True, read_timeout=60)
        run(self.db, "SET cte_max_recursion_depth = 4294967295, group_concat_max_len = 4294967295")
        for statement in before:
            run(self.db, statement)
        self.id = self.db.thread_id()
        self.db._execute_command(3, sql)

    def code(self):
        """What it ends with."""
        return error_code(self.db._read_query_result, but=(0, 1317, 3024, 1927, 2013, 2006, 1053, 3698, 3699))

    def ended(self):
        """Seconds until its end, and what it was."""
        begun = time.monotonic()
        return self.code(), time.monotonic() - begun


class Probe:
    """What others notice."""

    def __init__(self, server):
        self.server = server
        self.admin = connect(server, database="l", autocommit=True)
        self.calm = max(self.look() for _ in range(20))

    def look(self):
        """Seconds that the slowest of these takes: a login, a point select, a KILL."""
        times = []
        for step in (lambda: connect(self.server).close(), lambda: run(self.admin, "SELECT s FROM t WHERE id = 7"), self.kill):
            begun = time.monotonic()
            step()
            times.append(time.monotonic() - begun)
        return max(times)

    def kill(self):
        expect(error_code(lambda: run(self.admin, "KILL QUERY 4000000000")) == 1094, "nobody has that number")

    def runs(self, statement):
        """Whether a session has a statement that has been looked at."""
        rows = run(self.admin, f"SELECT command FROM information_schema.processlist WHERE id = {statement.id}")
        return rows and rows[0][0] == "Query"

    def expect_calm(self, what, seconds=0.3):
        allowed = PATIENCE_S + 3 * self.calm
        worst, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            worst = max(worst, self.look())
        expect(worst < allowed, f"{what}: others waited {worst:.3f} s; {allowed:.3f} s are allowed")
        return worst


def end_by(probe, name, running, how, codes):
    """Ends a statement, and looks how long that takes."""
    # What is finite may have ended before anybody sees it.
    wait_for(lambda: name in FINITE or probe.runs(running), f"{name} runs")
    worst = probe.expect_calm(name)
    how()
    code, took = running.ended()
    allowed = END_S + 3 * probe.calm
    expect(code in codes, f"{name}: ended with {code}, not {codes}")
    expect(took < allowed, f"{name}: ended after {took:.2f} s")
    return worst, took


def each_statement_ends(server, probe, directory):
    waits, ends = [], []
    for name, sql in {**READS, **WRITES}.items():
        running = Running(server, sql.replace("{dir}", directory))
        kill = lambda: run(probe.admin, f"KILL QUERY {running.id}")  # noqa: E731
        codes = (1317, 3698, 3699) if "regexp" in name else (1317, 0) if name in FINITE else (1317,)
        worst, took = end_by(probe, name, running, kill, codes)
        waits.append(worst)
        ends.append(took)
        run(running.db, "SELECT 1")
        running.db.close()
        (pathlib.Path(directory) / "out.txt").unlink(missing_ok=True)
        print(f"   {name}: others waited {worst * 1000:.0f} ms, KILL took {took * 1000:.0f} ms", flush=True)
    print(f"   in all: others waited {max(waits) * 1000:.0f} ms at most, KILL took {statistics.median(ends) * 1000:.1f} ms, "
          f"at most {max(ends) * 1000:.0f} ms (calm: {probe.calm * 1000:.0f} ms)")


def the_time_limit_ends_reads(server, probe, _):
    for name, sql in READS.items():
        begun = time.monotonic()
        running = Running(server, sql, "SET max_execution_time = 50")
        code = running.code()
        took = time.monotonic() - begun
        expect(code in ((3024, 3698, 3699) if "regexp" in name else (3024,)), f"{name}: ended with {code}, not 3024")
        # The limit begins behind the parser, which a debug build spends a second in for the longest text.
        parsing = len(sql) / 400_000
        expect(took < END_S + 3 * probe.calm + 0.5 + parsing, f"{name}: ended after {took:.2f} s")
        running.db.close()
    hinted = READS["cross join"].replace("SELECT", "SELECT /*+ BKA(t) max_execution_time( 50 ) */", 1)
    running = Running(server, hinted)
    code = running.code()
    expect(code == 3024, f"{hinted}: ended with {code}, not 3024")
    running.db.close()


def named(kind, name):
    return f"{kind}_{name.replace(' ', '_')}"


def make_programs(db):
    run(db, "CREATE PROCEDURE nothing() BEGIN END")
    for kind, bodies in (("p", PROCEDURES), ("f", BODIES)):
        for name, body in bodies.items():
            guard = "" if "CONTINUE HANDLER FOR SQLEXCEPTION" in body else GUARD
            if body.startswith("DECLARE EXIT"):
                body, guard = body.split("; ", 1)[1], GUARD
            if kind == "p":
                run(db, f"CREATE PROCEDURE {named('p', name)}() BEGIN {guard} {body}; END")
            elif "SELECT 1 FROM no_such_table" not in body:
                run(db, f"CREATE FUNCTION {named('f', name)}() RETURNS INT READS SQL DATA BEGIN {guard} {body}; RETURN 1; END")
    run(db, "CREATE TABLE fired (id INT)")
    run(db, f"CREATE TRIGGER fires BEFORE INSERT ON fired FOR EACH ROW BEGIN {GUARD} LOOP SIGNAL SQLSTATE '45000'; END LOOP; END")


def calls():
    """Statements that run the programs, by name."""
    found = {f"procedure, {name}": f"CALL {named('p', name)}()" for name in PROCEDURES}
    functions = [name for name in BODIES if "SELECT 1 FROM no_such_table" not in BODIES[name]]
    found |= {f"function, {name}": f"SELECT {named('f', name)}()" for name in functions}
    return found | {"trigger": "INSERT INTO fired VALUES (1)", "function in SET": "SET @x = f_signal()",
                    "function in a condition": "UPDATE t SET k = k WHERE f_signal() = 2"}


def programs_end(server, probe, _):
    """Every step of a program looks for an interruption, and no handler catches one."""
    db = connect(server, database="l", autocommit=True)
    make_programs(db)
    for name, sql in calls().items():
        for what in ("QUERY", "CONNECTION"):
            running = Running(server, sql)
            kill = lambda: run(probe.admin, f"KILL {what} {running.id}")  # noqa: E731, B023
            _, took = end_by(probe, f"{name}, KILL {what}", running, kill, (1317,) if what == "QUERY" else (1317, 1927, 2013, 2006))
            if what == "QUERY":
                run(running.db, "SELECT 1")
                running.db.close()
        if sql.startswith("SELECT"):
            begun = time.monotonic()
            running = Running(server, sql, "SET max_execution_time = 50")
            code, took = running.code(), time.monotonic() - begun
            expect(code == 3024 and took < END_S + 3 * probe.calm + 0.5, f"{name}: max_execution_time: {code} after {took:.2f} s")
            running.db.close()
    # An error that only looks like an interruption is a program's own business.
    run(db, "CREATE PROCEDURE own() BEGIN DECLARE EXIT HANDLER FOR 1317 SELECT 'caught';"
            " SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317; END")
    expect(run(db, "CALL own()") == (("caught",),), "SIGNAL of 1317 is caught")
    # Behind a statement that the server runs a program goes on where it may block, however long.
    run(db, "CREATE PROCEDURE goes_on() BEGIN DECLARE i INT DEFAULT 0; SET SESSION sort_buffer_size = 300000;"
            " WHILE i < 60000 DO SET i = i + 1; END WHILE; SELECT i; END")
    expect(run(db, "CALL goes_on()") == ((60000,),), "a long loop behind SET")
    db.close()


def clients_that_go(server, probe, _):
    """A client that has gone ends its statement, whatever that does; a short one is done all the same."""
    holder = connect(server, database="l", autocommit=False)
    run(holder, "SELECT GET_LOCK('held', 0)")
    run(holder, "SELECT * FROM t WHERE id = 1 FOR UPDATE")
    waits = {"row lock": "UPDATE t SET k = k WHERE id = 1", "table lock": "ALTER TABLE t ADD COLUMN y INT",
             "GET_LOCK": "SELECT GET_LOCK('held', -1)", "SLEEP": "SELECT SLEEP(1000)",
             "GTIDs": "SELECT WAIT_FOR_EXECUTED_GTID_SET('3E11FA47-71CA-11E1-9E33-C80AA9429562:1', 1000)"}
    long = {name: READS[name] for name in ("cross join", "recursion", "sort", "benchmark", "regexp of rows") if name in READS}
    long |= {name: WRITES[name] for name in ("insert select", "load data") if name in WRITES}
    for name, sql in {**waits, **long, "signals": "CALL p_signal()", "prepares": "CALL p_prepare()"}.items():
        running = Running(server, sql.replace("{dir}", str(server.directory)))
        wait_for(lambda: probe.runs(running), f"{name} runs")
        begun = time.monotonic()
        running.db._force_close()
        wait_for(lambda: not run(probe.admin, f"SELECT 1 FROM information_schema.processlist WHERE id = {running.id}"), f"{name} ends")
        took = time.monotonic() - begun
        expect(took < END_S + 0.5 + 3 * probe.calm, f"{name}: ended {took:.2f} s after its client had gone")
        print(f"   {name}: {took * 1000:.0f} ms", flush=True)
    holder.close()
    for n in range(20):
        running = Running(server, f"INSERT INTO sink (id) VALUES ({-100 - n})")
        running.db._force_close()
    wait_for(lambda: run(probe.admin, "SELECT COUNT(*) FROM sink WHERE id <= -100") == ((20,),), "short statements are done")
    run(probe.admin, "DELETE FROM sink WHERE id <= -100")


def eight_at_once(server, probe, _):
    names = list(READS)
    for at in range(0, len(names), 8):
        group = [Running(server, READS[name]) for name in names[at:at + 8]]
        for running in group:
            wait_for(lambda: probe.runs(running), "it runs")
        worst = probe.expect_calm(", ".join(names[at:at + 8]), 1)
        for name, running in zip(names[at:at + 8], group):
            run(probe.admin, f"KILL CONNECTION {running.id}")
            code, took = running.ended()
            expect(code in (1317, 1927, 2013, 2006, 3699), f"{name}: ended with {code}")
            expect(took < END_S + 3 * probe.calm, f"{name}: KILL CONNECTION took {took:.2f} s beside seven others")
        print(f"   {at}: others waited {worst * 1000:.0f} ms", flush=True)


def a_crowd_at_once(server, probe, _):
    """They take turns, and leave processor time to others."""
    group = [Running(server, READS["cross join"]) for _ in range(CROWD)]
    wait_for(lambda: all(probe.runs(running) for running in group[::20]), "they run")
    worst = probe.expect_calm(f"{CROWD} statements", 1)
    for running in group[::10]:
        run(probe.admin, f"KILL QUERY {running.id}")
    for running in group[::10]:
        code, took = running.ended()
        expect(code == 1317 and took < END_S + 3 * probe.calm, f"one of {CROWD}: {code} after {took:.2f} s")
    print(f"   others waited {worst * 1000:.0f} ms", flush=True)
    for running in group:
        run(probe.admin, f"KILL CONNECTION {running.id}")
    for running in group:
        running.code()
        with contextlib.suppress(pymysql.Error):
            running.db.close()


def waits_end(server, probe, _):
    """KILL ends a session that waits, whatever for."""
    holder = connect(server, database="l", autocommit=False)
    run(holder, "SELECT GET_LOCK('held', 0)")
    run(holder, "SELECT * FROM t WHERE id = 1 FOR UPDATE")
    tables = connect(server, database="l", autocommit=True)
    run(tables, "LOCK TABLES big WRITE")
    for name, sql in {
        "row lock": "UPDATE t SET k = k WHERE id = 1",
        "row lock of a scan": "SELECT * FROM t FOR UPDATE",
        "table lock": "SELECT COUNT(*) FROM big",
        "table lock of a definition": "ALTER TABLE big ADD COLUMN y INT",
        "LOCK TABLES": "LOCK TABLES big READ",
        "FLUSH TABLES WITH READ LOCK": "FLUSH TABLES WITH READ LOCK",
        "GET_LOCK": "SELECT GET_LOCK('held', -1)",
        "SLEEP": "SELECT SLEEP(1000)",
        "GTIDs": "SELECT WAIT_FOR_EXECUTED_GTID_SET('3E11FA47-71CA-11E1-9E33-C80AA9429562:1', 1000)",
    }.items():
        for what, codes in (("QUERY", (1317, 0) if name == "SLEEP" else (1317,)), ("CONNECTION", (1317, 1927, 2013, 2006, 0))):
            running = Running(server, sql)
            kill = lambda: run(probe.admin, f"KILL {what} {running.id}")  # noqa: E731
            _, took = end_by(probe, f"{name}, KILL {what}", running, kill, codes)
            print(f"   {name}, KILL {what}: {took * 1000:.0f} ms", flush=True)
            running.db.close() if what == "QUERY" else None
    holder.close()
    tables.close()


def gone(probe, running, what):
    """A session is killed, and its entry goes; nobody reads what it sends."""
    run(probe.admin, f"KILL CONNECTION {running.id}")
    begun = time.monotonic()
    wait_for(lambda: not run(probe.admin, f"SELECT 1 FROM information_schema.processlist WHERE id = {running.id}"), what)
    took = time.monotonic() - begun
    expect(took < END_S + 3 * probe.calm, f"{what}: gone after {took:.2f} s")
    print(f"   {what}: {took * 1000:.0f} ms", flush=True)


def a_client_that_does_not_read(server, probe, _):
    running = Running(server, "SELECT REPEAT('x', 1000000) FROM t")
    wait_for(lambda: probe.runs(running), "it sends")
    probe.expect_calm("a client that does not read")
    gone(probe, running, "a client that does not read")


def a_commit_that_waits_for_a_replica(server, probe, _):
    for name, value in {"timeout": 4_000_000_000, "wait_no_replica": 1, "enabled": 1}.items():
        run(probe.admin, f"SET GLOBAL rpl_semi_sync_source_{name} = {value}")
    running = Running(server, "INSERT INTO sink (id) VALUES (-7)")
    wait_for(lambda: probe.runs(running), "it waits")
    probe.expect_calm("a commit that waits for a replica")
    expect(run(probe.admin, "SELECT COUNT(*) FROM sink WHERE id = -7") == ((0,),), "nobody sees it yet")
    gone(probe, running, "a commit that waits for a replica")
    expect(run(probe.admin, "SELECT COUNT(*) FROM sink WHERE id = -7") == ((0,),), "nor now")
    run(probe.admin, "SET GLOBAL rpl_semi_sync_source_enabled = 0")
    wait_for(lambda: run(probe.admin, "SELECT COUNT(*) FROM sink WHERE id = -7") == ((1,),), "it is committed")
    expect(run(probe.admin, "DELETE FROM sink WHERE id = -7") == (), "and its locks are free")


def planning_is_short(server, probe, _):
    """What once took exponential time: definitions that use each other twice, many tables."""
    db = connect(server, database="l", autocommit=True)
    chain = "c0 AS (SELECT id FROM t WHERE id = 1)"
    for n in range(1, 30):
        chain += f", c{n} AS (SELECT x.id FROM c{n - 1} x JOIN c{n - 1} y ON x.id = y.id)"
    begun = time.monotonic()
    expect(run(db, f"WITH {chain} SELECT COUNT(*) FROM c29") == ((1,),), "one row joined with itself")
    took = time.monotonic() - begun
    expect(took < 5, f"30 definitions took {took:.1f} s")
    begun = time.monotonic()
    conditions = many(60, "t{n}.id = t60.id", " AND ")
    expect(run(db, f"SELECT COUNT(*) FROM {many(61, 't t{n}')} WHERE {conditions} AND t60.id = 5") == ((1,),), "one row")
    took = time.monotonic() - begun
    expect(took < 5, f"61 tables took {took:.1f} s")
    db.close()


def keys(count, prefix, value="1"):
    """An object with so many members."""
    return f"CONCAT('{{', (SELECT GROUP_CONCAT('\"{prefix}', LPAD(n.n, 7, '0'), '\":{value}') FROM numbers n WHERE n.n < {count}), '}}')"


def long_lists_are_short(server, probe, _):
    """What once compared each member of a list that a client writes with all others: it takes no time, or ends when it must."""
    db = connect(server, database="l", autocommit=True, read_timeout=300)
    many_numbers = 100_000
    run(db, "SET cte_max_recursion_depth = 1000000, group_concat_max_len = 4294967295")
    run(db, f"CREATE TABLE numbers (n INT PRIMARY KEY) AS WITH RECURSIVE q (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM q WHERE n < {many_numbers - 1}) SELECT n FROM q")
    numbers = f"(SELECT GROUP_CONCAT(':', 2 * (1000000 - n.n) + {{}} SEPARATOR '') FROM numbers n)"
    run(db, f"SET @a = {keys(many_numbers, 'a')}, @b = {keys(many_numbers, 'b')}, @nulls = {keys(many_numbers, 'a', 'null')},"
            f" @words = CONCAT('[', (SELECT GROUP_CONCAT('\"', n.n, '\"') FROM numbers n), ']'),"
            f" @even = CONCAT('3E11FA47-71CA-11E1-9E33-C80AA9429562', {numbers.format(0)}),"
            f" @odd = CONCAT('3E11FA47-71CA-11E1-9E33-C80AA9429562', {numbers.format(1)})")
    last = f"a{many_numbers - 1:07d}"
    short = {
        "SELECT JSON_LENGTH(JSON_MERGE_PRESERVE(@b, @a))": 2 * many_numbers,
        "SELECT JSON_LENGTH(JSON_MERGE_PATCH(@b, @a))": 2 * many_numbers,
        "SELECT JSON_LENGTH(JSON_MERGE_PATCH(@a, @nulls))": 0,
        "SELECT JSON_OVERLAPS(@a, @b)": 0,
        "SELECT JSON_LENGTH(JSON_SEARCH(@words, 'all', '%'))": many_numbers,
        f"SELECT JSON_SCHEMA_VALID(CONCAT('{{\"required\":[', REPEAT('\"{last}\",', {many_numbers}), '\"{last}\"]}}'), @a)": 1,
        "SELECT JSON_SCHEMA_VALID(CONCAT('{\"properties\":', @b, '}'), @a)": 1,
        "SELECT GTID_SUBSET(@even, @odd)": 0,
        "SELECT LENGTH(GTID_SUBTRACT(@even, @odd)) = LENGTH(@even)": 1,
    }
    for sql, expected in short.items():
        begun = time.monotonic()
        expect(run(db, sql) == ((expected,),), f"{sql[:150]}: not {expected}")
        took = time.monotonic() - begun
        expect(took < END_S + 3 * probe.calm, f"{sql[:150]}: took {took:.1f} s")
    labels = many(30_000, "'label {n}'")
    for sql, code in ((f"CREATE TABLE labelled (e ENUM({labels}))", 0), ("DROP TABLE labelled", 0), (f"CREATE TABLE labelled (e ENUM({labels}, 'LABEL 7'))", 1291),
                      (f"DROP TABLE IF EXISTS {many(30_000, 'no{n}')}", 0), (f"DROP TABLE IF EXISTS {many(30_000, 'no{n}')}, no7", 1066),
                      (f"WITH {many(30_000, 'c{n} AS (SELECT 1)')}, c7 AS (SELECT 1) SELECT 1", 1066),
                      (f"SELECT 1 FROM (SELECT {many(4000, '1 AS c{n}')}, 1 AS C7) t", 1060), (f"CREATE TABLE labelled ({many(30_000, 'c{n} INT')}, C7 INT)", 1060),
                      (f"LOCK TABLES {many(30_000, 't AS a{n} READ')}", 0), ("UNLOCK TABLES", 0), (f"LOCK TABLES {many(30_000, 't AS a{n} READ')}, t AS a7 READ", 1066)):
        begun = time.monotonic()
        code_found = error_code(lambda: run(db, sql))  # noqa: B023
        took = time.monotonic() - begun
        expect(code_found == code and took < END_S + 3 * probe.calm, f"{sql[:60]} .. {sql[-30:]}: {code_found} after {took:.1f} s")
    # Each path moves what is behind the member that it puts in.
    paths = many(20_000, "'$.A{n}', 1")
    for sql in (f"SELECT JSON_LENGTH(JSON_SET(@a, {paths}))", "SELECT JSON_SCHEMA_VALID(CONCAT('{\"items\":{\"enum\":', @words, '}}'), @words)"):
        running = Running(server, sql, f"SET @a = {keys(many_numbers, 'a')}, @words = CONCAT('[', (SELECT GROUP_CONCAT('\"', n.n, '\"') FROM numbers n), ']')")
        wait_for(lambda: probe.runs(running), "it runs")  # noqa: B023
        run(probe.admin, f"KILL QUERY {running.id}")
        code, took = running.ended()
        expect(code in (0, 1317) and took < END_S + 3 * probe.calm, f"{sql[:60]}: {code} {took:.1f} s after KILL")
        running.db.close()
    run(db, "DROP TABLE numbers")
    db.close()


def what_executes_is_bounded(server, probe, _):
    """max_execution_time bounds what EXECUTE runs, max_join_size what a query may look at; who sets the latter means it."""
    db = connect(server, database="l", autocommit=True)
    run(db, "SET max_execution_time = 50")
    text = READS["cross join"].replace("'", "''")
    run(db, f"PREPARE p FROM '{text}'")
    for sql in ("EXECUTE p", f"EXECUTE IMMEDIATE '{text}'"):
        begun = time.monotonic()
        expect(error_code(lambda: run(db, sql)) == 3024, sql)  # noqa: B023
        expect(time.monotonic() - begun < END_S + probe.calm, f"{sql}: ended after {time.monotonic() - begun:.1f} s")
    run(db, "SET max_execution_time = 0")
    run(db, "CREATE TABLE few (id INT PRIMARY KEY)")
    run(db, "INSERT INTO few VALUES (1), (2), (3), (4), (5)")
    run(db, "ANALYZE TABLE few")
    three = "SELECT COUNT(*) FROM few a, few b, few c"
    expect(run(db, "SELECT @@sql_big_selects") == ((1,),), "big selects are allowed")
    run(db, "SET max_join_size = 30")
    expect(run(db, "SELECT @@sql_big_selects") == ((0,),), "and are not, with a bound")
    for sql in (three, f"SELECT 1 UNION {three}", f"SELECT * FROM ({three}) x, few y, few z, few w"):
        expect(error_code(lambda: run(db, sql)) == 1104, sql)  # noqa: B023
    expect(run(db, three + " WHERE b.id = 1 AND c.id = a.id") == ((5,),), "by keys it looks at few")
    run(db, "SET sql_big_selects = 1")
    expect(run(db, three) == ((125,),), "allowed again")
    run(db, "SET sql_big_selects = 0, max_join_size = DEFAULT")
    expect(run(db, three) == ((125,),), "no bound, no error")
    run(db, "DROP TABLE few")
    db.close()


def sigterm_ends_them(server, probe, _):
    group = [Running(server, sql) for sql in list(READS.values())[::4][:8]]
    group += [Running(server, f"CALL {named('p', name)}()") for name in ("signal", "prepare", "select that fails")]
    run(probe.admin, "SET GLOBAL event_scheduler = ON")
    run(probe.admin, f"CREATE EVENT forever ON SCHEDULE EVERY 1 HOUR DO BEGIN {GUARD} LOOP SIGNAL SQLSTATE '45000'; END LOOP; END")
    wait_for(lambda: run(probe.admin, "SELECT 1 FROM information_schema.processlist WHERE command = 'Connect'"), "the event runs")
    for running in group:
        wait_for(lambda: probe.runs(running), "it runs")
    begun = time.monotonic()
    server.stop()
    took = time.monotonic() - begun
    expect(took < 5, f"the server needed {took:.1f} s to stop")
    print(f"   stopped in {took:.2f} s", flush=True)


TESTS = [each_statement_ends, the_time_limit_ends_reads, programs_end, clients_that_go, eight_at_once, a_crowd_at_once, waits_end, a_client_that_does_not_read,
         a_commit_that_waits_for_a_replica, planning_is_short, long_lists_are_short,
         what_executes_is_bounded, sigterm_ends_them]


def fill(server, directory):
    db = connect(server, autocommit=True)
    run(db, "CREATE DATABASE l")
    run(db, "CREATE TABLE l.t (id INT PRIMARY KEY, k INT, s VARCHAR(50), KEY (k))")
    run(db, "CREATE TABLE l.sink (id BIGINT, k INT DEFAULT 1, s VARCHAR(50))")
    run(db, "CREATE TABLE l.big (id INT PRIMARY KEY, k INT, s VARCHAR(50))")
    for start in range(0, ROWS, 1000):
        rows = ", ".join(f"({n}, {n * 7 % ROWS}, 'text of row {n}')" for n in range(start, start + 1000))
        run(db, f"INSERT INTO l.t VALUES {rows}")
    run(db, f"INSERT INTO l.big SELECT a.id * {ROWS} + b.id, b.k, b.s FROM l.t a, l.t b WHERE a.id < 10")
    db.close()
    with open(f"{directory}/big.txt", "w") as file:
        file.writelines(f"line {n}\n" for n in range(100_000))


def main():
    """Arguments: tests, or statements of `READS` and `WRITES` to be tried alone."""
    wanted = [name for name in sys.argv[1:] if name in globals()] or [test.__name__ for test in TESTS]
    alone = set(sys.argv[1:]) - set(wanted)
    for family in (READS, WRITES) if alone else ():
        for name in family.keys() - alone:
            del family[name]
    with Scratch() as directory:
        server = Omnibus(directory, "--max-connections=1200", f"--secure-file-priv={directory}", "--temptable-max-ram=4G")
        server.start()
        fill(server, directory)
        probe = Probe(server)
        print(f"calm: {probe.calm * 1000:.1f} ms")
        for test in TESTS:
            if test.__name__ in wanted:
                begun = time.monotonic()
                print(test.__name__, flush=True)
                test(server, probe, directory)
                print(f"  {time.monotonic() - begun:.1f} s", flush=True)
    print("ok")


if __name__ == "__main__":
    main()
