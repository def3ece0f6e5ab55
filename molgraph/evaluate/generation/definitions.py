"""Define the metrics of generated molecules (validity, novelty, IntDiv, SNN, KL) in words, for reports and tables."""

from __future__ import annotations

DEFINITIONS = {
    "valid, unique, novel": "Valid: RDKit reads it and it is a molecule. No molecule: RDKit reads it, but it has an "
    "open attachment point, no carbon, or a metal bound to it. Unique: distinct canonical SMILES among the valid. "
    "Novel: those that are no training molecule, whose salts and stereoisomers count as the same.",
    "filters": "MOSES's: elements, charges, rings of eight atoms or more, medicinal chemistry filters, PAINS.",
    "IntDiv1, IntDiv2": "One minus the mean (root mean square) Tanimoto similarity of all pairs; Morgan, radius 2, "
    "1,024 bits.",
    "SNN, fragments, scaffolds": "Mean similarity to the nearest reference molecule; cosine of counts of BRICS "
    "fragments, and of Murcko scaffolds of two rings or more.",
    "KL score, W1": "Mean of exp(-KL) over nine properties, GuacaMol's; Wasserstein's distance of one property.",
}
