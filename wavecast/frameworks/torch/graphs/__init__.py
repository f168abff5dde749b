"""What models write out in PyTorch, found in the graphs that `torch.compile` makes."""
