"""The error where another package cannot be imported: it is not installed, or lacks a part."""

from __future__ import annotations

import importlib.util
from importlib import metadata


def missing(what: str, package: str, install: str, error: ImportError, tested: str = "") -> ImportError:
    """The error of what cannot be imported.

    Args:
        what: needs the package, and begins the message.
        package: the name of its module.
        install: the command that installs it.
        error: of the import.
        tested: says which releases of it are known to work.

    Returns:
        A ModuleNotFoundError that names the package if it is not installed, or a package that it needs; an ImportError
        if the installed one lacks a part.
    """
    name = error.name or package
    if not _is_installed(package):
        text = f"{what} needs {name.partition('.')[0]}, which is not installed: {install}"
        return ModuleNotFoundError(text, name=error.name)
    installed = f"{package} {_version(package)}".strip()
    if name.partition(".")[0] != package and isinstance(error, ModuleNotFoundError):
        text = f"{what}: {installed} is installed and needs {name}, which is not: install what {package} requires"
        return ModuleNotFoundError(text, name=error.name)
    known = f"; {tested}" if tested else ""
    return ImportError(f"{what}: {installed} is installed, but a part is missing: {error}{known}", name=error.name)


def _is_installed(package: str) -> bool:
    """A folder of this name that is no package, such as Ray's own of temporary files, is another thing."""
    found = importlib.util.find_spec(package)
    return found is not None and found.origin is not None


def _version(package: str) -> str:
    """An installed distribution's; empty for a folder on the path, such as a checkout."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""
