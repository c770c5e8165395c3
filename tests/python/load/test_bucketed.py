"""Bucketed: observations of like length together, each once an epoch, whatever the batch size and the ranks."""

from __future__ import annotations

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, compact


def test_an_epoch_is_every_document_and_batches_are_alike(tmp_path):
    random = np.random.default_rng(0)
    lengths = np.clip(random.lognormal(4, 1, 6000), 1, 2000).astype(int)
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "boundaries") as writer:
        writer.append_batch(lengths.astype("u8"), token=np.ones(lengths.sum(), "u2"))
    view = penstock.open(tmp_path / "d").documents(metadata=False).padded()
    assert view.lengths().tolist() == lengths.tolist()

    def waste(order) -> float:
        room = used = 0
        seen = []
        with penstock.Loader(view, 64, order=order, epochs=1, framework="numpy") as loader:
            for batch in loader:
                valid = batch.valid
                room += int(valid.sum()) * batch["token"].shape[1]
                used += int(batch.lengths.sum())
                seen += batch.indices[valid].tolist()
        assert sorted(seen) == list(range(6000)) and used == lengths.sum()
        return 1 - used / room

    assert waste(penstock.orders.Bucketed(view.lengths())) < 0.2 < 0.7 < waste("uniform")


def test_other_lengths_are_another_job(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    with penstock.Loader(view, 2, order=penstock.orders.Bucketed(view.lengths())) as loader:
        next(loader)
        state = loader.state_dict()
    for other in (penstock.orders.Bucketed(view.lengths() + 1), penstock.orders.Bucketed(view.lengths(), pool=64)):
        with penstock.Loader(view, 2, order=other) as loader, pytest.raises(penstock.StateMismatchError):
            loader.load_state_dict(state)


def test_what_cannot_be_is_refused(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    for options, named in [
        ({"lengths": [[1]]}, "shape"), ({"lengths": [0.5]}, "type"), ({"lengths": [-1]}, "-1"),
        ({"lengths": [1 << 32]}, "2\\*\\*32"), ({"lengths": [1], "pool": 0}, "pool"),
        ({"lengths": [1], "pool": 1 << 25}, "pool"), ({"lengths": [1], "bucket": 0}, "bucket"),
        ({"lengths": [1], "pool": 4, "bucket": 5}, "bucket 5"),
    ]:  # fmt: skip
        with pytest.raises(penstock.InvalidArgumentError, match=named):
            penstock.orders.Bucketed(**options)
    with pytest.raises(penstock.InvalidArgumentError, match="3 lengths for a view of 14"):
        penstock.Loader(view, 2, order=penstock.orders.Bucketed([1, 2, 3]))
