"""Another order of the instructions in a kernel's loops: found by search, written as assembly."""
