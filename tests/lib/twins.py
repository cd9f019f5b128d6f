"""The same statements here and on MariaDB: one after another, as a log, and as each other's replicas."""

import subprocess

from omnibus import connect, expect, finished_binlogs, replay
from peers import MariaPeer, OmnibusPeer, create_user, log_position, replicate, wait_caught_up


def run(connection, sql):
    """Rows, the number of rows that changed, or an error's code. A connection that is lost is no answer."""
    import pymysql
    cursor = connection.cursor()
    try:
        cursor.execute(sql)
    except pymysql.err.MySQLError as error:
        if error.args[0] in (0, 2006, 2013):
            raise
        return error.args[0]
    return cursor.rowcount if cursor.description is None else cursor.fetchall()


def fresh(connection):
    run(connection, "SET foreign_key_checks = 0")
    for name in ("other", "test"):
        run(connection, f"DROP DATABASE IF EXISTS {name}")
    run(connection, "SET foreign_key_checks = 1")
    run(connection, "CREATE DATABASE test")
    run(connection, "USE test")


def is_error(result):
    return isinstance(result, int) and result > 1000


def same(ours, theirs, scripts, allowed):
    """Both engines answer as MariaDB does, or with one of the codes that `allowed(sql, theirs)` gives."""
    for engine in ("LSM", "BTREE"):
        run(ours, f"SET default_storage_engine = {engine}")
        failures = []
        for name, script in scripts.items():
            fresh(ours)
            fresh(theirs)
            for line in script.strip().splitlines():
                sql = line.strip()
                here, there = run(ours, sql), run(theirs, sql)
                if sql.startswith("ALTER TABLE") and not is_error(here) and not is_error(there):
                    # How many rows were copied is each server's own business.
                    continue
                if here not in (allowed(sql, there) if is_error(there) else (there,)):
                    failures.append(f"{engine}, {name}: {sql}\n  here    {here}\n  MariaDB {there}")
        expect(not failures, "\n".join(failures))


def loaded(connection, load):
    for sql in load:
        expect(not is_error(run(connection, sql)), sql)


def killed(server, load, contents):
    """What was acknowledged is there after a kill -9, programs among it. The server runs again; a connection to it."""
    server.start()
    c = connect(server, autocommit=True)
    fresh(c)
    loaded(c, load)
    wanted = contents(c)
    server.kill()
    server.start()
    c = connect(server, autocommit=True)
    found = contents(c)
    expect(found == wanted, f"{wanted}\n{found}")
    return c


def dumped(server, peer, option, contents):
    """What `peer` has in `test`, dumped with this option, is the same here, and from here there again; a connection to each."""
    ours, theirs = connect(server, autocommit=True), connect(peer, autocommit=True)
    wanted = contents(theirs)
    for source, target, c in ((peer, server, ours), (server, peer, theirs)):
        dump = subprocess.run(["mariadb-dump", f"--socket={source.socket}", "-u", "root", option, "--databases", "test"], capture_output=True)
        expect(dump.returncode == 0, dump.stderr.decode())
        fresh(c)
        load = subprocess.run(["mariadb", f"--socket={target.socket}", "-u", "root"], input=dump.stdout, capture_output=True)
        expect(load.returncode == 0, load.stderr.decode())
        found = contents(c)
        expect(found == wanted, f"{wanted}\n{found}")
    return ours, theirs


def logged(server, peer, format, tables, load, contents):
    """Our log as a script for MariaDB. `tables(connection)` makes what `load` fills and `contents(connection)` reads."""
    c = connect(server, autocommit=True)
    run(c, f"SET binlog_format = {format}")
    run(c, "RESET BINARY LOGS AND GTIDS")
    tables(c)
    loaded(c, load)
    theirs = connect(peer, autocommit=True)
    fresh(theirs)
    run(theirs, "DROP DATABASE test")
    finished_binlogs(server)
    replay(server, peer)
    expect(contents(c) == contents(theirs), f"{format}: {contents(c)}\n{contents(theirs)}")


def replicas(directory, tables, load, contents, more, *options):
    """Each as the other's replica, and one of ours behind a replica of MariaDB, in three formats; then `more(ours, chained, theirs)`."""
    maria, ours = MariaPeer(directory / "s", 1, *options), OmnibusPeer(directory / "o", 2, *options)
    chained, theirs = OmnibusPeer(directory / "c", 3, *options), MariaPeer(directory / "t", 4, *options)
    servers = [maria, ours, chained, theirs]
    try:
        for server in servers:
            server.start()
            create_user(server)
        for replica, source in ((ours, maria), (chained, ours), (theirs, ours)):
            replicate(replica, source, position=log_position(source))
        for source, others in ((maria, [ours, chained, theirs]), (ours, [chained, theirs])):
            connection = connect(source, autocommit=True)
            for format in ("ROW", "STATEMENT", "MIXED"):
                run(connection, f"SET binlog_format = {format}")
                tables(connection)
                loaded(connection, load)
                wanted = contents(connection)
                for replica, its in ((ours, maria), (chained, ours), (theirs, ours)):
                    if replica in others:
                        wait_caught_up(replica, its)
                for replica in others:
                    found = contents(connect(replica, autocommit=True))
                    expect(found == wanted, f"{type(source).__name__}, {format}, {servers.index(replica)}:\n{wanted}\n{found}")
        more(ours, chained, theirs)
    finally:
        for server in servers:
            server.stop()
