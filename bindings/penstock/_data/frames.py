"""Columns of a batch as a pandas DataFrame."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._base.extras import install


def frame_of(columns: Mapping[str, Any], categories: Mapping[str, Sequence[str]], index: Any) -> Any:
    """A DataFrame of these columns, arrays or tensors [rows]; codes of `categories` become pandas' Categorical."""
    try:
        pandas: Any = importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"batch.obs needs the package pandas: {install('cells')}", name=error.name) from None
    found = {name: _array(values) for name, values in columns.items()}
    for name, values in found.items():
        if name in categories and values.dtype.kind in "iu":  # not the strings of columns.Names under the same name
            found[name] = pandas.Categorical.from_codes(values, categories[name])
    return pandas.DataFrame(found, index=None if index is None else _array(index))


def _array(values: Any) -> npt.NDArray[Any]:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
