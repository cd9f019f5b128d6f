"""Replication between servers in tests: start them, make one the replica of another, wait for it, compare what they hold.

Works for Omnibus and for Debian's MariaDB alike, in both directions. Nothing here sleeps to get an order of things: every
wait polls a condition, fails at once when a replica has stopped with an error, and has a deadline.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

from omnibus import PATIENCE_S, MariaDB, Omnibus, Scratch, binary, connect, expect, free_port, install_mariadb, wait_for

USER, PASSWORD = "repl", "repl-secret"
SYSTEM_DATABASES = {"information_schema", "mysql", "performance_schema", "sys"}
# A killed process loses nothing that it has written, so these tests of kill -9 need no syncs, and run ten times as fast.
MARIADB_FAST = ["--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--relay-log-recovery=1"]


class MariaPeer(MariaDB):
    """A MariaDB that takes part in replication: it has a log, a server id, a port, and may be killed."""

    template = None

    def __init__(self, directory, server_id, *options, **more):
        directory = pathlib.Path(directory)
        directory.mkdir(exist_ok=True)
        self.port, self.server_id = free_port(), server_id
        super().__init__(directory, "--skip-networking=0", "--bind-address=127.0.0.1", f"--port={self.port}",
                         f"--server-id={server_id}", "--log-bin=binlog", "--relay-log=relay", "--log-slave-updates",
                         "--binlog-format=ROW", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
                         "--max-allowed-packet=64M", "--character-set-server=utf8mb4",
                         "--collation-server=utf8mb4_general_ci", *MARIADB_FAST, *options, **more)

    def start(self, **more):
        if not self.datadir.exists() and self.installer == MariaDB.installer:
            shutil.copytree(empty_mariadb(), self.datadir)
        super().start(**more)


class OmnibusPeer(Omnibus):
    """An Omnibus that takes part in replication."""

    def __init__(self, directory, server_id, *options, **more):
        directory = pathlib.Path(directory)
        directory.mkdir(exist_ok=True)
        self.server_id = server_id
        super().__init__(directory, f"--server-id={server_id}", "--bind-address=127.0.0.1", "--innodb-print-all-deadlocks=ON", *options, **more)


def empty_mariadb():
    """A fresh data directory to copy: making one takes longer than the copy. It lives as long as this process."""
    if MariaPeer.template is None:
        MariaPeer.template = tempfile.TemporaryDirectory(prefix="omnibus-mariadb-")
        install_mariadb(f"{MariaPeer.template.name}/data", MariaPeer.template.name)
    return pathlib.Path(MariaPeer.template.name) / "data"


def query(server, sql, *arguments, **options):
    """The rows of one statement, each a dictionary."""
    import pymysql.cursors
    db = connect(server, cursorclass=pymysql.cursors.DictCursor, autocommit=True, charset="utf8mb4", **options)
    try:
        with db.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())
    finally:
        db.close()


def create_user(server):
    """The account replicas connect with. Not logged, so that it reaches no other server."""
    plugin = "IDENTIFIED VIA mysql_native_password USING PASSWORD" if isinstance(server, MariaDB) else None
    secret = f"{plugin}('{PASSWORD}')" if plugin else f"IDENTIFIED WITH mysql_native_password BY '{PASSWORD}'"
    db = connect(server, autocommit=True)
    with db.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"CREATE USER {USER}@'%' {secret}")
        cursor.execute(f"GRANT SELECT, RELOAD, SUPER, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {USER}@'%'")
        if plugin is None:
            # For copies of whole log files.
            cursor.execute(f"GRANT BACKUP_ADMIN ON *.* TO {USER}@'%'")
    db.close()


def log_position(server):
    """(file, position) of the end of the server's log."""
    row = query(server, "SHOW MASTER STATUS")[0]
    return row["File"], int(row["Position"])


def replicate(replica, source, position=None, gtid=False, start=True, channel=None, **options):
    """Makes `replica` follow `source`: from `position`, or from the start of its log, or by GTID.

    `gtid="slave_pos"` is for an Omnibus whose data directory is of MariaDB's dialect.
    """
    old = isinstance(replica, MariaDB)
    word = "MASTER" if old else "SOURCE"
    settings = {"HOST": "'127.0.0.1'", "PORT": source.port, "USER": f"'{USER}'", "PASSWORD": f"'{PASSWORD}'",
                "CONNECT_RETRY": 1}
    if gtid is True and not old:
        settings["AUTO_POSITION"] = 1
    elif not gtid:
        name, offset = position or (first_log(source), 4)
        settings |= {"LOG_FILE": f"'{name}'", "LOG_POS": offset}
    if old:
        # MariaDB asks for it from 11.4 on, and a server's own certificate is signed by nobody.
        settings["SSL_VERIFY_SERVER_CERT"] = 0
    text = ", ".join(f"{word}_{name} = {value}" for name, value in (settings | options).items())
    if gtid and old or gtid == "slave_pos":
        text = text.replace("SOURCE_", "MASTER_") + ", MASTER_USE_GTID = slave_pos"
    verb = "CHANGE MASTER" if "MASTER_" in text else "CHANGE REPLICATION SOURCE"
    tail = f" FOR CHANNEL '{channel}'" if channel else ""
    query(replica, f"{verb} TO {text}{tail}")
    if start:
        query(replica, f"START {'SLAVE' if old else 'REPLICA'}{tail}")


def into_both_dialects(directory, *options):
    """A MariaDB with these options, and a replica of each dialect that follows it."""
    source = MariaPeer(f"{directory}/source", 1, *options)
    source.start()
    create_user(source)
    replicas = [OmnibusPeer(f"{directory}/{dialect}", number, f"--dialect={dialect}") for number, dialect in ((2, "mysql"), (3, "mariadb"))]
    for replica in replicas:
        replica.start()
        replicate(replica, source, gtid="slave_pos" if replica is replicas[1] else False)
    return source, replicas


def there_and_back(directory):
    """A MariaDB, a replica of each dialect that follows it, and a MariaDB that follows the second of these."""
    source, (mysql, mariadb) = into_both_dialects(directory)
    back = MariaPeer(f"{directory}/back", 4)
    back.start()
    create_user(mariadb)
    # What came from a MariaDB goes on to one.
    replicate(back, mariadb)
    return source, mysql, mariadb, back


def first_log(server):
    return query(server, "SHOW BINARY LOGS")[0]["Log_name"]


def status(replica, channel=None):
    """SHOW REPLICA STATUS as a dictionary with the old names, which every server and client knows."""
    rows = query(replica, "SHOW SLAVE STATUS" if isinstance(replica, MariaDB) else "SHOW REPLICA STATUS")
    for row in rows:
        if channel is None or row.get("Channel_Name") == channel or row.get("Connection_name") == channel:
            return {name.replace("Source", "Master").replace("Replica_", "Slave_"): value for name, value in row.items()}
    return {}


def stopped(row):
    """The error a replica has stopped with, or nothing."""
    for kind in ("SQL", "IO"):
        code = int(row.get(f"Last_{kind}_Errno") or 0)
        if code and row.get(f"Slave_{kind}_Running") == "No":
            return f"the {kind} thread stopped with {code}: {row[f'Last_{kind}_Error']}"
    return None


def cut_off_in_a_statement(replica, row):
    """Whether a MariaDB's receiver has stopped because it lost its source, whatever that is, between two events of one statement's rows. It resumes by
    position, and takes the first thing that it is sent then for the end of a statement that never came. START SLAVE goes on."""
    return (isinstance(replica, MariaDB) and row["Slave_IO_Running"] == "No" and int(row["Last_IO_Errno"]) == 1595
            and "did not receive an expected Rows-log end-of-statement" in replica.log_tail(20))


def wait_caught_up(replica, source, channel=None, timeout=PATIENCE_S):
    """Waits until the replica has applied everything that is in the source's log now."""
    target = log_position(source)

    def reached():
        row = status(replica, channel)
        expect(row, "the replica has no source")
        if cut_off_in_a_statement(replica, row):
            query(replica, "START SLAVE")
            return False
        expect(stopped(row) is None, f"{stopped(row)}\n{brief(row)}")
        return (row["Relay_Master_Log_File"], int(row["Exec_Master_Log_Pos"])) >= target

    wait_for(reached, lambda: f"not at {target}: {brief(status(replica, channel))}", timeout)


def brief(row):
    """The lines of a replica's status that tell where it is and what is wrong."""
    names = ("Slave_IO_State", "Slave_IO_Running", "Slave_SQL_Running", "Master_Log_File", "Read_Master_Log_Pos",
             "Relay_Master_Log_File", "Exec_Master_Log_Pos", "Last_IO_Error", "Last_SQL_Error", "Seconds_Behind_Master",
             "Gtid_IO_Pos", "Retrieved_Gtid_Set", "Executed_Gtid_Set", "Slave_SQL_Running_State")
    return ", ".join(f"{name}={row[name]}" for name in names if row.get(name) not in (None, ""))


def databases(server):
    return sorted({row["Database"] for row in query(server, "SHOW DATABASES")} - SYSTEM_DATABASES)


TEXT_TYPES = ("char", "text", "blob", "binary", "enum", "set", "bit")


def as_text(value):
    return value.decode("ascii") if isinstance(value, bytes) else value


def table_contents(server, database, table):
    """Names and kinds of the columns, and all rows, sorted; strings as hexadecimal bytes in their own character set."""
    columns = [(row["Field"], row["Type"].lower(), row["Null"], row["Collation"])
               for row in query(server, f"SHOW FULL COLUMNS FROM `{database}`.`{table}`")]
    chosen = []
    for name, kind, _, _ in columns:
        texty = any(word in kind for word in TEXT_TYPES)
        chosen.append(f"HEX(`{name}`)" if texty else f"`{name}`")
    db = connect(server, autocommit=True, init_command="SET time_zone = '+00:00'", conv={})
    try:
        with db.cursor() as cursor:
            cursor.execute(f"SELECT {', '.join(chosen)} FROM `{database}`.`{table}`")
            rows = sorted((tuple(map(as_text, row)) for row in cursor.fetchall()),
                          key=lambda row: [(value is None, value or "") for value in row])
    finally:
        db.close()
    # int(11) here is int there: a display width is no difference.
    shape = [(name, re.sub(r"\(\d+\)", "", kind) if "int" in kind or "year" in kind else kind, null, collation)
             for name, kind, null, collation in columns]
    return shape, rows


def contents(server, chosen=None):
    """Everything in the server: {database: {table: table_contents}}."""
    found = {}
    for database in chosen or databases(server):
        rows = query(server, f"SHOW FULL TABLES FROM `{database}`")
        names = [next(iter(row.values())) for row in rows]
        found[database] = {name: table_contents(server, database, name) for name in sorted(names)}
    return found


def indexes(server, database):
    """The indexes of each table: name, columns, uniqueness."""
    rows = query(server, "SELECT TABLE_NAME AS t, INDEX_NAME AS i, SEQ_IN_INDEX AS s, COLUMN_NAME AS c, NON_UNIQUE AS n"
                         " FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s", database)
    return sorted((row["t"], row["i"], int(row["s"]), row["c"], int(row["n"])) for row in rows)


def expect_equal(one, other, chosen=None, least_rows=0):
    """Every database, table, column, index and row is the same in both servers."""
    here, there = contents(one, chosen), contents(other, chosen)
    expect(list(here) == list(there), f"databases: {list(here)} and {list(there)}")
    total = 0
    for database, tables in here.items():
        expect(list(tables) == list(there[database]), f"{database}: {list(tables)} and {list(there[database])}")
        for table, (shape, rows) in tables.items():
            other_shape, other_rows = there[database][table]
            place = f"{database}.{table}"
            expect(shape == other_shape, f"{place}: columns {differences(shape, other_shape)}")
            expect(rows == other_rows, f"{place}: {len(rows)} and {len(other_rows)} rows: {differences(rows, other_rows)}")
            total += len(rows)
        expect(indexes(one, database) == indexes(other, database),
               f"{database}: indexes {differences(indexes(one, database), indexes(other, database))}")
    expect(total >= least_rows, f"only {total} rows were compared")
    return total


def differences(one, other, most=3):
    """What only one of two lists has, shortened to be read."""
    these, those = set(map(str, one)), set(map(str, other))
    only_one = [item[:600] for item in sorted(these - those)[:most]]
    only_other = [item[:600] for item in sorted(those - these)[:most]]
    return f"only in the first {only_one}, only in the second {only_other}"


def restart(server, kill=False):
    """Stops or kills the server and starts it on the same port."""
    if kill:
        server.kill()
    else:
        server.stop()
    server.start()


def sysbench(server, script, command, tables=2, rows=2000, threads=4, seconds=3, **options):
    """Runs one of sysbench's scripts; `command` is prepare or run. Returns the process without waiting for a run."""
    arguments = ["sysbench", script, f"--mysql-socket={server.socket}", "--mysql-user=root", f"--tables={tables}",
                 f"--table-size={rows}", f"--threads={threads}", f"--time={seconds}", "--rand-type=uniform",
                 "--mysql-ignore-errors=1213,1205,1020,1062,2013,2006,2002,1053"]
    arguments += [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    if command == "prepare":
        query(server, "CREATE DATABASE IF NOT EXISTS sbtest")
        run = subprocess.run([*arguments, command], capture_output=True, text=True)
        expect(run.returncode == 0, f"sysbench prepare: {run.stdout[-1500:]}{run.stderr[-500:]}")
        return None
    return subprocess.Popen([*arguments, command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def sysbench_tps(process):
    """Waits for a run; its transactions per second."""
    text = process.communicate()[0]
    expect(process.returncode == 0, f"sysbench: {text[-1500:]}")
    line = next(line for line in text.splitlines() if "transactions:" in line)
    return float(line.split("(")[1].split()[0])


def has_command(words):
    """Whether the binary under test knows these command-line words."""
    return subprocess.run([binary(), *words, "--help"], capture_output=True).returncode == 0


def run_chosen(name, tests):
    """Runs the tests that the command line names, or all, each in a directory of its own."""
    warnings.simplefilter("ignore")
    chosen = [test for test in tests if test.__name__ in sys.argv[1:]] or tests
    for test in chosen:
        with Scratch("omnibus-replica-") as directory:
            test(directory)
        print(f"{name}: {test.__name__} ok", flush=True)
    print(f"{len(chosen)} passed, 0 failed")
