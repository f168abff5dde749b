"""Reading SASS, the machine code of NVIDIA GPUs: a small opcode table, a parser, rates."""
