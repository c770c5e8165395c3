"""penstock ranks: how a global batch is dealt, beside what loaders of these ranks say."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import numpy as np
import penstock
import pytest
from penstock._cli.main import main


def said(capsys: pytest.CaptureFixture[str], *arguments: Any, code: int = 0) -> str:
    assert main(["ranks", *map(str, arguments)]) == code
    captured = capsys.readouterr()
    return captured.err if code else captured.out


def test_it_says_which_ranks_divide_and_what_others_get(capsys):
    assert said(capsys, 4096, 1000, 960, 512, 5000).splitlines() == [
        "4,096 rows: evenly on 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1,024, 2,048, 4,096 ranks",
        "ranks   batch  of them valid                     padding",
        "1,000  5 rows  5 on 96 ranks, 4 on 904 ranks     904 (18.1%)",
        "  960  5 rows  5 on 256 ranks, 4 on 704 ranks    704 (14.7%)",
        "  512  8 rows  8 on 512 ranks                    none",
        "5,000   1 row  1 on 4,096 ranks, 0 on 904 ranks  904 (18.1%)",
    ]


def test_it_is_what_loaders_have(capsys, tmp_path):
    np.zeros(4_000, "u2").tofile(tmp_path / "tokens.bin")
    view = penstock.open(tmp_path / "tokens.bin", dtype="u2").windows(4)
    told = json.loads(said(capsys, "0:10,100:24", 4, 7, "--micro-batches", 2, "--json"))
    assert [each["global_batch_size"] for each in told["sizes"]] == [10, 24]
    assert [each["ranks_that_suit"] for each in told["sizes"]] == [[1, 5], [1, 2, 3, 4, 6, 12]]
    for each in told["sizes"]:
        size = each["global_batch_size"]
        for ranks in range(1, size + 1):
            options = {"global_batch_size": size, "rank": 0, "world_size": ranks, "framework": "numpy"}
            balance = penstock.Balance("tokens", micro_batches=2)
            with contextlib.ExitStack() as stack:
                if ranks not in each["ranks_that_suit"]:
                    stack.enter_context(pytest.raises(penstock.InvalidArgumentError, match="uneven"))
                penstock.Loader(view, balance=balance, **options).close()
        for share in each["shares"]:
            ranks = share["ranks"]
            balance = penstock.Balance("tokens", micro_batches=2)
            options: dict[str, Any] = {"world_size": ranks, "uneven": "pad", "balance": balance, "framework": "numpy"}
            loaders = [penstock.Loader(view, global_batch_size=size, rank=rank, **options) for rank in range(ranks)]
            counts = [int(next(loader).valid.sum()) for loader in loaders]
            assert counts == [valid for count, valid in share["valid"] for _ in range(count)]
            assert {loader.batch_size for loader in loaders} == {share["rows"]}
            assert share["padding"] == share["rows"] * ranks - size
            for loader in loaders:
                loader.close()


def test_sizes_with_many_divisors_are_shown_in_part_and_wrong_ones_refused(capsys):
    assert said(capsys, 720_720).endswith(" and 176 more numbers of ranks\n")
    assert said(capsys, 7) == "7 rows: evenly on 1, 7 ranks\n"
    assert said(capsys, 8, "--micro-batches", 4) == "8 rows: evenly on 1, 2 ranks, in 4 equal micro-batches\n"
    assert said(capsys, 7, "--micro-batches", 2) == "7 rows: evenly on no number of ranks, in 2 equal micro-batches\n"
    assert "SIZE 0: from 1 to 2^63 - 1" in said(capsys, 0, code=2)
    assert "from 1 to 2^63 - 1" in said(capsys, 1 << 63, code=2)
    assert "is no number, and no schedule" in said(capsys, "many", code=2)
    for schedule in ("5:8", "0:8,8:8,4:3", "0:8,0:9"):
        assert "a schedule begins at 0, and its positions rise" in said(capsys, schedule, code=2)
    assert "is not in the range" in said(capsys, 8, 0, code=2)
