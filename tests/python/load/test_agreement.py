"""check_agreement: real processes over gloo; who differs, in what, said by all of them.

Three processes import torch and meet, which takes some seconds, once for all cases.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import raw_tokens
from penstock._load.agreement import Facts, disagreements

torch = pytest.importorskip("torch")
RANKS = 3


# What process 1 does otherwise, and what all say.
CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "agree": ({}, None),
    "a pair": ({}, None),
    "seed": ({"seed": 4}, "process 1: another job: order.seed is 4, others 3"),
    "order": ({"order": "sequential"}, r"process 1: another job: order.algorithm is not there, others 1, order.name is "
              r"\"sequential\", others \"uniform\""),
    "dataset": ({}, r"process 1: another job: order.size is 90, others 100, sources\[0\].dataset.fingerprint is "),
    "position": ({}, "process 1: position 12, others 0"),
    "batch size": ({"global_batch_size": 6}, "process 1: global batch size 6, others 12"),
    "schedule": ({"global_batch_size": [(0, 12), (600, 24)]},
                 "process 1: global batch size 12 from 0, 24 from 600, others 12"),
    "rank twice": ({"rank": 0}, "processes 0, 1: all of them are rank 0, and no process is rank 1"),
    "world size": ({"world_size": 2}, "process 1: world size 2, the group has 3"),
    "end": ({"epochs": 2}, "process 1: the run ends at 200, others nowhere"),
    "tail": ({"tail": "drop"}, "process 1: tail 'drop', others 'pad'"),
    "uneven": ({"uneven": "pad"}, "process 1: uneven 'pad', others 'refuse'"),
    "per epoch": ({"per_epoch": True}, "process 1: batches go within each epoch, others across epochs"),
    "skip": ({"skip": [(100, 200)]}, r"process 1: another job: skip is \[\[100, 200\]\], others \[\]"),
    "balance": ({"balance": penstock.Balance(list(range(100)), micro_batches=2)},
                r"process 1: balance by costs of digest \w+ in 2 micro-batches, others none"),
    "two": ({"seed": 4}, "process 1: position 12, others 0; process 1: another job: order.seed is 4, others 3"),
    "steered": ({}, r"1: another job: order.steered.stages is \[\], others .*\"count\": 1.*\(weights that were set"),
    "steered otherwise": ({}, r"1: another job: order.steered.stages\[0\].digest is .*last\[1\] is 3, others 2"),
    "steered alike": ({}, None),
    "collection": ({}, "process 2: another job: order.seed is 9, others 3"),
}  # fmt: skip


def steered(case: str, view: Any, is_odd: bool, options: dict[str, Any]) -> Any:
    mixture = penstock.Mixture({"a": view, "b": view}, [penstock.Stage()], steered=True)
    loader = penstock.Loader(mixture, **options)
    if case != "steered" or not is_odd:
        loader.set_weights({"a": 3 if is_odd and case != "steered alike" else 2, "b": 1}, at=24)
    return loader


def make(case: str, process: int, folder: Path) -> Any:
    options: dict[str, Any] = {"global_batch_size": 12, "seed": 3, "rank": process, "world_size": RANKS}
    is_odd = process == 1
    if case == "collection":
        return penstock.CollectionLoader(np.arange(50), **options | ({"seed": 9} if process == 2 else {}))
    if case == "a pair":
        options |= {"rank": process // 2, "world_size": 2}
    name = "other.bin" if case == "dataset" and is_odd else "tokens.bin"
    view = penstock.open(folder / name, dtype="u2").windows(10)
    if case.startswith("steered"):
        return steered(case, view, is_odd, options)
    loader = penstock.Loader(view, **options | (CASES[case][0] if is_odd else {}))
    if case in ("position", "two") and is_odd:
        loader.seek(12)
    return loader


def run(process: int, folder: Path) -> None:
    """One process of the group, through all cases; writes what each of them said."""
    import torch.distributed as dist

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=process, world_size=RANKS)
    pair = dist.new_group([0, 2])
    for case in CASES:
        loader = make(case, process, folder)
        try:
            loader.check_agreement(group=pair if case == "a pair" else None)
            said = ""
        except penstock.StateMismatchError as error:
            said = str(error)
        except penstock.InvalidArgumentError as error:
            said = f"refused: {error}"
        (folder / f"{case}-{process}.txt").write_text(said)
        loader.close()
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("agreement")
    raw_tokens(folder / "tokens.bin", 1000)
    raw_tokens(folder / "other.bin", 900)
    torch.multiprocessing.spawn(run, (folder,), nprocs=RANKS)
    return folder


@pytest.mark.parametrize("case", CASES)
def test_all_processes_say_who_differs_in_what(said, case):
    texts = [(said / f"{case}-{process}.txt").read_text() for process in range(RANKS)]
    if case == "a pair":
        assert texts[0] == texts[2] == "" and "this process is not in the group" in texts[1]
        return
    assert len(set(texts)) == 1, "each says something else"
    wanted = CASES[case][1]
    if wanted is None:
        assert texts[0] == ""
        return
    assert texts[0].startswith("the loaders of 3 processes do not go together: "), texts[0]
    assert re.search(wanted, texts[0]), texts[0]


def test_a_single_loader_agrees_and_one_of_several_needs_a_group(said):
    view = penstock.open(said / "tokens.bin", dtype="u2").windows(10)
    penstock.Loader(view, 4, rank=0, world_size=1).check_agreement()
    with pytest.raises(penstock.InvalidArgumentError, match="rank 1 of 2, and there is no process group"):
        penstock.Loader(view, 4, rank=1, world_size=2).check_agreement()


def test_most_decide_who_differs():
    one = Facts(0, 4, 100, '{"order":{"seed":1}}', [(0, 8)], None, None, "pad")

    def facts(**changed: Any) -> list[Facts]:
        return [Facts(**{**vars(one), "rank": rank, **{k: v[rank] for k, v in changed.items()}}) for rank in range(4)]

    assert disagreements(facts()) == []
    assert disagreements(facts(position=[5, 7, 7, 7])) == ["process 0: position 5, others 7"]
    assert disagreements(facts(position=[7, 9, 8, 7])) == [
        "process 1: position 9, others 7", "process 2: position 8, others 7",
    ]  # fmt: skip
    assert disagreements(facts(rank=[0, 1, 2, 7])) == ["no process is rank 3"]
    many = [Facts(**{**vars(one), "rank": rank % 20, "world_size": 40}) for rank in range(40)]
    assert len(disagreements(many)) == 20 and disagreements(many)[0].startswith("processes 0, 20: all of them are rank")
    assert disagreements(many)[-1].endswith("no process is rank 20, 21, 22, 23, 24, 25, 26, 27 and 12 more")
