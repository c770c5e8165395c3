"""Measures penstock beside its peers: `make bench-peers`, or `python benchmarks/peers/run.py --help`.

Each peer runs in a virtual environment of its own, made when it is first needed (some gigabytes in all).
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks/, for what is shared with `make bench`

import ranks
from coldness import read_ahead
from environment import NotInstalled
from fleet import PEERS, PENSTOCK, Failed, Member, member
from measure import FULL, QUICK, Fleet, Size, say
from record import QUICK_RUN, replace_file
from report import ONE_CORE, Report
from results import machine, make_folders, versions

UNRANKED = ("penstock_mapped", "grain_array_record", "bare_gather")  # as others here with another reader, and no loader
BUILD = Path(__file__).parents[2] / "build" / "peers"
MEASUREMENTS = ("steady", "core", "cold", "correct", "ranks")


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=MEASUREMENTS, action="append", help="one measurement; may be repeated")
    parser.add_argument("--peer", choices=PEERS, action="append", help="one peer, beside penstock; may be repeated")
    parser.add_argument(
        "--setting", action="append", help='in the background only this one ("2 workers"), not the best'
    )
    parser.add_argument(
        "--quick", action="store_true", help="a small corpus, one repeat: whether it runs, not how fast"
    )
    parser.add_argument("--tokens", type=int, help=f"of the corpus; {FULL.tokens:,} otherwise")
    parser.add_argument("--repeats", type=int, help=f"alternating ones; {FULL.repeats} otherwise")
    parser.add_argument("--environments", type=Path, default=BUILD, help="where virtual environments are kept")
    parser.add_argument("--dir", type=Path, default=BUILD / "corpora", help="where corpora are kept: 14 GB")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    parser.add_argument("--charts", type=Path, help="folder for the chart that docs/benchmarks.md shows")
    return parser.parse_args(given)


def size(options: argparse.Namespace) -> Size:
    chosen = QUICK if options.quick else FULL
    changes = {"tokens": options.tokens, "repeats": options.repeats}
    return replace(chosen, **{name: value for name, value in changes.items() if value is not None})


def command(options: argparse.Namespace) -> str:
    """What repeats the measurement; where its files are is this machine's business."""
    words = ["python", "benchmarks/peers/run.py", *(["--quick"] if options.quick else [])]
    for name in ("tokens", "repeats"):
        if getattr(options, name) is not None:
            words += [f"--{name}", str(getattr(options, name))]
    for name in ("only", "peer", "setting"):
        words += [word for value in getattr(options, name) or () for word in (f"--{name}", value)]
    return shlex.join(words)


def members(options: argparse.Namespace) -> tuple[list[Member], list[str]]:
    """Those that can be asked, and why the others cannot."""
    found, missing = [], []
    for key in PEERS:
        if options.peer and key not in (PENSTOCK, *options.peer):
            continue
        try:
            found.append(member(key, options.environments.absolute()))
        except (NotInstalled, Failed) as error:
            missing.append(f"{key} cannot run here: {error}")
            say(missing[-1])
    return found, missing


def main() -> None:
    options = arguments()
    # An end from outside gives the read-ahead back too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    chosen = options.only or MEASUREMENTS
    make_folders(options.json, options.markdown)
    found, missing = members(options)
    fleet = Fleet(found, options.dir.absolute(), size(options), options.setting or [])
    fleet.failures += missing
    fleet.prepare(large=set(chosen) != {"ranks"}, small="ranks" in chosen)
    report = Report(fleet, [], [], "")
    if "steady" in chosen:
        report.steady = fleet.steady()
        write(report, options)
    if "core" in chosen:
        report.one_core = fleet.one_core()
        write(report, options)
    if "cold" in chosen:
        with read_ahead(fleet.corpora) as words:
            report.cold = fleet.cold()
        report.forced = f"{words}; {bounded(fleet)}"
        write(report, options)
    if "correct" in chosen:
        with tempfile.TemporaryDirectory() as folder:
            for key, one in fleet.members.items():
                if one.speed:
                    say(f"resume: {one.name}")
                    report.facts[key] = fleet.resume(one, Path(folder))
                    write(report, options)
    if "ranks" in chosen:
        with tempfile.TemporaryDirectory() as folder:
            for key, one in fleet.members.items():
                if key not in UNRANKED:
                    report.ranks[key] = ranks.measured(fleet, one, Path(folder))
                    write(report, options)
    print(write(report, options))
    if options.charts:
        import charts

        lines = report.as_json(machine(), versions(), command(options))["lines"]
        charts.draw_peers([line for line in lines if not line["what"].startswith(ONE_CORE)], options.charts)


def bounded(fleet: Fleet) -> str:
    """What holds for every cold run, in words."""
    dropped = "files dropped from the page cache before each run, no window read twice"
    if not fleet.bounded:
        return f"{dropped}; page cache not bounded: no memory cgroup may be made here"
    return f"{dropped}; page cache bounded to {fleet.cache_mib:,.0f} MiB beside the process, by a memory cgroup"


def write(report: Report, options: argparse.Namespace) -> str:
    """Writes both files as of now, so that a run that is killed keeps what was measured; gives the tables."""
    job = report.fleet.size
    head = f"{machine()}; `{command(options)}`: {job.tokens:,} u32 tokens, windows of {job.window:,}, batches of 8\n"
    text = (f"**{QUICK_RUN}**\n\n" if options.quick else "") + report.markdown(head)
    found = report.as_json(machine(), versions(), command(options)) | {"quick": options.quick}
    replace_file(options.markdown, text)
    replace_file(options.json, json.dumps(found, indent=1) + "\n")
    return text


if __name__ == "__main__":
    main()
