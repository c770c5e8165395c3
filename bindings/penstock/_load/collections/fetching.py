"""Fetches are read, and batches taken from them, by the user's hooks or by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock._base.errors import InvalidArgumentError
from penstock._base.words import counted
from penstock._load.collections.identity import length_of
from penstock._load.collections.reading import CountError, Indices, check_count, read, take
from penstock._load.collections.turns import Turns

Hook = Callable[..., Any]


class FailedError(Exception):
    """A hook or the collection raised: the cause. What is said of it goes into the error of its batch."""


@dataclass(frozen=True)
class Hooks:
    """The user's functions."""

    fetch_callback: Hook | None = None
    fetch_transform: Hook | None = None
    batch_callback: Hook | None = None
    batch_transform: Hook | None = None

    def __post_init__(self) -> None:
        """Refuses what cannot be called."""
        for name, hook in vars(self).items():
            if hook is not None and not callable(hook):
                raise InvalidArgumentError(f"{name}={hook!r:.80}: must be a function")

    @property
    def are_given(self) -> bool:
        """True if there is one of them."""
        return any(hook is not None for hook in vars(self).values())


class Fetcher:
    """Reads fetches of an open collection and takes batches from them. Any thread, as far as the hooks allow that."""

    def __init__(self, collection: Any, count: int, hooks: Hooks) -> None:
        """Nothing is read.

        Args:
            collection: it.
            count: its length when the loader was made.
            hooks: what is called.
        """
        self._collection = collection
        self._count = count
        self._hooks = hooks
        self._turns = Turns(collection)

    def fetch(self, indices: Indices) -> Any:
        """These observations, after `fetch_transform`.

        Raises:
            FailedError: the collection or a hook raised.
            InvalidArgumentError: the collection's length changed, it gave another count, or a hook gave nothing.
        """
        with self._turns:
            return self._fetch(indices)

    def _fetch(self, indices: Indices) -> Any:
        hooks, wanted = self._hooks, len(indices)
        self._check_length()
        if hooks.fetch_callback is not None:
            fetched = _called("fetch_callback(collection, indices)", hooks.fetch_callback, self._collection, indices)
        else:
            what = f"indexing the {type(self._collection).__name__}"
            fetched = _called(what, read, self._collection, indices)
        if hooks.fetch_transform is not None:
            fetched = _called("fetch_transform(fetched)", hooks.fetch_transform, fetched)
        is_counted = hooks.fetch_callback is None and hooks.fetch_transform is None
        if hooks.batch_callback is None and not is_counted:  # else that alone knows what it is given
            _tried("counting what was fetched", check_count, "a fetch", fetched, wanted)
        return fetched

    def batch(self, fetched: Any, places: Indices) -> Any:
        """The batch of the rows `places` of what was fetched.

        Raises:
            FailedError: a hook raised, or what was fetched cannot be indexed.
            InvalidArgumentError: a hook gave nothing.
        """
        hooks = self._hooks
        if hooks.batch_callback is not None:
            batch = _called("batch_callback(fetched, places)", hooks.batch_callback, fetched, places)
        else:
            batch = _called(f"indexing the fetched {type(fetched).__name__}", take, fetched, places)
        if hooks.batch_transform is not None:
            batch = _called("batch_transform(batch)", hooks.batch_transform, batch)
        return batch

    def _check_length(self) -> None:
        name = type(self._collection).__name__
        try:
            count = length_of(self._collection, self._hooks.fetch_callback is not None)
        except InvalidArgumentError:
            raise
        except Exception as error:
            raise FailedError(f"the length of the {name} raised {type(error).__name__}: {error}") from error
        if count != self._count:
            raise InvalidArgumentError(
                f"the collection has {counted(count, 'observation')} now, and had {self._count:,} when the loader was "
                "made: make another loader"
            )


def _called(what: str, function: Hook, *arguments: Any) -> Any:
    result = _tried(what, function, *arguments)
    if result is None:
        raise InvalidArgumentError(f"{what} returned None: must return what the next step takes")
    return result


def _tried(what: str, function: Hook, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except CountError:
        raise
    except Exception as error:
        raise FailedError(f"{what} raised {type(error).__name__}: {error}") from error
