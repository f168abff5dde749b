"""Machine code of the outlined memory functions: made once per machine, shared by every kernel.

A kernel's module only declares them; their addresses are symbols its object code is linked
against. `provide` brings those that are not in this process yet, by name, from the cache on disk or
from the compiler. It must run before such object code is loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import cache
from importlib import resources
from typing import Any

import llvmlite
from llvmlite import binding, ir

from wavecast.compile import digest
from wavecast.compile.cache import Cache
from wavecast.emulate.lower.access import PREFIX, Access, Outlined, function_type
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
_ADDED: dict[str, tuple[str, ...]] = {}
"""Actions of modes -> packages whose sources their machine code depends on as well."""
_SOURCES = (
    "access.py", "addresses.py", "atomics.py", "exchange.py", "moves.py", "runtime.py", "state.py",
    "values.py",
)  # fmt: skip
_PACKAGE = "wavecast.emulate.lower"
_lock = threading.Lock()
_engines: list[Any] = []
_known: set[str] = set()


def add(action: str, build: Callable[[Outlined], None], *packages: str) -> None:
    """Make an action of a mode known. `packages` hold the sources it is made from."""
    _BUILDERS[action] = build
    _ADDED[action] = packages


def declare(module: ir.Module, access: Access) -> ir.Function:
    """The function of an access, declared in `module`."""
    found = module.globals.get(access.name)
    if found is not None:
        return found
    return ir.Function(module, function_type(access.lanes), access.name)


def names_in(module: ir.Module) -> list[str]:
    """The memory functions a module declares."""
    return [f.name for f in module.functions if f.name.startswith(f"{PREFIX}.")]


def provide(names: Iterable[str]) -> None:
    """Publish the address of every named function that this process does not have yet."""
    with _lock:
        missing = [name for name in dict.fromkeys(names) if name not in _known]
        if not missing:
            return
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        store = Cache()
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _machine())
        for name in missing:
            code = binding.ObjectFileRef.from_data(_object(name, store))
            engine.add_object_file(code)
        engine.finalize_object()
        for name in missing:
            binding.add_symbol(name, engine.get_function_address(name))
        _engines.append(engine)
        _known.update(missing)


def module_of(access: Access) -> ir.Module:
    """The IR of one outlined function."""
    module = ir.Module(access.name, context=ir.Context())
    module.triple = binding.get_default_triple()
    _BUILDERS.get(access.action, build_atomic)(Outlined(module, access))
    return module


def _machine() -> binding.TargetMachine:
    """A target machine for this host; an engine owns the one it was made with."""
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=2,
        codemodel="jitdefault",
    )


@cache
def _basis(packages: tuple[str, ...] = ()) -> str:
    """Digest of all that machine code depends on besides the function's name."""
    sources = [(resources.files(_PACKAGE) / name).read_bytes() for name in _SOURCES]
    for package in packages:
        files = sorted(resources.files(package).iterdir(), key=lambda file: file.name)
        sources += [file.read_bytes() for file in files if file.name.endswith(".py")]
    host = (
        binding.get_default_triple(),
        binding.get_host_cpu_name(),
        binding.get_host_cpu_features().flatten(),
    )
    return digest.digest(llvmlite.__version__, host, sources)


def _object(name: str, store: Cache) -> bytes:
    """The object code of a function, from the cache where it is there."""
    basis = _basis(_ADDED.get(Access.of(name).action, ()))
    key = digest.key("memory", basis, name)
    known = store.get(key)
    if isinstance(known, bytes):
        return known
    code = _compiled(Access.of(name))
    store.put(key, code)
    return code


def _compiled(access: Access) -> bytes:
    machine = _machine()
    parsed = binding.parse_assembly(str(module_of(access)))
    parsed.verify()
    options = binding.create_pipeline_tuning_options(speed_level=1)
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(parsed, binding.create_pass_builder(machine, options))
    return machine.emit_object(parsed)


__all__ = ["add", "declare", "module_of", "names_in", "provide"]
