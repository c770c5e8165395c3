"""A loader at full rate for minutes: its memory, descriptors and threads stay, and its batches are the job's.

`python rate.py NAME FOLDER SECONDS POSITION` prints one line of JSON: counts, samples, and where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock

WINDOW, BATCH, SEED = 256, 64, 5
NAMES = ("mixture", "packing", "columns", "documents", "remote with cache")
#: By which it may grow in the second half of a run: threads start when they are needed, and open what they read.
MOST = {"MiB": 8, "descriptors": 16, "threads": 8}
_READ_AGAIN = 64  # one batch of so many is read again without a loader; of all others the observations are compared
_DOCUMENTS = 60_000
_PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def put_datasets(folder: Path) -> None:
    """Two datasets of some ten MiB, unless they are there."""
    for number, name in enumerate("ab"):
        if (folder / name / "dataset.json").exists():
            continue
        rng = np.random.default_rng(number)
        options: dict[str, Any] = {"columns": {"score": "f4"}, "shard_size": 4 << 20, "overwrite": True}
        with penstock.Writer(folder / name, {"token": "u2"}, "json", **options) as writer:
            for document in range(_DOCUMENTS):
                tokens = rng.integers(0, 60_000, int(rng.integers(1, 400))).astype("u2")
                writer.append(token=tokens, metadata={"n": document}, columns={"score": document / 7})


@dataclass(frozen=True)
class Run:
    """What is loaded: `views` are the sources, in the order of their numbers."""

    view: Any
    views: list[penstock.View]
    options: dict[str, Any]


def run_of(name: str, folder: Path) -> Run:
    a = penstock.open(folder / "a")
    if name == "mixture":
        views = {each: penstock.open(folder / each).windows(WINDOW) for each in "ab"}
        stages = [penstock.Stage({"a": 3, "b": 1}), penstock.Stage({"a": 1, "b": 2}, at=10_000)]
        return Run(penstock.Mixture(views, stages), [*views.values()], {})
    if name == "packing":
        return _alone(a.packed(WINDOW))
    if name == "documents":
        return _alone(a.documents(columns=["score"]).padded(multiple_of=8))
    if name == "columns":
        return _alone(a.windows(WINDOW, lookahead=1), columns=["position_ids", "document_ids", "cu_seqlens"])
    remote = penstock.open(f"{os.environ['SOAK_ADDRESS']}/a", cache=folder / "cache")
    return _alone(remote.windows(WINDOW))


def _alone(view: penstock.View, **options: Any) -> Run:
    return Run(view, [view], options)


def digests(batch: Any) -> list[bytes]:
    """Of each row: its tokens and its entries."""
    found = [hashlib.sha256(np.ascontiguousarray(row).tobytes()) for row in batch["token"]]
    for span in batch.spans:
        found[span.row].update(span.raw)
    return [each.digest() for each in found]


def check(run: Run, job: penstock.Job, batch: Any, is_read: bool) -> None:
    """That the batch is the job's; raises AssertionError."""
    plan = job.plan(batch.position, 0, 1)
    assert plan is not None
    assert np.array_equal(plan.picks["index"], batch.indices), f"other observations at {batch.position}"
    if not is_read:
        return
    given = digests(batch)
    for number, view in enumerate(run.views):
        rows = np.flatnonzero(plan.picks["source"] == number)
        for row in rows:  # alone, so that a padded row is as long as it is there
            read = view.read(plan.picks["index"][row : row + 1])
            tokens = batch["token"][row][: read["token"].shape[1]]
            assert np.array_equal(read["token"][0], tokens), f"other tokens at {batch.position}, row {row}"
            raw = b"".join(span.raw for span in read.spans)
            expected = hashlib.sha256(np.ascontiguousarray(batch["token"][row]).tobytes() + raw).digest()
            assert given[row] == expected, f"other entries at {batch.position}, row {row}"


def held() -> tuple[float, int, int]:
    """MiB, descriptors and threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * _PAGE_MIB, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))  # noqa: PTH208


def go(name: str, folder: Path, seconds: float, position: int) -> dict[str, Any]:
    run = run_of(name, folder)
    job = penstock.Job(run.view, global_batch_size=BATCH, seed=SEED)
    samples, batches, read = [], 0, 0
    begin = time.monotonic()
    with penstock.Loader(run.view, BATCH, seed=SEED, framework="numpy", **run.options) as loader:
        loader.load_state_dict({**loader.state_dict(), "position": position})
        while (now := time.monotonic() - begin) < seconds:
            batch = next(loader)
            is_read = batches % _READ_AGAIN == 0
            check(run, job, batch, is_read)
            batches, read = batches + 1, read + is_read
            if now > (len(samples) + 1) * seconds / 50:
                samples.append(held())
        stopped = loader.position
    return {"batches": batches, "read again": read, "samples": samples, "position": stopped, "seconds": seconds}


def growth(samples: list[Any]) -> dict[str, float]:
    """By how much each of `held` grew after the first fifth."""
    later = samples[len(samples) // 5 :]
    half = len(later) // 2
    names = ("MiB", "descriptors", "threads")
    return {
        name: max(each[i] for each in later[half:]) - max(each[i] for each in later[:half])
        for i, name in enumerate(names)
    }


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    print(json.dumps(go(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))))
