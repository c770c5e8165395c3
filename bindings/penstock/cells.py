"""Cells: forms of batches whose documents are cells; `dataset.cells(form)` takes them, or their names in lower case.

A cell is a document of records {gene, count}, its genes ascending. The native threads make the arrays of its form.

Examples:
    >>> import os, penstock, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "cells")
    >>> with penstock.Writer(path, fields={"gene": "u2", "count": "u1"}, metadata="json") as writer:
    ...     writer.append(gene=[0, 3], count=[5, 1], metadata=None)
    ...     writer.append(gene=[1, 2, 3], count=[1, 1, 2], metadata=None)
    >>> view = penstock.open(path).cells("dense", genes=range(4))
    >>> next(penstock.Loader(view, batch_size=2, order="sequential"))["x"].tolist()
    [[5.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 2.0]]
"""

from penstock._data.cells import FORMS, Binned, Csr, Dense, Form, Medians, Ranked, Tokens

__all__ = ["FORMS", "Binned", "Csr", "Dense", "Form", "Medians", "Ranked", "Tokens"]
