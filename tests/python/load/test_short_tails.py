"""tail="short": a last batch of as many rows as are left for each rank, in every loader, and what hooks see of it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import penstock
import pytest
import torch
from _datasets import raw_tokens

N = 107
STORE = np.arange(N) * 10


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> penstock.View:
    return raw_tokens(tmp_path_factory.mktemp("short") / "tokens.bin", N * 3)[0].windows(3)


def ranks_of(make: Any, ranks: int, **options: Any) -> list[list[Any]]:
    """All batches, or infos of them, of each rank."""
    return [make(rank=rank, world_size=ranks, **options) for rank in range(ranks)]


def of_loader(view: penstock.View, size: int, **options: Any) -> list[Any]:
    with penstock.Loader(view, global_batch_size=size, seed=3, framework="numpy", threads=1, **options) as loader:
        return list(loader)


def of_collection(size: int, **options: Any) -> list[Any]:
    given = {"seed": 3, "fetch_factor": 5, **options}
    with penstock.CollectionLoader(STORE, global_batch_size=size, **given) as loader:
        found = []
        for batch in loader:
            assert (batch == loader.info.indices * 10).all() and len(batch) == len(loader.info.valid)
            found.append(loader.info)
        assert len(found) == len(loader)
        return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
@pytest.mark.parametrize("per_epoch", [False, True])
def test_the_last_batch_has_as_many_rows_as_are_left_for_each_rank(view: Any, ranks: int, per_epoch: bool) -> None:
    size, options = 30, {"epochs": 1, "tail": "short", "per_epoch": per_epoch}
    rest = math.ceil((N - 90) / ranks)
    native = ranks_of(lambda **rank: of_loader(view, size, **rank, **options), ranks)
    others = ranks_of(lambda **rank: of_collection(size, **rank, **options), ranks)
    seen: list[int] = []
    for rank, (batches, infos) in enumerate(zip(native, others, strict=True)):
        assert [len(batch.valid) for batch in batches] == [size // ranks] * 3 + [rest]
        valid = len(range(rank, N - 90, ranks))
        assert batches[-1].valid.tolist() == [True] * valid + [False] * (rest - valid)
        assert batches[-1].indices[valid:].tolist() == [-1] * (rest - valid)
        assert batches[-1].global_rows == N - 90 and batches[-1].state_dict()["position"] == N
        for batch, info in zip(batches, infos, strict=True):
            assert info.valid.tolist() == batch.valid.tolist() and info.position == batch.position
            assert info.indices[info.valid].tolist() == batch.indices[batch.valid].tolist()
            assert info.global_rows == batch.global_rows and info.loss_scale == batch.loss_scale
            seen += batch.indices[batch.valid].tolist()
    assert sorted(seen) == list(range(N))


def test_states_go_on_on_other_ranks_and_with_another_tail(view: Any) -> None:
    whole = of_loader(view, 30, epochs=2, tail="short")
    for step, batch in enumerate(whole[:-1]):
        for ranks in (1, 3, 4):
            found = []
            for rank in range(ranks):
                options = {"epochs": 2, "tail": "short", "rank": rank, "world_size": ranks, "uneven": "pad"}
                loader = penstock.Loader(view, global_batch_size=30, seed=3, framework="numpy", threads=1, **options)
                assert loader.load_state_dict(batch.state_dict()).step == step + 1
                found.append([each.indices for each in loader])
                loader.close()
            for number, parts in enumerate(zip(*found, strict=True)):
                expected = whole[step + 1 + number].indices
                merged = np.stack(parts, axis=1).ravel()
                assert merged[merged >= 0].tolist() == expected[expected >= 0].tolist()
    with penstock.Loader(view, 30, seed=3, epochs=2) as other:  # the tail is no part of the job
        other.load_state_dict(whole[-1].state_dict())


def test_an_evaluation_has_each_observation_once_and_nothing_else(view: Any) -> None:
    loader = penstock.eval_loader(view, batch_size=16, tail="short", framework="torch", order="sequential")
    for _ in range(2):
        batches = list(loader)
        assert len(batches) == len(loader) == 7 and loader.tail_rows == 11
        assert torch.cat([batch.indices for batch in batches]).tolist() == list(range(N))
        assert all(batch.valid.all() for batch in batches) and batches[-1]["token"].shape == (11, 3)


def test_the_loaders_of_torch_have_the_same_batches(view: Any) -> None:
    from penstock.adapters.torch import BatchDataset
    from torch.utils.data import DataLoader

    whole = [batch.indices.tolist() for batch in of_loader(view, 16, epochs=2, tail="short")]
    for workers in (0, 3):
        dataset = BatchDataset(view, 16, seed=3, epochs=2, tail="short")
        loader = DataLoader(dataset, batch_size=None, num_workers=workers)
        assert [batch["indices"].tolist() for batch in loader] == whole
        assert len(dataset) == len(whole) and len(whole[-1]) == 2 * N % 16


def test_documents_packed_rows_and_mixtures_end_short(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "json") as writer:
        for number in range(23):
            writer.append(token=range(number % 5 + 1), metadata={"number": number})
    dataset = penstock.open(tmp_path / "d")
    stages = [penstock.Stage({"a": 1}, window=1), penstock.Stage({"b": 1}, at=10)]  # batches end between them
    windows = {"a": dataset.windows(2), "b": dataset.windows(2)}
    looked_at = penstock.columns.PerRow(lambda row, _: row.index, {"looked_at": "i8"}, workers=1)
    for rank in range(2):
        for view in (dataset.documents(), dataset.packed(4), penstock.Mixture(windows, stages, end=23, group=5)):
            options = {"rank": rank, "world_size": 2, "tail": "short", "columns": [looked_at], "framework": "numpy"}
            if not isinstance(view, penstock.Mixture):
                options["epochs"] = 1
            with penstock.Loader(view, 4, seed=0, **options) as loader:
                batches = list(loader)
                assert len(batches) == len(loader)
            ends = [10, 23] if isinstance(view, penstock.Mixture) else [len(view)]
            rows = [len(batch.valid) for batch in batches]
            expected = [rest for begin, end in zip([0, *ends], ends, strict=False) for rest in of_ranks(end - begin)]
            assert rows == expected
            for batch in batches:
                assert {span.row for span in batch.spans} <= set(np.flatnonzero(batch.valid).tolist())
                assert (batch.columns["looked_at"] == np.where(batch.valid, batch.indices, 0)).all()


def of_ranks(count: int, ranks: int = 2, rows: int = 4) -> list[int]:
    """Rows of each batch of a rank."""
    return [math.ceil(min(ranks * rows, count - at) / ranks) for at in range(0, count, ranks * rows)]


# --- hooks of collections


class Seen:
    """Hooks that note how many rows they get."""

    def __init__(self) -> None:
        self.fetched: list[int] = []
        self.batches: list[int] = []
        self.rows: list[int] = []

    def hooks(self) -> dict[str, Any]:
        return {"fetch_transform": self._fetch, "batch_callback": self._take, "batch_transform": self._batch}

    def _fetch(self, fetched: np.ndarray) -> np.ndarray:
        self.fetched.append(len(fetched))
        return fetched

    def _take(self, fetched: np.ndarray, places: np.ndarray) -> np.ndarray:
        self.batches.append(len(places))
        return fetched[places]

    def _batch(self, batch: np.ndarray) -> dict[str, Any]:
        self.rows += batch.tolist()
        return {"x": torch.as_tensor(batch), "y": (batch // 10).tolist()}


@pytest.mark.parametrize("threads", [0, 1])
def test_hooks_get_no_padded_rows(threads: int) -> None:
    rows: list[int] = []
    for rank in range(3):
        seen = Seen()
        options = {"rank": rank, "world_size": 3, "epochs": 1, "tail": "short", "threads": threads, "fetch_factor": 2}
        with penstock.CollectionLoader(STORE, global_batch_size=30, seed=3, **options, **seen.hooks()) as loader:
            for batch in loader:
                info = loader.info
                assert batch["x"].tolist() == (info.indices * 10).tolist() and batch["y"] == info.indices.tolist()
                assert len(batch["y"]) == len(info.valid)
        assert sum(seen.fetched) == sum(seen.batches) == len(seen.rows) == len(range(rank, N, 3))
        assert len(info.valid) == 6 and info.indices[-1] == info.indices[len(range(rank, 17, 3)) - 1]
        rows += seen.rows
    assert sorted(rows) == STORE.tolist()


def test_hooks_get_padded_rows_where_they_are_asked_for() -> None:
    def rows_of(**options: Any) -> list[int]:
        seen = Seen()
        options = {"rank": 2, "world_size": 3, "epochs": 1, **options}
        with penstock.CollectionLoader(STORE, global_batch_size=30, seed=3, **options, **seen.hooks()) as loader:
            for batch in loader:
                assert len(batch["y"]) == len(loader.info.valid)
        return seen.batches

    assert rows_of(tail="short", hooks_see_padding=True) == [10, 10, 10, 6]
    assert rows_of(tail="pad", hooks_see_padding=True) == [10, 10, 10, 10]
    assert rows_of(tail="short") == rows_of(tail="pad") == [10, 10, 10, 5]
    assert rows_of(tail="drop") == [10, 10, 10]


def test_uneven_shares_are_padded_behind_the_hooks_too() -> None:
    seen = Seen()
    options = {"rank": 3, "world_size": 4, "epochs": 1, "tail": "short", "uneven": "pad"}
    with penstock.CollectionLoader(STORE, global_batch_size=30, seed=3, **options, **seen.hooks()) as loader:
        assert [len(batch["y"]) for batch in loader] == [8, 8, 8, 5]
    assert seen.batches == [7, 7, 7, 4]


def test_a_rank_without_a_row_has_one_that_is_padding() -> None:
    last = int(penstock.orders.resolve("uniform", N, 3).pick(N - 1, 1, 1)[0][0])
    seen = Seen()
    options = {"rank": 4, "world_size": 5, "epochs": 1, "tail": "short", "global_batch_size": 105}
    with penstock.CollectionLoader(STORE, seed=3, **options, **seen.hooks()) as loader:
        batches = list(loader)
        assert loader.info.valid.tolist() == [False] and loader.info.indices.tolist() == [last]
        assert batches[-1]["y"] == [last] and loader.info.loss_scale == 0.0


def test_a_batch_that_is_not_indexed_by_row_stays_as_it_is() -> None:
    for made in (3.5, "seventeen", {"sum": 1, "rows": 2}, None):
        options = {"rank": 2, "world_size": 3, "epochs": 1, "tail": "short", "global_batch_size": 30}
        transform = {"batch_transform": lambda batch, made=made: made or {"count": len(batch)}}
        with penstock.CollectionLoader(STORE, seed=3, **options, **transform) as loader:
            assert list(loader)[-1] == (made or {"count": 5})


@pytest.mark.parametrize("tail", ["pad", "short"])
def test_each_part_that_is_indexed_by_row_is_padded(tail: Any) -> None:
    class Named(NamedTuple):
        x: Any
        y: list[int]

    def parts(batch: np.ndarray) -> dict[str, Any]:
        inner = {"rows": batch, "genes": np.arange(3)}
        return {"x": torch.as_tensor(batch), "sum": float(batch.sum()), "named": Named(batch, batch.tolist()), **inner}

    options = {"rank": 2, "world_size": 3, "epochs": 1, "tail": tail, "global_batch_size": 30}
    with penstock.CollectionLoader(STORE, seed=3, batch_transform=parts, **options) as loader:
        batch = list(loader)[-1]
        info = loader.info
    expected = (info.indices * 10).tolist()
    assert len(expected) == (10 if tail == "pad" else 6) and expected[5:] == expected[4:5] * (len(expected) - 5)
    assert batch["x"].tolist() == batch["rows"].tolist() == batch["named"].y == expected
    assert isinstance(batch["named"], Named) and batch["named"].x.tolist() == expected
    assert batch["sum"] == sum(expected[:5]) and batch["genes"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("factor", [1, 3, 7, 16])
@pytest.mark.parametrize("tail", ["pad", "short"])
def test_a_fetch_factor_need_be_no_multiple_of_the_block(factor: int, tail: Any) -> None:
    order = penstock.orders.Blocks(8, 64)  # fetches of 10, 30, 70 and 160 rows

    def all_of(fetch_factor: int | None) -> list[list[int]]:
        options = {"order": order, "seed": 1, "epochs": 2, "tail": tail, "fetch_factor": fetch_factor}
        return [batch.tolist() for batch in penstock.CollectionLoader(STORE, 10, **options)]

    assert all_of(factor) == all_of(None)
    assert sorted(list(itertools.chain(*all_of(factor)))[: 2 * N]) == sorted(STORE.tolist() * 2)


def test_processes_give_the_same(tmp_path: Path) -> None:
    options = {"rank": 2, "world_size": 3, "epochs": 1, "tail": "short", "global_batch_size": 30, "seed": 3}
    with penstock.CollectionLoader(STORE, processes=1, **options) as loader:
        other = [(batch.tolist(), loader.info.valid.tolist()) for batch in loader]
    with penstock.CollectionLoader(STORE, threads=0, **options) as loader:
        assert other == [(batch.tolist(), loader.info.valid.tolist()) for batch in loader]
