"""Calls of `torch.distributed` as a program makes them: their names, what all ranks must have the
same, and what messages say."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Final

from torch import Tensor

from wavecast.launch.script_lines import is_user_code

_MODULES: Final = (
    "torch.distributed.distributed_c10d",
    "torch.distributed._functional_collectives",
    "torch.distributed.nn.functional",
)
"""Where the functions are that programs call."""
_OBJECTS: Final = ("_object", "_object_list")
_WORLD: Final = "0"
"""The name of the group of all ranks."""
_NAMED: Final = 4
"""Sizes of tensors that a message has one by one."""


@dataclass(frozen=True, slots=True)
class GroupCall:
    """A call by a rank. `name` is the function that the program calls, `kind` that of which the
    ranks' functions must be; `agreement` and `details` say the rest of what they must have the
    same, and of what messages say."""

    name: str
    kind: str
    agreement: str
    details: str

    def __str__(self) -> str:
        return f"{self.name}{self.details}"

    def in_group(self, group: str) -> GroupCall:
        """The same in the group of a name, which messages have unless it is that of all ranks."""
        suffix = "" if group == _WORLD else f" in group {group}"
        return replace(self, details=f"{self.details}{suffix}")

    @property
    def shared(self) -> str:
        """What all ranks must have the same."""
        return f"{self.kind} {self.agreement}"


def group_call(
    name: str,
    tensors: Sequence[Tensor] = (),
    *options: str,
    kind: str = "",
    sizes: Sequence[int] | None = None,
    peer: str = "",
    detail: str = "",
) -> GroupCall:
    """The call that the calling thread's program makes, which is of `name` where it calls no
    function of `torch.distributed`. `sizes` are the elements that ranks must agree on, those of the
    `tensors` if None; `peer` says to or from whom a message goes, `detail` what ranks need not have
    the same."""
    counts = [tensor.numel() for tensor in tensors]
    dtypes = [str(tensor.dtype).removeprefix("torch.") for tensor in tensors]
    function = program_function() or name
    if function.endswith(_OBJECTS) and not peer:
        kind = f"{function} {kind}"
    shared = [*(counts if sizes is None else sizes), *sorted({*dtypes}), *options]
    named = [option for option in (*options, detail) if option]
    suffix = f" ({', '.join(named)})" if named else ""
    details = f"{_sizes(counts, dtypes)}{peer}{suffix}"
    return GroupCall(function, kind or name, " ".join(map(str, shared)), details)


def program_function() -> str:
    """The outermost function of `torch.distributed` that the calling thread is in, below the
    program's own: `all_gather_object`, not the calls that it consists of. "" for none."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and not is_user_code(frame.f_code.co_filename):
        here = frame.f_code.co_name
        if frame.f_globals.get("__name__") in _MODULES and _is_public(here, frame.f_globals):
            name = here
        frame = frame.f_back
    return name


def _is_public(name: str, module: dict[str, Any]) -> bool:
    return not name.startswith("_") and callable(module.get(name))


def _sizes(counts: Sequence[int], dtypes: Sequence[str]) -> str:
    """` of 8 float32`, ` of 3, 5 float32`, ` of 9 tensors, 450 float32`."""
    if not counts:
        return ""
    numbers = ", ".join(map(str, counts))
    if len(counts) > _NAMED:
        numbers = f"{len(counts)} tensors, {sum(counts)}"
    return f" of {numbers} {' and '.join(dict.fromkeys(dtypes))}"


__all__ = ["GroupCall", "group_call", "program_function"]
