#!/usr/bin/python3
"""Every sysbench oltp_* script and bulk_insert, unmodified, in both prepared-statement modes, without one error.

Ring: all.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch  # noqa: E402

SCRIPTS = ["oltp_read_only", "oltp_point_select", "oltp_read_write", "oltp_write_only", "oltp_update_index",
           "oltp_update_non_index", "oltp_insert", "oltp_delete", "select_random_points", "select_random_ranges"]


def sysbench(server, script, command, *options):
    # 1213 and 1205 are part of a transactional server's contract; everything else fails the test.
    run = subprocess.run(
        ["sysbench", script, f"--mysql-socket={server.socket}", "--mysql-user=root", "--mysql-db=sbtest",
         *options, command], capture_output=True, text=True, timeout=300)
    text = run.stdout + run.stderr
    if run.returncode != 0 or "FATAL" in text:
        raise SystemExit(f"FAIL: sysbench {script} {' '.join(options)} {command}:\n{text[-3000:]}")
    return text


def main():
    passed = 0
    with Scratch("omnibus-sysbench-") as directory:
        server = Omnibus(directory, "--max-connections=1100")
        server.start()
        try:
            subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", "-uroot", "-e",
                            "CREATE DATABASE sbtest"], check=True)
            for script in SCRIPTS:
                # The select_random scripts know one table only.
                tables = 1 if script.startswith("select_random") else 2
                common = [f"--tables={tables}", "--table-size=2000", "--threads=8"]
                sysbench(server, script, "prepare", *common)
                for mode in ("auto", "disable"):
                    text = sysbench(server, script, "run", *common, "--time=2", f"--db-ps-mode={mode}")
                    count = int(re.search(r"transactions:\s+(\d+)", text)[1])
                    if count == 0:
                        raise SystemExit(f"FAIL: sysbench {script} ps-mode={mode} did nothing:\n{text}")
                    print(f"sysbench {script:24} ps-mode={mode:8} {count} transactions", flush=True)
                    passed += 1
                sysbench(server, script, "cleanup", *common)
            sysbench(server, "bulk_insert", "prepare", "--threads=4")
            sysbench(server, "bulk_insert", "run", "--threads=4", "--time=3")
            sysbench(server, "bulk_insert", "cleanup", "--threads=4")
            passed += 1
            many = ["--tables=1", "--table-size=10000", "--threads=1000", "--time=5"]
            sysbench(server, "oltp_update_index", "prepare", "--tables=1", "--table-size=10000")
            sysbench(server, "oltp_update_index", "run", *many)
            passed += 1
        finally:
            if server.process.poll() is not None:
                print(server.log_tail())
            server.stop()
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
