"""Completion in real shells: what a Tab offers, with no program started for it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import click
import pytest
from _terminal import typed
from penstock._cli.main import cli, main

COMMANDS = cli.list_commands(click.Context(cli))
BASH = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
PATH=/nowhere
compopt() {{ echo "compopt $*"; }}
_penstock
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
OFFERED = [  # words before Tab, what is offered
    ("penstock inf", ["info"]),
    ("penstock com", ["commit", "combine", "completion"]),
    ("penstock nonsense x", []),
    ("penstock --v", ["--version"]),
    ("penstock write --tok", ["--tokenizer", "--tokenizer-engine"]),
    ("penstock write x.jsonl --out y --shard", ["--shard-size"]),
    ("penstock write --format ''", ["jsonl", "text", "parquet"]),
    ("penstock write --format p", ["parquet"]),
    ("penstock write --tokenizer x --dty", ["--dtype"]),
    ("penstock trace -b 8 --ord", ["--order"]),
    ("penstock completion ''", ["bash", "zsh", "fish"]),
    ("penstock help ver", ["verify"]),
    ("penstock info write --d", ["--dtype"]),
]


def shell(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A script for each shell, and files that may be offered."""
    for name in ("bash", "zsh", "fish"):
        assert main(["completion", name]) == 0
        (tmp_path / f"script.{name}").write_text(capsys.readouterr().out)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "tokenizer.json").touch()
    (tmp_path / "here" / "texts").mkdir()
    return tmp_path


def in_bash(folder: Path, words: str) -> list[str]:
    program = BASH.format(script=folder / "script.bash", words=words)
    done = subprocess.run([shell("bash"), "--norc", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return [line for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize(("words", "offered"), OFFERED)
def test_bash_offers_words_and_starts_no_program(folder: Path, words: str, offered: list[str]) -> None:
    assert [each for each in in_bash(folder, words) if not each.startswith("compopt ")] == offered


def test_bash_leaves_names_of_files_to_readline(folder: Path) -> None:
    for words, said in (
        ("penstock write ''", []),
        ("penstock write --tokenizer ''", []),
        ("penstock write -- --x", []),
        ("penstock write --scratch ''", ["compopt -o plusdirs +o default"]),
        ("penstock write --name ''", ["compopt +o default"]),
        ("penstock ranks ''", ["compopt +o default"]),
        ("penstock write --format = te", ["compopt +o default", "text"]),
    ):
        assert in_bash(folder, words) == said, words


READY = ("PS1='rea''dy> '\n", "ready> ")
TYPED = [  # keys, what stands on the line then; Ctrl-U empties it
    ("penstock inf\t", "penstock info "),
    ("\x15penstock write --shard\t", "penstock write --shard-size"),
    ("\x15penstock write --format par\t", "penstock write --format parquet"),
    ("\x15penstock write --tokenizer tok\t", "penstock write --tokenizer tokenizer.json"),
    ("\x15penstock write --scratch te\t", "penstock write --scratch texts/"),
    ("\x15penstock help ver\t", "penstock help verify"),
]


def test_bash_completes_what_is_typed(folder: Path) -> None:
    keys = [
        READY,
        (f"source {folder}/script.bash\n", "ready> "),
        *TYPED,
        ("\x15penstock write --format=par\t", "penstock write --format=parquet "),
        ("\x15penstock write --name tok\t.", "penstock write --name tok."),
    ]
    variables = {"PATH": "/nowhere", "TERM": "dumb", "COLUMNS": "200", "INPUTRC": "/dev/null"}
    typed([shell("bash"), "--norc", "--noprofile", "-i"], keys, str(folder / "here"), variables)


@pytest.mark.parametrize(("words", "offered"), OFFERED)
def test_fish_offers_words(folder: Path, words: str, offered: list[str]) -> None:
    program = f'source {folder}/script.fish; complete -C "{words.removesuffix(chr(39) * 2)}"'
    done = subprocess.run(
        [shell("fish"), "--no-config", "-c", program], capture_output=True, text=True, check=True, cwd=folder / "here"
    )
    assert done.stderr == ""
    assert sorted(line.partition("\t")[0] for line in done.stdout.splitlines()) == sorted(offered)


def test_fish_offers_names_of_files_where_they_are_wanted(folder: Path) -> None:
    for words, offered in (
        ("penstock write ", ["texts/", "tokenizer.json"]),
        ("penstock write --tokenizer ", ["texts/", "tokenizer.json"]),
        ("penstock write --scratch ", ["texts/"]),
        ("penstock write --name ", []),
        ("penstock ranks ", []),
    ):
        program = f'source {folder}/script.fish; complete -C "{words}"'
        done = subprocess.run(
            [shell("fish"), "--no-config", "-c", program], capture_output=True, text=True, cwd=folder / "here"
        )
        assert sorted(line.partition("\t")[0] for line in done.stdout.splitlines()) == offered, words


def test_zsh_completes_what_is_typed(folder: Path) -> None:
    keys = [READY, ("autoload -Uz compinit; compinit -u -D\n", "ready> "), (f"source {folder}/script.zsh\n", "ready> ")]
    variables = {"PATH": "/nowhere", "TERM": "dumb", "COLUMNS": "200", "HOME": str(folder)}
    typed([shell("zsh"), "-f", "-i"], [*keys, *TYPED], str(folder / "here"), variables)


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_script_has_every_command_and_option(folder: Path, name: str) -> None:
    text = (folder / f"script.{name}").read_text()
    for command in COMMANDS:
        found = cli.get_command(click.Context(cli), command)
        assert found is not None and command in text
        for option in found.get_params(click.Context(found)):
            for each in option.opts if isinstance(option, click.Option) else ():
                typed_as = (f"-l {each[2:]} " if each[:2] == "--" else f"-s {each[1:]} ") if name == "fish" else each
                assert typed_as in text, (command, each)
    if name != "zsh":
        return
    subprocess.run([shell("zsh"), "-n", folder / "script.zsh"], check=True)


def test_a_shell_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err
