"""Context parallelism: slices of all ranks are the batch, only a slice is read, and a state goes on with any size."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import compact, raw_tokens
from penstock.columns import Labels, LossMask, PerSpan

LENGTHS = tuple(tuple((number * 37 + shard * 11) % 29 for number in range(40)) for shard in range(3))
ARRAYS = ("inputs", "labels", "position_ids", "document_ids")
COLUMNS: list[Any] = ["cu_seqlens", "position_ids", "document_ids"]


def chunks(records: Any, rank: int, size: int, layout: str) -> np.ndarray:
    """The rank's part of the records of a row, or of one document."""
    parts = np.split(np.asarray(records), size if layout == "contiguous" else 2 * size)
    return parts[rank] if layout == "contiguous" else np.concatenate([parts[rank], parts[2 * size - 1 - rank]])


def places(batch: penstock.Batch, row: int, window: int, rank: int, size: int, layout: str, multiple: int) -> Any:
    """Which records of a row are the rank's, by the definition."""
    if layout != "zigzag-documents":
        return chunks(np.arange(window), rank, size, layout)
    spans = batch.spans.of_row(row)
    last = -(-spans[-1].stop // multiple) * multiple if spans else 0
    bounds = sorted({0, *(span.start for span in spans), last, window})
    pieces = [np.arange(begin, end) for begin, end in itertools.pairwise(bounds)]
    return np.concatenate([chunks(piece, rank, size, layout) for piece in pieces])


def views(folder: Path) -> dict[str, tuple[penstock.View, list[Any]]]:
    dataset, _ = compact(folder, LENGTHS)
    masks = [LossMask(field="token"), LossMask(spans=lambda metadata: [[1, 3], [5, 9]]), Labels(cross_document=False)]
    number = PerSpan("number", lambda metadata: metadata["number"], "i4", fill=-1)
    return {
        "windows": (dataset.windows(24, lookahead=1), [*COLUMNS, *masks, number]),
        "phase": (dataset.windows(24, lookahead=1, phase="random"), [*COLUMNS, *masks, number]),
        "part": (dataset.windows(24, lookahead=3)[::2], COLUMNS),
        "no labels": (dataset.windows(24), [*COLUMNS, *masks, number]),
        "packed": (dataset.packed(24, multiple_of=4), [*COLUMNS, *masks, number]),
    }


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


@pytest.mark.parametrize("order", [penstock.orders.Blocks(2, 8), "sequential"])
@pytest.mark.parametrize("reader", ["auto", "pread", "mmap"])
def test_only_the_slice_is_read_where_rows_share_fetches(tmp_path, order, reader):
    view = raw_tokens(tmp_path / "tokens.bin", 64 * 100 + 1)[0].windows(64, lookahead=1)

    def read(part: penstock.ContextParallel) -> int:
        options = {"order": order, "reader": reader, "epochs": 1, "framework": "numpy"}
        with penstock.Loader(view, 4, context_parallel=part, **options) as loader:
            for _ in loader:
                pass
            return loader.metrics().bytes_read

    assert read(penstock.ContextParallel(0, 4)) <= 100 * (2 * 8 + 2) * 2  # a row's first target may be read once
    assert read(penstock.ContextParallel(3, 4)) <= 100 * (2 * 8 + 1) * 2
    assert read(penstock.ContextParallel(1, 4, "contiguous")) <= 100 * 17 * 2


@pytest.mark.parametrize("multiples", [(4, 4), (4, 8)])
def test_rows_of_sources_that_pack_otherwise_are_sliced_each_by_its_own_documents(tmp_path, multiples):
    view, columns = views(tmp_path)["packed"]
    sources = {name: view.dataset.packed(32, multiple_of=each) for name, each in zip("ab", multiples, strict=True)}
    mixture = penstock.Mixture(sources, [penstock.Stage()], end=48)
    options = {"batch_size": 4, "columns": columns, "framework": "numpy"}
    whole = penstock.Loader(mixture, **options)
    parts = [penstock.ContextParallel(rank, 2, "zigzag-documents") for rank in range(2)]
    slices = [penstock.Loader(mixture, context_parallel=part, **options) for part in parts]
    for batch in whole:
        for rank, loader in enumerate(slices):
            part = next(loader)
            for row in range(4):
                multiple = multiples[batch.sources[row]]
                at = places(batch, row, 32, rank, 2, "zigzag-documents", multiple)
                for name in (*ARRAYS, "loss_mask"):
                    np.testing.assert_array_equal(getattr(part, name)[row], getattr(batch, name)[row, at], err_msg=name)
                np.testing.assert_array_equal(part.columns["number"][row], batch.columns["number"][row, at])


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


def test_a_state_goes_on_with_another_size(tmp_path):
    view = views(tmp_path)["windows"][0]
    options = {"batch_size": 4, "seed": 1, "framework": "numpy"}
    first = penstock.Loader(view, context_parallel=penstock.ContextParallel(1, 2), **options)
    assert first.state_dict() == penstock.Loader(view, **options).state_dict()
    next(first)
    state = first.state_dict()
    expected = [next(first).indices.tolist() for _ in range(3)]
    for part in (None, penstock.ContextParallel(0, 3), penstock.ContextParallel(2, 4, "contiguous")):
        again = penstock.Loader(view, context_parallel=part, **options)
        again.load_state_dict(state)
        assert [next(again).indices.tolist() for _ in range(3)] == expected


def test_a_mixture_with_windows_that_grow_is_sliced_at_each_window(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 16 * 400 + 1)[0].windows(16, lookahead=1)
    stages = [penstock.Stage(window=8), penstock.Stage(window=16, at=96)]
    mixture = penstock.Mixture({"one": view}, stages, group=4)
    options = {"batch_size": 8, "framework": "numpy"}
    whole = penstock.Loader(mixture, **options)
    slices = [penstock.Loader(mixture, context_parallel=penstock.ContextParallel(r, 2), **options) for r in range(2)]
    for batch in (next(whole) for _ in range(20)):
        window = batch.inputs.shape[1]
        found = np.zeros_like(batch.inputs)
        for rank, loader in enumerate(slices):
            found[:, chunks(np.arange(window), rank, 2, "zigzag")] = next(loader).inputs
        np.testing.assert_array_equal(found, batch.inputs)
    with pytest.raises(penstock.InvalidArgumentError, match="window of 8 is no multiple of 16"):
        penstock.Loader(mixture, 8, context_parallel=penstock.ContextParallel(0, 8))


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
