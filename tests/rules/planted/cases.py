"""The planted kernels: what is wrong with each, how it is launched, and what should be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

KERNELS = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class PlantedKernel:
    """A kernel with one mistake (`# planted` marks its line) and the same kernel without it.

    `rule` should report the mistake. HIP kernels have a grid, a block and arguments in the language
    of `wavecast run`; `fixed` overrides them for the kernel without the mistake.
    """

    name: str
    rule: str
    device: str = "mi300x"
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    fixed_grid: tuple[int, int, int] | None = None
    fixed_block: tuple[int, int, int] | None = None
    fixed_arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_hip(self) -> bool:
        return self.grid is not None

    def path(self, *, fixed: bool = False) -> Path:
        """The script or HIP file."""
        suffix = "_fixed" if fixed else ""
        return KERNELS / f"{self.name}{suffix}{'.hip' if self.is_hip else '.py'}"

    @property
    def line(self) -> int:
        """The line of the mistake."""
        lines = self.path().read_text(encoding="utf-8").splitlines()
        return next(number for number, line in enumerate(lines, 1) if "planted" in line)


def _hip(
    name: str,
    rule: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    device: str = "mi300x",
    fixed_grid: tuple[int, int, int] | None = None,
    fixed_block: tuple[int, int, int] | None = None,
    fixed_arguments: Mapping[str, str] | None = None,
    **arguments: str,
) -> PlantedKernel:
    return PlantedKernel(
        name,
        rule,
        device,
        grid,
        block,
        arguments,
        fixed_grid or grid,
        fixed_block or block,
        {**arguments, **(fixed_arguments or {})},
    )


SQUARE = {"in": "f32[2048x2048]", "out": "f32[2048x2048]", "n": "2048"}

CASES = (
    PlantedKernel("gate_up_interleaved", "interleaved-pairs"),
    PlantedKernel("stereo_to_mono", "interleaved-pairs"),
    PlantedKernel("int8_gemm_stride", "unaligned-stride"),
    PlantedKernel("rms_norm_stride", "unaligned-stride"),
    _hip("lds_transpose", "lds-bank-conflicts", (64, 64, 1), (32, 8, 1), "mi210", **SQUARE),
    _hip(
        *("tiled_gemm_conflict", "lds-bank-conflicts", (64, 64, 1), (32, 8, 1)),
        a="f32[2048x2048]",
        b="f32[2048x2048]",
        c="f32[2048x2048]",
        n="2048",
        k="2048",
    ),
    _hip(
        *("padding_occupancy", "padding-costs-occupancy", (64, 64, 1), (64, 4, 1)),
        **{"in": "f64[4096x4096]", "out": "f64[4096x4096]", "scale": "f64[4096]", "n": "4096"},
    ),
    PlantedKernel("column_sum", "uncoalesced-global"),
    _hip(
        *("thread_per_row", "uncoalesced-global", (256, 1, 1), (256, 1, 1)),
        fixed_grid=(16384, 1, 1),
        x="f32[65536x1024]",
        y="f32[65536]",
        rows="65536",
        columns="1024",
    ),
    PlantedKernel("transposed_store", "uncoalesced-global"),
    _hip(
        *("store_by_row", "uncoalesced-global", (4096, 1, 1), (256, 1, 1)),
        x="f32[1048576]",
        out="f32[16777216]",
        n="1048576",
        order="16",
    ),
    PlantedKernel("wide_offsets", "64-bit-addresses"),
    PlantedKernel("row_per_program", "tiny-workgroups"),
    PlantedKernel("skinny_gemm", "grid-too-small"),
    PlantedKernel("few_rows_sum", "grid-too-small"),
    PlantedKernel("softmax_replicated", "replicated-work"),
    PlantedKernel("gemm_replicated", "replicated-work"),
    PlantedKernel("gemm_spills", "register-spills"),
    PlantedKernel("gemm_waves_per_eu", "register-spills"),
    _hip(
        *("launch_bounds_spills", "register-spills", (4096, 1, 1), (256, 1, 1)),
        x="f32[101711872]",
        c="f32[1024]",
        y="f32[1048576]",
        terms="64",
        n="1048576",
    ),
    PlantedKernel("gemm_one_stage", "full-wait-in-loop"),
    _hip(
        *("loads_one_at_a_time", "full-wait-in-loop", (1216, 1, 1), (64, 1, 1)),
        x="f32[1216x16384]",
        y="f32[1216]",
        columns="16384",
    ),
    PlantedKernel("gemm_tail", "partial-last-wave"),
    PlantedKernel("im2col_division", "division-in-loop"),
    PlantedKernel("tile_labels", "division-in-loop"),
    PlantedKernel("small_kernels", "launch-bound"),
    PlantedKernel("per_head_norm", "launch-bound"),
    _hip(
        *("barrier_reduction", "barrier-heavy-loop", (2432, 1, 1), (256, 1, 1)),
        x="f32[2432x16384]",
        y="f32[2432]",
        columns="16384",
    ),
    _hip(
        *("barrier_small_tiles", "barrier-heavy-loop", (304, 1, 1), (256, 1, 1)),
        at="f32[2048x77824]",
        x="f32[2048]",
        y="f32[77824]",
        rows="77824",
        columns="2048",
    ),
    _hip(
        *("threshold_bytes", "narrow-global-access", (65536, 1, 1), (256, 1, 1)),
        fixed_grid=(4096, 1, 1),
        fixed_arguments={"in": "u32[4194304]", "out": "u32[4194304]"},
        **{"in": "u8[16777216]", "out": "u8[16777216]", "level": "100", "n": "16777216"},
    ),
    _hip(
        *("halves_one_by_one", "narrow-global-access", (1216, 1, 1), (256, 1, 1)),
        x="f16[16777216]",
        y="f16[16777216]",
        a="f32:2.0",
        n="16777216",
    ),
    _hip(
        *("counter_atomics", "contended-atomics", (1216, 1, 1), (256, 1, 1)),
        x="f32[16777216]",
        classes="i32[16777216]",
        sums="f32[16]",
        n="16777216",
    ),
)
