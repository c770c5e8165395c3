"""Fuzzes what Python reads: files of `import` and `write`, and replies of S3, in a process that is watched.

A target is real files, mutations and a reader. An input is
  found     a penstock.Error that names the file, in at most 2,000 characters
  harmless  it was read
  stray     any other exception, or another message
  crashed   the process ended
  ended by Arrow  the process ended, since pyarrow does not catch an exception of its own (docs/reliability.md)
  hung      no answer within LIMIT_S of the process's time
An input is its target and seed: `--only TARGET --first SEED --inputs 1` does one again.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import mmap
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import files_s3
import files_seeds
import mutate

LIMIT_S = 60.0
MOST_SECONDS = 1.0  # of the processor, of one input
MOST_MEMORY = 64 << 20
ADDRESS_SPACE = 4 << 30  # a claim that is believed ends the input, not the machine
_MOST_WORDS = 2000
_OF_ARROW = "terminate called after throwing an instance of 'parquet::ParquetException'"


@dataclass(frozen=True)
class Target:
    """What is read of a kind of file."""

    suffix: str
    seeds: Callable[[], list[bytes]]
    mutations: tuple[mutate.Mutate, ...]
    read: Callable[[Path, int], None]
    inputs: int = 1_000_000


def _import(format: str, path: Path, seed: int) -> None:
    """All parts of an input, as the import's tasks read them."""
    from penstock._from.tokens.formats import open_reader
    from penstock._from.tokens.reader import Input
    from penstock._places.stores.location import location_of

    metadata: tuple[str, ...] | None = () if seed % 2 else None
    reader = open_reader(Input(location_of(path), format, None, metadata, "u2" if seed % 3 == 0 else None))
    try:
        for piece in reader.pieces(1 << 30):
            for part in reader.parts(piece):
                sum(int(values.sum()) for values in part.fields.values() if len(values))
    finally:
        reader.close()


def _write(format: str, compression: str, path: Path, seed: int) -> None:
    """All documents of an input of text, as `write` reads them."""
    from penstock._from.text.documents import DocumentReader
    from penstock._from.text.inputs import Input
    from penstock._from.text.raw import Columns

    source = Input(str(path), path, format, compression, path.stat().st_size, path.name)
    for _ in DocumentReader([source], Columns("text", None, None, "line"), skips=seed % 2 == 1).documents():
        pass


def _in_footer(rng: random.Random, data: bytes) -> bytes:
    return mutate.parquet_footer(rng, data) if rng.random() < 0.9 else mutate.any_bytes(rng, data)


_ANY: tuple[mutate.Mutate, ...] = (mutate.any_bytes,)
_TAR = (mutate.any_bytes, mutate.tar_headers, mutate.tar_headers)
TARGETS = {
    "tar": Target(".tar", files_seeds.tars, _TAR, functools.partial(_import, "webdataset")),
    "tar_gzip": Target(
        ".tar.gz",
        files_seeds.packed_tars,
        (mutate.any_bytes, mutate.gzip_stream, *(mutate.within_gzip(each) for each in _TAR)),
        functools.partial(_import, "webdataset"),
    ),
    "lines_gzip": Target(
        ".jsonl.gz",
        files_seeds.packed_lines,
        (mutate.any_bytes, mutate.gzip_stream, mutate.within_gzip(mutate.any_bytes)),
        functools.partial(_write, "jsonl", "gz"),
    ),
    "lines_zstd": Target(".jsonl.zst", files_seeds.zstd_lines, _ANY, functools.partial(_write, "jsonl", "zst")),
    "parquet": Target(
        ".parquet", files_seeds.parquets, (_in_footer,), functools.partial(_import, "parquet"), inputs=100_000
    ),
    "parquet_text": Target(
        ".parquet", files_seeds.text_parquets, (_in_footer,), functools.partial(_write, "parquet", ""), inputs=100_000
    ),
    "arrow": Target(".arrow", files_seeds.arrows, _ANY, functools.partial(_import, "huggingface"), inputs=100_000),
    "s3_xml": Target(".xml", files_s3.lists, _ANY, files_s3.read_list),
}


# ---- the process that reads


class Worker:
    """Reads inputs one after the other, and notes in shared memory which it is at."""

    def __init__(self, name: str, root: Path, shared: Path) -> None:
        self._name, self._target = name, TARGETS[name]
        self._path = root / f"input{self._target.suffix}"
        self._seeds = self._target.seeds()
        with shared.open("r+b") as file:
            self._at = ctypes.c_uint64.from_buffer(mmap.mmap(file.fileno(), 8))
        self.counts: Counter[str] = Counter()
        self.bad: list[dict[str, Any]] = []
        self.slowest = 0.0
        for data in self._seeds:  # which also loads all modules
            self._path.write_bytes(data)
            self._target.read(self._path, 0)
        self.memory = 0  # most that one input took

    def run(self, seed: int) -> None:
        rng = random.Random(f"{self._name}/{seed}")
        data = rng.choice(self._target.mutations)(rng, rng.choice(self._seeds))
        self._path.write_bytes(data)
        self._at.value = seed
        Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
        before, begin = _memory("VmRSS"), time.process_time()
        outcome, words = self._outcome(seed)
        seconds = time.process_time() - begin
        self.slowest = max(self.slowest, seconds)
        self.counts[outcome] += 1
        took = _memory("VmHWM") - before
        self.memory = max(self.memory, took)
        if outcome == "stray" or seconds > MOST_SECONDS or took > MOST_MEMORY + len(data):
            self.bad.append(
                {"seed": seed, "outcome": outcome, "seconds": seconds, "memory": took, "words": words[:500]}
            )

    def _outcome(self, seed: int) -> tuple[str, str]:
        import penstock
        from penstock._make.errors import InputError, OptionError  # which `write` ends with, in these words

        try:
            self._target.read(self._path, seed)
        except (penstock.Error, InputError, OptionError) as error:
            named = self._path.name in str(error) and len(str(error)) <= _MOST_WORDS
            return "found" if named else "stray", str(error)
        except Exception as error:
            return "stray", f"{type(error).__name__}: {error}"
        return "harmless", ""


def _memory(field: str) -> int:
    """Bytes of /proc/self/status."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split(maxsplit=1)[0]) << 10


def work(name: str, first: int, inputs: int, root: Path, shared: Path) -> None:
    """Tells of itself in a line of JSON every thousand inputs."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    worker = Worker(name, root, shared)
    print(json.dumps({"next": first, "counts": {}, "bad": [], "slowest": 0, "memory": 0}), flush=True)
    for seed in range(first, first + inputs):
        worker.run(seed)
        if (seed + 1 - first) % 1000 == 0 or seed + 1 == first + inputs:
            said = {"next": seed + 1, "counts": worker.counts, "bad": worker.bad, "slowest": worker.slowest}
            print(json.dumps({**said, "memory": worker.memory}), flush=True)


# ---- the process that watches


def run(name: str, inputs: int, first: int = 0) -> dict[str, Any]:
    """All inputs of one target; a process that ends or hangs is made again behind the input that it was at."""
    counts: Counter[str] = Counter()
    record: dict[str, Any] = {"target": name, "inputs": inputs, "memory": 0, "slowest_ms": 0.0, "bad": []}
    begin, end, where = time.monotonic(), first + inputs, Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="penstock-fuzz-", dir=where if os.access(where, os.W_OK) else None) as root:
        shared = Path(root) / "at"
        shared.write_bytes(bytes(8))
        while first < end:
            said, outcome, words = _watch(name, first, end - first, Path(root), shared)
            if not said:
                raise RuntimeError(f"{name}: no file that is right could be read: {words}")
            line = said[-1]
            counts.update(line["counts"])
            record["bad"] += line["bad"]
            record["memory"] = max(record["memory"], line["memory"])
            record["slowest_ms"] = max(record["slowest_ms"], 1000 * line["slowest"])
            if not outcome:
                break
            # Between the last line and the end inputs were not counted: they are read again, up to the one that failed.
            at = int.from_bytes(shared.read_bytes(), "little")
            done = line["next"]
            if at > done:
                between, again, _ = _watch(name, done, at - done, Path(root), shared)
                counts.update(between[-1]["counts"] if between and not again else {"not counted": at - done})
                record["bad"] += between[-1]["bad"] if between else []
            if outcome == "crashed" and _OF_ARROW in words:
                outcome = "ended by Arrow"
            else:
                record["bad"].append({"seed": at, "outcome": outcome, "words": words})
            counts[outcome] += 1
            first = at + 1
    return {**record, "seconds": round(time.monotonic() - begin, 1), "counts": counts, "failed": bool(record["bad"])}


def _watch(name: str, first: int, inputs: int, root: Path, shared: Path) -> tuple[list[dict[str, Any]], str, str]:
    """What one process said; how it ended, if it did so early, and its last words."""
    here = Path(__file__).resolve()
    command = [sys.executable, here, "--work", name, str(first), str(inputs), root, shared]
    lines, errors = root / "lines", root / "errors"
    with lines.open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        at, since = -1, 0.0
        while process.poll() is None:
            time.sleep(0.05)
            now, spent = int.from_bytes(shared.read_bytes(), "little"), _processor_seconds(process.pid)
            if now != at:
                at, since = now, spent
            elif spent - since > LIMIT_S:
                process.kill()
                process.wait()
                return _lines(lines), "hung", ""
    words = errors.read_text(errors="replace")[-600:]
    return _lines(lines), "" if process.returncode == 0 else "crashed", f"exit code {process.returncode}: {words}"


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def main() -> int:
    if sys.argv[1:2] == ["--work"]:
        name, first, inputs, root, shared = sys.argv[2:]
        work(name, int(first), int(inputs), Path(root), Path(shared))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, help="of each target; without: a million; of Arrow 100,000")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", action="append", choices=TARGETS, help="this target; may be given several times")
    parser.add_argument("--json", type=Path, help="all figures, and what failed")
    given = parser.parse_args()
    records = []
    for name in given.only or TARGETS:
        records.append(run(name, given.inputs or TARGETS[name].inputs, given.first))
        print(json.dumps({**records[-1], "bad": records[-1]["bad"][:5]}), flush=True)
    if given.json:
        given.json.write_text(json.dumps(records, indent=1))
    return 1 if any(each["failed"] for each in records) else 0


if __name__ == "__main__":
    sys.exit(main())
