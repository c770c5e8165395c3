"""The interpreter's end while daemon threads are in native code: real processes, which may not abort or hang."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import penstock
import pytest
from _scripts import assert_clean
from test_processes import command

BINDINGS = Path(__file__).parents[3] / "bindings"


@pytest.fixture
def tokens(tmp_path):
    np.arange(60_000, dtype="u2").tofile(tmp_path / "tokens.bin")
    return tmp_path / "tokens.bin"


PRELUDE = """
import numpy as np
import ctypes, penstock._load.loader
path, numbers = sys.argv[1], np.arange(2_000)
view = penstock.open(path, dtype='u2').windows(8)
permutation, weights, tokens = penstock.Permutation(1 << 40, seed=1), np.ones(2_000), np.zeros(50_000, 'u4')
job, native = penstock.Job(view, global_batch_size=4), penstock._native
writer = penstock.Writer(path + '.out', fields={'token': 'u4'}, metadata='json')
def drawn(view, order):
    return penstock.Loader(view, 4, order=order, framework='numpy').state_dict()
local = threading.local()
def for_long():
    local.__dict__.setdefault('loader', make())
    next(local.loader)
def closed():
    with make(prefetch=1) as loader:
        next(loader)
# No tensors: torch frees one without the GIL, and its own frames do not survive the interpreter's end.
def allocate(size):
    sum(range(1000))
    memory = (ctypes.c_char * (size + 64))()
    return memory, (ctypes.addressof(memory) + 63) // 64 * 64
penstock._load.loader.pinned_allocator = lambda torch: allocate
def forever(work):
    while True:
        work()
"""
# They ask for the GIL all the time, so that some are about to get it when the interpreter ends.
IN_NATIVE_CODE = {
    "numbers": ("permutation(numbers)", "permutation.inverse(numbers)", "job.picks(0, 50_000)", "view.read(numbers)"),
    "files": (
        "penstock.open(path, dtype='u2')", "writer.append(token=tokens, metadata={})",
        "penstock.verify(path + '.dataset')", "native.unnamed(path + '.dataset')",
        "penstock.verify(path + '.dataset', progress=lambda *_: sum(range(100)))",
    ),
    "loaders": (
        "[*islice(make(epochs=1), 100)]", "for_long()", "closed()",
        "drawn(view.select(numbers), penstock.orders.Weighted(weights))",
    ),
    "lent memory": ("[*islice(make(framework='torch', pin_memory=True), 100)]",) * 3,
}  # fmt: skip


@pytest.mark.parametrize("what", IN_NATIVE_CODE)
def test_exit_with_daemon_threads_in_native_code_is_clean(tokens, what):
    with penstock.Writer(f"{tokens}.dataset", fields={"token": "u4"}, metadata="json") as writer:
        for _ in range(200):
            writer.append(token=np.arange(5_000), metadata={})
    works = ", ".join(f"lambda: {work}" for work in IN_NATIVE_CODE[what])
    # An import of torch that is under way does not survive the interpreter's end.
    script = f"""{PRELUDE}
{"import torch" if "torch" in works else ""}
for work in ({works}):
    threading.Thread(target=forever, args=[work], daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(2):
        assert_clean(command(script, tokens))


def test_exit_of_a_forked_child_does_not_wait_for_its_parents_threads(tokens):
    script = f"""{PRELUDE}
for _ in range(4):
    threading.Thread(target=forever, args=[lambda: permutation(numbers)], daemon=True).start()
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        threading.Thread(target=forever, args=[lambda: permutation(numbers)], daemon=True).start()
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""
    assert_clean(command(script, tokens))


def test_everything_lets_go_of_the_gil_by_one_type():
    for path in (*BINDINGS.glob("*.cpp"), *BINDINGS.glob("*.h")):
        words = ["gil_scoped_release", "gil_scoped_acquire"]
        words += [] if path.stem == "gil" else ["PyEval_SaveThread", "PyGILState_Check"]
        assert not [word for word in words if word in path.read_text()], path
    assert (BINDINGS / "gil.h").exists()
