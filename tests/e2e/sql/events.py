#!/usr/bin/python3
"""Events and their scheduler.

The same statements run here and on MariaDB and must give the same results, errors and warnings. Then what the scheduler does: when events
run, in whose name, what becomes of them, what it says of those that fail. Rights, dumps, a kill -9, our log as MariaDB's script, and
replicas in both directions, where events are defined and do not run.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, connect, expect, wait_for  # noqa: E402
import twins  # noqa: E402
from twins import fresh, is_error, loaded, logged, replicas, run, same  # noqa: E402

SHOWN = """SELECT event_name, definer, time_zone, event_definition, event_type, execute_at, interval_value, interval_field, starts, ends,
    IF(status IN ('SLAVESIDE_DISABLED', 'REPLICA_SIDE_DISABLED'), 'ELSEWHERE', status), on_completion, event_comment
    FROM information_schema.events WHERE event_schema = 'test' ORDER BY 1""".replace("\n", " ")
UNITS = "; ".join(f"CREATE EVENT u{n} ON SCHEDULE EVERY {every} STARTS '2035-05-31 10:00:00' DO SELECT {n}" for n, every in enumerate((
    "1 YEAR", "3 QUARTER", "'1-2' YEAR_MONTH", "2 WEEK", "'1 2' DAY_HOUR", "'1 2:3' DAY_MINUTE", "'1 2:3:4' DAY_SECOND", "'1:30' HOUR_MINUTE",
    "'100:00:05' HOUR_SECOND", "'90:7' MINUTE_SECOND", "1 + 2 MINUTE", "'7' SECOND", "2.7 DAY")))
SCRIPTS = {
    "definitions": f"""
        SET time_zone = '+02:00'
        CREATE EVENT one ON SCHEDULE AT '2035-01-02 03:04:05' DO SELECT 1
        CREATE EVENT two ON SCHEDULE EVERY 1 DAY STARTS '2035-01-01' ENDS '2036-01-01' ON COMPLETION PRESERVE DISABLE COMMENT 'it''s' DO BEGIN SELECT 1; SELECT 2; END
        CREATE DEFINER=nobody@nowhere EVENT three ON SCHEDULE EVERY 1 HOUR STARTS '2000-01-01' DISABLE ON SLAVE DO SET @a = 1
        {UNITS.replace('; ', chr(10) + '        ')}
        {SHOWN}
        CREATE EVENT one ON SCHEDULE AT '2035-01-02 03:04:05' DO SELECT 1
        CREATE EVENT IF NOT EXISTS one ON SCHEDULE EVERY 1 DAY DO SELECT 1
        CREATE OR REPLACE EVENT one ON SCHEDULE AT '2035-01-02 03:04:05' + INTERVAL 1 DAY DO SELECT 'replaced'
        SET time_zone = '-05:00'
        ALTER EVENT one COMMENT 'zone kept'
        ALTER EVENT two ON SCHEDULE AT '2035-01-01 00:00:00' RENAME TO deux ENABLE DO SELECT 'new'
        ALTER EVENT three ON COMPLETION PRESERVE
        ALTER EVENT deux RENAME TO DEUX
        ALTER EVENT deux RENAME TO one
        ALTER EVENT nothing ENABLE
        DROP EVENT u1
        DROP EVENT u1
        DROP EVENT IF EXISTS u1
        DROP EVENT U2
        {SHOWN}
        CREATE DATABASE other
        ALTER EVENT one RENAME TO other.uno
        ALTER EVENT u3 RENAME TO missing.u3
        SELECT event_schema, event_name FROM information_schema.events WHERE event_name LIKE '%o%' ORDER BY 2
        DROP DATABASE other
        SELECT COUNT(*) FROM information_schema.events WHERE event_name = 'uno'
        SET time_zone = DEFAULT
    """,
    "what is wrong": f"""
        CREATE EVENT x ON SCHEDULE EVERY 0 DAY DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY -1 DAY DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 'a' DAY DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY NULL DAY DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 MICROSECOND DO SELECT 1
        CREATE EVENT x ON SCHEDULE AT 'abc' DO SELECT 1
        CREATE EVENT x ON SCHEDULE AT NULL DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY STARTS 'abc' DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY ENDS 'abc' DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY ENDS '2000-01-01' DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY STARTS '2030-01-01' ENDS '2029-01-01' DO SELECT 1
        CREATE EVENT nowhere.x ON SCHEDULE EVERY 1 DAY DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY DO CREATE EVENT y ON SCHEDULE EVERY 1 DAY DO SELECT 1
        CREATE PROCEDURE p() CREATE EVENT y ON SCHEDULE EVERY 1 DAY DO SELECT 1
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY DO USE test
        CREATE EVENT x ON SCHEDULE EVERY 1 DAY
        ALTER EVENT x
        SELECT COUNT(*) FROM information_schema.events WHERE event_schema = 'test'
        CREATE EVENT past ON SCHEDULE AT '2001-01-01' DO SELECT 1
        GET DIAGNOSTICS CONDITION 1 @level = RETURNED_SQLSTATE, @number = MYSQL_ERRNO, @text = MESSAGE_TEXT
        SELECT @level, @number, TRIM(TRAILING '.' FROM @text)
        CREATE EVENT kept ON SCHEDULE AT '2001-01-01' ON COMPLETION PRESERVE DO SELECT 1
        ALTER EVENT kept ON SCHEDULE AT '2001-01-02' ON COMPLETION NOT PRESERVE
        ALTER EVENT kept ON SCHEDULE AT '2001-01-03'
        {SHOWN}
        CREATE EVENT e ON SCHEDULE EVERY 1 DAY STARTS '2035-01-01' DO SELECT 1
        CREATE FUNCTION f() RETURNS INT DETERMINISTIC BEGIN DROP EVENT e; RETURN 1; END
        CREATE PROCEDURE p() BEGIN ALTER EVENT e DISABLE; DROP EVENT kept; END
        CALL p()
        {SHOWN}
        CALL p()
        SET GLOBAL event_scheduler = DISABLED
        SET GLOBAL event_scheduler = 2
        SET SESSION event_scheduler = ON
    """,
}

LOAD = """
    CREATE TABLE t (a INT)
    CREATE EVENT plain ON SCHEDULE EVERY 1 SECOND DO INSERT INTO t VALUES (1)
    CREATE EVENT changed ON SCHEDULE EVERY 1 SECOND DISABLE DO INSERT INTO t VALUES (2)
    CREATE EVENT gone ON SCHEDULE EVERY 1 DAY STARTS '2035-01-01' COMMENT 'c' DO BEGIN SELECT 1; SELECT 2; END
    ALTER EVENT changed ENABLE COMMENT 'new'
    ALTER EVENT plain RENAME TO renamed
    DROP EVENT gone
    DROP EVENT IF EXISTS gone
    CREATE EVENT once ON SCHEDULE AT '2035-06-07 08:09:10' ON COMPLETION PRESERVE DO SET @x = 'y'
"""
LOAD = [line.strip() for line in LOAD.strip().splitlines()]
DEFINED = """SELECT event_name, definer, event_definition, event_type, execute_at, interval_value, interval_field, on_completion, event_comment
    FROM information_schema.events WHERE event_schema = 'test' ORDER BY 1"""


def contents(c):
    return run(c, DEFINED), run(c, "SELECT * FROM test.t")


def allowed(sql, theirs):
    return (theirs,)


def rows(c, sql):
    found = run(c, sql)
    expect(not is_error(found), f"{sql}: {found}")
    return found


def scheduled(server):
    """When events run, in whose name, and what becomes of them."""
    c = connect(server, autocommit=True)
    fresh(c)
    for sql in ("CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, x VARCHAR(100))", "CREATE USER maker@localhost",
                "GRANT ALL ON test.* TO maker@localhost", "CREATE PROCEDURE p() BEGIN INSERT INTO log (x) VALUES ('in a procedure'); SELECT 1; END",
                "SET time_zone = '+07:00'",
                "CREATE EVENT often ON SCHEDULE EVERY 1 SECOND DO INSERT INTO log (x) VALUES ('often')",
                "CREATE DEFINER=maker@localhost EVENT once ON SCHEDULE AT NOW() + INTERVAL 1 SECOND DO BEGIN SET SESSION lock_wait_timeout = 7; "
                "INSERT INTO log (x) VALUES (CONCAT_WS(' ', 'once', CURRENT_USER(), @@time_zone, DATABASE(), @@lock_wait_timeout)); CALL p(); SELECT * FROM log; SHOW TABLES; END",
                "CREATE EVENT kept ON SCHEDULE AT NOW() + INTERVAL 1 SECOND ON COMPLETION PRESERVE DO INSERT INTO log (x) VALUES ('kept')",
                "CREATE EVENT ends ON SCHEDULE EVERY 1 SECOND ENDS NOW() + INTERVAL 2 SECOND DO INSERT INTO log (x) VALUES ('ends')",
                "CREATE EVENT fails ON SCHEDULE AT NOW() ON COMPLETION PRESERVE DO INSERT INTO missing VALUES (1)",
                "CREATE EVENT off ON SCHEDULE EVERY 1 SECOND DISABLE DO INSERT INTO log (x) VALUES ('off')",
                "CREATE DEFINER=nobody@nowhere EVENT nobodys ON SCHEDULE EVERY 1 HOUR DO INSERT INTO log (x) VALUES ('nobody')"):
        expect(not is_error(run(c, sql)), sql)

    def left():
        return [name for (name,) in rows(c, "SELECT event_name FROM information_schema.events WHERE event_schema = 'test' AND NOT (on_completion = 'PRESERVE' AND status = 'DISABLED') ORDER BY 1")]

    wait_for(lambda: left() == ["nobodys", "off", "often"], "events end")
    wait_for(lambda: rows(c, "SELECT COUNT(*) FROM log WHERE x = 'often'")[0][0] > 2, "an event runs each second")
    found = [x for (x,) in rows(c, "SELECT x FROM log WHERE x <> 'often' AND x <> 'ends' ORDER BY x")]
    expect(found == ["in a procedure", "kept", "once maker@localhost +07:00 test 7"], found)
    ends = rows(c, "SELECT COUNT(*) FROM log WHERE x = 'ends'")[0][0]
    expect(1 <= ends <= 3, ends)
    expect(rows(c, "SELECT last_executed IS NOT NULL FROM information_schema.events WHERE event_name = 'often'") == ((1,),), "last run")
    said = (server.directory / server.log_name).read_text()
    for words in ("event test.fails of root@localhost: Table 'test.missing' doesn't exist", "event test.nobodys of nobody@nowhere"):
        expect(words in said, words)
    threads = rows(c, "SELECT user, command FROM information_schema.processlist WHERE user = 'event_scheduler'")
    expect(threads == (("event_scheduler", "Daemon"),), threads)

    # KILL ends an event that runs, and it is told.
    run(c, "CREATE EVENT sleeps ON SCHEDULE AT NOW() DO SELECT SLEEP(1000)")
    sleeping = "SELECT id FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%'"
    wait_for(lambda: rows(c, sleeping), "it sleeps")
    expect(not is_error(run(c, f"KILL {rows(c, sleeping)[0][0]}")), "KILL")
    wait_for(lambda: not rows(c, sleeping), "it is killed")
    wait_for(lambda: "sleeps" not in left(), "it is over")

    # Off, nothing runs; on again, what passed is passed over.
    run(c, "SET GLOBAL event_scheduler = OFF")
    wait_for(lambda: not rows(c, "SELECT 1 FROM information_schema.processlist WHERE user = 'event_scheduler'"), "the scheduler ends")
    run(c, "TRUNCATE log")
    run(c, "ALTER EVENT often ON SCHEDULE EVERY 1 SECOND STARTS NOW() - INTERVAL 100 SECOND")
    run(c, "CREATE EVENT missed ON SCHEDULE AT NOW() DO INSERT INTO log (x) VALUES ('missed')")
    run(c, "SET GLOBAL event_scheduler = ON")
    wait_for(lambda: rows(c, "SELECT COUNT(*) FROM log WHERE x = 'missed'")[0][0], "what is due once runs late")
    expect(rows(c, "SELECT COUNT(*) FROM log WHERE x = 'often'")[0][0] < 50, "what passed does not run")

    # Who kills its thread turns it off.
    wait_for(lambda: rows(c, "SELECT id FROM information_schema.processlist WHERE user = 'event_scheduler'"), "its thread")
    run(c, f"KILL {rows(c, 'SELECT id FROM information_schema.processlist WHERE user = %r' % 'event_scheduler')[0][0]}")
    wait_for(lambda: rows(c, "SELECT @@event_scheduler") == (("OFF",),), "off")
    run(c, "DROP DATABASE test")
    run(c, "DROP USER maker@localhost")


def rights(server):
    root = connect(server, autocommit=True)
    fresh(root)
    for sql in ("CREATE USER u@localhost", "GRANT SELECT, INSERT ON test.* TO u@localhost", "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1"):
        expect(not is_error(run(root, sql)), sql)
    u = connect(server, user="u", autocommit=True)
    for sql in ("CREATE EVENT test.x ON SCHEDULE EVERY 1 DAY DO SELECT 1", "ALTER EVENT test.e DISABLE", "DROP EVENT test.e", "SHOW CREATE EVENT test.e"):
        expect(run(u, sql) == 1044, f"{sql}: {run(u, sql)}")
    expect(run(u, "SELECT * FROM information_schema.events") == (), "not for its eyes")
    run(root, "GRANT EVENT ON test.* TO u@localhost")
    expect(run(u, "CREATE DEFINER=root@localhost EVENT test.x ON SCHEDULE EVERY 1 DAY DO SELECT 1") == 1227, "another's name")
    expect(run(u, "CREATE EVENT test.x ON SCHEDULE EVERY 1 DAY DO SELECT 1") == 0, "with the right")
    expect(run(u, "ALTER EVENT test.e DISABLE") == 0, "anybody's event of the database")
    expect(run(root, "SELECT definer FROM information_schema.events WHERE event_name = 'e'") == (("u@localhost",),), "who alters it makes it his")
    run(root, "DROP USER u@localhost")


def killed(directory, engine):
    """Events outlive a kill -9, and one that was to run once while the server was down runs when it is up again, once."""
    (directory / engine).mkdir()
    server = Omnibus(directory / engine, "--default-storage-engine", engine, "--event-scheduler=OFF")
    server.start()
    c = connect(server, autocommit=True)
    fresh(c)
    for sql in [*LOAD, "CREATE TABLE once (a INT)", "CREATE EVENT due ON SCHEDULE AT NOW() ON COMPLETION PRESERVE DO INSERT INTO test.once VALUES (1)"]:
        expect(not is_error(run(c, sql)), sql)
    wanted = contents(c)
    server.kill()
    server.start()
    c = connect(server, autocommit=True)
    expect(contents(c) == wanted, f"{wanted}\n{contents(c)}")
    run(c, "SET GLOBAL event_scheduler = ON")
    wait_for(lambda: run(c, "SELECT * FROM test.once") == ((1,),), "it runs")
    server.kill()
    server.start()
    c = connect(server, autocommit=True)
    run(c, "SET GLOBAL event_scheduler = ON")
    run(c, "TRUNCATE test.t")
    wait_for(lambda: run(c, "SELECT COUNT(DISTINCT a) FROM test.t") == ((2,),), "the others run")
    expect(run(c, "SELECT * FROM test.once") == ((1,),), "and it does not run twice")
    server.stop()


def dumped(server, peer):
    ours, theirs = connect(server, autocommit=True), connect(peer, autocommit=True)
    for c in (ours, theirs):
        run(c, "SET GLOBAL event_scheduler = OFF")
    fresh(theirs)
    run(theirs, "SET time_zone = '+03:00'")
    loaded(theirs, LOAD)
    twins.dumped(server, peer, "--events", contents)


def elsewhere(ours, chained, theirs):
    """Events do not run on replicas, until somebody says that they do."""
    for replica in (chained, theirs):
        c = connect(replica, autocommit=True)
        run(c, "SET GLOBAL event_scheduler = ON")
        status = run(c, "SELECT DISTINCT REPLACE(status, 'SLAVESIDE', 'REPLICA_SIDE'), originator <> @@server_id FROM information_schema.events WHERE event_schema = 'test'")
        expect(status == (("REPLICA_SIDE_DISABLED", 1),), status)


def main():
    with Scratch("omnibus-events-") as name:
        directory = pathlib.Path(name)
        (directory / "m").mkdir()
        server, peer = Omnibus(directory), MariaDB(directory / "m")
        for each in (server, peer):
            each.start()
        ours = connect(server, autocommit=True)
        same(ours, connect(peer, autocommit=True), SCRIPTS, allowed)
        scheduled(server)
        rights(server)
        dumped(server, peer)
        for engine in ("LSM", "BTREE"):
            killed(directory, engine)
        run(ours, "SET GLOBAL event_scheduler = OFF")
        for format in ("ROW", "STATEMENT", "MIXED"):
            logged(server, peer, format, fresh, LOAD, contents)
        replicas(directory, fresh, LOAD, contents, elsewhere, "--event-scheduler=OFF")
        server.stop()
        peer.stop()
    print("ok")


if __name__ == "__main__":
    main()
