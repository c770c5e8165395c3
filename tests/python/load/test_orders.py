import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock import InvalidArgumentError, Permutation, orders
from permutation_reference import BlocksReference

GOLDEN = Path(__file__).parents[2] / "golden" / "permutation.json"
NEVER = 2**64 - 1


def test_uniform_is_the_permutation_of_each_epoch():
    index, source, epoch = orders.resolve("uniform", n=100, seed=7).pick(0, 1, 250)
    assert (index.dtype, source.dtype, epoch.dtype) == (np.uint64, np.uint32, np.uint32)
    expected = np.concatenate([Permutation(100, 7, e)(np.arange(100)) for e in range(3)])[:250]
    assert np.array_equal(index, expected)
    assert np.array_equal(epoch, np.arange(250) // 100)
    assert not source.any()


def test_blocks_gives_the_golden_vectors():
    for case in json.loads(GOLDEN.read_text())["blocks"]:
        order = orders.resolve(orders.Blocks(case["block"], case["fetch"], case["lanes"]), case["n"], case["seed"])
        for position, observation in case["pairs"]:
            assert order.pick(position, 1, 1)[0].tolist() == [observation], case


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 300),
    seed=st.integers(0, NEVER),
    block=st.integers(1, 40),
    times=st.integers(1, 8),
    lanes=st.integers(1, 60),
    first=st.integers(0, 1000),
    stride=st.integers(1, 70),
)
def test_blocks_equals_the_reference_and_is_a_bijection(n, seed, block, times, lanes, first, stride):
    order = orders.resolve(orders.Blocks(block, block * times, lanes), n, seed)
    reference = BlocksReference(n, seed, block, block * times, lanes)
    assert order.pick(first, stride, 8)[0].tolist() == [reference(first + i * stride) for i in range(8)]
    assert sorted(order.pick(2 * n, 1, n)[0].tolist()) == list(range(n))


def test_orders_say_what_decides_them():
    assert orders.resolve("uniform", 10, 2**64 - 1).identity(0) == (
        '{"algorithm":1,"name":"uniform","seed":18446744073709551615,"size":10}'
    )
    assert orders.resolve("sequential", 10, 3).identity(5) == '{"name":"sequential","size":10}'
    blocks = orders.resolve(orders.Blocks(2, 4, lanes=3), 100, 3)
    assert json.loads(blocks.identity(NEVER)) == {
        "algorithm": 1,
        "block": 2,
        "fetch": 4,
        "lanes": 3,
        "name": "blocks",
        "seed": 3,
        "size": 100,
    }
    assert (blocks.epoch_size, blocks.end(5), blocks.fetch_end(5)) == (100, NEVER, 12)


def test_names_and_objects_give_the_same_order():
    for name, order in (("uniform", orders.Uniform()), ("sequential", orders.Sequential())):
        assert np.array_equal(
            orders.resolve(name, 50, 1).pick(0, 1, 99)[0], orders.resolve(order, 50, 1).pick(0, 1, 99)[0]
        )


@pytest.mark.parametrize("order", [orders.Uniform(), orders.Sequential(), orders.Blocks(4, 8, lanes=2)])
def test_orders_pickle_and_compare(order):
    assert pickle.loads(pickle.dumps(order)) == order
    assert hash(pickle.loads(pickle.dumps(order))) == hash(order)
    with pytest.raises(AttributeError):
        order.block = 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"block": 0, "fetch": 8}, "block 0: wanted at least 1"),
        ({"block": 4, "fetch": 0}, "fetch 0"),
        ({"block": 4, "fetch": 8, "lanes": 0}, "lanes 0"),
        ({"block": 4, "fetch": 8, "lanes": -1}, "lanes -1"),
        ({"block": 4, "fetch": 10}, "a fetch of 10: wanted a multiple of the block, 4"),
    ],
)
def test_blocks_that_cannot_be_are_refused_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        orders.Blocks(**arguments)


def test_what_is_no_order_is_refused():
    with pytest.raises(ValueError, match="'random': wanted 'uniform', 'sequential' or an object"):
        orders.resolve("random", 10, 0)
    for wrong in (3, None):
        with pytest.raises(InvalidArgumentError, match=f"order {wrong}: wanted 'uniform'"):
            orders.resolve(wrong, 10, 0)
    with pytest.raises(InvalidArgumentError, match=r"block 1.5: wanted an integer"):
        orders.Blocks(1.5, 3)
    with pytest.raises(ValueError, match="wanted 1 to 2"):
        orders.resolve("uniform", 0, 0)
    with pytest.raises(ValueError, match="seed -1"):
        orders.resolve("uniform", 10, -1)


def test_positions_that_cannot_be_are_refused():
    order = orders.resolve("uniform", 10, 0)
    with pytest.raises(ValueError, match="stride 0"):
        order.pick(0, 0, 3)
    with pytest.raises(ValueError, match="wanted all below"):
        order.pick(2**63, 2**62, 3)
    with pytest.raises(ValueError, match="epoch"):
        order.pick(2**50, 1, 1)
