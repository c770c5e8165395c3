"""CellView: documents that are cells, whose batches are arrays of a form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import BatchLayout, ColumnPlace, Wanted, with_computed
from penstock._data.cell_forms import Cells
from penstock._data.document_view import DocumentView
from penstock._data.part import Steps
from penstock._data.spans import Metadata
from penstock._data.view import Of, View


class CellView(DocumentView[Of]):
    """The view that `Dataset.cells` makes."""

    cells: Cells
    _with_metadata = False

    def __init__(self, dataset: Of, metadata: Metadata, columns: tuple[str, ...], steps: Steps, cells: Cells) -> None:
        """Takes arguments that were checked."""
        self.cells = cells
        super().__init__(dataset, metadata, columns, steps)

    padded = View.padded  # which refuses

    def _own(self) -> tuple[Any, ...]:
        return (self.cells,)

    def _words(self) -> list[str]:
        return [self.cells.words()]

    def _called(self, arguments: str) -> str:
        return f"cells({arguments})"

    def _check_dtype(self, dtype: Any) -> None:
        if dtype is not None:
            raise InvalidArgumentError(
                f"dtype={dtype!r:.80}: the types of cells are those of their form: {self.cells.form}"
            )

    def _check_column(self, called: str) -> None:
        raise InvalidArgumentError(f"columns=: {called} is of records, and these are cells: use dataset.documents()")

    def _arranged(self, layout: BatchLayout, wanted: Wanted) -> BatchLayout:
        """The arrays of the form in place of the records' fields."""
        layout = with_computed(layout)
        number = len(layout.computed.specs)
        made = {each.name: ColumnPlace(number, part, each.type) for part, each in enumerate(self.cells.arrays)}
        return replace(
            layout,
            leaf_of={},
            types={name: place.type for name, place in made.items() if name != "offsets"},
            makers=(self.cells.maker(wanted.seed),),
            column_of={**layout.column_of, **made},
            flat=frozenset(each.name for each in self.cells.arrays if each.flat),
            cells=self.cells,
        )
