#!/usr/bin/python3
"""What a commit costs as work grows, beside other servers (bench/other_servers.py): commits a second, and the latency that 99 of 100 have, over
the number of rows, bytes of a row, tables, indexes and connections, and over an hour of writing. Writes one page of plots.

Each commit changes one row by its key, its indexed columns and its value (bench/scale.lua); every commit is synced, everywhere. Along each
line all but one thing is as in BASE. The servers take turns at each point, several rounds; medians are drawn. A point that a server
does not finish has no mark, and the table below the plots says why.

Usage: scale.py [--seconds 5] [--rounds 3] [--lines rows,bytes,tables,indexes,connections,time] [--largest N] [--minutes 60]
                [--peers newer-mariadb] [--output PAGE]
"""

import argparse
import dataclasses
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "lib")]
import other_servers  # noqa: E402
from compare import MARIADB, MYSQL, OMNIBUS, build, len_cores, machine  # noqa: E402
from omnibus import Omnibus, connect  # noqa: E402

MANY = ["--max-connections=11000", "--max-allowed-packet=64M"]
COLOURS = ("#0b6e4f", "#b5532a", "#3b5ba5", "#8a3b8f")


@dataclasses.dataclass(frozen=True)
class Work:
    rows: int = 10_000
    bytes: int = 100
    tables: int = 1
    indexes: int = 1
    connections: int = 32

    def options(self):
        return [f"--rows={self.rows}", f"--bytes={self.bytes}", f"--tables={self.tables}", f"--indexes={self.indexes}", f"--threads={self.connections}"]


BASE = Work()
LINES = {
    "rows": ("rows of the table", (1_000, 10_000, 100_000, 1_000_000, 10_000_000)),
    "bytes": ("bytes of a row's value", (100, 1_000, 10_000, 100_000, 1_000_000)),
    "tables": ("tables", (1, 10, 100, 1_000)),
    "indexes": ("indexes", (1, 2, 4, 8)),
    "connections": ("connections", (1, 10, 100, 1_000, 10_000)),
}


class Server:
    """One of the servers, with the tables that it has at the moment."""

    def __init__(self, name, directory):
        self.name, self.has, home = name, None, directory / name
        home.mkdir()
        if name == "omnibus":
            self.server = Omnibus(home, *OMNIBUS, *MANY)
            self.server.start()
        else:
            self.server = other_servers.start(name, home, *(MYSQL if name == "mysql" else MARIADB), *MANY)
        self.cursor = connect(self.server, autocommit=True).cursor()

    def title(self):
        return "Omnibus" if self.name == "omnibus" else other_servers.version(self.name)

    def prepare(self, work):
        """Tables of that many rows. Their rows are doubled until there are enough."""
        shape = (work.rows, work.bytes, work.tables, work.indexes)
        if self.has == shape:
            return
        self.has = None
        columns = [f"k{n}" for n in range(1, work.indexes + 1)]
        kind = "LONGBLOB" if work.bytes > 60_000 else f"VARBINARY({work.bytes})"
        for sql in ("DROP DATABASE IF EXISTS sbtest", "CREATE DATABASE sbtest", "USE sbtest"):
            self.cursor.execute(sql)
        for number in range(1, work.tables + 1):
            name, there = f"s{number}", 1
            self.cursor.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, {', '.join(f'{c} INT NOT NULL, KEY ({c})' for c in columns)}, v {kind})")
            self.cursor.execute(f"INSERT INTO {name} VALUES (1, {'1, ' * work.indexes} REPEAT('x', {work.bytes}))")
            while there < work.rows:
                # A transaction of bounded size: the others log it as one piece.
                more = min(there, work.rows - there, max(1, 50_000_000 // work.bytes), 500_000)
                keys = "".join(f"(id + {there}) * 7919 % {1_000_000 + n}, " for n, _ in enumerate(columns))
                self.cursor.execute(f"INSERT INTO {name} SELECT id + {there}, {keys} v FROM {name} WHERE id <= {more}")
                there += more
        self.has = shape

    def run(self, work, seconds, *more):
        done = subprocess.run(
            ["sysbench", ROOT / "bench/scale.lua", f"--mysql-socket={self.server.socket}", "--mysql-user=root", "--mysql-db=sbtest", "--percentile=99",
             "--db-ps-mode=disable", "--mysql-ignore-errors=1213,1205,1020", f"--time={seconds}", *work.options(), *more, "run"],
            capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError((done.stdout + done.stderr).strip().splitlines()[-1])
        return done.stdout

    def measure(self, work, seconds):
        """Commits a second and the latency in milliseconds."""
        said = self.run(work, seconds)
        return float(re.search(r"transactions:\s+\d+\s+\(([\d.]+) per sec", said)[1]), float(re.search(r"99th percentile:\s+([\d.]+)", said)[1])


def along(servers, line, args, notes):
    """By server: the points (x, commits a second, milliseconds) of one line."""
    points = {server.name: [] for server in servers}
    for x in LINES[line][1]:
        work = dataclasses.replace(BASE, **{line: x})
        if args.largest and work.rows * work.bytes * work.tables > args.largest:
            notes.append(f"{line} = {x:,}: more than `--largest` bytes, left out.")
            continue
        if line == "bytes":
            work = dataclasses.replace(work, rows=max(100, min(BASE.rows, 400_000_000 // x)))
        samples = {server.name: [] for server in servers}
        for turn in range(args.rounds):
            for server in servers if turn % 2 == 0 else reversed(servers):
                try:
                    server.prepare(work)
                    samples[server.name].append(server.measure(work, args.seconds))
                except Exception as error:  # noqa: BLE001: whatever it is, the plot goes on without this point.
                    notes.append(f"{line} = {x:,}, {server.title()}: {error}")
        for name, found in samples.items():
            if found:
                points[name].append((x, *(statistics.median(one[at] for one in found) for at in (0, 1))))
        told = "; ".join(f"{name} {p[-1][1]:,.0f} / s, {p[-1][2]:.1f} ms" for name, p in points.items() if p and p[-1][0] == x)
        print(f"{line} {x:,}: {told}", flush=True)
    return points


def over_time(servers, args):
    """By server: the points (minute, commits a second, milliseconds) of writing for long, one server after the other."""
    work, points = dataclasses.replace(BASE, rows=1_000_000), {}
    for server in servers:
        server.prepare(work)
        said = server.run(work, int(args.minutes * 60), "--report-interval=10")
        found = re.findall(r"\[ (\d+)s \].*?tps: ([\d.]+).*?lat \(ms,99%\): ([\d.]+)", said)
        points[server.name] = [(int(at) / 60, float(tps), float(ms)) for at, tps, ms in found]
        space = sum(path.stat().st_blocks * 512 for path in server.server.datadir.rglob("*") if path.is_file() and "bin" not in path.name)
        print(f"time, {server.name}: {len(found)} samples, {space / 1e6:,.0f} MB without logs afterwards", flush=True)
    return points


def nice(value):
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def plot(points, servers, at, x_title, y_title, logarithmic):
    """An SVG of one value over x, a line for each server; x is logarithmic along growing work, y where values differ by more than a hundred times."""
    width, height, left, bottom, top, right = 460, 280, 70, 42, 30, 12
    every = [point for line in points.values() for point in line]
    if not every:
        return ""
    xs, ys = sorted({point[0] for point in every}), [point[at] for point in every]
    high_y = max(ys) * 1.05
    steep = min(ys) > 0 and max(ys) / min(ys) > 100
    low_y = min(ys) * 0.9 if steep else 0
    scale = math.log10 if steep else (lambda value: value)
    place_x = (lambda x: math.log10(x)) if logarithmic else (lambda x: x)
    span_x = (place_x(xs[-1]) - place_x(xs[0])) or 1
    span_y = (scale(high_y) - (scale(low_y) if steep else low_y)) or 1
    to_x = lambda x: left + (place_x(x) - place_x(xs[0])) / span_x * (width - left - right)  # noqa: E731
    to_y = lambda y: height - bottom - (scale(max(y, low_y)) - (scale(low_y) if steep else low_y)) / span_y * (height - bottom - top)  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{left}" y="16" font-weight="bold">{y_title}</text>']
    for n in range(5):
        value = 10 ** (math.log10(low_y) + n / 4 * span_y) if steep else high_y * n / 4
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{to_y(value):.1f}" y2="{to_y(value):.1f}" stroke="#ddd"/>'
                   f'<text x="{left - 6}" y="{to_y(value) + 4:.1f}" text-anchor="end">{nice(value)}</text>')
    marks = xs if logarithmic else [xs[-1] * n / 4 for n in range(5)]
    out += [f'<text x="{to_x(x) if logarithmic else left + n / 4 * (width - left - right):.1f}" y="{height - bottom + 16}" text-anchor="middle">{nice(x)}</text>' for n, x in enumerate(marks)]
    out.append(f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle">{x_title}</text>')
    for number, server in enumerate(servers):
        line, colour = points.get(server.name, []), COLOURS[number % len(COLOURS)]
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{" ".join(f"{to_x(p[0]):.1f},{to_y(p[at]):.1f}" for p in line)}"/>')
        if logarithmic:
            out += [f'<circle cx="{to_x(p[0]):.1f}" cy="{to_y(p[at]):.1f}" r="3" fill="{colour}"/>' for p in line]
        out.append(f'<text x="{width - right}" y="{top + 2 + 14 * number}" text-anchor="end" fill="{colour}">{server.title()}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


def write(page, servers, results, notes, args):
    """The page, and its plots in a folder of its name beside it."""
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    lines = ["# As work grows", "", f"Made by `make bench-scale`: {build()}, beside {', '.join(server.title() for server in servers[1:])}; {args.rounds} rounds of {args.seconds} s in alternation, "
             f"medians; every commit is synced; clients on the same {len_cores()} cores ({machine()}). A commit changes one row by its key; where the axis does not say otherwise: "
             f"{BASE.connections} connections, {BASE.tables} table of {BASE.rows:,} rows of {BASE.bytes} bytes and {BASE.indexes} index.", ""]
    for line, points in results.items():
        title = LINES[line][0] if line in LINES else "minutes of writing"
        lines += [f"## By {title}", ""]
        for at, name, y_title in ((1, "commits", "commits per second"), (2, "latency", "99 of 100 commits take less than, ms")):
            (folder / f"{line}-{name}.svg").write_text(plot(points, servers, at, title, y_title, line in LINES))
            lines.append(f"![{y_title} by {title}]({folder.name}/{line}-{name}.svg)")
        if line in LINES:
            lines += ["", f"| {title} | " + " | ".join(f"{server.title()}: commits/s, ms" for server in servers) + " |", "| --- |" + " --- |" * len(servers)]
            for x in LINES[line][1]:
                found = {name: next((p for p in all_points if p[0] == x), None) for name, all_points in points.items()}
                lines.append(f"| {x:,} | " + " | ".join(f"{found[s.name][1]:,.0f}, {found[s.name][2]:.1f}" if found.get(s.name) else "" for s in servers) + " |")
        lines.append("")
    if notes:
        lines += ["## Left out", "", *(f"- {note}" for note in notes), ""]
    page.write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", default=",".join([*LINES, "time"]))
    parser.add_argument("--largest", type=int, help="bytes of rows that a point may have, for a small disk")
    parser.add_argument("--minutes", type=float, default=60, help="of the line `time`, for each server")
    parser.add_argument("--peers", default="newer-mariadb", help="servers to compare with, as far as they are there")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs" / "use" / "scale.md")
    args = parser.parse_args()
    directory, servers, results, notes = pathlib.Path(tempfile.mkdtemp(prefix="omnibus-scale-")), [], {}, []
    os.chmod(directory, 0o755)
    try:
        for name in ("omnibus", *filter(other_servers.is_there, filter(None, args.peers.split(",")))):
            servers.append(Server(name, directory))
        for line in args.lines.split(","):
            results[line] = over_time(servers, args) if line == "time" else along(servers, line, args, notes)
            # Each line by itself, so that a run which is stopped leaves what it has.
            write(args.output, servers, results, notes, args)
    finally:
        for server in servers:
            server.server.stop()
        other_servers.unmount(directory)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
