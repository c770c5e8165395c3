"""Columns of documents, packed rows and padded documents in a mixture: each row as its view alone gives it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, loader, rows, rows_of_ranks, write_sources
from penstock import Mixture, Stage, columns


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, penstock.Dataset]:
    return write_sources(tmp_path_factory.mktemp("views"))


def parity(metadata: Any) -> int:
    return int(metadata["number"]) % 3


def answers(metadata: Any) -> list[list[int]]:
    return [[metadata["number"] % 7, 15], [18, 40]]


COLUMNS: list[Any] = [
    "cu_seqlens",
    "position_ids",
    "document_ids",
    columns.LossMask(spans=answers),
    columns.Labels(cross_document=False),
    columns.PerSpan("parity", parity, "i4", fill=-7),
]
ARRAYS = ("inputs", "labels", "position_ids", "document_ids", "loss_mask")


def alone(view: Any, index: int, columns: list[Any]) -> penstock.Batch:
    """One row of a view by a loader of its own."""
    with penstock.Loader(
        view[index : index + 1], 1, seed=0, epochs=1, columns=columns, framework="numpy", rank=0, world_size=1
    ) as single:
        return next(single)


def sequences(batch: penstock.Batch, width: int) -> list[list[int]]:
    """Lengths of the sequences of each row."""
    lengths = np.diff(np.unique(np.asarray(batch.cu_seqlens))).tolist()
    found: list[list[int]] = [[]]
    for length in lengths:
        if sum(found[-1]) == width:
            found.append([])
        found[-1].append(length)
    return found


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_columns_of_windows_are_those_of_each_source(datasets, framework):
    views = {name: each.windows(WINDOW, lookahead=1) for name, each in datasets.items()}
    stages = [Stage({"web": 2, "code": 1}, window=16), Stage(at=200)]
    mixture = Mixture(views, stages, end=290, group=8)
    checked = 0
    run = loader(mixture, columns=COLUMNS, framework=framework)
    for batch in itertools.chain(itertools.islice(run, 4), itertools.islice(run, 14, None)):
        width = batch.inputs.shape[1]
        lengths = sequences(batch, width)
        for row, (source, _, index) in enumerate(rows(batch)):
            single = alone(datasets[mixture.names[source]].windows(width, lookahead=1), index, COLUMNS)
            for name in ARRAYS:
                np.testing.assert_array_equal(np.asarray(getattr(batch, name)[row]), getattr(single, name)[0], name)
            np.testing.assert_array_equal(np.asarray(batch.columns["parity"][row]), single.columns["parity"][0])
            assert lengths[row] == sequences(single, width)[0]
            checked += 1
        assert int(batch.max_seqlen) == max(length for row in lengths for length in row)
        for row in np.flatnonzero(~np.asarray(batch.valid)):
            assert (np.asarray(batch.columns["parity"][row]) == -7).all() and not np.asarray(batch.loss_mask[row]).any()
            assert (np.asarray(batch.labels[row]) == -100).all() and (np.asarray(batch.document_ids[row]) == -1).all()
    assert checked > 120


def test_packed_rows_are_sources(datasets):
    views = {name: each.packed(WINDOW * 2) for name, each in datasets.items()}
    mixture = Mixture(views, [Stage({"web": 2, "code": 1}), Stage(at=60)], caps={"books": 8}, end=150)
    wanted = ["cu_seqlens", "position_ids", "document_ids", columns.PerSpan("parity", parity, "i4", fill=-7)]
    whole = rows_of_ranks(mixture, 1)
    assert sum(map(len, whole)) == 150
    for batch in loader(mixture, columns=wanted):
        for row, (source, _, index) in enumerate(rows(batch)):
            view = views[mixture.names[source]]
            read = view.read([index])
            single = alone(view, index, wanted)
            for name in ("inputs", "labels"):
                np.testing.assert_array_equal(getattr(batch, name)[row], getattr(read, name)[0], name)
            for name in ("position_ids", "document_ids"):
                np.testing.assert_array_equal(getattr(batch, name)[row], getattr(single, name)[0], name)
            np.testing.assert_array_equal(batch.columns["parity"][row], single.columns["parity"][0])
            assert {span.metadata["source"] for span in batch.spans.of_row(row)} == {mixture.names[source]}
        assert (batch.first_records == -1).all()
    job = penstock.Job(mixture, global_batch_size=12, seed=3)
    for at in (0, 12, 55, 60, 61, 144):
        flat = list(itertools.chain(*whole))[at:]
        for ranks in (1, 2, 3):
            again = rows_of_ranks(mixture, ranks, job.state_dict(at))
            assert list(itertools.chain(*again)) == flat
    with pytest.raises(penstock.InvalidArgumentError, match="window of 'web' is 128, of 'code' 64"):
        Mixture({"web": views["web"], "code": datasets["code"].packed(WINDOW)}, [Stage()])


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("to", ["longest", 48])
def test_padded_documents_are_sources(datasets, side, to):
    views = {name: each.documents().padded(to, multiple_of=8, side=side, value=5) for name, each in datasets.items()}
    mixture = Mixture(views, [Stage({"web": 2, "code": 1}), Stage(at=60)], end=120)
    whole = rows_of_ranks(mixture, 1)
    for batch in loader(mixture):
        length = batch.inputs.shape[1]
        read = [views[mixture.names[source]].read([index]) for source, _, index in rows(batch)]
        assert length == (48 if to == 48 else -(-max(int(each.lengths[0]) for each in read) // 8) * 8)
        for row, single in enumerate(read):
            count = int(single.lengths[0])
            assert batch.lengths[row] == count
            part = slice(length - count, length) if side == "left" else slice(0, count)
            own = single.inputs.shape[1]
            theirs = slice(own - count, own) if side == "left" else slice(0, count)
            np.testing.assert_array_equal(batch.inputs[row][part], single.inputs[0][theirs])
            np.testing.assert_array_equal(batch.labels[row][part], single.labels[0][theirs])
            assert int(batch.attention_mask[row].sum()) == count and batch.attention_mask[row][part].all()
            rest = np.delete(batch.inputs[row], np.arange(length)[part])
            assert (rest == 5).all()
    job = penstock.Job(mixture, global_batch_size=12, seed=3)
    for at in (0, 13, 60, 96):
        flat = list(itertools.chain(*whole))[at:]
        for ranks in (1, 2, 4):
            assert list(itertools.chain(*rows_of_ranks(mixture, ranks, job.state_dict(at)))) == flat


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_padding_that_no_source_holds_makes_the_field_int64(datasets, framework):
    views = {name: each.documents().padded(8, value=-1) for name, each in datasets.items()}
    batch = next(penstock.Loader(Mixture(views, [Stage()]), 12, framework=framework))
    values = np.asarray(batch["token"])
    assert values.dtype == np.int64 and (values[~np.asarray(batch.attention_mask).astype(bool)] == -1).all()
