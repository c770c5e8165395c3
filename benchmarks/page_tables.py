"""The tables of docs/benchmarks.md as lines of run.py and of peers/run.py, which charts.py draws."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Line = dict[str, Any]
#: The measurements whose tables docs/benchmarks.md has under these names.
TABLES = {
    "warm": "throughput",
    "cold": "cold",
    "blocks-reads-counted-and-cold": "blocks",
    "a-training-step": "training",
    "cost-against-size": "sizes",
    "the-article-s-ablation": "ablation",
    "balance": "balance",
    "the-writer": "writer",
    "layouts": "layouts",
    "cells-by-number": "cells-by-number",
}
#: The tables that compare loaders; a loader of the first two is not drawn again from the last.
PEERS = ("peers-warm", "peers-cold", "beside-the-newest")


def lines_of(page: str) -> tuple[list[Line], list[Line]]:
    """The lines of run.py and of peers/run.py that the tables of docs/benchmarks.md hold."""
    ours: list[Line] = []
    theirs: list[Line] = []
    for place, body in re.findall(r'<details markdown="1" id="([^"]+)">(.*?)</details>', page, re.DOTALL):
        for table in tables(body):
            if place in TABLES:
                ours += [line for cells in table for line in lines_of_row(TABLES[place], cells)]
            elif place in PEERS and "penstock / this" in table[0]:
                theirs += [line | {"table": place} for cells in table if (line := line_of_peer(cells)) is not None]
    known = {line["name"] for line in theirs if line["table"] != "beside-the-newest"}
    return ours, [line for line in theirs if line["table"] != "beside-the-newest" or line["name"] not in known]


def tables(text: str) -> Iterable[list[dict[str, str]]]:
    """Each table's rows, a cell by the name of its column."""
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        head, _, *rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in block.splitlines()]
        yield [dict(zip(head, each + [""] * len(head), strict=False)) for each in rows]


def lines_of_row(name: str, cells: dict[str, str]) -> list[Line]:
    """A row of figure, median, spread and target; of blocks, a row of an order, its speed and its entropy."""
    if "windows/s" in cells:
        entropy = cells["entropy of a batch, bits"]
        columns = [(cells["windows/s"], "windows/s", "")]
        columns += [(entropy, "bits", "entropy of a batch: ")] if entropy else []
        return [
            {"name": name, "what": before + cells["order"], "unit": unit} | spread(*[value_of(cell)] * 3)
            for cell, unit, before in columns
        ]
    found = re.fullmatch(r"([-\d.,e]+) (.+)", cells.get("median", ""))
    if found is None or "figure" not in cells:
        return []
    middle, unit = value_of(found[1]), found[2]
    low, high = (value_of(each) for each in cells["spread"].split(" – "))
    line = {"name": name, "what": cells["figure"], "unit": unit, "at_most": None, "at_least": None, "at": {}}
    limit = re.fullmatch(r"([≤≥]) ([\d.,]+)", cells.get("target", ""))
    if limit:
        line["at_most" if limit[1] == "≤" else "at_least"] = value_of(limit[2])
    grid = re.match(r"(\d+e\d+) tokens, ([\d,]+) shards?: ", cells["figure"])
    if grid:
        line["at"] = {"tokens": float(grid[1]), "shards": value_of(grid[2])}
    return [line | spread(low, middle, high)]


def line_of_peer(cells: dict[str, str]) -> Line | None:
    found = re.fullmatch(r"([\d.,]+) \[([\d.,]+) – ([\d.,]+)\]", cells["penstock / this"])
    if found is None:
        return None
    middle, low, high = (value_of(each) for each in found.groups())
    place = cells.get("loading in", "where it is fastest")
    what = f"{place}, {cells['dtype']}, {cells['setting']}: penstock / this"
    return {"name": cells["peer"], "what": what, "unit": "ratio"} | spread(low, middle, high)


def spread(low: float, middle: float, high: float) -> dict[str, float]:
    return {"lowest": low, "median": middle, "highest": high}


def value_of(text: str) -> float:
    return float(text.replace(",", ""))
