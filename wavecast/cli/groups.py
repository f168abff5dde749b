"""A group of commands: an unknown name is refused with the nearest known ones."""

from __future__ import annotations

from typing import Any

import click

from wavecast.errors import UnknownName


class CommandGroup(click.Group):
    """A group that names what is near a command it does not have. Without arguments it is its
    command `default`, where it has one."""

    kind = "command"
    """What its members are, for the message."""

    def __init__(self, *args: Any, default: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or [self.default] * bool(self.default))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does. Raises UnknownName."""
        known = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in known:
            raise UnknownName(self.kind, args[0], known)
        return super().resolve_command(ctx, args)


__all__ = ["CommandGroup"]
