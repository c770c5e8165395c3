"""The interpreter's end while daemon threads are in native code: real processes, which may not abort or hang."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import penstock
import pytest
from _scripts import assert_clean
from test_processes import command


@pytest.fixture
def tokens(tmp_path):
    np.arange(60_000, dtype="u2").tofile(tmp_path / "tokens.bin")
    return tmp_path / "tokens.bin"


IN_NATIVE_CODE = {
    "view.read": "view = penstock.open(path, dtype='u2').windows(8)\nwork = lambda: view.read(numbers)",
    "Permutation": "p = penstock.Permutation(1 << 40, seed=1)\nwork = lambda: p(numbers)",
    "Permutation.inverse": "p = penstock.Permutation(1 << 40, seed=1)\nwork = lambda: p.inverse(numbers)",
    "Job.picks": (
        "view = penstock.open(path, dtype='u2').windows(8)\njob = penstock.Job(view, global_batch_size=4)\n"
        "work = lambda: job.picks(0, 50_000)"
    ),
    "open": "work = lambda: penstock.open(path, dtype='u2')",
    "Writer.append": (
        "writer = penstock.Writer(path + '.out', fields={'token': 'u4'}, metadata='json')\n"
        "tokens = np.zeros(50_000, 'u4')\nwork = lambda: writer.append(token=tokens, metadata={})"
    ),
    "verify": "work = lambda: penstock.verify(path + '.dataset')",
    "verify with progress": "work = lambda: penstock.verify(path + '.dataset', progress=lambda *_: sum(range(100)))",
    "Loader": "work = lambda: [*islice(make(epochs=1), 100)]",
    "Loader, for long": "local = threading.local()\n"
    "def work():\n"
    "    local.__dict__.setdefault('loader', make())\n"
    "    next(local.loader)",
    "Loader, closed": "def work():\n    with make(prefetch=1) as loader:\n        next(loader)",
    "select and draw": (
        "view = penstock.open(path, dtype='u2').windows(8)\nweights = np.ones(len(view))\n"
        "work = lambda: make_of(view.select(numbers), penstock.orders.Weighted(weights[:2_000])).state_dict()\n"
        "make_of = lambda view, order: penstock.Loader(view, 4, order=order, framework='numpy')"
    ),
    "unnamed": "from penstock import _native\nwork = lambda: _native.unnamed(path + '.dataset')",
    # No tensors: torch frees one without the GIL, and its own frames do not survive the interpreter's end.
    "Loader with lent memory": (
        "import ctypes, torch, penstock._load.loader\n"  # its import, under way, does not survive the end
        "def allocate(size):\n"
        "    sum(range(1000))\n"
        "    memory = (ctypes.c_char * (size + 64))()\n"
        "    return memory, (ctypes.addressof(memory) + 63) // 64 * 64\n"
        "penstock._load.loader.pinned_allocator = lambda torch: allocate\n"
        "work = lambda: [*islice(make(framework='torch', pin_memory=True), 100)]"
    ),
}


@pytest.mark.parametrize("what", IN_NATIVE_CODE)
def test_exit_with_daemon_threads_in_native_code_is_clean(tokens, what):
    # They ask for the GIL all the time, so that some are about to get it when the interpreter ends.
    with penstock.Writer(f"{tokens}.dataset", fields={"token": "u4"}, metadata="json") as writer:
        for _ in range(200):
            writer.append(token=np.arange(5_000), metadata={})
    script = f"""
import numpy as np
path = sys.argv[1]
numbers = np.arange(2_000)
{IN_NATIVE_CODE[what]}
def forever():
    while True:
        work()
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(2):
        assert_clean(command(script, tokens))


def test_exit_of_a_forked_child_does_not_wait_for_its_parents_threads(tokens):
    script = """
import numpy as np
p, numbers = penstock.Permutation(1 << 40, seed=1), np.arange(20_000)
def forever():
    while True:
        p(numbers)
for _ in range(4):
    threading.Thread(target=forever, daemon=True).start()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        threading.Thread(target=forever, daemon=True).start()
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""
    assert_clean(command(script, tokens))


def test_everything_lets_go_of_the_gil_by_one_type():
    bindings = Path(__file__).parents[3] / "bindings"
    sources = {path.name: path.read_text() for pattern in ("*.cpp", "*.h") for path in bindings.glob(pattern)}
    assert len(sources) > 10
    for name, text in sources.items():
        assert "gil_scoped_release" not in text and "gil_scoped_acquire" not in text, name
        if not name.startswith("gil."):
            assert "PyEval_SaveThread" not in text and "PyGILState_Check" not in text, name
