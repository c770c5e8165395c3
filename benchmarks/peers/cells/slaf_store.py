"""Writes an .h5ad file as SLAF: python slaf_store.py FILE OUT."""

import sys

from slaf.data import SLAFConverter

if __name__ == "__main__":
    SLAFConverter(create_indices=False).convert(sys.argv[1], sys.argv[2])
