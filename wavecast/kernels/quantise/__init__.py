"""Numbers in fewer bits: fp8, int8 and the OCP MX formats, with scales found on the way."""
