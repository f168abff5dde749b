"""`wavecast schema`: JSON Schemas of the documents Wavecast writes."""

from __future__ import annotations

import json

import click


@click.command("schema", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="JSON Schema, or tables of fields.",
)
def command(names: tuple[str, ...], form: str) -> None:
    """Print the JSON Schema of a document, such as explain; without NAME, list the documents.

    \b
    wavecast schema explain > explain-1.json
    wavecast schema --format markdown
    """
    from wavecast.documents.registry import documents
    from wavecast.errors import UnknownName
    from wavecast.json_schema import json_schema, markdown

    known = documents()
    short = {name.removeprefix("wavecast.").partition("/")[0]: name for name in known}
    for name in names:
        if name not in known and name not in short:
            raise UnknownName("document", name, short)
    chosen = [known[short.get(name, name)] for name in names]
    if form == "markdown":
        click.echo(markdown(chosen or list(known.values())), nl=False)
    elif not names:
        click.echo("\n".join(known))
    elif len(chosen) == 1:
        click.echo(json.dumps(json_schema(chosen[0]), indent=2, ensure_ascii=False))
    else:
        raise click.UsageError("name one document; --format markdown takes several")
