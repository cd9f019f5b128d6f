#!/usr/bin/python3
"""Whatever an account without the right to name others does, nothing acts in another's name that the other has not made so.

Root makes procedures, functions, views, triggers and events, with both kinds of SQL SECURITY. An account with rights that are drawn, but
without SET_ANY_DEFINER, ALLOW_NONEXISTENT_DEFINER, SYSTEM_USER and SUPER, alters, replaces, drops, renames and makes them in statements that are drawn, also
through programs and prepared statements. After each of them, what has root as its definer is as root made it: its text, and
whether it acts in root's name.

    definers.py [--statements 400] [--seed N]

Ring: all.
"""

import argparse
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import seeds  # noqa: E402
from omnibus import Omnibus, Scratch, connect, error_code, expect  # noqa: E402

RIGHTS = ("ALTER ROUTINE", "CREATE ROUTINE", "EXECUTE", "CREATE VIEW", "SHOW VIEW", "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP",
          "TRIGGER", "EVENT", "INDEX", "CREATE TEMPORARY TABLES", "LOCK TABLES", "REFERENCES")
GLOBAL = ("CREATE USER", "PROCESS", "SYSTEM_VARIABLES_ADMIN", "RELOAD", "SHOW_ROUTINE", "FILE", "BACKUP_ADMIN", "CONNECTION_ADMIN")
SECURITY = ("", "SQL SECURITY DEFINER", "SQL SECURITY INVOKER")
DEFINER = ("", "", "DEFINER = CURRENT_USER", "DEFINER = root@localhost", "DEFINER = nobody@localhost")
# Of all that can act in another's name: where, its name, who, whether it does, and what.
SEEN = """SELECT CONCAT('routine ', routine_type), routine_name, definer, security_type, routine_definition FROM information_schema.routines WHERE routine_schema = 'd'
 UNION ALL SELECT 'view', table_name, definer, security_type, view_definition FROM information_schema.views WHERE table_schema = 'd'
 UNION ALL SELECT 'trigger', CONCAT(event_object_table, '.', trigger_name), definer, 'DEFINER', CONCAT(action_timing, event_manipulation, action_statement)
   FROM information_schema.triggers WHERE trigger_schema = 'd'
 UNION ALL SELECT 'event', event_name, definer, 'DEFINER', event_definition FROM information_schema.events WHERE event_schema = 'd'"""
NAMES = {"PROCEDURE": ("p", "q"), "FUNCTION": ("f", "g"), "VIEW": ("v", "w"), "TRIGGER": ("tr", "ts"), "EVENT": ("e", "h"), "TABLE": ("t", "s")}


def made_by_root():
    for at, security in ((0, "DEFINER"), (1, "INVOKER")):
        yield f"CREATE PROCEDURE d.{NAMES['PROCEDURE'][at]}() SQL SECURITY {security} SELECT CURRENT_USER()"
        yield f"CREATE FUNCTION d.{NAMES['FUNCTION'][at]}() RETURNS TEXT DETERMINISTIC SQL SECURITY {security} RETURN CURRENT_USER()"
        yield f"CREATE SQL SECURITY {security} VIEW d.{NAMES['VIEW'][at]} AS SELECT id, CURRENT_USER() AS who FROM d.t"
        yield f"CREATE TRIGGER d.{NAMES['TRIGGER'][at]} BEFORE INSERT ON d.{NAMES['TABLE'][at]} FOR EACH ROW SET NEW.k = LENGTH(CURRENT_USER())"
        yield f"CREATE EVENT d.{NAMES['EVENT'][at]} ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO INSERT INTO d.t (k) VALUES (1)"


def statement(rng):
    """One that changes or makes something that has a definer."""
    kind = rng.choice(("PROCEDURE", "FUNCTION", "VIEW", "TRIGGER", "EVENT", "TABLE"))
    one, other = rng.sample(NAMES[kind], 2)
    name, security, definer = f"d.{rng.choice((one, 'new'))}", rng.choice(SECURITY), rng.choice(DEFINER)
    comment = rng.choice(("", "COMMENT 'x'"))
    if kind in ("PROCEDURE", "FUNCTION"):
        body = "SELECT 'mine'" if kind == "PROCEDURE" else "RETURN 'mine'"
        returns = "" if kind == "PROCEDURE" else "RETURNS TEXT DETERMINISTIC"
        return rng.choice((f"ALTER {kind} {name} {comment} {security}", f"ALTER {kind} {name} {security} {comment} READS SQL DATA", f"DROP {kind} IF EXISTS {name}",
                           f"CREATE {definer} {kind} {name}() {returns} {security} {body}", f"CREATE {definer} {kind} IF NOT EXISTS {name}() {returns} {security} {body}"))
    if kind == "VIEW":
        select = rng.choice(("SELECT 1 AS id, 'mine' AS who", "SELECT id, CURRENT_USER() AS who FROM d.t", "SELECT * FROM d.s"))
        return rng.choice((f"ALTER {definer} {security} VIEW {name} AS {select}", f"CREATE OR REPLACE {definer} {security} VIEW {name} AS {select}",
                           f"CREATE {definer} {security} VIEW {name} AS {select}", f"DROP VIEW IF EXISTS {name}", f"RENAME TABLE {name} TO d.{other}"))
    if kind == "TRIGGER":
        table = rng.choice(NAMES["TABLE"])
        return rng.choice((f"CREATE {definer} TRIGGER {name} BEFORE INSERT ON d.{table} FOR EACH ROW SET NEW.k = 1", f"DROP TRIGGER IF EXISTS {name}",
                           f"CREATE {definer} TRIGGER IF NOT EXISTS {name} AFTER UPDATE ON d.{table} FOR EACH ROW SET @mine = 1"))
    if kind == "EVENT":
        return rng.choice((f"ALTER {definer} EVENT {name} DO SELECT 'mine'", f"ALTER {definer} EVENT {name} {comment or 'ENABLE'}", f"ALTER EVENT {name} RENAME TO d.{other}",
                           f"ALTER {definer} EVENT {name} ON SCHEDULE EVERY 2 YEAR", f"CREATE {definer} EVENT {name} ON SCHEDULE EVERY 1 YEAR DO SELECT 'mine'", f"DROP EVENT IF EXISTS {name}"))
    return rng.choice((f"ALTER TABLE {name} ADD COLUMN c{rng.randrange(1000)} INT", f"RENAME TABLE d.{one} TO d.moved, d.moved TO d.{one}", f"RENAME TABLE d.{one} TO d.new",
                       f"RENAME TABLE d.new TO d.{one}", f"CREATE TABLE {name} (id INT, k INT)", f"CREATE OR REPLACE VIEW d.{one} AS SELECT 1 AS id"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statements", type=int, default=400)
    seeds.add_to(parser)
    options = parser.parse_args()
    rng, taken = random.Random(options.seed), 0
    with Scratch() as directory:
        server = Omnibus(directory, "--skip-networking", "--sync-binlog=0", "--log-bin-trust-function-creators=1")
        server.start()
        root = connect(server, autocommit=True).cursor()

        def seen():
            root.execute(SEEN)
            return set(root.fetchall())
        for turn in range(max(1, options.statements // 40)):
            for sql in ("DROP DATABASE IF EXISTS d", "CREATE DATABASE d", "CREATE TABLE d.t (id INT, k INT)", "CREATE TABLE d.s (id INT, k INT)", *made_by_root(),
                        "DROP USER IF EXISTS u@localhost", "CREATE USER u@localhost"):
                root.execute(sql)
            rights = rng.sample(RIGHTS, rng.randrange(3, len(RIGHTS) + 1))
            root.execute(f"GRANT {', '.join(rights)} ON d.* TO u@localhost {rng.choice(('', 'WITH GRANT OPTION'))}")
            for right in rng.sample(GLOBAL, rng.randrange(0, 4)):
                root.execute(f"GRANT {right} ON *.* TO u@localhost")
            by_root = {row for row in seen() if row[2] == "root@localhost"}
            expect(len(by_root) == 10, f"what root made: {by_root}")
            session = connect(server, user="u", database="d", autocommit=True)
            cursor, said = session.cursor(), []
            for _ in range(40):
                sql = statement(rng)
                if rng.random() < 0.2:
                    quoted = sql.replace("'", "''")
                    code = error_code(lambda: cursor.execute(f"PREPARE x FROM '{quoted}'")) or error_code(lambda: cursor.execute("EXECUTE x"))  # noqa: B023
                else:
                    code = error_code(lambda: cursor.execute(sql))  # noqa: B023
                said.append(f"{sql} -- {code}")
                taken += code == 0
                # A view's text may lose its meaning, and a trigger goes along with its table's name.
                wrong = {row for row in seen() if row[2] == "root@localhost" and not any(row[0] == one[0] and row[3:] == one[3:] for one in by_root)}
                expect(not wrong, f"in root's name: {wrong}\nthe account has {rights}\n" + "\n".join(said))
            session.close()
        server.stop()
    print(f"ok: {options.statements} statements, {taken} were taken")


if __name__ == "__main__":
    main()
