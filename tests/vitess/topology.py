"""A Vitess cluster on Omnibus servers: etcd, vtctld, VTOrc, vtgate, and tablets, each with a server of its own.

Set up as docs/use/vitess.md says. Vitess's daemons refuse to run as root: where this is root they run as `nobody`. What they
start (servers that vttablet and mysqlctl start are nobody's children) comes back to this process, and ends with it.
"""

import ctypes
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from omnibus import ROOT, Server, binary, children, connect, expect, free_port, wait_for  # noqa: E402

CELL = "zone1"
PR_SET_CHILD_SUBREAPER = 36
PROGRAMS = ("vttablet", "vtgate", "vtctld", "vtctldclient", "vtorc", "mysqlctl", "vstream")
# What a busy machine needs for one step.
STEP_S = 180


def adopt_orphans():
    """What daemons leave behind becomes this process's child."""
    expect(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "prctl")


def end_all():
    """Ends all children, until none is left: whoever is killed leaves more."""
    while found := children():
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


class Daemon(Server):
    """One of Vitess's daemons."""

    def __init__(self, cluster, name, command):
        super().__init__(cluster.logs, (), cluster.env)
        self.cluster, self.name, self.log_name, self.command = cluster, name, f"{name}.log", command

    def start(self):
        self.launch([str(part) for part in self.command], **self.cluster.identity, cwd=self.cluster.root)
        self.cluster.running.add(self)
        return self

    def kill(self):
        self.cluster.running.discard(self)
        super().kill()

    def stop(self, timeout=STEP_S):
        self.cluster.running.discard(self)
        super().stop(timeout)


class Tablet:
    """A server, which mysqlctl makes and starts, and its vttablet."""

    def __init__(self, cluster, uid, keyspace, shard):
        self.cluster, self.uid, self.keyspace, self.shard = cluster, uid, keyspace, shard
        self.alias = f"{CELL}-{uid:010}"
        self.folder = cluster.data / f"vt_{uid:010}"
        self.socket = str(self.folder / "mysql.sock")
        self.mysql_port, port, grpc_port = free_port(), free_port(), free_port()
        self.daemon = Daemon(cluster, f"vttablet-{uid}", [
            cluster.bin / "vttablet", *cluster.topology, "--tablet-path", self.alias, "--tablet-hostname", "127.0.0.1",
            "--init-keyspace", keyspace, "--init-shard", shard, "--init-tablet-type", "replica",
            "--port", port, "--grpc-port", grpc_port, "--bind-address", "127.0.0.1",
            "--service-map", "grpc-queryservice,grpc-tabletmanager,grpc-updatestream",
            "--health-check-interval", "1s", "--restore-from-backup", *cluster.backups, "--migration-check-interval", "5s",
            "--twopc-abandon-age", "3s",
            "--log-format", "text"])

    def mysqlctl(self, *action):
        self.cluster.run("mysqlctl", "--tablet-uid", str(self.uid), "--mysql-port", str(self.mysql_port), "--log-format", "text",
                         *action)

    def start(self):
        self.mysqlctl("init")
        self.daemon.start()
        return self

    def server_pid(self):
        return int((self.folder / "mysql.pid").read_text())

    def kill(self):
        """The machine is gone: server and vttablet at once."""
        self.daemon.kill()
        process = self.server_pid()
        os.kill(process, signal.SIGKILL)
        wait_for(lambda: not is_alive(process), f"{self.alias}'s server does not end", STEP_S)

    def start_again(self):
        self.mysqlctl("start")
        self.daemon.start()

    def make_anew(self):
        """Gives up what it has: it begins with a backup, or with the first transaction."""
        self.daemon.stop()
        self.mysqlctl("teardown", "--force")
        self.start()

    def retire(self):
        """Out of the cluster for good."""
        self.daemon.stop()
        self.mysqlctl("shutdown")
        self.cluster.tablets.remove(self)

    def query(self, sql):
        """What its own server answers."""
        connection = connect(self, autocommit=True)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall()
        finally:
            connection.close()


def is_alive(process):
    """Not if it is only to be waited for, which is done here."""
    try:
        return os.waitpid(process, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return pathlib.Path(f"/proc/{process}").exists()


class Cluster:
    """All of it, below one folder."""

    def __init__(self, folder, programs):
        self.root = pathlib.Path(folder)
        self.bin, self.data, self.logs = (self.root / name for name in ("bin", "data", "logs"))
        self.identity = {}
        self.install(programs)
        if os.geteuid() == 0:
            user = pwd.getpwnam("nobody")
            self.identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            # Not the programs: they may be the originals by another name.
            for path in (self.root, self.data, self.data / "backups", self.logs):
                os.chown(path, user.pw_uid, user.pw_gid)
        self.env = {"VTDATAROOT": str(self.data), "VTROOT": str(self.root), "VT_MYSQL_ROOT": str(self.root),
                    "HOME": str(self.root), "OMNIBUS": str(self.bin / "omnibus"), "PATH": f"{self.bin}:{os.environ['PATH']}"}
        etcd = free_port()
        self.topology = ["--topo-implementation", "etcd2", "--topo-global-server-address", f"127.0.0.1:{etcd}",
                         "--topo-global-root", "/vitess/global"]
        self.backups = ["--backup-storage-implementation", "file", "--file-backup-storage-root", self.data / "backups",
                        "--backup-engine-implementation", "xtrabackup", "--xtrabackup-root-path", self.bin,
                        "--xtrabackup-user", "vt_dba", "--xtrabackup-stream-mode", "tar"]
        self.etcd_port, self.vtctld_port, self.mysql_port, self.grpc_port = etcd, free_port(), free_port(), free_port()
        self.tablets, self.running = [], set()
        self.daemons = {name: Daemon(self, name, command) for name, command in self.commands().items()}

    def install(self, programs):
        """Programs where `nobody` may run them."""
        for folder in (self.bin, self.data / "backups", self.logs):
            folder.mkdir(parents=True)
        self.root.chmod(0o755)
        for name in PROGRAMS:
            place(programs / name, self.bin / name)
        place(binary(), self.bin / "omnibus")
        (self.bin / "mysqld").symlink_to("omnibus")
        place(ROOT / "packaging/vitess/xtrabackup", self.bin / "xtrabackup")
        (self.bin / "mysqladmin").symlink_to(shutil.which("mariadb-admin"))

    def commands(self):
        peers = f"http://127.0.0.1:{free_port()}"
        clients = f"http://127.0.0.1:{self.etcd_port}"
        text = ["--log-format", "text", "--bind-address", "127.0.0.1"]
        return {
            "etcd": ["etcd", "--data-dir", self.data / "etcd", "--listen-client-urls", clients, "--advertise-client-urls", clients,
                     "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"],
            "vtctld": [self.bin / "vtctld", *self.topology, *text, "--cell", CELL, "--service-map", "grpc-vtctl,grpc-vtctld",
                       "--port", free_port(), "--grpc-port", self.vtctld_port, *self.backups[:4]],
            "vtorc": [self.bin / "vtorc", *self.topology, *text, "--cell", CELL, "--port", free_port(), "--instance-poll-time", "1s",
                      "--recovery-poll-duration", "1s", "--topo-information-refresh-duration", "3s"],
            "vtgate": [self.bin / "vtgate", *self.topology, *text, "--cell", CELL, "--cells-to-watch", CELL, "--port", free_port(),
                       "--tablet-types-to-wait", "PRIMARY", "--service-map", "grpc-vtgateservice", "--grpc-port", self.grpc_port,
                       "--mysql-server-bind-address", "127.0.0.1", "--mysql-server-port", self.mysql_port,
                       "--mysql-auth-server-impl", "none", "--tablet-refresh-interval", "3s", "--enable-buffer", "--buffer-size", "10000", "--buffer-window", "60s",
                       "--buffer-max-failover-duration", "60s", "--buffer-min-time-between-failovers", "1s"],
        }

    def start(self, keyspaces):
        """`keyspaces` are lists of shards by name. The first two tablets of each shard get a primary from VTOrc."""
        self.daemons["etcd"].start()
        self.until(lambda: self.run("vtctldclient", "--server", "internal", *self.topology, "AddCellInfo", "--root", f"/vitess/{CELL}",
                                    "--server-address", f"127.0.0.1:{self.etcd_port}", CELL, check=False).returncode == 0, "etcd")
        self.daemons["vtctld"].start()
        self.until(lambda: self.vtctl("GetCellInfoNames", check=False).returncode == 0, "vtctld")
        for keyspace in keyspaces:
            self.vtctl("CreateKeyspace", "--durability-policy=semi_sync", keyspace)
        self.daemons["vtorc"].start()
        uid = 0
        for keyspace, shards in keyspaces.items():
            for shard in shards:
                uid += 100
                self.add_shard(keyspace, shard, uid)
        self.start_gate()

    def start_gate(self):
        self.daemons["vtgate"].start()
        self.until(lambda: self.ask("SELECT 1", check=False), "vtgate")

    def add_shard(self, keyspace, shard, uid):
        """A primary and a replica that acknowledges."""
        for number in (uid, uid + 1):
            self.add_tablet(number, keyspace, shard)
        self.until(lambda: self.primary(keyspace, shard), f"a primary of {keyspace}/{shard}")

    def add_tablet(self, uid, keyspace, shard):
        tablet = Tablet(self, uid, keyspace, shard)
        self.tablets.append(tablet.start())
        return tablet

    def primary(self, keyspace, shard):
        """The tablet that is it and takes writes; None if there is none."""
        shown = self.vtctl("GetShard", f"{keyspace}/{shard}", check=False)
        if shown.returncode != 0:
            return None
        alias = json.loads(shown.stdout)["shard"]["primary_alias"] or {}
        return next((tablet for tablet in self.tablets if tablet.uid == alias.get("uid") and writable(tablet)), None)

    def run(self, program, *arguments, check=True, timeout=STEP_S):
        done = subprocess.run([str(self.bin / program), *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                              env=dict(os.environ, **self.env), cwd=self.root, **self.identity)
        expect(not check or done.returncode == 0, f"{program} {' '.join(map(str, arguments))}:\n{done.stderr[-3000:]}{done.stdout[-1000:]}")
        return done

    def vtctl(self, *arguments, **more):
        return self.run("vtctldclient", "--server", f"127.0.0.1:{self.vtctld_port}", *arguments, **more)

    def gate(self, database, **more):
        """A connection to vtgate."""
        import pymysql
        return pymysql.connect(host="127.0.0.1", port=self.mysql_port, user="app", database=database, autocommit=True,
                               connect_timeout=STEP_S, read_timeout=STEP_S, **more)

    def ask(self, sql, database="", check=True):
        """What vtgate answers; None for an error, unless that ends the test."""
        import pymysql
        try:
            connection = self.gate(database)
            try:
                with connection.cursor() as cursor:
                    cursor.execute(sql)
                    return cursor.fetchall()
            finally:
                connection.close()
        except pymysql.err.MySQLError as error:
            expect(not check, f"vtgate: {sql}: {error}")
            return None

    def until(self, condition, what, timeout=STEP_S):
        def look():
            for daemon in self.running:
                expect(daemon.runs(), f"{daemon.name} has ended:\n{daemon.log_tail()}")
            return condition()

        return wait_for(look, lambda: f"{what() if callable(what) else what} does not come", timeout, every=0.3)


def writable(tablet):
    import pymysql
    try:
        return tablet.query("SELECT @@GLOBAL.super_read_only")[0][0] == 0
    except (pymysql.err.MySQLError, OSError):
        return False


def place(source, target):
    try:
        os.link(os.path.realpath(source), target)
    except OSError:
        shutil.copy2(source, target)
    expect(os.stat(target).st_mode & 0o005 == 0o005, f"{target} can't be run by everybody")
