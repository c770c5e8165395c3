"""BatchDataset gives a DataLoader the loader's batches, in its order, with any number of workers of any kind."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
import torch
from _datasets import compact, raw_tokens
from penstock.adapters import _torch_share
from penstock.adapters.torch import BatchDataset
from torch.utils.data import DataLoader

Share = _torch_share.Share  # of one worker


def loaded(dataset: BatchDataset, workers: int = 0, context: str | None = None) -> DataLoader:
    return DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=context)


def assert_same(given: dict[str, Any], batch: penstock.Batch) -> None:
    assert given["position"] == batch.position
    assert given["state_dict"] == batch.state_dict()
    for name in ("indices", "epochs", "sources", "positions", "first_records", "valid"):
        assert torch.equal(given[name], getattr(batch, name)), name
    for name in batch:
        if name in given:
            assert torch.equal(given[name], batch[name]), name
    if "inputs" in given:
        assert torch.equal(given["inputs"], batch.inputs) and torch.equal(given["labels"], batch.labels)
    for name, value in batch.columns.items():
        assert torch.equal(given[name], value), name
    for name in ("global_rows", "loss_scale", "loss_scales"):
        assert given.get(name, getattr(batch, name)) == getattr(batch, name)


def mixture(folder: Path) -> penstock.Mixture:
    folder.mkdir(exist_ok=True)
    views = {}
    for number, name in enumerate(("web", "code")):
        dataset, _ = raw_tokens(folder / f"{name}.bin", 2000 + 300 * number, seed=number)
        views[name] = dataset.windows(16, lookahead=1)
    stages = [
        penstock.Stage({"web": 3, "code": 1}, window=8),
        penstock.Stage({"web": 1, "code": 2}, window=16, at=64),
    ]
    return penstock.Mixture(views, stages, end=150, group=8)


#: A name, and a view with the loader's arguments: whatever changes where batches begin, and how long they are.
JOBS: dict[str, Any] = {
    "epochs": lambda folder: (windows(folder), {"batch_size": 4, "epochs": 2, "seed": 5}),
    "dropped": lambda folder: (windows(folder), {"batch_size": 4, "epochs": 1, "tail": "drop"}),
    "skips": lambda folder: (windows(folder), {"batch_size": 4, "epochs": 1, "skip": [(2, 3), (9, 30), (40, 41)]}),
    "schedule": lambda folder: (windows(folder), {"batch_size": [(0, 2), (9, 4), (50, 3)], "epochs": 2}),
    "rank": lambda folder: (windows(folder), {"global_batch_size": 6, "epochs": 2, "rank": 1, "world_size": 3}),
    "uneven": lambda folder: (
        windows(folder),
        {"global_batch_size": 7, "epochs": 2, "rank": 2, "world_size": 3, "uneven": "pad"},
    ),
    "uneven stages": lambda folder: (
        mixture(folder),
        {"global_batch_size": penstock.Tokens(48), "seed": 2, "rank": 4, "world_size": 5, "uneven": "pad"},
    ),
    "blocks": lambda folder: (windows(folder), {"batch_size": 4, "epochs": 1, "order": penstock.orders.Blocks(2, 8)}),
    "stages": lambda folder: (mixture(folder), {"global_batch_size": penstock.Tokens(64), "seed": 2}),
    "stages dropped": lambda folder: (mixture(folder), {"batch_size": 5, "tail": "drop"}),
    "columns": lambda folder: (documents(folder), {"batch_size": 2, "epochs": 1, "columns": ["position_ids"]}),
}


def windows(folder: Path) -> penstock.View:
    return raw_tokens(folder / "tokens.bin", 531)[0].windows(10, lookahead=1)


def documents(folder: Path) -> penstock.View:
    return compact(folder, [[7, 9, 20], [30, 4], [50, 3, 8]])[0].windows(8, lookahead=1, metadata="spans")


@pytest.mark.parametrize("job", JOBS)
def test_shares_of_workers_are_the_loaders_batches_and_go_on_from_every_step(tmp_path, job, monkeypatch):
    # Workers in this process: every job, many numbers of workers, and blocks short enough to end in the middle.
    monkeypatch.setattr(_torch_share, "_BLOCK", 3)
    view, options = JOBS[job](tmp_path)
    batches = list(penstock.Loader(view, **options))
    dataset = BatchDataset(view, **options)
    assert len(dataset) == len(batches) > 7
    for workers in (1, 2, 7, 30):
        shares = [Share(dataset, worker, workers) for worker in range(workers)]
        for number, batch in enumerate(batches):
            found = next(shares[number % workers])
            assert_same(found, batch)
            assert ("loss_scale" in found) == ("uneven" in options)
        assert all(next(share, None) is None for share in shares)
    for worker in range(3):
        share = Share(dataset, worker, 3)
        own = [batch.position for batch in batches[worker::3]]
        for given in range(len(own) + 1):
            again = Share(dataset, worker, 3)
            again.load_state_dict(share.state_dict())
            assert [batch["position"] for batch in again] == own[given:]
            next(share, None)


@pytest.mark.parametrize(("workers", "context"), [(0, None), (3, "fork"), (2, "spawn")])
def test_workers_of_a_dataloader_give_the_loaders_order(tmp_path, workers, context):
    view = windows(tmp_path)
    options: dict[str, Any] = {"batch_size": 4, "epochs": 2, "seed": 3}
    dataset = BatchDataset(view, **options)
    loader = loaded(dataset, workers, context)
    assert len(loader) == 27
    given = list(loader)
    for found, batch in zip(given, penstock.Loader(view, **options), strict=True):
        assert_same(found, batch)
    # The state after the last batch trained on, though workers have read on; with other workers, and by a Loader.
    state = given[10]["state_dict"]
    dataset.load_state_dict(state)
    rest = [batch["indices"].tolist() for batch in loaded(dataset, 3 - workers, "fork" if workers < 3 else None)]
    assert rest == [batch["indices"].tolist() for batch in given[11:]]
    plain = penstock.Loader(view, **options)
    plain.load_state_dict(state)
    assert [batch.indices.tolist() for batch in plain] == rest


def test_an_endless_run_goes_on_over_blocks_and_epochs(tmp_path, monkeypatch):
    monkeypatch.setattr(_torch_share, "_BLOCK", 4)
    view = windows(tmp_path)
    dataset = BatchDataset(view, 4, seed=1)
    with pytest.raises(TypeError, match="epochs="):
        len(dataset)
    given = [batch["indices"].tolist() for batch in islice(Share(dataset, 0, 1), 40)]
    assert given == [batch.indices.tolist() for batch in islice(penstock.Loader(view, 4, seed=1), 40)]


def shouted(batch: penstock.Batch) -> dict[str, Any]:
    return {"sum": batch.inputs.sum(), "position": batch.position, "state": batch.state_dict(), "process": os.getpid()}


def test_a_transform_runs_in_the_worker_and_the_share_of_a_process_is_the_parents_to_say(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    view = windows(tmp_path)
    dataset = BatchDataset(view, global_batch_size=4, epochs=1, rank="env", transform=shouted)
    monkeypatch.setenv("RANK", "0")
    given = list(loaded(dataset, 2, "fork"))
    assert len({each.pop("process") for each in given} - {os.getpid()}) == 2
    expected = [shouted(each) for each in penstock.Loader(view, global_batch_size=4, epochs=1, rank=1, world_size=2)]
    for each, wanted in zip(given, expected, strict=True):
        assert all(each[name] == wanted[name] for name in ("sum", "position", "state"))


def test_a_batch_whose_transform_fails_comes_again(tmp_path):
    failed: list[int] = []

    def fails_once(batch: penstock.Batch) -> Any:
        if batch.position == 16 and not failed:
            failed.append(1)
            raise RuntimeError("once")
        return batch

    dataset = BatchDataset(windows(tmp_path), 4, epochs=1, transform=fails_once)
    share = Share(dataset, 0, 2)
    assert [next(share)["position"] for _ in range(2)] == [0, 8]
    with pytest.raises(RuntimeError, match="once"):
        next(share)
    assert [batch["position"] for batch in share] == [16, 24, 32, 40, 48]


def test_a_state_that_does_not_go_with_the_job_or_the_workers_is_refused(tmp_path):
    view = windows(tmp_path)
    dataset = BatchDataset(view, 4, seed=1)
    with pytest.raises(penstock.StateMismatchError, match="seed"):
        dataset.load_state_dict(penstock.Loader(view, 4, seed=2).state_dict())
    state = Share(dataset, 0, 2).state_dict()
    with pytest.raises(penstock.InvalidArgumentError, match=r"num_workers=3.*with 2"):
        Share(dataset, 0, 3).load_state_dict(state)
    six = Share(BatchDataset(view, 6, seed=1), 0, 2)
    with pytest.raises(penstock.InvalidArgumentError, match=r"batch sizes \[\[0, 6\]\].*\[\[0, 4\]\]"):
        six.load_state_dict(state)
    with pytest.raises(ValueError, match="state"):
        six.load_state_dict(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("on_mismatch", ["restart", "keep_position"])
def test_a_state_of_another_job_moves_one_process_and_is_refused_by_several_workers(tmp_path, on_mismatch):
    # Several: a StatefulDataLoader asks the worker that was next first (tests/adapters/stateful_dataloader_checks.py).
    view = windows(tmp_path)
    for workers in (1, 2):
        share = Share(BatchDataset(view, 4, seed=1), 0, workers)
        next(share)
        dataset = BatchDataset(view, 4, seed=2, on_mismatch=on_mismatch)
        again = Share(dataset, 0, workers)
        if workers == 1:
            again.load_state_dict(share.state_dict())
            assert next(again)["position"] == (0 if on_mismatch == "restart" else 4)
            continue
        with pytest.raises(penstock.StateMismatchError, match=rf"'{on_mismatch}'.*num_workers=2.*seed"):
            again.load_state_dict(share.state_dict())
        assert next(again)["position"] == 0, "a refused state changes nothing"
        again.load_state_dict(Share(dataset, 0, workers).state_dict())


class Mesh:
    """What is used of a mesh: data 1 of 2, context 1 of 2."""

    shape = (2, 2)
    mesh_dim_names = ("dp", "cp")

    def get_coordinate(self) -> list[int]:
        return [1, 1]


def test_a_meshs_context_parallel_rank_gets_its_slice(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 531)[0].windows(8, lookahead=1)
    for part in (None, penstock.ContextParallel(layout="contiguous")):
        options: dict[str, Any] = {"batch_size": 4, "epochs": 1, "mesh": Mesh(), "context_parallel": part}
        share = Share(BatchDataset(view, **options), 0, 1)
        for found, batch in zip(share, penstock.Loader(view, **options), strict=True):
            assert found["inputs"].shape == (4, 4)
            assert_same(found, batch)


def test_a_column_does_not_hide_another_part_of_a_batch(tmp_path):
    path = tmp_path / "columns"
    with penstock.Writer(path, fields={"token": "u2"}, metadata="json", columns={"valid": "i4"}) as writer:
        for number in range(20):
            writer.append(token=[1, 2, 3], metadata={}, columns={"valid": number})
    view = penstock.open(path).documents(columns=["valid"]).padded()
    with pytest.raises(penstock.InvalidArgumentError, match="the column 'valid'"):
        next(iter(BatchDataset(view, 4)))
    for name in ("indices", "token", "valid"):
        with pytest.raises(penstock.InvalidArgumentError, match="has this name already"):
            penstock.Loader(view, 4, columns=[penstock.columns.PerSpan(name, len, "i4", 0)])


def test_what_workers_cannot_have_is_refused(tmp_path):
    view = windows(tmp_path)
    for options, words in (
        ({"per_epoch": True, "epochs": 2}, "per_epoch=True"),
        ({"pin_memory": True}, "give it to the DataLoader"),
        ({"framework": "numpy"}, "framework='numpy'"),
        ({"epochs": 0}, "epochs"),
        ({"global_batch_size": 4}, "exactly one"),
        ({"columns": ["nonsense"]}, "nonsense"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            BatchDataset(view, 4, **options)
    with pytest.raises(TypeError, match="prefetchh"):
        BatchDataset(view, 4, prefetchh=3)


# ---- loaders that nobody divided


def made(kind: str, view: penstock.View, **options: Any) -> Any:
    if kind == "collection":
        return penstock.CollectionLoader(np.arange(100), 4, epochs=1, **options)
    return (penstock.eval_loader if kind == "eval" else penstock.Loader)(view, 4, epochs=1, **options)


class Inside(torch.utils.data.IterableDataset):
    """What users write who put a loader into a DataLoader: made in the worker, or before it and iterated there."""

    def __init__(self, view: penstock.View) -> None:
        self.view, self.rank = view, {"rank": 0, "world_size": 1}  # which is no permission
        self.early = {kind: made(kind, view) for kind in ("loader", "eval", "collection")}

    def __iter__(self) -> Any:
        for kind, early in self.early.items():
            for options in (None, {}, self.rank):
                for begin in (iter, next):
                    try:
                        loader = early if options is None else made(kind, self.view, **options)
                        yield f"{kind} gave {next(iter(begin(loader)))}"  # type: ignore[operator]
                    except penstock.InvalidArgumentError as error:
                        yield str(error)
        adapter = BatchDataset(self.view, batch_size=4, epochs=1)  # which divides, made in a worker, too
        yield [row for batch in adapter for row in batch["indices"][batch["valid"]].tolist()]


def test_a_loader_in_a_worker_is_refused_and_the_adapter_named_which_divides(tmp_path):
    view = windows(tmp_path)
    said = list(DataLoader(Inside(view), batch_size=None, num_workers=2))
    rows = [each for each in said if isinstance(each, list)]
    assert len(said) == 2 * (3 * 3 * 2 + 1) and sorted(rows[0] + rows[1]) == list(range(len(view)))
    for words in said:
        assert words in rows or re.search(r"each worker would give all rows.*BatchDataset", words), words
    # Without workers a loader in a DataLoader is alone.
    alone = list(DataLoader(Inside(view), batch_size=None))
    assert all(" gave " in words for words in alone[:-1]) and sorted(alone[-1]) == list(range(len(view)))
