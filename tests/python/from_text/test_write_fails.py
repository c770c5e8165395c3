"""Runs of `penstock write` that end by what nobody planned: a full disk, dead workers, exceptions of libraries.

One clear error says what happened; nothing is published that is not whole; --resume goes on to the same bytes.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import penstock
import pytest
from _dirty import files
from _disks import grow, small_file_system
from _text_runs import ENGINES, PROGRAM, assert_goes_on, children, command, finished, inputs, start, until, write
from penstock._from.engines import gigatoken, reference

needs_disk = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")


def run(*arguments: str, code: int) -> str:
    """What the command said, on one line where it failed."""
    done = subprocess.run([*PROGRAM, "write", *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    assert not code or done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("penstock: ").strip()


# ---- a full disk


@needs_disk
@pytest.mark.parametrize("engine", ENGINES)
def test_a_disk_that_is_full_in_the_midst_of_it(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path, engine: str
) -> None:
    disk, shards = tmp_path / "disk", len(list(made[engine].glob("0*")))
    with small_file_system(disk, "640k"):
        error = run(*command(text, disk / "out", tokenizer_file, engine), code=1)
        kept = finished(disk / "out")
        assert 2 <= kept < shards - 2
        assert error.startswith(f"{disk}/out/") and "No space left on device: make room; nothing was publ" in error
        assert error.endswith(f"nothing was published; {kept} finished shards are kept: go on with --resume"), error
        error = run(*command(text, disk / "out", tokenizer_file, engine, "--resume"), code=1)  # it is as full
        assert "No space left on device" in error and finished(disk / "out") >= kept
        grow(disk, "64m")
        assert_goes_on(text, disk / "out", tokenizer_file, engine, made[engine])


@needs_disk
def test_a_disk_that_is_full_at_any_moment(tmp_path: Path) -> None:
    """Of ids, which are quick: disks of tens of sizes, so that there is no room for each kind of file."""
    disk, expected, lines = tmp_path / "disk", tmp_path / "expected", tmp_path / "ids.jsonl"
    lines.write_text("".join(f'{{"ids": {list(range(n % 300))}, "n": {n}}}\n' for n in range(600)))
    options: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "metadata": ["n"], "shard_size": 100_000}
    penstock.write(lines, expected, **options)
    failed, named = 0, set()
    with small_file_system(disk, "64m"):
        for pages in range(4, 100, 2):
            grow(disk, f"{pages * 4}k")
            out = disk / f"out{pages}"
            try:
                penstock.write(lines, out, workers=2, **options)
                break
            except penstock.IoError as error:
                assert error.errno == errno.ENOSPC and error.filename and str(error).startswith(str(disk)), error
                assert "make room; nothing was published; " in str(error)
                named.add(Path(str(error).split(":")[0]).name)
            assert not (out / "dataset.json").exists()
            failed += 1
            kept = finished(out)
            grow(disk, "64m")
            assert penstock.write(lines, out, workers=2, resume=True, **options).kept_shards == kept
            assert files(out) == files(expected)
            for each in sorted(out.rglob("*"), reverse=True):
                each.rmdir() if each.is_dir() else each.unlink()
            out.rmdir()
    assert failed >= 10 and len(named) >= 2, (failed, named)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_limit_on_the_size_of_files(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path, engine: str
) -> None:
    out = tmp_path / "out"
    code = """
    import resource, sys
    from penstock._cli.main import main
    resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    sys.exit(main(sys.argv[1:]))
    """
    given = command(text, out, tokenizer_file, engine)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), "write", *given], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"penstock: {out}/") and "File too large: nothing was published" in done.stderr
    assert_goes_on(text, out, tokenizer_file, engine, made[engine])


# ---- workers that die


@pytest.mark.parametrize("worker", [0, 1])
def test_a_worker_process_that_is_killed(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path, worker: int
) -> None:
    out = tmp_path / "out"
    process = start(*command(text, out, tokenizer_file, "tokenizers"))
    with process:
        until(lambda: (out / "00001").exists(), process)
        killed = children(process.pid)[worker]
        os.kill(killed, signal.SIGKILL)
        error = process.communicate(timeout=20)[1]
    assert process.returncode == 1 and error.count("\n") == 1, error
    assert (
        f"worker {worker} (process {killed}) was killed by SIGKILL (out of memory? then use fewer --workers)" in error
    )
    assert re.search(r"nothing was published; \d+ finished shards are kept: go on with --resume$", error), error
    assert_goes_on(text, out, tokenizer_file, "tokenizers", made["tokenizers"])


def test_a_worker_process_that_has_no_memory(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path
) -> None:
    """Of tokenizers, which ends its process; that of the command has what it needs."""
    out = tmp_path / "out"
    process = start(*command(text, out, tokenizer_file, "tokenizers"))
    with process:
        until(lambda: (out / "00001").exists(), process)
        worker = children(process.pid)[0]
        size = int(Path(f"/proc/{worker}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        try:
            subprocess.run(["prlimit", "--pid", str(worker), f"--as={size // 2}"], check=True, capture_output=True)
        except FileNotFoundError:
            process.kill()
            pytest.skip("needs prlimit")
        error = process.communicate(timeout=60)[1]
    assert process.returncode in (0, 1), error  # memory that it has may be enough
    if process.returncode:
        last = error.splitlines()[-1]  # the library has said something before
        assert last.startswith("penstock: worker 0 (process ") and last.endswith("go on with --resume"), error
        assert_goes_on(text, out, tokenizer_file, "tokenizers", made["tokenizers"])


def test_a_thread_that_has_no_memory(tmp_path: Path) -> None:
    """Of ids of documents of which one is larger than what is left of memory."""
    lines, out = tmp_path / "ids.jsonl", tmp_path / "out"
    with lines.open("w") as file:
        for n in range(400):
            file.write(f'{{"ids": {list(range(n % 300))}}}\n')
        file.write(f'{{"ids": [{"7," * 12_000_000}7]}}\n')
    options = ["--ids-column", "ids", "--dtype", "u2", "--shard-size", "100000", "--workers", "2"]
    code = """
    import resource, sys
    from pathlib import Path
    from penstock._cli.main import main
    import penstock._from.text.writing, penstock._make.threads
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + (200 << 20), -1))
    sys.exit(main(sys.argv[1:]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), "write", str(lines), "--out", str(out), *options],
        capture_output=True, text=True, timeout=300, env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )  # fmt: skip
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert "emory" in done.stderr and "nothing was published; " in done.stderr, done.stderr
    given: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "shard_size": 100_000, "workers": 2}
    assert not (out / "dataset.json").exists()
    assert penstock.write(lines, out, resume=True, **given).documents == 401
    penstock.write(lines, tmp_path / "expected", **given)
    assert files(out) == files(tmp_path / "expected")


# ---- exceptions of libraries


class Broken:
    """The encoder of a library, which raises `error` at a text with `word`."""

    def __init__(self, encoder: Any, method: str, word: bytes, error: BaseException) -> None:
        self._encoder, self._method, self._word, self._error = encoder, method, word, error

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._encoder, name)
        if name != self._method:
            return found

        def encode(texts: Any, **options: Any) -> Any:
            several = texts.to_list() if hasattr(texts, "to_list") else texts
            if any(self._word in (each if isinstance(each, bytes) else each.encode()) for each in several):
                raise self._error
            return found(texts, **options)

        return encode


WORD = "needle-in-the-text"


@pytest.fixture
def with_needle(text: Path, tmp_path: Path) -> Path:
    """The text with one document more, in the midst of it."""
    folder = tmp_path / "needle"
    folder.mkdir()
    for each in inputs(text):
        lines = each.read_text().splitlines(keepends=True)
        if each.name == "b.jsonl":
            lines.insert(len(lines) // 2, json.dumps({"text": f"a {WORD}", "n": -1}) + "\n")
        (folder / each.name).write_text("".join(lines))
    return folder


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("error", [SystemError("no result"), MemoryError(), KeyError("x")], ids=repr)
def test_a_fast_engine_that_raises_whatever_it_likes(
    with_needle: Path, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    workers: int, error: BaseException,
) -> None:  # fmt: skip
    pytest.importorskip("gigatoken")
    load = gigatoken.Gigatoken._load
    monkeypatch.setattr(
        gigatoken.Gigatoken, "_load", lambda self: Broken(load(self), "encode_batch", WORD.encode(), error)
    )
    out, expected = tmp_path / "out", tmp_path / "expected"
    write(with_needle, expected, tokenizer_file, tokenizer_engine="tokenizers")
    words = r"gigatoken \S+ cannot encode: "
    if isinstance(error, MemoryError):  # no fault of the engine
        kind = (MemoryError, RuntimeError)
        with pytest.raises(kind):
            write(with_needle, out, tokenizer_file, workers=workers)
        monkeypatch.undo()
        assert write(with_needle, out, tokenizer_file, workers=workers, resume=True).kept_shards > 2
        return
    with pytest.raises(ValueError, match=words):
        write(with_needle, out, tokenizer_file, workers=workers, tokenizer_engine="gigatoken")
    done = write(with_needle, out, tokenizer_file, workers=workers, overwrite=True)
    assert done.fell_back and re.search(words, done.slow_because) and files(out) == files(expected)


@pytest.mark.parametrize("workers", [1, 2])
def test_tokenizers_that_raise_name_the_document_and_what_is_finished_stays(
    with_needle: Path, tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """In threads: a process would not have the patch."""
    from penstock._from.text.tokenizing import DocumentTokenizer

    out, init = tmp_path / "out", reference.Reference.__init__

    def broken(self: Any, tokenizer: Any, post_processor: bool) -> None:
        init(self, tokenizer, post_processor)
        self._tokenizer = Broken(tokenizer, "encode_batch_fast", WORD.encode(), SystemError("no result"))

    with monkeypatch.context() as patch:
        patch.setattr(reference.Reference, "__init__", broken)
        patch.setattr(DocumentTokenizer, "shares_threads", True)
        with pytest.raises(ValueError, match=r"document [\d,]+ .* no result") as error:
            write(with_needle, out, tokenizer_file, workers=workers, tokenizer_engine="tokenizers")
    assert "\n" not in str(error.value) and finished(out) > 2
    expected = tmp_path / "expected"
    write(with_needle, expected, tokenizer_file, tokenizer_engine="tokenizers")
    assert_goes_on(with_needle, out, tokenizer_file, "tokenizers", expected)


def test_an_exception_in_the_thread_that_reads_ahead(
    text: Path, made: dict[str, Path], tokenizer_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock._from.text import documents

    out, calls, split = tmp_path / "out", [0], documents._native.split_lines

    def broken(*arguments: Any) -> Any:
        calls[0] += 1
        if calls[0] == 8:
            raise MemoryError("a block of lines")
        return split(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(documents._native, "split_lines", broken)
        with pytest.raises(MemoryError, match="a block of lines: nothing was published; "):
            write(text, out, tokenizer_file, workers=2)
    assert_goes_on(text, out, tokenizer_file, "auto", made["gigatoken"])
