#!/usr/bin/python3
"""--http-address: /metrics is SHOW GLOBAL STATUS in Prometheus's format, /healthz, and the page with its plots in headless Chromium,
on a desk and on a phone. KEEP_SCREENSHOTS=dir keeps what it looked like.

Ring: all.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, client, expect, free_port, wait_for  # noqa: E402

METRIC = re.compile(r'([a-z][a-z0-9_]*)(\{([a-z_]+)="((?:[^"\\\n]|\\.)*)"\})? (-?[0-9.e+-]+|\+Inf)')


def get(port, path, method="GET", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, answer.getheader("content-type"), body


def metrics(port):
    """Samples by name and label, and kinds by name; whatever breaks the format fails."""
    status, kind, body = get(port, "/metrics")
    expect(status == 200 and kind.startswith("text/plain; version=0.0.4"), f"{status} {kind}")
    samples, kinds = {}, {}
    for line in body.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            expect(name not in kinds, f"{name} is declared twice")
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            match = METRIC.fullmatch(line)
            expect(match, f"no metric: {line}")
            key = (match[1], match[4])
            expect(key not in samples, f"{key} comes twice")
            samples[key] = float(match[5])
    return samples, kinds


def numbers(server, port):
    """What Prometheus reads is what SHOW GLOBAL STATUS says."""
    for n in range(50):
        client(server, f"INSERT INTO d.t VALUES ({n}, 0)") if n % 10 == 0 else None
    before = dict(line.split("\t") for line in client(server, "SHOW GLOBAL STATUS").splitlines())
    samples, kinds = metrics(port)
    expect(kinds["omnibus_binlog_commits_total"] == "counter" and kinds["omnibus_threads_running"] == "gauge", "kinds")
    for name in ("Binlog_commits", "Binlog_group_commits", "Binlog_syncs", "Binlog_bytes_written", "Innodb_deadlocks"):
        got = samples[(f"omnibus_{name.lower()}_total", None)]
        expect(got == float(before[name]), f"{name}: {got} and {before[name]}")
    expect(samples[("omnibus_commands_total", "insert")] == float(before["Com_insert"]), "Com_insert")
    for name in ("disk_free", "disk_size", "binlog_files", "memory_limit"):
        expect(samples[(f"omnibus_{name}_bytes", None)] > 0 and kinds[f"omnibus_{name}_bytes"] == "gauge", f"{name} is {samples[(f'omnibus_{name}_bytes', None)]}")
    statements = samples[("omnibus_statement_seconds_count", None)]
    expect(statements > 0 and samples[("omnibus_statement_seconds_sum", None)] > 0 and kinds["omnibus_statement_seconds"] == "histogram", f"{statements} statements")
    for stage in ("queue", "flush", "sync", "commit"):
        name = f"omnibus_binlog_group_commit_{stage}_seconds"
        expect(kinds[name] == "histogram", f"{name}: {kinds[name]}")
        bounds = [(label, value) for (metric, label), value in samples.items() if metric == name + "_bucket"]
        counts = [value for _, value in bounds]
        expect(counts == sorted(counts) and bounds[-1][0] == "+Inf", f"{name} is cumulative")
        expect(counts[-1] == samples[(name + "_count", None)] > 0, f"{name}_count")
        total = sum(int(v) for k, v in before.items() if k.startswith(f"Binlog_group_commit_{stage}_us_le_"))
        expect(counts[-1] == total, f"{name}: {counts[-1]} and {total}")
        expect(0 < samples[(name + "_sum", None)] < 60, f"{name}_sum")


def dashboard(port):
    """Every figure that the dashboard for Grafana plots is there; lag needs a channel."""
    root = pathlib.Path(__file__).resolve().parents[3]
    panels = json.loads((root / "packaging/grafana-dashboard.json").read_text())["panels"]
    wanted = {name for panel in panels for target in panel["targets"] for name in re.findall("omnibus_[a-z_]+", target["expr"])}
    there = {name for name, _ in metrics(port)[0]} | {"omnibus_replica_lag_seconds"}
    expect(len(wanted) > 15 and wanted <= there, f"not in /metrics: {wanted - there}")
    # What the server's own page plots or lists beside its plots is plotted there, too.
    titles = {panel["title"] for panel in panels}
    missing = {"Statement latency", "Reads and errors per second", "Disk", "Hours until the disk is full", "Memory of connections"} - titles
    expect(not missing, f"no panel for {missing}")


def manners(server, port):
    """What it refuses: other methods, other paths, names by which a foreign page would come."""
    expect(get(port, "/healthz") == (200, "text/plain; charset=utf-8", "ok\n"), "/healthz")
    for name, wanted in (("read_only", "ON"), ("super_read_only", "ON")):
        expect(get(port, "/healthz/writer") == (200, "text/plain; charset=utf-8", "ok\n"), f"/healthz/writer before {name}")
        client(server, f"SET GLOBAL {name} = {wanted}")
        expect(get(port, "/healthz/writer")[::2] == (503, "read only\n") and get(port, "/healthz")[0] == 200, f"/healthz/writer with {name}")
        client(server, "SET GLOBAL read_only = OFF")
    expect(get(port, "/nothing")[0] == 404 and get(port, "/metrics", "POST")[0] == 405, "paths and methods")
    for path in ("/", "/metrics", "/api/state"):
        expect(get(port, path, Host="evil.example")[0] == 403, f"{path} under a foreign name")
    expect(get(port, "/healthz", "HEAD")[0] == 200, "HEAD")
    listening = subprocess.run(["ss", "-ltn"], capture_output=True, text=True).stdout
    expect(f"127.0.0.1:{port}" in listening and f"0.0.0.0:{port}" not in listening, f"a port alone is local: {listening}")
    # Clients that say nothing take no place from those who do.
    silent = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(20)]
    for one in silent:
        one.connect()
    expect(get(port, "/healthz")[0] == 200, "beside silent clients")
    for one in silent:
        one.close()
    # Nor do hundreds that begin a request and never end it.
    halves = []
    for _ in range(200):
        half = socket.create_connection(("127.0.0.1", port))
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ")
        halves.append(half)
    begun = time.monotonic()
    expect(get(port, "/healthz")[0] == 200, "beside half requests")
    expect(time.monotonic() - begun < 5, f"beside half requests an answer took {time.monotonic() - begun:.1f} s")
    for half in halves:
        half.close()


def state(server, port):
    """Who waits for whom, without the statements' values."""
    a, b = Session(server), Session(server)
    a.run("BEGIN", "UPDATE d.t SET v = 1 WHERE id = 0")
    waiter = threading.Thread(target=lambda: b.run("UPDATE d.t SET v = 4711 WHERE id = 0"))
    waiter.start()
    found = wait_for(lambda: json.loads(get(port, "/api/state")[2])["waits"], "a lock wait")
    now = json.loads(get(port, "/api/state")[2])
    mine, theirs = a.db.thread_id(), b.db.thread_id()
    open_ = {t["id"]: (t["state"], t["changed"], t["statement"]) for t in now["transactions"]}
    expect(open_ == {mine: ("idle", 1, ""), theirs: ("waits for a lock", 0, "UPDATE d.t SET")}, open_)
    expect([(r["id"], r["statement"]) for r in now["running"]] == [(theirs, "UPDATE d.t SET")], now["running"])
    top = {t["text"]: t for t in now["top"]}
    expect(top["INSERT INTO `d` . `t` VALUES (...)"]["count"] >= 5, top)
    times = [t["us"] for t in now["top"]]
    expect(times == sorted(times, reverse=True) and len(times) <= 10 and all(t["mean_us"] <= t["us"] for t in now["top"]), now["top"])
    room = now["room"]
    expect(0 < room["free"] < room["size"] and room["log"] > 0 and 0 < room["memory"] < room["memory_limit"], room)
    expect("4711" not in json.dumps(now), "values of a statement")
    a.run("COMMIT")
    waiter.join()
    wait = found[0]
    expect(wait["table"] == "d.t" and wait["waiter"]["statement"] == "UPDATE d.t SET" and len(wait["blockers"]) == 1, wait)
    expect("4711" not in json.dumps(found), "values of a statement")
    samples = wait_for(lambda: (s := json.loads(get(port, "/api/state")[2])["samples"]) and len(s) > 2 and s, "samples")
    later = json.loads(get(port, f"/api/state?since={samples[-1][0]}")[2])["samples"]
    expect(all(sample[0] > samples[-1][0] for sample in later), "only what is new")
    a.close()
    b.close()


def recovery(server, port):
    """While a server replays its log the address answers already: it is not well yet, and says how far it is."""
    session = Session(server)
    session.run("CREATE TABLE d.many (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
    for _ in range(100):
        session.run("INSERT INTO d.many (v) VALUES " + ",".join(["(1)"] * 2000))
    server.kill()
    seen = []
    done = threading.Event()

    def look():
        while not done.is_set():
            try:
                health = get(port, "/healthz")
                state = json.loads(get(port, "/api/state")[2])
                samples = metrics(port)[0]
            except (OSError, http.client.HTTPException):
                continue
            if health == (503, "text/plain; charset=utf-8", "starting\n") and "starting" in state:
                seen.append((state["starting"], samples))
    looker = threading.Thread(target=look)
    looker.start()
    server.start()
    done.set()
    looker.join()
    expect(get(port, "/healthz")[0] == 200, "it is well when it is there")
    within = [one for one, _ in seen if 0 < one["read"] < one["total"] and one["replayed"] > 0]
    expect(within, f"how far recovery was: {[one for one, _ in seen]}")
    expect(any(("omnibus_recovery_read_bytes", None) in samples for _, samples in seen), "and to Prometheus")
    expect(client(server, "SELECT COUNT(*) FROM d.many").strip() == "200000", "and all is there")


def page(server, port, directory):
    """Drawn by a browser from what the server says: every card has its plot, nothing is said to be wrong, none is wider than a phone."""
    browser = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    expect(browser, "no Chromium; see scripts/install-test-tools")
    html = get(port, "/")[2]
    expect(not re.search(r"https?://(?!www\.w3\.org/2000/svg)|src=|@import", html), "nothing from elsewhere")
    stop = threading.Event()

    def load():
        session = Session(server)
        n = 1000
        while not stop.is_set():
            session.run(f"INSERT INTO d.t VALUES ({n}, 0)")
            n += 1
    # A transaction that is open and reads a snapshot, and two statements that wait for its row.
    holder, waiters = Session(server), [Session(server, database="d") for _ in range(2)]
    holder.run("START TRANSACTION WITH CONSISTENT SNAPSHOT", "UPDATE d.t SET v = 1 WHERE id = 0")
    waiting = [threading.Thread(target=waiter.run, args=(f"UPDATE t SET v = v + 1 WHERE id = 0 AND v > {n}",)) for n, waiter in enumerate(waiters)]
    loader = threading.Thread(target=load)
    for thread in (*waiting, loader):
        thread.start()
    try:
        common = [browser, "--no-sandbox", "--disable-gpu", f"--user-data-dir={directory}/browser", "--virtual-time-budget=6000"]
        for name, size in (("desk", "1280,2400"), ("phone", "390,6200")):
            shot = pathlib.Path(os.environ.get("KEEP_SCREENSHOTS", directory)) / f"page-{name}.png"
            run = subprocess.run([*common, f"--window-size={size}", f"--screenshot={shot}", f"http://127.0.0.1:{port}/"],
                                 capture_output=True, text=True, timeout=120)
            expect(run.returncode == 0 and shot.stat().st_size > 10_000, f"{name}: {run.stderr[-2000:]}")
            expect("Uncaught" not in run.stderr, run.stderr[-2000:])
        run = subprocess.run([*common, "--window-size=390,800", "--dump-dom", f"http://127.0.0.1:{port}/"],
                             capture_output=True, text=True, timeout=120)
    finally:
        stop.set()
        holder.run("COMMIT")
        for thread in (*waiting, loader):
            thread.join()
    dom = re.sub("(?s)<script>.*</script>", "", run.stdout)
    expect(">live<" in dom, f"it is not connected: {dom[:800]} {run.stderr[-800:]}")
    lines, areas = len(re.findall("<polyline ", dom)), len(re.findall("<polygon ", dom))
    expect(lines >= 15 and areas == 8, f"{lines} lines and {areas} areas")
    minutes = re.findall(r'class="minute"[^>]*>(\d\d:\d\d)<', dom)
    expect(len(minutes) >= 15, f"times of the axis: {minutes}")
    expect(all(f">{title}</h2>" in dom for title in ("Oldest open transactions", "Running statements", "Room")), "cards")
    kept = rf"Connection {holder.db.thread_id()} keeps the versions of [0-9.]+ ?[kM]? transactions, at most [0-9.]+ [KMG]?i?B"
    told = re.findall("keeps the versions[^<]*", dom)
    expect(re.search(kept, dom), f"who keeps old versions, and how much: {told}")
    expect(re.search(r'data-head="held by"[^>]*>[0-9]+ root', dom), "who is in the way")
    expect(re.search(r'data-head="now"[^>]*>[0-9.]+ [KMGT]iB free of', dom), "the room that is left, each value with its name on a phone")
    expect("NaN" not in dom and "undefined" not in dom and "Infinity" not in dom, "numbers")
    commits = re.search(r"Commits per second</h2><div class=\"keys\"><span><i [^>]*></i>commits ([0-9.]+)", dom)
    expect(commits and float(commits[1]) > 0, f"commits while something commits: {commits and commits[0]}")


def main():
    with Scratch("omnibus-http-") as directory:
        port = free_port()
        server = Omnibus(directory, f"--http-address={port}")
        server.start()
        client(server, "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
        numbers(server, port)
        dashboard(port)
        manners(server, port)
        state(server, port)
        page(server, port, directory)
        recovery(server, port)
        server.stop()
        taken = Omnibus(pathlib.Path(directory) / "taken", "--http-address=no.such.host.invalid:1")
        taken.directory.mkdir()
        try:
            taken.start()
            expect(False, "an address that can't be")
        except RuntimeError as error:
            expect("http_address" in str(error), error)
    print("http: ok")


if __name__ == "__main__":
    main()
