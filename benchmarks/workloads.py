"""The corpora that are read, made once in a cache folder, and how much is measured."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock

WINDOW = 4096
BATCH = 8
PREFETCH = 4  # the loader's default
TOKEN_BYTES = 4
#: Fields of 8 bytes a record, for the same file that is otherwise read as tokens.
PAIR = [("token", "<u4"), ("other", "<u4")]
DOCUMENT_TOKENS = 800
ENTRY_BYTES = 160
#: Genes of generated cells, and the logarithm of how many of them a cell has, its median and deviation: as in Tahoe.
CELL_GENES = 62_710
CELL_LENGTH = (1664, 0.34)
MOST_COUNT = 145


@dataclass(frozen=True)
class Size:
    """How much is measured.

    A measurement takes its sizes from here or from `Corpora.quick`, so that its smallest form takes at most three
    seconds: `run.py --quick` runs all of them in CI.
    """

    tokens: int  # of the flat corpus
    metadata_tokens: int  # of the corpus of documents
    sparse_shards: int
    sparse_shard_tokens: int
    few_shards: int
    many_shards: int
    many_shard_tokens: int
    repeats: int
    processes: int  # fresh ones for each start-up figure
    seconds: float  # of each repeat of a throughput
    batches: int  # of each repeat of the main thread's work
    cold_tokens: int  # of the corpus that is read cold
    cold_bound: int  # bytes that a process may use when it reads cold
    cold_seconds: float
    grid_tokens: tuple[int, ...]  # sizes that costs are plotted against
    grid_shards: tuple[int, ...]
    pairs: int  # of blocks of training steps in each repeat
    soak_batches: int
    written_bytes: int  # of each repeat of the writer
    text_bytes: int  # that are tokenized
    corpus_bytes: int  # of JSON lines
    corpus_part_bytes: int  # of them where all would take minutes
    words_bytes: int  # of text that does not repeat
    vocabularies: tuple[int, ...]
    id_tokens: int  # of files of ids
    cells: int
    where_documents: int
    view_documents: int


FULL = Size(
    tokens=1 << 28,
    metadata_tokens=1 << 27,
    sparse_shards=1000,
    sparse_shard_tokens=1_100_000_000,
    few_shards=100,
    many_shards=40_000,
    many_shard_tokens=250_000_000,
    repeats=7,
    processes=15,
    seconds=1.5,
    batches=400,
    cold_tokens=1 << 30,
    cold_bound=512 << 20,
    cold_seconds=3.0,
    grid_tokens=(10**6, 10**9, 10**12),
    grid_shards=(1, 100, 10_000),
    pairs=9,
    soak_batches=1_000_000,
    written_bytes=1 << 30,
    text_bytes=16 << 20,
    corpus_bytes=1_000_000_000,
    corpus_part_bytes=100_000_000,
    words_bytes=5_000_000_000,
    vocabularies=(32_000, 128_000),
    id_tokens=250_000_000,
    cells=50_000,
    where_documents=100_000_000,
    view_documents=10_000_000,
)
QUICK = Size(
    tokens=1 << 20,
    metadata_tokens=1 << 18,
    sparse_shards=20,
    sparse_shard_tokens=1_000_000,
    few_shards=10,
    many_shards=200,
    many_shard_tokens=1_000_000,
    repeats=1,
    processes=1,
    seconds=0.03,
    batches=5,
    cold_tokens=1 << 22,
    cold_bound=256 << 20,
    cold_seconds=0.05,
    grid_tokens=(10**6, 10**8),
    grid_shards=(1, 10),
    pairs=1,
    soak_batches=1000,
    written_bytes=2 << 20,
    text_bytes=1 << 16,
    corpus_bytes=1 << 18,
    corpus_part_bytes=1 << 17,
    words_bytes=1 << 18,
    vocabularies=(1_000,),
    id_tokens=10_000,
    cells=100,
    where_documents=10_000,
    view_documents=10_000,
)


class Corpora:
    """Makes each corpus when it is first asked for."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder = folder
        self.size = size

    @property
    def quick(self) -> bool:
        """Whether measurements take their smallest form: they show that they run, and miss targets."""
        return self.size is QUICK

    def tokens(self) -> Path:
        """One file of random u32 tokens."""
        return self._flat(self.size.tokens)

    def token_files(self) -> Path:
        """Random u32 tokens as megatron.bin and .idx, documents of 800 on average, and the same as bare.npy."""
        return self._made(f"token-files-{self.size.written_bytes}", self._write_token_files)

    def cold_tokens(self) -> Path:
        """The same, larger than what a process may use when it reads cold."""
        return self._flat(self.size.cold_tokens)

    def documents(self) -> Path:
        """A dataset of documents of 800 tokens on average (exponential lengths), each with 160 bytes of metadata."""
        return self._made(f"documents-{self.size.metadata_tokens}-{ENTRY_BYTES}", self._write_documents)

    def documents_with_ids(self) -> Path:
        """The same documents in the ids layout: records of 8 bytes, as the article has them."""
        compact = self.documents()
        return self._made(f"{compact.name}-ids", partial(_convert, compact))

    def documents_with_loss(self) -> Path:
        """As many documents of records {token u4, loss u1}, of which half the records count."""
        write = partial(self._write_documents, with_loss=True)
        return self._made(f"documents-{self.size.metadata_tokens}-{ENTRY_BYTES}-loss", write)

    def cells(self) -> Path:
        """Cells of records {gene u2, count u2}: few genes in most cells, most counts 1; an entry of 24 bytes each."""
        return self._made(f"cells-{self.size.cells}", self._write_cells)

    def sparse(self) -> Path:
        """1.1 T tokens in 1,000 shards."""
        return self.sparse_of(self.size.sparse_shards, self.size.sparse_shard_tokens)

    def sparse_of(self, shards: int, shard_tokens: int) -> Path:
        """A token stream of `shards` shards of u32 tokens that take no room: zeros, never written."""
        write = partial(self._write_sparse, shards=shards, tokens=shard_tokens)
        return self._made(f"sparse-{shards}-{shard_tokens}", write)

    def _flat(self, tokens: int) -> Path:
        return self._made(f"tokens-{tokens}.bin", partial(self._write_tokens, tokens=tokens))

    def _made(self, name: str, write: Callable[[Path], None]) -> Path:
        return made(self.folder, name, write)

    def _write_tokens(self, path: Path, tokens: int) -> None:
        random = np.random.default_rng(1)
        with path.open("wb") as file:
            for begin in range(0, tokens, 1 << 22):
                count = min(1 << 22, tokens - begin)
                file.write(random.integers(0, 1 << 17, count, dtype=np.uint32).tobytes())

    def _write_token_files(self, path: Path) -> None:
        path.mkdir()
        count = self.size.written_bytes // TOKEN_BYTES
        self._write_tokens(path / "megatron.bin", count)
        lengths = 1 + np.random.default_rng(4).exponential(DOCUMENT_TOKENS, count).astype(np.int64)
        ends = np.cumsum(lengths)
        ends = np.append(ends[ends < count], count)
        starts = np.append(0, ends[:-1])
        with (path / "megatron.idx").open("wb") as file:  # version 1, int32
            file.write(struct.pack("<9sQBQQ", b"MMIDIDX", 1, 4, len(ends), len(ends) + 1))
            file.write(
                np.diff(ends, prepend=0).astype("<i4").tobytes() + (starts * TOKEN_BYTES).astype("<i8").tobytes()
            )
            file.write(np.arange(len(ends) + 1, dtype="<i8").tobytes())
        with (path / "bare.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<u4", "fortran_order": False, "shape": (count,)})
            file.write((path / "megatron.bin").read_bytes())

    def _write_documents(self, path: Path, with_loss: bool = False) -> None:
        random = np.random.default_rng(2)
        left = self.size.metadata_tokens
        fields = {"token": "u4", "loss": "u1"} if with_loss else {"token": "u4"}
        with penstock.Writer(str(path), fields=fields, metadata="raw") as writer:
            while left > 0:
                count = min(left, 1 + int(random.exponential(DOCUMENT_TOKENS)))
                entry = left.to_bytes(8, "little") * (ENTRY_BYTES // 8)  # no two are equal
                values = {"token": random.integers(0, 1 << 17, count, dtype=np.uint32)}
                if with_loss:
                    values["loss"] = random.integers(0, 2, count, dtype=np.uint8)
                writer.append(**values, metadata=entry)
                left -= count

    def _write_cells(self, path: Path) -> None:
        random = np.random.default_rng(3)
        expression = random.lognormal(0, 2, CELL_GENES)
        bounds = np.cumsum(expression) / expression.sum()
        median, deviation = CELL_LENGTH
        with penstock.Writer(
            str(path), fields={"gene": "u2", "count": "u2"}, metadata="raw", shard_size=1 << 40
        ) as writer:
            for cell in range(self.size.cells):
                wanted = min(int(median * np.exp(deviation * random.standard_normal())), CELL_GENES // 8)
                genes = np.unique(np.searchsorted(bounds, random.random(2 * wanted)))
                while len(genes) < wanted:
                    genes = np.union1d(genes, np.searchsorted(bounds, random.random(wanted)))
                genes = np.sort(random.choice(genes, wanted, replace=False))
                counts = np.minimum(random.geometric(0.6, wanted), MOST_COUNT)
                entry = cell.to_bytes(8, "little") * 3
                writer.append(gene=genes.astype(np.uint16), count=counts.astype(np.uint16), metadata=entry)

    def _write_sparse(self, path: Path, shards: int, tokens: int) -> None:
        with penstock.Writer(str(path), fields={"token": "u4"}, metadata=None) as writer:
            writer.append(token=np.zeros(1, np.uint32))
        manifest = json.loads((path / "dataset.json").read_bytes())
        one = manifest["shards"][0]
        shutil.rmtree(path / one["name"])
        listed = [
            one | {"name": f"{i:05}", "records": tokens, "files": {"stream.bin": tokens * TOKEN_BYTES}}
            for i in range(shards)
        ]
        for shard in listed:
            (path / shard["name"]).mkdir()
            with (path / shard["name"] / "stream.bin").open("wb") as file:
                file.truncate(tokens * TOKEN_BYTES)
        manifest |= {"shards": listed, "fingerprint": fingerprint(manifest, listed)}
        (path / "dataset.json").write_bytes(sealed(manifest))


def made(folder: Path, name: str, write: Callable[[Path], None]) -> Path:
    """The file or folder of this name, written where it is not there yet; a run that is killed leaves none."""
    path = folder / name
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"unfinished-{name}"
        if unfinished.is_dir():
            shutil.rmtree(unfinished)
        write(unfinished)
        unfinished.rename(path)
    return path


def _convert(compact: Path, path: Path) -> None:
    penstock.convert(str(compact), str(path), "ids")


def fingerprint(manifest: dict[str, Any], shards: list[dict[str, Any]]) -> str:
    """The fingerprint of a token stream, as docs/format.md says."""
    fields = json.dumps(manifest["fields"], separators=(",", ":"))
    text = f"penstock fingerprint 1\nmode {manifest['mode']}\nfields {fields}\ncodec null\n"
    for shard in shards:
        text += " ".join([f"shard {shard['records']}", *shard["digests"]["fields"].values(), "-"]) + "\n"
    return xxh3_128(text.encode())


def sealed(manifest: dict[str, Any]) -> bytes:
    """A manifest's bytes: its CRC32C is its last member and is computed over zeros in its place."""
    body = {key: value for key, value in manifest.items() if key != "crc32c"}
    text = json.dumps(body, indent=2)[:-2] + ',\n  "crc32c": "'
    return (text + f"{crc32c((text + '00000000' + _END).encode()):08x}" + _END).encode()


_END = '"\n}\n'


def crc32c(data: bytes) -> int:
    """CRC32C (Castagnoli), a few seconds for the manifest of 40,000 shards.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ 0x82F63B78 if value & 1 else value >> 1
        table.append(value)
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class _Hash128(ctypes.Structure):
    _fields_ = (("low", ctypes.c_uint64), ("high", ctypes.c_uint64))


def xxh3_128(data: bytes) -> str:
    """XXH3-128 in hex, by the library that penstock is built with."""
    library = ctypes.CDLL(ctypes.util.find_library("xxhash") or "libxxhash.so.0")
    library.XXH3_128bits.restype = _Hash128
    library.XXH3_128bits.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
    value = library.XXH3_128bits(data, len(data))
    return f"{value.high:016x}{value.low:016x}"
