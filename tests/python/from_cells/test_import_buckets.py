"""AnnData imported into a bucket: the bytes of a local import, going on after a kill, and nothing left here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import penstock
import pytest

pytest.importorskip("obstore")
anndata = pytest.importorskip("anndata")
pytest.importorskip("h5py")
pytest.importorskip("msgpack")

from _anndata_files import CELLS, as_kind, make, write  # noqa: E402
from _fault_servers import fault_proxy  # noqa: E402
from _places import SECRET, Place, plain, tree, without_names  # noqa: E402
from penstock import InvalidArgumentError, IoError, Storage  # noqa: E402
from penstock._data.anndata.limits import Limits  # noqa: E402
from penstock._from.cells import recipe  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*ImplicitModificationWarning.*")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that every test has several tasks, and several reads in each, by worker processes too.
    monkeypatch.setattr(recipe, "LIMITS", Limits(values=500, cells=70, task_values=3_000, stores=1))


def check(place: Place, local: Path) -> None:
    """Asserts that the bucket has the bytes of the local dataset, and nothing else."""
    found, expected = place.files(), tree(local)
    features = [name for name in found if name.startswith("features")]
    assert plain({name: data for name, data in found.items() if name not in features}) == {
        name: data for name, data in expected.items() if "/" in name and not name.startswith("features")
    }
    assert {name.partition("/")[2]: found[name] for name in features} == {
        name.partition("/")[2]: data for name, data in expected.items() if name.startswith("features/")
    }
    said, wanted = without_names(found["dataset.json"]), without_names(expected["dataset.json"])
    assert said["features"].pop("folder").startswith("features-") and wanted["features"].pop("folder") == "features"
    assert said == wanted
    assert set(found) - set(features) - {"dataset.json"} == {name for name in found if name[:5].isdigit()}
    assert penstock.verify(place.url, storage=place.storage)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_files_have_the_bytes_of_a_local_import(place: Place, tmp_path: Path, workers: int, kind: str) -> None:
    path, scratch = write(as_kind(make(), kind), tmp_path / "a.h5ad"), tmp_path / "scratch"
    told: list[tuple[int, int]] = []
    there = penstock.import_anndata(
        path,
        place.url,
        workers=workers,
        storage=place.storage,
        scratch=scratch,
        progress=lambda done, total: told.append((done, total)),
    )
    here = penstock.import_anndata(path, tmp_path / "local")
    check(place, tmp_path / "local")
    assert list(scratch.iterdir()) == []
    assert (there.path, there.cells, there.shards, there.records) == (place.url, CELLS, here.shards, here.records)
    assert there.shards == 3 and told[-1] == (CELLS, CELLS)
    one, other = penstock.open(place.url, storage=place.storage), penstock.open(tmp_path / "local")
    assert one.fingerprint == other.fingerprint
    assert list(one.features.names) == list(other.features.names)
    assert one.features.columns["length"][:].tolist() == other.features.columns["length"][:].tolist()


PROGRAM = """
import sys
from penstock._from.cells import recipe
from penstock._data.anndata.limits import Limits
from penstock._cli.main import main

if __name__ == "__main__":
    recipe.LIMITS = Limits(values=500, cells=70, task_values=3_000, stores=1)
    sys.exit(main(sys.argv[1:]))
"""


def command(tmp_path: Path, place: Place, address: str, *more: str) -> list[str]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    return [
        *(sys.executable, str(program), "import", str(tmp_path / "a.h5ad"), "--out", place.url, "--endpoint", address),
        *("--region", "us-east-1", "--scratch", str(tmp_path / "scratch"), "--json", *more),
    ]


def holding(name: str, held: threading.Event, for_ever: threading.Event) -> object:
    """Lets the shard.json of this shard not through."""

    def fault(method: str, path: str, number: int) -> str | None:
        if method == "PUT" and f"/{name}-" in path and path.endswith("shard.json"):
            held.set()
            for_ever.wait(100)
            return "reset"
        return None

    return fault


@pytest.mark.parametrize("workers", [1, 2])
def test_after_kill_an_import_goes_on_to_the_same_bytes(
    place: Place, s3_server: str, tmp_path: Path, workers: int
) -> None:
    write(make(), tmp_path / "a.h5ad")
    held, over = threading.Event(), threading.Event()
    more = ("--workers", str(workers))
    with fault_proxy(s3_server, holding("00001", held, over)) as proxy:
        process = subprocess.Popen(command(tmp_path, place, proxy.address, *more), stdout=subprocess.DEVNULL)
        assert held.wait(200)
        while not any(name.startswith("00000-") and name.endswith("shard.json") for name in place.files()):
            assert process.poll() is None
        process.kill()
        process.wait()
        over.set()
    killed = place.files()
    assert "dataset.json" not in killed and ".import-inputs" in killed
    again = subprocess.run(command(tmp_path, place, s3_server, *more), capture_output=True, text=True)
    assert again.returncode == 2 and "--resume" in again.stderr
    resumed = subprocess.run(command(tmp_path, place, s3_server, *more, "--resume"), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    assert json.loads(resumed.stdout)["kept_shards"] in (1, 2)  # of two workers the other one may have ended its own
    assert list((tmp_path / "scratch").iterdir()) == []
    penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "local")
    check(place, tmp_path / "local")


def test_an_input_that_changed_since_a_kill_is_refused(place: Place, tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="1 finished shard is kept: go on with --resume"):
        penstock.import_anndata(path, place.url, storage=place.storage, progress=stop, scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []
    os.utime(path)
    with pytest.raises(InvalidArgumentError, match="is another than when 1 finished shard in s3://"):
        penstock.import_anndata(path, place.url, storage=place.storage, resume=True)
    done = penstock.import_anndata(path, place.url, storage=place.storage, overwrite=True)
    assert done.kept_shards == 0
    assert penstock.verify(place.url, storage=place.storage)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_ends_an_import_soon(place: Place, s3_server: str, tmp_path: Path, workers: int) -> None:
    write(make(), tmp_path / "a.h5ad")
    held, over = threading.Event(), threading.Event()
    more = ("--workers", str(workers))
    with fault_proxy(s3_server, holding("00001", held, over)) as proxy:
        process = subprocess.Popen(
            command(tmp_path, place, proxy.address, *more), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert held.wait(200)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        over.set()
    assert process.returncode == 130 and "interrupted: nothing was published" in said
    assert list((tmp_path / "scratch").iterdir()) == []
    done = penstock.import_anndata(
        tmp_path / "a.h5ad",
        place.url,
        storage=place.storage,
        resume=True,
        workers=workers,
        scratch=tmp_path / "scratch",
    )
    assert done.shards == 3
    penstock.import_anndata(tmp_path / "a.h5ad", tmp_path / "local")
    check(place, tmp_path / "local")


def test_overwrite_replaces_a_dataset_and_the_second_is_refused(place: Place, tmp_path: Path) -> None:
    first, second = write(make(), tmp_path / "a.h5ad"), write(make(seed=1), tmp_path / "b.h5ad")
    penstock.import_anndata(first, place.url, storage=place.storage)
    with pytest.raises(InvalidArgumentError, match="holds a dataset already: replace it with --overwrite"):
        penstock.import_anndata(second, place.url, storage=place.storage)
    resumed = penstock.import_anndata(first, place.url, storage=place.storage, resume=True)
    assert resumed.kept_shards == resumed.shards

    def publish_another(done: int, total: int) -> None:
        if done == total:
            penstock.import_anndata(first, place.url, storage=place.storage, overwrite=True, x="X", obs=["score"])

    with pytest.raises(InvalidArgumentError, match="someone else has published"):
        penstock.import_anndata(second, place.url, storage=place.storage, overwrite=True, progress=publish_another)
    assert list(penstock.open(place.url, storage=place.storage).columns) == ["score"]
    assert penstock.verify(place.url, storage=place.storage)
    penstock.import_anndata(second, place.url, storage=place.storage, overwrite=True)
    penstock.import_anndata(second, tmp_path / "local")
    one, other = penstock.open(place.url, storage=place.storage), penstock.open(tmp_path / "local")
    assert (one.fingerprint, list(one.columns)) == (other.fingerprint, list(other.columns))
    manifest = json.loads(place.files()["dataset.json"])
    named = {*(each["name"] for each in manifest["shards"]), manifest["features"]["folder"]}
    assert {name.split("/")[0] for name in place.files() if "/" in name} == named


def test_a_failed_upload_is_one_error_that_says_how_to_go_on(place: Place, s3_server: str, tmp_path: Path) -> None:
    path = write(make(), tmp_path / "a.h5ad")

    def fault(method: str, path: str, number: int) -> str | None:
        return "503" if method == "PUT" and "/00001-" in path else None

    with fault_proxy(s3_server, fault) as proxy:
        storage = Storage(endpoint=proxy.address, region="us-east-1", deadline=0.5)
        with pytest.raises(IoError, match=r"503.*1 finished shard is kept: go on with --resume") as raised:
            penstock.import_anndata(path, place.url, storage=storage, scratch=tmp_path / "scratch")
    assert SECRET not in str(raised.value)
    done = penstock.import_anndata(path, place.url, storage=place.storage, resume=True)
    assert done.kept_shards == 1
    penstock.import_anndata(path, tmp_path / "local")
    check(place, tmp_path / "local")
