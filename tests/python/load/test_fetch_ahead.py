"""A loop that fetches its next batch before it saves: the state of the batch trained last leaves none out."""

from __future__ import annotations

from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens

ACCUMULATION, INTERVAL = 3, 4


@pytest.fixture
def view(tmp_path):
    return raw_tokens(tmp_path / "train.bin", 2000)[0].windows(8, lookahead=1)


def train(loader: penstock.Loader, steps: int, checkpoint: dict[str, Any] | None, by_batch: bool = True) -> Any:
    """nanoGPT's train.py: X, Y of the next micro step are fetched after the forward pass, and a checkpoint is saved
    before they are trained. Returns what each micro step was trained on, and all checkpoints."""
    iter_num = 0
    if checkpoint is not None:
        loader.load_state_dict(checkpoint["loader"])
        iter_num = checkpoint["iter_num"]
    state, trained, saved = loader.state_dict(), [], []
    batch = next(loader)
    while True:
        if iter_num % INTERVAL == 0:
            saved.append({"iter_num": iter_num, "loader": state if by_batch else loader.state_dict()})
        if iter_num == steps:
            return trained, saved
        for _ in range(ACCUMULATION):
            trained.append((batch.inputs.tolist(), batch.labels.tolist()))
            last, batch = batch, next(loader)
        state = last.state_dict()
        iter_num += 1


@pytest.mark.parametrize(("order", "prefetch"), [("uniform", 1), (penstock.orders.Blocks(4, 16), 4)])
def test_nanogpts_loop_resumes_without_leaving_out_a_batch(view, order, prefetch):
    def loader() -> penstock.Loader:
        return penstock.Loader(view, 4, seed=1337, order=order, prefetch=prefetch)

    whole, saved = train(loader(), 12, None)
    assert [each["loader"]["position"] for each in saved] == [0, 48, 96, 144]
    for checkpoint in saved:
        assert train(loader(), 12, checkpoint)[0] == whole[checkpoint["iter_num"] * ACCUMULATION :]
    # Why docs and docstrings send such loops to the batch's state.
    _, saved = train(loader(), 4, None, by_batch=False)
    assert saved[-1]["loader"]["position"] == (4 * ACCUMULATION + 1) * 4


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("order", ["uniform", penstock.orders.Blocks(4, 16)])
def test_a_collections_loop_that_fetches_ahead_resumes_by_the_state_of_its_info(order, threads):
    def loader() -> penstock.CollectionLoader:
        return penstock.CollectionLoader(np.arange(500), 4, seed=3, order=order, threads=threads, epochs=2)

    with loader() as plain:
        whole = [batch.tolist() for batch in plain]
    with loader() as one:
        batch, info = next(one), one.info
        for step in range(1, 20):
            trained, last = batch.tolist(), info
            assert trained == whole[step - 1] and last.state_dict() == {**one.state_dict(), "position": step * 4}
            batch, info = next(one), one.info
            with loader() as again:
                again.load_state_dict(last.state_dict())
                assert next(again).tolist() == batch.tolist() == whole[step]
