"""Adapters without their frameworks: what is imported when, what batches become, what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import penstock
import pytest
import torch
from _datasets import compact, raw_tokens
from _forks import Forks, forks
from penstock.adapters.lightning import TrainLoader
from penstock.adapters.transformers import LoaderCallback
from penstock.adapters.transformers import TrainLoader as ModelLoader

#: What an adapter imports of its framework, a name there that it uses, and what pip calls the framework.
PARTS = {
    "torch": ("torch.utils.data", "IterableDataset", "torch"),
    "torchdata": ("torchdata.nodes", "BaseNode", "torchdata"),
    "torchtitan": ("torchtitan.components.dataloader", "BaseDataLoader", "torchtitan"),
    "transformers": ("transformers.trainer_callback", "ExportableState", "transformers[torch]"),
}


@pytest.fixture
def view(tmp_path):
    return raw_tokens(tmp_path / "tokens.bin", 331)[0].windows(10, lookahead=1)


@pytest.fixture(scope="module")
def programs() -> Iterator[Forks]:
    with forks("numpy", "penstock") as found:
        yield found


def test_importing_penstock_imports_no_framework():
    script = """
import sys, penstock
penstock.adapters
assert sorted(penstock.adapters.__all__) == dir(penstock.adapters)
found = {"torch", "torchdata", "lightning", "transformers", "torchtitan", "scvi"} & set(sys.modules)
assert not found, found
penstock.adapters.lightning.TrainLoader
assert not {"lightning", "torch"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


IMPORT = """
import sys
{first}
import penstock
try:
    penstock.adapters.{adapter}
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("adapter", PARTS)
def test_a_missing_framework_is_told_from_a_missing_part_of_it(tmp_path, programs, adapter):
    part, name, package = PARTS[adapter]

    def error(first: str, **modules: str) -> str:
        """Of an adapter where packages of these texts are found before all others."""
        for module, text in modules.items():
            path = tmp_path.joinpath(*module.split("."))
            path.mkdir(parents=True, exist_ok=True)
            (path / "__init__.py").write_text(text)
        (tmp_path / "program.py").write_text(IMPORT.format(first=first, adapter=adapter))
        done = programs.run(["program.py"], tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    said = error(f"sys.modules[{adapter!r}] = None  # as if it were not installed")
    assert said.startswith("ModuleNotFoundError") and f"penstock.adapters.{adapter} needs {adapter}" in said
    assert f"pip install {package}" in said.replace("'", "")
    stub = {"torch": ""} if adapter != "torch" else {}  # small beside the real one
    said = error("", **stub, **{adapter: ""})
    assert said.startswith(f"ImportError penstock.adapters.{adapter}: {adapter}")
    assert "a part is missing: No module" in said
    whole = {part.rpartition(".")[0]: "", adapter: "", part: ""}
    said = error("", **whole)
    assert said.startswith(f"ImportError penstock.adapters.{adapter}: {adapter}") and name in said
    assert "is installed, but a part is missing" in said and "pip install" not in said
    said = error("", **{adapter: "import grain_of_sand"})
    assert said.startswith("ModuleNotFoundError") and "is installed and needs grain_of_sand, which is not" in said


def test_releases_that_an_error_names_are_those_that_make_adapters_runs():
    pins = (Path(__file__).parents[2] / "adapters" / "requirements.txt").read_text()
    for adapter in ("torchdata", "torchtitan", "transformers"):
        text = Path(penstock.adapters.__file__).with_name(f"{adapter}.py").read_text()
        (pinned,) = re.findall(rf"^{adapter}==(.*)$", pins, re.MULTILINE)
        assert re.search(rf'error, "{pinned}[ "]', text), adapter


def test_no_adapter_no_loader_and_numpy_arrays_are_refused(view):
    with pytest.raises(AttributeError, match="lightning, scvi, torch"):
        _ = penstock.adapters.keras
    for wrap in (TrainLoader, ModelLoader):
        with pytest.raises(penstock.InvalidArgumentError, match=r"must be a penstock\.Loader"):
            wrap(view)
        with pytest.raises(penstock.InvalidArgumentError, match="framework='torch'"):
            wrap(penstock.Loader(view, 4, framework="numpy"))


# ---- Lightning's


def test_a_batch_is_a_dict_of_all_its_tensors(tmp_path):
    dataset, _ = compact(tmp_path, [[7, 9, 20], [30, 4]])
    view = dataset.windows(8, lookahead=1, metadata="spans")
    options: dict[str, Any] = {"batch_size": 3, "columns": ["cu_seqlens", "position_ids"], "max_documents": 9}
    batch = next(penstock.Loader(view, **options))
    found = next(iter(TrainLoader(penstock.Loader(view, **options))))
    assert type(found) is dict
    assert found.pop("max_seqlen") == batch.max_seqlen
    names = {"inputs", "labels", "weight", "indices", "epochs", "sources", "positions", "first_records", "valid"}
    assert found.keys() == names | {"cu_seqlens", "position_ids"}
    for name, value in found.items():
        assert torch.equal(value, batch[name] if name == "weight" else getattr(batch, name)), name
    batch = next(penstock.Loader(dataset.documents(), 3))
    found = next(iter(TrainLoader(penstock.Loader(dataset.documents(), 3))))
    assert torch.equal(found["token"], batch["token"]) and torch.equal(found["offsets"], batch.offsets)
    made = penstock.Loader(view, 4, transform=lambda batch: {"mine": batch.position})
    assert next(iter(TrainLoader(made))) == {"mine": 0}  # what a transform made is given as it is


def test_lightning_sees_a_length_always_and_the_state_of_what_was_delivered(view):
    assert len(TrainLoader(penstock.Loader(view, 4, epochs=2))) == 17
    endless = TrainLoader(penstock.Loader(view, 4))
    assert len(endless) > 10**12  # else Lightning would fetch a batch ahead of the one trained on
    first, second = next(iter(endless)), next(endless)
    assert endless.state_dict()["position"] == 8
    again = TrainLoader(penstock.Loader(view, 4))
    again.load_state_dict({**endless.state_dict(), "position": 4})
    assert torch.equal(next(iter(again))["indices"], second["indices"])
    assert not torch.equal(first["indices"], second["indices"])


# ---- transformers'


def trainer_state(step: int, saved: Any = None, **more: Any) -> SimpleNamespace:
    callbacks = {} if saved is None else {"LoaderCallback": saved}
    return SimpleNamespace(global_step=step, stateful_callbacks=callbacks, **{"max_steps": 100, **more})


def arguments(accumulated: int = 1, ignore: bool = False) -> SimpleNamespace:
    return SimpleNamespace(gradient_accumulation_steps=accumulated, ignore_data_skip=ignore)


def test_labels_are_the_targets_for_models_that_shift_and_those_that_do_not(view):
    batch = next(penstock.Loader(view, 4, epochs=1))
    found = next(iter(ModelLoader(penstock.Loader(view, 4, epochs=1))))
    assert torch.equal(found["input_ids"], batch.inputs) and torch.equal(found["shift_labels"], batch.labels)
    assert torch.equal(found["labels"][:, 1:], batch.labels[:, :-1]) and bool((found["labels"][:, 0] == -100).all())


def test_padding_has_no_labels_and_an_attention_mask(tmp_path):
    view = compact(tmp_path, [[7, 9, 20], [30, 4]])[0].documents().padded(multiple_of=4)
    batch = next(penstock.Loader(view, 3))
    found = next(iter(ModelLoader(penstock.Loader(view, 3))))
    assert torch.equal(found["attention_mask"], batch.attention_mask)
    assert torch.equal(found["shift_labels"] == -100, batch.labels == -100)


def test_the_callback_saves_the_state_of_the_last_step_and_goes_on_there(view):
    loader = ModelLoader(penstock.Loader(view, 4))
    callback, kwargs = LoaderCallback(), {"train_dataloader": loader}
    callback.on_train_begin(arguments(), trainer_state(0), None, **kwargs)
    for _ in range(3):
        next(loader)
    callback.on_step_end(arguments(), trainer_state(1), None, **kwargs)
    next(loader)  # fetched for a step that is not there yet
    saved = callback.state()
    assert saved["attributes"]["loader_state"]["position"] == 12
    for entries in (saved, [{"args": {}, "attributes": {}}, saved]):
        again = ModelLoader(penstock.Loader(view, 4))
        callback.on_train_begin(arguments(3), trainer_state(1, entries), None, train_dataloader=again)
        assert again.loader.position == 12
        rest = iter(again.dataset)  # what the Trainer skips three of
        assert [next(rest) for _ in range(3)] == [None] * 3 and next(rest)["input_ids"].shape == (4, 10)


def test_the_callback_saves_the_weights_that_later_callbacks_set(view):
    def make() -> ModelLoader:
        mixture = penstock.Mixture({"a": view, "b": view}, [penstock.Stage({"a": 1})], steered=True)
        return ModelLoader(penstock.Loader(mixture, 4))

    loader, callback = make(), LoaderCallback()
    kwargs = {"train_dataloader": loader}
    callback.on_train_begin(arguments(), trainer_state(0), None, **kwargs)
    next(loader)
    callback.on_step_end(arguments(), trainer_state(1), None, **kwargs)
    loader.loader.set_weights({"b": 1})  # by a callback after this one
    saved = callback.state()
    assert saved["attributes"]["loader_state"] == loader.loader.state_dict()
    next(loader)  # fetched for a step that is not there yet
    loader.loader.set_weights({"a": 1, "b": 2})
    for entries, weights in ((saved, [{"a": 1}, {"b": 1}]), (callback.state(), [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}])):
        again = make()
        callback = LoaderCallback()
        callback.on_train_begin(arguments(), trainer_state(1, entries), None, train_dataloader=again)
        assert again.loader.position == 4
        assert [stage.weights for stage in again.loader.stages] == weights


def test_skipped_batches_are_those_of_the_present_pass(view):
    loader = ModelLoader(penstock.Loader(view, 4, epochs=1))  # 9 batches: 5 steps of 2, the last of 1
    assert len(loader) == 9
    callback = LoaderCallback()
    state = loader.loader.state_dict()
    saved = {"args": {}, "attributes": {"loader_state": state}}
    for step, ignore, skipped in ((1, False, 2), (4, False, 8), (5, False, 0), (7, False, 4), (7, True, 0)):
        callback.on_train_begin(arguments(2, ignore), trainer_state(step, saved), None, train_dataloader=loader)
        assert loader._trained == skipped


def test_what_the_callback_cannot_go_on_from_is_refused(view):
    for given, step, words in (
        ([1], 0, "return a TrainLoader from"),
        (ModelLoader(penstock.Loader(view, 4)), 3, "saved without LoaderCallback"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            LoaderCallback().on_train_begin(arguments(), trainer_state(step), None, train_dataloader=given)
