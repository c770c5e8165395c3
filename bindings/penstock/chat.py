"""Chat: conversations as token ids, by the tokenizer's own template, with a mask of what is to be trained on.

`penstock write --messages COLUMN` stores both, as the fields `token` and `loss`. Needs the extra `chat`.
"""

from penstock._from.text.chat_template import Rendered, render

__all__ = ["Rendered", "render"]
