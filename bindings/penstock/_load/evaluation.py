"""Loaders for evaluation, which begin again at every `for`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from penstock._data.batch import Batch
from penstock._data.view import View
from penstock._load.job import check_view
from penstock._load.loader import Given, Loader
from penstock._load.mixture import Mixture
from penstock._load.options import BatchSize, LoaderOptions

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack


class EvalLoader(Loader[Given]):
    """A loader that begins at 0 at every `iter()`; made by `eval_loader`."""

    def __iter__(self) -> Self:
        """Begins again."""
        self._check_worker()
        self.rewind()
        return super().__iter__()


def eval_loader(
    view: View | Mixture,
    batch_size: BatchSize | None = None,
    *,
    transform: Callable[[Batch], Given] | None = None,
    **options: Unpack[LoaderOptions],
) -> EvalLoader[Given]:
    """A loader for evaluation: the same batches at every `for`, as many on every rank.

    Args:
        view: what to load.
        batch_size: as for `Loader`.
        transform: as for `Loader`.
        **options: as for `Loader`; `epochs` is 1 unless it is given. A mixture needs an end.

    Raises:
        InvalidArgumentError: a mixture without end; else as `Loader`.

    Examples:
        >>> import numpy as np, penstock, tempfile, os
        >>> path = os.path.join(tempfile.mkdtemp(), "tokens.bin")
        >>> np.arange(1000, dtype=np.uint16).tofile(path)
        >>> view = penstock.open(path, dtype="u2").windows(100)
        >>> loader = penstock.eval_loader(view, batch_size=4, framework="numpy")
        >>> [batch.indices.tolist() for batch in loader] == [batch.indices.tolist() for batch in loader]
        True
    """
    check_view(view)
    view._for_evaluation(cast("dict[str, Any]", options))
    return EvalLoader(view, batch_size, transform=transform, **options)
