import copy
import json
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


def test_golden_vectors_are_what_penstock_gives():
    cases = json.loads(GOLDEN.read_text())
    assert cases["algorithm"] == Permutation.algorithm == 1
    for case in cases["permutation"]:
        permutation = Permutation(case["n"], case["seed"], case["epoch"])
        for index, image in case["pairs"]:
            assert permutation[index] == image, case
            assert permutation(np.array([index], np.uint64)).tolist() == [image], case
            assert permutation.inverse(np.array([image], np.uint64)).tolist() == [index], case


@settings(max_examples=200, deadline=None)
@given(n=st.integers(1, 2**52), seed=U64, epoch=U64, data=st.data())
def test_equals_the_reference_for_any_size_seed_and_epoch(n, seed, epoch, data):
    permutation = Permutation(n, seed, epoch)
    reference = Reference(n, seed, epoch)
    indices = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=20))
    images = permutation(np.array(indices, np.uint64))
    assert images.tolist() == [reference(index) for index in indices]
    assert permutation.inverse(images).tolist() == indices


@pytest.mark.parametrize("n", [1, 2, 64, 65, 1000, 4097])
def test_an_array_is_a_bijection_and_its_inverse_takes_it_back(n):
    permutation = Permutation(n, seed=3, epoch=1)
    indices = np.arange(n, dtype=np.uint64)
    images = permutation(indices)
    assert images.dtype == np.uint64
    assert np.array_equal(np.sort(images), indices)
    assert np.array_equal(permutation.inverse(images), indices)


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
    assert permutation([0, 1]).tolist() == [permutation[0], permutation[1]]


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
def test_what_is_not_an_integer_is_refused(array):
    permutation = Permutation(10, seed=1)
    with pytest.raises(TypeError, match="integers"):
        permutation(array)
    with pytest.raises(TypeError, match="integers"):
        permutation.inverse(array)


@pytest.mark.parametrize("value", [10, -1, 2**63 - 1, -(2**63)])
def test_an_index_outside_is_refused_in_words(value):
    permutation = Permutation(10, seed=1)
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


def test_arguments_of_another_type_are_refused():
    with pytest.raises(TypeError):
        Permutation(10, 1.5)


def test_batches_run_without_the_gil():
    permutation = Permutation(2**40, seed=1)
    indices = np.arange(1 << 23, dtype=np.uint64)
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


def test_whatever_numpy_takes_for_integers_is_taken():
    permutation = Permutation(1000, seed=7)
    expected = permutation(np.arange(6, dtype="u8"))
    for values in (tuple(range(6)), list(range(6)), np.arange(6, dtype="i2"), np.arange(12, dtype=">i4")[:6], range(6)):
        np.testing.assert_array_equal(permutation(values), expected)
    fortran = np.asfortranarray(np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(permutation(fortran), expected.reshape(2, 3))
    assert permutation(np.int64(3)).shape == () and permutation(np.int64(3)) == expected[3]
