"""A call of the system that fails, for some k of each verb: tests/faults/calls/every_k.py tries every one."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "faults" / "calls"))

import every_k

TRIALS = 4
#: Whose workers take a second to start.
SLOW = ("write, 3 processes",)


@pytest.fixture(scope="module")
def server() -> Iterator[every_k.Server]:
    with every_k.servers(1) as started:
        if not started:
            pytest.skip("no C compiler for the library")
        yield started[0]


@pytest.mark.parametrize("verb", every_k.VERBS)
def test_a_call_that_fails_is_told_and_the_next_run_is_whole(server: every_k.Server, verb: str) -> None:
    calls = server.prepare(verb)["calls"]
    # The number of calls is not the same in each run of threads: tens of it are. What is left of the first few is on
    # the page, docs/reliability.md.
    among = range(20, calls // 20 * 20) if calls >= 80 else range(1, calls + 1)
    numbers = random.Random(verb).sample(among, 1 if verb in SLOW else TRIALS)
    requests = [{"verb": verb, "k": k, "turn": every_k.turn_of(verb, k, 0)} for k in numbers]
    assert every_k.run([server], requests).bad == []


#: Defects that earlier runs found: the last call, or another one, whose line in the log ends so; its error's number.
FOUND = (
    ("Writer", "create", ".partial-dataset.json", 5, -1),  # EROFS: the folder of features stays
    ("pack", "write", ".partial-out", 5, -1),  # EROFS: its unfinished file stays
    ("pack", "rename", ".partial-out", 4, -1),
    ("pack", "fsync", "", 3, -1),  # EROFS: the table itself stays
    ("cache, filled", "stat", "/cache", 0, -1),  # EIO
    ("import", "read", "/a.ds", 0, -1),
    ("import of cells", "pread", "/cells.h5ad", 0, -1),
    ("import of cells", "pread", "/cells.h5ad", 0, 14),  # of `var`, which it looks for
    ("export to Megatron", "write", ".partial-", 5, -1),
    ("export to Megatron", "fsync", "", 3, -1),
    ("export to MDS", "rename", ".partial-", 4, -1),
)  # fmt: skip


@pytest.mark.parametrize(("verb", "call", "path", "turn", "which"), FOUND)
def test_a_call_that_was_told_wrongly_is_told(
    server: every_k.Server, verb: str, call: str, path: str, turn: int, which: int
) -> None:
    log = [line.split("\t") for line in server.prepare(verb)["log"]]
    k = [number for number, line in enumerate(log, 1) if line[0] == call and path in line[1]][which]
    answer = server.run({"verb": verb, "k": k, "turn": turn})
    assert (answer["outcome"], answer["problems"]) == ("error", [])


def test_each_verb_is_tried(server: every_k.Server) -> None:
    assert set(server.ask({"verbs": True})["verbs"]) == set(every_k.VERBS)
    for verb in ("read: uring", "write", "annotate"):
        log = {line.split("\t")[0] for line in server.prepare(verb)["log"]}
        wanted = {"read: uring": {"ring read", "ring submit"}, "write": {"create", "write", "fsync", "rename"}}
        assert wanted.get(verb, {"link", "unlink", "rename"}) <= log
