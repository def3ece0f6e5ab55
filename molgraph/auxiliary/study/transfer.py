"""Measure whether two models lie in one basin: the loss between their weights (barrier), and CKA of their layers."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch

from molgraph.auxiliary.study.layers import states
from molgraph.base.errors import MissingOptionError, UnsupportedError
from molgraph.base.paths import check_ending
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.study.representations import cka, jackknife
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import Judged, is_name, judged
from molgraph.study.weight_space import WeightSpace, between, graph_method_of
from molgraph.train.card import ModelCard
from molgraph.train.inference import FittedNetworks
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes

LEAST, TINY, ROUNDING = 10, 1e-6, 1e-4  # rows; loss that counts as none; of CKA


def barrier(losses: np.ndarray) -> float:
    """How far the loss rises above the straight line between both ends, float [points, rows] to a number of 0 or more.

    Neyshabur et al. 2020, section 3.3 (after Frankle et al. 2020): ``max_a L(a) - ((1 - a) L(0) + a L(1))``, where
    ``L(a)`` is the mean loss at ``(1 - a) theta_1 + a theta_2``.
    """
    mean = losses.mean(axis=1)
    return float((mean - np.linspace(mean[0], mean[-1], len(mean))).max())


@register(
    "study",
    "transfer",
    summary="whether two models lie in one basin and can be averaged: the loss between their weights, and CKA",
    paper="Neyshabur et al. 2020, NeurIPS; Wortsman et al. 2022, ICML",
    systems=(
        SystemCard(
            "transfer-diagnostics",
            left_out="shuffled inputs, modules rewound to their start, and earlier checkpoints of the pretraining",
            off="'transfer(points=2)'",
            beside=("two models from scratch", "a model and itself"),
            command="molgraph study transfer builtin:chembl2321810 -m 'gin(depth=2, epochs=9)' -o transfer.csv",
            modules=("molgraph.study.weight_space", "molgraph.study.representations"),
        ),
    ),
)
class TransferStudy(Study):
    """The loss at points between the weights of two models of one architecture, then CKA of each layer.

    Neyshabur et al. 2020, "What is being transferred in transfer learning?": two models that were fine-tuned from one
    pretrained encoder have no barrier between them and similar layers; two from scratch have both. Losses are those of
    rows that neither learnt from; running statistics of batch norm are computed anew at each point. Where there is no
    barrier the mean of both weights is a model too (Wortsman et al. 2022), which ``soup`` writes. Controls: a model and
    itself; a layer and its rotation. ``molgraph study 'transfer(other=b.mgm, soup=mean.mgm)' DATA -m a.mgm`` compares
    two files.

    Args:
        other: a model's name with its settings, or its file; another fit by another seed, if empty.
        points: on the line, both ends among them.
        soup: the file (.mgm) of the mean of both weights; none if empty.
        rows: of the table that are used, at most, drawn at random.
        epochs: of a network that is named, at most.

    Raises:
        UnsupportedError: models that are no graph networks of one architecture, targets and scales of descriptors.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"rows": 120, "epochs": 2, "points": 5})

    def __init__(
        self,
        *,
        other: str = "",
        points: Annotated[int, Range(2, 101)] = 11,
        soup: str = "",
        rows: Annotated[int, Range(20, 1_000_000)] = 1500,
        epochs: Count = 20,
    ) -> None:
        if soup:
            check_ending(soup, ".mgm")
        self.other, self.points, self.soup, self.rows, self.epochs = other, points, soup, rows, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Walk from one model to the other."""
        if not self.other and not is_name(subject.model):
            words = "transfer compares two models, and one file is named"
            raise MissingOptionError(words, hint="name the other: transfer(other=b.mgm)")
        how: dict[str, Any] = {"rows": self.rows, "epochs": self.epochs}
        first = judged(subject, **how, seed=seed)
        again = Subject(subject.data, self.other or subject.model, subject.columns)
        second = self._second(first, again, how, seed)
        one, two = (graph_method_of(each.model) for each in (first, second))
        table = _rows(first, second)
        here, there = (WeightSpace(method, table, first.target) for method in (one, two))
        if not _same(one.ready(), two.ready()):
            words = "the models predict other targets, or scale their descriptors otherwise"
            raise UnsupportedError(words, hint="train both on the same rows and columns")
        losses, itself = self.path(here, there), self.path(here, here)
        rise, n = barrier(losses), len(table)
        error = jackknife(lambda rows: barrier(losses[:, rows]), n, seed=seed)
        a, b = (states(method, table, seed) for method in (one, two))
        rng, x = generator(seed, "rotation"), next(reversed(a.values()))
        turned = 3 * x @ np.linalg.qr(rng.normal(size=(x.shape[1],) * 2))[0]
        alike, mean = {name: cka(a[name], b[name]) for name in a if name in b}, losses.mean(axis=1)
        at, straight = np.linspace(0, 1, self.points), np.linspace(mean[0], mean[-1], self.points)
        frame = pd.DataFrame({"what": [f"share {share:.2f} of the second" for share in at], "loss": mean,
                              "straight_line": straight})  # fmt: skip
        layers = pd.DataFrame({"what": [*alike], "cka": [*alike.values()]})
        middle = float(self.path(here, there, points=3)[1].mean())
        self_rise, turned_cka, notes = barrier(itself), cka(x, turned), [*first.notes]
        if self.soup:
            notes.append(f"{_soup(first, second, here, there).save(self.soup)}: loss {middle:.3f}")
        return Findings(
            f"{first.model.name} and {'another ' * (not self.other)}{second.model.name}: {n:,} new rows of "
            f"{first.target.name}",
            f"Barrier {rise:.3f} ± {error:.3f} between losses of {mean[0]:.3f} and {mean[-1]:.3f} (standard error over "
            f"rows, seed {seed}); the mean of the weights has {middle:.3f}"
            f"{', less than both have on average' if middle <= mean[[0, -1]].mean() else ''}; "
            f"CKA of layers {np.mean([*alike.values()]):.2f}.",
            pd.concat([frame, layers], ignore_index=True),
            Control("a layer and its rotation", "CKA 1", f"{turned_cka:.6f}", abs(turned_cka - 1) < ROUNDING),
            Control("a model and itself", "no barrier", f"{self_rise:.3g}", self_rise < TINY),
            lambda form: _drawn(at, mean, straight, form),
            tuple(notes),
        )

    def path(self, one: WeightSpace, two: WeightSpace, points: int = 0) -> np.ndarray:
        """float64 [points, n]: the loss of each row at points from the first's weights to the second's."""
        a, b, found = one.weights, two.weights, []
        for share in np.linspace(0, 1, points or self.points):
            scale = torch.lerp(one.scale, two.scale, float(share))
            found.append(one.losses_at(between(a, b, float(share)), scale, refresh=True).double().numpy())
        one.set_weights(a)
        return np.array(found)

    def _second(self, first: Judged, again: Subject, how: dict[str, Any], seed: int) -> Judged:
        """Another fit of the rows that the first learnt from, or the other file."""
        if self.other or not is_name(again.model):
            return judged(again, **how, seed=seed)
        method = deepcopy(graph_method_of(first.model)).set_params(seed=derive(seed, "again") % 2**31)
        method.fit(first.train)
        return first._replace(model=Model(method, targets=first.model.targets, standardiser=first.model.standardiser))


def _rows(first: Judged, second: Judged) -> Table:
    """Rows that neither learnt from, as both read them."""
    table = standardise(first.test, first.model.standardiser)
    known = second.model.trained_on
    new = table.ok if known is None else table.ok & ~np.isin(molecule_hashes(table), known)
    if new.sum() < LEAST:
        words = f"{new.sum()} rows are new to both models, of {LEAST} that are needed"
        raise UnsupportedError(words, hint="name a table of new molecules")
    return table.take(np.flatnonzero(new))


def _same(one: FittedNetworks, two: FittedNetworks) -> bool:
    """Whether two networks predict the same targets from descriptors on the same scale."""
    a, b = one.descriptors, two.descriptors
    close = a.names == b.names and np.allclose(a.mean, b.mean) and np.allclose(a.scale, b.scale)
    return bool(close and [t.name for t in one.outputs.targets] == [t.name for t in two.outputs.targets])


def _soup(first: Judged, second: Judged, here: WeightSpace, there: WeightSpace) -> Model:
    """The model of the mean of both weights, with the mean of both scales and without intervals."""
    one, two = (graph_method_of(each.model).ready() for each in (first, second))
    here.losses_at(between(here.weights, there.weights, 0.5), refresh=True)
    method, network = copy(graph_method_of(first.model)), deepcopy(one.network)
    network.load_state_dict(here.weights)
    scales = {name: (getattr(one.outputs, name) + getattr(two.outputs, name)) / 2 for name in ("mean", "scale")}
    outputs = replace(one.outputs, **scales)
    method.fitted = FittedNetworks(network.eval(), outputs, one.descriptors, one.inputs)
    known = [each.model.trained_on for each in (first, second)]
    trained_on = None if any(each is None for each in known) else np.unique(np.concatenate([*known]))
    card = ModelCard(notes=(f"the mean of the weights of {first.model.name} and {second.model.name}",))
    model = first.model
    return Model(method, targets=model.targets, standardiser=model.standardiser, feature_names=model.feature_names,
                 card=card, trained_on=trained_on)  # fmt: skip


def _drawn(at: np.ndarray, loss: np.ndarray, straight: np.ndarray, form: str) -> bytes:
    from molgraph.evaluate.report_studies import setting_lines  # with matplotlib

    labels = ("share of the second model's weights", "loss")
    return setting_lines([*at], {"between": loss, "straight line": straight}, labels, form, log=(False, False))
