"""Files that say what cannot be: one error of penstock that names the file, and no memory for what is only said."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused

FAULTS = Path(__file__).parents[2] / "faults"
sys.path.insert(0, str(FAULTS))

import hostile  # noqa: E402
import sealed  # noqa: E402

HUGE = 1 << 40


def write(path: Path, metadata: Any = "json", documents: int = 3) -> Path:
    with penstock.Writer(path, fields={"token": "u4"}, metadata=metadata) as writer:
        for number in range(documents):
            entry = {"n": number} if metadata == "json" else [float(number)]
            writer.append(token=np.arange(5), metadata=entry)
    return path


def edit(path: Path, change: Any) -> None:
    """Changes what dataset.json says, and seals it."""
    said = json.loads((path / "dataset.json").read_bytes())
    del said["crc32c"]
    change(said)
    sealed.write_manifest(path / "dataset.json", json.dumps(said).encode().removesuffix(b"}") + b",")


def claim_entry(path: Path, sparse: bool) -> None:
    """The last entry has a tebibyte; the file is so long, or is not."""
    shard = path / "00000"
    index = (shard / "metadata.index").read_bytes()
    sealed.set_bytes(shard / "metadata.index", len(index) - 8, struct.pack("<Q", HUGE))
    edit(path, lambda said: said["shards"][0]["files"].update({"metadata.bin": HUGE}))
    if sparse:
        os.truncate(shard / "metadata.bin", HUGE)


def claim_document(path: Path, sparse: bool) -> None:
    """The last document has a tebi of records."""
    shard = path / "00000"
    index = (shard / "metadata.index").read_bytes()
    sealed.set_bytes(shard / "metadata.index", len(index) - 16, struct.pack("<Q", HUGE))
    directory = (HUGE // 4096 + 1) * 8

    def change(said: Any) -> None:
        said["shards"][0]["records"] = HUGE
        said["shards"][0]["files"].update({"stream.bin": HUGE * 4, "metadata.directory": directory})

    edit(path, change)
    if sparse:
        os.truncate(shard / "stream.bin", 4 * HUGE)
        os.truncate(shard / "metadata.directory", directory)


# What a process takes more at its peak than before the calls.
PEAK = """
import json, sys
from pathlib import Path
import penstock

def status(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

def load(view, **options):
    with penstock.Loader(view, 1, epochs=1, framework="numpy", max_bytes=1 << 20, **options) as loader:
        for batch in loader:
            batch.spans

path, *calls = sys.argv[1:]
before, said = status("VmRSS"), []
for call in calls:
    try:
        exec(call)
        said.append("")
    except penstock.Error as error:
        said.append(f"{type(error).__name__} {error}")
print(json.dumps([said, (status("VmHWM") - before) >> 20]))
"""


def words_of(path: Path, *calls: str, most_mebibytes: int = 60) -> list[str]:
    """The calls' errors; all in one process, whose memory is bounded."""
    done = subprocess.run([sys.executable, "-c", PEAK, path, *calls], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
    said, mebibytes = json.loads(done.stdout)
    assert mebibytes < most_mebibytes
    return list(said)


# Without checks: what the files say is believed as far as it can be.
READS = {
    "documents": "penstock.open(path, checks='none').documents().read([2])",
    "documents, loaded": "load(penstock.open(path, checks='none').documents(), order='uniform')",
    "documents, fetched": "load(penstock.open(path, checks='none').documents(), order='sequential')",
    "windows": "penstock.open(path, checks='none').windows(15).read([0])",
    "windows, loaded": "load(penstock.open(path, checks='none').windows(15), order='uniform')",
}


def test_documents_that_are_together_too_large_are_refused_with_the_longest(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with penstock.Writer(path, fields={"token": "u4"}, metadata="json") as writer:
        for number in range(4):
            writer.append(token=np.zeros(8 << 20, "u4"), metadata=number)
    view = penstock.open(path).documents()
    words = r"4 documents .* need 134,\d+,\d+ bytes, at most 67,108,864 .* document \d of the view, has 8,388,608"
    for order in ("uniform", "sequential"):
        options: Any = {"order": order, "framework": "numpy", "epochs": 1, "prefetch": 1}
        with penstock.Loader(view, 1, max_bytes=0, **options) as loader:  # 32 MiB are less than the least
            assert sum(1 for _ in loader) == 4
        loader = penstock.Loader(view, 4, max_bytes=0, **options)
        with loader, pytest.raises(penstock.InvalidArgumentError, match=words):
            next(iter(loader))
        with penstock.Loader(view, 4, max_bytes=1 << 30, **options) as loader:
            assert sum(1 for _ in loader) == 1


def test_what_is_only_said_takes_no_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "data")

    def change(said: Any) -> None:
        spans = 1 << 51
        said["shards"][0].update({"spans": spans, "entries": spans})
        said["shards"][0]["files"]["metadata.index"] = 16 * (spans + 1)

    edit(path, change)
    for words in words_of(path, *(call.replace("'none'", "'all'") for call in READS.values())):
        assert words.startswith("CorruptionError")
    claim_entry(write(tmp_path / "entry"), sparse=False)
    for words in words_of(tmp_path / "entry", *READS.values()):
        assert words.startswith("CorruptionError")
        assert "metadata.bin: 21 bytes, the manifest says 1,099,511,627,776" in words
    claim_document(write(tmp_path / "document"), sparse=False)
    with pytest.raises(penstock.CorruptionError, match=r"stream\.bin: 60 bytes, the manifest says 4,398,046,511,104"):
        penstock.open(tmp_path / "document", checks="none").documents()[2]


def test_what_is_larger_than_max_bytes_or_memory_is_refused(tmp_path: Path) -> None:
    claim_entry(write(tmp_path / "entry"), sparse=True)
    for words in words_of(tmp_path / "entry", *READS.values()):
        assert words.startswith("InvalidArgumentError")
        assert "metadata.bin: 1,099,511,627,7" in words  # the number of bytes
    claim_document(write(tmp_path / "document"), sparse=True)
    documents = [call for name, call in READS.items() if name.startswith("documents")]
    *found, window = words_of(tmp_path / "document", *documents, "penstock.open(path).windows(1 << 39)[0]")
    for words in found:
        assert words.startswith("InvalidArgumentError")
        assert "stream.bin: 4,398,046,511,0" in words
    assert window.startswith("InvalidArgumentError") and "2,199,023,255,552 bytes" in window


def test_a_large_manifest_takes_no_more_than_some_times_its_size(tmp_path: Path) -> None:
    """Takes seconds: a smaller one is read, and takes more for its size. `make faults` has more kinds."""
    path, size = write(tmp_path / "data"), 30 << 20
    clean = (path / "dataset.json").read_bytes()
    for kind in ("numbers", "keys", "one string", "empty objects", "digests"):
        (path / "dataset.json").write_bytes(clean)
        hostile.write_large(path / "dataset.json", kind, size)
        (words,) = words_of(path, "penstock.open(path)", most_mebibytes=5 * 30)
        assert words.startswith("CorruptionError")
        assert "dataset.json: " in words
        assert len(words) < 1000


def test_converting_an_entry_of_any_size_takes_no_memory(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "data", fields={"token": "u4"}, metadata="raw") as writer:
        writer.append(token=[1, 2, 3], metadata=bytes(200 << 20))
    to_ids, back = (
        "penstock.convert(path, path + '-ids', 'ids')",
        "penstock.convert(path + '-ids', path + '-', 'compact')",
    )
    assert words_of(tmp_path / "data", to_ids, back) == ["", ""]
    for name in ("data-ids", "data-"):
        assert penstock.verify(tmp_path / name).ok


def test_a_seal_of_any_bytes_is_corruption(tmp_path: Path) -> None:
    file = write(tmp_path / "data") / "dataset.json"
    text = file.read_bytes()
    for byte in (b"\x80", b"\xff", b"\xe9", b"\n"):
        file.write_bytes(text[:-5] + byte + text[-4:])
        refused(r"dataset\.json: ", penstock.open, tmp_path / "data", error=penstock.CorruptionError)
        assert not penstock.verify(tmp_path / "data").ok


def test_an_entry_that_is_none_of_its_codec_is_corruption_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "data")
    sealed.set_bytes(path / "00000" / "metadata.bin", 7, b"\xffnot js")
    view = penstock.open(path).documents()
    assert view[0].metadata == {"n": 0}
    for read in (lambda: view[1].metadata, lambda: view.read([0, 1]).spans[1].metadata):
        with pytest.raises(
            penstock.CorruptionError, match=r'00000/metadata\.bin: entry 1 of 7 bytes is none of codec "json"'
        ) as caught:
            read()
        assert isinstance(caught.value.__cause__, ValueError)
    assert view[1].spans[0].raw == b"\xffnot js"


def test_nested_and_odd_entries_are_corruption(tmp_path: Path) -> None:
    for number, (metadata, entry) in enumerate([
        ("json", b"[" * 100_000), ("json", b"9" * 5000), ("json", b""), ("msgpack", b"\xc1"),
        ("msgpack", b"\xdd\xff\xff\xff\xff"), (penstock.codecs.Numpy("f4"), b"123"),
    ]):  # fmt: skip
        path = tmp_path / str(number)
        with penstock.Writer(path, fields={"token": "u4"}, metadata="raw") as writer:
            writer.append(token=[1], metadata=entry)
        codec = penstock.codecs.get(metadata)
        assert codec is not None
        edit(path, lambda said, codec=codec: said.update(codec=json.loads(codec.to_json())))
        with pytest.raises(penstock.CorruptionError, match=r"metadata\.bin: entry 0 of"):
            _ = penstock.open(path, checks="none").documents()[0].metadata


def test_a_codec_that_cannot_be_is_corruption_that_names_the_dataset(tmp_path: Path) -> None:
    path = write(tmp_path / "data")
    for dtype in ([], "O", 3, [["a", "<f4", [0]]], "(" * 5000, {"a": 1}, "S" + "9" * 30, None):
        codec = {"name": "numpy", **({} if dtype is None else {"dtype": dtype})}
        edit(path, lambda said, codec=codec: said.update(codec=codec))
        with pytest.raises(penstock.CorruptionError, match="data: its metadata codec cannot be") as caught:
            penstock.open(path, checks="none").documents()[0]
        assert len(str(caught.value)) < 600
    with pytest.raises(penstock.InvalidArgumentError):
        penstock.codecs.Numpy([])


def test_names_that_are_no_utf8_are_refused_with_what_to_do(tmp_path: Path) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/t\xe9l\xff.bin")
    np.arange(10, dtype="u2").tofile(name)
    for given in (name, str(tmp_path / "t*.bin")):
        refused(r"\\udce9.*not UTF-8: rename", penstock.open, given, dtype="u2")
    refused("NUL", penstock.open, "a\0b")
    refused("not UTF-8", penstock.Writer, name + "dir", fields={"token": "u2"})


def test_names_beside_a_dataset_may_be_any_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "data")
    for stray in (b".partial-00000-\xff", b"\xe9"):
        (path / os.fsdecode(stray)).mkdir()
    report = penstock.verify(path)
    assert report.ok
    assert "\\xff" in " ".join(report.notices)
    odd = tmp_path / os.fsdecode(b"\xfc")
    odd.mkdir()
    path.rename(odd / "data")
    with pytest.raises(penstock.NotFoundError):
        penstock.open(tmp_path)


def test_what_a_file_says_is_cut_in_messages(tmp_path: Path) -> None:
    long = "x" * 100_000
    path = write(tmp_path / "data")
    edit(path, lambda said: said.update(codec={"name": long[:60_000]}))
    with pytest.raises(penstock.InvalidArgumentError, match="is not known here") as caught:
        _ = penstock.open(path).documents()[0].metadata
    assert len(str(caught.value)) < 500
    edit(path, lambda said: said.update(fields=[["token", long]]))
    with pytest.raises(penstock.CorruptionError, match=r"… \(100,000 bytes\)") as other:
        penstock.open(path)
    assert len(str(other.value)) < 500
