"""A dataset's folder in a bucket: what is there, what of it is published, and what is removed.

Nothing locks there. A shard's folder has a name of its own bytes, so that attempts never mix, and the manifest is put
under a condition: only where none is, or in the place of the very one that was seen (_bucket_publish.py).
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from penstock import _native
from penstock._base.errors import CorruptionError, Error, InvalidArgumentError, NotFoundError
from penstock._base.words import counted
from penstock._places.attempts import apart, one_operation
from penstock._places.storage import Storage
from penstock._places.uploads import Bucket, Version

MANIFEST = "dataset.json"
SHARD_MANIFEST = "shard.json"
# Without a tail: a shard that was written on a local disk and copied.
_SHARD = re.compile(r"(\d{5}|[1-9]\d{5,11})(?:\.([1-9]\d{0,11}))?(?:-[0-9a-f]{8})?")
_KEPT_LINES = 3  # of what a message lists
_LAST_SECONDS = 3.0  # that a request may be tried again once a writer gives up


@dataclass(frozen=True)
class Shard:
    """A shard's folder.

    Attributes:
        name: of the folder.
        number: of the shard.
        generation: of the shards that it belongs to.
        is_finished: whether it is whole.
    """

    name: str
    number: int
    generation: int
    is_finished: bool


@dataclass(frozen=True)
class Described:
    """A finished shard.

    Attributes:
        name: of its folder.
        text: of its shard.json.
        shard: what that says, a _native.FinishedShard.
    """

    name: str
    text: bytes
    shard: Any


def shard_name(number: int, generation: int, folder: Path) -> str:
    """The name of a finished shard whose files are in `folder` (docs/format.md)."""
    return f"{number:05}{f'.{generation}' if generation else ''}-{_tail(folder, SHARD_MANIFEST)}"


def name_of_bytes(number: int, generation: int, text: bytes, crcs: Iterable[bytes]) -> str:
    """The same, of the text of its shard.json and the check values in the order of their names."""
    digest = hashlib.sha256(text)
    for each in crcs:
        digest.update(each)
    return f"{number:05}{f'.{generation}' if generation else ''}-{digest.hexdigest()[:8]}"


def features_name(generation: int, folder: Path) -> str:
    """The same of a folder of features."""
    return f"features{f'.{generation}' if generation else ''}-{_tail(folder, MANIFEST)}"


def _tail(folder: Path, manifest: str) -> str:
    """A hash of the manifest, which has all digests, and of the check values, which cover the other bytes."""
    digest = hashlib.sha256((folder / manifest).read_bytes())
    for each in sorted(folder.rglob("*.crc")):
        digest.update(each.read_bytes())
    return digest.hexdigest()[:8]


def moved_name(number: int, generation: int, name: str) -> str | None:
    """The name of a shard taken from the folder `name` of another dataset in a bucket; None: it holds no hash."""
    found = _SHARD.fullmatch(name)
    if found is None or "-" not in name:
        return None
    return f"{number:05}{f'.{generation}' if generation else ''}-{name.rpartition('-')[2]}"


def parsed(name: str, is_finished: bool) -> Shard | None:
    """The shard whose folder has this name; None: it is no shard's."""
    found = _SHARD.fullmatch(name)
    return Shard(name, int(found[1]), int(found[2] or 0), is_finished) if found else None


class BucketLook:
    """One look at the folder; `look()` takes another. Pickles, for workers that need not look themselves.

    Attributes:
        bucket: where it is.
        sizes: of all objects in it, by name.
        manifest: the text of dataset.json; None: nothing is published.
        version: of dataset.json.
        named: folders that it names; empty where it cannot be read.
        generation: of shards that are not published.
    """

    def __init__(self, url: str, storage: Storage | None, *, is_impatient: bool = False) -> None:
        """Looks. With `is_impatient` requests are given up after a few seconds.

        Raises:
            InvalidArgumentError: As Bucket.
            NotFoundError: No such bucket.
            IoError: It may not be listed, or not read.
        """
        storage = storage or Storage()
        if is_impatient:
            storage = replace(storage, deadline=min(storage.deadline, _LAST_SECONDS))
        self.bucket = Bucket(url, storage)
        self.url = self.bucket.url
        self.sizes: dict[str, int] = {}
        self.shards: list[Shard] = []
        self.look()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "bucket": self.bucket.storage}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.bucket = Bucket(self.url, state["bucket"])

    def forget(self, names: Iterable[str]) -> None:
        """Folders that were removed since."""
        gone = set(names)
        self.sizes = {name: size for name, size in self.sizes.items() if name.partition("/")[0] not in gone}
        self.shards = [each for each in self.shards if each.name not in gone]

    def look(self) -> None:
        """Again."""
        # The manifest first: shards of a dataset that is published meanwhile are then in the list.
        with one_operation():
            found = self.bucket.get(MANIFEST)
            self.sizes = self.bucket.sizes()
        self.manifest = None if found is None else found[0]
        self.version: Version | None = None if found is None else found[1]
        self.named, self._names = _named(self.manifest)
        self.shards = self._shards()
        self.generation = generation_of(self.manifest, self.shards)[1]

    def _shards(self) -> list[Shard]:
        names = sorted({name.partition("/")[0] for name in self.sizes if "/" in name})
        found = (parsed(name, f"{name}/{SHARD_MANIFEST}" in self.sizes) for name in names)
        return [each for each in found if each is not None]

    @property
    def is_published(self) -> bool:
        return self.manifest is not None

    @property
    def features(self) -> tuple[str, str] | None:
        """(folder, fingerprint) of those of the published dataset, whose manifest can be read."""
        said = json.loads(self.manifest).get("features") if self.manifest is not None else None
        return (str(said["folder"]), str(said["fingerprint"])) if said else None

    def unpublished(self) -> list[Shard]:
        """Finished shards of the dataset that is to come, by number; two attempts that differ are both there."""
        mine = [each for each in self.shards if each.is_finished and each.generation == self.generation]
        return sorted(mine, key=lambda each: (each.number, each.name))

    def refuse_published(self) -> NoReturn:
        """Raises InvalidArgumentError: a dataset is there, and `overwrite` was not given."""
        raise InvalidArgumentError(
            f"{self.url}: there is a published dataset: write elsewhere, or let a writer replace it with overwrite"
        )

    def refuse_other(self) -> NoReturn:
        """Raises InvalidArgumentError: what is published is not what was seen."""
        raise InvalidArgumentError(
            f"{self.url}: someone else has published or removed a dataset here since this writer began: this one is "
            "not published, and what is there stays"
        )

    def finished(self, overwrite: bool) -> list[Described]:
        """The finished shards: of the published dataset, or with `overwrite` or without one those not published.

        Raises:
            CorruptionError: A shard.json is damaged, or that of a published shard is gone.
        """
        if self.is_published and not overwrite:
            if self._names is None:
                raise CorruptionError(f"{self.bucket.address(MANIFEST)}: cannot be read: `penstock verify` says why")
            named = list(enumerate(self._names))
        else:
            named = [(each.number, each.name) for each in self.unpublished()]
        return self.described(named)

    def described(self, named: Sequence[tuple[int, str]]) -> list[Described]:
        """Reads the shard.json of each folder (number, name), all at once."""
        files = [f"{name}/{SHARD_MANIFEST}" for _, name in named]
        texts = self.bucket.get_all(files)
        return [
            Described(name, text, _native.describe_shard(text, self.bucket.address(file), number))
            for (number, name), file, text in zip(named, files, texts, strict=True)
        ]

    def remove_folders(self, names: Iterable[str], sizes: dict[str, int] | None = None) -> None:
        """With all that the last look saw in them, the manifests of shards first: what is left is unfinished."""
        names = set(names)
        objects = [each for each in (self.sizes if sizes is None else sizes) if each.partition("/")[0] in names]
        ends = [each for each in objects if each.endswith((f"/{SHARD_MANIFEST}", f"/{MANIFEST}"))]
        with one_operation():
            self.bucket.remove(ends)
            self.bucket.remove(sorted(set(objects) - set(ends)))

    def remove_mine(self, names: Iterable[str]) -> None:
        """Removes folders that this process uploaded and nobody can publish. Raises nothing.

        Another writer of the same bytes, as a restart of this one, has the same folders, and may finish and publish
        them at any time. Only once a manifest stands that this writer did not see, the condition refuses every other
        writer of this generation: those that it names stay, and nobody will name the others. Until then all stay, for
        the restart or for the next commit, which removes what it does not name.

        It does not wait for a server that does not answer: who gives up wants to end.
        """
        with apart(), suppress(Error):
            there = self.impatient()
            if there.manifest is None or there.version == self.version or there._names is None:
                return
            there.remove_folders(set(names) - there.named)

    def impatient(self) -> BucketLook:
        """Another look, whose requests are given up after a few seconds."""
        return BucketLook(self.url, self.bucket.storage, is_impatient=True)

    def remove_shards(self, numbers: Iterable[int], overwrite: bool) -> set[str]:
        """Removes finished shards that are not published, all attempts of each number; the names of their folders.

        Raises:
            InvalidArgumentError: A dataset is published, and `overwrite` is not given.
            NotFoundError: A shard is not there.
        """
        if self.is_published and not overwrite:
            self.refuse_published()
        there = self.unpublished()
        names = set()
        for number in numbers:
            mine = [each.name for each in there if each.number == number]
            if not mine:
                raise NotFoundError(errno.ENOENT, f"{self.url}: no finished shard {number:05}", self.url)
            names.update(mine)
        self.remove_folders(names)
        return names

    def clean(self) -> None:
        """Removes shards that are not finished; their writers are known to have ended."""
        unfinished = {each.name for each in self.shards if not each.is_finished} - self.named
        self.remove_folders(unfinished)
        self.forget(unfinished)

    def notices(self) -> list[str]:
        """Objects that the manifest does not name: a text for each kind, with advice."""
        if self._names is None:
            return []
        left = [each for each in self.shards if each.name not in self.named]
        if not left:
            return []
        names = ", ".join(each.name for each in left[:_KEPT_LINES]) + (" and more" if len(left) > _KEPT_LINES else "")
        return [
            f"{self.url}: {counted(len(left), 'folder')} of shards that the manifest does not name: {names}: of "
            "writers at work or of some that ended early. The next commit with overwrite removes them"
        ]


def generation_of(manifest: bytes | None, shards: Iterable[Shard]) -> tuple[list[str] | None, int]:
    """Folders of shards that a manifest names, None: there is none; and the generation of those not published."""
    named, names = _named(manifest)
    if manifest is None:
        return None, max((each.generation for each in shards), default=0)
    mine = [each.generation for each in shards if names is None or each.name in named]
    return names or [], max(mine, default=0) + 1


def _named(manifest: bytes | None) -> tuple[set[str], list[str] | None]:
    """All folders that a manifest names, and those of shards in their order; None: it cannot be read."""
    if manifest is None:
        return set(), []
    try:
        said = json.loads(manifest)
        names = [str(each["name"]) for each in said["shards"]]
        features = said.get("features")
        return {*names, *([str(features["folder"])] if features else [])}, names
    except (ValueError, KeyError, TypeError, AttributeError):
        return set(), None
