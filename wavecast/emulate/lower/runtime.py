"""Machine code of outlined functions: made once per machine, shared by every kernel.

A kernel's module only declares them; their addresses are symbols its object code is linked
against. `provide` brings those that are not in this process yet, by name, from the cache on disk or
from the compiler. It must run before such object code is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Final

import llvmlite
from llvmlite import binding, ir

from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.compile.processor import load_object, processor
from wavecast.emulate.lower.access import PREFIX, MemoryAccess, Outlined, function_type
from wavecast.emulate.lower.atomics import build_atomic
from wavecast.emulate.lower.exchange import build_exchange
from wavecast.emulate.lower.moves import build_move, build_to_lds

_BUILDERS: dict[str, Callable[[Outlined], None]] = {
    "load": build_move,
    "store": build_move,
    "tolds": build_to_lds,
    "exchange": build_exchange,
    "transpose": build_exchange,
}
OUTLINED: Final = "wavecast_"
"""What the names of outlined functions start with; those of memory are `PREFIX` and an access."""
_PACKAGES: Final = ("wavecast.emulate", "wavecast.isa")
_TABLES: Final = (("wavecast", "dtypes.csv"), ("wavecast.arch", "capabilities.toml"))
_SUFFIXES: Final = (".py", ".tbl", ".csv", ".ll")
Recipe = Callable[[ir.Module], None]
"""Adds one function to an empty module."""
_lock = threading.Lock()
_engines: list[Any] = []
_symbols: set[str] = set()
_recipes: dict[str, Recipe] = {}


class _Declaration(ir.Function):
    """A function that other object code defines. Kernels declare hundreds of them, whose arguments
    nobody asks for: llvmlite has an object for each."""

    def __init__(self, module: ir.Module, kind: ir.FunctionType, name: str) -> None:
        super().__init__(module, _no_arguments(kind.return_type), name)
        self.ftype, self.type = kind, kind.as_pointer()

    def descr_prototype(self, buf: list[str]) -> None:
        arguments = ", ".join(map(str, self.ftype.args))
        buf.append(f"declare {self.ftype.return_type} {self.get_reference()}({arguments})\n")


@cache
def _no_arguments(result: ir.Type) -> ir.FunctionType:
    return ir.FunctionType(result, ())


class Missing(LookupError):
    """An outlined function that is not on disk, and that nothing here says how to make."""


@dataclass(frozen=True, slots=True)
class _Functions:
    """Object code and the functions that it defines: those that were made at once."""

    names: tuple[str, ...]
    code: bytes

    @classmethod
    def of_cache(cls, name: str, store: DiskCache) -> _Functions | None:
        """Those with the function of a name; None where the cache has none."""
        object_key = store.get(_key(name))
        entry = store.get(object_key) if isinstance(object_key, str) else None
        if not isinstance(entry, dict) or entry.keys() != {"names", "code"}:
            return None
        functions = cls(tuple(entry["names"]), entry["code"])
        return functions if name in functions.names else None

    def keep(self, store: DiskCache) -> None:
        """Write the object code to the cache, and for each function where it is."""
        object_key = digest.key("functions", basis(), self.names)
        store.put(object_key, {"names": self.names, "code": self.code})
        for name in self.names:
            store.put(_key(name), object_key)


def _key(name: str) -> str:
    """The key of the entry that says where a function is."""
    return digest.key("outlined", basis(), name)


def declare(module: ir.Module, access: MemoryAccess) -> ir.Function:
    """The function of an access, declared in `module`."""
    declaration = module.globals.get(access.name)
    if declaration is not None:
        return declaration
    return _Declaration(module, function_type(access.lanes), access.name)


def outline(module: ir.Module, name: str, kind: ir.FunctionType, recipe: Recipe) -> ir.Function:
    """A function of this type, declared in `module`; `recipe` makes it where it is not on disk.

    The name, which `recipe` gives the function too, stands for all that the function depends on.
    """
    name = OUTLINED + name
    declaration = module.globals.get(name)
    if declaration is not None:
        return declaration
    _recipes[name] = recipe
    return _Declaration(module, kind, name)


def names_in(module: ir.Module) -> list[str]:
    """The outlined functions a module declares."""
    return [
        function.name
        for function in module.functions
        if function.name.startswith(OUTLINED) and function.is_declaration
    ]


def provide(names: Iterable[str]) -> None:
    """Publish the address of every named function that this process does not have yet.

    Raises Missing for one that is in no cache and was not declared in this process.
    """
    with _lock:
        symbols = dict.fromkeys(names)
        missing = [name for name in symbols if name not in _symbols]
        if missing:
            for functions in _objects(missing, DiskCache()):
                _publish(functions)
        _forget(symbols)


def _publish(functions: _Functions) -> None:
    """Load object code, and name the addresses of those of its functions that have none yet."""
    engine = load_object(functions.code)
    for name in functions.names:
        if name not in _symbols:
            binding.add_symbol(name, engine.get_function_address(name))
    _engines.append(engine)
    _symbols.update(functions.names)


def _forget(names: Iterable[str]) -> None:
    """Drop the recipes of functions that are there: a recipe holds the program it was met in."""
    for name in names:
        _recipes.pop(name, None)


_LEVEL: Final = 2
"""Optimisation level of outlined functions: they are made once and run often."""


@cache
def basis() -> str:
    """Digest of all that machine code depends on besides what it is made from: the sources of the
    emulator and of the instruction set, the tables these read, llvmlite, and the host."""
    sources = [(name, content) for package in _PACKAGES for name, content in _sources(package)]
    tables = [(name, (resources.files(package) / name).read_bytes()) for package, name in _TABLES]
    return digest.digest(llvmlite.__version__, processor().identity, sources, tables)


def _sources(package: str) -> Iterator[tuple[str, bytes]]:
    """Path and content of every source file of a package."""
    folders: list[tuple[str, Traversable]] = [(package, resources.files(package))]
    while folders:
        path, folder = folders.pop()
        for item in sorted(folder.iterdir(), key=lambda item: item.name):
            if item.is_dir():
                folders.append((f"{path}/{item.name}", item))
            elif item.name.endswith(_SUFFIXES):
                yield f"{path}/{item.name}", item.read_bytes()


def _objects(names: Sequence[str], store: DiskCache) -> Iterator[_Functions]:
    """Object code in which the functions are: of the cache where it has them, else made, in one
    piece. Raises Missing."""
    absent: list[str] = []
    available: set[str] = set()
    for name in names:
        if name in available:
            continue
        functions = _Functions.of_cache(name, store)
        if functions is None:
            absent.append(name)
        else:
            available.update(functions.names)
            yield functions
    absent = [name for name in absent if name not in available]
    if absent:
        functions = _Functions(tuple(absent), _compile(absent))
        functions.keep(store)
        yield functions


def load_or_make(key: str, make: Callable[[], bytes], store: DiskCache) -> bytes:
    """Bytes of the cache, made where they are not there."""
    entry = store.get(key)
    if isinstance(entry, bytes):
        return entry
    data = make()
    store.put(key, data)
    return data


def _compile(names: Sequence[str]) -> bytes:
    """The object code of functions: each has a separate module, since helpers of one name may
    differ, and LLVM compiles what they are linked to. A module costs as much as a short function.
    Raises Missing."""
    modules = [binding.parse_assembly(str(_module(name))) for name in names]
    linked, *others = modules
    for module in modules:
        module.verify()
    for other in others:
        linked.link_in(other)
    machine = processor().emitter(_LEVEL)
    options = binding.create_pipeline_tuning_options(speed_level=1)
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(linked, binding.create_pass_builder(machine, options))
    return machine.emit_object(linked)


def _module(name: str) -> ir.Module:
    """A function as LLVM IR. Raises Missing."""
    module = ir.Module(name, context=ir.Context())
    module.triple = processor().triple
    if name.startswith(f"{PREFIX}."):
        access = MemoryAccess.of(name)
        _BUILDERS.get(access.action, build_atomic)(Outlined(module, access))
    elif name in _recipes:
        _recipes[name](module)
    else:
        raise Missing(name)
    return module


__all__ = [
    "OUTLINED",
    "Missing",
    "Recipe",
    "basis",
    "declare",
    "load_or_make",
    "names_in",
    "outline",
    "provide",
]
