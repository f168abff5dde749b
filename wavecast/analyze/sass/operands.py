"""The operands of a SASS instruction, from its text: what it writes, reads and addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from wavecast.isa.instruction import Decoded

ZERO: Final = -1
"""The number of RZ, URZ, PT and UPT."""
REGISTER_FILES: Final = ("R", "UR", "P", "UP")

_GUARD = re.compile(r"@(!?)(U?P)(\d|T)\s+")
_REGISTER = re.compile(
    r"(?P<sign>[-~!]?)(?P<bar>\|?)(?P<file>UR|R|UP|P|B)(?P<number>\d+|Z|T|R)\|?"
    r"(?P<suffix>(?:\.\w+)*)"
)
_CONSTANT = re.compile(
    r"(?P<sign>[-~]?)\|?c\[(?P<bank>0x[0-9a-f]+)\]\[(?:(?P<file>U?R)(?P<number>\d+|Z))?"
    r"\+?(?P<offset>-?0x[0-9a-f]+)?\]\|?(?P<suffix>(?:\.\w+)*)"
)
_INTEGER = re.compile(r"[-~]?0x[0-9a-f]+|-?\d+")
_ADDRESS = re.compile(r"(?:desc\[[^\]]*\])?\[(?P<sum>[^\]]*)\]")
_TERM = re.compile(r"(?P<file>U?R)(?P<number>\d+|Z)(?P<suffix>(?:\.\w+)*)")


@dataclass(frozen=True, slots=True)
class Register:
    """A register: its `file` (a name of `REGISTER_FILES`) and `number`, `ZERO` for RZ and PT."""

    file: str
    number: int


@dataclass(frozen=True, slots=True)
class SassOperand:
    """An operand that is read: a `register`, a word of a constant bank, or an integer (`value`).

    `bank` and `offset` locate a constant, relative to `register` where both are given. `negative`,
    `inverted` (~ and, of predicates, !) and `absolute` change the value. An operand with neither of
    the three is text this reader does not evaluate, such as a float.
    """

    text: str
    register: Register | None = None
    value: int | None = None
    bank: int | None = None
    offset: int = 0
    negative: bool = False
    inverted: bool = False
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class Address:
    """An address: the sum of registers and an offset. `wide` terms have 64 bits, `scale` is the
    shift of a term."""

    terms: tuple[tuple[Register, bool, int], ...]
    offset: int


@dataclass(frozen=True, slots=True)
class SassOperation:
    """An instruction as it is evaluated. `guard` is its predicate with whether it is inverted;
    `writes` are registers in the order printed, `reads` the other operands."""

    name: str
    modifiers: tuple[str, ...]
    guard: tuple[Register, bool] | None
    writes: tuple[Register, ...]
    reads: tuple[SassOperand, ...]
    addresses: tuple[Address, ...]

    @property
    def sources(self) -> tuple[Register, ...]:
        """Every register read, guard and addresses included; of pairs only the first."""
        registers = [operand.register for operand in self.reads if operand.register is not None]
        terms = [term for address in self.addresses for term, _, _ in address.terms]
        return (*registers, *terms, *((self.guard[0],) if self.guard else ()))


_TWO_PREDICATES: Final = frozenset(
    {"ISETP", "UISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "UPLOP3", "PSETP"}
)
_CARRIES: Final = frozenset(
    {
        "IADD3",
        "UIADD3",
        "LEA",
        "ULEA",
        "LOP3",
        "ULOP3",
        "IMAD",
        "UIMAD",
        "SHFL",
        "MATCH",
        "VIMNMX",
        "UVIMNMX",
    }
)
_NO_RESULT: Final = frozenset(
    {
        *("STG", "STS", "STL", "ST", "STSM", "STTM", "RED", "REDG", "LDGSTS", "LDGDEPBAR"),
        *("BRA", "BRX", "EXIT", "RET", "CALL", "BAR", "DEPBAR", "NOP", "BSSY", "BSYNC", "WARPSYNC"),
        *("MEMBAR", "FENCE", "ERRBAR", "CCTL", "WARPGROUP", "UTCBAR", "UTMALDG", "UTMASTG", "R2P"),
        *("UTMAREDG", "UBLKCP", "UBLKRED", "UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA", "UTCMXQMMA"),
        *("UTMACMDFLUSH", "UTMAPF", "UTCCP", "UTCSHIFT", "YIELD", "NANOSLEEP", "BMOV", "BREAK"),
        *("KILL", "PREEXIT", "ACQBULK", "ARRIVES", "USETMAXREG", "UTMACCTL", "BPT", "UVIRTCOUNT"),
    }
)


@lru_cache(maxsize=1 << 14)
def operation(decoded: Decoded) -> SassOperation:
    """The operation of a decoded SASS instruction."""
    text, guard = decoded.text, None
    match = _GUARD.match(text)
    if match is not None:
        guard = Register(match[2], _number(match[3])), bool(match[1])
        text = text[match.end() :]
    name, *modifiers = decoded.mnemonic.split(".")
    parts = _split(text[len(decoded.mnemonic) :].strip())
    count = _results(name, parts)
    writes = [_register(part) for part in parts[:count]]
    reads, addresses = [], []
    for part in parts[count:]:
        bracket = _ADDRESS.fullmatch(part)
        if bracket is not None:
            addresses.append(_address(bracket["sum"]))
        else:
            reads.append(_operand(part))
    return SassOperation(
        name,
        tuple(modifiers),
        guard,
        tuple(register for register in writes if register is not None),
        tuple(reads),
        tuple(addresses),
    )


def _results(name: str, parts: list[str]) -> int:
    """How many of the operands printed are results."""
    if name in _NO_RESULT or not parts or _plain(parts[0]) is None:
        return 0
    if name in ("VOTE", "VOTEU"):  # a word or not, a predicate or not, then what is voted on
        return len(parts) - 1
    if name in _TWO_PREDICATES:
        second = _plain(parts[1]) if len(parts) > 1 else None
        return 2 if second is not None and second.file in ("P", "UP") else 1
    count = 1
    if name in _CARRIES or name.startswith("ATOM") or name == "UTCATOMSWS":
        first = _plain(parts[0])
        if first is not None and first.file in ("P", "UP"):
            return min(2, len(parts))
        while count < len(parts) - 2 and count < 3:
            following = _plain(parts[count])
            if following is None or following.file not in ("P", "UP"):
                break
            count += 1
    return count


def _plain(part: str) -> Register | None:
    """The register of an operand without modifiers that change its value."""
    match = _REGISTER.fullmatch(part)
    if match is None or match["sign"] or match["bar"]:
        return None
    return _register(part)


def _split(text: str) -> list[str]:
    """Operands between commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _number(text: str) -> int:
    return int(text) if text.isdigit() else ZERO


def _register(part: str) -> Register | None:
    match = _REGISTER.fullmatch(part)
    if match is None or match["file"] == "B":
        return None
    return Register(match["file"], _number(match["number"]))


def _operand(part: str) -> SassOperand:
    match = _REGISTER.fullmatch(part)
    if match is not None and match["file"] != "B":
        return SassOperand(
            part,
            register=Register(match["file"], _number(match["number"])),
            negative=match["sign"] == "-",
            inverted=match["sign"] in ("~", "!") and bool(match["sign"]),
            absolute=bool(match["bar"]),
        )
    constant = _CONSTANT.fullmatch(part)
    if constant is not None:
        base = constant["file"]
        return SassOperand(
            part,
            register=Register(base, _number(constant["number"])) if base else None,
            bank=int(constant["bank"], 16),
            offset=int(constant["offset"] or "0x0", 16),
            negative=constant["sign"] == "-",
            inverted=constant["sign"] == "~",
        )
    if _INTEGER.fullmatch(part):
        inverted = part.startswith("~")
        return SassOperand(part, value=int(part.lstrip("~"), 0), inverted=inverted)
    return SassOperand(part)


def _address(text: str) -> Address:
    terms, offset = [], 0
    for part in text.replace("+-", "-").replace("-", "+-").split("+"):
        match = _TERM.fullmatch(part)
        if match is not None:
            suffixes = match["suffix"].split(".")[1:]
            scale = next((int(s[1:]).bit_length() - 1 for s in suffixes if s[:1] == "X"), 0)
            register = Register(match["file"], _number(match["number"]))
            terms.append((register, "64" in suffixes, scale))
        elif _INTEGER.fullmatch(part):
            offset += int(part, 0)
    unsigned = any(".U32" in part for part in text.split("+"))
    if unsigned:  # a 64-bit base in uniform registers, with a 32-bit offset
        terms = [(register, register.file == "UR" or wide, s) for register, wide, s in terms]
    return Address(tuple(terms), offset)


__all__ = ["ZERO", "Address", "Register", "SassOperand", "SassOperation", "operation"]
