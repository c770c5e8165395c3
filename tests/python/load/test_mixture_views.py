"""Columns of documents, packed rows and padded documents in a mixture: each row as its view alone gives it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import penstock
import pytest
from _mixtures import write_sources
from penstock import Mixture, Stage
from penstock.cells import Ranked


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, penstock.Dataset]:
    return write_sources(tmp_path_factory.mktemp("views"))


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_padding_that_no_source_holds_makes_the_field_int64(datasets, framework):
    views = {name: each.documents().padded(8, value=-1) for name, each in datasets.items()}
    batch = next(penstock.Loader(Mixture(views, [Stage()]), 12, framework=framework))
    values = np.asarray(batch["token"])
    assert values.dtype == np.int64 and (values[~np.asarray(batch.attention_mask).astype(bool)] == -1).all()


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


@pytest.mark.parametrize("kind", ["windows", "documents"])
def test_floats_of_sources_whose_types_differ_are_of_the_wider_one_in_whatever_order_sources_stand(tmp_path, kind):
    views = {}
    for name, x in (("a", "f4"), ("b", "f8")):
        with penstock.Writer(tmp_path / name, fields={"token": "u2", "x": x}, metadata="boundaries") as writer:
            for number in range(9):
                writer.append(token=np.arange(8), x=((np.arange(8) + number) / 3).astype(x))
        dataset = penstock.open(tmp_path / name)
        views[name] = dataset.windows(8) if kind == "windows" else dataset.documents()
    for names in ("ab", "ba"):
        stages = [Stage({"b": 1}), Stage({"a": 1}, at=8), Stage(at=16)]
        mixture = Mixture({name: views[name] for name in names}, stages, end=24)
        for batch in penstock.Loader(mixture, 4, framework="torch", rank=0, world_size=1):
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
