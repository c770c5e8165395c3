"""Spans as arrays and as objects; metadata= of a view says what is read, and is no part of the job."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, NUMBERS, array, compact, ids, opaque, token_stream

WITH_ENTRIES = [mode for mode in MODES if mode not in ("raw", "stream")]


def views(folder: Path, mode: str) -> dict[Any, penstock.View]:
    """The same view with each `metadata`."""
    view = MODES[mode](folder)
    kind, (dataset, _, *rest) = view.__reduce__()
    return {metadata: kind(dataset, metadata, *rest) for metadata in (True, "spans", False)}


def make(view: penstock.View, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, **{"batch_size": 4, "seed": 1, "framework": "numpy", "epochs": 1, **options})


def places(spans: Any) -> list[tuple[Any, ...]]:
    return [(s.row, s.start, s.stop, s.begins, s.ends, s.offset, tuple(s.id)) for s in spans]


# --- arrays


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


def test_arrays_are_made_once_and_outlive_the_batch(tmp_path):
    spans = compact(tmp_path, LENGTHS)[0].windows(7).read([2, 0]).spans
    assert spans.rows is spans.rows
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


# --- metadata=


@pytest.mark.parametrize("mode", MODES)
def test_records_are_the_same_and_spans_lack_what_was_not_asked_for(tmp_path, mode):
    given = views(tmp_path, mode)
    batches = {metadata: list(make(view)) for metadata, view in given.items()}
    for full, places_only, bare in zip(*(batches[metadata] for metadata in given), strict=True):
        for batch in (places_only, bare):
            assert batch.indices.tolist() == full.indices.tolist()
            assert all((array(batch[name]) == array(full[name])).all() for name in full)
        assert places(places_only.spans) == places(full.spans)
        assert places_only.spans.ids.tolist() == full.spans.ids.tolist()
        for span in places_only.spans:
            with pytest.raises(penstock.InvalidArgumentError, match=r'metadata="spans".*metadata=True'):
                span.raw  # noqa: B018
            with pytest.raises(penstock.InvalidArgumentError, match=r'metadata="spans".*metadata=True'):
                span.metadata  # noqa: B018
        with pytest.raises(penstock.InvalidArgumentError, match=r"metadata=False"):
            bare.spans  # noqa: B018


@pytest.mark.parametrize("mode", WITH_ENTRIES)
def test_observations_and_bulk_reads_take_it_too(tmp_path, mode):
    given = views(tmp_path, mode)
    assert places(given["spans"].read([1, 0]).spans) == places(given[True].read([1, 0]).spans)
    assert places(given["spans"][1].spans) == places(given[True][1].spans)
    with pytest.raises(penstock.InvalidArgumentError, match="metadata=False"):
        given[False].read([0]).spans  # noqa: B018
    row = given[False][0]
    assert all((row[name] == given[True][0][name]).all() for name in row) and "without spans" in repr(row)
    with pytest.raises(penstock.InvalidArgumentError, match="metadata=False"):
        row.metadata  # noqa: B018


# A file that is gone says whether it is read; none of them was opened before.
def test_entries_are_not_read_for_spans_alone(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    numbered, _ = ids(tmp_path, NUMBERS)
    for file in tmp_path.rglob("metadata.bin"):
        file.unlink()
    for each in (dataset, numbered):
        assert len(list(make(each.windows(7, metadata="spans")))) > 0
        with pytest.raises(penstock.NotFoundError):
            list(make(each.windows(7)))
    assert len(list(make(dataset.documents(metadata="spans")))) > 0
    with pytest.raises(penstock.NotFoundError):
        list(make(dataset.documents()))


def test_nothing_of_the_metadata_is_read_for_records_alone(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    numbered, _ = ids(tmp_path, NUMBERS)
    for file in tmp_path.rglob("metadata.*"):
        file.unlink()
    for each in (dataset, numbered):
        assert len(list(make(each.windows(7, metadata=False)))) > 0
        with pytest.raises(penstock.NotFoundError):
            list(make(each.windows(7)))
    with pytest.raises(penstock.NotFoundError):  # where a document lies is in the index
        list(make(dataset.documents(metadata=False)))


def test_opaque_documents_and_token_streams_take_it(tmp_path):
    documents = opaque(tmp_path, 5)[0].documents(metadata="spans").read([3, 1]).spans
    assert documents.ids.tolist() == [[0, 3], [0, 1]]
    assert len(token_stream(tmp_path, 50)[0].windows(5, metadata="spans").read([0]).spans) == 0


@pytest.mark.parametrize("metadata", [None, 1, 0, "entries", "True", 1.0])
def test_another_value_is_refused(tmp_path, metadata):
    dataset, _ = compact(tmp_path, LENGTHS)
    for make_view in (lambda: dataset.windows(4, metadata=metadata), lambda: dataset.documents(metadata=metadata)):
        with pytest.raises(penstock.InvalidArgumentError, match="metadata="):
            make_view()


@pytest.mark.parametrize("mode", WITH_ENTRIES)
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


@pytest.mark.parametrize("metadata", [True, "spans", False])
def test_views_pickle_with_it_and_show_it(tmp_path, metadata):
    for view in (views(tmp_path / kind, kind)[metadata] for kind in ("compact", "documents")):
        again = pickle.loads(pickle.dumps(view))
        assert again.metadata is metadata or again.metadata == metadata
        assert repr(again) == repr(view) and ("metadata" in repr(view)) == (metadata is not True)
