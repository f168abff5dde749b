"""Options of verbs: a frozen class whose fields say what an option means and which values it takes.

    @dataclass(frozen=True, kw_only=True)
    class RunOptions(Options):
        tp: int | None = option(None, "GPUs that divide every layer.", values=Integers(1))

Command lines (`cli/verb.py`), Python functions and the reference are made from these classes. A
value is checked and converted where an object is made: a program may pass the text of a command
line. Messages name options as a command line does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

from wavecast.errors import UnknownName, UsageError
from wavecast.options.values import TEXT, Flag, Integers, Numbers, OptionValues, Several

Progress = Callable[[str], None]


def silent(text: str, /) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Option:
    """What a field of options means. `flags` are its names on a command line; `shown` is a default
    in words, "" where none is to be shown."""

    help: str
    values: OptionValues
    flags: tuple[str, ...] = ()
    metavar: str = ""
    shown: str | None = None


def option(
    default: Any,
    help: str,
    *flags: str,
    values: OptionValues | None = None,
    metavar: str = "",
    default_text: str | None = None,
) -> Any:
    """A field of a class of options. Without `values` they follow from the default; without `flags`
    the option has the name of its field, with dashes."""
    definition = Option(help, values or _values_of(default), flags, metavar, default_text)
    return field(default=default, metadata={"option": definition})


def _values_of(default: Any) -> OptionValues:
    match default:
        case bool():
            return Flag()
        case int():
            return Integers()
        case float():
            return Numbers()
        case str():
            return TEXT
        case ():
            return Several(TEXT)
    raise TypeError(f"an option with the default {default!r} needs its values")


class Options:
    """Base of frozen classes whose fields are options. `EXCLUSIVE` has names of fields of which at
    most one is stated; `NEEDS` maps a field to the one it says more about, `NEEDS_ONE_OF` to
    several of which one is enough; those of `REQUIRED` are always stated."""

    EXCLUSIVE: ClassVar[tuple[tuple[str, ...], ...]] = ()
    NEEDS: ClassVar[Mapping[str, str]] = {}
    NEEDS_ONE_OF: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    REQUIRED: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        """Raises UsageError for a value that its option does not take, and for conflicts."""
        non_defaults = set()
        for name, definition in self.described().items():
            value = getattr(self, name)
            if value == self.default(name):
                continue
            non_defaults.add(name)
            try:
                object.__setattr__(self, name, definition.values.take(value))
            except (ValueError, TypeError) as error:
                raise UsageError(f"{self.flag(name)}: {error}") from None
        for names in self.EXCLUSIVE:
            if len(non_defaults.intersection(names)) > 1:
                *first, last = map(self.flag, names)
                raise UsageError(f"{', '.join(first)} and {last} exclude each other")
        for name, others in self.needs().items():
            if name in non_defaults and not non_defaults.intersection(others):
                flags = " or ".join(map(self.flag, others))
                raise UsageError(f"{self.flag(name)} belongs to {flags}")
        for name in self.REQUIRED:
            if name not in non_defaults:
                metavar = self.described()[name].metavar
                raise UsageError(f"{self.flag(name)} is missing", hint=metavar)

    def states(self, *names: str) -> bool:
        """Whether one of these options has another value than its default."""
        return any(getattr(self, name) != self.default(name) for name in names)

    def check_unstated(self, names: Collection[str], subject: str) -> None:
        """Raises UsageError where one of these options is stated: none applies to `subject`."""
        for name in self.described():
            if name in names and self.states(name):
                raise UsageError(f"{self.flag(name)} does not apply to {subject}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The options from arguments by name. Raises UnknownName and UsageError."""
        definitions = cls.described()
        for name in values:
            if name not in definitions:
                raise UnknownName("option", name, definitions)
        return cls(**values)

    @classmethod
    def among(cls, modes: Mapping[str, type[Options]], values: Mapping[str, Any]) -> Options:
        """The options of the mode whose name is among `values`, or of this class.

        Raises UsageError for an option of another mode, UnknownName for one of none, and as an
        object is made.
        """
        mode = next((mode for mode in modes if values.get(mode)), "")
        for name in modes:
            if values.get(name) == "":
                raise UsageError(
                    f"{modes[name].flag(name)} is empty", hint=modes[name].described()[name].metavar
                )
        options = modes.get(mode, cls)
        for name in values.keys() - options.described():
            for other, every in (("", cls), *modes.items()):
                if name in every.described():
                    shown = (mode or other).replace("_", "-")
                    where = f"does not apply to --{shown}" if mode else f"belongs to --{shown}"
                    raise UsageError(f"{every.flag(name)} {where}")
            raise UnknownName("option", name, options.described())
        return options(**values)

    @classmethod
    def needs(cls) -> dict[str, tuple[str, ...]]:
        """Options, and those that they say more about: one of them is enough."""
        return {name: (other,) for name, other in cls.NEEDS.items()} | {**cls.NEEDS_ONE_OF}

    @classmethod
    def described(cls) -> dict[str, Option]:
        """The options by the name of their field."""
        return {each.name: each.metadata["option"] for each in fields(cls)}  # type: ignore[arg-type]

    @classmethod
    def flag(cls, name: str) -> str:
        """The long name of an option on a command line."""
        flags = cls.described()[name].flags
        long = next((flag for flag in flags if flag.startswith("--")), cls.flag_of(name))
        return long.partition("/")[0]

    @staticmethod
    def flag_of(name: str) -> str:
        """The option that a field has without flags."""
        return f"--{name.rstrip('_').replace('_', '-')}"

    @classmethod
    def default(cls, name: str) -> Any:
        """The default of an option."""
        return cls.__dataclass_fields__[name].default  # type: ignore[attr-defined]


@dataclass(frozen=True, kw_only=True)
class NoOptions(Options):
    """A class without options."""


__all__ = ["NoOptions", "Option", "Options", "Progress", "option", "silent"]
