"""Fill-in-the-middle, from docs/loading.md: rows as a loader has them before any column is made."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import datasets
import numpy as np
from _middle import Middle, rearranged, source_seed
from arrays import label_field
from dimensions import NO_SPANS, OF_DOCUMENTS, PACKED, WINDOWS, Case
from observations import Given, Row
from penstock.columns import FillInTheMiddle
from sources import Source

PREFIX, MIDDLE, SUFFIX = 191, 192, 193


class Transform(NamedTuple):
    """What a case asks for: of which sources, and which token it is told."""

    fim: Middle
    only: int | None
    told: bool


def transform_of(case: Case) -> Transform | None:
    if case["transform"] == "none":
        return None
    told = case["transform"] == "fim"
    in_view = case["view"] in WINDOWS
    last = datasets.END if told or (in_view and case["columns"] == "end") else None
    first = datasets.END if in_view and case["columns"] == "begin" else None
    rates = (0.7, 0.4) if told else (1.0, 1.0)
    only = 0 if not told and case["mix"] != "none" else None
    return Transform(Middle(PREFIX, MIDDLE, SUFFIX, *rates, first, last), only, told)


def column_of(case: Case) -> FillInTheMiddle | None:
    wanted = transform_of(case)
    if wanted is None:
        return None
    fim = wanted.fim
    return FillInTheMiddle(
        PREFIX, MIDDLE, SUFFIX, rate=fim.rate, spm_rate=fim.spm_rate,
        sources=None if wanted.only is None else [f"source {wanted.only}"],
        end_of_document=datasets.END if wanted.told else None,
    )  # fmt: skip


def transformed(case: Case, given: Given, pick: Any, source: Source, seed: int) -> Given:
    """The row at a pick of the job, as columns are made of it."""
    wanted = transform_of(case)
    if wanted is None or wanted.only not in (None, pick.source):
        return given
    row, field = given.row, label_field(source.leaves)
    assert field is not None
    tokens = row.records[field].tolist()
    parts = source.window // pick.window if source.window else 1
    observation = int(source.numbers[pick.index // parts]) * parts + pick.index % parts
    own = seed if case["mix"] == "none" else source_seed(seed, f"source {pick.source}")
    made = rearranged(tokens, _pieces(case, row, tokens), wanted.fim, own, pick.epoch, observation)
    records = row.records[[place for place, _ in made]]
    records[field] = [token for _, token in made]
    return Given(Row(records, row.spans, row.first_record), given.source)


def _pieces(case: Case, row: Row, tokens: list[int]) -> list[tuple[int, int]]:
    if case["view"] in OF_DOCUMENTS:
        return [(0, len(tokens))]
    if case["view"] in PACKED:
        return [(span.start, span.stop) for span in row.spans]
    cuts = [span.start for span in row.spans]
    if case["columns"] == "begin":
        cuts = np.flatnonzero(np.array(tokens) == datasets.END).tolist()
    elif case["columns"] == "end" or case["data"] in NO_SPANS:
        cuts = (np.flatnonzero(np.array(tokens) == datasets.END) + 1).tolist()
    bounds = sorted({0, *(each for each in cuts if each < len(tokens)), len(tokens)})
    return list(itertools.pairwise(bounds))
