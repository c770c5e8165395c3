"""Bucketed: observations of like length together, each once an epoch, whatever the batch size and the ranks."""

from __future__ import annotations

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, array, compact


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


def test_the_order_depends_on_no_batch_size_and_no_rank(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    order = penstock.orders.Bucketed(view.lengths(), pool=7, bucket=3)
    found = []
    for world_size, size in ((1, 1), (1, 5), (2, 3), (3, 2)):
        rows = {}
        for rank in range(world_size):
            options = {"order": order, "seed": 9, "epochs": 3, "tail": "drop", "rank": rank, "world_size": world_size}
            with penstock.Loader(view, size, **options) as loader:
                for batch in loader:
                    for row, index in enumerate(array(batch.indices).tolist()):
                        rows[batch.position + row * world_size + rank] = index
        found.append([rows[position] for position in range(30)])
    assert all(each == found[0] for each in found)
    job = penstock.Job(view, global_batch_size=4, order=order, seed=9)
    assert job.picks(0, 30)["index"].tolist() == found[0]


@pytest.mark.parametrize("rows", ["documents", "padded", "packed"])
def test_restored_at_every_step_on_other_ranks(tmp_path, rows):
    dataset = compact(tmp_path, LENGTHS)[0]
    documents = dataset.documents()
    view = {"documents": documents, "padded": documents.padded(9), "packed": dataset.packed(9)}[rows]
    lengths = np.arange(len(view)) * 7 % 5 if rows == "packed" else view.lengths()
    options = {"order": penstock.orders.Bucketed(lengths, pool=5, bucket=2), "seed": 3, "epochs": 2}

    def rest(state, world_size: int) -> dict[int, int]:
        """Which observation the ranks give at each position."""
        found = {}
        for rank in range(world_size):
            with penstock.Loader(view, 2, rank=rank, world_size=world_size, **options) as loader:
                loader.load_state_dict(state)
                for batch in loader:
                    for row in np.flatnonzero(array(batch.valid)):
                        position = batch.position + int(row) * world_size + rank
                        assert position not in found
                        found[position] = int(array(batch.indices)[row])
        return found

    with penstock.Loader(view, 3, **options) as whole:
        states = [whole.state_dict(), *(batch.state_dict() for batch in whole)]
    all_of = rest(states[0], 1)
    assert sorted(all_of) == list(range(2 * len(view))) and len(states) > 3
    for state in states:
        for world_size in range(1, 6):
            left = {place: index for place, index in all_of.items() if place >= state["position"]}
            assert rest(state, world_size) == left


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
