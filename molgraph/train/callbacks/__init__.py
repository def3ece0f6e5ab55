"""Callbacks of training, one method a file; the base class stands in ``molgraph.train.callback``."""
