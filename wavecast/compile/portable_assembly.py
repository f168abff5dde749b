"""Assembly of LLVM 23 and 24, which Triton 3.9 has, for older assemblers.

Source: LLVM AMDGPUAsmParser.cpp, `ParseDirectiveAMDGCNTarget`; AMDGPUMCExpr.cpp, `instprefsize`:
cache lines of 128 bytes of the code, at most as many as the field holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from wavecast.errors import CompileError
from wavecast.isa import elf

_OTHER_NAME: Final = re.compile(
    r"target id (?P<stated>\S+) does not match the specified\s+target id (?P<expected>\S+)"
)
"""LLVM 24 names `amdgpu9.42-amd-amdhsa-unknown-gfx942` what LLVM 22 names
`amdgcn-amd-amdhsa--gfx942`."""
_PREFETCH: Final = re.compile(
    r"(?P<start>\.amdhsa_inst_pref_size\s+)"
    r"\(+instprefsize\([\w.$]+-(?P<kernel>[\w.$]+)\)<<(?P<shift>\d+)\)&(?P<mask>\d+)\)>>\d+"
)
_LINE: Final = 128


def link_portable(text: str, link: Callable[[str], bytes]) -> bytes:
    """What `link` makes of assembly, or of the same as older assemblers write it where it refuses
    what they do not know. Raises CompileError as `link`."""
    try:
        return link(text)
    except CompileError as error:
        match = _OTHER_NAME.search(error.log) or _OTHER_NAME.search(error.message)
        if match is None and not _PREFETCH.search(text):
            raise
        if match is not None:
            text = text.replace(match["stated"], match["expected"])
    if not _PREFETCH.search(text):
        return link(text)
    try:
        return link(text)
    except CompileError:
        symbols = elf.read(link(_PREFETCH.sub(r"\g<start>0", text))).symbols
        sizes = {name: symbol.size for name, symbol in symbols.items()}

        def lines(found: re.Match[str]) -> str:
            most = int(found["mask"]) >> int(found["shift"])
            return f"{found['start']}{min(-(-sizes.get(found['kernel'], 0) // _LINE), most)}"

        return link(_PREFETCH.sub(lines, text))


__all__ = ["link_portable"]
