"""An error in a background read is raised at the batch that needed it, and the loader can be asked again."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, compact


def broken_at(loader: penstock.Loader, kind: type[Exception]) -> tuple[list[Any], Exception]:
    """The batches before the error, and the error."""
    given: list[Any] = []
    with pytest.raises(kind) as caught:
        for batch in loader:
            given.append(batch)
    return given, caught.value


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:500])


def make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def remove(path: Path) -> None:
    path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("prefetch", [1, 6])
@pytest.mark.parametrize(
    ("damage", "kind", "number"),
    [
        (truncate, penstock.CorruptionError, None),  # its size is checked when it is first opened: all is refused then
        (Path.unlink, penstock.NotFoundError, errno.ENOENT),
        (make_loop, penstock.IoError, errno.ELOOP),
        (make_folder, penstock.Error, None),
    ],
)
def test_a_file_that_is_no_longer_what_it_was_when_it_was_opened(tmp_path, damage, kind, number, prefetch):
    paths = [tmp_path / name for name in ("a.bin", "b.bin", "c.bin")]
    tokens = np.arange(900, dtype="u2")
    for path, part in zip(paths, np.split(tokens, 3), strict=True):
        part.tofile(path)
    view = penstock.open(*paths, dtype="u2").windows(10)
    whole = paths[1].read_bytes()
    with penstock.Loader(view, 5, order="sequential", epochs=1, framework="numpy", prefetch=prefetch) as loader:
        damage(paths[1])
        given, error = broken_at(loader, kind)
        assert [batch.position for batch in given] == [0, 5, 10, 15, 20, 25]
        assert isinstance(error, penstock.Error) and "b.bin" in str(error)
        if number is not None:
            assert isinstance(error, OSError) and (error.errno, Path(error.filename)) == (number, paths[1])
        assert loader.position == 30 == loader.state_dict()["position"]
        with pytest.raises(kind, match=r"b\.bin"):  # still broken
            next(loader)
        if paths[1].exists() or paths[1].is_symlink():
            remove(paths[1])
        paths[1].write_bytes(whole)
        rest = list(loader)
    np.testing.assert_array_equal(np.concatenate([b["token"].ravel() for b in given + rest]), tokens)


@pytest.mark.parametrize("name", ["stream.bin", "metadata.bin", "metadata.index", "metadata.directory"])
@pytest.mark.parametrize("mode", ["windows", "documents"])
def test_any_file_of_a_shard_that_was_truncated(tmp_path, name, mode):
    dataset, _ = compact(tmp_path, LENGTHS[2:])
    view = dataset.windows(6) if mode == "windows" else dataset.documents()
    if mode == "documents" and name == "metadata.directory":
        return  # documents do not need it
    path = next((tmp_path / "compact-1").glob(f"*/{name}"))
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    with penstock.Loader(view, 1, order="sequential", epochs=1, framework="numpy") as loader:
        given, error = broken_at(loader, penstock.CorruptionError)
        assert str(path) in str(error)
        assert 0 < len(given) < len(view)
        path.write_bytes(content)
        assert len(given) + len(list(loader)) == len(view)


def test_a_value_beyond_int64_raises_at_its_batch(tmp_path):
    values = np.arange(100, dtype="u8")
    values[57] = (1 << 63) + 5
    values.tofile(tmp_path / "big.bin")
    view = penstock.open(tmp_path / "big.bin", dtype="u8").windows(10)
    with penstock.Loader(view, 2, order="sequential", epochs=1, framework="torch") as loader:
        given, error = broken_at(loader, ValueError)
        assert len(given) == 2 and "9,223,372,036,854,775,813" in str(error) and "token" in str(error)
        loader.seek(6)
        assert len(list(loader)) == 2
    with penstock.Loader(view, 2, order="sequential", epochs=1, framework="numpy") as loader:
        assert np.concatenate([batch["token"].ravel() for batch in loader]).tolist() == values.tolist()


def test_an_entry_that_its_codec_cannot_decode_is_raised_when_it_is_asked_for(tmp_path):
    compact(tmp_path, [[5, 9]])
    path = next((tmp_path / "compact-0").glob("*/metadata.bin"))
    path.write_bytes(b"!" + path.read_bytes()[1:])
    dataset = penstock.open(tmp_path / "compact-0", checks="none")
    with penstock.Loader(dataset.windows(7), 2, order="sequential", epochs=1, framework="numpy") as loader:
        batch = next(loader)
        assert batch.spans[0].raw.startswith(b"!")
        with pytest.raises(penstock.CorruptionError, match=r"metadata\.bin: entry 0 of") as caught:
            batch.spans[0].metadata  # noqa: B018
        assert isinstance(caught.value.__cause__, ValueError)
        assert batch.spans[1].metadata["number"] == 1
