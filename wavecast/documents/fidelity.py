"""What `wavecast run --fidelity` says of executed instructions."""

from __future__ import annotations

from typing import Annotated

from wavecast.json_objects import Count, JsonObject, doc


class DecisionJson(JsonObject):
    """An instruction that an open result may decide."""

    kind: Annotated[str, doc("address, branch, lanes (those that execute) or barrier")]
    mnemonic: str
    file: Annotated[str | None, doc("null for code without a line")]
    line: Annotated[Count | None, doc("null for code without a line")]


class OpenInstructionJson(JsonObject):
    """The instructions of a source line that have one open behaviour."""

    status: Annotated[str, doc("approximated or undocumented")]
    behaviour: Annotated[str, doc("row of docs/hardware.md")]
    mnemonic: str
    file: Annotated[str | None, doc("null for code without a line")]
    line: Annotated[Count | None, doc("null for code without a line")]
    executions: Annotated[Count, doc("wave-instructions")]
    decides: Annotated[
        list[DecisionJson],
        doc("what its value may decide, through registers of the function and memory of a launch"),
    ]


class KernelFidelityJson(JsonObject):
    """A kernel, all launches of one grid together."""

    kernel: Annotated[str, doc("name; instances of a template have a part of the symbol in it")]
    symbol: Annotated[str, doc("in the code")]
    target: str
    launches: Count
    instructions: Annotated[Count, doc("wave-instructions")]
    documented: Annotated[Count, doc("those whose result is documented: the emulator has its bits")]
    open: list[OpenInstructionJson]


__all__ = ["DecisionJson", "KernelFidelityJson", "OpenInstructionJson"]
