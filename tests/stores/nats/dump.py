"""Prints all messages of a JetStream stream, in lines of JSON: `dump.py PORT STREAM`."""

import asyncio
import json
import sys

import nats


async def main(port, name):
    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    stream = connection.jetstream()
    last = (await stream.stream_info(name)).state.last_seq
    seen = 0
    reader = await stream.subscribe("", stream=name, ordered_consumer=True)
    while seen < last:
        message = await reader.next_msg(timeout=60)
        seen = message.metadata.sequence.stream
        headers = dict(message.headers or {})
        print(json.dumps({"topic": message.subject, "key": headers.pop("key", None), "value": message.data.decode(), "headers": headers}))
    await connection.close()


asyncio.run(main(*sys.argv[1:]))
