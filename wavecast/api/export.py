"""`wavecast.export`: a call of the kernel library for C and C++ programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from wavecast.api.result import ShownResult
from wavecast.errors import InputError
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import Files, NameList, OptionValues

if TYPE_CHECKING:
    from rich.console import Console


class CallSizes(OptionValues):
    """`m=4096,dtype=bfloat16`; a program may pass a mapping."""

    name = "NAME=VALUE,…"

    def parse(self, text: str) -> dict[str, object]:
        sizes: dict[str, object] = {}
        for part in filter(None, text.split(",")):
            name, equals, value = part.partition("=")
            if not equals:
                raise ValueError(f"{part!r} is not NAME=VALUE")
            sizes[name] = _value(value)
        return sizes

    def take(self, value: Any) -> dict[str, object]:
        return self.parse(value) if isinstance(value, str) else dict(value)


def _value(text: str) -> object:
    if text in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Options of an export."""

    REQUIRED: ClassVar = ("output",)

    shape: Mapping[str, object] | None = option(
        None,
        "Sizes, dtypes and flags of the call.",
        values=CallSizes(),
        default_text="the first shape of the operator; stated values replace its own",
    )
    arch: tuple[str, ...] = option(
        ("gfx942",),
        "GPUs to compile for, one per compiler target.",
        "-a",
        "--arch",
        values=NameList(),
        metavar="GPU[,GPU…]",
    )
    output: Path | None = option(
        None,
        "Prefix of the files. The functions have its name without lib.",
        "-o",
        "--output",
        values=Files(),
        metavar="PREFIX",
    )


@dataclass(frozen=True, slots=True, repr=False)
class ExportReport(ShownResult):
    """The `files` that were written: header, launcher, machine code, and the `manifest`, which is
    the document, `wavecast.export/1`."""

    files: tuple[Path, ...]
    manifest: Mapping[str, Any]

    def render(self, console: Console) -> None:
        for file in self.files:
            console.print(str(file), markup=False, highlight=False, soft_wrap=True)

    def to_dict(self) -> dict[str, Any]:
        return {**self.manifest}

    def subject(self) -> str:
        return f"{self.manifest['operator']} as {self.manifest['name']}"


def export(operator: str, *, progress: Progress = silent, **options: Any) -> ExportReport:
    """Compile one call of an operator of the kernel library ahead of time, for programs without
    Python: a C header, a launcher, the machine code, and a manifest with predicted times.

    `options` are those of the command line, by the names of `ExportOptions`; `shape` may be a
    mapping, `output` is the prefix of the files. Raises UnknownName for an operator, a size or a
    GPU, UsageError for a call that cannot be exported, CompileError, InputError for files that
    cannot be written.
    """
    from wavecast import arch, files
    from wavecast.kernels import registry
    from wavecast.pipeline.library.exporting import export as compiled
    from wavecast.report.library.exported import check_name, export_files

    stated = ExportOptions.of(options)
    assert stated.output is not None
    name, folder = stated.output.name.removeprefix("lib"), stated.output.parent
    check_name(name)
    chosen, shape = registry.operator(operator), stated.shape or {}
    chosen.check_sizes(shape)
    sizes = {**chosen.shapes[0], **shape}
    devices = list({device.id: device for device in map(arch.load, stated.arch)}.values())
    progress(f"compiling {chosen.describe(sizes)}")
    contents = export_files(name, compiled(chosen, sizes, devices))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in contents.items():
            files.write_atomic(folder / file, content)
    except OSError as error:
        raise InputError(f"cannot write {error.filename}: {error.strerror}") from None
    manifest = files.parse_json(contents[f"{name}.json"])
    return ExportReport(tuple(folder / file for file in contents), manifest)


__all__ = ["CallSizes", "ExportOptions", "ExportReport", "export"]
