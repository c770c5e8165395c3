"""What may be said of an upload that failed, and whether to try again."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock._places.obstore_errors import Said, without

# Of status 400: what a server answers to bytes that came late or damaged, and to credentials that end.
_PASSING_CODES = frozenset(
    {"", "RequestTimeout", "IncompleteBody", "BadDigest", "XAmzContentSHA256Mismatch", "InvalidPart", "ExpiredToken"}
)


@dataclass(frozen=True)
class Problem:
    """What may be said of an error: of obstore's nothing that a server or an address put there.

    Attributes:
        said: by obstore.
        words: for messages.
        local: (errno, file, words) of a file of this machine.
    """

    said: Said
    words: str
    local: tuple[int, str, str] | None = None

    @classmethod
    def of(cls, error: Exception) -> Problem:
        said = Said.of(error)
        if isinstance(error, OSError) and error.errno is not None:
            local = error.errno, os.fsdecode(error.filename or "a local file"), error.strerror or type(error).__name__
            return cls(said, local[2], local)
        if said.is_redirect:
            return cls(said, "a redirect without an address")
        kinds = {"Connect": "no connection", "Timeout": "no answer in time"}
        ended = kinds.get(said.kind, "the connection ended" if said.kind else type(error).__name__)
        return cls(said, said.answer or said.certificate or ended)

    def without(self, secrets: Iterable[str]) -> Problem:
        """The same, whatever the server told again of what it was told."""
        return replace(self, words=without(self.words, secrets))

    @property
    def may_pass(self) -> bool:
        """Whether trying again may help. Of what has no status only requests that failed: the rest are mistakes."""
        status = self.said.status
        if status is None:
            return self.said.is_passing and not self.said.is_of_region and not self.said.certificate
        if status == 400:
            return self.said.code in _PASSING_CODES
        if status == 404:
            return self.said.code == "NoSuchUpload"  # the upload begins anew
        return status in (408, 409, 429) or (status >= 500 and status != 501)

    @property
    def is_unsupported(self) -> bool:
        return self.said.status in (400, 501)

    def __str__(self) -> str:
        return self.words
