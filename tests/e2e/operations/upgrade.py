#!/usr/bin/python3
"""Data directories of older versions open with this one, and one of a newer version is refused untouched.

`testdata/datadir` has a directory for each format, version and dialect worth keeping, as a server left it that was killed: part of the rows is
in the engines, part in the log alone. OMNIBUS=PROGRAM tests/e2e/operations/upgrade.py --make testdata/datadir/NAME.tar.xz makes one.

Ring: gate.
"""

import hashlib
import pathlib
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, Omnibus, Scratch, binary, expect

# Small files; no keys of anybody's.
OPTIONS = ["--auto-generate-certs=OFF", "--server-id=7", "--binlog-preallocate=0", "--max-binlog-size=65536", "--event-scheduler=OFF"]

TYPES = """CREATE TABLE d.{name} (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, price DECIMAL(20,6), f FLOAT, r DOUBLE,
  name VARCHAR(200) CHARACTER SET utf8mb4, latin VARCHAR(50) CHARACTER SET latin1, fixed CHAR(10), bytes VARBINARY(100), body LONGTEXT,
  kind ENUM('a','b','ü'), flags SET('x','y','z'), bits BIT(17), day DATE, at TIME(3), moment DATETIME(6), stamp TIMESTAMP(2) NULL, y YEAR,
  document JSON, twice BIGINT AS (tiny * 2) STORED, upper_name VARCHAR(200) AS (UPPER(name)) VIRTUAL,
  UNIQUE KEY by_name (name, id), KEY by_price (price), KEY by_body (body(20)), CHECK (tiny < 120)) ENGINE={engine}"""
ROW = """INSERT INTO d.{name} (tiny, price, f, r, name, latin, fixed, bytes, body, kind, flags, bits, day, at, moment, stamp, y, document)
  VALUES ({n} MOD 100, {n} * 1.000001, {n} / 8, -{n} / 16, CONCAT('näme ', {n}), 'grün', 'x', UNHEX('00FF10'), REPEAT('body ', {n} * 4), 'ü', 'x,z',
  {n}, '2024-02-29', '-12:34:56.789', '2024-02-29 23:59:59.123456', '2024-02-29 12:00:00.25', 2024, JSON_OBJECT('n', {n}, 'list', JSON_ARRAY(1, 'ü')))"""


def before_the_checkpoint():
    yield "CREATE DATABASE d"
    for name, engine in (("lsm", "InnoDB"), ("btree", "BTREE")):
        yield TYPES.format(name=name, engine=engine)
        for n in range(1, 41):
            yield ROW.format(name=name, n=n)
    yield "CREATE TABLE d.parent (id INT PRIMARY KEY)"
    yield "CREATE TABLE d.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES d.parent (id) ON DELETE CASCADE)"
    yield "INSERT INTO d.parent VALUES (1), (2)"
    yield "INSERT INTO d.child VALUES (1, 1), (2, 2), (3, NULL)"
    yield "CREATE VIEW d.cheap AS SELECT id, name FROM d.lsm WHERE price < 10"
    yield "CREATE FUNCTION d.double_it(n INT) RETURNS INT DETERMINISTIC RETURN n * 2"
    yield "CREATE PROCEDURE d.count_them(OUT n INT) SELECT COUNT(*) INTO n FROM d.lsm"
    yield "CREATE TABLE d.seen (what VARCHAR(50))"
    yield "CREATE TRIGGER d.note AFTER INSERT ON d.parent FOR EACH ROW INSERT INTO d.seen VALUES (CONCAT('parent ', NEW.id))"
    yield "CREATE EVENT d.nightly ON SCHEDULE EVERY 1 DAY DO DELETE FROM d.seen"
    yield "CREATE ROLE reader"
    yield "GRANT SELECT ON d.* TO reader"
    yield "CREATE USER u@localhost IDENTIFIED WITH mysql_native_password BY 'secret' DEFAULT ROLE reader"
    yield "GRANT reader TO u@localhost"
    yield "SET PERSIST long_query_time = 3"


def after_it():
    """Only the log has these when the server is killed."""
    for name in ("lsm", "btree"):
        yield f"UPDATE d.{name} SET price = price + 1, body = 'short' WHERE id MOD 3 = 0"
        yield f"DELETE FROM d.{name} WHERE id MOD 10 = 0"
        yield ROW.format(name=name, n=99)
    yield "BEGIN"
    yield "UPDATE d.lsm SET name = 'both' WHERE id = 1"
    yield "UPDATE d.btree SET name = 'both' WHERE id = 1"
    yield "COMMIT"
    yield "ALTER TABLE d.child ADD COLUMN more VARCHAR(20) DEFAULT 'added'"
    yield "INSERT INTO d.parent VALUES (3)"
    yield "DELETE FROM d.parent WHERE id = 1"
    yield "XA START 'branch'"
    yield "INSERT INTO d.parent VALUES (4)"
    yield "XA END 'branch'"
    yield "XA PREPARE 'branch'"


def ask(server, *statements, user="root", password=""):
    out = subprocess.run(["mariadb", "--no-defaults", f"--socket={server.socket}", f"-u{user}", f"--password={password}", "-NB",
                          "--default-character-set=utf8mb4"], input=";\n".join(statements).encode(), capture_output=True)
    expect(out.returncode == 0, out.stderr.decode())
    said = out.stdout.decode(errors="backslashreplace").strip()
    return "".join(char if char >= " " or char in "\t\n" else f"\\x{ord(char):02x}" for char in said)


def dialect(name):
    """The option for a directory of this name."""
    return ["--dialect=mariadb"] if "mariadb" in name else []


def make(scratch, target):
    server = Omnibus(scratch, *OPTIONS, *dialect(target))
    server.start()
    ask(server, *before_the_checkpoint())
    server.stop()
    server.start()
    ask(server, *after_it())
    server.kill()
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for path in sorted(server.datadir.rglob("*")):
            if path.is_file() and path.suffix != ".pem":
                archive.add(path, path.relative_to(server.datadir))
    print(f"{target}: {pathlib.Path(target).stat().st_size} bytes")


def summary(server):
    """What a directory says: all of it that the statements above have made."""
    said = []
    for name in ("lsm", "btree"):
        said.append(ask(server, "SET time_zone = '+00:00'", f"SELECT * FROM d.{name} ORDER BY id"))
        said.append(ask(server, f"SELECT id FROM d.{name} FORCE INDEX (by_price) ORDER BY price, id"))
        said.append(ask(server, f"SELECT id FROM d.{name} FORCE INDEX (by_name) ORDER BY name, id"))
    for sql in ("SELECT * FROM d.child ORDER BY id", "SELECT * FROM d.parent ORDER BY id", "SELECT * FROM d.seen", "SELECT * FROM d.cheap ORDER BY id",
                "SELECT d.double_it(21)", "CALL d.count_them(@n); SELECT @n", "SHOW EVENTS FROM d", "SHOW TRIGGERS FROM d",
                f"SELECT {'@@gtid_binlog_state' if dialect(' '.join(server.options)) else '@@gtid_executed'}, @@long_query_time, @@server_uuid"):
        said.append(ask(server, sql))
    return "\n".join(said)


def opens(scratch, archive):
    server = Omnibus(scratch, *OPTIONS, *dialect(archive.name))
    server.datadir.mkdir(parents=True)
    with tarfile.open(archive) as files:
        files.extractall(server.datadir)
    server.start()
    said = summary(server)
    expected = archive.with_suffix("").with_suffix(".txt")
    if "--update" in sys.argv:
        expected.write_text(said)
    wanted = expected.read_text().split("\n")
    for line, (got, want) in enumerate(zip(said.split("\n"), wanted), 1):
        expect(got == want, f"{archive.name}: line {line} of what it says\n  is    {got[:400]}\n  was   {want[:400]}")
    expect(len(said.split("\n")) == len(wanted), f"{archive.name}: {len(said.split(chr(10)))} lines, there were {len(wanted)}")
    for table in ("lsm", "btree", "child", "parent"):
        expect(ask(server, f"CHECK TABLE d.{table}").endswith("OK"), f"{archive.name}: CHECK TABLE {table}")
    expect(ask(server, "SELECT COUNT(*) FROM d.child", user="u", password="secret") == "2", "the account's rights")
    # It goes on from there: the branch, new rows, the log's numbers; and all of it is there after another start.
    expect("branch" in ask(server, "XA RECOVER"), "the prepared branch is gone")
    ask(server, "XA COMMIT 'branch'", *(ROW.format(name=name, n=7) for name in ("lsm", "btree")))
    after = summary(server)
    server.stop()
    server.start()
    expect(summary(server) == after, f"{archive.name}: another start changes what it says")
    for log in server.binlogs():
        out = subprocess.run([binary(), "binlog", log], capture_output=True, text=True)
        expect(out.returncode == 0, out.stderr)
    server.stop()
    return server


def hashes(folder):
    return {path: (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest()) for path in folder.rglob("*") if path.is_file()}


def refuses_a_newer_one(server):
    marker = server.datadir / "omnibus.format"
    number, *rest = marker.read_text().split("\n", 1)
    marker.write_text("\n".join([str(int(number) + 1), *rest]))
    before = hashes(server.datadir)
    out = subprocess.run([binary(), "serve", "--datadir", server.datadir, "--socket", server.socket, "--skip-networking"],
                         capture_output=True, text=True, timeout=120)
    said = out.stderr + out.stdout
    expect(out.returncode == 1, f"status {out.returncode}: {said}")
    expect(f"has format {int(number) + 1}, which a newer version wrote" in said, said)
    expect(hashes(server.datadir) == before, "a directory that was refused has changed")


def main():
    with Scratch() as scratch:
        if "--make" in sys.argv:
            return make(scratch, sys.argv[sys.argv.index("--make") + 1])
        archives = sorted((ROOT / "testdata/datadir").glob("*.tar.xz"))
        expect(archives, "there is no older data directory")
        for archive in archives:
            folder = pathlib.Path(scratch) / archive.stem
            folder.mkdir()
            server = opens(folder, archive)
        refuses_a_newer_one(server)
        print(f"ok: {len(archives)} older data directories open and go on; one of a newer version is refused and unchanged")


if __name__ == "__main__":
    main()
