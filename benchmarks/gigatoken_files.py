"""gigatoken's own `encode_files` of a file of JSON lines: `gigatoken_files.py TOKENIZER FILE`, one line of JSON out."""

from __future__ import annotations

import json
import sys

import awkward
from gigatoken import JsonlFileSource, Tokenizer

tokenizer, file = sys.argv[1:]
ids = Tokenizer(tokenizer).encode_files(JsonlFileSource([file]))
print(json.dumps({"documents": len(ids), "tokens": int(awkward.num(ids, axis=1).to_numpy().sum())}))
