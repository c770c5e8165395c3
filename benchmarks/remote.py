"""Servers: ranges of 16 KiB by HTTP and from a bucket, beside curl_loop.c, one thread of libcurl and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import penstock
from ready_batch import per_ready_batch
from results import Result, SkippedError, alternate, installed, ratios

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from _servers import nginx
from workloads import Corpora

SOURCE = Path(__file__).with_name("curl_loop.c")
WINDOW = 8192  # tokens of two bytes: a range of 16 KiB
RANGE_BYTES = 2 * WINDOW
DELAY = 0.02
ROWS = 8
FETCH = 4096
KEYS = {"access_key_id": "access", "secret_access_key": "secret"}


class Speed(NamedTuple):
    """What a run did."""

    ranges_per_second: float
    cpu_us: float  # a range, of the client alone


def measure(corpora: Corpora) -> list[Result]:
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = compiled(folder)
        root = corpora.folder / "served"
        file = write_corpus(root, corpora)
        with server(root, folder / "near") as address:
            found += near(corpora, program, address, file)
            found += requests_of_blocks(address, folder / "near" / "access.log")
            found += ready(corpora, address, root)
        with server(root, folder / "far", delay=DELAY) as address:
            found += far(corpora, program, address, file)
            found.append(first_batch(corpora, address))
    return found


@contextmanager
def server(root: Path, folder: Path, delay: float = 0.0) -> Iterator[str]:
    if not Path("/usr/sbin/nginx").exists():
        raise SkippedError("nginx is not installed")
    with nginx(root, folder, delay=delay) as address:
        yield address


def write_corpus(root: Path, corpora: Corpora) -> Path:
    """A dataset of one shard in the folder data, as a bucket of that name has it; its stream.bin."""
    path = root / "data" / "corpus"
    if not (path / "dataset.json").exists():
        random = np.random.default_rng(0)
        with penstock.Writer(path, {"token": "u2"}, metadata="json", overwrite=True) as writer:
            for number in range(corpora.size.tokens >> 14):
                writer.append(token=random.integers(0, 60_000, 1 << 14).astype("u2"), metadata={"n": number})
    (shard,) = (each for each in path.iterdir() if each.is_dir())
    return shard / "stream.bin"


def compiled(folder: Path) -> Path:
    program = folder / "curl_loop"
    command = [os.environ.get("CC", "cc"), "-O3", str(SOURCE), "-lcurl", "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def line(what: str, unit: str, values: tuple[float, ...], **targets: float) -> Result:
    return Result("remote", what, unit, values, "the server's files in memory", RANGE_BYTES, **targets)


def near(corpora: Corpora, program: Path, address: str, file: Path) -> list[Result]:
    """One server without delay: bound by processors."""
    seconds = corpora.size.seconds
    url = f"{address}/data/corpus"
    stream = f"{url}/{file.parent.name}/stream.bin"
    runs = {
        "curl_multi loop in C, 64 in flight": partial(curl_loop, program, stream, file, 64, seconds),
        "http://, 1 thread": partial(ranges_per_second, url, seconds, threads=1, prefetch=16),
    }
    if installed("obstore") and installed("boto3"):
        storage = penstock.Storage(endpoint=address, credentials=lambda: {**KEYS, "expires_at": None})
        runs["s3://, 1 thread"] = partial(
            ranges_per_second, "s3://data/corpus", seconds, storage, threads=1, prefetch=16
        )
    found = dict(zip(runs, alternate_speeds(corpora.size.repeats, list(runs.values())), strict=True))
    results = []
    for name, speeds in found.items():
        results.append(line(name, "ranges/s", tuple(each.ranges_per_second for each in speeds)))
        results.append(line(f"{name}: CPU a range", "µs", tuple(each.cpu_us for each in speeds)))
    loop, http = (found[name] for name in list(runs)[:2])
    results.append(line("http:// / C loop", "ratio", rates(http, loop), at_least=0.8))
    cpu = ratios((each.cpu_us for each in http), (each.cpu_us for each in loop))
    results.append(line("CPU a range: http:// / C loop", "ratio", cpu, at_most=2.0))
    if len(found) == 3:
        results.append(line("s3:// / http://", "ratio", rates(found["s3://, 1 thread"], http), at_least=0.7))
    return results


def far(corpora: Corpora, program: Path, address: str, file: Path) -> list[Result]:
    """A server that waits before it answers: bound by what is under way."""
    seconds = corpora.size.seconds
    url = f"{address}/data/corpus"
    runs = [
        partial(curl_loop, program, f"{url}/{file.parent.name}/stream.bin", file, 64, seconds),
        partial(ranges_per_second, url, seconds, penstock.Storage(connections=1)),
        partial(ranges_per_second, url, seconds),
    ]
    loop, one, many = alternate_speeds(corpora.size.repeats, runs)
    return [
        line("20 ms: C loop, 64 in flight", "ranges/s", tuple(each.ranges_per_second for each in loop)),
        line("20 ms: a default loader", "ranges/s", tuple(each.ranges_per_second for each in many)),
        line("20 ms: a default loader: CPU a range", "µs", tuple(each.cpu_us for each in many)),
        line("20 ms: 64 in flight / 1", "ratio", rates(many, one), at_least=40.0),
        line("20 ms: a default loader / C loop", "ratio", rates(many, loop), at_least=0.8),
    ]


def alternate_speeds(repeats: int, runs: list[Any]) -> list[tuple[Speed, ...]]:
    found: list[Any] = alternate(repeats, runs)
    return found


def rates(speeds: tuple[Speed, ...], others: tuple[Speed, ...]) -> tuple[float, ...]:
    return ratios((each.ranges_per_second for each in speeds), (each.ranges_per_second for each in others))


def curl_loop(program: Path, url: str, file: Path, in_flight: int, seconds: float) -> Speed:
    command = [program, url, str(file.stat().st_size), str(RANGE_BYTES), str(in_flight), str(seconds)]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return Speed(said["ranges"] / said["seconds"], 1e6 * said["cpu"] / said["ranges"])


def ranges_per_second(url: str, seconds: float, storage: penstock.Storage | None = None, **options: Any) -> Speed:
    """Windows that next() gives, once connections are made."""
    view = penstock.open(url, storage=storage).windows(WINDOW)
    with penstock.Loader(view, ROWS, rank=0, world_size=1, framework="numpy", **options) as loader:
        begin = time.perf_counter()
        while time.perf_counter() - begin < min(0.5, seconds):
            next(loader)
        count = 0
        used = time.process_time()
        begin = now = time.perf_counter()
        while now - begin < seconds:
            next(loader)
            count += ROWS
            now = time.perf_counter()
        return Speed(count / (now - begin), 1e6 * (time.process_time() - used) / count)


def requests_of_blocks(address: str, log: Path) -> list[Result]:
    """Requests for stream.bin of an epoch in blocks, as the server counts them, a window."""
    view = penstock.open(f"{address}/data/corpus").windows(512)
    before = streams_in(log)
    with penstock.Loader(
        view, 64, order=penstock.orders.Blocks(16, FETCH), epochs=1, rank=0, world_size=1, framework="numpy"
    ) as loader:
        for _ in loader:
            pass
    asked = streams_in(log) - before
    return [line("Blocks(16, 4096): requests of stream.bin a window", "ratio", (asked / len(view),), at_most=1 / 12)]


def ready(corpora: Corpora, address: str, root: Path) -> list[Result]:
    """The main thread's work for a batch that is there."""
    datasets = [penstock.open(f"{address}/data/corpus"), penstock.open(root / "data" / "corpus")]
    runs = [partial(per_ready_batch, each, "numpy", 0, corpora.size.batches, time.sleep) for each in datasets]
    remote, local = alternate(corpora.size.repeats, runs)
    return [
        line("main thread for a ready batch, http://", "µs", remote),
        line("main thread for a ready batch, local files", "µs", local),
        line("main thread for a ready batch: http:// / local files", "ratio", ratios(remote, local), at_most=1.1),
    ]


def streams_in(log: Path) -> int:
    return len(re.findall(r"^GET \S*/stream\.bin ", log.read_text(), re.MULTILINE))


def first_batch(corpora: Corpora, address: str) -> Result:
    """From open() to the first batch of 8 with metadata, in delays of the server over what is not one: 8 and 50 ms."""

    def once() -> float:
        begin = time.perf_counter()
        view = penstock.open(f"{address}/data/corpus").windows(512, metadata=True)
        with penstock.Loader(view, 8, rank=0, world_size=1, framework="numpy") as loader:
            assert next(loader).spans[0].metadata is not None
            return 1e3 * (time.perf_counter() - begin)

    once()  # imports
    values = tuple(once() for _ in range(max(corpora.size.repeats, 3)))
    return line("20 ms: open to first batch of 8 with metadata", "ms", values, at_most=8 * 1e3 * DELAY + 50)
