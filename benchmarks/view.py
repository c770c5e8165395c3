"""What `penstock view` answers of many small documents: first rows in a browser, filters, sorts, search, charts."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import penstock
from results import Result, SkippedError, warm
from workloads import Corpora, made

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "python"))  # the browser that the tests use

AT_ONCE = 100_000
ROUNDS = 3  # of all questions: some take half a minute
SECONDS = 600  # after which an answer counts as none
DRAWN = "performance.getEntriesByName('rows')[0]?.startTime ?? 0"
#: What is asked, and the question; each answer is the first that this server gives of it.
QUESTIONS = {
    "a filter, score > 0.999 and lang = 'en'": {"where": "score > 0.999 and lang = 'en'"},
    "a filter, score > 0.5: half of all": {"where": "score > 0.5"},
    "a filter by length": {"shortest": 39},
    "sorted by a float32": {"sort": "column.score", "descending": 1},
    "sorted by a category": {"sort": "column.lang"},
    "half of all, sorted by length": {"where": "score > 0.5", "sort": "length"},
    "a page in the middle": {"first": 5_000_000},
}


def measure(corpora: Corpora) -> list[Result]:
    count = corpora.size.view_documents
    path = made(corpora.folder, f"view-{count}", partial(write, count=count))
    warm(file for file in path.rglob("*") if file.is_file())
    first = first_rows(path, corpora.size.repeats)
    scale = f"{count:,} documents"
    found = [Result("view", f"{scale}: the first rows in the browser", "ms", first, "warm", at_most=300)]
    rounds = [answers(path) for _ in range(min(corpora.size.repeats, ROUNDS))]
    for what in rounds[0]:
        limit = 2 if what.startswith("a filter,") else None
        values = tuple(each[what] for each in rounds)
        found.append(Result("view", f"{scale}: {what}", "s", values, "warm", at_most=limit))
    return found


def first_rows(path: Path, repeats: int) -> tuple[float, ...]:
    """Milliseconds from the address to the first rows of the table: servers that were just started, a browser that
    has shown one already."""
    try:
        from _browser import browser, program
    except ImportError as error:
        raise SkippedError(f"the tests' browser: {error}") from None
    if program() is None:
        raise SkippedError("no browser is installed: scripts/setup test does so on Debian")
    took = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder)) as tab:
        tab.size(1280)
        for _ in range(repeats + 1):
            with serving(path) as address:
                tab.open(address)
                took.append(float(tab.until(DRAWN, 60)))
    return tuple(took[1:])


def answers(path: Path) -> dict[str, float]:
    """Seconds of each answer of a server that was just started."""
    with serving(path) as address:
        took = {}
        for what, query in QUESTIONS.items():
            took[what] = seconds(f"{address}api/table?{urlencode({'count': 50, **query})}")
        took["shares of a category"] = seconds(f"{address}api/shares?by=lang")
        took["an id that does not occur, in all documents"] = seconds(f"{address}api/search?look=ids&text=65535")
        took["exact duplicates"] = seconds(f"{address}api/duplicates")
    return took


def seconds(address: str) -> float:
    begin = time.perf_counter()
    with urlopen(address, timeout=SECONDS) as answer:
        answer.read()
    return time.perf_counter() - begin


@contextlib.contextmanager
def serving(path: Path) -> Iterator[str]:
    """The address of `penstock view` of a dataset."""
    command = [sys.executable, "-m", "penstock", "view", str(path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


def write(path: Path, count: int) -> None:
    """Documents of 4 to 39 tokens with an address each, a language, a score and a number of a source."""
    random = np.random.default_rng(5)
    names = np.array(["en", "de", "fr", "zh", "es"])
    columns = {"lang": "category", "score": "f4", "source": "u1"}
    with penstock.Writer(str(path), {"token": "u2"}, metadata="json", columns=columns) as writer:
        for begin in range(0, count, AT_ONCE):
            part = min(AT_ONCE, count - begin)
            lengths = random.integers(4, 40, part)
            entries = [b'{"url":"https://example.org/%d"}' % number for number in range(begin, begin + part)]
            values = {
                "lang": names[random.integers(0, len(names), part)],
                "score": random.random(part, np.float32),
                "source": random.integers(0, 20, part).astype(np.uint8),
            }
            token = random.integers(0, 50_000, int(lengths.sum())).astype(np.uint16)
            writer.append_batch(lengths, encoded=entries, columns=values, token=token)
