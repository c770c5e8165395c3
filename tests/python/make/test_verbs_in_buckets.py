"""combine, append, annotate and convert of datasets in buckets: the bytes of the local verbs, copies, refusals."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import SHARD_BYTES, Place, plain, tree, without_names
from penstock import InvalidArgumentError, IoError, NotFoundError, Storage

pytest.importorskip("obstore")

FEATURES = {"names": [f"gene{i}" for i in range(50)], "length": np.arange(50, dtype="u4")}
TOKENIZER = {"name": "mine", "vocabulary_size": 50}
COUNT = 120


def write(path: Any, seed: int = 0, count: int = COUNT, **options: Any) -> Any:
    """Shards with entries, columns, a tokenizer and features, each document with a record at least."""
    rng = np.random.default_rng(seed)
    given: dict[str, Any] = {"tokenizer": TOKENIZER, "features": FEATURES, "shard_size": SHARD_BYTES, **options}
    columns = {"score": "f4", "label": "category"}
    with penstock.Writer(path, {"token": "u2"}, metadata="json", columns=columns, **given) as writer:
        for number in range(count):
            tokens = rng.integers(0, 50, int(rng.integers(1, 300))).astype("u2")
            values = {"score": number / 7, "label": f"l{number % 3 + seed}"}
            writer.append(token=tokens, metadata={"name": number, "seed": seed}, columns=values)
    return path


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    return [write(tmp_path / "a"), write(tmp_path / "b", seed=1, count=COUNT // 2)]


@pytest.fixture
def other(s3_server: str, place: Place) -> Place:
    """Another prefix of the bucket."""
    return Place(s3_server, f"{place.name}-other")


def split(files: dict[str, bytes]) -> tuple[dict[str, bytes], dict[str, bytes], Any]:
    """Files of shards, of features without their folder, and the manifest without names."""
    features = {name.partition("/")[2]: data for name, data in files.items() if name.startswith("features")}
    shards = {n: d for n, d in files.items() if "/" in n and not n.startswith("features")}
    manifest = without_names(files["dataset.json"])
    manifest["features"].pop("folder")
    return {re.sub(r"^(\d+)\.\d+/", r"\1/", n): d for n, d in plain(shards).items()}, features, manifest


def check(place: Place, local: Path) -> None:
    """The bytes of a local dataset, and nothing else."""
    files, wanted = split(place.files()), split(tree(local))
    assert [sorted(each) for each in files] == [sorted(each) for each in wanted]
    assert files == wanted
    report = penstock.verify(place.url, storage=place.storage)
    assert report and not report.notices
    named = {"dataset.json"} | {name for name in place.files() if "/" in name}
    assert set(place.files()) == named


def empty(folder: Path) -> bool:
    return not folder.exists() or not list(folder.iterdir())


@pytest.mark.parametrize("workers", [2])  # one worker: tests/python/make/test_verbs.py
def test_combined_into_a_bucket_from_there_and_here(
    place: Place, other: Place, data: list[Path], tmp_path: Path, workers: int
) -> None:
    penstock.combine([data[0]], other.url, storage=place.storage)
    told: list[tuple[int, int]] = []
    found = penstock.combine(
        [other.url, data[1]],
        place.url,
        storage=place.storage,
        scratch=tmp_path / "scratch",
        workers=workers,
        progress=lambda done, total: told.append((done, total)),
    )
    assert found == penstock.combine(data, tmp_path / "local") == penstock.open(*data).fingerprint
    check(place, tmp_path / "local")
    assert empty(tmp_path / "scratch") and told[-1][0] == told[-1][1] > 0
    assert list(penstock.open(place.url, storage=place.storage).features.names) == FEATURES["names"]


@pytest.mark.parametrize("is_renamed", [False, True])
def test_shards_of_the_same_bucket_are_copied_on_the_server(
    place: Place, other: Place, s3_server: str, data: list[Path], tmp_path: Path, is_renamed: bool
) -> None:
    if is_renamed:  # a dataset of this machine that was copied there: names without a hash
        for name, content in tree(data[0]).items():
            other.put(name, content)
    else:
        penstock.combine([data[0]], other.url, storage=place.storage)
    with fault_proxy(s3_server, lambda method, path, number: None) as proxy:
        penstock.combine([other.url], place.url, storage=Storage(endpoint=proxy.address, region="us-east-1"))
        moved = [
            path
            for method, path in proxy.requests
            if method in ("GET", "POST") and ".bin" in path and "/features" not in path
        ]
        parts = [path for method, path in proxy.requests if method == "PUT" and "partNumber" in path]
    assert not [path for path in moved if not path.partition("?")[0].endswith(".crc")] and not parts
    assert bool(moved) == is_renamed
    penstock.combine([data[0]], tmp_path / "local")
    check(place, tmp_path / "local")


@pytest.mark.parametrize("workers", [2])  # one worker: tests/python/make/test_verbs.py
def test_combined_into_a_folder_from_a_bucket(place: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[1]], place.url, storage=place.storage)
    out = tmp_path / "out"
    found = penstock.combine([data[0], place.url], out, storage=place.storage, workers=workers)
    assert found == penstock.combine(data, tmp_path / "local")
    assert tree(out) == tree(tmp_path / "local") and penstock.verify(out) and not penstock.verify(out).notices
    assert sorted(each.name for each in out.iterdir() if each.name.startswith(".")) == []
    penstock.combine([place.url], out, storage=place.storage, overwrite=True, scratch=tmp_path / "scratch")
    assert penstock.open(out).fingerprint == penstock.open(data[1]).fingerprint and penstock.verify(out)
    assert empty(tmp_path / "scratch") and not penstock.verify(out).notices


@pytest.mark.parametrize("workers", [2])  # one worker: tests/python/make/test_verbs.py
def test_appended_in_a_bucket(place: Place, other: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[0]], place.url, storage=place.storage)
    penstock.combine([data[1]], other.url, storage=place.storage)
    before = place.files()
    told: list[tuple[int, int]] = []
    options: dict[str, Any] = {"storage": place.storage, "scratch": tmp_path / "scratch", "workers": workers}
    found = penstock.append(place.url, [other.url, data[1]], lambda *done: told.append(done), **options)
    penstock.combine([data[0], data[1], data[1]], tmp_path / "local")
    assert found == penstock.open(tmp_path / "local").fingerprint
    check(place, tmp_path / "local")
    after = place.files()
    assert {name: after[name] for name in before if name != "dataset.json"} == {
        name: content for name, content in before.items() if name != "dataset.json"
    }
    assert told[-1] == (2 * len(penstock.open(data[1]).shards),) * 2 and empty(tmp_path / "scratch")
    grown = penstock.open(place.url, storage=place.storage)
    first = range(len(penstock.open(data[0]).shards))
    assert grown.select(list(first)).fingerprint == penstock.open(data[0]).fingerprint
    assert penstock.append(place.url, [other.url, data[1]], resume=True, **options) == found and place.files() == after


def test_appended_to_a_folder_from_a_bucket(place: Place, data: list[Path], tmp_path: Path) -> None:
    penstock.combine([data[1]], place.url, storage=place.storage)
    local = tmp_path / "local"
    penstock.combine([data[0]], local)
    penstock.append(data[0], [place.url, data[1]], storage=place.storage, scratch=tmp_path / "scratch")
    penstock.append(local, [data[1], data[1]])
    assert tree(data[0]) == tree(local) and penstock.verify(data[0]) and empty(tmp_path / "scratch")
    before = tree(local)
    penstock.append(local, place.url, storage=place.storage, resume=True)
    assert tree(local) == before


def values(count: int) -> dict[str, Any]:
    return {
        "score": None,
        "label": [f"x{n % 5}" if n % 7 else None for n in range(count)],
        "place": np.arange(2 * count, dtype="i4").reshape(count, 2),
    }


@pytest.mark.parametrize("workers", [2])  # one worker: tests/python/make/test_verbs.py
def test_annotated_in_a_bucket(place: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[0]], place.url, storage=place.storage)
    told: list[tuple[int, int]] = []
    options: dict[str, Any] = {"storage": place.storage, "scratch": tmp_path / "scratch", "workers": workers}
    found = penstock.annotate(place.url, values(COUNT), lambda *done: told.append(done), **options)
    assert found == penstock.annotate(data[0], values(COUNT))
    check(place, data[0])
    assert told[-1] == (len(penstock.open(data[0]).shards),) * 2 and empty(tmp_path / "scratch")
    columns = penstock.open(place.url, storage=place.storage).columns
    assert list(columns) == ["label", "place"] and columns["place"][:].tolist() == values(COUNT)["place"].tolist()
    for wrong, said in (
        ({"a": [1, 2]}, f"column a: 2 values, the dataset has {COUNT} documents"),
        ({"a": None}, "no column a"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{place.url}: .*{said}"):
            penstock.annotate(place.url, wrong, **options)


def test_annotated_by_several_processes_here(data: list[Path], tmp_path: Path) -> None:
    penstock.combine([data[0]], tmp_path / "copy")
    assert penstock.annotate(data[0], values(COUNT)) == penstock.annotate(tmp_path / "copy", values(COUNT), workers=2)
    assert tree(data[0]) == tree(tmp_path / "copy") and penstock.verify(data[0])
    assert not [each for each in data[0].iterdir() if each.name.startswith(".")]


@pytest.mark.parametrize(
    ("way", "workers"), [("there to there", 2), ("there to here", 1), ("here to there", 1), ("here to here", 2)]
)
def test_converted(place: Place, other: Place, data: list[Path], tmp_path: Path, way: str, workers: int) -> None:
    begin, end = way.split(" to ")
    penstock.combine([data[0]], other.url, storage=place.storage)
    path: Any = other.url if begin == "there" else data[0]
    out: Any = place.url if end == "there" else tmp_path / "out"
    options: dict[str, Any] = {"workers": workers}
    if way != "here to here":
        options |= {"storage": place.storage, "scratch": tmp_path / "scratch"}
    told: list[tuple[int, int]] = []
    found = penstock.convert(path, out, "ids", progress=lambda *done: told.append(done), **options)
    assert found == penstock.convert(data[0], tmp_path / "local", "ids") == penstock.open(data[0]).fingerprint
    if end == "there":
        check(place, tmp_path / "local")
    else:
        assert tree(out) == tree(tmp_path / "local") and penstock.verify(out)
    assert empty(tmp_path / "scratch") and told[-1][0] == told[-1][1] > 0
    with pytest.raises(InvalidArgumentError, match="its layout is ids already"):
        penstock.convert(
            out, tmp_path / "again", "ids", storage=options.get("storage") if end == "there" else None, workers=workers
        )


@pytest.mark.parametrize("workers", [2])  # one worker: tests/python/make/test_verbs.py
def test_shuffled_from_a_bucket(place: Place, other: Place, data: list[Path], tmp_path: Path, workers: int) -> None:
    penstock.combine([data[0]], other.url, storage=place.storage)
    given: dict[str, Any] = {"seed": 3, "documents": True, "shard_size": SHARD_BYTES}
    local = penstock.shuffle(data[0], tmp_path / "local", **given)
    options: dict[str, Any] = {"storage": place.storage, "scratch": tmp_path / "scratch", "workers": workers}
    assert penstock.shuffle(other.url, place.url, **given, **options) == local
    check(place, tmp_path / "local")
    assert penstock.shuffle(other.url, tmp_path / "out/deep", **given, storage=place.storage, workers=workers) == local
    assert tree(tmp_path / "out/deep") == tree(tmp_path / "local") and [*(tmp_path / "out").iterdir()] == [
        tmp_path / "out/deep"
    ]
    assert penstock.shuffle(other.url, place.url, **given, **options, resume=True) == local
    assert empty(tmp_path / "scratch")


VERBS: dict[str, Callable[[Place, Place, list[Path], Any], Any]] = {
    "combine": lambda place, other, data, given: penstock.combine(data, place.url, **given),
    "append": lambda place, other, data, given: penstock.append(other.url, data, **given),
    "annotate": lambda place, other, data, given: penstock.annotate(other.url, values(COUNT), **given),
    "convert": lambda place, other, data, given: penstock.convert(other.url, place.url, "ids", **given),
}
IN_PLACE = ("append", "annotate")


def local_twin(verb: str, data: list[Path], folder: Path) -> Path:
    if verb == "annotate":
        penstock.annotate(data[0], values(COUNT))
        return data[0]
    if verb == "convert":
        penstock.convert(data[0], folder, "ids")
    else:
        penstock.combine([data[0], *data] if verb == "append" else data, folder)
    return folder


@pytest.mark.parametrize("workers", [2])
@pytest.mark.parametrize("verb", VERBS)
def test_a_failed_upload_keeps_what_is_whole_and_the_next_run_goes_on(
    place: Place, other: Place, s3_server: str, data: list[Path], tmp_path: Path, verb: str, workers: int
) -> None:
    penstock.combine([data[0]], other.url, storage=place.storage)
    out, before = (other, other.files()) if verb in IN_PLACE else (place, {})
    last = 3 if verb == "append" else 1

    def fault(method: str, path: str, number: int) -> str | None:
        name = f"/{last:05}" + (".1" if verb in IN_PLACE else "")
        return "503" if method == "PUT" and f"{name}-" in path and path.endswith("shard.json") else None

    given: dict[str, Any] = {"scratch": tmp_path / "scratch", "workers": workers}
    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match="503") as raised:
            VERBS[verb](place, other, data, {**given, "storage": storage})
    advice = "the same again goes on with them" if verb in IN_PLACE else "go on with --resume"
    assert re.search(rf"[1-4] finished shards? (is|are) kept: {advice}", str(raised.value))
    assert empty(tmp_path / "scratch")
    assert {name: content for name, content in out.files().items() if name in before} == before
    if verb not in IN_PLACE:
        with pytest.raises(InvalidArgumentError, match="of a run that did not end"):
            VERBS[verb](place, other, data, {**given, "storage": place.storage})
        given["resume"] = True
    kept = {name for name in out.files() if name.endswith("shard.json")} - before.keys()
    assert kept
    with fault_proxy(s3_server, lambda method, path, number: None) as proxy:
        VERBS[verb](place, other, data, {**given, "storage": Storage(endpoint=proxy.address, region="us-east-1")})
        put = [path for method, path in proxy.requests if method == "PUT" and path.endswith("stream.bin")]
    assert not {name for name in kept if any(name.split("/")[0] in path for path in put)}
    check(out, local_twin(verb, data, tmp_path / "local"))
    assert empty(tmp_path / "scratch")


@pytest.mark.parametrize("verb", VERBS)
def test_who_publishes_second_is_refused(
    place: Place, other: Place, s3_server: str, data: list[Path], tmp_path: Path, verb: str
) -> None:
    penstock.combine([data[0]], other.url, storage=place.storage)
    out = other if verb in IN_PLACE else place
    published: list[str] = []
    # The shards of what is replaced are removed: who still reads them gets errors.
    moment = f"/{out.name}/dataset.json" if verb == "annotate" else "/shard.json"

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and path.endswith(moment) and f"/{out.name}/" in path and not published:
            published.append(penstock.combine([data[1]], out.url, storage=place.storage, overwrite=True))

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1")
        with pytest.raises(InvalidArgumentError, match="someone else has published"):
            VERBS[verb](place, other, data, {"storage": storage, "scratch": tmp_path / "scratch"})
    assert penstock.open(out.url, storage=place.storage).fingerprint == published[0] and empty(tmp_path / "scratch")
    assert penstock.verify(out.url, storage=place.storage)


def test_shards_of_another_run_are_not_kept(place: Place, other: Place, data: list[Path], tmp_path: Path) -> None:
    penstock.combine([data[1], data[0]], place.url, storage=place.storage)
    place.client.delete_object(Bucket="data", Key=f"{place.name}/dataset.json")
    penstock.combine([data[0]], place.url, storage=place.storage, resume=True)
    penstock.combine([data[0]], tmp_path / "local")
    check(place, tmp_path / "local")
    penstock.convert(place.url, other.url, "ids", storage=place.storage)
    before = other.files()
    penstock.convert(data[0], other.url, "ids", storage=place.storage, resume=True)
    assert other.files() == before
    with pytest.raises(InvalidArgumentError, match="holds a dataset made of other input"):
        penstock.convert(data[1], other.url, "ids", storage=place.storage, resume=True)
    assert other.files() == before


def test_what_does_not_go_together_is_refused_in_the_words_of_the_local_verbs(
    place: Place, data: list[Path], tmp_path: Path
) -> None:
    others = {
        "layout compact and ids: convert one of them first": write(tmp_path / "ids", count=9, layout="ids"),
        "the names of their features differ": write(tmp_path / "names", count=9, features=["CD4"]),
        "has features, the other has none": write(tmp_path / "none", count=9, features=None),
        "has tokenizer": write(tmp_path / "tokens", count=9, tokenizer={"name": "another"}),
    }
    penstock.combine([data[0]], place.url, storage=place.storage)
    before = place.files()
    for said, path in others.items():
        for wanted, call in (
            (data[0], lambda first: penstock.combine([first, path], tmp_path / "x", **at(first))),  # noqa: B023
            (data[0], lambda first: penstock.append(first, path, **at(first))),  # noqa: B023
        ):
            words = []
            for first in (wanted, place.url):
                with pytest.raises(InvalidArgumentError, match=said) as raised:
                    call(first)
                words.append(str(raised.value).replace(str(first), "FIRST"))
            assert words[0] == words[1]
    assert place.files() == before and not (tmp_path / "x").exists()
    with pytest.raises(NotFoundError):
        penstock.append(place.url + "/nowhere", data[0], storage=place.storage)


def at(first: Any) -> dict[str, Any]:
    return {"storage": Storage(endpoint=ENDPOINT[0], region="us-east-1")} if isinstance(first, str) else {}


ENDPOINT: list[str] = []


@pytest.fixture(autouse=True)
def endpoint(s3_server: str) -> None:
    ENDPOINT[:] = [s3_server]


def command(place: Place, *arguments: Any) -> subprocess.CompletedProcess[str]:
    given = [*map(str, arguments), "--endpoint", place.server, "--region", "us-east-1", "--json"]
    return subprocess.run([sys.executable, "-m", "penstock", *given], capture_output=True, text=True)


def test_the_commands_take_addresses(place: Place, other: Place, data: list[Path], tmp_path: Path) -> None:
    scratch = ["--scratch", tmp_path / "scratch"]
    np.save(tmp_path / "n.npy", np.arange(COUNT + COUNT // 2))
    for arguments in (
        ("combine", data[0], "--out", place.url, *scratch),
        ("append", place.url, data[1], *scratch, "--resume"),
        ("append", place.url, data[1], *scratch, "--resume"),
        ("annotate", place.url, f"n={tmp_path / 'n.npy'}", *scratch),
        ("convert", place.url, "--layout", "ids", "--out", other.url, *scratch, "--workers", "2"),
        ("combine", other.url, "--out", tmp_path / "here"),
    ):
        done = command(place, *arguments)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["path"] == str(
            arguments[arguments.index("--out") + 1 if "--out" in arguments else 1]
        )
    found = penstock.open(tmp_path / "here")
    assert found.fingerprint == penstock.open(*data).fingerprint and found.layout == "ids" and "n" in found.columns
    assert empty(tmp_path / "scratch")
    again = command(place, "combine", data[0], "--out", place.url)
    assert again.returncode == 2 and "--overwrite" in again.stderr + again.stdout


def test_what_an_annotate_left_is_of_no_use_to_other_values_nor_to_an_append(
    place: Place, s3_server: str, data: list[Path], tmp_path: Path
) -> None:
    def fail(begun: str) -> None:
        def fault(method: str, path: str, number: int) -> str | None:
            return "503" if method == "PUT" and f"/{begun}-" in path and path.endswith("shard.json") else None

        with fault_proxy(s3_server, fault) as proxy:
            storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
            with pytest.raises(IoError, match="1 finished shard is kept"):
                penstock.annotate(place.url, {"n": np.arange(COUNT)}, storage=storage)

    penstock.combine([data[0]], place.url, storage=place.storage)
    fail("00001.1")
    penstock.append(place.url, data[1], storage=place.storage)
    penstock.combine(data, tmp_path / "both")
    files = place.files()
    assert files.pop(".annotating")  # which the next annotate replaces
    assert split(files) == split(tree(tmp_path / "both"))
    penstock.combine([data[0]], place.url, storage=place.storage, overwrite=True)  # the second generation
    fail("00001.3")
    penstock.annotate(place.url, {"n": np.arange(COUNT) + 1}, storage=place.storage)
    penstock.annotate(data[0], {"n": np.arange(COUNT) + 1})
    check(place, data[0])
