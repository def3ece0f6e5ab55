"""Compare one model of all rows, one of each client alone, and one that the clients train by federated averaging."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, LabelError, MolgraphError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.splits import kfold, split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import OK, Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric
from molgraph.study.labelled_rows import labelled_rows
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import fresh, is_name
from molgraph.train.federated import PLAIN, Arm, begin
from molgraph.train.inputs import input_graphs, row_status
from molgraph.train.method import GraphMethod
from molgraph.train.optimizers import check_optimizer

FEWEST, TEST, SAME = 40, 0.2, 1e-5  # rows; share that tests; difference of weights that counts as none, of their length
FED, SINGLE, POOLED = "federated", "federated, 1 epoch", "pooled"


def with_graphs(table: Table, method: GraphMethod) -> Table:
    """The rows that the method's encoder can read."""
    inputs = begin(method, table).method.graph_inputs()
    return table.take(np.flatnonzero(row_status(table, inputs, input_graphs(table, inputs))[0] == OK))


def divide(table: Table, clients: str, seed: int) -> list[np.ndarray]:
    """The rows of each client, by a split that has folds.

    Args:
        table: rows.
        clients: the split and the number of clients, such as ``scaffold:5`` or ``random:3``.
        seed: of the split.

    Raises:
        UsageError: not of this form, or a split without folds.
        DataError: fewer groups than clients.
    """
    name, _, number = clients.partition(":")
    if not name or not number.isdigit() or int(number) < 2:
        hint = "name a split and a number of two or more, such as clients=scaffold:5"
        raise BadValueError(f"clients is {clients!r}", hint=hint)
    return [np.sort(fold.test) for fold in kfold(table, int(number), name, seed, with_valid=False)]


@register(
    "study",
    FED,
    summary="what partners gain from averaging weights, beside all rows in one place and each alone",
    paper="McMahan et al. 2017, AISTATS",
    systems=(
        SystemCard(
            "fedavg",
            left_out="the network between the clients, clients that drop out, secure aggregation and privacy",
            off="federated(epochs=1)",
            beside=("pooled", "alone", "one epoch a round"),
            command="molgraph study federated dataset:chembl2321810 -m 'dmpnn(d_hidden=32)' -o federated.csv",
            modules=("molgraph.train.federated",),
        ),
    ),
)
class FederatedStudy(Study):
    """The score of new scaffolds by a model of all rows, of each client alone, and of all clients by FedAvg.

    McMahan et al. 2017: a simulation in one process (``train.federated``), without encryption or any promise of
    privacy. All models begin with the same weights and take as many rounds of gradient descent; of the model's
    settings the encoder and the head are used, those of its own training are not. A client alone knows the scale of its
    own labels; the others share one, which needs the sums of labels and their squares. Bytes are those of the weights
    as safetensors, to each client and back. The score to be reached is ``reach`` of the way from the mean of the
    training labels to the pooled model. Controls, with dropout and statistics of batches at rest: a round of one step
    of all rows of each client is a pooled step; rounds of ``epochs`` in batches are not.

    Args:
        clients: a split that has folds and the number of clients, such as ``scaffold:5`` or ``random:3``.
        rounds: of averaging, as far as there is time.
        epochs: E, passes over its rows that a client makes in a round.
        batch: B, rows of a step; 0: all of the client.
        share: C, of the clients that take part in a round.
        optimizer: a registered optimiser of the clients, such as ``adam`` (with a rate of 0.001).
        rate: its learning rate.
        reach: of the way to the pooled model, the score to which rounds and bytes are counted.
        rows: rows that are used, at most, drawn at random.

    Raises:
        LabelError: no target of rows, or fewer than 40 labelled molecules.
        UnsupportedError: a model that is no network, or a file; features beside the molecule.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"rounds": 2, "epochs": 2, "clients": "scaffold:3", "rows": 200, "rate": 1e-5})

    def __init__(
        self,
        *,
        clients: str = "scaffold:5",
        rounds: Count = 20,
        epochs: Count = 5,
        batch: Annotated[int, Range(0, 1_000_000)] = 32,
        share: Annotated[float, Range(0.0, 1.0, above=True)] = 1.0,
        optimizer: str = PLAIN,
        rate: Annotated[float, Range(0.0, 100.0, above=True)] = 0.01,
        reach: Annotated[float, Range(0.0, 1.0)] = 0.8,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 2000,
    ) -> None:
        self.clients, self.rounds, self.epochs, self.batch = clients, rounds, epochs, batch
        self.share, self.optimizer, self.rate, self.reach, self.rows = share, optimizer, rate, reach, rows
        check_optimizer(optimizer)

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train all models round by round, and score them after each."""
        end, method = time.process_time() + 0.9 * seconds, _network(subject, seed)
        table, target, notes = self._table(subject, seed)
        train, test, part_notes = _parts(table, seed)
        train = with_graphs(train, method)
        clients, metric = divide(train, self.clients, seed), default_metric(target.kind)
        how: dict[str, Any] = {"batch_size": self.batch, "optimizer": self.optimizer, "rate": self.rate}
        how["seed"] = derive(seed, "rounds")
        arms = {FED: begin(method, train, clients, epochs=self.epochs, share=self.share, **how)}
        arms[SINGLE] = begin(method, train, clients, epochs=1, share=self.share, **how)
        arms[POOLED] = begin(method, train, epochs=self.epochs, **how)
        notes = [*notes, *part_notes]
        for k, rows in enumerate(clients, 1):
            try:
                arms[f"client {k} alone"] = begin(method, train.take(rows), epochs=self.epochs, **how)
            except MolgraphError as why:
                notes.append(f"client {k} learns nothing alone: {why.message}")
        graphs, done, longest = input_graphs(test, arms[FED].method.graph_inputs()), 0, 0.0
        while done < self.rounds and (not done or time.process_time() + longest < end):
            started = time.process_time()
            for arm in arms.values():
                arm.federation.round()
                arm.scores.append(_score(arm.method, test, graphs, target))
            done, longest = done + 1, max(longest, time.process_time() - started)
        if done < self.rounds:
            notes.append(f"{done} of {self.rounds} rounds, for want of time")
        y = np.asarray(test.y)[:, 0]
        guess = evaluate_metric(metric, y, np.full(len(y), np.nanmean(np.asarray(train.y)[:, 0])))[0]
        goal = guess + self.reach * (arms[POOLED].scores[-1] - guess)
        sign = -1.0 if metric.higher_is_better else 1.0
        frame = tabulate(arms, metric.name, sign, goal)
        same, apart = self.controls(method, train, clients, how)
        sizes = " + ".join(str(len(rows)) for rows in clients)
        about = subject.data if isinstance(subject.data, str) else "a table"
        curves = {name: arm.scores for name, arm in arms.items() if name in (FED, SINGLE, POOLED)}
        alone = [arm.scores for name, arm in arms.items() if name not in curves]
        if alone:
            curves["alone (mean)"] = np.mean(alone, axis=0).tolist()
        return Findings(
            f"Federated averaging of {subject.model} on {about}: {sizes} rows of {target.name}, {len(test):,} test it",
            tell(frame, metric.name, goal), frame,
            Control(f"{self.epochs} epochs a round beside a pooled step", f"apart by more than {SAME:g}",
                    f"{apart:.1g}", apart > SAME),
            Control("one step of all rows a round beside a pooled step", f"the same within {SAME:g}",
                    f"{same:.1g}", same < SAME),
            lambda form: _drawn(curves, metric.name, goal, form), tuple(notes),
        )  # fmt: skip

    def _table(self, subject: Subject, seed: int) -> tuple[Table, Target, list[str]]:
        """The labelled rows of the first target, and what was left out."""
        table = subject.table()
        if not table.row_targets or table.y is None:
            raise LabelError("the table has no target of its rows", hint="name its column: -t COLUMN")
        if table.feature_names:
            words = "federated reads molecules, and no features beside them"
            raise UnsupportedError(words, hint="leave --feature out")
        target, notes = table.row_targets[0], list[str]()
        if len(table.row_targets) > 1:
            notes.append(f"of {len(table.row_targets)} targets the first, {target.name}")
        table = replace(standardise(table.with_targets([target.name]), "standard"), weights=None)
        table, drawn = labelled_rows(table, self.rows, FEWEST, seed)
        return table, target, notes + drawn

    def controls(
        self, method: GraphMethod, train: Table, clients: Sequence[np.ndarray], how: dict[str, Any]
    ) -> tuple[float, float]:
        """The distance from a pooled step of a round of one step, and of a round as it is asked for; of weights."""
        step = {**how, "optimizer": PLAIN, "batch_size": 0, "epochs": 1, "training": False}
        longer = {**how, "epochs": self.epochs, "training": False}
        pooled, same, apart = (
            begin(method, train, **step),
            *(begin(method, train, clients, **h) for h in (step, longer)),
        )
        ends = []
        for arm in (pooled, same, apart):
            arm.federation.round()
            ends.append(np.concatenate([p.detach().numpy().ravel() for p in arm.federation.network.parameters()]))
        return tuple(float(np.linalg.norm(e - ends[0]) / np.linalg.norm(ends[0])) for e in ends[1:])  # type: ignore[return-value]


def _network(subject: Subject, seed: int) -> GraphMethod:
    """The method that the subject names, which has to be a network with the usual objective."""
    if not is_name(subject.model):
        raise UnsupportedError("federated trains its model anew", hint="name a model, such as -m dmpnn")
    method = fresh(subject, derive(seed, "fit"))
    if not isinstance(method, GraphMethod):
        words = f"federated averages the weights of a network, and {subject.model} is none"
        raise UnsupportedError(words, hint="name a graph network, such as -m dmpnn")
    if method.objective != "supervised" or method.descriptors != "none" or method.init is not None:
        words = "federated trains by the usual objective, from fresh weights, without descriptors"
        raise UnsupportedError(words, hint="leave objective, init and descriptors out of the model's settings")
    return method


def _parts(table: Table, seed: int) -> tuple[Table, Table, list[str]]:
    """Rows to train on, and a fifth with scaffolds of its own, or at random where there are too few scaffolds."""
    fractions, notes = (1 - TEST, 0.0, TEST), list[str]()
    try:
        split = split_table(table, "scaffold/balanced", fractions=fractions, seed=seed, quiet=True)
    except MolgraphError:
        notes.append("too few scaffolds to test new ones: test rows are drawn at random")
        split = split_table(table, "random", fractions=fractions, seed=seed, quiet=True)
    order = generator(seed, "train").permutation(split.train)
    return table.take(np.sort(order)), table.take(split.test), notes


def _score(method: GraphMethod, test: Table, graphs: Sequence[CachedGraphs], target: Target) -> float:
    p, y = columns_of(method.predict_graphs(test, graphs), target), np.asarray(test.y)[:, 0]
    known = np.isfinite(p.reshape(len(p), -1)).all(axis=1)
    return evaluate_metric(default_metric(target.kind), y[known], p[known])[0]


def tabulate(arms: dict[str, Arm], metric: str, sign: float, goal: float) -> pd.DataFrame:
    """A row for each model: its training rows, last score, and the rounds and megabytes until a score is reached.

    Args:
        arms: by name.
        metric: its name, that of the column.
        sign: -1 where more of it is better, else 1.
        goal: the score.
    """
    rows = []
    for name, arm in arms.items():
        there = np.flatnonzero(sign * np.array(arm.scores) <= sign * goal)
        reached, fed = (int(there[0]) + 1 if len(there) else None), arm.federation
        sent = fed.bytes / 1e6 if name in (FED, SINGLE) else 0.0
        until = None if reached is None else sent * reached / fed.rounds
        n = sum(map(len, fed.clients))
        rows.append((name, n, arm.scores[-1], sent, reached, until))
    frame = pd.DataFrame(rows, columns=["training", "rows", metric, "mb_sent", "rounds_to_goal", "mb_to_goal"])
    return frame.astype({"rounds_to_goal": float, "mb_to_goal": float})


def tell(frame: pd.DataFrame, metric: str, goal: float) -> str:
    """The scores beside each other, and the rounds until one is reached."""
    rows = frame.set_index("training")
    alone = rows.loc[[name for name in rows.index if name.endswith("alone")], metric]
    words = f"New scaffolds: {metric} {rows.loc[FED, metric]:.3g} federated, {rows.loc[POOLED, metric]:.3g} of all rows"
    if len(alone):
        words += f" in one place, {alone.mean():.3g} alone (mean of {len(alone)} clients)"

    def rounds(name: str) -> str:
        n = rows.loc[name, "rounds_to_goal"]
        return "not reached" if np.isnan(n) else f"reached in {n:.0f} rounds, {rows.loc[name, 'mb_to_goal']:.3g} MB"

    return f"{words}. {goal:.3g} is {rounds(FED)}, and with one epoch a round {rounds(SINGLE)}."


def _drawn(curves: dict[str, list[float]], metric: str, goal: float, form: str) -> bytes:
    from molgraph.evaluate.report_trust import round_lines  # with matplotlib

    return round_lines(curves, metric, goal, form)
