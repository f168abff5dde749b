"""Whether a kernel became faster or slower, and how sure that is."""
