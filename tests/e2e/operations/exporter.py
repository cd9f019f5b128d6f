#!/usr/bin/python3
"""Prometheus's mysqld_exporter, unmodified, with all of its collectors: each succeeds, and none says an error; what it reads is what the server says.
On a source and on its replica, in both dialects.

Ring: all.
"""

import http.client
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, Scratch, client, expect, free_port, wait_for  # noqa: E402
from peers import OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402

ACCOUNT = ("CREATE USER watcher@'%' IDENTIFIED BY 'p'; GRANT PROCESS, REPLICATION CLIENT, REPLICATION SLAVE, SELECT ON *.* TO watcher@'%'")
# What asks for servers or plugins that are others'.
NOT_OURS = {"heartbeat"}


def collectors(program):
    said = subprocess.run([program, "--help"], capture_output=True, text=True)
    names = re.findall(r"--\[no-\]collect\.([a-z0-9_.]+)\b", said.stdout + said.stderr)
    return sorted({name for name in names if not re.search(r"\.(databases|limit|timelimit|digest_text_limit|min_time|query_exclusions|processes_by_user|processes_by_host|remove_prefix|database|table|utc|privileges)$", name)})


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Exporter:
    """One that watches a server."""

    def __init__(self, program, server, directory, all_of_them):
        self.port, self.log = free_port(), pathlib.Path(directory) / f"exporter-{server.port}.log"
        options = pathlib.Path(directory) / f"exporter-{server.port}.cnf"
        options.write_text(f"[client]\nuser=watcher\npassword=p\nhost=127.0.0.1\nport={server.port}\n")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([program, f"--config.my-cnf={options}", f"--web.listen-address=127.0.0.1:{self.port}",
                                             *(f"--collect.{name}" for name in all_of_them)], stderr=log, stdout=log)
        wait_for(self.answers, lambda: f"the exporter starts: {self.log.read_text()[-2000:]}")

    def answers(self):
        expect(self.process.poll() is None, f"the exporter ended: {self.log.read_text()[-2000:]}")
        try:
            return get(self.port, "/")[0] == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait()


def watched(program, server, directory, all_of_them, *more):
    exporter = Exporter(program, server, directory, all_of_them)
    for _ in range(2):
        status, body = get(exporter.port, "/metrics")
        expect(status == 200, f"{status}: {body[:2000]}")
    log = exporter.log.read_text()
    exporter.stop()
    complaints = [line for line in log.splitlines() if "level=error" in line.lower() or "level=warn" in line.lower()]
    expect(not complaints, "\n".join(complaints))
    expect("\nmysql_up 1\n" in body, "it is up")
    success = dict(re.findall(r'mysql_exporter_collector_success\{collector="([^"]+)"\} ([01])', body))
    expect(len(success) >= len(all_of_them), f"{len(success)} of {len(all_of_them)} collectors ran: {set(all_of_them)}")
    expect(all(value == "1" for value in success.values()), success)
    for wanted in ("mysql_global_status_commands_total{command=\"insert\"} ", "mysql_global_variables_max_connections ", "mysql_version_info{",
                   "mysql_perf_schema_file_events_bytes_total{", "mysql_info_schema_table_rows{", "mysql_sys_statements_total{", *more):
        expect(wanted in body, f"no {wanted}")
    return body


def main():
    program = subprocess.run([ROOT / "tests/clients/mysqld-exporter/install"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    if not program:
        print("exporter: this Go is too old to build it; not tried")
        return
    all_of_them = [name for name in collectors(program) if name not in NOT_OURS]
    expect(len(all_of_them) > 25, f"its collectors: {all_of_them}")
    with Scratch("omnibus-exporter-") as directory:
        for dialect in ("mysql", "mariadb"):
            source, replica = (OmnibusPeer(pathlib.Path(directory) / f"{dialect}-{n}", n, f"--dialect={dialect}") for n in (1, 2))
            source.start()
            replica.start()
            create_user(source)
            replicate(replica, source)
            client(source, f"{ACCOUNT}; CREATE DATABASE d; CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, KEY v (v)); INSERT INTO d.t (v) VALUES (1), (2)"
                           "; USE d; SELECT * FROM t WHERE v = 1")
            wait_caught_up(replica, source)
            body = watched(program, source, directory, all_of_them, "mysql_perf_schema_events_statements_total{")
            inserts = int(client(source, "SHOW GLOBAL STATUS LIKE 'Com_insert'").split()[1])
            expect(f'mysql_global_status_commands_total{{command="insert"}} {inserts}\n' in body, "the server's own number")
            watched(program, replica, directory, all_of_them, "mysql_slave_status_")
            source.stop()
            replica.stop()
    print(f"exporter: ok, {len(all_of_them)} collectors")


if __name__ == "__main__":
    main()
