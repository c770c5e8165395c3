"""The path of pinned memory, on a machine without an accelerator: ordinary tensors are lent instead of pinned ones."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from itertools import islice
from typing import Any

import penstock
import penstock._load.loader
import pytest
import torch
from _datasets import MODES, array, assert_all_same, assert_same, raw_tokens, snapshot
from penstock.columns import LossMask, PerSpan

COLUMNS = ["cu_seqlens", "position_ids", "document_ids"]
VIEWS: dict[str, Any] = {
    "raw": (MODES["raw"], {}),
    "padded": (MODES["padded"], {}),
    "sequences": (MODES["compact"], {"columns": COLUMNS}),
    "sequences of documents": (MODES["documents"], {"columns": COLUMNS, "max_documents": 40}),
    "masks": (MODES["compact"], {"columns": [LossMask(field="token"), PerSpan("number", lambda m: m["number"], "f4")]}),
}


@pytest.mark.parametrize("what", VIEWS)
def test_the_same_batches_in_lent_memory(tmp_path, what, lender):
    make, more = VIEWS[what]
    view = make(tmp_path)
    options = {"batch_size": 3, "epochs": 2, "seed": 2, "framework": "torch", "threads": 2, **more}

    def contents(batch: penstock.Batch) -> dict[str, Any]:
        return {**snapshot(batch), **{name: array(each) for name, each in batch.columns.items()}}

    with penstock.Loader(view, **options) as plain:
        expected = [contents(batch) for batch in plain]
    assert not lender.lent
    with penstock.Loader(view, **options, pin_memory=True) as pinned:
        for batch, wanted in zip(pinned, expected, strict=True):
            assert_same(contents(batch), wanted)
            own = batch.columns.values()  # slices of what was lent, and moved as the fields are
            assert len({each.untyped_storage().data_ptr() for each in own}) == bool(own)
            assert {each.device.type for each in batch.to("meta").columns.values()} == ({"meta"} if own else set())
        del batch, own
    assert len(lender.lent) >= len(expected)
    assert lender.alive() == 0


@pytest.mark.parametrize("mode", ["raw", "documents"])
def test_tensors_are_slices_of_what_was_lent_and_keep_it(tmp_path, mode, lender):
    loader = penstock.Loader(MODES[mode](tmp_path), 4, pin_memory=True, prefetch=2)
    batch = next(loader)
    tensor = batch.inputs if mode == "raw" else batch["token"]
    storages = {each().untyped_storage().data_ptr() for each in lender.lent if each() is not None}  # type: ignore[union-attr]
    assert tensor.untyped_storage().data_ptr() in storages  # so torch's allocator knows of copies from it
    content = tensor.clone()
    del batch
    for _ in islice(loader, 60):
        pass
    assert len(lender.lent) >= 60 and lender.alive() <= 2 + 2 + 1 + 1  # it is given back while the loader runs
    loader.close()
    del loader
    assert lender.alive() <= 2  # what the tensor is a slice of, and that of the last batch
    assert torch.equal(tensor, content)


def test_an_allocator_that_fails_is_the_error_of_next_after_what_was_lent_for_and_nothing_is_lost(tmp_path, lender):
    view = MODES["documents"](tmp_path)
    with penstock.Loader(view, 1, framework="torch", epochs=1) as plain:
        expected = [snapshot(batch) for batch in plain]
    with penstock.Loader(view, 1, pin_memory=True, prefetch=3, epochs=1) as loader:
        given = [snapshot(next(loader))]
        for _ in range(2):
            before = len(lender.lent)
            lender.fail = True
            with pytest.raises(MemoryError, match="no pinned memory"):
                given.extend(snapshot(batch) for batch in loader)
            assert len(given) == before == loader.position
            lender.fail = False
            given.append(snapshot(next(loader)))
        given.extend(snapshot(batch) for batch in loader)
        assert_all_same(given, expected)


def test_held_slices_count_against_max_bytes(tmp_path, lender):
    view = raw_tokens(tmp_path / "tokens.bin", 4000)[0].windows(10)
    with penstock.Loader(view, 4, pin_memory=True, prefetch=2, max_bytes=1) as loader:
        with pytest.raises(penstock.InvalidArgumentError, match="4 batches are held"):
            held = [batch["token"] for batch in loader]  # the arrays alone; their batches are let go
        held = None
        assert loader.position == 16 and held is None
        next(loader)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_without_an_accelerator_it_is_refused_in_words(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 400)[0].windows(10)
    for framework, words in (("torch", "accelerator"), ("numpy", "torch")):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(view, 4, pin_memory=True, framework=framework)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_pinned_memory_stays_until_copies_from_it_have_ended(tmp_path):
    """Batches are dropped while their copies may still be under way, and their memory is wanted by the next ones."""
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 64 * 65_536)
    view = dataset.windows(65_536)
    with penstock.Loader(view, 8, order="sequential", pin_memory=True, prefetch=2, epochs=4) as loader:
        copies = []
        for batch in loader:
            assert batch["token"].is_pinned()
            torch.cuda._sleep(20_000_000)  # the copy waits for this, the loader does not
            copies.append((batch.indices.tolist(), batch["token"].to("cuda", non_blocking=True)))
    torch.cuda.synchronize()
    for indices, copy in copies:
        expected = torch.from_numpy(tokens.reshape(64, 65_536)[indices].astype("i8"))
        assert torch.equal(copy.cpu(), expected)


def test_lent_memory_is_freed_with_the_gil_after_a_sub_interpreter_too(tmp_path):
    # From then on PyGILState_Check() answers yes on every thread. The engine's threads drop batches of which a seek
    # made them the last holders.
    script = """
import ctypes
import gc
import os, sys, threading
try:
    import _xxsubinterpreters
except ImportError:  # from Python 3.13 on
    import _interpreters as _xxsubinterpreters
import penstock, penstock._load.loader
_xxsubinterpreters.destroy(_xxsubinterpreters.create())
main, wrong = threading.get_ident(), []
class Owner:
    def __del__(self):
        if threading.get_ident() != main:
            wrong.append(self)
def allocate(size):
    owner = Owner()
    owner.buffer = (ctypes.c_char * (size + 64))()
    return owner, (ctypes.addressof(owner.buffer) + 63) // 64 * 64
penstock._load.loader.pinned_allocator = lambda torch: allocate
view = penstock.open(sys.argv[1], dtype="u2").windows(10_000)
with penstock.Loader(view, 64, pin_memory=True, threads=4, prefetch=8, max_bytes=1 << 30) as loader:
    for n in range(60):
        next(loader)
        loader.seek(n)
sys.exit(len(wrong) > 0)
"""
    raw_tokens(tmp_path / "tokens.bin", 2_000_000)
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "tokens.bin"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_lets_lent_memory_be(tmp_path, lender):
    with penstock.Loader(MODES["raw"](tmp_path), 4, pin_memory=True, prefetch=2) as loader:
        batch = next(loader)
        tensor = batch.inputs
        content = tensor.clone()
        child = os.fork()
        if child == 0:
            same = torch.equal(tensor, content)
            del batch, tensor
            refused = False
            try:
                next(loader)
            except penstock.InvalidArgumentError:
                refused = True
            del loader
            gc.collect()
            os._exit(0 if same and refused else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert torch.equal(tensor, content)
        next(loader)
