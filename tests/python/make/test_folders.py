"""What every folder of shards promises to those who make them: a local one, a bucket's, and one in memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._make.folder import Folder, Publication
from penstock._make.folders import folder_of
from penstock._make.publishing import publication_of
from penstock._make.writer import Writer
from penstock._places import buckets
from penstock._places.buckets import Credentials

Make = Callable[[], Folder]  # of the same place, each time another object


@pytest.fixture(params=["local", "bucket", "memory"])
def make(request: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    if request.param == "local":
        return lambda: folder_of(tmp_path / "out")
    pytest.importorskip("obstore")
    if request.param == "bucket":
        place = request.getfixturevalue("place")
        return lambda: folder_of(place.url, place.storage, tmp_path / "scratch")
    from obstore.store import MemoryStore

    store = MemoryStore()
    monkeypatch.setattr(buckets, "bucket_of", lambda *given: (store, "in memory"))
    monkeypatch.setattr(buckets, "credentials_of", lambda *given: Credentials("in memory", None))
    return lambda: folder_of("s3://memory/out", None, tmp_path / "scratch")


def write(folder: Folder, number: int, task: Any = None, value: int = 1, overwrite: bool = False) -> None:
    options: dict[str, Any] = {"run": "r", "overwrite": overwrite, "task": {"number": number} if task is None else task}
    with Writer(folder, {"token": "u2"}, "boundaries", shard=number, **options) as writer:
        writer.append(token=np.full(10, value))


def publication(shards: int, **given: Any) -> Publication:
    wanted = {"overwrite": False, "tasks": None, "run": "r", "features": None, "tokenizer": {"name": "t"}} | given
    tokenizer = wanted.pop("tokenizer")
    return publication_of(tokenizer, shards, wanted["overwrite"], wanted["tasks"], wanted["run"], wanted["features"])


def numbers(folder: Folder, overwrite: bool = False) -> list[int]:
    return [each.number for each in folder.finished(overwrite, now=True)]


class TestFolder:
    def test_finished_shards_are_seen_removed_and_published_as_a_dataset(self, make: Make) -> None:
        folder = make()
        folder.hold("r")
        assert not folder.is_published and not [name for name in folder.notes() if not name.startswith(".partial")]
        folder.make()
        for number in range(3):
            write(folder, number)
        found = folder.finished(False, now=True)
        assert [(each.number, each.task, each.records, each.spans) for each in found] == [
            (number, {"number": number}, 10, 1) for number in range(3)
        ]
        folder.remove([1], False, "r")
        assert numbers(folder) == [0, 2]
        with pytest.raises(penstock.InvalidArgumentError, match="shard 00001 is missing"):
            folder.publish(publication(3))
        write(folder, 1)
        fingerprint = folder.publish(publication(3, tasks=[{"number": number} for number in range(3)]))
        folder.close()
        after = make()
        after.hold("s")
        assert after.is_published and len(fingerprint) == 32 and after.size_bytes() > 0
        after.close()

    def test_a_shard_of_another_task_is_not_published(self, make: Make) -> None:
        folder = make()
        folder.make()
        write(folder, 0, task={"number": 9})
        with pytest.raises(penstock.InvalidArgumentError, match="made of another input or with other options"):
            folder.publish(publication(1, tasks=[{"number": 0}]))

    def test_a_finished_shard_is_not_written_over(self, make: Make) -> None:
        folder = make()
        folder.make()
        write(folder, 0)
        try:
            write(folder, 0)  # in a bucket the same bytes have the same name
        except penstock.InvalidArgumentError as error:
            assert "00000" in str(error)
        assert numbers(folder) == [0]

    def test_a_published_dataset_stays_until_another_takes_its_place(self, make: Make) -> None:
        first = make()
        first.make()
        write(first, 0)
        before = first.publish(publication(1))
        with pytest.raises(penstock.InvalidArgumentError, match="published dataset"):
            first.publish(publication(1))
        second = make()
        second.hold("r")
        write(second, 0, value=2, overwrite=True)
        assert numbers(second) == [0] and numbers(second, overwrite=True) == [0]
        assert second.publish(publication(1, overwrite=True)) != before
        second.close()

    def test_who_held_it_before_another_published_does_not_publish_over_it(self, make: Make) -> None:
        late, other = make(), make()
        late.hold("late")
        other.make()
        try:
            other.hold("r")
        except penstock.InvalidArgumentError as error:  # where a place can be held
            assert "at work" in str(error) or "run" in str(error)
            late.close()
            return
        write(other, 0)
        other.publish(publication(1))
        with pytest.raises(penstock.InvalidArgumentError, match="someone else has published"):
            late.publish(publication(1, overwrite=True))

    def test_notes_lie_beside_the_shards_and_are_whole_or_not_there(self, make: Make) -> None:
        folder = make()
        folder.make()
        assert folder.read_note("list.jsonl") is None
        folder.write_note("list.jsonl", b"a\n")
        folder.write_note("list.jsonl", b"b\n" * 1000)
        assert folder.read_note("list.jsonl") == b"b\n" * 1000
        assert make().notes() == {"list.jsonl"}
        folder.remove_notes(["list.jsonl", "never.jsonl"])
        assert make().notes() == set() and make().read_note("list.jsonl") is None

    def test_what_is_put_aside_is_gone_when_it_is_left(self, make: Make) -> None:
        folder = make()
        folder.make()
        with folder.aside("r", "test") as aside:
            (aside / "file").write_bytes(b"1")
            assert aside.is_dir()
        assert not aside.exists() and folder.notes() == set()

    def test_it_travels_to_workers(self, make: Make) -> None:
        folder = make()
        if "memory" in folder.path:
            pytest.skip("a store in memory belongs to this process")
        folder.hold("r")
        folder.make()
        there = pickle.loads(pickle.dumps(folder.absolute()))
        assert there.is_there() and there.path in (folder.path, str(Path(folder.path).absolute()))
        write(there, 0)
        assert numbers(folder) == [0]
        folder.close()
