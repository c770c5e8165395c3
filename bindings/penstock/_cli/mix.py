"""`penstock mix`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from penstock._cli.command_help import Command
from penstock._cli.data import named_by_user
from penstock._cli.output import emit_json, emit_table, json_option

if TYPE_CHECKING:
    from penstock._load.mixture import Mixture
    from penstock._load.mixture_stages import MixtureRun


_MOST_ENDLESS = 1_000_000  # observations of a plan without end

_EPILOG = """\b
Examples:
  penstock mix mix.json
  penstock mix mix.json --until 1000000 --plot mix.png
  penstock mix mix.json --state checkpoint.json
"""


@click.command("mix", cls=Command, epilog=_EPILOG)
@click.argument("file")
@click.option(
    "--dry-run", is_flag=True, help="Print the plan and write nothing, which this command always does. Default: on."
)
@click.option(
    "--until",
    type=click.IntRange(1),
    metavar="N",
    help="Position, in observations, at which the plan ends. Default: the mixture's end; without one, as many as its "
    "sources have together, at most 1,000,000.",
)
@click.option(
    "--state",
    metavar="FILE",
    help="File with a saved state of a run, as JSON, by torch.save or by DCP: with the weights that were set in it. "
    "Default: none.",
)
@click.option("--plot", metavar="F.png", help="File for a chart of shares and epochs; needs matplotlib. Default: none.")
@click.option(
    "--points",
    type=click.IntRange(2, 100_000),
    default=100,
    show_default=True,
    help="Number of positions that --plot and --json have.",
)
@json_option
def command(
    file: str,
    dry_run: bool,  # what it does in any case
    until: int | None,
    state: str | None,
    points: int,
    plot: str | None,
    as_json: bool,
) -> None:
    """Says what stages a mixture has, and what each source has given at the end.

    FILE is JSON: {"sources": {name: {"path": …, "window": …, "lookahead": …}}, "stages": [{"weights": {name: number},
    "at" or "at_tokens": …, "ramp" or "ramp_tokens": …}], and "caps", "epochs", "end" or "end_tokens", "group",
    "steered"}. Other keys of a source are arguments of penstock.open and of its views: "dtype", "where", "packed",
    "end_of_document". Nothing of the data is read.
    """
    import penstock

    with named_by_user():
        mixture = penstock.Mixture.from_file(file)
    if state is not None:
        mixture = _of_state(mixture, file, state)
    is_endless = until is None and mixture.run_end is None
    if is_endless:
        until = min(sum(map(len, mixture.sources.values())), _MOST_ENDLESS)
    run = mixture.plan(until, points)
    if plot is not None:
        _draw(run, mixture, plot)
    if as_json:
        emit_json(_described(mixture, run))
        return
    emit_table(_rows(mixture, run, is_endless))


def _of_state(mixture: Mixture, file_of_mixture: str, file: str) -> Mixture:
    """The mixture with the weights that were set in the run of a state."""
    import penstock
    from penstock._cli.traced import read_state, refusals_of, run_of_state, with_orders_of

    state = read_state(file)
    run = run_of_state(mixture, state, with_orders=False)
    job = penstock.Job(run.view, global_batch_size=1, seed=run.seed, skip=run.skip)
    state = with_orders_of(job.state_dict(0), state)  # which observations of a source come is nothing to its share
    with refusals_of((file_of_mixture,)):
        if run.steered:
            found: Mixture = run.view._of_job(job.steered(state)._native)
            return found
        job._native.resumed(state["version"], state["position"], state["job"])  # refuses a state of another mixture
    return mixture


def _described(mixture: Mixture, run: MixtureRun) -> dict[str, Any]:
    by_source = ("observations", "share", "epochs")
    return {
        "names": mixture.names,
        "end": mixture.run_end,
        "stages": [stage._asdict() for stage in mixture.stages],
        "position": run.position.tolist(),
        "tokens": run.tokens.tolist(),
        **{what: {name: each.tolist() for name, each in getattr(run, what).items()} for what in by_source},
    }


def _rows(mixture: Mixture, run: MixtureRun, is_endless: bool) -> list[tuple[str, str]]:
    last = int(run.position[-1])
    rows = []
    for number, stage in enumerate(mixture.stages):
        if stage.begin >= last:
            break
        where = f"from {stage.begin:,}"
        if stage.begin_tokens is not None:
            where += f" ({stage.begin_tokens:,} tokens)"
        total = sum(stage.weights.values())
        shares = ", ".join(f"{name} {weight / total:.1%}" for name, weight in stage.weights.items())
        window = f", windows of {stage.window:,}" if stage.window is not None else ""
        why = ", since a source has given its cap" if stage.implied else ""
        why += f", after a ramp of {stage.ramp:,}" if stage.ramp else ""
        rows.append((f"stage {number}", f"{where}{window}{why}: {shares}"))
    why = ": the mixture has no end, --until N shows another part" if is_endless else ""
    rows.append(("until", f"{last:,} observations, {int(run.tokens[-1]):,} tokens{why}"))
    for name in mixture.names:
        given = int(run.observations[name][-1])
        rows.append((name, f"{given:,} observations, {given / max(last, 1):.1%}, {run.epochs[name][-1]:.2f} epochs"))
    return rows


def _draw(run: MixtureRun, mixture: Mixture, path: str) -> None:
    try:
        import matplotlib
    except ImportError:
        raise ModuleNotFoundError("--plot needs matplotlib: pip install matplotlib") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (shares, epochs) = pyplot.subplots(2, 1, sharex=True, figsize=(8, 6), layout="constrained")
    shares.stackplot(run.position, *run.share.values(), labels=mixture.names, step="pre")
    shares.set_ylabel("share")
    shares.set_ylim(0, 1)
    shares.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    for name in mixture.names:
        epochs.plot(run.position, run.epochs[name])
    epochs.set_ylabel("epochs")
    epochs.set_xlabel("position")
    figure.savefig(path)
    pyplot.close(figure)
