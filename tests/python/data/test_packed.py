"""Packed rows: their counts, tables and states, and what is refused.

Which rows they are, the native packing_test says of every rule, and what they give in every order, tests/model.
"""

from __future__ import annotations

import pickle

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, assert_all_same, compact, opaque, raw_tokens, snapshot
from _refused import refused
from penstock import _native
from penstock._cli.main import main


@pytest.mark.parametrize("multiple_of", [1, 3])
def test_rows_are_counted_and_each_piece_is_there_once(tmp_path, multiple_of):
    dataset, _ = compact(tmp_path, LENGTHS)
    window, all_of = 9, [length for shard in LENGTHS for length in shard]
    for options, kept in (
        ({}, all_of),
        ({"fit": "first", "group": 3}, all_of),
        ({"long": "truncate"}, [min(length, window) for length in all_of]),
        ({"long": "drop"}, [length for length in all_of if length <= window]),
    ):
        view = dataset.packed(window, multiple_of=multiple_of, **options)
        pieces = sorted(min(window, length - at) for length in kept for at in range(0, length, window))
        assert sorted(span.stop - span.start for span in view.read(range(len(view))).spans) == pieces
        assert {span.start % multiple_of for one in view for span in one.spans} == {0}
        assert view.waste == pytest.approx(1 - sum(kept) / (len(view) * window))
        assert view.packing.pieces == len(pieces) and view.packing.documents == len(all_of)
        assert view.packing.records_left_out == sum(all_of) - sum(kept)
    for cut, most in (("split", 4), ("truncate", 4), ("split", 9)):
        view = dataset.packed(window, multiple_of=multiple_of, max_document=most, cut=cut)
        kept = all_of if cut == "split" else [min(length, most) for length in all_of]
        pieces = sorted(min(most, length - at) for length in kept for at in range(0, length, most))
        spans = view.read(range(len(view))).spans
        assert sorted(span.stop - span.start for span in spans) == pieces
        assert {span.offset % most for span in spans} == {0}
        assert view.packing.records_left_out == sum(all_of) - sum(kept)
    assert dataset.packed(window, max_document=4).rows == dataset.packed(window, max_document=4, cut="split").rows
    assert len(dataset.packed(window)) < len(dataset.packed(window, group=2))


def test_no_row_has_more_sequences_than_max_documents(tmp_path):
    dataset, _ = compact(tmp_path, [[10] * 8 + [7, 3, 1, 1, 1, 1, 2, 29, 40, 41]])
    for options in ({}, {"fit": "first"}, {"multiple_of": 4}, {"max_document": 5}):
        for most in (2, 3, 4):
            view = dataset.packed(40, max_documents=most, **options)
            loader = penstock.Loader(view, 1, columns=["cu_seqlens"], max_documents=most, epochs=1, framework="numpy")
            counts = [int((np.diff(batch.cu_seqlens) > 0).sum()) for batch in loader]
            assert len(counts) == len(view) and max(counts) == most
            assert view.packing.pieces == dataset.packed(40, **options).packing.pieces
            full = penstock.Loader(view, 3, columns=["cu_seqlens"], max_documents=3 * most, epochs=1)
            assert sum(1 for _ in full) == -(-len(view) // 3)
    assert len(dataset.packed(40, max_documents=2)) > len(dataset.packed(40, max_documents=4)) > len(dataset.packed(40))


def in_order(lengths, window, most):
    """Rows (document, records) as trainers cut them: documents in order, of at most `most`, the last one cut."""
    rows, row, room = [], [], window
    for number, length in enumerate(lengths):
        row.append((number, min(length, most, room)))
        room -= row[-1][1]
        if room == 0:
            rows.append(row)
            row, room = [], window
    return rows


def from_a_buffer(lengths, window, buffer, refill):
    """Likewise by the longest one of a buffer that fits, else the shortest, which is cut."""
    coming, waiting, rows, row, room = list(enumerate(lengths)), [], [], [], window
    while coming or waiting:
        while coming and len(waiting) < buffer:
            waiting, coming = waiting + coming[:refill], coming[refill:]
        fitting = [each for each in waiting if each[1] <= room]
        chosen = max(fitting, key=lambda each: each[1]) if fitting else min(waiting, key=lambda each: each[1])
        waiting.remove(chosen)
        row.append((chosen[0], min(chosen[1], room)))
        room -= row[-1][1]
        if room == 0:
            rows.append(row)
            row, room = [], window
    return rows


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"fit": "next"}, lambda lengths: in_order(lengths, 40, 1000)),
        ({"fit": "next", "max_document": 16, "cut": "truncate"}, lambda lengths: in_order(lengths, 40, 16)),
        ({}, lambda lengths: from_a_buffer(lengths, 40, 1000, 128)),
        ({"buffer": 20, "refill": 1}, lambda lengths: from_a_buffer(lengths, 40, 20, 1)),
        ({"buffer": 3}, lambda lengths: from_a_buffer(lengths, 40, 3, 128)),
        ({"fit": "best", "buffer": 9, "refill": 7}, lambda lengths: from_a_buffer(lengths, 40, 9, 7)),
    ],
)
def test_exact_rows_are_those_that_trainers_cut(tmp_path, options, rule):
    shards = [np.random.default_rng(seed).integers(1, 90, count).tolist() for seed, count in ((1, 150), (2, 60))]
    dataset, _ = compact(tmp_path, shards)
    view = dataset.packed(40, fill="exact", **options)
    wanted, before = [], 0
    for lengths in shards:  # rows end with their shard
        wanted += [[(before + number, kept) for number, kept in row] for row in rule(lengths)]
        before += len(lengths)
    starts = [0, len(shards[0])]
    found = [[(starts[s.id[0]] + s.id[1], s.stop - s.start) for s in view[i].spans] for i in range(len(view))]
    assert found == wanted
    assert view.waste == 0 and all(span.begins for one in view for span in one.spans)
    documents = dataset.documents()
    for number, row in enumerate(wanted):
        records = np.concatenate([documents[each]["token"][:kept] for each, kept in row])
        assert view[number]["token"].tolist() == records.tolist() and len(records) == 40
    there = {each for row in wanted for each, _ in row}
    assert view.packing.left_out == sum(map(len, shards)) - len(there)
    assert view.packing.records_left_out == sum(map(sum, shards)) - 40 * len(view)


@pytest.mark.parametrize("options", [{"fit": "next"}, {"buffer": 8, "refill": 3}, {"fit": "next", "max_document": 9}])
def test_exact_rows_resume_at_every_step_on_other_ranks(tmp_path, options):
    dataset, _ = compact(tmp_path, [np.random.default_rng(3).integers(1, 30, 90).tolist()])
    view = dataset.packed(25, fill="exact", **options)
    made = {"global_batch_size": 60, "seed": 5, "epochs": 12, "framework": "numpy", "columns": ["cu_seqlens"]}
    with penstock.Loader(view, **made) as loader:
        batches = [(snapshot(batch), batch.state_dict()) for batch in loader]
    assert sorted(batches[0][0]["indices"][: len(view)].tolist()) == list(range(len(view)))  # each once an epoch
    for step, (_, state) in enumerate(batches[:-1]):
        ranks = 1 + step % 5
        rows = []
        for rank in range(ranks):
            with penstock.Loader(view, **made, rank=rank, world_size=ranks) as loader:
                loader.load_state_dict(state)
                rows.append(next(loader)["token"])
        wanted = batches[step + 1][0]["token"]
        assert all((part == wanted[rank::ranks]).all() for rank, part in enumerate(rows))


@pytest.mark.parametrize(
    "options", [{}, {"fill": "exact", "fit": "next"}, {"fill": "exact", "buffer": 5}, {"max_document": 7, "group": 9}]
)
def test_rows_with_lookahead_have_a_label_for_their_last_record(tmp_path, options):
    dataset, _ = compact(tmp_path, [np.random.default_rng(4).integers(1, 60, 120).tolist()])
    view, longer = dataset.packed(40, lookahead=1, **options), dataset.packed(41, **options)
    assert (len(view), view.window, view.lookahead) == (len(longer), 40, 1)
    columns = ["cu_seqlens", "position_ids", "document_ids"]
    made = {"batch_size": 4, "seed": 2, "epochs": 1, "framework": "numpy", "columns": columns}
    with penstock.Loader(view, **made) as loader, penstock.Loader(longer, **made) as other:
        for one, all_of in zip(loader, other, strict=True):
            assert one.inputs.shape == one.labels.shape == (4, 40)
            assert (one["token"] == all_of["token"]).all()
            for name in ("inputs", "labels", "position_ids", "document_ids"):
                assert (getattr(one, name) == getattr(all_of, name)[:, :40]).all()
            assert one.cu_seqlens[:-1].tolist() == np.flatnonzero(one.position_ids == 0).tolist()
    table = tmp_path / "table"
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    assert main(["pack", str(dataset.path), "--window", "40", "--lookahead", "1", "--out", str(table), *words]) == 0
    assert dataset.packed(40, lookahead=1, table=table, **options).packing == view.packing


def test_a_table_in_a_file_gives_the_same_view(tmp_path, capsys):
    dataset, _ = compact(tmp_path, LENGTHS)
    path = tmp_path / "table"
    command = ["pack", *(str(tmp_path / f"compact-{i}") for i in range(4)), "--window", "9", "--out", str(path)]
    assert main(command) == 0
    view = dataset.packed(9)
    assert f"{len(view):,}" in capsys.readouterr().out and path.exists()
    refused(
        "its rows have 9 records, where window=9 and lookahead=1 are 10", dataset.packed, 9, lookahead=1, table=path
    )
    tabled = dataset.packed(9, table=path)
    assert tabled.packing == view.packing and repr(str(path)) in repr(tabled)
    with penstock.Loader(view, 3, seed=1, epochs=2, framework="numpy") as loader:
        batches = [snapshot(batch) for batch in loader]
        state = loader.state_dict()
    for same in (tabled, pickle.loads(pickle.dumps(tabled))):
        with penstock.Loader(same, 3, seed=1, epochs=2, framework="numpy") as loader:
            assert_all_same([snapshot(batch) for batch in loader], batches)
            assert loader.state_dict() == state
    for wrong, named in (
        ({"window": 12}, "window=9"),
        ({"window": 9, "fit": "first"}, "fit='best'"),
        ({"window": 9, "multiple_of": 3}, "multiple_of=1"),
        ({"window": 9, "group": 3}, "group=65536"),
        ({"window": 9, "long": "drop"}, "long='split'"),
    ):
        refused(named, dataset.packed, **wrong, table=path)
    limited = tmp_path / "limited"
    assert main([*command[:-1], str(limited), "--max-document", "4", "--cut", "truncate"]) == 0
    tabled = dataset.packed(9, max_document=4, cut="truncate", table=limited)
    assert tabled.packing == dataset.packed(9, max_document=4, cut="truncate").packing
    for wrong, named in (
        ({}, "max_document=4"),
        ({"max_document": 5, "cut": "truncate"}, "max_document=4"),
        ({"max_document": 4}, "cut='truncate'"),
    ):
        refused(named, dataset.packed, 9, **wrong, table=limited)
    exact = tmp_path / "exact"
    assert main([*command[:-1], str(exact), "--fill", "exact", "--buffer", "3"]) == 0
    tabled = dataset.packed(9, fill="exact", buffer=3, table=exact)
    assert tabled.packing == dataset.packed(9, fill="exact", buffer=3).packing
    for wrong, named in (
        ({}, "fill='exact'"),
        ({"fill": "exact"}, "buffer=3"),
        ({"fill": "exact", "fit": "next"}, "fit='best'"),
        ({"fill": "exact", "buffer": 3, "refill": 2}, "refill=128"),
    ):
        refused(named, dataset.packed, 9, **wrong, table=exact)
    refused(r"fingerprint.*penstock pack", dataset.select([0, 2]).packed, 9, table=path)
    assert main(command) != 0 and "there already" in capsys.readouterr().err


def test_a_state_belongs_to_one_packing_and_a_position_to_rows_of_one_length(tmp_path):
    dataset, _ = compact(tmp_path, LENGTHS)
    with penstock.Loader(dataset.packed(9), 2) as loader:
        next(loader)
        state = loader.state_dict()
    for other, named in (
        (dataset.packed(10), "window"),
        (dataset.packed(9, fit="first"), "fit"),
        (dataset.packed(9, group=2), "group"),
        (dataset.packed(9, long="drop"), "long"),
        (dataset.packed(9, fill="exact"), "fill"),
        (dataset.packed(9, lookahead=1), "lookahead"),
        (dataset.packed(9, max_document=4), "max_document"),
        (dataset.packed(9, max_documents=4), "max_documents"),
        (dataset.windows(9), "view"),
        (dataset.documents(), "view"),
    ):
        with penstock.Loader(other, 2) as loader, pytest.raises(penstock.StateMismatchError, match=named):
            loader.load_state_dict(state)
    with penstock.Loader(dataset.packed(9, fit="first"), 2, on_mismatch="keep_position") as loader:
        assert loader.load_state_dict(state).position == 2
    for other in (dataset.packed(10), dataset.windows(9)):
        loader = penstock.Loader(other, 2, on_mismatch="keep_position")
        with loader, pytest.raises(penstock.StateMismatchError, match="packed rows of 9"):
            loader.load_state_dict(state)


def test_what_cannot_be_packed_is_refused(tmp_path, monkeypatch):
    dataset, _ = compact(tmp_path, LENGTHS)
    (tmp_path / "others").mkdir()
    for pattern, options in (
        ("window", {"window": 0}),
        ("window", {"window": 1 << 25}),
        ("window='9'", {"window": "9"}),
        ("fit='worst'", {"fit": "worst"}),
        ("group", {"group": 0}),
        ("long='keep'", {"long": "keep"}),
        ("multiple_of=2", {"multiple_of": 2}),
        ("fill='full'", {"fill": "full"}),
        ("lookahead=-1", {"lookahead": -1}),
        ("multiple_of=3.*lookahead=1", {"lookahead": 1, "multiple_of": 3}),
        ("max_document=11: a row has 10", {"lookahead": 1, "max_document": 11}),
        ("group=3: .*buffer=", {"fill": "exact", "group": 3}),
        ("group=65536", {"fill": "exact", "group": 65536}),
        ("long='drop'", {"fill": "exact", "long": "drop"}),
        ("multiple_of=3", {"fill": "exact", "multiple_of": 3}),
        ('fit="first"', {"fill": "exact", "fit": "first"}),
        ('fit="next".*fill="exact"', {"fit": "next"}),
        ("buffer=3", {"buffer": 3}),
        ("refill=3", {"fill": "exact", "fit": "next", "refill": 3}),
        ("buffer=0", {"fill": "exact", "buffer": 0}),
        ("max_document=10: a row has 9", {"fill": "exact", "max_document": 10, "cut": "split"}),
        ("max_documents=2: a row, after document", {"fill": "exact", "fit": "next", "max_documents": 2}),
        ("none of its .* documents .*fill one", {"fill": "exact", "window": 4000}),
        ("max_documents=1: .*at least 2", {"max_documents": 1}),
        ("max_documents=0", {"max_documents": 0}),
        ("max_document=0", {"max_document": 0}),
        ("max_document=10: a row has 9", {"max_document": 10}),
        ("cut='drop'", {"max_document": 4, "cut": "drop"}),
        ("cut='split'.*max_document=", {"cut": "split"}),
        ("long='drop'.*cut=", {"max_document": 4, "long": "drop"}),
        ("document 2 has 11 records", {"long": "refuse"}),
        ("no column", {"columns": ["none"]}),
        ("token stream", {"source": raw_tokens(tmp_path / "tokens.bin", 100)[0]}),
        ("without records", {"source": opaque(tmp_path / "others", 3)[0]}),
    ):
        refused(pattern, options.pop("source", dataset).packed, **{"window": 9, **options})
    with pytest.raises(penstock.NotFoundError):
        dataset.packed(9, table=tmp_path / "none")
    refused("packed", lambda: dataset.windows(3).waste, error=AttributeError)
    monkeypatch.setattr(_native, "MOST_PACKED_AT_OPENING", 3)  # documents; for more a table is made
    refused(r"penstock pack .* --window 9 --out FILE.*table=FILE", dataset.packed, 9)
