"""The threads of Python that fetch for a store, and the native store that they fetch for."""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import Any

from penstock import _native
from penstock._places.storage import Storage
from penstock._places.stores.adapter import Adapter, buffers
from penstock._places.stores.words import compare_size, tell

_running: weakref.WeakSet[Any] = weakref.WeakSet()


def store_through(adapter: Adapter, storage: Storage) -> _native.Store:
    """A store whose files are fetched from an adapter by threads of Python."""
    calls = _native.StoreCalls(
        connections=storage.connections, ranges_a_call=adapter.ranges_a_call, deadline=storage.deadline
    )
    _running.add(calls)
    _start(calls, _Files(adapter, storage))
    store = _native.PythonStore(calls=calls, has_whole=adapter.has_whole)
    store.etags = adapter.etags  # type: ignore[attr-defined]
    return store


class _Files:
    """An adapter, and what its listings said of sizes."""

    def __init__(self, adapter: Adapter, storage: Storage) -> None:
        self.adapter = adapter
        self._headers = [value for value in (storage.headers or {}).values() if value]
        self._listed: dict[str, int] = {}

    def secrets(self) -> list[str]:
        """What no message may hold."""
        return [*self._headers, *self.adapter.secrets()]

    def size(self, path: str) -> int:
        """Bytes of the file, of a listing the first time."""
        listed = self._listed.pop(path, None)  # once: the file may be another one when it is opened again
        return int(self.adapter.size(path)) if listed is None else listed

    def names(self, path: str) -> list[str]:
        """Names in a folder, sorted; those of folders end with a slash."""
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
            given = buffers(files.adapter.read(path, call.offsets, call.sizes))
            if call.is_short(given):
                compare_size(call, files.adapter)
            call.give(given)
        elif call.kind == "whole":
            call.give([files.adapter.whole(path)])
        elif call.kind == "size":
            call.give_size(files.size(path))
        else:
            call.give_names(files.names(path))
    except BaseException as error:  # whatever a store raises: who asked is told
        try:
            tell(call, files, error)
        except Exception as another:  # of the error itself, asked for its words; this thread is to go on
            call.refuse("refused", f"it cannot be read: {type(error).__name__}, and then {type(another).__name__}")


# Registered before the loaders' own, and so called after it: reads that their loaders have left are nobody's.
@atexit.register
def _stop_all() -> None:
    for each in list(_running):
        each.stop()
