"""A job whose dataset grew: its epoch ends over the old shards, the next ones are of all, against lists of integers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from penstock import orders

WINDOW = 10
RECORDS = (137, 95, 260)  # of the shards: no multiples of the window, so that windows cross them
SIZES = (13, 23, 49)  # windows of the first one, two and three shards
ORDERS = {
    "uniform": "uniform",
    "sequential": "sequential",
    "blocks": orders.Blocks(2, 6),
    "lanes": orders.Blocks(3, 3, lanes=4),
}


def write(path: Path, count: int, seed: int) -> np.ndarray:
    """A dataset of one shard of so many random tokens, in documents."""
    random = np.random.default_rng(seed)
    tokens = random.integers(0, 60_000, count).astype(np.uint16)
    with penstock.Writer(path, {"token": "u2"}, "json") as writer:
        for number, part in enumerate(np.split(tokens, np.sort(random.integers(0, count, 9)))):
            writer.append(token=part, metadata={"shard": seed, "number": number})
    return tokens


@dataclass
class Grown:
    """The dataset as it was opened before it grew, when it had grown, and once more; and all of its tokens."""

    datasets: list[penstock.Dataset]
    tokens: np.ndarray

    def view(self, number: int) -> penstock.View:
        return self.datasets[number].windows(WINDOW)

    def loader(self, number: int, **options: Any) -> penstock.Loader:
        options = {"global_batch_size": 6, "seed": 3, "framework": "numpy", "threads": 1, **options}
        return penstock.Loader(self.view(number), on_mismatch="grown", **options)


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Grown:
    folder = tmp_path_factory.mktemp("grown")
    tokens = [write(folder / "corpus", RECORDS[0], 0)]
    datasets = [penstock.open(folder / "corpus")]
    for number in (1, 2):
        tokens.append(write(folder / f"more-{number}", RECORDS[number], number))
        penstock.append(folder / "corpus", folder / f"more-{number}")
        datasets.append(penstock.open(folder / "corpus"))
    assert [len(each.windows(WINDOW)) for each in datasets] == list(SIZES)
    return Grown(datasets, np.concatenate(tokens))


def stream(history: list[tuple[int, int]], epochs: int, order: str = "uniform", seed: int = 3) -> list[tuple[int, int]]:
    """(epoch, observation) of each position; `history` has (first epoch, which dataset)."""
    found = []
    for epoch in range(epochs):
        n = SIZES[[number for first, number in history if first <= epoch][-1]]
        indices = orders.resolve(ORDERS[order], n, seed).pick(epoch * n, 1, n)[0].tolist()
        assert sorted(indices) == list(range(n))
        found += [(epoch, index) for index in indices]
    return found


def end_of_epoch(position: int, *sizes: int) -> tuple[int, int]:
    """(number of the first epoch that begins at or after a position, where it begins), of epochs of these sizes."""
    begin = epoch = 0
    while begin < position:
        begin += sizes[min(epoch, len(sizes) - 1)]
        epoch += 1
    return epoch, begin


def rows(batch: penstock.Batch, tokens: np.ndarray) -> list[tuple[int, int]]:
    """(epoch, observation) of the valid rows, whose records are compared."""
    found = []
    for index, epoch, valid, row in zip(batch.indices, batch.epochs, batch.valid, batch["token"], strict=True):
        if valid:
            np.testing.assert_array_equal(row, tokens[index * WINDOW : (index + 1) * WINDOW])
            found.append((int(epoch), int(index)))
    return found


def rest(loaders: list[penstock.Loader], tokens: np.ndarray, steps: int | None = None) -> list[tuple[int, int]]:
    """What is left of the run, or some steps of it, of all ranks, in the order of positions."""
    found: list[tuple[int, int]] = []
    for batches in islice(zip(*loaders, strict=True), steps):
        of_ranks = [rows(batch, tokens) for batch in batches]
        found += [each[i] for i in range(max(map(len, of_ranks))) for each in of_ranks if i < len(each)]
    return found


def closing(loaders: list[penstock.Loader]) -> Iterator[penstock.Loader]:
    for each in loaders:
        each.close()
        yield each


@pytest.mark.parametrize("order", ORDERS)
def test_from_every_step_the_epoch_ends_over_the_old_shards_and_the_next_is_of_all(grown: Grown, order: str) -> None:
    options = {"order": ORDERS[order], "epochs": 4}
    plain = stream([(0, 0)], 4, order)
    with grown.loader(0, **options) as old:
        states = [old.state_dict(), *(batch.state_dict() for batch in old)]
    assert [state["position"] for state in states] == [min(step * 6, 52) for step in range(10)]
    for state in states:
        position = state["position"]
        first, _ = end_of_epoch(position, SIZES[0])
        wanted = stream([(0, 0), (first, 1)], 4, order)
        with grown.loader(1, **options) as loader:
            resume = loader.load_state_dict(state)
            assert (resume.position, loader.position, loader.step) == (position, position, -(-position // 6))
            assert len(loader) == -(-len(wanted) // 6)
            assert rest([loader], grown.tokens) == wanted[position:]
            assert wanted[:position] == plain[:position]
            loader.rewind()
            assert rest([loader], grown.tokens) == wanted  # the run from its beginning


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5])
def test_states_after_growth_go_on_from_every_step_on_any_ranks_at_that_size_and_at_a_larger_one(
    grown: Grown, ranks: int
) -> None:
    with grown.loader(0, epochs=5) as old:
        first = list(islice(old, 3))[-1].state_dict()
    assert first["position"] == 18  # in epoch 1, which ends at 26
    wanted = stream([(0, 0), (2, 1)], 5)
    with grown.loader(1, epochs=5) as loader:
        loader.load_state_dict(first)
        states = [loader.state_dict(), *(batch.state_dict() for batch in loader)]
    assert len({state["job"] for state in states}) == 1
    for state in states:
        position = state["position"]
        for number in (1, 2):
            loaders = [
                grown.loader(number, epochs=5, rank=rank, world_size=ranks, global_batch_size=4 * ranks)
                for rank in range(ranks)
            ]
            assert len({str(each.load_state_dict(state)) for each in loaders}) == 1
            assert len({each.state_dict()["job"] for each in loaders}) == 1
            expected = wanted
            if number == 2:
                if position <= 26:  # the second size never came
                    history = [(0, 0), (end_of_epoch(position, SIZES[0])[0], 2)]
                else:
                    history = [(0, 0), (2, 1), (end_of_epoch(position, *SIZES[:1] * 2, SIZES[1])[0], 2)]
                expected = stream(history, 5)
            assert rest(loaders, grown.tokens) == expected[position:]
            list(closing(loaders))


def test_several_growths_of_one_run_are_all_in_its_state(grown: Grown) -> None:
    state: dict[str, Any] = {}
    for number, steps in ((0, 1), (1, 7), (2, 0)):
        with grown.loader(number, epochs=6) as loader:
            if state:
                loader.load_state_dict(state)
            list(islice(loader, steps))
            state = loader.state_dict()
    assert state["position"] == 48  # 13, then epochs of 23: in epoch 2, which ends at 59
    stages = json.loads(state["job"])["order"]["stages"]
    assert [(each["begin"], each["source"]["dataset"]["shards"]) for each in stages] == [(0, 1), (13, 2), (59, 3)]
    assert len(state) == 3 and json.loads(json.dumps(state)) == state
    wanted = stream([(0, 0), (1, 1), (3, 2)], 6)
    with grown.loader(2, epochs=6) as loader:
        loader.load_state_dict(state)
        assert rest([loader], grown.tokens) == wanted[48:]
        for position in range(len(wanted) + 1):  # every state of the run, also those before the growths
            loader.load_state_dict({**state, "position": position})
            assert rest([loader], grown.tokens, 3) == wanted[position : position + 18]


@pytest.mark.parametrize("tail", ["pad", "drop"])
def test_epochs_that_end_batches_end_at_their_own_length(grown: Grown, tail: str) -> None:
    options = {"per_epoch": True, "tail": tail, "epochs": 4}
    with grown.loader(0, **options) as old:
        state = next(old).state_dict()
    with grown.loader(1, **options) as loader:
        resume = loader.load_state_dict(state)
        assert (resume.epoch, resume.step) == (0, 1)
        wanted = stream([(0, 0), (1, 1)], 4)
        begin, lengths = 0, []
        for epoch in range(4):
            lengths.append(len(loader))
            found = rest([loader], grown.tokens)
            n = SIZES[min(epoch, 1)]
            kept = n if tail == "pad" else n // 6 * 6
            assert found == wanted[begin : begin + kept][6 if epoch == 0 else 0 :]
            begin += n
            assert (loader.position, loader.epoch) == (begin, epoch + 1)
        whole = [n // 6 + (tail == "pad") for n in SIZES[:2]]
        assert lengths == [whole[0], *[whole[1]] * 3]
        assert next(iter(loader), None) is None


def test_a_state_at_the_end_of_an_epoch_or_at_0_takes_all_shards_at_once(grown: Grown) -> None:
    with grown.loader(0, global_batch_size=13) as old, grown.loader(1) as loader, grown.loader(1) as fresh:
        state = old.state_dict()
        assert str(loader.load_state_dict(state)) == "resumes at epoch 0, position 0, step 0"
        assert loader.state_dict() == fresh.state_dict()
        state = next(old).state_dict()
        loader.load_state_dict(state)
        assert rest([loader], grown.tokens, 4) == stream([(0, 0), (1, 1)], 3)[13 : 13 + 24]


def test_a_growth_that_never_came_is_forgotten(grown: Grown) -> None:
    with grown.loader(0) as old, grown.loader(1) as loader, grown.loader(0) as again:
        state = next(old).state_dict()
        loader.load_state_dict(state)
        later = next(loader).state_dict()
        assert (later["position"], later["job"] != state["job"]) == (12, True)
        assert again.load_state_dict(later).position == 12
        assert again.state_dict() == {**state, "position": 12}
        assert rest([again], grown.tokens, 6) == stream([(0, 0)], 5)[12:48]


def test_a_run_that_was_over_goes_on_with_more_epochs(grown: Grown) -> None:
    with grown.loader(0, epochs=2) as old:
        state = list(old)[-1].state_dict()
    assert state["position"] == 26
    with grown.loader(1, epochs=2) as loader:
        assert str(loader.load_state_dict(state)).startswith("resumes at epoch 2, position 26, step 5: the run is over")
        assert list(loader) == []
    with grown.loader(1, epochs=3) as loader:
        loader.load_state_dict(state)
        assert rest([loader], grown.tokens) == stream([(0, 0), (2, 1)], 3)[26:]


def test_the_resume_says_where_all_shards_begin(grown: Grown) -> None:
    with grown.loader(0) as old, grown.loader(1) as loader:
        resume = loader.load_state_dict(next(old).state_dict())
        assert str(resume) == (
            "resumes at epoch 0, position 6, step 1; the dataset has grown from 1 to 2 shards: epochs from 1 on, "
            "position 13, are of all of them"
        )
        list(islice(loader, 2))
        resume = loader.load_state_dict(loader.state_dict())
        assert str(resume) == "resumes at epoch 1, position 18, step 3"


def test_skips_and_schedules_and_set_batch_size_are_of_positions(grown: Grown) -> None:
    options = {"epochs": 3, "skip": [(4, 9), (20, 30)], "global_batch_size": [(0, 4), (16, 10)]}
    with grown.loader(0, **options) as old:
        batches = [(batch.position, batch.state_dict()["position"]) for batch in old]
        states = [old.state_dict()]
        old.rewind()
        states = [batch.state_dict() for batch in old]
    assert batches[:2] == [(0, 4), (4, 13)]
    wanted = stream([(0, 0), (1, 1)], 3)
    kept = [place for position, place in enumerate(wanted) if not (4 <= position < 9 or 20 <= position < 30)]
    with grown.loader(1, **options) as loader:
        loader.load_state_dict(states[0])
        loader.rewind()
        assert rest([loader], grown.tokens) == kept
        loader.rewind()
        sizes = [len(rows(batch, grown.tokens)) for batch in loader]
        assert sizes[:3] == [4, 4, 4] and set(sizes[4:-1]) == {10}
        loader.set_batch_size(7)
        loader.load_state_dict(states[0])
        loader.seek(59)
        assert len(loader.locate(position=40)) == 10
    with grown.loader(1, **options) as loader:
        loader.set_batch_size(7)
        loader.load_state_dict(states[0])  # the sizes that were set stay, whatever the epochs' lengths are
        loader.rewind()
        assert len(next(loader).indices) == 7


def test_every_rank_and_thread_gives_the_same_with_fetches_and_balance(grown: Grown) -> None:
    with grown.loader(0, order=orders.Blocks(4, 8)) as old:
        state = next(old).state_dict()
    found = []
    for threads, reader in ((1, "pread"), (3, "auto"), (2, "mmap")):
        with grown.loader(1, order=orders.Blocks(4, 8), threads=threads, reader=reader, prefetch=9) as loader:
            loader.load_state_dict(state)
            found.append(rest([loader], grown.tokens, 12))
    assert found[0] == found[1] == found[2]
    balance = penstock.Balance(cost="tokens")
    loaders = [grown.loader(1, rank=rank, world_size=2, balance=balance) for rank in range(2)]
    for each in loaders:
        each.load_state_dict({**state, "job": loaders[0].state_dict()["job"]})
    assert len(rest(loaders, grown.tokens, 12)) == 72
    list(closing(loaders))


def test_random_runs_with_two_growths_are_what_counting_says(grown: Grown) -> None:
    random = np.random.default_rng(11)
    for _ in range(60):
        order = str(random.choice(list(ORDERS)))
        epochs, size = int(random.integers(3, 7)), int(random.integers(1, 30))
        steps = [int(random.integers(0, 40 // size + 2)) for _ in range(2)]
        options = {"order": ORDERS[order], "epochs": epochs, "global_batch_size": size, "tail": "pad"}
        history = [(0, 0)]
        state: dict[str, Any] | None = None
        for number in range(3):
            with grown.loader(number, **options) as loader:
                if state is not None:
                    position = state["position"]
                    loader.load_state_dict(state)
                    lengths = [SIZES[[which for first, which in history if first <= e][-1]] for e in range(epochs + 1)]
                    first, begin = end_of_epoch(position, *lengths)
                    history = [(e, which) for e, which in history if e < first] + [(first, number)]
                    wanted = stream(history, epochs, order)
                    stages = json.loads(loader.state_dict()["job"])["order"].get("stages", [{"begin": 0}])
                    assert stages[-1]["begin"] == begin and len(stages) == len(history)
                    taken = rest([loader], grown.tokens, steps[number - 1] if number == 1 else None)
                    assert taken == wanted[position : position + len(taken)]
                    assert number == 1 or position + len(taken) == len(wanted)
                else:
                    list(islice(loader, steps[0]))
                state = loader.state_dict()


def test_locate_and_the_job_tell_what_the_loader_gives(grown: Grown) -> None:
    with grown.loader(0, epochs=3) as old:
        state = list(islice(old, 2))[-1].state_dict()
    job = penstock.Job(grown.view(1), global_batch_size=6, seed=3, epochs=3)
    assert len(job) == -(-3 * 23 // 6)
    longer = job.grown(state)
    wanted = stream([(0, 0), (1, 1)], 3)
    assert len(longer) == -(-len(wanted) // 6) and len(job) == -(-3 * 23 // 6)
    picks = longer.picks(0, len(wanted))
    assert list(zip(picks["epoch"].tolist(), picks["index"].tolist(), strict=True)) == wanted
    assert picks["first_record"].tolist() == [index * WINDOW for _, index in wanted]
    with grown.loader(1, epochs=3) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == longer.state_dict(12)
        for step, batch in enumerate(loader, 2):
            located = loader.locate(step)
            assert [(each.epoch, each.index) for each in located] == rows(batch, grown.tokens)
            assert located == longer.locate(step)
            for number, each in enumerate(located):
                assert [span.id for span in each.spans] == [span.id for span in batch.spans if span.row == number]
    assert job.grown(job.state_dict(4)).state_dict(4) == job.state_dict(4)


def test_what_is_not_the_same_job_is_refused_as_by_refuse(grown: Grown, tmp_path: Path) -> None:
    with grown.loader(0) as old:
        state = next(old).state_dict()
    write(tmp_path / "another", RECORDS[0], 17)
    penstock.append(tmp_path / "another", tmp_path / "another")
    another = penstock.open(tmp_path / "another").windows(WINDOW)
    cases = {
        "seed: saved 3, now 4": (grown.view(1), {"seed": 4}),
        "order: saved uniform, now sequential": (grown.view(1), {"order": "sequential"}),
        "window: saved 10, now 5": (grown.datasets[1].windows(5), {}),
        "lookahead: saved 0, now 1": (grown.datasets[1].windows(WINDOW, lookahead=1), {}),
        "view: saved windows, now documents": (grown.datasets[1].documents(), {}),
        r"skip before position 6: saved none, now \(0, 2\)": (grown.view(1), {"skip": [(0, 2)]}),
        r"dataset: .* Compared were the first 1 of these 2 shards": (another, {}),
        "dataset: the state was saved on": (grown.datasets[1].select([1, 0]).windows(WINDOW), {}),
    }
    for words, (view, options) in cases.items():
        given = {"batch_size": 6, "seed": 3, "framework": "numpy", "on_mismatch": "grown", **options}
        with penstock.Loader(view, **given) as loader:
            before = next(loader).state_dict()
            with pytest.raises(penstock.StateMismatchError, match=words):
                loader.load_state_dict(state)
            assert loader.state_dict() == before  # a refused state changes nothing
            next(loader)
    with grown.loader(1) as loader, grown.loader(0) as smaller:
        longer = loader.state_dict()
        longer["position"] = 6
        with pytest.raises(penstock.StateMismatchError, match=r"dataset: the state was saved on .*2 shards"):
            smaller.load_state_dict(longer)


def test_a_damaged_history_is_refused_and_not_run(grown: Grown) -> None:
    with grown.loader(0) as old, grown.loader(1) as loader:
        loader.load_state_dict(next(old).state_dict())
        good = list(islice(loader, 2))[-1].state_dict()
    for change in (
        lambda stages: stages.clear(),
        lambda stages: stages[0].pop("source"),
        lambda stages: stages[0].update(begin=1),
        lambda stages: stages[1].update(begin=14),
        lambda stages: stages[1].update(begin=-13),
        lambda stages: stages[1].update(begin="13"),
        lambda stages: stages.reverse(),
        lambda stages: stages[0]["order"].update(seed=9),
        lambda stages: stages[0]["source"]["dataset"].update(shards=2),
        lambda stages: stages[0]["source"]["dataset"].update(fingerprint="0" * 32),
        lambda stages: stages[0]["source"].update(view={"kind": "documents"}),
    ):
        job = json.loads(good["job"])
        change(job["order"]["stages"])
        with grown.loader(1) as loader:
            with pytest.raises(penstock.StateMismatchError):
                loader.load_state_dict({**good, "job": json.dumps(job)})
            assert loader.position == 0 and len(next(loader).indices) == 6


def test_other_words_name_this_one(grown: Grown) -> None:
    def refusing(number: int, word: str = "refuse") -> penstock.Loader:
        return penstock.Loader(grown.view(number), 6, seed=3, framework="numpy", on_mismatch=word)

    with grown.loader(0) as old, refusing(1) as loader:
        state = next(old).state_dict()
        with pytest.raises(penstock.StateMismatchError) as caught:
            loader.load_state_dict(state)
        assert "the first 1 of these 2 shards are the state's" in str(caught.value)
        assert 'on_mismatch="grown" ends the epoch over them' in str(caught.value)
    with refusing(1, "restart") as loader:
        assert loader.load_state_dict(state).position == 0
    with grown.loader(1) as going, refusing(1) as loader:
        going.load_state_dict(state)
        with pytest.raises(penstock.StateMismatchError, match='grew in the state\'s run: on_mismatch="grown" goes on'):
            loader.load_state_dict(next(going).state_dict())


def test_views_that_have_no_meaning_over_more_shards_are_refused_at_once(grown: Grown, tmp_path: Path) -> None:
    view, dataset = grown.view(0), grown.datasets[0]
    grown.tokens.tofile(tmp_path / "raw.bin")
    raw = penstock.open(tmp_path / "raw.bin", dtype="u2").windows(WINDOW)
    mixture = penstock.Mixture({"a": view}, [penstock.Stage({"a": 1})])
    for words, given, options in (
        ("a later stage", mixture, {}),
        ("orders.Weighted draws from a table", view, {"order": orders.Weighted(np.ones(len(view)))}),
        ("orders.Balanced draws from a table", view, {"order": orders.Balanced(np.arange(len(view)))}),
        ("phase='random'", dataset.windows(WINDOW, phase="random"), {}),
        ("is a selection", view.select([3, 1, 4]), {}),
        ("is a selection", view[::-1], {}),
        ("penstock import", raw, {}),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.Loader(given, 2, on_mismatch="grown", **options)
    with pytest.raises(penstock.InvalidArgumentError, match=r"on_mismatch='grow': must be one of .*'grown'"):
        penstock.Loader(view, 2, on_mismatch="grow")  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["documents", "padded", "bucketed", "split", "slice", "packed", "lookahead"])
def test_views_whose_first_observations_stay(grown: Grown, what: str) -> None:
    def view(number: int) -> penstock.View:
        dataset = grown.datasets[number]
        return {
            "documents": dataset.documents,
            "padded": lambda: dataset.documents().padded(),
            "bucketed": dataset.documents,
            "split": lambda: dataset.windows(WINDOW).split(4, seed=1)[0],
            "slice": lambda: dataset.windows(WINDOW)[3::2],
            "packed": lambda: dataset.packed(32, long="split"),
            "lookahead": lambda: dataset.windows(7, lookahead=3),
        }[what]()

    def order(number: int) -> orders.Order:
        return orders.Bucketed(view(number).lengths(), 8, 2) if what == "bucketed" else orders.Uniform()

    def loader(number: int) -> penstock.Loader:
        given = {"seed": 3, "order": order(number), "epochs": 3, "framework": "numpy", "on_mismatch": "grown"}
        return penstock.Loader(view(number), 4, **given)

    sizes = [len(view(number)) for number in range(2)]
    assert sizes[0] < sizes[1]
    old, new = (view(number).read(range(sizes[0])) for number in range(2))
    for name in old:
        np.testing.assert_array_equal(old[name], new[name])
    with loader(0) as first:
        state = next(first).state_dict()
    with loader(1) as second:
        second.load_state_dict(state)
        found = [int(i) for batch in second for i in batch.indices[batch.valid]]
    wanted: list[int] = []
    for epoch in range(3):
        number = min(epoch, 1)
        native = orders.resolve(order(number), sizes[number], 3)
        wanted += native.pick(epoch * sizes[number], 1, sizes[number])[0].tolist()
    assert found == wanted[4:]


def test_batches_held_across_a_load_stay_and_a_closed_loader_stays_closed(grown: Grown) -> None:
    with grown.loader(0) as old:
        state = next(old).state_dict()
    with grown.loader(1) as loader:
        held = next(loader)
        before = rows(held, grown.tokens)
        loader.load_state_dict(state)
        list(islice(loader, 5))
        assert rows(held, grown.tokens) == before
        assert held.state_dict()["job"] != loader.state_dict()["job"]
    loader.load_state_dict(grown_state(grown))
    with pytest.raises(penstock.InvalidArgumentError, match="closed"):
        next(loader)


def grown_state(grown: Grown) -> dict[str, Any]:
    """Of a run that grew at another position than others here."""
    with grown.loader(0) as old:
        return list(islice(old, 4))[-1].state_dict()


def test_in_a_forked_child_it_is_refused(grown: Grown) -> None:
    state = grown_state(grown)
    with grown.loader(1) as loader:
        next(loader)
        child = os.fork()
        if child == 0:
            try:
                loader.load_state_dict(state)
            except penstock.InvalidArgumentError as error:
                os._exit(0 if "forked child" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        loader.load_state_dict(state)
        next(loader)


def test_adapters_and_collections_say_what_they_do_not_take(grown: Grown) -> None:
    torch = pytest.importorskip("torch")
    from penstock.adapters.torch import BatchDataset

    assert torch
    with pytest.raises(penstock.InvalidArgumentError, match=r"use a penstock\.Loader"):
        BatchDataset(grown.view(0), 2, on_mismatch="grown")
    with pytest.raises(penstock.InvalidArgumentError, match="collection"):
        penstock.CollectionLoader(np.arange(10), 2, on_mismatch="grown")
