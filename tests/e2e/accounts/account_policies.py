#!/usr/bin/python3
"""Which passwords accounts may get, what their connections must be like, whom they may act as, and what they may not do in some databases:
it acts, is shown, is loaded by others, survives a crash, and reaches replicas.

Ring: all.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pymysql  # noqa: E402
from account_options import code, login, tcp  # noqa: E402

from omnibus import Omnibus, Scratch, client, connect, error_code, expect  # noqa: E402
from peers import OmnibusPeer, create_user, replicate, wait_caught_up  # noqa: E402


def rows(server, sql, **more):
    db = connect(server, **more)
    with db.cursor() as cursor:
        cursor.execute(sql)
        found = cursor.fetchall()
    db.close()
    return found


def again(server):
    """Killed, and started again."""
    server.kill()
    server.start()


def old_passwords(server):
    """PASSWORD HISTORY and REUSE INTERVAL: as many as are asked for, whatever plugin, by every statement, after a crash."""
    root = connect(server)
    for plugin in ("mysql_native_password", "caching_sha2_password"):
        def give(password):
            return code(root, f"ALTER USER past@'%' IDENTIFIED BY '{password}'")  # noqa: B023
        client(server, f"CREATE USER past@'%' IDENTIFIED WITH {plugin} BY 'one' PASSWORD HISTORY 2")
        found = [give(p) for p in ("one", "two", "one", "three", "one", "two")]
        expect(found == [3638, 0, 3638, 0, 0, 0], f"{plugin}: {found}")
        again(server)
        root = connect(server)
        expect([give("one"), give("two")] == [3638, 3638] and code(root, "SET PASSWORD FOR past@'%' = 'one'") == 3638, "after a crash, by SET PASSWORD")
        stored = rows(server, "SELECT authentication_string FROM mysql.user WHERE User = 'past'")[0][0]
        text = stored if isinstance(stored, str) else stored.decode("latin1")
        failed = code(root, f"ALTER USER past@'%' IDENTIFIED WITH {plugin} AS '{root.escape_string(text)}'")
        expect(failed == 3638, f"the stored form of one that counts: {failed}")
        expect([give(""), give("")] == [0, 0], "the empty password may always come back")
        expect(len(rows(server, "SELECT * FROM mysql.password_history WHERE User = 'past'")) == 2, "as many are kept as count")
        client(server, "RENAME USER past@'%' TO since@'%'")
        expect(code(root, "ALTER USER since@'%' IDENTIFIED BY 'one'") == 3638, "they go with the name")
        client(server, "ALTER USER since@'%' PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 3 DAY")
        expect(code(root, "ALTER USER since@'%' IDENTIFIED BY 'two'") == 3638, "three days are not over")
        expect("PASSWORD HISTORY 0 PASSWORD REUSE INTERVAL 3 DAY" in client(server, "SHOW CREATE USER since@'%'"), "shown")
        client(server, "ALTER USER since@'%' PASSWORD REUSE INTERVAL DEFAULT")
        expect(code(root, "ALTER USER since@'%' IDENTIFIED BY 'two'") == 0, "no rule")
        expect(rows(server, "SELECT * FROM mysql.password_history WHERE User = 'since'") == (), "and nothing is kept")
        client(server, "DROP USER since@'%'")
    client(server, "SET GLOBAL password_history = 1; CREATE USER past@'%' IDENTIFIED BY 'one'")
    expect(code(root, "ALTER USER past@'%' IDENTIFIED BY 'one'") == 3638, "password_history")
    client(server, "SET GLOBAL password_history = 0; SET GLOBAL password_reuse_interval = 1; ALTER USER past@'%' IDENTIFIED BY 'two'")
    expect(code(root, "ALTER USER past@'%' IDENTIFIED BY 'two'") == 3638, "password_reuse_interval")
    client(server, "SET GLOBAL password_reuse_interval = 0; DROP USER past@'%'")


def current_passwords(server):
    """REQUIRE CURRENT: of one's own account, unless one may change everybody's."""
    client(server, "CREATE USER own@'%' IDENTIFIED BY 'one', free@'%' IDENTIFIED BY 'one' PASSWORD REQUIRE CURRENT; ALTER USER free@'%' PASSWORD REQUIRE CURRENT OPTIONAL")
    db, free = tcp(server, "own", "one"), tcp(server, "free", "one")
    found = [code(db, sql) for sql in ("ALTER USER USER() IDENTIFIED BY 'two'", "SET PASSWORD = 'two'", "SET PASSWORD = 'two' REPLACE 'x'",
                                       "SET PASSWORD = 'two' REPLACE 'one'", "ALTER USER own@'%' IDENTIFIED BY 'three' REPLACE 'two'")]
    expect(found == [3892, 3892, 3891, 0, 0], f"REQUIRE CURRENT: {found}")
    shown = rows(server, "SELECT User, Password_require_current FROM mysql.user WHERE User IN ('own', 'free') ORDER BY 1")
    expect(shown == (("free", "N"), ("own", "Y")), shown)
    expect(code(connect(server), "ALTER USER own@'%' IDENTIFIED BY 'four'") == 0, "who may change everybody's")
    client(server, "SET GLOBAL password_require_current = ON; ALTER USER own@'%' PASSWORD REQUIRE CURRENT DEFAULT")
    expect([code(db, "SET PASSWORD = 'five'"), code(free, "SET PASSWORD = 'five'")] == [3892, 0], "the variable, and who is free of it")
    client(server, "SET GLOBAL password_require_current = OFF; DROP USER own@'%', free@'%'")


def random_passwords(server):
    """BY RANDOM PASSWORD tells what it is, once."""
    db = connect(server)
    with db.cursor() as cursor:
        cursor.execute("SET generated_random_password_length = 33")
        cursor.execute("CREATE USER r1@'%' IDENTIFIED BY RANDOM PASSWORD, r2@'%' IDENTIFIED WITH mysql_native_password BY RANDOM PASSWORD, r3@'%' IDENTIFIED BY 'said'")
        expect([column[0] for column in cursor.description] == ["user", "host", "generated password", "auth_factor"], cursor.description)
        made = cursor.fetchall()
        expect([row[:2] for row in made] == [("r1", "%"), ("r2", "%")] and {len(row[2]) for row in made} == {33}, made)
        for user, _, password, _ in made:
            expect([login(server, user, password), login(server, user, password[1:])] == [0, 1045], user)
        cursor.execute("CREATE USER IF NOT EXISTS r1@'%' IDENTIFIED BY RANDOM PASSWORD")
        expect(cursor.fetchall() == () and login(server, "r1", made[0][2]) == 0, "an account that is there keeps its own")
        cursor.execute("ALTER USER r1@'%' IDENTIFIED BY RANDOM PASSWORD")
        expect([login(server, "r1", p) for p in (made[0][2], cursor.fetchall()[0][2])] == [1045, 0], "ALTER USER")
        cursor.execute("SET PASSWORD FOR r1@'%' TO RANDOM")
        password = cursor.fetchall()[0][2]
        expect(login(server, "r1", password) == 0, "SET PASSWORD")
        cursor.execute("SHOW BINARY LOGS")
        logs = "".join(client(server, f"SHOW BINLOG EVENTS IN '{name}'") for name, *_ in cursor.fetchall())
        expect(not any(text in logs for text in (password, made[0][2], "RANDOM")), "a password is in the log")
    client(server, "DROP USER r1@'%', r2@'%', r3@'%'")


def certificate(directory, name, subject, ca=None):
    """A key and a certificate: signed by `ca`, else by itself."""
    key, cert = directory / f"{name}.key", directory / f"{name}.pem"
    sign = ["-CA", str(ca[0]), "-CAkey", str(ca[1]), "-addext", "basicConstraints=critical,CA:FALSE"] if ca else []
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", subject, *sign],
                   check=True, capture_output=True)
    return cert, key


def certificates(directory):
    """REQUIRE with certificates of one's own authority, and with those that the server makes."""
    own = pathlib.Path(directory)
    ca = certificate(own, "ca", "/C=DE/O=Own/CN=Authority")
    ann, stranger = certificate(own, "ann", "/O=Own/CN=ann", ca), certificate(own, "stranger", "/O=Own/CN=ann")
    host = certificate(own, "host", "/CN=localhost", ca)
    for name in ("server", "made"):
        (own / name).mkdir()
    server = Omnibus(own / "server", f"--ssl-ca={ca[0]}", f"--ssl-cert={host[0]}", f"--ssl-key={host[1]}")
    server.start()

    def enter(user, shown=None):
        tls = {"ca": str(ca[0]), "check_hostname": False, **({"cert": str(shown[0]), "key": str(shown[1])} if shown else {})}
        return login(server, user, ssl=tls)
    try:
        asked = {"x": "X509", "s": "SUBJECT '/O=Own/CN=ann'", "i": "ISSUER '/C=DE/O=Own/CN=Authority'", "pair": "SUBJECT '/O=Own/CN=ann' AND ISSUER '/C=DE/O=Own/CN=Authority'",
                 "other": "SUBJECT '/CN=ann'", "elsewhere": "ISSUER '/CN=Authority'", "c": "CIPHER 'TLS_AES_256_GCM_SHA384'", "weak": "CIPHER 'NULL'", "tls": "SSL", "any": "NONE"}
        client(server, "".join(f"CREATE USER `{user}`@'%' REQUIRE {what};" for user, what in asked.items()))
        for _ in range(2):
            found = {user: (login(server, user), enter(user), enter(user, ann)) for user in asked}
            good, refused = (1045, 1045, 0), (1045, 1045, 1045)
            expect(found == {"x": good, "s": good, "i": good, "pair": good, "other": refused, "elsewhere": refused, "c": good, "weak": refused,
                             "tls": (1045, 0, 0), "any": (0, 0, 0)}, found)
            again(server)
        expect(enter("any", stranger) != 0, "a certificate that nobody has signed is no way in, whatever is asked")
        shown = {user: client(server, f"SHOW CREATE USER `{user}`@'%'") for user in asked}
        expect(" REQUIRE SUBJECT '/O=Own/CN=ann' ISSUER '/C=DE/O=Own/CN=Authority' " in shown["pair"] and " REQUIRE X509 " in shown["x"], shown)
        for user, text in shown.items():
            client(server, f"DROP USER `{user}`@'%'; {text}")
            expect(client(server, f"SHOW CREATE USER `{user}`@'%'") == text, text)
        kept = rows(server, "SELECT ssl_type, CAST(x509_subject AS CHAR), CAST(x509_issuer AS CHAR), CAST(ssl_cipher AS CHAR) FROM mysql.user WHERE User IN ('pair', 'x', 'c', 'tls') ORDER BY User")
        expect(kept == (("SPECIFIED", "", "", "TLS_AES_256_GCM_SHA384"), ("SPECIFIED", "/O=Own/CN=ann", "/C=DE/O=Own/CN=Authority", ""), ("ANY", "", "", ""), ("X509", "", "", "")), kept)
        client(server, "ALTER USER pair@'%' REQUIRE NONE")
        expect(login(server, "pair") == 0, "REQUIRE NONE")
    finally:
        server.stop()
    made = Omnibus(own / "made")
    made.start()
    try:
        client(made, "CREATE USER x@'%' REQUIRE X509")
        shown = {"ca": str(made.datadir / "ca.pem"), "cert": str(made.datadir / "client-cert.pem"), "key": str(made.datadir / "client-key.pem"), "check_hostname": False}
        expect([login(made, "x", ssl=shown), login(made, "x", ssl={"ca": shown["ca"], "check_hostname": False})] == [0, 1045], "the server's own authority")
        expect((made.datadir / "client-key.pem").stat().st_mode & 0o077 == 0, "its keys are private")
    finally:
        made.stop()


def proxies(server):
    """PROXY is granted by who may, shown, and acts where the variables say so."""
    client(server, "CREATE DATABASE IF NOT EXISTS px; CREATE TABLE px.t (a INT); CREATE USER acts@'%' IDENTIFIED WITH mysql_native_password BY 'p', acted@localhost;"
                   "GRANT SELECT ON px.* TO acted@localhost; GRANT PROXY ON acted@localhost TO acts@'%'")
    expect("GRANT PROXY ON `acted`@`localhost` TO `acts`@`%`" in client(server, "SHOW GRANTS FOR acts@'%'"), "shown")
    expect(rows(server, "SELECT Host, User, Proxied_host, Proxied_user, With_grant FROM mysql.proxies_priv") == (("%", "acts", "localhost", "acted", 0),), "proxies_priv")
    names = "SELECT CURRENT_USER(), SUBSTRING_INDEX(USER(), '@', 1), @@proxy_user"

    def who():
        db = tcp(server, "acts", "p")
        with db.cursor() as cursor:
            cursor.execute(names)
            return cursor.fetchone(), code(db, "SELECT * FROM px.t")
    expect(who() == (("acts@%", "acts", None), 1142), who())
    client(server, "SET GLOBAL check_proxy_users = ON; SET GLOBAL mysql_native_password_proxy_users = ON")
    expect(who() == (("acted@localhost", "acts", "'acts'@'%'"), 0), who())
    expect(login(server, "acts", "x") == 1045, "by one's own password")
    again(server)
    client(server, "SET GLOBAL check_proxy_users = ON; SET GLOBAL mysql_native_password_proxy_users = ON")
    expect(who()[1] == 0, "after a crash")
    weak = tcp(server, "acts", "p")
    found = [code(weak, sql) for sql in ("GRANT PROXY ON acts@'%' TO acted@localhost", "GRANT PROXY ON acted@localhost TO acts@'%'")]
    expect(found == [1698, 0], f"who may grant it: of another account, of one's own: {found}")
    root = connect(server)
    found = [code(root, sql) for sql in ("GRANT PROXY ON acted@localhost TO nobody@nowhere", "REVOKE PROXY ON acted@localhost FROM acts@'%'", "REVOKE PROXY ON acted@localhost FROM acts@'%'")]
    expect(found == [1410, 0, 1141], f"who is not there, and what is not granted: {found}")
    expect(who()[0][0] == "acts@%", "revoked")
    client(server, "SET GLOBAL check_proxy_users = OFF; DROP USER acts@'%', acted@localhost; DROP DATABASE px")


def partial_revokes(server):
    """What holds everywhere but in a database."""
    root = connect(server)
    client(server, "CREATE DATABASE pa; CREATE DATABASE pb; CREATE TABLE pa.t (a INT); CREATE TABLE pb.t (a INT); CREATE USER part@'%', next@'%'; CREATE ROLE whole;"
                   "GRANT SELECT, INSERT, CREATE USER ON *.* TO part@'%' WITH GRANT OPTION; GRANT INSERT ON *.* TO whole")
    expect(code(root, "REVOKE INSERT ON pa.* FROM part@'%'") == 1141, "not without the variable")
    client(server, "SET GLOBAL partial_revokes = ON; REVOKE INSERT ON pa.* FROM part@'%'")
    expect(code(root, "REVOKE DELETE ON pa.* FROM part@'%'") == 1141, "what is not held")
    again(server)
    root = connect(server)
    expect(rows(server, "SELECT @@partial_revokes") == ((1,),), "what is restricted keeps it on")
    expect(code(root, "SET GLOBAL partial_revokes = OFF") == 3896, "and it cannot be switched off")

    def may(user="part"):
        db = tcp(server, user)
        return [code(db, sql) for sql in ("INSERT INTO pa.t VALUES (1)", "INSERT INTO pb.t VALUES (1)", "SELECT * FROM pa.t")]
    expect(may() == [1142, 0, 0], may())
    shown = client(server, "SHOW GRANTS FOR part@'%'")
    expect("REVOKE INSERT ON `pa`.* FROM `part`@`%`" in shown, shown)
    kept = rows(server, "SELECT User_attributes->>'$.Restrictions' FROM mysql.user WHERE User = 'part'")
    expect(kept == (('[{"Database": "pa", "Privileges": ["INSERT"]}]',),), kept)
    part = tcp(server, "part")
    found = [code(part, sql) for sql in ("GRANT INSERT ON pa.* TO next@'%'", "GRANT INSERT, SELECT ON *.* TO next@'%'")]
    expect(found == [1044, 0] and may("next") == [1142, 0, 0], f"nobody gives what he has not: {found} {may('next')}")
    client(server, "GRANT whole TO next@'%'; SET DEFAULT ROLE whole TO next@'%'")
    expect(may("next") == [0, 0, 0], "a role gives what its holder lacks")
    client(server, "GRANT INSERT ON pa.* TO part@'%'")
    expect(may() == [0, 0, 0] and "`pa`" not in client(server, "SHOW GRANTS FOR part@'%'"), "given back")
    client(server, "REVOKE INSERT ON *.* FROM next@'%'")
    expect("REVOKE" not in client(server, "SHOW GRANTS FOR next@'%'"), "what is not held is not restricted")
    client(server, "CREATE DATABASE `p_b`; CREATE TABLE `p_b`.t (a INT); CREATE USER literal@'%'; GRANT ALL ON `p_b`.* TO literal@'%'; CREATE DATABASE pxb; CREATE TABLE pxb.t (a INT)")
    db = tcp(server, "literal")
    expect([code(db, "SELECT * FROM p_b.t"), code(db, "SELECT * FROM pxb.t")] == [0, 1142], "names are no patterns")
    client(server, "SET GLOBAL partial_revokes = OFF")
    expect(code(tcp(server, "literal"), "SELECT * FROM pxb.t") == 0, "and are again")
    client(server, "DROP USER part@'%', next@'%', literal@'%'; DROP ROLE whole; DROP DATABASE pa; DROP DATABASE pb; DROP DATABASE p_b; DROP DATABASE pxb")


def replicas(directory):
    """Rules go to replicas and with dumps, in both dialects; a replica does what its source did, whatever its own rules are."""
    for dialect in ("mysql", "mariadb"):
        source, replica = (OmnibusPeer(f"{directory}/{dialect}-{name}", number, f"--dialect={dialect}") for name, number in (("source", 1), ("replica", 2)))
        for server in (source, replica):
            server.start()
        try:
            create_user(source)
            client(source, "SET GLOBAL partial_revokes = ON")
            client(replica, "SET GLOBAL password_history = 5; SET GLOBAL password_require_current = ON")
            replicate(replica, source)
            client(source, "CREATE USER a@'%' IDENTIFIED BY 'one' REQUIRE SUBJECT '/CN=a' PASSWORD HISTORY 2 PASSWORD REUSE INTERVAL 4 DAY PASSWORD REQUIRE CURRENT;"
                           "ALTER USER a@'%' IDENTIFIED BY 'two'; CREATE USER b@'%' IDENTIFIED BY 'one'; ALTER USER b@'%' IDENTIFIED BY 'one'; CREATE DATABASE pa;"
                           "GRANT SELECT ON *.* TO a@'%'; REVOKE SELECT ON pa.* FROM a@'%'; GRANT PROXY ON b@'%' TO a@'%' WITH GRANT OPTION")
            wait_caught_up(replica, source)

            def state(server):
                grants = sorted(client(server, "SHOW GRANTS FOR a@'%'").splitlines())
                return [client(server, f"SHOW CREATE USER {user}@'%'") for user in "ab"] + grants
            expect(state(replica) == state(source), f"{dialect}: {state(replica)} {state(source)}")
            expect(len(rows(replica, "SELECT * FROM mysql.password_history WHERE User = 'a'")) == 2, "the replica keeps them, too")
            expect(code(connect(replica), "ALTER USER a@'%' IDENTIFIED BY 'two'") == 3638, "and asks when it is the source")
            dump = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={source.socket}", "-uroot", "--system=users", "--insert-ignore"], capture_output=True)
            expect(dump.returncode == 0, dump.stderr.decode())
            other = OmnibusPeer(f"{directory}/{dialect}-other", 3, f"--dialect={dialect}")
            other.start()
            try:
                client(other, "SET GLOBAL partial_revokes = ON")
                client(other, dump.stdout.decode())
                expect(state(other) == state(source), f"{dialect}, by a dump: {state(other)} {state(source)}")
            finally:
                other.stop()
        finally:
            for server in (replica, source):
                server.stop()


def main():
    tests = [old_passwords, current_passwords, random_passwords, proxies, partial_revokes]
    with Scratch("omnibus-account-policies-") as directory:
        server = Omnibus(directory)
        server.start()
        try:
            for test in tests:
                test(server)
                print(f"account_policies: {test.__name__} ok", flush=True)
        finally:
            server.stop()
    for test in (certificates, replicas):
        with Scratch("omnibus-account-policies-") as directory:
            test(directory)
        print(f"account_policies: {test.__name__} ok", flush=True)
    print(f"{len(tests) + 2} passed, 0 failed")


if __name__ == "__main__":
    main()
