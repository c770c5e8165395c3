"""Files that a wheel puts into share/: manual pages and completion scripts. Written by scripts/share, and committed."""

from __future__ import annotations

import sys
from pathlib import Path

from penstock._cli.completion import script
from penstock._cli.main import cli
from penstock._cli.manual import pages

_COMPLETIONS = {
    "bash": "bash-completion/completions/penstock",
    "zsh": "zsh/site-functions/_penstock",
    "fish": "fish/vendor_completions.d/penstock.fish",
}


def files() -> dict[str, str]:
    """Texts by their paths below share/."""
    manual = {f"man/man1/{name}": text for name, text in pages(cli).items()}
    return {**manual, **{path: script(cli, shell) for shell, path in _COMPLETIONS.items()}}


def write(folder: Path) -> None:
    """Writes them into `folder`."""
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
