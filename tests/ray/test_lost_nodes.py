"""`make ray-nodes` in short: a node is killed in a shuffle, an import and a read. Its checks find what is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import penstock
import pytest
from lost_nodes import Trials, WrongError, check_same, check_unpublished, tree
from lost_verbs import NAMED


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    made = Trials(tmp_path_factory.mktemp("lost"))
    yield made
    made.nodes.close()


@pytest.mark.parametrize(
    ("verb", "how", "moment"), [("shuffle", "node", 4), ("import", "raylet", 6), ("read", "node", 5)]
)
def test_a_run_outlives_a_killed_node(trials: Trials, verb: str, how: str, moment: int) -> None:
    seen = trials.one(NAMED[verb], how, moment)
    assert seen.killed, seen
    assert not seen.wrong, seen


def write(out: Path) -> None:
    for shard in range(3):
        with penstock.Writer(out, {"token": "u2"}, "json", shard=shard) as writer:
            writer.append(token=range(100), metadata=shard)


def flip(out: Path) -> None:
    file = out / "00001" / "stream.bin"
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")


def make_anew(out: Path) -> None:
    shutil.rmtree(out)
    with penstock.Writer(out, {"token": "u2"}, "json") as writer:
        writer.append(token=range(100), metadata=0)


@pytest.mark.parametrize(
    "break_it",
    [
        flip,
        make_anew,
        lambda out: shutil.rmtree(out / "00002"),
        lambda out: (out / "00001" / "more").touch(),
        lambda out: (out / ".partial-00001@0@0@1-1").mkdir(),
        lambda out: (out / "00001.1").mkdir(),
        lambda out: (out.parent / "penstock-scratch-1").mkdir(),
    ],
    ids=["flipped bit", "other data", "lost shard", "more files", "unfinished shard", "other shard", "scratch"],
)
def test_what_is_not_the_same_is_found(tmp_path: Path, break_it: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    write(out)
    penstock.commit(out, shards=3)
    whole = tree(out)
    check_same(out, whole)
    break_it(out)
    with pytest.raises((WrongError, penstock.Error)):
        check_same(out, whole)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda out: penstock.commit(out, shards=3),
        lambda out: (out / ".partial-00001@0@0@1-1").mkdir(),
        lambda out: (out / "00003").mkdir(),
    ],
    ids=["published", "unfinished shard", "no shard"],
)
def test_what_an_error_may_not_leave_is_found(tmp_path: Path, break_it: Callable[[Path], None]) -> None:
    out = tmp_path / "out"
    write(out)
    check_unpublished(out)
    break_it(out)
    with pytest.raises((WrongError, penstock.Error)):
        check_unpublished(out)
