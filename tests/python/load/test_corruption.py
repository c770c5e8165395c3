"""Span corruption: inputs and labels as its page says them, beside plain Python; resumed anywhere; bad input."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import penstock
import pytest
from _corruption import corrupted, counts
from _middle import source_seed
from penstock.columns import FillInTheMiddle, LossMask, PerSpan, SpanCorruption

SENTINELS = range(999, 899, -1)
SPANS = SpanCorruption(SENTINELS, density=0.3, mean_length=2.5, end=1)


def array(given: Any) -> np.ndarray:
    return given.numpy() if hasattr(given, "numpy") else given


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path, random = tmp_path_factory.mktemp("corpus") / "text", np.random.default_rng(0)
    with penstock.Writer(path, fields=np.dtype([("kept", "u1"), ("token", "u2")]), metadata="json") as writer:
        for number in range(120):
            count = int(random.integers(0, 40)) if number % 5 else number % 3
            writer.append(token=random.integers(2, 800, count), kept=np.ones(count, "u1"), metadata={"number": number})
    return penstock.open(path)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("window", [2, 3, 20, 64])
def test_windows_are_corrupted_as_the_rule_says(corpus, window, framework):
    if framework == "torch":
        pytest.importorskip("torch")
    view = corpus.windows(window).split(4)[0]
    noise, spans = counts(window, SPANS)
    for batch in penstock.Loader(view, 7, seed=5, epochs=2, columns=[SPANS], framework=framework):
        assert tuple(batch.inputs.shape) == tuple(batch.attention_mask.shape) == (7, window - noise + spans + 1)
        assert tuple(batch.labels.shape) == (7, noise + spans + 1)
        for row in range(7):
            if not batch.valid[row]:
                assert not array(batch.attention_mask[row]).any() and (array(batch.labels[row]) == -100).all()
                assert not array(batch.inputs[row]).any()
                continue
            index, epoch = int(batch.indices[row]), int(batch.epochs[row])
            tokens = view[index]["token"].tolist()
            observation = int(view.base_indices(np.array([index]))[0])
            inputs, labels = corrupted(tokens, SPANS, 5, epoch, observation)
            assert (batch.inputs[row].tolist(), batch.labels[row].tolist()) == (inputs, labels)
            assert batch["token"][row].tolist() == tokens  # as they are stored
            assert array(batch.attention_mask[row]).all()


def test_documents_are_padded_to_the_longest_of_the_batch(corpus):
    column = SpanCorruption(SENTINELS[:4], end=1, pad=7)
    view = corpus.documents()
    kinds: Counter[str] = Counter()
    for batch in penstock.Loader(view, 6, seed=3, epochs=1, columns=[column], framework="numpy", dtype={"token": "i4"}):
        made = []
        for row in range(6):
            tokens = view[int(batch.indices[row])]["token"].tolist() if batch.valid[row] else []
            made.append(corrupted(tokens, column, 3, 0, int(batch.indices[row])) if batch.valid[row] else ([], []))
            kinds["empty" if not tokens else "short" if len(tokens) == 1 else "long"] += 1
        widths = [max(len(each[part]) for each in made) for part in (0, 1)]
        assert batch.inputs.shape == (6, widths[0]) and batch.labels.shape == (6, widths[1])
        assert batch.inputs.dtype == batch.labels.dtype == np.int32
        for row, (inputs, labels) in enumerate(made):
            assert batch.inputs[row].tolist() == inputs + [7] * (widths[0] - len(inputs))
            assert batch.labels[row].tolist() == labels + [-100] * (widths[1] - len(labels))
            assert batch.attention_mask[row].tolist() == [1] * len(inputs) + [0] * (widths[0] - len(inputs))
    assert min(kinds.values()) > 5


def test_a_row_of_568_tokens_is_t5s_of_512_and_114(tmp_path):
    np.arange(5680, dtype="u2").tofile(tmp_path / "tokens.bin")
    view = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(568)
    batch = next(penstock.Loader(view, 4, columns=[SpanCorruption(range(32099, 31999, -1), end=1)]))
    assert tuple(batch.inputs.shape) == (4, 512) and tuple(batch.labels.shape) == (4, 114)


def test_all_ways_to_part_are_as_likely(tmp_path):
    """Of 10 tokens 4 are noise, in 2 spans: 3 ways to part them, and 5 for the 6 that stay."""
    np.arange(60_000, dtype="u4").tofile(tmp_path / "tokens.bin")
    view = penstock.open(tmp_path / "tokens.bin", dtype="u4").windows(10)
    column = SpanCorruption([100_001, 100_002], density=0.4, mean_length=2)
    ways: Counter[tuple[int, int]] = Counter()
    for batch in penstock.Loader(view, 100, seed=1, epochs=1, columns=[column], framework="numpy"):
        for inputs, labels in zip(batch.inputs.tolist(), batch.labels.tolist(), strict=True):
            ways[inputs.index(100_001), labels.index(100_002)] += 1
    assert len(ways) == 15
    assert sum((each - 400) ** 2 / 400 for each in ways.values()) < 36  # chi-square of 14 degrees: 36.1 at 0.1 %


def test_a_state_of_every_step_gives_the_rest_on_one_to_five_ranks(corpus):
    view = corpus.windows(16)
    options: dict[str, Any] = {"seed": 9, "epochs": 2, "columns": [SPANS], "framework": "numpy"}

    def rows(batch: penstock.Batch) -> dict[int, bytes]:
        each = enumerate(batch.positions.tolist())
        return {at: batch.inputs[row].tobytes() + batch.labels[row].tobytes() for row, at in each if at >= 0}

    with penstock.Loader(view, global_batch_size=60, **options) as loader:
        states, batches = [loader.state_dict()], []
        for batch in loader:
            batches.append(rows(batch))
            states.append(loader.state_dict())
    for step, state in enumerate(states[:-1]):
        for ranks in range(1, 6):
            found: dict[int, bytes] = {}
            for rank in range(ranks):
                with penstock.Loader(view, global_batch_size=60, rank=rank, world_size=ranks, **options) as fresh:
                    fresh.load_state_dict(json.loads(json.dumps(state)))
                    found |= rows(next(fresh))
            assert found == batches[step]


def test_sources_of_a_mixture_draw_by_their_names_and_infilling_comes_before(corpus):
    view = corpus.windows(24)
    mixture = penstock.Mixture({"a": view, "b": view}, [penstock.Stage({"a": 1, "b": 1})], end=60)
    fim = FillInTheMiddle(991, 992, 993, rate=1, spm_rate=0, sources={"b"})
    with_fim = penstock.Loader(mixture, 6, seed=2, columns=[SPANS, fim], framework="numpy")
    for batch in with_fim:
        for row in range(6):
            name, index = mixture.names[int(batch.sources[row])], int(batch.indices[row])
            own = source_seed(2, name)
            tokens = batch["token"][row].tolist()
            assert (tokens == view[index]["token"].tolist()) == (name == "a" or 991 not in tokens)
            inputs, labels = corrupted(tokens, SPANS, own, int(batch.epochs[row]), index)
            assert (batch.inputs[row].tolist(), batch.labels[row].tolist()) == (inputs, labels)
            copied = batch.clone()
            assert np.array_equal(copied.inputs, batch.inputs) and np.array_equal(copied.labels, batch.labels)


BAD = [
    (SpanCorruption(SENTINELS, density=0), r"density=0\): must be a number, above 0 and below 1"),
    (SpanCorruption(SENTINELS, density=1.0), r"density=1.0\): must be a number, above 0 and below 1"),
    (SpanCorruption(SENTINELS, density="few"), r"density='few'\): must be a number"),
    (SpanCorruption(SENTINELS, mean_length=0.5), r"mean_length=0.5\): must be a number, at least 1"),
    (SpanCorruption(SENTINELS, mean_length=float("inf")), r"mean_length=inf\): must be a number"),
    (SpanCorruption([]), "0 sentinels: must be from 1"),
    (SpanCorruption(32099), r"sentinels=32099\): must be tokens, as range"),
    (SpanCorruption([5, -1]), r"sentinels\[1\]=-1: must be from 0"),
    (SpanCorruption([5, 6, 5]), "the sentinel 5 is there twice"),
    (SpanCorruption([5, 6]), "2 sentinels for 3 spans of a window of 64"),
    (SpanCorruption(SENTINELS, end=-2), "end=-2: must be from 0"),
    (SpanCorruption([5, 6, 7], end=6), r"end=6\): it is a sentinel, too"),
    (SpanCorruption([5, 6, 0]), r"pad=0\): it is a sentinel, too"),
    (SpanCorruption(SENTINELS, pad="x"), "pad='x': must be an integer"),
]


@pytest.mark.parametrize(("column", "words"), BAD)
def test_what_cannot_be_is_refused_when_the_loader_is_made(corpus, column, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.Loader(corpus.windows(64), 2, columns=[column])


def test_rows_of_which_there_is_none_are_refused(corpus, tmp_path):
    def refused(words: str, view: Any, *columns: Any, **options: Any) -> None:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(view, 2, columns=columns, **options)

    refused("leave lookahead= out", corpus.windows(64, lookahead=1), SPANS)
    refused("rows are packed: use dataset.windows", corpus.packed(64), SPANS)
    refused("rows are padded: use dataset.windows", corpus.documents().padded(), SPANS)
    refused("is there twice", corpus.windows(64), SPANS, SPANS)
    refused("LossMask.*: of the rows' records.*leave it out", corpus.windows(64), SPANS, LossMask(field="kept"))
    refused("leave them out", corpus.windows(64), "position_ids", SPANS, PerSpan("n", lambda m: m["number"], "i4"))
    refused("context_parallel: SpanCorruption", corpus.windows(64), SPANS,
            context_parallel=penstock.ContextParallel(0, 2))  # fmt: skip
    refused("sentinels.0.=999: must be from 0 to 127", corpus.windows(64), SPANS, dtype={"token": "i1"})
    refused("penstock.columns.SpanCorruption", corpus.windows(64), "span_corruption")
