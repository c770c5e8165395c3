"""Conditions that compare texts of ordered categories: by their bytes, which is another order."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from typing import Any

from penstock import _native
from penstock._base.errors import Error
from penstock._base.words import quoted, warn_caller

_MOST_LISTED = 12  # categories in a warning
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# A column compared with a text, in a condition as the native side writes it; or a text, whatever it holds.
_COMPARED = re.compile(r"""(?P<name>"(?:[^"]|"")*"|\w+) (?P<sign><=?|>=?) '(?P<text>(?:[^']|'')*)'|'(?:[^']|'')*'""")


def warn_of_order(dataset: _native.Dataset, condition: str) -> None:
    """Warns where `<` or `>` of an ordered category is answered otherwise than by its order.

    Args:
        dataset: whose columns are compared.
        condition: as the native side writes it.
    """
    for found in _COMPARED.finditer(condition):
        if found["name"] is None:
            continue
        name, text = found["name"], found["text"].replace("''", "'")
        column = name[1:-1].replace('""', '"') if name.startswith('"') else name
        names = dataset.categories(column)
        if text not in names:
            continue
        compare, at = _COMPARISONS[found["sign"]], names.index(text)
        meant = [each for place, each in enumerate(names) if compare(place, at)]
        by_bytes = {each for each in names if compare(each.encode(), text.encode())}
        if set(meant) != by_bytes and _is_ordered(dataset, column):
            listed = ", ".join("'" + each.replace("'", "''") + "'" for each in meant[:_MOST_LISTED])
            more = ", …" * (len(meant) > _MOST_LISTED)
            said = f"that is {name:.80} in ({listed}{more})" if meant else "there is none"
            warn_caller(
                f"where: {found[0]:.160} compares texts by their bytes, not in the order of the categories, which is "
                f"{quoted(names)}: in that order {said}"
            )


def _is_ordered(dataset: _native.Dataset, column: str) -> bool:
    """True if AnnData has the category as ordered: as an import noted it, or as the first file in place says."""
    try:
        if dataset.kind == "h5ad":
            return _is_ordered_in_file(dataset.shards()[0][0], column)
        if not dataset.features:
            return False
        note = json.loads(_native.open_features(dataset).task_json(0))
        return bool(note["anndata"]["obs"][column]["ordered"])
    except (Error, LookupError, TypeError, ValueError):
        return False


def _is_ordered_in_file(path: str, column: str) -> bool:
    from penstock._data.anndata.hdf5 import session
    from penstock._data.anndata.stores import Store

    with session() as helper:
        store = Store(path, "h5ad", helper)
        try:
            return store.obs.element(column).is_ordered
        finally:
            store.close()
