"""Products with weights of which two in every four are zero, by the sparse matrix instructions."""
