"""Cells for scvi-tools without scvi-tools: parts, codes, batches, states, refusals. `make adapters` has the models."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import penstock
import pytest
import torch
from _forks import Forks, forks

CELLS, GENES = 500, 40
KEYS = {
    "X_KEY": "X", "BATCH_KEY": "batch", "LABELS_KEY": "labels", "CAT_COVS_KEY": "extra_categorical_covs",
    "CONT_COVS_KEY": "extra_continuous_covs", "SIZE_FACTOR_KEY": "size_factor", "LATENT_QZM_KEY": "latent_qzm",
    "LATENT_QZV_KEY": "latent_qzv", "OBSERVED_LIB_SIZE": "observed_lib_size",
}  # fmt: skip


class Made:
    """Cells as written."""

    def __init__(self, folder: Path) -> None:
        random = np.random.default_rng(3)
        self.path = folder / "cells"
        self.counts = random.poisson(0.4, (CELLS, GENES)).astype("u1")
        self.plates = random.integers(0, 3, CELLS)
        self.kinds = random.integers(-1, 3, CELLS)
        self.lanes = random.choice([2, 5, 9], CELLS)
        self.ages = random.normal(size=CELLS).astype("f4")
        columns = {
            "plate": "category",
            "kind": "category",
            "lane": "u1",
            "age": "f4",
            "holes": "f4",
            "pair": ("f4", (2,)),
        }
        features = [f"g{gene}" for gene in range(GENES)]
        with penstock.Writer(
            self.path, {"gene": "u1", "count": "u1"}, metadata="boundaries", columns=columns, features=features
        ) as writer:
            for cell in range(CELLS):
                there = np.flatnonzero(self.counts[cell])
                values = {
                    "plate": f"p{self.plates[cell]}",
                    "kind": None if self.kinds[cell] < 0 else ("Unknown", "B", "T")[self.kinds[cell]],
                    "lane": self.lanes[cell],
                    "age": self.ages[cell],
                    "holes": np.nan if cell == 7 else 1.0,
                    "pair": [0, 1],
                }
                writer.append(gene=there, count=self.counts[cell][there], columns=values)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("scvi"))


@pytest.fixture(scope="module")
def adapter() -> Iterator[Any]:
    """The module over packages that have no more than what it takes of them."""
    names = ("scvi", "lightning", "lightning.pytorch", "penstock.adapters.scvi")
    before = {name: sys.modules.pop(name, None) for name in names}
    scvi, lightning, pytorch = (ModuleType(name) for name in names[:3])
    scvi.REGISTRY_KEYS, scvi.__version__ = SimpleNamespace(**KEYS), "0"  # type: ignore[attr-defined]
    pytorch.LightningDataModule = type("LightningDataModule", (), {"trainer": None})  # type: ignore[attr-defined]
    sys.modules.update({"scvi": scvi, "lightning": lightning, "lightning.pytorch": pytorch})
    try:
        yield importlib.import_module("penstock.adapters.scvi")
    finally:
        vars(penstock.adapters).pop("scvi", None)
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


@pytest.fixture(scope="module")
def programs() -> Iterator[Forks]:
    with forks("numpy", "penstock") as found:
        yield found


def test_what_is_missing_is_said_with_its_command(tmp_path: Path, programs: Forks) -> None:
    program = """
import sys
import penstock
{first}
try:
    penstock.adapters.scvi
except ImportError as error:
    print(type(error).__name__, error)
"""
    (tmp_path / "program.py").write_text(program.format(first="sys.modules['scvi'] = None"))
    said = programs.run(["program.py"], tmp_path).stdout
    assert said.startswith("ModuleNotFoundError penstock.adapters.scvi needs scvi") and "pip install scvi-tools" in said
    (tmp_path / "scvi.py").write_text("")
    (tmp_path / "program.py").write_text(program.format(first=""))
    said = programs.run(["program.py"], tmp_path).stdout
    assert said.startswith("ImportError penstock.adapters.scvi: scvi is installed, but a part is missing")
    assert "REGISTRY_KEYS" in said and "run with scvi" in said


def test_the_release_that_an_error_names_is_the_one_that_make_adapters_runs() -> None:
    pins = (Path(__file__).parents[2] / "adapters" / "requirements-scvi.txt").read_text()
    text = Path(penstock.adapters.__file__).with_name("scvi.py").read_text()
    (pinned,) = re.findall(r"^scvi-tools==(.*)$", pins, re.MULTILINE)
    assert f'error, "{pinned}"' in text


# ---- batches


def test_a_batch_has_the_counts_and_codes_of_its_cells(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(
        made.path, batch_key="plate", labels_key="kind", categorical_covariate_keys=["lane", "plate"],
        continuous_covariate_keys=["age"], size_factor_key="age", validation=0,
    )  # fmt: skip
    plates, labels = cells.batch_labels, cells.registry["field_registries"]["labels"]["state_registry"]
    assert labels["categorical_mapping"][-1] == "Unknown" and set(labels["categorical_mapping"]) == {
        "Unknown",
        "B",
        "T",
    }
    seen = 0
    for batch in cells.inference_dataloader(batch_size=64):
        rows = slice(seen, seen + len(batch["X"]))
        assert batch["X"].dtype == torch.float32 and np.array_equal(batch["X"], made.counts[rows])
        assert [plates[code] for code in batch["batch"][:, 0]] == [f"p{plate}" for plate in made.plates[rows]]
        named = [labels["categorical_mapping"][code] for code in batch["labels"][:, 0]]
        assert named == [("Unknown", "B", "T", "Unknown")[kind] for kind in made.kinds[rows]]
        assert np.array_equal(batch["extra_categorical_covs"][:, 0], np.searchsorted([2, 5, 9], made.lanes[rows]))
        assert torch.equal(batch["extra_categorical_covs"][:, 1:], batch["batch"])
        for name in ("extra_continuous_covs", "size_factor"):
            assert np.array_equal(batch[name][:, 0], made.ages[rows]) and batch[name].dtype == torch.float32
        assert all(values.shape[0] == len(batch["X"]) and values.ndim == 2 for values in batch.values())
        seen = rows.stop
    assert seen == CELLS == cells.n_obs


def test_compressed_rows_are_the_same_counts(made: Made, adapter: Any) -> None:
    dense, sparse = (
        adapter.DataModule(made.path, sparse=each, validation=0.2, batch_size=64) for each in (False, True)
    )
    for one, other in zip(dense.train_dataloader(), sparse.train_dataloader(), strict=True):
        assert other["X"].layout == torch.sparse_csr
        assert torch.equal(one["X"], sparse.on_after_batch_transfer(other, 0)["X"])
    for one, other in zip(dense.val_dataloader(), sparse.val_dataloader(), strict=True):
        assert torch.equal(one["X"], sparse.on_after_batch_transfer(other, 0)["X"])


def test_genes_are_chosen_and_named(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(penstock.open(made.path), genes=["g9", "g3"])
    assert cells.n_vars == 2
    state = cells.registry["field_registries"]["X"]["state_registry"]
    assert list(state["column_names"]) == ["g9", "g3"]
    assert np.array_equal(next(iter(cells.inference_dataloader()))["X"], made.counts[:, [9, 3]])


def test_semisupervised_batches_are_pairs_of_all_cells_and_of_cells_with_labels(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, labels_key="kind", model="SCANVI", batch_size=50, validation=0.2)
    assert cells.n_labels == 2
    for all_cells, labeled in cells.train_dataloader():
        assert len(all_cells["X"]) == 50 and bool((labeled["labels"] < 2).all())
    rows = 0
    for all_cells, labeled in cells.val_dataloader():
        assert int((all_cells["labels"] < 2).sum()) == len(labeled["X"])
        rows += len(all_cells["X"])
    assert rows == cells.n_val == 100
    known = [("B", "T")[kind - 1] if kind > 0 else None for kind in made.kinds]
    assert cells.labels_.tolist() == known


# ---- parts


def test_labels_may_be_numbers(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, labels_key="lane", model=type("SCANVI", (), {}))
    assert cells.registry["model_name"] == "SCANVI"
    assert cells.n_labels == 3 and cells.labels_.tolist() == [str(lane) for lane in made.lanes]
    codes = torch.cat([batch["labels"] for batch in cells.inference_dataloader()])[:, 0]
    assert np.array_equal(codes, np.searchsorted([2, 5, 9], made.lanes))


def test_parts_are_fractions_conditions_numbers_or_masks(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, validation=0.15, test=0.25, split_seed=1)
    assert (cells.n_train, cells.n_val, len(cells.test_idx)) == (300, 75, 125)
    assert sorted([*cells.train_idx, *cells.val_idx, *cells.test_idx]) == list(range(CELLS))
    again = adapter.DataModule(made.path, validation=0.15, test=0.25, split_seed=1)
    other = adapter.DataModule(made.path, validation=0.15, test=0.25, split_seed=2)
    assert np.array_equal(cells.val_idx, again.val_idx) and not np.array_equal(cells.val_idx, other.val_idx)

    test = np.flatnonzero((made.plates == 2) & (made.lanes == 2))
    cells = adapter.DataModule(made.path, validation="plate = 'p1'", test=test)
    assert set(made.plates[cells.val_idx]) == {1} and cells.n_val == (made.plates == 1).sum()
    assert not np.isin(cells.train_idx, cells.test_idx).any() and set(made.lanes[cells.test_idx]) == {2}
    cells = adapter.DataModule(made.path, train=range(400), validation=0.1, test=0.1)
    assert cells.n_train == 400 and sorted([*cells.val_idx, *cells.test_idx]) == list(range(400, CELLS))
    assert adapter.DataModule(made.path, train=range(CELLS), validation=None).n_train == CELLS
    cells = adapter.DataModule(made.path, train=made.plates == 0, validation="plate = 'p1'")
    assert np.array_equal(cells.train_idx, np.flatnonzero(made.plates == 0)) and len(cells.test_idx) == 0


def test_cells_that_a_condition_chose_are_divided(made: Made, adapter: Any) -> None:
    chosen = penstock.open(made.path).where("plate <> 'p1'")
    cells = adapter.DataModule(chosen, batch_key="plate", labels_key="kind", validation=0.1)
    numbers = np.flatnonzero(made.plates != 1)
    assert cells.n_obs == len(numbers) == len(cells.labels_) and cells.n_val == round(0.1 * len(numbers))
    assert sorted([*cells.train_idx, *cells.val_idx]) == numbers.tolist()
    counts = torch.cat([batch["X"] for batch in cells.inference_dataloader()])
    assert np.array_equal(counts, made.counts[numbers])
    part = torch.cat([batch["X"] for batch in cells.inference_dataloader("validation")])
    assert np.array_equal(part, made.counts[cells.val_idx])
    some = torch.cat([batch["X"] for batch in cells.inference_dataloader([5, 3])])
    assert np.array_equal(some, made.counts[[5, 3]])


def test_it_says_its_cells(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, batch_key="plate", labels_key="kind", validation=0.2, test=0.1)
    expected = (
        f"DataModule({str(made.path)!r}): 500 cells of 40 genes for SCVI: 350 to train on, 100 to validate on, "
        "50 to test on; 3 batch categories, 3 labels"
    )
    assert str(cells) == f"{cells}" == expected


def test_an_empty_list_is_an_empty_part(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, validation=[], test=[])
    assert (cells.n_train, cells.n_val, cells.val_dataloader()) == (CELLS, 0, [])


def test_numbers_that_are_few_are_categories_with_fractions_too(adapter: Any, tmp_path: Path) -> None:
    doses = np.array([0.1, 1, 10], "f4")
    with penstock.Writer(
        tmp_path / "doses", {"gene": "u1", "count": "u1"}, metadata="boundaries", columns={"dose": "f4"}, features=["a"]
    ) as writer:
        for cell in range(12):
            writer.append(gene=[0], count=[1], columns={"dose": doses[cell % 3]})
    assert adapter.DataModule(tmp_path / "doses", batch_key="dose").batch_labels.tolist() == doses.tolist()


def test_values_with_fractions_are_warned_of_where_counts_are_wanted(adapter: Any, tmp_path: Path) -> None:
    fields = {"gene": "u1", "count": "f4", "raw": "u1"}
    with penstock.Writer(tmp_path / "cells", fields, metadata="boundaries", features=["a", "b"]) as writer:
        for _ in range(12):
            writer.append(gene=[0, 1], count=[0.7, 1.1], raw=[1, 2])
    words = r"count has fractions.*models of scvi-tools take counts: value= takes another layer \(there are: raw\)"
    with pytest.warns(UserWarning, match=words) as told:
        adapter.DataModule(tmp_path / "cells")
    assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter.DataModule(tmp_path / "cells", value="raw")


def test_normalised_files_in_place_are_warned_of_once(adapter: Any, tmp_path: Path) -> None:
    anndata, sparse = pytest.importorskip("anndata"), pytest.importorskip("scipy.sparse")
    x = sparse.csr_matrix(np.full((20, 3), 2, "f4"))
    counts, normalised = str(tmp_path / "a.h5ad"), str(tmp_path / "b.h5ad")
    anndata.AnnData(x, layers={"counts": x}).write_h5ad(counts)
    anndata.AnnData(x.log1p(), layers={"counts": x}).write_h5ad(normalised)
    for paths, words in (
        ([normalised], r'b\.h5ad: X has fractions.*x="layers/counts"\) takes another matrix'),
        ([counts, normalised], r"b\.h5ad: X has fractions.*a\.h5ad it has none"),
    ):
        with pytest.warns(UserWarning, match=words) as told:
            adapter.DataModule(*paths)
        assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter.DataModule(penstock.open(counts, normalised, x="layers/counts"))


# ---- training


def epoch(batches: Any) -> list[bytes]:
    return [row.numpy().tobytes() for batch in batches for row in batch["X"]]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("rows", [32, 45])
def test_ranks_see_each_cell_once_an_epoch(made: Made, adapter: Any, ranks: int, rows: int) -> None:
    shares = [
        adapter.DataModule(made.path, validation=0.1, batch_size=rows, rank=rank, world_size=ranks, genes=range(GENES))
        for rank in range(ranks)
    ]
    lengths = {len(each.train_dataloader()) for each in shares}
    seen = [list(each.train_dataloader()) for each in shares]
    assert {len(each) for each in seen} == lengths and len(lengths) == 1
    rest = 450 % (rows * ranks)
    expected = 450 - (rest if rest < 2 * ranks else 0)
    assert sum(len(batch["X"]) for each in seen for batch in each) == expected
    assert min(len(batch["X"]) for each in seen for batch in each) >= 2
    held = [[len(batch["X"]) for batch in each.val_dataloader()] for each in shares]
    assert sum(map(sum, held)) == 50 and [len(each.val_dataloader()) for each in shares] == [len(each) for each in held]


def test_a_rank_without_a_cell_in_the_last_batch_has_a_batch_less(made: Made, adapter: Any) -> None:
    given = {"validation": list(range(9)), "batch_size": 2, "world_size": 4}
    held = [list(adapter.DataModule(made.path, rank=rank, **given).val_dataloader()) for rank in range(4)]
    assert [len(each) for each in held] == [2, 1, 1, 1]
    assert all(len(batch["X"]) > 0 for each in held for batch in each)


@pytest.mark.parametrize("model", ["SCVI", "SCANVI"])
def test_it_goes_on_at_every_step(made: Made, adapter: Any, model: str) -> None:
    given = {"labels_key": "kind", "model": model, "batch_size": 64, "seed": 4}

    def noted(batch: Any) -> Any:
        parts = batch if isinstance(batch, tuple) else (batch,)
        return [part["X"].numpy().tobytes() for part in parts], torch.rand(1).item()

    whole = adapter.DataModule(made.path, **given)
    expected = [noted(batch) for _ in range(2) for batch in whole.train_dataloader()]
    steps = len(expected) // 2
    for stop in range(steps + 1):
        first = adapter.DataModule(made.path, **given)
        before = [noted(batch) for batch in islice(first.train_dataloader(), stop)]
        first._train.noise = whole._train.noise
        state = pickle.loads(pickle.dumps(first.state_dict()))
        second = adapter.DataModule(made.path, **given)
        second.load_state_dict(state)
        second.setup("fit")
        after = [noted(batch) for _ in range(2) for batch in second.train_dataloader()]
        assert [rows for rows, _ in before] == [rows for rows, _ in expected[:stop]]
        assert after[: 2 * steps - stop] == expected[stop : len(after) + stop], stop


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_more_ranks_get_two_cells_each_of_what_a_state_leaves(made: Made, adapter: Any, ranks: int) -> None:
    given = {"batch_size": 64}  # 450 cells: of some states 2 are left for a last batch of all ranks
    one = adapter.DataModule(made.path, **given)
    batches = iter(one.train_dataloader())
    states = []
    for _ in range(8):
        next(batches)
        states.append(pickle.loads(pickle.dumps(one.state_dict())))
    for state in states:
        rows: list[list[list[int]]] = []
        for rank in range(ranks):
            part = adapter.DataModule(made.path, rank=rank, world_size=ranks, **given)
            part.load_state_dict(state)
            train = part.train_dataloader()
            rows.append([[len(batch["X"]) for batch in train] for _ in range(2)])
            assert len(rows[-1][1]) == len(train)
        left = 450 - state["cells"]["position"] % 450
        left = 450 if left < 2 * ranks else left  # all of it is passed over
        for of_ranks, cells in zip(zip(*rows, strict=True), (left, 450), strict=True):
            assert len({len(each) for each in of_ranks}) == 1 and min(map(min, of_ranks)) >= 2
            rest = cells % (64 * ranks)
            assert sum(map(sum, of_ranks)) == cells - (rest if rest < 2 * ranks else 0)


def test_what_a_state_leaves_that_is_too_little_is_passed_over(made: Made, adapter: Any) -> None:
    one = adapter.DataModule(made.path, batch_size=149)  # 450 cells: 3 are left of an epoch
    assert [len(batch["X"]) for batch in islice(one.train_dataloader(), 3)] == [149] * 3
    parts = [adapter.DataModule(made.path, batch_size=149, rank=rank, world_size=2) for rank in range(2)]
    for each in parts:
        each.load_state_dict(one.state_dict())
    seen = [[len(batch["X"]) for batch in each.train_dataloader()] for each in parts]
    assert seen == [[149, 76], [149, 76]]


def test_an_epoch_that_was_broken_off_begins_again_in_the_next_fit(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, batch_size=64)
    expected = [epoch(cells.train_dataloader()) for _ in range(2)]
    again = adapter.DataModule(made.path, batch_size=64)
    again.setup("fit")
    assert epoch(again.train_dataloader()) == expected[0]
    next(iter(again.train_dataloader()))
    again.setup("fit")
    assert epoch(again.train_dataloader()) == expected[1]


def test_it_pickles_where_it_is(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, batch_size=64)
    batches = iter(cells.train_dataloader())
    next(batches)
    again = pickle.loads(pickle.dumps(cells.state_dict()))
    assert again["cells"]["position"] == 64
    copy = object.__new__(adapter.DataModule)
    copy.__dict__.update(cells.__getstate__())
    assert torch.equal(next(iter(copy.train_dataloader()))["X"], next(batches)["X"])


def test_minified_batches_hold_what_the_model_made(made: Made, adapter: Any) -> None:
    class Model:
        module = SimpleNamespace(minified_data_type="other")

        def get_latent_representation(self, dataloader: Any, return_dist: bool) -> Any:
            assert self.module.minified_data_type is None and return_dist
            counts = torch.cat([batch["X"] for batch in dataloader])
            return counts[:, :2].numpy(), counts[:, 2:4].numpy()

    model = Model()
    small = adapter.DataModule(made.path, batch_key="plate", sparse=True).minify(model)
    assert model.module.minified_data_type == "latent_posterior_parameters"
    batches = list(small)
    assert len(small) == len(batches) and "X" not in batches[0]
    assert np.array_equal(torch.cat([each["latent_qzv"] for each in batches]), made.counts[:, 2:4])
    assert np.array_equal(torch.cat([each["observed_lib_size"] for each in batches])[:, 0], made.counts.sum(1))
    assert sum(len(each["batch"]) for each in batches) == CELLS


# ---- refusals


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch_key": "plat"}, "batch_key='plat': the dataset has no such column: there are plate, kind, lane, age"),
        ({"batch_key": "kind"}, "batch_key: MISSING cells without 'kind', the first is cell"),
        ({"categorical_covariate_keys": ["pair"]}, "each of its values is [2]"),
        ({"continuous_covariate_keys": ["plate"]}, "'plate' is of categories"),
        ({"continuous_covariate_keys": ["holes"]}, "1 cell without 'holes', the first is cell 7"),
        ({"labels_key": "lane", "unlabeled_category": "5"}, "the labels of lane are numbers: 5 is one of them"),
        ({"labels_key": 3}, "labels_key=3: the dataset has no such column"),
        ({"model": "SCANVI"}, "labels_key= must name the column"),
        ({"validation": 1.0}, "validation=1.0: a fraction from 0 to below 1"),
        ({"validation": 0.5, "test": 0.5}, "none is left to train on"),
        (
            {"train": range(450), "validation": 0.1, "test": 0.1},
            "validation=0.1, test=0.1: 100 cells of 500, and the other parts leave 50: give smaller fractions",
        ),
        ({"validation": [0, 500]}, "there is no cell 500: they are from 0 to 499"),
        ({"validation": "plate = 'p1'", "test": "plate = 'p1'"}, "in another part"),
        ({"train": 0.9}, "give validation= and test= as fractions"),
        ({"validation": "plate = 'p1' and lane = 3"}, "validation=\"plate = 'p1' and lane = 3\": this chooses no cell"),
        ({"test": np.zeros(CELLS, bool)}, "this chooses no cell of the 500"),
        ({"train": "lane = 3"}, "train='lane = 3': this chooses no cell"),
        ({"batch_key": "age"}, "batch_key='age': 500 different numbers with fractions in 500 cells"),
        ({"labels_key": "age"}, "labels_key='age': 500 different numbers with fractions in 500 cells"),
        ({"categorical_covariate_keys": "age"}, "and 250 may be; continuous_covariate_keys= takes"),
        ({"validation": np.zeros((2, 2))}, "validation= of shape [2, 2]"),
        ({"batch_size": 1}, "batch_size"),
        ({"num_workers": 4}, "DataModule has no 'num_workers'"),
        ({"genes": ["nope"]}, "there is no gene 'nope'"),
    ],
)
def test_what_cannot_be_is_refused(made: Made, adapter: Any, given: dict[str, Any], words: str) -> None:
    words = words.replace("MISSING", str(int((made.kinds < 0).sum())))
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        adapter.DataModule(made.path, **given)
    assert words in str(caught.value)


def test_data_that_are_none_are_refused(made: Made, adapter: Any) -> None:
    for data, words in ((3, "a dataset is wanted"), ([], "a dataset is wanted"), (None, "a dataset is wanted")):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            adapter.DataModule(data)
    with pytest.raises(penstock.InvalidArgumentError, match="a dataset is given alone"):
        adapter.DataModule(penstock.open(made.path), made.path)
    with pytest.raises(penstock.NotFoundError):
        adapter.DataModule(made.path / "nothing")


def test_states_of_others_are_refused(made: Made, adapter: Any) -> None:
    cells = adapter.DataModule(made.path, labels_key="kind")
    state = cells.train_dataloader().state_dict()
    other = adapter.DataModule(made.path, seed=1)
    other.load_state_dict(state)
    anew = "; training begins anew without ckpt_path="
    with pytest.raises(penstock.StateMismatchError, match="seed") as caught:
        other.train_dataloader()
    assert str(caught.value).endswith(f"seed: saved 0, now 1. Give seed=0{anew}")
    other = adapter.DataModule(made.path, validation=0.3)
    other.load_state_dict(state)
    with pytest.raises(penstock.StateMismatchError, match="selection") as caught:
        other.train_dataloader()
    advice = ". Give validation=, test=, train=, split_seed=, seed= and order= of its run"
    assert str(caught.value).endswith(advice + anew)
    pairs = adapter.DataModule(made.path, labels_key="kind", model="SCANVI")
    pairs.train_dataloader()
    with pytest.raises(penstock.InvalidArgumentError, match="no 'labeled'"):
        pairs.load_state_dict(state)


def test_too_few_cells_are_refused(made: Made, adapter: Any) -> None:
    few = adapter.DataModule(made.path, train=[1, 2, 3], rank=0, world_size=2)
    with pytest.raises(penstock.InvalidArgumentError, match="3 cells to train on: 2 ranks need 2 each"):
        few.train_dataloader()
    cells = np.flatnonzero(made.kinds <= 0)
    none = adapter.DataModule(made.path, labels_key="kind", model="SCANVI", train=cells)
    with pytest.raises(penstock.InvalidArgumentError, match="0 of the cells to train on have a label"):
        none.train_dataloader()
    with pytest.raises(penstock.InvalidArgumentError, match="part='dev'"):
        none.inference_dataloader("dev")
