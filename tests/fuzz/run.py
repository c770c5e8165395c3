"""Runs the fuzz targets for a number of inputs each, and writes a record: `make fuzz`, after scripts/fuzz built them.

Native targets are run by libFuzzer under AddressSanitizer and UndefinedBehaviorSanitizer (libfuzzer.cpp), those of
files that Python reads by tests/python/fuzz/files.py. A native target begins with its seeds, its corpus and what failed
once. An input that fails lies in build/fuzz/failed; alone it is run again by
  PENSTOCK_FUZZ_TARGET=TARGET build/fuzz/tests/fuzz/penstock_fuzz FILE
  python tests/python/fuzz/files.py --only TARGET --first SEED --inputs 1
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import seeds

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python" / "fuzz"))

import files  # noqa: E402

BUILD = HERE.parent.parent / "build" / "fuzz"
BINARY = BUILD / "tests" / "fuzz" / "penstock_fuzz"
MOST_INPUT = 1 << 14
MOST_KEPT = 10_000  # bytes of a packed corpus in the repository
_RECORD = re.compile(r"penstock_fuzz: \w+ inputs=(\d+) memory=(\d+) slowest_us=(\d+)")


def packed_inputs(name: str) -> list[bytes]:
    """What corpus/NAME.gz has: inputs end to end, each behind its size."""
    path = HERE / "corpus" / f"{name}.gz"
    data, found = gzip.decompress(path.read_bytes()) if path.exists() else b"", []
    while data:
        (size,) = struct.unpack_from("<I", data)
        found.append(data[4 : 4 + size])
        data = data[4 + size :]
    return found


def pack(inputs: list[bytes]) -> bytes:
    """The smallest inputs first, as many as there is room for."""
    packed = b""
    whole = b""
    for each in inputs:
        whole += struct.pack("<I", len(each)) + each
        found = gzip.compress(whole, mtime=0)
        if len(found) > MOST_KEPT:
            break
        packed = found
    return packed


def begin_corpus(name: str) -> Path:
    folder = BUILD / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    found = [each.read_bytes() for each in sorted((HERE / "found" / name).glob("*"))]
    for data in (*seeds.TARGETS[name](), *packed_inputs(name), *found):
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
    return folder


def libfuzzer(name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PENSTOCK_FUZZ_TARGET": name,
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Stacks of allocations in full where an input is run alone.
        "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:quarantine_size_mb=8:malloc_context_size=3",
    }
    command = [
        BINARY,
        f"-max_len={MOST_INPUT}",
        "-timeout=120",
        "-rss_limit_mb=1024",
        "-malloc_limit_mb=64",
        "-print_funcs=0",
        "-entropic=0",  # 15 % to 19 % of the time (json_lines, manifest: 20,000 inputs), and no more coverage for it
        *arguments,
    ]
    return subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, errors="replace")


def run_native(name: str, inputs: int, seed: int, seconds: int) -> dict[str, Any]:
    folder, failed = begin_corpus(name), BUILD / "failed"
    failed.mkdir(exist_ok=True)
    begin = time.monotonic()
    done = libfuzzer(
        name,
        f"-runs={inputs}",
        f"-seed={seed}",
        f"-max_total_time={seconds}",
        "-print_final_stats=1",
        f"-artifact_prefix={failed}/{name}-",
        folder,
    )
    (BUILD / f"{name}.log").write_text(done.stderr)
    found = _RECORD.search(done.stderr)
    record: dict[str, Any] = {
        "target": name,
        "seconds": round(time.monotonic() - begin, 1),
        "failed": done.returncode != 0,
    }
    if found:
        record |= {"inputs": int(found[1]), "memory": int(found[2]), "slowest_ms": int(found[3]) / 1000}
    if done.returncode:
        record["words"] = done.stderr[-4000:]
    return record


def keep(name: str) -> None:
    """The part of the corpus that reaches all that it reaches, smallest first, becomes corpus/NAME.gz."""
    merged = BUILD / "merged" / name
    shutil.rmtree(merged, ignore_errors=True)
    merged.mkdir(parents=True)
    libfuzzer(name, "-merge=1", merged, BUILD / "corpus" / name).check_returncode()
    inputs = sorted((each.read_bytes() for each in merged.iterdir()), key=lambda data: (len(data), data))
    firsts = list(seeds.TARGETS[name]())[:1]
    (HERE / "corpus" / f"{name}.gz").write_bytes(pack(firsts + [each for each in inputs if each not in firsts]))


def table(records: list[dict[str, Any]]) -> str:
    lines = ["| target | inputs | most memory of one | slowest one | failed |", "| --- | --: | --: | --: | --: |"]
    for each in records:
        memory = "–" if "memory" not in each else f"{each['memory'] / (1 << 20):,.1f} MiB"
        lines.append(
            f"| {each['target']} | {each.get('inputs', 0):,} | {memory} | {each.get('slowest_ms', 0):,.0f} ms "
            f"| {int(each['failed'])} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--inputs", type=int, default=1_000_000, help="of each target; at most 100,000 where Arrow reads"
    )
    parser.add_argument("--seconds", type=int, default=0, help="of each native target at most; 0: any number")
    parser.add_argument("--seed", type=int, default=1, help="of libFuzzer's mutations")
    parser.add_argument("--only", action="append", help="this target; may be given several times")
    parser.add_argument("--keep", action="store_true", help="write the corpora into tests/fuzz/corpus")
    parser.add_argument("--json", type=Path, help="all figures, and what failed")
    parser.add_argument("--markdown", type=Path, help="the table")
    given = parser.parse_args()
    records = []
    for name in given.only or (*seeds.TARGETS, *files.TARGETS):
        if name in files.TARGETS:
            records.append(files.run(name, min(given.inputs, files.TARGETS[name].inputs)))
        else:
            records.append(run_native(name, given.inputs, given.seed, given.seconds))
        hidden = ("words", "bad")
        print(json.dumps({key: value for key, value in records[-1].items() if key not in hidden}), flush=True)
        if records[-1]["failed"]:
            print(records[-1].get("words") or json.dumps(records[-1]["bad"][:10], indent=1), file=sys.stderr)
        elif given.keep and name in seeds.TARGETS:
            keep(name)
    text = table(records)
    print(text)
    if given.markdown:
        given.markdown.write_text(text)
    if given.json:
        given.json.write_text(json.dumps(records, indent=1))
    return 1 if any(each["failed"] for each in records) else 0


if __name__ == "__main__":
    sys.exit(main())
