#!/usr/bin/python3
"""Every command block of README.md and docs/use runs as it is printed, in a directory of its own for each page, against the servers that the page sets up; what a
page shows a command to print, it prints. A block that is not run is listed with the reason (`tests/lib/pages.py`). Names of pages are arguments.

Ring: all.
"""

import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "lib"))
import pages  # noqa: E402
from omnibus import Scratch  # noqa: E402
from stores import S3, Kafka, Nats, certificates  # noqa: E402


def archive(place):
    """An object store."""
    store = S3(place / "s3")
    store.start()
    return {"s3": store.port}


def streams(place):
    """A Kafka broker, and a NATS server with TLS and an account."""
    pems = certificates(place / "pems")
    kafka = Kafka(place / "kafka")
    nats = Nats(place / "nats", "--user", "shop", "--pass", "to-secret", "--tlscert", str(pems / "server.pem"), "--tlskey", str(pems / "server-key.pem"))
    kafka.start()
    nats.start()
    return {"kafka": kafka.port, "nats": nats.port, "keys": pems}


NEEDS = {"archive.md": archive, "streams.md": streams}


def main():
    chosen = [page for page in pages.PAGES if not sys.argv[1:] or page.name in sys.argv[1:]]
    pages.listed_blocks_exist()
    pages.options_exist()
    ran = listed = 0
    for page in chosen:
        began = time.monotonic()
        with Scratch("pages-") as place:
            words = NEEDS.get(page.name, lambda _: {})(pathlib.Path(place))
            of_page = pages.run_page(page, words)
        ran, listed = ran + of_page[0], listed + of_page[1]
        if any(of_page):
            print(f"{page}: {of_page[0]} blocks run, {of_page[1]} listed, {time.monotonic() - began:.1f} s", flush=True)
    print(f"ok: {ran} blocks of {len(chosen)} pages run, {listed} are listed with a reason")


if __name__ == "__main__":
    main()
