"""Matrix products: dense, batched and scaled, with what follows them in the same kernel."""
