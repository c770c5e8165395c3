"""Into a bucket: each worker uploads its shards, the driver publishes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import penstock
import penstock.ray
import pytest
from _servers import moto
from conftest import Killer, files
from ray.cluster_utils import Cluster
from test_sink import documents
from test_write import write

REGION = "us-east-1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("moto")
    (folder / "empty").mkdir()
    with moto({"data": folder / "empty"}, folder / "log") as address:
        yield address


def objects(server: str, prefix: str) -> dict[str, str]:
    """Names and ETags below a prefix."""
    client: Any = boto3.client("s3", endpoint_url=server, region_name=REGION)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket="data", Prefix=f"{prefix}/")
    return {each["Key"].partition("/")[2]: each["ETag"] for page in pages for each in page.get("Contents", [])}


def test_write_on_ray_puts_the_objects_of_processes_though_a_worker_is_killed(
    cluster: Cluster, corpus: Path, server: str, tmp_path: Path
) -> None:
    there = ("--endpoint", server, "--region", REGION)
    write(corpus, "s3://data/here", "--workers", "2", *there)
    with Killer(tmp_path, pattern="penstock-scratch-*/dataset/.partial-0*") as killer:
        write(corpus, "s3://data/ray", "--ray", cluster.address, "--scratch", str(tmp_path), *there)
    assert killer.killed
    assert objects(server, "ray") == objects(server, "here")
    storage = penstock.Storage(endpoint=server, region=REGION)
    assert penstock.verify("s3://data/ray", storage=storage)
    said = write(corpus, "s3://data/ray", "--ray", cluster.address, *there, code=2)
    assert "holds a dataset already" in said["error"]


def test_write_on_ray_reads_a_bucket_though_a_worker_is_killed(
    cluster: Cluster, corpus: Path, server: str, tmp_path: Path
) -> None:
    client: Any = boto3.client("s3", endpoint_url=server, region_name=REGION)
    for name in ("a.jsonl", "b.jsonl"):
        client.upload_file(str(corpus / name), "data", f"corpus/{name}")
    there = ("--endpoint", server, "--region", REGION)
    inputs = ["s3://data/corpus/*.jsonl"]
    write(corpus, tmp_path / "here", "--workers", "2")
    with Killer(tmp_path / "ray") as killer:
        write(corpus, tmp_path / "ray", "--ray", cluster.address, *there, inputs=inputs)
    assert killer.killed
    assert files(tmp_path / "ray") == files(tmp_path / "here")
    with Killer(tmp_path, pattern="penstock-scratch-*/dataset/.partial-0*") as killer:
        scratch = ("--scratch", str(tmp_path))
        write(corpus, "s3://data/both", "--ray", cluster.address, *scratch, *there, inputs=inputs)
    assert killer.killed
    write(corpus, "s3://data/from-here", "--workers", "2", *there)
    assert objects(server, "both") == objects(server, "from-here")


def test_a_dataset_is_shuffled_into_a_bucket_though_a_worker_is_killed(
    cluster: Cluster, corpus: Path, server: str, tmp_path: Path
) -> None:
    there = ("--endpoint", server, "--region", REGION)
    write(corpus, tmp_path / "data", "--workers", "2")
    options = ["--seed", "1", "--window", "64", "--shard-size", "300k", "--memory", "2MiB", *there]

    def shuffle(out: str, *more: str) -> None:
        command = [sys.executable, "-m", "penstock", "shuffle", str(tmp_path / "data"), "--out", out, *options, *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0, done.stderr[-3000:]

    shuffle("s3://data/shuffled-here")
    (tmp_path / "scratch").mkdir()
    with Killer(tmp_path / "scratch", pattern="penstock-scratch-*/dataset/.partial-0*") as killer:
        shuffle("s3://data/shuffled", "--ray", cluster.address, "--scratch", str(tmp_path / "scratch"))
    assert killer.killed
    assert objects(server, "shuffled") == objects(server, "shuffled-here")


def test_a_ray_dataset_is_written_to_a_bucket_with_gaps_between_its_shards(connected: Cluster, server: str) -> None:
    storage = penstock.Storage(endpoint=server, region=REGION)

    def sink(**given: Any) -> penstock.ray.Datasink:
        fields = {"token": "u2"}
        return penstock.ray.Datasink("s3://data/rows", fields=fields, metadata="json", storage=storage, **given)

    made = sink()
    documents().filter(lambda row: int(row["url"][5:]) // 100 % 2 == 1).write_datasink(made)
    shards = sorted({name.partition("-")[0] for name in objects(server, "rows") if "-" in name})
    assert shards == ["00001", "00003"]
    dataset = penstock.open("s3://data/rows", storage=storage)
    assert (dataset.fingerprint, dataset.spans) == (made.fingerprint, 200)
    with pytest.raises(penstock.InvalidArgumentError, match="holds a dataset already"):
        documents().write_datasink(sink())
    documents(3).write_datasink(sink(overwrite=True))
    assert penstock.verify("s3://data/rows", storage=storage)
    assert penstock.ray.read("s3://data/rows", storage=storage).count() == 500


def test_finished_shards_that_are_refused_stay_in_the_bucket(connected: Cluster, server: str) -> None:
    storage = penstock.Storage(endpoint=server, region=REGION)
    with penstock.Writer("s3://data/kept", {"token": "u2"}, "json", shard=7, storage=storage) as writer:
        writer.append(token=[1, 2, 3], metadata={"url": "example.org"})
    before = objects(server, "kept")
    with pytest.raises(penstock.InvalidArgumentError, match="1 finished shard of a write that did not end"):
        fields = {"token": "u2"}
        sink = penstock.ray.Datasink("s3://data/kept", fields=fields, metadata="json", storage=storage)
        documents(2).write_datasink(sink)
    assert objects(server, "kept") == before
