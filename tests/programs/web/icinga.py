"""Icinga: the schemas of Icinga DB and of the older IDO, as their Debian packages have them, with rows in what they are about."""

from omnibus import client, expect
from webapp import Steps

TABLES = 61


def suite(root, server):
    steps = Steps("Icinga")
    for name, path in (("Icinga DB", "icingadb/schema/mysql/schema.sql"), ("IDO", "icinga2-ido-mysql/schema/mysql.sql")):
        with steps(f"schema of {name}"):
            client(server, "DROP DATABASE IF EXISTS icinga; CREATE DATABASE icinga CHARACTER SET utf8mb4")
            with open(root / "usr/share" / path) as text:
                client(server, None, "icinga", stdin=text)
            found = client(server, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'icinga'")
            expect(int(found) == TABLES, f"{found} tables")
        with steps(f"rows of {name}"):
            if name == "IDO":
                client(server, """USE icinga; INSERT INTO icinga_objects (instance_id, objecttype_id, name1, is_active) VALUES (1, 1, 'Host', 1), (1, 1, 'host', 1);
                    INSERT INTO icinga_hosts (instance_id, host_object_id, alias) SELECT 1, object_id, name1 FROM icinga_objects""")
                expect(client(server, "SELECT COUNT(*) FROM icinga.icinga_objects WHERE name1 = 'host'") == "1\n", "names are told apart by case")
            else:
                client(server, """USE icinga; SET sql_mode = ''; INSERT INTO host (id, name, name_ci)
                    SELECT UNHEX(SHA1(n)), CONCAT('Host ', n), CONCAT('Host ', n) FROM (SELECT 1 AS n UNION SELECT 2) AS d""")
                expect(client(server, "SELECT COUNT(*), SUM(name_ci = 'HOST 1'), SUM(name = 'HOST 1') FROM icinga.host") == "2\t1\t0\n", "names with and without case")
    return steps.result()
