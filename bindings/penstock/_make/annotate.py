"""Columns for a dataset that is there: added, replaced, removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock import _native
from penstock._data import dtype as _dtype
from penstock._data.column_values import ColumnValues, column_types, infer, types_json
from penstock._data.open import refuse_foreign
from penstock._places.paths import PathLike, local_path
from penstock._places.remote import refuse_address


def annotate(
    path: PathLike,
    columns: Mapping[str, Any],
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Adds columns to a dataset, replaces some, removes others; its records, its metadata and its fingerprint stay.

    So a job goes on from its state. Files are hard-linked into shards of the next generation, and one rename puts these
    in the place of the old ones: a process that has the dataset open must open it again.

    Args:
        path: the dataset's folder.
        columns: by name: values [documents, trailing axes…], whose type the column gets; strings, or a pandas
            Categorical of strings or numbers (taken as their text), for a category, None where a document has none;
            None alone removes the column.
        progress: called with (shards done, shards in all); may raise to stop, which leaves the dataset as it was.

    Returns:
        The fingerprint.

    Raises:
        InvalidArgumentError: another number of values, a type that no column has, no such column, no documents, a
            writer at work.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
        >>> with penstock.Writer(path, {"token": "u2"}, "boundaries") as writer:
        ...     writer.append_batch(lengths=[2, 1], token=[1, 2, 3])
        >>> _ = penstock.annotate(path, {"language": ["en", "de"], "score": [0.5, 0.25]})
        >>> penstock.open(path).documents(columns=["score"])[1].columns["score"].item()
        0.25
    """
    refuse_address(
        path,
        "columns are added on this machine alone: annotate a copy of the dataset here, then copy that into another "
        "folder of the bucket, dataset.json last",
    )
    text = local_path(path)
    refuse_foreign(text, "columns are kept beside a dataset's own shards")
    removed = [name for name, values in columns.items() if values is None]
    given = {name: values for name, values in columns.items() if values is not None}
    types = column_types({name: infer(name, values) for name, values in given.items()})
    packer = ColumnValues(types)
    added = []
    for number, each in enumerate(types):
        values = given[each.name]
        count = len(values)
        if each.is_category:
            array, names = packer.codes(number, values, count)
        else:
            names, array = [], np.ascontiguousarray(_dtype.fit(values, each.dtype, each.name, "document"))
        added.append((types_json([each]), names, each.declared is not None, array))
    return _native.annotate(text, added, removed, progress)
