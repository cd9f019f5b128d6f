"""The same statements here and on MariaDB, one after another."""

from omnibus import expect


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
