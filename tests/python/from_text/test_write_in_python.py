"""`penstock.write`: what only the function promises beside the command, which calls the same."""

from __future__ import annotations

import errno
import resource
from pathlib import Path
from typing import Any

import penstock
import pytest


@pytest.fixture
def ids(tmp_path: Path) -> Path:
    path = tmp_path / "datasets--mine--corpus" / "ids.jsonl"
    path.parent.mkdir()
    path.write_text("".join(f'{{"ids": [{n}, {n + 1}], "url": "u{n}"}}\n' for n in range(5)))
    return path


def test_ids_become_a_dataset_with_what_was_asked_for(ids: Path, tmp_path: Path) -> None:
    seen: list[Any] = []
    done = penstock.write(
        ids, tmp_path / "out", ids_column="ids", append=[7], dtype="u2", metadata=["url"],
        progress=lambda done, total, written: seen.append((done, total, written.tokens)),
    )  # fmt: skip
    assert (done.documents, done.tokens, done.codec, done.dtype) == (5, 15, "json", "u2")
    assert seen[-1][:2] == (ids.stat().st_size,) * 2 and done.bytes > 0
    view = penstock.open(tmp_path / "out").documents()
    assert view[4]["token"].tolist() == [4, 5, 7] and view[4].spans[0].metadata == {"url": "u4"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"append": "12"}, r"^append '12': a list of tokens is wanted"),
        ({"prepend": [1.5]}, r"^prepend \[1.5\]: a list of tokens"),
        ({"metadata": []}, "^metadata: no column is named"),
        ({"metadata": "none"}, '^metadata \'none\': give a list of columns, "all", "boundaries" or None'),
        ({"metadata": "url"}, '^metadata \'url\': give a list of columns, "all", "boundaries" or None'),
        ({"metadata": ["url", "url"]}, '^metadata "url,url": name each column once'),
        ({"codec": "raw"}, "^codec raw stores the text of one column: name it with metadata"),
        ({"max_skipped": 3}, "^max_skipped is for on_error skip: give both, or neither"),
        ({"on_error": "ignore"}, "^on_error 'ignore': expected stop, skip"),
        ({"workers": 0}, "^workers=0"),
        ({"ids_column": None}, "^text needs tokenizer FILE; token ids already made need ids_column"),
    ],
)
def test_what_does_not_go_together_is_refused_in_pythons_words(
    ids: Path, tmp_path: Path, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(penstock.InvalidArgumentError, match=words):
        penstock.write(ids, tmp_path / "out", **{"ids_column": "ids", "dtype": "u2", **given})
    assert not (tmp_path / "out").exists()


def test_names_of_files_stay_as_they_are(ids: Path, tmp_path: Path) -> None:
    penstock.write(ids, tmp_path / "there", ids_column="ids")
    for inputs, out, words in (
        (ids.with_name("none.jsonl"), "out", r"datasets--mine--corpus/none.jsonl: no such file"),
        ([], "out", "the list is empty"),
        (ids, "there", "replace it with overwrite=True, or choose another out"),
    ):
        with pytest.raises(penstock.InvalidArgumentError, match=words):
            penstock.write(inputs, tmp_path / out, ids_column="ids")


def test_a_write_that_fails_lets_the_folder_go(tmp_path: Path) -> None:
    lines, out = tmp_path / "ids.jsonl", tmp_path / "out"
    lines.write_text(f'{{"ids": {list(range(50))}}}\n' * 200)
    options: dict[str, Any] = {"ids_column": "ids", "dtype": "u2", "shard_size": 20000, "resume": True}
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limit[1]))  # Python ignores SIGXFSZ
    try:
        for _ in range(2):
            with pytest.raises(penstock.IoError) as error:
                penstock.write(lines, out, **options)
            assert error.value.errno == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert penstock.write(lines, out, **options).documents == 200
