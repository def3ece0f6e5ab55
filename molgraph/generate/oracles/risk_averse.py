"""Inverse reward design: weights that are pessimistic about parts which never varied before."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.errors import DataError, UnsupportedError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.generate.oracles.oracle import Oracle, Scores
from molgraph.generate.oracles.read_oracle import read_oracle

DRAWS = 20_000  # weights of the prior, among which those of the posterior are drawn
PROXIES = 2_000  # of them, by which the normaliser is estimated


def posterior_of(
    proxy: np.ndarray, features: np.ndarray, beta: float, draws: np.ndarray, observe: bool = True
) -> np.ndarray:
    """float64 [k], how probable each of some weights is, given those that a person chose; they sum to 1.

    ``P(w | w~) = exp(beta w . phi(w~)) / Z(w) P(w)``, ``Z(w) = mean_i exp(beta w . phi(w_i))`` over proxies ``w_i`` of
    the prior (Hadfield-Menell et al. 2017, equations 2 to 4), where ``phi(w)`` are the features of the molecule that is
    best by ``w`` among those that the person looked at.

    Args:
        proxy: float64 [d], the weights that the person chose.
        features: float64 [n, d], of the molecules that the person looked at.
        beta: how surely the person's choice is the best for those molecules.
        draws: float64 [k, d], of the prior.
        observe: whether the choice is taken into account; without, all draws are as probable.
    """
    if not observe:
        return np.full(len(draws), 1 / len(draws))
    chosen = features[np.argmax(features @ proxy)]
    best = np.unique(np.argmax(features @ draws[:PROXIES].T, axis=0), return_counts=True)
    energy = beta * draws @ (features[best[0]] - chosen).T  # [k, distinct optima]; the rest cancels
    top = energy.max(axis=1, keepdims=True)
    log_z = np.log((np.exp(energy - top) * best[1]).sum(axis=1)) + top[:, 0]
    weight = np.exp(-(log_z - log_z.min()))
    return np.asarray(weight / weight.sum())


@register(
    "oracle",
    "risk_averse",
    summary="a weighted sum without trust in parts that never varied in a table: risk_averse(qed,logp, table=T.csv)",
    paper="Hadfield-Menell et al. 2017, NeurIPS 30",
    systems=(
        SystemCard(
            "ird",
            left_out="plans of several steps, and rewards that are not linear in the features",
            off="'risk_averse(qed,smarts(Cl):0.3, table=dataset:nci, share=1)'",
            beside=("the plain weighted sum",),
            command="molgraph optimise --search graph-ga "
            "--objective 'risk_averse(qed,smarts(Cl):0.3, table=dataset:nci)' -o found.csv",
        ),
    ),
)
class RiskAverse(Oracle):
    """``mean of the lowest share of w . (phi(x) - mean phi(table))`` over weights that explain those that were chosen.

    Weights are tuned by looking at some molecules. What a part does that never varied among them was never looked at:
    its true weight is unknown, and a search that finds molecules rich in it exploits the sum. Inverse reward design
    takes the weights for evidence: weights ``w`` are probable if those chosen are a good choice for them among the
    molecules of the table; parts that do not vary there stay as uncertain as before. The score is the mean over the
    worst weights, so that a molecule gains by what is known alone.

    Args:
        oracle: a weighted sum; no product.
        table: the molecules that one looked at while the weights were set.
        beta: how surely the choice is the best, in nats for a difference of one typical score.
        share: of the weights, the worst, over which the mean is taken.
        draws: weights that are kept.
    """

    name = "risk_averse"
    small = MappingProxyType({"oracle": "qed,smarts(Cl):0.3", "draws": 200})

    def __init__(
        self,
        oracle: str,
        table: str | Table,
        beta: Annotated[float, Range(0.0, 1e6)] = 5.0,
        share: Annotated[float, Range(0.0, 1.0, above=True)] = 0.1,
        draws: Annotated[int, Range(10, 100_000)] = 1000,
    ) -> None:
        self.oracle, self.table, self.beta, self.share, self.draws = oracle, table, beta, share, draws
        self.parts = read_oracle(oracle)
        if self.parts.combine != "sum":
            raise UnsupportedError("a product is no weighted sum", hint="give the parts transforms, without product()")
        if any(np.isfinite([term.low, term.high]).any() for term in self.parts.terms):
            raise UnsupportedError("bounds inside of risk_averse() are not kept", hint="write them behind it: ...,sa<4")
        self.terms = [term for term in self.parts.terms if term.weight]
        self.scale, self.batched, self.shard = self.parts.scale, self.parts.batched, self.parts.shard

    @property
    def content(self) -> str:
        """What the parts depend on, a hash of the table, and the settings."""
        if not self.parts.content:
            return ""
        text = "\n".join(str(smiles) for smiles in self._table.smiles[self._table.ok])
        table = hashlib.sha256(text.encode()).hexdigest()[:16]
        return f"{self.parts.content} {table} {self.beta} {self.share} {self.draws}"

    @cached_property
    def _table(self) -> Table:
        return self.table if isinstance(self.table, Table) else read_table(self.table)

    def features(self, smiles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """float64 [n, parts], the value of each part in its typical differences, and object [n], why there is none."""
        scores = self.parts.score_parts(smiles)
        columns = [scores.parts[:, self.parts.terms.index(term)] for term in self.terms]
        return np.stack([t.value(x) / t.scale for t, x in zip(self.terms, columns, strict=True)], axis=1), scores.reason

    @cached_property
    def _known(self) -> tuple[np.ndarray, np.ndarray]:
        """float64 [parts], the mean features of the table, and float64 [draws, parts], weights of the posterior."""
        phi, reason = self.features([str(text) for text in self._table.smiles[self._table.ok]])
        phi = phi[reason == ""]
        if len(phi) < 2:
            raise DataError("fewer than two molecules of the table have a score", hint="name the molecules looked at")
        proxy = np.array([term.weight * term.scale for term in self.terms])
        size, random = float(np.sqrt(np.mean(proxy**2))), generator(0, "risk-averse")
        prior = random.standard_normal((DRAWS, len(proxy)))
        chance = posterior_of(proxy / size, phi, self.beta, prior)
        return phi.mean(axis=0), size * prior[random.choice(DRAWS, self.draws, p=chance)]

    def score(self, smiles: Sequence[str]) -> Scores:
        """The mean over the worst weights, for each SMILES."""
        if not len(smiles):
            return Scores(np.zeros(0), np.zeros(0, dtype=object))
        phi, reason = self.features(smiles)
        centre, weights = self._known
        value: Any = np.sort((phi - centre) @ weights.T, axis=1)[:, : max(1, round(self.share * self.draws))]
        return Scores(np.where(reason == "", value.mean(axis=1), np.nan), reason)
