"""Differential fuzzing: random LLVM IR, compiled for an AMD target and for the host, must agree.

    python -m tests.emulate.differential --target gfx942 --seconds 600 --seed 1

A function of random typed statements (`program`, `generate`) is written as LLVM IR twice (`text`):
as a kernel for the target, whose assembly the emulator runs, and as plain code for the host, called
once per lane (`execute`). What lanes exchange (`exchange`) is modelled in numpy between the calls.
Outputs are compared bit for bit. The same seed gives the same function; a failing one is reduced
(`reduce`) and written to a file.

NaN. LLVM leaves the sign and payload of a NaN that arithmetic makes open, so such a NaN equals any
other. Values only moved, or changed as bits (negation, absolute value, copied sign, select,
memory) must agree to the last bit, NaN included. Where bits of a computed float become an integer,
or a sign is taken from it, its NaN is replaced first by the canonical pattern, on both sides. Every
bfloat counts as computed: hosts without the type move it as a float, which quiets NaN.
"""
