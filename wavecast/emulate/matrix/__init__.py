"""Matrix instructions as native code: layouts by formula, exact products, one function each.

`layouts` says where elements lie, `formats` what their bits mean, `spec` what one instruction asks
for; `function` turns a spec into LLVM IR: `operands` reads A and B into scratch arrays through
`decode`, `product` multiplies them tile by tile, `results` loads C and stores D.
"""
