"""Commands that pages show exist, with the options that they are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.documents.pages import ROOT, shell_commands
from wavecast.cli import model
from wavecast.cli.main import cli

OTHER_FORMS = {"model": (model.module_command,)}
"""What commands become with a module."""
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_ENDS = ("|", "||", "&&", ";", ">", "2>&1", "#")


def shown(text: str) -> Iterator[list[str]]:
    """The words after `wavecast` of every command in a block of shell commands."""
    for command in shell_commands(text):
        words = _words(command)
        if words[:1] == ["wavecast"]:
            yield words[1:]


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # an apostrophe of what a command prints
        return []
    end = min((words.index(word) for word in _ENDS if word in words), default=len(words))
    return words[:end]


def unknown(words: list[str]) -> str:
    """What a command has that there is not, "" for nothing."""
    command: click.Command = cli
    context = click.Context(cli)
    words = words[: words.index("--")] if "--" in words else words
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            return f"the command {words[0]}"
        command, words = found, words[1:]
    if command.context_settings.get("ignore_unknown_options"):
        return ""
    forms = (command, *OTHER_FORMS.get(str(command.name), ()))
    params = [param for form in forms for param in form.params]
    options = {name for one in params for name in (*one.opts, *one.secondary_opts)}
    options |= set(command.get_help_option_names(click.Context(command)))
    for word in words:
        name = word.split("=")[0]
        if re.match(r"--?[A-Za-z]", name) and name not in options:
            return f"the option {name} of {command.name}"
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    wrong = [
        f"{shlex.join(['wavecast', *words])}: there is not {what}"
        for words in shown(page.read_text(encoding="utf-8"))
        if (what := unknown(words))
    ]
    assert wrong == []


def test_what_there_is_not_is_found() -> None:
    page = "```\nwavecast explain a.py --arhc gfx942  # typed\nwavecast lab tun a.py\n```\n"
    assert [unknown(words) for words in shown(page)] == [
        "the option --arhc of explain",
        "the command tun",
    ]
    assert unknown(["explain", "a.py", "--", "--batch", "4"]) == ""
