"""The demo's comparison finds what it must find, and the whole demo holds, small."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _servers import free_port

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the demo, whose scripts import each other by name."""
    names = [path.stem for path in DEMO.glob("*.py")]
    for name in names:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(DEMO))
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


def row(report: Any, position: int, ids: tuple[int, ...] = (1, 2, 3), loss: float = 1.0) -> Any:
    return report.Row(source=position % 2, index=position * 7, ids=ids, loss=loss)


def test_one_token_one_bit_of_a_loss_and_one_row_too_many_are_found(load: Any) -> None:
    report = load("report")
    reference = report.Run({p: row(report, p) for p in range(12)})
    for changes, expected in (
        ({}, (0, 0.0, 12)),
        ({5: row(report, 5, ids=(1, 2, 4))}, (1, 0.0, 12)),
        ({3: row(report, 3, loss=1.0 + 2**-52), 12: row(report, 12)}, (1, 2**-52, 11)),
    ):
        result = report.compare(report.Run({**reference.rows, **changes}), reference)
        assert (result.wrong_rows, result.greatest, result.equal_losses) == expected


def test_a_position_given_to_two_processes_is_found(load: Any, tmp_path: Path) -> None:
    report = load("report")
    line = json.dumps({"step": 1, "positions": [4], "sources": [1], "indices": [9], "ids": [[1, 2]], "losses": [0.5]})
    (tmp_path / "rank-0.jsonl").write_text(line + "\n")
    assert report.read_run(tmp_path).rows == {4: report.Row(1, 9, (1, 2), 0.5)}
    (tmp_path / "rank-1.jsonl").write_text(line + "\n" + line[:20])
    with pytest.raises(ValueError, match="position 4 was given twice"):
        report.read_run(tmp_path)


#: What torchrun does for one machine, but that processes are forks of one that has imported torch: an import takes
#: longer than the small model's whole training.
TORCHRUN = """
import contextlib, os, runpy, signal, sys
import penstock, torch._dynamo, torch.distributed.checkpoint.state_dict
count, port, script, *arguments = sys.argv[1:]
children = []
for rank in range(int(count)):
    if (child := os.fork()) == 0:
        os.environ.update(RANK=str(rank), WORLD_SIZE=count, MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        sys.argv, sys.path[0] = [script, *arguments], os.path.dirname(script)
        runpy.run_path(script, run_name="__main__")
        sys.exit()
    children.append(child)
while children:
    child, status = os.wait()
    children.remove(child)
    for each in children if status else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    if status:
        sys.exit(1)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_and_resumed_on_other_numbers_of_processes_is_the_same_training(
    load: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Over 5 seconds: it prepares a corpus, and 17 processes train one after the other, in five groups."""
    for name in ("torch", "tokenizers", "matplotlib"):
        pytest.importorskip(name)
    run, train = load("run"), str(DEMO / "train.py")
    by_torchrun = subprocess.Popen

    def begin(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        """Two processes are torchrun's own."""
        if train in command and "resumed-on-2" not in command:
            at = command.index(train)
            command = [sys.executable, "-c", TORCHRUN, command[at - 1], str(free_port()), *command[at:]]
        return by_torchrun(command, **options)

    monkeypatch.setattr(run.subprocess, "Popen", begin)
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path / "out"), "--quick"])
    assert run.main() == 0, capfd.readouterr()
    assert "every token and every loss as if nothing had happened" in capfd.readouterr().out
    for name in ("demo.png", "demo-dark.png"):
        assert (tmp_path / "out" / name).stat().st_size > 10_000
