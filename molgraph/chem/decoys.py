"""Choose decoys of a pool that simple properties cannot tell from actives, by adversarial filtering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit.Chem import Crippen, Lipinski, rdMolDescriptors, rdmolops
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score

from molgraph.base.errors import EmptyError
from molgraph.base.progress import bar
from molgraph.base.seeds import derive, generator
from molgraph.chem.smiles import parse_smiles

PROPERTIES = ("heavy_atoms", "logp", "tpsa", "donors", "acceptors", "rotatable", "rings", "charge")
FEWEST = 10  # actives
LEVEL = 0.52  # of the AUC, from which nothing is left to replace


def property_table(smiles: Sequence[str]) -> np.ndarray:
    """float64 [n, 8], ``PROPERTIES`` of each SMILES; NaN in rows that cannot be read."""
    out = np.full((len(smiles), len(PROPERTIES)), np.nan)
    for i, text in enumerate(smiles):
        if (mol := parse_smiles(str(text)).mol) is not None:
            out[i] = (
                mol.GetNumHeavyAtoms(),
                Crippen.MolLogP(mol),
                rdMolDescriptors.CalcTPSA(mol),
                Lipinski.NumHDonors(mol),
                Lipinski.NumHAcceptors(mol),
                rdMolDescriptors.CalcNumRotatableBonds(mol),
                rdMolDescriptors.CalcNumRings(mol),
                rdmolops.GetFormalCharge(mol),
            )
    return out


class Decoys(NamedTuple):
    """Decoys, and how well each round told them from the actives.

    Args:
        rows: int64 [n], of the pool.
        auc: of the discriminator on the half that it did not learn from, a value a round; the first is of random rows.
    """

    rows: np.ndarray
    auc: list[float]


def choose_decoys(
    actives: np.ndarray, pool: np.ndarray, n: int, *, rounds: int = 30, replace: float = 0.5, seed: int = 0
) -> Decoys:
    """Adversarial filtering of ``n`` decoys (Zellers et al. 2019, section 3).

    Random rows of the pool come first. In each round a discriminator, a random forest, learns actives from decoys on
    one half of both; of the other half the decoys that are easy for it (less like an active than half of the actives
    are) give way, a share of them, to rows of the pool that are hard for it, or the hardest that there are. It ends
    when the discriminator is near chance. In the paper a generator writes the candidates; here they are a pool's.

    Args:
        actives, pool: float64 [m, d] and [k, d], what the discriminator sees; finite.
        n: decoys, fewer than the pool has rows.
        rounds: at most.
        replace: share of the easy decoys of a round that give way; 0: random decoys.
        seed: of the draws and the forests.

    Raises:
        EmptyError: fewer than ten actives, or a pool that is no larger than n.
    """
    if len(actives) < FEWEST or n >= len(pool):
        words = f"{len(actives)} actives and a pool of {len(pool):,} for {n:,} decoys are too few"
        raise EmptyError(words, hint=f"name {FEWEST} actives or more, and a pool larger than the decoys are to be")
    rng = generator(seed, "decoys")
    rows, auc = rng.choice(len(pool), n, replace=False), list[float]()
    with bar("filtering decoys", rounds) as line:
        for number in range(rounds):
            a, d = (rng.permutation(size) % 2 == 0 for size in (len(actives), n))
            forest = RandomForestClassifier(100, max_depth=6, min_samples_leaf=3, class_weight="balanced",
                                            random_state=derive(seed, "forest", number) % 2**31)  # fmt: skip
            forest.fit(np.vstack([actives[a], pool[rows[d]]]), np.repeat([1, 0], [a.sum(), d.sum()]))
            real, drawn = (forest.predict_proba(x)[:, 1] for x in (actives[~a], pool[rows[~d]]))
            auc.append(float(roc_auc_score(np.repeat([1, 0], [len(real), len(drawn)]), [*real, *drawn])))
            line.advance(1)
            if auc[-1] <= LEVEL:
                break
            free = np.setdiff1d(np.arange(len(pool)), rows)
            limit, score = float(np.median(real)), forest.predict_proba(pool[free])[:, 1]
            easy = rng.permutation(np.flatnonzero(drawn < limit))
            easy = easy[: round(replace * len(easy))]
            best = np.argsort(-score)[: max(int((score >= limit).sum()), len(easy))]
            new = rng.permutation(best)[: len(easy)]
            harder = score[new] > drawn[easy[: len(new)]]
            rows[np.flatnonzero(~d)[easy[: len(new)][harder]]] = free[new[harder]]
    return Decoys(np.sort(rows), auc)
