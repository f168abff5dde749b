"""Machine code to assembly text, from tables.

`formats.tbl` has the bit fields of every format, `opcodes.csv` the opcode number of every row of
the opcode table in each format and target, `traits.csv` how targets differ beyond that. `formats`
and `opcodes` read them, `operands`, `immediates` and `modifiers` spell the values of fields as LLVM
does. `vector_plans`, `matrix_plans`, `pair_plans`, `scalar_plans` and `memory_plans` join them to
the text of one instruction (`text_plan`); `plans` chooses among these builders, `decoder` chooses
the plan and `stream` reads a section.
"""
