#!/usr/bin/python3
"""The same statements here, on both engines, and on a real MariaDB: results, types, affected rows, warnings, error codes.

    differential.py                      every golden script in testdata/differential, against all three
    differential.py FILE..               these
    differential.py --update FILE..      writes what MariaDB answers (and ours, where a record says `@differs`) into the files
    differential.py --generate N --seed S    N generated statements, compared with a MariaDB by ours in its dialect; S is fixed unless said
    differential.py --generate N --peer mysql    the same with the real MySQL that `scripts/peers` has (needs root)

The format is in testdata/differential/README.md.

Ring: gate.
"""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import golden
import real_peers
import seeds  # noqa: E402
from omnibus import ROOT, MariaDB, Omnibus, Scratch, expect

FOLDER = ROOT / "testdata/differential"
MOST = int(os.environ.get("MOST", 40))
PACKET = "--max-allowed-packet=1048576"   # so that tests of the limit are quick
PEER_OPTIONS = ("--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", "--innodb-flush-log-at-trx-commit=0",
                "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M", PACKET)
ZONES = ("UTC", "MET", "Europe/Berlin", "Europe/Dublin", "Europe/Moscow", "Australia/Lord_Howe", "Pacific/Apia", "America/New_York",
         "America/Sao_Paulo", "Asia/Kathmandu", "Asia/Kolkata")


def run(server, engine, scripts):
    """In a process of its own: what every record of every script answers."""
    runner = golden.Runner(server, engine)
    return [runner.run_file(records) for records in scripts], runner.count


def cells(expected, ours):
    """The lines of a matrix with `ours ~ theirs` cells, as one side has them."""
    side = 0 if ours else -1
    return [line.partition(" => ")[0] + " => " + " | ".join(cell.split(" ~ ")[side] for cell in line.partition(" => ")[2].split(" | "))
            for line in expected]


def merged(ours, theirs):
    """The reverse of `cells`."""
    lines = []
    for one, other in zip(ours, theirs):
        label, _, mine = one.partition(" => ")
        pairs = zip(mine.split(" | "), other.partition(" => ")[2].split(" | "))
        lines.append(f"{label} => " + " | ".join(a if a == b else f"{a} ~ {b}" for a, b in pairs))
    return lines


def wanted(record, ours):
    if record.is_matrix:
        return cells(record.expected, ours)
    return record.expected if ours or not record.peer else record.peer


def differences(record, expected, got):
    """Lines that say what is different."""
    if not record.is_matrix or len(expected) != len(got):
        return [f"    expected {expected[:8]}", f"    got      {got[:8]}"]
    axis = list(record.parts()[1].values())[-1]
    found = []
    for one, other in zip(expected, got):
        label, _, mine = one.partition(" => ")
        for value, a, b in zip(axis, mine.split(" | "), other.partition(" => ")[2].split(" | ")):
            if a != b:
                found.append(f"    {label} & {value}: expected {a}, got {b}")
    return found or [f"    {expected} {got}"]


def check(path, records, answers):
    """Prints what is not as expected; returns how many records."""
    failed = 0
    for at, record in enumerate(records):
        said = []
        for target, lines in answers.items():
            ours = target != "MariaDB"
            expected = wanted(record, ours)
            if expected != lines[at]:
                found = differences(record, expected, lines[at])
                said += [f"  {target}:", *found] if found != said[1:] else [f"  and {target}"]
        if "differs" in record.directives and wanted(record, True) == wanted(record, False):
            said.append("  @differs, but there is no difference")
        if "differs" not in record.directives and wanted(record, True) != wanted(record, False):
            said.append("  a difference without @differs and its reason")
        if said:
            failed += 1
            print(f"{path.name}:{record.line}: {' '.join(record.text)[:300]}", *(said if MOST > len(said) else [*said[:MOST], f'    .. {len(said) - MOST} more']), sep="\n")
    return failed


def update(path, records, comments, answers):
    for at, record in enumerate(records):
        ours, theirs = answers["LSM"][at], answers["MariaDB"][at]
        record.peer = []
        if "differs" not in record.directives:
            record.expected = theirs
        elif record.is_matrix:
            record.expected = merged(ours, theirs)
        else:
            record.expected, record.peer = ours, theirs
    golden.write(path, records, comments)


def scripts_of(paths):
    read = {path: golden.read(path) for path in paths}
    expect(read, "no golden scripts")
    return read


def compare(paths, targets, updating):
    begun = time.monotonic()
    files = scripts_of(paths)
    scripts = [records for records, _ in files.values()]
    with concurrent.futures.ProcessPoolExecutor(len(targets)) as pool:
        runs = {name: pool.submit(run, server, engine, scripts) for name, (server, engine) in targets.items()}
        results = {name: each.result() for name, each in runs.items()}
    failed = 0
    for at, (path, (records, comments)) in enumerate(files.items()):
        answers = {name: result[0][at] for name, result in results.items()}
        if updating:
            update(path, records, comments, answers)
        failed += check(path, records, answers)
    count = results["MariaDB"][1]
    print(f"{count} statements in {len(files)} files against {', '.join(targets)}: {time.monotonic() - begun:.1f} s")
    return f"{failed} records are not as expected" if failed else ""


def generate(targets, number, seed):
    print(f"seed {seed}", flush=True)
    import statements
    failed = statements.compare({name: golden.Runner(*target) for name, target in targets.items()}, number, seed)
    return f"seed {seed}: {failed} of {number} generated statements differ" if failed else ""


def load_zones(peer):
    """The zones that scripts name; ours reads the same files by itself."""
    for name in ZONES:
        tables = subprocess.run(["mariadb-tzinfo-to-sql", f"/usr/share/zoneinfo/{name}", name], capture_output=True, check=True).stdout
        subprocess.run(["mariadb", "--no-defaults", f"--socket={peer.socket}", "-uroot", "mysql"], input=tables, check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--generate", type=int, default=0)
    parser.add_argument("--peer", choices=("mariadb", "mysql"), default="mariadb")
    seeds.add_to(parser)
    options = parser.parse_args()
    with Scratch() as scratch:
        folder = pathlib.Path(scratch)
        # Scripts have a record for each dialect; what is generated has none, so its peer is one of the same dialect.
        dialect = ["--dialect=mariadb"] if options.generate and options.peer == "mariadb" else []
        servers = []
        targets = {}
        for engine in ("LSM", "BTREE"):
            (folder / engine).mkdir()
            servers.append(Omnibus(folder / engine, "--skip-networking", "--sync-binlog=0", PACKET, *dialect))
            targets[engine] = (types.SimpleNamespace(socket=servers[-1].socket), engine)
        if options.peer == "mysql":
            targets["MySQL"] = (types.SimpleNamespace(socket=real_peers.started("mysql")), None, golden.LIKE_OURS)
        else:
            peer = MariaDB(folder, *PEER_OPTIONS)
            servers.append(peer)
            targets["MariaDB"] = (types.SimpleNamespace(socket=peer.socket), None)
        for server in servers:
            server.start()
        if options.peer == "mariadb":
            load_zones(peer)
        if options.generate:
            failure = generate(targets, options.generate, options.seed)
        else:
            failure = compare(options.files or sorted(FOLDER.glob("*.test")), targets, options.update)
        for server in servers:
            server.stop()
    expect(not failure, failure)


if __name__ == "__main__":
    main()
