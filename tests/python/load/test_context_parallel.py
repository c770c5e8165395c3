"""Context parallelism: only a slice is read, a state goes on with any size, and what is refused.

That the slices of all ranks are the batch, tests/model compares for every view and column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import compact, raw_tokens
from penstock.columns import LossMask

LENGTHS = tuple(tuple((number * 37 + shard * 11) % 29 for number in range(40)) for shard in range(3))


def test_only_the_slice_is_read_and_the_targets_of_its_chunks_where_a_column_is_made_of_them(tmp_path):
    tokens = raw_tokens(tmp_path / "tokens.bin", 64 * 100 + 1)[0]
    parts = [penstock.ContextParallel(0, 4), penstock.ContextParallel(3, 4)]
    parts.append(penstock.ContextParallel(1, 4, "contiguous"))

    def read(lookahead: int, *columns: Any) -> list[float]:
        """Records of a row that each part reads, beside its 16."""
        found = []
        view = tokens.windows(64, lookahead=lookahead)
        for part in parts:
            options = {"epochs": 1, "framework": "numpy", "context_parallel": part, "columns": columns}
            with penstock.Loader(view, 4, **options) as loader:
                rows = sum(int(batch.valid.sum()) for batch in loader)
                found.append(loader.metrics().bytes_read / rows / 2 - 16)
        return found

    mask = LossMask(field="token")
    assert read(1) == read(3) == [2, 1, 1]  # two chunks, two that are one, one chunk
    assert read(1, mask) == [2, 1, 1]
    assert read(0, mask) == [1, 1, 1]  # the last record of a row has no target
    assert read(0) == [0, 0, 0]


@pytest.mark.parametrize("reader", ["auto", "pread", "mmap"])
def test_only_the_slice_is_read_where_rows_share_fetches(tmp_path, reader):
    view = raw_tokens(tmp_path / "tokens.bin", 64 * 100 + 1)[0].windows(64, lookahead=1)
    for order in (penstock.orders.Blocks(2, 8), "sequential"):
        for part, most in (
            (penstock.ContextParallel(0, 4), 2 * 8 + 2),  # a row's first target may be read once
            (penstock.ContextParallel(3, 4), 2 * 8 + 1),
            (penstock.ContextParallel(1, 4, "contiguous"), 17),
        ):
            options = {"order": order, "reader": reader, "epochs": 1, "framework": "numpy"}
            with penstock.Loader(view, 4, context_parallel=part, **options) as loader:
                assert sum(int(batch.valid.sum()) for batch in loader) == 100
                assert loader.metrics().bytes_read <= 100 * most * 2


def test_rows_of_sources_that_pack_otherwise_are_sliced_each_by_its_own_documents(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    sources = {name: dataset.packed(32, multiple_of=each) for name, each in (("a", 4), ("b", 8))}
    mixture = penstock.Mixture(sources, [penstock.Stage()], end=48)
    options: dict[str, Any] = {"columns": ["position_ids", "document_ids"], "framework": "numpy"}
    for rank in range(2):
        options["context_parallel"] = penstock.ContextParallel(rank, 2, "zigzag-documents")
        alone = {}
        for name, view in sources.items():
            (batch,) = penstock.Loader(view, len(view), order="sequential", epochs=1, **options)
            alone[name] = batch
        seen = set()
        for batch in penstock.Loader(mixture, 4, **options):
            for row, (source, index) in enumerate(zip(batch.sources, batch.indices, strict=True)):
                same = alone[mixture.names[source]]
                seen.add(int(source))
                for name in ("inputs", "labels", "position_ids", "document_ids"):
                    found, expected = getattr(batch, name)[row], getattr(same, name)[index]
                    np.testing.assert_array_equal(found, expected, err_msg=name)
        assert seen == {0, 1}


@pytest.mark.parametrize("names", ["ab", "ba"])
def test_a_source_whose_documents_a_token_bounds_is_refused_wherever_it_stands(tmp_path, names):
    dataset, _ = compact(tmp_path, LENGTHS)
    kinds = {"a": dataset.windows(16, lookahead=1, metadata="spans"),
             "b": dataset.windows(16, lookahead=1, metadata="spans", end_of_document=3)}  # fmt: skip
    mixture = penstock.Mixture({name: kinds[name] for name in names}, [penstock.Stage()])
    with pytest.raises(penstock.InvalidArgumentError, match="end_of_document=3"):
        penstock.Loader(mixture, 4, columns=["document_ids"], context_parallel=penstock.ContextParallel(0, 2))


def test_only_the_slice_of_packed_rows_is_read(tmp_path):
    path = tmp_path / "d"
    with penstock.Writer(path, fields={"token": "u2"}, metadata="boundaries") as writer:
        for number in range(64):
            writer.append(token=np.arange(512 * (1 + number % 3)))
    view = penstock.open(path, checks="none").packed(2048, multiple_of=8, metadata=False)
    used = {}
    for size in (1, 4):
        part = penstock.ContextParallel(size - 1, size, "zigzag-documents")
        with penstock.Loader(view, 2, epochs=1, framework="numpy", context_parallel=part) as loader:
            for _ in loader:
                pass
            used[size] = loader.metrics().bytes_read
    index = 16 * 1024  # of documents and rows
    assert used[4] < used[1] / 4 + index and used[1] > 64 * 512 * 2


def test_a_state_is_that_of_whole_rows(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(24, lookahead=1)
    whole, part = (penstock.Loader(view, 4, context_parallel=each) for each in (None, penstock.ContextParallel(1, 2)))
    next(whole), next(part)
    assert whole.state_dict() == part.state_dict()
    part.load_state_dict(whole.state_dict())
    assert next(part).indices.tolist() == next(whole).indices.tolist()


def test_the_order_is_that_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    balancers = pytest.importorskip("torch.distributed.tensor.experimental._context_parallel._load_balancer")
    view = raw_tokens(tmp_path / "tokens.bin", 24 * 8 + 1)[0].windows(24, lookahead=1)
    whole = next(penstock.Loader(view, 2, framework="torch", rank=0, world_size=1)).inputs
    for size in (2, 3, 4):
        order = balancers._HeadTailLoadBalancer(24, size, torch.device("cpu"))._generate_indices()
        shares = whole[:, order.reshape(-1)].chunk(size, dim=1)
        for rank, share in enumerate(shares):
            part = penstock.ContextParallel(rank, size)
            loader = penstock.Loader(view, 2, framework="torch", rank=0, world_size=1, context_parallel=part)
            assert torch.equal(next(loader).inputs, share)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (penstock.ContextParallel(0, 5), "window of 24 is no multiple of 10"),
        (penstock.ContextParallel(2, 2), "ranks go from 0"),
        (penstock.ContextParallel(0, 2, "striped"), "layout='striped'"),
        (penstock.ContextParallel(0, 2, "zigzag-documents"), "packed"),
        (penstock.ContextParallel(), "give rank= and size="),
        ((0, 2), "must be a penstock.ContextParallel"),
    ],
    ids=str,
)
def test_what_cannot_be_shared_is_refused(tmp_path, part, words):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(24, lookahead=1)
    with pytest.raises(penstock.InvalidArgumentError) as caught:
        penstock.Loader(view, 2, context_parallel=part)
    assert words in str(caught.value)


def test_what_a_slice_cannot_give_is_refused(tmp_path):
    part = penstock.ContextParallel(0, 2)
    dataset, _ = compact(tmp_path, LENGTHS)
    with pytest.raises(penstock.InvalidArgumentError, match="no window"):
        penstock.Loader(dataset.documents(), 2, context_parallel=part)
    with pytest.raises(penstock.InvalidArgumentError, match="multiple_of=4"):
        penstock.Loader(dataset.packed(24), 2, context_parallel=penstock.ContextParallel(0, 2, "zigzag-documents"))
    bounded = dataset.windows(24, end_of_document=7)
    with pytest.raises(penstock.InvalidArgumentError, match="bounded by a token"):
        penstock.Loader(bounded, 2, columns=["document_ids"], context_parallel=part)
    batch = next(penstock.Loader(dataset.windows(24), 2, context_parallel=part))
    with pytest.raises(penstock.InvalidArgumentError, match="no records"):
        _ = batch.records
    stages = [penstock.Stage(window=8), penstock.Stage(at=96)]
    grows = penstock.Mixture({"one": dataset.windows(16, lookahead=1)}, stages, group=4)
    with pytest.raises(penstock.InvalidArgumentError, match="window of 8 is no multiple of 16"):
        penstock.Loader(grows, 8, context_parallel=penstock.ContextParallel(0, 8))
