"""Scripts of several sessions, run step by step: what each statement answers, and which ones wait.

A script is lines of `session: statement`; `session?` takes the answer of a statement that was waiting. Its transcript has
one answer a step, in a form that two servers can be compared by.
"""

import threading
import time

from omnibus import PATIENCE_S, MariaDB, connect, expect

# MariaDB's list of transactions is kept for a tenth of a second.
LOOK_S = {True: 0.11, False: 0.01}


class Statement(threading.Thread):
    """A statement of a session, on a thread of its own because it may wait."""

    def __init__(self, db, sql):
        super().__init__(daemon=True)
        self.db, self.sql, self.answer = db, sql, None
        self.start()

    def run(self):
        import pymysql
        try:
            with self.db.cursor() as cursor:
                affected = cursor.execute(self.sql)
                self.answer = sorted(cursor.fetchall(), key=repr) if cursor.description else f"ok {affected}"
        except pymysql.err.MySQLError as error:
            self.answer = f"error {error.args[0]}"


class Script:
    """One run of a script on one server, with its tables in one engine."""

    def __init__(self, server, database, engine=None):
        self.server, self.database, self.look = server, database, LOOK_S[isinstance(server, MariaDB)]
        self.engine = engine
        self.admin = connect(server, autocommit=True)
        self.sessions, self.waiting, self.transcript = {}, {}, []

    def ask(self, sql):
        with self.admin.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def session(self, name):
        if name not in self.sessions:
            db = self.sessions[name] = connect(self.server, database=self.database, autocommit=True)
            if self.engine:
                db.cursor().execute(f"SET default_storage_engine = {self.engine}")
        return self.sessions[name]

    def waits(self, statement):
        """Whether the server says that a statement waits for a lock."""
        return self.waits_of(statement.db)

    def waits_of(self, db):
        thread = db.thread_id()
        if not isinstance(self.server, MariaDB):
            rows = self.ask("SHOW FULL PROCESSLIST")
            return any(row[0] == thread and "lock" in str(row[6]).lower() for row in rows)
        state = self.ask(f"SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {thread}")
        rows = self.ask("SELECT 1 FROM information_schema.INNODB_TRX "
                        f"WHERE trx_mysql_thread_id = {thread} AND trx_state = 'LOCK WAIT'")
        return bool(rows) or any("lock" in str(row[0]).lower() for row in state)

    def step(self, line):
        name, mark, sql = line.partition(":" if ":" in line else "?")
        name, sql = name.strip(), sql.strip()
        if mark == "?":
            statement = self.waiting.pop(name, None)
            if statement is None:
                self.transcript.append((line, "had not waited"))
                return
            if not self.settles(statement):
                self.waiting[name] = statement
                self.transcript.append((line, "still waits"))
                return
        elif name in self.waiting:
            self.transcript.append((line, "not begun: the session waits"))
            return
        else:
            statement = Statement(self.session(name), sql)
            if not self.settles(statement):
                self.waiting[name] = statement
                self.transcript.append((line, "waits"))
                return
        self.transcript.append((line, statement.answer))

    def settles(self, statement):
        """Whether a statement ends, rather than waiting for a lock."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            statement.join(self.look)
            if not statement.is_alive():
                return True
            if self.waits(statement):
                # A wait may be over as soon as it began: only one that is seen twice is one.
                statement.join(self.look)
                if statement.is_alive() and self.waits(statement):
                    return False
        expect(False, f"neither answered nor waiting: {statement.sql}")

    def run(self, lines):
        self.ask(f"DROP DATABASE IF EXISTS {self.database}")
        self.ask(f"CREATE DATABASE {self.database}")
        for line in lines:
            self.step(line)
        for statement in self.waiting.values():
            self.ask(f"KILL {statement.db.thread_id()}")
            statement.join(PATIENCE_S)
        for name, db in self.sessions.items():
            if name not in self.waiting:
                db.close()
        self.admin.close()
        return self.transcript


def parse(text):
    """Scripts by name: `# name` begins one; behind a step `here: answer` says what only this server answers, `both: answer` what
    both must."""
    scripts, lines = {}, None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("# "):
            expect(line[2:] not in scripts, f"two scripts of one name: {line}")
            lines = scripts[line[2:]] = []
        else:
            lines.append(line)
    return scripts


def compare(script, ours, theirs):
    """Runs a script on both servers, and here once for each engine; what differs where the script does not say so."""
    steps, own, both = [], {}, {}
    for line in script:
        mark, _, answer = line.partition(":")
        if mark in ("here", "both"):
            (own if mark == "here" else both)[len(steps) - 1] = answer.strip()
        else:
            steps.append(line)
    differences, other = [], theirs.run(steps)
    for engine in ours:
        for at, ((line, mine), (_, theirs_said)) in enumerate(zip(engine.run(steps), other)):
            expected = {own.get(at, str(theirs_said)), both.get(at, own.get(at, str(theirs_said)))}
            if expected != {str(mine)}:
                differences.append(f"{line}\n    here, in {engine.engine}, {mine}\n    MariaDB {theirs_said}" + (f"\n    both {both[at]}" if at in both else ""))
    return differences
