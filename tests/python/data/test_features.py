"""Features: names of what records count, in a small dataset inside the dataset."""

from __future__ import annotations

import pickle
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused

NAMES = ["CD4", "CD8A", "γδ", "GNLY"]
TABLE = {"names": NAMES, "length": [458, 235, 145, 90], "chromosome": ["12", "2", None, "2"]}


def write(path: Path, features: Any = TABLE, columns: Any = None, **options: Any) -> Path:
    fields = {"gene": "u2", "count": "u1"}
    with penstock.Writer(path, fields, "json", columns=columns, features=features, **options) as writer:
        for i in range(4):
            values = None if columns is None else {"plate": "p1"}
            writer.append({"cell": i}, columns=values, gene=[0, i], count=[1, 2])
    return path


def names_in(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


@pytest.mark.parametrize("columns", [None, {"plate": "category"}])
def test_features_are_read_back(tmp_path: Path, columns: Any) -> None:
    dataset = penstock.open(write(tmp_path / "d", columns=columns))
    features = dataset.features
    assert features is not None
    assert (len(features), features.names) == (4, NAMES)
    assert features.columns["length"][:].tolist() == [458, 235, 145, 90]
    chromosome = features.columns["chromosome"]
    assert chromosome.categories == ["12", "2"]
    assert chromosome[:].tolist() == [0, 1, -1, 1]
    assert list(dataset.columns) == list(columns or ())
    assert dataset.documents()[3].metadata == {"cell": 3}
    assert "4 features" in repr(features)


def test_a_dataset_without_features_says_none_and_keeps_version_and_fingerprint(tmp_path: Path) -> None:
    path, other = write(tmp_path / "d", features=None), write(tmp_path / "f")
    assert penstock.open(path).features is None
    assert '"version": 1' in (path / "dataset.json").read_text()
    assert '"version": 2' in (other / "dataset.json").read_text()
    assert penstock.open(path).fingerprint == penstock.open(other).fingerprint


def test_features_that_are_not_those_written_are_corruption(tmp_path: Path) -> None:
    path = write(tmp_path / "d", features=[f"gene{i}" for i in range(5_000)])
    data = path / "features" / "00000" / "metadata.bin"
    kept = data.read_bytes()
    other = write(tmp_path / "other", features=["a", "b", "c"])
    for change, words in (
        (lambda: data.write_bytes(kept[:-9] + b"X" + kept[-8:]), r"00000/metadata\.bin: bytes .* are not those"),
        (lambda: data.write_bytes(kept[:-9]), r"00000/metadata\.bin: .* the manifest says"),  # the last of some blocks
        (
            lambda: [(path / "features").rename(tmp_path / "gone"), (other / "features").rename(path / "features")],
            "above",
        ),
    ):
        change()
        with pytest.raises(penstock.CorruptionError, match=words):
            _ = penstock.open(path).features.names  # type: ignore[union-attr]


def test_overwrite_replaces_features_with_the_shards(tmp_path: Path) -> None:
    path = write(tmp_path / "d")
    write(path, features=["a", "b", "c"], overwrite=True)
    assert penstock.open(path).features.names == ["a", "b", "c"]  # type: ignore[union-attr]
    assert names_in(path) == ["00000.1", "dataset.json", "features.1"]
    write(path, features=None, overwrite=True)
    assert penstock.open(path).features is None
    assert names_in(path) == ["00000.2", "dataset.json"]
    (path / "features").mkdir()  # somebody else's: no dataset is in it
    (path / "features" / "mine").write_text("x")
    features = write(tmp_path / "other") / "features"
    features.rename(path / "features.3")  # of a writer that was killed: published, but no manifest names them
    assert any("features.3" in notice for notice in penstock.verify(path).notices)
    write(path, overwrite=True)
    assert penstock.open(path).features.names == NAMES  # type: ignore[union-attr]
    assert (path / "features" / "mine").read_text() == "x"
    assert names_in(path) == ["00000.3", "dataset.json", "features", "features.3"]


def test_combine_convert_and_annotate_keep_features(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one"), write(tmp_path / "two")
    penstock.combine([one, two], tmp_path / "both")
    penstock.convert(one, tmp_path / "ids", "ids")
    penstock.annotate(two, {"score": np.arange(4.0)})
    assert names_in(two) == ["00000.1", "dataset.json", "features.1"]
    for dataset in map(penstock.open, (tmp_path / "both", tmp_path / "ids", two)):
        assert dataset.features is not None and dataset.features.names == NAMES
        assert dataset.features.columns["length"][2] == 145
    assert penstock.open(one, tmp_path / "both").features.names == NAMES  # type: ignore[union-attr]


def test_datasets_of_other_features_are_not_put_together(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one"), write(tmp_path / "other", features=NAMES[::-1])
    for call in (lambda: penstock.combine([one, other], tmp_path / "both"), lambda: penstock.open(one, other)):
        refused("names of their features differ", call)


def test_commit_takes_the_features_of_all_shards(tmp_path: Path) -> None:
    path = tmp_path / "d"
    for shard in range(2):
        write(path, features=None, shard=shard)
    penstock.commit(path, features=TABLE)
    assert penstock.open(path).features.names == NAMES  # type: ignore[union-attr]
    refused(r"give them to commit\(\)", write, tmp_path / "e", shard=0)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["a", "b", "a"], 'the name "a" is there twice'),
        ([], "there are none"),
        (["a", ""], "feature 1 has no name"),
        ([1, 2], "is int, a string is wanted"),
        ("abc", "a list of names"),
        ({"length": [1]}, '"names"'),
        ({"names": ["a"], "length": [1, 2]}, "2 values for 1 name"),
        ({"names": ["a"], "what": [object()]}, "categories are strings"),
        ({"names": ["a"], "what": ["x" * 65_536]}, "features: column what: a category of 65536 bytes"),
        ({"names": ["a"], "w" * 256: [1]}, "names have 1 to 255 bytes"),
        (
            {"names": [f"{i}" for i in range(200)], "what": [f"{i}" + "x" * 65_000 for i in range(200)]},
            "features: column what: the names of all categories have",
        ),
    ],
)
def test_features_that_cannot_be_are_refused(tmp_path: Path, features: Any, message: str) -> None:
    refused(message, write, tmp_path / "d", features=features)
    assert not (tmp_path / "d").exists()


def test_features_of_another_dataset_are_taken_as_they_are(tmp_path: Path) -> None:
    one = write(tmp_path / "one", features={**TABLE, "chromosome": ["12", "X", None, "X"], "point": np.ones((4, 2))})
    two = write(tmp_path / "two", features=penstock.open(one).features)
    files = [{each.relative_to(path): each.read_bytes() for each in path.rglob("*.*")} for path in (one, two)]
    assert files[0] == files[1] and len(files[0]) > 5


def test_a_data_frame_is_features(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [1, 2], "kind": pandas.Categorical(["x", "y"], ["y", "x"])}, index=["g1", "g2"])
    features = penstock.open(write(tmp_path / "d", features=frame)).features
    assert features is not None and features.names == ["g1", "g2"]
    assert features.columns["kind"].categories == ["y", "x"]
    assert features.columns["n"][:].tolist() == [1, 2]


def test_features_and_columns_are_made_once_and_go_with_their_dataset(tmp_path: Path) -> None:
    dataset = penstock.open(write(tmp_path / "d", columns={"plate": "category"}))
    features = dataset.features
    assert features is not None and features is dataset.features
    assert features.names is features.names
    assert features.columns["chromosome"] is features.columns["chromosome"]
    assert dataset.columns["plate"] is dataset.columns["plate"]
    assert pickle.loads(pickle.dumps(dataset)).features.names == NAMES
    gone = weakref.ref(dataset)
    del dataset  # nothing that is kept with it keeps it
    assert gone() is None
    assert features.columns["length"][1] == 235


def test_a_list_that_a_caller_changes_changes_nothing_else(tmp_path: Path) -> None:
    dataset = penstock.open(write(tmp_path / "d", columns={"plate": "category"}))
    features = dataset.features
    assert features is not None

    def found(number: int) -> list[Any]:
        copy = penstock.open(write(tmp_path / f"as{number}", features=features)).features
        genes = dataset.cells("dense", genes=["GNLY"]).read([1, 2, 3])["x"].tolist()
        return [genes, dataset.columns.to_arrow().to_pylist(), copy.names, copy.columns["chromosome"].categories]

    before = found(0)
    features.names.sort(reverse=True)
    features.columns["chromosome"].categories.clear()
    dataset.columns["plate"].categories[:] = ["p9"]
    assert found(1) == before
    features.names.clear()
    assert found(2) == before


def test_names_are_read_in_bulk(tmp_path: Path) -> None:
    names = [f"ENSG{i:011d}" for i in range(20_000)]
    dataset = penstock.open(write(tmp_path / "d", features=names))
    view = penstock.open(tmp_path / "d" / "features").documents()
    assert dataset.features is not None and len(view) == len(names)

    def seconds(call: Any) -> float:
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin

    one = seconds(lambda: view.read(np.arange(len(view))))
    assert seconds(lambda: dataset.features.names) < one / 3  # as rows, without a Span for any
    assert seconds(lambda: [dataset.features.names[gene] for gene in range(3_000)]) < one / 3
    assert dataset.features.names == names
