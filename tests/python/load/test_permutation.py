import copy
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock import Permutation
from permutation_reference import Reference, golden_text

GOLDEN = Path(__file__).parents[2] / "golden" / "permutation.json"
U64 = st.integers(0, 2**64 - 1)


def test_golden_vectors_are_what_the_reference_gives():
    assert GOLDEN.read_text() == golden_text()
    assert Permutation.algorithm == 1


@settings(max_examples=100, deadline=None)
@given(n=st.integers(1, 2**52), seed=U64, epoch=U64, data=st.data())
def test_equals_the_reference_for_any_size_seed_and_epoch(n, seed, epoch, data):
    permutation = Permutation(n, seed, epoch)
    reference = Reference(n, seed, epoch)
    indices = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    images = permutation(np.array(indices, np.uint64))
    assert images.tolist() == [reference(index) for index in indices]
    assert permutation.inverse(images).tolist() == indices


def test_shapes_strides_and_integer_dtypes_are_kept_apart():
    permutation = Permutation(1000, seed=3)
    expected = permutation(np.arange(24, dtype=np.uint64)).reshape(2, 3, 4)
    for dtype in ("u1", "i1", "<u2", ">u2", "i4", ">i8", "u8", ">u8"):
        assert np.array_equal(permutation(np.arange(24).astype(dtype).reshape(2, 3, 4)), expected), dtype
    assert np.array_equal(permutation(np.arange(48, dtype=np.uint64)[::2]), permutation(np.arange(0, 48, 2)))
    assert permutation(np.arange(24).reshape(4, 6).T).shape == (6, 4)
    assert permutation(np.empty((0, 3), np.uint64)).shape == (0, 3)
    assert permutation(np.uint64(5)).shape == ()
    assert int(permutation(5)) == permutation[5]
    for values in (tuple(range(6)), list(range(6)), np.arange(12, dtype=">i4")[:6], range(6)):
        assert permutation(values).tolist() == expected.ravel()[:6].tolist()
    fortran = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert np.array_equal(permutation(fortran), expected.ravel()[:6].reshape(2, 3))


def test_is_a_sequence():
    permutation = Permutation(10, seed=1)
    values = list(permutation)
    assert sorted(values) == list(range(10))
    assert permutation[-1] == values[9] and permutation[-10] == values[0]
    assert permutation[np.uint64(3)] == values[3]
    for index in (10, -11, 2**63, -(2**70)):
        with pytest.raises(IndexError):
            permutation[index]
    with pytest.raises(TypeError):
        permutation[1.0]
    assert len(Permutation(2**52, seed=1)) == 2**52


def test_attributes_equality_and_pickles():
    permutation = Permutation(n=2**40 + 7, seed=2**64 - 1, epoch=2**63)
    assert (permutation.n, permutation.seed, permutation.epoch) == (2**40 + 7, 2**64 - 1, 2**63)
    assert repr(permutation) == "Permutation(1099511627783, seed=18446744073709551615, epoch=9223372036854775808)"
    assert eval(repr(permutation)) == permutation
    for other in (pickle.loads(pickle.dumps(permutation)), copy.deepcopy(permutation)):
        assert other == permutation and hash(other) == hash(permutation)
        assert other[12345] == permutation[12345]
    assert permutation != Permutation(2**40 + 7, 2**64 - 1) and permutation != 3


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros(3, bool), np.array(["1"]), np.array([None]), np.zeros(2, "f2"), [1.0], []]
)
def test_what_is_no_integer_or_outside_is_refused(array):
    permutation = Permutation(10, seed=1)
    with pytest.raises(TypeError, match="integers"):
        permutation(array)
    with pytest.raises(TypeError, match="integers"):
        permutation.inverse(array)
    for value in (10, -1, 2**63 - 1, -(2**63)):
        for call in (permutation, permutation.inverse):
            with pytest.raises(ValueError, match="index"):
                call(np.array([0, value]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "0 elements: wanted at least 1"),
        ((2**52 + 1, 1), r"4,503,599,627,370,497 elements: wanted at most 2\^52"),
        ((10, -1), r"seed -1: wanted 0 to 2\^64 - 1"),
        ((10, 2**64), r"seed 18446744073709551616"),
        ((10, 1, 2**64), r"epoch 18446744073709551616"),
    ],
)
def test_arguments_that_cannot_be_are_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        Permutation(*arguments)
    with pytest.raises(TypeError):
        Permutation(10, 1.5)


def test_batches_run_without_the_gil():
    permutation = Permutation(2**40, seed=1)
    indices = np.arange(1 << 22, dtype=np.uint64)
    call = []

    def work():
        call.append(time.perf_counter())
        permutation(indices)
        call.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    seen = []
    while thread.is_alive():
        seen.append(time.perf_counter())
    begin, end = call
    # With the GIL held, this thread would stand still for all of the call but its first switch interval.
    middle = [at for at in seen if begin + 0.5 * (end - begin) < at < begin + 0.75 * (end - begin)]
    assert len(middle) > 10
