"""A second reader of datasets in plain NumPy, written from docs/format.md alone.

It shares no code with the library; test_second_reader.py compares the two. So the pages say all that a reader needs.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from _second_hashes import crc32c, crcs, xxh3


def dtype_of(fields: list) -> np.dtype:
    """The packed dtype of a list of `[name, type]` or `[name, type, shape]`."""
    parts = []
    for name, kind, *shape in fields:
        parts.append((name, dtype_of(kind) if isinstance(kind, list) else kind, *(tuple(each) for each in shape)))
    return np.dtype(parts)


def leaves(values: np.ndarray) -> list[np.ndarray]:
    """The scalars inside the fields of `values`, depth first."""
    if values.dtype.names is None:
        return [values]
    return [leaf for name in values.dtype.names for leaf in leaves(values[name])]


def sealed(data: bytes) -> dict:
    """The JSON object of bytes that end with their own CRC32C."""
    assert data[-26:-12] == b'\n  "crc32c": "' and data[-4:] == b'"\n}\n'
    assert crc32c(data[:-12] + b"00000000" + data[-4:]) == int(data[-12:-4], 16)
    return json.loads(data)


def compact_json(value: object) -> str:
    """JSON without spaces, its keys sorted."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


@dataclass
class Span:
    """Records [begin, end) of a shard, or of the stream; their entry's bytes, its number in its shard."""

    begin: int
    end: int
    entry: bytes
    number: int
    shard: int = 0


class Shard:
    """One folder: `records`, `spans`, `columns()`."""

    def __init__(self, folder: Path, manifest: dict, said: dict) -> None:
        self.folder, self.said, self.manifest = folder, said, manifest
        self.ids = manifest["layout"] == "ids"
        self.dtype = dtype_of(manifest["fields"] + [["metadata_id", "<u4"]] * self.ids)
        for name, size in said["files"].items():
            data = self.read(name)
            assert len(data) == size, (folder, name)
            assert np.frombuffer(self.read(f"{name}.crc"), "<u4").tolist() == crcs(data), (folder, name)

        if (folder / "shard.json").exists():
            own, same = sealed(self.read("shard.json")), {**manifest, **said, "format": "penstock shard"}
            assert all(own[name] == same[name] for name in own if name not in ("values", "task", "crc32c")), folder

    def read(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()

    @cached_property
    def stream(self) -> np.ndarray:
        """All records, in the layout ids with `metadata_id`."""
        return np.frombuffer(self.read("stream.bin"), self.dtype)

    @cached_property
    def records(self) -> np.ndarray:
        names = [name for name, *_ in self.manifest["fields"]]
        wanted = np.empty(len(self.stream), dtype_of(self.manifest["fields"]))
        for name in names:
            wanted[name] = self.stream[name]
        return wanted

    def entry_ends(self) -> list[int]:
        """Byte offsets into metadata.bin, one more than entries."""
        index = np.frombuffer(self.read("metadata.index"), "<u8")
        return (index.reshape(-1, 2)[:, 1] if self.manifest["layout"] == "compact" else index).tolist()

    @cached_property
    def spans(self) -> list[Span]:
        """The spans in order; documents without records and opaque ones have begin == end."""
        if self.manifest["mode"] == "tokens":
            return []
        ends, data = self.entry_ends(), self.read("metadata.bin")
        entries = [data[a:b] for a, b in pairwise(ends)]
        if self.ids:
            ids = self.stream["metadata_id"]
            cuts = [0, *(np.flatnonzero(np.diff(ids.astype("i8"))) + 1).tolist(), len(ids)] if len(ids) else [0]
            return [Span(a, b, entries[ids[a]], int(ids[a])) for a, b in pairwise(cuts)]
        if self.manifest["mode"] == "opaque":
            return [Span(0, 0, entry, number) for number, entry in enumerate(entries)]
        index = np.frombuffer(self.read("metadata.index"), "<u8").reshape(-1, 2)
        firsts = index[:, 0].tolist()
        return [Span(firsts[i], firsts[i + 1], entry, i) for i, entry in enumerate(entries)]

    def spans_near(self, a: int, b: int) -> list[int]:
        """Numbers of the index entries that the directory names for records [a, b) of the compact layout."""
        directory = np.frombuffer(self.read("metadata.directory"), "<u8")
        low, high = int(directory[a // 4096]), int(directory[(b - 1) // 4096 + 1])
        return list(range(low, min(high, self.said["spans"] - 1) + 1))

    @cached_property
    def stored(self) -> dict[str, np.ndarray]:
        """Columns as stored: values of categories are numbers of the shard's own table."""
        if not self.manifest.get("columns"):
            return {}
        data, at, found = self.read("columns.bin"), 0, {}
        for name, kind, *shape in self.manifest["columns"]:
            if kind == "category":
                table = self.said["values"]["tables"][name]
                names = table if isinstance(table, int) else len(table)
                kind = "|i1" if names <= 128 else "<i2" if names <= 32768 else "<i4"
            at = -(-at // 64) * 64
            dtype = np.dtype((kind, tuple(*shape)))
            size = self.said["entries"] * dtype.itemsize
            found[name] = np.frombuffer(data[at : at + size], dtype)
            at += size
        assert at == len(data)
        return found

    def columns(self) -> dict[str, np.ndarray]:
        """Columns of each entry; categories as numbers of the whole dataset's names, -1 for none."""
        found = dict(self.stored)
        for name, table in self.said.get("values", {}).get("tables", {}).items():
            numbers = np.array([*(range(table) if isinstance(table, int) else table), -1], "i4")
            found[name] = numbers[found[name]]
        return found

    def check_digests(self) -> str:
        """Compares the digests with the manifest's. Returns this shard's line of the fingerprint."""
        digests = [xxh3(leaf.tobytes()).hex() for leaf in leaves(self.records)] if self.manifest["fields"] else []
        assert list(self.said["digests"]["fields"].values()) == digests, self.folder
        spans = None
        if self.manifest["mode"] != "tokens":
            parts = [np.array([s.end - s.begin, len(s.entry)], "<u8").tobytes() + xxh3(s.entry) for s in self.spans]
            spans = xxh3(b"".join(parts)).hex()
        assert self.said["digests"]["spans"] == spans, self.folder
        if self.manifest["version"] == 2 and self.manifest["columns"]:
            digests_of = {name: xxh3(values.tobytes()).hex() for name, values in self.stored.items()}
            assert self.said["values"]["digests"] == digests_of, self.folder
        return " ".join(["shard", str(self.said["records"]), *digests, spans or "-"]) + "\n"


class Dataset:
    """A folder with `dataset.json`, read whole."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.manifest = sealed((self.path / "dataset.json").read_bytes())
        assert self.manifest["format"] == "penstock" and self.manifest["version"] in (1, 2)
        self.shards = [Shard(self.path / said["name"], self.manifest, said) for said in self.manifest["shards"]]

    def records(self) -> np.ndarray:
        """All records of the stream."""
        return np.concatenate(
            [shard.records for shard in self.shards] or [np.empty(0, dtype_of(self.manifest["fields"]))]
        )

    def spans(self, a: int = 0, b: int | None = None) -> list[Span]:
        """Spans that have records of [a, b) of the stream; without `b` all, those without records too."""
        found, start = [], 0
        for place, shard in enumerate(self.shards):
            for span in shard.spans:
                begin, end = start + span.begin, start + span.end
                if b is None or max(begin, a) < min(end, b):
                    found.append(Span(begin, end, span.entry, span.number, place))
            start += shard.said["records"]
        return found

    def columns(self) -> dict[str, np.ndarray]:
        """Columns of all entries, shard after shard."""
        parts = [shard.columns() for shard in self.shards]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}

    def fingerprint(self) -> str:
        """The fingerprint, from the bytes of records and entries."""
        manifest = self.manifest
        lines = f"penstock fingerprint 1\nmode {manifest['mode']}\n"
        lines += f"fields {compact_json(manifest['fields'])}\ncodec {compact_json(manifest['codec'])}\n"
        return xxh3((lines + "".join(shard.check_digests() for shard in self.shards)).encode()).hex()


class PackTable:
    """A file of `penstock pack`: which documents each row consists of."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.header = sealed(data[:4096].rstrip(b"\0"))
        sizes = [8 * self.header["pieces"], 8 * self.header["rows"]]
        pieces, ends = (-(-size // 4096) * 4096 for size in sizes)
        checks = 4096 + pieces + ends
        count = (pieces + ends) // 4096
        assert np.frombuffer(data[checks : checks + 4 * count], "<u4").tolist() == crcs(data[4096:checks])
        self.pieces = np.frombuffer(data[4096 : 4096 + sizes[0]], "<u8")
        self.ends = np.frombuffer(data[4096 + pieces : 4096 + pieces + sizes[1]], "<u8")

    def row(self, i: int, spans: list[Span]) -> list[tuple[int, int, int]]:
        """Pieces of a row: where each begins in it, and its records [begin, end) of the stream."""
        first, found, at = int(self.ends[i - 1]) if i else 0, [], 0
        most, multiple = self.header.get("max_document") or self.header["window"], self.header["multiple_of"]
        for piece in self.pieces[first : int(self.ends[i])].tolist():
            document, part = spans[piece & ((1 << 40) - 1)], piece >> 40
            begin = document.begin + part * most
            end = min(begin + most, document.end)
            at = -(-at // multiple) * multiple
            if self.header.get("fill") == "exact":
                end = min(end, begin + self.header["window"] - at)
            found.append((at, begin, end))
            at += end - begin
        return found
