#!/usr/bin/python3
"""Administration of the log from outside: SHOW, FLUSH, PURGE, RESET, its variables and counters, and a log that fails.

Nothing that was acknowledged may be missing after any of it and a kill.

Ring: gate.
"""

import os
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import PATIENCE_S, Omnibus, Scratch, client, connect, error_code, expect, wait_for  # noqa: E402

ALL_ROWS = "SELECT COUNT(*), COALESCE(SUM(id), 0) FROM a.t"


def rows(cursor, sql):
    cursor.execute(sql)
    return cursor.fetchall()


def table(cursor):
    cursor.execute("CREATE DATABASE a")
    cursor.execute("CREATE TABLE a.t (id INT PRIMARY KEY, v VARCHAR(1000))")


def insert(cursor, first, count):
    for n in range(first, first + count):
        cursor.execute("INSERT INTO a.t VALUES (%s, REPEAT('v', 200))", (n,))


def log_names(cursor):
    return [row[0] for row in rows(cursor, "SHOW BINARY LOGS")]


def status(cursor):
    return rows(cursor, "SHOW BINARY LOG STATUS")[0]


def positions(path):
    """Where events start, as mariadb-binlog sees it."""
    run = subprocess.run(["mariadb-binlog", "--no-defaults", "--verify-binlog-checksum", str(path)],
                         capture_output=True, text=True, errors="replace")
    expect(run.returncode == 0 and "ERROR" not in run.stderr, f"mariadb-binlog {path}: {run.stderr}")
    return [int(n) for n in re.findall(r"^# at (\d+)$", run.stdout, re.MULTILINE)]


def files_and_events(directory):
    server = Omnibus(directory)
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        insert(cursor, 0, 5)
        before = status(cursor)
        insert(cursor, 5, 1)
        after = status(cursor)
        expect(before[0] == after[0] and before[1] < after[1], f"the log grows: {before} {after}")
        expect(rows(cursor, "SHOW MASTER STATUS")[0] == after, "both names of the statement")
        expect(after[4] == rows(cursor, "SELECT @@GLOBAL.gtid_executed")[0][0] != "", "Executed_Gtid_Set")
        cursor.execute("FLUSH BINARY LOGS")
        names = log_names(cursor)
        expect(len(names) == 2 and status(cursor)[0] == names[1], f"FLUSH BINARY LOGS: {names}")
        for name, size, encrypted in rows(cursor, "SHOW BINARY LOGS")[:-1]:
            # The space that was prepared behind the end is cut off in the background.
            wait_for(lambda: size == (server.datadir / name).stat().st_size, f"size of {name}")  # noqa: B023
            expect(encrypted == "No", f"{name} is not encrypted")
        events = rows(cursor, f"SHOW BINLOG EVENTS IN '{names[0]}'")
        expect(rows(cursor, "SHOW BINLOG EVENTS") == events, "the first file without IN")
        kinds = [event[2] for event in events]
        for kind in ("Format_desc", "Previous_gtids", "Gtid", "Query", "Table_map", "Write_rows", "Xid", "Rotate"):
            expect(kind in kinds, f"{kind} in {kinds}")
        expect(all(a[4] == b[1] for a, b in zip(events, events[1:])), "each event ends where the next begins")
        infos = "\n".join(event[5] for event in events)
        for part in ("Server ver: 8.4.0-omnibus, Binlog ver: 4", "SET @@SESSION.GTID_NEXT= '", "(a.t)",
                     "flags: STMT_END_F", "COMMIT /* xid=", f"{names[1]};pos=4"):
            expect(part in infos, f"{part} in Info")
        # mariadb-binlog skips nothing of this: the same starts in the same order.
        seen = positions(server.datadir / names[0])
        expect(set(seen) <= {event[1] for event in events}, "every event that mariadb-binlog finds is listed")
        middle = events[len(events) // 2]
        part = rows(cursor, f"SHOW BINLOG EVENTS IN '{names[0]}' FROM {middle[1]} LIMIT 1, 2")
        at = events.index(middle)
        expect(part == events[at + 1:at + 3], "FROM and LIMIT")
        for wrong in (f"IN '{names[0]}' FROM {middle[1] + 1}", "IN 'binlog.999999'", "IN 'x'",
                      f"IN '{names[0]}' FROM 4000000000"):
            code = error_code(lambda sql=wrong: cursor.execute(f"SHOW BINLOG EVENTS {sql}"))
            expect(code == 1220, f"SHOW BINLOG EVENTS {wrong}: {code}")
    finally:
        server.stop()


def purge(directory):
    server = Omnibus(directory)
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        for n in range(6):
            insert(cursor, n * 10, 10)
            cursor.execute("FLUSH BINARY LOGS")
        names = log_names(cursor)
        code = error_code(lambda: cursor.execute("PURGE BINARY LOGS TO 'binlog.999999'"))
        expect(code == 1373, f"an unknown file: {code}")
        cursor.execute(f"PURGE BINARY LOGS TO '{names[2]}'")
        expect(log_names(cursor) == names[2:], "PURGE TO")
        purged = rows(cursor, "SELECT @@GLOBAL.gtid_purged")[0][0]
        executed = rows(cursor, "SELECT @@GLOBAL.gtid_executed")[0][0]
        expect(purged != "" and purged != executed, f"gtid_purged {purged}")
        cursor.execute("PURGE MASTER LOGS BEFORE '2001-01-01 00:00:00'")
        expect(log_names(cursor) == names[2:], "nothing is that old")
        # PURGE-1: what went was not needed.
        server.kill()
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        expect(rows(cursor, ALL_ROWS) == ((60, sum(range(60))),), "all rows after a purge and a kill")
        expect(rows(cursor, "SELECT @@GLOBAL.gtid_executed")[0][0] == executed, "gtid_executed after a kill")
        expect(rows(cursor, "SELECT @@GLOBAL.gtid_purged")[0][0] == purged, "gtid_purged after a kill")
        insert(cursor, 60, 10)
        cursor.execute("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
        expect(len(log_names(cursor)) == 1, f"all but the active file: {log_names(cursor)}")
        server.kill()
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        expect(rows(cursor, ALL_ROWS) == ((70, sum(range(70))),), "all rows after everything was purged")

        # What left the index is deleted in the background.
        def leftovers():
            return {path.name for path in server.datadir.glob("binlog.*")} - {"binlog.index"}
        wait_for(lambda: leftovers() == set(log_names(cursor)), lambda: f"directory and index agree: {leftovers()}")
    finally:
        server.stop()


def reset(directory):
    server = Omnibus(directory)
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        insert(cursor, 0, 10)
        cursor.execute("FLUSH BINARY LOGS")
        insert(cursor, 10, 10)
        cursor.execute("RESET BINARY LOGS AND GTIDS")
        expect(log_names(cursor) == ["binlog.000001"], f"after RESET: {log_names(cursor)}")
        expect(rows(cursor, "SELECT @@GLOBAL.gtid_executed, @@GLOBAL.gtid_purged") == (("", ""),), "no GTIDs")
        insert(cursor, 20, 3)
        executed = rows(cursor, "SELECT @@GLOBAL.gtid_executed")[0][0]
        expect(executed.endswith(":1-3"), f"GTIDs count from 1: {executed}")
        for n in range(2):
            server.kill()
            server.start()
            cursor = connect(server, autocommit=True).cursor()
            expect(rows(cursor, ALL_ROWS)[0][0] == 23 + n, "all rows after RESET and a kill")
            insert(cursor, 23 + n, 1)
        executed = rows(cursor, "SELECT @@GLOBAL.gtid_executed")[0][0]
        expect(executed.endswith(":1-5"), f"they go on after a restart: {executed}")
        cursor.execute("RESET BINARY LOGS AND GTIDS TO 1234")
        expect(log_names(cursor) == ["binlog.001234"], f"RESET TO: {log_names(cursor)}")
        insert(cursor, 25, 1)
        server.stop()
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        expect(rows(cursor, ALL_ROWS) == ((26, sum(range(26))),), "all rows after a clean stop")
        expect(rows(cursor, "SELECT @@GLOBAL.gtid_executed")[0][0].endswith(":1"), "one GTID")
        server.stop()
        for path in server.binlogs():
            expect(len(positions(path)) > 3, f"mariadb-binlog reads {path}")
    finally:
        server.stop()


def numbers_run_out(directory):
    """The last numbers of log files are for starts: a running server stays in its file, and says what to do."""
    server = Omnibus(directory, "--binlog-large-commit-threshold=1M", "--max-binlog-size=4096")
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        for kept in (2147482647, 2147483647):
            expect(error_code(lambda: cursor.execute(f"RESET BINARY LOGS AND GTIDS TO {kept}")) == 3567, "behind this one there would be none")  # noqa: B023
        cursor.execute("RESET BINARY LOGS AND GTIDS TO 2000000000")
        cursor.execute("FLUSH BINARY LOGS")
        expect("numbers of log files run out" in server.log_tail(), f"no warning: {server.log_tail()}")
        cursor.execute("RESET BINARY LOGS AND GTIDS TO 2147482646")
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("PURGE BINARY LOGS TO 'binlog.2147482647'")
        last = ["binlog.2147482647"]
        for sql in ("FLUSH BINARY LOGS", "FLUSH LOGS", "SET GLOBAL binlog_checksum = 'NONE'"):
            expect(error_code(lambda: cursor.execute(sql)) == 1098, f"{sql} goes on to a number that is kept for starts")  # noqa: B023
        insert(cursor, 0, 200)
        cursor.execute("CREATE TABLE a.b (v LONGTEXT)")
        cursor.execute("INSERT INTO a.b VALUES (REPEAT('x', 3000000))")
        expect(log_names(cursor) == last, f"a full file, or a large transaction, is no reason: {log_names(cursor)}")
        for n in range(3):
            server.stop() if n else server.kill()
            server.start()
            cursor = connect(server, autocommit=True).cursor()
            last.append(f"binlog.{2147482648 + n}")
            expect(log_names(cursor) == last, f"each start takes one: {log_names(cursor)}")
            expect(rows(cursor, ALL_ROWS)[0][0] == 200 + n, "all rows are there")
            insert(cursor, 200 + n, 1)
        expect(error_code(lambda: cursor.execute("FLUSH BINARY LOGS")) == 1098, "still")
        cursor.execute("RESET BINARY LOGS AND GTIDS")
        cursor.execute("FLUSH BINARY LOGS")
        expect(log_names(cursor) == ["binlog.000001", "binlog.000002"], f"begins again: {log_names(cursor)}")
    finally:
        server.stop()


def variables(directory):
    server = Omnibus(directory, "--max-binlog-size=1M")
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        count = len(log_names(cursor))
        cursor.execute("SET GLOBAL binlog_checksum = NONE")
        expect(len(log_names(cursor)) == count + 1, "a new checksum needs a new file")
        insert(cursor, 0, 5)
        cursor.execute("SET GLOBAL binlog_checksum = CRC32")
        for name in log_names(cursor)[:-1]:
            positions(server.datadir / name)
        plain = (server.datadir / log_names(cursor)[count]).read_bytes()
        expect(plain[4 + 9:4 + 13] != b"", "there is a head")
        cursor.execute("SET GLOBAL max_binlog_size = 4096")
        insert(cursor, 5, 100)
        expect(len(log_names(cursor)) > count + 5, "small files rotate often")
        cursor.execute("SET GLOBAL sync_binlog = 0")
        insert(cursor, 105, 10)
        cursor.execute("SET GLOBAL sync_binlog = 1")
        insert(cursor, 115, 10)
        cursor.execute("SET GLOBAL binlog_group_commit_sync_delay = 100000")
        started = time.monotonic()
        insert(cursor, 125, 10)
        # Of one second; some of them may be cut short by housekeeping that settles the log, or by another log thread's delay.
        expect(time.monotonic() - started > 0.2, "binlog_group_commit_sync_delay delays")
        cursor.execute("SET GLOBAL binlog_group_commit_sync_delay = 0")
        cursor.execute("SET GLOBAL max_binlog_cache_size = 4096")
        code = error_code(lambda: cursor.execute("INSERT INTO a.t SELECT id + 1000, v FROM a.t"))
        expect(code == 1197, f"max_binlog_cache_size: {code}")
        cursor.execute("SET GLOBAL max_binlog_cache_size = 1048576")
        cursor.execute("SET GLOBAL binlog_space_limit = 30000")
        cursor.execute("FLUSH BINARY LOGS")
        wait_for(lambda: sum(row[1] for row in rows(cursor, "SHOW BINARY LOGS")) <= 30000, "binlog_space_limit")
        server.kill()
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        expect(rows(cursor, ALL_ROWS) == ((135, sum(range(135))),), "all rows after a kill")
    finally:
        server.stop()


def counters(directory):
    server = Omnibus(directory)
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        before = dict(rows(cursor, "SHOW GLOBAL STATUS LIKE 'Binlog%'"))
        insert(cursor, 0, 20)
        after = dict(rows(cursor, "SHOW GLOBAL STATUS LIKE 'Binlog%'"))
        for name, growth in (("Binlog_commits", 20), ("Binlog_cache_use", 20)):
            got = int(after[name]) - int(before[name])
            expect(got == growth, f"{name} grew by {got}")
        for name in ("Binlog_group_commits", "Binlog_syncs", "Binlog_bytes_written"):
            expect(int(after[name]) > int(before[name]), f"{name} grows")
        for name in ("Binlog_cache_disk_use", "Binlog_inline_commits", "Binlog_group_size_le_1",
                     "Binlog_group_commit_sync_us_p50", "Binlog_group_commit_sync_us_p99"):
            expect(name in after, f"{name} is there")
        file, position = status(cursor)[:2]
        place = dict(rows(cursor, "SHOW GLOBAL STATUS LIKE 'Binlog_snapshot%'"))
        expect((place["Binlog_snapshot_file"], int(place["Binlog_snapshot_position"])) == (file, position),
               f"the published place: {place}")
        expect(len(rows(cursor, "SHOW GLOBAL STATUS LIKE 'Lsm_%'")) >= 5, "the engine's figures")
    finally:
        server.stop()


def break_log(server, cursor):
    """Makes the next log file impossible, and asks for it."""
    name = status(cursor)[0]
    obstacle = server.datadir / f"binlog.{int(name.rsplit('.')[1]) + 1:06d}"
    obstacle.mkdir()
    code = error_code(lambda: cursor.execute("FLUSH BINARY LOGS"))
    expect(code != 0, "FLUSH BINARY LOGS on a broken log")
    return obstacle


def failing_log(directory):
    server = Omnibus(directory)
    server.start()
    try:
        cursor = connect(server, autocommit=True).cursor()
        table(cursor)
        insert(cursor, 0, 10)
        obstacle = break_log(server, cursor)
        code = server.process.wait(PATIENCE_S)
        expect(code != 0, f"ABORT_SERVER ends with a failure, not {code}")
        expect(obstacle.name in server.log_tail(40), "and says which file it was")
        obstacle.rmdir()
        server.start()
        cursor = connect(server, autocommit=True).cursor()
        expect(rows(cursor, ALL_ROWS) == ((10, 45),), "all rows after it")
        cursor.execute("SET GLOBAL binlog_error_action = IGNORE_ERROR")
        obstacle = break_log(server, cursor)
        expect(rows(cursor, ALL_ROWS) == ((10, 45),), "reads go on")
        code = error_code(lambda: insert(cursor, 10, 1))
        expect(code != 0, "writes are refused")
        other = connect(server, autocommit=True).cursor()
        expect(rows(other, ALL_ROWS) == ((10, 45),), "a refused write is not there, for others neither")
        expect(server.process.poll() is None, "the server is still there")
        server.stop()
        os.rmdir(obstacle)
        server.start()
        expect(client(server, ALL_ROWS).split() == ["10", "45"], "nor after a restart")
    finally:
        server.stop()


def main():
    tests = [files_and_events, purge, reset, numbers_run_out, variables, counters, failing_log]
    for test in tests:
        with Scratch("omnibus-log-admin-") as directory:
            test(directory)
        print(f"log_admin: {test.__name__} ok", flush=True)
    print(f"{len(tests)} passed, 0 failed")


if __name__ == "__main__":
    main()
