"""The identity of a collection: its length, and the fingerprint by which a state knows it again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._data.dataset import Dataset
from penstock._data.view import View
from penstock._load.collections.collection import Collection
from penstock._load.collections.reading import Parts, count_of, items_of, library_of

_NAMES = 4096  # of cells, at either end


def is_opener(collection: Any) -> bool:
    """True if it is a function that opens a collection."""
    is_collection = any(hasattr(collection, name) for name in ("__getitem__", "__len__", "shape"))
    return callable(collection) and (isinstance(collection, type) or not is_collection)


def length_of(collection: Any, has_callback: bool) -> int:
    """Observations of a collection.

    Args:
        collection: it.
        has_callback: whether a `fetch_callback` reads it, so that integers need not index it.

    Raises:
        InvalidArgumentError: it is none.
    """
    name = type(collection).__name__
    if isinstance(collection, View):
        raise InvalidArgumentError(f"a {name} is a view of penstock's own: give it to penstock.Loader")
    if isinstance(collection, Dataset):
        raise InvalidArgumentError(
            "a penstock dataset is no collection: give its documents() or windows(…) to penstock.Loader"
        )
    if isinstance(collection, str | bytes | Path):
        raise InvalidArgumentError(f"{collection!r:.80} is no collection: open it, or pass a function that opens it")
    is_parts = isinstance(collection, Parts | Mapping | tuple)
    if not has_callback:
        _check_anndata(collection)
    if not (has_callback or is_parts or hasattr(collection, "__getitem__")):
        raise InvalidArgumentError(
            f"{name} objects are not indexed by integers: a collection is, as a NumPy array, AnnData, "
            "CSR matrix or Hugging Face Dataset is, or give fetch_callback(collection, indices)"
        )
    count = count_of(collection)
    if count is None and is_parts:
        counts = ", ".join(f"{each}: {count_of(part)}" for each, part in items_of(collection))
        raise InvalidArgumentError(f"the parts of a {name} must have one length, these have {{{counts:.200}}}")
    if count is None:
        raise InvalidArgumentError(f"a {name} has no length: a collection has a shape or a len()")
    if count == 0:
        raise InvalidArgumentError(f"this {name} has no observations")
    return count


def _check_anndata(collection: Any) -> None:
    if isinstance(collection, Parts | Mapping | tuple):
        for _, part in items_of(collection):
            _check_anndata(part)
    elif getattr(collection, "is_view", None) is True and getattr(collection, "isbacked", None) is True:
        raise InvalidArgumentError(
            "this AnnData is a view of a backed one, which anndata indexes no further: give the AnnData itself, or the "
            "numbers of the cells and a fetch_callback"
        )


def fingerprint_of(collection: Any, count: int, given: str | None) -> str:
    """Hex digits over the length and what the collection says of itself, or over the length and what the user says.

    Nothing is read: values that were changed in place are not seen.
    """
    said = _described(collection) if given is None else {"given": given}
    text = json.dumps([count, said], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _described(collection: Any) -> dict[str, Any]:
    if isinstance(collection, Parts | Mapping | tuple):
        return {str(name): _described(part) for name, part in items_of(collection)}
    if isinstance(collection, Collection):
        return collection.describe()
    library = library_of(collection)
    if library == "anndata" and hasattr(collection, "obs_names"):
        cells, genes = collection.obs_names, collection.var_names
        return {"cells": _digest([*cells[:_NAMES], *cells[-_NAMES:]]), "genes": _digest(genes)}
    if library == "datasets" and hasattr(getattr(collection, "features", None), "arrow_schema"):
        return {"features": collection.features.arrow_schema.to_string(show_schema_metadata=False)}
    shape, dtype = getattr(collection, "shape", None), getattr(collection, "dtype", None)
    return {"dtype": str(dtype), "shape": [int(size) for size in shape[1:]]} if shape is not None else {}


def _digest(names: Any) -> str:
    return hashlib.blake2b("\0".join(map(str, names)).encode(), digest_size=16).hexdigest()
