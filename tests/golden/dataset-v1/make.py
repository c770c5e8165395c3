"""Made compact/ and ids/ once, with the first version, and boundaries/ with the first that had that codec; kept so that
what they wrote is read for ever."""

from pathlib import Path

import numpy as np
import penstock

HERE = Path(__file__).parent
FIELDS = [("token", "u2"), ("pair", [("x", "u1"), ("y", "f4", (2,))])]


def documents() -> list[tuple[np.ndarray, dict[str, object]]]:
    out = []
    for number, length in enumerate((5, 1, 30, 7, 4200)):
        records = np.zeros(length, FIELDS)
        records["token"] = np.arange(length) * 7 % 50_000 + number
        records["pair"]["x"] = np.arange(length) % 251
        records["pair"]["y"] = np.arange(length)[:, None] / 4
        out.append((records, {"number": number, "text": "ü" * number}))
    return out


def write(path: Path, layout: str) -> None:
    tokenizer = {"name": "golden", "vocabulary_size": 50_005, "end_of_document": 0}
    codec = "json"
    if layout == "boundaries":
        codec, layout = layout, "compact"
    with penstock.Writer(path, FIELDS, codec, layout=layout, shard_size=400, tokenizer=tokenizer) as writer:
        for records, metadata in documents():
            writer.append(records=records, metadata=metadata if codec == "json" else None)


if __name__ == "__main__":
    for layout in ("compact", "ids", "boundaries"):
        write(HERE / layout, layout)
