#!/usr/bin/python3
"""Managed as MySQL's server is: called as mysqld, by the option file that Vitess's mysqlctl writes, with its first accounts, pid file,
mysqladmin, and backups by what vttablet calls xtrabackup. Without Vitess; see tests/vitess for that.

Ring: all.
"""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, Scratch, Server, binary, expect, free_port, wait_for  # noqa: E402

# What mysqlctl makes of its templates for MySQL 8.4.
OPTIONS = """[mysqld]
datadir = {folder}/data
innodb_data_home_dir = {folder}/innodb/data
innodb_log_group_home_dir = {folder}/innodb/logs
log-error = {folder}/error.log
log-bin = {folder}/bin-logs/vt-{port}-bin
relay-log = {folder}/relay-logs/relay-bin
relay-log-index =  {folder}/relay-logs/relay-bin.index
pid-file = {folder}/mysql.pid
port = {port}
secure-file-priv = {folder}/tmp
server-id = {port}
socket = {folder}/s.sock
tmpdir = {folder}/tmp
slow-query-log-file = {folder}/slow-query.log
long_query_time = 2
slow-query-log
skip-name-resolve
connect_timeout = 30
innodb_lock_wait_timeout = 20
max_allowed_packet = 64M
max_connections = 500
skip_replica_start
gtid_mode = ON
enforce_gtid_consistency
relay_log_recovery = 1
binlog_expire_logs_seconds = 259200
mysqlx = 0
mysql_native_password = ON
plugin-load = rpl_semi_sync_source=semisync_source.so;rpl_semi_sync_replica=semisync_replica.so
loose_rpl_semi_sync_source_timeout = 1000000000000000000
loose_rpl_semi_sync_source_wait_no_replica = 1
loose_some_plugin_of_mysql = 1
super-read-only
replica_net_timeout = 8
"""

ACCOUNTS = """
SET @original_super_read_only=IF(@@global.super_read_only=1, 'ON', 'OFF');
SET GLOBAL super_read_only='OFF';
SET sql_log_bin = 0;
DROP USER IF EXISTS ''@'%', ''@'localhost', 'root'@'%';
DROP DATABASE IF EXISTS test;
CREATE USER 'vt_dba'@'localhost';
GRANT ALL ON *.* TO 'vt_dba'@'localhost';
GRANT GRANT OPTION ON *.* TO 'vt_dba'@'localhost';
GRANT PROXY ON ''@'' TO 'vt_dba'@'localhost' WITH GRANT OPTION;
CREATE USER 'vt_repl'@'%';
GRANT REPLICATION SLAVE ON *.* TO 'vt_repl'@'%';
CREATE USER 'vt_filtered'@'localhost';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, PROCESS, FILE, REFERENCES, INDEX, ALTER, SHOW DATABASES,
  CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT, CREATE VIEW, SHOW VIEW, CREATE ROUTINE,
  ALTER ROUTINE, CREATE USER, EVENT, TRIGGER ON *.* TO 'vt_filtered'@'localhost';
CREATE USER 'vt_monitoring'@'localhost';
GRANT SELECT, UPDATE, DELETE, DROP ON performance_schema.* TO 'vt_monitoring'@'localhost';
SET GLOBAL super_read_only=IFNULL(@original_super_read_only, 'ON');
"""


class Managed(Server):
    """A server in the hands of such a program."""

    log_name = "error.log"
    user = "root"

    def __init__(self, folder, mysqld):
        super().__init__(folder, (), None)
        for name in ("data", "innodb/data", "innodb/logs", "bin-logs", "relay-logs", "tmp"):
            (self.directory / name).mkdir(parents=True)
        self.mysqld, self.socket, self.pid_file = mysqld, str(self.directory / "s.sock"), self.directory / "mysql.pid"
        self.cnf = self.directory / "my.cnf"
        self.cnf.write_text(OPTIONS.format(folder=folder, port=free_port()))

    def command(self, *more):
        return [str(self.mysqld), f"--defaults-file={self.cnf}", f"--basedir={self.mysqld.parent}", *more]

    def start(self, *more):
        self.launch(self.command(*more))
        # A killed one has left both files.
        wait_for(lambda: not self.runs() or self.is_up(), "no pid file or no socket")
        expect(self.runs(), f"it does not start: {self.log_tail()}")

    def is_up(self):
        return (self.pid_file.exists() and self.pid_file.read_text() == f"{self.process.pid}\n"
                and self.query("SELECT 1") == "1")

    def shut_down(self):
        done = run("mariadb-admin", "--no-defaults", f"--socket={self.socket}", f"--user={self.user}", "shutdown")
        expect(done.returncode == 0, f"shutdown: {done.stderr}")
        self.process.wait()
        expect(not self.pid_file.exists(), "the pid file stays")

    def query(self, sql):
        return run("mariadb", "--no-defaults", f"--socket={self.socket}", f"-u{self.user}", "-BN", "-e", sql).stdout.strip()


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)


def first_start(server):
    said = run(server.mysqld, "--version")
    expect(said.stdout.startswith("mysqld  Ver 8.4.") and "(Omnibus)" in said.stdout, f"--version: {said}")
    refused = run(*server.command("--initialize"))
    expect(refused.returncode == 1 and "--initialize-insecure" in refused.stderr, f"--initialize: {refused}")
    made = run(*server.command("--initialize-insecure"))
    expect(made.returncode == 0 and not pathlib.Path(server.socket).exists() and not server.pid_file.exists(), f"{made} {server.log_tail()}")
    before = sorted((server.directory / "data").rglob("*"))
    again = run(*server.command("--initialize-insecure"))
    expect(again.returncode == 1 and "there are files in the data directory" in again.stderr, f"a second time: {again}")
    expect(sorted((server.directory / "data").rglob("*")) == before, "the refused start changed files")
    server.start()
    log = server.log_tail(40)
    for name in ("mysqlx", "mysql_native_password", "plugin-load", "loose_some_plugin_of_mysql"):
        expect(f"'{name}'" in log and "WARN" in log, f"{name} is not warned of:\n{log}")
    wrong = run(*server.command("--no-such-option"))
    expect(wrong.returncode == 1 and "unknown option '--no-such-option'" in wrong.stderr, f"an unknown option: {wrong}")


def accounts(server):
    done = run("mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", input=ACCOUNTS)
    expect(done.returncode == 0, f"accounts: {done.stderr}")
    server.user = "vt_dba"
    expect(server.query("SELECT @@super_read_only, @@gtid_executed = ''") == "1\t1", "read-only, and nothing in the log")
    expect("GRANT PROXY ON ``@``" in server.query("SHOW GRANTS"), "GRANT PROXY")
    # Both families at once are what breaks PlannedReparentShard.
    names = server.query("SHOW VARIABLES LIKE 'rpl_semi_sync%'") + server.query("SHOW STATUS LIKE 'Rpl_semi_sync%'")
    expect("rpl_semi_sync_source_enabled" in names and "Rpl_semi_sync_replica_status" in names, names)
    expect("master" not in names and "slave" not in names, names)
    asked = ("information_schema.INNODB_TABLES", "information_schema.INNODB_TABLESPACES", "information_schema.INNODB_METRICS",
             "mysql.innodb_table_stats", "mysql.innodb_index_stats", "mysql.func", "performance_schema.user_defined_functions")
    for table in asked:
        expect(server.query(f"SELECT COUNT(*) >= 0 FROM {table}") == "1", f"{table} can't be read")
    # VReplication's account, which is no administrator's.
    for name in ("foreign_key_checks", "unique_checks", "restrict_fk_on_non_standard_key", "sql_mode", "time_zone", "net_read_timeout"):
        set_back = f"SET @@session.{name} = @@session.{name}"
        done = run("mariadb", "--no-defaults", f"--socket={server.socket}", "-uvt_filtered", "-e", set_back)
        expect(done.returncode == 0, f"{set_back}: {done.stderr}")


def backup(server, other, program):
    server.query("SET GLOBAL super_read_only = OFF; SET GLOBAL read_only = OFF; CREATE DATABASE vt; CREATE TABLE vt.t (id INT PRIMARY KEY);"
                 "INSERT INTO vt.t VALUES (1), (2), (3)")
    read = "SHOW STATUS LIKE 'Innodb_rows_read'"
    before = int(server.query(read).split()[1])
    server.query("SELECT * FROM vt.t")
    expect(int(server.query(read).split()[1]) == before + 3, "rows that another session read")
    tmp = server.directory / "tmp"
    with open(server.directory / "backup.tar", "wb") as tar:
        done = subprocess.run([program, f"--defaults-file={server.cnf}", "--backup", f"--socket={server.socket}", "--slave-info",
                               "--user=vt_dba", f"--target-dir={tmp}", f"--extra-lsndir={tmp}", "--stream=tar"], stdout=tar,
                              stderr=subprocess.PIPE, text=True, env=server.env)
    expect(done.returncode == 0, f"backup: {done.stderr}")
    gtids = server.query("SELECT @@gtid_executed")
    info = (tmp / "xtrabackup_info").read_text()
    expect(f"GTID of the last change '{gtids}'" in info, f"{info} instead of {gtids}")
    expect([path.name for path in tmp.iterdir()] == ["xtrabackup_info"], "the backup left files")
    extracted = other.directory / "tmp/extracted"
    extracted.mkdir()
    expect(run("tar", "-C", extracted, "-xf", server.directory / "backup.tar").returncode == 0, "tar")
    (other.directory / "data").rmdir()
    for step in ("--prepare", "--move-back"):
        done = run(program, f"--defaults-file={other.cnf}", step, f"--target-dir={extracted}", env=server.env)
        expect(done.returncode == 0, f"{step}: {done.stderr}")
    # As vttablet does: once for an upgrade, and then for real.
    other.start("--skip-grant-tables", "--skip-networking")
    other.shut_down()
    other.start()
    expect(other.query("SELECT COUNT(*), @@gtid_executed FROM vt.t") == f"3\t{gtids}", "rows and GTIDs of the copy")
    expect(other.query("SELECT @@server_uuid") != server.query("SELECT @@server_uuid"), "two servers with one uuid")
    failed = run(program, f"--defaults-file={server.cnf}", "--backup", f"--socket={server.socket}", "--user=vt_dba",
                 f"--target-dir={server.directory}", f"--extra-lsndir={tmp}", "--stream=tar", env=server.env)
    expect(failed.returncode == 1 and "secure" in failed.stderr, f"a backup into a folder that secure_file_priv forbids: {failed}")


def main():
    with Scratch() as scratch:
        folder = pathlib.Path(scratch)
        mysqld = folder / "bin/mysqld"
        mysqld.parent.mkdir()
        mysqld.symlink_to(os.path.abspath(binary()))
        server, other = Managed(folder / "one", mysqld), Managed(folder / "two", mysqld)
        first_start(server)
        accounts(server)
        other.user = server.user
        server.env["OMNIBUS"] = str(mysqld.resolve())
        backup(server, other, str(ROOT / "packaging/vitess/xtrabackup"))
        server.shut_down()
        other.kill()
        expect(other.pid_file.exists(), "a killed server removes nothing")
        other.start()
        other.shut_down()
    print("Managed as MySQL's server: called as mysqld, initialized, started and stopped by mysqlctl's files, backed up and restored")


if __name__ == "__main__":
    main()
