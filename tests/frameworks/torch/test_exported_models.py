"""Operators of the library in exported programs and in packages of AOTInductor."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import wavecast

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]


def operators(program: Any) -> set[str]:
    """Names of the library's operators in an exported program."""
    targets = (str(node.target) for node in program.graph.nodes if node.op == "call_function")
    return {one.split(".")[1] for one in targets if one.startswith("wavecast.")}


@pytest.mark.operators
def test_a_model_of_transformers_is_exported_saved_and_loaded(tmp_path: Path) -> None:
    """The loaded program launches kernels on the emulated GPU, and gives what the model gives, for
    another number of tokens than it was exported with."""
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    from wavecast import ops

    config = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()

    class Logits(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any) -> Any:
            return self.model(ids, use_cache=False).logits

    ids, longer = torch.randint(0, 128, (2, 12)), torch.randint(0, 128, (2, 23))
    tokens = torch.export.Dim("tokens", min=2, max=64)
    with torch.no_grad():
        expected = Logits()(longer)
        ops.replace(model)
        program = torch.export.export(Logits(), (ids,), dynamic_shapes=({1: tokens},))
    assert operators(program) == {"attention", "matmul", "rms_norm", "silu_mul"}
    path = tmp_path / "llama.pt2"
    torch.export.save(program, path)
    loaded = torch.export.load(path).module()
    with wavecast.device("gfx942") as gpu, torch.no_grad():
        found = loaded(longer)
    assert gpu.executed >= 13  # 8 products, 3 norms, a gated activation, attention
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.thorough
def test_a_package_of_aotinductor_calls_operators(tmp_path: Path) -> None:
    """Inductor's C++ code calls them by PyTorch's dispatcher, with sizes that differ from those it
    was compiled with."""
    if shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler: g++")
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    from wavecast import ops

    class Gated(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.RMSNorm(64)
            self.up, self.down = torch.nn.Linear(64, 128), torch.nn.Linear(64, 64)

        def forward(self, x: Any) -> Any:
            return self.down(ops.silu_mul(self.up(self.norm(x)))) + x

    torch.manual_seed(0)
    model, x, longer = Gated().eval(), torch.randn(5, 64), torch.randn(9, 64)
    with torch.no_grad():
        expected = model(longer)
        ops.replace(model)
        rows = torch.export.Dim("rows", min=2, max=64)
        program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
        path = aoti_compile_and_package(program, package_path=str(tmp_path / "gated.pt2"))
        package = aoti_load_package(path)
        with wavecast.device("gfx942") as gpu:
            found = package(longer)
            assert gpu.executed == 4
            assert torch.equal(found, model(longer))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(package(longer), expected, rtol=1e-4, atol=1e-5)
