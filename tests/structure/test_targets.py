"""Code asks a target for its capabilities. Only `arch`, `compile` and the opcode table know names.

A name of a target is a string such as `gfx942`, `gfx11`, `sm_90`, or the name of a set of targets.
It counts where code decides by it: in a comparison, as the argument of `startswith`, as an element
or key of a literal, and as a subscript. Defaults, help texts and messages do not count.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.structure import remaining
from tests.structure.sources import ROOT, files, nodes

NAME = re.compile(r"gfx[0-9a-f]*[+*]?|sm_\d*[a-z]?|cdna\d?|rdna\d?(\.5)?|hopper|blackwell|ampere")
ALLOWED = ("arch/", "compile/", "isa/table/", "isa/targets.py")
_DECIDING = (ast.Compare, ast.Dict, ast.Set, ast.Subscript, ast.MatchValue, ast.Call)


def comparisons(path: Path) -> list[int]:
    """Lines of a file that decide by the name of a target."""
    found = []
    for node in nodes(path, *_DECIDING):
        for candidate in _deciding(node):
            if isinstance(candidate, (ast.Tuple, ast.List, ast.Set)):
                names = candidate.elts
            else:
                names = [candidate]
            found += [name.lineno for name in names if _is_target(name)]
    return sorted(set(found))


def _deciding(node: ast.AST) -> list[ast.expr]:
    """The parts of a node that decide what the code does."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Dict):
        return [key for key in node.keys if key is not None]
    if isinstance(node, ast.Set):
        return [node]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.MatchValue):
        return [node.value]
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("startswith", "fnmatch", "fnmatchcase", "frozenset", "set", "get"):
            return node.args
    return []


def _is_target(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and NAME.fullmatch(node.value) is not None
    )


def counted(root: Path) -> dict[str, int]:
    """File -> lines that decide by the name of a target, without the files that may."""
    found = {}
    for path in files(root):
        relative = path.relative_to(root).as_posix()
        lines = comparisons(path)
        if lines and not relative.startswith(ALLOWED):
            found[relative] = len(lines)
    return found


def test_only_arch_compile_and_the_opcode_table_know_names_of_targets() -> None:
    """A file that fails here asks `arch.capabilities` instead."""
    remaining.check("target comparisons", counted(ROOT))


def test_a_planted_comparison_is_found(tmp_path: Path) -> None:
    (tmp_path / "arch").mkdir()
    (tmp_path / "arch" / "a.py").write_text('good = target == "gfx942"\n')
    (tmp_path / "b.py").write_text(
        'one = target == "gfx942"\n'
        'two = target in ("gfx90a", "gfx950")\n'
        'three = target.startswith("sm_")\n'
        '_FOUR = frozenset({"gfx1250"})\n'
        '_FIVE = {"gfx11": 1}\n'
        'six = SETS["gfx940+"]\n'
        "match generation:\n"
        '    case "cdna3":\n'
        "        pass\n"
        'def f(arch="gfx942"): """gfx942"""\n'
        'help(text="gfx942", name="about gfx942")\n'
        "same = target == other.target\n"
    )
    assert comparisons(tmp_path / "b.py") == [1, 2, 3, 4, 5, 6, 8]
    assert counted(tmp_path) == {"b.py": 7}
