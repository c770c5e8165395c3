"""What every Location promises: one class of tests, for a folder of this machine and the same at an address."""

import errno
import io
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import penstock
import pytest
from _servers import nginx
from penstock._places.stores.location import Location, location_of

DATA = bytes(range(256)) * 8192  # larger than what is read at once


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("location") / "in"
    found.mkdir()
    (found / "a.bin").write_bytes(DATA)
    (found / "b.bin").write_bytes(DATA[:-1])
    return found


@pytest.fixture(scope="module", params=["here", "there"])
def at(request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Location]:
    if request.param == "here":
        yield location_of(folder)
        return
    with nginx(folder.parent, tmp_path_factory.mktemp("nginx")) as server:
        yield location_of(f"{server}/in?signature=hidden")


class TestLocation:
    def test_a_file_is_read_anywhere(self, at: Location) -> None:
        for each in (at.beside("a.bin"), pickle.loads(pickle.dumps(at.beside("a.bin").absolute()))):
            with each.open() as file:
                assert file.read(3) == DATA[:3]
                assert file.seek(-3, io.SEEK_END) == len(DATA) - 3
                assert file.read() == DATA[-3:]
                file.seek(7)
                assert file.read() == DATA[7:]
            assert each.size() == len(DATA)
            assert each.begins_with(DATA[:9]) and not each.begins_with(DATA[1:9])

    def test_names_beside_one_another(self, at: Location) -> None:
        one = at.beside("a.bin")
        assert one.bare.endswith("/in/a.bin") and one.expanded() == [one]
        assert one.folder("a.bin") == at and at.folder("a.bin") == at
        assert one.ending(".bin", ".idx") == at.beside("a.idx")
        assert not one.is_missing() and at.may_be_folder()

    def test_names_have_no_secrets(self, at: Location) -> None:
        assert at.beside("a.bin").name.endswith("/in/a.bin")
        with pytest.raises(penstock.NotFoundError, match="none") as raised:
            at.beside("none").open()
        assert "hidden" not in str(raised.value)
        assert not at.beside("none").begins_with(b"")

    def test_samples_tell_files_apart(self, at: Location) -> None:
        one, other = (at.beside(name).sample() for name in ("a.bin", "b.bin"))
        assert one != other and one == at.beside("a.bin").sample()

    def test_only_a_path_of_this_machine_is_the_same_as_one(self, at: Location, folder: Path) -> None:
        assert at.is_same(os.path.relpath(folder)) == bool(at.on_disk())
        assert not at.beside("a.bin").is_same(str(folder))


@pytest.mark.skipif(not os.access("/proc/self/mem", os.R_OK), reason="needs a file whose reading fails")
def test_a_file_that_cannot_be_read_is_named() -> None:
    at = location_of("/proc/self/mem")  # nothing is mapped at 0
    for read in (lambda file: file.read(3), lambda file: file.read()):
        with (
            at.open() as file,
            pytest.raises(penstock.IoError, match=r"^/proc/self/mem: Input/output error$") as raised,
        ):
            read(file)
        assert (raised.value.errno, raised.value.filename) == (errno.EIO, "/proc/self/mem")
    with pytest.raises(penstock.IoError, match="/proc/self/mem"):
        at.begins_with(b"x")  # which is not known
