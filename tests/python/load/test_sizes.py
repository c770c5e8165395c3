"""Sizes that no memory holds, or that 64 bits do not count, are refused in words; a crash would end the child alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens

HUGE = (2**64 // 5, 2**63, 2**63 - 1, 2**62, 2**40, 2**64 - 1, 2**64)

CHILD = r"""
import json, re, sys
import penstock

path, hints, expressions = json.loads(sys.argv[1])
dataset = penstock.open(path, **hints)

def load(view, batch_size=None, **options):
    loader = penstock.Loader(view, batch_size, framework="numpy", **options)
    return next(loader)

answers = []
for expression in expressions:
    try:
        eval(expression)
        answers.append("done")
    except penstock.InvalidArgumentError as error:
        answers.append("refused: " + str(error))
    except IndexError as error:
        answers.append("index: " + str(error))
    except StopIteration:
        answers.append("over")
# Not getrusage(): that counts what the parent had when it forked.
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(json.dumps([answers, peak_kib]))
"""


def ask(path: Path, hints: dict[str, str], expressions: list[str]) -> list[str]:
    """What each gives in a child, which ends well and takes little memory."""
    argument = json.dumps([str(path), hints, expressions])
    done = subprocess.run([sys.executable, "-c", CHILD, argument], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers, resident_kib = json.loads(done.stdout)
    assert len(answers) == len(expressions)
    assert resident_kib < 400 << 10
    return answers


def with_metadata(path: Path) -> Path:
    with penstock.Writer(path, fields={"token": "u4"}, metadata="json") as writer:
        for number in range(50):
            writer.append(token=np.arange(20) + number, metadata={"number": number})
    return path


@pytest.fixture(params=["u1", "u2", "f8", "metadata"])
def dataset(request, tmp_path):
    if request.param == "metadata":
        return with_metadata(tmp_path / "data"), {}
    raw_tokens(tmp_path / "tokens.bin", 4000)
    return tmp_path / "tokens.bin", {"dtype": request.param}


def test_windows_longer_than_the_stream(dataset):
    expressions = [f"dataset.windows({size})" for size in HUGE]
    expressions += [f"dataset.windows(4, {size})" for size in HUGE]
    expressions += [f"dataset.windows({size}, {size})" for size in HUGE]
    for expression, answer in zip(expressions, ask(*dataset, expressions), strict=True):
        assert answer.startswith("refused: "), (expression, answer)


def test_batches_larger_than_any_memory(dataset):
    views = ["dataset.windows(4)", *(["dataset.documents()"] if not dataset[1] else [])]
    arguments = [f"{size}" for size in HUGE]
    arguments += [f"{size}, rank=1, world_size=4" for size in HUGE]
    arguments += [f"global_batch_size={size // 4 * 4}, rank=1, world_size=4" for size in HUGE]
    arguments += [f"4, rank=0, world_size={size}" for size in HUGE]
    arguments += [f"[(0, {size}), (4, 2)]" for size in HUGE]
    arguments += [f"{size}, columns=['cu_seqlens', 'position_ids']" for size in HUGE]
    arguments += [f"4, columns=['cu_seqlens'], max_documents={size}" for size in HUGE]
    arguments += [f"4, prefetch={size}" for size in HUGE]
    arguments += [f"4, threads={size}" for size in HUGE]
    expressions = [f"load({view}, {argument})" for view in views for argument in arguments]
    for expression, answer in zip(expressions, ask(*dataset, expressions), strict=True):
        assert answer.startswith("refused: "), (expression, answer)


def test_a_plan_of_more_rows_than_memory_holds(dataset):
    expressions = [
        f"penstock.Job(dataset.windows(4), global_batch_size={size}).plan(0, rank=0, world_size=1)" for size in HUGE
    ]
    for expression, answer in zip(expressions, ask(*dataset, expressions), strict=True):
        assert answer.startswith("refused: "), (expression, answer)


def test_what_is_no_size_of_memory_may_be_as_large_as_it_likes(dataset):
    view = "dataset.windows(4)"
    expressions = [
        expression
        for size in HUGE
        for expression in (
            f"load({view}, 4, max_bytes={size})",
            f"load({view}, 4, skip=[(2, {size})], epochs=1)",
            f"load({view}, 4, order=penstock.orders.Blocks(block={size}, fetch={size}))",
            f"load({view}, 4, order=penstock.orders.Blocks(block=4, fetch=8, lanes={size}))",
            f"load({view}, [(0, 4), ({size}, 8)])",
            f"load({view}, 4, epochs={size})",
            f"penstock.Loader({view}, 4, framework='numpy').seek({size})",
            f"penstock.Permutation({size}, 0)[5]",
            f"{view}[{size}]",
            f"{view}.read([{size}])",
        )
    ]
    assert len(ask(*dataset, expressions)) == len(expressions)


@pytest.fixture(params=[None, "/dev/shm"])
def sparse(request, tmp_path):
    """A stream of as many records of a byte as the file system lets a file have, none of them on the disk."""
    folder = tmp_path if request.param is None else Path(request.param)
    if not os.access(folder, os.W_OK):
        pytest.skip(f"no {folder}")
    path = folder / f"penstock-sparse-{os.getpid()}.bin"
    try:
        for size in (2**63 - 1, 2**62, 2**43, 2**41):
            with path.open("wb") as file:
                try:
                    file.truncate(size)
                except OSError:
                    continue
            yield path, {"dtype": "u1"}, size
            return
        pytest.skip("no sparse files")
    finally:
        path.unlink(missing_ok=True)


def test_windows_that_the_stream_has_and_no_memory_holds(sparse):
    path, hints, records = sparse
    sizes = [size for size in (*HUGE, 2**61, 2**56, 2**48, records) if size <= records and size >= 2**40]
    expressions = [
        expression
        for size in sizes
        for expression in (
            f"load(dataset.windows({size}), 1)",
            f"load(dataset.windows({size}), 5)",
            f"load(dataset.windows({size}), 2**40)",
            f"load(dataset.windows({size - 1}, 1), 4)",
            f"load(dataset.windows({size}), 5, dtype='uint8')",
            f"load(dataset.windows({size}), 5, columns=[penstock.columns.PositionIds(end_of_document=0)])",
            f"dataset.windows({size})[0]",
            f"dataset.windows({size}).read([0])",
        )
    ]
    for expression, answer in zip(expressions, ask(path, hints, expressions), strict=True):
        assert answer.startswith("refused: "), (expression, answer)
        assert re.search("use a smaller|int32|read fewer, or smaller", answer), (expression, answer)
