"""The command line: a command is what is parsed, one public call, and what is said; calls have tests of their own."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("pyarrow")

import penstock
import pyarrow
import pyarrow.parquet
from _disks import grow, small_file_system
from _places import tree
from _terminal import on_a_terminal
from penstock._cli.main import cli, main
from penstock._places.remote import shown
from penstock._view.describe import _notices
from text_corpus import END, rows, write_jsonl

SHARD = 12_000  # several tasks of the corpus
OR_SKIP = "; --on-error skip leaves out what cannot be used"
PROGRAM = [sys.executable, "-m", "penstock"]


class Corpus(NamedTuple):
    folder: Path
    rows: list[dict[str, Any]]
    jsonl: Path
    tokenizer: Path
    dataset: Path

    def options(self, *more: str) -> list[str]:
        given = ["--tokenizer", str(self.tokenizer), "--append", END, "--metadata", "url,n", "--shard-size", str(SHARD)]
        return [*given, *more]

    def write(self, inputs: Path, out: Path, **given: Any) -> Any:
        """The command's function with the command's options, in this process."""
        options = {"append": [END], "metadata": ["url", "n"], "shard_size": SHARD, **given}
        return penstock.write(inputs, out, tokenizer=self.tokenizer, **options)


def run(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command in this process."""
    command = list(map(str, arguments))
    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
        ended = main(command)
    assert ended == code, output.getvalue() + errors.getvalue()
    return subprocess.CompletedProcess(command, ended, output.getvalue(), errors.getvalue())


def run_json(*arguments: object, code: int = 0) -> Any:
    """What a command says with --json: one object on one line, and nothing on standard error unless it failed."""
    done = run(*arguments, "--json", code=code)
    assert done.stdout.endswith("}\n") and done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert done.stderr == ("" if code == 0 else f"penstock: {found['error']}\n")
    assert code == 0 or found["exit_code"] == code
    return found


def refused(*arguments: object, code: int = 1) -> str:
    """The error of a command: one line, and nothing else."""
    done = run(*arguments, code=code)
    assert done.stderr.count("\n") == 1 and done.stdout == "", done.stdout + done.stderr
    return done.stderr.removeprefix("penstock: ").strip()


def documents_of(path: Path) -> list[tuple[list[int], Any]]:
    view = penstock.open(path).documents()
    return [(row["token"].tolist(), row.spans[0].metadata) for row in (view[i] for i in range(len(view)))]


def damage(file: Path, at: int = 0) -> None:
    """Changes a byte; of a hard link, this one's alone."""
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.unlink()
    file.write_bytes(data)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, tokenizer_file: str) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    content = rows()[:120]
    jsonl = write_jsonl(folder / "docs.jsonl", content)
    found = Corpus(folder, content, jsonl, Path(tokenizer_file), folder / "dataset")
    run("write", jsonl, "--out", found.dataset, *found.options("--workers", "2"))
    return found


# ---- write


def test_write_makes_the_documents_that_the_tokenizer_gives(corpus: Corpus) -> None:
    from tokenizers import Tokenizer

    library = Tokenizer.from_file(str(corpus.tokenizer))
    library.encode_special_tokens = True
    expected = [([*library.encode(row["text"]).ids, 0], {"url": row["url"], "n": row["n"]}) for row in corpus.rows]
    assert documents_of(corpus.dataset) == expected and len(list(corpus.dataset.glob("0*"))) > 3
    dataset = penstock.open(corpus.dataset)
    assert dataset.dtype["token"] == np.dtype("<u2")
    digest = hashlib.sha256(corpus.tokenizer.read_bytes()).hexdigest()
    assert dataset.tokenizer == {
        "engine": f"gigatoken {metadata.version('gigatoken')}",
        "name": "small",
        "vocabulary_size": library.get_vocab_size(),
        "end_of_document": 0,
        "hash": f"sha256:{digest}",
    }
    assert str(corpus.folder) not in "".join(path.read_text("latin-1") for path in corpus.dataset.rglob("*.json"))


def test_where_documents_begin_is_kept_unless_none_is_said(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("b.py", "x = 1\n"), ("a.md", "# é\n")):
        Path(name).write_text(text, encoding="utf-8")
    given = ["--tokenizer", corpus.tokenizer, "--workers", "1"]
    assert re.search(r"^documents +2$", run("write", "*.py", "*.md", "--out", "out", *given).stdout, re.MULTILINE)
    found = run_json("info", "out")
    assert (found["codec"], found["spans"], found["mode"]) == ("boundaries", 2, "stream")
    words = run("show", "out", 1, "--documents").stdout
    assert "document 1: " in words and "1 span" in words and "from its beginning to its end" in words
    words = run("write", "b.py", "--out", "none", "--metadata", "none", *given).stdout
    assert re.search(r"^documents +1; where they begin and end is not kept \(--metadata none\)$", words, re.MULTILINE)
    assert penstock.open("none").mode == "tokens"
    assert run("show", "none", "--window", "1").stdout.startswith("window 0: 1 record, 0 spans")
    common = {"tokenizer": corpus.tokenizer}
    penstock.write(["*.py", "*.md"], "all", metadata="all", **common)
    assert [metadata for _, metadata in documents_of(Path("all"))] == [
        {"path": "b.py", "kind": "py", "size": 6},
        {"path": "a.md", "kind": "md", "size": 5},
    ]
    penstock.write("b.py", "raw", metadata=["path"], codec="raw", **common)
    assert penstock.open("raw").documents()[0].spans[0].raw == b"b.py"


def test_dry_run_shows_three_documents_and_writes_nothing(corpus: Corpus, tmp_path: Path) -> None:
    command = ["write", corpus.jsonl, "--out", tmp_path / "out", *corpus.options("--dry-run")]
    found, expected = run_json(*command), documents_of(corpus.dataset)
    assert set(found) == {"documents", "sample", "estimated", "rests_on", "notes"} and found["notes"] == []
    assert [(each["ids"], each["metadata"]) for each in found["documents"]] == expected[:3]
    assert [each["text"] for each in found["documents"]] == [row["text"] + END for row in corpus.rows[:3]]
    estimated = found["estimated"]
    assert (estimated["documents"], estimated["tokens"]) == (len(corpus.rows), sum(len(ids) for ids, _ in expected))
    assert estimated["bytes"] == pytest.approx(sum(map(len, tree(corpus.dataset).values())), rel=0.1)
    assert estimated["shards"] == len(list(corpus.dataset.glob("0*")))
    words = run(*command).stdout
    assert "document 3 (" in words and "nothing was written" in words and not (tmp_path / "out").exists()


def test_resuming_keeps_only_shards_made_of_the_same_input_and_options(corpus: Corpus, tmp_path: Path) -> None:
    content = [dict(row) for row in corpus.rows]
    content[-40]["text"] += "!"  # in a shard in the middle
    changed = write_jsonl(tmp_path / "a.jsonl", content)
    part = write_jsonl(tmp_path / "part.jsonl", corpus.rows[: len(corpus.rows) // 2])
    corpus.write(part, tmp_path / "part")
    shards = len(penstock.open(corpus.dataset).shards)
    for name, first, options, then, kept, whole in (
        ("input", changed, {}, corpus.jsonl, range(1, shards), corpus.dataset),
        ("options", corpus.jsonl, {"append": ["<|begin|>"]}, corpus.jsonl, [0], corpus.dataset),
        ("less", corpus.jsonl, {}, part, range(1, shards), tmp_path / "part"),
    ):
        out = tmp_path / f"{name}-out"
        corpus.write(first, out, **options)
        (out / "dataset.json").unlink()  # as if it had been killed just before
        assert corpus.write(then, out, resume=True).kept_shards in kept
        assert tree(out) == tree(whole), name


# ---- refusals


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, corpus: Corpus) -> Path:
    """Inputs that some commands refuse."""
    found = tmp_path_factory.mktemp("folder")
    for name, text in {
        "a.jsonl": '{"ids": [1], "u": 1}\n',
        "a.txt": "x\n",
        "empty.jsonl": "\n",
        "late.jsonl": '{"ids": [1]}\n{"id": [1]}\n',
        "twice.jsonl": '{"ids": [1], "u": 1}\n{"ids": [1], "u": [{"u": 1, "v": 2, "u": 3}]}\n',
        "large.jsonl": '{"ids": [1]}\n{"ids": [65535]}\n',
    }.items():
        (found / name).write_text(text)
    pyarrow.parquet.write_table(pyarrow.table({"ids": [[1]], "n": [1]}), found / "a.parquet")
    np.arange(1000, dtype="<u2").tofile(found / "t.bin")
    penstock.combine([corpus.dataset], found / "d")
    penstock.convert(corpus.dataset, found / "ids", "ids")
    with penstock.Writer(found / "short", {"token": "u1"}, "json") as writer:
        writer.append(token=[7, 8, 9], metadata={"a": 1})
    penstock.Writer(found / "none", {"token": "u1"}, "json").commit()
    with penstock.Writer(found / "stream", {"token": "u1"}, None) as writer:
        writer.append(token=[7])
    (found / "small.json").write_bytes(corpus.tokenizer.read_bytes())
    return found


WRITE = "write a.jsonl --out o --ids-column ids"
WRONG = [  # exit code 2: a command, and the essential words
    ("write a.jsonl --out o", "needs --tokenizer"),
    ("write a.jsonl", "Missing option '--out'"),
    ("write no.jsonl --out o --ids-column i", "no.jsonl: no such file"),
    (f"{WRITE} --shard-size 0", "is not a size"),
    (f"{WRITE} --metadata a,a", "name each column once"),
    (f"{WRITE} --codec raw", "name it with --metadata"),
    (f"{WRITE} --codec json", "--metadata boundaries keeps none"),
    (f"{WRITE} --metadata none --layout ids", "leave out --metadata none"),
    (f"{WRITE} --append <s>", "needs --tokenizer"),
    ("nonsense", "No such command 'nonsense'"),
    ("info --nonsense x", "No such option"),
    ("write a.jsonl --ids-column no --out o", 'line 1): no column "no" for --ids-column'),
    (f"{WRITE} --metadata no", "for --metadata: there are"),
    ("write a.parquet --ids-column no --out o", 'no column "no" for --ids-column'),
    ("write a.parquet --ids-column n --out o", "not lists of integers"),
    ("write a.txt --ids-column ids --out o", "plain text has no columns"),
    ("write a.jsonl --ids-column ids --out a.txt/o", "a.txt is a file: choose another --out"),
    ("write a.jsonl --ids-column ids --out a.jsonl", "is a file: choose another --out"),
    ("combine d --out a.txt/o", "a.txt is a file: choose another --out"),
    ("convert d --layout ids --out a.txt/o", "a.txt is a file: choose another --out"),
    ("write a.jsonl --dry-run --ids-column no --out o", 'no column "no" for --ids-column'),
    ("write a.jsonl --ids-column ids --out d", "holds a dataset already: replace it with --overwrite"),
    ("combine d --out d", "holds a dataset already"),
    ("convert d --layout ids --out d", "holds a dataset already"),
    ("shuffle d --seed 1 --documents --out d", "holds a dataset already"),
    *((f"{command} nowhere", "nowhere: no such f") for command in ("info", "show", "verify", "bench")),
    ("combine nowhere --out o", "nowhere: no such f"),
    ("append d nowhere", "nowhere: no such f"),
    ("append nowhere d", "nowhere: no such f"),
    ("append d", "Missing argument 'MORE...'"),
    ("append https://example.org/corpus d", "is not written to"),
    ("append d ids", "cannot append d and ids: layout compact and ids: convert one of them first"),
    ("combine d ids --out o", "layout compact and ids: convert one of them first (`penstock convert --layout`)"),
    ("convert d --out o", "layout"),
    *((f"{each} t.bin", "no dataset of penstock") for each in ("verify", "combine --out o")),
    ("convert t.bin --layout ids --out o", "no dataset of penstock"),
    ("info t.bin", "give --dtype u2 (GPT-2 and other vocabularies up to 65,536), u4 (larger ones), or a structured"),
    ("info t.bin --dtype u17", "--dtype u17: no type that NumPy knows"),
    ("info d --dtype u2", "say their type"),
    ("show t.bin --dtype u2 --documents", "a token stream has no documents: read it in windows"),
    ("show stream --documents", "a token stream has no documents"),
    ("show d 99999999", "there is no 99,999,999"),
    ("show short -w 4", "longer than the stream of 3 records"),
    ("show none 3", "there is no window 3"),
    ("show d --where 'a > 1'", "it has no columns, which conditions are of"),
    ("bench d --order blocks", "'uniform', 'sequential'"),
    ("bench d --seconds nan", "nan is no time"),
    ("pack d --window 512 --out t.bin", "there already"),
]
WRONG_DATA = [  # exit code 1
    ("write empty.jsonl --ids-column ids --out o", "no documents"),
    ("write late.jsonl --ids-column ids --out o", 'document 2 (late.jsonl line 2): no column "ids" for --ids-column'),
    (
        "write twice.jsonl --ids-column ids --out o",
        f'document 2 (twice.jsonl line 2): the key "u" stands twice in one object: keep one{OR_SKIP}',
    ),
    ("write large.jsonl --ids-column ids --dtype u1 --out o", "(max 255): use --dtype u2"),
    ("write large.jsonl --ids-column ids --tokenizer small.json --out o", "not in the tokenizer's vocabulary"),
]


@pytest.mark.parametrize(("code", "cases"), [(2, WRONG), (1, WRONG_DATA)], ids=["use", "data"])
def test_what_is_wrong_is_one_line(
    code: int, cases: list[tuple[str, str]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = tree(folder)
    for command, words in cases:
        said = refused(*shlex.split(command), *(["--workers", "1"] if code == 1 else []), code=code)
        assert words in said and "overwrite=" not in said, command
        assert not Path("o/dataset.json").exists()
        shutil.rmtree("o", ignore_errors=True)
    assert tree(folder) == before


def test_a_damaged_or_unfinished_dataset_is_exit_code_1_or_says_how_to_go_on(corpus: Corpus, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    penstock.combine([corpus.dataset], copy)
    manifest = (copy / "dataset.json").read_bytes()
    damage(copy / "dataset.json", -9)
    assert "dataset.json" in refused("info", copy)
    (copy / "dataset.json").unlink()
    assert "--resume" in refused("info", copy, code=2)
    (copy / "dataset.json").write_bytes(manifest)
    (copy / "00001/stream.bin").unlink()
    assert "00001/stream.bin" in refused("combine", copy, "--out", tmp_path / "x")


def test_addresses_are_shown_without_their_secrets() -> None:
    address = "https://key:SECRET@host/x?X-Sig=SECRET"
    assert shown(address, "a?b#c", "s3://b/k") == "https://host/x a?b#c s3://b/k"
    assert _notices((address, "s3://b/k")) == []
    for command in (("verify", address), ("combine", address, "--out", "out"), ("convert", address, "--out", "out")):
        with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(output):
            assert main([*command]) != 0
        assert "SECRET" not in output.getvalue()


@pytest.mark.parametrize(
    ("command", "how", "words"),
    [
        ("write a.jsonl --ids-column ids --workers 1 --out a", "> /dev/full", "No space left"),
        ("info d --json", "> /dev/full", "No space left"),
        ("info d", ">&-", "closed"),
    ],
)
def test_standard_output_that_takes_nothing_is_one_line(
    corpus: Corpus, tmp_path: Path, command: str, how: str, words: str
) -> None:
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n')
    (tmp_path / "d").symlink_to(corpus.dataset)
    program = f"{sys.executable} -m penstock {command} {how}"
    done = subprocess.run(["sh", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "standard output" in done.stderr and words in done.stderr
    assert ("a was written; only the report" in done.stderr) == command.startswith("write")


# ---- what ends in the middle: test_verbs.py has more


def test_a_killed_worker_is_named_though_standard_input_is_silent(corpus: Corpus, tmp_path: Path) -> None:
    out, pipe = tmp_path / "out", subprocess.PIPE
    options = corpus.options("--workers", "2", "--tokenizer-engine", "tokenizers")  # which has processes
    command = [*PROGRAM, "write", "-", "--format", "jsonl", "--out", str(out), *options]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        assert process.stdin is not None and process.stderr is not None
        try:
            data = corpus.jsonl.read_bytes()
            process.stdin.write(data[: len(data) * 9 // 10])
            process.stdin.flush()
            end = time.monotonic() + 60
            while not (out / "00001").exists():
                assert time.monotonic() < end and process.poll() is None
                time.sleep(0.01)
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            workers = [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
            os.kill(workers[1], signal.SIGKILL)
            assert process.wait(5) == 1  # half a second, on a machine that has time
            error = process.stderr.read().decode()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert error.count("\n") == 1 and "--resume" in error
    assert f"worker 1 (process {workers[1]}) was killed by SIGKILL" in error
    assert "finished shards of a run that did not end: go on with --resume" in refused(
        "write", corpus.jsonl, "--out", out, *corpus.options(), code=2
    )
    assert corpus.write(corpus.jsonl, out, resume=True).kept_shards >= 2
    assert tree(out) == tree(corpus.dataset)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_keeps_what_is_finished_and_resuming_gives_the_same_bytes(corpus: Corpus, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    command = ["write", corpus.jsonl, "--out", disk / "out", *corpus.options("--workers", "1")]

    def fails() -> str:
        done = subprocess.run([*PROGRAM, *command], capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        return done.stderr.removeprefix("penstock: ").strip()

    with small_file_system(disk, "8k"):
        error = fails()
        assert error.endswith("make room; nothing was published; no shard was finished: start again"), error
        grow(disk, "160k")
        error = fails()
        kept = len(list((disk / "out").glob("0*")))
        assert kept >= 2 and "No space left on device" in error and f"{disk}/out/" in error.split(":")[0], error
        assert f": make room; nothing was published; {kept} finished shards are kept: go on with --resume" in error
        grow(disk, "8m")
        assert run_json(*command, "--resume")["kept_shards"] == kept
        assert tree(disk / "out") == tree(corpus.dataset)


# ---- the other commands


def test_info_describes_ours_and_foreign_files_and_loads_little(corpus: Corpus, folder: Path) -> None:
    assert f"{penstock.open(corpus.dataset).records:,}" in run("info", corpus.dataset).stdout
    assert "6, of which 4 metadata_id" in run("info", folder / "ids").stdout
    written = run("write", corpus.jsonl, "--out", folder / "same", *corpus.options("--workers", "1")).stdout
    told = run("info", folder / "same").stdout.splitlines()
    for row in written.splitlines():  # in the words of write, with the same numbers
        name, words = row.split(maxsplit=1)
        if name not in ("took", "tokenizer"):
            assert any(
                re.match(rf"{name[:2]}.*  +{re.escape(words.split(maxsplit=1)[-1])}\b", line) for line in told
            ), row
    with penstock.Writer(folder / "opaque", None, "json") as writer:
        writer.append({"a": 1})
    told = run("info", folder / "opaque").stdout
    assert re.search(r"^documents +1$", told, re.MULTILINE) and "record" not in told
    foreign = run_json("info", folder / "t.bin", "--dtype", "u2")
    assert (foreign["kind"], foreign["records"], foreign["spans"]) == ("raw", 1000, 0)
    code = """
import sys
from penstock._cli.main import main
main(sys.argv[1:])
heavy = ("torch", "rich", "tokenizers", "pyarrow", "zstandard", "multiprocessing")
sys.exit(" ".join(name for name in heavy if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code, "info", str(corpus.dataset)], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_show_decodes_a_window_with_its_spans(corpus: Corpus) -> None:
    found = run_json("show", corpus.dataset, "3", "--window", "700", "--tokenizer", corpus.tokenizer)["rows"][0]
    row = penstock.open(corpus.dataset).windows(700)[3]
    assert found["ids"] == row["token"].tolist()
    for each, span in zip(found["spans"], row.spans, strict=True):
        number = next(i for i, it in enumerate(corpus.rows) if it["url"] == span.metadata["url"])
        assert each["text"].strip("�") in corpus.rows[number]["text"] + END
    words = run("show", corpus.dataset, "3", "4", "--window", "700", "--tokenizer", corpus.tokenizer).stdout
    assert "window 3: 700 records, " in words and "window 4:" in words and row.spans[0].metadata["url"] in words
    document = run_json("show", corpus.dataset, "7", "--documents", "--tokenizer", corpus.tokenizer)["rows"][0]
    assert document["text"] == corpus.rows[7]["text"] + END


def test_show_counts_what_a_condition_chooses(tmp_path: Path) -> None:
    path = str(tmp_path / "d")
    with penstock.Writer(path, {"token": "u2"}, columns={"lang": "category"}) as writer:
        for number in range(9):
            writer.append(token=[number] * 4, columns={"lang": ["en", "de", None][number // 3]})
    rows = run_json("show", path, "--documents", "--where", "lang = 'de'", "-i", 1, "-i", -1)["rows"]
    assert [(row["index"], row["ids"]) for row in rows] == [(1, [4] * 4), (2, [5] * 4)]
    row = run_json("show", path, "--window", 5, "--where", "lang is not null", "-i", -1)["rows"][0]
    assert row["ids"] == [3, 4, 4, 4, 4]
    assert "there are 3, from 0 on" in refused("show", path, "3", "--where", "lang = 'de'", "--documents", code=2)
    assert "character 1: no column lan: is lang meant?" in refused("show", path, "--where", "lan > 1", code=2)
    assert run("show", path, "--where", "lang = 'fr'").stdout.endswith("there is nothing to show\n")
    assert "no windows where lang = 'fr': there is" in run("show", path, "--where", "lang = 'fr'").stdout
    assert [(row["number"], row["chosen"]) for row in rows] == [(4, 3), (5, 3)]
    said = run("show", path, "0", "--documents", "--where", "lang = 'de'").stdout
    assert said.startswith("document 3, which is 0 of the 3 where lang = 'de': 4 records, 1 span\n")


def test_show_takes_the_names_of_documents_that_trace_prints(tmp_path: Path) -> None:
    path = tmp_path / "d"
    with penstock.Writer(path, fields={"token": "u2"}, metadata="json", shard_size=60) as writer:
        for number in range(30):
            writer.append(token=[number, number], metadata=None)
    dataset = penstock.open(path)
    first = dataset.shards[0].spans
    found = run_json("show", path, "--documents", "00001/1", "1/1", f"{first + 1:,}", "-i", "00000/0")["rows"]
    assert [row["index"] for row in found] == [0, first + 1, first + 1, first + 1]
    assert "00009/1: there is no shard 00009" in refused("show", path, "00009/1", "--documents", code=2)
    assert f"shard 00000 has {first} documents" in refused("show", path, "00000/99", "--documents", code=2)
    assert "is the name of a document: give --documents" in refused("show", path, "00000/1", code=2)
    assert "x: a number is wanted" in refused("show", path, "-i", "x", code=2)
    run("convert", path, "--without", "00001/1", "--without", "0", "--out", tmp_path / "less")
    tokens = [document["token"].tolist() for document in penstock.open(tmp_path / "less").documents()]
    assert tokens == [[number] * 2 for number in range(30) if number not in (0, first + 1)]
    assert "its name SHARD/ENTRY" in refused("convert", path, "--without", "x", "--out", tmp_path / "x", code=2)


def test_show_and_info_find_the_documents_of_a_bare_file_by_a_token(tmp_path: Path) -> None:
    np.array([1, 2, 0, 3, 0, 4, 5, 6, 0], "u2").tofile(tmp_path / "t.bin")
    bare = [tmp_path / "t.bin", "--dtype", "u2"]
    assert run_json("show", *bare, 1, "--documents", "--end-of-document", 0)["rows"][0]["ids"] == [3, 0]
    assert "say with --end-of-document or --begin-of-document" in refused("show", *bare, "--documents", code=2)
    assert re.search(r"documents +3\n", run("info", *bare, "--end-of-document", 0).stdout)
    assert "occurs nowhere, so it tells no documents" in refused("info", *bare, "--end-of-document", 9, code=2)


def test_info_shows_ids_of_the_first_tokens_by_which_a_wrong_type_is_seen(tmp_path: Path) -> None:
    np.array([*range(50, 5000), 60_000], "u4").tofile(tmp_path / "t.bin")
    right, wrong = ("info", tmp_path / "t.bin", "--dtype", "u4"), ("info", tmp_path / "t.bin", "--dtype", "u2")
    assert re.search(r"token ids +50 to 4,145 in the first 4,096 tokens\n", run(*right).stdout)
    assert re.search(r"token ids +0 to 2,097 in the first 4,096 tokens\n", run(*wrong).stdout)
    assert run_json(*right)["first_tokens"] == {"count": 4096, "smallest": 50, "largest": 4145}


def test_show_of_little_shows_what_there_is_and_no_control_characters(folder: Path, tmp_path: Path) -> None:
    assert run("show", folder / "short").stdout.startswith("window 0: 3 records, 1 span")
    none = folder / "none"
    assert run("show", none).stdout == f"{none}: no records: there is nothing to show\n"
    assert run("show", none, "--documents").stdout.endswith("no documents: there is nothing to show\n")
    assert run_json("show", none) == {"path": f"{none}", "rows": []}
    codec = penstock.codecs.register("upper", lambda text: text.upper().encode(), lambda view: bytes(view).decode())
    with penstock.Writer(tmp_path / "upper", None, codec) as writer:  # which only the writer knows
        writer.append("abc\x1b[2J\x9b")
    done = subprocess.run([*PROGRAM, "show", tmp_path / "upper"], capture_output=True, text=True, check=True)
    assert "ABC" in done.stdout and "\x1b" not in done.stdout and "\x9b" not in done.stdout


def test_info_and_verify_name_folders_that_are_no_part_of_the_dataset(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    penstock.combine([corpus.dataset], out)
    assert run("verify", out).stderr == ""
    for name in ("old", "00077", ".partial-00001@x", ".cache"):
        (out / name).mkdir()
    (out / "README.md").write_text("a file")
    notes = run("info", out).stderr.splitlines()
    assert len(notes) == 3 and all(note.startswith(f"note: {out}: dataset.json does not name ") for note in notes)
    for name in (" old: folders", " 00077: ", " .partial-00001@x: "):
        assert sum(name in note for note in notes) == 1
    assert run("verify", out).stderr.splitlines() == notes
    for command in ("info", "verify"):
        assert [f"note: {note}" for note in run_json(command, out)["notices"]] == notes


def test_verify_names_what_is_damaged(corpus: Corpus, tmp_path: Path) -> None:
    copy, files = tmp_path / "copy", ("00001/stream.bin", "00002/metadata.bin")
    penstock.combine([corpus.dataset], copy)
    for name in files:
        damage(copy / name, 5)
    done = run("verify", copy, code=1)
    assert all(name in done.stdout for name in files)
    done = run("verify", copy, "--json", code=1)
    found = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1 and not found["ok"]
    assert all(any(name in problem for problem in found["problems"]) for name in files)


def test_a_tilde_and_counts_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n')
    run("write", "~/a.jsonl", "--ids-column", "ids", "--metadata", "none", "--out", "~/a", "--workers", "1")
    assert run("combine", "~/a", "--out", "~/b").stdout == "~/b: 1 token, 1 shard\n"
    assert run("verify", "~/b").stdout.endswith("all as written\n")


def test_combine_convert_and_append_make_what_their_functions_make(corpus: Corpus, tmp_path: Path) -> None:
    expected, out, options = documents_of(corpus.dataset), tmp_path / "out", ["--out", tmp_path / "out"]
    run("combine", corpus.dataset, corpus.dataset, *options)
    assert documents_of(out) == expected * 2
    done, dataset = run("append", out, corpus.dataset), penstock.open(out)
    counts = f"{3 * len(corpus.rows):,} documents, {dataset.records:,} tokens, {len(dataset.shards)} shards"
    assert done.stdout == f"{out}: {counts}\n" and documents_of(out) == expected * 3
    before = tree(out)
    run("append", out, corpus.dataset, "--resume")  # it ends with them already
    assert tree(out) == before
    run("convert", corpus.dataset, "--layout", "ids", *options, "--overwrite")
    assert penstock.open(out).layout == "ids" and penstock.verify(out)
    run("combine", corpus.dataset, *options, "--overwrite")
    (out / "dataset.json").unlink()
    assert "--resume" in refused("combine", corpus.dataset, *options, code=2)
    run("combine", corpus.dataset, *options, "--resume")
    assert documents_of(out) == expected


# ---- --json of every command


def json_of_info(corpus: Corpus, found: Any) -> None:
    dataset = penstock.open(corpus.dataset)
    assert found == {
        "path": str(corpus.dataset), "kind": "penstock", "mode": "stream", "layout": "compact",
        "fields": {"token": "uint16"}, "record_bytes": 2, "records": dataset.records, "spans": len(corpus.rows),
        "shards": len(dataset.shards), "size_bytes": sum(shard.size_bytes for shard in dataset.shards),
        "columns": {}, "codec": "json", "tokenizer": dataset.tokenizer, "fingerprint": dataset.fingerprint,
        "notices": [],
    }  # fmt: skip


def json_of_show(corpus: Corpus, found: Any) -> None:
    view = penstock.open(corpus.dataset).windows(700)
    assert found["path"] == str(corpus.dataset) and [row["index"] for row in found["rows"]] == [3, 4]
    for row in found["rows"]:
        expected = view[row["index"]]
        assert (row["records"], row["ids"]) == (700, expected["token"].tolist())
        for each, span in zip(row["spans"], expected.spans, strict=True):
            assert (each["id"], each["metadata"]) == (list(span.id), span.metadata)
            assert (each["start"], each["stop"], each["offset"]) == (span.start, span.stop, span.offset)
            assert (each["begins"], each["ends"]) == (span.begins, span.ends)


def json_of_verify(corpus: Corpus, found: Any) -> None:
    said = {"path": str(corpus.dataset), "ok": True, "bytes": found["bytes"], "problems": [], "notices": []}
    assert found == said and found["bytes"] > 2 * penstock.open(corpus.dataset).records


def json_of_bench(corpus: Corpus, found: Any) -> None:
    assert (found["path"], found["observations"], found["window"]) == (str(corpus.dataset), "windows", 128)
    assert (found["batch_size"], found["threads"], found["reader"]) == (4, 1, "mmap")
    assert found["batches"] > 0 and found["seconds"] >= 0.1 and found["open_ms"] > 0 and found["first_batch_ms"] > 0
    rows_per_second = found["observations_per_second"]
    assert rows_per_second == pytest.approx(4 * found["batches_per_second"], rel=1e-3)
    assert found["records_per_second"] == pytest.approx(128 * rows_per_second, rel=1e-3)
    assert found["megabytes_per_second"] == pytest.approx(2 * 128 * rows_per_second / 1e6, rel=0.01)


def json_of_write(corpus: Corpus, found: Any) -> None:
    out = Path(found["path"])
    dataset = penstock.open(out)
    assert (found["documents"], found["tokens"]) == (len(corpus.rows), dataset.records)
    assert (found["shards"], found["kept_shards"], found["workers"]) == (len(dataset.shards), 0, 1)
    assert found["bytes"] == sum(map(len, tree(out).values())) and found["seconds"] > 0 and found["text_bytes"] > 0


def json_of_pack(corpus: Corpus, found: Any) -> None:
    packing = penstock.open(corpus.dataset).packed(512).packing
    assert {name: found[name] for name in packing._fields} == packing._asdict()
    assert (found["window"], found["fit"]) == (512, "best")


def json_of_new(corpus: Corpus, found: Any) -> None:
    """combine, append, convert, shuffle: what info says of the result."""
    assert found == run_json("info", found["path"])
    assert found["spans"] in (len(corpus.rows), 2 * len(corpus.rows)) and penstock.verify(found["path"])


JSON = {
    "info": ("info {data}", json_of_info),
    "show": ("show {data} 3 4 --window 700", json_of_show),
    "verify": ("verify {data}", json_of_verify),
    "bench": ("bench {data} --window 128 --batch-size 4 --seconds 0.1 --threads 1 --reader mmap", json_of_bench),
    "write": ("write {jsonl} --out {out} --workers 1 {options}", json_of_write),
    "pack": ("pack {data} --window 512 --out {out}", json_of_pack),
    "combine": ("combine {data} {data} --out {out}", json_of_new),
    "append": ("append {copy} {data}", json_of_new),
    "convert": ("convert {data} --layout ids --out {out}", json_of_new),
    "shuffle": ("shuffle {data} --seed 1 --documents --out {out}", json_of_new),
}
OF_OTHERS = {
    "annotate",
    "cache",
    "commit",
    "doctor",
    "query",
    "export",
    "import",
    "mix",
    "ranks",
    "trace",
    "view",
}  # test_query, …


def test_every_command_has_its_test_of_json() -> None:
    has_none = {"completion", "help"}
    assert set(cli.list_commands(None)) == JSON.keys() | OF_OTHERS | has_none  # type: ignore[arg-type]


@pytest.mark.parametrize("command", JSON)
def test_json(corpus: Corpus, tmp_path: Path, command: str) -> None:
    words, check = JSON[command]
    places = {"data": corpus.dataset, "jsonl": corpus.jsonl, "out": tmp_path / "out", "copy": tmp_path / "copy"}
    if "{copy}" in words:
        penstock.combine([corpus.dataset], tmp_path / "copy")
    given = shlex.split(words.format(**places, options=shlex.join(corpus.options())))
    missing = [str(tmp_path / "nowhere") if Path(each).parent == corpus.folder else each for each in given]
    assert "nowhere: no such f" in run_json(*missing, code=2)["error"]
    check(corpus, run_json(*given))


def test_bench_says_what_it_measured(corpus: Corpus) -> None:
    told = run("bench", corpus.dataset, "--window", "128", "--seconds", "0.1", "--reader", "pread").stdout
    assert "windows" in told and "pread, " in told
    documents = run_json("bench", corpus.dataset, "--documents", "--seconds", "0.1")
    assert (documents["observations"], documents["window"]) == ("documents", None)


# ---- progress


def test_progress_is_shown_on_a_terminal_and_nowhere_else(corpus: Corpus, tmp_path: Path) -> None:
    """Processes on a terminal of their own, one of which reads standard input."""
    options = corpus.options("--workers", "1")
    shown_there, printed = on_a_terminal([str(corpus.jsonl), "--out", str(tmp_path / "shown"), *options])
    assert "writing" in shown_there and "100%" in shown_there
    # One unit: bytes of text, of which 1,024 make the next one.
    assert all(re.search(r"\d (?:[KM]i)?B/s of text", each) for each in (shown_there, printed))
    assert "MB/s" not in shown_there + printed
    with subprocess.Popen(["cat", corpus.jsonl], stdout=subprocess.PIPE) as pipe:
        out = tmp_path / "stdin"
        shown_there, _ = on_a_terminal(["-", "--format", "jsonl", "--out", str(out), *options], stdin=pipe.stdout)
    done = corpus.jsonl.stat().st_size / 1024
    assert f" {done:,.1f} KiB " in shown_there and "%" not in shown_there, shown_there
    assert re.search(r"[1-9]\S* [KM]iB/s of text", shown_there) and tree(out) == tree(corpus.dataset)


def test_a_long_line_is_cut_as_many_lines_are(tmp_path: Path) -> None:
    with_text = tmp_path / "t"
    with penstock.Writer(with_text, {"token": "u4"}) as writer:
        writer.append(token=np.full(30_000, 97))
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = {chr(97): 97, "[UNK]": 0, **{f"w{n}": n for n in range(1, 97)}}
    model = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=alphabet, merges=[], unk_token="[UNK]"))
    model.decoder = tokenizers.decoders.Fuse()
    model.save(str(tmp_path / "t.json"))
    arguments = ("show", with_text, "0", "--documents", "--tokenizer", tmp_path / "t.json")
    assert run(*arguments).stdout.endswith("a\n│ … about 9.8 KiB more (--full)\n")
    assert "a" * 30_000 in run(*arguments, "--full").stdout


def test_info_says_which_size_it_is_and_how_many_documents_were_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"ids": [1, 2]}\nno JSON\n{"ids": [3]}\n')
    given: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "on_error": "skip"}
    penstock.write(tmp_path / "a.jsonl", tmp_path / "out", **given)
    said = run("info", tmp_path / "out").stdout
    assert f"1 document, listed in {tmp_path / 'out' / 'skipped.jsonl'}" in said
    assert re.search(r"on disk +[\d.,]+ (B|KiB), of which +[\d.,]+ B data", said), said
    both = run("info", tmp_path / "out", tmp_path / "out").stdout
    assert "on disk" not in both and re.search(r"^data +\d+ B$", both, re.MULTILINE), both
