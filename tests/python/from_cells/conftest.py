"""What all tests of cells need."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from penstock._data.anndata.limits import Limits

PACKAGES = ("anndata", "h5py", "msgpack", "pandas", "scipy", "zarr")
collect_ignore_glob = [] if all(map(find_spec, PACKAGES)) else ["test_*.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # those of anndata, pandas and zarr


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Limits so small that an input is several tasks, and a task several reads, in worker processes too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock._from.cells.recipe.LIMITS", Limits(values=500, cells=70, task_values=3_000, stores=1))
        yield
