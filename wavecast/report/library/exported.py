"""C sources of an exported call: a header, a launcher, and the machine code as arrays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import jinja2

from wavecast.compile.call_plan import Buffer, BufferRole, CallPlan, FillStep, KernelStep
from wavecast.compile.codeobject import CodeObject
from wavecast.documents.export import (
    ExportBufferJson,
    ExportDocument,
    ExportLaunchJson,
    ExportTargetJson,
)
from wavecast.errors import UsageError
from wavecast.json_objects import dumps
from wavecast.pipeline.library.exporting import ExportedCall
from wavecast.report.kit import units
from wavecast.version import __version__

ALIGNMENT: Final = 16
"""Triton compiles for addresses that are multiples of this."""
_PIECE: Final = 256
"""Buffers in a workspace start at multiples of this, as those of an allocator."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BYTES_PER_LINE: Final = 20
_C_KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "auto break case char const continue default do double else enum extern float for goto if"
        " inline int long register restrict return short signed sizeof static struct switch typedef"
        " union unsigned void volatile while",
    )
)
_CPP_KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class"
        " compl concept consteval constexpr constinit const_cast co_await co_return co_yield"
        " decltype delete dynamic_cast explicit export false friend mutable namespace new noexcept"
        " not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires"
        " static_assert static_cast template this thread_local throw true try typeid typename using"
        " virtual wchar_t xor xor_eq",
    )
)
_NOT_FUNCTIONS: Final = _C_KEYWORDS | _CPP_KEYWORDS | {"main"}
"""Names that a function cannot have in a header for C and C++ programs."""
_NOT_PARAMETERS: Final = _C_KEYWORDS | {"handle", "workspace", "stream"}
"""Names that a parameter cannot have: keywords of C, and the other parameters."""


def check_name(name: str) -> None:
    """Raises UsageError for a name that no function of C and C++ can have."""
    if not _NAME.fullmatch(name) or name in _NOT_FUNCTIONS:
        raise UsageError(
            f"{name!r} cannot name a function of C and C++",
            hint="use letters, digits and _, and no keyword",
        )


def export_files(name: str, calls: Sequence[ExportedCall]) -> dict[str, bytes]:
    """The files of an export by their name: `<name>.h`, `<name>.c`, `<name>_code.h`, `<name>.json`
    and every code object. `name` is the prefix of all functions. Raises UsageError for a name that
    C and C++ do not allow."""
    check_name(name)
    targets = [_Target.of(call.plan) for call in calls]
    amd = [target for target in targets if target.plan.kernels[0].launch.code.is_amd]
    nvidia = [target for target in targets if target not in amd]
    plan = calls[0].plan
    macro = name.upper()
    values: dict[str, Any] = {
        "name": name,
        "macro": macro,
        "operator": plan.operator,
        "sizes": " ".join(f"{key}={value}" for key, value in plan.sizes.items()),
        "version": __version__,
        "targets": [target.plan.target for target in targets],
        "interface": [_Parameter(parameter) for parameter in plan.interface],
        "predictions": [_prediction_text(call) for call in calls],
        "alignment": ALIGNMENT,
        "amd": bool(amd),
        "nvidia": bool(nvidia),
        "groups": _groups(macro, amd, nvidia),
        "most_kernels": max(len(target.kernels) for target in targets),
        "most_tables": max(1, *(len(target.tables) for target in targets)),
        "most_argument_bytes": max(target.most_argument_bytes for target in targets),
    }
    files = {
        f"{name}.h": _render("export.h.j2", values),
        f"{name}.c": _render("export.c.j2", values),
        f"{name}_code.h": _render("export_code.h.j2", values),
        f"{name}.json": dumps(_document(name, calls)),
    }
    contents = {file: text.encode() for file, text in files.items()}
    for call in calls:
        for code in call.plan.codes:
            contents[_file(name, call.plan, code)] = _binary(code)
    return contents


def _groups(macro: str, amd: list[_Target], nvidia: list[_Target]) -> list[dict[str, Any]]:
    """Targets by vendor, each with the line of the preprocessor before it."""
    if amd and nvidia:
        return [
            {"guard": f"#ifdef {macro}_CUDA", "targets": nvidia},
            {"guard": "#else", "targets": amd},
        ]
    return [{"guard": "", "targets": amd or nvidia}]


@dataclass(frozen=True, slots=True)
class _Array:
    """Bytes as the initialiser of a C array."""

    name: str
    content: bytes

    @property
    def text(self) -> str:
        rows = range(0, len(self.content), _BYTES_PER_LINE)
        lines = (self.content[row : row + _BYTES_PER_LINE] for row in rows)
        return "\n".join("    " + ", ".join(map(str, line)) + "," for line in lines)


@dataclass(frozen=True, slots=True)
class _Parameter:
    """A buffer as a parameter of C."""

    buffer: Buffer

    @property
    def name(self) -> str:
        return self.buffer.name

    @property
    def identifier(self) -> str:
        """The name, or with an underscore what is another one in C."""
        plain = re.sub(r"\W", "_", self.buffer.name)
        return plain + "_" if plain in _NOT_PARAMETERS else plain

    @property
    def role(self) -> str:
        return self.buffer.role.value

    @property
    def dtype(self) -> str:
        return self.buffer.dtype

    @property
    def shape(self) -> list[int]:
        return list(self.buffer.shape)

    @property
    def strides(self) -> list[int]:
        return list(self.buffer.strides)

    @property
    def bytes(self) -> int:
        return self.buffer.bytes


@dataclass
class _Target:
    """One plan as the arrays of `export_code.h.j2`."""

    plan: CallPlan
    arrays: list[_Array] = field(default_factory=list)
    kernels: list[dict[str, Any]] = field(default_factory=list)
    buffers: list[dict[str, Any]] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    launches: list[dict[str, Any]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    workspace: int = 0
    most_argument_bytes: int = 1

    @classmethod
    def of(cls, plan: CallPlan) -> _Target:
        target = cls(plan)
        target._add_kernels()
        target._add_buffers()
        for number, step in enumerate(plan.steps):
            target.steps.append(
                target._launch(number, step) if isinstance(step, KernelStep) else _fill(step)
            )
        return target

    @property
    def id(self) -> str:
        return self.plan.target

    @property
    def target(self) -> str:
        return self.plan.target

    def _array(self, name: str, content: bytes) -> str:
        self.arrays.append(_Array(f"{self.id}_{name}", content))
        return self.arrays[-1].name

    def _add_kernels(self) -> None:
        for number, code in enumerate(self.plan.codes):
            array = self._array(f"code_{number}", _binary(code))
            self.kernels.append({"array": array, "symbol": code.kernel, "lds": code.dynamic_lds})

    def _add_buffers(self) -> None:
        arguments = 0
        for buffer in self.plan.buffers:
            if buffer.role is BufferRole.WORKSPACE:
                where, offset = "WORKSPACE", self.workspace
                self.workspace += -(-buffer.bytes // _PIECE) * _PIECE
            elif buffer.role is BufferRole.CONSTANT:
                where, offset = "TABLE", len(self.tables)
                array = self._array(f"table_{offset}", buffer.content)
                self.tables.append({"array": array, "bytes": len(buffer.content)})
            else:
                where, offset = "ARGUMENT", arguments
                arguments += 1
            self.buffers.append({"where": where, "offset": offset, "name": buffer.name})

    def _launch(self, number: int, step: KernelStep) -> str:
        launch, name = step.launch, f"{self.id}_launch_{number}"
        self.launches.append({"id": name, "pointers": step.pointers})
        kernel = [code.digest for code in self.plan.codes].index(launch.code.digest)
        segment = self._array(f"arguments_{number}", step.segment or b"\0")
        self.most_argument_bytes = max(self.most_argument_bytes, len(step.segment))
        grid = ", ".join(map(str, launch.grid))
        pointers = f"{name}_pointers" if step.pointers else "NULL"
        return (
            f"{{{kernel}, {{{grid}}}, {launch.block[0]}, {segment}, {len(step.segment)}, "
            f"{pointers}, {len(step.pointers)}, 0, 0, 0, 0, 0}}"
        )


def _fill(step: FillStep) -> str:
    pattern = int.from_bytes(step.pattern, "little")
    return (
        f"{{-1, {{0, 0, 0}}, 0, NULL, 0, NULL, 0, {step.buffer}, {step.address}, {step.count}, "
        f"{pattern}u, {len(step.pattern)}}}"
    )


def _binary(code: CodeObject) -> bytes:
    binary = code.stages["hsaco" if code.is_amd else "cubin"]
    assert isinstance(binary, bytes)
    return binary


def _file(name: str, plan: CallPlan, code: CodeObject) -> str:
    """`<name>.<target>.<kernel>.hsaco`, with a number where several have the kernel's name."""
    same = [candidate for candidate in plan.codes if candidate.kernel == code.kernel]
    number = f".{same.index(code)}" if len(same) > 1 else ""
    end = "hsaco" if code.is_amd else "cubin"
    return f"{name}.{plan.target}.{code.kernel}{number}.{end}"


def _prediction_text(call: ExportedCall) -> str:
    estimate = call.seconds
    if estimate is None:
        return f"{call.plan.device}: not known"
    middle, low, high = map(units.seconds, estimate)
    return f"{call.plan.device}: {middle} ({low} to {high})"


def _document(name: str, calls: Sequence[ExportedCall]) -> ExportDocument:
    plan = calls[0].plan
    targets = [
        ExportTargetJson(
            device=call.plan.device,
            target=call.plan.target,
            workspace_bytes=_Target.of(call.plan).workspace,
            buffers=[
                ExportBufferJson.of(
                    buffer,
                    role=buffer.role.value,
                    shape=list(buffer.shape),
                    strides=list(buffer.strides),
                )
                for buffer in call.plan.buffers
            ],
            launches=[
                _launch_json(name, call, step, number)
                for number, step in enumerate(call.plan.kernels)
            ],
        )
        for call in calls
    ]
    return ExportDocument(name, plan.operator, dict(plan.sizes), __version__, targets)


def _launch_json(name: str, call: ExportedCall, step: KernelStep, number: int) -> ExportLaunchJson:
    explained, launch = call.explained[number], step.launch
    prediction = explained.predicted.prediction if explained else None
    why = "" if prediction else explained.predicted.why_not if explained else "it was not explained"
    return ExportLaunchJson(
        kernel=launch.code.kernel,
        file=_file(name, call.plan, launch.code),
        grid=list(launch.grid),
        workgroup_size=launch.block[0],
        lds_bytes=launch.dynamic_lds,
        seconds=prediction.seconds if prediction else None,
        low=prediction.low if prediction else None,
        high=prediction.high if prediction else None,
        why_not=why,
    )


def _render(template: str, values: dict[str, Any]) -> str:
    return _environment().get_template(template).render(values)


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("wavecast.report"),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )


__all__ = ["ALIGNMENT", "check_name", "export_files"]
