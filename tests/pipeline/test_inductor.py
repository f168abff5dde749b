"""`torch.compile` in `wavecast model`: Inductor's kernels, captured and predicted."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from wavecast.arch.systems import system  # noqa: E402
from wavecast.errors import CaptureError, UsageError  # noqa: E402
from wavecast.pipeline.models.module_answers import module_answers  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

WIDTH, HEADS = 256, 4
GENERATED = "triton_"


class Block(nn.Module):
    """A transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.last_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.last_norm(x))))


def made() -> tuple:
    with torch.device("meta"):
        return Block().to(torch.bfloat16), torch.empty(2, 128, WIDTH, dtype=torch.bfloat16)


def kinds(answer) -> list[str]:
    return [
        "generated" if one.kernel.operator.startswith(GENERATED) else one.kernel.operator
        for one in answer.times
    ]


class Chain(nn.Module):
    """Element-wise calls, which Inductor fuses, around a product."""

    def __init__(self) -> None:
        super().__init__()
        self.middle = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.middle(x.sin().cos().exp()).tanh().square()


def test_memory_is_that_of_the_buffers_of_compiled_code() -> None:
    """Eager mode has two intermediate results at once, as the compiled code has around the
    product; in training the compiled code keeps what the backward pass reads."""
    with torch.device("meta"):
        module, x = Chain(), torch.empty(1024, WIDTH)
    size, weights = x.numel() * 4, WIDTH * WIDTH * 4
    peaks = {}
    for engine in ("eager", "torch.compile"):
        for train in (False, True):
            (answer,), _ = module_answers(module, x, [system("mi300x")], engine=engine, train=train)
            assert answer.memory.parts["weights"] == weights
            assert answer.memory.parts["inputs"] == size
            peaks[engine, train] = answer.memory.parts["activations, gradients"]
    assert peaks["eager", False] == peaks["torch.compile", False] == 2 * size
    assert 2 * size < peaks["torch.compile", True] < peaks["eager", True]


def test_generated_kernels_and_library_calls_are_in_the_order_of_launches() -> None:
    module, x = made()
    (answer,), changed = module_answers(module, x, [system("mi300x")], engine="torch.compile")
    assert not changed
    assert kinds(answer) == [
        "generated",  # norm
        "aten.addmm",
        "aten._scaled_dot_product_flash_attention",
        "aten.addmm",
        "generated",  # add, norm
        "aten.addmm",
        "generated",  # gelu
        "aten.addmm",
        "generated",  # add
    ]
    first, gelu, add = (answer.times[number] for number in (0, 6, 8))
    assert "native_layer_norm" in first.kernel.operator
    assert "gelu" in gelu.kernel.operator
    assert "add" in add.kernel.operator
    for one in (first, gelu, add):
        assert one.priced.kernel == one.kernel.operator  # predicted from its code
        assert not one.priced.bounded
        assert one.priced.low <= one.seconds <= one.priced.high
    # The bytes are those of the tensors: the result of a projection is read and written.
    assert gelu.priced.node.op.work().bytes == pytest.approx(2 * 2 * 128 * 4 * WIDTH * 2)
    (fused,), _ = module_answers(module, x, [system("mi300x")], engine="fusion-rule")
    assert answer.total.value == pytest.approx(fused.total.value, rel=0.5)


def test_a_source_without_code_is_refused(tmp_path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("kernels:\n- {op: gemm, shape: 64x64x64}\n")
    for source in (str(path), "program.pt2"):
        with pytest.raises(UsageError, match=r"torch\.compile needs a module"):
            module_answers(source, None, [system("mi300x")], engine="torch.compile")


@pytest.mark.thorough
def test_a_training_step_has_the_kernels_of_both_passes() -> None:
    module, x = made()
    (answer,), _ = module_answers(
        module,
        x,
        [system("rx9070xt")],
        engine="torch.compile",
        train=True,
        optimizer="adamw",
    )
    assert set(answer.by_phase) == {"forward", "backward", "optimizer"}
    names = [one.kernel.operator for one in answer.times if one.kernel.phase == "backward"]
    assert any("native_layer_norm_backward" in name for name in names)
    assert "aten._scaled_dot_product_flash_attention_backward" in names
    assert names.count("aten.mm") == 8


@pytest.mark.thorough
def test_libraries_get_the_layouts_that_were_compiled() -> None:
    """A convolution of a channels-last image, as a vision transformer begins."""

    class Patches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Conv2d(3, 64, 16, 16)

        def forward(self, x):
            return functional.gelu(self.embed(x).flatten(2).transpose(1, 2))

    (answer,), _ = module_answers(
        Patches(), torch.empty(2, 3, 64, 64), [system("mi300x")], engine="torch.compile"
    )
    assert "aten.convolution" in kinds(answer)
    assert kinds(answer)[-1] == "generated"


@pytest.mark.thorough
def test_operators_of_a_program_are_recorded_and_not_computed() -> None:
    ran = []

    @torch.library.custom_op("wavecast_tests::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:  # pyright: ignore[reportInvalidTypeForm]
        ran.append(x)
        return 2 * x

    @doubled.register_fake
    def _(x):
        return torch.empty_like(x)

    class Own(nn.Module):
        def forward(self, x):
            return doubled(x + 1) * 3

    (answer,), _ = module_answers(
        Own(), torch.empty(1 << 16), [system("mi300x")], engine="torch.compile"
    )
    assert kinds(answer) == ["generated", "wavecast_tests.doubled", "generated"]
    assert any(note.startswith("wavecast_tests.doubled: only a bound") for note in answer.notes)
    assert not ran


def test_patterns_of_a_graph_without_tensors_are_matched_on_the_cpu() -> None:
    """Inductor takes a GPU where a graph that it compiles first has no tensors."""
    from torch._inductor import compile_fx

    from wavecast.runtimes.torch_graph.compiled import LaunchRecorder, _without_trials

    graph = torch.fx.GraphModule({}, torch.fx.Graph())
    assert compile_fx.get_inputs_devices((), graph) == [None]
    with _without_trials(LaunchRecorder()):
        assert compile_fx.get_inputs_devices((), graph) == [torch.device("cpu")]
    assert compile_fx.get_inputs_devices((), graph) == [None]


@pytest.mark.thorough
def test_a_module_that_looks_at_values_is_refused() -> None:
    class Looks(nn.Module):
        def forward(self, x):
            return x * 2 if x.sum() > 0 else x

    with pytest.raises(CaptureError, match="values"):
        module_answers(Looks(), torch.empty(8), [system("mi300x")], engine="torch.compile")


def test_launches_of_an_autotuner_are_left_out(monkeypatch) -> None:
    """A reduction over many elements is timed in several configurations, on copies of tensors."""
    from torch._inductor.utils import fresh_cache

    from wavecast.runtimes.torch_graph import compiled

    monkeypatch.setattr(compiled, "_SETTINGS", {"max_autotune_pointwise": True})

    class Mean(nn.Module):
        def forward(self, x):
            return (x * 3).mean(-1)

    with fresh_cache():  # Inductor keeps what it chose
        (answer,), _ = module_answers(
            Mean(), torch.empty(48, 6144), [system("mi300x")], engine="torch.compile"
        )
    assert kinds(answer) == ["generated"]
