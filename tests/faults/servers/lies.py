"""All that a server may answer wrongly, in a table: what goes over the wire, and what must come of it."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from servers.objects import XML, Answer, Request, error, etag_of
from servers.server import Tell, Wire, wire_bytes

BODY = frozenset({"get", "list"})  # requests whose answer has one that is used
READS = frozenset({"get", "list", "head"})
WRITES = frozenset({"put", "new", "copy", "begin", "part", "end", "delete", "abort"})
ALL = READS | WRITES


@dataclass(frozen=True)
class Lie:
    """One of them.

    Attributes:
        tell: writes the reply.
        of: kinds of requests that are answered so.
        passes: told twice and then no more, the data are exact.
        is_harmless: always told to the native reader, the data are exact.
        words: what the native reader's error says where it is always told; a regular expression.
        is_another_file: of a file that is read whole, it is one that there may be; its check value refuses it.
        says_size: it tells another size in all its parts: believed where no manifest tells the size.
        is_slow: each time takes until the request is given up as stalled: 5 s.
        is_seen: by the reply itself. False: by check values alone, as penstock's own datasets have them.
    """

    tell: Tell
    of: frozenset[str] = BODY
    passes: bool = True
    is_harmless: bool = False
    words: str = ""
    is_seen: bool = True
    is_slow: bool = False
    is_another_file: bool = False
    says_size: bool = False


def changed(**headers: str | None) -> Tell:
    """The honest reply with other headers; None: without."""

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        kept = {n: v for n, v in answer.headers.items() if n.lower() not in {each.lower() for each in given}}
        told = {name: value.format(n=len(answer.body)) for name, value in given.items() if value is not None}
        wire.reply(Answer(answer.status, {**kept, **told}, answer.body))

    return tell


def status(number: int, code: str = "", **headers: str) -> Tell:
    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        told = error(number, code) if code else Answer(number)
        told.headers.update({name.replace("_", "-"): value for name, value in headers.items()})
        wire.reply(told)

    return tell


def undone(tell: Tell) -> Tell:
    """A lie whose request is not carried out."""
    tell.does_nothing = True  # type: ignore[attr-defined]
    return tell


def range_of(change: Callable[[int, int, int], str]) -> Tell:
    """Another Content-Range, made of (begin, end, size)."""

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        said = answer.headers.get("Content-Range", f"bytes 0-{len(answer.body) - 1}/{len(answer.body)}")
        place, _, size = said.removeprefix("bytes ").partition("/")
        begin, _, last = place.partition("-")
        if begin != "*":
            answer.headers["Content-Range"] = change(int(begin), int(last) + 1, int(size))
        wire.reply(answer)

    return tell


def another_body(change: Callable[[bytes], bytes], **headers: str) -> Tell:
    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        wire.reply(Answer(answer.status, {**answer.headers, **told}, change(answer.body)))

    return tell


def raw(*pieces: bytes, ends: bool = True) -> Tell:
    """These bytes in the place of a reply; then the end, or silence."""

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        for piece in pieces:
            wire.write(piece)
        while not ends and wire.wait(0.2):
            pass
        wire.end()

    return tell


def drip(pieces: Callable[[bytes], Iterator[bytes]], pause: float) -> Tell:
    """A reply in pieces, with a pause before each, for as long as anyone listens."""

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        for piece in pieces(wire_bytes(answer)):
            wire.write(piece)
            if pause and not wire.wait(pause):
                break
        wire.end()

    return tell


def chunks(size: bytes, piece: bytes, *, pause: float = 0.0, honest: bool = False) -> Tell:
    """A chunked reply that never ends; `honest`: one that has the right bytes and an end."""

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        headers = {name: value for name, value in answer.headers.items() if name != "Content-Length"}
        headers["Transfer-Encoding"] = "chunked"
        wire.write(wire_bytes(Answer(answer.status, headers), length=False))
        if honest:
            body = answer.body
            pieces = [body[at : at + 1000] for at in range(0, len(body), 1000)]
            wire.write(b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in pieces) + b"0\r\n\r\n")
            return
        while True:
            wire.write(size + b"\r\n" + piece + b"\r\n")
            if pause and not wire.wait(pause):
                break
        wire.end()

    return tell


def cut(share: float, how: str) -> Tell:
    """A share of the reply, and then the end of the connection, or its reset."""

    def tell(wire: Wire, request: Request, answer: Answer) -> None:
        whole = wire_bytes(answer)
        wire.write(whole[: int(len(whole) * share)])
        wire.reset() if how == "reset" else wire.end()

    return tell


def whole_file(wire: Wire, request: Request, answer: Answer) -> None:
    """200 and all of it, as from a server that knows no ranges."""
    data = wire.server.objects.files.get(request.key, answer.body) if request.kind == "get" else answer.body
    told = Answer(answer.status if answer.status >= 400 else 200, dict(answer.headers), data)
    told.headers.pop("Content-Range", None)
    wire.reply(told)


def two_lengths(wire: Wire, request: Request, answer: Answer) -> None:
    head, _, body = wire_bytes(answer).partition(b"\r\n\r\n")
    wire.write(head + b"\r\nContent-Length: %d\r\n\r\n" % (len(body) // 2) + body)
    wire.end()


def more_behind(wire: Wire, request: Request, answer: Answer) -> None:
    """Bytes after the reply, on a connection that stays."""
    wire.write(wire_bytes(answer) + b"HTTP/1.1 206 Told\r\nContent-Length: 4\r\n\r\nmore")


def silent(wire: Wire, request: Request, answer: Answer) -> None:
    while wire.wait(0.2):
        pass
    wire.end()


def again_and_again(wire: Wire, request: Request, answer: Answer) -> None:
    """The first page of a list, with more behind it, for ever."""
    bucket = request.key.strip("/")
    keys = sorted(key.removeprefix(f"{bucket}/") for key in wire.server.objects.files if key.startswith(f"{bucket}/"))
    mine = [key for key in keys if key.startswith(request.query.get("prefix", ""))][:3]
    wire.reply(Answer(200, dict(XML), wire.server.objects.listing(bucket, mine, [], "again")))


def listed(change: Callable[[bytes], bytes]) -> Tell:
    return another_body(change)


def told_back(wire: Wire, request: Request, answer: Answer) -> None:
    """All that the client sent, wherever it may be shown."""
    sent = [request.target.partition("?")[2], *request.headers.values(), *request.query.values()]
    secret = max(sent, key=lambda each: len(each) if each.isascii() else 0)
    turn = request.number % 4
    if turn == 0:
        wire.reply(error(500, secret))
    elif turn == 1:
        wire.reply(Answer(302, {"Location": f"ftp://elsewhere/{'/'.join(sent)}"}))
    elif turn == 2:
        wire.reply(Answer(400, {"x-amz-bucket-region": secret}))
    else:
        wire.reply(Answer(answer.status, {**answer.headers, "ETag": f'"{secret}"'}, answer.body))


def _slow_head(reply: bytes) -> Iterator[bytes]:
    yield from (reply[at : at + 1] for at in range(len(reply)))


def _endless_head(reply: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 206 Told\r\n"
    while True:
        yield b"X-More: more\r\n" * 100


def _endless_early(reply: bytes) -> Iterator[bytes]:
    while True:
        yield b"HTTP/1.1 100 Continue\r\n\r\n" * 100


def _early(wire: Wire, request: Request, answer: Answer) -> None:
    wire.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 3)
    wire.reply(answer)


def _bomb(body: bytes) -> bytes:
    entities = "".join(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10 if at else "lol" * 10}">' for at in range(10))
    return (
        f"<?xml version='1.0'?><!DOCTYPE l [{entities}]><ListBucketResult><Name>&e9;</Name></ListBucketResult>".encode()
    )


_HONEST = chunks(b"", b"", honest=True)
_LONG = changed(Content_Length="1099511627776")
LIES: dict[str, Lie] = {
    # lengths
    "a length that is too long, and the end": Lie(
        raw(b"HTTP/1.1 206 Told\r\nContent-Range: bytes 0-9/*\r\nContent-Length: 500\r\n\r\nfive")
    ),
    "a length that is too long, and silence": Lie(
        raw(b"HTTP/1.1 200 Told\r\nContent-Length: 500\r\n\r\nfive", ends=False), is_slow=True
    ),
    "a length of a terabyte": Lie(
        _LONG, words="announced|bytes, and one of at most", is_another_file=True, is_slow=True
    ),
    "a length that is too short": Lie(
        changed(Content_Length="1"), words="announced|bytes came|crc32c", is_another_file=True
    ),
    "two lengths": Lie(two_lengths, is_another_file=True),
    "a length in words": Lie(changed(Content_Length="many")),
    "a negative length": Lie(changed(Content_Length="-5")),
    "a length beyond 64 bits": Lie(changed(Content_Length="36893488147419103232"), is_slow=True),
    "more behind the reply": Lie(more_behind, is_harmless=True),
    # ranges
    "another range": Lie(range_of(lambda b, e, n: f"bytes {b + 1}-{e}/{n}"), words="came instead"),
    "a range that is turned round": Lie(range_of(lambda b, e, n: f"bytes {e}-{b}/{n}"), words="without the range"),
    "a range of another file": Lie(range_of(lambda b, e, n: f"bytes {b}-{e - 1}/{n + 1}"), passes=False),
    "a range beyond 64 bits": Lie(range_of(lambda b, e, n: f"bytes {b}-{2**64}/{2**64 + 1}")),
    "a range in other units": Lie(range_of(lambda b, e, n: f"pages {b}-{e - 1}/{n}")),
    "a range of a file of unknown size": Lie(range_of(lambda b, e, n: f"bytes {b}-{e - 1}/*"), passes=False),
    "206 without a range": Lie(changed(Content_Range=None), words="without the range|the whole file"),
    "several ranges": Lie(changed(Content_Range=None, Content_Type="multipart/byteranges; boundary=x")),
    "the whole file for a range": Lie(whole_file, words="knows no ranges|whole file"),
    "206 for the whole file": Lie(
        lambda wire, request, answer: wire.reply(
            Answer(
                206,
                {**answer.headers, "Content-Range": f"bytes 0-{len(answer.body) - 1}/{len(answer.body)}"},
                answer.body,
            )
        ),
        passes=False,  # of a range it says another size
        says_size=True,
    ),
    "416": Lie(status(416), passes=False, says_size=True),
    "204": Lie(status(204), passes=False),
    "304": Lie(status(304), passes=False),
    "404": Lie(status(404), passes=False, words="no such file"),
    "101": Lie(raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), passes=False),
    # bytes under the right header
    "other bytes": Lie(another_body(lambda body: body[::-1]), of=frozenset({"get"}), passes=False, is_seen=False),
    "zeros": Lie(another_body(lambda body: bytes(len(body))), of=frozenset({"get"}), passes=False, is_seen=False),
    # ETags
    "another ETag": Lie(changed(ETag='"another"'), passes=False),
    "a new ETag each time": Lie(
        lambda wire, request, answer: wire.reply(
            Answer(answer.status, {**answer.headers, "ETag": etag_of(str(request.number).encode())}, answer.body)
        ),
        passes=False,
    ),
    "a weak ETag": Lie(changed(ETag='W/"weak"'), passes=False),
    "an ETag of 50 kB": Lie(changed(ETag='"' + "z" * 50_000 + '"'), passes=False),
    "no ETag": Lie(changed(ETag=None), passes=False, is_harmless=True),
    # encodings
    "gzip": Lie(
        another_body(gzip.compress, Content_Encoding="gzip"), words="encoded|announced|bytes came", is_another_file=True
    ),
    "gzip that is none": Lie(changed(Content_Encoding="gzip"), words="encoded", is_another_file=True),
    "an unknown encoding": Lie(changed(Content_Encoding="br, zstd"), words="encoded"),
    "an encoding that is none": Lie(changed(Content_Encoding="identity"), is_harmless=True),
    "a transfer encoding that is none": Lie(changed(Transfer_Encoding="gzip"), is_slow=True),
    "chunks": Lie(_HONEST, passes=False, is_harmless=True),
    "chunks without end": Lie(chunks(b"10000", b"x" * 65536, pause=0.002), is_slow=True),
    "chunks without end, slowly": Lie(chunks(b"100", b"x" * 256, pause=0.05), is_slow=True),
    "a chunk of no size": Lie(chunks(b"many", b"x")),
    "a chunk beyond 64 bits": Lie(chunks(b"fffffffffffffffff", b"x")),
    # redirects
    "a redirect to itself": Lie(
        lambda wire, request, answer: wire.reply(Answer(302, {"Location": request.target})), words="5 redirects"
    ),
    "a redirect to a file": Lie(status(302, Location="file:///etc/passwd"), passes=False, words="no address of HTTP"),
    "a redirect to FTP": Lie(status(307, Location="ftp://127.0.0.1/x"), passes=False, words="no address of HTTP"),
    "a redirect to nobody": Lie(status(302, Location="http://127.0.0.1:9/x"), passes=False),
    "a redirect to nowhere": Lie(status(302), passes=False, words="a redirect"),
    "a redirect to no address": Lie(status(308, Location="http://[::x"), passes=False),
    # busy servers
    "503": Lie(status(503, "SlowDown"), of=ALL, words="status 503, SlowDown"),
    "503, at once": Lie(status(503, Retry_After="0"), of=ALL, words="status 503"),
    "503, tomorrow": Lie(status(503, Retry_After="86400"), of=ALL, passes=False, words="status 503"),
    "503, some day": Lie(status(503, Retry_After="soon"), of=ALL, words="status 503"),
    "503, long ago": Lie(status(503, Retry_After="Thu, 01 Jan 1970 00:00:00 GMT"), of=ALL, words="status 503"),
    "429": Lie(status(429), of=ALL, words="status 429"),
    "500": Lie(status(500, "InternalError"), of=ALL, words="status 500, InternalError"),
    "408": Lie(status(408), of=ALL, words="status 408"),
    # rights
    "401": Lie(status(401), of=ALL, passes=False, words="401: it was asked for"),
    "403": Lie(status(403, "ExpiredToken"), of=ALL, passes=False, words="ExpiredToken: it was asked for"),
    "400": Lie(status(400, "ExpiredToken"), of=ALL, passes=False, words="ExpiredToken"),
    "all that was sent": Lie(told_back, of=ALL, passes=False),
    # slow ones
    "nothing": Lie(silent, of=ALL, words="stalled", is_slow=True),
    "a slow header": Lie(drip(_slow_head, 0.3), words="stalled", is_slow=True),
    "a header without end": Lie(drip(_endless_head, 0.01), is_slow=True),
    "a line without end": Lie(drip(lambda reply: iter(lambda: b"x" * 10_000, b""), 0.01), is_slow=True),
    "100 without end": Lie(drip(_endless_early, 0.01), is_slow=True),
    "early hints": Lie(_early, passes=False, is_harmless=True),
    # ends
    "a reset before the reply": Lie(cut(0.0, "reset"), of=ALL),
    "a reset in the reply": Lie(cut(0.6, "reset"), of=ALL),
    "a reset after the reply": Lie(cut(1.0, "reset"), of=ALL, is_harmless=False),
    "the end before the reply": Lie(cut(0.0, "end"), of=ALL),
    "the end in the header": Lie(cut(0.2, "end"), of=ALL),
    "the end in the reply": Lie(cut(0.9, "end"), of=ALL),
    # other languages
    "another protocol": Lie(raw(b"SSH-2.0-OpenSSH_9.2\r\n", ends=False), is_slow=True),
    "HTTP/0.9": Lie(raw(b"just the bytes")),
    "HTTP/2": Lie(raw(b"HTTP/2 206\r\ncontent-length: 4\r\n\r\nfour")),
    "status 999": Lie(raw(b"HTTP/1.1 999 Told\r\nContent-Length: 0\r\n\r\n")),
    "no status": Lie(raw(b"HTTP/1.1 \r\nContent-Length: 0\r\n\r\n")),
    "zeros in the header": Lie(raw(b"HTTP/1.1 206 Told\r\nContent\0-Length: 4\r\n\r\nfour")),
    # object stores
    "XML that is none": Lie(
        another_body(lambda body: body[: len(body) // 2]), of=frozenset({"list", "begin", "end"}), passes=False
    ),
    "XML of a billion laughs": Lie(another_body(_bomb), of=frozenset({"list", "end"}), passes=False),
    "a list again and again": Lie(again_and_again, of=frozenset({"list"}), passes=False),
    "empty pages without end": Lie(
        lambda wire, request, answer: wire.reply(
            Answer(200, dict(XML), wire.server.objects.listing("data", [], [], f"t{request.number}"))
        ),
        of=frozenset({"list"}),
        passes=False,
    ),
    "a list without sizes": Lie(
        another_body(lambda body: body.replace(b"Size>", b"Site>")), of=frozenset({"list"}), passes=False
    ),
    "a list with other sizes": Lie(
        another_body(lambda body: body.replace(b"<Size>", b"<Size>1")), of=frozenset({"list"}), passes=False
    ),
    "200 with an error": Lie(undone(status(200, "InternalError")), of=frozenset({"copy", "end", "begin"})),
    "an upload that is gone": Lie(undone(status(404, "NoSuchUpload")), of=frozenset({"part", "end"})),
    "an upload with a part that is wrong": Lie(undone(status(400, "InvalidPart")), of=frozenset({"end"})),
    "an object that is not kept": Lie(undone(status(200, ETag='"0"')), of=frozenset({"put"}), passes=False),
    "a condition that is not looked at": Lie(
        undone(
            lambda wire, request, answer: (
                wire.server.objects.files.update({request.key: request.body}),
                wire.reply(answer),
            )[1]
        ),
        of=frozenset({"new"}),
        passes=False,
    ),
    "412": Lie(undone(status(412)), of=frozenset({"new"}), passes=False),
    "409": Lie(undone(status(409, "ConditionalRequestConflict")), of=frozenset({"new"})),
}
