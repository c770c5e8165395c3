"""Datasets of ours as objects: what they say, pickling, several as one."""

from __future__ import annotations

import errno
import gc
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import penstock
import pytest
from _refused import refused
from penstock._base.words import counted


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
    assert "8 records, 1 shard)" in repr(dataset)
    assert "windows(2, lookahead=1)" in repr(dataset.windows(2, lookahead=1))
    dataset = write(tmp_path / "one", [[1]])
    assert repr(dataset).endswith("1 record, 1 shard)") and repr(dataset.windows(1)[0]).endswith("; 1 span)")
    assert repr(dataset.windows(1)[0].spans).startswith("<1 span: Span(row=0, start=0, stop=1, begins=True, ")
    assert counted(1, "entry") + counted(2, "entry") + counted(1_000, "shard") == "1 entry2 entries1,000 shards"


def test_rows_and_what_outlives_their_view(tmp_path):
    dataset = write(tmp_path / "a", DOCUMENTS)
    one = dataset.windows(2, lookahead=1)[1]
    assert (one.inputs.tolist(), one.labels.tolist()) == ([3, 4], [4, 5])
    assert one.records["token"].tolist() == [3, 4, 5]
    assert list(one) == ["token"] and "token [3]; 3 spans" in repr(one)
    assert [(span.start, span.stop, span.begins, span.ends, span.offset) for span in one.spans] == [
        (0, 1, False, True, 2),
        (1, 2, True, True, 0),
        (2, 3, True, False, 0),
    ]
    one = dataset.documents()[2]
    tokens, spans = one["token"], one.spans
    del one, dataset
    assert tokens.tolist() == [5, 6, 7, 8]
    assert spans[0].metadata == {"number": 2}


def open_files(folder):
    links = [fd for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()]
    return [fd for fd in links if str(fd.readlink()).startswith(str(folder))]


def test_files_are_closed_with_the_last_that_reads_them(tmp_path):
    dataset = write(tmp_path / "a", DOCUMENTS)
    windows, documents = dataset.windows(2), dataset.documents()
    assert windows[0]["token"].tolist() == [1, 2]
    batch = documents.read([0])
    assert open_files(tmp_path)
    del dataset, windows, documents
    gc.collect()
    assert open_files(tmp_path)
    del batch
    gc.collect()
    assert not open_files(tmp_path)


def test_a_dataset_that_was_replaced_is_read_anew(tmp_path):
    path = tmp_path / "tokens.bin"
    for value in range(20):  # the same path and size, and often the same address in memory
        np.full(8, value, "u2").tofile(tmp_path / "next")
        (tmp_path / "next").replace(path)
        assert penstock.open(path, dtype="u2").windows(8)[0]["token"].tolist() == [value] * 8


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


def test_what_does_not_go_together_is_refused_and_ids_say_how_to_convert(tmp_path):
    a = write(tmp_path / "a", DOCUMENTS)
    penstock.convert(tmp_path / "a", tmp_path / "ids", "ids")
    ids = penstock.open(tmp_path / "ids")
    assert ids.layout == "ids" and ids.dtype.names == ("token",)
    refused("penstock convert", ids.documents, error=ValueError)
    np.arange(4, dtype="u2").tofile(tmp_path / "t.bin")
    others = {
        "fields": write(tmp_path / "wide", DOCUMENTS, fields="u4"),
        "layout": ids,
        "kind": penstock.open(tmp_path / "t.bin", dtype="u2"),
    }
    for words, other in others.items():
        refused(words, penstock.concatenate, [a, other], error=ValueError)
    refused("kind", penstock.open, tmp_path / "a", tmp_path / "t.bin", dtype="u2", error=ValueError)
    refused("no datasets", penstock.concatenate, [], error=ValueError)


def test_a_changed_dataset_does_not_unpickle(tmp_path):
    np.arange(9, dtype="u2").tofile(tmp_path / "t.bin")
    text = pickle.dumps(penstock.open(tmp_path / "t.bin", dtype="u2").windows(2))
    assert len(pickle.loads(text)) == 4
    np.arange(1, 10, dtype="u2").tofile(tmp_path / "t.bin")
    refused("changed since it was pickled", pickle.loads, text)


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


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_dataloader_stacks_the_fields_of_windows(tmp_path, workers):
    torch = pytest.importorskip("torch")
    with penstock.Writer(tmp_path / "a", {"token": "u2", "weight": ("f4", 2)}, "json") as writer:
        writer.append(token=range(40), weight=np.arange(80).reshape(40, 2), metadata={})
    view = penstock.open(tmp_path / "a").windows(10)
    batches = list(torch.utils.data.DataLoader(view, batch_size=3, num_workers=workers))
    assert [type(batch) for batch in batches] == [dict, dict]
    token = torch.arange(40).view(4, 10)
    for batch, rows in zip(batches, token.split(3), strict=True):
        assert batch.keys() == {"token", "weight"}
        assert torch.equal(batch["token"].to(torch.int64), rows)
        assert torch.equal(batch["weight"], torch.stack([rows * 2.0, rows * 2.0 + 1], -1))


def test_what_torchs_dataloader_cannot_collate_is_said(tmp_path):
    torch = pytest.importorskip("torch")
    with penstock.Writer(tmp_path / "a", fields=None, metadata="json") as writer:
        for number in range(4):
            writer.append(metadata=number)
    with pytest.raises(ValueError, match=r"opaque documents.*give a collate_fn"):
        next(iter(torch.utils.data.DataLoader(penstock.open(tmp_path / "a").documents(), batch_size=2)))
    with pytest.raises(RuntimeError, match="equal size"):
        next(iter(torch.utils.data.DataLoader(write(tmp_path / "b", DOCUMENTS).documents(), batch_size=2)))
    refused("made of a Batch, not of list", penstock._data.observation.Observation, [1], error=TypeError)


def test_what_is_not_there_is_said_once_and_by_errno_or_what_is_meant(tmp_path):
    for call in (penstock.open, penstock.verify, penstock.finished_shards, penstock.commit):
        with pytest.raises(penstock.NotFoundError) as caught:
            call(tmp_path / "nope")
        assert str(caught.value).startswith(f"{tmp_path}/nope: ") and str(caught.value).count("nope") == 1
        assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, f"{tmp_path}/nope")
    refused(r"^[^\[]*nope: no such file or folder$", penstock.open, tmp_path / "nope", error=penstock.NotFoundError)
    write(tmp_path / "val", DOCUMENTS)
    for call in (penstock.open, penstock.verify):
        refused(f"did you mean {tmp_path}/val", call, tmp_path, error=penstock.NotFoundError)
    refused(f"give its folder, {tmp_path}/val", penstock.open, tmp_path / "val/dataset.json", error=ValueError)


def test_a_tilde_is_the_home_folder_everywhere(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    dataset = write("~/a", DOCUMENTS)
    assert dataset.path == str(tmp_path / "a") and (tmp_path / "a/dataset.json").exists()
    penstock.combine(["~/a", "~/a"], "~/both")
    penstock.convert("~/both", "~/ids", "ids")
    assert penstock.verify("~/ids").ok and len(penstock.finished_shards("~/ids")) == 2
    np.arange(4, dtype="u2").tofile(tmp_path / "t.bin")
    assert penstock.open("~/*.bin", dtype="u2").records == 4
    with penstock.Writer("~/parts", {"token": "u2"}, shard=0) as writer:
        writer.append(token=[1])
    penstock.remove_shards("~/parts", [0])
    refused("no finished shard", penstock.commit, "~/parts", error=penstock.NotFoundError)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (["a", "b"], r"a list of paths: give them one by one, as in open\(\*paths\)"),
        (None, "None is no path"),
        (3, "3 is no path"),
        (b"a", "not bytes"),
    ],
)
def test_what_is_no_path_is_refused_in_words(path, words):
    for call in (penstock.open, penstock.verify, lambda path: penstock.Writer(path, {"token": "u2"})):
        refused(words, call, path)


def test_what_penstock_did_not_write_has_nothing_to_be_verified_with(tmp_path):
    np.arange(4, dtype="u2").tofile(tmp_path / "t.bin")
    for path in (tmp_path / "t.bin", tmp_path):
        refused(r"nothing is wrong with it, but it has no checksums", penstock.verify, path, error=ValueError)
    with pytest.raises(ValueError, match="no dataset of penstock: it has no layout"):
        penstock.convert(tmp_path / "t.bin", tmp_path / "out", "ids")
    with pytest.raises(ValueError, match=r"no dataset of penstock: .* not combined on disk"):
        penstock.combine([tmp_path / "t.bin"], tmp_path / "out")


def test_a_window_that_cannot_be_is_refused_in_words(tmp_path):
    np.arange(100, dtype="<u2").tofile(tmp_path / "tokens.bin")
    dataset = penstock.open(tmp_path / "tokens.bin", dtype="u2")
    for number in (2**64, 2**70):
        refused(rf"window={number}: must be below 2\^64", dataset.windows, number)
        refused("lookahead", dataset.windows, 1, lookahead=number)
    refused(r"101.*100", dataset.windows, 101)
    with pytest.raises(penstock.InvalidArgumentError):
        dataset.windows(100, lookahead=1)
    assert len(dataset.windows(100)) == 1
    for window in (0, -1, 1.5):
        with pytest.raises(ValueError):
            dataset.windows(window)


def test_messages_have_no_doubled_slash(tmp_path: Path) -> None:
    with penstock.Writer(f"{tmp_path}/dam/", {"token": "u2"}, "raw") as writer:
        writer.append(b"x", token=[1, 2, 3])
    path = f"{tmp_path}/dam/"
    (tmp_path / "dam" / "00000" / "stream.bin").write_bytes(b"x")
    with pytest.raises(penstock.CorruptionError) as error:
        penstock.open(path).windows(2)[0]
    assert f"{tmp_path}/dam/00000/stream.bin" in str(error.value)
    problems = penstock.verify(path).problems
    assert problems and "//" not in "".join(problems)
    for call in (
        lambda: penstock.convert(path, tmp_path / "out", "ids"),
        lambda: penstock.combine([path], tmp_path / "out"),
        lambda: penstock.shuffle(path, tmp_path / "out", seed=1, window=2),
    ):
        with pytest.raises(penstock.Error) as error:
            call()
        assert "//" not in str(error.value)
