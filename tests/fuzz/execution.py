"""Damaged assembly executed by the emulator, in a child process that may neither die nor hang."""

from __future__ import annotations

import os
import random
import struct
import sys
import traceback

import numpy as np

from wavecast.compile.assembly import load
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.compile.parsing import parse_kernel
from wavecast.errors import WavecastError
from wavecast.isa.program import KernelDescriptor

_BUDGET = 20_000
"""Instructions a wave may execute."""
_BUFFER = 1 << 16
_REFUSED, _FAILED = 3, 4
_TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


class Died(Exception):
    """The child process ended by a signal, or raised something that is no WavecastError."""


def execute(data: bytes, rng: random.Random) -> None:
    """Run the kernels of a text on small grids. Raises WavecastError when the child was refused
    with one, Died when it failed."""
    text = data.decode("utf-8", "replace")
    target = next((name for name in _TARGETS if name in text), "gfx942")
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os._exit(_child(text, target, rng, writer))
    os.close(writer)
    try:
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read().decode()
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, 9)
        os.waitpid(child, 0)
        raise
    code = os.waitstatus_to_exitcode(status)
    if code == _REFUSED:
        raise WavecastError(said)
    if code:
        raise Died(f"exit code {code}: {said}")


def _child(text: str, target: str, rng: random.Random, writer: int) -> int:
    """Execute, and write what was raised into the pipe; the exit code."""
    with os.fdopen(writer, "w") as pipe:
        try:
            for code in load(text, target):
                _run(code, rng)
        except WavecastError as error:
            pipe.write(str(error))
            return _REFUSED
        except BaseException:
            pipe.write(traceback.format_exc())
            return _FAILED
    return 0


def _run(code: CodeObject, rng: random.Random) -> None:
    from wavecast.emulate import engine, native

    kernel = parse_kernel(code)
    quick = rng.random() < 0.8
    made = native.compile_kernel(kernel, quick=quick).load(lambda: kernel)
    buffers = [
        np.frombuffer(rng.randbytes(_BUFFER), np.uint8).copy() for _ in range(rng.randint(1, 4))
    ]
    ranges = [(b.ctypes.data, b.ctypes.data + b.size) for b in buffers]
    launch = Launch(
        code,
        rng.choice(((1, 1, 1), (2, 1, 1), (1, 2, 2))),
        rng.choice(((1, 1, 1), (64, 1, 1), (100, 1, 1), (256, 1, 1), (16, 8, 2))),
        (),
        _arguments(kernel.descriptor, buffers, rng),
        rng.choice((0, 0, 4096, 65536)),
    )
    engine.run(made, launch, ranges, threads=rng.randint(1, 2), budget=_BUDGET)


def _arguments(
    descriptor: KernelDescriptor, buffers: list[np.ndarray], rng: random.Random
) -> bytes:
    """An argument segment: mostly addresses in buffers for pointers, small numbers else."""
    segment = bytearray(rng.randbytes(min(max(descriptor.kernarg_bytes, 8), 1 << 16)))
    for argument in descriptor.arguments:
        if argument.offset + argument.size > len(segment) or argument.size not in (4, 8):
            continue
        if argument.size == 8 and rng.random() < 0.95:
            value = rng.choice(buffers).ctypes.data + rng.choice((0, 0, 64, _BUFFER // 2))
        else:
            value = rng.choice((0, 1, 7, 64, 1 << 31, (1 << 32) - 1))
        code = "<Q" if argument.size == 8 else "<I"
        struct.pack_into(code, segment, argument.offset, value)
    return bytes(segment)
