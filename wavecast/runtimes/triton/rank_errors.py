"""What a rank has raised, for the program that started the ranks: one line that names it."""

from __future__ import annotations

from collections.abc import Sequence

from wavecast.emulate.errors import Deadlock
from wavecast.errors import WavecastError
from wavecast.launch.group_calls import CallsDiffer
from wavecast.launch.script_lines import location_suffix, raising_line


def with_line(error: WavecastError) -> str:
    """The message of what a rank raised, with the line of the program that it comes from. Errors of
    all ranks have the lines of all."""
    if isinstance(error, CallsDiffer | Deadlock):
        return error.message
    where = location_suffix(raising_line(error))
    return error.message if where in error.message else f"{error.message} (raised{where})"


def raise_rank(rank: int, error: BaseException, *, left: Sequence[int] = ()) -> None:
    """Raise what a rank raised, as one line that names it, unless it is an error of all ranks; of a
    deadlock as one that names those that have `left` by `os._exit`."""
    if isinstance(error, Deadlock):
        who = ", ".join(map(str, sorted(left)))
        why = f"{'ranks' if len(left) > 1 else 'rank'} {who} left by os._exit before the others: "
        raise Deadlock(f"{why if left else ''}{error.message}", hint=error.hint) from error
    if isinstance(error, CallsDiffer):
        raise error
    if isinstance(error, WavecastError):
        renamed = type(error)(f"rank {rank}: {with_line(error)}", hint=error.hint)
        raise renamed from error
    error.add_note(f"raised by rank {rank}")
    raise error


__all__ = ["raise_rank", "with_line"]
