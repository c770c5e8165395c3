from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock._data import dtype as _dtype

DOCUMENTS = [(list(range(5 * i)), {"number": i}) for i in range(1, 20)]


def write(path: Path, documents: Any = DOCUMENTS, **options: Any) -> dict[str, bytes]:
    with penstock.Writer(path, {"token": "u2"}, "json", **options) as writer:
        for token, metadata in documents:
            writer.append(token=token, metadata=metadata)
    return tree(path)


def tree(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}


def fingerprint(path: Path) -> str:
    report = penstock.verify(path)
    assert report.ok, report.problems
    return report.fingerprint


# ---- what is written


def test_stream_is_bare_little_endian_records(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path, {"a": "u2", "b": "u4"}) as writer:
        writer.append(a=[1, 2], b=[3, 4])
    assert (tmp_path / "00000/stream.bin").read_bytes() == bytes.fromhex("0100030000000200 04000000")


def test_append_batch_writes_the_same_bytes(tmp_path: Path) -> None:
    one = write(tmp_path / "one", shard_size=400)
    with penstock.Writer(tmp_path / "two", {"token": "u2"}, "json", shard_size=400) as writer:
        token = np.concatenate([np.array(each, "u4") for each, _ in DOCUMENTS])
        writer.append_batch([len(each) for each, _ in DOCUMENTS], token=token, metadata=[each for _, each in DOCUMENTS])
    assert tree(tmp_path / "two") == one
    assert "00002/stream.bin" in one


def write_shard(path: Path, shard: int) -> None:
    with penstock.Writer(path, {"token": "u2"}, "json", shard=shard, task={"shard": shard}) as writer:
        for token, metadata in DOCUMENTS[shard::3]:
            writer.append(token=token, metadata=metadata)


# ---- layouts


def test_conversion_both_ways_keeps_content_and_fingerprint(tmp_path: Path) -> None:
    write(tmp_path / "compact", shard_size=300)
    said = fingerprint(tmp_path / "compact")
    assert penstock.convert(tmp_path / "compact", tmp_path / "ids", "ids") == said == fingerprint(tmp_path / "ids")
    assert penstock.convert(tmp_path / "ids", tmp_path / "again", "compact") == said
    assert tree(tmp_path / "again") == tree(tmp_path / "compact")
    write(tmp_path / "empty", [([1], {}), ([], {}), ([2], {})])
    with pytest.raises(ValueError, match="span 1 has no records"):
        penstock.convert(tmp_path / "empty", tmp_path / "x", "ids")
    assert not (tmp_path / "x").exists()


LENGTHS = (3, 0, 5_000, 0, 0, 1, 9_000)


def write_boundaries(path: Path, **options: Any) -> np.ndarray:
    token = np.random.default_rng(0).integers(0, 60_000, sum(LENGTHS)).astype("u2")
    with penstock.Writer(path, {"token": "u2"}, "boundaries", shard_size=8_000, **options) as writer:
        for part in np.split(token, np.cumsum(LENGTHS)[:-1]):
            writer.append(token=part)
    return token


def test_boundaries_are_converted_and_combined_and_batches_write_the_same(tmp_path: Path) -> None:
    token = write_boundaries(tmp_path / "d")
    with penstock.Writer(tmp_path / "batch", {"token": "u2"}, "boundaries", shard_size=8_000) as writer:
        writer.append_batch(LENGTHS[:4], token=token[: sum(LENGTHS[:4])])
        writer.append_batch(LENGTHS[4:], token=token[sum(LENGTHS[:4]) :], metadata=[None] * 3)
    assert tree(tmp_path / "batch") == tree(tmp_path / "d")
    for empty in tmp_path.glob("batch/*/metadata.bin"):
        assert empty.read_bytes() == b""
        empty.unlink()  # which no reader opens
    documents = penstock.open(tmp_path / "batch").documents()
    assert [each["token"].tolist() for each in documents] == [
        part.tolist() for part in np.split(token, np.cumsum(LENGTHS)[:-1])
    ]
    assert [(each.metadata, each.spans[0].raw) for each in documents] == [(None, b"")] * len(LENGTHS)
    penstock.combine([tmp_path / "d", tmp_path / "d"], tmp_path / "both")
    assert penstock.open(tmp_path / "both").spans == 2 * len(LENGTHS) and fingerprint(tmp_path / "both")
    with penstock.Writer(tmp_path / "full", {"token": "u2"}, "boundaries") as writer:
        writer.append(token=token[:5], metadata=None)
        for given, words in (
            ({"metadata": {"url": "x"}}, '"boundaries": it keeps where documents begin and end'),
            ({"lengths": [1], "encoded": [b"x"]}, "entries of 1 bytes for the codec"),
        ):
            with pytest.raises(ValueError, match=words):
                (writer.append_batch if "lengths" in given else writer.append)(token=[1], **given)
        writer.append(token=token[5:9])
    said = fingerprint(tmp_path / "full")
    assert penstock.convert(tmp_path / "full", tmp_path / "ids", "ids") == said == fingerprint(tmp_path / "ids")
    assert [span.metadata for span in penstock.open(tmp_path / "ids").windows(9)[0].spans] == [None, None]
    penstock.convert(tmp_path / "ids", tmp_path / "again", "compact")
    assert tree(tmp_path / "again") == tree(tmp_path / "full")


def test_documents_are_kept_unless_a_token_stream_is_wished_for(tmp_path: Path) -> None:
    documents = [[1, 2], [], [3], [4, 5, 6]]
    with penstock.Writer(tmp_path / "d", {"token": "u2"}) as writer:
        for each in documents[:2]:
            writer.append(token=each)
        writer.append_batch([1, 3], token=[3, 4, 5, 6])
    dataset = penstock.open(tmp_path / "d")
    assert dataset.codec == "boundaries" and [each["token"].tolist() for each in dataset.documents()] == documents
    with penstock.Writer(tmp_path / "stream", {"token": "u2"}, metadata=None) as writer:
        writer.append(token=[1, 2])
        with pytest.raises(penstock.InvalidArgumentError, match="lengths of documents, which a token stream"):
            writer.append_batch([1, 3], token=[3, 4, 5, 6])
        writer.append_batch(token=[3, 4, 5, 6])
    stream = penstock.open(tmp_path / "stream")
    assert (stream.mode, stream.records, stream.spans) == ("tokens", 6, 0)
    with pytest.raises(penstock.InvalidArgumentError, match="columns are values of documents"):
        penstock.Writer(tmp_path / "e", {"token": "u2"}, metadata=None, columns={"n": "u4"})
    assert not (tmp_path / "e").exists()
    with penstock.Writer(tmp_path / "f", {"token": "u2"}) as writer:
        with pytest.raises(penstock.InvalidArgumentError, match=r"give the writer metadata=.json"):
            writer.append(token=[1], metadata={"url": "x"})
        writer.append(token=[1])


def test_ids_repeat_and_compact_repeats_their_bytes(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "ids", {"token": "u1"}, "raw", layout="ids") as writer:
        a, b, _unused = writer.entry(b"aa"), writer.entry(b"b"), writer.entry(b"never")
        writer.append(token=[1, 2, 3, 4, 5], metadata_id=[a, a, b, a, a])
        writer.append(token=[6], metadata_id=a)
        with pytest.raises(ValueError, match=r"document 0 of this append has no records.*compact"):
            writer.append(token=[], metadata=b"lost")
        with pytest.raises(ValueError, match="document 1 of this append"):
            writer.append_batch([1, 0], encoded=[b"a", b"b"], token=[1])
    penstock.convert(tmp_path / "ids", tmp_path / "compact", "compact")
    files = tree(tmp_path / "compact")
    assert files["00000/metadata.bin"] == b"aabaa"
    index = np.frombuffer(files["00000/metadata.index"], "<u8").reshape(-1, 2)
    assert index.tolist() == [[0, 0], [2, 2], [3, 3], [6, 5]]
    assert fingerprint(tmp_path / "ids") == fingerprint(tmp_path / "compact")
    with penstock.Writer(tmp_path / "d", {"token": "u1"}, "raw", layout="ids", shard_size=4) as writer:
        first = writer.entry(b"a")
        writer.append(token=[1, 2, 3, 4], metadata_id=first)  # ends the shard
        second = writer.entry(b"b")
        for given, words in (
            (first, r"metadata_id 0 .* of a finished shard"),
            (7, "metadata_id 7"),
            ([second, second], "2 values of metadata_id for 1 records"),
        ):
            with pytest.raises(ValueError, match=words):
                writer.append(token=[5], metadata_id=given)
        writer.append(token=[5], metadata_id=second)
    assert fingerprint(tmp_path / "d")


PAIR = np.dtype([("x", "f8"), ("y", "f4")])


@pytest.mark.parametrize(
    ("dtype", "values", "shown"),
    [
        ("f8", [2**53 + 1], "9,007,199,254,740,993"),
        ("f8", np.array([1, 2**53 + 1]), "9,007,199,254,740,993 at record 1"),
        ("f8", np.array([2**64 - 1], "u8"), "18,446,744,073,709,551,615"),
        ("f8", [0.5, 2**53 + 1], "9,007,199,254,740,993 at record 1"),
        ("f8", -(2**53) - 1, "-9,007,199,254,740,993"),
        ("f8", [np.int64(2**53 + 1), 0.5], "9,007,199,254,740,993 at record 0"),
        ("f4", [0.5, 2**24 + 1], "16,777,217 at record 1"),
        ("f4", np.array([2**24 + 1], "i4"), "16,777,217"),
        ("f2", [0.5, 2049], "2,049 at record 1"),
        ("c8", [2**24 + 1], "16,777,217"),
        (PAIR, [(2**53 + 1, 0)], "9,007,199,254,740,993"),
        (PAIR, [(0, 0), (1, 2**24 + 1)], "16,777,217"),
    ],
)
def test_an_integer_that_a_float_field_would_round_is_refused(
    tmp_path: Path, dtype: Any, values: Any, shown: str
) -> None:
    writer = penstock.Writer(tmp_path / "d", {"x": dtype}, None)
    field = f"x {shown}.* does not fit {dtype}" if isinstance(dtype, str) else rf"x\.[xy] {shown}"
    with pytest.raises(ValueError, match=field):
        writer.append(x=values)
    writer.abort()


def test_integers_that_a_float_field_holds_are_taken(tmp_path: Path) -> None:
    values = [2**53, 2**60, -(2**63), 0.5, 7, float("nan"), float("inf")]
    with penstock.Writer(tmp_path / "d", {"x": "f8"}, None) as writer:
        writer.append(x=values)
        writer.append(x=np.array([2**62, -(2**53)]))
        writer.append(x=2**62)
    read = penstock.open(tmp_path / "d").windows(10)[0]["x"]
    assert np.array_equal(read, [*map(float, values), 2.0**62, -(2.0**53), 2.0**62], equal_nan=True)
    with penstock.Writer(tmp_path / "pairs", {"x": PAIR}, None) as writer:
        writer.append(x=[(2**53, 2**24), (0.5, 1)])


# ---- refused, and nothing lost


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"token": [0] * 17 + [128256]}, r"token 128,256 at record 17 of this append does not fit u2 \(max 65,535\)"),
        ({"token": [-1]}, r"token -1 .* \(min 0\)"),
        ({"token": [2**70]}, "does not fit u2"),
        ({"token": [1.5]}, "float64, expected u2"),
        ({"token": [[1, 2]]}, "shape"),
        ({"token": ["a"]}, "expected u2"),
        ({"tokens": [1]}, "missing: token; unknown: tokens"),
        ({"token": [1], "metadata": {1, 2}}, 'document 1 cannot be encoded by the codec "json"'),
        ({"token": [1], "metadata": float("nan")}, "cannot be encoded"),
        ({"token": [1], "metadata_id": 0, "metadata": penstock}, "give one of them"),
    ],
)
def test_bad_append_is_refused_and_loses_nothing(tmp_path: Path, arguments: dict[str, Any], message: str) -> None:
    good = write(tmp_path / "good", [([1], 1), ([2], 2)])
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, "json") as writer:
        writer.append(token=[1], metadata=1)
        with pytest.raises(ValueError, match=message):
            writer.append(**{"metadata": None, **arguments})
        with pytest.raises(ValueError, match="no metadata"):
            writer.append(token=[1])
        writer.append(token=[2], metadata=2)
    assert tree(tmp_path / "d") == good


def test_fields_and_numbers_of_shards_that_cannot_be_are_refused(tmp_path: Path) -> None:
    known = r"no type that NumPy knows .*\"u2\" and \"f4\" are"
    for fields in ({"token": "O"}, {"token": "U4"}, {"token": "M8[s]"}, {"token": "g"}, {"": "u4"}, {}, "u4"):
        with pytest.raises(penstock.InvalidArgumentError):
            penstock.Writer(tmp_path / "d", fields)  # type: ignore[arg-type]
    for words, fields, options in (
        *((known, fields, {}) for fields in ({"token": "u17"}, "u17", {"token": 3}, {"token": "u4,,"})),
        *((r"called|contains", {name: "u4"}, {}) for name in ("indices", "labels", "metadata_id", "a.b")),
        (r"shard 1,000,000,000,000: .* at most 12 digits", {"token": "u2"}, {"shard": 10**12}),
        ("neither fields nor metadata: there is nothing", None, {"metadata": "boundaries"}),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Writer(tmp_path / "d", fields, **options)  # type: ignore[arg-type]
    assert not (tmp_path / "d").exists()
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, shard=10**12 - 1) as writer:
        writer.append(token=[1])
    assert [each.number for each in penstock.finished_shards(tmp_path / "d")] == [10**12 - 1]


def test_exception_publishes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), penstock.Writer(tmp_path / "d", {"token": "u2"}, shard_size=2) as writer:
        writer.append(token=[1, 2, 3])
        raise RuntimeError
    assert not (tmp_path / "d").exists()
    with pytest.raises(ValueError, match="closed"):
        writer.append(token=[1])


def test_overwriting_needs_a_word_and_removes_all_generations(tmp_path: Path) -> None:
    path = tmp_path / "d"
    before = write(path)
    with pytest.raises(ValueError, match=r"published dataset.*overwrite"):
        write(path)
    assert tree(path) == before
    write(tmp_path / "new", DOCUMENTS[:1])
    write_shard(tmp_path / "lost", 0)
    shutil.copytree(tmp_path / "lost/00000", tmp_path / "lost/00000.1")  # it lost its manifest while it was replaced
    for replaced in (path, tmp_path / "lost"):
        write(replaced, DOCUMENTS[:1], overwrite=True)
        assert sorted(each.name for each in replaced.iterdir()) == ["00000.1", "dataset.json"]
        assert tree(replaced / "00000.1") == tree(tmp_path / "new" / "00000")
        assert fingerprint(replaced) == fingerprint(tmp_path / "new")


def test_what_is_to_be_replaced_stays_until_the_new_one_is_there(tmp_path: Path) -> None:
    path = tmp_path / "d"
    before = write(path)
    view, unread = penstock.open(path).windows(3), penstock.open(path).windows(3)
    for number in range(2):
        with penstock.Writer(path, {"token": "u2"}, "json", shard=number, overwrite=True) as writer:
            writer.append(token=[number], metadata=None)
    assert {name: data for name, data in tree(path).items() if ".1/" not in name} == before
    assert view[1]["token"].tolist() == [3, 4, 0]
    assert len(penstock.finished_shards(path)) == 1
    assert [each.number for each in penstock.finished_shards(path, overwrite=True)] == [0, 1]
    with pytest.raises(ValueError, match="published dataset"):
        penstock.commit(path)
    penstock.remove_shards(path, [1], overwrite=True)
    with pytest.raises(RuntimeError), penstock.Writer(path, {"token": "u2"}, overwrite=True) as writer:
        writer.append(token=[7])
        raise RuntimeError  # removes what it wrote, and what was not published, and nothing else
    assert tree(path) == before
    with penstock.Writer(path, {"token": "u2"}, "json", shard=0, overwrite=True) as writer:
        writer.append(token=[9], metadata=None)
    penstock.commit(path, overwrite=True)
    assert penstock.open(path).windows(1)[0]["token"].tolist() == [9] and fingerprint(path)
    assert sorted(each.name for each in path.iterdir()) == ["00000.1", "dataset.json"]
    # A reader of the old one that has not opened its files is told that they are gone: never are the new one's read.
    with pytest.raises(FileNotFoundError, match=r"00000/stream\.bin"):
        unread[0]


def test_unfinished_folder_names_its_features_and_notes(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, features=["a", "b"]) as writer:
        writer.append(token=[1])
    (tmp_path / "d/dataset.json").rename(tmp_path / "d/.import-inputs")
    named = r"1 finished shard, 0 unfinished, the folder features, the note \.import-inputs: "
    with pytest.raises(penstock.NotFoundError, match=named):
        penstock.verify(tmp_path / "d")


def test_unfinished_folder_says_what_it_holds(tmp_path: Path) -> None:
    write_shard(tmp_path / "d", 0)
    write_shard(tmp_path / "d", 2)
    (tmp_path / "d/.partial-00001-1-0").mkdir()
    with pytest.raises(penstock.NotFoundError, match=r"2 finished shards, 1 unfinished.*--resume"):
        penstock.verify(tmp_path / "d")
    with pytest.raises(ValueError, match=r"2 finished shards.*overwrite"):
        write(tmp_path / "d")
    with pytest.raises(ValueError, match="shard 00002 is finished already"):
        write_shard(tmp_path / "d", 2)
    with pytest.raises(ValueError, match="shard 00001 is missing"):
        penstock.commit(tmp_path / "d")
    assert (tmp_path / "d/.partial-00001-1-0").is_dir(), "of whom it is cannot be told"
    with pytest.raises(penstock.NotFoundError, match="not a dataset"):
        penstock.verify(tmp_path)


def test_commit_refuses_shards_that_differ_or_are_too_few(tmp_path: Path) -> None:
    write_shard(tmp_path / "d", 0)
    with pytest.raises(ValueError, match="finished shards: 1, expected: 2"):
        penstock.commit(tmp_path / "d", shards=2)
    with penstock.Writer(tmp_path / "d", {"token": "u4"}, "json", shard=1) as writer:
        writer.append(token=[1], metadata={})
    with pytest.raises(ValueError, match="00000 and 00001 differ: fields"):
        penstock.commit(tmp_path / "d")
    (tmp_path / "d/00000/stream.bin").write_bytes(b"")
    with pytest.raises(penstock.CorruptionError, match=r"stream.bin: 0 bytes"):
        penstock.commit(tmp_path / "d")


def test_fork_of_a_writer_refuses_and_removes_nothing(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "d", {"token": "u2"}) as writer:
        writer.append(token=[1])
        child = os.fork()
        if child == 0:
            try:
                writer.append(token=[2])
            except ValueError:
                writer.abort()
                os._exit(5)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert fingerprint(tmp_path / "d")
    assert (tmp_path / "d/00000/stream.bin").read_bytes() == b"\x01\x00"


# ---- any dtype

scalars = st.sampled_from(["b1", "u1", "i2", ">u4", "i8", "u8", "f2", "f4", "f8", "c8", "S5", "V3"])
shapes = st.sampled_from([(), (2,), (2, 3)])


def structured(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    fields = st.lists(st.tuples(inner, shapes), min_size=1, max_size=3)
    return fields.map(lambda each: [(f"f{i}", kind, shape) for i, (kind, shape) in enumerate(each)])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=structured(st.one_of(scalars, structured(scalars))), count=st.integers(0, 9), seed=st.integers(0, 99))
def test_any_dtype_round_trips(tmp_path: Path, fields: list[Any], count: int, seed: int) -> None:
    dtype = np.dtype(fields, align=True)
    packed = _dtype.packed(dtype)
    assert _dtype.from_descr(_dtype.descr(packed)) == packed
    raw = np.random.default_rng(seed).integers(0, 2, count * packed.itemsize).astype(np.uint8)
    values = raw.view(packed) if count else np.empty(0, packed)
    path = tmp_path / "d"
    shutil.rmtree(path, ignore_errors=True)
    with penstock.Writer(path, dtype) as writer:
        writer.append(records=values.astype(dtype))
        writer.append(**{name: values[name] for name in values.dtype.names or ()})
    assert (path / "00000/stream.bin").read_bytes() == values.tobytes() * 2
    fingerprint(path)


def test_a_report_says_what_it_found_and_goes_on_after_the_first_problem(tmp_path: Path) -> None:
    """Each kind of damage: tests/native/writer/verify."""
    write(tmp_path / "d", shard_size=400)
    told: list[tuple[int, int]] = []
    report = penstock.verify(tmp_path / "d", lambda done, total: told.append((done, total)))
    size = f"{report.bytes:,}"
    assert repr(report) == f"Report(ok: {report.shards} shards, 950 records, 19 entries, {size} bytes read)" and told
    stream = tmp_path / "d/00000/stream.bin"
    stream.write_bytes(bytes(stream.stat().st_size))
    (tmp_path / "d/00001/stream.bin").unlink()
    report = penstock.verify(tmp_path / "d")
    assert repr(report).startswith(f"Report({len(report.problems)} problems, the first of them {report.problems[0]}: ")
    for shard in ("00000", "00001"):
        assert any(f"{shard}/stream.bin" in str(each) for each in report.problems)

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.verify(tmp_path / "d", interrupt)


# ---- bytes of the first version

GOLDEN = Path(__file__).parents[2] / "golden/dataset-v1"


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("compact", "7acd40253a5859e181f1eb1e735995c1"),
        ("ids", "7acd40253a5859e181f1eb1e735995c1"),
        ("boundaries", "4648e2226776ee7010d7b6d5e418ae48"),
    ],
)
def test_the_first_versions_bytes_verify_and_are_written_again(tmp_path: Path, layout: str, said: str) -> None:
    assert fingerprint(GOLDEN / layout) == said
    make = runpy.run_path(str(GOLDEN / "make.py"))
    make["write"](tmp_path / "d", layout)
    assert tree(tmp_path / "d") == tree(GOLDEN / layout)


def test_a_writer_that_nobody_closes_says_so_and_keeps_its_finished_shards(tmp_path: Path) -> None:
    code = """
import sys, penstock
writers = [penstock.Writer(path, {"token": "u2"}, metadata="json", shard_size=1 << 16) for path in sys.argv[1:]]
for writer, documents in zip(writers, (5, 40)):
    for i in range(documents):
        writer.append(token=[i] * 4000, metadata={"i": i})
"""
    command = [sys.executable, "-c", code, tmp_path / "few", tmp_path / "out"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert said.count("RuntimeWarning: Writer(") == said.count("never closed") == 2
    assert "finished shards: 0" in said and "finished shards: 4" in said and not (tmp_path / "few").exists()
    with pytest.raises(penstock.NotFoundError, match=r"unfinished dataset: no dataset\.json, 4 finished"):
        penstock.open(tmp_path / "out")
    assert penstock.commit(tmp_path / "out")
    documents = penstock.open(tmp_path / "out").documents()
    assert [each.metadata["i"] for each in documents] == list(range(len(documents))) and len(documents) >= 32
