#!/usr/bin/python3
"""What other servers and their tools must be able to take from us, and we from them, without help.

A MariaDB follows what only we have (engines, branches that changed nothing, LOAD DATA under STATEMENT), and loads our whole
dump without losing its accounts; binlogs of a MariaDB newer than Debian's are served by Debian's to a replica of ours; ids that
were given to statements that change nothing leave no hole.

Ring: all.
"""

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, binary, client, connect, expect, finished_binlogs  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, query, replicate, run_chosen, status, wait_caught_up, wait_for  # noqa: E402

FIXTURES = ROOT / "testdata/binlog/mariadb-11.8"
OTHER = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"


def engine(server, table):
    return query(server, "SELECT ENGINE AS e FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'e' AND TABLE_NAME = %s", table)[0]["e"]


def events(path):
    """(type, body) of every event of a log, checksums left out: a decoder of the test's own."""
    data, at = pathlib.Path(path).read_bytes(), 4
    while at + 19 <= len(data):
        size = int.from_bytes(data[at + 9:at + 13], "little")
        if size < 19:
            return
        yield data[at + 4], data[at + 19:at + size - 4]
        at += size


def engines(directory):
    """ENGINE= of ours reaches a replica of ours exactly, and stops none of another kind."""
    source, ours, theirs = OmnibusPeer(f"{directory}/s", 1), OmnibusPeer(f"{directory}/o", 2), MariaPeer(f"{directory}/m", 3)
    for server in (source, ours, theirs):
        server.start()
    create_user(source)
    replicate(ours, source, gtid=True)
    replicate(theirs, source)
    client(source, """CREATE DATABASE e; USE e;
        CREATE TABLE a (id INT PRIMARY KEY) ENGINE=BTREE, COMMENT='x';
        CREATE TABLE b (id INT PRIMARY KEY) engine = lsm DEFAULT CHARSET=latin1;
        CREATE TABLE c (PRIMARY KEY (id)) ENGINE=BTREE SELECT id FROM a;
        CREATE TABLE d LIKE a;
        CREATE TABLE f (id INT PRIMARY KEY) /*!40100 ENGINE=BTREE DEFAULT CHARSET=utf8mb4 */;
        ALTER TABLE b ENGINE=BTREE, ADD v INT; ALTER TABLE b ADD w INT, ENGINE = LSM;
        INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 2, 3); INSERT INTO f VALUES (4)""")
    wait_caught_up(ours, source)
    wait_caught_up(theirs, source)
    for table, name in (("a", "BTREE"), ("b", "InnoDB"), ("c", "BTREE"), ("d", "BTREE"), ("f", "BTREE")):
        expect((engine(source, table), engine(ours, table)) == (name, name), f"the engine of {table} is not {name} on both servers")
    expect_equal(source, theirs, least_rows=3)
    # The text that a client reads makes the same table here, and a table elsewhere.
    text = query(source, "SHOW CREATE TABLE e.a")[0]["Create Table"].replace("`a`", "e.`again`")
    query(source, text)
    query(theirs, text.replace("again", "there"))
    expect(engine(source, "again") == "BTREE", "SHOW CREATE TABLE does not make the same table again")
    for server in (theirs, ours, source):
        server.stop()


def unchanged_branches(directory):
    """Nothing is logged of an XA branch that changed nothing; it holds its locks until it is finished."""
    source = OmnibusPeer(f"{directory}/x", 1)
    source.start()
    client(source, "CREATE DATABASE x; CREATE TABLE x.t (id INT PRIMARY KEY, v INT); INSERT INTO x.t VALUES (1, 1)")
    first, second = (connect(source, autocommit=True).cursor() for _ in range(2))
    before = query(source, "SHOW MASTER STATUS")[0]["Executed_Gtid_Set"]
    for verb in ("COMMIT", "ROLLBACK"):
        for sql in ("XA START 'r'", "SELECT * FROM x.t FOR UPDATE", "XA END 'r'", "XA PREPARE 'r'"):
            first.execute(sql)
        second.execute("XA RECOVER")
        expect(second.fetchall() == ((1, 1, 0, b"r"),), "the branch is not prepared")
        second.execute("SET innodb_lock_wait_timeout = 1")
        try:
            second.execute("UPDATE x.t SET v = 2")
            expect(False, "the branch's lock is gone")
        except Exception as error:
            expect(error.args[0] == 1205, f"{error}")
        second.execute(f"XA {verb} 'r'")
        second.execute("UPDATE x.t SET v = 1")
        second.execute("XA RECOVER")
        expect(second.fetchall() == (), "the branch is not finished")
    expect(query(source, "SHOW MASTER STATUS")[0]["Executed_Gtid_Set"] == before, "a branch that changed nothing has an id")
    query(source, "FLUSH BINARY LOGS")
    expect(not any(b"XA " in body for path in finished_binlogs(source) for _, body in events(path)), "such a branch is in the log")
    source.stop()


def statement_flag(directory):
    """A transaction with a LOAD DATA statement does not claim to have rows only: MySQL's replicas stop at that (13117)."""
    source = OmnibusPeer(f"{directory}/l", 1, "--binlog-format=STATEMENT", "--local-infile=ON")
    source.start()
    data = pathlib.Path(directory) / "rows"
    data.write_text("1\t2\n3\t4\n")
    client(source, f"CREATE DATABASE l; CREATE TABLE l.t (id INT PRIMARY KEY, v INT); LOAD DATA LOCAL INFILE '{data}' INTO TABLE l.t; "
                   "SET binlog_format = ROW; INSERT INTO l.t VALUES (9, 9); FLUSH BINARY LOGS", "--local-infile=1")
    flags, kinds = [], []
    for path in finished_binlogs(source):
        for kind, body in events(path):
            if kind == 33:
                flags.append(body[0] & 1)
                kinds.append(set())
            elif kinds:
                kinds[-1].add(kind)
    load = next(n for n, found in enumerate(kinds) if 18 in found)
    rows = next(n for n, found in enumerate(kinds) if 30 in found)
    expect((flags[load], flags[rows]) == (1, 0), f"flags of LOAD DATA and of rows: {flags[load]}, {flags[rows]}")
    source.stop()


def whole_dump(directory):
    """A dump of all databases loads into a MariaDB as it is, which keeps its own accounts; and into ours."""
    source, theirs, ours = OmnibusPeer(f"{directory}/ds", 1), MariaPeer(f"{directory}/dt", 2), OmnibusPeer(f"{directory}/do", 3)
    for server in (source, theirs, ours):
        server.start()
    client(source, "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(9)) ENGINE=BTREE; "
                   "INSERT INTO shop.t VALUES (1, 'x'); CREATE USER somebody IDENTIFIED WITH mysql_native_password BY 'p'")
    dump = subprocess.run(["mariadb-dump", "--no-defaults", f"--socket={source.socket}", "--user=root", "--all-databases",
                           "--single-transaction", "--routines", "--triggers", "--events"], capture_output=True, text=True)
    expect(dump.returncode == 0, dump.stderr)
    accounts = "SELECT User, Host FROM mysql.user ORDER BY 1, 2"
    for server in (theirs, ours):
        before = client(server, accounts)
        client(server, dump.stdout)
        expect(client(server, accounts) == before, "the dump replaced the accounts")
        client(server, "FLUSH PRIVILEGES")
        expect(client(server, "SELECT * FROM shop.t") == "1\tx\n", "the dump has not arrived")
    # What dumps and printed logs of MySQL 5.7 to 9 and MariaDB 10.6 to 12 set around what they have to say.
    client(ours, """/*!50606 SET @OLD_INNODB_STATS_AUTO_RECALC=@@INNODB_STATS_AUTO_RECALC */; /*!50606 SET GLOBAL INNODB_STATS_AUTO_RECALC=OFF */;
        /*!50606 SET GLOBAL INNODB_STATS_AUTO_RECALC=@OLD_INNODB_STATS_AUTO_RECALC */; /*!80016 SET @@session.default_table_encryption=0 */;
        /*!80000 SET SESSION information_schema_stats_expiry=0 */; /*!80011 SET @@session.default_collation_for_utf8mb4=255 */;
        /*!80014 SET @@session.original_server_version=80014 */; /*!80014 SET @@session.immediate_server_version=80014 */;
        /*!80013 SET @@session.sql_require_primary_key=0 */; /*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1 */;
        /*!100001 SET @@session.skip_parallel_replication=0 */; /*M!100616 SET @OLD_NOTE_VERBOSITY=@@NOTE_VERBOSITY, NOTE_VERBOSITY=0 */;""")
    for server in (ours, theirs, source):
        server.stop()


def given_ids(directory):
    """A statement that changes nothing uses up the id that it was given."""
    server = OmnibusPeer(f"{directory}/g", 1)
    server.start()
    cursor = connect(server, autocommit=True).cursor()
    statements = ("DROP TABLE IF EXISTS nowhere.t", "CREATE DATABASE IF NOT EXISTS g", "CREATE DATABASE IF NOT EXISTS g",
                  "CREATE TABLE IF NOT EXISTS g.t (id INT)", "CREATE TABLE IF NOT EXISTS g.t (id INT)", "DROP DATABASE IF EXISTS nowhere",
                  "DROP USER IF EXISTS nobody", "ALTER TABLE g.t ADD COLUMN IF NOT EXISTS id INT", "TRUNCATE g.t", "ANALYZE TABLE g.t",
                  "OPTIMIZE TABLE g.t", "FLUSH TABLES", "DROP TEMPORARY TABLE IF EXISTS g.x", "DROP VIEW IF EXISTS g.v")
    done = []
    for number, sql in enumerate(statements, 1):
        cursor.execute(f"SET gtid_next = '{OTHER}:{number}'")
        try:
            cursor.execute(sql)
            done.append(number)
        except Exception as error:
            expect(error.args[0] in (1235, 1064), f"{sql}: {error}")
            cursor.execute(f"SET gtid_next = '{OTHER}:{number}'")
            cursor.execute("COMMIT")
    cursor.execute("SET gtid_next = AUTOMATIC")
    cursor.execute("SELECT @@global.gtid_executed")
    executed = cursor.fetchone()[0]
    expect(f"{OTHER}:1-{len(statements)}" in executed, f"{executed} after {done} of {len(statements)}")
    server.stop()


def newer_logs(directory):
    """Files of MariaDB 11.8: printed whole, and applied when Debian's MariaDB serves them; an ALTER in two phases is run once."""
    for number in range(1, 5):
        for form in ([], ["--sql"], ["--json"]):
            run = subprocess.run([binary(), "binlog", *form, str(FIXTURES / f"bin.00000{number}")], capture_output=True)
            expect(run.returncode == 0, f"{number} {form}: {run.stderr.decode()}")
    text = subprocess.run([binary(), "binlog", "--sql", str(FIXTURES / "bin.000002")], capture_output=True, text=True).stdout
    altered = [line for line in text.splitlines() if line.startswith("alter table nopk")]
    expect(len(altered) == 2, f"statements of two ALTERs in two phases: {altered}")
    source, replica = MariaPeer(f"{directory}/ns", 1), OmnibusPeer(f"{directory}/nr", 2)
    source.start()
    create_user(source)
    source.stop()
    names = [path.name for path in source.datadir.glob("binlog.*") if path.suffix != ".index"]
    for name in names:
        (source.datadir / name).unlink()
    shutil.copy(FIXTURES / "bin.000002", source.datadir / "binlog.000001")
    (source.datadir / "binlog.index").write_text("./binlog.000001\n")
    (source.datadir / "binlog.state").unlink(missing_ok=True)
    source.start()
    replica.start()
    query(replica, "CREATE DATABASE fx")
    query(replica, "CREATE TABLE fx.nopk (a INT, b INT, c INT)")
    replicate(replica, source, position=("binlog.000001", 4))

    def stopped():
        return int(status(replica)["Last_SQL_Errno"] or 0) != 0

    wait_for(stopped, lambda: f"the replica neither refuses what it has not nor goes on: {status(replica)}")
    row = status(replica)
    # Both ALTERs and a sequence are behind it; system versioning is refused by name.
    columns = [row["Field"] for row in query(replica, "SHOW COLUMNS FROM fx.nopk")]
    expect(columns == ["a", "b", "c"], f"after ADD and DROP in two phases: {columns}")
    expect("'SYSTEM VERSIONING'" in row["Last_SQL_Error"], row["Last_SQL_Error"])
    kinds = {row["t"] for row in query(replica, "SELECT TABLE_TYPE AS t FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'fx'")}
    expect("SEQUENCE" in kinds, f"the sequence has not come: {kinds}")
    replica.stop()
    source.stop()


if __name__ == "__main__":
    run_chosen("foreign_servers", [engines, unchanged_branches, statement_flag, whole_dump, given_ids, newer_logs])
