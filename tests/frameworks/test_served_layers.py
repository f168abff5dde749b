"""What the plugins of serving engines cover, and what their pages say of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.frameworks.served import served_calls

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("engine", "also"), [("vllm", {"top_k_top_p_mask"}), ("sglang", set())])
def test_pages_list_the_operators(engine: str, also: set[str]) -> None:
    """The last column of the table of layers has every operator that the plugin calls, and no
    other. `top_k_top_p_mask` makes logits for a report."""
    page = (DOCS / f"{engine}.md").read_text().split("## What is covered")[1].split("\n## ")[0]
    cells = [line.rsplit("|", 2)[1] for line in page.splitlines() if line.startswith("| ")]
    listed = {one for cell in cells for one in re.findall(r"`(\w+)`", cell)}
    assert listed == {operator for _, operator in served_calls(engine)} - also


@pytest.mark.torch
def test_calls_are_counted_outside_of_graphs() -> None:
    """A graph is compiled once, and says so once; calls that are not compiled are counted."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from wavecast.frameworks.serving import ServedCalls

    calls, graphs = ServedCalls(), []
    norm = calls.serve("RMSNorm", "rms_norm")

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def program(x, weight):
        return norm(x, weight, 1e-6) * 2

    x, weight = torch.randn(4, 8), torch.ones(8)
    torch._dynamo.reset()
    compiled = torch.compile(program, backend=backend, fullgraph=True)
    for _ in range(4):
        torch.testing.assert_close(compiled(x, weight), program(x, weight))
    assert len(graphs) == 1
    assert calls == {("RMSNorm", "rms_norm"): 4}
    assert calls.traced == {("RMSNorm", "rms_norm"): 1}


@pytest.mark.torch
def test_scales_of_gate_and_up_become_one() -> None:
    """Codes of the smaller scale are rounded to the larger; squares at the edge are counted."""
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    from wavecast.frameworks.serving import by_square

    weight = torch.randn(2, 260, 130).mul(50).to(torch.float8_e4m3fn)
    scale = torch.tensor([[1.0, 0.5], [2.0, 2.0]])
    codes, squares = by_square(weight, scale)
    assert squares.tolist() == [[[1.0] * 2] * 3, [[2.0] * 2] * 3]
    values = codes.float() * squares[:, :1, :1]
    expected = weight.float() * scale.repeat_interleave(130, dim=1)[..., None]
    torch.testing.assert_close(values, expected, rtol=2**-4, atol=2**-9)
    assert torch.equal(codes[1], weight[1])
