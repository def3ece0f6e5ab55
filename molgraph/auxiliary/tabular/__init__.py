"""What methods on a table of features are made of: their base class, features, similarities and trees."""

from molgraph.auxiliary.tabular.method import FittedTargets, TabularMethod
from molgraph.auxiliary.tabular.target_model import StoredTarget, TargetData, TargetModel, TargetPrediction

__all__ = ["FittedTargets", "StoredTarget", "TabularMethod", "TargetData", "TargetModel", "TargetPrediction"]
