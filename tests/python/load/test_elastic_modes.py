"""A run that changes its number of ranks goes on with the same rows, in every mode: content and metadata."""

from __future__ import annotations

from typing import Any

import penstock
import pytest
from _datasets import MODES


def row_of(batch: penstock.Batch, i: int) -> tuple[Any, ...]:
    """All that a consumer can see of row i."""
    try:
        records = batch.records
    except penstock.InvalidArgumentError:  # opaque documents
        content = b""
    else:
        ragged = records.ndim == 1
        content = (records[batch.offsets[i] : batch.offsets[i + 1]] if ragged else records[i]).tobytes()
    spans = [(span.start, span.stop, span.offset, span.id, str(span.metadata)) for span in batch.spans.of_row(i)]
    return int(batch.indices[i]), int(batch.epochs[i]), content, spans


def run(view: penstock.View, ranks: int, state: dict[str, Any] | None, steps: int | None) -> tuple[list[Any], Any]:
    """Rows by position of the next `steps` global batches (all that are left if None), and the state after them."""
    loaders = [
        penstock.Loader(
            view, global_batch_size=12, epochs=3, seed=5, rank=r, world_size=ranks, framework="numpy", threads=1
        )
        for r in range(ranks)
    ]
    if state is not None:
        for loader in loaders:
            loader.load_state_dict(state)
    rows: list[Any] = []
    while steps is None or steps > 0:
        batches = [next(loader, None) for loader in loaders]
        if batches[0] is None:
            break
        given = [row_of(batches[i % ranks], i // ranks) for i in range(12)]
        rows += [row for row in given if row[0] >= 0]
        steps = None if steps is None else steps - 1
    states = [loader.state_dict() for loader in loaders]
    assert all(each == states[0] for each in states)
    for loader in loaders:
        loader.close()
    return rows, states[0]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("before", "after"), [(4, 3), (1, 6), (3, 2)])
def test_rows_are_the_same_on_another_number_of_ranks(tmp_path, mode, before, after):
    view = MODES[mode](tmp_path)
    whole, _ = run(view, 1, None, None)
    assert len(whole) == 3 * len(view)
    first, state = run(view, before, None, 2)
    rest, _ = run(view, after, state, None)
    assert first + rest == whole
