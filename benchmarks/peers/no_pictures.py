"""A stand-in for torchvision, imported before mosaicml-streaming.

streaming imports torchvision for its data sets of pictures, and the torchvision that pip finds refuses to be imported
beside a torch built for CPUs. Nothing of it is used here; without it streaming starts faster, not slower.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

NAMES = {
    "torchvision": (),
    "torchvision.datasets": ("VisionDataset", "CIFAR10"),
    "torchvision.transforms": (),
    "torchvision.transforms.functional": ("to_tensor",),
}


def stand_in() -> None:
    for name, members in NAMES.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        module.__path__ = []  # type: ignore[attr-defined]
        for member in members:
            setattr(module, member, type(member, (), {}))
        sys.modules[name] = module


stand_in()
