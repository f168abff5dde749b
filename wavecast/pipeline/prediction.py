"""The time of an explained launch, from the best source of demand there is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wavecast.analyze.result import CodeAnalysis
from wavecast.arch import Device
from wavecast.compile import ttgir
from wavecast.compile.codeobject import CodeObject, Launch
from wavecast.errors import MissingFact, Unpredictable
from wavecast.isa.program import Kernel
from wavecast.model.account import Place, place_of
from wavecast.model.kernel import predicted
from wavecast.model.launch import Launched, timing
from wavecast.model.prediction import Prediction
from wavecast.model.static import static_launch
from wavecast.predict.packed import unpack


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """A prediction and the launch as it was simulated, or why there is none."""

    prediction: Prediction | None
    launched: Launched | None = None
    why_not: str = ""


NOT_ASKED: Final = Predicted(None, None, "not asked for")


def predict(
    launch: Launch,
    analysis: CodeAnalysis,
    kernel: Kernel | None,
    device: Device,
    *,
    what_if: bool = False,
    held: Mapping[str, float] | None = None,
) -> Predicted:
    """Predict an AMD launch; what stands in the way is told in `why_not`. `held` is what share of
    each argument is in the memory-side cache before; an executed sample finds nothing there."""
    if kernel is None:
        return Predicted(None, None, "NVIDIA code is bounded, not simulated")
    try:
        packed = launch.executed.get(device.id)
        notes: tuple[str, ...] = ()
        widen = 1.0
        if packed is not None:
            launched, notes, widen = unpack(packed, kernel, device)
        else:
            launched = static_launch(launch, analysis, kernel, device, held)
        found = predicted(
            launched,
            kernel.program,
            "static" if packed is None else "executed",
            notes=notes,
            widen=widen,
            what_if=what_if,
            simulated=timing(launched),
            operations=_operations(launch.code),
        )
    except (Unpredictable, MissingFact) as error:
        return Predicted(None, None, error.message)
    return Predicted(found, launched)


def _operations(code: CodeObject) -> dict[Place, list[str]]:
    """The operations of Triton's GPU IR by source place, where the code has it."""
    text = code.stages.get("ttgir")
    found: dict[Place, list[str]] = {}
    for operation in ttgir.parse(text).operations if isinstance(text, str) else ():
        if operation.location is not None:
            name = f"{operation.line}: {operation.name}"
            found.setdefault(place_of(operation.location), []).append(name)
    return found


__all__ = ["NOT_ASKED", "Predicted", "predict"]
