"""The peers of `make bench-peers` do the job: those that run in the project's own environment are run here."""

from __future__ import annotations

import importlib
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[3] / "benchmarks" / "peers"
WINDOW, WINDOWS, RANKS = 16, 107, 2
#: Run by this interpreter: the environments of the others are made by `make bench-peers`.
OWN = ["penstock_loader", "bare_gather", pytest.param("torch_dataloader", marks=pytest.mark.slow)]


@pytest.fixture
def load(monkeypatch):
    """Imports a module of benchmarks/peers/, whose scripts import each other and those of benchmarks/ by name."""
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def ask(load):
    """Asks a peer of one rank, in a process of its own."""
    fleet = load("fleet")

    def asked(key, task, **request):
        setup = request["setup"]
        return fleet.Running(Path(sys.executable), key, True, task, request, setup.rank, setup.world).answer(60)

    return asked


@pytest.fixture
def setup(load, tmp_path):
    """The job on a corpus of 107 windows and a few tokens more, without torch where the peer can do without."""
    tokens = tmp_path / "counting.bin"
    np.arange(WINDOW * WINDOWS + 5, dtype="<u4").tofile(tokens)

    def made(key):
        dtype = "int64" if key == "torch_dataloader" else "uint32"
        if dtype == "int64":
            pytest.importorskip("torch")
        return load("job").Setup(tokens, tmp_path, window=WINDOW, dtype=dtype)

    return made


@pytest.mark.parametrize("key", OWN)
def test_all_ranks_together_give_every_window_whole_and_once(key, setup, ask, tmp_path):
    found = []
    for rank in range(RANKS):
        saved = tmp_path / f"rank{rank}"
        ask(key, "share", setup=replace(setup(key), rank=rank, world=RANKS), saved=saved, stop=3)
        found += pickle.loads(saved.read_bytes())["batches"]
    # DistributedSampler repeats an observation so that ranks have as many.
    given, repeated = np.concatenate(found), WINDOWS % RANKS if key == "torch_dataloader" else 0
    assert sorted(set(given)) == list(range(WINDOWS))
    assert len(given) == WINDOWS + repeated
    assert (np.diff(given) != 1).any()  # shuffled


@pytest.mark.parametrize("key", [key for key in OWN if key != "bare_gather"])
def test_a_fresh_process_goes_on_where_the_state_was_taken(key, setup, ask, tmp_path):
    saved = tmp_path / "half"
    half = ask(key, "half", setup=setup(key), saved=saved)
    assert half["state"] == "saved" and half["state_bytes"] > 0
    assert ask(key, "resume", setup=setup(key), saved=saved)["equal_batches"] == 3


def test_a_steady_run_tells_speed_start_and_memory_and_a_failed_one_what_was_wrong(load, setup, ask):
    found = ask("bare_gather", "steady", setup=setup("bare_gather"), warm_up=0.01, seconds=0.05)
    assert found["dtype"] == "uint32"
    figures = ("batches_per_s", "first_ms", "import_ms", "resident_mib", "anonymous_mib", "rss_mib", "cpu_ms")
    assert all(found[figure] > 0 for figure in figures)
    assert found["rss_mib"] >= found["resident_mib"] >= found["anonymous_mib"]
    assert found["others_cores"] >= 0 and found["stolen_cores"] >= 0
    with pytest.raises(load("fleet").Failed, match="KeyError: 'no such task'"):
        ask("bare_gather", "no such task", setup=setup("bare_gather"))


#: A worker that is busy for a fifth of a second, says so, and ends when it is told to.
BUSY = """
import time

while time.process_time() < 0.2:
    pass
print("done", flush=True)
input()
"""


def test_processor_time_of_workers_is_counted_while_they_run_and_once_they_have_ended(load):
    footprint = load("footprint")
    before = footprint.cpu_seconds()
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdout.readline() == b"done\n"
        assert footprint.cpu_seconds() - before > 0.15
        worker.communicate(b"\n")
    assert footprint.cpu_seconds() - before > 0.15


def test_on_one_core_penstock_and_its_peers_are_measured_in_turn(load, tmp_path):
    fleet, measure, report = load("fleet"), load("measure"), load("report")
    members = [replace(fleet.member(key, tmp_path), dtypes=("uint32",)) for key in ("penstock_loader", "bare_gather")]
    measured = measure.Fleet(members, tmp_path, replace(measure.QUICK, tokens=1 << 14, seconds=0.02, repeats=2))
    measured.prepare(large=True, small=False)
    found = report.Report(measured, [], [], "")
    found.one_core = measured.one_core()
    assert measured.failures == []
    lines = {(line.name, line.what): line for line in found.lines()}
    ours = ("penstock", "one core, uint32, its default")
    ratio = ("bare gather from a mapping", "one core, uint32, training thread: penstock / this")
    assert len(lines[ours].values) == len(lines[ratio].values) == 2 and lines[ratio].at_least is None
    table = found.markdown("")
    assert "### Warm, all threads and processes on one core" in table and "Meanwhile other processes kept" in table


def test_a_process_on_one_core_has_one(load):
    words = [sys.executable, "-c", "import os; print(len(os.sched_getaffinity(0)))"]
    bound = load("measure").stay_on_one_core
    assert subprocess.run(words, preexec_fn=bound, capture_output=True, check=True).stdout == b"1\n"


def test_settings_may_be_chosen_by_their_names(load, tmp_path):
    job, fleet, measure = load("job"), load("fleet"), load("measure")
    ours = fleet.member("penstock_loader", tmp_path)
    other = replace(ours, key="other", settings=job.WORKERS, dtypes=("uint32",))
    for named, behind, training in (([], ["1 worker", "2 workers"], ["training thread"]), (["2 workers"],) * 2 + ([],)):
        measured = measure.Fleet([ours, other], tmp_path, measure.QUICK, named)
        for background, wanted in ((True, behind), (False, training)):
            (choices,) = measured.choices("uint32", background)
            assert [choice.setting.name for choice in choices] == wanted


def test_a_batch_that_is_not_made_of_windows_is_seen(load):
    job = load("job")
    rows = np.arange(4 * WINDOW).reshape(4, WINDOW)
    assert job.numbers(rows[[2, 0]], WINDOW).tolist() == [2, 0]
    shifted, torn = rows + 1, rows.copy()
    torn[1, -1] = 0
    for wrong in (shifted, torn, rows[:, :-1]):
        with pytest.raises(ValueError, match="a batch"):
            job.numbers(wrong, WINDOW)


#: A peer that counts what each rank consumed: right on 4 ranks, and on 2 it gives the second quarter again.
COUNTED = """
import job


class Counted(job.Peer):
    name, packages, dtypes, global_batch, tail = "counted", (), ("uint32",), 12, "drops it"
    consumed = 0

    def epoch(self, number):
        setup = self.setup
        rows = setup.matrix()[: setup.windows // 12 * 12][setup.rank :: setup.world]
        for begin in range(self.consumed, len(rows), setup.batch):
            self.consumed = begin + setup.batch
            yield rows[begin : begin + setup.batch]

    def state(self):
        return self.consumed

    def load(self, state):
        if self.setup.world == 3:
            raise ValueError("on 3 ranks\\nit cannot")
        self.consumed = state


job.main(Counted)
"""


@pytest.fixture
def on_ranks(load, tmp_path, monkeypatch):
    """What the peers do on 2 and 3 ranks after a stop on 4, and the lines of the table without its head."""
    fleet, measure, ranks = load("fleet"), load("measure"), load("ranks")
    monkeypatch.setattr(ranks, "AFTER", (2, 3))
    monkeypatch.setenv("PYTHONPATH", str(FOLDER))

    def found(*keys):
        members = [fleet.member(key, tmp_path) for key in keys]
        members = [replace(each, dtypes=("uint32",)) for each in members]  # which needs no torch
        sizes = (131, 132)
        measured = measure.Fleet(members, tmp_path, replace(measure.QUICK, observations=sizes))
        measured.prepare(large=False, small=True)
        facts = {each.key: ranks.measured(measured, each, tmp_path) for each in members}
        given = (measured.members, facts, sizes)
        return facts, ranks.rows(*given)[1:], ranks.refusals(*given)

    return found


def test_a_stop_and_a_resume_on_other_ranks_is_exact_or_counted_or_refused(load, on_ranks, tmp_path, monkeypatch):
    monkeypatch.setattr(load("fleet"), "HERE", tmp_path)
    monkeypatch.setitem(load("fleet").PEERS, "counted", None)
    (tmp_path / "counted.py").write_text(COUNTED)
    facts, (row,), refusals = on_ranks("counted")
    assert row == ["counted", "drops it", "11 / 0", "0 / 0", "11 / 30 / 30; 132: 0 / 30 / 30", "refused"]
    assert refusals == ["counted, 4 → 3, refused: ValueError: on 3 ranks"]
    assert facts["counted"]["131"]["on"]["3"]["ranks_that_refused"] == 3


def test_penstock_goes_on_exactly_on_other_ranks(on_ranks):
    _, (row,), refusals = on_ranks("penstock_loader")
    assert row == ["penstock", "none: the last batch is shorter", "0 / 0", "0 / 0", "exact", "exact"]
    assert refusals == []


def test_a_tail_that_differs_is_told_from_other_batches(load):
    ranks = load("ranks")
    counts = {"missed": 0, "extra": 3, "twice": 3, "same_steps": 9, "steps": 9, "same_to_the_end": False}
    whole = {"state": "saved", "on": {"5": counts, "3": counts | {"same_steps": 8}}}
    assert ranks.outcome(whole, "5") == "exact but for the tail: 0 / 3 / 3"
    assert ranks.outcome(whole, "3") == "0 / 3 / 3"
    assert ranks.outcome({"state": "has no state"}, "3") == "has no state"


def test_speeds_are_drawn_place_by_place(load, tmp_path):
    charts = load("charts")
    line = {"name": "another", "unit": "ratio", "median": 9.0, "lowest": 7.0, "highest": 10.0}
    places = ["the training thread", "the background", "where it is fastest"]
    lines = [
        line | {"what": f"{place}, {dtype}, 2 workers: penstock / this"}
        for place in places
        for dtype in ("int64", "int32")
    ]
    speed = line | {"unit": "batches/s", "what": f"{places[1]}, int64, 2 workers"}
    resident = line | {"what": f"resident memory: {places[1]}, int64, 2 workers: penstock / this"}
    drawn = charts.draw_peers([*lines, speed, resident], tmp_path / "charts")
    assert [path.name for path in drawn] == [
        f"benchmark-peers-{place}.svg" for place in ("thread", "background", "cold")
    ]
    for path in drawn:
        svg = path.read_text()
        assert "int64 tensors" in svg and "int32 tensors" in svg and svg.count(">another</text>") == 2
    assert charts.draw_peers([speed, resident], tmp_path) == []


def test_every_peer_has_its_file_and_exact_pins(load):
    fleet = load("fleet")
    for key, environment in fleet.PEERS.items():
        assert (FOLDER / f"{key}.py").exists()
        if environment is not None:
            files = [FOLDER / "requirements" / f"{environment}{end}.txt" for end in ("", ".alone")]
            lines = [line for file in files if file.exists() for line in file.read_text().splitlines()]
            pins = [line for line in lines if not line.startswith("#")]
            assert pins and all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
            # The build for CPUs is preferred where pip offers one; any other version would fetch another.
            assert {pin for pin in pins if pin.startswith("torch==")} <= {"torch==2.13.0"}
