"""The modules of a package, and everything each of them imports."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parents[2] / "wavecast"
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Import:
    """An import at `line`: of a module, or of a name from one (`wavecast.isa.Program`)."""

    line: int
    name: str


def files(root: Path = ROOT) -> list[Path]:
    """Every Python file of a package; kernels of the course are its data."""
    return sorted(path for path in root.rglob("*.py") if "chapters" not in path.parts)


@cache
def module_names(root: Path = ROOT) -> Mapping[str, Path]:
    """Dotted name -> file of every module; a package has the name of its folder."""
    found = {}
    for path in files(root):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file. Trees stay, and the garbage collector does not look at them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(path.read_text(encoding="utf-8"), str(path))
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def nodes(path: Path, *kinds: type[Node]) -> Iterator[Node]:
    """The nodes of these kinds in a file, kind by kind, outer ones first."""
    found = _by_kind(path)
    for kind in kinds:
        yield from found.get(kind, ())  # pyright: ignore[reportReturnType]


@cache
def _by_kind(path: Path) -> dict[type[ast.AST], list[ast.AST]]:
    """Every node of a file by its class. One walk serves all tests."""
    found: dict[type[ast.AST], list[ast.AST]] = {}
    queue: list[ast.AST] = [tree(path)]
    for node in queue:
        found.setdefault(type(node), []).append(node)
        for value in vars(node).values():
            if isinstance(value, list):
                queue += [part for part in value if isinstance(part, ast.AST)]
            elif isinstance(value, ast.AST):
                queue.append(value)
    return found


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Every import of a file: at the top, in functions, and under TYPE_CHECKING."""
    found = []
    for node in _statements(path):
        if isinstance(node, ast.Import):
            found += [Import(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found += [Import(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    if "import_module" in path.read_text(encoding="utf-8"):
        for call in nodes(path, ast.Call):
            if _imports_a_module(call):
                found.append(Import(call.lineno, call.args[0].value))  # pyright: ignore
    return tuple(sorted(found, key=lambda one: one.line))


def _statements(path: Path) -> Iterator[ast.AST]:
    """Every statement of a file, without the expressions in them, which are ten times as many."""
    queue: list[ast.AST] = [tree(path)]
    for node in queue:
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            queue += getattr(node, part, ())
        yield node


def _imports_a_module(node: ast.Call) -> bool:
    """Whether a call is `import_module` with a literal name."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name == "import_module" and bool(node.args) and isinstance(node.args[0], ast.Constant)


@cache
def import_graph(root: Path = ROOT) -> Mapping[str, Mapping[str, int]]:
    """Module -> the modules it depends on -> line of the import.

    `from package import name` depends on the module `package.name`, else on the package, whose
    `__init__` re-exports the name. An import from another package also runs that package's
    `__init__`, so the module depends on it; an import within a package does not.
    """
    names = module_names(root)
    graph: dict[str, dict[str, int]] = {name: {} for name in names}
    for name, path in names.items():
        for found in imports(path):
            target = found.name
            while target and target not in names:
                target = target.rpartition(".")[0]
            for dependency in (target, *_packages(target)):
                own = name == dependency or name.startswith(dependency + ".")
                if dependency and (dependency == target or not own):
                    graph[name].setdefault(dependency, found.line)
        graph[name].pop(name, None)
    return graph


def _packages(module: str) -> Iterator[str]:
    """The packages above a module, without the outermost."""
    parts = module.split(".")
    for count in range(2, len(parts)):
        yield ".".join(parts[:count])


def circles(graph: Mapping[str, Mapping[str, int]]) -> set[frozenset[str]]:
    """The strongly connected components of more than one module (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for following in graph.get(name, ()):
            if following not in number:
                visit(following)
                lowest[name] = min(lowest[name], lowest[following])
            elif following in stack:
                lowest[name] = min(lowest[name], number[following])
        if lowest[name] == number[name]:
            component = frozenset(stack[stack.index(name) :])
            del stack[stack.index(name) :]
            if len(component) > 1:
                found.add(component)

    for name in graph:
        if name not in number:
            visit(name)
    return found


def described(circle: frozenset[str], graph: Mapping[str, Mapping[str, int]]) -> str:
    """The imports of a circle, one a line."""
    return "\n".join(
        f"{name}:{line} imports {target}"
        for name in sorted(circle)
        for target, line in graph[name].items()
        if target in circle
    )


def folders(graph: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, dict[str, int]]]:
    """Folder -> the graph of its children: a child depends on another one where a module of it
    does. The line is 0."""
    children: dict[str, dict[str, dict[str, int]]] = {}
    for name, dependencies in graph.items():
        for target in dependencies:
            folder, child, other = _fork(name.split("."), target.split("."))
            if child and other:
                children.setdefault(folder, {}).setdefault(child, {})[other] = 0
    return children


def _fork(name: list[str], target: list[str]) -> tuple[str, str, str]:
    """The folder that two modules share, and their children of it, "" for the folder itself."""
    depth = 0
    while depth < min(len(name), len(target)) and name[depth] == target[depth]:
        depth += 1
    parts = (".".join(parts[: depth + 1]) if depth < len(parts) else "" for parts in (name, target))
    return ".".join(name[:depth]), *parts
