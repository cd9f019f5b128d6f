"""A proxy between a source and its replica that spoils what the source sends: for tests of what a replica does then.

It knows as much of the protocol as it takes to find the packets of a dump. `spoil(n, packet)` is called with each packet
of a dump (its number in this dump, its bytes with the header) and says what is sent instead: a list of byte strings, in
which CLOSE ends the connection and STALL sends nothing more until the other side goes away.
"""

import random
import socket
import struct
import threading
import zlib

from omnibus import free_port

CLOSE, STALL = object(), object()
DUMPS = (0x12, 0x1E)


class Proxy:
    def __init__(self, target_port):
        self.target, self.port = target_port, free_port()
        self.spoil = None
        self.dumps = 0
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def close(self):
        self.listener.close()

    def serve(self, client):
        try:
            source = socket.create_connection(("127.0.0.1", self.target))
        except OSError:
            client.close()
            return
        state = {"dump": False}
        back = threading.Thread(target=self.back, args=(source, client, state), daemon=True)
        back.start()
        try:
            while True:
                packet = read_packet(client)
                if packet[3] == 0 and packet[4:5] and packet[4] in DUMPS:
                    state["dump"] = True
                source.sendall(packet)
        except OSError:
            pass
        for end in (source, client):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def back(self, source, client, state):
        number, spoil = 0, None
        try:
            while True:
                packet = read_packet(source)
                if not state["dump"]:
                    client.sendall(packet)
                    continue
                if spoil is None:
                    self.dumps += 1
                    spoil = self.spoil or (lambda n, packet: [packet])
                for piece in spoil(number, packet):
                    if piece is CLOSE:
                        raise OSError
                    if piece is STALL:
                        client.recv(1 << 16, socket.MSG_PEEK)
                        return
                    client.sendall(piece)
                number += 1
        except OSError:
            for end in (client, source):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


def read_packet(connection):
    head = exactly(connection, 4)
    return head + exactly(connection, int.from_bytes(head[:3], "little"))


def exactly(connection, count):
    data = bytearray()
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise OSError
        data += more
    return bytes(data)


def framed(payload, number):
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def mended(event):
    """The event with the checksum that its bytes have."""
    return event[:-4] + struct.pack("<I", zlib.crc32(event[:-4]))


class Vandal:
    """Spoils one packet of a dump, chosen and in a way chosen by the seed."""

    def __init__(self, seed, among):
        self.r = random.Random(seed)
        self.at = self.r.randrange(among)
        self.way = self.r.choice([name for name in dir(self) if name.startswith("way_")])
        self.held, self.done = None, False

    def __call__(self, number, packet):
        if self.done or number < self.at:
            return [packet]
        if self.held is not None:
            held, self.held, self.done = self.held, None, True
            return [framed(packet[4:], held[3]), framed(held[4:], packet[3])]
        if self.way != "way_swap":
            self.done = True
        return getattr(self, self.way)(packet, packet[5:])

    def again(self, packet, event):
        return [framed(b"\0" + event, packet[3])]

    def flipped(self, event, low=0):
        data = bytearray(event)
        for _ in range(self.r.choice([1, 1, 1, 4])):
            if len(data) > low:
                data[self.r.randrange(low, len(data))] ^= 1 << self.r.randrange(8)
        return bytes(data)

    def way_flip(self, packet, event):
        return self.again(packet, self.flipped(event))

    def way_flip_body_and_mend(self, packet, event):
        return self.again(packet, mended(self.flipped(event, 19)))

    def way_cut(self, packet, event):
        return self.again(packet, event[:self.r.randrange(len(event) + 1)])

    def way_cut_and_mend(self, packet, event):
        event = event[:self.r.randrange(23, max(len(event), 24))]
        event = event[:9] + struct.pack("<I", len(event)) + event[13:]
        return self.again(packet, mended(event))

    def way_longer(self, packet, event):
        return self.again(packet, event + self.r.randbytes(self.r.randint(1, 50)))

    def way_longer_and_mend(self, packet, event):
        event = event[:-4] + self.r.randbytes(self.r.randint(1, 50)) + event[-4:]
        return self.again(packet, mended(event[:9] + struct.pack("<I", len(event)) + event[13:]))

    def way_length(self, packet, event):
        return self.again(packet, event[:9] + struct.pack("<I", self.r.getrandbits(32)) + event[13:])

    def way_type(self, packet, event):
        # Of kinds that nobody knows: one event in the place of another with a checksum that fits is what a source may say.
        return self.again(packet, mended(event[:4] + bytes([self.r.randrange(60, 130)]) + event[5:]))

    def way_repeat(self, packet, event):
        return [packet, framed(packet[4:], (packet[3] + 1) % 256)]

    def way_drop(self, packet, event):
        return []

    def way_swap(self, packet, event):
        self.held = packet
        return []

    def way_number(self, packet, event):
        return [framed(packet[4:], self.r.randrange(256))]

    def way_garbage(self, packet, event):
        return [self.r.randbytes(self.r.randint(1, 3000)), CLOSE]

    def way_huge(self, packet, event):
        return [struct.pack("<I", 0xFFFFFF)[:3] + bytes([packet[3]]) + b"\0" + bytes(100), CLOSE]

    def way_half(self, packet, event):
        return [packet[:self.r.randrange(len(packet))], CLOSE]

    def way_close(self, packet, event):
        return [CLOSE]

    def way_no_event(self, packet, event):
        return [framed(self.r.choice([b"", b"\0", b"\xfe", b"\xfe\0\0\0\0", b"\xff", b"\xff\xd4\x04#HY000Could not find first log", b"\xfb/etc/passwd"]), packet[3])]
