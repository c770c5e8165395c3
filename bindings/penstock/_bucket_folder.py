"""A dataset's folder in a bucket: what is there, what of it is published, and the publishing.

Nothing locks there. A shard's folder has a name of its own bytes, so that attempts never mix, and the manifest is put
under a condition: only where none is, or in the place of the very one that was seen.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from penstock import _native
from penstock._errors import CorruptionError, Error, InvalidArgumentError, IoError, NotFoundError
from penstock._remote import is_address
from penstock._storage import Storage
from penstock._uploads import Bucket, Refused, Version, check_writable
from penstock._words import counted

MANIFEST = "dataset.json"
SHARD_MANIFEST = "shard.json"
# Without a tail: a shard that was written on a local disk and copied.
_SHARD = re.compile(r"(\d{5}|[1-9]\d{5,11})(?:\.([1-9]\d{0,11}))?(?:-[0-9a-f]{8})?")
_OURS = re.compile(r"(\d{5,12}|features)(\.[1-9]\d{0,11})?-[0-9a-f]{8}")
_FILES = re.compile(r"shard\.json|dataset\.json|(stream\.bin|metadata\.(bin|index|directory)|columns\.bin)(\.crc)?")
_KEPT_LINES = 3  # of what a message lists


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


def shard_name(number: int, generation: int, folder: Path) -> str:
    """That of a finished shard whose files are in `folder`, as docs/format.md has it."""
    return f"{number:05}{f'.{generation}' if generation else ''}-{_tail(folder, SHARD_MANIFEST)}"


def features_name(generation: int, folder: Path) -> str:
    """The same of a folder of features."""
    return f"features{f'.{generation}' if generation else ''}-{_tail(folder, MANIFEST)}"


def _tail(folder: Path, manifest: str) -> str:
    """Of the manifest, which has all digests, and the check values, which tell bytes that no digest is of."""
    digest = hashlib.sha256((folder / manifest).read_bytes())
    for each in sorted(folder.rglob("*.crc")):
        digest.update(each.read_bytes())
    return digest.hexdigest()[:8]


def _parsed(name: str, is_finished: bool) -> Shard | None:
    found = _SHARD.fullmatch(name)
    return Shard(name, int(found[1]), int(found[2] or 0), is_finished) if found else None


class BucketFolder:
    """One look at the folder; `look()` takes another.

    Attributes:
        bucket: where it is.
        sizes: of all objects in it, by name.
        manifest: the text of dataset.json; None: nothing is published.
        version: of dataset.json.
        named: folders that it names; empty where it cannot be read.
        generation: of shards that are not published.
    """

    def __init__(self, url: str, storage: Storage | None) -> None:
        """Looks.

        Raises:
            InvalidArgumentError: As Bucket.
            NotFoundError: No such bucket.
            IoError: It may not be listed, or not read.
        """
        self.bucket = Bucket(url, storage)
        self.url = self.bucket.url
        self.look()

    def look(self) -> None:
        """Again."""
        # The manifest first: shards of a dataset that is published meanwhile are then in the list.
        found = self.bucket.get(MANIFEST)
        self.sizes = self.bucket.sizes()
        self.manifest = None if found is None else found[0]
        self.version: Version | None = None if found is None else found[1]
        self.named, self._names = _named(self.manifest)
        self.shards = self._shards()
        generations = [each.generation for each in self.shards]
        if self.manifest is not None and self._names is not None:
            generations = [each.generation for each in self.shards if each.name in self.named]
        self.generation = max(generations, default=0) + (self.manifest is not None)

    def _shards(self) -> list[Shard]:
        names = sorted({name.partition("/")[0] for name in self.sizes if "/" in name})
        found = (_parsed(name, f"{name}/{SHARD_MANIFEST}" in self.sizes) for name in names)
        return [each for each in found if each is not None]

    @property
    def is_published(self) -> bool:
        return self.manifest is not None

    def unpublished(self) -> list[Shard]:
        """Finished shards of the dataset that is to come, by number; two attempts that differ are both there."""
        mine = [each for each in self.shards if each.is_finished and each.generation == self.generation]
        return sorted(mine, key=lambda each: (each.number, each.name))

    def refuse_published(self) -> NoReturn:
        """Raises InvalidArgumentError: a dataset is there that nobody said to replace."""
        raise InvalidArgumentError(
            f"{self.url}: there is a published dataset: write elsewhere, or let a writer replace it with overwrite"
        )

    def refuse_other(self) -> NoReturn:
        """Raises InvalidArgumentError: what is published is not what was seen."""
        raise InvalidArgumentError(
            f"{self.url}: someone else has published or removed a dataset here since this writer began: this one is "
            "not published, and what is there stays"
        )

    def finished(self, overwrite: bool) -> list[Any]:
        """What the shard.json of each finished shard says: of the published dataset, or of what is not published.

        Raises:
            CorruptionError: A shard.json is damaged, or that of a published shard is gone.
        """
        if self.is_published and not overwrite:
            if self._names is None:
                raise CorruptionError(f"{self.bucket.address(MANIFEST)}: cannot be read: `penstock verify` says why")
            named = list(enumerate(self._names))
        else:
            named = [(each.number, each.name) for each in self.unpublished()]
        return [found for _, _, found in self._described(named)]

    def _described(self, named: Sequence[tuple[int, str]]) -> list[tuple[str, bytes, Any]]:
        files = [f"{name}/{SHARD_MANIFEST}" for _, name in named]
        texts = self.bucket.get_all(files)
        return [
            (name, text, _native.describe_shard(text, self.bucket.address(file), number))
            for (number, name), file, text in zip(named, files, texts, strict=True)
        ]

    def commit(
        self,
        tokenizer: str,
        shards: int | Sequence[int] | None,
        overwrite: bool,
        tasks: Sequence[str] | None,
        features: Any,
        make_scratch: Callable[[], Any],
        seen: BucketFolder | None = None,
    ) -> str:
        """Publishes the finished shards that are here.

        Args:
            tokenizer: as JSON.
            shards: how many there must be, or their numbers.
            overwrite: in the place of a published dataset.
            tasks: of each shard, as JSON.
            features: as native code takes them, or None.
            make_scratch: gives a folder of this machine that is removed at the end of a `with`.
            seen: an earlier look, whose dataset alone may be replaced.

        Returns:
            The fingerprint.

        Raises:
            InvalidArgumentError, NotFoundError, CorruptionError, IoError: As penstock.commit().
        """
        if seen is not None and seen.version != self.version:
            self.refuse_other()
        if self.is_published and not overwrite:
            self.refuse_published()
        found = self._described([(each.number, each.name) for each in self.unpublished()])
        chosen = self._choose(found, shards, tasks)
        for name, _, shard in chosen:
            self._check_sizes(name, shard)
        texts = [(name, text) for name, text, _ in chosen]
        if features is None:
            return self.publish(texts, tokenizer, tasks, None)
        with make_scratch() as scratch:
            folder = Path(scratch) / "features"
            fingerprint = _native.write_features(str(folder), features)
            name = self.put_features(folder)
            try:
                return self.publish(texts, tokenizer, tasks, (name, fingerprint))
            except BaseException:
                self.remove_mine([name])
                raise

    def _choose(
        self, found: list[tuple[str, bytes, Any]], shards: int | Sequence[int] | None, tasks: Sequence[str] | None
    ) -> list[tuple[str, bytes, Any]]:
        """One attempt for each number: of several the one that was made of the task."""
        if not found:
            raise NotFoundError(errno.ENOENT, f"{self.url}: no finished shard to commit", self.url)
        by_number: dict[int, list[tuple[str, bytes, Any]]] = {}
        for each in found:
            by_number.setdefault(each[2].number, []).append(each)
        chosen: list[tuple[str, bytes, Any]] = []
        named = range(len(by_number)) if shards is None or isinstance(shards, int) else shards
        if more := by_number.keys() - set(named) if named is shards else set():
            raise InvalidArgumentError(
                f"{self.url}: shard {min(more):05} is finished, and is not one of those that are to be committed"
            )
        for position, number in enumerate(named):
            attempts = by_number.get(number)
            if attempts is None:
                raise InvalidArgumentError(
                    f"{self.url}: shard {number:05} is missing (finished shards: {len(by_number)}, the last is "
                    f"{max(by_number):05})"
                )
            if tasks is not None and position < len(tasks) and len(attempts) > 1:
                attempts = [each for each in attempts if json.loads(each[2].task_json) == json.loads(tasks[position])]
            if len(attempts) != 1:
                names = " and ".join(each[0] for each in by_number[number][:_KEPT_LINES])
                raise InvalidArgumentError(
                    f"{self.url}: shard {number:05} is there {len(by_number[number])} times, with other bytes each: "
                    f"{names}. penstock.remove_shards() removes them; write it again"
                )
            chosen += attempts
        if isinstance(shards, int) and len(chosen) != shards:
            raise InvalidArgumentError(f"{self.url}: finished shards: {len(chosen)}, expected: {shards}")
        return chosen

    def _check_sizes(self, name: str, shard: Any) -> None:
        for file, size in shard.files:
            there = self.sizes.get(f"{name}/{file}")
            address = self.bucket.address(f"{name}/{file}")
            if there is None:
                raise NotFoundError(errno.ENOENT, f"{address}: no such object, its shard.json names it", address)
            if there != size:
                raise CorruptionError(f"{address}: {there:,} bytes, its shard.json says {size:,}")

    def publish(
        self,
        shards: Sequence[tuple[str, bytes]],
        tokenizer: str,
        tasks: Sequence[str] | None,
        features: tuple[str, str] | None,
    ) -> str:
        """Puts dataset.json, in the place of what the last look saw; then removes what it does not name.

        Args:
            shards: (name, text of shard.json), in their order; all of them are here.
            tokenizer: as JSON.
            tasks: of each shard, as JSON.
            features: (folder, fingerprint).

        Returns:
            The fingerprint.

        Raises:
            InvalidArgumentError: Someone else has published meanwhile; the server does not know conditions.
            IoError: It is not published; or it is, and what it replaced is not all removed.
        """
        text = _native.stored_manifest(self.url, list(shards), tokenizer, tasks, features).encode()
        sizes = self._check_unchanged(shards)
        name, shard_text = shards[0]
        if self.bucket.ignores_conditions(f"{name}/{SHARD_MANIFEST}", shard_text):
            self._check_unchanged(shards)  # if it was removed meanwhile, it could be put
            raise InvalidArgumentError(
                f"{self.url}: this server ignores If-None-Match and If-Match, so that two writers could publish over "
                "each other: nothing was published. Write to a folder of this machine and copy it, dataset.json last"
            )
        try:
            self.bucket.put_new(MANIFEST, text, self.version)
            lost = False
        except Refused:
            lost = True
        if lost:
            self.refuse_other()
        self._remove_unnamed(sizes, {name for name, _ in shards} | ({features[0]} if features else set()))
        return str(json.loads(text)["fingerprint"])

    def _check_unchanged(self, shards: Iterable[tuple[str, bytes]]) -> dict[str, int]:
        """Refuses what the conditional put would. Returns the sizes of all objects before the manifest is put."""
        found = self.bucket.get(MANIFEST)
        if (None if found is None else found[1]) != self.version:  # it may have removed these shards
            self.refuse_other()
        sizes = self.bucket.sizes()
        self._check_there(shards, sizes)
        return sizes

    def _check_there(self, shards: Iterable[tuple[str, bytes]], sizes: dict[str, int]) -> None:
        """Whether another writer of the same bytes, which gave up, took them with it."""
        for name, text in shards:
            file = self.bucket.address(f"{name}/{SHARD_MANIFEST}")
            wanted = [each for each, _ in _native.describe_shard(text, file, 0).files] + [SHARD_MANIFEST]
            if any(f"{name}/{each}" not in sizes for each in wanted):
                address = self.bucket.address(name)
                raise IoError(
                    errno.EIO,
                    f"{address}: not all of it is there any more: another writer removed it. Nothing was published: "
                    "write it again",
                    address,
                )

    def _remove_unnamed(self, sizes: dict[str, int], named: set[str]) -> None:
        """Attempts that nobody committed, and what the old manifest named; never what somebody else put here."""
        folders = {name.partition("/")[0] for name in sizes if "/" in name}
        others = {name.partition("/")[0] for name in sizes if not _FILES.fullmatch(name.rpartition("/")[2])}
        old = {each for each in folders if _OURS.fullmatch(each) or each in self.named} - named - others
        try:
            self.remove_folders(old, sizes)
        except Error as error:
            message = f"{self.url}: the new dataset is published, but the shards that were there are not all removed"
            said = f"{message}: {error}"
        else:
            return
        raise IoError(errno.EIO, said, self.url)

    def put_features(self, folder: Path) -> str:
        """Uploads a dataset of features, its manifest last; its name."""
        name = features_name(self.generation, folder)
        for file in sorted(folder.rglob("*"), key=lambda each: each.name == MANIFEST):
            if file.is_file():
                self.bucket.put_file(f"{name}/{file.relative_to(folder).as_posix()}", file, lambda sent: None)
        return name

    def remove_folders(self, names: Iterable[str], sizes: dict[str, int] | None = None) -> None:
        """With all that the last look saw in them, the manifests of shards first: what is left is unfinished."""
        names = set(names)
        objects = [each for each in (self.sizes if sizes is None else sizes) if each.partition("/")[0] in names]
        ends = [each for each in objects if each.endswith((f"/{SHARD_MANIFEST}", f"/{MANIFEST}"))]
        self.bucket.remove(ends)
        self.bucket.remove(sorted(set(objects) - set(ends)))

    def remove_mine(self, names: Iterable[str]) -> None:
        """Folders that this process uploaded, but for those that are published meanwhile. Raises nothing."""
        try:
            self.look()
            self.remove_folders(set(names) - self.named)
        except Error:  # they stay, unfinished or not published
            return

    def remove_shards(self, numbers: Iterable[int], overwrite: bool) -> None:
        """Finished shards that are not published, all attempts of each number.

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

    def clean(self) -> None:
        """Removes shards that are not finished; their writers are known to have ended."""
        self.remove_folders({each.name for each in self.shards if not each.is_finished} - self.named)

    def notices(self) -> list[str]:
        """What lies here though the manifest does not name it: a text for each kind, with what to do."""
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


def is_bucket(path: Any) -> bool:
    """Whether a dataset's path is an address.

    Raises:
        InvalidArgumentError: One that is not written to.
    """
    if not isinstance(path, str) or not is_address(path):
        return False
    check_writable(path)
    return True
