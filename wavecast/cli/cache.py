"""`wavecast cache`: what compiled results are kept, and how to clear them."""

from __future__ import annotations

from wavecast.api.cache import CacheClearOptions, clear, show
from wavecast.cli.groups import CommandGroup
from wavecast.cli.verb import Show, Verb
from wavecast.options import NoOptions

_VERBS = (
    Verb(
        name="show",
        function=show,
        options=NoOptions,
        show=Show(formats=("text",)),
        text="Show the folder, and the number and size of its entries by kind.",
        examples=(),
    ),
    Verb(
        name="clear",
        function=clear,
        options=CacheClearOptions,
        show=Show(formats=("text",)),
        text="Delete entries. Files that wavecast did not write are never deleted.",
        examples=("wavecast cache clear --kind hip --older-than 30",),
    ),
)

command = CommandGroup(
    "cache",
    commands=[verb.command() for verb in _VERBS],
    default="show",
    help="""Show or clear the cache of compiled kernels.

    The cache is in $WAVECAST_CACHE_DIR, else $XDG_CACHE_HOME/wavecast, else ~/.cache/wavecast.
    """,
    context_settings={"help_option_names": ["-h", "--help"]},
)

__all__ = ["command"]
