"""Estimate which descriptors and endpoints cause which, from matched molecular pairs read as interventions."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score
from torch import nn

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.concepts import concepts
from molgraph.chem.matched_pairs import cuts_of
from molgraph.chem.smiles import parse_smiles
from molgraph.data.levels import labelled
from molgraph.nn.causal_relations import CausalRelations, interventions, random_graphs
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.runtime import torch_settings

BATCH, RATE, TESTS = 64, 5e-3, 200  # graphs of a step of training; Adam; made graphs of the controls
DESCRIPTORS, MOST, FEWEST = ("logP", "TPSA", "heavy atoms"), 3, 10  # that edits set; endpoints; matched pairs


def train_relations(m: int, steps: int, t: int, seed: int, d_hidden: int = 24) -> CausalRelations:
    """A network that was trained on made graphs of m variables with t interventions each, new ones at every step."""
    with torch_settings(1, derive(seed, "relations")):
        network = CausalRelations(d_hidden)
        optimiser = torch.optim.Adam(network.parameters(), RATE)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(steps, 1))
        apart = ~torch.eye(m, dtype=torch.bool)
        for _ in range(steps):
            edges = random_graphs(BATCH, m)
            logits = network(*interventions(edges, t))
            loss = nn.functional.binary_cross_entropy_with_logits(logits[:, apart], edges[:, apart].float())
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
        return network.eval()


def correlation_edges(x: np.ndarray) -> np.ndarray:
    """float64 [n, m, m]: the absolute correlation of each pair of variables over float [n, t, m] changes."""
    z = x - x.mean(axis=1, keepdims=True)
    z = z / np.maximum(np.sqrt((z**2).sum(axis=1, keepdims=True)), 1e-9)
    return np.abs(np.einsum("nti,ntj->nij", z, z))


def made_scores(network: CausalRelations, m: int, t: int, seed: int) -> tuple[float, float]:
    """ROC AUC of all edges of new made graphs, by the network and by correlations."""
    with torch_settings(1, derive(seed, "made graphs")), torch.no_grad():
        edges = random_graphs(TESTS, m)
        x, at = interventions(edges, t)
        logits = network(x, at).numpy()
    apart = ~np.eye(m, dtype=bool)
    truth = edges.numpy()[:, apart].ravel()
    both = (logits, correlation_edges(x.double().numpy()))
    return tuple(float(roc_auc_score(truth, scores[:, apart].ravel())) for scores in both)  # type: ignore[return-value]


def matched(texts: list[str], most: int, seed: int) -> list[tuple[int, int]]:
    """Pairs of rows whose molecules differ in one group, at most so many, drawn by the seed."""
    of: dict[str, list[int]] = {}
    for i, text in enumerate(texts):
        for context in {cut.context for cut in cuts_of(text)}:
            of.setdefault(context, []).append(i)
    pairs = sorted({(a, b) for rows in of.values() for k, a in enumerate(rows) for b in rows[k + 1 :]})
    order = generator(seed, "pairs").permutation(len(pairs))[:most]
    return [pairs[i] for i in np.sort(order)]


@register(
    "study",
    "endpoints",
    summary="which descriptors and endpoints move which others, from matched pairs read as interventions",
    paper="Ke et al. 2020, arXiv",
    systems=(
        SystemCard(
            "causal-relational-network",
            left_out="relational memory, choosing the interventions; knock-downs of targets",
            off="'endpoints(steps=1)'",
            beside=("absolute correlations",),
            command="molgraph study endpoints dataset:esol -o endpoints.csv",
            modules=("molgraph.nn.causal_relations",),
        ),
    ),
)
class EndpointsStudy(Study):
    """A row for each ordered pair of variables: how likely the first moves the second, and their correlation.

    Ke et al. 2020: a network that was trained on many made graphs reads the edges of a new one from interventions in
    one pass. A matched pair of molecules is taken for an intervention on the descriptor (logP, polar surface, size)
    that it changes most in deviations; the changes of all variables are its outcome. Since an edit moves several
    descriptors at once and no hidden cause is ruled out, this is a hint for the next experiment and no proof. Controls:
    made graphs, by the network and with the interventions exchanged.

    Args:
        interventions: matched pairs, and interventions of made graphs.
        steps: of training, with 64 made graphs each.
        pairs: of molecules to draw from, at most.

    Raises:
        EmptyError: fewer than ten matched pairs with all endpoints.
    """

    small = MappingProxyType({"steps": 150, "interventions": 10})

    def __init__(
        self,
        *,
        interventions: Annotated[int, Range(FEWEST, 200)] = 20,
        steps: Count = 600,
        pairs: Annotated[int, Range(FEWEST, 1_000_000)] = 2000,
    ) -> None:
        self.interventions, self.steps, self.pairs = interventions, steps, pairs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Find matched pairs, train on made graphs, and read them."""
        table = subject.table()
        targets = table.row_targets[:MOST]
        table = table.with_targets([t.name for t in targets])
        table = table.take(np.flatnonzero(labelled(table) & table.ok))
        texts = [str(text) for text in table.smiles]
        mols = [parse_smiles(text).mol for text in texts]
        described = concepts([mol for mol in mols if mol is not None])
        kept = [i for i, mol in enumerate(mols) if mol is not None]
        names = [name for name in DESCRIPTORS if name in described]
        y = np.zeros((len(table), 0)) if table.y is None else table.y
        values = np.column_stack([described[names].to_numpy(), y[kept]])
        rows = matched([texts[i] for i in kept], self.pairs, seed)
        changes = np.array([values[b] - values[a] for a, b in rows]).reshape(-1, values.shape[1])
        changes = changes[np.isfinite(changes).all(axis=1)]
        if len(changes) < FEWEST or not targets:
            words = f"{len(changes)} matched pairs have all endpoints, of {FEWEST} that are needed"
            raise EmptyError(words, hint="name endpoints with -t, and give a table of series of analogues")
        changes = changes / np.maximum(changes.std(axis=0), 1e-9)
        at = np.zeros_like(changes)
        at[np.arange(len(at)), np.abs(changes[:, : len(names)]).argmax(axis=1)] = 1
        m, t = changes.shape[1], min(self.interventions, len(changes))
        network = train_relations(m, self.steps, t, seed)
        rng, draws = generator(seed, "interventions"), []
        for _ in range(20):  # draws of so many pairs
            some = rng.permutation(len(changes))[:t]
            x, do = (torch.from_numpy(part[some].astype(np.float32))[None] for part in (changes, at))
            with torch.no_grad():
                draws.append(network(x, do)[0].sigmoid().numpy())
        edge, spread = np.mean(draws, axis=0), np.std(draws, axis=0)
        like = correlation_edges(changes[None])[0]
        every = [*names, *(target.name for target in targets)]
        frame = pd.DataFrame(
            [(every[i], every[j], edge[i, j], spread[i, j], like[i, j]) for i in range(m) for j in range(m) if i != j],
            columns=["from", "to", "probability", "deviation", "correlation"],
        ).sort_values("probability", ascending=False, ignore_index=True)
        into = frame[frame["to"].isin([target.name for target in targets])].iloc[0]
        words = (
            f"Of {len(changes):,} matched pairs, {into['from']} most likely moves {into['to']} "
            f"({into['probability']:.2f}; absolute correlation {into['correlation']:.2f})."
        )
        small = train_relations(3, self.steps, t, seed)
        ours, plain = made_scores(small, 3, t, seed)
        with torch_settings(1, derive(seed, "none")), torch.no_grad():
            edges = random_graphs(TESTS, 3)
            logits = small(*interventions(random_graphs(TESTS, 3), t)).numpy()
        apart = ~np.eye(3, dtype=bool)
        none = float(roc_auc_score(edges.numpy()[:, apart].ravel(), logits[:, apart].ravel()))
        return Findings(
            f"Causes among {m} variables: {len(changes):,} matched pairs", words, frame,
            Control("made graphs", f"ROC AUC above that of correlations, {plain:.2f}", f"{ours:.2f}", ours > plain),
            Control("interventions in other graphs", "ROC AUC 0.5 +- 0.1", f"{none:.2f}", abs(none - 0.5) < 0.1),
        )  # fmt: skip
