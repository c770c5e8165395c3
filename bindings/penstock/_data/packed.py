"""Packed rows: which documents go together into a row of a fixed length, and the tables that say it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from penstock import _native
from penstock._base.arguments import index, one_of
from penstock._base.errors import InvalidArgumentError
from penstock._data.where import Choice
from penstock._places.paths import local_path

_FITS = ("best", "first", "next")
FILLS = ("pad", "exact")
LONG = ("split", "truncate", "drop", "refuse")
CUTS = ("split", "truncate")
_STEP_DOCUMENTS = 1 << 18  # between two looks at Ctrl-C
_GROUP = 65_536
_MOST_GROUP = (1 << 32) - 1
_BUFFER, _REFILL = 1_000, 128  # documents of fill="exact"


class Packing(NamedTuple):
    """Counts of a dataset's packed rows.

    Attributes:
        rows: of the whole view.
        pieces: documents, or pieces of split ones, in all rows.
        documents: of the dataset.
        left_out: documents that are in no row: empty ones, with long="drop" those longer than a row, with
            fill="exact" the last ones of a shard, which fill no row.
        records_left_out: records that are in no row, by long="drop" or "truncate", cut="truncate" or fill="exact".
        waste: the part of all rows that is padding, 0 to 1.
    """

    rows: int
    pieces: int
    documents: int
    left_out: int
    records_left_out: int
    waste: float


@dataclass(frozen=True)
class Packed:
    """The arguments of `Dataset.packed`, checked; pickles."""

    window: int
    fit: str
    group: int
    long: str
    multiple_of: int
    table: str | None
    max_document: int | None = None
    cut: str | None = None
    max_documents: int | None = None
    fill: str = "pad"
    buffer: int | None = None
    refill: int | None = None
    lookahead: int = 0

    def rule(self) -> _native.PackingRule:
        """As the native side takes it.

        Raises:
            InvalidArgumentError: a window too long, or no multiple of multiple_of.
        """
        return _native.PackingRule(
            window=self.window + self.lookahead,
            fit=self.fit,
            group=self.group,
            long_documents=self.cut or ("truncate" if self.fill == "exact" else self.long),
            multiple_of=self.multiple_of,
            max_document=self.max_document or 0,
            max_documents=self.max_documents or 0,
            fill=self.fill,
            buffer=self.buffer or 0,
            refill=self.refill or 0,
        )

    def words(self) -> list[str]:
        """The arguments that are not the defaults."""
        said = [f"{self.window}"]
        has_buffer = self.buffer is not None
        for name, default in {**_DEFAULTS, **(_BUFFER_DEFAULTS if has_buffer else {})}.items():
            if getattr(self, name) != default:
                said.append(f"{name}={getattr(self, name)!r}")
        return said


_BUFFER_DEFAULTS = {"buffer": _BUFFER, "refill": _REFILL}
_DEFAULTS: dict[str, Any] = {
    "lookahead": 0,
    "fill": "pad",
    "fit": "best",
    "group": _GROUP,
    "long": "split",
    "multiple_of": 1,
    "max_document": None,
    "cut": None,
    "max_documents": None,
    "buffer": None,
    "refill": None,
    "table": None,
}


def resolve(
    window: Any,
    *,
    fit: Any = "best",
    group: Any = None,
    long: Any = "split",
    multiple_of: Any = 1,
    table: Any = None,
    max_document: Any = None,
    cut: Any = None,
    max_documents: Any = None,
    fill: Any = "pad",
    buffer: Any = None,
    refill: Any = None,
    lookahead: Any = 0,
) -> Packed:
    """The arguments of `Dataset.packed`, checked.

    Raises:
        InvalidArgumentError: one that cannot be.
    """
    one_of("fill", fill, FILLS)
    one_of("fit", fit, _FITS)
    one_of("long", long, LONG)
    if max_document is not None:
        cut = _checked_cut(cut, long)
    elif cut is not None:
        raise InvalidArgumentError(
            f"cut={cut!r}: it says how documents longer than max_document= are cut: give that too, or say by long= "
            "what becomes of those longer than a row"
        )
    if fill == "exact":
        _check_exact(group, long, max_document)
    has_buffer = fill == "exact" and fit == "best"
    for name, value in (("buffer", buffer), ("refill", refill)):
        if value is not None and not has_buffer:
            raise InvalidArgumentError(f'{name}={value!r}: it is of fill="exact" with fit="best": leave it out')
    ahead = index("lookahead", lookahead)
    multiple = index("multiple_of", multiple_of, 1)
    if ahead and multiple > 1:
        raise InvalidArgumentError(
            f"multiple_of={multiple}: rows with lookahead={ahead} are no multiple of it: leave one of them out; packed "
            "rows have labels without lookahead"
        )
    packed = Packed(
        window=index("window", window, 1),
        fit=fit,
        group=_GROUP if group is None else index("group", group, 1, _MOST_GROUP),
        long=long,
        multiple_of=multiple,
        table=None if table is None else str(Path(local_path(table)).absolute()),
        max_document=None if max_document is None else index("max_document", max_document, 1),
        cut=cut,
        max_documents=None if max_documents is None else index("max_documents", max_documents, 1),
        fill=fill,
        buffer=(_BUFFER if buffer is None else index("buffer", buffer, 1)) if has_buffer else None,
        refill=(_REFILL if refill is None else index("refill", refill, 1)) if has_buffer else None,
        lookahead=ahead,
    )
    packed.rule()
    return packed


def _checked_cut(cut: Any, long: str) -> str:
    if long != "split":
        raise InvalidArgumentError(
            f"long={long!r}: with max_document= no document is longer than a row: say by cut= how documents are cut"
        )
    chosen = "split" if cut is None else cut
    one_of("cut", chosen, CUTS)
    return str(chosen)


def _check_exact(group: Any, long: str, max_document: Any) -> None:
    if group is not None:
        raise InvalidArgumentError(
            f'group={group!r}: with fill="exact" documents are taken in their order, not in groups: leave it out, or '
            'say by buffer= among how many fit="best" looks'
        )
    if long != "split" and max_document is None:
        raise InvalidArgumentError(
            f'long={long!r}: with fill="exact" each document is cut where its row ends: leave it out'
        )


def make_table(dataset: _native.Dataset, packed: Packed, choice: Choice | None = None) -> _native.PackTable:
    """The table of a view: packed now, or opened; `choice`: the documents, where not all are packed.

    Raises:
        InvalidArgumentError: a dataset without documents of records, or with more than are packed at opening; a table
            of another dataset, or packed by another rule.
    """
    rule = packed.rule()
    if packed.table is not None:
        table = _native.PackTable(packed.table, dataset)
        _check_rule(packed, table.header.rule)
        _check_choice(packed, table.header.where, choice)
        return table
    count = dataset.spans if choice is None else choice.documents.count
    where = "" if choice is None else f" where {choice.condition:.80}"
    if count > _native.MOST_PACKED_AT_OPENING:
        option = "" if choice is None else " --where CONDITION"
        raise InvalidArgumentError(
            f"{dataset.path}: {count:,} documents{where}: at most {_native.MOST_PACKED_AT_OPENING:,} are packed when "
            f"a view is made; run `penstock pack {dataset.path}{option} --window {packed.window} --out FILE` once and "
            "give table=FILE"
        )
    packer = _native.DatasetPacker(dataset, rule, *_chosen(dataset, choice))
    while packer.step(_STEP_DOCUMENTS):
        pass
    return packer.table()


def _chosen(dataset: _native.Dataset, choice: Choice | None) -> tuple[_native.Chosen | None, str]:
    """The documents that are packed, as the native side takes them."""
    if choice is None:
        return None, ""
    if choice.documents.count == 0:
        raise InvalidArgumentError(
            f"{dataset.path}: none of its {choice.documents.size:,} documents is chosen where {choice.condition:.80}"
        )
    return choice.documents, choice.said


def _check_choice(packed: Packed, packed_of: str, choice: Choice | None) -> None:
    if packed_of == ("" if choice is None else choice.said):
        return
    old = json.loads(packed_of)["condition"] if packed_of else None
    if choice is not None and old == choice.condition:
        words = f"the documents where {old:.80} were others when it was packed: columns changed"
    else:
        there, wanted = (
            "all documents" if each is None else f"those where {each:.80}"
            for each in (old, None if choice is None else choice.condition)
        )
        words = f"it is of {there}, not of {wanted}"
    raise InvalidArgumentError(f"table={packed.table!r}: {words}: make another table by `penstock pack`")


def write_table(
    dataset: _native.Dataset,
    packed: Packed,
    path: str,
    progress: Callable[[int], None] = lambda _: None,
    choice: Choice | None = None,
) -> _native.PackHeader:
    """Packs all documents, or those that were chosen, into the file `path`.

    Args:
        dataset: whose documents.
        packed: by which rule.
        path: where the table is to be; nothing may be there.
        progress: called now and then with the number of documents that are packed; may raise.
        choice: the documents; None: all.

    Raises:
        InvalidArgumentError: as `make_table`; the file is there.
    """
    writer = _native.PackTableWriter(dataset, packed.rule(), path, *_chosen(dataset, choice))
    more = True
    while more:
        more = writer.step(_STEP_DOCUMENTS)
        progress(writer.done)
    return writer.commit()


def packing_of(header: _native.PackHeader) -> Packing:
    """A table's counts, for users."""
    room = header.rows * header.rule.window
    waste = 1 - header.records / room if room else 0.0
    documents = json.loads(header.where)["count"] if header.where else header.documents
    return Packing(header.rows, header.pieces, documents, header.left_out, header.cut, waste)


def _check_rule(packed: Packed, made: _native.PackingRule) -> None:
    is_cut, is_exact = made.max_document > 0, made.fill == "exact"
    if packed.lookahead > 0 and made.window != packed.window + packed.lookahead:
        raise InvalidArgumentError(
            f"table={packed.table!r}: its rows have {made.window:,} records, where window={packed.window} and "
            f"lookahead={packed.lookahead} are {packed.window + packed.lookahead:,} together: give a window and a "
            "lookahead that are as many as it has, or make another table by `penstock pack`"
        )
    seen = Packed(
        window=made.window - packed.lookahead,
        fit=made.fit,
        group=made.group,
        long="split" if is_cut or is_exact else made.long_documents,
        multiple_of=made.multiple_of,
        table=packed.table,
        max_document=made.max_document or None,
        cut=made.long_documents if is_cut else None,
        max_documents=made.max_documents or None,
        fill=made.fill,
        buffer=made.buffer or None,
        refill=made.refill or None,
        lookahead=packed.lookahead,  # of which a table knows nothing: its rows have the lookahead
    )
    for name in ("window", *_DEFAULTS):
        wanted, found = getattr(packed, name), getattr(seen, name)
        if wanted != found:
            raise InvalidArgumentError(
                f"table={packed.table!r}: it was packed with {name}={found!r}, not {wanted!r}: give {name}={found!r}, "
                "or make another table by `penstock pack`"
            )
