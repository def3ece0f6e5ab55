"""Look up the scores of molecules by each weighted part of an oracle, for searches of several objectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.chem.identity import canonical_smiles
from molgraph.generate.oracles.calls import OracleCalls


class TermScores:
    """The scores of molecules by each part that has a weight; no oracle is asked, and no call is counted.

    The score of part i is ``t_i(x) + (S(x) - total(x))``: of a weighted sum ``w_i t_i(x)`` in the place of ``t_i(x)``.
    The difference in brackets is what bounds and reward terms add to the total, and each part has it whole.

    Args:
        calls: where scores are kept.

    Example:
        >>> from molgraph.generate.oracles.read_oracle import read_oracle
        >>> calls = OracleCalls(read_oracle("qed,logp:0.5,sa<4"), budget=2)
        >>> terms, (one,) = TermScores(calls), calls.score(["CCO"])
        >>> terms.labels, terms(["OCC", "CCC"], np.array([one.total, 1.0])).round(3).tolist()
        (('qed', 'logp'), [[0.407, -0.001], [nan, nan]])
    """

    def __init__(self, calls: OracleCalls) -> None:
        self.calls = calls

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the parts that have a weight, of the stage as it is."""
        oracle = self.calls.oracle
        return tuple(label for term, label in zip(oracle.terms, oracle.labels, strict=True) if term.weight)

    def __call__(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """float64 [n, parts], higher is better; NaN of what has no scores by parts, as one outside the bounds.

        Args:
            smiles: n texts.
            score: float64 [n], ``S(x)``, as the search is told it.
        """
        terms = self.calls.oracle.terms
        scored = [None if one.reason else self.calls.seen(one.smiles) for one in canonical_smiles(list(smiles))]
        parts = np.full((len(scored), len(terms)), np.nan)
        total = np.full(len(scored), np.nan)
        for row, one in enumerate(scored):
            if one is not None and one.parts:
                parts[row], total[row] = one.parts, one.total
        summed = self.calls.oracle.combine == "sum"
        values = [
            (term.weight if summed else 1.0) * term.value(parts[:, j]) for j, term in enumerate(terms) if term.weight
        ]
        return np.column_stack(values) + (np.asarray(score, dtype=np.float64) - total)[:, None]
