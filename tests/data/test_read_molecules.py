"""RDKit's own molecules as a source."""

from __future__ import annotations

import numpy as np
import pandas as pd
from rdkit import Chem

from molgraph.data.read import read_table


def test_molecules_of_rdkit_are_read_as_their_smiles() -> None:
    texts = ["OCC", "[NH4+]", "c1ccccc1O"]
    mols = [Chem.MolFromSmiles(text) for text in texts]
    written = [Chem.MolToSmiles(mol) for mol in mols]
    assert read_table(mols).smiles.tolist() == written
    assert read_table(pd.Series(mols)).smiles.tolist() == written
    frame = pd.DataFrame({"smiles": [*mols, None, Chem.Mol()], "y": np.arange(5.0)})
    table = read_table(frame, targets=["y"])
    assert table.smiles[:3].tolist() == written and table.status.tolist() == ["ok"] * 3 + ["missing"] * 2
