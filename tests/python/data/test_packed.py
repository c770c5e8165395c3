"""Packed rows: whole documents in rows of one length, as their definition says, in every order, on any ranks."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, assert_all_same, compact, opaque, raw_tokens, snapshot


def written(path: Path, lengths: Any, **options: Any) -> penstock.Dataset:
    """Documents whose tokens are 1000 * document + place + 1, so none is 0."""
    with penstock.Writer(path, fields={"token": "u4", "loss": "u1"}, metadata="json", **options) as writer:
        for number, length in enumerate(lengths):
            token = 1000 * number + np.arange(length) + 1
            writer.append(token=token, loss=token % 2, metadata={"document": number})
    return penstock.open(path)


def by_definition(
    shards: Any, window: int, fit: str = "best", group: int = 65_536, long: str = "split", multiple_of: int = 1
) -> list[list[tuple[int, int, int, int]]]:
    """(shard, document, offset, length) of the pieces of each row, by looking at every row for every piece."""
    rows = []
    for shard, lengths in enumerate(shards):
        for begin in range(0, len(lengths), group):
            pieces = []
            for number, length in enumerate(lengths[begin : begin + group], begin):
                if length > window and long == "drop":
                    continue
                kept = min(length, window) if long == "truncate" else length
                pieces += [(shard, number, at, min(window, kept - at)) for at in range(0, kept, window)]
            rooms: list[int] = []
            found: list[list[tuple[int, int, int, int]]] = []
            for piece in sorted(pieces, key=lambda piece: -piece[3]):
                takes = -(-piece[3] // multiple_of) * multiple_of
                fitting = [row for row, room in enumerate(rooms) if room >= takes]
                row = min(fitting, key=lambda row: (rooms[row] if fit == "best" else 0, row), default=len(rooms))
                if row == len(rooms):
                    rooms.append(window)
                    found.append([])
                rooms[row] -= takes
                found[row].append(piece)
            rows += found
    return rows


OPTIONS: list[dict[str, Any]] = [
    {}, {"fit": "first"}, {"group": 2}, {"long": "truncate"}, {"long": "drop"}, {"multiple_of": 3},
    {"fit": "first", "group": 3, "multiple_of": 3, "long": "drop"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("window", [3, 9, 12, 60])
def test_rows_are_those_of_the_definition(tmp_path, window, options):
    dataset, model = compact(tmp_path, LENGTHS)
    view = dataset.packed(window, **options)
    wanted = by_definition(LENGTHS, window, **options)
    assert len(view) == len(wanted)
    starts = {(span.shard, span.number): span.start for span in model.spans}
    multiple = options.get("multiple_of", 1)
    read = view.read(range(len(view)))
    for row, pieces in enumerate(wanted):
        assert [(*span.id, span.offset, span.stop - span.start) for span in read.spans.of_row(row)] == pieces
        token, labels = np.zeros(window, "u2"), np.full(window, -100)
        at = 0
        for span, (shard, number, offset, length) in zip(read.spans.of_row(row), pieces, strict=True):
            assert span.start == at and span.metadata["number"] == number
            assert span.begins == (offset == 0) and span.ends == (offset + length == LENGTHS[shard][number])
            first = starts[shard, number] + offset
            token[at : at + length] = model.records["token"][first : first + length]
            labels[at : at + length - 1] = token[at + 1 : at + length]
            at += -(-length // multiple) * multiple
        np.testing.assert_array_equal(read["token"][row], token)
        np.testing.assert_array_equal(read.inputs[row], token)
        np.testing.assert_array_equal(read.labels[row], labels)
        np.testing.assert_array_equal(view[row]["token"], token)
        np.testing.assert_array_equal(view[row].labels, labels)
    used = sum(piece[3] for pieces in wanted for piece in pieces)
    assert view.waste == pytest.approx(1 - used / (len(view) * window))
    assert view.packing.pieces == sum(map(len, wanted)) and view.packing.documents == sum(map(len, LENGTHS))
    assert view.packing.records_left_out == sum(map(sum, LENGTHS)) - used


def test_old_rows_stay_when_shards_are_appended(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    whole = dataset.packed(9, group=4)
    first = dataset.select([0, 1]).packed(9, group=4)
    assert 0 < len(first) < len(whole)
    for index in range(len(first)):
        assert first[index]["token"].tolist() == whole[index]["token"].tolist()


def test_document_columns_know_pieces_and_padding(tmp_path):
    dataset = written(tmp_path / "d", [3, 1, 6, 5])
    view = dataset.packed(8, multiple_of=2)  # rows: 6 + 1 -> [6, 2], 5 -> [6 …], 3 joins neither: 5 takes 6, 3 takes 4
    columns = ["cu_seqlens", "position_ids", "document_ids"]
    loader = penstock.Loader(view, len(view) + 1, order="sequential", columns=columns, framework="numpy", epochs=1)
    batch = next(loader)
    rows = [[(span.start, span.stop) for span in batch.spans.of_row(row)] for row in range(len(view))]
    assert rows == [[(0, 6), (6, 7)], [(0, 5)], [(0, 3)]]
    assert batch.cu_seqlens.tolist() == [0, 6, 8, 14, 16, 20, 24, 32] and batch.max_seqlen == 8
    assert batch.document_ids.tolist() == [
        [0, 0, 0, 0, 0, 0, 1, -1], [0, 0, 0, 0, 0, -1, -1, -1], [0, 0, 0, -1, -1, -1, -1, -1], [-1] * 8,
    ]  # fmt: skip
    assert batch.position_ids[0].tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    assert batch.position_ids[1].tolist() == [0, 1, 2, 3, 4, 5, 0, 1]
    assert (batch.labels[3] == -100).all() and not batch["token"][3].any()
    with pytest.raises(penstock.InvalidArgumentError, match="packed rows know their documents"):
        penstock.Loader(view, 2, columns=[penstock.columns.CuSeqlens(end_of_document=5)])


def test_attention_sees_no_other_document(tmp_path):
    torch = pytest.importorskip("torch")
    dataset = written(tmp_path / "d", [5, 3, 4, 2])
    batch = next(
        penstock.Loader(dataset.packed(16), 1, columns=["document_ids"], order="sequential", framework="torch")
    )
    ids = batch.document_ids[0]
    causal = torch.tril(torch.ones(16, 16, dtype=torch.bool))
    allowed = causal & (ids[:, None] == ids[None, :])
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(5000, 8)

    def attend(tokens: Any) -> Any:
        states = embedding(tokens)[None, None]
        return torch.nn.functional.scaled_dot_product_attention(states, states, states, attn_mask=allowed)[0, 0]

    before = attend(batch.inputs[0])
    changed = batch.inputs[0].clone()
    first = batch.spans[0]
    changed[first.start : first.stop] += 1
    after = attend(changed)
    torch.testing.assert_close(before[first.stop :], after[first.stop :], rtol=0, atol=0)
    assert not torch.equal(before[: first.stop], after[: first.stop])


def test_columns_of_documents_go_with_pieces(tmp_path):
    lengths = [3, 9, 4, 2]
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "json", columns={"number": "i4"}) as writer:
        for number, length in enumerate(lengths):
            writer.append({}, columns={"number": number}, token=np.arange(length))
    view = penstock.open(tmp_path / "d").packed(10, columns=["number"])
    batch = view.read(range(len(view)))
    assert batch.columns["number"].tolist() == [span.id.entry for span in batch.spans]


def test_a_table_in_a_file_gives_the_same_view(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    path = tmp_path / "table"
    command = [sys.executable, "-m", "penstock", "pack", *(str(tmp_path / f"compact-{i}") for i in range(4))]
    said = subprocess.run([*command, "--window", "9", "--out", path], capture_output=True, text=True, check=True)
    view = dataset.packed(9)
    assert f"{len(view):,}" in said.stdout and path.exists()
    tabled = dataset.packed(9, table=path)
    assert tabled.packing == view.packing and repr(str(path)) in repr(tabled)
    with penstock.Loader(view, 3, seed=1, epochs=2, framework="numpy") as loader:
        batches = [snapshot(batch) for batch in loader]
        state = loader.state_dict()
    for same in (tabled, pickle.loads(pickle.dumps(tabled))):
        with penstock.Loader(same, 3, seed=1, epochs=2, framework="numpy") as loader:
            assert_all_same([snapshot(batch) for batch in loader], batches)
            assert loader.state_dict() == state
    for wrong, named in [
        ({"window": 12}, "window=9"), ({"window": 9, "fit": "first"}, "fit='best'"),
        ({"window": 9, "multiple_of": 3}, "multiple_of=1"), ({"window": 9, "group": 3}, "group=65536"),
        ({"window": 9, "long": "drop"}, "long='split'"),
    ]:  # fmt: skip
        with pytest.raises(penstock.InvalidArgumentError, match=named):
            dataset.packed(**wrong, table=path)
    with pytest.raises(penstock.InvalidArgumentError, match=r"fingerprint.*penstock pack"):
        dataset.select([0, 2]).packed(9, table=path)
    again = subprocess.run([*command, "--window", "9", "--out", path], capture_output=True, text=True, check=False)
    assert again.returncode != 0 and "there already" in again.stderr


def test_a_damaged_table_is_the_error_of_its_batch(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    path = tmp_path / "table"
    from penstock._data.packed import resolve, write_table

    write_table(dataset._native, resolve(9), str(path))
    data = bytearray(path.read_bytes())
    data[4096 + 3] ^= 1
    path.write_bytes(data)
    view = dataset.packed(9, table=path)
    with pytest.raises(penstock.CorruptionError, match="table"):
        view.read(range(len(view)))


def test_a_state_belongs_to_one_packing(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    with penstock.Loader(dataset.packed(9), 2) as loader:
        next(loader)
        state = loader.state_dict()
    for other, named in [
        (dataset.packed(10), "window"), (dataset.packed(9, fit="first"), "fit"), (dataset.packed(9, group=2), "group"),
        (dataset.packed(9, long="drop"), "long"), (dataset.windows(9), "view"), (dataset.documents(), "view"),
    ]:  # fmt: skip
        with penstock.Loader(other, 2) as loader, pytest.raises(penstock.StateMismatchError, match=named):
            loader.load_state_dict(state)


def test_a_position_is_kept_among_rows_of_one_length_alone(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    with penstock.Loader(dataset.packed(9), 2) as loader:
        next(loader)
        state = loader.state_dict()
    with penstock.Loader(dataset.packed(9, fit="first"), 2, on_mismatch="keep_position") as loader:
        assert loader.load_state_dict(state).position == 2
    for other in (dataset.packed(10), dataset.windows(9)):
        loader = penstock.Loader(other, 2, on_mismatch="keep_position")
        with loader, pytest.raises(penstock.StateMismatchError, match="packed rows of 9"):
            loader.load_state_dict(state)


def test_what_cannot_be_packed_is_refused(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)

    def refused(pattern: str, source: penstock.Dataset = dataset, **options: Any) -> None:
        with pytest.raises(penstock.InvalidArgumentError, match=pattern):
            source.packed(**{"window": 9, **options})

    refused("window", window=0)
    refused("window", window=1 << 25)
    refused("window='9'", window="9")
    refused("fit='worst'", fit="worst")
    refused("group", group=0)
    refused("long='keep'", long="keep")
    refused("multiple_of=2", multiple_of=2)
    refused("document 2 has 11 records", long="refuse")
    refused("no column", columns=["none"])
    (tmp_path / "others").mkdir()
    refused("token stream", raw_tokens(tmp_path / "tokens.bin", 100)[0])
    refused("without records", opaque(tmp_path / "others", 3)[0])
    with pytest.raises(penstock.NotFoundError):
        dataset.packed(9, table=tmp_path / "none")
    with pytest.raises(AttributeError, match="packed"):
        dataset.windows(3).waste  # noqa: B018


def test_more_documents_than_are_packed_now_need_a_table(tmp_path, monkeypatch):
    from penstock import _native

    monkeypatch.setattr(_native, "MOST_PACKED_AT_OPENING", 3)
    dataset, _ = compact(tmp_path, LENGTHS)
    with pytest.raises(penstock.InvalidArgumentError, match=r"penstock pack .* --window 9 --out FILE.*table=FILE"):
        dataset.packed(9)


def test_megatron_documents_are_packed(tmp_path):
    lengths = [3, 0, 7, 5, 2]
    tokens = np.arange(1, sum(lengths) + 1, dtype="u2")
    tokens.tofile(tmp_path / "m.bin")
    sequences = np.array([length for length in lengths if length], "i4")
    pointers = np.concatenate([[0], np.cumsum(sequences)[:-1]]).astype("i8") * 2
    documents = np.concatenate([[0], np.cumsum([length > 0 for length in lengths])]).astype("i8")
    header = b"MMIDIDX\0\0" + np.array([1], "u8").tobytes() + bytes([8])
    counts = np.array([len(sequences), len(documents)], "u8").tobytes()
    body = sequences.tobytes() + pointers.tobytes() + documents.tobytes()
    (tmp_path / "m.idx").write_bytes(header + counts + body)
    dataset = penstock.open(tmp_path / "m")
    assert dataset.documents().lengths().tolist() == lengths
    view = dataset.packed(10)
    assert len(view) == 2 and view.waste == pytest.approx(0.15)
    rows = view.read([0, 1])["token"]
    begins = np.concatenate([[0], np.cumsum(lengths)])
    for row, pieces in enumerate(by_definition([lengths], 10)):
        wanted = np.concatenate([tokens[begins[number] : begins[number + 1]] for _, number, _, _ in pieces])
        assert rows[row, : len(wanted)].tolist() == wanted.tolist()
