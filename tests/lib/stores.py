"""Object stores and brokers that the tests talk to: real ones, built by `tests/stores/install`, each on a port and a folder of its own."""

import base64
import binascii
import json
import os
import pathlib
import socket
import subprocess
import time

from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

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


def certificates(folder):
    """An authority, and certificates of it for 127.0.0.1 and for a client: `ca.pem`, `server.pem` and `client.pem`, keys in `*-key.pem`."""
    def openssl(*arguments):
        made = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True)
        expect(made.returncode == 0, f"openssl: {made.stderr}")

    folder.mkdir(exist_ok=True)
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca-key.pem", "-out", "ca.pem", "-days", "2", "-subj", "/CN=tests")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    for name in ("server", "client"):
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}-key.pem", "-out", "request", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", "request", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-days", "2", "-out", f"{name}.pem",
                "-extfile", "names")
    (folder / "keystore.pem").write_text((folder / "server-key.pem").read_text() + (folder / "server.pem").read_text())
    return folder


def nats_operator(folder):
    """A NATS server's settings in which accounts are what an operator has signed, and credentials of a user: two files. Formats: nkeys, and
    JWTs signed with ed25519-nkey."""
    operator, account, system, user = 14 << 3, 0, 0, 20 << 3

    def text(data):
        return base64.b32encode(data + binascii.crc_hqx(data, 0).to_bytes(2, "little")).decode().rstrip("=")

    class Key:
        def __init__(self, role):
            self.pair, self.role = ed25519.Ed25519PrivateKey.generate(), role
            self.name = text(bytes([role]) + self.pair.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw))

        def seed(self):
            raw = self.pair.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
            return text(bytes([18 << 3 | self.role >> 5, (self.role & 31) << 3]) + raw)

        def signs(self, subject, kind, **claims):
            def part(value):
                return base64.urlsafe_b64encode(value).decode().rstrip("=")

            body = {"jti": subject, "iat": int(time.time()), "iss": self.name, "sub": subject, "name": kind, "nats": dict(claims, type=kind, version=2)}
            signed = ".".join(part(json.dumps(value).encode()) for value in ({"typ": "JWT", "alg": "ed25519-nkey"}, body))
            return f"{signed}.{part(self.pair.sign(signed.encode()))}"

    folder.mkdir(exist_ok=True)
    operator, account, system, user = (Key(role) for role in (operator, account, system, user))
    free = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf", "mem_storage", "disk_storage", "streams", "consumer"), -1)
    accounts = [f"{key.name}: {operator.signs(key.name, 'account', limits=dict(limits, wildcards=True))}"
                for key, limits in ((account, free), (system, dict(free, mem_storage=0, disk_storage=0)))]
    (folder / "server.conf").write_text(f"operator: {operator.signs(operator.name, 'operator')}\nsystem_account: {system.name}\n"
                                        "resolver: MEMORY\nresolver_preload: {\n" + "\n".join(accounts) + "\n}\n")
    line = "-" * 5
    (folder / "user.creds").write_text(f"""{line}BEGIN NATS USER JWT{line}
{account.signs(user.name, 'user', subs=-1, data=-1, payload=-1)}
------END NATS USER JWT------

{line}BEGIN USER NKEY SEED{line}
{user.seed()}
------END USER NKEY SEED------
""")
    return folder / "server.conf", folder / "user.creds"


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
    """nats-server with JetStream in a folder; `options` as on its command line."""

    log_name = "nats.log"

    def __init__(self, directory, *options):
        super().__init__(directory)
        self.more = options

    def command(self):
        return [str(installed() / "nats-server"), "--addr", "127.0.0.1", "--port", str(self.port), "--jetstream",
                "--store_dir", str(self.directory / "store"), *self.more]

    def read(self, name):
        """All messages of a stream, read by NATS's client for Python."""
        env = dict(os.environ, PYTHONPATH=str(installed() / "nats"))
        return by_topic(["/usr/bin/python3", str(ROOT / "tests/stores/nats/dump.py"), str(self.port), name], env)


class Kafka(Service):
    """One broker, its own controller; with certificates it wants TLS, a client's certificate and the password `secret` of `shop`."""

    log_name = "kafka.log"

    def __init__(self, directory, certificates=None):
        super().__init__(directory)
        self.certificates = certificates

    def security(self):
        if self.certificates is None:
            return "", []
        plain = "org.apache.kafka.common.security.plain.PlainLoginModule required username=shop password=secret user_shop=secret;"
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        users = [word for kind in ("256", "512") for word in ("--add-scram", f"SCRAM-SHA-{kind}=[name=shop,password=secret]")]
        return f"""
listener.security.protocol.map=SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT
inter.broker.listener.name=SASL_SSL
sasl.mechanism.inter.broker.protocol=PLAIN
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_ssl.plain.sasl.jaas.config={plain}
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram}
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram}
ssl.keystore.type=PEM
ssl.keystore.location={self.certificates / "keystore.pem"}
ssl.truststore.type=PEM
ssl.truststore.location={self.certificates / "ca.pem"}
ssl.client.auth=required
""", users

    def java(self, *command):
        jars = installed() / "kafka"
        return ["java", "-Xmx512m", "-cp", f"{jars}:{jars}/*", *command]

    def command(self):
        settings = self.directory / "server.properties"
        if not settings.exists():
            controller = free_port()
            security, users = self.security()
            listener = "SASL_SSL" if security else "PLAINTEXT"
            settings.write_text(f"""
                process.roles=broker,controller
                node.id=1
                controller.quorum.voters=1@127.0.0.1:{controller}
                listeners={listener}://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}
                controller.listener.names=CONTROLLER
                log.dirs={self.directory / 'log'}
                offsets.topic.replication.factor=1
                """.replace(" ", "") + security)
            made = subprocess.run(self.java("kafka.tools.StorageTool", "format", "-t", "AAAAAAAAAAAAAAAAAAAAAA", "-c", str(settings), *users),
                                  capture_output=True, text=True)
            expect(made.returncode == 0, f"Kafka's storage: {made.stdout}{made.stderr}")
        return self.java("kafka.Kafka", str(settings))

    def read(self, name):
        """All messages of the topics of this name, read by Kafka's own client."""
        return by_topic(self.java("Dump", f"127.0.0.1:{self.port}", name))
