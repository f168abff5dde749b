"""What the host does instead of kernels of vLLM; vLLM is not needed for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from wavecast.frameworks.vllm import host_kernels  # noqa: E402

pytestmark = pytest.mark.torch


def test_states_are_gathered_scattered_and_copied() -> None:
    states, slots = torch.arange(24.0).view(4, 2, 3), torch.tensor([2, 0, 3], dtype=torch.int32)
    rows = host_kernels.gather_initial_states(states, slots, torch.tensor([True, False, True]))
    assert torch.equal(rows, torch.stack([states[2], torch.zeros(2, 3), states[3]]))
    host_kernels.scatter_states(states, -rows, slots)
    assert torch.equal(states[2], -rows[0])
    assert torch.equal(states[1], torch.arange(6.0, 12).view(2, 3))
    source, target = torch.arange(5, dtype=torch.int32), torch.zeros(5, dtype=torch.int32)
    pointers = [torch.tensor([one.data_ptr(), one.data_ptr() + 16]) for one in (source, target)]
    host_kernels.copy_memory(*pointers, torch.tensor([8, 4]), BLOCK_SIZE=1024)
    assert target.tolist() == [0, 1, 0, 0, 4]


def unrolled(given: dict[str, Any], first: int, end: int, start: Any) -> tuple[Any, Any]:
    """Outputs of the tokens of one sequence [columns, tokens], and its last state: every token's
    share of every later one by itself, in float64."""
    A, groups = given["A"], given["B"].shape[0]
    repeat = given["u"].shape[0] // groups
    B, C = (given[name].repeat(repeat, axis=0)[:, :, first:end] for name in "BC")
    u, steps = (
        given["u"][:, first:end],
        np.log1p(np.exp(given["delta"][:, first:end] + given["bias"])),
    )
    outputs, state = [], None
    for token in range(end - first):
        state = start * np.exp(steps[:, : token + 1].sum(1)[:, None] * A)
        for other in range(token + 1):
            decay = np.exp(steps[:, other + 1 : token + 1].sum(1)[:, None] * A)
            state = state + decay * (steps[:, other] * u[:, other])[:, None] * B[:, :, other]
        outputs.append((state * C[:, :, token]).sum(1) + given["D"] * u[:, token])
    return np.stack(outputs, 1), state


@pytest.mark.parametrize("gated", [True, False])
def test_a_selective_scan(gated: bool) -> None:
    generator = np.random.default_rng(3)
    columns, states, groups, starts = 4, 3, 2, [0, 5, 6, 10]
    sizes = {"u": (columns, 10), "delta": (columns, 10), "bias": (columns, 1), "D": (columns,)}
    sizes |= {"B": (groups, states, 10), "C": (groups, states, 10), "z": (columns, 10)}
    given = {name: generator.normal(size=size) for name, size in sizes.items()}
    given["A"] = -generator.uniform(0.5, 2, (columns, states))
    cache = generator.normal(size=(6, columns, states))
    tensors = {name: torch.tensor(one, dtype=torch.float32) for name, one in given.items()}
    kept = torch.tensor(cache, dtype=torch.float32)
    host_kernels.selective_scan_fwd(
        tensors["u"], tensors["delta"], tensors["A"], tensors["B"], tensors["C"], tensors["D"],
        tensors["z"] if gated else None, tensors["bias"].flatten(), True, torch.tensor(starts),
        torch.tensor([4, 0, 2]), torch.tensor([True, True, False]), kept, 0,
    )  # fmt: skip
    result = tensors["z" if gated else "delta"].numpy()
    for first, end, slot, start in ((0, 5, 4, cache[4]), (6, 10, 2, 0 * cache[2])):
        output, state = unrolled(given, first, end, start)
        z = given["z"][:, first:end]
        expected = output * z / (1 + np.exp(-z)) if gated else output
        np.testing.assert_allclose(result[:, first:end], expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(kept[slot].numpy(), state, rtol=1e-4, atol=1e-5)
    untouched = [0, 1, 3, 5]
    assert torch.equal(kept[untouched], torch.tensor(cache, dtype=torch.float32)[untouched])


def test_scans_that_are_refused() -> None:
    one = torch.zeros(1, 1)
    operands = (one, one, one, one[None], one[None], None, None, None, True)
    with pytest.raises(NotImplementedError, match="one length"):
        host_kernels.selective_scan_fwd(*operands, None, None, None, one[None], 0)
    with pytest.raises(NotImplementedError, match="prefixes"):
        host_kernels.selective_scan_fwd(*operands, one, one, None, one[None], 0, 16, one)
