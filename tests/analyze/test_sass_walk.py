"""SASS followed with the launch's arguments: what runs, which addresses, what depends on data."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from tests.perfmodel import sm_code
from wavecast.analyze import sass_program
from wavecast.analyze.sass.control import controls, decode
from wavecast.analyze.sass.executed import execute_launch
from wavecast.analyze.sass.walk import WarpPaths, follow
from wavecast.compile.codeobject import Launch
from wavecast.errors import Unpredictable
from wavecast.isa.opcode import MemoryKind, Space

TARGETS = ("sm_80", "sm_90", "sm_100")


def walked(launch: Launch, workgroups: int = 2) -> WarpPaths:
    warps = launch.block[0] // 32
    ids = np.repeat(np.arange(workgroups), warps)
    ids_of = np.stack([ids, 0 * ids, 0 * ids], axis=1)
    return follow(sass_program(launch.code), launch, ids_of, np.tile(np.arange(warps), workgroups))


def of_kind(launch: Launch, paths: WarpPaths, kind: MemoryKind) -> list[np.ndarray | None]:
    program = sass_program(launch.code)
    found = []
    for access in paths.accesses:
        memory = program.instructions[access.instruction].memory
        if memory is not None and memory.space is Space.GLOBAL and memory.kind is kind:
            found.append(access.addresses)
    return found


def test_control_bits_are_decoded() -> None:
    """FADD that waits for scoreboards 0 and 2, sets 1 with its result, stalls 5 clocks, yields."""
    bits = 5 | 0 << 4 | 1 << 5 | 7 << 8 | 0b101 << 11 | 0b0010 << 17
    found = decode(bits << 41)
    assert (found.stall, found.yields, found.written, found.read) == (5, True, 1, None)
    assert found.waits == {0, 2}
    assert found.reuse == 2


@pytest.mark.parametrize("target", TARGETS)
def test_every_instruction_of_a_cubin_has_control_bits(target: str) -> None:
    given = sm_code.launch(sm_code.COPY, target).code
    program = sass_program(given)
    found = controls(given, program)
    assert len(found) == len(program.instructions)
    loads = [i.index for i in program.instructions if i.opcode.name == "LDG"]
    assert all(found[at].written is not None for at in loads)


def test_a_listing_alone_has_no_control_bits() -> None:
    given = sm_code.launch(sm_code.COPY).code
    bare = replace(given, stages={"sass": given.stages["sass"]})
    with pytest.raises(Unpredictable, match="control bits"):
        controls(bare, sass_program(bare))


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_have_their_addresses(target: str) -> None:
    given = sm_code.launch(sm_code.COPY, target)
    paths = walked(given)
    (loads,) = of_kind(given, paths, MemoryKind.LOAD)
    assert loads is not None
    expected = sm_code.BASE + 4 * np.arange(256).reshape(8, 32)
    assert (loads == expected).all()
    assert not paths.unknown


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_beyond_the_end_take_no_part(target: str) -> None:
    given = sm_code.launch(sm_code.COPY, target, number=40)
    (load,) = [a for a in walked(given, 1).accesses if a.addresses is not None][:1]
    assert load.warps.tolist() == [0, 1]
    assert load.lanes.sum(axis=1).tolist() == [32, 8]


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_runs_as_often_as_its_argument_says(target: str) -> None:
    given = sm_code.launch(sm_code.LOOP, target, number=23)
    loads = of_kind(given, walked(given), MemoryKind.LOAD)
    executed = [addresses for addresses in loads if addresses is not None]
    assert len(executed) == 23
    assert (executed[5] - executed[0] == 5 * 4096).all()


def test_a_loop_over_data_is_refused_with_its_reason() -> None:
    with pytest.raises(Unpredictable, match="depends on data"):
        walked(sm_code.launch(sm_code.DATA_LOOP))


def test_indices_that_a_launch_carries_give_addresses() -> None:
    order = np.arange(4 << 20, dtype=np.uint32)[::-1]
    given = sm_code.launch(sm_code.GATHER, content=order.tobytes())
    first, second = of_kind(given, walked(given), MemoryKind.LOAD)
    assert first is not None
    assert second is not None
    assert (second[0] == 2 * sm_code.BASE + 4 * order[:32].astype(np.uint64)).all()


def test_indices_that_it_does_not_carry_are_unknown() -> None:
    given = sm_code.launch(sm_code.GATHER)
    paths = walked(given)
    assert of_kind(given, paths, MemoryKind.LOAD)[1] is None
    assert "addresses" in paths.unknown


@pytest.mark.parametrize("target", TARGETS)
def test_addresses_that_data_decides_are_in_the_tensor_of_their_pointer(target: str) -> None:
    given = sm_code.launch(sm_code.GATHER, target)
    program = sass_program(given.code)
    loads = [
        i.index
        for i in program.instructions
        if i.memory is not None and i.memory.space is Space.GLOBAL
    ]
    patterns = execute_launch(program, given).patterns
    assert [patterns[at].argument for at in loads] == ["a", "b", "a"]
    assert patterns[loads[1]].pattern == "unknown"
    assert patterns[loads[1]].offsets is None


SHARED_POINTER = """
 mul.wide.u32 %d3, %r4, 4; add.s64 %d4, %d1, %d3; ld.global.u32 %r6, [%d4];
 mul.wide.u32 %d6, %r6, 4; add.s64 %d7, %d2, %d6;
 mov.u32 %r7, room; shl.b32 %r8, %r4, 3; add.u32 %r7, %r7, %r8; st.shared.u64 [%r7], %d7;
 bar.sync 0; xor.b32 %r7, %r7, 8; ld.shared.u64 %d5, [%r7]; red.global.add.u32 [%d5], 1; ret;
"""


def test_pointers_pass_through_shared_memory() -> None:
    """As Triton converts the layout of a tensor of pointers."""
    given = sm_code.launch(SHARED_POINTER)
    program = sass_program(given.code)
    (atomic,) = [
        i.index
        for i in program.instructions
        if i.memory is not None and i.memory.kind is MemoryKind.ATOMIC
    ]
    assert execute_launch(program, given).patterns[atomic].argument == "b"


def test_without_arguments_nothing_is_followed() -> None:
    given = replace(sm_code.launch(sm_code.COPY), kernarg=b"")
    with pytest.raises(Unpredictable, match="arguments"):
        walked(given)
    assert struct.calcsize("<QQI") == len(sm_code.launch(sm_code.COPY).kernarg)
