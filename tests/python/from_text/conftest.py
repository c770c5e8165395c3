"""What tests of text need: the packages, and inputs with parts that cannot be used."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if all(map(find_spec, ("tokenizers", "zstandard", "pyarrow"))) else ["test_*.py"]


@pytest.fixture(scope="session")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import _dirty

    return _dirty.make(tmp_path_factory.mktemp("dirty") / "in")


@pytest.fixture(scope="session")
def expected(dirty: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one worker makes of them."""
    from _dirty import entries, write

    out = tmp_path_factory.mktemp("expected") / "out"
    said = write(dirty, out)
    assert (said["skipped"], said["skipped_list"]) == (len(entries(out / "skipped.jsonl")), f"{out}/skipped.jsonl")
    return out


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text of _text_runs."""
    from _text_runs import put

    return put(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="session")
def made(text: Path, tokenizer_file: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What a run of it gives that nothing disturbs, by engine."""
    pytest.importorskip("gigatoken")
    from _text_runs import ENGINES, write

    out = tmp_path_factory.mktemp("made")
    for engine in ENGINES:
        write(text, out / engine, tokenizer_file, tokenizer_engine=engine)
    return {engine: out / engine for engine in ENGINES}
