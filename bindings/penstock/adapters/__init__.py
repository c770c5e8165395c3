"""Adapters: a penstock loader where a training framework wants a loader, a dataset or a node of its own.

| framework | adapter |
| --- | --- |
| PyTorch's DataLoader, torchdata's StatefulDataLoader | `penstock.adapters.torch.BatchDataset` |
| torchdata.nodes | `penstock.adapters.torchdata.Node` |
| Lightning | `penstock.adapters.lightning.TrainLoader` |
| transformers' Trainer | `penstock.adapters.transformers.TrainLoader` and `LoaderCallback` |
| torchtitan | `penstock.adapters.torchtitan.DataLoader` |
| scvi-tools | `penstock.adapters.scvi.DataModule` |

Accelerate and torch.distributed.checkpoint take the loader itself. What is saved is the state after the last batch that
was trained on. Each module imports its framework when it is first used, and needs no other.
"""

import importlib
from typing import Any

__all__ = ["lightning", "scvi", "torch", "torchdata", "torchtitan", "transformers"]


def __getattr__(name: str) -> Any:
    """Imports an adapter's module when it is first asked for.

    Raises:
        AttributeError: there is none of this name.
        ModuleNotFoundError: its framework is not installed; the message names the package.
        ImportError: the installed framework lacks a part that the adapter uses; the message names both.
    """
    if name not in __all__:
        raise AttributeError(f"penstock.adapters has no {name[:80]!r}; there are {', '.join(__all__)}")
    return importlib.import_module(f"penstock.adapters.{name}")


def __dir__() -> list[str]:
    """The adapters."""
    return __all__
