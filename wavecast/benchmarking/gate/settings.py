"""`[tool.wavecast.gate]` of a project: what is under guard, on which devices, how strictly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from wavecast import arch, files
from wavecast.benchmarking.gate.guards import Guard, GuardKind
from wavecast.benchmarking.gate.thresholds import Thresholds, parse
from wavecast.benchmarking.measure import axes
from wavecast.benchmarking.records import Scalar
from wavecast.compile.kinds import HIP_SUFFIXES
from wavecast.errors import InputError, UnknownName, UsageError
from wavecast.patterns import regex

BASELINE: Final = "wavecast-baseline.json"
TABLE: Final = "[tool.wavecast.gate]"
_KEYS: Final = (
    *("arch", "baseline", "checks", "execute", "strict", "path", "thresholds", "subjects"),
)
_COMMON: Final = ("arch", "checks", "execute", "thresholds")
_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    "operator": ("axes",),
    "function": ("axes", "reference", "ulps", "accumulated"),
    "script": ("args", "kernels", "timeout"),
    "profile": (),
}
_KINDS: Final[Mapping[str, GuardKind]] = {
    "operator": "operator",
    "function": "callable",
    "script": "kernel",
    "profile": "kernel",
}


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a project's gate is about. `root` is the folder of the pyproject.toml, `path` the
    folders its functions are imported from, `baseline` the committed figures; `strict` makes an
    error of what is new."""

    root: Path
    guards: tuple[Guard, ...]
    baseline: Path
    path: tuple[Path, ...]
    strict: bool = False

    def select(self, names: Sequence[str]) -> tuple[Guard, ...]:
        """The guards with these names or patterns (`rms_*`), all for none. Raises UnknownName."""
        if not names:
            return self.guards
        selection: dict[int, Guard] = {}
        for name in names:
            mine = {
                index: guard
                for index, guard in enumerate(self.guards)
                if fnmatchcase(guard.name, name)
            }
            if not mine:
                raise UnknownName(
                    f"subject of {TABLE}", name, [guard.name for guard in self.guards]
                )
            selection |= mine
        return tuple(selection[index] for index in sorted(selection))


def read(start: Path) -> GateSettings:
    """The settings of the project around a folder: of the nearest pyproject.toml.

    Raises InputError if there is none or it is not TOML, UsageError for a table that is missing
    or wrong, UnknownName for a key or name there is not.
    """
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            break
    else:
        raise InputError(f"no pyproject.toml in {start} or above", hint=f"it has {TABLE}")
    try:
        document = files.parse_toml(files.read_text(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    shared = _table(_table(document.get("tool", {}), path).get("wavecast", {}), path)
    if "gate" not in shared:
        raise UsageError(f"{path} has no {TABLE}", hint="docs/ci.md describes its settings")
    return of_table(_table(shared["gate"], path), path.parent, shared.get("arch"))


def of_table(table: Mapping[str, Any], root: Path, usual: Any = None) -> GateSettings:
    """The settings of a table; `usual` is what `arch` says for all verbs. Raises UnknownName and
    UsageError."""
    table = {key.replace("-", "_"): value for key, value in table.items()}
    for key in table:
        if key not in _KEYS:
            raise UnknownName(f"setting in {TABLE}", key, _KEYS)
    entries = table.get("subjects", [])
    if not isinstance(entries, list) or not entries:
        raise UsageError(f"{TABLE} names no subjects", hint='subjects = ["rms_norm", "bench.py"]')
    defaults = {
        "arch": table.get("arch", usual),
        "checks": table.get("checks", False),
        "execute": table.get("execute", False),
    }
    thresholds = parse(
        _mapping(table.get("thresholds", {}), "thresholds"), f"{TABLE} thresholds", Thresholds()
    )
    guards = [guard for entry in entries for guard in _guards(entry, defaults, thresholds, root)]
    _check_repeats(guards)
    return GateSettings(
        root=root,
        guards=tuple(guards),
        baseline=root / _text(table.get("baseline", BASELINE), "baseline"),
        path=(root, *(root / folder for folder in _texts(table.get("path", []), "path"))),
        strict=_flag(table.get("strict", False), "strict"),
    )


def _guards(
    entry: Any, defaults: Mapping[str, Any], thresholds: Thresholds, root: Path
) -> Iterator[Guard]:
    """The guards of one subject, one per point of its axes."""
    if not isinstance(entry, str | Mapping):
        raise UsageError(f"{TABLE}: a subject is a text or a table, not {entry!r}")
    options = {_kind_of(entry): entry} if isinstance(entry, str) else entry
    options = {key.replace("-", "_"): value for key, value in _mapping(options, "subjects").items()}
    kinds = [kind for kind in _OF_KIND if kind in options]
    if len(kinds) != 1:
        raise UsageError(f"{TABLE}: a subject names one operator, function, script or profile")
    kind = kinds[0]
    name = _text(options[kind], kind)
    where = f"{TABLE} {name}"
    for key in options:
        names = (kind, *_COMMON, *_OF_KIND[kind])
        if key not in names:
            raise UnknownName(f"setting in {where}", key, names)
    options = {**defaults, **options}
    if not name or any(character.isspace() for character in name):
        raise UsageError(f"{where}: {name!r} cannot be a name: no spaces")
    if kind in ("script", "profile") and not (root / name).is_file():
        raise InputError(f"{where}: no such {kind}: {root / name}")
    if kind == "function" and ":" not in name:
        raise UsageError(f"{where}: a function is named module:function")
    guard_thresholds = parse(
        _mapping(options.get("thresholds", {}), where), f"{where} thresholds", thresholds
    )
    pattern = _text(options.get("kernels", ""), f"{where} kernels")
    regex(pattern, f"{where} kernels")
    for point in axes.points(_axes(_mapping(options.get("axes", {}), where), where)):
        yield Guard(
            kind=_KINDS[kind],
            name=name,
            devices=_devices(options["arch"], where),
            axes=point,
            arguments=_texts(options.get("args", []), f"{where} args"),
            kernels=pattern,
            timeout=_number(options.get("timeout"), f"{where} timeout"),
            reference=_text(options.get("reference", ""), f"{where} reference"),
            ulps=_number(options.get("ulps"), f"{where} ulps") or 1.0,
            accumulated=_number(options.get("accumulated"), f"{where} accumulated") or 2e-6,
            execute=_flag(options["execute"], f"{where} execute"),
            checks=_flag(options["checks"], f"{where} checks"),
            thresholds=guard_thresholds,
            profile=kind == "profile",
        )


def _kind_of(name: str) -> str:
    """The kind that a text stands for. Raises UsageError for a file that is none."""
    if Path(name).suffix in HIP_SUFFIXES:
        raise UsageError(
            f"{TABLE}: {name} cannot be a subject",
            hint="a script or a function that launches its kernel",
        )
    return "script" if name.endswith(".py") else "function" if ":" in name else "operator"


def _axes(table: Mapping[str, Any], where: str) -> dict[str, tuple[Scalar, ...]]:
    """Values of axes: one, a list of them, or a text as on the command line (`2^4..2^12`)."""
    by_name: dict[str, tuple[Scalar, ...]] = {}
    for name, value in table.items():
        values: list[Scalar] = []
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, str):
                values += axes.parse([f"{name}={entry}"])[name]
            elif isinstance(entry, (bool, int, float)):
                values.append(entry)
            else:
                raise UsageError(f"{where}: axis {name} cannot be {entry!r}")
        if not values:
            raise UsageError(f"{where}: axis {name} has no values")
        by_name[name] = tuple(values)
    return by_name


def _devices(value: Any, where: str) -> tuple[str, ...]:
    if value is None:
        raise UsageError(f"{where}: no arch is named", hint='arch = ["gfx942", "gfx1100"]')
    names = value.split(",") if isinstance(value, str) else _texts(value, f"{where} arch")
    ids = {arch.load(name.strip()).id: None for name in names if name.strip()}
    if not ids:
        raise UsageError(f"{where}: no arch is named", hint='arch = ["gfx942", "gfx1100"]')
    return tuple(ids)


def _check_repeats(guards: Sequence[Guard]) -> None:
    keys: set[tuple[Any, ...]] = set()
    for guard in guards:
        point = tuple(sorted(guard.axes.items()))
        for device in guard.devices:
            key = (guard.kind, guard.name, point, guard.arguments, device)
            if key in keys:
                raise UsageError(f"{TABLE} names {guard.line} on {device} twice")
            keys.add(key)


def _table(value: Any, path: Path) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{path}: {TABLE} must be a table")
    return value


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{where} must be a table")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where} must be a text")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise UsageError(f"{where} must be a list of texts")
    return tuple(value)


def _flag(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{where} is true or false")
    return value


def _number(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        raise UsageError(f"{where} must be a positive number")
    return float(value)


__all__ = ["BASELINE", "TABLE", "GateSettings", "of_table", "read"]
