"""`wavecast.api.ops.operators`: the kernel library, and what it becomes on each GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wavecast.api.result import ShownResult, few
from wavecast.errors import InputError, NothingAnalysed, UnknownName
from wavecast.options import Options, Progress, option, silent
from wavecast.options.values import FILE, OUTPUT_FOLDER, PROCESSES, Integers, NameList, Regex

if TYPE_CHECKING:
    from rich.console import Console

    from wavecast.kernels.operator import Operator
    from wavecast.kernels.registry import OperatorLine
    from wavecast.pipeline.library.library import Call, Surveyed
    from wavecast.tuning.library import TunedCall


@dataclass(frozen=True, kw_only=True)
class OperatorOptions(Options):
    """Which operators are listed."""

    pattern: str = option(
        "", "Only operators whose name matches.", "-k", "--operators", values=Regex()
    )


@dataclass(frozen=True, kw_only=True)
class SurveyPages(OperatorOptions):
    """Pages of what operators become on GPUs."""

    pages: Path | None = option(
        None, "Write one page per operator to this folder.", values=OUTPUT_FOLDER
    )


@dataclass(frozen=True, kw_only=True)
class StoredSurvey(SurveyPages):
    """Options of operators that were compiled before."""

    survey: Path | None = option(
        None, "Use this output of --format json instead of compiling.", values=FILE
    )


@dataclass(frozen=True, kw_only=True)
class CompiledOperators(SurveyPages):
    """Options of operators that are compiled."""

    NEEDS: ClassVar[Mapping[str, str]] = {"candidates": "tune", "tables": "tune"}
    EXCLUSIVE: ClassVar = (("tune", "pages"),)

    arch: tuple[str, ...] = option(
        (), "GPUs to compile for.", values=NameList(), metavar="GPU[,GPU…]"
    )
    small: bool = option(
        False, "Use the test cases instead of the shapes an operator is judged on."
    )
    shapes: int | None = option(
        None, "Only the first N shapes of each operator.", values=Integers(1), metavar="N"
    )
    jobs: int = option(1, "Number of processes.", values=PROCESSES)
    tune: bool = option(False, "Write tables of tuned configurations.")
    candidates: int = option(
        8, "With --tune: number of configurations per kernel and problem.", values=Integers(1)
    )
    tables: Path | None = option(
        None,
        "With --tune: folder of the tables (default: the package's).",
        values=OUTPUT_FOLDER,
    )

    def calls(self, operators: Sequence[Operator]) -> list[Call]:
        """What is compiled. Raises UnknownName for a GPU."""
        from wavecast import arch

        devices = [arch.load(name) for name in self.arch]
        return [
            (operator.name, dict(sizes), device.id)
            for operator in operators
            for sizes in (operator.cases if self.small else operator.shapes)[: self.shapes]
            for device in devices
            if not operator.targets or device.target in operator.targets
        ]


MODES: Final[dict[str, type[Options]]] = {"survey": StoredSurvey, "arch": CompiledOperators}


@dataclass(frozen=True, slots=True, repr=False)
class OperatorList(ShownResult):
    """Operators of the kernel library. The document is a list."""

    WIDTH = 220
    lines: Sequence[OperatorLine]

    def to_dict(self) -> list[Any]:
        return [asdict(line) for line in self.lines]

    def render(self, console: Console) -> None:
        from wavecast.report.library import catalogue

        catalogue.listing(self.lines, console)

    def subject(self) -> str:
        return few([line.name for line in self.lines])


@dataclass(frozen=True, slots=True, repr=False)
class LibrarySurvey(ShownResult):
    """What calls of operators launch on GPUs, in which time. The document is `wavecast.ops/1`."""

    WIDTH = 220
    calls: Sequence[Surveyed]

    def to_dict(self) -> dict[str, Any]:
        from wavecast.report.library import operators as library

        return library.document(self.calls)

    def render(self, console: Console) -> None:
        from wavecast.report.library import operators as library

        library.render(self.calls, console)

    def subject(self) -> str:
        return few([call.operator for call in self.calls])


@dataclass(frozen=True, slots=True, repr=False)
class TunedOperators(ShownResult):
    """The rows that were written to tables of configurations, by call, or why there are none. The
    document is a list."""

    WIDTH = 220
    calls: Sequence[TunedCall]

    def to_dict(self) -> list[Any]:
        from wavecast.json_objects import values

        entries = [
            [{**asdict(row), "configuration": row.configuration.settings} for row in call.entries]
            for call in self.calls
        ]
        return [
            values({**asdict(replace(call, entries=())), "entries": rows})
            for call, rows in zip(self.calls, entries, strict=True)
        ]

    def render(self, console: Console) -> None:
        for call in self.calls:
            console.print(
                f"{_call_text(call)} {call.failure}", markup=False, highlight=False, soft_wrap=True
            )
            for entry in call.entries:
                formula = f" (formula {entry.formula_seconds:.3g} s)" * bool(entry.formula_seconds)
                text = f"    {entry.kernel}: {entry.configuration} {entry.seconds:.3g} s{formula}"
                console.print(text, markup=False, highlight=False, soft_wrap=True)

    def subject(self) -> str:
        return few([call.operator for call in self.calls])


def operators(
    *names: str, progress: Progress = silent, **options: Any
) -> OperatorList | LibrarySurvey | TunedOperators:
    """The operators of the kernel library, or those of some `names`.

    With `arch` they are compiled: configuration, registers, spills, occupancy, predicted time and
    its share of the bound on each GPU (`LibrarySurvey`); with `tune=True` further configurations
    are compiled, and the best by prediction are written to tables (`TunedOperators`). `options` are
    those of the command line, by the names of `OperatorOptions`, `CompiledOperators` and
    `StoredSurvey`.

    Raises UnknownName for an operator or a GPU, NothingAnalysed where no operator has such a name,
    InputError for files, MissingTool without PyTorch or Triton.
    """
    stated = OperatorOptions.among(MODES, options)
    assert isinstance(stated, OperatorOptions)
    lines = _matching_operators(names, stated.pattern)
    if not isinstance(stated, SurveyPages):
        return OperatorList(lines)
    from wavecast.kernels import registry
    from wavecast.pipeline.library.library import survey
    from wavecast.report.library import operators as library

    chosen = [registry.operator(line.name) for line in lines]
    if isinstance(stated, CompiledOperators):
        calls = stated.calls(chosen)
        if stated.tune:
            return TunedOperators(list(_tune(calls, stated, progress)))
        order = {json.dumps(call): number for number, call in enumerate(calls)}
        surveyed = sorted(
            follow(survey(calls, jobs=stated.jobs), len(calls), progress),
            key=lambda call: order[json.dumps((call.operator, call.sizes, call.device))],
        )
    else:
        assert isinstance(stated, StoredSurvey)
        assert stated.survey is not None
        surveyed = library.from_document(_json(stated.survey))
    if stated.pages is not None:
        _write_pages(stated.pages, chosen, surveyed)
    return LibrarySurvey(surveyed)


def follow(calls: Iterable[Surveyed], total: int, progress: Progress) -> Iterator[Surveyed]:
    """The results as they come; `progress` hears their number."""
    progress(f"compiling {total} calls")
    for number, call in enumerate(calls, 1):
        progress(f"{number} of {total} calls: {call.operator} on {call.device}")
        yield call


def _json(file: Path) -> Any:
    from wavecast import files

    try:
        return files.parse_json(files.read(file))
    except ValueError as error:
        raise InputError(f"{file} is not JSON: {error}") from None


def _matching_operators(names: Sequence[str], pattern: str) -> list[OperatorLine]:
    """The operators of some names that match. Raises UnknownName and NothingAnalysed."""
    from wavecast.kernels import registry

    lines = {line.name: line for line in registry.catalogue()}
    for name in names:
        if name not in lines:
            raise UnknownName("operator", name, lines)
    matching = [lines[name] for name in names or lines if re.search(pattern, name)]
    if not matching:
        raise NothingAnalysed("no operator has such a name")
    return matching


def _write_pages(folder: Path, operators: Sequence[Operator], surveyed: Sequence[Surveyed]) -> None:
    from wavecast.files import write_text
    from wavecast.kernels import registry
    from wavecast.report.library import operators as library

    folder.mkdir(parents=True, exist_ok=True)
    families = [registry.family(operator.name) for operator in operators]
    for operator, family in zip(operators, families, strict=True):
        write_text(folder / f"{operator.name}.md", library.page(operator, family, surveyed))
    write_text(folder / "README.md", library.index(operators, families))


def _tune(
    calls: Sequence[Call], options: CompiledOperators, progress: Progress
) -> Iterator[TunedCall]:
    """Tuned calls; the tables are written after each, so that an interruption loses nothing."""
    from wavecast.kernels import tables
    from wavecast.kernels.tables import TunedEntry
    from wavecast.tuning.library import tune

    written: dict[str, list[TunedEntry]] = {}
    tuned = tune(calls, candidates=options.candidates, jobs=options.jobs)
    for number, call in enumerate(tuned, 1):
        progress(f"{number} of {len(calls)} calls: {_call_text(call)}")
        if call.entries:
            rows = written.setdefault(call.device, [])
            rows += call.entries
            tables.store(call.device, rows, options.tables)
        yield call


def _call_text(call: TunedCall) -> str:
    sizes = " ".join(f"{name}={value}" for name, value in call.sizes.items())
    return f"{call.device} {call.operator} {sizes}"


__all__ = [
    "MODES",
    "CompiledOperators",
    "LibrarySurvey",
    "OperatorList",
    "OperatorOptions",
    "StoredSurvey",
    "TunedOperators",
    "follow",
    "operators",
]
