"""Distil a model into a student that learns its predictions beside the labels: born-again networks."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import Annotated

import numpy as np

from molgraph.base.contracts import Method, Prediction, Target
from molgraph.base.ranges import Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.compress.compressor import Compressor
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table, make_table
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.trust.ensemble import Ensemble

SURE = 0.5  # probability beyond which a class stands for a missing label where a student learns no probabilities


@register(
    "compressor",
    "born_again",
    summary="a student learns a model's predictions beside the labels: of an ensemble, of another kind, or once more",
    paper="Furlanello et al. 2018, ICML; Hinton et al. 2015, arXiv:1503.02531",
    systems=(
        SystemCard(
            "ban",
            left_out="weights by the teacher's confidence, permuted dark knowledge; images",
            off="'born_again(share=0, fill=false)'",
            beside=("a student of the labels alone",),
            command="molgraph train dataset:adme_sol -m dmpnn -o assay.mgm && "
            "molgraph compress assay.mgm dataset:adme_sol --how born_again -o student.mgm",
        ),
    ),
)
class BornAgain(Compressor):
    """A student learns ``(1 - share) y + share f(x)`` where there is a label, and ``f(x)`` where there is none.

    Furlanello et al. 2018, "Born Again Neural Networks", for numbers and, by networks, for probabilities of two
    classes, whose squared error is minimised; other students learn the labels, and the likelier class where there is
    none. Of several targets the teacher so fills the gaps. With ``generations`` above 1 each student teaches the next,
    and with ``ensemble`` all students are kept (the paper's section 3.1). A ``library`` of molecules without labels is
    learned from as well, by the teacher's predictions: what a student of another kind needs.

    Known limit: on 200 molecules of a ChEMBL series no gain over a student of the labels alone was found (three seeds);
    what is sure is that one network takes the place of several.

    Args:
        student: the model with its settings; by default the teacher's own, or a member of an ensemble.
        share: of the teacher in what is learned where there is a label.
        fill: whether the teacher's predictions stand in for missing labels.
        generations: students, one after the other.
        ensemble: whether the model is the mean of all of them; networks alone.
        library: a file or table of molecules without labels.
    """

    small = MappingProxyType({"student": "linear"})

    def __init__(
        self,
        student: str = "",
        *,
        share: Probability = 0.5,
        fill: bool = True,
        generations: Annotated[int, Range(1, 20)] = 1,
        ensemble: bool = False,
        library: str = "",
    ) -> None:
        self.student, self.share, self.fill = student, share, fill
        self.generations, self.ensemble, self.library = generations, ensemble, library

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The last student, or the ensemble of all."""
        teacher: Method = model.check_predicts()
        students: list[Method] = []
        for turn in range(self.generations):
            student = self._fresh(model, derive(seed, "generation", turn))
            more = self._unlabelled(model, table)
            learnt = self._taught(teacher, table, more, soft=isinstance(student, GraphMethod))
            # it stops and keeps its epoch by what the teacher says too
            judged = self._taught(teacher, valid, None, soft=isinstance(student, GraphMethod)) if len(valid) else None
            student.fit(learnt, judged)
            teacher = _with_targets(student, table.targets)
            students.append(teacher)
        if self.ensemble and len(students) > 1 and isinstance(students[0], GraphMethod):
            return _mean(students)
        return students[-1]

    def _fresh(self, model: Model, seed: int) -> Method:
        """A student that has not learnt yet."""
        teacher = model.check_predicts()
        method: Method = teacher.members[0] if teacher.members else teacher  # type: ignore[assignment]
        template = make_method(self.student) if self.student else method
        known = template.get_params()
        overrides = {name: value for name, value in (("seed", seed), ("init", None)) if name in known}
        return type(template)(**{**known, **overrides})

    def _unlabelled(self, model: Model, table: Table) -> Table | None:
        if not self.library:
            return None
        molecules = standardise(make_table(list(read_table(self.library).smiles)), model.standardiser)
        return molecules.take(np.flatnonzero(molecules.ok))

    def _taught(self, teacher: Method, table: Table, more: Table | None, *, soft: bool) -> Table:
        """The rows with what the student is to learn, those of the library behind them."""
        assert table.y is not None
        mixture = self._mixed(table, teacher.predict(table), soft=soft)
        if more is None:
            return mixture
        empty = replace_targets(more, mixture.targets, np.full((len(more), table.y.shape[1]), np.nan))
        labelled = self._mixed(replace(empty, targets=table.targets), teacher.predict(more), soft=soft)
        assert mixture.y is not None and labelled.y is not None
        y = np.concatenate([mixture.y, labelled.y])
        return make_table([*mixture.smiles, *labelled.smiles], targets=mixture.targets, y=y)

    def _mixed(self, table: Table, prediction: Prediction, *, soft: bool) -> Table:
        """The labels of rows mixed with predictions; probabilities where the student learns such."""
        assert table.y is not None
        y, targets, column = table.y.copy(), list(table.targets), 0
        for j, target in enumerate(table.row_targets):
            value = prediction.value[:, column : column + len(target.columns)]
            column += len(target.columns)
            known, predicted = np.isfinite(y[:, j]), np.isfinite(value).all(axis=1)
            if target.kind == "multiclass" or (target.kind == "binary" and not soft):
                likeliest = value.argmax(axis=1) if target.kind == "multiclass" else value[:, 0] > SURE
                taught = np.where(predicted & self.fill, likeliest.astype(float), np.nan)
                y[:, j] = np.where(known, y[:, j], taught)
                continue
            if target.kind == "binary":
                targets[j] = replace(target, kind="bounded", bounds=(0.0, 1.0))
            mixed = np.where(predicted, (1 - self.share) * y[:, j] + self.share * value[:, 0], y[:, j])
            y[:, j] = np.where(known, mixed, np.where(predicted & self.fill, value[:, 0], np.nan))
        return replace_targets(table, tuple(targets), y)


def replace_targets(table: Table, targets: tuple[Target, ...], y: np.ndarray) -> Table:
    """The rows with other targets and labels, each of weight 1."""
    return replace(table, targets=targets, y=y, weights=None)


def _with_targets(method: Method, targets: tuple[Target, ...]) -> Method:
    """A network that learnt probabilities as numbers, with the classes that they are of."""
    if isinstance(method, GraphMethod):
        method.fitted = replace(method.ready(), outputs=replace(method.ready().outputs, targets=targets))
    return method


def _mean(students: list[Method]) -> Method:
    """The ensemble of networks that are fitted."""
    first = students[0]
    ensemble = Ensemble(first.name, n=len(students))
    ensemble.fitted = students
    return ensemble
