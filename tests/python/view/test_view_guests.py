"""`penstock view` of data that someone wrote to harm whoever looks at it, in a real browser: nothing of it runs, shows
as something else than it is, or makes the page stand still."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import penstock
import pytest
from _browser import Browser
from _views import ATTACK, ask, get, serving
from penstock._view.server import ViewServer

ELSEWHERE = "//penstock.invalid"
TEXTS = (
    ATTACK,
    "</script><script>document.hacked=1</script>",
    '"><svg onload=document.hacked=1><a href="javascript:document.hacked=1">here</a>',
    "'-alert(document.hacked=1)-'",
    "${document.hacked=1}{{constructor.constructor('document.hacked=1')()}}",
    f"<iframe src={ELSEWHERE} srcdoc='<script>parent.document.hacked=1</script>'></iframe>",
    f"<base href={ELSEWHERE}/><link rel=stylesheet href={ELSEWHERE}/a.css>",
    f"<meta http-equiv=refresh content=0;url={ELSEWHERE}>",
    f"<style>* {{ display: none; background: url({ELSEWHERE}) }}</style>",
    "--><!--<![CDATA[<script>document.hacked=1</script>]]>",
    "&lt;script&gt;document.hacked=1&lt;/script&gt;",
    "__proto__",
    "constructor",
    "photo\u202egpj.exe",
    "\u2066left\u2067right\u2069\u2068\u200f\u200e\ufeff\u061c",
    "\x1b[2J\x1b]0;title\x07\0\x08\x7f\x9b31m",
    "zero\u200bwidth\u2060here\U000e0041\U000e007f",
    "a" + "\u0301" * 2_000,
    "#tab=step&where=1' or '1'='1",
    "../../../etc/passwd",
    "%3Cscript%3Edocument.hacked=1%3C/script%3E",
)
RAW = (
    b'{"a": "\\ud800", "b": "\\udfff\\ud800"}',
    b"\xff\xfe<script>document.hacked=1</script>",
    b'{"__proto__": {"hacked": 1}, "constructor": {"prototype": {"hacked": 1}}, "toString": "x", "length": -1}',
    b'{"a": 1, "a": "<img src=x onerror=document.hacked=1>"}',
    b"[" * 100_000,
    b"1" * 100_000,
    b'{"n": 1e999, "m": -0.0, "k": NaN, "i": Infinity}',
    b'"' + b"\\u202e" * 1_000 + b'"',
    b"",
)
OBEYED = (
    r"/[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\u061c\u2060\ufeff\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u{e0000}-\u{e007f}]/u"
)
PAGES: tuple[dict[str, Any], ...] = (
    {"tab": "table"},
    {"tab": "read", "kind": "window", "window": 64},
    {"tab": "search", "find": "script", "look": "metadata"},
    {"tab": "step", "step": 0, "batch": 4, "run_window": 64},
    {"tab": "charts"},
    {"tab": "compare", "other": 1},
)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> list[penstock.Dataset]:
    """Two datasets: every text of a writer's is one of TEXTS, every entry of the other one of RAW."""
    folder = tmp_path_factory.mktemp("hostile")
    names = [each for each in TEXTS if "\0" not in each]
    columns = dict.fromkeys(names[:6], "category")
    with penstock.Writer(folder / "texts", {"token": "u2"}, metadata="json", columns=columns) as writer:
        for number, text in enumerate(TEXTS):
            metadata = {text: text, "list": [text, {text: text}], "url": f"javascript:document.hacked={number}"}
            values = {name: names[(number + at) % len(names)] for at, name in enumerate(columns)}
            writer.append(token=np.arange(30) + number, metadata=metadata, columns=values)
    with penstock.Writer(folder / "entries", {"token": "u2"}, metadata="json") as writer:
        entries = list(RAW)
        writer.append_batch([20] * len(entries), token=np.arange(20 * len(entries)) % 999, encoded=entries)
    return [penstock.open(folder / "texts"), penstock.open(folder / "entries")]


def show(tab: Browser, server: ViewServer, what: dict[str, Any]) -> None:
    tab.open(f"{server.address}#{urlencode(what)}")
    tab.until(f"document.body?.dataset.tab === {what['tab']!r}")
    # Everything that the page asks for is there: no request is on its way.
    tab.until("document.readyState === 'complete'")
    tab.until("performance.now() - (performance.getEntriesByType('resource').at(-1)?.responseEnd ?? 0) > 60")


def unharmed(tab: Browser, where: object) -> None:
    assert tab.do("document.hacked ?? ({}).hacked ?? null") is None, where
    made = "script, img, iframe, style, base, meta, link, object, embed, svg a, a[href^='javascript' i], [srcdoc]"
    assert tab.do(f"document.body.querySelectorAll({made!r}).length") == 0, where
    assert tab.do("getComputedStyle(document.body).display") != "none", where
    events = "[...document.body.querySelectorAll('*')].some((e) => [...e.attributes].some((a) => /^on/i.test(a.name)))"
    assert tab.do(events) is False, where
    found = tab.do(f"document.body.innerText.match({OBEYED})?.[0] ?? null")
    assert found is None, (where, ascii(found))
    titles = f"[...document.querySelectorAll('[title]')].map((e) => e.title).join().match({OBEYED})?.[0] ?? null"
    assert tab.do(titles) is None, where
    assert tab.do("document.documentElement.scrollWidth <= innerWidth"), where


def documents() -> Iterator[dict[str, Any]]:
    for dataset, count in enumerate((len(TEXTS), len(RAW))):
        for index in range(count):
            yield {"tab": "read", "kind": "document", "index": index, "dataset": dataset}


def test_nothing_of_the_data_runs_or_is_obeyed(tab: Browser, hostile: list[penstock.Dataset]) -> None:
    with serving(*hostile) as server:
        for page in (*PAGES, *({**each, "dataset": 1} for each in PAGES), *documents()):
            show(tab, server, page)
            unharmed(tab, page)
    tab.console[:] = [each for each in tab.console if "status of 4" not in each]


def test_markup_in_the_address_is_data_too(tab: Browser, hostile: list[penstock.Dataset]) -> None:
    with serving(*hostile) as server:
        for text in TEXTS[::3]:
            for page in (
                {"tab": "table", "where": text, "sort": text},
                {"tab": "read", "kind": text, "index": text, "form": text},
                {"tab": "search", "find": text, "look": text},
                {"tab": "charts", "by": text},
                {"tab": text},
                {"dataset": text},
            ):
                tab.open(f"{server.address}#{urlencode(page)}")
                tab.until(
                    "document.body?.dataset.tab !== undefined || document.getElementById('problem')?.hidden === false"
                )
                unharmed(tab, page)
    tab.console[:] = [each for each in tab.console if "status of 4" not in each]


def test_a_line_of_ten_million_bytes_does_not_make_the_page_stand_still(tab: Browser, tmp_path: Path) -> None:
    line = "x" * 10_000_000
    with penstock.Writer(tmp_path / "long", {"token": "u1"}, metadata="json") as writer:
        writer.append(token=np.full(len(line), 120), metadata={"line": line, "all": [line[:100]] * 1_000})
        writer.append(token=[1, 2], metadata={"line": ATTACK * 100_000})
    with serving(penstock.open(tmp_path / "long")) as server:
        for page in (*PAGES[:5], *({"tab": "read", "kind": "document", "index": index} for index in (0, 1))):
            begin = time.monotonic()
            show(tab, server, page)
            unharmed(tab, page)
            assert time.monotonic() - begin < 10, page
            assert tab.do("document.body.innerText.length") < 1_000_000, page
        for what in ({"kind": "document", "index": 0}, {"kind": "window", "window": 64, "index": 1}):
            assert len(json.dumps(ask(server, "row", **what))) < 2_000_000


def test_no_answer_is_a_page_of_its_own(hostile: list[penstock.Dataset]) -> None:
    """Who opens the address of an answer sees its bytes, not markup."""
    with serving(*hostile) as server:
        for name in ("table", "row?kind=document&index=0"):
            status, headers, _ = get(server, f"api/{name}")
            assert status == 200 and headers["Content-Type"].startswith("application/json")
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert "default-src 'none'" in headers["Content-Security-Policy"]
