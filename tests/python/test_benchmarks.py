"""`make bench` measures what docs/benchmarks.md says: each figure is there, and what it stands on does what it says."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"

#: Measurement -> names of its lines, and (name, unit) of those with a target. Ratios to fio only where it is installed.
EXPECTED: dict[str, tuple[set[str], set[tuple[str, str]]]] = {
    "permutation": ({"permutation"}, set()),
    "import": ({"import"}, {("import", "ms")}),
    "opening": ({"opening", "resuming"}, {("opening", "ms"), ("opening", "MiB")}),
    "shards": ({"shards"}, {("shards", "ms"), ("shards", "MiB"), ("shards", "ratio")}),
    "ready": ({"ready batch"}, {("ready batch", "µs")}),
    "throughput": ({"throughput"}, {("throughput", "ratio")}),
    "columns": ({"document columns"}, {("document columns", "ratio")}),
    "metrics": ({"metrics"}, set()),
    "cold": ({"cold"}, {("cold", "ratio")} if shutil.which("fio") else set()),
    "blocks": ({"blocks"}, {("blocks", "ratio")}),
    "stalls": ({"stalls"}, set()),
    "training": ({"training"}, {("training", "%")}),
    "sizes": ({"sizes"}, set()),
    "ablation": ({"ablation"}, {("ablation", "times")}),
    "writer": ({"writer"}, {("writer", "ratio")}),
    "remote": ({"remote"}, {("remote", "ratio"), ("remote", "ms")}),
    "shuffle": ({"shuffle"}, {("shuffle", "ratio")}),
    "memory": ({"memory"}, {("memory", "MiB")}),
    "layouts": ({"layouts"}, set()),
    "checks": ({"checks"}, {("checks", "ratio")}),
    "node": ({"node"}, set()),
    "mixing": ({"mixing"}, set()),
    "mixture": ({"mixture"}, {("mixture", "ratio"), ("mixture", "ns"), ("mixture", "ms")}),
    "learning": ({"learning"}, {("learning", "right")}),
    "cells": ({"cells"}, {("cells", "ratio")}),
    "packing": ({"packing"}, {("packing", "µs"), ("packing", "%"), ("packing", "ratio")}),
    "balance": ({"balance"}, {("balance", "ratio")}),
    "cache": ({"cache"}, {("cache", "ratio")}),
}


@pytest.fixture
def load(monkeypatch):
    """Imports a module of benchmarks/, whose scripts import each other by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def quick(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """What one quick run writes: JSON, and beside it table.md and charts."""
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--json", str(folder / "results.json")]
    command += ["--dir", str(folder / "corpora"), "--markdown", str(folder / "table.md")]
    command += ["--charts", str(folder / "charts"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads((folder / "results.json").read_text())
    return found


def test_every_measurement_is_expected(load):
    assert list(load("run").MEASUREMENTS) == list(EXPECTED)


# Those that take long run where nobody waits for the whole suite: `pytest -m bench`.
CHEAP = ("permutation", "import", "opening", "stalls", "metrics", "layouts")


@pytest.mark.parametrize(
    "measurement", [name if name in CHEAP else pytest.param(name, marks=pytest.mark.bench) for name in EXPECTED]
)
def test_a_measurement_gives_its_lines_with_all_that_is_needed_to_judge_them(load, measurement, tmp_path):
    if measurement == "training":
        pytest.importorskip("torch")
    native = {"stalls": "stalls", "metrics": "counting"}.get(measurement)
    if native is not None and not load(native).PROGRAM.exists():
        pytest.skip("the native benchmarks are not built")
    lines = quick(tmp_path, "--only", measurement)
    names, targets = EXPECTED[measurement]
    assert {line["name"] for line in lines} == names
    assert {(line["name"], line["unit"]) for line in lines if line["reached"] is not None} >= targets
    for line in lines:
        assert line["machine"] and "numpy" in line["versions"] and line["cache"]
        assert line["command"] == f"python benchmarks/run.py --quick --only {measurement}"
        assert line["repeats"] == len(line["values"]) >= 1
        assert line["lowest"] <= line["median"] <= line["highest"]
    table = (tmp_path / "table.md").read_text()
    assert table.count("\n| ") == len(lines) + 2  # the head and its rule
    assert str(tmp_path) not in table
    charts = {path.name for path in (tmp_path / "charts").iterdir()}
    assert charts <= {f"benchmark-{measurement}.png"}
    without = ("permutation", "import", "opening", "ready", "node", "stalls", "metrics", "cells", "columns")
    assert charts or measurement in without
    what_was_measured_is_plausible(measurement, {line["what"]: line["values"] for line in lines})


def what_was_measured_is_plausible(measurement: str, found: dict[str, list[float]]) -> None:
    """What must hold on any machine, however busy."""
    if measurement == "throughput":
        what = "records of 4 B, 1 thread: "
        loop, ours = found[what + "C loop of pread"], found[what + "penstock, as read (numpy)"]
        assert found[what + "as read / C loop"] == pytest.approx([a / b for a, b in zip(ours, loop, strict=True)])
    if measurement == "layouts":
        compact, ids = (found[f"{layout}: bytes read for a window, an epoch's mean"] for layout in ("compact", "ids"))
        assert min(compact) > 16_384 and max(compact) < 0.6 * min(ids) and min(ids) > 32_768
    if measurement == "node":
        one, told, untold = (values for what, values in found.items() if what.endswith("together"))
        assert min(*one, *told, *untold) > 0
        assert found["8 loaders that share / 1 loader"] == pytest.approx(
            [a / b for a, b in zip(told, one, strict=True)]
        )
        assert found["8 loaders, shared / unset"] == pytest.approx([a / b for a, b in zip(told, untold, strict=True)])
    if measurement == "stalls":
        for who in ("penstock", "plain pool"):  # a step is 12 ms: who spins uses most of it
            assert found[f"processor time a step: {who}"][0] < 3000
    if measurement == "blocks":
        mixing = [sum(values) for what, values in found.items() if what.startswith("entropy")]
        assert mixing == sorted(mixing, reverse=True)  # uniform first, sequential last
    if measurement == "memory":
        assert all(values[0] < 16 for what, values in found.items() if "beyond" in what or "growth" in what)
    if measurement == "ablation":
        assert all(value > 1 for what, values in found.items() if " / " in what for value in values)


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


def test_loaders_side_by_side_share_the_cores_when_they_are_told(load, tmp_path):
    path = tmp_path / "tokens.bin"
    np.arange(64 * 4096, dtype=np.uint32).tofile(path)
    cores = len(os.sched_getaffinity(0))
    for local_world_size in (None, 2):
        found = load("loaders_on_a_node").side_by_side(path, 2, local_world_size, 0.05)
        assert len(found) == 2
        for one in found:
            assert one["windows"] > 0 and one["seconds"] >= 0.05
            assert one["threads"] <= max(1, cores // (local_world_size or 1))


def test_the_sparse_dataset_is_a_dataset_as_the_format_says(load, tmp_path):
    workloads = load("workloads")
    path = workloads.Corpora(tmp_path, workloads.QUICK).sparse()
    dataset = penstock.open(str(path), checks="none")  # it has no check values
    assert len(dataset.windows(4096)) == 20 * 1_000_000 // 4096
    assert int(dataset.windows(4096)[4000]["token"].sum()) == 0
    assert sum(file.stat().st_blocks for file in path.rglob("stream.bin")) == 0
    manifest = path / "dataset.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"1000000", b"1000001", 1))
    with pytest.raises(penstock.CorruptionError, match="CRC32C"):
        penstock.open(str(path))


def test_a_dropped_file_is_read_from_the_disk_again(load, tmp_path):
    coldness = load("coldness")
    path = tmp_path / "tokens.bin"
    path.write_bytes(os.urandom(1 << 20))
    with path.open("rb") as file:
        assert coldness.resident_pages(file.fileno()).all()  # just written
    if coldness.read_ahead_setting(tmp_path) is None:
        pytest.skip("no disk: a file system in memory, or one above another")
    assert coldness.drop([path]) < 0.5
    with path.open("rb") as file:
        file.read()
        assert coldness.resident_pages(file.fileno()).all()


def test_read_ahead_is_put_back_and_a_bound_process_is_bound(load, tmp_path):
    coldness = load("coldness")
    setting = coldness.read_ahead_setting(tmp_path)
    before = setting.read_text() if setting else None
    with coldness.read_ahead(tmp_path) as words:
        assert "read-ahead" in words
        if "may not" not in words and setting:
            assert setting.read_text() == "128\n"
    assert before == (setting.read_text() if setting else None)
    with coldness.memory_bound(64 << 20) as (group, words):
        if group is None:
            pytest.skip(words)
        take = "import sys; open(sys.argv[1], 'w').write('0'); held = b'x' * (256 << 20)"
        done = subprocess.run([sys.executable, "-c", take, str(group)], check=False)
        assert done.returncode != 0 and words == "memory cgroup of 64 MiB"
        assert group.parent.exists()
    assert not group.parent.exists()


def test_the_articles_steps_agree_with_penstock_where_shards_and_documents_meet(load, tmp_path):
    steps, ablation = load("ablation_steps"), load("ablation")
    random = np.random.default_rng(3)
    with penstock.Writer(tmp_path, fields={"token": "u4"}, metadata="raw", layout="ids", shard_size=9_000) as writer:
        for _ in range(100):
            length = int(random.integers(1, 3000))
            writer.append(token=random.integers(0, 99, length, dtype=np.uint32), metadata=random.bytes(20))
    files = steps.Files(tmp_path)
    assert 40 < len(files.shards) < 100  # some of one document, some of more: neighbours may have the same id
    view = penstock.open(tmp_path).windows(4096)
    article = ablation.article_steps(files)
    ablation.check(view, article)
    wrong = steps.Step(files, steps.pread, steps.find_by_numpy, lambda *_: [b""])
    with pytest.raises(ValueError, match="'wrong'"):
        ablation.check(view, {"wrong": wrong})


def test_a_slowdown_is_of_blocks_side_by_side_and_forgets_outliers(load):
    training = load("training")
    assert training.trimmed_mean([1, 2, 3, 4, 100], 0.2) == 3
    order = []
    found = training.turns([lambda: order.append("memory"), lambda: order.append("fed")], lambda given: None, 2, 2)
    assert order == ["memory"] * 2 + ["fed"] * 4 + ["memory"] * 2
    assert len(found) == 2
    assert training.percent(training.Block(1.1, 2, 3), training.Block(1.0, 2, 2), "wall") == pytest.approx(10)
    assert training.percent(training.Block(1.1, 2, 3), training.Block(1.0, 2, 2), "main") == pytest.approx(50)


def test_what_exceeds_its_budget_is_named_with_what_it_was_and_how_to_raise_it(load):
    budget = load("budget")
    limits = {"compiler": "g++ 12", "instructions": {"window": 100.0, "index": 10.0}}
    assert budget.problems(budget.Counted("g++ 12", {"window": 101.9, "index": 5.0}), limits) == []
    (problem,) = budget.problems(budget.Counted("g++ 12", {"window": 103.0, "index": 10.0}), limits)
    assert "window: 103.0 instructions, the limit is 100.0" in problem and "+3.0%" in problem and "--update" in problem
    (problem,) = budget.problems(budget.Counted("g++ 12", {"new": 1.0}), limits)
    assert "new" in problem and "no limit" in problem


def test_a_count_without_a_dump_is_refused(load, tmp_path):
    budget = load("budget")
    (tmp_path / "callgrind.1").write_text("desc: Trigger: --dump-after=workload_cast\ntotals: 1234\n")
    assert budget.total(tmp_path / "callgrind.1") == 1234
    with pytest.raises(RuntimeError, match="inlined"):
        budget.total(tmp_path / "callgrind.2")
