"""What a launch needs of any kernel: the GPU it goes to (`gpu`), its tensors (`inputs`), and who
records it (`recording`)."""
