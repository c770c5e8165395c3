"""Several opened datasets as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.dataset import Dataset

if TYPE_CHECKING:
    from penstock._data.h5ad_in_place import FilesInPlace


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """Several opened datasets as one, shards in order; those of penstock get the fingerprint that `combine` gives.

    Raises:
        InvalidArgumentError: none, or they differ in mode, fields, codec or layout.
    """
    parts = list(datasets)
    for each in parts:
        if not isinstance(each, Dataset):
            raise InvalidArgumentError(f"concatenate takes opened datasets, not {type(each).__name__}: open it first")
    native = _native.concatenate([each._native for each in parts])
    dataset = Dataset(native, (concatenate, (parts,)), _joined([each._in_place for each in parts]))
    dataset._count = sum(each._count for each in parts)
    return dataset


def _joined(parts: Sequence[FilesInPlace | None]) -> FilesInPlace | None:
    found = [each for each in parts if each is not None]
    return found[0].joined(found) if found else None
