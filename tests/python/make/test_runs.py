"""Several writers of a folder: those of one run and threads work together, others are refused; commit publishes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import InvalidArgumentError
from penstock._cli.main import main
from penstock._make.local_folder import LocalFolder

NODE = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]


def shard(path: Path, number: int, **options: Any) -> penstock.Writer:
    writer = penstock.Writer(path, {"token": "u2"}, shard=number, **options)
    writer.append(token=[number] * 3)
    return writer


def put(path: Path, lines: str = '{"ids": [1, 2]}\n' * 9) -> Path:
    path.write_text(lines)
    return path


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


def test_a_second_run_is_refused_while_the_first_works(tmp_path: Path) -> None:
    out, text, refused = tmp_path / "out", put(tmp_path / "a.jsonl"), []

    def others(*_: object) -> None:
        """What somebody else does meanwhile."""
        for call in (
            lambda: penstock.write(text, out, ids_column="ids", overwrite=True),
            lambda: penstock.write(text, out, ids_column="ids", resume=True),
            lambda: penstock.Writer(out, {"token": "u2"}),
            lambda: penstock.Writer(out, {"token": "u2"}, overwrite=True),
            lambda: penstock.Writer(out, {"token": "u2"}, shard=0),
            lambda: penstock.commit(out),
        ):
            with pytest.raises(InvalidArgumentError, match="another writer is at work in this folder") as raised:
                call()
            refused.append(raised)

    penstock.write(text, out, ids_column="ids", progress=others)
    with penstock.Writer(tmp_path / "written", {"token": "u2"}) as writer:
        out = tmp_path / "written"
        writer.append(token=[1])
        others()
    for each in (tmp_path / "out", out):
        assert penstock.verify(each).ok and names(each) == ["00000", "dataset.json"]
    assert len(refused) >= 12
    penstock.write(text, out, ids_column="ids", overwrite=True)


def test_a_run_that_writes_nothing_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        penstock.write(put(tmp_path / "bad.jsonl", "no json\n"), tmp_path / "out", ids_column="ids")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("run", ["nightly", None])
def test_writers_of_one_run_work_together_and_others_are_refused(tmp_path: Path, run: str | None) -> None:
    path = tmp_path / "d"
    one, two = shard(path, 0, run=run), shard(path, 1, run=run)
    for other in {"nightly", "weekly", None} - {run}:
        with pytest.raises(InvalidArgumentError, match=f"another writer is at work.*{run or ''}"):
            shard(path, 2, run=other)
    two.commit()
    with pytest.raises(InvalidArgumentError, match="another writer"):
        penstock.commit(path, run="weekly")
    with pytest.raises(InvalidArgumentError, match=r"another writer.*finished shards are kept"):
        penstock.commit(path, run=run)
    one.commit()
    penstock.commit(path, run=run, shards=2)
    assert names(path) == ["00000", "00001", "dataset.json"] and penstock.verify(path).ok
    assert not any(b"nightly" in each.read_bytes() for each in path.rglob("*") if each.is_file())


@pytest.mark.parametrize("run", ["a b", "a/b", "ä", "x" * 65, "a@b"])
def test_names_that_a_run_cannot_have(tmp_path: Path, run: str) -> None:
    with pytest.raises(InvalidArgumentError, match="a run's name has at most 64"):
        shard(tmp_path / "d", 0, run=run)


# Locks may be local to a node: what lies there under another node's name may be alive.
def test_leftovers_of_other_nodes_and_runs_stay(tmp_path: Path) -> None:
    path = tmp_path / "d"
    shard(path, 0, run="mine").commit()
    left = {
        "ours, dead": f".partial-00001@{NODE}@other@1-0",
        "another node": ".partial-00001@deadbeef@other@1-0",
        "another node, this run": ".partial-00001@deadbeef@mine@1-0",
        "another node, no run": ".partial-00001@deadbeef@@1-0",
        "who knows": ".partial-00001-1-0",
    }
    for name in left.values():
        (path / name).mkdir()
    penstock.commit(path, run="mine")
    stays = {what for what, name in left.items() if (path / name).exists()}
    assert stays == {"another node", "another node, no run", "who knows"}
    text = put(tmp_path / "a.jsonl")
    for clean, count in ((False, 3), (True, 0)):
        penstock.write(text, path, ids_column="ids", overwrite=True, clean=clean)
        assert sum(name.startswith(".partial") for name in names(path)) == count


# ---- commit


def test_named_shards_are_published_with_gaps_between_them(tmp_path: Path) -> None:
    for number in (1, 4, 9):
        shard(tmp_path, number, task={"input": number}).commit()
    refused: list[tuple[Any, str]] = [
        (None, "shard 00000 is missing"),
        ([1, 4], "shard 00009 is finished, and is not one of those"),
        ([4, 9], "shard 00001 is finished, and is not one of those"),
        ([1, 4, 5, 9], "shard 00005 is missing"),
        ([0, 1, 4, 9], "shard 00000 is missing"),
        ([1, 4, 9, 10], "shard 00010 is missing"),
        ([], "shard 00001 is finished, and is not one of those"),
        ([4, 1, 9], "give the numbers in order, each once"),
        ([1, 1, 4, 9], "give the numbers in order, each once"),
    ]
    for shards, words in refused:
        with pytest.raises(InvalidArgumentError, match=words):
            penstock.commit(tmp_path, shards=shards)
    tasks = [{"input": number} for number in (1, 4, 9)]
    for others in ([tasks[0], {"input": 7}, tasks[2]], tasks[:1]):
        with pytest.raises(InvalidArgumentError, match="00004: it was made of another input"):
            penstock.commit(tmp_path, shards=[1, 4, 9], tasks=others)
    assert not (tmp_path / "dataset.json").exists()
    assert penstock.commit(tmp_path, shards=[1, 4, 9], tasks=tasks) == penstock.open(tmp_path).fingerprint
    assert penstock.open(tmp_path).windows(9)[0]["token"].tolist() == [1] * 3 + [4] * 3 + [9] * 3
    assert penstock.verify(tmp_path)
    assert [each.task for each in penstock.finished_shards(tmp_path)] == tasks


def test_the_command_publishes_and_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    for number in (0, 1, 3):
        shard(tmp_path / "out", number).commit()
    assert main(["commit", out, "--shards", "4"]) == 2
    assert "shard 00002 is missing" in capsys.readouterr().err
    shard(tmp_path / "out", 2).commit()
    assert main(["commit", out, "--shards", "4", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["shards"], said["records"]) == (4, 12)
    assert main(["commit", out]) == 2
    assert "there is a published dataset" in capsys.readouterr().err


# ---- threads that share a Writer


@pytest.mark.parametrize("layout", ["compact", "ids"])
def test_threads_may_share_a_writer(tmp_path: Path, layout: str) -> None:
    errors: list[BaseException] = []
    path, each_has = tmp_path / "data", 150
    with penstock.Writer(path, {"token": "u4"}, "raw", layout=layout, shard_size=1 << 13) as writer:

        def work(first: int) -> None:
            try:
                for value in range(first, first + each_has):
                    tokens = np.full(1 + value % 50, value, "u4")
                    if value % 3:
                        writer.append(token=tokens, metadata=b"%06d" % value)
                    else:
                        writer.append_batch([len(tokens)], encoded=[b"%06d" % value], token=tokens)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(i * each_has,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not errors and penstock.verify(path).ok
    if layout == "ids":
        penstock.convert(path, tmp_path / "compact", "compact")
        path = tmp_path / "compact"
    found = []
    for document in penstock.open(path, checks="all").documents():
        found.append(int(document.spans[0].raw))
        assert document["token"].tolist() == [found[-1]] * (1 + found[-1] % 50)
    assert sorted(found) == list(range(4 * each_has))


def test_a_commit_beside_appends_ends_whole_or_refuses(tmp_path: Path) -> None:
    for attempt in range(3):
        path, started, refused = tmp_path / str(attempt), threading.Event(), []
        writer = penstock.Writer(path, fields={"token": "u4"}, metadata="raw")

        def work(writer: penstock.Writer = writer, started: Any = started, said: list[str] = refused) -> None:
            try:
                for _ in range(100_000):
                    writer.append(token=[1, 2, 3], metadata=b"x")
                    started.set()
            except InvalidArgumentError as error:
                said.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        writer.commit()
        thread.join()
        assert "closed" in refused[0] and penstock.verify(path).ok
        assert len(penstock.open(path).documents()) > 0


def test_what_killed_workers_had_brought_goes(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "a", {"token": "u2"}) as writer:
        writer.append(token=[1])
    out, ended = tmp_path / "out", subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for kind in ("brought", "changed", "dataset"):
        put(mkdir(out / f".partial-shards@{NODE}@0123456789abcdef@{ended.pid}-abc" / kind / "00000") / "stream.bin")
    penstock.combine([tmp_path / "a"], out, workers=2, resume=True)
    assert names(out) == ["00000", "dataset.json"]


def mkdir(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


@pytest.mark.parametrize("when", ["as the note is written", "behind the publishing"])
def test_an_interrupt_leaves_no_note_that_nobody_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    np.arange(1000, dtype="u2").tofile(tmp_path / "a.bin")
    where, name = (os, "fsync") if when == "as the note is written" else (LocalFolder, "publish")
    before: Any = getattr(where, name)

    def then_interrupted(*given: Any) -> None:
        before(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(where, name, then_interrupted)
    words = "nothing was published" if name == "fsync" else "the new dataset is published"
    with pytest.raises(KeyboardInterrupt, match=words):
        penstock.import_tokens(tmp_path / "a.bin", tmp_path / "out", dtype="u2")
    there = names(tmp_path / "out") if (tmp_path / "out").exists() else []
    assert there == ([] if name == "fsync" else ["00000", "dataset.json"])
