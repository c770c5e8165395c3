"""Files that Python fetches: through obstore, through fsspec, and of a user's own object."""

from __future__ import annotations

import atexit
import contextlib
import errno
import fnmatch
import os
import pickle
import posixpath
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol

from penstock import _buckets, _native, _remote
from penstock._errors import InvalidArgumentError, NotFoundError
from penstock._remote import Address, scheme_of
from penstock._storage import Storage

_BUCKETS = _buckets.SCHEMES
_HTTP = ("http", "https")
_GLOB = frozenset("*?[")
_RANGES_A_CALL = 10  # as many as obstore has under way in one call
_OWN_METHODS = ("size", "list", "read")
# Faults of the program, which no other attempt will mend.
_MISTAKES = (
    InvalidArgumentError,
    IsADirectoryError,
    TypeError,
    AttributeError,
    NameError,
    NotImplementedError,
    ImportError,
    SyntaxError,
)
_SECRET_NAMES = re.compile(
    r"secret|token|passw|sas|signature|credential|private|account_key|access_key$|service_account"
)
_running: weakref.WeakSet[Any] = weakref.WeakSet()


class Adapter(Protocol):
    """What threads fetch from; blocking calls, of several threads at once. Keys have no slash at either end."""

    ranges_a_call: int
    has_whole: bool
    credentials: str  # with what it asks, for messages

    def size(self, key: str) -> int: ...
    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]: ...
    def whole(self, key: str) -> Any: ...
    def secrets(self) -> Sequence[str]:
        """What no message may hold."""
        ...

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        """Bytes of each file in it, by its name; and the names of folders."""
        ...


@dataclass(frozen=True, repr=False)
class StoreAddress(Address):
    """A file or folder that Python reads.

    Args:
        path: an address, or a key in `store`.
        store: what it lies in, where the user gave it.
        opened: the native store, where it was made already. Does not travel.
    """

    store: Any = None
    opened: _native.Store | None = field(default=None, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.store is not None:
            _check_travels(self.store)
        return StoreAddress, (self.path, "", "", self.storage, self.store)


def addresses_of(path_or_url: str | os.PathLike[str], storage: Storage | None, store: Any = None) -> list[Address]:
    """What an address, or a key in `store`, names: globs are expanded where the store lists.

    Raises:
        InvalidArgumentError: an address that cannot be; a package that is not installed.
        NotFoundError: nothing matches.
    """
    url = os.fspath(path_or_url)
    scheme = scheme_of(url)
    if store is None and scheme in _remote._NATIVE and not _native.curl_refusal():
        native = Address.parse(url, storage)
        if not _has_glob(native.path):
            return [native]
        if scheme in _HTTP:
            raise InvalidArgumentError(f"{native.path}: HTTP lists no files: name each, without *, ? and [")
        listing = python_store([native], native.storage)
        return [replace(native, path=each) for each in matches(listing, native.path)]
    storage = storage or Storage()
    path = url.rstrip("/") if store is not None else _checked(url, scheme)
    address = StoreAddress(path, "", "", storage, store)
    opened = python_store([address], storage, store)
    if not _has_glob(path):
        return [StoreAddress(path, "", "", storage, store, opened)]
    if scheme in _HTTP:
        raise InvalidArgumentError(f"{path}: HTTP lists no files: name each, without *, ? and [")
    return [StoreAddress(each, "", "", storage, store, opened) for each in matches(opened, path)]


def _has_glob(path: str) -> bool:
    scheme, separator, rest = path.partition("://")
    # A host in brackets is no glob; in the other schemes what follows is a key from its beginning on.
    named = rest.partition("/")[2] if separator and scheme in (*_HTTP, *_BUCKETS) else rest if separator else path
    return bool(_GLOB & set(named))


def stores_of(paths: Sequence[Any]) -> list[_native.Store | None]:
    """Of each path or Address the native store that it lies in; None for this machine's."""
    mine = [each for each in paths if isinstance(each, StoreAddress)]
    native = _remote.stores_of([None if isinstance(each, StoreAddress) else each for each in paths])
    if not mine:
        return native
    store = mine[0].opened or python_store(mine, mine[0].storage, mine[0].store)
    return [store if isinstance(each, StoreAddress) else its for each, its in zip(paths, native, strict=True)]


def python_store(addresses: Sequence[Address], storage: Storage, store: Any = None) -> _native.Store:
    """A store whose files are fetched by threads of Python.

    Args:
        addresses: what will be read of it; more of the same stores may be.
        storage: how it is reached, and how long it is tried.
        store: an obstore store, an fsspec filesystem or an object with size, list and read; None: addresses say it.

    Raises:
        InvalidArgumentError: a package that is not installed, a `store` that is none, a Storage that does not fit.
    """
    for each in addresses:
        if each.userinfo or each.query:
            raise InvalidArgumentError(
                f"{each.path}: its address holds a password or a signature, which is read natively alone: reader='http'"
            )
    adapter = _adapter_of(store) if store is not None else _ByAddress([each.path for each in addresses], storage)
    calls = _native.StoreCalls(
        connections=storage.connections, ranges_a_call=adapter.ranges_a_call, deadline=storage.deadline
    )
    _running.add(calls)
    _start(calls, _Files(adapter, _secrets_of(storage, adapter)))
    return _native.PythonStore(calls=calls, has_whole=adapter.has_whole)


def matches(store: _native.Store, pattern: str) -> list[str]:
    """Paths of a store that a glob matches, sorted; `**` is any folders. One listing a folder.

    Raises:
        NotFoundError: there are none.
    """
    scheme, separator, rest = pattern.partition("://")
    root, rest = (scheme + separator, rest) if separator else ("", pattern)
    parts = rest.split("/")
    first = next(i for i, part in enumerate(parts) if _GLOB & set(part))
    found = sorted(set(_walk(store, root + "/".join(parts[:first]), parts[first:])))
    if not found:
        raise NotFoundError(errno.ENOENT, f"{pattern}: no file matches", pattern)
    return found


def _walk(store: _native.Store, folder: str, parts: list[str]) -> Iterable[str]:
    names = store.list(folder)
    head, rest = parts[0], parts[1:]
    prefix = folder + "/" if folder and not folder.endswith("://") else folder
    if head == "**":
        yield from _walk_names(store, prefix, names, rest or ["*"])
        for name in names:
            if name.endswith("/"):
                yield from _walk(store, prefix + name.rstrip("/"), parts)
        return
    yield from _walk_names(store, prefix, names, parts)


def _walk_names(store: _native.Store, prefix: str, names: list[str], parts: list[str]) -> Iterable[str]:
    head, rest = parts[0], parts[1:]
    for name in names:
        bare = name.rstrip("/")
        if bare != head and not fnmatch.fnmatchcase(bare, head):
            continue
        if rest and name.endswith("/"):
            yield from _walk(store, prefix + bare, rest)
        elif not rest:  # folders too: they may be datasets
            yield prefix + bare


# --- threads


class _Files:
    """An adapter, and what its listings said of sizes."""

    def __init__(self, adapter: Adapter, secrets: Callable[[], list[str]]) -> None:
        self.adapter = adapter
        self.secrets = secrets
        self._listed: dict[str, int] = {}

    def size(self, path: str) -> int:
        listed = self._listed.pop(path, None)  # once: the file may be another one when it is opened again
        return int(self.adapter.size(path)) if listed is None else listed

    def names(self, path: str) -> list[str]:
        files, folders = self.adapter.folder(path)
        prefix = path + "/" if path and not path.endswith("/") else path
        self._listed |= {prefix + name: size for name, size in files.items() if size >= 0}
        return sorted([*files, *(name + "/" for name in folders)])


def _start(calls: Any, files: _Files) -> None:
    threading.Thread(target=_serve, args=(calls, files), name="penstock-store", daemon=True).start()


def _serve(calls: Any, files: _Files) -> None:
    while (call := calls.take()) is not None:
        if call.wants_thread:
            try:
                _start(calls, files)
            except RuntimeError:  # no more of them here, or Python ends
                calls.has_no_thread()
        _answer(call, files)
        del call


def _answer(call: Any, files: _Files) -> None:
    path = call.path
    try:
        if call.kind == "ranges":
            buffers = _buffers(files.adapter.read(path, call.offsets, call.sizes))
            if call.is_short(buffers):
                _compare_size(call, files)
            call.give(buffers)
        elif call.kind == "whole":
            call.give([files.adapter.whole(path)])
        elif call.kind == "size":
            call.give_size(files.size(path))
        else:
            call.give_names(files.names(path))
    except BaseException as error:  # whatever a store raises: who asked is told
        try:
            _tell(call, files, error)
        except Exception as another:  # of the error itself, asked for its words; this thread is to go on
            call.refuse("refused", f"it cannot be read: {type(error).__name__}, and then {type(another).__name__}")


def _buffers(given: Any) -> list[Any]:
    if isinstance(given, bytes | bytearray | memoryview | str):
        raise TypeError(f"read() returned {type(given).__name__}, not a list of buffers")
    return list(given)


def _compare_size(call: Any, files: _Files) -> None:
    with contextlib.suppress(Exception):
        call.compare_size(int(files.adapter.size(call.path)))


def _tell(call: Any, files: _Files, error: BaseException) -> None:
    said = f"{type(error).__name__}: {_harmless(str(error), files.secrets())}"
    status = _status_of(error)
    if isinstance(error, FileNotFoundError) or type(error).__name__ == "NotFoundError" or status == 404:
        call.refuse("missing", "there is no such file" if call.kind != "names" else "there is no such folder")
    elif (
        isinstance(error, PermissionError)
        or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError")
        or status in (401, 403)
    ):
        what = "listing is not allowed" if call.kind == "names" else "access is refused"
        call.refuse("refused", f"{what}: it was asked for {files.adapter.credentials}: {said}")
    elif isinstance(error, _MISTAKES):
        call.refuse("refused", f"it cannot be read: {said}")
    elif "without LOCATION" in str(error):
        call.refuse("refused", "the bucket lies in another region than was asked: Storage(region=…) names its own")
    else:
        if call.kind == "ranges":
            _compare_size(call, files)
        call.again(said, _is_unreachable(error))


def _status_of(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if isinstance(found, int):
                return found
    return None


def _is_unreachable(error: BaseException) -> bool:
    words = ("error sending request", "error trying to connect", "Connection refused", "dns error", "Cannot connect")
    return isinstance(error, ConnectionRefusedError) or any(each in str(error) for each in words)


def _harmless(text: str, secrets: list[str]) -> str:
    """The first line of what a store says, without what may be a key or a signature."""
    line = next(iter(text.strip().splitlines()), "it says nothing")
    for secret in secrets:
        line = line.replace(secret, "…")
    line = re.sub(r"(\w://)[^/\s@]*@", r"\1", line)
    line = re.sub(r"\?[^\s)\"'>]*=[^\s)\"'>]*", "", line)
    return re.sub(r"[A-Za-z0-9+/=_-]{32,}", "…", line)[:300]


def _secrets_of(storage: Storage, adapter: Adapter) -> Callable[[], list[str]]:
    values = [value for value in (storage.headers or {}).values() if value]
    return lambda: [*values, *adapter.secrets()]


# --- adapters


def _adapter_of(store: Any) -> Adapter:
    module = type(store).__module__
    if module.partition(".")[0] == "obstore":
        return _Obstore(store, "with those of store=")
    if _is_filesystem(store):
        return _Fsspec(store)
    missing = [name for name in _OWN_METHODS if not callable(getattr(store, name, None))]
    if missing or isinstance(store, type):
        raise InvalidArgumentError(
            f"store: {type(store).__name__}: an obstore store, an fsspec filesystem, or an object with size(path), "
            "list(prefix) and read(path, offsets, sizes) is wanted"
        )
    return _Own(store)


def _is_filesystem(store: Any) -> bool:
    try:
        from fsspec import AbstractFileSystem
    except ModuleNotFoundError:
        return False
    return isinstance(store, AbstractFileSystem)


class _Own:
    """An object of the user's: list(prefix) gives the keys that begin with it, or pairs of a key and its bytes."""

    ranges_a_call = _RANGES_A_CALL
    has_whole = False
    credentials = "with those of store="

    def __init__(self, store: Any) -> None:
        self._store = store

    def size(self, key: str) -> int:
        return int(self._store.size(key))

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        return _buffers(self._store.read(key, offsets, sizes))

    def whole(self, key: str) -> Any:
        raise NotImplementedError

    def secrets(self) -> Sequence[str]:
        return ()

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        prefix = key + "/" if key else ""
        files: dict[str, int] = {}
        folders: dict[str, None] = {}
        for each in self._store.list(prefix):
            name, size = (each, -1) if isinstance(each, str) else each
            if not name.startswith(prefix):
                continue
            first, separator, _ = name.removeprefix(prefix).partition("/")
            if separator:
                folders[first] = None
            elif first:
                files[first] = int(size)
        return files, list(folders)


class _Obstore:
    """A store of obstore's, by its blocking calls: its asynchronous ones end the process badly where Python ends."""

    ranges_a_call = _RANGES_A_CALL
    has_whole = True

    def __init__(self, store: Any, words: str, provider: _buckets.Watched | None = None) -> None:
        _buckets.obstore_for("s3")  # refuses a child after a fork
        import obstore

        self._obstore = obstore
        self._store = store
        self._provider = provider
        self.credentials = words

    def secrets(self) -> Sequence[str]:
        return () if self._provider is None else self._provider.secrets

    def size(self, key: str) -> int:
        return int(self._obstore.head(self._store, key)["size"])

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        if len(offsets) == 1:
            return [self._obstore.get_range(self._store, key, start=offsets[0], length=sizes[0])]
        return self._obstore.get_ranges(self._store, key, starts=offsets, lengths=sizes)

    def whole(self, key: str) -> Any:
        return self._obstore.get(self._store, key).bytes()

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        found = self._obstore.list_with_delimiter(self._store, prefix=key or None)
        files = {posixpath.basename(each["path"]): int(each["size"]) for each in found["objects"]}
        return files, [posixpath.basename(each.rstrip("/")) for each in found["common_prefixes"]]


class _Fsspec:
    """A filesystem of fsspec's: those that are asynchronous inside take several ranges a call."""

    has_whole = False
    credentials = "with those of its fsspec filesystem"

    def __init__(self, filesystem: Any) -> None:
        self._fs = filesystem
        self._is_async = bool(getattr(filesystem, "async_impl", False))
        self._is_memory = type(filesystem).__module__ == "fsspec.implementations.memory"
        self.ranges_a_call = _RANGES_A_CALL if self._is_async else 1

    def size(self, key: str) -> int:
        info = self._fs.info(self._fs._strip_protocol(key))
        if info.get("type") == "directory":
            raise IsADirectoryError(f"{key} is a folder")
        if info.get("size") is None:
            raise InvalidArgumentError(f"{key}: its filesystem does not say how many bytes it has")
        return int(info["size"])

    def read(self, key: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        key = self._fs._strip_protocol(key)
        ends = [offset + size for offset, size in zip(offsets, sizes, strict=True)]
        if self._is_async and len(offsets) > 1:
            found = self._fs.cat_ranges([key] * len(offsets), offsets, ends, on_error="return")
            for each in found:
                if isinstance(each, BaseException):
                    raise each
            return list(found)
        return [self._range(key, start, end) for start, end in zip(offsets, ends, strict=True)]

    def _range(self, key: str, start: int, end: int) -> Any:
        if self._is_memory:  # its files have one position for all threads
            file = self._fs.store.get(key)
            if file is None:
                raise FileNotFoundError(key)
            return bytes(file.getbuffer()[start:end])
        if self._is_async:
            return self._fs.cat_file(key, start=start, end=end)
        with self._fs.open(key, "rb", cache_type="none") as file:  # a cache of a file reads ahead by megabytes
            file.seek(start)
            return file.read(end - start)

    def whole(self, key: str) -> Any:
        raise NotImplementedError

    def secrets(self) -> Sequence[str]:
        return ()

    def folder(self, key: str) -> tuple[dict[str, int], list[str]]:
        files: dict[str, int] = {}
        folders = []
        for each in self._fs.ls(self._fs._strip_protocol(key), detail=True):
            name = posixpath.basename(each["name"].rstrip("/"))
            if each["type"] == "directory":
                folders.append(name)
            else:
                files[name] = -1 if each.get("size") is None else int(each["size"])
        return files, folders


class _ByAddress:
    """Addresses of buckets, servers and filesystems, each through the store that it lies in."""

    def __init__(self, paths: Sequence[str], storage: Storage) -> None:
        self._storage = storage
        self._made: dict[str, Adapter] = {}
        self._mutex = threading.Lock()
        made = [self._find(path)[0] for path in paths]  # refuses in the caller's thread
        self.ranges_a_call = max(each.ranges_a_call for each in made)
        self.has_whole = all(each.has_whole for each in made)
        self.credentials = made[0].credentials

    def _find(self, path: str) -> tuple[Adapter, str]:
        scheme = scheme_of(path)
        if scheme in (*_BUCKETS, *_HTTP):
            host, _, key = path[len(scheme) + 3 :].partition("/")
            root = f"{scheme}://{host}"
        else:
            host, root, key = "", scheme, path
        with self._mutex:
            if root not in self._made:
                self._made[root] = _made_for(scheme, host, path, self._storage)
            return self._made[root], key.rstrip("/")

    def size(self, path: str) -> int:
        adapter, key = self._find(path)
        return adapter.size(key)

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> Sequence[Any]:
        adapter, key = self._find(path)
        return adapter.read(key, offsets, sizes)

    def secrets(self) -> Sequence[str]:
        with self._mutex:
            return [each for adapter in self._made.values() for each in adapter.secrets()]

    def whole(self, path: str) -> Any:
        adapter, key = self._find(path)
        return adapter.whole(key)

    def folder(self, path: str) -> tuple[dict[str, int], list[str]]:
        if scheme_of(path) in _HTTP:
            raise InvalidArgumentError("HTTP lists no folders: name a dataset's folder, or each file")
        adapter, key = self._find(path)
        return adapter.folder(key)


# --- addresses


def _checked(url: str, scheme: str) -> str:
    shown = _native.shown_address(url)
    if scheme in _HTTP:
        parts = _native.parse_address(url)
        if parts[1] or parts[2]:
            raise InvalidArgumentError(
                f"{shown}: its address holds a password or a signature, which needs libcurl: {_native.curl_refusal()}"
            )
        return str(parts[0])
    rest = url[len(scheme) + 3 :]
    host = rest.partition("/")[0]
    if scheme in _BUCKETS and "@" in host:
        raise InvalidArgumentError(
            f"{scheme}://…@…: an address of a bucket holds no credentials: Storage(credentials=…)"
        )
    if "@" in host:
        raise InvalidArgumentError(
            f"{scheme}://…@…: what stands before an @ may be a password: give store=fsspec.filesystem({scheme!r}, …)"
        )
    if scheme in _BUCKETS and not host:
        raise InvalidArgumentError(f"{scheme}:///…: no bucket: {scheme}://BUCKET/KEY is an address")
    return f"{scheme}://{rest.rstrip('/')}"


def _made_for(scheme: str, host: str, path: str, storage: Storage) -> Adapter:
    if scheme not in (*_BUCKETS, *_HTTP):
        return _filesystem_for(scheme, path, storage)
    retries: Any = {
        "max_retries": 2,  # the rest, until the deadline, is tried again range by range
        "retry_timeout": timedelta(seconds=storage.deadline),
        "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=1), "base": 2},
    }
    if scheme in _BUCKETS:
        credentials = _buckets.credentials_of(scheme, storage)
        made, words = _buckets.bucket_of(scheme, host, storage, credentials, retries)
        return _Obstore(made, words, credentials.provider)
    stores = _buckets.obstore_for(scheme)
    _buckets.refuse_fields(storage, scheme)
    root = f"{scheme}://{host}"
    options = _buckets.client_options(storage, root)
    words = "with the headers of Storage" if storage.headers else "without headers"
    return _Obstore(stores.HTTPStore.from_url(root, client_options=options, retry_config=retries), words)


def _filesystem_for(scheme: str, path: str, storage: Storage) -> Adapter:
    try:
        import fsspec
    except ModuleNotFoundError:
        raise InvalidArgumentError(
            f"{path}: {scheme}:// is read through fsspec, which is not installed: pip install 'penstock[fsspec]'"
        ) from None
    try:
        filesystem = fsspec.filesystem(scheme)
    except ValueError:
        raise InvalidArgumentError(
            f"{path}: {scheme}:// is not known: paths of this machine, http://, https://, s3://, gs://, az:// and what "
            "fsspec reads open"
        ) from None
    except TypeError:  # its constructor wants a host, a repository, …
        raise InvalidArgumentError(
            f"{path}: {scheme}:// wants more than an address: give store=fsspec.filesystem({scheme!r}, …)"
        ) from None
    except ImportError as error:
        raise InvalidArgumentError(f"{path}: {_harmless(str(error), [])}") from None
    _buckets.refuse_fields(storage, scheme, ())
    return _Fsspec(filesystem)


# --- elsewhere


def _check_travels(store: Any) -> None:
    what = f"store={type(store).__name__}"
    config = {**(getattr(store, "config", None) or {}), **(getattr(store, "storage_options", None) or {})}
    client = getattr(store, "client_options", None) or {}
    if client.get("default_headers") or any(_SECRET_NAMES.search(str(name)) for name in config):
        raise InvalidArgumentError(
            f"{what} holds secrets and is not pickled: make it, and what is opened in it, in the process that reads"
        )
    try:
        pickle.dumps(store)
    except Exception as error:  # whatever its parts raise
        raise InvalidArgumentError(
            f"{what} is not pickled ({type(error).__name__}): make it, and what is opened in it, in the process "
            "that reads"
        ) from None


def far_reader(datasets: Sequence[Any]) -> _native.Store:
    """What reads through Python all that these datasets have elsewhere, however they were opened.

    Raises:
        InvalidArgumentError: their addresses hold secrets, or have several Storages.
    """
    addresses = list(_addresses_in([each._reopen for each in datasets]))
    if any(each.storage != addresses[0].storage for each in addresses):
        raise InvalidArgumentError("reader='python': the datasets were opened with several Storages: give them one")
    native = [each for each in addresses if not isinstance(each, StoreAddress)]
    return python_store(native, native[0].storage)


def _addresses_in(held: Any) -> Iterable[Address]:
    if isinstance(held, Address):
        yield held
    elif isinstance(held, tuple | list):
        for each in held:
            yield from _addresses_in(each)
    elif hasattr(held, "_reopen"):
        yield from _addresses_in(held._reopen)


# Registered before the loaders' own, and so called after it: reads that their loaders have left are nobody's.
@atexit.register
def _stop_all() -> None:
    for each in list(_running):
        each.stop()
