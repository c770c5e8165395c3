"""On the command line, messages name options as the command line has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from penstock._cli.main import main
from penstock._cli.option_words import in_options


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('give Storage(region="eu-west-9")', "give --region eu-west-9"),
        ("Storage(profile='mine'): none", "--profile mine: none"),
        ("Storage(requester_pays=…) is not for gs://", "--requester-pays is not for gs://"),
        (
            "give Storage(credentials=…), or Storage(anonymous=True) for a public bucket",
            "give credentials in the environment, or --anonymous for a public bucket",
        ),
        ("Storage(endpoint=…): http://HOST:PORT", "--endpoint: http://HOST:PORT"),
        ("scratch=…: 'a' is a path", "--scratch: 'a' is a path"),
        ("storage=…: 'a' is a path", "--anonymous, --requester-pays: 'a' is a path"),
        ("do not say their type: give the dtype, u2 (GPT-2)", "do not say their type: give --dtype u2 (GPT-2)"),
        ("bytes do not say their type: give the dtype, as u2", "bytes do not say their type: give --dtype u2"),
        ('of world size 3: give uneven="pad" (ranks get', "of world size 3: give --uneven pad (ranks get"),
        ("my-storage=…/scratch=….jsonl: no such file", "my-storage=…/scratch=….jsonl: no such file"),
    ],
)
def test_words(text: str, said: str) -> None:
    assert in_options(text, ["anonymous", "requester_pays"]) == said


def test_what_is_for_buckets_is_refused_by_the_names_of_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = tmp_path / "ids.jsonl"
    ids.write_text('{"ids": [1, 2]}\n')
    given = ["write", str(ids), "--ids-column", "ids", "--out", str(tmp_path / "out")]
    for options, words in (
        (["--scratch", "x"], "penstock: --scratch: '"),
        (["--anonymous", "--region", "x"], "penstock: --anonymous, --region: '"),
        (["--endpoint", "minio"], "penstock: --endpoint: http://HOST:PORT or https://HOST is wanted"),
    ):
        assert main([*given, *options, "--json"]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(words) or options[0] == "--anonymous", said.err
        assert "Storage(" not in said.err and "=…" not in said.err
        assert all(each in said.err for each in options if each.startswith("--"))
        assert json.loads(said.out)["error"] == said.err.removeprefix("penstock: ").strip()
    pytest.importorskip("obstore")
    assert main(["info", "gs://bucket/x", "--requester-pays"]) == 2
    assert "--requester-pays is not for gs://" in capsys.readouterr().err
