"""What a fresh process does: run by importing.py and opening.py, never imported by them. Prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def import_all() -> dict[str, float]:
    """NumPy first, so that the second figure is penstock's own."""
    begin = time.perf_counter()
    import numpy  # noqa: F401

    after_numpy = time.perf_counter()
    import penstock  # noqa: F401

    return {"numpy_ms": (after_numpy - begin) * 1e3, "penstock_ms": (time.perf_counter() - after_numpy) * 1e3}


def first_batch(path: str, window: int, batch: int, position: int | None) -> dict[str, float]:
    """Opens, makes a loader, goes to `position` if one is given, and takes one batch."""
    import penstock

    begin = time.perf_counter()
    view = penstock.open(path, checks="none").windows(window, lookahead=1)
    opened = time.perf_counter()
    loader = penstock.Loader(view, batch_size=batch, seed=7, rank=0, world_size=1, framework="numpy")
    made = time.perf_counter()
    if position is not None:
        loader.load_state_dict(loader.state_dict() | {"position": position})
    loaded = time.perf_counter()
    got = next(loader)
    inputs, labels = got.inputs, got.labels
    end = time.perf_counter()
    assert inputs.shape == labels.shape == (batch, window) and got.position == (position or 0)
    return {
        "all_ms": (end - begin) * 1e3,
        "open_ms": (opened - begin) * 1e3,
        "make_ms": (made - opened) * 1e3,
        "load_ms": (loaded - made) * 1e3,
        "resume_ms": (end - made) * 1e3,
        "observations": len(view),
    }


def resident_mib(field: str) -> float:
    """VmRSS or VmHWM (the most there ever was) of this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def main(arguments: list[str]) -> None:
    found: dict[str, float] = import_all()
    if arguments:
        path, window, batch, position = arguments
        found |= first_batch(path, int(window), int(batch), None if position == "-" else int(position))
        found |= {"resident_mib": resident_mib("VmRSS"), "most_resident_mib": resident_mib("VmHWM")}
    assert "torch" not in sys.modules
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
