"""Speed of matrix instructions on one thread, beside numpy's float32 matmul in the same run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/matrix.py [--target gfx942] [--match bf16]

Per instruction: nanoseconds, GFLOP/s (GOP/s for integers), the ratio to numpy's matmul of 512³ on
one thread measured just before it, and milliseconds to compile. The best of many short runs, which
is what a busy machine disturbs least.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from llvmlite import binding, ir

from wavecast.emulate.matrix.function import matrix_function
from wavecast.emulate.matrix.spec import MatrixSpec, matrix_spec
from wavecast.emulate.values import I64, PTR
from wavecast.isa import table
from wavecast.isa.decode import Decoder, wave_lanes_of
from wavecast.isa.opcode import Opcode

REPEATS = 100
WORK = 5e-4
"""Seconds of one timed run."""


def best_seconds(run: Callable[[int], object], count: int, repeats: int = REPEATS) -> float:
    """Least seconds per call of `run(n)`, which makes n calls."""
    samples = []
    for _ in range(repeats):
        start = time.perf_counter()
        run(count)
        samples.append((time.perf_counter() - start) / count)
    return min(samples)


def numpy_flops(size: int = 512) -> float:
    """FLOP/s of numpy's float32 matmul."""
    left = np.random.default_rng(0).standard_normal((size, size), np.float32)
    right = left.T.copy()

    def run(count: int) -> None:
        for _ in range(count):
            np.matmul(left, right)

    return 2 * size**3 / best_seconds(run, 1, 20)


def instruction_text(row: Opcode, target: str) -> str:
    """The row over disjoint registers, accumulating in place."""
    first, texts = 0, []
    for role in row.operands:
        count = role.dwords
        texts.append(f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}")
        first += (count + 1) // 2 * 2
    if row.matrix is not None and not row.matrix.sparse:
        texts[3] = texts[0]
    return f"{row.mnemonics[target]} {', '.join(texts)}"


def compile_loop(text: str, target: str, lanes: int) -> tuple[MatrixSpec, object, int, float]:
    """Spec, engine, address of `void loop(ptr registers, i64 count)`, seconds to compile."""
    decoded = Decoder(target, lanes).decode(text)
    spec = matrix_spec(decoded, target, lanes)
    start = time.perf_counter()
    module = ir.Module("bench")
    function = matrix_function(module, decoded, target, lanes)
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR, I64]), "loop")
    builder = ir.IRBuilder(loop.append_basic_block())
    fourth = "index" if spec.shape.sparse else "c"
    order = ("d", "a", "b", fourth, "scale_a", "scale_b")
    rows = [decoded.operands[order.index(name)].first * lanes for name in spec.parameters]
    i32 = ir.IntType(32)
    pointers = [builder.gep(loop.args[0], [I64(row)], source_etype=i32) for row in rows]
    body, done = builder.append_basic_block("body"), builder.append_basic_block("done")
    entry = builder.block
    builder.branch(body)
    builder.position_at_end(body)
    left = builder.phi(I64)
    left.add_incoming(loop.args[1], entry)
    builder.call(function, pointers)
    following = builder.sub(left, I64(1))
    left.add_incoming(following, body)
    builder.cbranch(builder.icmp_unsigned("==", following, I64(0)), done, body)
    builder.position_at_end(done)
    builder.ret_void()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=2,
    )
    parsed = binding.parse_assembly(str(module))
    passes = binding.create_pass_builder(machine, binding.PipelineTuningOptions(2))
    passes.getModulePassManager().run(parsed, passes)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return spec, engine, engine.get_function_address("loop"), time.perf_counter() - start


def measure(row: Opcode, target: str) -> tuple[float, float, float]:
    """Seconds per execution, operations per second, seconds to compile."""
    lanes = wave_lanes_of(target)
    text = instruction_text(row, target)
    spec, engine, address, compiled = compile_loop(text, target, lanes)
    raw = np.zeros(256 * lanes + 16, np.uint32)
    registers = raw[(-raw.ctypes.data // 4) % 16 :]
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(address)

    def run(count: int) -> None:
        call(registers.ctypes.data, count)

    run(1000)
    once = best_seconds(run, 1000, 3)
    seconds = best_seconds(run, max(1, int(WORK / once)))
    del engine
    return seconds, spec.shape.flops / seconds, compiled


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of matrix instructions.")
    parser.add_argument("--target", default="gfx942")
    parser.add_argument("--match", default="")
    options = parser.parse_args()
    print(
        f"{'instruction':40} {'ns':>8} {'GFLOP/s':>8} {'numpy':>8} {'ratio':>8} {'compile ms':>10}"
    )
    for row in table.rows():
        if row.matrix is None or options.target not in row.mnemonics:
            continue
        name = row.mnemonics[options.target]
        if options.match not in name:
            continue
        reference = numpy_flops()
        seconds, rate, compiled = measure(row, options.target)
        print(
            f"{name:40} {seconds * 1e9:8.1f} {rate / 1e9:8.1f} {reference / 1e9:8.1f}"
            f" {rate / reference:8.2f} {compiled * 1e3:10.1f}"
        )


if __name__ == "__main__":
    main()
