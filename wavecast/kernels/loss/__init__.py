"""Softmax and losses over rows of logits, forward and backward."""
