#!/usr/bin/python3
"""What a MariaDB server logged, printed by mariadb-binlog and piped into this server, gives the same tables.

A workload of all types and definitions runs on MariaDB in row format with full and minimal images, compressed, in
statement format and mixed; the same goes through JSON lines and `omnibus replay`. Then BINLOG statements of one log are applied to tables that differ from their source's, and
twice over with the session's IDEMPOTENT mode.

Ring: all.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import workload  # noqa: E402
from omnibus import Scratch, binary, client, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, expect_equal, query, replicate, wait_caught_up  # noqa: E402

# seed, what the session sets first, whether statements must give the same everywhere
STREAMS = [
    (1, ["SET binlog_format = ROW"], False),
    (2, ["SET binlog_format = ROW", "SET binlog_row_image = MINIMAL"], False),
    (3, ["SET binlog_format = STATEMENT"], True),
    (4, ["SET binlog_format = MIXED"], False),
]


def printed(files, *options):
    """The SQL that mariadb-binlog makes of log files."""
    run = subprocess.run(["mariadb-binlog", "--no-defaults", *options, *files], capture_output=True)
    expect(run.returncode == 0, run.stderr.decode(errors="replace"))
    return run.stdout


def pipe(server, sql, *options):
    command = ["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "--binary-mode",
               "--max-allowed-packet=64M", *options]
    run = subprocess.run(command, input=sql, capture_output=True)
    expect(run.returncode == 0, "piping into the server: " + run.stderr.decode(errors="replace")[:2000])


def logs(maria):
    """Its binary logs up to now, closed."""
    client(maria, "FLUSH BINARY LOGS")
    return sorted(str(path) for path in maria.datadir.glob("binlog.[0-9]*"))[:-1]


def all_formats(maria, ours):
    known = set(logs(maria))
    for seed, settings, deterministic in STREAMS:
        stream = workload.Workload(seed, deterministic=deterministic)
        setup = stream.setup
        stream.setup = lambda first=settings, rest=setup: [first, *rest()]
        if seed == 4:
            query(maria, "SET GLOBAL log_bin_compress = 1")
        statements = workload.run(maria, stream, 120)
        print(f"{' '.join(settings)}: {statements} statements")
    query(maria, "SET GLOBAL log_bin_compress = 0")
    new = [file for file in logs(maria) if file not in known]
    pipe(ours, printed(new))
    expect_equal(maria, ours, least_rows=300)
    return new


def json_replay(maria, other, files, folder):
    """The same by way of JSON lines."""
    lines = subprocess.run([binary(), "binlog", "--json", *files], capture_output=True)
    expect(lines.returncode == 0, lines.stderr.decode(errors="replace"))
    folder.mkdir()
    sql = subprocess.run([binary(), "replay", "--local-load", str(folder)], input=lines.stdout, capture_output=True)
    expect(sql.returncode == 0, sql.stderr.decode(errors="replace"))
    pipe(other, sql.stdout)
    expect_equal(maria, other, least_rows=300)
    bad = subprocess.run([binary(), "replay"], input=b'{"type":"begin"}\n{"type":"rows"}\n', capture_output=True)
    expect(bad.returncode != 0 and b"line 2" in bad.stderr, f"a wrong line: {bad.stderr!r}")


def differing_tables(maria, ours):
    known = set(logs(maria))
    client(maria, """
        CREATE DATABASE diff; CREATE TABLE diff.t (a INT PRIMARY KEY, b VARCHAR(10), c DECIMAL(6,2), j JSON, gone INT);
        INSERT INTO diff.t VALUES (1, 'one', 1.25, '{"a": [1]}', 9), (2, 'two', -1, NULL, 9), (3, NULL, NULL, '3', NULL);
        UPDATE diff.t SET b = 'drei' WHERE a = 3; DELETE FROM diff.t WHERE a = 2;""")
    # The definitions are ours: only the rows are taken.
    client(ours, "CREATE DATABASE diff; CREATE TABLE diff.t (a BIGINT PRIMARY KEY, b TEXT, c DECIMAL(20,6), j JSON)")
    new = [file for file in logs(maria) if file not in known]
    rows = [part for part in printed(new).split(b"/*!*/;") if b"BINLOG '" in part or b"START TRANSACTION" in part]
    sql = b"/*!*/;".join([b"DELIMITER /*!*/", *rows, b"\nCOMMIT\n", b""])
    sql = sql.replace(b"DELIMITER /*!*/", b"DELIMITER /*!*/", 1).replace(b"DELIMITER /*!*//*!*/;", b"DELIMITER /*!*/;\n", 1)
    pipe(ours, sql)
    want = "1\tone\t1.250000\t{\"a\": [1]}\n3\tdrei\tNULL\t3\n"
    got = client(ours, "SELECT * FROM diff.t")
    expect(got == want, f"{got!r}")
    run = subprocess.run(["mariadb", "--no-defaults", f"--socket={ours.socket}", "-uroot", "--binary-mode"], input=sql,
                         capture_output=True)
    expect(b"ERROR 1062" in run.stderr, f"applied twice: {run.stderr!r}")
    pipe(ours, b"SET SESSION rbr_exec_mode = IDEMPOTENT;\n" + sql)
    expect(client(ours, "SELECT * FROM diff.t") == want, "applied twice with IDEMPOTENT")


def through_a_replica(maria, folder):
    """What only some sources send: accounts, temporary tables, files, tables made and filled in one transaction, XA."""
    client(maria, "CREATE USER repl@'%' IDENTIFIED BY 'repl-secret'; GRANT REPLICATION SLAVE ON *.* TO repl@'%'; RESET MASTER")
    replica = OmnibusPeer(folder, 14)
    replica.start()
    try:
        replicate(replica, maria)
        text = folder / "rows.csv"
        text.write_text("1,one\n2,two\n")
        client(maria, f"""
            CREATE USER app@'%' IDENTIFIED BY 'app-secret'; GRANT SELECT, INSERT ON shop.* TO app@'%';
            CREATE USER gone@'%'; DROP USER gone@'%';
            CREATE DATABASE shop; CREATE TABLE shop.t (a INT PRIMARY KEY, b VARCHAR(20));
            SET binlog_format = STATEMENT; USE shop;
            LOAD DATA LOCAL INFILE '{text}' INTO TABLE t FIELDS TERMINATED BY ',';
            CREATE TEMPORARY TABLE tmp (a INT, b VARCHAR(20)); INSERT INTO tmp VALUES (3, 'three'), (4, 'four');
            INSERT INTO t SELECT * FROM tmp; DROP TEMPORARY TABLE tmp;
            INSERT INTO t VALUES (10, @@max_connections > 0);
            CREATE TABLE copied AS SELECT * FROM t;
            SET binlog_format = ROW;
            CREATE TABLE made AS SELECT a, b FROM t WHERE a > 1;
            XA START 'one'; INSERT INTO t VALUES (5, 'five'); XA END 'one'; XA PREPARE 'one'; XA COMMIT 'one';
            XA START 'two'; INSERT INTO t VALUES (6, 'six'); XA END 'two'; XA PREPARE 'two'; XA ROLLBACK 'two';
            ANALYZE TABLE t; FLUSH TABLES;""", "--local-infile=1")
        wait_caught_up(replica, maria)
        expect_equal(maria, replica, ["shop"], least_rows=15)
        grants = client(replica, "SHOW GRANTS FOR app@'%'")
        expect("SELECT, INSERT" in grants and "shop" in grants, grants)
        expect(client(replica, "SELECT COUNT(*) FROM t", "-papp-secret", "-D", "shop", user="app") == "6\n", "login")
        expect(client(replica, "SELECT COUNT(*) FROM mysql.user WHERE User = 'gone'") == "0\n", "a dropped account")
    finally:
        replica.stop()


def main():
    with Scratch() as directory:
        directory = pathlib.Path(directory)
        maria = MariaPeer(directory / "maria", 11, "--local-infile=1")
        ours = OmnibusPeer(directory / "ours", 12)
        other = OmnibusPeer(directory / "other", 13)
        try:
            maria.start()
            ours.start()
            files = all_formats(maria, ours)
            other.start()
            json_replay(maria, other, files, directory / "files")
            differing_tables(maria, ours)
            through_a_replica(maria, directory / "replica")
        finally:
            maria.stop()
            ours.stop()
            other.stop()
    print("ok")


if __name__ == "__main__":
    main()
