"""The servers that benchmarks compare with: Debian's MariaDB, and those that `scripts/peers` has made (which needs root).

Their names are `mariadb`, `newer-mariadb`, `one-sync-mariadb` (the newer one with sync_binlog=0) and `mysql`.
"""

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests" / "lib"))
import real_peers  # noqa: E402
from omnibus import MariaDB  # noqa: E402

# What `scripts/peers` calls them.
PEER_ROOTS = {"newer-mariadb": "mariadb", "one-sync-mariadb": "mariadb", "mysql": "mysql"}
NAMES = ["mariadb", *PEER_ROOTS]
# What each has besides the options of a benchmark.
OWN = {"mysql": ["--mysqlx=OFF", "--secure-file-priv=", "--server-id=1"], "one-sync-mariadb": ["--sync-binlog=0"]}


def root_of(name):
    return real_peers.root(PEER_ROOTS[name])


def is_there(name):
    return name not in PEER_ROOTS or os.geteuid() == 0 and (root_of(name) / "usr/sbin").exists()


def version(name):
    run = ["chroot", root_of(name)] if name in PEER_ROOTS else []
    said = subprocess.run([*run, "mysqld" if name == "mysql" else "mariadbd", "--version"], capture_output=True, text=True).stdout
    how = " with sync_binlog=0" if name == "one-sync-mariadb" else ""
    return f"{'MySQL' if name == 'mysql' else 'MariaDB'} {said.split('Ver ')[1].split()[0]}{how}"


def start(name, own, *options, env=None):
    """A server that runs, with its data in the folder `own`, which nothing else in its parent folder may be mounted over."""
    if name in PEER_ROOTS:
        return PeerServer(name, own, [*options, *OWN.get(name, ())], env or {})
    server = MariaDB(own, *options, env=env)
    server.start()
    return server


class PeerServer:
    """A server of another Debian, in its root, with the benchmark's directory at the same path inside and outside."""

    def __init__(self, name, own, options, env):
        self.root, self.socket, self.shared, self.datadir = root_of(name), str(own / "s.sock"), own.parent, own / "data"
        inside = self.root / self.shared.relative_to("/")
        if not os.path.ismount(inside):
            inside.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", "--bind", self.shared, inside], check=True)
        if not os.path.ismount(self.root / "proc"):
            subprocess.run(["mount", "-t", "proc", "proc", self.root / "proc"], check=True)
        program = "mysqld" if name == "mysql" else "mariadbd"
        run = ["chroot", self.root]
        make = {"mysqld": [program, "--initialize-insecure", "--user=root"],
                "mariadbd": ["mariadb-install-db", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db", "--force"]}
        command = [*run, make[program][0], "--no-defaults", *make[program][1:], f"--datadir={self.datadir}"]
        self.datadir.mkdir()
        subprocess.run(command, check=True, capture_output=True)
        self.process = subprocess.Popen(
            [*run, program, "--no-defaults", "--user=root", f"--datadir={self.datadir}", f"--socket={self.socket}", "--skip-networking", *options],
            env=dict(os.environ, **env), stdout=subprocess.DEVNULL, stderr=open(own / "log", "w"))
        for _ in range(600):
            if os.path.exists(self.socket):
                return
            time.sleep(0.1)
        raise SystemExit(f"{name} did not start: {(own / 'log').read_text()[-800:]}")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def unmount(directory):
    """For the end: what `start` has mounted for servers below this folder."""
    for name in PEER_ROOTS:
        if is_there(name):
            inside = root_of(name) / pathlib.Path(directory).relative_to("/")
            if os.path.ismount(inside):
                subprocess.run(["umount", inside], check=True)
                inside.rmdir()
