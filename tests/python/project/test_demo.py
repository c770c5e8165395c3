"""The demo's comparison finds what it must find, and the whole demo holds, small."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

DEMO = Path(__file__).resolve().parents[3] / "examples" / "demo"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(DEMO))
    spec = importlib.util.spec_from_file_location("demo_report", DEMO / "report.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "demo_report", module)
    spec.loader.exec_module(module)
    yield module
    sys.modules.pop("settings", None)


def row(report: Any, position: int, ids: tuple[int, ...] = (1, 2, 3), loss: float = 1.0) -> Any:
    return report.Row(source=position % 2, index=position * 7, ids=ids, loss=loss)


def test_one_changed_token_is_found(report: Any) -> None:
    reference = report.Run({p: row(report, p) for p in range(12)})
    same = report.compare(report.Run(dict(reference.rows)), reference)
    assert (same.wrong_rows, same.greatest, same.equal_losses) == (0, 0.0, 12)
    run = report.Run({**reference.rows, 5: row(report, 5, ids=(1, 2, 4))})
    assert report.compare(run, reference).wrong_rows == 1


def test_one_loss_bit_and_one_row_too_many_are_found(report: Any) -> None:
    reference = report.Run({p: row(report, p) for p in range(12)})
    run = report.Run({**reference.rows, 3: row(report, 3, loss=1.0 + 2**-52), 12: row(report, 12)})
    result = report.compare(run, reference)
    assert (result.wrong_rows, result.greatest, result.equal_losses) == (1, 2**-52, 11)


def test_a_position_given_to_two_processes_is_found(report: Any, tmp_path: Path) -> None:
    line = json.dumps({"step": 1, "positions": [4], "sources": [1], "indices": [9], "ids": [[1, 2]], "losses": [0.5]})
    (tmp_path / "rank-0.jsonl").write_text(line + "\n")
    assert report.read_run(tmp_path).rows == {4: report.Row(1, 9, (1, 2), 0.5)}
    (tmp_path / "rank-1.jsonl").write_text(line + "\n" + line[:20])
    with pytest.raises(ValueError, match="position 4 was given twice"):
        report.read_run(tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_killed_and_resumed_on_other_numbers_of_processes_is_the_same_training(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tokenizers")
    pytest.importorskip("matplotlib")
    command = [sys.executable, str(DEMO / "run.py"), "--out", str(tmp_path / "out"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "every token and every loss as if nothing had happened" in done.stdout
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
