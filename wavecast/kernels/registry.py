"""All operators by name: those of this package, found in its folders, and those users add."""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType

from wavecast.compile.cache import DiskCache
from wavecast.compile.digest import key
from wavecast.errors import MissingTool, UnknownName, UsageError
from wavecast.extras import install_hint
from wavecast.kernels.operator import Operator

_own: dict[str, Operator] = {}
_added: dict[str, Operator] = {}
_families: dict[str, str] = {}
_listeners: list[Callable[[Operator], None]] = []


@dataclass(frozen=True, slots=True)
class OperatorLine:
    """An operator of the package: its name, the folder it is in, its summary in a line, and whether
    it has a gradient."""

    name: str
    family: str
    summary: str
    gradient: bool


def operators() -> Mapping[str, Operator]:
    """Every operator by name, in alphabetical order. The first call imports their files.

    Raises MissingTool without PyTorch or Triton.
    """
    if not _own:
        _load()
    return dict(sorted({**_own, **_added}.items()))


def built_in_operators() -> Mapping[str, Operator]:
    """The operators of this package by name, in alphabetical order. Raises MissingTool."""
    if not _own:
        _load()
    return dict(sorted(_own.items()))


def operator(name: str) -> Operator:
    """An operator by name. Raises UnknownName."""
    if not _own:
        _load()
    entry = _own.get(name) or _added.get(name)  # without sorting: calls look operators up
    if entry is None:
        raise UnknownName("operator", name, operators())
    return entry


def family(name: str) -> str:
    """The folder of an operator; `user` for added ones."""
    operator(name)
    return _families.get(name, "user")


def register(entry: Operator) -> Operator:
    """Add an operator of your own: it then behaves like those of the library, as
    `torch.ops.wavecast.<name>` too. Raises UsageError for a name that is taken."""
    if entry.name in operators():
        raise UsageError(f"there is an operator called {entry.name} already")
    _added[entry.name] = entry
    for listener in _listeners:
        listener(entry)
    return entry


def listen(listener: Callable[[Operator], None]) -> None:
    """Call `listener` with every operator added from now on."""
    _listeners.append(listener)


def collectives() -> ModuleType:
    """What the ranks of a group call, as `wavecast.ops.distributed` has it. Raises MissingTool
    without PyTorch or Triton."""
    _require_libraries()
    return import_module("wavecast.kernels.distributed.functions")


def catalogue() -> tuple[OperatorLine, ...]:
    """The operators of the package in alphabetical order, from the cache where it has them:
    the files of operators import PyTorch and Triton. Raises MissingTool without those."""
    store = DiskCache()
    entry = key("operators", _versions(), _sources())
    rows = store.get(entry)
    if isinstance(rows, tuple):
        return tuple(OperatorLine(*line) for line in rows)
    lines = tuple(
        OperatorLine(
            operator.name, family(operator.name), operator.summary, bool(operator.gradient)
        )
        for operator in built_in_operators().values()
    )
    store.put(entry, [astuple(line) for line in lines])
    return lines


def _require_libraries() -> None:
    try:
        import_module("torch")
        import_module("triton")
    except ImportError as error:
        hint = install_hint("torch")
        raise MissingTool(f"operators need {error.name}", hint=hint) from None


def _load() -> None:
    _require_libraries()
    package = "wavecast.kernels"
    entries: dict[str, Operator] = {}
    root = str(Path(__file__).parent)
    for folder in pkgutil.iter_modules([root], f"{package}."):
        if not folder.ispkg:
            continue
        for module in pkgutil.walk_packages([f"{root}/{_last(folder.name)}"], f"{folder.name}."):
            loaded = import_module(module.name)
            single = getattr(loaded, "OPERATOR", None)
            for entry in (single,) if single else getattr(loaded, "OPERATORS", ()):
                assert entry.name not in entries, f"two operators are called {entry.name}"
                entries[entry.name] = entry
                _families[entry.name] = _last(folder.name)
    _own.update(entries)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _versions() -> list[str]:
    """The versions of what operators import; "" where it is not installed, which the registry
    refuses."""
    versions = []
    for name in ("torch", "triton"):
        try:
            versions.append(version(name))
        except PackageNotFoundError:
            versions.append("")
    return versions


def _sources() -> list[tuple[str, bytes]]:
    root = Path(__file__).parent
    return [(str(file.relative_to(root)), file.read_bytes()) for file in sorted(root.rglob("*.py"))]
