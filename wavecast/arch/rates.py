"""Peak and sustained rates of a device by data type, in FLOP/s and byte/s.

A peak is the published one; where none is published, or where the user changed what it follows
from, it is operations per clock and CU times CUs times clock.
"""

from __future__ import annotations

from dataclasses import replace

from wavecast.arch.facts import Facts
from wavecast.arch.quantity import Alternative, Quantity
from wavecast.dtypes import is_dtype, lookup
from wavecast.errors import UnknownName

DTYPES = ("fp64", "fp32", "xf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4")
"""Dtypes of matrix operations. Every 8-bit float runs at one rate where the chip has it."""

VECTOR_DTYPES = ("vector_fp64", "vector_fp32", "vector_fp32_packed", "vector_fp16")
"""Dtypes of vector operations."""

_SUSTAINED = {
    "bf16": ("maf_bf16", "meas_gemm_bf16_8192", "meas_gemm_bf16_4096", "meas_mfma_bf16"),
    "fp16": ("maf_fp16", "meas_mfma_f16"),
    "fp8": ("maf_fp8", "meas_gemm_fp8_8192"),
    "fp6": ("meas_gemm_fp6_16384",),
    "int8": ("meas_mfma_i8",),
    "fp32": ("meas_mfma_f32",),
    "fp64": ("meas_mfma_f64",),
    "vector_fp32": ("meas_vec_fp32",),
    "vector_fp64": ("meas_vec_fp64",),
}
"""Measurements of a sustained rate, the most telling first: whole matrix products, then
instructions alone."""

_SUSTAINED_BANDWIDTH = (
    *("meas_babelstream_triad", "meas_babelstream_triad_spx", "meas_stream_triad", "eff_hbm"),
    *("meas_hbm_roofline", "meas_mem_bw", "meas_hbm_read", "meas_stream_read"),
)
"""Measurements of memory bandwidth: mixed reads and writes first, since kernels do both."""


def canonical_dtype(dtype: str) -> str:
    """The member of `DTYPES` or `VECTOR_DTYPES` whose rate `dtype` has. Raises UnknownName."""
    if dtype in VECTOR_DTYPES:
        return dtype
    rate = lookup(dtype).rate if is_dtype(dtype) else ""
    if rate not in DTYPES:
        raise UnknownName("dtype of matrix operations", dtype, (*DTYPES, *VECTOR_DTYPES))
    return rate


def _rate_fields(dtype: str) -> tuple[tuple[str, ...], str]:
    """Names of the peak fields and of the field of operations per clock and CU."""
    if dtype.startswith("vector_"):
        kind = dtype.removeprefix("vector_")
        return (f"peak_vec_{kind}",), f"ops_clk_cu_vec_{kind}"
    if dtype == "xf32":
        return ("peak_mat_xf32", "peak_mat_tf32"), "ops_clk_cu_mat_xf32"
    return (f"peak_mat_{dtype}",), f"ops_clk_cu_mat_{dtype}"


def _merge_sources(*parts: Quantity) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source for part in parts for source in part.sources))


def _derive_rate(facts: Facts, operations: Quantity) -> Quantity | None:
    units, clock = facts.find("cu"), facts.find("peak_clock")
    if units is None or clock is None:
        return None
    hertz = clock.to("Hz")
    return Quantity(
        value=operations.number * units.number * hertz.number,
        unit="FLOP/s",
        status="derived",
        sources=_merge_sources(operations, units, clock),
        note=(
            f"{units.number:g} {units.unit} × {operations.number:g} ops/clk/CU × "
            f"{clock.number:g} {clock.unit}"
        ),
    )


def peak_flops(facts: Facts, dtype: str) -> Quantity | None:
    """Datasheet rate of `dtype` in FLOP/s, None when the device has none or none is known."""
    peaks, operations_name = _rate_fields(canonical_dtype(dtype))
    published = next((fact for name in peaks if (fact := facts.find(name))), None)
    if published is not None:
        return published.to("FLOP/s")
    if operations_name not in facts.mapping:
        return None
    operations = facts.find(operations_name)
    return None if operations is None else _derive_rate(facts, operations)


def with_consistent_peaks(facts: Facts) -> Facts:
    """`facts` with the peaks that follow from what the user changed.

    A peak is recomputed when its clock, its operations per clock, or the number of compute units
    was overridden and the peak itself was not; where operations per clock are not known it is
    scaled. The published value becomes its alternative.
    """
    changed: dict[str, Quantity] = {}
    for dtype in (*DTYPES, *VECTOR_DTYPES):
        peaks, operations_name = _rate_fields(dtype)
        if not facts.overridden("cu", "peak_clock", operations_name):
            continue
        operations = facts.mapping.get(operations_name)
        for name in peaks:
            peak = facts.find(name)
            if peak is None or peak.status == "override":
                continue
            rate = None if operations is None else _derive_rate(facts, operations)
            new = rate.to(peak.unit) if rate is not None else _rescale(facts, peak)
            before = Alternative(peak.number, peak.sources, "before the override")
            changed[name] = replace(new, alternatives=(before,))
    return Facts(facts.device, {**facts.mapping, **changed})


def _rescale(facts: Facts, peak: Quantity) -> Quantity:
    """A published peak after the user changed the clock or the number of compute units."""
    scale, parts = 1.0, [peak]
    for name in ("cu", "peak_clock"):
        fact = facts.mapping.get(name)
        if fact is None or fact.status != "override" or not fact.alternatives:
            continue
        scale *= fact.number / float(fact.alternatives[0].value)
        parts.append(fact)
    note = f"the published peak × {scale:.4g}"
    return Quantity(peak.number * scale, peak.unit, "derived", _merge_sources(*parts), note)


def why_no_peak(facts: Facts, dtype: str) -> str:
    """Why `peak_flops` is None, as a clause for the user; "" when it is not."""
    if peak_flops(facts, dtype) is not None:
        return ""
    name = canonical_dtype(dtype)
    if _rate_fields(name)[1] in facts.mapping:
        return f"the clock of {facts.device} is not known"
    return f"{facts.device} has no known {name} rate"


def sustained_flops(facts: Facts, dtype: str) -> Quantity | None:
    """Measured rate of `dtype` in FLOP/s, None when none is known.

    A measurement says nothing about a chip whose clock or size the user changed.
    """
    names = _SUSTAINED.get(canonical_dtype(dtype), ())
    return _measured_rate(facts, names, "FLOP/s", changed=facts.overridden("cu", "peak_clock"))


def peak_bandwidth(facts: Facts) -> Quantity | None:
    """Datasheet memory bandwidth in byte/s, None when none is known."""
    fact = facts.find("mem_bw")
    return None if fact is None else fact.to("B/s")


def sustained_bandwidth(facts: Facts) -> Quantity | None:
    """Measured memory bandwidth in byte/s, None when none is known or the user changed `mem_bw`."""
    changed = facts.overridden("mem_bw")
    return _measured_rate(facts, _SUSTAINED_BANDWIDTH, "B/s", changed=changed)


def _measured_rate(
    facts: Facts, names: tuple[str, ...], unit: str, *, changed: bool
) -> Quantity | None:
    """The first of `names` that the user gave, else the first known one; on a `changed` device
    only one that the user gave."""
    quantities = [fact for name in names if (fact := facts.find(name))]
    overrides = [fact for fact in quantities if fact.status == "override"]
    usable = overrides if changed else [*overrides, *quantities]
    return usable[0].to(unit) if usable else None
