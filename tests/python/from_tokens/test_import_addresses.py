"""`penstock.import_tokens` of what does not open in place, by addresses: the documents and metadata of the files."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import penstock
import pytest
from _servers import moto, nginx, without_credentials
from _token_files import DOCUMENTS, GOLDEN, MEGATRON, files_of, tokens_of
from test_import_packed import metadata_of, put_arrow, put_parquet, put_tar, samples

INPUTS: dict[str, dict[str, Any]] = {
    "a.parquet": {"metadata": ["url", "day"]},
    "a.arrow": {"metadata": ["url", "day"]},
    "b.arrow": {"metadata": ["url", "day"]},
    "a.tar": {"metadata": ["url", "n"]},
    "a.tar.gz": {"metadata": ["url", "n"]},
    "datatrove/plain.ds": {},
    "huggingface/plain": {"format": "huggingface", "metadata": ["n"]},
    "packed/zstd/index.json": {"metadata": ["a", "kind"]},
    "packed/gz": {"format": "mds"},
    "packed/snappy": {"format": "mds"},
    "mds/beside/index.json": {"metadata": ["text"]},
    "mds/tokens/index.json": {},
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("served") / "root"
    shutil.copytree(GOLDEN, found)
    shutil.copytree(MEGATRON, found, dirs_exist_ok=True)
    shutil.copy(found / "u2_text_document.bin", found / "bare.bin")
    put_parquet(found / "a.parquet")
    put_arrow(found / "a.arrow")
    put_arrow(found / "b.arrow", stream=False)
    put_tar(found / "a.tar", *samples())
    put_tar(found / "a.tar.gz", *samples(), mode="w:gz")
    with tarfile.open(found / "a.tar") as tar:
        (found / "cut.tar").write_bytes((found / "a.tar").read_bytes()[: tar.getmembers()[6].offset])
    return found


@pytest.fixture(scope="module")
def here(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Any], int]]:
    """Metadata and the number of shards that local imports give."""
    folder, found = tmp_path_factory.mktemp("here"), {}
    for number, (name, given) in enumerate(INPUTS.items()):
        penstock.import_tokens(root / name, out := folder / str(number), shard_size=512, **given)
        found[name] = metadata_of(out), len(penstock.open(out).shards)
    return found


@pytest.fixture(scope="module")
def server(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with nginx(root, tmp_path_factory.mktemp("nginx")) as address:
        yield address


def check(here: dict[str, Any], address: str, to: Path, **options: Any) -> None:
    for number, (name, given) in enumerate(INPUTS.items()):
        there = to / f"there-{number}"
        penstock.import_tokens(f"{address}/{name}", there, shard_size=512, **given, **options)
        assert tokens_of(there) == DOCUMENTS, name
        assert (metadata_of(there), len(penstock.open(there).shards)) == here[name]


def test_of_a_server(here: dict[str, Any], server: str, tmp_path: Path) -> None:
    check(here, server, tmp_path)
    for workers in (1, 2):
        inputs = [f"{server}/a.parquet", f"{server}/b.arrow"]
        penstock.import_tokens(inputs, tmp_path / f"w{workers}", shard_size=512, workers=workers)
    assert files_of(tmp_path / "w1") == files_of(tmp_path / "w2")
    for name in ("none.parquet", "none.tar", "none.arrow", "none/index.json"):
        with pytest.raises(penstock.NotFoundError, match="none"):
            penstock.import_tokens(f"{server}/{name}", tmp_path / "none")
    with pytest.raises(penstock.CorruptionError, match="after 6 members"):
        penstock.import_tokens(f"{server}/cut.tar", tmp_path / "cut")


def test_of_a_bucket(here: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    without_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with moto({"data": root}, tmp_path / "log") as server:
        storage = penstock.Storage(endpoint=server, region="us-east-1")
        check(here, "s3://data", tmp_path, storage=storage)
        out = "s3://data/out"
        penstock.import_tokens("s3://data/datatrove/plain.ds", out, storage=storage, shard_size=512, workers=2)
        there = penstock.open(tmp_path / f"there-{list(INPUTS).index('datatrove/plain.ds')}")
        assert penstock.open(out, storage=storage).fingerprint == there.fingerprint


def test_a_megatron_file_at_an_address_keeps_its_documents(server: str, tmp_path: Path) -> None:
    for number, (suffix, given) in enumerate(((".bin", {}), (".idx", {}), ("", {"format": "megatron"}))):
        penstock.import_tokens(f"{server}/u2_text_document{suffix}", tmp_path / f"{number}", **given)
        assert tokens_of(tmp_path / f"{number}") == tokens_of(MEGATRON / "u2_text_document")
    with pytest.raises(penstock.NotFoundError, match="give the format: megatron, mds"):
        penstock.import_tokens(f"{server}/u2_text_document", tmp_path / "none")
    for name, given in (("bare.bin", {}), ("u2_text_document.bin", {"format": "raw"})):
        done = penstock.import_tokens(f"{server}/{name}", tmp_path / f"raw-{name}", dtype="u2", **given)
        assert done.documents == 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("a.parquet", {"column": "none"}),
        ("a.arrow", {"metadata": ["none"]}),
        ("a.tar", {"column": "none"}),
        ("a.parquet", {"dtype": "u1"}),
        ("a.json", {}),
        ("mds/beside/index.json", {"column": "none"}),
        ("packed/gz/index.json", {"metadata": ["none"]}),
        ("huggingface/plain", {"format": "huggingface", "column": "none"}),
        ("datatrove/plain.ds", {"end_of_document": 3}),
        ("a.arrow", {"resume": True, "shard_size": 512}),
    ],
)
def test_messages_have_no_signature(server: str, tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    if "resume" in options:
        penstock.import_tokens(f"{server}/a.parquet?signature=hidden", tmp_path / "d", shard_size=512)
    with pytest.raises(penstock.Error) as raised:
        penstock.import_tokens(f"{server}/{name}?signature=hidden", tmp_path / "d", **options)
    assert name.partition("/")[0] in str(raised.value) and "hidden" not in str(raised.value)
