"""Compressed sparse rows over a batch's arrays, by torch or SciPy, without a copy."""

from __future__ import annotations

import warnings
from typing import Any

from penstock._base.errors import InvalidArgumentError


def csr_of(offsets: Any, columns: Any, values: Any, shape: tuple[int, int], torch: Any) -> Any:
    """A matrix of these arrays, which are right: the native threads made them.

    Args:
        offsets: [rows + 1].
        columns: [records], ascending within each row.
        values: [records].
        shape: (rows, columns).
        torch: the module, for torch.sparse_csr; None for SciPy.

    Raises:
        InvalidArgumentError: neither torch nor SciPy is there.
    """
    if torch is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says once that sparse_csr is in beta
            return torch.sparse_csr_tensor(offsets, columns, values, shape, check_invariants=False)
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        raise InvalidArgumentError("batch.csr needs SciPy or framework='torch': neither is here") from None
    matrix = csr_matrix(shape, dtype=values.dtype)
    # Its constructor would look through them, and copy int64.
    matrix.indptr, matrix.indices, matrix.data = offsets, columns, values
    matrix.has_canonical_format = True
    return matrix
