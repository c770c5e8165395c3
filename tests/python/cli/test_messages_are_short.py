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
    view, new = dataset.windows(4), path / "new"
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
        "append": lambda given: penstock.Writer(new, {"token": "u2"}).append(token=given),
        "append field": lambda given: penstock.Writer(new, {"token": "u2"}).append(**{str(given)[:99_999]: 1}),
        "Mixture": lambda given: Mixture({given: view}, [Stage({given: 1})]),
        "Stage": lambda given: Mixture({"a": view}, [Stage({str(given)[:99_999]: 1})]),
        "weights": lambda given: penstock.Loader(view, 2, order=orders.Weighted(given)),
        "columns of it": lambda given: penstock.Loader(view, 2, columns=[given]),
        "mask": lambda given: penstock.Loader(view, 2, columns=[columns.LossMask(field=given)]),
        "finished": penstock.finished_shards,
        "commit": penstock.commit,
        "combine": lambda given: penstock.combine([given], new),
        "convert": lambda given: penstock.convert(dataset.path, new, given),
        "state": lambda given: penstock.Loader(view, 2).load_state_dict(given),
        "shuffle": lambda given: penstock.shuffle(dataset.path, new, seed=given, documents=True),
        "import": lambda given: penstock.import_tokens(given, new),
        "Collections": lambda given: penstock.CollectionLoader(given, 2),
    }
    for name, (function, given) in {
        "open": (penstock.open, {"path": dataset.path}),
        "windows": (dataset.windows, {"window": 4}),
        "documents": (dataset.documents, {}),
        "packed": (dataset.packed, {"window": 4}),
        "padded": (dataset.documents().padded, {}),
        "cells": (dataset.cells, {}),
        "Writer": (penstock.Writer, {"path": new, "fields": {"token": "u2"}}),
        "Loader": (penstock.Loader, {"view": view, "batch_size": 2}),
        "import": (penstock.import_tokens, {"inputs": dataset.path, "out": new}),
        "export": (penstock.export, {"path": dataset.path, "out": new, "to": "megatron"}),
    }.items():
        for option in OPTIONS[name].split():
            found[f"{name}({option}=)"] = lambda value, f=function, g=given, o=option: f(**{**g, o: value})
    return found


OPTIONS = {
    "open": "format dtype column checks cache storage",
    "windows": "window lookahead columns metadata phase end_of_document",
    "documents": "columns metadata begin_of_document",
    "packed": "window fit group long multiple_of table",
    "padded": "to multiple_of side value long",
    "cells": "form value genes normalize",
    "Writer": "fields metadata columns features layout shard_size tokenizer shard run scratch",
    "Loader": "batch_size seed order rank world_size epochs tail skip dtype reader threads prefetch max_bytes "
    "on_mismatch framework columns max_documents uneven",
    "import": "format column metadata dtype end_of_document shard_size workers scratch",
    "export": "to window drop",
}


class Said:
    """What calls raise: which of it is too long, and which raise nothing."""

    def __init__(self) -> None:
        self.silent: list[str] = []
        self.calls = 0

    def call(self, name: str, function: Callable[[], Any]) -> None:
        self.calls += 1
        try:
            function()
        except Exception as error:
            words = f"{name}: {type(error).__name__} of {len(str(error)):,}: {str(error)[:80]!r}"
            assert len(str(error)) <= MOST, words
        else:
            self.silent.append(name)


def changes_of(value: Any, others: list[Any]) -> Iterator[Any]:
    """Copies of a JSON value of which one part, at any depth, is another."""
    for path in places_of(value):
        for other in others:
            changed = copy.deepcopy(value)
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = other
            yield changed


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield (*path, key)
        yield from places_of(each, (*path, key))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", HUGE)
def test_a_huge_argument_is_quoted_in_part(dataset: penstock.Dataset, tmp_path: Path, kind: str) -> None:
    said = Said()
    for name, call in calls_of(dataset, tmp_path).items():
        said.call(name, lambda c=call: c(HUGE[kind]))
    assert len(said.silent) < 0.2 * said.calls, said.silent


def test_a_state_with_huge_parts_is_quoted_in_part(dataset: penstock.Dataset) -> None:
    loader, said = penstock.Loader(dataset.windows(4), 2, skip=[(3, 4)]), Said()
    state = loader.state_dict()
    states = [{**state, key: given} for key in (*state, TEXT) for given in HUGE.values()]
    jobs = list(changes_of(json.loads(state["job"]), [TEXT, [TEXT], {TEXT: TEXT}, 10**40]))
    jobs += [TEXT, [TEXT], 10**40, {**json.loads(state["job"]), TEXT: TEXT}]
    for each in [*states, *({**state, "job": json.dumps(job)} for job in jobs)]:
        said.call("a state", lambda s=each: loader.load_state_dict(s))
    assert len(said.silent) < 0.1 * said.calls and said.calls > 60, said.silent


def test_a_manifest_with_huge_parts_is_quoted_in_part(dataset: penstock.Dataset, tmp_path: Path) -> None:
    said = Said()
    manifest = json.loads((Path(dataset.path) / "dataset.json").read_text())
    for changed in changes_of(manifest, [TEXT, {TEXT: TEXT}]):
        (tmp_path / "dataset.json").write_text(json.dumps(changed))
        said.call("a manifest", lambda: penstock.open(tmp_path))
    for name, array in (("a.npy", np.zeros(3, [("y" * 60_000, "u2")])), ("b.npy", np.zeros(3, [("y" * 90, "S9")]))):
        np.save(tmp_path / name, array)
        said.call(name, lambda n=name: penstock.open(tmp_path / n).windows(1, columns=["z"]))
    assert said.silent == [] and said.calls > 20


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
