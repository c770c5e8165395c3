"""Checks the prose of README.md and docs/: no sentence has more than 38 words.

Tables, code, headings and pictures are left out; a link counts by its words, code in a line as one word.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_WORDS = 38
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
ITEM = re.compile(r"\s*- +")
NUMBERED = re.compile(r"\s*\d+\. +")  # in a list; a line of a paragraph may begin with the number that ends a sentence
LEFT_OUT = re.compile(r"\s*(?:#|\||<|:::|!!!|!\[[^\]]*\]\([^)]*\)\s*$)")
SENTENCE_END = re.compile(r"(?<!et al)(?<!e\.g)(?<!i\.e)[.!?][\"')*]*\s+")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """(line, text) of each paragraph and each item of a list."""
    fence, start, is_numbered = "", 0, False
    lines: list[str] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        opening = FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
            continue
        begins = ITEM.match(line) or (NUMBERED.match(line) if is_numbered or not lines else None)
        if opening or not line.strip() or LEFT_OUT.match(line) or begins:
            if lines:
                yield start, " ".join(lines)
            lines = []
            is_numbered = bool(begins and NUMBERED.match(line))
        if opening:
            fence = opening[1]
        elif line.strip() and not LEFT_OUT.match(line):
            start = start if lines else number
            lines.append(line[begins.end() :].strip() if begins else line.strip())


def words_of(sentence: str) -> list[str]:
    """The words that a reader sees."""
    sentence = re.sub(r"`[^`]+`", "code", sentence)
    sentence = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return [word for word in sentence.split() if re.search(r"\w", word)]


def problems(text: str) -> Iterator[tuple[int, int, str]]:
    """(line of the paragraph, words, sentence) of each sentence that is too long."""
    for line, paragraph in paragraphs(text):
        for sentence in SENTENCE_END.split(paragraph):
            if (count := len(words_of(sentence))) > MOST_WORDS:
                yield line, count, sentence


def main(root: Path = ROOT) -> int:
    """Prints sentences that are too long; returns the exit status."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found = [
        f"{page.relative_to(root).as_posix()}:{line}: {count} words, at most {MOST_WORDS}: {sentence}"
        for page in pages
        if page.exists()
        for line, count, sentence in problems(page.read_text())
    ]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
