#!/usr/bin/python3
"""MariaDB's uca1400 collations: random words of many scripts sort, group, join and match here as they do in MariaDB."""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from omnibus import MariaDB, Omnibus, Scratch, connect, expect  # noqa: E402

ASTRAL = "".join(map(chr, [*range(0x1D400, 0x1D480), *range(0x17000, 0x17040), *range(0x18B00, 0x18B20), *range(0x1B170, 0x1B190)]))
POOLS = ["aAäÄáÁbBßsSæeéE -_'", "кКйИЁё ", "中文字一丁㐀", "가나ㄱㅏ", "😀😃 a", "\u0301\u0308aeoO", "Åå\u212bΩω\u2126", "ŁłøØđĐþÞĳǆ 0123½²", ASTRAL]
QUERIES = ["SELECT id FROM u.{0} ORDER BY v, id", "SELECT MIN(id), COUNT(*) FROM u.{0} GROUP BY v ORDER BY 1", "SELECT COUNT(DISTINCT v) FROM u.{0}",
           "SELECT COUNT(*) FROM u.{0} a JOIN u.{0} b ON a.v = b.v", "SELECT id FROM u.{0} FORCE INDEX (v) WHERE v BETWEEN 'b' AND 'к' ORDER BY id",
           "SELECT id FROM u.{0} WHERE v LIKE 'ä%' OR v LIKE '_Ё' ORDER BY id"]
# Not nopad_ai_cs: behind the first level MariaDB pads there, so that a and á are equal.
NAMES = ["ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_as_ci", "nopad_as_cs"]


def words(seed):
    chance = random.Random(seed)
    for _ in range(1500):
        pool = chance.choice(POOLS)
        yield "".join(chance.choice(pool) for _ in range(chance.randrange(6))) + chance.choice(["", " ", ""])


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    data = list(words(seed))
    with Scratch("omnibus-uca1400-") as directory:
        servers = [Omnibus(directory), MariaDB(directory, "--skip-log-bin")]
        cursors = []
        for server in servers:
            server.start()
            cursors.append(connect(server, charset="utf8mb4", autocommit=True).cursor())
        for cursor in cursors:
            cursor.execute("CREATE DATABASE u")
            for name in NAMES:
                for charset in ("utf8mb4", "utf8mb3") if name in ("ai_ci", "nopad_as_cs") else ("utf8mb4",):
                    table = f"{charset}_{name}"
                    cursor.execute(f"CREATE TABLE u.{table} (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET {charset} COLLATE {charset}_uca1400_{name}, KEY v (v))")
                    kept = [(number, word) for number, word in enumerate(data) if charset == "utf8mb4" or max(word, default="a") < "\U00010000"]
                    cursor.execute(f"INSERT INTO u.{table} VALUES " + ", ".join(["(%s, %s)"] * len(kept)), [value for row in kept for value in row])
        tables = [f"utf8mb4_{name}" for name in NAMES] + ["utf8mb3_ai_ci", "utf8mb3_nopad_as_cs"]
        for table in tables:
            for query in QUERIES:
                found = []
                for cursor in cursors:
                    cursor.execute(query.format(table))
                    found.append(cursor.fetchall())
                differ = [(a, b) for a, b in zip(*found) if a != b]
                expect(found[0] == found[1], f"seed {seed}: {query.format(table)}: {[[data[row[0]] for row in pair] for pair in differ[:2] if len(data) > max(pair[0][0], pair[1][0])]}")
        for server in servers:
            server.stop()
    print(f"uca1400: {len(tables)} collations ok, seed {seed}")


if __name__ == "__main__":
    main()
