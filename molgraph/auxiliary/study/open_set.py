"""Hold classes out, and measure by which score of its logits a classifier knows their molecules as unknown."""

from __future__ import annotations

import time
from functools import partial
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from molgraph.base.contracts import Method
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.chem.sizes import heavy_atoms
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.table import Table
from molgraph.evaluate.measures import roc_auc
from molgraph.study.class_rows import Classes, classes_of, open_set_rate
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import fresh
from molgraph.train.method import GraphMethod
from molgraph.trust.domains.energy import Energy
from molgraph.trust.domains.max_logit import MaxLogit
from molgraph.trust.domains.msp import MaxProbability
from molgraph.trust.logits import Logits, predict_logits

SCORES = {"max_logit": MaxLogit(), "msp": MaxProbability(), "energy": Energy()}
TEST = 0.3  # share of the known classes' rows that are tested
DRAWN, SEEN, NONE = 1500, 0.9, 0.05  # rows of controls; AUC that counts as an effect; distance from 1/2 that is none


def measured(known: Logits, unknown: Logits) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The scores of known and unknown rows by name; no energy where logits are log-probabilities."""
    scores = {name: (score.score(known), score.score(unknown)) for name, score in SCORES.items()}
    if np.ptp(np.concatenate(scores["energy"])) < 1e-9:
        del scores["energy"]
    return scores


def area(known: np.ndarray, unknown: np.ndarray) -> float:
    """AUC of unknown rows against known ones."""
    return float(roc_auc(np.repeat([0.0, 1.0], [len(known), len(unknown)]), np.concatenate([known, unknown])))


def control(seed: int) -> tuple[float, float]:
    """AUC of the largest logit where unknown molecules have no class of theirs among ten, and where they have one."""
    rng = generator(seed, "control")
    noise = rng.normal(size=(3, DRAWN, 10))
    noise[:2] += 5 * np.eye(10)[rng.integers(0, 10, (2, DRAWN))]
    known, same, none = (MaxLogit().score([logits]) for logits in noise)
    return area(known, none), area(known, same)


@register(
    "study",
    "open-set",
    summary="holds classes out, and says which score of a classifier tells their molecules from known ones",
    paper="Vaze et al. 2022, ICLR, arXiv:2110.06207",
    systems=(
        SystemCard(
            "mls",
            left_out="training recipes that raise the accuracy, and the benchmark of pictures",
            beside=("the largest probability", "energy", "Tanimoto distance", "heavy atoms"),
            command="molgraph study open-set dataset:tox21 -m 'dmpnn(d_hidden=16)' -o open.csv",
            modules=("molgraph.trust.domains.max_logit", "molgraph.trust.logits"),
        ),
    ),
)
class OpenSet(Study):
    """A classifier that learnt half of the classes meets molecules of the other half: which score tells them apart?

    Vaze et al. 2022: the largest logit does so the better, the better the classifier is at the classes it knows. Rows
    are the largest logit, the largest probability and the energy (``-m 'domain(MODEL, by=max_logit)'``), with the
    Tanimoto distance to the training molecules and the number of heavy atoms beside them; ``oscr`` counts known
    molecules that are given their class too. Of a network the first round is done with fewer epochs as well, and the
    rank correlation of accuracy and AUC over them is told. Classes are those of the first target with several, or, of
    three targets or more of two classes, the one in which a molecule is active. Controls: drawn logits without a class
    are told from those with one, and those with one are not.

    Args:
        rounds: draws of the classes that are held out, as far as there is time.
        share: of the classes that are held out.
        rows: rows that are used, at most, drawn at random.
        epochs: of a network, at most.
        checkpoints: numbers of epochs in the first round.

    Raises:
        LabelError: fewer than three classes of three molecules.
    """

    needs = ("data", "model")
    reads = "classes"
    small = MappingProxyType({"rounds": 1, "epochs": 2, "checkpoints": 1})

    def __init__(
        self,
        *,
        rounds: Count = 5,
        share: Annotated[float, Range(0.01, 0.9)] = 0.5,
        rows: Annotated[int, Range(40, 1_000_000)] = 2000,
        epochs: Count = 30,
        checkpoints: Count = 8,
    ) -> None:
        self.rounds, self.share, self.rows, self.epochs, self.checkpoints = rounds, share, rows, epochs, checkpoints

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Hold out, fit and score while there is time."""
        started, notes = time.process_time(), list[str]()
        groups, drawn = classes_of(subject.table(), self.rows, seed)
        notes += drawn
        jobs = [(number, self.epochs) for number in range(self.rounds)]
        network = isinstance(fresh(subject, 0), GraphMethod)
        steps = np.unique(np.geomspace(1, self.epochs, self.checkpoints).round().astype(int))[:-1]
        jobs[1:1] = [(0, int(epochs)) for epochs in steps] if network else []
        records, longest, done = list[dict[str, object]](), 0.0, 0
        for number, epochs in jobs:
            before = time.process_time()
            if done and before + longest * epochs / self.epochs > started + 0.9 * seconds:
                continue
            records += [{"round": number + 1, "epochs": epochs, **row} for row in
                        self.one(subject, groups, epochs, derive(seed, "round", number))]  # fmt: skip
            longest, done = max(longest, time.process_time() - before), done + 1
        if done < len(jobs):
            notes.append(f"{done} of {len(jobs)} fits, for want of time")
        frame = pd.DataFrame(records)
        seen, same = control(seed)
        about = subject.data if isinstance(subject.data, str) else "a table"
        model = subject.model if isinstance(subject.model, str) else "a model"
        title = f"Unknown classes of {model} on {about}: {len(groups.code):,} molecules of {len(groups.names)} classes"
        return Findings(
            title, self.tell(frame), frame,
            Control("unknown logits without a class", f"AUC above {SEEN}", f"{seen:.3f}", seen > SEEN),
            Control("unknown logits with a class", f"AUC 0.5 within {NONE}", f"{same:.3f}", abs(same - 0.5) < NONE),
            notes=(*notes, f"classes: {groups.about}"),
        )  # fmt: skip

    def one(self, subject: Subject, found: Classes, epochs: int, seed: int) -> list[dict[str, object]]:
        """The figures of one fit, a row for each score."""
        rng, n = generator(seed, "classes"), len(found.names)
        order = rng.permutation(n)
        held = min(max(round(self.share * n), 1), n - 2)
        classes = np.sort(order[held:])
        mixed = rng.permutation(np.flatnonzero(np.isin(found.code, classes)))
        firsts = [mixed[found.code[mixed] == one][0] for one in classes]  # each class is learned
        rest = mixed[~np.isin(mixed, firsts)]
        test = np.sort(rest[: max(round(TEST * len(mixed)), 1)])
        train, unknown = np.setdiff1d(mixed, test), np.flatnonzero(~np.isin(found.code, classes))
        method = fresh(subject, derive(seed, "fit"), epochs).fit(found.known(train, classes))
        known, right = logits_of(method, found.known(test, classes))
        other, _ = logits_of(method, found.table.take(unknown))
        scores = measured(known, other) | beside(found.table, train, test, unknown)
        accuracy = float(right.mean())
        return [
            {
                "score": name,
                "AUC": area(*pair),
                "oscr": open_set_rate(pair[0], right, pair[1]) if len(pair[0]) == len(right) else np.nan,
                "accuracy": accuracy,
                "known": len(pair[0]),
                "unknown": len(pair[1]),
            }
            for name, pair in scores.items()
        ]

    def tell(self, frame: pd.DataFrame) -> str:
        """The mean AUC of each score at all epochs, and whether it grows with the accuracy."""
        whole = frame[frame["epochs"] == self.epochs]
        mean = whole.groupby("score", sort=False)["AUC"].mean()
        words = ", ".join(f"{name} {value:.2f}" for name, value in mean.items())
        text = f"At an accuracy of {whole['accuracy'].mean():.2f} the AUC of unknown classes is: {words}."
        first = frame[(frame["round"] == 1) & (frame["score"] == "max_logit")]
        if len(first) < 3 or first["accuracy"].nunique() < 2 or first["AUC"].nunique() < 2:
            return text
        rank = spearmanr(first["accuracy"], first["AUC"]).statistic
        return f"{text} Over {len(first)} numbers of epochs its rank correlation with the accuracy is {rank:+.2f}."


def logits_of(method: Method, table: Table) -> tuple[Logits, np.ndarray]:
    """The logits of the rows that have a prediction, and whether each has its class; the latter needs labels."""
    _, logits, rows = predict_logits(method, partial(method.predict, table))
    truth = np.full(len(table), -1) if table.y is None else table.y[:, 0]
    return logits, logits[0].argmax(axis=1) == truth[rows]


def beside(
    table: Table, train: np.ndarray, test: np.ndarray, unknown: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The Tanimoto distance to the training molecules, and the number of heavy atoms; nothing without molecules."""
    if not any(column.kind == "molecule" for column in table.entities):
        return {}
    prints = morgan([str(text) for text in table.smiles]).x
    near = (1 - find_nearest(prints[rows], prints[train]).similarity for rows in (test, unknown))
    size = (heavy_atoms([str(text) for text in table.smiles[rows]]) for rows in (test, unknown))
    return {"nearest": tuple(near), "heavy atoms": tuple(size)}  # type: ignore[dict-item]
