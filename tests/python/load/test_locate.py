"""locate: what any global batch consists of, told without reading records, against what all ranks' loaders give."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, bucketed, compact, opaque, orders, raw_tokens
from penstock import Mixture, Stage

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
Told = tuple[Any, ...]


def megatron(folder: Path) -> penstock.Dataset:
    for suffix in ("bin", "idx"):
        shutil.copy(GOLDEN / "megatron" / f"u2_text_document.{suffix}", folder / f"megatron.{suffix}")
    return penstock.open(folder / "megatron")


def mixed(folder: Path, **options: Any) -> Mixture:
    views = {}
    for number, name in enumerate(("web", "code", "books")):
        (folder / name).mkdir()
        lengths = [[3 + (seed * 7 + number) % 19 for seed in range(40 + 9 * number)]]
        views[name] = compact(folder / name, lengths, seed=number)[0].windows(12, lookahead=1, **options)
    stages = [Stage({"web": 3, "code": 1}), Stage(at=37, window=4), Stage({"books": 2, "web": 1}, at=203, window=12)]
    return Mixture(views, stages, caps={"code": 30}, end=260, group=4)


VIEWS = {
    **MODES,
    "phase": lambda folder: compact(folder, LENGTHS)[0].windows(6, lookahead=1, phase="random"),
    "no metadata": lambda folder: compact(folder, LENGTHS)[0].windows(7, metadata=False),
    "spans alone": lambda folder: compact(folder, LENGTHS)[0].documents(metadata="spans"),
    "slice": lambda folder: compact(folder, LENGTHS)[0].windows(4)[::-2],
    "selection": lambda folder: compact(folder, LENGTHS)[0].documents().select([3, 8, 2, 11, 0]),
    "held out": lambda folder: compact(folder, LENGTHS)[0].documents().split(3)[1],
    "truncated": lambda folder: compact(folder, LENGTHS)[0].documents().padded(6, side="left"),
    "split rows": lambda folder: compact(folder, LENGTHS)[0].packed(6, multiple_of=2),
    "megatron": lambda folder: megatron(folder).windows(5, lookahead=1),
    "megatron's documents": lambda folder: megatron(folder).documents(),
    "mixture": mixed,
    "mixture of phases": lambda folder: mixed(folder, phase="random"),
}
SCHEDULE = [(0, 6), (20, 12), (44, 18)]


def told(row: penstock.LocatedRow) -> Told:
    spans = [(span.start, span.stop, span.offset, tuple(span.id), span.begins, span.ends) for span in row.spans]
    return (row.rank, row.row, row.source, row.epoch, row.index, row.first_record, spans)


def given(batch: penstock.Batch, rank: int, spans: list[list[Any]] | None) -> list[Told]:
    """What a rank's batch says of its rows that are no padding; `spans` in place of its own."""
    columns = (batch.sources, batch.epochs, batch.indices, batch.first_records)
    rows = []
    for row in np.flatnonzero(batch.valid).tolist():
        own = batch.spans.of_row(row) if spans is None else spans[row]
        of_row = [(span.start, span.stop, span.offset, tuple(span.id), span.begins, span.ends) for span in own]
        rows.append((rank, row, *(int(column[row]) for column in columns), of_row))
    return rows


def loaders(view: Any, ranks: int, **options: Any) -> list[penstock.Loader]:
    if not isinstance(view, Mixture):
        options.setdefault("epochs", 3)
    return [
        penstock.Loader(view, seed=7, rank=rank, world_size=ranks, framework="numpy", threads=1, **options)
        for rank in range(ranks)
    ]


def assert_located(view: Any, ranks: int, **options: Any) -> None:
    """Every step of the run, located before it is read, is what all ranks get."""
    every = loaders(view, ranks, **options)
    own = {key: value for key, value in options.items() if key != "epochs"}
    epochs = {} if isinstance(view, Mixture) else {"epochs": options.get("epochs", 3)}
    job = penstock.Job(view, seed=7, **{"global_batch_size": 6, **own}, **epochs)
    has_spans = isinstance(view, Mixture) or view.metadata is not False
    count = 0
    for step in range(len(every[0])):
        found = every[-1].locate(step)
        batches = [next(each) for each in every]
        begin = batches[0].position
        assert found == every[0].locate(position=begin) == job.locate(step, world_size=ranks)
        without = None
        if not has_spans:
            plain = view.dataset.windows(view.window, view.lookahead)
            without = [[*plain.read([at]).spans] if at >= 0 else [] for at in range(-1, len(view))]
        rows = [
            row
            for rank, batch in enumerate(batches)
            for row in given(batch, rank, None if without is None else [without[at + 1] for at in batch.indices])
        ]
        rows.sort(key=lambda row: (row[1], row[0]))
        assert [told(row) for row in found] == rows, f"step {step}"
        picks = job.picks(found[0].position, found[-1].position + 1 - found[0].position)
        for row in found:  # positions that are skipped lie between them
            pick = picks[row.position - found[0].position]
            assert pick.tolist() == (row.source, row.epoch, row.index, row.first_record)
        count += len(found)
    assert count > 0 and all(next(each, None) is None for each in every)
    with pytest.raises(penstock.InvalidArgumentError, match=f"step {len(every[0])}: the run has {len(every[0])} batch"):
        every[0].locate(len(every[0]))


@pytest.mark.parametrize("mode", VIEWS)
def test_every_view_is_located_as_it_is_read(tmp_path, mode):
    assert_located(VIEWS[mode](tmp_path), ranks=3, global_batch_size=6)


@pytest.mark.parametrize("mode", ["compact", "documents", "packed", "mixture"])
def test_batch_sizes_that_change_and_positions_that_are_skipped(tmp_path, mode):
    view = VIEWS[mode](tmp_path)
    assert_located(view, 2, global_batch_size=SCHEDULE, skip=[(3, 8), (30, 31)])
    assert_located(view, 2, global_batch_size=SCHEDULE, tail="drop")
    if mode != "mixture":
        assert_located(view, 2, global_batch_size=SCHEDULE, per_epoch=True, epochs=1)


@pytest.mark.parametrize("order", [*orders(), "bucketed"])
def test_every_order_is_located(tmp_path, order):
    view = compact(tmp_path, LENGTHS)[0].documents()
    assert_located(view, 2, global_batch_size=6, order={**orders(), "bucketed": bucketed(view)}[order])


def test_draws_are_located(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    assert_located(view, 2, global_batch_size=6, order=penstock.orders.Weighted(np.arange(len(view))))


def test_a_batch_size_that_was_set_counts_from_there(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    (loader,) = loaders(view, 1, batch_size=4)
    next(loader)
    loader.set_batch_size(7)
    assert [row.position for row in loader.locate(2)] == list(range(11, 18))
    assert [row.position for row in loader.locate(0)] == list(range(4))
    assert next(loader).position == 4 and loader.position == 11


def test_it_moves_nothing_and_is_asked_from_anywhere(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].windows(4)
    (loader,) = loaders(view, 1, batch_size=3, epochs=None)
    far = loader.locate(10**9)
    assert [row.position for row in far] == [3 * 10**9 + k for k in range(3)]
    next(loader)
    ahead = loader.locate(position=500)
    assert loader.position == 3 and next(loader).position == 3
    loader.seek(500)
    assert next(loader).indices.tolist() == [row.index for row in ahead]
    state = loader.state_dict()
    assert loader.locate(position=state["position"])[0].position == 503


@pytest.mark.parametrize("mode", ["compact", "documents", "boundaries", "packed", "padded", "phase", "mixture", "raw",
                                  "megatron", "megatron's documents", "opaque", "stream"])  # fmt: skip
def test_no_file_of_records_or_of_entries_is_opened(tmp_path, mode):
    for name in ("whole", "without"):
        (tmp_path / name).mkdir()
    (whole,) = loaders(VIEWS[mode](tmp_path / "whole"), 1, global_batch_size=6)
    (without,) = loaders(VIEWS[mode](tmp_path / "without"), 1, global_batch_size=6)
    removed = 0
    for name in ("stream.bin", "metadata.bin", "tokens.bin", "megatron.bin"):
        for path in (tmp_path / "without").rglob(name):
            path.unlink()
            removed += 1
    assert removed > 0
    assert [without.locate(step) for step in range(len(without))] == [whole.locate(step) for step in range(len(whole))]
    with pytest.raises(penstock.NotFoundError):
        next(without)


def test_the_ids_layout_reads_ids_and_no_entry(tmp_path):
    view = MODES["ids"](tmp_path)
    for path in tmp_path.rglob("metadata.bin"):
        path.unlink()
    expected = loaders(view, 1, global_batch_size=6)[0].locate(1)
    assert any(row.spans for row in expected) and {span.offset for row in expected for span in row.spans} == {None}


def test_a_collection_is_located(tmp_path):
    store = np.arange(50)
    options: dict[str, Any] = {"global_batch_size": 8, "seed": 3, "epochs": 2, "skip": [(5, 9)]}
    every = [penstock.CollectionLoader(store, rank=rank, world_size=2, **options) for rank in range(2)]
    for step in range(len(every[0])):
        found = every[0].locate(step)
        for rank, loader in enumerate(every):
            next(loader)
            mine = [row for row in found if row.rank == rank]
            assert [row.index for row in mine] == loader.info.indices[loader.info.valid].tolist()
            assert [row.epoch for row in mine] == loader.info.epochs[loader.info.valid].tolist()
            assert {(row.source, row.first_record, len(row.spans)) for row in mine} <= {(0, -1, 0)}
    assert every[0].locate(position=9)[0].position == 9


def test_what_cannot_be_located_is_refused(tmp_path):
    (loader,) = loaders(raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10), 1, batch_size=4, epochs=1)
    job = penstock.Job(loader._view, global_batch_size=4, epochs=1)
    for ask in (loader.locate, job.locate):
        with pytest.raises(penstock.InvalidArgumentError, match="exactly one of step and position="):
            ask()
        with pytest.raises(penstock.InvalidArgumentError, match="exactly one of step and position="):
            ask(1, position=1)
        with pytest.raises(penstock.InvalidArgumentError, match="step 25: the run has 25 batches"):
            ask(25)
        with pytest.raises(penstock.InvalidArgumentError, match=r"position 100: there is no batch: .* the run is over"):
            ask(position=100)
        with pytest.raises(penstock.InvalidArgumentError, match="step=-1"):
            ask(-1)
    with pytest.raises(penstock.InvalidArgumentError, match="not a multiple of world size 3"):
        job.locate(0, world_size=3)


def test_picks_tell_first_records(tmp_path):
    dataset = compact(tmp_path, LENGTHS)[0]
    for view in (dataset.windows(4), dataset.windows(4, phase="random"), dataset.documents(), dataset.packed(9)):
        job = penstock.Job(view, global_batch_size=4, seed=1)
        picks = job.picks(0, 3 * len(view))
        with penstock.Loader(view, 1, seed=1, framework="numpy", epochs=3) as loader:
            assert picks["first_record"].tolist() == [int(batch.first_records[0]) for batch in loader]
        assert job.picks(5, 0)["first_record"].tolist() == []
    assert set(penstock.Job(opaque(tmp_path, 9)[0].documents(), global_batch_size=4).picks(0, 9)["first_record"]) == {
        -1
    }
