"""What the jobs and checks of all frameworks share: the corpus, a small model, a loop, a log of what was trained on."""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch

VOCABULARY = 512
WINDOW = 32
HELD_OUT = 22  # rows of held_out.json


def arguments() -> argparse.Namespace:
    """How a job is told what to do; run.py says it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True, help="of the corpus")
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--lines", dest="log", type=Path, required=True)
    parser.add_argument("--steps", type=int, required=True, help="of the whole run")
    parser.add_argument("--save-at", type=int, required=True)
    parser.add_argument("--kill-after", type=int, help="the step after which the process kills itself")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--context", default=None)
    parser.add_argument("--model", default="SCVI", help="of scvi-tools")
    parser.add_argument("--epochs", action="store_true", help="pass by pass over the data, in batches of 64")
    return parser.parse_args()


def write_corpus(folder: Path) -> None:
    """Two datasets of documents, the mixture of them in two stages, and one that ends."""
    random = np.random.default_rng(7)
    for name, documents in (("web", 300), ("code", 150)):
        with penstock.Writer(folder / name, fields={"token": "u2"}, metadata="json") as writer:
            for number in range(documents):
                length = int(random.integers(5, 120))
                writer.append(token=random.integers(1, VOCABULARY, length), metadata={"number": number})
    source = {"window": WINDOW, "lookahead": 1, "metadata": "spans"}
    mixture = {
        "sources": {name: {"path": name, **source} for name in ("web", "code")},
        "stages": [{"weights": {"web": 3, "code": 1}}, {"weights": {"web": 1, "code": 1}, "at": 36}],
    }
    (folder / "mix.json").write_text(json.dumps(mixture))
    held_out = {"sources": mixture["sources"], "stages": [{}], "end": HELD_OUT}
    (folder / "held_out.json").write_text(json.dumps(held_out))
    write_cells(folder / "plates")


def write_cells(path: Path, cells: int = 1000, genes: int = 60) -> None:
    """Counts of cells of four types on three plates, which shift them; three of ten cells have no type."""
    random = np.random.default_rng(11)
    types, plates = random.integers(0, 4, cells), random.integers(0, 3, cells)
    means = random.gamma(0.5, 4, (4, genes))[types] * np.exp(random.normal(0, 0.3, (3, genes)))[plates]
    counts = random.poisson(random.gamma(2.0, means / 2))
    columns = {"plate": "category", "cell_type": "category", "donor": "category", "age": "f4"}
    features = [f"gene {gene}" for gene in range(genes)]
    with penstock.Writer(path, {"gene": "u2", "count": "u2"}, metadata="boundaries", columns=columns,
                         features=features) as writer:  # fmt: skip
        for row, kind, plate in zip(counts, types, plates, strict=True):
            there = np.flatnonzero(row)
            values = {
                "plate": f"p{plate}",
                "cell_type": f"type {kind}" if random.random() < 0.7 else None,
                "donor": random.choice(["a", "b"]),
                "age": random.normal(),
            }
            writer.append(gene=there, count=row[there], columns=values)


@contextmanager
def corpus() -> Iterator[Path]:
    """The corpus in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        write_corpus(Path(name))
        yield Path(name)


@contextmanager
def refused(kind: type[Exception], words: str) -> Iterator[None]:
    """Fails unless the block raises an error of this kind that has these words."""
    try:
        yield
    except kind as error:
        assert words in str(error), (words, str(error))
    else:
        raise AssertionError(f"no {kind.__name__} with {words!r}")


def view(folder: Path) -> penstock.View:
    return penstock.open(folder / "web").windows(WINDOW, lookahead=1)


def model() -> torch.nn.Module:
    """A language model of two layers: enough that its loss tells a batch from another."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, 16), torch.nn.Linear(16, VOCABULARY))


def loss_of(model: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1).float(), labels.flatten())


class Log:
    """A line for each step, on disk before the next begins; and the process's end where it is told."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._path, self._kill_after = options.log, options.kill_after

    def trained(self, step: int, inputs: list[torch.Tensor], loss: float) -> None:
        """The batches of an optimizer step, and its loss."""
        self._write({"step": step, "rows": _sums(inputs), "loss": float(loss).hex()})
        if step == self._kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    def validated(self, step: int, inputs: list[torch.Tensor], loss: float) -> None:
        """The batches of a validation after a step, and its loss."""
        self._write({"validated": step, "rows": _sums(inputs), "loss": float(loss).hex()})

    def saved(self, state: dict[str, Any], loader: penstock.Loader) -> None:
        """What a checkpoint holds, and how far the framework had fetched."""
        self._write({"saved": state["position"], "fetched": loader.position})

    def _write(self, line: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


class Training:
    """A loop of one's own: model, optimizer, and a checkpoint of both with the state of what is iterated."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.log = Log(options)
        self.model = model()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self._options, self._path, self._step = options, options.checkpoints / "state.pt", 0

    @property
    def is_over(self) -> bool:
        return self._step >= self._options.steps

    def resume(self, load: Callable[[Any], Any]) -> None:
        """Where the job is to go on: takes the checkpoint, and gives `load` the state in it."""
        if not self._options.resume:
            return
        saved = torch.load(self._path, weights_only=False)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        load(saved["state"])
        self._step = self._options.save_at

    def step(self, inputs: torch.Tensor, labels: torch.Tensor, state: Callable[[], Any]) -> None:
        """Trains on a batch; where it is time to, saves a checkpoint with what `state` gives."""
        loss = loss_of(self.model, inputs, labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self._step += 1
        if self._step == self._options.save_at:
            trained = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            torch.save({**trained, "state": state()}, self._path)
        self.log.trained(self._step, [inputs], loss.item())


def _sums(inputs: list[torch.Tensor]) -> list[int]:
    return [zlib.crc32(row.numpy().tobytes()) for rows in inputs for row in rows]
