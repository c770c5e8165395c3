"""`penstock doctor`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import click

from penstock._base.words import counted
from penstock._cli.command_help import Command
from penstock._cli.output import echo, emit_json, human_bytes, json_option

Row = tuple[str, str]

_WIDTH = 80
_EPILOG = """\b
Examples:
  penstock doctor
  penstock doctor corpus/
"""


@click.command("doctor", cls=Command, epilog=_EPILOG)
@click.argument("path", required=False, metavar="[PATH]")
@json_option
def command(path: str | None, as_json: bool) -> None:
    """Reports versions, limits, cores, memory, how files are read here, and what a loader would choose.

    With PATH also its file system and how much of it is in the page cache. A small dataset is written among the
    temporary files, read, and removed. The report names no user, host, folder or address, but for PATH.
    """
    if path is not None and not Path(path).exists():
        raise click.UsageError(f"{path}: no such file or folder on this machine")
    found = examine(path)
    if as_json:
        emit_json(found)
        return
    rows = rows_of(found)
    width = max(len(name) for name, _ in rows)
    for name, words in rows:
        lines = [words] if name == "path" else _wrapped(words, _WIDTH - width - 2)
        for number, line in enumerate(lines):
            echo(f"{'' if number else name:<{width}}  {line}")


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, width, break_long_words=False, break_on_hyphens=False)


def examine(path: str | None) -> dict[str, Any]:
    """All that is found, as JSON values."""
    from penstock._cli import machine, machine_files

    return {
        "versions": machine.versions(),
        "extras": machine.extras(),
        "engines": machine.engines(),
        "system": machine.system(),
        "cores": machine.cores(),
        "memory": machine.memory(),
        "limits": machine.limits(),
        "environment": machine.environment(),
        "libcurl": machine.curl(),
        "loader": machine_files.readers(),
        "path": None if path is None else machine_files.of_path(path),
    }


def rows_of(found: dict[str, Any]) -> list[Row]:
    """The report's lines, each a name and words."""
    versions, system = found["versions"], found["system"]
    return [
        *((name, version or "not installed") for name, version in versions.items()),
        *_of_extras(found["extras"]),
        ("engines", ", ".join(f"{name} {version or 'not installed'}" for name, version in found["engines"].items())),
        ("system", ", ".join(each for each in system.values() if each)),
        ("cores", _cores(found["cores"])),
        ("memory", _memory(found["memory"])),
        ("limits", _limits(found["limits"])),
        *_of_environment(found["environment"]),
        ("libcurl", _libcurl(found["libcurl"])),
        ("io_uring", _ring(found["loader"])),
        ("loader", f"reader {found['loader']['reader']}, {counted(found['loader']['threads'], 'thread')}"),
        *_of_path(found["path"]),
    ]


def _of_extras(found: dict[str, list[str]]) -> list[Row]:
    whole = [name for name, missing in found.items() if not missing]
    rows = [("extras", ", ".join(whole) or "none")]
    # The extra `all` lacks what the others lack.
    lacking = [f"{name}: {', '.join(missing)}" for name, missing in found.items() if missing and name != "all"]
    if lacking:
        rows.append(("missing", "; ".join(lacking)))
    return rows


def _cores(found: dict[str, Any]) -> str:
    words = f"{found['usable']:,} usable of {found['machine']:,}"
    if found["affinity"] < found["machine"]:
        words += f", affinity {found['affinity']:,}"
    if found["usable"] < found["affinity"]:
        words += f", the control group's quota allows {found['usable']:,}"
    if found["processes_on_node"] > 1:
        words += f", shared by {found['processes_on_node']:,} processes"
    return words


def _memory(found: dict[str, Any]) -> str:
    words = f"{human_bytes(found['usable_bytes'])} usable"
    if found["usable_bytes"] < found["machine_bytes"]:
        words += f" of {human_bytes(found['machine_bytes'])}"
    for name in ("available", "page_cache"):
        if (size := found[f"{name}_bytes"]) is not None:
            words += f", {human_bytes(size)} {'available' if name == 'available' else 'in the page cache'}"
    return f"{words}; a loader takes at most {human_bytes(found['loader_bytes'])}"


def _limits(found: dict[str, list[int | None]]) -> str:
    words = []
    for name, (soft, hard) in found.items():
        show = human_bytes if name.endswith("_bytes") else "{:,}".format
        most = "unlimited" if soft is None else show(soft)
        if soft != hard:
            most += f" (hard {'unlimited' if hard is None else show(hard)})"
        words.append(f"{name.removesuffix('_bytes').replace('_', ' ')} {most}")
    return ", ".join(words)


def _of_environment(found: dict[str, Any]) -> list[Row]:
    words = [f"{name}={value}" for name, value in found.items() if name != "proxies"]
    words += [f"{name} is set" for name in found["proxies"]]
    return [("environment", ", ".join(words))] if words else []


def _libcurl(found: dict[str, Any]) -> str:
    if found["version"] is None:
        return f"none: {found['refusal']}"
    return f"{found['version']}, {found['tls'] or 'without TLS: https:// and s3:// cannot be read'}"


def _ring(found: dict[str, Any]) -> str:
    if found["io_uring"]:
        return "works"
    setting = found["io_uring_disabled"]
    return f"refused: {found['refusal']}" + (f" (kernel.io_uring_disabled is {setting})" if setting else "")


def _of_path(found: dict[str, Any] | None) -> list[Row]:
    if found is None:
        return []
    free, size = human_bytes(found["free_bytes"]), human_bytes(found["size_bytes"])
    rows = [
        ("path", found["path"]),
        ("file system", f"{found['file_system'] or 'unknown'}, {free} free of {size}"),
    ]
    if found["direct_reads"] is not None:
        works = found["direct_reads"] == "yes"
        rows.append(("direct reads", "work" if works else f"refused: {found['direct_reads']}"))
    if found["files"]:
        files = counted(found["files"], "file") + (" looked at, of more" if found["more_files"] else "")
        share = "not known: they are another user's" if found["cached"] is None else f"{found['cached']:.0%}"
        rows.append(("page cache", f"{share} of the pages of {files}" if found["cached"] is not None else share))
    return rows
