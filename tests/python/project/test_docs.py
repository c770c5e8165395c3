"""Every code block of README.md and docs/ is run, or held against the thing that makes it true.

- `python`: the blocks of a page run one after the other in one process; one with `title="train.py"` is written to that
  file instead.
- `console`: the commands of a page run one after the other in the same folder, after its Python blocks, and must print
  what the page shows. `penstock` is this one; what else the folder holds, `inputs` makes.
- `sh`: commands without output, whose options are checked only.
- `cpp`, `cmake`: parts of examples/cpp, which tests/python/project/test_cpp.py builds and runs.
- `text`: a picture or the content of a file; see TEXT_BLOCKS.
"""

from __future__ import annotations

import ast
import gzip
import importlib
import inspect
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import penstock
import pytest
from _forks import Forks, forks
from _provoked import PROVOKED, message
from _servers import moto

ROOT = Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
END = "<|endoftext|>"


class Block(NamedTuple):
    page: str
    line: int
    language: str
    title: str
    body: str

    def name(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    """README.md, loading.md, api/loader.md."""
    docs = ROOT / "docs"
    return page.relative_to(docs).as_posix() if page.is_relative_to(docs) else page.name


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks, those without a language too."""
    found: list[Block] = []
    fence, start, info, body = "", 0, "", [""]
    for number, line in enumerate(page.read_text().splitlines(), 1):
        opening = re.match(r"\s*(`{3,}|~{3,})(.*)$", line)
        if not fence and opening:
            fence, start, info, body = opening[1], number, opening[2].strip(), []
        elif fence and line.strip() == fence:
            title = re.search(r'title="([^"]*)"', info)
            language = info.split(" ")[0]
            found.append(Block(name_of(page), start, language, title[1] if title else "", "\n".join(body) + "\n"))
            fence = ""
        elif fence:
            body.append(line)
    assert not fence, f"{name_of(page)}:{start}: this block does not end"
    return found


BLOCKS = {page: blocks_of(page) for page in PAGES}


def blocks(language: str) -> list[Block]:
    return [block for found in BLOCKS.values() for block in found if block.language == language]


# ---- what the pages' commands find


def text_of(number: int) -> str:
    lines = [f"The square of {n} is {n * n}, its cube {n**3}." for n in range(number, number + 1 + number * 7 % 13)]
    return "\n".join([f"Numbers from {number} on", *lines, ""])


def rows(first: int, stop: int) -> str:
    """Documents as lines of JSONL, the same on every machine."""
    documents = (
        {"text": text_of(n), "url": f"numbers/{n}", "date": f"2024-01-{n % 28 + 1:02}"} for n in range(first, stop)
    )
    return "".join(json.dumps(each) + "\n" for each in documents)


def train_tokenizer(path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = byte_level(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=[END], initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(map(text_of, range(200)), trainer)
    tokenizer.save(str(path))


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages' commands name."""
    zstandard, pyarrow = pytest.importorskip("zstandard"), pytest.importorskip("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    folder = tmp_path_factory.mktemp("inputs")
    train_tokenizer(folder / "tokenizer.json")
    (folder / "docs.jsonl").write_text(rows(0, 400))
    (folder / "docs.jsonl.gz").write_bytes(gzip.compress(rows(0, 400).encode()))
    (folder / "docs").mkdir()
    for part in range(2):
        packed = zstandard.compress(rows(part * 200, part * 200 + 200).encode())
        (folder / "docs" / f"part-{part}.jsonl.zst").write_bytes(packed)
    (folder / "src" / "core").mkdir(parents=True)
    for name in ("main.py", "core/cursor.py"):
        (folder / "src" / name).write_text(f'"""{name}"""\n')
    parquet.write_table(pyarrow.table({"input_ids": [[1, 2, 3], [7]], "n": [0, 1]}), folder / "ids.parquet")
    (folder / "wide.jsonl").write_text('{"ids": [1, 2, 3]}\n{"ids": [7, 128256]}\n')
    (folder / "latin1.jsonl").write_bytes('{"text": "café"}\n'.encode("latin-1"))
    np.arange(10_000, dtype="<u2").tofile(folder / "tokens.bin")
    view = penstock.open(folder / "tokens.bin", dtype="u2").windows(64, lookahead=1)
    state = penstock.Job(view, global_batch_size=4, seed=7).state_dict(12)
    (folder / "state.json").write_text(json.dumps(state))
    of_tokens = {"path": "tokens.bin", "dtype": "u2", "window": 64}
    stages = [{"weights": {"web": 3, "code": 1}}, {"at_tokens": 32_000}]
    mixture = {"sources": {"web": of_tokens, "code": of_tokens}, "stages": stages, "epochs": {"code": 2}, "end": 1000}
    (folder / "mix.json").write_text(json.dumps(mixture))
    labels = [f"{'de' if n % 3 == 0 else 'en'},{n / 4}" for n in range(400)]
    (folder / "labels.csv").write_text("\n".join(["language,score", *labels, ""]))
    np.save(folder / "lengths.npy", np.arange(400) * 7 % 13 + 1)
    for number in (1, 2):
        make_plate(folder / f"plate{number}.h5ad", number)
    for suffix in ("bin", "idx"):
        golden = ROOT / "tests" / "golden" / "megatron" / f"u2_text_document.{suffix}"
        shutil.copy(golden, folder / f"megatron.{suffix}")
    return folder


def make_plate(path: Path, number: int) -> None:
    """300 cells of 50 genes as AnnData."""
    anndata, pandas = pytest.importorskip("anndata"), pytest.importorskip("pandas")
    sparse = pytest.importorskip("scipy.sparse")
    counts = sparse.random(300, 50, 0.2, format="csr", dtype="f4", random_state=number)
    counts.data = np.ceil(counts.data * 9)
    cells = [f"cell {number}-{at}" for at in range(300)]
    obs = {name: pandas.Categorical(list("ABC") * 100) for name in ("drug", "cell_line", "donor")}
    made = anndata.AnnData(counts, obs=pandas.DataFrame(obs, index=cells))
    made.obsm["X_pca"] = np.zeros((300, 5), "f4")
    made.uns["neighbors"] = {"metric": "euclidean"}
    made.write_h5ad(path)


# ---- running a page


class Step(NamedTuple):
    command: str
    shown: str


def steps_of(block: Block) -> list[Step]:
    """The commands of a console block, each with the output that the page shows; `\\` at a line's end goes on."""
    steps: list[Step] = []
    goes_on = False
    for line in block.body.splitlines():
        if goes_on:
            steps[-1] = Step(f"{steps[-1].command}\n{line}", "")
        elif line.startswith("$ "):
            steps.append(Step(line[2:], ""))
        else:
            assert steps, f"{block.name()}: begins with output: a console block begins with $ and a command"
            steps[-1] = steps[-1]._replace(shown=f"{steps[-1].shown}{line}\n")
            continue
        goes_on = line.endswith("\\")
    return steps


def as_run(command: str) -> str:
    """`make demo` and `make test` take minutes and install packages: that the targets are there is what is seen here.
    CI calls `make test`, of which tests/python/project/test_demo.py, the whole demo made small, is a part."""
    program, *arguments = shlex.split(command, comments=True)
    return shlex.join(["make", "-n", "-C", str(ROOT), *arguments]) if program == "make" else command


# What differs from machine to machine and from run to run. Nothing else may.
VARYING = [
    (re.compile(r"\b(?:\d[\d,]* h )?(?:\d+ min )?\d[\d,]*(?:\.\d+)? (?:s|ms)(?=\W|$)"), "<time>"),
    (re.compile(r"\b\d[\d,]*(?:\.\d+)? (?:[KMG]i)?B/s"), "<rate> B/s"),
    (re.compile(r"\b\d[\d,]*(?:\.\d+)? (?=(?:tokens|records|batches|cells)?/s)"), "<rate> "),
    (re.compile(r"\b\d+%(?= of the workers' time)"), "<share>"),
    (re.compile(r"(?<=\S) {2,}"), "  "),  # columns are as wide as their numbers; test_cli.py looks at them
]


def comparable(output: str) -> str:
    lines = [line.rstrip() for line in output.splitlines()]
    for pattern, name in VARYING:
        lines = [pattern.sub(name, line) for line in lines]
    return "".join(f"{line}\n" for line in lines)


def is_shown(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; "…" stands for part of a line, or alone on one for any lines."""
    pattern = ""
    for line in comparable(shown).splitlines():
        is_gap = line.strip("│ ") == "…"
        pattern += r"(?:.*\n)*?" if is_gap else ".*?".join(map(re.escape, line.split("…"))) + r"\n"
    return re.fullmatch(pattern, comparable(printed)) is not None


def environment(folder: Path) -> dict[str, str]:
    """With this `penstock` as a command, and torchrun of this Python."""
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "penstock"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m penstock "$@"\n')
    program.chmod(0o755)
    path = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {**os.environ, "PATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


@pytest.fixture(scope="session")
def programs() -> Iterator[Forks]:
    with forks("penstock", "torch", "pyarrow.parquet", "anndata") as found:
        yield found


def run_python(found: list[Block], folder: Path, programs: Forks) -> None:
    for block in found:
        if block.title:
            (folder / block.title).write_text(block.body)
    # In a process of its own, as a reader would try it. Blank lines, so that a traceback has the page's line numbers.
    program, line = "", 1
    for block in found:
        if not block.title:
            program += "\n" * (block.line + 1 - line) + block.body
            line = block.line + 1 + block.body.count("\n")
    (folder / "page.py").write_text(program)
    done = programs.run(["page.py"], folder)
    assert done.returncode == 0, f"{found[0].page} (lines as on the page):\n{done.stderr}"


def ended_by_torch(block: Block, done: subprocess.CompletedProcess[str]) -> bool:
    """A rank under DistributedDataParallel was ended as Python shut down, all steps done: see docs/errors.md."""
    of_page = [each.body for each in blocks("python") if each.page == block.page]
    words = ("terminate called without an active exception", "exitcode  : -6")
    return "DistributedDataParallel" in "".join(of_page) and all(each in done.stderr for each in words)


def run_console(found: list[Block], folder: Path, variables: dict[str, str]) -> None:
    for block in found:
        for step in steps_of(block):
            command = ["bash", "-o", "pipefail", "-c", as_run(step.command)]
            done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300)
            said = (
                f"{block.name()}: $ {step.command}\nexit code {done.returncode}, printed:\n{done.stdout}{done.stderr}"
            )
            is_refused = any(line.startswith("penstock: ") for line in step.shown.splitlines())
            assert (done.returncode != 0) == is_refused or ended_by_torch(block, done), said
            if step.shown:
                # What torch warns of on standard error is the machine's business.
                printed = done.stdout if step.command.startswith("torchrun ") else done.stdout + done.stderr
                assert is_shown(step.shown, printed), f"{said}\nbut the page shows:\n{step.shown}"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The bucket that docs/remote.md reads, as processes find it by their environment."""
    with penstock.Writer(tmp_path / "bucket" / "fineweb", {"token": "u2"}, metadata="json") as writer:
        for number in range(100):
            writer.append(token=np.arange(number * 7 % 300), metadata={"number": number})
    with moto({"corpora": tmp_path / "bucket"}, tmp_path / "moto.log") as address:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        yield


def put_foreign_files(folder: Path) -> None:
    """The files that docs/coming-from.md opens: each package wrote its own (tests/golden)."""
    golden = ROOT / "tests" / "golden"
    for name, source in {"mds": "mds/beside", "litdata": "litdata/numpy", "rows": "huggingface/plain"}.items():
        shutil.copytree(golden / "foreign" / source, folder / name)
    shutil.copy(golden / "foreign" / "webdataset" / "npy.tar", folder / "samples.tar")
    for suffix in ("bin", "idx"):
        shutil.copy(golden / "megatron" / f"u2_text_document.{suffix}", folder / f"corpus_text_document.{suffix}")


@pytest.fixture
def corpus(hub: Any, inputs: Path) -> None:
    """The dataset of the Hub that docs/recipes.md reads."""
    arrow, parquet = pytest.importorskip("pyarrow"), importlib.import_module("pyarrow.parquet")
    files = {"README.md": b"# FineWeb-Edu"}
    for name, first, stop in (
        *((f"sample/10BT/00{n}_00000.parquet", n * 200, n * 200 + 200) for n in range(2)),
        *((f"data/CC-MAIN-20{year}-10/00{n}_00000.parquet", 0, 9) for year in (13, 24) for n in range(2)),
    ):
        table = arrow.Table.from_pylist([json.loads(line) for line in rows(first, stop).splitlines()])
        parquet.write_table(table, buffer := io.BytesIO())
        files[name] = buffer.getvalue()
    hub.dataset("HuggingFaceFW/fineweb-edu", files)


@pytest.mark.parametrize(
    "page",
    [page for page, found in BLOCKS.items() if any(block.language in ("python", "console") for block in found)],
    ids=name_of,
)
def test_what_a_page_tells_to_run_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, request: Any, programs: Forks
) -> None:
    """Over 5 seconds for pages whose commands have workers, or train under torchrun: processes of their own each."""
    folder = tmp_path / "page"
    folder.mkdir()
    if page.name == "README.md":  # the files of whoever reads it
        (folder / "tokens").mkdir()
        np.arange(1_500_000, dtype="<u2").tofile(folder / "tokens" / "train.bin")
    if page.name == "remote.md":
        request.getfixturevalue("bucket")
    if page.name == "recipes.md":
        request.getfixturevalue("corpus")
    if page.name == "coming-from.md":
        put_foreign_files(folder)
    python = [block for block in BLOCKS[page] if block.language == "python"]
    console = [block for block in BLOCKS[page] if block.language == "console"]
    if python:
        run_python(python, folder, programs)
    if console:
        shutil.copytree(request.getfixturevalue("inputs"), folder, dirs_exist_ok=True)
        run_console(console, folder, environment(tmp_path))


@pytest.mark.parametrize("block", blocks("sh"), ids=Block.name)
def test_commands_without_output_have_options_that_are_known(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    # They run for minutes; that they run, tests/python/project/test_benchmarks.py tells.
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for line in block.body.replace("\\\n", "").splitlines():
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            subprocess.run(["bash", "-c", as_run(shlex.join(words))], check=True)
        elif words[0] == "penstock":  # on a cluster
            module = "import_" if words[1] == "import" else words[1]
            command = importlib.import_module(f"penstock._cli.{module}").command
            command.make_context(words[1], words[2 : words.index(">") if ">" in words else None])
        elif words[0] == "cmake":  # minutes; tests/python/project/test_cpp.py does the like with build/release
            folders = [words[at + 1] for at, word in enumerate(words) if word == "-S"]
            assert all((ROOT / each / "CMakeLists.txt").exists() for each in folders)
        elif words[:2] == ["apt-get", "install"]:
            assert set(words[2:]) <= set(re.findall(r"[\w+.-]+", (ROOT / "scripts" / "setup").read_text()))
        elif words[:2] == ["pip", "install"]:  # CI installs the sdist's wheel (scripts/wheel)
            extras = {name for each in re.findall(r"\[([\w,]+)\]", line) for name in each.split(",")}
            known = re.search(r"optional-dependencies\](.*?)\n\[", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
            assert words[2] == "." and known and extras <= set(re.findall(r"^(\w+) =", known[1], re.MULTILINE))
        elif words[0] == "python3":
            assert words[1:4] == ["-m", "venv", "env"]
        else:
            assert words[:2] == ["python", "benchmarks/run.py"], f"{block.name()}: {line}: not known to this test"
            importlib.import_module("run").arguments(words[2:])


# ---- text blocks


def check_listing(block: Block, folder: Path) -> None:
    """The files of a written dataset are those of the listing, the side files of check values as it says."""
    path = folder / "corpus"
    options = {"metadata": "json", "shard_size": 100, "features": ["a"], "columns": {"n": "u4"}}
    with penstock.Writer(path, {"token": "u2"}, **options) as writer:
        for number in range(2):
            writer.append(token=np.arange(1000), metadata={"number": number}, columns={"n": number})
    names = [line.split()[0] for line in block.body.splitlines()]
    assert names[:3] == ["corpus/", "dataset.json", "00000/"] and names[-3:] == ["00001/", "features/", ".partial-…"]
    in_shard = {name for name in names[3:-3] if name != "stream.bin.crc"}
    side = {f"{name}.crc" for name in in_shard if name != "shard.json"}
    assert sorted(each.name for each in path.iterdir()) == ["00000", "00001", "dataset.json", "features"]
    for shard in ("00000", "00001"):
        assert {each.name for each in (path / shard).iterdir()} == in_shard | side


def check_fingerprint(block: Block, folder: Path) -> None:
    """The fingerprint of a dataset is the digest of this text, filled in from its manifest."""
    with penstock.Writer(folder / "corpus", fields={"a": "u2", "b": "f4"}, metadata="json", shard_size=100) as writer:
        for number in range(3):
            writer.append(a=np.arange(30), b=0.5, metadata={"number": number})
    with penstock.Writer(folder / "bare", fields={"token": "u4"}, metadata=None) as writer:
        writer.append(token=[1, 2, 3])
    *head, shard_line = block.body.splitlines()
    shard_form = shard_line.split("  ")[0]
    assert shard_form == "shard <records> <digest of each leaf> <digest of the spans, or ->"
    for path in (folder / "corpus", folder / "bare"):
        manifest = json.loads((path / "dataset.json").read_text())
        text = "".join(f"{line}\n" for line in head)
        for member in ("mode", "fields", "codec"):
            value = manifest[member]
            said = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
            text = text.replace(f"<{member}>", said)
        for shard in manifest["shards"]:
            text += f"shard {shard['records']} {' '.join(leaf_digests(shard, manifest))}"
            text += f" {shard['digests']['spans'] or '-'}\n"
        assert xxh3_128(text, folder / path.name / "digest") == manifest["fingerprint"]


def leaf_digests(shard: dict[str, Any], manifest: dict[str, Any]) -> list[str]:
    return [shard["digests"]["fields"][name] for name, *_ in manifest["fields"]]


def xxh3_128(text: str, path: Path) -> str:
    """By penstock itself: the digest of a field's values is that of their bytes."""
    with penstock.Writer(path, fields={"byte": "u1"}) as writer:
        writer.append(byte=np.frombuffer(text.encode(), np.uint8))
    digest: str = json.loads((path / "dataset.json").read_text())["shards"][0]["digests"]["fields"]["byte"]
    return digest


def check_phases(block: Block, folder: Path) -> None:
    """The picture names the phases that core/batch/batch.h has."""
    found = re.search(r"enum class Phase \{([^}]*)\}", (ROOT / "core" / "batch" / "batch.h").read_text())
    assert found
    phases = [name.strip() for name in found[1].split(",")]
    assert sorted(set(re.findall(r"[A-Z]\w+", block.body))) == sorted(phases)


def check_script(block: Block, folder: Path) -> None:
    """What sbatch takes: a program of bash."""
    subprocess.run(["bash", "-n"], input=block.body, text=True, check=True)


def spaced(text: str) -> str:
    """Without the page's line ends."""
    return " ".join(text.split())


@lru_cache
def provoked() -> dict[str, str]:
    """What the code says of each mistake."""
    with tempfile.TemporaryDirectory() as folder:
        return {each.__name__: spaced(message(each, Path(folder))) for each in PROVOKED}


def shows(block: Block, text: str) -> bool:
    """Whether the block is this message; "…" stands for any part of it."""
    return re.fullmatch(".+?".join(map(re.escape, spaced(block.body).split("…"))), text) is not None


def check_message(block: Block, folder: Path) -> None:
    """A message of docs/errors.md is one that is raised (_provoked.py)."""
    assert any(shows(block, text) for text in provoked().values()), (
        f"{block.name()}: {spaced(block.body)}: nothing in _provoked.py says so; it says {provoked()}"
    )


def test_every_message_that_is_provoked_is_on_the_page() -> None:
    page = [block for block in blocks("text") if block.page == "errors.md"]
    lacking = {name: text for name, text in provoked().items() if not any(shows(block, text) for block in page)}
    assert lacking == {} and len(page) == len(PROVOKED) >= 20


TEXT_BLOCKS: dict[tuple[str, str], Callable[[Block, Path], None]] = {
    ("errors.md", ""): check_message,
    ("architecture.md", "Planned ─ one thread asks the order"): check_phases,
    ("format.md", "corpus/"): check_listing,
    ("format.md", "penstock fingerprint 1"): check_fingerprint,
    ("recipes.md", "#SBATCH "): check_script,
}


def check_of(block: Block) -> Callable[[Block, Path], None] | None:
    known = (
        check for (page, start), check in TEXT_BLOCKS.items() if page == block.page and block.body.startswith(start)
    )
    return next(known, None)


@pytest.mark.parametrize("block", blocks("text"), ids=Block.name)
def test_a_text_block_is_true(block: Block, tmp_path: Path) -> None:
    check = check_of(block)
    assert check is not None, (
        f"{block.name()}: write its check and name it in TEXT_BLOCKS, or make it python or console"
    )
    check(block, tmp_path)


@pytest.mark.parametrize("block", blocks("cpp") + blocks("cmake"), ids=Block.name)
def test_blocks_of_cpp_are_parts_of_the_example(block: Block) -> None:
    name = "main.cpp" if block.language == "cpp" else "CMakeLists.txt"
    assert block.body in (ROOT / "examples" / "cpp" / name).read_text()


# ---- that nothing is missed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_a_page_is_one_that_is_run(page: Path) -> None:
    for block in BLOCKS[page]:
        assert block.language in ("python", "console", "sh", "text", "cpp", "cmake"), (
            f"{block.name()}: a block of {block.language or 'no language'}: nothing here runs it"
        )
    # Markdown takes lines indented after a blank one as code as well; in lists they are text.
    prose = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert not re.search(r"\n\n {4,}\S", prose), f"{page.name}: an indented block: fence it"


def test_pages_are_found() -> None:
    assert {"README.md", "resume.md", "format.md", "loading.md"} <= {block.page for block in blocks("python")}
    assert {"README.md", "cli.md"} <= {block.page for block in blocks("console")}
    assert {check_of(block) for block in blocks("text")} == set(TEXT_BLOCKS.values())


def table_under(page: str, place: str) -> list[list[str]]:
    """The rows of the first table after `place`, without its head."""
    found = re.search(r"(?:^\|.*\n)+", (ROOT / page).read_text().partition(place)[2], re.MULTILINE)
    assert found
    return [[cell.strip(" *") for cell in line.strip("|\n").split(" | ")] for line in found[0].splitlines()[2:]]


def test_the_resumes_that_the_readme_shows_are_all_that_were_measured() -> None:
    """Those of 10,007 samples, which docs/resume.md gives first."""
    measured = table_under("docs/resume.md", "## Beside other loaders")
    expected = [
        [name, tail, *(cell.partition("; 10,000")[0] for cell in cells)] for name, tail, _, _, *cells in measured
    ]
    assert table_under("README.md", "## What happens on resume") == expected


def api_text() -> str:
    return "".join(path.read_text() for path in sorted((ROOT / "docs" / "api").glob("*.md")))


def test_the_api_pages_have_everything_that_is_exported() -> None:
    overview, pages = (ROOT / "docs" / "api.md").read_text(), api_text()
    for name in penstock.__all__:
        assert f"::: penstock.{name}\n" in pages or f"`{name}`" in pages, f"{name}: on no page of docs/api"
        assert f"`{name}`" in overview or f"`penstock.{name}`" in overview, f"{name}: not in docs/api.md"
    for path in sorted((ROOT / "docs" / "api").glob("*.md")):
        assert f"](api/{path.name})" in overview, f"docs/api.md does not link to api/{path.name}"


# Modules of which some need packages that not every environment has: their sources are read.
PUBLIC_MODULES = [
    "", "orders", "columns", "cells", "chat", "codecs", "ray", "adapters.torch", "adapters.lightning",
    "adapters.transformers", "adapters.torchdata", "adapters.torchtitan", "adapters.scvi",
]  # fmt: skip


def public_names(module: str) -> dict[str, str]:
    """Name to docstring of what a module of the package defines or exports for users; modules are left out."""
    path = Path(penstock.__file__).parent.joinpath(*module.split("."))
    if module in ("ray", "adapters.torchdata", "adapters.torchtitan", "adapters.scvi"):
        tree = ast.parse(path.with_suffix(".py").read_text())
        defined = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        return {node.name: ast.get_docstring(node) or "" for node in defined if not node.name.startswith("_")}
    found = importlib.import_module(f"penstock.{module}".rstrip("."))
    own = [name for name, each in vars(found).items() if getattr(each, "__module__", "") == found.__name__]
    names = getattr(found, "__all__", [name for name in own if not name.startswith("_")])
    members = {name: getattr(found, name) for name in names}
    return {name: each.__doc__ or "" for name, each in members.items() if not inspect.ismodule(each)}


@pytest.mark.parametrize("module", PUBLIC_MODULES)
def test_every_public_name_has_an_example(module: str) -> None:
    """In its docstring, which doctest runs, or in a program of a page."""
    if module == "adapters.lightning":
        pytest.importorskip("lightning")
    program = "".join(block.body for block in blocks("python"))
    lacking = []
    for name, text in public_names(module).items():
        owner = module.rpartition(".")[2] or "penstock"
        used = re.search(rf"\b{owner}\.{name}\b", program) or re.search(rf"import .*\b{name}\b", program)
        if ">>> " not in text and not used and (module, name) != ("columns", "resolve"):  # which loaders call
            lacking.append(name)
    assert lacking == []


def test_the_table_of_rooms_is_the_one_that_includes_are_held_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    rooms = importlib.import_module("check_includes").MAY_INCLUDE
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([a-z/]+)` \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    assert {room: set(re.findall(r"`([^`]+)`", cell)) for room, cell in rows} == rooms


def test_a_page_names_files_that_are_there() -> None:
    for page in PAGES:
        for name in re.findall(r"`((?:core|layout|shuffle|writer|bindings|scripts)/[\w/]+\.\w+)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_output_is_compared() -> None:
    shown = "tokens  4,675\ntook    1 min 3 s: 0.2 MiB/s of text, 48,820 tokens/s, 2 workers\n"
    assert is_shown(shown, "tokens  4,675\ntook    0.3 s: 11.5 MiB/s of text, 9 tokens/s, 2 workers\n")
    assert not is_shown(shown, "tokens  4,676\ntook    0.3 s: 11.5 MiB/s of text, 9 tokens/s, 2 workers\n")
    assert not is_shown(shown, "tokens  4,675\ntook    0.3 s: 11.5 MiB/s of text, 9 tokens/s, 3 workers\n")
    assert not is_shown(shown, "tokens  4,675\n")
    assert is_shown("ids  4 … 0\n│ …\nend\n", "ids  4 7 7 0\n│ a\n│ b\nend\n")
    assert not is_shown("ids  4 … 0\n…\nend\n", "ids  4 7 7 1\nend\n")
    assert not is_shown("end\n", "end\nmore\n")
    assert not is_shown("window 3: 64 records\n", "window 3: 65 records\n")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_llms_txt_links_to_every_page_and_to_nothing_else() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", (ROOT / "docs" / "llms.txt").read_text())
    pages = {"index.md" if each == "./" else f"{each.rstrip('/')}.md" for each in targets}
    assert pages == {name_of(page) for page in PAGES if page.name != "README.md"}
    assert len(targets) == len(pages)
