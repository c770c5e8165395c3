"""Transforms of rows, from docs/loading.md: fill-in-the-middle, span corruption, functions of rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import datasets
import numpy as np
from _corruption import corrupted, counts
from _middle import Middle, rearranged, source_seed
from arrays import label_field
from dimensions import NO_SPANS, OF_DOCUMENTS, PACKED, WINDOWS, Case
from observations import Given, Row
from penstock.columns import FillInTheMiddle, PerRow, SpanCorruption
from sources import Source

PREFIX, MIDDLE, SUFFIX = 191, 192, 193


class Transform(NamedTuple):
    """What a case asks for: of which sources, and which token it is told."""

    fim: Middle
    only: int | None
    told: bool


def transform_of(case: Case) -> Transform | None:
    if case["transform"] not in ("fim", "spm"):
        return None
    told = case["transform"] == "fim"
    in_view = case["view"] in WINDOWS or case["data"] in NO_SPANS  # the token that tells documents
    last = datasets.END if told or (in_view and case["columns"] == "end") else None
    first = datasets.END if in_view and case["columns"] == "begin" else None
    rates = (0.7, 0.4) if told else (1.0, 1.0)
    only = 0 if not told and case["mix"] != "none" else None
    return Transform(Middle(PREFIX, MIDDLE, SUFFIX, *rates, first, last), only, told)


SPANS = SpanCorruption(range(70_000, 68_000, -1), density=0.2, mean_length=2, end=8, pad=9)


def looked_at(row: Any, generator: np.random.Generator) -> list[int]:
    tokens = row["token"].sum() if "token" in row else 0
    return [int(tokens), len(row.spans), row.index, int(generator.integers(1 << 40))]


def columns_of_transform(case: Case) -> list[Any]:
    wanted = transform_of(case)
    if case["transform"] == "spans":
        return [SPANS]
    if case["transform"] == "rows":
        return [PerRow(looked_at, {"looked_at": ("i8", 4)}, workers=2)]
    if wanted is None:
        return []
    fim = wanted.fim
    return [
        FillInTheMiddle(
            PREFIX, MIDDLE, SUFFIX, rate=fim.rate, spm_rate=fim.spm_rate,
            sources=None if wanted.only is None else [f"source {wanted.only}"],
            end_of_document=datasets.END if wanted.told else None,
        )
    ]  # fmt: skip


def arrays_of_transform(
    case: Case,
    given: Sequence[Given],
    picks: Sequence[Any],
    sources: Sequence[Source],
    seed: int,
    size: int,
    window: int,
    spans: bool,
) -> dict[str, np.ndarray]:
    """What the batch has of it, of `size` rows."""
    keys = [_key(case, pick, sources[pick.source], seed) for pick in picks]
    if case["transform"] == "rows":
        made = np.zeros((size, 4), np.int64)
        for number, (each, pick, key) in enumerate(zip(given, picks, keys, strict=True)):
            names = each.row.records.dtype.names or ()
            tokens = int(each.row.records["token"].sum()) if "token" in names else 0
            drawn = int(np.random.default_rng(list(key)).integers(1 << 40))
            made[number] = tokens, len(each.row.spans) if spans else 0, pick.index, drawn
        return {"columns.looked_at": made}
    if case["transform"] != "spans":
        return {}
    found = []
    for each, pick, key in zip(given, picks, keys, strict=True):
        field = label_field(sources[pick.source].leaves)
        assert field is not None
        found.append(corrupted(each.row.records[field].tolist(), SPANS, *key))
    longest = max((len(each.row.records) for each in given), default=0)
    if case["view"] in WINDOWS:
        longest = window
    noise, cut = counts(longest, SPANS)
    dtype = np.dtype("i4" if case["types"] == "i4" else "i8")
    inputs = np.full((size, longest - noise + cut + 1), SPANS.pad, dtype)
    labels = np.full((size, noise + cut + 1), -100, dtype)
    mask = np.zeros(inputs.shape, np.int64)
    for number, (one, other) in enumerate(found):
        inputs[number, : len(one)], labels[number, : len(other)], mask[number, : len(one)] = one, other, 1
    return {"inputs": inputs, "labels": labels, "attention_mask": mask}


def _key(case: Case, pick: Any, source: Source, seed: int) -> tuple[int, int, int]:
    """Seed, epoch and observation, by which a row draws."""
    parts = source.window // pick.window if source.window else 1
    if case["view"] in PACKED and pick.window != source.window:
        observation = pick.index  # packed rows of another length are not cut
    else:
        observation = int(source.numbers[pick.index // parts]) * parts + pick.index % parts
    own = seed if case["mix"] == "none" else source_seed(seed, f"source {pick.source}")
    return own, pick.epoch, observation


def transformed(case: Case, given: Given, pick: Any, source: Source, seed: int) -> Given:
    """The row at a pick of the job, as columns are made of it."""
    wanted = transform_of(case)
    if wanted is None or wanted.only not in (None, pick.source):
        return given
    row, field = given.row, label_field(source.leaves)
    assert field is not None
    tokens = row.records[field].tolist()
    key = _key(case, pick, source, seed)
    made = rearranged(tokens, _pieces(case, row, tokens), wanted.fim, *key)
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
