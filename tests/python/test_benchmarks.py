"""`make bench` measures what docs/benchmarks.md says: each figure is there, and the C loop reads what it counts."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> list[dict[str, Any]]:
    """What one quick run writes."""
    folder = tmp_path_factory.mktemp("bench")
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--json", str(folder / "results.json")]
    command += ["--dir", str(folder / "corpora"), "--markdown", str(folder / "table.md")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())
    table = (folder / "table.md").read_text()
    assert table.count("\n| ") == len(found) + 2  # the head and its rule
    assert str(folder) not in table
    return found


@pytest.fixture
def load(monkeypatch):
    """Imports a module of benchmarks/, whose scripts import each other by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.mark.slow
def test_every_figure_of_the_design_is_measured_with_its_target(lines):
    targets = {(line["name"], line["unit"]) for line in lines if line["reached"] is not None}
    assert targets >= {
        ("import", "ms"),
        ("opening", "ms"),
        ("opening", "MiB"),
        ("ready batch", "µs"),
        ("throughput", "ratio"),
    }
    assert {line["name"] for line in lines} == {
        "permutation",
        "import",
        "opening",
        "resuming",
        "ready batch",
        "throughput",
    }


@pytest.mark.slow
def test_a_line_says_machine_command_cache_repeats_and_spread(lines):
    for line in lines:
        assert line["machine"] and line["command"].startswith("python benchmarks/run.py") and line["cache"]
        assert line["repeats"] == len(line["values"]) >= 3
        assert 0 < line["lowest"] <= line["median"] <= line["highest"]


@pytest.mark.slow
def test_a_ratio_is_of_what_was_measured_side_by_side(lines):
    found = {line["what"]: line["values"] for line in lines if line["name"] == "throughput"}
    what = "records of 4 B, 1 thread: "
    loop, ours = found[what + "C loop of pread"], found[what + "penstock, as read (numpy)"]
    assert found[what + "as read / C loop"] == pytest.approx([a / b for a, b in zip(ours, loop, strict=True)])


def test_the_c_loop_reads_whole_windows_and_refuses_a_file_without_one(load, tmp_path):
    throughput = load("throughput")
    program = throughput.compiled(tmp_path)
    path = tmp_path / "tokens.bin"
    np.arange(3 * 1024, dtype=np.uint32).tofile(path)
    arguments = ["4096", "8", "6", "2", "0.05"]
    done = subprocess.run([str(program), str(path), *arguments], capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["windows"] % 8 == 0 and said["windows"] > 0 and said["seconds"] >= 0.05
    path.write_bytes(b"short")
    done = subprocess.run([str(program), str(path), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "5 bytes" in done.stderr


def test_the_sparse_dataset_is_a_dataset_as_the_format_says(load, tmp_path):
    workloads = load("workloads")
    path = workloads.Corpora(tmp_path, workloads.QUICK).sparse()
    dataset = penstock.open(str(path))
    assert len(dataset.windows(4096)) == 20 * 1_000_000 // 4096
    assert int(dataset.windows(4096)[4000]["token"].sum()) == 0
    assert sum(file.stat().st_blocks for file in path.rglob("stream.bin")) == 0
    manifest = path / "dataset.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"1000000", b"1000001", 1))
    with pytest.raises(penstock.CorruptionError, match="CRC32C"):
        penstock.open(str(path))
