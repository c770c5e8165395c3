"""Batch.clone(): what a batch offers, in memory of its own that pickles, is queued and saved."""

from __future__ import annotations

import io
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
import torch
from _cells import write_cells
from _refused import refused
from penstock.adapters import _common
from penstock.columns import LossMask

ATTRIBUTES = (
    "inputs", "labels", "records", "cu_seqlens", "max_seqlen", "position_ids", "document_ids", "loss_mask",
    "attention_mask", "lengths", "indices", "epochs", "sources", "first_records", "positions", "valid", "offsets",
    "position", "csr",
)  # fmt: skip


def corpus(path: Path) -> penstock.Dataset:
    with penstock.Writer(path, fields={"token": "u2", "weight": "f4"}, metadata="json") as writer:
        for number in range(30):
            tokens = np.arange(number % 7 + 3) + number
            writer.append(token=tokens, weight=tokens / 2, metadata={"number": number})
    return penstock.open(path)


VIEWS: dict[str, Callable[[penstock.Dataset], penstock.View]] = {
    "columns": lambda dataset: dataset.windows(8, lookahead=1),
    "documents": lambda dataset: dataset.documents(),
    "packed": lambda dataset: dataset.packed(16),
    "padded": lambda dataset: dataset.documents().padded(multiple_of=4),
    "spans": lambda dataset: dataset.windows(8, metadata="spans"),
    "none": lambda dataset: dataset.windows(8, metadata=False),
}


def loader_of(tmp_path: Path, kind: str, framework: Any) -> penstock.Loader:
    options: dict[str, Any] = {"seed": 3, "epochs": 2, "framework": framework}
    if kind == "cells":
        return penstock.Loader(write_cells(tmp_path, cells=20, genes=50, seed=1).dataset.cells("csr"), 7, **options)
    dataset = corpus(tmp_path / "corpus")
    if kind == "mixture":
        views = {"a": dataset.windows(8), "b": dataset.windows(8)[:5]}
        mixture = penstock.Mixture(views, [penstock.Stage({"a": 1, "b": 1})], end=40)
        return penstock.Loader(mixture, 7, seed=3, framework=framework)
    if kind == "columns":
        mask = LossMask(spans=lambda metadata: [[0, metadata["number"] % 3]])
        options |= {"columns": ["cu_seqlens", "position_ids", "document_ids", mask], "max_documents": 40}
    return penstock.Loader(VIEWS[kind](dataset), 7, **options)


def saved(copy: Any) -> Any:
    file = io.BytesIO()
    torch.save(copy, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


def plain(value: Any) -> Any:
    """Values as lists, or how they are refused."""
    if hasattr(value, "layout") and value.layout == torch.sparse_csr:
        return value.to_dense().tolist()
    if hasattr(value, "toarray"):
        return value.toarray().tolist()
    return value.tolist() if hasattr(value, "tolist") else value


def asked(batch: Any, ask: Any) -> Any:
    try:
        return plain(ask(batch))
    except (penstock.Error, AttributeError, KeyError) as error:
        return type(error), str(error)


def told(batch: Any) -> dict[str, Any]:
    """All that a batch says, types of arrays too."""
    found: dict[str, Any] = {"fields": {name: (plain(batch[name]), str(batch[name].dtype)) for name in batch}}
    for name in ATTRIBUTES:
        found[name] = asked(batch, lambda each, name=name: getattr(each, name))
    found["columns"] = {name: plain(values) for name, values in batch.columns.items()}
    found["state"], found["repr"], found["len"] = batch.state_dict(), repr(batch), len(batch)
    found["unknown"] = asked(batch, lambda each: each["unknown"])
    found["spans"] = asked(batch, lambda each: [
        (span.row, span.start, span.stop, span.begins, span.ends, span.offset, span.id, span.source,
         asked(span, lambda of: of.raw), asked(span, lambda of: of.metadata)) for span in each.spans])  # fmt: skip
    found["of rows"] = asked(batch, lambda each: [len(each.spans.of_row(row)) for row in range(7)])
    found["ids"] = asked(batch, lambda each: each.spans.ids)
    return found


@pytest.mark.parametrize(
    ("kind", "framework"),
    [*((kind, "torch") for kind in (*VIEWS, "cells", "mixture")), ("columns", "numpy"), ("cells", "numpy")],
)
def test_a_clone_offers_what_the_batch_does_after_a_pickle_and_torch_save(tmp_path, kind, framework):
    batch = list(loader_of(tmp_path, kind, framework))[-1]
    expected = told(batch)
    copy = batch.clone()
    for each in (copy, pickle.loads(pickle.dumps(copy)), saved(copy), saved(saved(copy)).clone()):
        assert told(each) == expected
        assert isinstance(each, penstock.Batch)
    if framework == "torch":
        assert told(copy.to("cpu")) == expected
        assert _common.tensors(copy).keys() == _common.tensors(batch).keys()


def test_a_clone_has_memory_of_its_own(tmp_path):
    loader = loader_of(tmp_path, "columns", "numpy")
    batch = next(loader)
    copy, expected = batch.clone(), batch.inputs.copy()
    assert not np.shares_memory(copy.inputs, batch.inputs) and not np.shares_memory(copy.records, batch.records)
    batch.inputs[:] = 0
    assert (copy.inputs == expected).all()
    del batch
    held = [next(loader, None).clone() for _ in range(3)]
    assert loader._native.usage[0] <= 6 and len(held) == 3  # a clone counts against no max_bytes


def test_a_view_reads_batches_that_clone_and_pickle_no_other_way(tmp_path):
    refused(r"batch\.clone\(\)", pickle.dumps, next(loader_of(tmp_path / "other", "none", "numpy")), error=TypeError)
    batch = corpus(tmp_path / "corpus").documents().read([3, 1])
    copy = pickle.loads(pickle.dumps(batch.clone()))
    assert copy["token"].tolist() == batch["token"].tolist() and copy.spans[1].metadata == {"number": 1}
    refused("has no state", copy.state_dict)


def test_clones_go_through_a_queue_of_processes(tmp_path):
    """Takes seconds: the other process imports torch."""
    loaders = [loader_of(tmp_path, "columns", "torch"), loader_of(tmp_path / "other", "none", "numpy")]
    copies = [next(loader).clone() for loader in loaders]
    context = multiprocessing.get_context("spawn")
    here, there = context.Queue(), context.Queue()
    child = context.Process(target=echo, args=(here, there, len(copies)))
    child.start()
    for copy in copies:
        here.put(copy)
    assert [told(there.get(timeout=60)) for _ in copies] == [told(copy) for copy in copies]
    here.put(None)
    child.join(60)
    assert child.exitcode == 0


def echo(here: Any, there: Any, count: int) -> None:
    for copy in [here.get(timeout=60) for _ in range(count)]:
        there.put(copy)
    here.get(timeout=60)  # torch's shared memory lives as long as its process


def test_batches_of_collections_pickle_as_they_are():
    loader = penstock.CollectionLoader({"x": np.arange(40) * 2, "y": np.arange(40)}, 8, epochs=1)
    batch = next(loader)
    again = pickle.loads(pickle.dumps((batch, loader.info, loader.state_dict())))
    assert (again[0]["x"] == 2 * loader.info.indices).all() and (again[1].indices == loader.info.indices).all()


@pytest.mark.parametrize("dtype", ["u2", "u4", "u8"])
def test_unsigned_tensors_come_back_from_a_pickle(tmp_path, dtype):
    view = corpus(tmp_path / "corpus").documents()
    batch = next(penstock.Loader(view, 2, dtype={"token": dtype}, framework="torch", rank=0, world_size=1))
    copy = batch.clone()
    for each in (pickle.loads(pickle.dumps(copy)), saved(copy)):
        assert each["token"].dtype == batch["token"].dtype and each["token"].tolist() == batch["token"].tolist()
