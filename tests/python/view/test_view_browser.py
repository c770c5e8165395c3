"""The data browser of `penstock view` in a real browser: table, search, tokens, training, steps, charts."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import penstock
import pytest
from _browser import Browser
from _views import ATTACK, ask, cells, hostile, lines, one_long, serving
from penstock._view.server import ViewServer

GRID = "document.getElementById('grid')"
SHOWN = "[...document.querySelectorAll('#rows tbody tr')].map((row) => row.cells[0].textContent)"
PROBLEM = "document.getElementById('problem')?.hidden === false"


@pytest.fixture
def tab(tab: Browser) -> Browser:
    """In the size of a laptop's window."""
    tab.size(1300, 800)
    return tab


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory, tokenizer_file: str) -> penstock.Dataset:
    """Texts with columns, some of them twice."""
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    random = np.random.default_rng(2)
    path = tmp_path_factory.mktemp("data") / "corpus"
    columns = {"lang": "category", "score": "f4"}
    with penstock.Writer(path, {"token": "u2"}, metadata="json", columns=columns) as writer:
        for number in range(400):
            text = f"document {number % 350} says naïve 東京 {'word ' * int(random.integers(0, 30))}"
            values = {"lang": ("en", "de", "it's")[number % 3], "score": number / 400}
            metadata = {"url": f"pages/{number}", "note": ATTACK}
            writer.append(token=tokenizer.encode(text).ids, metadata=metadata, columns=values)
    return penstock.open(path)


def show(tab: Browser, server: ViewServer, /, **what: Any) -> None:
    tab.open(f"{server.address}#{urlencode(what)}")
    tab.until("document.body?.dataset.tab")


def ready(tab: Browser, wanted: str) -> None:
    """Waits until the table says which row is its first, of how many."""
    tab.until(f"{GRID}?.dataset.ready === {wanted!r}")


def press(tab: Browser, key: str) -> None:
    event = f"new KeyboardEvent('keydown', {{ key: {key!r}, bubbles: true, cancelable: true }})"
    tab.do(f"document.body.dispatchEvent({event})")


def click(tab: Browser, selector: str) -> None:
    tab.do(f"document.querySelector({selector!r}).dispatchEvent(new MouseEvent('click', {{ bubbles: true }}))")


def texts(tab: Browser, selector: str) -> list[str]:
    return list(tab.do(f"[...document.querySelectorAll({selector!r})].map((each) => each.textContent)"))


def fill(tab: Browser, form: str, **values: Any) -> None:
    """Types into fields, and sends their form."""
    for name, value in values.items():
        tab.do(f"document.getElementById({name.replace('_', '-')!r}).value = {json.dumps(str(value))}")
    tab.do(f"document.getElementById({form!r}).requestSubmit()")


def at(tab: Browser, name: str) -> str | None:
    """What stands in the address."""
    found = tab.do(f"new URLSearchParams(location.hash.slice(1)).get({name!r})")
    return None if found is None else str(found)


# ---- the table


def test_the_table_scrolls_sorts_and_filters_and_its_address_says_so(tab: Browser, dataset: penstock.Dataset) -> None:
    with serving(dataset) as server:
        show(tab, server)
        ready(tab, "0 of 400")
        assert texts(tab, "#found") == ["400 documents"]
        heads = texts(tab, "#rows thead th")
        assert heads == ["document ↑", "records", "lang", "score", "url", "note", "begins with"]
        assert tab.do(f"{SHOWN}.slice(0, 3)") == ["0", "1", "2"]
        tab.do(f"{GRID}.scrollTop = {GRID}.scrollHeight")
        tab.until(f"{SHOWN}.at(-1) === '399'")
        tab.until("new URLSearchParams(location.hash.slice(1)).get('at') > 300")
        place = at(tab, "at")
        show(tab, server, at=place)
        ready(tab, f"{place} of 400")
        # Sorted down, then filtered.
        click(tab, "#rows th:nth-child(4) button")
        tab.until(f"{SHOWN}[0] === '0' && {GRID}.dataset.ready === '0 of 400'")
        click(tab, "#rows th:nth-child(4) button")
        tab.until(f"{SHOWN}[0] === '399'")
        assert tab.do("document.querySelector('#rows th:nth-child(4)').getAttribute('aria-sort')") == "descending"
        fill(tab, "filter", where="score < 0.5 and lang = 'it''s'")
        tab.until(f"{SHOWN}[0] === '197'")
        numbers = dataset.where("score < 0.5 and lang = 'it''s'").numbers
        assert texts(tab, "#found") == [f"{len(numbers)} of 400 documents"]
        address = tab.do("location.href")
        tab.open(address)
        tab.until(f"{SHOWN}[0] === '197'")
        assert tab.do("document.getElementById('where').value") == "score < 0.5 and lang = 'it''s'"
        # Wrong conditions are said in words, and one goes on from there.
        fill(tab, "filter", where="colour = 1")
        tab.until(PROBLEM)
        assert "no column" in texts(tab, "#problem")[0]
        fill(tab, "filter", where="score > 2")
        tab.until("document.querySelector('#rows td.empty')?.textContent === 'No document is so.'")
        click(tab, "#clear")
        ready(tab, "0 of 400")
        assert at(tab, "where") is None
        tab.do("history.back()")
        tab.until("document.getElementById('found').textContent === '0 of 400 documents'")
        tab.console[:] = [each for each in tab.console if "status of 400" not in each]


def test_keys_go_through_the_table_and_open_documents(tab: Browser, dataset: penstock.Dataset) -> None:
    with serving(dataset) as server:
        show(tab, server)
        ready(tab, "0 of 400")
        for key in ("j", "ArrowDown", "j", "k"):
            press(tab, key)
        assert texts(tab, "#rows tr.chosen td:first-child") == ["2"]
        press(tab, "End")
        tab.until("document.querySelector('#rows tr.chosen td')?.textContent === '399'")
        press(tab, "Home")
        tab.until("document.querySelector('#rows tr.chosen td')?.textContent === '0'")
        press(tab, "PageDown")
        tab.until("Number(document.querySelector('#rows tr.chosen td')?.textContent) > 10")
        chosen = texts(tab, "#rows tr.chosen td:first-child")[0]
        press(tab, "Enter")
        tab.until(f"document.getElementById('reader').dataset.ready === 'document {chosen}'")
        press(tab, "1")
        tab.until("document.body.dataset.tab === 'table'")
        click(tab, "#rows tbody tr:nth-child(5) td")
        tab.until("document.body.dataset.tab === 'read'")
        press(tab, "?")
        assert tab.do("document.getElementById('keys').open") and "a random document" in tab.text()
        tab.do("document.querySelector('#keys button').click()")
        show(tab, server, where="score > 0.991")
        tab.until("document.getElementById('found')?.textContent === '3 of 400 documents'")
        press(tab, "r")
        tab.until("document.getElementById('reader').dataset.ready?.startsWith('document 39')")


def test_ten_million_documents_are_a_table_of_which_the_rows_in_sight_are_read(tab: Browser, tmp_path: Path) -> None:
    count = 10_000_000
    with penstock.Writer(tmp_path / "many", {"token": "u1"}, metadata="json", columns={"score": "f4"}) as writer:
        part = count // 50
        scores = np.arange(part, dtype=np.float32) / part
        writer.append_batch(
            np.ones(part, np.int64), token=np.zeros(part, "u1"), encoded=[b"{}"] * part, columns={"score": scores}
        )
    with serving(penstock.open(*[tmp_path / "many"] * 50)) as server:
        show(tab, server)
        ready(tab, f"0 of {count}")
        # Every row can be reached, although a browser has no box of 310 million pixels.
        tab.do(f"{GRID}.scrollTop = {GRID}.scrollHeight")
        tab.until(f"{SHOWN}.at(-1) === '9,999,999'")
        tab.do(f"{GRID}.scrollTop -= 62")
        tab.until(f"{SHOWN}.at(-1) === '9,999,997' || {SHOWN}.at(-1) === '9,999,998'")
        tab.do(f"{GRID}.scrollTop = {GRID}.scrollHeight / 2")
        tab.until(f"Math.abs(Number({SHOWN}[0].replaceAll(',', '')) - 5e6) < 1e4")
        first = tab.do(f"Number({SHOWN}[0].replaceAll(',', ''))")
        tab.do(f"{GRID}.scrollTop += 31")
        tab.until(f"Number({SHOWN}[0].replaceAll(',', '')) === {first + 1}")
        tab.do(f"{GRID}.scrollTop = 0")
        ready(tab, f"0 of {count}")
        fill(tab, "filter", where="score >= 0.5")
        ready(tab, f"0 of {count // 2}")
        assert tab.do(f"{SHOWN}[0]") == f"{count // 100:,}"
        for sorted_by in ("ascending", "descending"):
            click(tab, "#rows th:nth-child(3) button")
            tab.until(f"document.querySelector('#rows th:nth-child(3)').ariaSort === {sorted_by!r}", 60)
        assert tab.do(f"{SHOWN}.slice(0, 2)") == ["199,999", "399,999"]


# ---- search


def test_hits_come_with_their_place_and_open_their_document(
    tab: Browser, dataset: penstock.Dataset, tokenizer_file: str
) -> None:
    with serving(dataset, tokenizer=tokenizer_file) as server:
        show(tab, server, tab="search")
        tab.until("document.getElementById('look-said').textContent.startsWith('It stops')")
        fill(tab, "look", look_text="document 349 says")
        tab.until("document.getElementById('hits').dataset.ready === '1'")
        assert texts(tab, "#hits mark") == ["document 349 says"]
        assert "1 document found" in texts(tab, "#look-said")[0] and at(tab, "find") == "document 349 says"
        click(tab, "#hits button")
        tab.until("document.getElementById('reader').dataset.ready === 'document 349'")
        # Many hits come in parts.
        show(tab, server, tab="search", find="東京", where="score >= 0.5")
        tab.until("document.getElementById('hits').dataset.ready === '100'")
        click(tab, "#look-on")
        tab.until("document.getElementById('hits').dataset.ready === '200'")
        assert tab.do("document.getElementById('look-on').hidden")
        show(tab, server, tab="search", find=ATTACK, look="metadata")
        tab.until("document.getElementById('hits').dataset.ready === '100'")
        assert tab.do("document.hacked") is None and tab.do("document.querySelectorAll('#hits img').length") == 0


def test_a_hit_opens_the_part_of_a_long_document_that_has_it_and_marks_it(
    tab: Browser, tmp_path: Path, tokenizer_file: str
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    ids = tokenizer.encode("word " * 9000 + "a naïve needle in it" + " word" * 9000).ids
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json") as writer:
        for each in ([1, 2], ids):
            writer.append(token=each, metadata=None)
    marks = (
        "[...document.querySelectorAll('#content .hit')].map((each) => each.textContent).join('').replaceAll('‥', '')"
    )
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        (hit, *_) = lines(server, "search", look="text", text="naïve needle")
        part = hit["hit"]["record"] // 8192
        assert part > 0
        for form in ("text", "tokens"):
            show(tab, server, tab="search", find="naïve needle", look="text", form=form)
            tab.until("document.getElementById('hits').dataset.ready === '1'")
            click(tab, "#hits button")
            tab.until("document.getElementById('reader').dataset.ready === 'document 1'")
            assert f"part {part + 1} of " in texts(tab, "#part")[0]
            assert "naïve needle" in tab.do(marks) and len(tab.do(marks)) < 20
            box = "(each) => { const box = each.getBoundingClientRect(); return [box.top, box.bottom]; }"
            inner, outer = tab.do(f"['#content .hit', '#content'].map((n) => document.querySelector(n)).map({box})")
            assert outer[0] <= inner[0] and inner[1] <= outer[1]
        click(tab, "#part-before")
        tab.until("document.querySelector('#content .hit') === null")


def test_rows_of_windows_and_of_steps_open_their_document_where_they_lie_in_it(tab: Browser, tmp_path: Path) -> None:
    dataset, tokens = one_long(tmp_path)
    marked = "[...document.querySelectorAll('#content .hit')].map((each) => +each.dataset.id)"
    with serving(dataset) as server:
        show(tab, server, kind="window", window=100, index=100)
        tab.until("document.getElementById('reader').dataset.ready === 'window 100'")
        click(tab, "#spans li button")
        tab.until("document.getElementById('reader').dataset.ready === 'document 1'")
        assert "part 2 of 3" in texts(tab, "#part")[0] and tab.do(marked) == tokens[10_000:10_100].tolist()
        click(tab, "[data-kind=window]")
        tab.until("document.getElementById('reader').dataset.ready === 'window 81'")
        show(tab, server, tab="step", step=9, batch=10, run_as="windows", run_window=100, order="sequential")
        tab.until("document.getElementById('step-rows').dataset.ready === 'step 9'")
        click(tab, "#step-rows tbody tr:nth-child(3) button.link")
        tab.until("document.getElementById('reader').dataset.ready === 'document 1'")
        assert (
            "part 2 of 3" in texts(tab, "#part")[0] and tab.do(marked) == tokens[9200:9301].tolist()
        )  # and its last label


# ---- documents


def test_tokens_are_seen_one_by_one_with_what_they_are(tab: Browser, tmp_path: Path, tokenizer_file: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    special = next(number for number, each in tokenizer.get_added_tokens_decoder().items() if each.special)
    ids = [*tokenizer.encode(f"naïve 東京\n{ATTACK}").ids, special]
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json") as writer:
        for _ in range(4):
            writer.append(token=ids, metadata=None)
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        show(tab, server, kind="document", index=2, form="tokens")
        tab.until("document.querySelector('#content .tokens i') !== null")
        assert tab.do("[...document.querySelectorAll('#content i')].map((each) => +each.dataset.id)") == ids
        assert len(texts(tab, "#content i.special")) == 1
        shades = tab.do(
            "[...document.querySelectorAll('#content i')].map((each) => getComputedStyle(each).backgroundColor)"
        )
        assert shades[0] != shades[1] and shades[0] == shades[2]
        tab.do(
            "document.querySelectorAll('#content i')[1].dispatchEvent(new MouseEvent('mouseover', { bubbles: true }))"
        )
        tab.until("document.getElementById('tip').textContent.includes('bytes')")
        tip = texts(tab, "#tip")[0]
        told = ask(server, "token", id=ids[1])
        assert tip == f"id {ids[1]} · bytes {told['bytes']} · {4 * ids.count(ids[1])} of {4 * len(ids)} tokens"
        assert tab.do("document.hacked") is None


def test_training_is_shown_as_a_loader_gives_it(tab: Browser, dataset: penstock.Dataset, tokenizer_file: str) -> None:
    with serving(dataset, tokenizer=tokenizer_file) as server:
        place = {"kind": "document", "index": 5, "form": "training"}
        show(tab, server, **place)
        tab.until("document.getElementById('reader').dataset.training === 'padded 5'")
        seen = ask(server, "sees", **{"as": "padded", "index": 5})
        padding = seen["documents"].count(-1)
        assert padding and f"{padding} padding" in texts(tab, "#row-place")[0]
        assert len(texts(tab, "#content > .text .padding i")) == min(padding, 12)
        show(tab, server, **place, **{"as": "packed", "row_window": 64, "row": 3})
        tab.until("document.getElementById('reader').dataset.training === 'packed 3'")
        seen = ask(server, "sees", **{"as": "packed", "window": 64, "index": 3})
        shown = tab.do(
            "[...document.querySelectorAll('#content > .text i')].map((each) => each.classList.contains('out'))"
        )
        assert shown[: seen["documents"].index(-1) if -1 in seen["documents"] else 64] == [
            label < 0 for label, document in zip(seen["labels"], seen["documents"], strict=True) if document >= 0
        ]
        assert len(texts(tab, "#spans li")) == len(seen["spans"])
        click(tab, "#sees-after")
        tab.until("document.getElementById('reader').dataset.training === 'packed 4'")
        show(tab, server, **place, **{"as": "windows", "row_window": 64, "middle": "0 1 2"})
        tab.until("document.getElementById('reader').dataset.training?.startsWith('windows')")
        assert texts(tab, "#content > .text b.border")


def test_training_marks_what_the_address_marks(tab: Browser, tmp_path: Path) -> None:
    dataset, tokens = one_long(tmp_path)
    marked = "[...document.querySelectorAll('#content .hit')].map((each) => +each.dataset.id)"
    with serving(dataset) as server:
        place = {"kind": "document", "index": 1, "form": "training", "mark": 9000, "mark_records": 5}
        show(tab, server, **place, **{"as": "windows", "row_window": 64})
        tab.until(f"document.getElementById('reader').dataset.training === 'windows {9003 // 64}'")
        assert tab.do(marked) == tokens[9003:9008].tolist()
        click(tab, "#sees-after")
        tab.until(f"document.getElementById('reader').dataset.training === 'windows {9003 // 64 + 1}'")
        assert tab.do(marked) == []
        show(tab, server, **{**place, "mark": 7}, **{"as": "padded", "row_window": 64})
        tab.until("document.getElementById('reader').dataset.training === 'padded 1'")
        assert tab.do(marked) == tokens[10:15].tolist()
        show(tab, server, kind="window", window=100, index=3, form="training", mark=330, mark_records=2, row_window=100)
        tab.until("document.getElementById('reader').dataset.training === 'windows 3'")
        assert tab.do(marked) == tokens[330:332].tolist()


def test_a_gene_is_looked_for_among_cells(tab: Browser, tmp_path: Path) -> None:
    with serving(cells(tmp_path)) as server:
        show(tab, server, tab="search")
        tab.until("document.getElementById('look-said').textContent.startsWith('It stops')")
        assert (
            texts(tab, "#look-in option")[0] == "genes" and tab.do("document.getElementById('look-in').value") == "text"
        )
        fill(tab, "look", look_text="GENE17")
        tab.until("document.getElementById('hits').dataset.ready")
        assert set(texts(tab, "#hits mark")) == {"GENE17"}
        click(tab, "#hits button")
        tab.until("document.getElementById('reader').dataset.ready?.startsWith('document ')")


# ---- steps, charts, two datasets


def test_a_step_shows_its_rows_and_opens_their_documents(tab: Browser, dataset: penstock.Dataset) -> None:
    with serving(dataset) as server:
        show(tab, server, tab="step", step=3, batch=8, ranks=2, run_as="documents", run_seed=1)
        tab.until("document.getElementById('step-rows').dataset.ready === 'step 3'")
        located = penstock.Job(dataset.documents(), global_batch_size=8, seed=1).locate(3, world_size=2)
        cells_of = "(row) => [...row.cells].map((cell) => cell.textContent)"
        rows = tab.do(f"[...document.querySelectorAll('#step-rows tbody tr')].map({cells_of})")
        assert [row[:5] for row in rows] == [
            [str(x) for x in (r.position, r.rank, r.row, r.epoch, r.index)] for r in located
        ]
        click(tab, "#step-after")
        tab.until("document.getElementById('step-rows').dataset.ready === 'step 4'")
        tab.do("history.back()")
        tab.until("document.getElementById('step-rows').dataset.ready === 'step 3'")
        click(tab, "#step-rows button.link")
        tab.until(f"document.getElementById('reader').dataset.ready === 'document {located[0].index}'")


def test_a_mixture_says_which_source_each_row_is_of(tab: Browser, dataset: penstock.Dataset) -> None:
    views = {"all": dataset.windows(64), ATTACK: dataset.windows(64)}
    mixture = penstock.Mixture(views, [penstock.Stage({"all": 3, ATTACK: 1})], end=80)
    with serving(dataset, dataset, mixture=("mix.json", mixture)) as server:
        show(tab, server, tab="step", step=1, batch=8)
        tab.until("document.getElementById('step-rows').dataset.ready === 'step 1'")
        assert "75.0 %" in texts(tab, "#step-plan")[0] and "ends at position 80" in texts(tab, "#step-plan")[0]
        sources = texts(tab, "#step-rows tbody td:nth-child(4)")
        assert sources.count("all") == 6 and sources.count(ATTACK) == 2
        assert len(texts(tab, "#step-sources svg g")) == 2 and tab.do("document.hacked") is None


def test_a_bar_opens_its_documents_and_equal_ones_are_found(tab: Browser, dataset: penstock.Dataset) -> None:
    with serving(dataset) as server:
        show(tab, server, tab="charts", by="lang")
        tab.until("document.querySelectorAll('#shares svg g').length === 3")
        bar = "[...document.querySelectorAll('#shares g')].find((each) => each.textContent.startsWith(\"it's\"))"
        tab.do(f"{bar}.dispatchEvent(new MouseEvent('click'))")
        ready(tab, "0 of 133")
        assert at(tab, "where") == "lang = 'it''s'"
        show(tab, server, tab="charts")
        tab.until("document.querySelectorAll('#lengths svg g.link').length > 0")
        wanted = ask(server, "lengths")["bins"]
        last = max(place for place, each in enumerate(wanted) if each["documents"])
        tab.do(f"document.querySelectorAll('#lengths g')[{last}].dispatchEvent(new MouseEvent('click'))")
        ready(tab, f"0 of {wanted[last]['documents']}")
        show(tab, server, tab="charts")
        tab.until("!document.getElementById('twins-go').disabled")
        click(tab, "#twins-go")
        tab.until("document.getElementById('twins').dataset.ready !== undefined")
        *_, said = lines(server, "duplicates")
        assert tab.do("document.getElementById('twins').dataset.ready") == str(said["count"])
        assert len(texts(tab, "#twins tbody tr")) == len(said["groups"]) > 0


def test_two_datasets_stand_side_by_side(tab: Browser, dataset: penstock.Dataset, tmp_path: Path) -> None:
    with serving(dataset, hostile(tmp_path)) as server:
        show(tab, server, tab="compare", other=1, both=2)
        tab.until("document.getElementById('two').dataset.ready === '0 1 2'")
        for side, index in ((0, 2), (1, 2)):
            row = ask(server, "row", dataset=side, kind="document", index=index)
            box = f"document.querySelectorAll('.beside')[{side}]"
            shown = tab.do(f"[...{box}.querySelectorAll('i')].map((each) => each.dataset.id)")
            assert shown == row["spans"][0]["ids"].split(" ")
        assert len(texts(tab, "#two-lengths rect.second")) > 0
        click(tab, "#both-after")
        tab.until("document.getElementById('two').dataset.ready === '0 1 3'")
        assert tab.do("document.hacked") is None and tab.do("document.querySelectorAll('main img').length") == 0


def test_charts_are_of_the_documents_that_the_filter_chooses_or_say_that_they_are_not(
    tab: Browser, dataset: penstock.Dataset
) -> None:
    with serving(dataset) as server:
        show(tab, server, tab="charts")
        tab.until("document.querySelectorAll('.charts .chart svg').length === 3")
        assert "All 400 documents" in texts(tab, "#lengths-of")[0] and "filter" not in texts(tab, "#tokens-of")[0]
        fill(tab, "filter", where="score < 0.1")
        tab.until("document.getElementById('lengths-of').textContent.startsWith('The 40 documents that the filter')")
        assert sum(each["documents"] for each in ask(server, "lengths", where="score < 0.1")["bins"]) == 40
        for name in ("tokens", "ranks"):
            assert texts(tab, f"#{name}-of")[0].endswith("of all documents: the filter is not applied")
        click(tab, "#clear")
        tab.until("document.getElementById('lengths-of').textContent.startsWith('All 400')")
        assert "filter" not in texts(tab, "#tokens-of")[0]


def test_control_and_bidi_characters_are_shown_and_not_obeyed(
    tab: Browser, tmp_path: Path, tokenizer_file: str
) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    odd = "pay \u202e001\x00 \x1b[31m red\u2066"
    seen = "pay \\u202e001\\x00 \\x1b[31m red\\u2066"
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json", columns={"lang": "category"}) as writer:
        for _ in range(3):
            metadata = {"url": odd}
            writer.append(token=tokenizer.encode(odd).ids, metadata=metadata, columns={"lang": odd.replace("\x00", "")})
    pages = [
        ({"tab": "table"}, "#rows td.begins"),
        ({"tab": "table"}, "#rows td.meta"),
        ({"kind": "document", "index": 1, "form": "text"}, "#content .text span"),
        ({"kind": "document", "index": 1}, "#spans dl.pairs:last-child dd"),
        ({"tab": "search", "find": "pay", "look": "text"}, "#hits .text"),
        ({"tab": "step", "batch": 2, "run_as": "documents"}, "#step-rows td.begins"),
    ]
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        for page, selector in pages:
            show(tab, server, **page)
            tab.until(f"document.querySelector({selector!r})?.textContent.includes({seen!r})")
        show(tab, server, kind="document", index=1, form="tokens")
        tab.until("document.querySelector('#content .tokens i') !== null")
        obeyed = "/(?!\\n)[\\p{Cc}\\u202a-\\u202e\\u2066-\\u2069]/u"
        assert not tab.do(f"{obeyed}.test(document.getElementById('content').textContent)")
        assert tab.do("getComputedStyle(document.querySelector('#content .tokens i')).unicodeBidi") == "isolate"
        show(tab, server, tab="charts", by="lang")
        tab.until("document.querySelector('#shares text.name') !== null")
        assert "\\u202e" in texts(tab, "#shares svg title")[0]


def test_what_is_small_is_said_right(tab: Browser, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "many", {"token": "u2"}, metadata="json") as writer:
        for number in range(4001):
            writer.append(token=[min(number, 3999), 5], metadata=None)
        writer.append(token=np.arange(500), metadata=None)
    with serving(penstock.open(tmp_path / "many")) as server:
        # A key that goes to a field goes to one in which one can type.
        show(tab, server)
        tab.until(f"{GRID}?.dataset.ready")
        assert tab.do("document.getElementById('where').placeholder") == (
            "no columns: penstock annotate DATA --from-metadata url,lang,score adds them"
        )
        press(tab, "/")
        assert tab.do("document.activeElement.id") == "shortest"
        fill(tab, "filter", shortest="abc")
        tab.until(PROBLEM)
        assert texts(tab, "#problem")[0].startswith("fewest records 'abc'")
        # What was compared stands in the address.
        show(tab, server, tab="charts")
        tab.until("!document.getElementById('twins-go').disabled")
        click(tab, "#twins-go")
        tab.until("document.getElementById('twins').dataset.ready === '1'")
        assert "1 document repeats another one (<0.1 % of 4,002)" in texts(tab, "#twins-said")[0]
        assert at(tab, "twins") == "1"
        tab.open(tab.do("location.href"))
        tab.until("document.getElementById('twins')?.dataset.ready === '1'")
        # A window of one span, a row that goes on, a step that cannot be.
        show(tab, server, kind="window", window=2, index=1)
        tab.until("document.getElementById('reader').dataset.ready === 'window 1'")
        assert " · 1 span · " in texts(tab, "#row-place")[0]
        rows = ask(server, "table", first=4000, count=2)["rows"]
        assert [each["text"] for each in rows] == ["3999 5", " ".join(map(str, range(48))) + "…"]
        show(tab, server, tab="step", step=1, run_as="documents")
        tab.until("document.getElementById('step-rows').dataset.ready === 'step 1'")
        assert not any("…" in each for each in texts(tab, "#step-rows td.begins"))
        fill(tab, "run", step_batch="0")
        tab.until(PROBLEM)
        assert tab.do("getComputedStyle(document.getElementById('step-title').parentElement).opacity") == "0.5"
        fill(tab, "run", step_batch="8")
        tab.until("document.querySelector('[data-page=step].old') === null")
    tab.console[:] = [each for each in tab.console if "status of 400" not in each]


def test_the_number_of_a_document_stays_in_sight_on_a_narrow_screen(tab: Browser, dataset: penstock.Dataset) -> None:
    with serving(dataset) as server:
        tab.size(400)
        show(tab, server)
        ready(tab, "0 of 400")
        tab.do(f"{GRID}.scrollLeft = 300")
        left = "(each) => each.getBoundingClientRect().left"
        cell, box = tab.do(f"['#rows tbody td', '#grid'].map((n) => document.querySelector(n)).map({left})")
        assert tab.do(f"{GRID}.scrollLeft") > 200 and 0 <= cell - box <= 2


# ---- all of them


def test_no_page_is_wider_than_the_screen_or_runs_what_the_data_say(tab: Browser, tmp_path: Path) -> None:
    pages = [
        {"tab": "table"},
        {"tab": "read", "kind": "document", "index": 1},
        {"tab": "read", "kind": "window", "window": 20, "form": "training", "as": "packed", "row_window": 64},
        {"tab": "search", "find": "img", "look": "metadata"},
        {"tab": "step", "step": 1, "batch": 2, "run_window": 16},
        {"tab": "charts", "by": ATTACK},
        {"tab": "compare", "other": 1},
    ]
    with serving(hostile(tmp_path), cells(tmp_path)) as server:
        for page in pages:
            show(tab, server, **page)
            tab.until(f"document.body.dataset.tab === {page['tab']!r}")
            for width, dark in itertools.product((400, 1300), (False, True)):
                tab.size(width)
                tab.dark(dark)
                tab.until("document.readyState === 'complete'")
                assert tab.do("document.documentElement.scrollWidth") <= width, page
            assert tab.do("document.hacked") is None, page
            assert tab.do("document.querySelectorAll('main img, main script').length") == 0, page
            assert tab.do("document.getElementById('problem').hidden"), tab.text()
        for name in ("table", "read", "search", "step", "charts"):
            show(tab, server, tab=name, dataset=1)
            tab.until(f"document.body.dataset.tab === {name!r}")
            assert tab.do("document.getElementById('problem').hidden"), tab.text()
