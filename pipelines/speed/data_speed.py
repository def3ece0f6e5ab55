"""No input; rates of SMILES to batched tensors, and of batches from a store, of molgraph and its peers, out.

Works are run in turn in one process, one thread, and the median round of each counts. "Reading SMILES alone"
is ``Chem.MolFromSmiles`` in a loop with RDKit's log off, as in molgraph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from rdkit import Chem
from timing import in_turn

from molgraph.chem.smiles import quiet
from molgraph.data import featurize_cuik
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.loader import batch_order
from molgraph.data.read import read_table

LISTS = {"NCI list": "builtin:nci", "CHEMBL2321810": "builtin:chembl2321810"}
BATCH = 64


def read_alone(smiles: list[str]) -> None:
    """What every featuriser has to do at least."""
    with quiet():
        for text in smiles:
            Chem.MolFromSmiles(text)


def smiles_to_tensors(smiles: list[str], backend: Any) -> None:
    """Featurise all and put them into batches, in order."""
    store = featurize(smiles, backend=backend)
    for rows in batch_order(len(store), BATCH):
        collate(store, rows)


def row(n: int, ours: float, peer: float, peer_name: str, floor: float) -> dict[str, Any]:
    """One row of the table from seconds for ``n`` molecules."""
    facts = {"molgraph": n / ours, "peer": n / peer, "ratio": peer / ours, "floor": floor}
    return facts | {"peer_name": peer_name, "unit": "molecules/s"}


def featurising_speed(name: str, smiles: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """SMILES to batched tensors with each backend, against reading SMILES alone."""
    backends = [("rdkit", "plain RDKit", 0.35)]
    if not featurize_cuik.missing():
        backends.insert(0, ("cuik", "C++ featuriser", 0.8))
    works = [lambda b=backend: smiles_to_tensors(smiles, b) for backend, _, _ in backends]
    *ours, alone = in_turn([*works, lambda: read_alone(smiles)], rounds)
    return {
        f"SMILES to batched tensors, {words}, {name}": row(len(smiles), seconds, alone, "reading SMILES alone", floor)
        for (_, words, floor), seconds in zip(backends, ours, strict=True)
    }


def batching_speed(name: str, smiles: list[str], rounds: int) -> dict[str, dict[str, Any]]:
    """Shuffled batches of 64 from a store, against chemprop's ``BatchMolGraph`` of ready ``MolGraph`` objects."""
    from chemprop.data import BatchMolGraph
    from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer

    store = featurize(smiles)
    ok = np.flatnonzero(store.status == "ok")
    peer = SimpleMoleculeMolGraphFeaturizer()
    ready = [peer(Chem.MolFromSmiles(smiles[i])) for i in ok]
    orders = batch_order(len(ok), BATCH, seed=0)

    def ours() -> None:
        for rows in orders:
            collate(store, ok[rows])

    def theirs() -> None:
        for rows in orders:
            BatchMolGraph([ready[i] for i in rows])

    mine, other = in_turn([ours, theirs], rounds)
    return {f"batches of {BATCH} from ready graphs, shuffled, {name}": row(len(ok), mine, other, "chemprop", 4.0)}


def data_speed(rounds: int = 31) -> dict[str, dict[str, Any]]:
    """Rows of the speed table: molecules a second of both sides, their ratio and the floor asked for."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        rows: dict[str, dict[str, Any]] = {}
        for name, source in LISTS.items():
            smiles = [str(text) for text in read_table(source).smiles]
            rows |= featurising_speed(name, smiles, rounds) | batching_speed(name, smiles, rounds)
        return rows
    finally:
        torch.set_num_threads(threads)


if __name__ == "__main__":
    for name, facts in data_speed().items():
        print(f"{name:75} {facts['molgraph']:12,.0f} {facts['peer']:12,.0f} {facts['ratio']:7.2f}")
