"""The libraries in LLVM IR of `wavecast/kernels/sparse`, from the instruction table:
`python -m tests.kernels.sparse_libraries --write`.

Operands of the intrinsics: LLVM's IntrinsicsAMDGPU.td and its tests llvm.amdgcn.smfmac.*.ll and
llvm.amdgcn.swmmac.*.ll. Those of depth 32 are older than LLVM's type of bfloat16 and take i16.
"""

from __future__ import annotations

import sys

from wavecast.kernels.sparse.instructions import (
    A_WORDS,
    B_WORDS,
    SparseProduct,
    library,
    sparse_product,
)

TARGETS = ("gfx942", "gfx950", "gfx1201", "gfx1250")
_FP8 = ("fp8", "bf8")
PAIRS = (
    ("bf16", "bf16"),
    ("f16", "f16"),
    *((a, b) for a in _FP8 for b in _FP8),
    ("i8", "i8"),
)
"""Element types of A and B."""
_HEAD = """; The sparse products of {target} for wavecast/kernels/sparse/instructions.py, made of
; the instruction table by `python -m tests.kernels.sparse_libraries --write`.
"""


def text(target: str) -> str:
    """The library of a target."""
    products = [sparse_product(target, *pair) for pair in PAIRS]
    bodies = [_functions(product) for product in products if product is not None]
    declarations = [_declaration(product) for product in products if product is not None]
    return _HEAD.format(target=target) + "\n" + "\n\n".join([*bodies, *declarations]) + "\n"


def _functions(product: SparseProduct) -> str:
    """The product of a call, and a function for each part of its sum."""
    operands = {"a": A_WORDS, "b": B_WORDS, "c": product.sum_words}
    names = [f"i64 %{name}{number}" for name, count in operands.items() for number in range(count)]
    arguments = ", ".join([*names, f"i{product.index_bits} %index"])
    sums = f"<{product.sum_words} x i64>"
    lines = [f"define internal {sums} @{product.prefix}({arguments}) alwaysinline {{"]
    for name, count in operands.items():
        lines += _joined(name, count)
    lines.append(f"  %sum0 = bitcast {sums} %c to {_sum_type(product)}")
    for step in range(product.steps):
        lines += _step(product, step)
    last = f"%sum{product.steps}"
    lines += [f"  %parts = bitcast {_sum_type(product)} {last} to {sums}", f"  ret {sums} %parts"]
    functions = ["\n".join([*lines, "}"])]
    passed = arguments
    for part in range(product.sum_words):
        functions.append(
            f"define i64 @{product.symbol(part)}({arguments}) alwaysinline {{\n"
            f"  %parts = call {sums} @{product.prefix}({passed})\n"
            f"  %part = extractelement {sums} %parts, i32 {part}\n"
            "  ret i64 %part\n}"
        )
    return "\n\n".join(functions)


def _joined(name: str, count: int) -> list[str]:
    """The words of an operand as a vector `%name`."""
    lines, before = [], "poison"
    for number in range(count):
        label = f"%{name}" if number == count - 1 else f"%{name}.{number}"
        lines.append(
            f"  {label} = insertelement <{count} x i64> {before}, i64 %{name}{number}, i32 {number}"
        )
        before = label
    return lines


def _step(product: SparseProduct, step: int) -> list[str]:
    """An instruction, with its share of the words."""
    lines = []
    for name, total in (("a", A_WORDS), ("b", B_WORDS)):
        count = total // product.steps
        numbers = ", ".join(f"i32 {step * count + number}" for number in range(count))
        lines += [
            f"  %{name}.part{step} = shufflevector <{total} x i64> %{name}, <{total} x i64> poison,"
            f" <{count} x i32> <{numbers}>",
            f"  %{name}.step{step} = bitcast <{count} x i64> %{name}.part{step} to "
            f"{_operand_type(product, name)}",
        ]
    index, selected = _index(product, step)
    lines += index
    values = {"a": f"%a.step{step}", "b": f"%b.step{step}", "c": f"%sum{step}"}
    values |= {"index": f"%index{step}", "set": str(selected)}
    arguments = ", ".join(
        f"{kind} {values.get(value, value)}" for kind, value in _arguments(product)
    )
    call = f"call {_sum_type(product)} @{_intrinsic(product)}({arguments})"
    return [*lines, f"  %sum{step + 1} = {call}"]


def _index(product: SparseProduct, step: int) -> tuple[list[str], int]:
    """The index of a step, and the number of its set within it."""
    bits = product.index_bits // product.steps
    if _is_mfma(product):
        word, selected = divmod(step * bits, 32)
        shift, width, selected = 32 * word, 32, selected // bits
    else:
        shift, width, selected = step * bits, bits, 0
    kind = f"i{product.index_bits}"
    lines = [f"  %index{step}.low = lshr {kind} %index, {shift}"]
    if width == product.index_bits:
        lines.append(f"  %index{step} = or {kind} %index{step}.low, 0")
    else:
        lines.append(f"  %index{step} = trunc {kind} %index{step}.low to i{width}")
    return lines, selected


def _arguments(product: SparseProduct) -> list[tuple[str, str]]:
    """(type, value) of the operands: names of values, or numbers."""
    a, b = (_operand_type(product, name) for name in "ab")
    plain = [(a, "a"), (b, "b"), (_sum_type(product), "c")]
    bits = product.index_bits // product.steps
    if _is_mfma(product):
        return [*plain, ("i32", "index"), ("i32", "0"), ("i32", "set")]
    integer = product.shape.a_type == "iu8"
    halves = product.element_bits == 16
    deep = product.shape.k > 32
    if integer or (halves and deep):
        flag = "1" if integer else "0"
        plain = [("i1", flag), plain[0], ("i1", flag), *plain[1:]]
    plain.append((f"i{bits}", "index"))
    flags = 2 * deep + (integer and not deep)
    return [*plain, *[("i1", "0")] * flags]


def _intrinsic(product: SparseProduct) -> str:
    name = "llvm.amdgcn." + product.name.removeprefix("v_").replace("_", ".")
    if _is_mfma(product):
        return name
    bits = product.index_bits // product.steps
    kinds = [_sum_type(product), *(_operand_type(product, part) for part in "ab")]
    return ".".join([name, *map(_mangled, kinds), f"i{bits}"])


def _mangled(kind: str) -> str:
    count, _, element = kind.strip("<>").partition(" x ")
    return f"v{count}" + {"float": "f32", "half": "f16", "bfloat": "bf16"}.get(element, element)


def _declaration(product: SparseProduct) -> str:
    kinds = ", ".join(
        f"{kind} immarg" if value.isdigit() or value == "set" else kind
        for kind, value in _arguments(product)
    )
    return f"declare {_sum_type(product)} @{_intrinsic(product)}({kinds})"


def _operand_type(product: SparseProduct, name: str) -> str:
    words = (A_WORDS if name == "a" else B_WORDS) // product.steps
    if product.element_bits == 8:
        return f"<{2 * words} x i32>"
    is_old = product.shape.k == 32 and product.shape.a_type == "bf16"
    element = "half" if product.shape.a_type == "f16" else "i16" if is_old else "bfloat"
    return f"<{4 * words} x {element}>"


def _sum_type(product: SparseProduct) -> str:
    element = "float" if product.shape.cd_type == "f32" else "i32"
    return f"<{2 * product.sum_words} x {element}>"


def _is_mfma(product: SparseProduct) -> bool:
    return product.name.startswith("v_smfmac")


def main() -> None:
    for target in TARGETS:
        if "--write" in sys.argv:
            library(target).write_text(text(target))
        else:
            print(text(target))


if __name__ == "__main__":
    main()
