"""List the pseudo-labels of a library that would raise a model's validation loss, by their influence on it."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.data.read import read_table
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.nn.closed_form import ridge_head
from molgraph.nn.influence import implicit_gradient, layer_gradient, layer_hessian, with_one
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import judged

WRONG, FOUND, CHANCE, DRAWS = 0.3, 0.8, 0.15, 10  # planted share, AUROC at least, distance from 1/2 at most, draws


class Rows(NamedTuple):
    """States and labels: float64 [n, d] and [n]."""

    x: np.ndarray
    y: np.ndarray


def last_layer(rows: Rows, penalty: float, *, classes: bool, weights: np.ndarray | None = None) -> np.ndarray:
    """float64 [d + 1]: weights and intercept of a ridge or logistic last layer.

    It minimises ``sum_i w_i l_i + penalty |W|^2``; l is ``(r - y)^2`` of numbers and ``-log p(y)`` of two classes.

    Args:
        rows: it learns from.
        penalty: on the squared weights.
        classes: whether labels are 0 and 1.
        weights: float [n], 1 if not given.
    """
    w = np.ones(len(rows.y)) if weights is None else weights
    if classes:
        made = LogisticRegression(C=1 / (2 * penalty), tol=1e-10, max_iter=10_000).fit(rows.x, rows.y, w)
        return np.append(made.coef_[0], made.intercept_)
    if weights is None:
        slope, intercept = ridge_head(torch.from_numpy(rows.x), torch.from_numpy(rows.y)[:, None], penalty)
        return np.append(slope.numpy()[0], intercept.numpy())
    x = np.column_stack([rows.x, np.ones(len(rows.x))])
    shrink = penalty * np.diag(np.append(np.ones(rows.x.shape[1]), 0.0))
    return np.asarray(np.linalg.solve(x.T @ (w[:, None] * x) + shrink, x.T @ (w * rows.y)))


def influences(labelled: Rows, pseudo: Rows, valid: Rows, penalty: float, *, classes: bool) -> np.ndarray:
    """float64 [m]: how the sum of validation losses changes with the weight of each pseudo-label; positive is harmful.

    Ren et al. 2020, "Not All Unlabeled Data are Equal": ``-g_valid^T H^-1 g_u`` at the last layer that was fitted to
    labels and pseudo-labels.

    Args:
        labelled, pseudo: what the layer learns from.
        valid: rows by whose loss it is judged.
        penalty: on the squared weights.
        classes: whether labels are 0 and 1.
    """
    both = Rows(np.concatenate([labelled.x, pseudo.x]), np.concatenate([labelled.y, pseudo.y]))
    layer = last_layer(both, penalty, classes=classes)

    def slopes_and_curvatures(rows: Rows) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = with_one(torch.from_numpy(rows.x))
        raw, y = (x @ torch.from_numpy(layer))[:, None], torch.from_numpy(rows.y)[:, None]
        p = raw.sigmoid()
        return (x, p - y, p * (1 - p)) if classes else (x, 2 * (raw - y), torch.full_like(raw, 2.0))

    x, _, curvatures = slopes_and_curvatures(both)
    shrink = 2 * penalty * torch.diag(with_one(torch.ones(1, both.x.shape[1]).double())[0])
    shrink[-1, -1] = 0.0
    x_valid, slopes_valid, _ = slopes_and_curvatures(valid)
    x_pseudo, slopes, _ = slopes_and_curvatures(pseudo)
    hessian = layer_hessian(x, curvatures) + shrink
    return implicit_gradient(layer_gradient(x_valid, slopes_valid), hessian, x_pseudo, slopes)[:, 0].numpy()


@register(
    "study",
    "pseudo-labels",
    summary="which guessed labels of a library would harm a model",
    paper="Ren et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "per-example-ssl-weights",
            left_out="weights that are updated in every step of training: molecules are listed with the derivative by "
            "their weight; consistency of augmented images, in whose place pseudo-labels stand",
            off="pseudo-labels(penalty=1000000)",
            beside=("confidence", "the student's own loss"),
            command="molgraph study pseudo-labels builtin:chembl2321810 -m 'gin(d_hidden=16, depth=2)' -o harmful.csv",
            modules=("molgraph.nn.influence", "molgraph.nn.closed_form"),
        ),
    ),
)
class PseudoLabelStudy(Study):
    """A model's own labels of a library's molecules, the most harmful ones first.

    The model learns from a part of the rows and labels the library. A ridge or logistic layer on its vectors learns
    labels and pseudo-labels, and each pseudo-label has its influence on the loss of rows that were held out, in closed
    form (``influences``). ``change`` is by how much the mean loss of those changes, to first order, where the
    pseudo-label is left out: below 0 it is harmful. Controls, on the table's own molecules: of labels that
    are a linear function of the vectors three in ten are turned around, and are found; marks at random are not.

    Args:
        library: molecules without labels: a file, or the name of a table.
        rows: of the library, at most.
        penalty: on the squared weights of the layer.
        epochs: of the model, at most.

    Raises:
        LabelError: a target of several classes. EmptyError: no molecule of the library can be read.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"epochs": 3})

    def __init__(
        self,
        *,
        library: str = "builtin:nci",
        rows: Annotated[int, Range(20, 100_000)] = 500,
        penalty: Positive = 1.0,
        epochs: Count = 20,
    ) -> None:
        self.library, self.rows, self.penalty, self.epochs = library, rows, penalty, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit, label, and take the influence of each label; then the controls."""
        found = judged(subject, epochs=self.epochs, seed=seed)
        if found.target.kind not in ("regression", "binary"):
            words = f"influence is of numbers and of two classes, and {found.target.name} is {found.target.kind}"
            raise LabelError(words, hint="name another target: -t COLUMN")
        classes = found.target.kind == "binary"
        library = read_table(self.library)
        picked = np.sort(generator(seed, "library").permutation(np.flatnonzero(library.ok))[: self.rows])
        texts = [str(library.smiles[i]) for i in picked]
        encoder = MoleculeEncoder(found.model)
        parts = [encoder.vectors([*map(str, part)], 1) for part in (found.train.smiles, found.test.smiles, texts)]
        guess = np.asarray(found.model.predict(texts).value, dtype=np.float64)[:, 0]
        fine = parts[2].ok & np.isfinite(guess)
        if not fine.any():
            raise EmptyError(f"no molecule of {self.library} has a pseudo-label", hint="name another library")
        mean, deviation = parts[0].x.mean(axis=0), parts[0].x.std(axis=0) + 1e-6
        train, test, bare = ((part.x.astype(np.float64) - mean) / deviation for part in parts)
        y = [np.asarray(part.y, dtype=np.float64)[:, 0] for part in (found.train, found.test)]
        centre, scale = (0.0, 1.0) if classes else (y[0].mean(), y[0].std() + 1e-12)
        labels = (guess > 0.5).astype(float) if classes else (guess - centre) / scale
        known = [Rows(x, (v - centre) / scale) for x, v in zip((train, test), y, strict=True)]
        influence = influences(known[0], Rows(bare[fine], labels[fine]), known[1], self.penalty, classes=classes)
        change = -influence / len(known[1].y) * scale**2
        frame = pd.DataFrame({"smiles": np.array(texts)[fine], "pseudo_label": guess[fine], "change": change})
        frame = frame.sort_values("change", kind="stable").reset_index(drop=True)
        planted, marked = self._controls(train, test, seed)
        harmful = int((change < 0).sum())
        return Findings(
            f"Pseudo-labels of {len(frame):,} molecules of {self.library}, judged by {len(test):,} rows",
            f"{harmful:,} of {len(frame):,} pseudo-labels raise the validation loss; the most harmful is that of "
            f"{frame['smiles'].iloc[0]}.",
            frame,
            Control("three in ten labels turned around", f"AUROC {FOUND} or more", f"{planted:.2f}", planted >= FOUND),
            Control("marks at random", f"AUROC within {CHANCE} of 0.5", f"{marked:.2f}", abs(marked - 0.5) < CHANCE),
            notes=found.notes,
        )

    def _controls(self, train: np.ndarray, test: np.ndarray, seed: int) -> tuple[float, float]:
        """How well influence finds labels that were turned around, and rows that were marked at random; means."""
        scores = []
        for draw in range(DRAWS):
            rng = generator(seed, "planted", draw)
            slope = rng.normal(size=train.shape[1])
            first, second = np.array_split(rng.permutation(len(train)), 2)
            known, valid = (Rows(x, x @ slope) for x in (train[first], test))
            right = train[second] @ slope
            wrong, marked = (rng.permutation(len(second)) < max(round(WRONG * len(second)), 1) for _ in range(2))
            guesses = (Rows(train[second], np.where(turned, -right, right)) for turned in (wrong, wrong & False))
            harm, none = (influences(known, each, valid, self.penalty, classes=False) for each in guesses)
            scores.append((roc_auc_score(wrong, harm), roc_auc_score(marked, none)))
        planted, chance = np.mean(scores, axis=0)
        return float(planted), float(chance)
