"""Methods that no other room needs: the classical baselines; importing this registers them."""

from molgraph.auxiliary.forest import RandomForest
from molgraph.auxiliary.mean import MeanPredictor

__all__ = ["MeanPredictor", "RandomForest"]
