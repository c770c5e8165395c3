"""Parts that adapters share: batches as plain tensors, checks, and the error where a framework is missing."""

from __future__ import annotations

from typing import Any

from penstock._base import missing as _missing
from penstock._base.errors import InvalidArgumentError
from penstock._data.batch import Batch
from penstock._load.loader import Loader


def missing(adapter: str, package: str, error: ImportError, tested: str = "") -> ImportError:
    """The error of an adapter that cannot be imported.

    Args:
        adapter: its name, which is the framework's module.
        package: its name for pip, quoted for a shell.
        error: of the import.
        tested: releases of the framework that `make adapters` runs.

    Returns:
        A ModuleNotFoundError that names the package if the framework is not installed, or a package that it needs;
        an ImportError if the installed one lacks a part.
    """
    known = f"the adapter was run with {adapter} {tested}" if tested else ""
    return _missing.missing(f"penstock.adapters.{adapter}", adapter, f"pip install {package}", error, known)


def checked(adapter: str, loader: Any) -> Loader:
    """The loader, if it is one that gives tensors.

    Raises:
        InvalidArgumentError: it is none, or gives NumPy arrays.
    """
    if not isinstance(loader, Loader):
        raise InvalidArgumentError(f"{adapter}({loader!r:.80}): must be a penstock.Loader")
    if loader._layout.torch is None:
        raise InvalidArgumentError(f"{adapter}: this loader gives NumPy arrays: make it with framework='torch'")
    return loader


def given(value: Any, uneven: str) -> Any:
    """A loader's batch, as frameworks take it: a batch as a dict, what a `transform` made of it as it is.

    Args:
        value: what it gave.
        uneven: of the loader: with "pad" the dict has what losses are weighed by.
    """
    return tensors(value, uneven == "pad") if isinstance(value, Batch) else value


def tensors(batch: Batch, weighed: bool = False) -> dict[str, Any]:
    """A batch as a plain dict: frameworks copy, move and cast dicts of tensors, and know no other mapping.

    Args:
        batch: of a loader.
        weighed: whether `global_rows`, `loss_scale` and `loss_scales` are in it, an int, a float and floats.

    Returns:
        `inputs` and `labels` (where there are labels, else their field by its name), every other field, `indices`,
        `epochs`, `sources`, `positions`, `first_records`, `valid`, `offsets` of documents, and the columns that were
        asked for, all by their names; `max_seqlen` as an int. Byte strings are NumPy arrays. Spans are left out: a
        `transform` of the loader takes from them what is wanted.

    Raises:
        InvalidArgumentError: a column has the name of another part.
    """
    layout = batch._layout
    names = batch._tensor_names()
    if "inputs" in layout.column_of and layout.label_field in names:
        names.remove(layout.label_field)  # inputs and labels are what is used of it
    found = {name: batch[name] if name in layout.types else getattr(batch, name) for name in names}
    for name, values in batch.columns.items():
        if name in ("position", "state_dict") or (name in found and name not in layout.column_of):
            raise InvalidArgumentError(
                f"the column {name!r} has the name of another part of a batch, which a dict has once: leave it out, or "
                "give the loader a transform= that makes a dict of your own"
            )
        found[name] = values
    if "max_seqlen" in layout.column_of:
        found["max_seqlen"] = batch.max_seqlen
    if weighed:
        found |= {name: getattr(batch, name) for name in ("global_rows", "loss_scale", "loss_scales")}
    return found
