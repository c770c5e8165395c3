"""Writes the small files of other packages in this folder: `python make.py datatrove|mds|packed|litdata|huggingface|
webdataset`, each where it is installed (datatrove 0.10.1, mosaicml-streaming 0.13.0, litdata 0.2.76, datasets 5.2.0,
webdataset 1.0.2, torch 2.13.0). `make formats` has environments in which they are.

What they must give is documents(). streaming imports torchvision: an empty module of that name will do.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LENGTHS = (5, 1, 300, 2, 7, 260, 3, 40)


def documents() -> list[list[int]]:
    return [[(31 * number + 7 * at) % 50257 for at in range(length)] for number, length in enumerate(LENGTHS)]


def datatrove() -> None:
    from datatrove.pipeline.tokens.tokenizer import TokenizedFile

    for name, token_size, has_loss in (("plain", 2, False), ("loss", 4, True)):
        folder = HERE / "datatrove"
        file = TokenizedFile(
            output_folder=str(folder),
            filename=f"{name}.ds",
            save_index=True,
            save_loss_metadata=has_loss,
            save_final_metadata=True,
            tokenizer_name_or_path="gpt2",
            token_size=token_size,
        )
        for tokens in documents():
            data = b"".join(token.to_bytes(token_size, "little") for token in tokens)
            file.write_bytes(data)
            if has_loss:
                file.write_loss_bytes(bytes(at % 2 for at in range(len(tokens))))
        file.close()


def mds() -> None:
    import numpy as np
    from streaming import MDSWriter

    for name, columns in (
        ("tokens", {"tokens": "ndarray:int32"}),
        ("beside", {"a": "int", "tokens": "ndarray:uint16", "text": "str"}),
        ("bytes", {"tokens": "bytes"}),
        ("dynamic", {"input_ids": "ndarray"}),
        ("pickled", {"tokens": "pkl"}),
        ("fixed", {"tokens": "ndarray:int32:4"}),
    ):
        folder = HERE / "mds" / name
        with MDSWriter(out=str(folder), columns=columns, size_limit=1400) as writer:
            for number, tokens in enumerate(documents()):
                array = np.array(tokens[:4] if name == "fixed" else tokens)
                values: dict[str, Any] = {
                    "a": number,
                    "text": "x" * number,
                    "input_ids": array.astype("u2"),
                    "tokens": {
                        "beside": array.astype("u2"),
                        "bytes": array.astype("<u2").tobytes(),
                        "pickled": tokens,
                    }.get(name, array.astype("i4")),
                }
                if name == "fixed" and len(tokens) < 4:
                    continue
                writer.write({key: values[key] for key in columns})
    with MDSWriter(out=str(HERE / "mds" / "zstd"), columns={"tokens": "ndarray:int32"}, compression="zstd") as writer:
        writer.write({"tokens": np.arange(9, dtype="i4")})


def packed() -> None:
    import numpy as np
    from streaming import MDSWriter

    columns = {"a": "int", "kind": "json", "text": "str", "tokens": "ndarray:uint16", "weight": "float32"}
    for kind in ("zstd", "br", "gz", "bz2", "snappy"):
        folder = HERE / "packed" / kind
        with MDSWriter(out=str(folder), columns=columns, compression=kind, size_limit=1400) as writer:
            for number, tokens in enumerate(documents()):
                values = {"a": number, "kind": {"of": [number]}, "text": "x" * number, "weight": number / 4}
                writer.write({**values, "tokens": np.array(tokens, "u2")})


def huggingface() -> None:
    import datasets

    rows = {
        "input_ids": documents(),
        "url": [f"page/{number}" for number in range(len(LENGTHS))],
        "n": list(range(len(LENGTHS))),
    }
    datasets.Dataset.from_dict(rows).save_to_disk(str(HERE / "huggingface" / "plain"), num_shards=2)


def webdataset() -> None:
    import numpy as np
    from webdataset import TarWriter

    (HERE / "webdataset").mkdir(exist_ok=True)
    for name in ("npy", "json", "bytes"):
        with TarWriter(str(HERE / "webdataset" / f"{name}.tar"), mtime=0) as writer:
            for number, tokens in enumerate(documents()):
                sample: dict[str, Any] = {"__key__": f"{number:06}", "cls": number, "json": {"url": f"page/{number}"}}
                if name == "json":
                    sample["json"]["tokens"] = tokens
                elif name == "npy":
                    sample["npy"] = np.array(tokens, "u2")
                else:
                    sample["bytes"] = np.array(tokens, "<u2").tobytes()
                writer.write(sample)


def litdata() -> None:
    import numpy as np
    import torch
    from litdata.streaming import Cache
    from litdata.streaming.item_loader import TokensLoader

    for name, kind in (("tensor", torch.int32), ("numpy", None)):
        folder = HERE / "litdata" / name
        cache = Cache(str(folder), chunk_size=400, item_loader=TokensLoader(block_size=10))
        for number, tokens in enumerate(documents()):
            cache[number] = np.array(tokens, "u2") if kind is None else torch.tensor(tokens, dtype=kind)
        cache.done()
        cache.merge()


if __name__ == "__main__":
    which = {
        "datatrove": datatrove, "mds": mds, "packed": packed, "litdata": litdata, "huggingface": huggingface,
        "webdataset": webdataset,
    }  # fmt: skip
    for each in sys.argv[1:]:
        shutil.rmtree(HERE / each, ignore_errors=True)
        which[each]()
