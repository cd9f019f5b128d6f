#!/usr/bin/python3
"""The systemd units of packaging/vitess: systemd takes them, Vitess's programs know their options, docs/use/vitess.md shows the same ones, and their commands
make a shard of a primary and a replica that vtgate writes to; a server that was stopped by its unit begins again by it.

Ring: all.
"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/vitess")]
from omnibus import expect, free_port  # noqa: E402
from run import programs  # noqa: E402
from topology import Cluster, Daemon, adopt_orphans, end_all  # noqa: E402

FOLDER = ROOT / "packaging/vitess/systemd"
TABLETS = (100, 101)


def settings(text):
    """An environment file's variables."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def command(unit, key, instance, variables):
    """A unit's command as systemd runs it: `$NAME` is words, `${NAME}` a part of one."""
    [line] = [line.partition("=")[2] for line in unit.splitlines() if line.startswith(f"{key}=")]
    words = []
    for word in shlex.split(line):
        word = word.replace("%i", instance).replace("%%", "%")
        name = re.fullmatch(r"\$([A-Z]+)", word)
        words += variables[name[1]].split() if name else [re.sub(r"\$\{([A-Z_]+)\}", lambda at: variables[at[1]], word).replace("$$", "$")]
    return words


class Units:
    """The files, with this test's folders and ports."""

    def __init__(self, cluster):
        self.cluster, self.ports = cluster, {"2379": str(cluster.etcd_port), "15999": str(cluster.vtctld_port), "15306": str(cluster.mysql_port)}
        self.shared = settings(self.here((FOLDER / "vitess.env").read_text()))

    def here(self, text):
        text = text.replace("/var/lib/vitess", str(self.cluster.data)).replace("/usr/local/vitess", str(self.cluster.root))
        port = r"\b(?:2379|1[567][019]\d\d|15306)\b"
        return re.sub(port, lambda at: self.ports.setdefault(at[0], str(free_port())), text)

    def tablet(self, instance):
        """Of a keyspace with one shard."""
        text = (FOLDER / "tablet-100.env").read_text().replace("SHARD=-80", "SHARD=0")
        return settings(self.here(re.sub(r"(1[567])100\b", rf"\g<1>{instance}", text)))

    def command(self, name, key="ExecStart", instance=""):
        """With its environment, of which PATH also has what Debian has."""
        unit = self.here((FOLDER / f"{name}.service").read_text())
        variables = dict(self.shared, **(self.tablet(instance) if instance else {}))
        return command(unit, key, instance, variables), dict(variables, PATH=f"{variables['PATH']}:{os.environ['PATH']}")

    def daemon(self, name, instance=""):
        words, variables = self.command(name, instance=instance)
        self.cluster.env.update(variables)
        return Daemon(self.cluster, f"{name}{instance}", words).start()

    def once(self, name, key, instance):
        words, variables = self.command(name, key, instance)
        done = subprocess.run(words, env={**os.environ, **self.cluster.env, **variables}, cwd=self.cluster.root, capture_output=True, text=True, **self.cluster.identity)
        expect(done.returncode == 0, f"{name}@{instance}: {done.stderr[-2000:]}")


def verified(units, folder):
    """systemd finds no fault with them, and each option is one of its program's, and on the page."""
    page = (ROOT / "docs/use/vitess.md").read_text()
    own = {"--log-format", "--tablet-uid", "--mysql-port"}
    for path in sorted(FOLDER.glob("*.service")):
        (folder / path.name).write_text(units.here(path.read_text()).replace("User=vitess", f"User={os.getuid()}").replace("Group=vitess", f"Group={os.getgid()}"))
        name = folder / path.name.replace("@.", "@100.")
        said = subprocess.run(["systemd-analyze", "verify", str(name)], stderr=subprocess.PIPE, text=True).stderr.splitlines()
        expect(not [line for line in said if path.stem in line], f"{path.name}: {said}")
        words, _ = units.command(path.stem, instance="100" if "@" in path.name else "")
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        if words[0] != "/bin/sh":
            known = subprocess.run([words[0], "--help"], capture_output=True, text=True)
            known = set(re.findall(r"--[\w-]+", known.stdout + known.stderr))
            expect(options <= known, f"{path.name}: {words[0]} does not know {options - known}")
        expect(all(option in page for option in options - own), f"{path.name}: docs/use/vitess.md does not have {[o for o in options - own if o not in page]}")


def main():
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="omnibus-vitess-", ignore_cleanup_errors=True) as folder:
        cluster = Cluster(pathlib.Path(folder) / "cluster", programs())
        os.chmod(folder, 0o755)
        try:
            units = Units(cluster)
            (pathlib.Path(folder) / "units").mkdir()
            verified(units, pathlib.Path(folder) / "units")
            cluster.daemons["etcd"].start()
            cell = ("--server", "internal", *cluster.topology, "AddCellInfo", "--root", "/vitess/zone1", "--server-address", f"127.0.0.1:{cluster.etcd_port}", "zone1")
            cluster.until(lambda: cluster.run("vtctldclient", *cell, check=False).returncode == 0, "etcd")
            units.daemon("vitess-vtctld")
            cluster.until(lambda: cluster.vtctl("GetCellInfoNames", check=False).returncode == 0, "vtctld")
            cluster.vtctl("CreateKeyspace", "--durability-policy=semi_sync", "customer")
            units.daemon("vitess-vtorc")
            tablets = {}
            for tablet in map(str, TABLETS):
                units.once("vitess-mysql@", "ExecStart", tablet)
                tablets[tablet] = units.daemon("vitess-tablet@", tablet)
            units.daemon("vitess-vtgate")
            cluster.until(lambda: "primary_alias\": {" in cluster.vtctl("GetShard", "customer/0", check=False).stdout, "a primary")
            cluster.vtctl("ApplySchema", "--sql", "CREATE TABLE item (id BIGINT PRIMARY KEY, name VARCHAR(50))", "customer")
            write = "INSERT INTO item VALUES (1, 'tea')"
            cluster.until(lambda: cluster.ask(write, "customer", check=False) is not None, "a write")
            # A machine that goes down and comes up.
            tablets["101"].stop()
            units.once("vitess-mysql@", "ExecStop", "101")
            units.once("vitess-mysql@", "ExecStart", "101")
            units.daemon("vitess-tablet@", "101")
            cluster.until(lambda: cluster.ask("UPDATE item SET name = 'coffee'", "customer", check=False) is not None, "a write after that")
            expect(cluster.ask("SELECT * FROM item", "customer") == ((1, "coffee"),), "the row")
        finally:
            end_all()
    print("ok: the units of Vitess are taken by systemd and make a shard that serves")


if __name__ == "__main__":
    main()
