#!/usr/bin/python3
"""A short run of what servers do, for `scripts/dist` to learn from: sysbench's reads and writes, prepared and as text, TPC-H's queries, a load and
changes of many rows, a replica that follows, and a start after a kill.

Usage: training.py [--seconds 6]
"""

import argparse
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# This folder first: the tests have a `queries` of their own.
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
import bulk  # noqa: E402
import queries  # noqa: E402
from omnibus import Omnibus, Scratch, client, connect, wait_for  # noqa: E402

SCRIPTS = ["oltp_update_index", "oltp_insert", "oltp_write_only", "oltp_read_write", "oltp_point_select"]
CONNECTIONS, SCALE, ROWS = (1, 32), 4, 20_000


def sysbench(server, script, *arguments):
    subprocess.run(["sysbench", script, "--db-driver=mysql", f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=sbtest",
                    "--tables=4", "--table-size=10000", *arguments], check=True, stdout=subprocess.DEVNULL)


def commits_and_reads(server, seconds):
    client(server, "CREATE DATABASE sbtest")
    sysbench(server, "oltp_read_write", "prepare")
    for script in SCRIPTS:
        for prepared in ("auto", "disable"):
            for threads in CONNECTIONS:
                sysbench(server, script, f"--time={max(1, seconds // 2)}", f"--threads={threads}", f"--db-ps-mode={prepared}", "run")


def questions(server):
    make, asked = queries.tpch(SCALE, None)
    reads, more = queries.sysbench()
    cursor = connect(server, autocommit=True).cursor()
    for sql in ("CREATE DATABASE bench", "USE bench", *make, *reads, *(sql for _, sql in [*asked, *more] * 2)):
        cursor.execute(sql)
        cursor.fetchall()


def many_rows(server, directory):
    file = pathlib.Path(directory) / "rows"
    bulk.write_rows(file, ROWS)
    cursor = connect(server, autocommit=True).cursor()
    for sql in ("CREATE DATABASE many", "USE many", bulk.TABLE.format("lineitem"), bulk.TABLE.format("copied"), *(sql for _, sql in bulk.STEPS)):
        cursor.execute(sql.format(file=file))


def follow(source, replica):
    """The replica applies all that the source has logged."""
    client(source, "CREATE USER r IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE ON *.* TO r")
    client(replica, f"CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={source.port}, SOURCE_USER='r', SOURCE_PASSWORD='r', "
                    "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA")
    goal = client(source, "SELECT @@gtid_executed").strip().replace("\\n", "")
    wait_for(lambda: client(replica, f"SELECT GTID_SUBSET('{goal}', @@gtid_executed)").strip() == "1",
             lambda: f"the replica does not follow:\n{client(replica, 'SHOW REPLICA STATUS')}\n{replica.log_tail()}", timeout=600, every=0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=6)
    options = parser.parse_args()
    with Scratch() as directory:
        folders = [pathlib.Path(directory) / name for name in ("source", "replica")]
        for folder in folders:
            folder.mkdir()
        source, replica = (Omnibus(folder, "--max-binlog-size=64M", f"--server-id={number}", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--secure-file-priv=")
                           for number, folder in enumerate(folders, 1))
        source.start()
        commits_and_reads(source, options.seconds)
        questions(source)
        many_rows(source, directory)
        replica.start()
        follow(source, replica)
        replica.stop()
        # What an instrumented program has seen it writes at a proper end, so what is killed has seen only what is to be recovered.
        source.stop()
        source.start()
        sysbench(source, "oltp_write_only", "--time=2", "--threads=16", "run")
        source.kill()
        source.start()
        source.stop()


if __name__ == "__main__":
    main()
