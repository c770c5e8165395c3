"""locate: what any global batch consists of, told without reading records; what it says, tests/model compares."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, MODES, compact, raw_tokens
from penstock import Mixture, Stage

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def megatron(folder: Path) -> penstock.Dataset:
    for suffix in ("bin", "idx"):
        shutil.copy(GOLDEN / "megatron" / f"u2_text_document.{suffix}", folder / f"megatron.{suffix}")
    return penstock.open(folder / "megatron")


def mixed(folder: Path) -> Mixture:
    views = {}
    for number, name in enumerate(("web", "code", "books")):
        (folder / name).mkdir()
        lengths = [[3 + (seed * 7 + number) % 19 for seed in range(40 + 9 * number)]]
        views[name] = compact(folder / name, lengths, seed=number)[0].windows(12, lookahead=1)
    stages = [Stage({"web": 3, "code": 1}), Stage(at=37, window=4), Stage({"books": 2, "web": 1}, at=203, window=12)]
    return Mixture(views, stages, caps={"code": 30}, end=260, group=4)


VIEWS = {
    **{mode: MODES[mode] for mode in ("compact", "documents", "packed", "padded", "raw", "opaque")},
    "phase": lambda folder: compact(folder, LENGTHS)[0].windows(6, lookahead=1, phase="random"),
    "megatron": lambda folder: megatron(folder).windows(5, lookahead=1),
    "megatron's documents": lambda folder: megatron(folder).documents(),
    "mixture": mixed,
}


def loader_of(view: Any, **options: Any) -> penstock.Loader:
    if not isinstance(view, Mixture):
        options.setdefault("epochs", 3)
    return penstock.Loader(view, seed=7, rank=0, world_size=1, framework="numpy", threads=1, **options)


def test_it_moves_nothing_and_is_asked_from_anywhere(tmp_path):
    loader = loader_of(compact(tmp_path, LENGTHS)[0].windows(4), batch_size=3, epochs=None)
    assert [row.position for row in loader.locate(10**9)] == [3 * 10**9 + k for k in range(3)]
    next(loader)
    ahead = loader.locate(position=500)
    assert loader.position == 3 and next(loader).position == 3
    loader.seek(500)
    assert next(loader).indices.tolist() == [row.index for row in ahead]
    assert loader.locate(position=loader.state_dict()["position"])[0].position == 503
    loader.rewind()
    next(loader)
    loader.set_batch_size(7)  # which counts from there
    assert [row.position for row in loader.locate(2)] == list(range(10, 17))
    assert [row.position for row in loader.locate(0)] == list(range(3))
    assert next(loader).position == 3 and loader.position == 10


@pytest.mark.parametrize("mode", VIEWS)
def test_no_file_of_records_or_of_entries_is_opened(tmp_path, mode):
    for name in ("whole", "without"):
        (tmp_path / name).mkdir()
    whole, without = (loader_of(VIEWS[mode](tmp_path / name), global_batch_size=6) for name in ("whole", "without"))
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
    expected = loader_of(view, global_batch_size=6).locate(1)
    assert any(row.spans for row in expected) and {span.offset for row in expected for span in row.spans} == {None}


def test_a_collection_is_located():
    options: dict[str, Any] = {"global_batch_size": 8, "seed": 3, "epochs": 2, "skip": [(5, 9)]}
    every = [penstock.CollectionLoader(np.arange(50), rank=rank, world_size=2, **options) for rank in range(2)]
    for step in range(len(every[0])):
        found = every[0].locate(step)
        for rank, loader in enumerate(every):
            next(loader)
            mine = [row for row in found if row.rank == rank]
            assert [row.index for row in mine] == loader.info.indices[loader.info.valid].tolist()
            assert [row.epoch for row in mine] == loader.info.epochs[loader.info.valid].tolist()
            assert {(row.source, row.first_record, len(row.spans)) for row in mine} <= {(0, -1, 0)}
    assert every[0].locate(position=9)[0].position == 9


def test_what_cannot_be_located_or_planned_is_refused(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 1000)[0].windows(10)
    job = penstock.Job(view, global_batch_size=4, epochs=1)
    with pytest.raises(penstock.InvalidArgumentError, match="not a multiple of world size 3"):
        job.locate(0, world_size=3)
    picks = job.picks(95, 5)
    assert {"source", "epoch", "index"} <= set(picks.dtype.names) and picks["epoch"].tolist() == [0] * 5
    with pytest.raises(TypeError, match="endless"):
        len(penstock.Job(view, global_batch_size=8))
    far = r"2\^63"
    for call, words in (
        (lambda: job.plan(0, 0, 3), "not a multiple of world size 3: give uneven"),
        (lambda: job.plan(0, 2, 2), "rank 2 of world size 2"),
        (lambda: job.plan(2**63 + 1, 0, 1), far),
        (lambda: job.picks(2**63, 1), far),
        (lambda: job.picks(0, 2**63), far),
        (lambda: penstock.Job([1, 2], global_batch_size=8), "view"),  # type: ignore[arg-type]
        (lambda: penstock.Job(view, global_batch_size=8, tail="keep"), "tail"),  # type: ignore[arg-type]
    ):  # fmt: skip
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            call()
    cases: list[tuple[tuple[int, ...], dict[str, int], str]] = [
        ((), {}, "exactly one of step and position="),
        ((1,), {"position": 1}, "exactly one of step and position="),
        ((25,), {}, "step 25: the run has 25 batches"),
        ((), {"position": 100}, "position 100: there is no batch: .* the run is over"),
        ((-1,), {}, "step=-1"),
    ]
    for ask in (loader_of(view, batch_size=4, epochs=1).locate, job.locate):
        for step, options, words in cases:
            with pytest.raises(penstock.InvalidArgumentError, match=words):
                ask(*step, **options)
