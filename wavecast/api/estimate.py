"""`wavecast.estimate`: operations by their sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wavecast.api.launch import DeviceOptions
from wavecast.api.result import ShownResult, few
from wavecast.errors import UsageError
from wavecast.options import Progress, option, silent

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.pipeline.explain.operations import OperationReport, Outlook


@dataclass(frozen=True, kw_only=True)
class OperationOptions(DeviceOptions):
    """Options of an operation."""

    shape: tuple[str, ...] = option(
        (), "Sizes of an operation (4096x4096x4096), instead of a file.", metavar="SIZES"
    )
    settings: tuple[str, ...] = option(
        (), "Other properties of an operation: --set causal=true.", "--set", metavar="NAME=VALUE"
    )
    dtype: str = option("", "Dtype of an operation, or the one the given FLOPs are counted in.")

    def properties(self) -> dict[str, str]:
        """What the operation has besides its shape. Raises UsageError."""
        properties = {"dtype": self.dtype} if self.dtype else {}
        for setting in self.settings:
            name, equals, value = setting.partition("=")
            if not equals or not name:
                raise UsageError(f"--set: {setting!r} is not NAME=VALUE")
            properties[name.strip()] = value.strip()
        return properties


@dataclass(frozen=True, slots=True, repr=False)
class Estimate(ShownResult):
    """Predictions of operations, by shape and GPU. The document is `wavecast.operation/1`."""

    report: OperationReport

    @property
    def outlooks(self) -> tuple[Outlook, ...]:
        """Each operation on each GPU: its `prediction` in seconds with its interval."""
        return self.report.outlooks

    @property
    def notes(self) -> tuple[str, ...]:
        """How GPUs were chosen."""
        return self.report.notes

    def render(self, console: Console, *, detail: str = "normal") -> None:
        from wavecast.report.systems import operations

        operations.render(self.report, console, detail=detail)

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.systems import operations

        return operations.document(self.report)

    def subject(self) -> str:
        problems = few([str(outlook.problem) for outlook in self.outlooks])
        return f"{problems} on {few([outlook.device.id for outlook in self.outlooks], 6)}"


def estimate(
    kind: str,
    *,
    shape: str | Sequence[int] | Sequence[str],
    progress: Progress = silent,
    **properties: Any,
) -> Estimate:
    """The best time a good library reaches for an operation, per GPU.

    `kind` is `gemm`, `attention`, `moe`, `conv` …; `shape` its sizes (`"4096x4096x4096"`, `(4096,
    4096, 4096)`, or a list of such texts) and `properties` what else it has: `dtype="fp8"`,
    `causal=True`, `lengths=[512, 1024]`. `arch` names GPUs (`"mi300x,h200"` or a list),
    `arch_files` overlay device facts. Each of the result's `outlooks` has a `prediction` in seconds
    with its interval.

    Raises UsageError for sizes or properties the operation does not have, NothingAnalysed where no
    device has a prediction.
    """
    selection_options = {
        name: properties.pop(name) for name in ("arch", "arch_files") if name in properties
    }
    settings = [f"{name}={_text(value)}" for name, value in properties.items()]
    options = OperationOptions(
        shape=tuple(_shapes(shape)), settings=tuple(settings), **selection_options
    )
    return explain_operation(kind, options, progress)


def explain_operation(
    kind: str,
    options: OperationOptions,
    progress: Progress = silent,  # noqa: ARG001
) -> Estimate:
    """As `estimate`."""
    from wavecast.pipeline.explain.operations import explain_operation

    properties, selection = options.properties(), options.selection()
    return Estimate(explain_operation(kind, options.shape, properties, selection))


def _shapes(shape: str | Sequence[int] | Sequence[str]) -> list[str]:
    if isinstance(shape, str):
        return [shape]
    texts = [str(part) for part in shape]
    if not texts:
        raise UsageError("an operation needs a shape")
    return texts if isinstance(shape[0], str) else ["x".join(texts)]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__ = ["Estimate", "OperationOptions", "estimate", "explain_operation"]
