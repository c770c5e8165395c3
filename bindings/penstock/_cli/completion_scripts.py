"""Completion scripts: all that they offer stands in them, so that no Tab starts Python."""

from __future__ import annotations

from collections.abc import Sequence

from penstock._cli.completion_words import FILES, FOLDERS, Command, Option, Values

# ---- bash

_BASH = """\
# penstock's completion for bash 4 or newer, printed by `penstock completion bash`.
_penstock() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= options= choices= kind=files i
  # Bash makes --format=x three words.
  if [[ $word == '=' ]]; then
    word=
  elif [[ $before == '=' ]]; then
    before=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} != -* ]]; then
      command=${{COMP_WORDS[i]}}
      break
    fi
  done
  COMPREPLY=()
  case $command in
    '')
      COMPREPLY=($(compgen -W '{commands}' -- "$word"))
      return
      ;;
{cases}
    *) return ;;
  esac
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then
      options= choices= kind=files
    fi
  done
  if [[ $kind != value-* && $word == -* && $options ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ $choices ]]; then
    compopt +o default
    COMPREPLY=($(compgen -W "$choices" -- "$word"))
  else
    case $kind in
      *folders) compopt -o plusdirs +o default ;;
      *nothing) compopt +o default ;;
    esac
  fi
}}
complete -o default -F _penstock penstock
"""


def bash(commands: Sequence[Command], options: Sequence[Option]) -> str:
    """For bash; names of files are readline's own."""
    first = [each.name for each in commands] + [name for each in options for name in each.names]
    cases = "\n".join(_bash_case(each) for each in commands)
    return _BASH.format(commands=" ".join(first), cases=cases)


def _bash_case(command: Command) -> str:
    names = " ".join(name for each in command.options for name in each.names)
    lines = [f"    {command.name})", f"      options='{names}'"]
    if command.arguments.choices:
        lines.append(f"      choices='{' '.join(command.arguments.choices)}'")
    elif command.arguments.kind != FILES:
        lines.append(f"      kind={command.arguments.kind}")
    valued = [(each, each.values) for each in command.options if each.values is not None]
    if valued:
        lines.append("      case $before in")
        lines += [
            f"        {' | '.join(each.names)}) kind=value-{values.kind} choices='{' '.join(values.choices)}' ;;"
            for each, values in valued
        ]
        lines.append("      esac")
    return "\n".join([*lines, "      ;;"])


# ---- zsh

_ZSH = """\
#compdef penstock
# penstock's completion for zsh, printed by `penstock completion zsh`.
_penstock() {{
  local curcontext="$curcontext" state line
  typeset -A opt_args
  _arguments -C : \\
{options}
    '1: :_penstock_commands' \\
    '*:: :->rest' && return
  [[ $state == rest ]] || return
  curcontext="${{curcontext%:*:*}}:penstock-$line[1]:"
  case $line[1] in
{cases}
  esac
}}

_penstock_commands() {{
  local -a commands=(
{commands}
  )
  _describe -t commands 'command' commands
}}

if [[ $funcstack[1] == _penstock ]]; then
  _penstock "$@"
else
  compdef _penstock penstock
fi
"""


def zsh(commands: Sequence[Command], options: Sequence[Option]) -> str:
    """For zsh: to be evaluated after compinit, or to be a file `_penstock` in $fpath."""
    return _ZSH.format(
        options="\n".join(f"    {_zsh_option(each)} \\" for each in options),
        cases="\n".join(_zsh_case(each) for each in commands),
        commands="\n".join(f"    {_quoted(f'{each.name}:{each.help}')}" for each in commands),
    )


def _zsh_case(command: Command) -> str:
    specs = [_zsh_option(each) for each in command.options]
    specs.append(_quoted(f"*:{_plain(command.arguments.name or 'argument')}:{_zsh_action(command.arguments)}"))
    body = " \\\n".join(f"        {each}" for each in specs)
    return f"    {command.name})\n      _arguments -s -S : \\\n{body}\n      ;;"


def _zsh_option(option: Option) -> str:
    words = _escaped(option.help)
    value = ""
    if option.values is not None:
        value = f":{_plain(option.values.name)}:{_zsh_action(option.values)}"
    once = "*" if option.repeats else f"({' '.join(option.names)})" if len(option.names) > 1 else ""
    specs = []
    for name in option.names:
        equals = "=" if option.values is not None and name.startswith("--") else ""
        specs.append(_quoted(f"{once}{name}{equals}[{words}]{value}"))
    return " ".join(specs)


def _zsh_action(values: Values) -> str:
    if values.choices:
        return f"({' '.join(values.choices)})"
    return {FILES: "_files", FOLDERS: "_files -/"}.get(values.kind, " ")


def _escaped(text: str) -> str:
    for letter in "\\[]:":
        text = text.replace(letter, f"\\{letter}")
    return text


def _plain(text: str) -> str:
    return text.replace(":", " ")


def _quoted(text: str) -> str:
    """In single quotes, as POSIX shells and fish read them."""
    return "'" + text.replace("'", "'\\''") + "'"


# ---- fish

_FISH = """\
# penstock's completion for fish, printed by `penstock completion fish`.
function __penstock_command
    set -l words (commandline -opc)
    for word in $words[2..-1]
        if not string match -q -- '-*' $word
            contains -- $word $argv
            return
        end
    end
    test (count $argv) -eq 0
end

complete -c penstock -f
{lines}
"""


def fish(commands: Sequence[Command], options: Sequence[Option]) -> str:
    """For fish 3 or newer."""
    none = "-n __penstock_command"
    lines = [f"complete -c penstock {none} -a {each.name} -d {_fish_quoted(each.help)}" for each in commands]
    lines += [_fish_option(none, each) for each in options]
    for command in commands:
        here = f"-n '__penstock_command {command.name}'"
        if command.arguments.choices:
            lines.append(f"complete -c penstock {here} -x -a {_quoted(' '.join(command.arguments.choices))}")
        elif command.arguments.kind == FILES:
            lines.append(f"complete -c penstock {here} -F")
        lines += [_fish_option(here, each) for each in command.options]
    return _FISH.format(lines="\n".join(lines))


def _fish_option(condition: str, option: Option) -> str:
    names = " ".join(f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in option.names)
    return f"complete -c penstock {condition} {names}{_fish_values(option.values)} -d {_fish_quoted(option.help)}"


def _fish_values(values: Values | None) -> str:
    if values is None:
        return ""
    if values.choices:
        return f" -x -a {_quoted(' '.join(values.choices))}"
    return {FILES: " -r -F", FOLDERS: " -x -a '(__fish_complete_directories)'"}.get(values.kind, " -x")


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
