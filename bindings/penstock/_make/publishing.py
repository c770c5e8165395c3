"""Shards that several writers finished: which there are, publishing them, removing them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from penstock._base.arguments import shown
from penstock._base.errors import InvalidArgumentError
from penstock._data.features import feature_table
from penstock._make.folder import Publication, ShardInfo
from penstock._make.folders import folder_of
from penstock._make.notes import remove_list
from penstock._places.paths import PathLike
from penstock._places.storage import Storage


def finished_shards(path: PathLike, *, overwrite: bool = False, storage: Storage | None = None) -> list[ShardInfo]:
    """The finished shards of a folder by number: the published dataset's, or without one those not published yet.

    In a bucket a number is there twice if two attempts wrote different bytes.

    Args:
        path: the dataset's folder, or its address in a bucket.
        overwrite: of the dataset that is to replace the published one: what `Writer(shard=k, overwrite=True)` wrote.
        storage: how a bucket is reached.

    Raises:
        NotFoundError: No such folder.
        CorruptionError: A shard.json is damaged.
    """
    return folder_of(path, storage).finished(overwrite)


def commit(
    path: PathLike,
    tokenizer: Mapping[str, Any] | None = None,
    *,
    shards: int | Sequence[int] | None = None,
    overwrite: bool = False,
    tasks: Sequence[Any] | None = None,
    run: str | None = None,
    features: Any = None,
    storage: Storage | None = None,
) -> str:
    """Publishes the shards that several writers (`Writer(shard=k)`) finished.

    Args:
        path: the dataset's folder, or its address in a bucket.
        tokenizer: as for `Writer`.
        shards: how many there must be; without it, all that are there from 0 on without a gap. Or the numbers of all
            that there must be, ascending: a task that had nothing to write leaves a gap.
        overwrite: put them in the place of the published dataset, if there is one: they were written with
            `Writer(shard=k, overwrite=True)`. By one rename; the old shards are removed after it.
        tasks: the task of each shard, which must be that of its `Writer(task=…)`: a shard that something else made is
            refused.
        run: name of the run that the writers belong to, if they named one.
        features: as for `Writer`.
        storage: how a bucket is reached.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError: A shard is missing, shards differ in format, a dataset is published or a writer at work.
        NotFoundError: No finished shard.
        CorruptionError: A shard's files are not as it says.
        IoError: Something cannot be written, synced or removed; the message says if the dataset is published.
    """
    folder = folder_of(path, storage)
    numbers = shards if shards is None or isinstance(shards, int) else _ascending(shards)
    fingerprint = folder.publish(publication_of(tokenizer, numbers, overwrite, tasks, run, features))
    if overwrite:
        remove_list(folder)
    return fingerprint


def publication_of(
    tokenizer: Mapping[str, Any] | None,
    shards: int | Sequence[int] | None,
    overwrite: bool,
    tasks: Sequence[Any] | None,
    run: str | None,
    features: Any,
) -> Publication:
    """The arguments of `commit`, as folders take them."""
    texts = None if tasks is None else [json_text(task, "task") for task in tasks]
    table = feature_table(features)
    return Publication(json_text(tokenizer, "tokenizer"), shards, texts, table, overwrite, run)


def _ascending(shards: Sequence[int]) -> list[int]:
    numbers = [count_of(each, "shards") for each in shards]
    if any(b <= a for a, b in pairwise(numbers)):
        raise InvalidArgumentError(f"shards={numbers!r:.200}: give the numbers in order, each once")
    return numbers


def remove_shards(
    path: PathLike,
    numbers: Iterable[int],
    *,
    overwrite: bool = False,
    run: str | None = None,
    storage: Storage | None = None,
) -> None:
    """Removes finished shards that are not published.

    Args:
        path: the dataset's folder, or its address in a bucket.
        numbers: of the shards.
        overwrite: of the dataset that is to replace the published one, which stays.
        run: name of the run that removes them.
        storage: how a bucket is reached.

    Raises:
        InvalidArgumentError: A dataset is published and `overwrite` is not given, or a writer is at work.
        NotFoundError: A shard is not there.
    """
    folder_of(path, storage).remove(numbers, overwrite, run)


def count_of(value: int, name: str) -> int:
    """An argument that is a number from 0 on, checked."""
    if not isinstance(value, int | np.integer) or not 0 <= value < 1 << 63:
        raise InvalidArgumentError(f"{name}={shown(value)}, expected a whole number from 0 on")
    return int(value)


def json_text(value: Any, name: str) -> str:
    """An argument as canonical JSON, checked."""
    try:
        return json.dumps(value, sort_keys=True, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{name} {value!r:.200} is no JSON: {error}") from None
