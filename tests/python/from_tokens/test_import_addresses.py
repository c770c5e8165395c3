"""`penstock.import_tokens` of what does not open in place, by addresses: the documents and metadata of the files."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Any

import penstock
import pytest
from _servers import moto, nginx, without_credentials
from _token_files import DOCUMENTS, GOLDEN, files_of, tokens_of
from test_import_packed import metadata_of, put_arrow, put_parquet, put_tar, samples

INPUTS: dict[str, dict[str, Any]] = {
    "a.parquet": {"metadata": ["url", "day"]},
    "a.arrow": {"metadata": ["url", "day"]},
    "b.arrow": {"metadata": ["url", "day"]},
    "a.tar": {"metadata": ["url", "n"]},
    "a.tar.gz": {"metadata": ["url", "n"]},
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
    put_parquet(found / "a.parquet")
    put_arrow(found / "a.arrow")
    put_arrow(found / "b.arrow", stream=False)
    put_tar(found / "a.tar", *samples())
    put_tar(found / "a.tar.gz", *samples(), mode="w:gz")
    return found


def check(root: Path, address: str, to: Path, **options: Any) -> None:
    for number, (name, given) in enumerate(INPUTS.items()):
        here, there = to / f"here-{number}", to / f"there-{number}"
        penstock.import_tokens(root / name, here, shard_size=512, **given)
        done = penstock.import_tokens(f"{address}/{name}", there, shard_size=512, **given, **options)
        assert done.documents == len(DOCUMENTS), name
        assert tokens_of(there) == DOCUMENTS
        assert metadata_of(there) == metadata_of(here)
        assert len(penstock.open(there).shards) == len(penstock.open(here).shards)


def test_of_a_server(root: Path, tmp_path: Path) -> None:
    with nginx(root, tmp_path / "nginx") as server:
        check(root, server, tmp_path)
        for workers in (1, 2):
            out = tmp_path / f"w{workers}"
            inputs = [f"{server}/a.parquet", f"{server}/b.arrow"]
            penstock.import_tokens(inputs, out, shard_size=512, workers=workers)
        assert files_of(tmp_path / "w1") == files_of(tmp_path / "w2")
        for name in ("none.parquet", "none.tar", "none.arrow", "none/index.json"):
            with pytest.raises(penstock.NotFoundError, match="none"):
                penstock.import_tokens(f"{server}/{name}", tmp_path / "none")


def test_of_a_bucket(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("obstore")
    without_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with moto({"data": root}, tmp_path / "log") as server:
        storage = penstock.Storage(endpoint=server, region="us-east-1")
        check(root, "s3://data", tmp_path, storage=storage)


def test_a_megatron_file_at_an_address_keeps_its_documents(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shutil.copytree(GOLDEN.parent / "megatron", root)
    shutil.copy(root / "u2_text_document.bin", root / "bare.bin")
    penstock.import_tokens(root / "u2_text_document", tmp_path / "here")
    with nginx(root, tmp_path / "nginx") as server:
        for number, name in enumerate(("u2_text_document.bin", "u2_text_document.idx")):
            penstock.import_tokens(f"{server}/{name}", tmp_path / f"{number}")
            assert tokens_of(tmp_path / f"{number}") == tokens_of(tmp_path / "here")
        penstock.import_tokens(f"{server}/u2_text_document", tmp_path / "prefix", format="megatron")
        assert tokens_of(tmp_path / "prefix") == tokens_of(tmp_path / "here")
        with pytest.raises(penstock.NotFoundError, match="give the format: megatron, mds"):
            penstock.import_tokens(f"{server}/u2_text_document", tmp_path / "none")
        for name, given in (("bare.bin", {}), ("u2_text_document.bin", {"format": "raw"})):
            done = penstock.import_tokens(f"{server}/{name}", tmp_path / f"raw-{name}", dtype="u2", **given)
            assert done.documents == 0


def test_messages_have_no_signature(root: Path, tmp_path: Path) -> None:
    with nginx(root, tmp_path / "nginx") as server:
        for name, options in (
            ("a.parquet", {"column": "none"}),
            ("a.arrow", {"metadata": ["none"]}),
            ("a.tar", {"column": "none"}),
            ("a.parquet", {"dtype": "u1"}),
            ("a.json", {}),
            ("mds/beside/index.json", {"column": "none"}),
            ("packed/gz/index.json", {"metadata": ["none"]}),
            ("huggingface/plain", {"format": "huggingface", "column": "none"}),
            ("datatrove/plain.ds", {"end_of_document": 3}),
        ):
            with pytest.raises(penstock.Error) as raised:
                penstock.import_tokens(f"{server}/{name}?signature=hidden", tmp_path / "d", **options)
            assert name.partition("/")[0] in str(raised.value) and "hidden" not in str(raised.value)

        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        given: dict[str, Any] = {"shard_size": 512}
        with pytest.raises(KeyboardInterrupt):
            penstock.import_tokens(f"{server}/a.parquet?signature=hidden", tmp_path / "d", progress=stop, **given)
        with pytest.raises(penstock.InvalidArgumentError, match=r"a\.arrow: shard 0 .* of other input") as raised:
            penstock.import_tokens(f"{server}/a.arrow?signature=hidden", tmp_path / "d", resume=True, **given)
        assert "hidden" not in str(raised.value)


def test_a_tar_that_is_cut_off_at_a_server_is_refused(root: Path, tmp_path: Path) -> None:
    with tarfile.open(root / "a.tar") as tar:
        at = tar.getmembers()[6].offset
    served = tmp_path / "root"
    served.mkdir()
    (served / "a.tar").write_bytes((root / "a.tar").read_bytes()[:at])
    with nginx(served, tmp_path / "nginx") as server, pytest.raises(penstock.CorruptionError, match="after 6 members"):
        penstock.import_tokens(f"{server}/a.tar", tmp_path / "d")
