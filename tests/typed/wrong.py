"""Lines that a type checker is to refuse: one that does not is told that its mark is not needed.

Read by `make types` and test_release.py, never run.
"""

import penstock

view = penstock.open("corpus").windows(8)

penstock.Loader(view, 4, tail="last")  # type: ignore[arg-type]
penstock.Loader(view, 4, reader="mmapped")  # type: ignore[arg-type]
penstock.Loader(view, 4, on_mismatch="ignore")  # type: ignore[arg-type]
penstock.Loader(view, 4, framework="jax")  # type: ignore[arg-type]
penstock.Loader(view, 4, batchsize=4)  # type: ignore[call-arg]
penstock.Loader("corpus", 4)  # type: ignore[arg-type]
penstock.Loader(view, 4, transform=lambda batch: batch.tokens)  # type: ignore[attr-defined]
penstock.eval_loader(view, 4, tail="last")  # type: ignore[arg-type]
penstock.eval_loader(view, 4, prefetched=4)  # type: ignore[call-arg]
penstock.Job(view, global_batch_size=4, tail="last")  # type: ignore[arg-type]
penstock.CollectionLoader([1, 2], 4, on_mismatch="ignore")  # type: ignore[arg-type]
tokens = next(penstock.Loader(view, 4)).tokens  # type: ignore[attr-defined]
number: str = penstock.Loader(view, 4).epoch  # type: ignore[assignment]
penstock.Loader(view, 4, tail="drop")
