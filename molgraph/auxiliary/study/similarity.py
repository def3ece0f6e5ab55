"""Compare encoders by which kind of similarity their vectors follow: structure, pharmacophore, logP, size, activity."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.auxiliary.study.layers import states
from molgraph.auxiliary.study.neighbourhood import fingerprints, untrained_states
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.concepts import concepts
from molgraph.chem.fingerprints import erg
from molgraph.study.graph_subject import GraphSubject, graph_pair
from molgraph.study.representations import distances, jackknife, rank_correlation
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

LEAST, MOST, FOLDS = 40, 2000, 5  # rows; of the jackknife
CLEAR, CLOSE = (
    0.9,
    2.0,
)  # least correlation of both distances of bits; random vectors are within so many times 1 / sqrt(n)


def references(subject: GraphSubject) -> dict[str, np.ndarray]:
    """Distances of all pairs of n molecules by what they are distances of, float64 [n (n - 1) / 2].

    Jaccard distance of Morgan fingerprints (1 minus Tanimoto similarity), cosine distance of ErG's pharmacophores, and
    differences of logP, of heavy atoms and of the table's first target where all rows have it.
    """
    known, table = concepts(subject.mols), subject.table
    found = {"structure": distances(fingerprints(subject), "jaccard")}
    found["pharmacophore"] = distances(erg([str(text) for text in table.smiles]).x, "cosine")
    for words, name in (("logP", "logP"), ("size", "heavy atoms")):
        if name in known:
            found[words] = distances(known[[name]].to_numpy(), "euclidean")
    if table.row_targets and table.y is not None and np.isfinite(table.y[:, 0]).all():
        found[table.row_targets[0].name] = distances(table.y[:, :1], "euclidean")
    return found


@register(
    "study",
    "similarity",
    summary="which kind of similarity the vectors of encoders follow: structure, pharmacophore, logP, size, activity",
    paper="Hill et al. 2015, ICLR workshop",
    systems=(
        SystemCard(
            "objective-dependent-embedding-comparison",
            left_out="words, their analogies, and encoders of translations",
            off="'similarity(other=dmpnn, shuffled=true)'",
            beside=("fresh weights", "Morgan fingerprints", "random vectors"),
            command="molgraph study 'similarity(other=dmpnn)' builtin:chembl2321810 -m 'gin(depth=2, epochs=5)' "
            "-o similarity.csv",
            modules=("molgraph.study.representations",),
        ),
    ),
)
class SimilarityStudy(Study):
    """A row for each encoder: Spearman's correlation of its cosine distances with distances of several kinds.

    Hill et al. 2015, "Embedding word similarity with neural machine translation": vectors that were learnt by different
    objectives follow different senses of "similar", which shows in their rank correlations with several references
    over all pairs. ``-m`` and ``other`` are files or names of graph networks, which then learn the table's targets.
    Beside them: the first network with fresh weights, Morgan fingerprints by cosine, and random vectors, which are the
    controls.

    Args:
        other: a model's name with its settings, or its file; another fit by another seed, if empty.
        most: molecules, drawn by the seed.
        shuffled: whether vectors are given to other molecules, so that nothing is related.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"most": 120})

    def __init__(
        self, *, other: str = "", most: Annotated[int, Range(LEAST, MOST)] = 500, shuffled: bool = False
    ) -> None:
        self.other, self.most, self.shuffled = other, most, shuffled

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Correlate the distances of all pairs."""
        end = time.process_time() + 0.9 * seconds
        how: dict[str, Any] = {"what": "similarity", "most": self.most, "least": LEAST, "seed": seed}
        first, second = graph_pair(subject, self.other, **how)
        rng, n, known = generator(seed, "similarity"), len(first.table), references(first)
        names = [first.method.model_name, second.model_name]
        names = names if names[0] != names[1] else [names[0], f"other {names[1]}"]
        order = rng.permutation(n) if self.shuffled else np.arange(n)
        vectors = {
            names[0]: states(first.method, first.table, seed)["readout"][order],
            names[1]: states(second, first.table, seed)["readout"][order],
            "fresh weights": untrained_states(first, seed)["readout"],
            "Morgan bits": fingerprints(first),
            "random": rng.normal(size=(n, 64)),
        }
        upper, frame, notes = np.triu_indices(n, 1), pd.DataFrame({"vectors": [*vectors]}), list[str]()
        apart = {name: distances(x, "cosine") for name, x in vectors.items()}
        for words, d in known.items():
            frame[words] = [rank_correlation(each, d) for each in apart.values()]
        for words, d in known.items():
            if time.process_time() > end:
                notes.append("some standard errors are left out, for want of time")
                break
            frame[f"{words}_error"] = [_error(each, d, n, upper, seed) for each in apart.values()]
        best = []
        for row in (0, 1):
            values = frame.loc[row, [*known]].astype(float)
            error = frame.loc[row].get(f"{values.idxmax()}_error", np.nan)
            best.append(f"those of {names[row]} most {values.idxmax()} ({values.max():.2f} ± {error:.2f})")
        at = frame.set_index("vectors")["structure"]
        prints, random, bound = float(at["Morgan bits"]), float(at["random"]), CLOSE / np.sqrt(n)
        return Findings(
            f"Similarity by {names[0]} and {names[1]}, {n:,} molecules",
            f"Of {', '.join(known)}, vectors follow: {'; '.join(best)} (Spearman over pairs ± standard error over "
            f"molecules, seed {seed}; with fresh weights structure {at['fresh weights']:.2f}).",
            frame,
            Control("Morgan bits by cosine, structure", f"above {CLEAR}", f"{prints:.2f}", prints > CLEAR),
            Control("random vectors", f"within {bound:.2f} of 0", f"{random:.3f}", abs(random) < bound),
            lambda form: _drawn(frame, [*known], form),
            tuple(notes),
        )


def _error(a: np.ndarray, b: np.ndarray, n: int, upper: tuple[Any, ...], seed: int) -> float:
    """The standard error over molecules of the correlation of their pairs' distances."""

    def of_rows(rows: np.ndarray) -> float:
        kept = np.isin(upper[0], rows) & np.isin(upper[1], rows)
        return rank_correlation(a[kept], b[kept])

    return jackknife(of_rows, n, folds=FOLDS, seed=seed)


def _drawn(frame: pd.DataFrame, known: list[str], form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    bars = {str(row["vectors"]): [float(row[name]) for name in known] for _, row in frame.iterrows()}
    return paired_bars(known, bars, "Spearman's correlation over pairs", form, 0.0)
