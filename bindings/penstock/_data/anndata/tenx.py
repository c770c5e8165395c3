"""Matrices of 10x Genomics' .h5 files (cellranger's filtered_feature_bc_matrix.h5), named as AnnData names its members.

They are compressed columns of genes by cells, which are compressed rows of cells by genes. Genes are named by their
ids, which differ from each other; their symbols are a column of var.
"""

from __future__ import annotations

from typing import Any

_COLUMNS = {"name": "gene_symbols", "feature_type": "feature_types", "genome": "genome"}


class MadeGroup:
    """A group that no file has, of members that one has.

    Attributes:
        attrs: as a file's group has them.
    """

    def __init__(self, attributes: dict[str, Any], members: dict[str, Any]) -> None:
        """Takes groups and arrays."""
        self.attrs = attributes
        self._members = members

    def __contains__(self, name: str) -> bool:
        """True if there is a member of this name, or path."""
        return self.get(name) is not None

    def __getitem__(self, name: str) -> Any:
        """A member by its name or path; KeyError where there is none."""
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """A member by its name or path, or `default`."""
        first, _, rest = name.partition("/")
        found = self._members.get(first)
        return found.get(rest, default) if rest and found is not None else default if found is None else found

    def keys(self) -> list[str]:
        """Names of members."""
        return list(self._members)


def as_anndata(root: Any) -> Any:
    """The root itself, or, of one of 10x, what it is as AnnData."""
    if "obs" in root:
        return root
    if "matrix" in root and "barcodes" in root["matrix"]:
        matrix = root["matrix"]
        features = matrix["features"]
        columns = {ours: features[theirs] for theirs, ours in _COLUMNS.items() if theirs in features}
        return _made(matrix, features["id"], columns)
    genomes = list(root.keys())
    if len(genomes) == 1 and not hasattr(root[genomes[0]], "dtype") and "barcodes" in root[genomes[0]]:  # before 3.0
        matrix = root[genomes[0]]
        return _made(matrix, matrix["genes"], {"gene_symbols": matrix["gene_names"]})
    return root


def _made(matrix: Any, ids: Any, columns: dict[str, Any]) -> MadeGroup:
    genes, cells = (int(each) for each in matrix["shape"][:])
    parts = {name: matrix[name] for name in ("data", "indices", "indptr")}
    return MadeGroup(
        {},
        {
            "X": MadeGroup({"encoding-type": "csr_matrix", "shape": [cells, genes]}, parts),
            "obs": MadeGroup({"_index": "_index", "column-order": []}, {"_index": matrix["barcodes"]}),
            "var": MadeGroup({"_index": "_index", "column-order": list(columns)}, {"_index": ids, **columns}),
        },
    )
