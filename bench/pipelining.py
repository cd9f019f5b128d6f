#!/usr/bin/python3
"""Several writes in flight against one: commits per second as the device is, and with every sync slower.

The same server in alternation with binlog_max_writes_in_flight=1 and --in-flight (default 4); sysbench
oltp_update_index over a unix socket. On a device that syncs within 300 microseconds there is one write in flight
whatever the variable says, so the first table shows that having it costs nothing. Syncs are made slower by a library
that this script builds (tests/tools/slow_sync.c). Prints Markdown.

Usage: pipelining.py [--seconds 5] [--rounds 3] [--connections 1,4,8,16,32] [--in-flight 4] [--slow-us 0,1000]
"""

import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "tests" / "lib"))
from compare import Subject  # noqa: E402
from device import preload  # noqa: E402
from omnibus import client  # noqa: E402


def measure(subject, in_flight, threads, seconds):
    client(subject.server, f"SET GLOBAL binlog_max_writes_in_flight = {in_flight}")
    return subject.measure("oltp_update_index", threads, seconds)


def part(slow_us, args):
    title = "Syncs as the device does them" if slow_us == 0 else f"Every sync {slow_us / 1000:g} ms slower"
    print(f"### {title}\n\n| connections | one write in flight | up to {args.in_flight} | ratio | p95 ms | syncs per commit |\n"
          "| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-pipelining-", dir=args.dir))
    subject = None
    try:
        subject = Subject("omnibus", directory, preload("slow_sync", directory), slow_us)
        subject.fresh_tables()
        for threads in (int(n) for n in args.connections.split(",")):
            samples = {1: [], args.in_flight: []}
            for n in range(args.rounds):
                # Alternate who goes first, so that a drift of the machine hits both.
                for in_flight in sorted(samples, reverse=n % 2 == 1):
                    samples[in_flight].append(measure(subject, in_flight, threads, args.seconds))
            middle = {n: {key: statistics.median(s[key] for s in found) for key in ("tps", "p95", "syncs")}
                      for n, found in samples.items()}
            one, several = middle[1], middle[args.in_flight]
            print(f"| {threads} | {one['tps']:,.0f} | {several['tps']:,.0f} | **{several['tps'] / one['tps']:.2f}** "
                  f"| {one['p95']:.2f} / {several['p95']:.2f} | {one['syncs']:.3f} / {several['syncs']:.3f} |", flush=True)
        print(flush=True)
    finally:
        if subject:
            subject.server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", default="1,4,8,16,32")
    parser.add_argument("--in-flight", type=int, default=4)
    parser.add_argument("--slow-us", default="0,1000", help="added to each sync, microseconds; one table each")
    parser.add_argument("--dir", help="where the data directory goes")
    args = parser.parse_args()
    if args.in_flight < 2:
        parser.error("--in-flight goes from 2")
    if not shutil.which("sysbench"):
        parser.error("sysbench is not installed; see scripts/install-test-tools")
    print(f"sysbench oltp_update_index, {args.rounds} x {args.seconds} s each in alternation, medians; clients on the same "
          "machine.\n", flush=True)
    for slow_us in (int(us) for us in args.slow_us.split(",")):
        part(slow_us, args)


if __name__ == "__main__":
    main()
