"""What a process of its own holds while it loads very many small batches: run by memory.py. Prints one line of JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import penstock
from fresh import resident_mib

WINDOW = 64
BATCH = 4
SAMPLES = 100


def main(path: str, batches: int, max_bytes: int) -> None:
    view = penstock.open(path).windows(WINDOW)
    options: dict[str, Any] = {"rank": 0, "world_size": 1, "framework": "numpy", "max_bytes": max_bytes}
    before = resident_mib("VmRSS")
    samples = []
    with penstock.Loader(view, batch_size=BATCH, **options) as loader:
        for number in range(1, batches + 1):
            batch = next(loader)
            if number % (batches // SAMPLES) == 0:
                assert batch["token"].shape == (BATCH, WINDOW) and len(batch.spans) >= BATCH
                samples.append(resident_mib("VmRSS"))
    print(json.dumps({"before": before, "samples": samples, "most": resident_mib("VmHWM")}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
