"""Pallas kernels of JAX: captured, explained and executed as machine code of a GPU."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs JAX: pip install 'wavecast[jax]'")
pytest.importorskip("triton", reason="needs Triton")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import pallas as pl  # noqa: E402
from jax.experimental.pallas.ops.gpu import attention, layer_norm, softmax  # noqa: E402

import wavecast  # noqa: E402
from wavecast.emulate.check.collected import Reports  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

TARGETS = ("gfx942", "gfx1201")


def scaled_add(x_ref: Any, y_ref: Any, o_ref: Any) -> None:
    o_ref[...] = 2 * x_ref[...] + y_ref[...]


def added(x: Any, y: Any) -> Any:
    block = pl.BlockSpec((64,), lambda i: (i,))
    return pl.pallas_call(
        scaled_add,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(x.shape[0], 64),),
        in_specs=[block, block],
        out_specs=block,
    )(x, y)


def increment(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] + 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_kernel_is_executed(target: str, dtype: str) -> None:
    x, y = (jax.random.normal(jax.random.key(n), (256,), dtype) for n in (0, 1))
    with wavecast.device(target) as hooks:
        found = np.asarray(jax.jit(added)(x, y))
    assert hooks.executed == 1
    np.testing.assert_array_equal(found, np.asarray(2 * x + y))


def test_a_result_in_the_memory_of_an_argument() -> None:
    x = jnp.arange(128, dtype=jnp.int32)
    with wavecast.device("gfx942"):
        call = pl.pallas_call(
            increment, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 0}
        )
        found = np.asarray(call(x))
    np.testing.assert_array_equal(found, np.arange(128) + 1)
    np.testing.assert_array_equal(x, np.arange(128))


def _attention(x: Any) -> Any:
    q, k, v = (x[i] for i in range(3))
    return attention.mha(q, k, v, segment_ids=None, causal=True)


def _attention_reference(x: Any) -> Any:
    q, k, v = (x[i] for i in range(3))
    return attention.mha_reference(q, k, v, segment_ids=None, causal=True)


@pytest.mark.parametrize(
    ("kernel", "reference", "shape"),
    [
        (softmax.softmax, jax.nn.softmax, (3, 130)),
        (
            lambda x: layer_norm.layer_norm(x, x[0, 0], x[0, 1]),
            lambda x: layer_norm.layer_norm_reference(x, x[0, 0], x[0, 1]),
            (2, 4, 96),
        ),
        (_attention, _attention_reference, (3, 1, 128, 2, 32)),
    ],
    ids=["softmax", "layer norm", "attention"],
)
@pytest.mark.parametrize("target", TARGETS)
def test_kernels_of_jax(
    target: str, kernel: Callable[..., Any], reference: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    x = jax.random.normal(jax.random.key(0), shape, jnp.float16)
    with wavecast.device(target) as hooks:
        found = np.asarray(kernel(x), np.float32)
    assert hooks.executed
    expected = np.asarray(reference(x), np.float32)
    np.testing.assert_allclose(found, expected, rtol=4e-3, atol=4e-3)


def test_checks_find_a_block_beyond_the_array() -> None:
    """Blocks of Pallas for Triton are not masked."""
    line = scaled_add.__code__.co_firstlineno + 1
    x = jnp.ones(100)
    for size, kinds in ((128, set()), (100, {"out-of-bounds"})):
        x, reports = jnp.ones(size), Reports()
        with wavecast.device("gfx942", check=reports), contextlib.suppress(Exception):
            np.asarray(jax.jit(added)(x, x))
        assert {one.kind.rule for one in reports.errors} == kinds
        for one in reports.errors:
            assert one.location is not None
            assert (Path(one.location.file).name, one.location.line) == ("test_pallas.py", line)


def test_without_a_device_jax_answers() -> None:
    x = jnp.ones(64)
    with pytest.raises(ValueError, match="Only interpret mode is supported on CPU"):
        added(x, x)
    with wavecast.device("gfx942"):
        found = jax.jit(added)
        np.asarray(found(x, x))
    with pytest.raises(Exception, match="was traced for a GPU of wavecast"):
        np.asarray(found(x, x))


SCRIPT = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] + x_ref[...]


x = jnp.arange(1024, dtype=jnp.float32)
block = pl.BlockSpec((128,), lambda i: (i,))
y = pl.pallas_call(
    double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(8,), in_specs=[block],
    out_specs=block,
)(x)
print("right" if (y == 2 * x).all() else "wrong")
"""


def test_a_script_is_run_and_explained(tmp_path: Path) -> None:
    script = tmp_path / "double.py"
    script.write_text(textwrap.dedent(SCRIPT))

    def said(*arguments: str) -> str:
        command = [sys.executable, "-m", "wavecast", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout

    assert said("run", "--arch", "gfx942", "double.py").strip() == "right"
    text = said("explain", "double.py", "--arch", "gfx942,sm_90", "--format", "json")
    (kernel,) = json.loads(text)["comparison"]
    assert kernel["kernel"] == "double"
    assert [one["arch"] for one in kernel["entries"]] == ["gfx942", "sm_90"]
    assert all(one["predicted_seconds"] > 0 for one in kernel["entries"])
    assert "x_ref" in text
    assert '"line": 8' in text


def test_the_page_has_the_lines_that_explain_prints(tmp_path: Path) -> None:
    """Of the script of docs/jax.md: its lines of the kernel, whatever their times."""
    page = (Path(__file__).parents[3] / "docs" / "jax.md").read_text(encoding="utf-8")
    blocks = page.split("```")
    script = next(one for one in blocks if "def scale_rows" in one).removeprefix("python\n")
    shown = next(one for one in blocks if "source lines" in one)
    (tmp_path / "scale.py").write_text(script)
    command = [sys.executable, "-m", "wavecast", "explain", "scale.py", "--arch", "gfx942"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    table = done.stdout.partition("  source lines\n")[2].partition("\n\n")[0]
    lines = re.compile(r"^ +(\d+) (\S.*?)  ", re.MULTILINE)
    wanted = lines.findall(shown)
    assert len(wanted) == 4
    assert set(wanted) <= set(lines.findall(table))
