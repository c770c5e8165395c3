"""The command line: `write` in processes of its own, the others in this one where that shows the same."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("tokenizers")
zstandard = pytest.importorskip("zstandard")
pytest.importorskip("pyarrow")

import penstock  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402
from _terminal import on_a_terminal  # noqa: E402
from text_corpus import END, rows, write_jsonl  # noqa: E402

SHARD = "12k"  # several tasks of the corpus
OR_SKIP = "; --on-error skip leaves out what cannot be used"
PROGRAM = [sys.executable, "-m", "penstock"]


class Corpus(NamedTuple):
    folder: Path
    rows: list[dict[str, Any]]
    jsonl: Path
    tokenizer: Path
    dataset: Path

    def options(self, *more: str) -> list[str]:
        return [
            "--tokenizer",
            str(self.tokenizer),
            "--append",
            END,
            "--metadata",
            "url,n",
            "--shard-size",
            SHARD,
            *more,
        ]


def run(*arguments: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    command = list(map(str, arguments))
    if command[0] == "write" or options:
        done = subprocess.run([*PROGRAM, *command], capture_output=True, text=True, timeout=120, **options)
    else:
        done = run_here(command)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def run_here(command: list[str]) -> subprocess.CompletedProcess[str]:
    """The same without the half second of CPU that a new interpreter takes."""
    from penstock._cli.main import main

    with contextlib.redirect_stdout(io.StringIO()) as output, contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(command)
    return subprocess.CompletedProcess(command, code, output.getvalue(), errors.getvalue())


def run_json(*arguments: object, code: int = 0, **options: Any) -> Any:
    done = run(*arguments, "--json", code=code, **options)
    assert done.stdout.count("\n") == 1
    return json.loads(done.stdout)


def refused(*arguments: object, code: int = 1, **options: Any) -> str:
    """The error of a command: one line, and nothing else."""
    done = run(*arguments, code=code, **options)
    assert done.stderr.count("\n") == 1 and done.stdout == "", done.stdout + done.stderr
    return done.stderr.removeprefix("penstock: ").strip()


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def documents_of(path: Path) -> list[tuple[list[int], Any]]:
    view = penstock.open(str(path)).documents()
    return [(row["token"].tolist(), row.spans[0].metadata) for row in (view[i] for i in range(len(view)))]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory, tokenizer_file: str) -> Corpus:
    folder = tmp_path_factory.mktemp("corpus")
    content = rows()[:120]
    jsonl = write_jsonl(folder / "docs.jsonl", content)
    tokenizer = Path(tokenizer_file)
    found = Corpus(folder, content, jsonl, tokenizer, folder / "dataset")
    run("write", jsonl, "--out", found.dataset, *found.options("--workers", "2"))
    return found


# ---- what write makes


def test_write_makes_the_documents_that_the_tokenizer_gives(corpus: Corpus) -> None:
    from tokenizers import Tokenizer

    library = Tokenizer.from_file(str(corpus.tokenizer))
    library.encode_special_tokens = True
    expected = [([*library.encode(row["text"]).ids, 0], {"url": row["url"], "n": row["n"]}) for row in corpus.rows]
    assert documents_of(corpus.dataset) == expected
    dataset = penstock.open(str(corpus.dataset))
    assert dataset.dtype["token"] == np.dtype("<u2")
    digest = hashlib.sha256(corpus.tokenizer.read_bytes()).hexdigest()
    assert dataset.tokenizer == {
        "name": "small",
        "vocabulary_size": library.get_vocab_size(),
        "end_of_document": 0,
        "hash": f"sha256:{digest}",
    }
    assert str(corpus.folder) not in "".join(path.read_text("latin-1") for path in corpus.dataset.rglob("*.json"))


def test_the_bytes_are_the_same_for_any_number_of_workers(corpus: Corpus, tmp_path: Path) -> None:
    expected = digests(corpus.dataset)
    assert len(list(corpus.dataset.glob("0*"))) > 3
    for workers in (1, 3):
        run("write", corpus.jsonl, "--out", tmp_path / str(workers), *corpus.options("--workers", str(workers)))
        assert digests(tmp_path / str(workers)) == expected


def test_every_kind_of_input_gives_the_same_dataset(corpus: Corpus, tmp_path: Path) -> None:
    data = corpus.jsonl.read_bytes()
    (tmp_path / "docs.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "docs.jsonl.zst").write_bytes(zstandard.compress(data))
    expected = digests(corpus.dataset)
    for name in ("docs.jsonl.gz", "docs.jsonl.zst"):
        run("write", tmp_path / name, "--out", tmp_path / "out" / name, *corpus.options())
        assert digests(tmp_path / "out" / name) == expected, name
    with corpus.jsonl.open("rb") as file:
        run("write", "-", "--format", "jsonl", "--out", tmp_path / "out/stdin", *corpus.options(), stdin=file)
    assert digests(tmp_path / "out/stdin") == expected
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(corpus.rows), tmp_path / "docs.parquet")
    run("write", tmp_path / "docs.parquet", "--out", tmp_path / "out/parquet", *corpus.options())
    # Parquet's tasks count the text alone, so the shards end elsewhere; the documents are the same.
    assert documents_of(tmp_path / "out/parquet") == documents_of(corpus.dataset)


def test_ids_already_made_give_what_the_text_gave(corpus: Corpus, tmp_path: Path) -> None:
    made = [{"ids": ids[:-1], **metadata} for ids, metadata in documents_of(corpus.dataset)]
    write_jsonl(tmp_path / "ids.jsonl", made)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(made), tmp_path / "ids.parquet")
    common = ["--ids-column", "ids", "--append", "0", "--metadata", "url,n", "--dtype", "u2"]
    fingerprints = set()
    for name in ("ids.jsonl", "ids.parquet"):
        run("write", tmp_path / name, "--out", tmp_path / "out" / name, *common)
        assert documents_of(tmp_path / "out" / name) == documents_of(corpus.dataset)
        fingerprints.add(penstock.open(str(tmp_path / "out" / name)).fingerprint)
    assert len(fingerprints) == 1
    message = refused("write", tmp_path / "ids.jsonl", "--out", tmp_path / "u1", "--ids-column", "ids", "--dtype", "u1")
    assert message.startswith("token ") and "(max 255): use --dtype u2" in message and "ids.jsonl line" in message
    assert not (tmp_path / "u1/dataset.json").exists()


def test_plain_text_with_all_metadata_and_none(corpus: Corpus, tmp_path: Path) -> None:
    for name, text in (("b.py", "x = 1\n"), ("a.md", "# é\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    common = ["--tokenizer", corpus.tokenizer]
    run("write", "*.py", "*.md", "--out", "all", "--metadata", "all", *common, cwd=tmp_path)
    view = penstock.open(str(tmp_path / "all")).documents()
    assert [view[i].spans[0].metadata for i in range(2)] == [
        {"path": "b.py", "kind": "py", "size": 6},
        {"path": "a.md", "kind": "md", "size": 5},
    ]
    words = run("write", "b.py", "--out", "none", "--metadata", "none", *common, cwd=tmp_path).stdout
    assert "documents  1; where they begin and end is not kept (--metadata none)" in words
    assert penstock.open(str(tmp_path / "none")).mode == "tokens"
    run("write", "b.py", "--out", "raw", "--metadata", "path", "--codec", "raw", *common, cwd=tmp_path)
    assert penstock.open(str(tmp_path / "raw")).documents()[0].spans[0].raw == b"b.py"


def test_where_documents_begin_is_kept_unless_none_is_said(corpus: Corpus, tmp_path: Path) -> None:
    options = ["--tokenizer", corpus.tokenizer, "--append", END, "--shard-size", SHARD]
    words = run("write", corpus.jsonl, "--out", tmp_path / "out", *options).stdout
    assert f"documents  {len(corpus.rows)}\n" in words
    expected = [(ids, None) for ids, _ in documents_of(corpus.dataset)]
    assert documents_of(tmp_path / "out") == expected
    assert not any(path.stat().st_size for path in (tmp_path / "out").rglob("metadata.bin"))
    found = run_json("info", tmp_path / "out")
    assert (found["codec"], found["spans"], found["mode"]) == ("boundaries", len(expected), "stream")
    assert run_json("verify", tmp_path / "out")["ok"]
    shown = run("show", tmp_path / "out", 2, "--documents").stdout
    assert f"document 2: {len(expected[2][0]):,} records, 1 span" in shown and "from its beginning to its end" in shown
    run("combine", tmp_path / "out", tmp_path / "out", "--out", tmp_path / "both")
    assert documents_of(tmp_path / "both") == expected * 2
    run("write", corpus.jsonl, "--out", tmp_path / "ids", "--layout", "ids", *options)
    run("convert", tmp_path / "ids", "--layout", "compact", "--out", tmp_path / "compact")
    assert documents_of(tmp_path / "compact") == expected
    assert penstock.open(tmp_path / "compact").fingerprint == penstock.open(tmp_path / "out").fingerprint


def test_dry_run_shows_three_documents_and_writes_nothing(corpus: Corpus, tmp_path: Path) -> None:
    found = run_json("write", corpus.jsonl, "--out", tmp_path / "out", *corpus.options("--dry-run"))
    expected = documents_of(corpus.dataset)
    assert [(each["ids"], each["metadata"]) for each in found["documents"]] == expected[:3]
    assert [each["text"] for each in found["documents"]] == [row["text"] + END for row in corpus.rows[:3]]
    assert found["estimated"]["documents"] == len(corpus.rows)
    assert found["estimated"]["tokens"] == sum(len(ids) for ids, _ in expected)
    size = sum(path.stat().st_size for path in corpus.dataset.rglob("*") if path.is_file())
    assert found["estimated"]["bytes"] == pytest.approx(size, rel=0.1)
    assert found["estimated"]["shards"] == len(list(corpus.dataset.glob("0*")))
    words = run("write", corpus.jsonl, "--out", tmp_path / "out", *corpus.options("--dry-run")).stdout
    assert "document 3 (" in words and "nothing was written" in words
    assert not (tmp_path / "out").exists()


# ---- refusals


def test_errors_are_one_line_that_names_the_place_and_says_what_to_do(corpus: Corpus, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps(corpus.rows[0]) + "\n" + json.dumps({"body": "x", "url": "u"}) + "\n")
    message = refused("write", bad, "--out", tmp_path / "out", *corpus.options())
    reason = 'no column "text" for --text-column: there are "body", "url"'
    assert message == f"document 2 ({bad} line 2): {reason}{OR_SKIP}"
    assert not (tmp_path / "out/dataset.json").exists()
    bad.write_text("\n")
    assert "no documents" in refused("write", bad, "--out", tmp_path / "out2", *corpus.options())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["write", "x.jsonl", "--out", "o"], "needs --tokenizer"),
        (["write", "x.jsonl"], "Missing option '--out'"),
        (["write", "none.jsonl", "--out", "o", "--ids-column", "i"], "none.jsonl: no such file"),
        (["write", "x.jsonl", "--out", "o", "--ids-column", "i", "--shard-size", "0"], "is not a size"),
        (["write", "x.jsonl", "--out", "o", "--ids-column", "i", "--metadata", "a,a"], "name each column once"),
        (["write", "x.jsonl", "--out", "o", "--ids-column", "i", "--codec", "raw"], "name it with --metadata"),
        (
            ["write", "x.jsonl", "--out", "o", "--ids-column", "i", "--codec", "json"],
            "--metadata boundaries keeps none",
        ),
        (
            ["write", "x.jsonl", "--out", "o", "--ids-column", "i", "--metadata", "none", "--layout", "ids"],
            "leave out --metadata none",
        ),
        (["write", "x.jsonl", "--out", "o", "--ids-column", "i", "--append", "<s>"], "needs --tokenizer"),
        (["nonsense"], "No such command 'nonsense'"),
        (["info", "--nonsense", "x"], "No such option"),
    ],
)
def test_wrong_use_is_exit_code_2(
    arguments: list[str], words: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from penstock._cli.main import main

    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text("{}\n")
    assert main(arguments) == 2
    error = capfd.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not Path("o").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["write", "a.jsonl", "--ids-column", "no", "--out", "o"], 'line 1): no column "no" for --ids-column'),
        (["write", "a.jsonl", "--ids-column", "ids", "--metadata", "no", "--out", "o"], "for --metadata: there are"),
        (["write", "a.parquet", "--ids-column", "no", "--out", "o"], 'no column "no" for --ids-column'),
        (["write", "a.parquet", "--ids-column", "n", "--out", "o"], "not lists of integers"),
        (["write", "a.txt", "--ids-column", "ids", "--out", "o"], "plain text has no columns"),
        (["write", "a.jsonl", "--ids-column", "ids", "--out", "a.txt/o"], "a.txt is a file: choose another --out"),
        (["combine", "d", "--out", "a.txt/o"], "a.txt is a file: choose another --out"),
        (["convert", "d", "--layout", "ids", "--out", "a.txt/o"], "a.txt is a file: choose another --out"),
        (["write", "a.jsonl", "--dry-run", "--ids-column", "no", "--out", "o"], 'no column "no" for --ids-column'),
    ],
)
def test_options_that_no_input_can_meet_are_wrong_use(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"ids": [1], "u": 1}\n')
    Path("a.txt").write_text("x\n")
    pyarrow.parquet.write_table(pyarrow.table({"ids": [[1]], "n": [1]}), "a.parquet")
    with penstock.Writer("d", {"token": "u1"}, "json") as writer:
        writer.append(token=[1], metadata={})
    assert words in refused(*arguments, code=2)
    assert not Path("o/dataset.json").exists()


def test_a_column_that_a_later_document_lacks_is_an_error_of_the_data(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n{"id": [1]}\n')
    assert "line 2): no column" in refused(
        "write", tmp_path / "a.jsonl", "--ids-column", "ids", "--out", tmp_path / "o"
    )


def test_a_key_that_stands_twice_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for row in (
        '{"ids": [1], "u": 1, "u": 1}',
        '{"ids": [1], "u": [{"u": 1, "v": 2, "u": 3}]}',
        '{"ids": [1], "ids": [2], "u": 1}',
    ):
        key = "ids" if row.count("ids") == 2 else "u"
        path.write_text('{"ids": [1], "u": 1}\n' + row + "\n")
        error = refused("write", path, "--ids-column", "ids", "--out", tmp_path / "out")
        assert error == f'document 2 ({path} line 2): the key "{key}" stands twice in one object: keep one{OR_SKIP}'


def test_what_is_there_is_refused_unless_told_what_to_do(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = write_jsonl(tmp_path / "small.jsonl", corpus.rows[:50])
    run("write", small, "--out", out, *corpus.options())
    before = digests(out)
    message = refused("write", corpus.jsonl, "--out", out, *corpus.options(), code=2)
    assert "holds a dataset already: replace it with --overwrite" in message
    assert "made of other input" in refused("write", corpus.jsonl, "--out", out, *corpus.options("--resume"), code=2)
    assert digests(out) == before
    assert run_json("write", small, "--out", out, *corpus.options("--resume"))["kept_shards"] > 0
    assert digests(out) == before
    run("write", corpus.jsonl, "--out", out, *corpus.options("--overwrite"))
    assert documents_of(out) == documents_of(corpus.dataset)
    assert penstock.open(out).fingerprint == penstock.open(corpus.dataset).fingerprint
    assert {each.name[5:] for each in out.iterdir()} == {".1", "et.json"}  # nothing of the old one is left


@pytest.mark.parametrize(("how", "words"), [("> /dev/full", "No space left"), (">&-", "closed")])
def test_standard_output_that_takes_nothing_is_one_line(tmp_path: Path, how: str, words: str) -> None:
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n')
    program = f"{sys.executable} -m penstock"
    for command in ("write a.jsonl --ids-column ids --out a", "info a", "info a --json"):
        done = subprocess.run(["sh", "-c", f"{program} {command} {how}"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
        assert "standard output" in done.stderr and words in done.stderr
        assert ("a was written; only the report" in done.stderr) == command.startswith("write")


def test_ids_beyond_the_vocabulary_and_a_file_in_the_way_are_refused(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n{"ids": [65535]}\n')
    ids = ["write", tmp_path / "a.jsonl", "--ids-column", "ids", "--out"]
    words = refused(*ids, tmp_path / "a", "--tokenizer", corpus.tokenizer)
    assert "token 65,535 in document 2" in words and "not in the tokenizer's vocabulary" in words
    assert refused(*ids, tmp_path / "a.jsonl", code=2).endswith("is a file: choose another --out")


# ---- what ends in the middle


class Running:
    """A `penstock write` that reads what the test gives it, and has finished two shards of it."""

    def __init__(self, corpus: Corpus, out: Path, shard: str = "00001", *more: str) -> None:
        options = corpus.options("--workers", "2", *more)
        command = [*PROGRAM, "write", "-", "--format", "jsonl", "--out", str(out), *options]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
        data = corpus.jsonl.read_bytes()
        assert self.process.stdin is not None
        self.process.stdin.write(data[: len(data) * 9 // 10])
        self.process.stdin.flush()
        wait_for(lambda: (out / shard).exists(), "two finished shards")
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.workers = [pid for pid in map(int, children) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert len(self.workers) == 2

    def end(self) -> str:
        """Waits; what was said on standard error."""
        _, error = self.process.communicate(timeout=60)
        wait_for(lambda: not any(map(alive, self.workers)), "the end of the workers")
        return error.decode()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(condition: Any, what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.fixture
def running(corpus: Corpus, tmp_path: Path) -> Iterator[Running]:
    found = Running(corpus, tmp_path / "out")
    yield found
    if found.process.poll() is None:
        os.killpg(found.process.pid, signal.SIGKILL)
        found.process.wait()


def assert_resumes(corpus: Corpus, out: Path) -> None:
    assert not (out / "dataset.json").exists()
    message = refused("write", corpus.jsonl, "--out", out, *corpus.options(), code=2)
    assert "finished shards of a run that did not end: go on with --resume" in message
    assert run_json("write", corpus.jsonl, "--out", out, *corpus.options("--resume"))["kept_shards"] >= 2
    assert digests(out) == digests(corpus.dataset)


def test_a_killed_worker_is_named_and_resuming_gives_the_same_bytes(
    corpus: Corpus, running: Running, tmp_path: Path
) -> None:
    # Standard input stays open and silent: the end of a worker is noticed all the same.
    os.kill(running.workers[1], signal.SIGKILL)
    begin = time.monotonic()
    running.process.wait(30)
    assert time.monotonic() - begin < 5  # half a second, on a machine that has time
    error = running.end()
    assert running.process.returncode == 1 and error.count("\n") == 1
    assert f"worker 1 (process {running.workers[1]}) was killed by SIGKILL" in error and "--resume" in error
    assert_resumes(corpus, tmp_path / "out")


def test_a_killed_parent_leaves_no_process_and_resuming_gives_the_same_bytes(
    corpus: Corpus, running: Running, tmp_path: Path
) -> None:
    running.process.kill()
    running.end()
    assert_resumes(corpus, tmp_path / "out")


def test_a_replacement_that_is_killed_leaves_the_old_one_and_goes_on(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    small = write_jsonl(tmp_path / "small.jsonl", corpus.rows[:20])
    run("write", small, "--out", out, *corpus.options())
    before = digests(out)
    replacing = Running(corpus, out, "00001.1", "--overwrite")
    os.kill(replacing.workers[0], signal.SIGKILL)
    assert "the old dataset stays" in (error := replacing.end()) and "go on with --resume --overwrite" in error
    assert {name: digest for name, digest in digests(out).items() if ".1/" not in name} == before
    assert "replace it with --overwrite" in refused("write", corpus.jsonl, "--out", out, *corpus.options(), code=2)
    options = corpus.options("--resume", "--overwrite")
    assert run_json("write", corpus.jsonl, "--out", out, *options)["kept_shards"] >= 2
    assert documents_of(out) == documents_of(corpus.dataset)
    assert penstock.verify(out).ok and not list(out.glob("00000"))


@contextlib.contextmanager
def small_file_system(at: Path, size: str) -> Iterator[None]:
    """A file system of its own, of `size`; skips where there may be none."""
    at.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", at], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", at], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_full_disk_keeps_what_is_finished_and_resuming_gives_the_same_bytes(corpus: Corpus, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_file_system(disk, "160k"):
        error = refused("write", corpus.jsonl, "--out", disk / "out", *corpus.options("--workers", "1"))
        kept = len(list((disk / "out").glob("0*")))
        assert kept >= 2 and "No space left on device" in error, error
        assert f": make room; nothing was published; {kept} finished shards are kept: go on with --resume" in error
        assert f"{disk}/out/" in error.split(":")[0]
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        assert (
            run_json("write", corpus.jsonl, "--out", disk / "out", *corpus.options("--resume"))["kept_shards"] == kept
        )
        assert digests(disk / "out") == digests(corpus.dataset)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_a_disk_that_is_full_at_once_says_that_nothing_is_kept(corpus: Corpus, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "disk", "8k"):
        error = refused("write", corpus.jsonl, "--out", tmp_path / "disk/out", *corpus.options("--workers", "1"))
        assert error.endswith("make room; nothing was published; no shard was finished: start again"), error


def test_a_file_that_may_not_grow_says_what_is_kept(corpus: Corpus, tmp_path: Path) -> None:
    """Any error of the output's file system, not only a full one: here a limit that the third shard meets."""
    content = [*corpus.rows[:40], {**corpus.rows[0], "text": "x = 1\n" * 40_000}]
    jsonl = write_jsonl(tmp_path / "docs.jsonl", content)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    error = refused("write", jsonl, "--out", tmp_path / "out", *corpus.options("--workers", "1"), preexec_fn=limit)
    kept = len(list((tmp_path / "out").glob("0*")))
    assert kept >= 2 and "File too large" in error
    assert error.endswith(f": nothing was published; {kept} finished shards are kept: go on with --resume"), error


def test_ctrl_c_ends_all_with_one_line_and_exit_code_130(running: Running, tmp_path: Path) -> None:
    os.killpg(running.process.pid, signal.SIGINT)
    error = running.end()
    assert running.process.returncode == 130
    assert error.count("\n") == 1 and "nothing was published" in error and "--resume" in error
    assert not (tmp_path / "out/dataset.json").exists()


def test_resuming_keeps_only_shards_made_of_the_same_input_and_options(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for change in ("input", "options"):
        content = [dict(row) for row in corpus.rows]
        options = corpus.options("--resume")
        if change == "input":
            content[-40]["text"] += "!"  # in a shard in the middle
        else:
            options[options.index(END)] = "<|begin|>"
        run("write", write_jsonl(tmp_path / "a.jsonl", content), "--out", tmp_path / change, *options)
        (tmp_path / change).rename(out)
        (out / "dataset.json").unlink()  # as if it had been killed just before
        kept = run_json("write", corpus.jsonl, "--out", out, *corpus.options("--resume"))["kept_shards"]
        shards = len(penstock.open(str(corpus.dataset)).shards)
        assert kept == 0 if change == "options" else 0 < kept < shards
        assert digests(out) == digests(corpus.dataset)
        out.rename(tmp_path / f"{change}-done")


def test_resuming_with_less_input_removes_the_shards_that_are_too_many(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run("write", corpus.jsonl, "--out", out, *corpus.options())
    (out / "dataset.json").unlink()
    part = write_jsonl(tmp_path / "part.jsonl", corpus.rows[: len(corpus.rows) // 2])
    run("write", part, "--out", out, *corpus.options("--resume"))
    run("write", part, "--out", tmp_path / "fresh", *corpus.options())
    assert digests(out) == digests(tmp_path / "fresh")


# ---- the other commands


def test_info_describes_ours_and_foreign_files_and_loads_little(corpus: Corpus, tmp_path: Path) -> None:
    dataset = penstock.open(str(corpus.dataset))
    found = run_json("info", corpus.dataset)
    assert (found["fingerprint"], found["shards"]) == (dataset.fingerprint, len(list(corpus.dataset.glob("0*"))))
    assert found["records"] == sum(len(ids) for ids, _ in documents_of(corpus.dataset))
    assert (found["kind"], found["mode"], found["layout"]) == ("penstock", "stream", "compact")
    assert f"{found['records']:,}" in run("info", corpus.dataset).stdout
    np.arange(1000, dtype="<u2").tofile(tmp_path / "tokens.bin")
    foreign = run_json("info", tmp_path / "tokens.bin", "--dtype", "u2")
    assert (foreign["kind"], foreign["records"], foreign["spans"]) == ("raw", 1000, 0)
    heavy = ("torch", "rich", "tokenizers", "pyarrow", "zstandard", "multiprocessing")
    code = (
        "import sys; from penstock._cli.main import main; main(sys.argv[1:]);"
        f"sys.exit(' '.join(name for name in {heavy} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code, "info", str(corpus.dataset)], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_show_decodes_a_window_with_its_spans(corpus: Corpus) -> None:
    found = run_json("show", corpus.dataset, "3", "--window", "700", "--tokenizer", corpus.tokenizer)["rows"][0]
    row = penstock.open(str(corpus.dataset)).windows(700)[3]
    assert found["ids"] == row["token"].tolist()
    assert [each["metadata"] for each in found["spans"]] == [span.metadata for span in row.spans]
    for each, span in zip(found["spans"], row.spans, strict=True):
        number = next(i for i, it in enumerate(corpus.rows) if it["url"] == span.metadata["url"])
        assert each["text"].strip("�") in corpus.rows[number]["text"] + END
    words = run("show", corpus.dataset, "3", "4", "--window", "700", "--tokenizer", corpus.tokenizer).stdout
    assert "window 3: 700 records, " in words and "window 4:" in words and row.spans[0].metadata["url"] in words
    assert "\x1b" not in words
    document = run_json("show", corpus.dataset, "7", "--documents", "--tokenizer", corpus.tokenizer)["rows"][0]
    assert document["text"] == corpus.rows[7]["text"] + END
    assert "there is no 99,999,999" in refused("show", corpus.dataset, "99999999", code=2)


def test_show_of_little_shows_what_there_is(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "short", {"token": "u1"}, "json") as writer:
        writer.append(token=[7, 8, 9], metadata={"a": 1})
    assert run("show", tmp_path / "short").stdout.startswith("window 0: 3 records, 1 span")
    assert "longer than the stream of 3 records" in refused("show", tmp_path / "short", "-w", "4", code=2)
    penstock.Writer(tmp_path / "empty", {"token": "u1"}, "json").commit()
    assert run("show", tmp_path / "empty").stdout == f"{tmp_path}/empty: no records: there is nothing to show\n"
    assert run("show", tmp_path / "empty", "--documents").stdout.endswith("no documents: there is nothing to show\n")
    assert run_json("show", tmp_path / "empty") == {"path": f"{tmp_path}/empty", "rows": []}
    assert "there is no window 3" in refused("show", tmp_path / "empty", "3", code=2)
    with penstock.Writer(tmp_path / "opaque", None, "json") as writer:
        writer.append({"b": 2})
    assert '{"b": 2}' in run("show", tmp_path / "opaque").stdout
    with penstock.Writer(tmp_path / "tokens", {"token": "u1"}, None) as writer:
        writer.append(token=[7])
    assert "a token stream has no documents" in refused("show", tmp_path / "tokens", "--documents", code=2)


def test_info_names_folders_that_are_no_part_of_the_dataset(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    run("combine", corpus.dataset, "--out", out)
    for name in ("old", "00077", ".partial-00001@x", ".cache"):
        (out / name).mkdir()
    (out / "README.md").write_text("a file")
    done = run("info", out)
    notes = done.stderr.splitlines()
    assert len(notes) == 3 and all(note.startswith(f"note: {out}: dataset.json does not name ") for note in notes)
    assert [name in done.stderr for name in (" old: folders", " 00077: ", " .partial-00001@x: ")] == [True] * 3
    assert ".cache" not in done.stderr and "README" not in done.stderr
    assert [f"note: {note}" for note in run_json("info", out)["notices"]] == notes
    assert list(penstock.verify(out).notices) == run_json("info", out)["notices"]


def test_addresses_are_shown_without_their_secrets() -> None:
    from penstock._places.remote import shown
    from penstock._view.describe import _notices

    address = "https://key:SECRET@host/x?X-Sig=SECRET"
    assert shown(address, "a?b#c", "s3://b/k") == "https://host/x a?b#c s3://b/k"
    assert _notices((address, "s3://b/k")) == []
    for command in (("verify", address), ("combine", address, "--out", "out"), ("convert", address, "--out", "out")):
        done = run_here([*command])
        assert done.returncode != 0 and "SECRET" not in done.stdout + done.stderr


def test_show_lets_no_control_character_reach_the_terminal(tmp_path: Path) -> None:
    with penstock.Writer(str(tmp_path / "a"), fields={"token": "u1"}, metadata="json") as writer:
        writer.append(token=[1], metadata={"x": "\x1b[2J\x9b"})
    words = run("show", tmp_path / "a", "--window", "1").stdout
    assert "\x1b" not in words and "\x9b" not in words


def test_verify_passes_whole_data_and_names_what_is_damaged(corpus: Corpus, tmp_path: Path) -> None:
    assert run_json("verify", corpus.dataset)["ok"] is True
    run("combine", corpus.dataset, "--out", tmp_path / "copy")
    for name in ("00001/stream.bin", "00002/metadata.bin"):
        data = bytearray((tmp_path / "copy" / name).read_bytes())
        data[len(data) // 2] ^= 1
        (tmp_path / "copy" / name).unlink()
        (tmp_path / "copy" / name).write_bytes(data)
    done = run("verify", tmp_path / "copy", code=1)
    assert "00001/stream.bin" in done.stdout and "00002/metadata.bin" in done.stdout
    found = run_json("verify", tmp_path / "copy", code=1)
    assert not found["ok"] and len(found["problems"]) >= 2


def test_verify_names_what_is_no_part_of_the_dataset_and_passes(corpus: Corpus, tmp_path: Path) -> None:
    run("combine", corpus.dataset, "--out", tmp_path / "copy")
    assert run("verify", tmp_path / "copy").stderr == ""
    shutil.copytree(tmp_path / "copy/00000", tmp_path / "copy/00099")
    assert "does not name 00099" in run("verify", tmp_path / "copy").stderr
    found = run_json("verify", tmp_path / "copy")
    assert found["ok"] and len(found["notices"]) == 1


def test_combine_and_convert_keep_documents(corpus: Corpus, tmp_path: Path) -> None:
    run("combine", corpus.dataset, corpus.dataset, "--out", tmp_path / "twice")
    assert documents_of(tmp_path / "twice") == documents_of(corpus.dataset) * 2
    run("convert", corpus.dataset, "--layout", "ids", "--out", tmp_path / "ids")
    assert run_json("info", tmp_path / "ids")["layout"] == "ids"
    assert run_json("info", tmp_path / "ids")["record_bytes"] == 6
    assert "6, of which 4 metadata_id" in run("info", tmp_path / "ids").stdout
    assert run_json("info", tmp_path / "ids")["fingerprint"] == penstock.open(str(corpus.dataset)).fingerprint
    assert "layout" in refused("convert", corpus.dataset, "--out", tmp_path / "x", code=2)
    words = refused("combine", corpus.dataset, tmp_path / "ids", "--out", tmp_path / "x", code=2)
    assert words.endswith("layout compact and ids: convert one of them first (`penstock convert --layout`)")


def test_exit_code_2_is_wrong_use_whichever_command_says_it(corpus: Corpus, tmp_path: Path) -> None:
    there, nowhere, file = corpus.dataset, tmp_path / "nowhere", tmp_path / "t.bin"
    np.arange(1000, dtype="<u2").tofile(file)
    before = digests(there)
    for command in (
        ["write", corpus.jsonl, *corpus.options()],
        ["combine", there],
        ["convert", there, "--layout", "ids"],
    ):
        words = refused(*command, "--out", there, code=2)
        assert "holds a dataset already" in words and "--out" in words and "overwrite=" not in words
    for command in (["info"], ["show"], ["verify"], ["bench"], ["combine", "--out", "x"]):
        assert refused(*command, nowhere, code=2).startswith(f"{nowhere}: no such f")
    for command in (["verify"], ["combine", "--out", "x"], ["convert", "--layout", "ids", "--out", "x"]):
        assert "no dataset of penstock" in refused(*command, file, code=2)
    assert refused("info", file, code=2).endswith("give the dtype, u2 (GPT-2 and other vocabularies up to 65,536), u4 "
                                                  "(larger ones), or a structured one")  # fmt: skip
    words = refused("info", file, "--dtype", "u17", code=2)
    assert words.startswith("--dtype u17: no type that NumPy knows") and "lists" not in words
    assert "say their type" in refused("info", there, "--dtype", "u2", code=2)
    assert "a token stream has no documents: read it in windows" in refused(
        "show", file, "--dtype", "u2", "--documents", code=2
    )
    assert "'uniform', 'sequential'" in refused("bench", there, "--order", "blocks", code=2)
    assert digests(there) == before and not Path("x").exists()


def test_a_damaged_or_unfinished_dataset_is_exit_code_1_or_says_how_to_go_on(corpus: Corpus, tmp_path: Path) -> None:
    run("combine", corpus.dataset, "--out", tmp_path / "copy")
    manifest = tmp_path / "copy/dataset.json"
    data = manifest.read_bytes()
    manifest.write_bytes(data[:-9] + b"x" + data[-8:])
    assert "dataset.json" in refused("info", tmp_path / "copy")
    manifest.unlink()
    assert "--resume" in refused("info", tmp_path / "copy", code=2)
    manifest.write_bytes(data)
    (tmp_path / "copy/00001/stream.bin").unlink()
    assert "00001/stream.bin" in refused("combine", tmp_path / "copy", "--out", tmp_path / "x")


def test_a_tilde_and_counts_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.jsonl").write_text('{"ids": [1]}\n')
    run("write", "~/a.jsonl", "--ids-column", "ids", "--metadata", "none", "--out", "~/a")
    assert run("show", "~/a", "--window", "1").stdout.startswith("window 0: 1 record, 0 spans")
    assert run("combine", "~/a", "--out", "~/b").stdout == "~/b: 1 record, 0 spans, 1 shard\n"
    assert run("verify", "~/b").stdout.endswith("all as written\n")


def test_show_gives_the_bytes_of_a_codec_that_only_the_writer_knows(tmp_path: Path) -> None:
    codec = penstock.codecs.register("upper", lambda text: text.upper().encode(), lambda view: bytes(view).decode())
    with penstock.Writer(tmp_path / "a", fields={"token": "u1"}, metadata=codec) as writer:
        writer.append(token=[1], metadata="abc")
    shown = run_json("show", tmp_path / "a", "--window", "1", env=dict(os.environ))["rows"][0]
    assert shown["spans"][0]["metadata"] == "ABC"


def test_bench_measures_what_the_loader_reads(corpus: Corpus) -> None:
    found = run_json("bench", corpus.dataset, "--window", "128", "--batch-size", "4", "--seconds", "0.3")
    assert found["batches"] > 10 and found["seconds"] >= 0.3 and found["open_ms"] > 0 and found["first_batch_ms"] > 0
    expected = found["batches_per_second"] * 4 * 128 * 2 / 1e6
    assert found["megabytes_per_second"] == pytest.approx(expected, rel=0.01)
    told = run("bench", corpus.dataset, "--window", "128", "--seconds", "0.1", "--reader", "pread").stdout
    assert "windows" in told and "pread, " in told
    told = run("bench", corpus.dataset, "--window", "128", "--seconds", "0.1", "--reader", "mmap", "--json").stdout
    assert json.loads(told)["reader"] == "mmap"
    assert "nan is no time" in run("bench", corpus.dataset, "--seconds", "nan", code=2).stderr


# ---- --json of every command


def json_alone(*arguments: object, code: int = 0) -> Any:
    """What a command says with --json: one object on one line, and nothing on standard error unless it failed."""
    done = run(*arguments, "--json", code=code)
    assert done.stdout.endswith("}\n") and done.stdout.count("\n") == 1
    assert done.stderr == "" if code == 0 else done.stderr.count("\n") == 1
    found = json.loads(done.stdout)
    if code != 0 and "error" in found:
        assert done.stderr == f"penstock: {found['error']}\n"
    return found


def test_json_of_write(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = json_alone("write", corpus.jsonl, "--out", out, *corpus.options("--workers", "2"))
    dataset = penstock.open(out)
    assert (found["path"], found["documents"], found["tokens"]) == (str(out), len(corpus.rows), dataset.records)
    assert (found["shards"], found["kept_shards"], found["workers"]) == (len(dataset.shards), 0, 2)
    assert found["bytes"] == sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert found["seconds"] > 0 and found["text_bytes"] > 0
    dry = json_alone("write", corpus.jsonl, "--out", tmp_path / "dry", *corpus.options("--dry-run"))
    assert set(dry) == {"documents", "sample", "estimated", "rests_on"} and len(dry["documents"]) == 3
    failed = json_alone("write", corpus.jsonl, "--out", out, *corpus.options(), code=2)
    assert failed["exit_code"] == 2 and "holds a dataset already" in failed["error"]


def test_json_of_info(corpus: Corpus, tmp_path: Path) -> None:
    dataset = penstock.open(corpus.dataset)
    found = json_alone("info", corpus.dataset)
    assert found == {
        "path": str(corpus.dataset), "kind": "penstock", "mode": "stream", "layout": "compact",
        "fields": {"token": "uint16"}, "record_bytes": 2, "records": dataset.records, "spans": len(corpus.rows),
        "shards": len(dataset.shards), "size_bytes": sum(shard.size_bytes for shard in dataset.shards),
        "columns": {}, "codec": "json", "tokenizer": dataset.tokenizer, "fingerprint": dataset.fingerprint,
        "notices": [],
    }  # fmt: skip
    failed = json_alone("info", tmp_path / "nowhere", code=2)
    assert failed["exit_code"] == 2 and failed["error"].startswith(f"{tmp_path / 'nowhere'}: no such f")


def test_json_of_show(corpus: Corpus) -> None:
    found = json_alone("show", corpus.dataset, "3", "4", "--window", "700")
    view = penstock.open(corpus.dataset).windows(700)
    assert found["path"] == str(corpus.dataset) and [row["index"] for row in found["rows"]] == [3, 4]
    for row in found["rows"]:
        expected = view[row["index"]]
        assert (row["records"], row["ids"]) == (700, expected["token"].tolist())
        for each, span in zip(row["spans"], expected.spans, strict=True):
            assert (each["id"], each["metadata"]) == (list(span.id), span.metadata)
            assert (each["start"], each["stop"], each["offset"]) == (span.start, span.stop, span.offset)
            assert (each["begins"], each["ends"]) == (span.begins, span.ends)
    failed = json_alone("show", corpus.dataset, "99999999", code=2)
    assert failed["exit_code"] == 2 and "there is no 99,999,999" in failed["error"]


def test_json_of_verify(corpus: Corpus, tmp_path: Path) -> None:
    found = json_alone("verify", corpus.dataset)
    assert (found["path"], found["ok"], found["problems"]) == (str(corpus.dataset), True, [])
    assert found["bytes"] > 2 * penstock.open(corpus.dataset).records
    assert set(found) == {"path", "ok", "bytes", "problems", "notices"} and found["notices"] == []
    json_alone("combine", corpus.dataset, "--out", tmp_path / "copy")
    stream = tmp_path / "copy/00001/stream.bin"
    data = bytearray(stream.read_bytes())
    data[0] ^= 1
    stream.unlink()  # a hard link of the corpus
    stream.write_bytes(data)
    damaged = run("verify", tmp_path / "copy", "--json", code=1)
    found = json.loads(damaged.stdout)
    assert damaged.stdout.count("\n") == 1 and found["ok"] is False
    assert any("00001/stream.bin" in problem for problem in map(str, found["problems"]))
    assert json_alone("verify", tmp_path / "nowhere", code=2)["exit_code"] == 2


@pytest.mark.parametrize("command", ["combine", "convert", "shuffle"])
def test_json_of_what_makes_a_dataset_of_others(corpus: Corpus, tmp_path: Path, command: str) -> None:
    options = {
        "combine": [corpus.dataset],
        "convert": ["--layout", "ids"],
        "shuffle": ["--seed", "1", "--documents"],
    }[command]
    out = tmp_path / "out"
    found = json_alone(command, corpus.dataset, *options, "--out", out)
    assert found == json_alone("info", out)
    times = 2 if command == "combine" else 1
    assert (found["path"], found["spans"]) == (str(out), times * len(corpus.rows))
    assert found["layout"] == ("ids" if command == "convert" else "compact")
    failed = json_alone(command, corpus.dataset, *options, "--out", out, code=2)
    assert failed["exit_code"] == 2 and "holds a dataset already" in failed["error"]


def test_append_adds_shards_and_says_what_does_not_go(corpus: Corpus, tmp_path: Path) -> None:
    out, more, ids = tmp_path / "out", tmp_path / "more", tmp_path / "ids"
    run("combine", corpus.dataset, "--out", out)
    run("combine", corpus.dataset, "--out", more)
    shards = len(penstock.open(out).shards)
    done = run("append", out, more, more)
    assert done.stdout == (
        f"{out}: {3 * penstock.open(more).records:,} records, {3 * len(corpus.rows):,} spans, {3 * shards} shards\n"
    )
    assert documents_of(out) == 3 * documents_of(more) and run("verify", out)
    before = digests(out)
    run("append", out, more, "--resume")  # it ends with them already
    assert digests(out) == before
    run("convert", corpus.dataset, "--layout", "ids", "--out", ids)
    words = refused("append", out, ids, code=2)
    assert words.startswith(f"cannot append {out} and {ids}: layout compact and ids: convert one of them first")
    assert refused("append", out, tmp_path / "nowhere", code=2).startswith(f"{tmp_path / 'nowhere'}: no such f")
    assert refused("append", tmp_path / "nowhere", more, code=2).startswith(f"{tmp_path / 'nowhere'}: no such f")
    assert not (tmp_path / "nowhere").exists()
    assert "Missing argument 'MORE...'" in refused("append", out, code=2)
    assert "is not written to" in refused("append", "https://example.org/corpus", more, code=2)
    assert digests(out) == before
    found = json_alone("append", out, more)
    assert found == json_alone("info", out) and found["shards"] == 4 * shards


def test_json_of_pack(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "table"
    found = json_alone("pack", corpus.dataset, "--window", "512", "--out", out)
    packing = penstock.open(corpus.dataset).packed(512).packing
    assert {name: found[name] for name in packing._fields} == packing._asdict()
    assert (found["path"], found["window"], found["fit"]) == (str(out), 512, "best")
    failed = json_alone("pack", corpus.dataset, "--window", "512", "--out", out, code=2)
    assert failed["exit_code"] == 2 and "there already" in failed["error"]


def test_json_of_bench(corpus: Corpus) -> None:
    options = ["--batch-size", "4", "--seconds", "0.1", "--threads", "1"]
    found = json_alone("bench", corpus.dataset, "--window", "128", *options)
    assert (found["path"], found["observations"], found["window"]) == (str(corpus.dataset), "windows", 128)
    assert (found["batch_size"], found["threads"]) == (4, 1) and found["reader"] in ("uring", "pread")
    assert found["observations_per_second"] == pytest.approx(4 * found["batches_per_second"], rel=1e-3)
    assert found["records_per_second"] == pytest.approx(128 * found["observations_per_second"], rel=1e-3)
    documents = json_alone("bench", corpus.dataset, "--documents", *options)
    assert (documents["observations"], documents["window"]) == ("documents", None)
    failed = json_alone("bench", corpus.dataset, "--order", "blocks", code=2)
    assert failed["exit_code"] == 2 and "'uniform', 'sequential'" in failed["error"]


def test_every_command_has_its_test_of_json() -> None:
    from penstock._cli.main import cli

    # test_query, test_cache, …
    of_others = {"annotate", "cache", "commit", "query", "export", "import", "mix", "trace", "view"}
    here = set(cli.list_commands(None)) - of_others
    assert sorted(here) == [
        "append",
        "bench",
        "combine",
        "convert",
        "info",
        "pack",
        "show",
        "shuffle",
        "verify",
        "write",
    ]


def test_progress_is_shown_on_a_terminal_and_nowhere_else(corpus: Corpus, tmp_path: Path) -> None:
    assert run("write", corpus.jsonl, "--out", tmp_path / "quiet", *corpus.options()).stderr == ""
    shown, printed = on_a_terminal([str(corpus.jsonl), "--out", str(tmp_path / "shown"), *corpus.options()])
    assert "writing" in shown and "100%" in shown
    # One unit: bytes of text, of which 1,024 make the next one.
    assert re.search(r"\d (?:[KM]i)?B/s of text", shown) and re.search(r"\d (?:[KM]i)?B/s of text", printed)
    assert "MB/s" not in shown + printed


def test_progress_from_standard_input_shows_bytes_and_rate(corpus: Corpus, tmp_path: Path) -> None:
    arguments = ["-", "--format", "jsonl", "--out", str(tmp_path / "shown"), *corpus.options()]
    pipe = subprocess.Popen(["cat", corpus.jsonl], stdout=subprocess.PIPE)
    with pipe:
        shown, _ = on_a_terminal(arguments, stdin=pipe.stdout)
    done = corpus.jsonl.stat().st_size / 1024
    assert f" {done:,.1f} KiB " in shown and "%" not in shown and re.search(r"[1-9]\S* [KM]iB/s of text", shown), shown
