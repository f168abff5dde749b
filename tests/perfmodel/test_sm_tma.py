"""Predictions of TMA copies: bytes by descriptor or by memory barrier, and their time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.perfmodel import tma_code
from tests.perfmodel.test_sm import DEVICES, profile
from wavecast import arch
from wavecast.analyze import sass_program
from wavecast.analyze.sass import tensor_copies
from wavecast.analyze.sass.launch_constants import PARAMETERS
from wavecast.analyze.sass.walk import follow
from wavecast.compile.codeobject import Argument
from wavecast.errors import Unpredictable
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.launches import launch_timing
from wavecast.perfmodel.sm.tensor_boxes import TensorBox

TARGETS = ("sm_90", "sm_100")


@pytest.mark.parametrize("target", TARGETS)
def test_operands_of_a_copy(target: str) -> None:
    given = tma_code.launch(target, grid=4, number=3)
    ids = np.array([[2, 0, 0]] * 4)
    paths = follow(sass_program(given.code), given, ids, np.arange(4))
    program = sass_program(given.code)
    loads, arrivals = [], []
    for access in paths.accesses:
        name = program.instructions[access.instruction].mnemonic
        if access.operands is not None:
            (loads if name.startswith(tensor_copies.LOAD) else arrivals).append(access)
    assert [a.operands[:, 2:].tolist() for a in loads] == [[[64 * n, 128]] for n in range(3)]
    described = PARAMETERS + (given.code.parameters[0].offset or 0)
    assert {int(a.operands[0, tensor_copies.DESCRIPTOR]) for a in loads} == {described}
    assert [a.operands.tolist() for a in arrivals] == [[[tma_code.BOX]]] * 3
    assert all(a.warps.tolist() == [0] for a in loads)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("host", [True, False])
def test_copies_take_their_bytes_over_the_bandwidth(target: str, host: bool) -> None:
    """A descriptor that the launch does not have is one the kernel makes: its boxes have the bytes
    that the memory barrier waits for."""
    given = tma_code.launch(target, grid=4096, number=16, host=host)
    found = profile(given)
    whole = 4096 * 16 * tma_code.BOX
    assert found.traffic is not None
    assert found.traffic.l2 == pytest.approx(whole)
    assert found.traffic.hbm == pytest.approx(whole)
    device = arch.load(DEVICES[target])
    time = launch_timing(found, device)
    least = whole / Chip.of(device).hbm
    assert time.bounds["memory"] == pytest.approx(least, rel=0.01)
    assert least < time.seconds < 1.6 * least + time.launch


def test_a_copy_that_is_waited_for_takes_its_latency() -> None:
    chip = Chip.of(arch.load("h100_sxm"))
    one, many = (
        launch_timing(profile(tma_code.launch("sm_90", grid=1, number=n)), chip.device).seconds
        for n in (8, 24)
    )
    trip = (many - one) / 16
    assert trip > chip.latency["l2"]
    assert trip < 4 * chip.latency["hbm"]


def test_stores_have_the_bytes_of_their_descriptor() -> None:
    plain, stored = (
        profile(tma_code.launch("sm_90", grid=256, number=2, end=end)).traffic
        for end in ("", tma_code.STORE)
    )
    assert plain is not None
    assert stored is not None
    assert stored.l2 - plain.l2 == pytest.approx(256 * tma_code.BOX)


def test_a_store_by_an_unknown_descriptor_is_refused() -> None:
    given = tma_code.launch("sm_90", grid=8, number=2, end=tma_code.STORE, host=False)
    with pytest.raises(
        Unpredictable, match=r"the bytes that UTMASTG\.2D copies are in a descriptor"
    ):
        profile(given)


def test_boxes_end_with_the_tensor() -> None:
    argument = Argument(
        "t", "descriptor", shape=(100, 256), strides=(256, 1), bytes=2 * 100 * 256, storage=1 << 20,
        value=(64, 128),
    )  # fmt: skip
    box = TensorBox.of(argument)
    assert (box.box, box.steps, box.bytes) == ((64, 64), (2, 512), 8192)
    found, counts = box.sectors(np.array([[0, 0], [64, 64]]))
    assert counts.tolist() == [64 * 4, 36 * 4]
    assert found[:5].tolist() == [(1 << 15) + n for n in (0, 1, 2, 3, 16)]
    assert found[64 * 4] == (1 << 15) + 64 * 16 + 4
