"""Matrix instructions as native code: layouts by formula, exact products, one function each.

`layouts` says where elements lie, `formats` what their bits mean, `spec` what one instruction asks
for; `function` turns a spec into LLVM IR: `operands` reads A and B into scratch arrays through
`decode`, `product` multiplies them tile by tile, `results` loads C and stores D.

Arithmetic is the `exact` mode: products of elements are exact, each is added to the running sum
by one fused multiply-add with a single rounding to nearest even in the type of the accumulator
(f32; f64 for f64), starting from C, k ascending. f16 and bf16 results are rounded once, at the end.
Denormals are kept, NaN results carry the host's payload. Integers wrap modulo 2^32; `clamp`
saturates the exact sum.

Where hardware is known to differ, or nobody has said what it does:

- the order in which products are added, and the width and rounding of sums inside an instruction,
  are not published for any target: results that are not exact in every order may differ in the last
  bits;
- gfx90a flushes denormal inputs and outputs of f16 and bf16 MFMA to zero (MIOpen documentation,
  "MI200 MFMA behavior specifics"); this code keeps them on every target;
- xf32 inputs are rounded to 10 mantissa bits to nearest even here; we know of no source for the
  rounding hardware uses;
- the scale of a row and a run of 32 k is taken from lane row + rows * run, by analogy with the
  4-bit layout: the published layouts do not cover scales;
- block scales multiply the elements before the product, so a scaled element beyond the range of
  f32 becomes infinite or denormal even where the product with the other element would fit;
- with gfx11's WMMA, lanes 0..15 of A and B are read and the copies the layout puts in lanes 16 and
  above are taken to be equal;
- sparse instructions multiply only the elements the index selects; positions that repeat or descend
  within a pair are used as written;
- the layouts of gfx950's and gfx1250's sparse instructions are derived (see `layouts`); gfx1250's
  scaled instructions and its SWMMAC with f32 input and bf16 output are refused.
"""
