"""Compares what the resumed runs saw with what the never-killed run saw, position by position; a table and a plot."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from settings import ROWS_PER_STEP, Settings

# Where the arithmetic is the same (4 processes, 1 x 3 rows) losses are equal bit for bit. On 2 or 3 processes the same
# gradients are summed in another order; in float64 each sum may differ by 1e-16 of itself, and Adam divides small
# gradients by small roots, so it grows from step to step. One wrong row shows at 1e-2.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Row:
    source: int
    index: int
    ids: tuple[int, ...]
    loss: float


@dataclass
class Run:
    rows: dict[int, Row] = field(default_factory=dict)  # by position
    evaluation: list[float] = field(default_factory=list)

    def step_losses(self) -> dict[int, float]:
        """Step -> mean loss of its rows, summed in the order of positions; whole steps only."""
        steps: dict[int, list[float]] = {}
        for position in sorted(self.rows):
            steps.setdefault(position // ROWS_PER_STEP + 1, []).append(self.rows[position].loss)
        return {step: sum(losses) / ROWS_PER_STEP for step, losses in steps.items() if len(losses) == ROWS_PER_STEP}


def read_run(folder: Path) -> Run:
    """What the processes of one run logged; a last line that SIGKILL cut is dropped."""
    run = Run()
    for path in sorted(folder.glob("rank-*.jsonl")):
        for line in path.read_text().splitlines(keepends=True):
            record = json.loads(line) if line.endswith("\n") else {}
            run.evaluation = record.get("evaluation", run.evaluation)
            if "step" not in record:
                continue
            columns = (record[name] for name in ("positions", "sources", "indices", "ids", "losses"))
            for position, source, index, ids, loss in zip(*columns, strict=True):
                if position in run.rows:
                    raise ValueError(f"{folder.name}: position {position} was given twice")
                run.rows[position] = Row(source, index, tuple(ids), loss)
    return run


@dataclass(frozen=True)
class Comparison:
    first: int  # positions
    stop: int
    tokens: int
    wrong_rows: int
    equal_losses: int
    greatest: float  # difference of a row's loss


def compare(run: Run, reference: Run) -> Comparison:
    """Each row of `run` against the reference's at the same position; a hole in the positions counts as wrong."""
    first, stop = min(run.rows), max(run.rows) + 1
    both = [(row, reference.rows.get(position)) for position, row in run.rows.items()]
    wrong = sum(
        other is None or (row.source, row.index, row.ids) != (other.source, other.index, other.ids)
        for row, other in both
    )
    differences = [abs(row.loss - other.loss) for row, other in both if other is not None]
    return Comparison(
        first,
        stop,
        tokens=sum(len(row.ids) for row, _ in both),
        wrong_rows=wrong,
        equal_losses=sum(difference == 0 for difference in differences),
        greatest=max(differences, default=float("inf")),
    )


def greatest_by_step(run: Run, reference: Run) -> dict[int, float]:
    """Step -> greatest difference of a row's loss."""
    greatest: dict[int, float] = {}
    for position, row in run.rows.items():
        step = position // ROWS_PER_STEP + 1
        greatest[step] = max(greatest.get(step, 0.0), abs(row.loss - reference.rows[position].loss))
    return greatest


def compare_and_show(s: Settings, console: Console) -> bool:
    """Prints the table, writes demo.png and demo-dark.png; True where every comparison holds."""
    names = ["reference", "killed", "resumed-on-4", "resumed-on-2", "resumed-on-3"]
    runs = {name: read_run(s.folder / "runs" / name) for name in names}
    reference = runs["reference"]
    table = Table("run", "steps", "tokens", "token ids", "losses", "greatest difference", "verdict")
    good = sorted(reference.rows) == list(range(s.steps * ROWS_PER_STEP))
    for name in names[1:]:
        result = compare(runs[name], reference)
        exact = name in ("killed", "resumed-on-4")  # as many processes and as many parts a step as the reference
        allowed = 0.0 if exact else TOLERANCE
        fine = result.wrong_rows == 0 and result.greatest <= allowed
        # SIGKILL cuts the killed run's last step; any other run's positions have no hole.
        fine &= name == "killed" or len(runs[name].rows) == result.stop - result.first
        good &= fine
        table.add_row(
            name,
            f"{result.first // ROWS_PER_STEP + 1} to {-(-result.stop // ROWS_PER_STEP)}",
            f"{result.tokens:,}",
            "all equal" if result.wrong_rows == 0 else f"[red]{result.wrong_rows:,} rows differ",
            f"{result.equal_losses:,} of {len(runs[name].rows):,} equal bit for bit",
            f"{result.greatest:.1e} (allowed {allowed:g})",
            "[green]same" if fine else "[red]DIFFERENT",
        )
    # The killed run up to its checkpoint, then 2 processes, then 3: one training, each position once.
    stitched = Run(
        rows={p: r for name in ("killed", "resumed-on-2", "resumed-on-3") for p, r in runs[name].rows.items()}
    )
    good &= sorted(stitched.rows) == sorted(reference.rows)
    evaluations = reference.evaluation, runs["resumed-on-3"].evaluation
    twice = all(len(pair) == 2 and pair[0] == pair[1] for pair in evaluations)
    same_end = twice and abs(evaluations[0][0] - evaluations[1][0]) <= TOLERANCE
    console.print(table)
    console.print(
        f"evaluation, twice by one loader: reference {evaluations[0]}, resumed {evaluations[1]}", highlight=False
    )
    console.print("Losses on 2 and 3 processes: the same gradients summed in another order, in float64.", style="dim")
    good &= same_end
    plot(s, runs, s.folder / "demo.png", dark=False)
    plot(s, runs, s.folder / "demo-dark.png", dark=True)
    console.print("[bold green]every token and every loss as if nothing had happened" if good else "[bold red]FAILED")
    return good


#: By the name of a run; as the site's colours are (docs/styles/pages.css), in the light and in the dark.
COLORS = {
    False: {"card": "#ffffff", "ink": "#1c2b33", "reference": "#c9d3d8", "killed": "#b3362b",
            "resumed-on-2": "#00708c", "resumed-on-3": "#b25e00"},
    True: {"card": "#151d22", "ink": "#e4ecf0", "reference": "#4a5a64", "killed": "#ff8a7a",
           "resumed-on-2": "#4cc3e0", "resumed-on-3": "#f0a64d"},
}  # fmt: skip


def plot(s: Settings, runs: dict[str, Run], path: Path, dark: bool) -> None:
    """Losses of all runs, and the greatest difference to the one that was never killed; letters for a narrow screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    colors = COLORS[dark]
    ink = dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), colors["ink"]
    )
    with pyplot.rc_context(ink | {"figure.facecolor": colors["card"], "axes.facecolor": colors["card"]}):
        figure = drawn(s, runs, colors)
        figure.savefig(path)
        pyplot.close(figure)


def drawn(s: Settings, runs: dict[str, Run], colors: dict[str, str]) -> Any:
    from matplotlib import pyplot

    losses = {name: run.step_losses() for name, run in runs.items()}
    figure, (top, bottom) = pyplot.subplots(
        2, 1, figsize=(6.2, 6.1), sharex=True, height_ratios=[3, 1], layout="constrained", dpi=160
    )
    reference = zip(*sorted(losses["reference"].items()), strict=True)
    top.plot(*reference, color=colors["reference"], lw=7, label="never killed, 4 processes")
    looks = {
        "killed": (colors["killed"], "killed, 4 processes"),
        "resumed-on-2": (colors["resumed-on-2"], "resumed on 2 processes"),
        "resumed-on-3": (colors["resumed-on-3"], "resumed on 3 processes"),
    }
    for name, (color, label) in looks.items():
        steps = sorted(losses[name])
        top.plot(steps, [losses[name][step] for step in steps], color=color, lw=1.6, label=label)
        greatest = greatest_by_step(runs[name], runs["reference"])
        bottom.plot(steps, [max(greatest[step], 1e-17) for step in steps], color=color, lw=1.4)
    killed, resumed = max(losses["killed"]), min(losses["resumed-on-2"])
    top.plot(killed, losses["killed"][killed], "X", color=colors["killed"], ms=11, zorder=5)
    arrow = {"arrowstyle": "-", "color": colors["killed"]}
    place = (killed, losses["killed"][killed])
    top.annotate(f"SIGKILL after step {killed}", place, (12, 55), textcoords="offset points", arrowprops=arrow)
    for name, mark in (("resumed-on-2", f"from step {resumed - 1}"), ("resumed-on-3", f"from step {s.switch_at}")):
        for axes in (top, bottom):
            axes.axvline(min(losses[name]) - 0.5, color=looks[name][0], ls=":", lw=1)
        top.annotate(mark, (min(losses[name]), 0.03), xycoords=("data", "axes fraction"), color=looks[name][0])
    for axes in (top, bottom):
        axes.axvspan(s.second_stage_at + 0.5, s.steps, color="0.5", alpha=0.1, lw=0)
    top.annotate(
        "second stage of the mixture",
        (s.second_stage_at + 0.5, 0.93),
        (4, 0),
        ("data", "axes fraction"),
        "offset points",
    )
    top.set_ylabel("training loss")
    figure.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    bottom.set_yscale("log")
    bottom.set_ylim(3e-18, 1e-3)
    bottom.axhline(TOLERANCE, color="0.5", ls="--", lw=0.8)
    bottom.set_yticks([1e-17, 1e-13, 1e-9, 1e-5], ["0", "1e-13", "1e-9", "1e-5"])
    bottom.set_ylabel("greatest\ndifference\n(dashed: allowed)")
    bottom.set_xlabel(f"optimizer step ({ROWS_PER_STEP} rows each, on any number of processes)")
    figure.suptitle("A run killed and resumed twice, beside one never killed", weight="bold")
    return figure
