"""datatrove's DocumentTokenizer in its LocalPipelineExecutor, a task a file, documents in the order of the input.

`datatrove_tokenizer.py TOKENIZER OUT WORKERS FILE...`, the number of tokens out.
"""

from __future__ import annotations

import sys
from pathlib import Path

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer

END = "<|endoftext|>"


def main() -> None:
    path, out, workers, *files = sys.argv[1:]
    tokenizer = DocumentTokenizer(f"{out}/tokens", path, eos_token=END, shuffle_documents=False)
    reader = JsonlReader(str(Path(files[0]).parent), glob_pattern="*.jsonl")
    executor = LocalPipelineExecutor(
        [reader, tokenizer], tasks=len(files), workers=int(workers), logging_dir=f"{out}/logs"
    )
    executor.run()
    written = sum(each.stat().st_size for each in Path(out, "tokens").glob("*.ds"))
    print(written // tokenizer.token_size)


if __name__ == "__main__":
    main()
