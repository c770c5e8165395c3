"""A plugin of pytest: writes what became of each test, and whether it came to penstock, as lines of JSON."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

_SPAWNS = "test_ddp_real.py"  # its processes are others: all of them use the loader
_before: dict[str, int] = {}


def _used() -> int:
    return int(importlib.import_module(os.environ["PENSTOCK_PEER_NAME"]).used)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    only = json.loads(os.environ["PENSTOCK_PEER_TESTS"])
    if only:
        items[:] = [each for each in items if each.nodeid.partition("::")[2] in only]


def pytest_runtest_setup(item: Any) -> None:
    np.random.seed(1)  # tests draw their data by it, and some compare what came by chance


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    _before[item.nodeid] = _used()
    return (yield)


def pytest_runtest_logreport(report: Any) -> None:
    if report.when != "call" and report.passed:
        return
    file, _, name = report.nodeid.partition("::")
    message = ""
    if report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        message = str(crash.message if crash is not None else report.longrepr).splitlines()[0]
    used = Path(file).name == _SPAWNS or _used() > _before.get(report.nodeid, 0)
    line = {"file": Path(file).name, "test": name, "outcome": report.outcome, "used": used, "message": message}
    with Path(os.environ["PENSTOCK_PEER_REPORT"]).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
