"""Keras layers of the kernel library: values, gradients, training, the machine code of a GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("tensorflow") is None:
    pytest.skip("needs TensorFlow: pip install 'wavecast[tensorflow]'", allow_module_level=True)
pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

import tensorflow as tf

import wavecast.tensorflow as wt
from wavecast.errors import UsageError

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def rms_norm(layer: Any, x: Any) -> Any:
    return x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6) * layer.scale


def layer_norm(layer: Any, x: Any) -> Any:
    mean, variance = tf.nn.moments(x, -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * layer.scale + layer.bias


def attention(layer: Any, x: Any) -> Any:
    """Two heads share one of keys."""
    q, k, v = tf.split(x @ layer.qkv, [16, 8, 8], axis=-1)
    q = tf.transpose(tf.reshape(q, (2, 5, 2, 8)), (0, 2, 1, 3))
    scores = tf.einsum("bhsd,btd->bhst", q, k) * 8**-0.5
    causal = tf.linalg.band_part(tf.ones((5, 5)), -1, 0)
    scores = tf.where(causal > 0, scores, -1e30)
    found = tf.einsum("bhst,btd->bshd", tf.nn.softmax(scores), v)
    return tf.reshape(found, (2, 5, 16)) @ layer.out


def gated(layer: Any, x: Any) -> Any:
    gate, up = tf.split(x @ layer.gate_up, 2, axis=-1)
    return (tf.nn.silu(gate) * up) @ layer.down


def experts(layer: Any, x: Any) -> Any:
    """All experts for all tokens, weighted by zero where they are not chosen."""
    scores = tf.nn.softmax(x @ layer.router)
    least = tf.math.top_k(scores, 2).values[..., -1:]
    weights = tf.where(scores >= least, scores, 0.0)
    weights = weights / tf.reduce_sum(weights, -1, keepdims=True)
    gate, up = tf.split(tf.einsum("bsd,eud->bseu", x, layer.gate_up), 2, axis=-1)
    each = tf.einsum("bseu,edu->bsed", tf.nn.silu(gate) * up, layer.down)
    return tf.einsum("bsed,bse->bsd", each, weights)


def convolution(layer: Any, x: Any) -> Any:
    """TensorFlow on the CPU has no gradients of dilated kernels, so zeros are put between."""
    kernel, (apart,) = layer.kernel, {*layer.dilation_rate}
    if apart > 1:
        at = [[apart * number] for number in range(kernel.shape[0])]
        kernel = tf.scatter_nd(at, kernel, (at[-1][0] + 1, *kernel.shape[1:]))
    function = {3: tf.nn.conv1d, 4: tf.nn.conv2d}[len(x.shape)]
    strides = layer.strides if len(x.shape) == 4 else layer.strides[0]
    y = function(x, kernel, strides, layer.padding.upper()) + layer.bias
    return tf.nn.silu(y) if layer.activation == "silu" else y


L = wt.layers
CASES: dict[str, tuple[Callable[[], Any], tuple[int, ...], Callable[..., Any]]] = {
    "rms_norm": (L.KerasRMSNorm, (2, 5, 12), rms_norm),
    "layer_norm": (L.KerasLayerNorm, (2, 5, 12), layer_norm),
    "attention": (lambda: L.KerasAttention(2, 8, 1), (2, 5, 12), attention),
    "gated": (lambda: L.KerasGatedMLP(20), (2, 5, 12), gated),
    "experts": (lambda: L.KerasExperts(4, 2, 8), (2, 5, 12), experts),
    "strided": (
        lambda: L.KerasConvolution(6, (3, 2), (2, 1), "same", activation="silu"),
        (2, 6, 5, 4), convolution,
    ),
    "dilated": (lambda: L.KerasConvolution(6, (3,), dilation_rate=2), (2, 9, 4), convolution),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["", "gfx942"])
def test_values_and_gradients_are_those_of_tensorflow(name: str, target: str) -> None:
    """The reference on the CPU, and the machine code of a GPU; in tf.function too."""
    make, shape, reference = CASES[name]
    layer = make()
    x = tf.Variable(np.random.default_rng(0).normal(size=shape).astype("float32"))
    layer.build(shape)
    for weight in layer.weights:
        weight.assign_add(0.1 * tf.ones_like(weight))

    def run(call: Callable[..., Any]) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            y = call(tf.convert_to_tensor(x))
            loss = tf.reduce_sum(y * y)
        return y, tape.gradient(loss, [x, *layer.trainable_weights])

    expected, grads = run(lambda given: reference(layer, given))
    if target:
        with wt.device(target):
            found, own = run(tf.function(layer))
    else:
        found, own = run(layer)
    assert found.shape == layer.compute_output_shape(shape)
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
    assert len(own) == len(grads) == 1 + len(layer.weights)
    for one, other in zip(own, grads, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("name", CASES)
def test_layers_are_rebuilt_from_their_configuration(name: str) -> None:
    make, shape, _ = CASES[name]
    layer = make()
    again = type(layer).from_config(layer.get_config())
    layer.build(shape)
    again.build(shape)
    again.set_weights(layer.get_weights())
    x = tf.random.stateless_normal(shape, (0, 1))
    np.testing.assert_array_equal(layer(x), again(x))


def test_a_functional_model_trains() -> None:
    """The loss of a block of a transformer falls."""
    inputs = tf.keras.Input((4, 8), batch_size=2)
    x = inputs + L.KerasAttention(2, 8)(L.KerasRMSNorm()(inputs))
    model = tf.keras.Model(inputs, x + L.KerasExperts(4, 2, 16)(L.KerasRMSNorm()(x)))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.2), loss="mse", run_eagerly=True)
    rows = np.random.default_rng(1).normal(size=(2, 4, 8)).astype("float32")
    losses = [model.train_on_batch(rows, np.ones_like(rows)) for _ in range(5)]
    assert float(losses[-1]) < 0.8 * float(losses[0])


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: L.KerasAttention(3, 8, 2), "3 heads do not divide among 2 of keys"),
        (lambda: L.KerasExperts(2, 3, 8), "top_k is 3 of 2 experts"),
        (lambda: L.KerasConvolution(4, ()), "one to three numbers"),
        (lambda: L.KerasConvolution(4, (3,), padding="causal"), "not 'causal'"),
        (lambda: L.KerasConvolution(4, (3,), groups=3), "4 filters do not divide among 3"),
        (lambda: L.KerasConvolution(4, (3, 3), (1, 1, 1)), "strides .*: one number, or 2"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make()
