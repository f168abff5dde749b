"""No quantity of a device has a number in the code that stands in where none is known: the number
is a row of `arch` or of the coefficients, with status and source, or the lack is an error.

A default is a number after `or`, in the other branch of a conditional expression, or as the second
argument of a look-up, beside an expression that reads a device: a look-up of a field of `arch`, an
attribute of `Device`, `Chip` or `DeviceFacts`, or a local variable that was assigned from one.
"""

from __future__ import annotations

import ast
from dataclasses import fields as members
from pathlib import Path

import pytest

from tests.structure.sources import ROOT, files, module_names, nodes, tree
from wavecast.arch import Device
from wavecast.arch.fields import fields
from wavecast.perfmodel.chip import Chip
from wavecast.runtimes.devices import DeviceFacts

FIELDS = fields().keys()
QUANTITIES = frozenset(
    {
        *(name for name in vars(Device) if not name.startswith("_")),
        *(member.name for kind in (Chip, DeviceFacts) for member in members(kind)),
    }
)
OWNERS = frozenset({"device", "chip", "facts"})


def defaults(path: Path) -> list[int]:
    """Lines of a file where a number stands in for a quantity of a device."""
    expressions = nodes(path, ast.BoolOp, ast.IfExp, ast.Call)
    return sorted({node.lineno for node in expressions if _is_default(node, path)})


def _is_default(node: ast.expr, path: Path) -> bool:
    """Whether a number is in an expression, and a quantity of a device beside it. Few expressions
    have a number: what surrounds them is read last."""
    if isinstance(node, ast.Call):
        return _has_default(node, path)
    if isinstance(node, ast.BoolOp):
        *values, last = node.values
        if not (isinstance(node.op, ast.Or) and _is_number(last, path)):
            return False
        variables = _variables(node, path)
        return any(_reads(value, variables) for value in values)
    assert isinstance(node, ast.IfExp)
    choices = ((node.body, node.orelse), (node.orelse, node.body))
    others = [other for number, other in choices if _is_number(number, path)]
    variables = _variables(node, path) if others else frozenset()
    return any(_reads(other, variables) and _lacks(node.test, variables) for other in others)


def _variables(expression: ast.expr, path: Path) -> frozenset[str]:
    """Variables of the functions around an expression that were assigned from one that reads a
    device."""
    variables: set[str] = set()
    for function in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef):
        if not function.lineno <= expression.lineno <= (function.end_lineno or 0):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.NamedExpr)) and _reads(node.value, frozenset()):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                variables |= {name.id for name in targets if isinstance(name, ast.Name)}
    return frozenset(variables)


def _reads(node: ast.AST, variables: frozenset[str]) -> bool:
    """Whether an expression has a quantity of a device in it."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in variables:
            return True
        if isinstance(part, ast.Attribute) and part.attr in QUANTITIES:
            owner = part.value
            name = getattr(owner, "attr", getattr(owner, "id", ""))
            if name in OWNERS and part.attr not in ("get", "facts", "device"):
                return True
        if isinstance(part, ast.Call) and any(_is_field(argument) for argument in part.args):
            return True
    return False


def _lacks(test: ast.AST, variables: frozenset[str]) -> bool:
    """Whether a condition asks if a quantity of a device is known: its truth, its type or None."""
    for part in ast.walk(test):
        if isinstance(part, ast.Compare) and not any(
            isinstance(operator, (ast.Is, ast.IsNot)) for operator in part.ops
        ):
            return False
    return _reads(test, variables)


def _has_default(call: ast.Call, path: Path) -> bool:
    return (
        len(call.args) == 2
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "get"
        and _is_field(call.args[0])
        and _is_number(call.args[1], path)
    )


def _is_field(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in FIELDS and isinstance(node.value, str)


def _is_number(node: ast.AST, path: Path) -> bool:
    """Whether an expression is made of numbers and of constants with numbers alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left, path) and _is_number(node.right, path)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand, path)
    return isinstance(node, ast.Name) and _is_constant(node.id, path)


def _is_constant(name: str, path: Path) -> bool:
    """Whether a name is a number of its module or of the one it is imported from."""
    for node in tree(path).body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return _is_number(node.value, path)
        if isinstance(node, ast.ImportFrom) and any(a.name == name for a in node.names):
            source = module_names().get(node.module or "")
            return source is not None and _is_constant(name, source)
    return False


def test_no_quantity_of_a_device_has_a_default_in_the_code() -> None:
    """A file that fails here adds a row to `arch` or a coefficient, or lets MissingFact rise."""
    found = [f"{path.relative_to(ROOT)}:{line}" for path in files() for line in defaults(path)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "rate = _number(device, 'lds_bytes_per_clk_cu') or 128.0",
        "rate = 2.0 * (_number(device, 'lds_per_cu') or _number(device, 'tmem') or 64)",
        "flops = vector.number / units if vector else 2.0 * LANES",
        "line = int(float(device.get('l1v_line', 128)))",
        "clock = facts.clock_hz or 0",
        "clock = 0 if self.facts.clock_hz is None else self.facts.clock_hz",
        "simds = chip.simds or 4",
        "rate = (chip.l2_bandwidth or 0.0) / units",
        "period = int(lanes) if isinstance(lanes, (int, float)) and lanes else 1",
    ],
)
def test_a_planted_default_is_found(text: str, tmp_path: Path) -> None:
    head = (
        "    vector = device.peak_flops('vector_fp32')\n    lanes = device.get('lanes_per_simd')\n"
    )
    constant = "LANES = 64\n"
    text = f"{constant}def f(device, chip, facts):\n{head}    {text}\n"
    (tmp_path / "a.py").write_text(text)
    assert defaults(tmp_path / "a.py") == [5]


@pytest.mark.parametrize(
    "text",
    [
        "rate = device.facts.number('lds_bytes_per_clk_cu')",
        "rate = _first(device, ('meas_launch',), 1e-6) or known['launch']",
        "rate = own['l2_rate'] if chip.l2_bandwidth is None else chip.l2_bandwidth",
        "trips = loop.trip_count or 0.0",
        "value = options.get('num_warps', 4)",
        "passes = 2 if device.wave_lanes == 64 else 1",
        "share = 2 if cu_mode else 1",
    ],
)
def test_what_is_no_default_is_clean(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(f"def f(device, chip, known, own):\n    {text}\n")
    assert defaults(tmp_path / "a.py") == []
