"""The scope of memory accesses and cache control: among whom they are coherent.

Part of the opcode table. The modifiers of each family are the capability `cache_policy`. Source:
LLVM, "User Guide for AMDGPU Backend", memory model code sequences of each generation.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from wavecast.arch import capabilities
from wavecast.isa.instruction import Decoded
from wavecast.isa.opcode import MemoryKind, OpcodeFlag, Role
from wavecast.isa.targets import isa_target


class Scope(IntEnum):
    """Scopes of the memory model, narrow to wide. A wave's own accesses need none."""

    WAVE = 0
    WORKGROUP = 1
    AGENT = 2
    SYSTEM = 3


_FLAGS: Final = {
    OpcodeFlag.WORKGROUP_SCOPE: Scope.WORKGROUP,
    OpcodeFlag.AGENT_SCOPE: Scope.AGENT,
    OpcodeFlag.SYSTEM_SCOPE: Scope.SYSTEM,
}
_NAMED: Final = {
    "SCOPE_CU": Scope.WAVE,
    "SCOPE_SE": Scope.WORKGROUP,
    "SCOPE_DEV": Scope.AGENT,
    "SCOPE_SYS": Scope.SYSTEM,
}
_SC: Final = {
    (False, False): Scope.WAVE,
    (True, False): Scope.WORKGROUP,
    (False, True): Scope.AGENT,
    (True, True): Scope.SYSTEM,
}


def scope_of(decoded: Decoded, target: str) -> Scope:
    """The scope of a vector memory access or of cache control; WAVE for a plain access. Atomic
    operations are executed in L2, so that of the agent is their least."""
    flagged = [scope for flag, scope in _FLAGS.items() if flag in decoded.opcode.flags]
    if flagged:
        return flagged[0]
    policy, modifiers = capabilities(isa_target(target)).cache_policy, decoded.modifiers
    cache = decoded.opcode.role is Role.CACHE
    atomic = decoded.memory is not None and decoded.memory.kind is MemoryKind.ATOMIC
    if policy == "scope":
        cache_scope = _NAMED[modifiers.get("scope", "SCOPE_CU")]
        return max(cache_scope, Scope.AGENT) if atomic else cache_scope
    if policy == "sc":
        if atomic:
            return Scope.SYSTEM if "sc1" in modifiers else Scope.AGENT
        return _SC["sc0" in modifiers, "sc1" in modifiers]
    if cache:
        return Scope.SYSTEM
    bypasses = atomic or "glc" in modifiers or "dlc" in modifiers
    return Scope.AGENT if bypasses else Scope.WAVE


def is_system(decoded: Decoded, target: str) -> bool:
    """Whether an access or cache control reaches other GPUs: it is of system scope, or the target
    has nothing that tells it from one of the agent."""
    scope, able = scope_of(decoded, target), capabilities(isa_target(target))
    if scope is Scope.SYSTEM:
        return True
    if OpcodeFlag.INVALIDATES in decoded.opcode.flags:
        return scope is Scope.AGENT and able.system_acquire == able.agent_acquire
    return decoded.opcode.role is not Role.CACHE and able.cache_policy == "glc"


def states_store_scope(target: str) -> bool:
    """Whether an atomic store differs from a plain one."""
    return capabilities(isa_target(target)).cache_policy != "glc"


__all__ = ["Scope", "is_system", "scope_of", "states_store_scope"]
