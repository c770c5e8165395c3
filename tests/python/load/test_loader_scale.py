"""A resume at 10^12 tokens costs what it costs at zero."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import penstock
import pytest

TOKENS = 10**12
FILES = 1000

FIRST_BATCH = """
import sys, time, penstock
paths, position = sys.argv[1], int(sys.argv[2])
begun = time.process_time()  # of all threads; the clock would measure who else runs
loader = penstock.Loader(penstock.open(paths, dtype="u4").windows(4096, lookahead=1), 8, seed=1, framework="numpy")
state = loader.state_dict()
loader.load_state_dict({**state, "position": position})
batch = next(loader)
assert batch.position == position and batch.inputs.shape == (8, 4096)
taken = time.process_time() - begun
print(taken, next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """1,000 files of 10^9 tokens that hold nothing but a mark at their beginning."""
    folder = tmp_path_factory.mktemp("sparse")
    for number in range(FILES):
        path = folder / f"{number:04}.bin"
        with path.open("wb") as file:
            file.write(np.array([number + 1], "u4").tobytes())
            file.truncate(TOKENS // FILES * 4)
    return folder / "*.bin"


def test_a_resume_far_into_a_trillion_tokens_costs_what_a_start_costs(sparse):
    windows = (TOKENS - 1) // 4096
    seconds: dict[int, list[float]] = {0: [], windows * 3 // 4: [], windows * 1000 + 12_345: []}
    for _ in range(2):
        for position, found in seconds.items():
            command = [sys.executable, "-c", FIRST_BATCH, str(sparse), str(position)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            taken, resident_kib = done.stdout.split()
            found.append(float(taken))
            assert int(resident_kib) < 100 << 10
    start, *far = (min(found) for found in seconds.values())
    assert all(each < 0.25 for each in (start, *far))  # loose; the benchmarks measure it
    assert all(each < 3 * start + 0.02 for each in far)


def test_the_far_end_of_the_stream_is_read_right(sparse):
    view = penstock.open(sparse, dtype="u4").windows(1)
    per_file = TOKENS // FILES
    indices = np.array([0, per_file, per_file - 1, 999 * per_file, 999 * per_file + 1, TOKENS - 1], "u8")
    assert view.read(indices)["token"].ravel().tolist() == [1, 2, 0, 1000, 0, 0]
    assert len(view) == TOKENS


MANY_SHARDS = """
import resource, sys, penstock
path, soft, hard = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
dataset = penstock.open(path)
loader = penstock.Loader(dataset.windows(8), 10, seed=3, epochs=2, framework="numpy", rank=0, world_size=1)
seen = sorted(int(row[0]) for batch in loader for row in batch["token"])
assert seen == sorted(2 * list(range(len(dataset.shards)))), seen[:10]
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(("soft", "hard", "after"), [(128, 4096, 4096), (128, 128, 128)])
def test_more_shards_than_descriptors_are_read_and_the_soft_limit_is_raised(tmp_path, soft, hard, after):
    with penstock.Writer(str(tmp_path / "d"), fields={"token": "u4"}, metadata=None, shard_size=1) as writer:
        for number in range(400):
            writer.append(token=np.full(8, number, "u4"))
    command = [sys.executable, "-c", MANY_SHARDS, str(tmp_path / "d"), str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == after
