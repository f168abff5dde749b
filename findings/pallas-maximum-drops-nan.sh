#!/usr/bin/env bash
# jnp.maximum and jnp.max keep NaN in JAX, and drop it in a Pallas kernel that is lowered to Triton.
#
# Expected: the jnp functions mean the same inside a kernel. jnp.maximum(nan, 0) is NaN, and interpret=True, the way to
#   test a Pallas kernel on a CPU, agrees.
# Happens: the lowering for GPUs writes arith.maxnumf, which returns the number if one operand is NaN. On the same
#   input the interpreter gives NaN and the GPU's code 0.
# Version: JAX 0.10.2. Lowering for CUDA and ROCm works on a machine without a GPU.
# Seen: interpret=True: [nan, 2]; Triton IR: arith.maxnumf for the relu, and in the reduction of jnp.max.
# Why it matters: the running maximum of attention and softmax hides NaN inputs on the GPU, and the test on the CPU
#   cannot show it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
JAX_PLATFORMS=cpu "$work/venv/bin/python" - <<'PYTHON'
import contextlib
import io
import re

import jax
import jax.numpy as jnp
from jax import export
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu


def relu(x_ref, y_ref):
    y_ref[...] = jnp.maximum(x_ref[...], 0.0)


def largest(x_ref, y_ref):
    y_ref[...] = jnp.max(x_ref[...], keepdims=True)


def lowered(kernel, size: int, platform: str) -> str:
    """Triton's IR of a kernel, as JAX prints it while it lowers for a GPU."""
    shape = jax.ShapeDtypeStruct((size,), jnp.float32)
    call = pl.pallas_call(kernel, out_shape=shape, compiler_params=plgpu.CompilerParams(), debug=True)
    allowed = [export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        export.export(jax.jit(call), platforms=[platform], disabled_checks=allowed)(jnp.zeros(2))
    return printed.getvalue()


x = jnp.array([jnp.nan, 2.0])
print("jax", jax.__version__)
for kernel, size in ((relu, 2), (largest, 1)):
    shape = jax.ShapeDtypeStruct((size,), jnp.float32)
    result = pl.pallas_call(kernel, out_shape=shape, interpret=True)(x)
    found = {}
    for platform in ("cuda", "rocm"):
        found[platform] = set(re.findall(r"arith\.max\w+", lowered(kernel, size, platform)))
    print(kernel.__name__, "interpreted:", result, " Triton IR:", found)
    assert bool(jnp.isnan(result[0]))
    assert found == {"cuda": {"arith.maxnumf"}, "rocm": {"arith.maxnumf"}}
PYTHON
echo "as recorded"
