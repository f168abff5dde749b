"""`wavecast schema`: JSON Schemas of the documents Wavecast writes."""

from __future__ import annotations

import click

from wavecast.api.schema import schema
from wavecast.cli.verb import Show, Verb
from wavecast.options import NoOptions

command = Verb(
    name="schema",
    function=schema,
    options=NoOptions,
    show=Show(formats=("text", "json", "markdown"), output=True),
    arguments=(click.Argument(["names"], nargs=-1, metavar="[NAME]..."),),
    text="""Print the JSON Schema of a document, such as explain; without NAME, list the documents.

    `--format markdown` prints tables of fields.
    """,
    examples=(
        "wavecast schema explain > explain-1.json",
        "wavecast schema --format markdown",
    ),
).command()

__all__ = ["command"]
