"""`penstock write --ray`: on two nodes, with workers and nodes killed in the middle."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import _dirty
import penstock
import pytest
from conftest import Killer, files
from ray.cluster_utils import Cluster
from text_corpus import END

SHARD = "400k"


def command(
    corpus: Path, out: Path | str, *more: str, shard: str = SHARD, inputs: list[str] | None = None
) -> list[str]:
    inputs = inputs or [str(corpus / "a.jsonl"), str(corpus / "b.jsonl")]
    options = ["--tokenizer", str(corpus / "tokenizer.json"), "--append", END, "--metadata", "url,n", "--json"]
    options += ["--shard-size", shard, "--out", str(out)]
    return [sys.executable, "-m", "penstock", "write", *inputs, *options, *more]


def write(corpus: Path, out: Path | str, *more: str, code: int = 0, inputs: list[str] | None = None) -> dict[str, Any]:
    done = subprocess.run(
        command(corpus, out, *more, inputs=inputs), capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == code, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.fixture(scope="session")
def expected(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What processes of this machine make."""
    out = tmp_path_factory.mktemp("expected") / "out"
    write(corpus, out, "--workers", "2")
    return out


def test_two_nodes_write_the_bytes_of_processes(cluster: Cluster, corpus: Path, expected: Path, tmp_path: Path) -> None:
    said = write(corpus, tmp_path / "out", "--ray", cluster.address)
    assert files(tmp_path / "out") == files(expected)
    assert said["shards"] >= 10
    assert said["workers"] == 2


def test_a_killed_worker_s_task_is_done_again(cluster: Cluster, corpus: Path, expected: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Killer(out) as killer:
        write(corpus, out, "--ray", cluster.address)
    assert killer.killed
    assert files(out) == files(expected)


def test_tasks_of_a_killed_node_are_done_on_the_other(
    cluster: Cluster, corpus: Path, expected: Path, tmp_path: Path
) -> None:
    out, node = tmp_path / "out", next(iter(cluster.worker_nodes))

    def kill(pid: int) -> None:
        raylet = node.all_processes["raylet"][0].process
        raylet.send_signal(signal.SIGKILL)
        raylet.wait()

    with Killer(out, kill, workers=2) as killer:
        write(corpus, out, "--ray", cluster.address)
    assert killer.killed
    assert files(out) == files(expected)
    cluster.remove_node(node, allow_graceful=False)
    cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()


def test_a_killed_driver_s_shards_are_kept_by_resume(
    cluster: Cluster, corpus: Path, expected: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    driver = subprocess.Popen(
        command(corpus, out, "--ray", cluster.address), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(list(out.glob("0*"))) < 3 and driver.poll() is None:
        time.sleep(0.01)
    driver.kill()
    driver.wait()
    assert not (out / "dataset.json").exists()
    deadline = time.monotonic() + 60
    again = command(corpus, out, "--ray", cluster.address, "--resume", "--clean")
    while (done := subprocess.run(again, capture_output=True, text=True, check=False)).returncode != 0:
        assert time.monotonic() < deadline, done.stderr[-3000:]
        time.sleep(0.5)  # refused until Ray has ended the driver's workers
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["kept_shards"] >= 3
    assert files(out) == files(expected)


def test_an_error_of_an_input_names_its_place_and_keeps_what_is_finished(
    cluster: Cluster, corpus: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "corpus"
    shutil.copytree(corpus, broken)
    with (broken / "b.jsonl").open("a") as file:
        file.write("no JSON\n")
    said = write(broken, tmp_path / "ray", "--ray", cluster.address, code=1)
    here = write(broken, tmp_path / "here", "--workers", "2", code=1)
    assert said["error"].partition(":")[0] == here["error"].partition(":")[0]
    assert "b.jsonl line" in said["error"]
    assert not list((tmp_path / "ray").glob(".partial-*"))
    assert not (tmp_path / "ray" / "dataset.json").exists()
    assert penstock.finished_shards(tmp_path / "ray")


def test_what_cannot_be_used_is_left_out_and_listed_as_by_processes(cluster: Cluster, tmp_path: Path) -> None:
    folder = _dirty.make(tmp_path / "in")
    shutil.copy(folder / "k.jsonl", folder / "b.jsonl")
    said = _dirty.write(folder, tmp_path / "here", inputs="[abdjk].*")
    assert said["skipped"] > 10
    assert (
        _dirty.write(folder, tmp_path / "ray", "--ray", cluster.address, inputs="[abdjk].*")["skipped"]
        == said["skipped"]
    )
    assert files(tmp_path / "ray") == files(tmp_path / "here")
    said = _dirty.write(
        folder, tmp_path / "few", "--ray", cluster.address, "--max-skipped", "5", code=1, inputs="[abdjk].*"
    )
    assert said["error"].startswith("more than 5 documents cannot be used")
    whole = (tmp_path / "here" / "skipped.jsonl").read_bytes().splitlines(keepends=True)
    assert (tmp_path / "few" / "skipped-unpublished.jsonl").read_bytes() == b"".join(whole[:6])


def test_ray_without_address_joins_the_cluster_of_this_machine(
    cluster: Cluster, corpus: Path, expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    write(corpus, tmp_path / "out", "--ray")
    assert files(tmp_path / "out") == files(expected)


def test_an_address_where_no_cluster_is_says_what_to_do(corpus: Path, tmp_path: Path) -> None:
    said = write(corpus, tmp_path / "out", "--ray", "127.0.0.1:1", code=1)
    assert said["error"].startswith("no Ray cluster at 127.0.0.1:1: `ray start --head` starts one")
    said = write(corpus, tmp_path / "out", "--ray", "nothing", code=2)
    assert "no address of a Ray cluster" in said["error"]
