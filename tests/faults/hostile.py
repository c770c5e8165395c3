"""What somebody may write on purpose: manifests, indexes and headers that are sealed and checked, and cannot be."""

from __future__ import annotations

import copy
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpora
import numpy as np
import penstock
import sealed

Fault = Callable[[random.Random, str, Path], str]

NUMBERS = [0, 1, -1, 2, 7, 255, 4096, 2**31, 2**32 - 1, 2**32, 2**39, 2**40, 2**52, 2**53, 2**56, 2**60, 2**62,
           2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400, 0.5, -0.0, 1e308, 1.5e300]  # fmt: skip
_NESTED: Any = 0
for _ in range(40):
    _NESTED = [_NESTED]
VALUES = [*NUMBERS, None, True, False, "", "x", "x" * 81, "y" * 100_000, "\x00\x1b[2J\n", "é€😀" * 50, "..", "/etc",
          "00000", [], {}, [[]], [None], _NESTED, list(range(5000)), {str(i): i for i in range(3000)},
          {"name": "numpy", "dtype": []}, {"name": "numpy"}, {"name": "numpy", "dtype": "O"},
          {"name": "numpy", "dtype": "u2,(2,3)f4"},
          {"name": "numpy", "dtype": "S99999999999"}, {"name": "numpy", "dtype": [["a", "<f4", [1 << 40]]]},
          {"name": "numpy", "dtype": [["a", []]]}, {"name": "numpy", "dtype": "V0"}, {"name": "numpy", "dtype": 3},
          {"name": "numpy", "dtype": "(" * 300}, {"name": "msgpack"}, {"name": "raw"}, {"name": "json"},
          {"name": "z" * 5000},
          {"name": "numpy", "dtype": "<f4"}, [["a", "<u2"], ["a", "<u2"]], [["spans", "<u2"]], [["é" * 300, "<u2"]],
          [["a", "<u2", [1 << 40]]], [["a", [["b", "|u1"], ["c", "|V1048575"]]]], [["metadata_id", "<u4"]]]  # fmt: skip


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All members, at any depth."""
    found = []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        found += [(*path, key), *_places(each, (*path, key))]
    return found


def _parent(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        value = value[key]
    return value


def _text(value: Any) -> bytes:
    """As JSON, with integers of any size."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass").rstrip().removesuffix(b"}") + b","


def _body(file: Path) -> Any:
    said = json.loads(file.read_bytes())
    said.pop("crc32c")
    return said


def _manifest(rng: random.Random, folder: Path) -> Path:
    return rng.choice([folder / "data" / "dataset.json"] * 3 + [folder / "data" / "00000" / "shard.json"])


def values(rng: random.Random, name: str, folder: Path) -> str:
    """One to three members get other values, vanish or change places."""
    file = _manifest(rng, folder)
    said = _body(file)
    done = []
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = _places(said)
        path = rng.choice(places)
        parent = _parent(said, path)
        how = rng.random()
        if how < 0.75:
            parent[path[-1]] = value = copy.deepcopy(rng.choice(VALUES))
            done.append(f"{path} = {value!r:.60}")
        elif how < 0.85:
            del parent[path[-1]]
            done.append(f"{path} removed")
        else:
            other = rng.choice(places)
            parent[path[-1]] = json.loads(json.dumps(_parent(said, other)[other[-1]]))
            done.append(f"{path} = that of {other}")
    _write(file, _text(said))
    return f"{file.name}: {'; '.join(done)}"


def _write(file: Path, body: bytes) -> None:
    if file.name == "dataset.json":
        sealed.write_manifest(file, body)
    else:
        file.write_bytes(sealed.seal(body))


def text(rng: random.Random, name: str, folder: Path) -> str:
    """The text itself: keys twice, bytes that are no UTF-8, noise, cuts; sealed."""
    file = _manifest(rng, folder)
    body = bytearray(sealed.body_of(file.read_bytes()))
    at = rng.randrange(len(body))
    kind = rng.choice(["byte", "bytes", "cut", "repeat", "no UTF-8", "seal", "depth", "number"])
    if kind == "byte":
        body[at] = rng.randrange(256)
    elif kind == "bytes":
        body[at : at + rng.randrange(20)] = rng.randbytes(rng.randrange(20))
    elif kind == "cut":
        del body[at:]
    elif kind == "repeat":
        lines = bytes(body).split(b"\n")
        place = rng.randrange(1, len(lines))
        body = bytearray(b"\n".join([*lines[:place], lines[place], *lines[place:]]))
    elif kind == "no UTF-8":
        place = body.find(b'"', at) + 1
        body[place:place] = rng.choice([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\ud800"])
    elif kind == "depth":
        body[1:1] = b'"x":' + b"[" * 100_000 + b"]" * 100_000 + b","
    elif kind == "number":
        place = body.find(b":", at) + 1
        body[place:place] = rng.choice([b"9" * 5000, b"-", b"+1", b"1e999", b"0x10", b"NaN", b"Infinity"])
    if kind == "seal":
        whole = bytearray(file.read_bytes())
        whole[-rng.randrange(1, 30)] = rng.randrange(256)
        file.write_bytes(whole)
    else:
        _write(file, bytes(body))
    return f"{file.name}: {kind} at {at}"


def _record_bytes(said: dict[str, Any]) -> int:
    sizes = {"|u1": 1, "<u2": 2, "<f4": 4, "<u4": 4}
    return sum(sizes[kind] for _, kind, *_ in said["fields"]) + (4 if said["layout"] == "ids" else 0)


def claims(rng: random.Random, name: str, folder: Path) -> str:
    """Counts that go together, and files that are as short as they were, or sparse and as long as is said."""
    file = folder / "data" / "dataset.json"
    said = _body(file)
    shard = rng.choice(said["shards"])
    sparse = rng.random() < 0.5
    large = [n for n in NUMBERS if isinstance(n, int) and 0 < n < 1 << (44 if sparse else 63)]
    what = rng.choice(["records", "spans", "data", "all"])
    files = shard["files"]
    if what in ("records", "all") and said["mode"] != "opaque":
        shard["records"] = rng.choice(large)
    if what in ("spans", "all") and said["mode"] != "tokens":
        shard["spans"] = shard["entries"] = rng.choice(large)
    if what in ("data", "all") and "metadata.bin" in files:
        files["metadata.bin"] = rng.choice(large)
    if "stream.bin" in files:
        files["stream.bin"] = shard["records"] * _record_bytes(said)
    if "metadata.index" in files:
        files["metadata.index"] = (shard["entries"] + 1) * (16 if said["layout"] == "compact" else 8)
    if "metadata.directory" in files:
        files["metadata.directory"] = (-(-shard["records"] // 4096) + 1) * 8
    _write(file, _text(said))
    own = _body(folder / "data" / shard["name"] / "shard.json")
    own |= {key: shard[key] for key in ("records", "spans", "entries", "files")}
    (folder / "data" / shard["name"] / "shard.json").write_bytes(sealed.seal(_text(own)))
    made = "files as they were"
    if sparse:
        made = _make_sparse(folder / "data" / shard["name"], files)
    return f"{shard['records']} records, {shard['spans']} spans, {files.get('metadata.bin')} bytes of entries; {made}"


def _make_sparse(folder: Path, files: dict[str, int]) -> str:
    try:
        for name, size in files.items():
            os.truncate(folder / name, size)
            os.truncate(folder / f"{name}.crc", -(-size // sealed.BLOCK) * 4)
    except OSError as error:
        return f"files not made sparse: {error.strerror}"
    return "sparse files"


def index(rng: random.Random, name: str, folder: Path) -> str:
    """Numbers of an index, a directory or of ids, with check values that are right."""
    shard = folder / "data" / rng.choice(["00000", "00001"])
    names = [each for each in ("metadata.index", "metadata.directory") if (shard / each).exists()]
    if name == "ids":
        names.append("stream.bin")
    if not names:
        return "nothing: there is no index"
    file = shard / rng.choice(names)
    size = file.stat().st_size
    done = []
    for _ in range(rng.choice([1, 1, 2, 4])):
        width = 4 if file.name == "stream.bin" else 8
        at = rng.randrange(size // width) * width if width == 8 else rng.randrange(size // 6) * 6 + 2
        before = struct.unpack_from("<Q" if width == 8 else "<I", file.read_bytes(), at)[0]
        large = [n % 2 ** (8 * width) for n in NUMBERS if isinstance(n, int)]
        value = rng.choice([*large, before + 1, max(0, before - 1), 2 * before, before ^ 1 << rng.randrange(8 * width)])
        sealed.set_bytes(file, at, struct.pack("<Q" if width == 8 else "<I", value % 2 ** (8 * width)))
        done.append(f"byte {at} is {value}")
    return f"{file.name}: {', '.join(done)}"


def entries(rng: random.Random, name: str, folder: Path) -> str:
    """Entries that are none of their codec, with check values that are right."""
    file = folder / "data" / "00000" / "metadata.bin"
    if not file.exists() or not file.stat().st_size:
        return "nothing: there are no entries"
    size = file.stat().st_size
    noise = rng.choice(
        [b"\xff\xfe", b"[" * 3000, b"NaN", b"\x00" * 9, b'"\xff"', rng.randbytes(50), b"1e999999", b"9" * 6000]
    )
    at = rng.randrange(max(1, size - len(noise)))
    sealed.set_bytes(file, at, noise[: size - at])
    return f"{len(noise)} bytes {noise[:12]!r} at {at}"


def megatron(rng: random.Random, name: str, folder: Path) -> str:
    """Numbers of the header and of the arrays of an .idx."""
    file = folder / "tokens.idx"
    data = bytearray(file.read_bytes())
    done = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        places = [(0, "<B"), (9, "<Q"), (17, "<B"), (18, "<Q"), (26, "<Q"), (34 + 4 * rng.randrange(300), "<i"),
                  (rng.randrange(34, len(data) - 8), "<Q")]  # fmt: skip
        at, kind = rng.choice(places)
        bits = 8 * struct.calcsize(kind)
        value = rng.choice([n for n in NUMBERS if isinstance(n, int)] + list(range(10))) % 2 ** (bits - (kind == "<i"))
        struct.pack_into(kind, data, at, value)
        done.append(f"{value} at {at}")
    file.write_bytes(data)
    if rng.random() < 0.2:
        os.truncate(rng.choice([file, folder / "tokens.bin"]), rng.choice([0, 9, 17, 33, 34, 40, 1 << 30]))
        done.append("another size")
    return ", ".join(done)


_DESCRS = ["O", "|O", ">u2", "<U9", "<M8[s]", "V0", "S0", "<f16", "", "é", "x" * 999]


def npy(rng: random.Random, name: str, folder: Path) -> str:
    """Headers of .npy files."""
    file = folder / "0.npy"
    data = file.read_bytes()
    number = rng.choice([n for n in NUMBERS if isinstance(n, int)])
    literal = rng.choice([
        f"{{'descr': '<u2', 'fortran_order': False, 'shape': ({number},), }}",
        f"{{'descr': '<u2', 'fortran_order': True, 'shape': ({number}, {number}), }}",
        "{'descr': '<u2', 'shape': (" + "1," * 5000 + ")}",
        "{'descr': " + "[" * 100 + "]" * 100 + ", 'shape': (1,)}",
        "{'descr': [('" + "n" * 60000 + "', '<u2')], 'shape': (1,)}",
        f"{{'descr': '{rng.choice(_DESCRS)}', 'shape': (9,)}}",
        "{'descr': [('a', '<u2'), ('a', '<u2')], 'shape': (1,)}",
        "{'descr': [('spans', '<u2', (1, 2))], 'shape': (1,)}",
        "{'shape': (1,)}", "[]", "", "{", "{'descr': {}, 'shape': [1]}", "{'descr': '<u2', 'shape': (1.5,)}",
        "{'descr': [('\xff\xfe', '<u2')], 'shape': (1,)}", "{'descr': '<u2', 'shape': ('9',)}",
    ]).encode("latin-1")  # fmt: skip
    version = rng.choice([1, 1, 1, 2, 3, 0, 255])
    length = rng.choice([len(literal)] * 4 + [0, 1, 2**16 - 1, 2**32 - 1])
    size = struct.pack("<H", length % 2**16) if version == 1 else struct.pack("<I", length % 2**32)
    file.write_bytes(
        b"\x93NUMPY" + bytes([version, 0]) + size + literal + data[128 : 128 + rng.choice([0, 2, 18, 5000])]
    )
    return f"version {version}, {length} bytes: {literal[:60]!r}"


def llmc(rng: random.Random, name: str, folder: Path) -> str:
    """The header of llm.c before raw tokens."""
    header = np.zeros(256, "<i4")
    number = rng.choice([n for n in NUMBERS if isinstance(n, int)]) % 2**31
    header[:3] = [rng.choice([20240520, 20240801, 20240522]), rng.choice([1, 7, -1]), rng.choice([number, -1, 24])]
    tokens = (folder / "0.bin").read_bytes()[:48]
    (folder / "0.bin").write_bytes(header.tobytes()[: rng.choice([1024, 1024, 8, 12, 1000])] + tokens)
    return f"{header[:3].tolist()}"


FILLERS: dict[str, Callable[[int], bytes]] = {
    "numbers": lambda size: b'"x":[' + b"1," * (size // 2) + b"1],",
    "shards": lambda size: b'"shards":[' + b"1," * (size // 2) + b"1],",
    "keys": lambda size: b'"x":{' + b",".join(b'"%d":1' % i for i in range(size // 12)) + b"},",
    "strings": lambda size: b'"x":[' + b'"",' * (size // 3) + b'""],',
    "brackets": lambda size: b'"x":[' + b"[],{}," * (size // 6) + b"1],",
    "one string": lambda size: b'"x":"' + b"y" * size + b'",',
    "one number": lambda size: b'"x":' + b"7" * size + b",",
    "open string": lambda size: b'"x":"' + b"y" * size,
    "empty objects": lambda size: b'"shards":[' + b'{"a":[]},' * (size // 9) + b"{}],",
    "digests": lambda size: (
        b'"shards":[{"name":"00000","digests":{"fields":{'
        + b",".join(b'"%08d":7' % i for i in range(size // 13))
        + b"}}}],"
    ),
}


def write_large(file: Path, kind: str, size: int) -> None:
    """A sealed manifest with `size` bytes of one kind in it."""
    said = _body(file)
    filler = FILLERS[kind](size)
    if filler.startswith(b'"shards"'):
        said.pop("shards", None)
    file.write_bytes(_sealed_quickly(_text(said) + filler))


def huge(rng: random.Random, name: str, folder: Path, size: int = 100 << 20) -> str:
    """A manifest of 100 MB."""
    file = folder / "data" / rng.choice(["dataset.json"] * 4 + ["00000/shard.json"])
    kind = rng.choice(list(FILLERS))
    # In a process of its own, since what Python keeps of it would hide what the trial takes.
    subprocess.run([sys.executable, __file__, file, kind, str(size)], check=True)
    return f"{file.name} of {file.stat().st_size:,} bytes: {kind}"


def _sealed_quickly(body: bytes) -> bytes:
    """By the error that tells what the seal should be: CRC32C in Python takes minutes."""
    text = body + b'\n  "crc32c": "00000000"\n}\n'
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "dataset.json").write_bytes(text)
        try:
            penstock.open(folder)
        except penstock.CorruptionError as error:
            told = re.search(r"have CRC32C ([0-9a-f]{8})", str(error))
            assert told, str(error)
            return body + b'\n  "crc32c": "%s"\n}\n' % told[1].encode()
    raise AssertionError("a seal of zeros was right")


KINDS: dict[str, tuple[Fault, tuple[str, ...]]] = {
    "manifest: values": (values, corpora.OURS),
    "manifest: text": (text, corpora.OURS),
    "manifest: counts": (claims, corpora.OURS),
    "manifest: 100 MB": (huge, ("compact",)),
    "indexes and ids": (index, ("compact", "numpy", "ids", "opaque")),
    "entries": (entries, ("compact", "numpy", "ids", "opaque")),
    "Megatron's .idx": (megatron, ("megatron",)),
    ".npy headers": (npy, ("npy",)),
    "llm.c headers": (llmc, ("raw",)),
}


if __name__ == "__main__":
    write_large(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
