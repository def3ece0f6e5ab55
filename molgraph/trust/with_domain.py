"""Wrapper that says of each prediction how far its molecule is from the training molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.errors import EmptyError, MolgraphError, UnsupportedError
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.train.archive import refused
from molgraph.train.confidence import references
from molgraph.trust.domains.domain import Prints, make_domains
from molgraph.trust.logits import Logits, check_classes, predict_logits
from molgraph.trust.wrapper import TORN, Wrapper, register_wrapper

APART, RANDOM = "scaffold/balanced", "random"  # how molecules are held out; where there are too few scaffolds
SHARE, KEPT = 0.2, 1000  # of molecules that are held out; of their scores, at most
EDGE, OUTSIDE = 90, 99  # percentiles of held-out molecules


@register_wrapper(
    "domain",
    tags=("uncertainty", "applicability domain"),
    summary="how far each molecule is from the training molecules, in percentiles of new scaffolds",
    paper="Netzeva et al. 2005, Altern. Lab. Anim. 33:155",
)
class WithDomain(Wrapper):
    """The predictions of a method, each with a grade of its molecule: ``inside`` the domain, ``edge`` or ``outside``.

    Each score of ``by`` learns from the training molecules without a fifth of their scaffolds; the scores of that fifth
    are what others are compared with, and then it learns from all. ``domain_NAME`` is the score, such as the Tanimoto
    distance of ``nearest``, and ``domain_NAME_percentile`` the percentage of held-out molecules that score lower: 50 is
    as far as a usual molecule of a new scaffold is. ``domain`` is the grade by the first score: ``edge`` beyond 90,
    ``outside`` beyond 99. What is wrapped learns from all rows; a score of its logits, such as ``max_logit``, has it
    learn once more without those scaffolds.

    Use it where a model meets molecules that nobody chose for it.
    Known limits: a grade says how far a molecule is, not how wrong its prediction is.

    Args:
        method: what is wrapped, such as ``dmpnn`` or ``conformal(random_forest)``.
        by: domain scores, such as ``nearest+rnd``.
        seed: of what is wrapped, and of which molecules are held out.
        params: hyper-parameters of what is wrapped.
        threads, store: of what is wrapped, where it knows them.

    Example:
        >>> from molgraph.data.sources import builtin
        >>> table = builtin.chembl2321810().take(range(100))
        >>> WithDomain("linear").fit(table).predict(table.take(range(3))).extra["domain"].tolist()
        ['inside', 'inside', 'inside']
    """

    name = "domain"
    small = MappingProxyType({"method": "linear"})

    def __init__(
        self,
        method: str = "dmpnn",
        by: str = "nearest",
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        super().__init__(method, params, seed, threads, store)
        self.by = by
        self.domains = make_domains(by, seed)
        self.learns = tuple(f"{k}.{array}" for k, domain in self.domains.items() for array in ("held", *domain.learns))

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit what is wrapped, then the domain scores."""
        for name in self._readers("logits"):
            check_classes(table.targets, name)
        known, rows = self._molecules(table)
        super().fit(table, valid, workdir=workdir)
        apart = self._apart(table, rows)
        parts: dict[str, tuple[Any, ...]] = {kind: (x[~apart], x[apart], x) for kind, x in known.items()}
        if self._readers("logits"):
            rest, held = (table.take(rows[part]) for part in (~apart, apart))
            folder = None if workdir is None else Path(workdir) / "held-out"
            less = self._member(0).fit(rest, valid, workdir=folder)
            asked = [(less, rest), (less, held), (self.fitted[0], table)]
            parts["logits"] = tuple(_logits(method, part) for method, part in asked)
        for name, domain in self.domains.items():
            rest, held, every = parts[domain.reads]
            scores = np.sort(domain.fit(rest).score(held))
            places = np.linspace(0, len(scores) - 1, min(len(scores), KEPT)).round().astype(int)
            self.learned |= {f"{name}.{array}": value for array, value in domain.fit(every).state().items()}
            self.learned[f"{name}.held"] = scores[places]
        return self

    def predict_graphs(self, table: Table, graphs: Sequence[CachedGraphs] | None) -> Prediction:
        """The predictions with their grades, and the percentile of each score."""
        known, rows = self._molecules(table)
        places = dict.fromkeys(known, rows)
        if self._readers("logits"):
            predict = partial(super().predict_graphs, table, graphs)
            prediction, known["logits"], places["logits"] = predict_logits(self.fitted[0], predict)
        else:
            prediction = super().predict_graphs(table, graphs)
        extra: dict[str, np.ndarray] = {"domain": np.full(len(table), "", dtype=object)}
        for name, domain in self.domains.items():
            held, score, rows = self.learned[f"{name}.held"], domain.score(known[domain.reads]), places[domain.reads]
            for end, values in (("", score), ("_percentile", 100 * np.searchsorted(held, score) / len(held))):
                extra[f"domain_{name}{end}"] = np.full(len(table), np.nan)
                extra[f"domain_{name}{end}"][rows] = values
        main, domain = next(iter(self.domains.items()))
        rows = places[domain.reads]
        first = extra[f"domain_{main}_percentile"][rows]
        extra["domain"][rows] = np.select([first <= EDGE, first <= OUTSIDE], ["inside", "edge"], "outside")
        return replace(prediction, extra={**prediction.extra, **extra})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild all parts."""
        wrapper = super().from_state(state)
        with refused(TORN.format(cls.name)):
            for name, domain in wrapper.domains.items():
                domain.restore({array: wrapper.learned[f"{name}.{array}"] for array in domain.learns})
                if wrapper.learned[f"{name}.held"].ndim != 1 or not len(wrapper.learned[f"{name}.held"]):
                    raise ValueError("the scores of the held-out molecules are a list")
        return wrapper

    def _readers(self, kind: str) -> list[str]:
        """The names of the scores that read that."""
        return [name for name, domain in self.domains.items() if domain.reads == kind]

    def _molecules(self, table: Table) -> tuple[dict[str, Any], np.ndarray]:
        """Fingerprints and SMILES where scores read them, and the rows that can be read."""
        if len(self._readers("logits")) == len(self.domains):
            return {}, np.flatnonzero(table.ok)
        prints, rows = fingerprints(table)
        return {"fingerprints": prints, "smiles": table.smiles[rows]}, rows

    def _apart(self, table: Table, rows: np.ndarray) -> np.ndarray:
        """bool, which of those rows are held out for the percentiles; by scaffolds where there are enough."""
        for split in (APART, RANDOM):
            try:
                holdout = split_table(table, split, fractions=(1 - SHARE, 0.0, SHARE), seed=self.seed, quiet=True)
            except MolgraphError:
                continue
            apart = np.isin(rows, holdout.test)
            if apart.any() and not apart.all():
                return apart
        raise EmptyError(f"{len(rows)} molecules are too few for a domain", hint="leave the wrapper out")


def _logits(method: Method, table: Table) -> Logits:
    """The logits of the rows that have a prediction."""
    return predict_logits(method, partial(method.predict, table))[1]


def fingerprints(table: Table) -> tuple[Prints, np.ndarray]:
    """The fingerprints of the readable rows' molecules, and which rows those are."""
    if not any(column.kind == "molecule" for column in table.entities):
        words = f"a domain is one of molecules, and the table has {', '.join(c.kind for c in table.entities)} alone"
        raise UnsupportedError(words, hint="leave the wrapper out")
    return references.fingerprints(table)
