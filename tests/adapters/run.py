"""Runs each adapter against its framework: `make adapters`, or `python tests/adapters/run.py --help`.

Each job trains a small model three times: once to the end; once until it kills itself, some steps after a checkpoint;
and on from that checkpoint. What was trained on before and after must be what the first run was trained on, row by row,
and so must every loss be, bit by bit, where the number of processes is the same. Then the programs here that check the
adapters' other promises run, and those of docs/adapters.md and docs/cells.md. Files that begin with "scvi" have one
environment of their own. With `--torchtitan CHECKOUT` torchtitan's alone run, on the code there, in another one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from pinned import environment, penstock_alone, say  # noqa: E402

BUILD = HERE.parents[1] / "build" / "adapters"
PAGES = [HERE.parents[1] / "docs" / name for name in ("adapters.md", "cells.md")]
STEPS, SAVE_AT, KILL_AFTER = 24, 10, 14
SCVI = ("scvi-tools", "lightning")
HELD_OUT = 22  # rows of a validation, as job.py has it


@dataclass(frozen=True)
class Job:
    """One framework, run in one way."""

    script: str
    packages: tuple[str, ...]
    what: str
    arguments: tuple[str, ...] = ()
    steps: int = STEPS
    save_at: int = SAVE_AT
    ranks: tuple[int, int] = (1, 1)  # before and after
    torchrun: bool = False
    validates: bool = False


@dataclass
class Result:
    """What came of it."""

    job: Job
    versions: dict[str, str]
    trained: int = 0  # steps compared
    rows: int = 0
    ahead: int | None = None  # observations fetched but not trained on, when the checkpoint was written
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


def stateful(workers: int, context: str | None) -> Job:
    kind = "no workers" if workers == 0 else f"{workers} workers, {context}"
    more = ("--workers", str(workers), *(() if context is None else ("--context", context)))
    return Job(
        "stateful_dataloader_job.py", ("torchdata",), f"StatefulDataLoader over `torch.BatchDataset`, {kind}", more
    )


JOBS = (
    Job("torchtitan_job.py", ("torchtitan",), "Trainer and Validator, `torchtitan.DataLoader`, 2 batches a step",
        torchrun=True, validates=True),
    Job("torchtitan_job.py", ("torchtitan",), "the same, saved on 2 processes, loaded on 1",
        ranks=(2, 1), torchrun=True, validates=True),
    Job("lightning_job.py", ("lightning",), "Trainer, `lightning.TrainLoader`, endless, bf16-mixed"),
    Job("lightning_job.py", ("lightning",), "the same, epochs of 10 steps, saved in the second", ("--epochs",),
        save_at=13),
    Job("lightning_job.py", ("lightning",), "the same, saved after the last step of the first", ("--epochs",)),
    # 2 batches a step; the last step of the epoch has one.
    Job("transformers_job.py", ("transformers", "accelerate"),
        "Trainer, `transformers.TrainLoader` and `LoaderCallback`, 2 batches a step", steps=0),
    Job("accelerate_job.py", ("accelerate",), "the loader itself, registered for checkpointing"),
    Job("torchdata_node_job.py", ("torchdata",), "`torchdata.Node` behind a Prefetcher, over epochs", save_at=7),
    *(stateful(workers, context) for workers, context in
      ((0, None), (2, "fork"), (3, "fork"), (2, "spawn"), (3, "spawn"))),
    Job("scvi_job.py", SCVI, "SCVI, `scvi.DataModule`, saved within the second epoch"),
    Job("scvi_job.py", SCVI, "SCANVI, the same", ("--model", "SCANVI")),
    Job("scvi_job.py", SCVI, "SCVI by DDP on 2 processes", ranks=(2, 2), torchrun=True),
    Job("scvi_job.py", SCVI, "the same, saved on 2 processes, loaded on 1", ranks=(2, 1), torchrun=True),
    Job("scvi_job.py", SCVI, "the same, saved on 1 process, loaded on 2", ranks=(1, 2), torchrun=True),
)  # fmt: skip


class Runner:
    """Runs jobs in one environment, over one corpus; torchtitan of a checkout if one is given."""

    def __init__(self, python: Path, build: Path, checkout: Path | None) -> None:
        outside = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "VIRTUAL_ENV")}
        self._python, self._folder, self._checkout = python, build / "jobs", checkout
        offline = {"HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled", "GLOO_SOCKET_IFNAME": "lo"}
        paths = [penstock_alone(build / "path"), HERE, *([] if checkout is None else [checkout])]
        self._environment = {**outside, **offline, "PYTHONPATH": ":".join(map(str, paths))}
        self._environment.update(OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._corpus = self._folder / "corpus"
        self._corpus.mkdir(parents=True)
        self._call([str(python), "-c", f"import job, pathlib; job.write_corpus(pathlib.Path({str(self._corpus)!r}))"])

    def run(self, number: int, job: Job) -> Result:
        result = Result(job, self._versions(job))
        folder = self._folder / str(number)
        begin = time.monotonic()
        try:
            whole = self._train(job, folder / "whole", job.ranks[0])
            self._train(job, folder / "stopped", job.ranks[0], "--kill-after", str(KILL_AFTER))
            self._train(job, folder / "stopped", job.ranks[1], "--resume", log="resumed")
            compare(result, whole, lines(folder / "stopped", "log"), lines(folder / "stopped", "resumed"))
        except Exception as error:
            result.failures.append(f"{type(error).__name__}: {error}")
        result.seconds = time.monotonic() - begin
        return result

    def _versions(self, job: Job) -> dict[str, str]:
        if self._checkout is not None:
            commit = self._call(["git", "-C", str(self._checkout), "rev-parse", "--short=9", "HEAD"])
            return {"torchtitan": f"main, {commit.strip()}"}
        script = "import importlib.metadata as m, sys; print(*map(m.version, sys.argv[1:]))"
        said = self._call([str(self._python), "-c", script, *job.packages])
        return dict(zip(job.packages, said.split(), strict=True))

    def program(self, name: str, text: str) -> str:
        """What is wrong with a program, or nothing; it runs where the corpus is."""
        folder = self._folder / "programs" / name
        shutil.copytree(self._corpus, folder)
        (folder / name).write_text(text)
        try:
            self._call([str(self._python), name], folder=folder)
        except Exception as error:
            return f"{name}: {error}"
        return ""

    def _train(self, job: Job, folder: Path, ranks: int, *more: str, log: str = "log") -> list[list[dict[str, Any]]]:
        folder.mkdir(parents=True, exist_ok=True)
        command = [str(self._python)]
        if job.torchrun:
            command += ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
        command += [str(HERE / job.script), "--folder", str(self._corpus), "--checkpoints", str(folder)]
        command += ["--lines", str(folder / f"{log}.jsonl"), "--steps", str(job.steps), "--save-at", str(job.save_at)]
        self._call([*command, *job.arguments, *more], is_killed="--kill-after" in more)
        return lines(folder, log)

    def _call(self, command: list[str], is_killed: bool = False, folder: Path = HERE) -> str:
        done = subprocess.run(
            command, env=self._environment, cwd=folder, capture_output=True, text=True, check=False, timeout=900
        )
        if (done.returncode != 0) != is_killed:
            raise RuntimeError(f"exit code {done.returncode}: {' '.join(command)}\n{done.stderr[-3000:]}")
        return done.stdout


class Runners:
    """The runner of each file, made when the first needs it: what begins with "scvi" has an environment of its own."""

    def __init__(self, build: Path, checkout: Path | None) -> None:
        self._build, self._checkout = build, checkout
        self._made: dict[str, Runner] = {}

    def of(self, name: str) -> Runner:
        which = "-torchtitan-main" if self._checkout else "-scvi" if name.startswith("scvi") else ""
        if which not in self._made:
            python = environment(self._build / f"environment{which}", HERE / f"requirements{which}.txt", first="torch")
            self._made[which] = Runner(python, self._build / f"runs{which}", self._checkout)
        return self._made[which]


def programs() -> dict[str, str]:
    """The checks beside this file, and the programs of the page, by their files."""
    found = {path.name: path.read_text() for path in sorted(HERE.glob("*_checks.py"))}
    for page in PAGES:
        found |= re.findall(r'^```python title="(\w+\.py)"\n(.*?)^```$', page.read_text(), re.MULTILINE | re.DOTALL)
    return found


def lines(folder: Path, log: str) -> list[list[dict[str, Any]]]:
    """The lines of each process."""
    found = sorted(folder.glob(f"{log}.jsonl")) or sorted(folder.glob(f"{log}-*.jsonl"))
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in found]


def by_step(logs: list[list[dict[str, Any]]], what: str = "step") -> dict[int, tuple[list[int], list[str]]]:
    """(rows of all processes, losses) of each step, or of what was "validated" after steps."""
    found: dict[int, tuple[list[int], list[str]]] = {}
    for log in logs:
        for line in log:
            if what in line:
                rows, losses = found.setdefault(line[what], ([], []))
                rows += line["rows"]
                losses.append(line["loss"])
    return {step: (sorted(rows), losses) for step, (rows, losses) in found.items()}


def compare(
    result: Result, whole: list[list[dict[str, Any]]], stopped: list[list[dict[str, Any]]],
    resumed: list[list[dict[str, Any]]],
) -> None:  # fmt: skip
    """Holds what was trained on up to the checkpoint and after it against the run that was never stopped."""
    job = result.job
    expected, before, after = by_step(whole), by_step(stopped), by_step(resumed)
    if max(before) not in (KILL_AFTER, KILL_AFTER - 1) or min(after) != job.save_at + 1:
        result.failures.append(f"steps {min(before)} to {max(before)} and {min(after)} to {max(after)}")
    found = {step: each for step, each in before.items() if step <= job.save_at} | after
    if found.keys() != expected.keys() or len(expected) < KILL_AFTER + 4:
        result.failures.append(f"{len(found)} steps, and {len(expected)} of the run that was never stopped")
    if len({row for rows, _ in expected.values() for row in rows}) < result.job.save_at:
        result.failures.append("rows are not told apart")
    for step, (rows, losses) in expected.items():
        if rows != found.get(step, (None,))[0]:
            result.failures.append(f"step {step}: trained on other rows")
        elif job.ranks[0] == job.ranks[1] and losses != found[step][1]:
            result.failures.append(f"step {step}: a loss of {found[step][1]}, not {losses}")
    result.failures += [*validations(job, whole, stopped, resumed)]
    result.failures = result.failures[:5]
    result.trained, result.rows = len(expected), sum(len(rows) for rows, _ in expected.values())
    saved = [line for log in stopped for line in log if "saved" in line]
    if saved:
        result.ahead = saved[0]["fetched"] - saved[0]["saved"]


def validations(
    job: Job, whole: list[list[dict[str, Any]]], stopped: list[list[dict[str, Any]]],
    resumed: list[list[dict[str, Any]]],
) -> Iterator[str]:  # fmt: skip
    """What is wrong with the validations of a run: each is of the same rows, all there are."""
    expected, before, after = (by_step(logs, "validated") for logs in (whole, stopped, resumed))
    found = {step: each for step, each in before.items() if step <= job.save_at} | after
    if (job.validates or expected) and (found.keys() != expected.keys() or len(expected) < 5):
        yield f"validated after {sorted(found)}, and after {sorted(expected)} by the run that was never stopped"
    for step, (rows, losses) in expected.items():
        again, then = found.get(step, ([], []))
        if len(set(rows)) != HELD_OUT or again != rows:
            yield f"step {step}: validated on {len(set(rows))} rows of {HELD_OUT}, then on {len(set(again))}"
        elif job.ranks[0] == job.ranks[1] and losses != then:
            yield f"step {step}: validated at {then}, not {losses}"


def markdown(results: list[Result]) -> str:
    """The table that docs/adapters.md shows."""
    rows = ["| framework | how it was run | steps, rows compared | fetched ahead when saved | exact |",
            "| --- | --- | --- | --- | --- |"]  # fmt: skip
    for each in results:
        name = ", ".join(f"{package} {number}" for package, number in each.versions.items())
        ahead = "in workers" if "workers," in each.job.what else "not measured"
        if each.ahead is not None:
            ahead = f"{each.ahead:,} rows" if each.ahead else "nothing"
        compared = f"{each.trained}, {each.rows:,}"
        rows.append(f"| {name} | {each.job.what} | {compared} | {ahead} | {'no' if each.failures else 'yes'} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="jobs and programs whose file begins so; may be repeated")
    parser.add_argument(
        "--torchtitan", type=Path, help="a checkout: torchtitan's jobs and programs run on it, and no others"
    )
    parser.add_argument("--build", type=Path, default=BUILD, help="where the environment and the runs are kept: 3 GB")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("--markdown", type=Path, help="file for the table")
    options = parser.parse_args()
    build, checkout = options.build.absolute(), options.torchtitan and options.torchtitan.absolute()
    only = ("torchtitan",) if checkout else tuple(options.only or ())
    chosen = [job for job in JOBS if not only or job.script.startswith(only)]
    runners = Runners(build, checkout)
    results = []
    for number, job in enumerate(chosen):
        say(f"{job.script}: {job.what}")
        results.append(runners.of(job.script).run(number, job))
        say("\n".join(results[-1].failures) or f"exact, {results[-1].seconds:.0f} s")
    failed = []
    for name, text in programs().items():
        if only and not name.startswith(only):
            continue
        problem = runners.of(name).program(name, text)
        failed += [problem] if problem else []
        say(problem or f"{name}: ran")
    table = markdown(results)
    print(table)
    if options.markdown:
        options.markdown.write_text(table, encoding="utf-8")
    if options.json:
        shown = [
            {"framework": each.versions, "how": each.job.what, "steps": each.trained, "rows": each.rows,
             "ahead": each.ahead, "failures": each.failures, "penstock": version("penstock")}
            for each in results
        ]  # fmt: skip
        options.json.write_text(json.dumps(shown, indent=1) + "\n")
    return bool(failed or any(each.failures for each in results))


if __name__ == "__main__":
    sys.exit(main())
