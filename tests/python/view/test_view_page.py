"""The page of `penstock view`, in a real browser."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import penstock
import pytest
from _browser import Browser
from _datasets import LENGTHS, compact, opaque, raw_tokens
from _views import ATTACK, ask, cells, hostile, one_long, serving
from penstock._view.server import ViewServer

PROBLEM = "document.getElementById('problem')?.hidden === false"
READY = "document.getElementById('reader')?.dataset.ready"


def show(tab: Browser, server: ViewServer, wanted: str, /, **what: Any) -> None:
    """Opens the page at what is wanted, and waits until `wanted`, such as "window 3", is shown."""
    tab.open(server.address + "#" + "&".join(f"{name}={value}" for name, value in what.items()))
    wait(tab, wanted)


def wait(tab: Browser, wanted: str) -> None:
    tab.until(f"{READY} === {wanted!r}")


def show_charts(tab: Browser, server: ViewServer, /, **what: Any) -> None:
    """Opens the page of charts, and waits until all three are there or said to be none."""
    tab.open(server.address + "#" + "&".join(f"{name}={value}" for name, value in {"tab": "charts", **what}.items()))
    tab.until("document.querySelectorAll('.charts .chart svg, .charts .chart p:not(.wait)').length === 3")


def click(tab: Browser, selector: str) -> None:
    tab.do(f"document.querySelector({selector!r}).click()")


def forget_refusals(tab: Browser) -> None:
    """The browser notes each answer that says no; the page has shown it."""
    tab.console[:] = [each for each in tab.console if "status of 400" not in each]


def fill(tab: Browser, name: str, value: Any, form: str) -> None:
    """Types into a field, and sends its form."""
    tab.do(f"document.getElementById({name!r}).value = {str(value)!r}")
    tab.do(f"document.getElementById({form!r}).requestSubmit()")


def texts(tab: Browser, selector: str) -> list[str]:
    return list(tab.do(f"[...document.querySelectorAll({selector!r})].map((each) => each.textContent)"))


def test_a_window_is_shown_with_a_colour_and_a_card_for_each_span(tab: Browser, tmp_path: Path) -> None:
    dataset, model = compact(tmp_path, LENGTHS)
    with serving(dataset) as server:
        show(tab, server, "window 2", window=7, index=2)
        spans = model.window_spans(2, 7)
        wanted = model.window(2, 7)["token"]
        assert texts(tab, "#content .text span") == [
            " ".join(map(str, wanted[start:stop])) for start, stop, *_ in spans
        ]
        runs = "[...document.querySelectorAll('#content .text span')]"
        colours = tab.do(f"{runs}.map((each) => getComputedStyle(each).backgroundColor)")
        assert len(set(colours)) == len(spans) > 1
        cards = texts(tab, "#spans li")
        assert len(cards) == len(spans)
        for card, (*_, (shard, entry), metadata) in zip(cards, spans, strict=True):
            assert f"shard {shard}, entry {entry}" in card and f"number{metadata['number']}" in card
        # Records of more than one field are a table as well.
        click(tab, "[data-form=table]")
        tab.until("document.querySelectorAll('#content tbody tr').length === 7")
        show_charts(tab, server)
        assert f"{dataset.records:,}" == f"{dataset.records}" and str(dataset.records) in texts(tab, "#facts dd")
        rows = texts(tab, "#shards tbody tr")
        assert len(rows) == len(dataset.shards)


def test_text_is_decoded(tab: Browser, tmp_path: Path, tokenizer_file: str) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(tokenizer_file)
    text = f"naïve 東京 🚰\n\tdef main():  {ATTACK} \x1b[31m \u202e end"
    with penstock.Writer(tmp_path / "text", {"token": "u2"}, metadata="json") as writer:
        for _ in range(3):
            writer.append(token=tokenizer.encode(text).ids, metadata={"a": 1})
    with serving(penstock.open(tmp_path / "text"), tokenizer=tokenizer_file) as server:
        most = ask(server, "tokens")["most"][0]
        assert ask(server, "facts")["decodes"] and most["name"] == tokenizer.decode([most["id"]])
        show(tab, server, "document 1", kind="document", index=1)
        shown = text.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")  # such characters are not obeyed
        assert texts(tab, "#content .text span") == [shown]
        click(tab, "[data-form=ids]")
        ids = " ".join(map(str, tokenizer.encode(text).ids))
        tab.until(f"document.querySelector('#content .text span').textContent === {ids!r}")
        assert tab.do("document.hacked") is None


def test_markup_of_the_data_stays_text(tab: Browser, tmp_path: Path) -> None:
    dataset = hostile(tmp_path)
    with serving(dataset, cells(tmp_path)) as server:
        show(tab, server, "window 1", window=40, index=1)
        assert ATTACK in texts(tab, "#spans dd")
        assert dataset.path in texts(tab, "#path")[0] and dataset.path in texts(tab, "#dataset option")[0]
        show(tab, server, "document 0", dataset=1, tab="read")
        for index in range(30):
            genes = [
                each["name"] for each in ask(server, "row", dataset=1, kind="document", index=index)["genes"]["rows"]
            ]
            if ATTACK in genes:
                break
        show(tab, server, f"document {index}", dataset=1, kind="document", index=index)
        assert ATTACK in texts(tab, "#content td")
        show_charts(tab, server, dataset=0)
        assert ATTACK in " ".join(texts(tab, "#more td"))
        # An error says what was asked for.
        tab.open(f"{server.address}#index={ATTACK.replace('#', '').replace('&', '')}")
        tab.until(PROBLEM)
        assert "<script>" in texts(tab, "#problem")[0]
        assert tab.do("document.hacked") is None
        assert tab.do("document.querySelectorAll('main script, main img, #path img, #problem img').length") == 0
    forget_refusals(tab)


def test_one_goes_from_row_to_row_by_number_record_and_order(tab: Browser, tmp_path: Path) -> None:
    dataset, tokens = raw_tokens(tmp_path / "tokens.bin", 6400)
    order = [penstock.Permutation(100, 9)[at] for at in range(100)]
    with serving(dataset) as server:
        show(tab, server, "window 0", window=64)
        click(tab, "#next")
        wait(tab, "window 1")
        click(tab, "#previous")
        wait(tab, "window 0")
        assert tab.do("document.getElementById('previous').disabled")
        fill(tab, "number", 99, "search")
        wait(tab, "window 99")
        assert tab.do("document.getElementById('next').disabled")
        tab.do("document.getElementById('by').value = 'record'")
        fill(tab, "number", "1,000", "search")
        wait(tab, f"window {1000 // 64}")
        # Another seed alone stays at this window, and says where it comes in that order.
        fill(tab, "seed", 9, "order")
        place = order.index(15)
        tab.until(f"document.getElementById('position').value === '{place}'")
        click(tab, "#later")
        wait(tab, f"window {order[place + 1]}")
        click(tab, "#earlier")
        wait(tab, "window 15")
        fill(tab, "position", 107, "order")
        wait(tab, f"window {penstock.Permutation(100, 9, 1)[7]}")
        assert "epoch 1" in texts(tab, "#row-place")[0]
        tab.do("history.back()")
        wait(tab, "window 15")
        # Windows of another size begin at the record that was looked at.
        fill(tab, "window", 32, "search")
        wait(tab, "window 30")
        assert texts(tab, "#content .text span") == [" ".join(map(str, tokens[960:992]))]
        fill(tab, "number", 500, "search")
        tab.until(PROBLEM)
        assert texts(tab, "#problem") == ["there is no window 500: windows of 32 records are from 0 to 199"]
        # From an address of what is not there one goes on.
        tab.open(f"{server.address}#window=32&index=200")
        tab.until(PROBLEM)
        fill(tab, "number", 199, "search")
        wait(tab, "window 199")
        assert tab.do("document.getElementById('problem').hidden")
    forget_refusals(tab)


def test_documents_are_opened_from_windows_and_read_in_parts(tab: Browser, tmp_path: Path) -> None:
    dataset, tokens = one_long(tmp_path)
    with serving(dataset) as server:
        show(tab, server, "window 0", window=100)
        click(tab, "#spans li:nth-child(2) button")
        wait(tab, "document 1")
        assert "part 1 of 3" in texts(tab, "#part")[0]
        click(tab, "#part-after")
        tab.until("document.getElementById('part').textContent.includes('part 2 of 3')")
        assert texts(tab, "#content .text span") == [" ".join(map(str, tokens[8195:16387]))]
        click(tab, "[data-kind=window]")
        wait(tab, "window 81")  # which has the first record of part 2


def test_histograms_are_drawn_and_say_what_they_are_of(tab: Browser, tmp_path: Path) -> None:
    dataset, _ = compact(tmp_path, LENGTHS)
    with serving(dataset) as server:
        show_charts(tab, server)
        assert texts(tab, "#lengths-of")[0].startswith("All 14 documents.")
        lengths = ask(server, "lengths")
        assert len(texts(tab, "#lengths svg g")) == len(lengths["bins"])
        bars = tab.do("[...document.querySelectorAll('#lengths rect.bar')].map((each) => +each.getAttribute('height'))")
        documents = np.array([each["documents"] for each in lengths["bins"]])
        np.testing.assert_allclose(np.array(bars) / max(bars), documents / documents.max(), atol=0.01)
        assert f"All {dataset.records} records." in texts(tab, "#tokens-of")[0]
        assert len(texts(tab, "#tokens svg g")) == len(ask(server, "tokens")["most"])


def test_entries_and_several_datasets(tab: Browser, tmp_path: Path) -> None:
    (entries, _), (tokens, _) = opaque(tmp_path, 13), raw_tokens(tmp_path / "tokens.bin", 1000)
    with serving(entries, tokens) as server:
        show(tab, server, "document 12", index=12)
        assert "list[0, 1]" in "".join(texts(tab, "#spans dt, #spans dd"))
        show_charts(tab, server)
        tab.until("document.querySelector('#lengths p')?.textContent.includes('have no lengths')")
        show(tab, server, "document 12", index=12)
        tab.do("const s = document.getElementById('dataset'); s.value = '1'; s.dispatchEvent(new Event('change'))")
        wait(tab, "window 0")
        assert texts(tab, "#path") == [tokens.path]


def test_nothing_is_wider_than_the_screen_and_all_can_be_read(tab: Browser, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "wide", {"token": "u2"}, metadata="json") as writer:
        for _ in range(9):
            writer.append(token=np.arange(300), metadata={"url": "x" * 600, "k" * 200: "<b>"})
    with serving(penstock.open(tmp_path / "wide"), cells(tmp_path)) as server:
        for dataset, first, read in ((0, "window 0", "#content .text span"), (1, "document 0", "#content td")):
            show(tab, server, first, dataset=dataset, tab="read")
            for width, dark in itertools.product((400, 1400), (False, True)):
                tab.size(width)
                tab.dark(dark)
                assert tab.do("document.documentElement.scrollWidth") <= width
                assert contrast(tab, read) >= 7
                assert contrast(tab, "#row-place") >= 4.5


def contrast(tab: Browser, selector: str) -> float:
    """Of an element's text and what is behind it, as WCAG counts it."""
    found = tab.do(
        f"""(() => {{
          let each = document.querySelector({selector!r});
          const ink = getComputedStyle(each).color;
          while (getComputedStyle(each).backgroundColor === 'rgba(0, 0, 0, 0)') each = each.parentElement;
          return [ink, getComputedStyle(each).backgroundColor];
        }})()"""
    )
    light, dark = sorted((luminance(each) for each in found), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = np.array([float(each) for each in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_window_of_many_documents_has_cards_for_the_first(tab: Browser, tmp_path: Path) -> None:
    with penstock.Writer(tmp_path / "short", {"token": "u2"}, metadata="json") as writer:
        for number in range(1000):
            writer.append(token=[number], metadata={"number": number})
    with serving(penstock.open(tmp_path / "short")) as server:
        show(tab, server, "window 0", window=1000)
        assert len(texts(tab, "#content .text span")) == 1000
        *cards, last = texts(tab, "#spans li")
        assert len(cards) == 300 and last == "The first 300 of 1,000 spans: choose a smaller window."


def test_an_empty_dataset_says_so(tab: Browser, tmp_path: Path) -> None:
    penstock.Writer(tmp_path / "empty", {"token": "u2"}, metadata="json").close()
    with serving(penstock.open(tmp_path / "empty")) as server:
        tab.open(server.address)
        tab.until("document.querySelector('#content .empty') !== null")
        assert texts(tab, "#content") == ["There are no records and no documents."]
        show_charts(tab, server)
        assert texts(tab, ".charts .chart p")[1:] == ["There is nothing to draw."] * 2


def test_a_server_that_ended_is_told(tab: Browser, tmp_path: Path) -> None:
    dataset, _ = raw_tokens(tmp_path / "tokens.bin", 1000)
    with serving(dataset) as server:
        show(tab, server, "window 0", window=10)
    click(tab, "#next")
    tab.until(PROBLEM)
    assert texts(tab, "#problem") == ["penstock view no longer answers: was it ended?"]
    tab.console.clear()
