"""Cells as arrays for training, against plain NumPy models, SciPy, torch and scanpy.

The forms csr, dense and ranked in every order, on any ranks, in parts and with columns: tests/model has them.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _cells import Array, Cells, binned, normalized, ranked, write_cells
from _refused import refused
from penstock.cells import Binned, Csr, Dense, Ranked

scipy_sparse = pytest.importorskip("scipy.sparse")
torch = pytest.importorskip("torch")

GENES = 200
TYPES = [("u2", "u1"), ("u2", "u2"), ("u4", "u4"), ("u2", "f4"), ("u4", "f8"), ("u1", "u2"), ("u2", "i4")]
OF_TYPES = pytest.mark.parametrize("types", TYPES, ids="-".join)
SHUFFLED = np.random.default_rng(9).permutation(GENES)[:70]
SOME_TOKENS = np.where(np.random.default_rng(6).random(GENES) < 0.2, -1, np.random.default_rng(7).permutation(GENES))
BINNED = {"top": Binned(7, 50, "top", cls=1), "by chance": Binned(7, 50, "random", cls=1)}


@pytest.fixture(scope="module")
def cells_of(tmp_path_factory) -> Callable[..., Cells]:
    """Cells of such types, written once."""
    made: dict[Any, Cells] = {}

    def of(*types: str) -> Cells:
        if types not in made:
            made[types] = write_cells(tmp_path_factory.mktemp("cells"), genes=GENES, types=types)
        return made[types]

    return of


@pytest.fixture(scope="module")
def cells(cells_of) -> Cells:
    return cells_of("u2", "u2")


def arrays_of(batch: penstock.Batch) -> dict[str, Array]:
    return {name: np.array(batch[name]) for name in batch} | {"indices": np.array(batch.indices)}


def assert_same(ours: list[dict[str, Array]], expected: list[dict[str, Array]]) -> None:
    assert len(ours) == len(expected) > 0
    for left, right in zip(ours, expected, strict=True):
        assert left.keys() == right.keys()
        for name in left:
            assert left[name].dtype == right[name].dtype
            np.testing.assert_array_equal(left[name], right[name], err_msg=name)


@OF_TYPES
def test_csr_and_dense_are_the_matrix(cells_of, types):
    cells = cells_of(*types)
    selections = (range(GENES), range(150), np.arange(20, 90), SHUFFLED)
    forms = [Csr(), Csr("float64", "int64"), Csr("float64"), Csr(index="int64"), Dense("float32"), Dense(torch.float64)]
    for number, form in enumerate(forms):
        for at, (total, log) in enumerate(((None, False), (1e4, True), (None, True), (50.0, False))):
            genes = selections[(number + at) % 4]
            expected = normalized(cells.x, total, log)[:, np.asarray(genes)]
            batch = cells.dataset.cells(form, genes=genes, normalize=total, log1p=log).read(range(83))
            exact = not log and types[1][0] != "f"
            if isinstance(form, Dense):
                assert_close(batch["x"], expected, exact)
                continue
            assert isinstance(batch.csr, scipy_sparse.csr_matrix)
            assert batch.csr.dtype == batch["count"].dtype == form.dtype
            assert batch.offsets.dtype == batch["gene"].dtype == batch.csr.indices.dtype == form.index
            batch.csr.check_format(full_check=True)
            assert batch.csr.has_canonical_format
            assert_close(batch.csr.toarray(), expected, exact)
    assert cells.dataset.cells("dense", genes=range(GENES))[7]["x"].shape == (GENES,)


def assert_close(found: Array, expected: Array, exact: bool) -> None:
    """Values are made in float64 and rounded once."""
    if exact:
        np.testing.assert_array_equal(found, expected.astype(found.dtype))
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-14 if found.dtype == np.float64 else 1e-7)


@pytest.mark.parametrize(("dtype", "total"), [("float32", None), ("float64", 100.0)])
def test_wide_rows_are_dense_too(tmp_path, dtype, total):
    # So wide that a row is made in the thread's memory, which an error leaves clean.
    width = 30_000
    random = np.random.default_rng(4)
    x = np.zeros((40, width))
    for row in x:
        row[random.choice(width, 500, replace=False)] = random.integers(1, 99, 500)
    with penstock.Writer(tmp_path / "d", {"gene": "u2", "count": "u1"}, "boundaries") as writer:
        for number, row in enumerate(x):
            genes = np.flatnonzero(row)
            genes = np.append(genes, genes[-1:] if number == 20 else genes[:0])
            writer.append(gene=genes.astype("u2"), count=row[genes].astype("u1"))
    selected = random.permutation(width)[:20_000]
    for genes in (range(width), selected):
        view = penstock.open(tmp_path / "d").cells(Dense(dtype), genes=genes, normalize=total)
        for _ in range(2):
            refused(r"cell 20 .*twice", view.read, [19, 20, 21])
            rows = [i for i in range(40) if i != 20]
            expected = normalized(x, total, False)[:, np.asarray(genes)][rows]
            np.testing.assert_allclose(view.read(rows)["x"], expected, rtol=1e-7)


@pytest.mark.parametrize("types", [("u2", "u1"), ("u2", "f4")], ids="-".join)
def test_normalize_and_log1p_are_scanpys(cells_of, types):
    """Takes seconds, as importing scanpy does."""
    scanpy = pytest.importorskip("scanpy")
    anndata = pytest.importorskip("anndata")
    cells = cells_of(*types)
    theirs = anndata.AnnData(scipy_sparse.csr_matrix(cells.x))
    scanpy.pp.normalize_total(theirs, target_sum=1e4)
    ours = {"genes": range(GENES), "normalize": 1e4}
    for log1p in (False, True):
        if log1p:
            scanpy.pp.log1p(theirs)
        batch = cells.dataset.cells(Csr("float64"), log1p=log1p, **ours).read(range(83))
        np.testing.assert_allclose(batch.csr.toarray(), theirs.X.toarray(), rtol=1e-14)


@pytest.mark.parametrize("framework", ["torch", "numpy"])
def test_csr_is_over_the_memory_of_its_arrays_and_padding_rows_are_empty(cells, framework):
    view = cells.dataset.cells("csr", genes=SHUFFLED)
    for batch in penstock.Loader(view, batch_size=9, epochs=1, framework=framework):
        ours = (batch.offsets, batch["gene"], batch["count"])
        if framework == "torch":
            parts = (batch.csr.crow_indices(), batch.csr.col_indices(), batch.csr.values())
            assert batch.csr.layout == torch.sparse_csr
            assert all(
                one.data_ptr() == part.data_ptr() or not one.numel() for one, part in zip(ours, parts, strict=True)
            )
            found = batch.csr.to_dense().numpy()
        else:
            parts = (batch.csr.indptr, batch.csr.indices, batch.csr.data)
            assert all(np.shares_memory(one, part) for one, part in zip(ours, parts, strict=True))
            found = batch.csr.toarray()
        indices = np.asarray(batch.indices)
        expected = np.where(indices[:, None] < 0, 0, cells.x[indices][:, SHUFFLED])
        np.testing.assert_array_equal(found, expected)
    assert (indices < 0).any()


def test_without_the_number_of_genes_there_is_all_but_the_matrix(cells):
    batch = cells.dataset.cells().read(range(5))
    np.testing.assert_array_equal(batch["gene"], np.concatenate(cells.genes[:5]))
    refused(r"genes=range\(62710\)", getattr, batch, "csr")
    refused("Dense: how many genes", cells.dataset.cells, "dense")
    refused("no compressed sparse rows", lambda: cells.dataset.documents().read([0]).csr)


@OF_TYPES
def test_ranked_is_geneformers_sentence(cells_of, types):
    cells = cells_of(*types)
    random = np.random.default_rng(6)
    for length, tokens, medians, cls, eos, pad, genes in [
        (2048, None, None, None, None, 0, None),
        (30, None, random.lognormal(0, 1, GENES), 2, 3, 0, None),
        (90, SOME_TOKENS, random.lognormal(0, 1, GENES), 7, None, -1, None),
        (10, SOME_TOKENS, random.choice([1.0, 2.0, 4.0], GENES), None, 5, 9, None),  # many ties
        (300, None, np.where(np.arange(GENES) % 3 == 0, np.nan, 2.0), None, None, 0, None),  # left out where NaN
        (2, None, None, 2, None, 0, None),
        (64, np.arange(500, 570), random.choice([0.5, 1.0], 70), None, None, 0, SHUFFLED),  # numbered anew
    ]:
        batch = cells.dataset.cells(Ranked(length, tokens, medians, cls, eos, pad), genes=genes).read(range(83))
        assert batch["input_ids"].dtype == np.int64 and batch["attention_mask"].dtype == np.bool_
        if medians is not None and np.isnan(medians).any():
            tokens = np.where(np.isnan(medians), -1, np.arange(GENES) + 4)
        for row, x in enumerate(cells.x if genes is None else cells.x[:, genes]):
            ids, mask = ranked(x, length, tokens, medians, cls, eos, pad)
            np.testing.assert_array_equal(batch["input_ids"][row], ids)
            np.testing.assert_array_equal(batch["attention_mask"][row], mask)


@OF_TYPES
def test_binned_is_numpys_quantile_and_digitize(cells_of, types):
    cells = cells_of(*types)
    for bins, length, choose, tokens, cls, total, log in [
        (51, 1200, "top", None, None, None, False),
        (5, 20, "top", SOME_TOKENS, 3, None, False),
        (5, 20, "first", SOME_TOKENS, 3, None, False),
        (2, 40, "first", None, None, 1e4, True),
        (20, 33, "top", SOME_TOKENS, None, 1e3, False),
        (101, 1, "first", None, None, None, False),
    ]:
        values = {"normalize": total, "log1p": log}
        batch = cells.dataset.cells(Binned(bins, length, choose, tokens, cls, pad=-7), **values).read(range(83))
        dense = cells.dataset.cells(Dense("float64"), genes=range(GENES), **values).read(range(83))["x"]
        for row, x in enumerate(dense):
            wanted = binned(x, bins, length, choose, tokens, cls, -7)
            for name, expected in zip(("input_ids", "values", "attention_mask"), wanted, strict=True):
                np.testing.assert_array_equal(batch[name][row], expected, err_msg=f"{name} of {row}")


def test_chance_is_a_function_of_seed_epoch_and_cell_and_fair(cells):
    view = cells.dataset.cells(Binned(5, 20, "random", cls=1))
    full = binned_rows(cells.dataset.cells(Binned(5, 400, "first", cls=1)).read(range(83)))

    def drawn(view: penstock.View, seed: int, **options: Any) -> dict[tuple[int, int], list[tuple[int, int]]]:
        found = {}
        options = {"batch_size": 7, "epochs": 3, "framework": "numpy", **options}
        with penstock.Loader(view, seed=seed, **options) as loader:
            for batch in loader:
                rows = binned_rows(batch)
                base = view.base_indices(batch.indices)
                found |= {(int(batch.epochs[row]), int(base[row])): rows[row] for row in np.flatnonzero(batch.valid)}
        return found

    found = drawn(view, 5)
    assert len(found) == 3 * 83
    assert drawn(view, 5, order="sequential", threads=3, prefetch=2) == found
    part = drawn(view.select(np.arange(79, 10, -3)), 5)
    assert part.items() <= found.items() and len(part) == 3 * 23
    other, zero = drawn(view, 6), drawn(view, 0)
    assert binned_rows(view.read(range(83))) == [zero[0, cell] for cell in range(83)]
    long = [cell for cell in range(83) if len(full[cell]) > 40]
    assert long
    for cell in long:
        assert len({tuple(found[epoch, cell]) for epoch in range(3)}) == 3
        assert found[0, cell] != other[0, cell]
        for epoch in range(3):
            pairs = found[epoch, cell]
            assert len(pairs) == 20 and pairs[0] == (1, 0)
            assert set(pairs) <= set(full[cell]) and sorted(pairs[1:]) == pairs[1:]
    # Of one cell over many epochs and seeds each gene comes about as often.
    cell = max(long, key=lambda each: len(full[each]))
    counts = dict.fromkeys([pair[0] for pair in full[cell][1:]], 0)
    for seed in range(1000, 1040):
        for pairs in drawn(view[cell : cell + 1], seed, batch_size=10, epochs=10).values():
            for token, _ in pairs[1:]:
                counts[token] += 1
    share = 19 / len(counts)
    deviation = np.sqrt(400 * share * (1 - share))
    assert max(abs(count - 400 * share) for count in counts.values()) < 4.5 * deviation


def binned_rows(batch: Any) -> list[list[tuple[int, int]]]:
    rows = zip(batch["input_ids"], batch["values"], batch["attention_mask"], strict=True)
    return [list(zip(ids[mask].tolist(), values[mask].tolist(), strict=True)) for ids, values, mask in rows]


@pytest.mark.parametrize("choose", BINNED)
def test_threads_readers_ranks_restores_and_parts_of_binned_cells_give_the_same(cells, choose):
    view = cells.dataset.cells(BINNED[choose], normalize=50.0)

    def loader(rank: int = 0, world_size: int = 1, **options: Any) -> penstock.Loader:
        options = {"global_batch_size": 12, "seed": 3, "epochs": 2, "framework": "numpy", **options}
        return penstock.Loader(view, rank=rank, world_size=world_size, **options)

    expected = [arrays_of(batch) for batch in loader(threads=1, prefetch=1, reader="pread")]
    for options in ({"threads": 4, "prefetch": 5}, {"reader": "mmap"}):
        assert_same([arrays_of(batch) for batch in loader(**options)], expected)
    for rank in range(3):
        own = [{name: values[rank::3] for name, values in whole.items()} for whole in expected]
        assert_same([arrays_of(batch) for batch in loader(rank, 3)], own)
    states = [loader().state_dict(), *(batch.state_dict() for batch in loader())]
    for step, state in enumerate(states[:-1]):
        again = loader()
        again.load_state_dict(state)
        assert_same([arrays_of(batch) for batch in again], expected[step:])
    for other in (cells.dataset.documents(), cells.dataset.cells("ranked")):
        goes_on = penstock.Loader(other, 12, seed=3)
        goes_on.load_state_dict(states[3])
        np.testing.assert_array_equal(next(goes_on).indices, expected[3]["indices"])
    whole, one = arrays_of(view.read([5, 70, 8])), view[5]
    for same, numbers in ((view[5:], [0, 65, 3]), (view.select([5, 70, 8]), [0, 1, 2])):
        assert_same([arrays_of(same.read(numbers)) | {"indices": whole["indices"]}], [whole])
        assert repr(pickle.loads(pickle.dumps(same))) == repr(same)
    assert ".cells(" in repr(view) and "metadata" not in repr(view)
    for name in one:
        np.testing.assert_array_equal(one[name], whole[name][0])


def test_metadata_is_read_where_it_is_asked_for(cells):
    batch = cells.dataset.cells("dense", genes=range(9), metadata=True).read([4, 2])
    assert [span.metadata["cell"] for span in batch.spans] == [4, 2]
    refused("metadata=False", lambda: cells.dataset.cells().read([4]).spans)
    np.testing.assert_array_equal(
        cells.dataset.cells("dense", genes=range(9)).read([4]).records["gene"], cells.genes[4]
    )


def test_another_layer_is_another_field(tmp_path):
    cells = write_cells(tmp_path, cells=20, extra=["spliced"])
    view = cells.dataset.cells(value="spliced", genes=range(300))
    batch = view.read([5, 6])
    assert "value='spliced'" in repr(view)
    assert list(batch) == ["gene", "spliced"]
    np.testing.assert_array_equal(batch["spliced"], batch.records["spliced"])
    np.testing.assert_array_equal(batch.csr.data, batch["spliced"])


@pytest.mark.parametrize("form", ["csr", "dense", "binned"])
def test_a_batch_moves_to_a_device_with_all_that_it_has(cells, form, lender):
    view = cells.dataset.cells(form, genes=range(GENES))
    plain, batch = (next(penstock.Loader(view, 8, seed=4, pin_memory=pinned)) for pinned in (False, True))
    lent = batch._native.lender  # all of it lies in the lent memory
    assert all(0 <= batch[name].data_ptr() - lent.data_ptr() < lent.numel() for name in batch)
    for device in ("cpu", "meta"):
        moved = batch.to(device, non_blocking=True)
        for name in (*batch, "indices", "epochs", "valid", "offsets"):
            tensor, ours = (each[name] if name in batch else getattr(each, name) for each in (moved, plain))
            assert tensor.device.type == device
            assert tensor.shape == ours.shape and tensor.dtype == ours.dtype
            assert device == "meta" or torch.equal(tensor, ours)
        if "gene" in batch:
            assert moved.csr.device.type == device and moved.csr.layout == torch.sparse_csr
            assert tuple(moved.csr.shape) == (8, GENES)
        assert moved.state_dict() == batch.state_dict() and moved.position == batch.position
        assert moved.to("meta").indices.device.type == "meta"
    assert plain.to("meta").indices.device.type == "meta"
    refused("framework='torch'", view.read([0]).to, "cpu")


def test_windows_move_too_and_columns_with_every_form(tmp_path: Path) -> None:
    columns = {"plate": "category", "score": ("f4", 2)}
    with penstock.Writer(tmp_path / "d", {"gene": "u2", "count": "u2"}, columns=columns) as writer:
        for cell in range(9):
            writer.append(gene=[3, cell + 4], count=[1, 2], columns={"plate": f"p{cell % 4}", "score": [cell, 0.5]})
    dataset = penstock.open(tmp_path / "d")
    views = [dataset.cells(form, genes=range(20), columns=["score", "plate"]) for form in ("csr", "binned")]
    for view in [*views, dataset.windows(2, columns=["plate", "score"])]:
        for framework in ("torch", "numpy"):
            batch = next(penstock.Loader(view, 9, seed=2, framework=framework))
            rows = np.asarray(batch.indices)
            np.testing.assert_array_equal(np.asarray(batch.columns["plate"]), rows % 4)
            np.testing.assert_array_equal(np.asarray(batch.columns["score"])[:, 0], rows)
        moved = next(penstock.Loader(view, 9)).to("meta")
        tensors = [*moved.columns.values(), *(moved[name] for name in moved)]
        assert {each.device.type for each in tensors} == {"meta"}
    windows = dataset.windows(2, columns=["score"])
    batch = next(penstock.Loader(windows, 3, columns=["cu_seqlens", "position_ids"])).to("meta")
    assert batch.cu_seqlens.device.type == batch.position_ids.device.type == "meta"
    assert isinstance(batch.max_seqlen, int) and len(batch.spans) == 3
    assert views[1][7].columns["score"].tolist() == [7, 0.5]


BAD: dict[str, tuple[list[int], list[float], str]] = {
    "twice": ([3, 7, 7, 9], [1, 2, 3, 4], "gene 7 is there twice"),
    "falling": ([3, 9, 7], [1, 2, 3], "gene 7 comes after gene 9"),
    "NaN": ([3, 7], [1, np.nan], "gene 7: its count is NaN"),
    "negative": ([3, 7], [-1.5, 1], r"gene 3: its count is -1\.5"),
    "infinite": ([3, 7], [1, np.inf], "gene 7: its count is inf"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_cell_is_one_error_at_its_batch_that_names_file_cell_and_gene(tmp_path: Path, what):
    genes, values, message = BAD[what]
    parts = []
    for part, bad in enumerate((None, 4)):
        parts.append(str(tmp_path / f"part{part}"))
        with penstock.Writer(parts[-1], fields={"gene": "u2", "count": "f4"}) as writer:
            for cell in range(10):
                writer.append(gene=genes if cell == bad else [1, 2], count=values if cell == bad else [1, 2])
    dataset = penstock.open(*parts)
    where = rf"part1/00000/stream\.bin: cell 14 \(4 of this file\): {message}"
    for form, log in (("csr", False), ("csr", True), ("dense", False), ("ranked", False), ("binned", False)):
        view = dataset.cells(form, genes=range(20), log1p=log)
        if what in ("negative", "infinite") and form in ("csr", "dense") and not log:
            assert view.read([14]).indices.tolist() == [14]
            continue
        for read in (lambda view=view: view.read([14]), lambda view=view: view[10:].select([4])[0]):
            refused(where, read)
        with penstock.Loader(view, batch_size=4, order="sequential", epochs=1, threads=2) as loader:
            for _ in range(3):
                next(loader)
            for _ in range(2):
                refused(where, next, loader)
            loader.seek(16)
            assert next(loader).indices.tolist() == [16, 17, 18, 19]


def named(cells, path, names):
    """The same cells, whose genes are called so."""
    batch = cells.dataset.documents(metadata=False).read(np.arange(len(cells.dataset.documents())))
    with penstock.Writer(path, cells.dataset.dtype, "boundaries", features=names) as writer:
        writer.append_batch(np.diff(batch.offsets), records=batch.records)
    return penstock.open(path)


def test_a_gene_past_those_that_there_are_is_refused_and_one_past_those_selected_is_left_out(cells, tmp_path):
    few = named(cells, tmp_path / "few", [f"g{number}" for number in range(50)])
    for form in ("csr", "dense", "ranked", "binned"):
        refused(r"cell 0 .*gene \d+: there are 50 genes", few.cells(form).read, [0])
    refused("there are 50 genes", few.cells("dense", genes=["g3"]).read, [0])
    refused("there are 40 genes", cells.dataset.cells(Ranked(tokens=np.arange(40))).read, [0])
    np.testing.assert_array_equal(cells.dataset.cells("dense", genes=range(50)).read([0])["x"], cells.x[:1, :50])


def test_genes_tokens_and_medians_by_name(cells, tmp_path):
    names = [f"g{number}" for number in range(GENES)]
    data = named(cells, tmp_path / "d", names)
    chosen = [names[number] for number in SHUFFLED]
    np.testing.assert_array_equal(
        data.cells("dense", genes=chosen).read(range(9))["x"], cells.x[:9][:, SHUFFLED].astype(np.float32)
    )
    assert data.cells().read([0, 1]).csr.shape == (2, GENES)
    assert data.cells("dense").read([0])["x"].shape == (1, GENES)
    tokens = {"<pad>": 0, **{names[number]: number + 10 for number in range(0, GENES, 2)}}
    medians = {name: 1.0 + number % 5 for number, name in enumerate(names) if number % 3}
    batch = data.cells(Ranked(100, tokens, medians)).read(range(20))
    plain = np.array([number + 10 if number % 2 == 0 and number % 3 else -1 for number in range(GENES)])
    for row in range(20):
        expected = ranked(cells.x[row], 100, plain, 1.0 + np.arange(GENES) % 5)[0]
        np.testing.assert_array_equal(batch["input_ids"][row], expected)
    refused("there is no gene 'nix' among 200", data.cells, genes=["g1", "nix"])
    refused("named twice", data.cells, genes=["g1", "g2", "g1"])
    refused("tokens= names none of the 200 genes", data.cells, Ranked(tokens={"ENSG1": 4}))


@pytest.mark.parametrize(
    ("form", "options", "message"),
    [
        ("sparse", {}, "there is no form 'sparse' of cells"),
        (Csr, {}, r"as penstock\.cells\.Csr\(\)"),
        (Csr("int32"), {}, "dtype='int32'"),
        (Csr(index="int16"), {}, "index='int16'"),
        (Ranked(0), {}, "length=0"),
        (Ranked(2, cls=1, eos=2), {}, "length=2"),
        (Ranked(medians=[1.0, 0.0]), {}, "gene 1 has 0.0"),
        (Ranked(tokens=[3, -2]), {}, "gene 1 has -2"),
        (Ranked(tokens=[3, 4]), {"genes": [1]}, "there are 1"),
        (Ranked(tokens=[0.5]), {}, "must be a mapping from names or integers"),
        (Ranked(tokens={"a": 1}), {}, "does not say what its genes are called"),
        (Binned(bins=1), {}, "bins=1"),
        (Binned(choose="last"), {}, "choose='last'"),
        ("csr", {"value": "counts"}, 'the fields gene and \'counts\'; these have "gene", "count"'),
        ("csr", {"value": "gene"}, "must be the field of the counts"),
        ("csr", {"genes": []}, "at least one"),
        ("csr", {"genes": "g1"}, "a list of names or numbers"),
        ("csr", {"genes": ["g1"]}, "give numbers"),
        ("csr", {"genes": [1, 2, 1]}, "gene 1 is named twice"),
        ("csr", {"genes": [-1]}, "there is no gene -1"),
        ("csr", {"genes": np.ones(200, bool)}, "a mask is np.flatnonzero"),
        ("csr", {"normalize": 0}, "normalize=0"),
        ("csr", {"normalize": "yes"}, "normalize='yes'"),
        ("csr", {"columns": ["plate"]}, "there is no column plate"),
    ],
)
def test_arguments_that_cannot_be_are_refused_in_words(cells, form, options, message):
    refused(message, cells.dataset.cells, form, **options)


def test_what_is_no_cell_is_refused(tmp_path, cells):
    for fields, words in (
        ({"gene": "i8", "count": "u2"}, "int64: must be uint8"),
        ({"token": "u2"}, "gene and 'count'"),
    ):
        path = tmp_path / words[:4]
        with penstock.Writer(path, fields=fields) as writer:
            writer.append(**{name: [1] for name in fields})
        refused(f"field.* {words}", lambda path=path: penstock.open(path).cells().read([0]))
    with pytest.raises(penstock.InvalidArgumentError, match="the types of cells are those of their form"):
        penstock.Loader(cells.dataset.cells(), batch_size=1, dtype="int32")


def test_a_gene_beyond_int32_wants_a_wide_index(tmp_path):
    with penstock.Writer(str(tmp_path / "wide"), fields={"gene": "u4", "count": "u1"}, metadata="json") as writer:
        writer.append(gene=[1, 3_000_000_000], count=[1, 2], metadata=None)
    dataset = penstock.open(str(tmp_path / "wide"))
    for options in ({}, {"log1p": True}):
        refused('gene 3000000000 does not fit int32: use index="int64"', dataset.cells(**options).read, [0])
        assert dataset.cells(Csr(index="int64"), **options).read([0])["gene"].tolist() == [1, 3_000_000_000]


def test_without_scipy_the_matrix_needs_torch(cells, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "scipy.sparse", None)
    refused("needs SciPy or framework='torch'", lambda: cells.dataset.cells(genes=range(GENES)).read([0]).csr)
