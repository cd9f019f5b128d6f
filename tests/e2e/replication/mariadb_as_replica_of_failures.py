#!/usr/bin/python3
"""MariaDB as a replica of ours while several sessions run statements that may fail, and both are killed; tables equal at the end.

To go on for longer: --seed N (the first), --rounds N, --steps N (of each session), and how: --dialect, --format, --image.
A round that fails says its seed. MIXED also finds where MariaDB computes other values from the same statement.

Ring: all.
"""

import argparse
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import hostile  # noqa: E402
from omnibus import Scratch, expect  # noqa: E402
from peers import MariaPeer, OmnibusPeer, create_user, expect_equal, query, replicate, restart, status, wait_caught_up  # noqa: E402


def disturb(r, source, replica, by_gtid):
    """One thing that happens in mid-stream. By position, a killed MariaDB may run a transaction twice: it is only stopped then."""
    what = r.choice(["rotate", "purge", "threads", "source", "replica"])
    if what == "rotate":
        query(source, "FLUSH BINARY LOGS")
    elif what == "purge" and (name := status(replica).get("Relay_Master_Log_File")):
        query(source, f"PURGE BINARY LOGS TO '{name}'")
    elif what == "threads":
        query(replica, "STOP SLAVE")
        query(replica, "START SLAVE")
    elif what == "source":
        restart(source, kill=True)
    elif what == "replica":
        restart(replica, kill=by_gtid)


def play(directory, seed, steps, dialect, form, image):
    r = random.Random(seed)
    by_gtid = dialect == "mariadb"
    source = OmnibusPeer(f"{directory}/ours", 1, f"--dialect={dialect}", "--local-infile=ON", "--max-binlog-size=4M",
                         f"--binlog-format={form}", f"--binlog-row-image={image}",
                         f"--binlog-row-metadata={r.choice(['MINIMAL', 'FULL'])}", f"--binlog-checksum={r.choice(['NONE', 'CRC32'])}",
                         f"--binlog-rows-query-log-events={r.choice(['OFF', 'ON'])}")
    replica = MariaPeer(f"{directory}/theirs", 2, "--slave-parallel-threads=4",
                        f"--slave-parallel-mode={r.choice(['optimistic', 'conservative'])}")
    source.start()
    replica.start()
    try:
        create_user(source)
        replicate(replica, source, gtid=by_gtid)
        sessions = hostile.Sessions(source, hostile.Hostile(seed, directory, texts=form != "ROW"), 3, steps)
        while sessions.running():
            time.sleep(r.random() * 2)
            disturb(r, source, replica, by_gtid)
        done, errors = sessions.finish()
        expect(done > steps, f"only {done} statements succeeded: {errors}")
        wait_caught_up(replica, source)
        rows = expect_equal(source, replica, least_rows=1)
        return f"{done} statements, errors {errors}, {rows} rows are equal"
    finally:
        replica.stop()
        source.stop()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--steps", type=int, default=120)
    options.add_argument("--dialect", choices=["mysql", "mariadb"])
    options.add_argument("--format", choices=["ROW", "MIXED"], default="ROW")
    options.add_argument("--image", choices=["FULL", "MINIMAL", "NOBLOB"])
    chosen = options.parse_args()
    for seed in range(chosen.seed, chosen.seed + chosen.rounds):
        how = (chosen.dialect or ["mariadb", "mysql"][seed % 2], chosen.format,
               chosen.image or ["MINIMAL", "FULL", "NOBLOB"][seed % 3])
        with Scratch("omnibus-hostile-") as directory:
            try:
                print(f"replication_hostile: {seed} {' '.join(how)}: {play(directory, seed, chosen.steps, *how)}", flush=True)
            except (SystemExit, Exception) as failure:
                raise SystemExit(f"FAIL: seed {seed}, {' '.join(how)}: {failure}") from failure
    print(f"{chosen.rounds} passed, 0 failed")


if __name__ == "__main__":
    main()
