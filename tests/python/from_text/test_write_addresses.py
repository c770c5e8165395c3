"""`penstock write` of documents at addresses: buckets and servers of HTTP; the bytes are those of local files."""

from __future__ import annotations

import gzip
import random
from pathlib import Path
from typing import Any

import penstock
import pyarrow
import pyarrow.parquet
import pytest
import zstandard
from _dirty import said_by_write
from _fault_servers import fault_proxy, fault_server
from _places import Place, tree
from _recipes import Far
from _servers import nginx
from penstock._cli import write as command
from penstock._from.text.far import FarFile, FarFiles
from penstock._places.stores.addresses import addresses_of
from text_corpus import rows, write_jsonl

pytest.importorskip("obstore")


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """JSON lines, plain, as .gz and as .zst, in folders; Parquet; plain text. Some are larger than one request."""
    folder = tmp_path_factory.mktemp("documents")
    content = rows()
    (folder / "b").mkdir()
    write_jsonl(folder / "a.jsonl", content)
    data = (folder / "a.jsonl").read_bytes()
    (folder / "b" / "c.jsonl.gz").write_bytes(gzip.compress(data))
    (folder / "b" / "d.jsonl.zst").write_bytes(zstandard.compress(data[: len(data) // 2].rpartition(b"\n")[0] + b"\n"))
    (folder / "e.txt").write_text(content[9]["text"])
    (folder / "empty.jsonl").write_bytes(b"")
    table = pyarrow.Table.from_pylist([{"text": row["text"], "url": row["url"]} for row in content])
    pyarrow.parquet.write_table(table, folder / "f.parquet", row_group_size=200)
    return folder


@pytest.fixture
def uploaded(place: Place, documents: Path) -> Place:
    for name, data in tree(documents).items():
        place.put(name, data)
    return place


def write(inputs: list[str], out: Any, tokenizer_file: str, *more: str, code: int = 0) -> Any:
    options = ["--tokenizer", tokenizer_file, "--shard-size", "100k", "--out", out]
    workers = [] if "--workers" in more else ["--workers", "1"]
    return said_by_write(*inputs, *options, *workers, *more, code=code)


@pytest.fixture(scope="module")
def local(documents: Path, tokenizer_file: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a.jsonl gives, and c.jsonl.gz, which is the same."""
    write([str(documents / "a.jsonl")], out := tmp_path_factory.mktemp("local") / "out", tokenizer_file)
    return tree(out)


def there(place: Place) -> list[str]:
    return ["--endpoint", place.server, "--region", "us-east-1"]


@pytest.mark.parametrize(
    ("names", "more"),
    [
        (["a.jsonl", "**/*.jsonl.*"], ["--metadata", "url,n"]),
        (["*.parquet"], ["--metadata", "url"]),
        (["e.txt", "a.jsonl", "empty.jsonl"], ["--format", "text", "--metadata", "path,size"]),
    ],
)
def test_the_bytes_are_those_of_local_files(
    uploaded: Place, documents: Path, tokenizer_file: str, tmp_path: Path, names: list[str], more: list[str]
) -> None:
    write([str(documents / name) for name in names], tmp_path / "local", tokenizer_file, *more)
    far = [f"{uploaded.url}/{name}" for name in names]
    said = write(far, tmp_path / "far", tokenizer_file, "--workers", "2", *more, *there(uploaded))
    assert tree(tmp_path / "far") == tree(tmp_path / "local")
    assert said["shards"] == len(penstock.open(tmp_path / "local").shards)
    kept = write(far, tmp_path / "far", tokenizer_file, "--resume", *more, *there(uploaded))
    assert kept["kept_shards"] == said["shards"]
    if names == ["*.parquet"]:
        out = f"{uploaded.url}/out"
        write(far, out, tokenizer_file, *more, *there(uploaded))
        assert penstock.verify(out, storage=uploaded.storage)
        assert penstock.open(out, storage=uploaded.storage).fingerprint == penstock.open(tmp_path / "far").fingerprint


def test_tasks_done_whole_read_addresses(
    uploaded: Place, documents: Path, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What --ray runs, on processes: the inputs travel to them."""
    monkeypatch.setattr(command, "cluster_of", lambda given: given.pop("ray") or Far(2))
    names = ["a.jsonl", "b/c.jsonl.gz"]
    write([f"{uploaded.url}/{name}" for name in names], tmp_path / "far", tokenizer_file, *there(uploaded))
    secret = "http://me:pa55word@127.0.0.1:1/a.jsonl"
    said = write([secret], tmp_path / "secret", tokenizer_file, "--format", "jsonl", code=1)
    assert "127.0.0.1:1/a.jsonl" in said["error"] and "pa55word" not in said["error"]
    monkeypatch.undo()
    monkeypatch.setattr(command, "cluster_of", lambda given: given.pop("ray"))
    write([str(documents / name) for name in names], tmp_path / "local", tokenizer_file)
    assert tree(tmp_path / "far") == tree(tmp_path / "local")


def test_over_http_and_with_a_password(
    documents: Path, local: dict[str, bytes], tokenizer_file: str, tmp_path: Path
) -> None:
    with nginx(documents, tmp_path) as server:
        secret = server.replace("http://", "http://me:pa55word@")
        for number, address in enumerate([f"{server}/b/c.jsonl.gz", f"{secret}/a.jsonl"]):
            write([address], tmp_path / f"far{number}", tokenizer_file)
            assert tree(tmp_path / f"far{number}") == local
        said = write([f"{secret}/none.jsonl?token=s3cret"], tmp_path / "out", tokenizer_file, code=2)
        assert f"{server}/none.jsonl" in said["error"]
        assert "pa55word" not in said["error"] and "s3cret" not in said["error"]
        said = write([f"{server}/*.jsonl"], tmp_path / "out", tokenizer_file, code=2)
        assert "HTTP lists no files" in said["error"]
        for name in ("a.jsonl", "b/d.jsonl.zst", "f.parquet"):
            here = write([str(documents / name)], tmp_path / "out", tokenizer_file, "--dry-run")
            far = write([f"{server}/{name}"], tmp_path / "out", tokenizer_file, "--dry-run")
            for each in (here, far):
                del each["sample"]["seconds"], each["estimated"]["seconds"]
            places = [each.pop("place").replace(str(documents), server) for each in here["documents"]]
            assert [each.pop("place") for each in far["documents"]] == places and far == here


@pytest.mark.parametrize(
    ("names", "content", "code", "words"),
    [
        (["none.jsonl"], b"", 2, "none.jsonl"),
        (["none*.jsonl"], b"", 2, "no file matches"),
        (["cut.jsonl.zst"], zstandard.compress(b'{"text": "a"}\n' * 9_999)[:-5], 1, "the Zstandard data is cut off"),
        (["cut.parquet"], b"PAR1", 1, "cut.parquet: not a Parquet file"),
        (["bad.jsonl"], b'{"text": "a"}\nno JSON\n', 1, "bad.jsonl line 2"),
        (["a.jsonl", "a.jsonl"], b'{"text": "a"}\n', 2, "given twice"),
    ],
)
def test_what_is_wrong_is_said_with_the_address(
    place: Place, tokenizer_file: str, tmp_path: Path, names: list[str], content: bytes, code: int, words: str
) -> None:
    if content:
        place.put(names[0], content)
    inputs = [f"{place.url}/{name}" for name in names]
    said = write(inputs, tmp_path / "out", tokenizer_file, *there(place), code=code)["error"]
    assert words in said and place.url in said


def test_a_server_that_fails_now_and_then_is_asked_again(
    uploaded: Place, s3_server: str, local: dict[str, bytes], tokenizer_file: str, tmp_path: Path
) -> None:
    def fault(method: str, path: str, number: int) -> Any:
        return "503" if method == "GET" and number % 4 == 2 else None

    with fault_proxy(s3_server, fault) as proxy:
        options = ["--endpoint", proxy.address, "--region", "us-east-1"]
        write([f"{uploaded.url}/a.jsonl"], tmp_path / "far", tokenizer_file, *options)
    assert tree(tmp_path / "far") == local


def test_any_reads_give_the_bytes(uploaded: Place, documents: Path) -> None:
    """The reader's block, the one ahead and seeking between them."""
    chance = random.Random(0)
    wanted = (documents / "a.jsonl").read_bytes()
    file = FarFile(FarFiles(addresses_of(f"{uploaded.url}/a.jsonl", uploaded.storage)), 0).open()
    at = 0
    for _ in range(120):
        if chance.random() < 0.3:
            at = file.seek(chance.randrange(len(wanted) + 10))
        got = file.read(chance.choice([1, 1000, 100_000, 3_000_000])) or b""
        assert wanted[at : at + len(got)] == got and (got or at >= len(wanted))
        at += len(got)
        assert file.tell() == at
    file.close()


def test_a_file_that_is_replaced_while_it_is_read_is_refused(
    documents: Path, tokenizer_file: str, tmp_path: Path
) -> None:
    """Its two halves are of two versions, of as many bytes: only the ETag tells."""

    def fault(path: str, number: int) -> str | None:
        return "etag" if number > 4 else None

    with fault_server(documents, fault) as server:
        said = write([f"{server.address}/a.jsonl?key=s3cret"], tmp_path / "out", tokenizer_file, code=1)
        assert f"{server.address}/a.jsonl" in said["error"] and "the file is another one than before" in said["error"]
        assert "s3cret" not in said["error"] and not (tmp_path / "out" / "dataset.json").exists()
