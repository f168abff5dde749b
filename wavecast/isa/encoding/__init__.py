"""Machine code to assembly text, from tables.

`formats.tbl` has the bit fields of every format, `opcodes.csv` the opcode number of every row of
the opcode table in each format and target, `traits.csv` how targets differ beyond that. `formats`
and `opcodes` read them, `operands`, `immediates` and `modifiers` spell the values of fields as LLVM
does, `plans` joins them to the text of one instruction, `decoder` chooses the plan and `stream`
reads a section.
"""
