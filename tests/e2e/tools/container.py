#!/usr/bin/python3
"""The container file, built by buildah: its program is no root, serves, keeps its data in the volume over restarts, says how it is, and ends properly at its stop signal.

Of the two images that it begins with, registries are not asked: Debian's is made by debootstrap and kept in the cache, and in the place of the one that compiles is the
program under test. Needs root.

Ring: all.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
from omnibus import ROOT, Scratch, Server, binary, expect, free_port, wait_for  # noqa: E402

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "omnibus-container"
DEBIAN = "docker.io/library/debian:bookworm-slim"


def run(*command, cwd=None):
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cwd)
    expect(out.returncode == 0, f"{' '.join(map(str, command))}: status {out.returncode}\n{out.stdout[-4000:]}")
    return out.stdout


def debian():
    """Debian's smallest system, as a tar."""
    tar = CACHE / "bookworm.tar"
    if not tar.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with Scratch("debootstrap-") as folder:
            run("debootstrap", "--variant=minbase", "bookworm", f"{folder}/root")
            run("tar", "-C", f"{folder}/root", "--exclude=./var/cache/apt/archives/*.deb", "-cf", f"{folder}/tar", ".")
            shutil.move(f"{folder}/tar", tar)
    return tar


class Builder:
    """buildah, with all its files in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.command = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "storage"), "--runroot", str(folder / "run")]

    def __call__(self, *words, cwd=None):
        return run(*self.command, *words, cwd=cwd).strip()

    def base(self):
        made = self("from", "scratch").splitlines()[-1]
        self("add", made, str(debian()), "/")
        self("config", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", made)
        self("commit", made, DEBIAN)
        self("rm", made)

    def image(self):
        """What the file says, but for the compiler."""
        text = (ROOT / "Containerfile").read_text()
        stages = re.split(r"(?m)^(?=FROM )", text)
        expect(len(stages) == 3 and " AS build" in stages[1] and DEBIAN in stages[2], "the container file has other stages")
        source = self.folder / "source"
        source.mkdir()
        shutil.copy(binary(), source / "omnibus")
        run("strip", source / "omnibus")
        stage = "FROM scratch AS build\nCOPY omnibus /source/target/release/omnibus\n"
        (source / "Containerfile").write_text(stages[0] + stage + stages[2])
        self("bud", "--isolation", "chroot", "--format", "docker", "--pull-never", "--tag", "omnibus", "-f", "Containerfile", ".", cwd=source)
        return json.loads(self("inspect", "--type", "image", "omnibus"))["Docker"]["config"]


class Container(Server):
    """One that runs as the image says, with a volume that outlives it."""

    log_name = "container.log"

    def __init__(self, builder, config, volume):
        super().__init__(builder.folder, [], None)
        self.builder, self.config, self.volume, self.port = builder, config, volume, free_port()
        self.name = builder("from", "--pull-never", "localhost/omnibus").splitlines()[-1]

    def words(self, *command):
        return [*self.builder.command, "run", "--isolation", "chroot", "--volume", f"{self.volume}:/var/lib/omnibus", self.name, "--", *command]

    def start(self):
        self.launch(self.words(*self.config["Entrypoint"], f"--port={self.port}", "--bind-address=127.0.0.1"))
        wait_for(lambda: self.healthy() or not self.runs(), lambda: f"it is not healthy:\n{self.log_tail()}", timeout=60, every=0.2)
        expect(self.runs(), f"it ended:\n{self.log_tail()}")

    def healthy(self):
        kind, *command = self.config["Healthcheck"]["Test"]
        expect(kind == "CMD", f"{kind}")
        return subprocess.run(self.words(*command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT).returncode == 0

    def ask(self, sql):
        return run(*self.words("mariadb", "--no-defaults", "--socket=/run/omnibus/omnibus.sock", "-u", "root", "-NBe", sql)).strip()

    def processes(self):
        """Those of the program, with the users that they have."""
        found = []
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            try:
                if f"--port={self.port}\0" in (status.parent / "cmdline").read_text() and "Name:\tomnibus\n" in (text := status.read_text()):
                    found.append((int(status.parent.name), int(re.search(r"(?m)^Uid:\t(\d+)", text)[1])))
            except OSError:
                pass
        return found

    def end(self):
        """As a container's runtime does: the stop signal to its first process."""
        [(process, user)] = self.processes()
        expect(user != 0, "it runs as root")
        os.kill(process, {"SIGTERM": 15}[self.config["StopSignal"]])
        expect(self.process.wait(60) == 0, f"it ended with {self.process.returncode}:\n{self.log_tail()}")


def main():
    with Scratch("container-") as scratch:
        folder = pathlib.Path(scratch)
        builder = Builder(folder)
        builder.base()
        config = builder.image()
        expect(config["User"] == "omnibus" and "/var/lib/omnibus" in config["Volumes"] and "3306/tcp" in config["ExposedPorts"], f"{config}")
        probe = builder("from", "--pull-never", "localhost/omnibus").splitlines()[-1]
        owner = builder("run", "--isolation", "chroot", probe, "--", "id", "-u")
        volume = folder / "volume"
        volume.mkdir()
        os.chown(volume, int(owner), int(owner))

        server = Container(builder, config, volume)
        expect(not server.healthy(), "it is healthy before it runs")
        server.start()
        expect(server.ask("SELECT @@datadir, @@version_comment LIKE '%mnibus%'").split()[0] == "/var/lib/omnibus/data/", "its data directory")
        server.ask("CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY); INSERT INTO d.t VALUES (7); ALTER USER root@localhost IDENTIFIED BY 'secret'")
        expect(server.healthy(), "it is not healthy with a password")
        server.end()
        expect(not server.healthy(), "it is healthy when it has ended")

        again = Container(builder, config, volume)
        again.start()
        again.end()
        expect((volume / "data/omnibus.format").exists(), "the data is not in the volume")
    print("ok: the container's image is built, serves as its own user, says how it is, ends at its signal, and its volume has the data")


if __name__ == "__main__":
    main()
