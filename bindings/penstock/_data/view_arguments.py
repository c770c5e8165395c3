"""What arguments of other libraries are called in the methods that make views."""

from __future__ import annotations

import functools

from penstock._base.unknown_arguments import tells_unknown

# A decorator of a method that is called so in messages.
tells_of_view = functools.partial(
    tells_unknown,
    {
        **dict.fromkeys(
            ("block_size", "seq_len", "seq_length", "sequence_length", "context_length", "max_length", "size"),
            "window=",
        ),
        **dict.fromkeys(("batch_size", "shuffle", "seed", "num_workers"), "it in penstock.Loader(view, …)"),
        **dict.fromkeys(("overlap", "stride"), "lookahead=, records that are read after each window"),
        **dict.fromkeys(("eos", "eos_token_id", "eod"), "end_of_document="),
        **dict.fromkeys(("bos", "bos_token_id"), "begin_of_document="),
    },
)
