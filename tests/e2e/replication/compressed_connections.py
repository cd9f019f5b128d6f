#!/usr/bin/python3
"""SOURCE_COMPRESSION_ALGORITHMS: a replica speaks the compressed protocol with its source, of ours and MariaDB, and acknowledges in it.

A MariaDB that compresses is served likewise. A source that lets nobody in who does not compress shows that it does: by that algorithm and no other.

Ring: all.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Scratch, Session, error_code, expect, wait_for  # noqa: E402
from peers import MariaPeer, OmnibusPeer, brief, create_user, expect_equal, first_log, query, replicate, status, wait_caught_up  # noqa: E402

ALL = "zlib,zstd,uncompressed"


def fill(session, first):
    session.run("BEGIN")
    for n in range(first, first + 300):
        session.run(f"INSERT INTO d.t VALUES ({n}, REPEAT('text {n} ', {n % 50}))")
    session.run("COMMIT")
    for n in range(first + 300, first + 350):
        session.run(f"INSERT INTO d.t VALUES ({n}, 'one by one')")
    # Longer than a frame, one that compresses and one that does not.
    session.run(f"INSERT INTO d.t VALUES ({first + 400}, REPEAT('long ', 4000000))", f"INSERT INTO d.b VALUES ({first}, RANDOM_BYTES(1000))")
    session.run("SET @b = (SELECT GROUP_CONCAT(v SEPARATOR '') FROM d.b)", f"INSERT INTO d.b VALUES ({first + 1}, REPEAT(@b, 300))")


def tables(source):
    session = Session(source)
    session.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v LONGTEXT) ENGINE=InnoDB",
                "CREATE TABLE d.b (id INT PRIMARY KEY, v LONGBLOB) ENGINE=InnoDB")
    return session


def change(replica, text):
    query(replica, "STOP REPLICA")
    query(replica, f"CHANGE REPLICATION SOURCE TO {text}")
    query(replica, "START REPLICA")


def connects(replica):
    wait_for(lambda: status(replica)["Slave_IO_Running"] == "Yes", lambda: f"it does not connect: {brief(status(replica))}")


def by_name(folder):
    """What the list says, and nothing else; acknowledgements too; again after the source has died."""
    source, replica = OmnibusPeer(folder / "source", 1), OmnibusPeer(folder / "replica", 2, "--rpl-semi-sync-replica-enabled=ON")
    source.start()
    replica.start()
    create_user(source)
    session = tables(source)
    log = first_log(source)
    session.run("SET GLOBAL protocol_compression_algorithms = 'zstd'")
    replicate(replica, source, (log, 4))
    refused = wait_for(lambda: int(status(replica)["Last_IO_Errno"]), "an uncompressed connection is let in")
    expect(refused == 3922, brief(status(replica)))
    change(replica, "SOURCE_COMPRESSION_ALGORITHMS = 'zlib,uncompressed'")
    wait_for(lambda: int(status(replica)["Last_IO_Errno"]) == 3922, lambda: brief(status(replica)))
    change(replica, "SOURCE_COMPRESSION_ALGORITHMS = 'zlib'")
    wait_for(lambda: "SOURCE_COMPRESSION_ALGORITHMS" in status(replica)["Last_IO_Error"], lambda: brief(status(replica)))
    change(replica, "SOURCE_COMPRESSION_ALGORITHMS = 'ZSTD', SOURCE_ZSTD_COMPRESSION_LEVEL = 7")
    connects(replica)
    shown = query(replica, "SELECT COMPRESSION_ALGORITHM, ZSTD_COMPRESSION_LEVEL FROM performance_schema.replication_connection_configuration")
    expect([tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in shown] == [("zstd", 7)], shown)
    session.run(f"SET GLOBAL protocol_compression_algorithms = '{ALL}'")
    session.run("SET GLOBAL rpl_semi_sync_source_timeout = 60000, GLOBAL rpl_semi_sync_source_enabled = ON")
    wait_for(lambda: int(session("SHOW STATUS LIKE 'Rpl_semi_sync_source_clients'")[0][1]) == 1, "no semi-synchronous replica")
    fill(session, 1)
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["d"], least_rows=300)
    counts = {name: int(value) for name, value in session("SHOW STATUS LIKE 'Rpl_semi_sync_source_%tx'")}
    expect(counts["Rpl_semi_sync_source_yes_tx"] > 50 and counts["Rpl_semi_sync_source_no_tx"] == 0, f"acknowledgements: {counts}")
    for victim in (source, replica):
        victim.kill()
        victim.start()
        connects(replica)
        session = Session(source)
        fill(session, 1000 if victim is source else 2000)
        wait_caught_up(replica, source)
        expect_equal(source, replica, ["d"], least_rows=600)
    for text, code in (("SOURCE_COMPRESSION_ALGORITHMS = 'lz4'", 3922), ("SOURCE_ZSTD_COMPRESSION_LEVEL = 23", 3923),
                       ("SOURCE_ZSTD_COMPRESSION_LEVEL = 0", 3923)):
        query(replica, "STOP REPLICA IO_THREAD")
        expect(error_code(lambda: query(replica, f"CHANGE REPLICATION SOURCE TO {text}")) == code, text)
    # MySQL's older switch: zlib where the source has it.
    session.run("SET GLOBAL protocol_compression_algorithms = 'zlib'")
    query(replica, "SET GLOBAL replica_compressed_protocol = ON")
    change(replica, "SOURCE_COMPRESSION_ALGORITHMS = 'uncompressed'")
    connects(replica)
    session.run(f"SET GLOBAL protocol_compression_algorithms = '{ALL}'")
    fill(session, 3000)
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["d"], least_rows=900)
    # A MariaDB that compresses.
    third = MariaPeer(folder / "third", 5, "--slave-compressed-protocol=ON", "--max-allowed-packet=256M", "--slave-max-allowed-packet=1G")
    third.start()
    session.run("SET GLOBAL protocol_compression_algorithms = 'zlib'")
    replicate(third, source, (log, 4))
    connects(third)
    session.run(f"SET GLOBAL protocol_compression_algorithms = '{ALL}'")
    fill(session, 4000)
    wait_caught_up(third, source)
    expect_equal(source, third, ["d"], least_rows=1200)
    third.stop()
    source.stop()
    replica.stop()


def of_mariadb(folder):
    """It has zlib, and no zstd."""
    source, replica = MariaPeer(folder / "mariadb", 3), OmnibusPeer(folder / "of_mariadb", 4)
    source.start()
    replica.start()
    create_user(source)
    session = tables(source)
    replicate(replica, source, COMPRESSION_ALGORITHMS="'zstd'")
    wait_for(lambda: "SOURCE_COMPRESSION_ALGORITHMS" in status(replica)["Last_IO_Error"], lambda: brief(status(replica)))
    change(replica, "SOURCE_COMPRESSION_ALGORITHMS = 'zstd,zlib'")
    connects(replica)
    fill(session, 1)
    wait_caught_up(replica, source)
    expect_equal(source, replica, ["d"], least_rows=300)
    source.stop()
    replica.stop()


def main():
    with Scratch("omnibus-replica-compression-") as name:
        by_name(pathlib.Path(name))
        of_mariadb(pathlib.Path(name))
    print("replica compression: ok")


if __name__ == "__main__":
    main()
