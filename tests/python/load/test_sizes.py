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
    return next(penstock.Loader(view, batch_size, framework="numpy", **options))

answers = []
for expression in expressions:
    try:
        eval(expression)
        answers.append("done")
    except penstock.InvalidArgumentError as error:
        answers.append("refused: " + str(error))
    except (IndexError, StopIteration) as error:
        answers.append(f"over: {error}")
# Not getrusage(): that counts what the parent had when it forked.
peak_kib = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(json.dumps([answers, peak_kib]))
"""


def ask(path: Path, hints: dict[str, str], expressions: list[str]) -> dict[str, str]:
    """What each gives in a child, which ends well and takes little memory."""
    argument = json.dumps([str(path), hints, expressions])
    done = subprocess.run([sys.executable, "-c", CHILD, argument], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    answers, resident_kib = json.loads(done.stdout)
    assert resident_kib < 400 << 10
    return dict(zip(expressions, answers, strict=True))


WINDOWS = ("dataset.windows({})", "dataset.windows(4, {})", "dataset.windows({0}, {0})")
BATCHES = (
    "{}", "{}, rank=1, world_size=4", "4, rank=0, world_size={}", "[(0, {}), (4, 2)]",
    "{}, columns=['cu_seqlens', 'position_ids']", "4, columns=['cu_seqlens'], max_documents={}", "4, prefetch={}",
    "4, threads={}",
)  # fmt: skip
PLAN = "penstock.Job(dataset.windows(4), global_batch_size={}).plan(0, rank=0, world_size=1)"
# What is no size of memory may be as large as it likes.
ANYTHING = (
    "load(dataset.windows(4), 4, max_bytes={})", "load(dataset.windows(4), 4, skip=[(2, {})], epochs=1)",
    "load(dataset.windows(4), 4, order=penstock.orders.Blocks(block={0}, fetch={0}))",
    "load(dataset.windows(4), 4, order=penstock.orders.Blocks(block=4, fetch=8, lanes={}))",
    "load(dataset.windows(4), [(0, 4), ({}, 8)])", "load(dataset.windows(4), 4, epochs={})",
    "penstock.Loader(dataset.windows(4), 4, framework='numpy').seek({})", "penstock.Permutation({}, 0)[5]",
    "dataset.windows(4)[{}]", "dataset.windows(4).read([{}])",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["u2", "f8", "metadata"])
def test_sizes_of_windows_batches_and_plans_that_nothing_holds_are_refused(tmp_path, kind):
    path, hints = tmp_path / "data", {} if kind == "metadata" else {"dtype": kind, "format": "raw"}
    if hints:
        raw_tokens(path, 4000)
    else:
        with penstock.Writer(path, fields={"token": "u4"}, metadata="json") as writer:
            for number in range(50):
                writer.append(token=np.arange(20) + number, metadata={"number": number})
    views = ["dataset.windows(4)", *([] if hints else ["dataset.documents()"])]
    refused = [each.format(size) for each in (*WINDOWS, PLAN) for size in HUGE]
    refused += [f"load({view}, {each.format(size)})" for view in views for each in BATCHES for size in HUGE]
    refused += [f"load({view}, global_batch_size={size // 4 * 4}, world_size=4)" for view in views for size in HUGE]
    answers = ask(path, hints, refused + [each.format(size) for each in ANYTHING for size in HUGE])
    for expression in refused:
        assert answers[expression].startswith("refused: "), (expression, answers[expression])


@pytest.fixture
def sparse(tmp_path):
    """A stream of as many records of a byte as a file system here lets a file have, none of them on the disk."""
    for size in (2**63 - 1, 2**62, 2**43, 2**41):
        for folder in (tmp_path, Path("/dev/shm")):
            path = folder / f"penstock-sparse-{os.getpid()}.bin"
            try:
                with path.open("wb") as file:
                    file.truncate(size)
                yield path, {"dtype": "u1"}, size
                return
            except OSError:
                continue
            finally:
                path.unlink(missing_ok=True)
    pytest.skip("no sparse files")


def test_windows_that_the_stream_has_and_no_memory_holds(sparse):
    path, hints, records = sparse
    sizes = [size for size in (*HUGE, 2**61, 2**56, 2**48, records) if size <= records and size >= 2**40]
    expressions = [
        expression
        for size in sizes
        for expression in (
            *(f"load(dataset.windows({size}), {rows})" for rows in ("1", "5", "2**40", "5, dtype='uint8'")),
            f"load(dataset.windows({size - 1}, 1), 4)",
            f"load(dataset.windows({size}), 5, columns=[penstock.columns.PositionIds(end_of_document=0)])",
            f"dataset.windows({size})[0]",
            f"dataset.windows({size}).read([0])",
        )
    ]
    for expression, answer in ask(path, hints, expressions).items():
        assert answer.startswith("refused: "), (expression, answer)
        assert re.search("use a smaller|int32|read fewer, or smaller", answer), (expression, answer)
