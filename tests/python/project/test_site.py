"""The site that `make docs` builds, in a real browser on a narrow and on a wide screen."""

from __future__ import annotations

import functools
import http.server
import importlib
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from _browser import Browser, browser

ROOT = Path(__file__).resolve().parents[3]
BENCHMARKS = ROOT / "docs" / "benchmarks.md"

# What sticks out of the screen, unless something around it scrolls; and the images that did not load.
SEEN = """(() => {
  for (const each of document.querySelectorAll('details')) each.open = true;
  const width = document.documentElement.clientWidth, wide = [];
  const walk = (around) => {
    for (const each of around.children) {
      if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(each).overflowX)) continue;
      if (each.getBoundingClientRect().right > width + 1) wide.push(each.outerHTML.slice(0, 100));
      walk(each);
    }
  };
  walk(document.querySelector('.md-content'));
  return {
    sideways: document.documentElement.scrollWidth - width,
    wide: wide.slice(0, 5),
    missing: [...document.images].filter((each) => !each.naturalWidth).map((each) => each.src),
    small: [...document.querySelectorAll('.md-content p > img')]
      .filter((each) => each.clientWidth && each.clientWidth < 340)
      .map((each) => each.src),
  };
})()"""


class Page(HTMLParser):
    """The places of a page that can be linked to, and where it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" or (tag == "a" and name == "name"):
                self.places.add(value or "")
            if value and ((tag == "a" and name == "href") or (tag == "img" and name == "src")):
                self.links.append(value)


class Site(NamedTuple):
    folder: Path
    address: str
    pages: dict[str, Page]  # by their path, such as "/loading/"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Built once, in over 5 seconds: mkdocs reads all of the package for docs/api/."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    pages = {
        f"/{path.parent.relative_to(folder)}/".replace("/./", "/"): Page(path.read_text())
        for path in sorted(folder.rglob("index.html"))
    }
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Site(folder, f"http://127.0.0.1:{server.server_address[1]}", pages)
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


def test_the_site_has_every_page_and_each_is_found_from_the_first(site: Site) -> None:
    docs = ROOT / "docs"
    names = {path.relative_to(docs).with_suffix("").as_posix() for path in docs.rglob("*.md")} - {"index"}
    assert set(site.pages) == {"/", *(f"/{name}/" for name in names)}
    linked = {urldefrag(urljoin("/", link))[0] for link in site.pages["/"].links}
    assert set(site.pages) <= linked


def test_every_link_within_the_site_leads_somewhere(site: Site) -> None:
    wrong = []
    for path, page in site.pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, place = urldefrag(urljoin(path, link))
            found = site.pages.get(target)
            if found is None and not (site.folder / target.lstrip("/")).is_file():
                wrong.append(f"{path} links to {link}: no such page")
            elif place in ("only-light", "only-dark"):  # what the theme shows a picture in
                continue
            elif place and (found is None or unquote(place) not in found.places):
                wrong.append(f"{path} links to {link}: no such place")
    assert wrong == []


def test_no_page_is_wider_than_a_narrow_or_a_wide_screen(site: Site, tab: Browser) -> None:
    """Over 5 seconds: a browser lays out each of thirty pages, twice."""
    wrong = {}
    for path in site.pages:
        tab.size(1400)
        tab.load(site.address + path)
        for width in (1400, 400):
            tab.size(width)
            if (found := tab.do(SEEN)) != {"sideways": 0, "wide": [], "missing": [], "small": []}:
                wrong[path, width] = found
    assert wrong == {}
    assert tab.console == []
    others = [each for each in tab.requests if not each.startswith((site.address, "data:", "about:"))]
    assert others == [], "pages ask other hosts"


def test_the_letters_of_a_picture_are_large_enough_for_a_telephone() -> None:
    """A picture 480 units wide is shown 360 pixels wide there: letters of 12 units have 9."""
    for path in (ROOT / "docs" / "images").glob("*.svg"):
        drawn = path.read_text()
        if "<text" in drawn:
            assert 'viewBox="0 0 480 ' in drawn and "prefers-color-scheme:dark" in drawn, path.name
            assert min(int(size) for size in re.findall(r"font-size:(\d+)px", drawn)) >= 12, path.name


def test_pictures_and_pages_are_dark_where_the_reader_wants_it(site: Site, tab: Browser) -> None:
    tab.size(1400)
    tab.load(site.address + "/")
    look = "getComputedStyle(document.body).backgroundColor"
    tab.do("document.querySelector('input#__palette_1').click()")
    light = tab.do(look)
    tab.do("document.querySelector('input#__palette_2').click()")
    dark = tab.do(look)
    assert light == "rgb(255, 255, 255)" and dark == "rgb(16, 23, 27)"
    assert tab.do("getComputedStyle(document.body).colorScheme") == "dark"  # pictures follow it


def test_every_page_names_the_version_and_its_repository_where_one_is_given(site: Site, tmp_path: Path) -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    for path in site.folder.rglob("index.html"):
        page = path.read_text()
        assert f'content: "{version[1]}"' in page and f"penstock {version[1]} · Apache License 2.0" in page
        assert 'data-md-component="source"' not in page and 'rel="icon" href=' in page
    workflow = (ROOT / ".github" / "workflows" / "docs.yml").read_text()
    assert set(re.findall(r"!ENV \[(\w+)", (ROOT / "mkdocs.yml").read_text())) <= set(re.findall(r"(\w+):", workflow))


def test_a_link_to_folded_details_opens_them(site: Site, tab: Browser) -> None:
    tab.size(1400)
    tab.load(f"{site.address}/cells/")
    tab.load(f"{site.address}/benchmarks/#shards")
    tab.until("document.getElementById('shards')?.open")
    assert not tab.do("document.getElementById('stalls').open")


# ---- docs/benchmarks.md leads with one table


def summary() -> tuple[list[list[str]], str]:
    """The rows of the first table of docs/benchmarks.md, and what follows its head."""
    lead, _, details = BENCHMARKS.read_text().partition("\n## Details\n")
    lines = [line for line in lead.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:12]], details


def test_the_ten_figures_that_lead_are_those_of_the_details() -> None:
    rows, details = summary()
    assert len(rows) == 10
    for what, *cells, _ in rows:
        for figure in re.findall(r"\d[\d,.]*\d|\d", " ".join(cells)):
            assert re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", details), f"{what}: {figure}"


def test_the_ten_figures_that_lead_have_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for *_, command in summary()[0]:
        words = shlex.split(command.strip("`"))
        if words[0] == "make":
            assert words[1] in targets
        else:
            assert words[:2] == ["python", "benchmarks/run.py"]
            importlib.import_module("run").arguments(words[2:])
