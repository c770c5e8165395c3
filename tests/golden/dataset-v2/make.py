"""Made compact/ and ids/ once, with the first version that had columns; kept so that what it wrote is read for ever."""

from pathlib import Path

import numpy as np
import penstock

HERE = Path(__file__).parent
COLUMNS = {"plate": "category", "score": "f4", "point": ("f8", (2,)), "line": ["a", "b", "c"], "flag": "?", "n": "i2"}


def values(number: int) -> dict[str, object]:
    return {
        "plate": None if number == 3 else f"plate ü{number % 3}",
        "score": number / 4,
        "point": [number, -number],
        "line": "cab"[number % 3],
        "flag": number % 2 == 1,
        "n": -number,
    }


def write(path: Path, layout: str) -> None:
    with penstock.Writer(path, {"token": "u2"}, "json", columns=COLUMNS, layout=layout, shard_size=400) as writer:
        for number, length in enumerate((5, 1, 30, 7, 4200)):
            writer.append({"number": number}, columns=values(number), token=np.arange(length))


if __name__ == "__main__":
    for layout in ("compact", "ids"):
        write(HERE / layout, layout)
