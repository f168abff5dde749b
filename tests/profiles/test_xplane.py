"""Profiles of JAX: planes of a GPU, what JAX itself reads, damaged files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from wavecast.errors import InputError, NothingAnalysed
from wavecast.profiles.answer import profiles
from wavecast.profiles.readers import xplane
from wavecast.profiles.reading import read, read_ranks

_DETAILS = "regs:40 static_shared:1024 dynamic_shared:512 grid:64,2,1 block:128,1,1 occ_pct:75"


@dataclass
class Event:
    name: str
    start_ns: float
    duration_ns: float
    stats: tuple[tuple[str, Any], ...] = ()


@dataclass
class Line:
    name: str
    events: list[Event]


@dataclass
class Plane:
    name: str
    lines: list[Line]
    stats: tuple[tuple[str, Any], ...] = field(default=())


def _planes() -> list[Plane]:
    """A product and a copy on one stream of an H100, as the collectors of XLA write them."""
    product = (("correlation_id", 7), ("kernel_details", _DETAILS), ("hlo_op", "dot.3"),
               ("hlo_module", "jit_step"),
               ("tf_op", "jit(step)/jit(main)/dot_general:"))  # fmt: skip
    return [
        Plane("/host:metadata", []),
        Plane(
            "/device:GPU:0",
            [
                Line("Stream #13(Compute,MemcpyH2D)", [
                    Event("gemm_fusion_dot_3", 5_000.0, 2_000.0, product),
                    Event("MemcpyH2D", 8_000.0, 300.0, (("memcpy_details", "size:4"),)),
                    Event("loop_add_fusion", 9_000.0, 100.0, (("hlo_op", "loop_add_fusion.2"),)),
                    Event("broken", float("nan"), 100.0),
                ]),
                Line("XLA Ops", [Event("dot.3", 5_000.0, 2_000.0, product)]),
            ],
            (("compute_cap_major", 9), ("compute_cap_minor", 0), ("core_count", 132),
             ("memory_size", 85_899_345_920), ("device_vendor", "Nvidia")),
        ),
        Plane("/host:CUPTI", [
            Line("main", [Event("cuLaunchKernel", 4_000.0, 50.0, (("correlation_id", 7),)),
                          Event("cuEventRecord", 4_100.0, 5.0)]),
        ]),
    ]  # fmt: skip


def test_planes_of_a_gpu_become_kernels() -> None:
    profile = xplane.profile_of(_planes())
    assert (len(profile.launches), len(profile.copies), profile.damaged) == (2, 1, 1)
    kernel = profile.kernels[0]
    assert (kernel.blocks, kernel.threads) == ((64, 2, 1), (128, 1, 1))
    assert (kernel.registers, kernel.lds_bytes) == (40, 1536)
    names = [profile.op_infos[profile.ops.info[op]].name for op in profile.launches.op]
    assert names == ["dot_general", "loop_add_fusion"]
    paths = [profile.modules[m] if m >= 0 else "" for m in profile.ops.module]
    assert paths == ["jit_step_0.jit(step)_0.jit(main)_0", ""]
    assert [profile.call_names[i] for i in profile.calls.info] == ["cuLaunchKernel"]
    assert list(profile.ops.start) == [4_000, 9_000]
    device = profile.devices[0]
    assert (device.target, device.units) == ("sm_90", 132)
    assert profile.notes == []


def test_the_plane_of_an_amd_gpu_has_no_compute_capability() -> None:
    plane = Plane("/device:GPU:1", [], (("compute_cap_major", 9), ("device_vendor", "AMD")))
    profile = xplane.profile_of([plane])
    assert profile.devices[1].target == ""
    assert profile.notes == ["it has no stream of a GPU with kernels, only the host"]


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (b"\n\xb2\x17\x12\x0e/host:metadata", True),
        (b"\n\xb2\x17\x08\x80\x01\x12\x0e/device:GPU:0", True),
        (b"\n\x05\x12\x10Task Environment", True),
        (b'\n{"traceEvents": []}', False),
        (b"\nKernel_Name,Start\n", False),
        (b"", False),
    ],
)
def test_recognised_by_the_first_field(head: bytes, known: bool) -> None:
    assert xplane.recognise(head) == known


def test_a_folder_has_each_trace_once(tmp_path: Path) -> None:
    for name in ("host.xplane.pb", "host.trace.json.gz"):
        (tmp_path / name).write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"host\.xplane\.pb: not a profile"):
        list(read_ranks(tmp_path))


def _space(planes: list[Plane]) -> str:
    """The text of an XSpace."""
    text = []
    for plane in planes:
        names: list[str] = []
        kinds: list[str] = []

        def stat(name: str, value: Any, kinds: list[str] = kinds) -> str:
            if name not in kinds:
                kinds.append(name)
            kind = "int64_value" if isinstance(value, int) else "str_value"
            shown = value if isinstance(value, int) else f'"{value}"'
            return f"stats {{ metadata_id: {kinds.index(name) + 1} {kind}: {shown} }}"

        lines = []
        for number, line in enumerate(plane.lines):
            events = []
            for event in line.events:
                names.append(event.name)
                stats = " ".join(stat(*one) for one in event.stats)
                events.append(
                    f"events {{ metadata_id: {len(names)} "
                    f"offset_ps: {round(event.start_ns * 1000)} "
                    f"duration_ps: {round(event.duration_ns * 1000)} {stats} }}"
                )
            lines.append(f'lines {{ id: {number} name: "{line.name}" {" ".join(events)} }}')
        stats = " ".join(stat(*one) for one in plane.stats)
        named = " ".join(
            f'event_metadata {{ key: {i} value {{ id: {i} name: "{name}" }} }}'
            for i, name in enumerate(names, 1)
        ) + " ".join(
            f'stat_metadata {{ key: {i} value {{ id: {i} name: "{name}" }} }}'
            for i, name in enumerate(kinds, 1)
        )
        text.append(f'planes {{ name: "{plane.name}" {" ".join(lines)} {named} {stats} }}')
    return "\n".join(text)


def test_jax_reads_the_same(tmp_path: Path) -> None:
    data = pytest.importorskip("jax.profiler", reason="needs JAX").ProfileData
    planes = _planes()
    planes[1].lines[0].events.pop()
    file = tmp_path / "host.xplane.pb"
    file.write_bytes(data.text_proto_to_serialized_xspace(_space(planes)))
    (answer,) = profiles(file)
    assert answer.devices == {0: "h100_sxm"}
    assert answer.summary.kernel_time == 2_100
    assert set(answer.summary.by_op) == {"dot_general", "loop_add_fusion"}
    assert answer.summary.by_module["jit_step.jit(step).jit(main)"].nanoseconds == 2_000
    kernels = answer.profile.kernels.values
    assert kernels[0] == xplane.profile_of(planes).kernels[0]
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="ends early"):
        read(file)


def test_a_profile_of_jax_on_a_cpu_has_no_kernel(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax", reason="needs JAX")
    with jax.profiler.trace(str(tmp_path)):
        jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((64, 64))).block_until_ready()
    (file,) = tmp_path.rglob("*.xplane.pb")
    with pytest.raises(NothingAnalysed) as error:
        profiles(file.parent)
    assert error.value.hint == "it has no stream of a GPU with kernels, only the host"
