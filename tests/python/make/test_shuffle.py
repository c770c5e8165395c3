"""penstock.shuffle and `penstock shuffle`: observation i of the result is observation Permutation(n, seed)[i]."""

from __future__ import annotations

import contextlib
import hashlib
import io
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
from _datasets import FIELDS, LENGTHS, columns_of, compact, ids, raw_tokens, records_of

PROGRAM = [sys.executable, "-m", "penstock", "shuffle"]


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


def files(path: Path) -> dict[str, str]:
    found = (each for each in sorted(path.rglob("*")) if each.is_file())
    return {str(each.relative_to(path)): hashlib.sha256(each.read_bytes()).hexdigest() for each in found}


def cli(*arguments: object) -> tuple[int, str]:
    from penstock._cli.main import main

    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(["shuffle", *map(str, arguments)])
    return code, output.getvalue() + errors.getvalue()


def check(data: Path, out: Path, seed: int, view_of: Callable[[penstock.Dataset], penstock.View]) -> None:
    """Every observation is where the permutation says; nothing else differs."""
    before, after = penstock.open(data), penstock.open(out)
    one, other = view_of(before), view_of(after)
    assert penstock.verify(out) and len(one) == len(other)
    permutation = penstock.Permutation(len(one), seed)
    for index in range(len(one)):
        assert observation(other, index) == observation(one, permutation[index]), index
    assert (after.records, after.tokenizer, after.codec) == (before.records, before.tokenizer, before.codec)


@pytest.mark.parametrize("seed", [0, 7, (1 << 64) - 1])
@pytest.mark.parametrize("count", [1, 64, 65, 300])
def test_documents_stand_where_the_permutation_says(tmp_path: Path, count: int, seed: int) -> None:
    data = write(tmp_path / "in", lengths_of(count))
    fingerprint = penstock.shuffle(data, tmp_path / "out", seed=seed, documents=True, memory=1 << 16, shard_size=3000)
    assert penstock.open(tmp_path / "out").fingerprint == fingerprint
    check(data, tmp_path / "out", seed, lambda dataset: dataset.documents())


@pytest.mark.parametrize("codec", ["json", "boundaries", None])
@pytest.mark.parametrize("window", [1, 16, 100, 5000])
def test_windows_stand_where_the_permutation_says(tmp_path: Path, window: int, codec: str | None) -> None:
    data = write(tmp_path / "in", [*lengths_of(300), 1], codec)
    records = penstock.open(data).records
    penstock.shuffle(data, tmp_path / "out", seed=5, window=window, memory=1 << 20, shard_size=3000)
    check(data, tmp_path / "out", 5, lambda dataset: dataset.windows(window))
    rest = records % window
    if rest:
        last = [
            penstock.open(path).windows(1).read(range(records - rest, records)) for path in (data, tmp_path / "out")
        ]
        assert all(np.array_equal(last[0][name], last[1][name]) for name in FIELDS.names or ())


def test_spans_and_entries_of_a_window_are_kept_document_by_document(tmp_path: Path) -> None:
    data = write(tmp_path / "in", [3, 0, 11, 1, 0, 0, 7, 20, 2])
    penstock.shuffle(data, tmp_path / "out", seed=3, window=5)
    order = [penstock.Permutation(8, 3)[i] for i in range(8)]
    bounds = np.cumsum([0, 3, 0, 11, 1, 0, 0, 7, 20, 2])
    wanted = []
    for at in [*(range(5 * i, 5 * i + 5) for i in order), range(40, 44)]:
        number = None
        for record in at:
            document = int(np.searchsorted(bounds, record, "right")) - 1
            if document != number:
                wanted.append([document, 0])
            number = document
            wanted[-1][1] += 1
    found = penstock.open(tmp_path / "out").documents()
    spans = [(found[i].spans[0].metadata["number"], len(found[i]["token"])) for i in range(len(found))]
    assert [span for span in spans if span[1]] == [tuple(span) for span in wanted]
    assert sorted(number for number, length in spans if not length) == [1, 4, 5]


def test_opaque_documents(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "in", None, "json", shard_size=100) as writer:
        for number in range(200):
            writer.append({"number": number})
    penstock.shuffle(tmp_path / "in", tmp_path / "out", seed=2, documents=True)
    view = penstock.open(tmp_path / "out").documents()
    order = penstock.Permutation(200, 2)
    assert [view[i].spans[0].metadata["number"] for i in range(200)] == [order[i] for i in range(200)]


def test_the_bytes_are_the_same_for_any_memory_and_scratch_folder(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(2000))
    (tmp_path / "scratch").mkdir()
    found = []
    for number, memory in enumerate((1 << 17, 200_001, 1 << 30)):
        out = tmp_path / f"out{number}"
        penstock.shuffle(data, out, seed=1, window=64, memory=memory, shard_size=5000, scratch=tmp_path / "scratch")
        found.append(files(out))
    assert found[0] == found[1] == found[2] and len(found[0]) > 50
    assert not list((tmp_path / "scratch").iterdir())


def test_what_cannot_be_shuffled_is_refused_in_words(tmp_path: Path) -> None:
    data = write(tmp_path / "in", [5, 6, 7])
    tokens = write(tmp_path / "tokens", [5, 6, 7], None)
    with_ids = tmp_path / "ids-0"
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
        (with_ids, {"documents": True}, "penstock convert --layout compact"),
        (tmp_path / "raw.bin", {"window": 2}, "no dataset of penstock"),
    ]
    for path, options, words in refused:
        with pytest.raises(penstock.InvalidArgumentError, match=words.replace("(", r"\(")):
            penstock.shuffle(path, out, **{"seed": 1, **options})
        assert not out.exists()
    with pytest.raises(penstock.NotFoundError):
        penstock.shuffle(data, out, seed=1, documents=True, scratch=tmp_path / "nowhere")
    assert not out.exists()
    with pytest.raises(penstock.InvalidArgumentError, match="published dataset"):
        penstock.shuffle(data, tokens, seed=1, documents=True)
    with pytest.raises(penstock.InvalidArgumentError, match="published dataset"):
        penstock.shuffle(data, tokens, seed=1, documents=True, resume=True)


def test_a_published_dataset_is_replaced_when_the_new_one_is_whole(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(50))
    before = files(data)
    with pytest.raises(penstock.InvalidArgumentError):
        penstock.shuffle(data, data, seed=4, documents=True, memory=1, overwrite=True)
    assert files(data) == before
    penstock.shuffle(data, tmp_path / "out", seed=4, documents=True)
    penstock.shuffle(data, data, seed=4, documents=True, overwrite=True)  # by itself
    assert penstock.open(data).fingerprint == penstock.open(tmp_path / "out").fingerprint
    assert penstock.verify(data) and not penstock.verify(data).notices


def test_damage_is_not_laundered(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(100))
    stream = data / "00001/stream.bin"
    content = bytearray(stream.read_bytes())
    content[17] ^= 1
    stream.write_bytes(content)
    code, said = cli(data, "--out", tmp_path / "out", "--seed", 1, "--documents")
    assert code == 1 and "00001/stream.bin: bytes 0 to" in said and "nothing was published" in said
    assert not (tmp_path / "out").exists()


def test_the_command(tmp_path: Path) -> None:
    data = write(tmp_path / "in", lengths_of(100))
    out = tmp_path / "out"
    options = ["--out", out, "--seed", 9, "--shard-size", "2k"]
    code, said = cli(data, *options, "--window", 10, "--memory", "1MiB")
    assert code == 0 and said.startswith(f"{out}: ") and "shards" in said
    check(data, out, 9, lambda dataset: dataset.windows(10))
    assert cli(data, *options, "--window", 10)[0] == 2
    assert cli(data, *options, "--window", 10, "--resume")[0] == 0, "it is whole already"
    code, said = cli(data, *options, "--documents", "--resume")
    assert code == 2 and "other options" in said
    code, said = cli(data, *options, "--documents", "--overwrite", "--json")
    assert code == 0 and json.loads(said)["records"] == penstock.open(data).records
    check(data, out, 9, lambda dataset: dataset.documents())
    for wrong in (["--seed", 1], ["--seed", 1, "--window", 5, "--documents"], ["--documents"], ["--seed", -1]):
        assert cli(data, "--out", tmp_path / "x", *wrong)[0] == 2, wrong
    assert cli(tmp_path / "nothing", "--out", tmp_path / "x", "--seed", 1, "--documents")[0] == 2


def large(tmp_path: Path, megabytes: int) -> Path:
    path = tmp_path / "large"
    with penstock.Writer(path, {"token": "u4"}, "json", shard_size=64 << 20) as writer:
        for number in range(megabytes):
            tokens = np.arange(number, number + (1 << 18), dtype=np.uint32)
            lengths = np.full(256, 1024)
            writer.append_batch(lengths, metadata=[{"number": number, "i": i} for i in range(256)], token=tokens)
    return path


def test_memory_is_bounded_whatever_the_size(tmp_path: Path) -> None:
    data = large(tmp_path, 300)
    code = f"""
import sys, penstock
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) << 10
before = status("VmRSS")
penstock.shuffle({str(data)!r}, {str(tmp_path / "out")!r}, seed=1, memory=32 << 20, **eval(sys.argv[1]))
print((status("VmHWM") - before) >> 20)
"""
    for options in ("{'documents': True}", "{'window': 1000, 'overwrite': True}"):
        done = subprocess.run([sys.executable, "-c", code, options], check=True, capture_output=True, text=True)
        assert int(done.stdout) <= 32 + 8, options
    check_some(data, tmp_path / "out", 1000)


def check_some(data: Path, out: Path, window: int) -> None:
    one, other = penstock.open(data).windows(window), penstock.open(out).windows(window)
    permutation = penstock.Permutation(len(one), 1)
    for index in range(0, len(one), 997):
        assert observation(other, index) == observation(one, permutation[index])


def test_ctrl_c_ends_it_soon_while_it_reads(tmp_path: Path) -> None:
    data, out = large(tmp_path, 150), tmp_path / "out"
    process = subprocess.Popen(
        [*PROGRAM, data, "--out", out, "--seed", "1", "--window", "777", "--memory", "64MiB"],
        stderr=subprocess.PIPE,
        text=True,
    )
    while not out.exists():
        assert process.poll() is None
        time.sleep(0.002)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1]
    assert process.returncode == 130 and time.monotonic() - begin < 2
    assert "nothing is kept" in said and not out.exists()


def test_a_full_disk_is_said_before_anything_is_read(tmp_path: Path) -> None:
    data = large(tmp_path, 20)
    code = f"""
import penstock, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 20, 10 << 20))
try:
    penstock.shuffle({str(data)!r}, {str(tmp_path / "out")!r}, seed=1, documents=True)
except penstock.IoError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "put" in done.stdout and "aside (another folder for them: scratch)" in done.stdout
    assert not (tmp_path / "out").exists()


def test_the_datasets_of_other_tests(tmp_path: Path) -> None:
    compact(tmp_path, LENGTHS)
    penstock.combine([tmp_path / f"compact-{shard}" for shard in range(4)], tmp_path / "in")
    penstock.shuffle(tmp_path / "in", tmp_path / "out", seed=8, window=7, memory=1 << 16)
    check(tmp_path / "in", tmp_path / "out", 8, lambda dataset: dataset.windows(7))


# ---- columns

COLUMNS = {"plate": "category", "vector": ("f8", 3), "line": ["a", "b"]}


def write_with_columns(path: Path, count: int, **options: Any) -> dict[str, np.ndarray[Any, Any]]:
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
    penstock.shuffle(tmp_path / "d", tmp_path / "all", seed=3, documents=True)
    penstock.shuffle(tmp_path / "d", tmp_path / "small", seed=3, documents=True, memory=1 << 16, shard_size=8_000)
    drawn = penstock.Permutation(700, 3)(np.arange(700, dtype=np.uint64)).astype(int)
    for name in ("all", "small"):
        columns = penstock.open(tmp_path / name).columns
        assert strings(columns["plate"], columns["plate"][:]) == values["plate"][drawn].tolist()
        assert strings(columns["line"], columns["line"][:]) == values["line"][drawn].tolist()
        np.testing.assert_array_equal(columns["vector"][:], values["vector"][drawn])
        assert columns["line"].categories == ["a", "b"] and penstock.verify(tmp_path / name).ok


def test_each_piece_of_a_document_has_its_values(tmp_path: Path) -> None:
    values = write_with_columns(tmp_path / "d", 300)
    penstock.shuffle(tmp_path / "d", tmp_path / "out", seed=1, window=16)
    before, after = (penstock.open(tmp_path / name).windows(16, columns=["plate", "vector"]) for name in ("d", "out"))
    plates = [view.dataset.columns["plate"] for view in (before, after)]
    for at, index in enumerate(penstock.Permutation(len(before), 1)(np.arange(len(before), dtype=np.uint64)).tolist()):
        was, now = before[index], after[at]
        sizes = [np.array([span.stop - span.start for span in row.spans]) > 0 for row in (was, now)]
        for name in ("vector", "plate"):
            found = [row.columns[name][size] for row, size in zip((was, now), sizes, strict=True)]
            if name == "plate":
                assert strings(plates[0], found[0]) == strings(plates[1], found[1])
            else:
                np.testing.assert_array_equal(*found)
    assert penstock.verify(tmp_path / "out").ok and len(values["plate"]) == 300


def test_other_columns_are_another_input(tmp_path: Path) -> None:
    write_with_columns(tmp_path / "d", 700)
    penstock.shuffle(tmp_path / "d", tmp_path / "out", seed=3, documents=True)
    assert penstock.shuffle(tmp_path / "d", tmp_path / "out", seed=3, documents=True, resume=True)
    penstock.annotate(tmp_path / "d", {"vector": np.zeros(700)})
    with pytest.raises(penstock.InvalidArgumentError, match="another input"):
        penstock.shuffle(tmp_path / "d", tmp_path / "out", seed=3, documents=True, resume=True)


# ---- features and tokenizer

FEATURES = {"names": ["CD4", "CD8A", "GNLY"], "length": [458, 235, 145], "chromosome": ["12", None, "2"]}


def write_with_features(path: Path, features: Any = FEATURES, tokenizer: Any = None, **options: Any) -> Path:
    if tokenizer is not None:
        options["tokenizer"] = tokenizer
    write_with_columns(path, 700, features=features, **options)
    return path


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
    data, out = write_with_features(tmp_path / "d"), tmp_path / "out"
    options: dict[str, Any] = {"seed": 3, "documents": True, "shard_size": 8_000}
    penstock.shuffle(data, out, **options)
    check_features(out)
    wanted = files(out)
    penstock.shuffle(data, out, **options, resume=True)
    assert files(out) == wanted, "it is whole already"
    (out / "dataset.json").unlink()  # as a run leaves it that is killed last
    for shard in ("00002", "00003"):
        (out / shard).rename(tmp_path / shard)
    for name in sorted(each.name for each in out.iterdir() if each.name > "00003" and each.name[0] == "0"):
        (out / name).rename(tmp_path / name)
    penstock.shuffle(data, out, **options, resume=True)
    assert files(out) == wanted
    penstock.shuffle(data, out, **options, overwrite=True)
    check_features(out, ".1")
    penstock.shuffle(write_with_features(tmp_path / "none", None), out, **options, overwrite=True)
    assert penstock.open(out).features is None and not list(out.glob("features*"))
    penstock.shuffle(data, data, **options, overwrite=True)  # by itself
    check_features(data, ".1")
    with pytest.raises(KeyboardInterrupt):
        penstock.shuffle(data, tmp_path / "stopped", **options, progress=interrupt_at_the_end)
    assert not list((tmp_path / "stopped").glob("*features*"))
    penstock.shuffle(data, tmp_path / "stopped", **options, resume=True)
    check_features(tmp_path / "stopped")


def interrupt_at_the_end(done: int, total: int) -> None:
    if done == total:
        raise KeyboardInterrupt


@pytest.mark.parametrize("whole", [True, False])
def test_another_tokenizer_or_other_features_are_another_input(tmp_path: Path, whole: bool) -> None:
    def made(name: str, features: Any, tokenizer: Any = None) -> Path:
        return write_with_features(tmp_path / name, features, tokenizer)

    length = {**FEATURES, "length": [458, 235, 146]}
    names = {**FEATURES, "names": ["CD4", "CD8B", "GNLY"]}
    mine = {"name": "mine"}
    inputs = [
        made("d", FEATURES, mine),
        made("tokenizer", FEATURES, {"name": "other"}),
        made("no_tokenizer", FEATURES),
        made("length", length, mine),
        made("names", names, mine),
        made("no_features", None, mine),
    ]
    assert len({penstock.open(each).fingerprint for each in inputs}) == 1
    options: dict[str, Any] = {"seed": 3, "documents": True}
    for data in inputs:
        out = tmp_path / f"out_{data.name}"
        penstock.shuffle(data, out, **options)
        if not whole:
            (out / "dataset.json").unlink()
        for other in inputs:
            if other != data:
                with pytest.raises(penstock.InvalidArgumentError, match="another input"):
                    penstock.shuffle(other, out, **options, resume=True)
        assert penstock.shuffle(data, out, **options, resume=True)
        assert penstock.open(out).tokenizer == penstock.open(data).tokenizer


def test_features_that_are_not_the_named_ones_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    data = write_with_features(tmp_path / "d")
    other = write_with_features(tmp_path / "other", {"names": ["a", "b", "c"]})
    (data / "features").rename(tmp_path / "gone")
    (other / "features").rename(data / "features")
    with pytest.raises(penstock.CorruptionError, match="features: fingerprint"):
        penstock.shuffle(data, tmp_path / "out", seed=1, documents=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("how", ["shuffle", "annotate", "convert"])
def test_damage_in_columns_is_not_laundered(tmp_path: Path, how: str) -> None:
    path = tmp_path / "d"
    columns = {"n": "f8"}
    with penstock.Writer(path, {"token": "u2"}, "raw", columns=columns) as writer:
        writer.append_batch([2] * 900, encoded=[b""] * 900, columns={"n": np.arange(900.0)}, token=np.arange(1800))
    before = files(path)
    file = path / "00000/columns.bin"
    data = bytearray(file.read_bytes())
    data[5_000] ^= 4
    file.write_bytes(data)
    with pytest.raises(penstock.CorruptionError, match=r"columns\.bin"):
        if how == "shuffle":
            penstock.shuffle(path, tmp_path / "out", seed=1, documents=True)
        elif how == "annotate":
            penstock.annotate(path, {"m": np.zeros(900)})
        else:
            penstock.convert(path, tmp_path / "out", "ids")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    assert set(files(path)) == set(before)
