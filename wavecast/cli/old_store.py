"""`--store FILE`, of verbs over measurements that are not yet made of options."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from wavecast.api.measured import STORE


def store_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--store FILE`."""
    return click.option(
        "--store",
        "path",
        type=click.Path(dir_okay=False, path_type=Path),
        default=lambda: os.environ.get("WAVECAST_STORE", STORE),
        show_default=STORE,
        help="The file of measurements.",
    )(command)
