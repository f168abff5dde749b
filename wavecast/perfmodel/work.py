"""The useful work of a launch: FLOPs by dtype and the least bytes that must move.

FLOPs are, in this order: stated by the user; the matrix operations the code executes (padding of
tiles included, for they take the same time); the vector operations, for code without matrix
instructions; the FLOPs another target's code derived for the same launch. Bytes are stated, or the
tensors the launch reads and writes, each once.
"""

from __future__ import annotations

from collections.abc import Mapping

from wavecast.analyze.result import CodeAnalysis
from wavecast.analyze.values.walk import CUT_SHORT
from wavecast.compile.codeobject import Launch
from wavecast.perfmodel.bounds import Work
from wavecast.perfmodel.footprint import distinct_bytes

VECTOR = "vector_"
"""Prefix of the dtypes of vector operations, whose peak differs from the matrix peak."""


def work(
    launch: Launch | None,
    analysis: CodeAnalysis,
    *,
    given_flops: float | None = None,
    given_bytes: float | None = None,
    given_dtype: str = "",
    flops_hint: Mapping[str, float] | None = None,
    replication: float = 1.0,
) -> Work:
    """The work of one launch. `flops_hint` are FLOPs by dtype known from elsewhere.

    `given_dtype` names the dtype of `given_flops`; by default the one most matrix operations of
    the code have. `replication` is how often the waves of a workgroup compute the same matrix
    products, which count once.
    """
    flops, flops_source = _flops(
        launch, analysis, given_flops, given_dtype, flops_hint, replication
    )
    if given_bytes is not None:
        return Work(flops, given_bytes, 0.0, flops_source, "given")
    read, written, bytes_source = _bytes(launch, analysis)
    unsure = read is not None and bool(_counted_whole(launch, analysis))
    return Work(flops, read, written, flops_source, bytes_source, bytes_at_most=unsure)


def _flops(
    launch: Launch | None,
    analysis: CodeAnalysis,
    override: float | None,
    dtype: str,
    hint: Mapping[str, float] | None,
    replication: float,
) -> tuple[Mapping[str, float] | None, str]:
    if override is not None:
        return {dtype or _main_dtype(analysis): override}, "given"
    if analysis.matrix_flops_static:
        if analysis.executed_flops:
            source = "derived from the matrix instructions executed"
            if replication > 1:
                source += f"; waves compute each product {replication:g} times, it counts once"
            once = {name: count / replication for name, count in analysis.executed_flops.items()}
            return once, source
    else:
        vector = analysis.executed_vector_flops
        if vector is not None:
            return {f"{VECTOR}{name}": flops for name, flops in vector.items()}, (
                "derived from the vector instructions executed, all lanes active"
            )
    if hint:
        return dict(hint), "derived from the same launch on another target"
    return None, _why_unknown(launch, analysis)


def _why_unknown(launch: Launch | None, analysis: CodeAnalysis) -> str:
    for loop in analysis.loops:
        if loop.trip_count is None and (loop.flops or not analysis.matrix_flops_static):
            where = f" at line {loop.location.line}" if loop.location else ""
            return f"unknown: the loop{where} runs an unknown number of times ({loop.trip_note})"
    if launch is None or not all(launch.grid):
        return "unknown: the launch is not known (state --flops)"
    if not launch.code.is_amd:
        return "unknown: operations of SASS are not counted (state --flops, or add an AMD target)"
    if CUT_SHORT in analysis.unknown_counts.values():
        return f"unknown: {CUT_SHORT} (state --flops)"
    return "unknown: how often some of the code runs depends on data (state --flops)"


def _counted_whole(launch: Launch | None, analysis: CodeAnalysis) -> list[str]:
    """Tensors the AMD code accesses an unknown number of times, so perhaps in a part only."""
    if launch is None or not launch.code.is_amd or not analysis.arguments_complete:
        return []
    names = analysis.arguments_read | analysis.arguments_written | analysis.arguments_updated
    tensors = {argument.name for argument in launch.tensors}
    return sorted((names & tensors) - analysis.requested_bytes.keys())


def _main_dtype(analysis: CodeAnalysis) -> str:
    """The dtype of most of the code's operations; matrix operations go first."""
    for static, prefix in (
        (analysis.matrix_flops_static, ""),
        (analysis.vector_flops_static, VECTOR),
    ):
        if static:
            return prefix + max(static, key=lambda name: static[name])
    return f"{VECTOR}fp32"


def _bytes(launch: Launch | None, analysis: CodeAnalysis) -> tuple[float | None, float | None, str]:
    """Least bytes read and written, and where they come from.

    A tensor counts once for each way it is used; no more of it than the launch asks for, where that
    is known (a gather reads a part of its table).
    """
    tensors = launch.tensors if launch is not None else ()
    if launch is None or not tensors:
        return None, None, "unknown: the launch's tensors are not known (state --bytes)"
    if not analysis.arguments_complete:
        total = distinct_bytes(launch, tensors, {})
        return total, 0.0, "derived from the tensors, each touched once (which way is unknown)"
    read = analysis.arguments_read | analysis.arguments_updated
    written = analysis.arguments_written | analysis.arguments_updated
    requests = analysis.requested_bytes
    source = "derived from the tensors the code reads and writes, each once"
    if unsure := _counted_whole(launch, analysis):
        source += f"; how much of {', '.join(unsure)} is not known, all of it counts"
    missing = sorted((read | written) - {tensor.name for tensor in tensors})
    if missing:
        source += f"; the sizes of {', '.join(missing)} are not known and count as 0"
    return (
        distinct_bytes(
            launch,
            [tensor for tensor in tensors if tensor.name in read],
            {name: loaded for name, (loaded, _) in requests.items()},
        ),
        distinct_bytes(
            launch,
            [tensor for tensor in tensors if tensor.name in written],
            {name: stored for name, (_, stored) in requests.items()},
        ),
        source,
    )
