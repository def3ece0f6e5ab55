"""Models of other libraries as methods, to compare with."""
