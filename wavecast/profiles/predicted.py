"""The operators of a profile with their predicted times, on the chip that ran them or on another.

An operator is the innermost one that launched kernels; its measured time is that of its kernels. It
is predicted as `wavecast model` predicts a module's operators: from sizes, dtypes and strides, as
PyTorch launches it. Kernels without an operator, or whose operator cannot be predicted, are priced
by their names and grids where these give the sizes. What cannot be predicted is listed with the
reason and keeps its measured time.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final

import numpy as np
from msgspec.structs import replace

from wavecast.arch.device import Device
from wavecast.errors import MissingFact, MissingTool
from wavecast.extras import install_hint
from wavecast.json_objects import Count, High, JsonObject, Low, NonNegative, doc
from wavecast.perfmodel.intervals import HALF_WIDTH
from wavecast.profiles import tensor_bytes
from wavecast.profiles.changes import UNCHANGED, ProfileChanges
from wavecast.profiles.groups import LaunchGroup, LaunchGroups
from wavecast.profiles.kernel_forms import form
from wavecast.profiles.kernel_names import display_name
from wavecast.profiles.kernel_sizes import operation
from wavecast.profiles.libraries import LibraryPrices
from wavecast.profiles.profile import NONE, Profile
from wavecast.systems.sources.calls import ModuleGraph
from wavecast.systems.sources.kernels import CallKernel, kernels
from wavecast.systems.sources.part import KernelPart
from wavecast.systems.sources.price import GraphPrices

if TYPE_CHECKING:
    from wavecast.perfmodel.ops.base import Op

_LISTED: Final = "float"


class OperatorTime(JsonObject):
    """All calls of an operator with the same sizes."""

    name: Annotated[str, doc("the operator, such as aten::mm")]
    sizes: Annotated[str, doc("sizes of its arguments, as JSON")]
    count: Annotated[Count, doc("calls")]
    measured: Annotated[NonNegative, doc("seconds of their kernels")]
    category: Annotated[str, doc("what the kernels compute, by their names")]
    predicted: Annotated[NonNegative, doc("predicted seconds; 0 without a prediction")] = 0.0
    low: Low = 0.0
    high: High = 0.0
    kernel: Annotated[str, doc("the library or kernel that is assumed")] = ""
    limiter: Annotated[str, doc("the resource that decides its time")] = ""
    flops: Annotated[NonNegative, doc("useful FLOPs of all calls")] = 0.0
    bytes: Annotated[NonNegative, doc("least bytes of all calls")] = 0.0
    why_not: Annotated[str, doc("why there is no prediction; else empty")] = ""
    form: Annotated[str, doc("tile, dtype and layout by the name of the longest kernel")] = ""
    by_name: Annotated[bool, doc("the sizes are those of names and grids, not of an operator")] = (
        False
    )

    @property
    def deviation(self) -> float:
        """Standard deviation of the logarithm of the predicted time; NaN without one."""
        return math.log(self.high / self.low) / (2 * HALF_WIDTH) if self.low > 0 else math.nan

    @property
    def in_interval(self) -> bool:
        """Whether the measured time is in the 80 % interval."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class PredictedProfile:
    """The operators of a profile, longest first, in the same order on every device. `covered` is
    the share of the kernels' time that is predicted, `rows` the number of the operator of every
    launch, `replaced` (name, sizes) of operators with another library than the one that ran."""

    device: Device
    operators: tuple[OperatorTime, ...]
    notes: tuple[str, ...] = ()
    rows: Sequence[int] = ()
    replaced: frozenset[tuple[str, str]] = frozenset()

    @property
    def known(self) -> tuple[OperatorTime, ...]:
        """The operators that are predicted."""
        return tuple(operator for operator in self.operators if not operator.why_not)

    @property
    def measured(self) -> float:
        """Seconds of all kernels."""
        return sum(operator.measured for operator in self.operators)

    @property
    def covered(self) -> float:
        """Share of the kernels' time that is predicted."""
        return (
            sum(operator.measured for operator in self.known) / self.measured
            if self.measured
            else 0.0
        )

    @property
    def median_error(self) -> float:
        """Median of |predicted / measured - 1| over operators; NaN without any."""
        errors = [
            abs(operator.predicted / operator.measured - 1)
            for operator in self.known
            if operator.measured
        ]
        return float(np.median(errors)) if errors else math.nan


def predict(
    profile: Profile, device: Device, changes: ProfileChanges = UNCHANGED
) -> PredictedProfile:
    """The operators of `profile` on `device`, with `changes` of their sizes and libraries.

    Raises MissingTool without PyTorch where operators have sizes: it knows them.
    """
    launch_groups = LaunchGroups(profile)
    predictor = _Predictor(profile, launch_groups, device, changes)
    times: list[OperatorTime] = []
    row_of: dict[tuple[tuple[int, int], int], int] = {}
    for key, group in launch_groups.groups.items():
        for time, part in predictor.times(group):
            row_of |= {(key, number): len(times) for number in part.kernels}
            times.append(time)
    order = sorted(range(len(times)), key=lambda number: -times[number].measured)
    position = {number: at for at, number in enumerate(order)}
    infos = profile.launches.info
    rows = [position[row_of[launch_groups.key(n), infos[n]]] for n in range(len(profile.launches))]
    ordered = tuple(times[number] for number in order)
    notes, replaced = tuple(predictor.notes), frozenset(predictor.replaced)
    return PredictedProfile(device, ordered, notes, rows, replaced)


def _common_type(profile: Profile, groups: Iterable[LaunchGroup]) -> str:
    """The type of most floating-point tensors of the operators, by their time."""
    times: defaultdict[str, int] = defaultdict(int)
    for group in groups:
        if group.op != NONE:
            for name in ("c10::BFloat16", "c10::Half", "float"):
                if f'"{name}"' in profile.op_infos[group.op].dtypes:
                    times[name] += group.nanoseconds
                    break
    return max(times, key=lambda name: times[name], default=_LISTED)


class _Predictor:
    """Predicts operators on one device; equal kernels once."""

    def __init__(
        self, profile: Profile, groups: LaunchGroups, device: Device, changes: ProfileChanges
    ) -> None:
        self._profile, self._groups, self._changes = profile, groups, changes
        self._prices = GraphPrices(device)
        self._libraries = LibraryPrices(device, changes.libraries)
        self._listed = _common_type(profile, groups.groups.values())
        self._batch = changes.batch_of(profile)
        self.replaced: set[tuple[str, str]] = set()

    def times(self, group: LaunchGroup) -> list[tuple[OperatorTime, LaunchGroup]]:
        """Times of all calls of a group, whose operator is the first of its chain; a later one is
        priced where PyTorch cannot make the first again. If none can be, the kernels of the group
        are priced by their names, and those of each category together."""
        ops = self._profile.operations.get(group.op)
        if ops is not None:
            return [(self._scale(self._by_model(group, ops)), group)]
        tensor_op = (
            tensor_bytes.operation(self._batch.change(group.chain[0])) if group.chain else None
        )
        if tensor_op is not None:
            part = CallKernel(
                KernelPart("tensors", tensor_op), 0, group.chain[0].name, "", "forward"
            )
            operator_time = self._price(self._unpriced_time(group), [part], group.count)
            return [(self._scale(operator_time), group)]
        why = "the calls that launched the kernels are not in the file"
        if group.chain and any(info.sizes for info in group.chain):
            operator_time = self._by_operator(group)
            if not operator_time.why_not:
                return [(self._scale(operator_time), group)]
            why = operator_time.why_not
        elif group.chain:
            why = f"{group.chain[0].name} has no sizes"
        parts = self._groups.by_category(group)
        return [(self._scale(self._by_name(part, why)), part) for part in parts]

    def _scale(self, time: OperatorTime) -> OperatorTime:
        factor = self._changes.factor(time.name, time.category)
        if factor == 1 or time.why_not:
            return time
        ends = {name: factor * getattr(time, name) for name in ("predicted", "low", "high")}
        return replace(time, **ends)

    def _unpriced_time(self, group: LaunchGroup) -> OperatorTime:
        longest = max(group.kernels, key=lambda number: group.kernels[number].nanoseconds)
        kernel = self._profile.kernels[longest]
        grid = "x".join(map(str, kernel.blocks)) if any(kernel.blocks) else ""
        return OperatorTime(
            name=group.chain[0].name if group.chain else display_name(kernel.name),
            sizes="".join(group.chain[0].sizes.split()) if group.chain else grid,
            count=group.count,
            measured=group.nanoseconds * 1e-9,
            category=self._groups.category(group),
            form=form(kernel.name).text,
        )

    def _by_operator(self, group: LaunchGroup) -> OperatorTime:
        if find_spec("torch") is None:
            hint = install_hint("torch")
            raise MissingTool("predicting a profile needs PyTorch", hint=hint)
        from wavecast.runtimes.torch_graph.profiled import UnknownCall, calls

        unknown = self._unpriced_time(group)
        why = ""
        for op_info in group.chain:
            info = self._batch.change(op_info)
            try:
                op_calls = calls(
                    info.name,
                    info.sizes,
                    info.dtypes,
                    info.strides,
                    info.values,
                    list_dtype=self._listed,
                )
                launched = kernels(ModuleGraph(op_info.name, tuple(op_calls)))
                operator_time = self._price(unknown, list(launched), group.count)
            except (UnknownCall, MissingFact) as error:
                why = why or str(error)
                continue
            if not operator_time.why_not:
                return operator_time
            why = why or operator_time.why_not
        return replace(unknown, why_not=why)

    def _by_model(self, group: LaunchGroup, ops: Sequence[Op]) -> OperatorTime:
        """Operations whose sizes are those of a model."""
        unknown = self._unpriced_time(group)
        if self._batch.factor != 1:
            return replace(unknown, why_not="sizes of --model are those of the batch that ran")
        parts = [KernelPart("by model", op) for op in ops]
        call_kernels = [CallKernel(part, 0, "fused", "", "forward") for part in parts]
        return self._price(unknown, call_kernels, group.count)

    def _by_name(self, group: LaunchGroup, why: str) -> OperatorTime:
        unknown = self._unpriced_time(group)
        parts: list[CallKernel] = []
        for number, share in group.kernels.items():
            op = operation(self._profile.kernels[number])
            if op is None:
                return replace(unknown, why_not=f"{why}; names and grids do not give the sizes")
            part = KernelPart("by name", op)
            parts += [CallKernel(part, 0, "fused", "", "forward")] * share.count
        operator_time = self._price(unknown, parts, 1)
        return replace(operator_time, by_name=not operator_time.why_not)

    def _price(
        self, operator_time: OperatorTime, launched: Sequence[CallKernel], count: int
    ) -> OperatorTime:
        selection = list(self._libraries.choose(launched))
        times = self._prices.of(selection)
        if not times:
            return replace(operator_time, why_not="no kernel is known to be launched by it")
        bounded = next((t.priced.bounded for t in times if t.priced.bounded), "")
        if bounded:
            return replace(operator_time, why_not=bounded)
        if selection != list(launched):
            self.replaced.add((operator_time.name, operator_time.sizes))
        longest = max(times, key=lambda time: time.seconds)
        works = [time.priced.node.op.work() for time in times]
        return replace(
            operator_time,
            predicted=count * sum(time.seconds for time in times),
            low=count * sum(time.priced.low for time in times),
            high=count * sum(time.priced.high for time in times),
            kernel=longest.priced.kernel,
            limiter=longest.priced.limiter,
            flops=count * sum(sum((work.flops or {}).values()) for work in works),
            bytes=count * sum(work.bytes or 0.0 for work in works),
        )

    @property
    def notes(self) -> list[str]:
        """What was assumed."""
        notes = [
            f"{why}: {', '.join(sorted(operators))}"
            for why, operators in self._prices.substituted.items()
        ]
        if self._prices.by_bytes:
            names = ", ".join(sorted(self._prices.by_bytes))
            notes.append(f"priced as element-wise kernels of the same bytes: {names}")
        if any("List" in info.dtypes for info in self._profile.op_infos.values):
            notes.append(f"tensors in lists have no dtype in the profile: taken as {self._listed}")
        return [*notes, *self._batch.notes]


__all__ = ["OperatorTime", "PredictedProfile", "predict"]
