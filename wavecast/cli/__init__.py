"""The command line: `main` dispatches to one file per verb (see `commands.py`)."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `wavecast` console script."""
    try:
        from wavecast.cli.main import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()
