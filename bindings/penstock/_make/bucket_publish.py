"""Publishing in a bucket: dataset.json is put last, under a condition, and then what it does not name is removed."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock import _native
from penstock._base.errors import PUBLISHED, CorruptionError, Error, InvalidArgumentError, IoError, NotFoundError
from penstock._make.bucket_look import MANIFEST, SHARD_MANIFEST, BucketLook, Described, features_name
from penstock._make.folder import Publication
from penstock._places.attempts import of_one_operation
from penstock._places.scratch import Scratch
from penstock._places.uploads import Refused

_OURS = re.compile(r"(\d{5,12}|features)(\.[1-9]\d{0,11})?-[0-9a-f]{8}")
_FILES = re.compile(r"shard\.json|dataset\.json|(stream\.bin|metadata\.(bin|index|directory)|columns\.bin)(\.crc)?")
_NAMED_ATTEMPTS = 3  # of what a message lists


@of_one_operation
def commit(
    folder: BucketLook,
    publication: Publication,
    seen: BucketLook | None = None,
    stay: Sequence[Described] = (),
) -> str:
    """Publishes the finished shards that are in a bucket's folder.

    Args:
        folder: a look at it.
        publication: what there must be, and what the manifest says besides.
        seen: an earlier look, whose dataset alone may be replaced.
        stay: shards of that dataset, which come first, under the names that they have; its features stay too.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError, NotFoundError, CorruptionError, IoError: As penstock.commit().
    """
    if seen is not None and seen.version != folder.version:
        folder.refuse_other()
    if folder.is_published and not publication.overwrite:
        folder.refuse_published()
    shards, tasks = publication.shards, publication.tasks
    unpublished = [each for each in folder.unpublished() if each.number >= len(stay)]
    found = folder.described([(each.number, each.name) for each in unpublished])
    if stay:
        assert isinstance(shards, int)
        shards, tasks = range(len(stay), shards), None if tasks is None else tasks[len(stay) :]
    chosen = _choose(folder, found, shards, tasks)
    for each in chosen:
        _check_sizes(folder, each)
    texts = [(each.name, each.text) for each in [*stay, *chosen]]
    tokenizer = publication.tokenizer
    if stay:
        return publish(folder, texts, tokenizer, None, folder.features)
    if publication.features is None:
        return publish(folder, texts, tokenizer, tasks, None)
    with Scratch() as scratch:
        local = scratch / "features"
        fingerprint = _native.write_features(str(local), publication.features)
        name = features_name(folder.generation, local)
        try:
            put_features(folder, name, local)
            return publish(folder, texts, tokenizer, tasks, (name, fingerprint))
        except BaseException:
            folder.remove_mine([name])
            raise


def _choose(
    folder: BucketLook, found: list[Described], shards: int | Sequence[int] | None, tasks: Sequence[str] | None
) -> list[Described]:
    """One attempt for each number: of several the one that was made of the task."""
    if not found:
        what = "no finished shard to commit: Writer(…, shard=K) writes them"
        raise NotFoundError(errno.ENOENT, f"{folder.url}: {what}", folder.url)
    by_number: dict[int, list[Described]] = {}
    for each in found:
        by_number.setdefault(each.shard.number, []).append(each)
    numbers: Sequence[int] = range(len(by_number))
    if shards is not None and not isinstance(shards, int):
        numbers = shards
        if more := by_number.keys() - set(numbers):
            raise InvalidArgumentError(
                f"{folder.url}: shard {min(more):05} is finished, and is not one of those that are to be committed"
            )
    for number in numbers:
        if number not in by_number:
            raise InvalidArgumentError(
                f"{folder.url}: shard {number:05} is missing (finished shards: {len(by_number)}, the last is "
                f"{max(by_number):05})"
            )
    wanted = [None] * len(numbers) if tasks is None else [*tasks, *[None] * len(numbers)]
    chosen = [_made_of(folder, by_number[number], task) for number, task in zip(numbers, wanted, strict=False)]
    if isinstance(shards, int) and len(chosen) != shards:
        raise InvalidArgumentError(f"{folder.url}: finished shards: {len(chosen)}, expected: {shards}")
    return chosen


def _made_of(folder: BucketLook, attempts: list[Described], task: str | None) -> Described:
    """The one attempt, or of several the one that was made of the task."""
    mine = attempts
    if task is not None and len(attempts) > 1:
        mine = [each for each in attempts if json.loads(each.shard.task_json) == json.loads(task)]
    if len(mine) != 1:
        names = " and ".join(each.name for each in attempts[:_NAMED_ATTEMPTS])
        raise InvalidArgumentError(
            f"{folder.url}: shard {attempts[0].shard.number:05} is there {len(attempts)} times, with other bytes each: "
            f"{names}. penstock.remove_shards() removes them; write it again"
        )
    return mine[0]


def _check_sizes(folder: BucketLook, described: Described) -> None:
    for file, size in described.shard.files:
        there = folder.sizes.get(f"{described.name}/{file}")
        address = folder.bucket.address(f"{described.name}/{file}")
        if there is None:
            raise NotFoundError(errno.ENOENT, f"{address}: no such object, its shard.json names it", address)
        if there != size:
            raise CorruptionError(f"{address}: {there:,} bytes, its shard.json says {size:,}")


@of_one_operation
def publish(
    folder: BucketLook,
    shards: Sequence[tuple[str, bytes]],
    tokenizer: str,
    tasks: Sequence[str] | None,
    features: tuple[str, str] | None,
) -> str:
    """Puts dataset.json, in the place of what the last look saw; then removes what it does not name.

    Args:
        folder: the last look.
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
    text = _native.stored_manifest(folder.url, list(shards), tokenizer, tasks, features).encode()
    sizes = _check_unchanged(folder, shards)
    name, shard_text = shards[0]
    if folder.bucket.ignores_conditions(f"{name}/{SHARD_MANIFEST}", shard_text):
        _check_unchanged(folder, shards)  # if it was removed meanwhile, it could be put
        raise InvalidArgumentError(
            f"{folder.url}: this server ignores If-None-Match and If-Match, so that two writers could publish over "
            "each other: nothing was published. Write to a folder of this machine and copy it, dataset.json last"
        )
    try:
        folder.bucket.put_new(MANIFEST, text, folder.version)
        lost = False
    except Refused:
        lost = True
    if lost:
        folder.refuse_other()
    _remove_unnamed(folder, sizes, {name for name, _ in shards} | ({features[0]} if features else set()))
    return str(json.loads(text)["fingerprint"])


def _check_unchanged(folder: BucketLook, shards: Iterable[tuple[str, bytes]]) -> dict[str, int]:
    """Refuses what the conditional put would. Returns the sizes of all objects before the manifest is put."""
    found = folder.bucket.get(MANIFEST)
    if (None if found is None else found[1]) != folder.version:  # it may have removed these shards
        folder.refuse_other()
    sizes = folder.bucket.sizes()
    _check_there(folder, shards, sizes)
    return sizes


def _check_there(folder: BucketLook, shards: Iterable[tuple[str, bytes]], sizes: dict[str, int]) -> None:
    """Refuses shards that another writer of the same bytes removed when it gave up."""
    for name, text in shards:
        file = folder.bucket.address(f"{name}/{SHARD_MANIFEST}")
        wanted = [each for each, _ in _native.describe_shard(text, file, 0).files] + [SHARD_MANIFEST]
        if any(f"{name}/{each}" not in sizes for each in wanted):
            address = folder.bucket.address(name)
            raise IoError(
                errno.EIO,
                f"{address}: not all of it is there any more: another writer removed it. Nothing was published: "
                "write it again",
                address,
            )


def _remove_unnamed(folder: BucketLook, sizes: dict[str, int], named: set[str]) -> None:
    """Attempts that nobody committed, and what the old manifest named; never what somebody else put here."""
    folders = {name.partition("/")[0] for name in sizes if "/" in name}
    others = {name.partition("/")[0] for name in sizes if not _FILES.fullmatch(name.rpartition("/")[2])}
    old = {each for each in folders if _OURS.fullmatch(each) or each in folder.named} - named - others
    try:
        folder.remove_folders(old, sizes)
    except Error as error:
        message = f"{folder.url}: {PUBLISHED}, but the shards that were there are not all removed"
        said = f"{message}: {error}"
    else:
        return
    raise IoError(errno.EIO, said, folder.url)


def put_features(folder: BucketLook, name: str, local: Path) -> None:
    """Uploads a dataset of features, which is the folder `local`, under this name, its manifest last."""
    for file in sorted(local.rglob("*"), key=lambda each: each.name == MANIFEST):
        if file.is_file():
            folder.bucket.put_file(f"{name}/{file.relative_to(local).as_posix()}", file, lambda sent: None)
