"""What a type checker is to make of loaders: read by `make types` and test_release.py, never run."""

from typing import Literal, assert_type

import penstock
from penstock import Batch, Loader


def lengths(batch: Batch) -> list[int]:
    return [span.stop - span.start for span in batch.spans]


dataset = penstock.open("corpus")
view = dataset.windows(8)

loader = Loader(view, 4, tail="drop", reader="uring", on_mismatch="keep_position", framework="numpy")
assert_type(loader, Loader[Batch])
assert_type(next(loader), Batch)
assert_type(iter(loader), Loader[Batch])
for batch in loader:
    assert_type(batch, Batch)

changed = Loader(view, 4, transform=lengths)
assert_type(next(changed), list[int])
with Loader(view, global_batch_size=8, transform=lambda batch: [batch]) as lists:
    assert_type(next(lists), list[Batch])

mixture = penstock.Mixture({"a": view, "b": view}, [penstock.Stage({"a": 1, "b": 2})])
assert_type(next(Loader(mixture, 4)), Batch)

evaluation = penstock.eval_loader(view, 4, tail="pad", transform=lengths)
assert_type(next(evaluation), list[int])
assert_type(next(penstock.eval_loader(view, 4)), Batch)

assert_type((loader.epoch, loader.step, loader.position, loader.batch_size), tuple[int, int, int, int])
tail: Literal["pad", "drop"] = "pad"
job = penstock.Job(view, global_batch_size=8, tail=tail)
