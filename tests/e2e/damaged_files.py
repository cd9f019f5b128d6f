#!/usr/bin/env python3
"""Damage in files: `omnibus check` and `omnibus restore` find it in every file of a backup, a running server goes on, and looking
changes nothing.
"""

import hashlib
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from omnibus import Omnibus, Scratch, binary, client, connect, error_code, expect, wait_for  # noqa: E402

ROWS = 400


def fill(server):
    client(server, "CREATE DATABASE test")
    for engine in ("LSM", "BTREE"):
        client(server, f"CREATE TABLE test.{engine} (id INT PRIMARY KEY, k INT, v VARCHAR(600), KEY (k)) ENGINE={engine}")
        values = ",".join(f"({n}, {n}, REPEAT(CHAR(97 + {n} % 26), 600))" for n in range(ROWS))
        client(server, f"INSERT INTO test.{engine} VALUES {values}")


def sums(directory):
    return {path.relative_to(directory): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
            for path in sorted(directory.rglob("*")) if path.is_file()}


def check(directory):
    run = subprocess.run([binary(), "check", str(directory)], capture_output=True, text=True, timeout=60)
    expect("panicked" not in run.stderr, f"check panicked: {run.stderr}")
    return run.returncode, run.stdout + run.stderr


def damaged(path, how, chance):
    bytes_ = bytearray(path.read_bytes())
    # Not in the zeros that a log file or the B-tree's file ends with.
    used = len(bytes_.rstrip(b"\0")) or len(bytes_)
    at = chance.randrange(used)
    if how == "bit":
        bytes_[at] ^= 1 << chance.randrange(8)
    else:
        at = at // 4096 * 4096
        bytes_[at:at + 4096] = bytes(len(bytes_[at:at + 4096]))
    path.unlink()
    path.write_bytes(bytes_)


def check_changes_nothing(directory):
    """After a stop, and after a kill with work under way."""
    server = Omnibus(directory)
    server.start()
    fill(server)
    with connect(server, autocommit=True).cursor() as cursor:
        for n in range(100):
            cursor.execute(f"INSERT INTO test.BTREE VALUES ({1000 + n}, 1, 'v')")
    server.kill()
    for _ in range(2):
        before = sums(server.datadir)
        _, text = check(server.datadir)
        expect(sums(server.datadir) == before, f"check changed a file:\n{text}")
        expect("DAMAGED" not in text, f"check found damage:\n{text}")
        server.start()
        server.stop()
    code, text = check(server.datadir)
    expect(code == 0, f"a stopped server's directory is not whole:\n{text}")


def damage_in_a_backup(directory):
    server = Omnibus(directory / "server")
    server.start()
    fill(server)
    backup = directory / "backup"
    client(server, f"BACKUP TO '{backup}'")
    server.stop()
    code, text = check(backup)
    expect(code == 0 and "backup" in text, f"a whole backup: {text}")
    chance, files = random.Random(5), [path for path in sorted(backup.rglob("*")) if path.is_file() and path.stat().st_size]
    for number, path in enumerate(files):
        kept = path.read_bytes()
        damaged(path, "bit", chance)
        if path.name != "omnibus.format":
            code, text = check(backup)
            expect(code != 0, f"check finds nothing in {path.name}: {text}")
            run = subprocess.run([binary(), "restore", "--from", str(backup), "--datadir", str(directory / f"r{number}")],
                                 capture_output=True, text=True)
            expect(run.returncode != 0, f"restore takes a damaged {path.name}")
            expect(path.name in run.stderr or "not a backup" in run.stderr, f"restore does not name {path.name}: {run.stderr}")
        path.unlink()
        path.write_bytes(kept)


def a_running_server_goes_on(directory):
    """A write that needs a damaged page of the B-tree's file: what comes after it is refused, and nothing else."""
    server = Omnibus(directory, "--btree-cache-size=1048576")
    server.start()
    fill(server)
    server.stop()
    path = server.datadir / "btree" / "data.redb"
    content = bytearray(path.read_bytes())
    # Entries of the index on k: its space is the table's second.
    space = max(range(1, 200), key=lambda n: content.count((0x40000000 + n).to_bytes(4, "big")))
    at, pages = 0, set()
    while (at := content.find((0x40000000 + space).to_bytes(4, "big"), at + 1)) >= 0:
        pages.add(at // 4096)
    for page in pages:
        content[page * 4096 + 2000] ^= 1
    path.write_bytes(content)
    try:
        server.start()
    except RuntimeError:
        expect("data.redb" in server.log_tail(200), f"refused without a name\n{server.log_tail()}")
        return
    db = connect(server, autocommit=True, database="test")
    with db.cursor() as cursor:
        for n in range(20):
            error_code(lambda: cursor.execute(f"UPDATE BTREE SET k = k + 1000 WHERE id = {n * 20}"))  # noqa: B023
            error_code(lambda: cursor.execute(f"INSERT INTO BTREE VALUES ({5000 + n}, {n}, 'v')"))  # noqa: B023
        client(server, "INSERT INTO test.LSM VALUES (9000, 1, 'v')")
        wait_for(lambda: error_code(lambda: cursor.execute("INSERT INTO BTREE SELECT MAX(id) + 1, 1, 'v' FROM LSM")),
                 "a refusal")
        expect(client(server, "SELECT COUNT(*) FROM test.LSM").strip() == str(ROWS + 1), "the other engine goes on")
        client(server, "INSERT INTO test.LSM VALUES (9001, 1, 'v')")
    expect("panicked" not in server.log_tail(1000), f"a panic\n{server.log_tail()}")
    server.kill()


def main():
    tests = (check_changes_nothing, damage_in_a_backup, a_running_server_goes_on)
    wanted = sys.argv[1:]
    for test in tests:
        if not wanted or test.__name__ in wanted:
            with Scratch("omnibus-damage-") as name:
                (pathlib.Path(name) / "server").mkdir()
                test(pathlib.Path(name))
                print(f"damaged_files: {test.__name__} passed", flush=True)


main()
