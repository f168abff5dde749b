"""What a finding advises, as changes whose time can be predicted.

A `Fix` is the advice in words and a `Change`. A recompiled change is another text of the kernel
(Triton's IR, HIP source) or other options: the prediction is that of the code it becomes. A
simulated change is the launch as it is without what the rule found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import numpy as np

from wavecast.json_objects import Count, JsonObject, NonNegative, doc
from wavecast.perfmodel.launches import LaunchChanges
from wavecast.perfmodel.simulation.timing import LaunchTiming

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Simulated:
    """The launch simulated with one thing different about some instructions (indices): `run` gets
    them as bool[n]."""

    instructions: frozenset[int]
    run: Callable[[LaunchChanges, Array], LaunchTiming]


@dataclass(frozen=True, slots=True)
class Recompiled:
    """The launch of the kernel compiled again.

    `text` is the changed text of the stage that compilation starts from: `ttir` for Triton, the
    source for HIP. `options` are compiler options of Triton that differ, `scalars` arguments that
    differ by name, `strides` the strides in elements of tensors that differ by name, and `grid`
    the grid, None where it stays. With `same_work` the change counts only if the kernel computes
    and stores as much as before.
    """

    text: str
    options: Mapping[str, object] = field(default_factory=dict)
    scalars: Mapping[str, int] = field(default_factory=dict)
    strides: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    grid: tuple[int, int, int] | None = None
    same_work: bool = False

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for changes that give the same kernel and launch."""
        numbers = (self.options, self.scalars, self.strides)
        return self.text, self.grid, *(repr(sorted(mapping.items())) for mapping in numbers)


Change = Simulated | Recompiled


@dataclass(frozen=True, slots=True)
class Fix:
    """Advice in words (a sentence), and the change that predicts what it saves.

    `name` is the advice in a word or two (`padding`), for comparisons. `once_seconds` is what the
    fix costs once (a contiguous copy), for the number of launches after which it pays; 0 for a fix
    that only changes the kernel. `at_best`: the change is what was found gone altogether, which the
    advice may not reach; other fixes of the finding come first.
    """

    advice: str
    change: Change
    name: str = ""
    once_seconds: float = 0.0
    at_best: bool = False


def together(fixes: Sequence[Fix]) -> Fix | None:
    """Fixes with the same advice as one: simulated for the instructions of all. None for different
    texts, which cannot be joined."""
    first = fixes[0]
    if all(fix.change == first.change for fix in fixes):
        return replace(first, once_seconds=sum(fix.once_seconds for fix in fixes))
    changes = [fix.change for fix in fixes if isinstance(fix.change, Simulated)]
    if len(changes) < len(fixes) or not isinstance(first.change, Simulated):
        return None
    every = frozenset[int]().union(*(change.instructions for change in changes))
    return replace(first, change=replace(first.change, instructions=every))


class ResourceUse(JsonObject):
    """What the code of a kernel takes, and what fits the device with it."""

    vgpr: Annotated[Count, doc("VGPRs and AGPRs per lane")]
    spilled: Annotated[Count, doc("VGPRs spilled per lane")]
    lds_bytes: Annotated[
        Count, doc("bytes of LDS (shared memory) per workgroup, with the dynamic part")
    ]
    waves_per_simd: Annotated[Count, doc("waves resident per SIMD")]
    workgroups: Annotated[Count, doc("workgroups resident per compute unit (WGP on RDNA)")]


class Outcome(JsonObject):
    """The predicted effect of the advice."""

    seconds: Annotated[NonNegative, doc("predicted time with the fix")]
    low: Annotated[NonNegative, doc("lower end of its 80 % interval")]
    high: Annotated[NonNegative, doc("upper end of its 80 % interval")]
    method: Annotated[
        Literal["recompiled", "simulated"],
        doc("recompiled: the kernel was compiled with the fix; simulated: without what was found"),
    ]
    before: ResourceUse
    at_best: Annotated[
        bool, doc("whether the fix may save less: the time is that without what was found")
    ] = False
    after: Annotated[ResourceUse | None, doc("with the fix; null where it was simulated")] = None
    break_even: Annotated[
        Count | None,
        doc("launches after which a fix that is paid once saves time; null without such a cost"),
    ] = None


__all__ = ["Change", "Fix", "Outcome", "Recompiled", "ResourceUse", "Simulated", "together"]
