"""`KernelSpec`: how one Triton kernel is launched, and which configurations it can run in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, Final

import torch

from wavecast.arch import Device
from wavecast.compile.configuration import Configuration
from wavecast.errors import MissingFact
from wavecast.kernels.expressions import Expression
from wavecast.perfmodel.ranking import Demand, StreamingKernel

Problem = Mapping[str, Any]
"""Everything that the best configuration and the compiled code depend on, in plain values: sizes,
dtypes, flags."""

Settings = Mapping[str, Any]
"""A configuration: the kernel's own constants, `num_warps`, `num_stages`, `waves_per_eu` …"""

Axes = Mapping[str, Sequence[Any]]
"""Values to combine, by the name of a constant or of a compiler option. Text is an expression of
the names in a problem: `"up_to(next_power_of_2(columns), 64, 128, 256)"`."""

Slowed = Callable[[StreamingKernel, Problem, Settings, Device], float]
"""(kernel, problem, settings, device) -> a factor of the kernel's time."""

AMD_ONLY: Final = frozenset(
    {"waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint"}
    | {"llvm_fn_attrs", "allow_flush_denorm"}
)
"""Compiler options that only Triton's AMD backend has."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Scratch memory of a launch: `shape` elements of `dtype`, `zeroed` or not filled."""

    shape: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    zeroed: bool = False


@dataclass(frozen=True, kw_only=True)
class KernelSpec:
    """One Triton kernel of the library.

    `function` is the `triton.jit` function; a launch passes its parameters by name
    (`wavecast.kernels.choice.run`). `grid(problem, settings)` are the programs along each axis, or
    as text `"cdiv(rows, ROWS), groups"`, and `workspaces(problem, settings)` the scratch tensors by
    parameter name. `strides` are the parameters that take the strides of a tensor, in the order of
    its dimensions, the last ones left out: `{"x": "x_row x_head"}`; of a tensor that is None they
    are 0. Tensors in `contiguous` are only read, and copied where they are not contiguous.
    `derived(values)` are arguments that depend on others and on the settings, all of which `values`
    has: descriptors of tiles, say. `libraries(device)` are files of LLVM IR that its code is linked
    with, by the name that its external functions have the library under.

    `axes(problem, device)`, or a constant mapping, are the values to combine, sequences or texts
    (which also know the device's `wave_lanes`); `num_stages` is 1 unless it is an axis.
    `fits(problem, settings, device)` refuses combinations that cannot run (LDS, matrix shapes) or
    make no sense; as text it also knows `lanes`, the work-items of a workgroup. `demand(problem,
    settings, device)` is what a configuration needs of the GPU: its time ranks the rest, by
    formula, without compiling. Texts are expressions of the names in a problem and in settings
    (`wavecast.kernels.expressions`).

    Problems whose sizes in `rounded` round up to the same power of two share a configuration;
    entries of the problem in `ignored` are not part of the tuning key.
    """

    function: Any
    grid: str | Callable[[Problem, Settings], tuple[int, ...]]
    axes: Axes | Callable[[Problem, Device], Axes]
    demand: Callable[[Problem, Settings, Device], Demand]
    fits: str | Callable[[Problem, Settings, Device], bool] = "True"
    workspaces: Callable[[Problem, Settings], Mapping[str, Workspace]] = field(
        default=lambda *_: {}
    )
    strides: Mapping[str, str] = field(default_factory=dict, hash=False)
    contiguous: tuple[str, ...] = ()
    derived: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=lambda _: {})
    libraries: Callable[[Device], Mapping[str, str]] = field(default=lambda _: {})
    rounded: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @classmethod
    def streaming(
        cls, function: Any, *, grid: str | Callable[[Problem, Settings], tuple[int, ...]],
        axes: Axes | Callable[[Problem, Device], Axes], slowed: Slowed | None = None,
        **attributes: Any,
    ) -> KernelSpec:  # fmt: skip
        """A kernel whose demand is a `StreamingKernel`. Its fields but `workgroups`, which are the
        programs of the grid, are among the `attributes`: numbers, texts, or functions of a problem
        and settings. All others are fields of the spec. `slowed(kernel, problem, settings, device)`
        is a factor of its time: for what a configuration costs that bytes and instructions do not
        say."""
        names = [
            attribute.name for attribute in fields(StreamingKernel) if attribute.name in attributes
        ]
        expressions = {name: attributes.pop(name) for name in names}

        def demand(problem: Problem, settings: Settings, device: Device) -> Demand:
            values = {name: _value(each, problem, settings) for name, each in expressions.items()}
            kernel = StreamingKernel(workgroups=prod(spec.programs(problem, settings)), **values)
            return kernel.slow_down(slowed(kernel, problem, settings, device)) if slowed else kernel

        spec = cls(function=function, grid=grid, axes=axes, demand=demand, **attributes)
        return spec

    @property
    def name(self) -> str:
        """The name of the kernel: that of its function."""
        return self.function.fn.__name__

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """Parameters of the function by the name an argument is given under: a pointer `x_ptr` is
        passed as `x`."""
        return {name.removesuffix("_ptr"): name for name in self.function.arg_names}

    @cached_property
    def required_parameters(self) -> tuple[str, ...]:
        """The names in `parameters` that have no default."""
        signature = inspect.signature(self.function.fn).parameters
        parameters = ((name, signature[label]) for name, label in self.parameters.items())
        return tuple(name for name, parameter in parameters if parameter.default is parameter.empty)

    def key(self, problem: Problem) -> tuple[tuple[str, Any], ...]:
        """The tuning key: what all problems that share a configuration have in common."""
        return tuple(
            (name, 1 << max(0, value - 1).bit_length() if name in self.rounded else value)
            for name, value in sorted(problem.items())
            if name not in self.ignored
        )

    def programs(self, problem: Problem, settings: Settings) -> tuple[int, ...]:
        """The grid of a launch."""
        grid = _value(self.grid, problem, settings)
        return grid if isinstance(grid, tuple) else (grid,)

    def strides_of(self, arguments: Mapping[str, Any]) -> dict[str, int]:
        """The strides of the tensors of a launch that the kernel takes, by parameter name."""
        strides: dict[str, int] = {}
        for name, labels in self.strides.items():
            tensor = arguments[name]
            names = labels.split()
            values = (0,) * len(names) if tensor is None else tensor.stride()[: len(names)]
            strides |= zip(names, values, strict=True)
        return strides

    def allows(self, problem: Problem, settings: Settings, device: Device) -> bool:
        """Whether a configuration can run and makes sense: `fits`."""
        if callable(self.fits):
            return self.fits(problem, settings, device)
        lanes = device.wave_lanes * settings.get("num_warps", 4)
        return _value(self.fits, problem, {"lanes": lanes, **settings})

    def ranked(self, problem: Problem, device: Device) -> tuple[Configuration, ...]:
        """All configurations for a problem, the fastest by prediction first.

        Where the device lacks a number the formula needs, they stay in the order of the axes.
        """
        axes = self.axes(problem, device) if callable(self.axes) else self.axes
        if device.vendor != "amd":
            axes = {name: values for name, values in axes.items() if name not in AMD_ONLY}
        axes = axes if "num_stages" in axes else {**axes, "num_stages": (1,)}
        lanes = {"wave_lanes": device.wave_lanes}
        choices = [_value(values, problem, lanes) for values in axes.values()]
        every = [dict(zip(axes, values, strict=True)) for values in product(*choices)]
        fitting = [settings for settings in every if self.allows(problem, settings, device)]
        try:
            times = [
                self.demand(problem, settings, device).seconds(
                    device, int(settings.get("num_warps", 4))
                )
                for settings in fitting
            ]
        except MissingFact:
            return tuple(map(Configuration.of, fitting))
        order = sorted(range(len(fitting)), key=times.__getitem__)
        return tuple(Configuration.of(fitting[index]) for index in order)


def _value(expression: Any, problem: Problem, settings: Settings) -> Any:
    """The value of an expression or a function for a problem and settings; others as they are."""
    if isinstance(expression, str):
        return Expression.parse(expression).value({**problem, **settings})
    return expression(problem, settings) if callable(expression) else expression
