"""One folder of datasets and files for all tests of places, and servers of it. No test writes into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from _python_stores import write_root
from _servers import moto, nginx, without_credentials


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder `data`, alone in its parent: see write_root."""
    folder = tmp_path_factory.mktemp("places") / "data"
    write_root(folder)
    return folder


@pytest.fixture(scope="session")
def http(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the folder."""
    with nginx(root, tmp_path_factory.mktemp("nginx")) as address:
        yield address


@pytest.fixture(scope="session")
def bucket(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of S3 that has the folder as the bucket `data`."""
    with moto({"data": root}, tmp_path_factory.mktemp("moto") / "log") as address:
        yield address


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody's own credentials."""
    without_credentials(monkeypatch, tmp_path)
