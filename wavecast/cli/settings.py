"""Settings from `[tool.wavecast]` in the nearest pyproject.toml, as defaults of the options.

Order of precedence: pyproject.toml, then `WAVECAST_EXPLAIN_ARCH`-style variables, then options.
A table holds options of every verb (`arch = "gfx942"`) or of one (`[tool.wavecast.explain]`).
"""

from __future__ import annotations

from pathlib import Path

from wavecast import files
from wavecast.errors import InputError, UnknownName, UsageError

SETTINGS: dict[str, tuple[str, ...]] = {
    "explain": (
        "arch", "arch_file", "kernels", "configs", "format", "detail", "timeout", "fail_on",
        "disable",
    ),
    "arch": ("arch_file", "format"),
    "rules": ("format",),
    "bench": ("cache", "timing", "seconds", "samples", "precision", "label"),
    "diff": ("arch", "arch_file", "kernels", "configs", "timeout", "fail_on", "minimum", "rows"),
    "gate": (),
}  # fmt: skip
"""Verb -> the options a settings file may set."""

_OWN = frozenset({"gate"})
"""Verbs that read and check their table themselves."""
_REPEATED = frozenset({"arch_file"})
"""Options that are given once per value; a list for any other is joined by commas."""


def default_map(start: Path | None = None) -> dict[str, dict[str, object]]:
    """Defaults per verb for click. Raises UsageError for an unknown key or an unreadable file."""
    try:
        path = _nearest_pyproject(start or Path.cwd())
        content = files.read(path) if path is not None else b""
    except (OSError, InputError):  # the folder is gone, or another user's file cannot be read
        return {}
    if path is None or b"wavecast" not in content:
        return {}
    try:
        document = files.parse_toml(content.decode("utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    tool = document.get("tool", {})
    settings = tool.get("wavecast", {}) if isinstance(tool, dict) else {}
    if not isinstance(settings, dict):
        raise UsageError(f"{path}: [tool.wavecast] must be a table")
    defaults: dict[str, dict[str, object]] = {verb: {} for verb in SETTINGS}
    for key, value in settings.items():
        name = key.replace("-", "_")
        if isinstance(value, dict):
            _verb_table(path, name, value, defaults)
            continue
        verbs = [verb for verb, options in SETTINGS.items() if name in options]
        if not verbs:
            raise UnknownName(f"setting in {path}", key, _known_settings())
        for verb in verbs:
            defaults[verb].setdefault(name, _option_value(name, value))
    return defaults


def _verb_table(
    path: Path, verb: str, table: dict[str, object], defaults: dict[str, dict[str, object]]
) -> None:
    if verb not in SETTINGS:
        raise UnknownName(f"setting in {path}", verb, _known_settings())
    if verb in _OWN:
        return
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in SETTINGS[verb]:
            raise UnknownName(f"setting in {path} [tool.wavecast.{verb}]", key, SETTINGS[verb])
        defaults[verb][name] = _option_value(name, value)


def _option_value(name: str, value: object) -> object:
    if name in _REPEATED:
        return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
    return ",".join(map(str, value)) if isinstance(value, list) else value


def _known_settings() -> list[str]:
    return [*SETTINGS, *{option for options in SETTINGS.values() for option in options}]


def _nearest_pyproject(start: Path) -> Path | None:
    for folder in (start, *start.parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file():
            return candidate
    return None
