"""Messages that quote what a user or a file says: at most 500 characters, whatever that is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import Mixture, Stage, columns, orders
from penstock._cli.main import main

MOST = 500
TEXT = "x\n" * 50_000
HUGE: dict[str, Any] = {
    "a text": TEXT,
    "a number": 10**5_000,
    "a list": [TEXT] * 9,
    "a mapping": {TEXT: TEXT},
    "bytes": TEXT.encode(),
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path = tmp_path_factory.mktemp("short") / "corpus"
    with penstock.Writer(path, {"token": "u2"}, metadata="json", columns={"n": "u4"}) as writer:
        for number in range(9):
            writer.append(token=range(20), metadata={"n": number}, columns={"n": number})
    return penstock.open(path)


def calls_of(dataset: Any, path: Path) -> dict[str, Callable[[Any], Any]]:
    view = dataset.windows(4)
    writer = {"path": path / "new", "fields": {"token": "u2"}}
    loader = {"view": view, "batch_size": 2}
    found: dict[str, Callable[[Any], Any]] = {
        "open": penstock.open,
        "verify": penstock.verify,
        "field": lambda given: view[0][given],
        "batch field": lambda given: view.read([0])[given],
        "loader attribute": lambda given: getattr(penstock.Loader(view, 2), str(given)),
        "loader argument": lambda given: penstock.Loader(view, 2, **{str(given): 1}),
        "penstock attribute": lambda given: getattr(penstock, str(given)),
        "adapter": lambda given: getattr(penstock.adapters, str(given)),
        "column": lambda given: dataset.columns[given],
        "index": lambda given: view[given],
        "select": lambda given: view.select([given]),
        "shards": lambda given: dataset.select([given]),
        "append": lambda given: penstock.Writer(path / "new", {"token": "u2"}).append(token=given),
        "append field": lambda given: penstock.Writer(path / "new", {"token": "u2"}).append(**{str(given)[:99_999]: 1}),
        "Mixture": lambda given: Mixture({given: view}, [Stage({given: 1})]),
        "Stage": lambda given: Mixture({"a": view}, [Stage({str(given)[:99_999]: 1})]),
        "weights": lambda given: penstock.Loader(view, 2, order=orders.Weighted(given)),
        "columns of it": lambda given: penstock.Loader(view, 2, columns=[given]),
        "mask": lambda given: penstock.Loader(view, 2, columns=[columns.LossMask(field=given)]),
        "finished": penstock.finished_shards,
        "commit": penstock.commit,
        "combine": lambda given: penstock.combine([given], path / "new"),
        "convert": lambda given: penstock.convert(dataset.path, path / "new", given),
        "state": lambda given: penstock.Loader(view, 2).load_state_dict(given),
        "shuffle": lambda given: penstock.shuffle(dataset.path, path / "new", seed=given, documents=True),
        "import": lambda given: penstock.import_tokens(given, path / "new"),
        "Collections": lambda given: penstock.CollectionLoader(given, 2),
    }
    options = {
        "open": (penstock.open, {"path": dataset.path}, ("format", "dtype", "column", "checks", "cache", "storage")),
        "windows": (dataset.windows, {"window": 4}, ("lookahead", "columns", "metadata", "phase", "end_of_document")),
        "documents": (dataset.documents, {}, ("columns", "metadata", "begin_of_document")),
        "packed": (dataset.packed, {"window": 4}, ("fit", "group", "long", "multiple_of", "table")),
        "padded": (dataset.documents().padded, {}, ("to", "multiple_of", "side", "value", "long")),
        "cells": (dataset.cells, {}, ("form", "value", "genes", "normalize")),
        "Writer": (
            penstock.Writer,
            writer,
            (
                "fields",
                "metadata",
                "columns",
                "features",
                "layout",
                "shard_size",
                "tokenizer",
                "shard",
                "run",
                "scratch",
            ),
        ),
        "Loader": (
            penstock.Loader,
            loader,
            (
                *("batch_size", "seed", "order", "rank", "world_size", "epochs", "tail", "skip", "dtype", "reader"),
                *("threads", "prefetch", "max_bytes", "on_mismatch", "framework", "columns", "max_documents", "uneven"),
            ),
        ),
        "import": (
            penstock.import_tokens,
            {"inputs": dataset.path, "out": path / "new"},
            ("format", "column", "metadata", "dtype", "end_of_document", "shard_size", "workers", "scratch"),
        ),
        "export": (penstock.export, {"path": dataset.path, "out": path / "new"}, ("to", "window", "drop")),
    }
    for name, (function, given, names) in options.items():
        for option in names:
            found[f"{name}({option}=)"] = lambda value, f=function, g=given, o=option: f(**{**g, o: value})
    return found


class Said:
    """What calls raise, and which of it is too long."""

    def __init__(self) -> None:
        self.silent: list[str] = []
        self.long: list[str] = []
        self.calls = 0

    def call(self, name: str, function: Callable[[], Any]) -> None:
        self.calls += 1
        try:
            function()
        except Exception as error:
            if len(str(error)) > MOST:
                self.long.append(f"{name}: {type(error).__name__} of {len(str(error)):,}: {str(error)[:80]!r}")
        else:
            self.silent.append(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", HUGE)
def test_a_huge_argument_is_quoted_in_part(dataset: penstock.Dataset, tmp_path: Path, kind: str) -> None:
    calls = calls_of(dataset, tmp_path)
    said = Said()
    for name, call in calls.items():
        said.call(name, lambda c=call: c(HUGE[kind]))
    assert not said.long, "\n".join(said.long)
    assert len(said.silent) < 0.2 * said.calls, said.silent


def leaves_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from leaves_of(each, (*path, key))


def test_a_state_with_huge_parts_is_quoted_in_part(dataset: penstock.Dataset) -> None:
    loader = penstock.Loader(dataset.windows(4), 2, skip=[(3, 4)])
    state = loader.state_dict()
    job = json.loads(state["job"])
    states = [{**state, key: given} for key in (*state, TEXT) for given in HUGE.values()]
    for path in leaves_of(job):
        for given in (TEXT, [TEXT], {TEXT: TEXT}, 10**40):
            changed = copy.deepcopy(job)
            place = changed
            for key in path[:-1]:
                place = place[key]
            if path:
                place[path[-1]] = given
                if isinstance(place, dict):
                    place[TEXT] = given
            states.append({**state, "job": json.dumps(changed if path else given)})
    said = Said()
    for number, each in enumerate(states):
        said.call(f"state {number}", lambda s=each: loader.load_state_dict(s))
    assert not said.long, "\n".join(said.long)
    assert len(said.silent) < 0.1 * said.calls and said.calls > 60, said.silent


def test_a_manifest_with_huge_parts_is_quoted_in_part(dataset: penstock.Dataset, tmp_path: Path) -> None:
    manifest = json.loads((Path(dataset.path) / "dataset.json").read_text())
    folder = tmp_path / "damaged"
    folder.mkdir()
    said = Said()
    for path in leaves_of(manifest):
        for given in (TEXT, {TEXT: TEXT}):
            changed = copy.deepcopy(manifest)
            place = changed
            for key in path[:-1]:
                place = place[key]
            if path:
                place[path[-1]] = given
            (folder / "dataset.json").write_text(json.dumps(changed))
            said.call(f"manifest {path}", lambda: penstock.open(folder))
    assert said.long == said.silent == []
    for name, array in (("a.npy", np.zeros(3, [("y" * 60_000, "u2")])), ("b.npy", np.zeros(3, [("y" * 90, "S9")]))):
        np.save(tmp_path / name, array)
        said.call(name, lambda n=name: penstock.open(tmp_path / n).windows(1, columns=["z"]))
    assert said.long == said.silent == []


def test_the_command_line_says_little_of_huge_arguments(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for given in (
        ["info", TEXT],
        ["write", TEXT, "--out", TEXT],
        [TEXT],
        ["import", "x", "--out", "y", "--format", TEXT],
    ):
        assert main(given) != 0
        said = capsys.readouterr().err
        assert len(said) <= MOST + len("penstock: \n"), said[:200]
