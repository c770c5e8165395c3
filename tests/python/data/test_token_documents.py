"""Documents that a token ends or begins: the same in place, imported, packed and padded; the wrong side is refused."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _refused import refused
from penstock._cli.main import main
from penstock.columns import DocumentIds

TOKEN = 7
SIDES = ("end_of_document", "begin_of_document")
OTHER = dict(zip(SIDES, SIDES[::-1], strict=True))
OF_SIDES = pytest.mark.parametrize("side", SIDES)


def streams(side: str) -> list[np.ndarray]:
    """Tokens of three files, the second of which goes on where the first is cut; the third is empty."""
    rng = np.random.default_rng(5)
    tokens = rng.integers(8, 60_000, 5_000)
    tokens[rng.random(5_000) < 0.05] = TOKEN
    tokens[[100, 101, 4_000]] = TOKEN
    tokens[0 if side == "begin_of_document" else -1] = TOKEN
    tokens[-1 if side == "begin_of_document" else 0] = 9
    return [tokens[:1_777], tokens[1_777:], tokens[:0]]


def documents_of(parts: list[np.ndarray], side: str) -> list[list[int]]:
    """The documents, from the words of the documentation."""
    found: list[list[int]] = []
    for part in parts:
        open_one: list[int] = []
        for token in part.tolist():
            if side == "begin_of_document" and token == TOKEN and open_one:
                found.append(open_one)
                open_one = []
            open_one.append(token)
            if side == "end_of_document" and token == TOKEN:
                found.append(open_one)
                open_one = []
        if open_one:
            found.append(open_one)
    return found


def llm_c(tokens: np.ndarray) -> bytes:
    head = np.zeros(256, "<i4")
    head[:3] = 20240520, 1, len(tokens)
    return head.tobytes() + tokens.astype("<u2").tobytes()


def put_raw(folder: Path, parts: list[Any], kind: str = "raw") -> tuple[list[Path], dict[str, Any]]:
    """Files of a kind, and what must be said when they are opened."""
    suffix = {"npy": ".npy", "apart": ".ds"}.get(kind, ".bin")
    paths = [folder / f"{number}{suffix}" for number in range(len(parts))]
    for path, part in zip(paths, map(np.asarray, parts), strict=True):
        if kind == "npy":
            np.save(path, part.astype("<i8"))
        else:
            path.write_bytes(llm_c(part) if kind == "llm.c" else part.astype("<u2").tobytes())
        if kind == "apart":
            np.ones(len(part), "?").tofile(f"{path}.loss")
    return paths, {} if kind in ("llm.c", "npy") else {"dtype": "u2"}


def put_own(folder: Path, parts: list[Any]) -> Path:
    for number, part in enumerate(parts):
        with penstock.Writer(folder, {"score": "f4", "token": "u2"}, metadata=None, shard=number) as writer:
            writer.append_batch(token=np.asarray(part, "u2"), score=np.zeros(len(part), "f4"))
    penstock.commit(folder)
    return folder


def tokens_of(view: Any) -> list[list[int]]:
    return [each["token"].tolist() for each in view]


@OF_SIDES
@pytest.mark.parametrize("kind", ["raw", "llm.c", "npy", "apart", "own"])
def test_the_same_documents_in_place_imported_packed_and_padded(tmp_path: Path, kind: str, side: str) -> None:
    parts = streams(side)
    paths, hints = put_raw(tmp_path, parts, kind)
    if kind == "own":
        paths, hints = [put_own(tmp_path / "own", parts)], {"checks": "all"}
    wanted, told = documents_of(parts, side), {side: TOKEN}
    dataset = penstock.open(*paths, **hints)
    view = dataset.documents(**told)
    assert tokens_of(view) == wanted
    assert view.lengths().tolist() == [len(each) for each in wanted]
    assert tokens_of(view.dataset.select([0]).documents()) == documents_of(parts[:1], side)
    packed = dataset.packed(64, fit="first", **told)
    pieces = [span.stop - span.start for row in packed for span in row.spans]
    assert sorted(pieces) == sorted(
        size for each in wanted for size in [64] * (len(each) // 64) + [len(each) % 64] if size
    )
    with penstock.Loader(packed, 4, order="sequential", epochs=1, framework="numpy") as loader:
        assert sum(len(batch.spans) for batch in loader) == len(pieces)
    if kind != "apart":
        padded = view.padded().read(range(len(view)))
        assert [row[:n].tolist() for row, n in zip(padded["token"], padded.lengths, strict=True)] == wanted
    if kind != "own":
        hints |= {"dtype": "u4"} if kind == "npy" else {}
        done = penstock.import_tokens(paths, tmp_path / "d", shard_size=1 << 10, **hints, **told)
        assert (done.documents, done.notes) == (len(wanted), [])
        assert tokens_of(penstock.open(tmp_path / "d").documents()) == wanted


def uses_of(dataset: penstock.Dataset, **told: int) -> list[Callable[[], Any]]:
    return [
        lambda: dataset.documents(**told),
        lambda: dataset.packed(4, **told),
        lambda: dataset.windows(2, **told),
        lambda: penstock.Loader(dataset.windows(2), 1, columns=[DocumentIds(**told)]),
    ]


@OF_SIDES
def test_the_wrong_side_is_refused_and_the_right_one_named(tmp_path: Path, side: str) -> None:
    wrong = {"end_of_document": [TOKEN, 1, 2, TOKEN, 3, TOKEN, 4], "begin_of_document": [1, 2, TOKEN, 3, TOKEN]}
    np.array(wrong[side], "u2").tofile(tmp_path / "a.bin")
    dataset, right = penstock.open(tmp_path / "a.bin", dtype="u2"), {OTHER[side]: TOKEN}
    imported = partial(penstock.import_tokens, tmp_path / "a.bin", tmp_path / "out", dtype="u2")
    for use in (*uses_of(dataset, **{side: TOKEN}), partial(imported, **{side: TOKEN})):
        refused(rf"a\.bin (begins|ends) with token 7 .*{OTHER[side]}=7", use)
    assert not (tmp_path / "out").exists()
    for use in (*uses_of(dataset, **right), partial(imported, **right)):
        use()


@OF_SIDES
def test_ends_of_files_that_do_not_tell_the_side_are_taken_with_a_note(tmp_path: Path, side: str) -> None:
    np.array([TOKEN, 1, TOKEN, 2, TOKEN], "u2").tofile(tmp_path / "a.bin")
    done = penstock.import_tokens(tmp_path / "a.bin", tmp_path / "d", dtype="u2", **{side: TOKEN})
    assert done.documents == 3 and "document is token 7 alone" in done.notes[0] and OTHER[side] in done.notes[0]
    with pytest.warns(UserWarning, match="document is token 7 alone"):
        assert len(penstock.open(tmp_path / "a.bin", dtype="u2").documents(**{side: TOKEN})) == 3
    paths, _ = put_raw(tmp_path, [[1, TOKEN, 2], [3, TOKEN, 4]])
    (note,) = penstock.import_tokens(paths, tmp_path / "e", dtype="u2", **{side: TOKEN}).notes
    assert "no input begins or ends with token 7" in note and OTHER[side] in note


@OF_SIDES
def test_a_file_in_the_middle_that_speaks_for_the_other_side_is_named(
    tmp_path: Path, side: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [[1, 2, TOKEN, 3, TOKEN, 4], [], [TOKEN, 1, 2, TOKEN, 3]]
    if side == "begin_of_document":
        parts = [each[::-1] for each in parts[::-1]]
    paths, told, others = put_raw(tmp_path, parts)[0], {side: TOKEN}, {OTHER[side]: TOKEN}
    named, seen = (paths[2], "begins") if side == "end_of_document" else (paths[0], "ends")
    pattern = rf"{named} {seen} with token 7: .*\({OTHER[side]}\)\?"
    done = penstock.import_tokens(paths, tmp_path / "d", dtype="u2", **told)
    assert len(done.notes) == 1 and re.fullmatch(pattern, done.notes[0]) and done.documents == 6
    dataset = penstock.open(*paths, dtype="u2")
    for use in 2 * uses_of(dataset, **told):
        with pytest.warns(UserWarning, match=pattern) as found:
            use()
        assert [each.filename for each in found] == [__file__]
    command = ["pack", *map(str, paths), "--dtype", "u2", f"--{side.replace('_', '-')}", "7", "--window", "4", "--out"]
    assert main([*command, str(tmp_path / "table")]) == 0
    assert f"(--{OTHER[side].replace('_', '-')})?" in capsys.readouterr().out
    assert main([*command, str(tmp_path / "other"), "--json"]) == 0
    assert re.fullmatch(pattern, json.loads(capsys.readouterr().out)["notes"][0])
    assert penstock.import_tokens(paths, tmp_path / "e", dtype="u2", **others).notes == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in uses_of(dataset, **others):
            use()
        pickle.loads(pickle.dumps(dataset.documents(**others)))


@OF_SIDES
def test_files_of_which_more_than_one_speak_for_the_other_side(tmp_path: Path, side: str) -> None:
    parts = [[1, TOKEN, 2], [TOKEN, 1, TOKEN], [TOKEN]]
    if side == "begin_of_document":
        parts = [each[::-1] for each in parts[::-1]]
    paths, _ = put_raw(tmp_path, parts)
    files = paths[1:] if side == "end_of_document" else paths[:2]
    done = penstock.import_tokens(paths, tmp_path / "d", dtype="u2", **{side: TOKEN})
    assert len(done.notes) == 1 and f"{files[0]} " in done.notes[0] and "(and 1 other file so)" in done.notes[0]
    with pytest.warns(UserWarning, match=r"own: shard \S+ .*\(and 1 other file so\)"):
        penstock.open(put_own(tmp_path / "own", parts)).documents(**{side: TOKEN})


def test_what_tells_no_documents_is_refused(tmp_path: Path) -> None:
    np.arange(100, dtype="u2").tofile(tmp_path / "a.bin")
    dataset = penstock.open(tmp_path / "a.bin", dtype="u2")
    imported = partial(penstock.import_tokens, tmp_path / "a.bin", tmp_path / "d", dtype="u2")
    imported(begin_of_document=50)
    both = {"begin_of_document": 1, "end_of_document": 1}
    for call, words in (
        (partial(dataset.documents, begin_of_document=5_000), "token 5,000 occurs nowhere"),
        (partial(dataset.documents, begin_of_document=70_000), "must be from 0 to 65,535"),
        (partial(dataset.packed, 8, **both), "give one of them"),
        (partial(imported, **both), "give one of them"),
        (dataset.documents, "end_of_document= or begin_of_document="),
        (partial(penstock.open(tmp_path / "d").documents, begin_of_document=50), "says itself where documents are: "),
    ):
        refused(words, call)


def test_a_run_goes_on_over_the_same_side_alone(tmp_path: Path) -> None:
    paths, hints = put_raw(tmp_path, [[TOKEN, 1, TOKEN, 2], [3, 4, 5, TOKEN]])  # either side may be
    dataset = penstock.open(*paths, **hints)
    with pytest.warns(UserWarning, match="ends with token 7"):
        view = dataset.documents(begin_of_document=TOKEN)
    with pytest.warns(UserWarning, match="begins with token 7"):
        other = dataset.documents(end_of_document=TOKEN)
    loader = penstock.Loader(view, 2, framework="numpy")
    next(loader)
    state = loader.state_dict()
    resumed = penstock.Loader(pickle.loads(pickle.dumps(view)), 2, framework="numpy")
    resumed.load_state_dict(state)
    assert next(resumed)["token"].tolist() == next(loader)["token"].tolist()
    refused("begin_of_document", penstock.Loader(other, 2).load_state_dict, state, error=penstock.StateMismatchError)


def test_the_commands_take_either_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    side = "begin_of_document"
    paths, _ = put_raw(tmp_path, streams(side)[:1])
    data = [str(paths[0]), "--dtype", "u2"]
    table = tmp_path / "table"
    for out, command in (("d", ["import"]), ("table", ["pack", "--window", "64"])):
        command = [*command, *data, "--out", str(tmp_path / out)]
        assert main([*command, "--end-of-document", "7"]) == 2
        said = capsys.readouterr().err
        assert "give --begin-of-document 7, not --end-of-document," in said and "_of_document" not in said
        assert main([*command, "--begin-of-document", "7", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["documents"] == len(documents_of(streams(side)[:1], side))
    dataset = penstock.open(paths[0], dtype="u2")
    packed = dataset.packed(64, table=table, begin_of_document=TOKEN)
    assert tokens_of(packed) == tokens_of(dataset.packed(64, begin_of_document=TOKEN))
    loader = penstock.Loader(packed, 4)
    (tmp_path / "state.json").write_text(json.dumps(loader.state_dict()))
    assert main(["trace", *data, "--state", str(tmp_path / "state.json"), "-b", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)
