"""Paths that cannot be looked at: penstock.IoError with errno and name, wherever paths are given."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
import pytest

USES: dict[str, Callable[[Any, Path], Any]] = {
    "open": lambda path, out: penstock.open(path),
    "open as u2": lambda path, out: penstock.open(path, dtype="u2"),
    "open as h5ad": lambda path, out: penstock.open(path, format="h5ad"),
    "import cells of h5ad": lambda path, out: penstock.import_anndata(path, out, format="h5ad"),
    "import cells of zarr": lambda path, out: penstock.import_anndata(path, out, format="zarr"),
    "mixture": lambda path, out: penstock.Mixture.from_file(path),
    "verify": lambda path, out: penstock.verify(path),
    "combine": lambda path, out: penstock.combine([path], out),
    "convert": lambda path, out: penstock.convert(path, out, "ids"),
    "import": lambda path, out: penstock.import_tokens(path, out),
    "import into": lambda path, out: penstock.import_tokens(__file__, path, dtype="u1", format="raw"),
    "write": lambda path, out: penstock.Writer(path, {"token": "u2"}),
    "shuffle": lambda path, out: penstock.shuffle(path, out, seed=1, documents=True),
}


AS_NOBODY = """
import os, sys, penstock
os.setuid(65534)
for path in sys.argv[1:]:
    try:
        penstock.open(path)
    except penstock.IoError as error:
        print(error.errno)
"""


@pytest.mark.parametrize("use", USES)
def test_a_path_whose_stat_fails_is_an_io_error(tmp_path: Path, use: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path / ("x" * 300), tmp_path.joinpath(*["y" * 100] * 50)):
        with pytest.raises(penstock.IoError) as raised:
            USES[use](path, tmp_path / "out")
        assert raised.value.errno in (errno.ELOOP, errno.ENAMETOOLONG) and raised.value.filename
        assert len(str(raised.value)) <= 500
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("use", ["open", "open as h5ad", "import cells of h5ad", "mixture"])
def test_a_path_behind_a_file_is_not_there(tmp_path: Path, use: str) -> None:
    (tmp_path / "cells.h5ad").write_bytes(b"no folder")
    with pytest.raises(penstock.NotFoundError, match=r"cells\.h5ad/x: no such file") as raised:
        USES[use](tmp_path / "cells.h5ad" / "x", tmp_path / "out")
    assert raised.value.errno == errno.ENOENT


@pytest.mark.skipif(os.getuid() != 0, reason="needs a user who may become another one")
def test_a_folder_without_permission_is_an_io_error(tmp_path: Path) -> None:
    (tmp_path / "corpus" / "deeper").mkdir(parents=True)
    (tmp_path / "corpus").chmod(0)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and "pytest" in folder.name:
            folder.chmod(0o755)
    command = [sys.executable, "-c", AS_NOBODY, tmp_path / "corpus", tmp_path / "corpus" / "deeper"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"{errno.EACCES}\n" * 2, done.stderr
