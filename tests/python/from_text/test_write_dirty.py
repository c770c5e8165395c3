"""`penstock write --on-error skip`: what cannot be used is left out and listed; the bytes never depend on how."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path
from typing import Any

import _dirty
import _recipes
import penstock
import pytest
from _dirty import BAD_LINES, arguments_of, entries, files, folder_of, line, write
from _places import Place, plain
from _terminal import on_a_terminal
from penstock._cli.main import main
from penstock._from.text import tasks
from penstock._from.text.batches import Tokenizing
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.raw import Columns
from penstock._from.text.skipping import parse_limit
from penstock._from.text.tokenizing import TokenizerOptions
from penstock._make.errors import InputError, TooManySkippedError
from tokenizers import Tokenizer

COLUMNS = Columns("text", None, ("url",), "file")


def urls(out: Path) -> list[str]:
    view = penstock.open(out).documents()
    return [view[index].spans[0].metadata["url"] for index in range(len(view))]


def test_what_cannot_be_used_is_left_out_and_listed_with_its_place(dirty: Path, expected: Path) -> None:
    found = entries(expected / "skipped.jsonl")
    _, places = _dirty.lines_with_bad_ones(0, 400)
    of = {name: [each for each in found if each["file"] == name] for name in {each["file"]: 0 for each in found}}
    assert [each["line"] for each in of["a.jsonl"]] == places
    for each, (_, words) in zip(of["a.jsonl"], BAD_LINES, strict=True):
        assert re.search(words, each["reason"]), each
    (cut,), (damaged,) = of["b.jsonl.gz"], of["c.jsonl.zst"]
    assert cut["rest"] and "cut off" in cut["reason"]
    assert damaged["rest"] and "damaged Zstandard data" in damaged["reason"]
    rows = [(each["row"], each.get("rows", 1)) for each in of["d.parquet"]]
    assert rows == [(8, 1), (101, 100), (351, 1)]
    for name, words in (
        ("e.parquet", "not a Parquet file"),
        ("f.parquet", "not a Parquet file"),
        ("g.parquet", 'no column "text" for --text-column: there are "other"'),
        ("h.jsonl", "a tar archive"),
        ("j.jsonl", "UTF-16"),
    ):
        (entry,) = of[name]
        assert words in entry["reason"] and not {"line", "row"} & entry.keys()
    assert len(found) == len(places) + 10
    assert [each["document"] for each in found] == sorted({each["document"] for each in found})
    kept, documents = urls(expected), penstock.open(expected).documents()
    tokenizer = Tokenizer.from_file(str(dirty / "tokenizer.json"))
    for number in range(400):
        assert tokenizer.decode(documents[number]["token"].tolist()) == _dirty.row(number)["text"]
    assert [each for each in kept if each.startswith("u/") and int(each[2:]) < 400] == [f"u/{n}" for n in range(400)]
    # All before the damaged place, but for less than 4 KiB as they are packed.
    packed = [each for each in kept if each.startswith("u/1") and len(each) == 6]
    assert packed == [f"u/{1000 + number}" for number in range(cut["line"] - 1)] and len(packed) > 150
    assert kept.count("long") == damaged["line"] - 1 > 400
    rows_kept = [*range(7), *range(8, 100), *range(200, 350), *range(351, 400)]
    assert [each for each in kept if each.startswith("u/2") and len(each) == 6] == [f"u/{2000 + n}" for n in rows_kept]
    assert kept[-1] == "u/9999"


def recipe(folder: Path, out: Path, limit: str | None = None) -> Any:
    inputs = expand_inputs([str(folder / "[a-k].*")], skips=True)
    work = Tokenizing(TokenizerOptions(str(folder / "tokenizer.json")), COLUMNS, skips=True)
    reader = DocumentReader(inputs, COLUMNS, skips=True)
    return _recipes.recipe(reader, work, out, 10_000, None if limit is None else parse_limit(limit))


def test_the_bytes_are_the_same_for_any_number_of_workers_for_whole_tasks_and_any_batches(
    dirty: Path, expected: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(dirty, tmp_path / "workers", "--workers", "3")
    assert files(tmp_path / "workers") == files(expected)
    by_tasks = _recipes.by_tasks(recipe(dirty, tmp_path / "tasks"))
    monkeypatch.setattr(tasks, "_BATCH_DOCUMENTS", 3)
    by_batches = _recipes.by_batches(recipe(dirty, tmp_path / "batches"), 3)
    assert files(tmp_path / "tasks") == files(tmp_path / "batches")
    amounts = (len(entries(expected / "skipped.jsonl")), len(urls(expected)))
    assert (by_tasks.skipped, by_tasks.documents) == (by_batches.skipped, by_batches.documents) == amounts


def test_a_shard_whose_entries_are_gone_or_whose_lines_moved_is_made_again(
    dirty: Path, expected: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "in"
    shutil.copytree(dirty, moved)
    (moved / "a.jsonl").write_bytes(b"\n" + (dirty / "a.jsonl").read_bytes())  # each line is one further down
    out = tmp_path / "out"
    limit = str(len(entries(expected / "skipped.jsonl")) - 1)
    write(dirty, out, "--max-skipped", limit, code=1)
    shutil.copytree(out, tmp_path / "again")
    lists = sorted(out.glob("skipped-0*.jsonl"))
    lists[-1].unlink()
    lists[-2].write_bytes(b"")
    there = len(list(out.glob("0*")))
    assert write(dirty, out, "--resume")["kept_shards"] == there - 2
    assert files(out) == files(expected)
    write(moved, tmp_path / "again", "--resume")
    write(moved, tmp_path / "whole")
    assert files(tmp_path / "again") == files(tmp_path / "whole")


def test_shards_of_a_run_that_stopped_are_kept_by_one_that_skips_and_not_the_other_way(
    dirty: Path, tmp_path: Path
) -> None:
    lines = [line(number) for number in range(300)]
    lines.insert(200, b"no JSON")
    folder, small = folder_of(dirty, tmp_path / "in", a_jsonl=lines), ["--shard-size", "4k"]
    said = write(folder, tmp_path / "out", "--on-error", "stop", *small, code=1)
    assert "line 201" in said["error"] and said["error"].endswith("--on-error skip leaves out what cannot be used")
    said = write(folder, tmp_path / "out", "--resume", *small)
    assert said["kept_shards"] >= 3 and said["skipped"] == 1
    write(folder, tmp_path / "whole", *small)
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    said = write(folder, tmp_path / "out", "--resume", "--on-error", "stop", *small, code=1)
    assert "line 201" in said["error"]
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_a_number_stops_at_the_same_document_for_any_workers_and_keeps_what_is_finished(
    dirty: Path, expected: Path, tmp_path: Path
) -> None:
    lists = set()
    for workers in ("1", "3"):
        out = tmp_path / workers
        said = write(dirty, out, "--max-skipped", "5", "--workers", workers, code=1)
        assert re.match(
            r"more than 5 documents cannot be used \(--max-skipped 5\): a.jsonl line 1: no col", said["error"]
        )
        assert f"(6 entries in {out}/skipped-unpublished.jsonl); nothing was published; " in said["error"]
        assert re.search("(is|are) kept: go on with --resume", said["error"])
        lists.add((out / "skipped-unpublished.jsonl").read_bytes())
    with pytest.raises(TooManySkippedError, match="more than 5 documents"):
        _recipes.by_tasks(recipe(dirty, tmp_path / "tasks", "5"))
    lists.add((tmp_path / "tasks" / "skipped-unpublished.jsonl").read_bytes())
    assert lists == {b"".join((expected / "skipped.jsonl").read_bytes().splitlines(keepends=True)[:6])}
    said = write(dirty, tmp_path / "3", "--max-skipped", "1_000", "--resume")
    assert said["kept_shards"] > 0
    assert files(tmp_path / "3") == files(expected)


def test_a_share_is_of_all_documents(dirty: Path, expected: Path, tmp_path: Path) -> None:
    skipped = len(entries(expected / "skipped.jsonl"))
    total = skipped + len(urls(expected))
    enough, too_few = f"{100 * skipped / total + 0.01:.4f}%", f"{100 * skipped / total - 0.01:.4f}%"
    said = write(dirty, tmp_path / "out", "--max-skipped", too_few, code=1)
    assert said["error"].startswith(
        f"{skipped} of {total:,} documents cannot be used (--max-skipped {too_few}): a.jsonl"
    )
    listed = (tmp_path / "out" / "skipped-unpublished.jsonl").read_bytes()
    assert listed == (expected / "skipped.jsonl").read_bytes()
    said = write(dirty, tmp_path / "out", "--max-skipped", enough, "--resume")
    assert said["kept_shards"] == said["shards"]
    assert files(tmp_path / "out") == files(expected)
    with pytest.raises(TooManySkippedError, match=rf"of {total:,} documents"):
        _recipes.by_tasks(recipe(dirty, tmp_path / "tasks", "0.1%"))
    assert len(list((tmp_path / "tasks").glob("0*"))) < said["shards"]  # it is certain long before the end


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--max-skipped", "5"], "--max-skipped is for --on-error skip"),
        (["--on-error", "stop", "--max-skipped", "5"], "--max-skipped is for --on-error skip"),
        (["--on-error", "skip", "--max-skipped", "5x"], "give a number of documents, as 100, or a share"),
        (["--on-error", "skip", "--max-skipped", "101%"], "give a number of documents"),
        (["--on-error", "skip", "--max-skipped", "1e-999999999%"], "give a number of documents"),
        (["--on-error", "skip", "--max-skipped", "-1"], "give a number of documents"),
        (["--on-error", "skip", "--dry-run"], "--dry-run"),
        (["--on-error", "ignore"], "is not one of 'stop', 'skip'"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], words: str
) -> None:
    base = ["write", str(dirty / "k.jsonl"), "--tokenizer", str(dirty / "tokenizer.json"), "--out", str(tmp_path / "o")]
    assert main([*base, *more]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_what_is_no_fault_of_a_document_stops(dirty: Path, tmp_path: Path) -> None:
    out, many = tmp_path / "out", folder_of(dirty, tmp_path / "in", a_jsonl=[*map(line, range(100))])
    said = write(many, out, "--text-column", "body", code=2)
    assert "document 1 " in said["error"] and 'no column "body" for --text-column: there are "text"' in said["error"]
    for inputs, more, words in (
        ("nothing.jsonl", [], "no such file"),
        (
            "g.parquet",
            [],
            'no column "text" for --text-column: there are "other"',
        ),  # the first: the option may be wrong
        ("k.jsonl", ["--prepend", "<|nobody|>"], "no token"),
    ):
        assert words in write(dirty, out, *more, code=2, inputs=inputs)["error"]


def test_where_nothing_can_be_used_nothing_is_published(dirty: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = write(dirty, out, inputs="[efhj].*", code=1)
    assert said["error"].startswith("there are no documents in the input that can be used: e.parquet: not a Parquet")
    assert f"(4 entries in {out}/skipped-unpublished.jsonl); nothing was published" in said["error"]
    assert set(files(out)) == {"skipped-unpublished.jsonl"}
    bad = folder_of(dirty, tmp_path / "in", a_jsonl=[b"bad"] * 2000)
    with pytest.raises(InputError, match="there are no documents in the input that can be used"):
        _recipes.by_tasks(recipe(bad, tmp_path / "tasks"))
    assert not list((tmp_path / "tasks").glob("0*"))


def test_a_clean_input_gives_the_dataset_of_a_run_that_stops_and_no_list(dirty: Path, tmp_path: Path) -> None:
    lines = b"\n".join(map(line, range(300)))
    folder = folder_of(dirty, tmp_path / "in", a_jsonl=lines, c_jsonl_gz=gzip.compress(lines))
    _dirty.parquet(folder / "b.parquet", 300, 250)
    assert write(folder, tmp_path / "stops", "--on-error", "stop")["skipped"] == 0
    said = write(folder, tmp_path / "skips", "--max-skipped", "0")
    assert (said["skipped"], said["skipped_list"]) == (0, None)
    assert files(tmp_path / "skips") == files(tmp_path / "stops")


def test_other_commands_live_with_the_list(expected: Path, tmp_path: Path) -> None:
    assert penstock.verify(expected)
    assert main(["info", str(expected), "--json"]) == 0
    penstock.combine([expected, expected], tmp_path / "combined")
    penstock.convert(expected, tmp_path / "ids", "ids")
    penstock.shuffle(expected, tmp_path / "shuffled", seed=1, documents=True)
    for name in ("combined", "ids", "shuffled"):
        assert penstock.verify(tmp_path / name)
        assert not (tmp_path / name / "skipped.jsonl").exists()


def test_progress_counts_what_is_skipped(dirty: Path, tmp_path: Path) -> None:
    shown, printed = on_a_terminal(arguments_of(dirty, tmp_path / "out", inputs="[abd].*"))
    assert f"writing {tmp_path}/out, 16 skipped" in shown
    assert re.search(rf"^skipped +16 documents, listed in {re.escape(str(tmp_path))}/out/skipped.jsonl$", printed, re.M)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ("a.*", None),
        ("b.*", ("1 entry", "stands", "1 document")),
        ("[abd].*", ("2 entries", "stand", "16 documents")),
    ],
)
def test_a_note_says_where_more_is_missing_than_there_are_entries(
    dirty: Path, tmp_path: Path, inputs: str, words: tuple[str, str, str] | None
) -> None:
    out = tmp_path / "out"
    for options in ([], ["--resume"]):
        notes = [each for each in write(dirty, out, *options, inputs=inputs)["notes"] if "missing" in each]
        if words is None:
            assert notes == []
            continue
        count, stand, documents = words
        assert notes == [
            f"{count} of {out}/skipped.jsonl {stand} for a file, its rest, or many rows: "
            f"more than {documents} may be missing"
        ]


def test_a_bucket_gets_the_list_too_and_replaces_it(dirty: Path, tmp_path: Path, place: Place) -> None:
    expected = tmp_path / "out"
    write(dirty, expected, inputs=(some := "[bdk].*"))
    where = ["--endpoint", place.server, "--region", "us-east-1"]
    said = write(dirty, place.url, "--max-skipped", "2", *where, code=1, inputs=some)
    assert f"{place.url}/skipped-unpublished.jsonl" in said["error"]
    there = place.files()
    assert "dataset.json" not in there and any(name.startswith("skipped-0") for name in there)
    said = write(dirty, place.url, "--resume", *where, inputs=some)
    assert said["kept_shards"] > 0 and said["skipped_list"] == f"{place.url}/skipped.jsonl"
    there = place.files()
    assert {name for name in there if "/" not in name} == {"dataset.json", "skipped.jsonl"}
    assert there["skipped.jsonl"] == (expected / "skipped.jsonl").read_bytes()
    assert plain(there) == {name: data for name, data in files(expected).items() if "/" in name}
    assert write(dirty, place.url, "--resume", *where, inputs=some)["kept_shards"] == said["shards"]
    with penstock.Writer(place.url, {"token": "u2"}, "json", overwrite=True, storage=place.storage) as writer:
        writer.append({}, token=[1])
    assert "dataset.json" in place.files() and "skipped.jsonl" not in place.files()
