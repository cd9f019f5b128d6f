#!/usr/bin/python3
"""`omnibus stream` into a real Kafka broker and a real NATS server, through kills of all three parts.

What arrives is put together again as a reader would do it: by the headers, without what comes twice; then the tables of the messages
are the server's tables. Order is looked at by itself: the first time that each transaction is seen, they come in commit order.

Ring: all.
"""

import base64
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import Omnibus, Scratch, Session, binary, client, connect, expect, wait_for  # noqa: E402
from stores import Kafka, Nats, certificates, nats_operator  # noqa: E402


class Stream:
    def __init__(self, server, url, *options):
        self.server, self.url, self.process = server, url, None
        self.log = server.directory / "stream.log"
        self.command = [binary(), "stream", "--to", url, "--socket", server.socket, "-u", "root", "--json", *options]

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=open(self.log, "ab"), stderr=subprocess.STDOUT)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lines(self, kind):
        text = self.log.read_text() if self.log.exists() else ""
        return [json.loads(line) for line in text.splitlines() if line.startswith('{"type":"' + kind)]

    def begins(self, count=1):
        wait_for(lambda: len(self.lines("begins")) >= count or self.process.poll() is not None, lambda: "it does not begin: " + self.log.read_text())
        expect(self.process.poll() is None, "it ended: " + self.log.read_text())

    def catch_up(self):
        # A new file may have no transaction yet.
        client(self.server, f"INSERT INTO s.u VALUES (-{time.monotonic_ns() % 1_000_000_000}, 'the end')")
        file, position = client(self.server, "SHOW BINARY LOG STATUS").split("\t")[:2]

        def there():
            expect(self.process.poll() is None, f"the stream ended: {self.log.read_text()[-2000:]}")
            return any(line.get("file") == file and line["position"] >= int(position) for line in self.lines("sent")[-3:])
        wait_for(there, lambda: f"it does not get on to {file}:{position}: {self.log.read_text()[-1500:]}", every=0.1)


class Load(threading.Thread):
    """Transactions of several tables: inserts, updates, deletions, changed keys."""

    def __init__(self, server, number):
        super().__init__()
        self.server, self.number, self.stop, self.n = server, number, threading.Event(), 0

    def run(self):
        db = connect(self.server, autocommit=False)
        with db.cursor() as cursor:
            while not self.stop.is_set():
                self.n += 1
                key = self.number * 1_000_000 + self.n
                cursor.execute("INSERT INTO s.t VALUES (%s, %s, 1)", (key, f"text {self.n} é"))
                cursor.execute("INSERT INTO s.u VALUES (%s, %s)", (key, "x" * (self.n % 700)))
                if self.n % 3 == 0:
                    cursor.execute("UPDATE s.t SET n = n + 1 WHERE id = %s", (key - 1,))
                if self.n % 5 == 0:
                    cursor.execute("DELETE FROM s.u WHERE id = %s", (key - 2,))
                if self.n % 7 == 0:
                    cursor.execute("UPDATE s.t SET id = id + 500000 WHERE id = %s", (key - 3,))
                db.commit()
                time.sleep(0.003)


def under_load(server, seconds):
    load = [Load(server, 1 + number + int(time.monotonic() * 10) % 1000 * 3) for number in range(3)]
    for thread in load:
        thread.start()
    time.sleep(seconds)
    return load


def ends(load):
    for thread in load:
        thread.stop.set()
    for thread in load:
        thread.join()


def begin(directory, *options):
    server = Omnibus(directory, "--binlog-row-metadata=FULL", "--max-binlog-size=256K", *options)
    server.start()
    client(server, "CREATE DATABASE s; CREATE TABLE s.t (id BIGINT PRIMARY KEY, name VARCHAR(50), n INT); "
                   "CREATE TABLE s.u (id BIGINT PRIMARY KEY, text TEXT)")
    return server


def kills(server, stream, broker):
    """Each of the three dies under load, and then all of them at once."""
    stream.start()
    stream.begins()
    for victim in (stream, broker, server, None):
        load = under_load(server, 1)
        if victim is server or victim is None:
            for thread in load:
                thread.stop.set()
            ends(load)
        for one in ([victim] if victim else [server, stream, broker]):
            one.kill()
        time.sleep(0.5)
        for one in ([victim] if victim else [server, broker, stream]):
            one.start()
        ends(load)
    stream.catch_up()


def whole(messages):
    """Transactions in the order in which they were first seen, without what came twice; each must be whole."""
    found, order = {}, []
    for message in messages:
        name = message["headers"]["transaction"]
        if name not in found:
            found[name] = {"parts": {}, "count": None}
            order.append(name)
        trx, number = found[name], int(message["headers"]["number"])
        if number in trx["parts"]:
            expect(trx["parts"][number]["value"] == message["value"], f"{name} comes twice and differs")
        trx["parts"][number] = message
        if "count" in message["headers"]:
            trx["count"] = int(message["headers"]["count"])
    return order, found


def in_order(server, order, some=False):
    """They are the log's, in its order."""
    out = subprocess.run([binary(), "binlog", "--json", *server.binlogs()], capture_output=True, text=True).stdout
    logged = [line["gtid"] for line in map(json.loads, out.splitlines()) if line["type"] == "begin" and line["gtid"]]
    expect(order == logged[-len(order):] and order, f"{len(order)} transactions of {len(logged)} in another order")


def tables(rows):
    """What is left of the rows' changes."""
    state = {"t": {}, "u": {}}
    for table, before, after in rows:
        if before is not None:
            expect(state[table].pop(before["id"], None) == before, f"{before} was not there")
        if after is not None:
            expect(after["id"] not in state[table], f"{after} is there twice")
            state[table][after["id"]] = after
    return state


def are_the_servers(server, state):
    session = Session(server)
    for table, columns in (("t", ("id", "name", "n")), ("u", ("id", "text"))):
        rows = {row[0]: dict(zip(columns, row)) for row in session(f"SELECT * FROM s.{table}")}
        expect(rows == state[table], f"{table}: {len(rows)} rows, and {len(state[table])} by the messages")


def json_lines(server, messages):
    order, found = whole(messages)
    in_order(server, order)
    rows = []
    for name in order:
        parts = found[name]["parts"]
        expect(sorted(parts) == list(range(found[name]["count"] or -1)), f"{name} is not whole: {sorted(parts)}, {found[name]['count']}")
        lines = [json.loads(parts[number]["value"]) for number in sorted(parts)]
        expect((lines[0]["type"], lines[-1]["type"]) == ("begin", "commit") and lines[0]["gtid"] == name, f"{name}: {lines}")
        for line in lines:
            if line["type"] == "rows" and line["table"] in ("t", "u"):
                rows += [(line["table"], row.get("before"), row.get("after")) for row in line["rows"]]
    are_the_servers(server, tables(rows))


def envelopes(server, topics, name):
    """The state of each table's topic, and what the transactions' topic says of them."""
    marks, order, counts = {}, [], {}
    for message in topics[f"{name}.transaction"]:
        payload = json.loads(message["value"])["payload"]
        if payload["id"] not in marks:
            order.append(payload["id"])
        marks.setdefault(payload["id"], set()).add(payload["status"])
        if payload["status"] == "END":
            counts[payload["id"]] = payload
    in_order(server, order)
    expect(all(statuses == {"BEGIN", "END"} for statuses in marks.values()), "a transaction without its end")
    state, of_trx = {}, {}
    for table in ("t", "u"):
        rows, seen = [], set()
        for message in topics[f"{name}.s.{table}"]:
            mark = (message["headers"]["transaction"], int(message["headers"]["number"]))
            if mark in seen or message["value"] is None:
                continue
            seen.add(mark)
            value = json.loads(message["value"])
            payload, key = value["payload"], json.loads(message["key"])["payload"]
            fields = {field["field"]: field for field in value["schema"]["fields"]}
            image = payload["after"] or payload["before"]
            expect({field["field"] for field in fields["after"]["fields"]} == set(image), f"the schema is another row's: {value}")
            expect(key == {"id": image["id"]}, f"the key of {payload} is {key}")
            expect({"c": (False, True), "u": (True, True), "d": (True, False)}[payload["op"]] ==
                   (payload["before"] is not None, payload["after"] is not None), f"{payload}")
            expect(payload["transaction"]["id"] == mark[0] == payload["source"]["gtid"], f"{payload}")
            rows.append((table, payload["before"], payload["after"]))
            of_trx[mark[0]] = of_trx.get(mark[0], 0) + 1
        state[table] = tables(rows)[table]
    for trx, end in counts.items():
        told = sum(part["event_count"] for part in end["data_collections"])
        expect(end["event_count"] == told == of_trx.get(trx, 0) or not of_trx.get(trx), f"{trx}: {end}, {of_trx.get(trx)} messages")
    are_the_servers(server, state)


def in_both_forms(directory, broker, to, *options):
    """Streams to a broker while all three parts are killed, once in each form of messages."""
    for form in ("json", "debezium"):
        folder = directory / form
        folder.mkdir()
        server = begin(folder)
        stream = Stream(server, f"{to}/{form}", "--format", form, *options)
        kills(server, stream, broker)
        stream.kill()
        topics = broker.read(form)
        if form == "json":
            json_lines(server, topics["json"])
        else:
            envelopes(server, topics, "debezium")
        server.stop()


def kafka(directory):
    broker = Kafka(directory / "kafka")
    broker.start()
    in_both_forms(directory, broker, f"kafka://127.0.0.1:{broker.port}", "--from", "newest")
    broker.kill()


def nats(directory):
    broker = Nats(directory / "nats")
    broker.start()
    in_both_forms(directory, broker, f"nats://127.0.0.1:{broker.port}")
    types(directory, broker)
    ends_of_streams(directory, broker)
    broker.kill()


TYPES = {
    # Column, value, what the message has, the type of its schema, and its meaning.
    "TINYINT": ("-5", -5, "int16", None),
    "SMALLINT UNSIGNED": ("65535", 65535, "int32", None),
    "MEDIUMINT": ("-8388608", -8388608, "int32", None),
    "INT UNSIGNED": ("4294967295", 4294967295, "int64", None),
    "BIGINT": ("-9223372036854775808", -9223372036854775808, "int64", None),
    "FLOAT": ("1.5", 1.5, "float", None),
    "DOUBLE": ("-2.25", -2.25, "double", None),
    "DECIMAL(20,5)": ("123456789012.34567", "123456789012.34567", "string", None),
    "YEAR": ("2026", 2026, "int32", "io.debezium.time.Year"),
    "DATE": ("'1970-01-11'", 10, "int32", "io.debezium.time.Date"),
    "TIME(3)": ("'-00:00:01.5'", -1500000, "int64", "io.debezium.time.MicroTime"),
    "DATETIME": ("'1970-01-01 00:00:01'", 1000, "int64", "io.debezium.time.Timestamp"),
    "DATETIME(6)": ("'1970-01-01 00:00:01.000007'", 1000007, "int64", "io.debezium.time.MicroTimestamp"),
    "TIMESTAMP(3)": ("'2026-01-02 03:04:05.678'", "2026-01-02T03:04:05.678Z", "string", "io.debezium.time.ZonedTimestamp"),
    "CHAR(5) CHARACTER SET latin1": ("'é'", "é", "string", None),
    "VARCHAR(20)": ("'a\"b'", 'a"b', "string", None),
    "TEXT": ("'long'", "long", "string", None),
    "VARBINARY(10)": ("x'00ff'", base64.b64encode(b"\0\xff").decode(), "bytes", None),
    "BLOB": ("x'0102'", "AQI=", "bytes", None),
    "BIT(1)": ("b'1'", True, "boolean", None),
    "BIT(12)": ("b'100000000001'", base64.b64encode(b"\x01\x08").decode(), "bytes", "io.debezium.data.Bits"),
    "ENUM('a','b')": ("'b'", "b", "string", "io.debezium.data.Enum"),
    "SET('a','b','c')": ("'a,c'", "a,c", "string", "io.debezium.data.EnumSet"),
    "JSON": ("'{\"k\": [1, null]}'", '{"k": [1, null]}', "string", "io.debezium.data.Json"),
}


def types(directory, broker):
    """Every type's value, schema and NULL; definitions; a table without a key."""
    folder = directory / "types"
    folder.mkdir()
    server = begin(folder)
    stream = Stream(server, f"nats://127.0.0.1:{broker.port}/types", "--format", "debezium")
    stream.start()
    stream.begins()
    columns = ", ".join(f"c{n} {kind} NULL" for n, kind in enumerate(TYPES))
    client(server, f"SET time_zone='+00:00'; CREATE TABLE s.types ({columns}); INSERT INTO s.types VALUES ({', '.join(v[0] for v in TYPES.values())});"
                   "INSERT INTO s.types VALUES (" + ", ".join(["NULL"] * len(TYPES)) + ")")
    stream.catch_up()
    topics = broker.read("types")
    ddl = [json.loads(message["value"])["payload"] for message in topics["types"]]
    expect(any(part["ddl"].startswith("CREATE TABLE s.types") for part in ddl), f"definitions: {ddl}")
    first, second = [json.loads(message["value"]) for message in topics["types.s.types"]]
    after = next(field for field in first["schema"]["fields"] if field["field"] == "after")["fields"]
    for n, (kind, (_, value, base, meaning)) in enumerate(TYPES.items()):
        field = after[n]
        expect((field["type"], field.get("name"), field["optional"]) == (base, meaning, True), f"{kind}: {field}")
        got = first["payload"]["after"][f"c{n}"]
        if kind == "JSON":
            got, value = json.loads(got), json.loads(value)
        expect(got == value, f"{kind}: {got!r}, not {value!r}")
        expect(second["payload"]["after"][f"c{n}"] is None, f"{kind}: NULL is {second['payload']['after']}")
    expect(all("key" not in message["headers"] for message in topics["types.s.types"]), "a table without a key has one")
    # What an envelope cannot say ends it.
    client(server, "SET binlog_format=STATEMENT; INSERT INTO s.u VALUES (1, 'text')")
    wait_for(lambda: stream.process.poll() is not None, "a statement is passed over")
    expect("set binlog_format=ROW" in stream.log.read_text(), stream.log.read_text()[-500:])
    server.stop()


def ends_of_streams(directory, broker):
    """From where it begins, and what it cannot go on with."""
    folder = directory / "ends"
    folder.mkdir()
    server = begin(folder)
    root = Session(server)
    stream = Stream(server, f"nats://127.0.0.1:{broker.port}/ends", "--from", "oldest", "--once")
    run = subprocess.run(stream.command, capture_output=True, text=True)
    expect(run.returncode == 0, run.stderr)
    begun = [json.loads(message["value"]) for message in broker.read("ends")["ends"]]
    expect(any("CREATE DATABASE s" in line.get("sql", "") for line in begun), f"not from the oldest: {begun}")
    root.run("INSERT INTO s.t VALUES (1, 'a', 1)", "FLUSH BINARY LOGS", "INSERT INTO s.t VALUES (2, 'b', 1)")
    run = subprocess.run(stream.command, capture_output=True, text=True)
    later = broker.read("ends")["ends"][len(begun):]
    expect(run.returncode == 0 and sum('"rows"' in message["value"] for message in later) == 2, f"{run.stderr} {later}")
    root.run("FLUSH BINARY LOGS", "INSERT INTO s.t VALUES (3, 'c', 1)", "FLUSH BINARY LOGS")
    root(f"PURGE BINARY LOGS TO '{root('SHOW BINARY LOGS')[-1][0]}'")
    run = subprocess.run(stream.command, capture_output=True, text=True)
    expect(run.returncode == 1 and "--from oldest --anew" in run.stderr, run.stderr)
    run = subprocess.run([*stream.command, "--anew"], capture_output=True, text=True)
    expect(run.returncode == 0, run.stderr)
    other = Omnibus(directory / "other")
    other.directory.mkdir()
    other.start()
    run = subprocess.run([*stream.command[:4], "--socket", other.socket, "-u", "root"], capture_output=True, text=True)
    expect(run.returncode == 1 and "of server" in run.stderr, run.stderr)
    other.stop()
    run = subprocess.run([*stream.command[:3], "kafka://127.0.0.1:1/x", *stream.command[4:]], capture_output=True, text=True)
    expect(run.returncode == 1 and "Kafka" in run.stderr, run.stderr)
    server.stop()


def once(server, url, *options, ok=True, **env):
    run = subprocess.run([binary(), "stream", "--to", url, "--socket", server.socket, "-u", "root", "--json", "--once", "--from", "oldest", *options],
                         capture_output=True, text=True, env=dict(os.environ, **env))
    expect((run.returncode == 0) == ok, f"{url} {options}: {run.returncode} {run.stdout[-500:]}{run.stderr[-500:]}")
    return run.stdout + run.stderr


def logins(directory):
    """TLS with an authority and a certificate of one's own, and accounts, at both kinds of brokers. The source's log is encrypted and compressed."""
    pems = certificates(directory / "pems")
    server = begin(directory, "--binlog-encryption=ON", f"--keyring-file-data={directory / 'keyring'}", "--binlog-transaction-compression=ON")
    client(server, "INSERT INTO s.u VALUES (1, REPEAT('long text ', 300)), (2, REPEAT('long text ', 300))")
    compressed = client(server, "SELECT SUM(TRANSACTION_COUNTER) FROM performance_schema.binary_log_transaction_compression_stats "
                                "WHERE COMPRESSION_TYPE = 'ZSTD'")
    expect(int(compressed) > 0, f"nothing was compressed: {compressed}")
    trust = ["--to-ca", str(pems / "ca.pem")]
    own = [*trust, "--to-cert", str(pems / "client.pem"), "--to-key", str(pems / "client-key.pem")]
    secret = pems / "secret"
    secret.write_text("secret\n")

    tls = ["--tlscert", str(pems / "server.pem"), "--tlskey", str(pems / "server-key.pem"), "--tlsverify", "--tlscacert", str(pems / "ca.pem")]
    settings, credentials = nats_operator(pems / "operator")
    _, strange = nats_operator(pems / "another")
    for name, account, wanted, wrong in (
            ("credentials", ("--config", str(settings)), ("--to-creds", str(credentials)), ("--to-creds", str(strange))),
            ("user", ("--user", "shop", "--pass", "secret"), ("--to-user", "shop", "--to-password-file", str(secret)), ("--to-user", "other")),
            ("token", ("--auth", "secret"), ("--to-token-file", str(secret)), ("--to-user", "shop"))):
        broker = Nats(directory / name, *tls, *account)
        broker.start()
        url = f"tls://127.0.0.1:{broker.port}/{name}"
        expect('"messages"' in once(server, url, *own, *wanted), "nothing was sent")
        expect("authorization" in once(server, url, *own, *wrong, ok=False, OMNIBUS_TO_PASSWORD="secret"), "a stranger was let in")
        broker.kill()

    by_address(directory, server, tls, own)
    broker = Kafka(directory / "kafka", pems)
    broker.start()
    url = f"127.0.0.1:{broker.port}"
    said = once(server, f"kafka+tls://shop:secret@{url}/address", *own)
    expect('"messages"' in said, f"an account in the address: nothing was sent: {said}")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"):
        said = once(server, f"kafka+tls://{url}/{mechanism}", *own, "--to-user", "shop", "--to-mechanism", mechanism, OMNIBUS_TO_PASSWORD="secret")
        expect('"messages"' in said, f"{mechanism}: nothing was sent: {said}")
    said = once(server, f"kafka+tls://{url}/wrong", *own, "--to-user", "shop", ok=False, OMNIBUS_TO_PASSWORD="guess")
    expect("SaslAuthenticationFailed" in said, f"a wrong password: {said}")
    said = once(server, f"kafka://{url}/plain", "--to-user", "shop", "--to-mechanism", "PLAIN", ok=False, OMNIBUS_TO_PASSWORD="secret")
    expect("kafka+tls" in said, f"PLAIN without TLS: {said}")
    broker.kill()
    server.stop()


def by_address(directory, server, tls, own):
    """Accounts and tokens in the address log in, and nobody sees them: not in the list of processes, and not in what is said."""
    word = "s:e/c@ret %"
    client(server, "CREATE USER streamer@localhost IDENTIFIED BY 'source-secret'; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO streamer@localhost")
    for name, account, before in (("user", ("--user", "shop", "--pass", word), "shop:s%3Ae%2Fc%40ret%20%25"), ("token", ("--auth", word), "s%3Ae%2Fc%40ret%20%25")):
        broker = Nats(directory / f"address-{name}", *tls, *account)
        broker.start()
        place = f"127.0.0.1:{broker.port}/{name}"
        expect('"messages"' in once(server, f"tls://{before}@{place}", *own), f"{name}: nothing was sent")
        said = once(server, f"tls://{before}x@{place}", *own, ok=False)
        expect("authorization" in said and "s%3Ae" not in said and word not in said, f"{name}: a wrong password: {said}")
        said = once(server, f"tls://{before}@{place}", *own, "--to-user", "shop", ok=False, OMNIBUS_TO_PASSWORD=word)
        expect("another" in said and "s%3Ae" not in said, f"{name}: two accounts: {said}")
        stream = Stream(server, f"tls://{before}@{place}", *own, "--password=source-secret", "--connection-server-id", "77")
        stream.command[stream.command.index("root")] = "streamer"
        stream.log = server.directory / f"stream-{name}.log"
        stream.start()
        stream.begins()
        command = pathlib.Path(f"/proc/{stream.process.pid}/cmdline").read_bytes().decode()
        expect("***@127.0.0.1" in command and "s%3Ae" not in command and "source-secret" not in command, f"{name}: everybody sees {command!r}")
        expect(" server_id=77 " in (server.directory / server.log_name).read_text(), f"{name}: its server id")
        # The broker is away: each attempt says how long it waits, and longer each time.
        broker.kill()
        client(server, f"INSERT INTO s.u VALUES ({broker.port}, 'while it is away')")
        wait_for(lambda: len(stream.lines("trouble")) >= 3, lambda: f"no trouble: {stream.log.read_text()[-1000:]}")  # noqa: B023
        told = [(line["attempt"], line["again_s"]) for line in stream.lines("trouble")[:3]]
        expect(told == [(1, 1), (2, 2), (3, 4)], f"{name}: {told}")
        broker.start()
        stream.catch_up()
        stream.kill()
        broker.kill()


def main():
    wanted = sys.argv[1:]
    tests = [test for test in (nats, kafka, logins) if not wanted or test.__name__ in wanted]
    for test in tests:
        with Scratch("omnibus-streams-") as name:
            began = time.monotonic()
            test(pathlib.Path(name))
            print(f"{test.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    print(f"streams: {len(tests)} passed, 0 failed")


main()
