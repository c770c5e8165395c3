"""What each kind of view answers for itself: how it is made, its arrays, labels and documents, whether it may grow."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from penstock import _native
from penstock._base.arguments import index
from penstock._base.errors import InvalidArgumentError
from penstock._data.arrays import BatchLayout, Wanted, with_computed, with_fields, with_labels
from penstock._data.bounds import Bounds
from penstock._data.cell_forms import Cells
from penstock._data.fields import Leaf
from penstock._data.loadable import Loadable, Resolve
from penstock._data.packed import Packed
from penstock._data.padded import Padded
from penstock._data.part import Steps, Where
from penstock._data.where import Choice


class Kind(Loadable):
    """A view as those see it that load it: one source. What is abstract, or said by a class only, differs by kind."""

    dataset: Any
    kind: str
    window: int = 0
    lookahead: int = 0
    phase_window: int = 0
    cells: Cells | None = None
    bounds: Bounds | None = None
    rows: Packed | Padded | None = None
    _steps: Steps
    _source: _native.Source
    _with_metadata: ClassVar[bool] = True  # the default of `metadata`
    _by_span: ClassVar[bool] = True  # columns have a value for each span, not for each row

    # --- how it is made

    @abstractmethod
    def _make(self) -> _native.Source:
        """The native source of the whole view."""

    @abstractmethod
    def _own(self) -> tuple[Any, ...]:
        """The arguments of this kind, behind those of all views."""

    @abstractmethod
    def _words(self) -> list[str]:
        """These arguments as they would be typed."""

    def _called(self, arguments: str) -> str:
        """The dataset's method that makes it, with its arguments."""
        return f"{self.kind}({arguments})"

    def _in_documents(self, choice: Choice) -> _native.Chosen:
        """The observations of the whole view that lie in chosen documents.

        Raises:
            InvalidArgumentError: observations of this kind do not.
        """
        raise InvalidArgumentError(
            f"{self!r}: its rows are filled with documents, so these are chosen before: dataset.where(…).packed(…)"
        )

    def _emptiness(self) -> str:
        """What to say of a view without observations."""
        where = next((each.choice for each in self._steps if isinstance(each, Where)), None)
        if where is None:
            return f"{self!r} has no observations"
        if where.documents.count == 0:
            return f"{self!r} has no observations: the condition chooses none of {where.documents.size:,} documents"
        return f"{self!r} has no observations{self._why_none_lies_there()}"

    def _why_none_lies_there(self) -> str:
        """Why no observation may lie in chosen documents, of which there are some."""
        return ""

    # --- its arrays

    @abstractmethod
    def _label_field(self, fields: tuple[Leaf, ...]) -> tuple[str | None, str]:
        """The field whose values are inputs and labels; or None, and why."""

    def _arranged(self, layout: BatchLayout, wanted: Wanted) -> BatchLayout:
        """Says which arrays a batch has, where the records and their fields are known.

        Raises:
            InvalidArgumentError: this kind of view cannot give what is wanted.
        """
        self._check_labels(layout)
        layout = self._with_labels(layout)
        return with_fields(layout) if wanted.eager else with_computed(layout)

    def _with_labels(self, layout: BatchLayout) -> BatchLayout:
        """The labels, where the targets are computed of documents."""
        return layout if layout.computed.targets is None else with_labels(layout)

    def _check_labels(self, layout: BatchLayout) -> None:
        if layout.computed.wants_labels and layout.label_field is None:
            raise InvalidArgumentError(f"columns=: there are no labels: {layout.why_no_labels}")

    def _check_dtype(self, dtype: Any) -> None:
        """Refuses types of fields where there are none."""

    def _check_column(self, called: str) -> None:
        """Refuses a column of records where there are none."""

    def _column_bounds(self, given: Sequence[tuple[str, Any]]) -> Bounds | None:
        """What bounds documents for a loader's columns, which were `given` (side, token); None: the dataset says.

        Raises:
            InvalidArgumentError: the view says something else.
        """
        return None

    # --- its rows, as loaders share them out

    def _check_sliced(self) -> None:
        """Refuses rows that context-parallel ranks cannot share."""

    def _check_lengths(self, cost: str, advice: str) -> None:
        """Refuses costs by lengths that no index tells."""

    def _check_cut(self, name: str) -> None:
        """Refuses windows that cannot be cut into shorter ones; `name` is the mixture's."""

    @property
    def _max_document(self) -> int | None:
        """Records of a document that a packed row has at most; None: as many as the row has."""
        return None

    def _packed_again(self, name: str, window: int, max_document: int | None) -> Any:
        """The same documents packed for another length; `name` is the mixture's."""
        raise InvalidArgumentError(f"sources[{name!r}]: {self!r} has no packed rows")

    def _cut(self, window: int) -> _native.Source:
        """The same records in windows of another length that divides this one's."""
        raise InvalidArgumentError(f"{self!r} has no windows to cut")

    @property
    def _rectangles(self) -> Padded | None:
        """How documents are padded; None: they are not."""
        return None

    @property
    def _has_first_records(self) -> bool:
        """Whether it must be read where rows begin in the stream; else they have no such place, or it is arithmetic."""
        return False

    def _check_growable(self, what: str) -> None:
        if self.dataset.kind != "penstock":
            raise InvalidArgumentError(
                f"{what}: {self.dataset.path}: files of kind {self.dataset.kind} do not say shard by shard what they "
                "hold, so nobody can say whether they only grew: make a dataset of them with `penstock import`"
            )
        for step in self._steps:
            if isinstance(step, np.ndarray) or (isinstance(step, range) and step.step < 0):
                raise InvalidArgumentError(
                    f"{what}: {self!r} is a selection, of which nobody can say what it was before the dataset grew: "
                    "use view.split(), view[start:], dataset.select(shards) or the whole view"
                )

    # --- one source

    @abstractmethod
    def __len__(self) -> int:
        """How many observations there are."""

    def _views(self) -> Mapping[str, Any]:
        return {"": self}

    def _native_sources(self) -> list[_native.Source]:
        return [self._source]

    def _identities(self) -> list[_native.SourceIdentity]:
        return [self._source.identity]

    def _windows(self) -> list[int]:
        return [self.window]

    def _window_changes(self) -> list[tuple[int, int]]:
        return [(0, self.window)]

    def _order(self, given: Any, seed: int, resolve: Resolve) -> _native.Order:
        if isinstance(given, Mapping):
            raise InvalidArgumentError(f"order={given!r:.80}: orders by name are of a mixture's sources: give one")
        return resolve(given, self, index("seed", seed))

    def _ends(self, epochs: int | None, per_epoch: bool) -> tuple[int | None, bool]:
        return epochs, per_epoch

    def _for_evaluation(self, options: dict[str, Any]) -> None:
        options.setdefault("epochs", 1)

    def _costs(self, given: Any) -> Mapping[str, Any]:
        return {"": given}

    def _growing(self) -> Any:
        return self.dataset
