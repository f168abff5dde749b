"""Products of quantised operands, and products of groups of rows with a matrix each."""
