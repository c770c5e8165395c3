"""orders.Custom of C functions: by ctypes, cffi and numba; pointers that cannot be."""

from __future__ import annotations

import ctypes
import pickle
from pathlib import Path
from typing import Any

import _c_library
import numpy as np
import penstock
import pytest
from penstock import InvalidArgumentError, orders

N = 70_000
SOURCE = """
#include <stdint.h>
int32_t falling(uint64_t epoch, uint64_t first, uint64_t count, uint64_t *indices) {
  for (uint64_t i = 0; i < count; ++i) indices[i] = (70000 - 1 - (first + i) + epoch) % 70000;
  return 0;
}
int32_t failing(uint64_t epoch, uint64_t first, uint64_t count, uint64_t *indices) { return epoch == 0 ? 7 : 0; }
int32_t beyond(uint64_t epoch, uint64_t first, uint64_t count, uint64_t *indices) {
  for (uint64_t i = 0; i < count; ++i) indices[i] = first + i == 66000 ? 70000 : 0;
  return 0;
}
"""
TYPE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint64)
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("c")
    (folder / "order.c").write_text(SOURCE)
    found = _c_library.built(folder / "order.so", folder / "order.c")
    if found is None:
        pytest.skip("needs a C compiler")
    return found


@pytest.fixture
def view(tmp_path: Path) -> penstock.View:
    np.zeros(N, dtype="u1").tofile(tmp_path / "tokens.bin")
    return penstock.open(tmp_path / "tokens.bin", dtype="u1").windows(1)


def custom(function: Any, **options: Any) -> orders.Custom:
    return orders.Custom(function, **{"name": "falling", "version": 1} | options)


def by_ctypes(library: Path, name: str = "falling") -> Any:
    return getattr(ctypes.CDLL(str(library)), name)


def by_type(library: Path) -> Any:
    return TYPE(("falling", ctypes.CDLL(str(library))))


def by_cffi(library: Path) -> Any:
    ffi = pytest.importorskip("cffi").FFI()
    ffi.cdef("int32_t falling(uint64_t, uint64_t, uint64_t, uint64_t *);")
    return ffi.dlopen(str(library)).falling


def by_numba(library: Path) -> Any:
    numba = pytest.importorskip("numba")

    @numba.cfunc("int32(uint64, uint64, uint64, CPointer(uint64))")
    def falling(epoch: Any, first: Any, count: Any, indices: Any) -> Any:
        for i in range(count):
            indices[i] = (70000 - 1 - (first + i) + epoch) % 70000
        return 0

    return falling


@pytest.mark.parametrize("make", [by_ctypes, by_type, by_cffi, by_numba])
def test_a_c_function_gives_the_indices_without_python(library, view, make):
    order = custom(make(library))
    index, _, epoch = orders.resolve(order, N, 0).pick(0, 1, 2 * N)
    expected = (N - 1 - np.arange(2 * N) % N + np.arange(2 * N) // N) % N
    assert np.array_equal(index, expected) and np.array_equal(epoch, np.arange(2 * N) // N)
    with penstock.Loader(view, 7000, order=order, epochs=1, framework="numpy", threads=2) as loader:
        assert np.array_equal(np.concatenate([batch.indices for batch in loader]), expected[:N])
        state = loader.state_dict()

    def falling(epoch: int, positions: np.ndarray) -> np.ndarray:
        return (N - 1 - positions + epoch) % N

    loader = penstock.Loader(view, 7000, order=custom(falling), framework="numpy")
    assert loader.load_state_dict(state).position == N  # the same name and version: the same order
    assert next(loader).indices.tolist() == expected[N : N + 7000].tolist()


def test_what_a_c_function_fails_with_is_named(library, view):
    words = "'falling', version 1: epoch 0, positions 0 to 65,535: its function returned 7: 0 is wanted"
    with pytest.raises(InvalidArgumentError, match=words):
        next(penstock.Loader(view, 4, order=custom(by_ctypes(library, "failing")), framework="numpy"))
    job = penstock.Job(view, global_batch_size=4, order=custom(by_ctypes(library, "beyond")))
    assert job.picks(0, 4)["index"].tolist() == [0] * 4
    with pytest.raises(InvalidArgumentError, match=r"epoch 0, position 66,000: index 70,000, and there are 70,000"):
        job.picks(65_536, 1)


def test_pointers_that_cannot_be_are_refused(library):
    other = by_ctypes(library)
    other.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
    numbers = [ctypes.c_uint64] * 3
    narrow = ctypes.CFUNCTYPE(ctypes.c_int32, *numbers, ctypes.POINTER(ctypes.c_uint32))
    no_result = ctypes.CFUNCTYPE(None, *numbers, ctypes.c_void_p)
    for pointer, words in (
        (TYPE(), "a null pointer"),
        (TYPE(0), "a null pointer"),
        (TYPE(lambda epoch, first, count, indices: 0), "a pointer behind which is a function of Python"),
        (other, r"of type c_int\(c_ulong, c_ulong\): int32_t"),
        (narrow(("falling", ctypes.CDLL(str(library)))), "LP_c_uint"),
        (no_result(("falling", ctypes.CDLL(str(library)))), "None"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            custom(pointer)
    ffi = pytest.importorskip("cffi").FFI()
    types = "int32_t(*)(uint64_t, uint64_t, uint64_t, uint64_t *)"
    for pointer, words in (
        (ffi.cast(types, 0), "a null pointer"),
        (ffi.callback(types, lambda *_: 0), "a function of Python"),
        (ffi.cast("int32_t(*)(uint64_t)", 8), r"int32_t is wanted|of type int"),
        (ffi.new("int *"), "of type int"),
    ):
        with pytest.raises(InvalidArgumentError, match=words):
            custom(pointer)


def test_a_c_function_does_not_travel(library):
    with pytest.raises(InvalidArgumentError, match="does not pickle: its C function lies elsewhere"):
        pickle.dumps(custom(by_ctypes(library)))


def test_a_c_function_is_there_in_a_child_after_a_fork(library, view):
    from _child import in_child

    job = penstock.Job(view, global_batch_size=4, order=custom(by_ctypes(library)))
    assert job.picks(0, 2)["index"].tolist() == [N - 1, N - 2]
    in_child(lambda: job.picks(0, 2)["index"].tolist() == [N - 1, N - 2])
