"""Prints a server's row events, read with python-mysql-replication. Arguments and output: ../README.md."""

import datetime
import decimal
import json
import sys
import time

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import QueryEvent, XidEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

KINDS = {WriteRowsEvent: "insert", UpdateRowsEvent: "update", DeleteRowsEvent: "delete"}
BIT, JSON = 16, 245


def document(value):
    """A JSON value with text where the library has bytes."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {document(key): document(item) for key, item in value.items()}
    return [document(item) for item in value] if isinstance(value, list) else value


def plain(value, column):
    if value is None:
        return None
    if column.type == JSON:
        return {"json": document(value)}
    if column.type == BIT:
        return str(int(value, 2))
    if isinstance(value, (bytes, bytearray)):
        return {"hex": bytes(value).hex()}
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, (set, frozenset)):
        return {"set": sorted(value)}
    if isinstance(value, datetime.timedelta):
        micros = round(value / datetime.timedelta(microseconds=1))
        seconds, rest = divmod(abs(micros), 1_000_000)
        sign = "-" if micros < 0 else ""
        return {"text": f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{rest:06d}"}
    if isinstance(value, (datetime.date, datetime.datetime)):
        return {"text": str(value)}
    return format(value, "f") if isinstance(value, decimal.Decimal) else repr(value)


def rows(event):
    for row in event.rows:
        images = {"before": row.get("before_values"), "after": row.get("after_values")}
        if isinstance(event, WriteRowsEvent):
            images["after"] = row["values"]
        if isinstance(event, DeleteRowsEvent):
            images["before"] = row["values"]
        line = {"schema": event.schema, "table": event.table, "kind": KINDS[type(event)]}
        for name, image in images.items():
            line[name] = None if image is None else [plain(v, c) for v, c in zip(image.values(), event.columns)]
        yield line


def follow(settings, server_id, place):
    """Reads until the connection is lost (False) or the marker has been seen (True); `place` follows the commits."""
    stream = BinLogStreamReader(connection_settings=settings, server_id=server_id, blocking=True, resume_stream=True,
                                log_file=place[0], log_pos=place[1], slave_heartbeat=1,
                                only_events=[*KINDS, QueryEvent, XidEvent])
    pending = []
    try:
        for event in stream:
            if type(event) in KINDS:
                pending += rows(event)
                continue
            if isinstance(event, QueryEvent) and event.query == "BEGIN":
                continue
            for line in pending:
                print(json.dumps(line), flush=True)
            place[:] = stream.log_file, stream.log_pos
            if any(line["table"] == "marker" for line in pending):
                return True
            pending = []
    except pymysql.err.OperationalError as error:
        print(f"connection lost: {error}", file=sys.stderr, flush=True)
    finally:
        stream.close()
    return False


def main():
    port, user, password, server_id, file, position = sys.argv[1:7]
    settings = {"host": "127.0.0.1", "port": int(port), "user": user, "passwd": password}
    place = [file, int(position)]
    while not follow(settings, int(server_id), place):
        time.sleep(0.1)


if __name__ == "__main__":
    main()
