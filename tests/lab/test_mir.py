"""Machine IR as LLVM prints it. → is a tab."""

from __future__ import annotations

from wavecast.lab.mir import functions

DUMP = """some other output
# *** IR Dump After Machine Instruction Scheduler (machine-scheduler) ***:
# Machine code for function k: NoPHIs, TracksLiveness
Function Live Ins: $vgpr0 in %1, $sgpr2_sgpr3 in %2

0B→bb.0 (%ir-block.11):
→  successors: %bb.1(0x80000000); %bb.1(100.00%)
→  liveins: $vgpr0, $sgpr2_sgpr3
16B→  %1:vgpr_32(s32) = COPY $vgpr0
32B→  %2:sgpr_64 = COPY $sgpr2_sgpr3
48B→  %3:vreg_128 = GLOBAL_LOAD_DWORDX4_SADDR %2:sgpr_64, %1:vgpr_32(s32), 0, 0, implicit $exec, debug-location !5; lib.py:3:4 @[ k.py:20:7 ] :: (load (s128))

64B→bb.1 (%ir-block.12):
→; predecessors: %bb.0, %bb.1
→  successors: %bb.1(0x7c000000), %bb.2(0x04000000); %bb.1(96.88%), %bb.2(3.12%)
80B→  undef %4.sub0:vreg_64 = V_ADD_F32_e64 0, %3.sub0:vreg_128, 0, %3.sub1:vreg_128, 0, 0, implicit $mode, implicit $exec, debug-location !6; k.py:21:3
96B→  %4.sub1:vreg_64 = V_MOV_B32_e32 0, implicit $exec
112B→  GLOBAL_STORE_DWORDX2_SADDR %1:vgpr_32(s32), %4:vreg_64, %2:sgpr_64, 0, 0, implicit $exec, debug-location !7; k.py:22:3
128B→  S_CBRANCH_SCC1 %bb.1, implicit killed $scc

144B→bb.2 (%ir-block.13):
→; predecessors: %bb.1
160B→  S_ENDPGM 0

# End machine code for function k.

# *** IR Dump After SI insert wait instructions (si-insert-waitcnts) ***:
# Machine code for function k: NoPHIs, NoVRegs

bb.0 (%ir-block.11):
  liveins: $vgpr0
  BUNDLE implicit-def $vgpr1_vgpr2, implicit $vgpr0 {
    renamable $vgpr1_vgpr2 = GLOBAL_LOAD_DWORDX2 $vgpr0, implicit $exec, debug-location !5; k.py:20:7
  }
  S_WAITCNT 3952
  DS_WRITE_B64_gfx9 renamable $vgpr3, undef renamable $vgpr9_vgpr10, 0, implicit $exec
  S_ENDPGM 0

# End machine code for function k.
""".replace("→", "\t")  # noqa: E501


def test_functions_are_in_the_order_of_passes() -> None:
    one, other = functions(DUMP)
    assert (one.name, other.name) == ("machine-scheduler", "si-insert-waitcnts")
    assert list(one.blocks) == [0, 1, 2]
    assert one.successors == {0: [1], 1: [1, 2]}
    assert one.groups == {"": 4, "load": 1, "store": 1}, "copies become no instructions"
    assert other.groups == {"load": 1, "wait": 1, "lds": 1, "": 1}


def test_source_lines_are_those_of_the_outermost_call() -> None:
    one, _ = functions(DUMP)
    assert [line.source for line in one.lines if line.source] == ["k.py:20", "k.py:21", "k.py:22"]
    assert one.blocks[0][2].text.startswith("%3:vreg_128 = GLOBAL_LOAD")
    assert all("debug-location" not in line.text for line in one.lines)


def test_live_registers() -> None:
    """In the loop: the address (1), the loaded tuple (4), and the pair that is made (2)."""
    one, other = functions(DUMP)
    assert one.pressure == (7, 2)
    assert other.pressure == (3, 0), "an undefined operand is not live"
