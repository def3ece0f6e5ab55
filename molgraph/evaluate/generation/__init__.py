"""Metrics of generators: how valid, new, diverse and like a reference a sample of molecules is, beside control rows."""
