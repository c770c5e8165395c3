"""Verbs of datasets in buckets: the bytes of the local verbs wherever input and output lie, copies, refusals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _fault_servers import fault_proxy
from _places import SHARD_BYTES, Place, plain, tree, without_names
from _recipes import Near
from penstock import InvalidArgumentError, IoError, NotFoundError, Storage
from penstock._cli.main import main
from penstock._make import annotate as annotating

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


def check(out: Any, local: Path) -> None:
    """The bytes of a local dataset, and nothing else: in a bucket or in a folder."""
    files = out.files() if isinstance(out, Place) else tree(out)
    assert split(files) == split(tree(local))
    assert {name for name in files if "/" not in name} == {"dataset.json"}
    report = penstock.verify(out.url, storage=out.storage) if isinstance(out, Place) else penstock.verify(out)
    assert report and not report.notices


def empty(folder: Path) -> bool:
    return not folder.exists() or not list(folder.iterdir())


def through(address: str, **given: Any) -> Storage:
    return Storage(endpoint=address, region="us-east-1", **given)


def values(count: int) -> dict[str, Any]:
    return {
        "score": None,
        "label": [f"x{n % 5}" if n % 7 else None for n in range(count)],
        "place": np.arange(2 * count, dtype="i4").reshape(count, 2),
    }


#: A verb of two inputs: into `out`, or in place of a dataset that is there.
VERBS: dict[str, Callable[..., Any]] = {
    "combine": lambda inputs, out, **given: penstock.combine(inputs, out, **given),
    "convert": lambda inputs, out, **given: penstock.convert(inputs[0], out, "ids", **given),
    "leave out": lambda inputs, out, **given: penstock.convert(
        inputs[0], out, where="score > 3 and label <> 'l1'", without=[30], **given
    ),
    "append": lambda inputs, out, **given: penstock.append(out, inputs, **given),
    "annotate": lambda inputs, out, **given: penstock.annotate(out, values(COUNT), **given),
    "keys": lambda inputs, out, **given: penstock.annotate(out, from_metadata=["name:f4", "seed"], **given),
    "shuffle": lambda inputs, out, **given: penstock.shuffle(
        inputs[0], out, seed=3, documents=True, shard_size=SHARD_BYTES, **given
    ),
}
IN_PLACE = ("append", "annotate", "keys")
ALL_BUT_SHUFFLE = ("combine", "convert", "append", "annotate")  # which does not go by shards: test_verbs.py


def local_twin(verb: str, data: list[Path], folder: Path) -> Path:
    """What the verb makes of folders of this machine."""
    if verb in IN_PLACE:
        penstock.combine([data[0]], folder)
    VERBS[verb](data, folder)
    return folder


@pytest.mark.parametrize(
    ("verb", "way"),
    [
        *((verb, way) for verb in VERBS for way in ("there to there", "here to here")),
        *(
            (verb, way)
            for verb in ("combine", "convert", "leave out", "append")
            for way in ("there to here", "here to there")
        ),
        ("shuffle", "there to here"),
    ],
)
def test_the_bytes_are_those_of_the_local_verb(
    place: Place, other: Place, data: list[Path], tmp_path: Path, verb: str, way: str
) -> None:
    several = 2 if verb in ("convert", "leave out", "append") else Near()  # what travels to processes of its own
    workers: Any = {"there to there": several, "here to here": Near()}.get(way, 1)
    begin, end = way.split(" to ")
    (tmp_path / "scratch").mkdir()
    inputs: list[Any] = [*data]
    given: dict[str, Any] = {"workers": workers}
    if way != "here to here":
        given |= {"storage": place.storage, "scratch": tmp_path / "scratch"}
    if begin == "there":  # and the second one here
        penstock.combine([data[0]], other.url, storage=place.storage)
        inputs[0] = other.url
    out = place if end == "there" else tmp_path / "out" / "deep"
    address = getattr(out, "url", out)
    if verb in IN_PLACE:
        penstock.combine([data[0]], address, storage=place.storage if end == "there" else None)
    before = out.files() if isinstance(out, Place) else tree(out)
    told: list[tuple[int, int]] = []
    found = VERBS[verb](inputs, address, progress=lambda *done: told.append(done[:2]), **given)
    local = local_twin(verb, data, tmp_path / "local")
    assert found == penstock.open(local).fingerprint
    check(out, local)
    assert told[-1][0] == told[-1][1] > 0 and empty(tmp_path / "scratch")
    if end == "here":
        assert [each.name for each in out.parent.iterdir()] == ["deep"]
    after = out.files() if isinstance(out, Place) else tree(out)
    if verb == "append":  # the first shards stay as they are
        assert all(after[name] == content for name, content in before.items() if name != "dataset.json")
    if verb not in ("annotate", "keys"):
        assert VERBS[verb](inputs, address, resume=True, **given) == found
        assert (out.files() if isinstance(out, Place) else tree(out)) == after


def test_values_of_other_lengths_and_columns_that_are_not_there_are_refused(place: Place, data: list[Path]) -> None:
    penstock.combine([data[0]], place.url, storage=place.storage)
    for wrong, said in (({"a": [1]}, f"column a: 1 values, the dataset has {COUNT}"), ({"a": None}, "no column a")):
        with pytest.raises(InvalidArgumentError, match=f"^{place.url}: .*{said}"):
            penstock.annotate(place.url, wrong, storage=place.storage)


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
        penstock.combine([other.url], place.url, storage=through(proxy.address))
        moved = [
            path
            for method, path in proxy.requests
            if method in ("GET", "POST") and ".bin" in path and "/features" not in path
        ]
        parts = [path for method, path in proxy.requests if method == "PUT" and "partNumber" in path]
    assert not [path for path in moved if not path.partition("?")[0].endswith(".crc")] and not parts
    assert bool(moved) == is_renamed
    check(place, data[0])


@pytest.mark.parametrize("verb", ALL_BUT_SHUFFLE)
def test_a_failed_upload_keeps_what_is_whole_and_the_next_run_goes_on(
    place: Place, other: Place, s3_server: str, data: list[Path], tmp_path: Path, verb: str
) -> None:
    out = place
    if verb in IN_PLACE:
        penstock.combine([data[0]], out.url, storage=place.storage)
    before = out.files()
    last = 3 if verb == "append" else 1

    def fault(method: str, path: str, number: int) -> str | None:
        name = f"/{last:05}" + (".1" if verb in IN_PLACE else "")
        return "503" if method == "PUT" and f"{name}-" in path and path.endswith("shard.json") else None

    given: dict[str, Any] = {"scratch": tmp_path / "scratch", "workers": Near() if verb == "convert" else 1}
    with fault_proxy(s3_server, fault) as proxy, pytest.raises(IoError, match="503") as raised:
        VERBS[verb](data, out.url, **given, storage=through(proxy.address, deadline=0.5))
    advice = "the same again goes on with them" if verb in IN_PLACE else "go on with --resume"
    assert re.search(rf"[1-4] finished shards? (is|are) kept: {advice}", str(raised.value))
    assert empty(tmp_path / "scratch")
    assert {name: content for name, content in out.files().items() if name in before} == before
    if verb not in IN_PLACE:
        with pytest.raises(InvalidArgumentError, match="of a run that did not end"):
            VERBS[verb](data, out.url, **given, storage=place.storage)
        given["resume"] = True
    kept = {name for name in out.files() if name.endswith("shard.json")} - before.keys()
    assert kept
    with fault_proxy(s3_server, lambda method, path, number: None) as proxy:
        VERBS[verb](data, out.url, **given, storage=through(proxy.address))
        put = [path for method, path in proxy.requests if method == "PUT" and path.endswith("stream.bin")]
    assert not {name for name in kept if any(name.split("/")[0] in path for path in put)}
    check(out, local_twin(verb, data, tmp_path / "local"))
    assert empty(tmp_path / "scratch")


@pytest.mark.parametrize("verb", ALL_BUT_SHUFFLE)
def test_who_publishes_second_is_refused(
    place: Place, s3_server: str, data: list[Path], tmp_path: Path, verb: str
) -> None:
    if verb in IN_PLACE:
        penstock.combine([data[0]], place.url, storage=place.storage)
    published: list[str] = []
    # The shards of what is replaced are removed: who still reads them gets errors.
    moment = f"/{place.name}/dataset.json" if verb == "annotate" else "/shard.json"

    def fault(method: str, path: str, number: int) -> None:
        if method == "PUT" and path.endswith(moment) and not published:
            published.append(penstock.combine([data[1]], place.url, storage=place.storage, overwrite=True))

    with (
        fault_proxy(s3_server, fault) as proxy,
        pytest.raises(InvalidArgumentError, match="someone else has published"),
    ):
        VERBS[verb](data, place.url, storage=through(proxy.address), scratch=tmp_path / "scratch")
    assert penstock.open(place.url, storage=place.storage).fingerprint == published[0] and empty(tmp_path / "scratch")
    assert penstock.verify(place.url, storage=place.storage)


def test_shards_of_another_run_are_not_kept(place: Place, other: Place, data: list[Path]) -> None:
    penstock.combine([data[1], data[0]], place.url, storage=place.storage)
    place.client.delete_object(Bucket="data", Key=f"{place.name}/dataset.json")
    penstock.combine([data[0]], place.url, storage=place.storage, resume=True)
    check(place, data[0])
    penstock.convert(place.url, other.url, "ids", storage=place.storage)
    before = other.files()
    with pytest.raises(InvalidArgumentError, match="holds a dataset made of other input"):
        penstock.convert(data[1], other.url, "ids", storage=place.storage, resume=True)
    with pytest.raises(InvalidArgumentError, match="its layout is ids already"):
        penstock.convert(other.url, f"{place.url}/again", "ids", storage=place.storage)
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
    calls: list[Callable[..., Any]] = [
        lambda first, path, **given: penstock.combine([first, path], tmp_path / "x", **given),
        penstock.append,
    ]
    for said, path in others.items():
        for call in calls:
            words = []
            for first, given in ((data[0], {}), (place.url, {"storage": place.storage})):
                with pytest.raises(InvalidArgumentError, match=said) as raised:
                    call(first, path, **given)
                words.append(str(raised.value).replace(str(first), "FIRST"))
            assert words[0] == words[1]
    assert place.files() == before and not (tmp_path / "x").exists()
    with pytest.raises(NotFoundError):
        penstock.append(place.url + "/nowhere", data[0], storage=place.storage)


def test_the_commands_take_addresses(
    place: Place, other: Place, data: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scratch, reached = ["--scratch", tmp_path / "scratch"], ["--endpoint", place.server, "--region", "us-east-1"]
    np.save(tmp_path / "n.npy", np.arange(COUNT + COUNT // 2))
    for arguments in (
        ("combine", data[0], "--out", place.url, *scratch),
        ("append", place.url, data[1], *scratch, "--resume"),
        ("append", place.url, data[1], *scratch, "--resume"),
        ("annotate", place.url, f"n={tmp_path / 'n.npy'}", *scratch),
        ("convert", place.url, "--layout", "ids", "--out", other.url, *scratch, "--workers", "1"),
        ("combine", other.url, "--out", tmp_path / "here"),
    ):
        assert main([*map(str, (*arguments, *reached)), "--json"]) == 0, arguments
        path = arguments[arguments.index("--out") + 1 if "--out" in arguments else 1]
        assert json.loads(capsys.readouterr().out)["path"] == str(path)
    found = penstock.open(tmp_path / "here")
    assert found.fingerprint == penstock.open(*data).fingerprint and found.layout == "ids" and "n" in found.columns
    assert empty(tmp_path / "scratch")
    assert main(["combine", str(data[0]), "--out", place.url, *reached]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_what_an_annotate_left_is_of_no_use_to_other_values_nor_to_an_append(
    place: Place, s3_server: str, data: list[Path], tmp_path: Path
) -> None:
    def fail(begun: str) -> None:
        def fault(method: str, path: str, number: int) -> str | None:
            return "503" if method == "PUT" and f"/{begun}-" in path and path.endswith("shard.json") else None

        with fault_proxy(s3_server, fault) as proxy, pytest.raises(IoError, match="1 finished shard is kept"):
            penstock.annotate(place.url, {"n": np.arange(COUNT)}, storage=through(proxy.address, deadline=0.5))

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


@pytest.mark.parametrize("slash", ["", "/"])
def test_what_is_published_between_the_plan_and_the_run_is_not_replaced(
    place: Place, data: list[Path], monkeypatch: pytest.MonkeyPatch, slash: str
) -> None:
    penstock.combine(data[:1], place.url, storage=place.storage)
    plan = annotating.tasks_of

    def meanwhile(sources: Any) -> Any:
        found = plan(sources)
        penstock.append(place.url, data[1], storage=place.storage)
        return found

    monkeypatch.setattr(annotating, "tasks_of", meanwhile)
    with pytest.raises(penstock.InvalidArgumentError, match="another dataset was published here just now: do it again"):
        penstock.annotate(place.url + slash, {"n": np.arange(COUNT)}, storage=place.storage)
    assert len(penstock.open(place.url, storage=place.storage).documents()) == COUNT + COUNT // 2
