"""What the emulator's engine costs: translation, warm start, launches, wave-instructions a second.

    python benchmarks/emulate_engine.py [--corpus DIR] [--target gfx942] [part …]

Parts: `translate` (processor time per instruction of corpus kernels, quick and well compiled, with
outlined functions at hand), `warm` (a new process that finds everything in the cache), `launch`
(a launch of one empty workgroup), `rate` (wave-instructions a second of one thread, beside numpy's
additions of as many lanes in the same run). Medians of processor time, so that other work on the
machine does not count.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wavecast import isa
from wavecast.compile.codeobject import Launch
from wavecast.emulate import engine, native
from wavecast.errors import WavecastError
from wavecast.isa.parser import parse
from wavecast.isa.program import Kernel

TEXT = """
	.text
	.type k,@function
k:
	s_load_dwordx2 s[8:9], s[0:1], 0x0
	v_and_b32_e32 v0, 0x3ff, v0
	v_lshlrev_b32_e32 v1, 2, v0
{body}
	s_endpgm
.Lfunc_end0:
	.amdhsa_kernel k
		.amdhsa_group_segment_fixed_size 16384
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 2
		.amdhsa_next_free_vgpr 128
		.amdhsa_next_free_sgpr 64
		.amdhsa_float_denorm_mode_32 3
	.end_amdhsa_kernel
"""
LOOP = """
	s_movk_i32 s20, {trips}
.Lloop:
{body}
	s_sub_u32 s20, s20, 1
	s_cmp_lg_u32 s20, 0
	s_cbranch_scc1 .Lloop
"""
ALU = ("v_add_u32_e32 v{d}, v{a}, v{b}", "v_xor_b32_e32 v{d}, v{a}, v{b}",
       "v_fma_f32 v{d}, v{a}, v{b}, v{d}", "v_mul_f32_e32 v{d}, v{a}, v{b}",
       "v_lshlrev_b32_e32 v{d}, 3, v{a}", "v_max_f32_e32 v{d}, v{a}, v{b}",
       "v_and_b32_e32 v{d}, v{a}, v{b}", "v_add_f32_e32 v{d}, v{a}, v{b}")  # fmt: skip
KERNELS = ("gemm_bf16_128x128x64_w4_s2", "fa_fwd_d128_c1")


def median(call: Callable[[], Any], runs: int = 7) -> float:
    """Seconds, median of `runs` after one to warm up."""
    call()
    taken = []
    for _ in range(runs):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def small(body: str) -> Kernel:
    return parse(TEXT.format(body=body), "gfx942").kernels["k"]


def launch_of(groups: int, threads: int, address: int) -> Launch:
    code: Any = None
    kernarg = np.array([address], np.uint64).tobytes()
    return Launch(code, (groups, 1, 1), (threads, 1, 1), (), kernarg)


def alu_body(count: int) -> str:
    """Additions, products and bit operations over 24 registers, each result used soon after."""
    lines = [
        "\t" + ALU[i % len(ALU)].format(d=2 + i * 5 % 24, a=2 + i * 7 % 24, b=2 + i * 11 % 24)
        for i in range(count)
    ]
    return LOOP.format(trips=1000, body="\n".join(lines))


def mix_body() -> str:
    """The inner loop of a GEMM: 16 LDS reads, 32 products, 8 LDS writes, addresses, scalars."""
    lines = ["\tv_lshlrev_b32_e32 v2, 4, v0"]
    for i in range(8):
        lines.append(f"\tds_read_b128 v[{32 + 4 * i}:{35 + 4 * i}], v2 offset:{1024 * (i % 4)}")
    for i in range(16):
        a, b = 32 + 4 * (i % 4), 48 + 4 * (i // 4)
        lines.append(
            f"\tv_mfma_f32_16x16x16_bf16 v[{64 + 4 * (i % 16)}:{67 + 4 * (i % 16)}], "
            f"v[{a}:{a + 1}], v[{b}:{b + 1}], v[{64 + 4 * (i % 16)}:{67 + 4 * (i % 16)}]"
        )
        lines.append(f"\tv_add_u32_e32 v{4 + i}, s21, v{4 + i}")
        lines.append("\ts_add_u32 s21, s21, 64")
        lines.append("\ts_nop 1")
    return LOOP.format(trips=1000, body="\n".join(lines))


def rate() -> None:
    out = np.zeros(64, np.uint32)
    address = out.ctypes.data
    ranges = [(address, address + out.nbytes)]
    lanes = np.ones(64 * 24, np.float32)
    numpy_rate = 24 * 1000 / median(lambda: [np.add(lanes, 1.0, out=lanes) for _ in range(1000)])
    print(f"numpy, additions of 64 lanes  {numpy_rate / 1e6:8.1f} M/s")
    for name, body in (("VALU", alu_body(200)), ("GEMM mix", mix_body())):
        kernel = small(body)
        counted = len(kernel.program.instructions) - 8
        for how, quick in (("quick", True), ("well", False)):
            made = native.compile_kernel(kernel, quick=quick).load(lambda kernel=kernel: kernel)
            launch = launch_of(4, 64, address)
            taken = median(lambda made=made, launch=launch: engine.run(made, launch, ranges))
            speed = 4 * 1000 * counted / taken
            print(f"{name + ', ' + how + ' code':28}  {speed / 1e6:8.1f} M/s, "
                  f"{speed / numpy_rate:.2f} of numpy")  # fmt: skip


def launch() -> None:
    out = np.zeros(64, np.uint32)
    address = out.ctypes.data
    made = engine.translate(small(""))
    ranges = [(address, address + out.nbytes)]
    for threads in (1, 2):
        for groups in (1, 2):
            one = launch_of(groups, 64, address)
            taken = median(lambda n=threads, one=one: engine.run(made, one, ranges, threads=n), 99)
            print(f"launch of {groups} workgroups on {threads} threads  {taken * 1e6:6.0f} us")


def translate(corpus: Path, target: str) -> None:
    gc.disable()
    found: dict[bool, list[float]] = {True: [], False: []}
    for path in sorted(corpus.glob(f"*.{target}.amdgcn")):
        name = path.name.partition(".")[0]
        kernel = next(iter(isa.parse(path.read_text(), target, file=str(path)).kernels.values()))
        count = len(kernel.program.instructions)
        for quick in (True, False) if name in KERNELS else (True,):
            try:
                native.compile_kernel(kernel, quick=quick).load(lambda kernel=kernel: kernel)
            except WavecastError as error:
                print(f"{name}: {error}")
                break
            start = time.process_time()
            kernel = next(
                iter(isa.parse(path.read_text(), target, file=str(path)).kernels.values())
            )
            native.compile_kernel(kernel, quick=quick).load(lambda kernel=kernel: kernel)
            taken = (time.process_time() - start) / count * 1e6
            found[quick].append(taken)
            if name in KERNELS:
                print(f"{name:28} {'quick' if quick else 'well':6} {taken:6.0f} us/instruction")
    quick_times = sorted(found[True])
    print(f"{len(quick_times)} kernels, quick: median {statistics.median(quick_times):.0f}, "
          f"most {quick_times[-1]:.0f} us/instruction")  # fmt: skip


WARM = """
import sys, time
import torch
from pathlib import Path
from wavecast.compile.assembly import load
from wavecast.emulate.launch import Emulator
from wavecast.emulate.resident import _scheduler
(code,) = load(Path(sys.argv[1]).read_text(), sys.argv[2])
start = time.process_time()
Emulator(1).translate(code)
_scheduler()
print(time.process_time() - start)
"""


def warm(corpus: Path, target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, WAVECAST_CACHE_DIR=folder)
        for name in KERNELS:
            path = corpus / f"{name}.{target}.amdgcn"
            times = []
            for _ in range(6):
                command = [sys.executable, "-c", WARM, str(path), target]
                done = subprocess.run(
                    command, env=environment, check=True, capture_output=True, text=True
                )
                times.append(float(done.stdout) * 1e3)
            print(f"{name:28} cold {times[0]:6.0f} ms, warm {statistics.median(times[1:]):5.1f} ms "
                  "to the first instruction")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--target", default="gfx942")
    parser.add_argument("parts", nargs="*")
    given = parser.parse_args()
    parts = given.parts or ["rate", "launch", "translate", "warm"]
    if "rate" in parts:
        rate()
    if "launch" in parts:
        launch()
    for name, part in (("translate", translate), ("warm", warm)):
        if name in parts and given.corpus is not None:
            part(given.corpus, given.target)


if __name__ == "__main__":
    main()
