"""What the kernel library changes in a module: which calls, of which sizes, and their times."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import wavecast
from wavecast.arch.systems import system
from wavecast.errors import UsageError
from wavecast.kernels.registry import operator
from wavecast.pipeline.models.replacing import library_call, replace_calls
from wavecast.systems.sources.calls import ModuleGraph
from wavecast.systems.sources.described import DescribedModel


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 32, 3, padding=1)
        self.norm, self.root = nn.LayerNorm(32), nn.RMSNorm(32)
        self.qkv = nn.Linear(32, 96)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv(x).flatten(2).transpose(1, 2)
        x = self.qkv(self.root(self.norm(x)))
        q, k, v = x.unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.fixture(scope="module")
def graph() -> ModuleGraph:
    from wavecast.runtimes.torch_graph import module_graph

    return module_graph(Block().half(), torch.empty(2, 8, 16, 16, dtype=torch.half))


def test_calls_become_operators_with_the_sizes_that_these_take(graph) -> None:
    found = {one[0]: dict(one[1]) for one in map(library_call, graph.calls) if one}
    assert found["matmul"] == {
        "m": 512, "n": 96, "k": 32, "dtype": "float16", "layout": "NT", "bias": True
    }  # fmt: skip
    assert found["layer_norm"] == {"rows": 512, "columns": 32, "dtype": "float16"}
    assert set(found) == {"matmul", "layer_norm", "rms_norm", "attention", "convolution"}
    for name, sizes in found.items():
        flops = operator(name).work(**sizes).flops
        assert flops, name
    taps = 8 * 3 * 3
    assert sum((operator("convolution").work(**found["convolution"]).flops or {}).values()) == (
        pytest.approx(2 * 2 * 16 * 16 * 32 * taps, rel=0.02)
    )


def test_calls_of_other_dtypes_and_phases_stay() -> None:
    from wavecast.runtimes.torch_graph import module_graph

    wide = module_graph(nn.Linear(8, 8).double(), torch.empty(4, 8, dtype=torch.double))
    assert not any(map(library_call, wide.calls))
    trained = module_graph(nn.Linear(8, 8), torch.empty(4, 8), train=True)
    backward = [call for call in trained.calls if call.phase == "backward"]
    assert backward
    assert not any(map(library_call, backward))


def test_a_description_has_no_calls() -> None:
    with pytest.raises(UsageError, match="a YAML file lists kernels"):
        replace_calls(DescribedModel(ModuleGraph("own", ()), ()), system("mi300x"))


def test_the_promise_is_the_replaced_model() -> None:
    """A gated MLP and a norm that are written out: no recorded call says what replaces them."""

    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight, self.variance_epsilon = nn.Parameter(torch.ones(256)), 1e-6

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            wide = x.float()
            scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
            return self.weight * scaled.to(x.dtype)

    Norm.__name__ = "LlamaRMSNorm"
    module = nn.Sequential(Norm(), nn.Linear(256, 512)).bfloat16()
    promise = wavecast.ops.predicted(module, torch.empty(64, 256, dtype=torch.bfloat16), "mi300x")
    assert {change.module: change.operators for change in promise.changes} == {
        "0": ("rms_norm",), "1": ("matmul",)
    }  # fmt: skip
    names = {time.kernel.operator for time in promise.after.times}
    assert names == {"wavecast.rms_norm", "wavecast.matmul"}
    assert len(promise.before.times) > 5
    assert not any("wavecast" in note for note in promise.after.notes)
    assert "forward" not in module[0].__dict__, "the modules are as they were"


@pytest.mark.thorough
def test_kernels_of_the_library_are_priced_from_their_code() -> None:
    """A norm alone: the library reads and writes the rows once."""
    module, x = nn.RMSNorm(4096).bfloat16(), torch.empty(8192, 4096, dtype=torch.bfloat16)
    found = wavecast.ops.predicted(module, x, "mi300x")
    (change,) = found.changes
    assert (change.module, change.kind, change.operators) == ("", "RMSNorm", ("rms_norm",))
    assert change.after >= 2 * 8192 * 4096 * 2 / 17.2e12  # the memory-side cache's peak
    assert 0.5 < change.speedup < 3
    assert found.after.times[0].kernel.operator == "wavecast.rms_norm"
    assert "RMSNorm on mi300x" in str(found)


def test_replace_tells_what_is_predicted_before_anything_runs(monkeypatch) -> None:
    asked = []

    def predicted(*given, **options) -> str:
        asked.append((given, options, "forward" in module.__dict__))
        return "a table"

    monkeypatch.setattr(wavecast.ops, "predicted", predicted)
    module, x = nn.RMSNorm(64), torch.empty(8, 64)
    account = wavecast.ops.replace(module, inputs=x, system="mi355x")
    assert asked == [((module, x, "mi355x"), {"jobs": 1}, False)]
    assert str(account).splitlines() == ["1 x RMSNorm -> rms_norm", "", "a table"]
    account.undo()
    assert wavecast.ops.replace(nn.RMSNorm(64)).predicted is None
