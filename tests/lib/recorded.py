"""Reads what tests/tools/record_io.c has recorded, and builds from it what a power cut may leave.

What was synced is there. Of the rest there is any part: a write by sectors of 512 bytes or of 4 KiB; lengths with or without
the bytes; a change of names in a folder only if those before it in that folder are there, and for certain once the folder was
synced. That is less than ext4 promises: there, a sync of a file also brings its name.
"""

import copy
import os
import pathlib
import struct
import time

HEADER = struct.Struct("<QQQQQIHHcB6x")
CHANGES = b"OWTFSRULMN"
NAMES = b"ORULM"
KINDS = CHANGES + b"wtfs"


class Unseen(Exception):
    """The files tell of something that is not in the trace: the recorder does not see all, and no image of it is to be trusted."""


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
    """After the program has ended: records how what was under way at its end has ended, as the files tell, and compares what the
    whole trace makes with the files, byte for byte (Unseen). A record that a kill has torn is taken off: the operation had not begun,
    and what follows would be read as its data. `root` is the folder that was recorded, and `base` what was in it before."""
    disk, found = base.copy() if base else Disk(root), Trace(path)
    in_doubt = None
    for r in found.records:
        disk.play(r)
        in_doubt = r if r.kind == b"N" else None if r.kind in NAMES else in_doubt
    os.truncate(path, found.end)
    with open(path, "ab") as trace:
        def add(kind, r, length=0, inode=0, done=False):
            names = (r.path.encode(), r.other.encode()) if kind in NAMES else (b"", b"")
            time_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            trace.write(HEADER.pack(r.id, time_ns, inode or r.inode, r.offset, length, 0, *map(len, names), kind, done) + b"".join(names))

        for _, (r, *_) in disk.open.values():
            try:
                file = open(disk.path_of(r), "rb")
            except FileNotFoundError:
                continue
            with file:
                if r.kind == b"W":
                    file.seek(r.offset)
                    there = file.read(len(r.data))
                    same = next((n for n, pair in enumerate(zip(there, r.data)) if pair[0] != pair[1]), min(len(there), len(r.data)))
                    add(b"w", r, same)
                else:
                    size = os.fstat(file.fileno()).st_size
                    add(r.kind.lower(), r, done=size == r.length if r.kind == b"T" else size >= r.offset + r.length)
        if in_doubt is not None:
            kind, after = bytes([in_doubt.offset]), in_doubt.other or in_doubt.path
            inode = os.stat(after).st_ino if os.path.exists(after) else 0
            happened = not inode if kind == b"U" else not os.path.exists(in_doubt.path) if kind == b"R" else inode
            in_doubt.offset = 0
            if happened:
                add(kind, in_doubt, inode=inode, done=True if kind != b"O" else in_doubt.done)
    disk = base.copy() if base else Disk(root)
    for r in Trace(path).records:
        disk.play(r)
    disk.compare()


class File:
    """A file's bytes that are durable, and what was done to it since, in order: [record, ended, durable].

    What is durable waits behind older records that are not: where they meet, the newer bytes hold."""

    def __init__(self, contents=b""):
        self.durable, self.pending = bytearray(contents), []

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

    def now(self):
        contents = bytearray(self.durable)
        for record, *_ in self.pending:
            self.apply(contents, record)
        return contents

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
    """What is on the disk below `root` while records are played to it. `base` says that what is in it now was there before."""

    def __init__(self, root, base=False):
        self.root, self.top = str(root), Folder()
        # What an open file or folder is, whatever name it has: by its number, until that is given to another.
        self.inodes, self.open, self.syncs = {}, {}, {}
        if base:
            self.load(self.top, pathlib.Path(root))

    def copy(self):
        """The same before anything is played."""
        return copy.deepcopy(self)

    def load(self, folder, path):
        self.inodes[path.stat().st_ino] = folder
        for entry in path.iterdir():
            if entry.is_dir():
                node = Folder()
                self.load(node, entry)
            elif entry.is_file():
                node = File(entry.read_bytes())
                self.inodes[entry.stat().st_ino] = node
            else:
                continue
            folder.durable[entry.name] = folder.now[entry.name] = node

    def find(self, path):
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
        """The file or folder that an operation on an open one means."""
        node = self.inodes.get(r.inode)
        if node is None:
            raise Unseen(f"{r.path} is used, and nobody has seen it made")
        return node

    def path_of(self, r):
        """Where the file of an operation is now; where it was when the operation began, if it is nowhere."""
        node, left = self.inodes[r.inode], [(self.top, self.root)]
        while left:
            folder, path = left.pop()
            for name, entry in folder.now.items():
                if entry is node:
                    return f"{path}/{name}"
                if isinstance(entry, Folder):
                    left.append((entry, f"{path}/{name}"))
        return r.path

    def compare(self, folder=None, path=None):
        """Raises Unseen where the names or the bytes that the records make are not those of the files."""
        folder, path = folder or self.top, pathlib.Path(path or self.root)
        there = {entry.name: entry for entry in path.iterdir() if entry.is_dir() or entry.is_file()}
        if there.keys() != folder.now.keys():
            raise Unseen(f"{path}: {sorted(there.keys() ^ folder.now.keys())} are in the folder or in the records alone")
        for name, node in folder.now.items():
            if isinstance(node, Folder):
                self.compare(node, path / name)
            elif there[name].read_bytes() != node.now():
                raise Unseen(f"{path / name} has other bytes than the records make")

    def rename(self, before, after, keep=False):
        folder, name = self.place(before)
        target, other = self.place(after)
        node = folder.now.get(name) if folder else None
        if node is None or target is None:
            raise Unseen(f"{before} becomes {after}, and nobody has seen it made")
        target.set(other, node)
        if not keep:
            folder.set(name, None)

    def play(self, r):
        kind = r.kind
        if r.id == 1 and kind in CHANGES:
            # Another process: what the one before had under way has ended.
            self.open, self.syncs = {}, {}
        if kind == b"O":
            self.made(r)
        elif kind in b"WTF":
            node = self.opened(r)
            if isinstance(node, File):
                entry = [r, False, False]
                node.pending.append(entry)
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
        elif kind != b"N" and r.done:
            self.names(r)

    def made(self, r):
        """A file that was opened, and made or emptied by that, if it was not there or is to be empty."""
        node = self.find(r.path)
        if node is None:
            folder, name = self.place(r.path)
            node = self.inodes[r.inode] = File()
            # The kernel tells so of one without a name.
            if not r.path.endswith(" (deleted)"):
                if folder is None:
                    raise Unseen(f"{r.path} is made in a folder that nobody has seen")
                folder.set(name, node)
        elif self.inodes.get(r.inode) is not node:
            raise Unseen(f"{r.path} is another file than was seen there")
        elif r.done and isinstance(node, File):
            node.pending.append([r, True, False])

    def end(self, r):
        node, entry = self.open.pop(r.id, (None, None))
        if node is None:
            return
        entry[1] = True
        if r.kind == b"w":
            entry[0].data = entry[0].data[:r.length]
            if r.done and entry in node.pending:
                node.sync({entry[0]})
        elif not r.done and entry in node.pending:
            node.pending.remove(entry)

    def names(self, r):
        if r.path == self.root:
            self.inodes[r.inode] = self.top
            return
        folder, name = self.place(r.path)
        if folder is None:
            raise Unseen(f"{r.path}: nobody has seen its folder made")
        if r.kind == b"M":
            node = self.inodes[r.inode] = Folder()
            folder.set(name, node)
        elif r.kind == b"U":
            if name not in folder.now:
                raise Unseen(f"{r.path} is removed, and nobody has seen it made")
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
