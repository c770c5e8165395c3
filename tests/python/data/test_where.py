"""Documents that a condition on their columns chooses: SQL's answers, what views of them hold, what states say of them.

How such views go with everything that a loader takes, tests/model says (its dimension `where`).
"""

from __future__ import annotations

import json
import pickle
import random
import re
import sqlite3
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused
from penstock._cli.main import main

COLUMNS = {
    "small": "i1",
    "big": "i8",
    "u": "u4",
    "score": "f4",
    "x": "f8",
    "half": "f2",
    "flag": "?",
    "other": "?",
    "lang": "category",
    "kind": "category",
    'the "name"': "i2",
    "wide": ("f4", (3,)),
}
WORDS = ["en", "de", "", "it's", "é", "Z", "en ", "日本"]
NUMBERS = {
    "small": [-128, -1, 0, 1, 2, 5, 127],
    "big": [-(2**63), -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 1],
    "u": [0, 1, 2, 5, 2**32 - 1],
    "score": [-1.5, 0, 0.25, 0.1, 0.7, 1, 2, float("nan"), float("inf")],
    "x": [-1.5, 0, 0.1, 1, 2, 2.0**53, 1e300, float("nan"), float("-inf")],
    "half": [-1.5, 0, 0.1, 1, 2, float("nan")],
    'the "name"': [-5, 0, 1, 2, 3],
}
LITERALS = ["0", "1", "-1", "2", "0.1", "0.25", "2.5", "127.5", "-1.5", "1e3", "9007199254740993", "9007199254740992.0",
            "9223372036854775807", "-9223372036854775808", "1e300", "0.69999998807907104"]  # fmt: skip
FLAGS = ["flag", "other", "not flag", "flag = other", "flag <> other", "flag = true", "false <> other", "true", "false",
         "null", "1 = 1", "'a' > 'b'", "flag is null", "other in (false, true)"]  # fmt: skip
SHARDS = (137, 1, 300)


def values_of(chance: random.Random, count: int, words: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {name: [chance.choice(some) for _ in range(count)] for name, some in NUMBERS.items()}
    for name in ("flag", "other"):
        found[name] = [chance.random() < 0.5 for _ in range(count)]
    for name in ("lang", "kind"):
        found[name] = [chance.choice([None, *words]) for _ in range(count)]
    found["wide"] = np.zeros((count, 3), "f4")
    return found


def write(path: Path, values: dict[str, Any], lengths: list[int], **options: Any) -> Path:
    begin = options.pop("begin", 0)
    token = np.arange(begin, begin + sum(lengths), dtype="u2")
    with penstock.Writer(path, {"token": "u2"}, columns=COLUMNS, **options) as writer:
        writer.append_batch(np.array(lengths), columns=values, token=token)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[penstock.Dataset, sqlite3.Connection, list[int]]:
    """A dataset of three shards, each with its own names of categories; the same as a table; lengths of documents."""
    folder = tmp_path_factory.mktemp("where")
    chance = random.Random(7)
    table = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in COLUMNS if name != "wide")
    table.execute(f"create table documents ({names})")
    paths, every = [], []
    for number, count in enumerate(SHARDS):
        values = values_of(chance, count, chance.sample(WORDS, 5))
        lengths = [chance.choice([0, 1, 3, 8, 20, 40]) for _ in range(count)]
        paths.append(write(folder / f"{number}", values, lengths, begin=sum(every)))
        every += lengths
        rows = zip(*(values[name] for name in COLUMNS if name != "wide"), strict=True)
        marks = ", ".join("?" * (len(COLUMNS) - 1))
        as_stored = ([_stored(name, value) for name, value in zip(COLUMNS, row, strict=False)] for row in rows)
        table.executemany(f"insert into documents values ({marks})", as_stored)
    penstock.combine(paths, folder / "all")
    return penstock.open(folder / "all"), table, every


def _stored(name: str, value: Any) -> Any:
    """The number that a column holds, as sqlite takes it, for which NaN is null."""
    if isinstance(value, float):
        return float(np.asarray(value, COLUMNS[name]))
    return value


def conditions(seed: int, count: int) -> Iterator[str]:
    chance = random.Random(seed)
    for _ in range(count):
        yield condition(chance, chance.randint(0, 4))


def condition(chance: random.Random, depth: int) -> str:
    if depth == 0:
        return predicate(chance)
    how = chance.random()
    if how < 0.25:
        return f"not {inner(chance, depth)}"
    word = chance.choice(["and", "or", "AND", "Or"])
    return f" {word} ".join(inner(chance, depth) for _ in range(chance.randint(2, 3)))


def inner(chance: random.Random, depth: int) -> str:
    text = condition(chance, chance.randint(0, depth - 1))
    return f"({text})" if " " in text else text


def name_of(chance: random.Random, names: list[str]) -> str:
    name = chance.choice(names)
    return '"the ""name"""' if name.startswith("the") else name if chance.random() < 0.8 else f'"{name}"'


def predicate(chance: random.Random) -> str:
    sign = chance.choice(["=", "==", "<>", "!=", "<", "<=", ">", ">="])
    of_text = chance.random() < 0.35
    name = name_of(chance, ["lang", "kind"] if of_text else list(NUMBERS))

    def literal() -> str:
        if chance.random() < 0.06:
            return "null"
        if of_text:
            return "'" + chance.choice([*WORDS, "none such"]).replace("'", "''") + "'"
        return chance.choice(LITERALS)

    how = chance.random()
    if how < 0.1:
        return chance.choice(FLAGS)
    if how < 0.2:
        return f"{name} is {chance.choice(['', 'not '])}null"
    if how < 0.4:
        some = ", ".join(literal() for _ in range(chance.randint(1, 5)))
        return f"{name} {chance.choice(['', 'not '])}in ({some})"
    if how < 0.5:
        return f"{name} {sign} {name_of(chance, ['lang', 'kind'] if of_text else list(NUMBERS))}"
    return f"{name} {sign} {literal()}" if how < 0.9 else f"{literal()} {sign} {name}"


def test_conditions_choose_what_sql_chooses(made: Any) -> None:
    dataset, table, _ = made
    chose = 0
    for text in conditions(0, 3_000):
        wanted = [number for (number,) in table.execute(f"select rowid - 1 from documents where {text} order by rowid")]
        chosen = dataset.where(text)
        assert chosen.numbers.tolist() == wanted, text
        assert len(chosen) == len(wanted)
        again = dataset.where(chosen.condition)  # its own text is a condition, and says the same
        assert (again.condition, again.digest) == (chosen.condition, chosen.digest), text
        chose += 0 < len(wanted) < sum(SHARDS)
    assert chose > 1_500  # most of them choose some


def test_integers_of_64_bits_without_sign_are_exact(tmp_path: Path) -> None:
    values = [0, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    with penstock.Writer(tmp_path / "d", {"token": "u2"}, columns={"id": "u8", "near": "f8", "signed": "i8"}) as writer:
        for value in values:
            writer.append(token=[1], columns={"id": value, "near": float(value), "signed": -1})
    dataset = penstock.open(tmp_path / "d")
    for literal in (*values, 0.5, 2**52 + 0.5, 1e19, float(2**63 + 2**40)):
        for sign in ("=", ">", "<="):
            exact = Fraction(literal)  # Python compares it with integers exactly
            is_so = {"=": exact.__eq__, ">": exact.__lt__, "<=": exact.__ge__}[sign]
            wanted = [number for number, value in enumerate(values) if is_so(value)]
            assert dataset.where(f"id {sign} {literal!r}").numbers.tolist() == wanted, (sign, literal)
    for literal in ("9007199254740993.0", "9007199254740993000e-3", "9.007199254740993e+15", "0.9007199254740993e16"):
        assert dataset.where(f"id = {literal}").numbers.tolist() == [2], literal
        assert dataset.where(f"id > {literal}").numbers.tolist() == [3, 4, 5, 6], literal
    assert dataset.where("id < 18446744073709551616.0 and id > 0.00").numbers.tolist() == [1, 2, 3, 4, 5, 6]
    wanted = [n for n, value in enumerate(values) if value == int(float(value))]
    assert dataset.where("id = near").numbers.tolist() == wanted
    assert len(dataset.where("signed < id")) == len(values)


def test_windows_are_those_of_which_all_records_are_of_chosen_documents(made: Any) -> None:
    dataset, _, lengths = made
    ends = np.cumsum(lengths)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for text in ("kind is null or kind <> 'de'", "score > 0.2 or flag or small < 2", "true", "flag"):
        chosen = dataset.where(text)
        is_chosen = np.zeros(len(lengths), bool)
        is_chosen[chosen.numbers] = True
        for window, lookahead in ((1, 0), (5, 1), (16, 3), (40, 0)):
            whole = dataset.windows(window, lookahead)
            begins = np.arange(len(whole)) * window
            wanted = [n for n, at in enumerate(begins) if is_chosen[owner[at : at + window + lookahead]].all()]
            view = chosen.windows(window, lookahead)
            assert view.base_indices(range(len(view))).tolist() == wanted, (text, window, lookahead)
            for part in (view[1:], whole.where(text)[1:], whole[::-1].where(text)[: len(wanted) - 1]):
                got = part.base_indices(range(len(part))).tolist()
                assert sorted(got) == wanted[1:]
    assert int(ends[-1]) == dataset.records


def test_packed_rows_are_those_of_a_dataset_of_the_chosen_documents_alone(made: Any, tmp_path: Path) -> None:
    dataset, _, lengths = made
    chosen = dataset.where("kind <> 'de' and flag")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    bounds = np.cumsum([0, *SHARDS])
    paths = []
    for number, (first, stop) in enumerate(pairwise(bounds)):
        paths.append(tmp_path / f"{number}")
        with penstock.Writer(paths[-1], {"token": "u2"}) as writer:
            for each in chosen.numbers[(chosen.numbers >= first) & (chosen.numbers < stop)]:
                writer.append(token=np.arange(starts[each], starts[each + 1]))
    penstock.combine(paths, tmp_path / "alone")
    alone = penstock.open(tmp_path / "alone")
    for window, options in (
        (64, {}),
        (32, {"fit": "first", "group": 7}),
        (16, {"long": "drop", "multiple_of": 4, "group": 50}),
        (24, {"long": "truncate", "group": 1}),
    ):
        ours, theirs = chosen.packed(window, metadata="spans", **options), alone.packed(window, **options)
        assert ours.packing == theirs.packing and ours.packing.documents == len(chosen)
        got, wanted = ours.read(range(len(ours))), theirs.read(range(len(theirs)))
        np.testing.assert_array_equal(got["token"], wanted["token"])
        np.testing.assert_array_equal(got.labels, wanted.labels)
        documents = bounds[got.spans.ids[:, 0]] + got.spans.ids[:, 1]
        assert set(documents.tolist()) <= set(chosen.numbers.tolist())
    refused(r'long="refuse".*|document \d+ has \d+ records.*its number is among the documents that the condition chose',
            chosen.packed, 16, long="refuse")  # fmt: skip
    refused("rows are filled with documents, so these are chosen before", dataset.packed(16).where, "flag")
    refused("the dataset says where the documents are", dataset.where("flag").packed, 8, end_of_document=0)
    refused("none of its 438 documents is chosen where flag and not flag", dataset.where("flag and not flag").packed, 8)


def test_a_table_of_chosen_documents_gives_the_same_rows_and_is_of_these_alone(made: Any, tmp_path: Path) -> None:
    dataset, _, _ = made
    path, file, text = str(tmp_path / "copy"), str(tmp_path / "t"), "lang <> 'de' or flag"
    penstock.combine([dataset.path], path)
    for window, options, words in (
        (16, {}, []),
        (24, {"fill": "exact", "fit": "next"}, ["--fill", "exact", "--fit", "next"]),
    ):
        table = f"{file}-{window}"
        assert main(["pack", path, "--where", text, "--window", str(window), "--out", table, *words]) == 0
        chosen = penstock.open(path).where(text)
        with_table, without = chosen.packed(window, table=table, **options), chosen.packed(window, **options)
        assert with_table.packing == without.packing and with_table.packing.documents == len(chosen)
        every = range(len(without))
        np.testing.assert_array_equal(with_table.read(every)["token"], without.read(every)["token"])
        assert state_of(with_table) == state_of(without)
    table = f"{file}-16"
    refused(
        "it is of those where flag or lang <> 'de', not of all documents", penstock.open(path).packed, 16, table=table
    )
    refused("it is of those where flag or .*, not of those where flag", dataset.where("flag").packed, 16, table=table)
    assert main(["pack", path, "--window", "16", "--out", f"{file}-all"]) == 0
    refused("it is of all documents, not of those where flag", dataset.where("flag").packed, 16, table=f"{file}-all")
    penstock.annotate(path, {"flag": ~np.asarray(dataset.columns["flag"])})
    changed = penstock.open(path).where(text)
    refused("the documents where .* were others when it was packed: columns changed", changed.packed, 16, table=table)


def test_a_table_holds_a_condition_of_any_length(made: Any, tmp_path: Path) -> None:
    dataset, _, _ = made
    for count in (5, 600, 1_000, 50_000):  # the header has room for about 700 of these numbers
        many = f"small in ({', '.join(map(str, range(count)))})"
        table = str(tmp_path / f"{count}")
        assert main(["pack", str(dataset.path), "--where", many, "--window", "16", "--out", table]) == 0
        chosen = dataset.where(many)
        view = chosen.packed(16, table=table)
        assert view.packing == chosen.packed(16).packing and state_of(view) == state_of(chosen.packed(16))
        versions = {5: 2, 600: 2}
        assert f'"version": {versions.get(count, 3)},'.encode() in Path(table).read_bytes()[:4096]
        refused("it is of those where small in", dataset.where("flag").packed, 16, table=table)
    whole = Path(table).read_bytes()
    damaged = tmp_path / "damaged"
    for text in (whole[:-1], whole[:-9] + b"?" + whole[-8:], whole[:-1000] + b"?" + whole[-999:], whole + b"?"):
        damaged.write_bytes(text)
        refused("wants|crc32c|CRC32C", dataset.where(many).packed, 16, table=damaged, error=penstock.CorruptionError)


def state_of(view: penstock.View, **options: Any) -> dict[str, Any]:
    with penstock.Loader(view, 4, framework="numpy", **options) as loader:
        return next(loader).state_dict()


def load(view: penstock.View, state: dict[str, Any], **options: Any) -> None:
    with penstock.Loader(view, 4, framework="numpy", **options) as loader:
        loader.load_state_dict(state)


def test_states_say_the_condition_and_what_it_chose(made: Any, tmp_path: Path) -> None:
    dataset, _, _ = made
    view = dataset.where("score > 0.2 and kind <> 'de'").documents()
    state = state_of(view)
    said = json.loads(state["job"])["sources"][0]["view"]
    chosen = dataset.where("score > 0.2 and kind <> 'de'")
    assert said == {"kind": "documents", "where": {
        "condition": "kind <> 'de' and score > 0.2", "count": len(chosen), "digest": chosen.digest, "documents": 438,
    }}  # fmt: skip
    same = [
        dataset.where("NOT (kind = 'de' OR 0.2 >= score)").documents(),
        dataset.documents().where("(score > 2e-1) and ((\"kind\" != 'de'))"),
        dataset.where("kind <> 'de'").where("score > 0.2").documents(),
        pickle.loads(pickle.dumps(view)),
    ]
    for each in same:
        load(each, state)
        assert state_of(each) == state
    for other, words in {
        dataset.documents(): "where: saved kind <> 'de' and score > 0.2, now none",
        dataset.where("score > 0.2").documents(): "where: saved kind <> 'de' and score > 0.2, now score > 0.2",
        dataset.documents().select(chosen.numbers): "selection: saved none",
        view[1:]: "slice2: saved none",
    }.items():
        refused(words, load, other, state, error=penstock.StateMismatchError)
    refused("where: saved none, now flag", load, dataset.where("flag").packed(9), state_of(dataset.packed(9)),
            error=penstock.StateMismatchError)  # fmt: skip
    penstock.combine([dataset.path], tmp_path / "copy")
    load(penstock.open(tmp_path / "copy").where("score > 0.2 and kind <> 'de'").documents(), state)
    scores = np.asarray(dataset.columns["score"]).copy()
    scores[chosen.numbers[0]] = 0
    penstock.annotate(tmp_path / "copy", {"score": scores})
    changed = penstock.open(tmp_path / "copy").where("score > 0.2 and kind <> 'de'")
    words = (
        rf"where kind <> 'de' and score > 0.2: it chose {len(chosen)} documents when .*, now {len(changed)}, or other"
    )
    refused(words, load, changed.documents(), state, error=penstock.StateMismatchError)


@pytest.mark.parametrize("kind", ["documents", "windows", "packed"])
def test_a_run_that_is_restored_at_any_step_on_1_to_5_ranks_gives_the_rest(made: Any, kind: str) -> None:
    dataset, _, _ = made
    chosen = dataset.where("lang <> 'de' or flag")
    view = {"documents": chosen.documents, "windows": lambda: chosen.windows(2), "packed": lambda: chosen.packed(16)}[
        kind
    ]()
    options: dict[str, Any] = {"global_batch_size": 60, "seed": 5, "epochs": 1, "framework": "numpy", "threads": 1}
    with penstock.Loader(view, **options) as loader:
        states, rows = [loader.state_dict()], []
        for batch in loader:
            rows.append(batch.indices.tolist())
            states.append(loader.state_dict())
    assert len(states) > 3 and sorted(each for batch in rows for each in batch if each >= 0) == list(range(len(view)))
    for step, state in enumerate(states):
        for ranks in range(1, 6):
            given = [penstock.Loader(view, **options, rank=rank, world_size=ranks) for rank in range(ranks)]
            for loader in given:
                loader.load_state_dict(state)
            rest = [
                [int(batches[i % ranks].indices[i // ranks]) for i in range(60)] for batches in zip(*given, strict=True)
            ]
            for loader in given:
                loader.close()
            assert rest == rows[step:], (step, ranks)


@pytest.mark.parametrize("kind", ["documents", "windows", "packed"])
def test_a_dataset_that_grew_goes_on_with_what_the_condition_chooses_of_it(tmp_path: Path, kind: str) -> None:
    chance = random.Random(3)
    text = "flag or small > 1"
    for number in range(2):
        lengths = [chance.choice([5, 9, 20]) for _ in range(60)]
        write(tmp_path / f"{number}", values_of(chance, 60, WORDS), lengths)
    penstock.combine([tmp_path / "0"], tmp_path / "d")

    def view(dataset: penstock.Dataset) -> penstock.View:
        chosen = dataset.where(text)
        return chosen.documents()[1:] if kind == "documents" else getattr(chosen, kind)(7)

    old = view(penstock.open(tmp_path / "d"))
    state = state_of(old, seed=1, on_mismatch="grown")
    penstock.append(tmp_path / "d", tmp_path / "1")
    new = view(penstock.open(tmp_path / "d"))
    assert len(new) > len(old)
    options: dict[str, Any] = {"global_batch_size": 4, "seed": 1, "framework": "numpy", "on_mismatch": "grown"}
    with penstock.Loader(old, **options, epochs=1) as loader, penstock.Loader(new, **options, epochs=2) as grown:
        for each in loader, grown:
            each.load_state_dict(state)
        first = np.concatenate([batch.indices[batch.valid] for batch in loader])
        rest = np.concatenate([batch.indices[batch.valid] for batch in grown])
    assert rest[: len(first)].tolist() == first.tolist()
    assert sorted(rest[len(first) :].tolist()) == list(range(len(new)))
    other = penstock.open(tmp_path / "d").where("flag or small > 2")
    with penstock.Loader(other.documents() if kind == "documents" else getattr(other, kind)(7), **options) as loader:
        refused("where: saved flag or small > 1, now flag or small > 2", loader.load_state_dict, state,
                error=penstock.StateMismatchError)  # fmt: skip


def test_what_is_no_condition_on_the_columns_is_refused_with_the_place(made: Any, tmp_path: Path) -> None:
    dataset, _, _ = made
    names = 'there are small, big, u, score, x, half, flag, other, lang, kind, "the ""name""", wide'
    for text, words in {
        "scor > 1": f'condition "scor > 1", character 1: no column scor: is score meant\\?; {names}',
        "flag and LANG = 'en'": "character 10: no column LANG: is lang meant",
        "lang = \"en\"": "character 8: no column en; a text stands in single quotes, 'en'; there are small",
        "qqqqqq > 1": f"no column qqqqqq; {names}",
        "score = 'a'": "character 9: score is float32, and is compared with a text",
        "lang = 3": "character 8: lang is a category, of texts, and is compared with a number: a text stands in single",
        "lang in ('a', 2)": "character 15: lang is a category, of texts, and is compared with a number",
        "small in (1, 'a')": "character 14: small is int8, and is compared with a text",
        "flag = 1": "character 8: flag is bool, and is compared with a number: it is a condition by itself",
        "flag in (true, 1)": "character 16: flag is bool, and is compared with a number",
        "score": "character 1: score is float32, which is true or false only where it is compared: write <> 0",
        "not lang": "character 5: lang is a category.*: write = 'text'",
        "wide > 1": "character 1: wide has an array for each document",
        "score > lang": "character 9: score is float32, and lang is a category, of texts: they do not compare",
        "flag < other": "character 8: booleans are equal or not, none is less than another",
        "score > 0,8": "character 10: \",\" where the condition should end or go on by and, or",
        "": "an empty condition: one such as \"score > 0.8 and lang = 'en'\" is wanted",
        "lang = '\ud800'": "character 9 of the condition is half of a character",
    }.items():  # fmt: skip
        refused(words, dataset.where, text)
        refused(words, dataset.windows(4).where, text)
    for wrong in (None, 3, np.ones(4, bool), ["flag"]):
        refused("is no text: a condition such as", dataset.where, wrong)
    with penstock.Writer(tmp_path / "json", {"token": "u2"}, "json", columns={"lang": "category"}) as writer:
        writer.append(token=[1], metadata={"score": 1}, columns={"lang": "en"})
    refused(
        "no column score; there are lang; a key of metadata becomes a column by `penstock annotate --from-metadata`",
        penstock.open(tmp_path / "json").where,
        "score > 0",
    )
    for called in (dataset.where, dataset.windows(4).where, dataset.where("flag").where):
        with pytest.raises(TypeError, match=re.escape("""takes a condition as one text: where("lang = 'e''n'")""")):
            called(lang="e'n")
        with pytest.raises(TypeError, match=re.escape('where("small in (1, 2) and flag and score is null")')):
            called(small=[1, 2], flag=True, score=None)
    np.arange(9, dtype="u2").tofile(tmp_path / "t.bin")
    refused("it has no columns, .*`penstock import` it", penstock.open(tmp_path / "t.bin", dtype="u2").where, "a > 1")
    with penstock.Writer(tmp_path / "bare", {"token": "u2"}) as writer:
        writer.append(token=[1])
    refused("it has no columns, .*penstock.annotate adds some", penstock.open(tmp_path / "bare").where, "a > 1")
    write(tmp_path / "compact", values_of(random.Random(1), 3, WORDS), [3, 4, 5], metadata="boundaries")
    penstock.convert(tmp_path / "compact", tmp_path / "ids", layout="ids")
    refused("in the ids layout only the records tell", penstock.open(tmp_path / "ids").where, "flag")
    refused('windows of phase="random" begin elsewhere', dataset.where("flag").windows, 4, phase="random")


def test_a_view_of_nothing_says_why(made: Any) -> None:
    dataset, _, _ = made
    none = dataset.where("flag and not flag")
    assert len(none) == len(none.documents()) == len(none.windows(5)) == 0 and none.numbers.tolist() == []
    refused("no observations: the condition chooses none of 438 documents", penstock.Loader, none.documents(), 4)
    few = dataset.where("big = 9007199254740993 and flag")
    words = r"no observations: no window lies in chosen documents alone, with its lookahead: dataset.where\(…\).packed"
    refused(words, penstock.Loader, few.windows(200), 4)
    refused(f"sources.*{words}", penstock.Mixture, {"a": (few.windows(200))}, {"a": 1})


def test_a_repr_says_the_condition_and_how_many(made: Any) -> None:
    dataset, _, _ = made
    chosen = dataset.where("flag  AND lang='en'")
    assert repr(chosen).endswith(f""".where("flag and lang = 'en'") of {len(chosen)} documents""")
    assert repr(chosen.documents()[1:]).endswith(f""").documents().where("flag and lang = 'en'")[1:{len(chosen)}]""")
    assert repr(chosen.packed(9)).endswith(""").where("flag and lang = 'en'").packed(9)""")


def test_cells_are_chosen_too(tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "cells", {"gene": "u2", "count": "u1"}, columns={"plate": "category"}) as writer:
        for number in range(9):
            writer.append(gene=[number], count=[1], columns={"plate": f"p{number % 3}"})
    cells = penstock.open(tmp_path / "cells").where("plate in ('p0', 'p2')").cells("csr")
    assert [cells[number]["gene"].tolist() for number in range(len(cells))] == [[0], [2], [3], [5], [6], [8]]


def test_a_damaged_column_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "d", values_of(random.Random(1), 9_000, WORDS), [1] * 9_000)
    file = path / "00000" / "columns.bin"
    content = bytearray(file.read_bytes())
    content[10_000] ^= 1
    file.write_bytes(content)
    refused("columns.bin: bytes .* are not those that were written", penstock.open(path).where, "big > 0",
            error=penstock.CorruptionError)  # fmt: skip
    assert len(penstock.open(path).where("flag")) > 0  # no other column is read
    types = [np.dtype(each).itemsize if each != "category" else 1 for each in COLUMNS.values()]
    begins = np.cumsum([0, *(-(-size * 9_000 // 64) * 64 for size in types)])
    content[begins[list(COLUMNS).index("lang")] + 77] = 100
    file.write_bytes(content)
    for text in ("lang = 'en'", "lang < kind"):
        refused(f"column lang has the code 100, the shard has {len(WORDS)} categories",
                penstock.open(path, checks="none").where, text, error=penstock.CorruptionError)  # fmt: skip
