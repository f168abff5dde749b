"""`wavecast rules` and the page generated from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wavecast import rules
from wavecast.api.rules import rules as rule_list
from wavecast.cli.rules import command
from wavecast.errors import UnknownName

DOCUMENT = Path(__file__).parents[2] / "docs" / "rules.md"


def run(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_the_list_has_every_rule_with_its_severity() -> None:
    rows = run().splitlines()
    assert [row.split()[0] for row in rows] == list(rules.RULES)
    assert rows[0].split()[1] == "error"


def test_a_name_shows_the_explanation() -> None:
    text = run("register-spills")
    assert text.startswith("register-spills (warning): Registers spilled to memory\n\n")
    assert rules.rule("register-spills").explanation in text


def test_json_is_a_list_of_documents() -> None:
    found = json.loads(run("--format", "json"))
    assert [entry["name"] for entry in found] == list(rules.RULES)
    assert set(found[0]) == {"name", "severity", "title", "explanation"}
    (one,) = json.loads(run("emulated-dtype", "--format", "json"))
    assert one["name"] == "emulated-dtype"


def test_python_gives_the_document_of_the_command() -> None:
    assert (
        json.loads(run("register-spills", "-f", "json")) == rule_list("register-spills").to_dict()
    )
    assert str(rule_list()) == run()


def test_the_page_in_docs_is_the_markdown_output() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == run("--format", "markdown"), (
        "docs/rules.md is out of date: wavecast rules --format markdown > docs/rules.md"
    )


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="register-spills"):
        CliRunner().invoke(command, ["register-spill"], catch_exceptions=False)
