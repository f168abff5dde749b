"""Chakra execution traces (MLCommons): their messages, and traces of ranks as simulated runs."""
