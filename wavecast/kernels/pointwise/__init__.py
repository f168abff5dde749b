"""Operators on elements one by one: activations, gated activations, dropout, rotary embedding."""
