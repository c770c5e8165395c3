"""loss_mask, labels and values of spans: functions of metadata, tokens that bound documents, refusals; real attention.

What they are of every view, in mixtures, on any ranks, tests/model says (its dimension `columns`).
"""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, NUMBERS, array, compact, ids, opaque, token_stream
from penstock.columns import Labels, LossMask, PerSpan, PositionIds

FIELDS = {"token": "u2", "loss": "u1", "weight": "f4"}
END, BEGIN = 1, 2
FILL = -7.5


class Stream:
    """Documents, empty ones too, over several shards, and each record's document."""

    def __init__(self, folder: Path, shards: Any = LENGTHS, metadata: Any = "json", seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        paths, tokens, loss, self.metadata = [], [], [], []
        number: list[int] = []
        for shard, lengths in enumerate(shards):
            paths.append(folder / f"shard-{shard}")
            with penstock.Writer(paths[-1], fields=FIELDS, metadata=metadata) as writer:
                for length in lengths:
                    given = random.integers(10, 100, length)
                    if length > 0:
                        given[0], given[-1] = BEGIN, END  # of one record: it ends, and begins nothing
                    masked = random.integers(0, 3, length) * 100
                    document = len(self.metadata)
                    entry = {"number": document, "ranges": ranges_of(document), "quality": document / 4}
                    self.metadata.append(entry)
                    told = entry if metadata == "json" else None
                    writer.append(token=given, loss=masked, weight=np.ones(length), metadata=told)
                    tokens.append(given)
                    loss.append(masked)
                    number += [document] * length
        self.dataset = penstock.open(*paths)
        self.tokens, self.loss = np.concatenate(tokens), np.concatenate(loss)
        self.number = np.array(number)
        self.firsts = np.searchsorted(self.number, np.arange(len(self.metadata) + 1))


def ranges_of(document: int) -> list[list[int]]:
    """Of the records of a document, in no order, overlapping, beyond its end, none."""
    return [[], [[0, 2]], [[4, 1000], [1, 2]], [[1, 3], [2, 5], [3, 3]]][document % 4]


def quality() -> PerSpan:
    return PerSpan("quality", lambda metadata: metadata["quality"], "f4", FILL)


def by_spans() -> LossMask:
    return LossMask(spans=lambda metadata: metadata["ranges"])


def loader(view: penstock.View, batch_size: int = 4, **options: Any) -> penstock.Loader:
    return penstock.Loader(view, batch_size, **{"seed": 4, "epochs": 2, "per_epoch": True, **options})


def batches(view: penstock.View, **options: Any) -> list[Any]:
    with loader(view, **options) as given:
        return [batch for _ in range(2) for batch in given]


def rows_of_documents(dataset: penstock.Dataset) -> list[penstock.View]:
    return [
        dataset.packed(12), dataset.packed(6, multiple_of=3), dataset.packed(5, long="truncate"),
        dataset.documents().padded(), dataset.documents().padded(6, side="left"),
        dataset.documents().padded(multiple_of=4, side="left"), dataset.documents().padded(24, value=-1),
    ]  # fmt: skip


def test_labels_of_packed_and_padded_rows_cross_no_document_whatever_is_asked(tmp_path):
    stream = Stream(tmp_path)
    for view in rows_of_documents(stream.dataset):
        plain = batches(view)
        for columns in ([Labels()], [Labels(cross_document=False)], [Labels(), quality()]):
            for batch, other in zip(batches(view, columns=columns), plain, strict=True):
                np.testing.assert_array_equal(array(batch.labels), array(other.labels))
                with pytest.raises(penstock.InvalidArgumentError, match=r"no loss_mask.*LossMask"):
                    batch.loss_mask  # noqa: B018


@pytest.mark.parametrize("which", ["end", "begin", "column", "tokenizer"])
def test_a_token_bounds_documents_where_there_are_no_spans(tmp_path, which):
    lengths = tuple(tuple(length for length in shard if length != 1) for shard in LENGTHS)
    stream = Stream(tmp_path, lengths)
    note = {"name": "test", "vocabulary_size": 100, "end_of_document": END, "hash": "0" * 32}
    tokenizer = note if which == "tokenizer" else None
    with penstock.Writer(tmp_path / "bare", fields=FIELDS, metadata=None, tokenizer=tokenizer) as writer:
        writer.append(token=stream.tokens, loss=stream.loss, weight=np.ones(len(stream.tokens)))
    bare = penstock.open(tmp_path / "bare")
    given = {"end": {"end_of_document": END}, "begin": {"begin_of_document": BEGIN}}.get(which, {})
    position_ids = PositionIds(END) if which == "column" else PositionIds()
    columns = ["cu_seqlens", position_ids, "document_ids", Labels(cross_document=False), LossMask(field="loss")]
    for lookahead in (1, 2):
        view = bare.windows(6, lookahead=lookahead, **given)
        like = stream.dataset.windows(6, lookahead=lookahead, metadata=False)
        options: dict[str, Any] = {"order": "sequential"}
        for batch, expected in zip(
            batches(pickle.loads(pickle.dumps(view)), columns=columns, **options),
            batches(like, columns=["cu_seqlens", "position_ids", "document_ids", *columns[3:]], **options),
            strict=True,
        ):
            for name in ("cu_seqlens", "position_ids", "document_ids", "labels", "loss_mask"):
                np.testing.assert_array_equal(array(getattr(batch, name)), array(getattr(expected, name)), err_msg=name)


def test_a_token_that_is_given_goes_before_spans(tmp_path):
    stream = Stream(tmp_path)
    view = stream.dataset.windows(6, lookahead=1, metadata=False, begin_of_document=10)
    assert "begin_of_document=10" in repr(view) and "begin_of_document=10" in repr(view[1:3])
    for batch in batches(view, columns=[Labels(cross_document=False)], framework="numpy"):
        plain = view.read(batch.indices[batch.valid])
        expected = np.where(plain.labels == 10, -100, plain.labels)
        np.testing.assert_array_equal(batch.labels[batch.valid], expected)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64"])
def test_values_of_spans_of_every_type(tmp_path, dtype):
    stream = Stream(tmp_path)
    kind = np.dtype(dtype).kind
    fill = {"b": True, "f": 0.5}.get(kind, 3)
    value = PerSpan("value", lambda m: m["number"] % 2 == 0 if kind == "b" else m["number"], dtype, fill)
    view = stream.dataset.windows(6)
    for framework in ("numpy", "torch"):
        for batch in batches(view, columns=[value], framework=framework):
            found = array(batch.columns["value"])
            assert found.dtype == np.dtype(dtype)
            for index, row in zip(array(batch.indices), found, strict=True):
                number = stream.number[index * 6 : index * 6 + 6]
                expected = np.full(6, fill) if index < 0 else number % 2 == 0 if kind == "b" else number
                np.testing.assert_array_equal(row, expected.astype(dtype))


# --- functions of metadata


def test_a_function_is_called_once_for_each_entry_of_a_batch_by_who_asks_for_it(tmp_path):
    stream = Stream(tmp_path, ((40, 3, 40, 0, 2),))
    calls: list[tuple[int, int]] = []

    def ranges(metadata: Any) -> Any:
        calls.append((metadata.pop("number"), threading.get_ident()))  # what it does to its metadata, others do not see
        return np.array([[0, 1 << 50]])

    view = stream.dataset.windows(6, lookahead=1)
    with loader(view, columns=[LossMask(spans=ranges), quality()]) as given:
        for batch in given:
            here = {(span.id.entry, threading.get_ident()) for span in batch.spans}
            assert sorted(calls) == sorted(here)
            calls.clear()


def test_an_error_of_a_function_is_that_of_the_batch_and_names_the_document(tmp_path):
    stream = Stream(tmp_path)
    broken = True

    def value(metadata: Any) -> float:
        if metadata["number"] == 7 and broken:
            raise KeyError("quality")
        return metadata["quality"]

    view = stream.dataset.windows(6, lookahead=1)
    with loader(view, 2, columns=[PerSpan("quality", value, "f4")], order="sequential", epochs=1) as given:
        first = next(given)
        assert first.position == 0
        with pytest.raises(penstock.InvalidArgumentError) as caught:
            for _ in range(9):
                position = given.position
                next(given)
        words = f"PerSpan('quality'): document 7 of shard 0 of {stream.dataset.path}: KeyError: 'quality'"
        assert str(caught.value) == words
        assert isinstance(caught.value.__cause__, KeyError)
        assert given.position == position == 2  # it was not delivered
        with pytest.raises(penstock.InvalidArgumentError, match="document 7 of"):
            next(given)
        broken = False
        assert array(next(given).indices).tolist() == [2, 3]


def test_what_stops_the_caller_is_not_caught(tmp_path):
    def stop(_: Any) -> Any:
        raise KeyboardInterrupt

    given = loader(Stream(tmp_path).dataset.windows(6), columns=[LossMask(spans=stop)])
    with pytest.raises(KeyboardInterrupt):
        next(given)
    assert given.position == 0


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (None, r"it gave None: \[\[begin, end\), …\] of offsets in the document wanted"),
        ("0-3", "it gave '0-3'"),
        ([0, 3], r"it gave \[0, 3\]"),
        ([[0, 3, 4]], "it gave"),
        ([[0.5, 3]], "it gave"),
        ([[0, 3], [1]], "it gave"),
        ([[True, False]], "it gave"),
        (3, "it gave 3"),
        ([[3, 1]], r"it gave the range \[3, 1\): 0 <= begin <= end wanted"),
        ([[0, 1], [-1, 1]], r"it gave the range \[-1, 1\)"),
    ],
)
def test_ranges_that_are_none(tmp_path, gives, words):
    view = Stream(tmp_path).dataset.windows(6)
    with pytest.raises(penstock.InvalidArgumentError, match=rf"LossMask\(spans=…\): document \d+ of shard .*{words}"):
        next(loader(view, columns=[LossMask(spans=lambda _: gives)]))


@pytest.mark.parametrize(
    ("dtype", "gives", "words"),
    [
        ("u1", 256, "it gave 256: one value of uint8 wanted"),
        ("i4", 0.5, "it gave 0.5: one value of int32 wanted"),
        ("f4", "good", "it gave 'good': one value of float32 wanted"),
        ("f4", None, "it gave None: one"),
        ("f4", [1, 2], r"it gave \[1, 2\]: one"),
        ("bool", 1, "it gave 1: one value of bool wanted"),
    ],
)
def test_values_that_are_none(tmp_path, dtype, gives, words):
    view = Stream(tmp_path).dataset.windows(6)
    with pytest.raises(penstock.InvalidArgumentError, match=rf"PerSpan\('value'\): document \d+ of shard .*{words}"):
        next(loader(view, columns=[PerSpan("value", lambda _: gives, dtype)]))


# --- what is refused


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ([LossMask()], "LossMask takes field= or spans=: give exactly one"),
        ([LossMask("loss", lambda _: [])], "LossMask takes field= or spans=: give exactly one"),
        ([LossMask(field="lost")], 'LossMask.field=\'lost\'.: there is no such field; the fields are "token", "loss"'),
        ([LossMask(field="weight")], "field weight holds no single bool or integer"),
        ([LossMask(spans=[[0, 3]])], r"LossMask\(spans=…\): \[\[0, 3\]\] is no function of metadata"),
        ([PerSpan("value", 3, "f4")], r"PerSpan\('value'\): 3 is no function of metadata"),
        ([PerSpan("", len, "f4")], "must be a name"),
        ([PerSpan("position_ids", len, "f4")], "another column has this name"),
        ([PerSpan("a", len, "f4"), PerSpan("a", len, "f4")], "a is there twice"),
        ([PerSpan("a", len, "c8")], "must be a bool, an integer or a float"),
        ([PerSpan("a", len, "S4")], "must be a bool, an integer or a float"),
        ([PerSpan("a", len, "u1", fill=-1)], "fill=-1: must be one value of uint8"),
        ([PerSpan("a", len, "u1", fill=[1])], r"fill=\[1\]: must be one value of uint8"),
        ([Labels(), Labels(cross_document=False)], "labels is there twice"),
        (["labels"], r"labels says too little: give penstock.columns.Labels\(…\)"),
    ],
)
def test_arguments_that_cannot_be(tmp_path, columns, words):
    view = Stream(tmp_path).dataset.windows(6, lookahead=1)
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        loader(view, columns=columns)


def test_labels_where_there_are_none(tmp_path):
    dataset = Stream(tmp_path).dataset
    for view, words in ((dataset.windows(6), "without lookahead"), (dataset.documents(), "lookahead=1")):
        for columns in ([Labels(cross_document=False)], [Labels()], [Labels(), LossMask(field="loss")]):
            with pytest.raises(penstock.InvalidArgumentError, match=f"there are no labels: .*{words}"):
                loader(view, columns=columns)
    # What crosses documents counts for the mask alone, too.
    loader(dataset.windows(6), columns=[Labels(cross_document=False), LossMask(field="loss")]).close()
    with penstock.Writer(tmp_path / "pairs", {"a": "u2", "b": "u2"}, "json") as writer:
        writer.append(a=[1], b=[2], metadata=None)
    pairs = penstock.open(tmp_path / "pairs")
    for view in (pairs.packed(4), pairs.documents().padded()):
        with pytest.raises(penstock.InvalidArgumentError, match=r"there are no labels: .*none is called token"):
            loader(view, columns=[Labels()])


def test_functions_of_metadata_that_is_not_read(tmp_path):
    stream = Stream(tmp_path)
    for metadata in (False, "spans"):
        for view in (stream.dataset.windows(6, metadata=metadata), stream.dataset.documents(metadata=metadata)):
            for column in (by_spans(), quality()):
                with pytest.raises(
                    penstock.InvalidArgumentError, match=rf"dataset.{view.kind}\(…, metadata=True\) does"
                ):
                    loader(view, columns=[column])


def test_datasets_without_what_is_asked_for(tmp_path):
    for folder in ("stream", "compact", "ids", "opaque"):
        (tmp_path / folder).mkdir()
    cases = [
        (token_stream(tmp_path / "stream", 50)[0].windows(5), by_spans(), "has no spans"),
        (token_stream(tmp_path / "compact", 50)[0].windows(5), quality(), "has no spans"),
        (compact(tmp_path / "compact", LENGTHS, codec="boundaries")[0].windows(5), by_spans(), "and no metadata"),
        (ids(tmp_path / "ids", NUMBERS)[0].windows(5), by_spans(), r"ids layout.*penstock.convert"),
        (opaque(tmp_path / "opaque", 5)[0].documents(), quality(), "opaque documents have no records"),
    ]
    for view, column, words in cases:
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            loader(view, columns=[column])
    # The ids layout knows which entry a record is of, and that is all that PerSpan asks for.
    view = ids(tmp_path / "opaque", NUMBERS)[0].windows(5)
    for batch in batches(view, columns=[PerSpan("concept", lambda m: m["concept"], "i2", -1)], framework="numpy"):
        for span in batch.spans:
            assert (batch.columns["concept"][span.row, span.start : span.stop] == span.metadata["concept"]).all()
        assert (batch.columns["concept"][~batch.valid] == -1).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"end_of_document": 1, "begin_of_document": 2}, "give one of them"),
        ({"end_of_document": 70_000}, "end_of_document=70000: must be from 0 to 65,535"),
        ({"begin_of_document": -1}, "begin_of_document=-1: must be from 0"),
        ({"begin_of_document": "<s>"}, "must be an integer"),
    ],
)
def test_tokens_that_bound_nothing(tmp_path, given, words):
    dataset = token_stream(tmp_path, 50)[0]
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        dataset.windows(5, **given)
    with pytest.raises(penstock.InvalidArgumentError, match=r"no spans.*windows\(…, end_of_document=…\)"):
        loader(dataset.windows(5, lookahead=1), columns=[Labels(cross_document=False)])
    with pytest.raises(penstock.InvalidArgumentError, match="end_of_document is 3, and the view was made with begin"):
        loader(dataset.windows(5, begin_of_document=3), columns=[PositionIds(3)])


# --- attention


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_with_document_ids_a_document_changes_no_other_ones_output(tmp_path):
    torch = pytest.importorskip("torch")
    attention = pytest.importorskip("torch.nn.attention.flex_attention")
    window, heads, width = 24, 2, 16
    torch.manual_seed(0)
    embed, place = torch.randn(100, heads * width), torch.randn(window, heads * width)
    project = torch.randn(3, heads * width, heads * width) / (heads * width) ** 0.5
    shards = ((5, 0, 9, 31, 3, 2, 40, 1, 6, 7), (11, 8, 30, 4))

    def outputs(folder: str, change: int | None) -> list[tuple[Any, Any]]:
        """For each batch its outputs, NaN nowhere, and the numbers of the documents that they are of (-1: padding)."""
        made = []
        (tmp_path / folder).mkdir()
        stream = Stream(tmp_path / folder, shards)
        if change is not None:
            paths = []
            for shard, lengths in enumerate(shards):
                paths.append(tmp_path / folder / f"changed-{shard}")
                before = sum(map(len, shards[:shard]))
                with penstock.Writer(paths[-1], fields=FIELDS, metadata="json") as writer:
                    for document in range(before, before + len(lengths)):
                        at = slice(*stream.firsts[document : document + 2])
                        tokens = (stream.tokens[at] + (document == change) * 31) % 100
                        writer.append(
                            token=tokens,
                            loss=stream.loss[at],
                            weight=np.ones(len(tokens)),
                            metadata={"number": document},
                        )
            dataset = penstock.open(*paths)
        else:
            dataset = stream.dataset
        view = dataset.windows(window, lookahead=1)
        columns = ["document_ids", "position_ids", PerSpan("document", lambda m: m["number"], "i8", -1)]
        for batch in loader(view, 4, columns=columns, epochs=1):
            x = embed[batch.inputs] + place[batch.position_ids.long()]
            q, k, v = (torch.matmul(x, each).unflatten(-1, (heads, width)).transpose(1, 2) for each in project)
            ids = batch.document_ids

            def sees(b: Any, _: Any, q_at: Any, k_at: Any, ids: Any = ids) -> Any:
                return (q_at >= k_at) & (ids[b, q_at] == ids[b, k_at])

            mask = attention.create_block_mask(sees, len(ids), None, window, window, device="cpu")
            out = attention.flex_attention(q, k, v, block_mask=mask).transpose(1, 2).flatten(2)
            assert not out.isnan().any()
            made.append((out, batch.columns["document"]))
        return made

    plain = outputs("plain", None)
    assert any((documents == -1).any() for _, documents in plain)
    for change in (0, 2, 3, 6, 12):
        seen = 0
        for (before, documents), (after, same) in zip(plain, outputs(f"changed {change}", change), strict=True):
            assert torch.equal(documents, same)
            changed = (before != after).any(-1)
            assert torch.equal(changed, documents == change)
            seen += int(changed.sum())
        lengths = sum(shards, ())
        begin = sum(lengths[:change])
        assert seen == min(begin + lengths[change], 6 * window) - begin > 0  # no window holds the end of the stream
