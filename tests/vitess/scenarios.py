"""What is to hold on a cluster, one function each: it makes its own tables, and says in a line what it saw."""

import json
import subprocess
import threading
import time

from load import TABLE, Load, caught_up, checksum, fill
from omnibus import expect
from topology import CELL

KEYSPACE = "customer"
SHARDS = ["-80", "80-"]
ROWS = 3000


def primaries(cluster, shards, keyspace=KEYSPACE):
    return [cluster.until(lambda shard=shard: cluster.primary(keyspace, shard), f"a primary of {keyspace}/{shard}") for shard in shards]


def current_shards(cluster):
    """Those that serve."""
    shards = json.loads(cluster.vtctl("GetSrvKeyspaces", KEYSPACE, CELL).stdout)[CELL]["partitions"]
    serving = [one for one in shards if one["served_type"] in (1, "PRIMARY")][0]
    return [reference["name"] for reference in serving["shard_references"]]


def sharded_table(cluster, name, create=TABLE):
    """A table of the sharded keyspace, spread by its key."""
    vschema = json.loads(cluster.vtctl("GetVSchema", KEYSPACE).stdout)
    vschema.update(sharded=True, vindexes={"xxhash": {"type": "xxhash"}})
    vschema.setdefault("tables", {})[name] = {"column_vindexes": [{"column": "id", "name": "xxhash"}]}
    if create:
        cluster.vtctl("ApplySchema", "--sql", create.format(name=name), KEYSPACE)
    cluster.vtctl("ApplyVSchema", "--vschema", json.dumps(vschema), KEYSPACE)
    cluster.until(lambda: cluster.ask(f"SELECT COUNT(*) FROM {name}", KEYSPACE, check=False) if create else True, f"{name} at vtgate")


def running(cluster, keyspace, workflow):
    """Whether all streams of a workflow have copied and follow."""
    shown = cluster.vtctl("Workflow", "--keyspace", keyspace, "show", "--workflow", workflow, "--include-logs=false").stdout
    flows = json.loads(shown)["workflows"]
    streams = [stream for flow in flows for shard in flow["shard_streams"].values() for stream in shard["streams"]]
    return bool(streams) and all(stream["state"] == "Running" and stream.get("position") and not stream.get("copy_states")
                                 for stream in streams)


def differences(cluster, keyspace, workflow):
    """Vitess's own comparison of both sides, while they are written to."""
    cluster.vtctl("VDiff", "--target-keyspace", keyspace, "--workflow", workflow, "create", "--wait", "--wait-update-interval", "2s")
    shown = cluster.vtctl("VDiff", "--target-keyspace", keyspace, "--workflow", workflow, "show", "last", "--format", "json").stdout
    report = json.loads(shown)
    expect(report["State"] == "completed" and not report["HasMismatch"], f"VDiff: {shown}")
    return report["RowsCompared"]


def same_on_both_sides(cluster, table, before, after):
    """After the switch the old side follows the new one."""
    cluster.until(lambda: checksum(before, table) == checksum(after, table),
                  lambda: f"equal checksums: {checksum(before, table)} and {checksum(after, table)}; it")
    return checksum(after, table)


def schema_and_rows(cluster):
    """Two shards: rows go to both, vtgate finds them, replicas have them, semi-synchronous replication is on."""
    sharded_table(cluster, "basic")
    fill(cluster, KEYSPACE, "basic", 200)
    sizes = []
    for tablet in primaries(cluster, current_shards(cluster)):
        (rows,), = tablet.query("SELECT COUNT(*) FROM vt_customer.basic")
        on = dict(tablet.query("SHOW STATUS LIKE 'Rpl_semi_sync_source%'"))
        expect(on["Rpl_semi_sync_source_status"] == "ON" and int(on["Rpl_semi_sync_source_clients"]) >= 1, f"semi-sync: {on}")
        others = [other for other in cluster.tablets if other.shard == tablet.shard and other is not tablet]
        for other in others:
            cluster.until(lambda other=other, tablet=tablet: caught_up(other, tablet, "basic"), "equal replicas")
        sizes.append(rows)
    expect(sum(sizes) == 200 and min(sizes) > 50, f"rows a shard: {sizes}")
    expect(cluster.ask("SELECT COUNT(*), MAX(id) FROM basic", KEYSPACE)[0] == (200, 200), "rows through vtgate")
    return f"rows a shard {sizes}, semi-sync on, replicas equal"


def backup(cluster):
    """A backup under load, and a third tablet that begins with it."""
    sharded_table(cluster, "kept")
    before = fill(cluster, KEYSPACE, "kept", ROWS)
    shard = current_shards(cluster)[0]
    source = primaries(cluster, [shard])[0]
    replica = next(one for one in cluster.tablets if (one.keyspace, one.shard) == (KEYSPACE, shard) and one is not source)
    with Load(cluster, KEYSPACE, "kept") as load:
        load.more()
        cluster.vtctl("Backup", replica.alias)
        load.more()
        listed = cluster.vtctl("GetBackups", f"{KEYSPACE}/{shard}").stdout.split()
        expect(len(listed) == 1, f"backups: {listed}")
        third = cluster.add_tablet(source.uid + 5, KEYSPACE, shard)
        cluster.until(lambda: follows(third), lambda: f"{third.alias} as a replica: {third.daemon.log_tail()}; it")
        load.more()
    log = (cluster.logs / third.daemon.log_name).read_text()
    expect("Restore: complete" in log, "the third tablet was not restored from the backup")
    cluster.until(lambda: caught_up(third, source, "kept"), "equal rows on the restored tablet")
    uuids = {tablet.query("SELECT @@server_uuid") for tablet in (source, replica, third)}
    expect(len(uuids) == 3, f"server_uuid: {uuids}")
    return load.check(primaries(cluster, current_shards(cluster)), before)


def follows(tablet):
    import pymysql
    try:
        rows = tablet.query("SELECT SERVICE_STATE FROM performance_schema.replication_connection_status")
        return rows and rows[0][0] == "ON"
    except (pymysql.err.MySQLError, OSError):
        return False


def move_tables(cluster):
    """A table moves from an unsharded keyspace into the sharded one while it is written to."""
    cluster.vtctl("CreateKeyspace", "--durability-policy=semi_sync", "shop")
    cluster.add_shard("shop", "0", 800)
    cluster.vtctl("ApplySchema", "--sql", TABLE.format(name="ticket"), "shop")
    cluster.until(lambda: cluster.ask("SELECT COUNT(*) FROM ticket", "shop", check=False), "ticket at vtgate")
    before = fill(cluster, "shop", "ticket", ROWS)
    sharded_table(cluster, "ticket", create=None)
    flow = ["MoveTables", "--workflow", "move", "--target-keyspace", KEYSPACE]
    with Load(cluster, "shop", "ticket") as load:
        load.more()
        cluster.vtctl(*flow, "create", "--source-keyspace", "shop", "--tables", "ticket")
        cluster.until(lambda: running(cluster, KEYSPACE, "move"), "a copy that follows")
        load.more()
        compared = differences(cluster, KEYSPACE, "move")
        cluster.vtctl(*flow, "SwitchTraffic")
        load.more()
    old, new = primaries(cluster, ["0"], "shop"), primaries(cluster, current_shards(cluster))
    seen = load.check(new, before)
    rows, total = same_on_both_sides(cluster, "ticket", old, new)
    cluster.vtctl(*flow, "complete")
    expect(checksum(new, "ticket") == (rows, total), "complete changed the new side")
    for tablet in [one for one in cluster.tablets if one.keyspace == "shop"]:
        tablet.retire()
    return f"{seen}, VDiff of {compared} rows, checksum {total} of {rows} rows on both sides"


def vstream(cluster):
    """A stream of a table has what was there, then each change once; it goes on from a position."""
    sharded_table(cluster, "watched")
    before = fill(cluster, KEYSPACE, "watched", 300)
    first, second = Stream(cluster, "watched"), None
    with Load(cluster, KEYSPACE, "watched") as load:
        cluster.until(lambda: len(first.inserts) > 400, lambda: f"rows in the stream: {len(first.inserts)}; more")
        first.stop()
        load.more(30)
        second = Stream(cluster, "watched", first.vgtid)
        load.more(30)
    wanted = dict.fromkeys(before, 1) | load.acknowledged

    def missing():
        return [number for number, version in wanted.items()
                if max(first.covered.get(number, 0), second.versions.get(number, 0)) < version]

    cluster.until(lambda: not missing(), lambda: f"all rows in the stream: {missing()[:5]} miss, the end of it")
    second.stop()
    twice = set(first.covered) & set(second.inserts)
    expect(not twice, f"the second stream has again what the first one's position covers: {list(twice)[:5]}")
    expect(len(set(second.inserts)) == len(second.inserts), "the second stream has a row twice")
    return f"{len(first.covered)} rows, then {len(second.inserts)} from its position on, none twice"


class Stream:
    """The program that prints vtgate's stream."""

    def __init__(self, cluster, table, *position):
        # The newest version of each row; those that the position covers.
        self.inserts, self.versions, self.covered, self.vgtid = [], {}, {}, None
        command = [str(cluster.bin / "vstream"), f"127.0.0.1:{cluster.grpc_port}", KEYSPACE, table, *position]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stderr=open(cluster.logs / "vstream.log", "a"))
        self.thread = threading.Thread(target=self.read, name="vstream")
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if "vgtid" in event:
                self.vgtid, self.covered = event["vgtid"], dict(self.versions)
                continue
            number = int(event["after"]["id"])
            self.versions[number] = int(event["after"]["version"])
            if event["before"] is None:
                self.inserts.append(number)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()


def online_ddl(cluster):
    """ALTER TABLE by Vitess, beside writers: a column and an index, then taken back by REVERT."""
    sharded_table(cluster, "altered")
    before = fill(cluster, KEYSPACE, "altered", ROWS)
    with Load(cluster, KEYSPACE, "altered") as load:
        load.more()
        change = migrate(cluster, "ALTER TABLE altered ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none', ADD KEY by_version (version)")
        load.more()
        servers = primaries(cluster, current_shards(cluster))
        for tablet in servers:
            expect(tablet.query("SELECT COUNT(*), MIN(note) FROM vt_customer.altered")[0][1] == "none", "the new column")
        migrate(cluster, f"REVERT VITESS_MIGRATION '{change}'")
        load.more()
    for tablet in servers:
        columns = [column for column, in tablet.query("SELECT column_name FROM information_schema.columns WHERE table_schema = 'vt_customer'"
                                                      " AND table_name = 'altered' ORDER BY ordinal_position")]
        expect(columns == ["id", "version", "body"], f"columns after REVERT: {columns}")
    # Vitess keeps stopped streams for REVERT, and splits no shard that has some.
    cluster.vtctl("OnlineDDL", "cleanup", KEYSPACE, "all")
    stopped = "SELECT COUNT(*) FROM _vt.vreplication WHERE state = 'Stopped'"
    cluster.until(lambda: all(tablet.query(stopped)[0][0] == 0 for tablet in primaries(cluster, current_shards(cluster))), "the end of the migrations' streams")
    return load.check(servers, before)


def migrate(cluster, statement):
    """Runs it as an online change to its end."""
    connection = cluster.gate(KEYSPACE)
    with connection.cursor() as cursor:
        cursor.execute("SET @@ddl_strategy = 'vitess'")
        cursor.execute(statement)
        uuid = cursor.fetchall()[0][0]
        deadline = time.monotonic() + 240
        while True:
            cursor.execute(f"SHOW VITESS_MIGRATIONS LIKE '{uuid}'")
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row)) for row in cursor.fetchall()]
            states = {row["migration_status"] for row in rows}
            expect(not states & {"failed", "cancelled"}, f"{statement}: {[row['message'] for row in rows]}")
            if states == {"complete"}:
                return uuid
            expect(time.monotonic() < deadline, f"{statement}: {states} {[(row['stage'], row['message']) for row in rows]}")
            time.sleep(0.5)


def two_phase(cluster):
    """Transfers between shards in two phases, vtgate killed in the middle of them: the sum stays."""
    sharded_table(cluster, "account", "CREATE TABLE {name} (id BIGINT NOT NULL PRIMARY KEY, balance BIGINT NOT NULL)")
    accounts = 40
    cluster.ask("INSERT INTO account (id, balance) VALUES " + ", ".join(f"({n}, 1000)" for n in range(accounts)), KEYSPACE)
    done, stopping = [0] * 4, threading.Event()
    threads = [threading.Thread(target=transfer, args=(cluster, accounts, done, number, stopping)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        goal = sum(done) + 60
        cluster.until(lambda goal=goal: sum(done) > goal, "more transfers")
        cluster.daemons["vtgate"].kill()
        cluster.start_gate()
    stopping.set()
    for thread in threads:
        thread.join()
    cluster.until(lambda: not unresolved(cluster), lambda: f"an end of all transactions: {unresolved(cluster)}; it")
    (total, least), = cluster.ask("SELECT SUM(balance), COUNT(*) FROM account", KEYSPACE)
    expect((int(total), least) == (accounts * 1000, accounts), f"the sum is {total} of {least} accounts")
    left = [row for tablet in primaries(cluster, current_shards(cluster)) for row in tablet.query("SELECT * FROM _vt.redo_state")]
    expect(not left, f"prepared transactions are left: {left}")
    return f"{sum(done)} transfers, vtgate killed three times, the sum is {total}"


def unresolved(cluster):
    listed = json.loads(cluster.vtctl("DistributedTransaction", "unresolved-list", f"--keyspace={KEYSPACE}", "--abandon-age=1").stdout or "[]")
    return listed or None


def transfer(cluster, accounts, done, number, stopping):
    import random
    import pymysql
    connection, chance = None, random.Random(number)
    while not stopping.is_set():
        one, other = sorted(chance.sample(range(accounts), 2))
        try:
            if connection is None:
                connection = cluster.gate(KEYSPACE)
                with connection.cursor() as cursor:
                    cursor.execute("SET transaction_mode = 'twopc'")
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("UPDATE account SET balance = balance - 1 WHERE id = %s", (one,))
                cursor.execute("UPDATE account SET balance = balance + 1 WHERE id = %s", (other,))
                cursor.execute("COMMIT")
            done[number] += 1
        except (pymysql.err.MySQLError, OSError):
            if connection is not None:
                connection.close()
            connection = None
            stopping.wait(0.2)


def reshard(cluster):
    """A shard is split in two while it is written to."""
    sharded_table(cluster, "spread")
    before = fill(cluster, KEYSPACE, "spread", ROWS)
    old = primaries(cluster, current_shards(cluster))
    for uid, shard in ((500, "80-c0"), (600, "c0-")):
        cluster.add_shard(KEYSPACE, shard, uid)
    flow = ["Reshard", "--workflow", "split", "--target-keyspace", KEYSPACE]
    with Load(cluster, KEYSPACE, "spread") as load:
        load.more()
        cluster.vtctl(*flow, "create", "--source-shards", "80-", "--target-shards", "80-c0,c0-")
        cluster.until(lambda: running(cluster, KEYSPACE, "split"), "a copy that follows")
        load.more()
        compared = differences(cluster, KEYSPACE, "split")
        cluster.vtctl(*flow, "SwitchTraffic")
        load.more()
    shards = current_shards(cluster)
    expect(shards == ["-80", "80-c0", "c0-"], f"shards that serve: {shards}")
    new = primaries(cluster, shards)
    seen = load.check(new, before)
    rows, total = same_on_both_sides(cluster, "spread", old, new)
    cluster.vtctl(*flow, "complete")
    for tablet in [one for one in cluster.tablets if one.shard == "80-"]:
        tablet.retire()
    return f"{seen}, VDiff of {compared} rows, checksum {total} of {rows} rows on both sides"


def planned(cluster):
    """The primary changes twice, by command, while rows are written."""
    shard = current_shards(cluster)[0]
    sharded_table(cluster, "planned")
    with Load(cluster, KEYSPACE, "planned") as load:
        for _ in range(2):
            load.more()
            old = primaries(cluster, [shard])[0]
            other = next(one for one in cluster.tablets if (one.keyspace, one.shard) == (KEYSPACE, shard) and one is not old)
            cluster.vtctl("PlannedReparentShard", "--new-primary", other.alias, f"{KEYSPACE}/{shard}")
            expect(primaries(cluster, [shard])[0] is other, "another primary than asked for")
        load.more()
    return load.check(primaries(cluster, current_shards(cluster)))


def three_tablets(cluster, shard):
    """One that is lost leaves two: a primary, and a replica that acknowledges."""
    tablets = [one for one in cluster.tablets if (one.keyspace, one.shard) == (KEYSPACE, shard)]
    if len(tablets) < 3:
        third = cluster.add_tablet(max(one.uid for one in tablets) + 5, KEYSPACE, shard)
        cluster.until(lambda: follows(third), f"{third.alias} as a replica")


def waits_alone(cluster, primary, table):
    """Nobody receives any more: a row is in the primary's log only, and its client waits."""
    import pymysql
    for other in cluster.tablets:
        if (other.keyspace, other.shard) == (primary.keyspace, primary.shard) and other is not primary:
            other.query("STOP REPLICA IO_THREAD")

    def insert():
        try:
            primary.query(f"INSERT INTO vt_{KEYSPACE}.{table} (id, version, body) VALUES (-1, 1, 'tail')")
        except pymysql.err.MySQLError:
            pass

    threading.Thread(target=insert, daemon=True).start()
    # A second is much for anything but that.
    cluster.until(lambda: any("'tail'" in str(row[7]) and row[5] >= 1 for row in primary.query("SHOW PROCESSLIST")), "a commit that waits")


def lose_primary(cluster, table, recover, before=lambda primary, table: None):
    """kill -9 of the primary and its vttablet under load; it comes back as a replica.

    What it has and nobody was told of is what Vitess calls errant: as with MySQL it is refused, and made anew.
    """
    shard = current_shards(cluster)[0]
    three_tablets(cluster, shard)
    sharded_table(cluster, table)
    with Load(cluster, KEYSPACE, table) as load:
        load.more()
        old = primaries(cluster, [shard])[0]
        before(old, table)
        old.kill()
        recover(shard)
        new = cluster.until(lambda: (found := cluster.primary(KEYSPACE, shard)) is not old and found, "another primary")
        load.more()
        old.start_again()
        (tail,), = old.query(f"SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{new.query('SELECT @@GLOBAL.gtid_executed')[0][0]}')")
        if tail:
            expect(not follows(old), f"a replica with transactions that its source has not: {tail}")
            old.make_anew()
        cluster.until(lambda: follows(old), lambda: f"{old.alias} as a replica: {old.daemon.log_tail()}; it")
        load.more()
    cluster.until(lambda: caught_up(old, new, table), f"equal rows on {old.alias}")
    seen = load.check(primaries(cluster, current_shards(cluster)))
    return f"{seen}, {'errant ' + tail.split(':', 1)[1] + ' refused and made anew' if tail else 'came back as it was'}"


def emergency(cluster):
    """EmergencyReparentShard, with nobody else who repairs, of a primary with transactions that no replica has."""
    cluster.daemons["vtorc"].stop()
    took = []

    def recover(shard):
        begun = time.monotonic()
        cluster.vtctl("EmergencyReparentShard", f"{KEYSPACE}/{shard}")
        took.append(time.monotonic() - begun)

    seen = lose_primary(cluster, "emergency", recover, lambda primary, table: waits_alone(cluster, primary, table))
    expect("errant" in seen, f"a primary with a tail: {seen}")
    cluster.daemons["vtorc"].start()
    return f"{seen}, the command took {took[0]:.1f} s"


def vtorc(cluster):
    """VTOrc sees that the primary is lost, and makes another one by itself."""
    return lose_primary(cluster, "orchestrated", lambda shard: None)


SCENARIOS = {"schema": schema_and_rows, "backup": backup, "vstream": vstream, "ddl": online_ddl, "twopc": two_phase, "planned": planned,
             "emergency": emergency, "vtorc": vtorc, "movetables": move_tables, "reshard": reshard}
