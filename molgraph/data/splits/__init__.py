"""Splits: ``split_table`` and ``kfold`` make them, ``Split`` is what they make; one recipe family a file."""

from molgraph.data.splits import cluster, columns, others, random, scaffold
from molgraph.data.splits.make import kfold, split_table
from molgraph.data.splits.split import Leak, LeftOut, Split

__all__ = [
    "Leak",
    "LeftOut",
    "Split",
    "cluster",
    "columns",
    "kfold",
    "others",
    "random",
    "scaffold",
    "split_table",
]
