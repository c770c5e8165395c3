"""`penstock write` by whole tasks, as `--ray` has them done, here on processes: the same pieces, the same bytes."""

from __future__ import annotations

import gzip
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import _recipes
import numpy as np
import penstock
import pyarrow
import pyarrow.parquet
import pytest
from _dirty import files
from _recipes import OPTIONS, make_shard
from penstock._from.text.batches import Tokenizing
from penstock._from.text.block import Listed
from penstock._from.text.documents import DocumentReader
from penstock._from.text.inputs import expand_inputs
from penstock._from.text.pieces import Cutter
from penstock._from.text.raw import Columns, RawDocument
from penstock._from.text.recipe import TextRecipe
from penstock._from.text.summary import WrittenText
from penstock._from.text.tasks import cut
from penstock._from.text.tokenizing import TokenizerOptions
from penstock._make.errors import InputError
from text_corpus import END, rows, train_tokenizer, write_jsonl

COLUMNS = Columns("text", None, ("url", "n"), "file")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of three formats, one of them without a document, and a tokenizer."""
    folder = tmp_path_factory.mktemp("corpus")
    content = rows()
    first, second = len(content) // 3, len(content) // 2
    write_jsonl(folder / "a.jsonl", content[:first])
    (folder / "b.jsonl").write_bytes(b"")
    plain = write_jsonl(folder / "c.jsonl", content[first:second]).read_bytes()
    (folder / "c.jsonl").unlink()
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(plain))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content[second:]), folder / "d.parquet", row_group_size=100)
    train_tokenizer(folder / "tokenizer.json")
    return folder


def reader(corpus: Path) -> DocumentReader:
    return DocumentReader(expand_inputs([str(corpus / "[a-d].*")]), COLUMNS)


def recipe(
    corpus: Path, out: Path, task_bytes: int = 30_000, source: DocumentReader | None = None, **options: Any
) -> TextRecipe:
    work = Tokenizing(TokenizerOptions(str(corpus / "tokenizer.json"), append=(END,)), COLUMNS)
    return _recipes.recipe(source or reader(corpus), work, out, task_bytes, **options)


def by_tasks(corpus: Path, out: Path, task_bytes: int = 30_000, workers: int = 2, **given: Any) -> WrittenText:
    seen: list[tuple[int, int]] = []
    made = recipe(corpus, out, task_bytes)
    summary = _recipes.by_tasks(made, workers, progress=lambda *each: seen.append(each), **given)
    assert seen[-1][0] == seen[-1][1] > 0
    return summary


@pytest.mark.parametrize("task_bytes", [1, 7, 100, 1000, 10**9])
def test_pieces_are_the_tasks_that_the_one_reader_cuts(task_bytes: int) -> None:
    random = np.random.default_rng(task_bytes)
    for _ in range(200):
        inputs = [random.integers(0, 60, random.integers(0, 30)) for _ in range(random.integers(0, 6))]
        sizes = [int(size) for each in inputs for size in each]
        documents = [RawDocument(i, "", 0, "text", b"x" * size, None) for i, size in enumerate(sizes)]
        batches = list(cut([Listed(documents)], task_bytes))
        assert [each for batch in batches for each in batch.documents] == documents
        tasks = [batch.completed for batch in batches if batch.completed]
        for task in tasks:
            mine = sizes[task.first_document : task.first_document + task.documents]
            assert sum(mine) == task.size_bytes and task.size_bytes - mine[-1] < task_bytes
            assert task is tasks[-1] or task.size_bytes >= task_bytes
        cutter = Cutter(task_bytes)
        pieces = [piece for each in inputs for piece in cutter.add(each.astype(np.uint32))]
        pieces += cutter.end()
        assert [(p.number, p.first_document, p.documents, p.size_bytes) for p in pieces] == [task[:4] for task in tasks]
        begins = np.cumsum([0, *map(len, inputs)])
        for piece in pieces:
            assert begins[piece.input] == piece.input_begins <= piece.first_document < begins[piece.input + 1]


@pytest.mark.parametrize("task_bytes", [30_000, 1 << 30])
def test_whole_tasks_give_the_bytes_and_the_figures_of_batches(corpus: Path, tmp_path: Path, task_bytes: int) -> None:
    expected = _recipes.by_batches(recipe(corpus, tmp_path / "batches", task_bytes))
    for workers in (1, 3):
        found = by_tasks(corpus, tmp_path / str(workers), task_bytes, workers)
        assert files(tmp_path / str(workers)) == files(tmp_path / "batches")
        assert 1 <= found.workers <= workers
        timed = {"workers": 0, "seconds": 0.0, "tokenizing_seconds": 0.0, "path": ""}
        assert replace(found, **timed) == replace(expected, **timed)


def test_whole_tasks_count_documents_without_tokens_too(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(corpus, tmp_path / "some")
    write_jsonl(tmp_path / "some" / "b.jsonl", [{"text": "", "url": "", "n": number} for number in range(40)])
    expected = _recipes.by_batches(recipe(tmp_path / "some", tmp_path / "batches"))
    found = by_tasks(tmp_path / "some", tmp_path / "tasks")
    assert found.notes == expected.notes and "41 documents have no token but those that are added" in found.notes[0]


def test_resume_keeps_shards_of_the_same_documents_and_makes_others_again(corpus: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    shards = by_tasks(corpus, whole).shards
    changed = tmp_path / "changed"
    shutil.copytree(corpus, changed)
    text = (corpus / "a.jsonl").read_bytes()
    (changed / "a.jsonl").write_bytes(text.replace(b"import", b"Import", 1))
    by_tasks(changed, out)
    (out / "dataset.json").unlink()
    penstock.remove_shards(out, [1, 4])
    with pytest.raises(penstock.InvalidArgumentError, match="of a run that did not end: go on with --resume"):
        by_tasks(corpus, out)
    summary = by_tasks(corpus, out, resume=True)
    assert (summary.shards, summary.kept_shards) == (shards, shards - 3)
    assert files(out) == files(whole)
    assert by_tasks(corpus, out, overwrite=True).kept_shards == 0
    assert penstock.verify(out)


def test_an_attempt_that_finds_its_own_shard_answers_as_if_it_had_made_it(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    by_tasks(corpus, out)
    (out / "dataset.json").unlink()
    inputs = list(reader(corpus).inputs)
    sizes = [np.array([each.size_bytes() for each in DocumentReader([one], COLUMNS).documents()]) for one in inputs]
    cutter = Cutter(30_000)
    pieces = [piece for each in sizes for piece in cutter.add(each)]
    before = files(out)
    made = make_shard(recipe(corpus, out), pieces[3])
    shard = penstock.finished_shards(out)[3]
    assert (made.number, made.task, made.records) == (3, shard.task, shard.records)
    assert shard.task["options"] == OPTIONS and files(out) == before
    with pytest.raises(penstock.InvalidArgumentError, match="00003 is finished already"):
        make_shard(recipe(corpus, out, a=2), pieces[3])


def test_a_node_without_the_inputs_or_the_output_or_with_others_says_so(corpus: Path, tmp_path: Path) -> None:
    inputs = list(reader(corpus).inputs)
    gone = DocumentReader([replace(inputs[0], path=tmp_path / "elsewhere")], COLUMNS)
    piece = next(iter(Cutter(30_000).add(np.full(100, 1000))))
    shared = "must be where all nodes of the cluster have them"
    with pytest.raises(InputError, match=rf"a.jsonl: not there on .*: inputs and --out {shared}"):
        make_shard(recipe(corpus, tmp_path, source=gone), piece)
    nowhere = tmp_path / "nowhere"
    with pytest.raises(InputError, match=rf"nowhere: not there on .*{shared}"):
        make_shard(recipe(corpus, nowhere), piece)
    assert not nowhere.exists()
    with pytest.raises(InputError, match="the inputs changed while they were read, from document 1 on"):
        make_shard(recipe(corpus, tmp_path), piece)
