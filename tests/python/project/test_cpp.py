"""What `cmake --install` gives to users of C++, and examples/cpp built of it alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import files
from pathlib import Path

import numpy as np
import penstock
import pytest

ROOT = Path(__file__).resolve().parents[3]
TREE = ROOT / "build" / "release"
WINDOW, BATCH_SIZE, SEED, EPOCHS = 16, 4, 7, 2  # as in examples/cpp/main.cpp


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (TREE / "libpenstock.a").exists() or shutil.which("cmake") is None:
        pytest.skip("needs build/release, which `make build` fills, and cmake")
    prefix = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", TREE, "--component", "cpp", "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def example(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of examples/cpp, which finds penstock where it was installed, and nothing of this repository."""
    sources, tree = tmp_path_factory.mktemp("example"), tmp_path_factory.mktemp("build")
    for name in ("CMakeLists.txt", "main.cpp"):
        shutil.copy(ROOT / "examples" / "cpp" / name, sources / name)
    warnings = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror"
    run("cmake", "-S", sources, "-B", tree, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={installed}", warnings)
    run("cmake", "--build", tree)
    return tree / "penstock_loop"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    random = np.random.default_rng(3)
    with penstock.Writer(tmp_path / "corpus", {"token": "u2"}, metadata="json", shard_size=300) as writer:
        for number in range(40):
            writer.append(token=random.integers(0, 60_000, number * 7 % 31 + 1), metadata={"number": number})
    return tmp_path / "corpus"


def loader_of(corpus: Path) -> penstock.Loader:
    view = penstock.open(corpus).windows(WINDOW, lookahead=1)
    return penstock.Loader(view, batch_size=BATCH_SIZE, seed=SEED, epochs=EPOCHS, framework="numpy")


def line_of(batch: penstock.Batch) -> str:
    return (
        f"position {batch.position}: {int(batch.valid.sum())} windows, inputs sum up to {batch.inputs.sum()}, "
        f"labels to {batch.labels.sum()}"
    )


def test_the_example_gives_the_batches_of_the_python_loader_and_goes_on_where_it_stopped(
    example: Path, corpus: Path, tmp_path: Path
) -> None:
    with loader_of(corpus) as loader:
        wanted = [line_of(batch) for batch in loader]
    assert len(wanted) > 10
    assert run(example, corpus, tmp_path / "whole", 1000).splitlines() == wanted
    found: list[str] = []
    for steps in (3, 1, 4, 1000):
        resumed, *lines = run(example, corpus, tmp_path / "state", steps).splitlines()
        if found:
            assert resumed.endswith(f"position {4 * len(found)}, step {len(found)}"), resumed
        found += lines if found else [resumed, *lines]
    assert found == wanted


def test_a_state_goes_from_cpp_to_python(example: Path, corpus: Path, tmp_path: Path) -> None:
    run(example, corpus, tmp_path / "state", 5)
    version, position, job = (tmp_path / "state").read_text().splitlines()
    with loader_of(corpus) as loader, loader_of(corpus) as resumed:
        assert loader.state_dict()["job"] == job
        resumed.load_state_dict({"version": int(version), "position": int(position), "job": job})
        assert [line_of(batch) for batch in resumed] == [line_of(batch) for batch in loader][5:]


def test_the_example_refuses_the_state_of_another_dataset(example: Path, corpus: Path, tmp_path: Path) -> None:
    run(example, corpus, tmp_path / "state", 2)
    with penstock.Writer(tmp_path / "other", {"token": "u2"}, metadata="json") as writer:
        writer.append(token=np.arange(900), metadata=None)
    for arguments, words in (
        ((tmp_path / "other", tmp_path / "state", 1), "dataset: the state was saved on"),
        ((tmp_path / "none", tmp_path / "state", 1), "none"),
        ((corpus, tmp_path / "state", "x"), "usage: "),
    ):
        done = subprocess.run([example, *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode in (1, 2) and words in done.stderr and done.stdout == "", done.stderr


def test_headers_include_each_other_and_no_python(installed: Path, tmp_path: Path) -> None:
    include = installed / "include"
    headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.h"))
    page = (ROOT / "docs" / "cpp.md").read_text()
    named = {f"penstock/{name}" for name in re.findall(r"`((?:core|shuffle|layout|writer)/[\w/]+\.h)`", page)}
    assert len(named) > 8 and named <= set(headers)
    (tmp_path / "all.cpp").write_text("".join(f"#include <{name}>\n" for name in headers))
    compiler = os.environ.get("CXX", "c++")
    # -MD names each file that was read.
    run(compiler, "-std=c++20", "-fsyntax-only", "-MD", "-MF", tmp_path / "read", "-I", include, tmp_path / "all.cpp")
    read = (tmp_path / "read").read_text()
    assert str(include / "penstock/core/engine/loader.h") in read
    foreign = r"\S*(?:Python\.h|pybind11|nlohmann|liburing\.h|" + re.escape(str(ROOT)) + r")\S*"
    assert re.findall(foreign, read.replace(str(include), "")) == []


def test_the_package_for_python_brings_nothing_of_it() -> None:
    names = [str(each) for each in files("penstock") or []]
    assert any(name.endswith("_view/page/page.html") for name in names)
    assert not [name for name in names if name.endswith((".h", ".a", ".cmake"))]
