"""How long the host takes for a call of an operator, without the launch itself.

    python benchmarks/op_calls.py [-k PATTERN] [--seconds 0.2]

Kernels are compiled for a GPU that is not there and started by a launcher that does nothing, so
what is left is Python between the user's call and the driver: ours, PyTorch's dispatcher and
Triton's. Columns are microseconds of the fastest of several rounds:

    prepared     as for a signature that was never seen (but configured and compiled)
    torch.ops    a repeated call of `torch.ops.wavecast.<name>`
    ops          a repeated call of `wavecast.ops.<name>`
    dispatcher   an operator of the same schema whose kernel returns at once, in the same library
    custom_op    `torch.library.custom_op` of the same schema, which returns at once
    results      allocation of the results alone
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import Any

import torch

import wavecast
from wavecast.frameworks.torch import library, replay
from wavecast.kernels import registry
from wavecast.kernels.operator import Operator
from wavecast.launch import recording
from wavecast.launch.inputs import Make

CALLS = (
    "rms_norm", "rms_norm_residual", "silu_mul", "rope", "matmul", "batched_matmul", "attention",
    "paged_decode", "quantise_fp8_token", "scaled_matmul", "moe_experts", "convolution",
    "cross_entropy", "layer_norm_backward", "kv_cache_write", "adamw",
)  # fmt: skip
"""One of each form: results, several launches, workspaces, arguments written in place."""

_ROUNDS = 5
_CALLS = 50
_bare = torch.library.Library("wavecast_benchmark", "FRAGMENT")


def main() -> None:
    parser = argparse.ArgumentParser(description="What a call of an operator costs the host.")
    parser.add_argument("-k", "--pattern", default="", help="only operators that match")
    parser.add_argument("--seconds", type=float, default=0.2, help="per figure")
    given = parser.parse_args()
    columns = (
        "prepared",
        "torch.ops",
        "ops",
        "dispatcher",
        "custom_op",
        "results",
        "ops / custom_op",
    )
    print(f"{'operator':22}" + "".join(f"{one:>{max(12, len(one) + 2)}}" for one in columns))
    library.install()
    with wavecast.device("gfx942", pytorch=False) as hooks:
        vars(hooks.driver)["launcher_cls"] = _launcher
        for name in CALLS:
            if re.search(given.pattern, name):
                row(registry.operator(name), given.seconds)


def row(operator: Operator, seconds: float) -> None:
    """Print one operator's times."""
    arguments = replay.repeated_calls(operator.name).values(
        (), operator.inputs(Make(0), **operator.cases[0])
    )
    call = library.function(operator.name)
    overload = getattr(torch.ops.wavecast, operator.name)
    result = overload(*arguments)
    for _ in range(2):
        overload(*arguments)
    with recording.block():
        prepared = best(lambda: overload(*arguments), seconds)
    bare, custom = twins(operator, result)
    made = [result] if isinstance(result, torch.Tensor) else list(result or ())
    shapes = [(tuple(one.shape), one.dtype, one.device) for one in made]
    times = [
        prepared,
        best(lambda: overload(*arguments), seconds),
        best(lambda: call(*arguments), seconds),
        best(lambda: bare(*arguments), seconds),
        best(lambda: custom(*arguments), seconds),
        best(lambda: [torch.empty(s, dtype=t, device=d) for s, t, d in shapes], seconds),
    ]
    cells = "".join(f"{1e6 * one:12.1f}" for one in times)
    print(f"{operator.name:22}{cells}{times[2] / times[4]:17.2f}", flush=True)


def twins(operator: Operator, result: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Operators of the same schema whose kernels return a result made before."""
    schema = torch.library.infer_schema(operator.call, mutates_args=operator.mutates)

    def answer(*_: Any, **__: Any) -> Any:
        return result

    _bare.define(f"{operator.name}{schema}")
    _bare.impl(operator.name, answer, "CompositeExplicitAutograd")
    custom = torch.library.custom_op(
        f"wavecast_benchmark::custom_{operator.name}",
        answer,
        mutates_args=operator.mutates,
        schema=schema,
    )
    return getattr(torch.ops.wavecast_benchmark, operator.name), custom


def best(work: Callable[[], object], seconds: float) -> float:
    """Seconds of a call: the fastest of the rounds of `seconds`. Others run on the machine, so that
    rounds are short."""
    found, begun = [], time.perf_counter()
    while time.perf_counter() - begun < seconds or len(found) < _ROUNDS:
        start = time.perf_counter()
        for _ in range(_CALLS):
            work()
        found.append((time.perf_counter() - start) / _CALLS)
    return min(found)


def _launcher(*_: Any) -> Callable[..., None]:
    """A launcher that launches nothing, for any kernel."""
    return lambda *_: None


if __name__ == "__main__":
    main()
