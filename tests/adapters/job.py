"""What the jobs of all frameworks share: the corpus, a small model, and a log of what was trained on."""

from __future__ import annotations

import argparse
import json
import os
import signal
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import torch

VOCABULARY = 512
WINDOW = 32


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
    parser.add_argument("--epochs", action="store_true", help="pass by pass over the data, in batches of 64")
    return parser.parse_args()


def write_corpus(folder: Path) -> None:
    """Two datasets of documents, and the mixture of them in two stages."""
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
        self._write({"step": step, "rows": [zlib.crc32(row.numpy().tobytes()) for rows in inputs for row in rows],
                     "loss": float(loss).hex()})  # fmt: skip
        if step == self._kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    def saved(self, state: dict[str, Any], loader: penstock.Loader) -> None:
        """What a checkpoint holds, and how far the framework had fetched."""
        self._write({"saved": state["position"], "fetched": loader.position})

    def _write(self, line: dict[str, Any]) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
