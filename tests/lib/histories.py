"""Checks histories of transactions in the manner of Elle: what clients asked and were told, and nothing else.

A transaction is what one client did between BEGIN and the end, with what it was told of the end: `ok`, `failed`, or `unknown`
where the connection broke. Its operations are appends of values that no other append has, and reads:
- ("append", key, value), and ("read", key, [values]) of a list, whose order is the order of its versions;
- ("add", key, value), and ("find", key, {values}) of a set: rows that a predicate finds.

From these follow the dependencies: who wrote what another overwrote (ww) or read (wr), and who read what another changed
afterwards (rw). A level of isolation forbids cycles of some of them:
- READ COMMITTED: ww and wr (G0, G1c), beside reads of what was aborted (G1a) or not the last of its writer (G1b);
- REPEATABLE READ: also rw of transactions that only read (their snapshot is one point of the order of commits). Those
  that write do so over the newest versions, so theirs may close a cycle, as with InnoDB;
- SERIALIZABLE: every cycle (G-single, G2), also with what was over before another began.
"""

import bisect
import collections
import itertools

LEVELS = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]


class Transaction:
    ids = itertools.count()

    def __init__(self, begun):
        self.id, self.ops, self.status, self.begun, self.ended = next(Transaction.ids), [], "unknown", begun, None

    def __repr__(self):
        return f"T{self.id}[{self.status} " + " ".join(f"{kind} {key} {value}" for kind, key, value in self.ops) + "]"

    def reads_only(self):
        return all(kind in ("read", "find") for kind, _, _ in self.ops)


class History:
    """A finished history. `final_lists` and `final_sets` are what is there at the end, by key."""

    def __init__(self, transactions, final_lists, final_sets):
        self.transactions, self.lists, self.sets = transactions, final_lists, final_sets
        self.problems, self.edges = [], collections.defaultdict(dict)
        self.writer, self.appends = {}, collections.defaultdict(list)
        for trx in transactions:
            for kind, key, value in trx.ops:
                if kind in ("append", "add"):
                    self.writer[kind, key, value] = trx
                    self.appends[trx.id, kind, key].append(value)

    def check(self, level):
        """What is wrong with it, in words; nothing, if nothing is."""
        self.check_ends()
        for trx in self.transactions:
            if trx.status == "ok":
                self.check_reads(trx)
        if not self.problems:
            self.check_cycles(level)
        return self.problems

    def complain(self, what, *transactions):
        self.problems.append(f"{what}: " + ", ".join(map(repr, transactions)))

    def check_ends(self):
        """What was acknowledged is there, once, and what was refused is not."""
        for trx in self.transactions:
            for kind, key, value in trx.ops:
                if kind not in ("append", "add"):
                    continue
                there = list(self.lists.get(key, []) if kind == "append" else self.sets.get(key, [])).count(value)
                if trx.status == "ok" and there == 0:
                    self.complain(f"lost: {value} of {key}", trx)
                if there > 1:
                    self.complain(f"twice: {value} of {key}", trx)
                if trx.status == "failed" and there:
                    self.complain(f"kept though refused (G1a): {value} of {key}", trx)

    def check_reads(self, trx):
        own = collections.defaultdict(list)
        for kind, key, value in trx.ops:
            if kind in ("append", "add"):
                own[kind, key].append(value)
                continue
            writes = "append" if kind == "read" else "add"
            mine = own[writes, key]
            if kind == "read":
                final = self.lists.get(key, [])
                if value != final[:len(value)]:
                    self.complain(f"{key} was {value} and is {final}", trx)
                if mine and value[-len(mine):] != mine:
                    self.complain(f"own appends {mine} are not the end of {key}", trx)
            elif not set(mine) <= set(value):
                self.complain(f"own rows {mine} are not found in {key}", trx)
            if len(set(value)) != len(value):
                self.complain(f"a value twice in {key}: {value}", trx)
            for item in value:
                source = self.writer.get((writes, key, item))
                if source is None:
                    self.complain(f"{item} of {key} was written by nobody", trx)
                elif source is not trx and source.status == "failed":
                    self.complain(f"G1a: {item} of {key} was refused", trx, source)
                elif source is not trx and not set(self.appends[source.id, writes, key]) <= set(value):
                    self.complain(f"G1b: {item} of {key} came without the others", trx, source)

    def edge(self, kind, source, target):
        if source is not target and source.status != "failed" and target.status != "failed":
            self.edges[source.id].setdefault(target.id, kind)

    def check_cycles(self, level):
        rank = LEVELS.index(level)
        for key, values in self.lists.items():
            order = [self.writer.get(("append", key, value)) for value in values]
            for first, second in zip(order, order[1:]):
                if first and second:
                    self.edge("ww", first, second)
        for trx in self.transactions:
            if trx.status != "ok":
                continue
            depends = rank == 3 or rank == 2 and trx.reads_only()
            for kind, key, value in trx.ops:
                if kind == "read":
                    self.read_edges(trx, key, value, depends)
                elif kind == "find":
                    for item in set(value) | set(self.sets.get(key, [])):
                        writer = self.writer.get(("add", key, item))
                        if writer and item in value:
                            self.edge("wr", writer, trx)
                        elif writer and depends:
                            self.edge("rw", trx, writer)
        if rank == 3:
            self.time_edges()
        cycle = find_cycle(self.edges)
        if cycle:
            by_id = {trx.id: trx for trx in self.transactions}
            kinds = [self.edges[a].get(b, "") for a, b in zip(cycle, cycle[1:] + cycle[:1])]
            name = {0: "G0 or G1c", 1: "G-single"}.get(kinds.count("rw"), "G2")
            self.complain(f"{name}, a cycle of {kinds}", *(by_id[at] for at in cycle if at in by_id))

    def read_edges(self, trx, key, value, depends):
        final = self.lists.get(key, [])
        if value:
            self.edge("wr", self.writer["append", key, value[-1]], trx)
        if depends and len(value) < len(final):
            following = self.writer.get(("append", key, final[len(value)]))
            if following:
                self.edge("rw", trx, following)

    def time_edges(self):
        """What was over before another began: by a chain of moments, which are nodes of their own."""
        done = sorted((trx for trx in self.transactions if trx.status == "ok"), key=lambda trx: trx.ended)
        for at, trx in enumerate(done):
            self.edges[trx.id].setdefault(("moment", at), "rt")
            if at:
                self.edges["moment", at - 1].setdefault(("moment", at), "rt")
        ends = [trx.ended for trx in done]
        for trx in self.transactions:
            before = bisect.bisect_left(ends, trx.begun) - 1
            if before >= 0 and trx.status == "ok":
                self.edges["moment", before].setdefault(trx.id, "rt")


def find_cycle(edges):
    """Some cycle of a graph, as short as a search from one of its nodes finds it; or nothing."""
    state, order = {}, []
    for root in list(edges):
        if root in state:
            continue
        stack = [(root, iter(edges.get(root, ())))]
        state[root] = "open"
        order.append(root)
        while stack:
            node, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                state[node] = "done"
                stack.pop()
            elif state.get(target) == "open":
                return shortest(edges, target)
            elif target not in state:
                state[target] = "open"
                stack.append((target, iter(edges.get(target, ()))))
    return None


def shortest(edges, start):
    came, queue = {start: None}, collections.deque([start])
    while queue:
        node = queue.popleft()
        for target in edges.get(node, ()):
            if target == start:
                path = [node]
                while came[path[-1]] is not None:
                    path.append(came[path[-1]])
                return path[::-1]
            if target not in came:
                came[target] = node
                queue.append(target)
    raise AssertionError("a node of a cycle leads to itself")
