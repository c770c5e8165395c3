"""Files of the Hugging Face Hub, on a server that speaks its API: what is asked of it, and what is sent where."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _hub import TOKEN, FakeHub, entries_of
from _servers import files_of
from penstock import Storage
from penstock._base.errors import InvalidArgumentError, IoError
from penstock._places.hub import Hub, HubPath, Unanswered
from penstock._places.stores.hub_files import HubFiles, Pins, globs_of

DATA = random.Random(0).randbytes(100_000)


def read(path: str, offset: int, size: int, storage: Storage | None = None) -> bytes:
    return bytes(Hub(storage or Storage()).read(HubPath.parse(path), offset, size))


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("hf://datasets/org/name", ("datasets", "org/name", "main", "")),
        ("hf://datasets/org/name/", ("datasets", "org/name", "main", "")),
        ("hf://datasets/org/name/a/b@c.jsonl", ("datasets", "org/name", "main", "a/b@c.jsonl")),
        ("hf://datasets/org/name@v1.0/a", ("datasets", "org/name", "v1.0", "a")),
        ("hf://datasets/org/name@v1.0", ("datasets", "org/name", "v1.0", "")),
        ("hf://datasets/org/name@refs/convert/parquet/x/*", ("datasets", "org/name", "refs/convert/parquet", "x/*")),
        ("hf://datasets/org/name@refs/pr/12", ("datasets", "org/name", "refs/pr/12", "")),
        ("hf://datasets/org/name@a%2Fb/c", ("datasets", "org/name", "a/b", "c")),
        ("hf://spaces/org/name/a", ("spaces", "org/name", "main", "a")),
        ("hf://org/name/a", ("models", "org/name", "main", "a")),
    ],
)
def test_an_address_has_parts_and_is_made_of_them(address: str, parts: tuple[str, ...]) -> None:
    path = HubPath.parse(address)
    assert (path.kind, path.repo, path.revision, path.path) == parts
    assert HubPath.parse(str(path)) == path


@pytest.mark.parametrize("address", ["hf://", "hf://datasets/name", "hf://datasets/a*/b/c", "hf://datasets/a/b@/c"])
def test_what_names_no_repository_is_refused(address: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is an address of the Hub"):
        HubPath.parse(address)


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["a.jsonl"], [("a.jsonl", 1)]),
        ([f"data/train-0000{n}-of-00003.parquet" for n in range(3)], [("data/train-*.parquet", 3)]),
        ([f"c4-train.0{n:04}-of-01024.json.gz" for n in range(12)], [("c4-train.*.json.gz", 12)]),
        ([f"d/CC-{y}-20/00{n}_0.parquet" for y in (2013, 2024) for n in "01"], [("d/CC-*/*.parquet", 4)]),
        (["x/1", "x/2", "b-7.txt"], [("x/*", 2), ("b-7.txt", 1)]),
    ],
)
def test_globs_are_suggested_of_names_that_differ_in_numbers(paths: list[str], found: list[Any]) -> None:
    assert globs_of(paths) == found


def test_the_server_is_one_that_huggingface_hub_reads(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own library decides what the requests and answers of the Hub are."""
    files = {"README.md": b"# x", **{f"d/e/{n}.bin": DATA[n:] for n in range(9)}}
    hub.dataset("org/name", files, is_private=True)
    from huggingface_hub import HfApi, HfFileSystem

    api = HfApi(endpoint=hub.address, token=TOKEN)
    commit = hub.repositories["org/name"].refs["main"]
    assert api.repo_info("org/name", revision="main", repo_type="dataset").sha == commit
    infos = api.get_paths_info("org/name", ["d/e/3.bin", "d", "none"], repo_type="dataset")
    assert [each.path for each in infos] == ["d/e/3.bin", "d"]
    filesystem = HfFileSystem(endpoint=hub.address, token=TOKEN, skip_instance_cache=True)
    assert filesystem.find("datasets/org/name") == [f"datasets/org/name/{each}" for each in sorted(files)]
    with filesystem.open("datasets/org/name/d/e/3.bin", cache_type="none") as file:
        file.seek(10)
        assert file.read(1000) == DATA[13:1013]
    theirs = {path.partition("?")[0] for _, path, _ in hub.requests}
    hub.requests.clear()
    penstock_files = HubFiles(["hf://datasets/org/name/**"], Storage(), Pins())
    with pytest.raises(IoError):
        penstock_files.find("hf://datasets/org/name/**", bool)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    pins = Pins()
    found = HubFiles(["hf://datasets/org/name/**"], Storage(), pins).find("hf://datasets/org/name/**", bool)
    assert [each.typed for each in found] == [f"hf://datasets/org/name/{each}" for each in sorted(files)]
    assert [each.size for each in found] == [len(files[each]) for each in sorted(files)]
    HubFiles(["hf://datasets/org/name/d/e/3.bin"], Storage(), pins).find("hf://datasets/org/name/d/e/3.bin", bool)
    read(found[4].path, 10, 1000)
    ours = {path.partition("?")[0].replace(commit, "main") for _, path, _ in hub.requests}
    assert ours <= theirs, "requests that huggingface_hub does not make"


def test_ranges_are_of_files_and_the_token_stays_with_the_hub(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files lie on another host: it is asked for once a file, and told no token."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.dataset("org/name", {"a b.bin": DATA, "small": b"0123456789"}, is_private=True)
    client, path = Hub(Storage()), HubPath.parse("hf://datasets/org/name/a b.bin")
    chance = random.Random(1)
    for _ in range(20):
        begin = chance.randrange(len(DATA))
        size = chance.randrange(1, len(DATA) - begin + 1)
        assert client.read(path, begin, size) == DATA[begin : begin + size]
    assert client.read(path.at("small"), 3, 4) == b"3456"
    assert len(hub.paths("/resolve/main/a%20b.bin")) == 1 and len(hub.cdn.requests) == 20
    assert all(headers["authorization"] == f"Bearer {TOKEN}" for _, _, headers in hub.requests)
    assert not any("authorization" in headers for _, _, headers in hub.cdn.requests)
    assert TOKEN not in repr(hub.cdn.requests)
    assert pickle.loads(pickle.dumps(path)) == path


def test_an_address_whose_signature_ended_is_asked_for_again(hub: FakeHub) -> None:
    hub.dataset("org/name", {"a": DATA})
    client, path = Hub(Storage()), HubPath.parse("hf://datasets/org/name/a")
    hub.cdn.fault = lambda path, number: "403" if number == 2 else None
    for begin in range(4):
        assert client.read(path, begin, 10) == DATA[begin : begin + 10]
    assert len(hub.paths("/resolve/")) == 2 and len(hub.cdn.requests) == 5


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("whole", "the server gives no ranges"),
        ("range", "another range came than was asked for"),
        ("gzip", "the range came encoded"),
        ("long", "more bytes came than were asked for"),
        ("cut", "RemoteProtocolError"),
        ("reset", "Error"),
        ("500", "the Hub answered 500"),
    ],
)
def test_what_is_no_range_is_not_taken(hub: FakeHub, fault: str, words: str) -> None:
    """By its header where that tells: the body is not waited for."""
    hub.dataset("org/name", {"a": DATA})
    client, path = Hub(Storage()), HubPath.parse("hf://datasets/org/name/a")
    hub.cdn.fault = lambda path, number: fault if number < 2 else None
    for _ in range(2):
        with pytest.raises(Unanswered, match=words) as refused:
            client.read(path, 5, 100)
        assert "s1gnature" not in str(refused.value)
    assert client.read(path, 5, 100) == DATA[5:105]


def test_a_note_that_cannot_be_read_holds_no_commits() -> None:
    pins = Pins.of_note(Pins({"a": "b"}).note())
    assert pins.commits == {} and Pins.of_note(None).commits == {}
    for note in (b"", b"x", b"[1]", b'{"a": 1}', b"\xff"):
        assert Pins.of_note(note).commits == {}


def test_a_limit_of_requests_is_waited_for(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("penstock._places.hub.time.sleep", waits.append)
    hub.dataset("org/name", {"a": DATA})
    hub.fault = lambda path, number: "429" if number < 2 else None
    assert read("hf://datasets/org/name/a", 0, 10) == DATA[:10] and waits == [2.0, 2.0]
    hub.fault = lambda path, number: "429"
    with pytest.raises(ConnectionError, match="429"):
        read("hf://datasets/org/name/a", 0, 10)
    assert 290 < sum(waits[2:]) <= 300


def test_datasets_open_in_place(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the same adapter; a branch is what it was when the dataset was opened."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with penstock.Writer(tmp_path / "corpus", {"token": "u2"}, metadata="json") as writer:
        for number in range(50):
            writer.append(token=np.arange(number * 7 % 300), metadata={"number": number})
    np.arange(5000, dtype="u2").tofile(tmp_path / "a.bin")
    files = files_of(tmp_path)
    hub.dataset("org/name", files, is_private=True)
    here, far = (penstock.open(f"{root}/corpus") for root in (tmp_path, "hf://datasets/org/name"))
    assert far.fingerprint == here.fingerprint
    hub.repositories["org/name"].commit({**files, "corpus/dataset.json": b"{}"})
    view = far.windows(64)
    assert all(view[n]["token"].tolist() == here.windows(64)[n]["token"].tolist() for n in range(len(view)))
    bare = penstock.open("hf://datasets/org/name/*.bin", dtype="u2")
    assert bare.windows(8)[3]["token"].tolist() == list(range(24, 32))
    assert TOKEN.encode() not in pickle.dumps(far)
    with pytest.raises(penstock.Error, match=r"none/dataset\.json.*no such file|no such folder"):
        penstock.open("hf://datasets/org/name/none")
    with pytest.raises(IoError, match=r"private or gated and no token is set \(401\)"):
        penstock.open("hf://datasets/org/name/corpus", storage=Storage(anonymous=True))


@pytest.mark.parametrize(
    ("field", "words"),
    [({"headers": {"a": "b"}}, "headers go to servers of http"), ({"ca_file": "x"}, "is not for hf://")],
)
def test_what_a_storage_says_of_other_servers_is_refused(hub: FakeHub, field: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        penstock.open("hf://datasets/org/name/a.bin", dtype="u2", storage=Storage(**field))


def test_without_the_package_it_is_said_what_to_install(tmp_path: Path) -> None:
    """An older one has no get_session at its top."""
    program = "import penstock, sys; sys.path.insert(0, '.')\npenstock.open('hf://datasets/a/b/c.bin', dtype='u2')"
    (tmp_path / "huggingface_hub.py").write_text("")
    for block, words in (
        ("import sys; sys.modules['huggingface_hub'] = None\n", "which is not installed: pip install huggingface_hub"),
        ("", "1.0 or newer, and an older one is installed: pip install 'huggingface_hub>=1.0'"),
    ):
        done = subprocess.run([sys.executable, "-c", block + program], cwd=tmp_path, capture_output=True, text=True)
        assert f"InvalidArgumentError: hf:// is read through huggingface_hub, {words}" in done.stderr


def test_listings_have_folders_once() -> None:
    """Of the server of these tests."""
    files = {"a/b/c": b"", "a/d": b"", "e": b""}
    assert [each["path"] for each in entries_of(files, "", recursive=True)] == ["a", "a/b", "a/b/c", "a/d", "e"]
    assert [each["path"] for each in entries_of(files, "a", recursive=False)] == ["a/b", "a/d"]
