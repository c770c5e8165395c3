"""A dataset that is there, as those see it who take its shards: a folder of this machine, or an address."""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from penstock import _native
from penstock._base.errors import CorruptionError, Error, InvalidArgumentError
from penstock._data.dataset import Dataset
from penstock._data.open import open as open_dataset
from penstock._data.open import refuse_foreign
from penstock._make.bucket_look import MANIFEST, SHARD_MANIFEST
from penstock._places.paths import PathLike, local_path
from penstock._places.remote import Address, is_address
from penstock._places.scratch import Scratch, telling_of
from penstock._places.storage import Storage
from penstock._places.stores import addresses_of, stores_of

ONLY_SHARD = "00000"  # the name of a shard that is brought here alone
_SMALL_AT_ONCE = 16
_PIECE_BYTES = 8 << 20
_PIECES_AT_ONCE = 4

Put = Callable[[str, Path], None]
"""Makes the file at the second path that at the first one."""


class StoredShard(NamedTuple):
    """A shard of a dataset.

    Attributes:
        name: of its folder.
        text: of its shard.json.
        files: (name, bytes) of the others, side files with them.
        task: what its writer said that it was made of.
        records: of the shard.
        spans: of the shard.
        entries: of the shard.
        bytes: of its files, without side files.
    """

    name: str
    text: bytes
    files: tuple[tuple[str, int], ...]
    task: Any
    records: int
    spans: int
    entries: int
    bytes: int


class Stored(ABC):
    """A published dataset. Pickles, without what is open and without its shards; one thread at a time.

    Attributes:
        path: of the folder, or the address as it may be shown.
    """

    path: str

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self._kept}

    _kept: tuple[str, ...] = ("path",)

    @abstractmethod
    def absolute(self) -> Stored:
        """The same for workers whose working directory is another."""

    @abstractmethod
    def _open(self) -> Dataset: ...

    @abstractmethod
    def read(self, name: str) -> bytes:
        """A small file, whole."""

    @abstractmethod
    def bring(self, name: str, files: Iterable[tuple[str, int]], to: Path, put: Put | None = None) -> None:
        """Files of its folder `name` to the new folder `to`: downloaded, or of this machine put there.

        Args:
            name: of a shard's folder.
            files: (name, bytes) of each.
            to: the folder.
            put: how files of this machine are put there; None: hard-linked, else copied.
        """

    @abstractmethod
    def at_hand(self, above: PathLike | None, passed: Callable[[int], None]) -> AbstractContextManager[str]:
        """A path of this machine where all of it lies: its own, or until it is left that of a copy.

        Args:
            above: where the folder of a copy is made; None: in that of temporary files.
            passed: called with the bytes of each shard that is brought.
        """

    @abstractmethod
    def _below(self, folder: str) -> Stored: ...

    # ---- what it is

    @cached_property
    def dataset(self) -> Dataset:
        """Opened."""
        return self._open()

    @cached_property
    def manifest(self) -> bytes:
        """The text of its dataset.json."""
        dataset = self.dataset  # which says of what is no dataset what it is
        text = self.read(MANIFEST)
        if json.loads(text)["fingerprint"] != dataset.fingerprint:
            raise InvalidArgumentError(f"{self.path}: another dataset was published here just now: do it again")
        return text

    @property
    def tokenizer(self) -> Any:
        """As the manifest has it."""
        return json.loads(self.manifest)["tokenizer"]

    @property
    def features(self) -> tuple[str, str] | None:
        """(folder, fingerprint) of what records name by number."""
        said = json.loads(self.manifest).get("features")
        return (said["folder"], said["fingerprint"]) if said else None

    @cached_property
    def shards(self) -> list[StoredShard]:
        """All of them, in order.

        Raises:
            NotFoundError: One has no shard.json.
            CorruptionError: They are not what the manifest says.
        """
        names = [str(each["name"]) for each in json.loads(self.manifest)["shards"]]
        with ThreadPoolExecutor(_SMALL_AT_ONCE, "penstock-shards") as threads:
            texts = list(threads.map(self.read, [f"{name}/{SHARD_MANIFEST}" for name in names]))
        shards = [self._shard(*each) for each in zip(names, texts, strict=True)]
        if shards:
            pairs = list(zip(names, texts, strict=True))
            said = json.loads(_native.stored_manifest(self.path, pairs, "null", None, None))
            if said["fingerprint"] != self.dataset.fingerprint:
                raise CorruptionError(f"{self.path}: its shards' {SHARD_MANIFEST} are not of this {MANIFEST}")
        return shards

    def _shard(self, name: str, text: bytes) -> StoredShard:
        said = _native.describe_shard(text, f"{self.path}/{name}/{SHARD_MANIFEST}", 0)
        task = json.loads(said.task_json)
        return StoredShard(name, text, tuple(said.files), task, said.records, said.spans, said.entries, said.bytes)

    # ---- its files

    def bring_alone(self, shard: StoredShard, to: Path) -> None:
        """A shard as a dataset of its own, in the new folder `to`, without features and tokenizer."""
        self.bring(shard.name, shard.files, to / ONLY_SHARD)
        with telling_of(to):
            (to / ONLY_SHARD / SHARD_MANIFEST).write_bytes(shard.text)
            text = _native.stored_manifest(str(to), [(ONLY_SHARD, shard.text)], "null", None, None)
            (to / MANIFEST).write_text(text, encoding="utf-8")

    def bring_all(self, to: Path, passed: Callable[[int], None]) -> None:
        """All of it, to the new folder `to`; `passed` is called with the bytes of each shard."""
        with telling_of(to):
            to.mkdir(parents=True)
        for shard in self.shards:
            self.bring(shard.name, shard.files, to / shard.name)
            with telling_of(to):
                (to / shard.name / SHARD_MANIFEST).write_bytes(shard.text)
            passed(shard.bytes)
        if self.features is not None:
            folder = self.features[0]
            self._below(folder).bring_all(to / folder, lambda count: None)
        with telling_of(to):
            (to / MANIFEST).write_bytes(self.manifest)


class _Here(Stored):
    """In a folder of this machine."""

    def __init__(self, path: str) -> None:
        self.path = path

    def absolute(self) -> Stored:
        return _Here(str(Path(self.path).absolute()))

    def _open(self) -> Dataset:
        return open_dataset(self.path)

    def read(self, name: str) -> bytes:
        path = Path(self.path) / name
        with telling_of(path):
            return path.read_bytes()

    def bring(self, name: str, files: Iterable[tuple[str, int]], to: Path, put: Put | None = None) -> None:
        with telling_of(to):
            to.mkdir(parents=True)
            for file, _ in files:
                (put or _link)(f"{self.path}/{name}/{file}", to / file)

    def at_hand(self, above: PathLike | None, passed: Callable[[int], None]) -> AbstractContextManager[str]:
        return nullcontext(self.path)

    def _below(self, folder: str) -> Stored:
        return _Here(f"{self.path}/{folder}")


class _There(Stored):
    """At an address."""

    _kept = ("path", "_at", "_storage")
    _url: str | None = None  # which may hold secrets, and is not pickled

    def __init__(self, at: Address, storage: Storage | None, url: str | None = None) -> None:
        """`url`: the address as the user gave it; None: as it is shown."""
        self.path = at.path
        self._at = at
        self._storage = storage
        self._url = url

    def absolute(self) -> Stored:
        return self

    def _open(self) -> Dataset:
        return open_dataset(self._url or self.path, storage=self._storage)

    @cached_property
    def _store(self) -> _native.Store:
        store = stores_of([self._at])[0]
        assert store is not None
        return store

    def read(self, name: str) -> bytes:
        path = f"{self.path}/{name}"
        return self._store.read(path, 0, self._store.size(path))

    def bring(self, name: str, files: Iterable[tuple[str, int]], to: Path, put: Put | None = None) -> None:
        with telling_of(to):
            to.mkdir(parents=True)
        for file, size in files:
            self._download(f"{self.path}/{name}/{file}", size, to / file)

    def _download(self, path: str, size: int, to: Path) -> None:
        with telling_of(to), to.open("wb") as file:

            def fetch(begin: int) -> None:
                count = min(_PIECE_BYTES, size - begin)
                piece = memoryview(self._store.read(path, begin, count)).cast("B")
                if len(piece) != count:
                    raise CorruptionError(f"{path}: {len(piece):,} bytes from byte {begin:,} on, of {count:,}")
                with telling_of(to):
                    while piece:
                        written = os.pwrite(file.fileno(), piece, begin)
                        piece, begin = piece[written:], begin + written

            if size <= _PIECE_BYTES:
                if size:
                    fetch(0)
                return
            with ThreadPoolExecutor(_PIECES_AT_ONCE, "penstock-fetch") as threads:
                for _ in threads.map(fetch, range(0, size, _PIECE_BYTES)):
                    pass

    @contextmanager
    def at_hand(self, above: PathLike | None, passed: Callable[[int], None]) -> Iterator[str]:
        with Scratch(above) as folder, told_instead({str(folder / "input"): self.path}):
            self.bring_all(folder / "input", passed)
            yield str(folder / "input")

    def _below(self, folder: str) -> Stored:
        return _There(replace(self._at, path=f"{self.path}/{folder}"), self._storage)


def stored(path: PathLike, storage: Storage | None, why: str) -> Stored:
    """A dataset of penstock that is there.

    Args:
        path: its folder, or its address.
        storage: how an address is reached.
        why: what cannot be done with files of other formats, and what can.

    Raises:
        NotFoundError: There is nothing of this name.
        InvalidArgumentError: No dataset of penstock; several addresses.
    """
    if is_address(path):
        addresses = addresses_of(path, storage)
        if len(addresses) > 1:
            raise InvalidArgumentError(f"{addresses[0].path}, {addresses[1].path}, …: name each dataset")
        return _There(addresses[0], storage, path)
    text = local_path(path)
    refuse_foreign(text, why)
    return _Here(text)


def joined_tokenizer(inputs: Sequence[Stored], *, appends: bool = False) -> Any:
    """The tokenizer of datasets whose shards become one dataset's; None where one does not say.

    Args:
        inputs: the datasets.
        appends: those behind the first are added to it, which keeps what it says.

    Raises:
        InvalidArgumentError: Mode, layout, fields, codec, columns, features or tokenizer differ; one that is added does
            not say its own.
    """
    manifests = [each.manifest for each in inputs]
    return json.loads(_native.joined_tokenizer(appends, [each.path for each in inputs], manifests))


def fingerprint_of(shards: Sequence[StoredShard]) -> str:
    """The fingerprint of a dataset of these shards alone."""
    texts = [(f"{number:05}", each.text) for number, each in enumerate(shards)]
    return str(json.loads(_native.stored_manifest("", texts, "null", None, None))["fingerprint"])


@contextmanager
def told_of(local: Path, folder: str, dataset: str) -> Iterator[None]:
    """Lets errors name the shard `folder` of `dataset`, which was brought to `local` alone."""

    with told_instead({f"{local}/{ONLY_SHARD}": f"{dataset}/{folder}", str(local): dataset}):
        yield


@contextmanager
def told_instead(names: Mapping[str, str]) -> Iterator[None]:
    """Lets errors name other paths: those that were brought here by where they are."""

    def told(text: str) -> str:
        for here, there in names.items():
            text = text.replace(here, there)
        return text

    try:
        yield
    except Error as error:
        if isinstance(error, OSError):
            name = told(error.filename) if isinstance(error.filename, str) else error.filename
            raise type(error)(error.errno, told(error.strerror or str(error)), name) from None
        raise type(error)(told(str(error.args[0] if error.args else error))) from None


def symlink(source: str, to: Path) -> None:
    """Makes `to` a link to a file, for what reads it alone."""
    to.symlink_to(Path(source).absolute())


def _link(source: str, to: Path) -> None:
    try:
        os.link(os.path.realpath(source), to)
    except OSError:  # of another file system, or one without links
        shutil.copyfile(source, to)
