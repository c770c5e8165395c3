"""The charts of docs/, drawn from the tables of a page or from the results of run.py and of peers/run.py.

python benchmarks/charts.py docs/benchmarks.md docs/images      # as they are committed
python benchmarks/charts.py results.json build/charts
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from dots import Curve, Curves, Panel, Point, Row, picture
from page_tables import Line, lines_of
from results import number

SPREAD = "Dots: medians; lines: lowest to highest repeat."
PLACES = {"the training thread": "thread", "the background": "background", "where it is fastest": "cold"}


def draw(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draws the charts of those measurements that are among the lines; says which files it wrote."""
    return write(
        folder, {name: chart([line for line in lines if line["name"] == name]) for name, chart in CHARTS.items()}
    )


def draw_peers(lines: Sequence[Line], folder: Path) -> list[Path]:
    """Draws how many times the batches of each peer penstock gives, a chart a place; says which files it wrote."""
    ratios = [line for line in lines if line["unit"] == "ratio" and line["what"].endswith(": penstock / this")]
    drawn = {}
    for place, name in PLACES.items():
        found = [line for line in ratios if line["what"].startswith(f"{place}, ")]
        drawn[f"peers-{name}"] = peers(name, found)
    return write(folder, drawn)


def write(folder: Path, drawn: dict[str, str]) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, svg in drawn.items():
        if svg:
            paths.append(folder / f"benchmark-{name}.svg")
            paths[-1].write_text(svg, encoding="utf-8")
    return paths


# --- rows of figures


def row(line: Line, label: str, ours: bool = True) -> Row:
    low, middle, high = line["lowest"], line["median"], line["highest"]
    said = number(middle) if low == high else f"{number(middle)} ({number(low)} – {number(high)})"
    return Row(label, (Point(middle, low, high),), said, ours)


def reach_of(lines: Sequence[Line], digits: int = 2) -> str:
    """The least and the greatest median: "1 to 72"."""
    least, greatest = (pick(line["median"] for line in lines) for pick in (min, max))
    said = [f"{value:.{digits}g}" for value in (least, greatest)]
    return said[0] if said[0] == said[1] else " to ".join(said)


def reached(lines: Sequence[Line]) -> tuple[float, float]:
    """From the lowest repeat to the highest: axes of several panels that are to be alike."""
    return min(line["lowest"] for line in lines), max(line["highest"] for line in lines)


def ending(lines: Sequence[Line], unit: str, *, without: str = "\0") -> list[Line]:
    return [line for line in lines if line["unit"] == unit and without not in line["what"]]


# --- one function a measurement: the SVG, or nothing where it was not measured


def peers(name: str, lines: Sequence[Line]) -> str:
    titles = {
        "thread": "Batches a second of penstock over those of other loaders that run in the training thread",
        "background": "Batches a second of penstock over those of other loaders with workers or threads",
        "cold": "Batches a second of penstock over those of other loaders, from a disk",
    }
    conditions = (
        "Out of the page cache, each loader with its fastest setting. 1: as fast. "
        if name == "cold"
        else "Warm; batches of 8 windows of 4,096 tokens. penstock reads with threads of its own. 1: as fast. "
    )
    panels = []
    for dtype, words in (("int64", "int64 tensors"), ("int32", "int32 tensors"), ("uint32", "uint32 arrays, as read")):
        found = [line for line in lines if line["what"].split(", ")[1] == dtype]
        if found:
            ranked = sorted(found, key=lambda line: line["median"])
            shown = [
                row(line, line["name"].replace("its default of a split a rank", "a split a rank")) for line in ranked
            ]
            panels.append(Panel(words, shown, "times as many batches, logarithmic", True, (1,), [(1, "as fast")]))
    return picture(titles[name], conditions + SPREAD, panels) if panels else ""


def readme(lines: Sequence[Line]) -> str:
    """One place and type of the peers' chart: tensors in int64, each loader where it is fastest."""
    found = [
        line for line in lines if line["what"].startswith("the training thread, int64, ") and line["unit"] == "ratio"
    ]
    if not found:
        return ""
    shown = [row(line, line["name"]) for line in sorted(found, key=lambda line: line["median"])]
    loaders = [line for line in found if not line["name"].startswith("bare gather")]
    title = f"{reach_of(loaders)} times the batches a second of other loaders, out of the page cache"
    conditions = (
        "int64, batches of 8 windows of 4,096 tokens, 2 cores. penstock reads with threads of its own; the others in "
        "the training thread, where each was faster than with workers. The gather has no order and no state. "
    )
    marks = [(1, "as fast")]
    panel = Panel("", shown, "times as many batches, logarithmic", True, (1,), marks)
    return picture(title, conditions + SPREAD, [panel])


def throughput(lines: Sequence[Line]) -> str:
    """Ratios to the C loop, a panel for records and threads, types apart."""
    ratios = [line for line in ending(lines, "ratio") if line["what"].startswith("records")]
    panels = []
    for place in dict.fromkeys(line["what"].partition(": ")[0] for line in ratios):
        chosen = [line for line in ratios if line["what"].startswith(f"{place}: ")]
        shown = []
        for line in sorted(chosen, key=lambda line: "int64" in line["what"]):
            label = line["what"].partition(": ")[2].removesuffix(" / C loop").replace("reader=mmap", 'reader="mmap"')
            shown.append(row(line, label))
        title = f"{place[0].upper()}{place[1:]}"
        panels.append(
            Panel(title, shown, "times the windows of the C loop", within=reached(ratios), marks=[(1, "C loop")])
        )
    title = "Windows a second of penstock over those of a loop of pread in C with as many threads"
    told = "Warm, windows of 4,096 records. The loop writes no int64. The limit of 0.8 is for arrays as read. "
    return picture(title, told + SPREAD, panels) if panels else ""


def cold(lines: Sequence[Line]) -> str:
    """Ratios to fio, a panel for each size of window; windows/s where fio is not installed."""
    ratios = ending(lines, "ratio")
    shown_lines = ratios or ending(lines, "windows/s")
    axis, marks = ("times the windows of fio", [(1, "fio")]) if ratios else ("windows/s", [])
    panels = []
    for place in dict.fromkeys(line["what"].partition(": ")[0] for line in shown_lines):
        chosen = [line for line in shown_lines if line["what"].startswith(f"{place}: ")]
        labels = [line["what"].partition(": ")[2].removesuffix(" / fio") for line in chosen]
        shown = [row(line, label) for line, label in zip(chosen, labels, strict=True)]
        panels.append(Panel(f"{place[0].upper()}{place[1:]}", shown, axis, within=reached(shown_lines), marks=marks))
    if not ratios:
        title, told = "Windows a second from the device by each reader of penstock", "Random windows. "
    else:
        title = "Windows a second from the device: penstock by each reader over fio"
        told = "Random windows, 32 reads of fio's under way. "
    return picture(title, told + SPREAD, panels) if panels else ""


def cold_blocks(lines: Sequence[Line]) -> str:
    """Windows/s by order, and the entropy of a batch beside it."""
    panels = []
    for unit, title, axis in (
        ("windows/s", "Windows of 1 KiB a second", "windows a second"),
        ("bits", "Mixing: entropy of the stretches in a batch of 64", "bits; the most is 3.81"),
    ):
        chosen = ending(lines, unit)
        labels = [line["what"].removeprefix("entropy of a batch: ") for line in chosen]
        shown = [row(line, label, not label.startswith("fio")) for line, label in zip(chosen, labels, strict=True)]
        if shown:
            panels.append(Panel(title, shown, axis))
    title = "Blocks of neighbours are read faster from a disk than single windows, and mix less the larger they are"
    return picture(title, "Medians of five rounds, out of the page cache.", panels) if panels else ""


def mixing(lines: Sequence[Line]) -> str:
    """Entropy of a batch against the fetch, a curve a block; crosses are scDataset's."""
    if not lines:
        return ""
    factors = sorted({line["at"]["factor"] for line in lines})
    shown = []
    for block in sorted({line["at"]["block"] for line in lines}):
        chosen = sorted((line for line in lines if line["at"]["block"] == block), key=lambda line: line["at"]["factor"])
        theirs = {
            factors.index(line["at"]["factor"]): line["at"]["scDataset"] for line in chosen if "scDataset" in line["at"]
        }
        shown.append(Curve(f"{block:.0f}", [line["median"] for line in chosen], theirs))
    panel = Curves(
        "Entropy of the plates in a batch of 64, bits, by block",
        "fetch, in batches of 64",
        [f"{factor:.0f}" for factor in factors],
        shown,
        (lines[0]["at"]["high"], "a uniform batch"),
    )
    title = "Blocks mix as well as single cells once a fetch is many times their size"
    return picture(title, "Crosses: scDataset 0.3.0 with the same block and fetch.", [panel])


def learning(lines: Sequence[Line]) -> str:
    """The share of right answers by order, a panel a label."""
    panels = []
    for label in ("drug", "line"):
        chosen = [line for line in lines if line["what"].startswith(f"{label}: ")]
        shown = [row(line, line["what"].partition(": ")[2]) for line in chosen]
        if shown:
            panels.append(Panel(f"The {label} of held-out cells", shown, "share that is told right", within=(1,)))
    title = "What a classifier knows after one epoch, by the order in which it saw the cells"
    return (
        picture(title, f"Logistic regression, 57,600 generated cells, three seeds. {SPREAD}", panels) if panels else ""
    )


def training(lines: Sequence[Line]) -> str:
    """Slowdown of a step, by the clock and by processor time; the limits are marks."""
    panels = []
    slower = [
        line for line in ending(lines, "%") if "other batches" in line["what"] and "main thread" not in line["what"]
    ]
    for step in dict.fromkeys(line["what"].partition(": ")[0] for line in slower):
        chosen = [line for line in slower if line["what"].startswith(f"{step}: ")]
        shown = [row(line, line["what"].rpartition(", ")[2]) for line in chosen]
        limit = chosen[0]["at_most"]
        marks = [(0.0, "")] if limit is None else [(0.0, ""), (limit, f"limit {limit:.0f} %")]
        words = step.replace(", torch on 1 thread", "").replace("reader=mmap", 'reader="mmap"')
        panels.append(
            Panel(
                f"{words[0].upper()}{words[1:]}",
                shown,
                "% longer than from memory",
                within=reached(slower),
                marks=marks,
            )
        )
    title = "How much longer a training step takes with batches of penstock than with batches that lie in memory"
    told = "Beside other batches in memory; torch on one thread of two cores; penstock reads on the other core. "
    return picture(title, told + SPREAD, panels) if panels else ""


def sizes(lines: Sequence[Line]) -> str:
    """Each figure by shards, a dot for each number of tokens."""
    panels = []
    for name in dict.fromkeys(line["what"].partition(": ")[2] for line in lines):
        chosen = [line for line in lines if line["what"].endswith(f": {name}")]
        shown = []
        for shards in sorted({line["at"]["shards"] for line in chosen}):
            found = sorted(
                (line for line in chosen if line["at"]["shards"] == shards), key=lambda line: line["at"]["tokens"]
            )
            strengths = [0.4 + 0.6 * i / max(1, len(found) - 1) for i in range(len(found))]
            points = tuple(
                Point(line["median"], line["lowest"], line["highest"], round(strength, 2))
                for line, strength in zip(found, strengths, strict=True)
            )
            said = " · ".join(number(line["median"]) for line in found)
            shown.append(Row(f"{shards:,.0f} shard{'s' if shards > 1 else ''}", points, said))
        low, high = reached(chosen)
        wide = high > 5 * low
        axis = f"{chosen[0]['unit']}, logarithmic" if wide else chosen[0]["unit"]
        title = name if name.startswith("load_state_dict") else f"{name[0].upper()}{name[1:]}"
        panels.append(Panel(title, shown, axis, wide))
    title = "Opening, resuming, memory and a window against the number of shards and of tokens"
    told = "Three dots a row, from pale to dark: 1e6, 1e9 and 1e12 tokens. "
    return picture(title, told + SPREAD, panels) if panels else ""


def ablation(lines: Sequence[Line]) -> str:
    chosen = ending(lines, "batches/s", without="int64")
    shown = [row(line, line["what"], "penstock" in line["what"]) for line in chosen]
    title = "Batches a second with all metadata: from a loop in Python, step by step, to penstock"
    panel = Panel("", shown, "batches a second, logarithmic", True)
    told = "The article's steps; batches of 8 windows of 4,096 records with all metadata, warm, as read. "
    return picture(title, told + SPREAD, [panel]) if shown else ""


def layouts(lines: Sequence[Line]) -> str:
    ratios = ending(lines, "ratio")
    shown = [row(line, line["what"].partition(": ")[2]) for line in ratios]
    title = "Windows with metadata a second: the compact layout over the ids layout"
    read = " and ".join(f"{number(line['median'])} B ({line['what'].partition(':')[0]})" for line in ending(lines, "B"))
    told = f"The same documents. Bytes read for a window: {read}. "
    panel = Panel("", shown, "times the windows of the ids layout", marks=[(1, "ids")])
    return picture(title, told + SPREAD, [panel]) if shown else ""


def writer(lines: Sequence[Line]) -> str:
    """Ratios to plain writers of one thread, a panel for each of them."""
    ratios = ending(lines, "ratio")
    panels = []
    for plain in dict.fromkeys(line["what"].partition(" / ")[2] for line in ratios):
        chosen = [line for line in ratios if line["what"].endswith(f" / {plain}")]
        shown = [row(line, line["what"].partition(" / ")[0].removeprefix("penstock, ")) for line in chosen]
        panels.append(
            Panel(f"Beside {plain}", shown, "times the plain writer's", within=reached(ratios), marks=[(1, "plain")])
        )
    title = "Bytes a second of penstock's writer over those of plain writers in C"
    told = "1 GiB on one thread each, synced; check values and digests are in penstock's time. "
    return picture(title, told + SPREAD, panels) if panels else ""


def balance(lines: Sequence[Line]) -> str:
    """How much longer than the mean a step is that waits at each micro-batch, by turns and balanced."""
    chosen = ending(lines, "ratio")
    shown = [row(line, line["what"].partition(":")[0], "balanced" in line["what"]) for line in chosen]
    title = "How long a step is when ranks wait for the slowest: rows dealt by turns, and balanced by cost"
    told = "Cost of the slowest rank at each micro-batch, summed, over the mean. "
    panel = Panel("", shown, "times the mean", marks=[(1, "no waiting")])
    return picture(title, told + SPREAD, [panel]) if shown else ""


def cells_by_number(lines: Sequence[Line]) -> str:
    """Cells a second and memory of each loader, a dot for each number of cells."""
    panels = []
    for unit, axis in (
        ("cells/s", "cells a second, logarithmic"),
        ("MiB", "anonymous memory of loading, MiB, logarithmic"),
    ):
        shown = []
        chosen = ending(lines, unit)
        for name in dict.fromkeys(line["what"].partition(" cells: ")[2] for line in chosen):
            found = [line for line in chosen if line["what"].endswith(f" cells: {name}")]
            strengths = [round(0.4 + 0.6 * i / max(1, len(found) - 1), 2) for i in range(len(found))]
            points = tuple(
                Point(line["median"], line["lowest"], line["highest"], strength)
                for line, strength in zip(found, strengths, strict=True)
            )
            said = " · ".join(number(line["median"]) for line in found)
            shown.append(Row(name, points, said, name.startswith("penstock")))
        if shown:
            panels.append(Panel(axis.partition(",")[0].capitalize(), shown, axis, True))
    numbers = list(dict.fromkeys(line["what"].partition(" cells: ")[0] for line in lines))
    title = "Loaders of single cells: cells a second and memory, by the number of cells"
    told = f"Dots from pale to dark: {', '.join(numbers)} cells of 30,000 genes, batches of 128, warm. "
    return picture(title, told + SPREAD, panels) if panels else ""


CHARTS: dict[str, Callable[[Sequence[Line]], str]] = {
    "throughput": throughput,
    "cold": cold,
    "blocks": cold_blocks,
    "mixing": mixing,
    "learning": learning,
    "training": training,
    "sizes": sizes,
    "ablation": ablation,
    "layouts": layouts,
    "writer": writer,
    "balance": balance,
    "cells-by-number": cells_by_number,
}


def draw_page(page: Path, folder: Path) -> list[Path]:
    """Draws every chart whose figures the page's tables hold."""
    ours, theirs = lines_of(page.read_text(encoding="utf-8"))
    drawn = draw(ours, folder) + draw_peers(theirs, folder)
    return drawn + write(folder, {"readme": readme([line for line in theirs if line["table"] == "peers-warm"])})


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    if source.suffix == ".md":
        drawn = draw_page(source, folder)
    else:
        results = json.loads(source.read_text(encoding="utf-8"))
        drawn = draw_peers(results["lines"], folder) if isinstance(results, dict) else draw(results, folder)
    for path in drawn:
        print(path)


if __name__ == "__main__":
    main()
