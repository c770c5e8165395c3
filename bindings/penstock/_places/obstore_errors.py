"""What may be known of an error that obstore raised: it tells all in words, the address of the request among them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_REQUEST = re.compile(r"Error performing [A-Z]+ \S+ in \S+?(?:, after (\d{1,9}) retries,.*?)? - (.*)", re.DOTALL)
_STATUS = re.compile(r"Server returned non-2xx status code: (\d{3})( [A-Z][A-Za-z ]{0,40})?")
# In capitals and small letters, as no key and no signature is, which a server was told and may tell again.
_CODE = re.compile(r"<Code>((?=\w*[a-z])[A-Z][A-Za-z0-9]{1,47})</Code>")
_REGION = re.compile(r"<Region>([a-z0-9-]{1,32})</Region>")
_KIND = re.compile(r"HttpError \{\n\s+kind: (\w{1,20}),")
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(\w{1,40})")
_OF_CERTIFICATES = {
    "Expired": "it has expired: the server needs a new one",
    "NotValidYet": "it is not valid yet: is the clock of this machine right?",
    "NotValidForName": "it does not match the name of the server",
    "UnknownIssuer": "its authority is not known here: Storage(ca_file=…) names the certificates of one",
}
_BARE_REDIRECT = "Received redirect without LOCATION"  # 301 of S3, whose body and headers obstore drops
# Types of which another attempt may end otherwise where there is no status. The others are mistakes.
_PASSING = frozenset({"GenericError", "UnauthenticatedError"})


@dataclass(frozen=True)
class Said:
    """What obstore's words hold beside addresses, keys and the body of the reply.

    Attributes:
        status: of the reply; None: there was none, or none that failed.
        phrase: that follows it.
        code: the server's own, "" without one.
        region: where the server says that the bucket lies, "" if it does not.
        kind: of a connection that failed: "Connect", "Timeout", "Request", …; "" otherwise.
        certificate: what is wrong with that of the server; "" where nothing is, or nothing is known.
        attempts: of the request.
        is_redirect: to an address that was not told.
        is_passing: whether the error is of a type that requests end with, not mistakes of the program.
    """

    status: int | None
    phrase: str
    code: str
    region: str
    kind: str
    certificate: str
    attempts: int
    is_redirect: bool
    is_passing: bool

    @classmethod
    def of(cls, error: BaseException) -> Said:
        """Of an error that obstore raised; of others it is known that they are not its own."""
        words, _, details = str(error).rpartition("\n\nDebug source:\n")
        request = _REQUEST.search(words) if is_obstores(error) else None
        reply = request[2] if request else ""
        status, code, region = _STATUS.match(reply), _CODE.search(reply), _REGION.search(reply)
        kind = _KIND.search(details) if request else None
        wrong = _CERTIFICATE.search(details) if request else None
        return cls(
            status=int(status[1]) if status else None,
            phrase=(status[2] or "").strip() if status else "",
            code=code[1] if code else "",
            region=region[1] if region else "",
            kind=kind[1] if kind else "",
            certificate=_certificate(wrong[1]) if wrong else "",
            attempts=int(request[1]) + 1 if request and request[1] else 1,
            is_redirect=reply.startswith(_BARE_REDIRECT),
            is_passing=is_obstores(error) and type(error).__name__ in _PASSING,
        )

    @property
    def is_of_region(self) -> bool:
        """Whether the bucket lies in another region than was asked."""
        return self.is_redirect or self.status in (301, 307) or (self.status == 400 and bool(self.region))

    @property
    def answer(self) -> str:
        """The status and the server's code; empty where there was no status."""
        if self.status is None:
            return ""
        return " ".join(filter(None, (str(self.status), self.phrase, f"({self.code})" if self.code else "")))


def without(text: str, secrets: Iterable[str]) -> str:
    """A text, which a server may have had a part in, without what it was told."""
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def _certificate(name: str) -> str:
    name = name.removesuffix("Context")
    return f"its certificate is not good: {_OF_CERTIFICATES.get(name, name)}"


def is_obstores(error: BaseException) -> bool:
    """Whether obstore raised it: NotFoundError is a FileNotFoundError of Python's with nothing but words."""
    if type(error) is FileNotFoundError:
        return error.errno is None
    return type(error).__module__.partition(".")[0] == "obstore"


def of_region(region: str | None) -> str:
    """What to do about a bucket that lies in another region."""
    if not region:
        return "the bucket lies in another region than was asked: Storage(region=…) names its own"
    return f'the bucket is in the region {region}: give Storage(region="{region}")'
