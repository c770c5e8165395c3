"""`combine` and `convert` after a run that was killed, or over a dataset: --resume and --overwrite, as of `write`."""

from __future__ import annotations

import shutil
from pathlib import Path

import penstock
import pytest
from penstock._cli.main import main


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    for name, count in (("a", 2), ("b", 3)):
        with penstock.Writer(tmp_path / name, {"token": "u2"}, metadata="json", shard_size=1) as writer:
            for number in range(count):
                writer.append(token=range(number, number + 9), metadata={name: number})
    return [tmp_path / "a", tmp_path / "b"]


def killed(inputs: list[Path], out: Path) -> None:
    """What a combine leaves that is killed while it links its third shard."""
    penstock.combine(inputs, out)
    (out / "dataset.json").unlink()
    for number in (2, 3, 4):
        shutil.rmtree(out / f"{number:05}")


def test_a_combine_that_was_killed_goes_on_or_begins_anew(inputs: list[Path], tmp_path: Path) -> None:
    wanted = penstock.open(*inputs).fingerprint
    out = tmp_path / "out"
    killed(inputs, out)
    with pytest.raises(penstock.InvalidArgumentError, match=r"--resume.*overwrite"):
        penstock.combine(inputs, out)
    first = (out / "00000").stat().st_mtime_ns
    assert penstock.combine(inputs, out, resume=True) == wanted
    assert (out / "00000").stat().st_mtime_ns == first and penstock.verify(out)
    killed(inputs, tmp_path / "anew")
    first = (tmp_path / "anew/00000").stat().st_mtime_ns
    assert penstock.combine(inputs, tmp_path / "anew", overwrite=True) == wanted
    assert (tmp_path / "anew/00000").stat().st_mtime_ns != first and penstock.verify(tmp_path / "anew")


def test_shards_of_other_datasets_are_not_kept(inputs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    penstock.combine([inputs[1], inputs[0]], out)
    (out / "dataset.json").unlink()
    assert penstock.combine([inputs[0]], out, resume=True) == penstock.open(inputs[0]).fingerprint
    assert penstock.verify(out) and sorted(each.name for each in out.iterdir()) == ["00000", "00001", "dataset.json"]
    penstock.combine(inputs, tmp_path / "cut")
    (tmp_path / "cut/dataset.json").unlink()
    (tmp_path / "cut/00001/stream.bin").unlink()  # else the input's bytes, which the link shares, were cut too
    (tmp_path / "cut/00001/stream.bin").write_bytes(b"x")
    assert penstock.combine(inputs, tmp_path / "cut", resume=True) == penstock.open(*inputs).fingerprint
    assert penstock.verify(tmp_path / "cut") and penstock.verify(inputs[0])


def test_the_commands_replace_a_dataset_that_is_there(
    inputs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = ["combine", *map(str, inputs), "--out"], str(tmp_path / "out")
    assert main([*given, out]) == 0
    assert main([*given, out]) == 2 and "--overwrite" in capsys.readouterr().err
    assert main(["combine", str(inputs[0]), "--out", out, "--overwrite"]) == 0
    assert len(penstock.open(out).shards) == 2 and penstock.verify(out)
    killed(inputs, tmp_path / "killed")
    assert main([*given, str(tmp_path / "killed")]) == 2 and "--resume" in capsys.readouterr().err
    assert main([*given, str(tmp_path / "killed"), "--resume"]) == 0
    convert = ["convert", str(inputs[0]), "--layout", "ids", "--out", out]
    assert main(convert) == 2
    assert main([*convert, "--overwrite"]) == 0
    assert penstock.open(out).layout == "ids" and penstock.verify(out)


def test_a_combine_that_is_stopped_leaves_nothing(inputs: list[Path], tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.combine(inputs, tmp_path / "out", progress=stop)
    assert not (tmp_path / "out/dataset.json").exists()
