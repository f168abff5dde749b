"""The kernel library on tensors of TensorFlow: results, gradients, the machine code of a GPU."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("needs TensorFlow: pip install 'wavecast[tensorflow]'", allow_module_level=True)
torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import wavecast.tensorflow as wt  # noqa: E402  isort: skip
import tensorflow as tf  # noqa: E402

from tests.frameworks.framework_calls import inputs_of, listed  # noqa: E402
from wavecast import device as emulated  # noqa: E402
from wavecast import ops  # noqa: E402
from wavecast.errors import ArgumentError, UsageError  # noqa: E402
from wavecast.frameworks.host_calls import arrays  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

MISSING = ("float8_e4m3fnuz", "float8_e5m2fnuz")
"""Dtypes that TensorFlow has not."""


def in_tensorflow(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors of PyTorch as those of TensorFlow."""
    return {
        name: tf.convert_to_tensor(arrays.array(one)) if isinstance(one, torch.Tensor) else one
        for name, one in inputs.items()
    }


def same(got: Any, expected: Any) -> None:
    """Bit by bit."""
    want, found = arrays.array(expected), got.numpy()
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("name", wt.names())
def test_every_operator_gives_what_it_gives_in_pytorch(name: str) -> None:
    inputs = inputs_of(name)
    if any(str(one) in MISSING for one in map(_dtype_name, inputs.values())):
        pytest.skip("TensorFlow has no fnuz dtypes")
    got = listed(getattr(wt, name)(**in_tensorflow(inputs)))
    results = listed(getattr(ops, name)(**inputs))
    written = [inputs[one] for one in ops.operator(name).mutates]
    assert len(got) == len(results) + len(written)
    for found, expected in zip(got, [*results, *written], strict=True):
        same(found, expected)


def _dtype_name(value: Any) -> str:
    dtype = value if isinstance(value, torch.dtype) else getattr(value, "dtype", "")
    return str(dtype).removeprefix("torch.")


@pytest.mark.parametrize("name", ["rms_norm", "softmax", "kv_cache_write"])
@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_traced_calls_execute_machine_code(name: str, target: str) -> None:
    inputs = inputs_of(name)
    tensors = in_tensorflow(inputs)
    with wt.device(target):
        got = listed(tf.function(lambda: getattr(wt, name)(**tensors))())
    with emulated(target) as hooks:
        results = listed(getattr(ops, name)(**inputs))
    assert hooks.executed
    written = [inputs[one] for one in ops.operator(name).mutates]
    for found, expected in zip(got, [*results, *written], strict=True):
        same(found, expected)


@pytest.mark.parametrize("target", ["", "gfx942"])
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_are_those_of_pytorch(target: str, traced: bool) -> None:
    rng = np.random.default_rng(0)
    x, weight = (tf.Variable(rng.standard_normal(n, np.float32)) for n in ((5, 96), (96,)))

    def step() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(wt.rms_norm(x, weight) ** 2)
        return tape.gradient(loss, [x, weight])

    with wt.device(target) if target else pytest.MonkeyPatch.context():
        found = tf.function(step)() if traced else step()
    theirs = [torch.tensor(one.numpy(), requires_grad=True) for one in (x, weight)]
    (ops.rms_norm(*theirs) ** 2).sum().backward()
    for got, want in zip(found, theirs, strict=True):
        assert want.grad is not None
        np.testing.assert_allclose(got.numpy(), want.grad.numpy(), rtol=2e-5, atol=2e-6)


def test_arguments_without_a_gradient_have_none() -> None:
    inputs = in_tensorflow(inputs_of("cross_entropy"))
    logits = inputs.pop("logits")
    with tf.GradientTape() as tape:
        tape.watch([logits, inputs["targets"]])
        loss = tf.reduce_sum(listed(wt.cross_entropy(logits, **inputs))[0])
    found, none = tape.gradient(loss, [logits, inputs["targets"]])
    assert none is None
    assert float(tf.reduce_max(tf.abs(found))) > 0


def test_a_keras_layer_trains() -> None:
    class Norm(tf.keras.layers.Layer):
        def build(self, shape: Any) -> None:
            self.scale = self.add_weight(shape=(shape[-1],), initializer="ones")

        def call(self, x: Any) -> Any:
            return wt.rms_norm(x, self.scale)

    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(32), Norm(), tf.keras.layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse")
    x = np.random.default_rng(0).standard_normal((64, 16), np.float32)
    history = model.fit(x, x[:, :1], epochs=4, batch_size=16, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < losses[0]


def test_the_wrong_order_of_imports_is_an_error() -> None:
    code = "import tensorflow\nimport wavecast.tensorflow"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "is imported after tensorflow" in done.stderr.splitlines()[-1]


def test_bad_use() -> None:
    x = tf.ones((4, 64))
    with pytest.raises(ArgumentError, match="eps must be a Python value, not an array"):
        wt.rms_norm(x, x[0], eps=tf.constant(1e-6))
    with pytest.raises(UsageError, match="takes lists of tensors"):
        wt.adamw_foreach  # noqa: B018
    with pytest.raises(AttributeError, match="no operator 'nothing'"):
        wt.nothing  # noqa: B018
    unknown = tf.function(wt.softmax, input_signature=[tf.TensorSpec((None, 64))])
    with pytest.raises(UsageError, match="the shape of x is not known"):
        unknown(x)
    with emulated("gfx942"), pytest.raises(Exception, match="a call of another framework"):
        wt.softmax(x)
