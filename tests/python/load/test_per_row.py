"""Functions of rows on threads and processes: what they get and give, resumes, errors, ends; nothing is left behind."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import _row_functions
import numpy as np
import penstock
import pytest
from _middle import source_seed
from penstock.columns import FillInTheMiddle, LossMask, PerRow, Row, SpanCorruption

FACTS = {"sum": "i8", "where": ("i8", 2), "drawn": "f8", "pieces": "u1"}
RUN = [pytest.param(False, id="threads"), pytest.param(True, id="processes")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    path, random = tmp_path_factory.mktemp("corpus") / "text", np.random.default_rng(0)
    with penstock.Writer(path, fields=np.dtype([("kept", "u1"), ("token", "u2")]), metadata="json") as writer:
        for number in range(90):
            count = int(random.integers(0, 40))
            writer.append(token=random.integers(2, 800, count), kept=np.ones(count, "u1"), metadata={"number": number})
    return penstock.open(path)


def alive() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("penstock-rows")]


def children() -> list[int]:
    return [int(each) for each in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()] + [
        int(child) for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()
    ]


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    gc.collect()
    deadline = time.monotonic() + 5
    while alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not alive()


@pytest.mark.parametrize("processes", RUN)
@pytest.mark.parametrize("kind", ["windows", "documents", "packed", "ids of parts"])
def test_functions_get_the_row_and_a_generator_of_seed_epoch_and_observation(corpus, processes, kind):
    view: Any = {
        "windows": lambda: corpus.windows(16, lookahead=1),
        "documents": corpus.documents,
        "packed": lambda: corpus.packed(40),
        "ids of parts": lambda: corpus.windows(16).split(3, seed=1)[0][4:],
    }[kind]()
    columns = [PerRow(_row_functions.facts, FACTS, workers=2, processes=processes)]
    rows = 0
    with penstock.Loader(view, 7, seed=5, epochs=2, columns=columns, framework="numpy") as loader:
        for batch in loader:
            found = batch.columns
            assert (
                found["sum"].dtype == np.int64 and found["where"].shape == (7, 2) and found["pieces"].dtype == np.uint8
            )
            for row in range(7):
                if not batch.valid[row]:
                    assert all(not found[name][row].any() for name in FACTS)
                    continue
                index, epoch = int(batch.indices[row]), int(batch.epochs[row])
                observation = int(view.base_indices(np.array([index]))[0])
                stored = view[index]
                assert found["sum"][row] == int(stored["token"].sum())
                assert found["where"][row].tolist() == [index, epoch]
                assert found["drawn"][row] == np.random.default_rng([5, epoch, observation]).random()
                assert found["pieces"][row] == len(stored.spans)
                rows += 1
    assert rows == 2 * len(view)


def test_rows_are_read_only_have_their_spans_and_stay_valid(corpus):
    kept: list[Row] = []

    def function(row: Row, generator: np.random.Generator) -> float:
        kept.append(row)
        return 0.0

    view = corpus.documents()
    with penstock.Loader(view, 5, seed=1, epochs=1, columns=[PerRow(function, {"x": "f4"}, workers=1)]) as loader:
        for _ in loader:
            pass
    assert sorted(row.index for row in kept) == list(range(90))
    for row in kept:
        stored = view[row.index]
        assert row["token"].tolist() == stored["token"].tolist() and list(row) == ["kept", "token"]
        assert row.metadata == stored.metadata == row.spans[0].metadata and row.source == ""
        with pytest.raises(ValueError, match="read-only"):
            row["token"][...] = 1
    assert repr(kept[0]).startswith("Row(kept [")


def test_a_row_is_as_other_columns_see_it(corpus):
    fim = FillInTheMiddle(901, 902, 903, rate=1)
    view = corpus.windows(16, lookahead=1)
    columns = [fim, LossMask(field="kept"), PerRow(lambda row, _: row["token"], {"copy": ("i8", 17)}, workers=2)]
    with penstock.Loader(view, 4, seed=1, epochs=1, columns=columns, framework="numpy") as loader:
        for batch in loader:
            assert np.array_equal(batch.columns["copy"], batch["token"]) and "loss_mask" in batch.columns
    spans = SpanCorruption(range(999, 899, -1))
    columns = [spans, PerRow(lambda row, _: row["token"], {"copy": ("i8", 16)}, workers=2)]
    with penstock.Loader(corpus.windows(16), 4, seed=1, epochs=1, columns=columns) as loader:
        for batch in loader:
            assert batch.columns["copy"].tolist() == batch["token"].tolist()
            copied = batch.clone()
            assert copied.columns["copy"].tolist() == batch.columns["copy"].tolist()


@pytest.mark.parametrize("processes", RUN)
def test_a_state_of_every_step_gives_the_rest_on_one_to_five_ranks(corpus, processes):
    view = corpus.windows(16)
    options: dict[str, Any] = {"seed": 9, "epochs": 2, "framework": "numpy"}

    def loader_of(workers: int, **more: Any) -> penstock.Loader:
        column = PerRow(_row_functions.masked, {"masked": ("u2", 8)}, workers=workers, processes=processes)
        return penstock.Loader(view, global_batch_size=60, columns=[column], **options, **more)

    def rows(batch: penstock.Batch) -> dict[int, bytes]:
        masked = batch.columns["masked"]
        return {at: masked[row].tobytes() for row, at in enumerate(batch.positions.tolist()) if at >= 0}

    with loader_of(2) as loader:
        states, batches = [loader.state_dict()], []
        for batch in loader:
            batches.append(rows(batch))
            states.append(loader.state_dict())
    for step, state in enumerate(states[:-1]):
        for ranks in range(1, 6) if not processes else (1 + step % 3,):
            found: dict[int, bytes] = {}
            for rank in range(ranks):
                with loader_of(1, rank=rank, world_size=ranks) as fresh:
                    fresh.load_state_dict(json.loads(json.dumps(state)))
                    found |= rows(next(fresh))
            assert found == batches[step]


def test_a_mixture_seeds_by_source(corpus):
    view = corpus.windows(16)
    mixture = penstock.Mixture({"a": view, "b": view}, [penstock.Stage({"a": 1, "b": 1})], end=40)

    def function(row: Row, generator: np.random.Generator) -> list[float]:
        return [generator.random(), float(row.source == "b")]

    columns = [PerRow(function, {"x": ("f8", (2,))}, workers=2)]
    with penstock.Loader(mixture, 8, seed=3, columns=columns, framework="numpy") as loader:
        for batch in loader:
            for row in range(8):
                name = mixture.names[int(batch.sources[row])]
                seed = source_seed(3, name)
                drawn = np.random.default_rng([seed, int(batch.epochs[row]), int(batch.indices[row])]).random()
                assert batch.columns["x"][row].tolist() == [drawn, float(name == "b")]


@pytest.mark.parametrize("processes", RUN)
def test_an_error_is_raised_at_its_batch_which_comes_again(corpus, processes):
    view = corpus.windows(16)
    column = PerRow(_row_functions.sevens_fail, {"x": "f4"}, workers=2, processes=processes)
    with penstock.Loader(view, 3, order="sequential", columns=[column], framework="numpy") as loader:
        assert next(loader).columns["x"].tolist() == [0, 1, 2]
        assert next(loader).columns["x"].tolist() == [3, 4, 5]
        for _ in range(2):
            words = r"PerRow\(sevens_fail\): observation 7 of .* in epoch 0: KeyError: 'seven'"
            with pytest.raises(penstock.InvalidArgumentError, match=words) as raised:
                next(loader)
            assert isinstance(raised.value.__cause__, KeyError)
            assert loader.position == 6 and loader.state_dict()["position"] == 6
        loader.seek(9)
        assert next(loader).columns["x"].tolist() == [9, 10, 11]


def test_an_error_that_only_its_process_can_make_is_raised_by_its_words(corpus):
    column = PerRow(_row_functions.sevens_fail_locally, {"x": "f4"}, workers=1, processes=True)
    words = r"PerRow\(sevens_fail_locally\): observation 7 of .* in epoch 0: RuntimeError: LocalError: seven"
    loader = penstock.Loader(corpus.windows(16), 8, order="sequential", columns=[column], framework="numpy")
    with loader, pytest.raises(penstock.InvalidArgumentError, match=words):
        next(loader)


@pytest.fixture(scope="module")
def unready(tmp_path_factory: pytest.TempPathFactory) -> penstock.Dataset:
    """Documents of which that with entry 5 cannot be decoded, and that with entry 21 does not go to a process."""

    def decode(entry: memoryview) -> Any:
        number = int(bytes(entry))
        if number == 5:
            raise ValueError("five")
        return (lambda: number) if number == 21 else number

    penstock.codecs.register("unready", lambda number: str(number).encode(), decode)
    path = tmp_path_factory.mktemp("unready") / "text"
    with penstock.Writer(path, fields={"token": "u2"}, metadata="unready") as writer:
        for number in range(32):
            writer.append(token=[number], metadata=number)
    return penstock.open(path)


@pytest.mark.parametrize("processes", RUN)
def test_a_row_that_cannot_be_made_ready_is_named(unready, processes):
    column = PerRow(_row_functions.sevens_fail, {"x": "f4"}, workers=1, processes=processes)
    view = unready.documents()
    with penstock.Loader(view, 16, order="sequential", columns=[column], framework="numpy") as loader:
        with pytest.raises(
            penstock.InvalidArgumentError, match=r"observation 5 of .* in epoch 0: CorruptionError: .*metadata"
        ):
            next(loader)
        loader.seek(16)
        if not processes:
            assert next(loader).columns["x"].tolist() == list(range(16, 32))
            return
        words = r"observation 21 of .* in epoch 0: its metadata does not pickle, .*; leave processes= out"
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            next(loader)


def test_an_error_of_a_batch_that_nobody_gets_is_let_go(corpus):
    held: list[weakref.ref[Any]] = []

    def fails_later(row: Row, generator: np.random.Generator) -> float:
        if row.index >= 4 and not held:
            here = threading.Event()
            held.append(weakref.ref(here))
            raise KeyError("later")
        return float(row.index)

    column = PerRow(fails_later, {"x": "f4"}, workers=1)
    with penstock.Loader(corpus.windows(16), 4, order="sequential", columns=[column], framework="numpy") as loader:
        next(loader)
        deadline = time.monotonic() + 5
        while not held and time.monotonic() < deadline:
            time.sleep(0.01)
        loader.seek(0)
        for _ in range(3):
            next(loader)
        gc.collect()
        assert held and held[0]() is None


class WordlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def half_a_character(row: Row, generator: np.random.Generator) -> Any:
    raise penstock.InvalidArgumentError("\udc80")


def no_words(row: Row, generator: np.random.Generator) -> Any:
    raise WordlessError


@pytest.mark.parametrize(
    ("function", "words"), [(no_words, "epoch 0: WordlessError$"), (half_a_character, r"epoch 0: \\udc80$")]
)
def test_an_error_whose_words_cannot_be_had_is_raised_all_the_same(corpus, function, words):
    column = PerRow(function, {"x": "f4"}, workers=1)
    with penstock.Loader(corpus.windows(16), 3, columns=[column], framework="numpy") as loader:
        for _ in range(2):
            with pytest.raises(penstock.InvalidArgumentError, match=words):
                next(loader)


@pytest.mark.parametrize("left", [0, 1])
def test_threads_that_cannot_be_started_are_fewer_or_an_error_after_which_it_goes_on(corpus, monkeypatch, left):
    start, started = threading.Thread.start, []

    def refused(thread: threading.Thread) -> None:
        if thread.name.startswith("penstock-rows"):
            started.append(thread)
            if len(started) == left + 1:
                raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refused)
    column = PerRow(lambda row, generator: row.index, {"x": "f4"}, workers=3)
    with penstock.Loader(corpus.windows(16), 3, order="sequential", columns=[column], framework="numpy") as loader:
        if left == 0:
            with pytest.raises(penstock.IoError, match=r"no thread can be started: .* use fewer"):
                next(loader)
        assert next(loader).columns["x"].tolist() == [0, 1, 2]
        assert len(alive()) == (3 if left == 0 else 1)


def test_closing_waits_once_for_all_that_are_at_work(corpus, monkeypatch):
    monkeypatch.setattr("penstock._load.row_functions._JOIN_SECONDS", 0.5)
    end = threading.Event()
    column = PerRow(lambda row, generator: end.wait(20), {"x": "f4"}, workers=4)
    loader = penstock.Loader(corpus.windows(16), 8, columns=[column], framework="numpy")
    waiting = threading.Thread(target=lambda: next(loader, None), daemon=True)
    waiting.start()
    while len(alive()) < 4:
        time.sleep(0.01)
    time.sleep(0.1)
    threads = loader._rows
    assert threads is not None
    begin = time.monotonic()
    threads.close()
    assert time.monotonic() - begin < 1.5
    end.set()
    waiting.join(20)
    loader.close()


def test_a_function_that_recovers_gives_the_batch(corpus):
    failed = []

    def once(row: Row, generator: np.random.Generator) -> float:
        if row.index == 4 and not failed:
            failed.append(row.index)
            raise OSError("a flaky disk")
        return float(row.index)

    with penstock.Loader(
        corpus.windows(16), 3, order="sequential", columns=[PerRow(once, {"x": "f4"}, workers=1)], framework="numpy"
    ) as loader:
        next(loader)
        with pytest.raises(penstock.InvalidArgumentError, match=r"observation 4 of .* OSError: a flaky disk"):
            next(loader)
        assert next(loader).columns["x"].tolist() == [3, 4, 5]


WRONG = [
    (lambda row, _: [1, 2], {"x": "i4"}, r"it gave x of shape \[2\]: \[\] wanted"),
    (lambda row, _: 1.5, {"x": "i4"}, "values of type float64, expected i4"),
    (lambda row, _: 300, {"x": "u1"}, "x 300 does not fit u1"),
    (lambda row, _: {"x": 1}, {"x": "i4", "y": "i4"}, "a mapping of x, y wanted"),
    (lambda row, _: None, {"x": "i4", "y": "i4"}, "it gave 'NoneType': a mapping of x, y wanted"),
    (lambda row, _: "text", {"x": "i4"}, "x.*does not fit|field x"),
    (lambda row, _: np.zeros((2, 3)), {"x": ("f4", (3, 2))}, r"it gave x of shape \[2, 3\]: \[3, 2\] wanted"),
]


@pytest.mark.parametrize(("function", "arrays", "words"), WRONG)
def test_what_is_no_such_array_is_refused_with_the_observation(corpus, function, arrays, words):
    columns = [PerRow(function, arrays, workers=1)]
    refused = pytest.raises(penstock.InvalidArgumentError, match=rf"observation 0 of .*: .*({words})")
    with penstock.Loader(corpus.windows(16), 3, order="sequential", columns=columns) as loader, refused:
        next(loader)


BAD = [
    (PerRow(3, {"x": "f4"}), "is no function of a row and a generator"),
    (PerRow(_row_functions.masked, {}), "{name: type} is wanted"),
    (PerRow(_row_functions.masked, {"x": "S4"}), "must be of bools, integers, floats or complex numbers"),
    (PerRow(_row_functions.masked, {"x": "what"}), "x.*what"),
    (PerRow(_row_functions.masked, {"": "f4"}), "is no name"),
    (PerRow(_row_functions.masked, {"token": "f4"}), "a batch has the name 'token' already"),
    (PerRow(_row_functions.masked, {"inputs": "f4"}), "a batch has the name 'inputs' already"),
    (PerRow(_row_functions.masked, {"x": "f4"}, workers=0), "workers=0: must be from 1"),
    (PerRow(_row_functions.masked, {"x": "f4"}, processes="yes"), "processes='yes'"),
    (PerRow(lambda row, _: 0, {"x": "f4"}, processes=True), "processes get it by pickle"),
]


@pytest.mark.parametrize(("column", "words"), BAD)
def test_what_cannot_be_is_refused_when_the_loader_is_made(corpus, column, words):
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.Loader(corpus.windows(16), 2, columns=[column])


def test_columns_that_do_not_go_together_are_refused(corpus):
    one = PerRow(_row_functions.masked, {"x": ("f4", 8)})
    for other, words in (
        (PerRow(_row_functions.facts, {"x": "f4"}), "'x' is there twice"),
        (PerRow(_row_functions.facts, FACTS, workers=3), "have the same workers= and processes="),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(corpus.windows(16), 2, columns=[one, other])
    with pytest.raises(penstock.InvalidArgumentError, match="context_parallel: PerRow has functions of whole rows"):
        penstock.Loader(
            corpus.windows(16), 2, columns=[one], context_parallel=penstock.ContextParallel(0, 2)
        )  # fmt: skip
    with pytest.raises(penstock.InvalidArgumentError, match=r"penstock.columns.PerRow\(…\)"):
        penstock.Loader(corpus.windows(16), 2, columns=["per_row"])


def test_a_process_that_dies_is_an_error_of_its_batch_and_another_one_takes_over(corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("PENSTOCK_TEST_DIED", str(tmp_path / "died"))
    column = PerRow(_row_functions.dies, {"x": "f4"}, workers=1, processes=True)
    with penstock.Loader(corpus.windows(16), 4, order="sequential", columns=[column], framework="numpy") as loader:
        assert next(loader).columns["x"].tolist() == [0, 1, 2, 3]
        with pytest.raises(penstock.IoError, match=r"observation 7 of .* was killed by SIGKILL"):
            next(loader)
        assert next(loader).columns["x"].tolist() == [4, 5, 6, 7]


def test_batches_are_made_ahead_while_the_caller_works(corpus):
    """Eight rows of 2 ms by two threads: 8 ms a batch, which a caller of 20 ms a step does not see."""
    column = PerRow(_row_functions.slow, {"x": "f4"}, workers=2)
    with penstock.Loader(corpus.windows(16), 8, columns=[column]) as loader:
        next(loader)
        waited = []
        for _ in range(12):
            time.sleep(0.02)
            begin = time.perf_counter()
            next(loader)
            waited.append(time.perf_counter() - begin)
    assert sorted(waited)[6] < 0.006


@pytest.mark.parametrize("processes", RUN)
def test_seeks_and_closes_at_any_moment_leave_nothing(corpus, processes):
    view = corpus.windows(16)
    column = PerRow(_row_functions.slow, {"x": "f4"}, workers=2, processes=processes)
    before = set(children())
    for taken in range(3):
        loader = penstock.Loader(view, 4, seed=2, columns=[column], framework="numpy", prefetch=2)
        for _ in range(taken):
            next(loader)
        for position in (40, 8, 12):
            loader.seek(position)
            batch = next(loader)
            assert batch.position == position
            assert batch.columns["x"].tolist() == [float(view[int(each)]["token"][0]) for each in batch.indices]
        if taken == 1:
            del loader, batch  # the loader is let go without close()
        else:
            loader.close()
            with pytest.raises(penstock.InvalidArgumentError, match="closed"):
                next(loader)
    gc.collect()
    deadline = time.monotonic() + 5
    while set(children()) - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not set(children()) - before


def test_least_memory_is_enough(corpus):
    column = PerRow(_row_functions.masked, {"x": ("u2", 8)}, workers=3)
    with penstock.Loader(
        corpus.windows(16), 4, seed=2, epochs=1, columns=[column], framework="numpy", prefetch=1, max_bytes=0
    ) as loader:
        count = 0
        for batch in loader:
            count += int(batch.valid.sum())
            if count == 40:
                loader.seek(40)
        assert count == len(corpus.windows(16))


def running(body: str, tmp_path: Path, corpus: penstock.Dataset, processes: bool) -> subprocess.CompletedProcess[str]:
    """A program that does `body` with a `loader`."""
    head = f"""
import os
import _row_functions, penstock
if __name__ == "__main__":
    view = penstock.open(CORPUS).windows(16)
    column = penstock.columns.PerRow(_row_functions.process_of, {{"x": "i8"}}, workers=2, processes={processes})
    loader = penstock.Loader(view, 4, columns=[column], framework="numpy")
"""
    return script(head + textwrap.indent(textwrap.dedent(body), "    "), tmp_path, corpus)


def script(body: str, tmp_path: Path, corpus: penstock.Dataset) -> subprocess.CompletedProcess[str]:
    path = tmp_path / "script.py"
    head = f"import sys; sys.path.insert(0, {str(Path(_row_functions.__file__).parent)!r})\n"
    path.write_text(head + textwrap.dedent(body).replace("CORPUS", repr(str(corpus.path))))
    return subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("processes", RUN)
@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "os.kill(os.getpid(), 9)"])
def test_a_program_that_ends_with_a_running_loader_leaves_no_process(corpus, tmp_path, processes, end):
    body = f"""
        print(*{{int(each) for _ in range(8) for each in next(loader).columns["x"]}}, flush=True)
        {end}
    """
    done = running(body, tmp_path, corpus, processes)
    assert done.returncode == {"": 0, "raise SystemExit(3)": 3}.get(end, -9), done.stderr
    assert done.stderr == ""
    deadline = time.monotonic() + 5
    pids = [int(each) for each in done.stdout.split()]
    assert pids
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("processes", RUN)
def test_a_forked_child_is_refused_and_the_parent_goes_on(corpus, tmp_path, processes):
    body = """
        next(loader)
        child = os.fork()
        if child == 0:
            try:
                next(loader)
            except penstock.InvalidArgumentError as error:
                assert "forked child" in str(error)
            raise SystemExit(5)  # with the handlers of an exit
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
        for _ in range(20):
            next(loader)
        loader.close()
    """
    done = running(body, tmp_path, corpus, processes)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_a_script_without_a_guard_is_told_so(corpus, tmp_path):
    done = script(
        """
        import _row_functions, penstock
        view = penstock.open(CORPUS).windows(16)
        column = penstock.columns.PerRow(_row_functions.process_of, {"x": "i8"}, workers=1, processes=True)
        next(penstock.Loader(view, 4, columns=[column], framework="numpy"))
        """,
        tmp_path,
        corpus,
    )
    assert done.returncode == 1 and '__name__ == "__main__"' in done.stderr


def test_growth_goes_on_with_the_functions(tmp_path):
    def write(name: str) -> Path:
        with penstock.Writer(tmp_path / name, fields={"token": "u2"}, metadata="json") as writer:
            for number in range(20):
                writer.append(token=np.arange(8) + number, metadata=None)
        return tmp_path / name

    penstock.combine([write("a")], tmp_path / "whole")
    column = PerRow(lambda row, _: int(row["token"][0]), {"x": "i8"}, workers=2)
    with penstock.Loader(penstock.open(tmp_path / "whole").documents(), 4, seed=1, columns=[column]) as loader:
        next(loader)
        state = loader.state_dict()
    penstock.append(tmp_path / "whole", write("b"))
    view = penstock.open(tmp_path / "whole").documents()
    with penstock.Loader(view, 4, seed=1, columns=[column], on_mismatch="grown", epochs=2, framework="numpy") as loader:
        next(loader)
        loader.load_state_dict(state)
        rows = 0
        for batch in loader:
            expected = [int(view[int(each)]["token"][0]) if each >= 0 else 0 for each in batch.indices]
            assert batch.columns["x"].tolist() == expected
            rows += int(batch.valid.sum())
        assert rows > 40
