"""Numeric loops written in Python, as native code that the cache keeps.

`loop` marks a function that Numba compiles for the types of its first arguments. The object code is
an entry of the cache (kind `loops`), so Numba, which takes a second to import, is only imported to
compile. Entries depend on the code of the function and of the loops it calls, the constants they
read, the types, and the processor.

Arguments are integers, floats, arrays, and tuples of them; a loop returns an integer or None. It
allocates nothing: its caller passes arrays for results. It may read constants and call other loops.
"""

from __future__ import annotations

import ctypes
import functools
import types
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from wavecast.compile import digest
from wavecast.compile.cache import DiskCache
from wavecast.isa.collector import no_collections

_ENTRY: Final = "wavecast_loop"
"""The function of an object: i32 (slots), the status that Numba's functions return."""
_OK: Final = 0
_C_ORDER: Final = 0x1
_F_ORDER: Final = 0x2
_FLAGS: Final = _C_ORDER | _F_ORDER | 0x100 | 0x400
"""C and Fortran order, aligned, writeable: numpy's flag bits of an array."""
_LEVEL: Final = 3


class CompiledLoop:
    """A function that runs as native code. Raises RuntimeError where its code raises."""

    def __init__(self, function: FunctionType, *, inline: bool = False) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._inline = inline
        self._native: dict[tuple, Callable[[int], int]] = {}

    def __call__(self, *arguments: Any) -> int:
        """Run the loop; its result, 0 for None."""
        slots: list[Any] = [0]
        kinds: list[tuple] = []
        for argument in arguments:
            _flatten(argument, slots, kinds)
        kind = tuple(kinds)
        native = self._native.get(kind)
        if native is None:
            native = self._native[kind] = self._load(kind, arguments)
        words = np.array(slots, np.int64)
        status = native(words.ctypes.data)
        if status != _OK:
            raise RuntimeError(f"{self._function.__qualname__}: compiled code raised ({status})")
        return int(words[0])

    def _load(self, kind: tuple, arguments: tuple) -> Callable[[int], int]:
        from wavecast.compile.processor import load_object, processor

        store = DiskCache()
        key = digest.key("loops", processor().identity, repr(kind), list(self._depends(set())))
        code = store.get(key)
        if not isinstance(code, bytes):
            code = self._compile(arguments)
            store.put(key, code)
        engine = load_object(code)
        native = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(
            engine.get_function_address(_ENTRY)
        )
        native.engine = engine  # type: ignore[attr-defined]  # owns the code
        return native

    def _depends(self, names: set[str]) -> Iterator[str]:
        """The code of the loop, the constants it reads, and the same of the loops it calls."""
        code = self._function.__code__
        names.add(self._function.__qualname__)
        consts = code.co_consts[1:]  # without the docstring
        yield repr((code.co_code, consts, code.co_names, code.co_varnames, self._inline))
        for name, value in self._globals():
            if isinstance(value, CompiledLoop):
                if value._function.__qualname__ not in names:
                    yield from value._depends(names)
            elif isinstance(value, ModuleType):
                read = ((other, vars(value).get(other)) for other in code.co_names)
                yield from (f"{name}.{key}={got!r}" for key, got in read if _is_constant(got))
            elif _is_constant(value):
                yield f"{name}={value!r}"
            else:
                raise TypeError(f"{self._function.__qualname__}: {name} is not a constant")

    def _globals(self) -> Iterator[tuple[str, Any]]:
        namespace = self._function.__globals__
        for name in self._function.__code__.co_names:
            if name in namespace:
                yield name, namespace[name]

    @no_collections()
    def _compile(self, arguments: tuple) -> bytes:
        """The object code for the types of these arguments."""
        import numba
        from llvmlite import binding

        from wavecast.compile.processor import processor

        dispatcher = self._dispatcher({})
        dispatcher.compile(tuple(numba.typeof(argument) for argument in arguments))
        (overload,) = dispatcher.overloads.values()
        text = overload.library.get_llvm_str()
        name = overload.fndesc.llvm_func_name
        parsed = binding.parse_assembly(text)
        kinds = [str(argument.type) for argument in parsed.get_function(name).arguments]
        module = binding.parse_assembly(text + _entry(name, kinds))
        module.verify()
        return processor().emitter(_LEVEL).emit_object(module)

    def _dispatcher(self, dispatchers: dict[str, Any]) -> Any:
        """Numba's function, which calls those of other loops."""
        import numba

        name = self._function.__qualname__
        if name not in dispatchers:
            namespace = dict(self._function.__globals__)
            clone = types.FunctionType(self._function.__code__, namespace, name)
            compiler: Any = numba.njit
            dispatchers[name] = compiler(
                clone,
                forceinline=self._inline,
                _nrt=False,
                no_cpython_wrapper=True,
                no_cfunc_wrapper=True,
            )
            for other, value in self._globals():
                if isinstance(value, CompiledLoop):
                    namespace[other] = value._dispatcher(dispatchers)
        return dispatchers[name]


def loop(function: Callable[..., Any]) -> Any:
    """A function compiled by Numba when it is called first (`CompiledLoop`)."""
    assert isinstance(function, FunctionType)
    return CompiledLoop(function)


def always_inline(function: Callable[..., Any]) -> Any:
    """A loop whose code LLVM puts into those that call it. Numba can do that too, and takes half as
    long again to compile the simulator."""
    assert isinstance(function, FunctionType)
    return CompiledLoop(function, inline=True)


def _is_constant(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.generic)


def _flatten(value: Any, slots: list[Any], kinds: list[tuple]) -> None:
    """Append a value as Numba passes it, in words of 64 bits, and its type. Raises TypeError."""
    if isinstance(value, np.ndarray):
        data, shape = value.ctypes.data, value.shape
        slots += [0, 0, value.size, value.itemsize, data, *shape, *value.strides]
        flags = value.flags.num & _FLAGS
        if flags & _C_ORDER:  # one code, also where a single row or column has both orders
            flags &= ~_F_ORDER
        kinds.append((value.dtype, value.ndim, flags))
    elif isinstance(value, tuple):
        kinds.append((type(value).__name__, *getattr(value, "_fields", (len(value),))))
        for item in value:
            _flatten(item, slots, kinds)
    elif isinstance(value, bool | np.bool_):
        slots.append(int(value))
        kinds.append(("bool",))
    elif isinstance(value, (int, np.integer)):
        slots.append(int(value))
        kinds.append(("int",))
    elif isinstance(value, float):
        slots.append(int(np.float64(value).view(np.int64)))
        kinds.append(("float",))
    else:
        raise TypeError(f"a loop takes no {type(value).__name__}")


def _entry(name: str, kinds: list[str]) -> str:
    """A function that calls Numba's with arguments it reads from words: the result goes to the
    first word, the exception nowhere (Numba's calling convention: result, exception, arguments)."""
    lines = [f"define i32 @{_ENTRY}(ptr %words) {{", "  %raised = alloca ptr"]
    arguments = ["ptr %words", "ptr %raised"]
    for number, kind in enumerate(kinds[2:], 1):
        lines.append(f"  %at{number} = getelementptr i64, ptr %words, i64 {number}")
        lines.append(f"  %a{number} = load {kind}, ptr %at{number}")
        arguments.append(f"{kind} %a{number}")
    lines.append(f'  %status = call i32 @"{name}"({", ".join(arguments)})')
    return "\n".join([*lines, "  ret i32 %status", "}", ""])


__all__ = ["CompiledLoop", "always_inline", "loop"]
