"""`make bench` measures what docs/benchmarks.md says: each figure is there, and what it stands on does what it says."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks"

#: Measurement -> names of its lines, and (name, unit) of those with a target. Ratios to fio only where it is installed.
EXPECTED: dict[str, tuple[set[str], set[tuple[str, str]]]] = {
    "permutation": ({"permutation"}, set()),
    "import": ({"import"}, {("import", "ms")}),
    "opening": ({"opening", "resuming"}, {("opening", "ms"), ("opening", "MiB")}),
    "shards": ({"shards"}, {("shards", "ms"), ("shards", "MiB"), ("shards", "ratio")}),
    "per-shard": ({"per-shard"}, {("per-shard", "ratio")}),
    "ready": ({"ready batch"}, {("ready batch", "µs")}),
    "throughput": ({"throughput"}, {("throughput", "ratio")}),
    "columns": ({"document columns"}, {("document columns", "ratio")}),
    "transforms": ({"transforms"}, {("transforms", "ratio")}),
    "metrics": ({"metrics"}, set()),
    "cold": ({"cold"}, {("cold", "ratio")} if shutil.which("fio") else set()),
    "blocks": ({"blocks"}, {("blocks", "ratio")}),
    "stalls": ({"stalls"}, set()),
    "training": ({"training"}, {("training", "%")}),
    "sizes": ({"sizes"}, set()),
    "ablation": ({"ablation"}, {("ablation", "times")}),
    "writer": ({"writer"}, {("writer", "ratio")}),
    "token-files": ({"token files"}, {("token files", "ratio")}),
    "text": ({"text"}, {("text", "ratio"), ("text", "MiB")}),
    "remote": ({"remote"}, {("remote", "ratio"), ("remote", "ms")}),
    "shuffle": ({"shuffle"}, {("shuffle", "ratio")}),
    "memory": ({"memory"}, {("memory", "MiB")}),
    "layouts": ({"layouts"}, set()),
    "checks": ({"checks"}, {("checks", "ratio")}),
    "node": ({"node"}, set()),
    "mixing": ({"mixing"}, set()),
    "mixture": ({"mixture"}, {("mixture", "ratio"), ("mixture", "ns"), ("mixture", "ms"), ("mixture", "us")}),
    "draws": ({"draws"}, {("draws", "ratio")}),
    "custom": ({"custom order"}, {("custom order", "ratio")}),
    "learning": ({"learning"}, {("learning", "right")}),
    "cells": ({"cells"}, {("cells", "ratio")}),
    "packing": ({"packing"}, {("packing", "µs"), ("packing", "%"), ("packing", "ratio")}),
    "balance": ({"balance"}, {("balance", "ratio")}),
    "uneven": ({"uneven"}, {("uneven", "ratio")}),
    "cache": ({"cache"}, {("cache", "ratio")}),
    "where": ({"where"}, {("where", "s")}),
    "view": ({"view"}, {("view", "ms"), ("view", "s")}),
}


@pytest.fixture
def load(monkeypatch):
    """Imports a module of benchmarks/, whose scripts import each other by name."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def run(folder: Path, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """run.py --quick, begun: it writes results.json, table.md and charts into `folder`."""
    command = [sys.executable, str(FOLDER / "run.py"), "--quick", "--json", str(folder / "results.json")]
    command += ["--dir", str(folder / "corpora"), "--markdown", str(folder / "table.md"), *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)


def test_every_measurement_is_expected(load):
    assert list(load("run").MEASUREMENTS) == list(EXPECTED)


@pytest.fixture(scope="module")
def all_quick(tmp_path_factory) -> tuple[Path, list[dict[str, Any]], str]:
    """A quick run of every measurement: its folder, its lines, its stderr."""
    folder = tmp_path_factory.mktemp("quick")
    process = run(folder, "--charts", str(folder / "charts"))
    _, said = process.communicate()
    assert process.returncode == 0, said
    return folder, json.loads((folder / "results.json").read_text()), said


@pytest.mark.bench
@pytest.mark.parametrize("measurement", EXPECTED)
def test_a_measurement_gives_its_lines_with_all_that_is_needed_to_judge_them(all_quick, measurement):
    folder, every, said = all_quick
    names, targets = EXPECTED[measurement]
    lines = [line for line in every if line["name"] in names]
    left_out = re.search(f"^left out: {measurement}: .*", said, re.MULTILINE)
    if left_out and not lines:
        pytest.skip(left_out[0])
    assert {line["name"] for line in lines} == names
    assert {(line["name"], line["unit"]) for line in lines if line["reached"] is not None} >= targets
    for line in lines:
        assert line["machine"] and "numpy" in line["versions"] and line["cache"]
        assert line["command"] == "python benchmarks/run.py --quick" and line["quick"]
        assert line["repeats"] == len(line["values"]) >= 1
        assert line["lowest"] <= line["median"] <= line["highest"]
    without = ("permutation", "import", "opening", "shards", "ready", "columns", "metrics", "stalls", "remote",
               "shuffle", "memory", "checks", "node", "mixture", "cells", "packing", "cache", "per-shard", "draws",
               "custom", "token-files", "text", "transforms", "where", "uneven", "view")  # fmt: skip
    assert (folder / "charts" / f"benchmark-{measurement}.svg").exists() == (measurement not in without)
    what_was_measured_is_plausible(measurement, {line["what"]: line["values"] for line in lines})


def test_the_charts_that_are_shown_are_those_of_the_tables(load, tmp_path):
    """`python benchmarks/charts.py docs/benchmarks.md docs/images` draws them again."""
    charts, docs = load("charts"), FOLDER.parent / "docs"
    drawn = charts.draw_page(docs / "benchmarks.md", tmp_path)
    measured_elsewhere = {"benchmark-mixing.svg", "benchmark-learning.svg"}  # no table here
    shown = {path.name for path in (docs / "images").glob("benchmark-*")} - measured_elsewhere
    assert {path.name for path in drawn} == shown
    assert [path.name for path in drawn if path.read_text() != (docs / "images" / path.name).read_text()] == []


def test_a_chart_has_a_title_spreads_and_both_lights(load, tmp_path):
    charts = load("charts")
    line = {"name": "cold", "unit": "ratio", "what": "windows of 16 B: as the loader chooses / fio"}
    (path,) = charts.draw([line | {"lowest": 0.5, "median": 1.0, "highest": 1.5}], tmp_path)
    drawn = path.read_text()
    assert 'aria-label="Windows a second' in drawn and "prefers-color-scheme:dark" in drawn
    assert drawn.count('class="spread') == 1 and ">1 (0.5 – 1.5)</text>" in drawn and "<rect" in drawn


@pytest.mark.bench
def test_a_quick_run_is_marked_as_one(all_quick):
    folder, lines, _ = all_quick
    table = (folder / "table.md").read_text()
    assert table.startswith("**QUICK RUN") and "do not record" in table.splitlines()[0]
    assert table.count("\n| ") == len(lines) + 2  # the head and its rule
    assert str(folder) not in table


@pytest.mark.bench
@pytest.mark.parametrize(
    "arguments",
    [
        ["import_cells.py", "--cells", "50", "--workers", "1"],
        ["import_cells.py", "--cells", "50", "--workers", "1", "--kind", "csc"],
        [
            "peers/run.py",
            "--quick",
            "--only",
            "correct",
            "--only",
            "ranks",
            "--peer",
            "bare_gather",
            "--dir",
            "corpora",
        ],
        ["peers/text/run.py", "--quick", "--peer", "none"],
    ],
    ids=" ".join,
)
def test_programs_beside_run_py_run_in_small(arguments, tmp_path):
    """Of the peers those that this environment has; `make bench-peers` makes the others'."""
    command = [sys.executable, str(FOLDER / arguments[0]), *arguments[1:]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout, done.stderr


def test_a_killed_run_keeps_the_lines_of_measurements_that_had_ended(tmp_path):
    process = run(tmp_path, "--only", "permutation", "--only", "throughput")
    results = tmp_path / "results.json"
    while not results.exists() and process.poll() is None:
        time.sleep(0.001)
    process.kill()
    _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said  # throughput was under way
    (line,) = json.loads(results.read_text())
    assert line["name"] == "permutation" and line["quick"]
    assert "| permutation |" in (tmp_path / "table.md").read_text()


def test_a_measurement_that_fails_leaves_the_others_and_the_exit_status_says_so(load, tmp_path, monkeypatch, capsys):
    module = load("run")

    def broken(corpora):
        raise AttributeError("a name that has gone")

    def skipped(corpora):
        raise load("results").SkippedError("fio is not installed")

    good = module.MEASUREMENTS["permutation"]
    monkeypatch.setattr(module, "MEASUREMENTS", {"broken": broken, "skipped": skipped, "permutation": good})
    monkeypatch.setattr(sys, "argv", ["run.py", "--quick", "--json", str(tmp_path / "results.json")])
    with pytest.raises(SystemExit, match="failed: broken"):
        module.main()
    assert [line["name"] for line in json.loads((tmp_path / "results.json").read_text())] == ["permutation"]
    said = capsys.readouterr()
    assert "a name that has gone" in said.err and "left out: skipped: fio is not installed" in said.err
    first, table = said.out.split("\n", 1)
    assert first.startswith("permutation | ") and "QUICK RUN" in table  # its lines came before the next measurement


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
        for what, others in (("2 loaders that share / 1 loader", one), ("2 loaders, shared / unset", untold)):
            assert found[what] == pytest.approx([a / b for a, b in zip(told, others, strict=True)])
    if measurement == "stalls":
        for who in ("penstock", "plain pool"):  # a step is 12 ms: who spins uses most of it
            assert found[f"processor time a step: {who}"][0] < 3000
    if measurement == "blocks":
        mixing = [sum(values) for what, values in found.items() if what.startswith("entropy")]
        assert mixing == sorted(mixing, reverse=True)  # uniform first, sequential last
    if measurement == "memory":
        assert all(values[0] < 16 for what, values in found.items() if "beyond" in what or "growth" in what)
    if measurement == "text":
        shares = [values[0] for what, values in found.items() if what.startswith("the corpus: ")]
        assert sum(shares[:-1]) == pytest.approx(100) and 0 <= shares[-1] < 100
        assert all(min(values) > 0 for what, values in found.items() if what.endswith(("CPU", "by the clock")))
    if measurement == "ablation":
        assert all(value > 1 for what, values in found.items() if " / " in what for value in values)


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


def test_what_exceeds_its_budget_is_named_with_what_it_was_and_how_to_raise_it(load, tmp_path):
    budget = load("budget")
    limits = {"compiler": "g++ 12", "instructions": {"window": 100.0, "index": 10.0}}
    assert budget.problems(budget.Counted("g++ 12", {"window": 101.9, "index": 5.0}), limits) == []
    (problem,) = budget.problems(budget.Counted("g++ 12", {"window": 103.0, "index": 10.0}), limits)
    assert "window: 103.0 instructions, the limit is 100.0" in problem and "+3.0%" in problem and "--update" in problem
    (problem,) = budget.problems(budget.Counted("g++ 12", {"new": 1.0}), limits)
    assert "new" in problem and "no limit" in problem
    (tmp_path / "callgrind.1").write_text("desc: Trigger: --dump-after=workload_cast\ntotals: 1234\n")
    assert budget.total(tmp_path / "callgrind.1") == 1234
    with pytest.raises(RuntimeError, match="inlined"):  # there is no dump
        budget.total(tmp_path / "callgrind.2")
