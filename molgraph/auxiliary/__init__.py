"""Register the methods that are not graph networks: the classical baselines, one method a file."""

from molgraph.auxiliary.forest import RandomForest
from molgraph.auxiliary.gp import GaussianProcess
from molgraph.auxiliary.knn import NearestNeighbours
from molgraph.auxiliary.linear import Linear
from molgraph.auxiliary.maplight import MapLight
from molgraph.auxiliary.mean import MeanPredictor
from molgraph.auxiliary.svm import SupportVectors
from molgraph.auxiliary.xgboost import XGBoost

__all__ = [
    "GaussianProcess",
    "Linear",
    "MapLight",
    "MeanPredictor",
    "NearestNeighbours",
    "RandomForest",
    "SupportVectors",
    "XGBoost",
]
