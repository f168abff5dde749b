"""The Triton stages of a subject, and the matrix products in them."""

from __future__ import annotations

from dataclasses import dataclass

from wavecast.compile.ttgir import (
    DOTS,
    IrModule,
    Operation,
    Tensor,
    dot_operands,
    parse,
)
from wavecast.dtypes import Spelling, is_dtype, lookup
from wavecast.isa.instruction import SourceLocation
from wavecast.isa.table import rows
from wavecast.isa.targets import isa_target
from wavecast.rules.finding import RuleInput
from wavecast.rules.triton_slice import TritonSlices, slices

MATRIX_LAYOUTS = ("#ttg.amd_mfma", "#ttg.amd_wmma", "#ttg.nvidia_mma", "#ttng.tensor_memory")
"""Layouts of results that matrix instructions produce."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One matrix product: the types of A, B and the result, and where it is written."""

    operation: Operation
    a: Tensor
    b: Tensor
    result: Tensor
    layout: str
    location: SourceLocation | None

    @property
    def shape(self) -> str:
        """`M x N x K` of the tile."""
        return f"{self.result.shape[-2]}x{self.result.shape[-1]}x{self.depth}"

    @property
    def depth(self) -> int:
        """K in elements; two fp4 values share a byte."""
        packed = self.operation.name == "tt.dot_scaled" and "lhs = e2m1" in self.operation.text
        return self.a.shape[-1] * (2 if packed else 1)

    @property
    def on_matrix_unit(self) -> bool:
        return self.layout.startswith(MATRIX_LAYOUTS)


def stage(subject: RuleInput, name: str) -> str:
    """The text of a compiler stage, "" when there is none."""
    text = subject.code.stages.get(name, "")
    return text if isinstance(text, str) else ""


def module(subject: RuleInput, name: str) -> IrModule | None:
    """A Triton stage (`ttir`, `ttgir`) parsed, None when the kernel has none."""
    text = stage(subject, name)
    return parse(text, tuple(subject.code.moved_files.items())) if text else None


def module_slices(subject: RuleInput, name: str) -> TritonSlices | None:
    """The backward slices of a Triton stage, None when the kernel has none."""
    text = stage(subject, name)
    return slices(text, tuple(subject.code.moved_files.items())) if text else None


def dots(ir_module: IrModule | None) -> tuple[Dot, ...]:
    """The matrix products of a module whose operand types are printed, in order."""
    if ir_module is None:
        return ()
    result = []
    for operation in ir_module.operations_named(*DOTS):
        types = dot_operands(operation)
        if types is None:
            continue
        a, b, d = types
        result.append(Dot(operation, a, b, d, ir_module.layout(d), operation.location))
    return tuple(result)


def element_name(element: str) -> str:
    """An MLIR element type as findings print it: `bf16`, `OCP fp8 (e4m3)`."""
    if not is_dtype(element, Spelling.MLIR):
        return element
    dtype = lookup(element, Spelling.MLIR)
    if dtype.variant is None or dtype.encoding is None:
        return dtype.short
    layout = f"e{dtype.encoding.exponent}m{dtype.encoding.mantissa}"
    return f"{dtype.variant.value.upper()} {dtype.generic} ({layout})"


def matrix_elements(target: str) -> frozenset[str]:
    """Input element types of the dense matrix instructions an AMD target has (`bf16`, `fp8` …)."""
    name = isa_target(target)
    return frozenset(
        row.matrix.a_type
        for row in rows()
        if row.matrix is not None and not row.matrix.sparse and name in row.mnemonics
    )


def smallest_tile(target: str) -> int:
    """The smallest M or N of the target's matrix instructions that compute one product."""
    name = isa_target(target)
    return min(
        min(row.matrix.m, row.matrix.n)
        for row in rows()
        if row.matrix is not None and row.matrix.blocks == 1 and name in row.mnemonics
    )
