"""One autotuned call, tried with other configurations: what each would launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.compile.codeobject import Launch
from wavecast.compile.triton import plain, slots
from wavecast.errors import CompileError
from wavecast.runtimes.patching import Patches
from wavecast.runtimes.triton import isolation
from wavecast.runtimes.triton.compat import jit_function
from wavecast.runtimes.triton.complaints import Refused
from wavecast.runtimes.triton.reach import makes_pointers, reachable
from wavecast.runtimes.triton.refusing import refuse_early

if TYPE_CHECKING:
    from wavecast.emulate.launch import AddressRange
    from wavecast.runtimes.triton.hooks import Hooks

Settings = Mapping[str, Any]
"""A configuration as keyword arguments: the kernel's own, `num_warps`, `num_stages` …"""

_OWN = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""What a `triton.Config` has in addition to the kernel's own names."""


@dataclass(frozen=True, slots=True)
class AutotunedCall:
    """What an autotuned call is about, apart from its configuration.

    `key` are the values of the autotuner's key, `arguments` what the compiler specialises on by
    name: dtype, and `:16` for a multiple of 16, `:1` for one; `source` names the kernel's text.
    """

    kernel: str
    key: Mapping[str, Any]
    arguments: Mapping[str, str]
    source: str


class Trials:
    """The call `tuner[grid](*args, **named)` inside a capture."""

    def __init__(self, hooks: Hooks, tuner: Any, args: tuple, kwargs: Mapping[str, Any]) -> None:
        self._hooks = hooks
        self._tuner = tuner
        self._args = args
        self._named = dict(kwargs)

    @property
    def call(self) -> AutotunedCall:
        return describe_call(self._tuner, self._args, self._named)

    def configurations(self) -> tuple[Settings, ...]:
        """The autotuner's configurations that its own pruning keeps."""
        self._bind()
        return tuple(config.all_kwargs() for config in self._tuner.prune_configs(self._named))

    def config_of(self, settings: Settings) -> Any:
        """The `triton.Config` of a configuration."""
        return make_config(self._tuner, settings)

    def launch(self, settings: Settings) -> tuple[Launch, tuple[AddressRange, ...]]:
        """What the call would launch, and the host memory that may touch.

        Call it in a child process: hooks of the program run, and the compiler may crash. Raises
        Refused for a configuration that does not compile or fit.
        """
        launches: list[tuple[Launch, tuple[AddressRange, ...]]] = []
        patches = Patches()

        def on_launch(kernel: Any, grid: tuple[int, int, int], values: tuple) -> None:
            launch = self._hooks.described(kernel, grid, values)
            layout = slots(kernel)
            pointers = makes_pointers(launch.code.stages)
            ranges = reachable(kernel.name, layout, values, everything=pointers)
            launches.append((launch, tuple(ranges)))

        patches.attribute(self._hooks.driver, "on_launch", on_launch)
        refuse_early(patches, self._hooks.driver.facts)
        try:
            on_trial = self._hooks.autotuners.on_trial(self.config_of(settings))
            with isolation.in_this_process(), on_trial:
                self._call(settings)
        finally:
            patches.restore()
        if not launches or not all(launches[-1][0].grid):
            raise Refused("launches nothing")
        return launches[-1]

    def _call(self, settings: Settings) -> None:
        caught: list[Exception] = []

        def once(call: Callable[[], Any], quantiles: Sequence[float] = ()) -> list[float]:
            try:
                call()
            except Exception as error:
                caught.append(error)
                raise
            return [1.0] * len(quantiles)

        self._bind()
        self._tuner.__dict__["do_bench"] = once
        try:
            # Triton's own: its hooks before and after, and its errors for what does not fit.
            self._tuner._bench(*self._args, config=self.config_of(settings), **self._named)
        except (Refused, CompileError) as error:
            raise Refused(str(error)) from error
        finally:
            self._tuner.__dict__.pop("do_bench", None)
        if caught:
            raise Refused(" ".join(str(caught[0]).split())) from caught[0]

    def _bind(self) -> None:
        self._tuner.nargs = dict(zip(self._tuner.arg_names, self._args, strict=False))


def describe_call(tuner: Any, args: tuple, kwargs: Mapping[str, Any]) -> AutotunedCall:
    """What the call `tuner[grid](*args, **named)` is about."""
    function = jit_function(tuner)
    bound = dict(zip(tuner.arg_names, args, strict=False))
    bound |= {name: value for name, value in kwargs.items() if name in tuner.arg_names}
    key = {name: plain(bound[name]) for name in tuner.keys if name in bound}
    classes = {name: _class(value) for name, value in bound.items()}
    return AutotunedCall(function.fn.__name__, key, classes, str(function.cache_key)[:16])


def make_config(tuner: Any, settings: Settings) -> Any:
    """A configuration as `triton.Config`: the autotuner's own if it has it, else with the hook
    that all its configurations share."""
    import triton

    for config in tuner.configs:
        if config.all_kwargs() == dict(settings):
            return config
    options = {name: settings[name] for name in _OWN if settings.get(name) is not None}
    kwargs = {name: value for name, value in settings.items() if name not in _OWN}
    hooks = {config.pre_hook for config in tuner.configs}
    hook = hooks.pop() if len(hooks) == 1 else None
    return triton.Config(kwargs, **options, pre_hook=hook)


def _class(value: Any) -> str:
    """What Triton specialises an argument on, coarsely: `bfloat16:16`, `int:16`, `int:1`."""
    if hasattr(value, "data_ptr"):
        dtype = str(value.dtype).removeprefix("torch.")
        return f"{dtype}:16" if value.data_ptr() % 16 == 0 else dtype
    if isinstance(value, bool) or not isinstance(value, int):
        return f"{value!r}" if isinstance(value, (bool, str, type(None))) else type(value).__name__
    if value == 1:
        return "int:1"
    return "int:16" if value % 16 == 0 else "int"
