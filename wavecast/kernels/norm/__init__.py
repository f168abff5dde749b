"""Normalisation of rows and groups, forward and backward."""
