"""The command blocks of the documentation's pages, run as they are printed.

A fenced block is run by what stands behind its fence. The first word is the language that a reader's program colours; the words after it
are for this library, and no reader sees them:

    sh                commands of the page's shell, one for the whole page: each must succeed
    console           a terminal: commands behind `$ ` (`> ` goes on with one), and what they print below them. One that the page shows to print
                      something must print that, digits aside; only such a one may fail
    console exact     digits count, too
    sql db1 db2       statements, executed by the client as root at each of these servers; db1 if none is named
    ini db1 db2       the option file of these servers, with which they start now
    text, ..          anything else is not run, and has to be in NOT_RUN with the reason

A page's servers db1, db2 .. begin when a block first names them; they are ours, but for those of MARIADBS. A comment `<!-- run` .. `-->` has blocks that the page does not show, of what
the page takes for granted: an account, a table, a source that has just died. There `kill db1`, `start db1` and `stop db1` are words of the shell.

WORDS is all that is changed in a page's text before it is run.
"""

import contextlib
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import termios
import time

from omnibus import ROOT, MariaDB, Omnibus, Scratch, binary, expect, free_port

PAGES = [pathlib.Path("README.md"), *sorted(path.relative_to(ROOT) for path in (ROOT / "docs/use").glob("*.md"))]
# Of one block or command.
PATIENCE_S = 90

# What stands on a page, and what it is here: {place} is the page's directory, {port} its port. In this order.
WORDS = [
    # The program under test is built.
    (r"\bcargo build --release\b", ":"),
    (r"\bcargo run -p change-stream --", "change-stream"),
    (r"\btarget/release/omnibus\b", "omnibus"),
    # Directories of the machine are inside the page's own.
    (r"(?<![\w./~{}-])/(tmp|backups?|var/lib|var/backups|run/omnibus|etc/omnibus[\w-]*|etc/haproxy|mnt|archive)\b", r"{place}/\1"),
    (r"file:///", "file://{place}/"),
    # Machines are addresses of this one, where each server has its own and all have the same port.
    (r"((?:SOURCE|MASTER)_)HOST='(?:10\.0\.0\.|db)(\d)'(?!, *\1PORT)", r"\1HOST='127.0.0.\2', \1PORT={port}"),
    (r"-h (?:10\.0\.0\.|db)(\d)", r"-h 127.0.0.\1 -P {port}"),
    (r"\b10\.0\.0\.", "127.0.0."),
    (r"(?<=[=@])db(\d)(?=[:\s'\"])", r"127.0.0.\1"),
    # Sizes and moments of a real machine.
    (r"--binlog-size=2G", "--binlog-size=1M"),
    (r"\bomnibus bench sync\b", "omnibus bench sync --rounds 1 --count 20"),
    (r"\bomnibus bench preallocation\b", "omnibus bench preallocation --size 8M --count 50 --wait 0 --seconds 1 --connections 1"),
    (r"--start-position=184320", "--start-position=$position"),
    # It would tell how far it is for ever.
    (r"\$import {9,}#", "$import --until-caught-up #"),
    (r"'2026-01-31 11:59:59'", "'{now}'"),
    (r"\b3306\b", "{port}"),
    (r"\b3307\b", "{port_2}"),
    (r"\b3308\b", "{port_3}"),
    (r"\b3309\b", "{port_4}"),
    (r"\b8080\b", "{port_5}"),
    (r"\b9999\b", "{port_6}"),
    (r"\b3310\b", "{port_7}"),
    (r"\b8081\b", "{port_8}"),
    # Who runs the tests, or a namespace of theirs, may mount.
    (r"\bsudo (?=u?mount)", ""),
    (r"\b(broker\d|nats1)(?=:)", "127.0.0.1"),
    (r"\b9000\b", "{s3}"),
    (r"s3://bucket\b", "s3://archive"),
    (r"\b9092\b", "{kafka}"),
    (r"\b4222\b", "{nats}"),
]

# Blocks that are not run, by page and by a piece of their text, with the reason.
NOT_RUN = {
    ("README.md", "make run "): "the doors to all tests: this one is behind them",
    ("README.md", "omnibus import --from"): "needs a server to come from; migrate.md has the same commands",
    ("embedding.md", "use omnibus::"): "Rust: crates/omnibus has it as its first example",
    ("embedding.md", "cargo run -p omnibus-commit"): "compiles; cargo builds the example in `make unit-tests`",
    ("migrate.md", "CREATE USER repl@'%'"): "the way back takes a statement that the cut-over prints: tests/e2e/tools/import.py",
    ("operating.md", "sudo apt install"): "changes the machine; package.py installs into a folder",
    ("operating.md", "docker build"): "needs a container's daemon; container.py builds the image and runs it",
    ("vitess.md", ""): "builds Vitess; tests/vitess/run.py sets it up by these commands",
}

# Servers of pages that are Debian's MariaDB.
MARIADBS = {("migrate.md", "db1")}

# Options that pages name and that are other programs' own.
OTHERS = {
    "--all-databases", "--allow-on-master", "--compact", "--disable-ssl-verify-server-cert", "--example", "--flush-logs", "--init-db-sql-file", "--kebab-case", "--local",
    "--lock-all-tables", "--only", "--open", "--single-transaction", "--system", "--tab", "--tablet-uid", "--tool", "--unmanaged", "--xtrabackup-stream-mode",
}

FENCE = re.compile(r"^( *)(```+)\s*(.*)$")


class Block:
    """A block of a page."""

    def __init__(self, page, line, info, text, shown):
        words = info.split() or [""]
        self.page, self.line, self.language, self.servers, self.text, self.shown = page, line, words[0], words[1:], text, shown

    def __str__(self):
        return f"{self.page}:{self.line} ({self.language})"


def blocks(page):
    """The blocks of a page, in order."""
    found, fence, hidden = [], None, False
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        match = FENCE.match(line)
        if fence is not None:
            indent, ticks, info, begun, lines = fence
            if match and match[2] == ticks and not match[3]:
                found.append(Block(page, begun, info, "\n".join(lines) + "\n", not hidden))
                fence = None
            else:
                lines.append(line.removeprefix(indent))
        elif match:
            fence = (match[1], match[2], match[3], number, [])
        elif line.strip() == "<!-- run":
            hidden = True
        elif line.strip() == "-->":
            hidden = False
    expect(fence is None and not hidden, f"{page}: a block does not end")
    return found


class PageServer(Omnibus):
    """A server of a page: at an address of its own, with an option file of its own."""

    def __init__(self, place, number, port):
        directory = place / f"db{number}"
        directory.mkdir()
        self.settings = directory / "omnibus.cnf"
        self.settings.write_text(f"[mysqld]\nserver_id = {number}\n")
        super().__init__(directory, f"--bind-address=127.0.0.{number}")
        self.number, self.port, self.first = number, port, (f"--defaults-file={self.settings}",)


# The shell's own commands: its standard input is the terminal.
LOOP = """
while IFS= read -r -u {orders} how && IFS= read -r -u {orders} step && IFS= read -r -u {orders} mark; do
    set $how -o pipefail
    . "$step"
    echo "$mark$?"
done
"""


class Shell:
    """A bash on a terminal, as a reader has it; it lives as long as its page."""

    def __init__(self, place, env, mounts):
        self.place, self.steps, self.rest = place, 0, b""
        self.terminal, end = pty.openpty()
        settings = termios.tcgetattr(end)
        settings[1] &= ~termios.OPOST
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(end, termios.TCSANOW, settings)
        orders, self.orders = os.pipe()
        # What it mounts is gone with it, and nobody else sees it.
        alone = (["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]) if mounts else []
        self.process = subprocess.Popen([*alone, "bash", "--noprofile", "--norc", "-c", LOOP.format(orders=orders)], stdin=end, stdout=end, stderr=end, cwd=place,
                                        env=env, pass_fds=[orders], start_new_session=True)
        os.close(end)
        os.close(orders)

    def run(self, text, strict):
        """Runs a text; what it prints, and its status. With `strict` the first command that fails ends it, and the shell."""
        self.steps += 1
        step = self.place / f".step-{self.steps}"
        step.write_text(text)
        mark = f"--- end of step {self.steps}: "
        os.write(self.orders, f"{'-e' if strict else '+e'}\n{step}\n{mark}\n".encode())
        said, deadline = self.rest, time.monotonic() + PATIENCE_S
        pattern = re.compile(re.escape(mark).encode() + rb"(\d+)\n")
        while not (found := pattern.search(said)):
            readable, _, _ = select.select([self.terminal], [], [], 1)
            try:
                more = os.read(self.terminal, 65536) if readable else b""
            except OSError:
                more = None
            if more is None or (self.process.poll() is not None and not readable):
                return said.decode(errors="replace"), self.process.wait() or 1
            said += more
            if time.monotonic() > deadline:
                return said.decode(errors="replace") + f"\n(no end after {PATIENCE_S} s)", 124
        self.rest = said[found.end():]
        return said[:found.start()].decode(errors="replace"), int(found[1])

    def end(self):
        # With all that it has begun.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.orders)
        os.close(self.terminal)


# The words of hidden blocks, and sleeps that last until the servers that the shell has begun answer: here they may be slower than on a page.
PRELUDE = r"""
until_it_answers() {
    for _ in $(seq 200); do
        if mariadb-admin --no-defaults --socket="$1" -u root ping >/dev/null 2>&1; then return; fi
        command sleep 0.1
    done
}
sleep() {
    command sleep "$1"
    local job socket
    for job in $(jobs -rp); do
        socket=$(tr '\0' '\n' 2>/dev/null <"/proc/$job/cmdline" | sed -n -e '/^--socket$/{n;p}' -e 's/^--socket=//p' -e 's/^--defaults-file=//p')
        if [ -f "$socket" ]; then socket=$(sed -n 's/^socket *= *//p' "$socket"); fi
        if [ -n "$socket" ]; then until_it_answers "$socket"; fi
    done
    command sleep "$1"
}
# A replica does what its source has done.
replicates() {
    local said socket=$1/s.sock
    [ -S "$socket" ] || socket=$1/m.sock
    for _ in $(seq 300); do
        said=$(mariadb --no-defaults --socket="$socket" -u root -e "SHOW SLAVE STATUS\\G")
        if [ "$(grep -cE '^ *(Slave|Replica)_(IO|SQL)_Running: Yes' <<<"$said")" -ge 2 ]; then return; fi
        command sleep 0.1
    done
    echo "$said"
    return 1
}
"""


class OldServer(MariaDB):
    """A MariaDB under a page's name and address of it, with a log."""

    def __init__(self, place, number, port):
        directory = place / f"db{number}"
        directory.mkdir()
        super().__init__(directory, "--skip-skip-networking", f"--bind-address=127.0.0.{number}", f"--port={port}", f"--server-id={number}",
                         "--log-bin=binlog", "--binlog-format=ROW")
        self.socket = str(directory / "s.sock")


class World:
    """A page's directory, with the programs, files and addresses that it names."""

    def __init__(self, place, page, words=None):
        self.place, self.page, self.servers, self.told = place, page, {}, {}
        for folder in ("bin", "tmp", "var/lib", "var/backups", "backups", "backup", "run/omnibus", "etc/haproxy", "mnt", "archive"):
            (place / folder).mkdir(parents=True)
        for folder in ("docs", "packaging", "examples"):
            (place / folder).symlink_to(ROOT / folder)
        program = pathlib.Path(binary()).resolve()
        (place / "bin/omnibus").symlink_to(program)
        (place / "bin/change-stream").symlink_to(program.parent / "change-stream")
        self.words = {"place": str(place), "port": free_port(), **{f"port_{n}": free_port() for n in range(2, 9)},
                      "kafka": 9092, "nats": 4222, "s3": 9000, **(words or {})}
        (place / "mnt/archive").mkdir()
        if "keys" in self.words:
            shutil.copytree(self.words["keys"], place / "etc/omnibus-keys")
        (place / ".my.cnf").write_text(f"[client]\nuser=root\nsocket={place}/db1/s.sock\nport={self.words['port']}\n")
        env = {"PATH": f"{place}/bin:{os.environ['PATH']}", "HOME": str(place), "TERM": "dumb", "LC_ALL": "C.UTF-8", "TMPDIR": str(place / "tmp"),
               "OMNIBUS": "omnibus"}
        self.shell = Shell(place, env, " mount -t " in (ROOT / page).read_text())
        self.run("the prelude", PRELUDE)

    def here(self, text):
        """A text of the page with what its names are here."""
        self.words["now"] = time.strftime("%F %T", time.gmtime())
        for pattern, meaning in WORDS:
            text = re.sub(pattern, lambda match, meaning=meaning: match.expand(meaning).format(**self.words), text)
        return text

    def server(self, name):
        server = self.known(name)
        if not server.runs():
            server.start()
        return server

    def known(self, name):
        if name not in self.servers:
            if (self.page.name, name) in MARIADBS:
                self.servers[name] = OldServer(self.place, int(name.removeprefix("db")), self.words["port"])
            elif name.startswith("maria"):
                (self.place / name).mkdir()
                self.servers[name] = MariaDB(self.place / name, f"--server-id=10{name[-1]}")
            else:
                self.servers[name] = PageServer(self.place, int(name.removeprefix("db")), self.words["port"])
                (self.place / f"run/omnibus/{name}.sock").symlink_to(f"../../{name}/s.sock")
                if name == "db1":
                    (self.place / "var/lib/omnibus").symlink_to("../../db1/data")
                    (self.place / "run/omnibus/omnibus.sock").symlink_to("../../db1/s.sock")
        return self.servers[name]

    def run(self, what, text):
        said, status = self.shell.run(text, strict=True)
        expect(status == 0, f"{what}: status {status}\n{text}\n-- it says:\n{said[-4000:]}")

    def block(self, block):
        getattr(self, block.language)(block)

    def sh(self, block):
        if not block.shown:
            return self.script(block)
        self.run(block, self.here(block.text))

    def script(self, block):
        """A hidden block of the shell, in which servers may be killed and started."""
        lines = []
        for line in block.text.splitlines():
            words = line.split()
            if len(words) == 2 and words[0] in ("kill", "start", "stop") and words[1].startswith("db"):
                self.run(block, self.here("\n".join(lines)))
                lines = []
                if words[0] == "start":
                    self.server(words[1])
                else:
                    getattr(self.servers[words[1]], words[0])()
            else:
                lines.append(line)
        self.run(block, self.here("\n".join(lines)))

    def sql(self, block):
        for name in block.servers or ["db1"]:
            server = self.server(name)
            file = self.place / ".statements.sql"
            file.write_text(self.here(block.text))
            self.run(block, f"mariadb --no-defaults --socket={server.socket} -u root --default-character-set=utf8mb4 --table < {file}")

    def ini(self, block):
        for name in block.servers:
            server = self.known(name)
            server.stop()
            text = re.sub(r"(?m)^server_id *= *\d+", f"server_id = {server.number}", self.here(block.text))
            server.settings.write_text(text.replace("127.0.0.1", f"127.0.0.{server.number}"))
            server.start()

    def console(self, block):
        for command, shown in commands(block):
            said, status = self.shell.run(self.here(command), strict=False)
            expect(status == 0 or shown, f"{block}: status {status}\n{command}\n-- it says:\n{said[-4000:]}")
            if shown:
                got = said.replace("\r", "").splitlines()
                expect(same([self.here(line) for line in shown], got, "exact" in block.servers),
                       f"{block}:\n{command}\n-- status {status}, it says:\n{said[-4000:]}\n-- the page says:\n" + "\n".join(shown))

    def end(self):
        self.shell.end()
        for server in self.servers.values():
            if server.runs():
                server.kill()


def commands(block):
    """Pairs of a terminal's command and the lines below it."""
    found = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1] = (found[-1][0] + "\n" + line.removeprefix("> "), [])
        else:
            expect(found, f"{block} does not begin with `$ `")
            found[-1][1].append(line)
    while found and found[-1][1] and not found[-1][1][-1]:
        found[-1][1].pop()
    return [(command + "\n", [line for line in shown if line.strip()]) for command, shown in found]


def form(line, exact):
    """What is compared of a line: no names of servers, no widths, and no digits unless they count."""
    line = re.sub(r"127\.0\.0\.(\d)", lambda match: "server " + "abcdefghi"[int(match[1]) - 1], line)
    line = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "#", line)
    line = line if exact else re.sub(r"\d+([.:,-]\d+)*", "#", line)
    return re.sub(r"[-\s]+", " ", line).strip()


def same(shown, got, exact):
    """Whether a page shows what was printed; `…` stands for any text, and alone on its line for any lines."""
    def pattern(line):
        return ".*".join(re.escape(form(part, exact)) for part in line.split("…")) if line.strip() != "…" else None

    wanted = [pattern(line) for line in shown]
    lines = [form(line, exact) for line in got if line.strip()]

    def fits(at, line):
        if at == len(wanted):
            return line == len(lines)
        if wanted[at] is None:
            return any(fits(at + 1, later) for later in range(line, len(lines) + 1))
        return line < len(lines) and re.fullmatch(wanted[at], lines[line]) is not None and fits(at + 1, line + 1)

    return fits(0, 0)


def reason(block):
    """Why a block is not run, if that is written down."""
    for (page, text), why in NOT_RUN.items():
        if block.page.name == page and text in block.text:
            return why
    return None


def listed_blocks_exist():
    """Every entry of NOT_RUN is of one block."""
    for name, text in NOT_RUN:
        for page in (page for page in PAGES if page.name == name):
            expect(any(text in block.text for block in blocks(page)), f"NOT_RUN: {page} has no block with {text!r}")


def help_of(*words):
    """What --help prints."""
    run = subprocess.run([binary(), *words, "--help"], capture_output=True, text=True)
    expect(run.returncode == 0, f"{' '.join(words)} --help: {run.stderr}")
    return run.stdout


def options_exist():
    """Every command has its help, and every option that a page names in its text is in one, or in a benchmark, or is another program's."""
    def commands_in(text):
        return [name for name in re.findall(r"(?m)^  ([a-z]+)  ", text.split("Commands:")[-1].split("Options:")[0]) if name != "help"]

    helps = [help_of()]
    names = commands_in(helps[0])
    expect(len(names) >= 9, f"commands: {names}")
    for name in names:
        helps.append(help_of(name))
        if "\nCommands:" in helps[-1]:
            helps += [help_of(name, inner) for inner in commands_in(helps[-1])]
    helps += [script.read_text() for script in (ROOT / "bench").glob("*.py")]
    known = {option for text in helps for option in re.findall(r"--[a-z][a-z0-9-]+", text)} | OTHERS
    for page in PAGES:
        for option in sorted(set(re.findall(r"`[^`\n]*?(--[a-z][a-z0-9-]+)", (ROOT / page).read_text()))):
            expect({option, option.replace("--skip-", "--")} & known, f"{page}: no program has {option}")


def run_page(page, words=None):
    """Runs a page's blocks in a directory of its own; the numbers of those that were run and of those that are listed."""
    ran = listed = 0
    with Scratch("pg-") as scratch:
        world = World(pathlib.Path(scratch), page, words)
        try:
            for block in blocks(page):
                if reason(block):
                    listed += 1
                    continue
                expect(block.language in ("sh", "sql", "ini", "console"), f"{block} is neither run nor listed:\n{block.text}")
                world.block(block)
                ran += 1
        finally:
            world.end()
    return ran, listed
