"""The second reader (_second_reader.py, from docs/order.md) and penstock go from a position to the same rows."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _second_reader import Dataset, Run, observed, permuted, rank_rows

GOLDEN = Path(__file__).parents[2] / "golden"
RECORDS = 4000


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    """A dataset of three shards."""
    path = tmp_path_factory.mktemp("second") / "stream"
    lengths = [3, 0, 500, 1, 40, 700, 6, 1250, 0, 1500]
    assert sum(lengths) == RECORDS
    with penstock.Writer(path, fields={"token": "u2"}, metadata="json", shard_size=2000) as writer:
        for number, length in enumerate(lengths):
            writer.append({"number": number}, token=np.arange(length) + number)
    return penstock.open(path)


# ---- the permutation and orders


@pytest.mark.parametrize(
    "n", [*range(1, 130, 3), 64, 65, 1000, 4096, 4097, *(2**k + d for k in (20, 32, 51) for d in (-1, 0, 1)), 2**52]
)
def test_permutations_are_alike(n: int) -> None:
    chance = random.Random(n)
    for seed, epoch in [(0, 0), (chance.getrandbits(64), chance.randrange(9)), (2**64 - 1, 2**64 - 1)]:
        xs = range(n) if n <= 130 else [0, n - 1, *(chance.randrange(n) for _ in range(200))]
        assert [permuted(n, seed, epoch, x) for x in xs] == penstock.Permutation(n, seed, epoch)(
            np.array(xs, "u8")
        ).tolist()


def test_golden_permutations_and_orders() -> None:
    for case in json.loads((GOLDEN / "permutation.json").read_text())["permutation"]:
        n, seed, epoch = case["n"], case["seed"], case["epoch"]
        assert [[x, permuted(n, seed, epoch, x)] for x, _ in case["pairs"]] == case["pairs"]
    golden = json.loads((GOLDEN / "orders.json").read_text())
    known = ("uniform", "sequential", "blocks")
    cases = [case for name, case in golden["orders"].items() if name.startswith(known)]
    assert len(cases) >= 5
    for case in cases:
        places = [divmod(p, golden["n"]) for p in golden["positions"]]
        assert [observed(case["identity"], e, o) for e, o in places] == case["indices"]


def random_order(chance: random.Random, size: int, seed: int) -> tuple[Any, dict[str, Any]]:
    """An argument `order`, and what a state says of it."""
    kind = chance.choice(["uniform", "sequential", "fetches", "blocks", "blocks", "blocks"])
    said: dict[str, Any] = {"algorithm": 1, "name": kind, "seed": seed, "size": size}
    if kind == "uniform":
        return kind, said
    if kind == "sequential":
        return kind, {"name": kind, "size": size}
    block = chance.choice([1, 2, 3, 7, 16, 100])
    fetch = block * chance.choice([1, 2, 5, 30])
    if kind == "fetches":
        return penstock.orders.Sequential(fetch=fetch), said | {"name": "sequential in fetches", "fetch": fetch}
    lanes = chance.choice([1, 1, 2, 3, 8, 50, 5000])
    return penstock.orders.Blocks(block, fetch, lanes), said | {"block": block, "fetch": fetch, "lanes": lanes}


def random_view(chance: random.Random, dataset: penstock.Dataset) -> tuple[Any, dict[str, Any], int]:
    """A view, what a state says of it, and how many observations it has."""
    said: dict[str, Any] = {"kind": "windows", "lookahead": chance.choice([0, 1, 9])}
    said["window"] = chance.choice([1, 3, 10, 64, 700])
    if chance.random() < 0.3:
        said["phase"] = "random"
    view = dataset.windows(said["window"], said["lookahead"], phase=said.get("phase"))
    size = len(view)
    if chance.random() < 0.5:
        first, step = chance.randrange(size), chance.choice([1, 1, 2, 5])
        stop = chance.randrange(first, size) + 1
        count = len(range(first, stop, step))
        if count < size:
            said["slice"] = {"first": first, "step": step if count > 1 else 1, "count": count}
        view, size = view[first:stop:step], count
    return view, said, size


def random_run(chance: random.Random, size: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of a job, and those of the second reader that no state says."""
    sizes = [(0, chance.choice([1, 4, 7, 30]))]
    if chance.random() < 0.4:
        sizes += [(chance.randrange(1, 2 * size + 2), 12)]
    skip = [
        (a := chance.randrange(2 * size), a + chance.randrange(size + 2)) for _ in range(chance.choice([0, 0, 1, 3]))
    ]
    same = {"per_epoch": chance.random() < 0.3, "tail": chance.choice(["pad", "pad", "drop", "short"])}
    epochs = chance.choice([None, 1, 2, 3])
    options = {"global_batch_size": sizes, "epochs": epochs, "skip": skip, "uneven": "pad"}
    return options | same, same | {"sizes": sizes, "end": epochs * size if epochs else math.inf}


def joined(skip: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Skips as a state has them."""
    positions = sorted({p for a, b in skip for p in range(a, b)})
    edges = [p for p in positions if p - 1 not in positions], [p + 1 for p in positions if p + 1 not in positions]
    return list(zip(*edges, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_jobs_are_alike(seed: int, stream: penstock.Dataset) -> None:
    """The state, what stands at positions, and each rank's rows of each batch."""
    chance = random.Random(seed)
    view, view_said, size = random_view(chance, stream)
    job_seed = chance.choice([0, 7, chance.getrandbits(64)])
    order, order_said = random_order(chance, size, job_seed)
    options, mine_options = random_run(chance, size)
    job = penstock.Job(view, seed=job_seed, order=order, **options)
    dataset = {"fingerprint": stream.fingerprint, "records": RECORDS, "shards": len(stream.shards)}
    said = {"format": 1, "order": order_said, "skip": joined(options["skip"])}
    said["sources"] = [{"dataset": dataset, "view": view_said}]
    state = job.state_dict(5)
    text = json.dumps(said, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    assert state == {"version": 1, "position": 5, "job": text}

    mine, far = Run(state), chance.randrange(2**31 * size)
    for first in (0, max(size - 10, 0), far):
        for p, theirs in enumerate(job.picks(first, 30), first):
            _, epoch, i, (begin, _) = mine.row(p)
            assert (theirs["epoch"], theirs["index"], theirs["first_record"]) == (epoch, i, begin)

    near = chance.choice([1, 2]) * size - chance.randrange(1, 9)  # the end of an epoch
    for begin, most in ((0, 20), (max(near, 0), 5)):
        check_batches(job, mine, begin, most, chance.choice([1, 2, 3, 5, 40]), mine_options)


def check_batches(job: penstock.Job, mine: Run, position: int, most: int, ranks: int, options: dict[str, Any]) -> None:
    for _ in range(most):
        wanted = mine.batch(position, **options)
        plans = [job.plan(position, rank, ranks) for rank in range(ranks)]
        if wanted is None:
            assert plans == [None] * ranks
            break
        positions, batch, position = wanted
        for rank, plan in enumerate(plans):
            rows = rank_rows(positions, batch, rank, ranks, options["tail"])
            assert plan is not None
            assert plan.picks["index"].tolist() == [-1 if p is None else mine.row(p)[2] for p in rows]
            assert (plan.next_position, plan.global_rows) == (position, len(positions))


# ---- from a state to records and spans


@pytest.mark.parametrize("seed", range(12))
def test_a_state_goes_on_with_the_same_records_and_spans(seed: int, stream: penstock.Dataset) -> None:
    """Nothing but the state and the files: what a loader on other ranks gives after it."""
    chance = random.Random(seed)
    view, _, size = random_view(chance, stream)
    order, _ = random_order(chance, size, seed)
    options = {"seed": seed, "order": order, "epochs": 3, "uneven": "pad", "framework": "numpy"}
    before = penstock.Loader(view, global_batch_size=6, **options)
    for _ in range(chance.randrange(min(size // 3, 20) + 1)):
        next(before)
    state = before.state_dict()
    mine, run, ranks = Dataset(stream.path), Run(state), chance.choice([1, 2, 4])
    assert run.sources[0]["dataset"]["fingerprint"] == mine.manifest["fingerprint"]
    loaders = [penstock.Loader(view, global_batch_size=9, rank=r, world_size=ranks, **options) for r in range(ranks)]
    for loader in loaders:
        loader.load_state_dict(state)
    position = state["position"]
    for _ in range(4):
        batch = run.batch(position, [(0, 9)], 3 * size)
        if batch is None:
            break
        for rank, loader in enumerate(loaders):
            check_rows(mine, run, rank_rows(*batch[:2], rank, ranks), next(loader))
        position = batch[2]


def check_rows(mine: Dataset, run: Run, rows: list[int | None], batch: penstock.Batch) -> None:
    assert batch.valid.tolist() == [p is not None for p in rows]
    for row, p in enumerate(rows):
        if p is None:
            continue
        a, b = run.row(p)[3]
        assert batch.records["token"][row].tolist() == mine.stream["token"][a:b].tolist()
        spans = [(max(first, a) - a, min(stop, b) - a, entry) for first, stop, _, _, entry in mine.spans_of(a, b)]
        assert [(s.start, s.stop, bytes(s.raw)) for s in batch.spans if s.row == row] == spans


def test_golden_states_go_on_alike() -> None:
    cases = json.loads((GOLDEN / "state-v1.json").read_text())["cases"]
    for case in cases:
        run, position = Run(case["state"]), case["state"]["position"]
        tokens = np.fromfile(GOLDEN / case["file"], np.dtype(case["dtype"]))
        for batch in case["batches"]:
            found = run.batch(position, [(0, case["batch_size"])])
            assert found is not None
            rows = [run.row(p) for p in found[0]]
            assert [epoch for _, epoch, *_ in rows] == batch["epochs"]
            assert [index for _, _, index, _ in rows] == batch["indices"]
            assert [tokens[a:b].tolist() for *_, (a, b) in rows] == batch["tokens"]
            position = found[2]
    assert len(cases) >= 2


def test_a_dataset_that_grew_goes_on_alike(tmp_path: Path) -> None:
    for name, count in (("first", 333), ("more", 450)):
        with penstock.Writer(tmp_path / name, fields={"token": "u2"}) as writer:
            writer.append(token=np.arange(count))
    options: dict[str, Any] = {
        "seed": 3,
        "epochs": 4,
        "framework": "numpy",
        "on_mismatch": "grown",
        "order": penstock.orders.Blocks(2, 4, 3),
    }
    loader = penstock.Loader(penstock.open(tmp_path / "first").windows(5), 16, **options)
    for _ in range(6):
        next(loader)
    state = loader.state_dict()
    penstock.append(tmp_path / "first", tmp_path / "more")
    grown = penstock.Loader(penstock.open(tmp_path / "first").windows(5), 16, **options)
    grown.load_state_dict(state)
    run, found = Run(grown.state_dict()), []
    assert [stage["order"]["size"] for stage in run.stages] == [66, 156]
    for batch in grown:
        rows = zip(batch.epochs[batch.valid], batch.indices[batch.valid], strict=True)
        found += [(int(epoch), int(i)) for epoch, i in rows]
    assert found == [run.row(p)[1:3] for p in range(96, 2 * 66 + 2 * 156)]
