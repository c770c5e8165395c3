"""penstock.shuffle and `penstock shuffle`: observation i of the result is observation Permutation(n, seed)[i]."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import FIELDS, LENGTHS, columns_of, compact, ids, opaque, raw_tokens, records_of
from _places import tree
from _recipes import Near
from penstock import InvalidArgumentError
from penstock._cli.main import main


def write(path: Path, lengths: list[int], codec: str | None = "json", shard_size: int = 2000) -> Path:
    with penstock.Writer(path, FIELDS, codec, shard_size=shard_size, tokenizer={"name": "mine"}) as writer:
        for number, length in enumerate(lengths):
            metadata = {"metadata": {"number": number, "text": "x" * (number % 7)}} if codec == "json" else {}
            writer.append(**columns_of(records_of(length, number)), **metadata)
    return path


def lengths_of(count: int, seed: int = 0) -> list[int]:
    random = np.random.default_rng(seed)
    return np.where(random.random(count) < 0.2, 0, random.integers(1, 90, count)).tolist()


def observation(view: penstock.View, index: int) -> tuple[bytes, list[tuple[Any, ...]]]:
    """Its records, and of each of its spans where it lies and its entry."""
    row = view[index]
    records = b"".join(row[name].tobytes() for name in view.dtype.names or ()) if view.dtype is not None else b""
    return records, [(span.start, span.stop, span.raw) for span in row.spans]


def check(data: Path, out: Path, seed: int, window: int | None = None, step: int = 1) -> None:
    """Every observation is where the permutation says; nothing else differs."""
    before, after = penstock.open(data), penstock.open(out)
    one, other = (each.documents() if window is None else each.windows(window) for each in (before, after))
    assert penstock.verify(out) and len(one) == len(other)
    permutation = penstock.Permutation(len(one), seed)
    for index in range(0, len(one), step):
        assert observation(other, index) == observation(one, permutation[index]), index
    assert (after.records, after.tokenizer, after.codec) == (before.records, before.tokenizer, before.codec)
    if window is not None and (rest := before.records % window):
        last = range(before.records - rest, before.records)
        ends = [each.windows(1).read(last) for each in (before, after)]
        assert all(np.array_equal(ends[0][name], ends[1][name]) for name in before.dtype.names or ())


@pytest.mark.parametrize(("count", "seed"), [(1, 0), (64, 7), (65, (1 << 64) - 1), (300, 0)])
def test_documents_stand_where_the_permutation_says(tmp_path: Path, count: int, seed: int) -> None:
    data = write(tmp_path / "in", lengths_of(count))
    fingerprint = penstock.shuffle(data, tmp_path / "out", seed=seed, documents=True, memory=1 << 16, shard_size=3000)
    assert penstock.open(tmp_path / "out").fingerprint == fingerprint
    check(data, tmp_path / "out", seed)


def test_documents_without_records_stand_where_the_permutation_says(tmp_path: Path) -> None:
    opaque(tmp_path, 200)
    penstock.shuffle(tmp_path / "opaque", tmp_path / "out", seed=2, documents=True)
    check(tmp_path / "opaque", tmp_path / "out", 2)


@pytest.mark.parametrize(
    ("window", "codec"),
    [(1, "json"), (16, "boundaries"), (16, None), (100, "json"), (5000, "boundaries"), (5000, None)],
)
def test_windows_stand_where_the_permutation_says(tmp_path: Path, window: int, codec: str | None) -> None:
    data = write(tmp_path / "in", [*lengths_of(60), max(window, 1)], codec)
    penstock.shuffle(data, tmp_path / "out", seed=5, window=window, memory=1 << 20, shard_size=3000)
    check(data, tmp_path / "out", 5, window)


def test_windows_of_shards_of_which_one_is_empty(tmp_path: Path) -> None:
    compact(tmp_path, LENGTHS)
    penstock.combine([tmp_path / f"compact-{shard}" for shard in range(4)], tmp_path / "in")
    penstock.shuffle(tmp_path / "in", tmp_path / "out", seed=8, window=7, memory=1 << 16)
    check(tmp_path / "in", tmp_path / "out", 8, 7)


def test_what_cannot_be_shuffled_is_refused_in_words(tmp_path: Path) -> None:
    data = write(tmp_path / "in", [5, 6, 7])
    tokens = write(tmp_path / "tokens", [5, 6, 7], None)
    ids(tmp_path, [(0, 1, 1)])
    raw_tokens(tmp_path / "raw.bin", 10)
    out = tmp_path / "out"
    refused: list[tuple[Path, dict[str, Any], str]] = [
        (data, {}, "give window= or documents=True"),
        (data, {"window": 2, "documents": True}, "give window= or documents=True"),
        (data, {"window": 0}, "window=0"),
        (data, {"window": 19}, "window 19 is longer than the stream of 18 records"),
        (data, {"documents": True, "seed": -1}, "seed=-1"),
        (data, {"documents": True, "memory": 100}, "memory of 100 bytes, must be at least 65,536"),
        (tokens, {"documents": True}, "shuffle windows"),
        (tmp_path / "ids-0", {"documents": True}, "penstock convert --layout compact"),
        (tmp_path / "raw.bin", {"window": 2}, "no dataset of penstock"),
    ]
    for path, options, words in refused:
        with pytest.raises(InvalidArgumentError, match=words.replace("(", r"\(")):
            penstock.shuffle(path, out, **{"seed": 1, **options})
        assert not out.exists()
    with pytest.raises(penstock.NotFoundError):
        penstock.shuffle(data, out, seed=1, documents=True, scratch=tmp_path / "nowhere")
    assert not out.exists()
    for resume in (False, True):
        with pytest.raises(InvalidArgumentError, match="published dataset"):
            penstock.shuffle(data, tokens, seed=1, documents=True, resume=resume)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*more: object, out: Path = tmp_path / "out") -> tuple[int, str]:
        code = main(["shuffle", *map(str, (data, "--out", out, *more))])
        return code, "".join(capsys.readouterr())

    data, out = write(tmp_path / "in", lengths_of(100)), tmp_path / "out"
    options = ["--seed", 9, "--shard-size", "2k"]
    code, words = said(*options, "--window", 10, "--memory", "1MiB")
    assert code == 0 and words.startswith(f"{out}: ") and "shards" in words
    check(data, out, 9, 10)
    assert said(*options, "--window", 10)[0] == 2
    assert said(*options, "--window", 10, "--resume")[0] == 0, "it is whole already"
    code, words = said(*options, "--documents", "--resume")
    assert code == 2 and "other options" in words
    code, words = said(*options, "--documents", "--overwrite", "--json")
    assert code == 0 and json.loads(words)["records"] == penstock.open(data).records
    check(data, out, 9)
    for wrong in (["--seed", 1], ["--seed", 1, "--window", 5, "--documents"], ["--documents"], ["--seed", -1]):
        assert said(*wrong, out=tmp_path / "x")[0] == 2, wrong
    stream = data / "00001/stream.bin"
    stream.write_bytes(b"\xff" + stream.read_bytes()[1:])
    code, words = said("--seed", 1, "--documents", out=tmp_path / "x")
    assert code == 1 and "00001/stream.bin: bytes 0 to" in words and "nothing was published" in words
    assert not (tmp_path / "x").exists()


# ---- much of it: processes of their own


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """150 MiB."""
    path = tmp_path_factory.mktemp("large") / "large"
    with penstock.Writer(path, {"token": "u4"}, "json", shard_size=64 << 20) as writer:
        for number in range(150):
            tokens = np.arange(number, number + (1 << 18), dtype=np.uint32)
            lengths = np.full(256, 1024)
            writer.append_batch(lengths, metadata=[{"number": number, "i": i} for i in range(256)], token=tokens)
    return path


def ran(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_memory_is_bounded_whatever_the_size(large: Path, tmp_path: Path) -> None:
    code = """
import sys, penstock
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) << 10
before = status("VmRSS")
penstock.shuffle(*sys.argv[1:], seed=1, memory=32 << 20, documents=True)
penstock.shuffle(*sys.argv[1:], seed=1, memory=32 << 20, window=1000, overwrite=True)
print((status("VmHWM") - before) >> 20)
"""
    assert int(ran(code, large, tmp_path / "out")) <= 32 + 8
    check(large, tmp_path / "out", 1, 1000, step=997)


def test_ctrl_c_ends_it_while_it_reads(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    given = ["shuffle", large, "--out", out, "--seed", "1", "--window", "777", "--memory", "64MiB"]
    process = subprocess.Popen([sys.executable, "-m", "penstock", *given], stderr=subprocess.PIPE, text=True)
    while not out.exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "nothing is kept" in said and not out.exists()


def test_a_full_disk_is_said_before_anything_is_read(large: Path, tmp_path: Path) -> None:
    code = """
import sys, penstock, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, 10 << 20))
try:
    penstock.shuffle(*sys.argv[1:], seed=1, documents=True)
except penstock.IoError as error:
    print(error)
"""
    said = ran(code, large, tmp_path / "out")
    assert "put" in said and "aside (another folder for them: scratch)" in said
    assert not (tmp_path / "out").exists()


# ---- columns, features and tokenizer

COLUMNS = {"plate": "category", "vector": ("f8", 3), "line": ["a", "b"]}
FEATURES = {"names": ["CD4", "CD8A", "GNLY"], "length": [458, 235, 145], "chromosome": ["12", None, "2"]}
OPTIONS: dict[str, Any] = {"seed": 3, "documents": True}


def write_with_columns(path: Path, count: int = 300, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
    random = np.random.default_rng(count)
    lengths = lengths_of(count)
    plates = np.array([f"p{number // 40}" for number in range(count)])  # each shard has names of its own
    values = {"plate": plates, "vector": random.random((count, 3)), "line": random.choice(["a", "b"], count)}
    with penstock.Writer(path, {"token": "u2"}, "raw", columns=COLUMNS, shard_size=6_000, **options) as writer:
        entries = [b"x" * (number % 50) for number in range(count)]
        writer.append_batch(lengths, encoded=entries, columns=values, token=np.arange(sum(lengths), dtype="u2"))
    return values


def strings(column: Any, codes: Any) -> list[str]:
    return [column.categories[code] for code in codes]


def test_values_of_columns_go_with_their_documents(tmp_path: Path) -> None:
    values = write_with_columns(tmp_path / "d", 700)
    assert len(penstock.open(tmp_path / "d").shards) > 5
    penstock.shuffle(tmp_path / "d", tmp_path / "out", **OPTIONS, memory=1 << 16, shard_size=8_000)
    drawn = penstock.Permutation(700, 3)(np.arange(700, dtype=np.uint64)).astype(int)
    columns = penstock.open(tmp_path / "out").columns
    for name in ("plate", "line"):
        assert strings(columns[name], columns[name][:]) == values[name][drawn].tolist()
    np.testing.assert_array_equal(columns["vector"][:], values["vector"][drawn])
    assert columns["line"].categories == ["a", "b"] and penstock.verify(tmp_path / "out").ok


def test_each_piece_of_a_document_has_its_values(tmp_path: Path) -> None:
    write_with_columns(tmp_path / "d")
    penstock.shuffle(tmp_path / "d", tmp_path / "out", seed=1, window=16)
    before, after = (penstock.open(tmp_path / name).windows(16, columns=["plate", "vector"]) for name in ("d", "out"))
    plates = [view.dataset.columns["plate"] for view in (before, after)]
    for at, index in enumerate(penstock.Permutation(len(before), 1)(np.arange(len(before), dtype=np.uint64)).tolist()):
        rows = (before[index], after[at])
        sizes = [np.array([span.stop - span.start for span in row.spans]) > 0 for row in rows]
        vectors, codes = (
            [row.columns[name][size] for row, size in zip(rows, sizes, strict=True)] for name in ("vector", "plate")
        )
        np.testing.assert_array_equal(*vectors)
        assert strings(plates[0], codes[0]) == strings(plates[1], codes[1])
    assert penstock.verify(tmp_path / "out").ok


def check_features(path: Path, generation: str = "") -> None:
    features = penstock.open(path).features
    assert features is not None and features.names == FEATURES["names"]
    assert features.columns["length"][:].tolist() == FEATURES["length"]
    assert strings(features.columns["chromosome"], [0, 1]) == ["12", "2"]
    assert features.columns["chromosome"][:].tolist() == [0, -1, 1]
    report = penstock.verify(path)
    assert report and not report.notices
    assert {each.name for each in path.iterdir() if "features" in each.name} == {f"features{generation}"}


def test_features_go_with_the_documents(tmp_path: Path) -> None:
    data, out = tmp_path / "d", tmp_path / "out"
    write_with_columns(data, features=FEATURES)

    def stop(done: int, total: int) -> None:
        if done == total:
            raise KeyboardInterrupt

    before = tree(data)
    with pytest.raises(InvalidArgumentError):
        penstock.shuffle(data, data, **OPTIONS, memory=1, overwrite=True)
    assert tree(data) == before
    with pytest.raises(KeyboardInterrupt):
        penstock.shuffle(data, out, **OPTIONS, progress=stop)
    assert not list(out.glob("*features*"))
    penstock.shuffle(data, out, **OPTIONS, resume=True)
    check_features(out)
    penstock.shuffle(data, out, **OPTIONS, overwrite=True)
    check_features(out, ".1")
    write_with_columns(tmp_path / "none")
    penstock.shuffle(tmp_path / "none", out, **OPTIONS, overwrite=True)
    assert penstock.open(out).features is None and not list(out.glob("features*"))
    penstock.shuffle(data, data, **OPTIONS, overwrite=True)  # by itself
    check_features(data, ".1")
    (data / "features.1").rename(tmp_path / "gone")
    write_with_columns(tmp_path / "other", features=["a", "b", "c"])
    (tmp_path / "other" / "features").rename(data / "features.1")
    with pytest.raises(penstock.CorruptionError, match=r"features.*: fingerprint"):
        penstock.shuffle(data, tmp_path / "x", **OPTIONS)
    assert not (tmp_path / "x").exists()


def test_another_tokenizer_or_other_features_or_columns_are_another_input(tmp_path: Path) -> None:
    given: dict[str, Any] = {"features": FEATURES, "tokenizer": {"name": "mine"}}
    others: dict[str, dict[str, Any]] = {
        "tokenizer": {"tokenizer": {"name": "other"}},
        "no tokenizer": {"tokenizer": None},
        "length": {"features": {**FEATURES, "length": [458, 235, 146]}},
        "names": {"features": {**FEATURES, "names": ["CD4", "CD8B", "GNLY"]}},
        "no features": {"features": None},
        "columns": {},
    }
    data = tmp_path / "d"
    write_with_columns(data, **given)
    for name, other in others.items():
        write_with_columns(tmp_path / name, **{**given, **other})
        assert penstock.open(tmp_path / name).fingerprint == penstock.open(data).fingerprint
    penstock.annotate(tmp_path / "columns", {"vector": np.zeros(300)})
    fingerprint = penstock.shuffle(data, tmp_path / "out", **OPTIONS)
    for whole in (True, False):
        if not whole:
            (tmp_path / "out" / "dataset.json").unlink()
        for name in others:
            with pytest.raises(InvalidArgumentError, match="another input"):
                penstock.shuffle(tmp_path / name, tmp_path / "out", **OPTIONS, resume=True)
    assert penstock.shuffle(data, tmp_path / "out", **OPTIONS, resume=True) == fingerprint
    for name in ("no tokenizer", "no features"):  # where there is nothing to compare with
        penstock.shuffle(tmp_path / name, tmp_path / f"{name} out", **OPTIONS)
        with pytest.raises(InvalidArgumentError, match="another input"):
            penstock.shuffle(data, tmp_path / f"{name} out", **OPTIONS, resume=True)


#: Verbs that write bytes again, with new checksums.
REWRITING: dict[str, Callable[[Path, Path], Any]] = {
    "shuffle": lambda path, out: penstock.shuffle(path, out, seed=1, documents=True),
    "shuffle by tasks": lambda path, out: penstock.shuffle(path, out, seed=1, documents=True, workers=Near()),
    "annotate": lambda path, out: penstock.annotate(path, {"m": np.zeros(900)}),
    "convert": lambda path, out: penstock.convert(path, out, "ids"),
}


DAMAGED = [(file, verb) for file in ("stream.bin", "columns.bin") for verb in REWRITING]
DAMAGED.remove(("stream.bin", "annotate"))  # which links it


@pytest.mark.parametrize(("file", "verb"), DAMAGED)
def test_damage_is_not_laundered(tmp_path: Path, file: str, verb: str) -> None:
    path = tmp_path / "d"
    with penstock.Writer(path, {"token": "u2"}, "raw", columns={"n": "f8"}) as writer:
        tokens = np.arange(2700)
        writer.append_batch([3] * 900, encoded=[b""] * 900, columns={"n": np.arange(900.0)}, token=tokens)
    before = tree(path)
    data = bytearray((path / "00000" / file).read_bytes())
    data[5_000] ^= 4
    (path / "00000" / file).write_bytes(data)
    with pytest.raises(penstock.CorruptionError, match=f"{file}|its content has fingerprint"):
        REWRITING[verb](path, tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    assert set(tree(path)) == set(before)
