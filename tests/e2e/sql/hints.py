#!/usr/bin/python3
"""Optimizer hints of statements that change rows, and SET_VAR: what acts, what is warned of, and that nothing is left behind.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import connect, expect  # noqa: E402
from peers import OmnibusPeer, create_user, query, replicate, run_chosen, wait_caught_up  # noqa: E402


def server(directory, number=1, *options):
    ours = OmnibusPeer(f"{directory}/{number}", number, *options)
    ours.start()
    return ours


def warned(cursor, sql, *expected):
    """Runs a statement; its rows. Its warnings are these: codes, or codes with messages."""
    cursor.execute(sql)
    rows = cursor.fetchall()
    cursor.execute("SHOW WARNINGS")
    found = [(int(code), message) for level, code, message in cursor.fetchall()]
    wanted = [one if isinstance(one, tuple) else (one, None) for one in expected]
    alike = len(found) == len(wanted) and all(f[0] == w[0] and w[1] in (None, f[1]) for f, w in zip(found, wanted))
    expect(alike, f"{sql}: warnings {found} instead of {wanted}")
    return [list(row) for row in rows]


def variables(directory):
    """SET_VAR in each kind of statement, as text, prepared, and in procedures."""
    ours = server(directory)
    cursor = connect(ours, autocommit=True).cursor()

    def gives(sql, rows, *warnings):
        found = warned(cursor, sql, *warnings)
        expect(found == rows, f"{sql}: {found} instead of {rows}")

    cursor.execute("CREATE DATABASE d")
    cursor.execute("USE d")
    cursor.execute("CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(3))")
    gives("SELECT /*+ SET_VAR(sort_buffer_size = 1M) SET_VAR(time_zone='+04:00') */ @@sort_buffer_size, TIMEDIFF(NOW(), UTC_TIMESTAMP()) = '04:00:00'", [[1 << 20, 1]])
    gives("SELECT @@sort_buffer_size, @@time_zone", [[8 << 20, "SYSTEM"]])
    gives("SELECT /*+ SET_VAR(div_precision_increment=12) */ CONCAT(1/2)", [["0.500000000000"]])
    gives("SELECT /*+ SET_VAR(timestamp=1322115328) */ UNIX_TIMESTAMP()", [[1322115328]])
    gives("SELECT UNIX_TIMESTAMP() > 1322115329", [[1]])
    gives("INSERT /*+ SET_VAR(auto_increment_increment=10) SET_VAR(auto_increment_offset = 5) */ INTO t VALUES (NULL, 'x'), (NULL, 'y')", [])
    gives("REPLACE /*+ SET_VAR(sql_mode='') */ INTO t VALUES (5, 'long')", [], 1265)
    gives("INSERT /*+ SET_VAR(insert_id=40) */ INTO t (b) VALUES ('z')", [])
    gives("INSERT INTO t (b) VALUES ('n')", [])
    gives("SELECT * FROM t", [[5, "lon"], [15, "y"], [40, "z"], [41, "n"]])
    cursor.execute("UPDATE /*+ SET_VAR(time_zone='UTC') */ t SET b = LEFT(TIMEDIFF(NOW(), UTC_TIMESTAMP()), 2) WHERE a = 5")
    cursor.execute("DELETE /*+ SET_VAR(sql_safe_updates = 0) */ FROM t WHERE b = '00'")
    gives("SELECT a FROM t", [[15], [40], [41]])
    gives("SELECT /*+ SET_VAR(sql_select_limit=1) */ a FROM t ORDER BY a", [[15]])
    for sql in ("DELETE /*+ SET_VAR(sql_safe_updates=1) */ FROM t", "UPDATE /*+ SET_VAR(sql_safe_updates=ON) */ t SET b = 'q'"):
        fails(cursor, sql, 1175)
    fails(cursor, "SELECT /*+ SET_VAR(max_execution_time=50) */ SLEEP(20) FROM t a, t b", 3024)
    gives("SELECT @@max_execution_time, @@sql_safe_updates", [[0, 0]])
    # What is kept of a plan is not what another variable has made of it.
    cursor.execute("PREPARE p FROM 'SELECT /*+ SET_VAR(div_precision_increment=2) SET_VAR(nosuch=1) */ CONCAT(1/3)'")
    for _ in range(2):
        gives("EXECUTE p", [["0.33"]], 3128)
    gives("SELECT CONCAT(1/3)", [["0.3333"]])
    cursor.execute("CREATE PROCEDURE q() BEGIN SELECT /*+ SET_VAR(big_tables=on) */ @@big_tables; SELECT @@big_tables; END")
    cursor.execute("CALL q()")
    first = cursor.fetchall()
    cursor.nextset()
    expect((first, cursor.fetchall()) == (((1,),), ((0,),)), f"in a procedure: {first}")
    while cursor.nextset():
        pass
    binary = connect(ours, autocommit=True, database="d").cursor()
    binary.execute("EXPLAIN SELECT /*+ SET_VAR(sort_buffer_size=1K) */ 1")
    ours.stop()


def fails(cursor, sql, code):
    try:
        cursor.execute(sql)
        cursor.fetchall()
    except Exception as error:
        expect(error.args[0] == code, f"{sql}: {error} instead of {code}")
        return
    expect(False, f"{sql}: not {code}")


def warnings(directory):
    """What is wrong with a hint is a warning, and the statement runs."""
    ours = server(directory)
    cursor = connect(ours, autocommit=True).cursor()
    cursor.execute("CREATE DATABASE d")
    cursor.execute("USE d")
    cursor.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT, KEY kb (b))")
    cursor.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    duplicate = "is ignored as conflicting/duplicated"
    top = "MAX_EXECUTION_TIME hint is supported by top-level standalone SELECT statements only"
    for sql, *expected in [
        ("SELECT /*+ SET_VAR(foo = 10) */ 1", (3128, "Unresolved name 'foo' for SET_VAR hint")),
        ("SELECT /*+ SET_VAR(foo = 'a''b') SET_VAR(bar = \"x\") */ 1", 3128, 3128),
        ("SELECT /*+ SET_VAR(foo = 9000100500G) */ 1", (1064, "A size parameter was incorrectly specified, either number or on the form 10M near '9000100500G)' at line 1")),
        ("SELECT /*+ SET_VAR(sql_select_limit = 18446744073709551616) */ 1", 1064),
        ("SELECT /*+ SET_VAR(sql_select_limit = 18446744073709551615) */ 1",),
        ("SELECT /*+ SET_VAR(@@sort_buffer_size = 1M) */ 1", 1064),
        ("SELECT /*+ SET_VAR(sort_buffer_size) */ 1", 1064),
        ("SELECT /*+ SET_VAR(max_allowed_packet = 1M) */ 1", (3637, "Variable 'max_allowed_packet' cannot be set using SET_VAR hint.")),
        ("SELECT /*+ SET_VAR(autocommit = 0) */ 1", 3637),
        ("SELECT /*+ SET_VAR(sql_mode = 'nosuch') */ 1", 1231),
        ("SELECT /*+ SET_VAR(sort_buffer_size = amba) */ 1", (1232, "Incorrect argument type to variable 'sort_buffer_size'")),
        ("SELECT /*+ SET_VAR(sort_buffer_size = 1) */ 1", 1292),
        ("SELECT /*+ SET_VAR(max_join_size=1K) SET_VAR(MAX_JOIN_SIZE=2K) */ @@max_join_size", (3126, f"Hint SET_VAR(MAX_JOIN_SIZE=2048)  {duplicate}")),
        ("EXPLAIN SELECT /*+ SET_VAR(sql_mode=ansi) SET_VAR(sql_mode='') */ * FROM t", (3126, f"Hint SET_VAR(sql_mode='')  {duplicate}")),
        ("SELECT (SELECT /*+ SET_VAR(sort_buffer_size=1M) */ 1)", 3126),
        ("SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1",),
        ("(SELECT /*+ MAX_EXECUTION_TIME(1000) */ 1) UNION SELECT 2",),
        ("WITH c AS (SELECT 1 x) SELECT /*+ MAX_EXECUTION_TIME(1000) */ * FROM c",),
        ("SELECT 1 UNION SELECT /*+ MAX_EXECUTION_TIME(1000) */ 2", (3125, top)),
        ("SELECT * FROM (SELECT /*+ MAX_EXECUTION_TIME(1000) */ 2) d", 3125),
        ("INSERT /*+ MAX_EXECUTION_TIME(1000) */ INTO t VALUES (3, 3)", (3125, top)),
        ("REPLACE /*+ MAX_EXECUTION_TIME(1000) */ INTO t SELECT 3, 3", 3125),
        ("INSERT INTO t SELECT /*+ MAX_EXECUTION_TIME(1000) */ 4, 4", 3125),
        ("UPDATE /*+ MAX_EXECUTION_TIME(1000) */ t SET b = 4 WHERE a = 4", 3125),
        ("UPDATE /*+ MAX_EXECUTION_TIME(1000) */ t x, t y SET x.b = 4 WHERE x.a = 4", 3125),
        ("DELETE /*+ MAX_EXECUTION_TIME(1000) */ FROM t WHERE a > 3", 3125),
        ("INSERT /*+ nosuch(1) */ INTO t VALUES (5, 5)", (1064, "Optimizer hint syntax error near 'nosuch(1)' at line 1")),
        ("INSERT /*+ NO_INDEX(u) */ INTO t VALUES (6, 6)", (3128, "Unresolved name `u`@`select#1` for NO_INDEX hint")),
        ("INSERT /*+ NO_INDEX(t kb) */ INTO t VALUES (7, 7)",),
        ("UPDATE /*+ INDEX(t nosuch) */ t SET b = 1 WHERE a = 1", (3128, "Unresolved name `t`@`select#1` `nosuch` for INDEX hint")),
        ("DELETE /*+ NO_INDEX(u) JOIN_ORDER(t, v) */ FROM t WHERE a = 9", 3128, 3128),
    ]:
        warned(cursor, sql, *expected)
    ours.stop()


def plans(directory):
    """Index and order hints change how rows to be changed are found."""
    ours = server(directory)
    cursor = connect(ours, autocommit=True).cursor()
    cursor.execute("CREATE DATABASE d")
    cursor.execute("USE d")
    cursor.execute("CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT, KEY kb (b), KEY kc (c))")
    cursor.execute("INSERT INTO t WITH RECURSIVE n AS (SELECT 1 x UNION ALL SELECT x + 1 FROM n WHERE x < 900) SELECT x, x, x % 3 FROM n")
    cursor.execute("ANALYZE TABLE t")
    cursor.fetchall()

    def key(sql, place=0):
        cursor.execute(f"EXPLAIN {sql}")
        names = [column[0] for column in cursor.description]
        line = dict(zip(names, cursor.fetchall()[place]))
        return line["table"], line["key"]

    where = "WHERE b = 5 AND c = 2"
    for sql, expected in [
        (f"UPDATE t SET c = 2 {where}", ("t", "kb")),
        (f"UPDATE /*+ NO_INDEX(t kb) */ t SET c = 2 {where}", ("t", "kc")),
        (f"UPDATE /*+ INDEX(x kc) */ t AS x SET c = 2 {where}", ("t", "kc")),
        (f"UPDATE /*+ INDEX(t kc) */ t USE INDEX (kb) SET c = 2 {where}", ("t", "kc")),
        (f"UPDATE /*+ NO_INDEX(t) */ t SET c = 2 {where}", ("t", None)),
        (f"DELETE FROM t {where}", ("t", "kb")),
        (f"DELETE /*+ NO_INDEX(t kb) */ FROM t {where}", ("t", "kc")),
        ("DELETE /*+ JOIN_PREFIX(y) NO_INDEX(y kb) */ x FROM t x JOIN t y ON x.a = y.b WHERE x.b = 7 AND y.c = 1", ("y", "kc")),
        ("UPDATE /*+ JOIN_FIXED_ORDER() */ t x JOIN t y ON x.a = y.b SET x.c = 0 WHERE y.b = 7", ("x", "PRIMARY")),
    ]:
        found = key(sql)
        expect(found == expected, f"{sql}: {found} instead of {expected}")
    found = key(f"INSERT /*+ NO_INDEX(x kb) */ INTO t SELECT a + 5000, b, c FROM t x {where}", 1)
    expect(found == ("x", "kc"), f"INSERT .. SELECT: {found}")
    ours.stop()


def replicated(directory):
    """A replica passes over SET_VAR: the context of the statement has what it was run with."""
    source, replica = (server(directory, number, "--binlog-format=STATEMENT") for number in (1, 2))
    create_user(source)
    replicate(replica, source)
    cursor = connect(source, autocommit=True).cursor()
    for sql in ("CREATE DATABASE d", "USE d", "CREATE TABLE t (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(3))",
                "INSERT /*+ SET_VAR(sql_mode='') SET_VAR(auto_increment_increment=5) */ INTO t (b) VALUES ('long'), ('x')",
                "INSERT /*+ SET_VAR(insert_id=40) SET_VAR(timestamp=5) SET_VAR(time_zone='+00:00') */ INTO t (b) VALUES (SECOND(NOW()))",
                "UPDATE /*+ SET_VAR(sql_mode='') */ t SET b = 'xxxx' WHERE a = 6"):
        cursor.execute(sql)
    wait_caught_up(replica, source)
    rows = query(source, "SELECT * FROM d.t ORDER BY a")
    expect([[row["a"], row["b"]] for row in rows] == [[1, "lon"], [6, "xxx"], [40, "5"]], f"at the source: {rows}")
    expect(query(replica, "SELECT * FROM d.t ORDER BY a") == rows, "the replica has other rows")
    for one in (source, replica):
        one.stop()


if __name__ == "__main__":
    run_chosen("hints", [variables, warnings, plans, replicated])
