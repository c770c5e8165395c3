"""Forms of AnnData's arrays that values do not tell: an import notes them, so that they come back as they went."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock._data.anndata.exact import common_type
from penstock._data.anndata.stores import Element

_KINDS = ("category", "nullable", "strings")


class NotAsNoted(Exception):
    """Values that the noted form does not hold: they were changed since."""


@dataclass(frozen=True)
class ColumnForm:
    """How a column of obs or var was stored.

    Attributes:
        kind: "nullable" (numbers of which some may be missing), "category" or "strings".
        dtype: of nullable numbers, and of categories that are numbers; else "".
        ordered: true for categories with an order.
        names: digest of the categories that this is said of.
    """

    kind: str
    dtype: str = ""
    ordered: bool = False
    names: str = ""

    def fits(self, column: Any) -> bool:
        """True if a column of the dataset is still as an import made it."""
        if self.kind == "nullable":
            return column._categories is None and len(column.shape) == 1
        return column._categories is not None and self.names in ("", digest_of(column._categories))

    def categories(self, names: Sequence[str]) -> Any:
        """Categories as they were stored: the names, or [categories] of the dtype."""
        if not self.dtype:
            return list(names)
        return numbers_of(names, np.dtype(self.dtype))

    def nullable(self, values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """Values of the dtype [n], 0 where one is missing, and which are missing [n].

        Raises:
            NotAsNoted: a value that the dtype does not hold.
        """
        missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
        there = np.where(missing, values.dtype.type(0), values)
        return cast_exactly(there, np.dtype(self.dtype)), missing


def numbers_of(names: Sequence[str], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Categories as numbers again: what `Element.categories` made texts of."""
    if dtype.kind == "b":
        return np.array([name == "True" for name in names], dtype)
    return np.array([int(name) if dtype.kind in "iu" else float(name) for name in names], dtype)


def cast_exactly(values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The values in another type.

    Raises:
        NotAsNoted: that would change one.
    """
    if np.can_cast(values.dtype, dtype, "safe") or not values.size:
        return values.astype(dtype, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        cast = values.astype(dtype)
        back = cast.astype(values.dtype)
    if not np.array_equal(back, values, equal_nan=values.dtype.kind == "f"):
        raise NotAsNoted
    return cast


def digest_of(names: Sequence[str]) -> str:
    """Tells categories from others, in their order."""
    return hashlib.blake2b(json.dumps(list(names)).encode(), digest_size=8).hexdigest()


class FormOf:
    """The form that a column has in all inputs."""

    def __init__(self) -> None:
        """The form of no input yet."""
        self._kinds: set[str] = set()
        self._types: list[np.dtype[Any]] = []
        self._category_types: list[np.dtype[Any] | None] = []
        self._ordered: list[str | None] = []  # digests of categories; None where they have no order

    def add(self, element: Element) -> None:
        """As one more input has it."""
        self._kinds.add(element.kind)
        if element.kind in ("nullable", "numbers"):
            self._types.append(element.dtype)
        if element.kind == "categories":
            self._ordered.append(digest_of(element.categories) if element.is_ordered else None)
            if element.categories:
                self._category_types.append(element.category_dtype)

    def found(self, names: Sequence[str] | None) -> tuple[ColumnForm | None, list[str]]:
        """(the form, if it says more than the values do; what is lost: "nullable", "ordered", "numbers").

        `names` are the dataset's categories; None where it has others.
        """
        if "nullable" in self._kinds:
            dtype = common_type(self._types)
            if dtype.kind in "iub" and self._kinds <= {"nullable", "numbers"}:
                return ColumnForm("nullable", dtype.str), []
            return None, ["nullable"]
        if names is None:  # texts of the entries
            kinds = {"ordered": any(self._ordered), "numbers": any(each is not None for each in self._category_types)}
            return None, [kind for kind, is_lost in kinds.items() if is_lost]
        if self._kinds == {"strings"}:
            return ColumnForm("strings"), []
        return self._of_categories(names) if self._kinds == {"categories"} else (None, [])

    def _of_categories(self, names: Sequence[str]) -> tuple[ColumnForm | None, list[str]]:
        lost = []
        digest = digest_of(names)
        ordered = bool(self._ordered) and all(each == digest for each in self._ordered)
        if any(self._ordered) and not ordered:
            lost.append("ordered")
        types = [each for each in self._category_types if each is not None]
        dtype = ""
        if types:
            common = common_type(types)
            same = len(types) == len(self._category_types) and len({each.kind for each in types}) == 1
            if same and common.itemsize <= 8 and len(np.unique(numbers_of(names, common))) == len(names):
                dtype = common.str
            else:
                lost.append("numbers")
        return (ColumnForm("category", dtype, ordered, digest) if ordered or dtype else None), lost


@dataclass
class Note:
    """All that an import notes of its inputs beside the values.

    Attributes:
        matrices: type of each matrix, "X" or a layer's name, where no other says it.
        obs: form of each column that has one.
        var: the same of the features' columns.
        uns: trees of uns, packed (trees.py).
        left_out: members of the inputs that the dataset does not have.
        altered: members that come back as another type, in words.
        raw: of raw, where entries have it: "dtype", "genes" (how many), "var" (a tree, packed); None: they have not.
    """

    matrices: dict[str, str] = field(default_factory=dict)
    obs: dict[str, ColumnForm] = field(default_factory=dict)
    var: dict[str, ColumnForm] = field(default_factory=dict)
    uns: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    raw: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """For the features' shard.json."""
        return {"anndata": {"version": 1, **asdict(self)}}

    @staticmethod
    def of(task: Any) -> Note:
        """The note that a shard.json has; an empty one where no import of this version wrote it."""
        said = task.get("anndata") if isinstance(task, Mapping) else None
        if not isinstance(said, Mapping) or said.get("version") != 1:
            return Note()
        lists = {name: [str(each) for each in said.get(name) or ()] for name in ("uns", "left_out", "altered")}
        return Note(
            {str(name): _dtype(each) for name, each in _mapping(said.get("matrices")).items()},
            _forms(said.get("obs")),
            _forms(said.get("var")),
            raw=_raw(said.get("raw")),
            **lists,
        )


def _raw(said: Any) -> dict[str, Any] | None:
    if not isinstance(said, Mapping):
        return None
    packed = [str(each) for each in said["var"]]
    return {"dtype": _dtype(said["dtype"]), "genes": int(said["genes"]), "var": packed}


def _mapping(said: Any) -> Mapping[str, Any]:
    return said if isinstance(said, Mapping) else {}


def _dtype(said: Any) -> str:
    return np.dtype(str(said)).str


def _forms(said: Any) -> dict[str, ColumnForm]:
    found = {}
    for name, each in _mapping(said).items():
        if isinstance(each, Mapping) and each.get("kind") in _KINDS:
            dtype = str(each.get("dtype") or "")
            form = ColumnForm(
                each["kind"], dtype and _dtype(dtype), bool(each.get("ordered")), str(each.get("names", ""))
            )
            if form.kind != "nullable" or form.dtype:
                found[str(name)] = form
    return found
