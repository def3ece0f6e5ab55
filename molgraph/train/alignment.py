"""Measure how alike two models' answers change: by gradients of the atoms' features, or by edits of the molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from molgraph.base.errors import EmptyError
from molgraph.base.seeds import generator
from molgraph.chem.graph_edits import mutate
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.table import Table
from molgraph.train.adversary import perturbed, with_features
from molgraph.train.inference import FittedNetworks
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.rdkit_features import for_model
from molgraph.train.samples import InputBatch, Sample

TINY = 1e-12  # length of a gradient that counts as none


class Alignment(NamedTuple):
    """Of n molecules: how far a step that raises one model's answer most raises another's.

    Args:
        cosine: float64 [n], R of both gradients; NaN where one is 0.
        size, other_size: float64 [n], lengths S of both.
        expected: float64 [n], the rise of the other's answer to first order, ``eps R S_other``.
        measured: float64 [n], the rise that is found.
    """

    cosine: np.ndarray
    size: np.ndarray
    other_size: np.ndarray
    expected: np.ndarray
    measured: np.ndarray


class Gradients:
    """The answers of a graph network and their gradients by the features of atoms.

    Args:
        fitted: a network of one column of molecules.
        table: n rows, standardised, with graphs.
        target: number of the target.
    """

    def __init__(self, fitted: FittedNetworks, table: Table, target: int = 0) -> None:
        self.fitted = fitted
        graphs = input_graphs(table, fitted.inputs)[0]
        self.batch = collate(graphs.store, graph_of_rows([graphs])[:, 0])
        features = for_model(table, fitted.descriptors.names)
        extra = fitted.descriptors.apply(features.features, features.feature_names)
        self.extra = None if extra is None else torch.from_numpy(extra)
        outputs = fitted.outputs
        self.column = outputs.slices[target].start
        self.scale = float(outputs.scale[target]) if outputs.targets[target].kind == "regression" else 1.0
        self.graph = self.batch.graph_of("atom").numpy()

    def answer(self, rows: Tensor) -> Tensor:
        """float [n]: in the target's units, or log-odds, with float [atoms, width] for the features."""
        batch: GraphBatch = with_features(self.batch, rows)
        sample = Sample((InputBatch(batch, None),), self.extra, None, None)
        with perturbed(self.fitted.network.encoder):
            return self.fitted.network.eval()(sample)[0][:, self.column] * self.scale

    def take(self) -> np.ndarray:
        """float64 [atoms, width]: the gradient of each molecule's answer."""
        rows = self.batch.features("atom").detach().clone().requires_grad_()
        with torch.enable_grad():
            (gradients,) = torch.autograd.grad(self.answer(rows).sum(), rows)
        return gradients.double().numpy()

    def rise(self, step: np.ndarray) -> np.ndarray:
        """float64 [n]: what the answers gain with float64 [atoms, width] added to the features."""
        rows = self.batch.features("atom")
        with torch.no_grad():
            moved = self.answer(rows + torch.from_numpy(step).to(rows.dtype))
            return (moved.double() - self.answer(rows).double()).numpy()


def by_gradients(one: Gradients, other: Gradients, eps: float = 1e-3) -> Alignment:
    """The alignment of two networks that read the same features.

    Demontis et al. 2019, equations 12 and 13: a step ``eps g / ||g||`` along the gradient g of one raises the other's
    answer by ``eps g . g' / ||g|| = eps R S'``.

    Args:
        one: whose answer the step raises.
        other: of the same molecules.
        eps: length of the step.
    """
    g, h, graph, n = one.take(), other.take(), one.graph, one.batch.n_graphs

    def sums(x: np.ndarray) -> np.ndarray:
        return np.bincount(graph, x.sum(axis=1), n)

    size, other_size = np.sqrt(sums(g * g)), np.sqrt(sums(h * h))
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where((size > TINY) & (other_size > TINY), sums(g * h) / (size * other_size), np.nan)
    step = eps * g / np.maximum(size, TINY)[graph][:, None]
    return Alignment(cosine, size, other_size, eps * np.nan_to_num(cosine) * other_size, other.rise(step))


def by_edits(one: np.ndarray, other: np.ndarray) -> Alignment:
    """The alignment of any two models, from the changes of their answers, float64 [n, k], by k edits of each molecule.

    The edits take the place of features: R is the cosine of both rows of changes, which are differences in the place of
    derivatives. The step is the edit that one model likes best; to first order the other rises in proportion.
    """
    size, other_size = np.linalg.norm(one, axis=1), np.linalg.norm(other, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = np.where((size > TINY) & (other_size > TINY), (one * other).sum(axis=1) / (size * other_size), np.nan)
    best = one.argmax(axis=1)
    rows = np.arange(len(one))
    expected = np.nan_to_num(cosine) * other_size * one[rows, best] / np.maximum(size, TINY)
    return Alignment(cosine, size, other_size, expected, other[rows, best])


class Edits(NamedTuple):
    """Molecules and k edits of each.

    Args:
        smiles: of n molecules.
        edited: n rows of k SMILES.
        rows: int64 [n], the numbers of the molecules among those that were given.
    """

    smiles: list[str]
    edited: list[list[str]]
    rows: np.ndarray

    def changes(self, score: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
        """float64 [n, k]: how an answer changes with each edit, 0 where there is none."""
        n, k = len(self.smiles), len(self.edited[0])
        scores = score([*self.smiles, *(text for row in self.edited for text in row)]).astype(np.float64)
        return np.nan_to_num(scores[n:].reshape(n, k) - scores[:n, None])


def edits_of(smiles: Sequence[str], k: int, seed: int = 0) -> Edits:
    """The molecules of which k single edits were found, such as a search makes.

    Raises:
        EmptyError: none.
    """
    rows, edited = list[int](), list[list[str]]()
    for i, text in enumerate(smiles):
        rng = generator(seed, "edits", i)
        variants = [other for other in (mutate(text, rng) for _ in range(k)) if other]
        if len(variants) == k:
            rows.append(i)
            edited.append(variants)
    if not rows:
        raise EmptyError("no molecule can be edited", hint="name a table of molecules")
    return Edits([smiles[i] for i in rows], edited, np.array(rows))


def same_features(one: Any, other: Any) -> bool:
    """Whether two models are graph networks of molecules whose atoms have the same features."""
    specs = []
    for model in (one, other):
        method = model.method if isinstance(model, Model) else model
        if not isinstance(method, GraphMethod) or not method.ready().network.has_head:
            return False
        network, inputs = method.ready().network, method.graph_inputs()
        plain = len(inputs) == 1 and inputs[0].kind == "molecule" and network.level == "row" and not network.joiner
        if not plain or network.encoder.by_code or network.encoder.options:
            return False
        specs.append((inputs[0].spec.featuriser, inputs[0].spec.width("atom")))
    return specs[0] == specs[1]
