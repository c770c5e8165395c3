"""Token ids made before: `penstock write --ids-column` and `penstock import` beside cp of what they wrote."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from corpus import COLUMNS, row, write_parquet
from results import Result, ratios
from text_ways import Way, in_turn, line, penstock, workers_of
from usage import Usage, usage
from workloads import Corpora, made

VOCABULARY = 128_000
LENGTHS = (6.2, 1.0)  # of the logarithm of a document's tokens: mean and deviation
MOST = 20_000
CP_AT_LEAST, TWO_AT_LEAST = 0.7, 1.6
ONE, TWO, SHARDS = 1, 2, 4  # workers, and shards that they make
IDS = ("--ids-column", "ids", "--metadata", ",".join(COLUMNS), "--dtype", "u4")


def measure(corpora: Corpora, folder: Path, out: Path) -> list[Result]:
    """Reads from `folder`, where files are kept, and writes into `out`."""
    tokens = corpora.size.id_tokens
    jobs = {"penstock write --ids-column, .jsonl": ("write", jsonl(folder, tokens), IDS)}
    if not corpora.quick:
        jobs["penstock write --ids-column, Parquet"] = ("write", parquet(folder, tokens), IDS)
        jobs["penstock import, raw tokens"] = ("import", corpora.tokens(), ("--dtype", "u4"))
    repeats = min(3, corpora.size.repeats)
    return [each for what, job in jobs.items() for each in compared(what, out, repeats, *job)]


def compared(what: str, out: Path, repeats: int, verb: str, file: Path, options: tuple[str, ...]) -> list[Result]:
    """The lines of one job: one worker, two, and cp, all of the same bytes."""
    kept = out / "kept"
    options = (*options, "--shard-size", str(file.stat().st_size // SHARDS))
    penstock(verb, file, kept, TWO, *options, keep=True)
    size = sum(each.stat().st_size for each in kept.rglob("*") if each.is_file())
    one, two = (
        Way(f"{what}, {workers_of(n)}", size, partial(penstock, verb, file, out / "out", n, *options), n)
        for n in (ONE, TWO)
    )
    copy = Way(f"cp and sync of what {what} wrote", size, partial(copied, kept, out / "copy"))
    in_turn([one, two, copy], repeats)
    shutil.rmtree(kept)
    return [
        *(each for way in (one, two, copy) for each in way.lines()),
        line(f"cp / {one.what}: CPU", "ratio", ratios(copy.cpu, one.cpu), size, at_least=CP_AT_LEAST),
        line(f"cp / {two.what}: by the clock", "ratio", ratios(copy.wall, two.wall), size),
        line(
            f"{what}, 1 worker / 2 workers: by the clock", "ratio", ratios(one.wall, two.wall), size, None, TWO_AT_LEAST
        ),
    ]


def copied(folder: Path, to: Path) -> Usage:
    found = usage(["sh", "-c", 'cp -r "$1" "$2" && sync -f "$2"', "sh", str(folder), str(to)])
    shutil.rmtree(to)
    return found


def jsonl(folder: Path, tokens: int) -> Path:
    """A list of ids a line, and two columns."""
    return made(folder, f"ids-{tokens}.jsonl", lambda path: _write_jsonl(path, tokens))


def parquet(folder: Path, tokens: int) -> Path:
    return made(folder, f"ids-{tokens}.parquet", lambda path: write_parquet(path, _rows(tokens)))


def _write_jsonl(path: Path, tokens: int) -> None:
    with path.open("w") as file:
        for each in _rows(tokens):
            file.write(json.dumps(each | {"ids": each["ids"].tolist()}) + "\n")


def _rows(tokens: int) -> Iterator[dict[str, Any]]:
    draws = np.random.default_rng(11)
    number = 0
    while tokens > 0:
        length = min(tokens, MOST, 1 + int(draws.lognormal(*LENGTHS)))
        number += 1
        tokens -= length
        columns = row(number, "ids", "")
        ids = draws.integers(0, VOCABULARY, length, dtype=np.uint32)
        yield {"ids": ids, **{name: columns[name] for name in COLUMNS}}
