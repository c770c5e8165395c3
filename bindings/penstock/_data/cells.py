"""Forms of batches whose documents are cells: `penstock.cells`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy.typing as npt

Tokens = Mapping[str, int] | npt.ArrayLike | None
Medians = Mapping[str, float] | npt.ArrayLike | None


@dataclass(frozen=True)
class Csr:
    """`batch.csr`, compressed sparse rows [rows, genes]: a torch.sparse_csr tensor, without torch a SciPy csr_matrix.

    `batch["gene"]` and the values, called like their field, [records], and `batch.offsets` [rows + 1] are the same
    memory. Rows are sorted by gene; padding rows are empty.

    Attributes:
        dtype: of the values: "float32" or "float64".
        index: of genes and offsets: "int32" or "int64".

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "cells")
        >>> with penstock.Writer(path, fields={"gene": "u2", "count": "u1"}, metadata="json") as writer:
        ...     writer.append(gene=[0, 3], count=[5, 1], metadata=None)
        ...     writer.append(gene=[1, 2, 3], count=[1, 1, 2], metadata=None)
        >>> batch = penstock.open(path).cells("csr", genes=[3, 1]).read([0, 1])
        >>> batch["gene"].tolist(), batch["count"].tolist(), batch.offsets.tolist()
        ([0, 0, 1], [1.0, 2.0, 1.0], [0, 1, 3])
        >>> batch.csr.toarray().tolist()
        [[1.0, 0.0], [2.0, 1.0]]
    """

    name: ClassVar[str] = "csr"
    dtype: Any = "float32"
    index: Any = "int32"


@dataclass(frozen=True)
class Dense:
    """`batch["x"]`: [rows, genes], 0 where a cell has no record.

    Attributes:
        dtype: "float32" or "float64".
    """

    name: ClassVar[str] = "dense"
    dtype: Any = "float32"


@dataclass(frozen=True)
class Ranked:
    """Geneformer's sentences: a cell's genes with values above 0, by value over the gene's median, descending.

    `batch["input_ids"]` int64 and `batch["attention_mask"]` bool, both [rows, length]. Keys are 64-bit floats; genes of
    equal ones ascend. A sentence is cut so that `cls` and `eos` fit; a cell without such genes is those two alone.

    Attributes:
        length: of each row.
        tokens: by gene: a mapping from names, or integers [genes]; -1, or a name that is not there: the gene is left
            out. None: the gene's number + 4.
        medians: by gene: a mapping from names, or floats [genes]; a name that is not there, or NaN: the gene is left
            out. None: 1.
        cls: the token that comes first in each sentence; None: none does.
        eos: the token that comes last.
        pad: the token behind the sentence.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "cells")
        >>> with penstock.Writer(path, fields={"gene": "u2", "count": "u1"}, metadata="json") as writer:
        ...     writer.append(gene=[0, 1, 2], count=[5, 1, 4], metadata=None)
        >>> form = penstock.cells.Ranked(length=5, medians=[10, 1, 1], cls=2, eos=3)
        >>> batch = penstock.open(path).cells(form).read([0])
        >>> batch["input_ids"].tolist(), batch["attention_mask"].sum().item()
        ([[2, 6, 5, 4, 3]], 5)
    """

    name: ClassVar[str] = "ranked"
    length: int = 2048
    tokens: Tokens = None
    medians: Medians = None
    cls: int | None = None
    eos: int | None = None
    pad: int = 0


@dataclass(frozen=True)
class Binned:
    """scGPT's bins: a cell's genes with values above 0, and which quantile of these values each one lies in.

    `batch["input_ids"]` and `batch["values"]` int64 and `batch["attention_mask"]` bool, all [rows, length]. A bin is
    `numpy.digitize(value, numpy.quantile(values, numpy.linspace(0, 1, bins - 1)))`, over all of the cell's values above
    0; genes ascend. Where there are too many, `choose` says which stay. Equal values have one bin, the last of those
    between whose edges they lie. scGPT's own `_digitize(side="both")` draws one of these bins at random for each value.

    Attributes:
        bins: how many, with that of 0.
        length: of each row.
        choose: "top": the largest values, of equal ones the first genes; "first": the first genes; "random": any of
            them, equally likely, a pure function of (the loader's seed, epoch, cell).
        tokens: as of `Ranked`.
        cls: the token that comes first in each row, with the value 0; None: none does.
        pad: the token behind the genes.
        pad_value: the value there.

    Examples:
        >>> import os, penstock, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "cells")
        >>> with penstock.Writer(path, fields={"gene": "u2", "count": "u1"}, metadata="json") as writer:
        ...     writer.append(gene=[0, 1, 2], count=[5, 1, 4], metadata=None)
        >>> batch = penstock.open(path).cells(penstock.cells.Binned(bins=4, length=4, cls=1)).read([0])
        >>> batch["input_ids"].tolist(), batch["values"].tolist()
        ([[1, 4, 5, 6]], [[0, 3, 1, 2]])
    """

    name: ClassVar[str] = "binned"
    bins: int = 51
    length: int = 1200
    choose: Literal["top", "first", "random"] = "top"
    tokens: Tokens = None
    cls: int | None = None
    pad: int = 0
    pad_value: int = -2


Form = Csr | Dense | Ranked | Binned
FORMS: dict[str, type[Form]] = {each.name: each for each in (Csr, Dense, Ranked, Binned)}
