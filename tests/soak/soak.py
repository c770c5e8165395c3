"""Long runs, in parts that go on where they stopped: `make soak`, about two hours in all; ONLY=rate for one of them.

  rate     loaders at full rate for minutes: memory, descriptors, threads stay, batches are the job's
  loaders  a thousand loaders of each store, opened and dropped
  resumes  elastic resumes of random jobs beside the model of tests/model: `--case` there repeats one
  signals  SIGINT, SIGTERM and SIGKILL at 200 moments of every command
State is in build/soak: what is done is not done again; `--state` names another folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

import opened  # noqa: E402
import rate  # noqa: E402
import signals  # noqa: E402

PARTS = ("rate", "loaders", "resumes", "signals")
#: Seconds of each leg of `rate` and how many, loaders of each store, resumes, moments of each command.
WHOLE = {"leg": 120.0, "legs": 3, "loaders": opened.LOADERS, "resumes": 10_000, "moments": signals.MOMENTS}
SHORT = {"leg": 0.4, "legs": 1, "loaders": 12, "resumes": 10, "moments": 2}
SHORT_ONLY = {"rate": ("columns",), "loaders": ("own",), "signals": ("append",)}
_CASES = 20  # of one step of `resumes`
_LEGS = 6  # of a case: five resumes


class Soak:
    """The state, and what is left to do."""

    def __init__(self, folder: Path, sizes: dict[str, Any], is_short: bool) -> None:
        self.folder, self.sizes, self.is_short = folder, sizes, is_short
        self._file = folder / "state.json"
        self.state: dict[str, Any] = {part: {} for part in PARTS} | {"bad": [], "seconds": {}}
        if self._file.exists():
            self.state = json.loads(self._file.read_text())

    def keep(self) -> None:
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self.state, indent=1))
        new.replace(self._file)

    def names(self, part: str, names: tuple[str, ...] | list[str]) -> list[str]:
        return [name for name in names if not self.is_short or name in SHORT_ONLY[part]]

    def wrong(self, part: str, name: str, what: str) -> None:
        self.state["bad"].append({"part": part, "name": name, "what": what[-2000:]})
        print(f"{part}, {name}: {what}", flush=True)

    def child(self, part: str, name: str, program: Any, *arguments: Any) -> dict[str, Any] | None:
        """The answer of a process of its own; None where something was wrong, which is kept."""
        command = [sys.executable, program.__file__, name, str(self.folder / "data"), *map(str, arguments)]
        path = ":".join([str(HERE.parent / "python"), os.environ.get("PYTHONPATH", "")])
        given = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, env=given, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode != 0:
            self.wrong(part, name, f"exit code {done.returncode}: {done.stderr}")
            return None
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        grown = rate.growth(said["samples"])
        if any(grown[each] > most for each, most in rate.MOST.items()):
            self.wrong(part, name, f"grew by {grown}: {said['samples']}")
        return {**said, "grown": grown}


def do_rate(soak: Soak) -> Iterator[None]:
    for leg in range(soak.sizes["legs"]):
        for name in soak.names("rate", rate.NAMES):
            done = soak.state["rate"].setdefault(
                name, {"legs": 0, "position": 0, "batches": 0, "read again": 0, "grown": []}
            )
            if done["legs"] > leg:
                continue
            said = soak.child("rate", name, rate, soak.sizes["leg"], done["position"])
            done["legs"] += 1
            if said is not None:
                done["position"], done["grown"] = said["position"], [*done["grown"], said["grown"]]
                done["batches"] += said["batches"]
                done["read again"] += said["read again"]
            yield


def do_loaders(soak: Soak) -> Iterator[None]:
    for store in soak.names("loaders", opened.STORES):
        if store not in soak.state["loaders"]:
            said = soak.child("loaders", store, opened, soak.sizes["loaders"])
            soak.state["loaders"][store] = said and {"loaders": said["loaders"], "grown": said["grown"]}
            yield


def do_resumes(soak: Soak) -> Iterator[None]:
    sys.path.insert(0, str(HERE.parent / "model"))
    import choice
    import run as model

    done = soak.state["resumes"]
    for name in ("cases", "resumes", "batches"):
        done.setdefault(name, 0)
    with model.library() as books:
        while done["resumes"] < soak.sizes["resumes"]:
            cases = min(_CASES, -(-(soak.sizes["resumes"] - done["resumes"]) // (_LEGS - 1)))
            for number, case in choice.at_random(done["cases"], cases):
                batches, what = model.trouble(books, case, number, _LEGS)
                done["batches"] += batches
                if what:
                    soak.wrong("resumes", f"random {number} --legs {_LEGS}", what)
            done["cases"] += cases
            done["resumes"] += cases * (_LEGS - 1)
            yield


def do_signals(soak: Soak) -> Iterator[None]:
    work = soak.folder / "signals"
    shutil.rmtree(work, ignore_errors=True)
    wanted = soak.names("signals", [verb.name for verb in signals.COMMANDS])
    trials = signals.Signals(work, wanted)
    for name in trials.names:
        done = soak.state["signals"].setdefault(name, {"next": 0, "ended": {}})
        while done["next"] < soak.sizes["moments"]:
            # Spread over the run in whatever order, so that a part says something of all of it.
            number = done["next"] * 77 % signals.MOMENTS
            try:
                outcome = trials.one(name, number)
            except Exception as error:
                outcome = "wrong"
                soak.wrong("signals", f"{name}, {number}", f"{type(error).__name__}: {error}")
            done["ended"] = dict(Counter(done["ended"]) + Counter([outcome]))
            done["next"] += 1
            yield
    shutil.rmtree(work, ignore_errors=True)


DO: dict[str, Callable[[Soak], Iterator[None]]] = {
    "rate": do_rate,
    "loaders": do_loaders,
    "resumes": do_resumes,
    "signals": do_signals,
}


@contextlib.contextmanager
def served(soak: Soak, parts: list[str]) -> Iterator[None]:
    """Servers of the datasets, for the parts that read them."""
    from _servers import moto, nginx

    data = soak.folder / "data"
    data.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        if "rate" in parts:
            rate.put_datasets(data)
        if "loaders" in parts:
            opened.put_dataset(data)
        if not soak.is_short and {"rate", "loaders"} & {*parts}:
            os.environ["SOAK_ADDRESS"] = stack.enter_context(nginx(data, soak.folder / "nginx"))
        if not soak.is_short and "loaders" in parts:
            os.environ.update(AWS_ACCESS_KEY_ID="access", AWS_SECRET_ACCESS_KEY="secret")
            bucket = soak.folder / "bucket"
            shutil.copytree(data / "small", bucket / "small", dirs_exist_ok=True)
            os.environ["SOAK_BUCKET"] = stack.enter_context(moto({"data": bucket}, soak.folder / "moto.log"))
        yield


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be repeated")
    parser.add_argument("--minutes", type=float, default=120, help="after which it stops, to go on another time")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "soak")
    parser.add_argument("--short", action="store_true", help="a little of each")
    given = parser.parse_args(arguments)
    given.state.mkdir(parents=True, exist_ok=True)
    soak = Soak(given.state.absolute(), SHORT if given.short else WHOLE, given.short)
    # The resumes of `make test` are those of all pairs, in test_model.py.
    begin, parts = time.monotonic(), list(given.only or (SHORT_ONLY if given.short else PARTS))
    with served(soak, parts):
        for part in parts:
            before = time.monotonic()
            for _ in DO[part](soak):
                now = time.monotonic()
                soak.state["seconds"][part] = soak.state["seconds"].get(part, 0) + now - before
                before = now
                soak.keep()
                if now - begin > given.minutes * 60:
                    break
    soak.keep()
    print(json.dumps({**soak.state, "bad": len(soak.state["bad"])}, indent=1))
    return 1 if soak.state["bad"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
