"""`write_datasink` and `read`: shards of tasks, one commit, workers that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import penstock.ray
import pytest
import ray
from conftest import Killer, files
from ray.cluster_utils import Cluster

DOCUMENTS = 500


def document(row: dict[str, Any]) -> dict[str, Any]:
    number = int(row["id"])
    return {"token": list(range(number % 37)), "url": f"page-{number}", "score": number / 2}


def documents(blocks: int = 5) -> Any:
    return ray.data.range(DOCUMENTS, override_num_blocks=blocks).map(document)


def sink(out: Path, **given: Any) -> penstock.ray.Datasink:
    return penstock.ray.Datasink(out, fields={"token": "u2"}, metadata="json", **given)


def test_columns_like_fields_are_records_and_the_others_metadata(connected: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made = sink(out)
    documents().write_datasink(made)
    dataset = penstock.open(out)
    assert (dataset.fingerprint, len(dataset.shards), dataset.spans) == (made.fingerprint, 5, DOCUMENTS)
    assert penstock.verify(out)
    view = dataset.documents()
    for number in range(DOCUMENTS):
        expected = document({"id": number})
        assert view[number]["token"].tolist() == expected.pop("token")
        assert view[number].metadata == expected
    assert not list(out.glob(".partial*"))


def test_the_same_blocks_give_the_same_bytes_whatever_the_cluster_and_whoever_is_killed(
    connected: Cluster, tmp_path: Path
) -> None:
    documents().write_datasink(sink(tmp_path / "two"))

    class Slow(penstock.ray.Datasink):
        def _append(self, writer: Any, taken: Any) -> None:
            super()._append(writer, taken)
            time.sleep(0.5)

    with Killer(tmp_path / "killed") as killer:
        documents().write_datasink(Slow(tmp_path / "killed", fields={"token": "u2"}, metadata="json"))
    assert killer.killed
    program = f"import sys, test_sink; test_sink.write_alone({str(tmp_path / 'three')!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert files(tmp_path / "two") == files(tmp_path / "three") == files(tmp_path / "killed")


def write_alone(out: str) -> None:
    """On a cluster of one node with three cores, in a process of its own."""
    ray.init("local", num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    documents().write_datasink(sink(Path(out)))
    ray.shutdown()


def test_a_worker_killed_after_its_shard_was_renamed_leaves_it_to_the_next_attempt(
    connected: Cluster, tmp_path: Path
) -> None:
    documents().write_datasink(sink(tmp_path / "whole"))
    out = tmp_path / "out"

    class DiesOnce(penstock.ray.Datasink):
        def write(self, blocks: Any, ctx: Any) -> Any:
            task = super().write(blocks, ctx)
            if ctx.task_idx == 2 and not (tmp_path / "died").exists():
                (tmp_path / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return task

    documents().write_datasink(DiesOnce(out, fields={"token": "u2"}, metadata="json"))
    assert (tmp_path / "died").exists()
    assert files(out) == files(tmp_path / "whole")


def test_an_attempt_that_gives_other_rows_is_refused(connected: Cluster, tmp_path: Path) -> None:
    class DiesOnce(penstock.ray.Datasink):
        def write(self, blocks: Any, ctx: Any) -> Any:
            task = super().write(blocks, ctx)
            if ctx.task_idx == 1 and not (tmp_path / "died").exists():
                (tmp_path / "died").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return task

    def unlike(row: dict[str, Any]) -> dict[str, Any]:
        return {"token": [os.getpid() % 50_000]}

    rows = ray.data.range(DOCUMENTS, override_num_blocks=5).map(unlike)
    with pytest.raises(penstock.InvalidArgumentError, match="killed wrote other rows than this one"):
        rows.write_datasink(DiesOnce(tmp_path / "out", fields={"token": "u2"}))
    assert not (tmp_path / "out" / "dataset.json").exists()
    documents().write_datasink(sink(tmp_path / "out", overwrite=True))
    assert penstock.verify(tmp_path / "out")


def test_tasks_without_rows_leave_gaps_and_no_rows_at_all_are_refused(connected: Cluster, tmp_path: Path) -> None:
    def odd_blocks(batch: dict[str, Any]) -> dict[str, Any]:
        keep = (batch["id"] // 100) % 2 == 1
        return {"id": batch["id"][keep]}

    rows = ray.data.range(DOCUMENTS, override_num_blocks=5).map_batches(odd_blocks)
    rows.map(document).write_datasink(sink(tmp_path / "out"))
    assert sorted(each.name for each in (tmp_path / "out").glob("0*")) == ["00001", "00003"]
    urls = [row.metadata["url"] for row in penstock.open(tmp_path / "out").documents()]
    assert urls == [f"page-{number}" for number in range(DOCUMENTS) if number // 100 % 2]
    with pytest.raises(penstock.InvalidArgumentError, match="has no rows: nothing was written"):
        documents().filter(lambda row: False).write_datasink(sink(tmp_path / "none"))
    assert not (tmp_path / "none" / "dataset.json").exists()


def test_what_is_there_is_replaced_only_where_the_caller_says_so(connected: Cluster, tmp_path: Path) -> None:
    documents().write_datasink(sink(tmp_path / "out"))
    with pytest.raises(penstock.InvalidArgumentError, match="holds a dataset already: overwrite=True replaces it"):
        documents(3).write_datasink(sink(tmp_path / "out"))
    documents(3).write_datasink(sink(tmp_path / "out", overwrite=True))
    assert len(penstock.open(tmp_path / "out").shards) == 4  # 500 rows in blocks of 166
    with penstock.Writer(tmp_path / "half", fields={"token": "u2"}, metadata="json", shard=7) as writer:
        writer.append(token=[1], metadata={})
    with pytest.raises(penstock.InvalidArgumentError, match="1 finished shard of a write that did not end"):
        documents().write_datasink(sink(tmp_path / "half"))
    documents().write_datasink(sink(tmp_path / "half", overwrite=True))
    assert files(tmp_path / "half").keys().isdisjoint({"00007/shard.json"})


def test_arrays_of_numpy_several_fields_and_other_codecs(connected: Cluster, tmp_path: Path) -> None:
    def rows(batch: dict[str, Any]) -> dict[str, Any]:
        number = batch["id"]
        token = np.repeat(number[:, None], 8, 1).astype("u2")
        return {"token": token, "loss": (token % 2).astype("u1"), "name": np.array([f"n{each}" for each in number])}

    data = ray.data.range(100, override_num_blocks=2).map_batches(rows)
    fields = {"token": "u2", "loss": "u1"}
    data.write_datasink(penstock.ray.Datasink(tmp_path / "raw", fields=fields, metadata="raw"))
    view = penstock.open(tmp_path / "raw").documents()
    assert bytes(view[42].metadata) == b"n42"
    assert view[42].records.tolist() == [(42, 0)] * 8
    data.drop_columns(["name"]).write_datasink(penstock.ray.Datasink(tmp_path / "bare", fields=fields, metadata=None))
    assert penstock.open(tmp_path / "bare").records == 800


@pytest.mark.parametrize(
    ("columns", "metadata", "words"),
    [
        ({"tokens": [1]}, "json", 'no column "token" for that field; there are "tokens"'),
        ({"token": 1}, "json", 'column "token" is int64, no lists'),
        ({"token": [70_000]}, "json", "token"),
        ({"token": [1], "url": "a"}, None, 'columns "url" are no fields, and metadata=None keeps no metadata'),
        ({"token": [1], "a": "x", "b": "y"}, "raw", 'metadata="raw" takes one column beside the fields'),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    connected: Cluster, tmp_path: Path, columns: dict[str, Any], metadata: str | None, words: str
) -> None:
    given = penstock.ray.Datasink(tmp_path / "out", fields={"token": "u2"}, metadata=metadata)
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        ray.data.from_items([columns] * 3).write_datasink(given)
    assert not (tmp_path / "out" / "dataset.json").exists()
    assert not list((tmp_path / "out").glob("0*"))


def test_rows_that_are_read_are_the_documents_or_the_windows(connected: Cluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    documents().write_datasink(sink(out))
    rows = penstock.ray.read(out).take_all()
    assert [{**row, "token": list(row["token"])} for row in rows] == [document({"id": n}) for n in range(DOCUMENTS)]
    view = penstock.open(out).windows(64)
    found = penstock.ray.read(out, window=64).take_all()
    assert len(found) == len(view)
    assert all(np.array_equal(row["token"], view[i]["token"]) for i, row in enumerate(found))
    penstock.ray.read(out).write_datasink(sink(tmp_path / "again"))
    again = penstock.open(tmp_path / "again")
    assert again.records == penstock.open(out).records
    assert [row.metadata for row in again.documents()] == [row.metadata for row in penstock.open(out).documents()]


def test_foreign_files_are_read_as_well(connected: Cluster, tmp_path: Path) -> None:
    np.arange(1000, dtype="u2").tofile(tmp_path / "tokens.bin")
    np.save(tmp_path / "tokens.npy", np.arange(1000, dtype="u2"))
    found = penstock.ray.read(tmp_path / "tokens.npy", window=100).take_all()
    assert [row["token"].tolist() for row in found] == np.arange(1000).reshape(10, 100).tolist()
