"""Top-k of AITER, layer norm of ONNX Runtime, convolution of ggml."""

from __future__ import annotations

import pytest
import torch

from tests.libraries.launching import launch, library_kernel, needs_objects

pytestmark = [needs_objects, pytest.mark.torch, pytest.mark.thorough]


def test_top_k_of_rows() -> None:
    """Its code begins with a trap for firmware that does not preload arguments."""
    kernel = library_kernel("aiter_gfx942_topk_per_row_decode_asm_top_k_per_row_decode.co")
    rows, columns, k = 2, 3000, 2048
    logits = torch.randn(rows, columns, generator=torch.Generator().manual_seed(5))
    lengths = torch.tensor([columns, 2500], dtype=torch.int32)
    out = torch.full((rows, k), -1, dtype=torch.int32)
    arguments = {"@0": logits, "@8": lengths, "@16": out, "@24": columns, "@28": 1, "@32": 1}
    launch(kernel, (rows, 1, 1), 1024, arguments)
    for row, length in enumerate(lengths.tolist()):
        expected = set(logits[row, :length].topk(k).indices.tolist())
        assert set(out[row].tolist()) == expected


def test_layer_norm() -> None:
    kernel = library_kernel("ort_ayerNorm_1_gfx942.co", "IfffLb0E")
    rows, columns, waves = 5, 320, 4
    draw = torch.Generator().manual_seed(6)
    x = torch.randn(rows, columns, generator=draw)
    gamma, beta = (torch.randn(columns, generator=draw) for _ in range(2))
    out, mean, inverse = torch.zeros_like(x), torch.zeros(rows), torch.zeros(rows)
    arguments = {
        "@0": out, "@8": mean, "@16": inverse, "@24": x, "@32": rows, "@36": columns,
        "@40": 1e-5, "@48": gamma, "@56": beta,
    }  # fmt: skip
    lds = 4 * waves + 4 * (waves // 2)
    launch(kernel, (1, rows, 1), (64, waves, 1), arguments, dynamic_lds=lds)
    expected = torch.nn.functional.layer_norm(x, (columns,), gamma, beta)
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mean, x.mean(1), rtol=1e-5, atol=1e-6)


def test_depthwise_convolution() -> None:
    kernel = library_kernel("ggml_conv2d_1_gfx1100.co", "kernelIf11whcn")
    channels, batch, width, height, size = 3, 2, 19, 17, 3
    stride, padding, dilation = (1, 2), (2, 1), (2, 1)  # of rows and columns
    draw = torch.Generator().manual_seed(7)
    x = torch.randn(batch, channels, height, width, generator=draw)
    weight = torch.randn(channels, 1, size, size, generator=draw)
    expected = torch.nn.functional.conv2d(
        x, weight, stride=stride, padding=padding, dilation=dilation, groups=channels
    )
    out = torch.zeros_like(expected)
    numbers = [
        width, height, out.shape[3], out.shape[2], size, size, *reversed(stride),
        *reversed(padding), *reversed(dilation), channels, batch,
    ]  # fmt: skip
    arguments = {"@0": x, "@8": weight, "@16": out}
    arguments |= {f"@{24 + 4 * index}": number for index, number in enumerate(numbers)}
    launch(kernel, (-(-out.numel() // 256), 1, 1), 256, arguments)
    torch.testing.assert_close(out, expected)
