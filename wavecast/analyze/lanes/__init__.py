"""What the lanes of a wave exchange with each other, from LLVM IR."""
