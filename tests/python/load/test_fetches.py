"""How many reads there are where rows share fetches, counted by the kernel: syscr of /proc/self/io, reader="pread".

A block of 16 observations is one read a file, so there is 1/16 of a read for each row, on one rank and on each of
several that own whole lanes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest

BLOCK = 16
FETCH = 4096
FETCHES = 5  # of each lane
LANES = 8
WINDOW = 16
AT_MOST = 1.1 / BLOCK  # reads a row, of each file


def reads() -> int:
    """System calls that read, of this process, but for this one."""
    with Path("/proc/self/io").open("rb", buffering=0) as file:
        return int(file.read(4096).split(b"syscr: ")[1].split()[0])


def counted(view: penstock.View, order: Any, ranks: int = 1, **options: Any) -> list[tuple[int, int]]:
    """(reads, rows) of each rank over the epochs."""
    found = []
    given = {"order": order, "seed": 3, "epochs": 1, "world_size": ranks, "threads": 2, **options}
    own = -reads() + reads()
    for rank in range(ranks):
        before = reads()
        with penstock.Loader(view, 64, reader="pread", framework="numpy", rank=rank, **given) as loader:
            rows = sum(int(batch.valid.sum()) for batch in loader)
        found.append((reads() - before - own, rows))
    return found


@pytest.fixture(scope="module")
def tokens(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("tokens") / "tokens.bin"
    np.arange(LANES * FETCHES * FETCH * WINDOW + 1, dtype=np.uint32).astype("u2").tofile(path)
    return path


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> list[Path]:
    """A dataset a lane, each with some fetches of documents, and of windows nearly as many."""
    folder: Path = tmp_path_factory.mktemp("documents")
    paths = [folder / str(number) for number in range(LANES)]
    lengths = np.random.default_rng(1).integers(1, 2 * WINDOW, FETCHES * FETCH)
    entries = [number.to_bytes(8, "little") * (1 + number % 4) for number in range(len(lengths))]
    with penstock.Writer(paths[0], fields={"token": "u2"}, metadata="raw") as writer:
        writer.append_batch(lengths, encoded=entries, token=np.arange(lengths.sum(), dtype=np.uint32).astype("u2"))
    for path in paths[1:]:
        shutil.copytree(paths[0], path)
    return paths


@pytest.mark.parametrize(("lanes", "ranks", "lookahead"), [(1, 1, 0), (LANES, 1, 1), (LANES, LANES, 1)])
def test_a_block_of_windows_is_one_read(tokens, lanes, ranks, lookahead):
    view = penstock.open(tokens, dtype="u2").windows(WINDOW, lookahead)
    for found, rows in counted(view, penstock.orders.Blocks(BLOCK, FETCH, lanes=lanes), ranks):
        assert rows == LANES * FETCHES * FETCH // ranks
        assert rows * AT_MOST / 4 < found <= rows * AT_MOST, f"{found / rows * BLOCK:.2f} reads a block"


# The stream, the index of entries and the entries: three files. Each is asked for one range a block; what was read of
# the index and the entries is kept for other blocks, so the sum is below three times the bound of one file.
@pytest.mark.parametrize("kind", ["documents", "windows"])
def test_a_block_of_documents_or_of_windows_with_metadata_is_one_read_of_each_file(documents, kind):
    dataset = penstock.concatenate([penstock.open(path) for path in documents])
    view = dataset.documents() if kind == "documents" else dataset.windows(WINDOW, 1)
    for found, rows in counted(view, penstock.orders.Blocks(BLOCK, FETCH, lanes=LANES), LANES):
        if kind == "documents":
            assert rows == FETCHES * FETCH
        assert rows * AT_MOST / 4 < found <= 3 * rows * AT_MOST, f"{found / rows * BLOCK:.2f} reads a block"


def test_with_less_memory_than_a_fetch_takes_blocks_are_read_in_several_pieces(tokens):
    view = penstock.open(tokens, dtype="u2").windows(2 * FETCH // BLOCK)  # 1 KiB each
    order = penstock.orders.Blocks(BLOCK, FETCH)
    ample, tight, none = (counted(view, order, max_bytes=bound)[0] for bound in (64 << 20, 2 << 20, 0))
    assert ample[0] <= ample[1] * AT_MOST
    assert 2 * ample[0] < tight[0] < none[0] <= 1.1 * none[1]


# A fetch's entries count towards max_bytes. Of all 60 MB, little more than the bound may be in memory at once.
PEAK = """
import sys
import penstock

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) << 10

path, max_bytes = sys.argv[1], int(sys.argv[2])
view = penstock.open(path).documents()
before, documents = peak(), 0
options = {"order": "sequential", "epochs": 1, "prefetch": 2, "framework": "numpy"}
with penstock.Loader(view, 2, max_bytes=max_bytes, **options) as loader:
    for batch in loader:
        documents += sum(len(span.raw) == 500_000 for span in batch.spans)
print(documents, peak() - before)
"""


def test_the_entries_of_a_fetch_count_towards_max_bytes(tmp_path):
    with penstock.Writer(tmp_path / "data", fields={"token": "u2"}, metadata="raw") as writer:
        for number in range(120):
            writer.append(token=np.zeros(8, "u2"), metadata=bytes([number % 256]) * 500_000)
    max_bytes = 12 << 20
    command = [sys.executable, "-c", PEAK, str(tmp_path / "data"), str(max_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    documents, growth = map(int, done.stdout.split())
    assert documents == 120
    assert growth < 1.5 * max_bytes


def test_a_fetch_of_cells_is_a_read_a_block(tmp_path: Path) -> None:
    cells, fetches = 4 * 16_384, 4
    random = np.random.default_rng(3)
    lengths = random.integers(5, 40, cells)
    genes = np.concatenate([np.arange(length) * 2 for length in lengths])
    with penstock.Writer(tmp_path / "d", {"gene": "u2", "count": "u1"}, columns={"plate": "category"}) as writer:
        plates = [f"plate {number * 14 // cells}" for number in range(cells)]
        counts = random.integers(1, 9, len(genes))
        writer.append_batch(lengths, columns={"plate": plates}, gene=genes, count=counts)
    found = []
    for epochs in (1, 2):  # the index is kept from the first epoch on, so another one costs reads of records alone
        view = penstock.open(tmp_path / "d").cells("csr", genes=range(100), columns=["plate"])
        ((count, rows),) = counted(view, penstock.orders.Blocks(16, 16384), epochs=epochs)
        assert rows == epochs * cells
        found.append(count)
    steady = found[1] - found[0]
    # Blocks are 1 KB here, and some are so near that two are one read.
    assert 256 * fetches <= steady <= 1_040 * fetches, f"{steady / fetches:.0f} reads a fetch"
