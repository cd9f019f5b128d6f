#!/usr/bin/python3
"""mysqlslap, unmodified: every generated load type, GUID keys, secondary indexes, several concurrencies, query files.

Ring: all.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch  # noqa: E402

RUNS = [["--auto-generate-sql", f"--auto-generate-sql-load-type={kind}", "--number-of-queries=400"]
        for kind in ("mixed", "update", "write", "read")]
RUNS += [
    ["--auto-generate-sql", "--auto-generate-sql-load-type=key", "--auto-generate-sql-guid-primary", "--number-of-queries=400"],
    ["--auto-generate-sql", "--auto-generate-sql-guid-primary", "--number-of-queries=400"],
    ["--auto-generate-sql", "--auto-generate-sql-add-autoincrement", "--number-of-queries=400"],
    ["--auto-generate-sql", "--auto-generate-sql-secondary-indexes=3", "--number-of-queries=400"],
    ["--auto-generate-sql", "--number-int-cols=4", "--number-char-cols=4", "--number-of-queries=400"],
    ["--auto-generate-sql", "--commit=10", "--number-of-queries=400"],
    ["--auto-generate-sql", "--auto-generate-sql-load-type=write", "--auto-generate-sql-execute-number=50"],
    ["--auto-generate-sql", "--engine=innodb", "--number-of-queries=200"],
    ["--create-schema=slap2", "--delimiter=;", "--create=CREATE TABLE t (a INT, b VARCHAR(20)); INSERT INTO t VALUES (1, 'x')",
     "--query=SELECT * FROM t WHERE a = 1; INSERT INTO t VALUES (2, 'y')", "--iterations=3"],
]


def main():
    passed = 0
    with Scratch("omnibus-slap-") as directory:
        server = Omnibus(directory)
        server.start()
        queries = pathlib.Path(directory) / "queries.sql"
        queries.write_text("SELECT 1;\nSELECT COUNT(*) FROM information_schema.tables;\n")
        runs = [*RUNS, ["--create-schema=slap3", "--delimiter=;", f"--query={queries}", "--number-of-queries=100"]]
        try:
            for options in runs:
                for concurrency in ("1,20,50",):
                    command = ["mariadb-slap", "--no-defaults", f"--socket={server.socket}", "-uroot",
                               f"--concurrency={concurrency}", *options]
                    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
                    if run.returncode != 0 or "Benchmark" not in run.stdout:
                        raise SystemExit(f"FAIL: {' '.join(command)}\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
                    print("mysqlslap", *options, flush=True)
                    passed += 1
        finally:
            if server.process.poll() is not None:
                print(server.log_tail())
            server.stop()
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
