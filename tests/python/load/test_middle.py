"""Fill-in-the-middle: rows as its page says them, beside plain Python; on any ranks, resumed anywhere; bad input."""

from __future__ import annotations

import itertools
import json
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _middle import Middle, rearranged, source_seed
from penstock.columns import CuSeqlens, FillInTheMiddle, Labels, LossMask, PerSpan

PRE, MID, SUF, END = 201, 202, 203, 0
SENTINELS = (PRE, MID, SUF)
FIM = FillInTheMiddle(PRE, MID, SUF, rate=0.8, spm_rate=0.4, end_of_document=END)
RULE = Middle(PRE, MID, SUF, 0.8, 0.4, last=END)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    """Documents of 0 to 39 tokens and the one that ends them; `kept` and `weight` go along with each token."""
    path, random = tmp_path_factory.mktemp("corpus") / "code", np.random.default_rng(0)
    fields = [("kept", "u1"), ("token", "u2"), ("weight", "f4")]
    with penstock.Writer(path, fields=np.dtype(fields), metadata="json") as writer:
        for number in range(150):
            count = int(random.integers(0, 40))
            writer.append(
                token=np.append(random.integers(1, 200, count), END),
                kept=random.integers(0, 2, count + 1),
                weight=random.random(count + 1).astype("f4"),
                metadata={"number": number},
            )
    return penstock.open(path)


def expected(view: Any, index: int, epoch: int, seed: int, rule: Middle = RULE) -> list[tuple[int, int]]:
    """(the place whose record it has, token) of each record of an observation, which `view` shows as it is stored."""
    row = view[index]
    tokens = row["token"].tolist()
    observation = int(view.base_indices(np.array([index]))[0])
    if view.kind == "documents":
        pieces = [(0, len(tokens))]
    elif view.kind == "packed":
        pieces = [(span.start, span.stop) for span in row.spans]
    else:
        cuts = sorted({0, *(span.start for span in row.spans), len(tokens)})
        pieces = list(itertools.pairwise(cuts))
    return rearranged(tokens, pieces, rule, seed, epoch, observation)


VIEWS = {
    "windows": lambda d: d.windows(32, lookahead=1),
    "without lookahead": lambda d: d.windows(24),
    "far": lambda d: d.windows(16, lookahead=3),
    "held out": lambda d: d.windows(32, lookahead=1).split(3, seed=5)[0],
    "packed": lambda d: d.packed(48),
    "multiples": lambda d: d.packed(48, multiple_of=8),
}


@pytest.mark.parametrize("name", VIEWS)
def test_rows_are_those_of_the_rule_and_all_that_is_made_of_them_agrees(corpus, name):
    view = VIEWS[name](corpus)
    columns = [
        FIM,
        "cu_seqlens",
        "position_ids",
        LossMask(field="kept"),
        PerSpan("number", lambda m: m["number"], "i4"),
    ]
    options: dict[str, Any] = {"seed": 7, "epochs": 2, "columns": columns, "framework": "numpy", "threads": 2}
    plain = penstock.Loader(view, 5, **{**options, "columns": columns[1:]})
    moved = 0
    for batch, before in zip(penstock.Loader(view, 5, **options), plain, strict=True):
        for row in np.flatnonzero(batch.valid):
            wanted = expected(view, int(batch.indices[row]), int(batch.epochs[row]), 7)
            places, tokens = map(list, zip(*wanted, strict=True))
            assert batch["token"][row].tolist() == tokens
            assert batch["weight"][row].tolist() == before["weight"][row][places].tolist()
            assert batch["kept"][row].tolist() == before["kept"][row][places].tolist()
            assert batch.records["token"][row].tolist() == tokens
            moved += tokens != before["token"][row].tolist()
            kept = before["kept"][row][places].astype(bool)
            width = batch.loss_mask.shape[1]
            targets = np.append(kept[1:], False)[:width]
            if view.kind == "packed":
                inside = np.zeros(len(kept) + 1, bool)
                for span in batch.spans:
                    if span.row == row:
                        inside[span.start + 1 : span.stop] = True
                targets &= inside[1 : width + 1]
            assert batch.loss_mask[row].tolist() == targets.tolist()
            if view.kind == "packed" or view.lookahead:
                assert batch.inputs[row].tolist() == tokens[:width]
                following = np.append(tokens[1:], 0)[:width]
                assert batch.labels[row].tolist() == np.where(targets, following, -100).tolist()
        assert (batch["token"][~batch.valid] == 0).all()
        for same in ("cu_seqlens", "position_ids", "indices", "epochs"):
            assert np.array_equal(getattr(batch, same), getattr(before, same))
        assert np.array_equal(batch.columns["number"], before.columns["number"])
        assert [tuple(each.id) for each in batch.spans] == [tuple(each.id) for each in before.spans]
    assert moved > 20


@pytest.mark.parametrize("padded", [False, True])
def test_each_document_is_one_piece(corpus, padded):
    view = corpus.documents()
    given = view.padded(multiple_of=4) if padded else view
    for batch in penstock.Loader(given, 4, seed=3, epochs=1, columns=[FIM], framework="numpy"):
        for row in np.flatnonzero(batch.valid):
            tokens = [token for _, token in expected(view, int(batch.indices[row]), 0, 3)]
            if padded:
                assert batch["token"][row].tolist() == tokens + [0] * (batch["token"].shape[1] - len(tokens))
                assert batch.attention_mask[row].sum() == len(tokens)
            else:
                assert batch["token"][batch.offsets[row] : batch.offsets[row + 1]].tolist() == tokens


@pytest.mark.parametrize("side", ["end_of_document", "begin_of_document"])
@pytest.mark.parametrize("where", ["view", "column"])
def test_a_token_tells_the_documents_of_a_stream(tmp_path, side, where):
    random = np.random.default_rng(1)
    tokens = np.where(random.random(4000) < 0.08, 9, random.integers(10, 200, 4000)).astype("u2")
    tokens.tofile(tmp_path / "tokens.bin")
    told = {side: 9}
    view = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(
        40, lookahead=1, **(told if where == "view" else {})
    )
    column = FillInTheMiddle(PRE, MID, SUF, rate=1, **(told if where == "column" else {}))
    rule = Middle(PRE, MID, SUF, 1, 0.5, **{"last" if side.startswith("end") else "first": 9})
    columns = [column, CuSeqlens(**(told if where == "column" else {}))]
    for batch in penstock.Loader(view, 3, seed=2, epochs=1, columns=columns, framework="numpy"):
        for row in np.flatnonzero(batch.valid):
            stored = view[int(batch.indices[row])]["token"].tolist()
            cuts = [at + side.startswith("end") for at, token in enumerate(stored) if token == 9]
            bounds = sorted({0, *(each for each in cuts if each < 41), 41})
            pieces = itertools.pairwise(bounds)
            wanted = rearranged(stored, pieces, rule, 2, 0, int(batch.indices[row]))
            assert batch["token"][row].tolist() == [token for _, token in wanted]
        ends = batch.cu_seqlens[1:] - 1 if side.startswith("end") else batch.cu_seqlens[:-1]
        assert set(np.flatnonzero(batch.inputs.reshape(-1) == 9)) <= set(ends.tolist())  # none moved


@pytest.mark.parametrize("side", ["end_of_document", "begin_of_document"])
@pytest.mark.parametrize("kind", ["documents", "packed"])
def test_the_token_that_told_a_streams_documents_stays_at_its_place(tmp_path, side, kind):
    random, is_end = np.random.default_rng(1), side.startswith("end")
    documents = [random.integers(10, 200, int(random.integers(8, 60))) for _ in range(50)]
    parts = [each for tokens in documents for each in ((tokens, [9]) if is_end else ([9], tokens))]
    np.concatenate(parts).astype("u2").tofile(tmp_path / "tokens.bin")
    dataset = penstock.open(tmp_path / "tokens.bin", dtype="u2")
    view = dataset.documents(**{side: 9}) if kind == "documents" else dataset.packed(64, **{side: 9})
    column = FillInTheMiddle(PRE, MID, SUF, rate=1)
    seen = 0
    for batch in penstock.Loader(view, 3, seed=2, epochs=1, columns=[column], framework="numpy"):
        tokens = np.asarray(batch["token"]).reshape(-1) if kind == "documents" else batch["token"]
        for span in batch.spans:
            row = tokens if kind == "documents" else tokens[span.row]
            begin = int(batch.offsets[span.row]) if kind == "documents" else 0
            piece = row[begin + span.start : begin + span.stop].tolist()
            assert piece.index(9) == (len(piece) - 1 if is_end else 0) and piece.count(9) == 1
            seen += 1
    assert seen == 50


def test_one_source_of_a_mixture_is_rearranged_and_the_others_are_as_they_are(corpus):
    view = corpus.windows(32, lookahead=1)
    sources = {"web": view, "code": view, "other": view}
    mixture = penstock.Mixture(sources, [penstock.Stage({"web": 1, "code": 2, "other": 1})], end=90)
    columns = [
        FillInTheMiddle(PRE, MID, SUF, rate=1, spm_rate=0, sources={"code"}, end_of_document=END),
        FillInTheMiddle(PRE, MID, SUF, rate=0.5, spm_rate=1, sources=["other"], end_of_document=END),
    ]
    rules = {1: Middle(PRE, MID, SUF, 1, 0, last=END), 2: Middle(PRE, MID, SUF, 0.5, 1, last=END)}
    seen: Counter[int] = Counter()
    for batch in penstock.Loader(mixture, 6, seed=4, columns=columns, framework="numpy"):
        for row in range(6):
            number, index = int(batch.sources[row]), int(batch.indices[row])
            seed = source_seed(4, mixture.names[number])
            tokens = view[index]["token"].tolist()
            if number in rules:
                tokens = [token for _, token in expected(view, index, int(batch.epochs[row]), seed, rules[number])]
            assert batch["token"][row].tolist() == tokens
            seen[number] += 1
    assert seen == {0: 23, 1: 45, 2: 22} or (sum(seen.values()) == 90 and min(seen.values()) > 15)


@pytest.mark.parametrize("layout", ["zigzag", "contiguous", "zigzag-documents"])
def test_context_parallel_ranks_have_parts_of_the_same_rows(corpus, layout):
    view = corpus.packed(48, multiple_of=8) if layout == "zigzag-documents" else corpus.windows(32, lookahead=1)
    options: dict[str, Any] = {"seed": 5, "epochs": 1, "columns": [FIM, "position_ids"], "framework": "numpy"}
    whole = list(penstock.Loader(view, 4, **options))
    parts = [
        list(penstock.Loader(view, 4, context_parallel=penstock.ContextParallel(rank, 2, layout), **options))
        for rank in range(2)
    ]
    for batch, one, other in zip(whole, *parts, strict=True):
        for name in ("inputs", "labels", "position_ids"):
            both = np.concatenate([getattr(one, name), getattr(other, name)], 1)
            assert np.array_equal(np.sort(both, 1), np.sort(getattr(batch, name), 1))
        if layout == "contiguous":
            assert np.array_equal(np.concatenate([one.inputs, other.inputs], 1), batch.inputs)
        if layout == "zigzag":
            chunks = np.split(batch.inputs, 4, 1)
            assert np.array_equal(one.inputs, np.concatenate([chunks[0], chunks[3]], 1))


def rows_of(batches: list[penstock.Batch]) -> dict[int, bytes]:
    return {
        int(at): batch.inputs[row].tobytes() + batch.labels[row].tobytes()
        for batch in batches
        for row, at in enumerate(batch.positions)
        if at >= 0
    }


@pytest.mark.parametrize("order", ["uniform", "sequential", penstock.orders.Blocks(4, 16)])
def test_a_state_of_every_step_gives_the_rest_on_one_to_five_ranks(corpus, order):
    view = corpus.windows(16, lookahead=1)
    options: dict[str, Any] = {"seed": 9, "epochs": 2, "order": order, "columns": [FIM], "framework": "numpy"}
    with penstock.Loader(view, global_batch_size=60, **options) as loader:
        states, batches = [loader.state_dict()], []
        for batch in loader:
            batches.append(batch)
            states.append(loader.state_dict())
    rows = rows_of(batches)
    assert len(rows) == 2 * len(view) and len(batches) >= 5
    for step, state in enumerate(states[:-1]):
        for ranks in range(1, 6):
            found: dict[int, bytes] = {}
            for rank in range(ranks):
                with penstock.Loader(
                    view, global_batch_size=60, rank=rank, world_size=ranks, prefetch=1 + step % 3, **options
                ) as fresh:
                    fresh.load_state_dict(json.loads(json.dumps(state)))
                    found |= rows_of([next(fresh)])
            assert found == rows_of([batches[step]])


def test_the_same_observation_is_rearranged_once_however_often_a_batch_has_it(corpus):
    view = corpus.windows(32, lookahead=1)[:6]
    order = penstock.orders.Weighted([1] * 6, replace=True)
    by_row: dict[tuple[int, int], set[bytes]] = {}
    for batch in penstock.Loader(view, 12, seed=1, order=order, epochs=20, columns=[FIM], framework="numpy"):
        for row in np.flatnonzero(batch.valid):
            key = int(batch.epochs[row]), int(batch.indices[row])
            by_row.setdefault(key, set()).add(batch["token"][row].tobytes())
            wanted = expected(view, key[1], key[0], 1)
            assert batch["token"][row].tolist() == [token for _, token in wanted]
    assert all(len(each) == 1 for each in by_row.values())
    assert len({next(iter(each)) for (_, index), each in by_row.items() if index == 2}) > 10  # each epoch anew


def test_rates_and_cuts_are_as_likely_as_said(tmp_path):
    """Of 4,000 documents of 23 tokens: two uniform cuts of the 20 that stay, so 21 places each."""
    with penstock.Writer(tmp_path / "many", fields={"token": "u2"}, metadata=None) as writer:
        writer.append(token=np.tile(np.append(np.arange(1, 24), END), 4000))
    view = penstock.open(tmp_path / "many").windows(24)
    column = FillInTheMiddle(PRE, MID, SUF, rate=0.5, spm_rate=0.25, end_of_document=END)
    chosen, spm, sizes = 0, 0, []
    for batch in penstock.Loader(view, 100, seed=0, epochs=1, columns=[column], framework="numpy"):
        for row in batch["token"]:
            assert row[-1] == END
            if row[0] != PRE:
                continue
            chosen += 1
            spm += int(row[1] == SUF)
            at = {int(token): place for place, token in enumerate(row) if token in SENTINELS}
            body = [token for token in row[:-1].tolist() if token not in SENTINELS]
            assert sorted(body) == list(range(1, 21))  # the last three are dropped
            suffix = at[MID] - at[SUF] - 1
            prefix = at[SUF] - 1 if at[SUF] > 1 else None
            sizes.append((prefix, suffix))
    assert abs(chosen - 2000) < 5 * np.sqrt(4000 * 0.25)
    assert abs(spm - chosen / 4) < 5 * np.sqrt(chosen * 0.1875)
    # The larger of two uniform cuts of 0..20: P(max <= k) = ((k + 1) / 21)^2; a suffix is 20 - max.
    counts = np.bincount([suffix for _, suffix in sizes], minlength=21)
    cut = np.arange(21)
    likely = (((21 - cut) / 21) ** 2 - ((20 - cut) / 21) ** 2) * len(sizes)
    assert ((counts - likely) ** 2 / likely).sum() < 45  # chi-square of 20 degrees: 45.3 at 0.1 %
    prefixes = [prefix for prefix, _ in sizes if prefix is not None]
    counts = np.bincount(prefixes, minlength=21)
    likely = likely / len(sizes) * (counts.sum() - counts[0])
    # 0 is also the prefix of an SPM piece's look, so it is left out here.
    assert ((counts - likely)[1:] ** 2 / likely[1:]).sum() < 60


def test_short_pieces_and_rate_0_stay_as_they_are(tmp_path):
    with penstock.Writer(tmp_path / "short", fields={"token": "u2"}, metadata="json") as writer:
        for number in range(60):
            writer.append(token=[*range(1, 1 + number % 4), END], metadata=None)
    view = penstock.open(tmp_path / "short").windows(10, lookahead=1)
    for rate in (0, 1):
        column = FillInTheMiddle(PRE, MID, SUF, rate=rate, end_of_document=END)
        for batch in penstock.Loader(view, 2, epochs=1, columns=[column], framework="numpy"):
            assert not np.isin(batch["token"], SENTINELS).any()


def test_other_seeds_and_epochs_draw_otherwise(corpus):
    view = corpus.windows(32, lookahead=1)

    def tokens(seed: int) -> list[Any]:
        batches = penstock.Loader(view, 8, seed=seed, order="sequential", epochs=2, columns=[FIM], framework="numpy")
        return [batch["token"].tolist() for batch in batches]

    one, again, other = tokens(1), tokens(1), tokens(2)
    assert one == again != other
    assert one[: len(view) // 8] != one[-(len(view) // 8) :]


BAD = [
    (FillInTheMiddle(70_000, MID, SUF), "prefix=70000: must be from 0 to 65,535"),
    (FillInTheMiddle(PRE, MID, SUF, end_of_document=MID), "middle=202.*it is end_of_document, too"),
    (FillInTheMiddle(PRE, MID, SUF, sources={"code"}), "sources are of a penstock.Mixture; this is one view"),
]


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ({"rate": 2}, r"FillInTheMiddle\(rate=2\): must be a number from 0 to 1"),
        ({"rate": 1.5}, r"rate=1.5\): must be a number from 0 to 1"),
        ({"rate": float("nan")}, r"rate=nan\): must be a number from 0 to 1"),
        ({"rate": "half"}, r"rate='half'\): must be a number from 0 to 1"),
        ({"rate": True}, r"rate=True\): must be a number from 0 to 1"),
        ({"spm_rate": -0.1}, r"spm_rate=-0.1\): must be a number from 0 to 1"),
    ],
)
def test_a_rate_that_cannot_be_is_refused_when_the_column_is_made(rates, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        FillInTheMiddle(PRE, MID, SUF, **rates)


@pytest.mark.parametrize(
    ("sentinels", "words"),
    [
        ((PRE, -1, SUF), "FillInTheMiddle: middle=-1: must be from 0 to"),
        ((PRE, MID, "x"), "FillInTheMiddle: suffix='x': must be an integer"),
        ((1, 1, 2), r"FillInTheMiddle\(prefix=1, middle=1, suffix=2\): must be three different tokens"),
    ],
)
def test_sentinels_that_cannot_be_are_refused_when_the_column_is_made(sentinels: Any, words: str) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        FillInTheMiddle(*sentinels)


@pytest.mark.parametrize("given", [END, 300])
@pytest.mark.parametrize("epochs", [None, 1])
def test_an_end_of_document_that_never_comes_is_said_once(corpus, given, epochs):
    column = FillInTheMiddle(PRE, MID, SUF, end_of_document=given)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        loader = penstock.Loader(corpus.windows(32), 64, epochs=epochs, columns=[column], framework="numpy")
        for _, batch in zip(range(1 << 10), loader, strict=False):
            assert len(batch)
        loader.close()
    found = [str(each.message) for each in said if "end_of_document=300" in str(each.message)]
    assert len(found) == (0 if given == END else 1) == len(said)


@pytest.mark.parametrize(("column", "words"), BAD)
def test_what_cannot_be_is_refused_when_the_loader_is_made(corpus, column, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.Loader(corpus.windows(32), 2, columns=[column])


def test_what_cannot_be_of_this_data_is_refused(corpus, tmp_path):
    def refused(words: str, view: Any, *columns: Any, **options: Any) -> None:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(view, 2, columns=columns, **options)

    window = corpus.windows(32, lookahead=1)
    refused("one is wanted", window, FIM, FIM)
    refused("no value of int8, in which this loader gives tokens", window, FIM, dtype={"token": "i1"})
    refused("moves: use LossMask", window, FIM, LossMask(spans=lambda metadata: [(0, 1)]))
    refused("penstock.columns.FillInTheMiddle", window, "fill_in_the_middle")
    refused("which only a rank with the whole row sees", corpus.windows(32, end_of_document=END), FIM, "cu_seqlens",
            context_parallel=penstock.ContextParallel(0, 2))  # fmt: skip
    mixture = penstock.Mixture({"web": window, "code": window}, [penstock.Stage({"web": 1, "code": 1})], end=9)
    refused("there is no source 'cod'; the mixture's are", mixture, FillInTheMiddle(PRE, MID, SUF, sources=["cod"]))
    refused("must be names", mixture, FillInTheMiddle(PRE, MID, SUF, sources="code"))
    refused("it names none", mixture, FillInTheMiddle(PRE, MID, SUF, sources=[]))
    refused("are of the source 'code'", mixture, FIM, FillInTheMiddle(PRE, MID, SUF, sources=["code"]))
    np.arange(100, dtype="u2").tofile(tmp_path / "raw.bin")
    raw = penstock.open(tmp_path / "raw.bin", dtype="u2").windows(8)
    refused("give end_of_document= or begin_of_document=", raw, FillInTheMiddle(PRE, MID, SUF))
    with penstock.Writer(tmp_path / "two", fields={"a": "u2", "b": "u2"}, metadata="json") as writer:
        writer.append(a=[1, 2, 3], b=[1, 2, 3], metadata=None)
    refused("which field has the tokens", penstock.open(tmp_path / "two").windows(2), FillInTheMiddle(PRE, MID, SUF))
    with penstock.Writer(tmp_path / "opaque", fields=None, metadata="raw") as writer:
        writer.append(metadata=b"x")
    refused("opaque documents have no records", penstock.open(tmp_path / "opaque").documents(), FIM)


def test_labels_end_with_their_document_and_torch_has_the_same(corpus):
    torch = pytest.importorskip("torch")
    view = corpus.windows(32, lookahead=1)
    options: dict[str, Any] = {"seed": 7, "epochs": 1, "columns": [FIM, Labels(cross_document=False)]}
    one = penstock.Loader(view, 5, framework="numpy", **options)
    other = penstock.Loader(view, 5, framework="torch", **options)
    for batch, tensors in zip(one, other, strict=True):
        assert torch.equal(torch.from_numpy(batch.labels), tensors.labels)
        for span in batch.spans:
            if span.start > 0:
                assert batch.labels[span.row, span.start - 1] == -100


def test_the_state_is_that_of_a_loader_without_it(corpus):
    """A rate may change at a resume: what stands at a position stays."""
    view = corpus.windows(32, lookahead=1)
    with penstock.Loader(view, 4, seed=1, columns=[FIM]) as loader, penstock.Loader(view, 4, seed=1) as plain:
        next(loader)
        next(plain)
        assert loader.state_dict() == plain.state_dict()
        plain.load_state_dict(loader.state_dict())


def test_readers_and_threads_change_nothing(corpus, tmp_path: Path):
    view = corpus.windows(32, lookahead=1)
    found = set()
    for reader, threads in (("pread", 1), ("mmap", 3), ("auto", 2)):
        options: dict[str, Any] = {"seed": 3, "epochs": 1, "columns": [FIM], "reader": reader, "threads": threads}
        batches = penstock.Loader(view, 8, framework="numpy", **options)
        found.add(b"".join(batch["token"].tobytes() for batch in batches))
    assert len(found) == 1
