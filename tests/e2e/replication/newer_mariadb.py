#!/usr/bin/python3
"""A MariaDB newer than Debian's as source, replica and dump program: every column type and a generated workload, there and back.

It is 11.4, the newest that a package registry has (`tests/clients/install`). Looked for and not found there: MariaDB 11.8's
programs, and any of MySQL's (`mysqldump`, `mysqlbinlog`, MySQL Shell); what those write is in `testdata/binlog` and `testdata/dumps`. Its package has no
plugin for `caching_sha2_password`, so accounts here have `mysql_native_password`. It has no `mariadb-binlog`.

Ring: all.
"""

import functools
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import peers_matrix  # noqa: E402
import workload  # noqa: E402
from omnibus import ROOT, client, expect, wait_for  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, query, replicate, run_chosen, status, wait_caught_up  # noqa: E402


@functools.cache
def home():
    """Where it is unpacked; nothing on machines that there is none for."""
    clients = subprocess.run([ROOT / "tests/clients/install"], capture_output=True, text=True, check=True).stdout.strip()
    return pathlib.Path(clients) / "mariadb"


class NewerPeer(MariaPeer):
    """The newer server."""

    def __init__(self, directory, server_id, *options):
        base = f"--basedir={home()}"
        self.program = (f"{home()}/bin/mariadbd", "--no-defaults", base, f"--lc-messages-dir={home()}/share", f"--character-sets-dir={home()}/share/charsets")
        self.installer = (f"{home()}/scripts/mariadb-install-db", "--no-defaults", base)
        super().__init__(directory, server_id, *options)


def ours(directory, number, dialect, *options):
    server = OmnibusPeer(f"{directory}/{dialect}{number}", number, f"--dialect={dialect}", *options)
    server.start()
    client(server, "SET sql_log_bin = 0; ALTER USER root@localhost IDENTIFIED WITH mysql_native_password BY ''")
    return server


def program(name, server, *options, **more):
    run = subprocess.run([f"{home()}/bin/{name}", "--no-defaults", f"--socket={server.socket}", "-uroot", "--disable-ssl", *options], capture_output=True, **more)
    expect(run.returncode == 0, f"{name} {options}: {run.stderr.decode(errors='replace')[-800:]}")
    return run.stdout


def dumps(directory):
    """Every column type by its dump program and its client: from here to it and back here, in both dialects."""
    theirs = NewerPeer(f"{directory}/t", 9)
    theirs.start()
    for dialect in ("mysql", "mariadb"):
        first, last = (ours(directory, number, dialect) for number in (1, 2))
        peers_matrix.fill(first, dialect)
        # It reads -0 as an integer.
        client(first, "UPDATE types.letters SET c6 = 0 WHERE c6 = 0")
        expected = peers_matrix.rows(first, dialect)
        for options in (["--complete-insert"], ["--hex-blob", "--skip-extended-insert"]):
            for source, target in ((first, theirs), (theirs, last)):
                client(target, "DROP DATABASE IF EXISTS types; CREATE DATABASE types DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
                program("mariadb", target, "--binary-mode", "types", input=program("mariadb-dump", source, *options, "types"))
                peers_matrix.same(peers_matrix.rows(target, dialect), expected, f"{dialect}: {options} into {target.log_name}")
        # Whole servers: accounts stay what they are.
        accounts = client(last, "SELECT User, Host FROM mysql.user")
        program("mariadb", last, input=program("mariadb-dump", theirs, "--all-databases", "--system=all", "--insert-ignore"))
        found = client(last, "SELECT User, Host FROM mysql.user")
        expect(set(accounts.split("\n")) <= set(found.split("\n")), f"accounts are gone: {found}")
        program("mariadb-dump", last, "--all-databases", "--system=users", "--master-data=2", "--single-transaction", "--routines", "--events")
        first.stop()
        last.stop()
    theirs.stop()


def work(source):
    """Generated statements of every kind, by three sessions."""
    threads = [threading.Thread(target=workload.run, args=(source, workload.Workload(seed, deterministic=False), 120)) for seed in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client(source, "CREATE DATABASE more; USE more; CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) "
                   "ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO p VALUES (1), (2), (3); INSERT INTO c VALUES (1, 1), (2, 2), (3, 2); UPDATE p SET id = 10 WHERE id = 1; "
                   "DELETE FROM p WHERE id = 2; ALTER TABLE c ADD v INT DEFAULT 5; INSERT INTO c VALUES (9, 3, 9)")


def replicas_of_it(directory):
    """Ours of both dialects follow it, with its defaults and with ALTER in two phases."""
    source = NewerPeer(f"{directory}/s", 1, "--binlog-alter-two-phase=1", "--log-bin-compress=1")
    source.start()
    create_user(source)
    replicas = [ours(directory, number, dialect, "--replica-parallel-workers=4") for number, dialect in ((2, "mysql"), (3, "mariadb"))]
    for replica in replicas:
        replicate(replica, source, gtid="slave_pos" if replica is replicas[1] else False)
    work(source)
    for replica in replicas:
        wait_caught_up(replica, source)
        expect_equal(source, replica, least_rows=100)
    for server in (*replicas, source):
        server.stop()


def it_as_a_replica(directory):
    """It follows ours of both dialects, as rows and mixed."""
    for number, (dialect, format) in enumerate((("mysql", "ROW"), ("mysql", "MIXED"), ("mariadb", "ROW"))):
        source = ours(directory, number + 1, dialect, f"--binlog-format={format}")
        create_user(source)
        replica = NewerPeer(f"{directory}/r{number}", 9)
        replica.start()
        replicate(replica, source, gtid=dialect == "mariadb")
        work(source)
        wait_caught_up(replica, source)
        expect_equal(source, replica, least_rows=100)
        replica.stop()
        source.stop()


def main():
    if not home().is_dir():
        print("newer_mariadb: there is none for this kind of machine")
        return
    run_chosen("newer_mariadb", [dumps, replicas_of_it, it_as_a_replica])


if __name__ == "__main__":
    main()
