"""Vector and scalar ALU rows without semantics, each with the reason. The list is complete.

Executors implement rows that read or write more than operands: registers with computed numbers,
state of the wave, jumps.
"""

from __future__ import annotations

_RELATIVE = "reads or writes a register whose number is computed"
_STATE = "reads or writes state of the wave other than registers"
_FLOW = "changes the flow of control or synchronises waves"
_OPEN = "no public description of the result"

_ROWS: dict[str, tuple[str, ...]] = {
    _RELATIVE: (
        *("s_movreld_b32", "s_movreld_b64", "s_movrels_b32", "s_movrels_b64"),
        *("s_movrelsd_2_b32", "v_movreld_b32", "v_movrels_b32", "v_movrelsd_b32"),
        *("v_movrelsd_2_b32", "v_swaprel_b32", "s_set_gpr_idx_idx", "s_set_gpr_idx_on"),
    ),
    _STATE: (
        *("s_getreg_b32", "s_setreg_b32", "s_setreg_imm32_b32", "s_get_pc_i64", "s_version"),
        *("s_get_shader_cycles_u64", "s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64"),
        *("s_get_barrier_state", "s_alloc_vgpr", "s_setvskip"),
    ),
    _FLOW: (
        *("s_add_pc_i64", "s_rfe_i64", "s_set_pc_i64", "s_swap_pc_i64", "s_call_i64"),
        *("s_waitcnt_expcnt", "s_waitcnt_lgkmcnt", "s_waitcnt_vmcnt", "s_waitcnt_vscnt"),
        *("s_barrier_init", "s_barrier_join", "s_barrier_signal", "s_barrier_signal_isfirst"),
        *("s_wakeup_barrier", "s_sleep_var"),
    ),
    _OPEN: (
        *("v_permlane_bcast_b32", "v_permlane_down_b32", "v_permlane_up_b32"),
        *("v_permlane_xor_b32", "v_permlane_idx_gen_b32"),
        *("v_cvt_sr_pk_bf16_f32", "v_cvt_sr_pk_f16_f32"),
    ),
}

NOT_DONE: dict[str, str] = {name: reason for reason, names in _ROWS.items() for name in names}
"""Row name -> why it has no semantics."""
