"""Modules as graphs of operator calls: sizes, modules, phases, and what cannot be recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import wavecast
from wavecast.errors import CaptureError, InputError, UnknownName, UsageError
from wavecast.runtimes.torch_graph import module_graph, script_graph
from wavecast.systems.sources.kernels import kernels

EXAMPLES = Path(__file__).parents[3] / "examples" / "models"


class Net(nn.Module):
    """An attention block with every norm, and tensors of every origin."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.root = nn.LayerNorm(32), nn.RMSNorm(32)
        self.up = nn.Linear(32, 96)
        self.constant = torch.ones(32)
        self.register_buffer("table", torch.zeros(10, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1], device=x.device)
        x = self.root(self.norm(x + self.get_buffer("table")[positions])) * self.constant
        q, k, v = self.up(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def counted(graph, phase: str = "forward") -> dict[str, int]:
    found: dict[str, int] = {}
    for kernel in kernels(graph):
        if kernel.phase == phase:
            name = kernel.operator.removeprefix("aten.")
            found[name] = found.get(name, 0) + 1
    return found


def test_a_forward_pass_has_the_operators_of_a_gpu() -> None:
    graph = module_graph(Net(), torch.empty(2, 10, 32))
    found = counted(graph)
    assert found["_fused_rms_norm"] == found["native_layer_norm"] == found["addmm"] == 1
    assert found["_scaled_dot_product_flash_attention"] == 1
    assert {call.module for call in graph.calls if call.name == "aten.addmm"} == {"up"}
    assert graph.classes["norm"] == "LayerNorm"


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_modules_and_inputs_of_any_device_have_one_graph(device) -> None:
    module = Net().to(device)
    module.constant = module.constant.to(device)
    constant = module.constant
    graph = module_graph(module, (torch.empty(2, 10, 32, device=device),))
    assert counted(graph) == counted(module_graph(Net(), {"x": torch.empty(2, 10, 32)}))
    assert module.constant is constant


def test_backward_calls_belong_to_the_module_of_their_forward_call() -> None:
    graph = module_graph(Net(), torch.empty(2, 10, 32), train=True, optimizer="adamw")
    assert graph.phases == ("forward", "backward", "optimizer")
    found = counted(graph, "backward")
    assert found["mm"] == 2
    assert found["_scaled_dot_product_flash_attention_backward"] == 1
    products = [c for c in graph.calls if c.phase == "backward" and c.name == "aten.mm"]
    assert {call.module for call in products} == {"up"}
    for name, module in (("native_layer_norm", "norm"), ("_fused_rms_norm", "root")):
        (norm,) = (c for c in graph.calls if c.name == f"aten.{name}_backward")
        assert norm.module == module


def test_a_step_of_an_optimizer_updates_every_weight_once() -> None:
    graph = module_graph(nn.Linear(64, 64), torch.empty(4, 64), train=True, optimizer="adamw")
    lists = [call for call in graph.calls if call.phase == "optimizer"]
    assert all(name.startswith("_foreach_") for name in counted(graph, "optimizer"))
    assert graph.state_bytes == 2 * 4 * (64 * 64 + 64)
    (last,) = (call for call in lists if call.name == "aten._foreach_addcdiv_")
    assert [spec.shape for spec in last.outputs] == [(64, 64), (64,)]


def test_nothing_is_computed_and_nothing_is_left_behind() -> None:
    module = Net()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    module_graph(module, torch.empty(2, 10, 32), train=True, optimizer="sgd")
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(weight.grad is None for weight in module.parameters())
    assert not module.up._forward_hooks


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


def test_what_cannot_be_recorded_is_one_line() -> None:
    x = torch.empty(2, 10, 32)
    with pytest.raises(
        CaptureError, match="Branch does not run on tensors without values"
    ) as error:
        module_graph(Branch(), x)
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match=r"is not a torch\.nn\.Module"):
        module_graph(print, x)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="inputs are"):
        module_graph(Net(), 3)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="unknown optimizer 'adamv'"):
        module_graph(Net(), x, train=True, optimizer="adamv")
    with pytest.raises(UsageError, match="an optimizer needs training"):
        module_graph(Net(), x, optimizer="adam")
    with pytest.raises(UsageError, match="no tensor with a gradient"):
        module_graph(nn.Identity(), x, train=True)


def test_wavecast_model_takes_a_module() -> None:
    report = wavecast.model(Net(), torch.empty(2, 10, 32), system="mi300x,h200")
    assert [answer.device.id for answer in report.answers] == ["mi300x", "h200"]
    assert "Net on AMD Instinct MI300X" in str(report)
    assert report.to_dict()["schema"] == "wavecast.graph/1"
    with pytest.raises(UsageError, match="a Net needs inputs"):
        wavecast.model(Net())


# --- scripts ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "factory", "parameters", "flops"),
    [
        ("resnet.py", "resnet50", 25_557_032, 64 * 8.18e9),
        ("vit.py", "base", 86_567_656, 64 * 35.1e9),
        pytest.param("diffusion.py", "step", 11.9e9, 7.44e13, marks=pytest.mark.thorough),
    ],
)
def test_examples_have_the_published_size(file, factory, parameters, flops) -> None:
    """ResNet-50 and ViT-B/16: torchvision's documentation (parameters, GFLOPs of
    multiply-adds); FLUX.1: 12 B parameters, of which a token is multiplied by 12 hidden² in each of
    57 blocks, and attention among 4608 tokens."""
    graph = script_graph(EXAMPLES / file, factory)
    assert graph.parameters == pytest.approx(parameters, rel=0.01)
    work = [kernel.part.op.work() for kernel in kernels(graph)]
    products = sum(
        count for one in work for dtype, count in (one.flops or {}).items() if "vector" not in dtype
    )
    assert products == pytest.approx(flops, rel=0.05)


SCRIPT = """
import torch
print("a line of the script")
def make():
    module = torch.nn.Linear(1 << 17, 1 << 17).to("cuda", torch.bfloat16)
    return module, torch.randn(8, 1 << 17, device="cuda", dtype=torch.bfloat16)
def moved():
    return torch.nn.Linear(1 << 17, 1 << 17).cuda(), torch.randn(8, 1 << 17).cuda()
def number():
    return 3
def broken():
    raise ValueError("no such layer")
"""


@pytest.mark.parametrize(("factory", "element"), [("make", 2), ("moved", 4)])
def test_a_script_makes_a_module_that_no_memory_has_room_for(
    tmp_path, capsys, factory: str, element: int
) -> None:
    path = tmp_path / "net.py"
    path.write_text(SCRIPT)
    graph = script_graph(path, factory)
    assert graph.parameter_bytes == element * ((1 << 34) + (1 << 17))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        ("number", UsageError, "returns a int"),
        ("broken", CaptureError, r"ValueError: no such layer \(net.py:12\)"),
        ("mke", UnknownName, "nearest known: make"),
    ],
)
def test_mistakes_of_a_script_are_one_line(factory, error, message, tmp_path) -> None:
    path = tmp_path / "net.py"
    path.write_text(SCRIPT)
    with pytest.raises(error, match=message):
        script_graph(path, factory)


def test_a_script_that_is_none(tmp_path) -> None:
    with pytest.raises(InputError, match="no such script"):
        script_graph(tmp_path / "nothing.py", "make")
    path = tmp_path / "bad.py"
    path.write_text("import nothing_of_this_name")
    with pytest.raises(CaptureError, match="ModuleNotFoundError"):
        script_graph(path, "make")
