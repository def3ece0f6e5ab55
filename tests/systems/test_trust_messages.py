"""Messages of graph networks: games by enumeration, a network that does not listen, and labels that need the graph."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch

from molgraph.auxiliary.study.messages import Messages
from molgraph.base.contracts import Target
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.study.message_swap import causal_influence
from molgraph.study.study import Subject
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect

RESTS = ("C", "CC", "OC", "C#N", "C(C)C", "C(=O)C", "SC", "CCC", "C=C", "CCOC", "C(C)(C)C", "N(C)C", "C1CC1", "Br")


@pytest.mark.system("cic", rung="exact")
def test_the_influence_in_two_by_two_games_is_that_of_an_enumeration(off: str) -> None:
    """I(a; m) of the joint distribution, to 1e-9, and 0 for a listener that ignores m; off: any two messages alike."""
    rng = np.random.default_rng(4)
    policy, sent = rng.dirichlet([1, 1], (2, 6)), rng.dirichlet([1, 1], 6).T  # [messages, games, actions], [m, games]
    policy[:, 5] = policy[0, 5]
    found = causal_influence(np.repeat(policy[:1], 2, 0) if off else policy, sent)
    for game in range(6):
        joint, wanted = sent[:, game, None] * policy[:, game], 0.0
        for m, a in product(range(2), range(2)):
            wanted += joint[m, a] * np.log(joint[m, a] / (joint[m].sum() * joint[:, a].sum()))
        assert abs(found[game] - wanted) < 1e-9
    assert abs(found[5]) < 1e-15


@pytest.mark.system("cic", rung="exact")
def test_a_network_that_does_not_listen_has_no_influence_while_its_messages_tell(off: str) -> None:
    """Exactly 0, with a probe of the label on what is sent above 0.5; off: the network as it was trained."""
    texts = [str(text) for text in builtin.nci().smiles[:300]]
    y = np.array([[float(text.upper().count("N"))] for text in texts])
    table = make_table(texts, targets=(Target("nitrogens"),), y=y)
    method = GraphMethod("dmpnn", {"depth": 2, "d_hidden": 16}, epochs=1, threads=1)
    encoder = method.fit(table.take(np.arange(20))).ready().network.encoder
    if not off:
        with torch.no_grad():
            encoder.w_h.weight[:] = 0
            encoder.w_o.weight[:, -encoder.w_h.out_features :] = 0
    found = Messages(draws=3).run(Subject(table, Model(method, targets=table.targets)), seed=1)
    rows = found.frame.set_index("messages")
    assert rows["probe"].max() > 0.5 and found.sound
    assert (rows["influence"] == 0).all() and (rows["change"] == 0).all()


def rings(seed: int, n: int = 400) -> tuple[Table, Table]:
    """Benzenes with two groups beside or opposite each other, and the two labels: place, and a group's element."""
    rng = np.random.default_rng(seed)
    y, texts = rng.integers(0, 2, (n, 2)), list[str]()
    for beside, element in y:
        a, b = ("F", "Cl")[element], rng.choice(RESTS)
        texts.append(f"{a}c1c({b})cccc1" if beside else f"{a}c1ccc({b})cc1")
    return tuple(make_table(texts, targets=(Target("y", "binary"),), y=y[:, [i]].astype(float)) for i in (0, 1))


@pytest.mark.system("cic", rung="works")
def test_labels_of_the_graph_need_messages_more_than_labels_of_atoms(off: str, effect: Effect) -> None:
    """Share of the skill that goes with the messages; off: messages as they are."""
    lost, atoms, skill = [], [], []
    for seed in (10, 11, 12):
        share = []
        for table in rings(seed):
            model = "gin(depth=3, d_hidden=32, epochs=25, learning_rate=0.002, batch_size=32, threads=1)"
            study = Messages(epochs=25, draws=2, replace=not off)
            score = study.run(Subject(table, model), seed=seed).frame.set_index("messages")["score"]
            share.append((score["as they are"] - score["all"]) / (score["as they are"] - 0.5))
            skill.append(score["as they are"])
        lost.append(share[0]), atoms.append(share[1])
    beside = {"label of an element": atoms, "ROC AUC of both": skill}
    effect("share of the skill lost without messages", lost, at_least=0.7, beside=beside)
