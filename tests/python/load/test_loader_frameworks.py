"""torch is optional: never imported by the package, used where it is installed, done without where it is not."""

from __future__ import annotations

import subprocess
import sys

import pytest
from _datasets import raw_tokens

WITHOUT_IMPORTING = """
import sys, numpy, penstock
view = penstock.open(sys.argv[1], dtype="u2").windows(10)
view[0]; view.read([1, 2])
penstock.Permutation(10, 0)[3]
assert type(next(penstock.Loader(view, 2, framework="numpy"))["token"]) is numpy.ndarray
next(penstock.CollectionLoader(numpy.arange(10), 2))
assert "torch" not in sys.modules
next(penstock.Loader(view, 2))
assert "torch" in sys.modules
"""

NO_TORCH = """
import importlib.abc, importlib.util, sys
class NoTorch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch" or name.startswith("torch."):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None
sys.meta_path.insert(0, NoTorch())
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "torch" else real(name, package)
import numpy, penstock
view = penstock.open(sys.argv[1], dtype="u2").windows(10, lookahead=1)
loader = penstock.Loader(view, 4, seed=1)
batch = next(loader)
for array in (batch["token"], batch.inputs, batch.labels, batch.indices, batch.valid, batch.epochs):
    assert type(array) is numpy.ndarray
assert batch.inputs.dtype == "i8"
for options in ({"framework": "torch"}, {"pin_memory": True}):
    try:
        penstock.Loader(view, 4, **options)
    except penstock.InvalidArgumentError as error:
        assert "torch" in str(error)
    else:
        raise SystemExit("not refused")
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("script", [WITHOUT_IMPORTING, NO_TORCH], ids=["not imported", "not there"])
def test_torch_is_optional(tmp_path, script):
    raw_tokens(tmp_path / "tokens.bin", 1000)
    command = [sys.executable, "-c", script, str(tmp_path / "tokens.bin")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
