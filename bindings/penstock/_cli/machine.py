"""Versions, limits, cores and memory of this machine, for `penstock doctor`; no names of users, hosts or folders."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import re
import resource
from pathlib import Path
from typing import Any

Found = dict[str, Any]

_RANKS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
_PROXIES = ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
_TLS = re.compile(r"\(?((?:OpenSSL|GnuTLS|LibreSSL|BoringSSL|AWS-LC|mbedTLS|wolfSSL|NSS|rustls\S*)/[\w.+-]+)")


def versions() -> Found:
    """Versions of penstock, Python and the packages that loading uses; None for those that are not installed."""
    names = ("numpy", "torch", "click", "rich")
    return {
        "penstock": _version("penstock"),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        **{name: _version(name) for name in names},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def extras() -> dict[str, list[str]]:
    """The extras of penstock, each with its packages that are missing or too old."""
    found: dict[str, list[str]] = {}
    joined: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("penstock") or ():
        match = re.match(r"""([\w.-]+)(?:\[(.*?)\])?\s*(?:>=([\d.]+))?.*;.*extra == ["']([\w-]+)["']""", line)
        if match is None:
            continue
        package, parts, wanted, extra = match.groups()
        if package == "penstock":  # an extra that is several others
            joined.setdefault(extra, []).extend(each.strip() for each in (parts or "").split(","))
            continue
        missing = found.setdefault(extra, [])
        version = _version(package)
        if version is None:
            missing.append(package)
        elif wanted and _numbers(version) < _numbers(wanted):
            missing.append(f"{package} {version}, which is older than {wanted}")
    for extra, others in joined.items():
        every = [each for other in others for each in found.get(other, ())]
        found[extra] = list(dict.fromkeys([*found.get(extra, ()), *every]))
    return dict(sorted(found.items()))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version.partition("+")[0])[:3])


def engines() -> dict[str, str | None]:
    """Packages that compute the ids of text, the fastest first."""
    return {name: _version(name) for name in ("gigatoken", "tokenizers")}


def system() -> Found:
    """Kernel, C library, processor."""
    library, version = platform.libc_ver()
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "libc": f"{library} {version}".strip() or None,
        "architecture": platform.machine(),
    }


def cores() -> Found:
    """Cores of the machine, those that this process's affinity leaves, and those that its quota leaves of them."""
    from penstock import _native
    from penstock._base.ranks import local_world_size

    return {
        "machine": os.cpu_count() or 1,
        "affinity": len(os.sched_getaffinity(0)),
        "usable": _native.usable_cores(1),
        "processes_on_node": local_world_size(),
    }


def memory() -> Found:
    """Bytes: of the machine, usable in its control group, available, in the page cache, of a loader's batches."""
    from penstock._base.resources import default_max_bytes, memory_bytes

    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = {name: int(words.split()[0]) * 1024 for name, words in (line.split(":") for line in lines)}
    return {
        "machine_bytes": sizes["MemTotal"],
        "usable_bytes": memory_bytes(),
        "available_bytes": sizes.get("MemAvailable"),
        "page_cache_bytes": sizes.get("Cached"),
        "loader_bytes": default_max_bytes(),
    }


def limits() -> dict[str, list[int | None]]:
    """[soft, hard] limits; None: no limit."""
    kinds = {
        "memlock_bytes": resource.RLIMIT_MEMLOCK,
        "open_files": resource.RLIMIT_NOFILE,
        "processes": resource.RLIMIT_NPROC,
        "address_space_bytes": resource.RLIMIT_AS,
    }
    return {
        name: [None if each == resource.RLIM_INFINITY else each for each in resource.getrlimit(kind)]
        for name, kind in kinds.items()
    }


def curl() -> Found:
    """The libcurl that is loaded for http:// and s3://, and its TLS; `refusal` says why there is none."""
    from penstock import _native

    if refusal := _native.curl_refusal():
        return {"version": None, "tls": None, "refusal": refusal}
    for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):  # in the order of core/io/http/curl.cpp
        try:
            function = ctypes.CDLL(name).curl_version
        except (AttributeError, OSError):
            continue
        function.restype = ctypes.c_char_p
        words = function().decode()
        tls = _TLS.search(words)
        return {
            "version": words.split()[0].partition("/")[2],
            "tls": tls[1].replace("/", " ") if tls else None,
            "refusal": None,
        }
    return {"version": None, "tls": None, "refusal": "it is loaded, and cannot be asked for its version"}


def environment() -> Found:
    """Variables that change what a loader does: numbers as they are, and the names alone of proxies."""
    given = {name: os.environ[name] for name in _RANKS if os.environ.get(name, "").isdigit()}
    return {**given, "proxies": [name for name in _PROXIES if os.environ.get(name)]}
