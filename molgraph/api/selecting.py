"""Select the molecules of a pool that an ensemble would learn most from, as the next plate to measure."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from molgraph.api.prediction import load
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, EmptyError, MissingOptionError, UnsupportedError, did_you_mean
from molgraph.base.seeds import generator
from molgraph.chem.max_min import pick_max_min
from molgraph.data.standardise import mark_no_molecules, standardise
from molgraph.data.table import Table
from molgraph.train.confidence.references import fingerprints
from molgraph.train.model import Model
from molgraph.train.stream import CHUNK_ROWS
from molgraph.train.training_molecules import molecule_hashes
from molgraph.trust.disagreement import disagreement, fitting_score
from molgraph.trust.ensemble import Ensemble

LEARNT, REPEATED = "a molecule that the model learnt from", "a molecule that stands in the pool before"


def select(
    model: Model | str | os.PathLike[str],
    pool: Any,
    *,
    batch: int = 96,
    score: str | None = None,
    among: float = 2.0,
    target: str | None = None,
    seed: int = 0,
    **columns: Any,
) -> pd.DataFrame:
    """Select the next molecules to measure: those on which the members of an ensemble disagree most.

    Members that learnt the same rows agree where these rows decide, also where each is unsure because the measurement
    is noisy; they disagree where rows are missing (Shyam, Jaskowski & Gomez 2019, "Model-Based Active Exploration",
    ICML; see ``molgraph.trust.disagreement``). The paper plans a way to such states in a simulator; here every molecule
    of the pool can be measured next, and the batch is spread: of the ``among * batch`` rows with the highest scores the
    first is taken, then again and again the one whose most similar taken row is least similar to it (Tanimoto).

    Args:
        model: an ensemble of models of molecules, or the path of its file.
        pool: molecules in any form that ``Model.predict`` takes.
        batch: molecules to select; all that are left where there are fewer.
        score: ``jsd`` of classes, ``jrd`` of numbers (the defaults), ``variance``, or ``random`` for a plate without
            the model's word.
        among: times ``batch`` rows of the highest scores among which the batch is spread; 1 for the highest alone.
        target: which of the model's targets; it can be left out where there is one.
        seed: of ``random``, and of the order of equal scores.
        columns: which columns are which, as for ``Model.predict``.

    Returns:
        A row for each selected row, in order: rank, id, input, score, the mean of the members, their spread, reason.
        ``attrs["left_out"]`` counts the rows that could not be selected by their reasons.

    Raises:
        UsageError: the model is no ensemble, no such target or score, or one that does not fit. EmptyError: no row of
            the pool can be selected.

    Example:
        >>> import molgraph
        >>> small = {"params": {"n_estimators": 5, "threads": 1}, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", model="random_forest", ensemble=3, **small).model
        >>> plate = molgraph.select(model, ["CCO", "c1ccccc1O", "CCN", "C("], batch=2)
        >>> len(plate), sum(plate.attrs["left_out"].values())
        (2, 1)
    """
    if batch < 1:
        raise BadValueError(f"a batch of {batch} molecules cannot be", hint="1 or more")
    if not 1 <= among < np.inf:
        raise BadValueError(f"among is {among:g}", hint="1 for the highest scores alone, or more")
    loaded = model if isinstance(model, Model) else load(model)
    ensemble, chosen = _ensemble(loaded), _target(loaded, target)
    score = fitting_score(chosen, score)
    table = loaded.read(pool, **columns)
    pieces = [table.take(np.arange(i, min(i + CHUNK_ROWS, len(table)))) for i in range(0, len(table), CHUNK_ROWS)]
    scored = [_scored(loaded, ensemble, piece, chosen, score) for piece in pieces]
    frame = pd.concat([part for part, _ in scored], ignore_index=True) if scored else pd.DataFrame({"reason": []})
    hashes = np.concatenate([np.zeros(0, np.uint64), *(part for _, part in scored)])
    reasons = _reasons(frame["reason"].to_numpy(dtype=object), hashes, loaded.trained_on)
    free = np.flatnonzero(reasons == "")
    left_out = dict(Counter(reasons[reasons != ""].tolist()).most_common())
    if not len(free):
        words = next((f"{n:,} x {reason}" for reason, n in left_out.items()), "it has no row")
        raise EmptyError("no molecule of the pool can be selected", hint=words)
    order = free[np.argsort(generator(seed, "select").random(len(free)))]  # equal scores have no order of their own
    order = order[np.argsort(-frame["score"].to_numpy()[order], kind="stable")]
    spread = among > 1 and score != "random"
    wide = order[: round(among * batch) if spread else batch]
    places, similarity = np.arange(len(wide)), np.full(len(wide), np.nan)
    if spread:
        places, similarity = pick_max_min(fingerprints(standardise(table.take(wide), loaded.standardiser))[0], batch)
    plate = frame.iloc[wide[places]].reset_index(drop=True)
    plate.insert(0, "rank", np.arange(1, len(plate) + 1))
    plate["reason"] = [
        _words(score, place, len(free), alike) for place, alike in zip(places.tolist(), similarity, strict=True)
    ]
    plate.attrs["left_out"] = left_out
    return plate


def _ensemble(model: Model) -> Ensemble:
    """The ensemble that a model is, or that a wrapper of it adjusts."""
    model.check_predicts()
    for part in model.method.with_members:
        if isinstance(part, Ensemble) and part.n > 1:
            if model.columns_read != [("molecule", model.columns_read[0][1])]:
                raise UnsupportedError("the model reads more than molecules", hint="select with a model of molecules")
            return part
    hint = "train one: molgraph train DATA -t TARGET -m dmpnn --ensemble 5 -o ensemble.mgm"
    raise UnsupportedError(f"a {model.kind} has no members that could disagree; give an ensemble", hint=hint)


def _target(model: Model, name: str | None) -> Target:
    """The target that is to be learnt."""
    targets = {target.name: target for target in model.targets if target.level == "row"}
    if not targets:
        raise UnsupportedError("the model predicts nothing of whole rows", hint="select with another model")
    if name is None:
        if len(targets) > 1:
            raise MissingOptionError(f"the model has {len(targets)} targets", hint=f"name one: {', '.join(targets)}")
        return next(iter(targets.values()))
    if name not in targets:
        raise BadValueError(f"the model has no target {name!r}", hint=did_you_mean([*targets]))
    return targets[name]


def _scored(
    model: Model, ensemble: Ensemble, table: Table, target: Target, score: str
) -> tuple[pd.DataFrame, np.ndarray]:
    """id, input, score, value, spread and reason of some rows of the pool, and the hashes of their molecules."""
    clean = mark_no_molecules(standardise(table, model.standardiser), model.standardiser)
    parts = ensemble.predict_members(clean)
    mean = ensemble.combine(parts)
    if model.confidence is not None:
        mean = model.confidence.extend(mean, clean)
    assert mean.spread is not None
    scores, columns = disagreement(parts, target, score), dict[str, np.ndarray]()
    for name in target.columns:
        place = mean.columns.index(name)
        columns |= {name: mean.value[:, place], f"{name}_spread": mean.spread[:, place]}
    reason = np.where(mean.ok & np.isnan(scores) & (mean.reason == ""), "a member has no value", mean.reason)
    named = {"id": table.ids, "input": table.smiles if table.inputs is None else table.inputs, "score": scores}
    return pd.DataFrame(named | {**columns, "reason": reason}), molecule_hashes(clean)


def _reasons(reasons: np.ndarray, hashes: np.ndarray, learnt: np.ndarray | None) -> np.ndarray:
    """object [n]: why a row cannot be selected; empty where it can."""
    known = np.isin(hashes, [] if learnt is None else learnt) & (hashes != 0)
    first = np.zeros(len(hashes), dtype=bool)
    able = np.flatnonzero(reasons == "")
    first[able[np.unique(hashes[able], return_index=True)[1]]] = True
    again = (reasons == "") & ~first & (hashes != 0)
    return np.where(reasons != "", reasons, np.where(known, LEARNT, np.where(again, REPEATED, "")))


def _words(score: str, place: int, n: int, similarity: float) -> str:
    """Why a row is on the plate."""
    if score == "random":
        return "drawn at random"
    near = "" if np.isnan(similarity) else f"; similarity {similarity:.2f} to the plate before it"
    return f"disagreement {place + 1} of {n:,}{near}"
