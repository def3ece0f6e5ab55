"""Other people's models behind our contract, for boards to compare with; importing this registers them."""

from molgraph.auxiliary.peers.chemprop import Chemprop
from molgraph.auxiliary.peers.deepchem import DeepChem

__all__ = ["Chemprop", "DeepChem"]
