"""`penstock shuffle --ray`: the bytes of one process, on two nodes, with workers killed in either pass."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import penstock.ray
import pytest
from conftest import Killer, files
from ray.cluster_utils import Cluster

OPTIONS = ["--seed", "5", "--documents", "--shard-size", "400k", "--memory", "2MiB", "--json"]


def shuffle(data: Path, out: Path | str, *more: str, code: int = 0) -> dict[str, Any]:
    command = [sys.executable, "-m", "penstock", "shuffle", str(data), "--out", str(out), *OPTIONS, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == code, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 MB of documents with entries, in 14 shards."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("shuffle") / "in"
    with penstock.Writer(path, {"token": "u2"}, "json", tokenizer={"name": "mine"}, shard_size=900_000) as writer:
        for number in range(20_000):
            tokens = rng.integers(0, 60_000, int(rng.integers(0, 600))).astype("u2")
            writer.append(token=tokens, metadata={"number": number})
    return path


@pytest.fixture(scope="module")
def expected(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes."""
    out = tmp_path_factory.mktemp("expected") / "out"
    shuffle(data, out)
    return out


def test_a_dataset_is_shuffled_on_two_nodes_with_the_bytes_of_one_process(
    cluster: Cluster, data: Path, expected: Path, tmp_path: Path
) -> None:
    shuffle(data, tmp_path / "out", "--ray", cluster.address)
    assert files(tmp_path / "out") == files(expected)
    shuffle(data, tmp_path / "processes", "--workers", "2")
    assert files(tmp_path / "processes") == files(expected)


@pytest.mark.parametrize("aside", [True, False], ids=["as it puts aside", "as it makes a shard"])
def test_a_killed_worker_s_part_of_a_shuffle_is_done_again(
    cluster: Cluster, data: Path, expected: Path, tmp_path: Path, aside: bool
) -> None:
    out = tmp_path / "out"
    # A file that is put aside has its writer's process in its name until it is whole, as an unfinished shard has.
    with Killer(out, pattern=".partial-shuffle@*/0*.*-*" if aside else ".partial-0*") as killer:
        shuffle(data, out, "--ray", cluster.address)
    assert killer.killed
    assert files(out) == files(expected)
    assert penstock.verify(out) and not penstock.verify(out).notices


def test_finished_shards_of_a_shuffle_are_kept(cluster: Cluster, data: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("00002", "00005"):
        shutil.copytree(expected / name, out / name)
    before = (out / "00005" / "shard.json").stat().st_ino
    said = shuffle(data, out, "--ray", cluster.address, code=2)
    assert "--resume" in said["error"] or "resume" in said["error"]
    shuffle(data, out, "--ray", cluster.address, "--resume")
    assert files(out) == files(expected)
    assert (out / "00005" / "shard.json").stat().st_ino == before


def test_a_shuffle_into_a_bucket_needs_a_folder_that_all_nodes_have(cluster: Cluster, data: Path) -> None:
    said = shuffle(data, "s3://data/none", "--ray", cluster.address, "--region", "us-east-1", code=2)
    assert "--scratch" in said["error"]
