"""Runs under tests/faults/calls/inject.c: children that write are killed, fail or write short; checks what is left.

Prints one line of JSON. A problem is an AssertionError and exit code 1.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import penstock

sys.path.insert(0, str(Path(__file__).parents[2] / "faults" / "calls"))

from injector import CHANGES, COUNT, FAIL, KILL, LEAVES, SHORT, Injector

SHARDS = 3
FICLONE = 0x40049409
FEATURES: list[str] | None = None  # of every new dataset in a scenario whose name ends with "+features"
RAISING = ("write", "fsync", "rename", "mkdir", "create")


def documents(shard: int) -> list[tuple[list[int], dict[str, int]]]:
    return [(list(range(shard, shard + 40 * i)), {"shard": shard, "document": i}) for i in range(4)]


def write_whole(path: Path, overwrite: bool = False) -> None:
    size = 4 * 40 + 4 * 80 + 4 * 120 + 1  # each of documents(k) is one shard
    options = {"shard_size": size, "overwrite": overwrite, "features": FEATURES}
    with penstock.Writer(path, {"token": "u4"}, "json", **options) as writer:
        for shard in range(SHARDS):
            for token, metadata in documents(shard):
                writer.append(token=token, metadata=metadata)


def write_shard(path: Path, shard: int, overwrite: bool = False) -> None:
    with penstock.Writer(path, {"token": "u4"}, "json", shard=shard, overwrite=overwrite) as writer:
        for token, metadata in documents(shard):
            writer.append(token=token, metadata=metadata)


def write_shards(path: Path) -> None:
    """Goes on with whatever is there."""
    done = [each.number for each in penstock.finished_shards(path)] if path.exists() else []
    if (path / "dataset.json").exists():
        return
    for shard in range(SHARDS):
        if shard not in done:
            write_shard(path, shard)
    penstock.commit(path, shards=SHARDS, features=FEATURES)


def tree(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def content(path: Path) -> dict[str, bytes]:
    """What is published, by the shards' order: the folders of a dataset that replaced another have other names."""
    manifest = json.loads((path / "dataset.json").read_text())
    del manifest["crc32c"]
    found = {}
    for number, shard in enumerate(manifest["shards"]):
        name = shard.pop("name")
        found |= {f"{number}/{file.name}": file.read_bytes() for file in (path / name).iterdir()}
    if "features" in manifest:
        features = path / manifest["features"].pop("folder")
        found |= {f"features/{name}": data for name, data in tree(features).items()}
    return {"dataset.json": json.dumps(manifest).encode(), **found}


def named(path: Path) -> set[str]:
    """The folders that are a published dataset's."""
    manifest = json.loads((path / "dataset.json").read_text())
    folders = {shard["name"] for shard in manifest["shards"]}
    return folders | ({manifest["features"]["folder"]} if "features" in manifest else set())


def nothing_else(path: Path) -> bool:
    return {each.name for each in path.iterdir()} == {"dataset.json", *named(path)}


def write_old(path: Path) -> None:
    with penstock.Writer(path, {"token": "u4"}, "json", shard_size=20) as writer:
        for number in range(2):
            writer.append(token=[1, 2, 3, 4, 5], metadata={"old": number})


def replace_whole(path: Path) -> None:
    write_whole(path, overwrite=True)


def replace_shards(path: Path) -> None:
    """Goes on with whatever is there, until the new dataset is in the place of the old one."""
    done = [each.number for each in penstock.finished_shards(path, overwrite=True)]
    for shard in range(SHARDS):
        if shard not in done:
            write_shard(path, shard, overwrite=True)
    penstock.commit(path, shards=SHARDS, overwrite=True, features=FEATURES)


def shuffle(path: Path) -> None:
    """Of the dataset "shuffled-from" beside it, in several buckets; goes on with whatever is there."""
    path_in = path.parent / "shuffled-from"
    if not path_in.exists():
        with penstock.Writer(path_in, {"token": "u4"}, "json", shard_size=100_000) as writer:
            for number in range(300):
                writer.append(token=range(number, number * 3), metadata={"number": number})
    penstock.shuffle(path_in, path, seed=3, documents=True, memory=1 << 16, shard_size=100_000, resume=True)


def forked(action: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            action()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def fds() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@dataclass(frozen=True)
class Scenario:
    """What is done to a folder, over an old dataset or none, and what goes on after a kill to what `whole` holds."""

    act: Callable[[Path], None]
    go_on: Callable[[Path], None]
    whole: Path
    old: bool = False


class Driver:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.injector = Injector()
        self.whole = self.reference("whole", write_whole)
        self.shards = self.reference("shards", write_shards)

    def reference(self, name: str, write: Callable[[Path], None]) -> dict[str, bytes]:
        write(self.root / name)
        assert penstock.verify(self.root / name).ok
        return tree(self.root / name)

    def armed(self, mode: int, k: int, error: int, action: Callable[[], None], kinds: int = CHANGES) -> list[str]:
        with self.injector.armed(mode, k, error, kinds):
            action()
        return self.injector.log

    def refusing(self, calls: dict[str, int], action: Callable[[], None], mode: int = COUNT) -> list[str]:
        """What is called where each call of these names fails, as on a file system that does not know it."""
        with self.injector.refusing(calls):
            return self.armed(mode, -1, 0, action)

    def calls(self, write: Callable[[Path], None], name: str = "count") -> list[str]:
        path = self.root / name
        log = self.armed(COUNT, -1, 0, lambda: write(path))
        shutil.rmtree(self.root / Path(name).parts[0])
        return log

    def check_after_death(self, path: Path, reference: dict[str, bytes]) -> bool:
        """Whether it is published; if so it must be whole."""
        if (path / "dataset.json").exists():
            report = penstock.verify(path)
            assert report.ok, report.problems
            published = {name: data for name, data in tree(path).items() if ".partial-" not in name}
            assert published == reference
            return True
        for shard in penstock.finished_shards(path) if path.exists() else []:
            folder = f"{shard.number:05d}/"
            assert all(tree(path)[name] == data for name, data in reference.items() if name.startswith(folder))
        try:
            penstock.verify(path)
        except penstock.NotFoundError as error:
            text = str(error)
            assert "unfinished dataset" in text or "not a dataset" in text or "folder" in text, text
        else:
            raise AssertionError("a dataset without a manifest was verified")
        return False

    def begin(self, name: str, scenario: Scenario) -> Path:
        path = self.root / name
        if scenario.old:
            write_old(path)
        return path

    def kill(self, scenario: Scenario) -> dict:
        """At every moment there is no dataset, or the old one, or the new one, and it is whole; a repeat goes on."""
        path = self.begin("counted", scenario)
        before, after = content(path) if scenario.old else None, content(scenario.whole)
        total, seen = len(self.armed(COUNT, -1, 0, lambda: scenario.act(path), LEAVES)), []
        for k in range(1, total + 1):
            path = self.begin(f"kill{k}", scenario)
            assert forked(lambda path=path, k=k: self.armed(KILL, k, 0, lambda: scenario.act(path), LEAVES)) == 77, k
            if before is None:
                seen.append(self.check_after_death(path, tree(scenario.whole)))
            else:
                seen.append(content(path) == after)
                assert (seen[-1] or content(path) == before) and penstock.verify(path).ok, k
                assert bool(penstock.verify(path).notices) != nothing_else(path), "verify names what is no part of it"
            scenario.go_on(path)
            assert content(path) == after and nothing_else(path), (k, sorted(tree(path)))
            shutil.rmtree(path)
        assert seen == sorted(seen) and set(seen) == {False, True}
        return {"calls": total}

    def fail(self, scenario: Scenario) -> dict:
        """What fails is said, and leaves nothing, or a whole dataset: the old one, until the message says otherwise."""
        path = self.begin("counted", scenario)
        before, after = content(path) if scenario.old else None, content(scenario.whole)
        log, raised = self.armed(COUNT, -1, 0, lambda: scenario.act(path)), 0
        renamed = next(
            k for k, line in enumerate(log, 1) if line.startswith("rename") and line.endswith("/counted/dataset.json")
        )
        for k in range(1, len(log) + 1):
            for error in (errno.EIO,) if scenario.old else (errno.ENOSPC, errno.EIO):
                path, descriptors = self.begin("fail", scenario), fds()
                seen: OSError | None = None
                try:
                    self.armed(FAIL, k, error, lambda path=path: scenario.act(path))
                except OSError as failure:
                    seen, raised = failure, raised + 1
                where = (k, log[k - 1], str(seen))
                assert fds() == descriptors, where
                if seen is None:
                    assert log[k - 1].split("\t")[0] not in RAISING, where
                elif before is None or k <= renamed:  # of what is removed after it, another error may be the last
                    assert isinstance(seen, penstock.IoError) and seen.errno == error, where
                    assert os.strerror(error) in str(seen) and str(path.parent) in str(seen), where
                if seen is not None and before is None:
                    assert not path.exists() or not any(path.iterdir()), where
                else:
                    assert content(path) == (before if seen and k <= renamed else after), where
                    assert penstock.verify(path).ok, where
                shutil.rmtree(path, ignore_errors=True)
        return {"calls": len(log), "raised": raised}

    def fail_shuffle(self) -> dict:
        """What fails is said; finished shards stay and nothing else, and the next run goes on with them."""
        whole = self.reference("shuffled", shuffle)
        log, raised, kept = self.calls(shuffle), 0, 0
        assert {"pwrite", "allocate", "punch"} <= {line.split("\t")[0] for line in log}
        path = self.root / "fail"
        for k in range(1, len(log) + 1):
            before, error = fds(), (errno.ENOSPC, errno.EIO)[k % 2]
            try:
                self.armed(FAIL, k, error, lambda: shuffle(path))
            except OSError as seen:
                raised += 1
                assert isinstance(seen, penstock.IoError) and seen.errno == error, (k, log[k - 1], str(seen))
                assert not (path / "dataset.json").exists(), (k, log[k - 1])
                names = sorted(each.name for each in path.iterdir()) if path.exists() else []
                assert names == [f"{number:05d}" for number in range(len(names))], (k, log[k - 1], names)
                kept += len(names) > 0
            else:
                assert log[k - 1].split("\t")[0] not in (*RAISING, "pwrite"), (k, log[k - 1])
            assert fds() == before, (k, log[k - 1])
            shuffle(path)
            assert tree(path) == whole, (k, log[k - 1])
            shutil.rmtree(path)
        self.armed(SHORT, -1, 0, lambda: shuffle(path))
        assert tree(path) == whole
        return {"calls": len(log), "raised": raised, "kept": kept}

    def short(self) -> dict:
        path = self.root / "short"
        self.armed(SHORT, -1, 0, lambda: write_whole(path))
        assert tree(path) == self.whole
        return {"files": len(self.whole)}

    def copies(self) -> dict:
        """Combining gives the same files where they cannot be linked, nor reflinked, nor copied in the kernel."""
        inputs = [self.root / "large", self.root / "whole"]
        with penstock.Writer(inputs[0], {"token": "u4"}, "json") as writer:
            writer.append(token=range(300_001), metadata={})  # more than one buffer
        penstock.combine(inputs, self.root / "linked")
        linked, asked = tree(self.root / "linked"), set()
        files = len(linked) - 1  # the manifest is written
        refused: dict[str, int] = {}
        for call, error in (("link", errno.EXDEV), ("clone", errno.EOPNOTSUPP), ("copy_range", errno.ENOSYS)):
            refused[call] = error
            for mode in (COUNT, SHORT):
                path = self.root / "copied"
                log = self.refusing(refused, lambda path=path: penstock.combine(inputs, path), mode)
                asked |= {line.split("\t")[0] for line in log}
                assert sum(line.startswith("link\t") for line in log) == files, refused
                assert tree(path) == linked and penstock.verify(path).ok, refused
                assert all(each.stat().st_nlink == 1 for each in path.rglob("*") if each.is_file()), refused
                shutil.rmtree(path)
        assert {"link", "clone", "copy_range"} <= asked
        return {"files": files}

    def reflinks(self) -> dict:
        """Files that cannot be linked are reflinked where the file system can; none is where it cannot."""
        one, two = self.root / "whole/00000/stream.bin", self.root / "probe"
        with one.open("rb") as source, two.open("wb") as target:
            try:
                fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
            except OSError:
                return {"reflinks": 0}
        path = self.root / "cloned"
        log = self.refusing({"link": errno.EXDEV}, lambda: penstock.combine([self.root / "whole"], path))
        calls = [line.split("\t")[0] for line in log]
        assert tree(path) == self.whole and "copy_range" not in calls
        return {"reflinks": calls.count("clone")}

    def no_flock(self) -> dict:
        """Where a file system has no flock, writing goes on, and what others left unfinished is left alone."""
        errors = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
        for error in errors:
            path = self.root / f"flock{error}"
            (path / ".partial-other").mkdir(parents=True)
            log = self.refusing({"flock": error}, lambda path=path: write_whole(path))
            assert sum(line.startswith("flock\t") for line in log) == 1, "a lock that was not had is given back"
            assert (path / ".partial-other").is_dir() and tree(path) == self.whole, errno.errorcode[error]
            write_whole(path, overwrite=True)
            assert (path / ".partial-other").is_dir(), "of whom it is cannot be told"
        try:
            self.refusing({"flock": errno.EIO}, lambda: write_whole(self.root / "flock"))
        except penstock.IoError as error:
            assert error.errno == errno.EIO and not (self.root / "flock").exists()
        else:
            raise AssertionError("a lock that failed was taken for one that was had")
        return {"errors": len(errors)}

    def random(self, runs: int = 20) -> dict:
        """Three processes write a shard each, and all are killed at a random time."""
        seeded, published = random.Random(7), 0
        for run in range(runs):
            path = self.root / f"random{run}"
            children: list[int] = []
            for shard in range(SHARDS):
                child = os.fork()
                if child == 0:
                    try:
                        write_shard(path, shard)
                    finally:
                        os._exit(0)
                children.append(child)
            time.sleep(seeded.uniform(0, 0.03))
            for child in children:
                os.kill(child, signal.SIGKILL)
            for child in children:
                os.waitpid(child, 0)
            published += self.check_after_death(path, self.shards)
            write_shards(path)
            assert tree(path) == self.shards
            shutil.rmtree(path)
        assert published == 0
        return {"runs": runs}

    def run(self, name: str) -> dict:
        how, _, what = name.partition("-")
        scenarios: dict[str, Callable[[], Scenario]] = {
            "whole": lambda: Scenario(write_whole, replace_whole, self.root / "whole"),
            "shards": lambda: Scenario(write_shards, write_shards, self.root / "shards"),
            "shuffle": lambda: Scenario(shuffle, shuffle, self.shuffled()),
            "replace": lambda: Scenario(replace_whole, replace_whole, self.root / "whole", old=True),
            "replace-shards": lambda: Scenario(replace_shards, replace_shards, self.root / "shards", old=True),
            "append": lambda: Scenario(self.append, self.append, self.appended(), old=True),
        }
        if how == "kill":
            return self.kill(scenarios[what]())
        if how == "fail" and what != "shuffle":
            return self.fail(scenarios[what or "whole"]())
        result: dict = getattr(self, name.replace("-", "_"))()
        return result

    def append(self, path: Path) -> None:
        penstock.append(path, self.root / "whole", resume=True)

    def appended(self) -> Path:
        path = self.root / "appended"
        write_old(path)
        self.append(path)
        return path

    def shuffled(self) -> Path:
        self.reference("shuffled", shuffle)
        return self.root / "shuffled"


if __name__ == "__main__":
    scenario, _, features = sys.argv[1].partition("+")
    FEATURES = ["CD4", "GNLY"] if features else None
    print(json.dumps(Driver(Path(sys.argv[2])).run(scenario)))
