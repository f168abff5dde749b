"""Names of arguments that a language knows and that its code objects do not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from wavecast.compile.cache import DiskCache
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.digest import key
from wavecast.compile.parsing import parse_descriptor
from wavecast.isa.program import KernelArgument


@dataclass(frozen=True, slots=True)
class NamedArgument:
    """An argument as its language has it: a pointer, or a value."""

    name: str
    is_pointer: bool


@dataclass
class ArgumentNames:
    """The arguments of kernels that languages have compiled in this process, by kernel.

    Names are kept in the cache under the code they belong to: a language whose
    cache has the code does not compile it again.
    """

    compiled: dict[str, list[tuple[NamedArgument, ...]]] = field(default_factory=dict)
    in_use: bool = False
    """Whether a language tells names."""

    def add(self, kernel: str, arguments: Sequence[NamedArgument]) -> None:
        """A kernel is compiled that has these arguments."""
        self.compiled.setdefault(kernel, []).append(tuple(arguments))

    def with_names(self, code: CodeObject) -> CodeObject:
        """The code whose parameters have names, where it has none and they are known."""
        if not self.in_use or any(parameter.name for parameter in code.parameters):
            return code
        arguments = [a for a in parse_descriptor(code).arguments if _is_passed(a)]
        names = self._names(code, arguments)
        by_offset = dict(zip((a.offset for a in arguments), names, strict=False))
        parameters = tuple(
            replace(parameter, name=by_offset.get(parameter.offset or 0, ""))
            for parameter in code.parameters
        )
        return replace(code, parameters=parameters)

    def _names(self, code: CodeObject, arguments: Sequence[KernelArgument]) -> list[str]:
        cache, entry = DiskCache(), key("arguments", code.digest)
        kinds = [argument.kind == "global_buffer" for argument in arguments]
        for compiled in reversed(self.compiled.get(code.kernel, ())):
            if [argument.is_pointer for argument in compiled] == kinds:
                names = [argument.name for argument in compiled]
                cache.put(entry, names)
                return names
        stored = cache.get(entry)
        return [str(name) for name in stored] if isinstance(stored, list | tuple) else []


def _is_passed(argument: KernelArgument) -> bool:
    return not argument.kind.startswith("hidden_")


argument_names: Final = ArgumentNames()
"""Those of this process."""

__all__ = ["ArgumentNames", "NamedArgument", "argument_names"]
