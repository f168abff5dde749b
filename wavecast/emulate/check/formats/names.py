"""The 8-bit float formats that a HIP kernel names.

Source names a format as a type, as a constant of conversions or in an instruction; it may have
another name for it (`using`, `typedef`, a macro, a constant, a structure), and pass it as an
argument of a template, which the symbol of the kernel has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from wavecast.arch import capabilities
from wavecast.compile.codeobject import CodeObject
from wavecast.compile.names import readable
from wavecast.dtypes import Dtype, Variant, lookup
from wavecast.emulate.check.formats.software import software_formats
from wavecast.isa.targets import isa_target
from wavecast.rules.hip_source import body_of

_NAMED = re.compile(
    r"\b(?:__HIP_(?P<constant>E4M3|E5M2)(?P<constant_fnuz>_FNUZ)?"
    r"|__hip_fp8(?:x[24])?_(?P<type>e4m3|e5m2)(?P<type_fnuz>_fnuz)?"
    r"|__builtin_amdgcn_cvt_\w*?(?P<native>fp8|bf8)\w*)\b"
)
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^;(){}]*>)?\s*\(")
_DEFINED = re.compile(
    r"\b(?!(?:if|for|while|switch)\b)(?P<name>[A-Za-z_]\w*)\s*\([^;{}]*\)\s*(?:const\s*)?\{"
)
_ALIASES: Final = (
    re.compile(r"\busing\s+(?P<name>\w+)\s*=(?P<text>[^;{}]*);"),
    re.compile(r"\btypedef\b(?P<text>[^;{}]*?)\b(?P<name>\w+)\s*;"),
    re.compile(r"^\s*#\s*define\s+(?P<name>\w+)\s(?P<text>.*)$", re.M),
    re.compile(r"\b(?:const|constexpr)\s[\w\s:]*?\b(?P<name>\w+)\s*=(?P<text>[\s\w:]*);"),
    re.compile(r"\bstruct\s+(?P<name>\w+)[^;{}()]*\{(?P<text>[^{}]*)\}"),
)
_BYTE_ALIASES = re.compile(r"\busing\s+(\w+)\s*=\s*((?:unsigned\s+)?char|u?int8_t)\s*;")
_BYTE_TYPEDEFS = re.compile(r"\btypedef\s+((?:unsigned\s+)?char|u?int8_t)\s+(\w+)\s*;")
_WORD = re.compile(r"\w+")
_ENUMERATOR = re.compile(r"L26__hip_fp8_interpretation_t(\d)E")
_ENUMERATORS: Final = ("__HIP_E4M3", "__HIP_E5M2", "__HIP_E4M3_FNUZ", "__HIP_E5M2_FNUZ")
_TYPE = re.compile(r"8__wc_fp8ILi(?P<mantissa>[23])ELb(?P<fnuz>[01])E")
"""The types of Wavecast's own headers in a symbol, by bits of mantissa."""
_ROCM_TYPE = re.compile(r"(?P<length>\d\d)(?P<type>__hip_fp8(?:x[24])?_\w+)")
"""Those of ROCm's headers."""
_GENERIC = {"e4m3": "fp8", "e5m2": "bf8"}


def named_formats(code: CodeObject) -> frozenset[Dtype]:
    """The formats that a kernel names, the functions that it calls, and its symbol; and those of
    functions that convert by arithmetic on bits."""
    aliases = _aliases(code.source_text)
    names, texts = _called(code)
    texts = [*texts, " ".join(_template_arguments(code.kernel, aliases))]
    named = frozenset(
        dtype for text in texts for dtype in _formats(_with_aliases(text, aliases), code.target)
    )
    return named | {*software_formats(code, names)}


def declared_types(code: CodeObject) -> list[str]:
    """The types of a kernel's parameters as its source declares them, without names and other
    names for types; empty where the source has no such kernel."""
    functions = _functions(code.source_text).get(_function_name(code), ())
    if len(functions) != 1:
        return []
    parameters = functions[0].partition("(")[2].partition(")")[0]
    types = [re.sub(r"\w+\s*$", "", part).strip() for part in parameters.split(",")]
    aliases = dict(_BYTE_ALIASES.findall(code.source_text))
    aliases |= {name: type_ for type_, name in _BYTE_TYPEDEFS.findall(code.source_text)}
    return [" ".join(aliases.get(word, word) for word in re.findall(r"\w+|\*", t)) for t in types]


def _formats(text: str, target: str) -> Iterator[Dtype]:
    fnuz = capabilities(isa_target(target)).fp8_fnuz
    for name in _NAMED.finditer(text):
        kind = (name["constant"] or name["type"] or "").lower()
        is_fnuz = bool(name["constant_fnuz"] or name["type_fnuz"]) if kind else fnuz
        generic = _GENERIC[kind] if kind else name["native"]
        plain = lookup("float8_e4m3fn" if generic == "fp8" else "float8_e5m2")
        yield plain.in_variant(Variant.FNUZ if is_fnuz else Variant.OCP)


@lru_cache(maxsize=8)
def _aliases(text: str) -> Mapping[str, str]:
    """Other names for formats: name -> what it stands for."""
    texts: dict[str, str] = {}
    for pattern in _ALIASES:
        for alias in pattern.finditer(text):
            texts[alias["name"]] = f"{texts.get(alias['name'], '')} {alias['text']}"
    formats: dict[str, str] = {}
    changed = True
    while changed:
        changed = False
        for name, meaning in texts.items():
            is_format = _NAMED.search(meaning) or formats.keys() & {*_WORD.findall(meaning)}
            if name not in formats and is_format:
                formats[name] = meaning
                changed = True
    return formats


def _with_aliases(text: str, aliases: Mapping[str, str]) -> str:
    """A text, and what the other names in it stand for, at all levels."""
    parts, all_names = [text], set[str]()
    for part in parts:
        names = aliases.keys() & {*_WORD.findall(part)} - all_names
        all_names |= names
        parts += [aliases[name] for name in sorted(names)]
    return "\n".join(parts)


def _template_arguments(symbol: str, aliases: Mapping[str, str]) -> Iterator[str]:
    """The formats among the arguments of a template in the symbol of its instance."""
    if not symbol.startswith("_Z"):
        return
    for number in _ENUMERATOR.findall(symbol):
        yield _ENUMERATORS[int(number)]
    for type_ in _TYPE.finditer(symbol):
        kind = "e4m3" if type_["mantissa"] == "3" else "e5m2"
        yield f"__hip_fp8_{kind}{'_fnuz' if type_['fnuz'] == '1' else ''}"
    for name in _ROCM_TYPE.finditer(symbol):
        yield name["type"][: int(name["length"])]
    yield from (name for name in aliases if f"{len(name)}{name}" in symbol)


def _called(code: CodeObject) -> tuple[set[str], list[str]]:
    """A kernel and the functions of its file that it calls, directly or not: names, and parameters
    with bodies."""
    functions = _functions(code.source_text)
    name = _function_name(code)
    work, names, texts = list(functions.get(name, ())), {name}, list[str]()
    while work:
        part = work.pop()
        texts.append(part)
        for callee in _CALLED.findall(part):
            if callee not in names:
                names.add(callee)
                work += functions.get(callee, ())
    return names, texts


def _function_name(code: CodeObject) -> str:
    return readable(code.kernel).rpartition("::")[2].removesuffix("<…>")


@lru_cache(maxsize=8)
def _functions(text: str) -> Mapping[str, Sequence[str]]:
    """Parameters and bodies of the functions of a file, by name."""
    functions: dict[str, list[str]] = {}
    for match in _DEFINED.finditer(text):
        body = body_of(text, text.count("\n", 0, match.end() - 1) + 1)
        if body is not None:
            functions.setdefault(match["name"], []).append(text[match.start() : body[1]])
    return functions


__all__ = ["declared_types", "named_formats"]
