"""A batch stays what it is for as long as anyone holds it; memory is bounded and recycled."""

from __future__ import annotations

import gc
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import penstock
import pytest
from _datasets import MODES, array, compact, raw_tokens


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_arrays_and_spans_keep_their_memory_after_batch_loader_and_dataset_are_gone(tmp_path, framework):
    dataset, model = compact(tmp_path, [[5, 0, 9, 14, 30, 60, 80]])
    loader = penstock.Loader(dataset.windows(8), 2, order="sequential", framework=framework)
    kept = [(batch["token"], batch.records, batch.spans[0]) for batch in islice(loader, 6)]
    for _ in islice(loader, 30):
        pass
    loader.close()
    del loader, dataset
    shutil.rmtree(tmp_path)
    gc.collect()
    for number, (token, records, span) in enumerate(kept):
        expected = np.stack([model.window(2 * number + row, 8)["token"] for row in range(2)])
        np.testing.assert_array_equal(array(token), expected)
        np.testing.assert_array_equal(records["token"], expected)
        assert span.metadata == model.window_spans(2 * number, 8)[0][-1]
        assert span.raw == model.spans[span.id.entry].raw


def test_a_batch_that_the_caller_writes_to_does_not_change_the_dataset(tmp_path):
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 400)
    with penstock.Loader(dataset.windows(10), 4, order="sequential", epochs=2, framework="numpy") as loader:
        for batch in loader:
            batch["token"][:] = 7
    np.testing.assert_array_equal(np.fromfile(tmp_path / "tokens.bin", "u2"), tokens)


def test_max_bytes_bounds_what_is_held_and_says_so_with_the_count(tmp_path):
    view = raw_tokens(tmp_path / "tokens.bin", 100_000)[0].windows(1000)  # a batch of 8: 16,000 bytes of records

    def held_by(bound: int, framework: str = "numpy") -> int:
        with penstock.Loader(view, 8, max_bytes=bound, prefetch=1, framework=framework) as loader:
            held = []
            with pytest.raises(penstock.InvalidArgumentError, match="max_bytes") as caught:
                for batch in loader:
                    held.append(batch)
                    assert len(held) < 100
            assert f"{len(held)} batches are held" in str(caught.value)
            assert [batch.position for batch in held] == list(range(0, 8 * len(held), 8))
            count = len(held)
            del batch
            held.pop(0)
            assert next(loader).position == 8 * count  # the loader can be asked again, and nothing was lost
            return count

    assert 15 <= held_by(400_000) <= 26
    # torch has an int64 column beside the u2 records: five times as much.
    assert held_by(800_000) > 4 * held_by(800_000, "torch")
    with penstock.Writer(tmp_path / "entries", fields={"token": "u1"}, metadata="raw") as writer:
        for _ in range(200):
            writer.append(token=[1], metadata=bytes(20_000))
    loader = penstock.Loader(penstock.open(tmp_path / "entries").windows(1), 1, max_bytes=800_000, framework="numpy")
    with pytest.raises(penstock.InvalidArgumentError, match="are held"):
        _ = list(islice(loader, 150))  # metadata counts too


def test_loaders_that_are_made_and_dropped_leave_nothing(tmp_path):
    view = MODES["compact"](tmp_path)

    def descriptors() -> list[str]:
        """Those of the view and of rings: other tests' servers, in this process too, close sockets when they like."""
        links = (str(each.readlink()) if each.is_symlink() else "" for each in Path("/proc/self/fd").iterdir())
        return [each for each in links if each.startswith((str(tmp_path), "anon_inode"))]

    def use(view: penstock.View) -> None:
        for number in range(60):
            loader = penstock.Loader(view, 16, framework="numpy", threads=3)
            assert len(next(loader).spans) > 0
            if number % 2:
                loader.close()

    gc.collect()  # what other tests left
    held = len(descriptors())
    use(view)
    assert len(descriptors()) > held
    gc.collect()
    threads, before = len(list(Path("/proc/self/task").iterdir())), resident_bytes()
    use(view)
    gc.collect()
    assert len(list(Path("/proc/self/task").iterdir())) <= threads
    assert resident_bytes() - before < 8 << 20
    del view
    gc.collect()
    assert len(descriptors()) == held


@pytest.mark.parametrize("mode", ["raw", "documents"])
def test_resident_memory_is_flat_over_many_batches(tmp_path, mode):
    view = MODES[mode](tmp_path)
    with penstock.Loader(view, 16, framework="numpy", threads=2) as loader:
        for batch in islice(loader, 2000):
            batch["token"]
        before = resident_bytes()
        for batch in islice(loader, 10_000):
            batch["token"]
        assert resident_bytes() - before < 4 << 20
