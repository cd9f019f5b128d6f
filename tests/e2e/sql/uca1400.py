#!/usr/bin/python3
"""MariaDB's uca1400 collations: random words of many scripts sort, group, join and match here as they do in MariaDB. The collations of
languages, these and those of `unicode_ci`, give words and letters the weights that they have there.

Ring: all.
"""

import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
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


def languages(cursors, data):
    """Every collation that both have by the same name and id; letters one by one and in pairs, since `ch` may be one."""
    known = []
    for cursor, column in zip(cursors, ("COLLATION_NAME, ID FROM information_schema.COLLATIONS", "FULL_COLLATION_NAME, ID FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY")):
        cursor.execute(f"SELECT {column}")
        known.append({(name, int(number)) for name, number in cursor.fetchall() if name.startswith("utf8mb4_") and name.endswith(("_ci", "_cs"))})
    names = sorted(name for name, _ in known[0] & known[1] if "general" not in name)
    expect(len(names) > 200, f"only {len(names)} collations in common")
    latin = [chr(code) for code in (*range(0x41, 0x5b), *range(0x61, 0x7b))]
    letters = [chr(code) for code in (*range(0xc0, 0x250), *range(0x621, 0x650), *range(0x6a0, 0x6d0), *range(0xd85, 0xdc7), *range(0x1e00, 0x1f00))]
    probes = [*latin, *letters, *(a + b for a in latin for b in latin), "ddzs", "DZs", "LJlj", *data[:300]]
    for name in names:
        for start in range(0, len(probes), 500):
            part = probes[start:start + 500]
            weights = ", ".join(f"HEX(WEIGHT_STRING(_utf8mb4 x'{text.encode().hex()}' COLLATE {name}))" for text in part)
            found = []
            for cursor in cursors:
                cursor.execute(f"SELECT {weights}")
                found.append(cursor.fetchone())
            differ = [(text, a, b) for text, a, b in zip(part, *found) if a != b]
            expect(not differ, f"{name}: {differ[:5]}")
    return len(names)


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
        print(f"uca1400: {languages(cursors, data)} collations of languages ok", flush=True)
        for server in servers:
            server.stop()
    print(f"uca1400: {len(tables)} collations ok, seed {seed}")


if __name__ == "__main__":
    main()
