"""A second reader of datasets and states, in plain NumPy, from docs/format.md, docs/order.md and docs/resume.md alone.

It shares nothing with penstock, so that what both say is what the pages say; hashes are those of _second_hashes.py.
"""

import json
import math
from collections import Counter
from functools import cache, reduce
from itertools import count, islice, pairwise
from pathlib import Path

import numpy as np
from _second_hashes import crc32c, crcs, xxh3

BLOCK, MASK, STEP, MIXED = 4096, 2**64 - 1, 0x9E3779B97F4A7C15, 0x6D697874757265


def sealed(data):
    """The members of JSON that ends with its own check value."""
    content, zeroed = json.loads(data), data[:-26] + b'\n  "crc32c": "00000000"\n}\n'
    assert content.pop("crc32c") == f"{crc32c(zeroed):08x}", "not what was written"
    return content


def record_type(fields):
    """The NumPy type of a list of fields, or of a type string."""
    if isinstance(fields, str):
        return np.dtype(fields)
    return np.dtype([(name, record_type(kind), *(tuple(shape) for shape in rest)) for name, kind, *rest in fields])


class Shard:
    """Its span i is records [firsts[i], firsts[i + 1]) and has the entry entries[ids[i]]."""

    def __init__(self, folder, stated, manifest):
        self.folder, self.stated = folder, stated
        self.files = {name: (folder / name).read_bytes() for name in stated["files"]}
        for name, data in self.files.items():
            checks = np.fromfile(folder / f"{name}.crc", "<u4").tolist()
            assert (len(data), crcs(data)) == (stated["files"][name], checks), f"{folder / name}: not what was written"
        layout, fields = manifest["layout"], record_type(manifest["fields"])
        stored = record_type([*manifest["fields"], ["metadata_id", "<u4"]]) if layout == "ids" else fields
        stream = np.frombuffer(self.files["stream.bin"], stored) if fields.names else np.zeros(0, fields)
        index = np.frombuffer(self.files.get("metadata.index", bytes(8)), "<u8").astype("i8")
        self.firsts, self.ids, offsets = np.zeros(len(index), "i8"), np.arange(len(index) - 1), index
        if layout == "compact":
            (self.firsts, offsets), self.ids = index.reshape(-1, 2).T, np.arange(len(index) // 2 - 1)
            blocks = np.searchsorted(self.firsts, np.arange(0, len(stream), BLOCK), "right") - 1
            directory = np.frombuffer(self.files["metadata.directory"], "<u8")
            assert directory.tolist() == [*blocks.tolist(), len(self.ids)], f"{folder}: directory"
        elif layout == "ids":
            ids = stream["metadata_id"].astype("i8")
            begins = np.flatnonzero(np.diff(ids, prepend=-1))
            self.firsts, self.ids = np.append(begins, len(ids)), ids[begins]
        for found, end in (offsets, len(self.files.get("metadata.bin", b""))), (self.firsts, len(stream)):
            is_whole = found[0] == 0 and (found[-1] == end or manifest["mode"] == "tokens")
            assert is_whole and (np.diff(found) >= 0).all(), f"{folder}: where spans and entries begin"
        counts = len(stream), len(self.ids), len(offsets) - 1
        assert counts == tuple(stated[name] for name in ("records", "spans", "entries")), f"{folder}: counts"
        self.stream = stream[list(fields.names or ())].astype(fields)
        self.entries = [self.files["metadata.bin"][a:b] for a, b in pairwise(offsets.tolist())]
        self.columns = dict(self._columns(manifest.get("columns", ())))

    def _columns(self, columns):
        """Names, and values of each entry as stored and as the dataset gives them: in categories its numbers."""
        begin, entries = 0, self.stated["entries"]
        for name, kind, *shape in columns:
            table = self.stated["values"]["tables"].get(name)
            if table is not None:
                table = np.append(np.arange(table) if isinstance(table, int) else np.array(table, "i8"), -1)
                kind = "<i1" if len(table) <= 129 else "<i2" if len(table) <= 32769 else "<i4"
            dtype, begin = np.dtype((kind, tuple(*shape))), -(-begin // 64) * 64
            stored = np.ndarray((entries, *dtype.shape), dtype.base, self.files["columns.bin"], begin)
            yield name, (stored, stored if table is None else table[stored].astype("i4"))
            begin += entries * dtype.itemsize
        assert begin == len(self.files.get("columns.bin", b"")), f"{self.folder}: the end of its columns"


class Dataset:
    """Its records, `stream`; `spans`: (first record, one after the last, shard, number of the entry, entry) each."""

    def __init__(self, path):
        self.manifest = manifest = sealed((Path(path) / "dataset.json").read_bytes())
        assert manifest["format"] == "penstock" and manifest["version"] in (1, 2), f"{path}: of another format"
        self.shards = [Shard(Path(path) / shard["name"], shard, manifest) for shard in manifest["shards"]]
        parts = [shard.stream for shard in self.shards]
        self.stream, self.spans, begin = np.concatenate([np.zeros(0, record_type(manifest["fields"])), *parts]), [], 0
        for n, shard in enumerate(self.shards):
            for id_, (first, stop) in zip(shard.ids.tolist(), pairwise((shard.firsts + begin).tolist()), strict=True):
                self.spans.append((first, stop, n, id_, shard.entries[id_]))
            begin += len(shard.stream)
        values = {name: [shard.columns[name][1] for shard in self.shards] for name, *_ in manifest.get("columns", ())}
        self.columns = {name: np.concatenate(parts) for name, parts in values.items() if parts}
        features = manifest.get("features")
        self.features = Dataset(Path(path) / features["folder"]) if features else None
        assert not features or features["fingerprint"] == self.features.manifest["fingerprint"], f"{path}: features"

    def spans_of(self, first, stop):
        """The spans that have records of [first, stop), whole."""
        return [span for span in self.spans if max(span[0], first) < min(span[1], stop)]


class PackTable:
    """Which documents each packed row consists of."""

    def __init__(self, data):
        self.header = header = sealed(data[:BLOCK].rstrip(b"\0"))
        sizes = [-(-8 * header[name] // BLOCK) * BLOCK for name in ("pieces", "rows")]
        end = BLOCK + sum(sizes)
        assert crcs(data[BLOCK:end]) == np.frombuffer(data, "<u4", sum(sizes) // BLOCK, end).tolist(), "damaged"
        self.pieces = np.frombuffer(data, "<u8", header["pieces"], BLOCK)
        self.ends = np.frombuffer(data, "<u8", header["rows"], BLOCK + sizes[0])

    def row(self, number, spans):
        """Of each piece where it begins in the row, its first record and the one after its last."""
        window, multiple, at = self.header["window"], self.header["multiple_of"], 0
        most = self.header.get("max_document") or window
        for piece in self.pieces[int(self.ends[number - 1]) if number else 0 : int(self.ends[number])].tolist():
            begin, end, *_ = spans[piece % 2**40]
            begin += (piece >> 40) * most
            end = min(end, begin + most, begin + window - at if self.header.get("fill") == "exact" else math.inf)
            yield at, begin, end
            at += -(-(end - begin) // multiple) * multiple


def mix(z):
    """Number i of key k's stream is mix(k + i * STEP)."""
    z = z + STEP & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def key(*values, after=0):
    return reduce(lambda k, value: mix(k ^ value), values, after)


@cache
def _table(n, k):
    table = list(range(n))
    for i in range(n - 1, 0, -1):
        j = mix(k + i * STEP) * (i + 1) >> 64
        table[i], table[j] = table[j], table[i]
    return table


def permuted(n, seed, epoch, x):
    k, b = key(seed, epoch, n), math.isqrt(n - 1) + 1
    if n <= 64:
        return _table(n, k)[x]
    b += b % 2
    sizes = -(-n // b), b
    while True:
        sides = list(divmod(x, b))
        for i in range(8):
            high, low = divmod(mix(k + i * STEP), 2**32)
            h = (sides[1 - i % 2] ^ low) * 0x85EBCA6B % 2**32
            h = ((h ^ h >> 15) + high) * 0xC2B2AE35 % 2**32
            sides[i % 2] = (sides[i % 2] + ((h ^ h >> 16) * sizes[i % 2] >> 32)) % sizes[i % 2]
        x = sides[0] * b + sides[1]
        if x < n:
            return x


def _in_blocks(order, e, o):
    n, f, m, lanes = (order[name] for name in ("size", "fetch", "block", "lanes"))
    (t, lane), longer, k = divmod(o, lanes), n % lanes, key(0x626C6F636B73, order["seed"], e, n)
    sizes = [n // lanes + (each < longer) for each in range(lanes)]
    begin, whole = t // f * f, [size // m * m for size in sizes]
    t = begin + permuted(min(f, sizes[lane] - begin), key(5, lane, t // f, after=k), 0, t - begin)
    x = sum(whole[:lane]) + t
    if t >= whole[lane]:
        among, drawn, first = (longer, 3, 0) if lane < longer else (lanes - longer, 4, longer)
        piece = first + permuted(among, key(drawn, after=k), 0, lane - first)
        x = sum(whole) + sum(size % m for size in sizes[:piece]) + t - whole[lane]
    if x < n // m * m:
        x = m * permuted(n // m, key(2, after=k), 0, x // m) + x % m
    return (x + (key(1, after=k) * n >> 64)) % n


def observed(order, e, o):
    """The observation at an offset of an epoch."""
    n, name = order["size"], order["name"]
    if name == "sequential in fetches":
        j, f = o // order["fetch"], order["fetch"]
        return j * f + permuted(min(f, n - j * f), key(0x73657175656E, order["seed"], e, j), 0, o - j * f)
    if name == "uniform":
        return permuted(n, order["seed"], e, o)
    return {"sequential": lambda *_: o, "blocks": _in_blocks}[name](order, e, o)


def _turns(unit, members, moved):
    """The names of a stage's members, one for each of its units."""
    names = sorted(members, key=str.encode)
    weights = [members[name] // math.gcd(*members.values()) for name in names]
    total, common = sum(weights), math.lcm(*weights)
    keys = [key(MIXED, 1, len(name.encode()), *name.encode(), unit) for name in names]
    first, second = key(1, after=keys[0]), key(2, after=keys[0])

    def time(i, c, jitter, b=2**32):
        drawn = mix(keys[i] + jitter * STEP) >> 32
        return ((c << 32) + (2**32 - b) // 2 + (drawn * b >> 32)) * (common // weights[i])

    if total > 4096 or len(names) == 1:
        left_out = mix(second) * total >> 64 if moved and len(names) > 1 else 0
        begin = max(left_out - len(names), 0)  # at a time with at most `left_out` slots before it
        counts = [begin * w // total for w in weights]
        counts = [c + (time(i, c, c) * total < (begin << 32) * common) for i, c in enumerate(counts)]
        while True:
            i = min(range(len(names)), key=lambda i: (time(i, counts[i], counts[i]), i))
            counts[i] += 1
            if sum(counts) > left_out:
                yield names[i]
    times = 1 if total <= 64 else max(1024 // total, 1)
    size, words = times * total, min(max(16384 // (times * total), 4), 64)
    widths = [min((w << 32) // (total - min(weights)), 2**32) for w in weights]
    for period in count():
        v, begin = mix(first + period * STEP) * words >> 64, mix(second + period * STEP) * size >> 64
        letters = [(i, c, v * times * w + c) for i, w in enumerate(weights) for c in range(times * w)]
        word = sorted((time(i, c, jitter, widths[i]), i) for i, c, jitter in letters)
        yield from (names[i] for _, i in word[begin:] + word[:begin])


def _ramp(a, b, unit, length, group):
    """The steps of a ramp of so many groups, from weights a to b: (first unit, weights, in a ramp)."""
    sides = []
    for weights in (a, b):
        weights = {name: w // math.gcd(*weights.values()) for name, w in weights.items()}
        total = sum(weights.values())
        if total >= 2**50:
            weights = {name: (w * 2**50 + total // 2) // total for name, w in weights.items()}
        sides.append((weights, sum(weights.values())))
    (a, total_a), (b, total_b) = sides
    steps = max(min(length * group // 16, length, 1024), 1)
    for i in range(steps):
        of_a, of_b = (2 * steps - 2 * i - 1) * total_b, (2 * i + 1) * total_a
        weights = {name: of_a * a.get(name, 0) + of_b * b.get(name, 0) for name in {**a, **b}}
        bits = sum(weights.values()).bit_length()
        if bits > 61:
            weights = {name: (w + 2 ** (bits - 61)) >> bits - 60 for name, w in weights.items()}
        yield unit + length * i // steps * group, weights, True


class Mixture:
    """What a mixture gives at each position, by its `order`; `window` is that of its views, where they are cut."""

    def __init__(self, order, window):
        asked = order.get("asked", order)
        self.caps, self.leaving, self.places, self.steps, stages = asked.get("caps", {}), {}, [], [], asked["stages"]
        for begin, *weights in order.get("steered", {"stages": ()})["stages"]:
            inside = [stage for stage in stages if stage["begin"] <= begin][-1]
            is_set = {"begin": begin, "sources": order["steered"]["names"], "weights": weights, "ramp": 0, "set": True}
            others = [stage for stage in stages if stage["begin"] != begin]
            stages = sorted([*others, inside | is_set], key=lambda stage: stage["begin"])
        for number, stage in enumerate(stages):
            first, unit, parts, *_ = self.places[-1] if self.places else (0, 0, 1)
            unit += (stage.get("end", stage["begin"]) - first) // parts
            parts = window // stage.get("window", window) if window else 1
            group, begin = stage.get("group", 1), stage["begin"]
            weights = dict(zip(stage["sources"], stage["weights"], strict=True))
            later = {name for each in stages[number:] for name in each["sources"]}
            if "caps" not in asked and self._is_implied(stage, unit, weights, later):
                continue
            self.places.append((begin, unit, parts, group, stage.get("window")))
            self.steps = [step for step in self.steps if step[0] < unit]
            if stage.get("ramp"):
                length = -(-stage["ramp"] // (group * parts))
                before = {name: w for name, w in self.steps[-1][1].items() if w}
                if window is None:  # rows of two lengths: all of the ramp's have the second one, as web@32 has
                    length_of = "@" + stage["sources"][0].rpartition("@")[2] if "window" in stage else ""
                    base = {name: name.rpartition("@")[0] if self.places[-2][4] else name for name in before}
                    before = {base[name] + length_of: w for name, w in before.items()}
                self.steps += _ramp(before, weights, unit, length, group)
                unit += length * group
            self.steps.append((unit, weights, "set" in stage or bool(stage.get("ramp"))))
        self.known, self.more = [], self._positions()

    def _is_implied(self, stage, unit, weights, later):
        """Whether a stage is the one before it without sources that have given their caps: they leave there."""
        unit = unit if "end" in stage else stage.get("unit", stage["begin"])
        before = [weights for begin, weights, _ in self.steps if begin < unit]
        if not before or "ramp" in stage or stage.get("window") != self.places[-1][4]:
            return False
        before = {name: w for name, w in before[-1].items() if name not in self.leaving}
        kept, left = {name: w for name, w in before.items() if name in weights}, before.keys() - weights
        if {name: w // math.gcd(*kept.values()) for name, w in kept.items()} != weights or not left or left & later:
            return False
        self.leaving |= dict.fromkeys(left, unit)
        return True

    def _units(self):
        """(source, unit of the source) of each unit."""
        given, unit = Counter(), 0
        for (_, weights, moved), (end, *_) in pairwise([*self.steps, (math.inf,)]):
            while unit < end:
                left = {name: w for name, w in weights.items() if w and given[name] < self.caps.get(name, math.inf)}
                left = {name: w for name, w in left.items() if unit < self.leaving.get(name, math.inf)}
                if not left:
                    return
                for name in _turns(unit, left, moved):
                    yield name, given[name]
                    given[name] += 1
                    unit += 1
                    if given[name] == self.caps.get(name) or unit == end or unit in self.leaving.values():
                        break

    def _positions(self):
        """(source, unit of the source, part of the unit, parts of a unit) of each position."""
        units = self._units()
        for (begin, first, parts, group, _), (end, *_) in pairwise([*self.places, (math.inf,)]):
            for h in count():
                some = list(islice(units, group)) if begin + h * group * parts < end else []
                for q in range(len(some) * parts):
                    j = permuted(len(some) * parts, key(MIXED, 2, first), h, q) if parts > 1 else q
                    yield *some[j // parts], j % parts, parts
                if not some:
                    break

    def pick(self, position):
        """As `_positions`; None from the end on."""
        self.known += islice(self.more, max(position + 1 - len(self.known), 0))
        return self.known[position] if position < len(self.known) else None


class Run:
    """What the job of a state has at each position."""

    def __init__(self, state):
        job = json.loads(state["job"])
        assert state["version"] == 1 and job["format"] in (1, 2), "a state of another version"
        self.order, self.skip, self.sources, self.mixture = job["order"], job["skip"], job["sources"], None
        self.stages = self.order.get("stages", [{"begin": 0, "order": self.order, "source": self.sources[0]}])
        if self.order["name"] == "mixture":
            view = self.sources[0]["view"]
            self.mixture = Mixture(self.order, view["window"] if view["kind"] == "windows" else None)

    def row(self, position):
        """(source, epoch, observation, where it lies): records [first, stop), or the number of a document."""
        if self.mixture is not None:
            name, unit, part, parts = self.mixture.pick(position)
            n = [source["name"] for source in self.sources].index(name)
            source, order, epoch = self.sources[n], self.order["orders"][name], 0
        else:
            begun = [stage for stage in self.stages if stage["begin"] <= position]
            source, order, unit = begun[-1]["source"], begun[-1]["order"], position - begun[-1]["begin"]
            epoch = sum((b["begin"] - a["begin"]) // a["order"]["size"] for a, b in pairwise(begun))
            n, part, parts = 0, 0, 1
        e, o = divmod(unit, order["size"])
        e += epoch
        x = observed(order, e, o)
        return n, e, x * parts + part, _place(source, e, x, part, parts)

    def batch(self, position, sizes, end=math.inf, per_epoch=False, tail="pad"):
        """(positions, size, the state's position after it) of the batch that begins at a position; None at the end."""

        def size_at(p):
            return [size for begin, size in sizes if begin <= p][-1]

        most = 2 * max(size for _, size in sizes) + sum(e - b for b, e in self.skip)
        while position < end:
            stop, stage = end, [stage for stage in self.stages if stage["begin"] <= position][-1]
            if self.mixture is not None:
                end = end if self.mixture.pick(position + most) else min(end, len(self.mixture.known))
                changes = [b[0] for a, b in pairwise(self.mixture.places) if a[4] != b[4] and b[0] > position]
                stop = min([end, *changes])
            elif per_epoch:
                n = stage["order"]["size"]
                stop = min(end, position + n - (position - stage["begin"]) % n)
            free = [p for p in range(position, min(stop, position + most)) if not any(b <= p < e for b, e in self.skip)]
            size = size_at(position)
            if len(free) >= (size if tail == "drop" else 1):
                after = free[:size][-1] + 1
                more = len(free) - size >= (size_at(after) if tail == "drop" else 1)
                return free[:size], size, after if more else stop
            position = stop


def _place(source, e, x, part, parts):
    """The records [first, stop) of an observation, or of a part of it; a document's number."""
    view = source["view"]
    x = x * view["slice"]["step"] + view["slice"]["first"] if "slice" in view else x
    if view["kind"] != "windows":
        return x
    w, a, phase = view["window"], view["lookahead"], 0
    if view.get("phase") == "random":
        room, drawn = (
            source["dataset"]["records"] - a,
            int.from_bytes(xxh3(np.array((w, e), "<u8").tobytes())[:8], "big"),
        )
        phase = drawn * (room - (room // w - 1) * w + 1) >> 64
    first = x * w + part * (w // parts) + phase
    return first, first + w // parts + a


def rank_rows(positions, size, rank, ranks, tail="pad"):
    """The positions of a rank's rows, None where they are padding."""
    mine = positions[rank::ranks]
    return mine + [None] * (-(-(len(positions) if tail == "short" else size) // ranks) - len(mine))
