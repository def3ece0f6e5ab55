"""Trust: wrappers of a method that say how far to believe it."""
