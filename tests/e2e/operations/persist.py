#!/usr/bin/python3
"""SET PERSIST and RESET PERSIST over restarts and kills, and what a supervisor is told: readiness, stopping, RESTART.

Ring: gate.
"""

import json
import os
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, client, expect  # noqa: E402


def persist(directory):
    server = Omnibus(directory, "--max-connections=50")
    server.start()
    file = server.datadir / "mysqld-auto.cnf"
    a = Session(server)
    a.run("SET PERSIST max_connections = 77, GLOBAL long_query_time = 3", "SET @@PERSIST.sql_mode = 'ANSI'")
    expect(a.value("SELECT @@GLOBAL.max_connections") == 77, "it acts at once")
    a.run("SET PERSIST_ONLY back_log = 99")
    expect(a.value("SELECT @@back_log") != 99, "PERSIST_ONLY does not")
    rows = a("SELECT * FROM performance_schema.persisted_variables ORDER BY VARIABLE_NAME")
    expect([row[0] for row in rows] == ["back_log", "max_connections", "sql_mode"] and rows[1][1] == "77", rows)
    saved = json.loads(file.read_text())
    expect(saved["Version"] == 2 and saved["mysql_dynamic_variables"]["max_connections"]["Value"] == "77"
           and saved["mysql_static_variables"]["back_log"]["Metadata"]["User"] == "root", saved)
    a.fails("SET PERSIST datadir = '/tmp'", 1238)
    a.fails("SET PERSIST_ONLY datadir = '/tmp'", 1238)
    a.fails("SET PERSIST back_log = 5", 1238)
    a.fails("SET PERSIST max_connections = 'many'", 1232)
    a.fails("SET PERSIST nothing_at_all = 1", 1193)
    a.fails("RESET PERSIST wait_timeout", 3615)
    a.run("RESET PERSIST IF EXISTS wait_timeout", "CREATE USER u")
    out = client(server, "SET PERSIST max_connections = 3", user="u", check=False)
    expect("1227" in out.stderr.decode(), out.stderr)
    out = client(server, "RESET PERSIST", user="u", check=False)
    expect("1227" in out.stderr.decode(), out.stderr)
    server.kill()
    server.start()
    a = Session(server)
    expect(a("SELECT @@max_connections, @@back_log, @@GLOBAL.sql_mode LIKE '%ANSI%', @@GLOBAL.long_query_time = 3") == ((77, 99, 1, 0),),
           "what was kept, and no more, beats what is given at the start")
    a.run("RESET PERSIST back_log")
    expect("back_log" not in file.read_text(), "one is forgotten")
    server.stop()
    server.options.append("--skip-persisted-globals-load")
    server.start()
    expect(client(server, "SELECT @@max_connections").strip() == "50", "--skip-persisted-globals-load")
    expect("max_connections" in client(server, "SELECT * FROM performance_schema.persisted_variables"), "the file stays")
    client(server, "RESET PERSIST")
    expect(client(server, "SELECT * FROM performance_schema.persisted_variables") == "", "all are forgotten")
    server.stop()
    server.options.pop()
    for text, word in (('{"Version": 2, "mysql_dynamic_variables": {', "mysqld-auto.cnf"),
                       ('{"Version": 2, "mysql_dynamic_variables": {"max_connections": {"Value": "x"}}}', "max_connections")):
        file.write_text(text)
        try:
            server.start()
            expect(False, "a damaged file")
        except RuntimeError as error:
            expect(word in str(error), error)
    file.write_text('{"Version": 2, "mysql_dynamic_variables": {"of_a_later_version": {"Value": "x"}}}')
    server.start()
    expect("of_a_later_version" in server.log_tail(100), "an unknown variable is a warning")
    server.stop()


def supervised(directory):
    """READY=1 when connections are let in, STOPPING=1, and status 16 from RESTART; without a supervisor RESTART is refused."""
    name = f"{directory}/notify"
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(name)
    told.settimeout(60)
    server = Omnibus(directory, "--log-error-services=log_sink_json", env={"NOTIFY_SOCKET": name})
    server.start()
    ready = told.recv(4096).decode()
    expect(ready.startswith("READY=1\n") and f"MAINPID={server.process.pid}" in ready, ready)
    client(server, "CREATE DATABASE d; RESTART")
    expect(told.recv(4096).decode() == "STOPPING=1", "STOPPING=1")
    expect(server.process.wait(60) == 16, f"status {server.process.returncode}")
    lines = [json.loads(line) for line in (server.directory / "server.log").read_text().splitlines()]
    expect(all({"timestamp", "level", "message"} <= set(line) for line in lines) and len(lines) > 3, "the error log as JSON")
    server.env = {k: v for k, v in os.environ.items() if k != "NOTIFY_SOCKET"}
    server.start()
    expect("d" in client(server, "SHOW DATABASES").split(), "it is there again")
    out = client(server, "RESTART", check=False)
    expect("3707" in out.stderr.decode(), out.stderr)
    server.process.terminate()
    expect(server.process.wait(60) == 0, "an end for good")


def main():
    with Scratch("omnibus-persist-") as directory:
        for test in (persist, supervised):
            place = pathlib.Path(directory) / test.__name__
            place.mkdir()
            test(place)
    print("persist: ok")


if __name__ == "__main__":
    main()
