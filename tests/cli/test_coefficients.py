"""`wavecast coefficients`: the table behind predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wavecast.api.coefficients import coefficients as coefficient_list
from wavecast.arch import resolve
from wavecast.cli.coefficients import command
from wavecast.errors import UnknownName
from wavecast.perfmodel import coefficients

DOCUMENT = Path(__file__).parents[2] / "docs" / "coefficients.md"


def run(*arguments: str) -> str:
    found = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert found.exit_code == 0
    return found.output


def test_the_page_in_docs_is_the_markdown_output() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == run("--format", "markdown"), (
        "docs/coefficients.md is out of date: wavecast coefficients --format markdown > "
        "docs/coefficients.md"
    )


def test_every_row_says_what_it_is_and_where_from() -> None:
    rows = json.loads(run("--format", "json"))
    assert len(rows) > 50
    for row in rows:
        assert row["status"] in coefficients.STATUSES
        assert all(row[field].strip() for field in ("unit", "meaning", "source")), row
        assert row["source"] != "to be fitted", row


def test_python_gives_the_document_of_the_command() -> None:
    assert json.loads(run("power", "-f", "json")) == coefficient_list("power").to_dict()
    assert str(coefficient_list()) == run()


def test_one_family() -> None:
    assert run("power").startswith("power\n")
    with pytest.raises(UnknownName, match="power"):
        CliRunner().invoke(command, ["powr"], catch_exceptions=False)


def test_the_narrowest_scope_of_a_device_holds() -> None:
    row = coefficients.coefficient("chips", "hbm_fraction")
    for name in ("mi300x", "mi355x", "mi100", "rx9070xt", "h200"):
        device = resolve(name).device
        scope = row.scope(device)
        assert scope in coefficients.scopes(device)
        assert row.of(device) == row.values[scope]
