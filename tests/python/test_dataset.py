"""Datasets of ours as objects: what they say, pickling, several as one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import penstock
import pytest


def write(path: Path, documents: list[list[int]], layout: str = "compact", fields: str = "u2") -> penstock.Dataset:
    with penstock.Writer(path, fields={"token": fields}, metadata="json", layout=layout) as writer:
        for number, tokens in enumerate(documents):
            writer.append(token=tokens, metadata={"number": number})
    return penstock.open(path)


DOCUMENTS = [[1, 2, 3], [4], [5, 6, 7, 8]]


def test_a_dataset_says_what_it_is(tmp_path):
    dataset = write(tmp_path / "a", DOCUMENTS)
    assert (dataset.kind, dataset.mode, dataset.layout, dataset.codec) == ("penstock", "stream", "compact", "json")
    assert (dataset.records, dataset.spans, len(dataset), dataset.tokenizer) == (8, 3, 8, None)
    assert dataset.dtype == np.dtype([("token", "<u2")])
    assert [shard[:4] for shard in dataset.shards] == [("00000", 8, 3, 3)]
    assert dataset.path == str(tmp_path / "a")
    assert "8 records, 1 shards" in repr(dataset)
    assert "windows(2, lookahead=1)" in repr(dataset.windows(2, lookahead=1))


def test_opening_reads_the_manifest_and_nothing_else(tmp_path):
    write(tmp_path / "a", DOCUMENTS)
    (tmp_path / "a" / "00000" / "stream.bin").unlink()
    dataset = penstock.open(tmp_path / "a")
    with pytest.raises(FileNotFoundError, match=r"stream\.bin"):
        dataset.windows(2)[0]


def test_views_of_slices_and_rows(tmp_path):
    view = write(tmp_path / "a", DOCUMENTS).windows(2, lookahead=1)
    assert len(view) == 3
    assert [one["token"].tolist() for one in view[1:]] == [[3, 4, 5], [5, 6, 7]]
    assert [one["token"].tolist() for one in view[::-2]] == [[5, 6, 7], [1, 2, 3]]
    one = view[1]
    assert one["token"].tolist() == [3, 4, 5]
    assert (one.inputs.tolist(), one.labels.tolist()) == ([3, 4], [4, 5])
    assert one.records["token"].tolist() == [3, 4, 5]
    assert list(one) == ["token"] and "token [3]; 3 spans" in repr(one)
    assert [(span.start, span.stop, span.begins, span.ends, span.offset) for span in one.spans] == [
        (0, 1, False, True, 2),
        (1, 2, True, True, 0),
        (2, 3, True, False, 0),
    ]


def test_an_observation_outlives_its_view(tmp_path):
    one = write(tmp_path / "a", DOCUMENTS).documents()[2]
    tokens, spans = one["token"], one.spans
    del one
    assert tokens.tolist() == [5, 6, 7, 8]
    assert spans[0].metadata == {"number": 2}


def test_several_are_one_stream_with_the_fingerprint_that_combining_gives(tmp_path):
    a = write(tmp_path / "a", DOCUMENTS)
    b = write(tmp_path / "b", [[9, 10]])
    penstock.combine([tmp_path / "a", tmp_path / "b"], tmp_path / "both")
    combined = penstock.open(tmp_path / "both")
    for both in (penstock.concatenate([a, b]), penstock.open(tmp_path / "a", tmp_path / "b")):
        assert both.fingerprint == combined.fingerprint not in (a.fingerprint, b.fingerprint)
        assert [one["token"].tolist() for one in both.documents()] == [*DOCUMENTS, [9, 10]]
        assert both.windows(10)[0]["token"].tolist() == combined.windows(10)[0]["token"].tolist()
    assert penstock.concatenate([b, a]).fingerprint != combined.fingerprint


def test_what_does_not_go_together_is_refused(tmp_path):
    a = write(tmp_path / "a", DOCUMENTS)
    with pytest.raises(ValueError, match="fields"):
        penstock.concatenate([a, write(tmp_path / "wide", DOCUMENTS, fields="u4")])
    penstock.convert(tmp_path / "a", tmp_path / "ids", "ids")
    with pytest.raises(ValueError, match="layout"):
        penstock.concatenate([a, penstock.open(tmp_path / "ids")])
    np.arange(4, dtype="u2").tofile(tmp_path / "t.bin")
    with pytest.raises(ValueError, match="kind"):
        penstock.open(tmp_path / "a", tmp_path / "t.bin", dtype="u2")
    with pytest.raises(ValueError, match="kind"):
        penstock.concatenate([a, penstock.open(tmp_path / "t.bin", dtype="u2")])
    with pytest.raises(ValueError, match="no datasets"):
        penstock.concatenate([])


def test_the_ids_layout_has_no_documents_and_says_how_to_convert(tmp_path):
    write(tmp_path / "a", DOCUMENTS)
    penstock.convert(tmp_path / "a", tmp_path / "ids", "ids")
    dataset = penstock.open(tmp_path / "ids")
    assert dataset.layout == "ids" and dataset.dtype.names == ("token",)
    with pytest.raises(ValueError, match="penstock convert"):
        dataset.documents()


def test_a_changed_dataset_does_not_unpickle(tmp_path):
    np.arange(9, dtype="u2").tofile(tmp_path / "t.bin")
    text = pickle.dumps(penstock.open(tmp_path / "t.bin", dtype="u2").windows(2))
    assert len(pickle.loads(text)) == 4
    np.arange(1, 10, dtype="u2").tofile(tmp_path / "t.bin")
    with pytest.raises(penstock.InvalidArgumentError, match="changed since it was pickled"):
        pickle.loads(text)


def test_relative_paths_unpickle_in_a_process_elsewhere(tmp_path, monkeypatch):
    write(tmp_path / "a", DOCUMENTS)
    write(tmp_path / "b", DOCUMENTS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v").write_bytes(pickle.dumps(penstock.open("a", "b").documents()))
    script = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))[5]['token'].tolist())"
    found = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "v"], cwd="/", capture_output=True, text=True, check=True
    )
    assert found.stdout == "[5, 6, 7, 8]\n"


def test_a_view_works_in_a_forked_child(tmp_path):
    view = write(tmp_path / "a", DOCUMENTS).documents()
    view[0]
    child = os.fork()
    if child == 0:
        os._exit(0 if view[2]["token"].tolist() == [5, 6, 7, 8] else 1)
    assert os.waitpid(child, 0)[1] == 0
