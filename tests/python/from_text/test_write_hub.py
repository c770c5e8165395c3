"""`penstock write` of documents on the Hugging Face Hub; the bytes are those of local files."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import penstock
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from _dirty import said_by_write
from _hub import TOKEN, FakeHub
from _places import Place, tree
from _recipes import Far
from _servers import files_of, free_port
from penstock._base.errors import IoError
from penstock._cli import write as command
from penstock._cli.main import main
from text_corpus import rows, write_jsonl

AT = "hf://datasets/org/name"


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JSON lines, plain, as .gz and as .zst; Parquet; plain text. The largest takes several requests."""
    folder = tmp_path_factory.mktemp("documents")
    content = rows()
    for name in ("data", "packed/b", "tables"):
        (folder / name).mkdir(parents=True)
    write_jsonl(folder / "data" / "train-00000-of-00002.jsonl", content)
    write_jsonl(folder / "data" / "train-00001-of-00002.jsonl", content[:30])
    write_jsonl(folder / "data" / "test-00000-of-00001.jsonl", content[40:60])
    data = (folder / "data" / "train-00001-of-00002.jsonl").read_bytes()
    (folder / "packed" / "b" / "c.jsonl.gz").write_bytes(gzip.compress(data))
    (folder / "packed" / "d.jsonl.zst").write_bytes(zstandard.compress(data))
    (folder / "README.md").write_text("# A data set\n")
    for number in range(2):
        table = pyarrow.Table.from_pylist([{"text": row["text"], "url": row["url"]} for row in content[number:600]])
        pyarrow.parquet.write_table(table, folder / "tables" / f"{number}.parquet", row_group_size=200)
    return folder


@pytest.fixture
def filled(hub: FakeHub, documents: Path) -> FakeHub:
    hub.dataset("org/name", files_of(documents))
    return hub


def options(tokenizer_file: str, out: Path) -> list[str]:
    return ["--tokenizer", tokenizer_file, "--shard-size", "100k", "--out", str(out)]


def write(inputs: list[str], out: Any, tokenizer_file: str, *more: str, code: int = 0) -> Any:
    workers = [] if "--workers" in more else ["--workers", "1"]
    return said_by_write(*inputs, *options(tokenizer_file, out), *workers, *more, code=code)


@pytest.fixture(scope="module")
def local(documents: Path, tokenizer_file: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the files of data/train-*.jsonl give."""
    out = tmp_path_factory.mktemp("local") / "out"
    write([str(documents / "data" / "train-*.jsonl")], out, tokenizer_file)
    return tree(out)


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (["data/train-*.jsonl", "packed/**/*.jsonl.*"], ["--metadata", "url,n"]),
        (["tables/*.parquet"], ["--metadata", "url", "--workers", "2"]),
        (["README.md", "data/test-00000-of-00001.jsonl"], ["--format", "text", "--metadata", "path,size"]),
    ],
)
def test_the_bytes_are_those_of_local_files(
    filled: FakeHub, documents: Path, tokenizer_file: str, tmp_path: Path, names: list[str], more: list[str]
) -> None:
    write([str(documents / name) for name in names], tmp_path / "local", tokenizer_file, *more)
    inputs = [f"{AT}/{name}" for name in names]
    said = write(inputs, tmp_path / "far", tokenizer_file, *more)
    assert tree(tmp_path / "far") == tree(tmp_path / "local")
    assert said["shards"] == len(penstock.open(tmp_path / "local").shards)
    assert not list(tmp_path.rglob(".hub-revisions"))
    kept = write(inputs, tmp_path / "far", tokenizer_file, "--resume", *more)
    assert kept["kept_shards"] == said["shards"]


def test_files_are_asked_for_together_and_sizes_are_told_once(
    filled: FakeHub, local: dict[str, bytes], tokenizer_file: str, tmp_path: Path
) -> None:
    """The Hub limits requests: one for the commit, one for both files, and a redirect for each."""
    names = [f"data/train-0000{n}-of-00002.jsonl" for n in range(2)]
    penstock.write([f"{AT}/{each}" for each in names], tmp_path / "out", tokenizer=tokenizer_file, shard_size=100_000)
    assert tree(tmp_path / "out") == local
    kinds = [path.partition("/org/name/")[2].partition("/")[0] for _, path, _ in filled.requests]
    assert sorted(kinds) == ["paths-info", "resolve", "resolve", "revision"]
    assert len(filled.cdn.requests) > 3


def test_tasks_done_whole_read_one_commit(
    filled: FakeHub, documents: Path, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What --ray runs, on processes: the inputs travel to them without the token, which each finds itself."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    filled.repositories["org/name"].is_private = True
    monkeypatch.setattr(command, "cluster_of", lambda given: given.pop("ray") or Far(2))
    once: list[str] = []

    def move(path: str, number: int) -> None:
        """As soon as the run has looked at the inputs, they are others."""
        if "/resolve/" in path and not once:
            once.append(path)
            filled.repositories["org/name"].commit({"data/train-00000-of-00002.jsonl": b'{"text": "other"}\n' * 9})

    filled.fault = move
    names = ["data/train-*.jsonl", "tables/0.parquet", "packed/d.jsonl.zst"]
    write([f"{AT}/{name}" for name in names], tmp_path / "far", tokenizer_file)
    assert once
    monkeypatch.undo()
    monkeypatch.setattr(command, "cluster_of", lambda given: given.pop("ray"))
    write([str(documents / name) for name in names], tmp_path / "local", tokenizer_file)
    assert tree(tmp_path / "far") == tree(tmp_path / "local")


@pytest.mark.parametrize("revision", ["refs/pr/1", "refs%2Fpr%2F1", "v1.0", "commit"])
def test_a_revision_is_a_branch_a_tag_or_a_commit(
    filled: FakeHub, local: dict[str, bytes], tokenizer_file: str, tmp_path: Path, revision: str
) -> None:
    """And what the branch `main` is does not matter."""
    repository = filled.repositories["org/name"]
    commit = repository.refs["main"]
    repository.refs |= {"refs/pr/1": commit, "v1.0": commit}
    repository.commit({})
    revision = commit if revision == "commit" else revision
    write([f"{AT}@{revision}/data/train-*.jsonl"], tmp_path / "out", tokenizer_file)
    assert tree(tmp_path / "out") == local
    said = write([f"{AT}/data/train-*.jsonl"], tmp_path / "none", tokenizer_file, code=2)
    assert "no file matches at " in said["error"]


def test_names_in_metadata_are_those_that_were_typed(
    filled: FakeHub, documents: Path, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a commit, which would make the bytes depend on it, and without what two repositories share."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    filled.dataset("org/more", {"a.txt": b"a", "b.txt": b"b"}, is_private=True)
    inputs = [f"{AT}@main/README.md", "hf://datasets/org/more/*.txt"]
    write(inputs, tmp_path / "out", tokenizer_file, "--metadata", "path")
    paths = [span.metadata["path"] for each in penstock.open(tmp_path / "out").documents() for span in each.spans]
    assert paths == ["name@main/README.md", "more/a.txt", "more/b.txt"]
    assert not any(TOKEN.encode() in data for data in files_of(tmp_path / "out").values())


def test_a_private_dataset_is_read_by_a_token_that_nothing_shows(
    filled: FakeHub, local: dict[str, bytes], tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.repositories["org/name"].is_private = True
    inputs = [f"{AT}/data/train-*.jsonl"]
    said = write(inputs, tmp_path / "out", tokenizer_file, code=1)
    assert f"{AT}@main: there is no such dataset, or it is private or gated and no token is set" in said["error"]
    for token, words, code in (
        ("hf_wrong", "the token that is set (HF_TOKEN) is refused (401)", 1),
        ("hf_another", "there is no such dataset, or it is private and the token that is set", 2),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        said = write(inputs, tmp_path / "out", tokenizer_file, code=code)
        assert words in said["error"] and token not in said["error"]
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        write(inputs, tmp_path / "out", tokenizer_file)
    assert tree(tmp_path / "out") == local and TOKEN not in errors.getvalue()
    assert not any("authorization" in headers for _, _, headers in filled.cdn.requests)
    filled.cdn.fault = lambda path, number: "503"
    with pytest.raises(IoError) as refused:
        penstock.write(inputs, tmp_path / "no", tokenizer=tokenizer_file, storage=penstock.Storage(deadline=1))
    assert "the Hub answered 503" in str(refused.value)
    assert TOKEN not in str(refused.value) and "s1gnature" not in str(refused.value)


@pytest.mark.parametrize("name", ["data/train-*.jsonl", "tables/*.parquet"])
def test_a_gated_dataset_asks_for_its_terms(
    filled: FakeHub, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    filled.repositories["org/name"].is_gated = True
    for token, words in (("", "no token is set"), ("hf_another", "the token's account has no access")):
        monkeypatch.setenv("HF_TOKEN", token)
        said = write([f"{AT}/{name}"], tmp_path / "out", tokenizer_file, code=1)["error"]
        assert f"the dataset is gated, and {words}: accept its terms at {filled.address}/datasets/org/name" in said
        assert "hf_another" not in said and f"{AT}@" in said
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    write([f"{AT}/{name}"], tmp_path / "out", tokenizer_file)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (f"{AT}/data/none.jsonl", "there is no such file in it at "),
        (f"{AT}/none/*.jsonl", "no file matches at "),
        (f"{AT}@v2/a.jsonl", "the dataset has no revision 'v2'"),
        ("hf://datasets/name", "hf://datasets/NAMESPACE/NAME/PATH is an address of the Hub"),
        (AT, f"name them, as in '{AT}/data/train-*.jsonl' (2), '{AT}/tables/*.parquet' (2), '{AT}/data/test-00000"),
        (f"{AT}@main/packed/", f"name them, as in '{AT}@main/packed/b/c.jsonl.gz' (1), '{AT}@main/packed/d.jsonl.zst'"),
        (f"{AT}/data/train-00001-of-00002.jsonl", "is given twice"),
    ],
)
def test_what_names_no_file_is_refused_and_says_what_there_is(
    filled: FakeHub, tokenizer_file: str, tmp_path: Path, address: str, words: str
) -> None:
    said = write([address, f"{AT}@main/data/train-*.jsonl"], tmp_path / "out", tokenizer_file, code=2)
    assert words in said["error"] and not (tmp_path / "out").exists()


def test_a_server_that_fails_now_and_then_is_asked_again(
    filled: FakeHub, local: dict[str, bytes], tokenizer_file: str, tmp_path: Path
) -> None:
    """Bodies that end in the middle, connections that are reset, 503 and 429, listings among them."""
    faults = ["503", None, "reset", None, "429", None]
    filled.fault = lambda path, number: faults[number] if number < len(faults) else None
    filled.cdn.fault = lambda path, number: [None, "cut", None, "reset", "503"][number % 5]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        write([f"{AT}/data/train-*.jsonl"], tmp_path / "out", tokenizer_file)
    assert tree(tmp_path / "out") == local and errors.getvalue() == ""
    assert len(filled.cdn.requests) > 5


def run(arguments: list[str], folder: Path, **variables: str) -> subprocess.Popen[str]:
    """A process of its own, whose HF_HOME and temporary files are in `folder`."""
    (folder / "tmp").mkdir(exist_ok=True)
    env = {**os.environ, "HF_HOME": str(folder / "hf"), "TMPDIR": str(folder / "tmp"), **variables}
    env |= {"XDG_CACHE_HOME": str(folder / "cache"), "HOME": str(folder / "home")}
    program = [sys.executable, "-m", "penstock", "write", *arguments]
    return subprocess.Popen(program, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_run_goes_on_with_its_commit_after_a_kill_though_the_branch_moved(
    hub: FakeHub, tokenizer_file: str, tmp_path: Path
) -> None:
    """And nothing of it is kept on the disk but shards."""
    path = write_jsonl(tmp_path / "a.jsonl", rows() * 6)
    write([str(path)], tmp_path / "local", tokenizer_file, "--shard-size", "200k")
    out, repository = tmp_path / "out", hub.dataset("org/name", {"a.jsonl": path.read_bytes()})
    arguments = [f"{AT}/*.jsonl", *options(tokenizer_file, out), "--shard-size", "200k", "--workers", "1"]
    late, over = threading.Event(), threading.Event()

    def slow(path: str, number: int) -> None:
        if number > 4:  # its beginning, and blocks of more shards than wait for workers
            late.set()
            over.wait(60)

    hub.cdn.fault = slow
    before = repository.refs["main"]
    with run(arguments, tmp_path) as process:
        assert late.wait(60)
        while not (out / "00000" / "shard.json").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    over.set()
    hub.cdn.fault = lambda path, number: None
    assert json.loads((out / ".hub-revisions").read_text()) == {f"{AT}@main": before}
    moved = {"a.jsonl": b'{"text": "other"}\n' * 99}
    repository.commit(moved)

    gone = repository.commits.pop(before)
    with run([*arguments, "--resume"], tmp_path) as process:
        assert "has no revision" in (error := process.communicate()[1])
        assert "the run that is gone on with read this commit" in error and "start anew with --overwrite" in error
    repository.commits[before] = gone

    with run([*arguments, "--resume", "--json"], tmp_path) as process:
        said = json.loads(process.communicate()[0])
    assert said["kept_shards"] >= 1 and tree(out) == tree(tmp_path / "local")
    assert not (out / ".hub-revisions").exists()
    assert [each for name in ("hf", "tmp", "cache", "home") for each in (tmp_path / name).rglob("*")] == []

    assert write([f"{AT}/*.jsonl"], out, tokenizer_file, "--overwrite")["documents"] == 99


def test_a_run_of_which_no_shard_was_finished_leaves_no_note(
    filled: FakeHub, tokenizer_file: str, tmp_path: Path
) -> None:
    repository = filled.repositories["org/name"]
    repository.commit({"a.jsonl": b'{"text": "a"}\n' * 300 + b"no JSON\n"})
    write([f"{AT}/a.jsonl"], tmp_path / "out", tokenizer_file, code=1)
    repository.commit({"a.jsonl": b'{"text": "a"}\n' * 300})
    assert write([f"{AT}/a.jsonl"], tmp_path / "out", tokenizer_file, "--resume")["documents"] == 300


def test_a_bucket_may_be_written_into(
    filled: FakeHub, place: Place, local: dict[str, bytes], tokenizer_file: str
) -> None:
    """What is said of it is not for the Hub."""
    there = ["--endpoint", place.server, "--region", "us-east-1"]
    for more in ([], ["--resume"]):
        said = write([f"{AT}/data/train-*.jsonl"], place.url, tokenizer_file, *there, *more)
    assert said["kept_shards"] == said["shards"] and ".hub-revisions" not in place.files()
    written = penstock.open(place.url, storage=place.storage)
    assert written.fingerprint == json.loads(local["dataset.json"])["fingerprint"]


def test_offline_and_a_wrong_endpoint_are_named(
    hub: FakeHub, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def error(code: int) -> str:
        return str(write([f"{AT}/a.jsonl"], tmp_path / "out", tokenizer_file, code=code)["error"])

    monkeypatch.setenv("HF_ENDPOINT", f"http://me:pa55word@127.0.0.1:{free_port()}")
    assert "the Hub cannot be reached" in (said := error(1)) and "is HF_ENDPOINT right?" in said
    assert "pa55word" not in said
    monkeypatch.setenv("HF_ENDPOINT", "huggingface.co")
    assert "HF_ENDPOINT is no address of a server" in error(2)
    with run([f"{AT}/a.jsonl", *options(tokenizer_file, tmp_path / "out")], tmp_path, HF_HUB_OFFLINE="1") as process:
        assert "HF_HUB_OFFLINE is set: unset it to read from the Hub" in process.communicate()[1]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a.jsonl", "b.jsonl.zst", "c.parquet"])
def test_a_dry_run_looks_at_places(
    hub: FakeHub, tokenizer_file: str, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of large files: pieces of them."""
    content = rows() * 12
    path = write_jsonl(tmp_path / "a.jsonl", content)
    (tmp_path / "b.jsonl.zst").write_bytes(zstandard.compress(path.read_bytes()))
    table = pyarrow.Table.from_pylist([{"text": row["text"]} for row in content])
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet", row_group_size=1000, compression="none")
    hub.dataset("org/name", {name: (tmp_path / name).read_bytes()})
    out = options(tokenizer_file, tmp_path / "out")
    slow = ["--tokenizer-engine", "tokenizers"]  # with a fast one files of this size are read whole
    assert main(["write", f"{AT}/{name}", *out, *slow, "--dry-run", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert not said["sample"]["whole"] or name == "b.jsonl.zst"
    assert abs(said["estimated"]["documents"] / len(content) - 1) < 0.2
    assert not (tmp_path / "out").exists()
