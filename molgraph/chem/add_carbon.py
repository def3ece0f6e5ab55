"""Insert one carbon into molecules: AddCarbon, the trivial generator of Renz et al. 2019."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
from rdkit import Chem

from molgraph.base.progress import track
from molgraph.chem.identity import molecule_key
from molgraph.chem.smiles import precheck, quiet

TRIES = 20  # places in a molecule


def add_carbon(smiles: Sequence[str], known: Set[str], n: int, rng: np.random.Generator) -> list[str]:
    """Draw ``n`` new molecules by putting a C at a random place of the SMILES of random known ones.

    AddCarbon of Renz et al. 2019 (Drug Discov. Today Technol. 32:55): what comes out is valid, new and distinct, and
    distributed as the training set is.

    Args:
        smiles: canonical SMILES of the molecules to change.
        known: stereo-free keys of molecules that must not come out (``molecule_keys``).
        n: how many; fewer come where the molecules have no more places.
        rng: of the molecules and the places.

    Example:
        >>> add_carbon(["CCO"], {"CCO"}, 1, np.random.default_rng(0))
        ['CCCO']
    """
    products: dict[str, None] = {}
    order = rng.permutation(len(smiles))
    with quiet():
        for i in track(order.tolist(), label="AddCarbon"):
            if len(products) == n:
                break
            text = smiles[i]
            for place in rng.permutation(len(text) + 1)[:TRIES].tolist():
                longer = f"{text[:place]}C{text[place:]}"
                mol = None if precheck(longer) else Chem.MolFromSmiles(longer)
                product = "" if mol is None else Chem.MolToSmiles(mol)
                if product and product not in products and molecule_key(mol, stereo=False) not in known:
                    products[product] = None
                    break
    return list(products)
