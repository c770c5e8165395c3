"""The contract of verbs: the same bytes on any workers, in a folder and in a bucket, whatever ended a run before.

Each verb that has workers is run for it; what only one of them promises lies in its own file. Runs that are killed or
interrupted are processes, and a bucket is moto's: both take seconds.
"""

from __future__ import annotations

import json
import multiprocessing
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

pytest.importorskip("obstore")
pytest.importorskip("anndata")
pytest.importorskip("h5py")
pytest.importorskip("msgpack")

import _anndata_files
from _datasets import with_everything
from _fault_servers import fault_proxy
from _places import SECRET, SHARD_BYTES, Place, tree, without_names
from _recipes import Near
from _token_files import put_datatrove
from penstock import InvalidArgumentError, IoError, Storage
from penstock._data.anndata.limits import Limits
from penstock._from.cells import recipe as cells
from text_corpus import rows, train_tokenizer, write_jsonl

pytestmark = pytest.mark.filterwarnings("ignore:.*ImplicitModificationWarning.*")

LIMITS = {"values": 500, "cells": 70, "task_values": 3_000, "stores": 1}  # so that there are several tasks


@dataclass(frozen=True)
class Recipe:
    """Puts its input into a folder, and makes a dataset of it: by a call, and by a command."""

    put: Callable[[Path], Path]
    verb: Callable[..., Any]
    options: dict[str, Any]
    command: str  # and its options but for --out

    def make(self, data: Path, out: Any, **options: Any) -> Any:
        return self.verb(data, out, **{**self.options, **options})

    def commanded(self, data: Path, out: Any, *more: object) -> list[str]:
        words, program = self.command.split(), data.parent / "program.py"
        program.write_text(PROGRAM)
        return [*map(str, (sys.executable, program, words[0], data, "--out", out, *words[1:], "--json", *more))]


PROGRAM = f"""
import sys
from penstock._from.cells import recipe as cells
from penstock._data.anndata.limits import Limits
from penstock._cli.main import main

if __name__ == "__main__":
    cells.LIMITS = Limits(**{LIMITS})
    sys.exit(main(sys.argv[1:]))
"""


def put_dataset(folder: Path) -> Path:
    return with_everything(folder / "in", SHARD_BYTES)


def put_ids(folder: Path) -> Path:
    ids = np.random.default_rng(0).integers(0, 60_000, (200, 150)).tolist()
    (folder / "ids.jsonl").write_text("".join(f'{{"ids": {each}}}\n' for each in ids))
    return folder / "ids.jsonl"


def put_cells(kind: str) -> Callable[[Path], Path]:
    return lambda folder: _anndata_files.write(
        _anndata_files.as_kind(_anndata_files.make(), kind), folder / f"{kind}.h5ad"
    )


def put_text(folder: Path) -> Path:
    return write_jsonl(folder / "text.jsonl", rows()[:200])


def write_by_processes(data: Path, out: Any, **options: Any) -> Any:
    tokenizer = data.parent / "tokenizer.json"
    if not tokenizer.exists():
        train_tokenizer(tokenizer)
    return penstock.write(data, out, tokenizer=tokenizer, tokenizer_engine="tokenizers", **options)


BY_PROCESSES = Recipe(put_text, write_by_processes, {"shard_size": 1 << 14}, "")  # the others have threads
RECIPES = {
    "text": Recipe(
        put_ids,
        penstock.write,
        {"ids_column": "ids", "dtype": "u2", "shard_size": 1 << 14},
        "write --ids-column ids --dtype u2 --shard-size 16384",
    ),
    "tokens": Recipe(put_datatrove, penstock.import_tokens, {"shard_size": 1 << 15}, "import --shard-size 32768"),
    "cells by rows": Recipe(put_cells("csr"), penstock.import_anndata, {}, "import"),
    "cells by columns": Recipe(put_cells("csc"), penstock.import_anndata, {}, "import"),
    "shuffled documents": Recipe(
        put_dataset,
        penstock.shuffle,
        {"seed": 3, "documents": True, "shard_size": SHARD_BYTES, "memory": 1 << 18},
        f"shuffle --seed 3 --documents --shard-size {SHARD_BYTES} --memory 262144",
    ),
    "shuffled windows": Recipe(
        put_dataset,
        penstock.shuffle,
        {"seed": 3, "window": 100, "shard_size": SHARD_BYTES, "memory": 1 << 18},
        f"shuffle --seed 3 --window 100 --shard-size {SHARD_BYTES} --memory 262144",
    ),
}


@pytest.fixture(params=RECIPES)
def recipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setattr(cells, "LIMITS", Limits(**LIMITS))  # of workers too
    return {**RECIPES, "text by processes": BY_PROCESSES}[request.param]


NEAR = Near()
ONE_OF_EACH = ("text", "tokens", "cells by rows", "shuffled documents")  # where kinds of input make no difference


def for_recipes(names: str, cases: Iterable[Any]) -> Any:
    """A test of these recipes, each with other values."""
    return pytest.mark.parametrize(f"recipe, {names}" if names else "recipe", cases, indirect=["recipe"])


@pytest.fixture
def data(recipe: Recipe, tmp_path: Path) -> Path:
    return recipe.put(tmp_path)


def content(files: dict[str, bytes]) -> tuple[dict[str, bytes], Any]:
    """Files as a first local writer names their folders, and the manifest without these names."""
    split = {name: name.partition("/") for name in files if "/" in name}
    found = {f"{re.split('[-.]', folder)[0]}/{rest}": name for name, (folder, _, rest) in split.items()}
    assert len(found) == len(files) - 1 and "dataset.json" in files  # and nothing else is there
    manifest = without_names(files["dataset.json"])
    manifest.get("features", {}).pop("folder", None)
    return {name: files[own] for name, own in found.items() if name != "features/dataset.json"}, manifest


def at(fraction: float, then: Callable[[], None]) -> Callable[..., None]:
    """A `progress` that calls once so much is done."""
    called: list[int] = []

    def progress(done: int, total: int, *_: object) -> None:
        if done >= fraction * total and done > 0 and not called:
            called.append(done)
            then()

    return progress


def stop() -> None:
    raise KeyboardInterrupt


def kill_workers() -> None:
    for child in multiprocessing.active_children():
        child.kill()


def shards_in(path: Any, **where: Any) -> int:
    return len(penstock.open(path, **where).shards)


REFUSED = "holds a dataset already|a published dataset"
KEPT = "finished shards? (is|are) kept: go on with (--resume|resume=True)"


class TestInAFolder:
    def test_workers_make_the_bytes_of_one_process(self, recipe: Recipe, data: Path, tmp_path: Path) -> None:
        told: list[tuple[int, int]] = []
        recipe.make(data, tmp_path / "one", progress=lambda *each: told.append(each[:2]))
        recipe.make(data, tmp_path / "many", workers=2)
        assert tree(tmp_path / "many") == tree(tmp_path / "one") and shards_in(tmp_path / "one") > 2
        assert told == sorted(told) and told[-1][0] == told[-1][1] > 0
        assert penstock.verify(tmp_path / "one") and not list(tmp_path.glob(".*"))

    @for_recipes("workers", [*((name, 1) for name in ONE_OF_EACH), ("tokens", 2), ("shuffled documents", NEAR)])
    def test_a_stopped_run_is_told_and_goes_on(self, recipe: Recipe, data: Path, tmp_path: Path, workers: Any) -> None:
        out = tmp_path / "out"
        with pytest.raises(KeyboardInterrupt) as stopped:
            recipe.make(data, out, workers=workers, progress=at(0.8, stop))
        assert re.search(KEPT, str(stopped.value)) or recipe.verb is penstock.shuffle  # of which the command tells it
        kept = {each.name: each.stat().st_ino for each in out.glob("0*/shard.json")}
        assert not (out / "dataset.json").exists() and not list(out.glob(".partial-*"))
        with pytest.raises(InvalidArgumentError, match=r"finished shard.*resume"):
            recipe.make(data, out)
        recipe.make(data, out, workers=workers, resume=True)
        assert kept.items() <= {each.name: each.stat().st_ino for each in out.glob("0*/shard.json")}.items()
        recipe.make(data, tmp_path / "whole")
        assert content(tree(out)) == content(tree(tmp_path / "whole"))
        assert not [each for each in out.iterdir() if each.name.startswith(".import")]

    @for_recipes("", ONE_OF_EACH)
    def test_what_is_there_is_refused_kept_or_replaced(self, recipe: Recipe, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        recipe.make(data, out)
        before = tree(out)
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            recipe.make(data, out)
        recipe.make(data, out, resume=True)
        assert tree(out) == before
        with pytest.raises(KeyboardInterrupt):
            recipe.make(data, out, overwrite=True, progress=at(0.8, stop))
        assert penstock.verify(out) and penstock.open(out).fingerprint  # what is published stays until the new is whole
        recipe.make(data, out, overwrite=True)
        assert content(tree(out)) == content(before)

    @for_recipes("when", [("text by processes", 0), ("cells by rows", 0), ("shuffled documents", 0.5)])
    def test_a_killed_worker_is_told_and_the_run_goes_on(
        self, recipe: Recipe, data: Path, tmp_path: Path, when: float
    ) -> None:
        with pytest.raises(RuntimeError, match="was killed by SIGKILL") as killed:
            recipe.make(data, tmp_path / "out", workers=2, progress=at(when, kill_workers))
        assert re.search(f"{KEPT}|no shard was finished: start again", str(killed.value))
        assert not list(tmp_path.glob("out/dataset.json")) and not list(tmp_path.glob("out/.partial-*"))
        recipe.make(data, tmp_path / "out", workers=2, resume=True)
        recipe.make(data, tmp_path / "whole")
        assert tree(tmp_path / "out") == tree(tmp_path / "whole")

    @for_recipes("how", [("text", signal.SIGINT), ("tokens", signal.SIGINT), ("shuffled documents", signal.SIGKILL)])
    def test_an_ended_run_goes_on(self, recipe: Recipe, data: Path, tmp_path: Path, how: signal.Signals) -> None:
        out = tmp_path / "out"
        command = recipe.commanded(data, out, "--workers", 2)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and not list(out.glob("0*")):
            time.sleep(0.001)
        process.send_signal(how)
        said = process.communicate(timeout=60)[1]
        if how == signal.SIGINT and process.returncode != 0:  # else it was quicker
            assert process.returncode == 130 and not list(out.glob(".partial-*"))
            assert "nothing was published" in said and "go on with --resume" in said
        until = time.monotonic() + 20  # workers end when they see that their run is gone
        while (done := subprocess.run([*command, "--resume"], capture_output=True, text=True)).returncode != 0:
            assert "another writer" in done.stderr and time.monotonic() < until, done.stderr
            time.sleep(0.1)
        recipe.make(data, tmp_path / "whole")
        assert content(tree(out)) == content(tree(tmp_path / "whole"))


@pytest.fixture
def into(place: Place, tmp_path: Path) -> dict[str, Any]:
    return {"storage": place.storage, "scratch": tmp_path / "scratch"}


def check(recipe: Recipe, data: Path, place: Place, tmp_path: Path) -> None:
    """Asserts that the bucket has the bytes of a local run, and that nothing is left here."""
    recipe.make(data, tmp_path / "local")
    assert content(place.files()) == content(tree(tmp_path / "local"))
    assert penstock.verify(place.url, storage=place.storage)
    assert list((tmp_path / "scratch").iterdir()) == []


def failing(shard: str) -> Callable[[str, str, int], str | None]:
    return lambda method, path, number: "503" if method == "PUT" and f"/{shard}-" in path else None


def holding(shard: str, held: threading.Event, over: threading.Event) -> Callable[[str, str, int], str | None]:
    """Lets the shard.json of this shard not through."""

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and f"/{shard}-" in path and path.endswith("shard.json"):
            held.set()
            over.wait(100)
            return "reset"
        return None

    return fault


class TestInABucket:
    @for_recipes("workers", [(name, 2 if name in ("text", "tokens") else NEAR) for name in RECIPES])
    def test_the_bytes_are_those_of_a_folder(
        self, recipe: Recipe, data: Path, place: Place, into: dict[str, Any], tmp_path: Path, workers: Any
    ) -> None:
        told: list[tuple[int, int]] = []
        recipe.make(data, place.url, workers=workers, progress=lambda *each: told.append(each[:2]), **into)
        assert told[-1][0] == told[-1][1] > 0
        check(recipe, data, place, tmp_path)
        here, there = penstock.open(tmp_path / "local"), penstock.open(place.url, storage=place.storage)
        assert there.fingerprint == here.fingerprint
        if here.features is not None:
            assert there.features is not None and list(there.features.names) == list(here.features.names)

    @for_recipes("", ["text", "cells by rows", "shuffled documents"])
    def test_what_is_there_is_refused_kept_or_replaced(
        self, recipe: Recipe, data: Path, place: Place, into: dict[str, Any], tmp_path: Path
    ) -> None:
        recipe.make(data, place.url, **into)
        before = place.files()
        with pytest.raises(InvalidArgumentError, match=REFUSED):
            recipe.make(data, place.url, **into)
        recipe.make(data, place.url, resume=True, **into)
        assert place.files() == before
        recipe.make(data, place.url, overwrite=True, **into)
        manifest = json.loads(place.files()["dataset.json"])
        named = {*(each["name"] for each in manifest["shards"]), manifest.get("features", {}).get("folder")} - {None}
        assert {name.split("/")[0] for name in place.files() if "/" in name} == named
        check(recipe, data, place, tmp_path)

    @for_recipes("", ["tokens", "shuffled documents"])
    def test_of_two_at_once_the_second_is_refused(
        self, recipe: Recipe, data: Path, place: Place, into: dict[str, Any], tmp_path: Path
    ) -> None:
        recipe.make(data, place.url, **into)
        other = at(1, lambda: recipe.make(data, place.url, overwrite=True, **into))
        with pytest.raises(InvalidArgumentError, match="someone else has published"):
            recipe.make(data, place.url, overwrite=True, progress=other, **into)
        check(recipe, data, place, tmp_path)

    @for_recipes(
        "workers, then",
        [
            ("text", 2, "overwrite"),
            ("text", 1, "resume"),
            ("tokens", 1, "resume"),
            ("cells by rows", NEAR, "overwrite"),
            ("shuffled documents", 1, "resume"),
            ("shuffled documents", NEAR, "overwrite"),
        ],
    )
    def test_a_failed_upload_is_one_error_and_the_next_run_is_whole(
        self, recipe: Recipe, data: Path, place: Place, s3_server: str, tmp_path: Path, workers: Any, then: str
    ) -> None:
        scratch = tmp_path / "failed"
        with fault_proxy(s3_server, failing("00001")) as proxy:
            storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
            with pytest.raises(IoError, match="503") as raised:
                recipe.make(data, place.url, storage=storage, scratch=scratch, workers=workers)
        assert SECRET not in str(raised.value)
        if recipe.verb is penstock.shuffle:  # of which the command tells what is kept
            assert list(scratch.iterdir()) == [] and "the shard stays" not in str(raised.value)
        else:
            assert list(scratch.rglob("stream.bin")) and "the shard stays here" in str(raised.value)
            assert re.search(KEPT, str(raised.value))
        assert "dataset.json" not in place.files()
        assert "00000" in {name.split("-")[0] for name in place.files() if name.endswith("/shard.json")}
        with pytest.raises(InvalidArgumentError, match="finished shard"):
            recipe.make(data, place.url, storage=place.storage)
        into = {"storage": place.storage, "scratch": tmp_path / "scratch", then: True}
        recipe.make(data, place.url, workers=workers, **into)
        check(recipe, data, place, tmp_path)

    @for_recipes("how", [("tokens", signal.SIGINT), ("cells by rows", signal.SIGKILL)])
    def test_an_ended_run_goes_on(
        self, recipe: Recipe, data: Path, place: Place, s3_server: str, tmp_path: Path, how: signal.Signals
    ) -> None:
        where = ["--region", "us-east-1", "--scratch", tmp_path / "scratch", "--workers", 2, "--endpoint"]
        held, over = threading.Event(), threading.Event()
        with fault_proxy(s3_server, holding("00001", held, over)) as proxy:
            command = recipe.commanded(data, place.url, *where, proxy.address)
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            assert held.wait(200)
            while not any(name.startswith("00000-") and name.endswith("shard.json") for name in place.files()):
                assert process.poll() is None
            process.send_signal(how)
            said = process.communicate(timeout=60)[1]
            over.set()
        if how == signal.SIGINT:
            assert process.returncode == 130 and "interrupted: nothing was published" in said
            assert list((tmp_path / "scratch").iterdir()) == []
        assert "dataset.json" not in place.files()
        command = recipe.commanded(data, place.url, *where, s3_server, "--resume")
        again = subprocess.run(command, capture_output=True, text=True)
        assert again.returncode == 0, again.stderr
        check(recipe, data, place, tmp_path)
