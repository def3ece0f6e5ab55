"""Measure whether a graph network listens to its messages, by replacing them, beside what a probe reads in them."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch

from molgraph.auxiliary.study.probes import activations, decodability
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import InputSpec
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, get_metric
from molgraph.nn.atom_encoder import RoundsEncoder, SharedStates
from molgraph.nn.propagate import propagate
from molgraph.study.message_swap import (
    NONE,
    HasRounds,
    causal_influence,
    influence_on_numbers,
    messages_replaced,
    n_rounds,
)
from molgraph.study.randomised import chance_score
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import Judged, judged
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.method import GraphMethod

BATCH, HEARD = 256, 0.5  # molecules of a control; share of them in which a listener is influenced
IGNORED, TELLS = 0.1, 0.1  # share of the skill that goes with the messages, of a deaf model; R2 of telling ones


@register(
    "study",
    "messages",
    summary="whether a graph network listens to its messages, and what its score is without them",
    paper="Lowe et al. 2019, AAMAS",
    systems=(
        SystemCard(
            "cic",
            left_out="agents, their policies and games of several steps: atoms send and hear",
            off="messages(replace=false)",
            beside=("a linear probe of the states that are sent",),
            command="molgraph study messages builtin:chembl2321810 -m 'gin(depth=3, epochs=10)' -o messages.csv",
            modules=("molgraph.study.message_swap",),
        ),
    ),
)
class Messages(Study):
    """A row for each round of messages, and one for all: what a probe reads in them, and what the model hears of them.

    Lowe et al. 2019, "On the Pitfalls of Measuring Emergent Communication": that messages tell of something is no
    evidence that anybody listens (positive signalling and positive listening). ``probe`` is the R2 of a linear probe of
    the label on the sums of the states that are sent. ``influence`` is the mutual information, in nats, of the answer
    and the messages, where each of a round's is replaced by that of a random bond of the same type; a number counts as
    a normal distribution with the deviation of all answers. ``change`` is how far the answer moves, in probability or
    those deviations, and ``score`` what the model scores then. The messages are those of other molecules too: what is
    left in the row ``all`` is known of a bag of atoms and bonds, and what is lost is the graph's part at most, since
    other messages are odd to a network. Controls: an encoder that hears its neighbours, and one that does not.

    Args:
        split: how to divide the rows; the table's own split column if empty, or at random where it has none.
        rows: rows that are used, at most, drawn at random.
        epochs: of a model that is named; a file is judged on the rows that it did not learn from.
        draws: of other messages.
        replace: ``false`` leaves every message as it is.

    Raises:
        UnsupportedError: a model without rounds of messages, or a target of atoms.
        EmptyError: test rows of one class or value.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"rows": 120, "epochs": 2, "draws": 3})

    def __init__(
        self,
        *,
        split: str = "",
        rows: Annotated[int, Range(20, 10_000_000)] = 1500,
        epochs: Count = 20,
        draws: Annotated[int, Range(2, 1000)] = 8,
        replace: bool = True,
    ) -> None:
        self.split, self.rows, self.epochs, self.draws, self.replace = split, rows, epochs, draws, replace

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit, then replace the messages of each round."""
        started = time.process_time()
        setup = judged(subject, split=self.split, rows=self.rows, epochs=self.epochs, seed=seed)
        method = setup.model.method
        encoder = method.ready().network.encoder if isinstance(method, GraphMethod) else None
        if (
            not isinstance(method, GraphMethod)
            or not isinstance(encoder, HasRounds)
            or setup.model.columns_read[0][0] != "molecule"
            or len(method.graph_inputs()) > 1
        ):
            words = f"{setup.model.name} has no rounds of messages of one column that could be replaced"
            raise UnsupportedError(words, hint="name a graph network such as gin, dmpnn, mpnn, graphconv, pna")
        table = standardise(setup.test, setup.model.standardiser)
        metric = get_metric({"binary": "roc_auc", "multiclass": "accuracy"}.get(setup.target.kind, "spearman"))
        y = np.zeros(0) if table.y is None else table.y[:, 0]
        graphs = input_graphs(table, method.graph_inputs())
        batch = collate(graphs[0].store, graph_of_rows(graphs)[:1, 0])
        layers: list[int | None] = [*range(n_rounds(encoder, batch))]

        def answer(layer: int | None, draw: int) -> np.ndarray:
            with messages_replaced(encoder, layer if self.replace else NONE, derive(seed, "draw", draw)):
                return columns_of(method.predict_graphs(table, graphs), setup.target).astype(np.float64)

        whole = answer(NONE, 0)
        known = np.isfinite(whole.reshape(len(whole), -1)).all(axis=1) & np.isfinite(y)
        intact = chance_score(metric, y[known], whole[known])
        if not np.isfinite(intact):
            raise EmptyError("the test rows have one class or one value alone", hint="name a larger table or a split")
        likely, deviation = setup.target.kind in ("binary", "multiclass"), float(whole[known].std()) or 1.0
        probes = self._probes(method, table, y, known, len(layers), seed)
        notes, rows = [*setup.notes], list[tuple[Any, ...]]()
        for layer in [None, *layers[::-1]]:  # the most telling first
            if rows and time.process_time() - started > 0.9 * seconds:
                notes.append(f"round {layer + 1 if layer is not None else 0} is left out, for want of time")
                continue
            p = np.array([answer(layer, draw) for draw in range(self.draws)])[:, known]
            score = float(np.mean([chance_score(metric, y[known], prediction) for prediction in p]))
            change = float(np.abs(p - whole[known]).mean()) / (1.0 if likely else deviation)
            named = ("all", np.nan) if layer is None else (f"round {layer + 1}", probes[layer])
            heard = causal_influence(_shares(p)) if likely else influence_on_numbers(p, deviation)
            rows.append((*named, float(heard.mean()), change, score))
        rows.append(("as they are", np.nan, 0.0, 0.0, intact))
        frame = pd.DataFrame(rows[::-1], columns=["messages", "probe", "influence", "change", "score"])
        chance = {"roc_auc": 0.5, "accuracy": float(pd.Series(y[known]).value_counts(normalize=True).max())}
        title = f"Messages of {setup.model.name} on {setup.target.name}: {int(known.sum()):,} test molecules"
        return Findings(
            title,
            _sentence(frame, metric.label, chance.get(metric.name, 0.0)),
            frame,
            *self._controls(setup, method, seed),
            lambda form: _drawn(frame, metric.label, form),
            tuple(notes),
        )

    def _probes(
        self, method: GraphMethod, table: Table, y: np.ndarray, known: np.ndarray, rounds: int, seed: int
    ) -> list[float]:
        """R2 of the label by the states that each round sends; NaN of those that the encoder does not tell."""
        parts = activations(method.ready().network.encoder, method.graph_inputs(), table)
        layers = [name for name in parts if name.startswith("layer ")]
        sent = ["input", *layers[:-1]] if layers else ["input", *[""] * (rounds - 1)]
        values = [float(decodability(parts[name][known], y[known, None], seed)[0]) if name else np.nan for name in sent]
        return [values[t * len(values) // rounds] for t in range(rounds)]

    @torch.no_grad()
    def _controls(self, found: Judged, method: GraphMethod, seed: int) -> tuple[Control, Control]:
        """Encoders that hear their neighbours or not, and answer by the mean of the atoms' states."""
        store = method.graph_inputs()[0].featuriser.featurise(found.test.smiles[:BATCH].tolist())
        batch, heard = collate(store, np.arange(len(store))), []
        for listens in (True, False):
            encoder, values = Listener(store.spec, listens).eval(), []
            for draw in range(self.draws):
                with messages_replaced(encoder, None if self.replace else NONE, derive(seed, "control", draw)):
                    values.append(encoder(batch).graphs.double().sum(dim=1).numpy())
            x = np.array(values)
            heard.append(float((influence_on_numbers(x, max(float(x[0].std()), 1e-9)) > 0).mean()))
        return (
            Control("an encoder that hears its neighbours", f"influenced in {HEARD:.0%} of the molecules or more",
                    f"{heard[0]:.0%}", heard[0] >= HEARD),
            Control("one that does not", "influenced in none", f"{heard[1]:.0%}", heard[1] == 0),
        )  # fmt: skip


class Listener(RoundsEncoder):
    """One round: the product of each atom's features with the sum of its neighbours', or the features alone."""

    def __init__(self, spec: InputSpec, listens: bool) -> None:
        super().__init__(1, True)
        self.listens = listens
        self.read_by("mean", spec.width("atom"))

    def states(self, batch: GraphBatch) -> SharedStates:
        """The states of the atoms."""
        trace = self.rounds_of(batch)
        step, h = trace.rounds[0], trace.atoms.rows()
        state, heard = step.previous(h), propagate(step.senders(h), step.relation)
        return SharedStates(state * heard if self.listens else state, trace.readout, trace.every_atom)


def _shares(p: np.ndarray) -> np.ndarray:
    """float64 [draws, n, classes], of probabilities of class 1 or of all classes."""
    return p if p.ndim == 3 else np.stack([1 - p, p], axis=2)


def _sentence(frame: pd.DataFrame, label: str, chance: float) -> str:
    rows = frame.set_index("messages")
    intact, without = rows["score"]["as they are"], rows["score"]["all"]
    skill, probe = intact - chance, rows["probe"].max()
    lost = (intact - without) / skill if skill > 0 else np.nan
    words = f"{label} {intact:.2f} becomes {without:.2f} with all messages replaced"
    words += f" (influence {rows['influence']['all']:.3f} nats)"
    if not lost > IGNORED:
        tells = f", although a probe reads the label in them (R2 {probe:.2f})" if probe > TELLS else ""
        return f"{words}: the model does not need the graph{tells}."
    return f"{words}, {min(lost, 1):.0%} of its skill: the graph matters."


def _drawn(frame: pd.DataFrame, label: str, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    both = {label: frame["score"].tolist(), "influence (nats)": frame["influence"].tolist()}
    return paired_bars(frame["messages"].tolist(), both | {"probe (R2)": frame["probe"].tolist()}, "", form)
