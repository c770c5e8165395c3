"""ChosenDocuments: what `Dataset.where` gives, which makes views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._data.packed import resolve as resolve_packed
from penstock._data.packed_view import PackedView
from penstock._data.spans import Metadata
from penstock._data.stored_columns import names_of
from penstock._data.token_documents import SIDES
from penstock._data.view import View
from penstock._data.where import Choice, checked, choose, refuse_words


class ChosenDocuments:
    """Documents of a dataset that a condition on their columns chooses: what `Dataset.where` gives.

    A condition compares (`=`, `<>`, `<`, `<=`, `>`, `>=`) columns with numbers, 'texts' and each other, has `in (…)`,
    `is null` and columns of booleans, and joins them by `and`, `or`, `not` and parentheses. Names that are no words
    stand in "double quotes". Null is as in SQL, and NaN is null: a comparison with it is unknown, and only what is true
    is chosen. Numbers compare exactly, so no float32 is 0.1. The columns that are named are read once, when it is made,
    and nothing else.

    Views of it are made as those of the dataset are, and their methods are the same. What a job's state says of one has
    the condition and a digest of what it chose, so a state of other documents is refused.

    Attributes:
        dataset: of all documents.
        condition: its text, the same for all ways to write it.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "corpus")
        >>> columns = {"lang": "category", "score": "f4"}
        >>> with penstock.Writer(path, {"token": "u2"}, columns=columns) as writer:
        ...     for lang, score in ("en", 0.9), ("de", 0.95), ("en", 0.5), (None, 0.99):
        ...         writer.append(token=[1, 2, 3], columns={"lang": lang, "score": score})
        >>> chosen = penstock.open(path).where("score > 0.8 AND lang = 'en'")
        >>> len(chosen), chosen.condition, chosen.numbers.tolist()
        (1, "lang = 'en' and score > 0.8", [0])
        >>> len(penstock.open(path).where("lang <> 'en' or score >= 0.9").documents())
        2
    """

    def __init__(self, dataset: Any, choice: Choice) -> None:
        """Made by `Dataset.where`."""
        self.dataset = dataset
        self.condition = choice.condition
        self._choice = choice

    def __len__(self) -> int:
        """How many documents are chosen."""
        return self._choice.documents.count

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """Their numbers in the dataset, int64 [chosen], ascending."""
        return self._choice.documents.numbers

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that tell these documents from others of as many."""
        return self._choice.documents.digest()

    def where(self, condition: str = "", **words: NoReturn) -> ChosenDocuments:
        """Those of them that another condition chooses too."""
        refuse_words(words)
        both = f"({self.condition}) and ({checked(condition)})"
        choose(self.dataset._native, condition)  # its errors are of what was given
        return ChosenDocuments(self.dataset, choose(self.dataset._native, both))

    def documents(self, *, columns: Sequence[str] = (), metadata: Metadata = True) -> View:
        """The view of these documents, as `Dataset.documents`."""
        return self._of(self.dataset.documents(columns=columns, metadata=metadata))

    def windows(self, window: int, lookahead: int = 0, **options: Any) -> View:
        """The windows that lie in these documents: all of their records, and those of the lookahead, are of them.

        They are some of the windows of `Dataset.windows`, from whose index is read where documents lie. Where chosen
        documents seldom stand side by side, few windows lie in them: `packed` fills rows with them.

        Args:
            window: as of `Dataset.windows`.
            lookahead: likewise.
            options: the others of `Dataset.windows`, but for phase="random", which is refused.
        """
        return self._of(self.dataset.windows(window, lookahead, **options))

    def packed(self, window: int, *, columns: Sequence[str] = (), metadata: Metadata = True, **packing: Any) -> View:
        """The view of rows that are filled with these documents, as `Dataset.packed`.

        Args:
            window: records of a row.
            columns: as of `Dataset.packed`.
            metadata: likewise.
            packing: `fit`, `group` (of chosen documents), `long` and the other arguments of `Dataset.packed` that say
                how rows are packed; `table`, a file that `penstock pack --where` made of these documents.
        """
        for side in SIDES:
            if side in packing:
                raise InvalidArgumentError(
                    f"packed({side}={packing[side]!r:.40}): the dataset says where the documents are that the "
                    "condition chose: leave it out"
                )
        rows = resolve_packed(window, **packing)
        return PackedView(self.dataset, metadata, names_of(columns), (), rows, self._choice)

    def cells(self, *form: Any, **options: Any) -> View:
        """The view of these documents as cells, as `Dataset.cells`."""
        return self._of(self.dataset.cells(*form, **options))

    def _of(self, view: View) -> View:
        return view._part((view._where(self._choice),))

    def __repr__(self) -> str:
        """The dataset, the condition, and how many it chose."""
        return f"{self.dataset!r}.where({self.condition!r}) of {counted(len(self), 'document')}"
