"""Cold reads: random windows of a corpus larger than the memory that may cache it, beside fio's over the same ranges.

fio reads with O_DIRECT through io_uring, 32 reads in flight. A window of 4,096 tokens begins at a multiple of 16 KiB
and is one read of fio's; with one record more (lookahead=1) it is widened to the next block of 4 KiB, as direct I/O
asks.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import coldness
import penstock
from results import Result, alternate, left_out, ratios
from windows import windows_per_second
from workloads import BATCH, TOKEN_BYTES, WINDOW, Corpora

BLOCK_BYTES = 4096
TARGET = 0.9
READERS = ("auto", "pread", "uring", "direct", "mmap")
PREFETCH = 8  # batches: 64 windows are under way, as docs/loading.md advises for cold disks


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.cold_tokens()
    if shutil.which("fio") is None:
        left_out("cold: fio", "it is not installed")
    results = []
    with coldness.read_ahead(path) as ahead, coldness.memory_bound(corpora.size.cold_bound) as (group, bound):
        for lookahead in (0, 1):
            results += compare(corpora, path, lookahead, group, f"{ahead}, {bound}")
    return results


def compare(corpora: Corpora, path: Path, lookahead: int, group: Path | None, state: str) -> list[Result]:
    """fio and each reader of penstock, in turn; the file leaves the page cache before each."""
    seconds = corpora.size.cold_seconds
    stayed: list[float] = []

    def cold(load: Any) -> float:
        stayed.append(coldness.drop([path]))
        return float(load())

    cases = {what: options | {"prefetch": PREFETCH} for what, options in readers(path).items()}
    loads = [
        partial(windows_per_second, [path], "u4", lookahead, options, seconds, group) for options in cases.values()
    ]
    if shutil.which("fio") is not None:
        loads.append(partial(fio, path, lookahead, seconds))
    found = alternate(min(5, corpora.size.repeats), [partial(cold, load) for load in loads])
    state = f"cold: dropped ({max(stayed):.1%} stayed), no window twice, {state}"
    bytes_each = (WINDOW + lookahead) * TOKEN_BYTES
    what = f"windows of {bytes_each:,} B"
    line = partial(Result, "cold", cache=state, bytes=bytes_each)
    results = [
        line(f"{what}: penstock, {case}", "windows/s", values)
        for case, values in zip(cases, found[: len(cases)], strict=True)
    ]
    for limit in found[len(cases) :]:
        results.append(line(f"{what}: fio, {widened(lookahead) // 1024} KiB each", "windows/s", limit))
        for case, values in zip(cases, found[: len(cases)], strict=True):
            target = None if cases[case]["reader"] == "pread" else TARGET
            results.append(line(f"{what}: {case} / fio", "ratio", ratios(values, limit), at_least=target))
    return results


def readers(path: Path) -> dict[str, dict[str, Any]]:
    """What a loader can be told of reading, by its words for a line; a reader that is refused here is left out."""
    cases: dict[str, dict[str, Any]] = {}
    view = penstock.open(str(path), dtype="u4").windows(WINDOW)
    for reader in READERS:
        with penstock.Loader(view, batch_size=BATCH, reader=reader, rank=0, world_size=1, framework="numpy") as loader:
            try:
                what = f"as the loader chooses ({loader.reader})" if reader == "auto" else f"reader={reader}"
            except penstock.InvalidArgumentError as error:
                left_out(f"cold: reader={reader}", str(error))
                continue
        cases[what] = {"reader": reader}
    return cases


def widened(lookahead: int) -> int:
    """Bytes of a window in whole blocks; it begins at one."""
    return -(-(WINDOW + lookahead) * TOKEN_BYTES // BLOCK_BYTES) * BLOCK_BYTES


def fio(path: Path, lookahead: int, seconds: float) -> float:
    """Windows per second by fio."""
    return fio_reads(path, widened(lookahead), WINDOW * TOKEN_BYTES, seconds)


def fio_reads(path: Path, read_bytes: int, align: int, seconds: float) -> float:
    """Reads per second by fio: no block twice, buffers reused, no statistics of single reads."""
    command = ["fio", "--name=windows", f"--filename={path}", "--readonly", "--rw=randread", "--direct=1"]
    command += [f"--bs={read_bytes}", f"--blockalign={align}", f"--runtime={seconds * 1000:.0f}ms"]
    command += ["--ioengine=io_uring", "--iodepth=32", "--gtod_reduce=1", "--randrepeat=0", "--output-format=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"fio failed: {' '.join(command)}\n{done.stdout}{done.stderr}")
    # What fio remarks comes before the JSON.
    read = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]["read"]
    return float(read["total_ios"] / read["runtime"] * 1000)
