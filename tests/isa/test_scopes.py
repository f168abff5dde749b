"""The scope an access and cache control state, by target."""

from __future__ import annotations

import pytest

from tests.emulate.memory_support import kernel_of
from wavecast.isa.scopes import Scope, scope_of, states_store_scope


@pytest.mark.parametrize(
    ("target", "text", "scope"),
    [
        ("gfx90a", "global_load_dword v2, v1, s[8:9]", Scope.WAVE),
        ("gfx90a", "global_load_dword v2, v1, s[8:9] glc", Scope.AGENT),
        ("gfx90a", "global_store_dword v1, v2, s[8:9]", Scope.WAVE),
        ("gfx90a", "global_atomic_add v1, v2, s[8:9]", Scope.AGENT),
        ("gfx90a", "buffer_wbinvl1_vol", Scope.AGENT),
        ("gfx90a", "buffer_wbl2", Scope.SYSTEM),
        ("gfx942", "global_load_dword v2, v1, s[8:9] sc0", Scope.WORKGROUP),
        ("gfx942", "global_store_dword v1, v2, s[8:9] sc1", Scope.AGENT),
        ("gfx942", "global_load_dword v2, v1, s[8:9] sc0 sc1", Scope.SYSTEM),
        ("gfx942", "global_atomic_add v3, v1, v2, s[8:9] sc0", Scope.AGENT),
        ("gfx942", "global_atomic_add v1, v2, s[8:9] sc1", Scope.SYSTEM),
        ("gfx942", "buffer_wbl2 sc1", Scope.AGENT),
        ("gfx942", "buffer_inv sc0 sc1", Scope.SYSTEM),
        ("gfx1100", "global_load_b32 v2, v1, s[8:9] glc", Scope.AGENT),
        ("gfx1100", "buffer_gl0_inv", Scope.WORKGROUP),
        ("gfx1100", "buffer_gl1_inv", Scope.AGENT),
        ("gfx1201", "global_load_b32 v2, v1, s[8:9]", Scope.WAVE),
        ("gfx1201", "global_load_b32 v2, v1, s[8:9] scope:SCOPE_SE", Scope.WORKGROUP),
        ("gfx1201", "global_atomic_add_u32 v1, v2, s[8:9] scope:SCOPE_DEV", Scope.AGENT),
        ("gfx1201", "global_atomic_add_u32 v1, v2, s[8:9]", Scope.AGENT),
        ("gfx1201", "global_inv scope:SCOPE_SYS", Scope.SYSTEM),
    ],
)
def test_an_instruction_states_its_scope(target: str, text: str, scope: Scope) -> None:
    program = kernel_of(target, text).program
    (found,) = (i for i in program.instructions if i.decoded.text.startswith(text.split()[0]))
    assert scope_of(found.decoded, target) is scope


def test_atomic_stores_of_some_targets_look_plain() -> None:
    assert [t for t in ("gfx90a", "gfx942", "gfx1100", "gfx1201") if not states_store_scope(t)] == [
        "gfx90a",
        "gfx1100",
    ]
