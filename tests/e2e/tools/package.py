#!/usr/bin/python3
"""The Debian package: it installs, its service serves, it is upgraded in place, also over the data directories that older versions left, a version that cannot read the
data is refused, what somebody has changed in its options stays, and its data outlives it.

Into a directory of its own, by dpkg itself, so that this machine has no package, user or service more than before.

Ring: all.
"""

import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, Scratch, Server, binary, expect, free_port


def run(*command, status=0, **env):
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, **env))
    expect(out.returncode == status, f"{shlex.join(map(str, command))}: status {out.returncode}\n{out.stdout}")
    return out.stdout


def dpkg(root, *args, status=0):
    """As root, or as who is root in a namespace of his own."""
    become = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
    return run(*become, "dpkg", f"--root={root}", f"--log={root}/dpkg.log", "--force-not-root",
               "--force-script-chrootless", "--force-depends", "--force-confold", *args, status=status)


class Installed(Server):
    """The service, started as its unit says, with its folders below `root`."""

    log_name = "server.log"

    def __init__(self, root):
        super().__init__(root, [], {"NOTIFY_SOCKET": str(root / "notify")})
        self.root, self.socket = root, str(root / "run/omnibus/omnibus.sock")

    def start(self):
        unit = (self.root / "usr/lib/systemd/system/omnibus.service").read_text()
        line = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
        words = [word.replace("/usr/", f"{self.root}/usr/").replace("/var/", f"{self.root}/var/").replace("/run/", f"{self.root}/run/")
                 for word in shlex.split(line.removeprefix("ExecStart="))]
        # The folders that the unit asks systemd for.
        for folder in ("var/lib/omnibus", "run/omnibus"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        heard.bind(self.env["NOTIFY_SOCKET"])
        heard.settimeout(120)
        self.launch([*words[:2], f"--defaults-file={self.root}/etc/omnibus/omnibus.cnf", *words[2:]])
        expect(b"READY=1" in heard.recv(4096), "the service is not ready")
        heard.close()
        os.remove(self.env["NOTIFY_SOCKET"])

    def ask(self, sql):
        return run("mariadb", "--no-defaults", f"--socket={self.socket}", "-uroot", "-NBe", sql).strip()


def built(scratch, version=None):
    """A package of the program under test, called by another version's name."""
    folder = pathlib.Path(scratch) / (version or "first")
    folder.mkdir()
    run(ROOT / "scripts/deb", binary(), folder, DEB_COMPRESSION="none", **({"DEB_VERSION": version} if version else {}))
    [package] = folder.glob("omnibus_*.deb")
    return package


def version_of(root):
    return run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "--showformat=${Version}", "--show", "omnibus").strip()


def goes_back_if_it_can(root, server, older, newer):
    """An older version is installed over a newer one while it can read the data, and else refused with words, and nothing is changed."""
    marker = root / "var/lib/omnibus/omnibus.format"
    before = marker.read_bytes()
    number, rest = before.decode().split("\n", 1)
    marker.write_text(f"{int(number) + 1}\n{rest}")
    said = dpkg(root, "--install", older, status=1)
    expect(f"reads data directories up to format {number}, and /var/lib/omnibus has format {int(number) + 1}" in said, said)
    expect(version_of(root) == "0.99.0", "the older version was installed")
    marker.write_bytes(before)
    server.start()
    expect(server.ask("SELECT a FROM d.t") == "7", "the newer version goes on")
    server.stop()
    dpkg(root, "--install", older)
    server.start()
    expect(server.ask("SELECT a FROM d.t") == "7", "the older version has the data")
    server.stop()
    dpkg(root, "--install", newer)


def empty(root):
    """A folder without packages."""
    (root / "var/lib/dpkg").mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    return root


def on_a_free_port(root):
    options, port = root / "etc/omnibus/omnibus.cnf", free_port()
    options.write_text(options.read_text().replace("port = 3306", f"port = {port}"))
    return options, port


def takes_over(scratch, package):
    """What a server of each older version left when it was killed is the newer one's after an upgrade."""
    older = built(scratch, "0.0.9")
    for archive in sorted((ROOT / "testdata/datadir").glob("*.tar.xz")):
        root = empty(pathlib.Path(scratch) / archive.name)
        dpkg(root, "--install", older)
        on_a_free_port(root)
        with tarfile.open(archive) as files:
            files.extractall(root / "var/lib/omnibus")
        dpkg(root, "--install", package)
        server = Installed(root)
        server.start()
        said = server.ask("SELECT (SELECT COUNT(*) FROM d.lsm), (SELECT COUNT(*) FROM d.btree), (SELECT COUNT(*) FROM d.child); XA RECOVER").split()
        expect(said[:3] == ["37", "37", "2"] and said[-1] == "branch", f"{archive.name}: {said}")
        server.stop()


def main():
    with Scratch() as scratch:
        root = empty(pathlib.Path(scratch) / "root")
        package = built(scratch)
        takes_over(scratch, package)
        dpkg(root, "--install", package)
        wanted = root / "etc/systemd/system/multi-user.target.wants/omnibus.service"
        expect(wanted.is_symlink(), "the service does not begin with the system")
        users = (root / "etc/passwd").read_text()
        expect("omnibus:" in users and "/var/lib/omnibus" in users, f"no user: {users}")
        expect((root / "usr/share/doc/omnibus/copyright").stat().st_mode & 0o777 == 0o644, "modes")
        unit = root / "usr/lib/systemd/system/omnibus.service"
        said = subprocess.run(["systemd-analyze", "verify", unit], stderr=subprocess.PIPE, text=True).stderr.splitlines()
        # The program is where the package is installed, and that is not here.
        said = [line for line in said if "omnibus.service" in line and "/usr/bin/omnibus is not executable" not in line]
        expect(not said, f"the unit: {said}")

        options, port = on_a_free_port(root)
        server = Installed(root)
        server.start()
        expect(server.ask("SELECT @@port, @@bind_address, @@sync_binlog") == f"{port}\t127.0.0.1\t1", "options")
        server.ask("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (7)")
        server.stop()

        newer = built(scratch, "0.99.0")
        dpkg(root, "--install", newer)
        expect(f"port = {port}" in options.read_text(), "an upgrade has replaced the options")
        expect(version_of(root) == "0.99.0", "it was not upgraded")
        server.start()
        expect(server.ask("SELECT a FROM d.t") == "7", "a row is gone")
        server.stop()
        goes_back_if_it_can(root, server, package, newer)

        said = dpkg(root, "--purge", "omnibus")
        expect("the data is still in /var/lib/omnibus" in said, said)
        expect((root / "var/lib/omnibus/omnibus.format").exists(), "the data went with the package")
        left = [path for folder in ("usr", "etc/omnibus", "etc/systemd") for path in (root / folder).rglob("*") if not path.is_dir()]
        expect(not left, f"left behind: {left}")
    print("ok: the package installs, serves, is upgraded, keeps changed options, goes back only where it can, and leaves the data")


if __name__ == "__main__":
    main()
