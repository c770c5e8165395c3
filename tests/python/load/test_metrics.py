"""loader.metrics(): what was counted, its text for Prometheus, and the range in a profile."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import re
import threading
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens

WINDOW = 100


def loader(folder: Any, **options: Any) -> penstock.Loader:
    view = raw_tokens(folder / "tokens.bin", 20_000)[0].windows(WINDOW)
    return penstock.Loader(view, **{"batch_size": 7, "epochs": 1, "framework": "numpy", **options})


@pytest.mark.parametrize("reader", ["pread", "auto", "direct", "mmap"])
def test_counts_are_those_of_what_was_given(tmp_path, reader):
    for order in ("uniform", penstock.orders.Blocks(4, 32)):
        with loader(tmp_path, reader=reader, order=order) as given:
            none = given.metrics()
            assert (none.batches, none.observations, none.reads, none.stalls, none.stall_seconds) == (0, 0, 0, 0, 0.0)
            assert given.reader in ({"uring", "pread"} if reader == "auto" else {reader}) and given.threads >= 1
            batches = sum(1 for _ in given)
            found = given.metrics()
        assert (found.batches, found.observations) == (batches, 200)
        # A fetch is read with what lies between its rows, which are small here.
        assert found.bytes_read == 40_000 if order == "uniform" else 40_000 <= found.bytes_read < 400_000
        assert found.reads + found.merged_reads == 200 if order == "uniform" else 0 < found.reads < 200
        assert found.read_seconds.count == found.reads and found.read_seconds.sum > 0
        assert 0 <= found.stalls <= batches and (found.stall_seconds > 0) == (found.stalls > 0)
        assert found.retries == 0 and found.memory_bytes >= 0 and 0 <= found.queue_depth <= 4
        assert given.metrics().batches == batches  # of a loader that is closed, too


def test_any_thread_may_ask_while_another_one_waits(tmp_path):
    seen = []
    with loader(tmp_path, epochs=None) as given:
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                seen.append(given.metrics())

        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(500):
            next(given)
        stop.set()
        watcher.join()
    for before, after in itertools.pairwise(seen):
        for name in ("batches", "observations", "bytes_read", "reads", "merged_reads", "stalls", "stall_seconds"):
            assert getattr(before, name) <= getattr(after, name)


def test_a_line_and_a_text_for_prometheus(tmp_path):
    with loader(tmp_path) as given:
        for _ in given:
            pass
        found = given.metrics()
    assert str(found).startswith("29 batches, 200 observations; 40,000 bytes in 200 reads of ")
    assert "\n" not in str(found)
    text = found.prometheus({"rank": "3", "run": 'a "b"\n'})
    labels = r'rank="3",run="a \\"b\\"\\n"'
    assert re.search(rf"^penstock_batches_total{{{labels}}} 29$", text, re.M)
    assert re.search(rf"^penstock_queue_depth{{{labels}}} \d+$", text, re.M)
    buckets = re.findall(rf'^penstock_read_seconds_bucket{{{labels},le="([^"]+)"}} (\d+)$', text, re.M)
    assert [float(bound) for bound, _ in buckets] == [*found.read_seconds.bounds, float("inf")]
    assert [int(count) for _, count in buckets] == np.cumsum(found.read_seconds.counts).tolist()
    assert buckets[-1][1] == "200" and "penstock_read_seconds_count{rank=" in text
    for line in text.splitlines():
        assert re.fullmatch(r"# (HELP|TYPE) penstock_\w+ .+|penstock_\w+({.*})? [0-9.e+-]+", line), line
    if importlib.util.find_spec("prometheus_client"):
        parser = importlib.import_module("prometheus_client.parser")
        families = {each.name: each for each in parser.text_string_to_metric_families(found.prometheus())}
        assert families["penstock_read_seconds"].type == "histogram"
        assert families["penstock_batches"].samples[0].value == 29
    assert "penstock_stalls_total 0" in penstock.Metrics(**{**vars(found), "stalls": 0}).prometheus()
    for labels in ({"le": "1"}, {"a-b": "1"}, {"": "x"}):
        with pytest.raises(penstock.InvalidArgumentError, match="is no name of a label"):
            found.prometheus(labels)


def test_a_profile_has_a_range_for_next(tmp_path):
    torch = pytest.importorskip("torch")
    with loader(tmp_path, framework="torch") as given:
        next(given)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(3):
                next(given)
        next(given)
    assert {each.key: each.count for each in profile.key_averages()}["penstock.next"] == 3


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_none(tmp_path):
    with loader(tmp_path) as given:
        next(given)
        child = os.fork()
        if child == 0:
            try:
                given.metrics()
            except penstock.InvalidArgumentError:
                os._exit(0)
            os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
