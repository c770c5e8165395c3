"""Operations at a server that lies: each is prepared while the server is honest, and then asked for."""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from penstock import Storage
from servers.objects import Objects

ACCESS, SECRET, TOKEN = (
    "AKIAQ3EXAMPLEKEY0001",
    "Pa55word/with+odd=characters0000000000000",
    "FwoGZXIvYXdzEXAMPLETOKEN==",
)
PASSWORD = "Hunter2-Hunter2"
SHARDS, DOCUMENTS = 2, 60
CONNECTIONS = 4


def make_files(folder: Path) -> dict[str, bytes]:
    """Keys of the bucket `data`, and what they hold: a dataset, token files, a table of documents."""
    rng = np.random.default_rng(7)
    with penstock.Writer(
        folder / "corpus", {"token": "u2"}, metadata="json", columns={"n": "u4"}, shard_size=9000
    ) as w:
        for number in range(SHARDS * DOCUMENTS):
            w.append(token=rng.integers(0, 60_000, 75).astype("u2"), metadata={"n": number}, columns={"n": number})
    for number in range(3):
        rng.integers(0, 60_000, 3000).astype("u2").tofile(folder / f"{number}.bin")
    import pyarrow
    import pyarrow.parquet

    rows = [rng.integers(0, 60_000, 40).astype("u2").tolist() for _ in range(50)]
    table = pyarrow.table({"tokens": pyarrow.array(rows, pyarrow.list_(pyarrow.uint16()))})
    pyarrow.parquet.write_table(table, folder / "raw.parquet")
    files = (each for each in folder.rglob("*") if each.is_file() and "/." not in str(each))
    return {f"data/{each.relative_to(folder)}": each.read_bytes() for each in files}


def keys() -> dict[str, Any]:
    return {"access_key_id": ACCESS, "secret_access_key": SECRET, "token": TOKEN, "expires_at": None}


@dataclass
class At:
    """Where an operation is done, and with what.

    Attributes:
        http: the address of the bucket `data` for plain requests.
        endpoint: of the server.
        deadline: of the operation.
        folder: of its own.
    """

    endpoint: str
    deadline: float
    folder: Path
    objects: Objects
    ca_file: str | None = None

    @property
    def http(self) -> str:
        return f"{self.endpoint}/data"

    def plain(self, **given: Any) -> Storage:
        return Storage(deadline=self.deadline, connections=CONNECTIONS, ca_file=self.ca_file, **given)

    def bucket(self, **given: Any) -> Storage:
        given = {"credentials": keys, **given}
        options = {"endpoint": self.endpoint, "region": "us-east-1", "connections": CONNECTIONS}
        return Storage(deadline=self.deadline, ca_file=self.ca_file, **options, **given)


Ask = Callable[[], str]


def digest(*parts: Any) -> str:
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part.tobytes() if isinstance(part, np.ndarray) else repr(part).encode())
    return hashed.hexdigest()


def opening(at: At) -> Ask:
    return lambda: digest(penstock.open(f"{at.http}/corpus", storage=at.plain()).fingerprint)


def opening_of_files(at: At) -> Ask:
    names = [f"{at.http}/{number}.bin" for number in range(3)]
    return lambda: digest(penstock.open(*names, dtype="u2", storage=at.plain()).fingerprint)


def opening_of_a_bucket(at: At) -> Ask:
    return lambda: digest(penstock.open("s3://data/corpus", storage=at.bucket()).fingerprint)


def view(at: At) -> Ask:
    dataset = penstock.open(f"{at.http}/corpus", storage=at.plain(), checks="all")
    rows = dataset.windows(64)
    return lambda: digest(*_seen(rows.read(np.arange(0, len(rows), 7))), dataset.columns["n"][:])


def _seen(batch: Any) -> list[Any]:
    spans = [(each.row, each.start, each.metadata) for each in batch.spans] if batch.spans is not None else []
    return [np.asarray(batch.indices), np.asarray(batch["token"]), spans]


def loader(at: At) -> Ask:
    made = penstock.open("s3://data/corpus", storage=at.bucket(), checks="all").documents()
    return lambda: _loaded(made, threads=3)


def loader_by_python(at: At) -> Ask:
    made = penstock.open(f"{at.http}/corpus", storage=at.plain(), checks="all").windows(64)
    return lambda: _loaded(made, reader="python")


def loader_of_blocks(at: At) -> Ask:
    made = penstock.open(f"{at.http}/corpus", storage=at.plain(), checks="all").windows(32)
    return lambda: _loaded(made, order=penstock.orders.Blocks(4, 16), threads=2)


def _loaded(made: Any, **options: Any) -> str:
    options = {"order": "uniform", "epochs": 1, **options}
    with penstock.Loader(made, 8, seed=3, framework="numpy", **options) as batches:
        return digest(*(part for batch in batches for part in _seen(batch)))


def cache(at: At) -> Ask:
    """Twice: what was kept while the server lied is read again."""

    def ask() -> str:
        dataset = penstock.open(f"{at.http}/corpus", storage=at.plain(), checks="all", cache=at.folder / "cache")
        rows = dataset.windows(64)
        first = digest(*_seen(rows.read(np.arange(len(rows)))))
        again = digest(*_seen(rows.read(np.arange(len(rows)))))
        assert first == again, "what was kept is not what was read"
        return first

    return ask


def listing(at: At) -> Ask:
    return lambda: digest(penstock.open("s3://data/*.bin", dtype="u2", storage=at.bucket()).fingerprint)


def shards(at: At) -> Ask:
    """A list of all that is there, and the manifests of shards."""
    return lambda: digest(
        [
            (each.number, each.records, each.bytes)
            for each in penstock.finished_shards("s3://data/corpus", storage=at.bucket())
        ]
    )


def importing(at: At) -> Ask:
    def ask() -> str:
        out = at.folder / "imported"
        shutil.rmtree(out, ignore_errors=True)
        penstock.import_tokens("s3://data/raw.parquet", out, storage=at.bucket())
        return penstock.open(out).fingerprint

    return ask


def writing(at: At, *, overwrite: bool = False, document: int = 800, shard_size: int = 20_000) -> Ask:
    def ask() -> str:
        out = f"s3://data/{at.folder.name}"
        options: dict[str, Any] = {"shard_size": shard_size, "scratch": at.folder, "storage": at.bucket()}
        with penstock.Writer(out, {"token": "u2"}, metadata="json", overwrite=overwrite, **options) as writer:
            for number in range(30):
                writer.append(token=np.full(document, number, "u2"), metadata={"number": number})
        return published(at)

    return ask


def writing_in_parts(at: At, *, overwrite: bool = False) -> Ask:
    """A file of two parts."""
    return writing(at, overwrite=overwrite, document=150_000, shard_size=1 << 30)


REWRITES: dict[str, Callable[[At], Ask]] = {
    "writing": functools.partial(writing, overwrite=True),
    "writing in parts": functools.partial(writing_in_parts, overwrite=True),
}


def published(at: At) -> str:
    """The contents of the published dataset, read by a local copy of its objects; "" if there is none."""
    files = at.objects.below(f"data/{at.folder.name}/")
    if "dataset.json" not in files:
        return ""
    with tempfile.TemporaryDirectory(dir=at.folder) as folder:
        for name, data in files.items():
            path = Path(folder) / "copy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        found = penstock.open(Path(folder) / "copy", checks="all")
        report = penstock.verify(found.path)
        assert report, f"what is published is damaged: {report}"
        return found.fingerprint


@dataclass(frozen=True)
class Operation:
    """One of them.

    Attributes:
        prepare: gives what is asked for while the server lies.
        has_checks: all that it reads has check values.
        knows_sizes: of all that it reads, by a manifest.
        is_native: no part of it is read by obstore.
        kinds: of requests that it makes while the server lies.
    """

    prepare: Callable[[At], Ask]
    kinds: frozenset[str] = frozenset({"get"})
    has_checks: bool = False
    knows_sizes: bool = True
    is_native: bool = True
    writes: bool = False


_WRITING = frozenset({"get", "list", "put", "new", "delete"})
OPERATIONS: dict[str, Operation] = {
    "opening": Operation(opening),
    "opening of files": Operation(opening_of_files, knows_sizes=False),
    "opening of a bucket": Operation(opening_of_a_bucket),
    "view": Operation(view, has_checks=True),
    "loader": Operation(loader, has_checks=True),
    "loader of blocks": Operation(loader_of_blocks, has_checks=True),
    "loader by Python": Operation(loader_by_python, has_checks=True, is_native=False),
    "cache": Operation(cache, has_checks=True),
    "listing": Operation(listing, frozenset({"get", "list"}), knows_sizes=False, is_native=False),
    "shards": Operation(shards, frozenset({"get", "list"}), is_native=False),
    "import": Operation(importing, is_native=False),
    "writing": Operation(writing, _WRITING, is_native=False, writes=True),
    "writing in parts": Operation(
        writing_in_parts, _WRITING | {"begin", "part", "end", "abort"}, is_native=False, writes=True
    ),
}
