"""`wavecast cache`: what compiled results are kept, and how to clear them."""

from __future__ import annotations

import time

import click

from wavecast.cli.groups import CommandGroup
from wavecast.cli.types import click_type
from wavecast.compile.cache import KINDS, CacheEntry, DiskCache
from wavecast.options.values import Numbers
from wavecast.report.kit.units import size


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Show or clear the cache of compiled kernels.

    The cache is in $WAVECAST_CACHE_DIR, else $XDG_CACHE_HOME/wavecast, else ~/.cache/wavecast.
    """
    if context.invoked_subcommand is None:
        context.invoke(show)


@command.command()
def show() -> None:
    """Show the folder, and the number and size of its entries by kind."""
    cache = DiskCache()
    click.echo(f"cache: {cache.root}")
    entries = list(cache.entries())
    if not entries:
        click.echo("no entries")
        return
    kinds = sorted({entry.kind for entry in entries})
    width = max(len("kind"), *(len(kind) for kind in kinds))
    click.echo(f"{'kind':<{width}}  {'entries':>7}  {'size':>10}  last used")
    for kind in kinds:
        of_kind = [entry for entry in entries if entry.kind == kind]
        click.echo(f"{kind:<{width}}  {_row(of_kind)}")
    click.echo(f"{'total':<{width}}  {_row(entries)}")


@command.command()
@click.option(
    "--kind",
    type=click.Choice(sorted(KINDS)),
    default=None,
    help="Only entries of this kind (see `show`).",
)
@click.option(
    "--older-than",
    "days",
    type=click_type(Numbers(0)),
    default=0.0,
    metavar="DAYS",
    help="Only entries not used for this many days.",
)
def clear(kind: str | None, days: float) -> None:
    """Delete entries. Files that wavecast did not write are never deleted."""
    removed = DiskCache().clear(kind or "", days)
    total = sum(entry.bytes for entry in removed)
    noun = "entry" if len(removed) == 1 else "entries"
    click.echo(f"removed {len(removed)} {noun}, {size(total)}")


def _row(entries: list[CacheEntry]) -> str:
    used = [time.strftime("%Y-%m-%d", time.localtime(entry.used)) for entry in entries]
    span = min(used) if min(used) == max(used) else f"{min(used)} to {max(used)}"
    return f"{len(entries):>7}  {size(sum(entry.bytes for entry in entries)):>10}  {span}"
