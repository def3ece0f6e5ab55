"""Splits: ``split_table``, ``kfold`` and ``repeated_kfold`` make ``Split``s; one recipe family a file."""

from molgraph.data.splits import cluster, columns, entities, others, published, random, scaffold, stratified
from molgraph.data.splits.classes import few_of_a_class, one_class
from molgraph.data.splits.folds import kfold, repeated_kfold
from molgraph.data.splits.make import split_table
from molgraph.data.splits.split import Leak, LeftOut, Split

__all__ = [
    "Leak",
    "LeftOut",
    "Split",
    "cluster",
    "columns",
    "entities",
    "few_of_a_class",
    "kfold",
    "one_class",
    "others",
    "published",
    "random",
    "repeated_kfold",
    "scaffold",
    "split_table",
    "stratified",
]
