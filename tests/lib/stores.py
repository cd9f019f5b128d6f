"""Object stores and brokers that the tests talk to: real ones, built by `tests/stores/install`, each on a port and a folder of its own."""

import json
import os
import pathlib
import socket
import subprocess
import time

from omnibus import PATIENCE_S, ROOT, Server, expect, free_port

INSTALLED = []


def installed():
    """The folder with the programs."""
    if not INSTALLED:
        made = subprocess.run([str(ROOT / "tests/stores/install")], stdout=subprocess.PIPE, text=True)
        expect(made.returncode == 0, "tests/stores/install failed")
        INSTALLED.append(pathlib.Path(made.stdout.strip()))
    return INSTALLED[0]


class Service(Server):
    """A process that listens on `port`."""

    def __init__(self, directory, env=None):
        super().__init__(directory, (), env)
        self.directory.mkdir(exist_ok=True)
        self.port = free_port()

    def command(self):
        raise NotImplementedError

    def start(self, timeout=PATIENCE_S):
        self.launch(self.command())
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self.runs():
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError(f"{self.log_name} did not start:\n{self.log_tail()}")


class S3(Service):
    """versitygw: S3 over a folder, which outlives its process."""

    log_name = "s3.log"
    bucket = "archive"

    def __init__(self, directory):
        super().__init__(directory)
        (self.directory / "buckets" / self.bucket).mkdir(parents=True)

    def command(self):
        return [str(installed() / "versitygw"), "--access", "key", "--secret", "secret", "--region", "eu-test-1",
                "--port", f"127.0.0.1:{self.port}", "posix", str(self.directory / "buckets")]

    def variables(self):
        """What its clients are told."""
        return dict(os.environ, AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_REGION="eu-test-1",
                    AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.port}")


def by_topic(program, env=None):
    """What a reader printed, by topic in order."""
    run = subprocess.run(program, capture_output=True, text=True, env=env)
    expect(run.returncode == 0, f"{program}: {run.stderr[-2000:]}")
    topics = {}
    for line in run.stdout.splitlines():
        message = json.loads(line)
        topics.setdefault(message["topic"], []).append(message)
    return topics


class Nats(Service):
    """nats-server with JetStream in a folder."""

    log_name = "nats.log"

    def command(self):
        return [str(installed() / "nats-server"), "--addr", "127.0.0.1", "--port", str(self.port), "--jetstream",
                "--store_dir", str(self.directory / "store")]

    def read(self, name):
        """All messages of a stream, read by NATS's client for Python."""
        env = dict(os.environ, PYTHONPATH=str(installed() / "nats"))
        return by_topic(["/usr/bin/python3", str(ROOT / "tests/stores/nats/dump.py"), str(self.port), name], env)


class Kafka(Service):
    """One broker, its own controller."""

    log_name = "kafka.log"

    def java(self, *command):
        jars = installed() / "kafka"
        return ["java", "-Xmx512m", "-cp", f"{jars}:{jars}/*", *command]

    def command(self):
        settings = self.directory / "server.properties"
        if not settings.exists():
            controller = free_port()
            settings.write_text(f"""
                process.roles=broker,controller
                node.id=1
                controller.quorum.voters=1@127.0.0.1:{controller}
                listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
                controller.listener.names=CONTROLLER
                log.dirs={self.directory / 'log'}
                offsets.topic.replication.factor=1
                """.replace(" ", ""))
            made = subprocess.run(self.java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(settings)),
                                  capture_output=True, text=True)
            expect(made.returncode == 0, f"Kafka's storage: {made.stdout}{made.stderr}")
        return self.java("kafka.Kafka", str(settings))

    def read(self, name):
        """All messages of the topics of this name, read by Kafka's own client."""
        return by_topic(self.java("Dump", f"127.0.0.1:{self.port}", name))
