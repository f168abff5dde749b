"""The kernel library on JAX arrays: results, transformations, the machine code of a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
jax = pytest.importorskip("jax", reason="needs JAX: pip install 'wavecast[jax]'")
torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import jax.numpy as jnp  # noqa: E402

import wavecast.jax as wj  # noqa: E402
from tests.frameworks.framework_calls import inputs_of, listed  # noqa: E402
from wavecast import device as emulated  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError, UsageError  # noqa: E402
from wavecast.frameworks.host_calls import arrays  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def given(name: str, sizes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Arguments of an operator, indices in 32 bits: JAX has no others by default."""
    inputs = inputs_of(name, sizes)
    return {
        name: one.int() if isinstance(one, torch.Tensor) and one.dtype is torch.int64 else one
        for name, one in inputs.items()
    }


def in_jax(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors as arrays of JAX."""
    return {
        name: jnp.asarray(arrays.array(one)) if isinstance(one, torch.Tensor) else one
        for name, one in inputs.items()
    }


def same(got: Any, expected: Any) -> None:
    """Bit by bit, but that JAX has int32 for int64."""
    want = arrays.array(expected)
    want = want.astype(jax.dtypes.canonicalize_dtype(want.dtype), copy=False)
    found = np.asarray(got)
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("name", wj.names())
def test_every_operator_gives_what_it_gives_in_pytorch(name: str) -> None:
    inputs = given(name)
    got = listed(getattr(wj, name)(**in_jax(inputs)))
    results = listed(getattr(ops, name)(**inputs))
    written = [inputs[one] for one in ops.operator(name).mutates]
    assert len(got) == len(results) + len(written)
    for found, expected in zip(got, [*results, *written], strict=True):
        same(found, expected)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("softmax", {"rows": 3, "columns": 130, "dtype": "float32"}),
        ("rms_norm", None),
        ("matmul", {"m": 17, "n": 32, "k": 64, "dtype": "bfloat16"}),
        ("kv_cache_write", None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_compiled_calls_execute_machine_code(
    name: str, sizes: Mapping[str, Any] | None, target: str
) -> None:
    inputs = given(name, sizes)
    plain = {key: one for key, one in in_jax(inputs).items() if not isinstance(one, jax.Array)}
    tensors = {key: one for key, one in in_jax(inputs).items() if isinstance(one, jax.Array)}
    with wj.device(target):
        got = listed(jax.jit(lambda found: getattr(wj, name)(**found, **plain))(tensors))
    with emulated(target) as hooks:
        results = listed(getattr(ops, name)(**inputs))
    assert hooks.executed
    written = [inputs[one] for one in ops.operator(name).mutates]
    for found, expected in zip(got, [*results, *written], strict=True):
        same(found, expected)


def test_gradients_are_those_of_pytorch_and_of_the_machine_code() -> None:
    x = jax.random.normal(jax.random.key(0), (5, 96))
    weight = jax.random.normal(jax.random.key(1), (96,))

    def loss(x: Any, weight: Any) -> Any:
        return (wj.rms_norm(x, weight) ** 2).sum()

    theirs = [torch.tensor(np.asarray(one), requires_grad=True) for one in (x, weight)]
    (ops.rms_norm(*theirs) ** 2).sum().backward()
    for target in ("", "gfx942"):
        with wj.device(target) if target else pytest.MonkeyPatch.context():
            found = jax.jit(jax.grad(loss, argnums=(0, 1)))(x, weight)
        for got, want in zip(found, theirs, strict=True):
            assert want.grad is not None
            np.testing.assert_allclose(got, want.grad.numpy(), rtol=2e-5, atol=2e-6)


def test_only_gradients_that_are_asked_for_need_a_formula() -> None:
    inputs = in_jax(given("cross_entropy"))

    def loss(logits: Any) -> Any:
        return listed(wj.cross_entropy(**{**inputs, "logits": logits}))[0].sum()

    found = jax.grad(loss)(inputs["logits"])
    assert found.shape == inputs["logits"].shape
    assert bool(jnp.isfinite(found).all())
    assert float(jnp.abs(found).max()) > 0


def test_an_operator_without_a_derivative_says_so() -> None:
    assert ops.operator("quantise_fp8_group").gradient is None
    with pytest.raises(ValueError, match="Pure callbacks do not support JVP"):
        jax.grad(lambda x: wj.quantise_fp8_group(x)[1].sum())(jnp.ones((4, 128)))


def test_vmap_is_one_call_for_each_element() -> None:
    x = jax.random.normal(jax.random.key(0), (3, 2, 5, 64))
    weight = jax.random.normal(jax.random.key(1), (2, 64))
    norm = jax.vmap(lambda x, w: wj.rms_norm(x, w), in_axes=(0, 0))
    found = jax.vmap(norm, in_axes=(0, None))(x, weight)
    for i in range(3):
        for j in range(2):
            np.testing.assert_array_equal(found[i, j], wj.rms_norm(x[i, j], weight[j]))
    grads = jax.vmap(jax.grad(lambda x: (wj.softmax(x) ** 2).sum()))(x[0])
    np.testing.assert_allclose(
        grads[1], jax.grad(lambda x: (jax.nn.softmax(x) ** 2).sum())(x[0, 1]), rtol=1e-4, atol=1e-6
    )
    one = jax.vmap(wj.softmax)(x[:1, 0])
    np.testing.assert_array_equal(one[0], wj.softmax(x[0, 0]))


@pytest.mark.skipif(len(jax.devices()) < 2, reason="JAX was started with one device")
def test_shards_run_apart() -> None:
    from jax.sharding import PartitionSpec

    x = jax.random.normal(jax.random.key(0), (8, 64))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("rows",))
    split = PartitionSpec("rows")
    with wj.device("gfx942"):
        found = jax.jit(
            jax.shard_map(wj.softmax, mesh=mesh, in_specs=split, out_specs=split, check_vma=False)
        )(x)
        expected = wj.softmax(x)
    np.testing.assert_array_equal(found, expected)


def test_bad_use() -> None:
    x = jnp.ones((4, 64))
    with pytest.raises(ArgumentError, match="eps must be a Python value, not an array"):
        jax.jit(lambda eps: wj.rms_norm(x, x[0], eps=eps))(1e-6)
    with pytest.raises(UsageError, match="takes lists of tensors"):
        wj.adamw_foreach  # noqa: B018
    with pytest.raises(AttributeError, match="no operator 'nothing'"):
        wj.nothing  # noqa: B018
    with emulated("gfx942"), pytest.raises(Exception, match="a call of another framework"):
        wj.softmax(x)


def test_attention_has_the_layout_of_jax() -> None:
    """One call: `jax.nn.dot_product_attention`, and the logarithms of its denominators, whose
    gradients are JAX's too."""
    keys = jax.random.split(jax.random.key(0), 3)
    q = jax.random.normal(keys[0], (2, 19, 4, 32))
    k, v = (jax.random.normal(key, (2, 19, 2, 32)) for key in keys[1:])

    def expected(q: Any, k: Any, v: Any) -> tuple[Any, Any]:
        groups = q.reshape(2, 19, 2, 2, 32)
        scores = jnp.einsum("btngh,bsnh->bngts", groups, k) * 32**-0.5
        seen = jnp.tril(jnp.ones((19, 19), bool))
        lse = jax.nn.logsumexp(jnp.where(seen, scores, -jnp.inf), axis=-1)
        return jax.nn.dot_product_attention(q, k, v, is_causal=True), lse.reshape(2, 4, 19)

    def both(attend: Any) -> Any:
        def total(*tensors: Any) -> Any:
            out, lse = attend(*tensors)
            return (out * jnp.arange(32)).sum() + (lse * jnp.arange(19)).sum()

        return jax.grad(total, argnums=(0, 1, 2))(q, k, v)

    with wj.device("gfx942"):

        @jax.jit
        def ours(q: Any, k: Any, v: Any) -> Any:
            return wj.attention(q, k, v, causal=True)

        results, gradients = ours(q, k, v), both(ours)
    for found, wanted in zip(results, expected(q, k, v), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    for found, wanted in zip(gradients, both(expected), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "transform",
    [lambda call, x: jax.jvp(call, (x,), (x,)), lambda call, x: jax.jacfwd(call)(x)],
    ids=["jvp", "jacfwd"],
)
def test_forward_mode_is_refused_with_the_reason(transform: Any) -> None:
    with pytest.raises(TypeError, match=r"forward-mode autodiff \(jvp\)"):
        transform(wj.softmax, jnp.ones((3, 8)))
