"""The pointer arguments of a kernel, numbered."""

from __future__ import annotations

from wavecast.compile.codeobject import CodeObject, Launch, member_name
from wavecast.isa.defuse import bits_of
from wavecast.isa.program import KernelArgument, KernelDescriptor

_POINTER_KINDS = ("global_buffer", "dynamic_shared_pointer")
SEGMENT = 1 << 0
"""The root of the kernel argument segment itself."""


class Pointers:
    """The pointer arguments of a kernel, numbered; bit `n + 1` stands for the n-th. With `members`
    every 8 bytes passed by value may be a pointer, named by the argument and their offset; a
    `launch` says which are."""

    def __init__(
        self,
        code: CodeObject,
        descriptor: KernelDescriptor,
        *,
        members: bool = False,
        launch: Launch | None = None,
    ) -> None:
        self._members = members
        self.names: list[str] = []
        self.slots: list[tuple[str, int, int]] = []
        """Name, offset and size in bytes in the argument segment."""
        self._at: dict[int, int] = {}
        kinds = {argument.offset: argument for argument in descriptor.arguments}
        members_of_launch = launch.members if launch is not None else ()
        for parameter in code.named_parameters:
            if parameter.offset is None:
                continue
            kernel_argument = kinds.get(parameter.offset)
            value = (
                kernel_argument is not None
                and kernel_argument.kind == "by_value"
                and (parameter.size or 0) >= 8
            )
            end = parameter.offset + (parameter.size or 8)
            pointers = [
                (item.name, item.slot)
                for item in members_of_launch
                if item.slot is not None and parameter.offset <= item.slot < end
            ]
            for name, slot in pointers:
                self._add(name, slot, 8)
            if pointers:
                continue
            if _is_pointer(parameter.type, parameter.size, kernel_argument) or (members and value):
                self._add(parameter.name, parameter.offset, parameter.size or 8)
        if not code.parameters:
            for number, argument in enumerate(descriptor.arguments, 1):
                if argument.kind in _POINTER_KINDS:
                    self._add(argument.name or f"argument {number}", argument.offset, argument.size)

    def _add(self, name: str, offset: int, size: int) -> None:
        if self._members and size > 8:
            for start in range(0, size - 7, 8):
                self._add(member_name(name, start), offset + start, 8)
            return
        self.names.append(name)
        self.slots.append((name, offset, size))
        for dword in range(offset // 4, (offset + size) // 4):
            self._at[dword] = 1 << len(self.names)

    def dword(self, index: int) -> int:
        """The root of one dword of the argument segment, 0 if it is not part of a pointer."""
        return self._at.get(index, 0)

    def of(self, roots: int) -> tuple[str, ...]:
        """The names in a set of roots."""
        return tuple(self.names[bit - 1] for bit in bits_of(roots & ~SEGMENT))


def _is_pointer(type_name: str, size: int | None, argument: KernelArgument | None) -> bool:
    if type_name:
        return "*" in type_name or type_name.startswith("tensordesc")
    if argument is not None and argument.kind in _POINTER_KINDS:
        return True
    # a structure passed by value may hold pointers
    return argument is not None and argument.kind == "by_value" and (size or 0) > 8
