"""A hook of mkdocs: the pages name the version that pyproject.toml has, in the header and in the footer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def on_config(config: Any) -> Any:
    """Gives theme/main.html and the footer the version."""
    found = re.search(r'^version = "(.+)"$', PROJECT.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f'{PROJECT.name}: no line version = "…"')
    config.extra["release"] = found[1]
    config.copyright = f"penstock {found[1]} · Apache License 2.0"
    return config
