"""Typed columns of documents: written, read by themselves, changed, verified.

How they go with documents, windows and cells in batches, tests/model says (its dimension `values`).
"""

from __future__ import annotations

import json
import runpy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused

TYPES = {"plate": "category", "score": "f4", "point": ("f8", (2, 3)), "line": ["a", "b", "c"], "flag": "?"}
DOCUMENTS = 3_000


def make_values(documents: int = DOCUMENTS, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    plates = [None if number % 11 == 0 else f"plate {number}" for number in random.integers(0, 300, documents)]
    return {
        "plate": plates,
        "score": random.random(documents).astype("f4"),
        "point": random.random((documents, 2, 3)),
        "line": random.choice(["c", "a"], documents),
        "flag": random.random(documents) < 0.5,
    }


def make_lengths(documents: int = DOCUMENTS) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 9, documents)


def write(
    path: Path, values: dict[str, Any], lengths: np.ndarray, metadata: Any = "boundaries", **options: Any
) -> Path:
    token = np.arange(lengths.sum(), dtype="u2")
    with penstock.Writer(path, {"token": "u2"}, metadata, columns=TYPES, **options) as writer:
        encoded = None if metadata == "boundaries" else [b"%d" % number for number in range(len(lengths))]
        writer.append_batch(lengths, encoded=encoded, columns=values, token=token)
    return path


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path = write(tmp_path_factory.mktemp("columns") / "d", make_values(), make_lengths())
    return penstock.open(path)


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path = tmp_path_factory.mktemp("columns") / "shards"
    return penstock.open(write(path, make_values(), make_lengths(), "raw", shard_size=30_000))


def names_of(column: Any, codes: Any) -> list[str | None]:
    return [None if code < 0 else column.categories[code] for code in np.asarray(codes).tolist()]


def tree(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


@pytest.mark.parametrize("which", ["dataset", "shards"])
def test_values_come_back_and_any_index_gives_what_numpy_gives(which: str, request: pytest.FixtureRequest) -> None:
    dataset, values = request.getfixturevalue(which), make_values()
    assert list(dataset.columns) == list(TYPES) and penstock.verify(dataset.path).ok
    assert (len(dataset.shards) > 3) == (which == "shards")
    plate, seen = dataset.columns["plate"], dict.fromkeys(name for name in values["plate"] if name is not None)
    assert plate.dtype == np.int32 and plate.shape == (DOCUMENTS,)
    assert plate.categories == list(seen) and names_of(plate, plate[:]) == values["plate"]
    assert dataset.columns["line"].categories == ["a", "b", "c"]
    assert names_of(dataset.columns["line"], dataset.columns["line"][:]) == values["line"].tolist()
    random = np.random.default_rng(2)
    for name in ("score", "point", "flag"):
        column, expected = dataset.columns[name], values[name]
        assert column.dtype == expected.dtype and column.shape == expected.shape
        np.testing.assert_array_equal(np.asarray(column), expected)
        indices: list[Any] = [slice(None), slice(5, 40), slice(40, 5, -3), slice(None, None, -1), slice(7, 2_990, 500)]
        indices += [slice(4, 4), [], [3], [2_999, 0, 0, -1], random.integers(0, DOCUMENTS, 2_000), np.array([5], "u1")]
        indices += [random.integers(0, DOCUMENTS, 7), random.random(DOCUMENTS) < 0.001, np.zeros(DOCUMENTS, bool)]
        indices += [0, -1, 2_999, np.int64(17)]
        for index in indices:
            index = np.asarray(index, np.int64) if isinstance(index, list) else index
            np.testing.assert_array_equal(column[index], expected[index])


def test_wide_values_are_read_a_few_at_once_and_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = np.arange(8, dtype="u1")[:, None] + np.zeros(1 << 13, "u1")
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, columns={"wide": ("u1", (1 << 13,))}) as writer:
        writer.append_batch([1] * 8, t=range(8), columns={"wide": wide})
    column = penstock.open(tmp_path / "d").columns["wide"]
    rows: list[int] = []
    read_rows = penstock._native.read_rows

    def counted(source: Any, wanted: Any, *others: Any) -> Any:
        rows.append(len(wanted))
        return read_rows(source, wanted, *others)

    monkeypatch.setattr(penstock._native, "read_rows", counted)
    for most_bytes, expected in ((64 << 13, [64, 36]), (10, [1] * 100)):  # less than a value
        monkeypatch.setattr(penstock._data.stored_columns, "_MOST_BYTES", most_bytes)
        many = [0, -1, 3] * 33 + [5]
        np.testing.assert_array_equal(column[many], wide[many])
        assert rows == expected
        rows.clear()
        for some in (slice(None, None, 3), slice(None, None, -2)):
            np.testing.assert_array_equal(column[some], wide[some])
        assert sum(rows) == 3 + 4  # none of those between
        rows.clear()


def test_an_index_that_cannot_be_is_refused(dataset: penstock.Dataset) -> None:
    score = dataset.columns["score"]
    for wrong in (DOCUMENTS, -DOCUMENTS - 1, [0, DOCUMENTS]):
        with pytest.raises(IndexError, match="document"):
            score[wrong]
    refused(r"mask of shape \[3\]", lambda: score[np.ones(3, bool)])
    refused("float64", lambda: score[[0.5]])
    refused("there are plate, score", lambda: dataset.columns["plates"], error=KeyError)


def test_windows_of_the_ids_layout_have_one_value_a_span(tmp_path: Path) -> None:
    lengths, values = make_lengths(500) + 1, make_values(500)
    path = write(tmp_path / "d", values, lengths, "raw", layout="ids", shard_size=3_000)
    dataset = penstock.open(path)
    assert len(dataset.shards) > 1
    codes = dataset.columns["plate"][:]
    assert names_of(dataset.columns["plate"], codes) == values["plate"]
    firsts = np.concatenate([[0], np.cumsum([shard.entries for shard in dataset.shards])])
    for metadata in (True, "spans"):
        view = dataset.windows(16, columns=["plate", "point"], metadata=metadata)
        for batch in [*penstock.Loader(view, 8, epochs=1), view.read(np.arange(5)), view.read([])]:
            ids = batch.spans.ids
            entries = firsts[ids[:, 0]] + ids[:, 1]
            np.testing.assert_array_equal(batch.columns["plate"], codes[entries])
            np.testing.assert_array_equal(batch.columns["point"], values["point"][entries])
            assert len(batch.columns["plate"]) == len(batch.spans)
        np.testing.assert_array_equal(view[3].columns["plate"], view.read([3]).columns["plate"])


def test_a_document_has_its_values(dataset: penstock.Dataset) -> None:
    view, values = dataset.documents(columns=["score", "point"]), make_values()
    assert view[5].columns["score"] == values["score"][5] and view[5].columns["point"].shape == (2, 3)
    assert "columns=['score', 'point']" in repr(view)


def test_columns_lie_as_the_format_says(tmp_path: Path) -> None:
    columns = {"score": "f4", "plate": "category"}
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, columns=columns) as writer:
        writer.append_batch([1, 2, 0], token=[1, 2, 3], columns={"score": [0.5, 1.5, 2.5], "plate": ["x", None, "y"]})
    data = (tmp_path / "d/00000/columns.bin").read_bytes()
    assert data == np.array([0.5, 1.5, 2.5], "<f4").tobytes() + bytes(52) + bytes([0, 255, 1])
    said = json.loads((tmp_path / "d/dataset.json").read_text())
    assert said["version"] == 2 and said["columns"] == [["score", "<f4"], ["plate", "category"]]
    assert said["categories"] == {"plate": ["x", "y"]} and said["shards"][0]["values"]["tables"] == {"plate": 2}
    assert said["shards"][0]["files"]["columns.bin"] == 67


def test_without_columns_nothing_changes(tmp_path: Path) -> None:
    lengths = make_lengths()
    with penstock.Writer(tmp_path / "bare", {"token": "u2"}, "boundaries") as writer:
        writer.append_batch(lengths, token=np.arange(lengths.sum(), dtype="u2"))
    assert json.loads((tmp_path / "bare/dataset.json").read_text())["version"] == 1
    assert not list((tmp_path / "bare").rglob("columns*"))
    bare, other = penstock.open(tmp_path / "bare"), penstock.open(write(tmp_path / "d", make_values(), lengths))
    assert other.fingerprint == bare.fingerprint
    refused("penstock annotate", bare.documents, columns=["x"])


def test_shards_written_in_any_order_are_the_same_bytes(tmp_path: Path) -> None:
    for name, order in (("one", (2, 0, 1)), ("other", (0, 1, 2))):
        for shard in order:
            write(tmp_path / name, make_values(900, shard), make_lengths(900), shard=shard)
        penstock.commit(tmp_path / name, shards=3)
    assert tree(tmp_path / "one") == tree(tmp_path / "other")
    assert not [name for name in tree(tmp_path / "one") if "column-" in name]


def test_shards_number_their_own_names(tmp_path: Path) -> None:
    # A name of an earlier shard does not count in a later one, so the bytes are those of a writer of that shard alone.
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, columns={"c": "category"}, shard_size=1) as writer:
        for name in ("x", "y", "x"):
            writer.append(t=[0], columns={"c": name})
    said = json.loads((tmp_path / "d/dataset.json").read_text())
    assert said["categories"] == {"c": ["x", "y"]}
    assert [shard["values"]["tables"]["c"] for shard in said["shards"]] == [1, [1], 1]
    assert penstock.open(tmp_path / "d").columns["c"][:].tolist() == [0, 1, 0]


def test_codes_are_as_small_as_their_table(tmp_path: Path) -> None:
    for names, size in ((128, 1), (129, 2), (32_768, 2), (32_769, 4)):
        path, given = tmp_path / str(names), [f"n{i}" for i in range(names)]
        with penstock.Writer(path, {"t": "u1"}, columns={"c": "category"}) as writer:
            writer.append_batch(np.zeros(names, int), t=np.zeros(0, "u1"), columns={"c": given})
        assert (path / "00000/columns.bin").stat().st_size == names * size
        column = penstock.open(path).columns["c"]
        assert column[:].tolist() == list(range(names)) and column.categories == given
        assert penstock.verify(path).ok


@pytest.mark.parametrize(
    ("layout", "said"), [("compact", "494380c2eae6084125c5bded9749fc03"), ("ids", "082629f8b49664449dfd1e64a75c1d5a")]
)
def test_the_second_versions_bytes_verify_and_are_written_again(tmp_path: Path, layout: str, said: str) -> None:
    golden = Path(__file__).parents[2] / "golden/dataset-v2"
    report = penstock.verify(golden / layout)
    assert report.ok and report.fingerprint == said
    make = runpy.run_path(str(golden / "make.py"))
    make["write"](tmp_path / "d", layout)
    assert tree(tmp_path / "d") == tree(golden / layout)
    columns = penstock.open(golden / layout).columns
    expected = [make["values"](number) for number in range(5)]
    assert columns["score"][:].tolist() == [each["score"] for each in expected]
    assert names_of(columns["plate"], columns["plate"]) == [each["plate"] for each in expected]


def test_combine_and_open_together_number_anew(tmp_path: Path) -> None:
    for k in range(2):
        write(tmp_path / str(k), make_values(seed=k), make_lengths())
    both = [tmp_path / "0", tmp_path / "1"]
    penstock.combine(both, tmp_path / "out")
    expected = make_values(seed=0)["plate"] + make_values(seed=1)["plate"]
    for dataset in (penstock.open(*both), penstock.open(tmp_path / "out")):
        plate = dataset.columns["plate"]
        assert names_of(plate, plate[:]) == expected
        view = dataset.documents(columns=["plate"], metadata=False)
        assert names_of(plate, view.read(np.arange(len(view))).columns["plate"]) == expected
    assert (tmp_path / "out/00001/columns.bin").stat().st_nlink == 2  # nothing was encoded again


def test_conversion_both_ways_keeps_values_and_entries_of_the_ids_layout_have_columns(tmp_path: Path) -> None:
    lengths = make_lengths() + 1  # the ids layout has no empty documents
    write(tmp_path / "compact", make_values(), lengths, "raw")
    penstock.convert(tmp_path / "compact", tmp_path / "ids", "ids")
    penstock.convert(tmp_path / "ids", tmp_path / "again", "compact")
    assert tree(tmp_path / "again") == tree(tmp_path / "compact")
    columns, others = (penstock.open(tmp_path / name).columns for name in ("compact", "ids"))
    for name in TYPES:
        np.testing.assert_array_equal(others[name], columns[name])
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, "raw", columns={"c": "category"}, layout="ids") as writer:
        ids = [writer.entry(b"a", columns={"c": "x"}), writer.entry(b"b", columns={"c": "y"})]
        writer.append(t=[1, 2, 3], metadata_id=[ids[0], ids[1], ids[0]])
    batch = penstock.open(tmp_path / "d").windows(3, columns=["c"]).read([0])
    assert batch.columns["c"].tolist() == [0, 1, 0]


def test_annotate_adds_replaces_and_removes(tmp_path: Path) -> None:
    values = make_values()
    path = write(tmp_path / "d", values, make_lengths(), "raw", shard_size=20_000)
    before, files = penstock.open(path), tree(path)
    state = penstock.Loader(before.documents(), 10).state_dict()
    new = np.arange(DOCUMENTS, dtype="i8")
    names = [None if i % 7 == 0 else f"n{i % 5}" for i in range(DOCUMENTS)]
    told: list[tuple[int, int]] = []
    changes = {"new": new, "score": new.astype("f8"), "plate": None, "name": names}

    def stop(done: int, total: int) -> None:
        raise RuntimeError("stop")

    refused("stop", penstock.annotate, path, changes, stop, error=RuntimeError)
    assert tree(path) == files
    assert penstock.annotate(path, changes, lambda *done: told.append(done)) == before.fingerprint
    after = penstock.open(path)
    assert told == [(k + 1, len(after.shards)) for k in range(len(after.shards))] and len(told) > 1
    refused("is to be opened anew", lambda: before.documents()[0], error=penstock.NotFoundError)
    assert list(after.columns) == ["score", "point", "line", "flag", "new", "name"]
    assert after.columns["score"].dtype == np.float64 and after.columns["new"][:].tolist() == new.tolist()
    assert names_of(after.columns["name"], after.columns["name"]) == names
    np.testing.assert_array_equal(after.columns["point"], values["point"])
    assert names_of(after.columns["line"], after.columns["line"]) == values["line"].tolist()
    loader = penstock.Loader(after.documents(columns=["new"]), 10)
    loader.load_state_dict(state)
    batch = next(loader)
    assert batch.columns["new"].tolist() == batch.indices.tolist()
    penstock.annotate(path, dict.fromkeys(after.columns))
    assert json.loads((path / "dataset.json").read_text())["version"] == 1


def test_annotate_takes_what_pandas_gives_and_numbers_that_are_categories_as_their_text(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "d"
    with penstock.Writer(path, {"t": "u1"}, columns={"w": "category", "v": ["3", "1"]}) as writer:
        given = pandas.Categorical([3, 1, None])
        writer.append_batch([1] * 3, t=[1, 2, 3], columns={"w": given, "v": given})
    changes = {
        "n": pandas.Series([1, 2, 3]),
        "o": pandas.Series(pandas.Categorical(["b", None, "b"], categories=["a", "b"], ordered=True)),
        "x": pandas.Series(["x", "y", "x"]),
        "c": pandas.Categorical([3, 1, None]),
        "s": pandas.Series([2, 2, 10], dtype="category"),
        "f": pandas.Categorical(np.array([0.1, 2, 0.1], "f4")),
        "b": pandas.Categorical([True, False, True]),
    }
    penstock.annotate(path, changes)
    columns = penstock.open(path).columns
    assert columns["n"].dtype == np.int64 and columns["o"].categories == ["a", "b"]
    for name, names in (
        ("w", ["3", "1", None]),
        ("v", ["3", "1", None]),
        ("o", ["b", None, "b"]),
        ("x", ["x", "y", "x"]),
        ("c", ["3", "1", None]),
        ("s", ["2", "2", "10"]),
        ("f", [str(np.float32(0.1).item()), "2.0", str(np.float32(0.1).item())]),
        ("b", ["True", "False", "True"]),
    ):
        assert names_of(columns[name], columns[name]) == names
    for wrong, said in (
        (pandas.Categorical([1, "1", 1]), "twice"),
        (pandas.cut([1, 2, 3], 2), "categories are strings"),
        (pandas.Series([[1], [2], [3]]), "list: categories are strings"),
        (np.zeros(3, "c8"), "booleans, integers, floats"),
        ([1, "a", "b"], "string"),
        ([1, 2], "2 values, the dataset has 3 documents"),
    ):
        refused(said, penstock.annotate, path, {"x": wrong})


def test_columns_that_cannot_be_are_refused(tmp_path: Path, dataset: penstock.Dataset) -> None:
    for columns, said in (
        ({"a": "S3"}, "booleans, integers, floats"),
        ({"a": [("x", "u1")]}, "string"),
        ({"": "f4"}, "1 to 255 bytes"),
        (["a"], "mapping"),
        ({"a": ["x", "x"]}, "twice"),
        ({"a": "kategory"}, "kategory"),
    ):
        refused(said, penstock.Writer, tmp_path / "d", {"t": "u1"}, columns=columns)
    for wrong, said in (
        (["x"], "its columns are plate"),
        (["plate", "plate"], "named twice"),
        ("plate", "list of names"),
    ):
        refused(said, dataset.documents, columns=wrong)
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, columns={"position_ids": "f4"}) as writer:
        writer.append(t=[1, 2], columns={"position_ids": 0.5})
    view = penstock.open(tmp_path / "d").documents(columns=["position_ids"])
    refused("position_ids is a column of the dataset", penstock.Loader, view, 1, columns=["position_ids"])


def test_values_that_cannot_be_are_refused_and_lose_nothing(tmp_path: Path) -> None:
    columns = {"a": "i1", "c": "category", "d": ["x"]}
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, columns=columns) as writer:
        good = {"a": 1, "c": "y", "d": "x"}
        for wrong, said in (
            ({**good, "a": 300}, "300"),
            ({**good, "a": [1, 2]}, "shape"),
            ({**good, "c": 5}, "strings"),
            ({**good, "d": "z"}, "none of its 1 categories"),
            ({"a": 1}, "missing: c, d"),
            ({**good, "e": 1}, "unknown: e"),
            (None, "missing: a, c, d"),
        ):
            refused(said, writer.append, t=[1], columns=wrong)
        writer.append(t=[1], columns=good)
        with pytest.raises(penstock.InvalidArgumentError, match="2 values for 1 documents"):
            writer.append_batch([1], t=[1], columns={"a": [1], "c": ["x", "y"], "d": ["x"]})
    assert penstock.open(tmp_path / "d").columns["c"].categories == ["y"]
    with penstock.Writer(tmp_path / "plain", {"t": "u1"}, "boundaries") as writer:
        refused("this writer has none", writer.append, t=[1], columns={"a": 1})
        writer.append(t=[1])


def test_a_code_that_no_name_has_is_an_error_where_nothing_is_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "d", make_values(), make_lengths())
    file = path / "00000/columns.bin"
    clean = file.read_bytes()
    names = len(penstock.open(path).columns["plate"].categories or ())
    assert names > 128  # codes of two bytes
    random = np.random.default_rng(4)
    wrong = 0
    for at in random.integers(0, DOCUMENTS, 30).tolist():
        data = bytearray(clean)
        data[2 * at + 1] ^= 1 << int(random.integers(8))
        file.write_bytes(data)
        for in_a_batch in (False, True):
            dataset = penstock.open(path, checks="none")
            view = dataset.documents(columns=["plate"], metadata=False)
            try:
                code = view.read([at]).columns["plate"][0] if in_a_batch else dataset.columns["plate"][at]
                assert -1 <= code < names
            except penstock.CorruptionError as error:
                assert "column plate has the code" in str(error)
                wrong += 1
    assert wrong > 30


def test_a_file_that_is_damaged_exchanged_cut_or_gone_is_named(tmp_path: Path) -> None:
    for k in range(2):
        write(tmp_path / str(k), {**make_values(seed=0), "score": make_values(seed=k)["score"]}, make_lengths())
    path = tmp_path / "0"
    file = path / "00000/columns.bin"
    clean = file.read_bytes()
    other = (tmp_path / "1/00000/columns.bin").read_bytes()
    for data, name, alone in (
        (bytes([clean[0] ^ 0x40]) + clean[1:], "plate", True),
        (other, "score", False),
        (clean[:-1], "score", True),
    ):
        file.write_bytes(data)
        dataset = penstock.open(path, checks="index" if data is other else "all")
        with pytest.raises(penstock.CorruptionError, match=r"columns\.bin"):
            dataset.documents(columns=[name], metadata=False).read([0])
        if alone:
            with pytest.raises(penstock.CorruptionError, match=r"columns\.bin"):
                dataset.columns[name][:]
    file.unlink()
    refused(r"columns\.bin", lambda: penstock.open(path).columns["score"][3], error=penstock.NotFoundError)
    assert penstock.open(path).documents(metadata=False)[0]  # who wants no columns needs no file of them


def test_threads_share_a_writer_and_its_names(tmp_path: Path) -> None:
    columns = {"name": "category", "number": "i4"}

    def write_some(thread: int) -> None:
        for number in range(thread * 1_000, thread * 1_000 + 400):
            writer.append(token=[1], columns={"name": f"n{number}", "number": number})

    with penstock.Writer(tmp_path / "d", {"token": "u2"}, columns=columns, shard_size=5_000) as writer:
        threads = [threading.Thread(target=write_some, args=(thread,)) for thread in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    found = penstock.open(tmp_path / "d").columns
    assert names_of(found["name"], found["name"]) == [f"n{number}" for number in found["number"][:].tolist()]


def test_many_shards_with_many_names_fit_one_manifest(tmp_path: Path) -> None:
    # Each shard meets the names in an order of its own: as texts these would be 23 MB.
    random = np.random.default_rng(0)
    names = [f"condition number {number:05}" for number in range(2_000)]
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, columns={"c": "category"}, shard_size=8_000) as writer:
        orders = [random.permutation(2_000) for _ in range(60)]
        for order in orders:
            writer.append_batch(np.zeros(2_000, int), t=np.zeros(0, "u1"), columns={"c": [names[i] for i in order]})
    assert len(penstock.open(tmp_path / "d").shards) == 60
    column = penstock.open(tmp_path / "d").columns["c"]
    assert names_of(column, column) == [names[i] for order in orders for i in order]
    assert penstock.verify(tmp_path / "d").ok


def test_names_that_no_manifest_has_room_for_are_refused_at_once(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", {"t": "u1"}, columns={"c": "category"}, shard=0) as writer:
        for number in range(190):
            writer.append(t=[1], columns={"c": f"{number}" + "x" * 65_000})
        with pytest.raises(penstock.InvalidArgumentError, match="keep such texts as metadata"):
            writer.append_batch([0] * 9, t=[], columns={"c": [f"{number}" + "y" * 65_000 for number in range(9)]})
    penstock.commit(tmp_path / "d")
    assert len(penstock.open(tmp_path / "d").columns["c"]) == 190
