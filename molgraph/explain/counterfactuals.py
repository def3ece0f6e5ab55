"""Find counterfactuals: similar molecules whose predicted or measured value is beyond a threshold."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import UnsupportedError
from molgraph.base.printable import count
from molgraph.chem.draw import draw_molecule
from molgraph.chem.exchange import canonical_text, exchanges
from molgraph.chem.fingerprints import morgan
from molgraph.chem.matched_pairs import cuts
from molgraph.chem.tanimoto import tanimoto
from molgraph.data.sources import builtin
from molgraph.explain.answers import target_columns, target_place
from molgraph.explain.explanation import HEIGHT, WIDTH, Explanation
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model

MINED, GROUPS, TRIED = 300, 80, 600  # molecules that groups are taken from, groups, and pairs of one molecule
PAIR, ANALOGUE = "matched pair", "measured analogue"
COLUMNS = ("molecule", "kind", "id", "smiles", "change", "similarity", "value_before", "value", "measured")


def counterfactuals(
    model: Model | str | os.PathLike[str],
    smiles: str | Sequence[str],
    n: int = 3,
    *,
    target: str = "",
    change: float | None = None,
) -> pd.DataFrame:
    """Find the molecules most like each one that a model predicts, or an assay measured, on the other side.

    A matched pair exchanges one group at one single bond (Hussain and Rea 2010, J. Chem. Inf. Model. 50:339) for one of
    the 80 that are most frequent in the model's training molecules; pairs outside the model's domain are left out, and
    each bond is used once. A measured analogue is a training molecule. Both are ordered by Tanimoto similarity (Morgan,
    radius 2). A counterfactual (Wellawatte et al. 2022, Chem. Sci. 13:3697) says which change would alter the
    prediction; whether the assay agrees, the analogues alone show.

    Args:
        model: of single molecules, or the path of its file.
        smiles: one molecule, or several.
        n: pairs and analogues of each molecule, at most.
        target: its name; the first if empty.
        change: of a number, the difference that counts as the other side, in its units; if None half of the molecule's
            interval. Of classes it is another class.

    Returns:
        ``molecule`` (its place), ``kind``, ``id`` (of an analogue, in the training table), ``smiles``, ``change``
        (``old>>new``, of pairs), ``similarity``, ``value_before`` and ``value`` (predictions of the molecule and of the
        counterfactual; the class of several),
        ``measured`` (NaN of pairs), and ``atoms`` (of the new group).

    Raises:
        UnsupportedError: numbers without an interval, where no change is named.
        UnknownNameError: the model has no such target.

    Example:
        >>> import molgraph
        >>> model = molgraph.train("builtin:chembl2321810", model="linear", split="random").model
        >>> text = "Fc1ccc(c(F)c1)c2ccccc2Oc3ccc(cc3C#N)S(=O)(=O)Nc4ncns4"
        >>> found = molgraph.counterfactuals(model, text, n=1, change=0.3)
        >>> found["kind"].tolist()
        ['matched pair', 'measured analogue']
    """
    model = model if isinstance(model, Model) else load_model(model)
    place, texts = target_place(model, target), [smiles] if isinstance(smiles, str) else [str(item) for item in smiles]
    before = model.predict(texts)
    side = _Side(model.targets[place], target_columns(model, target), before, change)
    rows = []
    for i, text in enumerate(texts):
        if np.isfinite(side.value(before)[i]):
            rows += [
                (i, *row) for row in (*_pairs(model, text, i, side, n), *_analogues(model, text, i, side, n, place))
            ]
    return pd.DataFrame(rows, columns=[*COLUMNS, "atoms"])


class _Side:
    """On which side of a molecule's prediction another value is."""

    def __init__(self, target: Target, columns: list[int], before: Prediction, change: float | None) -> None:
        self.target, self.columns, self.numbers = target, columns, target.kind in ("regression", "bounded")
        self.own, self.before = self.value(before), before
        self.change = np.full(len(self.own), 0.0 if change is None else change)
        if self.numbers and change is None:
            if before.interval is None:
                words = f"the model has no intervals of {target.name}, which would say how far the other side is"
                raise UnsupportedError(words, hint="name a difference in its units: change=1 (--change 1)")
            self.change = (before.interval[1] - before.interval[0])[:, columns[0]] / 2

    def value(self, prediction: Prediction) -> np.ndarray:
        """float64 [n]: the number, the probability of a binary class, or the number of the likeliest class."""
        values = prediction.value[:, self.columns]
        if len(self.columns) == 1:
            return np.asarray(values[:, 0])
        known = np.isfinite(values).all(axis=1)
        return np.where(known, np.nan_to_num(values).argmax(axis=1).astype(float), np.nan)

    def other(self, i: int, value: np.ndarray) -> np.ndarray:
        """bool [m]: which values are on the other side of molecule ``i``."""
        if self.numbers:
            mask = np.abs(value - self.own[i]) >= self.change[i]
        elif len(self.columns) == 1:
            mask = (value > 0.5) != (self.own[i] > 0.5)
        else:
            mask = value != self.own[i]
        return np.asarray(mask & np.isfinite(value))


def _pairs(model: Model, text: str, i: int, side: _Side, n: int) -> Iterator[tuple[object, ...]]:
    swaps = [*exchanges(text, groups_of(_known(model)))][:TRIED]
    if not swaps:
        return
    prediction = model.predict([swap.smiles for swap in swaps])
    value = side.value(prediction)
    fit = side.other(i, value)
    if "domain" in prediction.extra:
        fit &= prediction.extra["domain"] != "outside"
    similarity, used = _similarity(text, [swap.smiles for swap in swaps]), set[str]()
    for j in sorted(np.flatnonzero(fit).tolist(), key=lambda j: (-similarity[j], swaps[j].smiles)):
        if len(used) < n and swaps[j].cut.context not in used:
            used.add(swaps[j].cut.context)
            words = f"{swaps[j].cut.group}>>{swaps[j].group}"
            yield PAIR, "", swaps[j].smiles, words, similarity[j], side.own[i], value[j], np.nan, swaps[j].atoms


def _analogues(model: Model, text: str, i: int, side: _Side, n: int, place: int) -> Iterator[tuple[object, ...]]:
    known = None if model.confidence is None else model.confidence.references
    if known is None or place >= known.y.shape[1]:
        return
    rows = np.flatnonzero(side.other(i, known.y[:, place]) & (known.smiles != canonical_text(text)))
    bits = morgan([text]).x
    similarity = tanimoto(bits, np.unpackbits(known.bits[rows], axis=1))[0] if len(rows) else np.zeros(0)
    first = rows[np.argsort(-similarity, kind="stable")[:n]]
    if not len(first):
        return
    near, value = np.sort(-similarity)[:n] * -1, side.value(model.predict([str(known.smiles[row]) for row in first]))
    for row, alike, score in zip(first, near, value, strict=True):
        names = str(known.ids[row]), str(known.smiles[row])
        yield ANALOGUE, *names, "", float(alike), side.own[i], score, known.y[row, place], ()


@lru_cache(maxsize=4)
def groups_of(smiles: tuple[str, ...]) -> tuple[str, ...]:
    """The 80 groups that stand most often at single bonds of molecules, the most frequent first."""
    counts = Counter(cut.group for parts in cuts(smiles) for cut in parts)
    return tuple(group for group, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:GROUPS])


def _known(model: Model) -> tuple[str, ...]:
    """Training molecules of a model, 300 at most; of a file without any those of the NCI list."""
    known = None if model.confidence is None else model.confidence.references
    texts = builtin.nci().smiles if known is None else known.smiles
    return tuple(str(texts[row]) for row in np.unique(np.linspace(0, len(texts) - 1, MINED).astype(int)))


def _similarity(text: str, others: Sequence[str]) -> list[float]:
    return [float(value) for value in tanimoto(morgan([text]).x, morgan(others).x)[0]]


def with_counterfactuals(
    found: Explanation, model: Model, n: int, ids: Sequence[str] = (), *, change: float | None = None
) -> Explanation:
    """The explanation with counterfactuals of its molecules, each drawn with the new group marked."""
    fine = [i for i, reason in enumerate(found.reasons) if not reason]
    frame = counterfactuals(model, [found.smiles[i] for i in fine], n, change=change)
    frame["molecule"] = [fine[i] for i in frame["molecule"]]
    svgs, captions = [], []
    for row in frame.itertuples():
        name = ids[row.molecule] if len(ids) == len(found.smiles) else f"molecule {row.molecule + 1}"
        words = f"{row.change}, predicted {row.value_before:.3g} to {row.value:.3g}"
        if row.kind == ANALOGUE:
            words = f"measured {row.measured:.3g}, predicted {row.value:.3g} ({row.value_before:.3g} for {name})"
        svgs.append(draw_molecule(row.smiles, width=WIDTH, height=HEIGHT, atoms=row.atoms))
        kind = f"{row.kind} {row.id}".rstrip()
        captions.append(f"{kind} of {name}: {row.smiles}: {words}, similarity {row.similarity:.2f}")
    left = len(fine) - frame["molecule"].nunique()
    notes = (f"no counterfactual was found of {count(left, 'molecule')}",) * (left > 0)
    return replace(
        found,
        svgs=(*found.svgs, *svgs),
        captions=(*found.captions, *captions),
        notes=(*found.notes, *notes),
        counterfactuals=frame.drop(columns="atoms"),
    )
