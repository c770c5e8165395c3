"""Spans as arrays and as objects; metadata= of a view says what is read, and is no part of the job."""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, NUMBERS, array, compact, ids
from _refused import refused


def views(folder: Path, mode: str) -> dict[Any, penstock.View]:
    """The same view with each `metadata`."""
    view = MODES[mode](folder)
    kind, (dataset, _, *rest) = view.__reduce__()
    return {metadata: kind(dataset, metadata, *rest) for metadata in (True, "spans", False)}


def make(view: penstock.View, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, **{"batch_size": 4, "seed": 1, "framework": "numpy", "epochs": 1, **options})


def places(spans: Any) -> list[tuple[Any, ...]]:
    return [(s.row, s.start, s.stop, s.begins, s.ends, s.offset, tuple(s.id)) for s in spans]


@pytest.mark.parametrize("mode", MODES)
def test_arrays_and_objects_say_the_same(tmp_path, mode):
    with make(MODES[mode](tmp_path)) as loader:
        for batch in loader:
            spans = batch.spans
            n = len(spans)
            for name in ("rows", "starts", "stops", "offsets", "source"):
                assert getattr(spans, name).dtype == np.int64 and getattr(spans, name).shape == (n,), name
            assert spans.begins.dtype == spans.ends.dtype == np.bool_ and spans.begins.shape == spans.ends.shape == (n,)
            assert spans.ids.dtype == np.int64 and spans.ids.shape == (n, 2)
            assert not spans.source.any()
            offsets = [None if offset < 0 else offset for offset in spans.offsets.tolist()]
            columns = (spans.rows, spans.starts, spans.stops, spans.begins, spans.ends)
            given = zip(*(column.tolist() for column in columns), offsets, map(tuple, spans.ids.tolist()), strict=True)
            assert list(given) == places(spans)


def test_arrays_are_made_once_and_outlive_the_batch_and_spans_are_a_sequence(tmp_path):
    spans = compact(tmp_path, LENGTHS)[0].windows(7).read([2, 0]).spans
    assert spans.rows is spans.rows
    assert places(spans[:2]) == places(spans)[:2] and places([spans[-1]]) == places(spans)[-1:]
    with pytest.raises(IndexError):
        spans[len(spans)]
    stops = spans.stops
    expected = [span.stop for span in spans]
    del spans
    assert stops.tolist() == expected


def test_of_row_gives_the_rows_spans_and_nothing_of_others(tmp_path):
    with make(compact(tmp_path, LENGTHS)[0].windows(7), batch_size=8) as loader:
        for batch in loader:
            for row in range(-1, 10):
                assert places(batch.spans.of_row(row)) == [each for each in places(batch.spans) if each[0] == row]
            assert places(batch.spans.of_row(np.int64(0))) == places(batch.spans.of_row(0))


@pytest.mark.parametrize("mode", MODES)
def test_records_are_the_same_and_spans_lack_what_was_not_asked_for(tmp_path, mode):
    given = views(tmp_path, mode)
    full, places_only, bare = (view.read([1, 0]) for view in given.values())
    for batch in (places_only, bare):
        assert all((array(batch[name]) == array(full[name])).all() for name in full)
    for some, all_of in ((places_only.spans, full.spans), (given["spans"][1].spans, given[True][1].spans)):
        assert places(some) == places(all_of)
        for span in some:
            for name in ("raw", "metadata"):
                refused(r'metadata="spans".*metadata=True', getattr, span, name)
    row = given[False][0]
    assert all((row[name] == given[True][0][name]).all() for name in row) and "without spans" in repr(row)
    for of, name in ((bare, "spans"), (row, "spans"), (row, "metadata")):
        refused(r"metadata=False", getattr, of, name)
    for metadata, view in given.items():
        again = pickle.loads(pickle.dumps(view))
        assert again.metadata is metadata or again.metadata == metadata
        assert repr(again) == repr(view) and ("metadata" in repr(view)) == (metadata is not True)


# A file that is gone says whether it is read; none of them was opened before.
def test_only_what_was_asked_for_is_read(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    numbered, _ = ids(tmp_path, NUMBERS)
    makers = (dataset.documents, partial(dataset.windows, 7), partial(numbered.windows, 7))
    for files, metadata, kinds in (("metadata.bin", "spans", makers), ("metadata.*", False, makers[1:])):
        for file in tmp_path.rglob(files):
            file.unlink()
        for view in kinds:
            assert len(list(make(view(metadata=metadata)))) > 0
            with pytest.raises(penstock.NotFoundError):
                list(make(view()))
    with pytest.raises(penstock.NotFoundError):  # where a document lies is in the index
        list(make(dataset.documents(metadata=False)))


def test_another_value_is_refused(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    for metadata in (None, 1, 0, "entries", "True", 1.0):
        for view in (partial(dataset.windows, 4), dataset.documents):
            refused("metadata=", view, metadata=metadata)


@pytest.mark.parametrize("mode", ["compact", "ids", "documents", "opaque", "packed"])
def test_a_job_goes_on_with_another_metadata(tmp_path, mode):
    given = views(tmp_path, mode)
    with make(given[True]) as full:
        next(full)
        state = full.state_dict()
        expected = next(full).indices.tolist()
    for view in given.values():
        with make(view) as loader:
            assert loader.state_dict()["job"] == state["job"]
            loader.load_state_dict(state)
            assert next(loader).indices.tolist() == expected
