"""Compare linear probes of pretrained and untrained encoders, by the size of the library and the number of labels."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import r2_score, roc_auc_score

from molgraph.auxiliary.study.probes import activations
from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.read import read_table
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.nn.encoder import Encoder
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import PRESET, fresh, is_name
from molgraph.train.inputs import input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.runtime import torch_settings

FEWEST, TEST, FOLDS = 40, 0.3, 3  # rows; share of them that is tested; of the choice of a probe's strength
STRENGTHS = np.logspace(-2, 5, 15)
UNTRAINED, OTHER, TASK, ORACLE = "untrained", "untrained again", "own molecules", "all labels"


def probe_score(x: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray, target: Target) -> float:
    """R2 of a ridge regression, or the ROC AUC of a logistic one, on standardised columns of frozen vectors.

    Args:
        x, y: float [n, d], [n], rows to learn from.
        test, y_test: float [m, d], [m], rows to predict.
        target: of numbers or of two classes.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(90, 3))
        >>> round(probe_score(x[:60], x[:60, 0], x[60:], x[60:, 0], Target("y")), 2)
        1.0
    """
    spread = x.std(axis=0)
    mean, spread = x.mean(axis=0), np.where(spread > 1e-9, spread, np.inf)
    x, test = ((part - mean) / spread for part in (x, test))
    test = test.clip(-10, 10)
    if target.kind == "binary":
        if min(np.bincount(y.astype(int), minlength=2)) < FOLDS:
            return 0.5
        probe = LogisticRegressionCV(Cs=1 / STRENGTHS[::3], cv=FOLDS, max_iter=300).fit(x, y)
        return float(roc_auc_score(y_test, probe.decision_function(test)))
    return float(r2_score(y_test, RidgeCV(STRENGTHS).fit(x, y).predict(test)))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The 95% interval of a mean by Student's t.

    Example:
        >>> [round(x, 2) for x in interval([1.0, 2.0, 3.0])]
        [-0.48, 4.48]
    """
    x = np.asarray(values, dtype=float)
    if len(x) < 2:
        return -math.inf, math.inf
    half = float(student.ppf(0.975, len(x) - 1)) * x.std(ddof=1) / math.sqrt(len(x))
    return float(x.mean() - half), float(x.mean() + half)


@register(
    "study",
    "pretraining",
    summary="what pretraining brings, by the size of the library, its molecules and the number of labels",
    paper="Cole et al. 2022, CVPR; Asano et al. 2020, ICLR",
    systems=(
        SystemCard(
            "ssl-limits-study",
            left_out="fine-tuning; corrupted libraries, and labels of finer classes",
            off="'pretraining(pretrain=false)'",
            beside=("untrained encoders", "an encoder that learnt all labels"),
            command="molgraph study pretraining dataset:esol -m 'gin(depth=3, d_hidden=32)' -o pretraining.csv",
            modules=("molgraph.auxiliary.study.probes",),
        ),
        SystemCard(
            "single-image-self-supervision-study",
            left_out="BiGAN, RotNet and DeepCluster; molecules are augmented by the masks of the objective",
            off="pretraining",
            beside=("untrained encoders", "an encoder that learnt all labels"),
            command="molgraph study 'pretraining(layers=true, corpora=(1, 100))' dataset:esol "
            "-m 'gin(depth=3, d_hidden=32)' -o layers.csv",
            modules=("molgraph.auxiliary.study.probes",),
        ),
    ),
    command="molgraph study pretraining dataset:esol -m 'gin(depth=3, d_hidden=32)' -o pretraining.csv",
)
class Pretraining(Study):
    """A row for each encoder and number of labels: the score of linear probes, and the gap to untrained encoders.

    Cole et al. 2022, "When Does Contrastive Visual Representation Learning Work?": the gain of pretraining saturates
    with the library, is largest with few labels, and is larger for molecules like those of the task. Encoders learn
    ``objective`` on the first molecules of a library, or on the task's own ones without their labels, for the same
    number of steps; an encoder that learnt all labels stands beside. With ``layers``, Asano et al. 2020, "A critical
    analysis of self-supervision, or what we can learn from a single image": the probes of each layer, by which one
    sees whether more molecules than one, masked many times, teach the early layers anything.

    Controls: an untrained encoder of another seed has a gap whose interval holds 0, and vectors with the target in
    them have a gap.

    Args:
        library: molecules to pretrain on; empty for RDKit's list of NCI.
        corpora: numbers of molecules of it; smaller ones are repeated.
        labels: numbers of labels; all of the rows for training are added.
        objective: of pretraining, as ``molgraph pretrain --objective`` takes it.
        epochs: of the largest corpus; as many steps for each.
        layers: whether each layer is probed, else the readout alone.
        repeats: draws of weights and rows, as far as there is time.
        rows: that are used, at most, drawn at random.
        pretrain: ``false`` leaves every encoder untrained.

    Raises:
        LabelError: no target of rows, or fewer than 40 labelled molecules.
        UnsupportedError: a model without an encoder, or a target of several classes.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"corpora": (8, 30), "labels": (20,), "epochs": 1, "repeats": 3, "rows": 80})

    def __init__(
        self,
        *,
        library: str = "",
        corpora: Sequence[int] = (100, 1000),
        labels: Sequence[int] = (50, 200),
        objective: str = "masked-atoms",
        epochs: Count = 10,
        layers: bool = False,
        repeats: Annotated[int, Range(2, 100)] = 5,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 1000,
        pretrain: bool = True,
    ) -> None:
        for name, values in (("corpora", corpora), ("labels", labels)):
            if not values or min(values) < 1 or any(int(value) != value for value in values):
                raise BadValueError(
                    f"{name} is {values}", hint=f"give numbers of 1 or more, such as {name}=(100, 1000)"
                )
        self.library, self.corpora, self.labels, self.objective = library, sorted(corpora), sorted(labels), objective
        self.epochs, self.layers, self.repeats, self.rows, self.pretrain = epochs, layers, repeats, rows, pretrain

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Pretrain, probe and compare, repeat by repeat."""
        began, longest, rows = time.process_time(), 0.0, list[dict[str, Any]]()
        if not is_name(subject.model) or not isinstance(fresh(subject, 0), GraphMethod):
            words = f"{subject.model} is no graph network that could be trained anew"
            raise UnsupportedError(words, hint="name one, such as -m gin")
        table, target, notes = first_target(subject.table(), self.rows, FEWEST, seed)
        if target.kind == "multiclass":
            raise UnsupportedError(f"{target.name} has several classes", hint="name a target of two, or of numbers")
        library = self._library()
        for repeat in range(self.repeats):
            started = time.process_time()
            if repeat > 1 and started + longest > began + 0.9 * seconds:
                notes.append(f"{repeat} of {self.repeats} repeats, for want of time")
                break
            vectors = self.vectors(subject, table, library, derive(seed, "repeat", repeat))
            rows += [
                {"repeat": repeat, **row} for row in self.scores(vectors, table, target, derive(seed, "rows", repeat))
            ]
            longest = max(longest, time.process_time() - started)
        frame = with_gaps(pd.DataFrame(rows))
        word = "ROC AUC" if target.kind == "binary" else "R2"
        top = frame[(frame["layer"] == "readout") & (frame["labels"] == frame["labels"].min())].set_index("encoder")
        best = top.drop(index=[UNTRAINED, OTHER, ORACLE, "planted"])["gap"].idxmax()
        row, controls = top.loc[best], top.loc[[OTHER, "planted"]]
        words = (
            f"With {row['labels']:,} labels probes of encoders that were pretrained on {best} have {word} "
            f"{row['score']:.3f}, of untrained ones {top['score'][UNTRAINED]:.3f}: a gap of {row['gap']:+.3f} "
            f"({row['low']:+.3f} to {row['high']:+.3f})."
        )
        low, high, planted = controls["low"].iloc[0], controls["high"].iloc[0], controls["gap"].iloc[1]
        shown = frame[~frame["encoder"].isin(["planted"])].rename(columns={"score": word})
        return Findings(
            f"Pretraining of {subject.model} for {target.name}: {len(table):,} rows",
            words, shown.reset_index(drop=True),
            Control("the target among the vectors", "a gap above 0", f"{planted:+.3f}", planted > 0),
            Control("untrained encoders of another seed", "a gap whose interval holds 0", f"{low:+.3f} to {high:+.3f}",
                    low <= 0 <= high), notes=tuple(notes),
        )  # fmt: skip

    def _library(self) -> Table:
        table = read_table(self.library) if self.library else builtin.nci()
        standard = standardise_smiles(table.smiles[: 2 * max(self.corpora)], PRESET)
        texts = [str(text) for text, bad in zip(standard.values, standard.reasons, strict=True) if not bad]
        if not texts:
            raise EmptyError(f"no molecule of {self.library} can be read", hint="name a library of molecules")
        return make_table(texts)

    def vectors(self, subject: Subject, table: Table, library: Table, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """By encoder and layer: float64 [n, d], the vectors of the rows."""
        unlabelled, steps = make_table([str(text) for text in table.smiles]), self.epochs * max(self.corpora)
        parts = {
            f"{min(n, len(library)):,} molecules": library.take(np.arange(min(n, len(library)))) for n in self.corpora
        }
        oracle = self._fitted(subject, table, self.epochs, seed)
        network, inputs = oracle.ready().network, oracle.graph_inputs()

        def untrained(*words: str | int) -> dict[str, np.ndarray]:
            with torch_settings(1, derive(seed, "untrained", *words)):
                encoder: Encoder = network.makers[0]().eval()
                encoder.measure(input_graphs(table, inputs)[0].store)
                return activations(encoder, inputs, table)

        vectors = {UNTRAINED: untrained(), OTHER: untrained("again")}
        for i, (name, part) in enumerate({**parts, TASK: unlabelled}.items()):
            if not self.pretrain:
                vectors[name] = untrained(i)
                continue
            every = part.take(np.arange(steps) % len(part))
            method = self._fitted(subject, every, 1, seed, objective=self.objective)
            vectors[name] = activations(method.ready().network.encoder, method.graph_inputs(), table)
        return vectors | {ORACLE: activations(network.encoder, inputs, table)}

    def _fitted(self, subject: Subject, table: Table, epochs: int, seed: int, **how: str) -> GraphMethod:
        method = fresh(subject, derive(seed, "fit"))
        assert isinstance(method, GraphMethod)
        method.set_params(epochs=epochs, min_steps=0, patience=None, **how)
        return method.fit(table)

    def scores(
        self, vectors: dict[str, dict[str, np.ndarray]], table: Table, target: Target, seed: int
    ) -> list[dict[str, Any]]:
        """A row for each encoder, layer and number of labels."""
        order, y = generator(seed, "probe").permutation(len(table)), np.asarray(table.y)[:, 0]
        cut = round(TEST * len(order))
        test, train = order[:cut], order[cut:]
        planted = {"readout": np.repeat(y[:, None], 2, axis=1)}
        rows = []
        for name, layers in (*vectors.items(), ("planted", planted)):
            for layer, x in layers.items():
                if layer != "readout" and not self.layers:
                    continue
                for n in sorted({*(n for n in self.labels if n < len(train)), len(train)}):
                    some = train[:n]
                    value = probe_score(x[some], y[some], x[test], y[test], target)
                    rows.append({"encoder": name, "layer": layer, "labels": n, "score": value})
        return rows


def with_gaps(every: pd.DataFrame) -> pd.DataFrame:
    """Means over repeats, and the gap to the untrained encoder of the same repeat, layer and labels, with intervals."""
    keys = ["repeat", "layer", "labels"]
    base = every[every["encoder"] == UNTRAINED].set_index(keys)["score"]
    every = every.assign(gap=every["score"] - base.reindex(pd.MultiIndex.from_frame(every[keys])).to_numpy())
    rows = []
    for (name, layer, n), part in every.groupby(["encoder", "layer", "labels"], sort=False):
        low, high = interval(part["gap"].tolist())
        mean = {"score": part["score"].mean(), "gap": part["gap"].mean(), "low": low, "high": high}
        rows.append({"encoder": name, "layer": layer, "labels": n, **mean})
    return pd.DataFrame(rows)
