"""Columns of documents, packed rows and padded documents in a mixture: each row as its view alone gives it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _mixtures import WINDOW, loader, rows, rows_of_ranks, write_sources
from penstock import Mixture, Stage, columns
from penstock.cells import Ranked


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


@pytest.mark.parametrize("names", ["ab", "ba"])
@pytest.mark.parametrize("kind", ["packed", "windows", "documents", "padded"])
def test_a_batch_of_one_source_alone_is_read_by_its_own_records(tmp_path, kind, names):
    of_kind = {
        "packed": lambda dataset: dataset.packed(8),
        "windows": lambda dataset: dataset.windows(8, lookahead=1),
        "documents": lambda dataset: dataset.documents(),
        "padded": lambda dataset: dataset.documents().padded(8),
    }[kind]
    views = {}
    for name, token in (("a", "u4"), ("b", "u2")):
        with penstock.Writer(tmp_path / name, fields={"token": token}, metadata="boundaries") as writer:
            for number in range(9):
                writer.append(token=np.arange(1, 9) + 10 * number)
        views[name] = of_kind(penstock.open(tmp_path / name))
    stages = [Stage({"b": 1}), Stage({"a": 1}, at=8), Stage(at=16)]
    mixture = Mixture({name: views[name] for name in names}, stages, end=24)
    for batch in penstock.Loader(mixture, 4, framework="numpy", rank=0, world_size=1):
        assert batch["token"].dtype == np.uint32
        for row, index in zip(batch["token"].reshape(4, -1), batch.indices.tolist(), strict=True):
            assert row[:8].tolist() == [10 * index + number for number in range(1, 9)]


def unlike(folder: Path, one: str, other: str) -> Mixture:
    """Of two sources whose tokens are of these types, and which have byte strings."""
    views = {}
    for name, token in (("a", one), ("b", other)):
        with penstock.Writer(folder / name, fields={"token": token, "tag": "S3"}, metadata="boundaries") as writer:
            for number in range(9):
                writer.append(token=np.arange(8), tag=[name.encode() * (number % 4)] * 8)
        views[name] = penstock.open(folder / name).windows(8)
    return Mixture(views, [Stage()], end=12)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_byte_strings_of_sources_whose_records_differ_are_numpys(tmp_path, framework):
    mixture = unlike(tmp_path, "u2", "u4")
    for batch in penstock.Loader(mixture, 4, framework=framework, rank=0, world_size=1):
        assert isinstance(batch["tag"], np.ndarray) and batch["tag"].dtype == "S3"
        for row, source, index in zip(batch["tag"], batch.sources.tolist(), batch.indices.tolist(), strict=True):
            assert set(row.tolist()) == {mixture.names[source].encode() * (index % 4)}


def test_labels_of_sources_whose_types_differ_are_int64_unless_another_type_is_chosen(tmp_path):
    mixture = unlike(tmp_path, "u2", "i4")
    views = {name: view.dataset.windows(8, lookahead=1) for name, view in mixture.sources.items()}
    for dtype, field, labels in ((None, "i4", "i8"), ("i4", "i4", "i4"), ("u4", "u4", "i8")):
        batch = next(penstock.Loader(Mixture(views, [Stage()]), 4, dtype=dtype, framework="numpy"))
        assert (batch["token"].dtype, batch.inputs.dtype, batch.labels.dtype) == (field, labels, labels)


def test_a_type_is_chosen_where_none_holds_all_sources_values(tmp_path):
    mixture = unlike(tmp_path, "u8", "i8")
    with pytest.raises(penstock.InvalidArgumentError, match="say which by dtype="):
        penstock.Loader(mixture, 4, framework="numpy")
    for dtype in ("i8", {"token": "i8"}):
        assert next(penstock.Loader(mixture, 4, dtype=dtype, framework="numpy"))["token"].dtype == "i8"


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("kind", ["windows", "packed", "documents", "padded"])
def test_floats_of_sources_whose_types_differ_are_of_the_wider_one_in_whatever_order_sources_stand(
    tmp_path, kind, framework
):
    of_kind = {
        "windows": lambda dataset: dataset.windows(8),
        "packed": lambda dataset: dataset.packed(8),
        "documents": lambda dataset: dataset.documents(),
        "padded": lambda dataset: dataset.documents().padded(8),
    }[kind]
    views = {}
    for name, x in (("a", "f4"), ("b", "f8")):
        with penstock.Writer(tmp_path / name, fields={"token": "u2", "x": x}, metadata="boundaries") as writer:
            for number in range(9):
                writer.append(token=np.arange(8), x=((np.arange(8) + number) / 3).astype(x))
        views[name] = of_kind(penstock.open(tmp_path / name))
    for names in ("ab", "ba"):
        stages = [Stage({"b": 1}), Stage({"a": 1}, at=8), Stage(at=16)]
        mixture = Mixture({name: views[name] for name in names}, stages, end=24)
        for batch in penstock.Loader(mixture, 4, framework=framework, rank=0, world_size=1):
            values = np.asarray(batch["x"])
            assert values.dtype == np.float64
            for row, source, index in zip(values.reshape(4, -1), batch.sources, batch.indices, strict=True):
                stored = ((np.arange(8) + int(index)) / 3).astype("f4" if names[int(source)] == "a" else "f8")
                assert row[:8].tolist() == stored.tolist()


TABLES = {"a": ["CD4", "CD8A", "GNLY", "NKG7"], "b": ["NKG7", "GNLY", "MS4A1", "CD4", "CD8A"]}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, penstock.Dataset]:
    """Datasets that number their genes otherwise; each gene has one count in all cells."""
    folder = tmp_path_factory.mktemp("tables")
    counts = {"CD4": 1, "CD8A": 2, "GNLY": 3, "NKG7": 4, "MS4A1": 5}
    for name, genes in TABLES.items():
        with penstock.Writer(folder / name, {"gene": "u2", "count": "u1"}, "boundaries", features=genes) as writer:
            for _ in range(8):
                writer.append(gene=np.arange(len(genes)), count=[counts[gene] for gene in genes])
    return {name: penstock.open(folder / name) for name in TABLES}


@pytest.mark.parametrize("form", ["dense", "csr", "ranked"])
def test_cells_of_the_same_genes_are_sources_whatever_numbers_these_have(tables, form):
    ranked = Ranked(length=2, tokens={"GNLY": 7, "CD4": 9})
    views = {
        name: each.cells(ranked if form == "ranked" else form, genes=["GNLY", "CD4"]) for name, each in tables.items()
    }
    array, expected = {"dense": ("x", [3, 1]), "csr": ("count", [3, 1]), "ranked": ("input_ids", [7, 9])}[form]
    for batch in penstock.Loader(Mixture(views, [Stage()], end=16), 8, framework="numpy", rank=0, world_size=1):
        assert set(batch.sources.tolist()) == {0, 1}
        assert batch[array].reshape(8, 2).tolist() == [expected] * 8


def test_cells_of_other_genes_are_refused_by_name(tables, tmp_path):
    with penstock.Writer(tmp_path / "many", {"gene": "u2", "count": "u1"}, "boundaries") as writer:
        writer.append(gene=[0, 1100], count=[1, 1])
    many, numbers = penstock.open(tmp_path / "many"), np.arange(1200)  # of so many NumPy prints the ends alone
    turned = np.concatenate([numbers[:500], numbers[500:700][::-1], numbers[700:]])
    a, b = tables.values()
    cases = {
        "gene 0 is 'CD4' in 'a', 'NKG7' in 'b': give both views genes=": (
            a.cells(), b.cells(genes=["NKG7", "GNLY", "MS4A1", "CD4"])
        ),
        "gene 1 is 'CD8A' in 'a', 'GNLY' in 'b'": (a.cells(genes=["CD4", "CD8A"]), b.cells(genes=["CD4", "GNLY"])),
        "do not both name them": (a.cells(genes=[0, 1]), many.cells(genes=[0, 1])),
        "each in its own way": (many.cells(genes=numbers), many.cells(genes=turned)),
        "they must be alike": (a.cells(), b.cells()),
        "one of 'a' and 'b' is of cells": (a.cells(), b.documents(metadata=False)),
        "'a' is cells.*'b' cells": tuple(many.cells(Ranked(tokens=each), genes=numbers) for each in (numbers, turned)),
    }  # fmt: skip
    for words, (one, other) in cases.items():
        with pytest.raises(penstock.InvalidArgumentError, match=words) as caught:
            Mixture({"a": one, "b": other}, [Stage()])
        assert len(str(caught.value)) <= 500
