"""Operators for frameworks whose arrays are numpy's on the host: `binding` takes the arguments of a
call, `calls` runs it and its derivative on tensors of PyTorch, `arrays` converts between both."""
