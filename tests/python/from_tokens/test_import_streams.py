"""Imports whose shards native code makes of the files: the bytes are those of arrays, and workers are threads."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _token_files import GOLDEN, MEGATRON, copied, files_of, put_bin, put_datatrove, put_olmo
from penstock._from.tokens.in_place import InPlace
from penstock._make import streamed

RANDOM = np.random.default_rng(5).integers(2, 300, 150_000)
CUT: dict[str, Any] = {"dtype": "u2", "shard_size": 100_000}


def put_numpy(folder: Path) -> Path:
    np.save(folder / "a.npy", RANDOM.astype("<u4"))
    return folder / "a.npy"


def put_several(folder: Path) -> list[Path]:
    parts = [RANDOM[:70_001], RANDOM[:1], RANDOM[70_002:]]
    return [put_bin(folder / f"{number}.bin", part) for number, part in enumerate(parts)]


#: What is put, and options of the import.
NATIVE: dict[str, tuple[Callable[[Path], Any], dict[str, Any]]] = {
    "Megatron": (lambda _: MEGATRON / "u2_text_document", {"shard_size": 200}),
    "Megatron, sentences": (lambda _: MEGATRON / "i4_text_sentence", {}),
    "datatrove": (put_datatrove, {"shard_size": 1 << 15}),
    "litdata": (lambda _: GOLDEN / "litdata" / "tensor", {"shard_size": 200}),
    "OLMo": (put_olmo, {"dtype": "u2", "shard_size": 100}),
    "wider": (put_datatrove, {"dtype": "u4"}),
    "stream": (put_numpy, {"shard_size": 100_000}),
    "narrower": (put_numpy, {"dtype": "u2"}),
    "several": (put_several, CUT),
    "ends": (put_several, {**CUT, "end_of_document": 7}),
    "begins": (put_several, {**CUT, "begin_of_document": 7}),
    "nowhere": (put_several, {**CUT, "end_of_document": 1}),
}


@pytest.mark.parametrize("what", NATIVE)
def test_the_bytes_are_those_that_arrays_give(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put, options = NATIVE[what]
    data = put(tmp_path)
    penstock.import_tokens(data, tmp_path / "whole", **options)
    monkeypatch.setattr(streamed, "_STEP", 1234)  # many calls
    for workers in (1, 2):
        penstock.import_tokens(data, tmp_path / f"of {workers}", workers=workers, **options)
        assert files_of(tmp_path / f"of {workers}") == files_of(tmp_path / "whole")
    asked: list[InPlace] = []
    monkeypatch.setattr(InPlace, "append_to", lambda reader, *_: bool(asked.append(reader)))
    done = penstock.import_tokens(data, tmp_path / "arrays", **options)
    assert files_of(tmp_path / "arrays") == files_of(tmp_path / "whole") and done.records > 0
    assert asked and all(each.is_native for each in asked)
    assert penstock.verify(tmp_path / "whole")


def test_workers_are_threads_that_stop_at_the_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed, "_STEP", 4096)
    names: set[str] = set()

    def stop(done: int, total: int) -> None:
        names.update(each.name for each in threading.enumerate())
        assert not multiprocessing.active_children()
        raise KeyboardInterrupt

    out, data = tmp_path / "d", put_several(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        penstock.import_tokens(data, out, workers=2, progress=stop, dtype="u2", shard_size=50_000)
    assert names >= {"penstock-worker-0", "penstock-worker-1"}
    assert not [each for each in threading.enumerate() if each.name.startswith("penstock-worker")]
    assert 1 <= len(list(out.glob("0*"))) < 6 and not list(out.glob(".partial-*"))
    done = penstock.import_tokens(data, out, workers=2, resume=True, dtype="u2", shard_size=50_000)
    assert done.kept_shards >= 1 and done.records == len(RANDOM)


def test_metadata_and_fields_beside_the_tokens_are_for_processes(tmp_path: Path) -> None:
    for path, options in (
        (GOLDEN / "datatrove" / "loss.ds", {}),
        (GOLDEN / "mds" / "tokens", {}),
        (put_olmo(tmp_path), {"dtype": "u2", "metadata": ["id"]}),
    ):
        seen: list[int] = []
        penstock.import_tokens(
            path,
            tmp_path / "out" / path.name,
            workers=2,
            shard_size=256,
            progress=lambda *_, seen=seen: seen.append(len(multiprocessing.active_children())),  # type: ignore[misc]
            **options,  # type: ignore[arg-type]
        )
        assert seen[0] == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_that_is_cut_while_it_is_imported_is_told(tmp_path: Path, workers: int) -> None:
    path = copied(tmp_path)

    def cut(done: int, total: int) -> None:
        path.write_bytes(path.read_bytes()[:-2])

    with pytest.raises(penstock.Error, match=r"plain\.ds"):
        penstock.import_tokens(path, tmp_path / "d", shard_size=100, workers=workers, progress=cut)
    assert not (tmp_path / "d" / "dataset.json").exists()
