#!/usr/bin/python3
"""What options cost: the server's processor time for a transaction with and without each, in alternation.

Two servers differ in one option. The same clients take turns at both; the table has medians of all rounds, and the quotient of the two
processor times. That is by transaction, so other programs on the machine change it little; transactions per second they do change.

Usage: options.py [--seconds 5] [--rounds 7] [--connections 32] [--only encryption,...]
"""

import argparse
import pathlib
import shutil
import tempfile

from compare import OMNIBUS, Omnibus, Subject, cell, median, subprocess
from device import preload

# What is told, the workload, the options of both, and those of the second.
OPTIONS = {
    "performance_schema": ("oltp_point_select", ["--performance-schema=OFF"], ["--performance-schema=ON"]),
    "binlog_encryption": ("oltp_update_index", [], ["--binlog-encryption=ON", "--keyring-file-data={keyring}"]),
    "default_table_encryption": ("oltp_update_index", [], ["--default-table-encryption=ON", "--keyring-file-data={keyring}"]),
    "default_table_encryption.reads": ("oltp_point_select", [], ["--default-table-encryption=ON", "--keyring-file-data={keyring}"]),
    "network_driver": ("oltp_update_index", ["--network-driver=epoll"], ["--network-driver=io_uring"]),
    "binlog_transaction_compression": ("oltp_write_only", [], ["--binlog-transaction-compression=ON"]),
}


class Configured(Subject):
    def __init__(self, name, directory, preload, options):
        self.options = [option.format(keyring=directory / "keyring") for option in options]
        super().__init__(name, directory, preload, 0)

    def start(self, own, env):
        server = Omnibus(own, *OMNIBUS, *self.options, env=env)
        server.start()
        subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "-e", "CREATE DATABASE sbtest"], check=True)
        return server


def compare(option, args):
    workload, without, with_it = OPTIONS[option]
    directory = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-bench-"))
    subjects = []
    try:
        library = preload("slow_sync", directory)
        for name, options in (("without", without), ("with", with_it)):
            subjects.append(Configured(name, directory, library, options))
            subjects[-1].fresh_tables()
        samples = cell(subjects, workload, args.connections, args)
        both = [samples["without"], samples["with"]]
        cpu = [median(sample, "cpu") * 1e6 for sample in both]
        numbers = [" / ".join(f"{median(sample, key):,.0f}" for sample in both) for key in ("tps", "bytes")]
        numbers.append(" / ".join(f"{median(sample, 'switches'):.2f}" for sample in both))
        print(f"| {option} | {workload} | {cpu[0]:.1f} / {cpu[1]:.1f} | **{cpu[1] / cpu[0]:.3f}** | {' | '.join(numbers)} |", flush=True)
        for subject in subjects:
            subject.server.stop()
    finally:
        for subject in subjects:
            subject.server.kill()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--only", default=",".join(OPTIONS), help="options, with commas between them")
    args = parser.parse_args()
    unknown = [option for option in args.only.split(",") if option not in OPTIONS]
    if unknown:
        raise SystemExit(f"{', '.join(unknown)}: not one of {', '.join(OPTIONS)}")
    print(f"{args.rounds} rounds of {args.seconds} s, {args.connections} connections; without / with\n\n"
          "| option | workload | server CPU us per trx | quotient | tps | bytes written per trx | context switches per trx |\n|" + " --- |" * 7, flush=True)
    for option in args.only.split(","):
        compare(option, args)


if __name__ == "__main__":
    main()
