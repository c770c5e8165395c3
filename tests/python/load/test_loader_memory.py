"""A batch stays what it is for as long as anyone holds it; memory is bounded and recycled."""

from __future__ import annotations

import gc
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import penstock
import pytest
from _datasets import MODES, array, assert_same, compact, raw_tokens, snapshot


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("mode", MODES)
def test_held_batches_keep_their_content_while_others_are_read(tmp_path, mode, framework):
    view = MODES[mode](tmp_path)
    with penstock.Loader(view, 3, seed=1, framework=framework, threads=2, prefetch=2) as loader:
        held = list(islice(loader, 20))
        before = [snapshot(batch) for batch in held]
        for _ in islice(loader, 50):  # these are recycled
            pass
        for batch, content in zip(held, before, strict=True):
            assert_same(snapshot(batch), content)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_one_array_keeps_its_memory_after_batch_loader_and_dataset_are_gone(tmp_path, framework):
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 4000)
    view = dataset.windows(100)
    loader = penstock.Loader(view, 4, order="sequential", framework=framework)
    kept = [(batch["token"], batch.records) for batch in islice(loader, 6)]
    for _ in islice(loader, 30):
        pass
    loader.close()
    del loader, view, dataset
    shutil.rmtree(tmp_path)
    gc.collect()
    for number, (token, records) in enumerate(kept):
        expected = tokens[number * 400 : (number + 1) * 400].reshape(4, 100)
        np.testing.assert_array_equal(array(token), expected)
        np.testing.assert_array_equal(records["token"], expected)


def test_spans_keep_their_memory_after_batch_loader_and_dataset_are_gone(tmp_path):
    dataset, model = compact(tmp_path, [[5, 0, 9, 14, 30]])
    loader = penstock.Loader(dataset.windows(8), 2, order="sequential", framework="numpy")
    kept = [batch.spans[0] for batch in islice(loader, 3)]
    for _ in islice(loader, 20):
        pass
    loader.close()
    del loader, dataset
    shutil.rmtree(tmp_path)
    gc.collect()
    for number, span in enumerate(kept):
        assert span.metadata == model.window_spans(2 * number, 8)[0][-1]
        assert span.raw == model.spans[span.id.entry].raw


def test_a_batch_that_the_caller_writes_to_does_not_change_the_dataset(tmp_path):
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 400)
    with penstock.Loader(dataset.windows(10), 4, order="sequential", epochs=2, framework="numpy") as loader:
        for batch in loader:
            batch["token"][:] = 7
    np.testing.assert_array_equal(np.fromfile(tmp_path / "tokens.bin", "u2"), tokens)


def test_max_bytes_bounds_what_is_held_and_says_so_with_the_count(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 100_000)
    view = dataset.windows(1000)  # a batch of 8: 16,000 bytes of records
    with penstock.Loader(view, 8, max_bytes=400_000, prefetch=2, framework="numpy") as loader:
        held = []
        with pytest.raises(penstock.InvalidArgumentError, match="max_bytes") as caught:
            for batch in loader:
                held.append(batch)
                assert len(held) < 100
        assert 15 <= len(held) <= 25
        assert f"{len(held)} batches are held" in str(caught.value)
        positions = [batch.position for batch in held]
        assert positions == list(range(0, 8 * len(held), 8))
        del batch
        held.pop(0)
        assert next(loader).position == 8 * len(positions)  # the loader can be asked again, and nothing was lost


def test_a_bound_below_what_prefetching_needs_still_works(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 100_000)
    with penstock.Loader(dataset.windows(1000), 8, max_bytes=1, prefetch=3, framework="numpy", epochs=3) as loader:
        assert sum(int(batch.valid.sum()) for batch in loader) == 300


def test_the_bound_counts_columns_and_metadata_too(tmp_path):
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 100_000)
    limit = 800_000
    counts = []
    for framework in ("numpy", "torch"):  # torch has an int64 column beside the u2 records: five times as much
        with penstock.Loader(dataset.windows(1000), 8, max_bytes=limit, prefetch=1, framework=framework) as loader:
            held = []
            with pytest.raises(penstock.InvalidArgumentError):
                for batch in loader:
                    held.append(batch)
            counts.append(len(held))
    assert counts[0] > 4 * counts[1] > 0
    with penstock.Writer(tmp_path / "entries", fields={"token": "u1"}, metadata="raw") as writer:
        for _ in range(200):
            writer.append(token=[1], metadata=bytes(20_000))
    view = penstock.open(tmp_path / "entries").windows(1)
    loader = penstock.Loader(view, 1, max_bytes=limit, prefetch=1, framework="numpy")
    with pytest.raises(penstock.InvalidArgumentError, match="are held"):
        held = list(islice(loader, 150))


@pytest.mark.parametrize("mode", ["raw", "compact", "documents"])
def test_resident_memory_is_flat_over_many_batches(tmp_path, mode):
    view = MODES[mode](tmp_path)
    with penstock.Loader(view, 16, framework="numpy", threads=2) as loader:
        for batch in islice(loader, 2000):
            batch["token"]
        before = resident_bytes()
        for batch in islice(loader, 20_000):
            batch["token"]
        assert resident_bytes() - before < 4 << 20


def test_loaders_that_are_made_and_dropped_leave_nothing(tmp_path):
    view = MODES["compact"](tmp_path)

    def use() -> None:
        for number in range(150):
            loader = penstock.Loader(view, 16, framework="numpy", threads=3)
            next(loader)
            if number % 2:
                loader.close()

    use()
    gc.collect()
    threads, before = len(list(Path("/proc/self/task").iterdir())), resident_bytes()
    use()
    gc.collect()
    assert len(list(Path("/proc/self/task").iterdir())) <= threads
    assert resident_bytes() - before < 8 << 20


def test_descriptors_are_given_back(tmp_path):
    folder = Path("/proc/self/fd")
    gc.collect()  # what other tests left
    before = len(list(folder.iterdir()))
    view = MODES["compact"](tmp_path)
    for _ in range(5):
        with penstock.Loader(view, 4, epochs=1, framework="numpy") as loader:
            assert sum(len(batch.spans) for batch in loader) > 0
    view[0]
    assert len(list(folder.iterdir())) > before
    del loader, view
    gc.collect()
    assert len(list(folder.iterdir())) == before
