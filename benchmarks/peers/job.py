"""The job that every peer does, and what is measured of it: `python <peer>.py TASK REQUEST`, one line of JSON out.

Runs in each peer's own environment: only the standard library and NumPy are imported here. Token i of the corpus is i,
so each window tells which it is, and each delivered token can be checked.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from footprint import cached_mib, cpu_seconds, disk_read_bytes, drop_cache, machine_seconds, memory

RESUMED_BATCHES = 3  # compared after a resume
GLOBAL_BATCH = 60  # 2, 3, 4 and 5 ranks divide it
NO_STATE = "has no state"
REFUSALS = (ValueError, AssertionError, RuntimeError)  # any other exception is a defect


@dataclass(frozen=True)
class Setting:
    """Where a peer loads: in the training thread, or in so many processes or threads behind it."""

    workers: int = 0  # processes
    threads: int = 0
    background: bool = False

    @property
    def name(self) -> str:
        if not self.background:
            return "training thread"
        parts = [(self.workers, "worker"), (self.threads, "thread")]
        said = " × ".join(f"{count} {what}{'s' if count > 1 else ''}" for count, what in parts if count)
        return said or "its default"


TRAINING_THREAD = Setting()
ONE_WORKER = Setting(workers=1, background=True)
TWO_WORKERS = Setting(workers=2, background=True)
WORKERS = (TRAINING_THREAD, ONE_WORKER, TWO_WORKERS)


@dataclass(frozen=True)
class Setup:
    """One rank's share of the job."""

    tokens: Path  # little-endian u32, token i is i
    folder: Path  # of the peer's own files, which prepare() makes
    window: int = 4096
    batch: int = 8
    seed: int = 1
    dtype: str = "int64"
    rank: int = 0
    world: int = 1
    setting: Setting = field(default_factory=Setting)

    @property
    def windows(self) -> int:
        return self.tokens.stat().st_size // (4 * self.window)

    @property
    def batches(self) -> int:
        """Full batches of one rank's share of an epoch."""
        return self.windows // (self.world * self.batch)

    def matrix(self) -> np.ndarray:
        """The windows as rows of a mapping, u32."""
        flat = np.memmap(self.tokens, "<u4", "r", shape=(self.windows * self.window,))
        return np.asarray(flat).reshape(self.windows, self.window)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"tokens": str(self.tokens), "folder": str(self.folder)}

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> Setup:
        paths = {key: Path(members[key]) for key in ("tokens", "folder")}
        return cls(**(members | paths | {"setting": Setting(**members["setting"])}))


class Peer:
    """A loader that does the job; made once a process, in the training thread."""

    name: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]  # whose versions are told
    order: ClassVar[str] = "uniform"  # or in which neighbourhood it shuffles
    dtypes: ClassVar[tuple[str, ...]]
    settings: ClassVar[tuple[Setting, ...]] = WORKERS
    note: ClassVar[str] = ""
    speed: ClassVar[bool] = True  # False: only what it does on several ranks is measured
    global_batch: ClassVar[int] = GLOBAL_BATCH  # of the runs on several ranks
    tail: ClassVar[str] = ""  # what becomes of the observations that fill no global batch, by design

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    @classmethod
    def imports(cls, setup: Setup) -> None:
        """Imports what only some setups need, so that it counts as import and not as the first batch."""

    @classmethod
    def prepare(cls, setup: Setup) -> None:
        """Writes the peer's own files into the folder, once a corpus."""

    def epoch(self, number: int) -> Iterator[Any]:
        """This rank's batches of one epoch, [B, W] arrays or tensors; after load() what is left of it."""
        raise NotImplementedError

    def forever(self) -> Iterator[Any]:
        """Batches without an end."""
        for number in itertools.count():
            yield from self.epoch(number)

    def state(self) -> Any:
        """What is saved after the batch that epoch() gave last."""
        raise NotImplementedError(NO_STATE)

    def load(self, state: Any) -> None:
        """Goes on from a state, before the first batch."""
        raise NotImplementedError(NO_STATE)

    @classmethod
    def handed(cls, states: list[Any], rank: int, world: int) -> Any:
        """The state that a rank of a new run loads, out of those that all ranks of the stopped run saved."""
        return states[rank if len(states) == world else 0]

    def close(self) -> None:
        """Stops what runs behind."""


def numbers(batch: Any, window: int) -> np.ndarray:
    """Which windows a batch holds.

    Raises:
        ValueError: it is not made of whole windows of the corpus.
    """
    array = np.asarray(batch)
    if array.ndim != 2 or array.shape[1] != window:
        raise ValueError(f"a batch of shape {array.shape}, it should be [B, {window}]")
    first = array[:, 0].astype(np.int64)
    wrong = (first % window != 0) | (array != first[:, None] + np.arange(window)).any(axis=1)
    if wrong.any():
        raise ValueError(f"row {int(wrong.argmax())} of a batch is no window of the corpus: it begins with {first}")
    return first // window


def dtype_of(batch: Any) -> str:
    return str(batch.dtype).removeprefix("torch.")


def digest(batch: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(np.asarray(batch, np.int64)).data).hexdigest()


def spread(windows: np.ndarray, size: int) -> float:
    """Mean distance of neighbours in the order, 1 for a uniform one: that of two random windows is a third of all."""
    return float(np.abs(np.diff(windows)).mean() / (size / 3)) if len(windows) > 1 else math.nan


def corpus_files(setup: Setup) -> list[Path]:
    """Whatever the peer may read."""
    own = (file for file in setup.folder.rglob("*") if file.is_file())
    return [setup.tokens, *sorted(file for file in own if file.stat().st_size > 0)]


# ---- tasks ----------------------------------------------------------------------------------------------------------


def describe(peer: type[Peer]) -> dict[str, Any]:
    return {
        "name": peer.name,
        "versions": {package: version_of(package) for package in peer.packages},
        "order": peer.order,
        "dtypes": peer.dtypes,
        "settings": [asdict(setting) for setting in peer.settings],
        "note": peer.note,
        "speed": peer.speed,
        "global_batch": peer.global_batch,
        "tail": peer.tail,
    }


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return str(getattr(sys.modules.get(package), "__version__", "of this tree"))


def prepare(peer: type[Peer], setup: Setup) -> dict[str, Any]:
    setup.folder.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    peer.prepare(setup)
    return {"seconds": time.perf_counter() - begin, "bytes": sum(file.stat().st_size for file in corpus_files(setup))}


def steady(peer: type[Peer], setup: Setup, warm_up: float, seconds: float) -> dict[str, Any]:
    """From nothing to the first batch, then batches per second; the files should be in the page cache."""
    begin = time.perf_counter()
    running = peer(setup)
    batches = running.forever()
    first = next(batches)
    first_ms = (time.perf_counter() - begin) * 1e3
    numbers(first, setup.window)
    dtype = dtype_of(first)
    del first
    run_for(batches, warm_up)
    found = run_for(batches, seconds)
    found |= memory()
    numbers(next(batches), setup.window)
    running.close()
    return {"first_ms": first_ms, "dtype": dtype, **found}


def run_for(batches: Iterator[Any], seconds: float) -> dict[str, float]:
    """Takes batches for so long, or until there are no more; a batch is let go of when the next one is there.

    Returns:
        The speed, processor time for a batch, and how many cores others of the machine and its host took meanwhile.
    """
    count = 0
    cpu, (busy, stolen) = cpu_seconds(), machine_seconds()
    begin = now = time.perf_counter()
    end = begin + seconds
    for _ in batches:
        count += 1
        now = time.perf_counter()
        if now >= end:
            break
    took = now - begin
    if not count:
        return {"batches_per_s": 0.0, "batches": 0, "seconds": took}
    cpu, (busy_now, stolen_now) = cpu_seconds() - cpu, machine_seconds()
    return {
        "batches_per_s": count / took,
        "batches": count,
        "seconds": took,
        "cpu_ms": cpu * 1e3 / count,
        "others_cores": max(0.0, busy_now - busy - cpu) / took,
        "stolen_cores": (stolen_now - stolen) / took,
    }


def cold(peer: type[Peer], setup: Setup, seconds: float) -> dict[str, Any]:
    """Batches per second from files that are not in the page cache, no window twice: an epoch, or `seconds` of it."""
    files = corpus_files(setup)
    drop_cache(files)
    before = cached_mib(files)
    read = disk_read_bytes(setup.tokens)
    begin = time.perf_counter()
    running = peer(setup)
    batches = running.epoch(0)
    next(batches)
    first_ms = (time.perf_counter() - begin) * 1e3
    found = run_for(batches, seconds)
    disk_mb = (disk_read_bytes(setup.tokens) - read) / 1e6
    took = time.perf_counter() - begin
    result = {"first_ms": first_ms, **found, "cached_before_mib": before, "cached_after_mib": cached_mib(files)}
    result |= {"disk_mb_per_s": disk_mb / took, "epoch": (found["batches"] + 1) / setup.batches, **memory()}
    running.close()
    return result


def half(peer: type[Peer], setup: Setup, saved: Path) -> dict[str, Any]:
    """To the middle of an epoch; saves the state, and what the next batches are."""
    running = peer(setup)
    batches = running.epoch(0)
    before = [numbers(next(batches), setup.window) for _ in range(setup.batches // 2)]
    result: dict[str, Any] = {"spread": spread(np.concatenate(before), setup.windows)}
    try:
        state = pickle.dumps(running.state())
    except NotImplementedError as error:
        running.close()
        return result | {"state": str(error)}
    after = [digest(next(batches)) for _ in range(RESUMED_BATCHES)]
    saved.write_bytes(pickle.dumps({"state": state, "after": after}))
    running.close()
    return result | {"state": "saved", "state_bytes": len(state)}


def resume(peer: type[Peer], setup: Setup, saved: Path) -> dict[str, Any]:
    """Goes on from the state in a fresh process, and compares."""
    expected = pickle.loads(saved.read_bytes())
    state = pickle.loads(expected["state"])
    begin = time.perf_counter()
    running = peer(setup)
    made = time.perf_counter()
    running.load(state)
    batches = running.epoch(0)
    first = next(batches)
    end = time.perf_counter()
    found = [digest(batch) for batch in [first, *itertools.islice(batches, RESUMED_BATCHES - 1)]]
    running.close()
    equal = sum(one == other for one, other in zip(found, expected["after"], strict=False))
    return {"make_ms": (made - begin) * 1e3, "resume_ms": (end - made) * 1e3, "equal_batches": equal}


def share(peer: type[Peer], setup: Setup, saved: Path, stop: int) -> dict[str, Any]:
    """One rank's whole epoch: which windows each batch has; and the state after `stop` batches."""
    running = peer(setup)
    found: list[np.ndarray] = []
    state: bytes | None = None
    said = "saved"
    for batch in running.epoch(0):
        found.append(numbers(batch, setup.window))
        if len(found) == stop:
            try:
                state = pickle.dumps(running.state())
            except NotImplementedError as error:
                said = str(error)
    running.close()
    saved.write_bytes(pickle.dumps({"state": state, "batches": found}))
    return {"batches": len(found), "state": said}


def rest(peer: type[Peer], setup: Setup, saved: Path, states: list[Path]) -> dict[str, Any]:
    """What a rank of a new run delivers from the states of a stopped one to the epoch's end, or why it refuses."""
    loaded = [pickle.loads(pickle.loads(path.read_bytes())["state"]) for path in states]
    try:
        running = peer(setup)
        running.load(peer.handed(loaded, setup.rank, setup.world))
        batches = running.epoch(0)
        found = [numbers(batch, setup.window) for batch in itertools.islice(batches, 1)]
    except REFUSALS as error:
        traceback.print_exc()
        return {"refused": f"{type(error).__name__}: {error}"}
    found += [numbers(batch, setup.window) for batch in batches]
    running.close()
    saved.write_bytes(pickle.dumps({"batches": found}))
    return {"batches": len(found)}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "describe": describe,
    "prepare": prepare,
    "steady": steady,
    "cold": cold,
    "half": half,
    "resume": resume,
    "share": share,
    "rest": rest,
}


def main(peer: type[Peer]) -> None:
    """Runs the task that the command line names."""
    # What libraries print goes to stderr: stdout carries one line. Who asked ends this process soon after it: not every
    # library's threads let it end.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        answer = done(peer, sys.argv[1], json.loads(sys.argv[2]))
    except Exception as error:
        traceback.print_exc()
        answer = {"failed": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def done(peer: type[Peer], task: str, request: dict[str, Any]) -> dict[str, Any]:
    """What the task gives, and how long it took from the process's start until all was imported."""
    if "setup" in request:
        request["setup"] = Setup.from_json(request["setup"])
        peer.imports(request["setup"])
    imported = time.monotonic_ns()
    started = request.pop("started_ns", imported)
    if "saved" in request:
        request["saved"] = Path(request["saved"])
    if "states" in request:
        request["states"] = [Path(path) for path in request["states"]]
    return TASKS[task](peer, **request) | {"import_ms": (imported - started) / 1e6}
