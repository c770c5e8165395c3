"""Threads of the engine without memory, in Python's process, where the C++ library is loaded late.

The native suite (tests/native/layout/without_memory_test.cpp) tries every allocation; here a few say that nothing of
Python's process is different.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import penstock
import pytest

# Threads beside the main one get no memory from their n-th allocation on, while `refuse_memory` is n > 0.
SHIM = """
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_memalign(size_t, size_t);
atomic_long refuse_memory;
static int refused(void) {
  long left = atomic_load(&refuse_memory);
  if (left == 0 || syscall(SYS_gettid) == getpid()) return 0;
  while (left > 1 && !atomic_compare_exchange_weak(&refuse_memory, &left, left - 1)) {}
  return left == 1;
}
void *malloc(size_t size) { return refused() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return refused() ? NULL : __libc_calloc(count, size); }
void *aligned_alloc(size_t alignment, size_t size) { return refused() ? NULL : __libc_memalign(alignment, size); }
"""

CHILD = """
import ctypes, sys, time
import penstock

refuse = ctypes.c_long.in_dll(ctypes.CDLL(None), "refuse_memory")
reported = 0
for n in list(range(1, 40, 2)) + list(range(40, 400, 20)):
    view = penstock.open(sys.argv[1], checks="all").windows(16)
    with penstock.Loader(view, 4, framework="numpy", order="sequential", epochs=1, threads=1) as loader:
        seen = next(loader).indices.tolist()
        time.sleep(0.02)  # its thread has begun, too, which needs memory
        refuse.value = n
        while True:
            try:
                seen.extend(next(loader).indices.tolist())
            except penstock.InvalidArgumentError as error:
                assert "no memory for a batch of 4 rows" in str(error), error
                refuse.value = 0
                reported += 1
            except OSError as error:  # what the system says
                refuse.value = 0
                reported += 1
            except StopIteration:
                break
        refuse.value = 0
        assert [index for index in seen if index >= 0] == list(range(len(view))), (n, seen)
print(reported)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
@pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="another library stands before malloc")
def test_is_an_error_in_words_and_the_loader_goes_on(tmp_path):
    source, library = tmp_path / "refuse.c", tmp_path / "refuse.so"
    source.write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
    with penstock.Writer(tmp_path / "data", fields={"token": "u4"}, metadata="json", shard_size=2000) as writer:
        for number in range(50):
            writer.append(token=np.arange(20) + number, metadata={"number": number})
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path / "data"],
        env={**os.environ, "LD_PRELOAD": str(library), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
