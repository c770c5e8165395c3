"""The charts that docs/benchmarks.md shows, drawn from the results of run.py and of peers/run.py.

python benchmarks/charts.py results.json docs/images
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot, ticker
from results import number

Line = dict[str, Any]
OURS, OTHER, LIMIT = "C0", "0.72", "0.35"


def draw(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draws the charts of those measurements that are among the lines; says which files it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name, chart in CHARTS.items():
        chosen = [line for line in lines if line["name"] == name]
        if chosen:
            figure = chart(chosen)
            drawn.append(folder / f"benchmark-{name}.png")
            figure.savefig(drawn[-1])
            pyplot.close(figure)
    return drawn


def draw_peers(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draws the speeds of peers/run.py beside penstock's, one panel a place, on log axes; says which file it wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    places: dict[str, list[Line]] = {"the training thread": [], "the background": [], "where it is fastest": []}
    for line in lines:
        if line["unit"] == "batches/s":
            places[line["what"].partition(", ")[0]].append(line)
    panels = {place: sorted(found, key=lambda line: -line["median"]) for place, found in places.items() if found}
    if not panels:
        return []
    rows = [len(found) + 2 for found in panels.values()]
    figure, axes = pyplot.subplots(
        len(panels),
        1,
        figsize=(8.4, 0.21 * sum(rows)),
        height_ratios=rows,
        layout="constrained",
        dpi=110,
        squeeze=False,
    )
    for panel, (place, found) in zip(axes.flat, panels.items(), strict=True):
        labels = [f"{line['name']}, {line['what'].split(', ')[1]}" for line in found]
        colors = [OURS if line["name"].startswith("penstock") else OTHER for line in found]
        bars(panel, found, labels, colors, min(line["lowest"] for line in found) / 2)
        state = "cold" if place == "where it is fastest" else "warm"
        panel.set_xlabel(
            f"batches a second, {state}, loading {place if state == 'cold' else 'in ' + place}", fontsize=8
        )
    path = folder / "benchmark-peers.png"
    figure.savefig(path)
    pyplot.close(figure)
    return [path]


def bars(
    axes: Any, lines: Sequence[Line], labels: Sequence[str], colors: Sequence[str], fewest: float | None = None
) -> None:
    """Horizontal bars of medians with their spread, the figure at each bar's end; `fewest`: a log axis from there."""
    places = range(len(lines))
    medians = [line["median"] for line in lines]
    spread = [
        [line["median"] - line["lowest"] for line in lines],
        [line["highest"] - line["median"] for line in lines],
    ]
    axes.barh(places, medians, xerr=spread, color=colors, height=0.7, error_kw={"ecolor": "0.2", "lw": 0.8})
    for place, line in zip(places, lines, strict=True):
        axes.annotate(f" {number(line['median'])}", (line["highest"], place), va="center", fontsize=8)
    axes.set_yticks(places, labels, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.16)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
    axes.tick_params(axis="x", labelsize=8)
    if fewest is not None:
        axes.set_xscale("log")
        axes.set_xlim(left=fewest, right=max(line["highest"] for line in lines) * 3)
    axes.spines[["top", "right"]].set_visible(False)


def canvas(rows: int, columns: int, height: float, width: float = 8.4) -> tuple[Any, Any]:
    return pyplot.subplots(rows, columns, figsize=(width, height), layout="constrained", dpi=110, squeeze=False)


def color_of(what: str) -> str:
    return OURS if "penstock" in what else LIMIT


# --- one function a measurement


def throughput(lines: Sequence[Line]) -> Any:
    """Warm windows/s beside the C loop, one panel a number of threads."""
    speeds = [line for line in lines if line["unit"] == "windows/s" and line["what"].startswith("records")]
    threads = sorted({line["what"].partition(": ")[0].split(", ")[1] for line in speeds})
    figure, axes = canvas(len(threads), 1, 2.4 * len(threads))
    for panel, count in zip(axes[:, 0], threads, strict=True):
        chosen = [line for line in speeds if f", {count}:" in line["what"]]
        labels = [line["what"].removeprefix("records of ").replace(f", {count}", "") for line in chosen]
        bars(panel, chosen, labels, [color_of(line["what"]) for line in chosen])
        panel.set_title(count, fontsize=9)
        panel.set_xlabel("windows of 4,096 records a second, warm", fontsize=8)
    return figure


def cold(lines: Sequence[Line]) -> Any:
    speeds = [line for line in lines if line["unit"] == "windows/s"]
    figure, axes = canvas(1, 1, 0.8 + 0.26 * len(speeds))
    bars(axes[0][0], speeds, [line["what"] for line in speeds], [color_of(line["what"]) for line in speeds])
    axes[0][0].set_xlabel("windows a second, cold", fontsize=8)
    return figure


def cold_blocks(lines: Sequence[Line]) -> Any:
    """Windows/s by order, and the entropy of a batch beside it."""
    figure, axes = canvas(1, 2, 2.6)
    entropy = "entropy of a batch: "
    speeds = [line for line in lines if line["unit"] == "windows/s"]
    mixing = [line for line in lines if line["unit"] == "bits"]
    for panel, chosen in zip(axes[0], (speeds, mixing), strict=True):
        colors = [LIMIT if line["what"].startswith("fio") else OURS for line in chosen]
        bars(panel, chosen, [line["what"].removeprefix(entropy) for line in chosen], colors)
    axes[0][0].set_xlabel("windows of 1 KiB a second, cold", fontsize=8)
    axes[0][1].set_xlabel("entropy of a batch of 64, bits (14 plates)", fontsize=8)
    return figure


def mixing(lines: Sequence[Line]) -> Any:
    """Entropy of a batch against the fetch, a line a block; crosses are scDataset's."""
    figure, axes = canvas(1, 1, 3.0)
    panel = axes[0][0]
    for color, block in enumerate(sorted({line["at"]["block"] for line in lines})):
        chosen = sorted((line for line in lines if line["at"]["block"] == block), key=lambda line: line["at"]["factor"])
        factors = [line["at"]["factor"] for line in chosen]
        panel.plot(factors, [line["median"] for line in chosen], f"C{color}o-", ms=3.5, label=f"block of {block:.0f}")
        theirs = [line for line in chosen if "scDataset" in line["at"]]
        values = [line["at"]["scDataset"] for line in theirs]
        panel.plot([line["at"]["factor"] for line in theirs], values, "kx", ms=7)
    panel.axhline(lines[0]["at"]["high"], color=LIMIT, lw=0.8, ls="--")
    panel.set_xscale("log", base=2)
    panel.set_xlabel("fetch, in batches of 64 (crosses: scDataset 0.3.0; dashed: a uniform batch)", fontsize=8)
    panel.set_ylabel("entropy, bits (14 plates)", fontsize=8)
    panel.legend(fontsize=7, loc="lower right")
    return figure


def learning(lines: Sequence[Line]) -> Any:
    """The share of right answers by order, a panel a label."""
    figure, axes = canvas(1, 2, 1.9)
    for panel, label in zip(axes[0], ("drug", "line"), strict=True):
        chosen = [line for line in lines if line["what"].startswith(f"{label}: ")]
        bars(panel, chosen, [line["what"].partition(": ")[2] for line in chosen], [OURS] * len(chosen))
        panel.set_xlabel(f"{label}s of held-out cells told right, after one epoch", fontsize=8)
    return figure


def training(lines: Sequence[Line]) -> Any:
    """Slowdown with the limits as marks."""
    panels: dict[str, list[Line]] = {}
    for line in lines:
        if line["unit"] == "%":
            panels.setdefault(line["what"].partition(": ")[0], []).append(line)
    figure, axes = canvas(len(panels), 1, 0.4 + 1.7 * len(panels))
    for panel, (step, chosen) in zip(axes[:, 0], panels.items(), strict=True):
        labels = [line["what"].partition("slowdown ")[2].replace(" in memory", "") for line in chosen]
        bars(panel, chosen, labels, [OURS] * len(chosen))
        for place, line in enumerate(chosen):
            if line["at_most"] is not None:
                panel.plot([line["at_most"]] * 2, [place - 0.42, place + 0.42], color="C3", lw=1.6)
        panel.axvline(0, color="0.2", lw=0.8)
        panel.set_title(step, fontsize=9)
    panel.set_xlabel("slowdown against feeding from memory, % (red: the limit)", fontsize=8)
    return figure


def sizes(lines: Sequence[Line]) -> Any:
    """Each figure against tokens, one line a number of shards; both axes logarithmic."""
    figures = list(dict.fromkeys(line["what"].partition(": ")[2] for line in lines))
    figure, axes = canvas(2, 2, 5.6)
    for panel, name in zip(axes.flat, figures, strict=False):
        chosen = [line for line in lines if line["what"].endswith(f": {name}")]
        for color, shards in enumerate(sorted({line["at"]["shards"] for line in chosen})):
            points = sorted(
                (line["at"]["tokens"], line["median"], line["lowest"], line["highest"])
                for line in chosen
                if line["at"]["shards"] == shards
            )
            x, y, low, high = zip(*points, strict=True)
            spread = [[a - b for a, b in zip(y, low, strict=True)], [b - a for a, b in zip(y, high, strict=True)]]
            label = f"{shards:,.0f} shard{'s' if shards > 1 else ''}"
            panel.errorbar(x, y, spread, fmt="o-", color=f"C{color}", lw=1.4, ms=4, capsize=2, label=label)
        panel.set_xscale("log")
        panel.set_yscale("log")
        bottom, top = panel.get_ylim()
        panel.set_ylim(bottom / 3, top * 3)  # what is flat shall look flat
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
        panel.yaxis.set_major_formatter(lambda value, _: number(value))
        panel.yaxis.set_minor_formatter(ticker.NullFormatter())
        panel.set_title(f"{name}, {chosen[0]['unit']}", fontsize=9)
        panel.set_xlabel("tokens", fontsize=8)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0][0].legend(frameon=False, fontsize=8)
    return figure


def ablation(lines: Sequence[Line]) -> Any:
    chosen = [line for line in lines if line["unit"] == "batches/s"]
    figure, axes = canvas(1, 1, 0.8 + 0.28 * len(chosen))
    colors = [OURS if "penstock" in line["what"] else OTHER for line in chosen]
    bars(axes[0][0], chosen, [line["what"] for line in chosen], colors, min(line["lowest"] for line in chosen) / 2)
    axes[0][0].set_xlabel("batches of 8 windows of 4,096 records with all metadata a second, warm", fontsize=8)
    return figure


def memory(lines: Sequence[Line]) -> Any:
    line = next(line for line in lines if line["at"])
    figure, axes = canvas(1, 1, 2.4)
    step = line["at"]["batches"] / len(line["values"])
    axes[0][0].plot([step * (i + 1) for i in range(len(line["values"]))], line["values"], color=OURS, lw=1.6)
    axes[0][0].set_ylim(0, max(line["values"]) * 1.3)
    axes[0][0].set_xlim(left=0)
    axes[0][0].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes[0][0].set_xlabel("batches", fontsize=8)
    axes[0][0].set_ylabel("resident, MiB", fontsize=8)
    axes[0][0].spines[["top", "right"]].set_visible(False)
    return figure


def layouts(lines: Sequence[Line]) -> Any:
    units = [unit for unit in ("B", "windows/s") if any(line["unit"] == unit for line in lines)]
    figure, axes = canvas(1, len(units), 1.9)
    for panel, unit in zip(axes[0], units, strict=True):
        chosen = [line for line in lines if line["unit"] == unit]
        colors = [OURS if line["what"].startswith("compact") else OTHER for line in chosen]
        bars(panel, chosen, [line["what"] for line in chosen], colors)
        panel.set_xlabel("bytes" if unit == "B" else unit, fontsize=8)
    return figure


def writer(lines: Sequence[Line]) -> Any:
    chosen = [line for line in lines if line["unit"] == "MB/s" and "text" not in line["what"]]
    figure, axes = canvas(1, 1, 0.8 + 0.28 * len(chosen))
    bars(axes[0][0], chosen, [line["what"] for line in chosen], [color_of(line["what"]) for line in chosen])
    axes[0][0].set_xlabel("MB/s, synced", fontsize=8)
    return figure


def balance(lines: Sequence[Line]) -> Any:
    """How much longer than the mean a step is that waits at each micro-batch, by turns and balanced."""
    chosen = [line for line in lines if line["unit"] == "ratio"]
    figure, axes = canvas(1, 1, 0.8 + 0.28 * len(chosen))
    colors = [OURS if "balanced" in line["what"] else OTHER for line in chosen]
    bars(axes[0][0], chosen, [line["what"].partition(":")[0] for line in chosen], colors)
    axes[0][0].axvline(1, color=LIMIT, lw=0.8, ls="--")
    axes[0][0].xaxis.set_major_locator(ticker.MaxNLocator(6))
    axes[0][0].xaxis.set_major_formatter(lambda value, _: f"{value:.1f}")
    axes[0][0].set_xlabel("cost of the slowest rank at each micro-batch of a row, summed, over the mean", fontsize=8)
    return figure


CHARTS: dict[str, Callable[[Sequence[Line]], Any]] = {
    "throughput": throughput,
    "cold": cold,
    "blocks": cold_blocks,
    "mixing": mixing,
    "learning": learning,
    "training": training,
    "sizes": sizes,
    "ablation": ablation,
    "memory": memory,
    "layouts": layouts,
    "writer": writer,
    "balance": balance,
}


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(sys.argv[2])
    for path in draw_peers(results["lines"], folder) if isinstance(results, dict) else draw(results, folder):
        print(path)


if __name__ == "__main__":
    main()
