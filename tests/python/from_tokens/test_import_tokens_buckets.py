"""`penstock.import_tokens` from and into a bucket, on moto."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import penstock
import pytest
from _servers import moto, without_credentials
from _token_files import DOCUMENTS, GOLDEN

pytest.importorskip("obstore")


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[penstock.Storage]:
    without_credentials(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with moto({"data": GOLDEN / "datatrove"}, tmp_path / "log") as address:
        yield penstock.Storage(endpoint=address, region="us-east-1")


@pytest.mark.parametrize("workers", [1, 2])
def test_from_a_bucket_into_another_place_of_it(storage: penstock.Storage, tmp_path: Path, workers: int) -> None:
    out = f"s3://data/imported-{workers}"
    done = penstock.import_tokens("s3://data/plain.ds", out, storage=storage, shard_size=512, workers=workers)
    assert done.shards > 1 and done.documents == len(DOCUMENTS)
    view = penstock.open(out, storage=storage).documents()
    assert [one["token"].tolist() for one in view] == DOCUMENTS
    penstock.import_tokens(GOLDEN / "datatrove" / "plain.ds", tmp_path / "here", shard_size=512)
    assert penstock.open(tmp_path / "here").fingerprint == penstock.open(out, storage=storage).fingerprint
    with pytest.raises(penstock.InvalidArgumentError, match="holds a dataset already"):
        penstock.import_tokens("s3://data/plain.ds", out, storage=storage)


def test_a_folder_of_scratch_is_for_buckets(tmp_path: Path) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match="is a path of this machine, no address of a bucket"):
        penstock.import_tokens(GOLDEN / "datatrove" / "plain.ds", tmp_path / "d", scratch=tmp_path)
