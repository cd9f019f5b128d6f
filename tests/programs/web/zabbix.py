"""Zabbix: schema, images and data loaded from its package, its server run over them, hosts made by its frontend's API, values sent and read back.

Its log tells of every query that fails.
"""

import gzip
import json
import pathlib
import re
import socket
import struct
import subprocess
import tempfile
import time

from omnibus import client, expect, free_port, wait_for
from webapp import Pages, Steps

CONFIG = """LogType=console
DBHost=127.0.0.1
DBPort={db}
DBName=zabbix
DBUser=program
DBPassword=secret
ListenPort={port}
ListenIP=127.0.0.1
PidFile={folder}/pid
SocketDir={folder}
FpingLocation=/usr/bin/fping
StartPollers=2
StartDBSyncers=3
CacheUpdateFrequency=3
HousekeepingFrequency=0
AllowRoot=1
AllowUnsupportedDBVersions=1
"""
FRONTEND = """<?php
global $DB, $HISTORY;
$DB = ['TYPE' => 'MYSQL', 'SERVER' => '127.0.0.1', 'PORT' => '%d', 'DATABASE' => 'zabbix', 'USER' => 'program', 'PASSWORD' => 'secret', 'SCHEMA' => '',
       'ENCRYPTION' => false, 'KEY_FILE' => '', 'CERT_FILE' => '', 'CA_FILE' => '', 'VERIFY_HOST' => false, 'CIPHER_LIST' => '', 'VAULT_URL' => '',
       'VAULT_DB_PATH' => '', 'VAULT_TOKEN' => '', 'DOUBLE_IEEE754' => true];
$ZBX_SERVER = '127.0.0.1'; $ZBX_SERVER_PORT = '%d'; $ZBX_SERVER_NAME = 'here'; $IMAGE_FORMAT_DEFAULT = IMAGE_FORMAT_PNG; $ALLOW_UNSUPPORTED_DB_VERSIONS = true;
"""


def suite(root, server):
    steps = Steps("Zabbix")
    with tempfile.TemporaryDirectory(prefix="omnibus-zabbix-") as folder:
        monitor = Monitor(root, pathlib.Path(folder), steps, server)
        try:
            monitor.run()
        finally:
            monitor.close()
    return steps.result()


class Monitor:
    def __init__(self, root, folder, steps, server):
        self.root, self.folder, self.steps, self.server = root, folder, steps, server
        self.port, self.process, self.pages, self.session, self.log = free_port(), None, None, None, folder / "server.log"

    def run(self):
        for name in ("load", "start_server", "log_in", "hosts", "send_values", "problems", "read_back", "change_and_delete", "pages_of_frontend", "housekeeper", "restart"):
            with self.steps(name.replace("_", " ")):
                getattr(self, name)()
                failed = [line for line in self.said().splitlines() if re.search(r"\[Z3005\]|query failed|Error in query|SQL statement execution", line)]
                expect(not failed, "\n".join(failed[:5]))

    def said(self):
        return (self.log.read_text(errors="replace") if self.log.exists() else "") + (self.pages.said() if self.pages else "")

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
        if self.pages:
            self.pages.close()

    def load(self):
        client(self.server, "DROP DATABASE IF EXISTS zabbix; CREATE DATABASE zabbix CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        for name in ("schema", "images", "data", "double", "history_pk_prepare"):
            with tempfile.TemporaryFile() as text:
                text.write(gzip.decompress((self.root / f"usr/share/zabbix-server-mysql/{name}.sql.gz").read_bytes()))
                text.seek(0)
                client(self.server, None, "zabbix", stdin=text)
        found = client(self.server, "SELECT COUNT(*), SUM(CONSTRAINT_TYPE = 'FOREIGN KEY') FROM information_schema.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'zabbix'")
        expect(int(found.split()[1]) > 200, found)
        orphans = client(self.server, "SELECT COUNT(*) FROM zabbix.items i LEFT JOIN zabbix.hosts h USING (hostid) WHERE h.hostid IS NULL")
        expect(orphans == "0\n", orphans)
        # Nothing is to be asked of agents that are not there.
        client(self.server, "UPDATE zabbix.hosts SET status = 1 WHERE status = 0")

    def start_server(self):
        config = self.folder / "server.conf"
        config.write_text(CONFIG.format(db=self.server.port, port=self.port, folder=self.folder))
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([self.root / "usr/sbin/zabbix_server", "-f", "-c", config], stdout=log, stderr=log)
        wait_for(lambda: self.process.poll() is None and "HA manager started in active mode" in self.log.read_text(errors="replace"), lambda: self.said()[-1500:])
        wait_for(lambda: self.trapper({"request": "sender data", "data": []}, True), lambda: self.said()[-1500:])

    def trapper(self, request, may_fail=False):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=20) as peer:
                body = json.dumps(request).encode()
                peer.sendall(b"ZBXD\x01" + struct.pack("<II", len(body), 0) + body)
                answer = b"".join(iter(lambda: peer.recv(65536), b""))
            return json.loads(answer[13:])
        except (OSError, ValueError):
            expect(may_fail, f"no answer to {request}")
            return None

    def api(self, method, params):
        token = self.session if method not in ("user.login", "apiinfo.version") else None
        text = self.pages.get("/api_jsonrpc.php", {"jsonrpc": "2.0", "method": method, "params": params, "id": 1, "auth": token},
                              {"json": True})
        answer = json.loads(text)
        expect("result" in answer, f"{method}: {text[:700]}")
        return answer["result"]

    def log_in(self):
        config = self.folder / "frontend.php"
        config.write_text(FRONTEND % (self.server.port, self.port))
        self.pages = Pages(self.root / "usr/share/zabbix", self.folder, "-d", "post_max_size=16M", "-d", "max_execution_time=300", "-d", "date.timezone=UTC",
                           PROGRAMS_CONFIG=config)
        self.session = self.api("user.login", {"user": "Admin", "password": "zabbix"})

    def hosts(self):
        group = self.api("hostgroup.create", {"name": "Grüppe ☃"})["groupids"][0]
        template = self.api("template.create", {"host": "Template T", "groups": {"groupid": group}})["templateids"][0]
        for number, kind in ((0, "float"), (3, "unsigned"), (4, "text"), (1, "char"), (2, "log")):
            self.api("item.create", {"name": f"of {kind}", "key_": f"t.{kind}", "hostid": template, "type": 2, "value_type": number,
                                     **({"trends": "30d"} if number in (0, 3) else {}), "tags": [{"tag": "kind", "value": kind}]})
        self.api("trigger.create", [{"description": f"over {limit}", "expression": f"last(/Template T/t.unsigned)>{limit}", "priority": 2 + limit // 100,
                                     "tags": [{"tag": "limit", "value": str(limit)}]} for limit in (100, 200)])
        names = [f"host-{n}" for n in range(8)]
        self.hosts_made = self.api("host.create", [{"host": name, "groups": [{"groupid": group}], "templates": [{"templateid": template}], "tags": [{"tag": "n", "value": name}],
                                                    "macros": [{"macro": "{$A}", "value": name}], "inventory_mode": 0} for name in names])["hostids"]
        found = self.api("host.get", {"output": ["host"], "groupids": [group], "selectItems": ["key_"], "selectTriggers": "count", "selectTags": "extend", "sortfield": "host"})
        expect([host["host"] for host in found] == names and all(len(host["items"]) == 5 and host["triggers"] == "2" for host in found), found[:1])
        self.group, self.template, self.names = group, template, names
        # With all templates of the package that say Linux, as so many hosts have.
        linux = self.api("template.get", {"output": ["host"], "search": {"host": "Linux by Zabbix agent active"}})
        expect(linux, "no templates of the package")
        self.api("host.create", {"host": "linux", "groups": [{"groupid": group}], "templates": [{"templateid": linux[0]["templateid"]}]})
        expect(int(self.api("item.get", {"countOutput": True, "host": "linux"})) > 30, "items of a template")

    def send_values(self):
        """The server takes values once it knows the items."""
        def send(clock):
            data = [{"host": name, "key": f"t.{kind}", "value": value, "clock": clock, "ns": clock % 1000} for at, name in enumerate(self.names)
                    for kind, value in (("float", f"{at}.5e10"), ("unsigned", str(90 + at * 5)), ("text", f"long 🚂 {'x' * 3000}"), ("char", "ß" * 200), ("log", "a line"))]
            return self.trapper({"request": "sender data", "data": data})
        wait_for(lambda: "failed: 0" in send(int(time.time()) - 5000)["info"], "the server does not know the items", every=1)
        for ago in range(40):
            answer = send(int(time.time()) - 4000 + ago * 90)
            expect("failed: 0; total: 40" in answer["info"], answer)

    def problems(self):
        found = wait_for(lambda: self.api("problem.get", {"output": "extend", "groupids": [self.group], "selectTags": "extend", "sortfield": "eventid"}), "no problem")
        wait_for(lambda: len(self.api("problem.get", {"groupids": [self.group]})) == 5, lambda: f"{len(found)} problems, not 5")
        events = self.api("event.get", {"output": ["eventid", "name"], "groupids": [self.group], "value": 1, "tags": [{"tag": "limit", "value": "100", "operator": 1}]})
        expect(len(events) == 5, events)
        self.api("event.acknowledge", {"eventids": [event["eventid"] for event in events], "action": 6, "message": "seen ☃"})
        self.trapper({"request": "sender data", "data": [{"host": "host-7", "key": "t.unsigned", "value": "1"}]})
        wait_for(lambda: len(self.api("problem.get", {"groupids": [self.group]})) == 4, "a problem that does not end")

    def read_back(self):
        items = {item["name"]: item["itemid"] for item in self.api("item.get", {"output": ["name"], "host": "host-3"})}
        for kind, number, value in (("float", 0, 3.5e10), ("unsigned", 3, 105)):
            wait_for(lambda: len(self.api("history.get", {"history": number, "itemids": items[f"of {kind}"]})) >= 41, f"history of {kind}")  # noqa: B023
            latest = self.api("history.get", {"history": number, "itemids": items[f"of {kind}"], "sortfield": "clock", "sortorder": "DESC", "limit": 1})
            expect(float(latest[0]["value"]) == value, latest)
        text = self.api("history.get", {"history": 4, "itemids": items["of text"], "limit": 1})
        expect(text[0]["value"] == f"long 🚂 {'x' * 3000}", text[0]["value"][:50])
        hosts = client(self.server, "SELECT COUNT(DISTINCT itemid), COUNT(*) >= 8 * 41 FROM zabbix.history_uint JOIN zabbix.items USING (itemid) WHERE key_ = 't.unsigned'")
        expect(hosts == "8\t1\n", hosts)

    def change_and_delete(self):
        self.api("host.massadd", {"hosts": [{"hostid": host} for host in self.hosts_made], "macros": [{"macro": "{$B}", "value": "b"}]})
        self.api("item.create", {"name": "later", "key_": "t.later", "hostid": self.template, "type": 2, "value_type": 3})
        expect(int(self.api("item.get", {"countOutput": True, "search": {"key_": "t.later"}, "inherited": True})) == 8, "an item of all hosts")
        self.api("maintenance.create", {"name": "m", "active_since": int(time.time()) - 60, "active_till": int(time.time()) + 3600, "hostids": self.hosts_made[:2],
                                        "timeperiods": [{"timeperiod_type": 0, "start_date": int(time.time()), "period": 3600}]})
        exported = self.api("configuration.export", {"format": "json", "options": {"templates": [self.template]}})
        self.api("configuration.import", {"format": "json", "source": exported.replace("Template T", "Template U"), "rules": {
            "templates": {"createMissing": True}, "items": {"createMissing": True}, "triggers": {"createMissing": True}, "groups": {"createMissing": True}}})
        self.api("host.delete", [self.hosts_made[5], self.hosts_made[6]])
        left = client(self.server, f"SELECT COUNT(*) FROM zabbix.items WHERE hostid IN ({self.hosts_made[5]}, {self.hosts_made[6]})")
        expect(left == "0\n", f"{left} items of deleted hosts")
        self.api("user.create", {"username": "zoë", "passwd": "Secret-of-7-words", "roleid": "1", "usrgrps": [{"usrgrpid": "8"}]})

    def pages_of_frontend(self):
        self.pages.get("/index.php", {"name": "Admin", "password": "zabbix", "autologin": "1", "enter": "Sign in"})
        for page in ("zabbix.php?action=dashboard.view", "zabbix.php?action=problem.view", "zabbix.php?action=host.view", "zabbix.php?action=latest.view&hostids[]=" + self.hosts_made[0],
                     "zabbix.php?action=host.list", "templates.php", "triggers.php?context=host&filter_set=1", "items.php?context=host&filter_set=1", "zabbix.php?action=report.status",
                     "toptriggers.php", "report2.php", "zabbix.php?action=auditlog.list", "zabbix.php?action=user.list", "sysmaps.php", "zabbix.php?action=queue.overview",
                     "zabbix.php?action=web.view", "hostinventories.php"):
            said = self.pages.get(f"/{page}")
            expect("Fatal" not in said and "Error in query" not in said and "SQL" not in re.sub(r"<script.*?</script>", "", said, flags=re.S)[:200], f"{page}: {said[:300]}")

    def housekeeper(self):
        client(self.server, "UPDATE zabbix.items SET history = '1h' WHERE key_ = 't.char'")
        command = [self.root / "usr/sbin/zabbix_server", "-c", self.folder / "server.conf", "-R"]
        for order in ("config_cache_reload", "housekeeper_execute"):
            done = subprocess.run([*command, order], capture_output=True, text=True)
            expect(done.returncode == 0, done.stdout + done.stderr)
        wait_for(lambda: "housekeeper [deleted" in self.said(), lambda: self.said()[-500:])

    def restart(self):
        """What it has in memory, trends among it, is written when it ends."""
        self.process.terminate()
        expect(self.process.wait(60) == 0, self.said()[-800:])
        trends = client(self.server, "SELECT COUNT(*) > 0, MIN(value_min), MAX(value_max) FROM zabbix.trends_uint JOIN zabbix.items USING (itemid) WHERE key_ = 't.unsigned'")
        expect(trends.startswith("1\t"), trends)
        self.start_server()
