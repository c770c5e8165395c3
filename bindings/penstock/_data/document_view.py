"""DocumentView and PaddedView: documents of any length, end to end or as rectangles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import BatchLayout, ColumnPlace, Wanted, with_computed, with_labels
from penstock._data.dtype import PADDED_NAMES
from penstock._data.fields import Leaf, leaves, row_field, token_leaf
from penstock._data.padded import Padded, resolve
from penstock._data.part import Steps
from penstock._data.spans import Metadata
from penstock._data.view import Of, View
from penstock._data.where import Choice

_STEP_DOCUMENTS = 1 << 22  # between two looks at Ctrl-C


class DocumentView(View[Of]):
    """The view that `Dataset.documents` makes."""

    kind = "documents"
    _by_span = False

    def _make(self) -> _native.Source:
        return _native.make_documents(self.dataset._native, list(self.columns))

    def _in_documents(self, choice: Choice) -> _native.Chosen:
        return choice.documents

    def _own(self) -> tuple[Any, ...]:
        return ()

    def _words(self) -> list[str]:
        return []

    def padded(
        self,
        to: int | str = "longest",
        *,
        multiple_of: int = 1,
        side: str = "right",
        value: Any = 0,
        long: str = "truncate",
    ) -> View[Of]:
        """See `View.padded`."""
        if self.dtype is None or not self.dtype.names or self._source.fields_apart:
            raise InvalidArgumentError(f"{self!r}: padded() is of documents whose records lie end to end")
        names = [leaf.name for leaf in leaves(self.dtype) if leaf.base.kind not in "SV"]
        rows = resolve(to, multiple_of, side, value, long, names, token_leaf(self.dtype)[0])
        view = PaddedView(self.dataset, self.metadata, self.columns, self._steps, rows)
        _ = view._layout  # says which padding cannot be
        if rows.to is None or rows.long != "drop":
            return view
        return view.select(self.lengths() <= rows.to)

    def lengths(self) -> npt.NDArray[np.int64]:
        """See `View.lengths`."""
        native = self.dataset._native
        count = native.spans
        parts = [
            _native.document_lengths(native, first, min(_STEP_DOCUMENTS, count - first))
            for first in range(0, count, _STEP_DOCUMENTS)
        ]
        found = np.concatenate(parts).astype(np.int64)
        return found[self.base_indices(np.arange(len(self)))] if self._steps else found

    def _label_field(self, fields: tuple[Leaf, ...]) -> tuple[str | None, str]:
        return None, "documents have fields and offsets; inputs and labels are of windows(window, lookahead=1)"

    @property
    def _has_first_records(self) -> bool:
        return bool(self.dataset.mode != "opaque")

    def _check_sliced(self) -> None:
        raise InvalidArgumentError(
            f"context_parallel: {self!r}: documents have no window that ranks could share: use dataset.windows(…) or "
            "dataset.packed(…)"
        )

    def _check_lengths(self, cost: str, advice: str) -> None:
        if self.dataset.mode == "opaque":
            raise InvalidArgumentError(f"cost={cost!r}: {self!r}: opaque documents have no lengths: {advice}")


class PaddedView(DocumentView[Of]):
    """The view that `View.padded` makes."""

    rows: Padded

    def __init__(self, dataset: Of, metadata: Metadata, columns: tuple[str, ...], steps: Steps, rows: Padded) -> None:
        """Of arguments that were checked."""
        self.rows = rows
        super().__init__(dataset, metadata, columns, steps)

    def _make(self) -> _native.Source:
        if self.rows.to is None:
            return super()._make()
        cut = self.rows.to, self.rows.long != "truncate"
        return _native.make_documents(self.dataset._native, list(self.columns), *cut)

    def _own(self) -> tuple[Any, ...]:
        return (self.rows,)

    def _called(self, arguments: str) -> str:
        return f"documents({arguments}).padded({self.rows.words()})"

    def lengths(self) -> npt.NDArray[np.int64]:
        """See `View.lengths`."""
        found = super().lengths()
        return found if self.rows.to is None else np.minimum(found, self.rows.to)

    def _label_field(self, fields: tuple[Leaf, ...]) -> tuple[str | None, str]:
        return row_field(fields)

    @property
    def _rectangles(self) -> Padded | None:
        return self.rows

    def _arranged(self, layout: BatchLayout, wanted: Wanted) -> BatchLayout:
        """Rectangles in place of the records' fields, and what goes with them."""
        self._check_labels(layout)
        if layout.computed.sequences:
            names = ", ".join(each.name for each in layout.computed.sequences if each.name != "max_seqlen")
            raise InvalidArgumentError(
                f"columns=: {names}: sequences are of documents end to end: padded rows have attention_mask and lengths"
            )
        layout = self._with_labels(layout)
        types = {name: dtype for name, dtype in layout.types.items() if dtype.kind not in "SV"}
        types = self.rows.types(types, layout.chosen)
        arrays = [(name, name, dtype) for name, dtype in types.items()]
        if layout.label_field is not None:
            arrays.append(("inputs", layout.label_field, layout.label_type))
        number = len(layout.computed.specs)
        made = {name: ColumnPlace(number, part, dtype) for part, (name, _, dtype) in enumerate(arrays)}
        for name in PADDED_NAMES:
            made[name] = ColumnPlace(number, len(made), np.dtype(np.int64))
        layout = with_computed(layout)
        return replace(
            layout,
            leaf_of={},
            types=types,
            makers=(self.rows.maker([(field, dtype) for _, field, dtype in arrays]),),
            column_of={**layout.column_of, **made},
            flat=frozenset(),
        )

    def _with_labels(self, layout: BatchLayout) -> BatchLayout:
        """What is computed of documents as rectangles, too; labels cross no document, as there is one a row."""
        padding = self.rows.padding()
        per_span = tuple(each.copy() for each in layout.computed.per_span)
        for each in per_span:
            each.padding = padding
        layout = replace(layout, computed=layout.computed._replace(per_span=per_span))
        return with_labels(layout, cross_document=True, bounds=_native.DocumentBounds(), padding=padding)
