"""A name of machine code that neither comments, paths nor kernels' names change."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.isa import elf

_BINARIES: Final = ("hsaco", "cubin")
_LENGTH: Final = 16


def code_of(launches: Sequence[Launch]) -> str:
    """The digest of the instructions of launches in their order, "" where one has no binary.

    `CodeObject.digest` also covers the lines and files of debug information, by which a comment or
    another checkout is other code.
    """
    parts = [_instructions(launch.code) for launch in launches]
    if not parts or not all(parts):
        return ""
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()[:_LENGTH]


def _instructions(code: CodeObject) -> bytes:
    binary = next((code.stages[name] for name in _BINARIES if name in code.stages), b"")
    if not isinstance(binary, bytes) or not elf.is_elf(binary):
        return b""
    sections = elf.read(binary).sections
    return b"".join(section.data for section in sections if section.name.startswith(".text"))


__all__ = ["code_of"]
