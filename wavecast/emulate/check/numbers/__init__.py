"""NaNs, infinities, overflows and divisions by zero."""
