"""PackedView: rows that are filled with whole documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import BatchLayout, with_labels
from penstock._data.bounds import Bounds
from penstock._data.fields import Leaf, row_field
from penstock._data.packed import Packed, Packing, make_table, packing_of
from penstock._data.part import Steps
from penstock._data.spans import Metadata
from penstock._data.view import Of, View
from penstock._data.where import Choice, choose

if TYPE_CHECKING:
    from typing_extensions import Self


class PackedView(View[Of]):
    """The view that `Dataset.packed` makes."""

    kind = "packed"
    rows: Packed

    def __init__(
        self,
        dataset: Of,
        metadata: Metadata,
        columns: tuple[str, ...],
        steps: Steps,
        rows: Packed,
        choice: Choice | None = None,
    ) -> None:
        """Takes arguments that were checked; `choice`: the documents, where not all are packed."""
        self.window, self.lookahead = rows.window, rows.lookahead
        self.rows = rows
        self._choice = choice
        super().__init__(dataset, metadata, columns, steps)

    def _make(self) -> _native.Source:
        native = self.dataset._native
        table = make_table(native, self.rows, self._choice)
        self._packing = packing_of(table.header)
        return _native.make_packed(native, table, list(self.columns), self.rows.lookahead)

    def _own(self) -> tuple[Any, ...]:
        return self.rows, self._choice

    def _over(self, dataset: Any) -> Self:
        choice = None if self._choice is None else choose(dataset._native, self._choice.condition)
        return type(self)(dataset, self.metadata, self.columns, (), self.rows, choice)

    def _called(self, arguments: str) -> str:
        where = "" if self._choice is None else f"where({self._choice.condition!r})."
        return f"{where}packed({arguments})"

    def _words(self) -> list[str]:
        return self.rows.words()

    @property
    def packing(self) -> Packing:
        """How many documents are in how many rows."""
        return self._packing

    def _label_field(self, fields: tuple[Leaf, ...]) -> tuple[str | None, str]:
        return row_field(fields)

    def _with_labels(self, layout: BatchLayout) -> BatchLayout:
        """Those within each piece, which spans tell."""
        return with_labels(layout, cross_document=False, bounds=_native.DocumentBounds())

    def _column_bounds(self, given: Sequence[tuple[str, Any]]) -> Bounds | None:
        for side, value in given:
            raise InvalidArgumentError(
                f"columns=: {side} is {value!r:.80}: packed rows know their documents: leave it out"
            )
        return Bounds()

    @property
    def _max_document(self) -> int | None:
        return self.rows.max_document

    def _packed_again(self, name: str, window: int, max_document: int | None) -> PackedView[Of]:
        rows = self.rows
        what = f"sources[{name!r}]: a stage has rows of {window:,}"
        if self._steps:
            raise InvalidArgumentError(
                f"{what}, and {self!r} is a part of rows of another length: give the whole view; hold out shards by "
                "dataset.select"
            )
        if rows.table is not None:
            raise InvalidArgumentError(f"{what}, and table={rows.table!r} is of rows of {rows.window:,}: leave it out")
        if max_document is None and rows.max_document is not None and rows.max_document > window + rows.lookahead:
            raise InvalidArgumentError(
                f"{what}, and {self!r} cuts documents at max_document={rows.max_document:,}: give "
                f"Stage(window={window}, max_document=…) of at most {window + rows.lookahead:,}"
            )
        if max_document is not None and rows.long != "split":
            raise InvalidArgumentError(
                f"{what} with max_document={max_document}, and {self!r} says by long= what becomes of long documents: "
                "leave it out"
            )
        cut = rows.cut if max_document is None else rows.cut or "split"
        rows = replace(rows, window=window, max_document=max_document or rows.max_document, cut=cut)
        try:
            rows.rule()
            return PackedView(self.dataset, self.metadata, self.columns, (), rows, self._choice)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{what}: {error}") from error

    def _check_growable(self, what: str) -> None:
        if self.rows.table is not None:
            raise InvalidArgumentError(
                f"{what}: the table {self.rows.table} is of one dataset: leave table= out, and the rows of the first "
                "shards are packed again where a state needs them"
            )
        super()._check_growable(what)
