"""A local file that changes under a running loader: an error at the next batch, and none where only links change.

Takes some seconds, since a file is looked at once a second.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock

TOKENS = 1 << 16
READERS = ("auto", "pread", "uring", "direct", "mmap")
LOOK_S = 1.3  # after which a file is looked at again


def dataset(path: Path) -> Path:
    with penstock.Writer(path, {"token": "u2"}, "json") as writer:
        for number in range(64):
            writer.append(token=np.arange(TOKENS // 64), metadata={"n": number})
    return path


def loader(path: Path, **options: Any) -> penstock.Loader:
    opened = penstock.open(path, dtype="u2") if path.is_file() else penstock.open(path)
    return penstock.Loader(opened.windows(64), 4, framework="numpy", **options)


def readers(path: Path) -> dict[str, penstock.Loader]:
    found = {}
    for reader in READERS:
        running = loader(path, reader=reader)
        try:
            next(running)
            found[reader] = running
        except penstock.InvalidArgumentError:  # no ring here
            assert reader in ("uring", "direct")
        except penstock.IoError:  # a file system without O_DIRECT
            assert reader == "direct"
    return found


def stream(path: Path) -> Path:
    return path / "00000" / "stream.bin" if path.is_dir() else path


def in_place(path: Path) -> None:
    with stream(path).open("r+b") as file:
        file.write(b"\xff" * 4096)


def by_rename(path: Path) -> None:
    new = stream(path).with_name("new")
    new.write_bytes(stream(path).read_bytes())
    new.replace(stream(path))


def by_link(path: Path) -> None:
    new = path.parent / "other.bin"
    shutil.copyfile(path, new)
    link = path.parent / "link"
    link.symlink_to(new)
    link.replace(path)


def refusal(running: penstock.Loader, seconds: float = 10) -> str:
    """The error of one of the next batches: files are looked at one after the other, with a pause between them."""
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            next(running)
            time.sleep(0.001)
    except penstock.CorruptionError as error:
        return str(error)
    return ""


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "written in place": (in_place, "dataset"),
    "replaced": (by_rename, "dataset"),
    "tokens replaced": (by_rename, "tokens"),
    "a link to another": (by_link, "tokens"),
}


def test_a_file_that_changes_is_an_error_at_the_next_batch(tmp_path: Path) -> None:
    running = {}
    for name, (_, kind) in CHANGES.items():
        (tmp_path / name).mkdir()
        path = tmp_path / name / "data"
        if kind == "dataset":
            dataset(path)
        else:
            np.arange(TOKENS, dtype="u2").tofile(path)
        running[name] = readers(path)
        assert running[name].keys() >= {"auto", "pread", "mmap"}
    time.sleep(LOOK_S)
    positions = {}
    for name, (change, _) in CHANGES.items():
        positions[name] = {reader: each.state_dict()["position"] for reader, each in running[name].items()}
        change(tmp_path / name / "data")
    time.sleep(LOOK_S)
    for name, loaders in running.items():
        for reader, each in loaders.items():
            error = refusal(each)
            assert re.search(r"(stream\.bin|data): changed since it was opened", error), (name, reader)
            assert str(tmp_path / name) in error, (name, reader)
            for _ in range(2):  # it stays an error, at the same position
                before = each.state_dict()
                assert "changed since it was opened" in refusal(each)
                assert each.state_dict()["position"] >= before["position"] >= positions[name][reader]
            each.close()
        again = loader(tmp_path / name / "data")
        assert len(next(again).indices) == 4


def test_links_modes_appends_and_files_that_are_gone_are_no_change(tmp_path: Path) -> None:
    kinds: dict[str, Callable[[Path, Path], Any]] = {
        "combine": lambda path, more: penstock.combine([path, more], path.parent / "both"),
        "append": lambda path, more: penstock.append(path, more),
        "backup": lambda path, more: os.link(stream(path), path.parent / "backup"),
        "chmod": lambda path, more: stream(path).chmod(0o400),
        "moved": lambda path, more: path.rename(path.parent / "moved"),
        "removed": lambda path, more: shutil.rmtree(path),
    }
    more = dataset(tmp_path / "more")
    running = {}
    for name in kinds:
        (tmp_path / name).mkdir()
        each = loader(dataset(tmp_path / name / "data"), epochs=1)
        running[name] = (each, [next(each)])
    for name, change in kinds.items():
        change(tmp_path / name / "data", more)
    wanted = [batch["token"].copy() for batch in loader(dataset(tmp_path / "same"), epochs=1)]
    for times in range(2):
        time.sleep(LOOK_S if times else 0)
        for each, batches in running.values():
            batches += [next(each) for _ in range(60)]
    for name, (each, batches) in running.items():
        batches += each
        np.testing.assert_array_equal([batch["token"] for batch in batches], wanted, err_msg=name)


def test_a_file_that_is_opened_again_is_the_one_it_was(tmp_path: Path) -> None:
    program = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import numpy as np, penstock
from pathlib import Path
paths = [Path({str(tmp_path)!r}) / f"{{i}}.bin" for i in range(200)]
for i, path in enumerate(paths):
    np.full(640, i, "u2").tofile(path)
with penstock.Loader(penstock.open(*paths, dtype="u2").windows(64), 1, framework="numpy", prefetch=1) as loader:
    for _ in range(2000):  # each file was opened, and most are closed again
        next(loader)
    for path in paths:
        again = path.with_suffix(".again")
        again.write_bytes(path.read_bytes())
        again.replace(path)  # at once: a batch is read ahead meanwhile
    try:
        for _ in range(100):
            next(loader)
    except penstock.CorruptionError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "changed since it was opened" in done.stdout, done.stderr
