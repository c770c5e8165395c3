"""Compares what penstock gives with what the model has: every array, its type and shape, bit for bit."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import penstock
from arrays import Layout, batch_arrays
from cells import arrays_of_cells
from dimensions import CELLS, Case
from layouts import Shape, layout_of
from observations import Given
from positions import GlobalBatch


class Difference(AssertionError):
    """Something is not as the model has it."""


def check(same: bool, what: str, found: Any, expected: Any) -> None:
    if not same:
        raise Difference(f"{what}: {_short(found)}, the model has {_short(expected)}")


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)} {value.tolist()!r:.300}"
    return f"{value!r:.300}"


def _array(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value


def compare_batch(
    batch: penstock.Batch,
    expected: Mapping[str, Any],
    layout: Layout,
    framework: str,
    where: str,
    given: Sequence[Given],
) -> None:
    spans = batch.spans if layout.metadata is not False else None
    for name, value in expected.items():
        found = _found(batch, spans, name)
        if isinstance(value, np.ndarray):
            is_tensor = hasattr(found, "numpy")
            wanted = framework == "torch" and not name.startswith("spans.") and value.dtype.kind != "S"
            check(is_tensor == wanted, f"{where}: {name} is a tensor", is_tensor, wanted)
            found = _array(found)
            same = found.dtype == value.dtype and found.shape == value.shape and found.tobytes() == value.tobytes()
            check(same, f"{where}: {name}", found, value)
        else:
            check(found == value, f"{where}: {name}", found, value)
    _compare_records(batch, layout, given, where)
    for name in ("inputs", "labels"):
        if name not in expected:
            _check_refused(batch, name, where)


def _found(batch: penstock.Batch, spans: Any, name: str) -> Any:
    kind, _, rest = name.partition(".")
    if kind == "spans":
        if rest in ("raw", "metadata"):
            return [getattr(each, rest) for each in spans]
        return getattr(spans, rest)
    if kind == "columns":
        return batch.columns[rest]
    return batch[name] if name in batch else getattr(batch, name)


def _compare_records(batch: penstock.Batch, layout: Layout, given: Sequence[Given], where: str) -> None:
    if layout.slice is not None or layout.kind in ("padded", "opaque", *CELLS):
        return
    dtypes = {each.row.records.dtype for each in given}
    try:
        found = batch.records
    except penstock.InvalidArgumentError:
        return  # of sources whose records differ
    if len(dtypes) != 1:
        return
    for name in dtypes.pop().names or ():
        if layout.kind == "documents":
            value = np.concatenate([each.row.records[name] for each in given])
            part = found[name]
        else:
            value, part = np.stack([each.row.records[name] for each in given]), found[name][: len(given)]
        check(part.dtype == value.dtype and part.tobytes() == value.tobytes(), f"{where}: records {name}", part, value)


def _check_refused(batch: penstock.Batch, name: str, where: str) -> None:
    try:
        found = getattr(batch, name)
    except penstock.InvalidArgumentError:
        return
    raise Difference(f"{where}: {name} was given: {_short(_array(found))}; the model has none")


def compare_located(
    loader: penstock.Loader[Any],
    batch: GlobalBatch,
    shares: Sequence[Sequence[int]],
    picks: Sequence[Any],
    given: Sequence[Given],
    step: int | None,
) -> Any:
    """`locate` of a batch, and of the step that it is where it is one: all ranks' rows by position."""
    place = {number: (rank, row) for rank, share in enumerate(shares) for row, number in enumerate(share)}
    expected = [
        (position, *place[number], pick.source, pick.epoch, pick.index, each.row.first_record, _located(each))
        for number, (position, pick, each) in enumerate(zip(batch.positions, picks, given, strict=True))
    ]
    rows = loader.locate(position=batch.begin)
    found = [
        (
            each.position, each.rank, each.row, each.source, each.epoch, each.index, each.first_record,
            [(tuple(s.id), s.start, s.stop, s.offset, s.begins, s.ends) for s in each.spans],
        )
        for each in rows
    ]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        check(one == other, f"locate(position={batch.begin})", one, other)
    if step is not None:
        check(rows == loader.locate(step), f"locate({step})", loader.locate(step), rows)
    return rows


def _located(given: Given) -> list[tuple[Any, ...]]:
    return [
        (
            (span.place.shard, span.place.entry), span.start, span.stop,
            None if span.offset < 0 else span.offset, span.begins, span.ends,
        )
        for span in given.row.spans
    ]  # fmt: skip


def compare_view(job: Any, case: Case, chance: random.Random) -> None:
    """`view[i]`, `view.read` and `base_indices` of each source."""
    plain = {**case, "columns": "none", "types": "stored", "context": "none"}  # a view's own batches have none
    for number, source in enumerate(job.sources):
        indices = [chance.randrange(len(source.numbers)) for _ in range(3)]
        at = source.view.base_indices(np.array(indices))
        check(at.tolist() == source.numbers[indices].tolist(), "base_indices", at, source.numbers[indices])
        phase = 0
        if case["view"] == "phase":
            phase = int(source.view.read([0]).first_records[0]) - int(source.numbers[0]) * source.window
        given = [Given(source.row(each, source.window, phase), 0) for each in indices]
        layout = layout_of(plain, [source], Shape(1, "numpy", "auto", 1, None, None, 0))
        expected = batch_arrays(given, layout, 3, source.window)
        if layout.kind in CELLS:
            expected |= arrays_of_cells(given, layout.kind, 3)
        three = np.zeros(3, np.int64)
        expected |= {"indices": np.array(indices, np.int64), "epochs": three, "sources": three, "valid": three == 0}
        expected |= {"positions": three - 1, "first_records": np.array([each.row.first_record for each in given])}
        compare_batch(source.view.read(indices), expected, layout, "numpy", f"source {number}: view.read", given)
        one = source.view[indices[0]]
        for leaf in layout.leaves:
            if layout.kind != "padded":
                value, found = leaf.of(given[0].row.records), one[leaf.name]
                check(
                    np.array_equal(found, value) and found.dtype == value.dtype, f"view[i][{leaf.name}]", found, value
                )
