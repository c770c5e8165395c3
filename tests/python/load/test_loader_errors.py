"""An error in a background read is raised at the batch that needed it, and the loader can be asked again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _datasets import LENGTHS, compact, raw_tokens


def broken_at(loader: penstock.Loader, kind: type[Exception]) -> tuple[list[Any], Exception]:
    """The batches before the error, and the error."""
    given: list[Any] = []
    with pytest.raises(kind) as caught:
        for batch in loader:
            given.append(batch)
    return given, caught.value


@pytest.mark.parametrize("prefetch", [1, 6])
def test_a_file_truncated_after_opening(tmp_path, prefetch):
    """Its size is checked when it is first opened, so all of it is refused then, not only what it lacks."""
    paths = [tmp_path / name for name in ("a.bin", "b.bin", "c.bin")]
    tokens = np.arange(900, dtype="u2")
    for number, path in enumerate(paths):
        tokens[number * 300 : (number + 1) * 300].tofile(path)
    view = penstock.open(*paths, dtype="u2").windows(10)
    whole = paths[1].read_bytes()
    with penstock.Loader(view, 5, order="sequential", epochs=1, framework="numpy", prefetch=prefetch) as loader:
        paths[1].write_bytes(whole[:500])
        given, error = broken_at(loader, penstock.CorruptionError)
        assert [batch.position for batch in given] == [0, 5, 10, 15, 20, 25]
        assert isinstance(error, penstock.Error)
        assert "b.bin" in str(error)
        assert loader.position == 30 == loader.state_dict()["position"]
        with pytest.raises(penstock.CorruptionError, match=r"b\.bin"):  # still broken
            next(loader)
        paths[1].write_bytes(whole)
        rest = list(loader)
    np.testing.assert_array_equal(np.concatenate([b["token"].ravel() for b in given + rest]), tokens)


@pytest.mark.parametrize("prefetch", [1, 6])
def test_a_file_truncated_while_it_is_read(tmp_path, prefetch):
    """It was opened before, so what is left of it is still delivered."""
    dataset, tokens = raw_tokens(tmp_path / "a.bin", 900)
    whole = (tmp_path / "a.bin").read_bytes()
    view = dataset.windows(10)
    view[0]
    with penstock.Loader(view, 5, order="sequential", epochs=1, framework="numpy", prefetch=prefetch) as loader:
        (tmp_path / "a.bin").write_bytes(whole[:1100])  # records 0 to 549 are left
        given, error = broken_at(loader, penstock.CorruptionError)
        assert [batch.position for batch in given] == list(range(0, 55, 5))
        assert "a.bin" in str(error) and loader.position == 55
        (tmp_path / "a.bin").write_bytes(whole)
        given += list(loader)
    np.testing.assert_array_equal(np.concatenate([batch["token"].ravel() for batch in given]), tokens)


def test_a_file_removed_after_opening(tmp_path):
    paths = [tmp_path / name for name in ("a.bin", "b.bin")]
    for path in paths:
        np.arange(100, dtype="u2").tofile(path)
    view = penstock.open(*paths, dtype="u2").windows(10)
    paths[1].rename(tmp_path / "elsewhere")
    with penstock.Loader(view, 5, order="sequential", epochs=1, framework="numpy") as loader:
        given, error = broken_at(loader, FileNotFoundError)
        assert len(given) == 2
        assert isinstance(error, penstock.NotFoundError)
        assert isinstance(error, FileNotFoundError) and Path(error.filename) == paths[1]
        (tmp_path / "elsewhere").rename(paths[1])
        assert len(list(loader)) == 2


def test_what_the_system_refuses_is_an_os_error_with_errno_and_filename(tmp_path):
    view = raw_tokens(tmp_path / "a.bin", 100)[0].windows(10)
    (tmp_path / "a.bin").unlink()
    (tmp_path / "a.bin").symlink_to("a.bin")  # ELOOP
    with penstock.Loader(view, 5, framework="numpy") as loader, pytest.raises(OSError, match=r"a\.bin") as caught:
        next(loader)
    assert isinstance(caught.value, penstock.IoError)
    assert caught.value.errno == 40 and Path(caught.value.filename) == tmp_path / "a.bin"


def test_what_took_the_place_of_a_file(tmp_path):
    view = raw_tokens(tmp_path / "a.bin", 100)[0].windows(10)
    (tmp_path / "a.bin").unlink()
    (tmp_path / "a.bin").mkdir()
    with penstock.Loader(view, 5, framework="numpy") as loader, pytest.raises(penstock.Error, match=r"a\.bin"):
        next(loader)


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


def test_other_rows_of_the_failed_batch_are_not_lost(tmp_path):
    """Uniform order: the failed batch mixes good rows and bad ones; after the repair all of it comes."""
    dataset, tokens = raw_tokens(tmp_path / "a.bin", 1000)
    content = (tmp_path / "a.bin").read_bytes()
    with penstock.Loader(dataset.windows(10), 8, epochs=1, framework="numpy", threads=4) as loader:
        (tmp_path / "a.bin").write_bytes(content[:900])
        given, _ = broken_at(loader, penstock.CorruptionError)
        (tmp_path / "a.bin").write_bytes(content)
        batches = given + list(loader)
    for batch in batches:
        for index, row in zip(batch.indices[batch.valid], batch["token"], strict=False):
            np.testing.assert_array_equal(row, tokens[index * 10 : index * 10 + 10])
    assert sorted(i for batch in batches for i in batch.indices[batch.valid].tolist()) == list(range(100))


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
    content = bytearray(path.read_bytes())
    content[0:1] = b"!"
    path.write_bytes(content)
    dataset = penstock.open(tmp_path / "compact-0", checks="none")
    with penstock.Loader(dataset.windows(7), 2, order="sequential", epochs=1, framework="numpy") as loader:
        batch = next(loader)
        assert batch.spans[0].raw.startswith(b"!")
        with pytest.raises(penstock.CorruptionError, match=r"metadata\.bin: entry 0 of") as caught:
            batch.spans[0].metadata  # noqa: B018
        assert isinstance(caught.value.__cause__, ValueError)
        assert batch.spans[1].metadata["number"] == 1
