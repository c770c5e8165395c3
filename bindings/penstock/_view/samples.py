"""Histograms of document lengths and of tokens: of all of them where they are few, else of runs spread evenly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock import _native
from penstock._base.errors import InvalidArgumentError
from penstock._view.exhibit import NO_TOKENS, Exhibit
from penstock._view.records import is_cells
from penstock._view.rows import Wanted, numbers

_RUNS = 64
_RUN = 4096  # documents, or records
_MOST_CELLS = 512
_SHOWN = 16  # tokens with a bar of their own
_POINTS = 64  # of the curve of frequencies


def lengths(exhibit: Exhibit, wanted: Wanted) -> dict[str, Any]:
    """Lengths of the documents that are wanted, in bins that double: {bins: [{from, to, documents}], sampled, …}.

    Raises:
        InvalidArgumentError: the dataset has no documents with records, or `wanted` cannot be.
    """
    if wanted.chosen != Wanted():
        return exhibit.kept(("lengths", wanted.chosen), lambda: _chosen_lengths(exhibit, wanted))
    with exhibit.lock:
        if "lengths" not in exhibit.samples:
            exhibit.samples["lengths"] = _lengths(exhibit)
        found: dict[str, Any] = exhibit.samples["lengths"]
        return found


def tokens(exhibit: Exhibit) -> dict[str, Any]:
    """The most frequent tokens (of cells: genes), and how frequencies fall with rank.

    Raises:
        InvalidArgumentError: records have no field of ids.
    """
    with exhibit.lock:
        if "tokens" not in exhibit.samples:
            exhibit.samples["tokens"] = _tokens(exhibit)
        found: dict[str, Any] = exhibit.samples["tokens"]
        return found


def token(exhibit: Exhibit, number: int) -> dict[str, Any]:
    """One id: its bytes in hexadecimal digits, its text, and how often it occurs among those that were counted."""
    found = tokens(exhibit)
    ids, counts = exhibit.samples["counts"]
    at = int(np.searchsorted(ids, number))
    count = int(counts[at]) if at < len(ids) and int(ids[at]) == number else 0
    spelling = exhibit.decoder.spelling
    word = None if spelling is None else spelling.word(number)
    return {
        "id": number,
        "bytes": None if word is None else word.hex(" "),
        "special": spelling is not None and number in spelling.special,
        "count": count,
        "counted": found["total"],
        "all": found.get("records") == found["of"],
    }


def run_starts(count: int) -> npt.NDArray[np.int64]:
    """Where the runs begin that stand for `count` documents or records; evenly spread, the first and the last too."""
    if count <= _RUNS * _RUN:
        return np.arange(0, count, _RUN)
    return np.array([at * (count - _RUN) // (_RUNS - 1) for at in range(_RUNS)], np.int64)


def _lengths(exhibit: Exhibit) -> dict[str, Any]:
    dataset = exhibit.dataset
    dataset.documents(metadata=False)  # says why there are none
    count = dataset.spans
    native = dataset._native
    parts = [_native.document_lengths(native, int(at), min(_RUN, count - int(at))) for at in run_starts(count)]
    return _binned(np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, np.int64), count)


def _chosen_lengths(exhibit: Exhibit, wanted: Wanted) -> dict[str, Any]:
    chosen = numbers(exhibit, wanted.chosen)
    found = exhibit.lengths if isinstance(chosen, range) else exhibit.lengths[chosen]
    return _binned(found.astype(np.int64), len(chosen))


def _binned(found: npt.NDArray[np.int64], count: int) -> dict[str, Any]:
    if found.size == 0:
        return {"bins": [], "documents": count, "sampled": 0}
    # Bin k is [2^(k-1), 2^k); bin 0 has the empty documents.
    _, exponents = np.frexp(found.astype(np.float64))
    counts = np.bincount(np.where(found == 0, 0, exponents))
    low = int(np.flatnonzero(counts)[0])
    bins = [
        {"from": 0 if k == 0 else 1 << (k - 1), "to": 1 << k, "documents": int(counts[k])}
        for k in range(low, len(counts))
    ]
    return {
        "bins": bins,
        "documents": count,
        "sampled": int(found.size),
        "shortest": int(found.min()),
        "median": float(np.median(found)),
        "mean": float(found.mean()),
        "longest": int(found.max()),
    }


def _tokens(exhibit: Exhibit) -> dict[str, Any]:
    dataset, field = exhibit.dataset, exhibit.decoder.field
    of_cells = is_cells(dataset)
    if of_cells:
        field = "gene"
    if field is None:
        raise InvalidArgumentError(NO_TOKENS)
    if of_cells:
        indices = np.unique(np.linspace(0, dataset.spans - 1, min(dataset.spans, _MOST_CELLS)).astype(np.int64))
        sampled = {"cells": len(indices), "of": dataset.spans}
        values = dataset.documents(metadata=False).read(indices)[field] if len(indices) else np.zeros(0, np.int64)
    else:
        values = _token_sample(dataset, field)
        sampled = {"records": int(values.size), "of": dataset.records}
    ids, counts = np.unique(values, return_counts=True)
    exhibit.samples["counts"] = ids, counts
    order = np.argsort(-counts, kind="stable")
    most = [(int(ids[at]), int(counts[at])) for at in order[:_SHOWN]]
    ranks = np.unique(np.geomspace(1, len(ids), _POINTS).astype(np.int64)).tolist() if len(ids) else []
    return {
        **sampled,
        "cells_mode": of_cells,
        "total": int(values.size),
        "distinct": len(ids),
        "known": len(exhibit.names) if of_cells else (dataset.tokenizer or {}).get("vocabulary_size"),
        "most": [{"id": number, "name": _name(exhibit, number, of_cells), "count": count} for number, count in most],
        "ranks": [[rank, int(counts[order[rank - 1]])] for rank in ranks],
    }


def _token_sample(dataset: Any, field: str) -> npt.NDArray[Any]:
    count = dataset.records
    if count == 0:
        return np.zeros(0, np.int64)
    if count <= _RUNS * _RUN:
        whole: npt.NDArray[Any] = dataset.windows(count, metadata=False)[0][field]
        return whole
    starts = run_starts(count) // _RUN
    runs: npt.NDArray[Any] = dataset.windows(_RUN, metadata=False).read(np.unique(starts))[field]
    return runs.reshape(-1)


def _name(exhibit: Exhibit, number: int, of_cells: bool) -> str | None:
    if of_cells:
        return exhibit.names[number] if number < len(exhibit.names) else None
    if not exhibit.decoder.decodes:
        return None
    return exhibit.decoder.text({exhibit.decoder.field: np.array([number])})
