"""Machine code of the outlined memory functions: made once per process, shared by every kernel.

A kernel's module only declares them; their addresses are symbols its object code is linked
against. `provide` makes those an object file from elsewhere (a cache on disk) asks for by name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from llvmlite import binding, ir

from wavecast.emulate.lower.atomics import build_atomic
from wavecast.emulate.lower.exchange import build_exchange
from wavecast.emulate.lower.moves import build_move, build_to_lds
from wavecast.emulate.lower.access import PREFIX, Access, Outlined, function_type

_BUILDERS = {
    "load": build_move,
    "store": build_move,
    "tolds": build_to_lds,
    "exchange": build_exchange,
    "transpose": build_exchange,
}
_lock = threading.Lock()
_engines: dict[str, Any] = {}


def declare(module: ir.Module, access: Access) -> ir.Function:
    """The function of an access in `module`, its machine code being at hand from now on."""
    found = module.globals.get(access.name)
    if found is not None:
        return found
    provide([access.name])
    return ir.Function(module, function_type(access.lanes), access.name)


def provide(names: Iterable[str]) -> None:
    """Make every memory function among `names` that this process does not have yet."""
    with _lock:
        for name in names:
            if name.startswith(f"{PREFIX}.") and name not in _engines:
                _engines[name] = _made(Access.of(name))


def module_of(access: Access) -> ir.Module:
    """The IR of one outlined function."""
    module = ir.Module(access.name, context=ir.Context())
    module.triple = binding.get_default_triple()
    _BUILDERS.get(access.action, build_atomic)(Outlined(module, access))
    return module


def _made(access: Access) -> Any:
    """Compile one function and publish its address under its name."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=2,
        codemodel="jitdefault",
    )
    parsed = binding.parse_assembly(str(module_of(access)))
    parsed.verify()
    builder = binding.create_pass_builder(
        machine, binding.create_pipeline_tuning_options(speed_level=1)
    )
    passes = binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in parsed.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    binding.add_symbol(access.name, engine.get_function_address(access.name))
    return engine


__all__ = ["declare", "module_of", "provide"]
