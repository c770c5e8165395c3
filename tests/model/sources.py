"""The views of a case beside their plain rows: datasets made once, opened wherever the case says they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import cells
import datasets
import numpy as np
import penstock
from _python_stores import Own
from arrays import Leaf, Padded, leaves
from contents import Content, Place
from dimensions import BY_TOKEN, CELLS, NO_SPANS, OF_DOCUMENTS, PACKED, WINDOWS, Case
from observations import Packing, Row, Rows, documents, packed, windows

LOOKAHEAD = {"ahead": 1, "phase": 1, "ahead3": 3, "next": 1, "limited": 3}
ONE_IN = 3
SPLIT_SEED = 5


@dataclass(frozen=True)
class Opened:
    """A dataset, and what is in it."""

    dataset: penstock.Dataset
    content: Content
    window: int


class Library:
    """Makes datasets below a folder and opens them; `address` is of a server of that folder."""

    def __init__(self, root: Path, address: str | None) -> None:
        self.root, self.address = root, address
        self._store = Own(root / "data")
        self._made: dict[tuple[str, str], datasets.Made] = {}
        self._opened: dict[tuple[str, ...], Opened] = {}
        self._rows: dict[Any, Rows] = {}

    def open(self, member: str, case: Case) -> Opened:
        key = member, *(case[name] for name in ("data", "opened", "place", "checks"))
        if key not in self._opened:
            self._opened[key] = self._open(member, case)
        return self._opened[key]

    def _open(self, member: str, case: Case) -> Opened:
        family, opened, place = case["data"], case["opened"], case["place"]
        if (family, member) not in self._made:
            self._made[family, member] = datasets.make(self.root / "data", family, member)
        made = self._made[family, member]
        hints: dict[str, Any] = {**made.hints, "checks": case["checks"]}
        paths = made.paths if opened == "joined" else made.whole
        if place == "python":
            hints["store"] = self._store
        else:
            base = str(self.root / "data") if place == "local" else self.address
            paths = tuple(f"{base}/{each}" for each in paths)
        if place == "cached":
            hints["cache"] = self.root / "cache" / f"{family}-{member}"
        if place != "local" and family == "megatron":
            hints["format"] = "megatron"
        dataset, content = penstock.open(*paths, **hints), made.content
        if opened == "selected":
            numbers = [2, 0, 1]
            dataset, content = dataset.select(numbers), content.select(numbers)
        return Opened(dataset, content, made.window)  # kept: the keys of rows are its content's id

    def first(self, opened: Opened, shards: int) -> Opened:
        """Its first shards: the dataset before it grew."""
        key = f"{id(opened.dataset)}", f"{shards}"
        if key not in self._opened:
            numbers = range(shards)
            dataset, content = opened.dataset.select(numbers), opened.content.select(numbers)
            self._opened[key] = Opened(dataset, content, opened.window)
        return self._opened[key]

    def told(self, opened: Opened, side: str) -> Opened:
        """A stream whose documents a token ends or begins."""
        key = f"{id(opened.dataset)}", side
        if key not in self._opened:
            self._opened[key] = replace(opened, content=opened.content.told(datasets.END, side == "end"))
        return self._opened[key]

    def rows(self, opened: Opened, key: Any, make: Any) -> Rows:
        """Kept from case to case: `key` says what they are of this content."""
        whole = id(opened.content), key
        if whole not in self._rows:
            self._rows[whole] = make()
        return self._rows[whole]


class NothingLeftError(Exception):
    """No observation of a view lies in the documents that a condition chose; the view."""


@dataclass
class Source:
    """A view and what its observations are.

    Attributes:
        numbers: by the view's observation, that of the whole view.
        rows: of the whole view.
    """

    opened: Opened
    view: penstock.View
    numbers: np.ndarray
    rows: Rows
    case: Case
    library: Library

    @property
    def window(self) -> int:
        return 0 if self.case["view"] in OF_DOCUMENTS else self.opened.window

    @property
    def lookahead(self) -> int:
        return LOOKAHEAD.get(self.case["view"], 0)

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaves(self.opened.content.dtype))

    def row(self, index: int, window: int, phase: int) -> Row:
        """Observation `index` of windows of `window`, which may be shorter than the view's."""
        if window == self.window:
            return self.rows(int(self.numbers[index]), phase)
        if self.case["view"] in PACKED:
            return packed_rows(self.library, self.opened, self.case, window)(index)
        parts = self.window // window
        number = int(self.numbers[index // parts]) * parts + index % parts
        return self._shorter(window)(number, phase)

    def size(self, window: int) -> int:
        """Observations of rows of a length: packed rows are packed again for each."""
        if self.case["view"] not in PACKED or window == self.window:
            return len(self.numbers)
        return packed_rows(self.library, self.opened, self.case, window).size

    def _shorter(self, window: int) -> Rows:
        phased = self.window if self.case["view"] == "phase" else 0
        key = ("windows", window, self.lookahead, phased)
        return self.library.rows(
            self.opened, key, lambda: windows(self.opened.content, window, self.lookahead, phased=phased)
        )

    def lengths(self) -> np.ndarray:
        """Records of each observation without lookahead and padding, as made-up or real lengths for orders."""
        if self.window:
            return np.arange(len(self.numbers)) * 7 % 5
        places = [self.opened.content.spans[each] for each in self.numbers]
        return np.array([each.stop - each.start for each in places], np.int64)

    def cost(self, index: int, window: int, phase: int, kind: str) -> int:
        """2 W times sum of len²/W + len/2, or the records."""
        row, length = self.row(index, window, phase), window or 32_768
        end = window or len(row.records)
        lengths = [min(each.stop, end) - each.start for each in row.spans if each.start < end]
        if kind == "attention":
            return sum(2 * each * each + length * each for each in lengths)
        return window if self.case["view"] in WINDOWS else sum(lengths)


def make_source(library: Library, opened: Opened, case: Case) -> Source:
    if case["view"] not in WINDOWS and case["data"] in NO_SPANS and case["columns"] in BY_TOKEN:
        opened = library.told(opened, case["columns"])
    view, rows = _view(library, opened, case)
    view, numbers = _where(view, np.arange(rows.size), rows, opened.content, case)
    if len(numbers) == 0:
        raise NothingLeftError(view)
    part, numbers = _part(view, numbers, case["part"])
    if len(numbers) == 0 and case["where"] != "none":
        raise NothingLeftError(part)
    assert len(part) == len(numbers), (len(part), len(numbers))
    return Source(opened, part, numbers, rows, case, library)


#: A condition, and the same in Python: null is None, and no comparison with it holds.
WHERE = "score < 0.9 AND (kind <> 'code' OR NOT kind IS NOT NULL OR 0.1 <= score)"
MORE = "not (score >= 0.8 and kind = 'news')"


def is_chosen(place: Place) -> bool:
    kind, score = place.columns["kind"], place.columns["score"]
    return bool(score < 0.9 and (kind != "code" or score >= 0.1))


def is_chosen_twice(place: Place) -> bool:
    # Without a kind, and a score of 0.8 or more, it is unknown.
    kind, high = place.columns["kind"], place.columns["score"] >= 0.8
    return is_chosen(place) and not (high and kind in (None, "news"))


def _where(
    view: penstock.View, numbers: np.ndarray, rows: Rows, content: Content, case: Case
) -> tuple[penstock.View, np.ndarray]:
    """The view of the observations in chosen documents; packed rows have been filled with these alone."""
    how = case["where"]
    if how == "none" or case["view"] in PACKED:
        return view, numbers
    is_one = is_chosen_twice if how == "twice" else is_chosen
    if how != "dataset":
        view = view.where(WHERE)
    if how == "twice":
        view = view.where(MORE)
    chosen = [all(is_one(each.place) for each in rows(int(number)).spans) for number in numbers]
    return view, numbers[np.array(chosen, bool)]


def padding_of(case: Case, window: int) -> Padded | None:
    if case["view"] == "left":
        return Padded(-(-window // 4) * 4 + 4, 4, True, -1)
    return Padded(multiple_of=2) if case["view"] == "padded" else None


def packing_of(case: Case, window: int) -> Packing:
    if case["view"] == "cut":
        return Packing(window, fit="first", group=7, long="truncate")
    if case["view"] == "limited":
        return Packing(window, max_document=max(window * 3 // 4, 1), cut="truncate", max_documents=3, lookahead=3)
    pieces: dict[str, Any] = {"max_document": window // 4, "cut": "split"}  # of long documents: else they fill few rows
    if case["view"] == "exact":
        return Packing(window, fill="exact", buffer=6, refill=3, **(pieces if case["data"] == "long" else {}))
    if case["view"] == "next":
        if case["data"] != "long":
            pieces = {"max_document": window - 1, "cut": "truncate"}
        return Packing(window, fill="exact", fit="next", lookahead=1, **pieces)
    return Packing(window, multiple_of=4 if case["view"] == "packed4" else 1)


def packed_rows(library: Library, opened: Opened, case: Case, window: int) -> Rows:
    """Of all documents, or of those that the dataset's condition chose."""
    how, only = packing_of(case, window), case["where"] == "dataset"
    return library.rows(opened, (how, only), lambda: packed(opened.content, how, is_chosen if only else lambda _: True))


def _view(library: Library, opened: Opened, case: Case) -> tuple[penstock.View, Rows]:
    dataset, content, window, kind = opened.dataset, opened.content, opened.window, case["view"]
    given: Any = dataset.where(WHERE) if case["where"] == "dataset" else dataset
    options: dict[str, Any] = {"metadata": {"entries": True, "spans": "spans", "none": False}[case["metadata"]]}
    if case["values"] == "all":
        options["columns"] = list(datasets.COLUMNS)
    told: dict[str, Any] = {}
    if case["columns"] in BY_TOKEN and (kind in WINDOWS or case["data"] in NO_SPANS):
        told[f"{case['columns']}_of_document"] = datasets.END
    if kind in WINDOWS:
        phased = window if kind == "phase" else 0
        ahead = LOOKAHEAD.get(kind, 0)
        view = given.windows(window, lookahead=ahead, phase="random" if phased else None, **options, **told)
        rows = library.rows(
            opened, ("windows", window, ahead, phased), lambda: windows(content, window, ahead, phased=phased)
        )
    elif kind in PACKED:
        how = packing_of(case, window)
        view = given.packed(**asdict(how), **options, **told)
        if case["where"] in ("view", "twice"):
            view = view.where(WHERE)  # which is refused
        rows = packed_rows(library, opened, case, window)
    elif kind in CELLS:
        view = given.cells(**cells.arguments(kind), **options)
        rows = library.rows(opened, ("documents", None), lambda: documents(content))
    else:
        view = given.documents(**options, **told)
        padded = padding_of(case, window)
        most = None
        if padded is not None:
            most = padded.to
            view = view.padded(
                "longest" if most is None else most,
                multiple_of=padded.multiple_of,
                side="left" if padded.left else "right",
                value=padded.value,
            )
        rows = library.rows(opened, ("documents", most), lambda: documents(content, most))
    if case["where"] != "dataset":
        assert len(view) == rows.size, (view, len(view), rows.size)
    return view, rows


def _part(view: penstock.View, numbers: np.ndarray, part: str) -> tuple[penstock.View, np.ndarray]:
    """A part of a view, and which of `numbers` are left."""
    if part == "slice":
        return view[1:], numbers[1:]
    if part == "stride":
        return view[1::2], numbers[1::2]
    if part in ("pick", "mask"):
        random = np.random.default_rng(len(numbers))
        chosen = random.random(len(numbers)) < 0.7
        chosen[0] = True
        if part == "mask":
            return view.select(chosen), numbers[chosen]
        picked = random.permutation(np.flatnonzero(chosen))
        return view.select(picked), numbers[picked]
    if part in ("split", "held"):
        split = view.split(ONE_IN, seed=SPLIT_SEED)
        return _splitted(split, numbers)[part == "held"]
    if part == "nested":
        inner = _splitted(view[1:].split(ONE_IN, seed=SPLIT_SEED), numbers[1:])[0]
        return inner[0][1:], inner[1][1:]
    return view, numbers


def _splitted(parts: Any, numbers: np.ndarray) -> list[tuple[penstock.View, np.ndarray]]:
    """The package says which one of each run is held out; that it is one of each is checked."""
    train, held = parts
    positions = {int(number): at for at, number in enumerate(numbers)}
    first, second = (
        np.array([positions[int(each)] for each in part.base_indices(np.arange(len(part)))], np.int64) for part in parts
    )
    assert sorted([*first, *second]) == list(range(len(numbers))), "a split lost or repeated observations"
    runs = second // ONE_IN
    assert len(set(runs)) == len(runs) and set(range(len(numbers) // ONE_IN)) <= set(runs.tolist())
    assert (np.diff(first) > 0).all() and (np.diff(second) > 0).all()
    return [(train, numbers[first]), (held, numbers[second])]
