"""What an order does to training: a logistic regression on cells that lie plate after plate, drug after drug.

57,600 generated cells of 300 genes, 14 plates of 4 drugs each, ten cell lines on every plate; a drug and a line each
move the expression of some genes, a plate all of it. The classifiers of drug and of line see each cell once, in batches
of 64, in four orders; then they are asked about cells that were held out. One after the other, a classifier forgets the
drugs of earlier plates; blocks mixed within a fetch are to be as good as the uniform order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
from results import Result
from workloads import Corpora

CELLS = 57_600
QUICK_CELLS = 1_120
GENES = 300
PLATES, DRUGS_EACH, LINES = 14, 4, 10
BATCH = 64
HELD_OUT = 14  # one cell of so many is asked about after training
ORDERS: dict[str, Any] = {
    "uniform": "uniform",
    "Blocks(16, 16384)": penstock.orders.Blocks(16, 16_384),
    "Sequential(fetch=16384)": penstock.orders.Sequential(fetch=16_384),
    "sequential": "sequential",
}
AS_GOOD = 0.97  # of uniform's share of right answers
WORSE = 0.8


def measure(corpora: Corpora) -> list[Result]:
    cells = QUICK_CELLS if corpora.quick else CELLS
    path = corpora.folder / f"atlas-{cells}"
    if not (path / "dataset.json").exists():
        write(path, cells)
    results = []
    seeds = range(1 if corpora.quick else 3)
    uniform: dict[str, float] = {}
    for name, order in ORDERS.items():
        found = [accuracies(path, order, seed) for seed in seeds]
        for label in ("drug", "line"):
            values = tuple(each[label] for each in found)
            uniform.setdefault(label, sorted(values)[len(values) // 2])
            limits: dict[str, float] = {}
            if name.startswith("Blocks"):
                limits = {"at_least": AS_GOOD * uniform[label]}
            elif name == "sequential" and label == "drug":
                limits = {"at_most": WORSE * uniform[label]}
            results.append(Result("learning", f"{label}: {name}", "right", values, "kept", **limits))
    return results


def write(path: Path, cells: int) -> None:
    """The atlas, in the order in which plates are sequenced."""
    random = np.random.default_rng(0)
    base = random.gamma(0.5, 2.0, GENES)
    of_drug = effects(random, PLATES * DRUGS_EACH)
    of_line = effects(random, LINES)
    of_plate = np.exp(random.normal(0, 0.3, (PLATES, GENES)))
    fields, columns = {"gene": "u2", "count": "u2"}, {"plate": "category", "drug": "category", "line": "category"}
    with penstock.Writer(path, fields, columns=columns) as writer:
        each = cells // (PLATES * DRUGS_EACH)
        for drug in range(PLATES * DRUGS_EACH):
            plate = drug // DRUGS_EACH
            lines = random.integers(0, LINES, each)
            mean = base * of_plate[plate] * of_drug[drug] * of_line[lines]
            counts = random.poisson(mean * random.gamma(4, 0.25, (each, 1)))
            rows, genes = np.nonzero(counts)
            values = {
                "plate": [f"plate {plate}"] * each,
                "drug": [f"drug {drug}"] * each,
                "line": [f"line {line}" for line in lines],
            }
            lengths = np.bincount(rows, minlength=each)
            writer.append_batch(lengths, columns=values, gene=genes, count=counts[rows, genes])


def effects(random: np.random.Generator, kinds: int) -> np.ndarray[Any, Any]:
    """Factors [kinds, genes], most of them 1."""
    moved = random.random((kinds, GENES)) < 0.1
    return np.where(moved, np.exp(random.normal(0, 1.0, (kinds, GENES))), 1.0)


def accuracies(path: Path, order: Any, seed: int) -> dict[str, float]:
    """The share of right answers about held-out cells, for drug and line."""
    import torch

    dataset = penstock.open(path)
    view = dataset.cells(
        "dense", genes=range(GENES), normalize=1e4, log1p=True, columns=("drug", "line"), metadata=False
    )
    held_out = np.zeros(len(view), bool)
    held_out[::HELD_OUT] = True
    torch.manual_seed(seed)
    sizes = {label: len(dataset.columns[label].categories or ()) for label in ("drug", "line")}
    models = {label: torch.nn.Linear(GENES, size) for label, size in sizes.items()}
    weights = [weight for model in models.values() for weight in model.parameters()]
    optimizer = torch.optim.Adam(weights, lr=3e-3)
    for batch in penstock.Loader(view.select(~held_out), BATCH, seed=seed, order=order, epochs=1, tail="drop"):
        losses = [
            torch.nn.functional.cross_entropy(model(batch["x"]), batch.columns[label].long())
            for label, model in models.items()
        ]
        optimizer.zero_grad()
        sum(losses).backward()  # type: ignore[union-attr]
        optimizer.step()
    asked = view.select(held_out)
    batch = next(iter(penstock.Loader(asked, len(asked), order="sequential", epochs=1)))
    with torch.no_grad():
        return {
            label: float((model(batch["x"]).argmax(1) == batch.columns[label]).float().mean())
            for label, model in models.items()
        }
