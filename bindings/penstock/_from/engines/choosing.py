"""Which engine computes the ids of a tokenizer.json."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock._base.extras import install
from penstock._base.words import one_line
from penstock._from.engines.caches import Caches
from penstock._from.engines.engine import REFERENCE, Engine, EngineError, OtherIdsError
from penstock._from.engines.pieces import Pieces
from penstock._from.engines.reference import Reference
from penstock._make.errors import UsageError

# Where tokenizers are known to differ: contractions, digits, runs of white space, marks, joined emoji, controls.
_HARD = (
    "",
    "It's we'LL they'Ve 'tis I'd've 1234567890 1,234.50 ½ ²³ ١٢٣",
    "a  b   c\n\n\n d \t\t e\r\n\r\nf \x0b\x0c g\u00a0\u2003h\u3000i   ",
    "  leading, trailing  \n",
    "def f(x):\n        return {'a': [x**2, ~x]}  # ---->>>\n\n\n",
    "Straße ÄÖÜ e\u0301 n\u0303 \ufb01 İ ǅ Ωμέγα Привет שלום مرحبا नमस्ते ไทย 日本語、テスト。 한국어",
    "👩‍👩‍👧 🇩🇪 ☃️ \U0001f600\U0001f3fd \u200b\u200d\ufeff\ufffd \x00\x01\x7f\x85",
    "<|x|> [INST] <s></s> ### !!!???...... ____ ///\\\\ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
)


class Chosen(NamedTuple):
    """An engine.

    Attributes:
        engine: that one.
        slow_because: why it is none that is faster; empty where it is one.
        gave_others: whether the faster one gave other ids of texts that it was tried on.
    """

    engine: Engine
    slow_because: str = ""
    gave_others: bool = False


def engine_of(
    wanted: str,
    tokenizer: Any,
    data: bytes,
    *,
    post_processor: bool,
    special_tokens_in_text: bool,
    around: tuple[list[int], list[int]],
    memory: int,
) -> Chosen:
    """The fastest engine that is installed, reads the tokenizer and gives its ids, or the one that is wanted.

    Args:
        wanted: one of ENGINES.
        tokenizer: of the library tokenizers, as its ids are wanted.
        data: the tokenizer.json.
        post_processor: whether the ids of its post-processor are wanted.
        special_tokens_in_text: whether special tokens in a text are those.
        around: what the post-processor adds.
        memory: bytes that each worker's engine may keep of text.

    Raises:
        UsageError: The one that is asked for by name is not installed, or cannot be it.
    """
    reference = Reference(tokenizer, post_processor)
    if wanted == REFERENCE:
        return Chosen(reference, "asked for")
    gave_others = False
    try:
        from penstock._from.engines.gigatoken import Gigatoken, for_gigatoken

        content, added = for_gigatoken(data, special_tokens_in_text)
        found = Gigatoken(content, added, around, reference, Caches(memory))
        found.try_on(Pieces.of([*(each.encode() for each in _HARD), *(b"a %b b" % each for each in added)]))
    except ImportError as error:
        why = f"gigatoken is not installed: {install('text')}" if error.name == "gigatoken" else one_line(error)
    except EngineError as error:
        why, gave_others = str(error), isinstance(error, OtherIdsError)
    except (KeyboardInterrupt, MemoryError, SystemExit):
        raise
    except BaseException as error:  # what a library raises of a file that it does not know, and its panics
        why = f"gigatoken cannot read this tokenizer.json: {one_line(error).partition(' Location: ')[0]}"
    else:
        return Chosen(found)
    if wanted != "auto":
        raise UsageError(f"--tokenizer-engine {wanted}: {why}")
    return Chosen(reference, why, gave_others)
