"""Measure by one number whether molecules of similar structure have similar vectors (topographic similarity)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
import pandas as pd

from molgraph.auxiliary.study.layers import states
from molgraph.auxiliary.study.probes import activations
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.study.graph_subject import GraphSubject, graph_subject
from molgraph.study.representations import distances, jackknife, mantel
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.inputs import input_graphs
from molgraph.train.runtime import torch_settings

LEAST, MOST = 40, 2000  # rows
CLOSE = 2.0  # of random vectors: their correlation is within so many times 1 / sqrt(rows)


def untrained_states(subject: GraphSubject, seed: int) -> dict[str, np.ndarray]:
    """Float64 [n, d] by layer, of the same encoder with fresh weights."""
    network, inputs = subject.method.ready().network, subject.method.graph_inputs()
    with torch_settings(1, derive(seed, "untrained")):
        encoder = network.makers[0]().eval()
        encoder.measure(input_graphs(subject.table, inputs)[0].store)
        return activations(encoder, inputs, subject.table)


def fingerprints(subject: GraphSubject) -> np.ndarray:
    """uint8 [n, 2048]: Morgan fingerprints of radius 2."""
    return morgan([str(text) for text in subject.table.smiles]).x


@register(
    "study",
    "neighbourhood",
    summary="one number for whether similar molecules have similar vectors, with Mantel's test",
    paper="Li and Bowling 2019, NeurIPS; Mantel 1967, Cancer Res.",
    systems=(
        SystemCard(
            "ease-of-teaching-topographic-similarity",
            left_out="speakers, listeners and their resets, and how fast a new listener learns (ease of teaching)",
            off="'neighbourhood(shuffled=true)'",
            beside=("fresh weights", "random vectors"),
            command="molgraph study neighbourhood builtin:chembl2321810 -m encoder.mgm -o neighbourhood.csv",
            modules=("molgraph.study.representations",),
        ),
    ),
)
class NeighbourhoodStudy(Study):
    """A row for each layer: the topographic similarity of its vectors, its p, and that of the network's fresh weights.

    Li and Bowling 2019, "Ease-of-teaching and language structure from emergent communication", section 4.2: minus the
    Spearman correlation between the similarity of objects and the distance of their codes, over all pairs; here of
    Tanimoto similarity of Morgan fingerprints and the distance of vectors. 1: the order of all pairs is the same, 0:
    no relation. The p is that of Mantel's test, since pairs are not independent. ``-m`` is a file or the name of a
    graph network, which then learns the table's targets. Controls: the fingerprints by Jaccard distance, and random
    vectors.

    Args:
        distance: of vectors, ``cosine`` or ``euclidean``.
        most: molecules, drawn by the seed.
        permutations: of Mantel's test.
        shuffled: whether vectors are given to other molecules, so that nothing is related.
    """

    needs = ("graph_model",)
    small = MappingProxyType({"most": 120, "permutations": 99})

    def __init__(
        self,
        *,
        distance: Literal["cosine", "euclidean"] = "cosine",
        most: Annotated[int, Range(LEAST, MOST)] = 500,
        permutations: Annotated[int, Range(19, 100_000)] = 499,
        shuffled: bool = False,
    ) -> None:
        self.distance, self.most, self.permutations, self.shuffled = distance, most, permutations, shuffled

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Compare the distances of all pairs, layer by layer."""
        found = graph_subject(subject, what="neighbourhoods", most=self.most, least=LEAST, seed=seed)
        bits, rng, n = fingerprints(found), generator(seed, "neighbourhood"), len(found.table)
        structure = distances(bits, "jaccard")
        trained, fresh = states(found.method, found.table, seed), untrained_states(found, seed)
        order = rng.permutation(n) if self.shuffled else np.arange(n)
        how = {"permutations": self.permutations, "seed": seed}
        rows = []
        for name, x in trained.items():
            x = x[order]
            rho, p = mantel(structure, distances(x, self.distance), n, **how)
            rows.append((name, rho, self.error(bits, x, seed), p, self.plain(bits, fresh[name]) if name in fresh
                         else np.nan))  # fmt: skip
        frame = pd.DataFrame(rows, columns=["layer", "similarity", "standard_error", "p", "fresh_weights"])
        at = frame.set_index("layer").loc["readout"]
        exact = mantel(structure, distances(bits, "jaccard"), n, permutations=0)[0]
        random, bound = self.plain(bits, rng.normal(size=(n, 64))), CLOSE / np.sqrt(n)
        return Findings(
            f"Neighbourhoods of {found.method.model_name}, {n:,} molecules",
            f"Topographic similarity of the molecules' vectors {at['similarity']:.2f} ± {at['standard_error']:.2f} "
            f"(1: the order of Tanimoto similarity; 0: none; Mantel's p = {at['p']:.3g}, seed {seed}); with fresh "
            f"weights {at['fresh_weights']:.2f}.",
            frame,
            Control("fingerprints by Jaccard distance", "1", f"{exact:.6f}", abs(exact - 1) < 1e-9),
            Control("random vectors", f"within {bound:.2f} of 0", f"{random:.3f}", abs(random) < bound),
            lambda form: _drawn(frame, form),
        )

    def plain(self, bits: np.ndarray, x: np.ndarray) -> float:
        """Without a test, of uint8 [n, bits] and float [n, d]."""
        return mantel(distances(bits, "jaccard"), distances(x, self.distance), len(x), permutations=0)[0]

    def error(self, bits: np.ndarray, x: np.ndarray, seed: int) -> float:
        """Its standard error over molecules."""
        return jackknife(lambda rows: self.plain(bits[rows], x[rows]), len(x), seed=seed)


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    bars = {"trained": [*frame["similarity"]], "fresh weights": [*frame["fresh_weights"]]}
    return paired_bars([*frame["layer"]], bars, "topographic similarity", form, 0.0)
