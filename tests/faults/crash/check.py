"""What a state that a crash left must be: no dataset, the old one or the new one; said by `info`; gone on with."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import penstock
from crash.scenarios import OUT, Scenario, cached, run
from crash.states import Moment, put

_SHARD = re.compile(r"(\d{5})(\.\d+)?")
_FINISHED = re.compile(r"([\d,]+) finished shard")

Tree = dict[str, bytes]


def tree(path: Path) -> Tree:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@contextlib.contextmanager
def working_in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def content(path: Path) -> Tree:
    """What is published, by the shards' order: names of their folders tell what was there before."""
    manifest = json.loads((path / "dataset.json").read_text())
    del manifest["crc32c"]
    found: Tree = {}
    for number, shard in enumerate(manifest["shards"]):
        found |= {f"{number}/{name}": data for name, data in tree(path / shard.pop("name")).items()}
    if "features" in manifest:
        features = tree(path / manifest["features"].pop("folder"))
        found |= {f"features/{name}": data for name, data in features.items()}
    return {"dataset.json": json.dumps(manifest).encode(), **found}


def named(path: Path) -> set[str]:
    """Of the folder's names, those that the published dataset has."""
    manifest = json.loads((path / "dataset.json").read_text())
    names = {shard["name"] for shard in manifest["shards"]} | {"dataset.json"}
    return names | ({manifest["features"]["folder"]} if "features" in manifest else set())


@dataclass(frozen=True)
class Result:
    """What is there before and after a run: trees of its folder, and of the dataset that is in it."""

    before: Tree
    after: Tree
    old: Tree | None
    new: Tree | None

    @staticmethod
    def of(before: Path, after: Path) -> Result:
        old, new = (content(each / OUT) if (each / OUT / "dataset.json").exists() else None for each in (before, after))
        return Result(tree(before), tree(after), old, new)


class Check:
    """Checks the states of one scenario. One thread: it changes the working directory."""

    def __init__(self, scenario: Scenario, result: Result) -> None:
        self._scenario = scenario
        self._result = result
        self.outcomes: dict[str, int] = {}

    def __call__(self, moment: Moment, folder: Path) -> None:
        """Makes the state in `folder`, which it removes.

        Raises:
            AssertionError, or any other: something else than what is promised is there.
        """
        folder.mkdir()
        try:
            put(moment, folder)
            with working_in(folder):
                outcome = getattr(self, f"_{self._scenario.kind}")(moment)
                assert self._scenario.unsynced or not self._lost(), f"inputs are others: {self._lost()}"
        finally:
            shutil.rmtree(folder)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def _lost(self) -> list[str]:
        """Inputs that are not as they were."""
        inputs = {name: data for name, data in self._result.before.items() if not name.startswith(f"{OUT}/")}
        return [name for name, data in inputs.items() if not Path(name).exists() or Path(name).read_bytes() != data]

    # ---- a dataset

    def _dataset(self, moment: Moment) -> str:
        outcome = self._outcome()
        if "done" in moment.notes:
            assert outcome == "new", f"the run had ended well; there is: {outcome}"
        assert outcome != "none" or self._result.old is None, "the old dataset is gone"
        kept = self._shards(outcome)
        promised = [int(each.split()[1]) for each in moment.notes if each.startswith("shards ")]
        assert outcome == "new" or kept >= max(promised, default=0), f"{kept} of {promised} finished shards are there"
        self._said(outcome)
        if self._scenario.unsynced and self._lost():
            return outcome
        self._scenario.again()
        assert self._outcome() == "new", "going on does not give the new dataset"
        self._said("new")
        return outcome

    def _outcome(self) -> str:
        """none, old or new."""
        out = Path(OUT)
        if not (out / "dataset.json").exists():
            try:
                penstock.open(out)
            except penstock.NotFoundError:
                return "none"
            raise AssertionError("a dataset without a manifest was opened")
        report = penstock.verify(out)
        assert report.ok, report.problems
        found = content(out)
        outcome = "new" if found == self._result.new else "old" if found == self._result.old else "another"
        assert outcome != "another", "it is neither the old dataset nor the new one"
        dataset = penstock.open(out, checks="all")
        assert len(dataset.windows(1).read(range(dataset.records)).records) == dataset.records
        return outcome

    def _shards(self, outcome: str) -> int:
        """How many finished shards are there that are not published; each must be whole."""
        out, count = Path(OUT), 0
        if not out.exists():
            return 0
        published = named(out) if outcome != "none" else set()
        for each in sorted(out.iterdir()):
            if each.name in published or not _SHARD.fullmatch(each.name):
                continue
            found = {f"{OUT}/{each.name}/{name}": data for name, data in tree(each).items()}
            known = [
                {name: data for name, data in whole.items() if name.startswith(f"{OUT}/{each.name}/")}
                for whole in (self._result.before, self._result.after)
            ]
            assert found in known, f"{each.name} has the name of a finished shard, and is none"
            count += found == known[1]
        return count

    def _said(self, outcome: str) -> None:
        """`penstock info` says all that lies there."""
        code, printed, _ = run("info", OUT, "--json")
        found = json.loads(printed)
        out = Path(OUT)
        names = {each.name for each in out.iterdir()} if out.exists() else set()
        if outcome == "none":
            finished = sum(bool(_SHARD.fullmatch(name)) for name in names)
            unfinished = sum(name.startswith(".partial-") for name in names - {".partial-run"})
            assert code != 0, printed
            begun = bool(finished or unfinished or ".partial-run" in names)
            assert ("unfinished dataset" in found["error"]) == begun, printed
            if begun:
                said = _FINISHED.search(found["error"])
                assert said and int(said[1]) == finished, printed
            return
        assert code == 0, printed
        said = "\n".join(found["notices"])
        for name in names - named(out):
            assert name in said or " more:" in said or name == "skipped.jsonl", f"info does not name {name}: {said}"

    # ---- other things

    def _table(self, moment: Moment) -> str:
        """A pack table: none, or the whole one."""
        path = Path("table.pack")
        outcome = "new" if path.exists() else "none"
        assert outcome == "none" or path.read_bytes() == self._result.after["table.pack"], "it is not whole"
        assert outcome == "new" or "done" not in moment.notes, "the run had ended well; there is none"
        self._scenario.again()
        assert path.read_bytes() == self._result.after["table.pack"]
        assert len(penstock.open("a").packed(256, table=path)) > 0
        return outcome

    def _files(self, moment: Moment) -> str:
        """Files of another format: each of them not there, or whole."""
        wanted = {name: data for name, data in self._result.after.items() if name not in self._result.before}
        there = {name for name in wanted if Path(name).exists()}
        for name in there:
            assert Path(name).read_bytes() == wanted[name], f"{name} is not whole"
        assert "done" not in moment.notes or len(there) == len(wanted), "the run had ended well; files are not there"
        self._scenario.again()
        assert all(Path(name).read_bytes() == data for name, data in wanted.items())
        return "new" if len(there) == len(wanted) else "none"

    def _cache(self, moment: Moment) -> str:
        """Whatever is in it, what is read is right, and then it is full of right pages."""
        code, _, errors = run("cache", "cache", "--json")
        assert code == 0 or not Path("cache").exists(), errors
        plain = penstock.open("a").windows(64)
        wrong = 0
        for is_filled in (False, True):
            dataset = cached()
            view = dataset.windows(64)
            assert all(view[i]["token"].tobytes() == plain[i]["token"].tobytes() for i in range(len(plain)))
            counts = dataset.cache_counts
            assert counts["failed"] == 0, counts
            assert not is_filled or (counts["hits"] > 0 and counts["misses"] == counts["wrong"] == 0), counts
            wrong = max(wrong, counts["wrong"])
        return "wrong pages" if wrong else "no wrong page"
