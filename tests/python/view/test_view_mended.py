"""From the table to its documents in its order, duplicates that are left out, two datasets by a column."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import penstock
import pytest
from _browser import Browser
from _datasets import raw_tokens
from _views import ATTACK, ask, lines, refusal, serving
from penstock._cli.main import main
from penstock._view.server import ViewServer

READY = "document.getElementById('reader')?.dataset"


@pytest.fixture
def tab(tab: Browser) -> Browser:
    """In the size of a laptop's window."""
    tab.size(1280, 800)
    return tab


def show(tab: Browser, server: ViewServer, /, **what: Any) -> None:
    tab.open(f"{server.address}#{urlencode(what)}")
    tab.until("document.body?.dataset.tab")


def click(tab: Browser, selector: str) -> None:
    tab.do(f"document.querySelector({selector!r}).click()")


def texts(tab: Browser, selector: str) -> list[str]:
    return list(tab.do(f"[...document.querySelectorAll({selector!r})].map((each) => each.textContent)"))


def press(tab: Browser, key: str) -> None:
    event = f"new KeyboardEvent('keydown', {{ key: {key!r}, bubbles: true, cancelable: true }})"
    tab.do(f"document.body.dispatchEvent({event})")


def scored(folder: Path, name: str = "scored", documents: int = 60) -> tuple[penstock.Dataset, list[dict[str, Any]]]:
    """Documents whose metadata have what their columns say, some of it otherwise."""
    random = np.random.default_rng(3)
    rows: list[dict[str, Any]] = []
    columns = {"url": "category", "lang": "category", "score": "f4", "stars": "i2", "good": "bool"}
    with penstock.Writer(folder / name, {"token": "u2"}, metadata="json", columns=columns) as writer:
        for number in range(documents):
            values: dict[str, Any] = {
                "url": f"https://example.org/{'long/' * 12}{number % 50}",
                "lang": (None, "en", "de")[number % 3],
                "score": None if number % 10 == 9 else float(random.random()),
                "stars": number % 5,
                "good": number % 2 == 0,
            }
            score = float("nan") if values["score"] is None else values["score"]
            writer.append(
                token=np.arange(number % 50, number % 50 + 3 + number % 50 % 4),
                metadata={**values, "title": f"Title, of {number}"},
                columns={**values, "score": score},
            )
            rows.append(values)
    return penstock.open(folder / name), rows


# ---- the order of the table


@pytest.mark.parametrize(
    "wanted",
    [
        {"where": "good"},
        {"sort": "column.score", "descending": "1"},
        {"where": "lang = 'en'", "sort": "length"},
        {"descending": "1"},
        {"shortest": 4, "longest": 5},
    ],
    ids=str,
)
def test_neighbours_are_those_of_the_table(tmp_path: Path, wanted: dict[str, Any]) -> None:
    dataset, _ = scored(tmp_path)
    with serving(dataset) as server:
        order = [row["document"] for row in ask(server, "table", count=200, **wanted)["rows"]]
        assert order != sorted(order) or len(order) < 60
        beside = [None, *order, None]
        for document in range(60):
            found = ask(server, "neighbours", document=document, **wanted)
            none = {"count": len(order), "place": None, "before": None, "after": None}
            if document in order:
                place = order.index(document)
                none |= {"place": place, "before": beside[place], "after": beside[place + 2]}
            assert found == none
        assert ask(server, "neighbours", document=(1 << 64) - 1, **wanted)["place"] is None


def test_next_and_previous_go_in_the_order_of_the_table(tab: Browser, tmp_path: Path) -> None:
    dataset, _ = scored(tmp_path)
    wanted = {"where": "lang = 'en'", "sort": "column.score", "descending": "1"}
    with serving(dataset) as server:
        order = [row["document"] for row in ask(server, "table", **wanted)["rows"]]
        show(tab, server, tab="table", **wanted)
        tab.until(f"document.getElementById('grid').dataset.ready === '0 of {len(order)}'")
        click(tab, "#rows tbody tr td")
        tab.until(f"{READY}.through === '0'")
        assert tab.do("document.getElementById('previous').disabled")
        said = f"1 of {len(order)} in the table: lang = 'en' · sorted by score, largest first"
        assert texts(tab, "#through-said") == [said]
        assert "in the table" in tab.do("document.getElementById('next').title")
        for place in (1, 2, 3):
            click(tab, "#next") if place % 2 else press(tab, "ArrowRight")
            tab.until(f"{READY}.ready === 'document {order[place]}' && {READY}.through === '{place}'")
        press(tab, "ArrowLeft")
        tab.until(f"{READY}.ready === 'document {order[2]}' && {READY}.through === '2'")
        show(tab, server, kind="document", index=order[-1], **wanted)
        tab.until(f"{READY}?.through === '{len(order) - 1}'")
        assert tab.do("document.getElementById('next').disabled")
        # A document that the filter does not choose is among all of them, and so is each without a filter.
        show(tab, server, kind="document", index=3, **wanted)
        tab.until(f"{READY}?.through === 'none'")
        assert texts(tab, "#through-said")[0].startswith(f"Not among the {len(order)} of the table")
        click(tab, "#next")
        tab.until(f"{READY}.ready === 'document 4' && {READY}.through !== 'none'")
        click(tab, "#through-all")
        tab.until("document.getElementById('through').hidden")
        click(tab, "#next")
        tab.until(f"{READY}.ready === 'document 5'")
        assert "in the dataset" in tab.do("document.getElementById('next').title")
        # Windows have no table, and a wrong condition leaves the dataset's order.
        show(tab, server, kind="window", window=10, index=1, **wanted)
        tab.until(f"{READY}?.ready === 'window 1'")
        assert tab.do("document.getElementById('through').hidden")
        show(tab, server, kind="document", index=7, where="colour = 1")
        tab.until("document.getElementById('problem')?.hidden === false")
        click(tab, "#next")
        tab.until(f"{READY}.ready === 'document 8'")
    tab.console[:] = [each for each in tab.console if "status of 400" not in each]


# ---- sizes


def test_sizes_are_of_data_and_on_disk_as_info_says(
    tab: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset, _ = scored(tmp_path)
    raw_tokens(tmp_path / "tokens.bin", 1000)
    assert main(["info", dataset.path]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("on disk"))
    on_disk = line.partition(",")[0].split()[2:]
    assert main(["info", dataset.path, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["size_bytes"]
    with serving(dataset, penstock.open(tmp_path / "tokens.bin", dtype="u2")) as server:
        facts = ask(server, "facts")
        files = [each for each in Path(dataset.path).rglob("*") if each.is_file()]
        assert facts["disk_bytes"] == sum(each.stat().st_size for each in files)
        assert facts["size_bytes"] == data == sum(each["bytes"] for each in facts["shard_list"]) < facts["disk_bytes"]
        said = f"{data / 1024:.1f} KiB of data · {' '.join(on_disk)} on disk"
        show(tab, server, tab="charts")
        tab.until("document.getElementById('facts').children.length > 0")
        assert texts(tab, "#summary")[0].endswith(said)
        shown = dict(zip(texts(tab, "#facts dt"), texts(tab, "#facts dd"), strict=True))
        assert (shown["data"], shown["on disk"]) == (f"{data / 1024:.1f} KiB", " ".join(on_disk))
        show(tab, server, tab="compare", other=1)
        tab.until("document.getElementById('two').dataset.ready === '0 1 0'")
        rows = [each for each in texts(tab, "#two .wide tbody tr") if each.startswith(("data", "on disk"))]
        assert rows == [f"data{data / 1024:.1f} KiB2 KiB", f"on disk{' '.join(on_disk)}–"]
        show(tab, server, dataset=1, tab="charts")
        tab.until("document.getElementById('summary').textContent.endsWith('2 KiB of data')")


# ---- metadata and columns


def test_metadata_that_a_column_says_stand_once(tmp_path: Path) -> None:
    columns = {"lang": "category", "score": "f4", "stars": "u1", "vector": ("f4", (2,))}
    metadata = [
        {"lang": "en", "score": 0.1, "stars": 3, "vector": [1.0, 2.0], "title": "a"},
        {"lang": "de", "score": 0.2, "stars": 300, "vector": None, "title": "b"},
        {"lang": None, "score": None, "stars": "3"},
        {"lang": "", "score": 16777216, "stars": True},
        "lang",
    ]
    with penstock.Writer(tmp_path / "some", {"token": "u2"}, metadata="json", columns=columns) as writer:
        for each in metadata:
            score = each["score"] if isinstance(each, dict) else 0.1
            lang = "en" if not isinstance(each, dict) or each["lang"] == "de" else each["lang"]
            values = {"lang": lang, "score": float("nan") if score is None else score, "stars": 3, "vector": [1, 2]}
            writer.append(token=[1, 2], metadata=each, columns=values)
    wanted = [
        [["vector", "[1.0, 2.0]"], ["title", "a"]],
        [["lang", "de"], ["stars", "300"], ["vector", "null"], ["title", "b"]],
        [["stars", "3"]],
        [["stars", "true"]],
        "lang",
    ]
    with serving(penstock.open(tmp_path / "some")) as server:
        assert [row["metadata"] for row in ask(server, "table")["rows"]] == wanted
        for index, each in enumerate(wanted):
            (span,) = ask(server, "row", kind="document", index=index)["spans"]
            assert span["metadata"] == each and len(span["columns"]) == 4


def test_the_beginnings_of_documents_are_in_sight_on_a_laptop(tab: Browser, tmp_path: Path) -> None:
    dataset, _ = scored(tmp_path)
    with serving(dataset) as server:
        show(tab, server)
        tab.until("document.getElementById('grid')?.dataset.ready === '0 of 60'")
        heads = texts(tab, "#rows thead th")
        assert heads == ["document ↑", "records", "url", "lang", "score", "stars", "good", "title", "begins with"]
        box = "(each) => { const box = each.getBoundingClientRect(); return [box.left, box.right]; }"
        cell, grid = tab.do(f"['#rows td.begins', '#grid'].map((n) => document.querySelector(n)).map({box})")
        assert cell[1] <= grid[1] and cell[1] - cell[0] >= 260
        tab.size(400)
        tab.until("document.documentElement.scrollWidth <= 400")
        assert tab.do("document.querySelector('#rows td.column').getBoundingClientRect().width") > 100


def test_blanks_of_json_are_not_searched(tmp_path: Path) -> None:
    texts_of = ['{"score": null, "n": [1, 2]}', '{"score":null,"n":[1,2]}', '{"score" : 1}', '{"a": "b,c"}']
    with penstock.Writer(tmp_path / "raw", {"token": "u2"}, metadata="raw") as writer:
        for text in texts_of:
            writer.append(token=[1], metadata=text.encode())
    dataset, _ = scored(tmp_path)
    with serving(penstock.open(tmp_path / "raw"), dataset) as server:
        for text, wanted in (
            ('"score": null', [0, 1]), ('"score":null', [0, 1]), ('"SCORE":  NULL, "N"', []), ("[1, 2]", [0, 1]),
            ("[1,2]", [0, 1]), ('"score":', [0, 1]), ("b, c", [3]), (":", [0, 1, 2, 3]),
        ):  # fmt: skip
            found = lines(server, "search", look="metadata", text=text)
            assert [each["hit"]["document"] for each in found if "hit" in each] == wanted, text
        found = lines(server, "search", look="metadata", text='"SCORE": NULL', case=1)
        assert [each["hit"]["document"] for each in found if "hit" in each] == [0, 1]
        found = lines(server, "search", look="metadata", text='"score": null', dataset=1)
        assert len([each for each in found if "hit" in each]) == 6


# ---- duplicates


def test_the_page_says_how_duplicates_are_left_out(tab: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "it's here"
    with penstock.Writer(folder / "pairs", {"token": "u2"}, metadata="json") as writer:
        for number in range(240):
            writer.append(token=[number % 120, 7], metadata=None)
    with serving(penstock.open(folder / "pairs"), scored(tmp_path)[0]) as server:
        show(tab, server, tab="charts")
        tab.until("!document.getElementById('twins-go').disabled")
        assert tab.do("document.getElementById('twins-out').hidden")
        click(tab, "#twins-go")
        tab.until("document.getElementById('twins').dataset.ready === '120'")
        assert texts(tab, "#twins-said")[0].endswith("in 120 groups · below, the 100 largest groups of 120")
        data = "'" + str(folder / "pairs").replace("'", "'\\''") + "'"
        assert texts(tab, "#twins-commands") == [
            f"penstock query {data} --duplicates --out dups.npy\npenstock convert {data} --without dups.npy --out NEW"
        ]
        assert texts(tab, "#twins-how") == ["A dataset without them, but for the first of each group"]
        # Ten groups are all there, and the commands have the condition, not the lengths.
        show(tab, server, tab="charts", twins=1, dataset=1, where="stars >= 0 and url != 'x'", shortest=1)
        tab.until("document.getElementById('twins').dataset.ready === '10'")
        assert "largest" not in texts(tab, "#twins-said")[0]
        assert texts(tab, "#twins-how")[0].endswith("of documents of any number of records: that filter is not applied")
        wanted = r"'stars >= 0 and url != '\''x'\'''"
        assert f" --duplicates --where {wanted} --out " in texts(tab, "#twins-commands")[0]
        show(tab, server, tab="charts", twins=1, dataset=1, where="stars < 0")
        tab.until("document.getElementById('twins').dataset.ready === '0'")
        assert tab.do("document.getElementById('twins-out').hidden")


# ---- two datasets


def test_documents_are_matched_by_a_column(tmp_path: Path) -> None:
    dataset, rows = scored(tmp_path)
    with penstock.Writer(
        tmp_path / "other", {"token": "u2"}, metadata="json", columns={"url": "category", "stars": "f4", "lang": "i4"}
    ) as writer:
        for number in reversed(range(40)):
            values = {"url": rows[number]["url"], "stars": number, "lang": 1}
            writer.append(token=[number], metadata=None, columns=values)
    with serving(dataset, penstock.open(tmp_path / "other")) as server:
        for number in (0, 17, 39, 45, 50):
            found = ask(server, "match", other=1, column="url", document=number)
            where = 39 - number % 50 if number % 50 < 40 else None
            assert (found["document"], found["count"]) == (where, 0 if where is None else 1)
            assert found["value"] == rows[number]["url"][:200]
        assert ask(server, "match", other=1, column="stars", document=3)["document"] == 36
        assert ask(server, "match", dataset=1, other=0, column="url", document=39) == {
            "value": rows[0]["url"], "document": 0, "count": 2,
        }  # fmt: skip
        for column, document in (("lang", 0), ("score", 9)):  # missing values are not equal
            assert ask(server, "match", other=0, column=column, document=document)["document"] is None
        assert "texts in one dataset" in refusal(server, "match", other=1, column="lang")
        assert "no column good" in refusal(server, "match", other=1, column="good")
        assert "no document 60" in refusal(server, "match", other=1, column="url", document=60)
        assert "no dataset 2" in refusal(server, "match", other=2, column="url")


def test_two_datasets_are_compared_as_text_and_by_a_column(tab: Browser, tmp_path: Path, tokenizer_file: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    said = [f"東京 {number} naïve {ATTACK}" for number in range(6)]
    for name, numbers in (("one", range(6)), ("other", (5, 4, 3, 3))):
        with penstock.Writer(
            tmp_path / name, {"token": "u2"}, metadata="json", columns={"url": "category", "n": "i4"}
        ) as writer:
            for number in numbers:
                ids = tokenizer.encode(said[number]).ids
                writer.append(token=ids, metadata=None, columns={"url": f"pages/{number}", "n": number})
    ready = "document.getElementById('two').dataset"
    with serving(*(penstock.open(tmp_path / name) for name in ("one", "other")), tokenizer=tokenizer_file) as server:
        show(tab, server, tab="compare", other=1, both=1)
        tab.until(f"{ready}.ready === '0 1 1'")
        assert texts(tab, ".beside .text span") == [said[1], said[4]]
        click(tab, "#both-forms [data-form=tokens]")
        tab.until(f"{ready}.shown === ' tokens'")
        first = "[...document.querySelector('.beside').querySelectorAll('i')].map((each) => +each.dataset.id)"
        assert tab.do(first) == tokenizer.encode(said[1]).ids
        click(tab, "#both-forms [data-form=text]")
        tab.until(f"{ready}.shown === ' text'")
        assert texts(tab, "#match option") == ["number", "column url", "column n"]
        tab.do("const s = document.getElementById('match'); s.value = 'url'; s.dispatchEvent(new Event('change'))")
        tab.until(f"{ready}.shown === 'url text'")
        assert texts(tab, "#two .empty") == ["No document has the url pages/1."]
        for number in (2, 3):
            click(tab, "#both-after")
            tab.until(f"{ready}.ready === '0 1 {number}'")
        assert texts(tab, ".beside .text span") == [said[3]] * 2
        assert "document 2" in texts(tab, "#two h2.second")[0] and "the first of 2" in texts(tab, "#two h2.second")[0]
        assert json.loads(tab.do("JSON.stringify([...new URLSearchParams(location.hash.slice(1)).keys()])")) == [
            "tab", "other", "both", "form", "match",
        ]  # fmt: skip
        assert tab.do("document.hacked") is None
