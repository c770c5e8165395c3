"""The packages of each extra, and the commands that messages give for them.

No message says `pip install 'penstock[text]'`: the name penstock is not this project's on any package index, so that
command would install another's package, or nothing. The commands name the packages themselves.
"""

from __future__ import annotations

import shlex

PACKAGES: dict[str, tuple[str, ...]] = {
    "text": ("tokenizers>=0.20", "gigatoken>=0.10", "zstandard>=0.22", "pyarrow>=15"),
    "msgpack": ("msgpack>=1.0",),
    "cells": ("h5py>=3.10", "anndata>=0.10", "zarr>=2.18", "scipy>=1.11", "pandas>=2.0", "msgpack>=1.0"),
    "formats": ("pyarrow>=15",),
    "chat": ("transformers>=4.53", "tokenizers>=0.20", "gigatoken>=0.10", "jinja2>=3.1", "zstandard>=0.22"),
    "torch": ("torch>=2.4",),
    "s3": ("obstore>=0.8", "boto3>=1.34"),
    "gs": ("obstore>=0.8",),
    "az": ("obstore>=0.8",),
    "fsspec": ("fsspec>=2024.2",),
    "hub": ("huggingface_hub>=1.0",),
    "query": ("duckdb>=1.1", "pyarrow>=15"),
    "ray": ("ray[data]>=2.50", "pyarrow>=15", "pandas>=2.0"),
    "scvi": ("scvi-tools>=1.4",),
}
"""Requirements as pyproject.toml has them, which a test compares."""

_MODULES = {"scvi-tools": "scvi"}  # packages that are called otherwise than their module


def install(extra: str, *, least: bool = False) -> str:
    """The command that installs the packages of an extra.

    Args:
        extra: a key of PACKAGES.
        least: names the oldest releases too, for whom has an older one: without them pip keeps it.

    >>> install("query")
    'pip install duckdb pyarrow'
    >>> install("hub", least=True)
    "pip install 'huggingface_hub>=1.0'"
    """
    packages = PACKAGES[extra]
    return shlex.join(["pip", "install", *(each if least else each.partition(">=")[0] for each in packages)])


def install_for(module: str) -> str:
    """The command that brings a module: the packages of the smallest extra that has it, else the package of its name.

    >>> install_for("pyarrow.parquet"), install_for("grain_of_sand")
    ('pip install pyarrow', 'pip install grain_of_sand')
    """
    name = module.partition(".")[0]
    having = [extra for extra in PACKAGES if any(_module(each) == name for each in PACKAGES[extra])]
    return (
        install(min(having, key=lambda extra: len(PACKAGES[extra]))) if having else shlex.join(["pip", "install", name])
    )


def _module(requirement: str) -> str:
    name = requirement.partition(">=")[0].partition("[")[0]
    return _MODULES.get(name, name)
