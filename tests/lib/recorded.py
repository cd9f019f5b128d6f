"""Reads what tests/tools/record_io.c has recorded, and builds from it what a power cut may leave.

What was synced is there. Of the rest there is any part: a write by sectors of 512 bytes or of 4 KiB; lengths with or without
the bytes; a change of names in a folder only if those before it in that folder are there, and for certain once the folder was
synced. That is less than ext4 promises: there, a sync of a file also brings its name.
"""

import os
import pathlib
import struct
import time

HEADER = struct.Struct("<QQQQQIHHcB6x")
CHANGES = b"OWTFSRULM"
KINDS = CHANGES + b"wtfs"


class Record:
    __slots__ = ("id", "time", "inode", "offset", "length", "kind", "done", "path", "other", "data")


class Trace:
    """The records of a trace, oldest first; `end` is where the last whole one ends, as a kill may tear the one behind it."""

    def __init__(self, path):
        bytes_ = memoryview(pathlib.Path(path).read_bytes())
        self.records, self.end, at = [], 0, 0
        # The ids of each process begin anew.
        while at + HEADER.size <= len(bytes_):
            r = Record()
            r.id, r.time, r.inode, r.offset, r.length, data, path, other, r.kind, r.done = HEADER.unpack_from(bytes_, at)
            at += HEADER.size
            if at + path + other + data > len(bytes_):
                break
            r.path = str(bytes_[at:at + path], "utf-8")
            r.other = str(bytes_[at + path:at + path + other], "utf-8")
            r.data = bytes_[at + path + other:at + path + other + data]
            at += path + other + data
            if r.kind not in KINDS:
                raise ValueError(f"no record at byte {self.end} of {path}")
            self.records.append(r)
            self.end = at


def settle(path, root, base=None):
    """After the program was killed: records how its writes that were under way have ended, and changes of names that nobody
    saw, as the files tell. A record that the kill has torn is taken off: the operation had not begun, and what follows would be
    read as its data. `root` is the folder that was recorded, and `base` what was in it before."""
    disk, found = Disk(root, base), Trace(path)
    for r in found.records:
        disk.play(r)
    os.truncate(path, found.end)
    with open(path, "ab") as trace:
        def add(kind, r, length, before="", after=""):
            names = before.encode(), after.encode()
            time_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            trace.write(HEADER.pack(r.id if r else 0, time_ns, r.inode if r else 0, r.offset if r else 0, length, 0,
                                    *map(len, names), kind, 1 if r is None else 0) + b"".join(names))

        for _, (r, *_) in disk.open.values():
            try:
                with open(r.path, "rb") as file:
                    file.seek(r.offset)
                    found = file.read(len(r.data))
            except FileNotFoundError:
                continue
            same = next((n for n, pair in enumerate(zip(found, r.data)) if pair[0] != pair[1]), min(len(found), len(r.data)))
            add(b"w", r, same)
        for file in pathlib.Path(root).rglob("*"):
            if file.is_file():
                inode, node = file.stat().st_ino, disk.find(str(file))
                before = disk.last_place(inode)
                if before and (node is None or node.inode not in (None, inode)):
                    add(b"R", None, 0, before, str(file))


class File:
    """A file's bytes that are durable, and what was done to it since, in order: [record, ended, durable].

    What is durable waits behind older records that are not: where they meet, the newer bytes hold."""

    def __init__(self, contents=b""):
        self.durable, self.pending, self.inode = bytearray(contents), [], None

    def apply(self, contents, record, keep=None, sector=4096):
        """Does what a record says; of a write only the sectors that `keep` says."""
        if record.kind == b"T" or record.kind == b"O":
            size = record.length
            del contents[size:]
            contents.extend(bytes(size - len(contents)))
        elif record.kind == b"F":
            end = record.offset + record.length
            contents.extend(bytes(max(0, end - len(contents))))
        else:
            data, start = record.data, record.offset
            end = start + len(data)
            at = start
            while at < end:
                piece = min(end, (at // sector + 1) * sector) if keep else end
                if keep is None or keep():
                    contents.extend(bytes(max(0, piece - len(contents))))
                    contents[at:piece] = data[at - start:piece - start]
                at = piece

    def sync(self, covered):
        for entry in self.pending:
            entry[2] = entry[2] or entry[0] in covered
        upto = next((n for n, entry in enumerate(self.pending) if not entry[2]), len(self.pending))
        for entry in self.pending[:upto]:
            self.apply(self.durable, entry[0])
        del self.pending[:upto]

    def image(self, rng, chance, sector):
        contents = bytearray(self.durable)
        for record, _, durable in self.pending:
            if durable:
                self.apply(contents, record)
            elif record.kind == b"W":
                self.apply(contents, record, (lambda: rng.random() < chance), sector)
            elif rng.random() < chance:
                self.apply(contents, record)
        return contents


class Folder:
    """Names that are durable, and changes since: (name, node or None)."""

    def __init__(self):
        self.durable, self.pending, self.now = {}, [], {}

    def set(self, name, node):
        self.pending.append((name, node))
        if node is None:
            self.now.pop(name, None)
        else:
            self.now[name] = node

    def sync(self, upto):
        for name, node in self.pending[:upto]:
            self.put(self.durable, name, node)
        del self.pending[:upto]

    @staticmethod
    def put(names, name, node):
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node

    def image(self, rng, chance):
        names = dict(self.durable)
        kept = len(self.pending)
        if chance < 1:
            kept = rng.randint(0, kept) if chance > 0 else 0
        for name, node in self.pending[:kept]:
            self.put(names, name, node)
        return names


class Disk:
    """What is on the disk below `root` while records are played to it."""

    def __init__(self, root, base=None):
        self.root, self.top = str(root), Folder()
        self.inodes, self.open, self.syncs = {}, {}, {}
        if base:
            self.load(self.top, pathlib.Path(base))

    def load(self, folder, path):
        for entry in path.iterdir():
            if entry.is_dir():
                node = Folder()
                self.load(node, entry)
            elif entry.is_file():
                node = File(entry.read_bytes())
            else:
                continue
            folder.durable[entry.name] = folder.now[entry.name] = node

    def find(self, path, now=True):
        node = self.top
        for name in path[len(self.root):].split("/"):
            if name and isinstance(node, Folder):
                node = node.now.get(name)
            elif name:
                return None
        return node

    def place(self, path):
        parent, _, name = path.rpartition("/")
        return self.find(parent), name

    def opened(self, r):
        """The file or folder that an operation on an open one means. A name that the file did not have when it was last seen
        was given by a system call that nobody sees (Rust's tempfile makes them without libc)."""
        path = r.path.removesuffix(" (deleted)")
        node = self.find(path)
        if isinstance(node, Folder):
            return node
        if node is None or node.inode not in (None, r.inode):
            known, before = self.inodes.get(r.inode, (None, None))
            if known is None or path != r.path:
                return known or node
            if self.last_place(r.inode):
                self.rename(before, path)
                node = known
            elif node is None:
                return None
        node.inode = r.inode
        self.inodes[r.inode] = (node, path)
        return node

    def last_place(self, inode):
        """The path at which the file of a number was seen last, if it is there still: the number of one that is gone is given to another."""
        known, path = self.inodes.get(inode, (None, None))
        return path if known is not None and self.find(path) is known else None

    def rename(self, before, after, keep=False):
        folder, name = self.place(before)
        target, other = self.place(after)
        node = folder.now.get(name) if folder else None
        if node is None or target is None:
            return
        target.set(other, node)
        if not keep:
            folder.set(name, None)
        if isinstance(node, File):
            self.inodes[node.inode] = (node, after)

    def play(self, r):
        kind = r.kind
        if r.id == 1 and kind in CHANGES:
            # Another process: what the one before had under way has ended.
            self.open, self.syncs = {}, {}
        if kind == b"O":
            node = self.find(r.path)
            if node is None:
                folder, name = self.place(r.path)
                if folder is None:
                    return
                node = File()
                node.inode = r.inode
                self.inodes[r.inode] = (node, r.path)
                folder.set(name, node)
            elif r.done and isinstance(node, File):
                node.pending.append([r, True, False])
        elif kind in b"WTF":
            node = self.opened(r)
            if isinstance(node, File):
                entry = [r, kind == b"F" and r.done, False]
                node.pending.append(entry)
                if r.id:
                    self.open[r.id] = (node, entry)
        elif kind in b"wtf":
            self.end(r)
        elif kind == b"S":
            node = self.opened(r)
            if isinstance(node, File):
                self.syncs[r.id] = (node, {record for record, ended, _ in node.pending if ended})
            elif isinstance(node, Folder):
                self.syncs[r.id] = (node, len(node.pending))
        elif kind == b"s":
            node, covered = self.syncs.pop(r.id, (None, None))
            if node is not None and r.done:
                node.sync(covered)
        else:
            self.names(r)

    def end(self, r):
        node, entry = self.open.pop(r.id, (None, None))
        if node is None:
            return
        entry[1] = True
        if r.kind == b"w":
            entry[0].data = entry[0].data[:r.length]
            if r.done and entry in node.pending:
                node.sync({entry[0]})
        elif r.kind == b"t" and not r.done and entry in node.pending:
            node.pending.remove(entry)

    def names(self, r):
        folder, name = self.place(r.path)
        if folder is None or r.path == self.root:
            return
        if r.kind == b"M":
            folder.set(name, Folder())
        elif r.kind == b"U":
            folder.set(name, None)
        else:
            self.rename(r.path, r.other, keep=r.kind == b"L")

    def write(self, path, rng):
        """Builds one of the images that a power cut now may leave. Says which kind it is."""
        chance = rng.choice([0, 1, rng.random(), rng.random(), 0.5, 0.9])
        names = rng.choice([0, 1, 0.5, 0.5])
        sector = rng.choice([512, 4096])
        self.put(self.top, pathlib.Path(path), rng, chance, names, sector, {})
        return f"data {chance:.2f}, names {names}, sectors of {sector}"

    def put(self, folder, path, rng, chance, names, sector, made):
        path.mkdir()
        for name, node in sorted(folder.image(rng, names).items()):
            if isinstance(node, Folder):
                self.put(node, path / name, rng, chance, names, sector, made)
            elif id(node) in made:
                os.link(made[id(node)], path / name)
            else:
                contents = node.image(rng, chance, sector)
                (path / name).write_bytes(contents)
                made[id(node)] = path / name
