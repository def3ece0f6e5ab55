"""Register models of other libraries as methods, to compare with."""

from molgraph.auxiliary.peers.chemprop import Chemprop
from molgraph.auxiliary.peers.deepchem import DeepChem

__all__ = ["Chemprop", "DeepChem"]
