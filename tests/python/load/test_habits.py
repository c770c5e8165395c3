"""What somebody who comes from torch's DataLoader tries first, and what penstock answers."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _python_stores import Own

TOKENS = np.arange(1000, dtype="u2")


@pytest.fixture
def view(tmp_path: Path) -> penstock.View:
    TOKENS.tofile(tmp_path / "train.bin")
    return penstock.open(tmp_path / "train.bin", dtype="u2").windows(10)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num_workers", "threads="),
        ("shuffle", "order="),
        ("drop_last", 'tail="drop"'),
        ("pin_memry", "pin_memory="),
        ("batchsize", "batch_size="),
        ("nothing_like_it", "it has view, batch_size"),
    ],
)
def test_an_unknown_argument_says_which_one_is_meant(view: Any, name: str, meant: str) -> None:
    with pytest.raises(TypeError, match=f"Loader has no argument {name}=") as raised:
        penstock.Loader(view, 4, **{name: 1})
    assert meant in str(raised.value)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda path: penstock.open(path, dtype="u2", end_of_document=0),
         r"open has no argument end_of_document=: use .*dataset\.windows\(end_of_document=…\)"),
        (lambda path: penstock.open(path, dtpye="u2"), "open has no argument dtpye=: use dtype="),
        (lambda path: penstock.open(path, dtype="u2", window=4), r"use dataset.windows\(window, lookahead=1\)"),
        (lambda path: penstock.open(path, dtype="u2").windows(block_size=4), "windows has no argument .*: use window="),
        (lambda path: penstock.open(path, dtype="u2").windows(4, lookahaed=1), "use lookahead="),
        (lambda path: penstock.open(path, dtype="u2").windows(4, shuffle=True), r"use it in penstock.Loader\(view, …"),
        (lambda path: penstock.open(path, dtype="u2").windows(4, qqq=1), "windows has no argument qqq=; it has window"),
        (lambda path: penstock.open(path, dtype="u2").documents(eos=0), "documents has no .*: use end_of_document="),
        (lambda path: penstock.open(path, dtype="u2").packed(4, fitt="best"), "packed has no .*: use fit="),
    ],
)  # fmt: skip
def test_open_and_views_say_which_argument_is_meant(view: Any, call: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call(view.dataset.path)


def test_what_is_nearly_a_state_says_so(view: Any) -> None:
    loader = penstock.Loader(view, 4)
    state = loader.state_dict()
    with pytest.raises(penstock.InvalidArgumentError, match="no 'version'; its 'loader' looks like one"):
        loader.load_state_dict({"model": {}, "loader": state})
    with pytest.raises(penstock.StateMismatchError, match="version 0, which is none") as raised:
        loader.load_state_dict({**state, "version": 0})
    assert "later" not in str(raised.value)
    with pytest.raises(penstock.StateMismatchError, match=r"version 2.*use a later one"):
        loader.load_state_dict({**state, "version": 2})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("inputs", "use batch.inputs, batch.labels"),
        ("labels", "use batch.inputs, batch.labels"),
        ("input_ids", "use batch.inputs, batch.labels"),
        ("attention_mask", r"use batch.attention_mask of view.padded\(\)"),
        ("valid", "use batch.valid"),
        ("tokens", "the fields are token"),
    ],
)
def test_a_name_that_is_no_field_says_what_to_use(view: Any, name: str, meant: str) -> None:
    batch = next(penstock.Loader(view, 4))
    with pytest.raises(KeyError, match=meant):
        batch[name]
    assert list(batch) == ["token"] and name not in batch  # a batch stays a mapping of fields


def test_other_batches_have_hints_of_their_own(tmp_path: Any, view: Any) -> None:
    with penstock.Writer(tmp_path / "cells", {"gene": "u4", "count": "u4"}) as writer:
        writer.append(gene=[1, 2], count=[1, 2])
    cells = penstock.open(tmp_path / "cells")
    for other in (cells.documents(), cells.cells()):
        for name in ("inputs", "input_ids", "attention_mask"):
            with pytest.raises(KeyError) as raised:
                other.read([0])[name]
            assert "use" not in str(raised.value) and "the fields are gene, count" in str(raised.value)
    batch = next(penstock.Loader(view.dataset.documents(end_of_document=7).padded(), 1))
    with pytest.raises(KeyError, match=r"use batch.attention_mask; the fields are token"):
        batch["attention_mask"]


def collection() -> penstock.CollectionLoader:
    return penstock.CollectionLoader(TOKENS, 8, epochs=1)


@pytest.mark.parametrize("kind", ["loader", "eval", "collection"])
def test_there_is_no_set_epoch_and_words_say_why(view: Any, kind: str) -> None:
    made = {"loader": penstock.Loader, "eval": penstock.eval_loader}
    loader: Any = collection() if kind == "collection" else made[kind](view, 4)
    for ask in (lambda: loader.set_epoch(1), lambda: loader.sampler.set_epoch(1)):
        with pytest.raises(AttributeError, match="the epoch is part of its position, and it shuffles each epoch anew"):
            ask()
    assert not hasattr(loader, "set_epoch")  # frameworks ask that
    with pytest.raises(AttributeError, match=f"'{type(loader).__name__}' object has no attribute 'no_such'"):
        _ = loader.no_such


@pytest.mark.parametrize("kind", ["loader", "collection"])
def test_a_second_for_over_a_loader_that_has_ended_warns_once(view: Any, kind: str) -> None:
    loader: Any = collection() if kind == "collection" else penstock.Loader(view, 8, epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(loader)) == len(loader)
    with pytest.warns(RuntimeWarning, match=r"run is over.*rewind\(\)") as warned:
        assert list(loader) == []
        assert list(loader) == []
    assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loader.rewind()
        assert len(list(loader)) == len(loader)
        for loops in (penstock.eval_loader(view, 8), penstock.Loader(view, 8, epochs=2, per_epoch=True)):
            assert len(list(loops)) == len(list(loops)) == len(loops)


def test_compressed_files_are_no_tokens(tmp_path: Path, view: Any) -> None:
    packed = gzip.compress(TOKENS.tobytes(), mtime=0)
    for name in ("train.bin.gz", "renamed.bin"):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(penstock.InvalidArgumentError, match="compressed by gzip, by its first bytes: unpack it"):
            penstock.open(tmp_path / name, dtype="u1")
        assert penstock.open(tmp_path / name, dtype="u1", format="raw").records == len(packed)
    with pytest.raises(penstock.InvalidArgumentError, match="by its first bytes"):
        penstock.open(tmp_path / "*.bin*", dtype="u1")


def test_text_is_no_tokens(tmp_path: Path) -> None:
    for name in ("docs.jsonl", "docs.csv", "docs.TXT"):
        (tmp_path / name).write_text('{"text": "some words"}\n')
        with pytest.raises(penstock.InvalidArgumentError, match=f"text, not tokens: .*penstock write .*{name} --token"):
            penstock.open(tmp_path / name)
        assert penstock.open(tmp_path / name, dtype="u1").records == 23


def test_bare_tokens_of_a_store_of_ones_own(tmp_path: Path, view: Any) -> None:
    (tmp_path / "train.bin").rename(tmp_path / "a.tok")
    store = Own(tmp_path)
    with pytest.raises(penstock.InvalidArgumentError, match=r'if a\.tok holds bare tokens, give format="raw"'):
        penstock.open("a.tok", store=store, dtype="u2")
    assert penstock.open("a.tok", store=store, dtype="u2", format="raw").records == 1000
    with pytest.raises(penstock.InvalidArgumentError, match="a list of paths: give them one by one"):
        penstock.open(["a.tok", "b.tok"], store=store, dtype="u2", format="raw")  # type: ignore[arg-type]


@pytest.mark.parametrize(("suffix", "program"), [("gz", "gzip"), ("zst", "Zstandard")])
def test_a_file_that_is_not_packed_as_it_is_called_is_to_be_renamed(tmp_path: Path, suffix: str, program: str) -> None:
    from penstock._from.text.compression import ByteInput
    from penstock._make.errors import FileError

    path = tmp_path / f"plain.{suffix}"
    path.write_bytes(b'{"text": "a"}\n')
    opened = ByteInput(path, path.name, suffix)
    wanted = f"plain.{suffix}: it is called .{suffix} and is not packed by {program}: rename it"
    with pytest.raises(FileError, match=re.escape(wanted)):
        opened.file.read(10)
    pack = gzip.compress if suffix == "gz" else pytest.importorskip("zstandard").compress
    path.write_bytes(pack(b"a" * 1000) + b"trailing bytes")
    with pytest.raises(FileError, match=f"damaged {program} data"):
        ByteInput(path, path.name, suffix).file.read()


def test_a_torch_that_cannot_be_imported_is_told_with_its_cause(tmp_path: Path, view: Any) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("raise OSError('libcudart.so.12: cannot open shared object file')")
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import penstock
try:
    penstock.Loader(penstock.open({str(tmp_path / "train.bin")!r}, dtype="u2").windows(10), 4)
except penstock.InvalidArgumentError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("torch is installed, but cannot be imported: libcudart.so.12: cannot open")
    assert "framework='numpy'" in done.stdout
