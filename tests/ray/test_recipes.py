"""The programs of docs/ray.md, each in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import penstock
import pytest
import scipy.sparse
from conftest import Killer, files
from ray.cluster_utils import Cluster
from text_corpus import rows, write_jsonl

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ray.md"
PROGRAMS = dict(re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL))
PARTS = 4


def run(folder: Path, name: str, **environment: str) -> str:
    (folder / name).write_text(PROGRAMS[name])
    command, inside = [sys.executable, name], {**os.environ, **environment}
    done = subprocess.run(command, cwd=folder, env=inside, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def documents() -> list[dict[str, Any]]:
    """Those with a text: datatrove leaves out the others."""
    return [row for row in rows() if row["text"]]


@pytest.fixture
def parts(corpus: Path, tmp_path: Path) -> Path:
    """A folder with a tokenizer and inputs of four tasks."""
    shutil.copy(corpus / "tokenizer.json", tmp_path)
    (tmp_path / "parts").mkdir()
    content = documents()
    for part in range(PARTS):
        write_jsonl(tmp_path / "parts" / f"{part}.jsonl", content[part::PARTS])
    return tmp_path


def test_every_program_of_the_page_is_run() -> None:
    source = Path(__file__).read_text()
    assert PROGRAMS
    assert all(f'"{name}"' in source for name in PROGRAMS)


def test_a_ray_dataset_is_written_and_read(cluster: Cluster, tmp_path: Path) -> None:
    run(tmp_path, "write_rows.py", RAY_ADDRESS=cluster.address)
    run(tmp_path, "read_rows.py", RAY_ADDRESS=cluster.address)


def test_a_slurm_array_with_a_task_that_is_requeued(parts: Path) -> None:
    for part in (0, 1, 3):
        run(parts, "encode_part.py", SLURM_ARRAY_TASK_ID=str(part))
    commit = [sys.executable, "-m", "penstock", "commit", "corpus", "--shards", str(PARTS)]
    done = subprocess.run(commit, cwd=parts, capture_output=True, text=True, check=False)
    assert (done.returncode, "shard 00002 is missing" in done.stderr) == (2, True)
    for part in (2, 2, 3):
        run(parts, "encode_part.py", SLURM_ARRAY_TASK_ID=str(part))
    subprocess.run(commit, cwd=parts, check=True, capture_output=True)
    assert penstock.verify(parts / "corpus")
    assert penstock.open(parts / "corpus").spans == len(documents())


def test_datatrove_s_executor_writes_the_shards_of_the_array(parts: Path) -> None:
    run(parts, "datatrove_pipeline.py")
    assert penstock.verify(parts / "corpus")
    assert penstock.open(parts / "corpus").spans == len(documents())
    found = penstock.open(parts / "corpus").fingerprint
    shutil.rmtree(parts / "corpus")
    for part in range(PARTS):
        run(parts, "encode_part.py", SLURM_ARRAY_TASK_ID=str(part))
    assert penstock.commit(parts / "corpus") == found


def write_plates(folder: Path, cells: int, genes: int) -> list[str]:
    folder.mkdir()
    for plate in range(3):
        counts = scipy.sparse.random(cells, genes, 0.2, "csr", random_state=np.random.default_rng(plate))
        counts.data = np.ceil(counts.data * 9)
        data = anndata.AnnData(counts)
        data.obs["drug"] = [f"d{number % 7}" for number in range(cells)]
        data.write_h5ad(folder / f"{plate}.h5ad")
    return sorted(str(each) for each in folder.glob("*"))


def test_anndata_is_imported_on_the_cluster_with_the_bytes_of_processes(cluster: Cluster, tmp_path: Path) -> None:
    inputs = write_plates(tmp_path / "plates", 400, 60)
    run(tmp_path, "import_cells.py", RAY_ADDRESS=cluster.address)
    penstock.import_anndata(inputs, tmp_path / "here", workers=2)
    assert files(tmp_path / "cells") == files(tmp_path / "here")


def test_an_import_whose_worker_is_killed_has_the_bytes_of_processes(cluster: Cluster, tmp_path: Path) -> None:
    inputs = write_plates(tmp_path / "plates", 10_000, 1_000)
    penstock.import_anndata(inputs, tmp_path / "here", workers=2)
    command = [sys.executable, "-m", "penstock", "import", *inputs, "--out", "ray", "--ray", cluster.address]
    with Killer(tmp_path / "ray") as killer:
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=200)
    assert killer.killed
    assert files(tmp_path / "ray") == files(tmp_path / "here")


def test_token_files_are_imported_with_the_bytes_of_processes(cluster: Cluster, tmp_path: Path) -> None:
    tokens = np.random.default_rng(0).integers(0, 500, 3_000_000).astype("u2")
    tokens[96::97] = 500
    tokens[-1] = 500
    tokens.tofile(tmp_path / "train.bin")
    options = ["train.bin", "--dtype", "u2", "--end-of-document", "500", "--shard-size", "1MB"]
    for place, where in (("here", ["--workers", "2"]), ("ray", ["--ray", cluster.address])):
        command = [sys.executable, "-m", "penstock", "import", *options, "--out", place, *where]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=200)
    assert files(tmp_path / "ray") == files(tmp_path / "here")
    assert len(list((tmp_path / "ray").glob("0*"))) > 2
