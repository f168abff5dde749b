"""Models on systems, training, modules and collectives as text, JSON, pages and traces."""
