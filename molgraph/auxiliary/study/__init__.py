"""Studies of the long tail of the literature."""
