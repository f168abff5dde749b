"""Commands of pages print what the pages say."""

from __future__ import annotations

import pytest

from tests.documents.pages import EXECUTED, ROOT, commands, executed


@pytest.mark.thorough
@pytest.mark.torch
@pytest.mark.parametrize("page", EXECUTED)
def test_commands_print_what_the_page_says(page, tmp_path, pytestconfig) -> None:
    pytest.importorskip("torch")
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    found = executed(text, tmp_path)
    if pytestconfig.getoption("--update-golden"):
        path.write_text(found, encoding="utf-8")
        return
    assert found == text, f"python -m tests.documents.pages {page}"


def test_a_page_gets_what_its_commands_print(tmp_path) -> None:
    page = (
        "<!-- file: a.txt -->\n```text\none\n```\n\n"
        "```console\n$ cat a.txt\nold\n$ true\n$ echo two; echo three >&2\n```\n"
    )
    assert executed(page, tmp_path) == page.replace("old\n", "one\n").replace(
        ">&2\n", ">&2\ntwo\nthree\n"
    )
    assert list(commands("$ a\nb\n$ c\n")) == ["a", "c"]


def test_a_command_that_fails_is_an_error(tmp_path) -> None:
    with pytest.raises(RuntimeError, match="false: exit code 1"):
        executed("```console\n$ false\n```\n", tmp_path)
