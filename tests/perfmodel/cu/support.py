"""Small programs on the simulated compute unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.analyze.support import program
from wavecast.arch import resolve
from wavecast.perfmodel.chip import Chip
from wavecast.perfmodel.cu.code import Code
from wavecast.perfmodel.cu.machine import ComputeUnit
from wavecast.perfmodel.cu.recorded import streams
from wavecast.perfmodel.cu.run import run
from wavecast.perfmodel.simulation.run import Run
from wavecast.perfmodel.streams import REQUEST, Streams, Wave

Request = Sequence[float]


def machine(device: str = "mi300x", **changes: float) -> ComputeUnit:
    """A unit of a device, all units active."""
    chip = Chip.of(resolve(device).device)
    limits = chip.device.limits()
    return ComputeUnit.of(chip, simds=limits.simds, active=chip.units).with_(**changes)


def compiled(body: str, device: str = "mi300x") -> Code:
    """A body of instructions and the end of the program as arrays."""
    found = resolve(device).device
    return Code.of(program(body, found.target), found, found.wave_lanes)


def simulate(
    body: str,
    *,
    waves: int = 1,
    workgroups: int = 1,
    resident: int = 1,
    requests: Sequence[tuple[int, Request]] = (),
    path: Sequence[int] | None = None,
    device: str = "mi300x",
    on: ComputeUnit | None = None,
) -> Run:
    """Run `workgroups` of `waves` waves through a body; all take the blocks of `path` (default:
    every block once) and make `requests` (instruction, row)."""
    code = compiled(body, device)
    flat = flattened(code, waves, requests, path)
    return run(
        code,
        flat,
        on or machine(device),
        template=np.zeros(workgroups, np.int32),
        begins=np.zeros(workgroups),
        resident=resident,
    )


def flattened(
    code: Code,
    waves: int = 1,
    requests: Sequence[tuple[int, Request]] = (),
    path: Sequence[int] | None = None,
) -> Streams:
    """The streams of one workgroup."""
    blocks = np.array(path if path is not None else range(len(code.program.blocks)), np.uint32)
    rows = np.zeros((len(requests), REQUEST), np.float32)
    for number, (_, row) in enumerate(requests):
        rows[number, : len(row)] = row
    numbers = np.array([index for index, _ in requests], np.uint32)
    return streams(code, [[Wave(blocks, numbers, rows)] * waves])
