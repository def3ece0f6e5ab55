"""molgraph: predict properties of molecules, generate candidates, run benchmarks that can be believed."""

__version__ = "0.1.0"
