"""penstock.orders: names and objects, what decides them, what is refused. What they give is tested in C++."""

import json
import pickle

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, compact
from penstock import InvalidArgumentError, orders

NEVER = 2**64 - 1


def test_orders_say_what_decides_them():
    uniform = orders.resolve("uniform", 10, 2**64 - 1)
    assert uniform.identity(0) == '{"algorithm":1,"name":"uniform","seed":18446744073709551615,"size":10}'
    assert orders.resolve("sequential", 10, 3).identity(5) == '{"name":"sequential","size":10}'
    blocks = orders.resolve(orders.Blocks(2, 4, lanes=3), 100, 3)
    expected = {"algorithm": 1, "block": 2, "fetch": 4, "lanes": 3, "name": "blocks", "seed": 3, "size": 100}
    assert json.loads(blocks.identity(NEVER)) == expected
    assert (blocks.epoch_size, blocks.end(5), blocks.fetch_end(5)) == (100, NEVER, 12)


def test_names_and_objects_give_the_same_order_as_arrays():
    for name, order in (("uniform", orders.Uniform()), ("sequential", orders.Sequential())):
        found = orders.resolve(name, 50, 1).pick(0, 1, 99)
        assert [each.dtype for each in found] == [np.uint64, np.uint32, np.uint32]
        index, source, epoch = found
        assert np.array_equal(index, orders.resolve(order, 50, 1).pick(0, 1, 99)[0])
        assert np.array_equal(epoch, np.arange(99) // 50) and not source.any()


@pytest.mark.parametrize("order", [orders.Uniform(), orders.Sequential(), orders.Blocks(4, 8, lanes=2)])
def test_orders_pickle_and_compare(order):
    assert pickle.loads(pickle.dumps(order)) == order
    assert hash(pickle.loads(pickle.dumps(order))) == hash(order)
    with pytest.raises(AttributeError):
        order.block = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: orders.Blocks(0, 8), "block 0: wanted at least 1"),
        (lambda: orders.Blocks(4, 0), "fetch 0"),
        (lambda: orders.Blocks(4, 8, lanes=0), "lanes 0"),
        (lambda: orders.Blocks(4, 8, lanes=-1), "lanes -1"),
        (lambda: orders.Blocks(4, 10), "a fetch of 10: wanted a multiple of the block, 4"),
        (lambda: orders.Blocks(8, 4), "a multiple of the block"),
        (lambda: orders.Blocks(1.5, 3), "block 1.5: wanted an integer"),
        (lambda: orders.resolve("random", 10, 0), "'random': wanted 'uniform', 'sequential' or an object"),
        (lambda: orders.resolve(3, 10, 0), "order 3: wanted 'uniform'"),
        (lambda: orders.resolve(None, 10, 0), "order None: wanted 'uniform'"),
        (lambda: orders.resolve("uniform", 0, 0), "wanted 1 to 2"),
        (lambda: orders.resolve("uniform", 10, -1), "seed -1"),
        (lambda: orders.resolve("uniform", 10, 0).pick(0, 0, 3), "stride 0"),
        (lambda: orders.resolve("uniform", 10, 0).pick(2**63, 2**62, 3), "wanted all below"),
        (lambda: orders.resolve("uniform", 10, 0).pick(2**50, 1, 1), "epoch"),
    ],
)
def test_what_cannot_be_is_refused_in_words(make, message):
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_lengths_make_the_job_of_bucketed_and_are_checked(tmp_path):
    view = compact(tmp_path, LENGTHS)[0].documents()
    lengths = view.lengths()
    state = penstock.Loader(view, 2, order=penstock.orders.Bucketed(lengths)).state_dict()
    for other in (penstock.orders.Bucketed(lengths + 1), penstock.orders.Bucketed(lengths, pool=64)):
        with penstock.Loader(view, 2, order=other) as loader, pytest.raises(penstock.StateMismatchError):
            loader.load_state_dict(state)
    for options, named in [
        ({"lengths": [[1]]}, "shape"), ({"lengths": [0.5]}, "type"), ({"lengths": [-1]}, "-1"),
        ({"lengths": [1 << 32]}, "2\\*\\*32"), ({"lengths": [1], "pool": 0}, "pool"),
        ({"lengths": [1], "pool": 1 << 25}, "pool"), ({"lengths": [1], "bucket": 0}, "bucket"),
        ({"lengths": [1], "pool": 4, "bucket": 5}, "bucket 5"),
    ]:  # fmt: skip
        with pytest.raises(penstock.InvalidArgumentError, match=named):
            penstock.orders.Bucketed(**options)
    with pytest.raises(penstock.InvalidArgumentError, match="3 lengths for a view of 14"):
        penstock.Loader(view, 2, order=penstock.orders.Bucketed([1, 2, 3]))
