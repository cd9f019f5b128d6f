#!/usr/bin/python3
"""Stored programs that are drawn, and would run for ever, end at once when they are told to: loops in loops, handlers that catch whatever can
be caught, statements that fail, cursors, calls of each other, dynamic statements, functions, triggers and events.

Each is ended by KILL QUERY, KILL CONNECTION, `max_execution_time` (a function that a SELECT calls), or its client's going; then the session (if there
is one) runs a statement, and the server answers others throughout.

    program_loops.py [--programs 40] [--seed N]

Ring: all.
"""

import argparse
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import Omnibus, Scratch, connect, error_code, expect, wait_for  # noqa: E402

# When a program must have ended: a tenth of a second on an idle machine.
END_S = 10.0
HANDLER = "DECLARE CONTINUE HANDLER FOR {} {}"
CONDITIONS = ("SQLEXCEPTION", "SQLEXCEPTION, SQLWARNING, NOT FOUND", "1317, 3024, SQLEXCEPTION", "SQLSTATE '70100', SQLEXCEPTION", "1146, 1062, 1243, SQLEXCEPTION")
ANYWHERE = ("SET @x = @x + 1", "SELECT id INTO @x FROM d.t WHERE id = 7", "SELECT 1 INTO @x FROM no_such_table", "INSERT INTO d.t (id) VALUES (7)",
            "UPDATE d.t SET k = k WHERE id = 3", "DO SLEEP(0.001)", "DO GET_LOCK('mine', 0)", "SIGNAL SQLSTATE '45000'", "SIGNAL SQLSTATE '70100' SET MYSQL_ERRNO = 1317",
            "SIGNAL SQLSTATE '01000'", "DO BENCHMARK(1000, MD5('x'))", "DO d.short()", "GET DIAGNOSTICS @n = NUMBER", "BEGIN END", "DELETE FROM d.t WHERE id = -1",
            "SELECT COUNT(*) INTO @x FROM d.t a, d.t b", "INSERT INTO d.fired VALUES (1)", "SET @y = (SELECT MAX(k) FROM d.t)")
# Not in functions and triggers.
IN_PROCEDURES = ("CALL d.nothing()", "PREPARE s FROM 'SELECT 1 INTO @x'", "EXECUTE s", "EXECUTE no_such_statement", "START TRANSACTION", "COMMIT",
                 "ROLLBACK", "KILL QUERY 4000000000", "SHOW CREATE TABLE no_such_table", "SET SESSION sort_buffer_size = 300000", "SAVEPOINT a",
                 "CREATE TEMPORARY TABLE IF NOT EXISTS d.tmp (id INT)", "DROP TEMPORARY TABLE IF EXISTS d.tmp")


class Maker:
    """Draws bodies. A label that is used twice is another block's."""

    def __init__(self, rng):
        self.rng, self.labels = rng, 0

    def statement(self, depth, procedure):
        draw = self.rng.random()
        if depth <= 0 or draw < 0.5:
            return self.rng.choice(ANYWHERE + IN_PROCEDURES if procedure else ANYWHERE)
        if draw < 0.6:
            return self.block(depth - 1, procedure)
        if draw < 0.68:
            return f"IF RAND() < 0.5 THEN {self.statements(depth - 1, procedure)} ELSE {self.statements(depth - 1, procedure)} END IF"
        if draw < 0.74:
            return f"CASE WHEN RAND() < 0.5 THEN {self.statements(depth - 1, procedure)} ELSE BEGIN END; END CASE"
        if draw < 0.82:
            return f"REPEAT {self.statements(depth - 1, procedure)} UNTIL FALSE END REPEAT"
        if draw < 0.9:
            return f"WHILE TRUE DO {self.statements(depth - 1, procedure)} END WHILE"
        self.labels += 1
        name = f"l{self.labels}"
        return f"{name}: LOOP {self.statements(depth - 1, procedure)} ITERATE {name}; END LOOP"

    def statements(self, depth, procedure):
        return "".join(f"{self.statement(depth, procedure)}; " for _ in range(self.rng.randrange(1, 4)))

    def block(self, depth, procedure):
        declared = ""
        if self.rng.random() < 0.4:
            declared = "DECLARE v INT; DECLARE c CURSOR FOR SELECT id FROM d.t; "
        for condition in self.rng.sample(CONDITIONS[:1], 1) if self.rng.random() < 0.8 else ():
            act = self.rng.choice(("BEGIN END", "SET @caught = 1", "SIGNAL SQLSTATE '01000'", "BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; SELECT 1 INTO @x FROM no_such_table; END"))
            declared += HANDLER.format(self.rng.choice(CONDITIONS) if "v INT" in declared else condition, act) + "; "
        body = self.statements(depth, procedure)
        if "DECLARE c CURSOR" in declared:
            body = f"OPEN c; {body} FETCH c INTO v; {body} CLOSE c; "
        return f"BEGIN {declared}{body}END"

    def program(self, procedure):
        """A body that goes on for ever whatever happens inside."""
        inside = self.block(3, procedure)
        return f"BEGIN {HANDLER.format(self.rng.choice(CONDITIONS), 'BEGIN END')}; LOOP {inside}; END LOOP; {'' if procedure else 'RETURN 1; '}END"


def make(admin, maker, number):
    """A program and the statement that runs it, and whether that is a SELECT."""
    kind = maker.rng.choice(("procedure", "procedure", "function", "trigger"))
    if kind == "procedure":
        admin(f"CREATE PROCEDURE d.p{number}() {maker.program(True)}")
        return f"CALL d.p{number}()", False
    admin(f"CREATE FUNCTION d.f{number}() RETURNS INT READS SQL DATA {maker.program(False)}")
    if kind == "function":
        return f"SELECT d.f{number}()", True
    admin("DROP TRIGGER IF EXISTS d.fires")
    admin(f"CREATE TRIGGER d.fires BEFORE INSERT ON d.triggered FOR EACH ROW SET NEW.id = d.f{number}()")
    return "INSERT INTO d.triggered VALUES (1)", False


def ends(server, admin, sql, how):
    """Runs a statement and ends it in one of the ways."""
    session = connect(server, database="d", autocommit=True, read_timeout=120)
    number = session.thread_id()
    with session.cursor() as cursor:
        if how == "max_execution_time":
            cursor.execute("SET max_execution_time = 100")
    session._execute_command(3, sql)
    running = lambda: admin(f"SELECT command FROM information_schema.processlist WHERE id = {number}")  # noqa: E731
    wait_for(lambda: running() in ((("Query",),), ()) or how == "max_execution_time", lambda: f"{sql} runs: {running()}")
    time.sleep(0.1)
    began = time.monotonic()
    if how.startswith("KILL"):
        admin(f"{how} {number}")
    if how == "its client goes":
        session._force_close()
        wait_for(lambda: running() == (), lambda: f"{sql}: goes on without its client: {running()}", timeout=60)
    else:
        code = error_code(session._read_query_result)
        expect(code in {"KILL QUERY": (1317,), "max_execution_time": (3024,)}.get(how, (1317, 1927, 2013, 2006)), f"{how} of {sql} gave {code}")
    took = time.monotonic() - began
    expect(took < END_S, f"{how} of {sql}: {took:.1f} s")
    if how in ("KILL QUERY", "max_execution_time"):
        with session.cursor() as cursor:
            cursor.execute("SELECT 1")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=40)
    seeds.add_to(parser)
    options = parser.parse_args()
    maker, slowest = Maker(random.Random(options.seed)), 0
    with Scratch() as directory:
        server = Omnibus(directory, "--log-bin-trust-function-creators=1", "--sync-binlog=0", "--innodb-lock-wait-timeout=1", "--lock-wait-timeout=1")
        server.start()
        session = connect(server, autocommit=True)

        def admin(sql):
            with session.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall()
        for sql in ("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, k INT)", "INSERT INTO d.t SELECT n, n FROM "
                    "(WITH RECURSIVE q (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 500) SELECT n FROM q) q", "CREATE TABLE d.fired (id INT)",
                    "CREATE TABLE d.triggered (id INT)", "CREATE PROCEDURE d.nothing() BEGIN END", "CREATE FUNCTION d.short() RETURNS INT DETERMINISTIC RETURN 1",
                    "CREATE TRIGGER d.on_fired BEFORE INSERT ON d.fired FOR EACH ROW SET @fired = 1"):
            admin(sql)
        for number in range(options.programs):
            sql, reads = make(admin, maker, number)
            ways = ["KILL QUERY", "KILL CONNECTION", "its client goes"] + ["max_execution_time"] * reads
            slowest = max(slowest, ends(server, admin, sql, maker.rng.choice(ways)))
            admin("TRUNCATE TABLE d.fired")
        # What a shutdown meets.
        sql, _ = make(admin, maker, options.programs)
        connect(server, database="d", autocommit=True)._execute_command(3, sql)
        server.stop()
    print(f"ok: {options.programs} programs ended, the slowest after {slowest:.2f} s")


if __name__ == "__main__":
    main()
