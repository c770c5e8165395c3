"""The browser that tests of the pages of `penstock view` share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from _browser import Browser, browser


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def tab(shared: Browser) -> Iterator[Browser]:
    """The tab, whose console must stay empty and whose requests go to its own server alone."""
    shared.size(1400)
    shared.dark(False)
    shared.console.clear()
    shared.requests.clear()
    yield shared
    assert shared.console == []
    others = [each for each in shared.requests if not each.startswith(("http://127.0.0.1:", "data:", "about:"))]
    assert others == []
