"""Compare the layers of two graph networks by canonical correlations (PWCCA) and CKA of their states."""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
import pandas as pd

from molgraph.auxiliary.study.probes import activations, hidden_layers
from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.data.table import Table
from molgraph.study.graph_subject import graph_pair
from molgraph.study.representations import cka, jackknife, pwcca
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.method import GraphMethod
from molgraph.train.runtime import torch_settings

LEAST, FOLDS = 40, 5  # rows; of the jackknife
SAME, APART, DRAWN, WIDTH = 1e-4, 0.15, 5000, 20  # bounds of the controls; rows and columns of noise


def states(method: GraphMethod, table: Table, seed: int) -> dict[str, np.ndarray]:
    """Float64 [n, d] by layer: the states of a network, without the sums of the atoms' features."""
    network = method.ready().network
    with torch_settings(1, derive(seed, "layers")):
        found = activations(
            network.encoder, method.graph_inputs(), table, network.head if hidden_layers(method) else None
        )
    return {name: x for name, x in found.items() if name != "input"}


@register(
    "study",
    "layers",
    summary="how alike the layers of two graph networks are, such as before and after fine-tuning",
    paper="Morcos et al. 2018, NeurIPS",
    systems=(
        SystemCard(
            "pwcca",
            left_out="images and texts; generalising against memorising networks; states of atoms (sums by molecule)",
            off="'layers(other=gin, by=cca)'",
            beside=("plain mean of the correlations", "CKA", "shuffled rows"),
            command="molgraph study 'layers(other=gin)' builtin:chembl2321810 -m 'gin(depth=3, epochs=5)' "
            "-o layers.csv",
            modules=("molgraph.study.representations",),
        ),
    ),
)
class LayersStudy(Study):
    """A row for each pair of layers of two networks: their similarity, that of shuffled rows, and CKA.

    Morcos et al. 2018, "Insights on representational similarity in neural networks with canonical correlation": the
    mean of the canonical correlations, weighted by how much of the first network's layer each direction holds
    (``molgraph.study.representations``). It is 1 between layers that are linear maps of each other. With few molecules
    and wide layers any two are correlated: ``chance`` is the similarity with the second network's rows in another
    order. Controls: the last layer and a random linear map of it; two matrices of Gaussian noise.

    Args:
        other: a model's name with its settings, or its file; another fit by another seed, if empty.
        by: ``pwcca``, or ``cca``, the plain mean of the correlations.
        most: molecules, drawn by the seed.

    Raises:
        UnsupportedError: a model that is no graph network.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"most": 120})

    def __init__(
        self,
        *,
        other: str = "",
        by: Literal["pwcca", "cca"] = "pwcca",
        most: Annotated[int, Range(LEAST, LARGEST)] = 1000,
    ) -> None:
        self.other, self.by, self.most = other, by, most

    def similarity(self, x: np.ndarray, y: np.ndarray) -> float:
        """Of two layers, float [n, d] and [n, e]."""
        return pwcca(x, y, weighted=self.by == "pwcca")

    def _of_rows(self, x: np.ndarray, y: np.ndarray, rows: np.ndarray) -> float:
        return self.similarity(x[rows], y[rows])

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Compare all layers of both, and those of one name with an interval."""
        end = time.process_time() + 0.9 * seconds
        first, second = graph_pair(subject, self.other, what="layers", most=self.most, least=LEAST, seed=seed)
        a, b = (states(method, first.table, seed) for method in (first.method, second))
        n, rng, rows, notes = len(first.table), generator(seed, "shuffled"), list[tuple[object, ...]](), list[str]()
        shuffled = rng.permutation(n)
        for one, x in a.items():
            for two, y in b.items():
                error = np.nan
                if one == two and time.process_time() < end:
                    error = jackknife(partial(self._of_rows, x, y), n, folds=FOLDS, seed=seed)
                rows.append((one, two, self.similarity(x, y), error, self.similarity(x, y[shuffled]), cka(x, y)))
        frame = pd.DataFrame(rows, columns=["layer", "other_layer", "similarity", "standard_error", "chance", "cka"])
        same = frame[frame["layer"] == frame["other_layer"]]
        if same["standard_error"].isna().any():
            notes.append("some standard errors are left out, for want of time")
        top = next(reversed(a))
        x = a[top]
        linear = self.similarity(x, x @ rng.normal(size=(x.shape[1],) * 2) + rng.normal(size=x.shape[1]))
        noise = self.similarity(*rng.normal(size=(2, DRAWN, WIDTH)))
        words = ", ".join(
            f"{row.layer} {row.similarity:.2f}" + (f" ± {row.standard_error:.2f}" if row.standard_error >= 0 else "")
            for row in same.itertuples()
        )
        return Findings(
            f"Layers of {first.method.model_name} and {second.model_name}, {n:,} molecules",
            f"{self.by.upper()} of equal layers (1: linear maps of each other): {words or 'no layer of one name'}; "
            f"shuffled molecules {same['chance'].mean() if len(same) else frame['chance'].mean():.2f} (± standard "
            f"error over molecules, seed {seed}).",
            frame,
            Control(f"{top} and a linear map of it", f"1 within {SAME:g}", f"{linear:.6f}", abs(linear - 1) < SAME),
            Control("two matrices of noise", f"below {APART}", f"{noise:.3f}", noise < APART),
            lambda form: _drawn(frame, f"{self.by} similarity", form),
            tuple(notes),
        )


def _drawn(frame: pd.DataFrame, label: str, form: str) -> bytes:
    from molgraph.evaluate.report_studies import similarity_map  # with matplotlib

    rows, columns = [*dict.fromkeys(frame["layer"])], [*dict.fromkeys(frame["other_layer"])]
    values = frame["similarity"].to_numpy().reshape(len(rows), len(columns))
    return similarity_map(values, rows, columns, label, form)
