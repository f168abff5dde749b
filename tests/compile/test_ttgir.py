"""Reading Triton's IR as text: operations, regions, types, locations, slices."""

from __future__ import annotations

import pytest

from wavecast.compile.ttgir import carried_registers, dot_operands, parse, tensors
from wavecast.rules.triton_slice import TritonSlices, access, function_arguments

MODULE = """
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, instrShape = [32, 32, 8], isTransposed = true}>
#loc = loc("k.py":4:1)
#loc1 = loc("k.py":9:11)
#loc2 = loc("helper.py":30:8)
#loc3 = loc(callsite(#loc2 at #loc1))
#loc4 = loc("acc"(#loc3))
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32} loc("a"(#loc)), %n: i32 loc("n"(#loc)), %s: i32 {tt.divisibility = 16 : i32} loc("s"(#loc))) attributes {noinline = false} {
    %c0 = arith.constant 0 : i32 loc(#loc1)
    %acc = arith.constant dense<0.0> : tensor<128x128xf32, #mma> loc(#loc4)
    %p = tt.splat %a : !tt.ptr<bf16> -> tensor<128x64x!tt.ptr<bf16>, #blocked> loc(#loc1)
    %r:2 = scf.for %i = %c0 to %n step %s iter_args(%q = %p, %d = %acc) -> (tensor<128x64x!tt.ptr<bf16>, #blocked>, tensor<128x128xf32, #mma>)  : i32 {
      %x = tt.load %q : tensor<128x64x!tt.ptr<bf16>, #blocked> loc(#loc1)
      %y = amdg.buffer_load %a[%o], %m stride = %s {contiguity = 8 : i32} : !tt.ptr<bf16> -> tensor<64x128xbf16, #blocked> loc(#loc1)
      %e = tt.dot %x, %y, %d, inputPrecision = tf32 : tensor<128x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<64x128xbf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<128x128xf32, #mma> loc(#loc4)
      %f = scf.if %c -> (i32) {
        scf.yield %c0 : i32 loc(#loc1)
      } else {
        scf.yield %n : i32 loc(#loc1)
      } loc(#loc1)
      scf.yield %q, %e : tensor<128x64x!tt.ptr<bf16>, #blocked>, tensor<128x128xf32, #mma> loc(#loc1)
    } {tt.num_stages = 3 : i32} loc(#loc3)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""  # noqa: E501


def test_operations_know_their_region_and_their_loop() -> None:
    module = parse(MODULE)
    (dot,) = module.operations_named("tt.dot")
    (loop,) = module.operations_named("scf.for")
    assert module.loop_of(dot) is loop
    assert [outer.name for outer in module.ancestors(dot)] == ["scf.for", "tt.func"]
    assert loop.results == ("%r",)
    assert loop.closing == "{tt.num_stages = 3 : i32}"
    inside = [operation.name for operation in module.within(loop)]
    assert inside == [
        "tt.load", "amdg.buffer_load", "tt.dot", "scf.if", "scf.yield", "scf.yield", "scf.yield"
    ]  # fmt: skip


def test_locations_resolve_through_names_and_call_sites() -> None:
    module = parse(MODULE)
    (dot,) = module.operations_named("tt.dot")
    assert str(dot.location) == "helper.py:30"
    assert dot.location is not None
    assert str(dot.location.outermost) == "k.py:9"
    (loop,) = module.operations_named("scf.for")
    assert loop.location is not None
    assert loop.location.line == 30


def test_types_keep_shape_element_and_layout() -> None:
    module = parse(MODULE)
    (dot,) = module.operations_named("tt.dot")
    types = dot_operands(dot)
    assert types is not None
    a, b, result = types
    assert (a.shape, a.element) == ((128, 64), "bf16")
    assert b.layout.startswith("#ttg.dot_op<{opIdx = 1")
    assert module.layout(result).startswith("#ttg.amd_mfma")
    (pointer,) = tensors("tensor<64x!tt.ptr<f8E4M3FN>, #blocked>")
    assert (pointer.shape, pointer.element) == ((64,), "!tt.ptr<f8E4M3FN>")
    (buffer,) = tensors("!ttg.memdesc<1x128x64xbf16, #shared, #smem, mutable>")
    assert buffer.shape == (1, 128, 64)


def test_function_arguments_carry_what_the_launch_specialised() -> None:
    (function,) = parse(MODULE).operations_named("tt.func")
    arguments = function_arguments(function.text)
    assert list(arguments) == ["a", "n", "s"]
    assert arguments["a"].is_pointer
    assert arguments["a"].has("tt.pointer_range")
    assert not arguments["n"].has("tt.divisibility")


def test_slices_follow_loop_carried_values_one_by_one() -> None:
    module = parse(MODULE)
    slices = TritonSlices(module)
    (load,) = module.operations_named("tt.load")
    assert [arg.name for arg in slices.of(access(load).address)] == ["a"]
    (branch,) = module.operations_named("scf.if")
    assert [arg.name for arg in slices.of(branch.results)] == ["n"]


def test_accesses_in_every_printed_form() -> None:
    def forms(text: str) -> tuple[list[str], list[str]]:
        (operation,) = parse(text).operations
        found = access(operation)
        return found.address, found.mask

    assert forms("%1 = tt.load %p, %m, %o : t") == (["%p"], ["%m"])
    assert forms("tt.store %p, %v : t") == (["%p"], [])
    assert forms("tt.store %p, %v, %m : t") == (["%p"], ["%m"])
    assert forms("%1 = amdg.buffer_load %a[%o], %m, %z stride = %s : t") == (["%a", "%o"], ["%m"])
    assert forms("amdg.buffer_store %v, %a[%o] : t") == (["%a", "%o"], [])
    to_local = "%1 = amdg.buffer_load_to_local %a[%o] mask = %m stride = %s into %l : t"
    assert forms(to_local) == (["%a", "%o"], ["%m"])
    copy = "%1 = ttg.async_copy_global_to_local %p, %l mask %m other %o : t"
    assert forms(copy) == (["%p"], ["%m"])


def test_text_that_is_no_module_has_no_operations() -> None:
    assert parse("").operations == ()
    assert parse("not an operation {\n}\n").operations == ()


LOOP = (
    "    %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %p = %a, %k = %c, %t = %b)"
    " -> ({carried})  : i32 {{\n"
)


@pytest.mark.parametrize(
    ("carried", "threads", "registers"),
    [
        ("tensor<128x128xf32, #mma>, tensor<128x32xi32, #blocked>, i32", 256, 64),
        ("tensor<256x256xf32, #mma>", 128, 512),
        ("tensor<256x64xbf16, #blocked>, tensor<256x64xf32, #mma>", 256, 32 + 64),
        ("tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>, i32", 64, 2),
        ("tensor<64x!tt.ptr<f32>, #blocked>, i32", 64, 0),
    ],
)
def test_registers_of_tensors_carried_around_a_loop(carried, threads, registers) -> None:
    assert carried_registers(LOOP.format(carried=carried), threads) == registers


def test_the_loop_that_carries_most_counts() -> None:
    one = LOOP.format(carried="tensor<128x128xf32, #mma>")
    other = LOOP.format(carried="tensor<64x64xf32, #mma>")
    assert carried_registers(one + "  }\n" + other, 256) == 64
    assert carried_registers("tt.return", 256) == 0
