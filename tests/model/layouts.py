"""What a loader of a case is asked for, and what its batches then consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import numpy as np
import penstock
from arrays import Computed, Layout, Leaf, Slice, label_field
from dimensions import BY_TOKEN, CELLS, NO_SPANS, PACKED, PADDED, WINDOWS, Case
from penstock.columns import CuSeqlens, DocumentIds, Labels, LossMask, PerSpan, PositionIds
from sources import Source, packing_of, padding_of
from transforms import columns_of_transform

MAX_DOCUMENTS = 9_000
CONTEXTS = {
    "zigzag": (2, "zigzag"),
    "zigzag3": (3, "zigzag"),
    "zigzag5": (5, "zigzag"),
    "contiguous": (4, "contiguous"),
    "documents": (2, "zigzag-documents"),
}
TYPES = {"i4": "<i4", "u4": "<u4", "f8": "<f8"}


@dataclass(frozen=True)
class Shape:
    """How one set of loaders runs; nothing of it changes what stands at a position."""

    ranks: int
    framework: str
    reader: str
    threads: int
    prefetch: int | None
    max_bytes: int | None
    context_rank: int


def mask_field(case: Case) -> str:
    return {"many": "loss", "cells": "count"}.get(case["data"], "token")


def columns_of(case: Case) -> tuple[list[Any], int | None, Computed]:
    """The loader's `columns=` and `max_documents=`, and what they come to."""
    wanted = case["columns"]
    names: list[Any] = ["cu_seqlens", "position_ids", "document_ids"]
    field, answers = LossMask(field=mask_field(case)), LossMask(spans=lambda metadata: metadata["answers"])
    within, quality = Labels(cross_document=False), PerSpan("quality", lambda metadata: metadata["quality"], "f4", -1)
    if wanted == "sequences":
        return names, None, Computed(sequences=True)
    if wanted == "bounded":
        return names, MAX_DOCUMENTS, Computed(sequences=True, max_documents=MAX_DOCUMENTS)
    if wanted == "field":
        return [field], None, Computed(fields=(mask_field(case),))
    if wanted == "answers":
        return [answers], None, Computed(answers=True)
    if wanted == "within":
        return [within], None, Computed(within=True)
    if wanted == "quality":
        return [quality], None, Computed(quality=True)
    if wanted == "several":
        labels = [within] if case["view"] not in ("window", "documents") and case["data"] != "cells" else []
        found = Computed(sequences=True, fields=(mask_field(case),), answers=True, within=bool(labels), quality=True)
        return [*names, field, answers, quality, *labels], None, found
    if wanted in BY_TOKEN:
        return _by_token(case, names, within)
    return [], None, Computed()


def _by_token(case: Case, names: list[Any], within: Any) -> tuple[list[Any], int | None, Computed]:
    """The view is told the token, or where that has documents of its own, each column."""
    side = {f"{case['columns']}_of_document": datasets.END}
    if case["view"] in WINDOWS:
        labels = [within] if case["view"] != "window" else []
        return [*names, *labels], None, Computed(sequences=True, within=bool(labels), **{case["columns"]: datasets.END})
    if case["data"] in NO_SPANS:
        return ([], None, Computed()) if case["view"] in PADDED else (names, None, Computed(sequences=True))
    columns = [CuSeqlens(**side), PositionIds(**side), DocumentIds(**side)]
    return columns, None, Computed(sequences=True, **{case["columns"]: datasets.END})


def layout_of(case: Case, sources: Sequence[Source], shape: Shape) -> Layout:
    first = sources[0]
    kind = "windows" if case["view"] in WINDOWS else "packed" if case["view"] in PACKED else case["view"]
    kind = "padded" if case["view"] in PADDED else "opaque" if case["data"] == "opaque" else kind
    found = first.leaves if kind != "opaque" and kind not in CELLS else ()
    field = label_field(found)
    types = _types(case, sources, found, shape.framework, field)
    chosen = TYPES.get(case["types"], "") if field is not None else ""
    label_type = np.dtype(chosen if chosen.startswith("<i") else "i8")
    context = None
    if case["context"] != "none":
        size, how = CONTEXTS[case["context"]]
        context = Slice(shape.context_rank % size, size, how)
    values = {name: first.opened.dataset.columns[name].dtype for name in first.view.columns}
    values = {
        name: np.dtype((dtype, datasets.COLUMNS[name][1])) if name == "pair" and dtype.subdtype is None else dtype
        for name, dtype in values.items()
    }
    metadata: bool | str = {"entries": True, "spans": "spans", "none": False}[case["metadata"]]
    if metadata is False and values and kind in ("windows", "packed"):
        metadata = "spans"
    return Layout(
        kind=kind,
        window=first.window,
        lookahead=first.lookahead,
        multiple_of=packing_of(case, first.window).multiple_of,
        leaves=found,
        types=types,
        label_field=field,
        label_type=label_type,
        computed=columns_of(case)[2],
        values=values,
        categories=tuple(_categories(each) for each in sources),
        metadata=metadata,
        slice=context,
        padded=padding_of(case, first.window or first.opened.window),
    )


def _categories(source: Source) -> dict[str, list[str]]:
    return {
        name: list(source.opened.dataset.columns[name].categories or ())
        for name in source.view.columns
        if name == "kind"
    }


def _types(
    case: Case, sources: Sequence[Source], found: Sequence[Leaf], framework: str, field: str | None
) -> dict[str, np.dtype[Any]]:
    """Of each field: what was chosen, int64 for tensors of integers, else what holds all sources' values."""
    types = {}
    for number, leaf in enumerate(found):
        base = leaf.base
        if base.kind == "S":
            types[leaf.name] = base
            continue
        integer = base.kind in "iu"
        common = np.result_type(*(each.leaves[number].base for each in sources))
        types[leaf.name] = np.dtype("i8") if framework == "torch" and integer else common
        if integer and case["types"] in ("i4", "f8"):
            types[leaf.name] = np.dtype(TYPES[case["types"]])
        elif leaf.name == field and case["types"] == "u4":
            types[leaf.name] = np.dtype("<u4")
        elif case["view"] == "left" and leaf.name == field and types[leaf.name].kind == "u":
            types[leaf.name] = np.dtype("i8")  # which holds the padding, -1
    return types


def options_of(case: Case, shape: Shape, view: Any) -> dict[str, Any]:
    """The loader's arguments that change no position."""
    columns, max_documents, _ = columns_of(case)
    options: dict[str, Any] = {
        "columns": [*columns, *columns_of_transform(case)],
        "max_documents": max_documents,
        "framework": shape.framework,
        "reader": shape.reader,
        "threads": shape.threads,
        "prefetch": shape.prefetch,
        "max_bytes": shape.max_bytes,
    }
    if case["types"] == "u4":
        options["dtype"] = {"token": "u4"}
    elif case["types"] != "stored":
        options["dtype"] = TYPES[case["types"]][1:]
    if case["context"] != "none":
        size, how = CONTEXTS[case["context"]]
        options["context_parallel"] = penstock.ContextParallel(shape.context_rank % size, size, how)
    return options
